# SPDX-License-Identifier: Apache-2.0
"""What the other files of the package share: ops of array.h by name, axes, bodies."""

import operator

from . import _pestle as c

Array, apply, asarray = c.Array, c.apply, c.asarray
FLOATS = (c.float32, c.float64, c.float16, c.bfloat16)
COMPLEX = (c.complex64, c.complex128)
PART = {c.complex64: c.float32, c.complex128: c.float64}
WHOLE = {c.float32: c.complex64, c.float64: c.complex128}
newaxis = None


def default_float():
    """What floats are that say no dtype: config.default_float."""
    return c.get_settings()[1]


def default_complex():
    return WHOLE[c.get_settings()[1]]


def is_float(dtype):
    return dtype.kind == "f"


def is_complex(dtype):
    return dtype.kind == "c"


def is_int(dtype):
    return dtype.kind in "iu"


def array(x, like=None):
    """x as an array: numbers become what they are beside |like|."""
    if isinstance(x, Array):
        return x
    if like is not None and isinstance(x, (bool, int, float, complex)):
        dtype = c.promote(like.dtype, x)
        return c.full((), x, dtype, like.device)
    return asarray(x)


def need_array(x, name="x"):
    if not isinstance(x, Array):
        raise TypeError(f"{name} is {type(x).__name__}, not an array")
    return x


def axis_of(axis, ndim, name="axis"):
    """A single axis, counted from the front."""
    try:
        axis = operator.index(axis)
    except TypeError:
        raise TypeError(f"{name} is {axis!r}, not an integer") from None
    if not -ndim <= axis < ndim:
        raise IndexError(f"{name} {axis} is outside of an array of {ndim} axes")
    return axis + ndim if axis < 0 else axis


def axes_of(axis, ndim):
    """Axes, counted from the front; None: all."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, (tuple, list)):
        return (axis_of(axis, ndim),)
    axes = tuple(axis_of(a, ndim) for a in axis)
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis {tuple(axis)} names an axis twice")
    return axes


def shape_of(shape):
    """A shape as a tuple of integers."""
    if not isinstance(shape, (tuple, list)):
        shape = (shape,)
    try:
        dims = tuple(operator.index(d) for d in shape)
    except TypeError:
        raise TypeError(f"the shape {tuple(shape)} is not of integers") from None
    for dim in dims:
        if dim < 0:
            raise ValueError(f"the shape {dims} has a negative extent")
    return dims


def count_of(shape):
    n = 1
    for dim in shape:
        n *= dim
    return n


def dtype_of(dtype, default=None):
    return default if dtype is None else c.dtype(dtype)


# --- Ops ---

def reshape_to(x, shape):
    return apply("reshape", (x,), None, x.dtype, shape)


def transpose_to(x, order):
    return apply("transpose", (x,), {"permutation": order})


def broadcast_dims(x, shape, dims):
    """Axis i of x becomes axis dims[i] of shape."""
    return apply("broadcast_in_dim", (x,), {"broadcast_dimensions": dims},
                 x.dtype, shape)


def stopped(x):
    """x without a derivative: its bits."""
    if not isinstance(x, Array) or x.dtype.kind not in "fc":
        return x
    if x.dtype.kind == "c":
        return apply("complex", (stopped(c.real(x)), stopped(c.imag(x))))
    return apply("bitcast_convert", (x,), None, x.dtype, x.shape)


def moveaxis_to(x, count):
    """x with its last |count| axes in front."""
    first = x.ndim - count
    return transpose_to(x, (*range(first, x.ndim), *range(first)))


def fold_sum(x, axes):
    """x without axes: sums, which begin with -0, so that the one of -0 alone is -0; the
    one of nothing is 0."""
    y = c.fold("add", x, axes)
    if not x.size and not count_of(x.shape[a] for a in axes):
        return c.full(y.shape, 0, y.dtype, y.device)
    return y


def iota(shape, axis, dtype, device=None):
    return apply("iota", (), {"iota_dimension": axis}, dtype, shape, None, device)


def slice_axis(x, axis, start, stop, step=1):
    starts, limits, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], limits[axis], steps[axis] = start, stop, step
    return apply("slice", (x,), {"start_indices": starts, "limit_indices": limits,
                                 "strides": steps})


def number(value, like):
    """A number as a part of the graph, of like's dtype and device."""
    return c.number(value, like)


_bodies = {}


def body(name, function, *dtypes):
    """A body of scalars, made once for each name and dtypes."""
    key = (name, dtypes)
    if key not in _bodies:
        specs = tuple(c.full((), 0, d, None) for d in dtypes)
        _bodies[key] = c.capture(lambda args: (function(*args),), specs)[0]
    return _bodies[key]


def limits(dtype):
    """The least and the largest number of |dtype|; infinities of floats."""
    if dtype.kind == "f":
        return -float("inf"), float("inf")
    if dtype.kind == "b":
        return False, True
    bits = dtype.bits
    if dtype.kind == "u":
        return 0, 2**bits - 1
    return -2**(bits - 1), 2**(bits - 1) - 1
