#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle.random beside jax.random: the same numbers of the same keys."""

import math
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
    raises(ValueError, lambda: random.gamma(ours, pt.ones((3,)), (2,)), "broadcast")
    raises(ValueError, lambda: random.beta(ours, 1.0, pt.ones((3,)), (3, 2)),
           "beta()", "(3,)", "(3, 2)")
    raises(TypeError, lambda: random.gamma(ours, 1.0, (2,), pt.int32), "gamma()", "int32")
    raises(TypeError, lambda: random.poisson(ours, 1.0, (2,), pt.float32), "integers")


def test_slopes():
    """Derivatives of gamma numbers by the parameter: those of jax.random, and the
    quotients of differences of a quantile in float64, where the place is a number's."""
    ours, theirs = random.key(5), jax.random.key(5)
    a = np.asarray([0.05, 0.3, 0.9, 1.5, 3, 20, 100], np.float32).repeat(40)
    for name in ("gamma", "loggamma"):
        y = np.asarray(pt.grad(lambda v: pt.sum(getattr(random, name)(ours, v)))(
            pt.asarray(a)))
        z = np.asarray(jax.grad(lambda v: jnp.sum(getattr(jax.random, name)(theirs, v)))(a))
        # JAX takes the slope of a logarithm at its power, which may be too small.
        known = z != 0 if name == "gamma" else a > 0.1
        assert np.isfinite(y).all()
        error = np.abs(y - z)[known] / np.abs(z[known])
        assert known.sum() > 200 and error.max() < 3e-5, (name, error.max())


def test_slopes_by_differences():
    """The same in float64, small, large and far from the middle, beside differences of
    the distribution function: as the number moves with a, that stays what it is."""
    from pestle._implicit import gamma_slope
    a = pt.asarray([0.01, 0.2, 0.7, 1.0, 2.5, 30.0, 1e3, 1e5], dtype=pt.float64)
    for z in (-3.0, -1.0, 0.0, 1.0, 3.0):
        log_x = pt.log(a) + z / pt.sqrt(a + 1)
        slopes = np.asarray(gamma_slope(a, log_x))
        for p, q, slope in zip(a.tolist(), log_x.tolist(), slopes):
            wanted = slope_by_differences(p, q)
            assert abs(slope - wanted) <= 1e-6 * wanted, (p, q, slope, wanted)


def slope_by_differences(a, log_x):
    x = math.exp(log_x)
    far = 60 / math.sqrt(x) if a > 1 else math.log1p(700 / x) if x > a else 60 / a
    v = np.linspace(0, far if x > a else -far, 400_001)

    def share(b):
        """Of the numbers on x's side, beside the density of log x with a."""
        f = np.exp(b * v - x * np.expm1(v))
        whole = (f[0] + f[-1] + 4 * f[1:-1:2].sum() + 2 * f[2:-1:2].sum()) / 3
        scale = math.exp((b - a) * log_x - math.lgamma(b) + math.lgamma(a))
        return whole * (v[1] - v[0]) * scale
    h = 0.02 * min(a, math.sqrt(a))
    return (8 * (share(a + h) - share(a - h)) - share(a + 2 * h) + share(a - 2 * h)) / (12 * h)


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
