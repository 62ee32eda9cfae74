#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of the last commit in two folders have one hash: tools/reproduce.sh. Skips in
builds with sanitizers, and where LLVM's archives or git lack."""
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests"))
import bare_root  # noqa: E402

cache = (pathlib.Path(os.environ["PESTLE_BUILD_DIR"]) / "CMakeCache.txt").read_text()
if "CMAKE_BUILD_TYPE:STRING=Release" not in cache or "RUNTIME_ONLY:BOOL=ON" in cache:
    bare_root.skip("no release build")
if not shutil.which("git") or not (SOURCE / ".git").exists():
    bare_root.skip("no git checkout")
for archive in bare_root.ARCHIVES:
    if not pathlib.Path(archive).exists():
        bare_root.skip(f"no {archive}")
environment = {k: v for k, v in os.environ.items() if not k.startswith("PESTLE_")}
sys.exit(subprocess.run([SOURCE / "tools/reproduce.sh"], check=False,
                        env=environment).returncode)
