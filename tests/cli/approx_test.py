#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions by a target's approximations: of every f16 and bf16, as ref runs them for
a description of Hopper, where each is as wrong as it may be (kir.h). Exits 77 without
ml_dtypes.

    approx_test.py
"""

import math
import os
import sys
import unittest

try:
    import ml_dtypes
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}; tools/requirements.txt lists what is needed")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import Case  # noqa: E402

HOPPER = ("--device", "ref", "--target-cpu", "simt90")
TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}
FUNCTIONS = {
    "exponential": np.exp,
    "logistic": lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))),
    "tanh": np.tanh,
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
}  # fmt: skip


def text_of(name, dtype, count):
    t = f"tensor<{count}x{dtype}>"
    op = f"chlo.erfc %x : {t} -> {t}" if name == "erfc" else f"stablehlo.{name} %x : {t}"
    return (f"func.func @main(%x: {t}) -> {t} {{\n  %0 = {op}\n"
            f"  return %0 : {t}\n}}\n")  # fmt: skip


def order(x):
    """Numbers in the order of the floats of 16 bits; both zeros are 0."""
    bits = x.view(np.uint16).astype(np.int64)
    return np.where(bits & 0x8000, -(bits & 0x7FFF), bits)


class Approximations(Case):
    def kernels(self, name, dtype, *more):
        path = self.write("k.mlir", text_of(name, dtype, 64))
        return self.succeed("dump", path, "--stage", "kernels", *HOPPER, *more)

    def test_every_number(self):
        bits = np.arange(1 << 16, dtype=np.uint16)
        for dtype, kind in TYPES.items():
            x = bits.view(kind)
            given = self.folder / f"x_{dtype}.npy"
            np.save(given, bits if dtype == "bf16" else x)
            for name, function in FUNCTIONS.items():
                with self.subTest(name=name, dtype=dtype):
                    path = self.write("f.mlir", text_of(name, dtype, 1 << 16))
                    folder = self.folder / f"{name}_{dtype}"
                    self.succeed("run", path, "--input", f"0={given}", *HOPPER, "--strict",
                                 "--no-cache", "--outputs", folder)  # fmt: skip
                    got = np.load(folder / "output_0.npy").view(np.uint16)
                    with np.errstate(all="ignore"):
                        want = function(x.astype(np.float64)).astype(kind)
                    number = ~np.isnan(want.astype(np.float32))
                    self.assertTrue(np.array_equal(number, ~np.isnan(
                        got.view(kind).astype(np.float32))))  # fmt: skip
                    off = np.abs(order(got) - order(want.view(np.uint16)))[number]
                    self.assertLessEqual(off.max(), 1)
                    zero = number & (want.astype(np.float32) == 0)
                    sign = (got ^ want.view(np.uint16)) & 0x8000
                    self.assertFalse(sign[zero].any())

    def test_where(self):
        for name in FUNCTIONS:
            self.assertIn(" approx", self.kernels(name, "bf16"))
            self.assertIn(" approx", self.kernels(name, "f16"))
            self.assertNotIn(" approx", self.kernels(name, "f32"))
            self.assertNotIn(" approx", self.kernels(name, "bf16", "--numerics", "strict"))
            self.assertIn(" approx", self.kernels(name, "f32", "--numerics", "fast"))
        # An f16 is too fine for the unit's tanh.
        self.assertNotIn("= tanh", self.kernels("tanh", "f16"))

    def test_other_readers(self):
        """What an f32 result, or a comparison, is made of stays as it is."""
        t, f, p = (f"tensor<64x{d}>" for d in ("bf16", "f32", "i1"))
        head = f"func.func @main(%x: {f}) -> "
        body = f"  %0 = stablehlo.exponential %x : {f}\n  %1 = stablehlo.convert %0 : ({f}) -> {t}\n"
        one = self.write("one.mlir", f"{head}{t} {{\n{body}  return %1 : {t}\n}}\n")
        two = self.write("two.mlir", f"{head}({t}, {f}) {{\n{body}  return %1, %0 : {t}, {f}\n}}\n")
        three = self.write("three.mlir", (
            f"{head}({t}, {p}) {{\n{body}"
            f"  %2 = stablehlo.compare GT, %0, %x : ({f}, {f}) -> {p}\n"
            f"  return %1, %2 : {t}, {p}\n}}\n"))  # fmt: skip
        dump = ("--stage", "kernels", *HOPPER)
        self.assertIn(" approx", self.succeed("dump", one, *dump))
        self.assertNotIn(" approx", self.succeed("dump", two, *dump))
        self.assertNotIn(" approx", self.succeed("dump", three, *dump))


if __name__ == "__main__":
    unittest.main()
