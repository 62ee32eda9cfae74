#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle on a device whose memory the host cannot touch (tests/mock)."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import BUILD, Case, has_compiler  # noqa: E402

# A softmax, a product, a loop whose length is data: all kinds of steps.
MODEL = """\
func.func public @main(%x: tensor<8x32xf32>, %n: tensor<i32>)
    -> (tensor<8x8xf32>, tensor<8x32xf32>) {
  %s = stablehlo.exponential %x : tensor<8x32xf32>
  %d = stablehlo.dot_general %s, %x, contracting_dims = [1] x [1] :
      (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x8xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<8x32xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %w = stablehlo.tanh %v : tensor<8x32xf32>
    stablehlo.return %j, %w : tensor<i32>, tensor<8x32xf32>
  }
  return %d, %r#1 : tensor<8x8xf32>, tensor<8x32xf32>
}
"""


class Device(Case):
    backends = BUILD / "tests/mock/backends"

    def setUp(self):
        super().setUp()
        self.write("m.mlir", MODEL)

    def run_on(self, device, *args, code=0, backends=None, env=None,
               model="m.mlir"):
        env = {"PESTLE_BACKEND_PATH": str(backends or self.backends),
               **(env or {})}  # fmt: skip
        given = ["--input", "0=random:3", "--input", "1=i32=5"]
        if device:
            given += ["--device", device]
        done = self.run_pestle("run", model, *given, *args, env=env)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_same_as_ref(self):
        exact = ["--compare", "out", "--atol", "0", "--rtol", "0"]
        self.run_on("ref", "--outputs", "out")
        for device in ("mock", "mock:1", "gpu:1"):
            self.run_on(device, *exact)
        self.run_on("mock", *exact, "--bench", "5")

    def test_refused_kernels(self):
        """Kernels that the device refuses run on the CPU, visibly."""
        exact = ["--compare", "out", "--atol", "0", "--rtol", "0"]
        refuse = {"MOCK_REFUSE": "exponential"}
        self.run_on("ref", "--outputs", "out")
        args = [*exact, "--log", "warn", "--trace", "t.json"]
        said = self.run_on("mock", *args, env=refuse).stderr
        self.assertIn("run on the CPU: device mock:0 refused them", said)
        trace = json.loads((self.folder / "t.json").read_text())
        kinds = [event.get("cat") for event in trace["traceEvents"]]
        self.assertEqual(kinds.count("fallback"), 1)
        self.assertGreater(kinds.count("kernel"), 1)
        profile = json.loads(
            self.run_on("mock", "--profile=json", "--bench", "2",
                        env=refuse).stdout
        )  # fmt: skip
        (row,) = [r for r in profile["steps"] if r["kind"] == "fallback"]
        self.assertEqual(row["backend"], "ref")
        self.assertIn("exponential", row["ops"])
        on = {r["backend"] for r in profile["steps"] if r["kind"] == "kernel"}
        self.assertEqual(on, {"mock"})
        said = self.run_on("mock", "--strict", code=3, env=refuse).stderr
        self.assertIn("a kernel that is refused", said)
        self.assertIn("backend 'mock' refuses it, and without strict it would "
                      "go to 'ref'", said)  # fmt: skip
        refuse["PESTLE_BACKEND_PATH"] = str(self.backends)
        for args, text in [[], "'ref' runs kernel "], [["--strict"], "refused"]:
            done = self.run_pestle("explain", "m.mlir", "--device", "mock",
                                   *args, env=refuse)  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("\nrefused\n", done.stdout)
            self.assertIn(text, done.stdout)

    def test_saved_plan(self):
        self.run_on("ref", "--outputs", "out")
        self.run_on("mock", "--save-plan", "m.plan")
        self.run_on(None, "--compare", "out", model="m.plan")
        # Without the backend the plan says what it wants.
        done = self.run_on(None, code=4, model="m.plan", backends="/nonexistent")
        self.assertIn("was compiled for backend 'mock'", done.stderr)


if __name__ == "__main__":
    if not has_compiler():
        sys.exit(77)
    unittest.main()
