#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an install has beside programs and libraries: a manual page without a warning of
the formatter's, completions that the shells take from the folders where they look, a
licence, documents whose links lead somewhere. And what `make install` builds: no test."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]).resolve()
DOCUMENTS = "share/doc/pestle"


def run(*words, **options):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True,
                          check=False, **options)


class Staged(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="pestle-staged-"))
        env = {**os.environ, "DESTDIR": str(cls.scratch)}
        done = run("cmake", "--install", BUILD, "--prefix", "/opt/pestle", env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.prefix = cls.scratch / "opt/pestle"

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.scratch)

    def test_nothing_outside(self):
        self.assertEqual([p.name for p in self.scratch.iterdir()], ["opt"])
        self.assertEqual([p.name for p in (self.scratch / "opt").iterdir()], ["pestle"])

    def test_files(self):
        for name in ("LICENSE", "README.md", "CHANGELOG.md", "docs/hands.md",
                     "examples/c/serve.c", "examples/axpby/CMakeLists.txt",
                     "examples/python/mlp.py", "plugins/example/CMakeLists.txt",
                     "plugins/example/README.md"):
            self.assertTrue((self.prefix / DOCUMENTS / name).is_file(), name)
        for name in ("bin/pestle", "include/pestle/pestle.h", "include/pestle/version.h"):
            self.assertTrue((self.prefix / name).is_file(), name)
        found = {p.name for p in self.prefix.rglob("*")}
        self.assertLessEqual({"pestle.pc", "pestleConfig.cmake", "libpestle.so"}, found)
        self.assertFalse(found & {"__pycache__", "CMakeCache.txt"})

    def test_manual(self):
        page = self.prefix / "share/man/man1/pestle.1"
        text = page.read_text(encoding="utf-8")
        version = run(self.prefix / "bin/pestle", "version").stdout.split()[1]
        self.assertIn(f'"pestle {version}"', text)
        self.assertIn(".SH run", text)
        if shutil.which("groff"):
            done = run("groff", "-man", "-Tutf8", "-ww", "-z", page)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_bash(self):
        file = self.prefix / "share/bash-completion/completions/pestle"
        done = run("bash", "-c", f"source {file}; COMP_WORDS=(pestle dev); COMP_CWORD=1; "
                   'COMPREPLY=(); _pestle; echo "${COMPREPLY[@]}"')
        self.assertEqual((done.stdout, done.stderr), ("devices\n", ""))

    def test_zsh(self):
        folder = self.prefix / "share/zsh/site-functions"
        self.assertTrue((folder / "_pestle").read_text().startswith("#compdef pestle\n"))
        if not shutil.which("zsh"):
            self.skipTest("no zsh")
        # A terminal of zsh's own, in which a tab is pressed.
        script = (f"zmodload zsh/zpty; zpty z 'zsh -f -i'; "
                  f"zpty -w z 'fpath=({folder} $fpath); autoload -Uz compinit; "
                  "compinit -u -D; PROMPT=; unset zle_bracketed_paste; echo READ''Y'; "
                  "zpty -r -m z _ '*READY*'; zpty -n -w z $'pestle dev\\t'; "
                  "zpty -r -m z seen '*devices*'; print -r -- $seen; zpty -d z")
        done = run("zsh", "-f", "-c", script, timeout=60)
        self.assertIn("pestle devices", done.stdout)

    def test_fish(self):
        folder = self.prefix / "share/fish/vendor_completions.d"
        self.assertIn("-a devices", (folder / "pestle.fish").read_text())
        if not shutil.which("fish"):
            self.skipTest("no fish")
        done = run("fish", "-N", "-c", f"source {folder}/pestle.fish; "
                   "complete -C 'pestle dev'")
        self.assertTrue(done.stdout.startswith("devices\t"), done.stdout + done.stderr)

    def test_links(self):
        """Documents lead to what was installed too, but for the sources' own folders."""
        root = self.prefix / DOCUMENTS
        pages = [root / "README.md", *(root / "docs").glob("*.md")]
        self.assertGreater(len(pages), 20)
        missing = {f"{page.relative_to(root)} -> {link}" for page in pages
                   for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)",
                                          page.read_text(encoding="utf-8"))
                   if not (page.parent / link).exists()
                   and (page.parent / link).resolve().is_relative_to(root)
                   and (page.parent / link).resolve().relative_to(root).parts[0]
                   in ("docs", "examples", "README.md", "bench", "LICENSE")}
        self.assertFalse(missing)

    def test_product(self):
        """All that is installed and nothing of the tests is what pestle_product builds."""
        if not shutil.which("ninja") or not (BUILD / "build.ninja").exists():
            self.skipTest("no build by ninja")
        done = run("ninja", "-C", BUILD, "-t", "commands", "pestle_product")
        self.assertEqual(done.returncode, 0, done.stderr)
        made = set(re.findall(r"-o (\S+)", done.stdout))
        made |= set(re.findall(r" qc (\S+)", done.stdout))
        self.assertFalse([m for m in made if re.match(r"(tests|examples|bench)/", m)])
        names = {pathlib.Path(m).name for m in made}
        installed = {p.name for p in self.prefix.rglob("*") if not p.is_symlink()
                     and (p.suffix in (".so", ".a") or p.parent.name == "bin")}
        self.assertGreater(len(installed), 2)
        self.assertLessEqual(installed, names, installed - names)


if __name__ == "__main__":
    unittest.main()
