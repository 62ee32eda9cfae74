# SPDX-License-Identifier: Apache-2.0
"""jit and lower: functions as graphs."""

from . import _pestle as c

_NUMERICS = {"default": 0, "strict": 1, "fast": 2}


def _positions(value, what):
    if value is None:
        return ()
    places = (value,) if isinstance(value, int) else value
    if isinstance(places, str) or not all(isinstance(i, int) for i in places):
        raise TypeError(f"{what} is {value!r}, not integers")
    return tuple(places)


def _names(value, what):
    if value is None:
        return None
    names = (value,) if isinstance(value, str) else value
    if not all(isinstance(n, str) for n in names):
        raise TypeError(f"{what} is {value!r}, not names")
    return frozenset(names) or None


def jit(function=None, *, static_argnums=None, static_argnames=None,
        donate_argnums=None, donate_argnames=None, device=None, like=None,
        numerics="default", shapeless=False):
    """function, traced once for each structure, dtypes and shapes of its arguments,
    and run as one plan from then on.

    static_argnums, static_argnames: arguments, by place or by name, that are no arrays:
        they are compared by hash and ==, and another value is another trace.
    donate_argnums, donate_argnames: arguments that a call gives away. Their arrays are
        deleted, and a result may lie where they lay.
    device: where the function runs; None: where its arguments are.
    like: "inputs" makes results of the type of the first argument that is of another
        library, such as a NumPy array.
    numerics: "default", "strict" or "fast".
    shapeless: the graph of the first call serves arrays of other extents too, with a plan
        for each; numbers among the arguments are a part of it then. What a shape decides
        in Python has to be a sum or a product of extents, which else is a ValueError.

    Raises TypeError for what is no function, or no place and no name, ValueError for an
    argument that is static and donated, or an option that there is not.

    >>> @pt.jit
    ... def axpby(a, x, y):
    ...     return a * x + 2 * y
    >>> axpby(3.0, pt.ones((2,)), pt.ones((2,))).tolist()
    [5.0, 5.0]
    """
    if function is None:
        return lambda f: jit(f, static_argnums=static_argnums,
                             static_argnames=static_argnames,
                             donate_argnums=donate_argnums,
                             donate_argnames=donate_argnames, device=device, like=like,
                             numerics=numerics, shapeless=shapeless)
    if not callable(function):
        raise TypeError(f"jit() takes a function, not {function!r}")
    if numerics not in _NUMERICS:
        raise ValueError(f"numerics is {numerics!r}: {', '.join(_NUMERICS)} are known")
    if like not in (None, "inputs"):
        raise ValueError(f"like is {like!r}: 'inputs' and None are known")
    statics = _both(function, _positions(static_argnums, "static_argnums"),
                    _names(static_argnames, "static_argnames"))
    donated = _both(function, _positions(donate_argnums, "donate_argnums"),
                    _names(donate_argnames, "donate_argnames"))
    shared = {*map(repr, set(statics[0]) & set(donated[0])),
              *map(repr, set(statics[1] or ()) & set(donated[1] or ()))}
    if shared:
        raise ValueError(f"argument {', '.join(sorted(shared))} is static and donated: "
                         "it is one of both")
    for i in donated[0]:
        if i < 0:
            raise ValueError(f"donate_argnums has {i}, and {function!r} does not say how "
                             "many arguments it takes: count from the front")
    if shapeless:
        if donated[0] or donated[1] or like or numerics != "default":
            raise ValueError("shapeless=True goes with static arguments and device alone, "
                             "not with donated ones, like and numerics")
        from ._shapeless import Shapeless
        return Shapeless(function, *statics, device)
    return c.Jit(function, *statics, *donated, _NUMERICS[numerics], device,
                 like is not None)


def _both(function, places, names):
    """An argument that is named by its place is named by its name too, and the other
    way."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    if code is None or not (places or names):
        return places, names
    arguments = code.co_varnames[:code.co_argcount]
    by_place = {arguments[i] for i in places if -len(arguments) <= i < len(arguments)}
    names = frozenset(names or ()) | by_place
    places = tuple(sorted({i + len(arguments) if i < 0 else i for i in places} |
                          {i for i, n in enumerate(arguments) if n in names}))
    return places, names or None


def like(array, foreign):
    """array as a value of the library that foreign is of, which sees its memory."""
    import sys
    name = type(foreign).__module__.partition(".")[0]
    if name == "numpy":
        return array.__array__()
    if hasattr(foreign, "__array_namespace__"):
        return foreign.__array_namespace__().from_dlpack(array)
    module = sys.modules.get("jax.dlpack" if name in ("jax", "jaxlib") else name)
    if not hasattr(module, "from_dlpack"):
        return array
    return module.from_dlpack(array)


def lower(function, *args, **kwargs):
    """The graph that function, of jit() or plain, has for these arguments.

    args: as function takes them.
    Raises TypeError for no function, and what tracing it raises.

    >>> pt.lower(lambda x: x + 1, pt.ones((2,))).text().count("stablehlo.add")
    1
    """
    if not callable(function):
        raise TypeError(f"lower() takes a function, not {function!r}")
    if not isinstance(function, c.Jit):
        function = jit(function)
    from ._program import Lowered
    return Lowered(*function.trace(*args, **kwargs))


def bind(function, object):
    """A function of jit() as a method of an object."""
    return lambda *args, **kwargs: function(object, *args, **kwargs)


def of_any(function):
    """jit() of a function whose arguments may be of any kind: those that hold others than
    arrays and numbers are static."""
    made = c.Jit(function, (), None, (), None, 0, None, False)
    made.__dict__["_any"] = {}
    return made


def call_any(function, args, kwargs):
    """A call of what of_any() made that has others than arrays among its arguments."""
    kwargs = kwargs or {}
    places = tuple(i for i, x in enumerate(args) if not _is_data(x))
    names = frozenset(n for n, x in kwargs.items() if not _is_data(x))
    known = function.__dict__["_any"]
    if (places, names) not in known:
        known[places, names] = c.Jit(function.__wrapped__, places, names or None, (), None,
                                     0, None, False)
    return known[places, names](*args, **kwargs)


def _is_data(value):
    """Whether all leaves are arrays or numbers, of this library or another."""
    from . import tree
    return all(isinstance(x, (c.Array, bool, int, float, complex)) or
               not isinstance(x, (str, bytes)) and
               (hasattr(x, "__dlpack__") or hasattr(x, "__array__"))
               for x in tree.leaves(value))
