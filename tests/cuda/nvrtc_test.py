#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVRTC takes what plugins/cuda prints, for each architecture: the modules of
tests/golden/codegen, random graphs over all ops, and small models where the
folder PESTLE_MODELS has them. Needs libnvrtc, no driver: the device is the fake
one of this folder, and nothing is run. Exits 77, "skipped", without NVRTC.

usage: nvrtc_test.py FAKE_DRIVER_FOLDER [GRAPHS]
"""

import os
import pathlib
import subprocess
import sys
import tempfile

BUILD = os.environ["PESTLE_BUILD_DIR"]
SOURCE = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"])
ARCHS = ["sm_80", "sm_90a", "sm_100a"]
MODELS = ["silero_vad", "magika"]


def environment():
    values = dict(os.environ)
    values["LD_LIBRARY_PATH"] = sys.argv[1]
    values["PESTLE_BACKEND_PATH"] = f"{BUILD}/backends"
    return values


def compile_module(path, arch, folder):
    """None, or why it does not compile."""
    command = [f"{BUILD}/pestle", "compile", str(path), "--device", "cuda",
               "--target-cpu", arch, "--no-cache", "--strict", "-o",
               f"{folder}/a.plan"]
    done = subprocess.run(command, capture_output=True, text=True,
                          env=environment())
    if "cannot be used" in done.stderr and "NVRTC" in done.stderr:
        print(f"skipped: {done.stderr.strip()}")
        sys.exit(77)
    if done.returncode:
        return done.stderr.strip() or f"exit status {done.returncode}"
    return None


def random_graph(seed, folder):
    path = f"{folder}/random{seed}.mlir"
    text = subprocess.run([f"{BUILD}/tests/bin/pestle-random", "--print",
                           str(seed)], capture_output=True, check=True).stdout
    with open(path, "wb") as file:
        file.write(text)
    return path


def modules(folder, first, count):
    yield from sorted((SOURCE / "tests/golden/codegen").glob("*.mlir"))
    for seed in range(first, first + count):
        yield random_graph(seed, folder)
    models = os.environ.get("PESTLE_MODELS")
    for name in MODELS if models else []:
        path = pathlib.Path(models) / "static" / f"{name}.onnx"
        if path.exists():
            yield path


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    failures = compiled = 0
    with tempfile.TemporaryDirectory() as folder:
        for i, arch in enumerate(ARCHS):
            # Other graphs for each: what is wrong is seldom so for one alone.
            for path in modules(folder, 1 + i * count, count):
                why = compile_module(path, arch, folder)
                compiled += why is None
                failures += why is not None
                if why:
                    print(f"{path} for {arch}: {why}")
    print(f"{compiled} modules compiled, {failures} did not")
    sys.exit(1 if failures or not compiled else 0)


if __name__ == "__main__":
    main()
