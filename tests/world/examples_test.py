#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/parallel on two and four processes: each compares itself with one process.
Examples in JAX are left out where JAX cannot be imported (PESTLE_JAX_PYTHON names a Python
that can)."""
import importlib.util
import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]).resolve()
SOURCE = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"])
EXAMPLES = SOURCE / "examples/parallel"


def run(python, name, *args, **more):
    env = {k: v for k, v in os.environ.items() if k != "PJRT_NAMES_AND_LIBRARY_PATHS"}
    done = subprocess.run([python, EXAMPLES / name, *args], env=env | more, check=False,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (name, args, done.stdout, done.stderr)
    return done.stdout


def by_arrays():
    found = BUILD / "python"
    if not (found / "pestle").is_dir() or not importlib.util.find_spec("numpy"):
        return 0
    more = {"PYTHONPATH": str(found), "PESTLE": str(BUILD / "pestle")}
    assert "on data=2" in run(sys.executable, "lenet_arrays.py", "2", "18", **more)
    assert "on data=4" in run(sys.executable, "gpt_arrays.py", "4", "6", **more)
    if importlib.util.find_spec("onnx"):
        for count in ("2", "4"):
            assert f"on {count} processes" in run(sys.executable, "mlp_onnx.py", count,
                                                  **more)
    return 1


def by_jax():
    python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
    library = BUILD / "pjrt_plugin_pestle.so"
    probe = subprocess.run([python, "-c", "import jax"], check=False, capture_output=True)
    if probe.returncode or not library.exists():
        return 0
    more = {"PYTHONPATH": str(SOURCE / "python"), "PESTLE_PJRT_LIBRARY": str(library),
            "JAX_PLATFORMS": "pestle", "PESTLE_PJRT_DEVICE": "cpu"}
    for name, count, steps in (("lenet_jax.py", "2", "15"), ("gpt_jax.py", "4", "6")):
        assert f"on {count}\n" in run(python, name, steps, PESTLE_CPU_DEVICES=count, **more)
    return 1


def pages():
    """Examples are read on one page or two, and the page names each."""
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 120, path.name
        assert path.name == "training.py" or f"`{path.name}`" in readme, path.name


def main():
    pages()
    return 0 if by_arrays() + by_jax() else 77


if __name__ == "__main__":
    sys.exit(main())
