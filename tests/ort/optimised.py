# SPDX-License-Identifier: Apache-2.0
"""Models as ONNX Runtime's optimiser and quantiser write them, of the open models and of
small transformers made from a seed, through `pestle run` and ONNX Runtime without
optimisations.

    optimised.py --models FOLDER [--only PATTERN] [--small]
"""

import argparse
import collections
import fnmatch
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import contrib

F = TensorProto.FLOAT


# --- Small transformers ---


def init(g, name, array):
    g["init"].append(numpy_helper.from_array(np.asarray(array), name))
    return name


def weights(g, name, *shape):
    scale = shape[0] ** -0.5 if len(shape) > 1 else 0.1
    return init(g, name, (g["r"].standard_normal(shape) * scale).astype(np.float32))


def node(g, op, *ins, **kw):
    out = kw.pop("out", f"t{len(g['nodes'])}")
    g["nodes"].append(helper.make_node(op, list(ins), [out], **kw))
    return out


def layer_norm(g, x, name, h):
    one = init(g, name + ".g", 1 + 0.1 * g["r"].standard_normal(h).astype(np.float32))
    return node(g, "LayerNormalization", x, one, weights(g, name + ".b", h), epsilon=1e-5)


def heads(g, x, w, name, h, n, s):
    x = node(g, "Add", weights(g, name + ".bias", h), node(g, "MatMul", x, w))
    x = node(g, "Reshape", x, init(g, name + ".to", np.array([0, 0, n, h // n])))
    return x


def gelu(g, x, name):
    half = init(g, name + ".2", np.float32(2**0.5))
    e = node(g, "Erf", node(g, "Div", x, half))
    e = node(g, "Add", e, init(g, name + ".1", np.float32(1)))
    return node(g, "Mul", node(g, "Mul", x, e), init(g, name + ".h", np.float32(0.5)))


def encoder(seed=0, layers=2, h=32, n=4, s=12, words=50, masked=True):
    """A BERT as torch.onnx writes it, so that the optimiser finds its parts."""
    g = {"nodes": [], "init": [], "r": np.random.default_rng(seed)}
    x = node(g, "Gather", weights(g, "words", words, h), "ids")
    kind = node(g, "Gather", weights(g, "kinds", 2, h), "segments")
    place = node(g, "Gather", weights(g, "places", s, h), init(g, "at", np.arange(s)[None]))
    x = layer_norm(g, node(g, "Add", node(g, "Add", x, kind), place), "embed", h)
    if masked:
        m = node(g, "Unsqueeze", node(g, "Unsqueeze", "mask", init(g, "ax1", np.array([1]))), init(g, "ax2", np.array([2])))
        m = node(g, "Cast", m, to=F)
        m = node(g, "Mul", node(g, "Sub", init(g, "one", np.float32(1)), m), init(g, "low", np.float32(-10000)))
    for i in range(layers):
        p = f"l{i}"
        q, k, v = (heads(g, x, weights(g, f"{p}.{c}", h, h), f"{p}.{c}", h, n, s) for c in "qkv")
        q = node(g, "Transpose", q, perm=[0, 2, 1, 3])
        k = node(g, "Transpose", k, perm=[0, 2, 3, 1])
        v = node(g, "Transpose", v, perm=[0, 2, 1, 3])
        a = node(g, "Div", node(g, "MatMul", q, k), init(g, p + ".d", np.float32((h / n) ** 0.5)))
        if masked:
            a = node(g, "Add", a, m)
        a = node(g, "MatMul", node(g, "Softmax", a, axis=-1), v)
        a = node(g, "Transpose", a, perm=[0, 2, 1, 3])
        a = node(g, "Reshape", a, init(g, p + ".back", np.array([0, 0, h])))
        a = node(g, "Add", weights(g, p + ".ob", h), node(g, "MatMul", a, weights(g, p + ".o", h, h)))
        x = layer_norm(g, node(g, "Add", a, x), p + ".n1", h)
        y = node(g, "Add", weights(g, p + ".fb", 4 * h), node(g, "MatMul", x, weights(g, p + ".f", h, 4 * h)))
        y = gelu(g, y, p + ".g")
        y = node(g, "Add", weights(g, p + ".eb", h), node(g, "MatMul", y, weights(g, p + ".e", 4 * h, h)))
        x = layer_norm(g, node(g, "Add", y, x), p + ".n2", h)
    node(g, "Identity", x, out="y")
    ids = [helper.make_tensor_value_info(i, TensorProto.INT64, [2, s]) for i in ("ids", "segments") + ("mask",) * masked]
    graph = helper.make_graph(g["nodes"], "encoder", ids, [helper.make_tensor_value_info("y", F, [2, s, h])], g["init"])
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    m.ir_version = 8
    r = np.random.default_rng(seed + 1)
    mask = (np.arange(s)[None] < np.array([[s], [s - 4]])).astype(np.int64)
    given = {"ids": r.integers(0, words, (2, s)), "segments": r.integers(0, 2, (2, s)), "mask": mask}
    return m, {i.name: given[i.name] for i in ids}


def blocks(g, x, name, k, n):
    """A product with weights of 4 bits in blocks of 32, as builders of language models write."""
    r, count = g["r"], -(-k // 32)
    w = init(g, name + ".w", r.integers(0, 256, (n, count, 16)).astype(np.uint8))
    s = init(g, name + ".s", (r.uniform(0.5, 1.5, (n, count)) * k**-0.5 / 5).astype(np.float32))
    return node(g, "MatMulNBits", x, w, s, domain="com.microsoft", K=k, N=n, bits=4, block_size=32, accuracy_level=1)


def decoder(past, rows, layers=2, h=64, n=4, kv=2, words=60, seed=3):
    """A Llama as the GenAI builder writes it: |rows| tokens behind |past|."""
    ms, d, total = "com.microsoft", h // n, past + rows
    g = {"nodes": [], "init": [], "r": np.random.default_rng(seed)}
    counted = node(g, "ReduceSum", "mask", init(g, "last", np.array([1])), keepdims=1)
    lengths = node(g, "Cast", node(g, "Sub", counted, init(g, "one", np.array([1]))), to=TensorProto.INT32)
    most = node(g, "Cast", node(g, "Gather", node(g, "Shape", "mask"), init(g, "at", np.array(1))), to=TensorProto.INT32)
    angle = np.arange(32)[:, None] / 100 ** (np.arange(d // 2) / (d // 2))
    cos, sin = (init(g, f.__name__, f(angle).astype(np.float32)) for f in (np.cos, np.sin))
    table = init(g, "words", g["r"].integers(0, 256, (words, h // 2)).astype(np.uint8))
    scale = init(g, "words.s", g["r"].uniform(0.1, 0.3, (words, h // 32)).astype(np.float32))
    x = node(g, "GatherBlockQuantized", table, "ids", scale, domain=ms, bits=4, block_size=32)
    ones = lambda name: init(g, name, 1 + 0.1 * g["r"].standard_normal(h).astype(np.float32))
    y = node(g, "SimplifiedLayerNormalization", x, ones("n"), epsilon=1e-5, axis=-1, stash_type=1)
    caches, given = [], []
    for i in range(layers):
        p = f"l{i}."
        q = node(g, "Mul", blocks(g, y, p + "q", h, h), init(g, p + "four", np.float32(4)))
        k, v = (blocks(g, y, p + c, h, kv * d) for c in "kv")
        a, now = f"{p}a", [f"{p}k", f"{p}v"]
        was = [f"past{i}k", f"past{i}v"]
        ins = [q, k, v, *was, lengths, most, cos, sin]
        g["nodes"].append(helper.make_node("GroupQueryAttention", ins, [a, *now], domain=ms, num_heads=n, kv_num_heads=kv, do_rotary=1))
        a = blocks(g, a, p + "o", h, h)
        skip = [f"{p}y", "", "", f"{p}x"]
        g["nodes"].append(helper.make_node("SkipSimplifiedLayerNormalization", [x, a, ones(p + "n1")], skip, domain=ms, epsilon=1e-5))
        x, y = skip[3], skip[0]
        gate, up = (blocks(g, y, p + c, h, 2 * h) for c in ("gate", "up"))
        gate = node(g, "Mul", gate, node(g, "Sigmoid", gate))
        y = blocks(g, node(g, "Mul", gate, up), p + "down", 2 * h, h)
        skip = [f"{p}y2", "", "", f"{p}x2"]
        g["nodes"].append(helper.make_node("SkipSimplifiedLayerNormalization", [x, y, ones(p + "n2")], skip, domain=ms, epsilon=1e-5))
        x, y = skip[3], skip[0]
        caches += now
        given += was
    node(g, "Identity", blocks(g, y, "head", h, words), out="logits")
    ins = [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "s"]), helper.make_tensor_value_info("mask", TensorProto.INT64, [1, "t"])]
    ins += [helper.make_tensor_value_info(c, F, [1, kv, "p", d]) for c in given]
    outs = [helper.make_tensor_value_info(o, F, None) for o in ["logits"] + caches]
    m = helper.make_model(helper.make_graph(g["nodes"], "decoder", ins, outs, g["init"]), opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(ms, 1)])
    m.ir_version = 9
    r = np.random.default_rng(seed)
    arrays = {"ids": r.integers(0, words, (1, rows)), "mask": np.ones((1, total), np.int64)}
    arrays.update({c: r.standard_normal((1, kv, past, d)).astype(np.float32) for c in given})
    return m, arrays


# --- What ONNX Runtime makes of a model ---


def optimise(model, folder, level):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.optimized_model_filepath = out = os.path.join(folder, level + ".onnx")
    options.log_severity_level = 4
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(out)


def fuse(model, folder, heads_of, hidden, approximate=False, bare=False):
    from onnxruntime.transformers import fusion_options, optimizer

    path = os.path.join(folder, "plain.onnx")
    onnx.save(model, path)
    options = fusion_options.FusionOptions("bert")
    options.enable_shape_inference = False  # which needs sympy
    options.enable_gelu_approximation = approximate
    done = optimizer.optimize_model(path, "bert", heads_of, hidden, options, opt_level=0)
    if bare:
        return done.model  # which does not import com.microsoft
    done.save_model_to_file(path)
    return onnx.load(path)


class Once:
    def __init__(self, inputs):
        self.left = [inputs]

    def get_next(self):
        return self.left.pop() if self.left else None


def quantise(model, folder, inputs, how):
    from onnxruntime import quantization as q

    path, out = os.path.join(folder, "float.onnx"), os.path.join(folder, how + ".onnx")
    onnx.save(model, path)
    kind = {"u8": q.QuantType.QUInt8, "s8": q.QuantType.QInt8, "u16": q.QuantType.QUInt16}[how.split("-")[-1]]
    if how.startswith("dynamic"):
        q.quantize_dynamic(path, out, weight_type=kind)
        return onnx.load(out)
    form = q.QuantFormat.QDQ if "qdq" in how else q.QuantFormat.QOperator
    more = {"UseQDQContribOps": True} if "u16" in how else {}
    weight = q.QuantType.QInt8 if "u16" in how else kind
    q.quantize_static(path, out, Once(inputs), quant_format=form, activation_type=kind, weight_type=weight, extra_options=more)
    return onnx.load(out)


AS_IT_IS = "as it is"  # what is written like that

HOW = {
    "basic": lambda m, f, i: optimise(m, f, "ORT_ENABLE_BASIC"),
    "extended": lambda m, f, i: optimise(m, f, "ORT_ENABLE_EXTENDED"),
    "dynamic-u8": lambda m, f, i: quantise(m, f, i, "dynamic-u8"),
    "dynamic-extended": lambda m, f, i: optimise(quantise(m, f, i, "dynamic-s8"), f, "ORT_ENABLE_EXTENDED"),
    "qdq-u8": lambda m, f, i: quantise(m, f, i, "qdq-u8"),
    "qdq-s8": lambda m, f, i: quantise(m, f, i, "qdq-s8"),
    "qdq-extended": lambda m, f, i: optimise(quantise(m, f, i, "qdq-u8"), f, "ORT_ENABLE_EXTENDED"),
    "qdq-u16": lambda m, f, i: quantise(m, f, i, "qdq-u16"),
    "operators-u8": lambda m, f, i: quantise(m, f, i, "operators-u8"),
}  # fmt: skip


def variants(model, inputs, folder, shape=None):
    """(name, model): what ONNX Runtime's tools make of |model|, or itself."""
    if shape == AS_IT_IS:
        yield "as-it-is", lambda: model
        return
    for name, make in HOW.items():
        yield name, lambda make=make: make(model, folder, inputs)
    if shape:
        fused = lambda: fuse(model, folder, *shape)
        yield "fused", fused
        yield "fused-fast", lambda: fuse(model, folder, *shape, approximate=True, bare=True)
        yield "fused-dynamic", lambda: optimise(quantise(fused(), folder, inputs, "dynamic-s8"), folder, "ORT_ENABLE_EXTENDED")


def own_ops(model):
    counts = collections.Counter(n.op_type for n in model.graph.node if n.domain not in ("", "ai.onnx"))
    return " ".join(f"{k} {v}" for k, v in sorted(counts.items()))


def rms(x):
    return np.sqrt(np.mean(np.square(x, dtype=np.float64))) if x.size else 0.0


LEFT = "ONNX Runtime does not run it: "


def check(model, inputs, plain):
    """None when right, else a sentence. |plain|: the results of the model before it was
    quantised, or None. A number that lies between two steps goes to either, and deep networks
    make of that nearly as much as quantising itself changes."""
    want, why = contrib.run_peer(model, inputs)
    if want is None:
        return LEFT + why
    got, why = contrib.run_pestle(model, inputs, "llvm")
    if got is None:
        return why
    for i, (g, w) in enumerate(zip(got, want)):
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"output {i} is {g.dtype}{list(g.shape)}, right is {w.dtype}{list(w.shape)}"
        g, w = g.astype(np.float64), w.astype(np.float64)
        spread = np.abs(w).max() or 1
        off, most = np.abs(g - w).max() / spread, 1e-3
        if plain:
            off, most = rms(g - w) / spread, max(0.02, 0.5 * rms(plain[i] - w) / spread)
        if not off <= most:
            return f"output {i} is off by {off:.2g} of its greatest number, not {most:.2g}"
    return None


def open_models(folder):
    """(name, model, inputs) of what fetch_models.py wrote."""
    static = os.path.join(folder, "static")
    for file in sorted(os.listdir(static)):
        name = file[: -len(".onnx")]
        model, given, inputs = onnx.load(os.path.join(static, file)), os.path.join(folder, "inputs", name), {}
        held = {t.name for t in model.graph.initializer}
        for i, v in enumerate(v for v in model.graph.input if v.name not in held):
            inputs[v.name] = np.load(os.path.join(given, f"input_{i}.npy"))
        yield name, model, inputs, (12, 384) if name == "minilm_l3" else None


def small_models():
    for seed, masked in ((0, True), (1, False)):
        model, inputs = encoder(seed, masked=masked)
        yield f"encoder{seed}", model, inputs, (4, 32)
    for past, rows in ((0, 5), (5, 1), (4, 3)):
        yield f"decoder{past}+{rows}", *decoder(past, rows), AS_IT_IS


def run(models, only="*"):
    """How many were right; those that were not, each with a sentence."""
    right, wrong = 0, []
    for name, model, inputs, shape in models:
        plain = contrib.run_peer(model, inputs)[0]
        with tempfile.TemporaryDirectory() as folder:
            for how, make in variants(model, inputs, folder, shape):
                label = f"{name}/{how}"
                if not fnmatch.fnmatch(label, only):
                    continue
                try:
                    made = make()
                except Exception as e:  # ONNX Runtime's tools, of many types
                    print(f"left {label}: {type(e).__name__}: {str(e)[:200]}", flush=True)
                    continue
                quantised = any(k in label for k in ("dynamic", "qdq", "operators"))
                why = check(made, inputs, plain if quantised else None)
                if why and why.startswith(LEFT):
                    print(f"left {label}: {why}"[:300], flush=True)
                    continue
                print(f"{'ok  ' if not why else 'FAIL'} {label}: {why or own_ops(made)}"[:400], flush=True)
                right += not why
                if why:
                    wrong.append(label)
    return right, wrong


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--models", default=os.environ.get("PESTLE_MODELS"))
    a.add_argument("--only", default="*")
    a.add_argument("--small", action="store_true")
    o = a.parse_args()
    models = list(small_models())
    if not o.small and o.models:
        models += open_models(o.models)
    right, wrong = run(models, o.only)
    print(f"{right} right, {len(wrong)} wrong: {' '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
