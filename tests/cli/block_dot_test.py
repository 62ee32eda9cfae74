#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products with weights of a few bits as one kernel of a CPU (codegen/direct/direct_block_dot.c)
by numpy in f64: numbers of bits, lengths of blocks, zero points, rows that do not end with
a block, few and many rows of x, both ways to multiply, CPUs of several vectors, and the same
bits of every number of threads. Exits 77 without numpy."""

import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PESTLE, explain, is_elsewhere, multiplies_bytes, run  # noqa: E402

NAMES = {"f4": "f32", "f2": "f16", "u1": "ui8"}
TILES = "matrix registers make tiles"
# x and weights are rounded to bf16, to nearest; sums are f32's.
NEAR_BF16 = 2 ** -8 + 2 ** -18 + 4e-6
bad = []


def tensor(a):
    return f"tensor<{''.join(f'{n}x' for n in a.shape)}{NAMES[a.dtype.str[1:]]}>"


def unpacked(w, bits):
    parts = [w >> i & (1 << bits) - 1 for i in range(0, 8, bits)]
    return np.stack(parts, 2).reshape(len(w), -1).astype("f8")


def rounded(x, size):
    """x as bytes with a scale for each |size| of its numbers, and back."""
    k = x.shape[1]
    x = np.pad(x.astype("f4"), ((0, 0), (0, -k % size))).reshape(len(x), -1, size)
    most = np.abs(x).max(2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(most > 0, np.rint(x * (np.float32(127) / most)), 0)
    return (q.astype("f8") * (most / 127)).reshape(len(x), -1)[:, :k]


class Case:
    def __init__(self, m, k, n, bits, block, zeros="none", accuracy=0, dtype="f4", known=True):
        r = np.random.default_rng([m, k, n, bits, block])
        blocks = -(-k // block)
        self.bits, self.block, self.accuracy, self.known = bits, block, accuracy, known
        self.x = (r.standard_normal((m, k)) * 10 ** r.uniform(-2, 2, (m, 1))).astype(dtype)
        self.x[:, k // 3:k // 3 + 64] *= k > 100  # blocks of zeros
        self.w = r.integers(0, 256, (n, blocks * block * bits // 8), dtype="u1")
        self.scales = r.standard_normal((n, blocks)).astype(dtype)
        self.zeros = None
        if zeros == "bytes":
            self.zeros = r.integers(0, 1 << bits, (n, blocks), dtype="u1")
        if zeros == "floats":
            self.zeros = r.standard_normal((n, blocks)).astype(dtype) * 5

    def operands(self):
        return [a for a in (self.x, self.w, self.scales, self.zeros) if a is not None]

    def want(self, x):
        zeros = 1 << self.bits - 1 if self.zeros is None else self.zeros.astype("f8").repeat(self.block, 1)
        w = (unpacked(self.w, self.bits) - zeros) * self.scales.astype("f8").repeat(self.block, 1)
        w = w[:, :x.shape[1]]
        return x @ w.T, np.abs(x) @ np.abs(w).T

    def text(self):
        ops = self.operands()
        y = np.empty((len(self.x), len(self.w)), self.x.dtype)
        names = [f"%{i}" for i in range(len(ops))]
        return (f"func.func @main({', '.join(f'{n}: {tensor(a)}' for n, a in zip(names, ops))}) -> {tensor(y)} {{\n"
                f'  %y = "pestle.block_dot"({", ".join(names)}) {{bits = {self.bits} : i64, block = {self.block} : i64, '
                f"accuracy = {self.accuracy} : i64}} : ({', '.join(map(tensor, ops))}) -> {tensor(y)}\n"
                f"  return %y : {tensor(y)}\n}}\n")

    def folded(self):
        """The same of constants, which a compilation evaluates."""
        lines = self.text().split("\n")
        lines[0] = f"func.func @main() -> {lines[0].split(' -> ')[1]}"
        for i, a in enumerate(self.operands()):
            lines.insert(1 + i, f"  %{i} = stablehlo.constant dense<{a.tolist()}> : {tensor(a)}")
        return "\n".join(lines)

    def run(self, *options, is_bytes=None, folds=False, near=None):
        got = run(self.folded(), [], "cpu") if folds else run(self.text(), self.operands(), "cpu", *options)
        if is_elsewhere(got):
            return got
        if near is None and not folds and self.accuracy > 2 and len(self.x) > 16 and TILES in explain(self.text(), *options):
            is_bytes, near = False, NEAR_BF16
        if is_bytes is None:
            is_bytes = self.accuracy == 4 and (self.bits < 8 or bool(options) or multiplies_bytes())
        x = rounded(self.x, min(32, self.block)) if is_bytes else self.x.astype("f8")
        (want, size), u = self.want(x), 2e-3 if self.x.dtype == "f2" else 4e-6
        # A quotient half between two bytes may go either way.
        near = near * size if near else u * size + (2e-4 * size.max(1, keepdims=True) if is_bytes else 0)
        good = not isinstance(got, str) and got[0].shape == want.shape and bool((np.abs(got[0] - want) <= near + 1e-30).all())
        if not good:
            bad.append((self.bits, self.block, self.x.shape, options))
            print(f"{self.x.shape} {self.w.shape} {self.bits} bits of {self.block}, accuracy {self.accuracy} {options}: "
                  f"{got if isinstance(got, str) else np.abs(got[0] - want).max() / size.max()}")
        return got


def check_tiles():
    """Of many rows by matrix registers, which ref has under the name matrix: whole tiles and rests of rows, columns and weights;
    few rows and accuracy in f32 are what they were."""
    matrix = ("--device", "ref", "--target-cpu", "matrix")
    for m, k, n, bits, block, zeros, accuracy, dtype in (
            (64, 320, 64, 4, 32, "none", 4, "f4"), (61, 576, 50, 4, 32, "bytes", 4, "f4"), (47, 600, 17, 4, 16, "floats", 3, "f4"),
            (100, 700, 16, 4, 128, "none", 3, "f4"), (70, 300, 33, 4, 64, "bytes", 4, "f2"), (48, 1100, 100, 2, 32, "floats", 4, "f4"),
            (59, 256, 20, 8, 32, "none", 4, "f4"), (64, 150, 5, 8, 16, "bytes", 3, "f4"), (131, 1032, 40, 4, 256, "none", 4, "f2"),
            (56, 280, 31, 2, 16, "bytes", 4, "f4"), (600, 130, 70, 4, 32, "floats", 4, "f4")):
        case = Case(m, k, n, bits, block, zeros, accuracy, dtype)
        if TILES not in explain(case.text(), *matrix):
            bad.append(f"no tiles: {m} {k} {n} {bits}")
        case.run(*matrix, near=NEAR_BF16 if dtype == "f4" else NEAR_BF16 + 2e-3, is_bytes=False)
    for m, accuracy in (8, 4), (64, 2):
        case = Case(m, 320, 64, 4, 32, "none", accuracy)
        if TILES in explain(case.text(), *matrix):
            bad.append(f"tiles of {m} rows and accuracy {accuracy}")
        case.run(*matrix)
    # LLVM's code of it, which needs no such CPU to be made.
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.mlir")
        with open(path, "w") as file:
            file.write(Case(64, 320, 64, 4, 32, "none", 4).text())
        done = subprocess.run([PESTLE, "dump", path, "--stage", "asm", "--target", "llvm", "--target-cpu", "sapphirerapids"],
                              text=True, capture_output=True, check=False)
        if done.returncode or done.stdout.count("tdpbf16ps") < 4:
            bad.append(f"no tiles in code: {done.stderr}")
    # A scale, a zero point or a number of x that is no number stays none.
    case = Case(48, 256, 32, 4, 32, "floats", 4)
    nan = np.array([0x7fffffff, 0xffffffff, 0x7fc00000], "u4").view("f4")
    case.scales[3, 1], case.zeros[5, 2], case.x[7, 40] = nan
    got = case.operands() and run(case.text(), case.operands(), "cpu", *matrix)
    rows, columns = np.nonzero(np.isnan(got[0]) if not isinstance(got, str) else np.zeros((0, 0)))
    if len(rows) != 2 * 48 + 32 - 2 or set(rows[np.isin(columns, (3, 5), invert=True)]) != {7}:
        bad.append(f"what is no number: {len(rows)} {got if isinstance(got, str) else ''}")


def main():
    v3, v4 = ("--target-cpu", "x86-64-v3"), ("--target-cpu", "x86-64-v4")
    case = Case(1, 200, 70, 4, 32)
    for options in (), v3, v4, ("--device", "ref"), ("--numerics", "strict"):
        case.run(*options)
    if "block_dot_0" not in explain(case.text()):
        bad.append("no kernel of its own")
    case = Case(3, 200, 70, 4, 32, accuracy=4)
    for options in (), ("--target-cpu", "icelake-server"):
        case.run(*options)
    case.run("--numerics", "strict", is_bytes=False)
    # Without vpdpbusd, where weights are small; bytes as large as there are; and 8 bits.
    for options in v3, v4:
        case.run(*options)
        large = Case(2, 300, 40, 4, 64, accuracy=4)
        large.w[:], large.x[:] = 255, np.sign(large.x + 1e-9)
        large.run(*options)
        Case(3, 200, 70, 2, 16, "bytes", accuracy=4).run(*options)
        Case(3, 200, 70, 8, 32, accuracy=4).run(*options, is_bytes=False)
    count = 0
    for bits in 2, 4, 8:
        for block in 16, 32, 64, 128, 256:
            for accuracy in 0, 4:
                zeros = ("none", "bytes", "floats")[count % 3]
                k = block * (1 + count % 4) - count % 3 * 5
                Case(1 + count % 6, k, 1 + count * 7 % 40, bits, block, zeros, accuracy).run()
                count += 1
    # Of many rows in bytes weights are unpacked once: tiles of rows and what is left, more
    # than one chunk of them, words and blocks that vectors do not divide.
    for m, k, n, bits, block, zeros in ((8, 320, 32, 4, 32, "none"), (9, 576, 50, 4, 32, "bytes"), (16, 600, 17, 4, 16, "floats"),
                                        (5, 700, 16, 4, 128, "none"), (70, 300, 33, 4, 64, "bytes"), (12, 1100, 40, 2, 32, "floats"),
                                        (11, 256, 20, 8, 32, "none"), (4, 144, 5, 8, 16, "bytes"), (131, 128, 18, 4, 32, "none"),
                                        (3, 4200, 19, 4, 256, "bytes")):
        case = Case(m, k, n, bits, block, zeros, 4)
        case.run()
        if bits < 8:
            case.run("--device", "ref")
            case.run("--target-cpu", ("x86-64-v3", "x86-64-v4")[m % 2])
    for zeros in "none", "bytes", "floats":
        Case(2, 29, 3, 4, 16, zeros).run(folds=True)
    check_tiles()
    Case(7, 90, 33, 4, 32, "floats", 0, "f2").run()
    Case(2, 90, 33, 4, 32, "bytes", 4, "f2").run()
    # Targets whose lanes run side by side (direct_block_dot_lanes.c): few rows; of more, and
    # without subgroups, the op is what it is made of.
    lanes = ("--device", "ref", "--target-cpu")
    for cpu, *shape in (("simt90", 1, 200, 70, 4, 32, "none", 4), ("simt90", 3, 96, 4001, 4, 32, "bytes", 4),
                        ("simt90", 3, 200, 70, 4, 32, "bytes", 4),
                        ("simt90", 1, 9000, 40, 4, 32, "none", 4), ("simt90", 2, 9000, 300, 4, 32, "bytes", 4),
                        ("simt90", 6, 1111, 70, 4, 32, "bytes", 4),
                        ("simt90", 6, 576, 33, 4, 32, "floats", 4), ("simt90", 5, 300, 33, 8, 64, "bytes", 4),
                        ("simt90", 5, 300, 33, 2, 16, "bytes", 4), ("simt90", 1, 300, 33, 2, 64, "none", 4),
                        ("simt90", 3, 300, 33, 2, 256, "bytes", 4), ("simt90", 3, 300, 33, 8, 256, "none", 4), ("simt90", 2, 2048, 9, 4, 128, "none", 4),
                        ("simt90", 3, 200, 70, 4, 32, "floats"), ("simt90", 5, 300, 33, 2, 16, "bytes"),
                        ("simt90", 1, 300, 33, 8, 128, "none"), ("simt", 7, 90, 33, 4, 32, "floats", 0, "f2"),
                        ("simt8", 2, 90, 9, 4, 32, "bytes", 4, "f2"), ("simt1", 2, 90, 9, 4, 32, "bytes"),
                        ("simt90", 17, 90, 33, 4, 32, "floats")):
        Case(*shape).run(*lanes, cpu)
    for shape in (33, 160, 70, 4, 32, "floats"), (20, 100, 70, 8, 16, "none"), (64, 320, 64, 2, 64, "bytes", 4):
        Case(*shape).run(*lanes, "simt90", is_bytes=False, near=4e-3 if 4 in shape[6:] else None)
    Case(24, 160, 70, 4, 32, "bytes", 0, "f2").run(*lanes, "simt90")
    Case(2, 90, 33, 4, 32, "bytes", 4).run(*lanes, "simt90", "--numerics", "strict", is_bytes=False)
    case = Case(9, 300, 301, 4, 32, "bytes", 4)
    one, two = (case.run("--threads", n) for n in "12")
    if not np.array_equal(one[0], two[0]):
        bad.append("other bits by another number of threads")
    print(f"{len(bad)} wrong: {bad}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
