# SPDX-License-Identifier: Apache-2.0
"""jit and lower: functions as graphs."""

from . import _pestle as c

_NUMERICS = {"default": 0, "strict": 1, "fast": 2}


def _positions(value):
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)


def _names(value):
    if value is None:
        return None
    return frozenset((value,) if isinstance(value, str) else value) or None


def jit(function=None, *, static_argnums=None, static_argnames=None,
        donate_argnums=None, numerics="default"):
    """function, traced once for each structure, dtypes and shapes of its arguments,
    and run as one plan from then on.

    static_argnums and static_argnames name arguments that are no arrays, and are
    compared by hash and ==. numerics is "default", "strict" or "fast".
    donate_argnums may be given, and is not used yet: values stay what they were.
    """
    if function is None:
        return lambda f: jit(f, static_argnums=static_argnums,
                             static_argnames=static_argnames,
                             donate_argnums=donate_argnums, numerics=numerics)
    if not callable(function):
        raise TypeError(f"jit() takes a function, not {function!r}")
    if numerics not in _NUMERICS:
        raise ValueError(f"numerics is {numerics!r}: {', '.join(_NUMERICS)} are known")
    statics, names = _positions(static_argnums), _names(static_argnames)
    if names or statics:
        statics, names = _both(function, statics, names)
    return c.Jit(function, statics, names, _NUMERICS[numerics])


def _both(function, statics, names):
    """A static argument by its place is one by its name too, and the other way."""
    code = getattr(function, "__code__", None)
    if code is None:
        return statics, names
    arguments = code.co_varnames[:code.co_argcount]
    by_place = {arguments[i] for i in statics if -len(arguments) <= i < len(arguments)}
    names = frozenset(names or ()) | by_place
    statics = tuple(sorted({i % len(arguments) if arguments else i for i in statics} |
                           {i for i, n in enumerate(arguments) if n in names}))
    return statics, names or None


def lower(function, *args, **kwargs):
    """The graph that function, of jit() or plain, has for these arguments."""
    if not callable(function):
        raise TypeError(f"lower() takes a function, not {function!r}")
    if not isinstance(function, c.Jit):
        function = jit(function)
    from ._program import Lowered
    return Lowered(*function.trace(*args, **kwargs))


def bind(function, object):
    """A function of jit() as a method of an object."""
    return lambda *args, **kwargs: function(object, *args, **kwargs)
