#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/reliability.md's table is what tools/reliability.py makes of the results that
are kept; each row of these is of a line that there is, and whole."""

import os
import pathlib
import sys

ROOT = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "tools/reliability"))
import lines  # noqa: E402
import page  # noqa: E402

names = [line.name for line in lines.ALL]
assert len(set(names)) == len(names), names
for row in page.read():
    assert row["line"] in names, row
    assert row["count"] >= 0 and row["failures"] >= 0, row
    assert row["seconds"] > 0 and row["cpu"] and row["commit"], row
    assert "dirty" not in row["commit"], row
assert page.PAGE.read_text() == page.page(), \
    "docs/reliability.md is old: tools/reliability.py report"
text = page.PAGE.read_text()
for name in names:
    assert f"`{name}`" in text, name
print(f"{len(names)} lines, {len(page.read())} runs")
