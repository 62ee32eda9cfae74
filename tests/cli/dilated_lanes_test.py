#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convolutions with zeros between their inputs on devices of lanes: a small one stays one
kernel (passes/conv_transpose_phases.c), a large one does not; both as llvm's, of small
whole numbers."""

import os
import re
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
WHOLE = "one kernel makes all phases of its results"


def module(n, side, c, o, r, steps, pad, dtype):
    """What it computes, and the shapes of its arguments."""
    h, w = ((side - 1) * s + 1 + sum(pad) - r + 1 for s in steps)
    x, k, y = f"{n}x{side}x{side}x{c}", f"{r}x{r}x{c}x{o}", f"{n}x{h}x{w}x{o}"
    return (
        f"func.func @main(%x: tensor<{x}x{dtype}>, %w: tensor<{k}x{dtype}>) -> "
        f"tensor<{y}x{dtype}> {{\n"
        "  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->"
        f"[b, 0, 1, f], window = {{stride = [1, 1], pad = [[{pad[0]}, {pad[1]}], [{pad[0]}, "
        f"{pad[1]}]], lhs_dilate = [{steps[0]}, {steps[1]}]}} {{batch_group_count = 1 : i64, "
        f"feature_group_count = 1 : i64}} : (tensor<{x}x{dtype}>, tensor<{k}x{dtype}>) -> "
        f"tensor<{y}x{dtype}>\n  return %y : tensor<{y}x{dtype}>\n}}\n",
        ((n, side, side, c), (r, r, c, o)))  # fmt: skip


# Of 16 bits by matrix units, of f32 by lanes; windows with and without whole phases.
SMALL = [
    (1, 5, 16, 16, 3, (2, 2), (1, 2), "f16"),
    (2, 4, 8, 24, 3, (2, 1), (1, 1), "f16"),
    (1, 5, 7, 9, 4, (2, 2), (2, 2), "f32"),
    (1, 3, 5, 6, 3, (3, 2), (1, 1), "f32"),
]
LARGE = [
    (2, 16, 64, 64, 3, (2, 2), (1, 2), "f32"),
    (2, 16, 64, 64, 3, (2, 2), (1, 2), "f16"),
    (1, 17, 72, 64, 5, (2, 2), (2, 3), "f16"),
]


# A tap alone meets every other result.
ONE_TAP = (1, 5, 16, 16, 1, (2, 2), (0, 0), "f16")


class Dilated(Case):
    def run_by(self, path, given, how):
        folder = self.folder / how[1]
        self.succeed("run", path, *given, "--no-cache", *how, "--outputs", folder)
        return np.load(folder / "output_0.npy").astype(np.float64)

    def both(self, case, turns=False):
        text, shapes = module(*case)
        if turns:  # the window, as a gradient does
            w = text.split("%w: ")[1].split(") ->")[0]
            text = text.replace("(%x, %w) dim", "(%x, %v) dim").replace(
                "  %y =", f"  %v = stablehlo.reverse %w, dims = [0, 1] : {w}\n  %y =")
        path, given = self.write("m.mlir", text), []
        draw = np.random.default_rng(len(text))
        for j, shape in enumerate(shapes):
            value = draw.integers(-2, 3, size=shape)
            name = self.folder / f"i{j}.npy"
            np.save(name, value.astype(np.float16 if case[-1] == "f16" else np.float32))
            given += ["--input", f"{j}={name}"]
        np.testing.assert_array_equal(self.run_by(path, given, HOPPER),
                                      self.run_by(path, given, ("--device", "llvm")))
        return self.succeed("explain", path, *HOPPER)

    def test_small_ones(self):
        for case in SMALL:
            with self.subTest(case=case):
                self.assertIn(WHOLE, self.both(case))

    def test_one_tap(self):
        said = self.both(ONE_TAP)
        self.assertIn("the zeros between its inputs are multiplied", said)
        self.assertNotIn(WHOLE, said)

    def test_spread_gradient(self):
        """Features outermost and images innermost: zeros are left out as elsewhere."""
        text = (
            "func.func @main(%x: tensor<1x28x31x64xf32>, %w: tensor<3x3x1x352xf32>) -> "
            "tensor<64x57x63x352xf32> {\n  %y = stablehlo.convolution(%x, %w) dim_numbers = "
            "[f, 0, 1, b]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[2, 2], [2, 2]], "
            "lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
            "(tensor<1x28x31x64xf32>, tensor<3x3x1x352xf32>) -> tensor<64x57x63x352xf32>\n"
            "  return %y : tensor<64x57x63x352xf32>\n}\n")  # fmt: skip
        said = self.succeed("explain", self.write("g.mlir", text), *HOPPER)
        self.assertIn("the zeros between its inputs are left out", said)

    def test_turned_windows(self):
        """A gradient without strides is one kernel, which reads its weights as they lie."""
        for case in ((2, 12, 32, 64, 3, (1, 1), (1, 1), "f16"),
                     (1, 9, 12, 20, 3, (1, 1), (0, 2), "f32")):
            with self.subTest(case=case):
                self.assertNotIn("kernel 1:", self.both(case, True))

    def check_large(self, case, turns):
        said = self.both(case, turns)
        self.assertNotIn(WHOLE, said)
        self.assertIn("phases", said)
        self.assertNotRegex(said, r"kernel \d+: slice")  # weights are read as they lie
        # Four phases are joined and put between each other by one kernel.
        self.assertEqual(len(re.findall(r"^kernel \d+: concatenate", said, re.M)), 1, said)

    def test_large_ones(self):
        for case in LARGE:
            for turns in (False, True):
                with self.subTest(case=case, turns=turns):
                    self.check_large(case, turns)


if __name__ == "__main__":
    unittest.main()
