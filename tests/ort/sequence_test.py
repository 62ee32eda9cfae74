#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sequences as states of loops, in branches, functions and SequenceMap, and optionals,
against ONNX Runtime. Exits 77, "skipped", when a Python package is missing."""

import sys


def models():
    """(name, model, arrays)"""
    import numpy as np
    from onnx import TensorProto as TP
    from onnx import helper as h

    import random_test

    r = np.random.default_rng(5)
    x = r.standard_normal((4, 3)).astype(np.float32)
    node, tensor = h.make_node, h.make_tensor_value_info
    sequence = lambda n: h.make_tensor_sequence_value_info(n, TP.FLOAT, None)
    i, c, d = tensor("i", TP.INT64, []), tensor("c", TP.BOOL, []), tensor("d", TP.BOOL, [])
    four, true = ("n", np.int64(4)), ("t", np.bool_(True))
    stack = node("ConcatFromSequence", ["o"], ["y"], axis=0, new_axis=1)
    empty = node("SequenceEmpty", [], ["e"], dtype=TP.FLOAT)

    def loop(nodes, more_in=(), more_out=(), names=("o",), states=("e",), n="n"):
        body = h.make_graph(nodes + [node("Identity", ["c"], ["d"])], "b", [i, c, sequence("s"), *more_in], [d, sequence("s2"), *more_out])
        return node("Loop", [n, "t", *states], list(names), body=body)

    square = [node("Gather", ["x", "i"], ["v"]), node("Mul", ["v", "v"], ["w"])]
    insert = node("SequenceInsert", ["s", "w"], ["s2"])
    build = lambda nodes, known=(four, true), outputs=("y",): random_test.graph(nodes, [("x", x)], outputs, known)
    yield "appended", *build([empty, loop(square + [insert]), stack])
    front = node("SequenceInsert", ["s", "w", "zero"], ["s2"])
    yield "put in front", *build([empty, loop(square + [front]), stack], (four, true, ("zero", np.int64(0))))
    more = [node("Identity", ["v"], ["row"])]
    both = loop(square + [insert] + more, more_out=[tensor("row", TP.FLOAT, [3])], names=("o", "rows"))
    yield "beside rows", *build([empty, both, stack], outputs=("y", "rows"))
    state = [node("Add", ["a", "w"], ["a2"])]
    carried = loop(square + [insert] + state, [tensor("a", TP.FLOAT, [3])], [tensor("a2", TP.FLOAT, [3])], ("o", "sum"), ("e", "zero"))
    yield "beside a state", *build([empty, carried, stack], (four, true, ("zero", np.zeros(3, np.float32))), ("y", "sum"))
    last = [node("SequenceAt", ["o", "m"], ["y"]), node("SequenceLength", ["o"], ["l"])]
    yield "asked", *build([empty, loop(square + [insert])] + last, (four, true, ("m", np.int64(-1))), ("y", "l"))
    lone = [node("SequenceConstruct", ["x", "x"], ["e"]), loop([node("SequenceErase", ["s"], ["s2"])], n="one")]
    yield "taken from", *build(lone + [stack], (("one", np.int64(1)), true))
    none = [node("SequenceConstruct", ["x", "x"], ["e"]), loop([node("SequenceErase", ["s"], ["s2"])])]
    yield "no trip", *build(none + [stack], (("n", np.int64(0)), true))
    inner = h.make_graph([node("Exp", ["v"], ["w"]), node("Identity", ["v"], ["z"])], "m", [tensor("v", TP.FLOAT, None)], [tensor("w", TP.FLOAT, None), tensor("z", TP.FLOAT, None)])
    parts = node("SplitToSequence", ["x"], ["s"], axis=0)
    mapped = [parts, node("SequenceMap", ["s"], ["o", "p"], body=inner), stack]
    yield "mapped", *build(mapped + [node("ConcatFromSequence", ["p"], ["z"], axis=1)], (), ("y", "z"))
    two = h.make_graph([node("Sub", ["v", "u"], ["w"])], "m", [tensor("v", TP.FLOAT, None), tensor("u", TP.FLOAT, None)], [tensor("w", TP.FLOAT, None)])
    yield "mapped beside a tensor", *build([parts, node("SequenceMap", ["s", "x"], ["o"], body=two), stack], ())
    yield "mapped beside another", *build([parts, node("SequenceMap", ["s", "s"], ["o"], body=two), stack], ())
    branch = lambda n: h.make_graph([node("SequenceConstruct", n, ["q"])], "b", [], [sequence("q")])
    chosen = node("If", ["t"], ["o"], then_branch=branch(["x", "x"]), else_branch=branch(["x"]))
    yield "chosen", *build([chosen, stack], (true,))
    known = [node("Optional", ["x"], ["a"]), node("OptionalGetElement", ["a"], ["y"]), node("OptionalHasElement", ["a"], ["z"])]
    yield "an optional", *build(known, (), ("y", "z"))
    kind = h.make_tensor_type_proto(TP.FLOAT, None)
    yield "an empty optional", *build([node("Optional", [], ["a"], type=kind), node("OptionalHasElement", ["a"], ["y"])], ())


def refusals():
    """(what is wrong, model, arrays, what the sentence must hold)"""
    import numpy as np
    from onnx import TensorProto as TP
    from onnx import helper as h

    import random_test

    node, x = h.make_node, np.ones((2, 2), np.float32)
    stack = node("ConcatFromSequence", ["o"], ["y"], axis=0)
    build = lambda nodes: random_test.graph(nodes, [("x", x)])
    pair = [node("SplitToSequence", ["x"], ["s"]), node("SequenceConstruct", ["x"], ["u"])]
    tensor = h.make_tensor_value_info
    two = h.make_graph([node("Sub", ["v", "u"], ["w"])], "m", [tensor("v", TP.FLOAT, None), tensor("u", TP.FLOAT, None)], [tensor("w", TP.FLOAT, None)])
    yield "lists differ in length", *build(pair + [node("SequenceMap", ["s", "u"], ["o"], body=two), stack]), "sequences as long"
    kind = h.make_tensor_type_proto(TP.FLOAT, None)
    yield "nothing is taken", *build([node("Optional", [], ["a"], type=kind), node("OptionalGetElement", ["a"], ["y"])]), "without an element"


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
            for k, w in enumerate(want if got else ()):
                why = why or contrib.differ(got[k], np_array(w), None, case)
            if why:
                wrong += 1
                print(f"{name} on {device}: {why}")
    for name, model, arrays, sentence in refusals():
        got, why = contrib.run_pestle(model, arrays, "ref")
        if got is not None or sentence not in why:
            wrong += 1
            print(f"{name}: not refused by '{sentence}': {why}")
    return 1 if wrong else 0


def np_array(x):
    import numpy as np

    return np.asarray(x)


if __name__ == "__main__":
    sys.exit(main())
