#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--shard` of an ONNX model by the names of its weights: a bias that is spread over rows, and
a weight that the model gives out too, are called what they are in the file; so is one that is cast. Exits 77 without
onnx."""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from onnx import TensorProto as T
    from onnx import helper, numpy_helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

PESTLE = os.path.join(os.environ["PESTLE_BUILD_DIR"], "pestle")
ROWS, IN, OUT = 8, 16, 32
RULES = ["--mesh", "m=2", "--shard", "up=-,m", "--shard", "up_bias=m", "--shard", "scale=m",
         "--shard", "shift=m"]


def model():
    draw = np.random.default_rng(7)
    weights = {"up": draw.standard_normal((IN, OUT)).astype(np.float32),
               "up_bias": draw.standard_normal(OUT).astype(np.float32),
               "scale": draw.standard_normal(OUT).astype(np.float32),
               "shift": draw.standard_normal(OUT).astype(np.float16)}
    nodes = [helper.make_node("MatMul", ["x", "up"], ["h"], "/up/MatMul"),
             helper.make_node("Add", ["h", "up_bias"], ["g"], "/up/Add"),
             helper.make_node("Mul", ["g", "scale"], ["s"], "/scale/Mul"),
             helper.make_node("Cast", ["shift"], ["wide"], "/shift/Cast", to=T.FLOAT),
             helper.make_node("Add", ["s", "wide"], ["y"], "/shift/Add"),
             helper.make_node("Identity", ["scale"], ["kept"], "/kept")]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, (ROWS, IN))],
        [helper.make_tensor_value_info("y", T.FLOAT, (ROWS, OUT)),
         helper.make_tensor_value_info("kept", T.FLOAT, (OUT,))],
        [numpy_helper.from_array(a, n) for n, a in weights.items()])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def call(*words, code=0):
    done = subprocess.run([PESTLE, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "m.onnx"
        path.write_bytes(model().SerializeToString())
        inputs = [path, "--input", "x=random:1"]
        call("run", *inputs, "--outputs", folder / "one")
        call("run", *inputs, *RULES, "--compare", folder / "one")
        told = call("explain", path, *RULES)
        # The bias is made to rows, as its users want it, behind the mark that divides it.
        whole = 4 * OUT * (IN + 3 * ROWS + 1)
        assert f"a process has {whole // 2} of {whole} bytes" in told, told
        for weight in ("up", "up_bias", "scale", "shift"):
            assert f"composite ({weight})" in told, told
        for rule, says in (("up=-,q", "'q' is no axis of the mesh, whose axes are \"m\"=2"),
                           ("other=m", "no argument, result or weight has a name that 'other' fits"),
                           ("up=m", "sharding weight 'up': a sharding of 1 dimensions of a tensor")):
            told = call("opt", path, "--mesh", "m=2", "--shard", rule, code=2)
            assert says in told and f"; --shard {rule}" in told, told
    print("weights are called what they are")


if __name__ == "__main__":
    sys.exit(main())
