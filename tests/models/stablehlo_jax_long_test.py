#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_stablehlo_vs_jax.py on llvm; skipped where jax is not installed."""

import os
import pathlib
import subprocess
import sys

script = pathlib.Path(__file__).with_name("run_stablehlo_vs_jax.py")
# The interpreter that has jax may be another one than the tests'.
python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
sys.exit(subprocess.run([python, script], check=False).returncode)
