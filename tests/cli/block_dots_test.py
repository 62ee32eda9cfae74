#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A layer's products with weights of a few bits, with the norm in front and the ops behind in
one kernel each (passes/whole_block_dot.c), by numpy in f64: which kernels there are, tails of
columns, rows, both ways to multiply, CPUs of several vectors, numbers of threads, f16, values
that are read elsewhere too, and how many kernels a decoder's layer is. Exits 77 without numpy."""

import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "models")]
from block_dot_test import TILES, rounded, tensor, unpacked  # noqa: E402
from program import PESTLE, explain, is_elsewhere, multiplies_bytes, run  # noqa: E402

EPSILON = 1e-5
bad = []


class Layer:
    """x + down(silu(gate(n)) * up(n)), n being x's norm, and then q + bias, k, v * 2 of its norm, or q, k
    and v alone."""

    def __init__(self, m, k, inner, columns, accuracy, zeros=False, bits=4, block=32, dtype="f4", bare=False, tiles=False):
        self.r = np.random.default_rng([m, k, inner, accuracy])
        self.k, self.bits, self.block, self.accuracy, self.dtype = k, bits, block, accuracy, dtype
        self.zeros, self.tiles = zeros, tiles  # by matrix registers, in bf16
        self.given, self.lines = [], []
        x = self.give(self.r.standard_normal((m, k)) * 3)
        n = self.norm(x)
        gate, up = self.product(n, k, inner), self.product(n, k, inner)
        y = self.op("multiply", self.silu(gate), up)
        x = self.op("add", x, self.product(y, inner, k))
        n = self.norm(x)
        q, k_, v = (self.product(n, k, c) for c in columns)
        self.results = [q, k_, v]
        if bare:  # nothing behind the last products
            return
        bias = self.give(self.r.standard_normal(columns[0]))
        q = self.op("add", q, self.line(f"stablehlo.broadcast_in_dim {bias[0]}, dims = [1] : ({self.of(bias)}) -> {self.of(q)}",
                                        np.broadcast_to(bias[1], q[1].shape)))
        two = self.line(f"stablehlo.constant dense<2.0> : {self.of(v)}", np.full_like(v[1], 2))
        self.results = [q, k_, v, self.op("multiply", v, two), x]

    def of(self, value):
        return tensor(value[1].astype(self.dtype))

    def give(self, a):
        a = a.astype(self.dtype if a.dtype.kind == "f" else a.dtype)
        self.given.append(a)
        return f"%a{len(self.given) - 1}", a.astype("f8") if a.dtype.kind == "f" else a

    def line(self, text, value):
        name = f"%{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name, value

    def op(self, name, a, b):
        value = a[1] + b[1] if name == "add" else a[1] * b[1]
        return self.line(f"stablehlo.{name} {a[0]}, {b[0]} : {self.of(a)}", value)

    def silu(self, a):
        s = self.line(f"stablehlo.logistic {a[0]} : {self.of(a)}", 1 / (1 + np.exp(-a[1])))
        return self.op("multiply", a, s)

    def norm(self, x):
        s = self.give(self.r.uniform(0.5, 1.5, x[1].shape[1]))
        value = x[1] / np.sqrt((x[1] ** 2).mean(1, keepdims=True) + EPSILON) * s[1]
        return self.line(f'"pestle.rms_norm"({x[0]}, {s[0]}) <{{dimensions = array<i64: 1>, epsilon = {EPSILON} : f64}}> : '
                         f"({self.of(x)}, {self.of(s)}) -> {self.of(x)}", value)

    def product(self, x, k, n):
        blocks = -(-k // self.block)
        w = self.give(self.r.integers(0, 256, (n, blocks * self.block * self.bits // 8), dtype="u1"))
        s = self.give(self.r.uniform(0.5, 1.5, (n, blocks)) / k ** 0.5 / 2 ** (self.bits - 1))
        more = [self.give(self.r.integers(0, 1 << self.bits, (n, blocks), dtype="u1"))] if self.zeros else []
        zero = more[0][1].astype("f8").repeat(self.block, 1) if more else 1 << self.bits - 1
        matrix = ((unpacked(w[1], self.bits) - zero) * s[1].repeat(self.block, 1))[:, :k]
        a = rounded(x[1], min(32, self.block)) if self.accuracy == 4 and not self.tiles else x[1]
        ops = [x, w, s, *more]
        types = ", ".join([self.of(x), tensor(w[1]), self.of(s), *[tensor(z[1]) for z in more]])
        value = a @ matrix.T
        return self.line(f'"pestle.block_dot"({", ".join(o[0] for o in ops)}) {{bits = {self.bits} : i64, block = {self.block} : '
                         f"i64, accuracy = {self.accuracy} : i64}} : ({types}) -> {self.of((0, value))}", value)

    def text(self):
        arguments = ", ".join(f"%a{i}: {tensor(a)}" for i, a in enumerate(self.given))
        types = ", ".join(self.of(r) for r in self.results)
        return (f"func.func @main({arguments}) -> ({types}) {{\n" + "\n".join(self.lines) +
                f"\n  return {', '.join(r[0] for r in self.results)} : {types}\n}}\n")

    def run(self, *options):
        got = run(self.text(), self.given, "cpu", *options)
        if is_elsewhere(got):
            return got
        # A byte that is rounded the other way in one product changes all that follows.
        # So does each rounding of bf16 in three products, one behind the other.
        near = {4: 3e-2 if self.tiles else 2e-2, 0: 2e-5}[self.accuracy] if self.dtype == "f4" else 3e-2
        for i, r in enumerate(self.results):
            if isinstance(got, str) or not np.abs(got[i] - r[1]).max() <= near * np.abs(r[1]).std():
                bad.append((self.given[0].shape, options, i))
                print(bad[-1], got if isinstance(got, str) else np.abs(got[i] - r[1]).max() / np.abs(r[1]).std())
                break
        return got


def kernels(text):
    return re.findall(r"^kernel \d+: (.*?)_\d+$", explain(text), re.M)


def check_layers():
    """A layer of a decoder is 7 kernels: 4 of products, the angles of keys, rows of both caches, attention with the angles of queries."""
    try:
        import llama
    except ImportError as e:
        print(f"without onnx, kernels of a layer are not counted: {e}")
        return
    counts = []
    for batch in 1, 3:
        for layers in 2, 3:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "m.onnx")
                llama.make(path, "tiny", width=128, heads=2, shared=1, layers=layers, batch=batch > 1)
                dims = [f"{n}={v}" for n, v in dict(sequence=1, past=64, all=64, batch=batch).items() if n != "batch" or batch > 1]
                command = [PESTLE, "explain", path, "--target-cpu", "x86-64-v4", *[a for d in dims for a in ("--dim", d)]]
                said = subprocess.run(command, capture_output=True, text=True, check=False)
                counts.append(len(re.findall("^kernel ", said.stdout, re.M)))
    if counts[1] - counts[0] != 7 or counts[3] - counts[2] != 7:
        bad.append(f"kernels of decoders of 2 and 3 layers, alone and in a batch: {counts}")


def main():
    check_layers()
    v3, v4 = ("--target-cpu", "x86-64-v3"), ("--target-cpu", "x86-64-v4")
    layer = Layer(1, 200, 150, (70, 33, 5), 0)
    for options in (), v3, v4, ("--device", "ref"), ("--numerics", "strict"):
        layer.run(*options)
    got = kernels(layer.text())
    if got != ["block_dots"] * 3:
        bad.append(got)
    Layer(1, 224, 96, (64, 32, 17), 4, bare=True).run()
    for m in 1, 3, 6, 19:
        for accuracy in 0, 4:
            for zeros in False, True:
                Layer(m, 224, 96, (64, 32, 17), accuracy, zeros).run()
    layer = Layer(70, 320, 128, (64, 40, 20), 4)
    (Layer(70, 320, 128, (64, 40, 20), 4, tiles=True) if TILES in explain(layer.text()) else layer).run()
    for m, zeros in (70, False), (61, True):  # by matrix registers
        layer = Layer(m, 320, 128, (64, 40, 20), 4, zeros, tiles=True)
        if explain(layer.text(), "--device", "ref", "--target-cpu", "matrix").count(TILES) != 3:
            bad.append("products by no matrix registers")
        layer.run("--device", "ref", "--target-cpu", "matrix")
    Layer(2, 128, 72, (40, 8, 24), 4, bits=8).run()
    Layer(2, 128, 72, (40, 8, 24), 0, bits=2, block=64).run()
    Layer(3, 96, 64, (33, 8, 24), 0, dtype="f2").run()
    layer = Layer(5, 320, 400, (170, 60, 61), 4)
    one, two = (layer.run("--threads", n) for n in "12")
    if isinstance(one, str) or isinstance(two, str) or not all(np.array_equal(a, b) for a, b in zip(one, two)):
        bad.append("other bits by another number of threads")
    # Lanes side by side: bytes of a norm, once for its products.
    for cpu in "simt90", "simt":
        for m, accuracy, zeros in (1, 4, False), (3, 4, True), (2, 0, False):
            Layer(m, 224, 96, (64, 32, 17), accuracy, zeros).run("--device", "ref", "--target-cpu", cpu)
        Layer(1, 224, 96, (64, 32, 17), 4, bare=True).run("--device", "ref", "--target-cpu", cpu)
        Layer(8, 64, 96, (64, 32, 17), 0, bare=True).run("--device", "ref", "--target-cpu", cpu)
        Layer(2, 100, 72, (40, 8, 24), 4, bits=8).run("--device", "ref", "--target-cpu", cpu)
        Layer(2, 100, 72, (40, 8, 24), 4, bits=2, block=16, zeros=True).run("--device", "ref", "--target-cpu", cpu)
    # Groups that take turns at columns, some of which have one less, with weights of several steps
    # under way; groups of 256 and 512 lanes; scales that are no whole words.
    for shape in ((1, 224, 1100, (1100, 1100, 1061)), (1, 3072, 200, (300, 20, 17)), (1, 4608, 260, (140, 32, 17)),
                  (3, 1056, 700, (33, 20, 17)), (4, 800, 900, (33, 20, 17))):
        for zeros in False, True:
            for dtype in "f4", "f2":
                Layer(*shape, 4, zeros, dtype=dtype).run("--device", "ref", "--target-cpu", "simt90")
    r = np.random.default_rng(5)
    for _ in range(24):  # shapes that nobody thought of
        bits, block = int(r.choice([2, 4, 8])), int(r.choice([16, 32, 64, 128]))
        options = ((), v3, v4, ("--device", "ref", "--target-cpu", "simt90"))[r.integers(4)]
        in_bytes = bits < 8 or options not in (v3, v4) and (options or multiplies_bytes())
        accuracy = int(r.choice([0, 4])) if in_bytes else 0
        k, inner, *columns = (int(n) for n in r.integers(17, 200, 5))
        Layer(int(r.integers(1, 10)), k, inner, columns, accuracy, bool(r.integers(2)), bits, block, bare=bool(r.integers(2))).run(*options)
    # A norm that something else reads too stays where it was.
    layer = Layer(1, 64, 64, (32, 32, 32), 0)
    norm = next(line.split()[0] for line in reversed(layer.lines) if "rms_norm" in line)
    layer.results.append((norm, np.zeros((1, 64))))
    got = kernels(layer.text())
    if len(got) != 4 or got.count("block_dots") != 3:
        bad.append(got)
    print(f"{len(bad)} wrong: {bad}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
