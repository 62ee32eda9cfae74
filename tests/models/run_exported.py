#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the models of make_exported.py on llvm and compares each with ONNX Runtime without
optimisations; then times both, one thread, in turns.

    PESTLE_BUILD_DIR=build/release run_exported.py FOLDER [--only PATTERN] [--rounds 8]
        [--seconds 0.3] [--json FILE] [--no-times] [--jobs N]

A row: right or WRONG, the name, the time of Pestle, of ONNX Runtime with all its
optimisations and without any, and the ratio to the first. Times are the least of all
rounds. Last: how many are right, of how many that take ONNX Runtime more than 1 ms the
ratio is above 1, and the geometric mean. Exits with 1 when one is wrong that KNOWN does
not name. Needs numpy and onnxruntime; imported, compiled and run are the files alone.
--jobs N measures N models at once, for a machine with that many quiet cores. --cpu takes
CPU time instead, where other work has the cores at times: of Pestle what twice as many runs
take more.
"""

import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort

from make_exported import read_inputs

PESTLE = os.path.join(os.environ.get("PESTLE_BUILD_DIR", "build/release"), "pestle")

# What comes out otherwise, and why.
KNOWN = {}

# Distances from sums of squares that cancel in f32 (run_ml_models.py).
LOOSER = {"tables/gaussian_process": 30}


def session(path, level):
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def least(call, seconds, clock):
    times, end = [], time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < end:
        begin = clock()
        call()
        times.append(clock() - begin)
    return 1e3 * min(times)


def spent_by_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def own_time(run, count, cpu):
    """Of a run of Pestle's, in ms: the least of |count|, or their mean of CPU time."""
    if not cpu:
        return min(json.loads(pestle(*run, "--bench", count).strip().splitlines()[-1])["run_ms"])
    spent = []
    for n in (count, 2 * count):
        before = spent_by_children()
        pestle(*run, "--bench", n)
        after = spent_by_children()
        spent.append(after - before)
    return max(1e3 * (spent[1] - spent[0]) / count, 1e-4)


def pestle(*words):
    done = subprocess.run([PESTLE, *map(str, words)], capture_output=True, text=True, check=False, timeout=1800)
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[:400]}")
    return done.stdout


def differs(got, want, looser, steps):
    if isinstance(want, list):
        want = [list(row.values()) for row in want] if want and isinstance(want[0], dict) else want
        want = np.asarray(want)
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, right {list(want.shape)}"
    if want.dtype.kind not in "fiub":
        near = got.astype(str) == want.astype(str)
    elif want.dtype.kind == "f":
        got, want = got.astype(np.float64), want.astype(np.float64)
        spread = float(np.nanmax(np.abs(want), initial=0)) or 1.0
        near = np.isclose(got, want, rtol=2e-3, atol=(steps or 1e-4) * spread * looser, equal_nan=True)
    else:
        near = got == want
    if near.size == 0 or near.mean() >= 0.998:
        return None
    at = tuple(int(i) for i in np.argwhere(~near)[0])
    return f"{np.sum(~near)} of {near.size} differ, at {at} {got[at]!r}, right {want[at]!r}"


def try_one(root, label, o):
    path, given = root / f"{label}.onnx", root / f"{label}.in"
    row = {"name": label}
    feeds = read_inputs(given)
    plain = session(path, "ORT_DISABLE_ALL")
    want = plain.run(None, feeds)
    quantised = any(k in label for k in ("@dynamic", "@qdq", "@operators", "@fused-dynamic", "smart_turn_qdq"))
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        begin = time.perf_counter()
        run = ["run", path, "--device", "llvm", "--threads", "1", "--cache-dir", folder / "cache", "--inputs", given]
        pestle(*run, "--outputs", folder / "out")
        row["compile_s"] = round(time.perf_counter() - begin, 2)
        for i, w in enumerate(want):
            what = differs(np.load(folder / "out" / f"output_{i}.npy"), w, LOOSER.get(label, 1), 0.05 if quantised else 0)
            if what:
                row["wrong"] = f"output {i}: {what}"
                break
        if o.no_times:
            return row
        full = session(path, "ORT_ENABLE_ALL")
        calls = {"ort": lambda: full.run(None, feeds), "ort_plain": lambda: plain.run(None, feeds)}
        clock = time.thread_time if o.cpu else time.perf_counter
        best = {name: least(call, o.seconds, clock) for name, call in calls.items()}
        count = max(2, min(5000, int(1e3 * o.seconds / best["ort"])))
        for _ in range(o.rounds):
            own = own_time(run, count, o.cpu)
            best["pestle"] = min(best.get("pestle", own), own)
            for name, call in calls.items():
                best[name] = min(best[name], least(call, o.seconds, clock))
        row |= {k: round(v, 4) for k, v in best.items()} | {"ratio": round(best["pestle"] / best["ort"], 3)}
    return row


def safely(root, label, o):
    try:
        return try_one(root, label, o)
    except Exception as e:  # of many types
        return {"name": label, "wrong": f"{type(e).__name__}: {str(e)[:500]}"}


def show(row):
    state = "right" if not row.get("wrong") else "known" if row["name"] in KNOWN else "WRONG"
    times = ""
    if "ratio" in row:
        times = f" {row['pestle']:9.3f} / {row['ort']:9.3f} ({row['ort_plain']:9.3f}) ms = {row['ratio']:.2f}"
    print(f"{state} {row['name']:40s}{times} {row.get('wrong', '')}", flush=True)
    return state


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder", type=pathlib.Path)
    a.add_argument("--only", default="*")
    a.add_argument("--rounds", type=int, default=8)
    a.add_argument("--seconds", type=float, default=0.3)
    a.add_argument("--json")
    a.add_argument("--no-times", action="store_true")
    a.add_argument("--cpu", action="store_true")
    a.add_argument("--jobs", type=int, default=1)
    o = a.parse_args()
    # What make_exported.py fetches lies in a hidden folder, without inputs.
    made = (p for p in o.folder.glob("*/*.onnx") if not p.parent.name.startswith("."))
    labels = sorted(f"{p.parent.name}/{p.stem}" for p in made)
    labels = [n for n in labels if any(fnmatch.fnmatch(n, p) for p in o.only.split(","))]
    states, rows = [], []
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for row in pool.map(lambda n: safely(o.folder, n, o), labels):
            states.append(show(row))
            rows.append(row)
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump({"ort": ort.__version__, "rows": rows}, f, indent=0)
    timed = [r for r in rows if "ratio" in r and r["ort"] > 0.02]
    mean = float(np.exp(np.mean(np.log([r["ratio"] for r in timed])))) if timed else 0.0
    long = [r for r in timed if r["ort"] > 1]
    slow = [r["name"] for r in long if r["ratio"] > 1]
    print(f"{states.count('right')} of {len(states)} right, {states.count('known')} known, {states.count('WRONG')} wrong; "
          f"{len(timed)} ratios, geometric mean {mean:.2f}; {len(slow)} of {len(long)} above 1 ms take longer: "
          f"{' '.join(slow)}")  # fmt: skip
    return 1 if "WRONG" in states else 0


if __name__ == "__main__":
    sys.exit(main())
