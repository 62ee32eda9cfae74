#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--compat ort: each op that ONNX Runtime reads otherwise than its text says, by the text
and as ONNX Runtime. Exits 77, "skipped", when a Python package is missing."""

import sys


def model(op, opset, inputs, shapes=(), outputs=1, known=(), **attrs):
    """A node, its inputs given or |known|, and their arrays."""
    from onnx import TensorProto, helper, numpy_helper

    import contrib_cases

    names = [f"i{k}" for k in range(len(inputs))]
    node = helper.make_node(op, [n if a is not None else "" for n, a in zip(names, inputs)],
                            [f"o{k}" for k in range(outputs)], **attrs)  # fmt: skip
    given, held = [], []
    for k, (n, a) in enumerate(zip(names, inputs)):
        if a is None:
            continue
        kind = contrib_cases.TYPES[a.dtype.str[1:]]
        if k in known:
            held.append(numpy_helper.from_array(a, n))
        else:
            given.append(helper.make_tensor_value_info(n, kind, a.shape))
    wanted = [helper.make_tensor_value_info(f"o{k}", TensorProto.UNDEFINED, None) for k in range(outputs)]
    for w in wanted:
        w.ClearField("type")
    sets = [helper.make_opsetid("", 17 if node.domain else opset)]
    sets += [helper.make_opsetid(node.domain, opset)] if node.domain else []
    m = helper.make_model(helper.make_graph([node], op, given, wanted, held), opset_imports=sets)
    m.ir_version = 8
    return m, {g.name: inputs[int(g.name[1:])] for g in given}


def cases():
    """(name, model, arrays, what the text says of the last output or None, whether the two differ)"""
    import numpy as np

    r = np.random.default_rng(3)
    f = lambda *s: r.standard_normal(s).astype(np.float32)
    x = f(1, 1, 1, 10)
    up = np.repeat([1.0, 1.3], [3, 1]).astype(np.float32)
    yield "Resize, 10 times 1.3", *model("Resize", 13, [x, None, up], known=(2,), mode="nearest"), (1, 1, 1, 13), False
    down = np.array([1, 1, 1, 0.6], np.float32)
    at = np.floor(np.arange(6) / 0.6).astype(int)
    yield "Resize-10 downward", *model("Resize", 10, [x, down], known=(1,), mode="nearest"), x[..., at], True
    line = np.linspace(-1.6, 1.6, 9, dtype=np.float32)
    grid = np.stack(np.meshgrid(line, line), -1)[None]
    for opset, mode in ((16, "bicubic"), (20, "cubic")):
        for align in (0, 1):
            kw = dict(mode=mode, padding_mode="border", align_corners=align)
            yield f"GridSample-{opset} align {align}", *model("GridSample", opset, [f(1, 1, 4, 5), grid], **kw), None, True
    for same in ("SAME_UPPER", "SAME_LOWER"):
        for kernel, differs in ((1, True), (2, True), (3, False), (4, False)):
            kw = dict(auto_pad=same, strides=[3, 3])
            yield f"ConvTranspose {same} {kernel}", *model("ConvTranspose", 11, [f(1, 1, 3, 4), f(1, 1, kernel, kernel)], **kw), (1, 1, 9, 12), differs
    v, i = f(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]], np.int64)
    shape = np.array([1, 1, 5, 5], np.int64)
    want = np.zeros((5, 5), np.float32)
    want[[1, 1, 3, 3], [1, 3, 1, 3]] = v.ravel()
    kw = dict(kernel_shape=[2, 2], strides=[2, 2])
    yield "MaxUnpool", *model("MaxUnpool", 11, [v, i, shape], known=(2,), **kw), want[None, None], True
    for opset, dtype, differs in ((7, np.float32, True), (10, bool, True), (12, bool, False)):
        yield f"Dropout-{opset}", *model("Dropout", opset, [f(2, 3)], outputs=2), np.ones((2, 3), dtype), differs


def tree_cases():
    """Of ai.onnx.ml: two trees of one split each."""
    import numpy as np

    x = np.array([[-1, 0], [1, -1], [0.5, 2], [-2, 3]], np.float32)
    nodes = dict(nodes_treeids=[0, 0, 0, 1, 1, 1], nodes_nodeids=[0, 1, 2] * 2, nodes_featureids=[0, 0, 0, 1, 0, 0],
                 nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * 2, nodes_values=[0.2, 0.0, 0.0, 1.0, 0.0, 0.0],
                 nodes_truenodeids=[1, 0, 0] * 2, nodes_falsenodeids=[2, 0, 0] * 2, domain="ai.onnx.ml")  # fmt: skip
    each = dict(class_treeids=[0, 0, 0, 0, 1, 1], class_nodeids=[1, 1, 2, 2, 1, 2], class_ids=[0, 1, 0, 1, 1, 0])
    kw = nodes | each | dict(class_weights=[0.5, -0.25, 0.75, 0.5, 0.125, 0.25])
    tree = lambda **more: model("TreeEnsembleClassifier", 3, [x], outputs=2, **kw, **more)
    yield "two classes, labels 4 and 7", *tree(classlabels_int64s=[4, 7]), None, True
    yield "two classes of strings", *tree(classlabels_strings=["a", "b"]), None, True
    yield "two base values", *tree(classlabels_int64s=[0, 1], base_values=[0.3, 0.7]), None, True
    target = dict(target_treeids=[0, 0, 1, 1], target_nodeids=[1, 2, 1, 2], target_ids=[0, 0, 2, 2], target_weights=[1.0, 2.0, 3.0, 4.0])
    yield "base of no leaf", *model("TreeEnsembleRegressor", 3, [x], n_targets=3, base_values=[0.5, 1.5, 2.5], **nodes, **target), None, True
    five = dict(tree_roots=[0], nodes_featureids=[0], nodes_falseleafs=[1], nodes_trueleafs=[1], nodes_falsenodeids=[1],
                nodes_truenodeids=[0], leaf_targetids=[0, 1], n_targets=2, domain="ai.onnx.ml")  # fmt: skip
    from onnx import helper, TensorProto

    tensor = lambda kind, *v: helper.make_tensor("t", kind, [len(v)], v)
    five |= dict(nodes_modes=tensor(TensorProto.UINT8, 0), nodes_splits=tensor(TensorProto.FLOAT, 0.2), leaf_weights=tensor(TensorProto.FLOAT, 1.5, -0.5))
    for post in (1, 2):
        yield f"TreeEnsemble, post_transform {post}", *model("TreeEnsemble", 5, [x], post_transform=post, **five), None, True


def check(name, m, arrays, text, differs):
    import numpy as np

    import contrib

    case = type("Case", (), dict(rtol=1e-4, atol=1e-5, near=0, steps=0))
    peer, why = contrib.run_peer(m, arrays)
    if peer is None:
        return "ONNX Runtime does not run it: " + why
    plain, why = contrib.run_pestle(m, arrays, "ref")
    ours, other = contrib.run_pestle(m, arrays, "ref", ["--compat", "ort"])
    if plain is None or ours is None:
        return why or other
    for i, (g, w) in enumerate(zip(ours, peer)):
        if g.dtype.kind in "US":
            if not np.array_equal(g, np.asarray(w, g.dtype)):
                return f"with --compat ort output {i}: {g}, right is {w}"
            continue
        why = contrib.differ(g, w, None, case)
        if why:
            return f"with --compat ort output {i}: {why}"
    if isinstance(text, tuple) and plain[-1].shape != text:
        return f"by the text it is {list(text)}, not {list(plain[-1].shape)}"
    if isinstance(text, np.ndarray) and not (plain[-1].dtype == text.dtype and np.array_equal(plain[-1], text)):
        return "not what the text says"
    alike = lambda a, b: np.array_equal(a, b) if a.dtype.kind in "US" else np.allclose(a, b, 1e-4, 1e-5)
    same = all(a.shape == b.shape and alike(a, b) for a, b in zip(plain, ours))
    return f"the readings {'do not' if same else 'do'} differ" if same == differs else None


def main():
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as e:
        print(f"skipped: {e}; tools/requirements.txt lists what is needed")
        return 77
    wrong = 0
    for case in (*cases(), *tree_cases()):
        why = check(*case)
        if why:
            print(f"{case[0]}: {why}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
