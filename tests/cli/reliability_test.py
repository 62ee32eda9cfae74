#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/reliability.md's table is what tools/reliability.py makes of the results that
are kept; each row of these is of a line that there is, and whole. A model that travels
without its weights has all else when it is filled. What is not there is told of."""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "tools/reliability"))
import hollow  # noqa: E402
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


def field(number, content):
    """A field of a protobuf message: bytes, or an int below 128."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    size, length = len(content), b""
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def tensor(kind, data):
    return field(hollow.DATA_TYPE, kind) + field(hollow.RAW_DATA, data)


floats, shape = b"\1\2\3\4" * 20000, b"\7" * 50000
constant = field(1, field(5, field(5, tensor(hollow.INT8, b"\x55" * 70000))))
model = field(7, constant + field(5, tensor(hollow.FLOAT, floats))
              + field(5, tensor(7, shape)) + field(2, b"name"))
packed = hollow.pack(model)
filled = hollow.fill(packed)
assert len(packed) < len(shape) + 500, len(packed)
assert len(filled) == len(model) and filled == hollow.fill(packed)
spans = list(hollow.weights(model, hollow.MODEL, 0, len(model)))
assert [end - begin for _, begin, end in spans] == [70000, 80000], spans
assert spans == list(hollow.weights(filled, hollow.MODEL, 0, len(filled)))
at = 0
for _, begin, end in spans:
    assert filled[at:begin] == model[at:begin], (at, begin)
    assert filled[begin:end] != model[begin:end], (begin, end)
    at = end
assert filled[at:] == model[at:]

def refuses(words, *parts):
    """A sentence, and results.json as it was."""
    before = page.RESULTS.read_bytes()
    done = subprocess.run([sys.executable, ROOT / "tools/reliability.py", *words],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1, (words, done)
    assert "Traceback" not in done.stderr, done.stderr
    for part in parts:
        assert part in done.stderr, (part, done.stderr)
    assert page.RESULTS.read_bytes() == before


with tempfile.TemporaryDirectory() as folder:
    other = pathlib.Path(folder) / "other.json"
    other.write_text('{"lines": {"x": {"count": 1}}}')
    refuses(["merge", f"{folder}/none.json"], "none.json: No such file")
    refuses(["merge", other], "other.json is not what", "run --out")
    for what in (["--missing", "x"], ["--conditions", "x"]):
        refuses(["coverage", "--build", folder, *what],
                "nothing was counted in", "run tools/reliability.py coverage")
    refuses(["mutate", "--build", folder], "compile_commands.json: No such file")
print(f"{len(names)} lines, {len(page.read())} runs")
