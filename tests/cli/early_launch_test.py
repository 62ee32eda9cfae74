#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CUDA's texts: which kernels let the next one begin before they end. Those of many groups that
each move little do not; all of them wait for the one in front."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import Case  # noqa: E402

HOPPER = ("--target", "cuda:sm_90a", "--stage", "source")


def rows(count, dtype="f32"):
    x = f"tensor<{count}x64x{dtype}>"
    return (f"func.func @main(%x: {x}) -> {x} {{\n  %0 = stablehlo.reverse %x, dims = [0] : {x}\n"
            f"  return %0 : {x}\n}}\n")


def product(m):
    x, y = f"tensor<{m}x8192xbf16>", "tensor<8192x8192xbf16>"
    return (f"func.func @main(%x: {x}, %y: {y}) -> {x} {{\n  %0 = stablehlo.dot_general %x, %y, "
            f"contracting_dims = [1] x [0] : ({x}, {y}) -> {x}\n  return %0 : {x}\n}}\n")


def picked(table, count):
    """Rows of 512 of a table."""
    x, i, y = f"tensor<{table}x512xf32>", f"tensor<{count}x1xi32>", f"tensor<{count}x512xf32>"
    return (f"func.func @main(%x: {x}, %i: {i}) -> {y} {{\n"
            "  %0 = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = #stablehlo.gather<"
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 1>, slice_sizes = array<i64: 1, 512>}> : "
            f"({x}, {i}) -> {y}\n  return %0 : {y}\n}}\n")


class Early(Case):
    def begins(self, text):
        """What each kernel gives its wait."""
        source = self.succeed("dump", self.write("m.mlir", text), *HOPPER)
        self.assertIn("griddepcontrol.wait", source)
        found = re.findall(r"pestle_seen = pestle_grid_wait\((\d)\);", source)
        self.assertEqual(len(found), source.count("__global__ void"))
        return found

    def test_few_groups(self):
        self.assertEqual(self.begins(rows(100)), ["1"])
        self.assertEqual(self.begins(rows(6000)), ["1"])

    def test_many_groups(self):
        """Of 2 KB each."""
        self.assertEqual(self.begins(rows(400000)), ["0"])
        self.assertEqual(self.begins(rows(400000, "f16")), ["0"])

    def test_much_that_is_not_read(self):
        """Of a table a kernel reads the rows that it picks."""
        self.assertEqual(self.begins(picked(200000, 100)), ["1"])
        self.assertEqual(self.begins(picked(200000, 40000)), ["0"])

    def test_groups_that_move_much(self):
        self.assertEqual(self.begins(product(16)), ["1"])
        self.assertEqual(self.begins(product(8192)), ["1"])


if __name__ == "__main__":
    unittest.main()
