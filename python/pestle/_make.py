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
    """An array of shape all of whose elements are fill_value."""
    shape = shape_of(shape)
    if isinstance(fill_value, Array):
        x = fill_value if dtype is None else c.cast(fill_value, dtype)
        if device is not None:
            x = c.copy(x, device)
        return broadcast_dims(x, shape, ())
    dtype = dtype_of(dtype, _default_of(fill_value))
    return c.full(shape, fill_value, dtype, device)


def zeros(shape, *, dtype=None, device=None):
    """An array of zeros, of float32 unless dtype says another."""
    return c.full(shape_of(shape), 0, dtype_of(dtype, default_float()), device)


def ones(shape, *, dtype=None, device=None):
    """An array of ones, of float32 unless dtype says another."""
    return c.full(shape_of(shape), 1, dtype_of(dtype, default_float()), device)


def empty(shape, *, dtype=None, device=None):
    """An array whose elements are undefined."""
    return c.empty(shape_of(shape), dtype_of(dtype, default_float()), device)


def _like(x, dtype, device):
    need_array(x)
    return dtype_of(dtype, x.dtype), x.device if device is None else device


def zeros_like(x, /, *, dtype=None, device=None):
    """Zeros of the shape and dtype of x."""
    dtype, device = _like(x, dtype, device)
    return c.full(x.shape, 0, dtype, device)


def ones_like(x, /, *, dtype=None, device=None):
    """Ones of the shape and dtype of x."""
    dtype, device = _like(x, dtype, device)
    return c.full(x.shape, 1, dtype, device)


def empty_like(x, /, *, dtype=None, device=None):
    """An array of the shape and dtype of x whose elements are undefined."""
    dtype, device = _like(x, dtype, device)
    return c.empty(x.shape, dtype, device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """fill_value in the shape and dtype of x."""
    dtype, device = _like(x, dtype, device)
    return full(x.shape, fill_value, dtype=dtype, device=device)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """start, start + step, ... as long as they are before stop; from 0 to start
    where stop is None. Integers of int64 unless one argument is a float."""
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
    where endpoint is set."""
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
    """Ones on diagonal k of a matrix of zeros."""
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
    """x with zeros above diagonal k of its last two axes."""
    return _mask(x, k, c.less_equal)


def triu(x, /, *, k=0):
    """x with zeros below diagonal k of its last two axes."""
    return _mask(x, k, c.greater_equal)


def meshgrid(*arrays, indexing="xy"):
    """The coordinates of a grid: an array for each of arrays, of rank 1, in the
    shape of all of them."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is {indexing!r}: 'xy' and 'ij' are known")
    if not arrays:
        return ()
    shape = [need_array(x).size for x in arrays]
    places = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        shape[0], shape[1] = shape[1], shape[0]
        places[0], places[1] = 1, 0
    return tuple(
        broadcast_dims(c.apply("reshape", (x,), None, x.dtype, (x.size,)), shape, (at,))
        for x, at in zip(arrays, places))


def copy(x, device=None):
    """x in memory of its own on device: the only way between devices."""
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
    """Whether dtype is kind: a dtype, the name of a kind, or a tuple of them."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind in _LETTERS:
        return c.dtype(dtype).kind in _LETTERS[kind]
    if isinstance(kind, str):
        raise ValueError(f"there is no kind {kind!r}: {', '.join(_LETTERS)} are")
    return c.dtype(dtype) == c.dtype(kind)


def astype(x, dtype, /, *, copy=True, device=None):
    """x as dtype. A number of complex type becomes none that is real."""
    need_array(x)
    dtype = c.dtype(dtype)
    y = c.cast(x, dtype)
    if device is not None and c.device(device) != x.device:
        return c.copy(y, device)
    return asarray(y, copy=True) if copy and x.dtype == dtype else y


def result_type(*arrays_and_dtypes):
    """The dtype that arrays, dtypes and numbers have together."""
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
    """Whether from_, an array or a dtype, becomes to by promotion."""
    dtype = from_.dtype if isinstance(from_, Array) else c.dtype(from_)
    try:
        return c.promote(dtype, c.dtype(to)) == c.dtype(to)
    except TypeError:
        return False


class iinfo:
    """The limits of a dtype of integers: bits, min, max, dtype."""

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
    """The limits of a dtype of floats: bits, eps, max, min, smallest_normal, dtype."""

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
    """The shape that arrays of shapes have together."""
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
