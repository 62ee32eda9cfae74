# SPDX-License-Identifier: Apache-2.0
"""tests/h200/gpus.py on four GPUs of the fakes: its results are right, and a second call
measures nothing again."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

DRIVER, NVRTC, NCCL = sys.argv[1:4]
BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]).resolve()
SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "h200/gpus.py"


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        base = folder / "base"
        for place, file in (("lib", "libpestle.so.0"), ("bin", "pestle"),
                            ("backends", "backends/libpestle-cuda.so")):
            (base / place).mkdir(parents=True)
            (base / place / pathlib.Path(file).name).symlink_to(BUILD / file)
        env = os.environ | {"FAKE_CUDA_DEVICES": "4", "OUT": name,
                            "LD_LIBRARY_PATH": f"{DRIVER}:{NVRTC}:{NCCL}",
                            "PESTLE_NCCL": f"{NCCL}/libnccl.so.2"}
        line = [sys.executable, SCRIPT, "--base", base, "--small", "--seconds", "2000"]
        for only, parts in (("wire,tensor,data,fail", 6), ("wire,tensor,data", 6)):
            done = subprocess.run([*line, "--only", only], env=env, text=True, check=False,
                                  capture_output=True)
            print(done.stdout, done.stderr)
            assert done.returncode == 0 and "all right" in done.stdout, done.returncode
            rows = [json.loads(r) for r in (folder / "gpus.jsonl").read_text().splitlines()]
            assert sum(r["name"] == "ended" for r in rows) == parts, rows
        # Only what machine it is was looked at again.
        assert done.stdout.count(" ok ") == 1, done.stdout
        assert all(r["right"] for r in rows if "right" in r)
    return 0


if __name__ == "__main__":
    sys.exit(main())
