#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stop_gradient, custom_vjp, custom_jvp, custom_vmap, custom_function, checkpoint: that
their rules are what is used, in every order of transforms, and what is refused."""

import warnings

from case import raises, run

import pestle as pt
from derive_cases import near

V = pt.asarray([0.5, -1.0, 2.0], dtype=pt.float64)


def test_stop_gradient():
    near(pt.grad(lambda x: pt.sum(x * pt.stop_gradient(x)))(V), V)
    near(pt.jvp(pt.stop_gradient, (V,), (V,)), (V, V * 0))
    tree = pt.stop_gradient({"a": V, "b": (1, "text", None)})
    near(tree["a"], V, 0)
    assert tree["b"] == (1, "text", None)
    near(pt.vmap(pt.grad(lambda x: x * pt.stop_gradient(x * x)))(V), V * V)
    z = pt.asarray(1 + 2j)
    near(pt.abs(pt.grad(lambda z: z * pt.stop_gradient(z), holomorphic=True)(z) - z), 0.0)
    x = pt.asarray([float("nan"), float("inf"), -0.0])
    assert str(pt.stop_gradient(x)) == str(x)


def tripled():
    """A square whose derivative is three times what it is."""
    @pt.custom_vjp
    def f(x):
        return x * x
    f.defvjp(lambda x: (x * x, {"x": x}), lambda r, ct: (6 * r["x"] * ct,))
    return f


def test_vjp():
    f = tripled()
    x = V[0]
    near(f(V), V * V)
    near(pt.grad(f)(x), 6 * x)
    near(pt.value_and_grad(f)(x), (x * x, 6 * x))
    near(pt.vjp(f, V)[1](V), (6 * V * V,))
    near(pt.jacrev(f)(V), pt.linalg.diagonal(pt.eye(3)) * pt.eye(3, dtype=pt.float64) *
         6 * V)
    # Second order differentiates the rule; forward mode is its transpose.
    near(pt.grad(pt.grad(f))(x), 6.0)
    near(pt.jvp(f, (x,), (2.0,)), (x * x, 12 * x))
    near(pt.linearize(f, x)[1](2.0), 12 * x)
    near(pt.jacfwd(f)(V), pt.jacrev(f)(V))
    near(pt.jvp(pt.vmap(f), (V,), (V,))[1], 6 * V * V)
    near(pt.vmap(lambda x: pt.jvp(f, (x,), (x,))[1])(V), 6 * V * V)
    near(pt.hessian(f)(x), 6.0)

    @pt.custom_vjp
    def clipped(x):
        return x * 2
    clipped.defvjp(lambda x: (x * 2, None), lambda r, ct: (pt.clip(ct, -1, 1),))
    near(pt.grad(lambda x: 5 * clipped(x))(x), 1.0)
    raises(ValueError, lambda: pt.jvp(clipped, (x,), (1.0,)), "not linear")
    near(pt.jvp(pt.grad(f), (x,), (1.0,))[1], 6.0)
    # Batched before or after, the rule holds.
    near(pt.vmap(pt.grad(f))(V), 6 * V)
    near(pt.grad(lambda x: pt.sum(pt.vmap(f)(x)))(V), 6 * V)
    near(pt.grad(lambda x: pt.sum(pt.vmap(pt.vmap(f))(pt.stack([x, x]))))(V), 12 * V)
    near(pt.vmap(pt.grad(lambda x: pt.sum(pt.vmap(f)(x))))(pt.stack([V, 2 * V])),
         pt.stack([6 * V, 12 * V]))
    near(pt.jit(pt.grad(lambda x: pt.sin(f(x))))(x), pt.cos(x * x) * 6 * x)
    # In loops and branches.
    near(pt.grad(lambda x: pt.fori_loop(0, 2, lambda i, v: f(v), x))(x),
         6 * x * 6 * x * x)
    near(pt.grad(lambda x: pt.cond(x > 0, f, lambda x: x, x))(x), 6 * x)


def test_vjp_trees():
    @pt.custom_vjp
    def f(tree, n, k=2.0):
        return {"y": tree["a"] * n * k, "m": n}

    def fwd(tree, n, k):
        return f(tree, n, k), (tree, n)

    def bwd(residuals, ct):
        assert ct["m"] is None  # of integers
        return {"a": ct["y"] * 100, "b": None}, None, None
    f.defvjp(fwd, bwd)
    tree = {"a": V, "b": pt.ones((2,))}
    near(f(tree, 3), {"y": V * 6, "m": 3})
    near(pt.grad(lambda t: pt.sum(f(t, 3)["y"]))(tree), {"a": 100 + 0 * V,
                                                       "b": pt.zeros((2,))})
    near(pt.grad(lambda t: pt.sum(f(t, n=3, k=1.0)["y"]))(tree)["a"], 100 + 0 * V)
    # An argument that is not batched gets the sum of its elements' cotangents.

    @pt.custom_vjp
    def g(a, b):
        return a * b
    g.defvjp(lambda a, b: (a * b, (a, b)), lambda r, ct: (r[1] * ct, 7 * r[0] * ct))
    near(pt.grad(lambda b: pt.sum(pt.vmap(g, (0, None))(V, b)))(pt.asarray(
        2.0, dtype=pt.float64)), 7 * pt.sum(V))


def test_nondiff():
    calls = []

    def twice(x):
        return 2 * x

    def f(function, x, mode):
        return function(x) if mode == "on" else x
    f = pt.custom_vjp(f, nondiff_argnums=(0, 2))

    def fwd(function, x, mode):
        return function(x), None

    def bwd(function, mode, residuals, ct):
        calls.append((function, mode))
        return (function(ct) * 10,)
    f.defvjp(fwd, bwd)
    near(pt.grad(lambda x: f(twice, x, "on"))(3.0), 20.0)
    assert set(calls) == {(twice, "on")}
    near(pt.grad(lambda x: f(twice, x, "on") + f(pt.sin, x, "on"))(0.0),
         20 + 10 * pt.sin(pt.asarray(1.0)))
    raises(TypeError, lambda: pt.grad(lambda x: f(twice, 1.0, x))(1.0), "traced",
           "nondiff_argnums")


def test_jvp():
    @pt.custom_jvp
    def f(x, y):
        return x * y

    @f.defjvp
    def rule(primals, tangents):
        x, y = primals
        tx, ty = tangents
        return f(x, y), 10 * tx * y + 100 * ty * x
    a, b = V[0], V[2]
    near(pt.grad(f, (0, 1))(a, b), (10 * b, 100 * a))
    near(pt.jvp(f, (a, b), (1.0, 1.0))[1], 10 * b + 100 * a)
    near(pt.linearize(f, a, b)[1](1.0, 0.0), 10 * b)
    near(pt.vmap(pt.grad(f, 1), (0, None))(V, b), 100 * V)
    near(pt.grad(lambda b: pt.sum(pt.vmap(f, (0, None))(V, b)))(b), 100 * pt.sum(V))
    near(pt.jvp(lambda v: pt.vmap(f, (0, None))(v, b), (V,), (V,))[1], 10 * V * b)
    near(pt.grad(pt.grad(f), 1)(a, b), 10.0)
    near(pt.hessian(lambda x: f(x, x))(a), 110.0)

    @pt.custom_jvp
    def g(x, y):
        return {"s": x + y, "n": 3}
    g.defjvps(lambda t, out, x, y: {"s": 5 * t, "n": None}, None)
    near(pt.jvp(lambda x, y: g(x, y)["s"], (a, b), (1.0, 1.0))[1], 5.0)

    h = pt.custom_jvp(lambda n, x: x ** n, nondiff_argnums=0)
    h.defjvp(lambda n, primals, tangents: (h(n, *primals), n * tangents[0]))
    near(pt.grad(lambda x: h(3, x))(a), 3.0)


def test_vmap_rule():
    seen = []

    @pt.custom_vmap
    def f(tree, y):
        return tree["x"] * y, y

    @f.def_vmap
    def rule(size, batched, tree, y):
        seen.append((size, batched))
        if batched[0]["x"]:
            return (tree["x"] * y + 1000, y), (True, batched[1])
        return (tree["x"] * y - 1000, y), (True, batched[1])
    out = pt.vmap(lambda x, y: f({"x": x}, y), (0, None))(V, V[0])
    near(out, (V * V[0] + 1000, V[0] + V * 0))
    assert seen[-1] == (3, [{"x": True}, False])
    near(pt.vmap(lambda x, y: f({"x": x}, y), (None, 0))(V[0], V)[0], V * V[0] - 1000)
    # It is differentiated in reverse, whichever comes first.
    near(pt.grad(lambda x: pt.sum(pt.vmap(lambda x: f({"x": x}, V[2])[0])(x) ** 2))(V),
         2 * (2 * V + 1000) * 2)
    near(pt.vmap(pt.grad(lambda x: f({"x": x}, V[2])[0] ** 2))(V), 2 * 2 * V * 2)
    near(pt.vmap(lambda row: pt.vmap(lambda x: f({"x": x}, V[2])[0])(row))(
        pt.stack([V, V])), pt.stack([V, V]) * 2 + 1000)
    g = pt.custom_vmap(lambda x: x)
    raises(TypeError, lambda: g(1.0), "def_vmap")
    g.def_vmap(lambda size, batched, x: (x[0], True))
    raises(TypeError, lambda: pt.vmap(g)(V), "float64[]", "float64[3]")


def test_mlx_form():
    @pt.custom_function
    def f(x, y):
        return pt.sin(x) * y

    @f.vjp
    def _vjp(primals, cotangents, outputs):
        x, y = primals
        return 10 * pt.cos(x) * y * cotangents, outputs

    @f.jvp
    def _jvp(primals, tangents):
        return 1000 * tangents[0]

    @f.vmap
    def _vmap(primals, axes):
        assert axes == (0, None)
        return f(*primals) + 1, 0
    a, b = V[0], V[2]
    near(pt.grad(f, (0, 1))(a, b), (10 * pt.cos(a) * b, pt.sin(a) * b))
    near(pt.jvp(f, (a, b), (1.0, 0.0))[1], 1000.0)
    g = pt.custom_function(lambda x, y: x * y)
    g.vjp(lambda primals, ct, out: (10 * ct * primals[1], 100 * ct * primals[0]))
    near(pt.jvp(g, (a, b), (1.0, 1.0))[1], 10 * b + 100 * a)
    near(pt.jvp(g, (a, b), (0.0, 1.0))[1], 100 * a)
    near(pt.vmap(f, (0, None))(V, b), pt.sin(V) * b + 1)


def test_hidden():
    """What a function reads from around it is an operand, whose derivative the rule does
    not give: it is said which variable that is."""
    table = pt.asarray([10.0, 20.0], dtype=pt.float64)

    def outer(x, weight):
        @pt.custom_vjp
        def f(x):
            return x * weight + table[0]
        f.defvjp(lambda x: (f(x), None), lambda r, ct: (ct * weight * table[1],))
        return f(x)
    x, w = V[0], V[2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near(outer(x, w), x * w + 10)
        near(pt.grad(outer)(x, w), w * 20)
        near(pt.grad(lambda x, w: outer(x, pt.stop_gradient(w)), (0, 1))(x, w),
             (w * 20, 0.0))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        near(pt.grad(outer, (0, 1))(x, w), (w * 20, 0.0))
    assert len(said) == 1 and "'weight'" in str(said[0].message), said
    assert "stop_gradient" in str(said[0].message)

    @pt.custom_vjp
    def looped(x):
        return x * 2
    looped.defvjp(lambda x: (x * 2, None), lambda r, ct: (3 * ct,))
    for _ in range(100):  # the same op each time
        pt.eval(looped(V))
    from pestle import _pestle as c
    assert sum("looped" in name for name in c.op_names()) == 1

    def again(x, k):
        @pt.custom_vjp
        def made(x):
            return x * k
        made.defvjp(lambda x: (x * k, None), lambda r, ct: (ct * k,))
        return pt.checkpoint(made)(x)
    for k in (2.0, 3.0) * 10:  # another function each time, two ops that differ
        near(pt.grad(lambda x: pt.sum(again(x, k)))(V), 0 * V + k)
    assert sum("made" in name for name in c.op_names()) == 4, c.op_names()


def count(f, word, *args, stage="graph"):
    return pt.lower(f, *args).text(stage).count(word)


def test_checkpoint():
    def f(x):
        for _ in range(3):
            x = pt.sin(x)
        return pt.sum(x)
    g = pt.checkpoint(f)
    near(g(V), f(V), 0)
    near(pt.grad(g)(V), pt.grad(f)(V), 1e-15)
    near(pt.hessian(g)(V), pt.hessian(f)(V), 1e-14)
    near(pt.vmap(pt.grad(g))(pt.stack([V, 2 * V]))[1], pt.grad(f)(2 * V), 1e-15)
    near(pt.grad(lambda x: pt.sum(pt.vmap(g)(x)))(pt.stack([V, 2 * V]))[1],
         pt.grad(f)(2 * V), 1e-15)
    near(pt.jvp(g, (V,), (V,)), pt.jvp(f, (V,), (V,)), 1e-15)
    near(pt.vjp(g, V)[1](1.0)[0], pt.grad(f)(V), 1e-15)
    # The sines are computed again, behind a barrier that waits for the cotangent, and
    # what keeps the graph free of doubles leaves them.
    plain, again = pt.value_and_grad(f), pt.value_and_grad(g)
    assert count(plain, "stablehlo.sine", V) == 3
    assert count(again, "stablehlo.sine", V, stage="fused") > 3
    assert count(again, "stablehlo.optimization_barrier", V) == 1
    # What it reads from around it has its derivative.
    near(pt.grad(lambda w: pt.checkpoint(lambda x: pt.sum(pt.sin(x * w)))(V))(V[0]),
         pt.grad(lambda w: pt.sum(pt.sin(V * w)))(V[0]), 1e-15)
    near(pt.grad(lambda x: pt.scan(lambda c, v: (g(c * v) * c, None), x, V)[0][0])(V),
         pt.grad(lambda x: pt.scan(lambda c, v: (f(c * v) * c, None), x, V)[0][0])(V),
         1e-14)
    many = {f"k{i}": V * i for i in range(300)}
    grads = pt.grad(pt.checkpoint(lambda t: pt.sum(pt.stack([pt.sum(x * x) for x in
                                                            t.values()]))))(many)
    near(grads, pt.tree.map(lambda x: 2 * x, many))
    h = pt.checkpoint(lambda x, how: pt.sum(x * x) if how == "sum" else x,
                      static_argnums=1)
    near(pt.grad(lambda x: h(x, "sum"))(V), 2 * V)


def test_checkpoint_policies():
    w = pt.asarray([[1.0, 0.5, -0.5], [0.25, -1.0, 0.75], [0.5, 0.5, 0.5]])
    x = w * 0.5 + 0.125

    def f(x):
        h = pt.checkpoint_name(pt.tanh(x @ w), "inner")
        return pt.sum(pt.sin(pt.exp(-h * h) @ w) ** 2)
    wanted = pt.grad(f)(x)

    def used(**how):
        """How often a gradient has a product, and a tanh; its value."""
        grad = pt.grad(pt.checkpoint(f, **how))
        near(grad(x), wanted, 1e-6)
        near(pt.jit(grad)(x), wanted, 1e-6)
        near(pt.vmap(grad)(pt.stack([x, 2 * x]))[0], wanted, 1e-6)
        return tuple(count(grad, word, x) for word in ("dot_general", "stablehlo.tanh"))
    everything = used(policy="everything")
    again = used(policy="nothing")
    assert everything[0] < again[0] and everything[1] < again[1], (everything, again)
    assert used(policy="dots") == (everything[0], again[1])
    assert used(policy="min_bytes")[0] == everything[0]
    assert used(names=("inner",))[1] == everything[1]
    assert used(names="inner", policy="names") == used(names=("other", "inner"))
    assert used(names=("other",)) == again
    assert used(budget_bytes=0) == again == used(budget_bytes=8)
    assert used(budget_bytes=1 << 20)[0] == everything[0]
    near(pt.hessian(pt.checkpoint(f, policy="dots"))(x), pt.hessian(f)(x), 1e-5)
    kept = {}
    for policy in "nothing", "dots", "min_bytes", "everything":
        g = pt.checkpoint(f, policy=policy)
        for split in pt.vjp, pt.linearize:
            value, half = split(g, x)
            near(value, f(x), 1e-6)
            near(half(1.0)[0] if split is pt.vjp else half(x),
                 wanted if split is pt.vjp else pt.sum(wanted * x), 1e-5)
            at = next(c.cell_contents for c in half.__closure__
                      if hasattr(c.cell_contents, "residuals"))
            kept[split, policy] = sum(r.nbytes for r in at.residuals)
        near(pt.jacrev(g)(x), wanted, 1e-6)
    for split in pt.vjp, pt.linearize:
        assert kept[split, "nothing"] < kept[split, "dots"] <= kept[split, "everything"], kept
        assert kept[split, "nothing"] < kept[split, "min_bytes"], kept
        assert kept[split, "min_bytes"] <= kept[split, "everything"], kept
    for wrong in ({"policy": "some"}, {"budget_bytes": -1}, {"budget_bytes": "1"}):
        raises(ValueError, lambda how=wrong: pt.checkpoint(f, **how))
    # Functions with arguments by keyword alone, which have a default or are refused.
    near(pt.grad(pt.checkpoint(pt.sin))(0.0), 1.0)
    raises(TypeError, lambda: pt.checkpoint(lambda x, *, k: x * k)(x, k=2.0), "keyword")
    raises(ValueError, lambda: pt.checkpoint_name(x, "a,b"))
    raises(TypeError, lambda: pt.checkpoint_name(x, 3))


def test_refused():
    f = pt.custom_vjp(lambda x: x)
    raises(TypeError, lambda: f(1.0), "defvjp")
    f.defvjp(lambda x: x, lambda r, ct: (ct,))
    raises(TypeError, lambda: pt.grad(f)(1.0), "a pair")
    f = pt.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda r, ct: (ct, ct))
    raises(TypeError, lambda: pt.grad(f)(1.0), "1 arguments")
    f = pt.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda r, ct: (pt.ones((2,)),))
    raises(ValueError, lambda: pt.grad(f)(1.0), "(2,)", "()")
    f = pt.custom_vjp(lambda x: x)
    f.defvjp(lambda x: ((x, x), None), lambda r, ct: (ct,))
    raises(TypeError, lambda: pt.grad(f)(1.0), "gives a result of")
    f = pt.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (pt.sum(x), None), lambda r, ct: (ct,))
    raises(TypeError, lambda: pt.grad(lambda x: pt.sum(f(x)))(V), "float64[]",
           "float64[3]")

    def fails(r, ct):
        raise RuntimeError("no derivative here")
    f = pt.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), fails)
    near(f(1.0), 1.0)
    raises(RuntimeError, lambda: pt.grad(f)(1.0), "no derivative here")
    g = pt.custom_jvp(lambda x: x)
    raises(TypeError, lambda: g(1.0), "defjvp")
    g.defjvp(lambda p, t: (p[0], (t[0], t[0])))
    raises(TypeError, lambda: pt.jvp(g, (1.0,), (1.0,)), "stand together")
    # A rule that multiplies tangents has a forward mode and no transpose.
    g = pt.custom_jvp(lambda x: x)
    g.defjvp(lambda p, t: (p[0], t[0] * t[0]))
    near(pt.jvp(g, (1.0,), (3.0,))[1], 9.0)
    raises(ValueError, lambda: pt.grad(g)(1.0), "multiply", "not linear")
    g = pt.custom_jvp(lambda x, y: x * y)
    g.defjvps(lambda t, out, x, y: t * y)
    raises(TypeError, lambda: pt.grad(g)(1.0, 2.0), "1 rules", "2 arguments")
    for make in (pt.custom_vjp, pt.custom_jvp, pt.custom_vmap, pt.custom_function,
                 pt.checkpoint):
        raises(TypeError, lambda: make(3), "takes a function, not 3")
    raises(ValueError, lambda: pt.custom_vjp(lambda x: x, nondiff_argnums=-1), "-1")


run(globals())
