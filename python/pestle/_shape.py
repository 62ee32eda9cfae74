# SPDX-License-Identifier: Apache-2.0
"""Functions that move elements and compute nothing."""

import operator

from . import _pestle as c
from ._core import (Array, apply, array, axes_of, axis_of, broadcast_dims, count_of,
                    need_array, reshape_to, shape_of, slice_axis, transpose_to)
from ._make import broadcast_shapes, result_type


def reshape(x, /, shape, *, copy=None):
    """x in another shape of as many elements; one extent may be -1.

    x: of any dtype; shape: an integer or several. The result is a view where strides
    allow, a copy with copy=True.
    Raises ValueError for another count of elements, TypeError for what are no integers.

    >>> pt.reshape(pt.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    need_array(x)
    dims = [operator.index(d) for d in
            (shape if isinstance(shape, (tuple, list)) else (shape,))]
    if dims.count(-1) > 1 or any(d < -1 for d in dims):
        raise ValueError(f"the shape {tuple(dims)} has more than one open extent")
    if -1 in dims:
        known = count_of(d for d in dims if d != -1)
        if not known or x.size % known:
            raise ValueError(f"{x.size} elements do not fill the shape {tuple(dims)}")
        dims[dims.index(-1)] = x.size // known
    if count_of(dims) != x.size:
        raise ValueError(f"{x.size} elements do not fill the shape {tuple(dims)}")
    y = reshape_to(x, dims)
    return c.copy(y, None) if copy and y.state != "traced" else y


def permute_dims(x, /, axes):
    """x with its axes in the order axes.

    axes: all of x's, in any order. The result is a view.
    Raises ValueError for others, IndexError for an axis that x has not.

    >>> pt.permute_dims(pt.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    need_array(x)
    order = axes_of(axes, x.ndim)
    if len(order) != x.ndim:
        raise ValueError(f"axes {axes} are not all {x.ndim} axes")
    return transpose_to(x, order)


def transpose(x, /, axes=None):
    """x with its axes in the order axes, or turned around.

    axes: None, or all of x's. The result is a view.
    Raises ValueError for others, IndexError for an axis that x has not.

    >>> pt.transpose(pt.ones((2, 3))).shape
    (3, 2)
    """
    need_array(x)
    return permute_dims(x, tuple(reversed(range(x.ndim))) if axes is None else axes)


def matrix_transpose(x, /):
    """x with its last two axes swapped.

    x: of at least two axes. The result is a view.
    Raises ValueError for fewer axes.

    >>> pt.matrix_transpose(pt.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    if need_array(x).ndim < 2:
        raise ValueError(f"a matrix has two axes, the array has {x.ndim}")
    return swapaxes(x, -1, -2)


def swapaxes(x, axis1, axis2):
    """x with two of its axes swapped.

    x: of any dtype. The result is a view.
    Raises IndexError for an axis that x has not.

    >>> pt.swapaxes(pt.ones((2, 3)), 0, 1).shape
    (3, 2)
    """
    order = list(range(need_array(x).ndim))
    a, b = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order[a], order[b] = b, a
    return transpose_to(x, order)


def moveaxis(x, source, destination, /):
    """x with the axes source at the places destination.

    x: of any dtype; source, destination: an axis each, or as many. The result is a
    view.
    Raises IndexError for an axis that x has not, ValueError for other counts.

    >>> pt.moveaxis(pt.ones((2, 3, 4)), 0, 2).shape
    (3, 4, 2)
    """
    need_array(x)
    sources, places = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    if len(sources) != len(places):
        raise ValueError(f"{len(sources)} axes cannot go to {len(places)} places")
    order = [a for a in range(x.ndim) if a not in sources]
    for place, axis in sorted(zip(places, sources)):
        order.insert(place, axis)
    return transpose_to(x, order)


def expand_dims(x, /, axis=0):
    """x with new axes of extent 1, at the places axis of the result.

    x: of any dtype; axis: one, or several, of the result. The result is a view.
    Raises IndexError for an axis outside of it, ValueError for one that is named twice.

    >>> pt.expand_dims(pt.ones((3,)), axis=(0, 2)).shape
    (1, 3, 1)
    """
    need_array(x)
    several = isinstance(axis, (tuple, list))
    ndim = x.ndim + (len(axis) if several else 1)
    places = axes_of(axis if several else (axis,), ndim)
    rest = iter(x.shape)
    return reshape_to(x, [1 if i in places else next(rest) for i in range(ndim)])


def squeeze(x, /, axis=None):
    """x without axes of extent 1: those of axis.

    x: of any dtype. The result is a view.
    Raises ValueError for an axis of another extent, IndexError for one that x has not.

    >>> pt.squeeze(pt.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    need_array(x)
    if axis is None:
        axis = tuple(i for i, d in enumerate(x.shape) if d == 1)
    axes = axes_of(axis, x.ndim)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"axis {a} has {x.shape[a]} elements, not 1")
    return reshape_to(x, [d for i, d in enumerate(x.shape) if i not in axes])


def ravel(x, /):
    """x in one axis.

    x: of any dtype and shape. The result is a view where strides allow.
    Raises TypeError for no array.

    >>> pt.ravel(pt.asarray([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    return reshape_to(need_array(x), (x.size,))


def broadcast_to(x, /, shape):
    """x repeated to shape.

    x: of any dtype, with extents that are those of shape or 1. The result is a view.
    Raises ValueError where it does not broadcast, TypeError for no array.

    >>> pt.broadcast_to(pt.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    need_array(x)
    shape = shape_of(shape)
    if broadcast_shapes(x.shape, shape) != shape:
        raise ValueError(f"an array of shape {x.shape} does not broadcast to {shape}")
    if x.shape == shape:
        return x
    return broadcast_dims(x, shape, range(len(shape) - x.ndim, len(shape)))


def broadcast_arrays(*arrays):
    """arrays repeated to the shape that they have together.

    The results are views of the shape that all have together, of their own dtypes.
    Raises ValueError for shapes that do not broadcast, TypeError for no arrays.

    >>> [x.shape for x in pt.broadcast_arrays(pt.ones((3, 1)), pt.ones((4,)))]
    [(3, 4), (3, 4)]
    """
    shape = broadcast_shapes(*(need_array(x).shape for x in arrays))
    return tuple(broadcast_to(x, shape) for x in arrays)


def concat(arrays, /, *, axis=0):
    """arrays one behind the other along axis; None: all of them flat.

    arrays: of shapes that differ along axis alone; the result has their promoted dtype.
    Raises ValueError for no arrays and other shapes, IndexError for an axis that they
    have not, TypeError for dtypes without a common one.

    >>> pt.concat([pt.asarray([1, 2]), pt.asarray([3])]).tolist()
    [1, 2, 3]
    """
    arrays = [array(x) for x in arrays]
    if not arrays:
        raise ValueError("concat() takes at least one array")
    dtype = result_type(*arrays)
    if axis is None:
        arrays, axis = [ravel(x) for x in arrays], 0
    axis = axis_of(axis, arrays[0].ndim)
    for x in arrays[1:]:
        if x.ndim != arrays[0].ndim:
            raise ValueError(f"arrays of {arrays[0].ndim} and {x.ndim} axes do not "
                             "stand one behind the other")
        if any(a != b for i, (a, b) in enumerate(zip(x.shape, arrays[0].shape))
               if i != axis):
            raise ValueError(f"arrays of shapes {arrays[0].shape} and {x.shape} do not "
                             f"stand one behind the other along axis {axis}: the other "
                             "extents differ")
    arrays = [c.cast(x, dtype) for x in arrays]
    if len(arrays) == 1:
        return arrays[0]
    return apply("concatenate", arrays, {"dimension": axis})


def stack(arrays, /, *, axis=0):
    """arrays of one shape along a new axis.

    The result has one axis more and the promoted dtype.
    Raises ValueError for no arrays and other shapes, IndexError for an axis outside of
    the result.

    >>> pt.stack([pt.asarray([1, 2]), pt.asarray([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    arrays = [array(x) for x in arrays]
    if not arrays:
        raise ValueError("stack() takes at least one array")
    for x in arrays:
        if x.shape != arrays[0].shape:
            raise ValueError(f"arrays of shapes {arrays[0].shape} and {x.shape} do "
                             "not stack")
    axis = axis_of(axis, arrays[0].ndim + 1)
    return concat([expand_dims(x, axis) for x in arrays], axis=axis)


def unstack(x, /, *, axis=0):
    """The parts of x along axis, which they have not.

    The results are views.
    Raises IndexError for an axis that x has not.

    >>> [y.tolist() for y in pt.unstack(pt.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    axis = axis_of(axis, need_array(x).ndim)
    return tuple(squeeze(slice_axis(x, axis, i, i + 1), axis)
                 for i in range(x.shape[axis]))


def split(x, parts, axis=0):
    """x in equal parts along axis, or cut at the places parts.

    parts: an integer, or the places of cuts.
    Raises ValueError where no equal parts are made, IndexError for an axis that x has
    not.

    >>> [p.tolist() for p in pt.split(pt.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    axis = axis_of(axis, need_array(x).ndim)
    n = x.shape[axis]
    if isinstance(parts, int):
        if n % parts:
            raise ValueError(f"{n} elements make no {parts} equal parts")
        cuts = [i * n // parts for i in range(parts + 1)]
    else:
        # As NumPy has it, a place behind the last element is the end.
        cuts = [0, *(min(operator.index(p), n) for p in parts), n]
    return [slice_axis(x, axis, a, max(a, b)) for a, b in zip(cuts, cuts[1:])]


def flip(x, /, *, axis=None):
    """x with the elements of axis in the opposite order.

    x: of any dtype and shape; axis: None, one or several. The result is a view.
    Raises IndexError for an axis that x has not.

    >>> pt.flip(pt.asarray([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    return apply("reverse", (need_array(x),), {"dimensions": axes_of(axis, x.ndim)})


def roll(x, /, shift, *, axis=None):
    """x with its elements moved shift places along axis, those that leave it first.

    x: of any dtype; shift, axis: one, or as many.
    Raises IndexError for an axis that x has not, ValueError for other counts.

    >>> pt.roll(pt.asarray([1, 2, 3]), 1).tolist()
    [3, 1, 2]
    """
    need_array(x)
    if axis is None:
        return reshape_to(roll(ravel(x), shift, axis=0), x.shape)
    several = isinstance(axis, (tuple, list))
    shifts = shift if isinstance(shift, (tuple, list)) else (
        (shift,) * (len(axis) if several else 1))
    names = axis if several else (axis,)
    if len(shifts) == 1 and len(names) > 1:
        shifts = tuple(shifts) * len(names)
    if len(shifts) != len(names):
        raise ValueError(f"{len(shifts)} shifts are given for {len(names)} axes")
    for by, a in zip(shifts, names):
        a = axis_of(a, x.ndim)
        n = x.shape[a]
        by = by % n if n else 0
        if by:
            x = concat([slice_axis(x, a, n - by, n), slice_axis(x, a, 0, n - by)],
                       axis=a)
    return x


def tile(x, repetitions, /):
    """x repeated as a whole so often along each axis.

    repetitions: integers, one an axis, or one for the last axis.
    Raises TypeError for no integers, ValueError for negative ones.

    >>> pt.tile(pt.asarray([1, 2]), (2,)).tolist()
    [1, 2, 1, 2]
    """
    need_array(x)
    times = shape_of(repetitions)
    ndim = max(len(times), x.ndim)
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - x.ndim) + x.shape
    wide = [n for pair in zip(times, shape) for n in pair]
    y = broadcast_dims(reshape_to(x, shape), wide, range(1, 2 * ndim, 2))
    return reshape_to(y, [t * d for t, d in zip(times, shape)])


def repeat(x, repeats, /, *, axis=None):
    """Each element of x along axis repeated: a number of times, or of an array.

    repeats: at least 0, or an array of integers, one for each element of axis.
    Raises IndexError for an axis that x has not, ValueError for negative and for other
    counts, TypeError for no integers.

    >>> pt.repeat(pt.asarray([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    need_array(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim)
    if isinstance(repeats, (list, tuple)):
        repeats = array(repeats)
    if isinstance(repeats, Array):
        if repeats.dtype.kind not in "iu":
            raise TypeError(f"repeats is of {repeats.dtype}, not of integers")
        counts = repeats.tolist()
        counts = [counts] if isinstance(counts, int) else counts
        if len(counts) == 1:
            counts = counts * x.shape[axis]
        if len(counts) != x.shape[axis]:
            raise ValueError(f"{len(counts)} counts are given for "
                             f"{x.shape[axis]} elements")
        from ._index import take
        places = [i for i, n in enumerate(counts) for _ in range(n)]
        return take(x, c.asarray(places, dtype=c.int64, device=x.device), axis=axis)
    if repeats < 0:
        raise ValueError(f"repeats is {repeats}, which is negative")
    shape = x.shape[:axis + 1] + (repeats,) + x.shape[axis + 1:]
    dims = [i for i in range(len(shape)) if i != axis + 1]
    y = broadcast_dims(x, shape, dims)
    return reshape_to(y, x.shape[:axis] + (x.shape[axis] * repeats,) +
                      x.shape[axis + 1:])


def pad(x, widths, constant_values=0):
    """x with constant_values around it: (before, after) of each axis.

    x: of any dtype; widths: a number, or a pair of numbers for each axis. The result
    has x's dtype.
    Raises ValueError for other counts, TypeError for no array.

    >>> pt.pad(pt.asarray([1, 2]), 1).tolist()
    [0, 1, 2, 0]
    """
    need_array(x)
    widths = widths if isinstance(widths, (tuple, list)) else [widths] * x.ndim
    widths = [(w, w) if isinstance(w, int) else tuple(w) for w in widths]
    if len(widths) != x.ndim or any(len(w) != 2 for w in widths):
        raise ValueError(f"widths are (before, after) of each of {x.ndim} axes")
    return apply("pad", (x, c.number(constant_values, x)),
                 {"edge_padding_low": [w[0] for w in widths],
                  "edge_padding_high": [w[1] for w in widths],
                  "interior_padding": [0] * x.ndim})
