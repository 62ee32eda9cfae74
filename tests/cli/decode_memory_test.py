#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of a process that decodes with plans of the cache: the weights once, mapped, the
caches, and 64 MB, at its highest; also while a second plan is loaded. The model is written as
onnxruntime-genai's builder writes it, with its weights in a file of their own. Exits 77
without numpy and onnx, or where a process does not say its highest memory."""

import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy  # noqa: F401
    import onnx
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
if not sys.platform.startswith("linux"):
    print("skipped: the units of ru_maxrss are Linux's")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("models", "cli", "robust")]
import llama  # noqa: E402
from build import sanitized  # noqa: E402
from program import PESTLE  # noqa: E402

MB, MOST = 1 << 20, 2048


# A child's highest memory begins with that of the process that made it.
SMALL = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
text = process.stdout.read()
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss, text.decode())
"""


def generate(path, folder):
    """Exit code, output, and the highest memory in bytes."""
    ids = ",".join(map(str, range(1, 41)))
    command = [PESTLE, "generate", str(path), "--ids", ids, "-n", "3", "--threads", "1", "--most", str(MOST), "--cache-dir", str(folder / "cache")]
    done = subprocess.run([sys.executable, "-c", SMALL, *command], capture_output=True, text=True, check=True)
    code, most, text = done.stdout.split(" ", 2)
    return int(code), text, int(most) * 1024


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # Most of it an embedding of 134 MB, which no two copies of have room.
        row = dict(llama.SIZES["tiny"], width=512, heads=8, shared=2, inner=512, layers=2, words=65536, most=MOST)
        maker = llama.Maker(row)
        onnx.save(maker.model(), folder / "model.onnx", save_as_external_data=True, location="model.onnx.data", size_threshold=1024)
        weights = sum(a.nbytes for a in maker.values.values())
        caches = 2 * maker.layers * maker.shared * maker.depth * MOST * 4
        bound = weights + caches + 64 * MB
        code, first, _ = generate(folder / "model.onnx", folder)
        again, second, most = generate(folder / "model.onnx", folder)
        print(f"{most / MB:.0f} MB; weights {weights / MB:.0f}, caches {caches / MB:.0f}, bound {bound / MB:.0f}")
        if code or again or first != second or not first.strip():
            print("wrong:", code, again, first, second)
            bad += 1
        # A sanitizer has memory of its own beside each block.
        if 2 * weights < bound or (most > bound and not sanitized()):
            print("wrong: too much memory, or a model too small to tell")
            bad += 1
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
