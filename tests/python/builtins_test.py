#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An array beside what Python itself asks of objects: format(), in, reversed(),
round(), divmod(), copy, pickle, weak references; arrays of objects whose memory is
described in odd ways; shortest texts."""

import array
import copy
import ctypes
import gc
import math
import pickle
import struct
import threading
import weakref

from case import raises, run

import pestle as pt


@pt.jit
def twice(x):
    """Both of it."""
    return x + x


def test_format():
    x = pt.asarray(2.5)
    assert f"{x:.3f}|{pt.asarray(3):4d}|{x}|{x!s:>5}" == "2.500|   3|2.5|  2.5"
    raises(TypeError, lambda: f"{pt.ones((2,)):.2f}", "1 axes", ".2f")


def test_contains_and_reversed():
    x = pt.asarray([[1.0, 2.0], [3.0, float("nan")]])
    assert 2.0 in x and 5 not in x and float("nan") not in x and "a" not in x
    assert [y.tolist() for y in reversed(pt.asarray([1, 2, 3]))] == [3, 2, 1]
    raises(TypeError, lambda: reversed(pt.asarray(1)), "rank 0")


def test_numbers():
    assert round(pt.asarray(2.5)) == 2 and isinstance(round(pt.asarray(2.5)), int)
    assert abs(round(pt.asarray(2.567), 1).item() - 2.6) < 1e-6
    assert round(pt.asarray([1234, 5678]), -2).tolist() == [1200, 5700]
    x = pt.asarray(-2.5)
    assert (math.floor(x), math.ceil(x), math.trunc(x)) == (-3, -2, -2)
    q, r = divmod(pt.asarray([7, -7]), 2)
    assert (q.tolist(), r.tolist()) == ([3, -4], [1, 1])
    q, r = divmod(7, pt.asarray([2, 3]))
    assert (q.tolist(), r.tolist()) == ([3, 2], [1, 1])


def test_weak_references():
    x, seen = pt.ones((2,)), []
    ref = weakref.ref(x, seen.append)
    names = weakref.WeakKeyDictionary({twice: 1})
    assert ref() is x and names[twice] == 1
    del x
    gc.collect()
    assert ref() is None and len(seen) == 1
    f = pt.jit(lambda v: v)
    ref = weakref.ref(f)
    del f
    gc.collect()
    assert ref() is None


def test_copies():
    x = pt.asarray([1, 2, 3])
    y, z = copy.copy(x), copy.deepcopy([x, x])
    y[0] = 9
    z[0][1] = 8
    assert x.tolist() == [1, 2, 3] and y.tolist() == [9, 2, 3]
    assert z[0] is z[1] and z[0].tolist() == [1, 8, 3]
    there = pt.ones((2,), device="ref")
    assert copy.deepcopy(there).device == there.device
    memory = array.array("f", [1, 2])
    shared = pt.asarray(memory, copy=False)
    own = copy.deepcopy(shared)
    memory[0] = 7
    assert own.tolist() == [1, 2]
    # A trace may copy what it is given.
    assert pt.jit(lambda v: copy.deepcopy(v) + copy.copy(v))(x).tolist() == [2, 4, 6]
    gone = pt.ones((2,))
    gone.delete()
    raises(ValueError, lambda: copy.copy(gone) + 1, "deleted")


def test_pickles_by_name():
    assert pickle.loads(pickle.dumps(pt.cpu)) == pt.cpu
    assert pickle.loads(pickle.dumps(twice)) is twice
    assert twice.__doc__ == "Both of it." and twice.__module__ == __name__
    assert copy.deepcopy({"f": twice, "d": pt.cpu}) == {"f": twice, "d": pt.cpu}


def test_memory_of_many_kinds():
    # No strides are given for these.
    numbers = (ctypes.c_int * 3)(1, 2, 3)
    assert pt.asarray(numbers).tolist() == [1, 2, 3]
    grid = ((ctypes.c_double * 2) * 3)()
    grid[2][1] = 5
    assert pt.asarray(grid, copy=False).tolist() == [[0, 0], [0, 0], [0, 5]]
    assert pt.asarray((ctypes.c_float * 0)()).shape == (0,)
    assert pt.asarray(ctypes.c_int16(7)).tolist() == 7
    view = memoryview(bytes(range(12))).cast("B", (3, 4))
    assert pt.asarray(view)[2, 1].item() == 9
    assert pt.asarray(memoryview(bytes(range(6)))[::-2]).tolist() == [5, 3, 1]
    raises(ValueError, lambda: pt.asarray([[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]), "16 deep")
    itself = []
    itself.append(itself)
    raises(ValueError, lambda: pt.asarray(itself), "16 deep")


def test_lists_that_change():
    """While an array among them is computed another thread may."""
    stop = threading.Event()
    row = [pt.asarray(1.0)] * 4

    def change():
        while not stop.is_set():
            row.append(pt.asarray(2.0))
            if len(row) > 64:
                del row[4:]

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for i in range(200):
            row[0] = pt.asarray(float(i)) + 1
            try:
                pt.asarray(row, dtype=pt.float32)
            except ValueError as error:
                assert "lengths" in str(error), error
    finally:
        stop.set()
        thread.join()


def test_shortest_texts():
    for value, text in ((0.1, "0.1"), (2.6, "2.6"), (100.0, "100."), (1e30, "1e+30"),
                        (1 / 3, "0.33333334"), (-0.0, "-0."), (16777216, "16777216.")):
        assert str(pt.asarray(value, dtype=pt.float32)) == text
    assert str(pt.asarray(0.1, dtype=pt.float16)) == "0.1"
    assert str(pt.asarray(3.14, dtype=pt.bfloat16)) == "3.14"
    assert str(pt.asarray(0.1 + 0.2j)) == "0.1+0.2j"
    for k in range(200):
        value = struct.unpack("f", struct.pack("f", math.sin(k) * 10.0**(k % 9 - 4)))[0]
        told = str(pt.asarray(value, dtype=pt.float32))
        if len(told.strip("-").replace(".", "").strip("0")) < 8:
            assert struct.unpack("f", struct.pack("f", float(told)))[0] == value, told


run(globals())
