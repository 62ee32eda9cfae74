# SPDX-License-Identifier: Apache-2.0
"""Distributions of pestle.random that are made of its bits, uniform and normal numbers."""

import math

from . import _pestle as c
from ._core import (Array, array, asarray, count_of, default_float, dtype_of, number,
                    reshape_to, shape_of)
from ._jit import jit
from ._make import broadcast_shapes
from ._shape import broadcast_to, expand_dims
from .random import (_LOWEST, _TINY, _UNIT, _erf_inv, _threefry, _unit_of, _words,
                     bernoulli, normal, split, uniform)


def _floats(name, dtype):
    dtype = dtype_of(dtype, default_float())
    if dtype.name not in _UNIT:
        raise TypeError(f"{name}() gives floats, not {dtype}")
    return dtype


def _parameters(name, key, dtype, shape, *values):
    """Parameters as arrays of dtype where key is, and the shape of the result: shape, or
    that which they have together."""
    _words(key)
    dtype = _floats(name, dtype)
    values = [c.cast(v if isinstance(v, Array) else asarray(v, device=key.device), dtype)
              for v in values]
    for v in values:
        if v.device != key.device:
            c.add(key[0], v)  # says what is wrong
    return dtype, _fitted(name, shape, *(v.shape for v in values)), values


def _fitted(name, shape, *shapes):
    """shape, which shapes broadcast to; None is that which they have together."""
    common = broadcast_shapes(*shapes)
    if shape is None:
        return common
    shape = shape_of(shape)
    if len(common) > len(shape) or any(
            d not in (1, e) for d, e in zip(common[::-1], shape[::-1])):
        raise ValueError(f"{name}() has parameters of shape {common}, which does not "
                         f"broadcast to {shape}")
    return shape


# --- Gamma ---

def _child(keys, i):
    """split(key)[i] of each of a vector of keys."""
    zero = c.full(keys[0].shape, 0, c.uint32, keys[0].device)
    return _threefry(*keys, zero, c.add(zero, i))


def _draw(keys, dtype):
    """uniform(key) of each key, in [0, 1)."""
    zero = c.full(keys[0].shape, 0, c.uint32, keys[0].device)
    a, b = _threefry(*keys, zero, zero)
    if dtype == c.float64:
        words = c.bitwise_or(c.bitwise_left_shift(c.cast(a, c.uint64), 32),
                             c.cast(b, c.uint64))
    else:
        words = c.bitwise_xor(a, b)
    return _unit_of(words, dtype)


def _draw_normal(keys, dtype):
    low = number(_LOWEST[dtype.name], c.full((), 0, dtype, keys[0].device))
    u = c.add(c.multiply(_draw(keys, dtype), c.subtract(1.0, low)), low)
    return c.multiply(_erf_inv(c.maximum(u, low)), math.sqrt(2))


def _gamma_of(key, alpha, is_log):
    """Marsaglia and Tsang's rejection, of each alpha by a key of its own, which is
    split()'s: squeezed normal numbers, and below 1 a power of a uniform one."""
    from ._control import while_loop
    from ._reduce import any as any_of
    dtype, n = alpha.dtype, alpha.shape[0]
    rows = split(key, n)
    keys, boosts = (lambda k: (_child(k, 0), _child(k, 1)))((rows[:, 0], rows[:, 1]))
    is_large = c.greater_equal(alpha, 1.0)
    d = c.subtract(c.where(is_large, alpha, c.add(alpha, 1.0)), 1 / 3)
    scale = c.divide(1 / 3, c.sqrt(d))
    zero, one = c.full((n,), 0, dtype, alpha.device), c.full((n,), 1, dtype, alpha.device)

    def select(mask, new, old):
        return tuple(c.where(mask, x, y) for x, y in zip(new, old))

    def positive(state):
        """Draws 1 + scale * x anew where it is none."""
        k0, k1, x, v = state
        mask = c.less_equal(v, 0.0)
        x = _draw_normal(_child((k0, k1), 1), dtype)
        return select(mask, (*_child((k0, k1), 0), x, c.add(1.0, c.multiply(x, scale))),
                      state)

    def is_rejected(x2, v3, u):
        outside = c.greater_equal(u, c.subtract(1.0, c.multiply(0.0331, c.multiply(x2, x2))))
        bound = c.add(c.multiply(x2, 0.5), c.multiply(
            d, c.add(c.subtract(1.0, v3), c.log(v3))))
        return c.logical_and(outside, c.greater_equal(c.log(u), bound))

    def again(state):
        k0, k1, _, _, _, mask = state
        key, x_key, u_key = (_child((k0, k1), i) for i in range(3))
        # Those that have a number take no part.
        _, _, x, v = while_loop(
            lambda s: any_of(c.less_equal(s[3], 0.0)), positive,
            (*x_key, zero, c.where(mask, c.negative(one), one)))
        x2, v3 = c.multiply(x, x), c.multiply(c.multiply(v, v), v)
        u = _draw(u_key, dtype)
        new = (*key, x2, v3, u, is_rejected(x2, v3, u))
        return select(mask, new[:5], state[:5]) + (c.logical_and(mask, new[5]),)

    start = (*keys, zero, one, c.multiply(one, 2.0), c.equal(alpha, alpha))
    v = while_loop(lambda s: any_of(s[5]), again, start)[3]
    part = c.divide(1.0, alpha)
    u = _draw(boosts, dtype)
    if is_log:
        logs = c.log1p(c.negative(u))
        boost = c.where(c.logical_or(is_large, c.equal(logs, 0.0)), zero,
                        c.multiply(logs, part))
        y = c.add(c.add(c.log(d), c.log(v)), boost)
    else:
        y = c.multiply(c.multiply(d, v),
                       c.where(is_large, one, c.pow(c.subtract(1.0, u), part)))
    # Of no alpha above 0 there is none.
    return c.where(c.greater(alpha, 0.0), y, float("nan"))


_gammas = []


def _with_slope(is_log):
    """_gamma_of() with its derivative by alpha."""
    from ._forms import custom_jvp
    from ._implicit import gamma_slope
    of = custom_jvp(lambda key, alpha: _gamma_of(key, alpha, is_log))

    def rule(primals, tangents):
        y, alpha = of(*primals), primals[1]
        if is_log:
            return y, c.multiply(tangents[1], gamma_slope(alpha, y))
        is_zero = c.equal(y, 0.0)  # too small for its dtype: it stays so
        slope = c.multiply(y, gamma_slope(alpha, c.log(c.where(is_zero, alpha, y))))
        return y, c.multiply(tangents[1], slope)

    of.defjvp(rule)
    return jit(of)


def _gamma(name, key, a, shape, dtype, is_log):
    if not _gammas:
        _gammas.extend((_with_slope(False), _with_slope(True)))
    dtype, shape, (a,) = _parameters(name, key, dtype, shape, a)
    wide = dtype if dtype.bits >= 32 else c.float32
    a = reshape_to(broadcast_to(c.cast(a, wide), shape), (count_of(shape),))
    if not count_of(shape):
        return c.full(shape, 0, dtype, key.device)
    return c.cast(reshape_to(_gammas[is_log](key, a), shape), dtype)


def gamma(key, a, shape=None, dtype=None):
    """Numbers of the gamma distribution of shape parameter a and scale 1.

    key: of key(); a: numbers above 0, others give NaN; shape: None is that of a; dtype:
    floats. The derivative by a is that of a number whose place in the distribution stays.
    Raises TypeError for no key and another dtype, ValueError for a that does not
    broadcast to shape.

    >>> pt.random.gamma(pt.random.key(0), 2.0, (2,)).shape
    (2,)
    """
    return _gamma("gamma", key, a, shape, dtype, False)


def loggamma(key, a, shape=None, dtype=None):
    """The logarithm of gamma(), exact where that is too small for its dtype.

    key: of key(); a: numbers above 0; shape: None is that of a; dtype: floats.
    Raises TypeError for no key and another dtype, ValueError for a that does not
    broadcast to shape.

    >>> pt.random.loggamma(pt.random.key(0), 0.01, (2,)).shape
    (2,)
    """
    return _gamma("loggamma", key, a, shape, dtype, True)


def beta(key, a, b, shape=None, dtype=None):
    """Numbers in [0, 1] of the beta distribution of a and b.

    key: of key(); a, b: numbers above 0; shape: None is that of a and b; dtype: floats.
    Raises TypeError for no key and another dtype, ValueError for parameters that do not
    broadcast to shape.

    >>> pt.random.beta(pt.random.key(0), 2.0, 3.0, (2,)).shape
    (2,)
    """
    dtype, shape, (a, b) = _parameters("beta", key, dtype, shape, a, b)
    keys = split(key)
    x, y = loggamma(keys[0], a, shape, dtype), loggamma(keys[1], b, shape, dtype)
    most = c.maximum(x, y)
    x, y = c.exp(c.subtract(x, most)), c.exp(c.subtract(y, most))
    return c.divide(x, c.add(x, y))


def dirichlet(key, alpha, shape=None, dtype=None):
    """Rows of shares that sum to 1, of the Dirichlet distribution of alpha's rows.

    key: of key(); alpha: numbers above 0, at least one axis; shape: that of the rows,
    None is alpha's; dtype: floats.
    Raises TypeError for no key and another dtype, ValueError for no axis, and rows that
    do not broadcast to shape.

    >>> pt.random.dirichlet(pt.random.key(0), pt.ones((3,)), (2,)).shape
    (2, 3)
    """
    from ._reduce import softmax
    alpha = array(alpha)
    if not alpha.ndim:
        raise ValueError("dirichlet() takes alpha of one axis and more")
    shape = alpha.shape[:-1] if shape is None else shape_of(shape)
    return softmax(loggamma(key, alpha, shape + alpha.shape[-1:], dtype), axis=-1)


def chisquare(key, df, shape=None, dtype=None):
    """Numbers of the chi-square distribution of df degrees of freedom.

    key: of key(); df: numbers above 0; shape: None is that of df; dtype: floats.
    Raises TypeError for no key and another dtype, ValueError for df that does not
    broadcast to shape.

    >>> pt.random.chisquare(pt.random.key(0), 3.0, (2,)).shape
    (2,)
    """
    dtype, shape, (df,) = _parameters("chisquare", key, dtype, shape, df)
    logs = loggamma(key, c.multiply(df, 0.5), shape, dtype)
    return c.multiply(2.0, c.exp(logs))


def t(key, df, shape=None, dtype=None):
    """Numbers of Student's distribution of df degrees of freedom.

    key: of key(); df: numbers above 0; shape: None is that of df; dtype: floats.
    Raises TypeError for no key and another dtype, ValueError for df that does not
    broadcast to shape.

    >>> pt.random.t(pt.random.key(0), 3.0, (2,)).shape
    (2,)
    """
    dtype, shape, (df,) = _parameters("t", key, dtype, shape, df)
    keys, half = split(key), c.divide(df, 2.0)
    n = normal(keys[0], shape, dtype)
    return c.multiply(n, c.sqrt(c.divide(half, gamma(keys[1], half, shape, dtype))))


# --- Of one number each ---

_EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "float16": 2.0**-10,
            "bfloat16": 2.0**-7}


def laplace(key, shape=(), dtype=None):
    """Numbers of density exp(-|x|) / 2.

    key: of key(); dtype: floats.
    Raises TypeError for no key and another dtype, ValueError for negative extents.

    >>> pt.random.laplace(pt.random.key(0), (2,)).shape
    (2,)
    """
    dtype = _floats("laplace", dtype)
    u = uniform(key, shape, dtype, -1.0 + _EPSILON[dtype.name] / 2, 1.0)
    return c.multiply(c.sign(u), c.log1p(c.negative(c.abs(u))))


def logistic(key, shape=(), dtype=None):
    """Numbers whose distribution function is the logistic one.

    key: of key(); dtype: floats.
    Raises TypeError for no key and another dtype, ValueError for negative extents.

    >>> pt.random.logistic(pt.random.key(0), (2,)).shape
    (2,)
    """
    dtype = _floats("logistic", dtype)
    u = uniform(key, shape, dtype, _TINY[dtype.name], 1.0)
    return c.subtract(c.log(u), c.log1p(c.negative(u)))


def cauchy(key, shape=(), dtype=None):
    """Numbers of density 1 / (pi * (1 + x * x)).

    key: of key(); dtype: floats.
    Raises TypeError for no key and another dtype, ValueError for negative extents.

    >>> pt.random.cauchy(pt.random.key(0), (2,)).shape
    (2,)
    """
    dtype = _floats("cauchy", dtype)
    u = uniform(key, shape, dtype, _EPSILON[dtype.name], 1.0)
    return c.tan(c.multiply(math.pi, c.subtract(u, 0.5)))


def rademacher(key, shape=(), dtype=None):
    """-1 or 1, each as often.

    key: of key(); dtype: integers or floats, int64 unless it is given.
    Raises TypeError for no key and another dtype, ValueError for negative extents.

    >>> pt.abs(pt.random.rademacher(pt.random.key(0), (2,))).tolist()
    [1, 1]
    """
    dtype = dtype_of(dtype, c.int64)
    if dtype.kind not in "if":
        raise TypeError(f"rademacher() gives integers with a sign or floats, not {dtype}")
    coin = c.cast(bernoulli(key, 0.5, shape_of(shape)), dtype)
    return c.subtract(c.multiply(coin, 2), 1)


def multivariate_normal(key, mean, cov, shape=None, dtype=None):
    """Normal vectors of a mean and a covariance.

    key: of key(); mean: [..., n]; cov: [..., n, n], symmetric and positive definite;
    shape: that of the vectors, None is the one that mean and cov have together; dtype:
    floats.
    Raises TypeError for no key and another dtype, ValueError for other shapes.

    >>> pt.random.multivariate_normal(pt.random.key(0), pt.zeros((2,)), pt.eye(2)).shape
    (2,)
    """
    from ._linear import matmul
    from .linalg import cholesky
    dtype = _floats("multivariate_normal", dtype)
    mean, cov = c.cast(array(mean), dtype), c.cast(array(cov), dtype)
    n = mean.shape[-1] if mean.ndim else 0
    if not mean.ndim or cov.shape[-2:] != (n, n):
        raise ValueError("multivariate_normal() takes a mean of shape (..., n) and a "
                         f"covariance (..., n, n), not {mean.shape} and {cov.shape}")
    shape = _fitted("multivariate_normal", shape, mean.shape[:-1], cov.shape[:-2])
    vectors = expand_dims(normal(key, shape + (n,), dtype), axis=-1)
    return c.add(mean, matmul(cholesky(cov), vectors)[..., 0])


# --- Counts ---

def poisson(key, lam, shape=None, dtype=None):
    """How often something happens that happens lam times on average.

    key: of key(); lam: numbers of at least 0; shape: None is that of lam; dtype:
    integers, int64 unless it is given.
    Raises TypeError for no key and another dtype, ValueError for lam that does not
    broadcast to shape.

    >>> pt.random.poisson(pt.random.key(0), 0.0, (2,)).tolist()
    [0, 0]
    """
    dtype = dtype_of(dtype, c.int64)
    if dtype.kind not in "iu":
        raise TypeError(f"poisson() gives integers, not {dtype}")
    _, shape, (lam,) = _parameters("poisson", key, c.float32, shape, lam)
    return c.cast(_poissons(key, broadcast_to(lam, shape), shape), dtype)


def _by_products(key, lam, shape):
    """Knuth's: so many uniform numbers as have a product above exp(-lam)."""
    from ._control import while_loop
    from ._reduce import any as any_of

    def turn(state):
        count, key, logs = state
        keys = split(key)
        count = c.where(c.greater(logs, c.negative(lam)), c.add(count, 1), count)
        return count, keys[0], c.add(logs, c.log(uniform(keys[1], shape, c.float32)))
    start = (c.full(shape, 0, c.int64, key.device), key,
             c.full(shape, 0, c.float32, key.device))
    count = while_loop(lambda s: any_of(c.greater(s[2], c.negative(lam))), turn, start)[0]
    return c.subtract(count, 1)


def _by_rejection(key, lam, shape):
    """Hormann's transformed rejection."""
    from ._control import while_loop
    from ._reduce import any as any_of
    logs = c.log(lam)
    b = c.add(0.931, c.multiply(2.53, c.sqrt(lam)))
    a = c.add(-0.059, c.multiply(0.02483, b))
    part = c.add(1.1239, c.divide(1.1328, c.subtract(b, 3.4)))
    most = c.subtract(0.9277, c.divide(3.6224, c.subtract(b, 2.0)))

    def turn(state):
        chosen, is_done, key = state
        keys = split(key, 3)
        u = c.subtract(uniform(keys[1], shape, c.float32), 0.5)
        v = uniform(keys[2], shape, c.float32)
        edge = c.subtract(0.5, c.abs(u))
        slope = c.add(c.divide(c.multiply(2.0, a), edge), b)
        k = c.floor(c.add(c.add(c.multiply(slope, u), lam), 0.43))
        s = c.log(c.divide(c.multiply(v, part),
                           c.add(c.divide(a, c.multiply(edge, edge)), b)))
        bound = c.subtract(c.subtract(c.multiply(k, logs), lam), c.lgamma(c.add(k, 1.0)))
        is_quick = c.logical_and(c.greater_equal(edge, 0.07), c.less_equal(v, most))
        is_out = c.logical_or(c.less(k, 0.0), c.logical_and(c.less(edge, 0.013),
                                                            c.greater(v, edge)))
        fits = c.logical_or(is_quick, c.logical_and(c.logical_not(is_out),
                                                    c.less_equal(s, bound)))
        return c.where(fits, k, chosen), c.logical_or(is_done, fits), keys[0]
    start = (c.full(shape, -1, c.float32, key.device),
             c.full(shape, False, c.bool, key.device), key)
    k = while_loop(lambda s: any_of(c.logical_not(s[1])), turn, start)[0]
    return c.cast(k, c.int64)


@lambda f: jit(f, static_argnums=2)
def _poissons(key, lam, shape):
    is_small = c.logical_not(c.greater_equal(lam, 10.0))
    few = _by_products(key, c.where(is_small, lam, 0.0), shape)
    many = _by_rejection(key, c.where(is_small, 1e5, lam), shape)
    k = c.where(is_small, few, many)
    k = c.where(c.greater(lam, 0.0), k, 0)
    return c.where(c.greater_equal(lam, 0.0), k, -1)
