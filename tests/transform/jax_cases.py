#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Derivatives by JAX, for tests/unit/transform/jax_test.c to be held against.

usage: jax_cases.py OUT [--short] [FAMILY..]     (JAX 0.10; --short: for the quick test)

Of each case the file has the StableHLO text of the function, arguments, tangents,
cotangents, and what JAX makes of them: results, jvp, vjp. Floats of 16 bits are
compared with what f64 gives: they may be off by 1.5 times as much as JAX's are.
"""

import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "highest")

F16, BF16, F32, F64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64
C64, C128 = np.complex64, np.complex128
FLOATS = (F16, BF16, F32, F64)
PLANE = FLOATS + (C64, C128)
WIDE = (F32, F64)
# Relative to the largest element, where JAX computes in the same type.
TOLERANCE = {F32: 2e-6, F64: 2e-13, C64: 4e-6, C128: 4e-13}


def is_float(dtype):
    return jnp.issubdtype(dtype, jnp.inexact)


def is_complex(dtype):
    return jnp.issubdtype(dtype, jnp.complexfloating)


def widened(array):
    """In the type of the truth."""
    if not is_float(array.dtype):
        return array
    return array.astype(C128 if is_complex(array.dtype) else F64)


class Arg:
    """An argument: shape, range, and its dtype where it is not the case's."""

    def __init__(self, *shape, low=-1.0, high=1.0, dtype=None):
        self.shape, self.low, self.high, self.dtype = shape, low, high, dtype

    def make(self, rng, dtype):
        dtype = self.dtype or dtype
        if not is_float(dtype):
            if dtype == np.bool_:
                return rng.integers(0, 2, self.shape).astype(bool)
            return rng.integers(int(self.low), int(self.high) + 1,
                                self.shape).astype(dtype)
        values = rng.uniform(self.low, self.high, self.shape)
        if is_complex(dtype):
            values = values + 1j * rng.uniform(self.low, self.high, self.shape)
        return np.asarray(values).astype(dtype)


def numbers(array):
    array = np.asarray(array)
    if is_complex(array.dtype):
        array = np.stack([array.real, array.imag], -1)
    return " ".join(repr(float(x)) for x in array.astype(F64).ravel())


def derivatives(f, args, tangents, cotangents):
    """(results, jvp, vjp), the derivatives of floats alone, as lists."""
    which = [i for i, a in enumerate(args) if is_float(a.dtype)]

    def of_floats(*floats):
        full = list(args)
        for i, value in zip(which, floats):
            full[i] = value
        out = f(*full)
        return list(out) if isinstance(out, (tuple, list)) else [out]

    floats = [jnp.asarray(args[i]) for i in which]
    shapes = jax.eval_shape(lambda *a: of_floats(*a), *floats)
    kept = [i for i, r in enumerate(shapes) if is_float(r.dtype)]
    smooth = lambda *a: [of_floats(*a)[i] for i in kept]

    @jax.jit
    def all_of(floats, tangents, cotangents):
        _, jvp = jax.jvp(smooth, floats, tangents)
        _, pull = jax.vjp(smooth, *floats)
        return of_floats(*floats), jvp, list(pull(cotangents))

    return all_of(floats, [jnp.asarray(t) for t in tangents],
                  [jnp.asarray(c) for c in cotangents])


class Writer:
    def __init__(self, path):
        self.out = open(path, "w", encoding="utf-8")
        self.count = 0

    def case(self, name, f, specs, dtype, seed=0, tolerance=None):
        rng = np.random.default_rng([seed, len(name), self.count])
        args = [s.make(rng, dtype) for s in specs]
        floats = [a for a in args if is_float(a.dtype)]
        tangents = [Arg(*a.shape).make(rng, a.dtype) for a in floats]
        results = jax.eval_shape(f, *args)
        results = (list(results) if isinstance(results, (tuple, list))
                   else [results])
        cts = [Arg(*r.shape).make(rng, r.dtype) for r in results
               if is_float(r.dtype)]
        text = jax.jit(f).lower(*args).as_text()
        got = derivatives(f, args, tangents, cts)
        want, bounds = got, None
        if dtype in (F16, BF16):
            want = derivatives(f, [widened(a) for a in args],
                               [widened(t) for t in tangents],
                               [widened(c) for c in cts])
            bounds = True
        self.write(name, dtype, text, args, tangents, cts, got, want, bounds,
                   tolerance)

    def write(self, name, dtype, text, args, tangents, cts, got, want, bounds,
              tolerance):
        out = self.out
        print(f"case {name} {np.dtype(dtype).name}", file=out)
        print(f"module {len(text.encode())}", file=out)
        out.write(text)
        for key, arrays in (("argument", args), ("tangent", tangents),
                            ("cotangent", cts)):
            for array in arrays:
                print(key, numbers(array), file=out)
        for key, mine, theirs in zip(("result", "jvp", "vjp"), got, want):
            for a, b in zip(mine, theirs):
                a, b = np.asarray(a), np.asarray(b)
                if bounds and is_float(a.dtype):
                    eps = float(jnp.finfo(a.dtype).eps)
                    scale = max(1e-30, float(np.max(np.abs(b), initial=0)))
                    off = float(np.max(np.abs(widened(a) - b), initial=0))
                    bound = 1.5 * off / scale + 2 * eps
                else:
                    bound = (tolerance or {}).get(dtype) or TOLERANCE.get(
                        dtype, 0)
                print(key, repr(bound), numbers(b), file=out)
        print("end", file=out)
        self.count += 1


def mlp(w1, b1, w2, b2, x, y):
    hidden = jnp.tanh(x @ w1 + b1)
    scores = hidden @ w2 + b2
    logs = scores - jax.scipy.special.logsumexp(scores, axis=1, keepdims=True)
    return -jnp.mean(jnp.sum(y * logs, axis=1))


def models(w):
    w.case("mlp", mlp, [Arg(6, 8), Arg(8), Arg(8, 5), Arg(5), Arg(4, 6),
                        Arg(4, 5, low=0)], F32)


def unary(w, short):
    positive, kinks = dict(low=0.2, high=3.0), dict(low=-2.0, high=2.0)
    rows = [
        ("neg", lax.neg, {}, PLANE), ("abs", lax.abs, kinks, PLANE),
        ("sign", lax.sign, kinks, FLOATS), ("floor", lax.floor, kinks, FLOATS),
        ("ceil", lax.ceil, kinks, FLOATS), ("round", lax.round, kinks, FLOATS),
        ("sqrt", lax.sqrt, positive, PLANE),
        ("rsqrt", lax.rsqrt, positive, PLANE),
        ("cbrt", lax.cbrt, positive, FLOATS),
        ("exp", lax.exp, kinks, PLANE), ("expm1", lax.expm1, kinks, PLANE),
        ("exp2", lax.exp2, kinks, FLOATS), ("log", lax.log, positive, PLANE),
        ("log1p", lax.log1p, positive, PLANE),
        ("logistic", lax.logistic, kinks, PLANE),
        ("tanh", lax.tanh, kinks, PLANE), ("sin", lax.sin, kinks, PLANE),
        ("cos", lax.cos, kinks, PLANE), ("tan", lax.tan, {}, PLANE),
        ("erf", lax.erf, kinks, FLOATS), ("erfc", lax.erfc, kinks, FLOATS),
        ("erf_inv", lax.erf_inv, dict(low=-0.9, high=0.9), FLOATS),
        ("asin", jnp.arcsin, dict(low=-0.9, high=0.9), FLOATS),
        ("acosh", jnp.arccosh, dict(low=1.2, high=3.0), FLOATS),
        ("atanh", jnp.arctanh, dict(low=-0.9, high=0.9), FLOATS),
        ("sinh", jnp.sinh, kinks, FLOATS), ("cosh", jnp.cosh, kinks, FLOATS),
        ("lgamma", lax.lgamma, positive, WIDE),
        ("digamma", lax.digamma, positive, WIDE),
        ("square", jnp.square, kinks, PLANE),
        ("real", jnp.real, {}, (C64, C128)), ("imag", jnp.imag, {}, (C64, C128)),
        ("conj", jnp.conj, {}, (C64, C128)),
        ("integer_pow", lambda x: x**3, kinks, PLANE),
        ("inverse_pow", lambda x: x**-2, positive, FLOATS),
        ("bf16", lambda x: x.astype(BF16).astype(x.dtype), {}, WIDE),
        ("relu", jax.nn.relu, kinks, FLOATS),
        ("gelu", jax.nn.gelu, kinks, FLOATS), ("silu", jax.nn.silu, kinks, FLOATS),
        ("softplus", jax.nn.softplus, kinks, FLOATS),
        ("sinc", jnp.sinc, kinks, WIDE),
    ]
    for name, f, limits, dtypes in rows:
        for dtype in dtypes if not short else dtypes[-1:]:
            w.case(name, f, [Arg(3, 5, **limits)], dtype)


def binary(w, short):
    near, positive = {}, dict(low=0.3, high=2.0)
    rows = [
        ("add", lax.add, near, near, PLANE), ("sub", lax.sub, near, near, PLANE),
        ("mul", lax.mul, near, near, PLANE),
        ("div", lax.div, near, positive, PLANE),
        ("rem", lax.rem, dict(low=-9.0, high=9.0), positive, FLOATS),
        ("max", lax.max, near, near, FLOATS), ("min", lax.min, near, near, FLOATS),
        ("pow", lax.pow, positive, dict(low=-2.0, high=2.0), PLANE),
        ("atan2", lax.atan2, near, near, FLOATS),
        ("complex", lax.complex, near, near, WIDE),
        ("hypot", jnp.hypot, positive, positive, FLOATS),
        ("logaddexp", jnp.logaddexp, near, near, FLOATS),
    ]
    for name, f, first, second, dtypes in rows:
        for dtype in dtypes if not short else dtypes[-1:]:
            w.case(name, f, [Arg(3, 5, **first), Arg(3, 5, **second)], dtype)
    ties = lambda a, b: lax.max(jnp.round(a * 2), jnp.round(b * 2)) * a
    w.case("ties", ties, [Arg(40), Arg(40)], F64)
    for dtype in FLOATS if not short else (F32,):
        w.case("clamp", lax.clamp,
               [Arg(12, low=-0.4, high=-0.3), Arg(12),
                Arg(12, low=0.3, high=0.4)], dtype)
        w.case("select", lambda p, a, b: lax.select(p, a, b),
               [Arg(3, 5, dtype=np.bool_), Arg(3, 5), Arg(3, 5)], dtype)


def views(w, short):
    rows = [
        ("broadcast", lambda x: lax.broadcast_in_dim(x, (2, 3, 5), (1, 2)), (3, 5)),
        ("reshape", lambda x: lax.reshape(x, (5, 3)), (3, 5)),
        ("transpose", lambda x: lax.transpose(x, (2, 0, 1)), (2, 3, 4)),
        ("slice", lambda x: lax.slice(x, (1, 0), (3, 7), (1, 3)), (4, 8)),
        ("rev", lambda x: lax.rev(x, (0,)), (3, 5)),
        ("tile", lambda x: jnp.tile(x, (2, 3)), (2, 3)),
        ("roll", lambda x: jnp.roll(x, 2), (7,)),
        ("tril", jnp.tril, (4, 4)),
        ("squeeze", lambda x: x[:, None] * x[None], (5,)),
        ("flip_cat", lambda x: jnp.concatenate([x, x[::-1]], 0), (3, 2)),
    ]
    for name, f, shape in rows:
        for dtype in PLANE if not short else (F32,):
            w.case(name, f, [Arg(*shape)], dtype)
    pads = [((1, 2, 0), (0, 1, 1)), ((-1, 1, 2), (2, -2, 0))]
    for dtype in PLANE if not short else (F64,):
        for config in pads:
            w.case("pad", lambda x, v, c=config: lax.pad(x, v, c),
                   [Arg(4, 5), Arg()], dtype)
        index = Arg(low=0, high=3, dtype=np.int32)
        w.case("dynamic_slice",
               lambda x, i, k: lax.dynamic_slice(x, (i, k), (2, 3)),
               [Arg(4, 5), index, index], dtype)
        w.case("dynamic_update_slice",
               lambda x, u, i, k: lax.dynamic_update_slice(x, u, (i, k)),
               [Arg(4, 5), Arg(2, 3), index, index], dtype)


def reductions(w, short):
    for dtype in FLOATS if not short else (F64,):
        for name, f in (("sum", jnp.sum), ("max", jnp.max), ("min", jnp.min),
                        ("mean", jnp.mean), ("prod", jnp.prod),
                        ("var", jnp.var)):
            w.case("reduce_" + name, lambda x, f=f: f(x, axis=1),
                   [Arg(3, 5, 2, low=0.5, high=1.5)], dtype)
        tied = lambda x: jnp.max(jnp.round(x * 2) * 0 + jnp.floor(x), axis=0)
        w.case("reduce_max_ties", lambda x: jnp.max(jnp.abs(x), axis=1) *
               tied(x)[0], [Arg(3, 6)], dtype)
        w.case("softmax", lambda x: jax.nn.softmax(x, axis=-1), [Arg(3, 6)], dtype)
        w.case("log_softmax", lambda x: jax.nn.log_softmax(x, axis=-1),
               [Arg(3, 6)], dtype)
        w.case("logsumexp", lambda x: jax.nn.logsumexp(x, axis=0), [Arg(3, 6)],
               dtype)
        w.case("dot", lax.dot, [Arg(3, 4), Arg(4, 5)], dtype)
        w.case("einsum", lambda a, b: jnp.einsum("bij,kbj->ikb", a, b),
               [Arg(2, 3, 4), Arg(5, 2, 4)], dtype)
    w.case("dot_complex", lax.dot, [Arg(3, 4), Arg(4, 5)], C128)


def windows(w, short):
    strides = dict(window_strides=(2, 1), padding=((1, 0), (0, 1)))
    for dtype in FLOATS if not short else (F32,):
        for name, op, init in (("add", lax.add, 0.0), ("max", lax.max, -np.inf),
                               ("min", lax.min, np.inf)):
            f = lambda x, op=op, init=init: lax.reduce_window(
                x, np.array(init, x.dtype), op, (3, 2), **strides)
            w.case("reduce_window_" + name, f, [Arg(6, 5)], dtype)
        tied = lambda x: lax.reduce_window(
            jnp.round(x * 2) + x * 0, np.array(-np.inf, x.dtype), lax.max, (2, 2),
            (2, 2), "VALID") + jnp.sum(x)
        w.case("max_pool_ties", tied, [Arg(6, 6)], dtype)
        dims = ("NHWC", "HWIO", "NHWC")
        for name, args, options in (
                ("", [Arg(2, 7, 8, 3), Arg(3, 2, 3, 4)],
                 dict(window_strides=(2, 3), padding=((1, 1), (0, 1)))),
                ("_dilated", [Arg(1, 7, 6, 2), Arg(3, 2, 2, 3)],
                 dict(window_strides=(2, 1), padding=((2, 1), (0, 1)),
                      lhs_dilation=(2, 1), rhs_dilation=(2, 3))),
                ("_groups", [Arg(2, 5, 4, 6), Arg(2, 2, 3, 4)],
                 dict(window_strides=(1, 1), padding="VALID",
                      feature_group_count=2)),
                ("_depthwise", [Arg(2, 5, 4, 3), Arg(3, 3, 1, 6)],
                 dict(window_strides=(1, 1), padding="SAME",
                      feature_group_count=3)),
                ("_batch_groups", [Arg(4, 5, 4, 3), Arg(2, 2, 3, 6)],
                 dict(window_strides=(1, 1), padding="VALID",
                      batch_group_count=2))):
            f = lambda a, b, o=options: lax.conv_general_dilated(
                a, b, dimension_numbers=dims, **o)
            w.case("conv" + name, f, args, dtype)
        for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
            f = lambda x, name=name: getattr(lax, name)(x, axis=1)
            w.case(name, f, [Arg(3, 7)], dtype)
            f = lambda x, name=name: getattr(lax, name)(x, axis=0, reverse=True)
            w.case(name + "_reverse", f, [Arg(5, 2)], dtype)


def places(w, short):
    index = Arg(6, low=-2, high=6, dtype=np.int32)
    for dtype in PLANE if not short else (F64,):
        w.case("take", lambda x, i: jnp.take(x, i, axis=0, mode="clip"),
               [Arg(5, 3), index], dtype)
        w.case("take_fill", lambda x, i: jnp.take(x, i, axis=1, mode="fill",
                                                  fill_value=0),
               [Arg(2, 5), index], dtype)
        w.case("take_along", lambda x, i: jnp.take_along_axis(x, i, 1),
               [Arg(3, 5), Arg(3, 2, low=0, high=4, dtype=np.int32)], dtype)
        w.case("at_add", lambda x, i, u: x.at[i].add(u),
               [Arg(5, 3), index, Arg(6, 3)], dtype)
        w.case("at_set", lambda x, i, u: x.at[i].set(u, unique_indices=True),
               [Arg(7, 3), Arg(1, low=0, high=6, dtype=np.int32), Arg(1, 3)],
               dtype)
        w.case("at_set_twice", lambda x, i, u: x.at[i].set(u),
               [Arg(5, 3), index, Arg(6, 3)], dtype)
        w.case("at_multiply", lambda x, u: x.at[jnp.array([3, 0, 2])].multiply(
            u, unique_indices=True), [Arg(5, 3), Arg(3, 3)], dtype)
    for dtype in FLOATS if not short else (F32,):
        w.case("sort", lambda x: jnp.sort(x, axis=1), [Arg(3, 7)], dtype)
        w.case("sort_pairs", lambda x, y: lax.sort((x, y), num_keys=1),
               [Arg(7), Arg(7)], dtype)
        w.case("top_k", lambda x: lax.top_k(x, 3)[0], [Arg(2, 7)], dtype)
        w.case("arg_max", lambda x: x[jnp.argmax(x)] * x, [Arg(7)], dtype)
        w.case("median", jnp.median, [Arg(7)], dtype)


def control(w, short):
    def rnn(h, xs, m):
        step = lambda c, x: ((d := jnp.tanh(c @ m + x)), d * c)
        return lax.scan(step, h, xs)

    def counted(x, y):
        return lax.fori_loop(0, 5, lambda i, c: jnp.sin(c * y) + x, x)

    def cond(p, x, y):
        return lax.cond(p, lambda a, b: jnp.exp(a * b), lambda a, b: b * b, x, y)

    def switch(i, x):
        return lax.switch(i, [jnp.sin, jnp.exp, lambda v: v * v], x)

    def associative(x, y):
        combine = lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1])
        return lax.associative_scan(combine, (x, y))

    for dtype in FLOATS if not short else (F64,):
        loose = {F32: 1e-5, F64: 1e-12}
        w.case("scan", rnn, [Arg(3), Arg(5, 3), Arg(3, 3)], dtype,
               tolerance=loose)
        w.case("scan_reverse", lambda h, xs, m: lax.scan(
            lambda c, x: (jnp.sin(c * m) + x, c), h, xs, reverse=True),
               [Arg(3), Arg(5, 3), Arg(3)], dtype, tolerance=loose)
        w.case("fori", counted, [Arg(3), Arg(3)], dtype, tolerance=loose)
        w.case("cond", cond, [Arg(dtype=np.bool_), Arg(3), Arg(3)], dtype)
        w.case("switch", switch, [Arg(low=-1, high=4, dtype=np.int32), Arg(3)],
               dtype)
        w.case("associative_scan", associative, [Arg(6), Arg(6)], dtype,
               tolerance=loose)


def algebra(w, short):
    eye = lambda x: jnp.eye(x.shape[-1], dtype=x.dtype) * 3
    near = Arg(2, 3, 3, low=-0.5, high=0.5)
    loose = {F32: 2e-5, F64: 1e-11, C64: 4e-5, C128: 1e-11}
    rows = [
        ("cholesky", lambda x: jnp.linalg.cholesky(x + eye(x)), [near]),
        ("solve", lambda x, b: jnp.linalg.solve(x + eye(x), b),
         [near, Arg(2, 3, 2)]),
        ("inv", lambda x: jnp.linalg.inv(x + eye(x)), [near]),
        ("det", lambda x: jnp.linalg.det(x + eye(x)), [near]),
        ("slogdet", lambda x: jnp.linalg.slogdet(x + eye(x))[1], [near]),
        ("lu", lambda x: lax.linalg.lu(x + eye(x))[0], [near]),
        ("lu_wide", lambda x: lax.linalg.lu(x)[0], [Arg(3, 5)]),
        ("lu_tall", lambda x: lax.linalg.lu(x)[0], [Arg(5, 3)]),
        ("eigvalsh", lambda x: jnp.linalg.eigvalsh(
            x + eye(x) * jnp.arange(3, dtype=x.dtype)), [near]),
        ("svdvals", lambda x: jnp.linalg.svd(x, compute_uv=False), [Arg(3, 4)]),
        ("triangular", lambda x, b: lax.linalg.triangular_solve(
            x + eye(x), b, left_side=True, lower=True, transpose_a=True),
         [near, Arg(2, 3, 2)]),
    ]
    for name, f, args in rows:
        for dtype in (F32, F64) if not short else (F64,):
            w.case(name, f, args, dtype, tolerance=loose)
    for dtype in (F32, F64) if not short else (F32,):
        for name in ("rfft", "irfft"):
            real = lambda x, name=name: jnp.abs(jnp.fft.rfft(x)) + 1 if (
                name == "rfft") else jnp.fft.irfft(lax.complex(x, x * 2))
            w.case(name, real, [Arg(3, 6)], dtype, tolerance=loose)
    for dtype in (C64, C128) if not short else (C128,):
        w.case("fft", jnp.fft.fft, [Arg(3, 6)], dtype, tolerance=loose)
        w.case("ifft", jnp.fft.ifft2, [Arg(3, 4)], dtype, tolerance=loose)


def main():
    short = "--short" in sys.argv
    chosen = [a for a in sys.argv[2:] if not a.startswith("-")]
    w = Writer(sys.argv[1])
    if not chosen:
        models(w)
    for family in (unary, binary, views, reductions, windows, places, control,
                   algebra):
        if not chosen or family.__name__ in chosen:
            family(w, short)
    print(f"{w.count} cases")


if __name__ == "__main__":
    main()
