#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ml_test.py with 480 nodes. Exits 77 without onnx and onnxruntime."""

import sys

try:
    import ml_cases
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

if __name__ == "__main__":
    right = ml_cases.check(range(1000, 1480), ["llvm"])
    sys.exit(not right)
