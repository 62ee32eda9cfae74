#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models through valgrind's memcheck, code of llvm for x86-64-v3 included: no invalid
access, no use of what nobody wrote, nothing definitely lost. Prints one JSON line. Models
are the seeds of the fuzz target of StableHLO text that compile.

    valgrind.py [--part I/N] [NAME..]       exit code 77: there is no valgrind
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
HERE = pathlib.Path(__file__).resolve().parent
SEEDS = HERE.parent / "fuzz/corpus/stablehlo"


def command(model):
    text = model.read_text()
    head = re.search(r"@main\((.*)", text)
    names = re.findall(r"%(\w+): tensor", head[1]) if head else []
    if not head:  # generic text: its body begins with them, and names are places
        head = re.search(r"\^bb0\((.*)", text)
        names = [f"arg{i}" for i in range(head[1].count(": tensor"))]
    inputs = [w for name in names for w in ("--input", f"{name}=random:1")]
    return [str(BUILD / "pestle"), "run", str(model), "--no-cache",
            "--threads", "1", "--device", "llvm", "--target-cpu", "x86-64-v3",
            *inputs]


def main(words):
    if not shutil.which("valgrind"):
        print("there is no valgrind")
        return 77
    part, parts = 1, 1
    if words[:1] == ["--part"]:
        part, parts = map(int, words[1].split("/"))
        words = words[2:]
    models = sorted(SEEDS.glob("*.mlir"))
    if words:
        models = [SEEDS / f"{name}.mlir" for name in words]
    count, failed = 0, []
    for model in models[part - 1::parts]:
        plain = subprocess.run(command(model), capture_output=True, text=True,
                               check=False)
        if plain.returncode:
            failed.append(f"{model.name}: exit code {plain.returncode} without "
                          f"valgrind: {plain.stderr[:300]}")
            continue
        done = subprocess.run(
            ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full",
             "--errors-for-leak-kinds=definite", "--num-callers=12",
             f"--suppressions={HERE / 'valgrind.supp'}", *command(model)],
            capture_output=True, text=True, check=False, errors="replace")
        count += 1
        if done.returncode:
            failed.append(f"{model.name}: exit code {done.returncode}: "
                          f"{done.stderr[:1500]}")
    for text in failed:
        print(f"FAILED {text}")
    print(json.dumps({"models": count, "failed": len(failed)}))
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
