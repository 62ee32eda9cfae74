#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ONNX backend cases of node_tests.txt through `pestle run`: what Pestle
supports must be right, and at least MUST_RUN of them must be supported. Exits
77, "skipped", when a Python package is missing."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = os.environ["PESTLE_BUILD_DIR"]
MUST_RUN = 600


def main():
    try:
        import numpy, onnx, ml_dtypes  # noqa: F401
    except ImportError as e:
        print(f"skipped: {e}; tools/requirements.txt lists what is needed")
        sys.exit(77)
    data = os.path.join(BUILD, "node-data")
    if not os.path.exists(os.path.join(data, "tolerances.json")):
        subprocess.run(
            [sys.executable, str(HERE / "gen_node_data.py"), data], check=True
        )
    exe = f"{BUILD}/pestle run {{model}} --inputs {{inputs}}"
    exe += " --outputs {outputs} --threads 1 --no-cache"
    command = [sys.executable, str(HERE / "run_node_tests.py"), "--data", data]
    command += ["--category", "node,simple", "--exe", exe]
    command += ["--include", str(HERE / "node_tests.txt")]
    command += ["--show-failed", "40", "--must-run", str(MUST_RUN)]
    command += ["--jobs", str(os.cpu_count() or 1)]
    command += sys.argv[1:]
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
