#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--tune, --lock and --frozen: what the lock holds, that results are the same
bits with and without it, what is wrong with a damaged one."""

import os
import re
import struct
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import BUILD, Case  # noqa: E402

HAS_LLVM = any((BUILD / "backends").glob("libpestle-llvm-*.so"))

# A product with a long sum and an epilogue of functions, a chain, column sums:
# tiles, maps and columns have choices.
NET = """\
func.func public @main(%x: tensor<70x600xf32> {pestle.name = "x"},
                       %w: tensor<600x90xf32> {pestle.name = "w"})
    -> (tensor<70x90xf32>, tensor<600xf32>, tensor<600x600xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
      (tensor<70x600xf32>, tensor<600x90xf32>) -> tensor<70x90xf32>
  %t = stablehlo.tanh %y : tensor<70x90xf32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [0] :
      (tensor<70x600xf32>, tensor<f32>) -> tensor<600xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [1] :
      (tensor<600xf32>) -> tensor<600x600xf32>
  %e = stablehlo.exponential %b : tensor<600x600xf32>
  %m = stablehlo.multiply %e, %b : tensor<600x600xf32>
  return %t, %s, %m : tensor<70x90xf32>, tensor<600xf32>, tensor<600x600xf32>
}
"""
# The same under other names, its operations in another order.
RENAMED = NET
for old, new in (("%y", "%product"), ("%t ", "%scores "), ("%t,", "%scores,"),
                 ("%s ", "%sums "), ("%s,", "%sums,"), ("@main", "@entry"),
                 ("%zero", "%init")):  # fmt: skip
    RENAMED = RENAMED.replace(old, new)

# Winograd's algorithm, rows, rows alone, a matrix by rows, attention.
FORMS = """\
func.func public @main(%i: tensor<1x28x28x32xf32> {pestle.name = "i"},
                       %r: tensor<300x700xf32> {pestle.name = "r"},
                       %d: tensor<1x700xf32> {pestle.name = "d"},
                       %q: tensor<1x2x96x32xf32> {pestle.name = "q"})
    -> (tensor<1x28x28x32xf32>, tensor<300x700xf32>, tensor<300xf32>,
        tensor<1x300xf32>, tensor<1x2x96x32xf32>) {
  %w = stablehlo.constant dense<"0xWEIGHTS"> : tensor<3x3x32x32xf32>
  %c = stablehlo.convolution(%i, %w)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {stride = [1, 1], pad = [[1, 1], [1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} :
      (tensor<1x28x28x32xf32>, tensor<3x3x32x32xf32>)
      -> tensor<1x28x28x32xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%r init: %low) applies stablehlo.maximum
      across dimensions = [1] :
      (tensor<300x700xf32>, tensor<f32>) -> tensor<300xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] :
      (tensor<300xf32>) -> tensor<300x700xf32>
  %s = stablehlo.subtract %r, %mb : tensor<300x700xf32>
  %e = stablehlo.exponential %s : tensor<300x700xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add
      across dimensions = [1] :
      (tensor<300x700xf32>, tensor<f32>) -> tensor<300xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] :
      (tensor<300xf32>) -> tensor<300x700xf32>
  %p = stablehlo.divide %e, %tb : tensor<300x700xf32>
  %rr = stablehlo.multiply %r, %r : tensor<300x700xf32>
  %n = stablehlo.reduce(%rr init: %zero) applies stablehlo.add
      across dimensions = [1] :
      (tensor<300x700xf32>, tensor<f32>) -> tensor<300xf32>
  %y = stablehlo.dot_general %d, %r, contracting_dims = [1] x [1] :
      (tensor<1x700xf32>, tensor<300x700xf32>) -> tensor<1x300xf32>
  %a = "pestle.attention"(%q, %q, %q) <{scale = 0.2 : f64}> :
      (tensor<1x2x96x32xf32>, tensor<1x2x96x32xf32>, tensor<1x2x96x32xf32>)
      -> tensor<1x2x96x32xf32>
  return %c, %p, %n, %y, %a : tensor<1x28x28x32xf32>, tensor<300x700xf32>,
      tensor<300xf32>, tensor<1x300xf32>, tensor<1x2x96x32xf32>
}
"""

LINE = re.compile(r"^[0-9a-f]{32} \S+ \S+ \d+ \S+ \S+( [\w.]+=[\w.+]+)+$")


@unittest.skipUnless(HAS_LLVM, "there is no llvm plugin")
class Tune(Case):
    inputs = ["--input", "x=random:1", "--input", "w=random:2"]

    def setUp(self):
        super().setUp()
        self.write("net.mlir", NET)
        self.write("renamed.mlir", RENAMED)

    def run_net(self, *args, model="net.mlir", threads=2, cache="cache"):
        """The bytes of the outputs."""
        out = self.folder / "out"
        self.succeed("run", model, *self.inputs, "--threads", threads,
                     "--cache-dir", self.folder / cache, "--outputs", out,
                     *args)  # fmt: skip
        return [p.read_bytes() for p in sorted(out.iterdir())]

    def test_forms(self):
        """Choices of every form keep the bits."""
        weights = [(i * 37 % 101 - 50) / 500 for i in range(9 * 32 * 32)]
        text = struct.pack(f"<{len(weights)}f", *weights).hex().upper()
        self.write("forms.mlir", FORMS.replace("WEIGHTS", text))
        self.inputs = [part for i, name in enumerate("irdq")
                       for part in ("--input", f"{name}=random:{i}")]  # fmt: skip
        plain = self.run_net(model="forms.mlir")
        self.assertEqual(plain, self.run_net("--tune", "3", model="forms.mlir"))
        for kind in ("by=winograd box", "product", "vectors", "side", "rows"):
            self.assertIn(f" {kind}=", self.lock())

    def lock(self, name="pestle.lock"):
        return (self.folder / name).read_text()

    def forget(self, name="pestle.lock"):
        (self.folder / name).unlink()

    def test_same_bits(self):
        plain = self.run_net()
        tuned = self.run_net("--tune", "3")
        self.assertEqual(plain, tuned)
        text = self.lock()
        lines = text.splitlines()
        self.assertEqual(lines[0], "pestle.lock 2")
        self.assertEqual(lines[1:], sorted(lines[1:]))
        self.assertGreater(len(lines), 2)
        for line in lines[1:]:
            self.assertRegex(line, LINE)
        # Other processes and folders, the lock that is there or named.
        os.rename(self.folder / "pestle.lock", self.folder / "my.lock")
        for cache in ("cache", "second"):
            again = self.run_net("--lock", "my.lock", "--frozen", cache=cache)
            self.assertEqual(plain, again)
        # Other numbers of threads have lines of their own.
        for threads in (1, 3):
            self.assertEqual(plain, self.run_net(threads=threads))
            self.run_net("--lock", "my.lock", "--tune", "1", threads=threads)
            self.assertEqual(
                plain,
                self.run_net("--lock", "my.lock", "--frozen", threads=threads),
            )
        for line in lines[1:]:
            self.assertIn(line, self.lock("my.lock"))

    def test_any_decisions_give_the_same_bits(self):
        """What a lock may say, taken at random from what explain lists."""
        plain = self.run_net(threads=1)
        measured = []
        for _ in range(60):  # a busy machine measures less in a second
            if len(measured) > 8:
                break
            self.run_net("--tune", "1", threads=1)
            text = self.lock()
            measured = re.findall(r"(\w+):([\w+]+)=", text)
        self.assertGreater(len(measured), 8)
        for kind, name in measured[:16]:
            changed = re.sub(rf"\b{kind}=[\w+]+", f"{kind}={name}", text)
            self.write("pestle.lock", changed)
            self.assertEqual(plain, self.run_net(threads=1), (kind, name))

    def tune_all(self, *args):
        """Until each kernel has its times, however slow the build."""
        for _ in range(60):
            self.run_net("--tune", "2", *args)
            if " - form=" not in self.lock():
                return
        self.fail(self.lock())

    def test_stays_as_it_is(self):
        self.tune_all()
        before = self.lock()
        self.run_net("--tune", "2", cache="other")
        self.assertEqual(before, self.lock())

    def test_names_and_order_do_not_matter(self):
        self.tune_all()
        self.run_net("--frozen", model="renamed.mlir")
        before = self.lock()
        self.run_net("--tune", "2", model="renamed.mlir")
        self.assertEqual(before, self.lock())

    def test_frozen_names_what_is_missing(self):
        self.run_net("--tune", "1")
        lines = self.lock().splitlines()
        kept = [line for line in lines[1:] if "form=tile" not in line]
        gone = [line for line in lines[1:] if "form=tile" in line]
        self.assertTrue(gone)
        self.write("pestle.lock", "\n".join([lines[0], *kept, ""]))
        done = self.run_pestle("run", "net.mlir", *self.inputs, "--threads",
                               "2", "--frozen")  # fmt: skip
        self.assertEqual(done.returncode, 4)
        self.assertIn(f"lacks {len(gone)} kernel", done.stderr)
        for line in gone:
            self.assertIn(line.split()[0], done.stderr)
        # Not frozen, the usual schedule serves.
        self.run_net()

    def test_a_strange_line(self):
        self.run_net("--tune", "1")
        self.write("pestle.lock", re.sub(r"tile=\w+", "tile=99x9", self.lock()))
        done = self.run_pestle("run", "net.mlir", *self.inputs, "--threads", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("names choices that there are not", done.stderr)
        done = self.run_pestle("run", "net.mlir", *self.inputs, "--threads",
                               "2", "--frozen")  # fmt: skip
        self.assertEqual(done.returncode, 4)
        self.assertIn("does not fit", done.stderr)

    def test_the_key_of_the_plan(self):
        args = ["run", "net.mlir", *self.inputs, "--log", "debug", "--threads",
                "2"]  # fmt: skip
        self.run_net("--tune", "1")
        hit = self.run_pestle(*args)
        self.assertIn("hit on disk", hit.stderr)
        text = self.lock()
        self.write("pestle.lock", re.sub("vectors=\\d", "vectors=1", text))
        self.assertIn("compiled", self.run_pestle(*args).stderr)
        # A line of another machine changes nothing.
        self.write("pestle.lock", text + "0" * 32 + " llvm other 2 1 - a=b\n")
        self.assertIn("hit on disk", self.run_pestle(*args).stderr)

    def test_explain_tells_the_measured(self):
        self.tune_all()
        text = self.succeed("explain", "net.mlir", "--threads", "2")
        self.assertRegex(text, r"choice of tile: \S+( by the lock, not \S+)?, measured")
        self.assertRegex(text, r"lost: .* measured [+-]")

    def test_what_is_wrong(self):
        self.write("pestle.lock", "pestle.lock 2\nwhat is this\n")
        done = self.run_pestle("run", "net.mlir", *self.inputs)
        self.assertEqual(done.returncode, 4)
        self.assertIn("pestle.lock:2: expected KEY", done.stderr)
        self.assertIn("delete it", done.stderr)
        self.forget()
        for args, code in (
            (["--lock", "none.lock"], 4),
            (["--frozen"], 4),
            (["--tune", "0"], 2),
            (["--tune", "x"], 2),
            (["--tune", "1", "--frozen"], 2),
            (["--tune", "1", "--lock", "no/folder.lock"], 5),
        ):
            done = self.run_pestle("run", "net.mlir", *self.inputs, *args)
            self.assertEqual(done.returncode, code, (args, done.stderr))
            self.assertIn("pestle: error: ", done.stderr)
        done = self.run_pestle("compile", "net.mlir", "-o", "x.plan",
                               "--target", "cuda:sm_90a", "--tune",
                               "1")  # fmt: skip
        self.assertIn(done.returncode, (2, 3), done.stderr)

    def test_compile(self):
        self.succeed("compile", "net.mlir", "-o", "a.plan", "--tune", "1",
                     "--lock", "a.lock", "--threads", "2")  # fmt: skip
        self.assertIn("form=tile", self.lock("a.lock"))
        done = self.run_pestle("run", "a.plan", *self.inputs, "--lock", "a.lock")
        self.assertEqual(done.returncode, 2)
        self.succeed("run", "a.plan", *self.inputs)


if __name__ == "__main__":
    unittest.main()
