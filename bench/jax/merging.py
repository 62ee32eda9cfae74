#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What merging programs that follow each other gains and costs, in turns.

    merging.py --python PYTHON [--build BUILD] [--cases corpus_cases.py]

Training LeNet-5 as three jits (loss, gradients, update), merged and not
(PESTLE_PJRT_MERGE=0), and as one jit; and with --cases, a file whose CASES are
name -> (function, arguments, options of jax.jit), all of its programs called in a row, each several times
behind the other, with merging and without. Least times of bursts; ratios below 1:
merging is faster."""
import argparse
import importlib.util
import json
import os
import pathlib
import time

import common


def steps():
    import lenet
    out = {}
    for name, (step, state) in lenet.jax_steps(64).items():
        # Enough for the sequence to be found, compiled behind the caller, and compared.
        until = time.perf_counter() + float(os.environ.get("MERGING_WARM", "12"))
        while time.perf_counter() < until:
            float(step(state))
        out[name] = lenet.least(step, state)
    return out


def in_a_row(path):
    """name -> seconds a call, of each program called 20 times behind the other."""
    import jax
    spec = importlib.util.spec_from_file_location("cases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    programs = {}
    for name, (function, arguments, options) in module.CASES.items():
        try:
            f = jax.jit(function, **{k: v for k, v in options.items() if "donate" not in k})
            arguments = jax.tree.map(jax.numpy.asarray, arguments)
            jax.block_until_ready(f(*arguments))
            programs[name] = (f, arguments)
        except Exception as e:  # what does not run here is not compared
            print(f"{name}: {type(e).__name__}", flush=True)
    best = {}
    for _ in range(8):
        for name, (f, arguments) in programs.items():
            begin = time.perf_counter()
            for _ in range(20):
                out = f(*arguments)
            jax.block_until_ready(out)
            seconds = (time.perf_counter() - begin) / 20
            best[name] = min(best.get(name, seconds), seconds)
    return best


def child():
    cases = os.environ.get("MERGING_CASES")
    print(json.dumps(in_a_row(cases) if cases else steps()))


def run(args, merge, cases=""):
    os.environ.update(PESTLE_PJRT_MERGE=merge, MERGING_CASES=cases)
    one = argparse.Namespace(**{**vars(args), "rounds": 1})
    return {n: row["pestle"] for n, row in common.turns(__file__, ["pestle"], one).items()}


def main():
    parser = common.arguments(argparse.ArgumentParser(description=__doc__))
    parser.add_argument("--cases", type=pathlib.Path)
    args = parser.parse_args()
    if args.child:
        return child()
    merged, single, row = {}, {}, [{}, {}]
    for _ in range(args.rounds):
        for seen, merge in ((merged, "1"), (single, "0")):
            for name, seconds in run(args, merge).items():
                seen[name] = min(seen.get(name, seconds), seconds)
            if not args.cases:
                continue
            for name, seconds in run(args, merge, str(args.cases.resolve())).items():
                at = row[merge == "0"]
                at[name] = min(at.get(name, seconds), seconds)
    three, one = merged["three jits"], merged["one jit"]
    print(f"three jits merged {three * 1e6:.0f} us, singly {single['three jits'] * 1e6:.0f}, "
          f"one jit {one * 1e6:.0f}: {single['three jits'] / three:.2f} times singly, "
          f"{three / one:.3f} of one jit")
    if args.cases:
        ratios = sorted((row[0][n] / row[1][n], n) for n in row[0] if n in row[1])
        print(f"{len(ratios)} programs in a row: median "
              f"{ratios[len(ratios) // 2][0]:.3f}, above 1.03:",
              ", ".join(f"{n} {r:.2f} of {row[1][n] * 1e6:.0f} us"
                        for r, n in ratios if r > 1.03) or "none")


if __name__ == "__main__":
    main()
