#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gradient of an attention as one kernel of a CPU (codegen/direct/direct_attention_grad.c)
by numpy in f64: rows, columns and widths that are no multiples of tiles, blocks or vectors,
CPUs of several vectors, biases and masks that repeat, rows that are hidden as a whole, one
value as several operands, and the same bits of every run and number of threads. Exits 77
without numpy."""

import os
import sys

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import explain, run  # noqa: E402

SCALE = 0.3
bad = []


def tensor(a):
    name = {"float32": "f32", "bool": "i1"}[a.dtype.name]
    return f"tensor<{''.join(f'{n}x' for n in a.shape)}{name}>"


def turned(a):
    return a.swapaxes(-1, -2)


def gradient(q, k, v, c, bias=None, mask=None, masked=0.0):
    """Result, and gradients by q, k and v."""
    q, k, v, c = (a.astype("f8") for a in (q, k, v, c))
    x = SCALE * q @ turned(k)
    if bias is not None:
        x = x + bias
    if mask is not None:
        x = np.where(mask, x, masked)
    w = np.exp(x - x.max(-1, keepdims=True))
    w /= w.sum(-1, keepdims=True)
    y, dw = w @ v, c @ turned(v)
    dx = w * (dw - (w * dw).sum(-1, keepdims=True))
    if mask is not None:
        dx = np.where(mask, dx, 0)
    return y, SCALE * dx @ k, SCALE * turned(dx) @ q, turned(w) @ c


def module(operands, results, order, masked):
    names = ", ".join(f"%{i}" for i in order)
    types = ", ".join(tensor(operands[i]) for i in order)
    args = ", ".join(f"%{i}: {tensor(a)}" for i, a in enumerate(operands))
    outs = ", ".join(tensor(a) for a in results)
    return (
        f"func.func @main({args}) -> ({outs}) {{\n"
        f'  %r:3 = "pestle.attention_grad"({names}) {{scale = {SCALE} : f64, '
        f"masked = {masked} : f64}} : ({types}) -> ({outs})\n"
        f"  return %r#0, %r#1, %r#2 : {outs}\n}}\n"
    )


def close(got, wants):
    if isinstance(got, str):
        return False
    return all(
        np.abs(g - w).max() <= 3e-5 * (1 + np.abs(w).max())
        for g, w in zip(got, wants)
    )


def explains(text):
    """Whether the kernel is the one that this is a test of."""
    said = explain(text)
    return "attention_grad_0" in said and "dot_general" not in said


def case(what, shape, bias=None, mask=None, masked=-1e9, shared=False, devices=()):
    batch, rows, columns, depth, width = shape
    rng = np.random.default_rng(3)

    def of(*dims):
        return rng.standard_normal((*batch, *dims)).astype("f4")

    q, k, v, c = of(rows, depth), of(columns, depth), of(columns, width), of(rows, width)
    b = m = None
    if bias:
        b = rng.standard_normal(bias).astype("f4")
    if mask:
        m = rng.random(mask) < 0.6
        m[..., 0, :] = False  # hidden as a whole
    if shared:
        k = v = q
    y, *wants = gradient(q, k, v, c, b, m, masked)
    y = y.astype("f4")
    operands, order = [q, k, v, y, c], [0, 1, 2, 3, 4]
    if shared:
        operands, order = [q, y, c], [0, 0, 0, 1, 2]
    for extra in (b, m):
        if extra is not None:
            order.append(len(operands))
            operands.append(extra)
    text = module(operands, wants_like(wants), order, masked)
    got = run(text, operands, "cpu")
    if not close(got, wants):
        bad.append(what)
        print(f"{what}: {got if isinstance(got, str) else 'wrong'}")
    for options in devices:
        other = run(text, operands, "cpu", *options)
        if not close(other, wants):
            bad.append(f"{what} {options}")
            print(f"{what} {options}: {other if isinstance(other, str) else 'wrong'}")
    return text, operands, got


def wants_like(wants):
    return [np.empty(w.shape, "f4") for w in wants]


def main():
    cpus = [("--target-cpu", "x86-64-v3"), ("--target-cpu", "x86-64-v4"),
            ("--device", "ref")]
    text, operands, got = case("plain", ((64,), 64, 96, 16, 16), devices=cpus)
    if not explains(text):
        bad.append("plain is not one kernel")
    for options in ("--threads", "1"), ("--threads", "2"):
        again = run(text, operands, "cpu", *options)
        if not all(np.array_equal(a, b) for a, b in zip(got, again)):
            bad.append(f"other bits with {options}")
    case("tails", ((64,), 83, 101, 20, 28), devices=cpus)
    case("few rows", ((64,), 17, 200, 12, 4), devices=cpus[:2])
    case("wide", ((32,), 70, 50, 132, 68))
    case("one head of many axes", ((2, 16), 65, 33, 8, 8))
    case("rank 2, shared", ((), 40, 40, 8, 8), shared=True)
    case("shared", ((64,), 40, 40, 8, 8), shared=True)
    case("mask", ((64,), 70, 40, 8, 8), mask=(1, 70, 40), devices=cpus)
    case("mask of columns", ((8, 8), 70, 40, 8, 8), mask=(8, 1, 1, 40))
    case("mask of rows", ((8, 8), 70, 40, 8, 8), mask=(1, 8, 70, 1), masked=-2)
    case("bias", ((64,), 70, 40, 8, 8), bias=(64, 70, 40), devices=cpus[:1])
    case("bias, mask", ((8, 8), 48, 40, 8, 8), bias=(1, 8, 1, 40), mask=(8, 1, 48, 40))
    case("lowest bias", ((64,), 48, 40, 8, 8), bias=(1, 48, 40), mask=(1, 48, 40),
         masked=-3.4028234663852886e38)
    print(f"{len(bad)} wrong")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
