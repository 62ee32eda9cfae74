# SPDX-License-Identifier: Apache-2.0
"""The kernels and networks that Pestle is timed on beside its peers on the CPU,
as ONNX graphs. Weights are random, of a seed that the name gives.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CASES = {}  # name: (group, opset, build)


class Graph:
    """A graph under construction. Values go by their names."""

    def __init__(self, name):
        self.nodes, self.weights, self.inputs, self.output = [], [], [], None
        self.count = 0
        seed = 1469598103934665603
        for byte in name.encode():
            seed = (seed ^ byte) * 1099511628211 % 2**64
        self.rng = np.random.default_rng(seed % 2**32)

    def normal(self, shape, scale):
        return (self.rng.standard_normal(shape) * scale).astype(np.float32)

    def filters(self, shape, fan):
        return self.normal(shape, np.sqrt(2.0 / fan))

    def small(self, size, scale=0.1):
        return self.normal(size, 1) * np.float32(scale)

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        value = helper.make_tensor_value_info(name, dtype, shape)
        self.inputs.append(value)
        return name

    def weight(self, value):
        if isinstance(value, (int, float)):
            value = np.array(value, np.float32)
        self.count += 1
        name = f"w{self.count}"
        value = np.ascontiguousarray(value)  # a scalar becomes one of [1]
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def op(self, kind, *operands, **attributes):
        """Operands that are no names become weights."""
        names = [x if isinstance(x, str) else self.weight(x) for x in operands]
        self.count += 1
        result, name = f"t{self.count}", f"{kind}_{self.count}"
        self.nodes.append(
            helper.make_node(kind, names, [result], name=name, **attributes)
        )
        return result

    def returns(self, value, shape, dtype=TensorProto.FLOAT):
        assert self.nodes[-1].output[0] == value
        self.nodes[-1].output[0] = "y0"
        self.output = helper.make_tensor_value_info("y0", dtype, shape)


def make(name):
    _, opset, build = CASES[name]
    g = Graph(name)
    build(g)
    made = helper.make_graph(g.nodes, name, g.inputs, [g.output], g.weights)
    opsets = [helper.make_opsetid("", opset)]
    version = 10 if opset >= 21 else 8
    model = helper.make_model(made, opset_imports=opsets, ir_version=version)
    onnx.checker.check_model(model)
    return model


def case(name, group, build, *sizes, opset=18, **options):
    CASES[name] = group, opset, lambda g: build(g, *sizes, **options)


# --- Products ---


def product(g, m, n, k, constant):
    a = g.input("A", [m, k])
    b = g.filters((k, n), k) if constant else g.input("B", [k, n])
    g.returns(g.op("MatMul", a, b), [m, n])


def product_s8(g, n):
    a = g.input("A", [n, n], TensorProto.UINT8)
    b = g.rng.integers(-100, 100, (n, n)).astype(np.int8)
    y = g.op("MatMulInteger", a, b)
    g.returns(y, [n, n], TensorProto.INT32)


def gelu(g, x):
    erf = g.op("Erf", g.op("Div", x, 2**0.5))
    return g.op("Mul", g.op("Mul", x, g.op("Add", erf, 1.0)), 0.5)


def bias_gelu(g):
    x = g.input("A", [512, 768])
    w, b = g.weight(g.filters((768, 3072), 768)), g.weight(g.small(3072))
    y = g.op("Add", g.op("MatMul", x, w), b)
    g.returns(gelu(g, y), [512, 3072])


F32, SMALL = "products of f32", "products of bf16 and bytes"
SHAPES = """64 64 64, 128 128 128, 256 256 256, 512 512 512, 1024 1024 1024,
    2048 2048 2048, 1 4096 1024, 8 4096 1024, 128 3072 768, 3136 576 64"""
for shape in SHAPES.split(","):
    numbers = [int(size) for size in shape.split()]
    suffix = "_".join(map(str, numbers))
    case("gemm_" + suffix, F32, product, *numbers, constant=False)
    case("gemmw_" + suffix, F32, product, *numbers, constant=True)
for number in (512, 1024):
    suffix = f"{number}_{number}_{number}"
    case("gemms8_" + suffix, SMALL, product_s8, number)
    # prepare.py makes bf16 of its operands.
    case("gemmbf16_" + suffix, SMALL, product, *[number] * 3, constant=False)
case("gemm_bias_gelu_512_3072_768", F32, bias_gelu)

# --- What memory or calls bound ---


def chain(g, n):
    x = g.input("X", [n])
    y = g.op("Relu", g.op("Add", g.op("Mul", x, 1.01), 0.5))
    y = g.op("Sub", g.op("Mul", y, y), 0.25)
    y = g.op("Add", g.op("Sqrt", g.op("Abs", y)), x)
    g.returns(g.op("Neg", g.op("Mul", y, 0.7)), [n])


def transcendental(g, n):
    y = g.input("X", [n])
    for kind in ("Tanh", "Exp", "Sigmoid", "Erf", "Log"):
        y = g.op(kind, y)
    g.returns(y, [n])


def add_one(g):
    g.returns(g.op("Add", g.input("X", [16]), 1.0), [16])


def single(g, kind, shape, to, *constants, **attributes):
    x = g.input("X", shape)
    g.returns(g.op(kind, x, *constants, **attributes), to)


def layer_norm(g, rows, width):
    scale = np.linspace(0.5, 1.5, width, dtype=np.float32)
    offset = np.linspace(-1, 1, width, dtype=np.float32)
    name, shape = "LayerNormalization", [rows, width]
    single(g, name, shape, shape, scale, offset, axis=-1, epsilon=1e-5)


def total(g, axes, to):
    axes = np.array(axes, np.int64)
    single(g, "ReduceSum", [4096, 4096], to, axes, keepdims=0)


MEMORY, ROWS, SQUARE = "bound by memory", [4096, 1024], [4096, 4096]
case("chain10_16M", MEMORY, chain, 1 << 24)
case("chain10_16k", MEMORY, chain, 1 << 14)
case("transc5_1M", MEMORY, transcendental, 1 << 20)
case("trivial_16", "calls", add_one)
case("softmax_4096_1024", MEMORY, single, "Softmax", ROWS, ROWS, axis=-1)
case("layernorm_4096_1024", MEMORY, layer_norm, *ROWS)
case("sum_all_4096", MEMORY, total, [0, 1], [])
case("sum_ax0_4096", MEMORY, total, [0], [4096])
case("sum_ax1_4096", MEMORY, total, [1], [4096])
case("transpose_4096", MEMORY, single, "Transpose", SQUARE, SQUARE, perm=[1, 0])

# --- Convolutions ---


def conv(g, x, channels, features, k, stride=1, pad=None, groups=1):
    channels //= groups
    w = g.weight(g.filters((features, channels, k, k), channels * k * k))
    b = g.weight(g.small(features))
    shape = {"kernel_shape": [k, k], "strides": [stride, stride]}
    pads = [k // 2 if pad is None else pad] * 4
    return g.op("Conv", x, w, b, **shape, pads=pads, group=groups)


def convolution(g, channels, size, features, k, stride=1, groups=1):
    x = g.input("X", [1, channels, size, size])
    y = conv(g, x, channels, features, k, stride, groups=groups)
    to = (size - 1) // stride + 1
    g.returns(y, [1, features, to, to])


CONV = "convolutions"
case("conv3x3_64_56", CONV, convolution, 64, 56, 64, 3)
case("conv3x3_256_14", CONV, convolution, 256, 14, 256, 3)
case("convdw3x3_144_56", CONV, convolution, 144, 56, 144, 3, groups=144)
case("convg3x3_48_28", CONV, convolution, 48, 28, 48, 3, groups=16)
case("convg3x3_160_28", CONV, convolution, 160, 28, 160, 3, groups=8)
case("conv1x1_64_256_56", CONV, convolution, 64, 56, 256, 1)
case("conv7x7s2_3_64_224", CONV, convolution, 3, 224, 64, 7, 2)

# --- Attention: 12 heads of 64 ---


def operands(g, size):
    return [g.input(name, [1, 12, size, 64]) for name in "QKV"]


def attention(g, size):
    q, k, v = operands(g, size)
    s = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    p = g.op("Softmax", g.op("Mul", s, 64**-0.5), axis=-1)
    g.returns(g.op("MatMul", p, v), [1, 12, size, 64])


def attention_op(g, size):
    g.returns(g.op("Attention", *operands(g, size)), [1, 12, size, 64])


for number in (128, 1024):
    case(f"attn_{number}", "attention", attention, number)
    case(f"attnop_{number}", "attention", attention_op, number, opset=23)

# --- Networks ---


def linear(g, x, rows, columns, relu=True):
    w = g.filters((rows, columns), rows)
    y = g.op("Gemm", x, w, np.zeros(columns, np.float32) + np.float32(0.01))
    return g.op("Relu", y) if relu else y


def pool(g, x, k, stride, **options):
    k, stride = [k, k], [stride, stride]
    return g.op("MaxPool", x, kernel_shape=k, strides=stride, **options)


def head(g, x, channels):
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    g.returns(linear(g, x, channels, 1000, False), [1, 1000])


def mlp(g):
    x = linear(g, g.input("X", [64, 784]), 784, 512)
    g.returns(linear(g, linear(g, x, 512, 512), 512, 10, False), [64, 10])


def lenet(g, batch):
    x = g.input("X", [batch, 1, 28, 28])
    x = pool(g, g.op("Relu", conv(g, x, 1, 6, 5)), 2, 2)
    x = pool(g, g.op("Relu", conv(g, x, 6, 16, 5, pad=0)), 2, 2)
    x = linear(g, g.op("Flatten", x, axis=1), 400, 120)
    g.returns(linear(g, linear(g, x, 120, 84), 84, 10, False), [batch, 10])


def resnet(g):
    x = g.input("X", [1, 3, 224, 224])
    x = g.op("Relu", conv(g, x, 3, 64, 7, 2))
    x, channels = pool(g, x, 3, 2, pads=[1, 1, 1, 1]), 64
    for features in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and features > 64 else 1
            y = g.op("Relu", conv(g, x, channels, features, 3, stride))
            y = conv(g, y, features, features, 3)
            if stride != 1:
                x = conv(g, x, channels, features, 1, stride)
            x, channels = g.op("Relu", g.op("Add", y, x)), features
    head(g, x, 512)


def bert(g, layers=4, rows=128, width=768, heads=12, inner=3072):
    x = g.input("X", [1, rows, width])

    def dense(x, rows, columns):
        y = g.op("MatMul", x, g.normal((rows, columns), 0.02))
        return g.op("Add", y, g.small(columns, 0.02))

    def norm(x):
        one, zero = np.ones(width, np.float32), np.zeros(width, np.float32)
        return g.op("LayerNormalization", x, one, zero, axis=-1, epsilon=1e-12)

    def reshape(x, *shape):
        return g.op("Reshape", x, np.array(shape, np.int64))

    def split(x, perm):
        x = reshape(x, 1, rows, heads, width // heads)
        return g.op("Transpose", x, perm=perm)

    for _ in range(layers):
        q = split(dense(x, width, width), [0, 2, 1, 3])
        k = split(dense(x, width, width), [0, 2, 3, 1])
        v = split(dense(x, width, width), [0, 2, 1, 3])
        s = g.op("Div", g.op("MatMul", q, k), (width // heads) ** 0.5)
        a = g.op("MatMul", g.op("Softmax", s, axis=-1), v)
        a = g.op("Transpose", a, perm=[0, 2, 1, 3])
        a = reshape(a, 1, rows, width)
        x = norm(g.op("Add", dense(a, width, width), x))
        y = dense(gelu(g, dense(x, width, inner)), inner, width)
        x = norm(g.op("Add", y, x))
    g.returns(x, [1, rows, width])


def mobilenet(g):
    def relu6(x, *sizes, **options):
        return g.op("Clip", conv(g, x, *sizes, **options), 0.0, 6.0)

    x, channels = relu6(g.input("X", [1, 3, 224, 224]), 3, 32, 3, 2), 32
    stages = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)]
    stages += [(6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for expand, features, count, first in stages:
        for block in range(count):
            stride, wide = 1 if block else first, channels * expand
            y = relu6(x, channels, wide, 1) if expand > 1 else x
            y = relu6(y, wide, wide, 3, stride, groups=wide)
            y = conv(g, y, wide, features, 1)
            same = stride == 1 and channels == features
            x, channels = g.op("Add", x, y) if same else y, features
    head(g, relu6(x, 320, 1280, 1), 1280)


case("net_mlp_b64", "networks", mlp)
case("net_lenet5_b1", "networks", lenet, 1)
case("net_lenet5_b64", "networks", lenet, 64)
case("net_resnet18_224", "networks", resnet)
case("net_bert4_s128", "networks", bert)
case("net_mobilenetv2_224", "networks", mobilenet)
