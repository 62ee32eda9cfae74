#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the public headers: each stands alone in C11 and C++17, each public
struct begins with struct_size or is declared frozen, and each function has a
comment of its own.

usage: check_headers.py SOURCE_DIR GENERATED_INCLUDE_DIR C_COMPILER
"""

import pathlib
import re
import shutil
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
STRUCT = re.compile(r"^(\s*)typedef struct (\w+) \{", re.MULTILINE)


def compiles(command, header):
    """Compiles the header twice in one unit: guards are checked too."""
    text = f'#include "{header}"\n#include "{header}"\nint used;\n'
    result = subprocess.run(command + ["-fsyntax-only", "-"], input=text,
                            capture_output=True, text=True, check=False)
    return result.stderr if result.returncode else ""


def comment_before(text, position):
    """The comment lines that end right above |position|."""
    lines = text[:position].rstrip("\n").split("\n")
    comment = []
    while lines and lines[-1].lstrip().startswith("//"):
        comment.append(lines.pop())
    return " ".join(reversed(comment))


def check_structs(name, text, problems):
    """A header may freeze all of its structs at once in its first comment."""
    head = []
    for line in text.split("\n"):
        if not line.startswith("//"):
            break
        head.append(line)
    if re.search(r"structs[^.]*\bfrozen\b", " ".join(head), re.IGNORECASE):
        return
    for match in STRUCT.finditer(text):
        body = text[match.end():].lstrip(" \\\n")
        if body.startswith("size_t struct_size;"):
            continue
        if re.search(r"\bfrozen\b", comment_before(text, match.start()),
                     re.IGNORECASE):
            continue
        line = text.count("\n", 0, match.start()) + 1
        problems.append(f"{name}:{line}: {match.group(2)} neither begins with "
                        f"size_t struct_size nor is declared frozen")


def check_comments(name, text, problems):
    """What a macro expands to is described where its rows are."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not re.match(r"(PESTLE_API|static inline)\b", line):
            continue
        if not lines[number - 1].startswith("//"):
            problems.append(f"{name}:{number + 1}: the function has no comment")


def check_contents(name, text, problems):
    """The list 'Contents:' of the first comment names the sections, in order."""
    sections = re.findall(r"(?m)^// --- (.*) ---$", text)
    head = text.split("#ifndef")[0]
    listed = re.findall(r"(?m)^// - (.*)$", head.partition("// Contents:")[2])
    if "// Contents:" in head and listed != sections:
        problems.append(f"{name}: its contents {listed} are not its sections {sections}")


def main():
    root = pathlib.Path(sys.argv[1])
    generated, compiler = sys.argv[2], sys.argv[3]
    include = [f"-I{root / 'include'}", f"-I{generated}"]
    commands = [[compiler, "-std=c11", "-xc"]]
    cxx = shutil.which("c++") or shutil.which("clang++-19")
    if cxx:
        commands.append([cxx, "-std=c++17", "-xc++"])
    problems = []
    headers = sorted((root / "include" / "pestle").glob("*.h"))
    for path in headers + [pathlib.Path(generated) / "pestle" / "version.h"]:
        name = f"pestle/{path.name}"
        for command in commands:
            error = compiles(command + WARNINGS + include, name)
            if error:
                problems.append(f"{name} with {' '.join(command)}:\n{error}")
        text = path.read_text(encoding="utf-8")
        check_structs(name, text, problems)
        check_comments(name, text, problems)
        check_contents(name, text, problems)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
