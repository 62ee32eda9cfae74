# SPDX-License-Identifier: Apache-2.0
"""Functions of trees as ops of one's own, with rules: what _forms.py is made of.

An op is of flat arrays: those of the arguments, then those that the function reads from
around it. Batched it is an op again, whose body and derivatives are batched: so its rules
hold in any order of transforms."""

import functools
import inspect
import re
import warnings

from . import _pestle as c
from . import tree
from ._batch import batched, per_leaf
from ._core import Array, asarray
from ._custom import Op
from ._derive import (Recorded, arrays_of, differentiable, has_derivative, name_of,
                      need_function)

_INLINE = 1
_made = {}  # ops by what they do; the library keeps each for good


def zeros(x):
    return c.full(x.shape, 0, x.dtype, x.device)


class Rule:
    """What an op of flat arrays does: body(*operands) gives results; pull(operands,
    cotangents, needed), push(operands, tangents, needed) and batch(size, axes,
    operands), each of which may be None, what their transforms give. Where there is pull
    alone, its transpose is push, unless |by_body|: forward mode is that of the body."""

    def __init__(self, name, body, pull=None, push=None, batch=None, by_body=False):
        self.name, self.body, self.pull, self.push = name, body, pull, push
        self.batch, self.by_body = batch, by_body
        if pull is not None and push is None and not by_body:
            push = self._transposed
        self._batched = {}
        op = self._op = Op(lambda *arrays: tuple(body(*arrays)), name, 1, _INLINE, 0,
                           False, None)
        if pull is not None:
            op.rules["vjp"] = lambda ctx, *cts: tuple(pull(
                ctx.operands, [zeros(y) if t is None and has_derivative(y) else t
                               for t, y in zip(cts, ctx.results)], ctx.needed))
        if push is not None:
            op.rules["jvp"] = lambda ctx, *tangents: tuple(push(
                ctx.operands, [zeros(x) if t is None and has_derivative(x) else t
                               for t, x in zip(tangents, ctx.operands)],
                [t is not None for t in tangents]))
        op.rules["vmap"] = lambda ctx, size, axes: self._vmap(size, axes, ctx.operands)
        op._register()

    def __call__(self, arrays):
        return c.custom(self._op.name, tuple(arrays), ())

    def _transposed(self, operands, tangents, needed):
        """push of pull, which is linear in cotangents."""
        results = Recorded(lambda *xs: (self.body(*xs), None), operands).results
        smooth = [has_derivative(y) for y in results]
        n = len(operands)
        back = Recorded(lambda *xs: some(self.pull(
            xs[:n], all_of((xs[n:], smooth)), needed)),
            (*operands, *(zeros(y) for y, s in zip(results, smooth) if s)))
        moved = [t for t, w in zip(tangents, back.said) if w]
        count = sum(smooth)
        if not moved or not count:
            return [zeros(y) if s else None for y, s in zip(results, smooth)]
        module = c.transpose_linear(back.module, tuple(range(n, n + count)),
                                    tuple(range(len(moved))))
        return all_of((back.run(module, operands, back.hidden, moved), smooth))

    def _vmap(self, size, axes, operands):
        if self.batch is not None:
            return self.batch(size, axes, operands)
        key = size, tuple(axes)
        if key not in self._batched:
            self._batched[key] = self._of_all(size, axes)
        out = self._batched[key](operands)
        return out, (0,) * len(out)

    def _of_all(self, size, axes):
        """The rule of all elements at once; all results have the axis in front."""
        def each(function, arrays, axes):
            return batched(function, arrays, axes, size,
                           lambda said, results: [0] * len(results))

        def body(*operands):
            return each(lambda *xs: (self.body(*xs), None), operands, axes)[0]

        def derived(rule, values, of_others, needed):
            """rule of operands and others, some of which are None."""
            others, which = some(of_others)

            def one(*arrays):
                return some(rule(arrays[:len(values)],
                                 all_of((arrays[len(values):], which)), needed))
            return one, others

        def pull(operands, cts, needed):
            one, others = derived(self.pull, operands, cts, needed)
            found = each(one, (*operands, *others), [*axes, *[0] * len(others)])
            return [t if t is None or a is not None else _sum_first(t)
                    for t, a in zip(all_of(found), axes)]

        def push(operands, tangents, needed):
            one, others = derived(self.push, operands, tangents, needed)
            kept = [a for a, t in zip(axes, tangents) if t is not None]
            return all_of(each(one, (*operands, *others), [*axes, *kept]))
        return Rule(self.name, body, self.pull and pull, self.push and push,
                    by_body=self.by_body)


def _sum_first(x):
    from ._reduce import sum as total
    return total(x, axis=0, dtype=x.dtype)


def op_name(function):
    word = re.sub(r"\W", "_", getattr(function, "__name__", "function")).strip("_")
    return "user." + (word or "function")


# --- Functions of trees as ops ---

class Part:
    """What a function of flat arrays does, recorded: an op's rule gives it in other
    places. What it fails with is raised where it is needed."""

    def __init__(self, function, specs):
        self.hidden, self.places, self.recorded, self.error = (), (), None, None
        try:
            self.recorded = Recorded(function, specs)
            self.hidden = self.recorded.hidden
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    @property
    def results(self):
        return self.recorded.results

    def key(self):
        return self.places, self.recorded and self.recorded.module.serialize()

    def __call__(self, arrays, hidden):
        """Its results for arrays, and what it said, where |hidden| are all that the op
        reads from around it."""
        if self.error is not None:
            raise self.error
        return self.recorded.run(self.recorded.module, arrays,
                                 [hidden[i] for i in self.places]), self.recorded.said


class Use:
    """One way to call a function: its arguments that are no arrays, the structure of the
    others, and what it and its rules do, parts by name."""

    def __init__(self, fixed, structure, leaves):
        self.fixed, self.structure, self.count = fixed, structure, len(leaves)
        self.types = tuple((x.dtype, x.shape) for x in leaves)
        self.parts, self.hidden = {}, ()

    def args(self, arrays, fixed=True):
        """The arguments of flat arrays: all in their places, or the others alone."""
        values = list(self.structure.unflatten(list(arrays[:self.count])))
        if fixed:
            for i, value in sorted(self.fixed.items()):
                values.insert(i, value)
        return values

    def close(self):
        """Settles what the parts read from around them: operands of the op."""
        found = {}
        for part in self.parts.values():
            for x in part.hidden:
                found.setdefault(x._id, (len(found), x))
            part.places = tuple(found[x._id][0] for x in part.hidden)
        self.hidden = tuple(x for _, x in found.values())

    def part(self, name, operands, *more):
        """A part's results, and what it said, for operands of the op, or in their place
        |more|."""
        arrays = more[0] if more else operands[:self.count]
        return self.parts[name](arrays, operands[self.count:])

    def key(self):
        """What the op does, or None where a part failed: equal where that is."""
        if any(part.error is not None for part in self.parts.values()):
            return None
        return (self.types, self.structure, self.shape,
                tuple((x.dtype, x.shape) for x in self.hidden),
                tuple((name, part.recorded.said, *part.key())
                      for name, part in self.parts.items()))


class Custom:
    """What custom_vjp() and its kin have in common."""

    def __init__(self, fun, nondiff_argnums=()):
        need_function(fun, type(self).__name__)
        functools.update_wrapper(self, fun)
        self.fun = fun
        places = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else \
            tuple(nondiff_argnums)
        if not all(isinstance(i, int) and i >= 0 for i in places):
            raise ValueError(f"nondiff_argnums of {type(self).__name__}() is "
                             f"{nondiff_argnums!r}: places from the front are meant")
        self.nondiff_argnums = tuple(sorted(places))
        try:
            self._signature = inspect.signature(fun)
        except (TypeError, ValueError):
            self._signature = None

    def __repr__(self):
        return f"<{type(self).__name__} of {name_of(self.fun)}>"

    def __get__(self, object, type=None):
        return self if object is None else functools.partial(self, object)

    def _by_position(self, args, kwargs):
        if self._signature is None and not kwargs:
            return list(args)
        bound = self._signature.bind(*args, **kwargs)
        given = bound.kwargs  # what is by keyword alone and not said has its default
        bound.apply_defaults()
        if given:
            raise TypeError(f"{name_of(self.fun)} has arguments by keyword alone, which "
                            f"{type(self).__name__}() does not take")
        return list(bound.args)

    def __call__(self, *args, **kwargs):
        args = self._by_position(args, kwargs)
        fixed = {i: args[i] for i in self.nondiff_argnums if i < len(args)}
        for i, value in fixed.items():
            if isinstance(value, Array) and value.state == "traced":
                raise TypeError(f"argument {i} of {name_of(self.fun)} is traced, and its "
                                "derivative is none by nondiff_argnums: make it an "
                                "argument that has one, of which the rule gives zero")
        leaves, structure = arrays_of(tuple(x for i, x in enumerate(args)
                                            if i not in fixed))
        if not leaves:
            return self.fun(*args)
        use = Use(fixed, structure, leaves)
        body = use.parts["body"] = Part(lambda *arrays: arrays_of(self.fun(
            *use.args(arrays))), leaves)
        if body.error is not None:
            raise body.error
        use.shape, use.results = body.recorded.said, body.results
        self._record(use, leaves)
        use.close()
        return use.shape.unflatten(self._rule(use)((*leaves, *use.hidden)))

    def _rule(self, use):
        """The op of such a use: one for all functions that do the same."""
        key = use.key()
        if key is not None:
            key = type(self).__name__, op_name(self.fun), *self._functions(), key
        rule = _made.get(key)
        if rule is None:
            rule = self._make(use, lambda *arrays: use.part("body", arrays)[0])
            if key is not None:
                _made[key] = rule
        return rule

    def _functions(self):
        """Those that a transform calls, since what they do is not recorded."""
        return ()

    def _record(self, use, leaves):
        """Records the rules: further parts."""

    def _warn(self, use, needed):
        """Says which variable has a derivative that the rule knows nothing of."""
        for x, there in zip(use.hidden, needed[use.count:]):
            if not there or not has_derivative(x):
                continue
            warnings.warn(f"{name_of(self.fun)} reads {variable(self.fun, x)} from "
                          "around it, which gets no derivative by its rule: make it an "
                          "argument, or read stop_gradient() of it", stacklevel=2)


def variable(function, array):
    """The name of a variable of a function's surroundings that is |array|."""
    code = getattr(function, "__code__", None)
    names = dict(zip(getattr(code, "co_freevars", ()),
                     (_cell(x) for x in getattr(function, "__closure__", None) or ())))
    names.update((n, function.__globals__.get(n)) for n in getattr(code, "co_names", ())
                 if hasattr(function, "__globals__"))
    for name, value in names.items():
        if any(isinstance(x, Array) and x._id == array._id for x in tree.leaves(value)):
            return f"'{name}'"
    return f"an array of {array.dtype}{list(array.shape)}"


def _cell(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return None


def some(values):
    """Those of some values that there are, and which those are: what a part gives."""
    return [v for v in values if v is not None], tuple(v is not None for v in values)


def all_of(found):
    """The values of which some() gave part of, None in the place of others."""
    values, which = found
    rest = iter(values)
    return [next(rest) if w else None for w in which]


def flat_cotangents(given, use, values, what):
    """Cotangents, or None, for each leaf of the arguments |values|."""
    if not isinstance(given, (tuple, list)) or len(given) != len(values):
        raise TypeError(f"{what} gives {given!r}: a tuple with a cotangent, or None for "
                        f"zero, for each of {len(values)} arguments is meant")
    flat = []
    for i, (ct, value) in enumerate(zip(given, values)):
        leaves = tree.leaves(value)
        flat += _of_argument(ct, value, leaves, f"{what}, cotangent {i}")
    return flat


def _of_argument(ct, value, leaves, what):
    if ct is None:
        return [None] * len(leaves)
    places = differentiable(leaves)
    found, its = tree.flatten(ct)
    if its == tree.structure(value):
        found = {i: x for i, x in enumerate(found) if i in places}
        full = [found.get(i) for i in range(len(leaves))]
    else:
        full = per_leaf(ct, value, what, lambda x: x is None or _is_leaf(x))
    return [None if t is None or i not in places else _like(t, leaves[i], what)
            for i, t in enumerate(full)]


def _is_leaf(x):
    return len(tree.leaves(x)) == 1 and tree.structure(x) == tree.structure(0)


def _like(t, x, what):
    y = t if isinstance(t, Array) else asarray(t, dtype=None if hasattr(t, "dtype") else
                                               x.dtype, device=x.device)
    if y.shape != x.shape:
        raise ValueError(f"{what} has the shape {y.shape}, its argument {x.shape}")
    return y if y.dtype == x.dtype else c.cast(y, x.dtype)
