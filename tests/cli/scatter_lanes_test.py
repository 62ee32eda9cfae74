#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scatter by lists (codegen/direct/direct_scatter_lists.c) and place by place
(direct_scatter_places.c), as ref runs it for descriptions of GPUs: to the bit what updates
in their order give, with many of one place, indices outside, and windows."""

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
# As many updates as places, of windows that fill half a subgroup.
PLACES = {
    "places": ((40, 20), (300, 1), (300, 20), ROWS),
    "one of the places": ((40, 20), (700, 1), (700, 20), ROWS),
    "lists after each other": ((60, 16), (9000, 1), (9000, 16), ROWS),
    "elements of a lane": ((700, 130), (900, 1), (900, 130), ROWS),
    "parts of a window": ((3, 700), (70, 1), (70, 700), ROWS),
    "around the places": ((4, 40, 6), (300, 1), (4, 300, 6),
                          dict(window=[0, 2], inserted=[1], to=[1], vector=1)),
    "batches of places": ((5, 40, 16), (5, 200, 1), (5, 200, 16),
                          dict(window=[2], inserted=[1], to=[1], vector=2, batch=[0])),
}  # fmt: skip


def type_of(shape, dtype):
    return "tensor<" + "".join(f"{d}x" for d in shape) + f"{dtype}>"


def module(shapes, how, dtype, index="i32"):
    x, i, u = (type_of(s, d) for s, d in zip(shapes, (dtype, index, dtype)))
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


# What two inputs become of two changes each, in their order.
TWO = """
func.func @main(%x: tensor<40x20xf32>, %n: tensor<40x20xi32>, %i: tensor<300x1xi32>,
                %u: tensor<300x20xf32>, %m: tensor<300x20xi32>)
    -> (tensor<40x20xf32>, tensor<40x20xi32>) {
  %0:2 = "stablehlo.scatter"(%x, %n, %i, %u, %m) ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    %h = stablehlo.constant dense<0.5> : tensor<f32>
    %o = stablehlo.multiply %a, %h : tensor<f32>
    %s = stablehlo.add %o, %c : tensor<f32>
    %t = stablehlo.subtract %d, %b : tensor<i32>
    stablehlo.return %s, %t : tensor<f32>, tensor<i32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} :
    (tensor<40x20xf32>, tensor<40x20xi32>, tensor<300x1xi32>, tensor<300x20xf32>,
     tensor<300x20xi32>) -> (tensor<40x20xf32>, tensor<40x20xi32>)
  return %0#0, %0#1 : tensor<40x20xf32>, tensor<40x20xi32>
}
"""


class Scatter(Case):
    def run_with(self, text, arrays, cpu):
        """The results of a module."""
        given = []
        for key, value in arrays.items():
            np.save(self.folder / f"{key}.npy", value)
            given += ["--input", f"{key}={self.folder / key}.npy"]
        self.succeed("run", self.write("m.mlir", text), *given, "--no-cache", "--device", "ref",
                     "--target-cpu", cpu, "--outputs", self.folder)  # fmt: skip

    def output(self, n=0):
        return np.load(self.folder / f"output_{n}.npy")

    def check(self, name, cpu, dtype, index=np.int32):
        *shapes, how = (CASES | PLACES)[name]
        draw = np.random.default_rng(1)
        numpy_type = {"f32": np.float32, "f16": np.float16}[dtype]
        x, u = (draw.integers(-8, 9, s).astype(numpy_type) for s in (shapes[0], shapes[2]))
        places = max(shapes[0][d] for d in how["to"])
        least = -2 if np.iinfo(index).min else 0
        i = draw.integers(least, places + 2, shapes[1]).astype(index)
        if name in ("one place", "one of the places"):
            i[...] = 7
        bits = np.iinfo(index).bits
        of_index = f"i{bits}" if least else f"ui{bits}"
        self.run_with(module(shapes, how, dtype, of_index), dict(x=x, i=i, u=u), cpu)
        np.testing.assert_array_equal(self.output(), in_order(x, i, u, how))

    def test_order(self):
        for name in CASES:
            with self.subTest(name):
                self.check(name, "simt90", "f32")

    def test_without_ballots(self):
        """Subgroups of 8."""
        for name in CASES:
            with self.subTest(name):
                self.check(name, "simt8", "f32")

    def test_places(self):
        for name in PLACES:
            with self.subTest(name):
                self.check(name, "simt90", "f32")
        self.check("lists after each other", "simt", "f32")
        self.check("elements of a lane", "simtw", "f16")
        self.check("places", "simt8", "f32")

    def test_types_of_indices(self):
        for index in (np.int64, np.uint8, np.int16):
            self.check("places", "simt90", "f16", index)
            self.check("rows", "simt90", "f32", index)

    def test_two_inputs(self):
        draw = np.random.default_rng(2)
        x, u = (draw.integers(-8, 9, s).astype(np.float32) for s in ((40, 20), (300, 20)))
        n, m = (draw.integers(-8, 9, s).astype(np.int32) for s in ((40, 20), (300, 20)))
        i = draw.integers(-2, 42, (300, 1)).astype(np.int32)
        self.run_with(TWO, dict(x=x, n=n, i=i, u=u, m=m), "simt90")
        for at, place in enumerate(i[:, 0]):
            if 0 <= place < 40:
                x[place] = x[place] * np.float32(0.5) + u[at]
                n[place] = m[at] - n[place]
        np.testing.assert_array_equal(self.output(0), x)
        np.testing.assert_array_equal(self.output(1), n)

    def test_in_place(self):
        """The operand dies: its memory is the result's."""
        how, draw = PLACES["places"][3], np.random.default_rng(3)
        x, u = (draw.integers(-8, 9, s).astype(np.float32) for s in ((40, 20), (300, 20)))
        i = draw.integers(-2, 42, (300, 1)).astype(np.int32)
        text = module(((40, 20), (300, 1), (300, 20)), how, "f32")
        whole = type_of((40, 20), "f32")
        text = text.replace("  %0 =", f"  %y = stablehlo.negate %x : {whole}\n  %0 =")
        self.run_with(text.replace("(%x, %i, %u) ({", "(%y, %i, %u) ({"), dict(x=x, i=i, u=u),
                      "simt90")  # fmt: skip
        np.testing.assert_array_equal(self.output(), in_order(-x, i, u, how))

    def test_no_copy(self):
        """Place by place elements come from the operand: a plan of one kernel."""
        for count, copies in ((300, 0), (66, 1)):
            text = module(((40 * 8, 20), (count, 1), (count, 20)), ROWS, "f32")
            said = self.succeed("dump", self.write("m.mlir", text), "--stage", "plan",
                                "--device", "ref", "--target-cpu", "simt90")  # fmt: skip
            self.assertEqual(said.count(" copy "), copies, said)

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
