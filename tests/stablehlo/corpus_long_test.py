#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of JAX in many versions of StableHLO: PESTLE_JAX_CORPUS names a folder
of folders with module.mlir, module.VERSION.bc, input_*.npy and output_*.npy.

All versions of a program must have one signature, and what they give must be
what JAX gave. Skipped where there is no such folder.
"""

import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
CORPUS = os.environ.get("PESTLE_JAX_CORPUS")


def signatures(files):
    """File -> signature, or what is wrong with it."""
    out = subprocess.run([BUILD / "tests/bin/pestle_signatures", *files],
                         capture_output=True, text=True).stdout  # fmt: skip
    found = {}
    for line in out.splitlines():
        first, rest = line.split(" ", 1)
        if first == "ERROR":
            path, message = rest.split(": ", 1)
            found[path] = message
        else:
            found[rest] = first
    return found


def check(folder):
    """What is wrong with the program in |folder|; how many files were read."""
    text = folder / "module.mlir"
    artifacts = sorted(folder.glob("module.*.bc"))
    found = signatures([text, *artifacts])
    problems = []
    for path in artifacts:
        if " " in found[str(path)] or found[str(path)] != found[str(text)]:
            problems.append(f"{path.name}: {found[str(path)]}")
    if problems or not artifacts:
        return problems, len(artifacts)
    # Results of bf16 have 8 bits: two steps are 2^-7.
    results = text.read_text().split("->", 1)[1].split("\n", 1)[0]
    rtol = "8e-3" if "bf16" in results else "1e-3"
    run = subprocess.run(
        [BUILD / "pestle", "run", artifacts[-1], "--inputs", folder,
         "--compare", folder, "--rtol", rtol],
        capture_output=True, text=True)  # fmt: skip
    if run.returncode:
        lines = (run.stderr or run.stdout).strip().splitlines()
        problems.append(f"run: {lines[-1] if lines else run.returncode}")
    return problems, len(artifacts)


def main():
    if not CORPUS or not pathlib.Path(CORPUS).is_dir():
        print("PESTLE_JAX_CORPUS names no folder")
        return 77
    failed = count = programs = 0
    for folder in sorted(pathlib.Path(CORPUS).iterdir()):
        if not (folder / "module.mlir").exists():
            continue
        problems, artifacts = check(folder)
        programs += 1
        count += artifacts
        failed += bool(problems)
        for problem in problems:
            print(f"{folder.name}: {problem}")
    print(f"{programs} programs, {count} artifacts, {failed} programs failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
