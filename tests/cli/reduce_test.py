#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle diff and pestle reduce: ways that agree, ways that do not, where they
part, and models that are made small."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import Case, has_compiler  # noqa: E402

# Narrow floats are rounded after each op, unless numerics are fast.
CHAIN = """\
func.func @main(%x: tensor<4x33xf16>, %y: tensor<4x33xf16>, %p: tensor<i1>)
    -> (tensor<4x33xf16>, tensor<33xf16>, tensor<4x33xf16>) {
  %0 = stablehlo.multiply %x, %y : tensor<4x33xf16>
  %1 = stablehlo.add %0, %x : tensor<4x33xf16>
  %2 = stablehlo.multiply %1, %1 : tensor<4x33xf16>
  %3 = stablehlo.tanh %2 : tensor<4x33xf16>
  %4 = stablehlo.slice %x [1:2, 0:33] : (tensor<4x33xf16>) -> tensor<1x33xf16>
  %5 = stablehlo.reshape %4 : (tensor<1x33xf16>) -> tensor<33xf16>
  %6 = "stablehlo.if"(%p) ({
    %8 = stablehlo.negate %3 : tensor<4x33xf16>
    stablehlo.return %8 : tensor<4x33xf16>
  }, {
    stablehlo.return %x : tensor<4x33xf16>
  }) : (tensor<i1>) -> tensor<4x33xf16>
  %7 = func.call @twice(%3) : (tensor<4x33xf16>) -> tensor<4x33xf16>
  return %3, %5, %7 : tensor<4x33xf16>, tensor<33xf16>, tensor<4x33xf16>
}
func.func private @twice(%x: tensor<4x33xf16>) -> tensor<4x33xf16> {
  %0 = stablehlo.add %x, %x : tensor<4x33xf16>
  return %0 : tensor<4x33xf16>
}
"""
EXACT = ["--rtol", "0", "--atol", "0"]


class Ways(Case):
    def setUp(self):
        super().setUp()
        self.write("m.mlir", CHAIN)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.folder, name)) as file:
            return file.read()


@unittest.skipUnless(has_compiler(), "a build without the compiler")
class Diff(Ways):
    def test_ways_that_agree(self):
        text = self.succeed("diff", "m.mlir", "ref", "ref,strict,no-fuse")
        self.assertEqual(
            text, "ref and ref,strict,no-fuse agree on all 3 outputs\n")

    def test_where_ways_part(self):
        done = self.run_pestle("diff", "m.mlir", "ref", "ref,fast", *EXACT)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^ref and ref,fast: output 0: \d+ of "
                         r"132 elements differ, first \[\d+\]: ")
        # One op alone is rounded in both ways: they part where ops are fused.
        self.assertRegex(done.stdout, r"(?m)^results part after pass \d+, 'fuse'")
        self.assertIn("the first kernel whose result differs", done.stdout)
        self.assertIn("stablehlo.multiply", done.stdout)

    def test_a_pass_that_is_left_out(self):
        text = self.succeed("diff", "m.mlir", "ref,fast", "ref,fast",
                            "--seed", "5", *EXACT)
        self.assertIn("agree on all 3 outputs", text)
        done = self.run_pestle("diff", "m.mlir", "ref", "ref,fast,skip=fuse",
                               *EXACT)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_quick(self):
        done = self.run_pestle("diff", "m.mlir", "ref", "ref,fast", "--quick",
                               *EXACT)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.count("\n"), 1)

    def test_wrong_command_lines(self):
        self.fail_with(2, "a model and two ways", "diff", "m.mlir", "ref")
        self.fail_with(2, "what is 'frob'", "diff", "m.mlir", "ref",
                       "ref,frob")
        self.fail_with(2, "what is 'stop-after=x'", "diff", "m.mlir", "ref",
                       "ref,stop-after=x")
        self.fail_with(2, "there is no device 'abacus'", "diff", "m.mlir",
                       "ref", "abacus")


@unittest.skipUnless(has_compiler(), "a build without the compiler")
class Reduce(Ways):
    def test_a_command(self):
        text = self.succeed("reduce", "m.mlir", "-o", "small.mlir", "--check",
                            "grep -q stablehlo.tanh")
        self.assertRegex(text, r"^\d+ ops became 1, after \d+ checks; written "
                         "to small.mlir\n$")
        small = self.read("small.mlir")
        self.assertIn("stablehlo.tanh", small)
        self.assertNotIn("@twice", small)
        # The extents went down too, and arguments that nobody reads.
        self.assertNotIn("33", small)
        self.assertEqual(small.count("%"), 4, small)
        left = [f for f in os.listdir(self.folder) if "try" in f]
        self.assertEqual(left, [])

    def test_two_ways_that_differ(self):
        text = self.succeed("reduce", "m.mlir", "ref", "ref,fast", "--check",
                            "differ", *EXACT)
        self.assertIn("written to m.mlir.reduced.mlir", text)
        small = self.read("m.mlir.reduced.mlir")
        self.assertLessEqual(small.count("stablehlo."), 3, small)
        done = self.run_pestle("diff", "m.mlir.reduced.mlir", "ref", "ref,fast",
                               *EXACT)
        self.assertEqual(done.returncode, 1, done.stdout)

    def test_an_error(self):
        self.succeed("reduce", "m.mlir", "abacus", "--check",
                     "error:no device 'abacus'", "-o", "small.mlir",
                     "--tries", "30")
        self.assertLess(len(self.read("small.mlir")), len(CHAIN))

    def test_a_check_that_does_not_hold(self):
        self.fail_with(2, "--check does not hold for the model itself",
                       "reduce", "m.mlir", "--check", "grep -q frob")
        self.fail_with(2, "does not hold", "reduce", "m.mlir", "ref",
                       "--check", "crash")

    def test_wrong_command_lines(self):
        self.fail_with(2, "a model and --check", "reduce", "m.mlir")
        self.fail_with(2, "a model and --check", "reduce", "--check", "true")


if __name__ == "__main__":
    unittest.main()
