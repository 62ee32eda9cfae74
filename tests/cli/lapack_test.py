#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions of LAPACK and cuSOLVER that JAX calls by name and that no row is: each by
what defines its results, on llvm and ref, of real and complex matrices, alone and in
batches. Exits 77 without numpy."""
import os
import pathlib
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
from program import Program, call, check, finish, run

rng = np.random.default_rng(36)
LETTERS = {np.float32: "s", np.float64: "d", np.complex64: "c", np.complex128: "z"}


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


class Of:
    """Matrices of one element type and batch."""

    def __init__(self, dtype, batch):
        self.dtype, self.batch = dtype, batch
        self.real = np.float32 if dtype in (np.float32, np.complex64) else np.float64
        self.eps = 1e-4 if self.real == np.float32 else 1e-11
        self.is_complex = dtype in (np.complex64, np.complex128)
        self.letter = LETTERS[dtype]

    def random(self, *shape):
        x = rng.standard_normal(self.batch + shape)
        if self.is_complex:
            x = x + 1j * rng.standard_normal(self.batch + shape)
        return x.astype(self.dtype)

    def empty(self, *shape, like=None):
        return np.empty(self.batch + shape, like or self.dtype)

    def unit(self, n):
        return np.broadcast_to(np.eye(n, dtype=self.dtype), self.batch + (n, n))

    def near(self, x, y, factor=1):
        return x.shape == y.shape and bool(
            np.all(np.abs(x - y) <= factor * self.eps * (1 + np.abs(y).max(initial=0))))

    def info(self):
        return self.empty(like=np.int32)


def reflections(o, a, tau, rows):
    """The product of 1 - tau v v^H, v below the diagonal of |a|."""
    q = np.array(o.unit(rows))
    for k in range(tau.shape[-1]):
        v = np.zeros(o.batch + (rows,), o.dtype)
        v[..., k] = 1
        v[..., k + 1:] = a[..., k + 1:, k]
        q = q - tau[..., k, None, None] * (q @ v[..., None]) * v.conj()[..., None, :]
    return q


def blocks(o, t, w):
    """Whether |t| is a triangle but for standard blocks of two, with values |w|."""
    n = t.shape[-1]
    if not o.near(np.tril(t, -2), 0 * t):
        return False
    for at in np.ndindex(*o.batch):
        k = 0
        while k < n:
            below = t[at][k + 1, k] if k + 1 < n else 0
            if below == 0:
                if not o.near(w[at][k:k + 1], t[at][k, k:k + 1] + 0j):
                    return False
                k += 1
                continue
            x, y = t[at][k, k], t[at][k, k + 1]
            pair = x + 1j * np.sqrt(np.abs(below * y)) * np.array([1, -1])
            if x != t[at][k + 1, k + 1] or below * y >= 0 or not o.near(w[at][k:k + 2], pair):
                return False
            k += 2
    return True


def schur(o):
    """Real forms of matrices whose values are pairs, real, equal, or of a triangle."""
    n = 7
    kinds = [o.random(n, n), o.random(1, 1), o.random(2, 2)]
    turn = np.zeros((n, n))
    turn[np.arange(n), (np.arange(n) + 1) % n] = 1  # a permutation: shifts must differ
    kinds.append(np.broadcast_to(turn, o.batch + (n, n)).astype(o.dtype))
    kinds.append(np.triu(o.random(n, n)))
    kinds.append(np.zeros(o.batch + (3, 3), o.dtype))
    jordan = np.diag(np.full(n, 2.0)) + np.diag(np.ones(n - 1), 1)
    kinds.append(np.broadcast_to(jordan, o.batch + (n, n)).astype(o.dtype))
    p = Program(*kinds)
    for i, a in enumerate(kinds):
        m = a.shape[-1]
        real = [] if o.is_complex else [o.empty(m)]
        results = [a, a, o.empty(m), *real, o.info(), o.info()]

        def right(t, z, *w, a=a):
            values = w[0] if o.is_complex else w[0] + 1j * w[1]
            shaped = (o.near(np.tril(t, -1), 0 * t) if o.is_complex else blocks(o, t, values))
            return (shaped and o.near(z @ t @ adjoint(z), a)
                    and o.near(z @ adjoint(z), o.unit(z.shape[-1])))
        p.add(call(f"lapack_{o.letter}gees_ffi", [(f"%a{i}", a)], results,
                   "mode = 86 : ui8, sort = 78 : ui8"), *[(r, right) for r in results])
    p.run()


def eig(o):
    """cuSOLVER's and MAGMA's forms."""
    n = 6
    a = o.random(n, n)
    whole = np.complex64 if o.real == np.float32 else np.complex128
    p = Program(a)

    def right(w, left, v):
        if w.dtype != a.dtype and left.dtype == a.dtype:  # pairs packed in real columns
            left, v = ([np.where(w.imag[..., None, :] > 0, x + 1j * np.roll(x, -1, -1), np.where(
                w.imag[..., None, :] < 0, np.roll(x, 1, -1) - 1j * x, x)) for x in (left, v)])
        return o.near(a @ v, v * w[..., None, :]) and o.near(
            adjoint(left) @ a, w[..., :, None] * adjoint(left))
    results = [a, o.empty(n, like=whole), a, a, o.info()]
    p.add(call("cusolver_geev_ffi", [("%a0", a)], results, "left = true, right = true"),
          *[(r, lambda _, w, left, v, __: right(w, left, v)) for r in results])
    if o.is_complex:
        results = [o.empty(n), a, a, o.info()]
        p.add(call("cuhybrid_eig_comp", [("%a0", a)], results, 'left = true, magma = "auto"'),
              *[(r, lambda w, left, v, _: right(w, left, v)) for r in results])
    else:
        vectors = o.empty(n, n, like=whole)
        results = [o.empty(n), o.empty(n), vectors, vectors, o.info()]

        def conjugate(re, im, left, v, _):
            for at in np.ndindex(*o.batch):
                for k in range(n):
                    if im[at][k] > 0 and not np.array_equal(v[at][:, k], v[at][:, k + 1].conj()):
                        return False
                    if im[at][k] == 0 and v[at][:, k].imag.any():
                        return False
            return right(re + 1j * im, left, v)
        p.add(call("cuhybrid_eig_real", [("%a0", a)], results), *[
            (r, conjugate) for r in results])
    p.run()


def pivoted(o):
    """geqp3, ormqr from both sides, and columns that stay in front."""
    tall, wide, c = o.random(6, 4), o.random(3, 5), o.random(6, 3)
    free = [np.zeros(o.batch + (n,), np.int32) for n in (4, 5)]
    held = np.zeros(o.batch + (4,), np.int32)
    held[..., 2] = 1
    p = Program(tall, wide, c, *free, held, np.swapaxes(c, -1, -2).copy())
    for v, a, order, given in (("%a0", tall, "%a3", free[0]), ("%a1", wide, "%a4", free[1]),
                               ("%a0", tall, "%a5", held)):
        m, n = a.shape[-2:]
        results = [a, given, o.empty(min(m, n))]

        def right(y, places, tau, a=a, m=m, given=given):
            picked = np.take_along_axis(a, places[..., None, :].astype(np.int64) - 1, axis=-1)
            sizes = np.abs(np.diagonal(y, axis1=-2, axis2=-1))
            begin = int(np.count_nonzero(given[(0,) * len(o.batch)]))
            falls = bool((np.diff(sizes[..., begin:]) <= 1e-5).all())
            front = begin == 0 or bool((places[..., 0] == 3).all())
            return falls and front and o.near(
                reflections(o, y, tau, m) @ np.triu(y), picked)
        p.add(call(f"lapack_{o.letter}geqp3_ffi", [(v, a), (order, given)], results),
              *[(r, right) for r in results])
    tau = o.random(4)
    p.inputs = (*p.inputs, tau)
    q = reflections(o, tall, tau, 6)
    kind = "unm" if o.is_complex else "orm"
    for left in (True, False):
        for turned in (True, False):
            operand = ("%a2", c) if left else ("%a6", p.inputs[6])
            f = adjoint(q) if turned else q
            want = (f @ c if left else p.inputs[6] @ f).astype(o.dtype)
            names = (f"lapack_{o.letter}{kind}qr_ffi", "cusolver_ormqr_ffi")
            p.add(call(names[left], [("%a0", tall), ("%a7", tau), operand], [want],
                       f"left = {str(left).lower()}, transpose = {str(turned).lower()}"),
                  (want, lambda got, y=want: o.near(got, y)))
    p.run()


def tridiagonal(o):
    n = 6
    s = o.random(n, n)
    s = ((s + adjoint(s)) / 2).astype(o.dtype)
    dl, d, du, b = o.random(n), o.random(n), o.random(n), o.random(n, 2)
    kind = "he" if o.is_complex else "sy"
    # Each row's numbers add up to 0: singular, and solved all the same.
    path = np.full_like(d, 2)
    path[..., [0, -1]] = 1
    p = Program(s, dl, d, du, b, path, np.full_like(d, -1))
    for uplo, lower in ((76, True), (85, False)):
        results = [s, o.empty(n, like=o.real), o.empty(n - 1, like=o.real), o.empty(n - 1),
                   o.info()]

        def right(y, main, beside, tau, _, lower=lower):
            t = np.zeros(o.batch + (n, n), o.dtype)
            for k in range(n):
                t[..., k, k] = main[..., k]
                if k:
                    t[..., k, k - 1] = t[..., k - 1, k] = beside[..., k - 1]
            # Reflections of an upper half are those of a lower one seen from the end.
            if not lower:
                y, tau = y[..., ::-1, ::-1], tau[..., ::-1]
            q = np.array(o.unit(n))
            q[..., 1:, 1:] = reflections(o, y[..., 1:, :], tau, n - 1)
            if not lower:
                q = q[..., ::-1, ::-1]
            return o.near(q @ t @ adjoint(q), s)
        p.add(call(f"lapack_{o.letter}{kind}trd_ffi", [("%a0", s)], results,
                   f"uplo = {uplo} : ui8"), *[(r, right) for r in results])
    a = np.zeros(o.batch + (n, n), o.dtype)
    for k in range(n):
        a[..., k, k] = d[..., k]
        if k:
            a[..., k, k - 1], a[..., k - 1, k] = dl[..., k], du[..., k - 1]
    operands = [("%a1", dl), ("%a2", d), ("%a3", du), ("%a4", b)]
    p.add(call("tridiagonal_solve_perturbed_ffi", operands, [b]),
          (b, lambda x: o.near(a @ x, b, 1 + np.abs(x).max())))
    operands = [("%a6", d), ("%a5", d), ("%a6", d), ("%a4", b)]
    p.add(call("cu_tridiagonal_solve_perturbed", operands, [b]),
          (b, lambda x: bool(np.isfinite(x).all())))
    p.run()


def products(o):
    """cuSOLVER's syrk, JAX's cholesky_update, gesvd of a wide matrix in rows."""
    n = 4
    a, c, w = o.random(n, 3), o.random(n, n), o.random(n)
    upper = adjoint(np.linalg.cholesky(c @ adjoint(c) + np.eye(n))).astype(o.dtype)
    two, three = np.array(2, o.dtype), np.array(3, o.dtype)
    p = Program(a, c, two, three, upper, w)
    operands = [("%a0", a), ("%a1", c), ("%a2", two), ("%a3", three)]
    p.add(call("cusolver_syrk_ffi", operands, [c], "transpose = false"),
          (c, lambda y: o.near(y, 2 * a @ a.swapaxes(-1, -2) + 3 * c)))
    turned = np.swapaxes(a, -1, -2).copy()
    p.inputs = (*p.inputs, turned)
    operands[0] = ("%a6", turned)
    p.add(call("cusolver_syrk_ffi", operands, [c], "transpose = true"),
          (c, lambda y: o.near(y, 2 * a @ a.swapaxes(-1, -2) + 3 * c)))
    if not o.is_complex:
        p.add(call("cu_cholesky_update_ffi", [("%a4", upper), ("%a5", w)], [upper, w]),
              (upper, lambda y, _: o.near(
                  adjoint(y) @ y, adjoint(upper) @ upper + w[..., None] * w[..., None, :])
               and o.near(np.tril(y, -1), 0 * y)), (w, lambda *_: True))
    for flag in (True, False):
        results = [turned, o.empty(3, like=o.real), o.empty(3, 3), o.empty(3, n), o.info()]
        if flag:
            results[2], results[3] = results[3], results[2]

        def right(_, s, x, y, __, flag=flag):
            u, v = (y, x) if flag else (x, y)
            return o.near((u * s[..., None, :]) @ v, turned)
        p.add(call("cusolver_gesvd_ffi", [("%a6", turned)], results, "compute_uv = true, "
                   f"full_matrices = false, transposed = {str(flag).lower()}"),
              *[(r, right) for r in results])
    p.run()


def factors(o):
    """Complex matrices of larger sizes than a block, both halves of Hermitian ones."""
    n = 40
    a, b = o.random(n, n), o.random(n, 3)
    s = (a @ adjoint(a) + n * o.unit(n)).astype(o.dtype)
    h = ((a + adjoint(a)) / 2).astype(o.dtype)
    kind = ("he", "un") if o.is_complex else ("sy", "or")
    p = Program(a, b, s, h)
    for uplo in (76, 85):
        results = [h, o.empty(n, like=o.real), o.info()]
        p.add(call(f"lapack_{o.letter}{kind[0]}evd_ffi", [("%a3", h)], results,
                   f"mode = 86 : ui8, uplo = {uplo} : ui8"),
              *[(r, lambda v, w, _: o.near(h @ v, v * w[..., None, :], 10)
                 and o.near(adjoint(v) @ v, o.unit(n), 10)) for r in results])
        p.add(call(f"lapack_{o.letter}potrf_ffi", [("%a2", s)], [s, o.info()],
                   f"uplo = {uplo} : ui8"),
              *[(r, lambda y, i, low=uplo == 76: o.near(
                  np.tril(y) @ adjoint(np.tril(y)) if low
                  else adjoint(np.triu(y)) @ np.triu(y), s, 10) and not i.any())
                for r in (s, o.info())])
    results = [a, o.empty(n)]
    p.add(call(f"lapack_{o.letter}geqrf_ffi", [("%a0", a)], results),
          *[(r, lambda y, tau: o.near(reflections(o, y, tau, n) @ np.triu(y), a, 10))
            for r in results])
    results = [a, o.empty(n - 1), o.info()]

    def similar(y, tau, _):
        q = np.array(o.unit(n))
        q[..., 1:, 1:] = reflections(o, y[..., 1:, :-1], tau, n - 1)
        return o.near(q @ np.triu(y, -1) @ adjoint(q), a, 10)
    p.add(call(f"lapack_{o.letter}gehrd_ffi", [("%a0", a)], results,
               f"high = {n} : i32, low = 1 : i32"), *[(r, similar) for r in results])
    p.run()


def threefry():
    """The vectors of the paper (Salmon et al., 2011)."""
    words = np.array([[0, 0, 0, 0], [2**32 - 1] * 4,
                      [0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3]], np.uint32)
    want = np.array([[0x6b200159, 0x99ba4efe], [0x1cb996fc, 0xbb002be7],
                     [0xc4923a9c, 0x483df7a0]], np.uint32)
    columns = [np.ascontiguousarray(c) for c in words.T]
    p = Program(*columns)
    for name in ("cu_threefry2x32_ffi", "hip_threefry2x32_ffi"):
        p.add(call(name, [(f"%a{i}", c) for i, c in enumerate(columns)], [want[:, 0], want[:, 1]]),
              *[(np.ascontiguousarray(want[:, i]),
                 lambda *y, i=i: np.array_equal(y[i], want[:, i])) for i in range(2)])
    p.lines.append("%empty = stablehlo.custom_call @AllocateBuffer() : () -> tensor<2x3xf32>")
    p.run()


def tall():
    """Room to work in is for what there is, not for a square of the longest extent."""
    z = (rng.standard_normal((200000, 3)) + 1j).astype(np.complex64)
    p = Program(z)
    results = [z, np.empty(3, np.complex64)]
    p.add(call("lapack_cgeqrf_ffi", [("%a0", z)], results),
          *[(r, lambda y, _: bool(abs(abs(y[0, 0]) / np.linalg.norm(z[:, 0]) - 1) < 1e-3))
            for r in results])
    p.run()


def not_finite():
    """NaN, not an endless loop."""
    a = np.ones((4, 4), np.float32)
    a[1, 2] = np.inf
    p = Program(a)
    w = np.empty(4, np.float32)
    results = [a, a, w, w, np.empty((), np.int32), np.empty((), np.int32)]
    p.add(call("lapack_sgees_ffi", [("%a0", a)], results),
          *[(r, lambda t, *_: bool(np.isnan(t).all())) for r in results])
    z = a.astype(np.complex64)
    p.inputs = (a, z)
    results = [z, w, np.empty((), np.int32)]
    p.add(call("lapack_cheevd_ffi", [("%a1", z)], results, "mode = 86 : ui8, uplo = 76 : ui8"),
          *[(r, lambda v, e, _: bool(np.isnan(v).all() and np.isnan(e).all())) for r in results])
    results = [z, w, z, z, np.empty((), np.int32)]
    p.add(call("lapack_cgesdd_ffi", [("%a1", z)], results, "mode = 83 : ui8"),
          *[(r, lambda _, s, u, *more: bool(np.isnan(s).all() and np.isnan(u).all()))
            for r in results])
    p.run()


def refused():
    x, y = np.empty((4, 4), np.float32), np.empty((3, 5), np.float32)
    n = np.empty(4, np.float32)
    for target, operands, results, said in (
            ("lapack_sgees_ffi", [y], [y, y], "square matrices"),
            ("lapack_sgees_ffi", [x], [x, x], "a triangle, vectors, values"),
            ("lapack_sgeqp3_ffi", [x, n], [x, n, n], "operand 1 does not fit"),
            ("lapack_sormqr_ffi", [x, n, y], [y], "operand 2 does not fit")):
        p = Program(*operands)
        p.add(call(target, [(f"%a{i}", a) for i, a in enumerate(operands)], results),
              *[(r, lambda *_: True) for r in results])
        out = run(p.text(), operands, "ref")
        check(target, isinstance(out, str) and said in out, str(out))


def every():
    for kind in LETTERS:
        for outer in ((), (2, 1)):
            of = Of(kind, outer)
            schur(of)
            eig(of)
            pivoted(of)
            tridiagonal(of)
            products(of)
            factors(of)
    not_finite()
    tall()


# With LAPACK where it is, then by functions of Pestle's own.
every()
backends = os.environ.get("PESTLE_BACKEND_PATH",
                          f"{os.environ['PESTLE_BUILD_DIR']}/backends")
with tempfile.TemporaryDirectory() as plain:
    for folder in backends.split(":"):
        for file in pathlib.Path(folder).glob("libpestle-*"):
            if "-llvm" in file.name or "-ref" in file.name:
                (pathlib.Path(plain) / file.name).symlink_to(file.resolve())
    os.environ["PESTLE_BACKEND_PATH"] = plain
    every()
    os.environ["PESTLE_BACKEND_PATH"] = backends
threefry()
refused()
finish()
