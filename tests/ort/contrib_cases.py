# SPDX-License-Identifier: Apache-2.0
"""Nodes of com.microsoft with random attributes, shapes and types, each a model for ONNX
Runtime's CPU kernels to be right about. make(name, seed) gives one; NAMES lists them."""

import copy
import math
import pathlib
import sys

import numpy as np
from onnx import TensorProto as TP
from onnx import helper, numpy_helper

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from program import multiplies_bytes  # noqa: E402

MS = "com.microsoft"
MULTIPLIES_BYTES = multiplies_bytes()
TYPES = {
    "f4": TP.FLOAT, "f2": TP.FLOAT16, "f8": TP.DOUBLE, "i1": TP.INT8, "u1": TP.UINT8, "i2": TP.INT16,
    "u2": TP.UINT16, "i4": TP.INT32, "u4": TP.UINT32, "i8": TP.INT64, "b1": TP.BOOL,
}  # fmt: skip


class Case:
    """What a maker writes: a node, and its inputs in order."""

    def __init__(self, op, seed):
        self.op, self.r = op, np.random.default_rng(seed)
        self.inputs, self.attrs, self.outputs, self.domain = [], {}, 1, MS
        self.unseen = {}  # output -> where its elements mean nothing
        self.rtol, self.atol, self.near = 1e-3, 1e-4, 0.02
        self.steps = 1  # that a quantised result may be off
        self.twin = None  # of the same meaning, for a peer that does not take the form
        self.turn = None  # makes of the twin's results those of the case
        self.expect = None  # by the text, where ONNX Runtime has no CPU kernel

    # -- numbers --
    def one_of(self, *of):
        return of[self.r.integers(len(of))]

    def chance(self, p=0.5):
        return bool(self.r.random() < p)

    def size(self, low=1, high=9):
        return int(self.r.integers(low, high))

    def floats(self, *shape, scale=1.0, dtype=np.float32):
        return (self.r.standard_normal(shape) * scale).astype(dtype)

    def ints(self, dtype, *shape):
        info = np.iinfo(dtype)
        low, high = info.min, info.max
        # Of larger ones ONNX Runtime's sums of two products saturate on CPUs without VNNI.
        if dtype == np.int8 and not MULTIPLIES_BYTES:
            low, high = -63, 63
        return self.r.integers(low, high + 1, shape).astype(dtype)

    def scale(self, *shape):
        return np.asarray(self.r.uniform(0.005, 0.05, shape), np.float32)

    # -- inputs --
    def add(self, array, constant=None):
        """One more input, now or later known; None: left out."""
        known = self.chance(0.4) if constant is None else constant
        self.inputs.append(None if array is None else (np.asarray(array), known))
        return array

    def maybe(self, array, p=0.5, constant=None):
        return self.add(array if self.chance(p) else None, constant)

    def quantised(self, dtype, *shape, zero=0.8, known=True):
        """x, its scale, its zero point."""
        x = self.add(self.ints(dtype, *shape))
        s = self.add(self.scale(), known)
        z = self.add(self.ints(dtype) if self.chance(zero) else None, known)
        return x, s, z

    def model(self):
        names = [f"i{k}" if a is not None else "" for k, a in enumerate(self.inputs)]
        while names and not names[-1]:
            names.pop()
        outs = [f"o{k}" for k in range(self.outputs)] if isinstance(self.outputs, int) else list(self.outputs)
        node = helper.make_node(self.op, names, outs, domain=self.domain, **self.attrs)
        given, known = [], []
        for n, a in zip(names, self.inputs):
            if a is None:
                continue
            array, constant = a
            kind = TYPES[array.dtype.str[1:]]
            if constant:
                known.append(numpy_helper.from_array(np.asarray(array, order="C"), n))
            else:
                given.append((n, array, helper.make_tensor_value_info(n, kind, array.shape)))
        wanted = [helper.make_tensor_value_info(o, TP.UNDEFINED, None) for o in outs if o]
        for w in wanted:
            w.ClearField("type")
        graph = helper.make_graph([node], self.op, [g[2] for g in given], wanted, known)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)]
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 10
        return model, {g[0]: g[1] for g in given}


# --- Activations, products ---


def gelu(c):
    c.add(c.floats(*(c.size() for _ in range(c.size(1, 4))), scale=2), False)


def bias_gelu(c):
    h = c.size()
    c.add(c.floats(c.size(), c.size(), h, scale=2), False)
    c.add(c.floats(h))


def fast_gelu(c):
    h = c.size()
    c.add(c.floats(c.size(), c.size(), h, scale=2), False)
    c.maybe(c.floats(h))


def quick_gelu(c):
    c.add(c.floats(c.size(), c.size(), scale=2), False)
    if c.chance():
        c.attrs["alpha"] = float(c.r.uniform(0.5, 3))


def fused_matmul(c, batches=True):
    m, k, n, rank = c.size(), c.size(), c.size(), c.size(2, 5)
    lead = [c.size(1, 4) for _ in range(rank - 2)]
    for side, rows, columns in (("A", m, k), ("B", k, n)):
        t = c.attrs["trans" + side] = int(c.chance())
        dims = lead + ([columns, rows] if t else [rows, columns])
        if batches and rank > 2 and c.chance(0.3):
            c.attrs["transBatch" + side] = 1
            dims = [dims[-2]] + lead + [dims[-1]]
        c.add(c.floats(*dims), side == "B" and c.chance())
    if c.chance():
        c.attrs["alpha"] = float(c.r.uniform(-2, 2))


def transpose_matmul(c):
    fused_matmul(c, False)


ACTIVATIONS = ("Relu", "LeakyRelu", "Tanh", "Sigmoid", "HardSigmoid")


def fused_gemm(c):
    m, k, n = c.size(), c.size(), c.size()
    ta, tb = (c.attrs.setdefault(t, int(c.chance())) for t in ("transA", "transB"))
    c.add(c.floats(*((k, m) if ta else (m, k))), False)
    c.add(c.floats(*((n, k) if tb else (k, n))))
    c.maybe(c.floats(*c.one_of((n,), (m, n), (1, n), (m, 1), (1,))))
    c.attrs["activation"] = c.one_of(*ACTIVATIONS)
    for a in ("alpha", "beta"):
        if c.chance():
            c.attrs[a] = float(c.r.uniform(0.1, 2))
    if c.attrs["activation"] in ("LeakyRelu", "HardSigmoid"):
        c.attrs["activation_alpha"] = float(c.r.uniform(0.1, 0.5))
    if c.attrs["activation"] == "HardSigmoid":
        c.attrs["activation_beta"] = float(c.r.uniform(0.1, 0.7))


def window(c, dims, most=4, dilates=True):
    kernel = [c.size(1, most) for _ in dims]
    if dilates and c.chance(0.3):
        c.attrs["dilations"] = [c.size(1, 3) for _ in dims]
    if c.chance():
        c.attrs["strides"] = [c.size(1, 3) for _ in dims]
    pad = c.chance()
    if pad:
        c.attrs["pads"] = [int(c.r.integers(0, k)) for k in kernel * 2]
    return kernel


def fused_conv(c):
    g, i, o, n = c.size(1, 3), c.size(1, 4), c.size(1, 4), c.size(1, 3)
    dims = [c.size(7, 12) for _ in range(2)]
    kernel = window(c, dims)
    if c.chance():
        c.attrs["kernel_shape"] = kernel
    c.attrs["group"] = g
    x = c.add(c.floats(n, g * i, *dims), False)
    w = c.add(c.floats(g * o, i, *kernel), True)
    c.maybe(c.floats(g * o), constant=True)
    if c.chance(0.4):
        out = conv_shape(x.shape, w.shape, c.attrs)
        if len(c.inputs) == 2:
            c.inputs.append(None)
        c.add(c.floats(*out), False)
    a = c.attrs["activation"] = c.one_of("Clip", *ACTIVATIONS)
    if a == "LeakyRelu":
        c.attrs["activation_params"] = [float(c.r.uniform(0.05, 0.5))]
    elif a == "Clip":
        c.attrs["activation_params"] = [-0.5, float(c.r.uniform(0, 2))]
    elif a == "HardSigmoid":
        c.attrs["activation_params"] = [0.3, 0.4]


def conv_shape(x, w, attrs):
    pads, out = attrs.get("pads", [0] * 4), []
    for i in range(2):
        reach = (w[2 + i] - 1) * attrs.get("dilations", [1, 1])[i] + 1
        out.append((x[2 + i] + pads[i] + pads[2 + i] - reach) // attrs.get("strides", [1, 1])[i] + 1)
    return [x[0], w[0]] + out


# --- Normalisations ---


def skip_norm(c, rms=False):
    b, s, h = c.size(), c.size(), c.one_of(8, 16, 33)
    c.add(c.floats(b, s, h), False)
    c.add(c.floats(*c.one_of((b, s, h), (1, s, h), (s, h))), False)
    c.add(c.floats(h))
    if not rms:
        c.maybe(c.floats(h))
    c.maybe(c.floats(h))
    if c.chance():
        c.attrs["epsilon"] = float(c.one_of(1e-5, 1e-3, 0.1))
    if c.chance():
        c.outputs = ["o0", "", "", "o3"]


def skip_simplified_norm(c):
    skip_norm(c, True)


def simplified_norm(c):
    c.domain = ""
    dims = [c.size(), c.size(), c.one_of(8, 16, 33)]
    axis = c.one_of(-1, 2, 1)
    c.add(c.floats(*dims), False)
    c.add(c.floats(*dims[axis:]))
    c.attrs.update(axis=axis, stash_type=1)
    if c.chance():
        c.attrs["epsilon"] = float(c.one_of(1e-6, 1e-3, 0.1))


def embed_norm(c):
    b, s, h, words, places = c.size(), c.size(), c.one_of(8, 24), c.size(3, 20), c.size(9, 14)
    kinds = c.chance()
    c.add(c.r.integers(0, words, (b, s)).astype(np.int32), False)
    c.add(c.r.integers(0, 2, (b, s)).astype(np.int32) if kinds else None, False)
    c.add(c.floats(words, h), True)
    c.add(c.floats(places, h), True)
    c.add(c.floats(2, h) if kinds else None, True)
    c.add(c.floats(h), True)
    c.add(c.floats(h), True)
    mask = c.maybe((c.r.random((b, s)) < 0.7).astype(np.int32), constant=False)
    c.maybe(c.r.integers(0, places, c.one_of((b, s), (1, s))).astype(np.int32), 0.4, False)
    if c.chance():
        c.attrs["epsilon"] = float(c.one_of(1e-5, 1e-3))
    if mask is not None and c.chance():
        c.attrs["mask_index_type"] = 1
    c.outputs = c.one_of(["o0", "o1"], ["o0", "o1", "o2"])


# --- Attention ---


def padding(c, b, s, t, kinds):
    """A mask under which each query sees a key."""
    kind = c.one_of(*kinds)
    ends = c.r.integers(1, t + 1, b)
    if kind == "ends":
        return ends.astype(np.int32)
    if kind == "both":
        return np.concatenate([ends, [c.r.integers(0, e) for e in ends]]).astype(np.int32)
    seen = c.r.random((b, s, t) if kind == "pairs" else (b, t)) < 0.7
    seen[..., 0] = True
    return seen.astype(np.int32) if kind else None


def attention(c):
    b, s, heads, d = c.size(1, 4), c.size(1, 7), c.size(1, 4), c.one_of(4, 8)
    width, h, hv, past = c.size(4, 20), heads * d, heads * d, 0
    if c.chance(0.3):
        hv = heads * c.one_of(4, 8, 12)
        c.attrs["qkv_hidden_sizes"] = [h, h, hv]
    elif c.chance(0.4):
        past = c.size(1, 5)
    c.attrs["num_heads"] = heads
    c.add(c.floats(b, s, width), False)
    c.add(c.floats(width, 2 * h + hv, scale=0.4), True)
    c.add(c.floats(2 * h + hv), True)  # ONNX Runtime 1.31 ends with a fault without one
    t, u = s + past, int(c.chance(0.3))
    c.attrs["unidirectional"] = u
    c.add(padding(c, b, s, t, ("", "ends", "both", "keys", "pairs")) if c.chance(0.7) else None, False)
    c.add(c.floats(2, b, heads, past, d) if past else None, False)
    c.add(c.floats(*c.one_of((b, heads, s, t), (1, heads, s, t), (1, 1, s, t))) if c.chance(0.3) and not past else None, False)
    for a, v in (("scale", 0.3), ("mask_filter_value", -1000.0)):
        if c.chance(0.3):
            c.attrs[a] = v
    c.outputs = 2 if past or c.chance(0.3) and "qkv_hidden_sizes" not in c.attrs else 1


def multi_head(c):
    b, s, heads, d = c.size(1, 4), c.size(1, 7), c.size(1, 4), c.one_of(4, 8)
    form = c.one_of("apart", "apart", "apart", "cross", "qkv", "kv", "heads")
    t = s if form in ("apart", "qkv") else c.size(1, 7)
    dv, past = d if form != "apart" else c.one_of(d, d, 12), 0
    c.attrs["num_heads"] = heads
    apart = [c.floats(b, n, heads * w) for n, w in ((s, d), (t, d), (t, dv))]
    if form == "qkv":
        c.add(np.stack([x.reshape(b, s, heads, d) for x in apart], 3), False), c.add(None), c.add(None)
    elif form == "kv":
        c.add(apart[0], False)
        c.add(np.stack([x.reshape(b, t, heads, d) for x in apart[1:]], 3), False), c.add(None)
    elif form == "heads":
        c.add(c.floats(b, s, heads * d), False)
        c.add(c.floats(b, heads, t, d), False), c.add(c.floats(b, heads, t, dv), False)
    else:
        for x in apart:
            c.add(x, False)
    c.add(c.floats(heads * (2 * d + dv)) if c.chance(0.4) and form in ("apart", "cross") else None, True)
    if form == "apart" and dv == d and c.chance(0.4):
        past = c.size(1, 5)
    total, room = t + past, past
    if past and s == 1 and c.chance(0.4):
        room = total + c.size(0, 4)
    c.add(padding(c, b, s, total, ("ends", "keys", "pairs") if room == past else ("keys",)) if c.chance() else None, False)
    c.add(c.floats(*c.one_of((b, heads, s, total), (1, heads, s, total), (1, 1, s, total))) if c.chance(0.3) else None, False)
    for _ in range(2):
        c.add(c.floats(b, heads, room, d) if past else None, False)
    if room > past:
        c.add(np.array([past], np.int32))
    if form == "apart":
        c.attrs["unidirectional"] = int(c.chance(0.3))
    for a, v in (("scale", 0.3), ("mask_filter_value", -1000.0)):
        if c.chance(0.3):
            c.attrs[a] = v
    c.outputs = 3 if past else 1
    if form in ("qkv", "kv"):
        c.twin = copy.copy(c)
        c.twin.inputs = [(x, False) for x in apart] + c.inputs[3:]


def masked_multi_head(c):
    """One token: caches with room, whose rows a number counts, or the keys of an encoder."""
    b, heads, d = c.size(1, 4), c.size(1, 4), c.one_of(4, 8)
    form = c.one_of("self", "self", "cross")
    room = c.size(2, 9)
    have = c.size(0, room) if form == "self" else 0
    c.attrs["num_heads"] = heads
    c.add(c.floats(b, 1, heads * d), False)
    if form == "self":
        c.add(c.floats(b, 1, heads * d), False), c.add(c.floats(b, 1, heads * d), False)
        total = have + 1
        c.attrs["past_present_share_buffer"] = 1
    else:
        total = room
        c.add(c.floats(b, heads, total, d), False), c.add(c.floats(b, heads, total, d), False)
    c.add(padding(c, b, 1, total, ("keys",)) if c.chance(0.3) else None, False)
    c.add(c.floats(*c.one_of((b, heads, 1, total), (1, heads, 1, total), (1, 1, 1, total))) if form == "self" and c.chance(0.3) else None, False)
    for _ in range(2):
        c.add(c.floats(b, heads, room, d) if form == "self" else None, False)
    c.add(np.array([have], np.int32) if form == "self" else None)
    c.add(None), c.add(None)
    c.add(c.floats(3 * heads * d) if c.chance(0.4) else None, True)
    for a, v in (("scale", 0.3), ("mask_filter_value", -1000.0)):
        if c.chance(0.3):
            c.attrs[a] = v
    c.outputs = ["o0", "o1", "o2"] if form == "self" else ["o0"]
    # Of what type the products are ONNX Runtime does not find out by itself.
    if form == "cross" and c.chance(0.4):
        c.attrs["output_qk"] = 1
        c.outputs = ["o0", "", "", "o3"]
        x, k, v, mask, *_, bias = (None if i is None else i[0].astype(np.float64) for i in c.inputs)
        q = (x[:, 0] + (0 if bias is None else bias[:heads * d])).reshape(b, heads, d)
        scores = np.einsum("bhd,bhtd->bht", q, k) * c.attrs.get("scale", d**-0.5)
        if mask is not None:
            scores = scores + np.where(mask, 0, c.attrs.get("mask_filter_value", -10000.0))[:, None]
        p = np.exp(scores - scores.max(-1, keepdims=True))
        y = np.einsum("bht,bhtd->bhd", p / p.sum(-1, keepdims=True), v).reshape(b, 1, heads * d)
        c.expect = [y.astype(np.float32), scores[:, :, None].astype(np.float32)]


def masked_self(c):
    """The same with the projections of one weight. ONNX Runtime has no CPU kernel: numpy by the text."""
    b, heads, d, width = c.size(1, 4), c.size(1, 4), c.one_of(4, 8), c.size(4, 20)
    h, room = heads * d, c.size(2, 9)
    have = c.size(0, room)
    total = have + 1
    c.attrs.update(num_heads=heads, past_present_share_buffer=1)
    x = c.add(c.floats(b, 1, width), False)
    w, bias = c.add(c.floats(width, 3 * h, scale=0.4), True), c.add(c.floats(3 * h), True)
    mask = c.add(padding(c, b, 1, total, ("keys",)) if c.chance(0.3) else None, False)
    past = c.add(c.floats(2, b, heads, room, d), False)
    more = c.add(c.floats(*c.one_of((b, heads, 1, total), (1, 1, 1, total))) if c.chance(0.3) else None, False)
    c.add(np.array([have], np.int32))
    if c.chance(0.3):
        c.add(np.array([1], np.int32), False), c.add(np.zeros((b, 1, room), np.int32), False)
    q, k, v = ((x @ w + bias).astype(np.float64).reshape(b, 3, heads, d)[:, i] for i in range(3))
    present = past.astype(np.float64)
    present[0, :, :, have], present[1, :, :, have] = k, v
    scores = np.einsum("bhd,bhtd->bht", q, present[0, :, :, :total]) * d**-0.5
    if mask is not None:
        scores = scores + np.where(mask, 0, -10000.0)[:, None]
    if more is not None:
        scores = scores + more[:, :, 0]
    p = np.exp(scores - scores.max(-1, keepdims=True))
    y = np.einsum("bht,bhtd->bhd", p / p.sum(-1, keepdims=True), present[1, :, :, :total])
    c.outputs = 2
    c.expect = [y.reshape(b, 1, h).astype(np.float32), present.astype(np.float32)]


def grouped(c):
    kv, d, b = c.size(1, 4), c.one_of(16, 32), c.size(1, 4)
    heads = kv * c.size(1, 4)
    first = c.chance()
    s = c.size(1, 7) if first else 1 if b > 1 or c.chance() else c.size(2, 5)
    have = c.r.integers(1, 6, b) if not first else np.zeros(b, np.int64)
    total = int(have.max()) + s
    lengths = have + s
    if first and b > 1 and c.chance(0.4):
        lengths = c.r.integers(1, s + 1, b)
        lengths[0] = s
    spare = total if first or c.chance() else total - s  # a buffer as long as the whole, or the past alone
    room = c.one_of(0, spare) if first else max(spare, int(have.max()))
    c.attrs.update(num_heads=heads, kv_num_heads=kv)
    if c.chance(0.3):
        c.add(c.floats(b, s, (heads + 2 * kv) * d), False), c.add(None), c.add(None)
    else:
        for n in (heads, kv, kv):
            c.add(c.floats(b, s, n * d), False)
    for _ in range(2):
        c.add(c.floats(b, kv, room, d), False)
    c.add((lengths - 1).astype(np.int32), c.chance())
    c.add(np.asarray(total, np.int32), True)
    turns = c.chance()
    if turns:
        most = total + c.size(0, 4)
        angle = c.r.uniform(0, 3, (most, d // 2))
        c.add(np.cos(angle).astype(np.float32), True), c.add(np.sin(angle).astype(np.float32), True)
        c.attrs.update(do_rotary=1, rotary_interleaved=int(c.chance()))
    else:
        c.add(None), c.add(None)
    c.add(None)
    c.add(c.floats(*c.one_of((b, heads, s, total), (1, 1, s, total))) if c.chance(0.3) else None, False)
    sink = c.chance(0.2)
    c.add(c.floats(heads) if sink else None, True)
    if not sink and c.chance(0.2):
        c.attrs["smooth_softmax"] = 1
    if c.chance(0.3):
        c.attrs["local_window_size"] = c.size(1, 5)
    if c.chance(0.3):
        c.attrs["softcap"] = float(c.r.uniform(1, 5))
    if c.chance(0.3):
        c.attrs["scale"] = 0.2
    c.outputs = 3
    # Rows behind the end of a sequence mean nothing, nor do those of a cache.
    place = np.arange(s)[None] >= lengths[:, None] - (0 if first else have[:, None])
    c.unseen[0] = lambda shape: np.broadcast_to(place[:, :, None], shape)
    cached = lambda shape: np.broadcast_to((np.arange(shape[2])[None] >= lengths[:, None])[:, None, :, None], shape)
    c.unseen[1] = c.unseen[2] = cached


def rotary(c):
    b, s, heads, d = c.size(1, 4), c.size(1, 6), c.size(1, 4), c.one_of(8, 16)
    flat, part, most = c.chance(), c.chance(0.3), c.size(12, 20)
    turned = d // 2 if part else d
    c.add(c.floats(*((b, s, heads * d) if flat else (b, heads, s, d))), False)
    each = c.chance()
    c.add(c.r.integers(0, most, (b, s)) if each else np.array([c.size(0, most - s)], np.int64), False)
    angle = c.r.uniform(0, 3, (most, turned // 2))
    c.add(np.cos(angle).astype(np.float32), True), c.add(np.sin(angle).astype(np.float32), True)
    c.attrs["interleaved"] = int(c.chance())
    if part:
        c.attrs.update(rotary_embedding_dim=turned, num_heads=heads)
    elif c.chance():
        c.attrs["num_heads"] = heads


def qattention(c):
    b, s, heads, d, width, past = c.size(1, 3), c.size(1, 6), c.size(1, 4), c.one_of(4, 8), c.size(4, 20), 0
    dtype = c.one_of(np.uint8, np.int8)
    c.attrs["num_heads"] = heads
    c.add(c.ints(np.uint8, b, s, width), False)
    c.add(c.ints(dtype, width, 3 * heads * d), True)
    c.add(c.floats(3 * heads * d), True)
    c.add(c.scale(), True), c.add(c.scale() * 0.1, True)
    if c.chance(0.3):
        past = c.size(1, 4)
    c.add(padding(c, b, s, s + past, ("ends", "keys")) if c.chance() else None, False)
    c.add(np.asarray(128, np.uint8), True)
    c.add(np.asarray(128 if dtype is np.uint8 else 3, dtype), True)
    if past:
        c.add(c.floats(2, b, heads, past, d), False)
    c.attrs["unidirectional"] = int(c.chance(0.3))
    c.outputs = 2 if past else 1


# --- Blocks ---


def matmul_nbits(c):
    bits, block = c.one_of(4, 4, 8, 2), c.one_of(16, 32, 64)
    k, n = c.size(10, 150), c.size(1, 20)
    blocks = -(-k // block)
    c.attrs.update(K=k, N=n, bits=bits, block_size=block)
    c.add(c.floats(*(c.size() for _ in range(c.size(1, 3))), k), False)
    c.add(c.ints(np.uint8, n, blocks, block * bits // 8), True)
    c.add(c.floats(n, blocks, scale=0.1), True)
    kind = c.one_of("none", "packed", "float") if bits != 2 else c.one_of("none", "packed")
    packed = c.ints(np.uint8, n, -(-blocks * bits // 8))
    c.add({"none": None, "packed": packed, "float": c.floats(n, blocks, scale=3)}[kind], True)
    c.add(None)
    c.maybe(c.floats(n), 0.3, True)
    if c.chance(0.3):
        c.attrs["accuracy_level"] = c.one_of(0, 1)
    c.rtol, c.atol = 2e-3, 2e-3


def gather_blocks(c):
    bits, block = c.one_of(4, 4, 8), c.one_of(16, 32)
    rows, k = c.size(2, 12), c.one_of(32, 64, 96)
    blocks = -(-k // block)
    c.attrs.update(bits=bits, block_size=block, gather_axis=0, quantize_axis=c.one_of(1, -1))
    c.add(c.ints(np.uint8, rows, k * bits // 8), True)
    c.add(c.r.integers(0, rows, [c.size() for _ in range(c.size(1, 3))]), False)
    c.add(c.floats(rows, blocks, scale=0.1), True)
    c.maybe(c.ints(np.uint8, rows, -(-blocks * bits // 8)), constant=True)


# --- Experts, states ---


def routed(c, glu):
    tokens, hidden, inner = c.one_of(1, 2, 9), c.one_of(32, 64), c.one_of(32, 64)
    experts = c.size(2, 7)
    c.attrs["k"] = c.size(1, experts + 1)
    c.attrs["activation_type"] = "swiglu" if glu else c.one_of("relu", "gelu", "silu", "identity")
    if c.chance():
        c.attrs["normalize_routing_weights"] = 1
    if glu:
        c.attrs.update(swiglu_fusion=1, activation_alpha=float(c.r.uniform(1, 2)), activation_beta=float(c.r.uniform(0, 1)))
        if c.chance():
            c.attrs["swiglu_limit"] = 0.8
    shape = (tokens, hidden) if c.chance() else (1, tokens, hidden)
    c.add(c.floats(*shape), False)
    c.add(c.floats(tokens, experts, scale=2), False)
    return experts, hidden, inner, inner * (2 if glu else 1)


def moe(c):
    e, hidden, inner, wide = routed(c, c.chance())
    c.add(c.floats(e, wide, hidden, scale=0.2), True)
    c.maybe(c.floats(e, wide), constant=True)
    c.add(c.floats(e, hidden, inner, scale=0.2), True)
    c.maybe(c.floats(e, hidden), constant=True)
    c.atol = 2e-3


def qmoe(c):
    e, hidden, inner, wide = routed(c, c.chance())
    # ONNX Runtime's CPU kernel normalises whatever the node says, and rounds rows to int8
    # before it multiplies blocks of 8 bits.
    c.attrs["normalize_routing_weights"] = 1
    bits, block = c.one_of((4, 0), (4, 32), (8, 0))
    c.attrs["expert_weight_bits"] = bits
    if block:
        c.attrs["block_size"] = block
    for n, k in ((wide, hidden), (hidden, inner)):
        c.add(c.ints(np.uint8, e, n, k * bits // 8), True)
        scales = (e, n, k // block) if block else (e, n)
        c.add(np.abs(c.floats(*scales, scale=0.3 / 2**bits)) + 1e-3, True)
        c.maybe(c.floats(e, n), constant=True)
    c.rtol, c.atol = 2e-2, 2e-2


def linear_attention(c):
    b, t, kv, dk, dv = c.size(1, 4), c.size(1, 6), c.size(1, 4), c.one_of(4, 8), c.one_of(4, 8)
    heads, rule = kv * c.size(1, 3), c.one_of("linear", "gated", "delta", "gated_delta")
    c.attrs.update(q_num_heads=heads, kv_num_heads=kv, update_rule=rule)
    c.add(c.floats(b, t, heads * dk), False)
    c.add(c.floats(b, t, kv * dk, scale=dk**-0.5), False), c.add(c.floats(b, t, kv * dv), False)
    c.maybe(c.floats(b, kv, dk, dv), constant=False)
    c.add(-np.abs(c.floats(b, t, kv * c.one_of(1, dk))) if "gated" in rule else None, False)
    c.add(np.abs(c.floats(b, t, kv, scale=0.3)) if "delta" in rule else None, False)
    if c.chance():
        c.attrs["scale"] = 0.3
    c.outputs = 2


def causal_conv(c):
    b, channels, t, k = c.size(1, 4), c.size(1, 6), c.size(1, 9), c.size(2, 5)
    gap = c.attrs["dilation"] = c.one_of(1, 1, 2)
    last = c.attrs["channels_last"] = int(c.chance(0.4))
    turn = lambda x: np.ascontiguousarray(np.swapaxes(x, 1, 2)) if last else x
    c.add(turn(c.floats(b, channels, t)), False)
    c.add(c.floats(channels, 1, k), True)
    c.maybe(c.floats(channels), constant=True)
    c.maybe(turn(c.floats(b, channels, (k - 1) * gap)), constant=False)
    c.attrs["activation"] = c.one_of("none", "silu", "swish")
    c.outputs = 2


# --- Quantised ---


def qlinear_binary(c):
    dtype = c.one_of(np.uint8, np.int8)
    rank = c.size(1, 5)
    shape = [c.size(1, 6) for _ in range(rank)]
    other = [1 if c.chance(0.3) else n for n in shape][c.r.integers(0, rank) :]
    # ONNX Runtime takes no op without zero points, though they are optional.
    c.quantised(dtype, *shape, zero=1), c.quantised(dtype, *other, zero=1)
    c.add(np.float32(c.r.uniform(0.02, 0.1)), True), c.add(c.ints(dtype), True)


def qlinear_unary(c):
    dtype = c.one_of(np.uint8, np.int8)
    c.quantised(dtype, *(c.size() for _ in range(c.size(1, 4))), zero=1)
    c.add(c.scale(), True), c.add(c.ints(dtype), True)


def qlinear_sigmoid(c):
    qlinear_unary(c)


def qlinear_leaky(c):
    qlinear_unary(c)
    if c.chance():
        c.attrs["alpha"] = float(c.r.uniform(0.01, 0.5))


def qlinear_softmax(c):
    dtype, rank = c.one_of(np.uint8, np.int8), c.size(1, 5)
    c.quantised(dtype, *(c.size(2, 7) for _ in range(rank)))  # of one ONNX Runtime makes 256, which is 0
    c.add(np.float32(1 / 256), True), c.add(np.asarray(0 if dtype is np.uint8 else -128, dtype), True)
    c.attrs.update(opset=c.one_of(11, 13), axis=int(c.r.integers(-rank, rank)))


def qlinear_global(c):
    dtype, last = c.one_of(np.uint8, np.int8), c.chance()
    c.quantised(dtype, c.size(1, 4), *(c.size() for _ in range(3)), zero=1)
    c.add(c.scale(), True), c.add(c.ints(dtype), True)
    c.attrs["channels_last"] = int(last)


def qlinear_pool(c):
    dtype, last = c.one_of(np.uint8, np.int8), c.chance()
    n, ch, dims = c.size(1, 3), c.size(1, 5), [c.size(5, 10) for _ in range(2)]
    c.quantised(dtype, *([n] + dims + [ch] if last else [n, ch] + dims), zero=1)
    c.add(c.scale(), True), c.add(c.ints(dtype), True)
    c.attrs["kernel_shape"] = window(c, dims, dilates=False)
    c.attrs.update(channels_last=int(last), count_include_pad=int(c.chance()), ceil_mode=int(c.chance(0.3)))


def qlinear_concat(c):
    dtype, rank = c.one_of(np.uint8, np.int8), c.size(1, 4)
    dims, axis = [c.size(1, 6) for _ in range(rank)], int(c.r.integers(0, rank))
    c.add(c.scale(), True), c.add(c.ints(dtype), True)
    for _ in range(c.size(1, 4)):
        c.quantised(dtype, *(c.size(1, 6) if i == axis else n for i, n in enumerate(dims)), zero=1)
    c.attrs["axis"] = axis - rank if c.chance(0.3) else axis


def qlinear_where(c):
    dtype, shape = c.one_of(np.uint8, np.int8), [c.size(1, 5) for _ in range(3)]
    c.add(c.r.random(shape) < 0.5, False)
    for _ in range(2):
        c.quantised(dtype, *(1 if c.chance(0.2) else n for n in shape), zero=1)
    c.add(c.scale(), True), c.add(c.ints(dtype), True)


def qlinear_conv(c):
    dtype, g, i, o = c.one_of(np.uint8, np.int8), c.size(1, 3), c.size(1, 4), c.size(1, 4)
    weight = np.int8 if dtype is np.int8 else c.one_of(np.uint8, np.int8)
    last, dims, n = c.chance(), [c.size(7, 11) for _ in range(2)], c.size(1, 3)
    kernel = window(c, dims)
    c.quantised(dtype, *([n] + dims + [g * i] if last else [n, g * i] + dims), zero=1)
    many = c.chance()
    c.add(c.ints(weight, g * o, i, *kernel), True)
    c.add(c.scale(g * o) if many else c.scale(), True)
    zero = c.ints(weight) if weight is np.uint8 else np.asarray(0, np.int8)
    c.add(np.full(g * o, zero) if many else zero, True)
    c.add(np.float32(c.r.uniform(0.3, 1)), True), c.add(c.ints(dtype), True)
    c.maybe(c.r.integers(-500, 500, g * o).astype(np.int32), constant=True)
    c.attrs.update(group=g, channels_last=int(last))


def nhwc_max_pool(c):
    dims = [c.size(5, 10) for _ in range(2)]
    c.add(c.ints(c.one_of(np.uint8, np.int8), c.size(1, 3), *dims, c.size(1, 5)), False)
    c.attrs["kernel_shape"] = window(c, dims)


def qgemm(c):
    m, k, n, a, b = c.size(), c.size(), c.size(), np.uint8, c.one_of(np.uint8, np.int8)
    if c.chance(0.3):
        a = b = np.int8
    ta, tb = (c.attrs.setdefault(t, int(c.chance())) for t in ("transA", "transB"))
    c.quantised(a, *((k, m) if ta else (m, k)), zero=1)
    many = c.chance(0.4)
    c.add(c.ints(b, *((n, k) if tb else (k, n))), True)
    c.add(c.scale(n) if many else c.scale(), True), c.add(c.ints(b, n) if many else c.ints(b), True)
    c.maybe(c.r.integers(-900, 900, c.one_of((n,), (1, n), (m, n))).astype(np.int32), constant=True)
    if c.chance():
        c.add(np.float32(c.r.uniform(0.05, 0.4)), True), c.add(c.ints(a), True)
    if c.chance():
        c.attrs["alpha"] = float(c.r.uniform(0.3, 2))


def dynamic_matmul(c):
    k, n, b = c.size(2, 20), c.size(1, 9), c.one_of(np.uint8, np.int8)
    c.add(c.floats(*(c.size(1, 4) for _ in range(c.size(1, 4))), k), False)
    many = c.chance(0.4)
    c.add(c.ints(b, k, n), c.chance(0.7))
    c.add(c.scale(n) if many else c.scale(), True)
    c.maybe(c.ints(b, n) if many else c.ints(b), constant=True)
    c.maybe(c.floats(n), constant=True)
    c.rtol, c.atol = 5e-3, 2e-2  # an element of A that lies between two steps


def dynamic_lstm(c):
    t, b, k, h, both = c.size(1, 6), c.size(1, 4), c.size(2, 9), c.size(2, 7), c.chance(0.4)
    d, dtype = 2 if both else 1, c.one_of(np.uint8, np.int8)
    c.attrs["hidden_size"] = h
    c.attrs["direction"] = "bidirectional" if both else c.one_of("forward", "reverse")
    c.add(c.floats(t, b, k), False)
    for rows in (k, h):
        c.add(c.ints(dtype, d, rows, 4 * h), True)
    c.maybe(c.floats(d, 8 * h), constant=True)
    c.maybe(c.r.integers(1, t + 1, b).astype(np.int32), 0.3, False)
    start = c.chance(0.4)
    for _ in range(2):
        c.add(c.floats(d, b, h) if start else None, False)
    c.add(c.floats(d, 3 * h, scale=0.3) if c.chance(0.3) else None, True)
    many = c.chance(0.3)
    for _ in range(2):
        c.add((c.scale(d, 4 * h) if many else c.scale(d)) * 0.2, True)
        c.add(np.zeros((d, 4 * h), dtype) if many else c.ints(dtype, d), True)
    if c.chance(0.2):
        c.attrs["clip"] = 2.0
    c.outputs = 3
    c.rtol, c.atol = 5e-3, 4e-2  # a number that lies between two steps, by a weight


def integer_to_float(c):
    k, n = c.size(2, 20), c.size(1, 9)
    a, b = c.one_of((np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8))
    many = c.chance(0.4)
    c.add(c.ints(a, *(c.size(1, 4) for _ in range(c.size(1, 4))), k), False)
    c.add(c.ints(b, k, n), True)
    c.add(c.scale(), True), c.add(c.scale(n) if many else c.scale(), True)
    c.maybe(c.ints(a), constant=True), c.maybe(c.ints(b, n) if many else c.ints(b), constant=True)
    c.maybe(c.floats(n), constant=True)


def quantize(c):
    dtype = c.one_of(np.uint16, np.int16, np.uint8, np.int8)
    shape = [c.size(1, 6) for _ in range(c.size(1, 4))]
    axis = int(c.r.integers(0, len(shape)))
    many = c.chance()
    c.add(c.floats(*shape, scale=3), False)
    c.add((c.scale(shape[axis]) if many else c.scale()) * (1 if np.dtype(dtype).itemsize == 1 else 0.02), True)
    c.add(c.ints(dtype, shape[axis]) if many else c.ints(dtype), True)
    if many:
        c.attrs["axis"] = axis - len(shape) if c.chance(0.3) else axis


def dequantize(c):
    dtype = c.one_of(np.uint16, np.int16, np.uint8, np.int8)
    shape = [c.size(1, 6) for _ in range(c.size(1, 4))]
    axis = int(c.r.integers(0, len(shape)))
    many = c.chance()
    c.add(c.ints(dtype, *shape), False)
    c.add(c.scale(shape[axis]) if many else c.scale(), True)
    c.maybe(c.ints(dtype, shape[axis]) if many else c.ints(dtype), constant=True)
    if many:
        c.attrs["axis"] = axis - len(shape) if c.chance(0.3) else axis


# --- Without a CPU kernel: by the text ---


def erf(x):
    return np.vectorize(math.erf)(x)


def bias_add(c):
    n, s, h = c.size(), c.size(), c.size()
    x, b, skip = c.add(c.floats(n, s, h), False), c.add(c.floats(h)), c.add(c.floats(n, s, h))
    c.expect = [x + b + skip]


def bias_split_gelu(c):
    n, s, h = c.size(), c.size(), 2 * c.size()
    x, b = c.add(c.floats(n, s, h), False), c.add(c.floats(h))
    left, right = np.split((x + b).astype(np.float64), 2, -1)
    c.expect = [(left * 0.5 * right * (1 + erf(right / 2**0.5))).astype(np.float32)]


def normed(x, groups, gamma, beta, epsilon, swish):
    """[n, .., c] in groups of channels."""
    n, ch = x.shape[0], x.shape[-1]
    g = x.astype(np.float64).reshape(n, -1, groups, ch // groups)
    g = (g - g.mean((1, 3), keepdims=True)) / np.sqrt(g.var((1, 3), keepdims=True) + epsilon)
    y = g.reshape(x.shape) * gamma + beta
    return (y / (1 + np.exp(-y)) if swish else y).astype(np.float32)


def group_norm(c, skips=False):
    n, hw, groups, each = c.size(1, 4), (c.size(2, 5), c.size(2, 5)), c.size(1, 4), c.size(1, 4)
    ch = groups * each
    c.attrs.update(groups=groups, activation=int(c.chance()), epsilon=1e-4)
    x, gamma, beta = c.add(c.floats(n, *hw, ch), False), c.add(c.floats(ch)), c.add(c.floats(ch))
    if skips:
        skip = c.add(c.floats(*c.one_of((n, *hw, ch), (n, 1, 1, ch), (n, ch))), False)
        bias = c.maybe(c.floats(ch))
        x = x + (skip[:, None, None] if skip.ndim == 2 else skip) + (0 if bias is None else bias)
        c.outputs = 2
    c.expect = [normed(x, groups, gamma, beta, 1e-4, c.attrs["activation"])] + [x] * skips


def skip_group_norm(c):
    group_norm(c, True)


def nhwc_conv(c, fuses=False):
    """As Conv of ONNX Runtime, with the channels in front."""
    g, i, o, n = c.size(1, 3), c.size(1, 4), c.size(1, 4), c.size(1, 3)
    dims = [c.size(7, 10) for _ in range(2)]
    kernel = window(c, dims)
    c.attrs["group"] = g
    x = c.floats(n, g * i, *dims)
    c.add(np.ascontiguousarray(np.moveaxis(x, 1, -1)), False)
    w, b = c.add(c.floats(g * o, i, *kernel), True), c.maybe(c.floats(g * o), constant=True)
    c.twin = copy.copy(c)
    c.twin.op, c.twin.domain, c.twin.attrs = "Conv", "", dict(c.attrs)
    c.twin.inputs = [(x, False), (w, True)] + ([(b, True)] if b is not None else [])
    c.turn = lambda y: np.moveaxis(y, 1, -1)
    if fuses:
        c.attrs["activation"] = "Relu"
        c.turn = lambda y: np.maximum(np.moveaxis(y, 1, -1), 0)


def nhwc_fused_conv(c):
    nhwc_conv(c, True)


def mul_integer(c):
    dtype, shape = c.one_of(np.uint8, np.int8), [c.size() for _ in range(3)]
    a = c.add(c.ints(dtype, *shape), False)
    az = c.add(c.ints(dtype), True)
    b = c.add(c.ints(dtype, *shape[1:]), False)
    bz = c.maybe(c.ints(dtype), constant=True)
    wide = lambda x: np.int32(0) if x is None else x.astype(np.int32)
    c.expect = [(wide(a) - wide(az)) * (wide(b) - wide(bz))]


def matmul_integer16(c):
    m, k, n = c.size(), c.size(), c.size()
    c.add(c.r.integers(-999, 999, (m, k)).astype(np.int16), False)
    c.add(c.r.integers(-999, 999, (k, n)).astype(np.int16), False)


def reduce_sum_integer(c):
    x = c.add(c.ints(c.one_of(np.uint8, np.int8), *(c.size() for _ in range(3))), False)
    c.attrs.update(axes=c.one_of([0], [1, 2], [-1]), keepdims=int(c.chance()))
    c.expect = [x.astype(np.int32).sum(tuple(c.attrs["axes"]), keepdims=bool(c.attrs["keepdims"]), dtype=np.int32)]


def qlinear_mean(c):
    dtype = c.one_of(np.uint8, np.int8)
    x, s, z = c.quantised(dtype, *(c.size() for _ in range(3)), zero=1)
    t, y = c.add(c.scale(), True), c.add(c.ints(dtype), True)
    c.attrs.update(axes=c.one_of([0], [1, 2], [-1]), keepdims=int(c.chance()))
    mean = (x.astype(np.float64) - z).mean(tuple(c.attrs["axes"]), keepdims=bool(c.attrs["keepdims"])) * s / t
    info = np.iinfo(dtype)
    c.expect = [np.clip(np.rint(mean) + y, info.min, info.max).astype(dtype)]


def bias_softmax(c):
    b, h, s, t, inner = c.size(1, 4), c.size(1, 4), c.size(1, 5), c.size(1, 6), c.chance()
    x = c.add(c.floats(b, h, s, t), False)
    bias = c.add(c.floats(*((b, 1, 1, t) if inner else (1, 1, s, t))), False)
    c.attrs.update(axis=3, is_inner_broadcast=int(inner))
    y = np.exp((x + bias) - (x + bias).max(-1, keepdims=True))
    c.expect = [y / y.sum(-1, keepdims=True)]


def relative_position(c):
    buckets, heads, s = c.one_of(8, 16, 32), c.size(1, 5), c.size(1, 30)
    both, most = c.chance(), c.one_of(20, 64, 128)
    table = c.add(c.floats(buckets, heads))
    for _ in range(2):
        c.add(np.array([s], np.int64), True)
    c.attrs.update(is_bidirectional=int(both), max_distance=most)
    far = np.arange(s)[None] - np.arange(s)[:, None]  # T5's _relative_position_bucket
    first, count = np.zeros_like(far), buckets
    if both:
        count //= 2
        first, far = (far > 0) * count, np.abs(far)
    else:
        far = -np.minimum(far, 0)
    near = count // 2
    log = near + (np.log(np.maximum(far, 1) / near) / np.log(most / near) * (count - near)).astype(np.int64)
    at = first + np.where(far < near, far, np.minimum(log, count - 1))
    c.expect = [table[at].transpose(2, 0, 1)[None]]


# --- From before ai.onnx had them ---


def trilu(c):
    c.add(c.floats(*(c.size() for _ in range(c.size(2, 5)))), False)
    c.maybe(np.array(int(c.r.integers(-3, 4)), np.int64), constant=True)
    c.attrs["upper"] = int(c.chance())


def expand_dims(c):
    rank = c.size(1, 4)
    c.add(c.floats(*(c.size() for _ in range(rank))), False)
    c.add(np.array(int(c.r.integers(-rank - 1, rank + 1)), np.int32), True)


def gather_nd(c):
    dims = [c.size(2, 6) for _ in range(3)]
    depth = c.size(1, 4)
    c.add(c.floats(*dims), False)
    c.add(np.stack([c.r.integers(0, d, (2, 3)) for d in dims[:depth]], -1), False)


def pad(c):
    rank = c.size(1, 4)
    c.attrs["mode"] = c.one_of("constant", "edge", "reflect")
    c.add(c.floats(*(c.size(4, 8) for _ in range(rank))), False)
    c.add(c.r.integers(0, 3, 2 * rank), True)
    if c.attrs["mode"] == "constant":
        c.maybe(c.floats(1), constant=True)


def value_range(c):
    dtype = c.one_of(np.int64, np.int32, np.float32)
    first = int(c.r.integers(-5, 5))
    c.add(np.array(first, dtype), True), c.add(np.array(first + c.size(1, 20), dtype), True)
    c.maybe(np.array(c.size(1, 4), dtype), constant=True)


def grid_sample(c):
    c.attrs.update(mode=c.one_of("bilinear", "nearest"), padding_mode=c.one_of("zeros", "border"), align_corners=int(c.chance()))
    n = c.size(1, 3)
    c.add(c.floats(n, c.size(1, 3), c.size(2, 6), c.size(2, 6)), False)
    c.add(c.floats(n, c.size(1, 5), c.size(1, 5), 2, scale=0.7), False)


def cdist(c):
    k = c.size()
    c.add(c.floats(c.size(), k), False), c.add(c.floats(c.size(), k), False)
    c.attrs["metric"] = c.one_of("euclidean", "sqeuclidean")


MAKERS = {
    "Gelu": gelu, "BiasGelu": bias_gelu, "FastGelu": fast_gelu, "QuickGelu": quick_gelu,
    "FusedMatMul": fused_matmul, "TransposeMatMul": transpose_matmul, "FusedGemm": fused_gemm,
    "FusedConv": fused_conv, "SkipLayerNormalization": skip_norm,
    "SkipSimplifiedLayerNormalization": skip_simplified_norm, "SimplifiedLayerNormalization": simplified_norm,
    "EmbedLayerNormalization": embed_norm, "Attention": attention, "MultiHeadAttention": multi_head,
    "DecoderMaskedMultiHeadAttention": masked_multi_head, "DecoderMaskedSelfAttention": masked_self,
    "GroupQueryAttention": grouped, "RotaryEmbedding": rotary, "QAttention": qattention,
    "MatMulNBits": matmul_nbits, "GatherBlockQuantized": gather_blocks, "QLinearAdd": qlinear_binary,
    "QLinearMul": qlinear_binary, "QLinearSigmoid": qlinear_sigmoid, "QLinearLeakyRelu": qlinear_leaky,
    "QLinearSoftmax": qlinear_softmax, "QLinearGlobalAveragePool": qlinear_global,
    "QLinearAveragePool": qlinear_pool, "QLinearConcat": qlinear_concat, "QLinearWhere": qlinear_where,
    "QLinearConv": qlinear_conv, "NhwcMaxPool": nhwc_max_pool, "QGemm": qgemm,
    "DynamicQuantizeMatMul": dynamic_matmul, "DynamicQuantizeLSTM": dynamic_lstm, "MatMulIntegerToFloat": integer_to_float,
    "MoE": moe, "QMoE": qmoe, "LinearAttention": linear_attention, "CausalConvWithState": causal_conv,
    "BiasAdd": bias_add, "BiasSplitGelu": bias_split_gelu, "GroupNorm": group_norm,
    "SkipGroupNorm": skip_group_norm, "NhwcConv": nhwc_conv, "NhwcFusedConv": nhwc_fused_conv,
    "MulInteger": mul_integer, "MatMulInteger16": matmul_integer16, "ReduceSumInteger": reduce_sum_integer,
    "QLinearReduceMean": qlinear_mean, "BiasSoftmax": bias_softmax, "RelativePositionBias": relative_position,
    "Trilu": trilu, "ExpandDims": expand_dims, "GatherND": gather_nd, "Pad": pad, "Range": value_range,
    "GridSample": grid_sample, "CDist": cdist,
    "QuantizeLinear": quantize, "DequantizeLinear": dequantize,
}  # fmt: skip
NAMES = sorted(MAKERS)


def make(name, seed):
    case = Case(name, [seed, NAMES.index(name)])
    MAKERS[name](case)
    return case
