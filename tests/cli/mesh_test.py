#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`pestle run --mesh --shard`: a model in parts, each on a thread, gives what it gives in
one; bad meshes and shardings are told in words.

    mesh_test.py
"""

import os
import subprocess
import sys
import tempfile

PESTLE = os.path.join(os.environ["PESTLE_BUILD_DIR"], "pestle")
MODEL = """module @mlp {
  func.func public @main(%x: tensor<8x16xf32> {pestle.name = "x"},
      %u: tensor<16x32xf32> {pestle.name = "up.weight"},
      %b: tensor<32xf32> {pestle.name = "up.bias"},
      %v: tensor<32x16xf32> {pestle.name = "down.weight"})
      -> (tensor<8x16xf32> {pestle.name = "y"}) {
    %h = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0]
        : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    %c = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<32xf32>) -> tensor<8x32xf32>
    %d = stablehlo.add %h, %c : tensor<8x32xf32>
    %z = stablehlo.constant dense<0.0> : tensor<8x32xf32>
    %a = stablehlo.maximum %d, %z : tensor<8x32xf32>
    %r = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0]
        : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
    return %r : tensor<8x16xf32>
  }
}
"""
INPUTS = ["--input", "x=random:1", "--input", "up.weight=random:2",
          "--input", "up.bias=random:3", "--input", "down.weight=random:4"]  # fmt: skip
MEGATRON = ["--shard", "up.weight=-,model", "--shard", "down.weight=model,-"]
# A process of four has 4 x 16 floats that are summed up over two: it reads 256 bytes of
# the other's.
GOOD = [
    ("data=2,model=2", ["--shard", "x=data,-", *MEGATRON], 1024),
    ("data=4", ["--shard", "x=data,-"], 0),
    ("model=2", MEGATRON, None),
    ("data=2,model=4", ["--shard", "x=data,-", "--shard", "*.weight=-,model"], None),
    ("data=2", ["--shard", "x=data,?", "--shard", "y=?,data"], None),
    ("a=2,b=2", ["--shard", "x=a+b,-", "--shard", "y=-,b"], None),
    ("a=2", [], 0),
]
# Weights that the model has in itself, and an input without a name.
CONSTANTS = """module @mlp {
  func.func public @main(%0: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %row = stablehlo.iota dim = 0 : tensor<16x32xf32>
    %up = stablehlo.constant dense<0.5> : tensor<16x32xf32>
    %down = stablehlo.constant dense<[NUMBERS]> : tensor<32x16xf32>
    %h = stablehlo.dot_general %0, %up, contracting_dims = [1] x [0]
        : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    %r = stablehlo.dot_general %h, %down, contracting_dims = [1] x [0]
        : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
    return %r : tensor<8x16xf32>
  }
}
""".replace("NUMBERS", ", ".join(
    f"[{', '.join(str((i * 7 + k) % 11 / 4) for k in range(16))}]" for i in range(32)))
# What is said later of a weight counts; a sum of 8 x 16 floats is all that moves.
OF_WEIGHTS = [
    (["--shard", "up=-,m", "--shard", "down=m,-"], 1024),
    (["--shard", "*n=-,m", "--shard", "up=-,m", "--shard", "down=m,-"], 1024),
    (["--shard", "arg0=m,-"], 0),
]
BAD = [
    ("data=0", [], "'data=0' is no axis of a mesh"),
    ("data", [], "'data' is no axis of a mesh"),
    ("data=2", ["--shard", "nobody=data,-"], "no argument, result or weight has a name that"),
    ("data=2", ["--shard", "x=model,-"],
     "'model' is no axis of the mesh, whose axes are \"data\"=2"),
    ("data=2", ["--shard", "x=data"], "1 dimensions of a tensor that has 2"),
    ("data=3", ["--shard", "x=data,-"], "which would differ"),
    ("data=2", ["--shard", "x=data,data"], "the axis 'data' is there twice"),
    ("data=2", ["--shard", "x"], "is no rule"),
]
# Of one process, or of two that each have all: what says where values lie says nothing.
WISHES = [
    ("module @m attributes {mhlo.num_replicas = 2 : i32} {\nsdy.mesh @m = <[\"x\"=1]>",
     "sdy.sharding_constraint %x <@m, [{\"x\"}]>", 0, ""),
    ("module @m {\nsdy.mesh @m = <[\"x\"=1]>",
     "sdy.sharding_constraint %x <@m, [{\"x\"}]>", 0, ""),
    ("module @m {", "stablehlo.custom_call @pestle.sharding(%x) {api_version = 4 : i32, "
     "backend_config = {at = #sdy.sharding<@m, [{}]>}, pestle.version = 0 : i64}", 3,
     "'pestle.sharding' has no body"),
]


def wishes_without_parts(path):
    for head, op, code, why in WISHES:
        types = ": (tensor<8xf32>) -> tensor<8xf32>" if "call" in op else ": tensor<8xf32>"
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"{head}\nfunc.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {{\n"
                    f"%0 = {op} {types}\nreturn %0 : tensor<8xf32>\n}}\n}}\n")
        r = call("compile", path, "-o", path + ".plan")
        assert r.returncode == code and why in r.stderr, (op, r.returncode, r.stderr)


def call(*arguments):
    return subprocess.run([PESTLE, *arguments], capture_output=True, text=True, check=False)


def run(*arguments):
    return call("run", *arguments)


def no_run_cuts(weights):
    """Parts of weights are in the plan: no step asks for a process' number or cuts."""
    rules = ["--mesh", "m=2", *OF_WEIGHTS[0][0]]
    r = call("dump", weights, *rules, "--stage", "plan")
    assert r.returncode == 0, r.stderr
    steps = r.stdout.split("locations:")[0]
    assert "part0[" in steps and "all_reduce" in steps, steps
    assert "slice" not in steps and "partition_id" not in steps, steps
    r = call("explain", weights, *rules)
    assert r.returncode == 0 and "lies as [{m}, {}], as it was said" in r.stdout, r.stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "mlp.mlir")
        one = os.path.join(folder, "one")
        with open(model, "w", encoding="utf-8") as f:
            f.write(MODEL)
        r = run(model, *INPUTS, "--outputs", one)
        assert r.returncode == 0, r.stderr
        for mesh, rules, sent in GOOD:
            r = run(model, *INPUTS, "--mesh", mesh, *rules, "--compare", one)
            assert r.returncode == 0, (mesh, rules, r.stderr)
            assert "read" in r.stderr, r.stderr
            if sent is not None:
                assert f" read {sent} bytes" in r.stderr, (mesh, rules, r.stderr)
        weights = os.path.join(folder, "weights.mlir")
        with open(weights, "w", encoding="utf-8") as f:
            f.write(CONSTANTS)
        own = os.path.join(folder, "own")
        r = run(weights, "--input", "0=random:1", "--outputs", own)
        assert r.returncode == 0, r.stderr
        for rules, sent in OF_WEIGHTS:
            r = run(weights, "--input", "0=random:1", "--mesh", "m=2", *rules,
                    "--compare", own)  # fmt: skip
            assert r.returncode == 0 and f" read {sent} bytes" in r.stderr, (rules, r.stderr)
        no_run_cuts(weights)
        # One process has all of it.
        r = run(weights, "--input", "0=random:1", "--mesh", "m=1", *OF_WEIGHTS[0][0], "--compare", own)
        assert r.returncode == 0, r.stderr
        r = run(weights, "--mesh", "m=2,m=2")
        assert r.returncode == 2 and "two axes 'm'" in r.stderr, r.stderr
        r = run(weights, "--mesh", "m=2", "--shard", "up=m,m")
        assert r.returncode == 2 and "'m' is there twice" in r.stderr, r.stderr
        # Without a sum that is cut the bits are those of one.
        strict = ["--numerics", "strict"]
        r = run(model, *INPUTS, *strict, "--outputs", one)
        assert r.returncode == 0, r.stderr
        r = run(model, *INPUTS, *strict, "--mesh", "data=2,model=2", *GOOD[0][1],
                "--compare", one, "--rtol", "0", "--atol", "0")  # fmt: skip
        assert r.returncode == 0, r.stderr
        for mesh, rules, why in BAD:
            r = run(model, *INPUTS, "--mesh", mesh, *rules)
            assert r.returncode == 2, (mesh, rules, r.returncode, r.stderr)
            assert why in r.stderr, (mesh, rules, r.stderr)
        r = run(model, *INPUTS, "--shard", "x=data,-")
        assert r.returncode == 2 and "there is no --mesh" in r.stderr, r.stderr
        wishes_without_parts(os.path.join(folder, "wish.mlir"))
    print("models in parts agree")


if __name__ == "__main__":
    sys.exit(main())
