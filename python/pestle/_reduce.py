# SPDX-License-Identifier: Apache-2.0
"""Reductions, searches and sorts."""

from . import _pestle as c
from ._core import (Array, PART, WHOLE, apply, array, axes_of, axis_of, body,
                    broadcast_dims, count_of, default_float, dtype_of, fold_sum, iota,
                    is_complex, is_float, is_int, limits, need_array, number, reshape_to, slice_axis)
from ._shape import broadcast_to, concat, expand_dims, flip, ravel, squeeze


def _kept(y, shape, axes, keepdims):
    """What was reduced over axes, with these as axes of extent 1 if so wished."""
    if not keepdims:
        return y
    return reshape_to(y, [1 if i in axes else d for i, d in enumerate(shape)])


def _fold(op, x, axis, keepdims):
    axes = axes_of(axis, x.ndim)
    return _kept(c.fold(op, x, axes), x.shape, axes, keepdims)


def _sum_dtype(x, dtype):
    """What sums and products of x are of: integers and bools are wide ones."""
    if dtype is not None:
        return c.dtype(dtype)
    if x.dtype.kind in "bi":
        return c.int64
    return c.uint64 if x.dtype.kind == "u" else x.dtype


def _numeric(x, name):
    need_array(x)
    if x.dtype == c.bool and name != "sum":
        raise TypeError(f"{name}() takes no array of bool")
    return x


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """The sum over axis; of integers in int64 or uint64.

    x: of any dtype; axis: None, an axis or several. The result has dtype, or x's; the
    sum of none is 0.
    Raises IndexError for an axis that x has not, ValueError for one that is named
    twice, TypeError for complex numbers as real ones.

    >>> pt.sum(pt.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    """
    x = c.cast(need_array(x), _sum_dtype(x, dtype))
    axes = axes_of(axis, x.ndim)
    return _kept(fold_sum(x, axes), x.shape, axes, keepdims)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """The product over axis; of integers in int64 or uint64.

    x: of any dtype; axis: None, an axis or several. The result has dtype, or x's; the
    product of none is 1.
    Raises IndexError for an axis that x has not, TypeError for complex numbers as real
    ones.

    >>> pt.prod(pt.asarray([2, 3, 4])).tolist()
    24
    """
    return _fold("multiply", c.cast(need_array(x), _sum_dtype(x, dtype)), axis,
                 keepdims)


def _extreme(op, x, axis, keepdims):
    need_array(x)
    if is_complex(x.dtype):
        raise TypeError("complex numbers have no order")
    axes = axes_of(axis, x.ndim)
    if not count_of(x.shape[a] for a in axes):
        raise ValueError(f"the array of shape {x.shape} has no elements along axis "
                         f"{axis}, and no {op} of them")
    return _fold(op, x, axis, keepdims)


def max(x, /, *, axis=None, keepdims=False):
    """The largest element over axis; NaN where there is one.

    x: real numbers or bools; axis: None, an axis or several, with elements. The result
    has x's dtype.
    Raises IndexError for an axis that x has not, ValueError for no elements, TypeError
    for complex numbers.

    >>> pt.max(pt.asarray([[1, 5], [7, 2]]), axis=0).tolist()
    [7, 5]
    """
    return _extreme("maximum", x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """The least element over axis; NaN where there is one.

    x: real numbers or bools; axis: None, an axis or several, with elements. The result
    has x's dtype.
    Raises IndexError for an axis that x has not, ValueError for no elements, TypeError
    for complex numbers.

    >>> pt.min(pt.asarray([[1, 5], [7, 2]]), axis=0).tolist()
    [1, 2]
    """
    return _extreme("minimum", x, axis, keepdims)


def _truth(x):
    return x if need_array(x).dtype == c.bool else c.not_equal(x, 0)


def all(x, /, *, axis=None, keepdims=False):
    """Whether all elements over axis are other than 0.

    x: of any dtype and shape; axis: None, an axis or several. The result is of bool,
    without these axes, or with them as 1.
    Raises IndexError for an axis that x has not, TypeError for no array.

    >>> pt.all(pt.asarray([[1, 0], [2, 3]]), axis=1).tolist()
    [False, True]
    """
    return _fold("and", _truth(x), axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    """Whether an element over axis is other than 0.

    x: of any dtype and shape; axis: None, an axis or several. The result is of bool,
    without these axes, or with them as 1.
    Raises IndexError for an axis that x has not, TypeError for no array.

    >>> pt.any(pt.asarray([[0, 0], [2, 3]]), axis=1).tolist()
    [False, True]
    """
    return _fold("or", _truth(x), axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements over axis are other than 0.

    x: of any dtype and shape; axis: None, an axis or several. The result is of int64.
    Raises IndexError for an axis that x has not, TypeError for no array.

    >>> pt.count_nonzero(pt.asarray([0, 3, 0, 1])).tolist()
    2
    """
    return sum(_truth(x), axis=axis, keepdims=keepdims)


def _floats(x, name):
    need_array(x)
    if x.dtype.kind not in "fc":
        return c.cast(x, default_float())
    return x


def mean(x, /, *, axis=None, keepdims=False):
    """The mean over axis.

    x: of any dtype; axis: None, an axis or several. The result is a float or complex;
    integers are taken as config.default_float.
    Raises IndexError for an axis that x has not.

    >>> pt.mean(pt.asarray([1, 2, 6])).tolist()
    3.0
    """
    x = _floats(x, "mean")
    n = count_of(x.shape[a] for a in axes_of(axis, x.ndim))
    wide = _wide(x)
    return c.cast(c.divide(sum(wide, axis=axis, keepdims=keepdims), n), x.dtype)


def _wide(x):
    """Floats in which counts and sums of x are numbers."""
    return c.cast(x, c.float32) if is_float(x.dtype) and x.dtype.bits < 32 else x


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The mean square of the distances from the mean over axis; the count is
    lessened by correction.

    x: of any dtype; axis: None, an axis or several; correction: a number. The result is
    a float; of fewer elements than correction NaN.
    Raises IndexError for an axis that x has not.

    >>> pt.var(pt.asarray([1.0, 3.0])).tolist()
    1.0
    """
    x = _floats(x, "var")
    return c.cast(_var(_wide(x), axis, correction, keepdims), PART.get(x.dtype, x.dtype))


def _var(x, axis, correction, keepdims):
    n = count_of(x.shape[a] for a in axes_of(axis, x.ndim))
    away = c.subtract(x, mean(x, axis=axis, keepdims=True))
    size = c.square(c.abs(away)) if is_complex(x.dtype) else c.square(away)
    # Of fewer elements than correction there is no variance: NaN.
    rest = n - correction
    total = sum(size, axis=axis, keepdims=keepdims)
    return c.divide(total, rest if rest > 0 else float("nan") if n == 0 or rest < 0
                    else 0.0)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The root of var().

    x: of any dtype; axis: None, an axis or several; correction: a number. The result is
    a float.
    Raises IndexError for an axis that x has not.

    >>> pt.std(pt.asarray([1.0, 3.0])).tolist()
    1.0
    """
    x = _floats(x, "std")
    y = c.sqrt(_var(_wide(x), axis, correction, keepdims))
    return c.cast(y, PART.get(x.dtype, x.dtype))


# --- Cumulative ---

def _cumulate(op, x, axis, dtype, include_initial, start):
    need_array(x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError("axis must be said where an array has several axes")
        axis = 0
    axis = axis_of(axis, x.ndim)
    x = c.cast(x, _sum_dtype(x, dtype))
    y = apply("cumulative", (x,), {"dimension": axis, "combiner": op})
    if not include_initial:
        return y
    first = list(x.shape)
    first[axis] = 1
    return concat([c.full(first, start, x.dtype, x.device), y], axis=axis)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """The sums of the first elements along axis: of one, of two, ...

    x: numbers with at least one axis; axis may be None where there is one. The result
    has x's shape, one more along axis with include_initial, and the dtype of sum().
    Raises ValueError for None with several axes, IndexError for an axis that x has not.

    >>> pt.cumulative_sum(pt.asarray([1, 2, 3]), include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    return _cumulate("ADD", x, axis, dtype, include_initial, 0)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """The products of the first elements along axis: of one, of two, ...

    x: numbers with at least one axis; axis may be None where there is one. The result
    has x's shape, one more along axis with include_initial, and the dtype of prod().
    Raises ValueError for None with several axes, IndexError for an axis that x has not.

    >>> pt.cumulative_prod(pt.asarray([1, 2, 3])).tolist()
    [1, 2, 6]
    """
    return _cumulate("MULTIPLY", x, axis, dtype, include_initial, 1)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """The differences of neighbours along axis, taken n times.

    x: of any dtype, with at least one axis; n: at least 0. The result is n shorter
    along axis.
    Raises IndexError for an axis that x has not, ValueError for parts of other shapes.

    >>> pt.diff(pt.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    axis = axis_of(axis, need_array(x).ndim)
    parts = [p for p in (prepend, x, append) if p is not None]
    if len(parts) > 1:
        x = concat(parts, axis=axis)
    for _ in range(n):
        size = x.shape[axis]
        if not size:
            return x
        high, low = slice_axis(x, axis, 1, size), slice_axis(x, axis, 0, size - 1)
        x = c.bitwise_xor(high, low) if x.dtype == c.bool else c.subtract(high, low)
    return x


# --- Places ---

def _place(x, axis, keepdims, extreme):
    need_array(x)
    shape = x.shape
    if axis is None:
        flat, at = ravel(x), 0
    else:
        flat, at = x, axis_of(axis, x.ndim)
    if not flat.shape[at]:
        raise ValueError(f"an array of shape {shape} has no element to be found")
    best = extreme(flat, axis=at, keepdims=True)
    found = c.equal(flat, best)
    if is_float(x.dtype):
        found = c.logical_or(found, c.isnan(flat))
    i = iota(flat.shape, at, c.int64, x.device)
    y = c.fold("minimum", c.where(found, i, flat.shape[at]), (at,))
    if not keepdims:
        return y
    return reshape_to(y, [1 if axis is None or d == at else n
                          for d, n in enumerate(shape)])


def argmax(x, /, *, axis=None, keepdims=False):
    """The place of the first largest element along axis, of all where that is None.

    x: real numbers of any shape; NaN is the largest. The result is of int64.
    Raises IndexError for an axis that x has not, ValueError for no elements, TypeError
    for complex numbers.

    >>> pt.argmax(pt.asarray([[1, 5], [7, 2]]), axis=1).tolist()
    [1, 0]
    """
    return _place(x, axis, keepdims, max)


def argmin(x, /, *, axis=None, keepdims=False):
    """The place of the first least element along axis, of all where that is None.

    x: real numbers of any shape; NaN is the least. The result is of int64.
    Raises IndexError for an axis that x has not, ValueError for no elements, TypeError
    for complex numbers.

    >>> pt.argmin(pt.asarray([[1, 5], [7, 2]]), axis=1).tolist()
    [0, 1]
    """
    return _place(x, axis, keepdims, min)


def nonzero(x, /):
    """The places of elements other than 0, an array for each axis. Evaluates.

    x: of any dtype, at least one axis. The results are of int64.
    Raises ValueError for rank 0 and in a trace, since the size depends on data.

    >>> [i.tolist() for i in pt.nonzero(pt.asarray([[0, 1], [2, 0]]))]
    [[0, 1], [1, 0]]
    """
    if need_array(x).ndim == 0:
        raise ValueError("nonzero() takes an array of at least one axis")
    if not x.size:
        return tuple(c.full((0,), 0, c.int64, x.device) for _ in x.shape)
    places, count = apply("places", (ravel(_truth(x)),))
    at = c.cast(slice_axis(places, 0, 0, count.item()), c.int64)
    out = []
    for dim in reversed(x.shape):
        out.append(c.remainder(at, dim))
        at = c.floor_divide(at, dim)
    return tuple(reversed(out))


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Where elements of x2 would go into x1, which is sorted: before equal ones, or
    behind them where side is 'right'.

    x1: real numbers, one axis; x2: an array of any shape or a number. The result has
    x2's shape and is of int64.
    Raises ValueError for another side, TypeError for dtypes without a common one.

    >>> pt.searchsorted(pt.asarray([1, 3, 5]), pt.asarray([0, 3, 9])).tolist()
    [0, 1, 3]
    """
    from ._index import take
    need_array(x1)
    x2 = array(x2, x1)
    if side not in ("left", "right"):
        raise ValueError(f"side is {side!r}: 'left' and 'right' are known")
    if sorter is not None:
        x1 = take(x1, sorter, axis=0)
    dtype = c.promote(x1.dtype, x2.dtype)
    x1, x2 = c.cast(x1, dtype), c.cast(x2, dtype)
    is_before = c.less if side == "left" else c.less_equal

    def before(a, b):
        y = is_before(a, b)
        if not is_float(dtype):
            return y
        # NaN is behind all numbers, as sort() has it.
        last = c.isnan(b)
        if side == "left":
            last = c.logical_and(last, c.logical_not(c.isnan(a)))
        return c.logical_or(y, last)
    n = x1.shape[0]
    at = c.full(x2.shape, 0, c.int64, x1.device)
    # From the largest step on, each is taken where what it leads over is before x2.
    step = 1 << n.bit_length()
    while step > 1:
        step >>= 1
        to = c.add(at, step)
        fits = c.less_equal(to, n)
        if n:
            value = take(x1, c.subtract(c.minimum(to, n), 1))
            at = c.where(c.logical_and(fits, before(value, x2)), to, at)
    return at


# --- Sorting ---

def _order(dtype, descending):
    """Whether a comes before b: NaN comes last."""
    def before(a, b):
        if descending:
            a, b = b, a
        y = c.less(a, b)
        if is_float(dtype):
            # Ascending: any number is before NaN; descending the same way around.
            y = c.logical_or(y, c.logical_and(c.isnan(b), c.logical_not(c.isnan(a))))
        return y
    return before


def _check_order(x):
    if is_complex(need_array(x).dtype):
        raise TypeError("complex numbers have no order")


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """x with its elements along axis in order; NaN is the largest number.

    x: real numbers or bools, at least one axis. The result has x's dtype and shape.
    Raises IndexError for an axis that x has not, TypeError for complex numbers.

    >>> pt.sort(pt.asarray([3, 1, 2]), descending=True).tolist()
    [3, 2, 1]
    """
    _check_order(x)
    axis = axis_of(axis, x.ndim)
    order = body(f"sort{descending}", _order(x.dtype, descending), x.dtype, x.dtype)
    return apply("sort", (x,), {"dimension": axis, "is_stable": True}, None, None,
                 (order,))[0]


def _sort_by(x, axis, descending=False):
    """x in order along axis, and the places that its elements had, in int64."""
    before = _order(x.dtype, descending)
    order = body(f"sort_by{descending}", lambda a, b, i, j: before(a, b),
                 x.dtype, x.dtype, c.int64, c.int64)
    return apply("sort", (x, iota(x.shape, axis, c.int64, x.device)),
                 {"dimension": axis, "is_stable": True}, None, None, (order,))


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The places that the elements of sort() had. Equal ones keep their order.

    x: real numbers or bools, at least one axis. The result has x's shape and is of
    int64.
    Raises IndexError for an axis that x has not, TypeError for complex numbers.

    >>> pt.argsort(pt.asarray([3.0, 1.0, 2.0])).tolist()
    [1, 2, 0]
    """
    _check_order(x)
    return _sort_by(x, axis_of(axis, x.ndim), descending)[1]


def topk(x, k, /, *, axis=-1):
    """The k largest elements along axis, the first largest, and their places.

    x: real numbers, at least k along axis. The results have k there, of x's dtype and
    of int64.
    Raises IndexError for an axis that x has not, ValueError for a larger k.

    >>> [y.tolist() for y in pt.topk(pt.asarray([3, 9, 5]), 2)]
    [[9, 5], [1, 2]]
    """
    _check_order(x)
    axis = axis_of(axis, x.ndim)
    values, places = _sort_by(x, axis, True)
    return slice_axis(values, axis, 0, k), slice_axis(places, axis, 0, k)


# --- Beside the standard ---

def clip(x, /, min=None, max=None):
    """x, but min where it is below, and max where it is above that.

    x: real numbers of any shape; min, max: None, numbers, or arrays that broadcast with
    x. The result has x's dtype.
    Raises TypeError for complex numbers, ValueError for shapes that do not broadcast.

    >>> pt.clip(pt.asarray([1, 5, 9]), 2, 6).tolist()
    [2, 5, 6]
    """
    dtype = need_array(x).dtype
    for limit, pick in ((min, c.maximum), (max, c.minimum)):
        if limit is None:
            continue
        limit = array(limit, x)
        x = c.cast(pick(x, c.cast(limit, dtype)), dtype)
    return x


def logsumexp(x, /, *, axis=None, keepdims=False):
    """log(sum(exp(x))) over axis without overflow on the way.

    x: floats of any shape; integers become floats. The result lacks axis, or has it as
    1.
    Raises IndexError for an axis that x has not.

    >>> pt.logsumexp(pt.asarray([0.0])).tolist()
    0.0
    """
    x = _floats(x, "logsumexp")
    axes = axes_of(axis, x.ndim)
    return _kept(apply("logsumexp", (x,), {"dimensions": axes}), x.shape, axes,
                 keepdims)


def softmax(x, /, *, axis=-1):
    """exp(x) by its sum over axis.

    x: floats with at least one axis; integers become floats. The result has x's shape.
    Raises IndexError for an axis that x has not.

    >>> pt.softmax(pt.asarray([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """
    x = _floats(x, "softmax")
    return apply("softmax", (x,), {"dimensions": axes_of(axis, x.ndim)})


def log_softmax(x, /, *, axis=-1):
    """log(softmax(x)), exact where that is small.

    x: floats with at least one axis; integers become floats. The result has x's shape.
    Raises IndexError for an axis that x has not.

    >>> pt.log_softmax(pt.asarray([0.0])).tolist()
    [0.0]
    """
    x = _floats(x, "log_softmax")
    return apply("log_softmax", (x,), {"dimensions": axes_of(axis, x.ndim)})
