# SPDX-License-Identifier: Apache-2.0
"""Nodes of ai.onnx.ml with random attributes and inputs, and what ONNX Runtime's CPU
kernels make of them. What is drawn follows from a seed alone."""

import os
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T
from onnx import helper

ML = "ai.onnx.ml"
PESTLE = os.path.join(os.environ.get("PESTLE_BUILD_DIR", ""), "pestle")
POSTS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
OF = {"float32": T.FLOAT, "float64": T.DOUBLE, "int32": T.INT32, "int64": T.INT64}


def by_text(case):
    """TreeEnsemble as its text has it: ONNX Runtime 1.31 takes SOFTMAX and LOGISTIC for
    each other there, and is wrong about sets with negative members."""
    a = {k: onnx.numpy_helper.to_array(v) if hasattr(v, "dims") else v for k, v in case.attrs.items()}
    sets, members = [set()], []
    for v in a.get("membership_values", []):
        if np.isnan(v):
            sets.append(set())
        else:
            sets[-1].add(v)
    for mode in a["nodes_modes"]:
        members.append(sets.pop(0) if mode == 6 else ())
    tracks = a.get("nodes_missing_value_tracks_true", [0] * len(members))
    out = np.zeros((len(case.inputs[0]), a["n_targets"]))
    for i, row in enumerate(case.inputs[0]):
        said = [[] for _ in out[i]]
        for at in a["tree_roots"]:
            leaf = False
            while not leaf:
                v, t = row[a["nodes_featureids"][at]], a["nodes_splits"][at]
                goes = [v <= t, v < t, v >= t, v > t, v == t, v != t, v in members[at]][a["nodes_modes"][at]]
                way = "true" if goes or (np.isnan(v) and tracks[at]) else "false"
                leaf, at = a[f"nodes_{way}leafs"][at], a[f"nodes_{way}nodeids"][at]
            said[a["leaf_targetids"][at]].append(float(a["leaf_weights"][at]))
        how = [lambda s: sum(s) / len(a["tree_roots"]), sum, min, max][a["aggregate_function"]]
        out[i] = [how(s) if s else 0 for s in said]
    if a["n_targets"] > 1 and a["post_transform"]:
        e = np.exp(out - out.max(1, keepdims=True))
        zero = (np.abs(out) <= 1e-7) & (a["post_transform"] == 3)
        some = np.where(zero, 0, e).sum(1, keepdims=True)
        out = 1 / (1 + np.exp(-out)) if a["post_transform"] == 2 else np.where(zero, 0 * out, e) / some
    return [out.astype(case.inputs[0].dtype)]


class Case:
    """One node: its op, attributes, inputs, and the kinds of its outputs."""

    def __init__(self, op, attrs, inputs, outputs, opset=1, rtol=1e-4, atol=1e-5):
        self.op, self.attrs, self.inputs = op, attrs, inputs
        self.outputs, self.opset, self.rtol, self.atol = outputs, opset, rtol, atol

    def model(self):
        names = [f"x{i}" for i in range(len(self.inputs))]
        results = [f"y{i}" for i in range(len(self.outputs))]
        node = helper.make_node(self.op, names, results, domain=ML, **self.attrs)
        graph = helper.make_graph(
            [node], "g",
            [helper.make_tensor_value_info(n, of(a), a.shape)
             for n, a in zip(names, self.inputs)],
            [helper.make_tensor_value_info(n, t, None)
             for n, t in zip(results, self.outputs)])  # fmt: skip
        return helper.make_model(
            graph, ir_version=8,
            opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(ML, self.opset)])  # fmt: skip

    def expected(self):
        if self.op == "TreeEnsemble":
            return by_text(self)
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(self.model().SerializeToString(), options,
                                       providers=["CPUExecutionProvider"])  # fmt: skip
        feeds = {f"x{i}": a for i, a in enumerate(self.inputs)}
        return session.run(None, feeds)

    def __str__(self):
        shown = {k: v for k, v in self.attrs.items()
                 if isinstance(v, (int, float, str)) or isinstance(v, list) and len(v) < 8}  # fmt: skip
        shapes = [f"{a.dtype}{list(a.shape)}" for a in self.inputs]
        return f"{self.op} opset {self.opset} {shown} of {shapes}"


def of(array):
    return T.STRING if array.dtype.kind in "OU" else OF[str(array.dtype)]


def floats(values):
    return [float(v) for v in np.asarray(values, np.float32).ravel()]


def features(r, kinds, rows=None, width=None, integers=False):
    """An array of one of |kinds|; rows of features, now and then one row alone."""
    width = width or int(r.integers(1, 9))
    rows = rows if rows is not None else int(r.choice([1, 2, 5, 17, 33]))
    kind = np.dtype(r.choice(kinds))
    x = r.standard_normal((rows, width)) * 2
    if kind.kind == "i" or integers:
        x = np.round(x)
    return x.astype(kind)


ALL = ["float32", "float64", "int32", "int64"]


def scaler(r):
    x = features(r, ALL)
    n = x.shape[1] if r.random() < 0.7 else 1
    return Case("Scaler", {"offset": floats(r.standard_normal(n)), "scale": floats(r.standard_normal(n))},
                [x], [T.FLOAT])  # fmt: skip


def normalizer(r):
    x = features(r, ALL)
    if r.random() < 0.3:
        x[0] = 0
    return Case("Normalizer", {"norm": str(r.choice(["MAX", "L1", "L2"]))}, [x], [T.FLOAT])


def imputer(r):
    x = features(r, ["float32", "int64"], integers=True)
    n = x.shape[1] if r.random() < 0.7 else 1
    if x.dtype == np.int64:
        return Case("Imputer", {"imputed_value_int64s": [int(v) for v in r.integers(-9, 9, n)],
                                "replaced_value_int64": int(r.integers(-1, 2))}, [x], [T.INT64])  # fmt: skip
    old = float(r.choice([0.0, 1.0, np.nan]))
    if np.isnan(old):
        x[r.random(x.shape) < 0.3] = np.nan
    return Case("Imputer", {"imputed_value_floats": floats(r.standard_normal(n)),
                            "replaced_value_float": old}, [x], [T.FLOAT])  # fmt: skip


def binarizer(r):
    x = features(r, ["float32"])
    return Case("Binarizer", {"threshold": float(np.float32(r.standard_normal()))}, [x], [T.FLOAT])


def extractor(r):
    x = features(r, ALL)
    if r.random() < 0.2:
        x = x[0]
    at = r.integers(0, x.shape[-1], int(r.integers(1, 6))).astype(np.int64)
    return Case("ArrayFeatureExtractor", {}, [x, at], [of(x)])


def vectorizer(r):
    rows = int(r.integers(1, 6))
    xs = [features(r, [str(r.choice(ALL))] if False else ["float32"], rows) for _ in range(int(r.integers(1, 4)))]
    widths = [int(max(1, x.shape[1] + r.integers(-1, 3))) for x in xs]
    return Case("FeatureVectorizer", {"inputdimensions": widths}, xs, [T.FLOAT])


def labels(r, count, key="classlabels_ints"):
    if r.random() < 0.5:
        return {key: list(range(count))}
    return {key: [int(v) for v in r.permutation(100)[:count]]}


def linear_classifier(r):
    x = features(r, ALL)
    n = int(r.choice([1, 2, 3, 7]))
    attrs = {"coefficients": floats(r.standard_normal((n, x.shape[1]))),
             "intercepts": floats(r.standard_normal(n)), "post_transform": str(r.choice(POSTS)),
             "multi_class": int(r.integers(0, 2))}  # fmt: skip
    attrs |= labels(r, 2 if n == 1 else n)
    return Case("LinearClassifier", attrs, [x], [T.INT64, T.FLOAT])


def linear_regressor(r):
    x = features(r, ["float32"])
    n = int(r.choice([1, 2, 5]))
    attrs = {"coefficients": floats(r.standard_normal((n, x.shape[1]))), "targets": n,
             "post_transform": str(r.choice(POSTS))}  # fmt: skip
    if r.random() < 0.7:
        attrs["intercepts"] = floats(r.standard_normal(n))
    return Case("LinearRegressor", attrs, [x], [T.FLOAT])


def kernel(r):
    return {"kernel_type": str(r.choice(["LINEAR", "POLY", "RBF", "SIGMOID"])),
            "kernel_params": floats([r.random() * 0.5, r.standard_normal(), r.choice([2, 3])])}  # fmt: skip


def svm_regressor(r):
    x = features(r, ["float32"])
    n = int(r.choice([0, 1, 4, 11]))
    attrs = kernel(r) | {"rho": floats(r.standard_normal(1)), "n_supports": n,
                         "one_class": int(r.integers(0, 2))}  # fmt: skip
    if n:
        attrs["support_vectors"] = floats(r.standard_normal((n, x.shape[1])))
    attrs["coefficients"] = floats(r.standard_normal(n or x.shape[1]))
    return Case("SVMRegressor", attrs, [x], [T.FLOAT], rtol=1e-3, atol=1e-3)


def svm_classifier(r):
    x = features(r, ALL)
    classes = int(r.choice([2, 2, 3, 4]))
    attrs = kernel(r) | labels(r, classes)
    pairs = classes * (classes - 1) // 2
    if r.random() < 0.3:
        attrs["coefficients"] = floats(r.standard_normal((classes, x.shape[1])))
        attrs["rho"] = floats(r.standard_normal(1))
        attrs["post_transform"] = str(r.choice(POSTS))
        return Case("SVMClassifier", attrs, [x], [T.INT64, T.FLOAT], rtol=1e-3, atol=1e-3)
    each = [int(v) for v in r.integers(1, 5, classes)]
    n = sum(each)
    attrs |= {"vectors_per_class": each, "support_vectors": floats(r.standard_normal((n, x.shape[1]))),
              "coefficients": floats(r.standard_normal((classes - 1, n)) * 0.3),
              "rho": floats(r.standard_normal(pairs)), "post_transform": str(r.choice(POSTS))}  # fmt: skip
    if r.random() < 0.5:
        attrs |= {"prob_a": floats(-r.random(pairs)), "prob_b": floats(r.standard_normal(pairs) * 0.1)}
    return Case("SVMClassifier", attrs, [x], [T.INT64, T.FLOAT], rtol=2e-3, atol=2e-3)


# --- Trees ---


class Tree:
    def __init__(self, r, width, modes, deepest):
        self.rows, self.leaves = [], []
        self.grow(r, width, modes, deepest)

    def grow(self, r, width, modes, depth):
        at = len(self.rows)
        if depth == 0 or (at and r.random() < 0.25):
            self.rows.append(["LEAF", 0, 0.0, 0, 0, 0])
            self.leaves.append(at)
            return at
        mode = str(r.choice(modes))
        value = float(np.float32(r.standard_normal()))
        if mode in ("BRANCH_EQ", "BRANCH_NEQ") or r.random() < 0.3:
            value = float(r.integers(-2, 3))
        row = [mode, int(r.integers(0, width)), value, 0, 0, int(r.integers(0, 2))]
        self.rows.append(row)
        row[4] = self.grow(r, width, modes, depth - 1)
        row[3] = self.grow(r, width, modes, depth - 1)
        return at


def forest(r, width, role, targets, of_tree, double, opset):
    """Attributes of trees; |of_tree| says which targets a tree's leaves speak of."""
    modes = [str(r.choice(MODES))] if r.random() < 0.6 else MODES
    trees = [Tree(r, width, modes, int(r.choice([1, 3, 6]))) for _ in range(int(r.choice([1, 3, 10, 40])))]
    k = {f"nodes_{n}": [] for n in ("treeids nodeids modes featureids values truenodeids falsenodeids "
                                    "missing_value_tracks_true").split()}  # fmt: skip
    w = {f"{role}_{n}": [] for n in "treeids nodeids ids weights".split()}
    positive = r.random() < 0.4
    for t, tree in enumerate(trees):
        for n, row in enumerate(tree.rows):
            for key, value in zip(k, [t, n, *row]):
                k[key].append(value)
        for n in tree.leaves:
            for target in of_tree(t):
                value = r.standard_normal()
                for key, v in zip(w, [t, n, int(target), float(np.float32(abs(value) if positive else value))]):
                    w[key].append(v)
    if r.random() < 0.5:
        del k["nodes_missing_value_tracks_true"]
    if double and opset >= 3:
        for group, key in ((k, "nodes_values"), (w, f"{role}_weights")):
            values = group.pop(key)
            group[key + "_as_tensor"] = helper.make_tensor("t", T.DOUBLE, [len(values)], values)
    return k | w


def tree_input(r, kinds=ALL):
    x = features(r, kinds)
    whole = r.random(x.shape) < 0.4
    x[whole] = np.round(x[whole])
    if x.dtype.kind == "f" and r.random() < 0.5:
        x[r.random(x.shape) < 0.2] = np.nan
        x[r.random(x.shape) < 0.05] = np.inf
    return x


def tree_regressor(r):
    x, opset = tree_input(r, ALL[:2]), int(r.choice([1, 3]))
    n = int(r.choice([1, 1, 2, 5]))
    double = x.dtype == np.float64
    of_tree = [lambda t: range(n), lambda t: [t % n]][int(r.integers(0, 2))]
    attrs = forest(r, x.shape[1], "target", n, of_tree, double, opset)
    attrs |= {"n_targets": n, "aggregate_function": str(r.choice(["SUM", "AVERAGE", "MIN", "MAX"])),
              "post_transform": str(r.choice(POSTS))}  # fmt: skip
    # ONNX Runtime leaves them out for a target that no leaf speaks of.
    if r.random() < 0.5 and len(set(attrs["target_ids"])) == n:
        values = floats(r.standard_normal(n))
        if double and opset >= 3:
            attrs["base_values_as_tensor"] = helper.make_tensor("b", T.DOUBLE, [n], values)
        else:
            attrs["base_values"] = values
    return Case("TreeEnsembleRegressor", attrs, [x], [T.FLOAT], opset)


def tree_classifier(r):
    """Two classes whose leaves speak of both are left out: there ONNX Runtime says 0
    and 1 whatever the labels are called."""
    x, opset = tree_input(r), int(r.choice([1, 3]))
    n = int(r.choice([2, 3, 6]))
    double = x.dtype == np.float64
    if n == 2:
        alone = int(r.integers(0, 2))
        of_tree = lambda t: [alone]  # noqa: E731
    else:
        of_tree = [lambda t: range(n), lambda t: [t % n]][int(r.integers(0, 2))]
    attrs = forest(r, x.shape[1], "class", n, of_tree, double, opset)
    attrs |= labels(r, n, "classlabels_int64s") | {"post_transform": str(r.choice(POSTS))}
    if r.random() < 0.4 and (n > 2 or alone == 0):
        values = floats(r.standard_normal(1 if n == 2 else n))
        if double and opset >= 3:
            attrs["base_values_as_tensor"] = helper.make_tensor("b", T.DOUBLE, [len(values)], values)
        else:
            attrs["base_values"] = values
    return Case("TreeEnsembleClassifier", attrs, [x], [T.INT64, T.FLOAT], opset)


def tree_ensemble(r):
    """Opset 5's: splits and leaves in lists of their own."""
    x = tree_input(r, ALL[:2])
    kind, n = of(x), int(r.choice([1, 1, 3]))
    modes = [str(r.choice(MODES))] if r.random() < 0.6 else [*MODES, "BRANCH_MEMBER"]
    names = [*MODES, "BRANCH_MEMBER"]
    k = {m: [] for m in ("nodes_modes nodes_featureids nodes_splits nodes_truenodeids nodes_falsenodeids "
                         "nodes_trueleafs nodes_falseleafs nodes_missing_value_tracks_true").split()}  # fmt: skip
    roots, targets, weights, members = [], [], [], []
    for _ in range(int(r.choice([1, 4, 20]))):
        tree = Tree(r, x.shape[1], modes, int(r.choice([2, 5])))
        splits = [i for i, row in enumerate(tree.rows) if row[0] != "LEAF"]
        place = {i: len(k["nodes_modes"]) + j for j, i in enumerate(splits)}
        place |= {i: len(weights) + j for j, i in enumerate(tree.leaves)}
        roots.append(place[0])
        for i in splits:
            mode, feature, value, yes, no, tracks = tree.rows[i]
            if mode == "BRANCH_MEMBER":
                members += [*[float(v) for v in r.integers(-3, 4, int(r.integers(1, 4)))], np.nan]
            for key, v in zip(k, [names.index(mode), feature, value, place[yes], place[no],
                                  int(tree.rows[yes][0] == "LEAF"), int(tree.rows[no][0] == "LEAF"), tracks]):  # fmt: skip
                k[key].append(v)
        for _ in tree.leaves:
            targets.append(int(r.integers(0, n)))
            weights.append(float(np.float32(r.standard_normal())))
    attrs = dict(k)
    attrs["nodes_modes"] = helper.make_tensor("m", T.UINT8, [len(roots) and len(k["nodes_modes"])], k["nodes_modes"])
    attrs["nodes_splits"] = helper.make_tensor("s", kind, [len(k["nodes_splits"])], k["nodes_splits"])
    attrs["leaf_weights"] = helper.make_tensor("w", kind, [len(weights)], weights)
    if members:
        attrs["membership_values"] = helper.make_tensor("e", kind, [len(members)], members)
    if r.random() < 0.5:
        del attrs["nodes_missing_value_tracks_true"]
    attrs |= {"tree_roots": roots, "leaf_targetids": targets, "n_targets": n,
              "aggregate_function": int(r.integers(0, 4)), "post_transform": int(r.integers(0, 4))}  # fmt: skip
    return Case("TreeEnsemble", attrs, [x], [kind], 5)


# --- Look-ups ---

WORDS = ["red", "green", "blue", "", "a long word of many letters", "grün", "色", "Red", "7", "x y"]


def words(r, shape, known):
    """Mostly of |known|, now and then others."""
    return np.where(r.random(shape) < 0.8, r.choice(known, shape), r.choice(WORDS, shape)).astype(object)


def column(r, kind, count):
    """|count| different keys, or values, of a kind."""
    if kind == "strings":
        return [str(v) for v in r.permutation(WORDS)[:count]]
    if kind == "floats":
        return floats(r.permutation(40)[:count] / 4 - 5)
    wide = 10**12 if r.random() < 0.3 else 1
    return [int(v) * wide for v in r.permutation(60)[:count] - 30]


def keys_input(r, kind, keys):
    shape = (int(r.integers(1, 7)), int(r.integers(1, 5)))
    if kind == "strings":
        return words(r, shape, keys)
    other = r.integers(-40, 40, shape) * (keys[0] if kind == "int64s" and keys[0] else 1)
    x = np.where(r.random(shape) < 0.8, r.choice(keys, shape), other)
    return x.astype(np.int64 if kind == "int64s" else np.float32)


def label_encoder(r):
    opset = int(r.choice([1, 2, 4]))
    n = int(r.integers(1, 9))
    if opset == 1:
        classes = column(r, "strings", n)
        if r.random() < 0.5:
            return Case("LabelEncoder", {"classes_strings": classes, "default_int64": int(r.integers(-3, 3))},
                        [words(r, (4, 3), classes)], [T.INT64])  # fmt: skip
        x = r.integers(-2, n + 2, (3, 4)).astype(np.int64)
        return Case("LabelEncoder", {"classes_strings": classes, "default_string": "none"}, [x], [T.STRING])
    pairs = [("strings", "int64s"), ("int64s", "strings"), ("strings", "floats"), ("floats", "strings"),
             ("int64s", "floats"), ("floats", "int64s"), ("strings", "strings"), ("int64s", "int64s"),
             ("floats", "floats")]  # fmt: skip
    k, v = pairs[int(r.integers(0, 6 if opset == 2 else len(pairs)))]
    keys, values = column(r, k, n), column(r, v, n)
    attrs = {f"keys_{k}": keys, f"values_{v}": values}
    if r.random() < 0.5 and v == "strings":
        attrs["default_string"] = "none"
    if r.random() < 0.5 and v == "int64s":
        attrs["default_int64"] = 17
    if v == "floats":
        attrs["default_float"] = 2.5
    x = keys_input(r, k, keys)
    if k == "floats" and opset == 4 and r.random() < 0.4:
        attrs[f"keys_{k}"] = [*keys[1:], float("nan")]
        x[r.random(x.shape) < 0.3] = np.nan
    kinds = {"strings": T.STRING, "int64s": T.INT64, "floats": T.FLOAT}
    return Case("LabelEncoder", attrs, [x], [kinds[v]], opset)


def label_tensors(r):
    """Opset 4's keys and values as tensors: doubles, and other integers."""
    n = int(r.integers(1, 9))
    keys, values = column(r, "floats", n), column(r, "floats", n)
    attrs = {"keys_tensor": helper.make_tensor("k", T.DOUBLE, [n], keys),
             "values_tensor": helper.make_tensor("v", T.DOUBLE, [n], values),
             "default_tensor": helper.make_tensor("d", T.DOUBLE, [1], [0.25])}  # fmt: skip
    x = r.choice([*keys, 99.0], (3, 5)).astype(np.float64)
    return Case("LabelEncoder", attrs, [x], [T.DOUBLE], 4)


def category_mapper(r):
    n = int(r.integers(1, 9))
    cats = column(r, "strings", n)
    ints = column(r, "int64s", n)
    attrs = {"cats_strings": cats, "cats_int64s": ints}
    if r.random() < 0.5:
        return Case("CategoryMapper", attrs | {"default_int64": -7}, [words(r, (5, 2), cats)], [T.INT64])
    return Case("CategoryMapper", attrs | {"default_string": "?"}, [keys_input(r, "int64s", ints)], [T.STRING])


def one_hot(r):
    n = int(r.integers(1, 9))
    if r.random() < 0.5:
        cats = column(r, "strings", n)
        return Case("OneHotEncoder", {"cats_strings": cats, "zeros": 1}, [words(r, (5, 2), cats)], [T.FLOAT])
    cats = [int(v) for v in r.permutation(12)[:n] - 6]
    x = (r.integers(-7, 7, (4, 3)) + r.choice([0, 0.5], (4, 3)))
    kind = np.dtype(str(r.choice(["int64", "float32", "float64"])))
    return Case("OneHotEncoder", {"cats_int64s": cats}, [x.astype(kind)], [T.FLOAT])


def string_extractor(r):
    x = words(r, (3, 5), WORDS)
    return Case("ArrayFeatureExtractor", {}, [x, r.integers(0, 5, 3).astype(np.int64)], [T.STRING])


def string_labels(r):
    case = [linear_classifier, svm_classifier, tree_classifier][int(r.integers(0, 3))](r)
    key = next(k for k in case.attrs if k.startswith("classlabels_int"))
    count = len(case.attrs.pop(key))
    case.attrs["classlabels_strings"] = [str(v) for v in r.permutation(WORDS)[:count]]
    case.outputs = [T.STRING, T.FLOAT]
    return case


LOOKUPS = [label_encoder, label_encoder, label_tensors, category_mapper, one_hot, string_extractor,
           string_labels, string_labels]  # fmt: skip
KINDS = [scaler, normalizer, imputer, binarizer, extractor, vectorizer, linear_classifier,
         linear_regressor, svm_regressor, svm_classifier, tree_regressor, tree_classifier,
         tree_ensemble, tree_regressor, tree_classifier, tree_ensemble]  # fmt: skip


def draw(seed):
    r = np.random.default_rng(seed)
    kinds = KINDS + LOOKUPS
    return kinds[seed % len(kinds)](r)


def run(case, device):
    """Pestle's outputs, or what it said."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "out").mkdir()
        (folder / "m.onnx").write_bytes(case.model().SerializeToString())
        command = [PESTLE, "run", folder / "m.onnx", "--device", device, "--no-cache",
                   "--outputs", folder / "out"]  # fmt: skip
        for i, a in enumerate(case.inputs):
            np.save(folder / f"x{i}.npy", a.astype(str) if a.dtype == object else a)
            command += ["--input", f"x{i}={folder}/x{i}.npy"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr.strip()
        return [np.load(folder / "out" / f"output_{i}.npy", allow_pickle=True)
                for i in range(len(case.outputs))]  # fmt: skip


def differs(case, got, want):
    """What is wrong, or None."""
    if isinstance(got, str):
        return got
    for i, (g, w) in enumerate(zip(got, want)):
        w = np.asarray(w)
        if g.shape != w.shape or (g.dtype != w.dtype and w.dtype.kind != "O"):
            return f"output {i} is {g.dtype}{g.shape}, right is {w.dtype}{w.shape}"
        if w.dtype.kind == "f":
            scale = case.atol + case.rtol * np.nanmax(np.abs(np.where(np.isfinite(w), w, 0)), initial=1)
            good = np.isclose(g, w, rtol=case.rtol, atol=scale, equal_nan=True)
        else:
            good = g == w
        if not good.all():
            at = tuple(np.argwhere(~good)[0])
            return f"output {i}: {np.sum(~good)} of {w.size} differ, at {at} {g[at]!r}, right {w[at]!r}"
    return None


def check(seeds, devices):
    """How many were right; prints each that is not."""
    right = wrong = 0
    for seed in seeds:
        case = draw(seed)
        try:
            want = case.expected()
        except Exception as e:  # noqa: BLE001
            print(f"seed {seed}: {case}: ONNX Runtime: {str(e)[:200]}")
            wrong += 1
            continue
        for device in devices:
            what = differs(case, run(case, device), want)
            if what:
                print(f"seed {seed} on {device}: {case}: {what}")
                wrong += 1
            else:
                right += 1
    print(f"{right} right, {wrong} wrong")
    return wrong == 0
