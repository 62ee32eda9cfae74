# SPDX-License-Identifier: Apache-2.0
"""Functions that are written once, for pestle's namespace and for JAX's, with the kinds
of their arguments, for jax_derive_long_test.py."""

# Kinds of arguments: a any number, p positive, u inside (-1, 1), b above 1, s a
# well-conditioned symmetric 3 x 3, g any 3 x 3, v a vector of 3, m 3 x 4, i indices.
UNARY = {
    "abs": "a", "exp": "a", "expm1": "a", "log": "p", "log1p": "p", "log2": "p", "log10": "p",
    "sqrt": "p", "sin": "a", "cos": "a", "tan": "u", "asin": "u", "acos": "u", "atan": "a",
    "sinh": "a", "cosh": "a", "tanh": "a", "asinh": "a", "acosh": "b", "atanh": "u",
    "square": "a", "negative": "a", "positive": "a", "reciprocal": "p", "floor": "a",
    "ceil": "a", "trunc": "a", "sign": "a", "sum": "m", "mean": "m", "max": "m", "min": "m",
    "prod": "m", "std": "m", "var": "m", "sort": "m", "cumulative_sum": "v",
    "cumulative_prod": "v",
}
BINARY = {
    "add": "aa", "subtract": "aa", "multiply": "aa", "divide": "ap", "maximum": "aa",
    "minimum": "aa", "pow": "pa", "atan2": "ap", "hypot": "aa", "logaddexp": "aa",
    "remainder": "ap", "copysign": "aa", "matmul": "gg", "outer": "vv",
}


def cases(xp, lax):
    """(name, function, kinds), of a namespace and of its control flow."""
    for name, kind in UNARY.items():
        yield name, getattr(xp, name), kind
    for name, kind in BINARY.items():
        yield name, getattr(xp, name), kind
    rows = {
        "softmax": (lambda x: lax.softmax(x, axis=-1), "m"),
        "log_softmax": (lambda x: lax.log_softmax(x, axis=-1), "m"),
        "logsumexp": (lambda x: lax.logsumexp(x, axis=0), "m"),
        "layer norm": (lambda x, g: (x - xp.mean(x, axis=-1, keepdims=True)) / xp.sqrt(
            xp.var(x, axis=-1, keepdims=True) + 1e-3) * g, "ma"),
        "gelu": (lambda x: 0.5 * x * (1 + xp.tanh(0.79788456 * (x + 0.044715 * x ** 3))),
                 "a"),
        "attention": (lambda q, k, v: lax.softmax(q @ k.T / 2, axis=-1) @ v, "mmm"),
        "where": (lambda x, y: xp.where(x > y, x * y, y), "aa"),
        "clip": (lambda x: xp.clip(x, -0.5, 0.5), "a"),
        "power by number": (lambda x: x ** 3 + x ** 2.5, "p"),
        "reshape": (lambda x: xp.reshape(x, (2, 6)) ** 2, "m"),
        "permute": (lambda x: xp.permute_dims(x, (1, 0)) * 3, "m"),
        "slice": (lambda x: x[1:, ::2] * x[:-1, 1::2], "m"),
        "reverse": (lambda x: xp.flip(x, axis=0) * x, "m"),
        "concat": (lambda x, y: xp.concat([x * y, y], axis=0), "mm"),
        "stack": (lambda x, y: xp.stack([x * y, y], axis=1), "mm"),
        "pad": (lambda x: xp.pad(x, ((1, 2), (0, 1))) ** 2, "m"),
        "roll": (lambda x: xp.roll(x, 1, axis=1) * x, "m"),
        "tile": (lambda x: xp.tile(x, (2, 1)) ** 2, "m"),
        "broadcast": (lambda x, y: x * xp.broadcast_to(y, (3, 4)), "ma"),
        "take": (lambda x, i: xp.take(x, i, axis=1) ** 2, "mi"),
        "index": (lambda x, i: x[i] * x, "gi"),
        "at set": (lambda x, y: x.at[1].set(y[0]) * x, "mm"),
        "at add": (lambda x, i, y: x.at[i].add(y) * x, "gig"),
        "einsum": (lambda x, y: xp.einsum("ij,kj->ik", x, y), "mm"),
        "tensordot": (lambda x, y: xp.tensordot(x, y, axes=2), "mm"),
        "trace": (lambda x: xp.linalg.trace(x @ x), "g"),
        "norm": (lambda x: xp.linalg.vector_norm(x), "v"),
        "inverse": (lambda x: xp.linalg.inv(x), "s"),
        "solve": (lambda x, y: xp.linalg.solve(x, y), "sm"),
        "det": (lambda x: xp.linalg.det(x), "s"),
        "slogdet": (lambda x: xp.linalg.slogdet(x)[1], "s"),
        "cholesky": (lambda x: xp.linalg.cholesky(x + x.T), "s"),
        "eigvalsh": (lambda x: xp.linalg.eigvalsh(x + x.T), "s"),
        "singular values": (lambda x: xp.linalg.svdvals(x), "s"),
        "cond": (lambda x: lax.cond(xp.sum(x) > 0, xp.sin, xp.cos, x), "m"),
        "switch": (lambda x: lax.switch(2, [xp.sin, xp.cos, xp.tanh], x), "m"),
        "fori": (lambda x: lax.fori_loop(0, 4, lambda i, v: xp.sin(v) * x, x), "v"),
        "scan": (lambda x, y: lax.scan(lambda c, r: (xp.tanh(c * r + x[0]), c * c), x[1], y),
                 "mg4"),
        "stop": (lambda x: x * lax.stop_gradient(x), "a"),
        "two results": (lambda x, y: (x * y, {"s": xp.sum(x)}), "aa"),
        "mlp": (lambda x, w, b: xp.tanh(x @ w.T + b) @ w, "mmv"),
        "fft": (lambda x: xp.abs(xp.fft.fft(x)), "v"),
    }
    for name, (function, kinds) in rows.items():
        yield name, function, kinds


def kinds_of(text):
    """'mg4' is m and g4."""
    parts = []
    for letter in text:
        if letter.isdigit():
            parts[-1] += letter
        else:
            parts.append(letter)
    return parts


def argument(kind, random, dtype):
    """One argument as a NumPy array."""
    import numpy as np
    if kind == "i":
        return np.asarray([2, 0, 2])
    shape = {"a": (4,), "p": (4,), "u": (4,), "b": (4,), "s": (3, 3), "g": (3, 3),
             "v": (3,), "m": (3, 4), "g4": (5, 4)}[kind]
    x = random.uniform(-2, 2, shape)
    if kind == "p":
        x = np.abs(x) + 0.25
    if kind == "u":
        x = x * 0.45
    if kind == "b":
        x = np.abs(x) + 1.25
    if kind == "s":
        x = x + x.T + np.diag([9.0, 12.0, 16.0])
    return x.astype(dtype)
