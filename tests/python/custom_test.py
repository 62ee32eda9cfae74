#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ops of one's own from Python: bodies, evals, kernels as text, callbacks, JAX's
composites by name."""

import os
import tempfile

import numpy
from case import raises, run

import pestle as pt

X = numpy.arange(12, dtype=numpy.float32).reshape(3, 4) / 4
Y = numpy.ones((3, 4), numpy.float32)


def has_device(name):
    try:
        return pt.device(name) is not None
    except (pt.Error, ValueError):
        return False


def axpby_of(name, **options):
    @pt.custom_op(name, **options)
    def axpby(x, y, *, alpha: float, beta: float = 2.0):
        return alpha * x + beta * y
    return axpby


def test_body():
    axpby = axpby_of("test.axpby")
    x, y = pt.asarray(X), pt.asarray(Y)
    want = 4 * X + 2 * Y
    assert numpy.array_equal(axpby(x, y, alpha=4.0, beta=2.0), want)
    # By position, as the reference has it, and operands by name.
    assert numpy.array_equal(axpby(x, y, 4, 2), want)
    assert numpy.array_equal(axpby(x, y=y, alpha=4.0), want)
    assert numpy.array_equal(axpby(x, y, 4.0, 2.0, stream=pt.cpu), want)
    # Promoted and broadcast before the op sees them.
    z = axpby(pt.ones((3, 1), dtype=pt.float16), y, alpha=4.0)
    assert z.shape == (3, 4) and z.dtype == pt.float32
    text = str(pt.lower(lambda a, b: axpby(a, b, alpha=4.0), x, y).module)
    assert 'stablehlo.composite "test.axpby"' in text, text
    assert "alpha = 4.0 : f64, beta = 2.0 : f64" in text
    f = pt.jit(lambda a, b: pt.sin(axpby(a, b, alpha=4.0)) * b)
    assert numpy.allclose(f(x, y), numpy.sin(want) * Y, rtol=1e-6)


def test_dynamic():
    axpby = axpby_of("test.dynamic", dynamic=("alpha",))
    x, y = pt.asarray(X), pt.asarray(Y)
    pt.eval(axpby(x, y, alpha=4.0))
    before = pt.stats()["executables"]
    for alpha in 5.0, 6, 7.5:
        assert numpy.array_equal(axpby(x, y, alpha=alpha), alpha * X + 2 * Y)
    assert pt.stats()["executables"] == before, "another value is another plan"
    assert numpy.array_equal(axpby(x, y, alpha=8.0, beta=3.0), 8 * X + 3 * Y)
    assert pt.stats()["executables"] == before + 1, "beta is no part of the plan"
    a = pt.asarray(3.0)
    f = pt.jit(lambda x, a: axpby(x, y, alpha=a))
    assert numpy.array_equal(f(x, a), 3 * X + 2 * Y)
    assert numpy.array_equal(f(x, a * 2), 6 * X + 2 * Y)
    by_x, by_a = pt.grad(lambda x, a: pt.sum(axpby(x, y, alpha=a)), (0, 1))(x, a)
    assert numpy.array_equal(by_x, numpy.full((3, 4), 3.0)) and float(by_a) == X.sum()
    many = pt.vmap(lambda a: axpby(x, y, alpha=a))(pt.asarray([1.0, 2.0]))
    assert numpy.array_equal(many[1], 2 * X + 2 * Y)
    text = str(pt.lower(lambda a, b: axpby(a, b, alpha=4.0), x, y).module)
    assert "beta = 2.0 : f64" in text and "alpha" not in text, text
    raises(TypeError, lambda: axpby_of("test.d2", dynamic=("x",)), "'x'")
    raises(ValueError, lambda: axpby(x, y, alpha=y), "rank 0")

    @pt.custom_op("test.dynamic_eval", dynamic=("alpha",), prefer="eval")
    def scaled(x, *, alpha: float, power: int = 1):
        return alpha * x

    @scaled.eval("*", id="1")
    def _(x, out, *, alpha, power):
        assert isinstance(alpha, float) and power == 1
        numpy.multiply(x, alpha * 10, out=out)

    @scaled.vjp
    def _(ctx, ct):
        return ctx.alpha * ct * 100
    assert numpy.array_equal(scaled(x, alpha=2.0), 20 * X)
    assert numpy.array_equal(pt.grad(lambda x: pt.sum(scaled(x, alpha=3.0)))(x),
                             numpy.full((3, 4), 300.0))
    raises(ValueError, lambda: pt.grad(lambda a: pt.sum(scaled(x, alpha=a)))(a),
           "dynamic attributes")


def test_hidden():
    @pt.custom_op("test.hidden", hidden=1)
    def sine(x):
        e = pt.exp(x)
        return pt.sin(e), e

    @sine.vjp
    def _(ctx, ct):
        y, e = ctx.results
        return ct * pt.cos(e) * e * 7
    x = pt.asarray(X)
    assert numpy.allclose(sine(x), numpy.sin(numpy.exp(X)), atol=1e-5)
    grad = pt.grad(lambda x: pt.sum(sine(x)))
    want = 7 * numpy.cos(numpy.exp(X)) * numpy.exp(X)
    assert numpy.allclose(grad(x), want, atol=1e-3)
    assert numpy.allclose(pt.jit(grad)(x), want, atol=1e-3)


def test_errors():
    axpby = axpby_of("test.errors")
    x, y = pt.asarray(X), pt.asarray(Y)
    raises(TypeError, lambda: axpby(x, y), "misses attribute 'alpha'")
    raises(TypeError, lambda: axpby(x, y, alpha=1.0, gamma=2.0), "'gamma'")
    raises(TypeError, lambda: axpby(x), "misses operand 'y'")
    raises(TypeError, lambda: axpby(x, y, 1, 2, 3), "5 were given")
    raises(TypeError, lambda: axpby(x, y, 1.0, alpha=1.0), "two values")
    raises(ValueError, lambda: axpby(x, pt.ones((5,)), alpha=1.0), "axis -1")
    raises(RuntimeError, lambda: axpby.vjp(None), "too late")
    raises(TypeError, lambda: axpby(x, y, alpha="a"), "'alpha'", "'a'", "a number")
    raises(ValueError, lambda: axpby(x, y, alpha=pt.asarray(1.0)), "'alpha'", "dynamic")
    raises(ValueError, lambda: pt.custom_op("test.p", prefer="all"), "'all'", "inline")
    raises(ValueError, lambda: pt.custom_op("test.p", front="all"), "'all'", "promote")
    raises(TypeError, lambda: pt.custom_op("test.p", version="1"), "'1'", "an integer")
    # Rules without end are an error, not the end of the stack.
    @pt.custom_op("test.endless")
    def endless(x):
        return endless(x) + 1
    raises(RecursionError, lambda: endless(x), "test.endless")

    @pt.custom_op("test.round")
    def round_(x):
        return x * x

    @round_.vjp
    def _(ctx, ct):
        return pt.grad(lambda x: pt.sum(round_(x)))(ctx.operands[0]) * ct
    raises(RecursionError, lambda: pt.grad(lambda x: pt.sum(round_(x)))(x), "test.round")
    # Rules that give something else than the op's type, or too much.
    def of(name, kind, rule):
        made = pt.custom_op(f"test.{name}")(lambda x: x * x)
        getattr(made, kind)(rule)
        return made
    wrong = of("vmap1", "vmap", lambda ctx, size, axes: (ctx.operands[0][:1], 0))
    raises(ValueError, lambda: pt.vmap(wrong)(x), "the vmap of op 'test.vmap1'")
    axis = of("vmap2", "vmap", lambda ctx, size, axes: (ctx.operands[0], 7))
    raises(ValueError, lambda: pt.vmap(axis)(x), "the vmap of op 'test.vmap2'", "axis 7")
    none = of("vmap3", "vmap", lambda ctx, size, axes: (ctx.operands[0], None))
    raises(ValueError, lambda: pt.vmap(none)(x), "the vmap of op 'test.vmap3'")
    single = of("vmap4", "vmap", lambda ctx, size, axes: ctx.operands[0])
    raises(TypeError, lambda: pt.vmap(single)(x), "a pair", "test.vmap4")
    shape = of("jvp1", "jvp", lambda ctx, t: pt.ones((7,)))
    raises(ValueError, lambda: pt.jvp(shape, (x,), (x,)), "the jvp of op 'test.jvp1'")
    many = of("jvp2", "jvp", lambda ctx, t: (t, t))
    raises(ValueError, lambda: pt.jvp(many, (x,), (x,)), "2 tangents for 1 results")
    raises(TypeError, lambda: pt.custom_op("test.none")(lambda x: None)(x), "gives None",
           "test.none")
    hidden = pt.asarray(X) + 1

    @pt.custom_op("test.hidden")
    def reads(x):
        return x + hidden
    # What it reads from around it is a constant of it.
    assert numpy.array_equal(reads(x), numpy.asarray(x) + numpy.asarray(hidden))
    assert numpy.array_equal(pt.grad(lambda v: pt.sum(reads(v)))(x), numpy.ones((3, 4)))
    large = pt.asarray(numpy.ones((600, 600), numpy.float32))
    much = pt.custom_op("test.large")(lambda x: pt.sum(x) * large)
    raises(ValueError, lambda: much(x), "of 1440000 bytes", "no argument")
    traced = pt.custom_op("test.traced")
    raises(ValueError, lambda: pt.jit(lambda v: traced(lambda x: x + v)(x))(x),
           "a traced array that is no argument")

    @pt.custom_op("test.raises")
    def bad(x):
        raise KeyError("from the body")
    raises(KeyError, lambda: bad(x), "from the body")
    raises(ValueError, lambda: pt.custom_op("axpby")(lambda x: x)(x), "user.axpby")


def test_generations():
    first, second = axpby_of("test.twice"), axpby_of("test.twice")
    x, y = pt.asarray(X), pt.asarray(Y)
    assert numpy.array_equal(first(x, y, alpha=1.0), second(x, y, alpha=1.0))
    assert first.name == "test.twice" and second.name != first.name


def test_numbers_on_a_device():
    """In a trace they are constants wherever it runs, not arrays from around it."""
    if not has_device("opencl"):
        return
    axpby = axpby_of("test.on_a_device")
    with pt.default_device("opencl"):
        x, y = pt.asarray(X), pt.asarray(Y)
        assert numpy.array_equal(axpby(x, y, alpha=4.0, beta=2.5), 4 * X + 2.5 * Y)


def test_eval():
    axpby = axpby_of("test.eval", prefer="eval")
    calls = []

    @axpby.eval("*", id="numpy-1")
    def _(x, y, out, *, alpha, beta):
        calls.append((x.shape, x.dtype))
        numpy.add(alpha * x, beta * y, out=out)

    x, y = pt.asarray(X), pt.asarray(Y)
    f = pt.jit(lambda a, b: axpby(a, b, alpha=4.0) + 1)
    for _ in range(3):
        assert numpy.array_equal(f(x, y), 4 * X + 2 * Y + 1)
    assert calls == [((3, 4), numpy.float32)] * 3
    # No other process has the function.
    with tempfile.TemporaryDirectory() as folder:
        module = pt.lower(lambda a, b: axpby(a, b, alpha=4.0), x, y).module
        raises(NotImplementedError,
               lambda: module.save_plan(os.path.join(folder, "a.plan")),
               "cannot be saved")

    bad = axpby_of("test.bad_eval", prefer="eval")

    @bad.eval("*")
    def _(x, y, out, **attrs):
        raise OSError("the disk is full")
    raises(ValueError, lambda: pt.eval(bad(x, y, alpha=1.0)), "the disk is full")


def test_kernel():
    text = "z[i] = x[i] * alpha + T(W) * y[i];"
    options = dict(inputs=["x", "y"], outputs=["z"], grid="x.size",
                   template={"W": 2}, attributes=[("alpha", float)])
    blend = pt.kernel("blend", opencl=text.replace("T(W)", "(T)W"), glsl=text,
                      body=lambda x, y, *, alpha: alpha * x + 2 * y, **options)
    for name in ("opencl", "vulkan", "llvm", "ref"):
        if not has_device(name):
            continue
        device = pt.device(name)
        x, y = (pt.asarray(a, device=device) for a in (X, Y))
        assert numpy.allclose(blend(x, y, alpha=4.0), 4 * X + 2 * Y), name
    raises(TypeError, lambda: pt.kernel("k", ["x"], ["y"], fortran="y = x"), "fortran")
    raises(ValueError, lambda: pt.kernel("k", ["x"], ["x"], body=lambda x: x), "twice")
    raises(ValueError, lambda: pt.kernel("k", ["x"], ["y"]), "neither a body nor types")
    if has_device("opencl"):
        device = pt.device("opencl")
        x = pt.asarray(X, device=device)
        wrong = pt.kernel("wrong", ["x"], ["y"], grid="x.size", types=lambda x: x,
                          opencl="int a = 1;\ny[i] = nothing;")
        raises(ValueError, lambda: pt.eval(wrong(x)), "nothing")


def test_callback():
    x = pt.asarray(X)
    f = pt.jit(lambda a: pt.pure_callback(numpy.sort, pt.Spec(X.shape), -a) + 1)
    assert numpy.array_equal(f(x), numpy.sort(-X) + 1)
    two = pt.pure_callback(lambda a: (a.sum(), a.argmax()),
                           (pt.Spec(()), pt.Spec((), pt.int64)), x)
    assert two[0].item() == X.sum() and two[1].item() == 11
    few = pt.pure_callback(lambda a: (a.sum(),), [pt.Spec(()), pt.Spec(())], pt.ones((3,)))
    raises(ValueError, lambda: pt.eval(few), "1 results, 2 were said")
    # Nothing writes to what others read.
    raises(ValueError, lambda: pt.eval(pt.pure_callback(lambda a: a.sort(), pt.Spec((3,)),
                                                        pt.ones((3,)))), "read-only")
    raises(ValueError, lambda: pt.eval(pt.pure_callback(lambda a: a[0], pt.Spec((3, 4)),
                                                       x)), "the shape (4,)")


def test_places():
    """Errors of callbacks say their place, and that of the call where they come later;
    what has no part in them may be computed again."""
    def off(v):
        raise RuntimeError("the pump is off")

    def model(x):
        return pt.pure_callback(off, pt.Spec((4,), pt.float32), x) * 2
    line = off.__code__.co_firstlineno
    x = pt.asarray([1.0] * 4)
    in_callback = (f"RuntimeError: the pump is off ({__file__}:{line + 1}, in test_places"
                   ".<locals>.off)")
    in_model = f"recorded at {__file__}:{line + 4}, in test_places.<locals>.model"
    raises(ValueError, lambda: model(x).tolist(), in_callback, in_model)

    s = pt.Stream("cpu") if pt.device().type == "cpu" else None
    if s:
        y = model(x)
        pt.async_eval(y, stream=s)
        raises(ValueError, y.tolist, in_callback, in_model)
        raises(ValueError, (y + 1).tolist, in_callback, in_model)
        with pt.stream(s):
            y = pt.jit(model)(x)
        raises(ValueError, y.tolist, in_callback, f"recorded at {__file__}", "model")

    a = pt.ones((4,))
    b = a + 1
    c = pt.pure_callback(off, pt.Spec((4,), pt.float32), b)
    d, e = c * 2, b * 3
    raises(ValueError, lambda: pt.eval(d, e), in_callback)
    assert [v.state for v in (a, b, c, d, e)] == ["lazy", "lazy", "failed", "failed",
                                                  "lazy"]
    assert e.tolist() == [6] * 4 and a.tolist() == [1] * 4
    raises(ValueError, d.tolist, in_callback)


def test_composites_by_name():
    """Text as JAX prints it for lax.composite: the op of that name is meant."""
    axpby = axpby_of("test.by_name", version=1, prefer="eval")
    seen = []

    @axpby.eval("*", id="1")
    def _(x, y, out, *, alpha, beta):
        seen.append(alpha)
        out[...] = alpha * x + beta * y
    x, y = pt.asarray(X), pt.asarray(Y)
    pt.eval(axpby(x, y, alpha=1.0))
    text = """module @jit_f {
  func.func public @main(%arg0: tensor<3x4xf32>, %arg1: tensor<3x4xf32>) -> tensor<3x4xf32> {
    %0 = stablehlo.composite "test.by_name" %arg0, %arg1 {composite_attributes = {alpha = 4.000000e+00 : f32}, decomposition = @f, version = 1 : i32} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
  func.func private @f(%arg0: tensor<3x4xf32>, %arg1: tensor<3x4xf32>) -> tensor<3x4xf32> {
    return %arg1 : tensor<3x4xf32>
  }
}"""
    f = pt.from_stablehlo(text)
    assert numpy.array_equal(f(x, y), 4 * X + 2 * Y)
    assert seen == [1.0, 4.0]


run(globals())
