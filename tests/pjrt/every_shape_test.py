# SPDX-License-Identifier: Apache-2.0
"""bench/h200/every_shape.py on the CPU: the smallest row of each kind is timed and right.
Skips where JAX cannot be imported (PESTLE_JAX_PYTHON names a Python that can)."""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ.get("PESTLE_SOURCE_DIR", HERE.parent.parent))
BUILD = pathlib.Path(os.environ.get("PESTLE_BUILD_DIR", "build/release"))


def main():
    python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import jax, ml_dtypes"], capture_output=True,
                      check=False).returncode:
        print("skip: no JAX")
        return 77
    if not (BUILD / "bin/bench_device").exists():
        print("skip: bench_device is not built")
        return 77
    sys.path.insert(0, str(SOURCE / "bench/h200"))
    import kinds
    every = kinds.rows(0)
    assert len(every) == 200 and [r.name for r in every] == [
        r.name for r in kinds.rows(0)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python, str(SOURCE / "bench/h200/every_shape.py"), "--base", str(BUILD),
             "--device", "cpu", "--smallest", "--rounds", "1", "--seconds", "200",
             "--minutes", "20", "--out", f"{folder}/rows.jsonl"],
            capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    count = len(kinds.KINDS)
    assert not done.returncode
    assert f"{count} rows, {count} with a ratio" in done.stdout
    assert ", 0 wrong" in done.stdout
    return 0


sys.exit(main())
