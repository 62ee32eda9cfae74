#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""reduce_window whose padding is as large as the window, as ref runs it for descriptions of
GPUs: lanes share the elements of a window of two axes, and some lie before the operand's first
element or behind its last."""

import os
import sys
import unittest

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}; tools/requirements.txt lists what is needed")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import Case  # noqa: E402

# The operand, the window, and the padding in front; behind there is what keeps the shape.
CASES = [
    ((32, 5), (32, 5), (31, 4)),
    ((32, 5), (32, 5), (0, 0)),
    ((9, 16), (4, 16), (3, 15)),
    ((6, 7), (6, 7), (3, 3)),
    ((3, 40, 6), (3, 9, 6), (2, 4, 5)),
]
TEXT = """func.func @main(%x: {x}, %z: tensor<{t}>) -> {x} {{
  %0 = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: {window}>,
    padding = dense<{padding}> : tensor<{rank}x2xi64>}}> ({{
  ^bb0(%a: tensor<{t}>, %b: tensor<{t}>):
    %1 = stablehlo.{op} %a, %b : tensor<{t}>
    stablehlo.return %1 : tensor<{t}>
  }}) : ({x}, tensor<{t}>) -> {x}
  return %0 : {x}
}}
"""


def in_order(x, window, front, op, init):
    padded = np.full([n + w - 1 for n, w in zip(x.shape, window)], init, x.dtype)
    padded[tuple(slice(f, f + n) for f, n in zip(front, x.shape))] = x
    views = np.lib.stride_tricks.sliding_window_view(padded, window)
    return op.reduce(views.reshape(*x.shape, -1), axis=-1)


class Windows(Case):
    def both(self, case, dtype, op, init, target):
        shape, window, front = case
        rng = np.random.default_rng(0)
        x = rng.integers(0, 100, shape).astype(np.dtype(dtype))
        t = {"int64": "i64", "int32": "i32", "float32": "f32"}[dtype]
        text = TEXT.format(
            x="tensor<" + "".join(f"{n}x" for n in shape) + t + ">", t=t, rank=len(shape),
            window=", ".join(map(str, window)), op={"bitwise_xor": "xor", "maximum": "maximum"}[op],
            padding=[[f, w - 1 - f] for f, w in zip(front, window)])  # fmt: skip
        paths = [os.path.join(self.folder, n) for n in ("m.mlir", "x.npy", "z.npy")]
        with open(paths[0], "w") as file:
            file.write(text)
        np.save(paths[1], x)
        np.save(paths[2], np.array(init, x.dtype))
        self.succeed("run", paths[0], "--device", "ref", "--target-cpu", target, "--no-cache",
                     "--input", f"x={paths[1]}", "--input", f"z={paths[2]}",
                     "--outputs", self.folder)  # fmt: skip
        return (np.load(os.path.join(self.folder, "output_0.npy")),
                in_order(x, window, front, getattr(np, op), init))  # fmt: skip

    def test_windows(self):
        for case in CASES:
            for dtype, op, init in [("int64", "bitwise_xor", 0), ("int32", "bitwise_xor", 0),
                                    ("float32", "maximum", -1)]:  # fmt: skip
                for target in ("simt90", "simt8"):
                    with self.subTest(case=case, dtype=dtype, target=target):
                        np.testing.assert_array_equal(*self.both(case, dtype, op, init, target))


if __name__ == "__main__":
    unittest.main()
