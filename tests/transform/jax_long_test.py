#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All cases of jax_cases.py, by the JAX that is installed (PESTLE_JAX_PYTHON, or this
Python), against tests/unit/transform/jax_test.c."""

import os
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
build = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
if subprocess.run([python, "-c", "import jax"], capture_output=True).returncode:
    print(f"{python} has no JAX")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder) / "jax.txt"
    subprocess.run([python, here / "jax_cases.py", out], check=True)
    done = subprocess.run([build / "tests/bin/test_transform_jax", out])
sys.exit(done.returncode)
