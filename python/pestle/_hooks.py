# SPDX-License-Identifier: Apache-2.0
"""What the C half asks the Python half for, and the methods of arrays."""

import atexit
import sys

from . import _jit, _make, _reduce, _shape
from . import _pestle as c
from ._core import Array, asarray


def _on_stream(*args):
    from ._streams import on_stream
    return on_stream(*args)


def _stack_nested(value):
    if isinstance(value, (list, tuple)):
        parts = [_stack_nested(v) for v in value]
        return _shape.stack(parts)
    return value if isinstance(value, Array) else asarray(value)


def _odd_buffer(value):
    """An array of a value whose buffer is of no format that is read: NumPy's in another
    order of bytes, with strides between its elements, or of ml_dtypes. None of others."""
    dtype = getattr(value, "dtype", None)
    if not all(hasattr(value, name) for name in ("astype", "view", "strides")):
        return asarray(_asarray(value)) if hasattr(value, "__dlpack__") else None
    try:
        own = c.dtype(dtype.name)
    except (TypeError, ValueError):
        own = None
    if own is None and dtype.kind not in "fc":
        raise TypeError(f"pestle has no dtype {dtype}")
    if own is not None and own.kind == "f" and (own.bits == 8 or own == c.bfloat16):
        words = asarray(value.astype(dtype, order="C").view(f"u{dtype.itemsize}"))
        return c.apply("bitcast_convert", (words,), None, own, words.shape)
    if own is not None and own.bits < 8 and own != c.bool:
        wide = {"f": "float32", "i": "int8", "u": "uint8"}[own.kind]
        return c.cast(asarray(value.astype(wide)), own)
    if dtype.isnative and all(step % dtype.itemsize == 0 for step in value.strides):
        return None  # long double
    return asarray(value.astype(dtype.newbyteorder("="), order="C"))


def _asarray(value):
    """An array of an object that shows none of its memory by the buffer protocol."""
    if hasattr(value, "__dlpack__"):
        try:
            return c.from_dlpack(value)
        except Exception as error:  # pylint: disable=broad-except
            if not hasattr(value, "__array__"):
                raise
            try:
                return value.__array__()
            except Exception:  # pylint: disable=broad-except
                raise error from None
    if hasattr(value, "__array__"):
        return value.__array__()
    if hasattr(value, "__index__"):
        return asarray(value.__index__())
    if hasattr(value, "__float__"):
        return asarray(float(value))
    if hasattr(value, "__iter__") and not isinstance(
            value, (str, bytes, dict, set, frozenset)):
        return asarray(list(value))
    raise TypeError(f"{value!r} is nothing that an array can be made of")


def _index(name, *args):
    from . import _index as file
    return getattr(file, name)(*args)


def _dict_nodes():
    """OrderedDict, whose order is a part of it, and defaultdict are trees."""
    from collections import OrderedDict, defaultdict

    def flatten_default(d):
        try:
            keys = sorted(d)
        except TypeError:  # keys without an order
            keys = list(d)
        return [d[k] for k in keys], (d.default_factory, tuple(keys))

    c.tree_register(OrderedDict, lambda d: (list(d.values()), tuple(d)),
                    lambda keys, children: OrderedDict(zip(keys, children)))
    c.tree_register(defaultdict, flatten_default, lambda aux, children: defaultdict(
        aux[0], zip(aux[1], children)))


def _jax_node(value):
    """(children, how they stand together) of a type that jax.tree_util knows, None of
    one that it does not know."""
    trees = sys.modules["jax.tree_util"]
    children, shape = trees.tree_flatten(value, is_leaf=lambda x: x is not value)
    return None if trees.treedef_is_leaf(shape) else (children, shape)


def _plugin_search(name, *args):
    from . import _plugins
    return getattr(_plugins, name)(c, *args)


def _shown(x, name):
    from . import _text
    return getattr(_text, name)(x)


def _iter(x):
    if not x.ndim:
        raise TypeError("an array of rank 0 has no elements one by one")
    return iter([x[i] for i in range(x.shape[0])])


def _matmul(a, b):
    if not isinstance(a, Array) or not isinstance(b, Array):
        if any(isinstance(v, (bool, int, float, complex)) for v in (a, b)):
            return NotImplemented
        a, b = asarray(a), asarray(b)
    from ._linear import matmul
    return matmul(a, b)


# What NumPy has no dtype of its own for becomes the least of its dtypes that has all
# values.
_SHOWN = {"bfloat16": c.float32, "int2": c.int8, "int4": c.int8, "uint2": c.uint8,
          "uint4": c.uint8}


def _numpy(x, dtype=None, copy=None):
    """x as a NumPy array that sees x's memory and is read-only; a copy where dtype,
    copy, or a dtype or a device that NumPy has not, asks for one."""
    import numpy
    shown = _SHOWN.get(x.dtype.name, x.dtype)
    if shown.kind == "f" and shown.bits <= 8:
        shown = c.float32
    y = x if shown == x.dtype else c.cast(x, shown)
    y = y if y.device.type == "cpu" else c.copy(y, "cpu")
    z = numpy.asarray(memoryview(y))
    if dtype is not None and z.dtype != numpy.dtype(dtype):
        z = z.astype(dtype)
    is_copy = y is not x or z.base is None
    if is_copy and copy is False:
        raise ValueError(f"an array of {x.dtype} on {x.device} becomes one of NumPy's "
                         f"{z.dtype} by a copy alone, and copy is False")
    return z.copy() if copy and not is_copy else z


def _namespace(x, /, *, api_version=None):
    import pestle
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        raise ValueError(f"the array API of {api_version} is not here")
    return pestle


def _to_device(x, device, /, *, stream=None):
    """x on device."""
    return x if c.device(device) == x.device else c.copy(x, device)


def _reshape(x, *shape, copy=None):
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    return _shape.reshape(x, tuple(shape), copy=copy)


def _transpose(x, *axes):
    if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
        axes = axes[0]
    return _shape.transpose(x, tuple(axes) if axes else None)


def _block(x):
    c.eval(x)
    return x


def _reduce_ex(x, protocol):
    if x.dtype.kind == "c":
        return _rebuild_complex, (c.real(x), c.imag(x))
    if x.dtype.kind == "f" and 8 <= x.dtype.bits <= 16:
        bits = c.uint16 if x.dtype.bits == 16 else c.uint8
        words = c.apply("bitcast_convert", (x,), None, bits, x.shape)
        return _rebuild_float, (words, x.dtype.name)
    if x.dtype.kind == "f" and x.dtype.bits < 8:
        return c.cast, (c.cast(x, c.float32), x.dtype)
    if x.dtype.bits < 8 and x.dtype != c.bool:
        return c.cast, (c.cast(x, c.int8 if x.dtype.kind == "i" else c.uint8), x.dtype)
    data = bytes(memoryview(c.copy(x, "cpu")).cast("B")) if x.size else b""
    return _rebuild, (data, x.dtype.name, x.shape)


def _rebuild_complex(real, imag):
    return c.apply("complex", (real, imag))


def _rebuild_float(words, dtype):
    return c.apply("bitcast_convert", (words,), None, c.dtype(dtype), words.shape)


def _rebuild(data, dtype, shape):
    if not data:
        return c.full(shape, 0, c.dtype(dtype), None)
    letter = {"bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q",
              "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
              "float32": "f", "float64": "d"}[dtype]
    view = memoryview(data)
    return _shape.reshape(asarray(view if letter == "B" else view.cast(letter)), shape)


METHODS = {
    "__array_namespace__": _namespace, "__array__": _numpy, "to_device": _to_device,
    "reshape": _reshape, "transpose": _transpose, "block_until_ready": _block,
    "__reduce_ex__": _reduce_ex, "astype": _make.astype, "ravel": _shape.ravel,
    "flatten": _shape.ravel, "squeeze": _shape.squeeze, "swapaxes": _shape.swapaxes,
    "clip": _reduce.clip, "dot": _matmul,
    "conj": c.conj, "round": c.round,
    **{name: getattr(_reduce, name) for name in (
        "sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax",
        "argmin", "argsort", "sort", "cumulative_sum", "cumulative_prod")},
}
PROPERTIES = {
    "T": (lambda x: _shape.transpose(x), "The array with its axes turned around."),
    "mT": (lambda x: _shape.matrix_transpose(x),
           "The array with its last two axes swapped."),
    "real": (lambda x: c.real(x), "The real part of each element."),
    "imag": (lambda x: c.imag(x), "The imaginary part of each element, 0 of real ones."),
    "at": (lambda x: _index("_Indexer", x),
           "x.at[key].set(v), .add, .multiply, .min and .max give an updated array."),
}


def install():
    from ._streams import streamed
    atexit.register(c.flush_log)
    c.hooks.update(
        home=__file__.rpartition("/")[0] + "/",
        repr=lambda x: _shown(x, "represent"), str=lambda x: _shown(x, "text"),
        iter=_iter, getitem=lambda x, key: _index("getitem", x, key),
        setitem=lambda x, key, value: _index("update", x, key, value),
        matmul=_matmul, asarray=_asarray,
        stack_nested=_stack_nested, odd_buffer=_odd_buffer, bind=_jit.bind, any=_jit.call_any, like=_jit.like, jax_node=_jax_node,
        dict_nodes=_dict_nodes, on_stream=_on_stream,
        jax_value=lambda type, shape, children: shape.unflatten(children),
        plugins=lambda: _plugin_search("install"),
        find_backend=lambda name: _plugin_search("find", name))
    for name, function in METHODS.items():
        if type(function).__name__ == "builtin_function_or_method":
            function = (lambda f: lambda x: f(x))(function)
        elif function in (_reshape, _transpose) or function.__module__ in (
                "pestle._reduce", "pestle._shape", "pestle._make"):
            function = streamed(function, "pestle")
        setattr(Array, name, function)
    for name, (function, text) in PROPERTIES.items():
        setattr(Array, name, property(function, doc=text))
    Array.__module__ = "pestle"
