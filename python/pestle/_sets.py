# SPDX-License-Identifier: Apache-2.0
"""Sets. Their sizes depend on data: these functions evaluate."""

from collections import namedtuple

from . import _pestle as c
from ._core import Array, apply, array, is_complex, iota, need_array, reshape_to
from ._core import slice_axis, body
from ._index import put_flat, take
from ._reduce import _sort_by, cumulative_sum, diff, nonzero
from ._shape import concat, expand_dims, ravel

unique_all_result = namedtuple("unique_all_result",
                               "values indices inverse_indices counts")
unique_counts_result = namedtuple("unique_counts_result", "values counts")
unique_inverse_result = namedtuple("unique_inverse_result", "values inverse_indices")


def _order_flat(x):
    """x flat and in order, with the places of its elements; complex numbers by
    their real parts, then their imaginary ones."""
    flat = ravel(need_array(x))
    if not is_complex(x.dtype):
        return _sort_by(flat, 0)
    real, imag = c.real(flat), c.imag(flat)
    part = real.dtype

    def before(a, b, p, q, i, j):
        return c.logical_or(c.less(a, b), c.logical_and(c.equal(a, b), c.less(p, q)))
    order = body("sort_complex", before, part, part, part, part, c.int64, c.int64)
    real, imag, places = apply(
        "sort", (real, imag, iota(flat.shape, 0, c.int64, x.device)),
        {"dimension": 0, "is_stable": True}, None, None, (order,))
    return apply("complex", (real, imag)), places


def _runs(x):
    """x in order, its places, and where in it each value begins."""
    values, places = _order_flat(x)
    n = x.size
    if not n:
        return values, places, c.full((0,), 0, c.int64, x.device), None
    differs = c.not_equal(slice_axis(values, 0, 1, n), slice_axis(values, 0, 0, n - 1))
    first = concat([c.full((1,), True, c.bool, x.device), differs])
    return values, places, nonzero(first)[0], first


def unique_all(x, /):
    """The values that x has, in order, the place of the first of each, the place
    among them of each element, and how often each occurs. Each NaN is a value.

    x: of any dtype and shape; places are of int64.
    Raises ValueError in a trace, since sizes depend on data.

    >>> [y.tolist() for y in pt.unique_all(pt.asarray([3, 1, 3]))]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    values, places, starts, first = _runs(x)
    n = x.size
    ends = concat([starts, c.full((1,), n, c.int64, x.device)])
    counts = diff(ends) if n else starts
    if n:
        run = c.subtract(cumulative_sum(c.cast(first, c.int64)), 1)
        inverse = put_flat(c.full((n,), 0, c.int64, x.device), places, run)
    else:
        inverse = places
    return unique_all_result(take(values, starts), take(places, starts),
                             reshape_to(inverse, x.shape), counts)


def unique_counts(x, /):
    """The values that x has, in order, and how often each occurs.

    x: of any dtype and shape; counts are of int64.
    Raises ValueError in a trace, since sizes depend on data.

    >>> [y.tolist() for y in pt.unique_counts(pt.asarray([3, 1, 3]))]
    [[1, 3], [1, 2]]
    """
    y = unique_all(x)
    return unique_counts_result(y.values, y.counts)


def unique_inverse(x, /):
    """The values that x has, in order, and the place among them of each element.

    x: of any dtype and shape; places are of int64 and of x's shape.
    Raises ValueError in a trace, since sizes depend on data.

    >>> [y.tolist() for y in pt.unique_inverse(pt.asarray([3, 1, 3]))]
    [[1, 3], [1, 0, 1]]
    """
    y = unique_all(x)
    return unique_inverse_result(y.values, y.inverse_indices)


def unique_values(x, /):
    """The values that x has, in order.

    x: of any dtype and shape.
    Raises ValueError in a trace, since the size depends on data.

    >>> pt.unique_values(pt.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    values, _, starts, _ = _runs(x)
    return take(values, starts)


def isin(x1, x2, /, *, invert=False):
    """Whether each element of x1 is one of x2.

    x1, x2: arrays of any shape, or one of them a number. The result has x1's shape and
    is of bool.
    Raises TypeError for dtypes without a common one.

    >>> pt.isin(pt.asarray([1, 2, 3]), pt.asarray([2, 5])).tolist()
    [False, True, False]
    """
    like = x1 if isinstance(x1, Array) else x2
    x1, x2 = array(x1, like), array(x2, like)
    dtype = c.promote(x1.dtype, x2.dtype)
    a, b = expand_dims(c.cast(x1, dtype), x1.ndim), ravel(c.cast(x2, dtype))
    y = c.fold("or", c.equal(a, b), (x1.ndim,))
    return c.logical_not(y) if invert else y
