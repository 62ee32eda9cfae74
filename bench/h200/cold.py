#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long whole networks take to compile on a machine with a GPU.

    cold.py --base DIR [--only TEXT,...] [--rounds N] [--device cuda]

The networks are those of networks.py. Of each: `cold`, read, compiled and loaded by a
process that has a small module behind it, so that the driver's context and the compiler are
up, where no cache knows the network, NVRTC's own neither; `warm`, the same by a new process
where Pestle's cache on disk knows it. The least of N rounds, and the small module's own
time, which is what a process takes to begin."""

import argparse
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import networks  # noqa: E402
from bench import Pestle  # noqa: E402

NAMES = ["encoder4_b8_s256_f16", "vit_b_16_b8_f16", "efficientnet_b0_b16_f16"]
SMALL = """func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.add %x, %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
"""


def exported(name, options, folder):
    import torch
    torch.set_grad_enabled(False)
    torch.backends.mha.set_fastpath_enabled(False)
    module, inputs, dtype, path = networks.prepared(name, options, torch)
    if dtype == "float16":
        module, inputs = module.half(), [x.half() for x in inputs]
    path = path or folder / f"{name}.onnx"
    if not path.exists():
        torch.onnx.export(module, tuple(inputs), str(path), dynamo=False, opset_version=17)
    return path


def times(options, path, small, cache):
    """Milliseconds that the small module and the network take in a new process."""
    child = Pestle(options.base, options.device, cache)
    try:
        return [float(child.ask(f"load {p} 1")[0]) for p in (small, path)]
    finally:
        child.child.kill()
        child.child.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    options.base, options.onnx = str(pathlib.Path(options.base).resolve()), None
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        small = folder / "small.mlir"
        small.write_text(SMALL, encoding="utf-8")
        for name in (n for n in NAMES if any(t in n for t in options.only.split(","))):
            path, begin, cold, warm = exported(name, options, folder), [], [], []
            for i in range(options.rounds):
                cache = folder / f"{name}.{i}"
                # Where NVRTC and the driver keep what they compiled.
                os.environ["CUDA_CACHE_PATH"] = str(folder / f"{name}.{i}.nv")
                first, ms = times(options, path, small, cache)
                begin.append(first)
                cold.append(ms)
                warm.append(times(options, path, small, cache)[1])
            print(f"{name:26} cold {min(cold):7.0f} ms, warm {min(warm):5.0f}, "
                  f"a process begins in {min(begin):4.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
