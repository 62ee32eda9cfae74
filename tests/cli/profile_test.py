#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle run --profile: a row a step, what the rows say of each other and of
the machine, the limits in the cache folder, both forms of output."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import BUILD, Case  # noqa: E402

DOTS = """\
func.func public @main(%x: tensor<64x96xf32> {pestle.name = "x"})
    -> (tensor<64x32xf32>) {
  %w = stablehlo.constant dense<[WEIGHTS]> : tensor<96x32xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
      (tensor<64x96xf32>, tensor<96x32xf32>) -> tensor<64x32xf32>
  %z = stablehlo.tanh %y : tensor<64x32xf32>
  return %z : tensor<64x32xf32>
}
""".replace("WEIGHTS", ", ".join(
    str([float((i * i + j * 7) % 61) for j in range(32)]) for i in range(96)
))

# Three trips; |counter| and the state are copied, each body step runs 3 times.
# Its end is asked of data too, so that it stays a loop of several kernels.
LOOP = """\
func.func public @main(%x: tensor<512xf32> {pestle.name = "x"})
    -> (tensor<512xf32>) {
  %n = stablehlo.constant dense<3> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %n, %s = %x) : tensor<i32>, tensor<512xf32>
  cond {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %c = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %e = stablehlo.slice %s [0:1] : (tensor<512xf32>) -> tensor<1xf32>
    %f = stablehlo.reshape %e : (tensor<1xf32>) -> tensor<f32>
    %o = stablehlo.compare EQ, %f, %f : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %q = stablehlo.and %c, %o : tensor<i1>
    stablehlo.return %q : tensor<i1>
  } do {
    %j = stablehlo.subtract %i, %one : tensor<i32>
    %t = stablehlo.tanh %s : tensor<512xf32>
    stablehlo.return %j, %t : tensor<i32>, tensor<512xf32>
  }
  return %r#1 : tensor<512xf32>
}
"""

NARROW = """\
func.func public @main(%x: tensor<64x96xX> {pestle.name = "x"},
                       %w: tensor<96x32xW> {pestle.name = "w"})
    -> (tensor<64x32xZ>) {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
      (tensor<64x96xX>, tensor<96x32xW>) -> tensor<64x32xZ>
  return %y : tensor<64x32xZ>
}
"""

UPDATE = """\
func.func public @main(%x: tensor<512x64xf32> {pestle.name = "x"},
                       %u: tensor<1x64xf32> {pestle.name = "u"},
                       %i: tensor<i32> {pestle.name = "i"})
    -> (tensor<512x64xf32>) {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.dynamic_update_slice %x, %u, %i, %z : (tensor<512x64xf32>,
      tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<512x64xf32>
  return %r : tensor<512x64xf32>
}
"""

GATHER = """\
func.func public @main(%t: tensor<1000x64xf32> {pestle.name = "t"},
                       %i: tensor<4x1xi32> {pestle.name = "i"})
    -> (tensor<4x64xf32>) {
  %g = "stablehlo.gather"(%t, %i) {dimension_numbers = #stablehlo.gather<
      offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
      index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>} :
      (tensor<1000x64xf32>, tensor<4x1xi32>) -> tensor<4x64xf32>
  return %g : tensor<4x64xf32>
}
"""


HAS_LLVM = any((BUILD / "backends").glob("libpestle-llvm-*.so"))


class Profile(Case):
    def profile(self, text, *args):
        path = self.write("m.mlir", text)
        out = self.succeed("run", path, "--profile=json", *args)
        return json.loads(out)

    def devices(self):
        return ["llvm", "ref"] if HAS_LLVM else ["ref"]

    def test_product(self):
        for device in self.devices():
            with self.subTest(device):
                p = self.profile(DOTS, "--input", "x=0.01", "--device",
                                 device, "--bench", "7")  # fmt: skip
                self.assertEqual(p["runs"], 7)
                self.assertEqual(p["warm_ups"], 3)
                (row,) = p["steps"]
                self.assertEqual(row["kind"], "kernel")
                self.assertEqual(row["backend"], device)
                self.assertIn("dot_general", row["ops"])
                self.assertIn("tanh", row["ops"])
                at = [p["locations"][i] for i in row["locations"]]
                self.assertLessEqual({"dot_general", "tanh"},
                                     {place["op"] for place in at})
                self.assertTrue(all(place["line"] > 0 for place in at), at)
                self.assertIn("form=", row["schedule"])
                # Two a multiply-add, 20 a tanh.
                self.assertEqual(row["flops"], 64 * 32 * (2 * 96 + 20))
                weights = 96 * 32 * 4
                self.assertEqual(row["bytes"], 64 * (96 + 32) * 4 + weights)
                self.assertEqual(row["constant_bytes"], weights)
                self.assertGreater(row["best_us"], 0)
                self.assertGreaterEqual(row["mean_us"], row["best_us"])
                self.assertAlmostEqual(row["share"], 1, 1)  # jumps take some
                rate = row["flops"] / row["best_us"] * 1e-3
                self.assertAlmostEqual(row["gflops_per_s"], rate, 3)
                known = p["limits"]["gflops_per_s"] > 0
                self.assertEqual(known, device != "ref")
                self.assertEqual("limit" in row, known)

    def test_loop(self):
        p = self.profile(LOOP, "--input", "x=0.5", "--device", "ref",
                         "--bench", "3")  # fmt: skip
        kinds = {row["kind"] for row in p["steps"]}
        self.assertIn("kernel", kinds)
        times = {row["times"] for row in p["steps"] if "tanh" in row["ops"]}
        self.assertEqual(times, {3})
        self.assertAlmostEqual(sum(r["share"] for r in p["steps"]), 1, 1)

    def test_only_what_is_read_counts(self):
        p = self.profile(GATHER, "--input", "t=1", "--input",
                         "i=4x1xi32=7", "--device", "ref", "--bench",
                         "2")  # fmt: skip
        (row,) = p["steps"]
        self.assertLess(row["bytes"], 3 * 4 * 64 * 4)

    def test_narrow_products_count_apart(self):
        kinds = {"half": ("bf16", "bf16", "f32"), "byte": ("ui8", "i8", "i32")}
        for device in self.devices():
            for kind, types in kinds.items():
                with self.subTest(device=device, kind=kind):
                    text = NARROW
                    for name, dtype in zip("XWZ", types):
                        text = text.replace("x" + name, "x" + dtype)
                    p = self.profile(text, "--input", "x=1", "--input", "w=1",
                                     "--device", device, "--bench",
                                     "2")  # fmt: skip
                    work = {row["name"]: row for row in p["steps"]}
                    row = max(work.values(), key=lambda r: r["flops"])
                    self.assertEqual(row["flops"], 2 * 64 * 96 * 32)
                    for other in kinds:
                        self.assertEqual(row[other + "_flops"],
                                         row["flops"] * (other == kind))
                    rate = p["limits"][kind + "_gflops_per_s"]
                    self.assertEqual(rate > 0, device != "ref")

    def test_halves_that_are_widened_count_too(self):
        if not HAS_LLVM:
            self.skipTest("there is no llvm plugin")
        text = NARROW
        for name, dtype in zip("XWZ", ("f16", "f16", "f16")):
            text = text.replace("x" + name, "x" + dtype)
        p = self.profile(text, "--input", "x=1", "--input", "w=1", "--device",
                         "llvm", "--target-cpu", "x86-64-v3", "--bench",
                         "2")  # fmt: skip
        row = max(p["steps"], key=lambda r: r["flops"])
        self.assertGreaterEqual(row["half_flops"], 2 * 64 * 96 * 32)

    def test_an_update_moves_its_window(self):
        p = self.profile(UPDATE, "--input", "x=1", "--input", "u=2",
                         "--input", "i=i32=3", "--device", "ref", "--bench",
                         "2")  # fmt: skip
        (row,) = [r for r in p["steps"] if r["kind"] == "kernel"]
        self.assertEqual(row["bytes"], 2 * 64 * 4)

    def test_table_and_file(self):
        path = self.write("m.mlir", DOTS)
        text = self.succeed("run", path, "--input", "x=0.01", "--bench", "2",
                            "--profile=p.json", "--device", "ref")  # fmt: skip
        self.assertIn("2 timed runs after 3", text)
        self.assertIn("limits: none", text)
        self.assertIn("form=", text)
        p = json.loads((self.folder / "p.json").read_text())
        self.assertEqual(len(p["steps"]), 1)

    def test_limits_are_kept(self):
        if not HAS_LLVM:
            self.skipTest("there is no llvm plugin")
        path = self.write("m.mlir", DOTS)
        args = ["run", path, "--input", "x=0.01", "--bench", "1", "--profile",
                "--device", "llvm", "--cache-dir",
                self.folder / "cache"]  # fmt: skip
        self.assertIn("measured now", self.succeed(*args))
        (file,) = (self.folder / "cache").glob("limits-*")
        self.assertIn("from the cache folder", self.succeed(*args))
        # Damaged: measured anew.
        file.write_text("flops 1e9\nl2 x\nl3 1\nmemory 1\n")
        self.assertIn("measured now", self.succeed(*args))
        # A step that does more than they allow has them measured again, and what was
        # better is kept.
        names = [line.split()[0] for line in file.read_text().splitlines()]
        self.assertEqual(names[-2:], ["date", "others"])
        rates = "".join(f"{n} {'9e15' if n == 'l3' else 1} 0.5\n" for n in names[:-2])
        file.write_text(rates + "date 86400000000000\nothers 1.5\n")
        again = self.succeed(*args)
        self.assertIn("measured again, as a step passed them (20", again)
        kept = dict(line.split(" ", 1) for line in file.read_text().splitlines())
        self.assertGreater(float(kept["flops"].split()[0]), 1e6)
        self.assertEqual(float(kept["l3"].split()[0]), 9e15)

    def test_limits_have_a_date(self):
        if not HAS_LLVM:
            self.skipTest("there is no llvm plugin")
        p = self.profile(DOTS, "--input", "x=0.01", "--bench", "1", "--device",
                         "llvm")  # fmt: skip
        limits = p["limits"]
        self.assertRegex(limits["date"], r"^20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ$")
        self.assertGreaterEqual(limits["spread"], 0)
        self.assertIs(limits["measured_now"], True)
        for part in (limits, p["machine"]):
            self.assertIn(part["is_busy"], (True, False))
            if part["others"] is None:
                self.assertIs(part["is_busy"], False)

    def test_limits_of_a_device_with_lanes(self):
        """They are the device's own: it has no threads, and no L3."""
        listed = self.succeed("plugins", "list")
        if "gpu:0 is opencl" not in listed:
            self.skipTest("there is no OpenCL device")
        p = self.profile(DOTS, "--input", "x=0.01", "--bench", "1", "--device",
                         "opencl")  # fmt: skip
        limits = p["limits"]
        self.assertEqual((limits["threads"], limits["l3_gbytes_per_s"]), (0, 0))
        for rate in ("", "half_", "byte_"):
            self.assertGreater(limits[rate + "gflops_per_s"], 0)
        self.assertGreater(limits["l2_gbytes_per_s"], 0)
        self.assertGreater(limits["memory_gbytes_per_s"], 0)
        self.assertTrue(all(r.get("bound") != "L3" for r in p["steps"]))


if __name__ == "__main__":
    unittest.main()
