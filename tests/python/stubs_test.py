#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The stubs and docs/python-api.md are what the package says of itself, every public
function has a docstring, and importing it is quick and imports nothing large."""

import os
import pathlib
import subprocess
import sys

from case import HOME, run

ROOT = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"])
ENVIRONMENT = dict(os.environ, PYTHONPATH=str(HOME))


def test_written():
    # Signatures are shown otherwise by other versions.
    if sys.version_info[:2] != (3, 11):
        return
    done = subprocess.run([sys.executable, str(ROOT / "tools/python_api.py"), str(ROOT),
                           "--check"], env=ENVIRONMENT, capture_output=True, text=True,
                          check=False)
    assert not done.returncode, done.stdout + done.stderr


def test_import():
    code = ("import sys; before = set(sys.modules); import pestle; "
            "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))")
    done = subprocess.run([sys.executable, "-S", "-c", code], env=ENVIRONMENT,
                          capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["_operator", "atexit", "operator", "pestle"] or \
        set(done.stdout.split()) <= {"_operator", "operator", "pestle", "math",
                                     "collections", "keyword", "reprlib", "itertools",
                                     "_collections", "atexit"}, done.stdout


run(globals())
