# SPDX-License-Identifier: Apache-2.0
"""Random numbers by explicit keys, the numbers that jax.random gives for the key's
two words (threefry2x32, jax_threefry_partitionable). A key is used once; split() and
fold_in() make others of it."""

import math

from . import _pestle as c
from . import _streams
from ._core import (apply, asarray, array, axis_of, count_of, default_float, dtype_of,
                    iota, is_float, limits, need_array, number, reshape_to, shape_of,
                    slice_axis)
from ._jit import jit
from ._shape import broadcast_to, concat, expand_dims, stack

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _rotate(x, by):
    return c.bitwise_or(c.bitwise_left_shift(x, by), c.bitwise_right_shift(x, 32 - by))


def _threefry(k0, k1, x0, x1):
    """Twenty rounds of Threefry on the counters (x0, x1)."""
    keys = (k0, k1, c.bitwise_xor(c.bitwise_xor(k0, k1), _PARITY))
    x0, x1 = c.add(x0, k0), c.add(x1, k1)
    for i in range(5):
        for by in _ROTATIONS[i % 2]:
            x0 = c.add(x0, x1)
            x1 = c.bitwise_xor(_rotate(x1, by), x0)
        x0 = c.add(x0, keys[(i + 1) % 3])
        x1 = c.add(c.add(x1, keys[(i + 2) % 3]), i + 1)
    return x0, x1


def _words(key):
    need_array(key, "key")
    if key.dtype != c.uint32 or key.shape != (2,):
        raise TypeError(f"a key is an array of 2 uint32, not of {key.dtype} and shape "
                        f"{key.shape}: pestle.random.key(seed) makes one")
    return key[0], key[1]


def _counters(shape, like):
    """The place of each element of shape, row-major, as two words."""
    n = count_of(shape)
    if n < 2**32:
        low = iota((n,), 0, c.uint32, like.device)
        return c.full((n,), 0, c.uint32, like.device), low
    place = iota((n,), 0, c.uint64, like.device)
    return (c.cast(c.bitwise_right_shift(place, 32), c.uint32),
            c.cast(place, c.uint32))


def _both(key, shape):
    k0, k1 = _words(key)
    high, low = _counters(shape, key)
    return _threefry(k0, k1, high, low)


def key(seed, /):
    """A key of an integer.

    seed: an integer, of which the lower 64 bits count. The result is an array of two
    uint32.
    Raises TypeError for no integer.

    >>> pt.random.key(7).tolist()
    [0, 7]
    """
    if not isinstance(seed, int):
        raise TypeError(f"a seed is an integer, not {seed!r}")
    seed &= 0xFFFFFFFFFFFFFFFF
    # As jax does without 64-bit types: a seed of 32 bits is its low word.
    return asarray([seed >> 32 if seed >= 2**32 else 0, seed & 0xFFFFFFFF],
                   dtype=c.uint32)


def _split(key, count):
    a, b = _both(key, (count,))
    return stack([a, b], axis=1)


def _fold_in(key, data):
    k0, k1 = _words(key)
    data = c.cast(data, c.uint32)
    a, b = _threefry(k0, k1, c.full((), 0, c.uint32, key.device), data)
    return stack([a, b])


def _bits(key, shape, dtype):
    a, b = _both(key, shape)
    if dtype == c.uint64:
        y = c.bitwise_or(c.bitwise_left_shift(c.cast(a, c.uint64), 32),
                         c.cast(b, c.uint64))
    else:
        y = c.cast(c.bitwise_xor(a, b), dtype)
    return reshape_to(y, shape)


# Bits of the mantissa, and the bits of 1.
_UNIT = {"float32": (c.uint32, 9, 0x3F800000), "float64": (c.uint64, 12, 0x3FF << 52),
         "float16": (c.uint16, 6, 0x3C00), "bfloat16": (c.uint16, 9, 0x3F80)}


def _unit(key, shape, dtype):
    """Floats in [0, 1): random mantissas under the exponent of 1, less 1."""
    words, cut, one = _UNIT[dtype.name]
    # Of a bfloat16, with 7 bits of mantissa, jax draws 8.
    if dtype == c.bfloat16:
        bits = c.cast(c.bitwise_right_shift(_bits(key, shape, c.uint8), 1), c.uint16)
    else:
        return _unit_of(_bits(key, shape, words), dtype)
    floats = apply("bitcast_convert", (c.bitwise_or(bits, one),), None, dtype, shape)
    return c.subtract(floats, 1)


def _unit_of(words, dtype):
    """The same of random words."""
    _, cut, one = _UNIT[dtype.name]
    bits = c.bitwise_or(c.bitwise_right_shift(words, cut), one)
    return c.subtract(apply("bitcast_convert", (bits,), None, dtype, words.shape), 1)


def _uniform(key, shape, dtype, low, high):
    low, high = (c.cast(array(v), dtype) for v in (low, high))
    y = c.add(c.multiply(_unit(key, shape, dtype), c.subtract(high, low)), low)
    return c.maximum(y, low)


# Giles' polynomials of erf_inv(x) / x in w = -log(1 - x * x), below w = 5 and above,
# which XLA has: those of erfinv() are nearer to the truth, and other numbers.
_BELOW = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
          -0.00125372503, -0.00417768164, 0.246640727, 1.50140941)
_ABOVE = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
          -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)


def _erf_inv(x):
    if x.dtype == c.float64:
        return c.erfinv(x)
    dtype, x = x.dtype, c.cast(x, c.float32)
    w = c.negative(c.log1p(c.multiply(c.negative(x), x)))
    low = c.less(w, 5.0)
    w = c.where(low, c.subtract(w, 2.5), c.subtract(c.sqrt(w), 3.0))
    p = None
    for a, b in zip(_BELOW, _ABOVE):
        k = c.where(low, number(a, w), number(b, w))
        p = k if p is None else c.add(k, c.multiply(p, w))
    y = c.multiply(p, x)
    edge = c.equal(c.abs(x), 1.0)
    return c.cast(c.where(edge, c.multiply(x, float("inf")), y), dtype)


# The least float above -1, and the least normal one above 0.
_LOWEST = {"float32": -0.99999994, "float64": -0.9999999999999999, "float16": -0.9995,
           "bfloat16": -0.996}
_TINY = {"float32": 2.0**-126, "float64": 2.0**-1022, "float16": 2.0**-14,
         "bfloat16": 2.0**-126}


def _normal(key, shape, dtype):
    u = _uniform(key, shape, dtype, _LOWEST[dtype.name], 1.0)
    return c.multiply(_erf_inv(u), math.sqrt(2))


_split_jit = jit(_split, static_argnums=1)
_fold_in_jit = jit(_fold_in)
_bits_jit = jit(_bits, static_argnums=(1, 2))
_uniform_jit = jit(_uniform, static_argnums=(1, 2))
_normal_jit = jit(_normal, static_argnums=(1, 2))


def split(key, num=2, /):
    """num keys of a key, an array of shape (num, 2).

    key: of key(); num: at least 0.
    Raises TypeError for no key, ValueError for num below 0.

    >>> pt.random.split(pt.random.key(0), 3).shape
    (3, 2)
    """
    _words(key)
    return _split_jit(key, num)


def fold_in(key, data, /):
    """The key that key and an integer make.

    key: of key(); data: an integer or an array of rank 0.
    Raises TypeError for no key.

    >>> pt.random.fold_in(pt.random.key(0), 7).shape
    (2,)
    """
    _words(key)
    if isinstance(data, int):
        data = asarray(data & 0xFFFFFFFF, dtype=c.uint32)
    return _fold_in_jit(key, data)


def bits(key, shape=(), dtype=None):
    """Random bits as numbers of uint8, uint16, uint32 or uint64.

    key: of key(); dtype: an unsigned integer of 8 bits or more, uint32 unless it is
    given.
    Raises TypeError for no key and another dtype, ValueError for negative extents.

    >>> pt.random.bits(pt.random.key(0), (2,)).dtype.name
    'uint32'
    """
    _words(key)
    dtype = dtype_of(dtype, c.uint32)
    if dtype.kind != "u":
        raise TypeError(f"bits are unsigned integers, not {dtype}")
    return _bits_jit(key, shape_of(shape), dtype)


def uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0):
    """Floats in [minval, maxval), all equally likely.

    key: of key(); minval, maxval: numbers or arrays that broadcast to shape; dtype:
    floats.
    Raises TypeError for no key and another dtype, ValueError for negative extents.

    >>> pt.random.uniform(pt.random.key(0), (2, 3)).shape
    (2, 3)
    """
    _words(key)
    dtype = dtype_of(dtype, default_float())
    if dtype.name not in _UNIT:
        raise TypeError(f"uniform() gives floats, not {dtype}")
    return _uniform_jit(key, shape_of(shape), dtype, minval, maxval)


def normal(key, shape=(), dtype=None):
    """Floats of mean 0 and deviation 1.

    key: of key(); dtype: floats.
    Raises TypeError for no key and another dtype, ValueError for negative extents.

    >>> pt.random.normal(pt.random.key(0), (2, 3)).shape
    (2, 3)
    """
    _words(key)
    dtype = dtype_of(dtype, default_float())
    if dtype.name not in _UNIT:
        raise TypeError(f"normal() gives floats, not {dtype}")
    return _normal_jit(key, shape_of(shape), dtype)


def truncated_normal(key, lower, upper, shape=(), dtype=None):
    """normal(), but in (lower, upper).

    key: of key(); lower, upper: numbers or arrays that broadcast to shape; dtype:
    floats.
    Raises TypeError for no key and another dtype.

    >>> pt.random.truncated_normal(pt.random.key(0), -1.0, 1.0, (2,)).shape
    (2,)
    """
    dtype = dtype_of(dtype, default_float())
    root = math.sqrt(2)
    lower, upper = (c.cast(array(v), dtype) for v in (lower, upper))
    a, b = (c.erf(c.divide(v, root)) for v in (lower, upper))
    u = uniform(key, shape, dtype)
    u = c.maximum(c.add(c.multiply(u, c.subtract(b, a)), a), a)
    y = c.multiply(_erf_inv(u), root)
    low, high = c.nextafter(lower, float("inf")), c.nextafter(upper, -float("inf"))
    return c.minimum(c.maximum(y, low), high)


def bernoulli(key, p=0.5, shape=None):
    """Whether something of probability p happens.

    key: of key(); p: a number or an array. The result is of bool, of shape, or p's.
    Raises TypeError for no key.

    >>> pt.random.bernoulli(pt.random.key(0), 1.0, (2,)).tolist()
    [True, True]
    """
    p = array(p)
    p = p if is_float(p.dtype) else c.cast(p, default_float())
    shape = p.shape if shape is None else shape_of(shape)
    return c.less(uniform(key, shape, p.dtype), p)


def randint(key, shape, minval, maxval, dtype=None):
    """Integers in [minval, maxval); minval where there are none.

    key: of key(); minval, maxval: integers or arrays that broadcast to shape; dtype:
    integers, int32 unless it is given.
    Raises TypeError for no key and another dtype, ValueError for negative extents.

    >>> pt.random.randint(pt.random.key(0), (2,), 5, 6).tolist()
    [5, 5]
    """
    dtype = dtype_of(dtype, c.int32)
    if dtype.kind not in "iu":
        raise TypeError(f"randint() gives integers, not {dtype}")
    if dtype.bits < 32:
        wide = c.int32 if dtype.kind == "i" else c.uint32
        first, _ = _bound(minval, dtype, key)
        end, is_over = _bound(maxval, dtype, key)
        first, end = c.cast(first, wide), c.cast(end, wide)
        if is_over is not False:
            end = c.where(is_over, c.add(end, 1), end)
        return c.cast(randint(key, shape, first, end, wide), dtype)
    words = {32: c.uint32, 64: c.uint64}[dtype.bits]
    shape = shape_of(shape)
    keys = split(key)
    high, low = bits(keys[0], shape, words), bits(keys[1], shape, words)
    first, _ = _bound(minval, dtype, key)
    end, is_over = _bound(maxval, dtype, key)
    span = c.cast(c.subtract(end, first), words)
    # Where there is no number between them, and one more where the end is none of dtype;
    # of all numbers of dtype the span is 0, by which a remainder is the word itself.
    is_none = c.less_equal(end, first)
    span = c.where(is_none, c.number(1, span), span)
    if is_over is not False:
        wider = c.logical_and(is_over, c.logical_not(is_none))
        span = c.where(wider, c.add(span, c.number(1, span)), span)
    # 2**bits modulo the span, by its half: high * that + low, all modulo the span.
    half = c.remainder(c.full((), 2**(dtype.bits // 2), words, key.device), span)
    factor = c.remainder(c.multiply(half, half), span)
    y = c.add(c.multiply(c.remainder(high, span), factor), c.remainder(low, span))
    return c.add(first, c.cast(c.remainder(y, span), dtype))


def _bound(value, dtype, key):
    """value as the nearest number of dtype, and whether it is above all of them."""
    least, most = limits(dtype)
    if isinstance(value, int):
        near = c.full((), min(max(value, least), most), dtype, key.device)
        return near, c.full((), True, c.bool, key.device) if value > most else False
    value = array(value)
    if value.dtype.kind not in "iu":
        raise TypeError(f"randint() has integers as bounds, not {value.dtype}")
    own_least, own_most = limits(value.dtype)
    is_over = False
    if own_most > most:
        is_over = c.greater(value, most)
        value = c.minimum(value, most)
    if own_least < least:
        value = c.maximum(value, least)
    return c.cast(value, dtype), is_over


def permutation(key, x, /):
    """x, or the integers below x, in a random order along the first axis.

    key: of key(); x: an array of at least one axis, or an integer. The result has x's
    shape and dtype.
    Raises ValueError for rank 0, TypeError for no key.

    >>> pt.sort(pt.random.permutation(pt.random.key(0), 4)).tolist()
    [0, 1, 2, 3]
    """
    from ._index import take
    from ._make import arange
    from ._reduce import _sort_by
    if isinstance(x, int):
        x = arange(x, dtype=c.int32)
    if not need_array(x).ndim:
        raise ValueError("permutation() takes an array of at least one axis")
    n = x.shape[0]
    # Sorted by random words as often as makes equal ones unlikely, as jax does.
    rounds = math.ceil(3 * math.log(max(1, n)) / math.log(2**32 - 1))
    order = iota((n,), 0, c.int64, x.device)
    for _ in range(rounds):
        keys = split(key)
        key = keys[0]
        order = take(order, _sort_by(bits(keys[1], (n,)), 0)[1])
    return take(x, order, axis=0)


def gumbel(key, shape=(), dtype=None):
    """-log(-log(u)) of uniform u.

    key: of key(); dtype: floats.
    Raises TypeError for no key and another dtype, ValueError for negative extents.

    >>> pt.random.gumbel(pt.random.key(0), (2,)).shape
    (2,)
    """
    dtype = dtype_of(dtype, default_float())
    if dtype.name not in _UNIT:
        raise TypeError(f"gumbel() gives floats, not {dtype}")
    u = uniform(key, shape, dtype, _TINY[dtype.name], 1.0)
    return c.negative(c.log(c.negative(c.log(u))))


def categorical(key, logits, axis=-1, shape=None):
    """Places along axis, of probabilities softmax(logits).

    logits: floats; axis: that of the categories. The result is of int64.
    Raises TypeError for others and no key, IndexError for an axis that logits have not.

    >>> pt.random.categorical(pt.random.key(0), pt.asarray([0.0, 1000.0])).tolist()
    1
    """
    from ._reduce import argmax
    if not is_float(need_array(logits, "logits").dtype):
        raise TypeError(f"logits are floats, not {logits.dtype}")
    axis_of(axis, logits.ndim)
    batch = list(logits.shape)
    del batch[axis]
    wide = logits.shape if shape is None else None
    if wide is None:
        shape = shape_of(shape)
        extra = shape[:len(shape) - len(batch)]
        axis = axis if axis < 0 else axis - logits.ndim
        wide = extra + logits.shape
    return argmax(c.add(gumbel(key, wide, logits.dtype), logits), axis=axis)


def choice(key, a, shape=(), replace=True, p=None):
    """Elements of a, or of the integers below a, each time anew, or none twice where
    replace is not set; p are their probabilities.

    a: an array, chosen from along its first axis, or an integer; p: None, or an array
    of probabilities.
    Raises ValueError where more are to be chosen than there are, TypeError for no key.

    >>> pt.random.choice(pt.random.key(0), 1, (2,)).tolist()
    [0, 0]
    """
    from ._index import take
    from ._make import arange
    from ._reduce import cumulative_sum, searchsorted, topk
    shape = shape_of(shape)
    a = arange(a, dtype=c.int32) if isinstance(a, int) else need_array(a, "a")
    n, count = a.shape[0], count_of(shape)
    if not replace and count > n:
        raise ValueError(f"{count} of {n} elements cannot be chosen, none twice")
    if p is None:
        if replace:
            at = randint(key, shape, 0, n)
        else:
            at = reshape_to(permutation(key, n)[:count], shape)
    elif replace:
        sums = cumulative_sum(array(p))
        u = c.multiply(sums[-1], c.subtract(1, uniform(key, shape, sums.dtype)))
        at = searchsorted(sums, u)
    else:
        g = c.add(gumbel(key, (n,), array(p).dtype), c.log(array(p)))
        at = reshape_to(topk(g, count)[1], shape)
    return take(a, c.cast(at, c.int64), axis=0)


def exponential(key, shape=(), dtype=None):
    """Waiting times of mean 1.

    key: of key(); dtype: floats.
    Raises TypeError for no key and another dtype, ValueError for negative extents.

    >>> pt.random.exponential(pt.random.key(0), (2,)).shape
    (2,)
    """
    return c.negative(c.log1p(c.negative(uniform(key, shape, dtype))))


# pylint: disable=wrong-import-position
from . import _distributions

for _name in ("beta", "cauchy", "chisquare", "dirichlet", "gamma", "laplace", "loggamma",
              "logistic", "multivariate_normal", "poisson", "rademacher", "t"):
    globals()[_name] = getattr(_distributions, _name)
    globals()[_name].__module__ = __name__
_streams.install(globals(), ("random",), __name__)
