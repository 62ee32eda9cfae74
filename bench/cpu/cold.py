#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cold compilation: `pestle compile MODEL -o FILE.plan` with an empty cache by two or
more builds, in turns.

usage: cold.py MODELS_DIR BUILD_DIR [BUILD_DIR...] [--rounds 5] [--only NAME,NAME]
               [--tier quick]

MODELS_DIR is what tests/models/fetch_models.py makes. Prints the CPU time and the wall
time of each build, the least of the rounds, and both by those of the first build.
"""

import argparse
import math
import os
import pathlib
import resource
import subprocess
import tempfile
import time


def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(build, model, rest):
    with tempfile.TemporaryDirectory() as folder:
        command = [build / "pestle", "compile", model, "-o", f"{folder}/x.plan", *rest]
        environment = {**os.environ, "XDG_CACHE_HOME": folder}
        before, begin = used(), time.perf_counter()
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        wall, after = time.perf_counter() - begin, used()
    return after - before, wall


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("builds", type=pathlib.Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--tier")
    o = parser.parse_args()
    builds = [b.resolve() for b in o.builds]
    rest = ["--tier", o.tier] if o.tier else []
    only = o.only.split(",") if o.only else None
    ratios = [[] for _ in builds]
    print("CPU ms (wall ms) of each build, and both by the first build's")
    for model in sorted((o.models / "static").glob("*.onnx")):
        if only and model.stem not in only:
            continue
        of = [[] for _ in builds]
        for _ in range(o.rounds):
            for build, taken in zip(builds, of):
                taken.append(measure(build, model, rest))
        best = [[min(t[i] for t in taken) for i in (0, 1)] for taken in of]
        row = f"{model.stem:16}"
        for i, (cpu, wall) in enumerate(best):
            row += f"{cpu * 1e3:8.0f} ({wall * 1e3:6.0f})"
            ratios[i].append([cpu / best[0][0], wall / best[0][1]])
            row += f" {ratios[i][-1][0]:.2f} ({ratios[i][-1][1]:.2f})" if i else ""
        print(row, flush=True)
    for i, of in enumerate(ratios[1:], 1):
        cpu, wall = (math.exp(sum(math.log(r[k]) for r in of) / len(of))
                     for k in (0, 1))
        print(f"geometric mean of build {i + 1}: CPU {cpu:.3f}, wall {wall:.3f}")


if __name__ == "__main__":
    main()
