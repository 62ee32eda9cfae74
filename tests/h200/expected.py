#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime, on one thread and without its optimisations, makes of a
model: expected.py MODEL.onnx INPUTS_DIR OUT_DIR

INPUTS_DIR/io.txt names the inputs, as `pestle run --inputs` reads it; the
outputs are OUT_DIR/output_N.npy.
"""

import os
import sys

import numpy as np
import onnxruntime as ort


def read_inputs(folder):
    values = {}
    with open(os.path.join(folder, "io.txt"), encoding="utf-8") as lines:
        for line in lines:
            word = line.split()
            if word and word[0] == "input":
                values[" ".join(word[5:])] = np.load(
                    os.path.join(folder, word[4]))
    return values


def main():
    model, inputs, out = sys.argv[1:4]
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = (
        ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    session = ort.InferenceSession(model, options,
                                   providers=["CPUExecutionProvider"])
    for i, value in enumerate(session.run(None, read_inputs(inputs))):
        np.save(os.path.join(out, f"output_{i}.npy"), value)


if __name__ == "__main__":
    main()
