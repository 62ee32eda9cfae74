#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scatter by lists (codegen/direct/direct_scatter_lists.c), as ref runs it for
descriptions of GPUs: to the bit what updates in their order give, with many of one
place, indices outside, and windows."""

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

# The later an update, the more of it is left: sums in another order differ.
REGION = """    %h = stablehlo.constant dense<0.5> : tensor<{t}>
    %m = stablehlo.multiply %a, %h : tensor<{t}>
    %s = stablehlo.add %m, %b : tensor<{t}>
"""
ROWS = dict(window=[1], inserted=[0], to=[0], vector=1)
# Input, indices, updates, and what their dims are.
CASES = {
    "rows": ((40, 6), (300, 1), (300, 6), ROWS),
    "one place": ((40, 6), (2500, 1), (2500, 6), ROWS),
    "many places": ((9000, 6), (300, 1), (300, 6), ROWS),
    "wide": ((50, 700), (200, 1), (200, 700), ROWS),
    "few places": ((3, 1500), (100, 1), (100, 1500), ROWS),
    "elements": ((1000,), (700, 1), (700,), dict(window=[], inserted=[0], to=[0], vector=1)),
    "points": ((20, 30), (900, 2), (900,), dict(window=[], inserted=[0, 1], to=[0, 1], vector=1)),
    "columns": ((6, 40), (300, 1), (6, 300), dict(window=[0], inserted=[1], to=[1], vector=1)),
    "middle": ((4, 40, 6), (300, 1), (4, 300, 6),
               dict(window=[0, 2], inserted=[1], to=[1], vector=1)),
    "two axes of updates": ((40, 6), (15, 20, 1), (15, 20, 6),
                            dict(window=[2], inserted=[0], to=[0], vector=2)),
    "batches": ((5, 40, 6), (5, 200, 1), (5, 200, 6),
                dict(window=[2], inserted=[1], to=[1], vector=2, batch=[0])),
    "moved windows": ((30, 20), (400, 2), (400, 3),
                      dict(window=[1], inserted=[1], to=[0, 1], vector=1)),
}  # fmt: skip


def type_of(shape, dtype):
    return "tensor<" + "".join(f"{d}x" for d in shape) + f"{dtype}>"


def module(shapes, how, dtype):
    x, i, u = (type_of(s, d) for s, d in zip(shapes, (dtype, "i32", dtype)))
    batch = how.get("batch", [])
    dims = (f"update_window_dims = {how['window']}, inserted_window_dims = {how['inserted']}, "
            f"input_batching_dims = {batch}, scatter_indices_batching_dims = {batch}, "
            f"scatter_dims_to_operand_dims = {how['to']}, index_vector_dim = {how['vector']}")
    return (f"func.func @main(%x: {x}, %i: {i}, %u: {u}) -> {x} {{\n"
            f'  %0 = "stablehlo.scatter"(%x, %i, %u) ({{\n'
            f"  ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):\n{REGION.format(t=dtype)}"
            f"    stablehlo.return %s : tensor<{dtype}>\n"
            f"  }}) {{scatter_dimension_numbers = #stablehlo.scatter<{dims}>}} : "
            f"({x}, {i}, {u}) -> {x}\n  return %0 : {x}\n}}\n")  # fmt: skip


def in_order(x, i, u, how):
    """What the specification says, an update element after the other."""
    x, window, batch = x.copy(), how["window"], how.get("batch", [])
    rows = [d for d in range(u.ndim) if d not in window]
    kept = [d for d in range(x.ndim) if d not in how["inserted"] and d not in batch]
    sizes = [1] * x.ndim
    for d, of in zip(window, kept):
        sizes[of] = u.shape[d]
    for at in np.ndindex(*(u.shape[d] for d in rows)):
        start = [0] * x.ndim
        for component, of in zip(i[at], how["to"]):
            start[of] = int(component)
        for n, of in enumerate(batch):
            start[of] = at[n]
        if any(s < 0 or s + size > dim for s, size, dim in zip(start, sizes, x.shape)):
            continue
        for w in np.ndindex(*(u.shape[d] for d in window)):
            to, source = list(start), [0] * u.ndim
            for n, d in enumerate(window):
                to[kept[n]] += w[n]
                source[d] = w[n]
            for n, d in enumerate(rows):
                source[d] = at[n]
            to = tuple(to)
            x[to] = x[to] * x.dtype.type(0.5) + u[tuple(source)]
    return x


class Scatter(Case):
    def check(self, name, cpu, dtype):
        *shapes, how = CASES[name]
        draw = np.random.default_rng(1)
        numpy_type = {"f32": np.float32, "f16": np.float16}[dtype]
        x, u = (draw.integers(-8, 9, s).astype(numpy_type) for s in (shapes[0], shapes[2]))
        places = max(shapes[0][d] for d in how["to"])
        i = draw.integers(-2, places + 2, shapes[1]).astype(np.int32)
        if name == "one place":
            i[...] = 7
        given = []
        for key, value in (("x", x), ("i", i), ("u", u)):
            np.save(self.folder / f"{key}.npy", value)
            given += ["--input", f"{key}={self.folder / key}.npy"]
        path = self.write("m.mlir", module(shapes, how, dtype))
        self.succeed("run", path, *given, "--no-cache", "--device", "ref", "--target-cpu", cpu,
                     "--outputs", self.folder)  # fmt: skip
        found = np.load(self.folder / "output_0.npy")
        np.testing.assert_array_equal(found, in_order(x, i, u, how))

    def test_order(self):
        for name in CASES:
            with self.subTest(name):
                self.check(name, "simt90", "f32")

    def test_without_ballots(self):
        """Subgroups of 8."""
        for name in CASES:
            with self.subTest(name):
                self.check(name, "simt8", "f32")

    def test_half(self):
        self.check("rows", "simt90", "f16")
        self.check("middle", "simt", "f16")

    def test_lists_are_made(self):
        """Of many updates, and not of few."""
        for count, made in ((300, True), (20, False)):
            text = module(((40, 6), (count, 1), (count, 6)), ROWS, "f32")
            said = self.succeed("dump", self.write("m.mlir", text), "--stage", "kernels",
                                "--device", "ref", "--target-cpu", "simt90")  # fmt: skip
            self.assertEqual("barrier" in said, made)


if __name__ == "__main__":
    unittest.main()
