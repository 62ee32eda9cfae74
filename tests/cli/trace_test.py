#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--trace and PESTLE_TRACE: that the file is JSON, that spans nest on each
thread, and that what happened is in it."""

import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_test import Case, has_compiler  # noqa: E402

# Two products that do not become one kernel, large enough for two threads.
DOTS = """\
module @"two \\"dots\\"" {
  func.func public @main(%x: tensor<256x256xf32> {pestle.name = "x"})
      -> (tensor<256x256xf32>) {
    %y = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] :
        (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    %t = stablehlo.tanh %y : tensor<256x256xf32>
    %z = stablehlo.dot_general %t, %x, contracting_dims = [1] x [0] :
        (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    return %z : tensor<256x256xf32>
  }
}
"""


class Trace(Case):
    run_args = ["run", "dots.mlir", "--input", "x=0.01", "--threads", "2"]

    def setUp(self):
        super().setUp()
        self.write("dots.mlir", DOTS)

    def read(self, name="t.json"):
        return json.loads((self.folder / name).read_text())

    def spans(self, trace, category=None):
        spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        return [e for e in spans if category in (None, e["cat"])]

    def names(self, trace, category):
        return [e["name"] for e in self.spans(trace, category)]

    def check(self, trace):
        """What the format asks, and that spans of a thread nest."""
        threads = {}
        for event in trace["traceEvents"]:
            self.assertIn(event["ph"], "XMCsf")
            self.assertIsInstance(event["pid"], int)
            if event["ph"] != "X":
                continue
            begin = round(event["ts"] * 1000)
            end = begin + round(event["dur"] * 1000)
            self.assertTrue(event["cat"] and event["name"], event)
            self.assertGreaterEqual(begin, 0)
            threads.setdefault(event["tid"], []).append((begin, -end))
        for spans in threads.values():
            around = []
            self.assertEqual(spans, sorted(spans))
            for begin, minus_end in spans:
                while around and around[-1] <= begin:
                    around.pop()
                if around:
                    self.assertLessEqual(-minus_end, around[-1])
                around.append(-minus_end)
        named = {e["tid"] for e in trace["traceEvents"]
                 if e["name"] == "thread_name"}  # fmt: skip
        self.assertEqual(named, set(threads))
        self.assertEqual(trace["otherData"]["spans"], len(self.spans(trace)))
        self.assertEqual(trace["otherData"]["dropped"], 0)
        return threads

    def inside(self, inner, outer):
        begin, end = outer["ts"], outer["ts"] + outer["dur"]
        return begin <= inner["ts"] and inner["ts"] + inner["dur"] <= end

    def plan_kernels(self):
        text = self.succeed("dump", "dots.mlir", "--stage", "plan")
        names = re.findall(r"(?m)^ *\d+ +launch +(\S+)", text)
        self.assertGreater(len(names), 1, text)
        return names

    def test_memory_is_counted(self):
        self.succeed(*self.run_args, "--bench", "2", "--trace", "t.json")
        trace = self.read()
        counters = [e for e in trace["traceEvents"] if e["ph"] == "C"]
        self.assertTrue(counters)
        for event in counters:
            self.assertRegex(event["name"], "^memory of ")
            self.assertEqual(set(event["args"]), {"in use", "kept"})
            self.assertTrue(all(v >= 0 for v in event["args"].values()), event)
        times = [e["ts"] for e in counters]
        self.assertGreaterEqual(min(times), 0)
        # The product between both kernels lies in the arena while a run is under way.
        self.assertGreaterEqual(max(e["args"]["in use"] for e in counters), 256 * 256 * 4)

    def slice_at(self, events, arrow):
        """What a viewer ties an end of an arrow to: the innermost span of its thread that
        is open at its time."""
        around = [e for e in events if e["ph"] == "X" and e["tid"] == arrow["tid"]
                  and e["pid"] == arrow["pid"]
                  and e["ts"] <= arrow["ts"] < e["ts"] + e["dur"]]
        self.assertTrue(around, arrow)
        return max(around, key=lambda e: (e["ts"], -e["dur"]))

    def test_arrows_lead_to_other_threads(self):
        self.succeed(*self.run_args, "--bench", "20", "--trace", "t.json")
        events = self.read()["traceEvents"]
        starts = {e["id"]: e for e in events if e["ph"] == "s"}
        ends = {e["id"]: e for e in events if e["ph"] == "f"}
        self.assertEqual(set(starts), set(ends))
        at = {(e["tid"], e["ts"], e["cat"]) for e in events if e["ph"] == "X"}
        for i, start in starts.items():
            end = ends[i]
            self.assertNotEqual(start["tid"], end["tid"])
            self.assertLessEqual(start["ts"], end["ts"])
            self.assertEqual(end["bp"], "e")
            # From a kernel to its piece on another thread.
            self.assertIn((start["tid"], start["ts"], "kernel"), at)
            self.assertIn((end["tid"], end["ts"], "piece"), at)
            self.assertEqual(self.slice_at(events, start)["cat"], "kernel")
            self.assertEqual(self.slice_at(events, end)["cat"], "piece")
        pieces = {e["tid"] for e in self.spans({"traceEvents": events}, "piece")}
        self.assertEqual(bool(starts), len(pieces) > 1)

    def test_first_run(self):
        self.succeed(*self.run_args, "--bench", "3", "--trace", "t.json")
        trace = self.read()
        threads = self.check(trace)
        kernels = self.plan_kernels()
        self.assertEqual(self.names(trace, "import"), ["import"])
        passes = self.names(trace, "pass")
        for name in ("inline", "canonicalise", "clean_up", "fuse", "order"):
            self.assertEqual(passes.count(name), 1, passes)
        self.assertLess(passes.index("canonicalise"), passes.index("fuse"))
        self.assertIn("cache miss", self.names(trace, "cache"))
        self.assertIn("cache store", self.names(trace, "cache"))
        compiled = self.names(trace, "compile")
        self.assertEqual(compiled.count("plan memory"), 1, compiled)
        self.assertEqual(sorted(self.names(trace, "lower")), sorted(kernels))
        self.assertTrue(set(kernels) <= set(compiled), compiled)
        loads = self.spans(trace, "load")
        self.assertIn("create", [e["name"] for e in loads])
        loaded = [e["args"]["detail"] for e in loads
                  if e["name"] == "load kernel"]  # fmt: skip
        self.assertEqual(sorted(loaded), sorted(kernels))
        # A warm-up and three runs, with every kernel in its order in each.
        runs = self.spans(trace, "run")
        self.assertEqual(len(runs), 4)
        for run in runs:
            self.assertEqual(run["args"]["detail"], 'two "dots"')
            ran = [e for e in self.spans(trace, "kernel")
                   if self.inside(e, run)]  # fmt: skip
            self.assertEqual([e["name"] for e in ran], kernels)
            for kernel in ran:
                self.assertIn("dot_general", kernel["args"]["detail"])
                self.assertRegex(kernel["args"]["detail"],
                                 r"\nlocations:( \d+)+$")
                self.check_pieces(trace, kernel)
        # The second thread works too, sooner or later; it has a name.
        self.assertLessEqual(len(threads), 2)
        labels = {e["args"]["name"] for e in trace["traceEvents"]
                  if e["name"] == "thread_name"}  # fmt: skip
        self.assertTrue(labels <= {"caller", "pestle worker"}, labels)
        self.assertIn("caller", labels)

    def check_pieces(self, trace, kernel):
        """Its pieces lie inside of it and are all of its group loop."""
        pieces = [e for e in self.spans(trace, "piece")
                  if self.inside(e, kernel)]  # fmt: skip
        self.assertEqual({e["name"] for e in pieces}, {kernel["name"]})
        pieces.sort(key=lambda e: e["args"]["first"])
        at = 0
        for piece in pieces:
            self.assertEqual(piece["args"]["first"], at)
            at += piece["args"]["count"]
        self.assertEqual(at, kernel["args"]["group"])

    def test_second_run_and_plan(self):
        self.succeed(*self.run_args, "--save-plan", "d.plan")
        self.succeed(*self.run_args, env={"PESTLE_TRACE": "t.json"})
        trace = self.read()
        self.check(trace)
        hits = [e for e in self.spans(trace, "cache")
                if e["name"] == "cache hit"]  # fmt: skip
        self.assertEqual([e["args"]["detail"] for e in hits], ["hit on disk"])
        self.assertEqual(self.names(trace, "pass"), [])
        self.assertEqual(self.names(trace, "compile"), [])
        self.assertEqual(len(self.names(trace, "kernel")),
                         len(self.plan_kernels()))  # fmt: skip
        self.succeed("run", "d.plan", "--input", "x=1", "--trace", "p.json")
        trace = self.read("p.json")
        self.check(trace)
        self.assertIn("load plan", self.names(trace, "load"))

    def test_other_verbs(self):
        self.succeed("compile", "dots.mlir", "-o", "d.plan", "--trace", "c.json")
        self.assertIn("fuse", self.names(self.read("c.json"), "pass"))
        self.succeed("opt", "dots.mlir", "--passes", "cse", "--trace", "o.json")
        self.assertEqual(self.names(self.read("o.json"), "pass"), ["cse"])
        self.succeed("dump", "dots.mlir", "--stage", "fused", "--trace", "d.json")
        self.assertIn("fuse", self.names(self.read("d.json"), "pass"))

    def test_failure_is_traced(self):
        self.write("bad.mlir", "module {")
        done = self.run_pestle("run", "bad.mlir", "--trace", "t.json")
        self.assertEqual(done.returncode, 4, done.stderr)
        trace = self.read()
        self.check(trace)
        self.assertEqual(self.names(trace, "import"), ["import"])

    def test_option_wins(self):
        env = {"PESTLE_TRACE": "e.json"}
        self.succeed(*self.run_args, "--trace", "t.json", env=env)
        self.check(self.read())
        self.assertFalse((self.folder / "e.json").exists())

    def test_no_file_of_the_command_is_overwritten(self):
        for other in ("dots.mlir", "./dots.mlir"):
            sentence = "the trace goes to .*dots.mlir, which is the model"
            self.fail_with(2, sentence, *self.run_args, "--trace", other)
            self.fail_with(2, sentence, *self.run_args,
                           env={"PESTLE_TRACE": other})  # fmt: skip
        self.assertEqual((self.folder / "dots.mlir").read_text(), DOTS)
        args = ["compile", "dots.mlir", "-o", "p.plan", "--trace", "./p.plan"]
        for _ in range(2):
            self.fail_with(2, "which is what -o writes", *args)
            self.assertFalse((self.folder / "p.plan").exists())
        self.succeed(*args[:4])
        plan = (self.folder / "p.plan").read_bytes()
        self.fail_with(2, "which is what -o writes", *args)
        self.fail_with(2, "what --save-plan writes", *self.run_args,
                       "--save-plan", "p.plan", "--trace", "p.plan")  # fmt: skip
        self.fail_with(2, "which is the model", "run", "p.plan", "--input",
                       "x=1", "--trace", "p.plan")  # fmt: skip
        self.assertEqual((self.folder / "p.plan").read_bytes(), plan)
        self.write("x.npy", "mine")
        self.fail_with(2, "which is an input", "run", "dots.mlir", "--input",
                       "x=x.npy", "--trace", "x.npy")  # fmt: skip
        self.assertEqual((self.folder / "x.npy").read_text(), "mine")

    def test_unwritable_file(self):
        (self.folder / "folder").mkdir()
        for path in ("missing/t.json", "folder"):
            self.fail_with(5, f"'{path}'", *self.run_args, "--trace", path)

    def test_unwritable_file_of_the_variable_costs_only_a_warning(self):
        text = self.succeed(*self.run_args)
        (self.folder / "folder").mkdir()
        for path in ("missing/t.json", "folder", "/dev/full"):
            done = self.run_pestle(*self.run_args, env={"PESTLE_TRACE": path})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, text)
            self.assertRegex(done.stderr, rf"^pestle: warn: .*'{path}'")
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_file_is_valid_before_the_end(self):
        """A process that is killed leaves an empty trace, no half one."""
        import signal
        import subprocess
        import time

        from cli_test import PESTLE

        process = subprocess.Popen(
            [PESTLE, *self.run_args, "--bench", "1000000", "--trace", "t.json"],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 600
        while not (self.folder / "t.json").exists():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertEqual(self.read()["traceEvents"], [])


if __name__ == "__main__":
    if not has_compiler():
        print("the build has no compiler")
        sys.exit(77)
    unittest.main()
