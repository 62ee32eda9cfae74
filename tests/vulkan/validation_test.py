#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plugin's own tests under Vulkan's validation layers: not a word from
them. Skipped without the layer or the plugin."""
import glob
import os
import subprocess
import sys

build = os.environ["PESTLE_BUILD_DIR"]
layers = glob.glob("/usr/share/vulkan/explicit_layer.d/*validation*.json")
if not layers or not os.path.exists(f"{build}/backends/libpestle-vulkan.so"):
    print("skipped: no validation layer or no plugin")
    sys.exit(77)
environment = dict(os.environ, VK_INSTANCE_LAYERS="VK_LAYER_KHRONOS_validation",
                   VK_LOADER_DEBUG="layer")
drivers = glob.glob("/usr/share/vulkan/icd.d/lvp_icd*.json")
if drivers:
    environment.setdefault("VK_ICD_FILENAMES", drivers[0])
failed = False
for test in ("test_plugins_vulkan_flow", "test_plugins_vulkan_stream"):
    run = subprocess.run([f"{build}/tests/bin/{test}"], env=environment,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, errors="replace", check=False)
    if run.returncode == 77:
        sys.exit(77)
    said = [line for line in run.stdout.splitlines()
            if "VUID" in line or "Validation" in line]
    loaded = "VK_LAYER_KHRONOS_validation" in run.stdout
    if run.returncode or said or not loaded:
        print(f"{test}: exit {run.returncode}, layer loaded: {loaded}")
        print("\n".join(said or run.stdout.splitlines()[-40:]))
        failed = True
sys.exit(1 if failed else 0)
