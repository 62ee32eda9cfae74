#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convolutions of 3 x 3 taps by Winograd's algorithm: where it is taken, that
it is right at every edge, and how near it comes."""

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

# Batch, height, width, channels, features; pads top, left, bottom, right; what
# follows: with rests of tiles, of vectors and of panels, and none of them.
CASES = [
    (1, 56, 56, 64, 64, (1, 1, 1, 1), "relu"),
    (2, 17, 31, 32, 24, (1, 1, 1, 1), "add"),
    (1, 30, 30, 16, 40, (0, 0, 0, 0), "none"),
    (1, 33, 21, 48, 80, (2, 0, 1, 3), "silu"),
    (1, 28, 28, 128, 112, (1, 1, 1, 1), "add"),
    (1, 6, 130, 96, 32, (0, 1, 2, 1), "relu"),
    (1, 14, 14, 256, 256, (1, 1, 1, 1), "relu"),
]
# The same in tiles of 2 x 2 results.
SMALL = [
    (1, 7, 7, 256, 256, (1, 1, 1, 1), "relu"),
    (1, 7, 9, 256, 240, (2, 0, 1, 3), "add"),
    (2, 7, 7, 192, 232, (1, 1, 1, 1), "silu"),
    (1, 8, 8, 256, 256, (0, 0, 0, 0), "none"),
]


def text_of(case):
    n, h, w, c, f, pad, after = case
    top, left, bottom, right = pad
    oh, ow = h + top + bottom - 2, w + left + right - 2
    y = f"tensor<{n}x{oh}x{ow}x{f}xf32>"
    last = {
        "none": ("%c", ""),
        "add": ("%s", f"  %s = stablehlo.add %c, %r : {y}\n"),
        "relu": (
            "%m",
            f"  %z = stablehlo.constant dense<0.0> : {y}\n"
            f"  %m = stablehlo.maximum %c, %z : {y}\n",
        ),
        "silu": (
            "%m",
            f"  %l = stablehlo.logistic %c : {y}\n"
            f"  %m = stablehlo.multiply %c, %l : {y}\n",
        ),
    }[after]
    weights = weights_of(case).reshape(-1)
    numbers = "0x" + weights.astype("<f4").tobytes().hex().upper()
    return f"""\
func.func @main(%x: tensor<{n}x{h}x{w}x{c}xf32>, %r: {y}) -> {y} {{
  %w = stablehlo.constant dense<"{numbers}"> : tensor<3x3x{c}x{f}xf32>
  %c = stablehlo.convolution(%x, %w)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {{pad = [[{top}, {bottom}], [{left}, {right}]]}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} :
      (tensor<{n}x{h}x{w}x{c}xf32>, tensor<3x3x{c}x{f}xf32>) -> {y}
{last[1]}  return {last[0]} : {y}
}}
"""


def weights_of(case):
    c, f = case[3:5]
    random = np.random.default_rng(c * 1000 + f)
    return (random.standard_normal((3, 3, c, f)) / np.sqrt(9 * c)).astype(np.float32)


def inputs_of(case):
    n, h, w, c, f, pad, _ = case
    random = np.random.default_rng(h * 1000 + w)
    x = random.standard_normal((n, h, w, c)).astype(np.float32)
    out = (n, h + pad[0] + pad[2] - 2, w + pad[1] + pad[3] - 2, f)
    return x, random.standard_normal(out).astype(np.float32)


def expected(case):
    _, h, w, _, _, pad, after = case
    x, other = (v.astype(np.float64) for v in inputs_of(case))
    weights = weights_of(case).astype(np.float64)
    top, left, bottom, right = pad
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    h, w = h + top + bottom - 2, w + left + right - 2
    y = sum(
        x[:, i : i + h, j : j + w] @ weights[i, j] for i in range(3) for j in range(3)
    )
    if after == "add":
        return y + other
    if after == "relu":
        return np.maximum(y, 0)
    return y / (1 + np.exp(-y)) if after == "silu" else y


@unittest.skipUnless(has_compiler(), "no LLVM plugin")
class Winograd(Case):
    def run_case(self, case, *options):
        path = (self.folder / "c.mlir")
        path.write_text(text_of(case))
        said = self.succeed("explain", path, *options)
        x, other = inputs_of(case)
        np.save((self.folder / "x.npy"), x)
        np.save((self.folder / "r.npy"), other)
        given = ["--input", f"x={self.folder}/x.npy", "--input", f"r={self.folder}/r.npy"]
        self.succeed(
            "run", path, *given, "--outputs", (self.folder / "out"), "--verify", *options
        )
        got = np.load((self.folder / "out") / "output_0.npy")
        sizes = [n for n in (4, 2) if f"algorithm, tiles of {n} x {n} results" in said]
        return sizes[0] if sizes else 0, got

    def test_results(self):
        for case in CASES:
            for options in ((), ("--threads", "2"), ("--target-cpu", "x86-64-v3")):
                with self.subTest(case=case, options=options):
                    size, got = self.run_case(case, *options)
                    # Weights that the last cache does not hold stay small.
                    l3 = 32 if "--target-cpu" not in options else 8
                    if 36 * case[3] * case[4] * 4 <= l3 << 19:
                        self.assertGreater(size, 0)
                    y = expected(case)
                    # Measured 2 to 5 times the taps' own error, whose steps are
                    # of 6e-8 of sums of this size.
                    error = np.abs(got - y).max() / np.abs(y).max()
                    self.assertLess(error, 5e-6)

    def test_small_tiles(self):
        for case in SMALL:
            for options in ((), ("--threads", "2"), ("--target-cpu", "x86-64-v3")):
                with self.subTest(case=case, options=options):
                    size, got = self.run_case(case, *options)
                    # Other CPUs may hold the weights of tiles of 4 x 4.
                    self.assertGreater(size, 0)
                    if "--target-cpu" in options:
                        self.assertEqual(size, 2)
                    y = expected(case)
                    error = np.abs(got - y).max() / np.abs(y).max()
                    self.assertLess(error, 5e-6 if size == 4 else 2e-6)

    def test_strict_is_by_taps(self):
        size, got = self.run_case(CASES[1], "--numerics", "strict")
        self.assertEqual(size, 0)
        y = expected(CASES[1])
        self.assertLess(np.abs(got - y).max() / np.abs(y).max(), 2e-6)

    def test_one_threads_results_are_anothers(self):
        for case in (CASES[0], CASES[6], SMALL[0]):
            _, one = self.run_case(case, "--threads", "1")
            _, two = self.run_case(case, "--threads", "2")
            np.testing.assert_array_equal(one, two)

    def test_far_values_stay_apart(self):
        """A tile does not see what its results do not: no more than its error."""
        case = (1, 40, 40, 32, 32, (1, 1, 1, 1), "none")
        path = (self.folder / "c.mlir")
        path.write_text(text_of(case))
        x, other = inputs_of(case)
        np.save((self.folder / "r.npy"), other)
        outs = []
        for big in (0, 1e6):
            x[0, 20, 20, :] = big
            np.save((self.folder / "x.npy"), x)
            self.succeed(
                "run", path, "--input", f"x={self.folder}/x.npy",
                "--input", f"r={self.folder}/r.npy",
                "--outputs", (self.folder / "out"),
            )  # fmt: skip
            outs.append(np.load((self.folder / "out") / "output_0.npy"))
        same = outs[0] == outs[1]
        same[0, 16:24, 16:24] = True
        self.assertTrue(same.all())


if __name__ == "__main__":
    unittest.main()
