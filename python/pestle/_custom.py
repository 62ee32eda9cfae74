# SPDX-License-Identifier: Apache-2.0
"""Ops of one's own: custom_op, kernel, pure_callback."""

import inspect
import itertools
import threading

from . import _pestle as c
from ._core import Array, asarray
from ._streams import on_stream

BOOL, I64, F64, STR, I64S, F64S = range(6)
_KINDS = {bool: BOOL, int: I64, float: F64, str: STR}
_PREFER = {"auto": 0, "inline": 1, "eval": 2}
_FRONT = {"broadcast": 1, "promote": 2, "float": 4}
_used = {}  # names of ops to how often each was made


_open = threading.local()  # how many rules are traced, one in another
_MOST_OPEN = 24


def _guarded(name, function, arrays):
    """function(arrays), of an op whose rules may use ops themselves, but not that one
    without end."""
    depth = getattr(_open, "depth", 0)
    if depth >= _MOST_OPEN:
        raise RecursionError(f"rules of ops are traced {depth} deep, the last of "
                             f"'{name}': a rule cannot ask for what it is the rule of")
    _open.depth = depth + 1
    try:
        return function(arrays)
    finally:
        _open.depth = depth


class _Traced:
    """A function of a tuple of arrays, as the library traces it; `where` says of each
    result which one it is."""

    def __init__(self, name, function):
        self._name, self._function = name, function
        self.where = ()

    def __call__(self, arrays):
        results = _tuple(_guarded(self._name, self._function, arrays))
        self.where = tuple(i for i, r in enumerate(results) if r is not None)
        return tuple(asarray(r) for r in results if r is not None)


class _Batched:
    """The same of a function that gives results and their batched axes."""

    def __init__(self, name, function):
        self._name, self._function = name, function
        self.where = ()

    def __call__(self, arrays):
        found = _guarded(self._name, self._function, arrays)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise TypeError(f"the vmap of '{self._name}' gives {found!r}: a pair of the "
                            "results and their batched axes is meant")
        results, where = found
        results = _tuple(results)
        if not isinstance(where, (tuple, list)):
            where = (where,) * len(results)
        self.where = tuple(-1 if w is None else w for w in where)
        return tuple(asarray(r) for r in results)


def _tuple(results):
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)


class Context:
    """What a rule sees of one use of an op: operands, results, attributes, and which
    operands' cotangents are needed. Attributes are members too: ctx.alpha."""

    def __init__(self, attrs, operands, results=(), needed=()):
        self.attrs, self.operands, self.results = attrs, operands, results
        self.needed = needed

    def __getattr__(self, name):
        try:
            return self.__dict__["attrs"][name]
        except KeyError:
            raise AttributeError(f"the op has no attribute {name!r}") from None


class _Rules:
    """What the library calls. Arrays come as one tuple."""

    def __init__(self, op):
        self._op = op

    def _split(self, attrs, arrays):
        """Operands, and attributes with those that are dynamic, which come behind."""
        names = self._op.dynamic
        n = len(arrays) - len(names)
        return arrays[:n], {**attrs, **dict(zip(names, arrays[n:]))}

    def _refuse(self, rule, what):
        names = self._op.dynamic
        if names and any(what[len(what) - len(names):]):
            raise ValueError(f"the {rule} of '{self._op.name}' is asked for what it knows "
                             f"nothing of, its dynamic attributes ({', '.join(names)}): "
                             "make them operands, or give no rule")

    def body(self, attrs, count):
        def run(arrays):
            operands, named = self._split(attrs, arrays)
            results = self._op.function(*operands, **named)
            if results is None:
                raise TypeError(f"the body of '{self._op.name}' gives None: an array, or "
                                "a tuple of arrays, is meant")
            return results
        return _Traced(self._op.name, run)

    def infer(self, attrs, types):
        specs = self._op.types
        types = types[:len(types) - len(self._op.dynamic)]
        if callable(specs):
            specs = specs(*(Spec(shape, dtype) for shape, dtype in types), **attrs)
        specs = [specs] if isinstance(specs, (Spec, Array)) else specs
        return [(tuple(s.shape), s.dtype) for s in specs]

    def vjp(self, attrs, shape):
        n, m, there, needed = shape

        def run(arrays):
            rest = iter(arrays[n + m:])
            cotangents = [next(rest) if t else None for t in there]
            self._refuse("vjp", needed)
            operands, named = self._split(attrs, arrays[:n])
            ctx = Context(named, operands, arrays[n:n + m], needed[:len(operands)])
            shown = cotangents[:m - self._op.hidden]
            results = _tuple(self._op.rules["vjp"](ctx, *shown))
            if len(results) != len(operands):
                raise ValueError(f"the vjp of '{self._op.name}' gives {len(results)} "
                                 f"cotangents for {len(operands)} operands")
            results = (*results, *[None] * (n - len(operands)))
            return [r if w else None for r, w in zip(results, needed)]

        return _Traced(self._op.name, run)

    def jvp(self, attrs, shape):
        n, m, there, _ = shape

        def run(arrays):
            rest = iter(arrays[n + m:])
            tangents = [next(rest) if t else None for t in there]
            self._refuse("jvp", there)
            operands, named = self._split(attrs, arrays[:n])
            ctx = Context(named, operands, arrays[n:n + m])
            results = _tuple(self._op.rules["jvp"](ctx, *tangents[:len(operands)]))
            if len(results) not in (m, m - self._op.hidden):
                raise ValueError(f"the jvp of '{self._op.name}' gives {len(results)} "
                                 f"tangents for {m - self._op.hidden} results")
            return (*results, *[None] * (m - len(results)))

        return _Traced(self._op.name, run)

    def vmap(self, attrs, how):
        size, axes = how
        axes = tuple(a if a >= 0 else None for a in axes)
        self._refuse("vmap", [a is not None for a in axes])

        def run(arrays):
            operands, named = self._split(attrs, arrays)
            ctx = Context(named, operands)
            return self._op.rules["vmap"](ctx, size, axes[:len(operands)])
        return _Batched(self._op.name, run)

    def run(self, attrs, what):
        index, inputs, outputs = what
        views = [_view(*t) for t in inputs]
        for view in views:  # others read the same memory
            view.flags.writeable = False
        views, named = self._split(attrs, views)
        named.update((key, float(named[key])) for key in self._op.dynamic)
        self._op.evals[index][2](*views, *(_view(*t) for t in outputs), **named)


class Spec:
    """The shape and dtype of an operand or a result.

    shape: extents. dtype: float32 where it is not said. Raises TypeError for what is
    neither.

    >>> pt.Spec((2, 3), pt.int32).shape
    (2, 3)
    """

    def __init__(self, shape, dtype=None):
        if not isinstance(shape, (tuple, list)):
            raise TypeError(f"the shape of a Spec is {shape!r}, not a tuple")
        self.shape = tuple(shape)
        self.dtype = c.dtype("float32" if dtype is None else dtype)

    def __repr__(self):
        return f"Spec({self.shape}, {self.dtype})"


def _view(address, size, dtype, shape):
    """Memory of the library as an array of NumPy's."""
    import ctypes

    import numpy
    name = str(dtype).rsplit(".", 1)[-1]
    try:
        kind = numpy.dtype(name)
    except TypeError:
        import ml_dtypes
        kind = numpy.dtype(getattr(ml_dtypes, name))
    memory = (ctypes.c_char * size).from_address(address) if size else b""
    return numpy.frombuffer(memory, dtype=kind).reshape(shape)


def _kind_of(name, annotation, default):
    kind = _KINDS.get(annotation)
    if kind is None and isinstance(annotation, str):
        kind = {t.__name__: k for t, k in _KINDS.items()}.get(annotation)
    if kind is None and isinstance(default, (bool, int, float, str)):
        kind = _KINDS[type(default)]
    if kind is None and isinstance(default, (tuple, list)):
        kind = F64S if any(isinstance(x, float) for x in default) else I64S
    if kind is None:
        raise TypeError(f"attribute {name!r} needs an annotation: bool, int, float or "
                        "str, or a default")
    return kind


class Op:
    """An op, called like the function that it was made of. vjp, jvp, vmap and eval take
    the function behind them; they come before the first call."""

    def __init__(self, function, name, version, prefer, front, elementwise, types,
                 evals=(), kinds=(), dynamic=(), hidden=0):
        self.dynamic, self.hidden = tuple(dynamic), hidden
        self._kinds = dict(kinds)
        self.function, self.types = function, types
        self.name, self._version = name, version
        self._prefer, self._front = prefer, front
        self._elementwise, self._done = elementwise, False
        self.rules, self.evals = {}, list(evals)
        self._operands, self._attrs = [], []
        self.__name__ = name.rsplit(".", 1)[-1]
        if function is not None:
            self.__doc__ = function.__doc__
            self._read(inspect.signature(function))
        known = {key: kind for key, kind, _ in self._attrs}
        for key in self.dynamic:
            if known.get(key) != F64:
                raise TypeError(f"{key!r} of '{name}' is dynamic and no attribute by "
                                "keyword that is a float")
        self.dynamic = tuple(k for k, _, _ in self._attrs if k in self.dynamic)

    def _read(self, signature):
        for p in signature.parameters.values():
            if p.kind == p.KEYWORD_ONLY:
                default = None if p.default is p.empty else p.default
                kind = self._kinds.get(p.name, p.annotation)
                self._attrs.append((p.name, _kind_of(p.name, kind, default), default))
            elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                self._operands.append(p.name)
            elif p.kind == p.VAR_POSITIONAL:
                self._operands = None

    # --- Rules ---

    def _rule(self, name, function):
        if self._done:
            raise RuntimeError(f"'{self.name}' was called already: its {name} comes too "
                               "late")
        self.rules[name] = function
        return function

    def vjp(self, function):
        """function(ctx, *cotangents) gives a cotangent, or None for zero, for each
        operand."""
        return self._rule("vjp", function)

    def jvp(self, function):
        """function(ctx, *tangents) gives the tangents of the results; None is zero."""
        return self._rule("jvp", function)

    def vmap(self, function):
        """function(ctx, size, axes) gives results and their batched axes."""
        return self._rule("vmap", function)

    def eval(self, target, id=None):
        """What computes the op on target ("cpu", "llvm", "*"): a function of NumPy's
        views of the operands and then the results, with the attributes by name; or the
        address of a function of C (pestle/custom_call.h). id is its version."""
        def add(function):
            if self._done:
                raise RuntimeError(f"'{self.name}' was called already: its eval comes "
                                   "too late")
            self.evals.append((target, id, function))
            return function
        return add

    # --- Calls ---

    def _register(self):
        self._done = True
        # Another op of that name is another generation of it.
        count = _used[self.name] = _used.get(self.name, 0) + 1
        if count > 1 or c.op_table(self.name) is not None:
            self.name += f".g{count + 1}"
        has = set(self.rules)
        if self.function is not None:
            has.add("body")
        if self.types is not None:
            has.add("infer")
        evals = []
        for target, id, function in self.evals:
            if isinstance(function, tuple):
                evals.append((target, id, function))
            elif isinstance(function, int):
                evals.append((target, id or "1", function))
            else:
                evals.append((target, id or "1", None))
        attrs = tuple((*row, row[0] in self.dynamic) for row in self._attrs)
        c.register_op(self.name, self._version, _Rules(self), attrs, tuple(evals),
                      self._prefer, self._front, self._elementwise, has, self.hidden)

    def __call__(self, *args, stream=None, **named):
        if not self._done:
            self._register()
        if isinstance(stream, c.Stream):
            return on_stream(self, stream, args, named)
        return call_op(self.name, self._operands, self._attrs, args, named, stream)

    def __repr__(self):
        return f"<op {self.name}>"


def call_op(name, operands, attrs, args, named, stream):
    """Operands and attributes by position or by name."""
    args, values = list(args), {}
    if operands is not None:
        if len(args) > len(operands) + len(attrs):
            raise TypeError(f"{name}() takes {len(operands)} operands and {len(attrs)} "
                            f"attributes, {len(args)} were given")
        for (key, _, _), value in zip(attrs, args[len(operands):]):
            values[key] = value
        args = args[:len(operands)]
        for key in operands[len(args):]:
            if key not in named:
                raise TypeError(f"{name}() misses operand '{key}'")
            args.append(named.pop(key))
    for key, value in named.items():
        if key in values:
            raise TypeError(f"{name}() has two values for '{key}'")
        values[key] = value
    rows = [(key, kind, values.pop(key)) for key, kind, _ in attrs if key in values]
    if values:
        raise TypeError(f"{name}() has no attribute '{next(iter(values))}'")
    given = {row[0] for row in rows}
    for key, _, otherwise in attrs:
        if otherwise is None and key not in given:
            raise TypeError(f"{name}() misses attribute '{key}'")
    like = next((a for a in args if isinstance(a, Array)), None)
    device = c.device(stream) if isinstance(stream, str) else stream
    arrays = tuple(_operand(a, like, device) for a in args)
    try:
        results = c.custom(name, arrays, tuple(rows))
    except TypeError:
        _check_kinds(name, rows)
        raise
    return results[0] if len(results) == 1 else results


_WORDS = {I64: (int, "an integer"), F64: ((int, float), "a number"), STR: (str, "a text"),
          I64S: ((tuple, list), "a list of integers"),
          F64S: ((tuple, list), "a list of numbers")}


def _check_kinds(name, rows):
    """Says which attribute is of another kind than its row."""
    for key, kind, value in rows:
        types, words = _WORDS.get(kind, (object, ""))
        if not isinstance(value, (types, Array)) and not (
                kind in (I64, F64) and hasattr(value, "__index__" if kind == I64 else
                                               "__float__")):
            raise TypeError(f"attribute '{key}' of {name}() is {value!r}, and is to be "
                            f"{words}") from None


def _operand(x, like, device):
    if device is not None:
        return asarray(x, device=device)
    if isinstance(x, Array):
        return x
    if like is not None and isinstance(x, (bool, int, float, complex)):
        return c.full((), x, c.promote(like.dtype, x), like.device)
    return asarray(x)


def _front_bits(front):
    if front is True:
        return 7
    bits = 0
    for word in (front,) if isinstance(front, str) else front or ():
        if word not in _FRONT:
            raise ValueError(f"front has {word!r}: {', '.join(_FRONT)} are known")
        bits |= _FRONT[word]
    return bits


def custom_op(name, *, version=1, prefer="auto", front=("broadcast", "promote"),
              elementwise=False, types=None, dynamic=(), hidden=0):
    """Makes an op of a function: its body, traced once for each signature, which fuses.

        @pestle.custom_op("user.axpby")
        def axpby(x, y, *, alpha: float, beta: float):
            return alpha * x + beta * y

    Operands are the parameters by position, attributes those by keyword. prefer is
    "auto", "inline" or "eval". front says what is done to operands first: "broadcast",
    "promote" to one dtype, "float" for integers too. types, of an op whose function is
    not to be traced (``custom_op(name, types=f)(None)``), gives Spec of the results.
    dynamic names attributes, floats, that change often: another value compiles nothing
    anew; to the body and to rules they are arrays of rank 0, and a call may give one.
    hidden: so many results, the last ones, are for the vjp alone, as ctx.results.
    Raises ValueError for a name without a dot when it is first called, TypeError for
    attributes that are not bool, int, float, str or lists of numbers.

    >>> @pt.custom_op("docs.axpby")
    ... def axpby(x, y, *, alpha: float, beta: float):
    ...     return alpha * x + beta * y
    >>> axpby(pt.ones((2,)), pt.ones((2,)), alpha=4.0, beta=2.0).tolist()
    [6.0, 6.0]
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of an op is {name!r}, not a text")
    if not isinstance(version, int):
        raise TypeError(f"the version of op '{name}' is {version!r}, not an integer")
    if prefer not in _PREFER:
        raise ValueError(f"prefer of op '{name}' is {prefer!r}: {', '.join(_PREFER)} are "
                         "known")
    bits = _front_bits(front)

    def make(function):
        return Op(function, name, version, _PREFER[prefer], bits,
                  elementwise, types, dynamic=dynamic, hidden=hidden)
    return make


def _grid(value):
    if value is None:
        return ()
    values = value if isinstance(value, (tuple, list)) else (value,)
    return tuple(str(v) for v in values)


_LANGUAGES = {"cuda": "cuda", "metal": "metal", "opencl": "opencl", "glsl": "vulkan",
              "kir": "cpu"}


def kernel(name, inputs, outputs, *, grid=None, group=None, body=None, types=None,
           header=None, template=None, shared_bytes=0, init_value=None, flags=None,
           whole=False, entry=None, attributes=(), elementwise=False, **texts):
    """A kernel whose text is written here, one for each language: cuda, metal, opencl,
    glsl (of vulkan), kir (Kernel IR, of CPUs).

        exp = pestle.kernel("myexp", inputs=["x"], outputs=["y"], grid="x.size",
                            opencl="y[i] = exp(x[i]);", cuda="y[i] = expf(x[i]);",
                            body=lambda x: pestle.exp(x))

    grid is how many threads there are: integers or expressions over extents. In the
    text i is the thread, x_shape, x_strides, x_ndim and x_size are constants, T is the
    type of the first result, and names of template are types or numbers. body, the same
    as a function of arrays, gives types, derivatives and what runs where no text is
    for; without it types says what the results are. elementwise says that thread i makes
    element i of all results from that of all inputs, and nothing else: batched, the kernel
    is itself on a bigger shape, and in CUDA a thread takes four elements. Raises TypeError for a language
    that is none of them, ValueError for text that does not compile, when it runs.

    >>> twice = pt.kernel("twice", ["x"], ["y"], grid="x.size", cuda="y[i] = 2 * x[i];",
    ...                   body=lambda x: 2 * x)
    >>> twice(pt.ones((2,))).tolist()
    [2.0, 2.0]
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a kernel is {name!r}, not a text")
    unknown = set(texts) - set(_LANGUAGES)
    if unknown:
        raise TypeError(f"kernel() knows no language '{unknown.pop()}': "
                        f"{', '.join(_LANGUAGES)} are")
    inputs, outputs = tuple(inputs), tuple(outputs)
    if len(set(inputs + outputs)) != len(inputs + outputs):
        raise ValueError(f"kernel '{name}' has a name twice among its inputs {inputs} and "
                         f"outputs {outputs}")
    if body is None and types is None:
        raise ValueError(f"kernel '{name}' has neither a body nor types, which say what "
                         "its results are")
    rows = tuple((template or {}).items())
    evals = []
    for language, text in texts.items():
        source = (language, text, header, whole, entry, inputs, outputs,
                  rows, _grid(grid), _grid(group), shared_bytes, init_value, flags)
        evals.append((_LANGUAGES[language], None, source))
    full = name if "." in name else f"kernel.{name}"
    op = Op(body, full, 1, _PREFER["eval"], 0, elementwise, types, evals, attributes)
    op._operands = list(inputs)
    if body is None:
        op._attrs = [(key, _kind_of(key, kind, None), None) for key, kind in attributes]
    return op


def _in_front(x, axis):
    """x with its batched axis in front, or one of extent 1 there."""
    from ._shape import expand_dims, moveaxis
    return expand_dims(x, axis=0) if axis is None else moveaxis(x, axis, 0)


_numbers = itertools.count(1)


def pure_callback(function, types, *args, vmap=None):
    """What function gives for NumPy arrays of args: arrays of types (Spec, or arrays to
    take shape and dtype from), where the values are needed. It is called once for each
    evaluation, and must give the same for the same. Under vmap it is called for each
    element ("loop", which None is too), or with vmap="batched" once, with the axis in
    front of its arguments and results, of extent 1 where an argument is not batched.
    Raises ValueError, where the values are needed, for results of another shape and for
    what function raised.

    >>> import numpy
    >>> pt.pure_callback(numpy.sort, pt.Spec((3,)), pt.asarray([3.0, 1.0, 2.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    if not callable(function):
        raise TypeError(f"pure_callback() takes a function, not {function!r}")
    if vmap not in (None, "loop", "batched"):
        raise ValueError(f"vmap of pure_callback() is {vmap!r}: 'loop' and 'batched' are "
                         "known")
    single = isinstance(types, (Spec, Array))
    if not single and not isinstance(types, (tuple, list)):
        raise TypeError(f"pure_callback() takes Spec of its results, not {types!r}")
    specs = [types] if single else list(types)
    for s in specs:
        if not isinstance(s, (Spec, Array)):
            raise TypeError(f"pure_callback() takes Spec of its results, not {s!r}")
    specs = [Spec(s.shape, s.dtype) for s in specs]

    key = (function, tuple((s.shape, s.dtype.name) for s in specs), single, vmap,
           len(args))
    try:
        op = _callbacks.get(key)
    except TypeError:  # of a function without a hash
        key = op = None
    if op is None:
        op = _callback_op(function, specs, single, len(args), vmap)
        if key is not None:
            _callbacks[key] = op
    results = op(*args)
    return results if single else _tuple(results)


_callbacks = {}  # the library keeps each for good


def _callback_op(function, specs, single, count, vmap):
    import numpy

    def run(*views, **_):
        ins, outs = views[:count], views[count:]
        results = function(*ins)
        results = (results,) if single else tuple(results)
        if len(results) != len(outs):
            raise ValueError(f"the callback gave {len(results)} results, {len(outs)} were "
                             "said")
        for out, result in zip(outs, results):
            if numpy.shape(result) != out.shape:
                raise ValueError(f"the callback gave the shape {numpy.shape(result)}, "
                                 f"{out.shape} was said")
            out[...] = result

    op = Op(None, f"python.callback_{next(_numbers)}", 1, _PREFER["eval"], 0, False,
            specs)
    op._operands = [f"operand {i}" for i in range(count)]
    op.evals.append(("*", f"{id(op)}", run))
    if vmap == "batched":
        def of_all(ctx, size, axes):
            rows = [Spec((size, *s.shape), s.dtype) for s in specs]
            return pure_callback(function, rows[0] if single else rows,
                                 *(_in_front(x, a) for x, a in zip(ctx.operands, axes)),
                                 vmap=vmap), 0
        op.rules["vmap"] = of_all
    return op
