#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each top folder and each room of codegen/ says what it is for and what
it must not know: a row of a table in docs/architecture.md, which names the file whose
head comment has the paragraph ("FOLDER/ ... FOLDER/ knows nothing of ..."). Plugins
have a README.md each.

usage: check_folders.py SOURCE_DIR
"""

import pathlib
import re
import sys

from check_includes import ALLOWED

ROW = re.compile(r"^\| \[`([a-z_/]+)/`\]\(\.\./([^)]+)\) \| (.+) \| (.+) \|$", re.M)
ROOMS = ("codegen/", "include/")


def head_of(path):
    """The comment that a file begins with, as one line."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].strip())
    return " ".join(lines)


def folders():
    """The folders that must have a paragraph."""
    for row in ALLOWED:
        yield row if row.startswith(ROOMS) else row.split("/")[0]


def check(root):
    page = root / "docs/architecture.md"
    rows = {name: root / file
            for name, file, _, _ in ROW.findall(page.read_text("utf-8"))}
    for folder in sorted(set(folders())):
        if folder not in rows:
            yield f"docs/architecture.md: no row of a table is of {folder}/"
        elif not rows[folder].exists():
            yield f"docs/architecture.md: {folder}/ names {rows[folder]}"
        elif f"{folder}/ knows nothing of" not in head_of(rows[folder]):
            yield (f"{rows[folder].relative_to(root)}: its head does not say what "
                   f"{folder}/ is for and what it 'knows nothing of'")
    for folder in sorted((root / "plugins").iterdir()):
        if folder.is_dir() and folder.name != "common":
            if not (folder / "README.md").exists():
                yield f"plugins/{folder.name}: no README.md"


def main():
    problems = list(check(pathlib.Path(sys.argv[1])))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
