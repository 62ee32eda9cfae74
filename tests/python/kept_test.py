#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extensions that were built against earlier versions load and run: kept/axpby_0_2.so is
examples/axpby as 0.2.0 was, built by gcc for x86-64 Linux (cc -O2 -s -fPIC -shared
-fvisibility=hidden axpby.c -lpestle). It is never built again; a later version that
breaks the interface gets a file of its own, and a line in CHANGELOG.md."""

import os
import pathlib
import platform
import shutil
import sys
import tempfile

import numpy
from case import SANITIZED, run

import pestle as pt

KEPT = sorted((pathlib.Path(os.environ["PESTLE_SOURCE_DIR"]) / "tests/python/kept").glob(
    "*.so"))
if (platform.machine(), sys.platform) != ("x86_64", "linux") or SANITIZED:
    print("skipped: the kept extensions are for x86-64 Linux, without a sanitizer")
    sys.exit(77)


def test_axpby():
    assert KEPT, "the kept binaries are gone"
    for path in KEPT:
        assert path.stat().st_size < 100_000
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / path.name
            shutil.copy(path, copy)
            copy.chmod(0o755)
            axpby = pt.extension(copy).axpby
        hx, hy = numpy.random.default_rng(0).standard_normal((2, 5, 7), numpy.float32)
        x, y = pt.asarray(hx), pt.asarray(hy)
        want = 4 * hx + 2 * hy
        # The type rule and the front, the body, each rule.
        assert axpby(x, pt.asarray(1), 4.0, 2.0).dtype == pt.float32
        assert numpy.allclose(axpby(x, y, 4.0, beta=2.0), want)
        assert numpy.allclose(pt.jit(lambda x, y: pt.sin(axpby(x, y, 4.0, 2.0)))(x, y),
                              numpy.sin(want), rtol=1e-5)
        half = pt.astype(x, pt.float16)
        assert numpy.allclose(axpby(half, half, 1.0, 1.0), 2 * hx, rtol=2e-3)
        grads = pt.grad(lambda x, y: pt.sum(axpby(x, y, 4.0, 2.0) * x), (0, 1))(x, y)
        assert numpy.allclose(grads[0], 8 * hx + 2 * hy, rtol=1e-5)
        assert numpy.allclose(grads[1], 2 * hx, rtol=1e-5)
        tangent = pt.jvp(lambda y: axpby(x, y, 4.0, 2.0), (y,), (x,))[1]
        assert numpy.allclose(tangent, 2 * hx)
        z = pt.vmap(lambda x, y: axpby(x, y, 4.0, 2.0), (1, None), 1)(x, y[:, 0])
        assert numpy.allclose(z, 4 * hx + 2 * hy[:, :1])


run(globals())
