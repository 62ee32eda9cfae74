#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Complex functions at their edges, on ref and llvm: every pair of parts that are
zeros, subnormal, near the ends of the range, of the exponential's and of 1, infinite
and NaN, by the rule in docs/ops.md. The truth is what the C library's long doubles
give, in which nothing of f32 and f64 overflows. Exits 77 without numpy or longer
doubles.

    complex_test.py [OP,OP..]    prints each op's wrong results
"""

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

L = np.longdouble
INF, NAN = L(math.inf), L(math.nan)
PESTLE = os.path.join(os.environ.get("PESTLE_BUILD_DIR", ""), "pestle")
ROOT = pathlib.Path(__file__).resolve().parents[2]


# --- Truth ---

def join(re_, im):
    z = np.empty(np.broadcast(re_, im).shape, np.clongdouble)
    z.real, z.imag = re_, im
    return z


def pick(which, z, other):
    return join(np.where(which, z.real, other.real),
                np.where(which, z.imag, other.imag))


def is_endless(z):
    return np.isinf(z.real) | np.isinf(z.imag)


def is_finite(z):
    return np.isfinite(z.real) & np.isfinite(z.imag)


def is_zero(z):
    return (z.real == 0) & (z.imag == 0)


def product(a, b):
    return join(a.real * b.real - a.imag * b.imag,
                a.real * b.imag + a.imag * b.real)


def boxed(z):
    return join(np.copysign(np.isinf(z.real).astype(L), z.real),
                np.copysign(np.isinf(z.imag).astype(L), z.imag))


def quotient(a, b):
    """Long doubles have the range; where a part is infinite, as Annex G says."""
    size, top = b.real**2 + b.imag**2, product(a, b.conj())
    out = join(top.real / size, top.imag / size)
    top = product(boxed(a), b.conj())
    out = pick(is_endless(a) & is_finite(b), join(INF * top.real, INF * top.imag),
               out)
    top = product(a, boxed(b).conj())
    out = pick(is_endless(b) & is_finite(a), join(0 * top.real, 0 * top.imag), out)
    over = np.copysign(INF, b.real)
    return pick(is_zero(b), join(over * a.real, over * a.imag), out)


def inverse(z):
    out = quotient(np.ones_like(z), z)
    out = pick(is_endless(z), np.zeros_like(z), out)
    return join(np.copysign(out.real, z.real), np.copysign(out.imag, -z.imag))


def sign(z):
    size = np.abs(z)
    return pick(size == 0, z, join(z.real / size, z.imag / size))


def cube_root(z):
    size, angle = np.cbrt(np.abs(z)), np.angle(z) / 3
    return join(size * np.cos(angle), np.where(angle == 0, angle, size * np.sin(angle)))


def expm1(z):
    half, e = np.sin(z.imag / 2), np.exp(z)
    re_ = np.expm1(z.real) * np.cos(z.imag) - 2 * half * half
    return join(np.where(np.isinf(z.real), e.real - 1, re_), e.imag)


def log1p(z):
    x, y = z.real, z.imag
    near = np.log1p(x * (2 + x) + y * y) / 2
    inside = (np.abs(x) <= 0.5) & (np.abs(y) <= 0.5)
    return join(np.where(inside, near, np.log(z + 1).real), np.arctan2(y, 1 + x))


def logistic(z):
    left = z.real < 0
    e = np.exp(pick(left, z, -z))
    one = np.ones_like(z)
    return quotient(pick(left, e, one), join(e.real + 1, e.imag))


def square(z):
    same = (np.abs(z.real) == np.abs(z.imag)) & np.isfinite(z.real)
    return join(np.where(same, 0, (z.real - z.imag) * (z.real + z.imag)),
                2 * (z.real * z.imag))


def exponent(a, b):
    log = np.log(a)
    return pick(b.imag == 0, join(b.real * log.real, b.real * log.imag),
                product(b, log))


def power(a, b):
    nothing, one = np.zeros_like(a), np.ones_like(a)
    of_zero = pick(b.real > 0, nothing, join(NAN * one.real, NAN * one.real))
    out = pick(is_zero(a), of_zero, np.exp(exponent(a, b)))
    return pick(is_zero(b) | (a == 1), one, out)


UNARY = {
    "abs": np.abs, "sign": sign, "negate": lambda z: join(-z.real, -z.imag),
    "sqrt": np.sqrt, "rsqrt": lambda z: inverse(np.sqrt(z)), "cbrt": cube_root,
    "exponential": np.exp, "exponential_minus_one": expm1, "log": np.log,
    "log_plus_one": log1p, "logistic": logistic, "tanh": np.tanh, "sine": np.sin,
    "cosine": np.cos, "tan": np.tan, "chlo.sinh": np.sinh, "chlo.cosh": np.cosh,
    "chlo.asin": np.arcsin, "chlo.acos": np.arccos, "chlo.atan": np.arctan,
    "chlo.asinh": np.arcsinh, "chlo.acosh": np.arccosh, "chlo.atanh": np.arctanh,
    "chlo.square": square,
}  # fmt: skip
BINARY = {"add": np.add, "subtract": np.subtract, "multiply": product,
          "divide": quotient, "power": power}
ROWS = {"EXP": "exponential", "EXPM1": "exponential_minus_one", "LOG1P": "log_plus_one"}


def steps():
    """Of each op, from the tables: roundoffs of a result's size."""
    table = (ROOT / "ir/complex.def").read_text()
    out = {ROWS.get(name, name.lower()): int(n) for name, n in
           re.findall(r"PESTLE_COMPLEX\((\w+), \w+, (\d+)", table)}
    table = (ROOT / "ir/chlo.def").read_text()
    return out | {f"chlo.{name}": int(n) for name, n in
                  re.findall(r"PESTLE_CHLO_COMPLEX\((\w+), +(\d+)", table)}


# --- Operands ---

def ends(dtype):
    info = np.finfo(dtype)
    least = float(np.nextafter(dtype(0), dtype(1)))
    most, tiny, eps = (float(v) for v in (info.max, info.tiny, info.eps))
    return least, tiny, eps, most, math.log(most), -math.log(tiny)


def grid(parts, dtype):
    x, y = (v.ravel() for v in np.meshgrid(parts, parts))
    z = np.empty(x.size, np.complex64 if dtype == np.float32 else np.complex128)
    z.real, z.imag = x, y
    return z


def plane(dtype):
    least, tiny, eps, most, top, low = ends(dtype)
    sizes = [least, 3 * least, 1000 * least, tiny / 4, tiny * (1 - eps), tiny,
             tiny * 3, tiny**0.5 / 3, tiny**0.5 * 2, eps / 4, eps * 3, 1e-3, 0.25,
             0.5 - eps / 4, 0.5, 0.5**0.5, 1 - eps / 2, 1, 1 + eps, math.pi / 2, 2,
             math.pi, math.pi * 1.5, 10, top / 2, top - 1, top * (1 - 4 * eps), top,
             top * (1 + 4 * eps), top + 0.3, top + 0.6931, top + 0.7, top + 1,
             2 * top, low, low + 10, low + 15.9, low + 17.5, 1e4, 1e10, 1 / eps,
             4 / eps, most**0.5 / 2, most**0.5, most**0.5 * 1.5, most / 512,
             most / 8, most / 4, most / 2 * (1 + eps), most * 0.7072,
             most * (1 - eps), most, math.inf, 0.0]  # fmt: skip
    sizes = np.array(sizes, dtype)
    parts = np.concatenate([sizes, -sizes])
    few = np.array([0.0, -0.0, 1, -1, 2, math.inf, -math.inf, math.nan], dtype)
    return np.concatenate([grid(parts, dtype), grid(few, dtype)])


def pairs(dtype):
    least, tiny, _, most, _, _ = ends(dtype)
    few = grid(np.array([0.0, -0.0, 1, -1.5, most, -most / 2, tiny, least * 3, least,
                         math.inf, -math.inf, math.nan, 40, most**0.5, 1e-3,
                         tiny**0.5 * 5], dtype), dtype)  # fmt: skip
    return np.repeat(few, few.size), np.tile(few, few.size)


# --- Judgement ---

def is_part_right(want, got, within, most):
    """The same infinity, NaN and zero, or near; overflow within |within| of it."""
    rounded = np.where(np.abs(want) > most, np.copysign(INF, want), want)
    near = (rounded == got) | (np.isnan(want) & np.isnan(got))
    near |= np.abs(want - got) <= within
    at_end = np.isfinite(want) & (np.abs(np.abs(want) - most) <= within)
    at_end &= (np.abs(got) >= most - within) & (np.signbit(want) == np.signbit(got))
    return near | at_end


def sign_is_said(op, z, want):
    """Of zeros; C leaves it open where the angle or the other part is nothing."""
    if op in ("divide", "multiply", "power", "abs"):
        return np.zeros(want.shape, bool)
    if op in ("exponential", "exponential_minus_one", "logistic", "tanh"):
        return np.isfinite(z.imag)
    if op == "tan":
        return np.isfinite(z.real)
    return is_finite(z) | (~np.isnan(want.real) & ~np.isnan(want.imag))


def right_product(xs, want, got, within, most):
    a, b = (x.astype(np.clongdouble) for x in xs)
    right = np.ones(want.shape, bool)
    for parts, w, g in (((a.real * b.real, a.imag * b.imag), want.real, got.real),
                        ((a.real * b.imag, a.imag * b.real), want.imag, got.imag)):
        over = [np.isfinite(p) & (np.abs(p) > most) for p in parts]
        endless = [o | np.isinf(p) for o, p in zip(over, parts)]
        # One rounding for both products may save the sum.
        right &= (is_part_right(w, g, within, most) |
                  ((over[0] | over[1]) & ~np.isfinite(g)))  # fmt: skip
        # One alone decides.
        alone = (over[0] & ~endless[1]) | (over[1] & ~endless[0])
        right &= ~(alone & np.isnan(g) & ~np.isnan(parts[0]) & ~np.isnan(parts[1]))
    return right


def right_size(want, got, relative, tiny, most):
    """Where no more is known than how large a number is, also if it is not finite."""
    w = np.hypot(want.real, want.imag)
    g = np.hypot(got.real, got.imag)
    near = np.abs(np.log(w / g)) <= relative
    over = (w > most / 2) & (np.isinf(got.real) | np.isinf(got.imag) | (g > most / 4))
    return near | over | ((w < tiny) & (g < tiny)) | (np.isnan(w) & np.isnan(g))


def judge(op, xs, want, got):
    info = np.finfo(xs[0].dtype)
    u, most, tiny = L(info.eps) / 2, L(info.max), L(info.tiny)
    if got.dtype.kind != "c":
        want, got = join(want, 0 * want), join(got.astype(L), 0 * want)
    got = got.astype(np.clongdouble)
    size = np.fmax(np.where(np.isfinite(want.real), np.abs(want.real), 0),
                   np.where(np.isfinite(want.imag), np.abs(want.imag), 0))
    within = np.maximum(STEPS[op] * u * np.maximum(np.minimum(size, most), tiny),
                        L(np.nextafter(info.dtype.type(0), info.dtype.type(1))))
    if op == "multiply":
        return right_product(xs, want, got, within, most)
    if op == "power":
        a, b = (x.astype(np.clongdouble) for x in xs)
        e = exponent(a, b)
        e = np.fmax(np.abs(e.real), np.abs(e.imag))
        within = within * (1 + np.where(np.isfinite(e), e, 0))
    right = is_part_right(want.real, got.real, within, most)
    right &= is_part_right(want.imag, got.imag, within, most)
    if op == "power":
        angle_lost = (e * u * 30 > 1) | (size > most) | is_endless(want)
        by_size = right_size(want, got, (4 * e + 30) * u, tiny, most)
        right = np.where(angle_lost, by_size, right)
        # Infinite exponents and bases are as the products come.
        right |= ~is_finite(a) | ~is_finite(b)
    said = sign_is_said(op, xs[0], want)
    for w, g in ((want.real, got.real), (want.imag, got.imag)):
        right &= ~(said & (w == 0) & (g == 0) & (np.signbit(w) != np.signbit(g)))
    return right


# --- Runs ---

def run(op, xs, device, folder):
    part = "f32" if xs[0].dtype == np.complex64 else "f64"
    kind = f"tensor<{xs[0].size}xcomplex<{part}>>"
    out = f"tensor<{xs[0].size}x{part}>" if op == "abs" else kind
    name = op if "." in op else f"stablehlo.{op}"
    names = [f"%x{i}" for i in range(len(xs))]
    args = ", ".join(f"{n}: {kind}" for n in names)
    with open(f"{folder}/m.mlir", "w", encoding="utf-8") as file:
        file.write(f"func.func @main({args}) -> {out} {{\n"
                   f'  %0 = "{name}"({", ".join(names)}) : '
                   f"({', '.join([kind] * len(xs))}) -> {out}\n"
                   f"  return %0 : {out}\n}}\n")
    command = [PESTLE, "run", f"{folder}/m.mlir", "--outputs", f"{folder}/out",
               "--device", device, "--no-cache"]
    for i, x in enumerate(xs):
        np.save(f"{folder}/x{i}.npy", x)
        command += ["--input", f"{i}={folder}/x{i}.npy"]
    subprocess.run(command, check=True)
    return np.load(f"{folder}/out/output_0.npy")


def check(op, function, xs, device, folder):
    want = function(*(x.astype(np.clongdouble) for x in xs))
    got = run(op, xs, device, folder)
    wrong = np.flatnonzero(~judge(op, xs, want, got))
    print(f"{op} {xs[0].dtype.name} {device}: {wrong.size} of {got.size} are wrong")
    for at in wrong[:: max(1, wrong.size // 6)][:6]:
        print(f"  of {[x[at] for x in xs]}: {got[at]}, not {want[at]}")
    return wrong.size == 0


# Operands, and what the rule says of them.
POWERS = [
    ((0, 1), 0), ((0, 2 + 5j), 0), ((0, 0), 1), ((1, 7 - 3j), 1), ((3j, 0), 1),
    ((0, -1), complex(math.nan, math.nan)), ((0, 1j), complex(math.nan, math.nan)),
    ((math.inf, 2), complex(math.inf, 0)), ((math.inf, -2), 0),
    ((1, math.inf), 1), ((complex(math.nan, 1), 0), 1),
]  # fmt: skip
ARCS = [((1, 2), math.atan2(1, 2)), ((-0.0, -1), -math.pi), ((0, 0), 0),
        ((math.inf, 1), math.pi / 2), ((3e30j, 2e30), None), ((1e-30 + 2e-30j, 5e-30),
        None), ((1 + 2j, 3 - 1j), None)]  # fmt: skip


def check_listed(device, folder):
    bad = 0
    for dtype in (np.complex64, np.complex128):
        for op, rows in (("power", POWERS), ("atan2", ARCS)):
            xs = [np.array([r[0][i] for r in rows], dtype) for i in range(2)]
            got = run(op, xs, device, folder)
            for at, (_, want) in enumerate(rows):
                if want is None:
                    y, x = (v[at].astype(np.clongdouble) for v in xs)
                    z = np.log((x + 1j * y) / np.sqrt(x * x + y * y))
                    want = complex(z.imag, -z.real)
                near = abs(got[at] - want) <= 40 * np.finfo(dtype).eps
                if not near and str(got[at]) != str(dtype(want)):
                    print(f"{op} of {xs[0][at]}, {xs[1][at]} on {device}: {got[at]}, "
                          f"not {want}")
                    bad += 1
    return bad


def main():
    only = sys.argv[1].split(",") if len(sys.argv) > 1 else None
    bad = 0
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        for dtype in (np.float32, np.float64):
            if np.finfo(L).eps >= np.finfo(dtype).eps:
                print(f"skipped: no longer doubles than {dtype.__name__}")
                return 77 if dtype == np.float32 else bad > 0
            for table, xs in ((UNARY, [plane(dtype)]), (BINARY, pairs(dtype))):
                for op, function in table.items():
                    for device in ("ref", "llvm"):
                        if only is None or op in only:
                            bad += not check(op, function, xs, device, folder)
        for device in ("ref", "llvm"):
            bad += check_listed(device, folder)
    print(f"{bad} are wrong")
    return 1 if bad else 0


STEPS = steps()
if __name__ == "__main__":
    sys.exit(main())
