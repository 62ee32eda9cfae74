#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle.random beside jax.random: the same numbers of the same keys."""

import sys

from case import raises, run

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
except ImportError:
    print("skipped: jax is not installed")
    sys.exit(77)
import pestle as pt
from pestle import random

N = 1_000_000


def differ(ours, theirs):
    return int((np.asarray(ours) != np.asarray(theirs)).sum())


def keys():
    for seed in (0, 42, 2**31 + 5):
        yield random.key(seed), jax.random.key(seed)


def test_bounds_of_integers():
    """Bounds that are no numbers of the dtype, and none between them."""
    ours, theirs = random.key(3), jax.random.key(3)
    for name in ("int32", "uint32", "int8", "uint8", "int16"):
        least, most = np.iinfo(name).min, np.iinfo(name).max
        for low, high in ((5, 3), (0, 0), (0, 100), (-3, 300),
                          (int(least), min(int(most), 2**31 - 1)),
                          (int(least), min(int(most) + 1, 2**31 - 1))):
            x = random.randint(ours, (50,), low, high, getattr(pt, name))
            y = jax.random.randint(theirs, (50,), low, high, getattr(jnp, name))
            assert not differ(x, y), (name, low, high)
    x = random.randint(ours, (4,), -2**31, 2**31, pt.int32)
    assert len(set(x.tolist())) == 4 and min(x.tolist()) < 0 < max(x.tolist())


def test_distributions():
    """Those that are made of loops, rejection and powers: the same decisions, values
    within what logarithms and powers differ by."""
    ours, theirs = random.key(5), jax.random.key(5)

    def near(name, *args, tolerance=5e-6, shape=(500,)):
        x = np.asarray(getattr(random, name)(ours, *args, shape))
        y = np.asarray(getattr(jax.random, name)(theirs, *args, shape))
        assert x.shape == y.shape
        # Near 1 a logarithm has the error of its argument.
        error = np.abs(x - y) / np.maximum(np.abs(y), 0.1 if "log" in name else 1e-30)
        assert error.max() <= tolerance, (name, args, error.max())
    for a in (0.05, 0.5, 3.0, 100.0):
        near("gamma", a)
        near("loggamma", a, tolerance=2e-5)
    near("beta", 0.5, 2.0)
    near("dirichlet", np.asarray([0.3, 1.0, 2.0], np.float32))
    near("chisquare", 3.0)
    near("t", 3.0)
    for name in ("laplace", "logistic", "cauchy", "rademacher"):
        near(name, tolerance=1e-5)
    near("multivariate_normal", np.asarray([1.0, 2.0], np.float32),
         np.asarray([[2.0, 0.5], [0.5, 1.0]], np.float32), tolerance=1e-4)
    lam = np.concatenate([np.linspace(0, 50, 400), [-1, 1000, 1e5]]).astype(np.float32)
    near("poisson", lam, shape=None, tolerance=0)
    # A gamma number of each key is that of the key alone.
    keys = random.split(ours, 3)
    rows = pt.vmap(lambda k: random.gamma(k, 2.0, (4,)))(keys)
    for i in range(3):
        assert rows[i].tolist() == random.gamma(keys[i], 2.0, (4,)).tolist()
    assert random.gamma(ours, 1.0, (0, 2)).shape == (0, 2)
    assert random.gamma(ours, pt.ones((2, 1)), (2, 3), pt.float16).dtype == pt.float16
    raises(NotImplementedError, lambda: pt.grad(
        lambda a: pt.sum(random.gamma(ours, a, (3,))))(2.0), "no derivative",
        "stop_gradient")
    raises(ValueError, lambda: random.gamma(ours, pt.ones((3,)), (2,)), "broadcast")
    raises(ValueError, lambda: random.beta(ours, 1.0, pt.ones((3,)), (3, 2)),
           "beta()", "(3,)", "(3, 2)")
    raises(TypeError, lambda: random.gamma(ours, 1.0, (2,), pt.int32), "gamma()", "int32")
    raises(TypeError, lambda: random.poisson(ours, 1.0, (2,), pt.float32), "integers")


def test_exact():
    for ours, theirs in keys():
        def same(name, *args, **kwargs):
            extra = {k: getattr(jnp, v) for k, v in kwargs.items()}
            mine = {k: getattr(pt, v) for k, v in kwargs.items()}
            x = getattr(random, name)(ours, *args, **mine)
            y = getattr(jax.random, name)(theirs, *args, **extra)
            if x.dtype == pt.bfloat16:
                x, y = pt.astype(x, pt.float32), y.astype(jnp.float32)
            assert not differ(x, y), (name, args, kwargs)
        assert not differ(random.split(ours, 1000),
                          jax.random.key_data(jax.random.split(theirs, 1000)))
        assert not differ(random.fold_in(ours, 77),
                          jax.random.key_data(jax.random.fold_in(theirs, 77)))
        for dtype in ("uint8", "uint16", "uint32"):
            same("bits", (N,), dtype=dtype)
        for dtype in ("float32", "float16", "bfloat16"):
            same("uniform", (N,), dtype=dtype)
        for dtype in ("int32", "uint8", "int16"):
            same("randint", (N,), 0, 100, dtype=dtype)
        same("bernoulli", 0.3, (N,))
        same("permutation", 10000)
        same("choice", 1000, (50,))
        same("choice", 1000, (50,), False)


def test_normal():
    for ours, theirs in keys():
        x = np.asarray(random.normal(ours, (N,)))
        y = np.asarray(jax.random.normal(theirs, (N,)))
        apart = np.abs(x.view(np.int32).astype(np.int64) - y.view(np.int32))
        print(f"normal: {(x != y).sum()} of {N} differ, by {apart.max()} at most")
        assert apart.max() <= 4 and (x != y).sum() < N / 50


run(globals())
