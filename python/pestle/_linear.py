# SPDX-License-Identifier: Apache-2.0
"""Products of matrices and vectors."""

from . import _pestle as c
from ._core import (apply, array, axes_of, axis_of, count_of, fold_sum, is_complex,
                    need_array, reshape_to)
from ._make import broadcast_shapes
from ._reduce import sum as sum_of
from ._shape import (broadcast_arrays, broadcast_to, expand_dims, matrix_transpose,
                     squeeze)


def _promoted(*arrays):
    dtype = arrays[0].dtype
    for x in arrays[1:]:
        dtype = c.promote(dtype, x.dtype)
    return [c.cast(x, dtype) for x in arrays]


def dot_general(x, y, contract, batch=((), ())):
    """The sum of products over the axes contract, a list of each operand, for each
    place of the axes batch: first these axes, then those of x, then those of y."""
    rest = [[a for a in range(v.ndim) if a not in contract[i] and a not in batch[i]]
            for i, v in enumerate((x, y))]
    shape = ([x.shape[a] for a in batch[0]] + [x.shape[a] for a in rest[0]] +
             [y.shape[a] for a in rest[1]])
    if x.dtype == c.bool:
        z = dot_general(c.cast(x, c.int32), c.cast(y, c.int32), contract, batch)
        return c.not_equal(z, 0)
    return apply("dot_general", (x, y), {
        "lhs_batching_dimensions": batch[0], "rhs_batching_dimensions": batch[1],
        "lhs_contracting_dimensions": contract[0],
        "rhs_contracting_dimensions": contract[1]}, x.dtype, shape)


def matmul(x1, x2, /):
    """The matrix product: of the last two axes, for each place of the others.

    x1, x2: numbers of at least one axis each; those before the last two broadcast. The
    result has the promoted dtype.
    Raises ValueError for shapes that have no product, TypeError for no arrays.

    >>> pt.matmul(pt.asarray([[1, 2], [3, 4]]), pt.asarray([1, 1])).tolist()
    [3, 7]
    """
    need_array(x1, "x1"), need_array(x2, "x2")
    for x in (x1, x2):
        if not x.ndim:
            raise ValueError("matmul() takes no array of rank 0: * multiplies")
    x1, x2 = _promoted(x1, x2)
    if x1.shape[-1] != x2.shape[-min(2, x2.ndim)]:
        raise ValueError(f"arrays of shapes {x1.shape} and {x2.shape} have no matrix "
                         "product")
    if x1.ndim == 1 or x2.ndim == 1 or x2.ndim == 2:
        axis = 0 if x2.ndim == 1 else x2.ndim - 2
        y = dot_general(x1, x2, ([x1.ndim - 1], [axis]))
        if x1.ndim > 1 or x2.ndim < 3:
            return y
        return y
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    x1 = broadcast_to(x1, batch + x1.shape[-2:])
    x2 = broadcast_to(x2, batch + x2.shape[-2:])
    n = len(batch)
    return dot_general(x1, x2, ([n + 1], [n]), (range(n), range(n)))


def tensordot(x1, x2, /, *, axes=2):
    """The sum of products over axes: the last axes of x1 and the first of x2, or a
    list of each.

    axes: an integer, or a list of axes of each, of equal extents. The result has the
    other axes of both and the promoted dtype.
    Raises ValueError for other extents, IndexError for an axis that there is not.

    >>> pt.tensordot(pt.ones((2, 3)), pt.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    need_array(x1, "x1"), need_array(x2, "x2")
    if isinstance(axes, int):
        first = list(range(x1.ndim - axes, x1.ndim))
        second = list(range(axes))
    else:
        first, second = axes
        first = axes_of(tuple(first), x1.ndim)
        second = axes_of(tuple(second), x2.ndim)
    for a, b in zip(first, second):
        if x1.shape[a] != x2.shape[b]:
            raise ValueError(f"axis {a} of x1 has {x1.shape[a]} elements, axis {b} of "
                             f"x2 {x2.shape[b]}")
    x1, x2 = _promoted(x1, x2)
    return dot_general(x1, x2, (first, second))


def vecdot(x1, x2, /, *, axis=-1):
    """The sum over axis of products, of conj(x1) where that is complex.

    x1, x2: of shapes that broadcast, with one extent along axis, counted from the end;
    complex x1 is conjugated. The result has the promoted dtype.
    Raises ValueError for other shapes, IndexError for an axis that they have not.

    >>> pt.vecdot(pt.asarray([1, 2]), pt.asarray([3, 4])).tolist()
    11
    """
    need_array(x1, "x1"), need_array(x2, "x2")
    least = min(x1.ndim, x2.ndim)
    if axis_of(axis, least) == axis:
        raise IndexError(f"axis {axis} does not count from the end: -{least} to -1 are "
                         "axes of both arrays")
    a, b = axis_of(axis, x1.ndim), axis_of(axis, x2.ndim)
    if x1.shape[a] != x2.shape[b]:
        raise ValueError(f"axis {axis} has {x1.shape[a]} and {x2.shape[b]} elements")
    x1, x2 = broadcast_arrays(*_promoted(x1, x2))
    at = axis_of(axis, x1.ndim)
    if is_complex(x1.dtype):
        x1 = c.conj(x1)
    if x1.dtype == c.bool:
        return c.fold("or", c.bitwise_and(x1, x2), (at,))
    return fold_sum(c.multiply(x1, x2), (at,))


def outer(x1, x2, /):
    """Each product of an element of x1 and one of x2, both of rank 1.

    The result has the promoted dtype and the extents of both.
    Raises ValueError for other ranks, TypeError for no arrays.

    >>> pt.outer(pt.asarray([1, 2]), pt.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    if need_array(x1, "x1").ndim != 1 or need_array(x2, "x2").ndim != 1:
        raise ValueError("outer() takes two arrays of one axis")
    return c.multiply(expand_dims(x1, 1), expand_dims(x2, 0))


def einsum(subscripts, *operands):
    """Sums of products in Einstein's notation: einsum('ij,jk->ik', a, b).

    subscripts: letters for axes, ... for all others, which broadcast; operands: of any
    shapes that these fit. The result has the promoted dtype and the axes behind ->.
    Raises ValueError where letters and axes differ, TypeError for no text and no
    arrays.

    >>> pt.einsum("ij,j->i", pt.asarray([[1, 2], [3, 4]]), pt.asarray([1, 10])).tolist()
    [21, 43]
    """
    if not isinstance(subscripts, str):
        raise TypeError(f"subscripts are a text, not {subscripts!r}")
    for x in operands:
        need_array(x, "an operand")
    subscripts = subscripts.replace(" ", "")
    inputs, _, output = subscripts.partition("->")
    inputs = inputs.split(",")
    if len(inputs) != len(operands):
        raise ValueError(f"{len(inputs)} operands are named, {len(operands)} given")
    for names in (*inputs, output):
        wrong = [l for l in names.replace("...", "", 1) if not (l.isascii() and l.isalpha())]
        if wrong:
            raise ValueError(f"'{names}' of einsum() has {wrong[0]!r}, which is no letter")
    operands = _promoted(*operands)
    inputs, operands, shared = _spelled(inputs, operands)
    if "->" not in subscripts:
        letters = "".join(inputs)
        output = shared + "".join(sorted(
            l for l in set(letters) if letters.count(l) == 1 and l not in shared))
    elif "..." in output:
        output = output.replace("...", shared)
    elif shared:
        raise ValueError(f"'{output}' of einsum() has no ..., which operands have")
    for l in output:
        if output.count(l) > 1 or not any(l in names for names in inputs):
            raise ValueError(f"'{output}' of einsum() has {l!r} "
                             + ("twice" if output.count(l) > 1 else "of no operand"))
    names, x = _diagonals(inputs[0], operands[0])
    for i in range(1, len(operands)):
        other, y = _diagonals(inputs[i], operands[i])
        later = set(output).union(*inputs[i + 1:])
        names, x = _pair(names, x, other, y, later)
    gone = [i for i, l in enumerate(names) if l not in output]
    if gone:
        x = fold_sum(x, gone)
        names = [l for l in names if l in output]
    return apply("transpose", (x,), {"permutation": [names.index(l) for l in output]})


def _spelled(inputs, operands):
    """The inputs with a character for each axis of an ellipsis, the operands without
    those of one element that others broadcast, the characters of all ellipses."""
    widths = [max(x.ndim - len(n.replace("...", "")), 0) if "..." in n else 0
              for n, x in zip(inputs, operands)]
    shared = "".join(chr(0x100 + i) for i in range(max(widths)))
    extents = {}
    for n, x, width in zip(inputs, operands, widths):
        at = n.find("...")
        for i in range(width):
            l = shared[len(shared) - width + i]
            extents[l] = max(extents.get(l, 1), x.shape[at + i]) if x.shape[
                at + i] and extents.get(l, 1) else 0
    names, values = [], []
    for n, x, width in zip(inputs, operands, widths):
        at, own = n.find("..."), shared[len(shared) - width:] if width else ""
        gone = [at + i for i, l in enumerate(own) if x.shape[at + i] != extents[l]]
        for i in gone:
            if x.shape[i] != 1:
                raise ValueError(f"axes of {x.shape[i]} and {extents[own[i - at]]} elements "
                                 "do not broadcast")
        if gone:
            x = reshape_to(x, [d for i, d in enumerate(x.shape) if i not in gone])
            own = "".join(l for i, l in enumerate(own) if at + i not in gone)
        names.append(n.replace("...", own))
        values.append(x)
    return names, values, shared


def _diagonals(names, x):
    """An axis for each letter: of a letter that occurs twice the diagonal."""
    if len(names) != x.ndim:
        raise ValueError(f"'{names}' names {len(names)} axes of an array of {x.ndim}")
    from ._core import iota
    names = list(names)
    for letter in dict.fromkeys(names):
        while names.count(letter) > 1:
            a = names.index(letter)
            b = names.index(letter, a + 1)
            if x.shape[a] != x.shape[b]:
                raise ValueError(f"{letter!r} of einsum() is an axis of {x.shape[a]} and "
                                 f"one of {x.shape[b]} elements")
            same = c.equal(iota(x.shape, a, c.int64, x.device),
                           iota(x.shape, b, c.int64, x.device))
            x = fold_sum(c.where(same, x, c.number(0, x)), (b,))
            del names[b]
    return names, x


def _pair(names, x, other, y, later):
    batch = [l for l in names if l in other and l in later]
    contract = [l for l in names if l in other and l not in later]
    z = dot_general(x, y,
                    ([names.index(l) for l in contract],
                     [other.index(l) for l in contract]),
                    ([names.index(l) for l in batch], [other.index(l) for l in batch]))
    return batch + [l for l in names if l not in other] + [
        l for l in other if l not in names], z
