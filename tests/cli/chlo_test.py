#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ops of CHLO that are read as formulas (ir/chlo.def), on ref and llvm: over their
range and on edges, against the C library's doubles or chlo_values.txt; those of
complex numbers against its long doubles; top_k in both forms of text, ragged_dot in
its three ways. Exits 77 without numpy.

    chlo_test.py            prints the largest error of each
    chlo_test.py --write    makes chlo_values.txt anew; needs mpmath
"""

import itertools
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
VALUES = HERE / "chlo_values.txt"
TABLE = (HERE.parents[1] / "ir" / "chlo.def").read_text()
PESTLE = os.path.join(os.environ.get("PESTLE_BUILD_DIR", ""), "pestle")
EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, math.inf, -math.inf, math.nan, 1e-40,
         -1e-40, 1e-300, 1e-7, -1e-7, 0.5, 1e30, -1e30, 88.5, -89.2, 1e-20]
# Op to the function, and the range of arguments.
OPS = {
    "asin": (math.asin, -1, 1), "acos": (math.acos, -1, 1),
    "atan": (math.atan, -30, 30), "sinh": (math.sinh, -89, 89),
    "cosh": (math.cosh, -89, 89), "asinh": (math.asinh, -1e5, 1e5),
    "acosh": (math.acosh, 1, 1e5), "atanh": (math.atanh, -1, 1),
    "square": (lambda v: v * v, -200, 200),
}
# Narrow types are rounded once, from f32.
ROWS_OF_TABLE = re.findall(r"PESTLE_CHLO\((\w+), +\w+, +\w+, +(\d+)", TABLE)
ULPS = {op: int(ulps) for op, ulps in ROWS_OF_TABLE}
COMPLEX_ROWS = re.findall(r"PESTLE_CHLO_COMPLEX\((\w+), +(\d+), +(\w+)\)", TABLE)
NAMES = {"float16": "f16", "float32": "f32", "float64": "f64",
         "complex64": "complex<f32>", "complex128": "complex<f64>",
         **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
         **{f"uint{n}": f"ui{n}" for n in (8, 16, 32, 64)}}


def exact(fn, v):
    try:
        return fn(v)
    except ValueError:  # outside, or a pole
        return math.copysign(math.inf, v) if fn is math.atanh and abs(v) == 1 \
            else math.nan
    except OverflowError:
        return math.copysign(math.inf, v) if fn is math.sinh else math.inf


def arguments(low, high, dtype):
    rng = np.random.default_rng(7)
    even = np.linspace(low, high, 20001)
    small = 2.0 ** rng.uniform(-30, 1, 4000) * rng.choice([-1, 1], 4000)
    near = high - (high - low) * 2.0 ** rng.uniform(-30, -5, 4000)
    x = np.concatenate([EDGES, even, small, near])
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def run(op, xs, device, folder, result=None):
    name = NAMES[xs[0].dtype.name]
    kind = f"tensor<{xs[0].size}x{name}>"
    out = f"tensor<{xs[0].size}x{result or name}>"
    names = [f"%x{i}" for i in range(len(xs))]
    args = ", ".join(f"{n}: {kind}" for n in names)
    with open(f"{folder}/m.mlir", "w", encoding="utf-8") as file:
        file.write(f"func.func @main({args}) -> {out} {{\n  %0 = chlo.{op} "
                   f"{', '.join(names)} : {', '.join([kind] * len(xs))} -> {out}"
                   f"\n  return %0 : {out}\n}}\n")
    command = [PESTLE, "run", f"{folder}/m.mlir", "--outputs", f"{folder}/out",
               "--device", device, "--no-cache"]
    for i, x in enumerate(xs):
        np.save(f"{folder}/x{i}.npy", x)
        command += ["--input", f"{i}={folder}/x{i}.npy"]
    subprocess.run(command, check=True)
    return np.load(f"{folder}/out/output_0.npy")


def worst_of(x, want, got):
    """The largest error in ulp of the result's type, infinite where a NaN, an
    infinity or a zero's sign is wrong."""
    rounded = want.astype(x.dtype)
    same = (rounded == got) | (np.isnan(want) & np.isnan(got))
    same &= np.isnan(got) | (np.signbit(rounded) == np.signbit(got))
    finite = np.isfinite(rounded) & np.isfinite(got)
    step = np.spacing(np.abs(rounded[finite])).astype(np.float64)
    ulps = np.full(x.size, math.inf)
    ulps[finite] = np.abs(got[finite].astype(np.float64) - want[finite]) / step
    # A result that is rounded to the other side of the largest number.
    over = np.isinf(rounded) != np.isinf(got)
    ulps[over & (np.abs(want) > 0.999999 * np.finfo(x.dtype).max)] = 1
    ulps[same & ~finite] = 0
    ulps[(np.signbit(rounded) != np.signbit(got)) & ~np.isnan(got)] = math.inf
    at = int(np.argmax(ulps))
    return ulps[at], x[at], got[at], want[at]


# In total order: NaN first and -NaN last of all, 0 before -0; of equals the first
# comes first.
ROWS = np.array([[1, math.nan, 3, 3, -math.inf],
                 [math.inf, 2, -0.0, 0.0, math.nan],
                 [-math.inf, np.copysign(math.nan, -1), 5, -math.inf, math.inf]],
                np.float32)
TOP = {2: [[1, 2], [4, 0], [4, 2]], 5: [[1, 2, 3, 0, 4], [4, 0, 1, 3, 2], [4, 2, 0, 3, 1]],
       0: [[], [], []]}


def check_top_k(k, generic, device, folder):
    a, v, i = "tensor<3x5xf32>", f"tensor<3x{k}xf32>", f"tensor<3x{k}xi32>"
    line = (f'%0:2 = "chlo.top_k"(%x) <{{k = {k} : i64}}> : ({a}) -> ({v}, {i})'
            if generic else f"%v, %i = chlo.top_k(%x, k = {k}) : {a} -> ({v}, {i})")
    out = "%0#0, %0#1" if generic else "%v, %i"
    with open(f"{folder}/m.mlir", "w", encoding="utf-8") as file:
        file.write(f"func.func @main(%x: {a}) -> ({v}, {i}) {{\n  {line}\n"
                   f"  return {out} : {v}, {i}\n}}\n")
    np.save(f"{folder}/x.npy", ROWS)
    subprocess.run([PESTLE, "run", f"{folder}/m.mlir", "--input",
                    f"x={folder}/x.npy", "--outputs", f"{folder}/out",
                    "--device", device, "--no-cache"], check=True)
    got = [np.load(f"{folder}/out/output_{n}.npy") for n in range(2)]
    places = np.array(TOP[k], np.int32).reshape(3, k)
    want = np.take_along_axis(ROWS, places, 1)
    right = (got[0].tobytes() == want.tobytes()
             and np.array_equal(got[1], places))
    if not right:
        print(f"top_k {k} {device}: {got}")
    return right


# --- Functions that the C library lacks: numbers of mpmath ---

HALVES = [n / 2 for n in range(-9, 10)]
EDGES_OF = {  # what XLA gives, and so does CHLO's own decomposition
    "lgamma": [(-0.0, math.inf), (0.0, math.inf), (-1, math.inf), (1, 0.0),
               (-7, math.inf), (-math.inf, math.inf), (math.inf, math.inf),
               (math.nan, math.nan), (2, 0.0), (-2.0**60, math.inf)],
    "digamma": [(-0.0, math.nan), (0.0, math.nan), (-3, math.nan),
                (-math.inf, math.nan), (math.inf, math.inf),
                (math.nan, math.nan)],
    "bessel_i1e": [(0.0, 0.0), (-0.0, -0.0), (math.inf, 0.0),
                   (-math.inf, -0.0), (math.nan, math.nan)],
    "zeta": [(1, 3, math.inf), (1, math.nan, math.inf), (0.5, 2, math.nan),
             (-2, 2.5, math.nan), (2, 0, math.inf), (2, -4, math.inf),
             (3, -4, math.nan), (2.5, -4, math.nan), (2.5, -0.5, math.nan),
             (math.nan, 2, math.nan), (2, math.nan, math.nan),
             (-2, -1, math.inf), (300, 1, 1.0), (300, 2.5, 0.0)],
    "polygamma": [(-1, 2, math.nan), (0.5, 2, math.nan), (1, 0, math.inf),
                  (2, 0, math.nan), (0, 0, math.nan), (1, -3, math.inf),
                  (math.nan, 1, math.nan), (2, math.nan, math.nan)],
}  # fmt: skip


def places(op, rng):
    """Arguments that are numbers of f32, so that f64 has the same."""
    tiny = 10.0 ** rng.uniform(-30, 0, 20)
    if op in ("zeta", "polygamma"):
        orders = 1 + rng.exponential(6, 150) if op == "zeta" else np.concatenate(
            [np.zeros(20), rng.integers(1, 20, 130)])
        return [orders, np.concatenate([rng.uniform(0, 12, 100),
                                        rng.exponential(40, 50)])]
    large = 10.0 ** rng.uniform(1, 30, 30)
    if op == "bessel_i1e":
        x = np.concatenate([tiny, large, rng.uniform(0, 20, 100), [8]])
        return [x * rng.choice([-1, 1], x.size)]
    near = [c + sign * 2.0**-k for c in (1, 2, 1.4616321325302124)
            for k in range(2, 22, 3) for sign in (-1, 1)]
    edges = [n for n in HALVES if n > 0 or n % 1]
    return [np.concatenate([tiny, -tiny, large, near, edges, [8, 7.9999995, 2.5],
                            rng.uniform(0, 10, 60), rng.uniform(-20, 0, 60)])]


def exact_value(mp, op, xs):
    """The value, and of what the row's ulp are."""
    x = [mp.mpf(v) for v in xs]
    if op == "lgamma":
        y = mp.log(abs(mp.gamma(x[0]))) if x[0] < 0 else mp.loggamma(x[0])
        return y, max(abs(y), 1, abs(mp.loggamma(1 - x[0])) if x[0] < 0 else 0)
    if op == "digamma":
        y = mp.digamma(x[0])
        return y, max(abs(y), 1, abs(mp.digamma(1 - x[0])) if x[0] < 0 else 0)
    if op == "bessel_i1e":
        y = mp.exp(-abs(x[0])) * mp.besseli(1, x[0])
        return y, abs(y)
    if op == "zeta":
        y = mp.zeta(*x)
        return y, y * (1 + x[0] / 16)
    y = mp.polygamma(int(x[0]), x[1])
    if not x[0]:
        return y, max(abs(y), 1)
    return y, abs(y) * (1 + mp.log(mp.factorial(int(x[0]))) + x[0] / 16)


def write_values():
    import mpmath as mp

    mp.mp.dps = 300
    rng = np.random.default_rng(11)
    with open(VALUES, "w", encoding="utf-8") as file:
        file.write("# Written by chlo_test.py --write: op, arguments, value, and "
                   "of what size ulp are.\n")
        for op, edges in EDGES_OF.items():
            for xs in zip(*(p.astype(np.float32).tolist()
                            for p in places(op, rng))):
                y, size = exact_value(mp, op, xs)
                row = [*xs, float(y), float(size)]
                if 1e-37 < abs(float(y)) < 1e38 or y == 0:
                    file.write(f"{op} {' '.join(v.hex() for v in row)}\n")
            for row in edges:
                file.write(f"{op} {' '.join(float(v).hex() for v in row)} 0x1p+0\n")


def rows_of(op):
    lines = VALUES.read_text().splitlines()
    rows = [[float.fromhex(v) for v in line.split()[1:]]
            for line in lines if line.split()[0] == op]
    return np.array(rows).T


def check_values(op, dtype, device, folder):
    *xs, want, size = rows_of(op)
    with np.errstate(over="ignore"):
        got = run(op, [x.astype(dtype) for x in xs], device, folder)
    finite = np.isfinite(want)
    wrong = ~finite & ~((got == want) | (np.isnan(got) & np.isnan(want)))
    wrong |= (want == 0) & (np.signbit(got) != np.signbit(want))
    step = np.spacing(np.maximum(size, np.finfo(dtype).tiny).astype(dtype))
    with np.errstate(invalid="ignore"):
        ulps = np.where(finite, np.abs(got.astype(np.float64) - want) / step, 0)
    ulps = np.where(wrong | np.isnan(ulps), math.inf, ulps)
    at = int(np.argmax(ulps))
    print(f"{op} {np.dtype(dtype).name} {device}: {ulps[at]:.2f} ulp at "
          f"{[float(x[at]) for x in xs]}: {got[at]}, not {want[at]}")
    return ulps[at] <= ULPS[op]


# --- Complex numbers ---

NUMPY_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan",
               "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}


def plane(dtype, reach):
    """Of each part sizes, simple numbers, zeros of both signs and what is near 1."""
    rng = np.random.default_rng(3)
    n, least = 2000, -30 if dtype == np.complex64 else -290

    def part():
        signs = rng.choice([-1, 1], (3, n))
        return rng.permutation(np.concatenate([
            10.0 ** rng.uniform(least, math.log10(reach), n) * signs[0],
            (1 + 2.0 ** rng.uniform(-24, -3, n) * signs[1]) * signs[2],
            rng.uniform(-3, 3, n),
            rng.choice([0, -0.0, 1, -1, 0.5, 2, 1e-20, -1e-10], n)]))

    z = np.concatenate([part() for _ in range(4)]).astype(complex)
    z.imag = np.concatenate([part() for _ in range(4)])
    return z.astype(dtype)


def corners(dtype):
    info = np.finfo(dtype)
    parts = [0.0, -0.0, 1, -1, 2, -0.5, math.inf, -math.inf, math.nan, 30,
             float(info.max), -float(info.max) / 4, float(info.tiny)]
    return np.array([complex(x, y) for x in parts for y in parts], dtype)


def of_plane(op, z):
    function = getattr(np, NUMPY_NAMES.get(op, op))
    with np.errstate(all="ignore"):
        return function(z.astype(np.clongdouble))


def is_right(got, want, least):
    """Parts: the same infinities, NaNs and signs, numbers to 16 ulp."""
    with np.errstate(all="ignore"):
        step = np.spacing(np.maximum(np.abs(want), least))
        same = (got == want) | (np.abs(got - want) <= 16 * step)
    same &= np.signbit(got) == np.signbit(want)
    return same | (np.isnan(got) & np.isnan(want))


def check_corners(op, dtype, device, folder):
    z = corners(dtype)
    with np.errstate(all="ignore"):
        want = of_plane(op, z).astype(dtype)
    got, info = run(op, [z], device, folder), np.finfo(dtype)
    # Below the normal numbers of the least part's size roundings show.
    least = info.tiny * info.dtype.type(64)
    right = is_right(got.real, want.real, least)
    right &= is_right(got.imag, want.imag, least)
    # C leaves the sign open.
    right |= (np.isnan(want.real) & np.isnan(got.real) & (want.imag == 0) &
              (got.imag == 0))  # fmt: skip
    for at in np.flatnonzero(~right)[:4]:
        print(f"{op} {dtype.__name__} {device} of {z[at]}: {got[at]}, not "
              f"{want[at]}")
    return bool(right.all())


def check_plane(op, steps, reach, dtype, device, folder):
    z = plane(dtype, reach)
    want, got, info = of_plane(op, z), run(op, [z], device, folder), np.finfo(dtype)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(want), info.tiny)
        off = np.abs(got.astype(np.clongdouble) - want) / (size * info.eps / 2)
    off[~np.isfinite(want)] = 0  # poles are corners
    off[np.isnan(off)] = math.inf
    signs = np.isfinite(want)
    signs &= ((np.signbit(got.real) != np.signbit(want.real)) |
              (np.signbit(got.imag) != np.signbit(want.imag)))  # fmt: skip
    off[signs] = math.inf
    at = int(np.argmax(off))
    print(f"{op} {dtype.__name__} {device}: {float(off[at]):.2f} roundoffs at "
          f"{z[at]}: {got[at]}, not {want[at]}")
    return off[at] <= steps


def check_complex(device, folder):
    bad = 0
    for op, steps, reach in COMPLEX_ROWS:
        for dtype in (np.complex64, np.complex128):
            # Without longer doubles those of f64 would be held to themselves.
            if np.finfo(np.longdouble).eps >= np.finfo(dtype).eps:
                continue
            bad += not check_plane(op, int(steps), float(reach), dtype, device,
                                   folder)
            bad += not check_corners(op, dtype, device, folder)
    return bad


# --- Exact ones ---

def check_classes(device, folder):
    right = True
    for dtype in (np.float16, np.float32, np.float64):
        with np.errstate(over="ignore"):
            x = np.array(EDGES).astype(dtype)
        for op, want in (("is_inf", np.isinf), ("is_pos_inf", np.isposinf),
                         ("is_neg_inf", np.isneginf)):
            right &= np.array_equal(run(op, [x], device, folder, "i1"), want(x))
    return right


def check_next_after(device, folder):
    right = True
    for dtype in (np.float16, np.float32, np.float64):
        with np.errstate(over="ignore"):
            edges = np.concatenate([EDGES, [5e-324, 1.4e-45, 6e-8, 65504, 3.4028235e38,
                                            1.7976931348623157e308]]).astype(dtype)
        x, y = (v.reshape(-1) for v in np.meshgrid(edges, edges))
        with np.errstate(all="ignore"):
            want = np.where(x == y, y, np.nextafter(x, y))
        got = run("next_after", [x, y], device, folder)
        same = (got == want) & (np.signbit(got) == np.signbit(want))
        right &= bool((same | (np.isnan(got) & np.isnan(want))).all())
    return right


def check_mulhi(device, folder):
    right = True
    rng = np.random.default_rng(5)
    for bits in (8, 16, 32, 64):
        for signed in (True, False):
            dtype = np.dtype(f"{'' if signed else 'u'}int{bits}")
            info = np.iinfo(dtype)
            edges = [info.min, info.max, 0, 1, info.max // 2, info.min + 1]
            more = rng.integers(info.min, info.max, 40, dtype, endpoint=True)
            v = np.concatenate([np.array(edges, dtype), more])
            x, y = (a.reshape(-1) for a in np.meshgrid(v, v))
            want = [int(a) * int(b) >> bits for a, b in zip(x, y)]
            got = run("mulhi", [x, y], device, folder)
            right &= got.tolist() == want
    return right


# --- ragged_dot ---

# Extents, sizes of groups, pairs of batch axes and of summed ones, the ragged axis
# and that of the groups; sizes may end before the axis does, or behind it.
RAGGED = [
    ((8, 4), (3, 4, 5), [2, 0, 4], [], [(1, 1)], 0, 0),
    ((8, 4), (4, 5, 3), [5, 2, 9], [], [(1, 0)], 0, 2),
    ((2, 8, 4), (3, 2, 4, 5), [[2, 0, 4], [3, 3, 2]], [(0, 1)], [(2, 2)], 1, 0),
    ((4, 3, 2, 8), (4, 5, 3, 2, 6), [4, 1, 2], [(2, 3)], [(0, 0)], 3, 2),
    ((4, 2, 1, 8), (4, 5, 3, 1, 6), [[[4, 1, 2], [0, 0, 8]]], [(2, 3)], [(0, 0)],
     3, 2),
    ((8, 4), (8, 5), [3, 1, 2], [], [(0, 0)], 0, None),
    # In tiles of rows of one group.
    ((300, 9), (12, 9, 7), [40, 0, 3, 100, 1, 0, 0, 64, 32, 33, 5, 2], [], [(1, 1)], 0, 0),
    ((256, 9), (9, 8, 7), [0, 64, 64, 64, 32, 0, 31, 1], [], [(1, 0)], 0, 1),
    ((40, 9), (7, 9, 64), [1] * 30 + [0] * 33 + [20], [], [(1, 1)], 0, 2),
    ((40, 9), (64, 9, 7), [0] * 64, [], [(1, 1)], 0, 0),
    ((2, 3, 8, 4), (2, 8, 3, 5), [[[1, 2, 3]] * 3] * 2, [(0, 0)],
     [(1, 2), (2, 1)], 2, None),
    ((8, 2, 4), (8, 4, 5), [3, 3, 1], [(0, 0)], [(2, 1)], 0, None),
]  # fmt: skip


def ragged_sum(lhs, rhs, sizes, batch, sums, axis, group):
    """By masks of ones: what einsum says."""
    a = "abcdefg"[:lhs.ndim]
    b = list("uvwxyz"[:rhs.ndim])
    for left, right in [*batch, *sums]:
        b[right] = a[left]
    if group is not None:
        b[group] = "t"
    paired = [pair[0] for pair in [*batch, *sums]]
    free = [i for i in range(lhs.ndim) if i not in paired]
    out = "".join(a[pair[0]] for pair in batch) + "".join(a[i] for i in free)
    out += "".join(c for c in b if c not in a and c != "t")
    if axis in [pair[0] for pair in batch]:
        return np.einsum(f"{a},{''.join(b)}->{out}", lhs, rhs)
    before = [pair[0] for pair in batch]
    before += [i for i in (free if axis in free else
                           [pair[0] for pair in sums])]  # fmt: skip
    prefix = "".join(a[i] for i in before[:before.index(axis)])
    ends = np.cumsum(sizes, -1)[..., None]
    at = np.arange(lhs.shape[axis])
    inside = (at >= ends - sizes[..., None]) & (at < ends)
    mask = (prefix if sizes.ndim > 1 else "") + "t" + a[axis]
    return np.einsum(f"{mask},{a},{''.join(b)}->{'' if axis in free else 't'}{out}",
                     inside.astype(lhs.dtype), lhs, rhs)


def ragged_text(case, arrays, result):
    _, _, _, batch, sums, axis, group = case
    lists = {"lhs_batching_dimensions": [pair[0] for pair in batch],
             "rhs_batching_dimensions": [pair[1] for pair in batch],
             "lhs_contracting_dimensions": [pair[0] for pair in sums],
             "rhs_contracting_dimensions": [pair[1] for pair in sums],
             "lhs_ragged_dimensions": [axis],
             "rhs_group_dimensions": [] if group is None else [group]}
    numbers = ", ".join(f"{name} = {axes}" for name, axes in lists.items() if axes)
    types = ["tensor<" + "".join(f"{n}x" for n in x.shape) + NAMES[x.dtype.name] +
             ">" for x in [*arrays, result]]
    inputs = ", ".join(types[:3])
    return (f"func.func @main(%a: {types[0]}, %b: {types[1]}, %c: {types[2]}) -> "
            f'{types[3]} {{\n%0 = "chlo.ragged_dot"(%a, %b, %c) <{{precision_config '
            "= [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], "
            f"ragged_dot_dimension_numbers = #chlo.ragged_dot<{numbers}>}}> : "
            f"({inputs}) -> {types[3]}\nreturn %0 : {types[3]}\n}}\n")


def run_text(text, xs, device, folder):
    with open(f"{folder}/m.mlir", "w", encoding="utf-8") as file:
        file.write(text)
    command = [PESTLE, "run", f"{folder}/m.mlir", "--outputs", f"{folder}/out",
               "--device", device, "--no-cache"]
    for i, x in enumerate(xs):
        np.save(f"{folder}/x{i}.npy", x)
        command += ["--input", f"{i}={folder}/x{i}.npy"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        return done.stderr
    return np.load(f"{folder}/out/output_0.npy")


def check_ragged(device, folder):
    rng = np.random.default_rng(9)
    right = True
    for case, dtype in itertools.product(RAGGED, (np.float32, np.int32)):
        lhs, rhs = (rng.integers(-8, 9, n).astype(dtype) for n in case[:2])
        xs = [lhs, rhs, np.array(case[2], np.int32)]
        want = ragged_sum(*xs, *case[3:])
        got = run_text(ragged_text(case, xs, want), xs, device, folder)
        if not np.array_equal(got, want):
            print(f"ragged_dot {case} {device}: {got}, not {want}")
            right = False
    # What is not finite stays in its group.
    xs = [np.ones((4, 2), np.float32), np.ones((2, 2, 3), np.float32),
          np.array([1, 3], np.int64)]
    xs[1][0] = math.inf
    case = (None, None, None, [], [(1, 1)], 0, 0)
    got = run_text(ragged_text(case, xs, np.zeros((4, 3), np.float32)), xs, device,
                   folder)
    right &= bool(np.isinf(got[0]).all() and (got[1:] == 2).all())
    # Groups of the right side that the left side has not.
    xs[2] = np.array([1, 2, 1], np.int64)
    got = run_text(ragged_text(case, xs, np.zeros((4, 3), np.float32)), xs, device,
                   folder)
    right &= "must name the axis of the groups" in str(got)
    # What it does not have is refused, wherever it stands.
    text = ragged_text(case, xs, np.zeros((4, 3), np.float32))
    for new in ("<{algorithm = 1, ", "<{"):
        wrong = text.replace("<{", new)
        if new == "<{":
            wrong = wrong.replace("}> :", "}> {algorithm = 1} :")
        got = run_text(wrong, xs, device, folder)
        right &= "'chlo.ragged_dot' has no attribute 'algorithm' here" in str(got)
    got = run_text(text.replace("lhs_ragged_dimensions", "lhs_ragged_dims"), xs, device, folder)
    right &= "has no attribute 'lhs_ragged_dims' here" in str(got)
    # An axis of a batch that is summed, too: more of them than there are axes.
    xs = [np.ones([1] * 15, np.float32)] * 2 + [np.array([1], np.int32)]
    pairs = [(i, i) for i in range(15)]
    case = (None, None, None, pairs[:14], pairs, 14, None)
    got = run_text(ragged_text(case, xs, np.zeros((1, 1), np.float32)), xs, device,
                   folder)
    return right and "name one twice" in str(got)


def main():
    if sys.argv[1:] == ["--write"]:
        return write_values()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for device in ("ref", "llvm"):
            for check in (check_classes, check_next_after, check_mulhi,
                          check_ragged):
                if not check(device, folder):
                    print(f"{check.__name__} fails on {device}")
                    bad += 1
            bad += check_complex(device, folder)
            for op in EDGES_OF:
                for dtype in (np.float32, np.float64):
                    bad += not check_values(op, dtype, device, folder)
        for k in TOP:
            for device in ("ref", "llvm"):
                for generic in (False, True):
                    bad += not check_top_k(k, generic, device, folder)
    with tempfile.TemporaryDirectory() as folder:
        for op, (fn, low, high) in OPS.items():
            for dtype in (np.float16, np.float32, np.float64):
                x = arguments(low, high, dtype)
                with np.errstate(over="ignore"):
                    want = np.array([exact(fn, float(v)) for v in x])
                    for device in ("ref", "llvm"):
                        ulps, at, got, right = worst_of(
                            x, want, run(op, [x], device, folder))
                        name = np.dtype(dtype).name
                        print(f"{op} {name} {device}: {ulps:.2f} ulp at {at}: "
                              f"{got}, not {right}")
                        limit = 0.51 if dtype is np.float16 else ULPS[op]
                        bad += not ulps <= limit
    print(f"{bad} are wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
