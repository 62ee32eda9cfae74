#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs examples/python."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

from case import HOME, run

EXAMPLES = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"]) / "examples/python"
ENVIRONMENT = dict(os.environ, PYTHONPATH=os.pathsep.join(
    [str(HOME), *filter(None, [os.environ.get("PYTHONPATH")])]))


def example(name, *args):
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *args],
                          env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


def test_all():
    for path in sorted(EXAMPLES.glob("*.py")):
        if path.name == "finetune.py" and not importlib.util.find_spec("onnx"):
            continue
        if path.name in ("model.py", "lenet.py", "gpt.py"):  # train_test.py has those
            continue
        assert example(path.name), path.name


def test_lengths():
    """Examples are read on one page or two."""
    for path in EXAMPLES.glob("*.py"):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= 120, (path.name, lines)


def test_model():
    text = ("func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {\n"
            "%0 = stablehlo.add %x, %x : tensor<2x2xf32>\n"
            "return %0 : tensor<2x2xf32>\n}\n")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.mlir"
        path.write_text(text)
        assert "float32 (2, 2) [[2., 2.]" in example("model.py", str(path))


def test_onnx():
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError:
        return
    import pestle as pt
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        onnx.save(model, str(path))
        f = pt.load_onnx(path)
        assert f.inputs == [("x", pt.float32, (None, 3))]
        assert f([[1.0, -2.0, 3.0]]).tolist() == [[1, 0, 3]]
        assert f(x=pt.asarray([[1.0, -2.0, 3.0]] * 2)).shape == (2, 3)


run(globals())
