#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products by an algorithm that the module chooses (passes/dot_algorithms), on CPUs and as
ref runs them for a description of a GPU with units of tf32 and bf16."""

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
UNITS = "matrix units multiply tiles"


def algorithm(kind, products=1):
    parts = {1: 1, 3: 2, 6: 3, 9: 3}[products]
    return (f"lhs_precision_type = {kind}, rhs_precision_type = {kind}, accumulation_type = f32, "
            f"lhs_component_count = {parts}, rhs_component_count = {parts}, "
            f"num_primitive_operations = {products}, allow_imprecise_accumulation = false")


def dot(a, b, at, how=None):
    x, w = ("tensor<" + "".join(f"{d}x" for d in s) + "f32>" for s in (a, b))
    y = f"tensor<{a[1 - at[0]]}x{b[1 - at[1]]}xf32>"
    how = f", algorithm = <{how}>" if how else ""
    return (f"func.func @main(%a: {x}, %b: {w}) -> {y} {{\n  %y = stablehlo.dot_general %a, %b, "
            f"contracting_dims = [{at[0]}] x [{at[1]}]{how} : ({x}, {w}) -> {y}\n"
            f"  return %y : {y}\n}}\n")


def rounded(x, bits):
    """To so many bits of the mantissa, ties to even."""
    cut = 23 - bits
    b = x.astype(np.float32).view(np.uint32)
    b = b + (1 << cut - 1) - 1 + (b >> cut & 1) & np.uint32(0xffffffff << cut & 0xffffffff)
    return b.astype(np.uint32).view(np.float32)


class Algorithms(Case):
    def run_by(self, text, values, *how, by=""):
        path, given = self.write("m.mlir", text), []
        for i, value in enumerate(values):
            name = self.folder / f"i{i}.npy"
            np.save(name, value.astype(np.float32))
            given += ["--input", f"{i}={name}"]
        self.assertIn(by, self.succeed("explain", path, *how))
        out = self.folder / "out"
        self.succeed("run", path, *given, "--no-cache", *how, "--outputs", out)
        return np.load(out / "output_0.npy")

    def numbers(self, *shapes):
        draw = np.random.default_rng(sum(sum(s) for s in shapes))
        return [draw.standard_normal(s).astype(np.float32) for s in shapes]

    def test_rounding(self):
        """On CPUs operands are what the algorithm says."""
        x, w = self.numbers((33, 70), (70, 41))
        for kind, bits in (("tf32", 10), ("bf16", 7)):
            made = self.run_by(dot(x.shape, w.shape, (1, 0), algorithm(kind)), (x, w))
            wanted = rounded(x, bits).astype(float) @ rounded(w, bits).astype(float)
            np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-5)

    def test_types_of_one_width(self):
        """f16 and bf16 do not hold each other: operands are rounded all the same."""
        for own, has, kind, bits in (("f16", 10, "bf16", 7), ("bf16", 7, "f16", 10)):
            draw = np.random.default_rng(bits)
            # Numbers that the operands' type has, f16 not all below its least of 11 bits.
            x, w = (rounded(draw.standard_normal(n).astype(np.float32) * 2.0**-13, has)
                    for n in ((33, 70), (70, 41)))  # fmt: skip
            body = (
                "func.func @main(%a: tensor<33x70xf32>, %b: tensor<70x41xf32>) -> tensor<33x41xf32> {\n"
                f"  %x = stablehlo.convert %a : (tensor<33x70xf32>) -> tensor<33x70x{own}>\n"
                f"  %w = stablehlo.convert %b : (tensor<70x41xf32>) -> tensor<70x41x{own}>\n"
                "  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], algorithm = "
                f"<{algorithm(kind)}> : (tensor<33x70x{own}>, tensor<70x41x{own}>) -> "
                "tensor<33x41xf32>\n  return %y : tensor<33x41xf32>\n}\n")
            if own == "f16":
                x, w = (v.astype(np.float16).astype(np.float32) for v in (x, w))
                wanted = rounded(x, bits).astype(float) @ rounded(w, bits).astype(float)
            else:
                wanted = (x.astype(np.float16).astype(float) @ w.astype(np.float16).astype(float))
            exact = x.astype(float) @ w.astype(float)
            least = np.abs(exact - wanted).max()
            for device in ("cpu", "ref"):
                made = self.run_by(body, (x, w), "--device", device)
                self.assertLess(np.abs(made - wanted).max(), least / 100)

    def test_units_of_tf32(self):
        """Edges, a second operand in rows, odd strides, shared k: whole numbers are exact."""
        for a, b, at, how in [
            ((130, 64), (200, 64), (1, 1), ()), ((72, 512), (512, 520), (1, 0), ()),
            ((64, 1111), (777, 1111), (1, 1), ()), ((64, 2048), (64, 2048), (1, 1), ()),
            ((130, 64), (200, 64), (1, 1), ("--numerics", "fast")),
        ]:  # fmt: skip
            with self.subTest(a=a, b=b):
                draw = np.random.default_rng(sum(a + b))
                x, w = (draw.integers(-9, 10, size=s) for s in (a, b))
                text = dot(a, b, at, None if how else algorithm("tf32"))
                made = self.run_by(text, (x, w), *HOPPER, *how, by=UNITS)
                np.testing.assert_array_equal(made, np.tensordot(x, w, axes=at))

    def test_units_of_subgroups(self):
        """tf32 where there are no warpgroups, or their boxes do not fit: operands along k and
        across, edges, odd strides; whole numbers are exact, and others keep 10 bits."""
        for a, b, at, cpu in [
            ((130, 64), (200, 64), (1, 1), "simt"), ((72, 512), (512, 520), (1, 0), "simt"),
            ((96, 64), (96, 40), (0, 0), "simt"), ((65, 333), (333, 77), (1, 0), "simt"),
            ((300, 7), (7, 200), (1, 0), "simt90"),
        ]:  # fmt: skip
            with self.subTest(a=a, b=b):
                how = ("--device", "ref", "--target-cpu", cpu)
                draw = np.random.default_rng(sum(a + b))
                x, w = (draw.integers(-9, 10, size=s) for s in (a, b))
                text = dot(a, b, at, algorithm("tf32"))
                made = self.run_by(text, (x, w), *how, by="by matrix units of a subgroup")
                np.testing.assert_array_equal(made, np.tensordot(x, w, axes=at))
                x, w = self.numbers(a, b)
                made = self.run_by(text, (x, w), *how)
                cut = [(v.view(np.uint32) & 0xffffe000).view(np.float32).astype(float)
                       for v in (x, w)]  # fmt: skip
                np.testing.assert_allclose(made, np.tensordot(*cut, axes=at), atol=1e-4)
        text = dot((512, 256), (512, 256), (1, 1), algorithm("tf32"))
        said = self.succeed("dump", self.write("m.mlir", text), "--stage", "source", "--target",
                            "cuda:sm_80")  # fmt: skip
        self.assertIn("m16n8k8.row.col.f32.tf32.tf32.f32", said)

    def test_digits(self):
        """By how many digits results are right."""
        x, w = self.numbers((128, 256), (512, 256))
        wanted = x.astype(float) @ w.astype(float).T
        size = np.abs(x.astype(float)) @ np.abs(w.astype(float)).T
        for kind, products, off in (("tf32", 1, 2.0**-10), ("tf32", 3, 2.0**-20),
                                    ("bf16", 1, 2.0**-8), ("bf16", 3, 2.0**-15),
                                    ("bf16", 6, 2.0**-20), ("bf16", 9, 2.0**-20)):  # fmt: skip
            with self.subTest(kind=kind, products=products):
                text = dot(x.shape, w.shape, (1, 1), algorithm(kind, products))
                made = self.run_by(text, (x, w), *HOPPER, by=UNITS)
                self.assertLess((np.abs(made - wanted) / size).max(), off)

    def test_not_finite(self):
        """Infinities, NaN and the largest number pass parts."""
        x, w = np.ones((128, 256)), np.ones((512, 256))
        x[0, 3], x[1, 4], x[2, 5] = np.inf, np.nan, np.finfo(np.float32).max
        w[:, 5] = 0.25
        for parts in ("bf16", 6), ("tf32", 3):
            text = dot(x.shape, w.shape, (1, 1), algorithm(*parts))
            made = self.run_by(text, (x, w), *HOPPER, by=UNITS)
            self.assertTrue(np.isposinf(made[0]).all() and np.isnan(made[1]).all())
            np.testing.assert_allclose(made[2], np.finfo(np.float32).max / 4, rtol=1e-6)


if __name__ == "__main__":
    unittest.main()
