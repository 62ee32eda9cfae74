#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Merging happens by timing and may change no bit: LeNet-5 as three jits, 200 steps, 20
runs with random delays between dispatches, equal to the run without merging. Skips where
JAX cannot be imported."""
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("PESTLE_SOURCE_DIR",
                                     pathlib.Path(__file__).resolve().parents[2]))
LIBRARY = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]).resolve() / "pjrt_plugin_pestle.so"
STEPS, RUNS, PROCESSES = 200, 20, 4

CHILD = r"""
import hashlib, random, sys, time
import jax, numpy as np
import lenet
runs, steps, seed = map(int, sys.argv[1:])
r = random.Random(seed)
for _ in range(runs):
    step, state = lenet.jax_steps(64)["three jits"]
    # A seam in other places in each run: pauses before a dispatch, results that are
    # asked for early, and none at all for a while.
    pauses = r.choice((0.0, 0.02, 0.2))
    asks = r.choice((0.1, 0.5, 1.0))
    losses = hashlib.sha256()
    kept = []
    for i in range(steps):
        if r.random() < pauses:
            time.sleep(r.choice((1e-5, 1e-4, 1e-3, 5e-3)))
        value = step(state)
        kept.append(value)
        if r.random() < asks:
            float(value)
    for value in kept:
        losses.update(np.asarray(value).tobytes())
    for leaf in jax.tree.leaves(state[0]):
        losses.update(np.asarray(leaf).tobytes())
    print("BITS", losses.hexdigest(), flush=True)
"""


def run(python, merge, runs, seed):
    env = dict(os.environ, JAX_PLATFORMS="pestle,cpu", PESTLE_PJRT_DEVICE="cpu",
               PESTLE_PJRT_LIBRARY=str(LIBRARY), PYTHONDONTWRITEBYTECODE="1",
               PESTLE_PJRT_MERGE=merge, PESTLE_PJRT_TIMES="1",
               PYTHONPATH=os.pathsep.join([str(SOURCE / "python"),
                                           str(SOURCE / "bench" / "jax")]))
    done = subprocess.run([python, "-c", CHILD, str(runs), str(STEPS), str(seed)], env=env,
                          check=False, capture_output=True, text=True, timeout=3000)
    bits = [line.split()[1] for line in done.stdout.splitlines()
            if line.startswith("BITS")]
    if done.returncode or len(bits) != runs:
        sys.exit(f"{done.returncode}: {done.stderr[-3000:]}")
    # The table of times names what was merged by its parts.
    merged = [line for line in done.stderr.splitlines()
              if line.startswith("jit_") and "+" in line.split()[0] and
              int(line.split()[3]) > 0]
    print(f"seed {seed}, merge {merge}:", *(merged or ["nothing was merged"]), sep="\n  ",
          flush=True)
    return bits, bool(merged)


def main():
    python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
    if not LIBRARY.exists() or subprocess.run([python, "-c", "import jax"], check=False,
                                              capture_output=True).returncode:
        print("no JAX here")
        return 77
    wanted, _ = run(python, "0", 1, 0)
    any_merged = False
    for seed in range(PROCESSES):
        bits, merged = run(python, "soon", RUNS // PROCESSES, seed)
        any_merged |= merged
        if set(bits) != set(wanted):
            print(f"seed {seed}: other bits than without merging")
            return 1
    if not any_merged:
        print("nothing was merged in any run: the test has shown nothing")
        return 1
    print(f"{RUNS} runs of {STEPS} steps have equal bits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
