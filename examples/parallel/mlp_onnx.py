# SPDX-License-Identifier: Apache-2.0
"""A block of a transformer as an ONNX file, its two products divided as Megatron has it:
the columns of the first weight, the rows of the second, by two patterns over the names of
weights. Each process computes with its part, and one sum of the results is all that is
sent.

usage: mlp_onnx.py [PROCESSES]
"""

import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from training import run

WIDTH, HIDDEN, TOKENS, LAYERS = 64, 256, 16, 2
RULES = ["--shard", "*.up.weight=-,model", "--shard", "*.down.weight=model,-"]


def block(name, x, y, random):
    """Nodes and weights of y = x + down(gelu(up(norm(x))))."""
    weights = {"norm.scale": np.ones(WIDTH, np.float32),
               "up.weight": random.standard_normal((WIDTH, HIDDEN), np.float32) / 8,
               "up.bias": random.standard_normal(HIDDEN, np.float32) / 8,
               "down.weight": random.standard_normal((HIDDEN, WIDTH), np.float32) / 16}
    at = {key: f"{name}.{key}" for key in weights}
    make = helper.make_node
    nodes = [
        make("LayerNormalization", [x, at["norm.scale"]], [f"{name}.n"], axis=-1),
        make("MatMul", [f"{name}.n", at["up.weight"]], [f"{name}.h"]),
        make("Add", [f"{name}.h", at["up.bias"]], [f"{name}.b"]),
        make("Gelu", [f"{name}.b"], [f"{name}.g"]),
        make("MatMul", [f"{name}.g", at["down.weight"]], [f"{name}.d"]),
        make("Add", [x, f"{name}.d"], [y]),
    ]
    return nodes, [numpy_helper.from_array(w, at[key]) for key, w in weights.items()]


def write_model(path):
    random = np.random.default_rng(0)
    nodes, weights = [], []
    names = ["x", *(f"x{i}" for i in range(1, LAYERS)), "y"]
    for i in range(LAYERS):
        more, of_block = block(f"layer{i}", names[i], names[i + 1], random)
        nodes += more
        weights += of_block
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [TOKENS, WIDTH])
             for n in ("x", "y")]
    graph = helper.make_graph(nodes, "blocks", value[:1], value[1:], weights)
    onnx.save(helper.make_model(graph, ir_version=9,
                                opset_imports=[helper.make_opsetid("", 20)]), path)


def main(processes):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model = folder / "blocks.onnx"
        write_model(model)
        np.save(folder / "input_0.npy",
                np.random.default_rng(1).standard_normal((TOKENS, WIDTH), np.float32))
        run(model, folder, folder / "one")
        said = run(model, folder, folder / "many", "--mesh", f"model={processes}", *RULES)
        one, many = (np.load(folder / out / "output_0.npy") for out in ("one", "many"))
    print(said)
    print(f"on {processes} processes the results differ by {np.abs(one - many).max():.1e}")
    assert np.allclose(one, many, rtol=1e-4, atol=1e-5)
    # A sum of TOKENS x WIDTH floats a block, of which each reads that of every other.
    read = processes * (processes - 1) * TOKENS * WIDTH * 4 * LAYERS
    assert f" read {read} bytes" in said, (said, read)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
