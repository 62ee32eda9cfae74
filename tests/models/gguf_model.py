#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files of small models with random weights from a seed, and what they compute: bytes,
the meaning of the bytes and the architectures, all by numpy and from the formats' descriptions.

    gguf_model.py FILE [ARCHITECTURE [TYPE [KEY=VALUE...]]]    keys: of SIZES

Queries are 4 times as large as they would be, so that scores differ."""

import math
import struct
import sys

import numpy as np

# type: number, elements a block, bytes a block
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24),
         "Q8_0": (8, 32, 34), "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176),
         "Q6_K": (14, 256, 210), "IQ4_NL": (20, 32, 18), "IQ4_XS": (23, 256, 136), "BF16": (30, 1, 2),
         "MXFP4": (39, 32, 17)}
# Where a block has its f16 numbers: the scale, and what the least is by.
HALVES = {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82), "Q3_K": (108,),
          "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,)}
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float64)
IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float64)

SIZES = dict(layers=2, width=64, heads=4, shared=2, depth=16, inner=96, words=96, context=128)


# --- What bytes mean: [blocks, bytes] to [blocks, elements] ---


def half(b, at):
    return np.ascontiguousarray(b[:, at:at + 2]).view(np.float16).astype(np.float64)


def halves_of(b):
    """Bytes as the numbers of their lower halves, then of their upper ones."""
    return np.concatenate((b & 15, b >> 4), 1).astype(np.float64)


def fifth(b):
    bits = np.unpackbits(b, axis=1, bitorder="little")
    return bits.astype(np.float64) * 16


def six(s):
    """Of 12 bytes 8 scales and 8 leasts of six bits."""
    a, b, c = s[:, :4].astype(int), s[:, 4:8].astype(int), s[:, 8:].astype(int)
    scales = np.concatenate((a & 63, c & 15 | a >> 6 << 4), 1)
    leasts = np.concatenate((b & 63, c >> 4 | b >> 6 << 4), 1)
    return scales.astype(np.float64), leasts.astype(np.float64)


def grouped(q, scale, least=None):
    n = len(q)
    y = q.reshape(n, scale.shape[1], -1) * scale[:, :, None]
    if least is not None:
        y = y - least[:, :, None]
    return y.reshape(n, -1)


def dequantise(kind, b):
    n = len(b)
    if kind == "F32":
        return b.view(np.float32).astype(np.float64)
    if kind == "F16":
        return b.view(np.float16).astype(np.float64)
    if kind == "BF16":
        return (b.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if kind == "Q4_0":
        return half(b, 0) * (halves_of(b[:, 2:]) - 8)
    if kind == "Q4_1":
        return half(b, 0) * halves_of(b[:, 4:]) + half(b, 2)
    if kind == "Q5_0":
        return half(b, 0) * (halves_of(b[:, 6:]) + fifth(b[:, 2:6]) - 16)
    if kind == "Q5_1":
        return half(b, 0) * (halves_of(b[:, 8:]) + fifth(b[:, 4:8])) + half(b, 2)
    if kind == "Q8_0":
        return half(b, 0) * b[:, 2:].view(np.int8)
    if kind == "MXFP4":
        return 2.0 ** (b[:, :1].astype(int) - 127) * E2M1[halves_of(b[:, 1:]).astype(int)]
    if kind == "IQ4_NL":
        return half(b, 0) * IQ4[halves_of(b[:, 2:]).astype(int)]
    if kind == "IQ4_XS":
        high = b[:, 2].astype(int) | b[:, 3].astype(int) << 8
        low = np.stack((b[:, 4:8] & 15, b[:, 4:8] >> 4), 2).reshape(n, 8).astype(int)
        scale = low | (high[:, None] >> 2 * np.arange(8) & 3) << 4
        q = np.stack((b[:, 8:].reshape(n, 8, 16) & 15, b[:, 8:].reshape(n, 8, 16) >> 4), 2)
        return grouped(IQ4[q.reshape(n, 256)], half(b, 0) * (scale - 32))
    if kind in ("Q4_K", "Q5_K"):
        scale, least = six(b[:, 4:16])
        low = b[:, -128:].reshape(n, 4, 1, 32)
        q = np.concatenate((low & 15, low >> 4), 2).reshape(n, 8, 32).astype(np.float64)
        if kind == "Q5_K":
            q += (b[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[None, :, None] & 1) * 16.0
        return grouped(q, half(b, 0) * scale, half(b, 2) * least)
    if kind == "Q6_K":
        low = b[:, :128].reshape(n, 2, 1, 64)
        q = np.concatenate((low & 15, low >> 4), 2).reshape(n, 2, 4, 32).astype(int)
        q = q | (b[:, 128:192].reshape(n, 2, 1, 32).astype(int) >> 2 * np.arange(4)[None, None, :, None] & 3) << 4
        return grouped((q - 32).astype(np.float64), half(b, 208) * b[:, 192:208].view(np.int8))
    two = lambda x: (x.reshape(n, 2, 1, 32) >> 2 * np.arange(4, dtype=np.uint8)[None, None, :, None] & 3).reshape(n, 256)  # noqa: E731
    if kind == "Q2_K":
        return grouped(two(b[:, 16:80]).astype(np.float64), half(b, 80) * (b[:, :16] & 15), half(b, 82) * (b[:, :16] >> 4))
    assert kind == "Q3_K", kind
    high = (b[:, None, :32] >> np.arange(8, dtype=np.uint8)[None, :, None] & 1).reshape(n, 256)
    scales = b[:, 96:108].astype(int)
    low = np.concatenate((scales[:, :8] & 15, scales[:, :8] >> 4), 1)
    top = np.concatenate([scales[:, 8:] >> 2 * i & 3 for i in range(4)], 1)
    return grouped(two(b[:, 32:96]) + 4.0 * high - 4, half(b, 108) * ((low | top << 4) - 32))


def random_rows(r, kind, rows, columns, deviation):
    """Bytes [rows, ..], and the numbers [rows, columns] that they are."""
    _, elements, size = TYPES[kind]
    count = rows * columns // elements
    if elements == 1:
        x = (r.standard_normal((rows, columns)) * deviation).astype(np.float32)
        if kind == "BF16":
            b = np.ascontiguousarray((x.view(np.uint32) >> 16).astype(np.uint16)).view(np.uint8)
        else:
            b = x.astype({"F32": np.float32, "F16": np.float16}[kind]).view(np.uint8)
        return b, dequantise(kind, b)
    b = np.frombuffer(r.bytes(count * size), np.uint8).reshape(count, size).copy()
    if kind == "MXFP4":
        b[:, 0] = r.integers(-2, 2, count) + round(math.log2(deviation / 3)) + 127
        b[0, 0] = 0  # the least scale
        return b.reshape(rows, -1), dequantise(kind, b).reshape(rows, columns)
    put = lambda at, x: b.__setitem__((slice(None), slice(at, at + 2)), x.astype(np.float16).view(np.uint8).reshape(count, 2))  # noqa: E731
    at, jitter = HALVES[kind], r.uniform(0.75, 1.25, (count, 1))
    for a in at:
        put(a, np.zeros((count, 1)))
    put(at[0], np.ones((count, 1)))
    by = 1.0
    if len(at) > 1:  # so that the mean is about 0
        first = dequantise(kind, b)
        put(at[0], np.zeros((count, 1)))
        put(at[1], np.ones((count, 1)))
        by = -first.mean() / dequantise(kind, b).mean()
        put(at[0], np.ones((count, 1)))
        put(at[1], np.full((count, 1), by))
    scale = deviation / dequantise(kind, b).std()
    put(at[0], jitter * scale)
    if len(at) > 1:
        put(at[1], jitter * scale * by)
    b[0, at[0]:at[0] + 2] = 0  # a block without a scale
    return b.reshape(rows, -1), dequantise(kind, b).reshape(rows, columns)


# --- Files ---


def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(s)) + s


def value(v):
    """A kind and its bytes: of bool, int (u32), float, str, list of int or str, or (kind, bytes)."""
    if isinstance(v, tuple):
        return struct.pack("<I", v[0]) + v[1]
    if isinstance(v, bool):
        return struct.pack("<IB", 7, v)
    if isinstance(v, int):
        return struct.pack("<II", 4, v)
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    if isinstance(v, str):
        return struct.pack("<I", 8) + text(v)
    kind, each = (8, text) if v and isinstance(v[0], str) else (5, lambda i: struct.pack("<i", i))
    return struct.pack("<IIQ", 9, kind, len(v)) + b"".join(map(each, v))


def file_of(values, tensors, version=3, alignment=32):
    """The bytes of a file; tensors: name -> (type, extents from the innermost on, bytes)."""
    head = struct.pack("<4sIQQ", b"GGUF", version, len(tensors), len(values))
    for k, v in values.items():
        head += text(k) + value(v)
    at, data = 0, b""
    for name, (kind, dims, raw) in tensors.items():
        head += text(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims) + struct.pack("<IQ", TYPES[kind][0], at)
        data += raw + bytes(-len(raw) % alignment)
        at = len(data)
    return head + bytes(-len(head) % alignment) + data


NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


def read(path):
    """The metadata of a file, and its tensors: name -> (type, extents, bytes [rows, bytes of a row])."""
    data = np.memmap(path, np.uint8, "r")
    at, names = 0, {number: name for name, (number, _, _) in TYPES.items()}

    def take(form):
        nonlocal at
        out = struct.unpack_from(form, data, at)
        at += struct.calcsize(form)
        return out[0] if len(out) == 1 else out

    def string():
        nonlocal at
        size = take("<Q")
        at += size
        return data[at - size:at].tobytes().decode("utf-8", "replace")

    def one(kind):
        if kind == 8:
            return string()
        if kind != 9:
            return take(NUMBERS[kind])
        of, count = take("<IQ")
        return [one(of) for _ in range(count)]

    magic, _, tensors, values = take("<4sIQQ")
    assert magic == b"GGUF"
    values = {string(): one(take("<I")) for _ in range(values)}
    rows = []
    for _ in range(tensors):
        name = string()
        dims = [take("<Q") for _ in range(take("<I"))]
        rows.append((name, dims, *take("<IQ")))
    begin = -(-at // values.get("general.alignment", 32)) * values.get("general.alignment", 32)
    out = {}
    for name, dims, kind, offset in rows:
        _, elements, size = TYPES[names[kind]]
        width = dims[0] // elements * size
        count = math.prod(dims[1:])
        raw = data[begin + offset:begin + offset + width * count]
        out[name] = names[kind], dims, np.asarray(raw).reshape(count, width)
    return values, out


# --- Models ---


class Model:
    def __init__(self, arch="llama", kind="Q4_0", seed=1, tied=False, embedding=None, head=None, scaling=None, divisors=False,
                 window=0, cap=None, last_cap=None, more=(), turned=0, value_depth=0, base=1e4, **size):
        self.arch, self.kind, self.r = arch, kind, np.random.default_rng(seed)
        self.__dict__.update(SIZES, **size)
        self.value_depth = value_depth or self.depth
        self.turned = turned or self.depth
        self.epsilon, self.base = 1e-5, base
        self.window, self.scaling = window, scaling
        self.weights, self.tensors = {}, {}
        self.flags = dict(pairs=arch == "llama", gelu=arch.startswith("gemma"), post=arch in ("gemma2", "gemma3"))
        self.cap = 50.0 if arch == "gemma2" and cap is None else cap or 0
        self.last_cap = 30.0 if arch == "gemma2" and last_cap is None else last_cap or 0
        self.values = {"general.architecture": arch, "general.name": "random", "tokenizer.ggml.bos_token_id": 1,
                       "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.tokens": [f"t{i}" for i in range(self.words)]}
        key = lambda name, v: self.values.__setitem__(f"{arch}.{name}", v)  # noqa: E731
        key("block_count", self.layers)
        key("context_length", self.context)
        key("embedding_length", self.width)
        key("feed_forward_length", self.inner)
        key("attention.head_count", self.heads)
        key("attention.head_count_kv", self.shared)
        key("attention.key_length", self.depth)
        key("attention.value_length", self.value_depth)
        key("attention.layer_norm_rms_epsilon", self.epsilon)
        key("rope.dimension_count", self.turned)
        key("rope.freq_base", self.base)
        if window:
            key("attention.sliding_window", window)
        if cap:
            key("attn_logit_softcapping", float(cap))
        if last_cap:
            key("final_logit_softcapping", float(last_cap))
        if scaling:
            key("rope.scaling.type", scaling[0])
            key("rope.scaling.factor", float(scaling[1]))
        self.original = self.context
        if divisors == "two" or (scaling and scaling[0] == "yarn"):
            self.original = self.context // 4
            key("rope.scaling.original_context_length", self.original)
        if divisors == "two":
            key("rope.scaling.attn_factor", 1.25)
        self.values.update(more)
        self.divisors = {}
        half = self.turned // 2
        if divisors:
            for name in ("rope_factors_short", "rope_factors_long") if divisors == "two" else ("rope_freqs",):
                self.divisors[name] = self.vector(name + ".weight", half, 1, 3)
        q, k, v, o = self.heads * self.depth, self.shared * self.depth, self.shared * self.value_depth, self.heads * self.value_depth
        self.matrix("token_embd.weight", self.words, self.width, 1, embedding)
        self.vector("output_norm.weight", self.width)
        if not tied:
            self.matrix("output.weight", self.words, self.width, 1, head)
        for i in range(self.layers):
            n = f"blk.{i}."
            self.vector(n + "attn_norm.weight", self.width)
            self.vector(n + "ffn_norm.weight", self.width)
            if arch == "phi3":
                self.matrix(n + "attn_qkv.weight", q + k + v, self.width, 2)
                self.matrix(n + "ffn_up.weight", 2 * self.inner, self.width)
            else:
                for name, rows, gain in ("attn_q", q, 4), ("attn_k", k, 1), ("attn_v", v, 1):
                    self.matrix(n + name + ".weight", rows, self.width, gain)
                    if arch == "qwen2":
                        self.vector(n + name + ".bias", rows, -1, 1)
                self.matrix(n + "ffn_gate.weight", self.inner, self.width)
                self.matrix(n + "ffn_up.weight", self.inner, self.width)
            if arch in ("qwen3", "gemma3"):
                self.vector(n + "attn_q_norm.weight", self.depth, 1, 3)
                self.vector(n + "attn_k_norm.weight", self.depth, 1, 2)
            self.matrix(n + "attn_output.weight", self.width, o)
            self.matrix(n + "ffn_down.weight", self.width, self.inner)
            if self.flags["post"]:
                self.vector(n + "post_attention_norm.weight", self.width)
                self.vector(n + "post_ffw_norm.weight", self.width)

    def vector(self, name, n, low=0.8, high=1.2):
        x = self.r.uniform(low, high, n).astype(np.float32)
        self.weights[name] = x.astype(np.float64)
        self.tensors[name] = ("F32", (n,), x.tobytes())
        return self.weights[name]

    def matrix(self, name, rows, columns, gain=1.0, kind=None):
        kind = kind or self.kind
        if columns % TYPES[kind][1]:
            kind = "Q8_0" if columns % 32 == 0 else "F16"
        b, self.weights[name] = random_rows(self.r, kind, rows, columns, gain / columns**0.5)
        self.tensors[name] = (kind, (columns, rows), b.tobytes())

    def bytes(self, **how):
        return file_of(self.values, self.tensors, **how)

    def parts(self, folder, stem, count, **keys):
        """The same model in files as llama-gguf-split names them; the path of the first."""
        names, each = list(self.tensors), -(-len(self.tensors) // count)
        for i in range(count):
            split = {"split.no": (2, struct.pack("<H", i)), "split.count": (2, struct.pack("<H", count)),
                     "split.tensors.count": (5, struct.pack("<i", len(names))), **keys.get(f"part{i}", {})}
            values = {**(self.values if i == 0 else {"general.architecture": self.arch}), **split}
            tensors = {n: self.tensors[n] for n in names[i * each:(i + 1) * each]}
            (folder / f"{stem}-{i + 1:05}-of-{count:05}.gguf").write_bytes(file_of(values, tensors))
        return folder / f"{stem}-00001-of-{count:05}.gguf"

    def write(self, path, **how):
        with open(path, "wb") as f:
            f.write(self.bytes(**how))
        return self

    # --- What it computes ---

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * self.weights[name]

    def speeds(self, places, local):
        """Angles at place 1, and the magnitude of sines and cosines."""
        n = self.turned
        i = np.arange(n // 2)
        if local:
            return self.values.get("gemma3.rope.freq_base_swa", 10000.0) ** (-2 * i / n), 1.0
        s, size = self.base ** (-2 * i / n), 1.0
        if "rope_freqs" in self.divisors:
            s = s / self.divisors["rope_freqs"]
        if "rope_factors_long" in self.divisors:
            s = s / self.divisors["rope_factors_long" if places > self.original else "rope_factors_short"]
            size = 1.25
        if self.scaling and self.scaling[0] == "linear":
            s = s / self.scaling[1]
        if self.scaling and self.scaling[0] == "yarn":
            at = [n * math.log(self.original / (turns * 2 * math.pi)) / (2 * math.log(self.base)) for turns in (32, 1)]
            low, high = max(0, math.floor(at[0])), min(n - 1, math.ceil(at[1]))
            ramp = np.clip((i - low) / max(0.001, high - low), 0, 1)
            s = s / self.scaling[1] * ramp + s * (1 - ramp)
            size = 1 + 0.1 * math.log(self.scaling[1])
        return s, size

    def turn(self, x, places, local):
        """x [tokens, heads, depth]"""
        speeds, size = self.speeds(places, local)
        angles = np.arange(len(x))[:, None, None] * speeds
        c, s = np.cos(angles) * size, np.sin(angles) * size
        n, y = self.turned, x.copy()
        first, second = (slice(0, n, 2), slice(1, n, 2)) if self.flags["pairs"] else (slice(0, n // 2), slice(n // 2, n))
        a, b = x[..., first], x[..., second]
        y[..., first], y[..., second] = a * c - b * s, a * s + b * c
        return y

    def is_local(self, layer):
        if self.arch == "gemma3":
            return layer % 6 < 5
        return self.arch == "phi3" or (self.arch == "gemma2" and layer % 2 == 0)

    def attention(self, i, x, places):
        n, w = f"blk.{i}.", self.weights
        local = self.is_local(i) and bool(self.window)
        counts = self.heads * self.depth, self.shared * self.depth, self.shared * self.value_depth
        if self.arch == "phi3":
            parts = np.split(x @ w[n + "attn_qkv.weight"].T, np.cumsum(counts)[:2], -1)
        else:
            parts = [x @ w[n + p + ".weight"].T + w.get(n + p + ".bias", 0) for p in ("attn_q", "attn_k", "attn_v")]
        q, k, v = (p.reshape(len(x), h, -1) for p, h in zip(parts, (self.heads, self.shared, self.shared)))
        if n + "attn_q_norm.weight" in w:
            q, k = self.norm(q, n + "attn_q_norm.weight"), self.norm(k, n + "attn_k_norm.weight")
        local_angles = self.arch == "gemma3" and local
        q, k = self.turn(q, places, local_angles), self.turn(k, places, local_angles)
        k, v = (np.repeat(y, self.heads // self.shared, 1) for y in (k, v))
        s = np.einsum("qhd,khd->hqk", q, k) * self.depth**-0.5
        if self.cap:
            s = self.cap * np.tanh(s / self.cap)
        at = np.arange(len(x))
        hidden = at[None, :] > at[:, None]
        if local:
            hidden |= at[None, :] <= at[:, None] - self.window
        s[:, hidden] = -np.inf
        s = np.exp(s - s.max(-1, keepdims=True))
        y = np.einsum("hqk,khd->qhd", s / s.sum(-1, keepdims=True), v).reshape(len(x), -1)
        y = y @ w[n + "attn_output.weight"].T
        return self.norm(y, n + "post_attention_norm.weight") if self.flags["post"] else y

    def feed_forward(self, i, x):
        n, w = f"blk.{i}.", self.weights
        up = x @ w[n + "ffn_up.weight"].T
        gate, up = np.split(up, 2, -1) if self.arch == "phi3" else (x @ w[n + "ffn_gate.weight"].T, up)
        if self.flags["gelu"]:
            gate = 0.5 * gate * (1 + np.tanh((2 / np.pi) ** 0.5 * (gate + 0.044715 * gate**3)))
        else:
            gate = gate / (1 + np.exp(-gate))
        y = (gate * up) @ w[n + "ffn_down.weight"].T
        return self.norm(y, n + "post_ffw_norm.weight") if self.flags["post"] else y

    def logits(self, ids, places=0):
        """Behind each of |ids|, with room for |places| positions."""
        w = self.weights
        x = w["token_embd.weight"][np.asarray(ids)]
        if self.flags["gelu"]:
            x = x * self.width**0.5
        for i in range(self.layers):
            x = x + self.attention(i, self.norm(x, f"blk.{i}.attn_norm.weight"), places)
            x = x + self.feed_forward(i, self.norm(x, f"blk.{i}.ffn_norm.weight"))
        y = self.norm(x, "output_norm.weight") @ w.get("output.weight", w["token_embd.weight"]).T
        return self.last_cap * np.tanh(y / self.last_cap) if self.last_cap else y


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    Model(*sys.argv[2:4], **{k: int(v) for k, v in (a.split("=") for a in sys.argv[4:])}).write(sys.argv[1])
