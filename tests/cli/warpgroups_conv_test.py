#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convolutions by warpgroups, whose windows the copy engine finds, as ref runs them for
a description of Hopper: bit for bit what ref computes by its ordinary loops, of small
whole numbers, and without a fault of the tiles' rules, since one ends the run."""

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
# Of the weights: how they lie, and their extents' names in that order.
WEIGHTS = {"[0, 1, i, o]": "yxco", "[o, 0, 1, i]": "oyxc", "[o, i, 0, 1]": "ocyx"}
WITH_RESIDUAL = """  %1 = stablehlo.broadcast_in_dim %b, dims = [3] : ({B}) -> {Y}
  %2 = stablehlo.add %0, %1 : {Y}
  %3 = stablehlo.add %2, %s : {Y}
  %4 = stablehlo.constant dense<0.0> : {Y}
  %5 = stablehlo.maximum %3, %4 : {Y}
"""


def conv(n, h, w, c, o, y, x, pad=((0, 0), (0, 0)), step=(1, 1), dilate=(1, 1),
         turned=False, weights="[0, 1, i, o]", residual=False, dtype="f16", result=None):  # fmt: skip
    """A module, and the shapes of its arguments."""
    result = result or dtype
    rows = (h + sum(pad[0]) - (y - 1) * dilate[0] - 1) // step[0] + 1
    columns = (w + sum(pad[1]) - (x - 1) * dilate[1] - 1) // step[1] + 1
    extent = dict(y=y, x=x, c=c, o=o)
    shapes = [(n, h, w, c), tuple(extent[a] for a in WEIGHTS[weights])]
    if residual:
        shapes += [(o,), (n, rows, columns, o)]

    def type_of(shape, of):
        return "tensor<" + "".join(f"{d}x" for d in shape) + f"{of}>"

    names = dict(X=type_of(shapes[0], dtype), W=type_of(shapes[1], dtype),
                 B=type_of((o,), result), Y=type_of((n, rows, columns, o), result))  # fmt: skip
    arguments = "%x: {X}, %w: {W}" + (", %b: {B}, %s: {Y}" if residual else "")
    reverse = ", reverse = [true, true]" if turned else ""
    text = (
        f"func.func @main({arguments}) -> {{Y}} {{{{\n"
        f"  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x{weights}->[b, 0, 1, f], "
        f"window = {{{{stride = {list(step)}, pad = {[list(p) for p in pad]}, "
        f"rhs_dilate = {list(dilate)}{reverse}}}}} "
        "{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({X}, {W}) -> {Y}\n"
        f"{WITH_RESIDUAL if residual else ''}  return %{5 if residual else 0} : {{Y}}\n}}}}\n")  # fmt: skip
    return text.format(**names), shapes


ONE = ((1, 1), (1, 1))
CASES = [
    dict(n=2, h=14, w=14, c=64, o=128, y=3, x=3, pad=ONE),
    # One image, channels that end within a copy, columns that end within a tile.
    dict(n=1, h=19, w=27, c=120, o=120, y=3, x=3, pad=ONE),
    # Steps, padding on one side, less than a copy's channels.
    dict(n=5, h=13, w=12, c=56, o=128, y=3, x=3, step=(2, 2), pad=((0, 1), (1, 0))),
    dict(n=2, h=24, w=22, c=64, o=64, y=7, x=7, step=(2, 2), pad=((3, 3), (3, 3))),
    dict(n=1, h=16, w=16, c=64, o=64, y=3, x=3, dilate=(2, 3), pad=((2, 2), (3, 3))),
    dict(n=4, h=14, w=14, c=64, o=128, y=1, x=1, step=(2, 2)),
    # Groups have several tiles of one strip each.
    dict(n=20, h=7, w=8, c=64, o=64, y=1, x=3, pad=((0, 0), (1, 1))),
    # Nothing says how large the image is.
    dict(n=2, h=12, w=13, c=64, o=120, y=3, x=3),
    dict(n=2, h=12, w=13, c=64, o=320, y=1, x=3, pad=((0, 0), (1, 1)), result="f32"),
    dict(n=2, h=12, w=13, c=64, o=64, y=3, x=3, pad=ONE, weights="[o, 0, 1, i]"),
    dict(n=2, h=12, w=13, c=64, o=64, y=3, x=3, pad=ONE, weights="[o, i, 0, 1]"),
    dict(n=2, h=12, w=13, c=64, o=64, y=3, x=3, pad=((2, 0), (2, 1)), turned=True,
         weights="[o, 0, 1, i]"),
    dict(n=2, h=12, w=13, c=136, o=64, y=2, x=3, pad=ONE, residual=True),
    # Rows that are no whole runs are stored by the lanes that have them.
    dict(n=7, h=7, w=9, c=64, o=118, y=3, x=3, pad=ONE, weights="[o, 0, 1, i]", result="f32"),
    dict(n=2, h=14, w=14, c=64, o=128, y=3, x=3, pad=ONE, weights="[o, 0, 1, i]", residual=True),
    # Groups share steps, whose number is no multiple of theirs.
    dict(n=1, h=8, w=9, c=328, o=72, y=3, x=3, pad=ONE),
    dict(n=1, h=11, w=11, c=400, o=64, y=3, x=3, pad=ONE, weights="[o, 0, 1, i]", residual=True),
    dict(n=1, h=8, w=9, c=1200, o=64, y=1, x=1, result="f32"),
    # Channels that are no whole runs, and an odd number of features.
    dict(n=1, h=8, w=9, c=325, o=67, y=3, x=3, pad=ONE, weights="[o, i, 0, 1]"),
    dict(n=1, h=8, w=9, c=326, o=66, y=3, x=3, pad=ONE, weights="[o, 0, 1, i]", residual=True),
    dict(n=1, h=1, w=300, c=64, o=64, y=1, x=5, pad=((0, 0), (2, 2)), residual=True),
    dict(n=2, h=25, w=28, c=64, o=64, y=3, x=3, step=(2, 2), dilate=(2, 1), turned=True,
         pad=((1, 2), (0, 2))),
]  # fmt: skip


class Convolutions(Case):
    def both(self, text, given):
        """What warpgroups compute, and what loops do."""
        path, outputs = self.write("m.mlir", text), []
        for name, how in (("hopper", (*HOPPER, "--strict")), ("ref", ("--device", "ref"))):
            folder = self.folder / name
            self.succeed("run", path, *given, "--no-cache", *how, "--outputs", folder)
            outputs.append(np.load(folder / "output_0.npy").astype(np.float64))
        self.assertIn("windows and weights are copied", self.succeed("explain", path, *HOPPER))
        return outputs

    def test_whole_numbers(self):
        for case in CASES:
            with self.subTest(case=case):
                text, shapes = conv(**case)
                given, draw = [], np.random.default_rng(1)
                for i, shape in enumerate(shapes):
                    path = self.folder / f"i{i}.npy"
                    dtype = np.float16 if i < 2 or case.get("result") != "f32" else np.float32
                    np.save(path, draw.integers(-2, 3, size=shape).astype(dtype))
                    given += ["--input", f"{i}={path}"]
                np.testing.assert_array_equal(*self.both(text, given))

    def test_bf16(self):
        text, _ = conv(n=2, h=12, w=13, c=64, o=64, y=3, x=3, pad=ONE, dtype="bf16", result="f32")
        given = ["--input", "0=random:3", "--input", "1=random:4"]
        made, wanted = self.both(text, given)
        # f32 sums in another order.
        np.testing.assert_allclose(made, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())

    def whole(self, text, shapes):
        given, draw = [], np.random.default_rng(1)
        for i, shape in enumerate(shapes):
            path = self.folder / f"i{i}.npy"
            np.save(path, draw.integers(-2, 3, size=shape).astype(np.float16))
            given += ["--input", f"{i}={path}"]
        np.testing.assert_array_equal(*self.both(text, given))

    def test_upsampled(self):
        """Each phase of a transposed convolution is columns of one, and the last tile of
        these is not full: where a column goes is a quotient of it."""
        for n, side, c, o in ((16, 14, 64, 40), (4, 14, 64, 50), (16, 8, 64, 74)):
            out = 2 * side
            text = (
                f"func.func @main(%x: tensor<{n}x{side}x{side}x{c}xf16>, "
                f"%w: tensor<4x4x{c}x{o}xf16>) -> tensor<{n}x{out}x{out}x{o}xf16> {{\n"
                "  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]"
                "->[b, 0, 1, f], window = {stride = [1, 1], pad = [[2, 2], [2, 2]], "
                "lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
                f" : (tensor<{n}x{side}x{side}x{c}xf16>, tensor<4x4x{c}x{o}xf16>) -> "
                f"tensor<{n}x{out}x{out}x{o}xf16>\n"
                f"  return %0 : tensor<{n}x{out}x{out}x{o}xf16>\n}}\n")  # fmt: skip
            with self.subTest(n=n, side=side, c=c, o=o):
                self.whole(text, ((n, side, side, c), (4, 4, c, o)))

    def test_too_few(self):
        """Where tiles stay empty, units of subgroups have it, and explain says so."""
        text, _ = conv(n=1, h=8, w=9, c=64, o=64, y=3, x=3, pad=ONE)
        said = self.succeed("explain", self.write("m.mlir", text), *HOPPER)
        self.assertIn("14 % of the products of tiles of 128 x 64 are of the result", said)
        self.assertIn("shared_tile: groups", said)


if __name__ == "__main__":
    unittest.main()
