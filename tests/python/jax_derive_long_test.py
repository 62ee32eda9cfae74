#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Derivatives and batching through Python against JAX (PESTLE_JAX_PYTHON, or this
Python): jvp, vjp, linearize, second order by three orders of modes, vmap of each, and
derivatives of vmap, of the functions of jax_derive_cases.py in f64, f32, f16 and bf16.

PESTLE_TEST_PART=I/N does a share. Narrow floats: the error against JAX in f64 is at most 1.5 of JAX's own, or rounding."""

import os
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

import types

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from case import run
from jax_derive_cases import argument, cases, kinds_of

import pestle as pt

jax.config.update("jax_enable_x64", True)
JAX = types.SimpleNamespace(
    cond=jax.lax.cond, switch=jax.lax.switch, scan=jax.lax.scan,
    fori_loop=jax.lax.fori_loop, softmax=jax.nn.softmax, log_softmax=jax.nn.log_softmax,
    logsumexp=jax.scipy.special.logsumexp, stop_gradient=jax.lax.stop_gradient)
DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16,
          "bfloat16": ml_dtypes.bfloat16}
# Relative to the largest element of a result.
TOLERANCE = {"float64": 1e-11, "float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}
# Decompositions are of floats of 32 bits and more.
WIDE = {"inverse", "solve", "det", "slogdet", "cholesky", "eigvalsh", "singular values",
        "fft"}
COUNT = {"cells": 0}


def flat(tree):
    return [np.asarray(x).astype(np.float64) for x in jax.tree.leaves(tree)]


def ours(x):
    if x.dtype == ml_dtypes.bfloat16:
        return pt.astype(pt.asarray(x.astype(np.float32)), pt.bfloat16)
    return pt.asarray(x)


def to_ours(values):
    return [ours(v) for v in values]


def shown(tree):
    return [np.asarray(pt.asnumpy(pt.astype(x, pt.float64))) for x in pt.tree.leaves(tree)]


def differ(got, want, truth, name):
    """Why |got| is not |want|, or None."""
    if len(got) != len(want):
        return f"{len(got)} results, not {len(want)}"
    for a, b, c in zip(got, want, truth):
        if a.shape != b.shape:
            return f"the shape {a.shape}, not {b.shape}"
        scale = max(1.0, float(np.nanmax(np.abs(c), initial=0)))
        same = np.array_equal(np.isnan(a), np.isnan(b))
        off = float(np.nanmax(np.abs(a - b), initial=0)) / scale
        if same and off <= TOLERANCE[name]:
            continue
        error = float(np.nanmax(np.abs(a - c), initial=0)) / scale
        theirs = float(np.nanmax(np.abs(b - c), initial=0)) / scale
        if not same or error > max(1.5 * theirs, TOLERANCE[name]):
            return f"off by {error:.3g}, JAX by {theirs:.3g}: {a.ravel()[:4]} {b.ravel()[:4]}"
    return None


def smooth(xs):
    return [i for i, x in enumerate(xs) if x.dtype.kind not in "iu"]


def of_smooth(function, xs, places):
    def call(*values):
        full = list(xs)
        for i, v in zip(places, values):
            full[i] = v
        return function(*full)
    return call


def scalar(function, tree, total):
    """The sum of squares of what a function gives, in one number."""
    def call(*values):
        parts = [total(y * y) for y in tree.leaves(function(*values))]
        out = parts[0]
        for p in parts[1:]:
            out = out + p
        return out
    return call


def checks(lib, function, tree, total, numbers):
    """name: function of the arguments, for one library."""
    loss = scalar(function, tree, total)
    every = tuple(range(numbers))

    def jvp(*xs):
        return lib.jvp(function, xs, xs)

    def vjp(*xs):
        y, back = lib.vjp(function, *xs)
        return y, back(y)

    def linear(*xs):
        y, f = lib.linearize(function, *xs)
        return y, f(*xs)
    yield "jvp", jvp
    yield "vjp", vjp
    yield "linearize", linear
    yield "grad", lib.grad(loss, every)
    # Products with the Hessian, by forward over reverse, reverse over forward, and
    # reverse over reverse.
    yield "jvp of grad", lambda *xs: lib.jvp(lib.grad(loss, every), xs, xs)[1]
    yield "grad of jvp", lib.grad(lambda *xs: lib.jvp(loss, xs, xs)[1], every)
    yield "vjp of grad", lambda *xs: lib.vjp(lib.grad(loss, every), *xs)[1](
        xs if numbers > 1 else (xs[0],))
    yield "vmap", "vmap", function
    yield "vmap of grad", "vmap", lib.grad(loss, every)
    yield "grad of vmap", "grad", loss


def total_of(library):
    return library.sum


def one(name, function, theirs, kinds, dtype, bad):
    import zlib
    random = np.random.default_rng(zlib.crc32(f"{name}{dtype}".encode()))
    wide = [argument(k, random, np.float64) for k in kinds_of(kinds)]
    narrow = [x if x.dtype.kind in "iu" else x.astype(DTYPES[dtype]) for x in wide]
    places = smooth(narrow)
    exact = [x if x.dtype.kind in "iu" else x.astype(np.float64) for x in narrow]
    f = of_smooth(function, to_ours(narrow), places)
    g = of_smooth(theirs, [jnp.asarray(x) for x in narrow], places)
    h = of_smooth(theirs, [jnp.asarray(x) for x in exact], places)
    xs = to_ours([narrow[i] for i in places])
    ys = [jnp.asarray(narrow[i]) for i in places]
    zs = [jnp.asarray(exact[i]) for i in places]
    n = len(places)
    mine = list(checks(pt, f, pt.tree, pt.sum, n))
    other = list(checks(jax, g, jax.tree, jnp.sum, n))
    truth = list(checks(jax, h, jax.tree, jnp.sum, n))
    for a, b, c in zip(mine, other, truth):
        title = f"{name} {dtype}: {a[0]}"
        if len(a) == 3:
            up = lambda lib, vs: [lib.stack([v, v * 0.5 + 0.75 * v]) for v in vs]
            if a[1] == "vmap":
                runs = [(pt.vmap(a[2]), up(pt, xs)), (jax.vmap(b[2]), up(jnp, ys)),
                        (jax.vmap(c[2]), up(jnp, zs))]
            else:
                runs = [(lib.grad(lambda *v, f=f, lib=lib, s=s: s(lib.vmap(f)(*v)),
                                  tuple(range(n))), up(m, v))
                        for lib, f, s, m, v in ((pt, a[2], pt.sum, pt, xs),
                                                (jax, b[2], jnp.sum, jnp, ys),
                                                (jax, c[2], jnp.sum, jnp, zs))]
        else:
            runs = [(a[1], xs), (b[1], ys), (c[1], zs)]
        try:
            want = flat(runs[1][0](*runs[1][1]))
            exactly = flat(runs[2][0](*runs[2][1]))
        except (NotImplementedError, TypeError, ValueError) as error:
            print(f"{title}: JAX has none: {str(error)[:80]}")
            continue
        COUNT["cells"] += 1
        try:
            why = differ(shown(runs[0][0](*runs[0][1])), want, exactly, dtype)
        except Exception as error:  # pylint: disable=broad-except
            why = f"{type(error).__name__}: {str(error)[:160]}"
        if why:
            bad.append(f"{title}: {why}")


def test_all():
    bad, only = [], sys.argv[1:]
    # The share that PESTLE_TEST_PART=I/N names: every N-th function from the I-th on.
    part, parts = map(int, os.environ.get("PESTLE_TEST_PART", "1/1").split("/"))
    pairs = list(zip(cases(pt, pt), cases(jnp, JAX)))
    for at, ((name, function, kinds), (_, theirs, _)) in enumerate(pairs):
        if name not in only if only else at % parts != part - 1:
            continue
        for dtype in DTYPES:
            if name in WIDE and dtype in ("float16", "bfloat16"):
                continue
            one(name, function, theirs, kinds, dtype, bad)
    print(f"{COUNT['cells']} cells, {len(bad)} differ")
    assert not bad, "\n".join(bad)
    assert only or COUNT["cells"] > 1600 / parts


run(globals())
