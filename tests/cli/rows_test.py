#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of many rows beside columns, which fall to cores in runs: right
where the last run is shorter, by whole tiles and by parts of one, and where the
result is written over an operand, which a tile made twice would spoil."""

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

SIZES = [(m, 80) for m in (152, 200, 260, 275, 291, 300, 375, 401, 511, 777)]
SIZES += [(98, 250), (131, 300), (196, 256)]


def text_of(m, n):
    y = f"tensor<{m}x{n}xf32>"
    square = f"tensor<{n}x{n}xf32>"
    dot = "contracting_dims = [1] x [0]"
    return f"""\
func.func @main(%a: tensor<{m}x16xf32>, %b: tensor<16x{n}xf32>, %q: {y}, %p: {square}) -> ({y}, {y}) {{
  %r = stablehlo.dot_general %q, %p, {dot} : ({y}, {square}) -> {y}
  %y = stablehlo.dot_general %a, %b, {dot} : (tensor<{m}x16xf32>, tensor<16x{n}xf32>) -> {y}
  %e = stablehlo.add %y, %r : {y}
  %g = stablehlo.dot_general %e, %p, {dot} : ({y}, {square}) -> {y}
  %h = stablehlo.add %g, %e : {y}
  return %h, %g : {y}, {y}
}}
"""


@unittest.skipUnless(has_compiler(), "no backend llvm")
class Rows(Case):
    def test_every_row_once(self):
        random = np.random.default_rng(5)
        for m, n in SIZES:
            shapes = {"a": (m, 16), "b": (16, n), "q": (m, n), "p": (n, n)}
            given, options = {}, []
            for name, shape in shapes.items():
                given[name] = random.standard_normal(shape).astype(np.float32)
                np.save(self.folder / f"{name}.npy", given[name])
                options += ["--input", f"{name}={name}.npy"]
            e = given["a"] @ given["b"] + given["q"] @ given["p"]
            g = e @ given["p"]
            self.write("rows.mlir", text_of(m, n))
            for threads in "1", "2", "3":
                self.succeed(
                    "run",
                    "rows.mlir",
                    "--no-cache",
                    "--threads",
                    threads,
                    "--outputs",
                    "out",
                    *options,
                )
                for i, want in enumerate([g + e, g]):
                    path = self.folder / "out" / f"output_{i}.npy"
                    got = np.load(path)
                    worst = np.abs(got - want).max() / np.abs(want).max()
                    self.assertLess(worst, 1e-5, f"{m} x {n}, {threads} threads")


if __name__ == "__main__":
    unittest.main()
