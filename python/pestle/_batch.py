# SPDX-License-Identifier: Apache-2.0
"""Batching of functions: recorded for one element, and as a graph for all of them."""

import functools

from . import _pestle as c
from . import tree
from ._core import Array, asarray, axis_of
from ._derive import Recorded, arrays_of, name_of, need_function
from ._jit import of_any


def _children(value):
    """The parts of a node of a tree, None of a leaf."""
    if value is None:
        return ()
    if isinstance(value, dict):
        try:
            return tuple(value[k] for k in sorted(value))
        except TypeError:
            return tuple(value.values())
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return None if isinstance(value, Array) else c.tree_children(value)


def per_leaf(given, value, what, is_leaf):
    """What |given|, a tree that |value| begins with, says of each leaf of value."""
    if is_leaf(given):
        return [given] * len(tree.leaves(value))
    parts, rest = _children(given), _children(value)
    same = isinstance(given, type(value)) or \
        isinstance(given, (tuple, list)) and isinstance(value, (tuple, list))
    if isinstance(given, dict):
        same = isinstance(value, dict) and given.keys() == value.keys()
    if parts is None or rest is None or not same or len(parts) != len(rest):
        raise ValueError(f"{what} is {given!r}, and the value there is "
                         f"{tree.structure(value)}")
    return [x for a, b in zip(parts, rest) for x in per_leaf(a, b, what, is_leaf)]


def _is_axis(x):
    return x is None or isinstance(x, int) and not isinstance(x, bool)


def example(x, axis):
    """An array like one element of x along |axis|; None: like x."""
    if axis is None:
        return x
    return c.full(x.shape[:axis] + x.shape[axis + 1:], 0, x.dtype, x.device)


def _size_of(leaves, axes, axis_size):
    sizes = {x.shape[a]: i for i, (x, a) in reversed(
        list(enumerate(zip(leaves, axes)))) if a is not None}
    if axis_size is not None:
        if not isinstance(axis_size, int) or axis_size < 0:
            raise TypeError(f"axis_size of vmap() is {axis_size!r}, not an extent")
        for size, i in sizes.items():
            if size != axis_size:
                raise ValueError(f"axis_size of vmap() is {axis_size}, and axis {axes[i]} "
                                 f"of leaf {i} has {size}")
        return axis_size
    if not sizes:
        raise ValueError("vmap() has no axis to map over: in_axes are all None, and "
                         "axis_size is not given")
    if len(sizes) > 1:
        texts = [f"axis {axes[i]} of leaf {i} has {size}"
                 for size, i in sorted(sizes.items(), key=lambda row: row[1])]
        raise ValueError("vmap() maps over one extent: " + ", ".join(texts))
    return next(iter(sizes))


def batched(function, leaves, axes, size, out_axes_of):
    """|function| of flat arrays, for each of size elements along axes of leaves, None
    of those that have none. out_axes_of(said, results) says where the axis goes."""
    recorded = Recorded(function, [example(x, a) for x, a in zip(leaves, axes)])
    outs = out_axes_of(recorded.said, recorded.results)
    if not leaves and not recorded.hidden:
        y = recorded.run(recorded.module)
        outs_of = [(v, a) for v, a in zip(y, outs)]
        return tuple(v if a is None else _repeated(v, a, size) for v, a in outs_of), \
            recorded.said
    places = tuple(-1 if a is None else a for a in axes) + (-1,) * len(recorded.hidden)
    module = c.vmap(recorded.module, size, places,
                    tuple(-1 if a is None else a for a in outs))
    return recorded.run(module, leaves, recorded.hidden), recorded.said


def _repeated(x, axis, size):
    from ._core import broadcast_dims
    dims = [d for d in range(x.ndim + 1) if d != axis]
    return broadcast_dims(x, x.shape[:axis] + (size,) + x.shape[axis:], dims)


def vmap(fun, in_axes=0, out_axes=0, axis_size=None):
    """A function that does for each element along an axis of its arguments what fun does
    for one, side by side.

    fun: takes and gives trees of arrays. in_axes: the axis of each argument by position,
    None where there is none: one for all, or a tuple with one, or a tree of them, for
    each; what is given by name has it in front. out_axes: where the results have it, a
    tree that fun's result begins with; None where no element differs. axis_size: the
    extent, where no argument says it. The function is one of jit(): fun is traced once
    for each kind of arguments.
    Raises ValueError for extents that differ, trees that do not fit and None for a
    result that differs, IndexError for an axis that there is not, NotImplementedError
    for an op that cannot be batched.

    >>> pt.vmap(lambda x, y: x * pt.sum(y), (0, None))(pt.arange(3), pt.ones((2,))).tolist()
    [0.0, 2.0, 4.0]
    """
    need_function(fun, "vmap")
    if not _is_axis(in_axes) and not isinstance(in_axes, (tuple, list)):
        raise TypeError(f"in_axes of vmap() is {in_axes!r}, not an axis, None or a tuple "
                        "with one for each argument")

    @functools.wraps(fun)
    def mapped(*args, **kwargs):
        if isinstance(in_axes, (tuple, list)) and len(in_axes) != len(args):
            raise ValueError(f"in_axes of vmap() has {len(in_axes)} axes, and "
                             f"{name_of(fun)} is called with {len(args)} arguments by "
                             "position")
        given = tree.leaves((args, kwargs))
        structure = tree.structure((args, kwargs))
        axes = per_leaf(in_axes if _is_axis(in_axes) else tuple(in_axes), args,
                        "in_axes of vmap()", _is_axis)
        axes += [0] * (len(given) - len(axes))
        # What has no axis is read from around the function, as what it is.
        places = [i for i, a in enumerate(axes) if a is not None]
        leaves, _ = arrays_of([given[i] for i in places], next(
            (x.device for x in given if isinstance(x, Array)), None))
        axes = [axis_of(axes[i], x.ndim, f"in_axes of vmap(), leaf {i}:")
                for i, x in zip(places, leaves)]
        size = _size_of(leaves, axes, axis_size)

        def flat(*arrays):
            full = list(given)
            for i, x in zip(places, arrays):
                full[i] = x
            values, named = structure.unflatten(full)
            return arrays_of(fun(*values, **named))

        def outs(shape, results):
            spread = per_leaf(out_axes, shape.unflatten(results), "out_axes of vmap()",
                              _is_axis)
            return [a if a is None else axis_of(a, y.ndim + 1, "out_axes of vmap()")
                    for a, y in zip(spread, results)]
        out, shape = batched(flat, leaves, axes, size, outs)
        return shape.unflatten(out)
    return of_any(mapped)
