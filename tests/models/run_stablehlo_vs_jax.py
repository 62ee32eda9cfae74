#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""StableHLO's semantics against XLA: single-op programs, each op on each dtype
that the tables declare, run by XLA's CPU compiler (through jax) and by
`pestle run`.

    run_stablehlo_vs_jax.py [--device llvm] [--only OP] [--keep DIR]

Both get one text. Programs are compiled one by one by XLA, which refuses some
dtypes (counted, with its reason, under --refused), and in batches by Pestle: the
results of many programs are those of one module.

What must be equal: integers and booleans, and the class of every float (NaN,
which infinity). Floats may differ by the tolerance of the op's row, and by what
XLA is known to be off itself:
  - without TRANS: 0 ulp; with it 2 of f32 and f64, 1 of narrower types
    (scalar.def); XLA's own approximations are within 8 ulp of f32 and of f64
    (the worst seen: tan, 6), so 10 in all there
  - reductions, contractions and composites: their inputs are multiples of 1/4 so
    small that all sums are exact in f32; the result is rounded once by each side
  - cholesky, triangular_solve, batch_norm: 64 roundings
Exit code 77: jax is not there.
"""
import argparse
import collections
import itertools
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import jax
    import ml_dtypes
    import numpy as np
    from jaxlib import xla_client
    from jax._src import xla_bridge
except ImportError as error:
    print(f"skipped: no jax ({error}); pip install jax")
    sys.exit(77)

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BATCH = 60

FLOATS = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
          "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
          "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "bf16": ml_dtypes.bfloat16,
          "f16": np.float16, "f32": np.float32, "f64": np.float64}
SIGNED = {"i4": ml_dtypes.int4, "i8": np.int8, "i16": np.int16,
          "i32": np.int32, "i64": np.int64}
UNSIGNED = {"ui4": ml_dtypes.uint4, "ui8": np.uint8, "ui16": np.uint16,
            "ui32": np.uint32, "ui64": np.uint64}
NUMPY = {"i1": np.bool_, **SIGNED, **UNSIGNED, **FLOATS}
REALS = [d for d in NUMPY if d != "i1"]
INTS = [*SIGNED, *UNSIGNED]
BITS = {d: int(re.search(r"\d+", d)[0]) for d in NUMPY}
ONNX = {"i1": "bool", "bf16": "bfloat16", "f16": "float16", "f32": "float32",
        "f64": "float64", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2",
        "f8E4M3FNUZ": "float8_e4m3fnuz", "f8E5M2FNUZ": "float8_e5m2fnuz",
        **{d: f"int{BITS[d]}" for d in SIGNED},
        **{d: f"uint{BITS[d]}" for d in UNSIGNED}}
KINDS = {"K_ALL": list(NUMPY), "K_NUM": list(NUMPY), "K_BITS": ["i1", *INTS],
         "K_SIGNED": [*SIGNED, *FLOATS], "K_FLOAT": list(FLOATS),
         "K_INT": INTS, "K_FIELD": REALS, "K_PLANE": list(FLOATS),
         "PESTLE_KIND_REAL": REALS}  # complex types are left out


def tensor(shape, dtype):
    return f"tensor<{''.join(f'{n}x' for n in shape)}{dtype}>"


# --- Inputs ---

EDGES = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -7, 10, 88, -88, 1e-3,
         1e10, -1e10, 3e38, np.inf, -np.inf, np.nan, 0.25, 100.25, -0.99]


def neutral(op, dtype):
    """What a reduction may take in any number of times, as the specification lets
    it: XLA drops it where no axis is reduced."""
    if op in ("add", "or", "xor", "multiply"):
        return int(op == "multiply")
    if dtype == "i1":
        return int(op in ("minimum", "and"))
    if op == "and":
        return -1 if dtype in SIGNED else (1 << BITS[dtype]) - 1
    if dtype in FLOATS:
        return -16 if op == "maximum" else 16
    low = -(1 << (BITS[dtype] - 1)) if dtype in SIGNED else 0
    return low if op == "maximum" else low + (1 << BITS[dtype]) - 1


def values(rng, shape, dtype, fill):
    """An array; |fill|: edges, grid, unit, scale, ('index', limit), or
    ('neutral', op)."""
    n = int(np.prod(shape, dtype=np.int64))
    kind = NUMPY[dtype]
    if isinstance(fill, tuple) and fill[0] == "neutral":
        wide = (np.uint64 if dtype in UNSIGNED else np.float64
                if dtype in FLOATS else np.int64)
        return np.full(shape, neutral(fill[1], dtype), wide).astype(kind)
    if dtype == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if isinstance(fill, tuple):
        low = -2 if dtype in SIGNED else 0
        return rng.integers(low, fill[1] + 3, shape).astype(kind)
    if dtype not in FLOATS:
        low = -(1 << (BITS[dtype] - 1)) if dtype in SIGNED else 0
        high = low + (1 << BITS[dtype]) - 1
        if fill != "edges":
            low, high = max(low, -4), min(high, 4)
        out = [low + int.from_bytes(rng.bytes(8), "little") % (high - low + 1)
               for _ in range(n)]
        if fill == "edges":
            for i in range(0, n, 3):
                out[i] = [0, low, high, 1, low + 1][i // 3 % 5]
            if low < 0:
                out[1::5] = [-1] * len(out[1::5])
        wide = np.array(out, dtype=object).reshape(shape)
        return wide.astype(np.uint64 if low >= 0 else np.int64).astype(kind)
    if fill == "edges":
        out = rng.uniform(-4, 4, n)
        out[::2] = [EDGES[(i * 7 + n) % len(EDGES)]
                    for i in range(len(out[::2]))]
    elif fill == "grid":
        out = rng.integers(-8, 9, n) / 4
    else:
        out = rng.uniform(-1, 1, n) if fill == "unit" else rng.uniform(.5, 1.5,
                                                                       n)
    with np.errstate(all="ignore"):
        return out.astype(kind).reshape(shape)


# --- Programs ---

class Program:
    """One op: |body| makes %r0, %r1 ... from %a0, %a1 ..."""

    def __init__(self, op, dtype, what, args, body, results, tolerance=0):
        self.op, self.dtype, self.what = op, dtype, what
        self.args, self.body, self.results = args, body, results
        self.tolerance = tolerance  # in ulp of the result
        self.flat = False  # of 1, where the result is smaller
        self.plain = None  # the exact result, of the arguments in f64

    def name(self):
        return f"{self.op} on {self.dtype}{', ' if self.what else ''}{self.what}"

    def text(self):
        args = ", ".join(f"%a{i}: {tensor(s, d)}"
                         for i, (s, d, _) in enumerate(self.args))
        types = ", ".join(self.results)
        out = ", ".join(f"%r{i}" for i in range(len(self.results)))
        return (f"module {{ func.func public @main({args}) -> ({types}) {{\n"
                f"{self.body}\nfunc.return {out} : {types} }} }}")


def generic(op, operands, types, result, attrs="", regions=""):
    attrs = f" <{{{attrs}}}>" if attrs else ""
    return (f'%r0 = "{op}"({", ".join(operands)}){attrs}{regions} : '
            f"({', '.join(types)}) -> {result}")


def simple(op, dtype, args, result, attrs="", what="", regions="", tolerance=0):
    """An op whose operands are the arguments, with one result."""
    body = generic(op, [f"%a{i}" for i in range(len(args))],
                   [tensor(s, d) for s, d, _ in args], result, attrs, regions)
    return Program(op, dtype, what, args, body, [result], tolerance)


def array(numbers):
    return "array<i64" + (": " if numbers else "") + ", ".join(
        map(str, numbers)) + ">"


def scalar_rows():
    text = (SOURCE / "include/pestle/scalar.def").read_text()
    for line in text.splitlines():
        if line.startswith("PESTLE_SCALAR("):
            f = [x.strip() for x in line[14:].split(",", 7)]
            yield f[0], f[2].strip('"'), int(f[3]), f[4], f[5], f[6]


SHAPES = [(37,), (), (3, 1, 7)]


def scalars(skipped):
    for name, op, arity, rule, kinds, flags in scalar_rows():
        if op.startswith("pestle."):
            skipped[f"{op}: no StableHLO op"] += 1
            continue
        for i, dtype in enumerate(KINDS[kinds]):
            shape = SHAPES[0] if i % 3 else SHAPES[(i // 3) % 3]
            trans = "TRANS" in flags and dtype in FLOATS
            wide = dtype in ("f32", "f64")
            ulps = 10 if trans and wide else 1 if trans else 0
            kind = [dtype] * arity
            result = "i1" if rule in ("COMPARE", "TEST") else dtype
            if rule == "SELECT":
                kind[0] = "i1"
            attrs = ""
            if rule == "COMPARE":
                attrs = (f"comparison_direction = #stablehlo<comparison_direction"
                         f" {name}>")
            args = [(shape, k, "edges") for k in kind]
            if rule == "CLAMP":
                args = [((), dtype, "unit"), (shape, dtype, "edges"),
                        (shape, dtype, "scale")]
            yield simple(op, dtype, args, tensor(shape, result), attrs,
                         name if rule == "COMPARE" else "", tolerance=ulps)


def conversions():
    for a, b in itertools.product(NUMPY, NUMPY):
        yield simple("stablehlo.convert", a, [((48,), a, "edges")],
                     tensor((48,), b), what=f"to {b}")
        wide, narrow = BITS[a], BITS[b]
        if "i1" in (a, b) or a == b:
            continue
        if wide == narrow:
            shapes = ((24,), (24,))
        elif wide > narrow:
            shapes = ((6,), (6, wide // narrow))
        else:
            shapes = ((6, narrow // wide), (6,))
        # What a NaN's bits are is not said.
        yield simple("stablehlo.bitcast_convert", a, [(shapes[0], a, "grid")],
                     tensor(shapes[1], b), what=f"to {b}")


def moves(d):
    any_ = "edges"
    if d != "i1":
        for dim in (0, 1):
            yield simple("stablehlo.iota", d, [], tensor((3, 5), d),
                         f"iota_dimension = {dim} : i64", f"dim {dim}")
    for s, t, dims in (((), (3, 4), []), ((4,), (3, 4), [1]),
                       ((3, 1), (3, 5), [0, 1]), ((4, 3), (3, 2, 4), [2, 0])):
        yield simple("stablehlo.broadcast_in_dim", d, [(s, d, any_)],
                     tensor(t, d), f"broadcast_dimensions = {array(dims)}",
                     f"{s} to {t}")
    yield simple("stablehlo.reshape", d, [((3, 4, 5), d, any_)],
                 tensor((6, 10), d))
    for p in ((1, 0, 2), (2, 1, 0)):
        yield simple("stablehlo.transpose", d, [((3, 4, 5), d, any_)],
                     tensor([(3, 4, 5)[i] for i in p], d),
                     f"permutation = {array(p)}", str(p))
    yield simple("stablehlo.slice", d, [((7, 9), d, any_)], tensor((3, 4), d),
                 f"start_indices = {array([1, 2])}, limit_indices = "
                 f"{array([4, 9])}, strides = {array([1, 2])}")
    for dims in ([0], [0, 1]):
        yield simple("stablehlo.reverse", d, [((4, 7), d, any_)],
                     tensor((4, 7), d), f"dimensions = {array(dims)}",
                     str(dims))
    for low, high, inner in (([1, 0], [2, 3], [0, 0]), ([-1, 2], [0, -2],
                             [1, 2]), ([0, -1], [1, -1], [2, 0])):
        shape = [n + (n - 1) * k + a + b
                 for n, k, a, b in zip((4, 6), inner, low, high)]
        yield simple("stablehlo.pad", d, [((4, 6), d, any_), ((), d, "scale")],
                     tensor(shape, d), f"edge_padding_low = {array(low)}, "
                     f"edge_padding_high = {array(high)}, interior_padding = "
                     f"{array(inner)}", f"{low} {high} {inner}")
    yield simple("stablehlo.concatenate", d, [((2, 3), d, any_),
                                              ((2, 0), d, any_),
                                              ((2, 5), d, any_)],
                 tensor((2, 8), d), "dimension = 1 : i64")
    for at in ("i32", "ui8", "i64"):
        yield simple("stablehlo.dynamic_slice", d, [((5, 7), d, any_),
                     ((), at, ("index", 4)), ((), at, ("index", 4))],
                     tensor((2, 3), d), f"slice_sizes = {array([2, 3])}",
                     f"at {at}")
        yield simple("stablehlo.dynamic_update_slice", d, [((5, 7), d, any_),
                     ((2, 3), d, any_), ((), at, ("index", 4)),
                     ((), at, ("index", 4))], tensor((5, 7), d), "",
                     f"at {at}")


def gathers(d):
    any_ = "edges"
    yield simple("stablehlo.gather", d, [((6, 5), d, any_),
                 ((7,), "i32", ("index", 6))], tensor((7, 5), d),
                 "dimension_numbers = #stablehlo.gather<offset_dims = [1], "
                 "collapsed_slice_dims = [0], start_index_map = [0], "
                 "index_vector_dim = 1>, indices_are_sorted = false, "
                 f"slice_sizes = {array([1, 5])}", "rows")
    yield simple("stablehlo.gather", d, [((6, 5), d, any_),
                 ((2, 4), "i64", ("index", 5))], tensor((3, 2, 4), d),
                 "dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], "
                 "start_index_map = [1, 0], index_vector_dim = 0>, "
                 "indices_are_sorted = false, "
                 f"slice_sizes = {array([3, 2])}", "windows")
    yield simple("stablehlo.gather", d, [((6, 5), d, any_),
                 ((4, 6), "i32", ("index", 5))], tensor((4, 6), d),
                 "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = "
                 "[1], operand_batching_dims = [0], start_indices_batching_dims"
                 " = [1], start_index_map = [1], index_vector_dim = 2>, "
                 "indices_are_sorted = false, "
                 f"slice_sizes = {array([1, 1])}", "batched")


def region(d, op, results="", count=2, attrs="", second=None):
    """A region of one op on its first two scalars."""
    s = tensor((), d)
    args = ", ".join(f"%p{i}: {s}" for i in range(count))
    out = results or s
    return (f"({{\n^bb0({args}):\n%q = \"{op}\"(%p0, %p1) {attrs}: ({s}, {s}) -> "
            f"{out}\n\"stablehlo.return\"(%q) : ({out}) -> ()\n}}"
            f"{second or ''})")


def compare_region(d, direction, second=None):
    return region(d, "stablehlo.compare", "tensor<i1>", attrs=(
        "<{comparison_direction = #stablehlo<comparison_direction "
        f"{direction}>}}> "), second=second)


def window_sums(x, size, stride, base, dilation, pad):
    """Of each row's windows."""
    row = np.zeros((len(x), (x.shape[1] - 1) * base + 1))
    row[:, ::base] = x
    row = np.pad(row, ((0, 0), pad))
    last = row.shape[1] - (size - 1) * dilation
    return np.stack([row[:, at:at + (size - 1) * dilation + 1:dilation].sum(1)
                     for at in range(0, last, stride)], 1)


def reductions(d):
    """XLA rounds partial sums of 8 bits, Pestle the sum: that is held against plain
    arithmetic where they differ."""
    floats = d in FLOATS
    ops = ["add", "multiply", "maximum", "minimum"]
    if not floats:
        ops += ["and", "or"] + (["xor"] if d != "i1" else [])
    for op in ops:
        for dims in ([0], [1], [0, 1], []):
            shape = [n for i, n in enumerate((3, 5)) if i not in dims]
            # Products of few numbers near 1 are rounded in any order.
            ulps = (8 if op == "multiply" else 1) if floats else 0
            fill = "scale" if op == "multiply" else "grid"
            p = simple("stablehlo.reduce", d, [((3, 5), d, fill),
                       ((), d, ("neutral", op))], tensor(shape, d),
                       f"dimensions = {array(dims)}", f"{op} {dims}",
                       region(d, f"stablehlo.{op}"), ulps)
            if floats and op == "add" and BITS[d] == 8:
                p.plain = lambda x, _, dims=tuple(dims): np.sum(x, dims)
            yield p
    for op, (size, stride, base, dil, pad) in itertools.product(
            ("add", "maximum"), ((3, 1, 1, 1, (1, 1)), (2, 2, 1, 1, (0, 0)),
                                 (2, 1, 2, 1, (1, 0)), (2, 1, 1, 2, (0, 2)))):
        n = ((9 - 1) * base + 1 + sum(pad) - ((size - 1) * dil + 1)) // stride
        p = simple("stablehlo.reduce_window", d, [((2, 9), d, "grid"),
                   ((), d, ("neutral", op))], tensor((2, n + 1), d),
                   f"window_dimensions = {array([1, size])}, window_strides = "
                   f"{array([1, stride])}, base_dilations = "
                   f"{array([1, base])}, window_dilations = {array([1, dil])},"
                   f" padding = dense<[[0, 0], [{pad[0]}, {pad[1]}]]> : "
                   "tensor<2x2xi64>", f"{op} {size} {stride} {base} {dil}",
                   region(d, f"stablehlo.{op}"), 1 if floats else 0)
        if floats and op == "add" and BITS[d] == 8:
            p.plain = lambda x, _, how=(size, stride, base, dil, pad): window_sums(
                x, *how)
        yield p


def contractions(d):
    floats = d in FLOATS
    outs = [d]
    if floats and d != "f64":
        outs = ["f32"] if BITS[d] < 32 else [d]
    elif not floats and d != "i1" and BITS[d] < 32:
        outs = [d, "i32" if d in SIGNED else "ui32"]
    for out in outs:
        for lhs, rhs, lb, rb, lc, rc, shape in (
                ((4, 7), (7, 5), [], [], [1], [0], (4, 5)),
                ((7, 4), (5, 7), [], [], [0], [1], (4, 5)),
                ((2, 4, 7), (2, 7, 5), [0], [0], [2], [1], (2, 4, 5)),
                ((7,), (7,), [], [], [0], [0], ())):
            yield simple("stablehlo.dot_general", d, [(lhs, d, "grid"),
                         (rhs, d, "grid")], tensor(shape, out),
                         "dot_dimension_numbers = #stablehlo.dot<"
                         f"lhs_batching_dimensions = {lb}, "
                         f"rhs_batching_dimensions = {rb}, "
                         f"lhs_contracting_dimensions = {lc}, "
                         f"rhs_contracting_dimensions = {rc}>",
                         f"{lhs} {rhs} to {out}", tolerance=1 if floats else 0)
        for stride, pad, ld, rd, rev, groups, features in (
                (1, 1, 1, 1, "false", 1, 2), (2, 0, 1, 1, "false", 1, 2),
                (1, 1, 2, 1, "true", 1, 2), (1, 2, 1, 2, "false", 2, 4)):
            n = ((6 - 1) * ld + 1 + 2 * pad - 2 * rd - 1) // stride + 1
            yield simple("stablehlo.convolution", d, [
                ((2, features, 6), d, "grid"),
                ((4, features // groups, 3), d, "grid")],
                tensor((2, 4, n), out),
                f"window_strides = {array([stride])}, padding = dense<[[{pad}, "
                f"{pad}]]> : tensor<1x2xi64>, lhs_dilation = {array([ld])}, "
                f"rhs_dilation = {array([rd])}, window_reversal = array<i1: "
                f"{rev}>, dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, "
                f"0]->[b, f, 0]>, feature_group_count = {groups} : i64, "
                "batch_group_count = 1 : i64",
                f"{stride} {pad} {ld} {rd} {rev} {groups} to {out}",
                tolerance=1 if floats else 0)


def control(d):
    t = tensor((3, 4), d)
    state = "tensor<i32>, " + t + ", " + t
    body = f"""%c0 = "stablehlo.constant"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
%w:3 = "stablehlo.while"(%c0, %a0, %a1) ({{
^bb0(%i: tensor<i32>, %x: {t}, %y: {t}):
%n = "stablehlo.constant"() <{{value = dense<3> : tensor<i32>}}> : () -> tensor<i32>
%p = "stablehlo.compare"(%i, %n) <{{comparison_direction = #stablehlo<comparison_direction LT>}}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
"stablehlo.return"(%p) : (tensor<i1>) -> ()
}}, {{
^bb0(%i: tensor<i32>, %x: {t}, %y: {t}):
%k = "stablehlo.constant"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
%j = "stablehlo.add"(%i, %k) : (tensor<i32>, tensor<i32>) -> tensor<i32>
"stablehlo.return"(%j, %y, %x) : ({state}) -> ()
}}) : ({state}) -> ({state})
%r0 = "stablehlo.reshape"(%w#1) : ({t}) -> {t}"""
    args = [((3, 4), d, "edges"), ((3, 4), d, "edges")]
    yield Program("stablehlo.while", d, "", args, body, [t])
    one = f'"stablehlo.return"(%a0) : ({t}) -> ()'
    two = f'"stablehlo.return"(%a1) : ({t}) -> ()'
    yield Program("stablehlo.if", d, "", args + [((), "i1", "edges")],
                  f'%r0 = "stablehlo.if"(%a2) ({{\n{one}\n}}, {{\n{two}\n}}) : '
                  f"(tensor<i1>) -> {t}", [t])
    yield Program("stablehlo.case", d, "",
                  args + [((), "i32", ("index", 1))],
                  f'%r0 = "stablehlo.case"(%a2) ({{\n{one}\n}}, {{\n{two}\n}}) '
                  f": (tensor<i32>) -> {t}", [t])
    yield simple("stablehlo.optimization_barrier", d, args[:1], t)


def direct(d):
    floats = d in FLOATS
    for dim, order in ((0, "LT"), (1, "GT")):
        yield simple("stablehlo.sort", d, [((5, 7), d, "grid")],
                     tensor((5, 7), d),
                     f"dimension = {dim} : i64, is_stable = true",
                     f"{dim} {order}", compare_region(d, order))
    for op in ("add", "maximum", None):
        s = tensor((), d)
        body = (region(d, f"stablehlo.{op}") if op else
                f"({{\n^bb0(%p0: {s}, %p1: {s}):\n\"stablehlo.return\"(%p1) : "
                f"({s}) -> ()\n}})")
        yield simple("stablehlo.scatter", d, [((6, 5), d, "grid"),
                     ((4,), "i32", ("index", 6)), ((4, 5), d, "grid")],
                     tensor((6, 5), d), "indices_are_sorted = false, "
                     "scatter_dimension_numbers = #stablehlo.scatter<"
                     "update_window_dims = [1], inserted_window_dims = [0], "
                     "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,"
                     " unique_indices = false", str(op), body,
                     1 if floats else 0)
    s = tensor((), d)
    second = (f", {{\n^bb0(%p0: {s}, %p1: {s}):\n%q = \"stablehlo.add\"(%p0, "
              f"%p1) : ({s}, {s}) -> {s}\n\"stablehlo.return\"(%q) : ({s}) -> "
              "()\n}")
    for size, stride, pad, n in ((2, 2, 0, 4), (3, 1, 1, 8)):
        yield simple("stablehlo.select_and_scatter", d, [((2, 8), d, "grid"),
                     ((2, n), d, "grid"), ((), d, "grid")], tensor((2, 8), d),
                     f"window_dimensions = {array([1, size])}, window_strides = "
                     f"{array([1, stride])}, padding = dense<[[0, 0], [{pad}, "
                     f"{pad}]]> : tensor<2x2xi64>", f"{size} {stride}",
                     compare_region(d, "GE", second), 1 if floats else 0)
    yield simple("stablehlo.map", d, [((3, 4), d, "edges"),
                 ((3, 4), d, "edges")], tensor((3, 4), d),
                 f"dimensions = {array([0, 1])}", "",
                 region(d, "stablehlo.maximum"))


def floats_only(d):
    for e, m in ((5, 10), (8, 7), (4, 3), (11, 52)):
        yield simple("stablehlo.reduce_precision", d, [((48,), d, "edges")],
                     tensor((48,), d), f"exponent_bits = {e} : i32, "
                     f"mantissa_bits = {m} : i32", f"e{e}m{m}")
    yield simple("stablehlo.batch_norm_inference", d, [((4, 6), d, "unit"),
                 ((6,), d, "scale"), ((6,), d, "unit"), ((6,), d, "unit"),
                 ((6,), d, "scale")], tensor((4, 6), d),
                 "epsilon = 1.250000e-01 : f32, feature_index = 1 : i64",
                 tolerance=64)


def linear_algebra(d):
    for lower in ("true", "false"):
        # 8 on the diagonal, by an addition of the identity.
        t = tensor((4, 4), d)
        body = f"""%i = "stablehlo.iota"() <{{iota_dimension = 0 : i64}}> : () -> tensor<4x4xi32>
%j = "stablehlo.iota"() <{{iota_dimension = 1 : i64}}> : () -> tensor<4x4xi32>
%e = "stablehlo.compare"(%i, %j) <{{comparison_direction = #stablehlo<comparison_direction EQ>}}> : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
%c = "stablehlo.constant"() <{{value = dense<8.0> : {t}}}> : () -> {t}
%m = "stablehlo.select"(%e, %c, %a0) : (tensor<4x4xi1>, {t}, {t}) -> {t}
"""
        # XLA leaves the other half as it is.
        side = "GE" if lower == "true" else "LE"
        half = f"""%k = "stablehlo.compare"(%i, %j) <{{comparison_direction = #stablehlo<comparison_direction {side}>}}> : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
%z = "stablehlo.constant"() <{{value = dense<0.0> : {t}}}> : () -> {t}
%r0 = "stablehlo.select"(%k, %f, %z) : (tensor<4x4xi1>, {t}, {t}) -> {t}"""
        yield Program("stablehlo.cholesky", d, lower, [((4, 4), d, "unit")],
                      body + f'%f = "stablehlo.cholesky"(%m) <{{lower = {lower}'
                      f"}}> : ({t}) -> {t}\n" + half, [t], 64)
        for left, turned in itertools.product(("true", "false"),
                                              ("NO_TRANSPOSE", "TRANSPOSE")):
            b = tensor((4, 3) if left == "true" else (3, 4), d)
            shape = (4, 3) if left == "true" else (3, 4)
            yield Program(
                "stablehlo.triangular_solve", d, f"{lower} {left} {turned}",
                [((4, 4), d, "unit"), (shape, d, "unit")], body +
                f'%r0 = "stablehlo.triangular_solve"(%m, %a1) <{{left_side = '
                f"{left}, lower = {lower}, transpose_a = #stablehlo<transpose "
                f"{turned}>, unit_diagonal = false}}> : ({t}, {b}) -> {b}", [b],
                64)


def chlo_rows():
    """Ops that are read as formulas. XLA's own approximations of the special
    functions are off by up to 40 ulp of the larger of y and 1, where a sum
    cancels."""
    text = (SOURCE / "ir/chlo.def").read_text()
    for op, base, how, ulps in re.findall(
            r"^PESTLE_CHLO\((\w+), +(\w+), +(\w+), +(\d+)", text, re.M):
        arity = 2 if base in ("ATAN2", "SHIFT_LEFT") else 1
        for d in INTS if base == "SHIFT_LEFT" else FLOATS:
            if BITS[d] < 8:
                continue
            wide = d in ("f32", "f64")
            exact = how == "SELF"
            result = "i1" if base == "IS_FINITE" else d
            args = [((37,), d, "edges")] * arity
            if op == "zeta":
                args[0] = ((37,), d, "grid")
            p = simple(f"chlo.{op}", d, args, tensor((37,), result),
                       tolerance=0 if exact else 40 if wide else 1)
            p.flat = not exact
            yield p


def programs(skipped):
    yield from scalars(skipped)
    yield from chlo_rows()
    yield from conversions()
    for d in NUMPY:
        yield from moves(d)
        yield from gathers(d)
        yield from reductions(d)
        yield from control(d)
        yield from direct(d)
        yield from contractions(d)
        if d in FLOATS:
            yield from floats_only(d)
            yield from linear_algebra(d)


# --- Running ---

class Xla:
    def __init__(self):
        jax.config.update("jax_enable_x64", True)
        self.client = xla_bridge.get_backend("cpu")
        self.devices = xla_client.DeviceList(
            tuple(self.client.local_devices()[:1]))

    def run(self, text, inputs):
        made = self.client.compile_and_load(text, self.devices,
                                            xla_client.CompileOptions())
        out = made.execute_sharded([jax.device_put(a) for a in inputs])
        return [np.asarray(a[0])
                for a in out.disassemble_into_single_device_arrays()]


def as_file(a):
    if a.dtype.kind != "V" and a.dtype in (np.bool_, np.float16, np.float32,
                                           np.float64):
        return a
    if a.dtype == ml_dtypes.int4:
        return a.astype(np.int8).view(np.uint8)
    if a.dtype == ml_dtypes.uint4:
        return a.astype(np.uint8)
    if a.dtype.kind in "iu":
        return a
    return a.view(np.uint16 if a.dtype.itemsize == 2 else np.uint8)


def from_file(a, dtype):
    kind = np.dtype(NUMPY[dtype])
    if dtype == "i4":
        return a.view(np.int8).astype(kind)
    if dtype == "ui4":
        return a.view(np.uint8).astype(kind)
    return a if a.dtype == kind else a.view(kind)


def rename(program, k):
    """The program's body with names that no other has."""
    body = re.sub(r"%([a-z]+)(\d*)\b",
                  lambda m: f"%{m[1]}{m[2]}_{k}", program.body)
    return re.sub(r"\^bb0", f"^bb{k}", body)


def batch_text(batch):
    args, types, out, bodies = [], [], [], []
    for k, p in enumerate(batch):
        args += [f"%a{i}_{k}: {tensor(s, d)}"
                 for i, (s, d, _) in enumerate(p.args)]
        bodies.append(rename(p, k))
        out += [f"%r{i}_{k}" for i in range(len(p.results))]
        types += p.results
    body = "\n".join(bodies)
    return (f"module {{ func.func public @main({', '.join(args)}) -> "
            f"({', '.join(types)}) {{\n{body}\nfunc.return {', '.join(out)} : "
            f"{', '.join(types)} }} }}")


def run_pestle(pestle, device, batch, inputs, folder):
    """The results of each program, or the error."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    lines, n = [], 0
    for p, arrays in zip(batch, inputs):
        for (s, d, _), a in zip(p.args, arrays):
            shape = "x".join(map(str, s)) or "scalar"
            lines.append(f"input {n} {ONNX[d]} {shape} {n}.npy ")
            np.save(os.path.join(folder, f"{n}.npy"), as_file(a))
            n += 1
    with open(os.path.join(folder, "io.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    model = os.path.join(folder, "batch.mlir")
    with open(model, "w", encoding="utf-8") as f:
        f.write(batch_text(batch))
    done = subprocess.run(
        [pestle, "run", model, "--inputs", folder, "--outputs",
         os.path.join(folder, "out"), "--device", device, "--no-cache"],
        capture_output=True, text=True, check=False)
    if done.returncode:
        return None, done.stderr.strip() or f"exit code {done.returncode}"
    results, k = [], 0
    for p in batch:
        mine = []
        for t in p.results:
            dtype = re.search(r"([a-z]\w*)>$", t)[1].split("x")[-1]
            a = np.load(os.path.join(folder, "out", f"output_{k}.npy"))
            mine.append(from_file(a, dtype))
            k += 1
        results.append(mine)
    return results, None


def step(x, kind):
    """The distance to the next number, of |kind|, as f64."""
    info = ml_dtypes.finfo(kind)
    with np.errstate(all="ignore"):
        e = np.floor(np.log2(np.maximum(np.abs(x), float(info.smallest_normal))))
    return np.exp2(e) * float(info.eps)


def compare(p, want, got):
    """None, or what differs."""
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{want.dtype}{want.shape} became {got.dtype}{got.shape}"
    if want.dtype.kind in "iub" or want.dtype in (ml_dtypes.int4,
                                                  ml_dtypes.uint4):
        wrong = want != got
        wide = object
    else:
        wide = np.float64
        w, g = want.astype(wide), got.astype(wide)
        with np.errstate(all="ignore"):
            size = np.maximum(np.abs(w), 1) if p.flat else w
            near = np.abs(w - g) <= p.tolerance * step(size, want.dtype)
        if p.tolerance == 64:
            near |= np.abs(w - g) <= 64 * float(ml_dtypes.finfo(
                want.dtype).eps)
        wrong = ~((w == g) | (np.isnan(w) & np.isnan(g)) | near)
    if not wrong.any():
        return None
    at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    one = lambda a: np.atleast_1d(a.astype(wide))[at]
    return (f"{int(wrong.sum())} of {wrong.size} differ, first {at}: "
            f"{one(got)}, XLA has {one(want)}")


def wrapped(value, dtype):
    bits = BITS[dtype]
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype in SIGNED and value >> (
        bits - 1) else value


def plain_power(dtype, a, b):
    if b < 0:  # rounds towards zero
        return a ** (-b % 2) if a in (1, -1) else 0
    return pow(a, b, 1 << BITS[dtype])


# Where XLA's CPU compiler (jax 0.10.2) is wrong: results are held against plain
# integers. It takes large unsigned exponents for negative ones and multiplies
# negative exponents out, and counts the copies of an i4's sign.
PLAIN = {
    "stablehlo.power": plain_power,
    "stablehlo.popcnt": lambda d, a: (a & ((1 << BITS[d]) - 1)).bit_count(),
    "stablehlo.count_leading_zeros": lambda d, a: BITS[d] - (
        a & ((1 << BITS[d]) - 1)).bit_length(),
}


def inverse_erf(x):
    """Newton's steps from a start that is right to 2 parts in 1,000, with erfc
    where 1 - |x| has more digits."""
    a = abs(x)
    if not a < 1:
        return math.copysign(math.inf, x) if a == 1 else math.nan
    tail = math.log1p(-a * a)
    half = 4.330746750799873 + tail / 2
    y = math.sqrt(math.sqrt(half * half - tail / 0.147) - half)
    y = max(y, a * 0.886226925452758)
    for _ in range(6):
        miss = a - math.erf(y) if a < 0.5 else math.erfc(y) - (1 - a)
        y += miss * math.exp(y * y) * 0.886226925452758
    return math.copysign(y, x)


def each(fn):
    return lambda a: np.array([fn(float(v)) for v in a.reshape(-1)],
                              np.longdouble).reshape(a.shape)


# XLA's approximations of f64 are off by tens of ulp in places, and it takes
# subnormal numbers for 0: then the row's own tolerance is held against long
# doubles.
PLAIN_FLOATS = {
    "exponential": np.exp, "exponential_minus_one": np.expm1, "log": np.log,
    "log_plus_one": np.log1p, "tanh": np.tanh, "sine": np.sin,
    "cosine": np.cos, "tan": np.tan, "cbrt": np.cbrt, "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a), "atan2": np.arctan2, "power": np.power,
    "logistic": lambda a: 1 / (1 + np.exp(-a)),
    "chlo.erfc": each(math.erfc), "chlo.erf_inv": each(inverse_erf),
}


def is_near_plain(p, arrays, got):
    row = PLAIN_FLOATS.get(p.op.removeprefix("stablehlo."))
    if not row:
        return False
    with np.errstate(all="ignore"):
        want = row(*(a.astype(np.longdouble) for a in arrays))
        kind = got[0].dtype
        rounded = want.astype(np.float64).astype(kind).astype(np.longdouble)
        g = got[0].astype(np.longdouble)
        ulps = 2 if p.dtype in ("f32", "f64") else 1
        near = np.abs(g - want) <= (ulps + 0.5) * step(
            want.astype(np.float64), kind)
    return bool(((g == rounded) | (np.isnan(g) & np.isnan(want)) | near).all())


def is_plainly_right(p, arrays, got):
    if p.plain:
        want = p.plain(*(a.astype(np.float64) for a in arrays))
        return bool((got[0].astype(np.float64) == want.astype(
            got[0].dtype).astype(np.float64)).all())
    if p.dtype in FLOATS:
        return is_near_plain(p, arrays, got)
    if p.op not in PLAIN or p.dtype not in INTS:
        return False
    columns = [[int(x) for x in a.reshape(-1)] for a in arrays]
    want = [wrapped(PLAIN[p.op](p.dtype, *row), p.dtype)
            for row in zip(*columns)]
    return want == [int(x) for x in got[0].reshape(-1)]


def run_all(options):
    skipped = collections.Counter()
    refused = collections.defaultdict(list)
    xla, rng = Xla(), np.random.default_rng(7)
    covered, bad, counts = set(), [], collections.Counter()

    def report(line):
        print(line, flush=True)
        bad.append(line)

    def judge(items, results):
        for p, arrays, want, got in items:
            text = [compare(p, w, g) for w, g in zip(want, got)]
            text = next((t for t in text if t), None)
            if text and is_plainly_right(p, arrays, got):
                counts["same"] += 1
                counts["plain"] += 1
                text = None
            else:
                counts["different" if text else "same"] += 1
            covered.add((p.op, p.dtype))
            if text:
                report(f"{p.name()}: {text}")

    def flush(part):
        """Runs a batch; one that fails is halved until the program is found."""
        if not part:
            return
        results, error = run_pestle(options.pestle, options.device,
                                    [i[0] for i in part], [i[1] for i in part],
                                    options.folder)
        if error and len(part) > 1:
            flush(part[:len(part) // 2])
            flush(part[len(part) // 2:])
        elif error:
            counts["failed"] += 1
            report(f"{part[0][0].name()}: {error[:300]}")
        else:
            judge([(p, a, w, g) for (p, a, w), g in zip(part, results)],
                  results)

    part = []
    for p in programs(skipped):
        if options.only and not re.search(options.only, p.op):
            continue
        arrays = [values(rng, s, d, fill) for s, d, fill in p.args]
        try:
            want = xla.run(p.text(), arrays)
        except Exception as error:  # XLA's refusals have many classes
            reason = str(error).strip().splitlines()[0][:120]
            refused[p.op].append(f"{p.dtype} {p.what}: {reason}")
            continue
        part.append((p, arrays, want))
        if len(part) == BATCH:
            flush(part)
            part = []
    flush(part)
    return counts, covered, bad, skipped, refused


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="llvm")
    parser.add_argument("--only", help="a pattern that an op's name must have")
    parser.add_argument("--refused", action="store_true",
                        help="list what XLA refuses")
    build = pathlib.Path(os.environ.get("PESTLE_BUILD_DIR",
                                        SOURCE / "build" / "release"))
    parser.add_argument("--pestle", default=str(build / "pestle"))
    parser.add_argument("--keep", help="folder of the last batch")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        options.folder = options.keep or os.path.join(folder, "batch")
        counts, covered, bad, skipped, refused = run_all(options)
    for reason, n in skipped.items():
        print(f"left out: {reason}")
    left = sum(map(len, refused.values()))
    if options.refused:
        for op, lines in refused.items():
            for line in lines:
                print(f"refused by XLA: {op} on {line}")
    else:
        for op, lines in refused.items():
            print(f"refused by XLA: {op}: {len(lines)} programs, as on "
                  f"{lines[0]}")
    print(f"{counts['same']} programs agree, {counts['different']} differ, "
          f"{counts['failed']} fail; {counts['plain']} agree with plain "
          f"arithmetic where XLA does not; {len(covered)} pairs of op and dtype; XLA "
          f"refuses {left} more")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
