#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a tutorial on ops of one's own promises of its axpby, clause by clause: types,
shapes, strides, streams, derivatives, batches, names, errors. The op is the kept binary of
examples/axpby (kept_test.py)."""

import os
import pathlib
import platform
import shutil
import sys
import tempfile

import numpy as np
from case import SANITIZED, raises, run

import pestle as pt

if (platform.machine(), sys.platform) != ("x86_64", "linux") or SANITIZED:
    print("skipped: the kept extension is for x86-64 Linux, without a sanitizer")
    sys.exit(77)

KEPT = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"]) / "tests/python/kept/axpby_0_2.so"
with tempfile.TemporaryDirectory() as folder:
    copy = pathlib.Path(folder) / KEPT.name
    shutil.copy(KEPT, copy)
    copy.chmod(0o755)
    axpby = pt.extension(copy).axpby

R = np.random.default_rng(0)
X, Y, TX, TY = R.standard_normal((4, 4, 5), np.float32)
WANT = 4 * X + 2 * Y
x, y, tx, ty = map(pt.asarray, (X, Y, TX, TY))


def f(a, b):
    return axpby(a, b, 4.0, 2.0)


def close(got, want, tolerance=1e-5):
    assert np.allclose(np.asarray(pt.asnumpy(got)), want, rtol=tolerance, atol=tolerance), \
        (got, want)


def test_types():
    assert axpby(pt.asarray([1, 2, 3]), pt.asarray([4, 5, 6]), 0.5, 2.0).tolist() == \
        [8.5, 11, 13.5]
    assert f(pt.astype(x, pt.float16), y).dtype == pt.float32
    assert f(pt.ones((2,), dtype=pt.int32), pt.ones((2,))).dtype == pt.float32
    for dtype, tolerance in ((pt.float16, 2e-2), (pt.bfloat16, 2e-1), (pt.float64, 1e-6)):
        z = f(pt.astype(x, dtype), pt.astype(y, dtype))
        assert z.dtype == dtype
        close(pt.astype(z, pt.float32), WANT, tolerance)
    z = f(pt.asarray(X + 1j * Y), pt.asarray(Y - 1j * X))
    assert z.dtype == pt.complex64
    close(z, 4 * (X + 1j * Y) + 2 * (Y - 1j * X))


def test_shapes_and_strides():
    close(f(x, y[0]), 4 * X + 2 * Y[0])
    close(f(x[:, :1], y[0]), 4 * X[:, :1] + 2 * Y[0])
    close(f(pt.permute_dims(x, (1, 0)), pt.permute_dims(y, (1, 0))), WANT.T)
    close(f(pt.permute_dims(x[:, :4], (1, 0)), y[:, :4]), 4 * X[:, :4].T + 2 * Y[:, :4])
    close(f(x[::2, ::-1], y[::2]), 4 * X[::2, ::-1] + 2 * Y[::2])
    close(f(pt.asarray(X[::2, ::2]), pt.asarray(Y[1::2, ::2])), 4 * X[::2, ::2] + 2 * Y[1::2, ::2])
    assert f(pt.ones((0, 3)), pt.ones((0, 3))).shape == (0, 3)
    close(f(pt.asarray(2.0), pt.asarray(3.0)), 14)
    assert f(pt.ones((3, 4)), pt.ones((3, 4))).tolist() == [[6.0] * 4] * 3


def test_operands_are_left():
    z = f(y, y)
    close(z, 6 * Y)
    close(y, Y)


def test_derivatives():
    close(pt.jvp(lambda a: f(a, y), (x,), (tx,))[1], 4 * TX)
    close(pt.jvp(lambda a: f(x, a), (y,), (ty,))[1], 2 * TY)
    close(pt.jvp(f, (x, y), (tx, ty))[1], 4 * TX + 2 * TY)
    back = pt.vjp(f, x, y)[1](tx)
    close(back[0], 4 * TX)
    close(back[1], 2 * TX)
    close(pt.grad(lambda b: pt.sum(f(x, b)))(y[0]), np.full(5, 8))
    twice = pt.grad(lambda a: pt.sum(pt.grad(lambda b: pt.sum(f(b, y) ** 2))(a)))
    close(twice(x), np.full_like(X, 32))


def test_batches():
    s, t = X[:, :4], Y[:, :4]
    for axes in ((0, 0), (1, 1), (0, 1), (0, None), (None, 1)):
        parts = [4 * (s if axes[0] is None else np.take(s, i, axes[0])) +
                 2 * (t if axes[1] is None else np.take(t, i, axes[1])) for i in range(4)]
        close(pt.vmap(f, in_axes=axes)(pt.asarray(s), pt.asarray(t)), np.stack(parts))
    close(pt.vmap(pt.grad(lambda p, q: pt.sum(f(p, q) ** 2)))(x, y), 8 * WANT)
    close(pt.grad(lambda p: pt.sum(pt.vmap(f)(p, y) ** 2))(x), 8 * WANT)


def test_in_programs():
    close(pt.jit(lambda a, b: pt.sin(f(a, b)) * b)(x, y), np.sin(WANT) * Y)
    one, other, third = pt.jit(lambda a, b: (f(a, b), f(a, b), axpby(a, b, 4.0, 3.0)))(x, y)
    close(one, WANT)
    close(other, WANT)
    close(third, 4 * X + 3 * Y)
    assert b"axpby" in pt.export(f, x, y)


def test_streams():
    close(axpby(x, y, 4.0, 2.0, stream=pt.Stream()), WANT)
    close(axpby(x, y, 4.0, 2.0, stream="cpu"), WANT)


def test_what_is_wrong():
    raises(TypeError, lambda: axpby(x, y, 1.0), "misses attribute 'beta'")
    raises(TypeError, lambda: axpby(x, y, 1.0, 2.0, gamma=1), "no attribute 'gamma'")
    raises(ValueError, lambda: f(x, y[:3, :3]), "axpby")
    raises(TypeError, lambda: axpby(x, y, 1.0, 2.0, stream=3), "3")


run(globals())
