#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs on quantised types (ir/quant.h) made at random: each kind of op on storage
of 8, 16 and 32 bits, one scale or one for each channel, narrowed ranges, mixed with
floats, in calls and under names of types. Right is what StableHLO says: operands to
f32, the op, its result rounded to the nearest even and clamped; by numpy. Exits 77
without numpy.

    quantised_test.py          a few of each kind
    quantised_test.py 12       twelve of each
"""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

PESTLE = os.path.join(os.environ.get("PESTLE_BUILD_DIR", ""), "pestle")
COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 3
STORAGE = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "i32": np.int32}
rng = np.random.default_rng(8)
F = np.float32
failures = []
ran = 0


class Quant:
    """A quantised type: its scales as f32 and zeros, along an axis or one for all."""

    def __init__(self, storage=None, channels=0, axis=None, narrow=False, scale=None):
        self.storage = storage or str(rng.choice(["i8", "i8", "u8", "i16"]))
        self.dtype, self.axis = STORAGE[self.storage], axis
        info = np.iinfo(self.dtype)
        self.low, self.high = int(info.min), int(info.max)
        self.range = ""
        if narrow:
            self.low += 1
            self.range = f"<{self.low}:{self.high}>"
        count = channels or 1
        self.scales = [float(scale or rng.choice([0.5, 0.25, 0.1, 0.037, 0.75]))
                       for _ in range(count)]
        middle = 128 if self.storage == "u8" else 0
        self.zeros = [0 if self.storage == "i32" else middle + int(rng.integers(-9, 10))
                      for _ in range(count)]

    def __str__(self):
        pairs = [f"{s:.6e}" + (f":{z}" if z else "") for s, z in zip(self.scales, self.zeros)]
        along = "" if self.axis is None else f":{self.axis}"
        inside = pairs[0] if self.axis is None else "{" + ", ".join(pairs) + "}"
        return f"!quant.uniform<{self.storage}{self.range}:f32{along}, {inside}>"

    def spread(self, values, like, dtype):
        a = np.array(values, dtype)
        if self.axis is None:
            return a[0]
        return a.reshape([-1 if i == self.axis else 1 for i in range(like.ndim)])

    def numbers(self, q):
        zero = self.spread(self.zeros, q, np.int64)
        return (q.astype(np.int64) - zero).astype(F) * self.spread(self.scales, q, F)

    def integers(self, x):
        q = np.rint(x.astype(F) / self.spread(self.scales, x, F))
        q = q.astype(np.float64) + self.spread(self.zeros, x, np.float64)
        return np.clip(q, self.low, self.high).astype(self.dtype)

    def random(self, *shape):
        span = 60 if self.storage in ("i16", "i32") else 10**9
        low, high = max(self.low, -span), min(self.high, span)
        return rng.integers(low, high + 1, shape).astype(self.dtype)


def t(shape, element="f32"):
    return f"tensor<{''.join(f'{d}x' for d in shape)}{element}>"


def run(text, inputs, device):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "m.mlir").write_text(text)
        (folder / "out").mkdir()
        for i, a in enumerate(inputs):
            np.save(folder / f"input_{i}.npy", a)
        done = subprocess.run(
            [PESTLE, "run", str(folder / "m.mlir"), "--device", device, "--no-cache",
             "--inputs", str(folder), "--outputs", str(folder / "out")],
            capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr
        return np.load(folder / "out" / "output_0.npy")


def judge(kind, operands, line, result, want, steps=0, before=""):
    """|operands| are arrays with their element types; |line| gives %y of |result|."""
    global ran
    device = "ref" if ran % 4 == 3 else "llvm"
    ran += 1
    arguments = ", ".join(f"%a{i}: {t(a.shape, e)}" for i, (a, e) in enumerate(operands))
    text = (f"{before}func.func @main({arguments}) -> {result} {{\n  {line}\n  return %y : "
            f"{result}\n}}\n")
    got = run(text, [a for a, _ in operands], device)
    good = not isinstance(got, str) and got.shape == want.shape and got.dtype == want.dtype
    if good:
        if want.dtype == F:
            good = np.allclose(got, want, 1e-5, 1e-5)
        else:
            off = np.abs(got.astype(np.int64) - want.astype(np.int64)).max()
            good = off <= steps
    if not good:
        failures.append(f"{kind} on {device}: {got}\nright: {want}\n{text}")


def binary():
    for op, f in (("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply),
                  ("maximum", np.maximum), ("minimum", np.minimum)):
        a, b, y = Quant(), Quant(), Quant()
        p, q = a.random(2, 5), b.random(2, 5)
        judge(op, [(p, a), (q, b)],
              f"%y = stablehlo.{op} %a0, %a1 : ({t(p.shape, a)}, {t(p.shape, b)}) -> "
              f"{t(p.shape, y)}", t(p.shape, y), y.integers(f(a.numbers(p), b.numbers(q))))


def one_type():
    """"T" alone stands for operands and result."""
    a = Quant()
    p, q = a.random(7), a.random(7)
    judge("one type", [(p, a), (q, a)], f"%y = stablehlo.add %a0, %a1 : {t([7], a)}",
          t([7], a), a.integers(a.numbers(p) + a.numbers(q)))


def unary():
    for op, f, steps in (("negate", np.negative, 0), ("abs", np.abs, 0), ("tanh", np.tanh, 1),
                         ("exponential", np.exp, 1), ("ceil", np.ceil, 0),
                         ("floor", np.floor, 0), ("logistic", lambda x: 1 / (1 + np.exp(-x)), 1)):
        a, y = Quant("i8", scale=0.0625), Quant()
        p = a.random(9)
        judge(op, [(p, a)], f'%y = "stablehlo.{op}"(%a0) : ({t([9], a)}) -> {t([9], y)}',
              t([9], y), y.integers(f(a.numbers(p)).astype(F)), steps)


def quantise():
    for storage in ("i8", "u8", "i16", "i32"):
        y = Quant(storage, narrow=storage == "i8" and bool(rng.integers(2)))
        x = (rng.standard_normal((3, 4)) * 20).astype(F)
        judge("uniform_quantize", [(x, "f32")],
              f"%y = stablehlo.uniform_quantize %a0 : ({t(x.shape)}) -> {t(x.shape, y)}",
              t(x.shape, y), y.integers(x))
        p = y.random(3, 4)
        judge("uniform_dequantize", [(p, y)],
              f"%y = stablehlo.uniform_dequantize %a0 : ({t(p.shape, y)}) -> {t(p.shape)}",
              t(p.shape), y.numbers(p))


def again():
    a, y = Quant(), Quant()
    p = a.random(8)
    judge("to another", [(p, a)],
          f'%y = "stablehlo.uniform_quantize"(%a0) : ({t([8], a)}) -> {t([8], y)}', t([8], y),
          y.integers(a.numbers(p)))


def channels():
    axis = int(rng.integers(2))
    shape = (3, 4)
    y = Quant("i8", shape[axis], axis)
    x = (rng.standard_normal(shape) * 9).astype(F)
    judge("channels", [(x, "f32")],
          f"%y = stablehlo.uniform_quantize %a0 : ({t(shape)}) -> {t(shape, y)}",
          t(shape, y), y.integers(x))
    p = y.random(*shape)
    judge("channels back", [(p, y)],
          f'%y = "stablehlo.uniform_dequantize"(%a0) : ({t(shape, y)}) -> {t(shape)}',
          t(shape), y.numbers(p))


def product():
    a, w, y = Quant("i8"), Quant("i8", 3, 1), Quant(str(rng.choice(["i8", "i32"])), scale=0.5)
    w.zeros = [0] * 3
    p, q = a.random(2, 6), w.random(6, 3)
    # Sums of these are exact in f32, or a rounding may go the other way.
    a.scales, w.scales = [0.5], [0.25, 0.5, 0.125]
    judge("dot_general", [(p, a), (q, w)],
          "%y = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : "
          f"({t(p.shape, a)}, {t(q.shape, w)}) -> {t((2, 3), y)}", t((2, 3), y),
          y.integers(a.numbers(p) @ w.numbers(q)))


def hybrid():
    w = Quant("i8", 3, 1)
    x, q = rng.standard_normal((2, 6)).astype(F), w.random(6, 3)
    judge("float by quantised", [(x, "f32"), (q, w)],
          "%y = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : "
          f"({t(x.shape)}, {t(q.shape, w)}) -> {t((2, 3))}", t((2, 3)), x @ w.numbers(q))


def convolution():
    a, w, y = Quant("i8", scale=0.5), Quant("i8", 2, 3, scale=0.25), Quant("i8", scale=4)
    w.zeros = [0, 0]
    p, q = a.random(1, 4, 4, 1), w.random(2, 2, 1, 2)
    x, k = a.numbers(p)[0, :, :, 0], w.numbers(q)
    want = np.stack([sum(x[i:i + 3, j:j + 3] * k[i, j, 0, c] for i in range(2)
                         for j in range(2)) for c in range(2)], -1)[None]
    judge("convolution", [(p, a), (q, w)],
          "%y = stablehlo.convolution(%a0, %a1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->"
          "[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, "
          f"feature_group_count = 1 : i64}} : ({t(p.shape, a)}, {t(q.shape, w)}) -> "
          f"{t(want.shape, y)}", t(want.shape, y), y.integers(want))


def moves():
    a = Quant()
    p = a.random(2, 3)
    for line, shape, want in (
            ("stablehlo.transpose %a0, dims = [1, 0] : ({i}) -> {o}", (3, 2), p.T),
            ("stablehlo.reshape %a0 : ({i}) -> {o}", (6,), p.reshape(6)),
            ("stablehlo.broadcast_in_dim %a0, dims = [1, 2] : ({i}) -> {o}", (2, 2, 3),
             np.broadcast_to(p, (2, 2, 3))),
            ("stablehlo.slice %a0 [0:2, 1:3] : ({i}) -> {o}", (2, 2), p[:, 1:]),
            ("stablehlo.reverse %a0, dims = [1] : {i}", (2, 3), p[:, ::-1]),
            ("stablehlo.concatenate %a0, %a0, dim = 0 : ({i}, {i}) -> {o}", (4, 3),
             np.concatenate([p, p]))):
        judge("moves", [(p, a)], "%y = " + line.format(i=t(p.shape, a), o=t(shape, a)),
              t(shape, a), want)
    c = Quant("i8", 3, 1)
    p = c.random(2, 3)
    turned = Quant("i8", 3, 0)
    turned.scales, turned.zeros = c.scales, c.zeros
    judge("channels that move", [(p, c)],
          f"%y = stablehlo.transpose %a0, dims = [1, 0] : ({t((2, 3), c)}) -> "
          f"{t((3, 2), turned)}", t((3, 2), turned), p.T)


def reduce():
    a = Quant("i8", scale=0.5)
    p = a.random(3, 4)
    for op, first in (("maximum", a.low), ("add", a.zeros[0])):
        want = p.max(0)
        if op == "add":
            # Rounded and clamped at each step, in their order.
            want = np.full(4, first, np.int8)
            for row in p:
                want = a.integers(a.numbers(want) + a.numbers(row))
        judge("reduce", [(p, a)],
              f"%c = stablehlo.constant dense<{first}> : {t([], a)}\n  %y = stablehlo.reduce("
              f"%a0 init: %c) applies stablehlo.{op} across dimensions = [0] : "
              f"({t((3, 4), a)}, {t([], a)}) -> {t([4], a)}", t([4], a), want)


def chosen():
    a = Quant()
    p, q = a.random(6), a.random(6)
    bits = "tensor<6xi1>"
    judge("select", [(p, a), (q, a)],
          f"%p = stablehlo.compare LT, %a0, %a1 : ({t([6], a)}, {t([6], a)}) -> {bits}\n  "
          f"%y = stablehlo.select %p, %a1, %a0 : {bits}, {t([6], a)}", t([6], a),
          np.maximum(p, q))
    low, high = sorted(int(v) for v in a.random(2))
    judge("clamp", [(p, a)],
          f"%l = stablehlo.constant dense<{low}> : {t([6], a)}\n  %h = stablehlo.constant "
          f"dense<{high}> : {t([6], a)}\n  %y = stablehlo.clamp %l, %a0, %h : {t([6], a)}",
          t([6], a), np.clip(p, low, high))


def calls():
    a, y = Quant(), Quant()
    p = a.random(5)
    before = (f"!from = {a}\n!to = tensor<5x{y}>\nfunc.func private @f(%x: tensor<5x!from>) -> "
              "!to {\n  %0 = stablehlo.add %x, %x : (tensor<5x!from>, tensor<5x!from>) -> !to\n"
              "  return %0 : !to\n}\n")
    judge("calls", [(p, a)], f"%y = call @f(%a0) : (tensor<5x!from>) -> !to", t([5], y),
          y.integers(a.numbers(p) + a.numbers(p)), before=before)


def constants():
    """Of data whose type is the storage, as StableHLO prints them."""
    a = Quant("i8")
    p = a.random(4)
    c = a.random(4)
    data = f"value = dense<{[int(v) for v in c]}> : tensor<4xi8>"
    data = rng.choice([f"{{{data}}}", f"<{{{data}}}>", f"<{{{data}}}> {{x.y = 1 : i32}}"])
    judge("constant", [(p, a)],
          f"%c = stablehlo.constant() {data} : () -> {t([4], a)}\n  "
          f"%y = stablehlo.maximum %a0, %c : {t([4], a)}", t([4], a), np.maximum(p, c))


def bits():
    """The bits of a quantised element are those of its storage."""
    a = Quant("i8", 4, 1)
    p = a.random(3, 4)
    judge("bits of", [(p, a)], f"%y = stablehlo.bitcast_convert %a0 : ({t(p.shape, a)}) -> "
          f"{t(p.shape, 'ui8')}", t(p.shape, "ui8"), p.view(np.uint8))
    y = Quant("i16")
    judge("bits as", [(p, "i8")],
          "%p = stablehlo.reshape %a0 : (tensor<3x4xi8>) -> tensor<6x2xi8>\n  "
          f"%y = stablehlo.bitcast_convert %p : (tensor<6x2xi8>) -> {t([6], y)}", t([6], y),
          p.reshape(6, 2).view(np.int16).reshape(6))


for make in (constants, bits, binary, one_type, unary, quantise, again, channels, product, hybrid, convolution,
             moves, reduce, chosen, calls):
    for _ in range(COUNT):
        make()

for text, say in (("!quant.uniform<i8:f32, 0.0>", "is no quantised type"),
                  ("!quant.uniform<i8:f32:7, {0.1}>", "one for each element"),
                  ("!quant.uniform<i8:f32:{0:2}, {0.1, 0.2}>", "blocks"),
                  ("!quant.any<i8:f32>", "only !quant.uniform")):
    ran += 1
    said = run(f"func.func @main(%a: tensor<4x{text}>) -> tensor<4xf32> {{\n  %y = "
               f"stablehlo.uniform_dequantize %a : (tensor<4x{text}>) -> tensor<4xf32>\n  "
               "return %y : tensor<4xf32>\n}\n", [np.zeros(4, np.int8)], "ref")
    if not isinstance(said, str) or say not in said:
        failures.append(f"{text}: not refused with {say!r}: {said}")

for line in failures:
    print(line[:1200])
print(f"{ran} programs, {len(failures)} failures")
sys.exit(bool(failures))
