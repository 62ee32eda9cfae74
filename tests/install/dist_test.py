#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/dist.py refuses to pack what would not load elsewhere, and says what it is."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tools"))
import dist  # noqa: E402


@unittest.skipUnless(shutil.which("cc") and shutil.which("readelf"), "no compiler")
class Refuses(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pestle-elf-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def library(self, name, *options, text="int f(void) { return 1; }"):
        source = self.folder / "f.c"
        source.write_text(text, encoding="utf-8")
        file = self.folder / name
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", file, *options], check=True)
        return file

    def refusal(self, file):
        with self.assertRaises(SystemExit) as caught:
            dist.check_elf(file)
        return str(caught.exception)

    def test_right(self):
        file = self.library("libright.so", "-Wl,-rpath,$ORIGIN/..",
                            text="#include <stdio.h>\nint f(void) { return puts(\"\"); }")
        self.assertGreaterEqual(dist.check_elf(file), (2, 2))

    def test_other_library(self):
        self.library("libother.so", "-Wl,-soname,libother.so.7")
        said = self.refusal(self.library("libneeds.so", "-Wl,--no-as-needed",
                                         f"-L{self.folder}", "-lother"))
        self.assertIn("libneeds.so needs libother.so.7", said)

    def test_folder(self):
        said = self.refusal(self.library("libpath.so", "-Wl,-rpath,/home/someone/lib"))
        self.assertIn("searches /home/someone/lib", said)

    def test_newer(self):
        """As a build on a later system would need: a symbol of a later version."""
        said = self.refusal(self.library(
            "libnewer.so", f"-Wl,--version-script={self.later()}", "-Wl,--no-as-needed",
            f"-L{self.folder}", "-l:libc.so.6", "-nostdlib",
            text="int later(void); int f(void) { return later(); }"))
        self.assertIn("libnewer.so needs GLIBC_2.99; Debian 12 has 2.36", said)

    def later(self):
        """A stand-in for a C library of tomorrow, and a script that exports all."""
        script = self.folder / "later.map"
        script.write_text("GLIBC_2.99 { global: later; local: *; };\n", encoding="utf-8")
        self.library("libc.so.6", "-nostdlib", "-Wl,-soname,libc.so.6",
                     f"-Wl,--version-script={script}", text="int later(void) { return 1; }")
        script = self.folder / "all.map"
        script.write_text("{ global: *; };\n", encoding="utf-8")
        return script


class Version(unittest.TestCase):
    def test_one(self):
        """What names the version names the same."""
        version = dist.wheels.version()
        for name, text in (("README.md", f"tar xzf pestle-{version}-linux-x86_64.tar.gz"),
                           ("docs/install.md", f"pestle_{version}_amd64.deb"),
                           ("CHANGELOG.md", f"\n## {version}, "),
                           ("python/pestle/__init__.py", f'__version__ = "{version}"')):
            self.assertIn(text, (SOURCE / name).read_text(encoding="utf-8"), name)


if __name__ == "__main__":
    unittest.main()
