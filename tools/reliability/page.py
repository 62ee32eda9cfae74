# SPDX-License-Identifier: Apache-2.0
"""The counts that are kept (results.json: a row a run and line) and the table that
docs/reliability.md makes of them."""

import json
import pathlib

import lines

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
PAGE = HERE.parents[1] / "docs/reliability.md"
BEGIN, END = "<!-- table: tools/reliability.py report -->", "<!-- end -->"


def read():
    return json.loads(RESULTS.read_text())


def row_text(row):
    return json.dumps(row)


def merge(files):
    """Adds the runs of |files|; one that is there is not added again."""
    rows = read()
    for path in files:
        text = json.loads(path.read_text())
        for run in text if isinstance(text, list) else [text]:
            for name, counts in run["lines"].items():
                row = {"line": name, "count": counts["count"],
                       "failures": counts["failures"],
                       "seconds": counts["seconds"], "commit": run["commit"],
                       "cpu": run["cpu"], "workers": run["workers"]}
                if row not in rows:
                    rows.append(row)
    RESULTS.write_text("[\n" + ",\n".join(map(row_text, rows)) + "\n]\n")
    return write()


def table():
    """A row a line: its whole count, what failed, of which trees, on what CPUs."""
    rows = read()
    text = ["| Line | Counted | Asked | Failed | Hours of a core | Trees | CPUs |",
            "|---|---:|---:|---:|---:|---|---|"]
    for line in lines.ALL:
        mine = [row for row in rows if row["line"] == line.name]
        count = sum(row["count"] for row in mine)
        failed = sum(row["failures"] for row in mine)
        hours = sum(row["seconds"] for row in mine) / 3600
        trees = ", ".join(dict.fromkeys(row["commit"] for row in mine))
        cpus = ", ".join(dict.fromkeys(row["cpu"] for row in mine))
        text.append(f"| `{line.name}` | {count:,} {line.unit} | {line.goal:,} | "
                    f"{failed if mine else '-'} | {hours:.1f} | "
                    f"{trees or 'not run'} | {cpus or '-'} |")
    return "\n".join(text)


def page():
    """The page with today's table."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN, 1)
    return before + BEGIN + "\n\n" + table() + "\n\n" + END + rest.split(END, 1)[1]


def write():
    PAGE.write_text(page())
    return 0
