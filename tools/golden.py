#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the whole output of a command with a file. Used by lit tests:

    RUN: %golden %s -- %pestle opt %s
    RUN: %golden %s.error --stderr --exit 4 -- %pestle opt %s

compares with FILE.expected and prints a diff; under BLESS=1 it writes the file
instead. Paths into the source and build trees are replaced, so that the text
is the same everywhere.
"""

import argparse
import difflib
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def parse_arguments():
    parser = argparse.ArgumentParser(usage="golden.py FILE [options] -- COMMAND...")
    parser.add_argument("file", help="compare with FILE.expected")
    parser.add_argument("--stderr", action="store_true",
                        help="the standard error output, not the output")
    parser.add_argument("--exit", type=int, default=0,
                        help="the exit code that the command must have")
    if "--" not in sys.argv:
        parser.error("there is no '--' before the command")
    at = sys.argv.index("--")
    return parser.parse_args(sys.argv[1:at]), sys.argv[at + 1:]


def normalise(text):
    build = os.environ.get("PESTLE_BUILD_DIR", "")
    if build:
        text = text.replace(build + "/", "BUILD/")
    return text.replace(f"{ROOT}/", "")


def main():
    arguments, command = parse_arguments()
    result = subprocess.run(command, capture_output=True, check=False)
    text = result.stderr if arguments.stderr else result.stdout
    text = normalise(text.decode("utf-8", errors="backslashreplace"))
    if result.returncode != arguments.exit:
        sys.stderr.write(result.stderr.decode("utf-8", "backslashreplace"))
        print(f"exit code {result.returncode}, expected {arguments.exit}: "
              f"{' '.join(command)}", file=sys.stderr)
        return 1
    path = pathlib.Path(arguments.file + ".expected")
    if os.environ.get("BLESS") == "1":
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        return 0
    if not path.exists():
        print(f"{path} does not exist: run with BLESS=1 and read what it "
              f"writes", file=sys.stderr)
        return 1
    expected = path.read_text(encoding="utf-8")
    if expected == text:
        return 0
    sys.stderr.writelines(difflib.unified_diff(
        expected.splitlines(keepends=True), text.splitlines(keepends=True),
        str(path), "output"))
    print("\nBLESS=1 accepts the new output.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
