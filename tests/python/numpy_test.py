#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arrays in from NumPy and out to it, and the functions of the namespace beside
NumPy's on the same values."""

import sys

from case import raises, run

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)
import pestle as pt

RNG = np.random.default_rng(1)


def same(ours, theirs, rtol=2e-6, atol=1e-6):
    ours = np.asarray(ours)
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


def test_in_and_out():
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                 "uint64", "float16", "float32", "float64", "complex64", "complex128"):
        x = (RNG.random((3, 4)) * 9).astype(name)
        for view in (x, x.T, x[::-1, ::2], x[:0], x[1, 1]):
            y = pt.asarray(view)
            assert y.dtype.name == name and y.shape == view.shape, name
            assert (np.asarray(y) == view).all() and np.asarray(y).dtype == name
    raises(TypeError, lambda: pt.asarray(np.array(["a"])), "no dtype")


def test_copies():
    x = np.ones(4, np.float32)
    copied, seen = pt.asarray(x), pt.asarray(x, copy=False, device=pt.cpu)
    x[0] = 7
    assert copied[0].item() == 1 and seen[0].item() == 7
    assert not np.asarray(seen).flags.writeable
    for b in pt.backends.list():
        if b.available and b.device_type == "gpu":
            raises(ValueError, lambda d=b.name: pt.asarray(x, copy=False, device=d),
                   b.name, "by a copy alone")
    raises(ValueError, lambda: pt.asarray([1], copy=False), "copy")


def test_operators_with_numpy():
    x = np.arange(3, dtype=np.float32)
    for y in (x + pt.ones((3,)), pt.ones((3,)) + x):
        assert isinstance(y, pt.Array) and y.tolist() == [1, 2, 3]


UNARY = ("abs ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log1p "
         "negative positive real round sign sin sinh sqrt square tan tanh trunc "
         "log log2 log10 cbrt exp2 signbit reciprocal").split()
BINARY = ("add subtract multiply divide maximum minimum floor_divide remainder hypot "
          "logaddexp copysign nextafter less equal atan2:arctan2 fmod").split()


def test_elementwise():
    x, y = (RNG.random(50).astype("f4") * 3 + 0.1 for _ in range(2))
    for name in UNARY:
        same(getattr(pt, name)(pt.asarray(x)), getattr(np, name)(x))
    for name in BINARY:
        ours, _, theirs = name.partition(":")
        same(getattr(pt, ours)(pt.asarray(x), pt.asarray(-y if ours in (
            "floor_divide", "remainder", "copysign") else y)),
             getattr(np, theirs or ours)(x, -y if ours in (
                 "floor_divide", "remainder", "copysign") else y))
    u = (x - 1.6) / 1.6
    for ours, theirs in (("asin", "arcsin"), ("acos", "arccos"), ("atanh", "arctanh"),
                         ("asinh", "arcsinh"), ("atan", "arctan")):
        same(getattr(pt, ours)(pt.asarray(u)), getattr(np, theirs)(u))


def test_reductions():
    x = RNG.random((3, 4, 5)).astype("f4")
    p = pt.asarray(x)
    for name in ("sum", "prod", "mean", "var", "std", "max", "min", "argmax", "argmin"):
        for axis in (None, 0, -1) + (() if name.startswith("arg") else ((0, 2),)):
            for keep in (False, True):
                same(getattr(pt, name)(p, axis=axis, keepdims=keep),
                     np.asarray(getattr(np, name)(x, axis=axis, keepdims=keep)))
    same(pt.cumulative_sum(p, axis=1), np.cumsum(x, 1))
    same(pt.sort(p, axis=1), np.sort(x, 1))
    same(pt.argsort(p, axis=0), np.argsort(x, 0))
    same(pt.logsumexp(p, axis=1), np.log(np.exp(x).sum(1)))


def test_sums_of_nothing():
    """0, not -0, whatever they are written as; sums of -0 alone stay -0."""
    for dtype in (np.float32, np.float64, np.float16, np.complex64):
        none, rows = pt.zeros((0,), dtype=pt.dtype(dtype)), pt.zeros((2, 0))
        for y in (pt.sum(none), pt.vecdot(none, none), none @ none,
                  pt.tensordot(none, none, axes=1), pt.einsum("i,i->", none, none),
                  pt.einsum("i->", none), pt.linalg.vector_norm(none),
                  pt.sum(rows, axis=1), pt.vecdot(rows, rows), rows @ rows.T,
                  pt.einsum("ij->i", rows), pt.linalg.trace(rows @ rows.T) * 1,
                  pt.count_nonzero(none), pt.cumulative_sum(none, include_initial=True)):
            y = np.asarray(y)
            assert (y == 0).all() and not np.signbit(y.real).any(), (dtype, y)
    zeros = pt.asarray([-0.0, -0.0])
    for y in (pt.sum(zeros), pt.vecdot(zeros, pt.ones((2,))), pt.einsum("i->", zeros)):
        assert np.signbit(np.asarray(y))


def test_lists_of_others():
    """Numbers and arrays of NumPy in lists, by themselves and beside Python's."""
    for value, dtype in (
            ([np.float32(1), 2.5], "float32"), ([np.int8(3), 4], "int8"),
            ([np.True_, False], "bool"), ([np.complex64(1j), 2], "complex64"),
            ([[np.float16(1)], [np.float16(2)]], "float16"),
            ([np.ones(2), np.zeros(2)], "float64"),
            ([np.asarray(1, np.int32), np.asarray(2, np.int32)], "int32"),
            ([np.ones((1, 2), np.float32), [[3, 4]]], "float32"),
            ([np.asarray([1], np.int64), np.asarray([2], np.int64)], "int64")):
        x = pt.asarray(value)
        assert x.dtype.name == dtype, (value, x.dtype)
        assert np.array_equal(np.asarray(x), np.asarray(value)), (value, x)
    assert pt.asarray([np.float32(1.5)] * 2, dtype=pt.float64).dtype == pt.float64
    raises(TypeError, lambda: pt.asarray([np.float32(1), "a"]), "'a'")
    raises(ValueError, lambda: pt.asarray([np.ones(2), np.ones(3)]), "(2,)", "(3,)")


def test_names():
    """Functions of NumPy that the standard lacks, and convolutions."""
    x, y = RNG.normal(size=(3, 4, 5)).astype("f4"), RNG.normal(size=(4, 5)).astype("f4")
    p, q = pt.asarray(x), pt.asarray(y)
    for name, args in (("dot", (x, y.T)), ("dot", (y, x.swapaxes(1, 2))), ("dot", (y[0], y[1])),
                       ("dot", (2.0, y)), ("inner", (x, y)), ("inner", (y[0], y[0])),
                       ("kron", (y, y[:2])), ("kron", (y[0], y)), ("kron", (x, y[0])),
                       ("diagonal", (x,)), ("trace", (x,)), ("diag", (y,)),
                       ("diag", (y[0],)), ("cumsum", (x,)), ("cumsum", (x, 1)),
                       ("cumprod", (x, -1)), ("median", (x,)), ("hstack", ([x, x],)),
                       ("hstack", ([y[0], y[1]],)), ("vstack", ([y[0], y[1]],)),
                       ("vstack", ([x, x],))):
        ours = [[pt.asarray(v) for v in a] if isinstance(a, list) else
                pt.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
        same(getattr(pt, name)(*ours), np.asarray(getattr(np, name)(*args), np.float32))
    for k in (-2, 0, 1):
        same(pt.diag(q[0], k=k), np.diag(y[0], k))
        same(pt.diag(q, k=k), np.diag(y, k))
        same(pt.diagonal(p, offset=k, axis1=2, axis2=0), np.diagonal(x, k, 2, 0))
        same(pt.tri(3, 4, k=k), np.tri(3, 4, k, np.float32))
    for share in (0.0, 0.3, 1.0, np.asarray([0.1, 0.5], np.float32)):
        for axis in (None, 0, -1, (0, 2)):
            for keep in (False, True):
                same(pt.quantile(p, pt.asarray(share) if not isinstance(share, float) else
                                 share, axis=axis, keepdims=keep),
                     np.quantile(x, share, axis=axis, keepdims=keep).astype("f4"))
    same(pt.percentile(p, 30, axis=1), np.percentile(x, 30, axis=1).astype("f4"))
    odd = np.asarray([1, np.nan, np.inf, -np.inf, 2], np.float32)
    assert np.isnan(pt.median(pt.asarray(odd)).item())
    same(pt.nan_to_num(pt.asarray(odd)), np.nan_to_num(odd))
    other = odd + np.float32(1e-6)
    for nan in (False, True):
        same(pt.isclose(pt.asarray(odd), pt.asarray(other), equal_nan=nan),
             np.isclose(odd, other, equal_nan=nan))
        assert bool(pt.allclose(pt.asarray(odd), odd, equal_nan=nan)) is nan
        assert bool(pt.array_equal(pt.asarray(odd), pt.asarray(odd), equal_nan=nan)) is nan
    z = pt.array(q)
    assert z.tolist() == y.tolist() and not z.is_view
    w = RNG.normal(size=(6, 3, 2, 2)).astype("f4")
    image = RNG.normal(size=(2, 7, 6, 4)).astype("f4")
    got = np.asarray(pt.conv(pt.asarray(image), pt.asarray(w), stride=(2, 1),
                             padding=(1, 0), dilation=(1, 2), groups=2))
    wide = np.pad(image, ((0, 0), (1, 1), (0, 0), (0, 0)))
    for n, i, j, o in np.ndindex(*got.shape):
        part = wide[n, 2 * i:2 * i + 3, j:j + 3:2, 2 * (o // 3):2 * (o // 3) + 2]
        assert abs((part * w[o]).sum() - got[n, i, j, o]) < 1e-4
    raises(ValueError, lambda: pt.conv(p, q), "conv()", "(3, 4, 5)", "(4, 5)")
    raises(ValueError, lambda: pt.conv(p, pt.ones((2, 3, 4))), "5 features", "4")
    raises(ValueError, lambda: pt.conv(p, pt.ones((2, 9, 5))), "does not fit")
    raises(ValueError, lambda: pt.quantile(p, 1.5), "1.5")


def test_moving():
    x = RNG.random((2, 3, 4)).astype("f4")
    p = pt.asarray(x)
    same(pt.moveaxis(p, 0, 2), np.moveaxis(x, 0, 2))
    same(pt.roll(p, (1, -2), axis=(1, 2)), np.roll(x, (1, -2), (1, 2)))
    same(pt.tile(p, (2, 1, 2)), np.tile(x, (2, 1, 2)))
    same(pt.repeat(p, 3, axis=1), np.repeat(x, 3, 1))
    same(pt.repeat(p, pt.asarray([1, 0, 2]), axis=1), np.repeat(x, [1, 0, 2], 1))
    same(pt.concat([p, p], axis=1), np.concatenate([x, x], 1))
    same(pt.flip(p, axis=(0, 2)), np.flip(x, (0, 2)))
    same(pt.tril(p, k=1), np.tril(x, 1))
    same(pt.diff(p, axis=1), np.diff(x, axis=1))
    for parts in (2, [1], [0, 3], [9], [3, 1]):
        for ours, theirs in zip(pt.split(p, parts, axis=2), np.split(x, parts, 2)):
            same(ours, theirs)


def test_products():
    a, b = RNG.random((2, 3, 4)).astype("f4"), RNG.random((4, 5)).astype("f4")
    p, q = pt.asarray(a), pt.asarray(b)
    same(p @ q, a @ b)
    same(pt.tensordot(p, q, axes=1), np.tensordot(a, b, 1))
    same(pt.einsum("bij,jk->bki", p, q), np.einsum("bij,jk->bki", a, b))
    same(pt.einsum("bii->b", pt.asarray(a[:, :, :3])), np.einsum("bii->b", a[:, :, :3]))
    same(pt.einsum("ij,kj->", q, q), np.einsum("ij,kj->", b, b), rtol=1e-5)
    same(pt.vecdot(p, p), (a * a).sum(-1))
    v = a[0, 0]
    same(pt.matmul(pt.asarray(v), q), v @ b)


def test_linalg():
    la = pt.linalg
    a = RNG.random((2, 4, 4)).astype("f8") + 3 * np.eye(4)
    p = pt.asarray(a)
    spd = a @ a.transpose(0, 2, 1)
    tight = {"rtol": 1e-9, "atol": 1e-9}
    same(la.inv(p), np.linalg.inv(a), **tight)
    same(la.det(p), np.linalg.det(a), **tight)
    same(la.slogdet(-p)[1], np.linalg.slogdet(-a)[1], **tight)
    same(la.cholesky(pt.asarray(spd)), np.linalg.cholesky(spd), **tight)
    same(la.solve(p, pt.asarray(a[:, :, :2])), np.linalg.solve(a, a[:, :, :2]), **tight)
    same(la.eigvalsh(pt.asarray(spd)), np.linalg.eigvalsh(spd), **tight)
    same(la.svdvals(p), np.linalg.svd(a, compute_uv=False), **tight)
    same(la.pinv(p), np.linalg.pinv(a), **tight)
    q, r = la.qr(p)
    same(q @ r, a, **tight)
    same(la.matrix_norm(p, ord="nuc"), np.linalg.norm(a, "nuc", (1, 2)), **tight)
    same(la.vector_norm(p, axis=1, ord=3), (np.abs(a)**3).sum(1)**(1 / 3), **tight)
    assert la.matrix_rank(pt.ones((3, 3))).item() == 1
    same(la.cross(p[..., :3], p[..., 1:]), np.cross(a[..., :3], a[..., 1:]), **tight)
    same(la.trace(p, offset=1), np.trace(a, 1, 1, 2), **tight)


def test_batches_of_linalg():
    """Batches of one and two axes, of matrices whose rows are exchanged: what there is
    once for each matrix or row is that of its own."""
    la = pt.linalg
    rng = np.random.default_rng(8)
    for batch in ((3,), (2, 3)):
        for n in (2, 5):
            for kind in ("f8", "c16"):
                x = rng.normal(size=batch + (n, n)).astype(kind)
                if kind == "c16":
                    x = x + 1j * rng.normal(size=x.shape)
                h = x + np.conj(np.swapaxes(x, -1, -2))
                p, s = pt.asarray(x), pt.asarray(h)
                loose = {"rtol": 1e-7, "atol": 1e-7}
                same(la.det(p), np.linalg.det(x), **loose)
                same(la.det(s), np.linalg.det(h), **loose)
                sign, size = la.slogdet(p)
                theirs = np.linalg.slogdet(x)
                same(sign, theirs[0], **loose)
                same(size, theirs[1], **loose)
                same(la.inv(p), np.linalg.inv(x), **loose)
                same(la.eigvalsh(s), np.linalg.eigvalsh(h), **loose)
                same(la.svdvals(p), np.linalg.svd(x, compute_uv=False), **loose)
                w, v = la.eigh(s)
                same(s @ v, v * pt.expand_dims(w, axis=-2), **loose)
                q, r = la.qr(p)
                same(q @ r, x, **loose)
                u, d, vh = la.svd(p)
                same((u * pt.expand_dims(d, axis=-2)) @ vh, x, **loose)
                e, f = la.eig(p)
                c16 = pt.astype(p, pt.complex128)
                same(c16 @ f, f * pt.expand_dims(e, axis=-2), **loose)
                same(pt.sum(la.eigvals(p), axis=-1), np.trace(
                    x, axis1=-2, axis2=-1).astype("c16"), **loose)
                # One of a batch that has no factor.
                spd = x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(n)
                bad = (batch[0] - 1,) + (0,) * (len(batch) - 1)
                spd[bad] = -spd[bad]
                y = np.asarray(la.cholesky(pt.asarray(spd)))
                lost = np.isnan(y).any(axis=(-1, -2))
                assert lost[bad] and lost.sum() == 1, (batch, kind, lost)


def test_complex_linalg():
    la = pt.linalg
    a = RNG.random((2, 4, 3)) + 1j * RNG.random((2, 4, 3))
    h = a @ a.conj().transpose(0, 2, 1) + np.eye(4)
    p, s = pt.asarray(a), pt.asarray(h)
    tight = {"rtol": 1e-9, "atol": 1e-9}
    same(la.inv(s), np.linalg.inv(h), **tight)
    same(la.solve(s, p), np.linalg.solve(h, a), **tight)
    same(la.det(s), np.linalg.det(h), **tight)
    same(la.cholesky(s), np.linalg.cholesky(h), **tight)
    same(la.eigvalsh(s), np.linalg.eigvalsh(h), **tight)
    same(la.pinv(p), np.linalg.pinv(a), **tight)
    for full in (False, True):
        u, d, vh = la.svd(p, full_matrices=full)
        k = d.shape[-1]
        same((u[..., :k] * pt.expand_dims(d, -2)) @ vh[..., :k, :], a, **tight)
        q, r = la.qr(p, mode="complete" if full else "reduced")
        same(q @ r, a, **tight)
        same(pt.conj(q.mT) @ q, np.broadcast_to(np.eye(q.shape[-1]), (2,) + q.shape[-1:]
                                                * 2), **tight)
    for x in (h, h.real):
        f = pt.jit(la.eig)
        w, v = f(pt.asarray(np.ascontiguousarray(x)))
        same(pt.astype(pt.asarray(x), v.dtype) @ v,
             np.asarray(v) * np.asarray(w)[:, None, :], **tight)


def test_export_of_each_dtype():
    """What NumPy has a dtype for stays that; all else becomes the least one that has
    its values."""
    others = {"bfloat16": "float32", "int2": "int8", "int4": "int8", "uint2": "uint8",
              "uint4": "uint8"}
    names = [n for n in dir(pt) if type(getattr(pt, n)).__name__ == "dtype"]
    assert len(names) == 30
    for name in names:
        x = pt.astype(pt.asarray([[1, 0, 1], [0, 1, 1]]), name)
        y = pt.asnumpy(x)
        wanted = others.get(name, "float32" if name.startswith("float") and
                            "_" in name else name)
        assert y.dtype.name == wanted, (name, y.dtype)
        # float8_e8m0fnu has no 0.
        assert y.tolist() == [[1, 0, 1], [0, 1, 1]] or "e8m0" in name, (name, y)
        if wanted == name and pt.device().type == "cpu":
            assert np.array(x, copy=False).dtype == y.dtype
        else:
            raises(ValueError, lambda v=x: v.__array__(copy=False), "copy is False")
        assert np.asarray(x, dtype="complex128").dtype == "complex128"
    raises(ValueError, lambda: pt.ones((2,)).__array__("f8", copy=False), "float64")


def test_means_of_narrow_floats():
    """Their sums and counts are no numbers of float16."""
    x = np.full(70000, 1.5, np.float16)
    x[::2] = 2.5
    for name, want in (("mean", 2), ("var", 0.25), ("std", 0.5)):
        got = getattr(pt, name)(pt.asarray(x))
        assert got.dtype == pt.float16 and got.item() == want, (name, got)
    got = pt.mean(pt.asarray(x, dtype=pt.bfloat16))
    assert got.dtype == pt.bfloat16 and got.item() == 2


def test_odd_buffers():
    """In another order of bytes, between other fields, of dtypes without a letter."""
    x = np.arange(6).reshape(2, 3)
    for dtype in (">i4", ">f8", ">u2", ">c8", ">f2"):
        y = pt.asarray(x.astype(dtype))
        assert y.dtype.name == np.dtype(dtype).newbyteorder("=").name
        assert np.array_equal(y, x), dtype
        assert np.array_equal(pt.jit(lambda v: v + v)(x.astype(dtype)), x + x)
    fields = np.zeros(5, [("a", np.int32), ("b", np.int8), ("c", np.float64)])
    fields["a"] = range(5)
    assert pt.asarray(fields["a"]).tolist() == [0, 1, 2, 3, 4]
    raises(ValueError, lambda: pt.asarray(fields["a"], copy=False, device=pt.cpu), "strides")
    for bad in (np.array(["2021-05-27"], "M8[D]"), np.array([None, 1]), np.array(["a"]),
                fields, np.zeros(2, "V3"), np.zeros(2, np.longdouble)):
        raises(TypeError, lambda v=bad: pt.asarray(v), "no dtype")
    try:
        import ml_dtypes
    except ImportError:
        return
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "int2",
                 "float4_e2m1fn", "float6_e2m3fn", "float8_e8m0fnu"):
        y = pt.asarray(np.array([[1, 2], [1, 1]]).astype(getattr(ml_dtypes, name)).T)
        assert y.dtype.name == name and y.tolist() == [[1, 1], [
            -2 if name == "int2" else 2, 1]], (name, y)


class Marked:
    """As torch's tensors, whose memory may have other values than they."""

    def __init__(self, x, neg=False, conj=False):
        self.x, self.neg, self.conj = x, neg, conj

    def is_neg(self):
        return self.neg

    def is_conj(self):
        return self.conj

    def __dlpack__(self, **keywords):
        return self.x.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def test_memory_with_other_values():
    x = np.array([1 + 2j, 3 - 1j])
    assert pt.from_dlpack(Marked(x)).tolist() == x.tolist()
    for use in (pt.from_dlpack, pt.asarray, pt.jit(lambda v: v)):
        raises(BufferError, lambda f=use: f(Marked(x, neg=True)), "resolve_neg()")
        raises(BufferError, lambda f=use: f(Marked(x, conj=True)), "resolve_conj()")


def test_named_axes():
    rng = np.random.default_rng(3)
    shapes = ([(4, 3), (4, 3)], [(2, 4, 3), (4, 3)], [(3, 3), (3, 3)], [(5, 3, 3), (1, 3, 3)])
    right = 0
    for text in ("...i,...i->...", "...,...", "...ij,jk->...ik", "...ij,...jk", "...",
                 "...i->i...", "...ii->...i", "a...,b...->ab...", "i...,i...->...i", "ii"):
        for shape in shapes:
            x = [rng.standard_normal(s).astype("f4") for s in shape]
            x = x[:text.split("->")[0].count(",") + 1]
            try:
                want = np.einsum(text, *x)
            except ValueError:
                raises(ValueError, lambda t=text, v=x: pt.einsum(t, *map(pt.asarray, v)))
                continue
            try:
                got = pt.einsum(text, *map(pt.asarray, x))
            except ValueError:
                # Letters of one element broadcast in NumPy alone.
                assert text == "i...,i...->...i" and shape[1][0] == 1, (text, shape)
                continue
            np.testing.assert_allclose(got, want, 1e-4, 1e-5)
            right += 1
    assert right > 25, right
    for text, word in (("i$->i", "no letter"), ("ij->ii", "twice"), ("ij->z", "no operand"),
                       ("i..->i", "no letter"), ("i...->i", "no ...")):
        raises(ValueError, lambda t=text: pt.einsum(t, pt.ones((3, 3))), word)


def test_edges_of_numbers():
    tiny = np.float32([1e-45, 1e-44, 1e-40, 1e-38, 1e-37, 1000])
    np.testing.assert_allclose(pt.log10(pt.asarray(tiny)), np.log10(tiny), 1e-6)
    tiny = np.array([1e-320, 5e-324, 1e-310, 1e-300, 0.001])
    np.testing.assert_allclose(pt.log10(pt.asarray(tiny)), np.log10(tiny), 1e-14)
    nan = float("nan")
    for side in ("left", "right"):
        a, v = np.float32([1, 2, nan, nan]), np.float32([2, nan, 0, 9])
        assert np.array_equal(pt.searchsorted(pt.asarray(a), pt.asarray(v), side=side),
                              np.searchsorted(a, v, side=side))


def test_bool_of_complex():
    x = np.array([0, 1, 1j, complex(0, float("nan")), -0.0])
    for dtype in ("complex64", "complex128"):
        p = pt.asarray(x.astype(dtype))
        wanted = x.astype(bool).tolist()
        assert pt.astype(p, pt.bool).tolist() == wanted
        assert pt.logical_not(pt.logical_not(p)).tolist() == wanted
        assert pt.asarray(p, dtype=pt.bool).tolist() == wanted
        assert pt.any(p[2:3]).item() and pt.count_nonzero(p).item() == 3


def test_no_imaginary_part_is_dropped():
    z = pt.asarray([1 + 2j, 3 - 1j])
    for make in (lambda: pt.astype(z, pt.float32), lambda: pt.asarray(z, dtype="float64"),
                 lambda: pt.sum(z, dtype=pt.float32), lambda: pt.fft.rfft(z),
                 lambda: pt.fft.ihfft(z), lambda: pt.prod(z, dtype=pt.float64),
                 lambda: pt.cumulative_sum(z, dtype=pt.float32),
                 lambda: pt.full((2,), z[0], dtype=pt.float32),
                 lambda: pt.full((2,), 1j, dtype=pt.float32),
                 lambda: pt.full_like(pt.ones((2,)), 1j),
                 lambda: pt.asarray([1j], dtype=pt.float32),
                 lambda: pt.ones((2,)).at[0].set(1j),
                 lambda: pt.ones((2,)).at[0].add(z[0]),
                 lambda: pt.ones((2,)).__setitem__(0, 1j),
                 lambda: pt.linspace(1j, 2, 3, dtype=pt.float32),
                 lambda: pt.pad(pt.ones((2,)), 1, 1j),
                 lambda: pt.linalg.trace(pt.asarray([[1j]]), dtype=pt.float32),
                 lambda: pt.random.uniform(pt.random.key(0), (2,), minval=1j)):
        try:
            y = make()
        except TypeError as error:
            assert str(error)
        else:
            raise AssertionError(f"{y!r} was made of complex numbers")


REAL = ("rfft", "ihfft", "rfftn")


def test_fft():
    rng = np.random.default_rng(2)
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        for dtype in ("f4", "f8", "c8", "c16", "i4", "?", "f2"):
            if name in REAL and dtype[0] == "c":
                continue
            x = (rng.standard_normal((5, 8)) * 4).astype(dtype)
            if dtype[0] == "c":
                x = x + 1j * rng.standard_normal((5, 8)).astype(dtype)
            n = {"f4": None, "f8": 5, "c8": 8, "c16": 11, "i4": 3, "?": 2, "f2": 1}[dtype]
            for axis in (0, -1):
                for norm in ("backward", "ortho", "forward"):
                    if n == 1 and name in ("irfft", "hfft"):
                        continue
                    ours = pt.asnumpy(getattr(pt.fft, name)(pt.asarray(x), n=n, axis=axis,
                                                            norm=norm))
                    theirs = getattr(np.fft, name)(x, n, axis, norm)
                    assert np.iscomplexobj(ours) == np.iscomplexobj(theirs), name
                    same(ours, theirs, rtol=1e-3, atol=1e-3 * abs(theirs).max())
    for name in ("fftn", "ifftn", "rfftn", "irfftn"):
        x = rng.standard_normal((2, 4, 6))
        x = x if name in REAL else x + 1j * rng.standard_normal((2, 4, 6))
        for s, axes in ((None, None), ((3, 5), (0, 2)), (None, (1,)), ((4, 4), (2, 1))):
            ours = getattr(pt.fft, name)(pt.asarray(x), s=s, axes=axes, norm="ortho")
            same(ours, getattr(np.fft, name)(x, s, axes, "ortho"), rtol=1e-9, atol=1e-9)
    for n in (1, 2, 5, 8):
        same(pt.fft.fftfreq(n, d=0.5), np.fft.fftfreq(n, 0.5))
        same(pt.fft.rfftfreq(n), np.fft.rfftfreq(n))
        x = rng.standard_normal((n, 3))
        for name in ("fftshift", "ifftshift"):
            for axes in (None, 0, (1,)):
                same(getattr(pt.fft, name)(pt.asarray(x), axes=axes),
                     getattr(np.fft, name)(x, axes))


def test_searches():
    x = np.array([[0, 3, 3], [1, 0, 2]])
    p = pt.asarray(x)
    for ours, theirs in zip(pt.nonzero(p), np.nonzero(x)):
        same(ours, theirs)
    y = pt.unique_all(p)
    values, first, inverse, counts = np.unique(x, True, True, True)
    same(y.values, values), same(y.counts, counts), same(y.indices, first)
    same(y.inverse_indices, inverse.reshape(x.shape))
    edges, probes = np.array([1., 2, 2, 5]), np.array([0., 2, 3, 9])
    for side in ("left", "right"):
        same(pt.searchsorted(pt.asarray(edges), pt.asarray(probes), side=side),
             np.searchsorted(edges, probes, side))
    same(pt.isin(p, pt.asarray([3, 1])), np.isin(x, [3, 1]))
    same(pt.take_along_axis(p, pt.asarray([[2], [0]]), axis=1),
         np.take_along_axis(x, np.array([[2], [0]]), 1))


def test_keys_outside():
    """What the host knows is an IndexError; of arrays the nearest element is read, and
    nothing is written."""
    x = pt.asarray([[1, 2, 3], [4, 5, 6]])
    for key in ([0, 3], np.array([-4, 1]), [[1], [9]], np.int64(3)):
        for key in (key, (Ellipsis, key) if not isinstance(key, list) else (0, key)):
            if key is not None and not isinstance(key, tuple):
                key = (slice(None), key)
            raises(IndexError, lambda k=key: x[k], "outside of axis 1", "3 elements")
            raises(IndexError, lambda k=key: x.at[k].set(0), "outside of axis 1")
    for device in ("llvm", "ref"):
        y = pt.copy(x, device)
        i = pt.asarray([0, 7, -9, -1], device=device)
        assert y[:, i].tolist() == [[1, 3, 1, 3], [4, 6, 4, 6]]
        assert y.at[:, i].set(0).tolist() == [[0, 2, 0], [0, 5, 0]]
        assert y.at[1, i].add(10).tolist() == [[1, 2, 3], [14, 5, 16]]
        assert y.at[i, i].set(7).tolist() == [[7, 2, 3], [4, 5, 7]]
        y[i] = 9
        assert y.tolist() == [[9, 9, 9], [9, 9, 9]]


def test_keys():
    x = RNG.random((4, 5, 6)).astype("f4")
    p = pt.asarray(x)
    i, j = np.array([1, -1, 2]), np.array([[0], [3]])
    mask = x[:, 0, 0] > 0.5
    keys = [(i, slice(None), i), (slice(None), i, j), (i, 0), (0, slice(1, 3), i),
            (None, i), (mask,), (slice(None), None, i), (Ellipsis, i), (mask, 0),
            (slice(None, 3), 3, Ellipsis, i), (0, Ellipsis, i), (i, 0, Ellipsis, i),
            (slice(1, 3), i, Ellipsis, i), (1, Ellipsis, mask[:1].repeat(5), i[:1])]
    for key in keys:
        ours = tuple(pt.asarray(k) if isinstance(k, np.ndarray) else k for k in key)
        same(p[ours], x[key])
        y, z = pt.asarray(x), x.copy()
        y[ours] = 2
        z[key] = 2
        same(y, z)


run(globals())
