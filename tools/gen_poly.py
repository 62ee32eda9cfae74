#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the polynomials of codegen/vector_math*.c and prints
codegen/vector_math_poly.h. Needs mpmath.

Each is a minimax fit (Remez exchange) of g(x) on [lo, hi] with weight w(x):
the largest w(x) * |p(x) - g(x)| is made smallest. Coefficients are rounded to
the target's precision, then moved by single units as long as that helps.
"""

import sys

import mpmath as mp

mp.mp.dps = 60


def solve(basis, g, w, lo, hi, points=None):
    """One Remez fit: coefficients of sum c[k] * x**basis[k]."""
    n = len(basis)
    if points is None:
        points = [
            (lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * i / n)
            for i in range(n + 1)
        ]
    grid = [lo + (hi - lo) * i / 600 for i in range(601)]
    grid = [x for x in grid if w(x) != 0]
    for _ in range(30):
        rows, rhs = [], []
        for i, x in enumerate(points):
            # Where the weight is 0 there is no peak to be levelled.
            if abs(w(x)) < mp.mpf("1e-9"):
                x += (hi - lo) / 1000
            rows.append([w(x) * x**b for b in basis] + [(-1) ** i])
            rhs.append(w(x) * g(x))
        c = mp.lu_solve(mp.matrix(rows), mp.matrix(rhs))
        coefs = [c[k] for k in range(n)]
        level = abs(c[n])

        def err(x):
            return w(x) * (sum(k * x**b for k, b in zip(coefs, basis)) - g(x))

        # The extremum of each stretch of one sign.
        values = [err(x) for x in grid]
        peaks, start = [], 0
        for i in range(1, len(grid) + 1):
            if i == len(grid) or (values[i] > 0) != (values[start] > 0):
                best = max(range(start, i), key=lambda j: abs(values[j]))
                peaks.append((grid[best], values[best]))
                start = i
        worst = max(abs(v) for _, v in peaks)
        while len(peaks) > n + 1:
            if abs(peaks[0][1]) < abs(peaks[-1][1]):
                peaks.pop(0)
            else:
                peaks.pop()
        if len(peaks) < n + 1:
            break
        points = [x for x, _ in peaks]
        if worst <= level * mp.mpf("1.01"):
            break
    return coefs, worst


def to_float(x, bits):
    if x == 0:
        return mp.mpf(0)
    m, e = mp.frexp(x)
    return mp.ldexp(mp.nint(mp.ldexp(m, bits)), e - bits)


def fit(powers, g, w, lo, hi, bits):
    lo, hi = mp.mpf(lo), mp.mpf(hi)
    powers = list(powers)
    grid = [lo + (hi - lo) * i / 400 for i in range(401)]
    grid = [(x, g(x), w(x)) for x in grid]
    exact, _ = solve(powers, g, w, lo, hi)
    coefs = [to_float(c, bits) for c in exact]

    def worst(coefs):
        return max(
            abs(wx * (sum(c * x**b for c, b in zip(coefs, powers)) - gx))
            for x, gx, wx in grid
        )

    # Neighbours of a rounded coefficient may make up for another's rounding.
    best, changed = worst(coefs), bits == 24
    while changed:
        changed = False
        for k in range(len(coefs)):
            for step in (-1, 1):
                trial = list(coefs)
                ulp = mp.ldexp(1, mp.frexp(trial[k])[1] - bits)
                trial[k] += step * ulp
                error = worst(trial)
                if error < best * mp.mpf("0.999"):
                    coefs, best, changed = trial, error, True
    return coefs, best


def safe(f, at_zero):
    return lambda x: mp.mpf(at_zero) if abs(x) < mp.mpf("1e-12") else f(x)


LN2 = mp.log(2)

# name, bits, powers, g, weight, lo, hi, what is fitted (for the comment)
FITS = [
    (
        "exp_f32", 24, range(5),
        safe(lambda r: (mp.exp(r) - 1 - r) / r**2, 0.5),
        lambda r: r**2 / mp.exp(r), "-0.3467", "0.3467",
        "e^r = 1 + r + r^2 p(r)",
    ),
    (
        "log_f32", 24, range(9),
        safe(lambda f: (mp.log1p(f) - f) / f**2, -0.5),
        safe(lambda f: abs(f**2 / mp.log1p(f)), 0), "-0.33334", "0.33334",
        "log(1 + f) = f + f^2 p(f)",
    ),
    (
        "tanh_f32", 24, range(5),
        safe(lambda s: (mp.tanh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s,
             mp.mpf(-1) / 3),
        safe(lambda s: s * mp.sqrt(s) / mp.tanh(mp.sqrt(s)), 0),
        "1e-9", "0.3907",
        "tanh(x) = x + x s p(s), s = x^2, |x| <= 0.625",
    ),
    (
        "erf_f32", 24, range(7),
        safe(lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1,
             2 / mp.sqrt(mp.pi) - 1),
        safe(lambda s: mp.sqrt(s) / mp.erf(mp.sqrt(s)),
             mp.sqrt(mp.pi) / 2), "1e-9", "0.8651",
        "erf(x) = x + x p(s), s = x^2, |x| <= 0.93",
    ),
    (
        "erfc_f32", 24, range(8),
        lambda t: -mp.log(mp.erfc(t)) / t,
        lambda t: t * mp.erfc(t) / mp.erf(t), "0.92", "4.01",
        "erfc(t) = e^(-t p(t)), 0.93 <= t <= 4",
    ),
    (
        "sin_f64", 53, range(4),
        safe(lambda s: (mp.sin(mp.sqrt(s)) / mp.sqrt(s) - 1) / s,
             mp.mpf(-1) / 6),
        safe(lambda s: s * mp.sqrt(s) / mp.sin(mp.sqrt(s)), 0),
        "1e-9", "0.617",
        "sin(r) = r + r s p(s), s = r^2, |r| <= pi/4; to f32 accuracy",
    ),
    (
        "cos_f64", 53, range(4),
        safe(lambda s: (mp.cos(mp.sqrt(s)) - 1 + s / 2) / s**2,
             mp.mpf(1) / 24),
        lambda s: s**2 / mp.cos(mp.sqrt(s)), "1e-9", "0.617",
        "cos(r) = 1 - s/2 + s^2 p(s), s = r^2; to f32 accuracy",
    ),
    (
        "atan_f64", 53, range(10),
        safe(lambda s: (mp.atan(mp.sqrt(s)) / mp.sqrt(s) - 1) / s,
             mp.mpf(-1) / 3),
        safe(lambda s: s * mp.sqrt(s) / mp.atan(mp.sqrt(s)), 0),
        "1e-9", "1",
        "atan(q) = q + q s p(s), s = q^2, 0 <= q <= 1; to f32 accuracy",
    ),
    (
        "log2_f64", 53, range(7),
        safe(lambda z: mp.log((1 + mp.sqrt(z)) / (1 - mp.sqrt(z)), 2)
             / mp.sqrt(z), 2 / LN2),
        safe(lambda z: mp.sqrt(z)
             / mp.log((1 + mp.sqrt(z)) / (1 - mp.sqrt(z)), 2), LN2 / 2),
        "1e-9", "0.02945",
        "log2(m) = s p(s^2), s = (m-1)/(m+1), m in [1/sqrt2, sqrt2]",
    ),
    (
        "exp2_f64", 53, range(8),
        safe(lambda r: (mp.mpf(2) ** r - 1) / r, LN2),
        lambda r: abs(r) / mp.mpf(2) ** r, "-0.5001", "0.5001",
        "2^r = 1 + r p(r); for f32 results",
    ),
]


def main():
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Printed by tools/gen_poly.py: minimax polynomials, lowest")
    print("// coefficient first. The figure is the largest relative error of the")
    print("// function before the arithmetic rounds.")
    print("#ifndef PESTLE_CODEGEN_VECTOR_MATH_POLY_H_")
    print("#define PESTLE_CODEGEN_VECTOR_MATH_POLY_H_")
    print()
    print("// clang-format off")
    wanted = sys.argv[1:]
    for name, bits, powers, g, w, lo, hi, text in FITS:
        if wanted and name not in wanted:
            continue
        coefs, worst = fit(powers, g, w, lo, hi, bits)
        print("// %s: 2^%.1f" % (text, float(mp.log(worst, 2))))
        print("static const double poly_%s[] = {" % name)
        for c in coefs:
            print("    %s,  // %s" % (float(c).hex(), mp.nstr(c, 12)))
        print("};")
        sys.stdout.flush()
    print("// clang-format on")
    print()
    print("#endif  // PESTLE_CODEGEN_VECTOR_MATH_POLY_H_")


if __name__ == "__main__":
    main()
