# SPDX-License-Identifier: Apache-2.0
"""What bare_root_long_test.py runs inside of a root that has Python and nothing else:
the lines that docs/python.md begins with, jit, and every function of linalg, of four
dtypes, held against identities, with numbers of pestle.random alone."""

import sys

import pestle as pt

assert "numpy" not in sys.modules
DTYPES = ((pt.float32, 2e-4), (pt.float64, 1e-9), (pt.complex64, 2e-4),
          (pt.complex128, 1e-9))
la = pt.linalg
done = set()


def close(got, wanted, limit, what):
    got, wanted = pt.asarray(got), pt.asarray(wanted)
    assert got.shape == wanted.shape, (what, got.shape, wanted.shape)
    worst = pt.max(pt.abs(got - wanted)).item()
    scale = max(1.0, pt.max(pt.abs(wanted)).item())
    assert worst <= limit * scale, (what, str(got.dtype), worst)


def hermitian(x):
    x = pt.matrix_transpose(x)
    return pt.conj(x) if x.dtype.kind == "c" else x


def numbers(dtype, *shape, seed=0):
    key = pt.random.key(seed)
    part = pt.float64 if dtype in (pt.float64, pt.complex128) else pt.float32
    real = pt.astype(pt.random.normal(key, shape), part)
    if dtype.kind != "c":
        return real
    other = pt.astype(pt.random.normal(pt.random.fold_in(key, 1), shape), part)
    return pt.astype(real, dtype) + 1j * pt.astype(other, dtype)


def decompositions(dtype, limit):
    a, tall = numbers(dtype, 2, 5, 5), numbers(dtype, 6, 4, seed=1)
    good = a @ hermitian(a) + 5 * pt.eye(5, dtype=dtype)
    eye = pt.eye(5, dtype=dtype)
    low = la.cholesky(good)
    close(low @ hermitian(low), good, limit, "cholesky")
    up = la.cholesky(good, upper=True)
    close(hermitian(up) @ up, good, limit, "cholesky upper")
    for mode in ("reduced", "complete"):
        q, r = la.qr(tall, mode=mode)
        close(q @ r, tall, limit, "qr " + mode)
        close(hermitian(q) @ q, pt.eye(q.shape[-1], dtype=dtype), limit, "qr q " + mode)
    for full in (False, True):
        u, s, vh = la.svd(tall, full_matrices=full)
        close((u[:, :4] * pt.astype(s, dtype)) @ vh, tall, limit, f"svd {full}")
    close(la.svdvals(tall), s, limit, "svdvals")
    w, v = la.eigh(good)
    close(good @ v, v * pt.astype(pt.expand_dims(w, axis=-2), dtype), limit, "eigh")
    close(la.eigvalsh(good), w, limit, "eigvalsh")
    w, v = la.eig(a)
    close(pt.astype(a, v.dtype) @ v, v * pt.expand_dims(w, axis=-2), limit, "eig")
    close(pt.sum(la.eigvals(a), axis=-1), pt.astype(la.trace(a), w.dtype), limit, "eigvals")
    close(pt.prod(w, axis=-1), pt.astype(la.det(a), w.dtype), 5 * limit, "det")
    sign, log = la.slogdet(a)
    close(sign * pt.astype(pt.exp(log), dtype), la.det(a), 5 * limit, "slogdet")
    close(la.inv(good) @ good, pt.broadcast_to(eye, good.shape), limit, "inv")
    b = numbers(dtype, 2, 5, 3, seed=2)
    close(good @ la.solve(good, b), b, limit, "solve")
    close(la.pinv(tall) @ tall, pt.eye(4, dtype=dtype), limit, "pinv")
    assert la.matrix_rank(tall @ hermitian(tall)).item() == 4, "matrix_rank"
    done.update("cholesky qr svd svdvals eigh eigvalsh eig eigvals det slogdet inv solve "
                "pinv matrix_rank".split())


def products(dtype, limit):
    a, b = numbers(dtype, 4, 4), numbers(dtype, 4, 4, seed=3)
    close(la.matmul(a, b), a @ b, limit, "matmul")
    close(la.tensordot(a, b, axes=1), a @ b, limit, "tensordot")
    close(la.outer(a[0], b[0]), pt.expand_dims(a[0], axis=1) * b[0], limit, "outer")
    conj = pt.conj(a) if dtype.kind == "c" else a
    close(la.vecdot(a, b), pt.sum(conj * b, axis=-1), limit, "vecdot")
    close(la.matrix_transpose(la.matrix_transpose(a)), a, 0, "matrix_transpose")
    close(la.matrix_power(a, 3), a @ a @ a, 10 * limit, "matrix_power")
    close(la.matrix_power(a, -1) @ a, pt.eye(4, dtype=dtype), 10 * limit, "power -1")
    close(la.diagonal(a), pt.stack([a[i, i] for i in range(4)]), 0, "diagonal")
    close(la.trace(a), pt.sum(la.diagonal(a)), limit, "trace")
    squares = pt.sum(pt.abs(a) ** 2)
    close(la.vector_norm(a) ** 2, squares, limit, "vector_norm")
    close(la.matrix_norm(a) ** 2, squares, limit, "matrix_norm")
    close(la.matrix_norm(a, ord=2), pt.max(la.svdvals(a)), limit, "matrix_norm 2")
    x, y = numbers(dtype, 3), numbers(dtype, 3, seed=4)
    cross = la.cross(x, y)
    close(pt.sum(cross * x), pt.asarray(0, dtype=dtype), limit, "cross")
    done.update("matmul tensordot outer vecdot matrix_transpose matrix_power diagonal "
                "trace vector_norm matrix_norm cross".split())


def lines():
    """The first lines of docs/python.md."""
    x = pt.asarray([[1.0, 2.0], [3.0, 4.0]])
    y = pt.exp(x).sum(axis=0) + 1
    assert str(y), y
    assert abs(y.tolist()[0] - 23.803818) < 1e-4, y

    @pt.jit
    def step(w, x, rate):
        return w - rate * (x.T @ (x @ w))

    got = step(pt.ones(2), x, 0.1).tolist()
    assert all(abs(g - w) < 1e-5 for g, w in zip(got, (-1.4, -2.4))), got


def main():
    lines()
    for dtype, limit in DTYPES:
        decompositions(dtype, limit)
        products(dtype, limit)
    assert len(done) == 25, sorted(done)  # those of the standard
    maps = {line.split()[-1] for line in open("/proc/self/maps", encoding="utf-8")
            if ".so" in line}
    assert len([m for m in maps if "libpestle.so" in m]) == 1, maps
    if "--bare" in sys.argv:
        assert not any("lapack" in m and "pestle" not in m for m in maps), maps
    print(f"right: Python {sys.version.split()[0]}, {pt.device()}")


main()
