#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""array-api-tests, the standard's own suite, of a folder that PESTLE_ARRAY_API_TESTS
names (a checkout of data-apis/array-api-tests with its submodule; it is not ours). Of
a Python that has pytest, hypothesis and ndindex; PESTLE_ARRAY_API_EXAMPLES says how
many examples a test draws, 20 unless it does."""

import os
import pathlib
import subprocess
import sys

from case import HOME

# Each is no test for us, and says why.
SKIPPED = {
    # It draws shapes of more axes than capabilities() says there are: 16.
    "array_api_tests/test_manipulation_functions.py::test_reshape": "rank 17",
}

SUITE = os.environ.get("PESTLE_ARRAY_API_TESTS")
if not SUITE or not (pathlib.Path(SUITE) / "array_api_tests").exists():
    print("skipped: PESTLE_ARRAY_API_TESTS names no checkout of array-api-tests")
    sys.exit(77)
try:
    import hypothesis  # noqa: F401
    import ndindex  # noqa: F401
    import pytest  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

environment = dict(os.environ, PYTHONPATH=str(HOME), ARRAY_API_TESTS_MODULE="pestle",
                   ARRAY_API_TESTS_VERSION="2025.12")
command = [sys.executable, "-m", "pytest", "-q", "--disable-deadline",
           "--max-examples", os.environ.get("PESTLE_ARRAY_API_EXAMPLES", "20"),
           "array_api_tests"]
for name in SKIPPED:
    command += ["--deselect", name]
sys.exit(subprocess.run(command, cwd=SUITE, env=environment, check=False).returncode)
