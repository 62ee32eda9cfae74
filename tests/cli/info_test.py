#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle info: what models and plans say of themselves, for people and as JSON."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from onnx_bytes import data, declared, node, number, stored  # noqa: E402

PESTLE = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]) / "pestle"


def model(nodes, inputs, outputs, defaults):
    graph = b"".join(nodes) + b"".join(data(5, d) for d in defaults)
    graph += b"".join(data(11, i) for i in inputs)
    graph += b"".join(data(12, o) for o in outputs)
    return (number(1, 8) + data(2, "by-hand") + data(3, "1.5") + data(7, graph)
            + data(8, number(2, 18)) + data(8, data(1, "com.microsoft") + number(2, 1)))


class Info(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("PESTLE_")}
        self.env["PESTLE_CACHE_DIR"] = self.folder.name + "/cache"
        self.env["PESTLE_BACKEND_PATH"] = str(PESTLE.parent / "backends")

    def file(self, name, content):
        path = pathlib.Path(self.folder.name) / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def pestle(self, *args):
        return subprocess.run([PESTLE, *args], env=self.env, capture_output=True,
                              text=True, check=False)

    def text(self, *args):
        done = self.pestle("info", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def facts(self, *args):
        return json.loads(self.text(*args, "--json"))

    def small(self):
        nodes = [node("Add", ["x", "bias"], "a"), node("Relu", ["a"], "b"),
                 node("Add", ["b", "scale"], "y")]
        return self.file("small.onnx", model(
            nodes, [declared("x", ["batch", None, 3]), declared("scale", [3])],
            [declared("y", ["batch", None, 3])],
            [stored("bias", [1, 2, 3]), stored("scale", [2, 3, 4])]))

    def test_open_shapes(self):
        facts = self.facts(self.small())
        self.assertEqual(facts["format"], "ONNX")
        self.assertEqual(facts["producer"], "by-hand 1.5")
        self.assertEqual(facts["opsets"], {"ai.onnx": 18, "com.microsoft": 1})
        self.assertEqual(facts["inputs"], [
            {"name": "x", "dtype": "f32", "dims": ["batch", None, 3],
             "has_default": False, "decides_shapes": False},
            {"name": "scale", "dtype": "f32", "dims": [3],
             "has_default": True, "decides_shapes": False}])
        self.assertEqual(facts["outputs"], [
            {"name": "y", "dtype": "f32", "dims": ["batch", None, 3]}])
        self.assertEqual(facts["dims"], ["batch"])
        self.assertEqual(facts["ops"], {"Add": 2, "Relu": 1})
        self.assertEqual((facts["weights"], facts["weight_bytes"]), (6, 24))
        self.assertIsNone(facts["unsupported"])
        self.assertIsNone(facts["run"])

    def test_words(self):
        text = self.text(self.small())
        self.assertIn("f32[batch, ?, 3]", text)
        self.assertIn("has a default", text)
        self.assertIn("3 of 2 kinds: Add 2, Relu 1", text)
        self.assertIn("6 elements in 24 B", text)
        self.assertIn("--dim batch=N --shape x=", text)

    def test_fixed_shapes_have_a_cost(self):
        path = self.small()
        facts = self.facts(path, "--shape", "x=4x5x3")
        self.assertEqual(facts["inputs"][0]["dims"], [4, 5, 3])
        self.assertEqual(facts["outputs"][0]["dims"], [4, 5, 3])
        self.assertEqual(facts["dims"], [])
        self.assertEqual(facts["run"]["launches"], 1)
        # Two additions and a maximum an element; x is read, y written, 2 x 3 more read.
        self.assertEqual(facts["run"]["flops"], 3 * 60)
        self.assertEqual(facts["run"]["bytes"], 2 * 60 * 4 + 2 * 3 * 4)
        self.assertIn("in 1 launches of 1 kernels", self.text(path, "--shape", "x=4x5x3"))

    def test_what_the_advice_says_works(self):
        facts = self.facts(self.small(), "--dim", "batch=2")
        self.assertEqual(facts["inputs"][0]["dims"], [2, None, 3])
        done = self.pestle("info", self.small(), "--dim", "bach=2")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("bach", done.stderr)

    def test_unsupported_ops_are_all_named(self):
        path = self.file("two.onnx", model(
            [node("Frobnicate", ["x"], "a"), node("Grind", ["a"], "b", "com.microsoft"),
             node("Relu", ["b"], "y")],
            [declared("x", [4])], [declared("y", [4])], []))
        facts = self.facts(path)
        self.assertEqual(facts["ops"],
                         {"Frobnicate": 1, "Relu": 1, "com.microsoft.Grind": 1})
        self.assertIn("Frobnicate", facts["unsupported"])
        self.assertIn("Grind", facts["unsupported"])
        self.assertIsNone(facts["run"])
        self.assertIn("not supported", self.text(path))

    def test_stablehlo(self):
        path = self.file("m.mlir", "func.func @main(%x: tensor<2x3xf32>) -> "
                         "tensor<2x3xf32> {\n  %w = stablehlo.constant dense<[[1.0, 2.0, "
                         "3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>\n"
                         "  %0 = stablehlo.multiply %x, %w : tensor<2x3xf32>\n"
                         "  return %0 : tensor<2x3xf32>\n}\n")
        facts = self.facts(path)
        self.assertEqual(facts["format"], "text")
        self.assertEqual(facts["inputs"], [
            {"name": "x", "dtype": "f32", "dims": [2, 3],
             "has_default": False, "decides_shapes": False}])
        self.assertEqual(facts["outputs"][0]["dims"], [2, 3])
        self.assertEqual(facts["ops"], {"multiply": 1})
        self.assertEqual((facts["weights"], facts["weight_bytes"]), (6, 24))
        self.assertEqual(facts["run"]["flops"], 6)

    def test_packed_weights(self):
        """Each of 2 x 64 sums has 96 products and as many additions, however the weights lie."""
        path = self.file("packed.mlir", "func.func @main(%x: tensor<2x96xf32>, %w: tensor<64x48xui8>, %s: tensor<64x3xf32>) -> "
                         "tensor<2x64xf32> {\n  %y = \"pestle.block_dot\"(%x, %w, %s) <{bits = 4 : i64, block = 32 : i64, "
                         "accuracy = 0 : i64}> : (tensor<2x96xf32>, tensor<64x48xui8>, tensor<64x3xf32>) -> tensor<2x64xf32>\n"
                         "  return %y : tensor<2x64xf32>\n}\n")
        self.assertEqual(self.facts(path)["run"]["flops"], 2 * 2 * 64 * 96)

    def test_plans(self):
        plan = self.folder.name + "/small.plan"
        done = self.pestle("compile", self.small(), "--shape", "x=4x5x3", "-o", plan)
        self.assertEqual(done.returncode, 0, done.stderr)
        facts = self.facts(plan)
        self.assertEqual(facts["format"], "plan")
        self.assertEqual(facts["inputs"], [
            {"name": "x", "dtype": "f32", "dims": [4, 5, 3]}])
        self.assertEqual(facts["outputs"], [
            {"name": "y", "dtype": "f32", "dims": [4, 5, 3]}])
        self.assertEqual(facts["run"]["flops"], 3 * 60)
        self.assertIn("a plan of", self.text(plan))

    def test_no_models(self):
        for name, content, code in (("page.html", "<html></html>", 4),
                                    ("empty.onnx", b"", 4),
                                    ("cut.plan", b"PSTLPLN1", 4)):
            done = self.pestle("info", self.file(name, content))
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertRegex(done.stderr, "^pestle: error: ")
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    if not PESTLE.exists():
        sys.exit(77)
    unittest.main()
