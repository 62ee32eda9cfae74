#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cpu_worker needs beside the peers' ONNX cases: each input as bytes, and the
products of bf16 operands as StableHLO, which ONNX's CPU peers do not take.

    prepare.py CASES FOLDER    CASES: the folder of cases.py; FOLDER: its models
"""
import pathlib
import sys

import numpy as np


def bf16(array):
    bits = array.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def product(name, shapes):
    """Of bf16 matrices, in f32."""
    (m, k), (_, n) = shapes
    types = f"tensor<{m}x{k}xbf16>", f"tensor<{k}x{n}xbf16>"
    return f"""module @{name} {{
  func.func public @main(%A: {types[0]}, %B: {types[1]}) -> tensor<{m}x{n}xf32> {{
    %0 = stablehlo.dot_general %A, %B, contracting_dims = [1] x [0] : ({types[0]}, {types[1]}) -> tensor<{m}x{n}xf32>
    return %0 : tensor<{m}x{n}xf32>
  }}
}}
"""


def main():
    sys.path.insert(0, sys.argv[1])
    from cases import CASES, inputs  # pylint: disable=import-outside-toplevel
    folder = pathlib.Path(sys.argv[2])
    for name, (_, _, _, kind) in CASES.items():
        _, given = inputs(str(folder / f"{name}.onnx"))
        to = folder / "inputs" / name
        to.mkdir(parents=True, exist_ok=True)
        arrays = list(given.values())
        if kind == "bf16":
            text = product(name, [a.shape for a in arrays])
            (folder / f"{name}.mlir").write_text(text)
            arrays = [bf16(a) for a in arrays]
        for i, a in enumerate(arrays):
            a.tofile(to / f"{i}.bin")


main()
