#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What torch's exporter makes of extents that only a run tells, as detectors with NMS have
them, against ONNX Runtime. Exits 77, "skipped", when a Python package is missing."""

import sys


def models():
    """(name, model, arrays)"""
    import numpy as np
    from onnx import TensorProto as TP
    from onnx import helper as h

    import random_test

    node, i64 = h.make_node, lambda *v: np.array(v, np.int64)
    # More elements than inputs that become constants may have.
    x = np.random.default_rng(3).standard_normal((300, 4)).astype(np.float32)
    known = [("first", np.int64(0)), ("second", np.int64(1)), ("axis", i64(0)), ("three", i64(3)), ("all", i64(-1)),
             ("minus", i64(-1)), ("low", np.float32(0)), ("start", np.int64(0)), ("true", np.bool_(True))]  # fmt: skip
    build = lambda nodes, outputs=("y",): random_test.graph(nodes, [("x", x)], outputs, known)

    def found(name, column, low="low"):
        """The rows of x whose |column| is above |low|: how many only a run tells."""
        return [node("Gather", ["x", column], [name + "c"], axis=1), node("Greater", [name + "c", low], [name + "m"]),
                node("NonZero", [name + "m"], [name + "n"]), node("Transpose", [name + "n"], [name + "t"]),
                node("GatherND", ["x", name + "t"], [name])]  # fmt: skip

    some = found("s", "first")
    size = [node("Shape", ["s"], ["sh"]), node("Gather", ["sh", "first"], ["k"]), node("Unsqueeze", ["k", "axis"], ["k1"])]
    least = [node("Concat", ["three", "k1"], ["both"], axis=0), node("ReduceMin", ["both"], ["least"], keepdims=0),
             node("Reshape", ["least", "all"], ["few"])]  # fmt: skip
    column = [node("Gather", ["s", "second"], ["score"], axis=1)]
    top = [node("TopK", ["score", "few"], ["y", "z"])]
    yield "the best three, or fewer", *build(some + size + least + column + top, ("y", "z"))
    wide = [node("Shape", ["sh"], ["rank"]), node("ConstantOfShape", ["rank"], ["ones"], value=h.make_tensor("v", TP.INT64, [1], [1])),
            node("Mul", ["ones", "minus"], ["neg"]), node("Equal", ["sh", "neg"], ["is"]),
            node("Where", ["is", "ones", "sh"], ["to"])]  # fmt: skip
    spread = [node("ReduceMax", ["s"], ["m"], axes=[1], keepdims=1), node("Expand", ["m", "to"], ["y"])]
    yield "expanded", *build(some + size + wide + spread)
    count = [node("Gather", ["sh", "second"], ["n"]), node("Range", ["start", "n", "step"], ["y"])]
    yield "a range of what is known", *random_test.graph(some + size + count, [("x", x)], ("y", "s"), known + [("step", np.int64(1))])
    parts, lows = [], [(f"low{i}", np.float32(i / 20 - 1)) for i in range(90)]
    for i in range(90):
        parts += found(f"p{i}", "first", f"low{i}")
        parts += [node("Shape", [f"p{i}"], [f"h{i}"]), node("ConstantOfShape", [f"h{i}"], [f"o{i}"], value=h.make_tensor("v", TP.FLOAT, [1], [i]))]
    joined = [node("Concat", [f"p{i}" for i in range(90)], ["a"], axis=0), node("Concat", [f"o{i}" for i in range(90)], ["b"], axis=0)]
    add = h.make_graph([node("Add", ["a", "b"], ["then"])], "t", [], [h.make_tensor_value_info("then", TP.FLOAT, None)])
    keep = h.make_graph([node("Identity", ["a"], ["else"])], "e", [], [h.make_tensor_value_info("else", TP.FLOAT, None)])
    taken = [node("ReduceMax", ["x"], ["top"], keepdims=0), node("Greater", ["top", "low"], ["any"]), node("If", ["any"], ["y"], then_branch=add, else_branch=keep)]
    yield "ninety parts and as many again", *random_test.graph(parts + joined + taken, [("x", x)], ("y",), known + lows)


def main():
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as e:
        print(f"skipped: {e}; tools/requirements.txt lists what is needed")
        return 77
    import contrib

    case, wrong = type("Case", (), dict(rtol=1e-5, atol=1e-6, near=0, steps=0)), 0
    for name, model, arrays in models():
        want, why = contrib.run_peer(model, arrays)
        if want is None:
            wrong += 1
            print(f"{name}: ONNX Runtime does not run it: {why}")
            continue
        for device in ("ref", "llvm"):
            got, why = contrib.run_pestle(model, arrays, device)
            for g, w in zip(got or (), want):
                why = why or contrib.differ(g, w, None, case)
            if why:
                wrong += 1
                print(f"{name} on {device}: {why}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
