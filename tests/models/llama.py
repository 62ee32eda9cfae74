#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A decoder of language models as onnxruntime-genai's builder writes it, with random int4
weights from a seed: inputs input_ids [1, s], attention_mask [1, all], past_key_values.N.key
and .value [1, heads, most, width]; outputs logits, present.N.key and .value.

    llama.py FILE [SIZE [KEY=VALUE...]]     SIZE: tiny, 135m, 0.5b; keys: of SIZES' rows

Products are MatMulNBits in blocks of 32, the head too; attention is GroupQueryAttention with
the tables of angles. Queries are 4 times as large as they would be, so that scores differ."""

import sys

import numpy as np
import onnx
from onnx import TensorProto as TP
from onnx import helper as h

MS = "com.microsoft"
SIZES = {
    "tiny": dict(width=64, layers=2, heads=4, shared=2, inner=160, words=96, most=64),
    "135m": dict(width=576, layers=30, heads=9, shared=3, inner=1536, words=49152, most=2048),
    "0.5b": dict(width=896, layers=24, heads=14, shared=2, inner=4864, words=151936, most=2048),
}
# Of a byte the number of 0 to 15 that a normal distribution of deviation 2.5 gives it.
_EDGES = np.sort(np.random.default_rng(0).standard_normal(256 * 64)).reshape(256, 64).mean(1)
NIBBLE = np.clip(np.round(_EDGES * 2.5) + 8, 0, 15).astype(np.uint8)


class Maker:
    def __init__(self, size, block=32, bits=4, level=4, seed=1, packed=False, zeros=False, base=1e5, window=0,
                 softcap=0, sink=False, moving=False, batch=False):
        self.batch = "batch" if batch else 1
        self.__dict__.update(size)
        self.block, self.bits, self.level, self.packed, self.zeros, self.base = block, bits, level, packed, zeros, base
        self.window, self.softcap, self.sink, self.moving = window, softcap, sink, moving
        self.depth = self.width // self.heads
        self.interleaved, self.epsilon = 0, 1e-5
        self.r = np.random.default_rng(seed)
        self.nodes, self.stored, self.inputs, self.outputs = [], [], [], []
        self.values = {}  # what is stored, as numpy has it

    def keep(self, name, array):
        array = np.ascontiguousarray(array)
        kind = h.np_dtype_to_tensor_dtype(array.dtype)
        self.stored.append(h.make_tensor(name, kind, array.shape, array.tobytes(), raw=True))
        self.values[name] = array
        return name

    def node(self, op, ins, outs, domain="", **attrs):
        self.nodes.append(h.make_node(op, ins, outs, domain=domain, name=outs[0] + "/" + op, **attrs))
        return outs[0]

    def weights(self, name, k, n, gain):
        """[n, blocks, bytes] of deviation gain / sqrt(k), scales, packed zero points or None, bits."""
        blocks = -(-k // self.block)
        size = n * blocks * self.block * self.bits // 8
        if self.bits == 4:
            low, high = NIBBLE[np.frombuffer(self.r.bytes(2 * size), np.uint8)].reshape(2, -1)
            w, deviation = low | high << 4, 2.5
        else:
            w, deviation = np.frombuffer(self.r.bytes(size), np.uint8), 2**self.bits / 12**0.5
        scales = gain / deviation / k**0.5 * self.r.uniform(0.75, 1.25, (n, blocks))
        zeros = None
        if self.zeros:
            zeros = np.frombuffer(self.r.bytes(n * -(-blocks * self.bits // 8)), np.uint8).reshape(n, -1)
        return w.reshape(n, blocks, -1), scales.astype(np.float32), zeros, self.bits

    def norm_weights(self, name):
        return self.r.uniform(0.8, 1.2, self.width).astype(np.float32)

    def embedding(self):
        return self.r.standard_normal((self.words, self.width), np.float32)

    def product(self, x, name, k, n, gain=1.0):
        """x [.., k] times weights [n, k]."""
        w, scales, zeros, bits = self.weights(name, k, n, gain)
        ins = [x, self.keep(name + ".w", w), self.keep(name + ".s", scales)]
        if zeros is not None:
            ins.append(self.keep(name + ".z", zeros))
        return self.node("MatMulNBits", ins, [name], MS, K=k, N=n, bits=bits, block_size=self.block,
                         accuracy_level=self.level)

    def tables(self):
        half = self.depth // 2
        angles = np.outer(np.arange(self.most), self.base ** (-np.arange(half) / half))
        return self.keep("cos", np.cos(angles).astype(np.float32)), self.keep("sin", np.sin(angles).astype(np.float32))

    def layer(self, i, x, cos, sin):
        """x is normed already."""
        n, (q, kv) = f"layer{i}", (self.width, self.shared * self.depth)
        if self.packed:
            parts = [self.product(x, n + ".qkv", self.width, q + 2 * kv, 2), "", ""]
        else:
            parts = [self.product(x, f"{n}.{p}", self.width, c, g) for p, c, g in (("q", q, 4), ("k", kv, 1), ("v", kv, 1))]
        past = [f"past_key_values.{i}.{p}" for p in ("key", "value")]
        present = [f"present.{i}.{p}" for p in ("key", "value")]
        shape = [self.batch, self.shared, "past", self.depth]
        self.inputs += [h.make_tensor_value_info(p, TP.FLOAT, shape) for p in past]
        self.outputs += [h.make_tensor_value_info(p, TP.FLOAT, shape[:2] + ["total"] + shape[3:]) for p in present]
        ins, more = parts + past + ["seqlens_k", "total", cos, sin], {}
        if self.window:
            more["local_window_size"] = self.window
        if self.softcap:
            more["softcap"] = float(self.softcap)
        if self.sink:
            sinks = self.r.standard_normal(self.heads).astype(np.float32)
            ins += ["", "", self.keep(n + ".sink", sinks)]
        if self.moving:  # rows that leave a full cache's window are written over
            more["sliding_window_cache"] = 1
        self.node("GroupQueryAttention", ins, [n + ".a"] + present, MS, num_heads=self.heads, kv_num_heads=self.shared,
                  do_rotary=1, rotary_interleaved=self.interleaved, scale=self.depth**-0.5, **more)
        return self.product(n + ".a", n + ".o", q, self.width)

    def model(self):
        self.inputs += [h.make_tensor_value_info("input_ids", TP.INT64, [self.batch, "sequence"]),
                        h.make_tensor_value_info("attention_mask", TP.INT64, [self.batch, "all"])]
        self.outputs.append(h.make_tensor_value_info("logits", TP.FLOAT, [self.batch, "sequence", self.words]))
        self.keep("one", np.array(1, np.int64))
        self.keep("axis", np.array([1], np.int64))
        self.node("ReduceSum", ["attention_mask", "axis"], ["lengths"], keepdims=0)
        self.node("Sub", ["lengths", "one"], ["ends"])
        self.node("Cast", ["ends"], ["seqlens_k"], to=TP.INT32)
        self.node("Shape", ["attention_mask"], ["mask.shape"])
        self.node("Gather", ["mask.shape", "one"], ["mask.all"], axis=0)
        self.node("Cast", ["mask.all"], ["total"], to=TP.INT32)
        cos, sin = self.tables()
        self.keep("embed", self.embedding())
        x = self.node("Gather", ["embed", "input_ids"], ["embedded"], axis=0)
        norm = lambda name: self.keep(name, self.norm_weights(name))  # noqa: E731
        y = self.node("SimplifiedLayerNormalization", [x, norm("norm0")], ["normed"], axis=-1, epsilon=self.epsilon, stash_type=1)
        for i in range(self.layers):
            n = f"layer{i}"
            more = self.layer(i, y, cos, sin)
            y = self.node("SkipSimplifiedLayerNormalization", [x, more, norm(n + ".norm")], [n + ".m", "", "", n + ".x"],
                          MS, epsilon=self.epsilon)
            x = n + ".x"
            gate = self.product(y, n + ".gate", self.width, self.inner)
            up = self.product(y, n + ".up", self.width, self.inner)
            self.node("Sigmoid", [gate], [n + ".s"])
            self.node("Mul", [gate, n + ".s"], [n + ".silu"])
            self.node("Mul", [n + ".silu", up], [n + ".g"])
            more = self.product(n + ".g", n + ".down", self.inner, self.width)
            outs = [n + ".y", "", "", n + ".z"] if i + 1 < self.layers else [n + ".y"]
            y = self.node("SkipSimplifiedLayerNormalization", [x, more, norm(n + ".last")], outs, MS, epsilon=self.epsilon)
            x = n + ".z"
        self.product(y, "logits", self.width, self.words)
        graph = h.make_graph(self.nodes, "llama", self.inputs, self.outputs, self.stored)
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 18), h.make_opsetid(MS, 1)], ir_version=9)


def make(path, size="tiny", **keys):
    """Writes the model, and gives its maker."""
    row = dict(SIZES[size])
    row.update({k: keys.pop(k) for k in list(keys) if k in row})
    maker = Maker(row, **keys)
    onnx.save(maker.model(), path)
    return maker


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    make(sys.argv[1], *sys.argv[2:3], **{k: float(v) if k == "base" else int(v) for k, v in (a.split("=") for a in sys.argv[3:])})
