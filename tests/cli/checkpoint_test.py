#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A transformer whose layers are marked "pestle.checkpoint": its gradient keeps the input
of each layer and what one layer needs, and has the bits of the one that keeps all. With a
policy it keeps more, within its budget of bytes."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}; tools/requirements.txt lists what is needed")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import has_compiler  # noqa: E402
from program import PESTLE, check, failures, run  # noqa: E402

ROWS, WIDTH, HEADS, INNER = 64, 32, 4, 128
X = f"tensor<{ROWS}x{WIDTH}xf32>"
WEIGHTS = [(WIDTH,), (WIDTH,), (WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH),
           (WIDTH, INNER), (INNER, WIDTH)]


def tensor(*dims):
    return "tensor<" + "".join(f"{d}x" for d in dims) + "f32>"


TYPES = [tensor(*dims) for dims in WEIGHTS]


def dot(y, a, b, m, k, n):
    return (f"  %{y} = stablehlo.dot_general %{a}, %{b}, contracting_dims = [1] x [0] : "
            f"({tensor(m, k)}, {tensor(k, n)}) -> {tensor(m, n)}\n")


def layer():
    names = [f"%w{i}" for i in range(len(WEIGHTS))]
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, TYPES))
    heads = tensor(HEADS, ROWS, WIDTH // HEADS)
    split = tensor(ROWS, HEADS, WIDTH // HEADS)
    text = f"func.func private @layer(%x: {X}, {arguments}) -> {X} {{\n"
    text += (f'  %n = "pestle.layer_norm"(%x, %w0, %w1) <{{dimensions = array<i64: 1>, '
             f"epsilon = 1.0e-05 : f64}}> : ({X}, {TYPES[0]}, {TYPES[1]}) -> {X}\n")
    for i, name in enumerate("qkv"):
        text += dot(f"{name}0", "n", f"w{i + 2}", ROWS, WIDTH, WIDTH)
        text += f"  %{name}1 = stablehlo.reshape %{name}0 : ({X}) -> {split}\n"
        text += (f"  %{name} = stablehlo.transpose %{name}1, dims = [1, 0, 2] : ({split}) "
                 f"-> {heads}\n")
    text += (f'  %a0 = "pestle.attention"(%q, %k, %v) <{{scale = 0.25 : f64}}> : '
             f"({heads}, {heads}, {heads}) -> {heads}\n"
             f"  %a1 = stablehlo.transpose %a0, dims = [1, 0, 2] : ({heads}) -> {split}\n"
             f"  %a = stablehlo.reshape %a1 : ({split}) -> {X}\n"
             f"  %h = stablehlo.add %x, %a : {X}\n")
    inner = tensor(ROWS, INNER)
    text += dot("u", "h", "w5", ROWS, WIDTH, INNER)
    text += f'  %g = "pestle.gelu"(%u) : ({inner}) -> {inner}\n'
    text += dot("d", "g", "w6", ROWS, INNER, WIDTH)
    return text + f"  %y = stablehlo.add %h, %d : {X}\n  return %y : {X}\n}}\n"


def model(layers, is_marked, attributes=""):
    names = [[f"%l{i}w{k}" for k in range(len(WEIGHTS))] for i in range(layers)]
    arguments = ", ".join(f"{n}: {t}" for row in names for n, t in zip(row, TYPES))
    text = f"func.func public @main(%x: {X}, {arguments}) -> tensor<f32> {{\n"
    text += "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    value, types = "%x", ", ".join([X, *TYPES])
    for i in range(layers):
        operands = ", ".join([value, *names[i]])
        value = f"%y{i}"
        if is_marked:
            text += (f'  {value} = stablehlo.composite "pestle.checkpoint" {operands} '
                     f"{{{attributes}decomposition = @layer}} : ({types}) -> {X}\n")
        else:
            text += f"  {value} = call @layer({operands}) : ({types}) -> {X}\n"
    text += (f"  %s = stablehlo.multiply {value}, {value} : {X}\n"
             f"  %r = stablehlo.reduce(%s init: %zero) applies stablehlo.add across "
             f"dimensions = [0, 1] : ({X}, tensor<f32>) -> tensor<f32>\n"
             "  return %r : tensor<f32>\n}\n")
    return f"module {{\n{text}{layer()}}}\n"


def grads(layers):
    count = 1 + layers * len(WEIGHTS)
    return [word for i in range(count) for word in ("--grad", str(i))]


def peak(layers, is_marked):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m.mlir"
        path.write_text(model(layers, is_marked))
        done = subprocess.run(
            [PESTLE, "dump", "--stage", "plan", *grads(layers), str(path)],
            capture_output=True, text=True, check=True)
    return int(re.search(r"planned peak (\d+) bytes", done.stdout)[1])


def graph(attributes):
    """The gradient of two layers with such a policy as text, and its message."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m.mlir"
        path.write_text(model(2, True, attributes))
        done = subprocess.run(
            [PESTLE, "dump", "--stage", "graph", *grads(2), str(path)],
            capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def saved_bytes(text):
    """What checkpoints give behind their one result, an op at a time."""
    found = []
    for line in text.splitlines():
        if '"pestle.checkpoint"' not in line:
            continue
        types = line.rsplit("->", 1)[1]
        sizes = [4 * int(np.prod([int(n) for n in dims.split("x")[:-1]]))
                 for dims in re.findall(r"tensor<([0-9x]*)f32>", types.replace(
                     "xf32", "xf32"))]
        found.append(sum(sizes[1:]))
    return found


def policies(arrays, wants):
    attributes = 'composite_attributes = {{policy = "{}"}}, '
    budget = "composite_attributes = {{budget_bytes = {} : i64}}, "
    bytes_of, dots = {}, {}
    for policy in "nothing", "dots", "min_bytes", "everything":
        said = attributes.format(policy)
        text, message = graph(said)
        bytes_of[policy] = sum(saved_bytes(text))
        dots[policy] = text.count("dot_general") + text.count('"pestle.attention"')
        check(policy, text, message)
        got = run(model(3, True, said), arrays, "llvm", *grads(3))
        good = not isinstance(got, str) and all(
            np.abs(a - b).max() <= 2e-5 * (1e-30 + np.abs(b).max())
            for a, b in zip(got, wants))
        check(f"gradients, {policy}", good, got if isinstance(got, str) else "are off")
    check("nothing", bytes_of["nothing"] == 0, "keeps something")
    check("dots", 0 < bytes_of["dots"] < bytes_of["everything"], bytes_of)
    check("min_bytes", 0 < bytes_of["min_bytes"] <= bytes_of["everything"], bytes_of)
    for policy in "dots", "min_bytes":
        check(policy, dots[policy] == dots["everything"] < dots["nothing"], dots)
    most = bytes_of["min_bytes"] // 2  # of a layer
    for share in 0.1, 0.3, 0.5, 0.8, 1:
        bound = int(share * most)
        text, message = graph(budget.format(bound))
        found = saved_bytes(text)
        check(f"{bound} bytes", len(found) == 2 and max(found) <= bound,
              f"keeps {found}; {message}")
        check(f"{bound} bytes", share < 0.3 or min(found) > 0, "keeps nothing")
        got = run(model(3, True, budget.format(bound)), arrays, "llvm", *grads(3))
        good = not isinstance(got, str) and all(
            np.abs(a - b).max() <= 2e-5 * (1e-30 + np.abs(b).max())
            for a, b in zip(got, wants))
        check(f"gradients, {bound} bytes", good, got if isinstance(got, str) else "")
    for wrong in attributes.format("some"), "composite_attributes = {size = 3 : i64}, ":
        check(wrong, "a checkpoint" in graph(wrong)[1] or
              "its policy is" in graph(wrong)[1], graph(wrong))


def main():
    if not has_compiler():
        print("skipped: the llvm backend is not built")
        return 77
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal((ROWS, WIDTH), dtype=np.float32)]
    for dims in WEIGHTS * 3:
        arrays.append((rng.standard_normal(dims) * 0.1).astype(np.float32))
    marked = run(model(3, True), arrays, "llvm", *grads(3))
    kept = run(model(3, False), arrays, "llvm", *grads(3))
    if isinstance(marked, str) or isinstance(kept, str):
        check("gradients", False, marked if isinstance(marked, str) else kept)
    else:
        for i, (a, b) in enumerate(zip(marked, kept)):
            error = np.abs(a - b).max() / (1e-30 + np.abs(b).max())
            check(f"result {i}", error < 2e-5, f"is {error} off")
        policies(arrays, kept)
    # One input a layer, and what one layer takes.
    one, x = peak(1, True), 4 * ROWS * WIDTH
    most, all_of_them = one + 24 * x, peak(24, False)
    found = peak(24, True)
    check("24 layers", found <= most, f"plan {found} bytes, not {most}")
    check("24 layers", found * 3 < all_of_them,
          f"plan {found} bytes, and {all_of_them} where all is kept")
    print("\n".join(failures) or f"{found} bytes of {most}; all kept: {all_of_them}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
