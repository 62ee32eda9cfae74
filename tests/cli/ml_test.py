#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes of ai.onnx.ml, drawn from seeds, on ref and llvm beside ONNX Runtime's CPU
kernels. Exits 77 without onnx and onnxruntime."""

import sys

try:
    import ml_cases
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

if __name__ == "__main__":
    right = ml_cases.check(range(48), ["ref"]) and ml_cases.check(range(100, 116), ["llvm"])
    sys.exit(not right)
