#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gradient of attention whose scores are large is made in blocks of rows: right in
f64's eyes, the same bits each time, and with less memory than half of the scores."""

import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}; tools/requirements.txt lists what is needed")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import has_compiler  # noqa: E402
from program import PESTLE, check, failures, run  # noqa: E402

HEADS, ROWS, DEPTH = 2, 4112, 8
GRADS = ["--grad", "0", "--grad", "1", "--grad", "2"]


def text(is_masked):
    x = f"tensor<{HEADS}x{ROWS}x{DEPTH}xf32>"
    mask = f"tensor<1x{ROWS}x{ROWS}xi1>" if is_masked else None
    more, given, types = "", "", f"{x}, {x}, {x}"
    if mask:
        more, given, types = f", %m: {mask}", ", %m", f"{types}, {mask}"
    return f"""func.func @main(%q: {x}, %k: {x}, %v: {x}, %c: {x}{more}) -> tensor<f32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = "pestle.attention"(%q, %k, %v{given}) {{scale = 0.5 : f64, masked = -1.0e30 : f64}} : ({types}) -> {x}
  %z = stablehlo.multiply %y, %c : {x}
  %r = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : ({x}, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}}
"""


def gradients(q, k, v, c, mask):
    q, k, v, c = (a.astype(np.float64) for a in (q, k, v, c))
    x = 0.5 * np.einsum("hsd,htd->hst", q, k)
    if mask is not None:
        np.copyto(x, -np.inf, where=~mask)
    x -= x.max(-1, keepdims=True)
    w = np.exp(x, out=x)
    w /= w.sum(-1, keepdims=True)
    dw = np.einsum("hse,hte->hst", c, v)
    dw -= (w * dw).sum(-1, keepdims=True)
    dw *= w
    dw *= 0.5
    return (np.einsum("hst,htd->hsd", dw, k), np.einsum("hst,hsd->htd", dw, q),
            np.einsum("hst,hse->hte", w, c))


def planned_peak(source):
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(source)
        file.flush()
        done = subprocess.run([PESTLE, "dump", "--stage", "plan", *GRADS, file.name],
                              capture_output=True, text=True, check=True)
    return int(re.search(r"planned peak (\d+) bytes", done.stdout)[1])


def main():
    if not has_compiler():
        print("skipped: the llvm backend is not built")
        return 77
    rng = np.random.default_rng(5)
    shape = HEADS, ROWS, DEPTH
    arrays = [rng.standard_normal(shape, dtype=np.float32) for _ in range(4)]
    for mask in (None, np.tril(np.ones((1, ROWS, ROWS), bool))):
        inputs = arrays if mask is None else [*arrays, mask]
        source = text(mask is not None)
        name = "plain" if mask is None else "causal"
        first = run(source, inputs, "llvm", *GRADS)
        again = run(source, inputs, "llvm", *GRADS, "--threads", "1")
        if isinstance(first, str):
            check(name, False, first)
            continue
        for i, want in enumerate(gradients(*arrays, mask)):
            error = np.abs(first[i + 1] - want).max() / np.abs(want).max()
            check(f"{name}, gradient {i}", error < 1e-5, f"is {error} off")
            check(f"{name}, gradient {i}", np.array_equal(first[i + 1], again[i + 1]),
                  "has other bits with one thread")
        peak = planned_peak(source)
        check(name, peak < HEADS * ROWS * ROWS * 2, f"takes {peak} bytes")
    print("\n".join(failures) or "attention's gradient is right in blocks")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
