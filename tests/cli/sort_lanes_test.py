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


class Sort(Case):
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


if __name__ == "__main__":
    unittest.main()
