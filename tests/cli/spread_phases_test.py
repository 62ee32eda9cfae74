#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convolutions of inputs with zeros between their elements that stay one kernel
(codegen/lower/lower_phases.c), as ref runs them for a description of Hopper: bit for bit what
llvm makes of convolutions by phases, of small whole numbers and of infinite ones, whose
places are those of llvm too."""

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

HOPPER = ("--device", "ref", "--target-cpu", "simt90")
SHAPE = {"f16": np.float16, "f32": np.float32}


def spread(n, h, w, c, o, taps, steps, low, high, dtype, groups=1):
    """Zeros between rows and columns, |steps| - 1; the module and its inputs' shapes."""
    out = [(side - 1) * step + 1 + a + b - tap + 1
           for side, step, a, b, tap in zip((h, w), steps, low, high, taps)]  # fmt: skip
    x, k = (n, h, w, c), (*taps, c // groups, o)
    tx, tk, ty = ("x".join(map(str, s)) + f"x{dtype}" for s in (x, k, (n, *out, o)))
    pad = ", ".join(f"[{a}, {b}]" for a, b in zip(low, high))
    return (
        f"func.func @main(%x: tensor<{tx}>, %w: tensor<{tk}>) -> tensor<{ty}> {{\n"
        "  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
        f"window = {{stride = [1, 1], pad = [{pad}], lhs_dilate = [{steps[0]}, {steps[1]}]}} "
        f"{{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : "
        f"(tensor<{tx}>, tensor<{tk}>) -> tensor<{ty}>\n  return %0 : tensor<{ty}>\n}}\n",
        (x, k), dtype)  # fmt: skip


# Windows that steps divide and do not, odd results, one dim alone, three steps, groups,
# results before and behind all elements.
CASES = [
    spread(1, 5, 4, 16, 24, (4, 4), (2, 2), (2, 2), (2, 2), "f16"),
    spread(1, 9, 6, 24, 40, (5, 5), (2, 2), (2, 2), (2, 3), "f16"),
    spread(1, 9, 6, 43, 21, (3, 3), (2, 2), (1, 1), (2, 2), "f16"),
    spread(2, 6, 6, 16, 24, (3, 4), (1, 2), (1, 2), (1, 2), "f32"),
    spread(1, 5, 4, 12, 16, (4, 5), (3, 3), (5, 3), (4, 6), "f32"),
    spread(1, 6, 7, 32, 32, (3, 3), (2, 2), (1, 1), (2, 2), "f32", groups=4),
    spread(1, 1, 3, 8, 8, (2, 2), (2, 2), (4, 3), (5, 4), "f32"),
]


class Phases(Case):
    def run_by(self, path, given, how):
        folder = self.folder / how[1]
        self.succeed("run", path, *given, "--no-cache", *how, "--outputs", folder)
        return np.load(folder / "output_0.npy")

    def both(self, text, shapes, dtype, infinite):
        path, given = self.write("m.mlir", text), []
        draw = np.random.default_rng(len(text))
        for j, shape in enumerate(shapes):
            name = self.folder / f"i{j}.npy"
            data = draw.integers(-1, 2, size=shape).astype(SHAPE[dtype])
            if infinite == j:
                data.flat[:: data.size // 3] = np.inf
            np.save(name, data)
            given += ["--input", f"{j}={name}"]
        return (self.run_by(path, given, HOPPER),
                self.run_by(path, given, ("--device", "llvm")))  # fmt: skip

    def test_whole_and_infinite_numbers(self):
        for i, (text, shapes, dtype) in enumerate(CASES):
            for infinite in (None, 0, 1):
                with self.subTest(case=i, infinite=infinite):
                    np.testing.assert_array_equal(*self.both(text, shapes, dtype, infinite))

    def test_stays_one_kernel(self):
        for i, (text, _, _) in enumerate(CASES):
            with self.subTest(case=i):
                path = self.write("m.mlir", text)
                told = self.succeed("explain", path, *HOPPER)
                self.assertIn("one kernel makes all phases", told)
                self.assertLessEqual(told.count("\nkernel "), 2)


if __name__ == "__main__":
    unittest.main()
