# SPDX-License-Identifier: Apache-2.0
"""Control flow as a part of the graph, with jax.lax's signatures."""

import operator

from . import _pestle as c
from . import tree
from ._core import Array, apply, asarray, iota


def _arrays(value, device=None):
    """The leaves of a tree as arrays, and its structure: numbers lie where the first
    array does, or on device."""
    leaves, structure = tree.flatten(value)
    device = next((x.device for x in leaves if isinstance(x, Array)), device)
    return [x if isinstance(x, Array) else asarray(x, device=device)
            for x in leaves], structure


class _Body:
    """A function of trees, recorded once. |hidden| is what it reads from around it,
    which becomes operands of the op that has the body."""

    def __init__(self, function, specs, structure):
        def flat(args):
            leaves, self.structure = _arrays(function(*structure.unflatten(args)))
            return tuple(leaves)
        device = specs[0].device if specs else None
        _, self.hidden, self.results, self._capture = c.capture(flat, tuple(specs),
                                                                device)

    def module(self, hidden=(), more=()):
        """The body with hidden as further arguments and more as further results."""
        return c.rebind(self._capture, tuple(hidden),
                        self.results + tuple(more))[0]


def _hidden_of(*bodies):
    found = {x._id: x for body in bodies for x in body.hidden}
    return tuple(found.values())


def _check(results, specs, what):
    for i, (a, b) in enumerate(zip(results, specs)):
        if a.dtype != b.dtype or a.shape != b.shape:
            raise TypeError(f"{what}: leaf {i} is {b.dtype}{list(b.shape)}, and becomes "
                            f"{a.dtype}{list(a.shape)}")


def while_loop(cond_fun, body_fun, init_val):
    """val = init_val; while cond_fun(val): val = body_fun(val). dtypes and shapes of
    val stay what they are.

    init_val: a tree, whose dtypes and shapes body_fun keeps; cond_fun gives a bool of
    rank 0.
    Raises TypeError where they do not.

    >>> pt.while_loop(lambda x: x < 100, lambda x: x * 2, pt.asarray(3)).tolist()
    192
    """
    init, structure = _arrays(init_val)
    single = tree.structure((init_val,))
    cond, body = _Body(cond_fun, init, single), _Body(body_fun, init, single)
    if body.structure != structure:
        raise TypeError(f"the body makes {structure} into {body.structure}")
    _check(body.results, init, "the body of a loop")
    if len(cond.results) != 1 or cond.results[0].dtype != c.bool or cond.results[0].ndim:
        raise TypeError("the condition of a loop is a bool of rank 0")
    hidden = _hidden_of(cond, body)
    out = apply("while", init + list(hidden), None, None, None,
                (cond.module(hidden), body.module(hidden, hidden)))
    return structure.unflatten(out[:len(init)])


def fori_loop(lower, upper, body_fun, init_val):
    """val = init_val; for i from lower to upper - 1: val = body_fun(i, val).

    lower, upper: integers or arrays of rank 0; init_val: a tree, whose dtypes and
    shapes body_fun keeps.
    Raises TypeError where it does not.

    >>> pt.fori_loop(0, 4, lambda i, x: x + i, pt.asarray(0)).tolist()
    6
    """
    device = _arrays(init_val)[0][0].device if tree.leaves(init_val) else None
    if not isinstance(lower, Array) and not isinstance(upper, Array) and device:
        # Turns that are known have a reverse mode.
        first, last = operator.index(lower), operator.index(upper)
        if last <= first:
            return init_val
        turns = c.add(iota((last - first,), 0, c.int64, device), first)
        return _scan(lambda val, i: (body_fun(i, val), None), init_val, turns,
                     "the body of a loop")[0]
    first, last = (x if isinstance(x, Array) else asarray(x, dtype=c.int64, device=device)
                   for x in (lower, upper))

    def body(state):
        i, end, val = state
        return c.add(i, 1), end, body_fun(i, val)
    return while_loop(lambda state: c.less(state[0], state[1]), body,
                      (first, last, init_val))[2]


def _same_branches(bodies):
    first = bodies[0]
    for i, body in enumerate(bodies[1:], 1):
        if body.structure != first.structure:
            raise TypeError(f"branch {i} gives {body.structure}, branch 0 "
                            f"{first.structure}")
        _check(body.results, first.results, f"branch {i}")


def cond(pred, true_fun, false_fun, *operands):
    """true_fun(*operands) if pred else false_fun(*operands); one of them runs.

    pred: a bool of rank 0, or a number; operands: trees; both functions give trees of
    one structure, dtypes and shapes.
    Raises TypeError where they do not.

    >>> x = pt.asarray(3)
    >>> pt.cond(x > 2, lambda x: x + 1, lambda x: x - 1, x).tolist()
    4
    """
    pred = _arrays((pred, operands))[0][0]
    if pred.ndim:
        raise TypeError("the condition is a number or an array of rank 0")
    index = c.cast(c.logical_not(pred), c.int32)
    return switch(index, (true_fun, false_fun), *operands)


def switch(index, branches, *operands):
    """What the branch of number index, clamped, gives for operands; it alone runs.

    index: an integer of rank 0; branches: functions that give trees of one structure,
    dtypes and shapes.
    Raises TypeError where they do not.

    >>> pt.switch(1, (lambda x: x, lambda x: -x), pt.asarray(3)).tolist()
    -3
    """
    index = _arrays((index, operands))[0][0]
    index = c.minimum(c.maximum(c.cast(index, c.int32), 0), len(branches) - 1)
    leaves, structure = _arrays(operands, index.device)
    bodies = [_Body(f, leaves, structure) for f in branches]
    _same_branches(bodies)
    if not bodies[0].results:
        return bodies[0].structure.unflatten([])
    hidden = _hidden_of(*bodies)
    out = c.branch(tuple(b.module(hidden) for b in bodies),
                   (index, *leaves, *hidden))
    return bodies[0].structure.unflatten(out)


def scan(f, init, xs, length=None, reverse=False):
    """carry = init; for x in xs: carry, y = f(carry, x). Gives carry, and all y
    stacked. xs is a tree of arrays with one first axis, or None with a length.

    f: takes carry and a part of xs, gives a carry of the same dtypes and shapes, and a
    tree.
    Raises TypeError where it does not, ValueError for other first axes or no length.

    >>> total, products = pt.scan(lambda c, x: (c + x, c * x), 0, pt.asarray([1, 2, 3]))
    >>> total.tolist(), products.tolist()
    (6, [0, 2, 9])
    """
    return _scan(f, init, xs, "the carry of a scan", length, reverse)


def _scan(f, init, xs, what, length=None, reverse=False):
    """scan(); what names the carry in errors."""
    leaves, structure = _arrays(xs)
    if length is None:
        if not leaves:
            raise ValueError("scan() needs xs or a length")
        length = leaves[0].shape[0]
    for x in leaves:
        if not x.ndim or x.shape[0] != length:
            raise ValueError(f"xs of shape {x.shape} do not have {length} turns")
    device = leaves[0].device if leaves else None
    carry, carry_structure = _arrays(init, device)
    device = carry[0].device if carry else device

    if not length:
        return _empty(f, init, structure, leaves)
    specs = [*carry, *(c.full(x.shape[1:], 0, x.dtype, x.device) for x in leaves)]
    pair = tree.structure((carry_structure.unflatten(carry), structure.unflatten(leaves)))
    n = len(carry)

    def turn(values, x):
        new, y = f(values, x)
        shapes.append(tree.structure(y))
        if tree.structure(new) != carry_structure:
            raise TypeError(f"{what}: {carry_structure} becomes {tree.structure(new)}")
        return new, y
    shapes = []
    if not specs:
        raise ValueError("scan() needs a carry or xs")
    body = _Body(turn, specs, pair)
    _check(body.results[:n], carry, what)
    out = apply("scan", (*carry, *leaves, *body.hidden),
                {"length": length, "reverse": bool(reverse), "carry_count": n,
                 "xs_count": len(leaves)}, None, None, (body.module(body.hidden),))
    return carry_structure.unflatten(out[:n]), shapes[-1].unflatten(out[n:])


def _empty(f, init, structure, leaves):
    """A scan of no turns: init, and ys of no rows."""
    carry, its = _arrays(init, leaves[0].device if leaves else None)
    specs = [*carry, *(c.full(x.shape[1:], 0, x.dtype, x.device) for x in leaves)]
    if not specs:
        return init, None
    n = len(carry)

    def turn(*values):
        return f(its.unflatten(values[:n]), structure.unflatten(values[n:]))
    body = _Body(turn, specs, tree.structure(tuple(specs)))
    ys = [c.full((0, *y.shape), 0, y.dtype, y.device) for y in body.results]
    return init, body.structure.unflatten(ys)[1]


def map(f, xs):
    """f of each x in xs, stacked: one at a time.

    xs: a tree of arrays with one first axis.
    Raises ValueError for other first axes.

    >>> pt.map(lambda x: x * x, pt.asarray([1, 2, 3])).tolist()
    [1, 4, 9]
    """
    return scan(lambda _, x: ((), f(x)), (), xs)[1]
