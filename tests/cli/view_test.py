#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle view: that the page says what the compiler says, that a launch stands by its
op, the forms for other programs; and in a browser, where there is one, that a reader
can pan, zoom, search, open and compare, with few elements however large the graph."""

import atexit
import html.parser
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import browser  # noqa: E402
from cli_test import Case, has_compiler  # noqa: E402

# Two products that are no kernel together, and three sums that become one of four
# launches: a concatenation takes one a part.
MODEL = """\
module @parts {
  func.func public @main(%x: tensor<8x16xf32> {pestle.name = "x"})
      -> (tensor<16x16xf32> {pestle.name = "y"}) {
    %w = stablehlo.constant dense<0.5> : tensor<16x16xf32>
    %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
        (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %b = stablehlo.tanh %a : tensor<8x16xf32>
    %c = stablehlo.dot_general %b, %w, contracting_dims = [1] x [0] :
        (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %d = stablehlo.add %c, %a : tensor<8x16xf32>
    %e = stablehlo.concatenate %d, %b, dim = 0 :
        (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
    return %e : tensor<16x16xf32>
  }
}
"""

LOOP = """\
func.func public @main(%x: tensor<512xf32> {pestle.name = "x"}) -> (tensor<512xf32>) {
  %n = stablehlo.constant dense<3> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %n, %s = %x) : tensor<i32>, tensor<512xf32>
  cond {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %c = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.subtract %i, %one : tensor<i32>
    %t = stablehlo.tanh %s : tensor<512xf32>
    stablehlo.return %j, %t : tensor<i32>, tensor<512xf32>
  }
  return %r#1 : tensor<512xf32>
}
"""


def long_model(count):
    """|count| ops in a ladder of two rails with rungs."""
    lines = ["func.func public @main(%x: tensor<4xf32>) -> (tensor<4xf32>) {"]
    a, b = "x", "x"
    for i in range(count // 2):
        lines.append(f"  %a{i} = stablehlo.add %{a}, %{b} : tensor<4xf32>")
        lines.append(f"  %b{i} = stablehlo.multiply %{b}, %{a} : tensor<4xf32>")
        a, b = f"a{i}", f"b{i}"
    lines += [f"  %z = stablehlo.add %{a}, %{b} : tensor<4xf32>",
              "  return %z : tensor<4xf32>", "}"]
    return "\n".join(lines)


class Outside(html.parser.HTMLParser):
    """What a page asks for beside itself."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("src", "href") and not (value or "").startswith("data:"):
                self.found.append((tag, value))


# Limits of the machine are measured once for all tests.
CACHE = tempfile.mkdtemp(prefix="pestle-view-")
atexit.register(shutil.rmtree, CACHE, True)
ALWAYS = ["--threads", "1", "--cache-dir", CACHE]


class View(Case):
    def page(self, *args, name="v.html"):
        self.succeed("view", *args, "-o", name, *ALWAYS)
        return self.folder / name

    def reports(self, path):
        text = path.read_text(encoding="utf-8")
        data = re.search(r'<script type="application/json" id="data">(.*?)</script>',
                         text, re.S)[1]
        return json.loads(data)["reports"]

    def test_one_file_without_network(self):
        self.write("m.mlir", MODEL)
        path = self.page("m.mlir", "--no-run")
        outside = Outside()
        outside.feed(path.read_text(encoding="utf-8"))
        self.assertEqual(outside.found, [])
        for word in ("http://", "https://", "import(", "fetch(", "@import", "url("):
            self.assertNotIn(word, path.read_text(encoding="utf-8"))

    def op(self, graph, i):
        return graph["ops"][graph["nodes"][i][0]]

    def test_launches_stand_by_their_ops(self):
        self.write("m.mlir", MODEL)
        (report,) = self.reports(self.page("m.mlir", "--no-run"))
        fused = report["graphs"][-1]
        launches = [s for s in report["steps"] if s["kind"] == "kernel"]
        plan = self.succeed("dump", "m.mlir", "--stage", "plan", "--threads", "1")
        self.assertEqual([s["kernel"] for s in launches],
                         re.findall(r"(?m)^ *\d+ +launch +(\S+)", plan))
        for step in launches:
            node = fused["nodes"][step["node"]]
            called = node[6] or self.op(fused, step["node"])
            stem = step["kernel"].rsplit("_", 1)[0]
            self.assertTrue(called.startswith(stem), (called, step["kernel"]))
        # More launches than ops, and each op that computes something has one.
        nodes = {s["node"] for s in launches}
        self.assertLess(len(nodes), len(launches) + 1)
        entry = next(i for i in range(len(fused["nodes"])) if self.op(fused, i) == "func")
        made = [i for i, n in enumerate(fused["nodes"])
                if n[3] == entry and self.op(fused, i) == "fusion"]
        self.assertEqual(set(made) - nodes, set())

    def test_stages_of_every_kernel(self):
        self.write("m.mlir", MODEL)
        (report,) = self.reports(self.page("m.mlir", "--no-run"))
        texts = report["texts"]
        for step in report["steps"]:
            if step["kind"] != "kernel":
                continue
            stages = report["kernels"][step["kernel"]]
            self.assertTrue(texts[stages[0]].startswith("kernel "), texts[stages[0]])
            self.assertIn("nest ", texts[stages[1]])
            if report["backend"] == "llvm":  # also of kernels that are like another
                self.assertIn("define", texts[stages[3]])
                self.assertTrue(texts[stages[4]].strip())
        asked = self.succeed("explain", "m.mlir", "--threads", "1", "--kernel", "0")
        first = report["kernels"][report["steps"][0]["kernel"]]
        self.assertEqual(texts[first[0]].strip(), asked.strip())
        chapters = report["explain"]
        self.assertIn("summary", chapters[::2])

    def test_times_and_memory(self):
        self.write("m.mlir", MODEL)
        (report,) = self.reports(self.page("m.mlir"))
        profile, steps = report["profile"], report["steps"]
        self.assertEqual({e[0] for e in profile["events"]},
                         set(range(len(steps))))
        for (_, begin, end), after in zip(profile["events"], profile["events"][1:]):
            self.assertLessEqual(begin, end)
            self.assertLessEqual(end, after[1] + 1e-6)
        for step in steps:
            for storage, _, offset, size, _ in step["bindings"]:
                if storage == 0:
                    self.assertLessEqual(offset + size, report["arena"])
        self.assertIs(report["random_inputs"], True)
        self.assertIsNone(self.reports(self.page("m.mlir", "--no-run"))[0]["profile"])

    def test_graphs_of_passes(self):
        self.write("m.mlir", MODEL)
        (report,) = self.reports(self.page("m.mlir", "--no-run"))
        names = [g["name"] for g in report["graphs"]]
        self.assertEqual(names[0], "as read")
        self.assertEqual(names[-1], "fused")
        changed = [name for name, is_changed in report["passes"] if is_changed]
        self.assertEqual(names[:-1], changed[:len(names) - 1])
        first = report["graphs"][0]
        ops = [self.op(first, i) for i in range(len(first["nodes"]))]
        self.assertEqual([o for o in ops if o not in ("func", "arg", "return")],
                         ["constant", "dot_general", "tanh", "dot_general", "add",
                          "concatenate"])
        # Each op that is no constant says where in the file it stands.
        for n, op in zip(first["nodes"], ops):
            if op not in ("func", "arg", "return"):
                self.assertRegex(n[7], r'^m.mlir":\d+:\d+$')
        by_name = {n[1]: i for i, n in enumerate(first["nodes"])}
        for name, reads in (("a", "xw"), ("b", "a"), ("c", "bw"), ("d", "ca"), ("e", "db")):
            operands = [first["nodes"][i][1] for i in first["nodes"][by_name[name]][5]]
            self.assertEqual("".join(operands), reads)
        self.assertEqual(first["types"][first["nodes"][by_name["e"]][2]],
                         "tensor<16x16xf32>")

    def test_regions(self):
        self.write("m.mlir", LOOP)
        (report,) = self.reports(self.page("m.mlir", "--no-run"))
        first = report["graphs"][0]
        loop = next(i for i in range(len(first["nodes"])) if self.op(first, i) == "while")
        inner = [self.op(first, i) for i, n in enumerate(first["nodes"]) if n[3] == loop]
        self.assertEqual(inner, ["arg", "arg", "constant", "compare", "return",
                                 "subtract", "tanh", "return"])
        last = first["nodes"][-1]
        self.assertEqual(last[5], [loop])

    def test_plan(self):
        self.write("m.mlir", MODEL)
        self.succeed("compile", "m.mlir", "-o", "m.plan", "--threads", "1")
        (report,) = self.reports(self.page("m.plan"))
        self.assertEqual(report["graphs"], [])
        self.assertGreater(len(report["profile"]["events"]), 1)
        self.assertTrue(all(s["node"] == -1 for s in report["steps"]))

    def test_hostile_names(self):
        self.write("m.mlir", MODEL.replace('"x"', '"</script><b>\\22\\\\"'))
        (report,) = self.reports(self.page("m.mlir", "--no-run"))
        self.assertEqual(report["inputs"][0]["name"], '</script><b>"\\')

    def test_other_forms(self):
        self.write("m.mlir", MODEL)
        self.succeed("view", "m.mlir", "-o", "g.dot")
        dot = (self.folder / "g.dot").read_text()
        self.assertTrue(dot.startswith('digraph "m.mlir" {'))
        self.assertEqual(dot.count("{"), dot.count("}"))
        self.assertIn('label="x\\ntensor<8x16xf32>"', dot)
        self.succeed("view", "m.mlir", "-o", "g.onnx")
        try:
            import onnx
        except ImportError:
            self.skipTest("this Python has no onnx")
        model = onnx.load(self.folder / "g.onnx")
        onnx.checker.check_model(model)
        graph = model.graph
        self.assertEqual([i.name for i in graph.input], ["x"])
        self.assertEqual(len(graph.output), 1)
        made = {o for n in graph.node for o in n.output} | {"x"}
        for n in graph.node:
            self.assertTrue(set(n.input) <= made, n)
        self.assertIn("pestle", {n.domain for n in graph.node})

    def test_wrong_command_lines(self):
        self.write("m.mlir", MODEL)
        self.succeed("compile", "m.mlir", "-o", "m.plan")
        self.fail_with(2, "wants -o FILE.html", "view", "m.mlir")
        self.fail_with(2, "wants one model or plan, not 2", "view", "m.mlir", "m.mlir",
                       "-o", "v.html")
        self.fail_with(2, "--compare' wants two models or plans, not 1", "view", "--compare", "m.mlir", "-o",
                       "v.html")
        self.fail_with(2, "which has no graph any more", "view", "m.plan", "-o", "v.dot")
        self.fail_with(2, "is the model itself", "view", "m.mlir", "-o", "m.mlir")


@unittest.skipUnless(browser.find(), "there is no browser (chromium in PATH, or "
                     "PESTLE_BROWSER)")  # fmt: skip
class InABrowser(Case):
    def setUp(self):
        super().setUp()
        self.browser = browser.Browser(browser.find())
        self.addCleanup(self.browser.close)

    def open(self, *args):
        self.succeed("view", *args, "-o", "v.html", *ALWAYS)
        self.browser.open(self.folder / "v.html")
        self.assertEqual(self.browser.errors(), [])

    def value(self, text):
        return self.browser.run(text)

    def window(self):
        return self.value("(s => [s.left, s.top, s.scale])(pestleView.sheets[0])")

    def middle(self):
        box = self.value("(b => [b.x + b.width / 2, b.y + b.height / 2])"
                         "(pestleView.sheets[0].canvas.getBoundingClientRect())")
        return box[0], box[1]

    def elements(self):
        return self.value("document.querySelectorAll('*').length")

    def test_a_reader(self):
        self.write("m.mlir", MODEL)
        self.open("m.mlir")
        b = self.browser
        names = self.value("[...document.querySelectorAll('[role=tab]')]"
                           ".map(t => t.textContent)")
        self.assertEqual(names, ["Graph", "Timeline", "Kernels", "Explain"])
        # Search, and what is found is selected and explained beside it.
        b.key("/")
        b.type("concatenate")
        b.key("Enter")
        self.assertRegex(self.value("document.getElementById('found').textContent"),
                         r"1 of \d+")
        details = self.value("document.getElementById('details').textContent")
        self.assertIn("concatenate", details)
        self.assertIn("Assembly", details)
        self.assertIn("kernel", details)
        # A click on a stage shows its text.
        self.value("[...document.querySelectorAll('.stages button')]"
                   ".find(x => x.textContent == 'Schedule').click()")
        self.assertIn("nest ", self.value(
            "document.querySelector('.stages + div').textContent"))
        # Keys walk along edges; each tab opens; both themes paint.
        self.value("document.activeElement.blur(), pestleView.sheets[0].canvas.focus()")
        before = self.value("pestleView.sheets[0].selected")
        b.key("ArrowUp")
        self.assertNotEqual(self.value("pestleView.sheets[0].selected"), before)
        for name in names[1:]:
            self.value(f"pestleView.tab('{name}')")
            b.frame()
        # What is live fits the arena.
        most, arena = self.value("[pestleView.time.sides[0].most, "
                                 "pestleView.reports[0].arena]")
        self.assertGreater(most, 0)
        self.assertLessEqual(most, arena)
        theme = self.value("document.documentElement.dataset.theme")
        self.value("document.getElementById('theme').click()")
        self.assertNotEqual(self.value("document.documentElement.dataset.theme"), theme)
        b.frame()
        self.assertEqual(b.errors(), [])
        self.assertLessEqual(self.elements(), 2000)

    def test_a_selection_outlives_a_pass(self):
        self.write("m.mlir", MODEL)
        self.open("m.mlir", "--no-run")
        sheet = "pestleView.sheets[0]"
        self.value("pestleView.showGraph(pestleView.sheets[0], pestleView.reports[0], 0)")
        self.value(f"{sheet}.select({sheet}.level.titles.indexOf('tanh')), 0")
        fused = self.value("pestleView.reports[0].graphs.findIndex(g => g.label == 'fused')")
        self.value(f"pestleView.showGraph({sheet}, pestleView.reports[0], {fused})")
        self.assertIn("tanh", self.value(f"pestleView.innerOf({sheet}.level.graph, "
                                         f"{sheet}.level.ids[{sheet}.selected])"))

    def test_graph_within(self):
        self.write("m.mlir", LOOP)
        self.open("m.mlir", "--no-run")
        self.value("pestleView.showGraph(pestleView.sheets[0], pestleView.reports[0], 0)")
        self.value("pestleView.sheets[0].select(pestleView.sheets[0].level.titles"
                   ".indexOf('while')); pestleView.sheets[0].canvas.focus()")
        self.browser.key("Enter", "\r")
        self.assertIn("tanh", self.value("pestleView.sheets[0].level.titles"))
        self.browser.key("Backspace")
        self.assertIn("while", self.value("pestleView.sheets[0].level.titles"))
        self.assertEqual(self.browser.errors(), [])

    def test_ten_thousand_ops(self):
        self.write("m.mlir", long_model(10000))
        self.open("m.mlir", "--no-run", "--no-fuse", "--device", "ref")
        b = self.browser
        self.value("pestleView.showGraph(pestleView.sheets[0], pestleView.reports[0], 0)")
        b.frame()
        self.assertGreaterEqual(self.value("pestleView.sheets[0].level.count"), 10000)
        x, y = self.middle()
        before = self.window()
        b.drag(x, y, -90, -120)
        after = self.window()
        self.assertAlmostEqual(after[0] - before[0], 90 / before[2], 3)
        self.assertAlmostEqual(after[1] - before[1], 120 / before[2], 3)
        b.wheel(x, y, 400)
        self.assertLess(self.window()[2], after[2])
        self.value("pestleView.sheets[0].fit()")
        b.frame()
        self.assertTrue(self.value("pestleView.sheets[0].isCoarse()"))
        self.assertLessEqual(self.elements(), 2000)
        # A click into a cell goes where single ops are seen.
        b.click(x, y)
        self.assertFalse(self.value("pestleView.sheets[0].isCoarse()"))
        b.key("/")
        b.type("b4321 multiply")
        b.key("Enter")
        self.assertEqual(self.value("document.getElementById('found').textContent"),
                         "1 of 1")
        self.assertIn("%b4321", self.value("document.getElementById('details').textContent"))
        for tab in ("Timeline", "Kernels"):
            self.value(f"pestleView.tab('{tab}')")
            b.frame()
            self.assertLessEqual(self.elements(), 2000)
        self.assertEqual(b.errors(), [])

    def test_compare(self):
        self.write("m.mlir", MODEL)
        self.succeed("compile", "m.mlir", "-o", "m.plan", "--no-fuse", "--threads", "1")
        self.open("--compare", "m.mlir", "m.plan")
        text = self.value("document.getElementById('main').textContent")
        self.assertIn("A: m.mlir", text)
        self.assertIn("B: m.plan", text)
        self.assertIn("B / A", text)
        for name in ("Graph", "Timeline", "Kernels", "Explain"):
            self.value(f"pestleView.tab('{name}')")
            self.browser.frame()
        self.assertEqual(self.value("pestleView.sheets.length"), 2)
        self.assertEqual(self.browser.errors(), [])
        self.assertLessEqual(self.elements(), 2000)


if __name__ == "__main__":
    if not has_compiler():
        print("this build has no compiler")
        sys.exit(77)
    unittest.main()
