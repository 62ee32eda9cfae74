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
from program import explain, is_elsewhere, run  # noqa: E402

SCALE = 0.3
bad = []


# A step of rounding of each type that is tried.
STEPS = {"f32": 2**-23, "f16": 2**-10, "bf16": 2**-7}


def tensor(a, dtype="f32"):
    name = {"float32": dtype, "bool": "i1"}[a.dtype.name]
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


def converted(name, a, dtype):
    """|a| of f32 as |dtype|: the line that says so, and its name."""
    if dtype == "f32" or a.dtype == bool:
        return "", name
    made = f"%c{name[1:]}"
    line = (f"  {made} = stablehlo.convert {name} : ({tensor(a)}) -> "
            f"{tensor(a, dtype)}\n")
    return line, made


def module(operands, results, order, masked, dtype="f32"):
    made = [converted(f"%{i}", a, dtype) for i, a in enumerate(operands)]
    names = ", ".join(made[i][1] for i in order)
    types = ", ".join(tensor(operands[i], dtype) for i in order)
    args = ", ".join(f"%{i}: {tensor(a)}" for i, a in enumerate(operands))
    narrow = ", ".join(tensor(a, dtype) for a in results)
    outs = ", ".join(tensor(a) for a in results)
    n = len(results)
    of_bias = ", of_bias = true" if n == 4 else ""
    text = f"func.func @main({args}) -> ({outs}) {{\n"
    text += "".join(line for line, _ in made)
    text += (f'  %r:{n} = "pestle.attention_grad"({names}) {{scale = {SCALE} : f64, '
             f"masked = {masked} : f64{of_bias}}} : ({types}) -> ({narrow})\n")
    back = [f"%r#{i}" for i in range(n)]
    if dtype != "f32":
        for i, a in enumerate(results):
            text += (f"  %o{i} = stablehlo.convert %r#{i} : ({tensor(a, dtype)}) -> "
                     f"{tensor(a)}\n")
        back = [f"%o{i}" for i in range(n)]
    return text + f"  return {', '.join(back)} : {outs}\n}}\n"


def close(got, wants, dtype="f32"):
    if isinstance(got, str):
        return False
    most = max(3e-5, 2 * STEPS[dtype])
    return all(
        np.abs(g - w).max() <= most * ((dtype == "f32") + np.abs(w).max())
        for g, w in zip(got, wants)
    )


def rounded(a, dtype):
    if dtype == "f16":
        return a.astype("f2").astype("f4")
    if dtype == "bf16":
        bits = a.view("u4")
        bits = bits + 0x7FFF + ((bits >> 16) & 1)
        return (bits & 0xFFFF0000).astype("u4").view("f4")
    return a


def explains(text):
    """Whether the kernel is the one that this is a test of."""
    said = explain(text)
    return "attention_grad_" in said and "dot_general" not in said


def case(what, shape, bias=None, mask=None, masked=-1e9, shared=False, devices=(),
         dtype="f32"):
    batch, rows, columns, depth, width = shape
    rng = np.random.default_rng(3)

    def of(*dims):
        return rounded(rng.standard_normal((*batch, *dims)).astype("f4"), dtype)

    q, k, v, c = of(rows, depth), of(columns, depth), of(columns, width), of(rows, width)
    b = m = None
    if bias:
        b = rounded(rng.standard_normal(bias).astype("f4"), dtype)
    if mask:
        m = rng.random(mask) < 0.6
        m[..., 0, :] = False  # hidden as a whole
    if shared:
        k = v = q
    y, *wants = gradient(q, k, v, c, b, m, masked)
    y = rounded(y.astype("f4"), dtype)
    operands, order = [q, k, v, y, c], [0, 1, 2, 3, 4]
    if shared:
        operands, order = [q, y, c], [0, 0, 0, 1, 2]
    for extra in (b, m):
        if extra is not None:
            order.append(len(operands))
            operands.append(extra)
    text = module(operands, wants_like(wants), order, masked, dtype)
    got = run(text, operands, "cpu")
    if devices and not explains(text):
        bad.append(f"{what} is not one kernel")
    if not close(got, wants, dtype):
        bad.append(what)
        print(f"{what}: {got if isinstance(got, str) else 'wrong'}")
    for options in devices:
        other = run(text, operands, "cpu", *options)
        if is_elsewhere(other):
            continue
        if not close(other, wants, dtype):
            bad.append(f"{what} {options}")
            print(f"{what} {options}: {other if isinstance(other, str) else 'wrong'}")
    return text, operands, got


def wants_like(wants):
    return [np.empty(w.shape, "f4") for w in wants]


def main():
    cpus = [("--target-cpu", "x86-64-v3"), ("--target-cpu", "x86-64-v4"),
            ("--device", "ref")]
    text, operands, got = case("plain", ((64,), 64, 96, 16, 16), devices=cpus)
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
    for dtype in "bf16", "f16":
        of = f", {dtype}"
        case("plain" + of, ((64,), 64, 96, 16, 16), devices=cpus, dtype=dtype)
        case("tails" + of, ((32,), 83, 101, 20, 28), devices=cpus[:1], dtype=dtype)
        case("shared" + of, ((8,), 40, 40, 8, 8), shared=True, dtype=dtype)
        case("bias, mask" + of, ((8, 8), 48, 40, 8, 8), bias=(1, 8, 1, 40),
             mask=(8, 1, 48, 40), dtype=dtype)
    print("\n".join([*bad, f"{len(bad)} wrong"]))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
