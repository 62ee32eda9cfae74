#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention of new tokens over a cache as one kernel of a CPU
(codegen/direct/direct_cached_attention.c) and of lanes side by side (_lanes.c) by numpy in
f64: lengths at the ends of blocks of keys, rooms that blocks do not divide, several heads a
cache, batches with a length each, NaNs behind what is seen, narrow floats, and forms that are
no such attention. Exits 77 without numpy."""

import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PESTLE, explain, run  # noqa: E402

bad = []


def text(shared, heads, tokens, most, depth, width, dtype="f32", compare="LE", low="0xFF800000", batch=1, lengths=None):
    """|heads| heads a cache; the bias is made as the importer of GroupQueryAttention makes it, for
    |batch| sequences with |lengths| lengths, 1: one for all."""
    rows, lengths = heads * tokens, lengths or batch
    q, k, v, y = (f"tensor<{batch}x{shared}x{n}x{d}x{dtype}>" for n, d in ((rows, depth), (most, depth), (most, width), (rows, width)))
    batch = lengths
    i, b = (f"tensor<{batch}x1x{tokens}x{most}x{t}>" for t in ("i64", dtype))
    if dtype == "f16" and low.startswith("0x"):
        low = "0xFC00"
    lines = [f"%c = stablehlo.iota dim = 3 : {i}", f"%r = stablehlo.iota dim = 2 : {i}",
             f"%p = stablehlo.broadcast_in_dim %past, dims = [0] : (tensor<{batch}xi64>) -> {i}",
             f"%l = stablehlo.add %r, %p : {i}",
             f"%s = stablehlo.compare {compare}, %c, %l, SIGNED : ({i}, {i}) -> tensor<{batch}x1x{tokens}x{most}xi1>",
             f"%z = stablehlo.constant dense<0.0> : {b}", f"%n = stablehlo.constant dense<{low}> : {b}",
             f"%b = stablehlo.select %s, %z, %n : tensor<{batch}x1x{tokens}x{most}xi1>, {b}"]
    all_rows = f"tensor<{batch}x1x{rows}x{most}x{dtype}>"
    many = f"tensor<{batch}x{heads}x{tokens}x{most}x{dtype}>"
    if heads > 1 and tokens > 1:
        lines += [f"%w = stablehlo.broadcast_in_dim %b, dims = [0, 1, 2, 3] : ({b}) -> {many}",
                  f"%m = stablehlo.reshape %w : ({many}) -> {all_rows}"]
        name, kind = "%m", all_rows
    else:
        name, kind = "%b", b
    lines.append(f'%y = "pestle.attention"(%q, %k, %v, {name}) {{scale = 0.3 : f64}} : ({q}, {k}, {v}, {kind}) -> {y}')
    body = "".join(f"  {line}\n" for line in lines)
    return (f"func.func @main(%q: {q}, %k: {k}, %v: {v}, %past: tensor<{batch}xi64>) -> {y} {{\n{body}"
            f"  return %y : {y}\n}}\n")


def expected(q, k, v, past, tokens):
    q, k, v = (a.astype("f8") for a in (q, k, v))
    y = np.zeros(q.shape[:3] + v.shape[3:])
    for s, h, r in np.ndindex(*q.shape[:3]):
        n = min(past[s] + r % tokens + 1, k.shape[2])
        if n < 1:
            y[s, h, r] = np.nan
            continue
        x = 0.3 * k[s, h, :n] @ q[s, h, r]
        w = np.exp(x - x.max())
        y[s, h, r] = w @ v[s, h, :n] / w.sum()
    return y


def kernels(source, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as f:
        f.write(source)
        f.flush()
        done = subprocess.run([PESTLE, "dump", f.name, "--stage", "kernels", *options], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def case(shared, heads, tokens, most, depth, width, pasts, *options, dtype="f4", nan=True, batch=1):
    """|pasts|: of each a run, for batches a list."""
    rng = np.random.default_rng([shared, heads, tokens, most])
    rows, name = heads * tokens, {"f4": "f32", "f2": "f16"}[dtype]
    q, k, v = ((rng.standard_normal((batch, shared, n, d)) * s).astype(dtype)
               for n, d, s in ((rows, depth, 2), (most, depth, 1), (most, width, 1)))
    source = text(shared, heads, tokens, most, depth, width, name, batch=batch, lengths=np.size(pasts[0]))
    for past in pasts:
        given = np.atleast_1d(np.array(past, "i8"))
        every = np.broadcast_to(given, batch)
        want = expected(q, k, v, every, tokens)
        a, b = k.copy(), v.copy()
        for s in range(batch if nan else 0):
            a[s, :, max(every[s] + tokens, 0):] = np.nan
            b[s, :, max(every[s] + tokens, 0):] = np.nan
        got = run(source, (q, a, b, given), "cpu", *options)
        near = 2e-3 if dtype == "f2" else 1e-5
        good = not isinstance(got, str) and np.allclose(got[0], want, near, near, equal_nan=True)
        if not good:
            bad.append((shared, heads, tokens, most, past, options))
            print(bad[-1], got if isinstance(got, str) else np.abs(got[0] - want).max())
    return source


def main():
    said = explain(case(3, 3, 1, 64, 64, 64, (0, 14, 15, 16, 17, 63)))
    if "cached_attention" not in said:
        bad.append("no kernel of its own")
        print(said)
    case(2, 1, 1, 50, 32, 48, (0, 15, 33, 49))
    case(2, 7, 1, 80, 128, 64, (5, 79))
    case(1, 4, 8, 64, 16, 16, (0, 1, 24, 56))
    case(2, 1, 32, 64, 16, 32, (0, 7, 32))
    case(1, 3, 5, 40, 16, 16, (0, 12, 35))
    case(2, 2, 4, 64, 32, 32, (0, 30), dtype="f2")
    case(2, 2, 4, 64, 32, 32, (0, 30), "--target-cpu", "x86-64-v3")
    case(2, 2, 4, 64, 32, 32, (0, 30), "--target-cpu", "x86-64-v4")
    case(2, 2, 4, 64, 32, 32, (0, 30), "--device", "ref")
    # Batches with a length each, or one for all.
    said = explain(case(3, 3, 1, 64, 64, 64, ([0, 15, 16, 63, 31], [63, 0, 1, 2, 33]), batch=5))
    if "cached_attention" not in said:
        bad.append("no kernel of its own for a batch")
        print(said)
    case(2, 1, 1, 50, 32, 48, ([0, 49, 17],), batch=3)
    case(2, 3, 4, 64, 16, 32, ([0, 30], [60, 1], [61, -5]), batch=2)
    case(2, 3, 4, 64, 16, 32, (0, 30), batch=2)
    case(1, 2, 2, 40, 16, 16, ([1, 7, 30, -1],), "--target-cpu", "x86-64-v3", batch=4)
    case(2, 2, 3, 64, 32, 32, ([5, 33],), "--device", "ref", batch=2, dtype="f2")
    case(2, 1, 1, 64, 32, 32, ([5, 33],), "--numerics", "strict", batch=2, nan=False)
    # More than there are, and fewer than none.
    case(2, 2, 4, 40, 16, 16, (37, 40, 100, 1 << 40, -1, -2, -4, -5, -100))
    case(2, 1, 1, 64, 16, 16, (63, 64, 1000, -1, -9))
    # Groups of lanes that share keys, and one alone: tiles of 128 keys, parts that have none,
    # rows that groups do not divide, and rooms that tiles do not.
    for cpu in "simt90", "simt":
        lanes = ("--device", "ref", "--target-cpu", cpu)
        source = case(2, 3, 1, 300, 64, 64, (0, 14, 127, 128, 255, 299), *lanes)
        case(2, 7, 1, 1100, 32, 48, (5, 1000, 1099), *lanes)
        case(1, 4, 4, 256, 16, 32, (0, 1, 126, 252), *lanes)
        case(2, 2, 4, 200, 32, 32, (0, 130), *lanes, dtype="f2")
        case(2, 3, 1, 300, 64, 64, ([0, 299, 140], [127, 128, -1]), *lanes, batch=3)
        case(2, 2, 4, 140, 16, 16, (137, 140, 300, 1 << 40, -1, -2, -4, -5, -100), *lanes)
        said = kernels(source, *lanes)
        if (" cluster : index" in said) != (cpu == "simt90") or "cached_attention" not in said:
            bad.append(f"{cpu}: clusters")
            print(said)
    # What lies behind is read where all is multiplied.
    case(2, 2, 4, 64, 32, 32, (0, 30), "--numerics", "strict", nan=False)
    for how in {"compare": "LT"}, {"low": "-1.0e4"}:
        said = explain(text(2, 2, 4, 64, 32, 32, **how))
        if "cached_attention" in said:
            bad.append(f"{how} is taken for what it is not")
    print(f"{len(bad)} wrong: {bad}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
