#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes model.onnx, the model of the how-tos: scores [batch, 10] = softmax of two layers
of x [batch, 64]. It needs the package onnx.

usage: make_model.py [FILE]
"""
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

rng = np.random.default_rng(1)
weights = {"w1": rng.standard_normal((64, 128)) / 8, "b1": np.zeros(128),
           "w2": rng.standard_normal((128, 10)) / 11, "b2": np.zeros(10)}
nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], name="layer1"),
         helper.make_node("Relu", ["h"], ["r"], name="relu"),
         helper.make_node("Gemm", ["r", "w2", "b2"], ["z"], name="layer2"),
         helper.make_node("Softmax", ["z"], ["scores"], name="softmax")]
graph = helper.make_graph(
    nodes, "digits",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])],
    [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10])],
    [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
model.ir_version = 9
path = sys.argv[1] if len(sys.argv) > 1 else "model.onnx"
save(model, path)
print(f"{path}: x [batch, 64] -> scores [batch, 10]")
