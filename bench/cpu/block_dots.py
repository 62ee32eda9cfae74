#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One product with int4 weights of accuracy level 4, by numbers of rows, compiled for several
CPUs (--target-cpu) or by several builds, in turns: the least time of a kernel on one thread, and
what it chose. `native` is this machine.

    block_dots.py BUILD[,BUILD..] [DEPTHxCOLUMNS,.. [ROWS,ROWS.. [CPU,CPU.. [ROUNDS]]]]

    taskset -c 2 block_dots.py build/release 576x3072 16,64,512 native,icelake-server"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

TEXT = """\
func.func @main(%x: tensor<{m}x{k}xf32>, %w: tensor<{n}x{half}xui8>, %s: tensor<{n}x{blocks}xf32>) -> tensor<{m}x{n}xf32> {{
  %y = "pestle.block_dot"(%x, %w, %s) {{bits = 4 : i64, block = 32 : i64, accuracy = 4 : i64}} :
      (tensor<{m}x{k}xf32>, tensor<{n}x{half}xui8>, tensor<{n}x{blocks}xf32>) -> tensor<{m}x{n}xf32>
  return %y : tensor<{m}x{n}xf32>
}}
"""


class Way:
    def __init__(self, build, cpu):
        self.build, self.cpu, self.best, self.how = pathlib.Path(build).resolve(), cpu, 1e9, ""
        self.options = [] if cpu == "native" else ["--target-cpu", cpu]

    def call(self, *arguments):
        environment = dict(os.environ, PESTLE_BACKEND_PATH=str(self.build / "backends"))
        done = subprocess.run([self.build / "pestle", *arguments, *self.options], capture_output=True, text=True,
                              check=False, env=environment)
        if done.returncode:
            sys.exit(f"{self.build} {self.cpu}: {done.stderr}")
        return done.stdout + done.stderr

    def look(self, path):
        said = re.search(r"schedule +(.*)", self.call("explain", path))
        self.best, self.how = 1e9, said[1] if said else ""

    def measure(self, path, inputs):
        said = self.call("run", path, "--threads", "1", "--profile", *inputs)
        self.best = min(self.best, float(re.search(r"^ +0 +([0-9.]+) ", said, re.M)[1]))


def main():
    given = sys.argv[1:] + [None] * 5
    if not given[0]:
        sys.exit(__doc__)
    ways = [Way(b, c) for b in given[0].split(",") for c in (given[3] or "native").split(",")]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m.mlir"
        for shape in (given[1] or "576x3072").split(","):
            k, n = map(int, shape.split("x"))
            for m in map(int, (given[2] or "8,64").split(",")):
                blocks = -(-k // 32)
                path.write_text(TEXT.format(m=m, k=k, n=n, half=16 * blocks, blocks=blocks))
                inputs = ["--input", f"0={m}x{k}xf32=random:1", "--input", f"1={n}x{16 * blocks}xui8=random:2",
                          "--input", f"2={n}x{blocks}xf32=0.1"]
                for way in ways:
                    way.look(path)
                for _ in range(int(given[4] or 3)):
                    for way in ways:
                        way.measure(path, inputs)
                for way in ways:
                    print(f"{m:4d} rows, {k} to {n}, {way.build.name} {way.cpu:14s} {way.best:9.1f} us, "
                          f"{m * k * n / way.best / 1e3:6.0f} G products/s, {ways[0].best / way.best:.2f}: {way.how}", flush=True)


if __name__ == "__main__":
    main()
