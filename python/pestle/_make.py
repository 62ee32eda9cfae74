# SPDX-License-Identifier: Apache-2.0
"""Arrays that are made of numbers, and questions about dtypes."""

import math

from . import _pestle as c
from ._core import (Array, COMPLEX, asarray, axis_of, broadcast_dims, count_of,
                    default_complex, default_float, dtype_of, iota, is_complex, is_float, need_array, shape_of)


def _default_of(value):
    if isinstance(value, bool):
        return c.bool
    if isinstance(value, int):
        return c.int64
    return default_complex() if isinstance(value, complex) else default_float()


def full(shape, fill_value, *, dtype=None, device=None):
    """An array of shape all of whose elements are fill_value.

    shape: an integer or several; fill_value: a number, or an array of rank 0; dtype:
    None: that of the number.
    Raises ValueError for negative extents, TypeError for no number, OverflowError for
    one that dtype does not hold.

    >>> pt.full((2,), 7).tolist()
    [7, 7]
    """
    shape = shape_of(shape)
    if isinstance(fill_value, Array):
        x = fill_value if dtype is None else c.cast(fill_value, dtype)
        if device is not None:
            x = c.copy(x, device)
        return broadcast_dims(x, shape, ())
    dtype = dtype_of(dtype, _default_of(fill_value))
    return c.full(shape, fill_value, dtype, device)


def zeros(shape, *, dtype=None, device=None):
    """An array of zeros, of float32 unless dtype says another.

    shape: an integer or several; dtype: any.
    Raises ValueError for negative extents, TypeError for what are no integers and no
    dtype.

    >>> pt.zeros((2,)).tolist()
    [0.0, 0.0]
    """
    return c.full(shape_of(shape), 0, dtype_of(dtype, default_float()), device)


def ones(shape, *, dtype=None, device=None):
    """An array of ones, of float32 unless dtype says another.

    shape: an integer or several; dtype: any.
    Raises ValueError for negative extents, TypeError for what are no integers and no
    dtype.

    >>> pt.ones((2,)).tolist()
    [1.0, 1.0]
    """
    return c.full(shape_of(shape), 1, dtype_of(dtype, default_float()), device)


def empty(shape, *, dtype=None, device=None):
    """An array whose elements are undefined.

    shape: an integer or several; dtype: any.
    Raises ValueError for negative extents, TypeError for what are no integers and no
    dtype.

    >>> pt.empty((2, 3)).shape
    (2, 3)
    """
    return c.empty(shape_of(shape), dtype_of(dtype, default_float()), device)


def _like(x, dtype, device):
    need_array(x)
    return dtype_of(dtype, x.dtype), x.device if device is None else device


def zeros_like(x, /, *, dtype=None, device=None):
    """Zeros of the shape and dtype of x.

    x: of any dtype and shape.
    Raises TypeError for no array and no dtype.

    >>> pt.zeros_like(pt.ones((2,))).tolist()
    [0.0, 0.0]
    """
    dtype, device = _like(x, dtype, device)
    return c.full(x.shape, 0, dtype, device)


def ones_like(x, /, *, dtype=None, device=None):
    """Ones of the shape and dtype of x.

    x: of any dtype and shape.
    Raises TypeError for no array and no dtype.

    >>> pt.ones_like(pt.zeros((2,))).tolist()
    [1.0, 1.0]
    """
    dtype, device = _like(x, dtype, device)
    return c.full(x.shape, 1, dtype, device)


def empty_like(x, /, *, dtype=None, device=None):
    """An array of the shape and dtype of x whose elements are undefined.

    x: of any dtype and shape.
    Raises TypeError for no array and no dtype.

    >>> pt.empty_like(pt.ones((2, 3))).shape
    (2, 3)
    """
    dtype, device = _like(x, dtype, device)
    return c.empty(x.shape, dtype, device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """fill_value in the shape and dtype of x.

    x: of any dtype and shape.
    Raises TypeError for no array and no number, OverflowError for one that dtype does
    not hold.

    >>> pt.full_like(pt.ones((2,)), 7).tolist()
    [7.0, 7.0]
    """
    dtype, device = _like(x, dtype, device)
    return full(x.shape, fill_value, dtype=dtype, device=device)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """start, start + step, ... as long as they are before stop; from 0 to start
    where stop is None. Integers of int64 unless one argument is a float.

    The result has one axis. dtype: None, or any but bool.
    Raises ValueError for step 0, TypeError for what is no number.

    >>> pt.arange(2, 10, 3).tolist()
    [2, 5, 8]
    >>> pt.arange(3, dtype=pt.float32).tolist()
    [0.0, 1.0, 2.0]
    """
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        whole = all(isinstance(v, int) for v in (start, stop, step))
        dtype = c.int64 if whole else default_float()
    dtype = c.dtype(dtype)
    if step == 0:
        raise ValueError("arange() takes a step other than 0")
    if all(isinstance(v, int) for v in (start, stop, step)):
        count = len(range(start, stop, step))
    else:
        count = max(0, math.ceil((stop - start) / step))
    work = dtype if is_float(dtype) else c.int64
    if dtype.bits <= 16 and is_float(dtype):
        work = c.float32
    if not is_float(dtype):
        first = range(start, start + 1)[0] if isinstance(start, int) else None
        if first is None or not isinstance(step, int):
            work = c.float64
    x = iota((count,), 0, work if work != c.float32 else c.int64, device)
    if work == c.float32:
        x = c.cast(x, c.float32)
    if dtype == c.uint64 and work == c.int64:
        x = c.cast(x, c.uint64)
    x = c.add(c.multiply(x, step), start) if (start, step) != (0, 1) else x
    return c.cast(x, dtype)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """num numbers at equal distances from start to stop, which is the last one
    where endpoint is set.

    The result has one axis of num elements, of floats or complex numbers unless dtype
    says another.
    Raises ValueError for num below 0, TypeError for complex numbers as real ones.

    >>> pt.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    kinds = isinstance(start, complex) or isinstance(stop, complex)
    dtype = dtype_of(dtype, default_complex() if kinds else default_float())
    if num < 0:
        raise ValueError(f"linspace() takes at least 0 numbers, not {num}")
    if is_complex(dtype):
        start, stop = complex(start), complex(stop)
        part = c.float64 if dtype == c.complex128 else c.float32
        parts = [linspace(a, b, num, dtype=part, device=device, endpoint=endpoint)
                 for a, b in ((start.real, stop.real), (start.imag, stop.imag))]
        return c.apply("complex", parts)
    work = c.float64 if dtype == c.float64 or not is_float(dtype) else c.float32
    steps = num - 1 if endpoint else num
    i = iota((num,), 0, work, device)
    if steps < 1:
        return c.cast(c.full((num,), start, work, device), dtype)
    # From both ends, so that the last one is stop, and no difference overflows.
    t = c.divide(i, steps)
    low = c.multiply(c.subtract(1, t), start)
    x = c.add(low, c.multiply(t, stop))
    if start == stop:
        x = c.full((num,), start, work, device)
    elif endpoint:
        last = c.equal(i, num - 1)
        x = c.where(last, c.full((), stop, work, device), x)
    x = c.where(c.equal(i, 0), c.full((), start, work, device), x)
    return c.cast(x, dtype)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Ones on diagonal k of a matrix of zeros.

    Raises ValueError for negative extents, TypeError for no dtype.

    >>> pt.eye(2, k=0, dtype=pt.int32).tolist()
    [[1, 0], [0, 1]]
    """
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    k = _near(k)
    rows, columns = (iota(shape, a, c.int64, device) for a in (0, 1))
    return c.cast(c.equal(columns, c.add(rows, k)), dtype_of(dtype, default_float()))


def _near(k):
    """A diagonal, as far away as integers of arrays go."""
    return max(-2**62, min(k, 2**62))


def _mask(x, k, keeps):
    if need_array(x).ndim < 2:
        raise ValueError(f"a triangle needs a matrix, not an array of {x.ndim} axes")
    rows, columns = (iota(x.shape[-2:], a, c.int64, x.device) for a in (0, 1))
    return c.where(keeps(columns, c.add(rows, _near(k))), x, c.number(0, x))


def tril(x, /, *, k=0):
    """x with zeros above diagonal k of its last two axes.

    x: of any dtype, at least two axes.
    Raises ValueError for fewer.

    >>> pt.tril(pt.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 0], [3, 4]]
    """
    return _mask(x, k, c.less_equal)


def triu(x, /, *, k=0):
    """x with zeros below diagonal k of its last two axes.

    x: of any dtype, at least two axes.
    Raises ValueError for fewer.

    >>> pt.triu(pt.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 2], [0, 4]]
    """
    return _mask(x, k, c.greater_equal)


def meshgrid(*arrays, indexing="xy"):
    """The coordinates of a grid: an array for each of arrays, of rank 1, in the
    shape of all of them.

    Raises ValueError for another indexing, TypeError for no arrays.

    >>> [x.tolist() for x in pt.meshgrid(pt.asarray([1, 2]), pt.asarray([3, 4]))]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is {indexing!r}: 'xy' and 'ij' are known")
    if not arrays:
        return ()
    for i, x in enumerate(arrays):
        if need_array(x, f"array {i}").ndim > 1:
            raise ValueError(f"array {i} has {x.ndim} axes, meshgrid() takes those of one")
    shape = [x.size for x in arrays]
    places = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        shape[0], shape[1] = shape[1], shape[0]
        places[0], places[1] = 1, 0
    return tuple(
        broadcast_dims(c.apply("reshape", (x,), None, x.dtype, (x.size,)), shape, (at,))
        for x, at in zip(arrays, places))


def copy(x, device=None):
    """x in memory of its own on device: the only way between devices.

    x: of any dtype and shape; device: None: where x is. The result is row-major.
    Raises TypeError for no array and no device, ValueError for a traced array, Error
    for a device that is not there.

    >>> pt.copy(pt.asarray([1, 2]), "cpu").tolist()
    [1, 2]
    """
    return c.copy(need_array(x), device)


# --- Dtypes ---

_KINDS = {
    "bool": (c.bool,),
    "signed integer": (c.int8, c.int16, c.int32, c.int64),
    "unsigned integer": (c.uint8, c.uint16, c.uint32, c.uint64),
    "real floating": (c.float32, c.float64),
    "complex floating": (c.complex64, c.complex128),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = (_KINDS["integral"] + _KINDS["real floating"] +
                     _KINDS["complex floating"])
_LETTERS = {"bool": "b", "signed integer": "i", "unsigned integer": "u",
            "integral": "iu", "real floating": "f", "complex floating": "c",
            "numeric": "iufc"}


def isdtype(dtype, kind):
    """Whether dtype is kind: a dtype, the name of a kind, or a tuple of them.

    kind: "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating" or "numeric".
    Raises ValueError for another kind, TypeError for no dtype.

    >>> pt.isdtype(pt.float32, "real floating")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind in _LETTERS:
        return c.dtype(dtype).kind in _LETTERS[kind]
    if isinstance(kind, str):
        raise ValueError(f"there is no kind {kind!r}: {', '.join(_LETTERS)} are")
    return c.dtype(dtype) == c.dtype(kind)


def astype(x, dtype, /, *, copy=True, device=None):
    """x as dtype. A number of complex type becomes none that is real.

    x: of any dtype and shape; dtype: any. Floats become integers by truncation,
    anything becomes bool by x != 0. The result is a copy unless copy=False, on device.
    Raises TypeError for complex numbers that become real ones, and for no dtype.

    >>> pt.astype(pt.asarray([1.7, 0.0]), pt.int32).tolist()
    [1, 0]
    >>> pt.astype(pt.asarray([1.7, 0.0]), bool).tolist()
    [True, False]
    """
    need_array(x)
    dtype = c.dtype(dtype)
    y = c.cast(x, dtype)
    if device is not None and c.device(device) != x.device:
        return c.copy(y, device)
    return asarray(y, copy=True) if copy and x.dtype == dtype else y


def result_type(*arrays_and_dtypes):
    """The dtype that arrays, dtypes and numbers have together.

    Raises TypeError for dtypes that have no common one, ValueError for no arguments.

    >>> str(pt.result_type(pt.int8, pt.uint8)), str(pt.result_type(pt.float32, 2))
    ('int16', 'float32')
    """
    dtypes, numbers = [], []
    for x in arrays_and_dtypes:
        if isinstance(x, Array):
            dtypes.append(x.dtype)
        elif isinstance(x, (bool, int, float, complex)):
            numbers.append(x)
        else:
            dtypes.append(c.dtype(x))
    if not dtypes:
        if not numbers:
            raise ValueError("result_type() takes at least one argument")
        dtypes.append(_default_of(numbers[0]))
    dtype = dtypes[0]
    for other in dtypes[1:]:
        dtype = c.promote(dtype, other)
    for x in numbers:
        dtype = c.promote(dtype, x)
    return dtype


def can_cast(from_, to, /):
    """Whether from_, an array or a dtype, becomes to by promotion.

    Raises TypeError for what is no dtype.

    >>> pt.can_cast(pt.int8, pt.int32), pt.can_cast(pt.int32, pt.int8)
    (True, False)
    """
    dtype = from_.dtype if isinstance(from_, Array) else c.dtype(from_)
    try:
        return c.promote(dtype, c.dtype(to)) == c.dtype(to)
    except TypeError:
        return False


class iinfo:
    """The limits of a dtype of integers: bits, min, max, dtype.

    type: a dtype of integers, or an array of one.
    Raises TypeError for another.

    >>> pt.iinfo(pt.int8).max
    127
    """

    def __init__(self, type, /):
        dtype = type.dtype if isinstance(type, Array) else c.dtype(type)
        if dtype.kind not in "iu":
            raise TypeError(f"{dtype} has no integers")
        self.dtype, self.bits = dtype, dtype.bits
        signed = dtype.kind == "i"
        self.min = -2**(self.bits - 1) if signed else 0
        self.max = 2**(self.bits - signed) - 1

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


# Bits of the exponent and of the mantissa.
_FORMATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23),
            "float64": (11, 52)}


class finfo:
    """The limits of a dtype of floats: bits, eps, max, min, smallest_normal, dtype.

    type: a dtype of floats or complex numbers, or an array of one.
    Raises TypeError for another.

    >>> pt.finfo(pt.float32).eps == 2.0**-23
    True
    """

    def __init__(self, type, /):
        dtype = type.dtype if isinstance(type, Array) else c.dtype(type)
        if dtype in COMPLEX:
            dtype = c.float32 if dtype == c.complex64 else c.float64
        if dtype.name not in _FORMATS:
            raise TypeError(f"{dtype} has no floats that finfo() knows")
        exponent, mantissa = _FORMATS[dtype.name]
        bias = 2**(exponent - 1) - 1
        self.dtype, self.bits = dtype, dtype.bits
        self.eps = 2.0**-mantissa
        self.max = (2 - self.eps) * 2.0**bias
        self.min = -self.max
        self.smallest_normal = 2.0**(1 - bias)

    def __repr__(self):
        return f"finfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def broadcast_shapes(*shapes):
    """The shape that arrays of shapes have together.

    Raises ValueError for shapes that do not broadcast, TypeError for what are no
    shapes.

    >>> pt.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    out = []
    for shape in shapes:
        shape = shape_of(shape)
        out = [1] * (len(shape) - len(out)) + out
        for i, dim in enumerate(reversed(shape), 1):
            if out[-i] != dim and dim != 1 and out[-i] != 1:
                raise ValueError(f"the shapes {', '.join(map(str, shapes))} do not "
                                 f"broadcast: axis -{i} is {out[-i]} and {dim}")
            out[-i] = dim if out[-i] == 1 else out[-i]
    return tuple(out)
