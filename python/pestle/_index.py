# SPDX-License-Identifier: Apache-2.0
"""x[key] with arrays in the key, x[key] = value, x.at[key], take and gathers."""

import operator

from . import _pestle as c
from ._core import (Array, apply, array, axis_of, body, broadcast_dims, count_of, iota,
                    need_array, reshape_to)
from ._make import broadcast_shapes
from ._reduce import nonzero
from ._shape import broadcast_to, concat, expand_dims, ravel


def _wrapped(index, dim):
    """Indices that may count from the end, from the front."""
    if index.dtype.kind == "u":
        return index
    return c.where(c.less(index, 0), c.add(index, dim), index)


def _gather(x, axes, indices, place):
    """The parts of x at indices, arrays of one shape, along axes, in whose place
    the axes of the indices stand, from axis |place| of the result on."""
    shape = indices[0].shape
    rest = [a for a in range(x.ndim) if a not in axes]
    rank = len(shape) + len(rest)
    offsets = [d for d in range(rank) if not place <= d < place + len(shape)]
    vector = concat([expand_dims(_wrapped(i, x.shape[a]), i.ndim)
                     for a, i in zip(axes, indices)], axis=len(shape))
    return apply("gather", (x, vector), {
        "offset_dims": offsets, "collapsed_slice_dims": sorted(axes),
        "start_index_map": axes, "index_vector_dim": len(shape),
        "slice_sizes": [1 if a in axes else x.shape[a] for a in range(x.ndim)]})


def take(x, indices, /, *, axis=None):
    """The elements of x at indices along axis.

    x: of any dtype; indices: integers of any shape, that count from the end below 0.
    The result has the shape of indices in the place of axis.
    Raises TypeError for other indices, IndexError for an axis that x has not,
    ValueError for None with several axes.

    >>> pt.take(pt.asarray([10, 20, 30]), pt.asarray([2, 0])).tolist()
    [30, 10]
    """
    need_array(x), need_array(indices, "indices")
    if indices.dtype.kind not in "iu":
        raise TypeError(f"indices are of {indices.dtype}, not of integers")
    if axis is None:
        if x.ndim != 1:
            raise ValueError("axis must be said where an array has several axes")
        axis = 0
    axis = axis_of(axis, x.ndim)
    if not x.shape[axis] and indices.size:
        raise IndexError(f"axis {axis} has no elements to take")
    if not x.size or not indices.size:
        return c.full(x.shape[:axis] + indices.shape + x.shape[axis + 1:], 0, x.dtype,
                      x.device)
    return _gather(x, [axis], [indices], axis)


def take_along_axis(x, indices, /, *, axis=-1):
    """The elements of x whose place along axis is in indices, at the places of
    these along the other axes.

    indices: integers with x's count of axes, whose other extents broadcast with x's.
    Raises ValueError for other shapes, IndexError for an axis that x has not.

    >>> x, i = pt.asarray([[3, 1], [2, 4]]), pt.asarray([[1], [0]])
    >>> pt.take_along_axis(x, i, axis=1).tolist()
    [[1], [2]]
    """
    need_array(x), need_array(indices, "indices")
    axis = axis_of(axis, x.ndim)
    if x.ndim != indices.ndim:
        raise ValueError(f"x has {x.ndim} axes, indices have {indices.ndim}")
    shape = list(broadcast_shapes(x.shape[:axis] + (1,) + x.shape[axis + 1:],
                                  indices.shape[:axis] + (1,) +
                                  indices.shape[axis + 1:]))
    wide, places = list(shape), list(shape)
    wide[axis], places[axis] = x.shape[axis], indices.shape[axis]
    x, indices = broadcast_to(x, wide), broadcast_to(indices, places)
    if not indices.size:
        return c.full(places, 0, x.dtype, x.device)
    at = [iota(places, a, c.int64, x.device) if a != axis else
          c.cast(indices, c.int64) for a in range(x.ndim)]
    return _gather(x, list(range(x.ndim)), at, 0)


# --- Keys ---

def _as_index(item):
    """What a key has beside integers, slices, None and ...: an array."""
    if isinstance(item, Array):
        return item
    if isinstance(item, bool):
        return c.asarray(item)
    if isinstance(item, (list, tuple)):
        y = c.asarray(item)
        return y if y.size else c.cast(y, c.int64)
    if hasattr(item, "__index__") and not hasattr(item, "shape"):
        return operator.index(item)
    return c.asarray(item)


def _span(item):
    """The least and the largest of indices that the host knows, or None."""
    if isinstance(item, (list, tuple)):
        spans = [(i, i) if isinstance(i, int) else _span(i) for i in item]
        if not spans or None in spans:
            return None
        return min(s[0] for s in spans), max(s[1] for s in spans)
    if type(item).__module__ == "numpy" and item.size and item.dtype.kind in "iu":
        return int(item.min()), int(item.max())
    return None


def _expand(x, key):
    """The key as a list with an item for each axis, and None: arrays of integers
    stand for masks. Where it has arrays, integers are arrays too. And the place of an
    ellipsis that stands for no axis, or None: as NumPy has it, it parts the arrays before
    it from those behind it all the same."""
    items = []
    for item in key if isinstance(key, tuple) else (key,):
        if item is not None and item is not Ellipsis and not isinstance(item, slice):
            span = None if isinstance(item, (Array, int)) else _span(item)
            item = _as_index(item)
            if isinstance(item, Array):
                if item.dtype == c.bool:
                    if not item.ndim:
                        items.append(("flag", item))
                        continue
                    items += [("mask", i, n) for i, n in
                              zip(nonzero(item), item.shape)]
                    continue
                if item.dtype.kind not in "iu":
                    raise IndexError(f"an index is of {item.dtype}: integers and "
                                     "bool are indices")
                if span:
                    item = ("known", item, span)
        items.append(item)
    used = sum(1 for i in items if i is not None and i is not Ellipsis and
               not (isinstance(i, tuple) and i[0] == "flag"))
    if used > x.ndim:
        raise IndexError(f"the array has {x.ndim} axes, {used} are indexed")
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index has at most one ellipsis")
    rest = [slice(None)] * (x.ndim - used)
    at = dots[0] if dots else len(items)
    return items[:at] + rest + items[at + 1:], at if dots and not rest else None


def _mask_only(x, key):
    """The mask, where the key is one of x's whole shape or its first axes. As the
    standard has it, an axis of a mask may have no elements: then nothing is meant."""
    if isinstance(key, tuple) and len(key) == 1:
        key = key[0]
    if isinstance(key, Array) and key.dtype == c.bool and key.ndim:
        if key.ndim > x.ndim or any(k not in (n, 0)
                                    for k, n in zip(key.shape, x.shape)):
            raise IndexError(f"a mask of shape {key.shape} is no mask of an array of "
                             f"shape {x.shape}")
        return key
    return None


def _check_place(i, axis, n):
    if not -n <= i < n:
        raise IndexError(f"index {i} is outside of axis {axis}, which has {n} elements")


def _plan(x, key):
    """x with the key's basic items applied, the axes that its arrays index, the
    arrays, and where their axes go."""
    basic, arrays, axes, places = [], [], [], []
    axis = 0
    items, gap = _expand(x, key)
    before = 0
    for number, item in enumerate(items):
        before = len(arrays) if number == gap else before
        if isinstance(item, tuple) and item[0] == "flag":
            # A mask of rank 0 is an axis of its own, of extent 0 or 1.
            basic.append(None)
            arrays.append(nonzero(reshape_to(item[1], (1,)))[0])
            axes.append(len(basic) - 1)
            places.append(len(basic) - 1)
            continue
        if isinstance(item, tuple) and item[0] == "known":
            for i in item[2]:
                _check_place(i, axis, x.shape[axis])
            item = item[1]
        if isinstance(item, tuple):
            if item[2] not in (x.shape[axis], 0):
                raise IndexError(f"a mask has {item[2]} elements along axis {axis}, "
                                 f"which has {x.shape[axis]}")
            item = item[1]
        if item is None or isinstance(item, slice):
            basic.append(item)
        else:
            if isinstance(item, int):
                _check_place(item, axis, x.shape[axis])
                item = c.full((), item, c.int64, x.device)
            arrays.append(item)
            axes.append(len(basic))
            basic.append(slice(None))
        axis += item is not None
    together = axes == list(range(axes[0], axes[0] + len(axes))) if axes else True
    together = together and not 0 < before < len(arrays)
    return x[tuple(basic)], axes, arrays, axes[0] if axes and together else 0


def getitem(x, key, outside=None):
    """x[key] of a key with arrays. Where these are outside of x the nearest element is
    read, or |outside| stands there."""
    _mask_only(x, key)
    y, axes, arrays, place = _plan(x, key)
    if not axes:
        return y
    shape = broadcast_shapes(*(i.shape for i in arrays))
    arrays = [broadcast_to(c.cast(i, c.int64), shape) for i in arrays]
    rest = tuple(n for a, n in enumerate(y.shape) if a not in axes)
    if not count_of(shape) or not y.size:
        if count_of(shape) and any(not y.shape[a] for a in axes):
            raise IndexError(f"an axis of an array of shape {x.shape} has no elements")
        return c.full(rest[:place] + shape + rest[place:], 0, x.dtype, x.device)
    z = _gather(y, axes, arrays, place)
    if outside is None:
        return z
    fits = None
    for i, a in zip(arrays, axes):
        n = y.shape[a]
        fit = c.logical_and(c.greater_equal(i, -n), c.less(i, n))
        fits = fit if fits is None else c.logical_and(fits, fit)
    fits = reshape_to(fits, (1,) * place + shape + (1,) * (len(rest) - place))
    return c.where(fits, z, c.number(outside, z))


# --- Updates ---

_UPDATES = {
    "set": lambda a, b: b, "add": c.add, "multiply": c.multiply, "min": c.minimum,
    "max": c.maximum, "subtract": c.subtract, "divide": c.divide,
}


def put_flat(x, places, values, how="set"):
    """x of rank 1 with values at places."""
    update = body(f"put_{how}", _UPDATES[how], x.dtype, x.dtype)
    vector = reshape_to(places, (places.size, 1))
    return apply("scatter", (x, vector, values), {
        "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0],
        "index_vector_dim": 1}, None, None, (update,))[0]


def _is_whole(key):
    return key is Ellipsis or (isinstance(key, tuple) and key == ()) or (
        isinstance(key, slice) and key == slice(None))


def _places(x, key):
    """Where the elements of x[key] are in x as one axis; behind its end where key is
    outside of x: nothing is written there."""
    places = reshape_to(iota((x.size,), 0, c.int64, x.device), x.shape)
    parts = key if isinstance(key, tuple) else (key,)
    if all(i is None or i is Ellipsis or isinstance(i, slice) or
           (isinstance(i, int) and not isinstance(i, bool)) for i in parts):
        return places[key]
    return getitem(places, key, x.size)


def update(x, key, value, how="set"):
    """x with value at key, or what |how| makes of both."""
    value = c.cast(array(value, x), x.dtype)
    mask = _mask_only(x, key)
    if mask is not None and mask.shape != x.shape[:mask.ndim]:
        return x
    if mask is not None and value.ndim == 0:
        mask = reshape_to(mask, mask.shape + (1,) * (x.ndim - mask.ndim))
        return c.where(mask, _UPDATES[how](x, value), x)
    if _is_whole(key):
        return c.cast(_UPDATES[how](x, broadcast_to(value, x.shape)), x.dtype)
    if not x.size:
        x[key]
        return x
    places = _places(x, key)
    try:
        while value.ndim > places.ndim and value.shape[0] == 1:
            value = reshape_to(value, value.shape[1:])
        values = broadcast_to(value, places.shape)
    except ValueError:
        raise ValueError(f"a value of shape {value.shape} does not fit what is set, "
                         f"of shape {places.shape}") from None
    if not places.size:
        return x
    flat = put_flat(ravel(x), ravel(places), ravel(values), how)
    return reshape_to(flat, x.shape)


class _At:
    """x.at[key].set(value) and others give x with an update, and leave x as it is.

    key: as of x[key]; value: an array that broadcasts to x[key], or a number; it is
    converted to x's dtype. Raises IndexError for a key that x has not, ValueError for
    shapes that do not broadcast, TypeError for complex numbers in real ones.

    >>> x = pt.zeros((3,), dtype=pt.int32)
    >>> x.at[1].set(5).tolist(), x.at[pt.asarray([0, 0])].add(1).tolist()
    ([0, 5, 0], [2, 0, 0])
    """

    __slots__ = ("_x", "_key")

    def __init__(self, x, key):
        self._x, self._key = x, key

    def get(self):
        """x[key]."""
        return self._x[self._key]

    def set(self, value):
        """x with value at key."""
        return update(self._x, self._key, value)

    def add(self, value):
        """x with value added at key, as often as key has a place."""
        return update(self._x, self._key, value, "add")

    def multiply(self, value):
        """x multiplied by value at key."""
        return update(self._x, self._key, value, "multiply")

    mul = multiply

    def min(self, value):
        """x with the smaller one of it and value at key."""
        return update(self._x, self._key, value, "min")

    def max(self, value):
        """x with the larger one of it and value at key."""
        return update(self._x, self._key, value, "max")


class _Indexer:
    __slots__ = ("_x",)

    def __init__(self, x):
        self._x = x

    def __getitem__(self, key):
        return _At(self._x, key)
