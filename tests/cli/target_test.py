#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle compiling for devices that are not here: no driver is found (its
loader is told of none), and none is woken."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import BUILD, Case, has_compiler  # noqa: E402

MODEL = """\
func.func public @main(%x: tensor<8xi64>, %y: tensor<8xi64>) -> tensor<8xi64> {
  %a = stablehlo.multiply %x, %y : tensor<8xi64>
  %b = stablehlo.remainder %a, %y : tensor<8xi64>
  return %b : tensor<8xi64>
}
"""
# What the loaders of OpenCL and Vulkan read for their list of drivers.
NONE = {"OCL_ICD_VENDORS": "/nonexistent", "VK_DRIVER_FILES": "/nonexistent",
        "VK_ICD_FILENAMES": "/nonexistent", "LD_LIBRARY_PATH": ""}
TEXT = {"cuda": "__global__", "opencl": "__kernel", "vulkan": "#version 450",
        "metal": "#include <metal_stdlib>"}


def has(name):
    return (BUILD / f"backends/libpestle-{name}.so").exists()


@unittest.skipUnless(has_compiler(), "the run-only build compiles nothing")
class Target(Case):
    def setUp(self):
        super().setUp()
        self.write("m.mlir", MODEL)

    def run_without(self, *args, code=0):
        done = self.run_pestle(*args, env=NONE)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_source(self):
        for name, text in TEXT.items():
            if not has(name):
                continue
            done = self.run_without("dump", "m.mlir", "--target", name,
                                    "--stage", "source")
            self.assertIn(text, done.stdout)

    def test_cpu_of_target(self):
        if not has("cuda"):
            self.skipTest("cuda is not built")
        both = []
        for given in (["--target", "cuda:sm_90a"],
                      ["--target", "cuda", "--target-cpu", "sm_90a"]):
            done = self.run_without("dump", "m.mlir", *given, "--stage",
                                    "source")
            both.append(done.stdout)
        self.assertEqual(*both)
        said = self.run_without("dump", "m.mlir", "--target", "cuda:sm_1",
                                "--stage", "source", code=3).stderr
        self.assertIn("cuda knows no 'sm_1'", said)
        said = self.run_without("dump", "m.mlir", "--target", "cuda:sm_80",
                                "--target-cpu", "sm_90", code=2).stderr
        self.assertIn("name two", said)

    def test_lanes_of_ref(self):
        said = self.run_without("dump", "m.mlir", "--target", "ref", "--target-cpu", "simt09",
                                "--stage", "kernels", code=3).stderr
        self.assertIn("ref knows no 'simt09': simt, simt1", said)

    def test_plans(self):
        """A plan for a device that is not here is made, and does not run."""
        for name in ("metal", "opencl", "vulkan"):
            if not has(name):
                continue
            self.run_without("compile", "m.mlir", "--target", name, "-o",
                             f"{name}.plan")
            done = self.run_pestle("run", f"{name}.plan", "--input",
                                   "0=random:1", "--input", "1=random:2",
                                   env=NONE)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"there is no device '{name}:0'", done.stderr)
            self.assertIn("not for this machine", done.stderr)

    def test_no_device(self):
        """What only compiles is no device: of no type, and not by name."""
        for name in TEXT:
            if not has(name):
                continue
            said = self.run_without("run", "m.mlir", "--device", name, "--input",
                                    "0=random:1", "--input", "1=random:2",
                                    code=2).stderr
            self.assertIn(f"there is no device '{name}'", said)
        said = self.run_without("dump", "m.mlir", "--target", "gpu", "--stage",
                                "source", code=2).stderr
        self.assertIn("there is no device 'gpu'", said)
        why = self.run_without("plugins", "--why").stdout
        for name in TEXT:
            if has(name):
                self.assertIn(f"'pestle compile --target {name}'", why)

    def test_pairs(self):
        """Where a device lacks 64-bit integers its SPIR-V asks for none."""
        if not has("vulkan"):
            self.skipTest("vulkan is not built")
        for cpu, wanted in (("generic", True), ("noint64", False)):
            text = self.run_without("dump", "m.mlir", "--target",
                                    f"vulkan:{cpu}", "--stage", "asm").stdout
            self.assertIn("OpCapability Shader", text)
            self.assertEqual("OpCapability Int64" in text, wanted, cpu)


if __name__ == "__main__":
    unittest.main()
