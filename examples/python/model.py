# SPDX-License-Identifier: Apache-2.0
"""Runs a model: ONNX, StableHLO, or what pestle.export() gave.

usage: python3 model.py FILE
"""

import sys

import pestle as pt

model = pt.load(sys.argv[1])
inputs = [pt.ones([2 if n is None else n for n in shape], dtype=dtype)
          for _, dtype, shape in model.inputs]
outputs = model(*inputs)
for y in outputs if isinstance(outputs, tuple) else (outputs,):
    print(y.dtype, y.shape, y)
