#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ops of one's own under transforms: what has no body is batched one by one, callbacks
too; an edited body, text or derivative misses the cache once, and the reason names the
op."""

import os
import re
import subprocess
import sys
import tempfile

import numpy
from case import HOME, raises, run

import pestle as pt

X = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)


def test_eval_only():
    op = pt.custom_op("test.eval_only", types=lambda *xs: (xs[0], pt.Spec(())), front=(),
                      prefer="eval")(None)
    op._operands = ["a", "b"]
    calls = []

    @op.eval("*", id="1")
    def _(a, b, out, total):
        calls.append(a.shape)
        out[...] = 2 * a + b.sum()
        total[...] = a.sum()
    x = pt.asarray(X)
    out, total = pt.vmap(op, (0, None))(x, x[0])
    assert numpy.array_equal(out, 2 * X + X[0].sum())
    assert numpy.array_equal(total, X.sum(axis=1)) and calls == [(4,)] * 3, calls
    out, total = pt.jit(pt.vmap(op, (1, 1), (1, 0)))(x, x)
    assert numpy.array_equal(out, 2 * X + X.sum(axis=0))
    assert numpy.array_equal(total, X.sum(axis=0))
    two = pt.vmap(pt.vmap(op, (0, None)), (None, 0))(x, x)[0]
    assert numpy.array_equal(two[2], 2 * X + X[2].sum())
    raises(NotImplementedError, lambda: pt.grad(lambda a: pt.sum(op(a, a)[0]))(x),
           "'test.eval_only'", "neither a rule for this transform nor a body")


def test_callbacks():
    x = pt.asarray(X)
    shapes = []

    def sort(v, w):
        shapes.append((v.shape, w.shape))
        return numpy.sort(-v, axis=-1) + w

    def f(vmap):
        return lambda v, w: pt.pure_callback(sort, pt.Spec((4,)), v, w, vmap=vmap)
    want = numpy.sort(-X, axis=-1) + X[0]
    for how, shape in (("loop", [((4,), (4,))] * 3), ("batched", [((3, 4), (1, 4))])):
        shapes.clear()
        assert numpy.array_equal(pt.vmap(f(how), (0, None))(x, x[0]), want)
        assert shapes == shape, shapes
    out = pt.vmap(pt.vmap(f("batched"), (0, None)), (None, 0))(x, x)
    assert numpy.array_equal(out[1], numpy.sort(-X, axis=-1) + X[1])
    raises(ValueError, lambda: f("all")(x[0], x[0]), "'loop' and 'batched'")
    from pestle import _pestle as c
    before = len(c.op_names())
    for _ in range(5):  # one op, which holds none of the arguments
        pt.eval(pt.pure_callback(numpy.cos, pt.Spec((4,)), x[0]))
    assert len(c.op_names()) == before + 1


def kernels(function, *args):
    plan = pt.lower(function, *args).text("plan")
    return len(re.findall(r"^ *\d+ +launch ", plan, re.M))


def test_fuses():
    """In a chain, differentiated and batched, the op is the kernel that it is as an
    expression."""
    @pt.custom_op("test.fuses")
    def axpby(x, y, *, alpha: float, beta: float):
        return alpha * x + beta * y

    @axpby.vjp
    def _(ctx, ct):
        return ctx.alpha * ct, ctx.beta * ct

    @axpby.jvp
    def _(ctx, tx, ty):
        return axpby(tx, ty, alpha=ctx.alpha, beta=ctx.beta)
    x, y = pt.asarray(X), pt.asarray(X + 1)

    def own(x, y):
        return pt.sin(axpby(x, y, alpha=4.0, beta=2.0)) * y

    def composed(x, y):
        return pt.sin(4 * x + 2 * y) * y

    def grad(f):
        return pt.grad(lambda x, y: pt.sum(f(x, y)), (0, 1))
    for made in (lambda f: f, grad, pt.vmap, lambda f: pt.vmap(grad(f))):
        assert kernels(made(own), x, y) == kernels(made(composed), x, y) == 1
        a, b = made(own)(x, y), made(composed)(x, y)
        for p, q in zip(pt.tree.leaves(a), pt.tree.leaves(b)):
            assert numpy.allclose(p, q, rtol=1e-5, atol=1e-5)


SCRIPT = """
import sys
import pestle as pt
body, derivative, text, device = sys.argv[1:]
op = pt.custom_op("user.edited")(eval("lambda x: " + body))
op.vjp(eval("lambda ctx, ct: " + derivative))
own = pt.kernel("edited", ["x"], ["y"], grid="x.size", types=lambda x: x, opencl=text)
x = pt.asarray([1.0, 2.0, 3.0, 4.0], device=device)
other = (lambda v: own(v)) if device == "opencl" else (lambda v: v - 1)
functions = (lambda v: pt.sum(op(v) * v), pt.grad(lambda v: pt.sum(op(v) * v)), other)
for f in functions:
    f = pt.jit(f)
    said = pt.lower(f, x).text("explain").split("// cache")[1].split("//")[0]
    print(" ".join(said.split()))
    pt.eval(f(x))
"""


def has_device(name):
    try:
        pt.device(name)
        return True
    except pt.Error:
        return False


def test_edits():
    """Each function of a process whose op was edited in one character."""
    device = "opencl" if has_device("opencl") else "cpu"
    first = ["x * 2 + 1", "2 * ct", "y[i] = 2 * x[i];"]
    with tempfile.TemporaryDirectory() as folder:
        def said(*edited):
            done = subprocess.run([sys.executable, "-c", SCRIPT, *edited, device],
                                  env=dict(os.environ, PESTLE_CACHE_DIR=folder,
                                           PYTHONPATH=str(HOME)),
                                  capture_output=True, text=True, check=False)
            assert not done.returncode, done.stderr
            return [line for line in done.stdout.splitlines() if line.startswith("cache")]
        there = "is in the cache: a run"
        said(*first)
        assert all(there in line for line in said(*first))
        rows = ((["x * 3 + 1", *first[1:]], (0, 1), "body of op 'user.edited'"),
                ([first[0], "3 * ct", first[2]], (1,), "derivative of op 'user.edited'"),
                ([*first[:2], "y[i] = 3 * x[i];"], (2,), "evals of op 'kernel.edited'"))
        for edited, missed, reason in rows:
            lines = said(*edited)
            for k, line in enumerate(lines):
                if k in missed and (k < 2 or device == "opencl"):
                    assert "not in the cache" in line and reason in line, (edited, line)
                    assert line.count("differs") == 1, line
                else:
                    assert there in line, (edited, k, line)
            assert all(there in line for line in said(*edited)), "one miss alone"


run(globals())
