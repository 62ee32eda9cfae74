#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first answer of a model that no cache knows: a session of Pestle by its quick tier,
one by the full tier, and ONNX Runtime's, each in a process of its own, in turns.

usage: first.py BUILD_DIR MODELS_DIR [--rounds 5] [--only NAME]

Counted is from the creation of the session to the first result, with the libraries
loaded and the backends found (what that takes is the last column, once a process). Both
get as many threads as there are cores; results are compared. Prints the least of the
rounds, and the CPU seconds of the same time.
"""

import argparse
import ctypes as c
import json
import math
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

from sessions import Dim, Import, MODELS, Options, Session, make, open_library

ROWS = 1


class QuickOptions(c.Structure):
    _fields_ = Options._fields_ + [("quick", c.c_bool)]


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def open_pestle(library, context, path, dims, quick):
    session = Session.__new__(Session)
    session.library, session.handle = library, c.c_void_p()
    rows = (Dim * len(dims))(*[Dim(k.encode(), v) for k, v in dims.items()])
    imports = Import(c.sizeof(Import), rows, len(dims))
    options = QuickOptions(c.sizeof(QuickOptions), None, None, c.pointer(imports))
    options.quick = quick
    session.check(library.pestle_session_create(
        context, str(path).encode(), c.byref(options), c.byref(session.handle)))
    count = library.pestle_session_output_count(session.handle)
    name = library.pestle_session_output_name
    session.outputs = [name(session.handle, c.c_size_t(i)) for i in range(count)]
    return session


def child(build, path, side):
    """One first answer; prints a JSON object."""
    batch, dims, inputs = MODELS[pathlib.Path(path).stem]
    given = make(inputs, ROWS, 1)
    begin = time.perf_counter()
    if side == "ort":
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads = len(os.sched_getaffinity(0))
    else:
        library, context = open_library(build)
        device = c.c_void_p()
        library.pestle_context_device.restype = c.c_void_p
        assert not library.pestle_context_device(context, None, c.byref(device))
    loaded, used = time.perf_counter(), cpu()
    if side == "ort":
        peer = ort.InferenceSession(path, options, ["CPUExecutionProvider"])
        made = peer.run(None, given)
    else:
        session = open_pestle(library, context, path, {**dims, batch: ROWS},
                              side == "quick")
        made = session.run(given, keep=True)
    end = time.perf_counter()
    sums = [float(np.abs(np.asarray(m, "f8")).mean()) for m in made if m.size]
    print(json.dumps({"ms": (end - loaded) * 1e3, "cpu": (cpu() - used) * 1e3,
                      "load": (loaded - begin) * 1e3, "sums": sums}), flush=True)
    os._exit(0)  # what is compiled in the background is not waited for


def measure(build, path, side):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, __file__, str(build), str(path), "--child", side],
            env={**os.environ, "XDG_CACHE_HOME": folder}, check=True,
            stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--child", default="")
    o = parser.parse_args()
    if o.child:
        child(o.build, str(o.models), o.child)
    ratios = []
    print("model            ort ms (CPU)   quick ms (CPU)  ratio   full ms (CPU)  ratio"
          "  load")
    for name in MODELS:
        if o.only and o.only != name:
            continue
        sides = {side: [] for side in ("ort", "quick", "full")}
        for _ in range(o.rounds):
            for side, of in sides.items():
                of.append(measure(o.build, o.models / f"{name}.onnx", side))
        best = {s: min(of, key=lambda x: x["ms"]) for s, of in sides.items()}
        used = {s: min(x["cpu"] for x in of) for s, of in sides.items()}
        for side in ("quick", "full"):
            for a, b in zip(best["ort"]["sums"], best[side]["sums"]):
                assert math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-4), (name, side)
        ort, quick, full = (best[s]["ms"] for s in ("ort", "quick", "full"))
        ratios.append(quick / ort)
        print(f"{name:14s} {ort:7.0f} ({used['ort']:4.0f}) {quick:9.0f} "
              f"({used['quick']:4.0f}) {quick / ort:8.2f} {full:8.0f} "
              f"({used['full']:4.0f}) {full / ort:7.2f} {best['quick']['load']:6.0f}",
              flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean of quick: {mean:.2f}")


if __name__ == "__main__":
    main()
