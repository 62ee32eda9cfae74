#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Help fits the terminal, its examples run, and terminals get colours and progress
unless NO_COLOR is set."""
import os
import pty
import re
import shutil
import subprocess
import unittest

from stranger import Folder

VERBS = ("run", "bench", "compile", "opt", "dump", "explain", "info", "view", "diff",
         "reduce", "op-test", "generate", "devices", "plugins", "cache", "doctor")


class Help(Folder):
    def on_terminal(self, command):
        """What a terminal shows of it."""
        main, child = pty.openpty()
        done = subprocess.Popen(["bash", "-c", command], cwd=self.folder, env=self.env,
                                stdin=child, stdout=child, stderr=child)
        os.close(child)
        text = b""
        while True:
            try:
                block = os.read(main, 4096)
            except OSError:  # its end, as Linux has it
                break
            if not block:
                break
            text += block
        os.close(main)
        done.wait()
        return text.decode()

    def test_lines_are_short(self):
        for width in (60, 80):
            self.env["COLUMNS"] = str(width)
            for verb in ("",) + VERBS:
                code, out, err = self.shell(f"pestle {verb} --help")
                self.assertEqual((code, err), (0, ""))
                for line in out.splitlines():
                    # A word, or an option with its argument, is not broken.
                    words = line.split()
                    is_one = (line.startswith(("  -", "      pestle", "usage:"))
                              or len(words) == 1)
                    self.assertTrue(len(line) <= width or is_one, (verb, line))

    def test_examples_run(self):
        ran = 0
        for verb in VERBS:
            _, out, _ = self.shell(f"pestle {verb} --help")
            for command in re.findall(r"^      (pestle .*)$", out, re.M):
                self.assertTrue(command.startswith(f"pestle {verb}"), command)
                code, _, err = self.shell(command)
                self.assertEqual(code, 0, (command, err))
                ran += 1
            self.assertTrue("examples:" in out or verb in ("op-test", "generate"), verb)
        self.assertGreater(ran, 15)

    def test_colour(self):
        self.env["TERM"] = "xterm"
        self.env.pop("NO_COLOR", None)
        text = self.on_terminal("pestle run nothing.onnx")
        self.assertIn("pestle: \033[1;31merror:\033[0m ", text)
        for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
            env = dict(self.env)
            self.env[name] = value
            text = self.on_terminal("pestle run nothing.onnx; pestle --help")
            self.assertIn("pestle: error: ", text)
            self.assertNotIn("\033", text)
            self.env = env
        _, out, err = self.shell("pestle run nothing.onnx; pestle --help")
        self.assertNotIn("\033", out + err)

    def test_progress(self):
        self.env["TERM"] = "xterm"
        text = self.on_terminal("pestle reduce model.onnx --dim batch=2 --check "
                                "'grep -q maximum' -o small.mlir")
        self.assertRegex(text, r"check \d+ of at most 4000: \d+ ops")
        _, _, err = self.shell("pestle reduce model.onnx --dim batch=2 --check "
                               "'grep -q maximum' -o small.mlir")
        self.assertEqual(err, "")
        test = "pestle plugins test llvm --ops add,tanh"
        text = self.on_terminal(test)
        first, total = map(int, re.search(r"cell (\d+) of (\d+): ", text).groups())
        self.assertEqual(first, 1)
        self.assertIn(f"cell {total} of {total}: tanh on ", text)
        self.assertNotIn("cell ", self.shell(test)[2])

    # --- Completion ---

    def complete(self, *words):
        quoted = " ".join(f"'{w}'" for w in words)
        code, out, err = self.shell(
            f'eval "$(pestle completion bash)"; COMP_WORDS=({quoted}); '
            f'COMP_CWORD={len(words) - 1}; _pestle; printf "%s\\n" "${{COMPREPLY[@]}}"')
        self.assertEqual(code, 0, err)
        return out.split()

    def test_values(self):
        c = self.complete
        self.assertEqual(c("pestle", "dump", "--stage", "ke"), ["kernels"])
        self.assertEqual(c("pestle", "dump", "--stage", "=", "ke"), ["kernels"])
        self.assertEqual(c("pestle", "run", "--numerics", "="),
                         ["strict", "default", "fast"])
        self.assertIn("cpu:0", c("pestle", "run", "--device", ""))
        self.assertEqual(c("pestle", "run", "--device", "ll"), ["llvm"])
        self.assertEqual(c("pestle", "compile", "--target", "cu"), ["cuda"])
        self.assertEqual(c("pestle", "run", "--input", "x"), ["x.npy"])
        self.assertEqual(c("pestle", "cache", "p"), ["prune"])
        self.assertEqual(c("pestle", "completion", "z"), ["zsh"])
        self.assertEqual(c("pestle", "run", "--bench", ""), [])

    def test_shells_take_them(self):
        for shell, check in (("bash", ["-n"]), ("zsh", ["-n"]), ("fish", ["-n"])):
            code, out, err = self.shell(f"pestle completion {shell}")
            self.assertEqual((code, err), (0, ""))
            for word in ("dump", "fused", "devices --names", "strict default fast"):
                self.assertIn(word, out)
            if shutil.which(shell):
                done = subprocess.run([shell, *check], input=out, text=True, check=False,
                                      capture_output=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        code, _, err = self.shell("pestle completion tcsh")
        self.assertEqual(code, 2)
        self.assertIn("bash, zsh and fish", err)
        code, _, err = self.shell("pestle completion bash x")
        self.assertEqual(code, 2)
        self.assertIn("one shell: bash, zsh or fish; what is 'x'?", err)


if __name__ == "__main__":
    unittest.main()
