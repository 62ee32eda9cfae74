# SPDX-License-Identifier: Apache-2.0
"""Discrete Fourier transforms."""

import math

from . import _pestle as c
from . import _streams
from ._core import (WHOLE, apply, axes_of, axis_of, default_float, iota, is_complex,
                    is_float, need_array, slice_axis)
from ._shape import concat, moveaxis, roll


def _part(x):
    """What the parts of numbers are that x is transformed as."""
    if is_float(x.dtype):
        return c.float64 if x.dtype == c.float64 else c.float32
    return default_float()


def _complex(x):
    need_array(x)
    if is_complex(x.dtype):
        return x
    return c.cast(x, WHOLE[_part(x)])


def _fit(x, axis, n):
    """x cut, or with zeros, to n elements along axis."""
    have = x.shape[axis]
    if n < 1:
        raise ValueError(f"a transform has at least one element, not {n}")
    if have >= n:
        return slice_axis(x, axis, 0, n) if have > n else x
    shape = list(x.shape)
    shape[axis] = n - have
    return concat([x, c.full(shape, 0, x.dtype, x.device)], axis=axis)


# What a transform and its inverse are multiplied by, beside the op's own 1 / n.
def _scale(x, n, norm, inverse):
    if norm not in ("backward", "ortho", "forward"):
        raise ValueError(f"norm is {norm!r}: 'backward', 'ortho' and 'forward' are "
                         "known")
    if norm == "ortho":
        factor = math.sqrt(n) if inverse else 1 / math.sqrt(n)
    else:
        factor = 1 if (norm == "backward") else (n if inverse else 1 / n)
    return x if factor == 1 else c.multiply(x, factor)


def _transform(x, kind, axis, n, length):
    last = x.ndim - 1
    x = moveaxis(x, axis, last) if axis != last else x
    y = apply("fft", (x,), {"fft_type": kind, "fft_length": (length,)})
    return moveaxis(y, last, axis) if axis != last else y


def fft(x, /, *, n=None, axis=-1, norm="backward"):
    """The transform along axis, of n elements.

    x: numbers with at least one axis; real ones become complex. The result is complex,
    with n along axis.
    Raises IndexError for an axis that x has not, ValueError for another norm and n
    below 1.

    >>> pt.fft.fft(pt.asarray([1.0, 0.0])).tolist()
    [(1+0j), (1+0j)]
    """
    x = _complex(x)
    axis = axis_of(axis, x.ndim)
    n = x.shape[axis] if n is None else n
    return _scale(_transform(_fit(x, axis, n), "FFT", axis, n, n), n, norm, False)


def ifft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse transform along axis, of n elements.

    x: numbers with at least one axis; real ones become complex. The result is complex,
    with n along axis.
    Raises IndexError for an axis that x has not, ValueError for another norm and n
    below 1.

    >>> pt.fft.ifft(pt.asarray([2.0, 0.0])).tolist()
    [(1+0j), (1+0j)]
    """
    x = _complex(x)
    axis = axis_of(axis, x.ndim)
    n = x.shape[axis] if n is None else n
    return _scale(_transform(_fit(x, axis, n), "IFFT", axis, n, n), n, norm, True)


def _real(x, name):
    need_array(x)
    if is_complex(x.dtype):
        raise TypeError(f"{name}() takes real numbers, not an array of {x.dtype}")
    return c.cast(x, _part(x))


def rfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The first n // 2 + 1 frequencies of real x along axis.

    x: real numbers with at least one axis. The result is complex.
    Raises TypeError for complex numbers, IndexError for an axis that x has not,
    ValueError for another norm and n below 1.

    >>> pt.fft.rfft(pt.asarray([1.0, 0.0])).tolist()
    [(1+0j), (1+0j)]
    """
    x = _real(x, "rfft")
    axis = axis_of(axis, x.ndim)
    n = x.shape[axis] if n is None else n
    return _scale(_transform(_fit(x, axis, n), "RFFT", axis, n, n), n, norm, False)


def irfft(x, /, *, n=None, axis=-1, norm="backward"):
    """n real numbers from the first frequencies, the inverse of rfft().

    x: numbers with at least one axis. The result is of floats, with n along axis, 2 (m
    - 1) of m unless n is given.
    Raises IndexError for an axis that x has not, ValueError for another norm and n
    below 1.

    >>> pt.fft.irfft(pt.asarray([2.0, 0.0])).tolist()
    [1.0, 1.0]
    """
    x = _complex(x)
    axis = axis_of(axis, x.ndim)
    n = 2 * (x.shape[axis] - 1) if n is None else n
    y = _transform(_fit(x, axis, n // 2 + 1), "IRFFT", axis, n, n)
    return _scale(y, n, norm, True)


def hfft(x, /, *, n=None, axis=-1, norm="backward"):
    """n real frequencies of x, the first half of a Hermitian signal.

    x: numbers with at least one axis. The result is of floats, with n along axis.
    Raises IndexError for an axis that x has not, ValueError for another norm and n
    below 1.

    >>> pt.fft.hfft(pt.asarray([1.0, 0.0])).tolist()
    [1.0, 1.0]
    """
    x = c.conj(_complex(x))
    axis = axis_of(axis, x.ndim)
    n = 2 * (x.shape[axis] - 1) if n is None else n
    y = c.multiply(_transform(_fit(x, axis, n // 2 + 1), "IRFFT", axis, n, n), n)
    return _scale(y, n, norm, False)


def ihfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The first half of the Hermitian signal whose frequencies are real x.

    x: real numbers with at least one axis. The result is complex.
    Raises TypeError for complex numbers, IndexError for an axis that x has not,
    ValueError for another norm and n below 1.

    >>> pt.fft.ihfft(pt.asarray([1.0, 0.0])).tolist()
    [(0.5-0j), (0.5-0j)]
    """
    x = _real(x, "ihfft")
    axis = axis_of(axis, x.ndim)
    n = x.shape[axis] if n is None else n
    y = c.conj(_transform(_fit(x, axis, n), "RFFT", axis, n, n))
    return _scale(c.divide(y, n), n, norm, True)


def _several(x, s, axes):
    """(axis, n) of each transform."""
    if axes is None:
        axes = tuple(range(x.ndim - len(s), x.ndim)) if s is not None else None
    axes = axes_of(axes, x.ndim)
    sizes = [x.shape[a] for a in axes] if s is None else list(s)
    if len(sizes) != len(axes):
        raise ValueError(f"{len(sizes)} sizes are given for {len(axes)} axes")
    return list(zip(axes, sizes))


def fftn(x, /, *, s=None, axes=None, norm="backward"):
    """The transform along axes, of s elements.

    x: numbers; axes: None, all of them, or the last len(s). The result is complex.
    Raises IndexError for an axis that x has not, ValueError for other counts and
    another norm.

    >>> pt.fft.fftn(pt.asarray([[4.0, 0.0], [0.0, 0.0]])).tolist()
    [[(4+0j), (4+0j)], [(4+0j), (4+0j)]]
    """
    for axis, n in _several(need_array(x), s, axes):
        x = fft(x, n=n, axis=axis, norm=norm)
    return x


def ifftn(x, /, *, s=None, axes=None, norm="backward"):
    """The inverse transform along axes, of s elements.

    x: numbers; axes: None, all of them, or the last len(s). The result is complex.
    Raises IndexError for an axis that x has not, ValueError for other counts and
    another norm.

    >>> pt.fft.ifftn(pt.asarray([[4.0, 0.0], [0.0, 0.0]])).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    for axis, n in _several(need_array(x), s, axes):
        x = ifft(x, n=n, axis=axis, norm=norm)
    return x


def rfftn(x, /, *, s=None, axes=None, norm="backward"):
    """The transform of real x along axes: the first half along the last of them.

    x: real numbers; axes: None, all of them, or the last len(s). The result is complex.
    Raises TypeError for complex numbers, IndexError for an axis that x has not,
    ValueError for other counts and another norm.

    >>> pt.fft.rfftn(pt.asarray([[4.0, 0.0], [0.0, 0.0]])).tolist()
    [[(4+0j), (4+0j)], [(4+0j), (4+0j)]]
    """
    *others, (axis, n) = _several(need_array(x), s, axes)
    x = rfft(x, n=n, axis=axis, norm=norm)
    for axis, n in others:
        x = fft(x, n=n, axis=axis, norm=norm)
    return x


def irfftn(x, /, *, s=None, axes=None, norm="backward"):
    """The inverse of rfftn().

    x: numbers; axes: None, all of them, or the last len(s). The result is of floats.
    Raises IndexError for an axis that x has not, ValueError for other counts and
    another norm.

    >>> pt.fft.irfftn(pt.ones((2, 2))).shape
    (2, 2)
    """
    rows = _several(need_array(x), s, axes)
    if s is None:
        rows[-1] = (rows[-1][0], 2 * (x.shape[rows[-1][0]] - 1))
    for axis, n in rows[:-1]:
        x = ifft(x, n=n, axis=axis, norm=norm)
    return irfft(x, n=rows[-1][1], axis=rows[-1][0], norm=norm)


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of a transform of n elements at distances d.

    The result has one axis, of floats.
    Raises ValueError for n below 1, TypeError for no dtype.

    >>> pt.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    dtype = default_float() if dtype is None else c.dtype(dtype)
    if n < 1:
        raise ValueError(f"a transform has at least one element, not {n}")
    i = c.cast(iota((n,), 0, c.int64, device), dtype)
    y = c.where(c.less(i, (n + 1) // 2), i, c.subtract(i, n))
    return c.divide(y, n * d)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of rfft() of n elements at distances d.

    The result has one axis, of floats.
    Raises ValueError for n below 1, TypeError for no dtype.

    >>> pt.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    dtype = default_float() if dtype is None else c.dtype(dtype)
    if n < 1:
        raise ValueError(f"a transform has at least one element, not {n}")
    return c.divide(c.cast(iota((n // 2 + 1,), 0, c.int64, device), dtype), n * d)


def fftshift(x, /, *, axes=None):
    """x with frequency 0 in the middle of axes.

    x: of any dtype; axes: None, one or several.
    Raises IndexError for an axis that x has not.

    >>> pt.fft.fftshift(pt.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    axes = axes_of(axes, need_array(x).ndim)
    return roll(x, tuple(x.shape[a] // 2 for a in axes), axis=axes)


def ifftshift(x, /, *, axes=None):
    """The inverse of fftshift().

    x: of any dtype; axes: None, one or several.
    Raises IndexError for an axis that x has not.

    >>> pt.fft.ifftshift(pt.asarray([1, 2, 3])).tolist()
    [2, 3, 1]
    """
    axes = axes_of(axes, need_array(x).ndim)
    return roll(x, tuple(-(x.shape[a] // 2) for a in axes), axis=axes)


_streams.install(globals(), ("fft",), __name__)
