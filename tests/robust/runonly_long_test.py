#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A build without the compiler runs the plan that a full build saved.

Configures and builds PESTLE_RUNTIME_ONLY=ON in a temporary folder, with the
plugins that this machine can build, and compares the bytes of the outputs.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = os.environ["PESTLE_SOURCE_DIR"]
BUILD = os.environ["PESTLE_BUILD_DIR"]

MODEL = """module @small {
  func.func @main(%x: tensor<16x32xf32> {pestle.name = "x"},
                  %w: tensor<32x24xf32> {pestle.name = "w"})
      -> (tensor<16x24xf32> {pestle.name = "y"}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : \
(tensor<16x32xf32>, tensor<32x24xf32>) -> tensor<16x24xf32>
    %1 = stablehlo.tanh %0 : tensor<16x24xf32>
    %2 = "pestle.softmax"(%1) <{dimensions = array<i64: 1>}> : \
(tensor<16x24xf32>) -> tensor<16x24xf32>
    return %2 : tensor<16x24xf32>
  }
}
"""


def run(command, **more):
    print("+", " ".join(map(str, command)), flush=True)
    result = subprocess.run([str(c) for c in command], capture_output=True,
                            text=True, check=False, **more)
    if result.returncode:
        sys.exit(f"exit {result.returncode}:\n{result.stdout[-3000:]}\n"
                 f"{result.stderr[-3000:]}")
    return result.stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        small = folder / "build"
        run(["cmake", "-S", SOURCE, "-B", small, "-DCMAKE_BUILD_TYPE=Release",
             "-DPESTLE_RUNTIME_ONLY=ON", "-DPESTLE_BUILD_TESTS=OFF"])
        run(["cmake", "--build", small, "-j2"])
        for part in "frontend", "ir", "passes", "codegen":
            found = list((small / part).rglob("*.o"))
            assert not found, f"the run-only build compiled {found[0]}"
        model = folder / "small.mlir"
        model.write_text(MODEL)
        inputs = ["--input", "x=random:1", "--input", "w=random:2"]
        for device in "ref", "llvm":
            there = run([BUILD + "/pestle", "plugins"])
            if device not in there:
                continue
            plan, full = folder / f"{device}.plan", folder / f"full-{device}"
            run([BUILD + "/pestle", "run", model, *inputs, "--device", device,
                 "--no-cache", "--save-plan", plan, "--outputs", full])
            out = folder / f"small-{device}"
            environment = dict(os.environ,
                               PESTLE_BACKEND_PATH=str(small / "backends"))
            run([small / "pestle", "run", plan, *inputs, "--outputs", out],
                env=environment)
            names = sorted(p.name for p in full.iterdir())
            assert names == sorted(p.name for p in out.iterdir()) and names
            for name in names:
                same = (full / name).read_bytes() == (out / name).read_bytes()
                assert same, f"{device}: {name} differs"
            print(f"{device}: {len(names)} output(s) equal")
        # What it cannot do, it says.
        result = subprocess.run([small / "pestle", "run", model],
                                capture_output=True, text=True, check=False)
        print(result.stderr)
        assert result.returncode and "pestle: error: " in result.stderr


if __name__ == "__main__":
    main()
