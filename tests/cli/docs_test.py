#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/ops.md is what tools/gen_op_docs.py makes of the tables."""

import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent.parent
sys.exit(
    subprocess.run(
        [sys.executable, root / "tools/gen_op_docs.py", "--check"]
    ).returncode
)
