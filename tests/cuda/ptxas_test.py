#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ptxas says of the kernels for Hopper's warpgroups: no register is spilled, no
wgmma waits for the one before because registers were touched, no setmaxnreg is
ignored, and nothing in memory is touched before the wait for the kernel in front. Needs libnvrtc (which has ptxas within), no driver. Exits 77, "skipped",
without.

usage: ptxas_test.py [--all]
"""

import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BUILD = os.environ["PESTLE_BUILD_DIR"]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/h200"))
try:
    from attention_warpgroups_test import text_of as attention
    from byte_products_test import dot as bytes_dot
    from dot_algorithms_test import algorithm, dot as dot_by
    from f8_products_test import dot as f8_dot
    from warpgroups_conv_test import ONE, conv
    from warpgroups_test import text_of as product
    from recurrent import module
except ImportError as e:
    print(f"skipped: {e}; tools/requirements.txt lists what is needed")
    sys.exit(77)

ARCH = "sm_90a"
# As plugins/cuda/nvrtc.c has them, and what ptxas says.
OPTIONS = ["--std=c++17", "-fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true",
           "--disable-warnings", "--restrict", "--ptxas-options=-v"]
ATTENTION = [  # b, h, s, t, d, e
    ((4, 16, 2048, 2048, 128, 128), "bf16", None),
    ((4, 16, 2048, 2048, 128, 128), "bf16", "causal"),
    ((2, 4, 500, 700, 256, 256), "f16", "causal given"),
    ((2, 4, 256, 300, 72, 40), "f16", "bias"),
]
MORE_ATTENTION = [((2, 4, 512, 512, d, d), "bf16", hidden)
                  for d in range(32, 257, 32) for hidden in (None, "window")]
PRODUCTS = [
    (1, 4096, 4096, 4096, True, False, "bf16", "bf16", ""),
    (1, 2048, 2048, 2048, True, False, "bf16", "bf16", ""),  # clusters: columns
    (1, 64, 4096, 4096, True, True, "bf16", "bf16", ""),     # and parts of k
    (3, 300, 264, 72, False, True, "f16", "f32", "tanh"),
]
MORE_PRODUCTS = [(1, m, n, 512, a, b, "bf16", "bf16", "")
                 for m, n in ((512, 512), (4096, 1000))
                 for a in (True, False) for b in (True, False)]
BYTES = [((m, k), (n, k), (1, 1)) for m, n, k in ((4096, 4096, 4096), (2048, 2048, 2048),
                                                  (64, 4096, 8192))]
F8 = [((m, k), (n, k), (1, 1), types) for m, n, k, types in (
    (8192, 8192, 8192, ("f8E4M3FN", "f8E4M3FN")), (4096, 4096, 4096, ("f8E4M3FN", "f8E4M3FN")),
    (1024, 1024, 1024, ("f8E5M2", "f8E5M2")),
    (512, 512, 1024, ("f8E4M3FN", "f8E5M2")),
    (64, 4096, 8192, ("f8E4M3FN", "f8E4M3FN")))]  # fmt: skip
TF32 = [(4096, 4096, 4096), (2048, 2048, 2048), (64, 4096, 4096)]
CONVOLUTIONS = [
    dict(n=64, h=28, w=28, c=256, o=256, y=3, x=3, pad=ONE, dtype="bf16", residual=True),
    dict(n=1, h=14, w=14, c=256, o=256, y=3, x=3, pad=ONE, dtype="bf16", residual=True),
    dict(n=64, h=1, w=3000, c=72, o=64, y=1, x=5, pad=((0, 0), (2, 1)), weights="[o, 0, 1, i]"),
]
MORE_CONVOLUTIONS = [dict(n=64, h=56, w=56, c=c, o=o, y=k, x=k, step=(s, s), residual=True)
                     for c in (64, 256) for o in (64, 128) for k in (1, 3, 7) for s in (1, 2)]
RECURRENT = ["lstm_64_100_1", "gru_96_100_1", "lstm_256_100_32", "lstm_512_100_32"]
MORE_RECURRENT = ["gru_64_100_32", "lstm_100_100_200", "lstm_128_100_1", "gru_256_100_1",
                  "gru_128_100_32", "lstm_1024_10_1", "lstm_1024_10_32", "gru_1024_10_8"]
# Each line that is wrong, and what it says.
WRONG = {
    r"[1-9]\d* bytes spill": "registers are spilled",
    r"(?i)serializ": "products wait for each other",
    r"(?i)setmaxnreg.*ignored": "REGISTERS is ignored",
    r"(?i)warning": "ptxas warns",
}


# What touches global memory, in PTX.
TOUCHES = r"(?m)^\s*(@\S+\s+)?(ld|st|red|atom|ldu)\.(\w+\.)*?global.*|^\s*(@\S+\s+)?cp\..*"


def load_nvrtc():
    for name in ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"):
        for folder in ("", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"):
            try:
                return ctypes.CDLL(folder + name)
            except OSError:
                continue
    print("skipped: no libnvrtc")
    sys.exit(77)


def log_of(nvrtc, text):
    """What the compiler says of a kernel; it must be taken."""
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    options = [option.encode() for option in (f"--gpu-architecture={ARCH}", *OPTIONS)]
    array = (ctypes.c_char_p * len(options))(*options)
    result = nvrtc.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    ptx = b""
    if not result:
        nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
        ptx = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetPTX(program, ptx)
        ptx = ptx.value
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return result, log.value.decode(errors="replace"), ptx.decode()


def sources(text, folder):
    """The kernels of a module that have roles, as CUDA C."""
    path = f"{folder}/m.mlir"
    pathlib.Path(path).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [f"{BUILD}/pestle", "dump", path, "--stage", "source", "--target", f"cuda:{ARCH}"],
        capture_output=True, text=True, check=False,
        env=dict(os.environ, PESTLE_BACKEND_PATH=f"{BUILD}/backends"))  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-500:])
    return done.stdout


def main():
    every = "--all" in sys.argv
    nvrtc, wrong = load_nvrtc(), 0
    cases = [(f"attention {c}", attention(*c, "bhsd")[1])
             for c in ATTENTION + (MORE_ATTENTION if every else [])]
    cases += [(f"product {c}", product(c)) for c in PRODUCTS + (MORE_PRODUCTS if every else [])]
    cases += [(f"product of bytes {c}", bytes_dot(*c)) for c in BYTES]
    cases += [(f"product of 8-bit floats {c}", f8_dot(*c)) for c in F8]
    cases += [(f"product by tf32 {m} {n} {k}", dot_by((m, k), (n, k), (1, 1), algorithm("tf32")))
              for m, n, k in TF32]
    cases += [(f"convolution {c}", conv(**c)[0])
              for c in CONVOLUTIONS + (MORE_CONVOLUTIONS if every else [])]
    # Layers in one group, with columns in shared memory, and in a cluster: loops without
    # products by warpgroups, whose matrices must stay in registers.
    loops = [(f"loop {c}", module(c)) for c in RECURRENT + (MORE_RECURRENT if every else [])]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in cases + loops:
            source = sources(text, folder)
            found = []
            if name.startswith("loop"):
                source = "// Kernel scan_" + source.partition("// Kernel scan_")[2]
                if "pestle_scan_" not in source:
                    found.append("it is not one kernel")
            elif "wgmma.mma_async" not in source:
                found.append("it is not made by warpgroups")
            if name.startswith("attention") and "ex2.approx.ftz" not in source:
                found.append("weights keep denormals, at three instructions each")
            if re.search(r"pestle_tile\(a_", source):
                found.append("a tile's place is made anew for each product")
            result, log, ptx = log_of(nvrtc, source)
            for kernel in ptx.split(".entry ")[1:]:
                before, wait, _ = kernel.partition("griddepcontrol.wait")
                touched = re.search(TOUCHES, before)
                if not wait or touched:
                    found.append(f"{kernel.split('(')[0]} does not wait first {touched and touched.group()}")
            if result or "Used " not in log:
                found.append(f"NVRTC: {result}: {log[-500:]}")
            for pattern, what in WRONG.items():
                found += [f"{what}: {line}" for line in log.splitlines()
                          if re.search(pattern, line)]
            wrong += bool(found)
            used = re.search(r"Used \d+ registers", log)
            print("FAIL" if found else "ok", name, used.group() if used else "", *found)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
