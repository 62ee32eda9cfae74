#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Branches that tests take in parsers, memory planner, cache and loader: runs programs of
a build by clang with -fprofile-instr-generate -fcoverage-mapping and prints a row a part.

    coverage.py BUILD PROGRAM..      programs: unit tests, and fuzz targets that replay

A fuzz target is given its corpus. A program that fails ends it with exit code 1. The
build: cmake --preset dev -B BUILD -DCMAKE_C_COMPILER=clang-19
-DCMAKE_C_FLAGS="-fprofile-instr-generate -fcoverage-mapping".
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = {
    "parser of ONNX": ["frontend/onnx/*.c"],
    "parsers of StableHLO and its bytecode": ["frontend/stablehlo/*.c"],
    "parser of IR text": ["ir/parse*.c"],
    "memory planner": ["compile/memory_*.c"],
    "cache": ["runtime/plan_cache*.c"],
    "loader of plans": ["runtime/plan.c", "runtime/plan_check.c",
                        "runtime/plan_set.c", "runtime/executable_load.c"],
    "loader of plugins": ["runtime/plugin_*.c"],
}


def run(program, build, profile):
    words = [str(program)]
    if program.name.endswith("_fuzz"):
        target = program.name.removesuffix("_fuzz")
        words.append(str(ROOT / "tests/fuzz/corpus" / target))
    env = {**os.environ, "LLVM_PROFILE_FILE": str(profile),
           "PESTLE_BUILD_DIR": str(build), "PESTLE_SOURCE_DIR": str(ROOT),
           "PESTLE_CACHE_DIR": str(profile.parent / "cache")}
    done = subprocess.run(words, env=env, cwd=profile.parent, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        print(f"{program.name}: exit code {done.returncode}", file=sys.stderr)
    return done.returncode


def measure(programs, profiles, folder):
    merged = folder / "all.profdata"
    subprocess.run(["llvm-profdata-19", "merge", "-sparse", "-o", merged,
                    *profiles], check=True)
    objects = [word for program in programs[1:]
               for word in ("-object", str(program))]
    done = subprocess.run(
        ["llvm-cov-19", "export", "-summary-only", f"-instr-profile={merged}",
         str(programs[0]), *objects], check=True, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL)
    return {entry["filename"]: entry["summary"]
            for entry in json.loads(done.stdout)["data"][0]["files"]}


def main(words):
    if len(words) < 2:
        sys.exit(__doc__)
    build = pathlib.Path(words[0]).resolve()
    programs = [build / word for word in words[1:]]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        profiles = [folder / f"{i}.profraw" for i in range(len(programs))]
        codes = [run(program, build, profile)
                 for program, profile in zip(programs, profiles)]
        files = measure(programs, [p for p in profiles if p.exists()], folder)
    print("| Part | Branches | Taken | Lines taken |\n|---|---:|---:|---:|")
    for part, patterns in PARTS.items():
        mine = [files[str(path)] for pattern in patterns
                for path in sorted(ROOT.glob(pattern)) if str(path) in files]
        sums = {kind: [sum(one[kind][key] for one in mine)
                       for key in ("count", "covered")]
                for kind in ("branches", "lines")}
        share = {kind: 100 * covered / max(count, 1)
                 for kind, (count, covered) in sums.items()}
        print(f"| {part} | {sums['branches'][0]:,} | "
              f"{share['branches']:.1f} % | {share['lines']:.1f} % |")
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
