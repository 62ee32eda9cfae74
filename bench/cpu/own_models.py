#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pestle beside ONNX Runtime and OpenVINO (f32) on one's own ONNX files.

    own_models.py --threads 2 --dim batch=1 model.onnx ...

Inputs are random; outputs are compared with ONNX Runtime's, by the largest
difference as a share of the largest element. Three turns of each, the least time
counts; a row is Pestle's time / the better peer's. The exit status is 1 where
Pestle failed or an output is off by more than 1e-3.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime
import openvino

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TYPES = {"float": "f4", "double": "f8", "float16": "f2", "bool": "?"}
TURNS, LONGEST = 3, 60


def random_input(value, dims, rng):
    kind = value.type[len("tensor(") : -1]
    shape = [d if isinstance(d, int) else dims.get(d, 1) for d in value.shape]
    if kind in TYPES:
        return rng.standard_normal(shape).astype(TYPES[kind])
    return rng.integers(0, 64, shape).astype(kind)


def least_ms(run, count):
    times = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def make_openvino(path, feeds, threads):
    core = openvino.Core()
    how = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    try:
        model = core.read_model(path)
        model.reshape({name: list(x.shape) for name, x in feeds.items()})
        request = core.compile_model(model, "CPU", how).create_infer_request()
        request.infer(feeds)
    except RuntimeError as error:
        print(f"{path.name}: OpenVINO: {str(error)[:100]}", file=sys.stderr)
        return None
    return lambda: request.infer(feeds)


def pestle(options, path, folder, *more):
    command = [options.pestle, "run", path, "--inputs", folder, *more]
    command += ["--threads", str(options.threads), *options.run_args.split()]
    for dim in options.dim:
        command += ["--dim", dim]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout.strip()


def write_inputs(folder, feeds):
    for i, x in enumerate(feeds.values()):
        np.save(folder / f"input_{i}.npy", x)


def worst(folder, wanted):
    error = 0
    for i, want in enumerate(wanted):
        got = np.load(folder / f"output_{i}.npy").astype("f8")
        most = np.abs(want.astype("f8")).max(initial=0) or 1
        error = max(error, np.abs(got - want).max(initial=0) / most)
    return error


def run(options, path, folder):
    dims = {k: int(v) for k, _, v in (d.partition("=") for d in options.dim)}
    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = options.threads
    session_options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        path, session_options, providers=["CPUExecutionProvider"]
    )
    rng = np.random.default_rng(0)
    feeds = {i.name: random_input(i, dims, rng) for i in session.get_inputs()}
    write_inputs(folder, feeds)
    wanted = session.run(None, feeds)
    pestle(options, path, folder, "--outputs", folder / "out")
    error = worst(folder / "out", wanted)
    runs = {"ort": lambda: session.run(None, feeds)}
    other = make_openvino(path, feeds, options.threads)
    if other:
        runs["openvino"] = other
    count = int(min(LONGEST, max(3, 600 / least_ms(runs["ort"], 2))))
    best = {}
    for _ in range(TURNS):
        for who, one in runs.items():
            ms = least_ms(one, count)
            best[who] = min(best.get(who, ms), ms)
        text = pestle(options, path, folder, "--bench", str(count))
        ms = min(json.loads(text.splitlines()[-1])["run_ms"])
        best["pestle"] = min(best.get("pestle", ms), ms)
    return best, error


def main():
    parse = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parse.add_argument("models", nargs="+", type=pathlib.Path)
    parse.add_argument("--threads", type=int, default=1)
    parse.add_argument("--dim", action="append", default=[], metavar="NAME=N")
    parse.add_argument("--run-args", default="", help="more for pestle run")
    usual = ROOT / "build" / "release" / "pestle"
    parse.add_argument("--pestle", default=str(usual))
    options = parse.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    ratios, failed = [], 0
    for path in options.models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                best, error = run(options, path, pathlib.Path(folder))
            except RuntimeError as problem:
                print(f"{path.stem:28} {str(problem)[:300]}", flush=True)
                failed += 1
                continue
        ours = best.pop("pestle")
        who = min(best, key=best.get)
        ratios.append(ours / best[who])
        failed += error > 1e-3
        times = ", ".join(f"{k} {v:.3f}" for k, v in best.items())
        print(
            f"{path.stem:28} {ratios[-1]:.2f}  pestle {ours:.3f} ms, {times}; "
            f"off by {error:.1e}",
            flush=True,
        )
    if ratios:
        mean = np.exp(np.mean(np.log(ratios)))
        print(f"geometric mean of {len(ratios)}: {mean:.2f}, most {max(ratios):.2f}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
