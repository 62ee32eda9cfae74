#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""jax.lax.composite (PESTLE_JAX_PYTHON, or this Python): a composite of the name of an op
that an extension has, or a function of Python's, is that op, as JAX exports it: its eval
runs, whatever the body says, and transforms of the exported text are those of the op."""

import os
import pathlib
import subprocess
import sys

python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
try:
    import jax
except ImportError:
    if python == sys.executable or os.environ.get("PESTLE_JAX_AGAIN"):
        print(f"{python} has no JAX")
        sys.exit(77)
    sys.exit(subprocess.run([python, *sys.argv],
                            env=dict(os.environ, PESTLE_JAX_AGAIN="1"),
                            check=False).returncode)
os.environ["JAX_PLATFORMS"] = "cpu"

import jax.export
import jax.numpy as jnp
import numpy
from case import run

import pestle as pt

KEPT = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"]) / "tests/python/kept"
X = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)


def exported(name, version, body, **attributes):
    """The text of a function around a composite."""
    def function(x, y):
        op = jax.lax.composite(body, name=name, version=version)
        return jnp.sin(op(x, y, **attributes))
    spec = jax.ShapeDtypeStruct(X.shape, jnp.float32)
    return jax.export.export(jax.jit(function))(spec, spec).mlir_module()


def axpby(x, y, *, alpha, beta):
    return alpha * x + beta * y


def test_extension():
    import shutil
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "axpby.so"
        shutil.copy(KEPT / "axpby_0_2.so", path)
        path.chmod(0o755)
        pt.extension(path)
    x, y = pt.asarray(X), pt.asarray(X + 1)
    text = exported("example.axpby", 1, axpby, alpha=4.0, beta=2.0)
    f = pt.from_stablehlo(text)
    assert numpy.allclose(f(x, y), numpy.sin(4 * X + 2 * (X + 1)), atol=1e-5)
    grad = pt.grad(lambda x: pt.sum(f(x, y)))(x)
    assert numpy.allclose(grad, 4 * numpy.cos(4 * X + 2 * (X + 1)), atol=1e-4)
    z = pt.vmap(f, (0, None))(pt.stack([x, x]), y)
    assert numpy.allclose(z[1], numpy.sin(4 * X + 2 * (X + 1)), atol=1e-5)


def test_eval():
    seen = []

    @pt.custom_op("jax.blend", version=3, prefer="eval")
    def blend(x, y, *, alpha: float):
        return alpha * x + y

    @blend.eval("*", id="1")
    def _(x, y, out, *, alpha):
        seen.append(alpha)
        out[...] = alpha * x + y
    x, y = pt.asarray(X), pt.asarray(X + 1)
    pt.eval(blend(x, y, alpha=1.0))
    # A body that is not the op: whoever takes it is found.
    f, g = (pt.from_stablehlo(exported("jax.blend", version, lambda x, y, *, alpha: x * 0,
                                       alpha=2.5)) for version in (3, 2))
    assert numpy.allclose(f(x, y), numpy.sin(2.5 * X + X + 1), atol=1e-5)
    assert seen == [1.0, 2.5], seen
    assert not numpy.asarray(g(x, y)).any(), "of another version it is its body"


run(globals())
