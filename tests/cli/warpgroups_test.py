#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products by warpgroups, as ref runs them for a description of Hopper: right in
every orientation and at every edge, and without a fault of the tiles' rules, since
one ends the run."""

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
# Batch, m, n, k; whether a lies along k, b along k; type of operands and of the
# result; what follows.
CASES = [
    (1, 192, 128, 96, True, False, "f16", "f16", ""),
    (1, 192, 128, 96, False, False, "f16", "f32", ""),
    (1, 200, 72, 96, True, True, "bf16", "f32", ""),
    (3, 130, 264, 72, True, True, "f16", "f32", ""),
    (2, 128, 64, 320, True, False, "f16", "f16", "tanh"),
    (1, 65, 258, 40, True, True, "f16", "f32", "negate"),
    (1, 384, 640, 128, False, True, "bf16", "bf16", ""),
    # A group has two tiles of one strip each.
    (1, 128, 320, 64, True, False, "f16", "f16", ""),
    # Few tiles and a long k: two groups take a half of it each.
    (1, 64, 64, 2048, True, False, "f16", "f16", ""),
    (1, 72, 72, 1904, False, True, "bf16", "f32", "negate"),
    # One round of the widest tiles: two groups bring each other the columns.
    (1, 512, 256, 1024, True, False, "f16", "f16", ""),
    (1, 450, 250, 1056, True, True, "bf16", "bf16", ""),
    # Two tiles of three strips across take one round; so do their ends.
    (1, 256, 384, 256, True, False, "f16", "f16", ""),
    (1, 200, 370, 200, True, True, "bf16", "f32", "tanh"),
    # Rows that begin at odd places, which are copied first.
    (1, 70, 515, 513, True, False, "bf16", "bf16", ""),
    (1, 66, 518, 509, True, True, "f16", "f32", "logistic"),
    # Few rows: a tile has more than there are.
    (1, 7, 130, 1024, True, True, "f16", "f16", ""),
    (1, 16, 128, 2432, True, False, "bf16", "bf16", ""),
    (3, 24, 128, 1056, True, True, "f16", "f32", "negate"),
    (1, 48, 192, 1400, True, False, "bf16", "f32", "tanh"),
]


def text_of(case):
    batch, m, n, k, a_k, b_k, operand, result, after = case
    lead = f"{batch}x" if batch > 1 else ""
    a = f"tensor<{lead}{m}x{k}x{operand}>" if a_k else f"tensor<{lead}{k}x{m}x{operand}>"
    b = f"tensor<{lead}{n}x{k}x{operand}>" if b_k else f"tensor<{lead}{k}x{n}x{operand}>"
    y = f"tensor<{lead}{m}x{n}x{result}>"
    first = 1 if batch > 1 else 0
    batching = "batching_dims = [0] x [0], " if batch > 1 else ""
    taps = f"contracting_dims = [{first + a_k}] x [{first + b_k}]"
    last = f"  %1 = stablehlo.{after} %0 : {y}\n" if after else ""
    return (f"func.func @main(%a: {a}, %b: {b}) -> {y} {{\n"
            f"  %0 = stablehlo.dot_general %a, %b, {batching}{taps} : ({a}, {b}) -> {y}\n"
            f"{last}  return %{1 if after else 0} : {y}\n}}\n")  # fmt: skip


class Warpgroups(Case):
    def test_products(self):
        for case in CASES:
            with self.subTest(case=case):
                path = self.write("p.mlir", text_of(case))
                given = ["--input", "0=random:3", "--input", "1=random:4", "--no-cache"]
                outputs = []
                for name, how in (("hopper", (*HOPPER, "--strict")), ("ref", ("--device", "ref"))):
                    folder = self.folder / name
                    self.succeed("run", path, *given, *how, "--outputs", folder)
                    outputs.append(np.load(folder / "output_0.npy").astype(np.float64))
                self.assertIn("tensorise: matrix units", self.succeed("explain", path, *HOPPER))
                scale = np.abs(outputs[1]).max()
                # f32 sums in another order, rounded to the result's type.
                near = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}[case[7]] * scale
                np.testing.assert_allclose(outputs[0], outputs[1], rtol=0, atol=near)

    def test_parts_have_room(self):
        """Two groups that share k would be fastest with the widest tile, whose sums have no
        room beside what is copied."""
        path = self.write("p.mlir", text_of((1, 128, 512, 8192, True, False, "f16", "f16", "")))
        self.assertIn("tiles of 128 x 128", self.succeed("explain", path, *HOPPER))

    def test_few_rows(self):
        """One round of narrow tiles fills the units, and memory is what they wait for; where
        there are half as many, two groups share the k of each."""
        for n, tile in ((8192, "64 64 132 232448 1 1 8"), (4096, "64 64 132 232448 1 2 8")):
            path = self.write("p.mlir", text_of((1, 16, n, n, True, False, "bf16", "bf16", "")))
            said = self.succeed("dump", path, "--stage", "schedule", "--target", "cuda:sm_90a")
            self.assertRegex(said, rf"tensorise \w+ {tile}\n")


if __name__ == "__main__":
    unittest.main()
