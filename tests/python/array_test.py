#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package without NumPy: making arrays, operators, promotion, indexing, errors,
functions."""

import sys

from case import raises, run

import pestle as pt
from pestle import random


def test_no_numpy_is_imported():
    assert "numpy" not in sys.modules


def test_making():
    assert pt.asarray([1, 2]).dtype == pt.int64
    assert pt.asarray([1.5, 2]).dtype == pt.float32
    assert pt.asarray([True]).dtype == pt.bool
    assert pt.asarray(1j).dtype == pt.complex64
    x = pt.asarray([[1, 2], [3, 4]], dtype=pt.float16)
    assert x.shape == (2, 2) and x.tolist() == [[1, 2], [3, 4]]
    assert pt.asarray([]).shape == (0,)
    assert pt.asarray(2**63, dtype=pt.uint64).item() == 2**63
    raises(ValueError, lambda: pt.asarray([[1], [2, 3]]), "different lengths")
    raises(OverflowError, lambda: pt.asarray(300, dtype=pt.uint8), "300", "uint8")
    raises(TypeError, lambda: pt.asarray(["a"]), "'a'")
    assert pt.asarray(memoryview(b"\1\2")).tolist() == [1, 2]


def test_promotion():
    i8, u8, f16 = (pt.ones((2,), dtype=d) for d in (pt.int8, pt.uint8, pt.float16))
    assert (i8 + u8).dtype == pt.int16
    assert (i8 + f16).dtype == pt.float16
    assert (f16 + pt.ones((2,), dtype=pt.bfloat16)).dtype == pt.float32
    assert (i8 + 1).dtype == pt.int8 and (i8 + 1.5).dtype == pt.float32
    assert (f16 * 2.5).dtype == pt.float16
    assert (i8 / i8).dtype == pt.float32
    assert (f16 + 1j).dtype == pt.complex64
    raises(TypeError, lambda: i8 + pt.ones((2,), dtype=pt.uint64) +
           pt.ones((2,), dtype=pt.int64), "ui64")
    raises(OverflowError, lambda: i8 + 1000, "1000")


def test_operators():
    x = pt.asarray([7, -7])
    assert (x // 2).tolist() == [3, -4] and (x % 4).tolist() == [3, 1]
    assert (2 - x).tolist() == [-5, 9] and (-x).tolist() == [-7, 7]
    assert (x ** 2).tolist() == [49, 49] and (~x).tolist() == [-8, 6]
    assert ((x > 0) & (x < 9)).tolist() == [True, False]
    y = x
    y += 1
    assert x.tolist() == [7, -7] and y.tolist() == [8, -6]
    assert (pt.asarray([5.5, -5.5]) % 2).tolist() == [1.5, 0.5]
    assert pt.floor_divide(pt.asarray([1e6, -7.0]), 2.0).tolist() == [5e5, -4.0]
    raises(TypeError, lambda: x + "a")
    raises(TypeError, lambda: pt.sin("a"))
    raises(ValueError, lambda: x + pt.ones((3,)), "add", "3 elements", "2")
    raises(TypeError, lambda: pt.asarray([1.0]) & 1, "bitwise_and", "f32")


def test_laziness():
    x = pt.asarray([1.0, 2.0])
    y = pt.exp(x) + 1
    assert y.state == "lazy"
    pt.eval({"y": [y]})
    assert y.state == "data"
    before = pt.stats()["evaluations"]
    y.tolist()
    assert pt.stats()["evaluations"] == before
    for _ in range(3000):
        x = x + 1
    assert x.tolist() == [3001.0, 3002.0]


def test_devices():
    assert pt.cpu.type == "cpu" and pt.device("cpu") == pt.cpu
    with pt.default_device("ref"):
        assert pt.zeros((2,)).device.name == "ref"
    other = "llvm" if pt.device().name == "ref" else "ref"
    x, y = pt.ones((2,)), pt.ones((2,), device=other)
    assert x.device == pt.device() != y.device
    raises(ValueError, lambda: x + y, "Inputs are on different backends",
           "Use pestle.copy(x, device)")
    assert (x + pt.copy(y, x.device)).tolist() == [2, 2]
    assert any(b.name == "ref" and b.available for b in pt.backends.list())
    before = pt.get_active_memory(pt.device())
    z = pt.copy(pt.zeros((1 << 20,)))
    pt.eval(z)
    assert pt.get_active_memory(pt.device()) - before >= 4 << 20
    del z


def test_async():
    x = pt.ones((1000, 1000)) + 1
    pt.async_eval({"x": x})
    assert x.state in ("pending", "data") and x[3, 4].item() == 2
    pt.synchronize()


def test_pickles():
    import copy
    import pickle
    for dtype in ("float32", "bool", "int64", "complex64", "bfloat16", "float16", "uint8",
                  "complex128", "float8_e5m2", "int4", "float4_e2m1fn"):
        x = pt.astype(pt.asarray([[0, 1, 0], [1, 4, 6]]), pt.dtype(dtype))
        y = pickle.loads(pickle.dumps(x))
        assert y.dtype == x.dtype and y.tolist() == x.tolist(), dtype
        assert copy.deepcopy(x).tolist() == x.tolist()
    assert pickle.loads(pickle.dumps(pt.float32)) is pt.float32


def test_threads():
    import threading
    f = pt.jit(lambda x: pt.exp(x).sum() + 1)
    wrong = []

    # More shapes than a function keeps: entries come and go while others run.
    def work(seed):
        for i in range(40):
            n = (seed * 31 + i) % 90 + 1
            if abs(f(pt.zeros((n,))).item() - n - 1) > 1e-3:
                wrong.append(n)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


def test_numbers():
    x = pt.asarray(2.5)
    assert x.item() == 2.5 and float(x) == 2.5 and int(x) == 2 and bool(x)
    assert complex(x) == 2.5
    assert [10, 20, 30][pt.asarray(1)] == 20
    raises(TypeError, lambda: range(pt.asarray(1.0)), "float32")
    raises(TypeError, lambda: bool(pt.ones((2,))), "rank 0")


def test_text():
    assert str(pt.asarray([[1, 2], [3, 40]])) == "[[ 1,  2],\n [ 3, 40]]"
    assert repr(pt.asarray([1.0, 2.5])) == "Array([ 1., 2.5], dtype=float32)"
    assert "..." in str(pt.arange(5000))


def test_indexing():
    x = pt.reshape(pt.arange(12), (3, 4))
    assert x[1].tolist() == [4, 5, 6, 7] and x[-1, -1].item() == 11
    assert x[::-1, 1:3].tolist() == [[9, 10], [5, 6], [1, 2]]
    assert x[..., None].shape == (3, 4, 1) and x[None].shape == (1, 3, 4)
    assert x[:, ::-2].tolist()[0] == [3, 1]
    assert x[x > 8].tolist() == [9, 10, 11]
    rows = pt.asarray([2, 0])
    assert x[rows].tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
    assert x[rows, pt.asarray([1, -1])].tolist() == [9, 3]
    assert x[:, pt.asarray([[0, 1]])].shape == (3, 1, 2)
    raises(IndexError, lambda: x[3], "index 3", "3 elements")
    raises(IndexError, lambda: x[0, 0, 0], "2 axes")


def test_updates():
    x = pt.zeros((2, 3))
    view = x[0]
    x[0, 1:] = 5
    assert x.tolist() == [[0, 5, 5], [0, 0, 0]] and view.tolist() == [0, 0, 0]
    x[x > 0] = 1
    x[:, 0] = pt.asarray([8.0, 9.0])
    assert x.tolist() == [[8, 1, 1], [9, 0, 0]]
    i = pt.asarray([0, 0, 1])
    assert pt.zeros((2,)).at[i].add(1).tolist() == [2, 1]
    raises(ValueError, lambda: pt.zeros((2,)).at[:].set(pt.ones((3,))))


def test_jit():
    calls = []

    @pt.jit
    def f(tree, scale):
        calls.append(1)
        return {"a": tree["x"] * scale, "b": (tree["y"][0], 3)}

    x, y = pt.asarray([1.0, 2.0]), pt.asarray([3])
    for scale in (2.0, 3.0):
        out = f({"x": x, "y": [y]}, scale)
    assert out["a"].tolist() == [3.0, 6.0] and out["b"][1].item() == 3
    assert len(calls) == 1 and out["a"].dtype == pt.float32
    f({"x": pt.ones((3,)), "y": [y]}, 2.0)
    assert len(calls) == 2 and "axis 0 of leaf 0 is 3, was 2" in f.explain_misses()[0]
    raises(TypeError, lambda: f({"x": "no", "y": [y]}, 2.0), "static_argnums")


def test_jit_statics():
    @pt.jit
    def plain(x, n):
        return x * n
    power = pt.jit(lambda x, n: x ** n if n > 1 else x, static_argnums=1)
    assert power(pt.asarray(3.0), 2).item() == 9
    assert power(pt.asarray(3.0), 1).item() == 3 and power.traces == 2
    named = pt.jit(lambda x, *, mode: x + (1 if mode == "up" else -1),
                   static_argnames="mode")
    assert named(pt.asarray(1.0), mode="up").item() == 2
    assert named(pt.asarray(1.0), mode="down").item() == 0
    # A number of Python's stays one: it adapts.
    assert plain(pt.ones((1,), dtype=pt.float16), 2.5).dtype == pt.float16
    raises(ValueError, lambda: pt.jit(lambda x: 1 if x > 0 else 0)(pt.asarray(1.0)),
           "traced")


def test_jit_captures():
    weights = pt.asarray([1.0, 2.0])
    f = pt.jit(lambda x: x * weights)
    assert f(pt.ones((2,))).tolist() == [1.0, 2.0]
    inner = pt.jit(lambda x: x + 1)
    outer = pt.jit(lambda x: inner(x) * 2)
    assert outer(pt.asarray(1.0)).item() == 4 and inner.traces == 0


def test_control():
    n, x = pt.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] * 2),
                         (pt.asarray(0), pt.asarray(1.0)))
    assert n.item() == 10 and x.item() == 1024
    k = pt.asarray([10.0])
    f = pt.jit(lambda x: pt.fori_loop(0, 3, lambda i, v: v + k * x, x))
    assert f(pt.asarray([1.0])).tolist() == [31.0]
    g = pt.jit(lambda p, x: pt.cond(p, lambda v: v + k, lambda v: v - k, x))
    assert g(pt.asarray(True), k).tolist() == [20.0]
    assert g(pt.asarray(False), k).tolist() == [0.0]
    carry, ys = pt.scan(lambda c, x: (c + x, c * x), pt.asarray(0.0),
                        pt.asarray([1.0, 2.0, 3.0]))
    assert carry.item() == 6 and ys.tolist() == [0, 2, 9]
    assert pt.switch(2, [lambda x: x, lambda x: x + 1, lambda x: x + 2],
                     pt.asarray(1.0)).item() == 3
    assert pt.map(lambda x: x * x, pt.asarray([1.0, 2.0])).tolist() == [1, 4]
    raises(TypeError, lambda: pt.while_loop(lambda s: s < 3, lambda s: s + 0.5,
                                            pt.asarray(0)), "int64", "float32")


def test_trees():
    leaves, shape = pt.tree.flatten({"b": [1, None], "a": (2, 3)})
    assert leaves == [2, 3, 1] and shape.num_leaves == 3
    assert shape.unflatten([7, 8, 9]) == {"a": (7, 8), "b": [9, None]}
    assert pt.tree.map(lambda x, y: x + y, [1, (2,)], [3, (4,)]) == [4, (6,)]
    raises(ValueError, lambda: pt.tree.map(lambda x, y: x, [1], (1,)))


def test_trees_of_collections():
    from collections import OrderedDict, defaultdict, namedtuple
    Pair = namedtuple("Pair", "a b")
    value = OrderedDict(z=1, a=defaultdict(list, {"y": 2, "x": 3}), p=Pair(4, [5]))
    leaves, shape = pt.tree.flatten(value)
    # The order is a part of an OrderedDict, and not of others.
    assert leaves == [1, 3, 2, 4, 5]
    back = shape.unflatten([10 * x for x in leaves])
    assert type(back) is OrderedDict and list(back) == ["z", "a", "p"]
    assert type(back["a"]) is defaultdict and back["a"]["new"] == []
    assert back["a"]["y"] == 20 and back["p"] == Pair(40, [50])
    of = pt.tree.structure
    assert of(OrderedDict(a=1, b=2)) != of(OrderedDict(b=2, a=1))
    assert of(defaultdict(list, a=1, b=2)) == of(defaultdict(list, b=3, a=4))
    assert of(defaultdict(list, a=1)) != of(defaultdict(int, a=1))
    assert of(OrderedDict(a=1)) != of({"a": 1})

    @pt.jit
    def f(d):
        return OrderedDict((k, v * 2) for k, v in d.items())
    y = f(OrderedDict(z=pt.ones((2,)), a=3.0))
    assert list(y) == ["z", "a"] and y["z"].tolist() == [2, 2] and y["a"].tolist() == 6
    grads = pt.grad(lambda d: pt.sum(d["w"] * d["w"]))(defaultdict(list, w=pt.ones((2,))))
    assert type(grads) is defaultdict and grads["w"].tolist() == [2, 2]

    class Own:
        pass
    raises(TypeError, lambda: f(Own()), "Own", "pestle.tree.register()")
    raises(TypeError, lambda: pt.jit(lambda x: Own())(1.0), "Own",
           "pestle.tree.register()")


def test_random_is_jax_s():
    # jax 0.10.2, jax.random of key(42).
    key = random.key(42)
    assert key.tolist() == [0, 42]
    assert random.split(key).tolist() == [[1832780943, 270669613],
                                          [64467757, 2916123636]]
    assert random.bits(key, (3,)).tolist() == BITS
    assert random.uniform(key, (2,)).tolist() == UNIFORM
    assert random.randint(key, (4,), 0, 100).tolist() == RANDINT
    assert random.permutation(key, 8).tolist() == PERMUTATION


BITS = [2098992034, 2919706841, 2646866425]
UNIFORM = [0.48870956897735596, 0.6797971725463867]
RANDINT = [44, 14, 71, 69]
PERMUTATION = [7, 4, 2, 5, 3, 6, 0, 1]


def test_graphs():
    x = pt.asarray([1.0, 2.0])
    lowered = pt.lower(lambda x: x * 2 + 1, x)
    assert "stablehlo.multiply" in lowered.text()
    assert "pestle.fusion" in lowered.text("fused")
    assert lowered.compile()(x).tolist() == [3.0, 5.0]
    for form in ("stablehlo", "module"):
        data = pt.export(lambda x: pt.exp(x), x, format=form)
        assert pt.load(data)(x).tolist() == pt.exp(x).tolist()
    f = pt.from_stablehlo("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                          "%0 = stablehlo.add %x, %x : tensor<2xf32>\n"
                          "return %0 : tensor<2xf32>\n}")
    assert f(x).tolist() == [2.0, 4.0] and f.inputs[0][1:] == (pt.float32, (2,))


def test_export_of_what_is_read_besides():
    w, b = pt.arange(6, dtype=pt.float32).reshape((2, 3)), pt.asarray([1., 2., 3.])
    lazily = b * 2  # not computed yet
    f = lambda x: x @ w + lazily
    x = pt.asarray([[1., 2.]])
    for form in ("stablehlo", "module"):
        g = pt.load(pt.export(f, x, format=form))
        assert [row[1:] for row in g.inputs] == [(pt.float32, (1, 2))]
        assert g(x).tolist() == [[8., 13., 18.]]
    assert pt.lower(f, x).compile()(x).tolist() == [[8., 13., 18.]]
    slope = pt.grad(lambda x: (f(x) ** 2).sum())
    assert pt.load(pt.export(slope, x))(x).tolist() == slope(x).tolist()
    # One of a trace that goes on has no value.
    raises(ValueError, lambda: pt.jit(lambda y: pt.ones(
        (len(pt.export(lambda z: z * y, x)),)))(x), "of a trace that it is called in")



run(globals())
