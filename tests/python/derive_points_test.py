#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions that are formulas, where a formula is likely to have another
one than its function: at 0, at integers, at its far branch. Both modes, closed forms."""

import pathlib
import sys

from case import run

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)
import pestle as pt

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from onnx_bytes import data, declared, node, number  # pylint: disable=wrong-import-position

POINTS = np.array([0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 10, -10, 100, -100, 1e-3])
EULER = 0.57721566490153286061
WIDTHS = ((np.float64, 1e-12), (np.float32, 4e-6))


def modes(f, x):
    """f' at x in reverse mode and in forward mode."""
    x = pt.asarray(x)
    one = pt.ones_like(x)
    return {"reverse": np.asarray(pt.grad(lambda v: pt.sum(f(v)))(x)),
            "forward": np.asarray(pt.jvp(f, (x,), (one,))[1])}


def sweep(f, derivative, points, widths=WIDTHS):
    for dtype, tolerance in widths:
        x = np.asarray(points).astype(dtype)
        with np.errstate(over="ignore"):
            right = derivative(x.astype(np.float64)).astype(dtype)
        for mode, found in modes(f, x).items():
            np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance,
                                       err_msg=f"{mode}, {dtype.__name__}, at {x}")


def test_hyperbolic():
    far = np.append(POINTS, [21.9, 22.1, -22.1])
    loose = ((np.float64, 1e-12), (np.float32, 4e-5))
    sweep(pt.sinh, np.cosh, far, loose)
    sweep(pt.cosh, np.sinh, far, loose)


def test_hyperbolic_overflow():
    """e^|x| is infinite before or where the derivative is, never NaN."""
    points = [400.0, -400.0, 800.0, -800.0, 2000.0, np.inf, -np.inf]
    sweep(pt.sinh, np.cosh, points, ((np.float64, 1e-12),))
    sweep(pt.cosh, np.sinh, points, ((np.float64, 1e-12),))
    infinite = [89.5, -89.5, 400.0, -400.0, np.inf]
    sweep(pt.sinh, np.cosh, infinite, ((np.float32, 1e-5),))
    sweep(pt.cosh, np.sinh, infinite, ((np.float32, 1e-5),))


def test_inverse_hyperbolic():
    far = np.append(POINTS, [1e9, -1e9, 1e30, np.inf, -np.inf])
    sweep(pt.asinh, lambda v: 1 / np.hypot(v, 1), far)
    sweep(pt.asinh, lambda v: 1 / np.hypot(v, 1), [1e200, -1e200, 1e308], WIDTHS[:1])
    sweep(pt.acosh, lambda v: 1 / np.sqrt(v - 1) / np.sqrt(v + 1),
          [1.5, 2, 10, 100, 1e9, 1e30, np.inf])
    sweep(pt.acosh, lambda v: 1 / v, [1e200, 1e308], WIDTHS[:1])


def test_zero_keeps_its_sign():
    for f in (pt.sinh, pt.asinh):
        for dtype, _ in WIDTHS:
            zeros = np.asarray(f(pt.asarray(np.array([0.0, -0.0], dtype))))
            assert list(np.signbit(zeros)) == [False, True] and not zeros.any(), zeros


def shifted(x, order, whole, half):
    """Of half-integers and positive integers from the values at 1 and at 1/2:
    digamma(x + 1) = digamma(x) + 1/x, and what follows for its derivative."""
    at = 1.0 if x == round(x) else 0.5
    y = whole if at == 1 else half
    sign = 1 if order == 1 else -1
    while at < x:
        y, at = y + sign / at**order, at + 1
    while at > x:
        at -= 1
        y -= sign / at**order
    return y


@np.vectorize
def digamma(x):
    return shifted(x, 1, -EULER, -EULER - 2 * np.log(2))


@np.vectorize
def trigamma(x):
    return shifted(x, 2, np.pi**2 / 6, np.pi**2 / 2)


GAMMA_POINTS = [1, 2, 3, 0.5, -0.5, 1.5, -1.5, 7.5, 8, 9, 10, -9.5, 100, -99.5]


def test_gamma():
    widths = ((np.float64, 1e-12), (np.float32, 2e-5))
    sweep(pt.lgamma, digamma, GAMMA_POINTS, widths)
    sweep(pt.digamma, trigamma, GAMMA_POINTS, widths)
    sweep(pt.lgamma, np.log, [1e12, 1e30], widths)
    sweep(pt.digamma, lambda v: 1 / v, [1e12, 1e30], widths)


def test_gamma_twice():
    def slope(v):
        return pt.grad(lambda w: pt.sum(pt.lgamma(w)))(v)
    sweep(slope, trigamma, GAMMA_POINTS, ((np.float64, 1e-11), (np.float32, 1e-4)))


def logistic(x):
    return 1 / (1 + np.exp(-x))


def softplus(count, element):
    """Softplus of ONNX as a function."""
    graph = (node("Softplus", ["x"], "y") + data(2, "g")
             + data(11, declared("x", [count], element))
             + data(12, declared("y", [count], element)))
    model = number(1, 8) + data(7, graph) + data(8, number(2, 17))
    return pt.load_onnx(model)


def test_softplus():
    for element, width in ((11, WIDTHS[0]), (1, WIDTHS[1])):
        f = softplus(len(POINTS), element)
        sweep(f, logistic, POINTS, (width,))
        near = np.append(np.zeros(3), np.linspace(-1, 1, len(POINTS) - 3))
        sweep(lambda v, f=f: pt.grad(lambda w: pt.sum(f(w)))(v),
              lambda v: logistic(v) * logistic(-v), near, (width,))


run(globals())
