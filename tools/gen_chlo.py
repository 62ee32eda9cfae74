#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints ir/chlo_tables.h: the coefficients of the formulas that CHLO's special
functions are read as. They follow from the definitions beside them. Needs mpmath.
"""

import mpmath as mp

mp.mp.dps = 60


def chebyshev(g, count):
    """Coefficients of g on [-1, 1], the first one halved, highest first."""
    n = 200
    nodes = [mp.cos(mp.pi * (i + mp.mpf(1) / 2) / n) for i in range(n)]
    values = [g(t) for t in nodes]
    found = []
    for k in range(count):
        angles = (mp.pi * k * (i + mp.mpf(1) / 2) / n for i in range(n))
        total = sum(v * mp.cos(a) for v, a in zip(values, angles))
        found.append(total * (1 if k == 0 else 2) / n)
    return found[::-1]


def i1e(x):
    return mp.exp(-x) * mp.besseli(1, x)


def i1e_near(t):
    x = 4 * (t + 1)
    return mp.mpf(1) / 2 if x < mp.mpf("1e-25") else i1e(x) / x * (1 + x)


def i1e_far(t):
    if 1 + t < mp.mpf("1e-25"):
        return 1 / mp.sqrt(2 * mp.pi)
    x = 16 / (t + 1)
    return i1e(x) * mp.sqrt(x)


def rows():
    yield "lgamma_near", "lgamma(2 + x) = x (p0 + x (p1 + ..)), |x| <= 1/2: " \
        "1 - gamma, then (-1)^k (zeta(k) - 1) / k of k = 2, 3 ..", \
        [1 - mp.euler] + [(-1) ** k * (mp.zeta(k) - 1) / k
                          for k in range(2, 28)]
    yield "lgamma_far", "Stirling's series: B2k / (2k (2k - 1))", \
        [mp.bernoulli(2 * k) / (2 * k * (2 * k - 1)) for k in range(1, 10)]
    yield "digamma_far", "that of its derivative: B2k / 2k", \
        [mp.bernoulli(2 * k) / (2 * k) for k in range(1, 12)]
    yield "zeta_tail", "Euler and Maclaurin's sum: B2k / (2k)!", \
        [mp.bernoulli(2 * k) / mp.factorial(2 * k) for k in range(1, 13)]
    for name, g, counts, text in (
        ("near", i1e_near, (18, 30), "i1e(x) (1 + x) / x on [0, 8], t = x / 4 - 1"),
        ("far", i1e_far, (8, 26), "i1e(x) sqrt(x) from 8, t = 16 / x - 1"),
    ):  # fmt: skip
        for kind, count in zip(("f32", "f64"), counts):
            yield f"i1e_{name}_{kind}", \
                f"Chebyshev, highest first: {text}", chebyshev(g, count)


def main():
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Printed by tools/gen_chlo.py.")
    print("#ifndef PESTLE_IR_CHLO_TABLES_H_")
    print("#define PESTLE_IR_CHLO_TABLES_H_")
    print()
    print("// clang-format off")
    for name, text, values in rows():
        print(f"// {text}")
        print(f"static const double {name}[] = {{")
        for v in values:
            print(f"    {float(v).hex()},  // {mp.nstr(v, 12)}")
        print("};")
    print("// clang-format on")
    print()
    print("#endif  // PESTLE_IR_CHLO_TABLES_H_")


if __name__ == "__main__":
    main()
