#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transposes by tiles that are transposed in registers: right where results stay in caches,
where lines are asked for and where they go past the caches, with tiles that are a
part of a line (other types, shorter vectors) and parts of tiles at the edges."""

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

CASES = [
    # shape, permutation, type, whether something is added
    ((48, 80), (1, 0), "f32", False),
    ((50, 77), (1, 0), "f32", True),
    ((640, 400), (1, 0), "f32", False),
    ((609, 431), (1, 0), "f32", False),
    ((1040, 1153), (1, 0), "f32", False),
    ((2000, 1072), (1, 0), "f32", False),
    ((1040, 1538), (1, 0), "f32", True),
    ((976, 64, 8, 8), (2, 1, 3, 0), "f32", True),
    ((16, 15000, 1, 5), (2, 3, 1, 0), "f32", False),
    ((64, 62500), (1, 0), "i16", False),
    ((5, 256, 3125), (0, 2, 1), "i16", True),
    ((4096, 2100), (1, 0), "i8", False),
    ((64, 40000), (1, 0), "i8", True),
]
TYPES = {"f32": np.float32, "i16": np.int16, "i8": np.int8}


def has_avx2():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            return " avx2 " in info.read()
    except OSError:
        return False


def text_of(shape, order, dtype, added):
    def tensor(dims):
        return f"tensor<{'x'.join(map(str, dims))}x{dtype}>"

    to = tensor(shape[d] for d in order)
    add, result = "", "%r"
    if added:
        add, result = f"  %s = stablehlo.add %r, %b : {to}\n", "%s"
    return f"""\
func.func @main(%a: {tensor(shape)}, %b: {to}) -> {to} {{
  %r = stablehlo.transpose %a, dims = {list(order)} : ({tensor(shape)}) -> {to}
{add}  return {result} : {to}
}}
"""


@unittest.skipUnless(has_compiler(), "no compiler")
class Turn(Case):
    def check(self, case, threads, *options):
        shape, order, dtype, added = case
        random = np.random.default_rng(7)
        a = random.integers(-100, 100, shape).astype(TYPES[dtype])
        b = random.integers(-20, 20, [shape[d] for d in order])
        b = b.astype(TYPES[dtype])
        np.save(self.folder / "a.npy", a)
        np.save(self.folder / "b.npy", b)
        self.write("transpose.mlir", text_of(*case))
        self.succeed("run", "transpose.mlir", "--input", "a=a.npy", "--input",
                     "b=b.npy", "--outputs", "out", "--no-cache",
                     "--threads", threads, *options)
        got = np.load(self.folder / "out" / "output_0.npy")
        want = a.transpose(order) + (b if added else np.zeros_like(b))
        self.assertTrue(np.array_equal(got, want), f"{case}, {threads} threads")

    def test_host(self):
        for case in CASES:
            for threads in "1", "3":
                self.check(case, threads)

    @unittest.skipUnless(has_avx2(), "no CPU with AVX2")
    def test_shorter_vectors(self):
        for case in CASES:
            self.check(case, "2", "--target-cpu", "x86-64-v3")


if __name__ == "__main__":
    unittest.main()
