#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle bench: what the figures say of each other, wrong command lines, and ONNX
Runtime beside it: the real one where it is, and stand-ins that are wrong or fail."""

import importlib.util
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cli_test import Case, has_compiler  # noqa: E402
from onnx_bytes import data, declared, node, number, stored  # noqa: E402

SHORT = ["--duration", "0.05", "--warm-up", "0.01"]
# An onnxruntime of a few lines: RUN is the body of a session's run().
STAND_IN = """
__version__ = "9.8.7"
class SessionOptions:
    pass
class InferenceSession:
    def __init__(self, path, options, providers):
        pass
    def run(self, names, feeds):
        RUN
"""


def small_model():
    nodes = [node("Add", ["x", "bias"], "a"), node("Relu", ["a"], "y")]
    graph = b"".join(nodes) + data(5, stored("bias", [1, -2, 3]))
    graph += data(11, declared("x", [4, 3])) + data(12, declared("y", [4, 3]))
    return number(1, 8) + data(7, graph) + data(8, number(2, 18))


def has(module):
    return importlib.util.find_spec(module) is not None


class Bench(Case):
    def setUp(self):
        super().setUp()
        self.model = self.write("m.onnx", small_model())
        self.env = {"PESTLE_PYTHON": sys.executable}

    def facts(self, *args):
        return json.loads(self.succeed("bench", *args, *SHORT, "--json", env=self.env))

    def check(self, side):
        """What holds of the figures of any machine."""
        order = [side[k] for k in ("min_ms", "median_ms", "p90_ms", "p99_ms", "max_ms")]
        self.assertEqual(order, sorted(order))
        self.assertGreater(order[0], 0)
        self.assertLessEqual(order[0], side["mean_ms"])
        self.assertLessEqual(side["mean_ms"], order[-1])
        self.assertGreaterEqual(side["runs"], 1)
        self.assertGreaterEqual(side["spread"], 0)
        self.assertAlmostEqual(side["runs_per_s"], side["runs"] / side["seconds"], 3)

    def test_figures(self):
        facts = self.facts(self.model)
        (side,) = facts["sides"]
        self.assertEqual(side["name"], "pestle")
        self.check(side)
        self.assertIs(facts["random_inputs"], True)
        self.assertGreaterEqual(side["seconds"], 0.05)
        self.assertRegex(facts["date"], r"^20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ$")
        self.assertNotIn("ratio", facts)
        machine = facts["machine"]
        self.assertGreaterEqual(machine["processors"], 1)
        if machine["is_busy"] is not None:
            limit = 0.05 * machine["processors"]
            self.assertEqual(machine["is_busy"],
                             max(machine["others_before"],
                                 machine["others_during"]) > limit)

    def test_several_at_once(self):
        facts = self.facts(self.model, "--concurrency", "3", "--input", "x=1")
        (side,) = facts["sides"]
        self.check(side)
        self.assertEqual(facts["concurrency"], 3)
        self.assertIs(facts["random_inputs"], False)
        # Each of the three ran at least once, each for about as long.
        self.assertGreaterEqual(side["runs"], 3)

    def test_words(self):
        text = self.succeed("bench", self.model, *SHORT)
        self.assertRegex(text, r"(?m)^ +runs +median ms +p90 ms +p99 ms .*runs/s$")
        self.assertRegex(text, r"(?m)^  pestle +\d+ ")
        self.assertIn("inputs that were not given are random", text)
        self.assertRegex(text, r"(?m)^machine: ")

    def test_plan(self):
        self.succeed("compile", self.model, "-o", "m.plan")
        self.check(self.facts("m.plan")["sides"][0])
        self.fail_with(2, "wants the model that it was made of", "bench", "m.plan",
                       "--beside", "ort")  # fmt: skip

    def test_wrong_command_lines(self):
        for args, sentence in (
            (["--duration", "0"], "--duration wants seconds"),
            (["--duration", "x"], "--duration wants seconds"),
            (["--warm-up", "-1"], "--warm-up wants seconds"),
            (["--concurrency", "0"], "1 to 256 runs at once"),
            (["--beside", "tvm"], "--beside knows ort"),
            (["--rtol", "1"], "is of --beside ort"),
            (["--input", "q=1"], "the model has no input 'q'"),
        ):
            self.fail_with(2, sentence, "bench", self.model, *args)

    def beside(self, body, code):
        """Runs beside a stand-in for onnxruntime."""
        if not has("numpy"):
            self.skipTest("this Python has no numpy")
        self.write("onnxruntime.py", STAND_IN.replace("RUN", body))
        done = self.run_pestle("bench", self.model, *SHORT, "--json", "--beside", "ort",
                               env=dict(self.env, PYTHONPATH=str(self.folder)))
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_a_peer_that_agrees(self):
        done = self.beside("import numpy as np; x = feeds['x']; return [np.maximum("
                           "x + np.array([1, -2, 3], x.dtype), 0)]", 0)
        facts = json.loads(done.stdout)
        own, peer = facts["sides"]
        self.check(own)
        self.check(peer)
        self.assertEqual((peer["name"], peer["version"]), ("onnxruntime", "9.8.7"))
        self.assertIs(facts["results_agree"], True)
        self.assertAlmostEqual(facts["ratio"], own["median_ms"] / peer["median_ms"], 3)

    def test_a_peer_that_differs(self):
        done = self.beside("return [feeds['x']]", 1)
        self.assertIs(json.loads(done.stdout)["results_agree"], False)
        self.assertRegex(done.stderr, r"output 0 'y' differs in \d+ of 12")

    def test_a_peer_that_fails(self):
        done = self.beside("raise RuntimeError('no such luck')", 3)
        self.assertRegex(done.stderr, "onnxruntime failed while opening the model: "
                         "RuntimeError: no such luck")
        done = self.beside("import os; os._exit(1)", 5)
        self.assertRegex(done.stderr, "ended while opening the model")

    def test_no_peer(self):
        self.env["PYTHONPATH"] = str(self.folder)
        self.write("onnxruntime.py", "raise ImportError('not built for this')\n")
        self.write("numpy.py", "")
        self.fail_with(5, r"cannot import onnxruntime \(ImportError: not built.*"
                       "PESTLE_PYTHON=FILE", "bench", self.model, "--beside", "ort",
                       env=self.env)  # fmt: skip
        self.fail_with(5, "cannot run '/no/python'.*PESTLE_PYTHON says which",
                       "bench", self.model, "--beside", "ort",
                       env={"PESTLE_PYTHON": "/no/python"})  # fmt: skip

    def test_the_real_peer(self):
        if not has("onnxruntime"):
            self.skipTest("this Python has no onnxruntime")
        facts = self.facts(self.model, "--beside", "ort", "--concurrency", "2")
        self.assertIs(facts["results_agree"], True)
        self.check(facts["sides"][1])


if __name__ == "__main__":
    if not has_compiler():
        print("this build has no compiler")
        sys.exit(77)
    unittest.main()
