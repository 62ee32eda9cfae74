#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ops of CHLO that are read as formulas (ir/parse_chlo.c), on ref and llvm: over
their range and on edges, against the C library's doubles; top_k in both forms of
text. Exits 77 without numpy.

    chlo_test.py    prints the largest error of each
"""

import math
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

PESTLE = os.path.join(os.environ["PESTLE_BUILD_DIR"], "pestle")
EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, math.inf, -math.inf, math.nan, 1e-40,
         -1e-40, 1e-300, 1e-7, -1e-7, 0.5, 1e30, -1e30, 88.5, -89.2, 1e-20]
# Op to the function, and the range of arguments.
OPS = {
    "asin": (math.asin, -1, 1), "acos": (math.acos, -1, 1),
    "atan": (math.atan, -30, 30), "sinh": (math.sinh, -89, 89),
    "cosh": (math.cosh, -89, 89), "asinh": (math.asinh, -1e5, 1e5),
    "acosh": (math.acosh, 1, 1e5), "atanh": (math.atanh, -1, 1),
}
# A few roundings and functions of up to 2 ulp each: the worst that is seen is 2.58
# in f32 and 2 in f64, of which the C library may add 1. Narrow types are rounded
# once, from f32.
ULPS = {"float16": 0.51, "float32": 4, "float64": 4}
NAMES = {"float16": "f16", "float32": "f32", "float64": "f64"}


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


def run(op, x, device, folder):
    kind = f"tensor<{x.size}x{NAMES[x.dtype.name]}>"
    with open(f"{folder}/m.mlir", "w", encoding="utf-8") as file:
        file.write(f"func.func @main(%x: {kind}) -> {kind} {{\n"
                   f"  %0 = chlo.{op} %x : {kind} -> {kind}\n"
                   f"  return %0 : {kind}\n}}\n")
    np.save(f"{folder}/x.npy", x)
    subprocess.run([PESTLE, "run", f"{folder}/m.mlir", "--input",
                    f"x={folder}/x.npy", "--outputs", f"{folder}/out",
                    "--device", device, "--no-cache"], check=True)
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


# NaN is the largest, of equals (of which zeros are two) the first comes first.
ROWS = np.array([[1, math.nan, 3, 3, -math.inf],
                 [math.inf, 2, -0.0, 0.0, math.nan]], np.float32)
TOP = {2: [[math.nan, 3], [math.nan, math.inf]],
       5: [[math.nan, 3, 3, 1, -math.inf], [math.nan, math.inf, 2, -0.0, 0.0]],
       0: [[], []]}
PLACES = {2: [[1, 2], [4, 0]], 5: [[1, 2, 3, 0, 4], [4, 0, 1, 2, 3]],
          0: [[], []]}


def check_top_k(k, generic, device, folder):
    a, v, i = "tensor<2x5xf32>", f"tensor<2x{k}xf32>", f"tensor<2x{k}xi32>"
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
    want = np.array(TOP[k], np.float32).reshape(2, k)
    right = np.array_equal(got[0], want, equal_nan=True) and np.array_equal(
        np.signbit(got[0][want == 0]), np.signbit(want[want == 0]))
    right = right and np.array_equal(got[1], np.array(PLACES[k]).reshape(2, k))
    if not right:
        print(f"top_k {k} {device}: {got}")
    return right


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
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
                            x, want, run(op, x, device, folder))
                        name = np.dtype(dtype).name
                        print(f"{op} {name} {device}: {ulps:.2f} ulp at {at}: "
                              f"{got}, not {right}")
                        bad += not ulps <= ULPS[name]
    print(f"{bad} are wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
