#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products, attention and transposes of plugins/cuda on the fake driver of this
folder: each module of modules/ gets the schedule, the kernels or the text that its first lines name, and
computes what llvm does, there, as another capability and where else they say.

usage: products_test.py FAKE_DRIVER_FOLDER FAKE_NVRTC_FOLDER
"""

import os
import pathlib
import re
import subprocess
import sys

BUILD = os.environ["PESTLE_BUILD_DIR"]
MODULES = pathlib.Path(__file__).parent / "modules"


def pestle(*words, **more):
    values = dict(os.environ, **more)
    values["LD_LIBRARY_PATH"] = ":".join(sys.argv[1:3])
    values["PESTLE_BACKEND_PATH"] = f"{BUILD}/backends"
    values["PESTLE_NO_CACHE"] = "1"
    return subprocess.run([f"{BUILD}/pestle", *words], capture_output=True,
                          text=True, env=values)


def check(path):
    text = path.read_text(encoding="utf-8")
    what, wanted = re.search(r"^// (schedule|explain|source): (.*)$", text, re.M).groups()
    verb = ["explain"] if what == "explain" else ["dump", "--stage", what]
    done = pestle(verb[0], str(path), *verb[1:], "--device", "cuda")
    if not re.search(wanted, done.stdout, re.M):
        return f"no '{wanted}' in\n{done.stdout}{done.stderr}"
    for way in ["cuda"] + re.findall(r"^// also: (.*)$", text, re.M):
        done = pestle("diff", str(path), "llvm", way, "--quick")
        if done.returncode or "fallback" in done.stderr:
            return done.stdout + done.stderr
    for capability in re.findall(r"^// capability: (\d+)$", text, re.M):
        done = pestle("diff", str(path), "llvm", "cuda", "--quick", FAKE_CUDA_CAPABILITY=capability)
        if done.returncode or "fallback" in done.stderr:
            return f"sm_{capability}: {done.stdout}{done.stderr}"
    return None


def main():
    paths = sorted(MODULES.glob("*.mlir"))
    failures = 0
    for path in paths:
        why = check(path)
        failures += why is not None
        if why:
            print(f"{path.name}: {why}")
    print(f"{len(paths)} modules, {failures} failures")
    sys.exit(1 if failures or len(paths) < 12 else 0)


if __name__ == "__main__":
    main()
