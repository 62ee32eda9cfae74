#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A build without frontend, ir, passes and codegen runs a plan that the whole
build saved, with the same bits. Builds it below the build folder."""

import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
SMALL = BUILD / "runtime-only"

MODEL = """\
func.func public @main(%x: tensor<64x32xf32>, %w: tensor<32x48xf32>)
    -> tensor<64x48xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x32xf32>, tensor<32x48xf32>) -> tensor<64x48xf32>
  %1 = stablehlo.tanh %0 : tensor<64x48xf32>
  return %1 : tensor<64x48xf32>
}
"""


def run(*command):
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    cache = (BUILD / "CMakeCache.txt").read_text()
    if re.search(r"PESTLE_RUNTIME_ONLY:\w+=(ON|1|TRUE)", cache):
        print("skipped: this build has no compiler to make a plan with")
        sys.exit(77)
    sanitize = re.search(r"PESTLE_SANITIZE:\w+=(.*)", cache)
    options = ["-DPESTLE_RUNTIME_ONLY=ON", "-DPESTLE_BUILD_TESTS=OFF"]
    options += [f"-DPESTLE_SANITIZE={sanitize[1] if sanitize else ''}"]
    run("cmake", "-S", SOURCE, "-B", SMALL, *options)
    run("cmake", "--build", SMALL, "--target", "pestle_command", "-j", "2")
    (SMALL / "model.mlir").write_text(MODEL)
    plan, inputs = SMALL / "model.plan", []
    for i in range(2):
        inputs += ["--input", f"{i}=random:{i}"]
    whole = run(BUILD / "pestle", "run", SMALL / "model.mlir", *inputs,
                "--save-plan", plan, "--outputs", SMALL / "o")  # fmt: skip
    run(SMALL / "pestle", "run", plan, *inputs, "--compare", SMALL / "o",
        "--atol", "0", "--rtol", "0")  # fmt: skip
    print(f"same bits{whole}")


if __name__ == "__main__":
    main()
