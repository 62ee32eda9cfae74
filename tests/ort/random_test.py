#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX's random ops: types, shapes and statistics of their numbers, which are Pestle's own;
that they are the same in each run, other ones for other seeds, nodes and trips of a loop.
Exits 77, "skipped", when a Python package is missing."""

import sys

COUNT = 200_000


def graph(nodes, inputs=(), outputs=("y",), known=(), opset=17):
    """A model, its inputs given as (name, array)."""
    from onnx import TensorProto, helper, numpy_helper

    import contrib_cases

    given = [helper.make_tensor_value_info(n, contrib_cases.TYPES[a.dtype.str[1:]], a.shape) for n, a in inputs]
    wanted = [helper.make_tensor_value_info(o, TensorProto.UNDEFINED, None) for o in outputs]
    for w in wanted:
        w.ClearField("type")
    held = [numpy_helper.from_array(a, n) for n, a in known]
    m = helper.make_model(helper.make_graph(nodes, "g", given, wanted, held), opset_imports=[helper.make_opsetid("", opset)])
    m.ir_version = 8
    return m, dict(inputs)


def run(model, inputs=None, device="llvm"):
    import contrib

    got, why = contrib.run_pestle(model, inputs or {}, device)
    if got is None:
        raise RuntimeError(why)
    return got


def distance(x, cdf):
    """The greatest distance of the numbers' distribution from |cdf| (Kolmogorov, Smirnov)."""
    import numpy as np

    x = np.sort(x.ravel().astype(np.float64))
    return np.abs(cdf(x) - (np.arange(x.size) + 0.5) / x.size).max()


def phi(x):
    import math

    import numpy as np

    return np.array([0.5 * (1 + math.erf(v / 2**0.5)) for v in x])


def checks():
    """(what, whether it holds)"""
    import numpy as np
    from onnx import TensorProto as TP
    from onnx import helper

    node = helper.make_node
    near = 2.0 / COUNT**0.5  # five times what is usual
    for dtype, kind in ((np.float32, TP.FLOAT), (np.float64, TP.DOUBLE), (np.float16, TP.FLOAT16)):
        u = run(*graph([node("RandomUniform", [], ["y"], shape=[4, COUNT // 4], low=-2.0, high=3.0, dtype=kind)]))[0]
        name = np.dtype(dtype).name
        yield f"uniform {name}: type", u.dtype == dtype and u.shape == (4, COUNT // 4)
        yield f"uniform {name}: bounds", u.min() >= -2 and u.max() <= 3
        yield f"uniform {name}: distribution", distance(u, lambda x: (x + 2) / 5) < near + (dtype == np.float16) * 1e-3
        n = run(*graph([node("RandomNormal", [], ["y"], shape=[COUNT], mean=1.0, scale=2.0, dtype=kind)]))[0]
        yield f"normal {name}: type", n.dtype == dtype and np.isfinite(n).all()
        yield f"normal {name}: distribution", distance(n, lambda x: phi((x - 1) / 2)) < near + (dtype == np.float16) * 1e-3
        z = (n.astype(np.float64) - 1) / 2
        yield f"normal {name}: kurtosis", abs((z**4).mean() - 3) < 0.1
        yield f"normal {name}: neighbours", abs((z[1:] * z[:-1]).mean()) < 5 / COUNT**0.5
    x = np.zeros((3, 5), np.float32)
    like = run(*graph([node("RandomNormalLike", ["x"], ["y"]), node("RandomUniformLike", ["x"], ["z"], dtype=TP.DOUBLE)], [("x", x)], ("y", "z")))
    yield "like: types", [a.dtype for a in like] == [np.float32, np.float64] and all(a.shape == x.shape for a in like)
    two = [node("RandomUniform", [], [n], shape=[50]) for n in "ab"]
    a, b = run(*graph(two, outputs=("a", "b")))
    yield "two nodes differ", not (a == b).any()
    yield "runs are alike", np.array_equal(a, run(*graph(two, outputs=("a", "b")))[0])
    yield "devices are alike", np.array_equal(a, run(*graph(two, outputs=("a", "b")), "ref")[0])
    seeds = [node("RandomUniform", [], [n], shape=[50], seed=s) for n, s in zip("abc", (1.0, 2.0, 1.0))]
    a, b, c = run(*graph(seeds, outputs=("a", "b", "c")))
    yield "seeds tell numbers apart", not (a == b).any() and np.array_equal(a, c)
    p = np.repeat(np.array([0, 0.1, 0.5, 0.9, 1], np.float32), COUNT // 5).reshape(5, -1)
    for kind, dtype in ((TP.BOOL, bool), (TP.INT32, np.int32), (None, np.float32)):
        b = run(*graph([node("Bernoulli", ["p"], ["y"], **({"dtype": kind} if kind else {}))], [("p", p)]))[0]
        share = b.astype(np.float64).mean(1)
        yield f"Bernoulli to {np.dtype(dtype).name}", b.dtype == dtype and np.abs(share - p[:, 0]).max() < 0.02 and share[0] == 0 and share[4] == 1
    w = np.array([[1, 2, 3, 4, 0], [5, 0, 0, 0, 5]], np.float64)
    with np.errstate(divide="ignore"):
        logs = np.log(w).astype(np.float32) + 7
    for kind, dtype in ((TP.INT32, np.int32), (TP.INT64, np.int64)):
        m = run(*graph([node("Multinomial", ["p"], ["y"], sample_size=COUNT // 2, dtype=kind)], [("p", logs)]))[0]
        share = np.stack([np.bincount(row, minlength=5)[:5] / row.size for row in m])
        yield f"Multinomial to {np.dtype(dtype).name}", m.dtype == dtype and np.abs(share - w / 10).max() < 0.01
    for trips, name in ((3, "few"), (40, "many")):
        body = helper.make_graph(
            [node("RandomUniform", [], ["v"], shape=[20], seed=3.0), node("Identity", ["c"], ["d"])], "b",
            [helper.make_tensor_value_info("i", TP.INT64, []), helper.make_tensor_value_info("c", TP.BOOL, [])],
            [helper.make_tensor_value_info("d", TP.BOOL, []), helper.make_tensor_value_info("v", TP.FLOAT, [20])])  # fmt: skip
        loop = node("Loop", ["n", "t"], ["y"], body=body)
        y = run(*graph([loop], known=[("n", np.int64(trips)), ("t", np.bool_(True))]))[0]
        yield f"{name} trips differ", y.shape == (trips, 20) and len(np.unique(y)) > 0.99 * y.size
    x = np.ones((COUNT,), np.float32)
    drop = node("Dropout", ["x", "r", "t"], ["y", "m"])
    y, m = run(*graph([drop], [("x", x)], ("y", "m"), [("r", np.float32(0.25)), ("t", np.bool_(True))]))
    yield "Dropout in training", abs(m.mean() - 0.75) < 0.01 and np.allclose(y, np.where(m, 4 / 3, 0))
    s = np.float32(0)
    scaled = [node("RandomNormalLike", ["x"], ["n"]), node("Mul", ["n", "s"], ["ns"]), node("Add", ["x", "ns"], ["y"])]
    yield "noise scaled by nothing", np.array_equal(run(*graph(scaled, [("x", x), ("s", s)]))[0], x)


def main():
    try:
        import onnx  # noqa: F401
    except ImportError as e:
        print(f"skipped: {e}; tools/requirements.txt lists what is needed")
        return 77
    wrong = [what for what, holds in checks() if not holds]
    for what in wrong:
        print("wrong:", what)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
