# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions: recorded, transformed as graphs, and recorded again as a
part of whatever is recorded at the time. So they nest in any order."""

import functools

from . import _pestle as c
from . import tree
from ._core import Array, asarray, moveaxis_to, reshape_to
from ._jit import of_any


def name_of(function):
    return getattr(function, "__qualname__", None) or repr(function)


def has_derivative(x):
    return x.dtype.kind in "fc"


def arrays_of(value, device=None):
    """The leaves of a tree as arrays, and its structure."""
    leaves, structure = tree.flatten(value)
    device = next((x.device for x in leaves if isinstance(x, Array)), device)
    return [x if isinstance(x, Array) else asarray(x, device=device)
            for x in leaves], structure


class Recorded:
    """What a function of flat arrays does with arrays like |specs|: |module|, whose
    arguments are those and |hidden|; |results|, and what |function| said of them."""

    def __init__(self, function, specs):
        def flat(arrays):
            results, self.said = function(*arrays)
            return tuple(results)
        device = specs[0].device if specs else None
        self._function = function
        self.module, self.hidden, self.results, self._capture = c.capture(
            flat, tuple(specs), device)

    def run(self, module, *groups):
        """What |module|, made of this one, gives for groups of arrays: arguments,
        hidden ones, new ones."""
        operands = tuple(x for group in groups for x in group)
        if not operands:  # what reads nothing is recorded by doing it again
            return tuple(self._function()[0])
        return c.inline(module, operands)


def record(function, structure, specs, has_aux=False, wrap=lambda x: x):
    """Recorded, of a function of trees; said is (structure of the result, number of its
    leaves, structure of aux)."""
    def flat(*arrays):
        out = function(*structure.unflatten([wrap(x) for x in arrays]))
        aux = ()
        if has_aux:
            if not isinstance(out, (tuple, list)) or len(out) != 2:
                raise TypeError(f"with has_aux {name_of(function)} gives a pair, the "
                                f"result and what comes with it, not {out!r}")
            out, aux = out
        leaves, shape = arrays_of(out)
        more, its = arrays_of(aux)
        return leaves + more, (shape, len(leaves), its)
    return Recorded(flat, specs)


def differentiable(leaves):
    return tuple(i for i, x in enumerate(leaves) if has_derivative(x))


def spread(structure, values, places):
    """A tree of |structure| with values at places, None elsewhere."""
    leaves = [None] * structure.num_leaves
    for i, value in zip(places, values):
        leaves[i] = value
    return structure.unflatten(leaves)


def gathered(value, structure, leaves, places, what):
    """The arrays of a tree like |leaves|, those at |places| alone, where the others are
    None, or what JAX has for numbers without derivatives."""
    found, its = tree.flatten(value)
    if its == structure:
        for i, x in enumerate(found):
            if i not in places and getattr(getattr(x, "dtype", None), "names",
                                           None) != ("float0",):
                raise TypeError(f"leaf {i} of {what} is of {leaves[i].dtype}, which has "
                                "no derivative: give None for it")
        found = [found[i] for i in places]
    elif its != tree.structure(spread(structure, [0] * len(places), places)):
        raise TypeError(f"{what} stand together as {its}, and are to stand as "
                        f"{structure}, with None for what has no derivative")
    arrays = []
    for i, x in zip(places, found):
        like = leaves[i]
        y = x if isinstance(x, Array) else asarray(
            x, dtype=None if hasattr(x, "dtype") else like.dtype, device=like.device)
        if y.dtype != like.dtype:
            raise TypeError(f"leaf {i} of {what} is of {y.dtype}, and is to be of "
                            f"{like.dtype}")
        if y.shape != like.shape:
            raise ValueError(f"leaf {i} of {what} has the shape {y.shape}, and is to have "
                             f"{like.shape}")
        arrays.append(y)
    return arrays


def need_function(function, what):
    if not callable(function):
        raise TypeError(f"{what}() takes a function, not {function!r}")


# --- Arguments ---

def chosen(argnums, count, function, what):
    """argnums as places from the front."""
    places = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    if not all(isinstance(i, int) and not isinstance(i, bool) for i in places):
        raise TypeError(f"argnums of {what}() is {argnums!r}, not integers")
    found = []
    for i in places:
        if not -count <= i < count:
            raise ValueError(f"argnums of {what}() has {i}, and {name_of(function)} is "
                             f"called with {count} arguments by position")
        found.append(i % count)
    if len(set(found)) != len(found):
        raise ValueError(f"argnums of {what}() names an argument twice: {argnums!r}")
    return tuple(found)


def parted(function, argnums, args, kwargs, what):
    """The arguments of |argnums|, and function of them alone."""
    places = chosen(argnums, len(args), function, what)

    def of_chosen(*values):
        full = list(args)
        for i, value in zip(places, values):
            full[i] = value
        return function(*full, **kwargs)
    of_chosen.__qualname__ = name_of(function)
    return of_chosen, tuple(args[i] for i in places), places


def check_inputs(leaves, structure, places, function, what, holomorphic, forward=False):
    """Says which argument has a leaf without derivative. By reverse mode a float has one
    by complex numbers too."""
    for i, x in enumerate(leaves):
        kinds = "c" if holomorphic else "f" if forward else "fc"
        if x.dtype.kind in kinds:
            continue
        at = next(p for p, part in zip(places, structure.unflatten(
            list(range(len(leaves))))) if i in tree.leaves(part))
        if x.dtype.kind == "c":
            raise TypeError(f"{what}() by argument {at} of {name_of(function)}, which has "
                            f"{x.dtype}: say holomorphic=True, for functions that are")
        if holomorphic:
            raise TypeError(f"{what}() with holomorphic=True by argument {at} of "
                            f"{name_of(function)}, which has {x.dtype} and no complex "
                            "numbers")
        raise TypeError(f"{what}() by argument {at} of {name_of(function)}, which has "
                        f"{x.dtype}: only floats have derivatives; leave it out of "
                        "argnums, or make it a float")


# --- Gradients ---

def _check_loss(recorded, function, holomorphic):
    shape, count, _ = recorded.said
    y = recorded.results[0] if count == 1 else None
    if y is None or y.ndim or shape != tree.structure(0):
        text = f"{y.dtype}{list(y.shape)}" if y is not None and \
            shape == tree.structure(0) else str(shape)
        raise TypeError(f"{name_of(function)} gives {text}: gradients are of functions "
                        "that give one number; jacrev() is for others")
    if not has_derivative(y) or (y.dtype.kind == "c") != holomorphic:
        raise TypeError(f"{name_of(function)} gives {y.dtype}: gradients are of functions "
                        f"that give a {'complex number' if holomorphic else 'float'}" +
                        ("; say holomorphic=True, for functions that are"
                         if y.dtype.kind == "c" else ""))
    return y


def _need_trips(max_trips, what):
    if not isinstance(max_trips, int) or max_trips < 0:
        raise TypeError(f"max_trips of {what}() is {max_trips!r}, not a number of turns")


def _value_and_grad(function, argnums, has_aux, holomorphic, max_trips, what):
    need_function(function, what)
    _need_trips(max_trips, what)

    @functools.wraps(function)
    def gradient(*args, **kwargs):
        inner, values, places = parted(function, argnums, args, kwargs, what)
        leaves, structure = arrays_of(values)
        check_inputs(leaves, structure, places, function, what, holomorphic)
        recorded = record(inner, structure, leaves, has_aux)
        y = _check_loss(recorded, function, holomorphic)
        aux = recorded.said[2]
        if leaves:
            module = c.vjp(recorded.module, tuple(range(len(leaves))), (0,), max_trips)
            out = recorded.run(module, leaves, recorded.hidden,
                               (c.full((), 1, y.dtype, y.device),))
        else:
            out = recorded.run(recorded.module, leaves, recorded.hidden)
        n = len(recorded.results)
        value, grads = out[0], structure.unflatten(out[n:])
        if isinstance(argnums, int):
            grads = grads[0]
        return ((value, aux.unflatten(out[1:n])) if has_aux else value), grads
    return gradient


def value_and_grad(fun, argnums=0, has_aux=False, holomorphic=False, *, max_trips=0):
    """A function that gives what fun gives, and its gradient.

    fun: gives one float of rank 0, or with has_aux a pair of that and a tree. argnums:
    which arguments, by position, trees of floats, the gradient is by: one, or several,
    which give a tuple; a gradient has its argument's structure, shapes and dtypes.
    holomorphic: numbers are complex, and fun has a complex derivative. Without it, fun
    of complex numbers gives a float, and its gradient at x + iy is df/dx - i df/dy, as
    JAX has it: a step of descent is against its conjugate. max_trips: a
    bound of the turns of loops whose turns are not known, which have no reverse mode
    without; one that would go on has NaN. The function is one of jit(): fun is traced
    once for each kind of arguments.
    Raises TypeError for arguments or results without derivative, ValueError for an
    argument that there is not, NotImplementedError for an op that has no derivative.

    >>> f = pt.value_and_grad(lambda w, x: pt.sum((w * x) ** 2))
    >>> value, grad = f(pt.asarray([1.0, 2.0]), pt.asarray([3.0, 1.0]))
    >>> value.tolist(), grad.tolist()
    (13.0, [18.0, 4.0])
    """
    return of_any(_value_and_grad(fun, argnums, has_aux, holomorphic, max_trips,
                                  "value_and_grad"))


def grad(fun, argnums=0, has_aux=False, holomorphic=False, *, max_trips=0):
    """A function that gives the gradient of fun.

    fun, argnums, has_aux, holomorphic, max_trips: as of value_and_grad(). With has_aux
    the function gives the pair of the gradient and aux.
    Raises as value_and_grad().

    >>> pt.grad(lambda x: pt.sum(x ** 3))(pt.asarray([1.0, 2.0])).tolist()
    [3.0, 12.0]
    >>> pt.grad(pt.grad(lambda x: x ** 3))(2.0).tolist()
    12.0
    """
    both = _value_and_grad(fun, argnums, has_aux, holomorphic, max_trips, "grad")

    @functools.wraps(fun)
    def gradient(*args, **kwargs):
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads
    return of_any(gradient)


# --- Forward and reverse mode ---

def jvp(fun, primals, tangents, has_aux=False):
    """What fun gives for primals, and its derivative in the direction of tangents; with
    has_aux what comes with it too.

    fun: takes and gives trees of arrays. primals, tangents: tuples of one structure,
    shapes and dtypes; None is the tangent of an integer or a bool.
    Raises TypeError for another structure or dtype, ValueError for another shape,
    NotImplementedError for an op that has no derivative.

    >>> y, t = pt.jvp(lambda x: x * x, (3.0,), (1.0,))
    >>> y.tolist(), t.tolist()
    (9.0, 6.0)
    """
    need_function(fun, "jvp")
    for value, what in ((primals, "primals"), (tangents, "tangents")):
        if not isinstance(value, (tuple, list)):
            raise TypeError(f"{what} of jvp() is {value!r}, not a tuple of arguments")
    leaves, structure = arrays_of(tuple(primals))
    places = differentiable(leaves)
    given = gathered(tuple(tangents), structure, leaves, places, "the tangents of jvp()")
    recorded = record(fun, structure, leaves, has_aux)
    shape, count, aux = recorded.said
    smooth = differentiable(recorded.results[:count])
    n = len(recorded.results)
    if places and smooth:
        out = recorded.run(c.jvp(recorded.module, places, smooth), leaves,
                           recorded.hidden, given)
    else:
        out = recorded.run(recorded.module, leaves, recorded.hidden)
        out = (*out, *(_zeros(recorded.results[i]) for i in smooth))
    both = shape.unflatten(out[:count]), spread(shape, out[n:], smooth)
    return (*both, aux.unflatten(out[count:n])) if has_aux else both


def _zeros(x):
    return c.full(x.shape, 0, x.dtype, x.device)


class _Split:
    """A function at a point: |out|, |aux|, and the linear function that is left, a
    module of |residuals| and tangents."""

    def __init__(self, function, leaves, structure, has_aux, back, max_trips=0):
        recorded = record(function, structure, leaves, has_aux)
        self.leaves, self.places = leaves, differentiable(leaves)
        self.shape, count, aux = recorded.said
        self.results = recorded.results[:count]
        self.smooth = differentiable(self.results)
        n = len(recorded.results)
        self.module = None
        first = recorded.module
        if self.places and self.smooth:
            split = c.linearize_back if back else c.linearize
            first, self.module = split(first, self.places, self.smooth, max_trips)
        out = recorded.run(first, leaves, recorded.hidden)
        self.out = self.shape.unflatten(out[:count])
        self.aux = aux.unflatten(out[count:n])
        self.residuals = out[n:]

    def transposed(self):
        """The module of residuals and cotangents of results."""
        first = len(self.residuals)
        return c.transpose_linear(
            self.module, tuple(range(first, first + len(self.places))),
            tuple(range(len(self.smooth))))


def linearize(fun, *primals, has_aux=False):
    """What fun gives for primals, and the function that is its derivative there: of
    tangents, a tree like primals, to those of the result. What depends on primals alone
    is computed once.

    fun: takes and gives trees of arrays. None stands for the tangent of an integer or a
    bool. With has_aux fun gives a pair, and what comes with the result is given third.
    Raises TypeError and ValueError where tangents are not like primals,
    NotImplementedError for an op that has no derivative.

    >>> y, f = pt.linearize(pt.sin, pt.asarray(0.0))
    >>> y.tolist(), f(2.0).tolist()
    (0.0, 2.0)
    """
    need_function(fun, "linearize")
    leaves, structure = arrays_of(primals)
    at = _Split(fun, leaves, structure, has_aux, False)

    def linear(*tangents):
        given = gathered(tangents, structure, at.leaves, at.places,
                         "the tangents of a function of linearize()")
        out = c.inline(at.module, (*at.residuals, *given)) if at.module else \
            [_zeros(at.results[i]) for i in at.smooth]
        return spread(at.shape, out, at.smooth)
    return (at.out, linear, at.aux) if has_aux else (at.out, linear)


def vjp(fun, *primals, has_aux=False, max_trips=0):
    """What fun gives for primals, and the function of cotangents of that, a tree like
    it, to a tuple of those of primals.

    fun: takes and gives trees of arrays. None stands for the cotangent of an integer or
    a bool. With has_aux fun gives a pair, and what comes with the result is given third.
    max_trips: as of value_and_grad().
    Raises TypeError and ValueError where cotangents are not like the result,
    NotImplementedError for an op that has no derivative.

    >>> y, f = pt.vjp(lambda a, b: a * b, 2.0, 5.0)
    >>> y.tolist(), [x.tolist() for x in f(1.0)]
    (10.0, [5.0, 2.0])
    """
    need_function(fun, "vjp")
    _need_trips(max_trips, "vjp")
    leaves, structure = arrays_of(primals)
    at = _Split(fun, leaves, structure, has_aux, True, max_trips)
    back = at.transposed() if at.module else None

    def pullback(cotangents):
        given = gathered(cotangents, at.shape, at.results, at.smooth,
                         "the cotangents of a function of vjp()")
        out = c.inline(back, (*at.residuals, *given)) if back else \
            [_zeros(at.leaves[i]) for i in at.places]
        return spread(structure, out, at.places)
    return (at.out, pullback, at.aux) if has_aux else (at.out, pullback)


# --- Jacobians ---

def _basis(leaves):
    """For arrays of n elements together, n rows: row k is 1 at element k of them."""
    n = sum(x.size for x in leaves)
    first, rows = 0, []
    for x in leaves:
        flat = c.equal(_count((n, x.size), 0, x.device),
                       c.add(_count((n, x.size), 1, x.device), first))
        rows.append(reshape_to(c.cast(flat, x.dtype), (n, *x.shape)))
        first += x.size
    return n, rows


def _count(shape, axis, device):
    from ._core import iota
    return iota(shape, axis, c.int64, device)


def _columns(block, leaves):
    """block has a first axis over the elements of leaves together: a block for each,
    with its axes in front."""
    from ._core import slice_axis
    first, parts = 0, []
    for x in leaves:
        part = slice_axis(block, 0, first, first + x.size)
        parts.append(reshape_to(part, (*x.shape, *block.shape[1:])))
        first += x.size
    return parts


def _jacobian(fun, argnums, has_aux, holomorphic, forward, what, max_trips=0):
    need_function(fun, what)
    _need_trips(max_trips, what)

    @functools.wraps(fun)
    def jacobian(*args, **kwargs):
        inner, values, places = parted(fun, argnums, args, kwargs, what)
        leaves, structure = arrays_of(values)
        check_inputs(leaves, structure, places, fun, what, holomorphic, forward)
        at = _Split(inner, leaves, structure, has_aux, not forward, max_trips)
        for y in at.results:
            if not has_derivative(y) or (y.dtype.kind == "c") != holomorphic:
                kind = "complex numbers" if holomorphic else "floats"
                raise TypeError(f"{name_of(fun)} gives {y.dtype}, and {what}() is of "
                                f"functions that give {kind}")
        rows = (_by_columns if forward else _by_rows)(at)
        rows = [structure.unflatten(row) for row in rows]
        rows = [row[0] for row in rows] if isinstance(argnums, int) else rows
        out = at.shape.unflatten(rows)
        return (out, at.aux) if has_aux else out
    return of_any(jacobian)


def _by_columns(at):
    """By the tangents of each element of the arguments."""
    if not at.module:
        return [[c.full((*y.shape, *x.shape), 0, y.dtype, y.device) for x in at.leaves]
                for y in at.results]
    n, basis = _basis(at.leaves)
    batched = c.vmap(at.module, n, (-1,) * len(at.residuals) + (0,) * len(basis),
                     (0,) * len(at.results))
    out = c.inline(batched, (*at.residuals, *basis))
    rows = []
    for y, block in zip(at.results, out):
        rows.append([moveaxis_to(part, y.ndim) for part in _columns(block, at.leaves)])
    return rows


def _by_rows(at):
    """By the cotangents of each element of the results."""
    if not at.module:
        return _by_columns(at)
    n, basis = _basis(at.results)
    batched = c.vmap(at.transposed(), n, (-1,) * len(at.residuals) + (0,) * len(basis),
                     (0,) * len(at.leaves))
    out = c.inline(batched, (*at.residuals, *basis))
    columns = [_columns(block, at.results) for block in out]
    return [list(row) for row in zip(*columns)]


def jacfwd(fun, argnums=0, has_aux=False, holomorphic=False):
    """A function that gives the derivative of each element of what fun gives by each
    element of its argument, by forward mode: for functions of few numbers.

    fun: takes and gives trees of floats. argnums, has_aux, holomorphic: as of grad().
    The result is a tree like fun's, whose leaves are trees like the argument, of shape
    result.shape + argument.shape.
    Raises as grad(), but fun may give any floats.

    >>> pt.jacfwd(lambda x: x * x)(pt.asarray([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, True, "jacfwd")


def jacrev(fun, argnums=0, has_aux=False, holomorphic=False, *, max_trips=0):
    """jacfwd() by reverse mode: for functions that give few numbers.

    fun, argnums, has_aux, holomorphic: as of jacfwd(). max_trips: as of grad().
    Raises as jacfwd().

    >>> pt.jacrev(lambda x: pt.sum(x * x))(pt.asarray([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, False, "jacrev", max_trips)


def hessian(fun, argnums=0, has_aux=False, holomorphic=False):
    """A function that gives the second derivatives of fun: jacfwd() of jacrev().

    fun, argnums, has_aux, holomorphic: as of jacfwd().
    Raises as jacfwd().

    >>> pt.hessian(lambda x: x[0] ** 2 * x[1])(pt.asarray([1.0, 2.0])).tolist()
    [[4.0, 2.0], [2.0, 0.0]]
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux,
                  holomorphic)
