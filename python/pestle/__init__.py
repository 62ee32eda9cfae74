# SPDX-License-Identifier: Apache-2.0
"""Arrays that are computed when somebody needs them, and functions that are compiled.

    import pestle as pt
    x = pt.asarray([1.0, 2.0])
    y = pt.exp(x) + 1          # recorded
    print(y)                   # one kernel

pestle is a namespace of the array API standard, with jit(), pytrees, control flow and
random numbers beside it. docs/python.md is its manual.
"""

from . import _pestle as _c
from ._pestle import Array, Error, Module, device, dtype, eval, where

# What has no docstring is for the files of the package alone.
globals().update({
    name: value for name, value in vars(_c).items() if value.__doc__ and
    not name.startswith(("_", "tree_")) and
    name not in ("Jit", "api", "OPS", "Program", "RawSession", "RawDecoder", "Structure", "hooks", "full", "empty", "copy")})

from . import _builtins, _hooks, tree
from ._make import (arange, astype, broadcast_shapes, can_cast, copy, empty, empty_like,
                    eye, finfo, full, full_like, iinfo, isdtype, linspace, meshgrid,
                    ones, ones_like, result_type, tril, triu, zeros, zeros_like)
from ._shape import (broadcast_arrays, broadcast_to, concat, expand_dims, flip,
                     matrix_transpose, moveaxis, pad, permute_dims, ravel, repeat,
                     reshape, roll, split, squeeze, stack, swapaxes, tile, transpose,
                     unstack)
from ._reduce import (all, any, argmax, argmin, argsort, clip, count_nonzero,
                      cumulative_prod, cumulative_sum, diff, log_softmax, logsumexp,
                      max, mean, min, nonzero, prod, searchsorted, softmax, sort, std,
                      sum, topk, var)
from ._jit import jit, lower
from ._settings import config, default_device, stream

from . import _streams

_hooks.install()
_builtins.install()

_streams.install(globals(), ("_make", "_shape", "_reduce"), __name__)

__version__ = "0.3.0"
__array_api_version__ = "2025.12"

e, pi, inf, nan = 2.718281828459045, 3.141592653589793, float("inf"), float("nan")
newaxis = None
concatenate, absolute, power = concat, _c.abs, _c.pow


def gpu(index=0, /):
    """The GPU of that number, those of the best backend first.

    Raises Error where there is none of that number, which says which backends there are
    and why others are not.

    >>> [pt.gpu(i).type for i in range(0)]
    []
    """
    return device(f"gpu:{index}")


def asnumpy(x, /):
    """x as a NumPy array, which sees x's memory where that is the host's.

    x: on any device, lazy too; bfloat16 and floats of 8 bits and fewer become float32,
    integers of fewer than 8 bits those of 8.
    Raises TypeError for no array, ValueError for one that is traced or deleted.

    >>> pt.asnumpy(pt.asarray([1, 2])).dtype.name
    'int64'
    """
    from ._core import need_array
    return need_array(x).__array__()


def stop_gradient(x, /):
    """x, which derivatives do not look into: its tangent is zero.

    x: a tree; what is no array of floats or complex numbers in it stays what it is.
    Raises nothing.

    >>> pt.grad(lambda x: x * pt.stop_gradient(x))(3.0).tolist()
    3.0
    """
    from ._core import stopped
    return tree.map(stopped, x)


def __array_namespace_info__():
    """What the namespace has: devices, dtypes, capabilities."""
    from . import _info
    return _info.Info()


# Files that are read when one of their names is first asked for.
_LATER = {
    "_index": "take take_along_axis",
    "_names": "allclose array array_equal conv cumprod cumsum diag diagonal dot flatten "
              "hstack identity inner isclose kron median nan_to_num percentile quantile "
              "trace tri vstack",
    "_linear": "einsum matmul outer tensordot vecdot",
    "_sets": "isin unique_all unique_counts unique_inverse unique_values",
    "_custom": "Spec custom_op kernel pure_callback", "_extension": "extension",
    "_control": "cond fori_loop map scan switch while_loop",
    "_derive": "grad hessian jacfwd jacrev jvp linearize value_and_grad vjp",
    "_batch": "vmap",
    "_forms": "checkpoint checkpoint_name custom_function custom_jvp custom_vjp custom_vmap",
    "_program": "Function Lowered export from_stablehlo load load_onnx",
    "_session": "Session", "_decode": "Decoder",
    "_memory": "clear_cache device_info get_active_memory get_cache_memory "
               "get_memory_limit get_peak_memory reset_peak_memory set_cache_limit "
               "set_memory_limit set_wired_limit",
}
_FILE_OF = {name: file for file, names in _LATER.items() for name in names.split()}
_MODULES = ("linalg", "fft", "random", "backends")


def __getattr__(name):
    import importlib
    if name in _MODULES:
        value = importlib.import_module("." + name, __name__)
    elif name == "cpu":
        value = device("cpu")
    elif name in _FILE_OF:
        value = getattr(importlib.import_module("." + _FILE_OF[name], __name__), name)
        if _FILE_OF[name] in ("_index", "_linear", "_names", "_sets"):
            value = _streams.streamed(value, __name__)
    else:
        raise AttributeError(f"module 'pestle' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({n for n in globals() if not n.startswith("_")} | set(_FILE_OF) |
                  set(_MODULES) | {"cpu"})
