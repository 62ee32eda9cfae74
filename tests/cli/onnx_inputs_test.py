#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inputs of ONNX models from the command line: those with a default, by name and
by number, and those whose rank the model does not state."""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from onnx_bytes import data, declared, node, number, stored  # noqa: E402

PESTLE = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]) / "pestle"


def model(inputs, defaults, nodes, version=8):
    graph = b"".join(nodes) + b"".join(data(5, d) for d in defaults)
    graph += b"".join(data(11, i) for i in inputs) + data(12, data(1, "y"))
    return number(1, version) + data(7, graph) + data(8, number(2, 18))


def npy(values):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}"
    head = head.ljust(117) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
            + struct.pack(f"<{len(values)}f", *values))


X, K = declared("x", [2]), declared("k", [2])
SUM = [node("Mul", ["x", "k"], "xk"), node("Add", ["xk", "x"], "y")]
DEFAULT = [stored("k", [1, 2])]


class Inputs(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def run_model(self, content, *args, files=None):
        (self.folder / "m.onnx").write_bytes(content)
        for old in self.folder.glob("*.npy"):
            old.unlink()
        for name, values in (files or {}).items():
            (self.folder / name).write_bytes(npy(values))
        inputs = ["--inputs", "."] if files else []
        return subprocess.run([PESTLE, "run", "m.onnx", "--no-cache", *inputs, *args],
                              cwd=self.folder, capture_output=True, text=True)

    def gives(self, values, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout[done.stdout.rindex("[") + 1:done.stdout.rindex("]")]
        self.assertEqual([float(v) for v in text.replace(",", " ").split()], values)

    def test_default(self):
        m = model([X, K], DEFAULT, SUM)
        self.gives([6, 12], self.run_model(m, files={"input_0.npy": [3, 4]}))

    def test_override(self):
        m = model([X, K], DEFAULT, SUM)
        want = [33, 84]
        self.gives(want, self.run_model(
            m, files={"input_0.npy": [3, 4], "input_1.npy": [10, 20]}))
        self.gives([44, 44], self.run_model(m, "--input", "x=4", "--input", "k=10"))
        self.gives([44, 44], self.run_model(m, "--input", "0=4", "--input", "1=10"))
        self.gives([44, 44], self.run_model(m, "--input", "x=4", "--input",
                                            "k=2xf32=10"))
        self.gives([44, 44], self.run_model(m, "--input", "x=4", "--const",
                                            "k=10"))

    def test_other_type(self):
        """An initializer of another type than its input is declared to have."""
        for version in (3, 8):
            m = model([X, declared("k", [2], 7)], DEFAULT, SUM, version)
            done = self.run_model(m, "--input", "x=4")
            self.assertEqual(done.returncode, 4)
            self.assertIn("declares its input 'k' to be of INT64, its initializer "
                          "is of FLOAT", done.stderr)

    def test_order(self):
        """A default that is listed first: the numbers of what must be given."""
        m = model([K, X], DEFAULT, SUM)
        self.gives([6, 12], self.run_model(m, files={"input_0.npy": [3, 4]}))
        self.gives([33, 84], self.run_model(
            m, files={"input_0.npy": [10, 20], "input_1.npy": [3, 4]}))

    def test_old_models(self):
        m = model([X, K], DEFAULT, SUM, version=3)
        self.gives([6, 12], self.run_model(m, files={"input_0.npy": [3, 4]}))
        done = self.run_model(m, "--input", "x=3", "--input", "k=2xf32=1")
        self.assertEqual(done.returncode, 4)
        self.assertIn("'k', which is an initializer of the model", done.stderr)

    def test_names(self):
        m = model([X, K], DEFAULT, SUM)
        done = self.run_model(m, "--input", "x=3", "--input", "q=1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no input 'q'; it has 'x', 'k'", done.stderr)
        done = self.run_model(m, "--input", "x=3", "--input", "q=2xf32=1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("it has 'x', 'k'", done.stderr)

    def test_unknown_rank(self):
        """The rank of what is given, by number too."""
        m = model([declared("x", None)], [], [node("Neg", ["x"], "y")])
        self.gives([-3, -4], self.run_model(m, files={"input_0.npy": [3, 4]}))
        self.gives([-3, -3], self.run_model(m, "--input", "0=2xf32=3"))
        self.gives([-3, -3], self.run_model(m, "--input", "x=2xf32=3"))
        done = self.run_model(m, "--input", "x=3")
        self.assertEqual(done.returncode, 4)
        self.assertIn("which rank input 'x' has", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
