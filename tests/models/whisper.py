#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small speech models of Whisper's structure with random weights from a seed: an encoder of mel
features and a decoder with caches of its own and of the encoder.

    whisper.py FOLDER [genai|plain] [KEY=VALUE...]

genai: encoder.onnx, decoder.onnx and genai_config.json as the builder of onnxruntime-genai
writes them: the encoder gives the keys and values of the decoder's cross attention, attention is
com.microsoft's MultiHeadAttention, and places come from how many rows the past has.
plain: encoder_model.onnx and decoder_model_merged.onnx as optimum writes them: ops of opset 20,
and one decoder of two branches, without a past (it makes the cross caches) and with one.
keys: layers, width, heads, mels, frames, words, most, seed; positions=1 gives the plain decoder
cache_position, as transformers do since 4.43; masked=1 gives the genai decoder past_sequence_length and
cache_indirection, as ONNX Runtime's exporter for GPUs does (convert_to_onnx --use_decoder_masked_mha), masked=2
DecoderMaskedMultiHeadAttention with beam_width too, for one token; ranged=1 takes their places by Range and Gather, as
transformers' models do, instead of a Slice."""

import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto as TP
from onnx import helper as h

MS = "com.microsoft"
SMALL = dict(layers=2, width=64, heads=4, mels=8, frames=40, words=96, most=64, seed=1, positions=0, masked=0, ranged=0)


class Graph:
    """Nodes of one graph. What is stored is the model's."""

    def __init__(self, maker, prefix=""):
        self.maker, self.prefix = maker, prefix
        self.nodes, self.inputs, self.outputs = [], [], []

    def node(self, op, ins, out, domain="", **attrs):
        outs = [out] if isinstance(out, str) else out
        outs = [self.prefix + o if o and not o.startswith(("present", "logits", "hidden_states", "last_")) else o for o in outs]
        self.nodes.append(h.make_node(op, ins, outs, domain=domain, **attrs))
        return outs[0]

    def ints(self, *values):
        return self.maker.store("ints_" + "_".join(map(str, values)).replace("-", "m"), np.array(values, np.int64))

    def number(self, value):
        return self.maker.store(f"number_{value}".replace(".", "p").replace("-", "m"), np.array(value, np.float32))

    def index(self, value):
        return self.maker.store(f"index_{value}", np.array(value, np.int64))


class Maker:
    def __init__(self, kind, **keys):
        self.__dict__.update(SMALL, **keys)
        self.kind, self.depth, self.places = kind, self.width // self.heads, self.frames // 2
        self.weights = {}  # by name: the same in both forms
        self.r = np.random.default_rng(self.seed)
        self.stored = {}

    def store(self, name, array):
        if name not in self.stored:
            self.stored[name] = onnx.numpy_helper.from_array(np.asarray(array, order="C"), name)
        return name

    def weight(self, name, *dims, gain=1.0):
        if name not in self.weights:
            scale = gain / (np.prod(dims[1:]) if len(dims) == 3 else dims[0]) ** 0.5
            r = np.random.default_rng([self.seed, *name.encode()])
            self.weights[name] = (scale * r.standard_normal(dims)).astype(np.float32)
        return self.store(name, self.weights[name])

    def vector(self, name, count, around=0.0):
        if name not in self.weights:
            r = np.random.default_rng([self.seed, *name.encode()])
            self.weights[name] = (around + 0.1 * r.standard_normal(count)).astype(np.float32)
        return self.store(name, self.weights[name])

    # --- Parts of both ---

    def dense(self, g, x, name, k, n, gain=1.0, bias=True):
        y = g.node("MatMul", [x, self.weight(name + ".w", k, n, gain=gain)], name + ".mm")
        return g.node("Add", [y, self.vector(name + ".b", n)], name + ".add") if bias else y

    def norm(self, g, x, name, out=None):
        return g.node("LayerNormalization", [x, self.vector(name + ".g", self.width, 1.0), self.vector(name + ".b", self.width)],
                      out or name, axis=-1, epsilon=1e-5)

    def gelu(self, g, x, name):
        if self.kind == "genai":
            return g.node("Gelu", [x], name, approximate="none")
        y = g.node("Div", [x, g.number(2**0.5)], name + ".d")
        y = g.node("Add", [g.node("Erf", [y], name + ".e"), g.number(1.0)], name + ".1")
        return g.node("Mul", [g.node("Mul", [x, y], name + ".m"), g.number(0.5)], name)

    def split(self, g, x, name):
        y = g.node("Reshape", [x, g.ints(0, -1, self.heads, self.depth)], name + ".split")
        return g.node("Transpose", [y], name + ".t", perm=[0, 2, 1, 3])

    def attend(self, g, q, k, v, name, bias=None):
        """Of heads [1, h, s, d]."""
        s = g.node("MatMul", [q, g.node("Transpose", [k], name + ".kt", perm=[0, 1, 3, 2])], name + ".s")
        s = g.node("Add", [s, bias], name + ".biased") if bias else s
        p = g.node("Softmax", [s], name + ".p", axis=-1)
        y = g.node("Transpose", [g.node("MatMul", [p, v], name + ".pv")], name + ".pvt", perm=[0, 2, 1, 3])
        return g.node("Reshape", [y, g.ints(0, -1, self.width)], name + ".y")

    def query(self, g, x, name):
        q = self.dense(g, x, name + ".q", self.width, self.width, 4)
        return g.node("Mul", [q, g.number(self.depth**-0.5)], name + ".qs") if self.kind == "plain" else q

    def key(self, g, x, name):
        return self.dense(g, x, name + ".k", self.width, self.width, bias=False)

    def value(self, g, x, name):
        return self.dense(g, x, name + ".v", self.width, self.width)

    def fused(self, g, q, k, v, name, past=(), present=(), **attrs):
        if self.masked and name.startswith("dec"):
            return self.fused_masked(g, q, k, v, name, list(past), list(present), attrs)
        ins = [q, k, v] + (["", "", "", *past] if past else [])
        return g.node("MultiHeadAttention", ins, [name + ".y", *present], MS, num_heads=self.heads, **attrs)

    def fused_masked(self, g, q, k, v, name, past, present, attrs):
        """Caches with room, whose rows past_sequence_length counts; of cross attention it is given and not read."""
        tail = ["past_sequence_length", "cache_indirection"]
        if self.masked == 1:
            ins = [q, k, v, "", "", "", *(past or ["", ""]), *tail]
            return g.node("MultiHeadAttention", ins, [name + ".y", *present], MS, num_heads=self.heads, **attrs)
        ins = [q, k, v, "", "", *(past or ["", ""]), tail[0], "beam_width", tail[1], ""]
        outs = [name + ".y", *present]
        if not past:
            outs += ["", "", f"output_cross_qk_{name[3:].split('.')[0]}"]
        return g.node("DecoderMaskedMultiHeadAttention", ins, outs, MS, num_heads=self.heads, output_qk=int(not past),
                      past_present_share_buffer=1)

    def feed(self, g, x, name):
        y = self.gelu(g, self.dense(g, self.norm(g, x, name + ".norm"), name + ".fc1", self.width, 2 * self.width), name + ".act")
        return g.node("Add", [x, self.dense(g, y, name + ".fc2", 2 * self.width, self.width)], name + ".out")

    def join(self, g, x, y, name):
        return g.node("Add", [x, self.dense(g, y, name + ".o", self.width, self.width)], name + ".join")

    # --- The encoder ---

    def encoder(self):
        g, last = Graph(self), "hidden_states" if self.kind == "genai" else "last_hidden_state"
        self.stored = {}
        source = "audio_features" if self.kind == "genai" else "input_features"
        g.inputs = [h.make_tensor_value_info(source, TP.FLOAT, ["batch_size", self.mels, self.frames])]
        x = g.node("Conv", [source, self.weight("conv1.w", self.width, self.mels, 3), self.vector("conv1.b", self.width)], "conv1",
                   kernel_shape=[3], pads=[1, 1])
        x = g.node("Conv", [self.gelu(g, x, "act1"), self.weight("conv2.w", self.width, self.width, 3), self.vector("conv2.b", self.width)],
                   "conv2", kernel_shape=[3], pads=[1, 1], strides=[2])
        x = g.node("Transpose", [self.gelu(g, x, "act2")], "rows", perm=[0, 2, 1])
        x = g.node("Add", [x, self.weight("enc.places", self.places, self.width)], "placed")
        for i in range(self.layers):
            n = f"enc{i}"
            y = self.norm(g, x, n + ".norm1")
            q, k, v = self.query(g, y, n), self.key(g, y, n), self.value(g, y, n)
            if self.kind == "genai":
                y = self.fused(g, q, k, v, n)
            else:
                y = self.attend(g, self.split(g, q, n + ".q"), self.split(g, k, n + ".k"), self.split(g, v, n + ".v"), n)
            x = self.feed(g, self.join(g, x, y, n), n + ".mlp")
        x = self.norm(g, x, "enc.norm", last)
        g.outputs = [h.make_tensor_value_info(last, TP.FLOAT, ["batch_size", self.places, self.width])]
        for i in range(self.layers if self.kind == "genai" else 0):
            for p, make in ("key", self.key), ("value", self.value):
                name = f"present_{p}_cross_{i}"
                y = make(g, x, f"dec{i}.cross")
                y = g.node("Reshape", [y, g.ints(-1, self.places, self.heads, self.depth)], name[8:] + ".split")
                g.node("Transpose", [y], name, perm=[0, 2, 1, 3])
                g.outputs.append(h.make_tensor_value_info(name, TP.FLOAT, ["batch_size", self.heads, self.places, self.depth]))
        return self.finish(g)

    # --- The decoder ---

    def embed(self, g, past):
        """Words and places, which begin where the past |past| [1, h, rows, d] ends."""
        ids = g.node("Gather", [self.weight("words", self.words, self.width, gain=self.words**0.5), "input_ids"], "embedded")
        table = self.weight("dec.places", self.most, self.width)
        if self.positions:
            return g.node("Add", [ids, g.node("Gather", [table, "cache_position"], "places")], "x0")
        rows = g.node("Gather", [g.node("Shape", ["input_ids"], "ids.shape"), g.index(1)], "ids.rows", axis=0)
        begin = g.index(0)
        if self.masked:
            begin = g.node("Cast", [g.node("Squeeze", ["past_sequence_length"], "past.scalar")], "past.rows", to=TP.INT64)
        elif past:
            begin = g.node("Gather", [g.node("Shape", [past], "past.shape"), g.index(2)], "past.rows", axis=0)
        if self.ranged:
            at = g.node("Range", [begin, g.node("Add", [begin, rows], "end"), g.index(1)], "range")
            at = g.node("Unsqueeze", [at, g.ints(0)], "range1")
            return g.node("Add", [ids, g.node("Gather", [table, at], "places")], "x0")
        end = g.node("Unsqueeze", [g.node("Add", [rows, begin], "end"), g.ints(0)], "end1")
        begin = g.node("Unsqueeze", [begin, g.ints(0)], "begin1")
        places = g.node("Slice", [table, begin, end, g.ints(0), g.ints(1)], "places")
        return g.node("Add", [ids, places], "x0")

    def causal(self, g):
        """A bias for tokens that have no past."""
        rows = g.node("Gather", [g.node("Shape", ["input_ids"], "mask.shape"), g.index(1)], "mask.rows", axis=0)
        count = g.node("Range", [g.index(0), rows, g.index(1)], "mask.range")
        seen = g.node("LessOrEqual", [count, g.node("Unsqueeze", [count, g.ints(1)], "mask.column")], "mask.seen")
        return g.node("Where", [seen, g.number(0.0), g.number(-3e38)], "mask")

    def decode(self, g, has_past):
        """The decoder behind its inputs, in the graph."""
        genai = self.kind == "genai"
        names = ([("past_{p}_self_{i}", "present_{p}_self_{i}", "past_{p}_cross_{i}", "")] if genai else
                 [("past_key_values.{i}.decoder.{p}", "present.{i}.decoder.{p}", "past_key_values.{i}.encoder.{p}", "present.{i}.encoder.{p}")])[0]
        at = lambda which, p, i: names[which].format(p=p, i=i)  # noqa: E731
        x = self.embed(g, at(0, "key", 0) if has_past else None)
        bias = None if genai or has_past else self.causal(g)
        for i in range(self.layers):
            n = f"dec{i}.self"
            y = self.norm(g, x, n + ".norm")
            q, k, v = self.query(g, y, n), self.key(g, y, n), self.value(g, y, n)
            past, present = [[at(w, p, i) for p in ("key", "value")] for w in (0, 1)]
            if genai:
                y = self.fused(g, q, k, v, n, past, present, unidirectional=1)
            else:
                both = []
                for part, old, new in ((k, past[0], present[0]), (v, past[1], present[1])):
                    part = self.split(g, part, new[8:])
                    both.append(g.node("Concat", [old, part], new, axis=2) if has_past else g.node("Identity", [part], new))
                y = self.attend(g, self.split(g, q, n + ".q"), *both, n, bias)
            x = self.join(g, x, y, n)
            n = f"dec{i}.cross"
            y = self.norm(g, x, n + ".norm")
            q, cross = self.query(g, y, n), [at(2, p, i) for p in ("key", "value")]
            if genai:
                y = self.fused(g, q, *cross, n)
            else:
                for c, (p, make) in enumerate((("key", self.key), ("value", self.value))):
                    name = at(3, p, i)
                    if has_past:  # what nobody reads
                        g.nodes.append(h.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(
                            np.zeros((0, self.heads, 1, self.depth), np.float32))))
                    else:
                        cross[c] = g.node("Identity", [self.split(g, make(g, "encoder_hidden_states", n), name[8:])], name)
                y = self.attend(g, self.split(g, q, n + ".q"), *cross, n)
            x = self.feed(g, self.join(g, x, y, n), f"dec{i}.mlp")
        x = self.norm(g, x, "dec.norm")
        g.node("MatMul", [x, self.store("head", self.weights["words"].T)], "logits")

    def caches(self):
        genai, out = self.kind == "genai", []
        for i in range(self.layers):
            for of in ("self", "cross") if genai else ("decoder", "encoder"):
                for p in "key", "value":
                    past = f"past_{p}_{of}_{i}" if genai else f"past_key_values.{i}.{of}.{p}"
                    out.append((of, past, past.replace("past_key_values", "present").replace("past", "present")))
        return out

    def decoder(self):
        g = Graph(self)
        self.stored = {}
        genai = self.kind == "genai"
        g.inputs = [h.make_tensor_value_info("input_ids", TP.INT32 if genai else TP.INT64, ["batch_size", "sequence_length"])]
        g.outputs = [h.make_tensor_value_info("logits", TP.FLOAT, ["batch_size", "sequence_length", self.words])]
        if not genai:
            g.inputs.append(h.make_tensor_value_info("encoder_hidden_states", TP.FLOAT, ["batch_size", "encoder_rows", self.width]))
        for of, past, present in self.caches():
            rows = {"self": "past_rows", "decoder": "past_rows", "cross": self.places, "encoder": "encoder_rows_out"}[of]
            g.inputs.append(h.make_tensor_value_info(past, TP.FLOAT, ["batch_size", self.heads, rows, self.depth]))
            if of != "cross":
                g.outputs.append(h.make_tensor_value_info(present, TP.FLOAT, ["batch_out", self.heads, present + "_rows", self.depth]))
        if self.masked:
            g.inputs += [h.make_tensor_value_info("past_sequence_length", TP.INT32, [1]),
                         h.make_tensor_value_info("cache_indirection", TP.INT32, ["batch_size", "beam_width", "max_sequence_length"])]
        if self.masked == 2:
            g.inputs.append(h.make_tensor_value_info("beam_width", TP.INT32, [1]))
            g.outputs += [h.make_tensor_value_info(f"output_cross_qk_{i}", TP.FLOAT, ["batch_size", self.heads, 1, self.places])
                          for i in range(self.layers)]
        if genai:
            self.decode(g, True)
            return self.finish(g)
        if self.positions:
            g.inputs.append(h.make_tensor_value_info("cache_position", TP.INT64, ["sequence_length"]))
        g.inputs.append(h.make_tensor_value_info("use_cache_branch", TP.BOOL, [1]))
        branches = []
        for has_past in True, False:
            b = Graph(self, "with_" if has_past else "first_")
            self.decode(b, has_past)
            outs = [h.make_tensor_value_info(o.name, TP.FLOAT, None) for o in g.outputs]
            branches.append(h.make_graph(b.nodes, "with_past" if has_past else "first", [], outs))
        g.nodes.append(h.make_node("If", ["use_cache_branch"], [o.name for o in g.outputs], then_branch=branches[0], else_branch=branches[1]))
        return self.finish(g)

    def finish(self, g):
        graph = h.make_graph(g.nodes, "whisper", g.inputs, g.outputs, list(self.stored.values()))
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 20), h.make_opsetid(MS, 1)], ir_version=9)

    def config(self):
        inputs = {"input_ids": "input_ids", "past_key_names": "past_key_self_%d", "past_value_names": "past_value_self_%d",
                  "cross_past_key_names": "past_key_cross_%d", "cross_past_value_names": "past_value_cross_%d"}
        outputs = {"logits": "logits", "present_key_names": "present_key_self_%d", "present_value_names": "present_value_self_%d"}
        crossed = {"encoder_hidden_states": "hidden_states", "cross_present_key_names": "present_key_cross_%d",
                   "cross_present_value_names": "present_value_cross_%d"}
        return {"model": {"type": "whisper", "bos_token_id": 1, "context_length": self.most, "eos_token_id": 2, "pad_token_id": 2,
                          "decoder": {"filename": "decoder.onnx", "head_size": self.depth, "inputs": inputs, "outputs": outputs},
                          "encoder": {"filename": "encoder.onnx", "inputs": {"audio_features": "audio_features"}, "outputs": crossed}},
                "search": {"do_sample": False}}


def make(folder, kind="genai", **keys):
    """Writes both models, and gives their maker and their paths: the encoder's, the decoder's."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    maker = Maker(kind, **keys)
    names = ("encoder.onnx", "decoder.onnx") if kind == "genai" else ("encoder_model.onnx", "decoder_model_merged.onnx")
    paths = [folder / n for n in names]
    onnx.save(maker.encoder(), paths[0])
    onnx.save(maker.decoder(), paths[1])
    if kind == "genai":
        (folder / "genai_config.json").write_text(json.dumps(maker.config(), indent=1))
    return maker, *paths


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    make(*sys.argv[1:3], **{k: int(v) for k, v in (a.split("=") for a in sys.argv[3:])})
