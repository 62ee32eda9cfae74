#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reductions of ONNX on f16 and bf16 whose sums pass what the type holds and
whose results do not, on ref and llvm. Exits 77 without onnx.

    onnx_sums_test.py
"""

import os
import subprocess
import sys
import tempfile

try:
    import ml_dtypes
    import numpy as np
    import onnx
    from onnx import TensorProto, helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

PESTLE = os.path.join(os.environ["PESTLE_BUILD_DIR"], "pestle")
N = 16
# Op to the exact result on N equal numbers, and that number in f16.
OPS = {
    "ReduceMean": (lambda v: v, 60000.0),
    "ReduceL2": (lambda v: v * N**0.5, 300.0),
    "ReduceLogSum": (lambda v: np.log(v * N), 60000.0),
    "ReduceLogSumExp": (lambda v: v + np.log(float(N)), 10000.0),
    "ReduceSumSquare": (lambda v: v * v * N, 60.0),
}
KINDS = {np.dtype(np.float16): (TensorProto.FLOAT16, 2**-11),
         np.dtype(ml_dtypes.bfloat16): (TensorProto.BFLOAT16, 2**-8)}  # fmt: skip


def run(op, x, onnx_type, device):
    node = helper.make_node(op, ["x"], ["y"], axes=[1], keepdims=0)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", onnx_type, x.shape)],
        [helper.make_tensor_value_info("y", onnx_type, x.shape[:1])])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/m.onnx")
        np.save(f"{folder}/x.npy", x.view(np.float16 if x.dtype == np.float16
                                          else np.uint16))  # fmt: skip
        subprocess.run([PESTLE, "run", f"{folder}/m.onnx", "--input",
                        f"x={folder}/x.npy", "--outputs", f"{folder}/out",
                        "--device", device, "--no-cache"], check=True)  # fmt: skip
        return np.load(f"{folder}/out/output_0.npy").view(x.dtype)


def main():
    bad = 0
    for op, (exact, number) in OPS.items():
        for kind, (onnx_type, step) in KINDS.items():
            x = np.full((2, N), number).astype(kind)
            want = exact(x[:, 0].astype(np.float64))
            for device in ("ref", "llvm"):
                got = run(op, x, onnx_type, device).astype(np.float64)
                if not np.all(np.abs(got - want) <= 1.01 * step * want):
                    print(f"{op} of {kind} on {device}: {got}, not {want}")
                    bad += 1
    print(f"{bad} are wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
