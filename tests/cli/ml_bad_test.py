#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of ai.onnx.ml that are wrong, each refused with a sentence; and strings that
go in and come out of `pestle run`, of a model and of its plan. Exits 77 without onnx."""

import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from onnx import TensorProto as T
    from onnx import helper, numpy_helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

PESTLE = os.path.join(os.environ["PESTLE_BUILD_DIR"], "pestle")
ML, MS = "ai.onnx.ml", "com.microsoft"
failures = []


def model(op, attrs, kinds=(T.FLOAT,), outputs=(T.FLOAT,), opset=3, domain=ML, shape=(2, 3)):
    names = [f"x{i}" for i in range(len(kinds))]
    results = [f"y{i}" for i in range(len(outputs))]
    node = helper.make_node(op, names, results, domain=domain, **attrs)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, k, shape) for n, k in zip(names, kinds)],
        [helper.make_tensor_value_info(n, k, None) for n, k in zip(results, outputs)])  # fmt: skip
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid(ML, opset)])  # fmt: skip


def run(data, inputs, *options):
    """The outputs, or the message; and the exit code."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "m.onnx"
        path.write_bytes(data if isinstance(data, bytes) else data.SerializeToString())
        command = [PESTLE, "run", path, "--device", "ref", "--no-cache", "--outputs", folder / "out", *options]
        for i, a in enumerate(inputs):
            if isinstance(a, str):
                command += ["--input", f"x{i}={a}"]
                continue
            np.save(folder / f"x{i}.npy", a)
            command += ["--input", f"x{i}={folder}/x{i}.npy"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr, done.returncode
        count = len(list((folder / "out").glob("output_*.npy")))
        return [np.load(folder / "out" / f"output_{i}.npy") for i in range(count)], 0


def refused(what, data, says, inputs=(np.zeros((2, 3), np.float32),)):
    got, code = run(data, inputs)
    if not isinstance(got, str) or says not in got or code in (134, 139) or code < 0:
        failures.append(f"{what}: {code} {got!r}, it should say {says!r}")


def tree(**changes):
    attrs = dict(nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0],
                 nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values=[0.0, 0.0, 0.0],
                 nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], target_treeids=[0, 0],
                 target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[1.0, 2.0], n_targets=1)  # fmt: skip
    return model("TreeEnsembleRegressor", attrs | changes)


def trees():
    branch = ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"]
    refused("cycle", tree(nodes_modes=branch, nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 2, 0],
                          target_nodeids=[2, 2]), "no cycles")  # fmt: skip
    refused("itself", tree(nodes_truenodeids=[0, 0, 0]), "which is itself")
    refused("dangling", tree(nodes_truenodeids=[7, 0, 0]), "leads to node 7, which the tree lacks")
    refused("twice", tree(nodes_nodeids=[0, 1, 1]), "has node 1 twice")
    refused("weight of none", tree(target_nodeids=[1, 9]), "node 9 of tree 0")
    refused("target", tree(target_ids=[0, 3]), "target 3 of 1")
    refused("feature", tree(nodes_featureids=[5, 0, 0]), "feature 5")
    refused("mode", tree(nodes_modes=["BRANCH_UP", "LEAF", "LEAF"]), "'BRANCH_UP'")
    refused("lengths", tree(nodes_values=[0.0]), "not of one length")
    refused("aggregate", tree(aggregate_function="MEDIAN"), "'MEDIAN'")
    refused("transform", tree(post_transform="TANH"), "'TANH'")
    refused("no targets", tree(n_targets=0), "0 targets")


def dictionaries():
    refused("double key", model("LabelEncoder", dict(keys_floats=[1.0, 1.0], values_floats=[2.0, 3.0])), "a key twice")
    words = (np.array([["a", "b", "c"]] * 2),)
    refused("double word", model("LabelEncoder", dict(keys_strings=["a", "a"], values_int64s=[1, 2]),
                                 (T.STRING,), (T.INT64,)), "a key twice", words)  # fmt: skip
    refused("two kinds of keys", model("LabelEncoder", dict(keys_strings=["a"], keys_int64s=[1], values_floats=[2.0])), "both 'keys_strings' and 'keys_int64s'")  # fmt: skip
    refused("two kinds of a map", model("ZipMap", dict(classlabels_strings=["a", "b", "c"], classlabels_int64s=[1, 2, 3])), "of which one can be meant")  # fmt: skip
    refused("another kind of input", model("LabelEncoder", dict(keys_int64s=[1], values_floats=[2.0])), "its keys are of i64, its input of f32")
    refused("fewer values", model("LabelEncoder", dict(keys_floats=[1.0, 2.0], values_floats=[2.0])), "2 keys and 1 values")
    bad = model("LabelEncoder", dict(keys_strings=[b"\xff\xfe"], values_int64s=[1]), (T.STRING,), (T.INT64,))
    refused("no UTF-8", bad, "no UTF-8", words)
    plus = model("Add", {}, (T.STRING, T.STRING), (T.STRING,), domain="")
    refused("Add of strings", plus, "is of strings", words * 2)
    for op, kinds in (("Concat", (T.STRING, T.INT32)), ("Equal", (T.INT32, T.STRING)),
                      ("Where", (T.BOOL, T.STRING, T.INT32))):  # fmt: skip
        attrs = {"axis": 0} if op == "Concat" else {}
        mixed = model(op, attrs, kinds, (T.STRING,), domain="")
        given = {T.STRING: words[0], T.INT32: np.zeros((2, 3), np.int32), T.BOOL: np.ones((2, 3), bool)}
        refused(f"{op} of two types", mixed, "have to be of one type", [given[k] for k in kinds])
    numbers = model("Identity", {}, (T.STRING,), (T.STRING,), domain="")
    refused("numbers for strings", numbers, "is given numbers")
    refused("strings for numbers", model("Identity", {}, domain=""), "is given strings", words)
    got, code = run(numbers, (np.array([[b"\xff", b"a", b"b"]] * 2),))
    if not code or "no UTF-8" not in str(got):
        failures.append(f"bytes that are no UTF-8: {got!r}")


def agree(what, data, inputs, want, *options):
    got, _ = run(data, inputs, *options)
    if isinstance(got, str) or got[0].shape != np.shape(want) or not (got[0] == np.asarray(want)).all():
        failures.append(f"{what}: {got!r}, right is {want!r}")


def strings():
    x = np.array([["red", "grün", "色"], ["", "new", "red"]])
    same = model("Identity", {}, (T.STRING,), (T.STRING,), domain="")
    agree("identity", same, (x,), x)
    agree("a word", same, ("word",), np.full((2, 3), "word"))
    encoder = model("LabelEncoder", dict(keys_strings=["red", "色", "grün"], values_int64s=[1, 2, 3]), (T.STRING,), (T.INT64,))
    agree("keys", encoder, (x,), [[1, 3, 2], [-1, -1, 1]])
    equal = model("Equal", {}, (T.STRING, T.STRING), (T.BOOL,), domain="")
    agree("equal", equal, (x, x[::-1].copy()), x == x[::-1])
    decoder = model("LabelEncoder", dict(keys_int64s=[1, 2], values_strings=["one", "zwei"]), (T.INT64,), (T.STRING,))
    numbers = np.array([[1, 2, 3], [2, 2, 1]])
    agree("values", decoder, (numbers,), [["one", "zwei", "_Unused"], ["zwei", "zwei", "one"]])
    with tempfile.TemporaryDirectory() as name:
        plan = pathlib.Path(name) / "m.plan"
        got, code = run(encoder, (x,), "--save-plan", plan)
        if code:
            failures.append(f"a plan: {got}")
            return
        agree("a plan", plan.read_bytes(), (x,), [[1, 3, 2], [-1, -1, 1]])
        odd = np.array([['"', "a\nb", "\t\\n"], ["\x01", "\\", 'é"n']])
        keys = model("LabelEncoder", dict(keys_strings=odd.ravel().tolist(), values_int64s=range(6)), (T.STRING,), (T.INT64,))
        got, code = run(keys, (odd,), "--save-plan", plan)
        if code:
            failures.append(f"a plan with odd keys: {got}")
            return
        agree("odd keys", plan.read_bytes(), (odd,), [[0, 1, 2], [3, 4, 5]])
        # The graph as text has the strings too, and is read again.
        path, text = pathlib.Path(name) / "m.onnx", pathlib.Path(name) / "m.mlir"
        path.write_bytes(encoder.SerializeToString())
        command = [PESTLE, "dump", path, "--stage", "graph", "--full"]
        text.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
        agree("text", text.read_bytes(), (x,), [[1, 3, 2], [-1, -1, 1]])
    hot = model("OneHotEncoder", dict(cats_strings=["red", "blue"], zeros=0), (T.STRING,), (T.FLOAT,))
    got, code = run(hot, (x,))
    if not code or "category" not in str(got):
        failures.append(f"an unknown category with zeros = 0: {got!r}")
    known = np.array([["red", "red", "blue"]] * 2)
    numbers = model("OneHotEncoder", dict(cats_int64s=[0, 1, 2]))
    x = np.array([[np.nan, 1, 2.5], [7, -0.5, 0]], np.float32)
    agree("NaN is of no category", numbers, (x,),
          (np.trunc(x)[..., None] == np.arange(3)).astype(np.float32))
    agree("known categories", hot, (known,), np.stack([known == "red", known == "blue"], 2).astype(np.float32))


def same(what, data, inputs, want):
    """agree(), of numbers among which NaN is one."""
    got, _ = run(data, inputs)
    if isinstance(got, str) or not np.array_equal(got[0], want, equal_nan=got[0].dtype.kind == "f"):
        failures.append(f"{what}: {got!r}, right is {want!r}")


def not_numbers():
    """What ONNX Runtime makes of NaN, where the text says nothing."""
    nan = np.nan
    x = np.array([[1, nan, 2], [nan, 1, 2], [nan, nan, nan], [-1, nan, -2], [nan, 0, -1], [-np.inf] * 3],
                 np.float32)
    want = np.array([[0.5, nan, 1], [nan, 0.5, 1], [nan] * 3, [1, nan, 2], [nan, 0, -1], [np.inf] * 3],
                    np.float32)
    same("Normalizer of NaN", model("Normalizer", dict(norm="MAX"), shape=x.shape), (x,), want)
    for scores, right in (([nan, 0, 0], 0), ([0, nan, 0.5], 2), ([0.5, nan, 0], 0), ([nan] * 3, 0),
                          ([nan, np.inf, 0], 0), ([0, 0.5, nan], 1), ([-np.inf] * 3, 0)):  # fmt: skip
        attrs = dict(coefficients=[0.0] * 9, intercepts=scores, classlabels_ints=[0, 1, 2])
        same(f"the class of {scores}", model("LinearClassifier", attrs, outputs=(T.INT64, T.FLOAT)),
             (np.zeros((2, 3), np.float32),), [right] * 2)  # fmt: skip


def attributes():
    """One that an op does not have is refused, of each op of the domain."""
    for op in ("Binarizer CastMap CategoryMapper DictVectorizer FeatureVectorizer Imputer LabelEncoder "
               "LinearClassifier LinearRegressor Normalizer OneHotEncoder SVMClassifier SVMRegressor Scaler "
               "TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor ZipMap").split():  # fmt: skip
        refused(op, model(op, {"shift": 1}, opset=5), "attribute 'shift' is none that Pestle knows")
    pick = stored(helper.make_node("ArrayFeatureExtractor", ["x0", "at"], ["y0"], domain=ML, shift=1),
                  at=np.array([0]))  # fmt: skip
    refused("ArrayFeatureExtractor", pick, "attribute 'shift' is none")


def stored(node, shape=(2, 3), sparse=(), **weights):
    """A model of |node| on x0 of |shape| and on stored tensors."""
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x0", T.FLOAT, shape)],
        [helper.make_tensor_value_info("y0", T.FLOAT, None)],
        [numpy_helper.from_array(a, n) for n, a in weights.items()], sparse_initializer=sparse)  # fmt: skip
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 23), helper.make_opsetid(ML, 3), helper.make_opsetid(MS, 1)])  # fmt: skip


def places():
    """Indices that are known and lie outside, and those of sparse tensors."""
    pick = helper.make_node("ArrayFeatureExtractor", ["x0", "at"], ["y0"], domain=ML)
    for bad in ([3], [0, -1], [7] * 4):
        refused(f"features {bad}", stored(pick, at=np.array(bad)), f"it takes place {bad[-1]} of 3")
    rows, table = np.zeros((2, 4, 8), np.float32), np.zeros((5, 4), np.float32)
    turn = helper.make_node("RotaryEmbedding", ["x0", "c", "s", "at"], ["y0"], num_heads=1)
    turned = helper.make_node("RotaryEmbedding", ["x0", "at", "c", "s"], ["y0"], domain=MS)
    at = np.array([[0, 1, 2, 3], [1, 2, 3, 5]])
    for node in (turn, turned):
        refused("a position behind the table", stored(node, rows.shape, c=table, s=table, at=at),
                "it takes place 5 of 5", (rows,))  # fmt: skip
    block = helper.make_node("GatherBlockQuantized", ["d", "at", "s"], ["y0"], domain=MS, block_size=16)
    blocks = stored(block, d=np.zeros((4, 8), np.uint8), s=np.ones((4, 1), np.float32), at=np.array([4]))
    refused("a row behind the last", blocks, "index 4 is outside of axis 0")
    plus = helper.make_node("Add", ["x0", "w"], ["y0"])
    value = helper.make_tensor("w", T.FLOAT, [2], [1.0, 2.0])
    for where, says in (([1, 4], [[0, 1, 0], [0, 2, 0]]), ([4, 1], [[0, 2, 0], [0, 1, 0]]),
                        ([4, 4], "in a place that another one has"), ([1, 6], "outside of it")):  # fmt: skip
        flat = helper.make_tensor("i", T.INT64, [2], where)
        pairs = helper.make_tensor("i", T.INT64, [2, 2], [n for i in where for n in divmod(i, 3)])
        for indices in (flat, pairs):
            data = stored(plus, sparse=[helper.make_sparse_tensor(value, indices, [2, 3])])
            if isinstance(says, str):
                refused(f"places {where}", data, says)
            else:
                agree(f"places {where}", data, (np.zeros((2, 3), np.float32),), says)
    narrow = helper.make_sparse_tensor(value, helper.make_tensor("i", T.INT32, [2], [1, 4]), [2, 3])
    refused("places of 32 bits", stored(plus, sparse=[narrow]), "of sparse tensor 'w' are i32")


def main():
    trees()
    attributes()
    places()
    not_numbers()
    dictionaries()
    strings()
    for line in failures:
        print(line)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
