# SPDX-License-Identifier: Apache-2.0
"""Functions with derivatives or batching of their own: custom_vjp, custom_jvp,
custom_vmap, custom_function, checkpoint, checkpoint_name."""

from . import _pestle as c
from . import tree
from ._batch import per_leaf
from ._derive import (Recorded, arrays_of, differentiable, gathered, has_derivative,
                      name_of, need_function, spread)
from ._rules import (Custom, Part, Rule, all_of, flat_cotangents, op_name, some, variable,
                     zeros)


class custom_vjp(Custom):
    """A function whose derivative in reverse mode is given.

    fun: takes and gives trees of arrays. f.defvjp(fwd, bwd): fwd takes what fun takes
    and gives (result, residuals); bwd takes residuals and the result's cotangents and
    gives a tuple of cotangents for the arguments, None for zero. nondiff_argnums:
    arguments, by place, that are no arrays; bwd takes them first. Values are fun's,
    differentiated or not; forward mode is the transpose of bwd, which is to be linear in
    cotangents for that.
    Raises TypeError for a call before defvjp(), and rules that give something else.

    >>> @pt.custom_vjp
    ... def f(x):
    ...     return pt.log1p(pt.exp(x))
    >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct / (1 + pt.exp(-x)),))
    >>> pt.grad(f)(0.0).tolist()
    0.5
    """

    def __init__(self, fun, nondiff_argnums=()):
        super().__init__(fun, nondiff_argnums)
        self._fwd = self._bwd = None

    def defvjp(self, fwd, bwd):
        """Gives the derivative: fwd(*arguments) is (result, residuals), bwd(residuals,
        cotangents) the arguments' cotangents."""
        need_function(fwd, "defvjp")
        need_function(bwd, "defvjp")
        self._fwd, self._bwd = fwd, bwd

    def __call__(self, *args, **kwargs):
        if self._bwd is None:
            raise TypeError(f"{name_of(self.fun)} of custom_vjp() has no derivative yet: "
                            "call its defvjp()")
        return super().__call__(*args, **kwargs)

    def _forward(self, use, arrays):
        out = self._fwd(*use.args(arrays))
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(f"{name_of(self._fwd)} gives {out!r}: a pair of the result "
                            "and residuals is meant")
        leaves, shape = arrays_of(out[0])
        if shape != use.shape:
            raise TypeError(f"{name_of(self._fwd)} gives a result of {shape}, "
                            f"{name_of(self.fun)} of {use.shape}")
        for i, (y, like) in enumerate(zip(leaves, use.results)):
            if y.shape != like.shape or y.dtype != like.dtype:
                raise TypeError(
                    f"leaf {i} of the result that {name_of(self._fwd)} gives is "
                    f"{y.dtype}{list(y.shape)}, and {name_of(self.fun)}'s is "
                    f"{like.dtype}{list(like.shape)}")
        return arrays_of(out[1])

    def _backward(self, use, values, residuals, cts):
        ct = spread(use.shape, [t for t in cts if t is not None],
                    [i for i, t in enumerate(cts) if t is not None])
        out = self._bwd(*(use.fixed[i] for i in sorted(use.fixed)), residuals, ct)
        return flat_cotangents(out, use, values, name_of(self._bwd))

    def _record(self, use, leaves):
        forward = use.parts["forward"] = Part(
            lambda *arrays: self._forward(use, arrays), leaves)
        if forward.error is not None:
            return
        smooth, values = differentiable(use.results), use.args(leaves, False)
        n = len(forward.results)

        def back(*arrays):
            cts = [None] * len(use.results)
            for i, t in zip(smooth, arrays[n:]):
                cts[i] = t
            return some(self._backward(use, values, forward.recorded.said.unflatten(
                arrays[:n]), cts))
        use.parts["back"] = Part(back, [*map(zeros, forward.results),
                                        *(zeros(use.results[i]) for i in smooth)])

    def _make(self, use, body):
        def pull(operands, cts, needed):
            self._warn(use, needed)
            residuals, _ = use.part("forward", operands)
            given = (*residuals, *(t for t in cts if t is not None))
            return all_of(use.part("back", operands, given)) + [None] * len(use.hidden)
        return Rule(op_name(self.fun), body, pull)


class custom_jvp(Custom):
    """A function whose derivative in forward mode is given; reverse mode is its
    transpose.

    fun: takes and gives trees of arrays. f.defjvp(jvp): jvp takes the tuples of
    arguments and of their tangents, and gives the result and its tangent.
    f.defjvps(*rules): one rule an argument, of (tangent, result, *arguments), or None
    for zero, which are added. nondiff_argnums: arguments, by place, that are no arrays;
    jvp takes them first.
    Raises TypeError for a call before defjvp(), and rules that give something else.

    >>> @pt.custom_jvp
    ... def f(x):
    ...     return pt.sin(x)
    >>> f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 3))
    >>> pt.grad(f)(0.0).tolist(), pt.jvp(f, (0.0,), (2.0,))[1].tolist()
    (3.0, 6.0)
    """

    def __init__(self, fun, nondiff_argnums=()):
        super().__init__(fun, nondiff_argnums)
        self._jvp = None

    def defjvp(self, jvp):
        """Gives the derivative: jvp(arguments, tangents) is (result, tangent)."""
        need_function(jvp, "defjvp")
        self._jvp = jvp

    def defjvps(self, *rules):
        """The same by one rule an argument, of (tangent, result, *arguments)."""
        def jvp(*args):
            *fixed, primals, tangents = args
            full = list(primals)
            for i, value in zip(self.nondiff_argnums, fixed):
                full.insert(i, value)
            if len(rules) != len(primals):
                raise TypeError(f"defjvps() of {name_of(self.fun)} has {len(rules)} rules, "
                                f"and {len(primals)} arguments have derivatives: None "
                                "says that one's is zero")
            out = self(*full)
            total = None
            for rule, t in zip(rules, tangents):
                if rule is None or t is None:
                    continue
                part = rule(t, out, *full)
                total = part if total is None else tree.map(c.add, total, part)
            return out, tree.map(zeros, out) if total is None else total
        self.defjvp(jvp)

    def __call__(self, *args, **kwargs):
        if self._jvp is None:
            raise TypeError(f"{name_of(self.fun)} of custom_jvp() has no derivative yet: "
                            "call its defjvp()")
        return super().__call__(*args, **kwargs)

    def _push(self, use, arrays, tangents):
        values = tuple(use.args(arrays, False))
        moved = use.structure.unflatten(list(tangents))
        out = self._jvp(*(use.fixed[i] for i in sorted(use.fixed)), values, moved)
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(f"{name_of(self._jvp)} gives {out!r}: a pair of the result "
                            "and its tangent is meant")
        smooth = differentiable(use.results)
        given = gathered(out[1], use.shape, use.results, smooth,
                         f"the tangents that {name_of(self._jvp)} gives")
        full = [None] * len(use.results)
        for i, t in zip(smooth, given):
            full[i] = t
        return full

    def _record(self, use, leaves):
        smooth = differentiable(leaves)

        def run(*arrays):
            tangents = [None] * use.count
            for i, t in zip(smooth, arrays[use.count:]):
                tangents[i] = t
            return some(self._push(use, arrays, tangents))
        use.parts["jvp"] = Part(run, [*leaves, *(zeros(leaves[i]) for i in smooth)])

    def _make(self, use, body):
        def push(operands, tangents, needed):
            self._warn(use, needed)
            own = (t for t in tangents[:use.count] if t is not None)
            return all_of(use.part("jvp", operands, (*operands[:use.count], *own)))
        return Rule(op_name(self.fun), body, None, push)


class custom_vmap(Custom):
    """A function whose batching is given; its derivatives are those of fun, and of the
    rule where it was batched before.

    fun: takes and gives trees of arrays. f.def_vmap(rule): rule takes the extent, a
    list that says of each argument, a tree of bools, whether it is batched, and the
    arguments, which have the axis in front; it gives the result and the same of it.
    Raises TypeError for a call before def_vmap(), and a rule that gives something else.

    >>> @pt.custom_vmap
    ... def f(x):
    ...     return x * 2
    >>> @f.def_vmap
    ... def rule(size, batched, x):
    ...     return x * 2, True
    >>> pt.vmap(f)(pt.arange(3)).tolist()
    [0, 2, 4]
    """

    def __init__(self, fun):
        super().__init__(fun)
        self._batch = None

    def def_vmap(self, rule):
        """Gives the batching: rule(extent, batched, *arguments) is (result, batched)."""
        need_function(rule, "def_vmap")
        self._batch = rule
        return rule

    def __call__(self, *args, **kwargs):
        if self._batch is None:
            raise TypeError(f"{name_of(self.fun)} of custom_vmap() has no rule yet: call "
                            "its def_vmap()")
        return super().__call__(*args, **kwargs)

    def _record(self, use, leaves):
        # For what it reads from around it: what it does depends on what is batched.
        use.parts["vmap"] = Part(
            lambda *arrays: (self._batched(use, 1, [True] * use.count, arrays)[0], None),
            [c.full((1, *x.shape), 0, x.dtype, x.device) for x in leaves])

    def _functions(self):
        return (self._batch,)

    def _batched(self, use, size, which, arrays):
        values = use.args(arrays, False)
        out = self._batch(size, list(use.structure.unflatten(which)), *values)
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(f"{name_of(self._batch)} gives {out!r}: a pair of the result "
                            "and what of it is batched is meant")
        leaves, shape = arrays_of(out[0])
        if shape != use.shape:
            raise TypeError(f"{name_of(self._batch)} gives a result of {shape}, "
                            f"{name_of(self.fun)} of {use.shape}")
        has = per_leaf(out[1], out[0], f"what {name_of(self._batch)} says is batched",
                       lambda x: isinstance(x, bool))
        for i, (x, y, b) in enumerate(zip(leaves, use.results, has)):
            want = (size, *y.shape) if b else y.shape
            if x.shape != want or x.dtype != y.dtype:
                raise TypeError(f"leaf {i} that {name_of(self._batch)} gives is "
                                f"{x.dtype}{list(x.shape)}, and is to be "
                                f"{y.dtype}{list(want)}")
        return leaves, has

    def _make(self, use, body):
        def batch(size, axes, operands):
            which = [a is not None for a in axes[:use.count]]
            inner = Recorded(lambda *arrays: self._batched(use, size, which, arrays),
                             operands[:use.count])
            ids = {x._id: (y, a) for x, y, a in zip(
                use.hidden, operands[use.count:], axes[use.count:])}
            rest = []
            for x in inner.hidden:
                y, axis = ids.get(x._id, (x, None))
                if axis is not None:
                    raise TypeError(f"{name_of(self._batch)} reads "
                                    f"{variable(self.fun, x)} from around it, which is "
                                    "batched: make it an argument")
                rest.append(y)
            out = inner.run(inner.module, operands[:use.count], rest)
            return out, tuple(0 if b else None for b in inner.said)
        return Rule(op_name(self.fun), body, batch=batch)


class _Checkpoint(Custom):
    """A function whose backward half computes it again."""

    def _make(self, use, body):
        def pull(operands, cts, needed):
            smooth = differentiable(use.results)
            wanted = tuple(i for i, n in enumerate(needed)
                           if n and has_derivative(operands[i]))
            given = [cts[i] for i in smooth]
            if not given or not wanted:
                return [None] * len(operands)
            # The second computation waits for the cotangents, and is no other one's.
            held = c.barrier((*operands, *given))
            operands, given = held[:len(operands)], held[len(operands):]
            recorded = Recorded(lambda *arrays: (body(*arrays), None), operands)
            forward, linear = c.linearize_back(recorded.module, wanted, smooth)
            out = recorded.run(forward, operands, recorded.hidden)
            residuals = out[len(use.results):]
            n = len(residuals)
            back = c.transpose_linear(linear, tuple(range(n, n + len(wanted))),
                                      tuple(range(len(smooth))))
            found = dict(zip(wanted, c.inline(back, (*residuals, *given))))
            return [found.get(i) for i in range(len(operands))]
        return Rule(op_name(self.fun), body, pull, by_body=True)


class _Kept(Custom):
    """A function whose backward half computes again what a policy does not keep."""

    def __init__(self, fun, static_argnums, policy, names, budget):
        super().__init__(fun, static_argnums)
        self._how = policy, names, budget

    def _rule(self, use):
        recorded = use.parts["body"].recorded
        module = c.checkpoint(recorded.module, *self._how)
        return lambda operands: recorded.run(module, operands)


def checkpoint(fun, *, static_argnums=(), policy=None, names=(), budget_bytes=None):
    """fun, of which reverse mode keeps nothing but the arguments: what it needs of the
    values in between it computes again, when their cotangents are there.

    fun: takes and gives trees of arrays. static_argnums: arguments, by place, that are
    no arrays. policy: what reverse mode and linearize() keep besides: "nothing",
    "everything" that they read, "dots", the results of contractions, "names", those of
    checkpoint_name() in names, or "min_bytes", as few bytes as there can be without a
    contraction again. budget_bytes: what is kept takes no more bytes; then the policy is
    min_bytes, where none is given.
    Raises TypeError for no function, ValueError for no such policy, what fun raises.

    >>> f = pt.checkpoint(lambda x: pt.sin(pt.sin(x)))
    >>> pt.grad(f)(0.0).tolist()
    1.0
    """
    need_function(fun, "checkpoint")
    if isinstance(names, str):
        names = (names,)
    if names and policy is None:
        policy = "names"
    if policy is None and budget_bytes is None:
        return _Checkpoint(fun, static_argnums)
    policies = "nothing", "everything", "dots", "names", "min_bytes"
    if policy not in (None, *policies):
        raise ValueError(f"the policy of checkpoint() is {policy!r}: one of "
                         f"{', '.join(policies)} is meant")
    if budget_bytes is not None and (not isinstance(budget_bytes, int) or budget_bytes < 0):
        raise ValueError(f"budget_bytes of checkpoint() is {budget_bytes!r}: a number of "
                         "bytes is meant")
    if budget_bytes == 0:
        policy = "nothing"
    return _Kept(fun, static_argnums, policy, ",".join(names) or None, budget_bytes or 0)


def checkpoint_name(x, name):
    """x, which policies of checkpoint() call name.

    x: an array. name: a string without commas.
    Raises TypeError for no array or string, ValueError for a name that is none.

    >>> f = pt.checkpoint(lambda x: pt.sin(pt.checkpoint_name(pt.sin(x), "inner")),
    ...                   names=("inner",))
    >>> pt.grad(f)(0.0).tolist()
    1.0
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a value is {name!r}, not a string")
    if not name or "," in name or '"' in name or "\\" in name:
        raise ValueError(f"the name {name!r} of a value is empty, or has a comma or a quote")
    leaves, shape = arrays_of(x)
    return shape.unflatten([_named(leaf, name) for leaf in leaves])


def _named(x, name):
    recorded = Recorded(lambda a: ((a,), None), (x,))
    return c.inline(c.checkpoint_name(recorded.module, name), (x,))[0]


class custom_function(Custom):
    """A function whose derivatives and batching may be given, each by a decorator, with
    MLX's signatures.

    fun: takes and gives trees of arrays. f.vjp: a function of (arguments, cotangents,
    results) that gives cotangents of the arguments; f.jvp: of (arguments, tangents),
    that gives the result's tangent; f.vmap: of (arguments, axes), that gives the result
    and its axes. Either derivative is the transpose of the other, where that is not given;
    what is not given at all is that of fun. One argument, result or tangent
    stands alone, several in a tuple.
    Raises TypeError for a rule that gives something else.

    >>> @pt.custom_function
    ... def f(x):
    ...     return pt.sin(x)
    >>> @f.vjp
    ... def rule(x, ct, y):
    ...     return ct * 3
    >>> pt.grad(f)(0.0).tolist()
    3.0
    """

    def __init__(self, fun):
        super().__init__(fun)
        self._rules = {}

    def _set(self, name, function):
        need_function(function, f"custom_function.{name}")
        self._rules[name] = function
        return self

    def vjp(self, function):
        """function(arguments, cotangents, results) gives the arguments' cotangents."""
        return self._set("vjp", function)

    def jvp(self, function):
        """function(arguments, tangents) gives the result's tangent."""
        return self._set("jvp", function)

    def vmap(self, function):
        """function(arguments, axes) gives the result and its axes."""
        return self._set("vmap", function)

    def _functions(self):
        return (self._rules.get("vmap"),)

    def _record(self, use, leaves):
        n, m = len(leaves), len(use.results)
        smooth, moving = differentiable(use.results), differentiable(leaves)

        def pull(*arrays):
            values = use.args(arrays, False)
            out = self._rules["vjp"](
                _alone(values), spread(use.shape, arrays[n + m:], smooth),
                use.shape.unflatten(list(arrays[n:n + m])))
            return some(flat_cotangents((out,) if len(values) == 1 else out, use, values,
                                        f"the vjp of {name_of(self.fun)}"))

        def push(*arrays):
            moved = spread(use.structure, arrays[n:], moving)
            out = self._rules["jvp"](_alone(use.args(arrays, False)), _alone(moved))
            given = dict(zip(smooth, gathered(
                out, use.shape, use.results, smooth,
                f"the tangents that the jvp of {name_of(self.fun)} gives")))
            return some([given.get(i) for i in range(m)])
        if "vjp" in self._rules:
            use.parts["vjp"] = Part(pull, [*leaves, *map(zeros, use.results),
                                           *(zeros(use.results[i]) for i in smooth)])
        if "jvp" in self._rules:
            use.parts["jvp"] = Part(push, [*leaves, *(zeros(leaves[i]) for i in moving)])

    def _make(self, use, body):
        def pull(operands, cts, needed):
            self._warn(use, needed)
            given = (*operands[:use.count], *body(*operands),
                     *(t for t in cts if t is not None))
            return all_of(use.part("vjp", operands, given)) + [None] * len(use.hidden)

        def push(operands, tangents, needed):
            self._warn(use, needed)
            own = (t for t in tangents[:use.count] if t is not None)
            return all_of(use.part("jvp", operands, (*operands[:use.count], *own)))

        def batch(size, axes, operands):
            values = use.args(operands, False)
            where = use.structure.unflatten(list(axes[:use.count]))
            out, its = self._rules["vmap"](_alone(values), _alone(where))
            leaves, _ = arrays_of(out)
            its = per_leaf(its, out, f"the axes that the vmap of {name_of(self.fun)} "
                           "gives", lambda x: x is None or isinstance(x, int))
            return leaves, tuple(its)
        return Rule(op_name(self.fun), body, pull if "vjp" in self._rules else None,
                    push if "jvp" in self._rules else None,
                    batch if "vmap" in self._rules else None)


def _alone(values):
    return values[0] if len(values) == 1 else tuple(values)
