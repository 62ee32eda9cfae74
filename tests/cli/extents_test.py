#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels that end where a run says, against ONNX Runtime: graphs behind NonZero,
Compress and NonMaxSuppression whose bounds are many times what a tile or a group makes,
with none, one, some, nearly all and all of the elements kept; and NonMaxSuppression by
itself, with ties, limits and thresholds; loops that only their condition ends; a length that is an argument. Exits 77 when a Python package is missing.

    extents_test.py [SEED [COUNT]]
"""

import os
import subprocess
import sys
import tempfile

PESTLE = os.path.join(os.environ["PESTLE_BUILD_DIR"], "pestle")
DEVICES = {"llvm": ["--device", "llvm"],
           "llvm, strict": ["--device", "llvm", "--numerics", "strict"],
           "ref": ["--device", "ref"],
           "simt": ["--device", "ref", "--target-cpu", "simt"]}  # fmt: skip

try:
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper as h, numpy_helper
except ImportError as e:
    print(f"skipped: {e}; tools/requirements.txt lists what is needed")
    sys.exit(77)


class Graph:
    """Nodes, stored values and inputs of a model that grows."""

    def __init__(self):
        self.nodes, self.stored, self.inputs, self.feeds = [], [], [], {}

    def data(self, name, array):
        dtype = h.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(h.make_tensor_value_info(name, dtype, array.shape))
        self.feeds[name] = array
        return name

    def __getattr__(self, op):
        def add(*inputs, outputs=1, **attributes):
            names = [f"{op}_{len(self.nodes)}_{i}" for i in range(outputs)]
            self.nodes.append(h.make_node(
                op, [self.store(a) for a in inputs], names, **attributes))
            return names[0] if outputs == 1 else names
        return add

    def store(self, a):
        if isinstance(a, str):
            return a
        name = f"c{len(self.stored)}"
        a = np.asarray(a, None if isinstance(a, np.ndarray) else np.int64)
        self.stored.append(numpy_helper.from_array(a, name))
        return name

    def model(self, outputs):
        dtypes = {o: TensorProto.UNDEFINED for o in outputs}
        graph = h.make_graph(self.nodes, "g", self.inputs,
                             [h.make_empty_tensor_value_info(o) for o in dtypes],
                             self.stored)
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)],
                            ir_version=9)


def check(graph, outputs, devices, what):
    """Raises where a device differs from ONNX Runtime."""
    data = graph.model(outputs).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(data, options)
    wanted = session.run(None, graph.feeds)
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/m.onnx", "wb") as f:
            f.write(data)
        for i, a in enumerate(graph.feeds.values()):
            np.save(f"{folder}/input_{i}.npy", a)
        results = f"{folder}/results"
        for name in devices:
            os.makedirs(results, exist_ok=True)
            done = subprocess.run(
                [PESTLE, "run", f"{folder}/m.onnx", "--inputs", folder,
                 "--outputs", results, "--no-cache", *DEVICES[name]],
                capture_output=True, text=True)
            assert done.returncode == 0, f"{what} on {name}: {done.stderr}"
            for i, want in enumerate(wanted):
                got = np.load(f"{results}/output_{i}.npy")
                assert got.shape == want.shape, (
                    f"{what} on {name}: output {i} is {got.shape}, "
                    f"not {want.shape}")
                same = (np.allclose(got, want, 1e-4, 1e-4, equal_nan=True)
                        if want.dtype.kind == "f" else (got == want).all())
                assert same, f"{what} on {name}: output {i} differs"


# --- Behind a choice ---

def kept(rng, n):
    """A mask of n: none, one, a few, half, all but one, all."""
    mask = np.zeros(n, bool)
    count = int(rng.choice([0, 1, 2, n // 50, n // 2, n - 1, n]))
    mask[rng.permutation(n)[:count]] = True
    return mask


def choose(g, rng, x, n):
    """Rows of x that a run keeps."""
    mask = g.data("mask", kept(rng, n))
    if rng.integers(2):
        return g.Compress(x, mask, axis=0)
    places = g.Squeeze(g.NonZero(mask), [0])
    return g.Gather(x, places, axis=0)


def weights(rng, *dims):
    return rng.standard_normal(dims).astype(np.float32) / 4


def step(g, rng, y, width):
    """Rows y [k, width] as other rows, and their width."""
    kind = rng.integers(9)
    to = int(rng.choice([5, 16, 33, 64]))
    if kind == 0:
        return g.MatMul(y, weights(rng, width, to)), to
    if kind == 1:
        return g.Gemm(y, weights(rng, to, width), weights(rng, to), transB=1), to
    if kind == 2:
        return g.Add(g.Relu(y), weights(rng, width)), width
    if kind == 3:
        return g.Softmax(y, axis=1), width
    if kind == 4:
        return g.LayerNormalization(y, weights(rng, width), weights(rng, width),
                                    axis=1), width
    if kind == 5:
        return g.Mul(y, g.Sigmoid(g.ReduceMean(y, [1], keepdims=1))), width
    if kind == 6:
        return g.Transpose(g.Tanh(g.Transpose(y, perm=[1, 0])), perm=[1, 0]), width
    if kind == 7:
        return g.Concat(y, g.Neg(y), axis=1), 2 * width
    return g.Slice(y, [0], [width - 1], [1]), width - 1


def fold(g, rng, y):
    """A value that every kept row matters to."""
    kind = rng.integers(5)
    if kind == 0:
        return g.ReduceSum(y, [0], keepdims=0)
    if kind == 1:
        return g.ReduceMax(g.Abs(y), [0], keepdims=1)
    if kind == 2:
        return g.ReduceSum(y, [0, 1], keepdims=0)
    if kind == 3:
        return g.Shape(y)
    return g.ReduceSumSquare(y, [0], keepdims=0)


def behind_a_choice(seed, devices, bound):
    rng = np.random.default_rng(seed)
    n, width = int(rng.choice(bound)), int(rng.choice([3, 16, 40]))
    g = Graph()
    x = g.data("x", rng.standard_normal((n, width)).astype(np.float32))
    y = choose(g, rng, x, n)
    values = [y]
    for _ in range(int(rng.integers(1, 5))):
        y, width = step(g, rng, y, width)
        values.append(y)
        if width > 200:
            break
    outputs = [y]
    # ONNX Runtime's maximum of no elements is an error.
    if g.feeds["mask"].any():
        outputs.append(fold(g, rng, values[int(rng.integers(len(values)))]))
    check(g, outputs, devices, f"seed {seed}, {n} rows")


def sums_of_products(seed, devices, bound):
    """Products that sum over what was kept, by one part of it after the other: bounds that
    parts fill, and those that the last one reaches over."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice(bound))
    g = Graph()
    x = g.data("x", rng.standard_normal((n, 12)).astype(np.float32) / 8)
    y = choose(g, rng, x, n)
    turned = g.Transpose(y, perm=[1, 0])
    heads = g.Transpose(g.Reshape(y, [-1, 2, 6]), perm=[1, 0, 2])
    outputs = [g.MatMul(turned, y)]
    # ONNX Runtime's softmax of no elements is an error, its Einsum a division by 0.
    if g.feeds["mask"].any():
        scores = g.MatMul(heads, g.Transpose(heads, perm=[0, 2, 1]))
        shared = g.Softmax(scores, axis=-1)
        outputs += [g.Gemm(y, y, transA=1), g.MatMul(shared, heads),
                    g.MatMul(g.ReduceMean(g.Abs(y), [1], keepdims=0), y),
                    g.Einsum(y, y, equation="ni,nj->ij"),
                    g.Einsum(shared, heads, equation="bqk,bkd->bqd")]
    check(g, outputs, devices, f"sums, seed {seed}, {n} rows")


def ends_of_parts(devices, bound):
    """Sums that end where a part does, before and behind it; what was not kept is NaN."""
    rng = np.random.default_rng(bound)
    for count in (0, 63, 65, 256, 320, 511, bound):
        g = Graph()
        mask = np.zeros(bound, bool)
        mask[rng.permutation(bound)[:count]] = True
        rows = rng.standard_normal((bound, 6)).astype(np.float32)
        rows[~mask] = np.nan
        y = g.Compress(g.data("x", rows), g.data("mask", mask), axis=0)
        check(g, [g.MatMul(g.Transpose(y, perm=[1, 0]), y)], devices,
              f"{count} of {bound} rows")


def sorts(seed, devices, count):
    """Ops that have kernels for few elements, for more and for all: |count| kept."""
    rng = np.random.default_rng(seed)
    g = Graph()
    mask = np.zeros(20000, bool)
    mask[rng.permutation(20000)[:count]] = True
    g.data("mask", mask)
    x = g.data("x", rng.standard_normal((20000, 3)).astype(np.float32))
    v = g.data("v", rng.integers(-40, 40, 20000).astype(np.float32))
    rows, numbers = g.Compress(x, mask, axis=0), g.Compress(v, mask, axis=0)
    outputs = [*g.TopK(rows, [2], axis=1, outputs=2)]
    if count:
        outputs += g.Unique(numbers, outputs=4)
        outputs += g.Unique(numbers, outputs=4, sorted=0)[:2]
    if count >= 5:
        best = g.TopK(rows, [5], axis=0, outputs=2)
        outputs += [*best, g.Concat(best[0], rows, axis=0)]
    if count >= 400:  # more than there are where few are enough
        outputs += g.TopK(rows, [400], axis=0, outputs=2)
    check(g, outputs, devices, f"sorts of {count}, seed {seed}")


def images(seed, devices, n, size):
    """Convolutions of images that a run keeps: by Winograd's products where the target has
    them, with their border and a last tile that reaches over it, and by sums."""
    rng = np.random.default_rng(seed)
    g = Graph()
    x = g.data("x", rng.standard_normal((n, 16, size, size)).astype(np.float32))
    y = choose(g, rng, x, n)
    y = g.Relu(g.Conv(y, weights(rng, 32, 16, 3, 3), pads=[1, 1, 1, 1]))
    z = g.Conv(y, weights(rng, 16, 32, 3, 3), weights(rng, 16))
    outputs = [z, g.GlobalAveragePool(z),
               g.MaxPool(g.Conv(z, weights(rng, 8, 16, 1, 1)),
                         kernel_shape=[2, 2], strides=[2, 2])]
    check(g, outputs, devices, f"images, seed {seed}, {n} of {size}")


def winograd_is_meant():
    """That images() tries the template, where a CPU has vectors of 16 or 8 floats."""
    g, rng = Graph(), np.random.default_rng(0)
    x = g.data("x", np.zeros((40, 16, 22, 22), np.float32))
    y = g.Conv(choose(g, rng, x, 40), weights(rng, 32, 16, 3, 3), pads=[1, 1, 1, 1])
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/m.onnx", "wb") as f:
            f.write(g.model([y]).SerializeToString())
        done = subprocess.run(
            [PESTLE, "dump", f"{folder}/m.onnx", "--stage", "schedule", "--device",
             "llvm", "--target-cpu", "x86-64-v4"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "winograd " in done.stdout and " end 1 of " in done.stdout, done.stdout


# --- NonMaxSuppression ---

def suppression(seed, devices, bound):
    rng = np.random.default_rng(seed)
    batches, classes = int(rng.integers(1, 3)), int(rng.choice([1, 2, 7]))
    n = int(rng.choice(bound))
    place = rng.random((batches, n, 2)) * 50
    size = rng.random((batches, n, 2)) * rng.choice([1, 20, 60])
    boxes = np.concatenate([place, place + size], 2)
    centers = int(rng.integers(2))
    if not centers and rng.integers(2):
        boxes = boxes[..., [2, 3, 0, 1]]
    scores = rng.random((batches, classes, n))
    if rng.integers(2):
        scores = np.round(scores * 4) / 4 - 0.25  # ties, and 0 of both signs
        scores = np.where(rng.random(scores.shape) < 0.1, -0.0, scores)
    g = Graph()
    inputs = [g.data("b", boxes.astype(np.float32)),
              g.data("s", scores.astype(np.float32))]
    limit = np.array([rng.choice([0, 1, 3, n, n + 5])], np.int64)
    overlap = np.array([rng.choice([0, 0.3, 0.5, 1])], np.float32)
    least = np.array([rng.choice([-1, 0, 0.25, 0.9, 2])], np.float32)
    if rng.integers(2):
        limit = g.data("m", limit)
    if rng.integers(2):
        least = g.data("t", least)
    inputs += [limit, overlap, least][:int(rng.integers(2, 4))]
    y = g.NonMaxSuppression(*inputs, center_point_box=centers)
    outputs = [y]
    if rng.integers(2):  # the boxes that are chosen
        box = g.Slice(y, [2], [3], [1])
        outputs.append(g.Gather(g.Squeeze(g.Slice("b", [0], [1], [0]), [0]),
                                g.Squeeze(box, [1]), axis=0))
    check(g, outputs, devices, f"suppression, seed {seed}, {n} boxes")


# --- Loops that only their condition ends ---

ROW = 16384  # elements: there is room for 1,024 rows


def open_loop(trips, devices, counted=False):
    """Rows 0, 1, .. of a loop without a limit, or with one that |counted| makes a sum of
    a long input; too many fail the run."""
    def tensor(name, dtype, shape):
        return h.make_tensor_value_info(name, dtype, shape)
    body = h.make_graph(
        [h.make_node("Add", ["v", "one"], ["v2"]),
         h.make_node("ReduceMax", ["v2"], ["m"], keepdims=0),
         h.make_node("Less", ["m", "most"], ["goes_on"]),
         h.make_node("Identity", ["v"], ["o"])], "body",
        [tensor("i", TensorProto.INT64, []), tensor("c", TensorProto.BOOL, []),
         tensor("v", TensorProto.FLOAT, [ROW])],
        [tensor("goes_on", TensorProto.BOOL, []),
         tensor("v2", TensorProto.FLOAT, [ROW]),
         tensor("o", TensorProto.FLOAT, [ROW])])
    g = Graph()
    g.stored += [numpy_helper.from_array(np.float32(1), "one"),
                 numpy_helper.from_array(np.float32(trips), "most")]
    x = g.data("x", np.zeros(ROW, np.float32))
    limit = ""
    if counted:
        g.stored[1] = numpy_helper.from_array(np.float32(ROW), "most")
        limit = g.Cast(g.Add(g.ReduceSum(x, keepdims=0), np.array(trips, np.float32)), to=7)
    last, rows = g.Loop(limit, g.store(np.array(True)), x, outputs=2, body=body)
    outputs = [last, g.ReduceSum(rows, [1], keepdims=0)]
    try:
        check(g, outputs, devices, f"{trips} trips")
    except AssertionError as error:
        assert trips > 1024 and "give it a limit" in str(error), error
        return
    assert trips <= 1024, f"{trips} trips had room"


# --- Lengths that are arguments ---

LENGTH = """
func.func public @main(%x: tensor<ROWSx24xf32>, %w: tensor<24x40xf32>,
    %n: tensor<i64>) -> (tensor<ROWSx40xf32>, tensor<40xf32>) {
  %0 = "pestle.extent"(%x, %n) <{dimension = 0 : i64}>
      : (tensor<ROWSx24xf32>, tensor<i64>) -> tensor<ROWSx24xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
      : (tensor<ROWSx24xf32>, tensor<24x40xf32>) -> tensor<ROWSx40xf32>
  %2 = stablehlo.tanh %1 : tensor<ROWSx40xf32>
  %3 = stablehlo.iota dim = 0 : tensor<ROWSx40xi64>
  %4 = stablehlo.broadcast_in_dim %n, dims = []
      : (tensor<i64>) -> tensor<ROWSx40xi64>
  %5 = stablehlo.compare LT, %3, %4, SIGNED
      : (tensor<ROWSx40xi64>, tensor<ROWSx40xi64>) -> tensor<ROWSx40xi1>
  %6 = stablehlo.constant dense<-0.0> : tensor<ROWSx40xf32>
  %7 = stablehlo.select %5, %2, %6 : tensor<ROWSx40xi1>, tensor<ROWSx40xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %8 = stablehlo.reduce(%7 init: %z) applies stablehlo.add across dimensions = [0]
      : (tensor<ROWSx40xf32>, tensor<f32>) -> tensor<40xf32>
  return %2, %8 : tensor<ROWSx40xf32>, tensor<40xf32>
}
"""


def lengths(rows, devices):
    """Each length, below 0 and above the bound too, of one plan."""
    rng = np.random.default_rng(rows)
    x, w = weights(rng, rows, 24), weights(rng, 24, 40)
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/m.mlir", "w") as f:
            f.write(LENGTH.replace("ROWS", str(rows)))
        np.save(f"{folder}/x.npy", x)
        np.save(f"{folder}/w.npy", w)
        for n in (-1, 0, 1, 6, 7, rows // 2, rows - 1, rows, rows + 9, 2**62):
            np.save(f"{folder}/n.npy", np.int64(n))
            want = np.tanh(x[:min(max(n, 0), rows)] @ w)
            for name in devices:
                done = subprocess.run(
                    [PESTLE, "run", f"{folder}/m.mlir", *DEVICES[name],
                     "--cache-dir", f"{folder}/cache", "--outputs", folder,
                     *(a for k in "xwn"
                       for a in ("--input", f"{k}={folder}/{k}.npy"))],
                    capture_output=True, text=True)
                assert done.returncode == 0, done.stderr
                got = np.load(f"{folder}/output_0.npy")[:len(want)]
                total = np.load(f"{folder}/output_1.npy")
                assert np.allclose(got, want, 1e-4, 1e-5), (name, n)
                assert np.allclose(total, want.sum(0), 1e-4, 1e-3), (name, n)


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    for i in range(count):
        strict = ["llvm", "llvm, strict"][i % 2]
        behind_a_choice(seed + i, [strict], [300, 1000, 4099])
        behind_a_choice(seed + i + count, ["ref", "simt"], [70, 150])
        if i % 3 == 0:
            sums_of_products(seed + i, [strict], [512, 700, 1500])
        suppression(seed + i, ["llvm"], [1, 17, 300, 1500])
        suppression(seed + i + count, ["ref", "simt"], [1, 17, 60])
    lengths(700, ["llvm"])
    lengths(50, ["ref", "simt"])
    sums_of_products(seed, ["ref"], [513])
    ends_of_parts(["llvm"], 523)
    for kept_of in (0, 1, 300, 313, 314, 2500, 2501, 20000):
        sorts(seed, ["llvm"], kept_of)
    winograd_is_meant()
    for i in range(4):
        images(seed + i, ["llvm", "llvm, strict"][i == 3:], 40, 22)
    images(seed + 4, ["simt"], 3, 10)
    for trips in (1, 3, 1025):
        open_loop(trips, ["llvm"])
        open_loop(trips, ["llvm"], counted=True)
    open_loop(2, ["ref"])
    open_loop(2, ["ref"], counted=True)
    print(f"seeds {seed} to {seed + 2 * count - 1}: all agree")


if __name__ == "__main__":
    main()
