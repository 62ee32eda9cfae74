# SPDX-License-Identifier: Apache-2.0
"""Trees: values made of tuples, lists, dicts, None, and types that are registered."""

from . import _pestle as c

flatten = c.tree_flatten
register = c.tree_register
Structure = c.Structure


def unflatten(structure, leaves, /):
    """The value of structure with these leaves."""
    if not isinstance(structure, Structure):
        raise TypeError(f"{structure!r} is no structure")
    return structure.unflatten(leaves)


def leaves(tree, /):
    """The leaves of tree in order."""
    return flatten(tree)[0]


def structure(tree, /):
    """The structure of tree."""
    return flatten(tree)[1]


def map(function, tree, /, *rest):
    """tree with function of each leaf in its place, and of the leaves at that place
    in the trees of rest, which have its structure."""
    first, shape = flatten(tree)
    others = []
    for other in rest:
        more, its = flatten(other)
        if its != shape:
            raise ValueError(f"trees of {shape} and {its} are mapped together")
        others.append(more)
    return shape.unflatten([function(*row) for row in zip(first, *others)])


def reduce(function, tree, /, *initial):
    """function of all leaves, taken from the first on."""
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
    structure. May be used as a decorator."""
    import dataclasses
    names = [f.name for f in dataclasses.fields(type)]
    data = [n for n in names if n not in meta] if data is None else list(data)
    return register(
        type, lambda x: ([getattr(x, n) for n in data],
                         tuple(getattr(x, n) for n in meta)),
        lambda aux, children: type(**dict(zip(data, children)), **dict(zip(meta, aux))))
