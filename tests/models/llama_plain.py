#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The decoder of llama.py in ops of opset 18 alone, as exporters of PyTorch write it: rows are
appended to caches by Concat, positions come as position_ids, and the mask is a bias made of
attention_mask and of the places of keys.

    llama_plain.py FILE [SIZE]

keys: static=True keeps the caches' length, as opset 24 has it: TensorScatter at write_indices,
Attention with nonpad_kv_seqlen, and no mask. positions="places" takes angles by the places of keys, window=N hides keys by their
places: both are wrong where caches have gaps."""

import sys

import numpy as np
import onnx
from onnx import TensorProto as TP
from onnx import helper as h

import llama


class Maker(llama.Maker):
    def __init__(self, size, positions="given", window=0, static=False, **keys):
        super().__init__(size, **keys)
        self.static = static
        self.positions, self.places_window = positions, window
        self.made = False

    def product(self, x, name, k, n, gain=1.0):
        w = gain * self.r.standard_normal((k, n)).astype(np.float32) / k**0.5
        return self.node("MatMul", [x, self.keep(name + ".w", w.astype(np.float32))], [name])

    def ints(self, name, *values):
        return self.keep(name, np.array(values, np.int64))

    def shared_nodes(self, cos, sin):
        """Angles [1, 1, s, d / 2] and a bias [1, 1, s, all], once."""
        if self.made:
            return
        self.made = True
        if self.static:
            self.angles(cos, sin, "position_ids")
            return
        past = "past_key_values.0.key"
        self.keep("two", np.array(2, np.int64))
        self.keep("zero", np.array(0, np.int64))
        for name, source, axis in (("rows", "input_ids", "one"), ("had", past, "two"), ("all", "attention_mask", "one")):
            self.node("Shape", [source], [name + ".shape"])
            self.node("Gather", [name + ".shape", axis], [name], axis=0)
        self.node("Range", ["zero", "rows", "one"], ["count"])
        self.node("Add", ["count", "had"], ["places"])
        self.node("Range", ["zero", "all", "one"], ["keys"])
        self.angles(cos, sin, "position_ids" if self.positions == "given" else "places")
        self.node("Unsqueeze", ["places", self.ints("last", 1)], ["queries"])
        self.node("LessOrEqual", ["keys", "queries"], ["before"])
        self.node("Cast", ["attention_mask"], ["mask.given"], to=TP.BOOL)
        seen = self.node("And", ["before", "mask.given"], ["seen0"])
        if self.places_window:
            self.keep("window", np.array(self.places_window, np.int64))
            self.node("Sub", ["queries", "window"], ["window.begin"])
            self.node("Greater", ["keys", "window.begin"], ["window.in"])
            seen = self.node("And", [seen, "window.in"], ["seen1"])
        self.keep("low", np.array(-1e9, np.float32))
        self.keep("none", np.array(0, np.float32))
        self.node("Where", [seen, "none", "low"], ["bias"])

    def angles(self, cos, sin, at):
        for table in cos, sin:
            self.node("Gather", [table, at], [table + ".at"], axis=0)
            self.node("Reshape", [table + ".at", self.ints(table + ".dims", 1, 1, -1, self.depth // 2)], [table + ".row"])

    def turn(self, x, cos, sin):
        self.node("Split", [x], [x + ".l", x + ".r"], axis=-1, num_outputs=2)
        parts = []
        for part, (a, ta), (b, tb), op in (("l", ("l", cos), ("r", sin), "Sub"), ("r", ("r", cos), ("l", sin), "Add")):
            one = self.node("Mul", [f"{x}.{a}", ta + ".row"], [f"{x}.{part}1"])
            two = self.node("Mul", [f"{x}.{b}", tb + ".row"], [f"{x}.{part}2"])
            parts.append(self.node(op, [one, two], [f"{x}.{part}3"]))
        return self.node("Concat", parts, [x + ".turned"], axis=-1)

    def split(self, x, heads):
        dims = self.ints(x + ".dims", 1, -1, heads, self.depth)
        return self.node("Transpose", [self.node("Reshape", [x, dims], [x + ".heads"])], [x + ".t"], perm=[0, 2, 1, 3])

    def layer(self, i, x, cos, sin):
        self.shared_nodes(cos, sin)
        n, kv = f"layer{i}", self.shared * self.depth
        q = self.turn(self.split(self.product(x, n + ".q", self.width, self.width, 4), self.heads), cos, sin)
        k = self.turn(self.split(self.product(x, n + ".k", self.width, kv), self.shared), cos, sin)
        v = self.split(self.product(x, n + ".v", self.width, kv), self.shared)
        for p, new in (("key", k), ("value", v)):
            past, present = f"past_key_values.{i}.{p}", f"present.{i}.{p}"
            shape = [1, self.shared, "past", self.depth]
            self.inputs.append(h.make_tensor_value_info(past, TP.FLOAT, shape))
            self.outputs.append(h.make_tensor_value_info(present, TP.FLOAT, shape[:2] + ["total"] + shape[3:]))
            if self.static:
                self.node("TensorScatter", [past, new, "write_indices"], [present], axis=2)
                continue
            self.node("Concat", [past, new], [present], axis=2)
            dims = self.ints(f"{n}.{p}.dims", 1, self.shared, 1, -1, self.depth)
            wide = self.ints(f"{n}.{p}.wide", 1, self.shared, self.heads // self.shared, 1, self.depth)
            self.node("Reshape", [present, dims], [f"{n}.{p}.5"])
            self.node("Expand", [f"{n}.{p}.5", wide], [f"{n}.{p}.e"])
            self.node("Reshape", [f"{n}.{p}.e", self.ints(f"{n}.{p}.all", 1, self.heads, -1, self.depth)], [f"{n}.{p}"])
        if self.static:
            return self.attend(n, q, f"present.{i}.key", f"present.{i}.value")
        self.node("Transpose", [n + ".key"], [n + ".kt"], perm=[0, 1, 3, 2])
        self.node("MatMul", [q, n + ".kt"], [n + ".qk"])
        self.node("Mul", [n + ".qk", self.keep(n + ".scale", np.array(self.depth**-0.5, np.float32))], [n + ".scores"])
        self.node("Add", [n + ".scores", "bias"], [n + ".biased"])
        self.node("Softmax", [n + ".biased"], [n + ".p"], axis=-1)
        self.node("MatMul", [n + ".p", n + ".value"], [n + ".mean"])
        return self.merge(n)

    def attend(self, n, q, k, v):
        self.node("Attention", [q, k, v, "", "", "", "nonpad_kv_seqlen"], [n + ".mean"], is_causal=1, scale=self.depth**-0.5)
        return self.merge(n)

    def merge(self, n):
        self.node("Transpose", [n + ".mean"], [n + ".mean.t"], perm=[0, 2, 1, 3])
        self.node("Reshape", [n + ".mean.t", self.ints(n + ".flat", 1, -1, self.width)], [n + ".a"])
        return self.product(n + ".a", n + ".o", self.width, self.width)

    def model(self):
        if self.positions == "given":
            self.inputs.append(h.make_tensor_value_info("position_ids", TP.INT64, [1, "sequence"]))
        model = super().model()
        if not self.static:
            return model
        graph = model.graph
        graph.input.remove(next(i for i in graph.input if i.name == "attention_mask"))
        for node in list(graph.node):  # what the mask becomes, which nothing reads
            if node.output[0] in ("lengths", "ends", "seqlens_k", "mask.shape", "mask.all", "total"):
                graph.node.remove(node)
        graph.input.extend(h.make_tensor_value_info(name, TP.INT64, [1]) for name in ("write_indices", "nonpad_kv_seqlen"))
        model.opset_import[0].version = 24
        return model


def make(path, size="tiny", **keys):
    maker = Maker(dict(llama.SIZES[size]), **keys)
    onnx.save(maker.model(), path)
    return maker


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    make(*sys.argv[1:3])
