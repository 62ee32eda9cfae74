# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of contrib_cases.py by `pestle run` and by ONNX Runtime's CPU kernels,
and says where they differ: contrib.py [--count N] [--seed N] [--only OP] [--device D]."""

import argparse
import collections
import concurrent.futures
import os
import subprocess
import sys
import tempfile

import numpy as np


def run_peer(model, inputs):
    """What ONNX Runtime gives without optimising, or its refusal."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, inputs), None
    except Exception as e:  # of many types
        return None, str(e)


def run_pestle(model, inputs, device, more=()):
    build = os.environ["PESTLE_BUILD_DIR"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.onnx")
        with open(path, "wb") as f:
            f.write(model.SerializeToString())
        command = [f"{build}/pestle", "run", path, "--device", device, "--threads", "1", "--no-cache"]
        command += ["--outputs", folder, *more]
        for name, array in inputs.items():
            np.save(os.path.join(folder, name + ".npy"), array)
            command += ["--input", f"{name}={folder}/{name}.npy"]
        p = subprocess.run(command, capture_output=True, timeout=300)
        if p.returncode:
            said = p.stderr.decode(errors="backslashreplace").strip()
            return None, f"exit {p.returncode}: {said}"
        count = len(model.graph.output)
        return [np.load(os.path.join(folder, f"output_{i}.npy")) for i in range(count)], None


def differ(got, want, unseen, case):
    """None, or a sentence."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)}, right is {want.dtype}{list(want.shape)}"
    seen = ~unseen(want.shape) if unseen else np.ones(want.shape, bool)
    g, w = got[seen].astype(np.float64), want[seen].astype(np.float64)
    if not w.size:
        return None
    if want.dtype.kind == "f":
        bad = ~np.isclose(g, w, rtol=case.rtol, atol=case.atol, equal_nan=True)
    else:
        # Where a sum in another order lies at a half: a step, of few.
        off = np.abs(g - w)
        few = (off > 0).sum() <= max(1, case.near * off.size)
        bad = off > (case.steps if few else 0)
    if not bad.any():
        return None
    at = int(np.argmax(bad))
    return f"{bad.sum()} of {bad.size} differ, first {g[at]!r}, right is {w[at]!r}"


def judge(name, seed, device):
    """('right' | 'wrong' | 'refused' | 'no peer', sentence)"""
    import contrib_cases

    case = contrib_cases.make(name, seed)
    model, inputs = case.model()
    want, why = case.expect, None
    if want is None:
        want, why = run_peer(*(case.twin.model() if case.twin else (model, inputs)))
    if want is not None and case.turn:
        want = [case.turn(w) for w in want]
    if want is None:
        return "no peer", why
    got, why = run_pestle(model, inputs, device)
    if got is None:
        return "refused", why
    for i, (g, w) in enumerate(zip(got, want)):
        why = differ(g, w, case.unseen.get(i), case)
        if why:
            return "wrong", f"output {i}: {why}; attributes {case.attrs}"
    return "right", ""


def run(count, first, device, only="", show=10):
    """How many cases of each kind; the peer is asked for one case of each op after the
    other, until |count| of them were judged."""
    import contrib_cases

    names = [n for n in contrib_cases.NAMES if not only or n in only.split(",")]
    todo = [(names[k % len(names)], first + k // len(names), device) for k in range(count)]
    kinds, shown = collections.Counter(), 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for (name, seed, _), (kind, why) in zip(todo, pool.map(lambda t: judge(*t), todo)):
            kinds[kind] += 1
            kinds[name, kind] += 1
            if kind != "right" and shown < show:
                shown += kind != "no peer"
                print(f"{kind}: {name} seed {seed} on {device}: {why[:400]}", flush=True)
    for name in names:
        if not kinds[name, "right"]:
            print(f"{name}: none is right of those that were tried")
    told = {k: v for k, v in kinds.items() if isinstance(k, str)}
    print(f"{device}: {told}", flush=True)
    return kinds


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--count", type=int, default=105)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--device", default="llvm")
    a.add_argument("--only", default="")
    a.add_argument("--show", type=int, default=20)
    o = a.parse_args()
    kinds = run(o.count, o.seed, o.device, o.only, o.show)
    return 1 if kinds["wrong"] or kinds["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())
