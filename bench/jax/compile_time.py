#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compile time summed over the operations of a list, on Pestle and on JAX's own backend,
and on Pestle again in a second process, which finds its plans on disk.

    compile_time.py --python PYTHON --ops run_ops.py [--every N] [--build BUILD]

--ops names the script whose ops_open.json lies beside it and whose make_arguments() makes
the arguments. Tracing and lowering are JAX's own and not counted. Seconds of the clock, and
of processors: on a busy machine the latter are what can be compared."""
import argparse
import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import time

import common


def child():
    path = pathlib.Path(os.environ["COMPILE_OPS"])
    every = int(os.environ.get("COMPILE_EVERY", "1"))
    spec = importlib.util.spec_from_file_location("run_ops", path)
    run_ops = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run_ops)
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    everything = run_ops.make_arguments(np)
    names = {"jax": jax, "jnp": jnp, "lax": lax, "np": np}
    out = {}
    jax.block_until_ready(jax.jit(lambda x: x + 1)(1.0))
    for op in json.loads((path.parent / "ops_open.json").read_text())[::every]:
        args = [everything[a] for a in op["args"]]
        code = eval("lambda " + ", ".join(op["args"]) + ": " + op["expr"], dict(names))
        try:
            lowered = jax.jit(
                lambda *a: [jnp.asarray(z) for z in jax.tree.leaves(code(*a))]).lower(*args)
            cpu, clock = time.process_time(), time.perf_counter()
            lowered.compile()
            out[op["id"] + " cpu"] = time.process_time() - cpu
            out[op["id"] + " clock"] = time.perf_counter() - clock
        except Exception as e:  # what does not run here is not compared
            print(f"{op['id']}: {type(e).__name__}: {str(e)[:120]}", file=sys.stderr)
    print(json.dumps(out))


def main():
    parser = common.arguments(argparse.ArgumentParser(description=__doc__))
    parser.add_argument("--ops", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1, help="each N-th operation")
    args = parser.parse_args()
    if args.child:
        return child()
    os.environ.update(COMPILE_OPS=str(args.ops.resolve()), COMPILE_EVERY=str(args.every))
    args.rounds = 1
    with tempfile.TemporaryDirectory() as cache:
        os.environ["PESTLE_CACHE_DIR"] = cache
        runs = {}
        for name, backend in (("pestle", "pestle"), (args.peer, args.peer),
                              ("pestle again", "pestle")):
            rows = common.turns(__file__, [backend], args)
            runs[name] = {n: row[backend] for n, row in rows.items()}
    ids = [n[:-4] for n in runs["pestle"] if n.endswith(" cpu")]
    ids = [i for i in ids if all(i + " cpu" in run for run in runs.values())]
    for kind in ("cpu", "clock"):
        sums = {n: sum(run[f"{i} {kind}"] for i in ids) for n, run in runs.items()}
        print(f"{len(ids)} operations, {kind} seconds:",
              ", ".join(f"{n} {s:.2f}" for n, s in sums.items()),
              f"; pestle / {args.peer} {sums['pestle'] / sums[args.peer]:.2f}, "
              f"again {sums['pestle again'] / sums[args.peer]:.2f}")
    ids.sort(key=lambda i: runs[args.peer][i + " cpu"] - runs["pestle"][i + " cpu"])
    for i in ids[:20]:
        print(f"  {i}: " + ", ".join(f"{n} {run[i + ' cpu'] * 1e3:.0f} ms"
                                     for n, run in runs.items()))


if __name__ == "__main__":
    main()
