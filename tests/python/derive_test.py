#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""grad, value_and_grad, jvp, vjp, linearize, jacfwd, jacrev, hessian: values against
closed forms and differences, trees, nesting, what is refused."""

from case import raises, run

import pestle as pt
from derive_cases import near

def f64(value):
    return pt.asarray(value, dtype=pt.float64)


TREE = {"w": f64([[0.1, 0.2, -0.3], [0.4, -0.5, 0.6]]), "b": (f64(0.25), f64([0.5, -1.0]))}


def loss(tree, x):
    y = pt.tanh(tree["w"] @ x + tree["b"][1])
    return pt.sum(y * y) * tree["b"][0]


def test_differences():
    """The gradient by each leaf of a tree is what moving it does."""
    tree, x = TREE, f64([1.0, 2.0, 3.0])
    value, grads = pt.value_and_grad(loss)(tree, x)
    near(value, loss(tree, x), 1e-12)
    assert pt.tree.structure(grads) == pt.tree.structure(tree)
    leaves, structure = pt.tree.flatten(tree)
    for i, leaf in enumerate(leaves):
        for k in range(leaf.size):
            step = pt.reshape(pt.where(pt.arange(leaf.size) == k, 1e-6, 0.0), leaf.shape)
            step = pt.astype(step, pt.float64)
            up, down = (loss(structure.unflatten(
                leaves[:i] + [leaf + s * step] + leaves[i + 1:]), x) for s in (1, -1))
            near(pt.ravel(pt.tree.leaves(grads)[i])[k], (up - down) / 2e-6, 1e-8)


def test_argnums():
    def f(a, b, *, scale=1.0):
        return a * a * b * scale
    near(pt.grad(f)(3.0, 5.0), 30.0)
    near(pt.grad(f, 1)(3.0, 5.0), 9.0)
    near(pt.grad(f, -1)(3.0, 5.0), 9.0)
    near(pt.grad(f, (1, 0))(3.0, 5.0, scale=2.0), (18.0, 60.0))
    near(pt.value_and_grad(f, (0,))(3.0, 5.0), (45.0, (30.0,)))
    raises(ValueError, lambda: pt.grad(f, 2)(1.0, 2.0), "has 2", "2 arguments")
    raises(ValueError, lambda: pt.grad(f, (0, -2))(1.0, 2.0), "twice")
    raises(TypeError, lambda: pt.grad(f, "a")(1.0, 2.0), "not integers")


def test_aux():
    def f(x):
        return x * x, {"n": 3, "y": x + 1}
    near(pt.grad(f, has_aux=True)(2.0), (4.0, {"n": 3, "y": 3.0}))
    near(pt.value_and_grad(f, has_aux=True)(2.0), ((4.0, {"n": 3, "y": 3.0}), 4.0))
    near(pt.jvp(f, (2.0,), (1.0,), has_aux=True), (4.0, 4.0, {"n": 3, "y": 3.0}))
    y, back, aux = pt.vjp(f, 2.0, has_aux=True)
    near((y, back(3.0), aux), (4.0, (12.0,), {"n": 3, "y": 3.0}))
    y, linear, aux = pt.linearize(f, 2.0, has_aux=True)
    near((y, linear(3.0), aux), (4.0, 12.0, {"n": 3, "y": 3.0}))
    near(pt.jacrev(f, has_aux=True)(2.0), (4.0, {"n": 3, "y": 3.0}))
    raises(TypeError, lambda: pt.grad(lambda x: x, has_aux=True)(1.0), "has_aux", "pair")


def test_nested():
    def f(x):
        return pt.sin(x) * x ** 3
    x = pt.asarray(0.7, dtype=pt.float64)
    s, k, v = pt.sin(x), pt.cos(x), x
    second = -s * v ** 3 + 6 * k * v ** 2 + 6 * s * v
    near(pt.grad(pt.grad(f))(x), second, 1e-12)
    near(pt.jvp(pt.grad(f), (x,), (2.0,))[1], 2 * second, 1e-12)
    near(pt.grad(lambda x: pt.jvp(f, (x,), (pt.ones_like(x),))[1])(x), second, 1e-12)
    near(pt.grad(lambda x: pt.vjp(f, x)[1](1.0)[0])(x), second, 1e-12)
    near(pt.vjp(lambda x: pt.linearize(f, x)[1](1.0), x)[1](1.0)[0], second, 1e-12)
    third = pt.grad(pt.grad(pt.grad(f)))(x)
    h = 1e-5
    near(third, (pt.grad(pt.grad(f))(x + h) - pt.grad(pt.grad(f))(x - h)) / (2 * h), 1e-7)
    near(pt.jit(lambda x: pt.grad(pt.grad(f))(x) + 1)(x), second + 1, 1e-12)


def test_closures():
    """What a function reads from around it has no derivative of its own, and what is
    traced around it has one by the function around."""
    w = pt.asarray([2.0, 3.0])
    near(pt.grad(lambda x: pt.sum(w * x))(pt.ones((2,))), w)

    def outer(a, b):
        return pt.grad(lambda x: pt.sum(a * x * x * b))(b)  # 2 a b b
    near(pt.jacfwd(outer, (0, 1))(3.0, 2.0), (8.0, 24.0))
    near(pt.jvp(outer, (3.0, 2.0), (1.0, 0.0)), (24.0, 8.0))
    near(pt.jvp(outer, (3.0, 2.0), (0.0, 1.0)), (24.0, 24.0))
    near(pt.jit(outer)(3.0, 2.0), 24.0)
    # The only traced array is one that the inner function reads from around it.
    near(pt.jit(lambda x: pt.grad(lambda w: pt.sum(w * x))(w))(w + 1), w + 1)
    near(pt.grad(lambda x: pt.sum(pt.grad(lambda v: pt.sum(v * v * x))(w)))(w), 2 * w)
    near(pt.vmap(lambda x: pt.grad(lambda v: pt.sum(v * x))(w))(w),
         pt.asarray([[2.0, 2.0], [3.0, 3.0]]))
    near(pt.jit(lambda x: pt.jit(lambda v: v * x)(w))(w), w * w)
    near(pt.jit(lambda x: pt.grad(lambda v: v * x)(2.0))(3.0), 3.0)
    import numpy
    near(pt.jit(lambda x: pt.grad(lambda v: pt.sum(v.astype(pt.float32) * x))(
        numpy.ones(2)) + x)(w),
         2 * w)


def test_one_plan():
    """A gradient is traced once for each kind of arguments."""
    count = []

    def f(x):
        count.append(1)
        return pt.sum(x * x)
    g = pt.grad(f)
    for i in range(5):
        near(g(pt.asarray([float(i), 1.0])), [2.0 * i, 2.0])
    assert len(count) == 1 and g.traces == 1
    g(pt.ones((3,)))
    assert len(count) == 2
    assert g.explain_misses() == ["axis 0 of leaf 0 is 3, was 2"]


def test_integers():
    """They have None for a tangent, and are no arguments of a gradient."""
    def f(x, n):
        return x * n, n + 1
    (y, m), t = pt.jvp(f, (2.0, 3), (1.0, None))
    near((y, m, t), (6.0, 4, (3.0, None)))
    y, back = pt.vjp(f, 2.0, 3)
    near(back((1.0, None)), (3.0, None))
    raises(TypeError, lambda: pt.grad(lambda n: n * 2.0)(3), "argument 0", "int64",
           "only floats have derivatives")
    raises(TypeError, lambda: pt.grad(f, 1)(1.0, True), "argument 1", "bool")
    raises(TypeError, lambda: pt.grad(lambda x: pt.astype(x, pt.int32))(1.0),
           "gives int32", "a float")
    raises(TypeError, lambda: pt.jvp(f, (2.0, 3), (1.0, 1)), "leaf 1", "give None")
    near(pt.grad(lambda x: pt.sum(pt.astype(x > 0, pt.float32)))(pt.ones((2,))),
         [0.0, 0.0])


def test_refused():
    x = pt.ones((2,))
    raises(TypeError, lambda: pt.grad(lambda x: x)(x), "float32[2]", "one number",
           "jacrev()")
    raises(TypeError, lambda: pt.grad(lambda x: (pt.sum(x),))(x), "one number")
    raises(TypeError, lambda: pt.grad(3), "takes a function, not 3")
    raises(TypeError, lambda: pt.jvp(lambda x: x, x, x), "primals", "tuple")
    raises(ValueError, lambda: pt.jvp(lambda x: x, (x,), (pt.ones((3,)),)), "(3,)", "(2,)")
    raises(TypeError, lambda: pt.jvp(lambda x: x, (x,), (x, x)), "stand together")
    raises(TypeError, lambda: pt.jvp(lambda x: x, (x,), (pt.astype(x, pt.float64),)),
           "float64", "float32")
    _, back = pt.vjp(lambda x: {"y": x}, x)
    raises(TypeError, lambda: back(x), "cotangents", "stand together")
    raises(ValueError, lambda: back({"y": 1.0}), "shape ()")
    z = pt.asarray(1 + 2j)
    raises(TypeError, lambda: pt.grad(lambda z: z)(z), "holomorphic=True")
    raises(TypeError, lambda: pt.grad(lambda x: x, holomorphic=True)(1.0), "float32")


def test_bounds():
    """A loop of turns that are not known, with a bound, and one that would go on."""
    def f(x):
        return pt.while_loop(lambda s: s < 10, lambda s: s * x, x)
    x = pt.asarray(1.9, dtype=pt.float64)  # x^4
    near(pt.jvp(f, (x,), (1.0,))[1], 4 * x ** 3, 1e-12)
    raises(NotImplementedError, lambda: pt.grad(f)(x), "number of turns")
    for bound in (3, 8):
        near(pt.grad(f, max_trips=bound)(x), 4 * x ** 3, 1e-12)
        near(pt.value_and_grad(f, max_trips=bound)(x), (x ** 4, 4 * x ** 3), 1e-12)
        near(pt.vjp(f, x, max_trips=bound)[1](2.0)[0], 8 * x ** 3, 1e-12)
        near(pt.jacrev(f, max_trips=bound)(x), 4 * x ** 3, 1e-12)
    value, short = pt.value_and_grad(f, max_trips=2)(x)
    assert float(value) != float(value) and float(short) != float(short), (value, short)
    raises(TypeError, lambda: pt.grad(f, max_trips=-1), "max_trips", "-1")
    for argnums in 0.0, "0", None, True, (0, 1.0):
        raises(TypeError, lambda: pt.grad(f, argnums)(x), "argnums", "integers")  # noqa: B023


def test_complex():
    z = pt.asarray(1 + 2j, dtype=pt.complex128)
    near(pt.abs(pt.grad(lambda z: z * z, holomorphic=True)(z) - 2 * z), 0.0)
    # JAX's convention: for a real loss the conjugate of the direction of ascent.
    _, back = pt.vjp(lambda z: pt.real(z * pt.conj(z)), z)
    near(pt.abs(back(pt.asarray(1.0, dtype=pt.float64))[0] - 2 * pt.conj(z)), 0.0)
    # The same of grad() and jacrev(), beside a float too; holomorphic is of other functions.
    def loss(tree):
        return pt.sum(pt.real(tree["z"] * pt.conj(tree["z"])) * tree["x"])
    tree = {"z": pt.asarray([1 + 2j, -3j], dtype=pt.complex128),
            "x": pt.asarray([2.0, 0.5], dtype=pt.float64)}
    value, found = pt.value_and_grad(loss)(tree)
    near(value, 14.5)
    near(pt.abs(found["z"] - 2 * tree["x"] * pt.conj(tree["z"])), pt.zeros((2,)))
    near(found["x"], pt.asarray([5.0, 9.0]))
    near(pt.abs(pt.jacrev(loss)(tree)["z"] - found["z"]), pt.zeros((2,)))
    assert found["z"].dtype == pt.complex128, found["z"]
    raises(TypeError, lambda: pt.grad(lambda z: z * z)(z), "holomorphic=True")
    raises(TypeError, lambda: pt.jacfwd(lambda z: pt.real(z))(z), "holomorphic=True")


def test_jacobians():
    x = pt.asarray([0.5, 1.5], dtype=pt.float64)

    def f(tree):
        return {"p": tree["a"] * tree["b"], "q": pt.sum(tree["a"])}
    tree = {"a": x, "b": pt.asarray(3.0, dtype=pt.float64)}
    want = {"p": {"a": [[3.0, 0.0], [0.0, 3.0]], "b": [0.5, 1.5]},
            "q": {"a": [1.0, 1.0], "b": 0.0}}
    want = {k: {n: pt.asarray(v) for n, v in row.items()} for k, row in want.items()}
    near(pt.jacfwd(f)(tree), want)
    near(pt.jacrev(f)(tree), want)
    near(pt.jacfwd(lambda a, b: a[0] * b, (0, 1))(x, x)[1],
         pt.asarray([[0.5, 0.0], [0.0, 0.5]]))
    h = pt.hessian(lambda x: x[0] ** 2 * x[1] ** 3)(x)
    near(h, pt.asarray([[2 * 1.5 ** 3, 2 * 0.5 * 3 * 1.5 ** 2],
                        [2 * 0.5 * 3 * 1.5 ** 2, 0.25 * 6 * 1.5]]))
    near(h, pt.jacrev(pt.jacfwd(lambda x: x[0] ** 2 * x[1] ** 3))(x))
    near(pt.jacfwd(lambda x: pt.zeros((2,)))(x), pt.zeros((2, 2)))


def test_matters_of_jit():
    """Gradients are parts of what is traced, and what is no array may be static."""
    def f(x, mode):
        return pt.sum(x * x) if mode == "square" else pt.sum(x)
    g = pt.jit(pt.grad(f), static_argnums=1)
    near(g(pt.asarray([1.0, 2.0]), "square"), [2.0, 4.0])
    near(g(pt.asarray([1.0, 2.0]), "sum"), [1.0, 1.0])
    g = pt.grad(f)
    for _ in range(2):
        near(g(pt.asarray([1.0, 2.0]), "square"), [2.0, 4.0])
        near(g(pt.asarray([1.0, 2.0]), mode="sum"), [1.0, 1.0])
    near(pt.vmap(lambda x, h: h(x), (0, None))(pt.asarray([1.0, 2.0]), pt.sin),
         pt.sin(pt.asarray([1.0, 2.0])))
    raises(TypeError, lambda: g("square", 1.0), "'square'")
    step = pt.jit(lambda w, x: w - 0.1 * pt.grad(lambda w: pt.sum((w - x) ** 2))(w),
                  donate_argnums=0)
    w = pt.zeros((2,))
    for _ in range(100):
        w = step(w, pt.asarray([1.0, -1.0]))
    near(w, [1.0, -1.0], 1e-5)


run(globals())
