#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gradient of an attention by matrix units (codegen/direct/direct_attention_grad_lanes.c),
as ref runs it for descriptions of GPUs with warpgroups (simt90) and without (simt), by numpy in f64: rows, keys and widths that are no
multiples of tiles, units or fragments, biases and masks that repeat, rows that are hidden as
a whole, keys that are seen by their places, one value as several operands, some gradients
alone, and the same bits of every run. Exits 77 without numpy."""

import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from attention_grad_kernel_test import (close, gradient, module, rounded,  # noqa: E402
                                        wants_like)
from program import PESTLE, explain, run  # noqa: E402

bad = []


def gpu(cpu="simt90", *options):
    return ("--target-cpu", cpu, *options)


def case(what, shape, dtype="bf16", bias=None, mask=None, masked=-1e9, shared=False,
         hidden=None, options=gpu()):
    batch, rows, keys, depth, width = shape
    rng = np.random.default_rng(5)

    def of(*dims):
        return rounded(rng.standard_normal((*batch, *dims)).astype("f4"), dtype)

    q, k, v, c = of(rows, depth), of(keys, depth), of(keys, width), of(rows, width)
    b = m = None
    if bias:
        b = rounded(rng.standard_normal(bias).astype("f4"), dtype)
        if hidden is not None:
            b[..., 3:] = hidden
    if mask:
        m = rng.random(mask) < 0.6
        m[..., 0, :] = False  # hidden as a whole
        m[..., 1:, :1] = True
    if shared:
        k = v = q
    y, *wants = gradient(q, k, v, c, b, m, masked)
    operands, order = [q, k, v, rounded(y.astype("f4"), dtype), c], [0, 1, 2, 3, 4]
    if shared:
        operands, order = [operands[0], *operands[3:]], [0, 0, 0, 1, 2]
    for extra in (b, m):
        if extra is not None:
            order.append(len(operands))
            operands.append(extra)
    text = module(operands, wants_like(wants), order, masked, dtype)
    got = run(text, operands, "ref", *options)
    said = explain(text, "--device", "ref", *options)
    is_whole = "attention_grad_rows_" in said and " dot_general_" not in said
    if is_whole == bool(bias and mask):
        bad.append(f"{what}: other kernels than expected")
    if not close(got, wants, dtype):
        bad.append(what)
        off = got if isinstance(got, str) else [
            float(np.abs(g - w).max() / np.abs(w).max()) for g, w in zip(got, wants)]
        print(f"{what}: {off}")
    return text, operands, got


def hidden_by_infinity():
    """Rows that -inf hides: their weights are NaN, and nothing comes from them to q and k."""
    rows, keys, width = 40, 48, 16
    rng = np.random.default_rng(7)
    q, k, v, c = (rounded(rng.standard_normal((2, n, width)).astype("f4"), "bf16")
                  for n in (rows, keys, keys, rows))
    m = np.ones((1, rows, keys), bool)
    m[:, 5] = False
    with np.errstate(invalid="ignore"):
        y, *wants = gradient(q, k, v, c, None, m, -np.inf)
    text = module([q, k, v, rounded(y.astype("f4"), "bf16"), c, m], wants_like(wants),
                  list(range(6)), "0xFFF0000000000000", "bf16")
    got = run(text, [q, k, v, np.nan_to_num(y).astype("f4"), c, m], "ref", *gpu())
    good = not isinstance(got, str) and np.isnan(got[2]).all()
    good = good and np.isnan(wants[2]).all() and close(got[:2], wants[:2], "bf16")
    if not good:
        bad.append("hidden by -inf")
        print(got if isinstance(got, str) else [np.isnan(g).mean() for g in got])


def places(dtype, rows, keys, low, high):
    """Lines that make %5: a mask of the keys from row + low to row + high, or a bias."""
    whole, flags = (f"tensor<1x{rows}x{keys}x{t}>" for t in ("i32", "i1"))
    made = f"""  %row = stablehlo.iota dim = 1 : {whole}
  %key = stablehlo.iota dim = 2 : {whole}
  %high = stablehlo.constant dense<{high}> : {whole}
  %last = stablehlo.add %row, %high : {whole}
  %under = stablehlo.compare LE, %key, %last : ({whole}, {whole}) -> {flags}
"""
    if low is not None:
        made += f"""  %low = stablehlo.constant dense<{low}> : {whole}
  %from = stablehlo.add %low, %row : {whole}
  %above = stablehlo.compare LE, %from, %key : ({whole}, {whole}) -> {flags}
  %seen = stablehlo.and %under, %above : {flags}
"""
    seen = "%under" if low is None else "%seen"
    if dtype is None:
        return made, seen, flags
    bias = f"tensor<1x{rows}x{keys}x{dtype}>"
    made += f"""  %zero = stablehlo.constant dense<0.0> : {bias}
  %none = stablehlo.constant dense<{'0xFF80' if dtype == 'bf16' else '0xFC00'}> : {bias}
  %bias = stablehlo.select {seen}, %zero, %none : {flags}, {bias}
"""
    return made, "%bias", bias


def limited(what, shape, low, high, dtype="bf16", of_bias=False, options=gpu()):
    """Keys are hidden by their places, which the kernels see."""
    heads, rows, keys, width = shape
    rng = np.random.default_rng(9)
    q, k, v, c = (rounded(rng.standard_normal((heads, n, width)).astype("f4"), dtype)
                  for n in (rows, keys, keys, rows))
    gap = np.arange(keys)[None, :] - np.arange(rows)[:, None]
    m = (gap <= high) & (gap >= (-rows if low is None else low))
    with np.errstate(invalid="ignore"):
        y, *wants = gradient(q, k, v, c, None, m[None], -np.inf)
    y = rounded(np.nan_to_num(y).astype("f4"), dtype)
    operands = [q, k, v, y, c]
    text = module([*operands, m[None]], wants_like(wants), list(range(6)),
                  "0xFFF0000000000000", dtype)
    made, name, kind = places(dtype if of_bias else None, rows, keys, low, high)
    text = text.replace(f", %5: tensor<1x{rows}x{keys}xi1>", "").replace("%5", name)
    text = text.replace(f"tensor<1x{rows}x{keys}xi1>) -> (tensor", f"{kind}) -> (tensor")
    head, rest = text.split("\n", 1)
    text = f"{head}\n{made}{rest}"
    got = run(text, operands, "ref", *options)
    said = explain(text, "--device", "ref", *options)
    if "le, and, attention_grad" not in said:
        bad.append(f"{what}: the mask is in memory")
    if not close(got, wants, dtype):
        bad.append(what)
        off = got if isinstance(got, str) else [
            float(np.abs(g - w).max() / np.abs(w).max()) for g, w in zip(got, wants)]
        print(f"{what}: {off}")


def has_warpgroups(text, *options):
    """Whether the kernels multiply by warpgroups."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m.mlir"
        path.write_text(text)
        made = subprocess.run([PESTLE, "dump", path, "--device", "ref", *options, "--stage",
                               "kernels"], capture_output=True, text=True, check=True).stdout
    return "wgmma" in made


def some(text, operands, got, which):
    """Gradient |which| alone."""
    lines = text.splitlines()
    head, back = lines[0], lines[-2]
    outs = back.split(" : ")[1].split(", ")
    name = back.split("return ")[1].split(" : ")[0].split(", ")[which]
    head = head[: head.index("->")] + f"-> {outs[which]} {{"
    text = "\n".join([head, *lines[1:-2], f"  return {name} : {outs[which]}", "}", ""])
    again = run(text, operands, "ref", *gpu())
    if isinstance(again, str) or not np.array_equal(again[0], got[which]):
        bad.append(f"gradient {which} alone")
        print(again if isinstance(again, str) else "other bits")


def main():
    text, operands, got = case("plain", ((2, 3), 64, 64, 32, 32))
    if not has_warpgroups(text, *gpu()) or has_warpgroups(text, *gpu("simt")):
        bad.append("warpgroups of the wrong target")
    for which in range(3):
        some(text, operands, got, which)
    again = run(text, operands, "ref", *gpu("simt90", "--threads", "1"))
    if not all(np.array_equal(a, b) for a, b in zip(got, again)):
        bad.append("other bits with one thread")
    case("tails", ((2,), 83, 101, 24, 40))
    case("tails, f16", ((2,), 83, 101, 24, 40), "f16")
    case("more rows", ((8,), 130, 40, 16, 16))
    case("few rows", ((2,), 17, 200, 16, 8))
    case("wide", ((1,), 70, 50, 128, 128))
    case("widest", ((1,), 40, 72, 256, 256))
    case("head of many axes", ((2, 2), 65, 33, 8, 8))
    case("rank 2, shared", ((), 40, 40, 16, 16), shared=True)
    units = {"options": gpu("simt")}
    case("units", ((2,), 83, 101, 24, 40), **units)
    case("units, f16", ((2,), 64, 33, 64, 48), "f16", **units)
    case("units, 32 rows each", ((4,), 130, 72, 16, 24), **units)
    case("units, mask", ((4,), 70, 40, 16, 16), mask=(1, 70, 40), **units)
    case("units, bias", ((4,), 70, 90, 16, 16), bias=(4, 1, 90), **units)
    limited("units, causal", (4, 150, 150, 16), None, 0, **units)
    limited("units, window", (4, 130, 200, 16), -20, 30, of_bias=True, **units)
    case("mask", ((4,), 70, 40, 16, 16), mask=(1, 70, 40))
    case("mask of heads", ((2, 2), 70, 40, 16, 16), mask=(2, 1, 70, 40))
    case("mask of rows", ((2, 2), 70, 40, 16, 16), mask=(1, 2, 70, 1), masked=-2)
    case("mask, lowest", ((4,), 70, 40, 16, 16), mask=(1, 70, 40),
         masked=-3.4028234663852886e38)
    case("bias", ((4,), 70, 40, 16, 16), bias=(4, 70, 40))
    case("bias of keys, f16", ((2, 2), 48, 72, 16, 16), "f16", bias=(1, 2, 1, 72))
    case("bias, -inf", ((2,), 48, 72, 16, 16), bias=(1, 48, 72), hidden=-np.inf)
    case("bias, lowest", ((2,), 48, 72, 16, 16), bias=(1, 48, 72), hidden=-3e38)
    case("bias, mask", ((2, 2), 48, 40, 16, 16), bias=(1, 2, 1, 40), mask=(2, 1, 48, 40))
    hidden_by_infinity()
    limited("causal", (2, 200, 200, 16), None, 0)
    limited("causal, bias", (2, 83, 83, 16), None, 0, of_bias=True)
    limited("causal, f16", (2, 70, 150, 24), None, 80, "f16", of_bias=True)
    limited("more rows, causal", (1, 150, 70, 16), None, 0)
    limited("window", (2, 300, 300, 16), -20, 30, of_bias=True)
    limited("narrow window", (2, 200, 200, 16), -1, 1)
    print("\n".join([*bad, f"{len(bad)} wrong"]))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
