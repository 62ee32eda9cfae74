# SPDX-License-Identifier: Apache-2.0
"""The counts that are kept (results.json: a row a run and line) and the table that
docs/reliability.md makes of them."""

import json
import pathlib
import sys

import lines

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
PAGE = HERE.parents[1] / "docs/reliability.md"
BEGIN, END = "<!-- table: tools/reliability.py report -->", "<!-- end -->"
MODELS = "<!-- models: tools/reliability.py report -->"
END_MODELS = "<!-- end of models -->"


def read():
    return json.loads(RESULTS.read_text())


def row_text(row):
    return json.dumps(row)


def add(rows, text):
    for run in text if isinstance(text, list) else [text]:
        for name, counts in run["lines"].items():
            row = {"line": name, "count": counts["count"],
                   "failures": counts["failures"],
                   "seconds": counts["seconds"], "commit": run["commit"],
                   "cpu": run["cpu"], "workers": run["workers"]}
            if counts.get("parts"):
                row["parts"] = counts["parts"]
            if row not in rows:
                rows.append(row)


def merge(files):
    """Adds the runs of |files|; one that is there is not added again."""
    rows = read()
    for path in files:
        try:
            add(rows, json.loads(path.read_text()))
        except OSError as e:
            sys.exit(f"{path}: {e.strerror}")
        except (ValueError, TypeError, KeyError, AttributeError):
            sys.exit(f"{path} is not what `tools/reliability.py run --out` writes")
    RESULTS.write_text("[\n" + ",\n".join(map(row_text, rows)) + "\n]\n")
    return write()


def table():
    """A row a line: its whole count, what failed, of which trees, on what CPUs."""
    rows = read()
    text = ["| Line | Counted | Asked | Failed | Hours of a worker | Trees | CPUs |",
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


def models():
    """A row a model: how often its compilation was stopped, and the longest time after."""
    names = ("cancel-models", "deadline-models")
    found = {}
    for row in read():
        for part, counts in row.get("parts", {}).items():
            cell = found.setdefault(part, {}).setdefault(row["line"], [0, 0.0])
            cell[0] += counts["count"]
            cell[1] = max(cell[1], counts["worst_ms"])
    text = ["| Model | Cancelled | Ended within | Deadlines | Ended within |",
            "|---|---:|---:|---:|---:|"]
    for part in sorted(found):
        cells = [found[part].get(name, [0, 0.0]) for name in names]
        text.append(f"| {part} | " + " | ".join(
            f"{count:,} | {worst:.1f} ms" for count, worst in cells) + " |")
    return "\n".join(text)


def put(text, begin, content, end):
    before, rest = text.split(begin, 1)
    return f"{before}{begin}\n\n{content}\n\n{end}{rest.split(end, 1)[1]}"


def page():
    """The page with today's tables."""
    return put(put(PAGE.read_text(), BEGIN, table(), END), MODELS, models(),
               END_MODELS)


def write():
    PAGE.write_text(page())
    return 0
