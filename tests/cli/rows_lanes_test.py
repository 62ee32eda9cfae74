#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows on devices of lanes: those of a subgroup each share a group though the last group has
fewer, and what is read backwards or by every second element is written in vectors; all as
llvm's."""

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


def softmax(rows, columns, dtype):
    x, r = f"tensor<{rows}x{columns}x{dtype}>", f"tensor<{rows}x{dtype}>"
    return (
        f"func.func @main(%x: {x}) -> {x} {{\n"
        f"  %m = stablehlo.constant dense<-1.0e+04> : tensor<{dtype}>\n"
        f"  %z = stablehlo.constant dense<0.0> : tensor<{dtype}>\n"
        "  %0 = stablehlo.reduce(%x init: %m) applies stablehlo.maximum across dimensions = "
        f"[1] : ({x}, tensor<{dtype}>) -> {r}\n"
        f"  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : ({r}) -> {x}\n"
        f"  %2 = stablehlo.subtract %x, %1 : {x}\n"
        f"  %3 = stablehlo.exponential %2 : {x}\n"
        "  %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = "
        f"[1] : ({x}, tensor<{dtype}>) -> {r}\n"
        f"  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : ({r}) -> {x}\n"
        f"  %6 = stablehlo.divide %3, %5 : {x}\n  return %6 : {x}\n}}\n")


def fold(shape, op, dtype):
    x, r = ("tensor<" + "".join(f"{d}x" for d in s) + f"{dtype}>" for s in (shape, shape[:-1]))
    return (
        f"func.func @main(%x: {x}) -> {r} {{\n"
        f"  %z = stablehlo.constant dense<0> : tensor<{dtype}>\n"
        f"  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.{op} across dimensions = "
        f"[{len(shape) - 1}] : ({x}, tensor<{dtype}>) -> {r}\n  return %0 : {r}\n}}\n")


def square(rows, columns, dtype):
    """Sums of squares by which rows are divided."""
    x, r = f"tensor<{rows}x{columns}x{dtype}>", f"tensor<{rows}x{dtype}>"
    return (
        f"func.func @main(%x: {x}) -> {x} {{\n"
        f"  %z = stablehlo.constant dense<1.0> : tensor<{dtype}>\n"
        f"  %0 = stablehlo.multiply %x, %x : {x}\n"
        "  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = "
        f"[1] : ({x}, tensor<{dtype}>) -> {r}\n"
        f"  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : ({r}) -> {x}\n"
        f"  %3 = stablehlo.divide %x, %2 : {x}\n  return %3 : {x}\n}}\n")


def one_row(k, n, dtype):
    """[1, k] by a matrix whose columns lie side by side."""
    x, y = f"tensor<{k}x{n}x{dtype}>", f"tensor<1x{n}x{dtype}>"
    a = f"tensor<1x{k}x{dtype}>"
    return (f"func.func @main(%x: {x}) -> {y} {{\n"
            f"  %a = stablehlo.constant dense<0.5> : {a}\n"
            f"  %0 = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0] : ({a}, {x}) "
            f"-> {y}\n  return %0 : {y}\n}}\n")


def move(shape, dtype, step):
    """Backwards, or every |step|-th element of the last dim."""
    x = "tensor<" + "".join(f"{d}x" for d in shape) + f"{dtype}>"
    if step < 0:
        return (f"func.func @main(%x: {x}) -> {x} {{\n  %0 = stablehlo.reverse %x, dims = "
                f"[{len(shape) - 1}] : {x}\n  return %0 : {x}\n}}\n")
    few = (*shape[:-1], -(-shape[-1] // step))
    y = "tensor<" + "".join(f"{d}x" for d in few) + f"{dtype}>"
    ranges = ", ".join(f"0:{d}" for d in shape[:-1])
    return (f"func.func @main(%x: {x}) -> {y} {{\n  %0 = stablehlo.slice %x [{ranges}, "
            f"0:{shape[-1]}:{step}] : ({x}) -> {y}\n  return %0 : {y}\n}}\n")


class Rows(Case):
    def both(self, text, shape, dtype):
        """The schedule; the results are equal but for the order of float sums."""
        path, name = self.write("m.mlir", text), self.folder / "x.npy"
        draw = np.random.default_rng(len(text))
        value = draw.integers(-40, 41, size=shape)
        types = {"f32": np.float32, "f16": np.float16, "i32": np.int32}
        np.save(name, (value / 8 if dtype != "i32" else value).astype(types[dtype]))
        found = []
        for how in (HOPPER, ("--device", "llvm")):
            folder = self.folder / how[1]
            self.succeed("run", path, "--input", f"0={name}", "--no-cache", *how,
                         "--outputs", folder)
            found.append(np.load(folder / "output_0.npy"))
        if dtype == "i32":
            np.testing.assert_array_equal(*found)
        else:
            step = {"f32": 1e-6, "f16": 2e-3}[dtype]
            np.testing.assert_allclose(*found, rtol=step, atol=step / 8)
        return self.succeed("dump", path, "--stage", "schedule", *HOPPER)

    def test_uneven(self):
        for rows, columns, dtype, lanes in (
                (71, 234, "f32", 4), (9, 250, "f16", 4), (3, 130, "f32", 2),
                (1, 130, "f32", 1), (13, 40, "f32", 4), (14, 40, "f32", 2)):  # fmt: skip
            with self.subTest(rows=rows, columns=columns, dtype=dtype):
                said = self.both(softmax(rows, columns, dtype), (rows, columns), dtype)
                self.assertIn(f"split y.a {lanes}\n", said)
                self.assertEqual("bind y.ai lane.y" in said, lanes > 1, said)

    def test_squares(self):
        """What is multiplied by itself lies along one axis: lanes share a row of it."""
        said = self.both(square(39, 73, "f32"), (39, 73), "f32")
        self.assertIn("lane.x", said)

    def test_one_row(self):
        """Lanes have columns side by side, and the subgroups of a group parts of k."""
        said = self.both(one_row(600, 272, "f32"), (600, 272), "f32")
        self.assertIn("bind y.bi lane.x", said)
        self.assertIn("bind c.ki lane.y", said)

    def test_parts(self):
        """Few tiles of a long k of f32 are parts of it."""
        for m, k, n, dtype, parts in ((64, 5608, 351, "f32", 8), (64, 300, 351, "f32", 1),
                                      (64, 5608, 351, "f16", 1)):  # fmt: skip
            a, b, c = (f"tensor<{x}x{y}x{dtype}>" for x, y in ((m, k), (k, n), (m, n)))
            with self.subTest(m=m, k=k, dtype=dtype):
                path = self.write("m.mlir", (
                    f"func.func @main(%a: {a}, %b: {b}) -> {c} {{\n"
                    f"  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({a}, "
                    f"{b}) -> {c}\n  return %0 : {c}\n}}\n"))
                said = self.succeed("dump", path, "--stage", "schedule", "--target", "cuda:sm_90a")
                self.assertIn(f"k:{k // parts}] : f32", said)

    def test_halves(self):
        """Many rows whose last turn half a subgroup has have half a subgroup each."""
        said = self.succeed("dump", self.write("m.mlir", softmax(36576, 184, "f32")), "--stage",
                            "schedule", "--target", "cuda:sm_90a")
        self.assertIn("split y.a 8\n", said)

    def test_meets_alone(self):
        """Where lanes of a subgroup meet by barriers of the group, no group has fewer rows."""
        for target, dtype, shares in (("cuda:sm_90a", "f32", True), ("cuda:sm_90a", "i64", False),
                                      ("cuda:sm_90a", "ui64", False), ("opencl", "f32", False),
                                      ("metal", "f32", False)):  # fmt: skip
            with self.subTest(target=target, dtype=dtype):
                path = self.write("m.mlir", fold((71, 35), "add", dtype))
                said = self.succeed("dump", path, "--stage", "schedule", "--target", target)
                self.assertEqual("lane.y" in said, shares, said)

    def softmax(self, shape, dtype, scaled):
        """Of all axes but the first, its schedule: what both targets say agrees."""
        x = "tensor<" + "".join(f"{d}x" for d in shape) + f"{dtype}>"
        s = f"tensor<{shape[1]}x{dtype}>"
        axes = ", ".join(map(str, range(1, len(shape))))
        scale = (f"  %b = \"stablehlo.broadcast_in_dim\"(%s) <{{broadcast_dimensions = array<i64: "
                 f"1>}}> : ({s}) -> {x}\n  %1 = stablehlo.multiply %x, %b : {x}\n")
        path = self.write("m.mlir", (
            f"func.func @main(%x: {x}, %s: {s}) -> {x} {{\n{scale if scaled else ''}"
            f"  %0 = \"pestle.softmax\"(%{1 if scaled else 'x'}) <{{dimensions "
            f"= array<i64: {axes}>}}> : ({x}) -> {x}\n  return %0 : {x}\n}}\n"))
        found = []
        for how in (HOPPER, ("--device", "llvm")):
            folder = self.folder / how[1]
            self.succeed("run", path, "--input", "0=random:1", "--input", "1=random:2",
                         "--no-cache", *how, "--outputs", folder)
            found.append(np.load(folder / "output_0.npy"))
        if dtype == "f8E4M3FN":
            np.testing.assert_array_equal(*found)
        else:
            np.testing.assert_allclose(*found, rtol={"f32": 1e-6, "f16": 2e-3}[dtype])
        return self.succeed("dump", path, "--stage", "schedule", *HOPPER)

    def test_kept(self):
        """Rows of several axes stay in shared memory, one of each row of a group."""
        for shape, dtype, rows in (((12, 3, 16, 19), "f8E4M3FN", 2), ((64, 8, 16, 8), "f32", 4),
                                   ((64, 16, 40), "f16", 4)):  # fmt: skip
            with self.subTest(shape=shape, dtype=dtype):
                said = self.softmax(shape, dtype, True)
                self.assertIn(f"split y.a {rows}\n", said)
                self.assertNotIn("store exponential lanes", said)

    def test_kept_of_all(self):
        """What rows of a group keep leaves room for four groups, whatever their axes."""
        said = self.softmax((64, 96, 128), "f32", True)
        self.assertNotIn("split y.a", said)

    def test_joined(self):
        """Axes that lie behind each other are one: all lanes have some of it."""
        for shape, dtype in (((64, 16, 40), "f16"), ((3, 100, 128), "f32"), ((1, 9, 64, 3), "f32")):
            with self.subTest(shape=shape, dtype=dtype):
                said = self.softmax(shape, dtype, False)
                self.assertIn("fuse y.", said)
                self.assertIn("store exponential lanes", said)

    def test_folds(self):
        for shape, op, dtype in (((5, 13, 50), "add", "i32"), ((5, 13, 128), "add", "f32"),
                                 ((7, 11, 100), "maximum", "i32"), ((63, 49), "add", "i32"),
                                 ((1, 77), "add", "i32")):
            with self.subTest(shape=shape, op=op, dtype=dtype):
                self.both(fold(shape, op, dtype), shape, dtype)

    def test_moves(self):
        for shape, dtype, step in (((32, 24, 216), "f32", -1), ((40, 30, 150), "f16", -1),
                                   ((64, 31, 217), "f32", -1), ((32, 24, 216), "i32", 2),
                                   ((64, 24, 215), "f32", 2)):
            with self.subTest(shape=shape, dtype=dtype, step=step):
                said = self.both(move(shape, dtype, step), shape, dtype)
                self.assertIn("vectorise", said)
        # Lanes would read a line each.
        shape = (32, 24, 216)
        self.assertNotIn("vectorise", self.both(move(shape, "f32", 3), shape, "f32"))


if __name__ == "__main__":
    unittest.main()
