#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""References on a debug build of Python, which also asserts what the interpreter has
invariants for: each call, right or wrong, leaves as many as there were. Runs on the
debug build that CMake found (Debian's python3-dbg)."""

import gc
import os
import pathlib
import sys

from case import run

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
COUNTED = BUILD / "python_counted"
if not hasattr(sys, "gettotalrefcount"):
    found = [line.split("=", 1)[1] for line in (BUILD / "CMakeCache.txt").read_text(
        encoding="utf-8").splitlines() if line.startswith("PESTLE_DEBUG_PYTHON:")]
    if not found or not os.access(found[0], os.X_OK) or not COUNTED.exists():
        print("skipped: no debug build of Python when this was configured (python3-dbg)")
        sys.exit(77)
    os.execv(found[0], [found[0], os.path.abspath(__file__)])
sys.path[:0] = [str(COUNTED)]

import pestle as pt

X, Y = pt.asarray([[1.0, 2.0], [3.0, 5.0]]), pt.asarray([[2.0, 0.5], [1.0, 4.0]])
I = pt.asarray([1, 0])
F = pt.jit(lambda t: {"y": t["x"] * t["k"] + t["l"][0], "n": None})
G = pt.jit(lambda x, *, mode: x.sum() if mode == "sum" else x.max(), static_argnames="mode")
CAPTURED = pt.asarray(3.0)
H = pt.jit(lambda x: x * CAPTURED)
KEY = pt.random.key(7)


class Producer:
    """Theirs, by capsules."""

    def __init__(self, **given):
        self.given = given

    def __dlpack__(self, **keywords):
        if self.given.get("raises"):
            raise self.given["raises"]
        return X.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.given.get("device", (1, 0))


class Old(Producer):
    """One that knows no keywords."""

    def __dlpack__(self):
        return X.__dlpack__()


class Buffered:
    """Shows itself by __array_interface__'s elder: the buffer protocol, and floats."""

    def __float__(self):
        return 2.5


def twice(x):
    x[0, 0] = 9.0
    x[pt.asarray([True, False])] = 1.0
    return x.at[1].add(2.0)


def traced_error(x):
    return pt.jit(lambda v: bool(v))(x)


RIGHT = {
    "operators": lambda: (X + Y, X - 1, 2 * X, X / Y, X @ Y, -X, abs(X), X ** 2, X < Y,
                          X // 2, X % 2, I & 1, I << 2, ~I),
    "evaluated": lambda: (pt.eval(X + Y), (X * Y).tolist(), float(X.sum()), int(I[0]),
                          bool(X[0, 0] > 0), complex(X[0, 0]), [1, 2][I[1]]),
    "text": lambda: (repr(X), str(Y), repr(pt.float32), repr(pt.device())),
    "making": lambda: (pt.asarray([[1, 2], [3, 4]]), pt.asarray(1.5), pt.zeros((2, 3)),
                       pt.full(3, 7), pt.arange(5), pt.linspace(0, 1, 5), pt.eye(3),
                       pt.asarray(memoryview(b"abcd")), pt.asarray(bytearray(4)),
                       pt.asarray([True, False]), pt.asarray([1 + 2j]), pt.ones_like(X)),
    "fields": lambda: (X.shape, X.size, X.dtype, X.device, X.ndim, X.T, X.mT, X.state,
                       X.nbytes, X.itemsize, X.weak_type, X.is_view),
    "index": lambda: (X[0], X[:, 1], X[..., None], X[::-1, ::2], X[I], X[X > 2], X[-1, -1],
                      list(X)),
    "update": lambda: twice(X + 0),
    "reduce": lambda: [getattr(pt, n)(X, axis=0) for n in
                       "sum prod max min mean std var argmax argmin all any".split()],
    "shape": lambda: (pt.reshape(X, (4,)), pt.concat([X, Y]), pt.stack([X, Y]), pt.flip(X),
                      pt.roll(X, 1), pt.squeeze(X[None], axis=0), pt.tile(X, (2, 1)),
                      pt.broadcast_to(X, (2, 2, 2)), pt.unstack(X), pt.moveaxis(X, 0, 1)),
    "search": lambda: (pt.sort(X), pt.argsort(X), pt.nonzero(X), pt.unique_all(I),
                       pt.where(X > 2, X, Y), pt.isin(I, I) if hasattr(pt, "isin") else 0),
    "linalg": lambda: (pt.linalg.inv(X), pt.linalg.svd(X), pt.linalg.eigh(X @ X.T),
                       pt.linalg.solve(X, Y), pt.linalg.det(X), pt.linalg.eig(X),
                       pt.linalg.qr(X * 1j)),
    "fft": lambda: (pt.fft.fft(X * 1j), pt.fft.rfft(X)),
    "random": lambda: (pt.random.normal(KEY, (3,)), pt.random.split(KEY),
                       pt.random.randint(KEY, (3,), 0, 9)),
    "jit": lambda: (F({"x": X, "k": 2.0, "l": [Y, 1]}), G(X, mode="sum"), G(X, mode="max"),
                    H(X)),
    "new jit": lambda: pt.jit(lambda a, b: (a + b, [a * b]))(X, Y),
    "lower": lambda: (pt.lower(lambda a: pt.sin(a), X).text("graph"), F.explain_misses()),
    "control": lambda: (pt.fori_loop(0, 3, lambda i, v: v * 2, X),
                        pt.while_loop(lambda v: v < 9, lambda v: v + 1, pt.asarray(1)),
                        pt.cond(True, lambda v: v, lambda v: -v, X),
                        pt.scan(lambda c, v: (c + v, c), pt.asarray(0.0), X[0])),
    "trees": lambda: pt.tree.unflatten(*reversed(pt.tree.flatten({"a": [X, (Y, None)]}))),
    "export": lambda: pt.export(lambda a: a + 1, X),
    "dlpack": lambda: (pt.from_dlpack(Producer()), pt.from_dlpack(Old()), pt.from_dlpack(X),
                       pt.from_dlpack(Producer(), copy=True), X.__dlpack__(),
                       X.__dlpack__(max_version=(1, 3), copy=True),
                       pt.from_dlpack(X.__dlpack__(max_version=(1, 0)))),
    "buffers": lambda: (memoryview(X), bytes(memoryview(I)), pt.asarray(Buffered())),
    "dtypes": lambda: (pt.astype(X, pt.int32), pt.finfo(pt.float32), pt.iinfo(pt.int8),
                       pt.result_type(X, I), pt.can_cast(pt.int8, pt.int16),
                       pt.__array_namespace_info__().dtypes()),
    "devices": lambda: (pt.backends.list(), pt.backends.devices(), pt.device("cpu"),
                        pt.backends.search_paths(), pt.stats() if hasattr(pt, "stats")
                        else 0, X.to_device(pt.device())),
}
WRONG = {
    "shapes": lambda: X + pt.ones(3),
    "dtypes": lambda: X & Y,
    "axis": lambda: pt.sum(X, axis=5),
    "index": lambda: X[7],
    "item": lambda: float(X),
    "traced bool": lambda: traced_error(X),
    "traced raise": lambda: pt.jit(lambda v: {}[v])(X),
    "argument": lambda: F("text"),
    "result": lambda: pt.jit(lambda v: object())(X),
    "device": lambda: pt.device("nothing"),
    "asarray": lambda: pt.asarray(object()),
    "ragged": lambda: pt.asarray([[1, 2], [3]]),
    "no producer": lambda: pt.from_dlpack(object()),
    "producer raises": lambda: pt.from_dlpack(Producer(raises=KeyError("theirs"))),
    "producer's pair": lambda: pt.from_dlpack(Producer(device=3)),
    "stream": lambda: X.__dlpack__(stream=1),
    "keyword": lambda: X.__dlpack__(nothing=1),
    "loop": lambda: pt.while_loop(lambda v: v, lambda v: (v, v), X),
    "linalg": lambda: pt.linalg.inv(pt.ones(3)),
    "hash": lambda: hash(X),
    "delete": lambda: X.__delitem__(0),
    "StableHLO": lambda: pt.from_stablehlo("func.func @main( nonsense"),
}


CALLS = 60


def one(function):
    try:
        function()
    except Exception:  # pylint: disable=broad-except
        return True
    return False


def grown(function, times):
    """References and blocks that |times| calls leave."""
    gc.collect()
    before = sys.gettotalrefcount(), sys.getallocatedblocks()
    for _ in range(times):
        one(function)
    gc.collect()
    return sys.gettotalrefcount() - before[0], sys.getallocatedblocks() - before[1]


def check(table, wrong):
    bad = []
    for name, function in table.items():
        if one(function) != wrong:
            bad.append(f"{name}: {'nothing' if wrong else 'something'} was raised")
            continue
        grown(function, 6)  # what is kept from the first calls
        left = grown(function, CALLS)
        # What each call loses is as many; a table that grows is not there again.
        if max(map(abs, left)) >= CALLS:
            left = grown(function, CALLS)
        if max(map(abs, left)) >= CALLS:
            bad.append(f"{name}: {CALLS} calls leave {left[0]} references, "
                       f"{left[1]} blocks")
    assert not bad, "\n".join(bad)


def test_planted():
    """One that loses a reference at each call is found."""
    import ctypes
    lose = ctypes.pythonapi.Py_IncRef
    try:
        check({"planted": lambda: lose(ctypes.py_object(X))}, False)
    except AssertionError as error:
        assert "planted: " in str(error)
        return
    raise AssertionError("a reference that is lost is not found")


def test_right():
    check(RIGHT, False)


def test_wrong():
    check(WRONG, True)


if __name__ == "__main__":
    run(dict(globals()))
