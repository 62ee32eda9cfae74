# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy and MLX that the standard lacks, and convolutions."""

import math

from . import _pestle as c
from ._core import (Array, apply, array as array_of, asarray, axis_of, axes_of,
                    default_float, iota, is_float, need_array, number,
                    reshape_to, transpose_to)
from ._linear import matmul, outer, tensordot
from ._make import eye, tril
from ._reduce import (all as all_of, any as any_of, cumulative_prod, cumulative_sum,
                      sort, sum as sum_of)
from ._shape import broadcast_to, concat, moveaxis, pad, ravel


def array(obj, /, dtype=None, *, device=None):
    """asarray() that always copies.

    obj: what asarray() takes.
    Raises what asarray() raises.

    >>> pt.array([1, 2], pt.float32).tolist()
    [1.0, 2.0]
    """
    return asarray(obj, dtype=dtype, device=device, copy=True)


# --- Comparing ---

def _pair(x1, x2):
    if not isinstance(x1, Array) and not isinstance(x2, Array):
        x1 = asarray(x1)
    x1, x2 = array_of(x1, x2 if isinstance(x2, Array) else None), array_of(
        x2, x1 if isinstance(x1, Array) else None)
    return x1, x2


def isclose(x1, x2, /, *, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Where abs(x1 - x2) <= atol + rtol * abs(x2).

    x1, x2: numbers or arrays that broadcast; infinities are close to themselves, NaN is
    to NaN where equal_nan is set. The result is of bool.
    Raises TypeError for no arrays, ValueError for shapes that do not broadcast.

    >>> pt.isclose(pt.asarray([1.0, 2.0]), pt.asarray([1.0, 2.1])).tolist()
    [True, False]
    """
    x1, x2 = _pair(x1, x2)
    dtype = c.promote(x1.dtype, x2.dtype)
    if dtype.kind in "biu":
        dtype = default_float()
    x1, x2 = c.cast(x1, dtype), c.cast(x2, dtype)
    near = c.less_equal(c.abs(c.subtract(x1, x2)),
                        c.add(c.multiply(c.abs(x2), rtol), atol))
    both = c.logical_and(c.isfinite(x1), c.isfinite(x2))
    close = c.where(both, near, c.equal(x1, x2))
    if equal_nan:
        close = c.logical_or(close, c.logical_and(c.isnan(x1), c.isnan(x2)))
    return close


def allclose(x1, x2, /, *, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether isclose() is so everywhere: a bool of rank 0.

    x1, x2: numbers or arrays that broadcast.
    Raises TypeError for no arrays, ValueError for shapes that do not broadcast.

    >>> bool(pt.allclose(pt.ones((2,)), 1.0))
    True
    """
    return all_of(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan))


def array_equal(x1, x2, /, *, equal_nan=False):
    """Whether two arrays have one shape and equal elements: a bool of rank 0.

    x1, x2: arrays of any dtype.
    Raises TypeError for no arrays.

    >>> bool(pt.array_equal(pt.ones((2,)), pt.ones((3,))))
    False
    """
    need_array(x1, "x1"), need_array(x2, "x2")
    if x1.shape != x2.shape:
        return asarray(False, device=x1.device)
    same = c.equal(x1, x2)
    if equal_nan and x1.dtype.kind in "fc" and x2.dtype.kind in "fc":
        same = c.logical_or(same, c.logical_and(c.isnan(x1), c.isnan(x2)))
    return all_of(same)


def nan_to_num(x, /, *, nan=0.0, posinf=None, neginf=None):
    """x with nan for NaN, and the largest and the least number for infinities, or posinf
    and neginf.

    x: real numbers. The result has x's dtype.
    Raises TypeError for complex numbers and no array.

    >>> pt.nan_to_num(pt.asarray([float("nan"), 1.0])).tolist()
    [0.0, 1.0]
    """
    need_array(x)
    if x.dtype.kind == "c":
        raise TypeError(f"nan_to_num() takes real numbers, not {x.dtype}")
    if not is_float(x.dtype):
        return x
    from ._make import finfo
    most = finfo(x.dtype)
    y = c.where(c.isnan(x), nan, x)
    y = c.where(c.equal(x, math.inf), most.max if posinf is None else posinf, y)
    return c.where(c.equal(x, -math.inf), most.min if neginf is None else neginf, y)


# --- Products ---

def dot(x1, x2, /):
    """The sum of products over the last axis of x1 and the one before the last of x2, or
    its only one; of a number the product.

    x1, x2: arrays or numbers. The result has the promoted dtype.
    Raises TypeError for no arrays, ValueError for other extents.

    >>> pt.dot(pt.asarray([1, 2]), pt.asarray([3, 4])).tolist()
    11
    """
    x1, x2 = _pair(x1, x2)
    if not x1.ndim or not x2.ndim:
        return c.multiply(x1, x2)
    if x2.ndim <= 2:
        return matmul(x1, x2)
    return tensordot(x1, x2, axes=((x1.ndim - 1,), (x2.ndim - 2,)))


def inner(x1, x2, /):
    """The sum of products over the last axes.

    x1, x2: arrays or numbers. The result has the promoted dtype.
    Raises TypeError for no arrays, ValueError for other extents.

    >>> pt.inner(pt.asarray([1, 2]), pt.asarray([3, 4])).tolist()
    11
    """
    x1, x2 = _pair(x1, x2)
    if not x1.ndim or not x2.ndim:
        return c.multiply(x1, x2)
    return tensordot(x1, x2, axes=((x1.ndim - 1,), (x2.ndim - 1,)))


def kron(x1, x2, /):
    """The Kronecker product: x2 times each element of x1, in its place.

    x1, x2: arrays or numbers; the one of fewer axes gets axes of extent 1 in front.
    Raises TypeError for no arrays.

    >>> pt.kron(pt.asarray([1, 10]), pt.asarray([1, 2])).tolist()
    [1, 2, 10, 20]
    """
    x1, x2 = _pair(x1, x2)
    rank = max(x1.ndim, x2.ndim)
    a, b = ((1,) * (rank - x.ndim) + x.shape for x in (x1, x2))
    product = outer(ravel(x1), ravel(x2))
    order = [i + j * rank for i in range(rank) for j in (0, 1)]
    return reshape_to(transpose_to(reshape_to(product, a + b), order),
                      [m * n for m, n in zip(a, b)])


# --- Diagonals ---

def diagonal(x, /, *, offset=0, axis1=0, axis2=1):
    """The elements of diagonal offset of two axes, as the last axis.

    x: of any dtype, at least two axes.
    Raises ValueError for fewer axes, or one axis twice, IndexError for an axis that x
    has not.

    >>> pt.diagonal(pt.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    from .linalg import diagonal as of_last
    return of_last(_in_back(x, axis1, axis2), offset=offset)


def trace(x, /, *, offset=0, axis1=0, axis2=1, dtype=None):
    """The sum of diagonal offset of two axes.

    x: numbers, at least two axes. The result has dtype, or that of sum().
    Raises ValueError for fewer axes, or one axis twice, IndexError for an axis that x
    has not.

    >>> pt.trace(pt.asarray([[1, 2], [3, 4]])).tolist()
    5
    """
    return sum_of(diagonal(x, offset=offset, axis1=axis1, axis2=axis2), axis=-1,
                  dtype=dtype)


def _in_back(x, axis1, axis2):
    if need_array(x).ndim < 2:
        raise ValueError(f"a diagonal is of two axes, the array has {x.ndim}")
    a, b = axis_of(axis1, x.ndim, "axis1"), axis_of(axis2, x.ndim, "axis2")
    if a == b:
        raise ValueError(f"axis1 and axis2 are both axis {a}")
    return moveaxis(x, (a, b), (-2, -1))


def diag(x, /, *, k=0):
    """A matrix with x on diagonal k, or that diagonal of a matrix.

    x: of any dtype, one or two axes.
    Raises ValueError for another number of axes.

    >>> pt.diag(pt.asarray([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    if need_array(x).ndim == 2:
        return diagonal(x, offset=k)
    if x.ndim != 1:
        raise ValueError(f"diag() takes one or two axes, the array has {x.ndim}")
    n = x.shape[0] + abs(k)
    row, column = (iota((n, n), axis, c.int64, x.device) for axis in (0, 1))
    before = (max(-k, 0), max(k, 0))
    wide = pad(x, ((before[1], n - x.shape[0] - before[1]),))
    same = c.equal(c.add(row, k), column)
    return c.where(same, broadcast_to(wide, (n, n)), number(0, x))


def identity(n, /, *, dtype=None, device=None):
    """The identity matrix of n rows.

    n: an integer; dtype: config.default_float unless it is given.
    Raises TypeError for no integer, ValueError for a negative one.

    >>> pt.identity(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return eye(n, dtype=dtype, device=device)


def tri(n, m=None, /, *, k=0, dtype=None, device=None):
    """Ones up to diagonal k, zeros behind it.

    n, m: rows and columns, m is n unless it is given; dtype: config.default_float unless
    it is given.
    Raises TypeError for no integers, ValueError for negative ones.

    >>> pt.tri(2, dtype=pt.int32).tolist()
    [[1, 0], [1, 1]]
    """
    from ._make import ones
    return tril(ones((n, n if m is None else m), dtype=dtype, device=device), k=k)


# --- Running and sorted ---

def _flat(x, axis):
    return (ravel(need_array(x)), 0) if axis is None else (need_array(x), axis)


def cumsum(x, /, axis=None, *, dtype=None):
    """cumulative_sum(), of all elements in a row where axis is None.

    x: numbers. The result has dtype, or that of sum().
    Raises IndexError for an axis that x has not.

    >>> pt.cumsum(pt.asarray([[1, 2], [3, 4]])).tolist()
    [1, 3, 6, 10]
    """
    x, axis = _flat(x, axis)
    return cumulative_sum(x, axis=axis, dtype=dtype)


def cumprod(x, /, axis=None, *, dtype=None):
    """cumulative_prod(), of all elements in a row where axis is None.

    x: numbers. The result has dtype, or that of prod().
    Raises IndexError for an axis that x has not.

    >>> pt.cumprod(pt.asarray([1, 2, 3])).tolist()
    [1, 2, 6]
    """
    x, axis = _flat(x, axis)
    return cumulative_prod(x, axis=axis, dtype=dtype)


def quantile(x, q, /, *, axis=None, keepdims=False):
    """Numbers that a share q of the elements along axis is below, between two elements
    by their distance.

    x: real numbers; q: a number from 0 to 1, or an array, whose axes are the first of
    the result; NaN where an element is NaN. Integers become floats.
    Raises TypeError for complex numbers and no array, IndexError for an axis that x has
    not, ValueError for no elements and a q that is no share.

    >>> pt.quantile(pt.asarray([1.0, 2.0, 4.0]), 0.75).tolist()
    3.0
    """
    need_array(x)
    if x.dtype.kind == "c":
        raise TypeError(f"complex numbers have no order: {x.dtype}")
    x = x if is_float(x.dtype) else c.cast(x, default_float())
    if isinstance(q, (int, float)) and not 0 <= q <= 1:
        raise ValueError(f"q is {q}, not from 0 to 1")
    axes = axes_of(axis, x.ndim)
    kept = [1 if i in axes else d for i, d in enumerate(x.shape)]
    rest = tuple(d for i, d in enumerate(x.shape) if i not in axes)
    order = (*axes, *(i for i in range(x.ndim) if i not in axes))
    x = reshape_to(transpose_to(x, order), (math.prod(x.shape[i] for i in axes), *rest))
    if not x.shape[0]:
        raise ValueError("quantile() of no elements")
    from ._index import take
    q = c.cast(q if isinstance(q, Array) else asarray(q, device=x.device), x.dtype)
    at = c.multiply(ravel(q), x.shape[0] - 1.0)
    low = c.floor(at)
    share = reshape_to(c.subtract(at, low), (*at.shape, *(1 for _ in rest)))
    ordered = sort(x, axis=0)
    first, second = (take(ordered, c.cast(v, c.int64), axis=0)
                     for v in (low, c.ceil(at)))
    y = c.where(c.equal(share, 0.0), first, c.add(
        c.multiply(first, c.subtract(1.0, share)), c.multiply(second, share)))
    y = c.where(any_of(c.isnan(x), axis=0), math.nan, y)
    return reshape_to(y, (*q.shape, *(kept if keepdims else rest)))


def percentile(x, q, /, *, axis=None, keepdims=False):
    """quantile() of q in hundredths.

    x: real numbers; q: a number from 0 to 100, or an array.
    Raises what quantile() raises.

    >>> pt.percentile(pt.asarray([1.0, 2.0, 4.0]), 75).tolist()
    3.0
    """
    share = c.divide(q, 100.0) if isinstance(q, Array) else (
        q / 100 if isinstance(q, (int, float)) else asarray(q) / 100)
    return quantile(x, share, axis=axis, keepdims=keepdims)


def median(x, /, *, axis=None, keepdims=False):
    """The element in the middle along axis, or the mean of the two.

    x: real numbers; NaN where an element is NaN. Integers become floats.
    Raises TypeError for complex numbers and no array, IndexError for an axis that x has
    not, ValueError for no elements.

    >>> pt.median(pt.asarray([3, 1, 2, 9])).tolist()
    2.5
    """
    return quantile(x, 0.5, axis=axis, keepdims=keepdims)


# --- Stacks ---

def flatten(x, /):
    """x as one axis, row-major.

    x: of any dtype and shape.
    Raises TypeError for no array.

    >>> pt.flatten(pt.asarray([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    return ravel(x)


def hstack(arrays, /):
    """Arrays joined along their second axis, or the only one.

    arrays: of shapes that are equal on the other axes.
    Raises TypeError for no arrays, ValueError for other shapes.

    >>> pt.hstack([pt.asarray([1]), pt.asarray([2, 3])]).tolist()
    [1, 2, 3]
    """
    arrays = [reshape_to(x, (1,)) if not need_array(x, "arrays").ndim else x
              for x in arrays]
    return concat(arrays, axis=0 if arrays and arrays[0].ndim == 1 else 1)


def vstack(arrays, /):
    """Arrays joined along their first axis, those of one axis as rows.

    arrays: of shapes that are equal on the other axes.
    Raises TypeError for no arrays, ValueError for other shapes.

    >>> pt.vstack([pt.asarray([1, 2]), pt.asarray([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    return concat([x if need_array(x, "arrays").ndim > 1 else
                   reshape_to(x, (1, x.size)) for x in arrays], axis=0)


# --- Convolutions ---

def _each(value, count, name):
    values = (value,) * count if isinstance(value, int) else tuple(value)
    if len(values) != count or not all(isinstance(v, int) for v in values):
        raise ValueError(f"{name} is {value!r}, not {count} integers or one")
    return values


def conv(x, weight, /, *, stride=1, padding=0, dilation=1, groups=1):
    """The convolution, as networks have it, of the axes of x between its first and its
    last.

    x: floats (n, ..., features); weight: (outputs, ..., features / groups), of the same
    dtype, with an extent of the window for each axis between; stride, padding (on both
    sides) and dilation: an integer, or one for each such axis. The result is
    (n, ..., outputs).
    Raises TypeError for no arrays and other dtypes, ValueError for other shapes.

    >>> x, w = pt.ones((1, 4, 1)), pt.ones((1, 3, 1))
    >>> pt.conv(x, w, padding=1)[0, :, 0].tolist()
    [2.0, 3.0, 3.0, 2.0]
    """
    need_array(x), need_array(weight, "weight")
    if x.dtype != weight.dtype or not is_float(x.dtype):
        raise TypeError("conv() takes floats of one dtype, not "
                        f"{x.dtype} and {weight.dtype}")
    if x.ndim < 3 or weight.ndim != x.ndim:
        raise ValueError("conv() takes (n, ..., features) and (outputs, ..., features), "
                         f"not the shapes {x.shape} and {weight.shape}")
    n = x.ndim - 2
    stride, padding, dilation = (_each(v, n, name) for v, name in (
        (stride, "stride"), (padding, "padding"), (dilation, "dilation")))
    if x.shape[-1] != weight.shape[-1] * groups or weight.shape[0] % groups:
        raise ValueError(f"x has {x.shape[-1]} features, weight takes {weight.shape[-1]} "
                         f"in each of {groups} groups and has {weight.shape[0]} outputs")
    sizes = [(d + 2 * p - (k - 1) * e - 1) // s + 1 for d, p, k, e, s in zip(
        x.shape[1:-1], padding, weight.shape[1:-1], dilation, stride)]
    if min(sizes) < 0 or min(stride) < 1 or min(dilation) < 1:
        raise ValueError(f"a window of {weight.shape[1:-1]} does not fit into "
                         f"{x.shape[1:-1]} with stride {stride}, padding {padding} and "
                         f"dilation {dilation}")
    between = tuple(range(1, n + 1))
    return apply("convolution", (x, weight), {
        "window_strides": stride, "padding": [p for p in padding for _ in (0, 1)],
        "rhs_dilation": dilation, "input_batch_dimension": 0,
        "input_feature_dimension": n + 1, "input_spatial_dimensions": between,
        "kernel_output_feature_dimension": 0, "kernel_input_feature_dimension": n + 1,
        "kernel_spatial_dimensions": between, "output_batch_dimension": 0,
        "output_feature_dimension": n + 1, "output_spatial_dimensions": between,
        "feature_group_count": groups, "batch_group_count": 1},
        x.dtype, (x.shape[0], *sizes, weight.shape[0]))
