#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sort by keys of numbers and positions (codegen/direct/direct_sort_lanes.c), as ref runs
it for a description of a GPU: IEEE's total order, both ways, equal elements as they were."""

import os
import sys
import unittest

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}; tools/requirements.txt lists what is needed")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import Case  # noqa: E402

GPU = ("--device", "ref", "--target-cpu", "simt90")
TYPES = {"f32": (np.float32, np.int32), "f16": (np.float16, np.int16)}


def module(rows, length, dtype, direction):
    x, i = f"tensor<{rows}x{length}x{dtype}>", f"tensor<{rows}x{length}xi32>"
    return f"""func.func @main(%x: {x}) -> ({x}, {i}) {{
  %i = stablehlo.iota dim = 1 : {i}
  %0:2 = "stablehlo.sort"(%x, %i) <{{dimension = 1 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>, %c: tensor<i32>, %d: tensor<i32>):
    %l = stablehlo.compare {direction}, %a, %b, TOTALORDER : (tensor<{dtype}>, tensor<{dtype}>) -> tensor<i1>
    stablehlo.return %l : tensor<i1>
  }}) : ({x}, {i}) -> ({x}, {i})
  return %0#0, %0#1 : {x}, {i}
}}
"""


def pairs(rows, length):
    """By two whole numbers of 64 bits, of which no key is made."""
    x = f"tensor<{rows}x{length}xi64>"
    return f"""func.func @main(%x: {x}, %y: {x}) -> ({x}, {x}) {{
  %0:2 = "stablehlo.sort"(%x, %y) <{{dimension = 1 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<i64>, %b: tensor<i64>, %c: tensor<i64>, %d: tensor<i64>):
    %l = stablehlo.compare LT, %a, %b : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %l : tensor<i1>
  }}) : ({x}, {x}) -> ({x}, {x})
  return %0#0, %0#1 : {x}, {x}
}}
"""


def largest(rows, length, k):
    x, y, i = (f"tensor<{rows}x{n}x{t}>" for n, t in ((length, "f32"), (k, "f32"), (k, "i32")))
    return f"""func.func @main(%x: {x}) -> ({y}, {i}) {{
  %0:2 = chlo.top_k(%x, k = {k}) : {x} -> ({y}, {i})
  return %0#0, %0#1 : {y}, {i}
}}
"""


class Sort(Case):
    def run_it(self, text, **values):
        given = []
        for name, value in values.items():
            np.save(self.folder / f"{name}.npy", value)
            given += ["--input", f"{name}={self.folder}/{name}.npy"]
        path = self.write("m.mlir", text)
        said = self.succeed("dump", path, "--stage", "kernels", *GPU)
        self.assertIn("barrier", said)  # the network
        self.succeed("run", path, *given, "--no-cache", *GPU, "--outputs", self.folder)
        return [np.load(self.folder / f"output_{i}.npy") for i in range(2)]

    def check(self, rows, length, dtype, direction):
        real, whole = TYPES[dtype]
        draw = np.random.default_rng(length)
        x = np.round(draw.standard_normal((rows, length)) * 4).astype(real) / real(4)
        for special in (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0):
            x.reshape(-1)[draw.integers(0, x.size, 4)] = special
        np.save(self.folder / "x.npy", x)
        path = self.write("m.mlir", module(rows, length, dtype, direction))
        self.succeed("run", path, "--input", f"x={self.folder}/x.npy", "--no-cache", "--device",
                     "ref", "--target-cpu", "simt90", "--outputs", self.folder)  # fmt: skip
        bits = x.view(whole)
        key = (bits ^ (bits >> (8 * bits.itemsize - 1) & np.iinfo(whole).max)).astype(np.int64)
        at = np.argsort(-key if direction == "GT" else key, axis=1, kind="stable")
        np.testing.assert_array_equal(np.load(self.folder / "output_1.npy"), at)
        found = np.load(self.folder / "output_0.npy").view(whole)
        np.testing.assert_array_equal(found, np.take_along_axis(bits, at, 1))

    def test_order(self):
        for shape in ((6, 37), (3, 64), (2, 1100)):
            for dtype in TYPES:
                for direction in ("LT", "GT"):
                    with self.subTest(shape=shape, dtype=dtype, direction=direction):
                        self.check(*shape, dtype, direction)

    def test_lengths(self):
        """A power of two and none; a lane, a subgroup, and all that a group has."""
        for shape in ((64, 8), (10, 20), (16, 128), (2, 513), (1, 2729), (1, 4096), (1, 5000)):
            with self.subTest(shape=shape):
                self.check(*shape, "f32", "LT")

    def test_pairs(self):
        for shape in ((12, 16), (3, 300), (1, 1100)):
            with self.subTest(shape=shape):
                draw = np.random.default_rng(shape[1])
                x = draw.integers(-2**40, 2**40, shape) >> 37 << 37  # some are equal
                y = draw.integers(-2**60, 2**60, shape)
                at = np.argsort(x, axis=1, kind="stable")
                for made, value in zip(self.run_it(pairs(*shape), x=x, y=y), (x, y)):
                    np.testing.assert_array_equal(made, np.take_along_axis(value, at, 1))

    def test_largest(self):
        for rows, length, k in ((6, 100, 1), (4, 1000, 40), (2, 2729, 500), (3, 64, 64)):
            with self.subTest(length=length, k=k):
                draw = np.random.default_rng(length)
                x = draw.integers(-500, 500, (rows, length)).astype(np.float32)
                at = np.argsort(-x, axis=1, kind="stable")[:, :k]
                values, places = self.run_it(largest(rows, length, k), x=x)
                np.testing.assert_array_equal(places, at)
                np.testing.assert_array_equal(values, np.take_along_axis(x, at, 1))


if __name__ == "__main__":
    unittest.main()
