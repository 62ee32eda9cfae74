#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention by warpgroups, as ref runs it for a description of Hopper: the numbers of
plain ref in every layout, at every edge and under every mask, and no fault of the
tiles' rules, since one ends the run. Whatever it does not take keeps its old kernel."""

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
FORM = "flash_attention_wgmma: one pass"
TEAMS = "shared by subgroups of the same rows"
GROUPS = "shared by subgroups of a cluster's groups"

# b, h, s, t, d, e; what hides scores; the order of axes in memory
CASES = [
    ((1, 2, 128, 256, 128, 128), "bf16", None, "bhsd"),
    ((2, 2, 100, 130, 72, 40), "f16", None, "bhsd"),  # tails of all axes
    ((1, 1, 200, 300, 64, 64), "bf16", "causal", "bhsd"),  # keys no row sees
    ((1, 2, 130, 200, 32, 32), "f16", "lower", "bshd"),  # aligned to the last
    ((1, 1, 260, 100, 64, 64), "f16", "upper", "bhsd"),  # rows that see no key
    ((1, 1, 200, 200, 64, 64), "bf16", "window", "bhsd"),
    ((1, 3, 312, 312, 64, 64), "f16", "causal", "bhsd"),  # nine tiles of four groups, there and back
    ((2, 1, 520, 300, 32, 32), "bf16", "window", "bshd"),  # ten, some of rows that see no key
    ((1, 2, 100, 128, 32, 32), "bf16", "given", "bshd"),
    ((2, 2, 128, 192, 96, 96), "f16", "bias", "bhsd"),
    ((1, 1, 130, 140, 200, 256), "f16", "causal given", "bhsd"),
    ((3, 1, 64, 65, 64, 64), "f16", None, "bhsd"),  # one warpgroup; odd keys
    ((1, 2, 64, 128, 64, 64), "bf16", "kept", "bhtd"),  # keys and values turned
    ((2, 3, 20, 144, 256, 256), "f16", None, "bhsd"),  # few rows, wider than other units take
    ((2, 3, 1, 144, 256, 256), "f16", None, "bhsd"),  # one row: units of subgroups
    ((1, 2, 3, 46, 192, 136), "bf16", "lower", "bshd"),
    ((1, 2, 16, 30, 136, 80), "bf16", "causal", "bshd"),
    ((2, 1, 7, 500, 40, 72), "f16", "given", "bhsd"),  # tails of all, columns of six groups
    ((1, 1, 1, 832, 64, 64), "f16", None, "bhsd"),  # four groups of a cluster
    ((1, 1, 16, 700, 64, 136), "bf16", "causal", "bhsd"),  # of which three see no key
    ((1, 1, 9, 300, 256, 24), "f16", "lower", "bshd"),
    ((2, 1, 12, 500, 32, 64), "bf16", "window", "bhsd"),
]


F32_CASES = [
    ((1, 2, 128, 128, 64, 64), None, "bhsd"),
    ((1, 2, 100, 130, 64, 64), "causal", "bshd"),
    ((2, 1, 33, 70, 40, 24), "bias", "bhsd"),
    ((1, 2, 64, 64, 32, 16), "given", "bhtd"),
    ((1, 1, 260, 100, 16, 16), "upper", "bhsd"),  # rows that see no key
    ((1, 1, 20, 17, 33, 5), "window", "bhsd"),  # nothing is even
    ((1, 3, 1, 300, 64, 64), None, "bhsd"),
]


class Text:
    def __init__(self):
        self.lines, self.inputs = [], []

    def op(self, what, form, result):
        self.lines.append(f"  %{len(self.lines)} = stablehlo.{what} {form} : {result}")
        return f"%{len(self.lines) - 1}"


def tensor(dims, dtype):
    return "tensor<" + "".join(f"{n}x" for n in dims) + dtype + ">"


def hide(t, x, dims, hidden, dtype):
    """|x|, scores, with what hides some of them."""
    b, h, s, k, _, _ = dims
    st, sc = tensor((s, k), "i32"), tensor((b, h, s, k), "f32")
    tests = []

    def iota(dim, plus=0):
        i = t.op("iota", f"dim = {dim}", st)
        if not plus:
            return i
        c = t.op("constant", f"dense<{plus}>", st)
        return t.op("add", f"{i}, {c}", st)

    def compare(how, a, b):
        return t.op("compare", f"{how}, {a}, {b}, SIGNED", f"({st}, {st}) -> {tensor((s, k), 'i1')}")

    def spread(m, axes, of):
        return t.op("broadcast_in_dim", f"{m}, dims = {axes}",
                    f"({tensor(of, 'i1')}) -> {tensor((b, h, s, k), 'i1')}")  # fmt: skip

    for one in hidden.split():
        if one in ("causal", "window"):
            tests.append(spread(compare("GE", iota(0), iota(1)), [2, 3], (s, k)))
        if one == "window":
            tests.append(spread(compare("LT", iota(0), iota(1, 50)), [2, 3], (s, k)))
        if one == "lower":
            tests.append(spread(compare("GT", iota(0, k - s + 1), iota(1)), [2, 3], (s, k)))
        if one == "upper":
            tests.append(spread(compare("GE", iota(1), iota(0)), [2, 3], (s, k)))
        if one == "given":
            t.inputs.append(("mask", (b, s, k), "i1"))
            tests.append(spread("%mask", [0, 2, 3], (b, s, k)))
        if one == "bias":
            t.inputs.append(("bias", (h, s, k), dtype))
            wide = t.op("convert", "%bias", f"({tensor((h, s, k), dtype)}) -> {tensor((h, s, k), 'f32')}")
            wide = t.op("broadcast_in_dim", f"{wide}, dims = [1, 2, 3]",
                        f"({tensor((h, s, k), 'f32')}) -> {sc}")  # fmt: skip
            x = t.op("add", f"{x}, {wide}", sc)
    while len(tests) > 1:
        tests.append(t.op("and", f"{tests.pop()}, {tests.pop()}", tensor((b, h, s, k), "i1")))
    if not tests:
        return x
    low = t.op("constant", "dense<0xFF800000>", sc)
    return t.op("select", f"{tests[0]}, {x}, {low}", f"{tensor((b, h, s, k), 'i1')}, {sc}")


def text_of(dims, dtype, hidden, order):
    b, h, s, k, d, e = dims
    t = Text()
    names = {"q": (b, h, s, d), "k": (b, h, k, d), "v": (b, h, k, e)}
    wide = {}
    for name, shape in names.items():
        turned = {"bhsd": (0, 1, 2, 3), "bshd": (0, 2, 1, 3),
                  "bhtd": (0, 1, 2, 3) if name == "q" else (0, 1, 3, 2)}[order]  # fmt: skip
        lies = tuple(shape[i] for i in turned)
        t.inputs.append((name, lies, dtype))
        x = f"%{name}"
        if turned != (0, 1, 2, 3):
            x = t.op("transpose", f"{x}, dims = {list(turned)}",
                     f"({tensor(lies, dtype)}) -> {tensor(shape, dtype)}")  # fmt: skip
        wide[name] = t.op("convert", x, f"({tensor(shape, dtype)}) -> {tensor(shape, 'f32')}")
    sc, row = tensor((b, h, s, k), "f32"), tensor((b, h, s), "f32")
    types = {name: tensor(shape, "f32") for name, shape in names.items()}
    x = t.op("dot_general", f"{wide['q']}, {wide['k']}, batching_dims = [0, 1] x [0, 1], "
             "contracting_dims = [3] x [3]", f"({types['q']}, {types['k']}) -> {sc}")  # fmt: skip
    scale = t.op("constant", f"dense<{d ** -0.5}>", sc)
    x = hide(t, t.op("multiply", f"{x}, {scale}", sc), dims, hidden or "", dtype)
    low = t.op("constant", "dense<0xFF800000>", "tensor<f32>")
    zero = t.op("constant", "dense<0.0>", "tensor<f32>")

    def fold(what, of, start):
        y = t.op("reduce", f"({of} init: {start}) applies stablehlo.{what} across dimensions = [3]",
                 f"({sc}, tensor<f32>) -> {row}")  # fmt: skip
        return t.op("broadcast_in_dim", f"{y}, dims = [0, 1, 2]", f"({row}) -> {sc}")

    x = t.op("exponential", t.op("subtract", f"{x}, {fold('maximum', x, low)}", sc), sc)
    x = t.op("divide", f"{x}, {fold('add', x, zero)}", sc)
    y = tensor((b, h, s, e), "f32")
    out = t.op("dot_general", f"{x}, {wide['v']}, batching_dims = [0, 1] x [0, 1], "
               "contracting_dims = [3] x [2]", f"({sc}, {types['v']}) -> {y}")  # fmt: skip
    last = tensor((b, h, s, e), dtype)
    out = t.op("convert", out, f"({y}) -> {last}")
    given = ", ".join(f"%{n}: {tensor(shape, ty)}" for n, shape, ty in t.inputs)
    return (len(t.inputs), f"func.func @main({given}) -> {last} {{\n" + "\n".join(t.lines) +
            f"\n  return {out} : {last}\n}}\n")  # fmt: skip


class AttentionWarpgroups(Case):
    def outputs(self, path, count, how, folder):
        given = [x for i in range(count) for x in ("--input", f"{i}=random:{3 + i}")]
        self.succeed("run", path, *given, "--no-cache", *how, "--outputs", self.folder / folder)
        x = np.load(self.folder / folder / "output_0.npy")
        if x.dtype == np.uint16:
            x = (x.astype(np.uint32) << 16).view(np.float32)
        return x.astype(np.float64)

    def test_numbers(self):
        for dims, dtype, hidden, order in CASES:
            with self.subTest(dims=dims, dtype=dtype, hidden=hidden, order=order):
                count, text = text_of(dims, dtype, hidden, order)
                path = self.write("a.mlir", text)
                form = FORM
                if dims[2] <= 16:  # groups share what is more than one block, four run at once
                    form = GROUPS if dims[0] * dims[1] <= 2 and dims[3] > 64 else TEAMS
                self.assertIn(form, self.succeed("explain", path, *HOPPER))
                want = self.outputs(path, count, ("--device", "ref"), "ref")
                # Weights are rounded, and so are results.
                near = {"f16": 1.5e-3, "bf16": 1.2e-2}[dtype] * np.nanmax(np.abs(want))
                forms = [HOPPER]
                if hidden and max(dims[4:]) <= 128:  # by subgroups: blocks are left out too
                    forms.append(("--device", "ref", "--target-cpu", "simt"))
                for how in forms:
                    got = self.outputs(path, count, (*how, "--strict"), "got")
                    self.assertTrue((np.isnan(got) == np.isnan(want)).all(), how)
                    self.assertLess(np.nanmax(np.abs(got - want)), near, how)

    def test_f32(self):
        """By multiply-adds of lanes, which any target with subgroups of 16 has."""
        for dims, hidden, order in F32_CASES:
            with self.subTest(dims=dims, hidden=hidden, order=order):
                count, text = text_of(dims, "f32", hidden, order)
                path = self.write("a.mlir", text)
                want = self.outputs(path, count, ("--device", "ref"), "ref")
                for cpu in ("simt90", "simt"):
                    how = ("--device", "ref", "--target-cpu", cpu)
                    self.assertIn("flash_attention_lanes: one pass",
                                  self.succeed("explain", path, *how))
                    got = self.outputs(path, count, (*how, "--strict"), "got")
                    np.testing.assert_allclose(got, want, rtol=0,
                                               atol=2e-6 * np.nanmax(np.abs(want)))

    def test_what_it_leaves(self):
        """Too few rows, columns that are no multiple of 8, f32."""
        for dims, dtype in (((1, 1, 16, 128, 64, 64), "f16"), ((1, 1, 128, 128, 60, 60), "f16"),
                            ((1, 1, 128, 128, 64, 64), "f32")):  # fmt: skip
            _, text = text_of(dims, dtype, None, "bhsd")
            self.assertNotIn(FORM, self.succeed("explain", self.write("a.mlir", text), *HOPPER))

    def test_groups_have_as_much_to_do(self):
        """Tiles of rows that see more keys are dealt out there and back; of equal ones not."""
        for dims, hidden, back in (((1, 8, 1024, 1024, 64, 64), "causal", True),
                                   ((1, 8, 1024, 1024, 64, 64), None, False),
                                   ((1, 1, 256, 256, 64, 64), "causal", False)):  # fmt: skip
            _, text = text_of(dims, "f16", hidden, "bhsd")
            schedule = self.succeed("dump", self.write("a.mlir", text), "--stage", "schedule",
                                    *HOPPER)  # fmt: skip
            form = next(line for line in schedule.splitlines() if "flash_attention_wgmma" in line)
            self.assertEqual(form.endswith(" back"), back, form)

    def test_blocks_that_no_row_sees(self):
        """A mask by places bounds the loop over blocks, for subgroups too."""
        for hidden, bounded in ((None, False), ("causal", True), ("given", False), ("window", True)):
            _, text = text_of((1, 1, 512, 512, 64, 64), "f16", hidden, "bhsd")
            path = self.write("a.mlir", text)
            for cpu in ("simt90", "simt"):
                kernels = self.succeed("dump", path, "--stage", "kernels", "--device", "ref",
                                       "--target-cpu", cpu)  # fmt: skip
                loops = [line.split() for line in kernels.splitlines() if "name block" in line]
                self.assertTrue(loops, kernels[:2000])
                constants = {line.split()[0] for line in kernels.splitlines() if "= const" in line}
                for loop in loops:
                    self.assertEqual(loop[5] not in constants, bounded, (hidden, cpu, loop))


if __name__ == "__main__":
    unittest.main()
