#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/softmax: one kernel in every language, as the command prints it under a
line with the licence. BLESS=1 writes the files anew. A target that this machine does not offer is left
out."""
import os
import subprocess
import sys

build = os.environ["PESTLE_BUILD_DIR"]
source = os.environ["PESTLE_SOURCE_DIR"]
folder = f"{source}/docs/softmax"
# The file's ending, the target and what it is printed for.
targets = [("ll", "llvm", "x86-64-v3"), ("cl", "opencl", "generic"),
           ("comp", "vulkan", "generic"), ("metal", "metal", "apple"),
           ("cu", "cuda", "sm_80")]
compared, failed = 0, []
environment = dict(os.environ)
for ending, target, cpu in targets:
    run = subprocess.run(
        [f"{build}/pestle", "dump", "--target", target, "--target-cpu", cpu,
         "--stage", "source", f"{folder}/softmax.mlir"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
        env=environment)
    if run.returncode:
        if "no device" not in run.stderr:
            failed.append(f"{target}: exit {run.returncode}: {run.stderr}")
        print(f"left out: {target}: {run.stderr.strip()}")
        continue
    path = f"{folder}/softmax.{ending}"
    comment = ";" if ending == "ll" else "//"
    text = f"{comment} SPDX-License-Identifier: Apache-2.0\n{run.stdout}"
    if os.environ.get("BLESS") == "1":
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    with open(path, encoding="utf-8") as file:
        if file.read() != text:
            failed.append(f"{path} is not what the command prints; BLESS=1")
    compared += 1
print("\n".join(failed))
sys.exit(1 if failed else 0 if compared else 77)
