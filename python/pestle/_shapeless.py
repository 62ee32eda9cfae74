# SPDX-License-Identifier: Apache-2.0
"""jit(shapeless=True): Python runs for a function's first call, and its graph serves
arrays of other extents.

A graph of one set of extents does not say which of its numbers follow which extent. So
the function is traced for the extents of the first call and for some of our choice,
these times primes, and 5, each extent by itself, and all together. A number
that differs between these graphs must be one formula of the extents in all of them; what
is none, and graphs of other ops, are errors in words. Nothing is computed for that."""

import itertools
import re
from fractions import Fraction

from . import _pestle as c
from . import tree
from ._core import Array, asarray

_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)")
# Multiples for the traces; each is used once.
_PRIMES = (11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89,
           97, 101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173)
_LARGE = (10007, 10009, 10037, 10039, 10061, 10067, 10069, 10079, 10091, 10093, 10099,
          10103, 10111, 10133, 10139, 10141)
_KEPT = 256  # graphs of a trace, by extents
_ERRORS = (ValueError, TypeError, IndexError, OverflowError, NotImplementedError)


def _near(a, b):
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b))


def _power(x, k):
    return x ** k if isinstance(k, int) else Fraction(float(x) ** k)


class _Formula:
    """A number of a graph as a sum of extents, or a product of their powers and a number
    more. points: (extents, number) of each trace: the first call's, for each extent two in
    which it differs alone, and others."""

    def __init__(self, points):
        (first, v0), rest = points[0], points[1:]
        alone = [rest[2 * g] for g in range(len(first))]
        slopes = [(v - v0) / Fraction(e[g] - first[g]) for g, (e, v) in enumerate(alone)]
        # As a product and a number more, v is a line over each extent, from that number on.
        more = {v0 - s * d for s, d in zip(slopes, first) if s}
        powers = [next((k for k in (0, 1, -1, 2, -2, 0.5, -0.5) if v0 and _near(
            v / v0, _power(Fraction(e[g], first[g]), k))), None)
                  for g, (e, v) in enumerate(alone)]
        models = [(True, slopes, v0 - sum(s * d for s, d in zip(slopes, first)), 0)]
        if None not in powers:
            models.append((False, powers, self._whole(v0, powers, first), 0))
        if len(more) == 1:
            lines = [int(s != 0) for s in slopes]
            rest = next(iter(more))
            models.append((False, lines, self._whole(v0 - rest, lines, first), rest))
        for self.is_sum, self.terms, self.constant, self.more in models:
            if all(_near(self.at(e), v) for e, v in points):
                return
        raise ArithmeticError

    @staticmethod
    def _product(extents, powers):
        product = Fraction(1)
        for d, k in zip(extents, powers):
            product *= _power(Fraction(d), k)
        return product

    def _whole(self, value, powers, extents):
        value = value / self._product(extents, powers)
        whole = Fraction(round(value))
        return whole if whole and _near(whole, value) else value

    def at(self, extents):
        if self.is_sum:
            return self.constant + sum(t * d for t, d in zip(self.terms, extents))
        return self.more + self.constant * self._product(extents, self.terms)


class _Family:
    """The graphs of one structure, dtypes, ranks and pattern of equal extents."""

    def __init__(self, trace, extents, where):
        """trace(extents) -> (text, hidden arrays, structure of the results)."""
        self.programs = {}
        text, self.hidden, self.structure = trace(extents)
        self.fixed = {}
        free, points = [], [(extents, text)]
        primes, large = itertools.cycle(_PRIMES), itertools.cycle(_LARGE)

        def with_probe(g, primes):
            # A multiple, which can be divided by what the extent can be.
            n = next(n for n in (extents[g] * p for p in primes) if n not in extents)
            return (*extents[:g], n, *extents[g + 1:])
        for g in range(len(extents)):
            pair = []
            try:
                for other in (with_probe(g, primes), with_probe(g, large)):
                    pair.append((other, self._same_hidden(trace(other), where[g])))
            except _ERRORS as error:
                if isinstance(error, _Followed):
                    raise ValueError(str(error)) from None
                self.fixed[g] = extents[g]  # only this extent is right
                continue
            free.append(g)
            points += pair
        if free:
            other = tuple(with_probe(g, primes)[g] if g in free else d
                          for g, d in enumerate(extents))
            points.append((other, self._same_hidden(trace(other), "its arguments")))
        # What is small may be another case of Python's, or none of the function's: where
        # the graph has other ops nothing is known.
        like = _NUMBER.split(text)[::2]
        for g in free:
            other = (*extents[:g], 7 if extents[g] == 5 else 5, *extents[g + 1:])
            try:
                small = self._same_hidden(trace(other), where[g])
            except _Followed as error:
                raise ValueError(str(error)) from None
            except _ERRORS:
                continue
            if _NUMBER.split(small)[::2] == like:
                points.append((other, small))
        self.free = free
        self._solve(points, [where[g] for g in free])

    def _same_hidden(self, traced, where):
        text, hidden, _ = traced
        same = len(hidden) == len(self.hidden) and all(
            a._id == b._id or (a.dtype == b.dtype and a.shape == b.shape and
                               a.tolist() == b.tolist())
            for a, b in zip(hidden, self.hidden))
        if not same:
            raise _Followed(
                f"jit(shapeless=True): the function makes an array in Python of {where}, "
                "whose elements are those of one shape: make it by functions of pestle, "
                "such as arange() and full(), or leave shapeless out")
        return text

    def _solve(self, points, where):
        rows = [_NUMBER.split(text) for _, text in points]
        self.parts, self.formulas = rows[0], {}
        named = ", ".join(where)
        for row in rows[1:]:
            if len(row) != len(rows[0]) or row[::2] != rows[0][::2]:
                raise ValueError(
                    f"jit(shapeless=True): the function does other things for other "
                    f"extents of {named}, by an if or a loop of Python on a shape: leave "
                    "shapeless out, or let where(), cond() and fori_loop() do that")
        for i in range(1, len(rows[0]), 2):
            if all(row[i] == rows[0][i] for row in rows):
                continue
            try:
                self.formulas[i] = _Formula([
                    (tuple(e[g] for g in self.free), Fraction(row[i]))
                    for (e, _), row in zip(points, rows)])
            except ArithmeticError:
                text = "".join(rows[0])
                at = len("".join(rows[0][:i]))
                line = text[text.rfind("\n", 0, at) + 1:text.find("\n", at)].strip()
                raise ValueError(
                    "jit(shapeless=True): a number of the function's graph, "
                    f"{rows[0][i]}, is no sum and no product of powers of the extents of {named}: "
                    f"{line[:160]}; leave shapeless out") from None

    def program(self, extents, device):
        found = self.programs.get(extents)
        if found:
            return found
        parts, values = list(self.parts), tuple(extents[g] for g in self.free)
        for i, formula in self.formulas.items():
            value = formula.at(values)
            is_whole = re.fullmatch(r"-?\d+", parts[i])
            if is_whole and value.denominator != 1:
                raise ValueError(f"jit(shapeless=True): the extents {extents} give a part "
                                 f"of a graph the extent {value}")
            parts[i] = str(value) if is_whole else repr(float(value))
        module = c.import_bytes("".join(parts).encode())
        if len(self.programs) >= _KEPT:
            self.programs.pop(next(iter(self.programs)))
        self.programs[extents] = c.Program(module, device)
        return self.programs[extents]


class _Followed(ValueError):
    pass


class Shapeless:
    """A function of jit(shapeless=True)."""

    def __init__(self, function, places, names, device):
        import functools
        functools.update_wrapper(self, function)
        self.__wrapped__ = function
        self._places, self._names = frozenset(places), names or frozenset()
        self._device = None if device is None else c.device(device)
        self._families, self._misses, self.traces = {}, [], 0

    def __get__(self, object, type=None):
        return self if object is None else lambda *a, **k: self(object, *a, **k)

    def __repr__(self):
        return f"<shapeless function {self.__name__}>"

    def explain_misses(self):
        """Why each set of traces after the first was made."""
        return list(self._misses)

    def __call__(self, *args, **kwargs):
        count = len(args)
        fixed = {i % count for i in self._places if -count <= i < count}
        dynamic = ([x for i, x in enumerate(args) if i not in fixed],
                   {n: x for n, x in kwargs.items() if n not in self._names})
        leaves, structure = tree.flatten(dynamic)
        leaves = [x if isinstance(x, (Array, bool, int, float, complex)) else
                  asarray(x, device=self._device) for x in leaves]
        arrays = [x for x in leaves if isinstance(x, Array)]
        if any(x.state == "traced" for x in arrays):
            return self.__wrapped__(*args, **kwargs)
        device = self._device or (arrays[0].device if arrays else c.device(None))
        extents, pattern = _pattern(arrays)
        statics = (tuple((i, args[i]) for i in sorted(fixed)),
                   tuple(sorted((n, kwargs[n]) for n in self._names & kwargs.keys())))
        key = (structure, statics, tuple((type(x), x) if not isinstance(x, Array) else
                                         x.dtype.name for x in leaves),
               pattern, device.name, c.get_settings()[1].name)
        found = None
        for family in self._families.setdefault(key, []):
            if all(extents[g] == d for g, d in family.fixed.items()):
                found = family
        if found is None:
            found = self._make(key, args, kwargs, fixed, structure, leaves, extents,
                               pattern, device)
        results = found.program(extents, device)([*arrays, *found.hidden])
        return found.structure.unflatten(results)

    def _make(self, key, args, kwargs, fixed, structure, leaves, extents, pattern, device):
        if self.traces:
            self._misses.append(
                "no trace fits: arguments of other dtypes, ranks or structure, another "
                "number or static value, an extent that has become 1, or that has to be "
                f"what it was; extents are {extents}")

        def trace(values):
            out, specs, each = [], [], iter(pattern)
            for x in leaves:
                if isinstance(x, Array):
                    shape = tuple(values[g] if g >= 0 else -1 - g for g in next(each))
                    specs.append(c.full(shape, 0, x.dtype, device))

            def flat(traced):
                given = iter(traced)
                filled = [next(given) if isinstance(x, Array) else x for x in leaves]
                positional, named = structure.unflatten(filled)
                positional = iter(positional)
                whole = [x if i in fixed else next(positional)
                         for i, x in enumerate(args)]
                rest = {n: named.get(n, x) for n, x in kwargs.items()}
                results, shape = tree.flatten(self.__wrapped__(*whole, **rest))
                out.append(shape)
                return tuple(x if isinstance(x, Array) else asarray(x) for x in results)
            module, hidden, _, _ = c.capture(flat, tuple(specs), device)
            self.traces += 1
            return str(module), hidden, out[0]

        names = _places(leaves, pattern, len(extents))
        family = _Family(trace, extents, names)
        self._families[key].append(family)
        return family


def _pattern(arrays):
    """The different extents above 1 in the order of their appearance, and of each array's
    axes which it is, or -1 - extent of 0 and 1."""
    extents, pattern = [], []
    for x in arrays:
        row = []
        for d in x.shape:
            if d > 1 and d not in extents:
                extents.append(d)
            row.append(extents.index(d) if d > 1 else -1 - d)
        pattern.append(tuple(row))
    return tuple(extents), tuple(pattern)


def _places(leaves, pattern, count):
    names = [""] * count
    rows = iter(pattern)
    for i, x in enumerate(leaves):
        if not isinstance(x, Array):
            continue
        for axis, g in enumerate(next(rows)):
            if g >= 0 and not names[g]:
                names[g] = f"axis {axis} of array {i}"
    return names
