#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The operations that a tensor library's backend has (the list of
`enum OpType` in Axiom's backend architecture, its "..." written out), each with
what gives it in Pestle, run on llvm and ref against numpy.

A line is (operation, what gives it, operands, expected). What gives it is a row of
the tables as text on %a0, %a1 .., or an ONNX node, which the importer makes of
rows.
"""
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

RNG = np.random.default_rng(3)
NAMES = {"float32": "f32", "int32": "i32", "int64": "i64", "bool": "i1",
         "uint32": "ui32"}


def typed(a):
    dims = "".join(f"{n}x" for n in a.shape)
    return f"tensor<{dims}{NAMES[a.dtype.name]}>"


class Text:
    """|body| with {t}, the type of %a0, and {r}, that of %r0."""

    def __init__(self, name, body):
        self.name, self.body = name, body

    def write(self, folder, arrays, expected):
        args = ", ".join(f"%a{i}: {typed(a)}" for i, a in enumerate(arrays))
        r = typed(expected)
        types = {f"t{i}": typed(a) for i, a in enumerate(arrays)}
        body = self.body.format(t=typed(arrays[0]), r=r, **types)
        path = folder / "op.mlir"
        path.write_text(f"module {{ func.func public @main({args}) -> {r} {{\n"
                        f"{body}\nfunc.return %r0 : {r} }} }}")
        return path


class Onnx:
    """A node; operands in |constants| are in the model."""

    def __init__(self, op, constants=(), opset=21, outputs=1, **attributes):
        self.name, self.constants = f"ONNX {op}", constants
        self.op, self.opset = op, opset
        self.outputs, self.attributes = outputs, attributes

    def write(self, folder, arrays, expected):
        inputs = [helper.make_tensor_value_info(
            f"a{i}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for i, a in enumerate(arrays)]
        names = [v.name for v in inputs]
        constants = []
        for i, c in enumerate(self.constants):
            names.append("" if c is None else f"c{i}")
            if c is not None:
                constants.append(numpy_helper.from_array(c, f"c{i}"))
        out = helper.make_tensor_value_info(
            "r0", helper.np_dtype_to_tensor_dtype(expected.dtype), None)
        results = ["r0"] + [f"unused{i}" for i in range(1, self.outputs)]
        node = helper.make_node(self.op, names, results, **self.attributes)
        graph = helper.make_graph([node], "g", inputs, [out], constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=10)
        path = folder / "op.onnx"
        onnx.save(model, path)
        return path


def row(op):
    """An elementwise row on operands of one type."""
    def body(count):
        operands = ", ".join(f"%a{i}" for i in range(count))
        types = ", ".join(f"{{t{i}}}" for i in range(count))
        return f'%r0 = "{op}"({operands}) : ({types}) -> {{r}}'
    return lambda count: Text(op, body(count))


def compare(direction):
    return Text(f"stablehlo.compare {direction}",
                f"%r0 = stablehlo.compare {direction}, %a0, %a1 : ({{t0}}, "
                "{t1}) -> {r}")


def with_attrs(op, attrs, count=1):
    operands = ", ".join(f"%a{i}" for i in range(count))
    types = ", ".join(f"{{t{i}}}" for i in range(count))
    # Braces of the attributes stand for themselves.
    return Text(op, f'%r0 = "{op}"({operands}) <{{{{{attrs}}}}}> : ({types}) -> '
                "{r}")


def f(*shape):
    return RNG.uniform(-2, 2, shape).astype(np.float32)


def above(*shape):
    return RNG.uniform(0.25, 3, shape).astype(np.float32)


def i(*shape):
    return RNG.integers(-9, 10, shape).astype(np.int32)


def flags(*shape):
    return RNG.integers(0, 2, shape).astype(np.bool_)


def each(function, x):
    return np.vectorize(function, otypes=[np.float64])(x).astype(np.float32)


def pooled(x, size, fold, stride=None):
    """Windows of the axes behind the second."""
    stride = stride or size
    view = np.lib.stride_tricks.sliding_window_view(
        x, size, axis=tuple(range(2, x.ndim)))
    steps = tuple(slice(None, None, s) for s in stride)
    view = view[(slice(None), slice(None)) + steps]
    return fold(view, axis=tuple(range(-len(size), 0))).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def adaptive(x, out, fold):
    """Window i of n onto m is [floor(i n / m), ceil((i + 1) n / m))."""
    for axis, m in zip(range(2, x.ndim), out):
        n = x.shape[axis]
        x = np.concatenate([fold(np.take(
            x, range(k * n // m, -(-(k + 1) * n // m)), axis), axis=axis,
            keepdims=True) for k in range(m)], axis)
    return x.astype(np.float32)


def adaptive_attrs(out):
    axes = ", ".join(str(2 + k) for k in range(len(out)))
    sizes = ", ".join(map(str, out))
    return (f"dimensions = array<i64: {axes}>, output_sizes = array<i64: "
            f"{sizes}>")


def reduce_text(op, start):
    return Text(f"stablehlo.reduce of {op}", (
        "%i = stablehlo.constant dense<{start}> : tensor<i1>\n"
        "%r0 = stablehlo.reduce(%a0 init: %i) applies stablehlo.{op} across "
        "dimensions = [1] : ({t}, tensor<i1>) -> {r}").replace(
            "{start}", start).replace("{op}", op))


def table():
    x, y, p, q = f(3, 5), f(3, 5), above(3, 5), above(3, 5)
    a, b = i(3, 5), i(3, 5)
    b[b == 0] = 4
    one, two = flags(3, 5), flags(3, 5)
    shift = RNG.integers(0, 9, (3, 5)).astype(np.int32)
    hlo = lambda op, n: row(f"stablehlo.{op}")(n)
    # --- Binary ---
    yield "Add", hlo("add", 2), [x, y], x + y
    yield "Subtract", hlo("subtract", 2), [x, y], x - y
    yield "Multiply", hlo("multiply", 2), [x, y], x * y
    yield "Divide", hlo("divide", 2), [x, p], x / p
    yield "Power", hlo("power", 2), [p, y], p ** y
    yield "Modulo", Onnx("Mod"), [a, b], np.mod(a, b)
    yield "Modulo (fmod)", hlo("remainder", 2), [x, p], np.fmod(x, p)
    yield "Maximum", hlo("maximum", 2), [x, y], np.maximum(x, y)
    yield "Minimum", hlo("minimum", 2), [x, y], np.minimum(x, y)
    yield "Atan2", hlo("atan2", 2), [x, y], np.arctan2(x, y)
    # --- Comparison ---
    for name, direction, fn in (
            ("Equal", "EQ", np.equal), ("NotEqual", "NE", np.not_equal),
            ("Less", "LT", np.less), ("LessEqual", "LE", np.less_equal),
            ("Greater", "GT", np.greater),
            ("GreaterEqual", "GE", np.greater_equal)):
        yield name, compare(direction), [a, a.copy() - shift % 2], fn(
            a, a - shift % 2)
    # --- Logical, bitwise ---
    yield "LogicalAnd", hlo("and", 2), [one, two], one & two
    yield "LogicalOr", hlo("or", 2), [one, two], one | two
    yield "LogicalXor", hlo("xor", 2), [one, two], one ^ two
    yield "LogicalNot", hlo("not", 1), [one], ~one
    yield "BitwiseAnd", hlo("and", 2), [a, b], a & b
    yield "BitwiseOr", hlo("or", 2), [a, b], a | b
    yield "BitwiseXor", hlo("xor", 2), [a, b], a ^ b
    yield "BitwiseNot", hlo("not", 1), [a], ~a
    yield "LeftShift", hlo("shift_left", 2), [a, shift], a << shift
    yield "RightShift", hlo("shift_right_arithmetic", 2), [a, shift], a >> shift
    # --- Unary ---
    for name, op, operand, fn in (
            ("Negate", "negate", x, np.negative), ("Abs", "abs", x, np.abs),
            ("Sqrt", "sqrt", p, np.sqrt), ("Exp", "exponential", x, np.exp),
            ("Log", "log", p, np.log), ("Sin", "sine", x, np.sin),
            ("Cos", "cosine", x, np.cos), ("Tan", "tan", x / 2, np.tan),
            ("Sign", "sign", x, np.sign), ("Floor", "floor", x, np.floor),
            ("Ceil", "ceil", x, np.ceil),
            ("Round", "round_nearest_even", 4 * x, np.rint),
            ("Tanh", "tanh", x, np.tanh), ("Cbrt", "cbrt", x, np.cbrt),
            ("Rsqrt", "rsqrt", p, lambda v: 1 / np.sqrt(v)),
            ("Log1p", "log_plus_one", p, np.log1p),
            ("Expm1", "exponential_minus_one", x, np.expm1),
            ("Sigmoid", "logistic", x, lambda v: 1 / (1 + np.exp(-v))),
            ("IsFinite", "is_finite", x / (one * 1.0).astype(np.float32),
             np.isfinite)):
        with np.errstate(all="ignore"):
            yield name, hlo(op, 1), [operand.astype(np.float32)], fn(
                operand.astype(np.float32))
    yield "Erf", row("chlo.erf")(1), [x], each(math.erf, x)
    yield "Erfc", row("chlo.erfc")(1), [x], each(math.erfc, x)
    yield "ErfInv", row("chlo.erf_inv")(1), [x / 3], each(
        lambda v: statistics.NormalDist().inv_cdf((1 + float(v)) / 2) /
        math.sqrt(2), x / 3)
    yield "Trunc", row("pestle.trunc")(1), [x], np.trunc(x)
    nans = np.where(one, x, np.float32(np.nan)).astype(np.float32)
    yield "IsNaN", row("pestle.is_nan")(1), [nans], np.isnan(nans)
    infs = np.where(one, x, np.float32(np.inf)).astype(np.float32)
    yield "IsInf", Onnx("IsInf"), [infs], np.isinf(infs)
    yield "Reciprocal", Onnx("Reciprocal"), [p], 1 / p
    yield "Square", hlo("multiply", 2), [x, x.copy()], x * x
    for name, fn in (("Asin", np.arcsin), ("Acos", np.arccos),
                     ("Atan", np.arctan), ("Sinh", np.sinh),
                     ("Cosh", np.cosh)):
        yield name, Onnx(name), [(x / 2).astype(np.float32)], fn(
            (x / 2).astype(np.float32))
    # --- Activation ---
    yield "ReLU", Onnx("Relu"), [x], np.maximum(x, 0)
    yield "LeakyReLU", Onnx("LeakyRelu", alpha=0.1), [x], np.where(
        x < 0, np.float32(0.1) * x, x)
    yield "ELU", Onnx("Elu", alpha=1.5), [x], np.where(
        x < 0, 1.5 * np.expm1(x), x).astype(np.float32)
    yield "SELU", Onnx("Selu"), [x], (1.0507009873554805 * np.where(
        x < 0, 1.6732632423543772 * np.expm1(x), x)).astype(np.float32)
    yield "SiLU", row("pestle.silu")(1), [x], x / (1 + np.exp(-x))
    yield "GELU", row("pestle.gelu")(1), [x], x * (
        1 + each(math.erf, x / math.sqrt(2))) / 2
    yield "GELU (tanh)", with_attrs("pestle.gelu", "approximate = true"), [
        x], x * (1 + np.tanh(math.sqrt(2 / math.pi) * (
            x + np.float32(0.044715) * x ** 3))) / 2
    yield "HardSigmoid", Onnx("HardSigmoid"), [x], np.clip(
        np.float32(0.2) * x + np.float32(0.5), 0, 1)
    yield "HardSwish", Onnx("HardSwish"), [x], x * np.clip(x / 6 + 0.5, 0, 1)
    yield "Mish", Onnx("Mish", opset=22), [x], x * np.tanh(
        np.log1p(np.exp(x)))
    yield "Softplus", Onnx("Softplus"), [x], np.log1p(np.exp(x))
    yield "Softmax", with_attrs("pestle.softmax",
                                "dimensions = array<i64: 1>"), [x], softmax(x)
    yield "LogSoftmax", with_attrs(
        "pestle.log_softmax", "dimensions = array<i64: 1>"), [x], np.log(
            softmax(x))
    yield "LogSumExp", with_attrs(
        "pestle.logsumexp", "dimensions = array<i64: 1>"), [x], np.log(
            np.exp(x).sum(-1))
    # --- Reduction ---
    axes = (np.array([1]),)
    for name, fn in (("Sum", np.sum), ("Mean", np.mean), ("Max", np.max),
                     ("Min", np.min), ("Prod", np.prod)):
        yield name, Onnx(f"Reduce{name}", axes, keepdims=0), [x], fn(x, axis=1)
    yield "ArgMax", Onnx("ArgMax", axis=1, keepdims=0), [a], a.argmax(1)
    yield "ArgMin", Onnx("ArgMin", axis=1, keepdims=0), [a], a.argmin(1)
    yield "Any", reduce_text("or", "false"), [one], one.any(1)
    yield "All", reduce_text("and", "true"), [one], one.all(1)
    yield "CumSum", Onnx("CumSum", (np.array(1),)), [x], np.cumsum(x, 1)
    # --- Matrix ---
    m, n = f(4, 7), f(7, 5)
    yield "MatMul", Text("stablehlo.dot_general", (
        "%r0 = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : "
        "({t0}, {t1}) -> {r}")), [m, n], m @ n
    m, n = f(3, 4, 7), f(3, 7, 5)
    yield "BatchMatMul", Text("stablehlo.dot_general", (
        "%r0 = stablehlo.dot_general %a0, %a1, batching_dims = [0] x [0], "
        "contracting_dims = [2] x [1] : ({t0}, {t1}) -> {r}")), [m, n], m @ n
    # --- Conditional ---
    yield "Where", hlo("select", 3), [one, x, y], np.where(one, x, y)
    yield "MaskedFill", Text("stablehlo.select with a constant", (
        "%v = stablehlo.constant dense<7.0> : {r}\n"
        "%r0 = stablehlo.select %a1, %v, %a0 : {t1}, {r}")), [
            x, one], np.where(one, np.float32(7), x)
    keeps = np.array([True, False, True])
    yield "MaskedSelect", Onnx("Compress", (keeps,), axis=0), [x], x[keeps]
    # --- Indexing ---
    rows = np.array([2, 0, -1, 1])
    yield "Gather", Onnx("Gather", (rows,), axis=0), [x], x[rows]
    yield "IndexSelect", Onnx("Gather", axis=1), [x, rows], x[:, rows]
    yield "Take", Onnx("Gather", axis=0), [
        x.reshape(-1).copy(), np.array([[14, 3], [0, 7]])], x.reshape(-1)[
            np.array([[14, 3], [0, 7]])]
    along = RNG.integers(0, 5, (3, 4))
    yield "TakeAlongAxis", Onnx("GatherElements", axis=1), [
        x, along], np.take_along_axis(x, along, 1)
    places, news = np.array([[4, 0], [1, 2], [3, 4]]), f(3, 2)
    scattered = x.copy()
    np.put_along_axis(scattered, places, news, 1)
    yield "Scatter", Onnx("ScatterElements", axis=1), [
        x, places, news], scattered
    summed = x.copy()
    np.add.at(summed, (np.array([2, 0, 2]),), y)
    yield "Scatter (add)", Onnx("ScatterND", reduction="add"), [
        x, np.array([[2], [0], [2]]), y], summed
    # --- Normalisation ---
    scale, offset = above(5), f(5)
    centred = x - x.mean(-1, keepdims=True)
    attrs = "dimensions = array<i64: 1>, epsilon = 1.0e-1 : f64"
    yield "LayerNorm", with_attrs("pestle.layer_norm", attrs, 3), [
        x, scale, offset], centred / np.sqrt(
            (centred ** 2).mean(-1, keepdims=True) + 0.1) * scale + offset
    yield "RMSNorm", with_attrs("pestle.rms_norm", attrs, 2), [
        x, scale], x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 0.1) * scale
    image = f(2, 3, 4, 4)
    scale, offset = above(3), f(3)
    mean, variance = f(3), above(3)
    wide = lambda v: v.reshape(1, 3, 1, 1)
    yield "BatchNorm", Onnx("BatchNormalization", epsilon=0.1), [
        image, scale, offset, mean, variance], (image - wide(mean)) / np.sqrt(
            wide(variance) + 0.1) * wide(scale) + wide(offset)
    yield "Dropout (inference)", Onnx("Dropout"), [x], x
    # --- Pooling ---
    for k, size in enumerate(((3,), (2, 3), (2, 2, 3)), 1):
        image = f(2, 3, *(7, 6, 8)[:k])
        kernel = {"kernel_shape": size, "strides": (2,) * k}
        yield f"MaxPool{k}D", Onnx("MaxPool", **kernel), [image], pooled(
            image, size, np.max, (2,) * k)
        yield f"AvgPool{k}D", Onnx("AveragePool", **kernel), [image], pooled(
            image, size, np.mean, (2,) * k)
        out = (3, 4, 5)[:k]
        yield f"AdaptiveMaxPool{k}D", with_attrs(
            "pestle.adaptive_max_pool", adaptive_attrs(out)), [image], adaptive(image, out, np.max)
        yield f"AdaptiveAvgPool{k}D", with_attrs(
            "pestle.adaptive_average_pool", adaptive_attrs(out)), [image], adaptive(image, out, np.mean)
        yield f"GlobalMaxPool{k}D", Onnx("GlobalMaxPool"), [
            image], image.max(tuple(range(2, 2 + k)), keepdims=True)
        yield f"GlobalAvgPool{k}D", Onnx("GlobalAveragePool"), [
            image], image.mean(tuple(range(2, 2 + k)), keepdims=True)


def run(pestle, device, model, arrays, folder):
    lines = []
    for k, a in enumerate(arrays):
        shape = "x".join(map(str, a.shape)) or "scalar"
        lines.append(f"input {k} {a.dtype.name} {shape} {k}.npy ")
        np.save(folder / f"{k}.npy", a)
    (folder / "io.txt").write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [pestle, "run", str(model), "--inputs", str(folder), "--outputs",
         str(folder / "out"), "--device", device, "--no-cache"],
        capture_output=True, text=True, check=False)
    if done.returncode:
        return None, done.stderr.strip()[:400]
    files = sorted((folder / "out").glob("*.npy"))
    return np.load(files[0]), ""


def difference(want, got):
    """None, or what differs. numpy computes in f32 as we do: each side is off by a
    few roundings of numbers of a size up to 100."""
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{want.dtype}{want.shape} became {got.dtype}{got.shape}"
    if want.dtype.kind != "f":
        return None if (want == got).all() else f"{got}, not {want}"
    same = np.isclose(got, want, rtol=4e-6, atol=2e-6, equal_nan=True)
    return None if same.all() else f"{got[~same]}, not {want[~same]}"


def main():
    build = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
    pestle, bad, count = str(build / "pestle"), 0, 0
    for name, how, arrays, want in table():
        count += 1
        if want.dtype == np.float64:
            want = want.astype(np.float32)
        print(f"{name:22} {how.name}")
        for device in ("llvm", "ref"):
            with tempfile.TemporaryDirectory() as temporary:
                folder = pathlib.Path(temporary)
                model = how.write(folder, arrays, want)
                got, error = run(pestle, device, model, arrays, folder)
            text = error if got is None else difference(want, got)
            if text:
                bad += 1
                print(f"  on {device}: {text}")
    print(f"{count} operations, {bad} wrong")
    return 1 if bad or count < 70 else 0


if __name__ == "__main__":
    sys.exit(main())
