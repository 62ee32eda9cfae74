#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the conformance kit over each backend that docs/support/ has a matrix of
and that works here: nothing may be wrong, and the matrix must be the one in
docs. BLESS=1 writes it."""

import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"])
PESTLE = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]) / "pestle"
HEAD = "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"


def is_used(name):
    text = subprocess.run([PESTLE, "plugins", "--why"], capture_output=True,
                          text=True, check=True).stdout
    return any(line.split()[0] == name and " unused " not in line
               for line in text.splitlines() if line[:1].strip())


def check(path):
    """The problem with the matrix at |path|, or None."""
    if not is_used(path.stem):
        print(f"{path.stem}: not here")
        return None
    done = subprocess.run([PESTLE, "plugins", "test", path.stem, "--markdown"],
                          capture_output=True, text=True, check=False)
    print(done.stdout[done.stdout.rfind("|\n") + 2:].strip(), done.stderr)
    if done.returncode:
        return f"{path.stem}: exit code {done.returncode}"
    if os.environ.get("BLESS"):
        path.write_text(HEAD + done.stdout, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != HEAD + done.stdout:
        return f"{path} is not what the kit prints: BLESS=1, gen_op_docs.py"
    return None


def main():
    problems = [check(path)
                for path in sorted((SOURCE / "docs/support").glob("*.md"))]
    problems = [problem for problem in problems if problem]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
