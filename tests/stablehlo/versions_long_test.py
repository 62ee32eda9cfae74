#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_versions.py; skipped where jax is not installed."""

import os
import pathlib
import subprocess
import sys

script = pathlib.Path(__file__).with_name("run_versions.py")
# The interpreter that has jax may be another one than the tests'.
python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
if subprocess.run([python, "-c", "import jax"], capture_output=True).returncode:
    print("jax is not installed")
    sys.exit(77)
sys.exit(subprocess.run([python, script], check=False).returncode)
