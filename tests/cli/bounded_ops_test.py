#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each op that takes extents which only a run tells, behind Compress, with none,
some and all of the elements kept, on ref and llvm against onnx.reference (for a
few ops, which it gets wrong, ONNX Runtime): equal results of equal shapes. Then
chains as detectors have them. Exits 77 when a Python package is missing.

    bounded_ops_test.py [NAME...]
"""

import os
import subprocess
import sys
import tempfile

PESTLE = os.path.join(os.environ["PESTLE_BUILD_DIR"], "pestle")

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper as h, numpy_helper
    from onnx.reference import ReferenceEvaluator
except ImportError as e:
    print(f"skipped: {e}; tools/requirements.txt lists what is needed")
    sys.exit(77)

BOUND = 7
RNG = np.random.default_rng(5)
FLOATS = {
    "x": RNG.integers(-9, 10, BOUND).astype(np.float32),
    "m": RNG.integers(-9, 10, (BOUND, 4)).astype(np.float32),
    "w": RNG.integers(-9, 10, (2, BOUND, 3)).astype(np.float32),
    "u": RNG.integers(-9, 10, BOUND).astype(np.float32),
    "v": RNG.integers(-9, 10, (2, BOUND)).astype(np.float32),
    "i": RNG.standard_normal((BOUND, 2, 6, 6)).astype(np.float32),
}
# What is kept of the first axis that has BOUND elements; u has its own.
MASKS = {
    "none": np.zeros(BOUND, bool), "all": np.ones(BOUND, bool),
    "one": np.arange(BOUND) == 4, "some": np.array([1, 0, 1, 1, 0, 0, 1], bool),
    "last": np.array([0, 0, 0, 0, 0, 1, 1], bool),
}


class Graph:
    """Values of a model that grows."""

    def __init__(self, prefix=""):
        self.nodes, self.stored, self.prefix = [], [], prefix

    def __getattr__(self, op):
        def add(*inputs, outputs=1, **attributes):
            names = [f"{self.prefix}{op}_{len(self.nodes)}_{i}"
                     for i in range(outputs)]
            inputs = [self.store(a) for a in inputs]
            self.nodes.append(h.make_node(op, inputs, names, **attributes))
            return names[0] if outputs == 1 else names
        return add

    def store(self, a):
        if isinstance(a, str):
            return a
        name = f"{self.prefix}c{len(self.stored)}"
        if not isinstance(a, (np.ndarray, np.generic)):
            a = np.asarray(a, np.int64)
        a = np.asarray(a)
        self.stored.append(numpy_helper.from_array(a, name))
        return name

    def body(self, make, *inputs):
        """A graph of |inputs|, (name, type, shape), by what make(graph) gives."""
        g = Graph(f"{self.prefix}b{len(self.nodes)}{len(self.stored)}")
        values = make(g, *(i[0] for i in inputs))
        return h.make_graph(
            g.nodes, "b", [h.make_tensor_value_info(*i) for i in inputs],
            [h.make_empty_tensor_value_info(v) for v in values], g.stored)

    def branches(self, condition, then, other, outputs=1):
        return self.If(condition, outputs=outputs, then_branch=self.body(then),
                       else_branch=self.body(other))

    def kept(self, name):
        """Input |name| with what the mask keeps of its axis of BOUND."""
        axis = 1 if name in ("w", "v") else 0
        keep = "keep_u" if name == "u" else "keep"
        return self.Compress(name, keep, axis=axis)


def f(*values):
    return np.array(values, np.float32)


# Name to what is made on a Graph of y [n], rows [n, 4], wide [2, n, 3], other [k].
CASES = {}


def case(fn):
    CASES[fn.__name__] = fn
    return fn


FAR = 2**63 - 1


@case
def slices(g, y, rows, wide, other):
    cuts = [(0, 3), (0, FAR), (2, FAR), (1, 5), (-2, FAR), (0, -1), (-4, -1),
            (1, -2), (5, 3), (9, 12), (-99, 2), (0, -99), (-3, 4), (7, FAR)]
    return [g.Slice(y, [s], [e], [0]) for s, e in cuts]


@case
def slices_by_steps(g, y, rows, wide, other):
    cuts = [(0, FAR, 2), (1, FAR, 3), (-1, -FAR, -1), (FAR, -FAR - 1, -1),
            (4, -FAR, -2), (-2, 0, -1), (5, 1, -1), (-1, -4, -1), (3, -5, -1),
            (-5, FAR, 2), (0, FAR, 99), (-1, -FAR, -99), (2, -2, 2)]
    return [g.Slice(y, [s], [e], [0], [step]) for s, e, step in cuts]


@case
def slices_of_two_axes(g, y, rows, wide, other):
    return [g.Slice(rows, [1, 1], [5, 3], [0, 1]),
            g.Slice(rows, [1, -2], [3, FAR], [1, 0]),
            g.Slice(wide, [0, -2, 0], [1, FAR, 3], [0, 1, 2], [1, 1, 2]),
            g.Slice(g.Slice(wide, [1], [FAR], [1]), [0], [2], [2])]


@case
def joins(g, y, rows, wide, other):
    return [g.Concat(y, y, axis=0), g.Concat(y, other, y, axis=0),
            g.Concat(y, f(1, 2), axis=0), g.Concat(f(1, 2), other, axis=0),
            g.Concat(y, f(1, 2), other, f(3), axis=0),
            g.Concat(y, axis=0),
            g.Concat(rows, rows, axis=1), g.Concat(rows, rows, axis=0),
            g.Concat(wide, wide, axis=1), g.Concat(wide, wide, axis=-1)]


@case
def joins_of_equal_slices(g, y, rows, wide, other):
    a, b = g.Slice(y, [0], [3], [0]), g.Slice(y, [0], [3], [0])
    return [g.Add(a, b), g.Concat(g.Unsqueeze(a, [1]), g.Unsqueeze(b, [1]),
                                  axis=1)]


@case
def reshapes(g, y, rows, wide, other):
    return [g.Reshape(y, [-1, 1]), g.Reshape(y, [1, -1]),
            g.Reshape(rows, [-1]), g.Reshape(rows, [-1, 2]),
            g.Reshape(rows, [-1, 2, 2]), g.Reshape(rows, [0, 2, 2]),
            g.Reshape(rows, [4, -1]),
            g.Reshape(rows, [2, -1, 2]), g.Reshape(rows, [1, -1, 4]),
            g.Reshape(wide, [-1, 3]), g.Reshape(wide, [2, -1]),
            g.Reshape(wide, [-1]), g.Reshape(wide, [3, 0, 2]),
            g.Reshape(wide, [1, 2, -1, 3]),
            g.Flatten(wide, axis=0), g.Flatten(wide, axis=1)]


@case
def reshapes_beside_a_copy(g, y, rows, wide, other):
    """numpy knows no free axis beside one of 0."""
    table = g.Mul(g.Unsqueeze(y, [1]), g.Unsqueeze(other, [0]))
    return [g.Reshape(rows, [0, -1]), g.Reshape(wide, [0, 0, -1]),
            g.Reshape(table, [0, -1]), g.Flatten(table, axis=1),
            g.Flatten(wide, axis=2), g.Flatten(wide, axis=3),
            g.Flatten(rows, axis=1), g.Flatten(y, axis=0)]


@case
def reshapes_of_two_bounds(g, y, rows, wide, other):
    table = g.Mul(g.Unsqueeze(y, [1]), g.Unsqueeze(other, [0]))  # [n, k]
    return [table, g.Reshape(table, [-1]), g.Reshape(table, [0, 0, 1]),
            g.ReduceSum(table, [0], keepdims=0), g.Transpose(table),
            g.Reshape(g.Transpose(table), [-1]),
            g.Slice(table, [1, -3], [4, FAR], [0, 1])]


@case
def soft(g, y, rows, wide, other):
    return [g.Softmax(rows, axis=1), g.Softmax(wide, axis=1),
            g.Softmax(wide, axis=0), g.LogSoftmax(wide, axis=1),
            g.Hardmax(rows, axis=1)]


@case
def soft_along(g, y, rows, wide, other):
    return [g.Softmax(y, axis=0), g.LogSoftmax(rows, axis=0),
            g.Hardmax(wide, axis=1)]


@case
def sums(g, y, rows, wide, other):
    return [g.CumSum(y, np.int64(0)), g.CumSum(y, np.int64(0), reverse=1),
            g.CumSum(wide, np.int64(1), exclusive=1),
            g.CumSum(wide, np.int64(1), exclusive=1, reverse=1),
            g.CumSum(rows, np.int64(1)), g.ReduceMean(rows, [1]),
            g.ReduceSum(rows, [0], keepdims=0), g.ReduceSum(y, [0]),
            g.ReduceL2(wide, [1])]


@case
def top(g, y, rows, wide, other):
    made = []
    for x, axis, k in ((rows, 1, 2), (wide, 2, 3), (wide, 0, 1)):
        for largest in (0, 1):
            made += g.TopK(x, [k], axis=axis, largest=largest, outputs=2)
    return made


@case
def top_along(g, y, rows, wide, other):
    """Of at least two elements."""
    made = []
    for x, axis, k in ((y, 0, 2), (wide, 1, 1), (rows, 0, 2)):
        for largest in (0, 1):
            made += g.TopK(x, [k], axis=axis, largest=largest, outputs=2)
    return made


@case
def gathers(g, y, rows, wide, other):
    return [g.Gather(rows, [0, 2], axis=1), g.Gather(wide, [[1], [0]], axis=0),
            g.Gather(rows, np.int64(-1), axis=1),
            g.Gather("x", g.Cast(g.Clip(y, f(0)[0], f(6)[0]), to=7)),
            g.GatherElements("m", g.Cast(g.Clip(rows, f(0)[0], f(3)[0]), to=7),
                             axis=0),
            g.GatherElements(rows, g.Cast(g.Clip(rows, f(0)[0], f(3)[0]),
                                          to=7), axis=1)]


@case
def gathers_along(g, y, rows, wide, other):
    """Of at least two elements."""
    return [g.Gather(y, np.int64(0)), g.Gather(y, np.int64(-1)),
            g.Gather(rows, [-1, 1, -2], axis=0), g.Gather(wide, [[-2]], axis=1),
            g.GatherElements(rows, [[-1, 0, 1, -2]], axis=0),
            g.GatherND(rows, [[-1, 2], [1, -1]]), g.GatherND(rows, [[-2]])]


@case
def spreads(g, y, rows, wide, other):
    return [g.Expand(g.Unsqueeze(y, [1]), [1, 3]),
            g.Expand(rows, [2, 1, 1]), g.Expand(y, [1]), g.Expand(y, [3, 1]),
            g.Tile(rows, [1, 2]), g.Tile(wide, [3, 1, 2]),
            g.Unsqueeze(y, [0, 2]), g.Squeeze(g.Unsqueeze(y, [1]), [1]),
            g.OneHot(g.Cast(y, to=7), np.int64(5), f(0, 1)),
            g.OneHot(g.Cast(rows, to=7), np.int64(3), f(2, 1), axis=0)]


@case
def pads(g, y, rows, wide, other):
    nine = np.float32(9)
    return [g.Pad(y, [1, 2], nine), g.Pad(y, [0, 3], nine), g.Pad(y, [2, 0]),
            g.Pad(rows, [0, 1, 0, 2], nine), g.Pad(rows, [2, 1, 1, 0], nine),
            g.Pad(wide, [0, 0, 1, 1, 2, 0], nine)]


@case
def splits(g, y, rows, wide, other):
    return [*g.Split(rows, [1, 3], axis=1, outputs=2),
            *g.Split(wide, axis=0, num_outputs=2, outputs=2)]


@case
def products(g, y, rows, wide, other):
    b = np.arange(12, dtype=np.float32).reshape(4, 3)
    return [g.MatMul(rows, b), g.Gemm(rows, b, f(1, 2, 3), alpha=0.5),
            g.Gemm(rows, b.T.copy(), transB=1),
            g.Gemm(g.Transpose(rows), b, transA=1)]


@case
def products_of_two(g, y, rows, wide, other):
    turned = g.Transpose(rows, perm=[1, 0])
    scores = g.MatMul(rows, turned)  # [n, n]
    return [scores, g.MatMul(turned, rows), g.Gemm(rows, rows, transA=1),
            g.Gemm(rows, rows, g.Unsqueeze(y, [1]), transB=1),
            g.MatMul(y, rows), g.MatMul(turned, y),
            g.MatMul(g.Transpose(wide, perm=[0, 2, 1]), wide),
            g.MatMul(wide, g.Transpose(wide, perm=[0, 2, 1])),
            g.MatMul(scores, rows), g.ReduceSum(scores, [1], keepdims=0)]


@case
def attends(g, y, rows, wide, other):
    scores = g.Mul(g.MatMul(rows, g.Transpose(rows, perm=[1, 0])), f(0.125))
    return [g.MatMul(g.Softmax(scores, axis=-1), rows)]


@case
def einsums(g, y, rows, wide, other):
    def of(equation, *terms):
        return g.Einsum(*terms, equation=equation)
    return [of("ni,nj->ij", rows, rows), of("ni,mi->nm", rows, rows),
            of("bni,bnj->bij", wide, wide), of("n,n->", y, y),
            of("ni->in", rows), of("ni->i", rows), of("bnj->n", wide),
            of("n,k->nk", y, other), of("ni,n,bnj->bij", rows, y, wide),
            of("ni,ij->nj", rows, np.arange(12, dtype=np.float32).reshape(4, 3))]


@case
def parts_of_a_number(g, y, rows, wide, other):
    return [*g.Split(y, axis=0, num_outputs=2, outputs=2),
            *g.Split(wide, axis=1, num_outputs=3, outputs=3),
            g.Split(rows, axis=0, num_outputs=1)]


@case
def repeats(g, y, rows, wide, other):
    return [g.Tile(y, [3]), g.Tile(rows, [2, 2]), g.Tile(rows, [1, 3]),
            g.Tile(wide, [2, 2, 1]), g.Tile(wide, [1, 1, 2]),
            g.ReduceSum(g.Tile(y, [2]), [0], keepdims=0)]


@case
def norms(g, y, rows, wide, other):
    s, o = f(1, 2, 3, 4), f(0, 1, 0, 1)
    return [g.LayerNormalization(rows, s, o, axis=-1),
            g.LpNormalization(rows, axis=1), g.LpNormalization(wide, axis=1),
            g.Dropout(rows), g.CastLike(y, np.int32(1)),
            g.QuantizeLinear(rows, np.float32(0.5), np.uint8(9)),
            g.DequantizeLinear(g.QuantizeLinear(
                rows, np.float32(0.5), np.uint8(9)), np.float32(0.5),
                np.uint8(9)), g.Trilu(rows), g.Trilu(g.Transpose(rows), upper=0)]


@case
def images(g, y, rows, wide, other):
    x = g.kept("i")
    w = RNG.standard_normal((3, 2, 3, 3)).astype(np.float32)
    one = f(1, 2)
    return [g.Conv(x, w, pads=[1, 1, 1, 1]), g.GlobalAveragePool(x),
            g.MaxPool(x, kernel_shape=[2, 2], strides=[2, 2]),
            g.AveragePool(x, kernel_shape=[3, 3]),
            g.BatchNormalization(x, one, one, one, one),
            g.InstanceNormalization(x, one, one),
            g.ConvTranspose(x, np.transpose(w, (1, 0, 2, 3)).copy()),
            g.Resize(x, "", f(1, 1, 2, 2), mode="nearest"),
            g.DepthToSpace(g.Concat(x, x, axis=1), blocksize=2),
            g.Flatten(x), g.Reshape(x, [0, 2, 36]), g.Softmax(x, axis=1)]


@case
def regions(g, y, rows, wide, other):
    boxes = g.Add(g.Abs(rows), f(0, 0, 5, 5))
    picture = g.store(RNG.standard_normal((1, 2, 16, 16)).astype(np.float32))
    image = g.Cast(g.Mul(g.Gather(boxes, np.int64(0), axis=1), f(0)[0]), to=7)
    return [g.RoiAlign(picture, boxes, image, output_height=2, output_width=2,
                       sampling_ratio=2,
                       coordinate_transformation_mode="half_pixel")]


@case
def centers(g, y, rows, wide, other):
    """Cut or filled on both sides, to numbers and to what another one has."""
    square = g.Gather(g.Transpose(rows), [0, 1, 2], axis=0)
    return [g.CenterCropPad(y, [n]) for n in (1, 2, 4, 5, 7, 10)] + [
        g.CenterCropPad(rows, [3, 5]), g.CenterCropPad(rows, [3], axes=[-2]),
        g.CenterCropPad(rows, [2], axes=[1]),
        g.CenterCropPad(wide, [4, 3], axes=[2, 1]),
        g.CenterCropPad(y, g.Shape(other)),
        g.CenterCropPad(rows, g.Shape(other), axes=[0]),
        g.CenterCropPad(f(1, 2, 3), g.Shape(y)),
        g.EyeLike(rows), g.EyeLike(square, k=1), g.EyeLike(rows, k=-1, dtype=7)]


@case
def grids(g, y, rows, wide, other):
    """Batches of matrices, and points of which a run tells how many there are."""
    theta = g.Reshape(g.Concat(rows, g.Slice(rows, [0], [2], [1]), axis=1), [-1, 2, 3])
    one = f(1, 2, 3, 4, 5, 6).reshape(1, 2, 3)
    n = g.Shape(theta, start=0, end=1)
    some = g.Add(g.Shape(other), [2])
    return [g.AffineGrid(theta, g.Concat(n, [2, 3, 4], axis=0), align_corners=0),
            g.AffineGrid(theta, g.Concat(n, [1, 2, 4], axis=0), align_corners=1),
            g.AffineGrid(one, g.Concat([1, 2], some, [3], axis=0)),
            g.AffineGrid(one, g.Concat([1, 2, 3], some, axis=0), align_corners=1)]


@case
def lists_of_parts(g, y, rows, wide, other):
    """Sequences of parts that are as long as a run tells."""
    parts = g.SplitToSequence(rows, [1, 3], axis=1)
    each = g.SplitToSequence(rows, axis=1, keepdims=0)
    more = g.SequenceInsert(each, y)
    return [g.SequenceAt(parts, np.int64(1)), g.SequenceAt(each, np.int64(-1)),
            g.ConcatFromSequence(parts, axis=1), g.ConcatFromSequence(parts, axis=-1),
            g.ConcatFromSequence(each, axis=0), g.ConcatFromSequence(each, axis=1, new_axis=1),
            g.ConcatFromSequence(g.SequenceConstruct(y, other, y), axis=0),
            g.ConcatFromSequence(more, axis=0, new_axis=1)]


@case
def scatters(g, y, rows, wide, other):
    at = g.Cast(g.Clip(y, f(0)[0], f(6)[0]), to=7)
    base = np.zeros((BOUND, 4), np.float32)
    at_rows = g.Cast(g.Clip(rows, f(0)[0], f(6)[0]), to=7)
    return [g.ScatterElements(f(*range(BOUND)), at, y, reduction="add"),
            g.ScatterElements(base, at_rows, rows, reduction="max"),
            g.ScatterND(f(*range(BOUND)), g.Unsqueeze(at, [1]), y,
                        reduction="add")]


@case
def boxes(g, y, rows, wide, other):
    """Non-maximum suppression of what was kept."""
    corners = g.Mul(g.Abs(rows), f(1, 1, 3, 3))
    scores = g.Unsqueeze(g.Abs(y), [0, 1])
    at = g.NonMaxSuppression(g.Unsqueeze(corners, [0]), scores, [4],
                             f(0.3), f(1.5))
    column = g.Squeeze(g.Slice(at, [2], [3], [1]), [1])
    picked = g.Gather(corners, column)
    best = g.Slice(picked, [0], [2], [0])
    labels = g.Cast(g.Gather(y, column), to=TensorProto.INT32)
    table = g.Concat(picked, g.Unsqueeze(g.Gather(y, column), [1]), axis=1)
    return [at, picked, best, labels, table, g.Shape(table), g.Concat(
        best, picked, axis=0)]


@case
def detector(g, y, rows, wide, other):
    """NonZero, Transpose, Gather, Slice, Concat, as exporters write them."""
    over = g.NonZero(g.Greater(y, f(0)[0]))
    at = g.Squeeze(g.Transpose(over, perm=[1, 0]), [1])
    picked, scores = g.Gather(rows, at, axis=0), g.Gather(y, at, axis=0)
    corner, size = (g.Slice(picked, [0], [2], [1]),
                    g.Slice(picked, [2], [4], [1]))
    corners = g.Concat(g.Sub(corner, g.Mul(size, f(0.5)[0])),
                       g.Add(corner, g.Mul(size, f(0.5)[0])), axis=1)
    flat = g.Reshape(corners, [-1, 2, 2])
    return [at, corners, flat, g.Reshape(flat, [-1, 4]),
            g.Concat(corners, g.Reshape(scores, [-1, 1]), axis=-1),
            g.Clip(corners, f(0)[0], f(5)[0]), g.Slice(scores, [0], [2], [0]),
            g.Concat(scores, g.Neg(scores), axis=0), g.Softmax(corners, axis=1)]


@case
def computed_shapes(g, y, rows, wide, other):
    """Shape, Gather, Unsqueeze, Concat before what takes a shape."""
    scalar = g.Gather(g.Shape(rows), np.int64(0))
    n, k = g.Unsqueeze(scalar, [0]), g.Shape(other)
    whole = g.Cast(g.Cast(n, to=TensorProto.INT32), to=TensorProto.INT64)
    places = g.Range(np.int64(0), scalar, np.int64(1))
    table = g.Mul(g.Unsqueeze(y, [1]), g.Unsqueeze(other, [0]))
    return [g.Reshape(rows, g.Concat(n, [2, 2], axis=0)),
            g.Reshape(rows, g.Concat([2], whole, [2], axis=0)),
            g.Reshape(rows, g.Concat(g.Mul(n, [2]), [2], axis=0)),
            g.Reshape(wide, g.Concat([3], n, [2], axis=0)),
            g.Reshape(table, g.Concat(k, n, [1], axis=0)),
            g.Expand(f(1, 2, 3, 4), g.Shape(rows)),
            g.Expand(g.Unsqueeze(y, [1]), g.Concat(n, [3], axis=0)),
            g.Expand(g.Unsqueeze(y, [1]), g.Concat(n, k, axis=0)),
            g.Expand(f(5), k), g.Expand(f(1, 2), g.Concat(k, n, [1], axis=0)),
            g.ConstantOfShape(n), g.ConstantOfShape(g.Concat([2], k, axis=0)),
            g.ConstantOfShape(g.Add(n, k)), g.ConstantOfShape(g.Div(n, [2])),
            places, g.Range(np.int64(2), scalar, np.int64(3)),
            g.Range(np.int64(-3), scalar, np.int64(2)),
            g.Add(g.Cast(places, to=TensorProto.FLOAT), y),
            g.Concat(places, g.Range(np.int64(0), np.int64(3), np.int64(1)),
                     axis=0),
            *g.TopK("x", g.Min(n, [3]), outputs=2),
            *g.TopK(y, g.Min(n, [2]), outputs=2),
            *g.TopK("x", n, axis=0, largest=0, outputs=2)]


@case
def branches(g, y, rows, wide, other):
    """As exporters guard what is empty; and branches of different shapes."""
    n = g.Gather(g.Shape(y), np.int64(0))
    some = g.Greater(n, np.int64(2))
    empty = np.zeros((0, 4), np.float32)
    a = g.branches(some, lambda b: [b.Mul(rows, f(2)[0])],
                   lambda b: [b.Identity(b.store(empty))])
    same = g.branches(some, lambda b: [b.Neg(y)], lambda b: [b.Abs(y)])
    two = g.branches(
        some, lambda b: [b.Slice(rows, [1], [3], [0]), b.Concat(y, y, axis=0)],
        lambda b: [rows, b.Concat(y, f(1, 2), axis=0)], outputs=2)
    table = g.branches(
        some, lambda b: [b.Mul(b.Unsqueeze(y, [1]), b.Unsqueeze(other, [0]))],
        lambda b: [b.store(np.ones((2, 9), np.float32))])
    deep = g.branches(some, lambda b: [b.branches(
        b.Greater(n, np.int64(4)), lambda c: [c.Exp(y)],
        lambda c: [c.Concat(y, y, axis=0)])],
        lambda b: [b.store(f(1, 2, 3))])
    return [a, g.ReduceSum(a, [0], keepdims=0), same, g.Add(same, y), *two,
            g.Concat(a, two[0], axis=0), table, g.Transpose(table),
            g.ReduceSum(table, [1], keepdims=0), deep, g.CumSum(
                deep, np.int64(0)), g.Shape(deep)]


@case
def branches_of_fixed_shapes(g, y, rows, wide, other):
    """A condition that only a run tells chooses among shapes that are known."""
    some = g.Greater(g.ReduceSum(y, keepdims=0), f(0)[0])
    a = g.branches(some, lambda b: [b.Slice("m", [0], [3], [0])],
                   lambda b: [b.Concat("m", "m", axis=1)])
    return [a, g.Shape(a), g.ReduceMax(a, [1], keepdims=1),
            g.Softmax(a, axis=1), g.Reshape(a, [-1])]


def trip(b, *more):
    """Inputs of a loop's body: counter, condition and what it carries."""
    return [(f"{b}i", TensorProto.INT64, []), (f"{b}c", TensorProto.BOOL, []),
            *[(f"{b}{k}", TensorProto.FLOAT, None) for k in more]]


@case
def loops(g, y, rows, wide, other):
    """States that keep their extents, change them, have none; rows of them."""
    true = np.bool_(True)
    keeps = g.Loop(np.int64(20), true, y, body=g.body(
        lambda b, i, c, s: [b.Identity(c), b.Add(s, f(1)[0])],
        *trip("a", "s")))
    shrinks = g.Loop(np.int64(20), true, y, rows, outputs=2, body=g.body(
        lambda b, i, c, s, r: [b.Identity(c), b.Slice(s, [1], [FAR], [0]),
                               b.Add(r, b.ReduceSum(s, keepdims=1))],
        *trip("b", "s", "r")))
    stacks = g.Loop(np.int64(17), true, f(0)[0], outputs=2, body=g.body(
        lambda b, i, c, s: [b.Identity(c), b.Add(s, f(1)[0]),
                            b.Mul(rows, s)], *trip("e", "s")))
    few = g.Loop(np.int64(3), true, y, outputs=2, body=g.body(
        lambda b, i, c, s: [b.Identity(c), b.Concat(s, f(9), axis=0),
                            b.Neg(y)], *trip("h", "s")))
    return [keeps, g.Add(keeps, y), *shrinks, *stacks, *few,
            g.ReduceSum(stacks[1], [1], keepdims=0),
            g.ReduceMax(shrinks[1], [1], keepdims=1)]


@case
def loops_to_a_count(g, y, rows, wide, other):
    """As many trips as there are elements, or until something is found. Of no trip ONNX
    Runtime does not know the rank of a row."""
    true = np.bool_(True)
    n = g.Gather(g.Shape(y), np.int64(0))
    each = g.Loop(n, true, f(0)[0], outputs=2, body=g.body(
        lambda b, i, c, s: [b.Identity(c), b.Add(s, b.Gather(y, i)),
                            b.Gather(rows, i, axis=0)], *trip("a", "s")))
    stop = g.Loop(n, true, y, outputs=2, body=g.body(
        lambda b, i, c, s: [b.Less(i, np.int64(2)), b.Mul(s, f(2)[0]),
                            b.Mul(s, f(3)[0])], *trip("b", "s")))
    return [*each, g.Add(each[1], rows), *stop, g.Shape(stop[1]),
            g.ReduceSum(stop[1], [0], keepdims=0)]


@case
def scans(g, y, rows, wide, other):
    """A trip for each row that is kept; rows that are so long."""
    def step(b, s, r):
        total = b.Add(s, r)
        return [total, b.Mul(total, f(2)[0])]
    state = [("s", TensorProto.FLOAT, None), ("r", TensorProto.FLOAT, None)]
    zero = f(0, 0, 0, 0)
    down = g.Scan(zero, rows, num_scan_inputs=1, outputs=2,
                  body=g.body(step, *state))
    up = g.Scan(zero, rows, num_scan_inputs=1, outputs=2,
                scan_input_directions=[1], scan_output_directions=[1],
                body=g.body(step, *state))
    table = g.Transpose(rows)
    across = g.Scan(zero, table, num_scan_inputs=1, outputs=2,
                    scan_input_axes=[1], scan_output_axes=[1],
                    body=g.body(step, *state))
    two = g.Scan(f(0)[0], rows, y, num_scan_inputs=2, outputs=2, body=g.body(
        lambda b, s, r, v: [b.Add(s, v), b.Mul(r, v)],
        *state, ("v", TensorProto.FLOAT, None)))
    along = g.Scan(y, table, num_scan_inputs=1, outputs=2,
                   body=g.body(step, *state))
    return [*down, *up, *across, *two, *along, g.Add(down[1], rows),
            g.ReduceSum(along[1], [1], keepdims=0)]


@case
def attention(g, y, rows, wide, other):
    """Queries, keys or both of which only a run tells how many there are."""
    x = g.Unsqueeze(g.Mul(rows, f(0.1)[0]), [0])  # [1, n, 4]
    k = g.Slice(x, [1], [3], [2])
    heads = {"q_num_heads": 2, "kv_num_heads": 2}
    five = RNG.standard_normal((1, 5, 4)).astype(np.float32)
    lower = g.Less(g.Unsqueeze(y, [0]), g.Unsqueeze(y, [1]))  # [n, n]
    bias = g.Mul(g.Unsqueeze(y, [0]), g.Unsqueeze(y, [1]))
    deep = g.Transpose(g.Reshape(x, [1, -1, 2, 2]), perm=[0, 2, 1, 3])
    past = RNG.standard_normal((2, 1, 2, 3, 2)).astype(np.float32)
    batch = g.Reshape(g.Mul(rows, f(0.1)[0]), [-1, 2, 2])
    one = {"q_num_heads": 1, "kv_num_heads": 1}
    grown = g.Attention(deep, deep, deep, "", past[0], past[1], outputs=3,
                        is_causal=1)
    return [g.Attention(x, x, x, **heads),
            g.Attention(x, x, x, is_causal=1, **heads),
            g.Attention(x, k, k, q_num_heads=4, kv_num_heads=2),
            g.Attention(five, x, x, **heads),
            g.Attention(x, five, five, **heads),
            g.Attention(x, x, x, lower, **heads),
            g.Attention(x, x, x, bias, **heads),
            g.Attention(deep, deep, deep, bias, softcap=2.0),
            *grown, g.Attention(deep, grown[1], grown[2]),
            g.Attention(batch, batch, batch, **one),
            g.ReduceSum(g.Attention(x, x, x, **heads), [1], keepdims=0)]


@case
def fits(g, y, rows, wide, other):
    """Two masks that keep equally many, which only a run shows."""
    column = g.Unsqueeze(other, [1])
    return [g.Add(y, other), g.Mul(rows, column), g.Sum(y, other, y),
            g.Where(g.Greater(y, f(0)[0]), other, y),
            g.Concat(g.Unsqueeze(y, [1]), column, axis=1),
            g.MatMul(y, other), g.MatMul(g.Transpose(rows), column),
            g.Gemm(rows, column, transA=1), g.MatMul(g.Add(other, y), rows),
            g.Einsum(rows, other, equation="ni,n->i"),
            g.Einsum(y, other, equation="n,n->n"),
            g.Softmax(g.Sub(y, other), axis=0)]


@case
def misfits(g, y, rows, wide, other):
    """7 or, where it is repeated, 1 of them; else no run can be right."""
    return [g.Add(y, "u"), g.Mul(rows, "m"), g.Max("w", wide),
            g.Add(g.Unsqueeze(y, [0]), "v")]


@case
def misfits_of_sums(g, y, rows, wide, other):
    return [g.MatMul("v", rows), g.Einsum("u", y, equation="n,n->"),
            g.Concat(g.Unsqueeze(y, [1]), "m", axis=1)]


@case
def slices_by_numbers(g, y, rows, wide, other):
    """Starts and ends that are made of extents."""
    n = g.Shape(y)
    half, less = g.Div(n, [2]), g.Sub(n, [1])
    cuts = [(0, n), (0, half), (half, n), (half, FAR), (less, n), (0, less),
            (g.Neg(half), FAR), (half, -1), (-3, half), (1, half),
            (half, g.Add(half, [2])), (less, half)]
    def one(a):
        return a if isinstance(a, str) else [a]
    made = [g.Slice(y, one(s), one(e), [0]) for s, e in cuts]
    made += [g.Slice("x", one(s), one(e), [0]) for s, e in cuts]
    steps = [(0, n, 2), (less, -FAR, -1), (half, FAR, 3), (-1, half, -2)]
    made += [g.Slice("x", one(s), one(e), [0], [t]) for s, e, t in steps]
    made += [g.Slice(y, one(s), one(e), [0], [t]) for s, e, t in steps]
    both = g.Concat([1], half, axis=0)
    made += [g.Slice(rows, [0, 1], g.Concat(half, [3], axis=0), [0, 1]),
             g.Slice(wide, both, [FAR, FAR], [2, 1]),
             g.Slice("m", g.Concat(half, [1], axis=0), [FAR, FAR])]
    return made + [g.ReduceSum(made[1], [0]), g.Add(made[1], made[12 + 1])]


@case
def slices_in_loops(g, y, rows, wide, other):
    """Row i of what is carried, by numbers that a trip counts."""
    true = np.bool_(True)
    def body(b, i, c, s):
        at = b.Unsqueeze(i, [0])
        row = b.Slice("m", at, b.Add(at, [1]), [0])
        return [b.Identity(c), b.Add(s, b.ReduceSum(row, keepdims=0)),
                b.ReduceMax(row, [0], keepdims=0)]
    return [*g.Loop(np.int64(BOUND), true, f(0)[0], outputs=2,
                    body=g.body(body, *trip("a", "s")))]


@case
def parts_of_sizes(g, y, rows, wide, other):
    """Parts whose sizes are made of extents."""
    n = g.Shape(y)
    half = g.Div(n, [2])
    sizes = g.Concat(half, g.Sub(n, half), axis=0)
    whole = g.Concat(half, g.Sub([BOUND], half), axis=0)
    return [*g.Split(y, sizes, axis=0, outputs=2),
            *g.Split(rows, sizes, axis=0, outputs=2),
            *g.Split(wide, sizes, axis=1, outputs=2),
            *g.Split("x", whole, axis=0, outputs=2),
            *g.Split("m", g.Concat([1], g.Sub([6], half), half,
                                   axis=0), axis=0, outputs=3)]


@case
def misfits_of_parts(g, y, rows, wide, other):
    """4 of them, or no run can be right."""
    return [*g.Split(y, [1, 3], axis=0, outputs=2),
            *g.Split(rows, [4, 0], axis=0, outputs=2)]


@case
def misfits_of_rests(g, y, rows, wide, other):
    """At least 3 of them."""
    return [*g.Split(y, g.Concat([3], g.Sub(g.Shape(y), [3]), axis=0), axis=0,
                     outputs=2)]


@case
def reshapes_that_fit(g, y, rows, wide, other):
    """Of 4 elements, as a run shows."""
    n = g.Shape(y)
    return [g.Reshape(y, [2, 2]), g.Reshape(y, [-1, 2]), g.Reshape(y, [1, 4, 1]),
            g.Reshape(rows, [-1, 8]), g.Reshape(rows, [2, 0, 2]),
            g.Reshape(rows, g.Concat(g.Div(n, [2]), [-1], axis=0)),
            g.Reshape(wide, g.Concat([3], g.Shape(other), [-1], axis=0)),
            g.ReduceSum(g.Reshape(y, [-1, 2]), [0], keepdims=0),
            g.Squeeze(g.Reshape(y, [-1, 4]), [0])]


@case
def misfits_of_reshapes(g, y, rows, wide, other):
    return [g.Reshape(y, [2, 2]), g.Reshape(rows, [8, 2])]


@case
def misfits_of_squeezes(g, y, rows, wide, other):
    return [g.Squeeze(y, [0]), g.Squeeze(wide, [1])]


@case
def uniques(g, y, rows, wide, other):
    few = g.Floor(g.Mul(y, f(0.25)[0]))
    signs = g.Sign(rows)
    whole = g.Cast(few, to=TensorProto.INT64)
    made = []
    for x, how in ((few, {}), (few, {"sorted": 0}), (signs, {}),
                   (signs, {"axis": 0}), (signs, {"axis": 0, "sorted": 0}),
                   (signs, {"axis": 1}), (g.Sign(wide), {"axis": 1}),
                   (g.Sign(wide), {"axis": 2}), (whole, {})):
        made += g.Unique(x, outputs=4, **how)
    return made + [g.ReduceSum(made[0], [0], keepdims=0)]


def weights(*shape):
    return (RNG.standard_normal(shape) * 0.5).astype(np.float32)


@case
def recurrent(g, y, rows, wide, other):
    """Batches, steps, lengths and initial states that only a run tells."""
    x = g.Mul(wide, f(0.1)[0])  # [2 steps, n, 3]
    steps = g.Transpose(x, perm=[1, 0, 2])  # [n steps, 2, 3]
    lengths = g.Cast(g.Clip(g.Abs(y), f(1)[0], f(2)[0]), to=TensorProto.INT32)
    state = g.Unsqueeze(g.Slice(g.Mul(rows, f(0.1)[0]), [0], [2], [1]), [0])
    both = {"direction": "bidirectional"}
    made = []
    for axis in (x, steps):
        made += g.LSTM(axis, weights(1, 8, 3), weights(1, 8, 2), weights(1, 16),
                       hidden_size=2, outputs=3)
        made += g.GRU(axis, weights(2, 6, 3), weights(2, 6, 2), weights(2, 12),
                      hidden_size=2, outputs=2, linear_before_reset=1, **both)
        made += g.RNN(axis, weights(1, 2, 3), weights(1, 2, 2), hidden_size=2,
                      outputs=2, direction="reverse")
    made += g.LSTM(x, weights(1, 8, 3), weights(1, 8, 2), "", lengths, state,
                   state, weights(1, 6), hidden_size=2, outputs=3)
    made += g.GRU(x, weights(2, 6, 3), weights(2, 6, 2), "", lengths,
                  hidden_size=2, outputs=2, **both)
    last = g.Squeeze(made[1], [0])
    return made + [g.MatMul(last, weights(2, 3)),
                   g.ReduceSum(made[0], [2], keepdims=0)]


@case
def recurrent_batches_first(g, y, rows, wide, other):
    """layout 1, which ONNX Runtime refuses: onnx.reference takes one direction of it."""
    x = g.Transpose(g.Mul(wide, f(0.1)[0]), perm=[1, 0, 2])  # [n, 2 steps, 3]
    return [*g.RNN(x, weights(1, 2, 3), weights(1, 2, 2), hidden_size=2,
                   outputs=2, layout=1)]


@case
def quantised(g, y, rows, wide, other):
    whole = g.Cast(g.Add(rows, f(9)[0]), to=TensorProto.UINT8)
    signed = g.Cast(rows, to=TensorProto.INT8)
    turned = g.Transpose(whole, perm=[1, 0])
    w = RNG.integers(-9, 10, (4, 3)).astype(np.int8)
    u = RNG.integers(0, 20, (4, 3)).astype(np.uint8)
    scale, zero = np.float32(0.5), np.uint8(3)
    image = g.Cast(g.Mul(g.Abs(g.kept("i")), f(9)[0]), to=TensorProto.UINT8)
    kernel = RNG.integers(0, 20, (3, 2, 3, 3)).astype(np.uint8)
    return [g.MatMulInteger(whole, w, np.uint8(9)), g.MatMulInteger(whole, u),
            g.MatMulInteger(signed, w), g.MatMulInteger(whole, turned),
            g.MatMulInteger(turned, whole, np.uint8(9), np.uint8(2)),
            g.QLinearMatMul(whole, scale, zero, u, scale, np.uint8(7),
                            np.float32(4), zero),
            g.QLinearMatMul(turned, scale, zero, whole, scale, zero,
                            np.float32(99), zero),
            *g.DynamicQuantizeLinear(y, outputs=3),
            *g.DynamicQuantizeLinear(rows, outputs=3),
            g.ConvInteger(image, kernel, np.uint8(4)),
            g.QLinearConv(image, scale, zero, kernel, scale, zero,
                          np.float32(40), zero)]


@case
def reversed_parts(g, y, rows, wide, other):
    """Of no element ONNX Runtime divides by 0."""
    two = g.Cast(g.Clip(g.Abs(y), f(0)[0], f(2)[0]), to=TensorProto.INT64)
    n = g.Shape(y)
    return [g.ReverseSequence(wide, two),
            g.ReverseSequence(g.Transpose(wide, perm=[1, 0, 2]), two,
                              batch_axis=0, time_axis=1),
            g.ReverseSequence(wide, g.Concat(n, g.Div(n, [2]), axis=0),
                              batch_axis=0, time_axis=1)]


@case
def batches(g, y, rows, wide, other):
    x = g.kept("i")  # [n, 2, 6, 6]
    places = g.Reshape(g.Mul(g.Concat(rows, rows, axis=1), f(0.1)[0]),
                       [-1, 2, 2, 2])
    pooled, at = g.MaxPool(x, kernel_shape=[2, 2], strides=[2, 2], outputs=2)
    signal = g.Reshape(x, [-1, 72, 1])
    return [g.Det(g.Reshape(rows, [-1, 2, 2])), g.GridSample(x, places),
            g.MaxUnpool(pooled, at, kernel_shape=[2, 2], strides=[2, 2]),
            g.MeanVarianceNormalization(x),
            g.MeanVarianceNormalization(rows, axes=[0]),
            g.DFT(signal, axis=1), g.STFT(signal, np.int64(8), "",
                                          np.int64(16)),
            g.TfIdfVectorizer(
                g.Cast(rows, to=TensorProto.INT32), mode="TF", min_gram_length=1,
                max_gram_length=1, max_skip_count=0, ngram_counts=[0],
                ngram_indexes=[0, 1, 2], pool_int64s=[1, 2, 3])]


@case
def batches_by_runtime(g, y, rows, wide, other):
    picture = g.store(weights(1, 2, 16, 16))
    corners = g.Add(g.Abs(rows), f(0, 0, 5, 5))
    regions = g.Concat(g.Mul(g.Unsqueeze(y, [1]), f(0)[0]), corners, axis=1)
    return [g.MaxRoiPool(picture, regions, pooled_shape=[2, 2])]


@case
def losses(g, y, rows, wide, other):
    at = g.Cast(g.Clip(g.Abs(y), f(0)[0], f(3)[0]), to=TensorProto.INT64)
    w = f(1, 0.5, 2, 3)
    made = []
    for how in ("none", "sum", "mean"):
        made += [g.NegativeLogLikelihoodLoss(rows, at, reduction=how),
                 g.NegativeLogLikelihoodLoss(rows, at, w, reduction=how),
                 g.NegativeLogLikelihoodLoss(rows, at, reduction=how,
                                             ignore_index=1),
                 *g.SoftmaxCrossEntropyLoss(rows, at, w, reduction=how,
                                            outputs=2)]
    return made


@case
def columns_to_images(g, y, rows, wide, other):
    x = g.Reshape(g.kept("i"), [-1, 8, 9])  # [n, 2 * 2 * 2, 3 * 3]
    return [g.Col2Im(x, [6, 6], [2, 2], strides=[2, 2])]


@case
def deformed(g, y, rows, wide, other):
    x = g.kept("i")
    offsets = g.Mul(g.Tile(g.Slice(x, [0, 0, 0, 0], [9, 2, 5, 5], [0, 1, 2, 3]),
                           [1, 4, 1, 1]), f(0.3)[0])
    return [g.DeformConv(x, weights(3, 2, 2, 2), offsets, kernel_shape=[2, 2])]


@case
def rotated(g, y, rows, wide, other):
    x = g.Reshape(g.Concat(rows, rows, axis=1), [-1, 1, 2, 4])
    at = g.Cast(g.Clip(g.Abs(g.Slice(rows, [0], [2], [1])), f(0)[0], f(5)[0]),
                to=TensorProto.INT64)
    return [g.RotaryEmbedding(x, weights(6, 2), weights(6, 2), at)]


@case
def caches(g, y, rows, wide, other):
    cache = g.Reshape(g.Concat(rows, rows, axis=1), [-1, 1, 4, 2])
    update = g.Reshape(rows, [-1, 1, 2, 2])
    at = g.Cast(g.Clip(g.Abs(y), f(0)[0], f(2)[0]), to=TensorProto.INT64)
    return [g.TensorScatter(cache, update, at)]


# What needs an element, and of which case onnx.reference is not the judge.
OPSETS = {"grids": 20, "attention": 23, "rotated": 23, "caches": 24, "deformed": 19}
AT_LEAST = {"recurrent": 1, "recurrent_batches_first": 1, "quantised": 1, "reversed_parts": 1, "batches": 1, "losses": 1, "columns_to_images": 1, "deformed": 1, "rotated": 1, "caches": 1, "batches_by_runtime": 1, "uniques": 1, "attention": 1, "loops_to_a_count": 1, "scans": 1, "attends": 1, "parts_of_a_number": 3, "reshapes_beside_a_copy": 1, "soft_along": 1, "top_along": 2, "gathers_along": 2, "regions": 1,
            "detector": 1}
BY_RUNTIME = {"recurrent", "quantised", "reversed_parts", "batches_by_runtime", "uniques", "misfits_of_parts", "misfits_of_rests", "loops", "loops_to_a_count", "scans", "norms", "computed_shapes", "boxes", "regions", "top", "top_along", "images"}


def model_of(name):
    g = Graph()
    values = CASES[name](g, *(g.kept(k) for k in ("x", "m", "w", "u")))
    infos = [h.make_empty_tensor_value_info(v) for v in values]
    inputs = [h.make_tensor_value_info(k, TensorProto.FLOAT, a.shape)
              for k, a in FLOATS.items()]
    inputs += [h.make_tensor_value_info(k, TensorProto.BOOL, [BOUND])
               for k in ("keep", "keep_u")]
    graph = h.make_graph(g.nodes, "g", inputs, infos, g.stored)
    return h.make_model(graph, opset_imports=[
        h.make_opsetid("", OPSETS.get(name, 18))], ir_version=9)


def expected(name, model, feeds):
    if name not in BY_RUNTIME:
        return ReferenceEvaluator(model).run(None, feeds)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what fails is expected to
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options,
        providers=["CPUExecutionProvider"]).run(None, feeds)


def run(path, feeds, folder, device, count):
    command = [PESTLE, "run", path, "--device", device, "--outputs",
               f"{folder}/out", "--cache-dir", f"{folder}/cache"]
    for name, array in feeds.items():
        np.save(f"{folder}/{name}.npy", array)
        command += ["--input", f"{name}={folder}/{name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        return done.stderr.strip()
    return [np.load(f"{folder}/out/output_{i}.npy") for i in range(count)]


def check(name, folder):
    model, bad, runs = model_of(name), 0, 0
    path = f"{folder}/{name}.onnx"
    onnx.save(model, path)
    for mask, keep in MASKS.items():
        if keep.sum() < AT_LEAST.get(name, 0) or (
                name == "reshapes_that_fit" and keep.sum() != 4):
            continue
        feeds = {**FLOATS, "keep": keep, "keep_u": keep[::-1].copy()}
        try:
            want = expected(name, model, feeds)
        except Exception:
            if not name.startswith("misfits"):
                raise
            want = None
        for device in ("ref", "llvm"):
            got = run(path, feeds, folder, device, len(want or []))
            runs += 1
            if want is None:
                fails = isinstance(got, str) and "do not fit each other" in got
                bad += not fails
                if not fails:
                    print(f"{name}, {mask}, {device}: ran, or says {got}")
                continue
            if isinstance(got, str):
                print(f"{name}, {mask}, {device}: {got}")
                bad += 1
                continue
            for i, (a, b) in enumerate(zip(got, want)):
                b = np.asarray(b)
                # Whole numbers up to 9: sums are exact, f32 rounds the rest.
                if a.shape == b.shape and np.allclose(
                        a, b, 1e-4, 1e-5, equal_nan=True):
                    continue
                print(f"{name}, {mask}, {device}, output {i} of "
                      f"{model.graph.output[i].name}: {a.shape} {a.tolist()}, "
                      f"not {b.shape} {b.tolist()}")
                bad += 1
    return bad, runs


def main():
    bad = runs = 0
    for name in sys.argv[1:] or CASES:
        with tempfile.TemporaryDirectory() as folder:
            more, times = check(name, folder)
        bad, runs = bad + more, runs + times
    print(f"{runs} runs of {len(sys.argv[1:] or CASES)} models, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
