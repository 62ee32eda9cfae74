#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products by matrix registers: that they are taken where a target has them, and
right at every edge. `ref` has them as --target-cpu matrix, so that this runs
anywhere; llvm's own code runs where the CPU has the registers."""

import os
import sys
import unittest

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}; tools/requirements.txt lists what is needed")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import Case, has_compiler  # noqa: E402

# Rows, columns, taps: whole tiles, rests of each, and less than a tile.
SHAPES = [(64, 64, 64), (33, 40, 100), (16, 24, 70), (70, 33, 192), (8, 17, 31)]
KINDS = [("bf16", "bf16"), ("i8", "i8"), ("ui8", "i8"), ("ui8", "ui8"), ("i8", "ui8")]
NUMPY = {"i8": np.int8, "ui8": np.uint8, "i32": np.int32, "f32": np.float32}


def numbers(shape, kind, seed):
    """Small ones: products and sums are exact in f32 too."""
    random = np.random.default_rng(seed)
    low = 0 if kind == "ui8" else -8
    return random.integers(low, 9, shape).astype(np.float32)


def bits(x, kind):
    if kind != "bf16":
        return x.astype(NUMPY[kind])
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def text_of(m, n, k, a, b, turned, constant):
    sums = "f32" if a == "bf16" else "i32"
    right = f"{n}x{k}" if turned else f"{k}x{n}"
    data = numbers([n, k] if turned else [k, n], b, k)
    data = bits(data, b)
    value = "0x" + data.tobytes().hex().upper()
    argument = "" if constant else f", %b: tensor<{right}x{b}>"
    made = (
        f'  %b = stablehlo.constant dense<"{value}"> : tensor<{right}x{b}>\n'
        if constant
        else ""
    )
    y = f"tensor<{m}x{n}x{sums}>"
    return f"""\
func.func @main(%a: tensor<{m}x{k}x{a}>, %c: tensor<{n}x{sums}>{argument}) -> {y} {{
{made}  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [{1 if turned else 0}] :
      (tensor<{m}x{k}x{a}>, tensor<{right}x{b}>) -> {y}
  %1 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<{n}x{sums}>) -> {y}
  %2 = stablehlo.add %0, %1 : {y}
  return %2 : {y}
}}
"""


# Sums that are the result: registers are stored into it, of whole tiles of few steps
# by the next tile.
PLAIN = """\
func.func @main(%a: tensor<{g}x{m}x{k}x{a}>, %b: tensor<{g}x{k}x{n}x{a}>) -> tensor<{g}x{m}x{n}x{y}> {{
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] :
      (tensor<{g}x{m}x{k}x{a}>, tensor<{g}x{k}x{n}x{a}>) -> tensor<{g}x{m}x{n}x{y}>
  return %0 : tensor<{g}x{m}x{n}x{y}>
}}
"""
PLAIN_SHAPES = [(1, 64, 96, 512), (3, 96, 64, 500), (2, 16, 16, 128), (1, 16, 64, 512),
                (2, 96, 16, 256), (1, 32, 32, 1024), (1, 80, 64, 512), (1, 64, 40, 512),
                (1, 64, 256, 512), (1, 96, 512, 1024), (1, 64, 16, 448), (2, 16, 48, 960)]

CONV = """\
func.func @main(%x: tensor<2x9x11x24xi8>) -> tensor<2x9x11x40xi32> {{
  %w = stablehlo.constant dense<"0x{weights}"> : tensor<3x3x24x40xi8>
  %c = stablehlo.convolution(%x, %w)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {{pad = [[1, 1], [1, 1]]}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} :
      (tensor<2x9x11x24xi8>, tensor<3x3x24x40xi8>) -> tensor<2x9x11x40xi32>
  return %c : tensor<2x9x11x40xi32>
}}
"""


class Amx(Case):
    targets = [("--device", "ref", "--target-cpu", "matrix")]

    def ways(self):
        """What has the registers."""
        found = list(self.targets)
        try:
            with open("/proc/cpuinfo") as file:
                flags = file.read().split()
        except OSError:
            flags = []
        if has_compiler() and "amx_int8" in flags and "amx_bf16" in flags:
            found.append(("--device", "llvm"))
        else:
            print("llvm's own code is not run: the CPU has no matrix registers")
        return found

    def check(self, text, given, expected, *options):
        path = self.folder / "m.mlir"
        path.write_text(text)
        said = self.succeed("explain", path, *options)
        if "ref" in options:
            self.assertIn("amx: matrix registers make groups", said)
        inputs = []
        for name, value in given.items():
            np.save(self.folder / f"{name}.npy", value)
            inputs += ["--input", f"{name}={self.folder}/{name}.npy"]
        self.succeed("run", path, *inputs, "--outputs", self.folder / "out", *options)
        got = np.load(self.folder / "out" / "output_0.npy")
        np.testing.assert_array_equal(got, expected)

    def test_products(self):
        for options in self.ways():
            for m, n, k in SHAPES:
                for a, b in KINDS if m == 33 else KINDS[:2]:
                    for turned, constant in ((False, False), (True, False), (False, True)):
                        with self.subTest(options=options, m=m, n=n, k=k, a=a, b=b):
                            self.one(m, n, k, a, b, turned, constant, options)

    def one(self, m, n, k, a, b, turned, constant, options):
        left = numbers((m, k), a, m)
        right = numbers([n, k] if turned else [k, n], b, k)
        added = numbers(n, "i8", n)
        y = left @ (right.T if turned else right) + added
        sums = np.float32 if a == "bf16" else np.int32
        given = {"a": bits(left, a), "c": added.astype(sums)}
        if not constant:
            given["b"] = bits(right, b)
        self.check(text_of(m, n, k, a, b, turned, constant), given, y.astype(sums), *options)

    def test_plain_sums(self):
        for options in self.ways():
            for g, m, n, k in PLAIN_SHAPES:
                for a in ("bf16", "i8"):
                    with self.subTest(options=options, g=g, m=m, n=n, k=k, a=a):
                        left, right = numbers((g, m, k), a, m), numbers((g, k, n), a, n)
                        y = "f32" if a == "bf16" else "i32"
                        self.check(
                            PLAIN.format(g=g, m=m, n=n, k=k, a=a, y=y),
                            {"a": bits(left, a), "b": bits(right, a)},
                            (left @ right).astype(NUMPY[y]), *options)

    def test_few_products_are_vectors_work(self):
        path = self.folder / "m.mlir"
        for m, taken in ((8, False), (128, True)):
            path.write_text(text_of(m, m, m, "i8", "i8", False, True))
            said = self.succeed(
                "dump", path, "--stage", "schedule", "--target", "llvm",
                "--target-cpu", "sapphirerapids",
            ) if has_compiler() else ""
            if said:
                self.assertEqual("amx c" in said, taken)

    def test_padded_convolution(self):
        random = np.random.default_rng(3)
        x = random.integers(-128, 128, (2, 9, 11, 24)).astype(np.int8)
        w = random.integers(-128, 128, (3, 3, 24, 40)).astype(np.int8)
        wide = np.pad(x.astype(np.int32), ((0, 0), (1, 1), (1, 1), (0, 0)))
        y = sum(
            wide[:, i : i + 9, j : j + 11] @ w[i, j].astype(np.int32)
            for i in range(3)
            for j in range(3)
        )
        text = CONV.format(weights=w.tobytes().hex().upper())
        for options in self.ways():
            self.check(text, {"x": x}, y, *options)


if __name__ == "__main__":
    unittest.main()
