#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of bytes by matrix units of subgroups and of warpgroups
(codegen/template/shared_tile, tensorise), as ref runs them for descriptions of GPUs: bit for
bit the sums of numpy's whole numbers, and without a fault of the tiles' rules, since one ends
the run."""

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

GPU = ("--device", "ref", "--target-cpu", "simt")
HOPPER = ("--device", "ref", "--target-cpu", "simt90")
TYPES = {"i8": np.int8, "ui8": np.uint8}


def tensor(shape, dtype):
    return "tensor<" + "".join(f"{d}x" for d in shape) + f"{dtype}>"


def wide(name, given, dtype, shape, zero):
    """%name: the i32 of %given less its zero point, two numbers of bytes apart."""
    w = tensor(shape, "i32")
    text = f"  %{name}_w = stablehlo.convert {given} : ({tensor(shape, dtype)}) -> {w}\n"
    if not zero:
        return text, f"%{name}_w"
    return (text + f"  %{name}_z = stablehlo.constant dense<{zero}> : {w}\n"
            f"  %{name} = stablehlo.subtract %{name}_w, %{name}_z : {w}\n"), f"%{name}"  # fmt: skip


def dot(a, b, at, types=("i8", "i8"), zeros=(0, 0)):
    """A product of two matrices, contracted at |at|."""
    y = (a[1 - at[0]], b[1 - at[1]])
    first, x = wide("x", "%a", types[0], a, zeros[0])
    second, w = wide("w", "%b", types[1], b, zeros[1])
    return (f"func.func @main(%a: {tensor(a, types[0])}, %b: {tensor(b, types[1])}) -> "
            f"{tensor(y, 'i32')} {{\n{first}{second}  %y = stablehlo.dot_general {x}, {w}, "
            f"contracting_dims = [{at[0]}] x [{at[1]}] : ({tensor(a, 'i32')}, "
            f"{tensor(b, 'i32')}) -> {tensor(y, 'i32')}\n  return %y : {tensor(y, 'i32')}\n}}\n")


# Text, shapes, dtypes, zero points, what is contracted.
DOTS = [
    ((64, 96), (96, 80), (1, 0), ("i8", "i8"), (0, 0)),
    ((64, 96), (80, 96), (1, 1), ("ui8", "i8"), (0, 0)),
    ((96, 50), (96, 70), (0, 0), ("i8", "ui8"), (0, 0)),
    ((50, 100), (100, 67), (1, 0), ("ui8", "ui8"), (0, 0)),
    ((64, 96), (96, 80), (1, 0), ("ui8", "i8"), (128, 0)),
    ((64, 96), (96, 80), (1, 0), ("i8", "ui8"), (-3, 129)),
]


# By warpgroups: edges, two groups that share k, and two that bring each other columns.
WIDE = [
    ((192, 128), (128, 128), ("i8", "i8"), ""),
    ((200, 112), (72, 112), ("ui8", "i8"), ""),
    ((130, 80), (264, 80), ("i8", "ui8"), ""),
    ((64, 4096), (64, 4096), ("i8", "i8"), "a part of k each"),
    ((512, 2048), (256, 2048), ("ui8", "ui8"), "bring each other the columns"),
]


class Bytes(Case):
    def numbers(self, shapes, types):
        draw = np.random.default_rng(sum(sum(s) for s in shapes))
        return [draw.integers(np.iinfo(TYPES[t]).min, np.iinfo(TYPES[t]).max + 1, size=s,
                              dtype=np.int32).astype(TYPES[t])
                for s, t in zip(shapes, types)]  # fmt: skip

    def run_by(self, text, values, how, constant=False, by="by matrix units of a subgroup"):
        path, given = self.write("m.mlir", text), []
        for i, value in enumerate(values):
            name = self.folder / f"i{i}.npy"
            np.save(name, value)
            fixed = constant and i == 1
            given += ["--const" if fixed else "--input", f"{'b' if fixed else i}={name}"]
        said = self.succeed("explain", path, *given[-2 if constant else 4:], *how)
        self.assertIn(by, said)
        self.succeed("run", path, *given, "--no-cache", *how, "--outputs", self.folder / "out")
        return np.load(self.folder / "out" / "output_0.npy"), said

    def test_dots(self):
        for shapes_a, shapes_b, at, types, zeros in DOTS:
            with self.subTest(a=shapes_a, b=shapes_b, types=types, zeros=zeros):
                a, b = values = self.numbers((shapes_a, shapes_b), types)
                text = dot(shapes_a, shapes_b, at, types, zeros)
                wanted = np.tensordot(a.astype(np.int64) - zeros[0],
                                      b.astype(np.int64) - zeros[1], axes=at)  # fmt: skip
                for constant in (False, True):
                    made, _ = self.run_by(text, values, GPU, constant)
                    np.testing.assert_array_equal(made, wanted)

    def test_parts(self):
        """Groups of a cluster have parts of k."""
        a, b = values = self.numbers(((24, 4096), (40, 4096)), ("i8", "i8"))
        made, said = self.run_by(dot(a.shape, b.shape, (1, 1)), values, HOPPER)
        self.assertIn("groups share k", said)
        np.testing.assert_array_equal(made, a.astype(np.int64) @ b.T.astype(np.int64))

    def test_warpgroups(self):
        for a, b, types, word in WIDE:
            with self.subTest(a=a, b=b, types=types):
                x, w = values = self.numbers((a, b), types)
                made, said = self.run_by(dot(a, b, (1, 1), types), values, HOPPER,
                                         by="matrix units multiply tiles")
                self.assertIn(word, said)
                np.testing.assert_array_equal(made, x.astype(np.int64) @ w.T.astype(np.int64))

    def test_turned(self):
        """The second operand lies in rows, k and columns are odd: copies in front."""
        units = "matrix units multiply tiles"
        for a, b, at, by in [((72, 512), (512, 520), (1, 0), units),
                             ((512, 96), (512, 1024), (0, 0), units),
                             ((64, 1111), (777, 1111), (1, 1), units),
                             ((70, 1111), (1111, 267), (1, 0), units),
                             ((70, 1111), (1111, 67), (1, 0), "shared_tile"),
                             ((8, 1025), (1030, 1025), (1, 1), "pad")]:  # fmt: skip
            x, w = values = self.numbers((a, b), ("i8", "ui8"))
            wanted = np.tensordot(x.astype(np.int64), w.astype(np.int64), axes=at)
            for constant in (False, True):
                with self.subTest(a=a, b=b, constant=constant):
                    made, _ = self.run_by(dot(a, b, at, ("i8", "ui8")), values, HOPPER, constant,
                                          by=by)
                    np.testing.assert_array_equal(made, wanted)

    def test_scales_of_warpgroups(self):
        """Results of f32 are copied out of shared memory."""
        a, b = values = self.numbers(((130, 96), (200, 96)), ("ui8", "i8"))
        text = dot(a.shape, b.shape, (1, 1), ("ui8", "i8"), (7, 0))
        y, z = tensor((130, 200), "i32"), tensor((130, 200), "f32")
        text = text.replace(f"-> {y} {{", f"-> {z} {{").replace(
            f"  return %y : {y}",
            f"  %f = stablehlo.convert %y : ({y}) -> {z}\n"
            f"  %s = stablehlo.constant dense<0.125> : {z}\n"
            f"  %m = stablehlo.multiply %f, %s : {z}\n  return %m : {z}")
        made, _ = self.run_by(text, values, HOPPER, by="matrix units multiply tiles")
        wanted = (a.astype(np.int64) - 7) @ b.T.astype(np.int64) / 8
        np.testing.assert_array_equal(made, wanted)

    def test_convolution(self):
        """Padded by the zero point."""
        x, w = values = self.numbers(((2, 9, 8, 32), (3, 3, 32, 24)), ("ui8", "i8"))
        shape = (2, 9, 8, 24)
        first, a = wide("x", "%a", "ui8", x.shape, 7)
        second, b = wide("w", "%b", "i8", w.shape, 0)
        text = (f"func.func @main(%a: {tensor(x.shape, 'ui8')}, %b: {tensor(w.shape, 'i8')}) -> "
                f"{tensor(shape, 'i32')} {{\n{first}{second}  %y = stablehlo.convolution({a}, {b}) "
                "dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], "
                "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : "
                f"i64}} : ({tensor(x.shape, 'i32')}, {tensor(w.shape, 'i32')}) -> "
                f"{tensor(shape, 'i32')}\n  return %y : {tensor(shape, 'i32')}\n}}\n")  # fmt: skip
        padded = np.pad(x.astype(np.int64) - 7, ((0, 0), (1, 1), (1, 1), (0, 0)))
        wanted = sum(padded[:, r:r + 9, s:s + 8] @ w[r, s].astype(np.int64)
                     for r in range(3) for s in range(3))  # fmt: skip
        made, _ = self.run_by(text, values, GPU)
        np.testing.assert_array_equal(made, wanted)


if __name__ == "__main__":
    unittest.main()
