#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What single kernels reach beside the limits of the machine they run on.

    bench/floors.py [BUILD]      (default build/release)

Contractions are held against the peak of multiply-adds, which bench_kernel
measures before and after them, bandwidth kernels against the hand-written loops
of bench_ideal, run in turns with them. One thread, least of the runs.
"""

import array
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release")
BUILD = BUILD if BUILD.is_absolute() else ROOT / BUILD
ROUNDS, RUNS = 3, 25


def tensor(*dims):
    return "tensor<" + "x".join(map(str, dims + ("f32",))) + ">"


def constant(*dims):
    """Weights: what the plan packs."""
    count = 1
    for d in dims:
        count *= d
    rng = random.Random(1)
    values = array.array("f", (rng.uniform(-1, 1) for _ in range(count)))
    if sys.byteorder == "big":
        values.byteswap()
    text = values.tobytes().hex().upper()
    return f'stablehlo.constant dense<"0x{text}"> : {tensor(*dims)}'


def gemm(m, k, n, gelu):
    a, b, c, y = tensor(m, k), tensor(k, n), tensor(n), tensor(m, n)
    body = [
        f"%w = {constant(k, n)}",
        "%d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
        f"({a}, {b}) -> {y}",
    ]
    if gelu:
        body += [
            f"%c = {constant(n)}",
            f"%e = stablehlo.broadcast_in_dim %c, dims = [1] : ({c}) -> {y}",
            f"%f = stablehlo.add %d, %e : {y}",
            f'%y = "pestle.gelu"(%f) {{approximate = false}} : ({y}) -> {y}',
        ]
    return [("x", a)], y, body, "%y" if gelu else "%d", 2 * m * k * n


def convolution(size, channels, filters, window, stride=1, groups=1):
    pad = window // 2
    out = (size + 2 * pad - window) // stride + 1
    x = tensor(1, size, size, channels)
    w = tensor(window, window, channels // groups, filters)
    y = tensor(1, out, out, filters)
    body = [
        f"%w = {constant(window, window, channels // groups, filters)}",
        "%y = stablehlo.convolution(%x, %w) dim_numbers = "
        "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = "
        f"{{stride = [{stride}, {stride}], pad = [[{pad}, {pad}], "
        f"[{pad}, {pad}]]}} {{batch_group_count = 1 : i64, "
        f"feature_group_count = {groups} : i64}} : ({x}, {w}) -> {y}",
    ]
    flops = 2 * out * out * filters * window * window * (channels // groups)
    return [("x", x)], y, body, "%y", flops


def attention(heads, size, width):
    x, s = tensor(heads, size, width), tensor(heads, size, size)
    body = [
        "%s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], "
        f"contracting_dims = [2] x [2] : ({x}, {x}) -> {s}",
        f"%c = stablehlo.constant dense<{width ** -0.5}> : {s}",
        f"%t = stablehlo.multiply %s, %c : {s}",
        f'%p = "pestle.softmax"(%t) {{dimensions = array<i64: 2>}} : '
        f"({s}) -> {s}",
        "%y = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], "
        f"contracting_dims = [2] x [1] : ({s}, {x}) -> {x}",
    ]
    arguments = [(name, x) for name in "qkv"]
    return arguments, x, body, "%y", 4 * heads * size * size * width


def chain():
    t = tensor(1 << 24)
    values = {"a": 1.01, "b": 0.5, "z": 0.0, "q": 0.25, "s": -0.7}
    body = [
        f"%{n} = stablehlo.constant dense<{v}> : {t}" for n, v in values.items()
    ]
    steps = (
        "1 multiply x a,2 add 1 b,3 maximum 2 z,4 multiply 3 3,"
        "5 subtract 4 q,6 abs 5,7 sqrt 6,8 add 7 x,9 multiply 8 s"
    )
    for step in steps.split(","):
        result, op, *operands = step.split()
        operands = ", ".join("%" + o for o in operands)
        body.append(f"%{result} = stablehlo.{op} {operands} : {t}")
    return [("x", t)], t, body, "%9", 0


def softmax():
    r = tensor(4096, 1024)
    body = [f'%y = "pestle.softmax"(%x) {{dimensions = array<i64: 1>}} : '
            f"({r}) -> {r}"]  # fmt: skip
    return [("x", r)], r, body, "%y", 0


def layer_norm():
    r, g = tensor(4096, 1024), tensor(1024)
    body = [
        '%y = "pestle.layer_norm"(%x, %g, %b) {dimensions = array<i64: 1>, '
        f"epsilon = 1.0e-5 : f64}} : ({r}, {g}, {g}) -> {r}"
    ]
    return [("x", r), ("g", g), ("b", g)], r, body, "%y", 0


def sum_all():
    x, y = tensor(4096, 4096), "tensor<f32>"
    body = [
        "%0 = stablehlo.constant dense<0.0> : tensor<f32>",
        "%y = stablehlo.reduce(%x init: %0) applies stablehlo.add across "
        f"dimensions = [0, 1] : ({x}, {y}) -> {y}",
    ]
    return [("x", x)], y, body, "%y", 0


CONTRACTIONS = {
    "gemm 512": gemm(512, 512, 512, False),
    "gemm 1024": gemm(1024, 1024, 1024, False),
    "gemm 512x768x3072": gemm(512, 768, 3072, False),
    "  with bias and gelu": gemm(512, 768, 3072, True),
    "conv 3x3 56x56x64": convolution(56, 64, 64, 3),
    "conv 3x3/2 56x56x64-128": convolution(56, 64, 128, 3, stride=2),
    "conv 7x7/2 224x224x3-64": convolution(224, 3, 64, 7, stride=2),
    "conv 1x1 56x56x64-256": convolution(56, 64, 256, 1),
    "conv 3x3 28x28x256 in 32": convolution(28, 256, 256, 3, groups=32),
    "depthwise 3x3 56x56x144": convolution(56, 144, 144, 3, groups=144),
    "depthwise 5x5 14x14x480": convolution(14, 480, 480, 5, groups=480),
    "attention 12x1024x64": attention(12, 1024, 64),
    "attention 12x512x64": attention(12, 512, 64),
}
LOOPS = {
    "chain": chain(),
    "softmax": softmax(),
    "layer_norm": layer_norm(),
    "sum_all": sum_all(),
}


def write(folder, name, case):
    arguments, result, body, value, _ = case
    path = folder / (name.replace(" ", "_").replace("/", "-") + ".mlir")
    signature = ", ".join(f"%{n}: {t}" for n, t in arguments)
    lines = "\n  ".join(body + [f"return {value} : {result}"])
    path.write_text(
        f"func.func @main({signature}) -> {result} {{\n  {lines}\n}}\n"
    )
    return path


def run(path, case):
    """The least milliseconds of a run."""
    command = [BUILD / "pestle", "run", path, "--device", "llvm"]
    command += ["--threads", "1", "--no-cache", "--bench", str(RUNS)]
    for i, (name, _) in enumerate(case[0]):
        command += ["--input", f"{name}=random:{i + 1}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return min(json.loads(done.stdout)["run_ms"])


def peak():
    done = subprocess.run(
        [BUILD / "bench" / "bench_kernel"], capture_output=True, text=True,
        check=True)  # fmt: skip
    return json.loads(done.stdout.splitlines()[0])["fma_peak_gflops"]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        limit = peak()
        for name, case in CONTRACTIONS.items():
            path = write(folder, name, case)
            ms = min(run(path, case) for _ in range(ROUNDS))
            rate = case[-1] / ms / 1e6
            print(f"{name:26} {ms:8.3f} ms {rate:6.1f} GFLOP/s "
                  f"{100 * rate / limit:5.1f} % of {limit}")  # fmt: skip
        print(f"peak afterwards: {peak()}")
        least, paths = {}, {n: write(folder, n, c) for n, c in LOOPS.items()}
        ideal = {}
        for _ in range(ROUNDS):
            done = subprocess.run(
                [BUILD / "bench" / "bench_ideal"], capture_output=True,
                text=True, check=True)  # fmt: skip
            for n, seconds in json.loads(done.stdout).items():
                ideal[n] = min(ideal.get(n, 1e9), seconds * 1e3)
            for n, case in LOOPS.items():
                least[n] = min(least.get(n, 1e9), run(paths[n], case))
        for n, ms in least.items():
            beside = ideal.get(n)
            ratio = f" {ms / beside:.2f} of {beside:.2f} ms" if beside else ""
            print(f"{n:26} {ms:8.3f} ms{ratio}")


if __name__ == "__main__":
    main()
