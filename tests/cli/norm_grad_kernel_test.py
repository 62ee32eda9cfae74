#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gradient of layer and RMS norm as one kernel of a CPU (codegen/direct/direct_norm_grad.c)
by numpy in f64: rows that blocks do not divide, lengths that vectors do not, several
normalised axes, CPUs of several vectors, and the same bits of every number of threads.
Exits 77 without numpy."""

import os
import sys

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import explain, is_elsewhere, run  # noqa: E402

EPSILON = 0.01
bad = []


def tensor(shape):
    return f"tensor<{''.join(f'{n}x' for n in shape)}f32>"


def gradient(x, scale, c, first, centred, blocks):
    """By x, and the sums of blocks of rows by scale and offset."""
    shape, rows = x.shape, int(np.prod(x.shape[:first]))
    x, c = (a.astype("f8").reshape(rows, -1) for a in (x, c))
    if centred:
        x = x - x.mean(1, keepdims=True)
    rate = 1 / np.sqrt((x * x).mean(1, keepdims=True) + EPSILON)
    h, t = x * rate, c * scale.astype("f8").reshape(-1)
    dx = t - h * (h * t).mean(1, keepdims=True)
    if centred:
        dx = dx - t.mean(1, keepdims=True)
    block = -(-rows // blocks)

    def sums(a):
        a = np.pad(a, ((0, blocks * block - rows), (0, 0)))
        return a.reshape(blocks, block, -1).sum(1).reshape(blocks, *scale.shape)

    return (rate * dx).reshape(shape), sums(c * h), *([sums(c)] if centred else [])


def case(shape, first, centred, blocks, devices=((),)):
    rng = np.random.default_rng(5)
    x, c = (rng.standard_normal(shape).astype("f4") + 3 for _ in range(2))
    scale = rng.standard_normal(shape[first:]).astype("f4")
    wants = gradient(x, scale, c, first, centred, blocks)
    outs = ", ".join(tensor(w.shape) for w in wants)
    count = len(wants)
    text = (
        f"func.func @main(%0: {tensor(shape)}, %1: {tensor(scale.shape)}, "
        f"%2: {tensor(shape)}) -> ({outs}) {{\n"
        f'  %r:{count} = "pestle.norm_grad"(%0, %1, %2) {{dimension = {first} : i64, '
        f"epsilon = {EPSILON} : f64, centred = {str(centred).lower()}, "
        f"blocks = {blocks} : i64}} : ({tensor(shape)}, {tensor(scale.shape)}, "
        f"{tensor(shape)}) -> ({outs})\n"
        f"  return {', '.join(f'%r#{i}' for i in range(count))} : {outs}\n}}\n")
    results = []
    for options in devices:
        got = run(text, (x, scale, c), "cpu", *options)
        if is_elsewhere(got):
            continue
        good = not isinstance(got, str) and len(got) == count
        for g, w in zip(got, wants) if good else ():
            good &= g.shape == w.shape
            good &= bool(np.abs(g - w).max() <= 2e-5 * (1 + np.abs(w).max()))
        if not good:
            bad.append(shape)
            print(f"{shape} {first} {centred} {blocks} {options}: "
                  f"{got if isinstance(got, str) else 'wrong'}")
        results.append(got)
    return text, results


def main():
    cpus = [(), ("--target-cpu", "x86-64-v3"), ("--target-cpu", "x86-64-v4"),
            ("--device", "ref"), ("--numerics", "strict")]
    text, _ = case((64, 96), 1, True, 4, cpus)
    said = explain(text)
    if "norm_grad_0" not in said:
        bad.append("no kernel of its own")
        print(said)
    for centred in True, False:
        case((37, 100), 1, centred, 5, cpus)
        case((9, 17), 1, centred, 4, cpus)
        case((1, 16), 1, centred, 1)
        case((3, 5, 4, 33), 2, centred, 2, cpus)
        case((16, 20), 0, centred, 1)
    _, (one, two) = case((300, 50), 1, True, 7, [("--threads", "1"), ("--threads", "2")])
    if not all(np.array_equal(a, b) for a, b in zip(one, two)):
        bad.append("other bits by another number of threads")
    print(f"{len(bad)} wrong: {bad}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
