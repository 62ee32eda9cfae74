#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--tier quick: other code than the full tier's, the same results within its tolerances,
an entry of its own in the cache, and what it cannot be given with (docs/hands.md)."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PESTLE = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]) / "pestle"

# A convolution with an epilogue, a product, a softmax, a sum along columns.
MODEL = """
func.func public @main(%x: tensor<1x20x20x16xf32>, %k: tensor<3x3x16x32xf32>,
                       %w: tensor<32x40xf32>)
    -> (tensor<400x40xf32>, tensor<40xf32>) {
  %c = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64,
      feature_group_count = 1 : i64} :
      (tensor<1x20x20x16xf32>, tensor<3x3x16x32xf32>) -> tensor<1x20x20x32xf32>
  %t = stablehlo.tanh %c : tensor<1x20x20x32xf32>
  %r = stablehlo.reshape %t : (tensor<1x20x20x32xf32>) -> tensor<400x32xf32>
  %p = stablehlo.dot_general %r, %w, contracting_dims = [1] x [0] :
      (tensor<400x32xf32>, tensor<32x40xf32>) -> tensor<400x40xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%p init: %low) applies stablehlo.maximum across
      dimensions = [1] : (tensor<400x40xf32>, tensor<f32>) -> tensor<400xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] :
      (tensor<400xf32>) -> tensor<400x40xf32>
  %d = stablehlo.subtract %p, %mb : tensor<400x40xf32>
  %e = stablehlo.exponential %d : tensor<400x40xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across
      dimensions = [1] : (tensor<400x40xf32>, tensor<f32>) -> tensor<400xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0] :
      (tensor<400xf32>) -> tensor<400x40xf32>
  %q = stablehlo.divide %e, %sb : tensor<400x40xf32>
  %o = stablehlo.reduce(%p init: %zero) applies stablehlo.add across
      dimensions = [0] : (tensor<400x40xf32>, tensor<f32>) -> tensor<40xf32>
  return %q, %o : tensor<400x40xf32>, tensor<40xf32>
}
"""
GIVEN = [a for i in range(3) for a in ("--input", f"{i}=random:{i + 1}")]


class Tier(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("PESTLE_")}
        self.env["PESTLE_CACHE_DIR"] = self.folder.name + "/cache"
        self.env["PESTLE_BACKEND_PATH"] = str(PESTLE.parent / "backends")
        self.model = self.folder.name + "/m.mlir"
        pathlib.Path(self.model).write_text(MODEL, encoding="utf-8")

    def pestle(self, *args, code=0):
        done = subprocess.run([PESTLE, *args], env=self.env, capture_output=True,
                              text=True, check=False, cwd=self.folder.name)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_results(self):
        full = self.folder.name + "/full"
        os.mkdir(full)
        self.pestle("run", self.model, *GIVEN, "--no-cache", "--outputs", full)
        text = self.pestle("run", self.model, *GIVEN, "--no-cache", "--tier", "quick",
                           "--compare", full)
        self.assertNotIn("differ", text)
        text = self.pestle("run", self.model, "--input", "0=random:9", *GIVEN[2:],
                           "--no-cache", "--tier", "quick", "--compare", full, code=1)

    def test_cache(self):
        def compiled(tier):
            text = self.pestle("run", self.model, *GIVEN, "--tier", tier, "--log",
                               "debug")
            return re.search(r"compiled '[^']*' in", text) is not None
        self.assertTrue(compiled("quick"))
        self.assertFalse(compiled("quick"))
        self.assertTrue(compiled("full"))
        self.assertFalse(compiled("full"))
        # The full plan is there, and better than what was asked for.
        self.assertFalse(compiled("quick"))

    def test_wrong(self):
        text = self.pestle("run", self.model, *GIVEN, "--tier", "quik", code=2)
        self.assertIn("--tier wants full or quick, not 'quik'; did you mean 'quick'?",
                      text)
        text = self.pestle("run", self.model, *GIVEN, "--tier", "quick", "--tune", "1",
                           code=2)
        self.assertIn("--tier quick takes no schedule from a lock: leave out --tune",
                      text)
        plan = self.folder.name + "/m.plan"
        self.pestle("compile", self.model, "--tier", "quick", "-o", plan)
        text = self.pestle("run", plan, *GIVEN, "--tier", "quick", code=2)
        self.assertIn("a plan is compiled already: --tier", text)

    def test_a_lock_that_lies_there_is_not_read(self):
        pathlib.Path(self.folder.name + "/pestle.lock").write_text("no lock\n",
                                                                   encoding="utf-8")
        self.pestle("run", self.model, *GIVEN, code=4)
        self.pestle("run", self.model, *GIVEN, "--tier", "quick")


if __name__ == "__main__":
    unittest.main()
