#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products whose k groups of a cluster share (codegen/template/shared_tile/emit_parts.c),
as ref runs them for a description of Hopper: bit for bit what ref computes by its ordinary
loops, of small whole numbers, and without a fault of clusters' rules, since one ends the
run."""

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


def gradient(n, side, c, o, r, dtype):
    """A convolution's gradient by its weights: the window is the image's own size."""
    x, dy = f"{n}x{side}x{side}x{c}x{dtype}", f"{n}x{side}x{side}x{o}x{dtype}"
    y, pad = f"{c}x{r}x{r}x{o}x{dtype}", r // 2
    return (
        f"func.func @main(%x: tensor<{x}>, %dy: tensor<{dy}>) -> tensor<{y}> {{\n"
        "  %0 = stablehlo.convolution(%x, %dy) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[b, 0, 1, f], "
        f"window = {{stride = [1, 1], pad = [[{pad}, {pad}], [{pad}, {pad}]]}} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
        f"(tensor<{x}>, tensor<{dy}>) -> tensor<{y}>\n  return %0 : tensor<{y}>\n}}\n",
        [(n, side, side, c), (n, side, side, o)])


# Two and four groups; rows and columns that end within a tile, steps that are no multiple
# of the groups'.
CASES = [
    gradient(8, 16, 7, 32, 3, "f16"),
    gradient(8, 17, 16, 32, 1, "f16"),
    gradient(8, 16, 7, 30, 3, "f16"),
    gradient(16, 12, 3, 64, 3, "f16"),
    gradient(8, 17, 16, 34, 1, "f16"),
    # 81 whole steps: the last group's steps begin past their end.
    gradient(16, 18, 8, 48, 3, "f16"),
]


class Parts(Case):
    def run_by(self, path, given, how):
        folder = self.folder / how[1]
        self.succeed("run", path, *given, "--no-cache", *how, "--outputs", folder)
        return np.load(folder / "output_0.npy").astype(np.float64)

    def both(self, text, shapes, scale=1.0):
        path, given = self.write("m.mlir", text), []
        draw = np.random.default_rng(len(text))
        for j, shape in enumerate(shapes):
            name = self.folder / f"i{j}.npy"
            np.save(name, (scale * draw.integers(-1, 2, size=shape)).astype(np.float16))
            given += ["--input", f"{j}={name}"]
        self.assertIn("groups share k", self.succeed("explain", path, *HOPPER))
        return (self.run_by(path, given, HOPPER),
                self.run_by(path, given, ("--device", "llvm")))  # fmt: skip

    def test_whole_numbers(self):
        for i, (text, shapes) in enumerate(CASES):
            with self.subTest(case=i):
                np.testing.assert_array_equal(*self.both(text, shapes))

    def test_function_of_the_sums(self):
        text, shapes = CASES[0]
        y = text.split("-> ")[1].split(" {")[0]
        text = text.replace(f"  return %0 : {y}",
                            f"  %1 = stablehlo.tanh %0 : {y}\n  return %1 : {y}")  # fmt: skip
        made, wanted = self.both(text, shapes, 0.125)
        np.testing.assert_allclose(made, wanted, rtol=0, atol=2e-3)


if __name__ == "__main__":
    unittest.main()
