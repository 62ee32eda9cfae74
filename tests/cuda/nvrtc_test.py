#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVRTC takes what plugins/cuda prints: for each architecture the modules of
modules/ (all for sm_90a, a quarter for each of the others) and cases of ONNX's own test
suite, and small models where the folder PESTLE_MODELS has them; the modules of
tests/golden/codegen for one architecture each, in turn; with --all everything for each. Needs libnvrtc, no driver: the target
compiles without one, and nothing is run. Exits 77, "skipped", without NVRTC.

usage: nvrtc_test.py [--all] [CASES]
"""

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

BUILD = os.environ["PESTLE_BUILD_DIR"]
SOURCE = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"])
ARCHS = ["sm_80", "sm_90a", "sm_100a"]
MODELS = ["silero_vad", "magika"]


def environment():
    values = dict(os.environ)
    values["PESTLE_BACKEND_PATH"] = f"{BUILD}/backends"
    return values


def compile_module(path, arch, folder):
    """True: compiled. False: not of what Pestle takes as it stands. Else why
    it is wrong."""
    command = [f"{BUILD}/pestle", "compile", str(path), "--target",
               f"cuda:{arch}", "--no-cache", "--strict", "-o",
               f"{folder}/a.plan"]
    done = subprocess.run(command, capture_output=True, text=True,
                          env=environment())
    if "cannot be used" in done.stderr and "NVRTC" in done.stderr:
        print(f"skipped: {done.stderr.strip()}")
        sys.exit(77)
    if not done.returncode:
        return True
    # A case whose shapes are inputs; but a kernel must not be refused.
    why = done.stderr.strip() or f"exit status {done.returncode}"
    ours = done.returncode < 0 or "INTERNAL" in why or "kernel" in why
    return why if ours else False


def node_cases(folder, count):
    """|count| cases of ONNX's suite that Pestle's tests name, always the same."""
    try:
        import onnx
        from onnx.backend.test.loader import load_model_tests
    except ImportError:
        return []
    with open(SOURCE / "tests/models/node_tests.txt", encoding="utf-8") as file:
        names = {line.split()[0] for line in file if line.strip()}
    warnings.simplefilter("ignore")
    cases = [case for case in load_model_tests(kind="node")
             if case.name in names and case.model]
    paths = []
    for case in random.Random(1).sample(cases, min(count, len(cases))):
        paths.append(f"{folder}/{case.name}.onnx")
        onnx.save(case.model, paths[-1])
    return paths


def modules(golden, arch, cases):
    yield from golden
    own = sorted((SOURCE / "tests/cuda/modules").glob("*.mlir"))
    # sm_90a, whose warpgroups most of them are for, takes all; the others share them.
    others = [other for other in ARCHS if other != "sm_90a"]
    if "--all" not in sys.argv and arch in others:
        own = own[others.index(arch)::2 * len(others)]
    yield from own
    yield from cases
    models = os.environ.get("PESTLE_MODELS")
    for name in MODELS if models else []:
        path = pathlib.Path(models) / "static" / f"{name}.onnx"
        if path.exists():
            yield path


def main():
    words = [word for word in sys.argv[1:] if word != "--all"]
    count = int(words[0]) if words else 6
    golden = sorted((SOURCE / "tests/golden/codegen").glob("*.mlir"))
    failures = compiled = other = 0
    with tempfile.TemporaryDirectory() as folder:
        cases = node_cases(folder, count * len(ARCHS))
        for i, arch in enumerate(ARCHS):
            # Others for each: what is wrong is seldom so for one alone.
            its = golden if "--all" in sys.argv else golden[i::len(ARCHS)]
            for path in modules(its, arch, cases[i * count:(i + 1) * count]):
                result = compile_module(path, arch, folder)
                compiled += result is True
                other += result is False
                if isinstance(result, str):
                    failures += 1
                    print(f"{path} for {arch}: {result}")
    print(f"{compiled} modules compiled, {failures} did not, {other} are none "
          "that Pestle takes without more words")
    sys.exit(1 if failures or compiled < len(ARCHS) * 10 else 0)


if __name__ == "__main__":
    main()
