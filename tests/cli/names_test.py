#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that a model gives may hold any bytes: what is shown of them has no control
characters, which would move a terminal's cursor, and what is printed is read back."""

import os
import pathlib
import subprocess
import sys
import tempfile

PESTLE = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]) / "pestle"
MODEL = r"""
func.func @main(%x: tensor<2x4xf32> {pestle.name = "in\1B[31m\07"}) ->
    (tensor<2x4xf32> {pestle.name = "out\0D\7F"}) {
  %c = stablehlo.constant dense<0.5> : tensor<4x4xf32>
  %0 = stablehlo.tanh %x : tensor<2x4xf32> loc("first\1B[2J\0Anode")
  %1 = stablehlo.dot_general %0, %c, contracting_dims = [1] x [0] : (tensor<2x4xf32>,
       tensor<4x4xf32>) -> tensor<2x4xf32> loc("second\08\C2\9B")
  return %1 : tensor<2x4xf32>
}
"""
VERBS = [["dump"], ["opt"], ["explain"], ["opt", "--print-after", "all"],
         ["dump", "--stage", "fused"], ["dump", "--stage", "schedule"],
         ["dump", "--stage", "kernels"], ["dump", "--stage", "plan"],
         ["run", "--input", "0=random:1", "--log", "debug", "--no-cache"]]


def controls(data):
    text = data.decode("utf-8", "replace")
    return [c for c in text if (ord(c) < 32 and c not in "\n\t") or
            127 <= ord(c) < 160]


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m.mlir"
        path.write_text(MODEL)
        for verb in VERBS:
            words = [PESTLE, verb[0], path, *verb[1:], "--device", "ref"]
            done = subprocess.run(words, capture_output=True, check=False)
            found = controls(done.stdout + done.stderr)
            good = done.returncode == 0 and not found
            print("ok  " if good else "FAIL", *verb, done.returncode, found)
            if done.returncode:
                print(done.stderr.decode("utf-8", "replace"))
            bad += not good
        text = subprocess.run([PESTLE, "dump", path], capture_output=True, check=True)
        (pathlib.Path(folder) / "n.mlir").write_bytes(text.stdout)
        again = subprocess.run([PESTLE, "dump", f"{folder}/n.mlir"],
                               capture_output=True, check=True)
        if again.stdout != text.stdout:
            print("FAIL: what is printed is not what is read back")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
