#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle explain: each reason of passes/fuse_reasons.def on a module of its own
(explain/CODE.mlir), layouts, schedules, the cache, and its options."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import ADD, SOURCE, Case, has_compiler  # noqa: E402

CASES = SOURCE / "tests/cli/explain"

# What no module is known to show: another rule answers first, or the op is
# stored for another reason already; along-k is of GPUs (tests/golden/passes/align_rows).
UNSEEN = {
    "many-results", "own-loops", "source", "left-transpose", "dot-reshape",
    "dot-slice", "bias", "gather-again", "many-readers", "second-result",
    "result-shape", "order", "one-place", "other-shape", "composite-rows",
    "no-fuse", "along-k", "widened",
}  # fmt: skip

CONV = """\
func.func @main(%x: tensor<1x8x16x16xf32>, %w: tensor<16x8x3x3xf32>)
    -> tensor<1x16x14x14xf32> {
  %c = stablehlo.convolution(%x, %w)
      dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} :
      (tensor<1x8x16x16xf32>, tensor<16x8x3x3xf32>) -> tensor<1x16x14x14xf32>
  %r = stablehlo.tanh %c : tensor<1x16x14x14xf32>
  return %r : tensor<1x16x14x14xf32>
}
"""


ATTENTION = """\
func.func @main(%q: tensor<1x12x1024x64xf32>, %k: tensor<1x12x1024x64xf32>,
    %v: tensor<1x12x1024x64xf32>) -> tensor<1x12x1024x64xf32> {
  %0 = "pestle.attention"(%q, %k, %v) <{scale = 0.125 : f64}> :
      (tensor<1x12x1024x64xf32>, tensor<1x12x1024x64xf32>,
       tensor<1x12x1024x64xf32>) -> tensor<1x12x1024x64xf32>
  return %0 : tensor<1x12x1024x64xf32>
}
"""


def read_reasons():
    """code -> sentence."""
    text = (SOURCE / "passes/fuse_reasons.def").read_text()
    rows = re.findall(r'^PESTLE_FUSE_REASON\(\w+, "([^"]+)", "([^"]+)"', text, re.M)
    return dict(rows)


class Scratch(Case):
    @unittest.skipUnless(has_compiler(), "no backend that compiles")
    def test_fits_every_cpu(self):
        """Schedules take shares of the L2, and scratch is as large: one without
        any takes a hundred times as long."""
        path = self.write("attention.mlir", ATTENTION)
        for cpu in ("x86-64-v3", "znver4", "sapphirerapids"):
            with self.subTest(cpu):
                text = self.succeed("explain", path, "--target-cpu", cpu)
                self.assertIn("attention", text)
                self.assertNotIn("nothing is kept in scratch", text)


class Fusion(Case):
    def test_each_reason(self):
        reasons = read_reasons()
        seen = {path.stem for path in CASES.glob("*.mlir")}
        self.assertGreater(len(seen), 20)
        self.assertEqual(seen | UNSEEN, set(reasons))
        self.assertEqual(seen & UNSEEN, set())
        for code in sorted(seen):
            with self.subTest(code):
                path = CASES / f"{code}.mlir"
                text = self.succeed("explain", path, "--device", "ref")
                between = re.search(r"(?m)^  between .*", text)
                self.assertIsNotNone(between, text)
                self.assertRegex(between[0], rf"\b\d+ {code}\b")
                # The sentence stands behind the value, with an op's name.
                words = re.escape(reasons[code]).replace("@", r"[\w.]+")
                self.assertRegex(
                    text,
                    r"(?m)^  reads     tensor<\S+> of \w+ from kernel \d+\n"
                    rf"            not fused: {words}$",
                )

    def test_reads_name_kernels_that_are_there(self):
        text = self.succeed("explain", CASES / "columns.mlir")
        numbers = [int(n) for n in re.findall(r"(?m)^kernel (\d+): ", text)]
        self.assertEqual(numbers, list(range(len(numbers))))
        for reader in re.findall(r"(?s)^kernel \d+: .*?\n\n", text, re.M):
            own = int(re.match(r"kernel (\d+)", reader)[1])
            for number in re.findall(r"from kernel (\d+)", reader):
                self.assertLess(int(number), own)

    def test_same_plan_as_a_run(self):
        """Explaining changes nothing: the kernels are those of the dump."""
        path = CASES / "result-limit.mlir"
        names = re.findall(r"(?m)^kernel \d+: (\S+)$",
                           self.succeed("explain", path))  # fmt: skip
        plan = self.succeed("dump", path, "--stage", "plan")
        launched = re.findall(r"(?m)^ *\d+ +launch +(\S+)", plan)
        self.assertEqual(names, launched)

    def test_no_fuse(self):
        path = CASES / "two-loop-nests.mlir"
        text = self.succeed("explain", path, "--no-fuse")
        self.assertRegex(text, r"between   2 values: 2 no-fuse")
        self.assertIn("not fused: fusion is switched off", text)


class Kernels(Case):
    def test_one(self):
        path = CASES / "two-loop-nests.mlir"
        whole = self.succeed("explain", path)
        parts = whole.split("\n\n")
        kernels = [p for p in parts if p.startswith("kernel ")]
        self.assertEqual(len(kernels), 2)
        for number, kernel in enumerate(kernels):
            name = re.match(r"kernel \d+: (\S+)", kernel)[1]
            for wanted in (number, name):
                one = self.succeed("explain", path, "--kernel", wanted)
                self.assertEqual(one, kernel + "\n")
        for wrong in ("2", "-1", "tanh", "summary", ""):
            self.fail_with(2, f"no kernel '{wrong}': the model has 2",
                           "explain", path, "--kernel", wrong)  # fmt: skip

    def test_schedule_and_target(self):
        path = CASES / "two-loop-nests.mlir"
        llvm = self.run_pestle("plugins").stdout
        if not re.search(r"(?m)^llvm ", llvm):
            self.skipTest("there is no backend llvm")
        text = {
            cpu: self.succeed("explain", path, "--target-cpu", cpu)
            for cpu in ("x86-64-v3", "x86-64-v4")
        }
        self.assertIn("vectors of 32 bytes, 16 registers", text["x86-64-v3"])
        self.assertRegex(text["x86-64-v3"], r"tile of \d+ rows x 2 vectors of 8")
        self.assertIn("vectors of 64 bytes, 32 registers", text["x86-64-v4"])
        self.assertRegex(text["x86-64-v4"], r"tile of 6 rows x 4 vectors of 16")
        self.assertRegex(text["x86-64-v4"], r"rejected 6 rows x 3 vectors of 16")
        self.assertRegex(text["x86-64-v4"], r"bound by arithmetic \(a core does")

    def test_memory_bound(self):
        self.write("big.mlir", ADD.replace("2x3", "1024x1024"))
        text = self.succeed("explain", "big.mlir", "--target-cpu", "x86-64-v3")
        self.assertIn("about 1.0 M operations, 12.6 MB of arguments", text)
        self.assertRegex(text, r"0\.1 a byte, bound by memory \(.*from memory\)")
        self.assertIn("schedule  map: nothing is reduced\n", text)

    def test_strict_sums(self):
        path = CASES / "gather.mlir"
        sentence = "adds one element after the other: strict numerics"
        text = self.succeed("explain", path, "--numerics", "strict")
        self.assertIn(sentence, text)
        self.assertNotIn(sentence, self.succeed("explain", path))


class Layouts(Case):
    def test_convolution(self):
        self.write("conv.mlir", CONV)
        text = self.succeed("explain", "conv.mlir")
        layouts = text.split("\n\n")[1]
        self.assertRegex(layouts, r"convolution: works on \[b,0,1,f\] instead of "
                                  r"\[b,f,0,1\]")  # fmt: skip
        self.assertRegex(layouts, r"tanh: works on the turned tensor")
        self.assertRegex(layouts, r"return: reads a transposed copy")
        self.assertRegex(layouts, r"convolution: reads a transposed copy: here "
                                  r"data comes in")  # fmt: skip

    def test_nothing(self):
        self.assertIn("layouts\n  nothing was turned",
                      self.succeed("explain", "add.mlir"))  # fmt: skip


class WhyMissed(Case):
    run_args = ["run", "add.mlir", "--input", "x=1", "--input", "y=2"]

    def cache_of(self, *args, **options):
        return self.succeed("explain", "add.mlir", *args, **options).split(
            "\n\n")[0]  # fmt: skip

    def test_cache(self):
        self.assertIn("none of its 0 plans is of this module", self.cache_of())
        # Explaining stores nothing.
        self.assertIn("none of its 0 plans is of this module", self.cache_of())
        self.succeed(*self.run_args)
        self.assertIn("the plan is in the cache", self.cache_of())
        text = self.cache_of("--numerics", "strict")
        self.assertEqual(text.count("differs"), 1, text)
        self.assertIn("differs: numerics: 'strict' here, 'default' there", text)
        text = self.cache_of("--no-fuse", "--skip-passes", "cse")
        self.assertIn("differs: fusion: '0' here, '1' there", text)
        self.assertIn("differs: passes left out: 'cse' here, '' there", text)
        # The nearest of several.
        self.succeed(*self.run_args, "--numerics", "strict", "--no-fuse")
        text = self.cache_of("--numerics", "strict")
        self.assertEqual(text.count("differs"), 1, text)
        text = self.cache_of("--strict")
        self.assertIn("differs: strict: '1' here, '0' there", text)

    def test_other_names_and_shapes(self):
        self.succeed(*self.run_args)
        self.write("add.mlir", ADD.replace('"z"', '"sum"'))
        text = self.cache_of()
        self.assertIn("differs: output: 'sum' here, 'z' there", text)
        self.assertEqual(text.count("differs"), 1, text)
        self.write("add.mlir", ADD.replace("2x3", "4x3"))
        self.assertIn("none of its 1 plans is of this module", self.cache_of())

    def test_other_device(self):
        self.succeed(*self.run_args)
        if "llvm" not in self.succeed("plugins"):
            self.skipTest("there is one backend alone")
        text = self.cache_of("--device", "ref")
        self.assertRegex(text, r"differs: backend and its build: 'ref .*llvm")

    def test_without(self):
        text = self.cache_of(env={"PESTLE_NO_CACHE": "1"})
        self.assertIn("there is no cache on disk", text)

    def test_damaged_entries_are_not_counted(self):
        self.succeed(*self.run_args)
        for path in (self.folder / "cache").rglob("*"):
            if path.is_file() and path.stat().st_size:
                path.write_bytes(path.read_bytes()[:40])
        self.assertIn("none of its 0 plans", self.cache_of())


class CommandLine(Case):
    def test_errors(self):
        self.fail_with(2, "wants a model", "explain")
        self.fail_with(4, "No such file", "explain", "missing.mlir")
        self.fail_with(2, "no option 'stage'", "explain", "add.mlir", "--stage",
                       "plan")  # fmt: skip
        self.succeed("compile", "add.mlir", "-o", "a.plan")
        self.fail_with(4, "a compiled plan", "explain", "a.plan")


if __name__ == "__main__":
    if not has_compiler():
        print("the build has no compiler")
        sys.exit(77)
    unittest.main()
