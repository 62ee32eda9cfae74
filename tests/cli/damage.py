# SPDX-License-Identifier: Apache-2.0
"""Damaged models through `pestle dump --stage graph`: each must end within 20
seconds and 1 GB, with a status and a sentence or with text; never by a signal
and never with exit code 6, which is Pestle's own fault."""

import glob
import json
import os
import random
import subprocess
import sys
import tempfile
import threading

BUILD = os.environ["PESTLE_BUILD_DIR"]
SECONDS, KILOBYTES = 20, 1 << 20


def small_models(folder):
    """A few models that use most of the file format."""
    from onnx import TensorProto, helper, save_model

    f32 = TensorProto.FLOAT
    value = helper.make_tensor_value_info
    tensor = helper.make_tensor
    node = helper.make_node

    def save(name, nodes, inputs, initializers):
        graph = helper.make_graph(
            nodes, name, inputs, [value("y", f32, None)], initializers
        )
        opsets = [helper.make_opsetid("", 18)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        save_model(model, os.path.join(folder, name + ".onnx"))

    weights = [random.random() for _ in range(4 * 3 * 3 * 3)]
    save(
        "conv",
        [
            node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1] * 4),
            node("Relu", ["c"], ["r"], name="relu"),
            node("Shape", ["r"], ["s"], name="shape"),
            node("Slice", ["s", "zero", "one"], ["n"], name="slice"),
            node("Concat", ["n", "rest"], ["t"], name="concat", axis=0),
            node("Reshape", ["r", "t"], ["f"], name="reshape"),
            node("Softmax", ["f"], ["y"], name="softmax", axis=-1),
        ],
        [value("x", f32, [1, 3, 8, 8])],
        [
            tensor("w", f32, [4, 3, 3, 3], weights),
            tensor("b", f32, [4], [0.0] * 4),
            tensor("zero", TensorProto.INT64, [1], [0]),
            tensor("one", TensorProto.INT64, [1], [1]),
            tensor("rest", TensorProto.INT64, [1], [-1]),
        ],
    )
    branch = [
        helper.make_graph(
            [node(op, ["x"], ["o"], name=op)], op, [], [value("o", f32, None)]
        )
        for op in ("Exp", "Neg")
    ]
    save(
        "branch",
        [
            node("ReduceMax", ["x"], ["m"], name="max", keepdims=0),
            node("Cast", ["m"], ["p"], name="cast", to=TensorProto.BOOL),
            node("If", ["p"], ["y"], name="if", then_branch=branch[0],
                 else_branch=branch[1]),
        ],
        [value("x", f32, [5])],
        [],
    )  # fmt: skip


def damage(data, rng):
    """Cut off, or with a few bits or bytes changed, or a part doubled."""
    kind = rng.randrange(4)
    at = rng.randrange(len(data))
    if kind == 0:
        return data[:at]
    if kind == 3:
        end = min(len(data), at + rng.randrange(1, 64))
        return data[:end] + data[at:end] + data[end:]
    data = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data))
        flip = 1 << rng.randrange(8) if kind == 1 else rng.randrange(256)
        data[at] = data[at] ^ flip
    return bytes(data)


def dump(path):
    """(exit code or -signal, peak KB, stderr) of one run."""
    with tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            [f"{BUILD}/pestle", "dump", "--stage", "graph", path],
            stdout=subprocess.DEVNULL,
            stderr=err,
        )
        timer = threading.Timer(SECONDS, child.kill)
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        text = err.read().decode(errors="replace")
    return child.returncode, usage.ru_maxrss, text


def what_is_wrong(code, kilobytes, text):
    if code < 0 or code in (1, 6) or code > 6:
        return f"exit code {code}"
    if code and "pestle: error: " not in text:
        return f"exit code {code} without a sentence"
    if kilobytes > KILOBYTES:
        return f"{kilobytes} KB resident"
    return None


def main(count):
    folder = tempfile.mkdtemp(prefix="pestle-damage-")
    try:
        small_models(folder)
    except ImportError as e:
        print(f"skipped: {e}")
        sys.exit(77)
    models = []
    for path in sorted(glob.glob(folder + "/*.onnx")):
        with open(path, "rb") as f:
            models.append(f.read())
    rng, bad, codes = random.Random(1), 0, {}
    for i in range(count):
        path = os.path.join(folder, "damaged.onnx")
        with open(path, "wb") as f:
            f.write(damage(models[i % len(models)], rng))
        result = dump(path)
        codes[result[0]] = codes.get(result[0], 0) + 1
        why = what_is_wrong(*result)
        if why:
            bad += 1
            kept = os.path.join(folder, f"bad_{i}.onnx")
            os.rename(path, kept)
            print(f"{kept}: {why}: {result[2][-600:]}")
    print(f"{count} models, {bad} wrong; exit codes {json.dumps(codes)}")
    sys.exit(1 if bad else 0)
