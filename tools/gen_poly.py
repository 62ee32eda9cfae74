#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the polynomials of codegen/legalise/vector_math*.c and prints
codegen/legalise/vector_math_poly.h, or with the argument "f64" the header of those that
give f64 results, codegen/legalise/vector_math_f64_poly.h. Needs mpmath.

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


def scaled_erfc(q, k):
    """(1 + 2 a) e^(a^2) erfc(a) of a = k (1 + q) / (1 - q): nearly constant."""
    a = k * (1 + q) / (1 - q)
    return (1 + 2 * a) * mp.exp(a * a) * mp.erfc(a)


def erf_inverse(w):
    """y / x with erf(y) = x and w = -log(1 - x^2)."""
    if w < mp.mpf("1e-25"):
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    if w < 1:
        return mp.erfinv(x) / x
    want = -w - mp.log(1 + x)  # log(1 - x)
    y = mp.sqrt(w) * mp.mpf("0.9")
    for _ in range(100):
        c = mp.erfc(y)
        step = (mp.log(c) - want) * c * mp.exp(y * y) * mp.sqrt(mp.pi) / 2
        y += step
        if abs(step) < mp.mpf("1e-40"):
            return y / x
    raise ArithmeticError("Newton's method does not end")


def inverse_fit(name, bits, count, variable, constant, lo, hi, text):
    """A polynomial of w or of its root, that is |variable| of what is fitted."""
    g = lambda u: erf_inverse(variable(u))
    return (name, bits, range(count), lambda u: g(u) - mp.mpf(constant),
            lambda u: 1 / g(u), lo, hi, text)


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
        "erfc_power_f32", 24, range(9),
        safe(lambda t: mp.log(mp.erfc(t), 2) / t, -2 / mp.sqrt(mp.pi) / LN2),
        # Of the absolute error: what is beside 1 and 2.
        lambda t: t * LN2 * (mp.erfc(t) + mp.mpf(2) ** -24), "1e-9", "4.5",
        "erfc(t) = 2^(t p(t)), 0 <= t <= 4.5, the absolute error",
    ),
    (
        "exp2_f32", 24, range(6),
        safe(lambda r: (mp.mpf(2) ** r - 1) / r, LN2),
        lambda r: abs(r) / mp.mpf(2) ** r, "-0.5", "0.5",
        "2^r = 1 + r p(r)",
    ),
    (
        "erfcx_f32", 24, range(11),
        lambda q: scaled_erfc(q, 3) - mp.mpf("1.25"),
        lambda q: 1 / scaled_erfc(q, 3),
        "-1", "0.5453",
        "(1 + 2 a) e^(a^2) erfc(a) = 1.25 + p((a - 3) / (a + 3)), 0 <= a <= 10.19",
    ),
    inverse_fit(
        "erf_inv_f32", 24, 10, lambda u: u + mp.mpf("1.25"), "0.875",
        "-1.25", "2.751",
        "erf_inv(x) = x (0.875 + p(w - 1.25)), w = -log(1 - x^2) <= 4",
    ),
    inverse_fit(
        "erf_inv_tail_f32", 24, 13, lambda u: (u + 3)**2, "2.75",
        "-1.001", "1.03",
        "erf_inv(x) = x (2.75 + p(sqrt(w) - 3)), 4 <= w <= 16.2",
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


THIRD = mp.mpf(1) / 3


def log_ratio(z):
    """log((1 + s) / (1 - s)) of s = sqrt(z)."""
    return mp.log((1 + mp.sqrt(z)) / (1 - mp.sqrt(z)))


FITS_F64 = [
    (
        "exp_full", 53, range(11),
        safe(lambda r: (mp.exp(r) - 1 - r) / r**2, 0.5),
        lambda r: r**2 / mp.exp(r), "-0.3467", "0.3467",
        "e^r = 1 + r + r^2 p(r)",
    ),
    (
        "log_full", 53, range(7),
        safe(lambda z: (log_ratio(z) / mp.sqrt(z) - 2) / z, 2 * THIRD),
        lambda z: z * mp.sqrt(z) / log_ratio(z), "1e-9", "0.02945",
        "log(m) = 2 s + s z p(z), s = (m-1)/(m+1), z = s^2",
    ),
    (
        "log_tail", 53, range(8),
        safe(lambda z: (log_ratio(z) / mp.sqrt(z) - 2 - 2 * z / 3) / z**2,
             mp.mpf(2) / 5),
        lambda z: z**2 * mp.sqrt(z) / log_ratio(z), "1e-9", "0.02945",
        "log(m) = 2 s + 2/3 s z + s z^2 p(z)",
    ),
    (
        "tanh_full", 53, range(13),
        safe(lambda s: (mp.tanh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, -THIRD),
        safe(lambda s: s * mp.sqrt(s) / mp.tanh(mp.sqrt(s)), 0),
        "1e-9", "0.3907",
        "tanh(x) = x + x s p(s), s = x^2, |x| <= 0.625",
    ),
    (
        "erf_full", 53, range(15),
        safe(lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1,
             2 / mp.sqrt(mp.pi) - 1),
        safe(lambda s: mp.sqrt(s) / mp.erf(mp.sqrt(s)),
             mp.sqrt(mp.pi) / 2), "1e-9", "1",
        "erf(x) = x + x p(s), s = x^2, |x| <= 1",
    ),
    (
        "erfc_full", 53, range(20),
        lambda u: -mp.log(mp.erfc(u + 3)) / (u + 3),
        lambda u: (u + 3) * mp.erfc(u + 3) / mp.erf(u + 3), "-2.001", "3",
        "erfc(t) = e^(-t p(t - 3)), 1 <= t <= 6",
    ),
    (
        "erfcx_full", 53, range(24),
        lambda q: scaled_erfc(q, 4) - mp.mpf("1.25"),
        lambda q: 1 / scaled_erfc(q, 4),
        "-1", "0.7445",
        "(1 + 2 a) e^(a^2) erfc(a) = 1.25 + p((a - 4) / (a + 4)), 0 <= a <= 27.3",
    ),
    inverse_fit(
        "erf_inv_full", 53, 23, lambda u: u + mp.mpf("1.25"), "0.875",
        "-1.25", "2.751",
        "erf_inv(x) = x (0.875 + p(w - 1.25)), w = -log(1 - x^2) <= 4",
    ),
    inverse_fit(
        "erf_inv_middle_full", 53, 25, lambda u: (u + 3)**2, "2.75",
        "-1.001", "1.001",
        "erf_inv(x) = x (2.75 + p(sqrt(w) - 3)), 4 <= w <= 16",
    ),
    inverse_fit(
        "erf_inv_tail_full", 53, 19, lambda u: (u + 5)**2, "4.75",
        "-1.0001", "1.01",
        "erf_inv(x) = x (4.75 + p(sqrt(w) - 5)), 16 <= w <= 36.1",
    ),
    (
        "sin_full", 53, range(6),
        safe(lambda s: (mp.sin(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, -THIRD / 2),
        safe(lambda s: s * mp.sqrt(s) / mp.sin(mp.sqrt(s)), 0),
        "1e-9", "0.617",
        "sin(r) = r + r s p(s), s = r^2, |r| <= pi/4",
    ),
    (
        "cos_full", 53, range(6),
        safe(lambda s: (mp.cos(mp.sqrt(s)) - 1 + s / 2) / s**2,
             mp.mpf(1) / 24),
        lambda s: s**2 / mp.cos(mp.sqrt(s)), "1e-9", "0.617",
        "cos(r) = 1 - s/2 + s^2 p(s), s = r^2",
    ),
    (
        "atan_full", 53, range(12),
        safe(lambda s: (mp.atan(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, -THIRD),
        safe(lambda s: s * mp.sqrt(s) / mp.atan(mp.sqrt(s)), 0),
        "1e-9", "0.17158",
        "atan(q) = q + q s p(s), s = q^2, |q| <= tan(pi/8)",
    ),
    (
        "rcbrt_start", 53, range(6),
        lambda m: m ** (-THIRD), lambda m: m**THIRD, "1", "2",
        "1 / cbrt(m), 1 <= m <= 2; to start Newton's method from",
    ),
]


def print_pi_words(count):
    """2/pi after the point, behind 32 zeros that small exponents shift in."""
    with mp.workdps(500):
        value = mp.floor(2 / mp.pi * mp.mpf(2) ** (32 * (count - 1)))
        words = [int(value) >> (32 * i) & 0xFFFFFFFF for i in range(count)]
    print("// 32 zeros, then the bits of 2/pi after the point.")
    print("static const uint32_t two_over_pi_words[] = {")
    for i in range(0, count, 5):
        row = words[::-1][i:i + 5]
        print("    " + " ".join("0x%08x," % w for w in row))
    print("};")


def main():
    wanted = sys.argv[1:]
    wide = wanted == ["f64"]
    guard = "PESTLE_CODEGEN_VECTOR_MATH_%sPOLY_H_" % ("F64_" if wide else "")
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Printed by tools/gen_poly.py%s: minimax polynomials, lowest"
          % (" f64" if wide else ""))
    print("// coefficient first. The figure is the largest relative error of the")
    print("// function before the arithmetic rounds.")
    print("#ifndef %s" % guard)
    print("#define %s" % guard)
    print()
    if wide:
        print("#include <stdint.h>")
        print()
    print("// clang-format off")
    for name, bits, powers, g, w, lo, hi, text in FITS_F64 if wide else FITS:
        if wanted and not wide and name not in wanted:
            continue
        coefs, worst = fit(powers, g, w, lo, hi, bits)
        print("// %s: 2^%.1f" % (text, float(mp.log(worst, 2))))
        print("static const double poly_%s[] = {" % name)
        for c in coefs:
            print("    %s,  // %s" % (float(c).hex(), mp.nstr(c, 12)))
        print("};")
        sys.stdout.flush()
    if wide:
        print_pi_words(38)
    print("// clang-format on")
    print()
    print("#endif  // %s" % guard)


if __name__ == "__main__":
    main()
