#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests cost alone: the seconds of CPU of each, which a busy machine does
not change, and the wall-clock time beside it. tests/times.txt is made of it.

  test_times.py BUILD [REGEX]     runs the tests of a build one by one
  test_times.py BUILD [REGEX] --write  and writes the rows of tests/times.txt
                                  that are new or no longer right

A row is right while the test takes between half and all of its seconds. Tests
that need less than PESTLE_TEST_SECONDS (tests/CMakeLists.txt) have none."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

TIMES = pathlib.Path(__file__).resolve().parents[1] / "tests/times.txt"
LEAST = 30  # PESTLE_TEST_SECONDS


def tests(build, pattern):
    """Name, command, environment and folder of each test."""
    text = subprocess.run(
        ["ctest", "--test-dir", build, "-N", "-R", pattern,
         "--show-only=json-v1"],
        capture_output=True, text=True, check=True).stdout  # fmt: skip
    for test in json.loads(text)["tests"]:
        properties = {p["name"]: p["value"] for p in test["properties"]}
        environment = dict(os.environ)
        for line in properties.get("ENVIRONMENT", []):
            name, _, value = line.partition("=")
            environment[name] = value
        folder = properties.get("WORKING_DIRECTORY", build)
        if "command" in test:
            yield test["name"], test["command"], environment, folder


def measured(command, environment, folder):
    """Exit code, seconds of CPU with all children, seconds on the wall."""
    begin = time.monotonic()
    process = subprocess.Popen(command, env=environment, cwd=folder,
                               stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - begin
    return (os.waitstatus_to_exitcode(status),
            usage.ru_utime + usage.ru_stime, wall)


def read_rows():
    lines = TIMES.read_text(encoding="utf-8").splitlines()
    head = [line for line in lines if not re.match("[a-z]", line)]
    rows = dict(line.split() for line in lines if re.match("[a-z]", line))
    return head, {name: int(seconds) for name, seconds in rows.items()}


def rounded(seconds):
    """Up, to two digits: a small change is no new row."""
    step = 10 if seconds >= 100 else 5
    while step * 100 < seconds:
        step *= 10
    return int(-(-seconds // step) * step)


def main():
    words = [word for word in sys.argv[1:] if word != "--write"]
    if not words:
        sys.exit(__doc__)
    build = str(pathlib.Path(words[0]).resolve())
    pattern = words[1] if len(words) > 1 else "."
    head, rows = read_rows()
    for name, command, environment, folder in tests(build, pattern):
        code, cpu, wall = measured(command, environment, folder)
        said = {0: "", 77: "  skipped"}.get(code, f"  exit code {code}")
        print(f"{name:40} {cpu:8.1f} {wall:8.1f}{said}", flush=True)
        if code:
            continue
        row = rows.get(name, LEAST)
        if not (cpu <= row and (cpu > row / 2 or row == LEAST)):
            rows[name] = rounded(cpu)
        if rows.get(name, 0) <= LEAST:
            rows.pop(name, None)
    if "--write" in sys.argv:
        lines = [f"{name} {rows[name]}" for name in sorted(rows)]
        TIMES.write_text("\n".join(head + lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
