#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Constant weights that a kernel multiplies by, packed, and reads again as they lie: added
to what the product gives. Whole numbers, so that each sum is exact but Winograd's, which has
fractions. Exits 77 without numpy."""

import os
import sys

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import explain, run, tensor  # noqa: E402

R = np.random.default_rng(3)


def whole(dtype, *shape):
    return R.integers(-3, 4, shape).astype(dtype)


def module(x, w, op, result):
    """w as its own summand, in the type of the product."""
    lines = [f'%w = stablehlo.constant dense<"0x{w.tobytes().hex().upper()}"> : {tensor(w)}',
             f"%0 = stablehlo.{op} : ({tensor(x)}, {tensor(w)}) -> {tensor(result)}"]
    again = "%w"
    if w.dtype != result.dtype:
        again = "%v"
        lines.append(f"%v = stablehlo.convert %w : ({tensor(w)}) -> {tensor(result)}")
    lines.append(f"%1 = stablehlo.add %0, {again} : {tensor(result)}")
    return (f"func.func @main(%x: {tensor(x)}) -> {tensor(result)} {{\n  "
            + "\n  ".join(lines) + f"\n  return %1 : {tensor(result)}\n}}\n")


def dot(dtype, made, n):
    x, w = whole(dtype, n, n), whole(dtype, n, n)
    want = (x.astype(np.int64) @ w.astype(np.int64) + w).astype(made)
    return module(x, w, "dot_general %x, %w, contracting_dims = [1] x [0]", want), x, want


def convolution(dtype, side, channels, padding):
    """Windows of side x side taps over images of as many rows, so that results and weights
    are of one shape."""
    shape = (side, side, channels, channels)
    x, w = whole(dtype, *shape), whole(dtype, *shape)
    wide = np.pad(x, ((0, 0), (padding, padding), (0, side - 1), (0, 0)))
    if padding * 2 < side - 1:
        wide = np.pad(wide, ((0, 0), (0, side - 1 - 2 * padding), (0, 0), (0, 0)))
    want = w.copy()
    for i in range(side):
        for j in range(side):
            want += np.einsum("nhwc,co->nhwo", wide[:, i:i + side, j:j + channels], w[i, j])
    text = (f"convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
            f"window = {{pad = [[{padding}, {side - 1 - padding}], [0, {side - 1}]]}} "
            "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}")
    return module(x, w, text, want), x, want


CASES = {
    "f32 dot": (dot("float32", "float32", 24), "packed into panels"),
    "f64 dot": (dot("float64", "float64", 5), "packed into panels"),
    "byte dot": (dot("int8", "int32", 32), None),
    "winograd": (convolution("float32", 3, 16, 1), "Winograd"),
    "f32 taps": (convolution("float32", 2, 16, 0), "packed into panels"),
}


def main():
    bad = []
    for name, ((text, x, want), way) in CASES.items():
        if way and way not in explain(text, "--device", "llvm"):
            bad.append(f"{name}: explain does not say '{way}'")
        for device in ("llvm", "ref"):
            got = run(text, [x], device)
            if isinstance(got, str):
                bad.append(f"{name} on {device}: {got}")
            elif not np.allclose(got[0], want, 0, 1e-2 if way == "Winograd" else 0):
                bad.append(f"{name} on {device}: {(got[0] != want).sum()} of {want.size} wrong")
    print("\n".join(bad) or f"{len(CASES)} programs on two devices are right")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
