#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The site of the documentation: every page is in its navigation, every link of a page
leads somewhere, and it builds without a warning where its tools are (PESTLE_DOCS_PYTHON
names a Python with tools/requirements-docs.txt; doxygen)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tools"))
import docs_site  # noqa: E402


def prose(text):
    """A page without its code."""
    return re.sub(r"(?ms)^```.*?^```$|^    .*?$|`[^`\n]*`", "", text)


def anchors(page):
    """The names of a page's headings, as GitHub and MyST make them."""
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    names = set()
    for heading in re.findall(r"(?m)^#+ (.*)$", text):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        names.add(re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-"))
    return names


def pages():
    return sorted({p for pattern in docs_site.PAGES for p in SOURCE.glob(pattern)})


class Site(unittest.TestCase):
    def test_links(self):
        """GitHub's reader and the site's find what a page points to."""
        count = 0
        for page in pages():
            for link in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text("utf-8"))):
                if "://" in link or link.startswith("mailto:"):
                    continue
                name, _, anchor = link.partition("#")
                target = (page.parent / name).resolve() if name else page
                where = f"{page.relative_to(SOURCE)}: {link}"
                self.assertTrue(target.exists(), where)
                if anchor and target.suffix == ".md":
                    self.assertIn(anchor, anchors(target), where)
                count += 1
        self.assertGreater(count, 100)

    def test_navigation(self):
        """Each page is in exactly one list of docs/index.md, and each entry is a page."""
        index = SOURCE / "docs/index.md"
        listed = []
        for block in re.findall(r"(?s)```\{toctree\}\n(.*?)```", index.read_text("utf-8")):
            for entry in (line for line in block.split("\n") if line):
                if entry.startswith(":"):
                    continue
                if entry == "api/index":  # made of the headers
                    continue
                # A glob of Sphinx names files without their suffix.
                base = os.path.normpath(pathlib.Path("docs") / entry)
                found = sorted(SOURCE.glob(base + ".md"))
                self.assertTrue(found, f"docs/index.md lists {entry}, which is no page")
                listed += found
        missing = [str(p.relative_to(SOURCE)) for p in pages()
                   if p != index and p not in listed]
        self.assertEqual(missing, [], "pages that docs/index.md does not list")
        self.assertEqual(len(listed), len(set(listed)))

    def test_sentences(self):
        """A sentence begins with its subject (docs/style.md): not with Of or Those."""
        for page in [SOURCE / "README.md", SOURCE / "bench/README.md",
                     *SOURCE.glob("docs/*.md"), *SOURCE.glob("docs/howto/*.md")]:
            if page.name == "ops.md":  # of tables
                continue
            text = re.sub(r"\n(?!\n)", " ", prose(page.read_text("utf-8")))
            for found in re.finditer(r"(?:^|[.:] +|\n *)((?:Of|Those) [^.]{0,60})", text):
                self.fail(f"{page.relative_to(SOURCE)}: {found[1]}")

    def test_names(self):
        """What the quickstart and the how-tos call is declared, or made by a macro."""
        told = " ".join(h.read_text("utf-8") for h in (SOURCE / "include/pestle").iterdir())
        for page in [SOURCE / "docs/quickstart.md", *SOURCE.glob("docs/howto/*.md")]:
            for name in re.findall(r"\b(pestle_[a-z_0-9]+)\(", page.read_text("utf-8")):
                self.assertTrue(re.search(rf"\b{name}\b", told), f"{page.name}: {name}")

    def test_figures(self):
        """docs/speed.md repeats what is measured elsewhere."""
        told = " ".join((SOURCE / p).read_text("utf-8") for p in (
            "bench/README.md", "README.md", "docs/python.md", "docs/ROADMAP.md"))
        figures = re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])",
                             (SOURCE / "docs/speed.md").read_text("utf-8"))
        self.assertGreater(len(figures), 50)
        for figure in figures:
            self.assertTrue(re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.])", told),
                            f"docs/speed.md: {figure} stands in none of them")

    def test_filter(self):
        """What Doxygen reads of a header: comments, each struct once, no passing macro."""
        text = docs_site.documented(
            "// SPDX-License-Identifier: Apache-2.0\n// The head.\n//\n//   a < b;\n// End.\n"
            "\n// A |thing| <x>.\n"
            "typedef struct t_t {\n  int a;  // a member\n} t_t;\n#define X(a) \\\n  a\n"
            "typedef struct u_s u_t;\n", ["X"], {"u_t"})
        self.assertEqual(text.split("\n"), [
            "/// @file", "/// The head.", "///", "/// @code{.unparsed}", "///   a < b;",
            "/// @endcode", "/// End.", "", "", r"/// A thing \<x\>.", "struct t_t {",
            "  int a;  ///< a member", "};", ""])

    def test_build(self):
        python = os.environ.get("PESTLE_DOCS_PYTHON") or SOURCE / "build/docs-venv/bin/python"
        modules = subprocess.run([python, "-c", "import sphinx, myst_parser, breathe, furo"],
                                 capture_output=True, check=False) \
            if shutil.which(str(python)) else None
        if not modules or modules.returncode:
            self.skipTest("PESTLE_DOCS_PYTHON names no Python with Sphinx, MyST, Breathe, Furo")
        if not shutil.which("doxygen"):
            self.skipTest("there is no doxygen")
        with tempfile.TemporaryDirectory(prefix="pestle-site-") as folder:
            out = pathlib.Path(folder) / "docs"
            done = subprocess.run([python, SOURCE / "tools/docs_site.py", out], text=True,
                                  capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            for page in pages():
                html = (out / page.relative_to(SOURCE)).with_suffix(".html")
                self.assertTrue(html.exists(), html)
            session = (out / "docs/api/session.html").read_text(encoding="utf-8")
            self.assertIn("pestle_session_create", session)
            self.assertIn("Opens the model at path", session)
            search = (out / "searchindex.js").read_text(encoding="utf-8")
            self.assertIn("pestle_session_creat", search)


if __name__ == "__main__":
    unittest.main()
