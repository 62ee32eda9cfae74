#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of 8-bit floats by warpgroups (codegen/template/tensorise), as ref runs them for
a description of a GPU, whose units keep some 14 bits of a sum: exact where these are enough,
and close because sums of 128 elements of k are added up in f32."""

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
# Bits of the mantissa, and the exponent's bias.
FORMATS = {"f8E4M3FN": (3, 7), "f8E5M2": (2, 15)}


def decoded(bits, dtype):
    """What finite 8-bit floats are."""
    mantissa, bias = FORMATS[dtype]
    exponent = (bits >> mantissa & (1 << 7 - mantissa) - 1).astype(int)
    part = (bits & (1 << mantissa) - 1) / (1 << mantissa)
    value = np.where(exponent == 0, part * 2.0 ** (1 - bias),
                     (1 + part) * 2.0 ** (exponent - bias))  # fmt: skip
    return np.where(bits & 128, -value, value)


def encoded(values, dtype):
    """The bits of numbers that |dtype| has."""
    all_bits = np.arange(256, dtype=np.uint8)
    table = {v: b for b, v in zip(all_bits[::-1], decoded(all_bits, dtype)[::-1])}
    return np.vectorize(lambda v: table[v], otypes=[np.uint8])(values)


def tensor(shape, dtype):
    return "tensor<" + "".join(f"{d}x" for d in shape) + f"{dtype}>"


def dot(a, b, at, types=("f8E4M3FN", "f8E4M3FN"), result="f32", behind=""):
    """Of bytes that are seen as 8-bit floats; |behind| makes %z of %y."""
    lines, y = "", tensor((a[1 - at[0]], b[1 - at[1]]), result)
    for name, shape, dtype in (("a", a, types[0]), ("b", b, types[1])):
        lines += (f"  %{name}_f = stablehlo.bitcast_convert %{name} : "
                  f"({tensor(shape, 'ui8')}) -> {tensor(shape, dtype)}\n")  # fmt: skip
    return (f"func.func @main(%a: {tensor(a, 'ui8')}, %b: {tensor(b, 'ui8')}) -> {y} {{\n{lines}"
            f"  %y = stablehlo.dot_general %a_f, %b_f, contracting_dims = [{at[0]}] x [{at[1]}] : "
            f"({tensor(a, types[0])}, {tensor(b, types[1])}) -> {y}\n{behind}"
            f"  return %{'z' if behind else 'y'} : {y}\n}}\n")


class F8(Case):
    def run_by(self, text, values, *more, by=UNITS):
        path, given = self.write("m.mlir", text), []
        for i, value in enumerate(values):
            name = self.folder / f"i{i}.npy"
            np.save(name, value)
            given += ["--input", f"{i}={name}"]
        said = self.succeed("explain", path, *HOPPER, *more)
        self.assertIn(by, said)
        out = self.folder / "out"
        self.succeed("run", path, *given, "--no-cache", *HOPPER, *more, "--outputs", out)
        return np.load(out / "output_0.npy"), said

    def test_whole_numbers(self):
        """Edges, a second operand in rows, odd strides, and groups that share k or columns."""
        for a, b, at, dtype, word in [
            ((192, 128), (128, 128), (1, 1), "f8E4M3FN", "added up in registers"),
            ((130, 80), (264, 80), (1, 1), "f8E5M2", "added up in registers"),
            ((640, 384), (576, 384), (1, 1), "f8E4M3FN", "tiles of 128 x 192"),
            ((72, 512), (512, 520), (1, 0), "f8E4M3FN", "transpose"),
            ((64, 1111), (777, 1111), (1, 1), "f8E5M2", "pad"),
            ((64, 4096), (64, 4096), (1, 1), "f8E4M3FN", "a part of k each"),
            ((512, 2048), (128, 2048), (1, 1), "f8E4M3FN", "bring each other the columns"),
        ]:
            with self.subTest(a=a, b=b, dtype=dtype):
                draw = np.random.default_rng(sum(a + b))
                x, w = (draw.integers(-2, 3, size=s).astype(float) for s in (a, b))
                made, said = self.run_by(dot(a, b, at, (dtype, dtype)),
                                         [encoded(x, dtype), encoded(w, dtype)])  # fmt: skip
                self.assertIn(word, said)
                np.testing.assert_array_equal(made, np.tensordot(x, w, axes=at))

    def test_both_types(self):
        """One of each: both stay what they are, by units, by lanes and in `strict`."""
        draw = np.random.default_rng(8)
        x, w = (draw.integers(-2, 3, size=s).astype(float) for s in ((192, 128), (128, 128)))
        for types in (("f8E4M3FN", "f8E5M2"), ("f8E5M2", "f8E4M3FN")):
            text = dot((192, 128), (128, 128), (1, 1), types)
            given = [encoded(v, t) for v, t in zip((x, w), types)]
            for more, by in (((), UNITS), (("--numerics", "strict"), "")):
                made, said = self.run_by(text, given, *more, by=by)
                self.assertNotIn(" convert", said)
                np.testing.assert_array_equal(made, x @ w.T)
            path = self.write("m.mlir", text)
            self.assertIn(f"{types[0].lower()[2:6]}.{types[1].lower()[2:6]}",
                          self.succeed("dump", path, "--stage", "source", "--target",
                                       "cuda:sm_90a"))  # fmt: skip

    def test_subgroups(self):
        """By units of a subgroup where boxes of warpgroups do not fit: operands along k and
        across, of both types; sums of 32 products are added up in registers."""
        for a, b, at, types in [
            ((48, 96), (40, 96), (1, 1), ("f8E4M3FN", "f8E5M2")),
            ((33, 70), (70, 31), (1, 0), ("f8E4M3FN", "f8E4M3FN")),
            ((96, 64), (96, 40), (0, 0), ("f8E5M2", "f8E5M2")),
        ]:
            draw = np.random.default_rng(sum(a + b))
            x, w = (draw.integers(-2, 3, size=s).astype(float) for s in (a, b))
            given = [encoded(v, t) for v, t in zip((x, w), types)]
            for numerics in ("default", "fast"):
                made, _ = self.run_by(dot(a, b, at, types), given, "--numerics", numerics,
                                      by="by matrix units of a subgroup")  # fmt: skip
                np.testing.assert_array_equal(made, np.tensordot(x, w, axes=at))
        a, b, dtype = (33, 2048), (31, 2048), "f8E4M3FN"
        x, w = (draw.integers(0x30, 0x40, size=s, dtype=np.uint8) for s in (a, b))
        made, _ = self.run_by(dot(a, b, (1, 1)), [x, w], by="by matrix units of a subgroup")
        np.testing.assert_allclose(made, decoded(x, dtype) @ decoded(w, dtype).T, rtol=2.0**-9)
        text = dot((512, 256), (512, 256), (1, 1))
        for cpu, has in (("sm_80", False), ("sm_89", True), ("sm_100", True)):
            said = self.succeed("dump", self.write("m.mlir", text), "--stage", "source",
                                "--target", f"cuda:{cpu}")  # fmt: skip
            self.assertEqual("m16n8k32.row.col.f32.e4m3.e4m3.f32" in said, has, cpu)

    def test_long_sums(self):
        """Positive numbers, of which units alone lose a large part."""
        a, b, dtype = (64, 4096), (64, 4096), "f8E4M3FN"
        draw = np.random.default_rng(5)
        x, w = (draw.integers(0x30, 0x40, size=s, dtype=np.uint8) for s in (a, b))
        wanted = decoded(x, dtype) @ decoded(w, dtype).T
        text, off = dot(a, b, (1, 1)), {}
        for numerics in ("default", "fast"):
            made, said = self.run_by(text, [x, w], "--numerics", numerics)
            self.assertEqual("added up in registers" in said, numerics == "default")
            off[numerics] = np.abs(made / wanted - 1).max()
        self.assertLess(off["default"], 2.0**-8)
        self.assertGreater(off["fast"], 4 * off["default"])
        made, _ = self.run_by(text, [x, w], "--numerics", "strict", by="")
        np.testing.assert_allclose(made, wanted, rtol=1e-5)

    def test_results(self):
        """Of f16 and bf16 too, with what follows."""
        a, b, dtype = (128, 256), (192, 256), "f8E4M3FN"
        draw = np.random.default_rng(6)
        x, w = (draw.integers(-1, 2, size=s).astype(float) for s in (a, b))
        given = [encoded(x, dtype), encoded(w, dtype)]
        for result in ("f16", "f32"):
            y = tensor((128, 192), result)
            behind = (f"  %s = stablehlo.constant dense<0.5> : {y}\n"
                      f"  %z = stablehlo.multiply %y, %s : {y}\n")  # fmt: skip
            made, _ = self.run_by(dot(a, b, (1, 1), result=result, behind=behind), given)
            np.testing.assert_array_equal(made, (x @ w.T / 2).astype(made.dtype))


if __name__ == "__main__":
    unittest.main()
