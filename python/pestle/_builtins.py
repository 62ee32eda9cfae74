# SPDX-License-Identifier: Apache-2.0
"""What Python's own functions ask of an array: format(), round(), divmod(), in,
reversed(), copy."""

import math

from . import _pestle as c
from . import _reduce, _shape
from ._core import Array


def _format(x, spec):
    if spec and x.ndim:
        raise TypeError(f"an array of {x.ndim} axes has no format {spec!r}: its elements "
                        "have, x.tolist()")
    return format(x.item() if spec else str(x), spec)


def _contains(x, value):
    same = x == value
    return bool(_reduce.any(same)) if isinstance(same, Array) else False


def _reversed(x):
    if not x.ndim:
        raise TypeError("an array of rank 0 has no elements one by one")
    return iter(_shape.flip(x, axis=0))


def _round(x, ndigits=None):
    if ndigits is None:
        if x.ndim:
            return c.round(x)
        return round(x.item())
    scale = 10.0**ndigits
    if x.dtype.kind in "iub":
        return x if ndigits >= 0 else c.cast(c.round(x * scale) / scale, x.dtype)
    return c.round(x * scale) / scale


def _whole(function):
    return lambda x: function(x.item())


def _divmod(x, y):
    return x // y, x % y


def _rdivmod(x, y):
    return y // x, y % x


def _deepcopy(x, memo):
    y = x.__copy__() if x.state == "traced" else c.copy(x, x.device)
    memo[id(x)] = y
    return y


METHODS = {
    "__format__": _format, "__contains__": _contains, "__reversed__": _reversed,
    "__round__": _round, "__trunc__": _whole(math.trunc), "__floor__": _whole(math.floor),
    "__ceil__": _whole(math.ceil), "__divmod__": _divmod, "__rdivmod__": _rdivmod,
    "__deepcopy__": _deepcopy,
}


def install():
    for name, method in METHODS.items():
        setattr(Array, name, method)
    # A device and a function of a module are what their names say, in another process
    # too.
    c.device.__reduce__ = lambda device: (c.device, (device.name,))
    c.Jit.__reduce__ = lambda function: function.__qualname__
    c.Jit.__copy__ = lambda function: function
    c.Jit.__deepcopy__ = lambda function, memo: function
