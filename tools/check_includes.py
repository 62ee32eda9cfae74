#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which folder includes which, and that OS headers stay in *_posix.c.

usage: check_includes.py SOURCE_DIR
"""

import pathlib
import re
import sys

# folder -> the folders that it may include, beside its own and include/pestle.
# The longest matching row counts. A plugin needs none: see PLUGIN.
ALLOWED = {
    "base": [],
    "ir": ["base"],
    "frontend": ["base", "ir"],
    "transform": ["base", "ir"],
    "passes": ["base", "ir"],
    "codegen/kir": ["base", "ir", "codegen/nest"],
    "codegen/nest": ["base", "ir"],
    "codegen/schedule": ["base", "ir", "codegen/nest"],
    "codegen/lower": ["base", "ir", "codegen/nest"],
    "codegen/emit": ["base", "ir", "codegen/nest", "codegen/schedule",
                     "codegen/kir"],
    "codegen/sketch": ["base", "ir", "codegen/nest", "codegen/schedule"],
    "codegen/template": ["base", "ir", "codegen/nest", "codegen/schedule",
                         "codegen/kir", "codegen/emit", "codegen/sketch"],
    "codegen/legalise": ["base", "ir", "codegen/kir"],
    "codegen/direct": ["base", "ir", "codegen/nest", "codegen/kir"],
    "compile": ["base", "ir", "passes", "codegen"],
    "runtime": ["base"],
    "lazy": ["base", "ir"],
    "session": ["base", "ir"],
    "plugins/common": [],
    "plugins/ref": [],
    "plugins/example": [],
    "pjrt": ["base"],
    "python": ["base"],
    "tools": ["base"],
    "tools/conform": ["base", "ir"],
    "include/pestle": [],
}
# What a folder of plugins/ without a row may include.
PLUGIN = ["plugins/common"]
# Headers of the operating system. Plugins load drivers and code: they may.
OS_HEADERS = re.compile(
    r"^(unistd|fcntl|pthread|dlfcn|dirent|sched|signal|poll|semaphore|"
    r"linux/.*|sys/.*|windows)(\.h)?$")
OS_ALLOWED = re.compile(r"^(plugins/|tests/|bench/|tools/)|_posix\.[ch]$")

# Single files that a folder may include beside whole folders.
TABLES = {"runtime": {"plugins/plugins.def"},
          "lazy": {"runtime/owned.h", "runtime/dlpack.h"},
          "session": {"runtime/arena_pool.h", "runtime/view.h"}}

# Programs, not libraries: their files name each other without a folder.
LOCAL = {"tools", "plugins/example", "python"}

GENERATED = {"pestle_build_id.h", "pestle_plugin_build_id.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SPDX = "SPDX-License-Identifier: Apache-2.0"


def row_of(path):
    """The longest row of ALLOWED that |path| lies in."""
    rows = [r for r in ALLOWED if path == r or path.startswith(r + "/")]
    if rows or not path.startswith("plugins/"):
        return max(rows, key=len) if rows else None
    return "/".join(path.split("/")[:2])


def check_file(root, path, problems):
    name = path.relative_to(root).as_posix()
    row = row_of(name)
    if row is None:
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    if SPDX not in text.split("\n", 1)[0]:
        problems.append(f"{name}:1: the first line is not the SPDX line")
    allowed = {row, "pestle"} | set(ALLOWED.get(row, PLUGIN))
    for number, line in enumerate(text.split("\n"), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        bracket, target = match.groups()
        if OS_HEADERS.match(target) and not OS_ALLOWED.search(name):
            problems.append(
                f"{name}:{number}: <{target}> belongs into a *_posix.c file")
        if bracket == "<" or target in GENERATED:
            continue
        if target in TABLES.get(row, ()):
            continue
        if row in LOCAL and (path.parent / target).exists():
            continue
        if not any(target.startswith(a + "/") for a in allowed):
            problems.append(
                f'{name}:{number}: "{target}" is not something that {row}/ '
                f"may include ({', '.join(sorted(allowed))})")


def main():
    root = pathlib.Path(sys.argv[1])
    problems = []
    for folder in sorted({r.split("/")[0] for r in ALLOWED}):
        for suffix in ("*.c", "*.h", "*.def"):
            for path in sorted((root / folder).rglob(suffix)):
                check_file(root, path, problems)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
