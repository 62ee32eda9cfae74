#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each public function has a docstring that says what it takes and raises, and an
example; all examples run, and show what they say."""

import doctest
import importlib
import importlib.util
import inspect
import os
import pathlib
import sys

from case import run

import pestle as pt

# Signatures and names as docs/python-api.md has them.
TOOL = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"]) / "tools/python_api.py"
spec = importlib.util.spec_from_file_location("python_api", TOOL)
api = importlib.util.module_from_spec(spec)
spec.loader.exec_module(api)

# Values, and tuples with names, are what their docstring's first line says.
PLAIN = {"cpu", "EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult"}
# They raise nothing of their own.
SILENT = {"stop_gradient", "Array", "Error", "Module", "Structure", "absolute",
          "explain_misses", "is_deleted", "delete", "config"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def things():
    for place in api.MODULES:
        module = importlib.import_module("pestle." + place) if place else pt
        for name, value in api.public(module):
            if type(value).__name__ != "dtype" and name not in PLAIN:
                yield f"{module.__name__}.{name}", name, value
    for name in ("item", "tolist", "is_deleted", "delete", "astype", "sum", "reshape",
                 "at"):
        yield f"Array.{name}", name, getattr(pt.Array, name)
    yield "Jit.explain_misses", "explain_misses", type(pt.jit(abs)).explain_misses
    yield "Array.at[...]", "At", type(pt.ones((1,)).at[0])


def test_what_they_say():
    bad = []
    for title, name, value in things():
        text = inspect.getdoc(value) or ""
        if isinstance(value, property) or name in ("reshape",):
            continue
        if ">>>" not in text:
            bad.append(f"{title}: no example")
        elif "Raises" not in text and name not in SILENT:
            bad.append(f"{title}: does not say what it raises")
        elif not text.split("\n\n")[0].rstrip().endswith((".", ":", "...")):
            bad.append(f"{title}: its first paragraph is no sentence")
    assert not bad, "\n".join(bad)


def test_examples():
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(
        optionflags=FLAGS, verbose=False)
    failed, count = [], 0
    for title, name, value in things():
        text = inspect.getdoc(value) or ""
        if ">>>" not in text:
            continue
        test = parser.get_doctest(text, {"pt": pt}, title, None, 0)
        said = []
        result = runner.run(test, out=said.append, clear_globs=True)
        count += result.attempted
        if result.failed:
            failed.append("".join(said))
    assert not failed, "\n".join(failed)
    assert count > 300, count


def test_the_manual():
    """Names that docs/python.md has in code are there."""
    import re
    page = (TOOL.parents[1] / "docs/python.md").read_text()
    for name in set(re.findall(r"\bpt\.([a-z_]+(?:\.[a-z_]+)*)", page)):
        value = pt
        for part in name.split("."):
            value = getattr(value, part)


if sys.flags.optimize < 2:
    run(globals())
