#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The C example of README.md compiles without warnings and runs; the files
that README.md and docs/ name exist."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


class Readme(unittest.TestCase):
    def test_example(self):
        cache = (BUILD / "CMakeCache.txt").read_text()
        if re.search(r"PESTLE_SANITIZE:\w+=\S|RUNTIME_ONLY:\w+=ON", cache):
            self.skipTest("the example is built as a user builds it")
        compiler = shutil.which("cc") or shutil.which("gcc")
        text = (SOURCE / "README.md").read_text()
        example = re.search(r"```c\n(.*?)```", text, re.S)[1]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "example.c"
            file.write_text(example)
            command = [compiler, "-std=c11", "-Wall", "-Werror", str(file)]
            command += [f"-I{SOURCE}/include", f"-I{BUILD}/include"]
            command += [f"-L{BUILD}", f"-Wl,-rpath,{BUILD}", "-lpestle"]
            subprocess.run([*command, "-o", f"{folder}/example"], check=True)
            done = subprocess.run(
                [f"{folder}/example"], capture_output=True, text=True
            )
        self.assertEqual(done.stdout, "2 4 6 8\n", done.stderr)

    def test_links(self):
        for file in [SOURCE / "README.md", *SOURCE.glob("docs/*.md")]:
            text = file.read_text()
            for link in re.findall(r"\]\(([^)#:]+)\)", text):
                self.assertTrue((file.parent / link).exists(), (file, link))


if __name__ == "__main__":
    unittest.main()
