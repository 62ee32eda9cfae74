#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the peers and cpu_worker read of the cases:

    prepare.py FOLDER [REGEX]

FOLDER/NAME.onnx; of products of bf16 operands, which ONNX's CPU peers do not
take, also NAME.mlir; FOLDER/inputs/NAME/INDEX.bin, each input as bytes, and
case.json. What is there already stays, unless this file or cases.py changed.
Prints a JSON line: the group of each case.
"""

import hashlib
import json
import math
import os
import pathlib
import re
import sys

import cases
import numpy as np
import onnx

HERE = pathlib.Path(__file__).resolve().parent


def bf16(array):
    bits = array.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def product(shapes):
    """Of bf16 matrices, in f32."""
    (m, k), (_, n) = shapes
    a, b = f"tensor<{m}x{k}xbf16>", f"tensor<{k}x{n}xbf16>"
    y = f"tensor<{m}x{n}xf32>"
    return (
        f"func.func @main(%A: {a}, %B: {b}) -> {y} {{\n"
        "  %0 = stablehlo.dot_general %A, %B, contracting_dims = [1] x [0] : "
        f"({a}, {b}) -> {y}\n  return %0 : {y}\n}}\n"
    )


def put(path, data):
    """At once: another process may read or write the same."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_bytes(data)
    part.replace(path)


def dims(value):
    return [d.dim_value for d in value.type.tensor_type.shape.dim]


def write(name, folder, to):
    model, inputs = cases.make(name), []
    rng = np.random.default_rng(7)
    to.mkdir(parents=True, exist_ok=True)
    for i, value in enumerate(model.graph.input):
        if value.type.tensor_type.elem_type == onnx.TensorProto.UINT8:
            array = rng.integers(0, 200, dims(value)).astype(np.uint8)
        else:
            array = rng.standard_normal(dims(value), dtype=np.float32)
        if "bf16" in name:
            array = bf16(array)
        put(to / f"{i}.bin", array.tobytes())
        inputs.append((value.name, array.dtype.name, array.shape))
    put(folder / f"{name}.onnx", model.SerializeToString())
    if "bf16" in name:
        text = product([shape for _, _, shape in inputs])
        put(folder / f"{name}.mlir", text.encode())
    return inputs, math.prod(dims(model.graph.output[0]))


def main():
    folder = pathlib.Path(sys.argv[1])
    regex = sys.argv[2] if len(sys.argv) > 2 else ""
    sources = b"".join((HERE / n).read_bytes() for n in ("cases.py", __file__))
    digest = hashlib.sha256(sources).hexdigest()
    names = [name for name in cases.CASES if re.search(regex, name)]
    if not names:
        sys.exit(f"no case matches, there are: {', '.join(cases.CASES)}")
    for name in names:
        to = folder / "inputs" / name
        about = to / "case.json"
        if about.exists() and json.loads(about.read_text())["digest"] == digest:
            continue
        inputs, elements = write(name, folder, to)
        text = {"digest": digest, "inputs": inputs, "elements": elements}
        # Last: what is written halfway is written again.
        put(about, json.dumps(text).encode())
    print(json.dumps({name: cases.CASES[name][0] for name in names}))


main()
