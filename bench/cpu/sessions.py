#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Serving: four threads ask models for batches of 1 to 32 rows at random, of a session
of Pestle and of one of ONNX Runtime, in turns of as many requests each.

usage: sessions.py BUILD_DIR MODELS_DIR [--requests 10000] [--turns 10] [--only NAME]
                   [--seconds 220] [--minutes 0] [--peer-share 1]

BUILD_DIR is a build, or the folder that a tarball of `make dist` is unpacked to. Each
model whose file is in MODELS_DIR is asked |--requests| times, or as often as fits into
|--seconds| by what the first requests took; the row says how often. |--minutes| is for all
of it: what is left of it is divided among the models that are left.

Both get as many threads as there are cores, and every batch once before time counts.
Prints a row a model: requests a second of both, their ratio (above 1: Pestle is
faster), executables that were made after the warm-up, what the process grew by in
Pestle's turns and, of that, in the last half of them, and the bytes of arenas and of
blocks. Results of ten batches are compared in the warm-up. Says so when
others use the machine: then only the ratio means something. Exits with 1 where a session
compiled after the warm-up, or grew by more than a MB in the last half of its turns.
"""

import argparse
import ctypes as c
import os
import pathlib
import random
import sys
import tempfile
import threading
import time

import numpy as np
import onnxruntime as ort

CALLERS, MOST_ROWS = 4, 32
COMPARED = (1, 2, 3, 5, 8, 11, 17, 24, 29, 32)
SHAPES = "=1,2,4,8,16,24,32"

# file, dim of the batch, dims that are fixed, inputs: (dtype, extents, made of)
MODELS = {
    "lcnet_orient": ("DynamicDimension.0", {}, {
        "x": ("f4", (0, 3, 224, 224), "normal")}),
    "magika": ("unk__214", {}, {"bytes": ("i4", (0, 2048), 256)}),
    "minilm_l3": ("batch_size", {"sequence_length": 32}, {
        "input_ids": ("i8", (0, 32), 30000),
        "attention_mask": ("i8", (0, 32), "ones")}),
    "ppocr_det": ("p2o.DynamicDimension.0", {
        "p2o.DynamicDimension.1": 96, "p2o.DynamicDimension.2": 96}, {
        "x": ("f4", (0, 3, 96, 96), "normal")}),
    "ppocr_rec": ("p2o.DynamicDimension.0", {"?": 48, "p2o.DynamicDimension.1": 96}, {
        "x": ("f4", (0, 3, 48, 96), "normal")}),
    "silero_vad": ("batch", {"sequence": 512}, {
        "input": ("f4", (0, 512), "normal"),
        "state": ("f4", (2, 0, 128), "normal"), "sr": ("i8", (), 16000)}),
}


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device", c.c_int32 * 2), ("ndim", c.c_int32),
                ("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16),
                ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)),
                ("byte_offset", c.c_uint64)]


class Named(c.Structure):
    _fields_ = [("name", c.c_char_p), ("tensor", Tensor)]


class Dim(c.Structure):
    _fields_ = [("name", c.c_char_p), ("extent", c.c_int64)]


class Import(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("dims", c.POINTER(Dim)),
                ("dim_count", c.c_size_t), ("rest", c.c_void_p * 5)]


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("device", c.c_void_p),
                ("shapes", c.c_char_p), ("imports", c.POINTER(Import)),
                ("compile", c.c_void_p), ("most", c.c_size_t), ("exact", c.c_bool),
                ("waiting", c.c_bool)]


class Stats(c.Structure):
    _fields_ = [("struct_size", c.c_size_t)] + [(n, c.c_uint64) for n in (
        "runs", "padded_runs", "failed_runs", "rows", "padding", "compiles",
        "failed_compiles", "waits", "evictions", "compile_ns", "executables", "shapes",
        "queued", "buffer_bytes", "quick", "quick_compiles", "replaced", "arena_bytes")]


CODES = {"i": 0, "u": 1, "f": 2}


class Session:
    """pestle/session.h, as much of it as is asked for here."""

    def __init__(self, library, context, path, shapes, dims):
        self.library, self.handle = library, c.c_void_p()
        shapes = ";".join([shapes, *(f"{k}={v}" for k, v in dims.items())])
        options = Options(c.sizeof(Options), None, shapes.encode())
        self.check(library.pestle_session_create(context, str(path).encode(),
                                                 c.byref(options), c.byref(self.handle)))
        count = library.pestle_session_output_count(self.handle)
        name = library.pestle_session_output_name
        self.outputs = [name(self.handle, c.c_size_t(i)) for i in range(count)]

    def check(self, status):
        if status:
            raise RuntimeError(self.library.pestle_status_message(status).decode())

    def wait(self):
        self.check(self.library.pestle_session_wait(self.handle, None))

    def stats(self):
        stats = Stats(struct_size=c.sizeof(Stats))
        self.check(self.library.pestle_session_stats(self.handle, c.byref(stats)))
        return stats

    def run(self, inputs, keep=False):
        given = (Named * len(inputs))()
        for at, (name, array) in zip(given, inputs.items()):
            at.name = name.encode()
            at.tensor.data = array.ctypes.data
            at.tensor.device[0] = 1
            at.tensor.ndim = array.ndim
            at.tensor.code = CODES[array.dtype.kind]
            at.tensor.bits, at.tensor.lanes = array.dtype.itemsize * 8, 1
            at.tensor.shape = array.ctypes.shape_as(c.c_int64)
        wanted = (Named * len(self.outputs))(*[Named(n) for n in self.outputs])
        self.check(self.library.pestle_session_run(
            self.handle, given, c.c_size_t(len(given)), wanted,
            c.c_size_t(len(wanted)), None))
        made = []
        for out in wanted:
            t = out.tensor
            if keep:
                shape = [t.shape[i] for i in range(t.ndim)]
                kind = {v: k for k, v in CODES.items()}[t.code] + str(t.bits // 8)
                size = int(np.prod(shape)) * t.bits // 8
                made.append(np.frombuffer(c.string_at(t.data, size), kind)
                            .reshape(shape))
            self.library.pestle_session_tensor_release(self.handle, c.byref(t))
        return made

    def release(self):
        self.library.pestle_session_release(self.handle)


def open_library(build):
    places = [build / "libpestle.so", *sorted(build.glob("lib/libpestle.so.?"))]
    found = [p for p in places if p.exists()]
    assert found, f"no libpestle.so in {build} or {build / 'lib'}"
    library = c.CDLL(str(found[0].resolve()))
    library.pestle_session_output_count.restype = c.c_size_t
    library.pestle_session_output_name.restype = c.c_char_p
    library.pestle_status_message.restype = c.c_char_p
    library.pestle_status_message.argtypes = [c.c_void_p]
    for name in ("create", "run", "wait", "stats"):
        getattr(library, "pestle_session_" + name).restype = c.c_void_p
    library.pestle_context_create.restype = c.c_void_p
    context = c.c_void_p()
    assert not library.pestle_context_create(None, c.byref(context))
    return library, context


def make(inputs, rows, seed):
    rng = np.random.default_rng(seed)
    made = {}
    for name, (dtype, dims, what) in inputs.items():
        dims = [rows if d == 0 else d for d in dims]
        if what == "normal":
            made[name] = rng.standard_normal(dims).astype(dtype)
        elif what == "ones" or not dims:
            made[name] = np.full(dims, 1 if what == "ones" else what, dtype)
        else:
            made[name] = rng.integers(0, what, dims).astype(dtype)
    return made


def resident():
    for line in open("/proc/self/status", encoding="utf-8"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0


def drawn(count, seed):
    """|count| batches at random for each caller."""
    rngs = [random.Random(seed * CALLERS + i) for i in range(CALLERS)]
    return [[rng.randint(1, MOST_ROWS) for _ in range(count // CALLERS)] for rng in rngs]


def turn(run, batches, rows):
    """Caller i asks for batches of rows[i], one after the other; seconds."""
    failures = []

    def call(i):
        try:
            for n in rows[i]:
                run(batches[n])
        except Exception as error:  # told below: a thread's own is lost
            failures.append(error)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(CALLERS)]
    begin = time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]
    return time.perf_counter() - begin


def bench(library, context, path, name, o, seconds):
    began = time.perf_counter()
    batch, dims, inputs = MODELS[name]
    cores = len(os.sched_getaffinity(0))
    options = ort.SessionOptions()
    options.intra_op_num_threads = cores
    peer = ort.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    begin = time.perf_counter()
    session = Session(library, context, path, batch + SHAPES, dims)
    session.wait()
    warm = time.perf_counter() - begin
    batches = {n: make(inputs, n, n) for n in range(1, MOST_ROWS + 1)}
    worst = 0.0
    for n, given in batches.items():
        made = session.run(given, keep=True)  # every route is found
        for a, b in zip(made, peer.run(None, given) if n in COMPARED else []):
            assert a.shape == b.shape, (name, n, a.shape, b.shape)
            if a.dtype.kind == "f" and a.size:
                scale = max(1.0, float(np.abs(b).max()))
                worst = max(worst, float(np.abs(a - b).max()) / scale)
    # All callers at once with the largest: what runs that overlap need is there.
    turn(session.run, batches, [[MOST_ROWS, 25, 9, 3]] * CALLERS)
    # As many requests as the time is for, by what a few of both take.
    tried = drawn(2 * CALLERS, 1)
    each = (turn(session.run, batches, tried) + o.peer_share *
            turn(lambda given: peer.run(None, given), batches, tried)) / (2 * CALLERS)
    left = min(o.seconds, seconds - (time.perf_counter() - began))
    count = min(o.requests, int(left / each))
    before, per = session.stats(), max(count // o.turns, CALLERS) // CALLERS
    peer_per = max(int(per * o.peer_share), 1)
    ours = theirs = grown = late = 0.0
    for t in range(o.turns):
        start = resident()
        rows = drawn(per * CALLERS, t)
        ours += turn(session.run, batches, rows)
        grown += resident() - start
        late += resident() - start if t >= o.turns // 2 else 0
        theirs += turn(lambda given: peer.run(None, given), batches,
                       [r[:peer_per] for r in rows])
    after = session.stats()
    total = per * CALLERS * o.turns
    rate, peer_rate = total / ours, peer_per * CALLERS * o.turns / theirs
    print(f"{name:14} {total:8} {rate:9.1f} {peer_rate:9.1f} {rate / peer_rate:6.2f}  "
          f"{after.compiles - before.compiles:3d} after {before.compiles:3d} in "
          f"{warm:6.1f} s, {after.padded_runs - before.padded_runs:6d} padded  "
          f"{grown:+7.1f} ({late:+.1f}) MB, {after.arena_bytes / 1e6:.1f} MB of arenas, "
          f"{after.buffer_bytes / 1e6:.1f} MB of blocks  error {worst:.1e}", flush=True)
    session.release()
    return rate / peer_rate, after.compiles == before.compiles and late <= 1


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("models", type=pathlib.Path)
    p.add_argument("--requests", type=int, default=10000)
    p.add_argument("--turns", type=int, default=10)
    p.add_argument("--seconds", type=float, default=220)
    p.add_argument("--minutes", type=float, default=0)
    p.add_argument("--peer-share", type=float, default=1, help="0 to 1")
    p.add_argument("--only", help="names, with commas")
    o = p.parse_args()
    end = time.perf_counter() + (o.minutes * 60 or 1e9)
    o.names = [name for name in (o.only.split(",") if o.only else MODELS)
               if o.only or (o.models / f"{name}.onnx").exists()]
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > 0.3 * cores:
        print(f"the machine is busy: load {load:.1f} on {cores} cores")
    print(f"ONNX Runtime {ort.__version__}, {cores} threads, {CALLERS} callers, batches "
          f"of 1 to {MOST_ROWS}, {o.requests} requests a model, or {o.seconds:g} s\n"
          f"{'model':14} requests {'Pestle/s':>9} "
          f"{'ORT/s':>9} ratio  compiles")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        library, context = open_library(o.build)
        rows = [bench(library, context, o.models / f"{name}.onnx", name, o,
                      (end - time.perf_counter()) / (len(o.names) - i))
                for i, name in enumerate(o.names)]
    mean = float(np.exp(np.mean(np.log([ratio for ratio, _ in rows]))))
    print(f"geometric mean of the ratios: {mean:.2f}")
    return 0 if all(fine for _, fine in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
