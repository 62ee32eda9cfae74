# SPDX-License-Identifier: Apache-2.0
"""Derivatives of random numbers by parameters of their distributions: how a number moves
with the parameter while the part of the distribution below it stays what it is."""

import math

from . import _pestle as c
from ._core import array, asarray
from ._reduce import sum as sum_of
from ._shape import expand_dims

# Of each dtype: nodes of the quadrature, and the logarithm of what an integrand falls by
# where it is cut off.
_NODES = {"float32": (20, 20.0), "float64": (48, 42.0)}


def _legendre(n):
    """Nodes and weights of Gauss and Legendre's quadrature of n nodes on [0, 1]."""
    nodes, weights = [], []
    for i in range(n):
        x = math.cos(math.pi * (i + 0.75) / (n + 0.5))
        for _ in range(8):  # Newton's
            before, p = 1.0, x
            for k in range(2, n + 1):
                before, p = p, ((2 * k - 1) * x * p - (k - 1) * before) / k
            slope = n * (x * p - before) / (x * x - 1)
            x -= p / slope
        nodes.append((1 + x) / 2)
        weights.append(1 / ((1 - x * x) * slope * slope))
    return nodes, weights


def _mean_log(a):
    """log(a) - digamma(a), without what both have together where a is large."""
    far = c.add(a, 8.0)
    r = c.divide(1.0, far)
    r2 = c.multiply(r, r)
    tail = c.multiply(r2, 1 / 132)  # of the series of digamma(far), from its end
    for part in (-1 / 240, 1 / 252, -1 / 120, 1 / 12):
        tail = c.multiply(r2, c.add(tail, part))
    near = c.add(c.multiply(r, 0.5), tail)
    for i in range(8):
        near = c.add(near, c.divide(1.0, c.add(a, float(i))))
    return c.subtract(near, c.log1p(c.divide(8.0, a)))


def _bend(v):
    """exp(v) - 1 - v."""
    tail = array(0.0, v)
    for k in range(15, 1, -1):
        tail = c.add(c.multiply(tail, v), 1 / math.factorial(k))
    return c.where(c.less(c.abs(v), 0.5), c.multiply(c.multiply(v, v), tail),
                   c.subtract(c.expm1(v), v))


def gamma_slope(a, log_x):
    """The derivative by a of the logarithm of a number of gamma(a), whose logarithm is
    log_x.

    With t = x * exp(v) it is the integral of (log(t) - digamma(a)) * exp(a * v -
    x * (exp(v) - 1)) over v from 0 up, and minus that from 0 down, since the two have
    the sum 0: that side is taken where the integrand falls from its beginning on. Both
    factors are analytic, so that a fixed quadrature on the part that counts is exact to
    the last digits, and what is computed has derivatives itself. Where x < a < 1 the
    integrand reaches far and changes near 0 alone: exp(x * (1 - exp(-s))) is taken as
    exp(x) * (1 + expm1(-x * exp(-s))), and the 1 integrated on paper.
    """
    from . import stop_gradient
    count, fall = _NODES[a.dtype.name]
    x = c.exp(log_x)
    is_above = c.greater(x, a)
    side = c.where(is_above, array(1.0, a), array(-1.0, a))
    gap = c.abs(c.subtract(x, a))
    is_near = c.less(gap, c.multiply(a, 0.5))
    near = c.log1p(c.where(is_near, c.divide(c.subtract(x, a), a), array(0.0, a)))
    mean = c.add(c.where(is_near, near, c.subtract(log_x, c.log(a))), _mean_log(a))
    mean = c.multiply(side, mean)
    is_far = c.logical_and(c.logical_not(is_above), c.less(a, 1.0))
    width = stop_gradient(c.where(is_far, c.divide(fall, c.add(a, 1.0)),
                                  _width(a, x, gap, is_above, fall)))
    nodes, weights = (asarray(part, dtype=a.dtype, device=a.device)
                      for part in _legendre(count))
    a1, x1, gap, side, mean1, width1, is_far1 = (
        expand_dims(v, axis=-1) for v in (a, x, gap, side, mean, width, is_far))
    s = c.multiply(nodes, width1)
    drop = c.add(c.multiply(gap, s), c.multiply(x1, _bend(c.multiply(side, s))))
    rest = c.expm1(c.negative(c.multiply(x1, c.exp(c.negative(s)))))
    part = c.where(is_far1, c.multiply(c.exp(c.negative(c.multiply(a1, s))), rest),
                   c.exp(c.negative(drop)))
    part = c.multiply(c.add(mean1, s), part)
    total = c.multiply(width, sum_of(c.multiply(weights, part), axis=-1))
    whole = c.divide(c.add(mean, c.divide(1.0, a)), a)
    return c.where(is_far, c.multiply(c.exp(x), c.add(whole, total)), total)


def _width(a, x, gap, is_above, fall):
    """How far from 0 the integrand falls by exp(-fall), or somewhat farther: above it
    does so at least as with v * v / 2 in the place of exp(v) - 1 - v, below as with
    v * v / (2 + 2 * abs(v) / 3)."""
    root = c.sqrt(c.add(c.multiply(gap, gap), c.multiply(x, 2 * fall)))
    above = c.divide(2 * fall, c.add(gap, root))
    above = c.minimum(above, c.log1p(c.divide(c.add(c.multiply(a, above), fall), x)))
    half = c.divide(c.add(x, c.multiply(a, 2.0)), 3.0)
    b = c.subtract(c.multiply(gap, 2.0), 2 * fall / 3)
    root = c.sqrt(c.add(c.multiply(b, b), c.multiply(half, 8 * fall)))
    below = c.where(c.greater(b, 0.0), c.divide(4 * fall, c.add(root, b)),
                    c.divide(c.subtract(root, b), c.multiply(half, 2.0)))
    return c.where(is_above, above, below)
