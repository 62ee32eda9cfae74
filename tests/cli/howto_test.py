#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/quickstart.md and docs/howto/*.md say to type is typed, in an empty folder
for each page, and what they show is what comes. docs/howto/index.md has the rules of
such a page. BLESS=1 writes into the pages what comes instead."""
import contextlib
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGES = [SOURCE / "docs/quickstart.md", *sorted((SOURCE / "docs/howto").glob("*.md"))]
NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
FLOAT = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
TIMED = re.compile(NUMBER + r" ?((?:ns|us|ms|s|GFLOP/s|GB/s)(?![\w/])|%)")
TOKEN = re.compile(rf"((?<!\.)\.\.(?!\.)|(?<![\w.]){TIMED.pattern.replace('((?:', '(?:(?:', 1)}"
                   rf"|(?<![\w.]){FLOAT.pattern}(?![\w.])| +)")
MEASURED = re.compile(rf"((?<!\.)\.\.(?!\.)|(?<![\w.]){NUMBER}(?![\w.])| +)")


def cache_entry(name):
    found = re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    return found[1] if found else ""


def pattern(shown, times=False):
    """The regular expression of what a page shows, and the numbers with a point that its
    groups are to be near: docs/howto/index.md has the rules."""
    lines, numbers = [], []
    for line in shown:
        if line.strip() == "...":
            lines.append(r"(?:.*\n)*?")
            continue
        parts = []
        for part in (MEASURED if times else TOKEN).split(line.rstrip()):
            if part == "..":
                parts.append(".*?")
            elif times and re.fullmatch(NUMBER, part):
                parts.append(NUMBER)
            elif TIMED.fullmatch(part):
                parts.append(f"{NUMBER} *{re.escape(TIMED.fullmatch(part)[1])}")
            elif FLOAT.fullmatch(part):
                parts.append(f"({FLOAT.pattern}|-?\\d+)")
                numbers.append(float(part))
            elif part and not part.strip():
                parts.append(" +")
            else:
                parts.append(re.escape(part))
        lines.append("".join(parts) + r" *\n")
    return re.compile("".join(lines)), numbers


def same(shown, came, times=False):
    expression, numbers = pattern(shown, times)
    found = expression.fullmatch(came)
    return bool(found) and all(math.isclose(a, float(b), rel_tol=1e-4, abs_tol=1e-6)
                               for a, b in zip(numbers, found.groups()))


def fences(text):
    """(info, first line, lines) of each fenced block; lines are numbered from 0."""
    lines, i = text.split("\n"), 0
    while i < len(lines):
        if lines[i].startswith("```") and lines[i] != "```":
            end = lines.index("```", i + 1)
            yield lines[i][3:].strip(), i + 1, lines[i + 1:end]
            i = end
        i += 1


def commands(first, lines):
    """(command, line of its end, what is shown behind it) of a block."""
    i = 0
    while i < len(lines):
        assert lines[i].startswith("$ "), f"line {first + i + 1}: a command begins with '$ '"
        command = [lines[i][2:]]
        i += 1
        while i < len(lines) and lines[i].startswith("> "):
            command.append(lines[i][2:])
            i += 1
        shown = []
        begin = i
        while i < len(lines) and not lines[i].startswith("$ "):
            shown.append(lines[i])
            i += 1
        yield "\n".join(command), first + begin, shown


def missing(text):
    """What of a page's '<!-- needs: cc, python:onnx -->' is not here."""
    found = re.search(r"<!-- needs: (.*?) -->", text)
    for need in found[1].split(", ") if found else []:
        kind, _, name = need.rpartition(":")
        if kind == "python":
            if not python_with(name):
                return f"a Python with {name}"
        elif not shutil.which(name):
            return name
    return None


def python_with(module):
    for python in (sys.executable, os.environ.get("PESTLE_JAX_PYTHON")):
        if python and not subprocess.run([python, "-c", f"import {module}"], check=False,
                                         capture_output=True).returncode:
            return python
    return None


class HowTo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if cache_entry("PESTLE_RUNTIME_ONLY") == "ON" or cache_entry("PESTLE_SANITIZE"):
            raise unittest.SkipTest("pages are for a whole build without sanitizers")
        if not any((BUILD / "backends").glob("libpestle-llvm*.so")):
            raise unittest.SkipTest("the llvm backend is not built")
        cls.stack = contextlib.ExitStack()
        cls.prefix = pathlib.Path(cls.stack.enter_context(
            tempfile.TemporaryDirectory(prefix="pestle-installed-")))
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], check=True,
                       capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def environment(self, page):
        """As one has it behind 'make install', with the Python package in the path."""
        library = next(self.prefix.rglob("libpestle.so")).parent
        needed = re.findall(r"python:(\w+)", page.read_text(encoding="utf-8"))
        python = python_with(needed[0]) if needed else sys.executable
        path = [self.prefix / "bin", pathlib.Path(python).parent, os.environ["PATH"]]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PESTLE_", "LD_"))}
        return {**env, "PESTLE": str(SOURCE), "PATH": ":".join(map(str, path)),
                "PESTLE_PYTHON": python, "COLUMNS": "100", "LC_ALL": "C.UTF-8",
                "PYTHONPATH": str(BUILD / "python"), "LD_LIBRARY_PATH": str(library),
                "PKG_CONFIG_PATH": str(library / "pkgconfig"),
                "CMAKE_PREFIX_PATH": str(self.prefix)}

    def follow(self, page):
        """Does what the page says; how many commands that were."""
        text, ran, came = page.read_text(encoding="utf-8"), 0, []
        with tempfile.TemporaryDirectory(prefix="pestle-howto-") as folder:
            env = {**self.environment(page), "PESTLE_CACHE_DIR": f"{folder}/.cache",
                   "HOME": folder}
            for info, first, lines in fences(text):
                name = re.search(r"\bfile=(\S+)", info)
                if name:
                    (pathlib.Path(folder) / name[1]).write_text("\n".join(lines) + "\n",
                                                                encoding="utf-8")
                if info.split()[:1] != ["console"]:
                    continue
                for command, line, shown in commands(first, lines):
                    ran += 1
                    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                          text=True, check=False, timeout=600)
                    where = f"{page.relative_to(SOURCE)}:{line}: {command}\n"
                    out = re.sub(r"(?m)[ \t]+$", "", done.stdout).rstrip("\n")
                    out += "\n" if out else ""
                    self.assertEqual(done.returncode, 0, where + out)
                    if not same(shown, out, info == "console times"):
                        came.append((line, len(shown), out.rstrip("\n").split("\n")))
                        if not os.environ.get("BLESS"):
                            self.fail(f"{where}--- the page shows\n" + "\n".join(shown)
                                      + f"\n--- what came\n{out}")
        lines = text.split("\n")
        for line, count, out in reversed(came):
            lines[line:line + count] = out
        if came:
            page.write_text("\n".join(lines), encoding="utf-8")
        return ran

    def test_patterns(self):
        """What a page shows is not matched by something else."""
        for shown, came, good in (
                (["median 1.5 ms"], "median  22.75 ms\n", True),
                (["median 1.5 ms"], "mean 1.5 ms\n", False),
                (["y 1.5 2.5"], "y 1.5 2.25\n", False),
                (["y 1.5 2.5"], "y 1.500001  2.5\n", True),
                (["[0.25, -1.5, ...]"], "[0.25, -1.5, ...]\n", True),
                (["step 100 loss 0.0123"], "step 101 loss 0.0123\n", False),
                (["share 12%"], "share 7%\n", True), (["3 kernels"], "4 kernels\n", False),
                (["a", "...", "z"], "a\nb\nc\nz\n", True),
                (["a", "...", "z"], "a\nb\nc\n", False),
                (["key .. hit"], "key 0x17f hit\n", True), ([], "", True),
                ([], "something\n", False)):
            self.assertEqual(same(shown, came), good, (shown, came))


def test_of(page):
    def test(self):
        lacks = missing(page.read_text(encoding="utf-8"))
        if lacks:
            self.skipTest(f"{page.name}: there is no {lacks}")
        self.assertGreater(self.follow(page), 0 if page.name == "index.md" else 2)
    return test


for one in PAGES:
    setattr(HowTo, "test_" + one.stem.replace("-", "_"), test_of(one))


if __name__ == "__main__":
    unittest.main()
