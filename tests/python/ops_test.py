#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each op of the graph IR through Python, beside NumPy, on llvm and on ref; an op without
a row here is a failure. And the op types that tensor libraries have, by the function
that each is."""

import math
import os
import sys

from case import run

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)
import pestle as pt
from pestle import _pestle as c
from pestle._core import body

RNG = np.random.default_rng(5)
X = (RNG.standard_normal((3, 5)) * 3).astype("f4")
Y = (RNG.standard_normal((3, 5)) * 2 + 0.1).astype("f4")
P = np.abs(X) + 0.25
U = np.tanh(X)
I = RNG.integers(-60, 60, (3, 5)).astype("i4")
J = RNG.integers(1, 9, (3, 5)).astype("i4")
W = RNG.integers(0, 200, (3, 5)).astype("u1")
B, C = X > 0, Y > 0
Z = (X + 1j * Y).astype("c8")
T = RNG.standard_normal((2, 3, 4)).astype("f4")
M = RNG.standard_normal((2, 4, 4)).astype("f4") + 4 * np.eye(4, dtype="f4")
S = M @ M.transpose(0, 2, 1)
BLOCK_X = RNG.standard_normal((3, 28)).astype("f4")
BLOCK_W = RNG.integers(0, 256, (6, 16)).astype("u1")
BLOCK_S = RNG.random((6, 2)).astype("f4")
IMAGE = RNG.standard_normal((2, 3, 6, 6)).astype("f4")

erf = np.vectorize(math.erf)
erfc = np.vectorize(math.erfc)


def erfinv(y):
    x = np.zeros_like(y, "f8")
    for _ in range(60):
        x = x - (erf(x) - y) * np.sqrt(np.pi) / 2 * np.exp(x * x)
    return x


def attention_grad(q, k, v, y, c):
    """Of softmax(q k^T / 2) v, whose result is taken to be y."""
    w = soft(0.5 * q @ k.transpose(0, 2, 1), -1)
    dx = w * (c @ v.transpose(0, 2, 1) - (c * y).sum(-1, keepdims=True)) / 2
    return dx @ k, dx.transpose(0, 2, 1) @ q, w.transpose(0, 2, 1) @ c


def norm_grad(x, scale, c):
    x = x - x.mean(1, keepdims=True)
    rate = 1 / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5)
    h, t = x * rate, c * scale
    dx = rate * (t - h * (h * t).mean(1, keepdims=True) - t.mean(1, keepdims=True))
    return dx, (c * h).sum(0, keepdims=True), c.sum(0, keepdims=True)


def block_dot(x, w, scales):
    w = np.stack((w & 15, w >> 4), 2).reshape(len(w), -1) - np.float32(8)
    return x @ (w * scales.repeat(16, 1))[:, :x.shape[1]].T


def soft(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def fma(x, y, z):
    return x * y + z


def afz(x):
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def leading_zeros(x):
    bits = x.dtype.itemsize * 8
    return np.vectorize(lambda v: bits - int(v & (2**bits - 1)).bit_length())(
        x.astype("i8")).astype(x.dtype)


def popcount(x):
    bits = x.dtype.itemsize * 8
    return np.vectorize(lambda v: bin(int(v) & (2**bits - 1)).count("1"))(x).astype(
        x.dtype)


# op: operands of several dtypes, and what NumPy computes of them.
ELEMENTWISE = {
    "add": ([(X, Y), (I, J), (W, W), (Z, Z)], np.add),
    "subtract": ([(X, Y), (I, J), (Z, Z)], np.subtract),
    "multiply": ([(X, Y), (I, J), (Z, Z)], np.multiply),
    "divide": ([(X, Y), (Z, Z)], np.divide),
    "remainder": ([(X, Y), (I, J)], np.fmod),
    "maximum": ([(X, Y), (I, J), (B, C)], np.maximum),
    "minimum": ([(X, Y), (I, J)], np.minimum),
    "power": ([(P, Y)], np.power),
    "fma": ([(X, Y, P)], fma),
    "negate": ([(X,), (I,), (Z,)], np.negative),
    "abs": ([(X,), (I,), (Z,)], np.abs),
    "sign": ([(X,), (I,)], np.sign),
    "and": ([(I, J), (B, C), (W, W)], np.bitwise_and),
    "or": ([(I, J), (B, C)], np.bitwise_or),
    "xor": ([(I, J), (B, C)], np.bitwise_xor),
    "not": ([(I,), (B,), (W,)], np.invert),
    "shift_left": ([(I, J)], np.left_shift),
    "shift_right_arithmetic": ([(I, J)], np.right_shift),
    "shift_right_logical": ([(W, W % 8)], np.right_shift),
    "popcnt": ([(I,), (W,)], popcount),
    "count_leading_zeros": ([(I,), (W,)], leading_zeros),
    "eq": ([(I, I[::-1].copy()), (X, X)], np.equal),
    "ne": ([(I, J), (Z, Z)], np.not_equal),
    "lt": ([(X, Y), (I, J)], np.less),
    "le": ([(X, Y), (W, W)], np.less_equal),
    "gt": ([(X, Y), (I, J)], np.greater),
    "ge": ([(X, Y), (I, J)], np.greater_equal),
    "select": ([(B, X, Y), (B, I, J), (B, Z, Z)], np.where),
    "clamp": ([(-P, X, P), (np.minimum(I, J), J, np.maximum(I, J))],
              lambda low, x, high: np.minimum(np.maximum(x, low), high)),
    "is_finite": ([(X,), (np.array([1, np.inf, np.nan], "f4"),)], np.isfinite),
    "is_nan": ([(np.array([1, np.inf, np.nan], "f4"),)], np.isnan),
    "floor": ([(X,)], np.floor), "ceil": ([(X,)], np.ceil), "trunc": ([(X,)], np.trunc),
    "round_nearest_even": ([(np.round(X) + 0.5,), (X,)], np.round),
    "round_nearest_afz": ([(np.round(X) + 0.5,), (X,)], afz),
    "sqrt": ([(P,), (Z,)], np.sqrt), "rsqrt": ([(P,)], lambda x: 1 / np.sqrt(x)),
    "cbrt": ([(X,)], np.cbrt), "exponential": ([(X,), (Z,)], np.exp),
    "exponential_minus_one": ([(X,)], np.expm1), "log": ([(P,), (Z,)], np.log),
    "log_plus_one": ([(P,)], np.log1p), "logistic": ([(X,)], lambda x: 1 / (1 + np.exp(-x))),
    "tanh": ([(X,), (Z,)], np.tanh), "sine": ([(X,), (Z,)], np.sin),
    "cosine": ([(X,), (Z,)], np.cos), "tan": ([(U,)], np.tan),
    "atan2": ([(X, Y)], np.arctan2), "erf": ([(X,)], erf), "erfc": ([(U,)], erfc),
    "sinc": ([(X,)], lambda x: np.sin(x) / x), "erf_inv": ([(U * 0.9,)], erfinv), "exp2": ([(X,)], np.exp2),
    "complex": ([(X, Y)], lambda x, y: x + 1j * y), "real": ([(Z,)], np.real),
    "imag": ([(Z,)], np.imag),
}


def add_of(dtype):
    return body("ops_add", lambda a, b: c.add(a, b), dtype, dtype)


def windows(x, k, step, reduce, start):
    """x in windows of its last two axes, without padding."""
    h, w = ((n - k) // step + 1 for n in x.shape[-2:])
    out = np.full(x.shape[:-2] + (h, w), start, x.dtype)
    for i in range(h):
        for j in range(w):
            part = x[..., i * step:i * step + k, j * step:j * step + k]
            out[..., i, j] = reduce(part, (-2, -1))
    return out


def convolved(x, w):
    n, ci, h, wd = x.shape
    co, _, kh, kw = w.shape
    out = np.zeros((n, co, h - kh + 1, wd - kw + 1), "f4")
    for i in range(out.shape[2]):
        for j in range(out.shape[3]):
            part = x[:, :, i:i + kh, j:j + kw]
            out[:, :, i, j] = np.einsum("ncij,ocij->no", part, w)
    return out


KERNEL = RNG.standard_normal((4, 3, 3, 3)).astype("f4")
CONV = {"window_strides": (1, 1), "padding": (0,) * 4, "lhs_dilation": (1, 1),
        "rhs_dilation": (1, 1), "window_reversal": (0, 0), "input_batch_dimension": 0,
        "input_feature_dimension": 1, "input_spatial_dimensions": (2, 3),
        "kernel_input_feature_dimension": 1, "kernel_output_feature_dimension": 0,
        "kernel_spatial_dimensions": (2, 3), "output_batch_dimension": 0,
        "output_feature_dimension": 1, "output_spatial_dimensions": (2, 3),
        "feature_group_count": 1, "batch_group_count": 1}
POOL = {"window_dimensions": (1, 1, 2, 2), "window_strides": (1, 1, 2, 2),
        "base_dilations": (1,) * 4, "window_dilations": (1,) * 4, "padding": (0,) * 8}
NORM = {"epsilon": 1e-5, "feature_index": 1}
SCALE, OFFSET = (RNG.random(3).astype("f4") + 0.5 for _ in range(2))
MEAN, VAR = IMAGE.mean((0, 2, 3)), IMAGE.var((0, 2, 3))


def channels(v):
    return v[None, :, None, None]


def normed(x, mean, var):
    return (channels(SCALE) * (x - channels(mean)) / np.sqrt(channels(var) + 1e-5) +
            channels(OFFSET))


def batch_grad(x, grad):
    n = x.size // x.shape[1]
    hat = (x - channels(MEAN)) / np.sqrt(channels(VAR) + 1e-5)
    sums, dots = grad.sum((0, 2, 3)), (grad * hat).sum((0, 2, 3))
    dx = (channels(SCALE) / np.sqrt(channels(VAR) + 1e-5) / n *
          (n * grad - channels(sums) - hat * channels(dots)))
    return dx, dots, sums


def select_and_scatter(x, source):
    out = np.zeros_like(x)
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            part = x[2 * i:2 * i + 2, 2 * j:2 * j + 2]
            a, b = np.unravel_index(part.argmax(), part.shape)
            out[2 * i + a, 2 * j + b] += source[i, j]
    return out


def adaptive(x, size, reduce):
    out = np.zeros(x.shape[:-1] + (size,), x.dtype)
    n = x.shape[-1]
    for i in range(size):
        out[..., i] = reduce(x[..., i * n // size:-(-(i + 1) * n // size)], -1)
    return out


def suppressed(boxes, most, iou):
    """Boxes in order of their scores, those that overlap an earlier one left out."""
    kept = []
    for i, b in enumerate(boxes):
        def area(q):
            return (q[2] - q[0]) * (q[3] - q[1])
        fits = True
        for k in kept:
            q = boxes[k]
            w = min(b[2], q[2]) - max(b[0], q[0])
            h = min(b[3], q[3]) - max(b[1], q[1])
            inner = max(w, 0) * max(h, 0)
            fits &= inner / (area(b) + area(q) - inner) <= iou
        if fits and len(kept) < most:
            kept.append(i)
    return kept


MODULE = """
func.func private @twice(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = stablehlo.add %x, %x : tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}
func.func @main(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  BODY
  return %1 : tensor<3x5xf32>
}
"""
CALLS = {
    "call": "%1 = call @twice(%x) : (tensor<3x5xf32>) -> tensor<3x5xf32>",
    "optimization_barrier": "%0 = stablehlo.add %x, %x : tensor<3x5xf32>\n"
                            "%1 = stablehlo.optimization_barrier %0 : tensor<3x5xf32>",
    # Rows of %x, added up: what is stacked up are the sums so far.
    "scan": """%c = stablehlo.constant dense<0.0> : tensor<5xf32>
  %0:2 = "pestle.scan"(%c, %x) <{length = 3 : i64, carry_count = 1 : i64, xs_count = 1 : i64, reverse = false, unroll = 0 : i64}> ({
  ^bb0(%h: tensor<5xf32>, %row: tensor<5xf32>):
    %h2 = stablehlo.add %h, %row : tensor<5xf32>
    stablehlo.return %h2, %h2 : tensor<5xf32>, tensor<5xf32>
  }) : (tensor<5xf32>, tensor<3x5xf32>) -> (tensor<5xf32>, tensor<3x5xf32>)
  %1 = stablehlo.negate %0#1 : tensor<3x5xf32>""",
    "composite": '%1 = stablehlo.composite "my.twice" %x {decomposition = @twice} : '
              "(tensor<3x5xf32>) -> tensor<3x5xf32>",
}


def of_text(name, device):
    text = MODULE.replace("BODY", CALLS[name])
    if name != "call" and name != "composite":
        text = text[text.index("func.func @main"):]
    return pt.from_stablehlo(text, device=device)


def custom_call(a):
    values = pt.linalg.eigvals(a(M))
    return pt.sum(values, axis=-1)


def fused(a):
    """What a fusion is, is said by the stage of a compilation."""
    x = a(X)
    text = pt.lower(lambda v: pt.exp(v) + 1, x).text("fused")
    assert "pestle.fusion" in text, text
    return pt.jit(lambda v: pt.exp(v) + 1)(x)


# op: [(what gives arrays of a, what NumPy gives)]; a(x) is x on the device.
ROWS = {
    "constant": [(lambda a: c.full((2, 3), 2.5, pt.float32, a.device),
                  lambda: np.full((2, 3), 2.5, "f4"))],
    "iota": [(lambda a: c.apply("iota", (), {"iota_dimension": 1}, pt.int32, (2, 4), None,
                                a.device), lambda: np.broadcast_to(np.arange(4), (2, 4)))],
    "convert": [(lambda a: c.cast(a(X * 9), pt.int32), lambda: (X * 9).astype("i4")),
                (lambda a: c.cast(a(I), pt.float64), lambda: I.astype("f8"))],
    "bitcast_convert": [(lambda a: c.apply("bitcast_convert", (a(X),), None, pt.uint32,
                                           X.shape), lambda: X.view("u4"))],
    "broadcast_in_dim": [(lambda a: c.apply(
        "broadcast_in_dim", (a(X),), {"broadcast_dimensions": (0, 2)}, pt.float32,
        (3, 2, 5)), lambda: np.broadcast_to(X[:, None], (3, 2, 5)))],
    "reshape": [(lambda a: pt.reshape(a(X), (5, 3)), lambda: X.reshape(5, 3))],
    "transpose": [(lambda a: pt.permute_dims(a(T), (2, 0, 1)),
                   lambda: T.transpose(2, 0, 1))],
    "slice": [(lambda a: a(X)[1:, ::2], lambda: X[1:, ::2])],
    "reverse": [(lambda a: pt.flip(a(T), axis=(0, 2)), lambda: np.flip(T, (0, 2)))],
    "pad": [(lambda a: pt.pad(a(X), ((1, 0), (2, 1)), 7.0),
             lambda: np.pad(X, ((1, 0), (2, 1)), constant_values=7))],
    "concatenate": [(lambda a: pt.concat([a(X), a(Y)], axis=1),
                     lambda: np.concatenate([X, Y], 1))],
    "dynamic_slice": [(lambda a: c.apply(
        "dynamic_slice", (a(X), a(np.int32(1)), a(np.int32(9))), {"slice_sizes": (2, 3)}),
        lambda: X[1:3, 2:5])],
    "dynamic_update_slice": [(lambda a: c.apply(
        "dynamic_update_slice", (a(X), a(Y[:2, :2]), a(np.int32(1)), a(np.int32(2)))),
        lambda: np.block([[X[:1]], [np.block([X[1:, :2], Y[:2, :2], X[1:, 4:]])]]))],
    "gather": [(lambda a: pt.take(a(X), a(np.array([2, 0, 0])), axis=0),
                lambda: X[[2, 0, 0]])],
    "reduce": [(lambda a: c.apply("reduce", (a(T), c.full((), 0, pt.float32, a.device)),
                                  {"dimensions": (0, 2)}, None, None,
                                  (add_of(pt.float32),))[0], lambda: T.sum((0, 2))),
               (lambda a: pt.sum(a(Z), axis=1), lambda: Z.sum(1))],
    "reduce_window": [(lambda a: c.apply(
        "reduce_window", (a(IMAGE), c.full((), 0, pt.float32, a.device)), POOL, None, None,
        (add_of(pt.float32),))[0], lambda: windows(IMAGE, 2, 2, np.sum, 0))],
    "dot_general": [(lambda a: a(M) @ a(M), lambda: M @ M),
                    (lambda a: pt.einsum("ij,kj->ik", a(I), a(J)), lambda: I @ J.T)],
    "convolution": [(lambda a: c.apply("convolution", (a(IMAGE), a(KERNEL)), CONV,
                                       pt.float32, (2, 4, 4, 4)),
                     lambda: convolved(IMAGE, KERNEL))],
    "while": [(lambda a: pt.fori_loop(0, 4, lambda i, x: x * 2 + i, a(X)),
               lambda: X * 16 + 11)],
    "if": [(lambda a: pt.cond(a(np.bool_(False)), pt.sin, pt.cos, a(X)),
            lambda: np.cos(X))],
    "case": [(lambda a: pt.switch(a(np.int32(2)), (pt.sin, pt.cos, pt.exp), a(X)),
              lambda: np.exp(X))],
    "scan": [(lambda a: of_text("scan", a.device)(a(X)), lambda: -np.cumsum(X, 0))],
    "call": [(lambda a: of_text("call", a.device)(a(X)), lambda: 2 * X)],
    "return": [(lambda a: of_text("call", a.device)(a(X)), lambda: 2 * X)],
    "optimization_barrier": [(lambda a: of_text("optimization_barrier", a.device)(a(X)),
                              lambda: 2 * X)],
    "composite": [(lambda a: of_text("composite", a.device)(a(X)), lambda: 2 * X)],
    "custom_call": [(custom_call, lambda: M.trace(0, 1, 2).astype("c8"))],
    "fusion": [(fused, lambda: np.exp(X) + 1)],
    "softmax": [(lambda a: pt.softmax(a(T), axis=1), lambda: soft(T, 1))],
    "log_softmax": [(lambda a: pt.log_softmax(a(T)), lambda: np.log(soft(T, -1)))],
    "logsumexp": [(lambda a: pt.logsumexp(a(T), axis=2),
                   lambda: np.log(np.exp(T).sum(2)))],
    "layer_norm": [(lambda a: c.apply(
        "layer_norm", (a(X), a(Y[0]), a(P[0])), {"dimensions": (1,), "epsilon": 1e-5}),
        lambda: (X - X.mean(1, keepdims=True)) / np.sqrt(
            X.var(1, keepdims=True) + 1e-5) * Y[0] + P[0])],
    "rms_norm": [(lambda a: c.apply("rms_norm", (a(X), a(Y[0])),
                                    {"dimensions": (1,), "epsilon": 1e-5}),
                  lambda: X / np.sqrt((X * X).mean(1, keepdims=True) + 1e-5) * Y[0])],
    "gelu": [(lambda a: c.apply("gelu", (a(X),)),
              lambda: X * (1 + erf(X / np.sqrt(2))) / 2),
             (lambda a: c.apply("gelu", (a(X),), {"approximate": True}),
              lambda: X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3))) / 2)],
    "silu": [(lambda a: c.apply("silu", (a(X),)), lambda: X / (1 + np.exp(-X)))],
    "hard_sigmoid": [(lambda a: c.apply("hard_sigmoid", (a(X),),
                                        {"alpha": 0.2, "beta": 0.5}),
                      lambda: np.clip(0.2 * X + 0.5, 0, 1))],
    "quantize": [(lambda a: c.apply(
        "quantize", (a(X), a(np.float32(0.1)), a(np.int8(3)))),
        lambda: np.clip(np.round(X / np.float32(0.1)) + 3, -128, 127).astype("i1"))],
    "dequantize": [(lambda a: c.apply(
        "dequantize", (a(I.astype("i1")), a(np.float32(0.1)), a(np.int8(3)))),
        lambda: ((I - 3) * np.float32(0.1)).astype("f4"))],
    "attention": [(lambda a: c.apply("attention", (a(M), a(M + 1), a(M - 1)),
                                     {"scale": 0.5}),
                   lambda: soft(0.5 * M @ (M + 1).transpose(0, 2, 1), -1) @ (M - 1))],
    "attention_grad": [(lambda a: c.apply(
        "attention_grad", (a(M), a(M + 1), a(M - 1), a(M), a(M * 2)),
        {"scale": 0.5}), lambda: attention_grad(M, M + 1, M - 1, M, M * 2))],
    "norm_grad": [(lambda a: c.apply(
        "norm_grad", (a(X), a(Y[0]), a(X * X)),
        {"dimension": 1, "epsilon": 1e-5, "centred": True, "blocks": 1}),
        lambda: norm_grad(X, Y[0], X * X))],
    "block_dot": [(lambda a: c.apply(
        "block_dot", (a(BLOCK_X), a(BLOCK_W), a(BLOCK_S)), {"bits": 4, "block": 16}),
        lambda: block_dot(BLOCK_X, BLOCK_W, BLOCK_S))],
    "sort": [(lambda a: pt.sort(a(X), axis=0), lambda: np.sort(X, 0)),
             (lambda a: pt.argsort(a(I), axis=1), lambda: np.argsort(I, 1, "stable"))],
    "sort_first": [(lambda a: c.apply("sort_first", (a(X),), {"count": 2, "dimension": 1},
                                      None, None, (body(
                                          "ops_less", lambda p, q: c.less(p, q),
                                          pt.float32, pt.float32),))[0],
                    lambda: np.sort(X, 1)[:, :2])],
    "scatter": [(lambda a: a(X).at[a(np.array([2, 2, 0]))].add(a(Y)),
                 lambda: added(X, [2, 2, 0], Y))],
    "select_and_scatter": [(lambda a: c.apply(
        "select_and_scatter", (a(X[:2, :4]), a(Y[:1, :2]),
                               c.full((), 0, pt.float32, a.device)),
        {"window_dimensions": (2, 2), "window_strides": (2, 2), "padding": (0,) * 4}, None,
        None, (body("ops_ge", lambda p, q: c.greater_equal(p, q), pt.float32, pt.float32),
               add_of(pt.float32))), lambda: select_and_scatter(X[:2, :4], Y[:1, :2]))],
    "cholesky": [(lambda a: pt.linalg.cholesky(a(S)), lambda: np.linalg.cholesky(S))],
    "triangular_solve": [(lambda a: c.apply(
        "triangular_solve", (a(np.tril(M)), a(M[:, :, :2])),
        {"left_side": True, "lower": True, "unit_diagonal": False,
         "transpose_a": "NO_TRANSPOSE"}),
        lambda: np.linalg.solve(np.tril(M), M[:, :, :2]))],
    "map": [(lambda a: pt.hypot(a(X), a(Y)), lambda: np.hypot(X, Y))],
    "reduce_precision": [(lambda a: c.apply(
        "reduce_precision", (a(X),), {"exponent_bits": 5, "mantissa_bits": 10}),
        lambda: X.astype("f2").astype("f4"))],
    "batch_norm_inference": [(lambda a: c.apply(
        "batch_norm_inference", tuple(map(a, (IMAGE, SCALE, OFFSET, MEAN, VAR))), NORM),
        lambda: normed(IMAGE, MEAN, VAR))],
    "batch_norm_training": [(lambda a: c.apply(
        "batch_norm_training", tuple(map(a, (IMAGE, SCALE, OFFSET))), NORM),
        lambda: (normed(IMAGE, MEAN, VAR), MEAN, VAR))],
    "batch_norm_grad": [(lambda a: c.apply(
        "batch_norm_grad", tuple(map(a, (IMAGE, SCALE, MEAN, VAR, IMAGE**2))), NORM),
        lambda: batch_grad(IMAGE, IMAGE**2))],
    "fft": [(lambda a: pt.fft.fft(a(Z)), lambda: np.fft.fft(Z)),
            (lambda a: pt.fft.irfft(a(Z), n=7), lambda: np.fft.irfft(Z, 7))],
    "rng_bit_generator": [(lambda a: random_bits(a), lambda: np.array([True] * 3))],
    "rng": [(lambda a: random_numbers(a), lambda: np.array([True] * 3))],
    "lu": [(lambda a: of_lu(a), lambda: M)],
    "solve": [(lambda a: pt.linalg.solve(a(M), a(M[:, :, :2])),
               lambda: np.linalg.solve(M, M[:, :, :2]))],
    "inverse": [(lambda a: pt.linalg.inv(a(M)), lambda: np.linalg.inv(M))],
    "qr": [(lambda a: product(*pt.linalg.qr(a(M))), lambda: M)],
    "eigh": [(lambda a: pt.linalg.eigvalsh(a(S)), lambda: np.linalg.eigvalsh(S))],
    "svd": [(lambda a: pt.linalg.svdvals(a(T)), lambda: np.linalg.svd(T)[1])],
    "adaptive_average_pool": [(lambda a: c.apply(
        "adaptive_average_pool", (a(X),), {"dimensions": (1,), "output_sizes": (3,)}),
        lambda: adaptive(X, 3, np.mean))],
    "adaptive_max_pool": [(lambda a: c.apply(
        "adaptive_max_pool", (a(X),), {"dimensions": (1,), "output_sizes": (2,)}),
        lambda: adaptive(X, 2, np.max))],
    "extent": [(lambda a: c.apply("extent", (a(X), a(np.int64(2))),
                                  {"dimension": 0})[:2], lambda: X[:2])],
    "suppress": [(lambda a: pt.sum(boxes_kept(a)), lambda: np.int64(sum(KEPT)))],
    "places": [(lambda a: pt.nonzero(a(X > 0))[1], lambda: np.nonzero(X > 0)[1])],
    "cumulative": [(lambda a: pt.cumulative_sum(a(X), axis=1), lambda: np.cumsum(X, 1)),
                   (lambda a: c.apply("cumulative", (a(X),), {
                       "dimension": 0, "combiner": "MAXIMUM", "reverse": True}),
                    lambda: np.maximum.accumulate(X[::-1], 0)[::-1])],
}


def added(x, places, values):
    y = x.copy()
    np.add.at(y, places, values)
    return y


def product(a, b):
    return a @ b


def of_lu(a):
    factors, pivots, order = c.apply("lu", (a(M),))
    n = M.shape[-1]
    low = pt.tril(factors, k=-1) + pt.eye(n, device=a.device)
    whole = low @ pt.triu(factors)
    # Row i of the product is row order[i] of the matrix.
    back = pt.argsort(order, axis=-1)
    return pt.take_along_axis(whole, pt.expand_dims(back, -1), axis=1)


def random_bits(a):
    state = a(np.array([1, 2], "u8"))
    after, bits = c.apply("rng_bit_generator", (state,), {
        "rng_algorithm": "THREE_FRY", "output_type": (pt.uint32, (1000,))})
    again = c.apply("rng_bit_generator", (state,), {
        "rng_algorithm": "THREE_FRY", "output_type": (pt.uint32, (1000,))})[1]
    later = c.apply("rng_bit_generator", (after,), {
        "rng_algorithm": "THREE_FRY", "output_type": (pt.uint32, (1000,))})[1]
    mean = pt.mean(c.cast(bits, pt.float32)) / 2**32
    return pt.stack([pt.all(bits == again), pt.any(bits != later),
                     pt.abs(mean - 0.5) < 0.05])


def random_numbers(a):
    # An op with an effect is recorded by no function: a module has it.
    f = pt.from_stablehlo("""
func.func @main(%low: tensor<f32>, %high: tensor<f32>) -> tensor<40x50xf32> {
  %s = stablehlo.constant dense<[40, 50]> : tensor<2xi64>
  %0 = stablehlo.rng %low, %high, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<40x50xf32>
  return %0 : tensor<40x50xf32>
}
""", device=a.device)
    x = f(a(np.float32(-1)), a(np.float32(3)))
    return pt.stack([pt.min(x) >= -1, pt.max(x) < 3, pt.abs(pt.mean(x) - 1) < 0.15])


BOXES = np.array([[0, 0, 2, 2], [0.1, 0, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4.1],
                  [0, 0, 1, 1]], "f4")
SCORES = np.array([0.9, 0.8, 0.7, 0.6, 0.5], "f4")
KEPT = suppressed(BOXES, 4, 0.5)


def boxes_kept(a):
    """The sum of the places of boxes that stay."""
    places, count = c.apply("suppress", (
        a(BOXES[None]), a(SCORES[None, None]), a(np.float32("nan")), a(np.float32(0.5)),
        a(np.int64(4)), a(np.int64(5))), {"most": 4})
    return places[0, 0, :count.item()]


def maker(device):
    def a(x):
        return pt.asarray(np.array(x, order="C"), device=device)
    a.device = device
    return a


def close(ours, theirs, title, rtol=3e-5):
    if isinstance(theirs, tuple):
        for x, y in zip(ours, theirs):
            close(x, y, title, 2e-3)
        return
    got = pt.asnumpy(ours)
    theirs = np.asarray(theirs)
    assert got.shape == theirs.shape, (title, got.shape, theirs.shape)
    assert got.dtype.kind == theirs.dtype.kind, (title, got.dtype, theirs.dtype)
    if "linalg" in title:
        rtol = 2e-3
    np.testing.assert_allclose(got, theirs, rtol=rtol, atol=rtol * 2, err_msg=title)


SLOW = ("cholesky", "triangular_solve", "lu", "solve", "inverse", "qr", "eigh", "svd",
        "custom_call", "fft", "batch_norm_training", "batch_norm_grad")


# Ops between processes: an array of one device has none (tests/pjrt/devices_test.py).
COLLECTIVES = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
               "collective_permute", "collective_broadcast", "partition_id", "replica_id",
               "constant_part"}


def test_every_op_has_a_row():
    wanted = set(c.OPS) - COLLECTIVES
    missing = wanted - set(ELEMENTWISE) - set(ROWS)
    assert not missing, f"no row of {sorted(missing)}"
    assert not (set(ELEMENTWISE) | set(ROWS)) - wanted
    assert all(ROWS.values())
    assert len(wanted) >= 113


def on(device):
    a, bad = maker(device), []
    for name, (lists, theirs) in ELEMENTWISE.items():
        for operands in lists:
            try:
                wanted = theirs(*(x.astype("f8") if x.dtype == "f4" else x
                                  for x in operands))
                close(c.apply(name, tuple(map(a, operands))), np.asarray(wanted), name)
            except Exception as error:  # pylint: disable=broad-except
                bad.append(f"{name} of {operands[0].dtype}: {error}")
    for name, rows in ROWS.items():
        for call, theirs in rows:
            try:
                close(call(a), theirs(), "linalg " + name if name in SLOW else name)
            except Exception as error:  # pylint: disable=broad-except
                bad.append(f"{name}: {type(error).__name__}: {error}")
    assert not bad, f"{len(bad)} on {device}:\n" + "\n".join(b[:400] for b in bad)


def test_ops_on_llvm():
    on("llvm")


def test_ops_on_ref():
    on("ref")


def test_ops_on_others():
    """On devices that PESTLE_TEST_DEVICES names, such as "cuda vulkan"."""
    for device in os.environ.get("PESTLE_TEST_DEVICES", "").split():
        on(device)


# What tensor libraries call their op types, by the function that is each.
def pooled(x, k, dims, low, op):
    """Windows of k along the last dims axes."""
    ndim = x.ndim
    size = (1,) * (ndim - dims) + (k,) * dims
    start = c.full((), low, x.dtype, x.device)
    fold = body("pool_" + op, getattr(c, op), x.dtype, x.dtype)
    return c.apply("reduce_window", (x, start), {
        "window_dimensions": size, "window_strides": size, "base_dilations": (1,) * ndim,
        "window_dilations": (1,) * ndim, "padding": (0,) * (2 * ndim)}, None, None, (fold,))[0]


def blocks(x, k, dims, reduce):
    shape = list(x.shape[:x.ndim - dims])
    axes = []
    for n in x.shape[x.ndim - dims:]:
        shape += [n // k, k]
        axes.append(len(shape) - 1)
    return reduce(x.reshape(shape), tuple(axes))


VOLUME = RNG.standard_normal((2, 4, 4, 4)).astype("f4")
PLACES = np.array([2, 0, 1])
OP_TYPES = {
    "Add": (lambda a: pt.add(a(X), a(Y)), lambda: X + Y),
    "Subtract": (lambda a: pt.subtract(a(X), a(Y)), lambda: X - Y),
    "Multiply": (lambda a: pt.multiply(a(X), a(Y)), lambda: X * Y),
    "Divide": (lambda a: pt.divide(a(X), a(Y)), lambda: X / Y),
    "Power": (lambda a: pt.pow(a(P), a(Y)), lambda: P**Y),
    "Modulo": (lambda a: pt.remainder(a(I), a(J)), lambda: I % J),
    "Equal": (lambda a: pt.equal(a(I), a(J)), lambda: I == J),
    "NotEqual": (lambda a: pt.not_equal(a(I), a(J)), lambda: I != J),
    "Less": (lambda a: pt.less(a(X), a(Y)), lambda: X < Y),
    "LessEqual": (lambda a: pt.less_equal(a(X), a(Y)), lambda: X <= Y),
    "Greater": (lambda a: pt.greater(a(X), a(Y)), lambda: X > Y),
    "GreaterEqual": (lambda a: pt.greater_equal(a(X), a(Y)), lambda: X >= Y),
    "LogicalAnd": (lambda a: pt.logical_and(a(B), a(C)), lambda: B & C),
    "LogicalOr": (lambda a: pt.logical_or(a(B), a(C)), lambda: B | C),
    "LogicalXor": (lambda a: pt.logical_xor(a(B), a(C)), lambda: B ^ C),
    "LogicalNot": (lambda a: pt.logical_not(a(B)), lambda: ~B),
    "BitwiseAnd": (lambda a: pt.bitwise_and(a(I), a(J)), lambda: I & J),
    "BitwiseOr": (lambda a: pt.bitwise_or(a(I), a(J)), lambda: I | J),
    "BitwiseXor": (lambda a: pt.bitwise_xor(a(I), a(J)), lambda: I ^ J),
    "LeftShift": (lambda a: pt.bitwise_left_shift(a(I), a(J)), lambda: I << J),
    "RightShift": (lambda a: pt.bitwise_right_shift(a(I), a(J)), lambda: I >> J),
    "Negate": (lambda a: pt.negative(a(X)), lambda: -X),
    "Abs": (lambda a: pt.abs(a(X)), lambda: np.abs(X)),
    "Sqrt": (lambda a: pt.sqrt(a(P)), lambda: np.sqrt(P)),
    "Exp": (lambda a: pt.exp(a(X)), lambda: np.exp(X)),
    "Log": (lambda a: pt.log(a(P)), lambda: np.log(P)),
    "Sin": (lambda a: pt.sin(a(X)), lambda: np.sin(X)),
    "Cos": (lambda a: pt.cos(a(X)), lambda: np.cos(X)),
    "Tan": (lambda a: pt.tan(a(U)), lambda: np.tan(U)),
    "Erf": (lambda a: pt.erf(a(X)), lambda: erf(X).astype("f4")),
    "Sign": (lambda a: pt.sign(a(X)), lambda: np.sign(X)),
    "Floor": (lambda a: pt.floor(a(X)), lambda: np.floor(X)),
    "Ceil": (lambda a: pt.ceil(a(X)), lambda: np.ceil(X)),
    "Round": (lambda a: pt.round(a(X)), lambda: np.round(X)),
    "Trunc": (lambda a: pt.trunc(a(X)), lambda: np.trunc(X)),
    "Cbrt": (lambda a: pt.cbrt(a(X)), lambda: np.cbrt(X)),
    "Rsqrt": (lambda a: pt.rsqrt(a(P)), lambda: 1 / np.sqrt(P)),
    "Square": (lambda a: pt.square(a(X)), lambda: X * X),
    "Reciprocal": (lambda a: pt.reciprocal(a(P)), lambda: 1 / P),
    "ReLU": (lambda a: pt.maximum(a(X), 0), lambda: np.maximum(X, 0)),
    "LeakyReLU": (lambda a: pt.where(a(X) > 0, a(X), 0.1 * a(X)),
                  lambda: np.where(X > 0, X, np.float32(0.1) * X)),
    "SiLU": (lambda a: a(X) * pt.sigmoid(a(X)), lambda: X / (1 + np.exp(-X))),
    "Sigmoid": (lambda a: pt.sigmoid(a(X)), lambda: 1 / (1 + np.exp(-X))),
    "Tanh": (lambda a: pt.tanh(a(X)), lambda: np.tanh(X)),
    "GELU": (lambda a: 0.5 * a(X) * (1 + pt.erf(a(X) / math.sqrt(2))),
             lambda: (X * (1 + erf(X / np.sqrt(2))) / 2).astype("f4")),
    "Softmax": (lambda a: pt.softmax(a(X)), lambda: soft(X, -1)),
    "LogSoftmax": (lambda a: pt.log_softmax(a(X)), lambda: np.log(soft(X, -1))),
    "Sum": (lambda a: pt.sum(a(X), axis=1), lambda: X.sum(1)),
    "Mean": (lambda a: pt.mean(a(X), axis=0, keepdims=True),
             lambda: X.mean(0, keepdims=True)),
    "Max": (lambda a: pt.max(a(X), axis=(0, 1)), lambda: X.max()),
    "Min": (lambda a: pt.min(a(X), axis=1), lambda: X.min(1)),
    "ArgMax": (lambda a: pt.argmax(a(X), axis=1), lambda: X.argmax(1)),
    "ArgMin": (lambda a: pt.argmin(a(X)), lambda: X.argmin()),
    "Prod": (lambda a: pt.prod(a(U), axis=1), lambda: U.prod(1)),
    "Any": (lambda a: pt.any(a(B), axis=0), lambda: B.any(0)),
    "All": (lambda a: pt.all(a(B), axis=0), lambda: B.all(0)),
    "MatMul": (lambda a: pt.matmul(a(X), a(Y.T)), lambda: X @ Y.T),
    "BatchMatMul": (lambda a: pt.matmul(a(M), a(T.transpose(0, 2, 1))),
                    lambda: M @ T.transpose(0, 2, 1)),
    "Where": (lambda a: pt.where(a(B), a(X), a(Y)), lambda: np.where(B, X, Y)),
    "MaskedFill": (lambda a: pt.where(a(B), 7.0, a(X)),
                   lambda: np.where(B, np.float32(7), X)),
    "MaskedSelect": (lambda a: a(X)[a(B)], lambda: X[B]),
    "Gather": (lambda a: a(X)[a(PLACES), a(PLACES)], lambda: X[PLACES, PLACES]),
    "Scatter": (lambda a: a(X).at[a(PLACES)].set(a(Y)), lambda: Y[np.argsort(PLACES)]),
    "IndexSelect": (lambda a: pt.take(a(X), a(PLACES), axis=1), lambda: X[:, PLACES]),
    "Take": (lambda a: pt.take(pt.ravel(a(X)), a(PLACES)), lambda: X.ravel()[PLACES]),
    "TakeAlongAxis": (lambda a: pt.take_along_axis(a(X), a(np.argsort(X, 1)), axis=1),
                      lambda: np.sort(X, 1)),
    "LayerNorm": (lambda a: (a(X) - pt.mean(a(X), axis=1, keepdims=True)) / pt.std(
        a(X), axis=1, keepdims=True),
        lambda: (X - X.mean(1, keepdims=True)) / X.std(1, keepdims=True)),
    "RMSNorm": (lambda a: a(X) * pt.rsqrt(pt.mean(a(X)**2, axis=1, keepdims=True)),
                lambda: X / np.sqrt((X * X).mean(1, keepdims=True))),
    "Dropout": (lambda a: dropped(a), lambda: np.array([True, True])),
    "MaxPool1D": (lambda a: pooled(a(VOLUME), 2, 1, -float("inf"), "maximum"),
                  lambda: blocks(VOLUME, 2, 1, np.max)),
    "MaxPool2D": (lambda a: pooled(a(VOLUME), 2, 2, -float("inf"), "maximum"),
                  lambda: blocks(VOLUME, 2, 2, np.max)),
    "MaxPool3D": (lambda a: pooled(a(VOLUME), 2, 3, -float("inf"), "maximum"),
                  lambda: blocks(VOLUME, 2, 3, np.max)),
    "AvgPool1D": (lambda a: pooled(a(VOLUME), 2, 1, 0, "add") / 2,
                  lambda: blocks(VOLUME, 2, 1, np.mean)),
    "AvgPool2D": (lambda a: pooled(a(VOLUME), 2, 2, 0, "add") / 4,
                  lambda: blocks(VOLUME, 2, 2, np.mean)),
    "AvgPool3D": (lambda a: pooled(a(VOLUME), 2, 3, 0, "add") / 8,
                  lambda: blocks(VOLUME, 2, 3, np.mean)),
    "AdaptiveMaxPool2D": (lambda a: c.apply("adaptive_max_pool", (a(IMAGE),), {
        "dimensions": (2, 3), "output_sizes": (3, 2)}),
        lambda: adaptive(adaptive(IMAGE, 2, np.max).swapaxes(2, 3), 3, np.max).swapaxes(
            2, 3)),
    "AdaptiveAvgPool2D": (lambda a: c.apply("adaptive_average_pool", (a(IMAGE),), {
        "dimensions": (2, 3), "output_sizes": (3, 2)}),
        lambda: adaptive(adaptive(IMAGE, 2, np.mean).swapaxes(2, 3), 3, np.mean).swapaxes(
            2, 3)),
}


def dropped(a):
    x = pt.ones((100, 100), device=a.device)
    with pt.default_device(a.device):
        kept = pt.random.bernoulli(pt.random.key(1), 0.75, shape=x.shape)
    y = pt.where(kept, x / 0.75, 0.0)
    return pt.stack([pt.abs(pt.mean(y) - 1) < 0.03,
                     pt.all((y == 0) | (pt.abs(y - 4 / 3) < 1e-6))])


def test_op_types():
    bad = []
    for device in ("llvm", "ref", *os.environ.get("PESTLE_TEST_DEVICES", "").split()):
        a = maker(device)
        for name, (call, theirs) in OP_TYPES.items():
            try:
                close(call(a), theirs(), name, 1e-4)
            except Exception as error:  # pylint: disable=broad-except
                bad.append(f"{name} on {device}: {type(error).__name__}: {error}")
    assert not bad, f"{len(bad)}:\n" + "\n".join(b[:300] for b in bad)
    assert len(OP_TYPES) >= 70


run(globals())
