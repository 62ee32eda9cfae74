#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention of new tokens over a cache as one kernel of a CPU
(codegen/direct/direct_cached_attention.c) and of lanes side by side (_lanes.c) by numpy in
f64: lengths at the ends of blocks of keys, rooms that blocks do not divide, several heads a
cache, batches with a length each, queries that are turned by angles, NaNs behind what is seen, narrow floats, and forms that are
no such attention. Exits 77 without numpy."""

import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PESTLE, explain, is_elsewhere, run  # noqa: E402

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


def step_text(shared, heads, most, depth, dtype, write):
    """A token of a layer: angles of its queries and key, rows of both caches, attention."""
    t = lambda *dims, of=dtype: f"tensor<{''.join(f'{d}x' for d in dims)}{of}>"  # noqa: E731
    all_heads, half, lines = shared * heads, depth // 2, []

    def put(text):
        lines.append(f"%n{len(lines)} = {text}")
        return f"%n{len(lines) - 1}"

    def turned(x, count):
        whole, part = t(1, count, 1, depth), t(1, count, 1, half)
        x = put(f"stablehlo.reshape {x} : ({t(1, 1, count * depth)}) -> {whole}")
        low, high = (put(f"stablehlo.slice {x} [0:1, 0:{count}, 0:1, {a}:{a + half}] : ({whole}) -> {part}") for a in (0, half))
        c, s = (put(f"stablehlo.broadcast_in_dim {a}, dims = [3] : ({t(half)}) -> {part}") for a in ("%cos", "%sin"))
        m = [put(f"stablehlo.multiply {a}, {b} : {part}") for a, b in ((low, c), (high, s), (low, s), (high, c))]
        left, right = put(f"stablehlo.subtract {m[0]}, {m[1]} : {part}"), put(f"stablehlo.add {m[2]}, {m[3]} : {part}")
        return put(f"stablehlo.concatenate {left}, {right}, dim = 3 : ({part}, {part}) -> {whole}")

    cache, new, index = t(1, shared, most, depth), t(1, shared, 1, depth), t(of="i64")
    rows = [turned("%k", shared), put(f"stablehlo.reshape %v : ({t(1, 1, shared * depth)}) -> {new}")]
    zero, at = put(f"stablehlo.constant dense<0> : {index}"), put(f"stablehlo.reshape %past : (tensor<1xi64>) -> {index}")
    places = put("stablehlo.reshape %past : (tensor<1xi64>) -> tensor<1x1xi64>")
    caches = []
    for old, row in zip(("%keys", "%values"), rows):
        if write == "scatter":
            caches.append(put(
                f'"stablehlo.scatter"({old}, {places}, {row}) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims '
                "= [1, 3], inserted_window_dims = [2], input_batching_dims = [0], scatter_indices_batching_dims = [0], "
                "scatter_dims_to_operand_dims = [2], index_vector_dim = 2>}> ({\n^bb0(%a: "
                f"{t()}, %b: {t()}):\n stablehlo.return %b : {t()}\n}}) : ({cache}, tensor<1x1xi64>, {new}) -> {cache}"))
        else:
            caches.append(put(f"stablehlo.dynamic_update_slice {old}, {row}, {zero}, {zero}, {at}, {zero} : "
                              f"({cache}, {new}, {index}, {index}, {index}, {index}) -> {cache}"))
    i, b, f = (t(1, 1, 1, most, of=o) for o in ("i64", dtype, "i1"))
    key, last = put(f"stablehlo.iota dim = 3 : {i}"), put(f"stablehlo.broadcast_in_dim %past, dims = [0] : (tensor<1xi64>) -> {i}")
    seen = put(f"stablehlo.compare LE, {key}, {last}, SIGNED : ({i}, {i}) -> {f}")
    none = "0xFC00" if dtype == "f16" else "0xFF800000"
    bias = put(f"stablehlo.select {seen}, {put(f'stablehlo.constant dense<0.0> : {b}')}, "
               f"{put(f'stablehlo.constant dense<{none}> : {b}')} : {f}, {b}")
    q = put(f"stablehlo.reshape {turned('%q', all_heads)} : ({t(1, all_heads, 1, depth)}) -> {t(1, shared, heads, depth)}")
    y = t(1, shared, heads, depth)
    lines.append(f'%y = "pestle.attention"({q}, {caches[0]}, {caches[1]}, {bias}) {{scale = 0.3 : f64}} : ({y}, {cache}, {cache}, {b}) -> {y}')
    given = (f"%q: {t(1, 1, all_heads * depth)}, %k: {t(1, 1, shared * depth)}, %v: {t(1, 1, shared * depth)}, %cos: {t(half)}, "
             f"%sin: {t(half)}, %keys: {cache}, %values: {cache}, %past: tensor<1xi64>")
    return (f"func.func @main({given}) -> ({cache}, {cache}, {y}) {{\n" + "".join(f"  {line}\n" for line in lines) +
            f"  return {caches[0]}, {caches[1]}, %y : {cache}, {cache}, {y}\n}}\n")


def step(shared, heads, most, depth, pasts, write, *options, dtype="f4"):
    """By the ops one by one on a CPU; caches are the same bits."""
    rng, name = np.random.default_rng([shared, heads, most]), {"f4": "f32", "f2": "f16"}[dtype]
    source, r = step_text(shared, heads, most, depth, name, write), rng.standard_normal
    angles = rng.uniform(0, 6, depth // 2)
    fixed = [a.astype(dtype) for a in (2 * r((1, 1, shared * heads * depth)), r((1, 1, shared * depth)), r((1, 1, shared * depth)),
                                       np.cos(angles), np.sin(angles))]
    caches = [r((1, shared, most, depth)).astype(dtype) for _ in range(2)]
    said = kernels(source, *options)
    if said.count("kernel @") != 1 or "cached_step" not in said:
        bad.append(("not one kernel", write, options))
        print(said)
    for past in pasts:
        here = [c.copy() for c in caches]
        for c in here:  # what is behind the row is not read
            c[:, :, max(past, 0) + 1:] = np.nan
        at = np.array([past], "i8")
        want = run(source, (*fixed, *caches, at), "cpu", "--no-fuse", "--numerics", "strict")
        got = run(source, (*fixed, *here, at), "cpu", *options)
        near = 4e-3 if dtype == "f2" else 2e-5
        good = not isinstance(got, str) and np.allclose(got[2], want[2], near, near, equal_nan=True)
        for old, new, all_of in zip(here, got, want[:2]) if good else ():
            row = np.flatnonzero((new != old).any((0, 1, 3)) & ~np.isnan(old).any((0, 1, 3)) | (np.isnan(old) & ~np.isnan(new)).any((0, 1, 3)))
            good &= np.allclose(new[:, :, row], all_of[:, :, row], near, near) and len(row) <= 1
            good &= len(row) == (write != "scatter" or 0 <= past < most)
        if not good:
            bad.append(("step", shared, heads, most, past, write, options))
            print(bad[-1], got if isinstance(got, str) else np.abs(got[2] - want[2]).max())


def turned(heads, shared, most, depth, batch, lists):
    """|text| of one token whose queries [batch, heads * shared, 1, depth] are turned by halves, by |lists| lists of angles."""
    source = text(shared, heads, 1, most, depth, depth, batch=batch)
    head, body = source.split("\n", 1)
    half, x = depth // 2, f"tensor<{batch}x{heads * shared}x1x{depth}xf32>"
    h, a, q = x.replace(f"x{depth}x", f"x{half}x"), f"tensor<{lists}x{half}xf32>", f"tensor<{batch}x{shared}x{heads}x{depth}xf32>"
    whole = f"[0:{batch}, 0:{heads * shared}, 0:1, "
    lines = [f"%a = stablehlo.slice %x {whole}0:{half}] : ({x}) -> {h}", f"%e = stablehlo.slice %x {whole}{half}:{depth}] : ({x}) -> {h}",
             *[f"%{n}b = stablehlo.broadcast_in_dim %{n}, dims = [0, 3] : ({a}) -> {h}" for n in ("co", "si")],
             f"%ac = stablehlo.multiply %a, %cob : {h}", f"%es = stablehlo.multiply %e, %sib : {h}", f"%lo = stablehlo.subtract %ac, %es : {h}",
             f"%as = stablehlo.multiply %sib, %a : {h}", f"%ec = stablehlo.multiply %e, %cob : {h}", f"%hi = stablehlo.add %ec, %as : {h}",
             f"%t = stablehlo.concatenate %lo, %hi, dim = 3 : ({h}, {h}) -> {x}", f"%q = stablehlo.reshape %t : ({x}) -> {q}"]
    head = head.replace(f"%q: {q}", f"%x: {x}").replace("%past:", f"%co: {a}, %si: {a}, %past:")
    return head + "\n" + "".join(f"  {line}\n" for line in lines) + body


def turned_case(heads, shared, most, depth, pasts, *options, batch=1, lists=1):
    rng = np.random.default_rng([heads, shared, most, depth])
    x, k, v = (rng.standard_normal((batch, *n, depth)).astype("f4") for n in ((heads * shared, 1), (shared, most), (shared, most)))
    angles = rng.uniform(0, 7, (lists, depth // 2))
    c, s = np.cos(angles).astype("f4"), np.sin(angles).astype("f4")
    a, b, cosine, sine = *np.split(x.astype("f8"), 2, 3), c[:, None, None], s[:, None, None]
    q = np.concatenate((a * cosine - b * sine, a * sine + b * cosine), 3).reshape(batch, shared, heads, depth)
    source = turned(heads, shared, most, depth, batch, lists)
    want = expected(q, k, v, pasts, 1)
    got = run(source, (x, k, v, c, s, np.array(pasts, "i8")), "cpu", *options)
    if is_elsewhere(got):
        return source
    if isinstance(got, str) or not np.allclose(got[0], want, 1e-5, 1e-5):
        bad.append(("turned", heads, shared, most, depth, options))
        print(bad[-1], got if isinstance(got, str) else np.abs(got[0] - want).max())
    return source


def kernels(source, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as f:
        f.write(source)
        f.flush()
        done = subprocess.run([PESTLE, "dump", f.name, "--stage", "kernels", *options], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def reads_early(source):
    """Whether attention reads its length, an i64, before it waits for the kernel in front of it."""
    body = kernels(source, "--device", "ref", "--target-cpu", "simt90").partition("kernel @cached_attention")[2]
    before, wait, behind = body.partition("grid_wait")
    early, late = (re.search(r"load @x\[%\d+\] : i64", part) is not None for part in (before, behind))
    if not wait or early == late:
        bad.append("attention does not read a length once, and wait")
    return early


def waits():
    """A length that a kernel in front makes is read behind the wait, one that is given before it."""
    given = text(2, 3, 1, 300, 64, 64)
    made = given.replace("%past: tensor<1xi64>", "%parts: tensor<1x64xi64>").replace(
        "{\n", "{\n  %none = stablehlo.constant dense<0> : tensor<i64>\n  %past = stablehlo.reduce(%parts init: %none) "
        "applies stablehlo.add across dimensions = [1] : (tensor<1x64xi64>, tensor<i64>) -> tensor<1xi64>\n", 1)
    if not reads_early(given) or reads_early(made):
        bad.append("a length is read at the wrong side of the wait")


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
        if is_elsewhere(got):
            continue
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
    # Queries turned by their angles within the kernel, and before it where halves are no vectors.
    for count, how in (1, (3, 3, 64, 64, [40])), (1, (2, 1, 50, 32, [49, 7, 0])), (2, (2, 2, 40, 16, [30])):
        shape, options = dict(batch=len(how[4])), ("--target-cpu", "x86-64-v4")
        said = kernels(turned_case(*how, *options, **shape), *options)
        if said.count("\nkernel ") + said.startswith("kernel ") != count:
            bad.append(f"turned: {how} are not {count} kernels")
            print(said)
    turned_case(2, 2, 40, 16, [30], "--target-cpu", "x86-64-v3")
    turned_case(2, 2, 40, 64, [30, 2, 39], batch=3, lists=3)
    turned_case(2, 2, 40, 64, [30, 2], "--device", "ref", batch=2, lists=2)
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
        for write in "scatter", "update":
            step(2, 3, 300, 64, (0, 1, 127, 128, 299, 300, 1000, -1, -7), write, *lanes)
            step(1, 7, 140, 48, (5, 139), write, *lanes)
        step(2, 4, 256, 32, (0, 200, 255), "update", *lanes, dtype="f2")
    waits()
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
