#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tarball that PESTLE_DIST names, on a machine with a GPU and perhaps another system
than the one that packed it: README's first commands, what doctor says of CPU and GPU, and
the same model on the GPU. Skips without that variable or without an NVIDIA GPU."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
os.environ.setdefault("PESTLE_BUILD_DIR", str(HERE))
sys.path[:0] = [str(HERE.parent / "install"), str(HERE.parent / "cli"), str(HERE.parent)]
from first_screen import RIGHT, ROWS, commands  # noqa: E402
from stranger import model_bytes, npy  # noqa: E402

tarball = os.environ.get("PESTLE_DIST")
if not tarball or not pathlib.Path("/dev/nvidiactl").exists():
    print("skipped: no PESTLE_DIST or no NVIDIA GPU")
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="pestle-dist-") as scratch:
    folder = pathlib.Path(scratch)
    (folder / pathlib.Path(tarball).name).symlink_to(pathlib.Path(tarball).resolve())
    (folder / "model.onnx").write_bytes(model_bytes())
    (folder / "x.npy").write_bytes(npy(ROWS))
    script = ("grep PRETTY_NAME /etc/os-release; ldd --version | head -n 1\n" + commands()
              + "pestle run model.onnx --input x=x.npy --device gpu --strict\n")
    done = subprocess.run(["bash", "-ec", script], cwd=folder, check=False, text=True,
                          capture_output=True)
    print(done.stdout + done.stderr)
    assert done.returncode == 0, done.returncode
    for device in ("cpu", "gpu"):
        assert re.search(rf"^ok +{device}:0 ", done.stdout, re.M), device
    assert done.stdout.count(RIGHT) == 2
