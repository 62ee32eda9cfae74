#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves the random graphs: each fault that is planted in the compiler is found
within 2,000 of them, and without one nothing is.

    tests/random/faults_test.py [--derive] [--write] [FAULT...]

--derive: those planted in transform/, by the graphs' derivatives and batched forms. The
graph that faults/seeds.txt names is tried first; a fault that it does not find any more is
looked for from the first graph on. --write: all are, and seeds.txt is written.
"""
import os
import pathlib
import re
import subprocess
import sys

GRAPHS = 2000
SOURCE = pathlib.Path(__file__).resolve().parents[2]
SEEDS = SOURCE / "tests/random/faults/seeds.txt"


def planted(folders):
    """The names of PESTLE_FAULT(name) in the sources."""
    names = set()
    for folder in folders:
        for path in sorted((SOURCE / folder).rglob("*.c")):
            names.update(re.findall(r"PESTLE_FAULT\((\w+)\)",
                                    path.read_text()))
    # Others are found by tests/robust/planted_test.py.
    return sorted(name for name in names if not name.startswith("trust_"))


def read_seeds():
    rows = (line.split() for line in SEEDS.read_text().splitlines() if line[0] != "#")
    return {name: int(seed) for name, seed in rows}


def write_seeds(found):
    seeds = read_seeds() | found
    head = [line for line in SEEDS.read_text().splitlines() if line[0] == "#"]
    SEEDS.write_text("\n".join(head + [f"{n} {seeds[n]}" for n in sorted(seeds)]) + "\n")


def run(program, fault, graphs, mode):
    """The first seed that differs, or None, and the line that says so."""
    env = dict(os.environ)
    if fault:
        env["PESTLE_FAULT"] = fault
    # A fault may well make a loop that does not end.
    command = [program, *mode, "--seeds", str(graphs),
               "--until-failure", "--timeout", "20"]
    done = subprocess.run(command, env=env, capture_output=True, text=True,
                          check=False)
    found = re.search(r"^seed (\d+) on .*$", done.stdout, re.M)
    if not found and done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return (int(found[1]), found[0]) if found else (None, "")


def main():
    build = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
    program = str(build / "tests" / "bin" / "pestle-random-faults")
    if "--derive" not in sys.argv and not list((build / "backends").glob("libpestle-llvm-*")):
        print("the llvm backend is not built")
        return 77
    words = sys.argv[1:]
    derive, write = "--derive" in words, "--write" in words
    given = [word for word in words if word not in ("--derive", "--write")]
    mode = ["--derive"] if derive else ["--device", "llvm"]
    folders = ["transform"] if derive else ["ir", "passes", "codegen", "compile"]
    names = given or planted(folders)
    seeds, found, missed = {} if write else read_seeds(), {}, []
    for name in names:
        seed, line = None, ""
        if seeds.get(name, GRAPHS) < GRAPHS:
            seed, line = run(program, name, f"{seeds[name]}..{seeds[name]}", mode)
        if seed is None:
            seed, line = run(program, name, GRAPHS, mode)
        print(f"{name:24} {seed if seed is not None else 'MISSED':>6}  {line[:110]}", flush=True)
        if seed is None:
            missed.append(name)
        else:
            found[name] = seed
    if write:
        write_seeds(found)
    if len(names) < (12 if derive else 20) and not given:
        missed.append(f"only {len(names)} faults are planted")
    seed, line = run(program, None, 50, mode)
    if seed is not None:
        missed.append(f"without a fault: {line}")
    print(f"{len(names)} faults planted; missed: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
