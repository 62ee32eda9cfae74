#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle.Session: shapes, padding, threads, plans, strings, lifetimes, errors."""

import gc
import pathlib
import subprocess
import tempfile
import threading

from case import HOME, raises, run
from strings_test import field, ints, joined, model, strings

import pestle as pt

FOLDER = tempfile.TemporaryDirectory()

# y = x + x; s: the sum of each row.
ROWS = """func.func public @main(%x: tensor<?x3xf32> {pestle.name = "x"}) ->
  (tensor<?x3xf32> {pestle.name = "y"}, tensor<?xf32> {pestle.name = "s"}) {
  %t = stablehlo.add %x, %x : tensor<?x3xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] :
    (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>
  return %t, %s : tensor<?x3xf32>, tensor<?xf32>
}
"""


def file(name, data):
    path = pathlib.Path(FOLDER.name) / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def rows(count, seed=0):
    return [[float(seed + i), float(i + 1), -2.0] for i in range(count)]


def check(session, count, seed=0):
    given = rows(count, seed)
    made = session.run({"x": given})
    assert list(made) == ["y", "s"]
    assert made["y"].tolist() == [[2 * v for v in row] for row in given]
    assert made["s"].tolist() == [sum(row) for row in given]
    assert made["y"].dtype == pt.float32 and made["y"].shape == (count, 3)


def test_any_shape():
    session = pt.Session(file("rows.mlir", ROWS))
    assert session.inputs == [("x", pt.float32, (None, 3))]
    assert session.outputs == ["y", "s"]
    for count in (4, 1, 7, 4):
        check(session, count, count)
    session.wait()
    stats = session.stats()
    assert stats["runs"] == 4 and stats["failed_runs"] == 0
    assert stats["executables"] == 3 and stats["shapes"] == 3
    # Chosen outputs, in their order.
    assert list(session.run({"x": rows(2)}, ["s"])) == ["s"]
    assert list(session.run({"x": rows(2)}, ["s", "y"])) == ["s", "y"]
    assert session.run({"x": rows(2)}, []) == {}
    # Called as a function.
    y, s = session(rows(2))
    assert s.tolist() == session(x=rows(2))[1].tolist() == [sum(r) for r in rows(2)]


def test_declared_shapes_serve_others():
    session = pt.Session(file("rows.mlir", ROWS), "x.0=1,4..16")
    session.wait()
    assert session.stats()["executables"] == 4
    for count in range(1, 17):
        check(session, count, count)
    stats = session.stats()
    assert stats["compiles"] == 4 and stats["padded_runs"] == 12
    states = {row["shape"]: row for row in session.shapes()}
    assert states["x [3, 3]"]["state"] == "padded"
    assert states["x [4, 3]"]["state"] == "ready" and states["x [4, 3]"]["declared"]
    exact = pt.Session(file("rows.mlir", ROWS), exact=True, waiting=True,
                       most_executables=2)
    for count in (4, 3, 2):
        check(exact, count)
    assert exact.stats()["padded_runs"] == 0 and exact.stats()["evictions"] == 1
    quick = pt.Session(file("rows.mlir", ROWS), quick=True)
    check(quick, 5)
    quick.wait(60)
    check(quick, 5)
    assert quick.stats()["quick"] == 0


def test_inputs_lie_anywhere():
    session = pt.Session(file("rows.mlir", ROWS))
    x = pt.asarray(rows(4))
    wanted = [[2 * v for v in row] for row in rows(4)]
    assert session(x)[0].tolist() == wanted
    assert session(x + 0)[0].tolist() == wanted, "recorded, not computed yet"
    assert session(x[::-1])[0].tolist() == wanted[::-1], "with strides"
    assert session(pt.asarray(rows(8))[::2])[0].shape == (4, 3)
    raises(ValueError, lambda: pt.jit(lambda x: session(x)[0])(x), "traced")
    try:
        import numpy
    except ImportError:
        return
    given = numpy.asarray(rows(4), numpy.float32)
    given.flags.writeable = False
    assert session(given)[0].tolist() == wanted
    assert session(numpy.asfortranarray(given))[0].tolist() == wanted
    raises(ValueError, lambda: session(given.astype("f8")), "'x' is f32[", "gives f64[4, 3]")


def test_results_outlive_the_session():
    session = pt.Session(file("rows.mlir", ROWS))
    first = session(rows(3, 5))[0]
    view = memoryview(first)
    second = session(rows(3, 9))[0]
    del session
    gc.collect()
    assert first.tolist() == [[2 * v for v in row] for row in rows(3, 5)]
    assert second.tolist() == [[2 * v for v in row] for row in rows(3, 9)]
    del first, second
    gc.collect()
    assert view.tolist()[0][0] == 10.0
    assert (pt.asarray(view) + 1).tolist()[0][0] == 11.0


def test_memory_is_used_again():
    session = pt.Session(file("rows.mlir", ROWS))
    check(session, 8)
    session.wait()
    for _ in range(3):
        check(session, 8)
    kept = session.stats()["buffer_bytes"]
    for i in range(50):
        check(session, 8, i)
    assert session.stats()["buffer_bytes"] == kept > 0


def test_threads():
    session = pt.Session(file("rows.mlir", ROWS), "x.0=1,2,4..32")
    failures = []

    def call(seed):
        try:
            for i in range(40):
                seed = (seed * 1664525 + 1013904223) % 2**32
                check(session, 1 + (seed >> 16) % 32, i)
        except Exception as error:  # told below
            failures.append(error)
    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures[0]
    assert session.stats()["runs"] == 160


def twice():
    """y = x + x of f32[batch, 3] as an ONNX model."""
    shape = field(1, field(2, "batch")) + field(1, field(1, 3))
    typed = field(2, field(1, field(1, 1) + field(2, shape)))
    node = field(1, "x") + field(1, "x") + field(2, "y") + field(4, "Add")
    graph = field(1, node) + field(2, "g") + field(11, field(1, "x") + typed) + \
        field(12, field(1, "y") + typed)
    return field(1, 8) + field(8, field(1, "") + field(2, 17)) + field(7, graph)


def test_plans():
    source, plan = file("twice.onnx", twice()), pathlib.Path(FOLDER.name) / "two.plan"
    subprocess.run([HOME.parent / "pestle", "compile", source, "--dim", "batch=2,5", "-o",
                    plan], check=True, stderr=subprocess.DEVNULL)
    session = pt.Session(plan)
    for count in (5, 2):
        assert session(rows(count)).tolist() == [[2 * v for v in r] for r in rows(count)]
    assert session.stats()["compiles"] == 0
    fixed = pt.Session(source, dims={"batch": 3})
    assert fixed.inputs == [("x", pt.float32, (3, 3))]
    assert fixed(rows(3)).shape == (3, 3)
    raises(pt.Error, lambda: pt.Session(source, dims={"bacth": 3}), "did you mean 'batch'")
    raises(ValueError, lambda: pt.Session(plan, "x.0=1"), "compiled already")


def test_strings():
    path = file("label.onnx", model("LabelEncoder", strings("keys_strings", "red", "grün") +
                                    ints("values_int64s", 3, 5), (8, 7)))
    session = pt.Session(path)
    assert session([["red", "grün"], ["none", "red"]]).tolist() == [[3, 5], [-1, 3]]
    session = pt.Session(file("same.onnx", model("Identity", b"", (8, 8), domain="")))
    words = [["a", "b"], ["b", "色"]]
    assert session(words) == words
    assert session.run({"x": words}, ["y"])["y"] == words


def test_strings_that_a_run_makes():
    session = pt.Session(file("joined.onnx", joined()))
    for words in (["a", "bc"], ["色", ""], ["a", "a"]):
        y, z = session(words)
        assert y == [w + w for w in words]
        assert z.tolist() == [len(w) == 1 for w in words]
    assert session.run({"x": ["a", "q"]}, ["y"])["y"] == ["aa", "qq"]


def test_what_is_wrong():
    path = file("rows.mlir", ROWS)
    session = pt.Session(path)
    raises(ValueError, lambda: session.run({}), "lacks inputs: 'x'")
    raises(ValueError, lambda: session.run({"x": rows(1), "z": 1}), "no input 'z'", "'x'")
    raises(ValueError, lambda: session.run({"x": rows(1)}, ["z"]), "no output 'z'", "'y'")
    raises(TypeError, lambda: session(rows(1), 2), "2 inputs are given")
    raises(TypeError, lambda: session(rows(1), x=1), "'x'")
    raises(ValueError, lambda: session([[1.0, 2.0]]), "input 'x'", "[1, 2]")
    raises(ValueError, lambda: session.run({"x": rows(1)}, ["y", "y"]), "twice")
    raises(pt.Error, lambda: pt.Session(path, "batch=1"), "x.0")
    raises(ValueError, lambda: pt.Session(path, "x.0=0"), "x.0")
    raises(ValueError, lambda: pt.Session(path, quick=True, waiting=True), "quick")
    raises(ValueError, lambda: pt.Session(path, numerics="exact"), "'strict'")
    raises(ValueError, lambda: pt.Session(path, compat="tf"), "'ort'")
    raises(ValueError, lambda: pt.Session(path, most_executables=-1), "-1")
    raises(TypeError, lambda: pt.Session(path, dims=[1]), "dict")
    raises(pt.Error, lambda: pt.Session("/nonexistent.onnx"), "nonexistent")
    assert session.stats()["failed_runs"] == 2


if __name__ == "__main__":
    run(dict(globals()))
