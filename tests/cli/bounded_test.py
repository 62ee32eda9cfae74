#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random chains of ops behind NonZero, Compress, Unique and NonMaxSuppression,
on each of DEVICES, against onnx.reference: equal results of equal shapes, or a
refusal. Exits 77, "skipped", when a Python package is missing.

    bounded_test.py [SEED [COUNT]]
"""

import os
import subprocess
import sys
import tempfile

PESTLE = os.path.join(os.environ["PESTLE_BUILD_DIR"], "pestle")
DEVICES = (["--device", "ref"], ["--device", "ref", "--target-cpu", "simt"],
           ["--device", "llvm"])  # fmt: skip
COUNT = 24
# Of the chains that are made, most must run: each step is drawn from what is
# supported, but for what does not fit.
MUST_RUN = 0.7

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper as h
    from onnx.reference import ReferenceEvaluator
except ImportError as e:
    print(f"skipped: {e}; tools/requirements.txt lists what is needed")
    sys.exit(77)


class Chain:
    """Values of a model that grows; the last ones are its outputs."""

    def __init__(self, rng):
        self.rng = rng
        self.nodes, self.inputs, self.feeds, self.stored = [], [], {}, []
        self.live = []  # (name, rank, axis whose extent only a run tells)

    def name(self):
        return f"v{len(self.nodes)}"

    def data(self, array):
        name = f"x{len(self.feeds)}"
        self.feeds[name] = array
        dtype = h.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(h.make_tensor_value_info(name, dtype, array.shape))
        return name

    def store(self, values):
        name = f"c{len(self.stored)}"
        self.stored.append(onnx.numpy_helper.from_array(values, name))
        return name

    def node(self, op, inputs, outputs=1, **attributes):
        names = [f"{self.name()}_{i}" for i in range(outputs)]
        self.nodes.append(h.make_node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def mask(self, shape):
        share = self.rng.choice([0.0, 0.3, 0.7, 1.0])
        return (self.rng.random(shape) < share).astype(np.float32)

    # --- Sources: a list whose length only a run tells, and its positions ---

    def source(self):
        n = int(self.rng.choice([1, 2, 5, 13, 64]))
        data = self.rng.integers(-9, 10, n).astype(np.float32)
        kind = self.rng.integers(4)
        if kind == 0:
            row = self.node("NonZero", [self.data(self.mask(n))])
            at = self.node("Transpose", [row])
            self.at = at
            return self.node("GatherND", [self.data(data), at]), (row, at)
        if kind == 1:
            keep = self.mask(n).astype(bool)
            return self.node("Compress", [self.data(data), self.data(keep)],
                             axis=0), ()  # fmt: skip
        if kind == 2:
            made = self.node("Unique", [self.data(data)], 4,
                             sorted=int(self.rng.integers(2)))  # fmt: skip
            return made[0], (made[1], made[2], made[3])
        boxes = self.rng.random((1, n, 4), dtype=np.float32)
        scores = self.rng.random((1, 2, n), dtype=np.float32)
        chosen = self.node("NonMaxSuppression", [
            self.data(boxes), self.data(scores),
            self.store(np.array([int(self.rng.integers(1, 6))])),
            self.store(np.float32([0.4])), self.store(np.float32([0.2]))])
        column = self.node("Gather", [chosen, self.store(np.int64(2))], axis=1)
        return self.node("Gather", [self.data(data), column]), (chosen, column)

    # --- Steps: from a list to a list or, at the end, anything else ---

    def step(self, x):
        kind = self.rng.integers(11)
        if kind == 6:
            start, end = (int(v) for v in self.rng.integers(-9, 40, 2))
            step = int(self.rng.choice([1, 1, 2, 3, -1, -2]))
            return self.node("Slice", [x] + [
                self.store(np.int64([v])) for v in (start, end, 0, step)])
        if kind == 7:
            fixed = self.data(np.float32([7, -2]))
            parts = self.rng.permutation([x, x, fixed])[:2]
            return self.node("Concat", list(parts), axis=0)
        if kind == 8:
            pair = self.node("Expand", [
                self.node("Unsqueeze", [x, self.store(np.int64([1]))]),
                self.store(np.int64([1, 2]))])
            shape = self.rng.choice([-1, 1])
            flat = self.node("Reshape", [
                pair, self.store(np.int64([shape, -1 if shape == 1 else 1]))])
            return self.node("Reshape", [flat, self.store(np.int64([-1]))])
        if kind == 9:
            return self.node("Pad", [x, self.store(self.rng.integers(0, 3, 2)),
                                     self.data(np.float32(4))])
        if kind == 10:
            small = self.node("Sign", [x])
            return self.node("CumSum", [small, self.store(np.int64(0))],
                             reverse=int(self.rng.integers(2)))
        if kind == 0:
            op = self.rng.choice(["Abs", "Neg", "Relu", "Sign", "Floor"])
            return self.node(op, [x])
        if kind == 1:
            op = self.rng.choice(["Add", "Mul", "Sub", "Max", "Min"])
            return self.node(op, [x, self.data(np.float32([3.5]))])
        if kind == 2:
            return self.node("Mul", [x, x])
        if kind == 3:
            wide = self.node("Unsqueeze", [x, self.store(np.int64([0]))])
            wide = self.node("Transpose", [wide])
            narrow = self.node("Squeeze", [wide, self.store(np.int64([1]))])
            return narrow
        if kind == 4:
            test = self.node("Less", [x, self.data(np.float32(1))])
            return self.node("Where", [test, x, self.node("Neg", [x])])
        near = self.node("Cast", [x], to=TensorProto.INT64)
        return self.node("Cast", [near], to=TensorProto.FLOAT)

    def end(self, x):
        kind = self.rng.integers(9)
        if kind == 7:
            some = self.node("Concat", [x, self.data(np.float32([1, 0.5]))],
                             axis=0)
            return self.node("Softmax", [some], axis=0)
        if kind == 8:
            pair = self.node("Concat", [x, self.data(np.float32([-1, 2]))],
                             axis=0)
            return self.node("TopK", [pair, self.store(np.int64([2]))], 2,
                             largest=int(self.rng.integers(2)))[0]
        if kind == 0:
            return self.node("Shape", [x])
        if kind == 1:
            op = str(self.rng.choice(["Sum", "Max", "Min", "Prod",
                                      "SumSquare", "L1"]))  # fmt: skip
            return self.node("Reduce" + op, [x], keepdims=0)
        if kind == 2:
            op = self.rng.choice(["ArgMax", "ArgMin"])
            # Of rows of two, never of nothing: the evaluator refuses that.
            filled = self.node("Unsqueeze", [x, self.store(np.int64([1]))])
            pair = self.node("Concat", [filled, filled], axis=1)
            pair = self.node("Add", [pair, self.data(np.float32([[0, 1]]))])
            return self.node(op, [pair], axis=1,
                             select_last_index=int(self.rng.integers(2)))  # fmt: skip
        if kind == 3:
            column = self.node("Unsqueeze", [x, self.store(np.int64([1]))])
            row = self.data(self.rng.random((1, 3), dtype=np.float32))
            return self.node("MatMul", [column, row])
        if kind == 4:
            row = self.node("NonZero", [x])
            return self.node("Gather", [self.data(
                np.arange(200, dtype=np.float32)), row], axis=0)  # fmt: skip
        if kind == 5 and self.at:
            size = self.data(np.zeros(64, np.float32))
            return self.node("ScatterND", [size, self.at, x], reduction="add")
        return self.node("Identity", [x])

    at = None


def make(rng):
    c = Chain(rng)
    x, more = c.source()
    outputs = list(more)
    for _ in range(int(rng.integers(0, 5))):
        x = c.step(x)
    outputs += [c.end(x) for _ in range(int(rng.integers(1, 3)))]
    infos = [h.make_empty_tensor_value_info(name) for name in outputs]
    graph = h.make_graph(c.nodes, "g", c.inputs, infos, c.stored)
    opsets = [h.make_opsetid("", 18)]
    return h.make_model(graph, opset_imports=opsets, ir_version=9), c.feeds


def run(model, feeds, folder, device):
    """The outputs, or the sentence with which they were refused."""
    onnx.save(model, f"{folder}/m.onnx")
    command = [PESTLE, "run", f"{folder}/m.onnx", "--no-cache", *device,
               "--outputs", f"{folder}/out"]  # fmt: skip
    for name, array in feeds.items():
        np.save(f"{folder}/{name}.npy", array)
        command += ["--input", f"{name}={folder}/{name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode == 3:
        return done.stderr
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr}")
    count = len(model.graph.output)
    return [np.load(f"{folder}/out/output_{i}.npy") for i in range(count)]


def check(seed, devices):
    """Whether chain |seed| ran; None when the evaluator cannot run it."""
    model, feeds = make(np.random.default_rng(seed))
    try:
        expected = ReferenceEvaluator(model).run(None, feeds)
    except Exception:  # of nothing a maximum, and the like
        return None
    ran = True
    for device in devices:
        with tempfile.TemporaryDirectory() as folder:
            found = run(model, feeds, folder, device)
        if isinstance(found, str):
            ran = False
            continue
        for i, (a, b) in enumerate(zip(found, expected)):
            b = np.asarray(b)
            where = f"seed {seed}, {' '.join(device)}, output {i}"
            assert a.shape == b.shape, f"{where}: {a.shape}, not {b.shape}"
            # Sums and products of small whole numbers; f32 rounds the rest.
            np.testing.assert_allclose(a, b, 1e-4, 1e-5, err_msg=where)
    return ran


def main():
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    count = int(sys.argv[2]) if len(sys.argv) > 2 else COUNT
    plugins = subprocess.run([PESTLE, "plugins"], capture_output=True,
                             text=True).stdout.split()  # fmt: skip
    devices = [d for d in DEVICES if d[1] in plugins]
    done = [check(seed, devices) for seed in range(first, first + count)]
    known = [d for d in done if d is not None]
    print(f"seeds {first} to {first + count - 1}: {sum(known)} ran and agree "
          f"on {len(devices)} devices, {len(known) - sum(known)} are refused, "
          f"{done.count(None)} the evaluator cannot run")  # fmt: skip
    sys.exit(0 if sum(known) >= MUST_RUN * count else 1)


if __name__ == "__main__":
    main()
