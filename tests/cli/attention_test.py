#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention as modules spell it in core ops, heads between rows and columns: one
kernel, and the numbers of its definition in f64. Queries whose heads share one
of keys have an axis of groups (of one element, where each has its own), which
moves in front between the scores and their softmax; masks are a choice, made of
positions, lengths or given; what is hidden may be NaN."""

import itertools
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

ALGORITHM = """\
, algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, \
accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, \
num_primitive_operations = 1, allow_imprecise_accumulation = false>"""


class Text:
    """Lines of a function: each op's name is a number, types are remembered."""

    def __init__(self):
        self.lines, self.types = [], {}

    def argument(self, name, dims, dtype):
        self.types[f"%{name}"] = (tuple(dims), dtype)
        return f"%{name}"

    def type(self, name):
        dims, dtype = self.types[name]
        return "tensor<" + "".join(f"{n}x" for n in dims) + dtype + ">"

    def op(self, what, dims, dtype, form, *operands):
        """|form| has {0}, {1} for operands and {t} for all their types."""
        name = f"%{len(self.lines)}"
        self.types[name] = (tuple(dims), dtype)
        types = ", ".join(map(self.type, operands))
        form = form.format(*operands, t=types, r=self.type(name))
        self.lines.append(f"  {name} = stablehlo.{what} {form}")
        return name

    def constant(self, value, dtype, dims=()):
        return self.op("constant", dims, dtype, f"dense<{value}> : {{r}}")

    def same(self, what, *operands):
        dims, dtype = self.types[operands[-1]]
        listed = ", ".join(f"{{{i}}}" for i in range(len(operands)))
        return self.op(what, dims, dtype, listed + " : {r}", *operands)

    def convert(self, x, dtype):
        return self.op("convert", self.types[x][0], dtype,
                       "{0} : ({t}) -> {r}", x)

    def reshape(self, x, dims):
        return self.op("reshape", dims, self.types[x][1],
                       "{0} : ({t}) -> {r}", x)

    def transpose(self, x, order):
        dims, dtype = self.types[x]
        return self.op("transpose", [dims[i] for i in order], dtype,
                       f"{{0}}, dims = {list(order)} : ({{t}}) -> {{r}}", x)

    def broadcast(self, x, axes, dims):
        return self.op("broadcast_in_dim", dims, self.types[x][1],
                       f"{{0}}, dims = {list(axes)} : ({{t}}) -> {{r}}", x)

    def compare(self, how, x, y):
        return self.op("compare", self.types[x][0], "i1",
                       f"{how}, {{0}}, {{1}}, SIGNED : ({{t}}) -> {{r}}", x, y)

    def iota(self, axis, dims):
        return self.op("iota", dims, "i32", f"dim = {axis} : {{r}}")

    def select(self, which, x, y):
        dims, dtype = self.types[x]
        return self.op("select", dims, dtype,
                       "{0}, {1}, {2} : " + self.type(which) + ", {r}",
                       which, x, y)

    def fold(self, what, x, start, axis):
        dims, dtype = self.types[x]
        kept = [n for i, n in enumerate(dims) if i != axis]
        return self.op("reduce", kept, dtype,
                       f"({{0}} init: {{1}}) applies stablehlo.{what} across "
                       f"dimensions = [{axis}] : ({{t}}) -> {{r}}", x, start)

    def dot(self, x, y, dims, dtype, batch, contract, more=""):
        return self.op("dot_general", dims, dtype,
                       f"{{0}}, {{1}}, batching_dims = {batch[0]} x {batch[1]}"
                       f", contracting_dims = {contract[0]} x {contract[1]}"
                       f"{more} : ({{t}}) -> {{r}}", x, y)


def mask_of(text, c, scores):
    """What counts, of the turned scores' dims, or None."""
    g, b, h, s, t = scores
    found = []
    if "causal" in c["mask"]:
        found.append(text.broadcast(
            text.compare("GE", text.iota(0, (s, t)), text.iota(1, (s, t))),
            (3, 4), scores))
    if "lengths" in c["mask"]:
        length = text.broadcast(text.argument("n", (b,), "i32"), (0,), (b, t))
        found.append(text.broadcast(
            text.compare("LT", text.iota(1, (b, t)), length), (1, 4), scores))
    if "given" in c["mask"]:
        given = text.reshape(text.argument("m", (b, 1, s, t), "i1"), (b, s, t))
        found.append(text.broadcast(given, (1, 3, 4), scores))
    while len(found) > 1:
        found.append(text.same("and", found.pop(), found.pop()))
    return found[0] if found else None


def text_of(c):
    """The module of a case, in f32 or with bf16 around scores of f32."""
    b, s, t, h, g, d, e = c["dims"]
    text, dtype = Text(), c["dtype"]
    q = text.argument("q", (b, s, h * g, d), dtype)
    k = text.argument("k", (b, t, h, d), dtype)
    v = text.argument("v", (b, t, h, e), dtype)
    q = text.reshape(q, (b, s, h, g, d))
    x = text.dot(q, k, (b, h, s, g, t), "f32", ([0, 2], [0, 2]), ([4], [3]),
                 ALGORITHM if dtype == "bf16" else "")
    factor = text.constant(c["scale"], "f32", (b, h, s, g, t))
    x = text.same("multiply", x, factor)
    order, turned = (3, 0, 1, 2, 4), (g, b, h, s, t)
    low = text.constant("0xFF800000", "f32")
    zero = text.constant("0.0", "f32")
    if c["mask"] or c["bias"]:
        x = text.transpose(x, order)
        if c["bias"]:
            bias = text.argument("b", (1, h * g, s, t), dtype)
            bias = text.reshape(bias, (1, h, g, s, t))
            bias = text.broadcast(text.transpose(bias, (2, 0, 1, 3, 4)),
                                  (0, 1, 2, 3, 4), turned)
            if dtype == "bf16":
                bias = text.convert(bias, "f32")
            x = text.same("add", x, bias)
        mask = mask_of(text, c, turned)
        if mask:
            hidden = text.constant(c["hidden"], "f32", turned)
            x = text.select(mask, x, hidden)
        top = text.fold("maximum", x, low, 4)
    else:
        # The maximum is taken before the scores turn.
        top = text.transpose(text.fold("maximum", x, low, 4), (3, 0, 1, 2))
        x = text.transpose(x, order)
    x = text.same("subtract", x, text.broadcast(top, (0, 1, 2, 3), turned))
    w = text.same("exponential", x)
    total = text.broadcast(text.fold("add", w, zero, 4), (0, 1, 2, 3), turned)
    w = text.same("divide", w, total)
    if dtype == "bf16":
        w = text.convert(w, "bf16")
    y = text.dot(v, w, (b, h, e, g, s), dtype, ([0, 2], [1, 2]), ([1], [4]))
    y = text.transpose(y, (3, 0, 4, 1, 2))
    y = text.transpose(y, (1, 2, 3, 0, 4))
    y = text.reshape(y, (b, s, h * g, e))
    names = [n for n in text.types if not n[1].isdigit()]
    arguments = ", ".join(f"{n}: {text.type(n)}" for n in names)
    return [n[1:] for n in names], "\n".join([
        f"func.func @main({arguments}) -> {text.type(y)} {{", *text.lines,
        f"  return {y} : {text.type(y)}", "}", ""])  # fmt: skip


def narrow(x):
    """|x| rounded to bf16, as it is and as its bits."""
    bits = x.astype(np.float32).view(np.uint32)
    bits = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return (bits.astype(np.uint32) << 16).view(np.float32), bits


def inputs_of(c, names, random):
    b, s, t, h, g, d, e = c["dims"]
    dims = {"q": (b, s, h * g, d), "k": (b, t, h, d), "v": (b, t, h, e),
            "b": (1, h * g, s, t)}  # fmt: skip
    given = {n: random.standard_normal(dims[n]).astype(np.float32)
             for n in names if n in dims}
    if "n" in names:
        given["n"] = random.integers(1, t + 1, b).astype(np.int32)
    if "m" in names:
        given["m"] = random.random((b, 1, s, t)) < 0.7
        if c["hidden"] != "0xFF800000":
            given["m"][0, 0, 0] = False  # a row that hides all
        else:
            given["m"][..., 0] = True
    if c.get("nan"):
        given["k"][:, -1] = np.nan  # a key that every mask hides
        if "m" in names:
            given["m"][..., -1] = False
        if "n" in names:
            given["n"] = np.minimum(given["n"], t - 1)
    return given


def expected(c, given):
    b, s, t, h, g, d, e = c["dims"]
    x = {n: a.astype(np.float64) for n, a in given.items() if n in "qkvb"}
    q = x["q"].reshape(b, s, h, g, d)
    scores = np.einsum("bshgd,bthd->bhgst", q, x["k"]) * float(c["scale"])
    if c["bias"]:
        scores += x["b"].reshape(1, h, g, s, t)
    keep = np.ones((b, 1, 1, s, t), bool)
    if "causal" in c["mask"]:
        keep &= np.arange(s)[:, None] >= np.arange(t)
    if "lengths" in c["mask"]:
        keep &= (np.arange(t) < given["n"][:, None])[:, None, None, None]
    if "given" in c["mask"]:
        keep &= given["m"][:, :, None]
    hidden = -np.inf if c["hidden"].startswith("0x") else float(c["hidden"])
    scores = np.where(keep, scores, hidden)
    w = np.exp(scores - scores.max(-1, keepdims=True))
    w /= w.sum(-1, keepdims=True)
    return np.einsum("bhgst,bthe->bshge", w, x["v"]).reshape(b, s, h * g, e)


# b, s, t, h, g, d, e
DIMS = [(2, 5, 7, 3, 1, 8, 4), (1, 17, 33, 2, 3, 16, 16), (2, 1, 9, 1, 4, 5, 7),
        (1, 70, 90, 1, 1, 64, 64), (1, 1, 3, 1, 1, 1, 1),
        (3, 130, 65, 2, 2, 33, 17)]  # fmt: skip
MASKS = [(), ("causal",), ("lengths",), ("given",),
         ("causal", "lengths", "given")]  # fmt: skip


def cases():
    hidden = itertools.cycle(["-1.0e+09", "0xFF800000", "-2.38e+38"])
    for dims, mask in itertools.product(DIMS, MASKS):
        for dtype in "f32", "bf16":
            yield {"dims": dims, "mask": mask, "dtype": dtype,
                   "bias": (len(mask) + dims[0]) % 2 == 0, "scale": "0.25",
                   "hidden": next(hidden) if mask else "0.0",
                   "nan": mask and mask[-1] != "causal"
                   and dims[2] > 1}  # fmt: skip


@unittest.skipUnless(has_compiler(), "no backend llvm")
class Attention(Case):
    def run_case(self, c, random):
        names, text = text_of(c)
        given = inputs_of(c, names, random)
        folder = self.folder / "in"
        folder.mkdir(exist_ok=True)
        lines = []
        for i, name in enumerate(names):
            x, dtype = given[name], given[name].dtype.name
            if c["dtype"] == "bf16" and name in "qkvb":
                given[name], x = narrow(x)
                dtype = "bfloat16"
            np.save(folder / f"{name}.npy", x)
            dims = "x".join(map(str, x.shape))
            lines.append(f"input {i} {dtype} {dims} {name}.npy {name}\n")
        (folder / "io.txt").write_text("".join(lines))
        self.write("x.mlir", text)
        # With AMX products of bf16 are faster than one kernel's multiply-adds.
        cpu = [] if c["dtype"] == "f32" else ["--target-cpu", "x86-64-v3"]
        fused = self.succeed("dump", "x.mlir", "--stage", "fused", "--device",
                             "llvm", *cpu)
        self.assertEqual(fused.count('"pestle.fusion"'), 1, c)
        self.assertIn('label = "attention', fused, c)
        self.succeed("run", "x.mlir", "--device", "llvm", "--no-cache",
                     "--inputs", "in", "--outputs", "out", *cpu)
        got = np.load(self.folder / "out" / "output_0.npy")
        if c["dtype"] == "bf16":
            got = (got.astype(np.uint32) << 16).view(np.float32)
        want = expected(c, given)
        self.assertTrue((np.isnan(want) == np.isnan(got)).all(), c)
        worst = np.nanmax(np.abs(got - want), initial=0)
        # Scores of some 10 with a rounding each, or results of 8 bits.
        limit = 1e-5 if c["dtype"] == "f32" else 2**-7
        self.assertLess(worst, limit * max(1, np.nanmax(np.abs(want))), c)

    def test_one_kernel_each(self):
        random = np.random.default_rng(7)
        for c in cases():
            self.run_case(c, random)

    def test_sums_beside_each_other_are_none(self):
        """Three sums of products whose extents are equal by chance."""
        x, r = "tensor<2x4x3x4xf32>", "tensor<2x3x4xf32>"
        pairs, lines = ("ab", "ac", "bc"), []
        for i, (p, q) in enumerate(pairs):
            lines.append(f"  %m{i} = stablehlo.multiply %{p}, %{q} : {x}\n"
                         f"  %r{i} = stablehlo.reduce(%m{i} init: %z) applies "
                         f"stablehlo.add across dimensions = [1] : "
                         f"({x}, tensor<f32>) -> {r}\n")
        self.write("s.mlir", f"func.func @main(%a: {x}, %b: {x}, %c: {x}) -> "
                   f"({r}, {r}, {r}) {{\n"
                   "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                   + "".join(lines)
                   + f"  return %r0, %r1, %r2 : {r}, {r}, {r}\n}}\n")
        random = np.random.default_rng(8)
        given = {n: random.standard_normal((2, 4, 3, 4)).astype(np.float32)
                 for n in "abc"}
        inputs = []
        for n in "abc":
            np.save(self.folder / f"{n}.npy", given[n])
            inputs += ["--input", f"{n}={n}.npy"]
        self.succeed("run", "s.mlir", "--device", "llvm", "--no-cache",
                     *inputs, "--outputs", "out")
        for i, (p, q) in enumerate(pairs):
            got = np.load(self.folder / "out" / f"output_{i}.npy")
            want = (given[p] * given[q]).sum(1)
            self.assertLess(np.abs(got - want).max(), 1e-5)

    def test_strict_keeps_the_order(self):
        names, text = text_of(next(cases()))
        self.write("x.mlir", text)
        fused = self.succeed("dump", "x.mlir", "--stage", "fused",
                             "--numerics", "strict")
        self.assertNotIn("attention", fused)


if __name__ == "__main__":
    unittest.main()
