# SPDX-License-Identifier: Apache-2.0
"""Linear algebra on the last two axes of arrays, for each place of the others."""

from collections import namedtuple

from . import _pestle as c
from . import _streams
from ._core import (apply, array, axes_of, axis_of, default_float, fold_sum, is_complex,
                    iota, need_array, number, reshape_to, transpose_to)
from ._linear import matmul, outer, tensordot, vecdot
from ._make import broadcast_shapes, eye
from ._reduce import _floats, max as max_of, min as min_of, sum as sum_of
from ._shape import (broadcast_to, concat, expand_dims, matrix_transpose, moveaxis,
                     squeeze, stack)

QRResult = namedtuple("QRResult", "Q R")
SVDResult = namedtuple("SVDResult", "U S Vh")
EigResult = namedtuple("EigResult", "eigenvalues eigenvectors")
EighResult = namedtuple("EighResult", "eigenvalues eigenvectors")
SlogdetResult = namedtuple("SlogdetResult", "sign logabsdet")


def _matrix(x, name, square=False):
    need_array(x)
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise ValueError(f"{name}() takes {'square ' if square else ''}matrices, not an "
                         f"array of shape {x.shape}")
    return x if x.dtype.kind in "fc" else c.cast(x, default_float())


def _conj_transpose(x):
    x = matrix_transpose(x)
    return c.conj(x) if is_complex(x.dtype) else x


# --- By the names that LAPACK has: complex matrices, and eigenvalues of any ---

_modules = {}


def _text_of(dtype, shape):
    name = {c.float32: "f32", c.float64: "f64", c.complex64: "complex<f32>",
            c.complex128: "complex<f64>", c.int32: "i32"}[dtype]
    return "tensor<" + "".join(f"{d}x" for d in shape) + name + ">"


def _layout(shape, matrix_rank):
    """Column-major of matrices; of vectors and numbers, one for each matrix, row-major."""
    rank = len(shape)
    order = [rank - 2, rank - 1, *range(rank - 3, -1, -1)] if rank == matrix_rank else (
        range(rank - 1, -1, -1))
    return "dense<" + str(list(order)) + f"> : tensor<{rank}xindex>" if rank else (
        "dense<> : tensor<0xindex>")


def _lapack(name, config, operands, results):
    """The call that JAX makes of LAPACK's function name, as a part of the graph."""
    types = [(x.dtype, x.shape) for x in operands]
    key = (name, config, tuple(types), tuple(results))
    if key not in _modules:
        letter = {c.float32: "s", c.float64: "d", c.complex64: "c",
                  c.complex128: "z"}[operands[0].dtype]
        takes = [_text_of(*t) for t in types]
        gives = [_text_of(*t) for t in results]
        n = len(results)
        names = ", ".join(f"%r#{i}" for i in range(n)) if n > 1 else "%r"
        text = (
            "func.func @main(" +
            ", ".join(f"%a{i}: {t}" for i, t in enumerate(takes)) + ") -> (" +
            ", ".join(gives) + ") {\n" + (f"%r:{n}" if n > 1 else "%r") +
            f" = stablehlo.custom_call @lapack_{letter}{name}_ffi(" +
            ", ".join(f"%a{i}" for i in range(len(takes))) +
            f") {{mhlo.backend_config = {{{config}}}, operand_layouts = [" +
            ", ".join(_layout(t[1], operands[0].ndim) for t in types) + "], result_layouts = [" +
            ", ".join(_layout(t[1], operands[0].ndim) for t in results) + "]} : (" + ", ".join(takes) +
            ") -> (" + ", ".join(gives) + ")\nreturn " + names + " : " +
            ", ".join(gives) + "\n}\n")
        _modules[key] = c.import_bytes(text.encode(), name)
    return c.inline(_modules[key], tuple(operands))


def _letter(value):
    return f"{ord(value)} : ui8"


def _info(x):
    return c.int32, x.shape[:-2]


def _eig(x, vectors):
    x = _matrix(x, "eig", True)
    # Of real matrices too the values are complex.
    whole = x if is_complex(x.dtype) else c.cast(
        x, c.complex64 if x.dtype == c.float32 else c.complex128)
    type = (whole.dtype, whole.shape)
    values, _, right, _ = _lapack(
        "geev", f"compute_left = {_letter('N')}, compute_right = "
        f"{_letter('V' if vectors else 'N')}", (whole,),
        ((whole.dtype, whole.shape[:-1]), type, type, _info(whole)))
    return values, right


def eig(x, /):
    """Eigenvalues of square x, complex, and eigenvectors, its columns.

    x: floats or complex, [..., n, n]. The results are complex, of shapes [..., n] and
    [..., n, n].
    Raises ValueError for other shapes, NotImplementedError where there is no LAPACK.

    >>> [y.shape for y in pt.linalg.eig(pt.eye(2))]
    [(2,), (2, 2)]
    """
    return EigResult(*_eig(x, True))


def eigvals(x, /):
    """Eigenvalues of square x, complex.

    x: floats or complex, [..., n, n]. The result is complex, of shape [..., n].
    Raises ValueError for other shapes, NotImplementedError where there is no LAPACK.

    >>> pt.linalg.eigvals(pt.eye(2)).shape
    (2,)
    """
    return _eig(x, False)[0]


def _complex_cholesky(x, upper):
    y, info = _lapack("potrf", f"uplo = {_letter('U' if upper else 'L')}", (x,),
                      ((x.dtype, x.shape), _info(x)))
    good = expand_dims(c.equal(info, 0), (-2, -1))
    y = c.where(good, y, c.number(complex("nan+nanj"), y))
    from ._make import tril, triu
    return (triu if upper else tril)(y)


def _complex_qr(x, complete):
    from ._make import triu
    m, n = x.shape[-2:]
    k = min(m, n)
    packed, taus = _lapack("geqrf", "", (x,),
                           ((x.dtype, x.shape), (x.dtype, x.shape[:-2] + (k,))))
    width = m if complete else k
    q = packed[..., :min(n, width)]
    if width > n:
        q = concat([q, c.full(x.shape[:-1] + (width - n,), 0, x.dtype, x.device)],
                   axis=-1)
    q, = _lapack("ungqr", "", (q, taus), ((x.dtype, q.shape),))
    return q, triu(packed[..., :width, :])


def _complex_svd(x, full):
    m, n = x.shape[-2:]
    k = min(m, n)
    part = c.float32 if x.dtype == c.complex64 else c.float64
    batch = x.shape[:-2]
    _, s, u, v, _ = _lapack(
        "gesdd", f"mode = {_letter('A' if full else 'S')}", (x,),
        ((x.dtype, x.shape), (part, batch + (k,)),
         (x.dtype, batch + (m, m if full else k)),
         (x.dtype, batch + (n if full else k, n)), _info(x)))
    return u, s, v


def _complex_eigh(x):
    part = c.float32 if x.dtype == c.complex64 else c.float64
    vectors, values, _ = _lapack(
        "heevd", f"mode = {_letter('V')}, uplo = {_letter('L')}", (x,),
        ((x.dtype, x.shape), (part, x.shape[:-1]), _info(x)))
    return values, vectors


def _embedded(x):
    """[[re, -im], [im, re]]: real matrices that multiply as complex ones do."""
    real, imag = c.real(x), c.imag(x)
    return concat([concat([real, c.negative(imag)], axis=-1),
                   concat([imag, real], axis=-1)], axis=-2)


def _extracted(y):
    """The complex matrices that real ones of that form stand for."""
    m, n = y.shape[-2] // 2, y.shape[-1] // 2
    return apply("complex", (y[..., :m, :n], y[..., m:, :n]))


# --- The standard's ---

def cholesky(x, /, *, upper=False):
    """The triangular factor L of x = L L^H, or U of x = U^H U where upper is set; NaN
    where x is not positive definite.

    x: floats or complex, [..., n, n], of which one triangle is read.
    Raises ValueError for other shapes, TypeError for no array.

    >>> pt.linalg.cholesky(pt.asarray([[4.0, 0.0], [0.0, 9.0]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    x = _matrix(x, "cholesky", True)
    if not x.size:
        return x
    if is_complex(x.dtype):
        return _complex_cholesky(x, upper)
    return apply("cholesky", (x,), {"lower": not upper})


def qr(x, /, *, mode="reduced"):
    """Q of orthonormal columns and R upper triangular, whose product is x; mode
    'complete' makes Q square.

    x: floats or complex, [..., m, n]. The results are [..., m, k] and [..., k, n],
    where k is the lesser of both, or m.
    Raises ValueError for other shapes and another mode.

    >>> [y.shape for y in pt.linalg.qr(pt.ones((3, 2)))]
    [(3, 2), (2, 2)]
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode is {mode!r}: 'reduced' and 'complete' are known")
    x = _matrix(x, "qr")
    if is_complex(x.dtype):
        return QRResult(*_complex_qr(x, mode == "complete"))
    return QRResult(*apply("qr", (x,), {"full": mode == "complete"}))


def svd(x, /, *, full_matrices=True):
    """U, S and Vh with x = U diag(S) Vh; S descends.

    x: floats or complex, [..., m, n]. The results are [..., m, m], [..., k] and [...,
    n, n], or [..., m, k] and [..., k, n] without full_matrices, where k is the lesser
    of both.
    Raises ValueError for other shapes.

    >>> [y.shape for y in pt.linalg.svd(pt.ones((3, 2)))]
    [(3, 3), (2,), (2, 2)]
    """
    x = _matrix(x, "svd")
    if is_complex(x.dtype):
        return SVDResult(*_complex_svd(x, bool(full_matrices)))
    return SVDResult(*apply("svd", (x,), {"full": bool(full_matrices)}))


def svdvals(x, /):
    """The singular values of x, which descend.

    x: floats or complex, [..., m, n]. The result is of floats.
    Raises ValueError for other shapes.

    >>> pt.linalg.svdvals(pt.ones((3, 2))).shape
    (2,)
    """
    return svd(x, full_matrices=False).S


def eigh(x, /):
    """Eigenvalues of symmetric x, which ascend, and eigenvectors, its columns.

    x: floats or complex, [..., n, n], of which the lower triangle is read. The results
    are of shapes [..., n], floats, and [..., n, n].
    Raises ValueError for other shapes.

    >>> pt.linalg.eigh(pt.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 2.0]
    """
    x = _matrix(x, "eigh", True)
    if is_complex(x.dtype):
        return EighResult(*_complex_eigh(x))
    return EighResult(*apply("eigh", (x,), {"lower": True}))


def eigvalsh(x, /):
    """Eigenvalues of symmetric x, which ascend.

    x: floats or complex, [..., n, n], of which the lower triangle is read. The result
    is of floats, [..., n].
    Raises ValueError for other shapes.

    >>> pt.linalg.eigvalsh(pt.asarray([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return eigh(x).eigenvalues


def _diagonal_mask(x):
    shape = x.shape[-2:]
    return c.equal(iota(shape, 0, c.int64, x.device), iota(shape, 1, c.int64, x.device))


def diagonal(x, /, *, offset=0):
    """The elements of diagonal offset of the last two axes.

    x: of any dtype, at least two axes.
    Raises ValueError for fewer.

    >>> pt.linalg.diagonal(pt.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    need_array(x)
    if x.ndim < 2:
        raise ValueError(f"an array of {x.ndim} axes has no diagonal")
    from ._index import getitem
    rows, columns = x.shape[-2:]
    first = max(0, -offset)
    count = max(0, min(rows - first, columns - max(0, offset)))
    i = iota((count,), 0, c.int64, x.device)
    if not count:
        return c.full(x.shape[:-2] + (0,), 0, x.dtype, x.device)
    return getitem(x, (Ellipsis, c.add(i, first), c.add(i, max(0, offset))))


def trace(x, /, *, offset=0, dtype=None):
    """The sum of diagonal offset.

    x: numbers, at least two axes. The result has the dtype of sum().
    Raises ValueError for fewer axes, TypeError for complex numbers as real ones.

    >>> pt.linalg.trace(pt.asarray([[1, 2], [3, 4]])).tolist()
    5
    """
    return sum_of(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def _lu(x):
    """L and U in one, and the sign of the order of the rows."""
    if is_complex(x.dtype):
        factors, pivots, _ = _lapack("getrf", "", (x,), (
            (x.dtype, x.shape), (c.int32, x.shape[:-1]), _info(x)))
        pivots = c.subtract(pivots, 1)
    else:
        factors, pivots, _ = apply("lu", (x,))
    swapped = c.not_equal(pivots, iota(pivots.shape, pivots.ndim - 1, pivots.dtype,
                                       x.device))
    odd = c.remainder(sum_of(swapped, axis=-1), 2)
    return factors, c.cast(c.subtract(1, c.multiply(odd, 2)), x.dtype)


def det(x, /):
    """The determinant.

    x: floats or complex, [..., n, n]; integers become floats. The result is of shape
    [...].
    Raises ValueError for other shapes.

    >>> pt.linalg.det(pt.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    8.0
    """
    x = _matrix(x, "det", True)
    if not x.shape[-1]:
        return c.full(x.shape[:-2], 1, x.dtype, x.device)
    factors, sign = _lu(x)
    return c.multiply(c.fold("multiply", diagonal(factors), (x.ndim - 2,)), sign)


def slogdet(x, /):
    """The sign of the determinant and the logarithm of its size.

    x: floats or complex, [..., n, n]. The results are of shape [...]; the logarithm is
    a float.
    Raises ValueError for other shapes.

    >>> pt.linalg.slogdet(pt.eye(2)).logabsdet.tolist()
    0.0
    """
    x = _matrix(x, "slogdet", True)
    if not x.shape[-1]:
        return SlogdetResult(c.full(x.shape[:-2], 1, x.dtype, x.device),
                             c.full(x.shape[:-2], 0, x.dtype, x.device))
    factors, sign = _lu(x)
    entries = diagonal(factors)
    axis = (x.ndim - 2,)
    sign = c.multiply(sign, c.fold("multiply", c.sign(entries), axis))
    return SlogdetResult(sign, fold_sum(c.log(c.abs(entries)), axis))


def inv(x, /):
    """The inverse; infinities and NaN where there is none.

    x: floats or complex, [..., n, n].
    Raises ValueError for other shapes.

    >>> pt.linalg.inv(pt.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    x = _matrix(x, "inv", True)
    if not x.size:
        return x
    if is_complex(x.dtype):
        return _extracted(apply("inverse", (_embedded(x),)))
    return apply("inverse", (x,))


def solve(x1, x2, /):
    """The x of x1 x = x2; x2 of one axis is a vector.

    x1: floats or complex, [..., n, n]; x2: [..., n, k], or [n].
    Raises ValueError for other shapes, TypeError for no arrays.

    >>> a = pt.asarray([[2.0, 0.0], [0.0, 4.0]])
    >>> pt.linalg.solve(a, pt.asarray([2.0, 4.0])).tolist()
    [1.0, 1.0]
    """
    x1 = _matrix(x1, "solve", True)
    need_array(x2, "x2")
    dtype = c.promote(x1.dtype, x2.dtype)
    x1, x2 = c.cast(x1, dtype), c.cast(x2, dtype)
    is_vector = x2.ndim == 1
    if is_vector:
        x2 = expand_dims(x2, 1)
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    x1 = broadcast_to(x1, batch + x1.shape[-2:])
    x2 = broadcast_to(x2, batch + x2.shape[-2:])
    y = x2
    if x1.size and x2.size and is_complex(dtype):
        y = _extracted(apply("solve", (_embedded(x1), _embedded(x2))))
    elif x1.size and x2.size:
        y = apply("solve", (x1, x2))
    return squeeze(y, y.ndim - 1) if is_vector else y


def matrix_power(x, n, /):
    """x to the power of an integer n.

    x: numbers, [..., n, n].
    Raises ValueError for other shapes, TypeError for no integer.

    >>> pt.linalg.matrix_power(pt.asarray([[1, 1], [0, 1]]), 3).tolist()
    [[1, 3], [0, 1]]
    """
    x = need_array(x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power() takes square matrices, not {x.shape}")
    if n < 0:
        x, n = inv(x), -n
    if not n:
        one = eye(x.shape[-1], dtype=x.dtype, device=x.device)
        return broadcast_to(one, x.shape)
    y = None
    while n:
        if n & 1:
            y = x if y is None else matmul(y, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    return y


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """A norm of matrices: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.

    x: numbers, [..., m, n]. The result is of floats, [...], or [..., 1, 1] with
    keepdims.
    Raises ValueError for other shapes and another ord.

    >>> pt.linalg.matrix_norm(pt.asarray([[3.0, 0.0], [0.0, 4.0]])).tolist()
    5.0
    """
    x = _matrix(x, "matrix_norm")
    inf = float("inf")
    if ord == "fro":
        y = c.sqrt(sum_of(c.square(c.abs(x)), axis=(-2, -1)))
    elif ord in (1, -1, inf, -inf):
        axis = -2 if abs(ord) == 1 else -1
        pick = max_of if ord > 0 else min_of
        y = pick(sum_of(c.abs(x), axis=axis), axis=-1)
    elif ord == "nuc":
        y = sum_of(svdvals(x), axis=-1)
    elif ord in (2, -2):
        y = (max_of if ord > 0 else min_of)(svdvals(x), axis=-1)
    else:
        raise ValueError(f"ord is {ord!r}: 'fro', 'nuc', 1, 2, inf and their negatives "
                         "are known")
    return reshape_to(y, x.shape[:-2] + (1, 1)) if keepdims else y


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """A norm of vectors along axis; ord 0 counts elements other than 0.

    x: numbers of any shape; axis: None, an axis or several; ord: any number. The result
    is of floats.
    Raises IndexError for an axis that x has not.

    >>> pt.linalg.vector_norm(pt.asarray([3.0, 4.0])).tolist()
    5.0
    """
    x = _floats(x, "vector_norm")
    axes = axes_of(axis, x.ndim)
    size = c.abs(x)
    inf = float("inf")
    if ord == inf or ord == -inf:
        y = (max_of if ord > 0 else min_of)(size, axis=axes)
    elif ord == 0:
        y = c.cast(sum_of(c.not_equal(x, 0), axis=axes), size.dtype)
    elif ord == 1:
        y = sum_of(size, axis=axes)
    elif ord == 2:
        y = c.sqrt(sum_of(c.square(size), axis=axes))
    else:
        y = c.pow(sum_of(c.pow(size, ord), axis=axes), 1 / ord)
    if not keepdims:
        return y
    return reshape_to(y, [1 if i in axes else d for i, d in enumerate(x.shape)])


def _tolerance(s, shape, rtol, dtype):
    from ._make import finfo
    if rtol is None:
        rtol = max(shape[-2:]) * finfo(dtype).eps
    rtol = array(rtol, s)
    if rtol.ndim:
        rtol = expand_dims(rtol, rtol.ndim)
    return c.multiply(max_of(s, axis=-1, keepdims=True), rtol)


def matrix_rank(x, /, *, rtol=None):
    """How many singular values are above rtol times the largest one.

    x: numbers, [..., m, n]; rtol: None, a number or an array of shape [...]. The result
    is of int64, [...].
    Raises ValueError for other shapes.

    >>> pt.linalg.matrix_rank(pt.ones((3, 3))).tolist()
    1
    """
    x = _matrix(x, "matrix_rank")
    s = svdvals(x)
    if not s.shape[-1]:
        return c.full(x.shape[:-2], 0, c.int64, x.device)
    return sum_of(c.greater(s, _tolerance(s, x.shape, rtol, x.dtype)), axis=-1)


def pinv(x, /, *, rtol=None):
    """The pseudo-inverse, of singular values above rtol times the largest one.

    x: numbers, [..., m, n]; rtol: None, a number or an array of shape [...]. The result
    is [..., n, m].
    Raises ValueError for other shapes.

    >>> pt.linalg.pinv(pt.ones((3, 2))).shape
    (2, 3)
    """
    x = _matrix(x, "pinv")
    if not x.size:
        return c.full(x.shape[:-2] + (x.shape[-1], x.shape[-2]), 0, x.dtype, x.device)
    u, s, vh = svd(x, full_matrices=False)
    kept = c.greater(s, _tolerance(s, x.shape, rtol, x.dtype))
    inverse = c.where(kept, c.divide(1, s), c.number(0, s))
    left = c.multiply(_conj_transpose(vh), expand_dims(inverse, s.ndim - 1))
    return matmul(left, _conj_transpose(u))


def cross(x1, x2, /, *, axis=-1):
    """The cross product of vectors of three elements along axis.

    x1, x2: numbers of shapes that broadcast, 3 along axis.
    Raises ValueError for another extent, IndexError for an axis that they have not.

    >>> pt.linalg.cross(pt.asarray([1, 0, 0]), pt.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    need_array(x1, "x1"), need_array(x2, "x2")
    a, b = axis_of(axis, x1.ndim), axis_of(axis, x2.ndim)
    if x1.shape[a] != 3 or x2.shape[b] != 3:
        raise ValueError(f"axis {axis} has {x1.shape[a]} and {x2.shape[b]} elements, "
                         "not 3")
    shape = broadcast_shapes(x1.shape, x2.shape)
    dtype = c.promote(x1.dtype, x2.dtype)
    p = moveaxis(broadcast_to(c.cast(x1, dtype), shape), axis, 0)
    q = moveaxis(broadcast_to(c.cast(x2, dtype), shape), axis, 0)

    def part(i, j):
        return c.subtract(c.multiply(p[i], q[j]), c.multiply(p[j], q[i]))
    return moveaxis(stack([part(1, 2), part(2, 0), part(0, 1)]), 0, axis)


_streams.install(globals(), ("linalg", "_linear"), __name__)
