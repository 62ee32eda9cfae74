#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--json: stdout of every verb is one object, of failures too, and says what the text
says."""
import json
import re
import unittest

from stranger import SOURCE, Folder


class Json(Folder):
    def object(self, command, code=0):
        got, out, err = self.shell(command)
        self.assertEqual(got, code, (command, out, err))
        facts = json.loads(out)
        self.assertIsInstance(facts, dict)
        return facts

    def test_each_verb_takes_it(self):
        table = (SOURCE / "tools/pestle/command.c").read_text(encoding="utf-8")
        verbs = re.findall(r'^    \{"([a-z-]+)", [A-Z],', table, re.M)
        self.assertGreater(len(verbs), 13)
        for verb in verbs:
            facts = self.object(f"pestle {verb} --json --log nonsense", code=2)
            self.assertEqual(facts["error"]["code"], "INVALID_ARGUMENT")
            self.assertEqual(facts["error"]["exit"], 2)
            self.assertIn("--log wants", facts["error"]["message"])

    def test_version(self):
        facts = self.object("pestle version --json")
        _, text, _ = self.shell("pestle version")
        self.assertEqual(text.split(), ["pestle", facts["version"], facts["build"]])
        for wrong in ("--jsno", "--json x"):
            code, _, error = self.shell(f"pestle version {wrong}")
            self.assertEqual((code, "no argument but --json" in error), (2, True), error)

    def test_run(self):
        facts = self.object("pestle run model.onnx --input x=x.npy --json")
        (y,) = facts["outputs"]
        self.assertEqual((y["name"], y["dtype"], y["dims"]), ("y", "f32", [2, 2]))
        self.assertEqual([float(v) for v in y["first"]], [6.25, 8, 16, 15.5])
        self.assertEqual((float(y["min"]), float(y["max"])), (6.25, 16))

    def test_run_measured(self):
        facts = self.object("pestle run model.onnx --input x=x.npy --bench 3 --json")
        self.assertEqual(len(facts["bench"]["run_ms"]), 3)
        facts = self.object("pestle run model.onnx --input x=x.npy --profile --json")
        self.assertTrue(facts["profile"]["steps"])

    def test_compare(self):
        self.shell("pestle run model.onnx --input x=x.npy --outputs o")
        facts = self.object("pestle run model.onnx --input x=x.npy --compare o --json")
        self.assertEqual(facts["compare"][0]["agrees"], True)
        facts = self.object("pestle run model.onnx --input x=2x3xf32=1 --compare o --json",
                            code=1)
        self.assertEqual(facts["compare"][0]["differing"], 4)
        self.assertEqual(facts["compare"][0]["elements"], 4)

    def test_models_and_plans(self):
        facts = self.object("pestle info model.onnx --json")
        self.assertEqual(facts["inputs"][0]["dims"], ["batch", 3])
        facts = self.object("pestle compile model.onnx --dim batch=1,2 -o m.plan --json")
        self.assertEqual((facts["file"], facts["plans"]), ("m.plan", 2))
        self.assertEqual(facts["bytes"], (self.folder / "m.plan").stat().st_size)
        facts = self.object("pestle opt model.onnx --json")
        self.assertIn("func.func", facts["module"])
        facts = self.object("pestle dump model.onnx --dim batch=2 --stage kernels --json")
        self.assertTrue(all(t["stage"] == "kernels" and t["text"] for t in facts["texts"]))
        facts = self.object("pestle explain model.onnx --dim batch=2 --json")
        self.assertIn(True, [s["is_kernel"] for s in facts["sections"]])
        facts = self.object("pestle view model.onnx --dim batch=2 --no-run -o v.html --json")
        self.assertEqual(facts["bytes"], (self.folder / "v.html").stat().st_size)

    def test_comparing(self):
        facts = self.object("pestle diff model.onnx ref llvm --dim batch=2 --json")
        self.assertEqual((facts["agree"], facts["outputs"]), (True, 1))
        facts = self.object("pestle reduce model.onnx --dim batch=2 --json "
                            "--check 'grep -q maximum' -o small.mlir")
        self.assertLess(facts["ops"], facts["ops_before"])

    def test_bench(self):
        facts = self.object("pestle bench model.onnx --dim batch=2 --duration 0.1 "
                            "--warm-up 0 --json")
        self.assertGreater(facts["sides"][0]["runs"], 0)

    def test_the_machine(self):
        facts = self.object("pestle devices --json")
        self.assertEqual([d["name"] for d in facts["devices"] if d["is_default"]], ["llvm"])
        self.assertEqual([d["is_interpreter"] for d in facts["devices"]
                          if d["name"] == "ref"], [True])
        facts = self.object("pestle plugins list --json")
        used = {b["name"]: b for b in facts["backends"] if b["is_used"]}
        self.assertEqual(used["llvm"]["devices"][0]["device"], "cpu:0")
        facts = self.object("pestle plugins test llvm --ops add --json")
        self.assertEqual((facts["wrong"], {c["op"] for c in facts["cells"]}), (0, {"add"}))
        facts = self.object("pestle cache stats --json")
        self.assertEqual(facts["folder"], str(self.folder / "cache"))
        facts = self.object("pestle doctor --json")
        self.assertIn("ok", [f["verdict"] for f in facts["findings"]])

    def test_cache(self):
        self.shell("pestle run model.onnx --input x=x.npy")
        facts = self.object("pestle cache list --json")
        self.assertTrue(facts["entries"][0]["is_sound"])
        facts = self.object("pestle cache clear --json")
        self.assertGreaterEqual(facts["removed"], 1)

    def test_failures(self):
        facts = self.object("pestle run nothing.onnx --json", code=4)
        self.assertIn("nothing.onnx", facts["error"]["message"])
        facts = self.object("pestle run model.onnx --json", code=2)
        self.assertEqual(list(facts), ["error"])


if __name__ == "__main__":
    unittest.main()
