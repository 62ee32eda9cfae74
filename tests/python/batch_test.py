#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vmap against a loop over the axis: axes, trees, nesting with derivatives and control
flow, what is refused."""

from case import raises, run

import pestle as pt
from derive_cases import near

X = pt.reshape(pt.arange(24, dtype=pt.float64) / 7 - 1.5, (2, 3, 4))


def loop(f, args, axes, out=0):
    """f of each element, stacked."""
    size = next(x.shape[a] for x, a in zip(args, axes) if a is not None)
    rows = [f(*(x if a is None else pt.take(x, pt.asarray([i]), axis=a).squeeze(a)
                for x, a in zip(args, axes))) for i in range(size)]
    return pt.stack(rows, axis=out)


def test_axes():
    def f(a, b):
        return pt.exp(a) @ b + pt.sum(a)
    a, b = X, pt.permute_dims(X, (0, 2, 1))
    for axes in ((0, 0), (0, None), (None, 0), (-3, 0)):
        args = [x if i is not None else x[0] for x, i in zip((a, b), axes)]
        for out in (0, 1, 2, -1):
            near(pt.vmap(f, axes, out)(*args), loop(f, args, axes, out), 1e-14)
    moved = pt.moveaxis(a, 0, 2)
    near(pt.vmap(f, (2, 0))(moved, b), loop(f, (a, b), (0, 0)), 1e-14)
    near(pt.vmap(f, [2, 0])(moved, b), loop(f, (a, b), (0, 0)), 1e-14)


def test_trees():
    def f(tree, k, *, shift):
        return {"y": tree["a"] * k + shift, "z": (tree["b"], k)}
    tree = {"a": X[0, 0], "b": X[0]}
    out = pt.vmap(f, ({"a": 0, "b": 1}, None), {"y": 0, "z": (1, None)})(
        tree, 2.0, shift=pt.arange(4, dtype=pt.float64))
    near(out["y"], X[0, 0] * 2 + pt.arange(4, dtype=pt.float64))
    near(out["z"], (X[0], 2.0))
    near(pt.vmap(lambda t: t["a"], 0)({"a": X[0, 0]}), X[0, 0])
    near(pt.vmap(lambda t: t[0] + t[1], ((0, None),))((X[0], X[0, 0])), X[0] + X[0, 0])


def test_nothing_batched():
    near(pt.vmap(lambda: pt.asarray(2.0), axis_size=3)(), [2.0, 2.0, 2.0])
    near(pt.vmap(lambda x: 1.5)(X[0, 0]), [1.5] * 4)
    near(pt.vmap(lambda x: x, None, axis_size=2)(3.0), [3.0, 3.0])
    near(pt.vmap(lambda x: (x, 2.0), out_axes=(0, None))(X[0, 0]), (X[0, 0], 2.0))
    assert pt.vmap(lambda x: x + 1)(pt.zeros((0, 3))).shape == (0, 3)


def test_nested():
    def f(x, w):
        return pt.sum(pt.tanh(x * w) ** 2)
    w = X[1, 0]
    rows = X[0]
    near(pt.vmap(pt.grad(f, 1), (0, None))(rows, w),
         pt.stack([pt.grad(f, 1)(rows[i], w) for i in range(3)]), 1e-14)
    near(pt.grad(lambda w: pt.sum(pt.vmap(f, (0, None))(rows, w)))(w),
         pt.sum(pt.stack([pt.grad(f, 1)(rows[i], w) for i in range(3)]), axis=0), 1e-13)
    near(pt.vmap(pt.vmap(f, (0, None)), (None, 0))(rows, X[1]),
         pt.stack([pt.stack([f(rows[i], X[1, k]) for i in range(3)]) for k in range(3)]),
         1e-13)
    near(pt.vmap(pt.hessian(f, 1), (0, None))(rows, w)[1], pt.hessian(f, 1)(rows[1], w),
         1e-13)
    near(pt.jit(pt.vmap(pt.grad(f), (0, None)))(rows, w)[2], pt.grad(f)(rows[2], w), 1e-14)
    near(pt.jvp(lambda x: pt.vmap(pt.grad(f), (0, None))(x, w), (rows,), (rows,))[1][0],
         pt.jvp(lambda x: pt.grad(f)(x, w), (rows[0],), (rows[0],))[1], 1e-13)


def test_control_flow():
    def steps(x):  # Newton's method for a square root: trips differ by element
        return pt.while_loop(lambda s: pt.abs(s * s - x) > 1e-12,
                             lambda s: (s + x / s) / 2, x)
    x = pt.asarray([0.5, 2.0, 400.0], dtype=pt.float64)
    near(pt.vmap(steps)(x), pt.sqrt(x), 1e-11)

    def branch(x):
        return pt.cond(x > 1, lambda x: x * x, lambda x: -x, x)
    near(pt.vmap(branch)(x), [-0.5, 4.0, 160000.0])
    near(pt.vmap(pt.grad(branch))(x), [-1.0, 4.0, 800.0])

    def total(x):
        return pt.scan(lambda c, v: (c + v * x, c * v), x, X[0, 0])[0]
    near(pt.vmap(total)(x), loop(total, (x,), (0,)), 1e-13)
    near(pt.vmap(pt.grad(total))(x), loop(pt.grad(total), (x,), (0,)), 1e-13)

    def count(x):
        return pt.fori_loop(0, 5, lambda i, c: c * x + i, x)
    near(pt.vmap(pt.grad(count))(x), loop(pt.grad(count), (x,), (0,)), 1e-13)


def test_kinds():
    """Indices, sorts, contractions, solvers, random numbers."""
    keys = pt.random.split(pt.random.key(3), 3)
    near(pt.vmap(lambda k: pt.random.uniform(k, (2,)))(keys),
         pt.stack([pt.random.uniform(keys[i], (2,)) for i in range(3)]), 0)
    rows, index = X[0], pt.asarray([2, 0, 1])
    for f, args, axes in (
            (lambda x, i: x[i], (rows, index), (0, 0)),
            (lambda x, i: x[i], (rows[0], index), (None, 0)),
            (lambda x, i: x.at[i].set(0), (rows, index), (0, 0)),
            (lambda x, i: pt.take(x, i, axis=0), (rows, pt.asarray([[0, 1]] * 3)), (0, 0)),
            (pt.sort, (rows,), (0,)), (pt.argmax, (rows,), (0,)),
            (lambda x: pt.cumulative_sum(x), (rows,), (0,)),
            (lambda x: pt.softmax(x, axis=0), (rows,), (0,)),
            (lambda x: pt.einsum("ij,kj->ik", x, x), (X,), (0,)),
            (lambda x: pt.linalg.inv(x @ pt.matrix_transpose(x) + pt.eye(
                3, dtype=pt.float64)), (X,), (0,)),
            (lambda x: pt.linalg.solve(pt.eye(3, dtype=pt.float64) * 3 + x @ x.mT, x[:, 0]),
             (X,), (0,))):
        near(pt.vmap(f, axes)(*args), loop(f, args, axes), 1e-12)


def test_refused():
    x = pt.ones((2, 3))
    raises(ValueError, lambda: pt.vmap(lambda a, b: a)(x, pt.ones((3,))),
           "axis 0 of leaf 0 has 2", "axis 0 of leaf 1 has 3")
    raises(ValueError, lambda: pt.vmap(lambda a: a, None)(x), "no axis", "axis_size")
    raises(ValueError, lambda: pt.vmap(lambda a: a, axis_size=3)(x), "axis_size", "has 2")
    raises(IndexError, lambda: pt.vmap(lambda a: a, 2)(x), "in_axes", "2 is outside")
    raises(IndexError, lambda: pt.vmap(lambda a: a)(1.0), "in_axes")
    raises(IndexError, lambda: pt.vmap(lambda a: a, out_axes=3)(x), "out_axes")
    raises(ValueError, lambda: pt.vmap(lambda a: a, (0, 0))(x), "2 axes", "1 arguments")
    raises(ValueError, lambda: pt.vmap(lambda a: a, ({"a": 0},))(x), "in_axes")
    raises(ValueError, lambda: pt.vmap(lambda a: a, out_axes=(0, 0))(x), "out_axes")
    raises(TypeError, lambda: pt.vmap(lambda a: a, "a"), "in_axes")
    raises(TypeError, lambda: pt.vmap(3), "takes a function")
    raises(ValueError, lambda: pt.vmap(lambda a: a, out_axes=None)(x), "result")


run(globals())
