# SPDX-License-Identifier: Apache-2.0
"""Trees: values made of tuples, lists, dicts, None, and types that are registered."""

from . import _pestle as c

flatten = c.tree_flatten
register = c.tree_register
Structure = c.Structure


def unflatten(structure, leaves, /):
    """The value of structure with these leaves.

    Raises TypeError for no structure, ValueError for another count of leaves.

    >>> pt.tree.unflatten(pt.tree.structure([0, (0,)]), [1, 2])
    [1, (2,)]
    """
    if not isinstance(structure, Structure):
        raise TypeError(f"{structure!r} is no structure")
    return structure.unflatten(leaves)


def leaves(tree, /):
    """The leaves of tree in order.

    Raises TypeError for a registered type that does not flatten to a pair.

    >>> pt.tree.leaves({"b": 2, "a": [1, None]})
    [1, 2]
    """
    return flatten(tree)[0]


def structure(tree, /):
    """The structure of tree.

    Raises TypeError for a registered type that does not flatten to a pair.

    >>> pt.tree.structure([1, (2, 3)]) == pt.tree.structure([4, (5, 6)])
    True
    """
    return flatten(tree)[1]


def map(function, tree, /, *rest):
    """tree with function of each leaf in its place, and of the leaves at that place
    in the trees of rest, which have its structure.

    Raises ValueError for trees of other structures, and what function raises.

    >>> pt.tree.map(lambda x, y: x + y, {"a": 1}, {"a": 10})
    {'a': 11}
    """
    first, shape = flatten(tree)
    others = []
    for other in rest:
        more, its = flatten(other)
        if its != shape:
            raise ValueError(f"trees of {shape} and {its} are mapped together")
        others.append(more)
    return shape.unflatten([function(*row) for row in zip(first, *others)])


def reduce(function, tree, /, *initial):
    """function of all leaves, taken from the first on.

    Raises ValueError for no leaves and no initial value.

    >>> pt.tree.reduce(lambda x, y: x + y, [1, (2, 3)])
    6
    """
    rest = iter((*initial, *leaves(tree)))
    try:
        value = next(rest)
    except StopIteration:
        raise ValueError("a tree without leaves is reduced from an initial value"
                         ) from None
    for leaf in rest:
        value = function(value, leaf)
    return value


def register_dataclass(type, /, data=None, meta=()):
    """Makes a dataclass a tree of its fields data; those of meta are a part of its
    structure. May be used as a decorator.

    Raises TypeError for what is no dataclass.

    >>> import dataclasses
    >>> @pt.tree.register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: object
    ...     y: object
    >>> pt.tree.leaves(Point(1, (2, 3)))
    [1, 2, 3]
    """
    import dataclasses
    names = [f.name for f in dataclasses.fields(type)]
    data = [n for n in names if n not in meta] if data is None else list(data)
    return register(
        type, lambda x: ([getattr(x, n) for n in data],
                         tuple(getattr(x, n) for n in meta)),
        lambda aux, children: type(**dict(zip(data, children)), **dict(zip(meta, aux))))
