#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Derivatives at the places where formulas branch: whole logarithms, multiples, zeros,
equal operands, infinities, NaN. Both modes and the second order, against closed forms."""

import sys

from case import run

try:
    import numpy as np
except ImportError:
    print("skipped: no numpy")
    sys.exit(77)

import pestle as pt

INF, NAN = float("inf"), float("nan")
POINTS = [0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 8.0, 10.0, 100.0, 1000.0]
ABOVE_ZERO = [p for p in POINTS if p > 0]
TYPES = (np.float32, np.float64)


def same(got, want, what):
    got, want = np.asarray(got, dtype=np.float64), np.asarray(want)
    near = np.isclose(got, want, rtol=3e-6, atol=1e-7, equal_nan=True)
    assert near.all(), f"{what}: {got[~near]}, not {want[~near]}"


def first(f, operands, index):
    """The derivative of elementwise f by one operand: by reverse mode and by forward."""
    back = pt.grad(lambda *x: pt.sum(f(*x)), index)(*operands)
    tangents = tuple(pt.ones_like(x) if i == index else pt.zeros_like(x)
                     for i, x in enumerate(operands))
    return back, pt.jvp(f, operands, tangents)[1]


def check(f, operands, wants):
    """f's derivatives by each operand at the places operands are wants."""
    for dtype in TYPES:
        x = tuple(pt.asarray(np.array(a, dtype)) for a in operands)
        for i, want in enumerate(wants):
            for mode, got in zip(("reverse", "forward"), first(f, x, i)):
                assert np.asarray(got).dtype == dtype
                same(got, np.asarray(want, np.float64), f"{mode} by {i}, {dtype.__name__}")


def check_second(f, operands, wants):
    """The second derivative by operand 0 and operand i is wants[i]."""
    def slope(*x):
        return pt.grad(lambda *y: pt.sum(f(*y)))(*x)
    check(slope, operands, wants)


def pairs(a, b):
    """Each of a with each of b."""
    return [v.ravel() for v in np.meshgrid(np.array(a, float), np.array(b, float))]


def test_logarithms():
    for f, base, whole in ((pt.log2, 2.0, range(-40, 41)), (pt.log10, 10.0, range(-20, 21))):
        for dtype in TYPES:
            x = np.array([base ** k for k in whole], dtype)
            got = np.asarray(f(pt.asarray(x)))
            assert base == 10.0 and dtype == np.float32 or (got[20:] == whole[20:]).all(), got
            assert np.asarray(f(pt.asarray(np.array([INF, 0.0], dtype)))).tolist() == [INF, -INF]
        x = np.array(ABOVE_ZERO + [0.25, 3.0, 0.1, 2.0 ** 20, 1e10])
        factor = 1 / np.log(base)
        check(f, [x], [factor / x])
        check_second(f, [x], [-factor / x ** 2])


def test_remainder():
    a, b = pairs(POINTS, [p for p in POINTS if p])
    check(pt.remainder, [a, b], [np.ones_like(a), -np.floor(a / b)])
    check(pt.fmod, [a, b], [np.ones_like(a), -np.trunc(a / b)])
    got = np.asarray(pt.remainder(pt.asarray(a), pt.asarray(b)))
    assert (got == np.remainder(a, b)).all()
    zeros = got == 0
    assert zeros.any() and (np.signbit(got) == np.signbit(b))[zeros].all()
    floored = np.asarray(pt.floor_divide(pt.asarray(a), pt.asarray(b)))
    assert (floored == np.floor_divide(a, b)).all()


def test_roots():
    x = np.array(POINTS + [INF, -INF, 27.0, -1e30])
    with np.errstate(divide="ignore"):
        check(pt.cbrt, [x], [1 / (3 * np.cbrt(x) ** 2)])
    a, b = pairs(POINTS, POINTS)
    size = np.hypot(a, b)
    with np.errstate(invalid="ignore"):
        wants = [np.where(size == 0, 0.5, v / size) for v in (a, b)]
    check(pt.hypot, [a, b], wants)
    a, b, size = (v[size > 0] for v in (a, b, size))
    check_second(pt.hypot, [a, b], [b * b / size ** 3, -a * b / size ** 3])


def test_logaddexp():
    a, b = pairs(POINTS, POINTS)
    with np.errstate(over="ignore"):
        share = 1 / (1 + np.exp(b - a))
    check(pt.logaddexp, [a, b], [share, 1 - share])
    check_second(pt.logaddexp, [a, b], [share * (1 - share), -share * (1 - share)])
    a, b = [INF, INF, 5.0, -INF, -INF, 5.0], [INF, 5.0, INF, -INF, 5.0, -INF]
    check(pt.logaddexp, [a, b], [[1, 1, 0, 1, 0, 1], [0, 0, 1, 0, 1, 0]])
    got = np.asarray(pt.logaddexp(pt.asarray(a), pt.asarray(b))).tolist()
    assert got == [INF, INF, INF, -INF, 5.0, 5.0], got


def test_extremes():
    """The elements that are the extremum share; a NaN reaches all of its row."""
    rows = [[1.0, 3.0, 3.0, 0.0], [1.0, NAN, 3.0, 0.0], [-INF] * 4, [2.0, INF, 1.0, INF]]
    share = {pt.max: [[0, 0.5, 0.5, 0], [NAN] * 4, [0.25] * 4, [0, 0.5, 0, 0.5]],
             pt.min: [[0, 0, 0, 1], [NAN] * 4, [0.25] * 4, [0, 0, 1, 0]]}
    for f, want in share.items():
        want = np.array(want)
        for dtype in TYPES:
            x = pt.asarray(np.array(rows, dtype))
            same(pt.grad(lambda v: pt.sum(f(v, axis=1)))(x), want, f.__name__)
            tangent = pt.asarray(np.array([[1.0, 2.0, 4.0, 8.0]] * 4, dtype))
            got = pt.jvp(lambda v: f(v, axis=1), (x,), (tangent,))[1]
            same(got, (want * np.array([1.0, 2.0, 4.0, 8.0])).sum(1), f.__name__)
            assert np.isnan(np.asarray(pt.grad(f)(x[1]))).all()


run(globals())
