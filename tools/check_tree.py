#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the files that git tracks: sources begin with the SPDX line, no file
is large, none names a path of the machine that it was written on, and C is
formatted as clang-format 19 does it, where that is installed.

usage: check_tree.py SOURCE_DIR
"""

import pathlib
import re
import shutil
import subprocess
import sys

MAX_SIZE = 1_000_000
SPDX = b"SPDX-License-Identifier: Apache-2.0"
SOURCE = re.compile(r"(\.(c|h|m|def|py|sh|cmake|in|map|cl|cu|glsl|metal)|"
                    r"/CMakeLists\.txt|^CMakeLists\.txt|^Makefile|^\.ci/run)$")
# Written in two parts: this file is read as well.
MACHINE = [b"/" + name for name in
           (b"work/", b"opt/pv", b"root/", b"tmp/b-")]


def check_file(name, data, problems):
    if len(data) > MAX_SIZE:
        problems.append(f"{name}: {len(data)} bytes, allowed are {MAX_SIZE}")
    # In the first lines: a script begins with its #! line.
    if SOURCE.search(name) and SPDX not in b"".join(data.splitlines()[:2]):
        problems.append(f"{name}:1: there is no SPDX line")
    for number, line in enumerate(data.splitlines(), 1):
        for path in MACHINE:
            at = line.find(path)
            # Not where it is the end of a longer path, or of an address.
            if at >= 0 and (at == 0 or line[at - 1:at] in b" \t\"'`=(:<"):
                problems.append(f"{name}:{number}: a path of one machine: "
                                f"{path.decode()}")


def check_format(root, names, problems):
    if not shutil.which("clang-format-19"):
        print("the format is not checked: there is no clang-format-19")
        return
    sources = [name for name in names if name.endswith((".c", ".h"))]
    done = subprocess.run(["clang-format-19", "--dry-run", "-Werror"] + sources,
                          cwd=root, capture_output=True, check=False)
    for line in done.stderr.decode().splitlines():
        if "[-Wclang-format-violations]" in line:
            problems.append(line.replace("error: ", "") + ": make format")


def main():
    root = pathlib.Path(sys.argv[1])
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"],
                            capture_output=True, check=False)
    if listed.returncode:
        print("this is no git checkout")
        return 77
    problems = []
    names = listed.stdout.decode().rstrip("\0").split("\0")
    for name in names:
        path = root / name
        if path.is_file() and not path.is_symlink():
            check_file(name, path.read_bytes(), problems)
    check_format(root, [name for name in names if (root / name).is_file()],
                 problems)
    for problem in problems:
        print(problem)
    print(f"{len(names)} files")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
