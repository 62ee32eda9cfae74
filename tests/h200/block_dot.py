#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products with weights of a few bits on one GPU: right by numpy in f64, and how long they
take beside torch's f16 product of weights that were unpacked before, torch's own int4 product
(_weight_int4pack_mm, bf16) and the bytes at the rate at which the GPU reads. Then a decoder of
random int4 weights by `pestle generate`, beside what torch takes for its products alone.

    block_dot.py --base DIR [--minutes M] [--only TEXT] [--rounds N] [--sizes 135m,0.5b]

DIR has bin/bench_device, bin/pestle, lib/ and backends/ (bundle.sh makes one). Weights are
arguments. Contenders take turns, about 3 ms each after 10 ms of rest, the median counts; what
they read takes turns over 256 MiB. Lines are JSON; the last one says how many are wrong."""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "bench" / "h200"), str(ROOT / "tests" / "models")]
from bench import BATCH_MS, REST_MS, ROTATE, Pestle, torch_timer  # noqa: E402

# name, rows, k, n, block, level, dtype of x. The shapes of an 8 B decoder, one of 0.5 B and
# one of 135 M; the square of 8,192 in blocks of 128.
ROWS = [(f"{name}_m{m}_l{level}_{dtype}", m, k, n, block, level, dtype)
        for name, k, n, block in (("8b_qkv", 4096, 6144, 32), ("8b_out", 4096, 4096, 32), ("8b_gate_up", 4096, 28672, 32),
                                  ("8b_down", 14336, 4096, 32), ("square", 8192, 8192, 128), ("half_gate_up", 896, 9728, 32),
                                  ("half_down", 4864, 896, 32), ("135m_gate", 576, 1536, 32), ("8b_head", 4096, 128256, 32))
        for m, level, dtype in ((1, 4, "f16"), (1, 0, "f16"), (16, 4, "f16"), (1, 4, "f32"))]
ROWS += [("8b_gate_up_m4_l4_f16", 4, 4096, 28672, 32, 4, "f16"), ("square_m64_l0_f16", 64, 8192, 8192, 128, 0, "f16"),
         ("8b_out_m512_l4_f16", 512, 4096, 4096, 32, 4, "f16")]
SIZES = {"135m": (576, 30, 1536, 192, 49152), "0.5b": (896, 24, 4864, 128, 151936)}


def module(m, k, n, block, level, dtype):
    types = [f"tensor<{m}x{k}x{dtype}>", f"tensor<{n}x{k // 2}xui8>", f"tensor<{n}x{k // block}x{dtype}>"]
    y = f"tensor<{m}x{n}x{dtype}>"
    return (f"func.func @main(%x: {types[0]}, %w: {types[1]}, %s: {types[2]}) -> {y} {{\n"
            f'  %y = "pestle.block_dot"(%x, %w, %s) {{bits = 4 : i64, block = {block} : i64, accuracy = {level} : i64}} : '
            f"({', '.join(types)}) -> {y}\n  return %y : {y}\n}}\n")


def unpacked(w, scales, block):
    q = np.stack([w & 15, w >> 4], 2).reshape(len(w), -1).astype(np.int8) - 8
    return q.reshape(len(w), -1, block) * scales.astype(np.float32)[:, :, None]


def rounded(x):
    """As bytes with a scale for each 32 numbers, and back."""
    x = x.astype(np.float32).reshape(len(x), -1, 32)
    most = np.abs(x).max(2, keepdims=True)
    return (np.rint(x * (np.float32(127) / most)).astype(np.float64) * most / 127).reshape(len(x), -1)


def read_rate(torch):
    x = torch.ones(1 << 30, device="cuda", dtype=torch.float32)
    return x.nbytes / torch_timer(torch, lambda a: a.sum(), [(x,)])() * 1e-3  # GB/s


class Row:
    def __init__(self, torch, base, row, folder):
        self.name, m, k, n, block, level, dtype = row
        r = np.random.default_rng([m, k, n])
        kind = {"f16": np.float16, "f32": np.float32}[dtype]
        x = r.standard_normal((m, k)).astype(kind)
        w = r.integers(0, 256, (n, k // 2), dtype=np.uint8)
        scales = (r.uniform(0.5, 1.5, (n, k // block)) / 8 / k**0.5).astype(kind)
        self.bytes = x.nbytes + w.nbytes + scales.nbytes + m * n * x.itemsize
        sets = max(1, min(16, ROTATE // self.bytes + 1))
        self.found = {"row": self.name, "bytes": self.bytes}
        self.child = Pestle(base, "cuda")
        path = folder / "row.mlir"
        path.write_text(module(m, k, n, block, level, dtype), encoding="utf-8")
        self.found["compile_ms"] = float(self.child.ask(f"load {path} {sets}")[0])
        for i, a in enumerate((x, w, scales)):
            (folder / "input").write_bytes(a.tobytes())
            self.child.ask(f"input {i} {folder / 'input'}")
        self.child.ask(f"save 0 {folder / 'output'}")
        got = np.frombuffer((folder / "output").read_bytes(), kind).reshape(m, n).astype(np.float64)
        some = np.unique(np.r_[0:min(n, 512), n - 64:n])  # columns that are held against f64
        matrix = unpacked(w[some], scales[some], block).reshape(len(some), -1)
        a = rounded(x) if level == 4 and m <= 16 else x.astype(np.float64)
        want, size = a @ matrix.T, np.abs(a) @ np.abs(matrix).T
        # A quotient half between two bytes may go either way.
        near = {"f16": 2e-3, "f32": 8e-6}[dtype] * size + (1e-4 * size if level == 4 else 0)
        if dtype == "f32" and level == 4 and m > 16:  # bf16
            near = 4e-3 * size
        self.found["off"] = float((np.abs(got[:, some] - want) / size).max())
        self.found["right"] = bool((np.abs(got[:, some] - want) <= near).all())
        self.timers = {"pestle": lambda: float(self.child.ask(f"time {BATCH_MS}")[0])}
        self.peers(torch, x, unpacked(w, scales, block).reshape(n, k), w, scales, block)

    def peers(self, torch, x, matrix, w, scales, block):
        t = torch.from_numpy(x).cuda().half()
        f16 = torch.from_numpy(matrix).cuda().half()
        count = max(1, min(8, ROTATE // f16.nbytes + 1))
        self.timers["torch_f16"] = torch_timer(torch, lambda a, b: a @ b.T, [(t, f16.clone()) for _ in range(count)])
        try:
            # [n, k] int32 of 0..15 or bytes of two, by version; groups' scales and zeros as bf16.
            q = torch.from_numpy(np.stack([w >> 4, w & 15], 2).reshape(len(w), -1).astype(np.int32)).cuda()
            try:
                packed = torch._convert_weight_to_int4pack((q[:, 1::2] << 4 | q[:, ::2]).to(torch.uint8), 8)
            except Exception:
                packed = torch._convert_weight_to_int4pack(q, 8)
            both = torch.stack([torch.from_numpy(scales.astype(np.float32).T.copy()), torch.zeros(scales.T.shape)], 2)
            both = both.cuda().bfloat16().contiguous()
            b16 = t.bfloat16()
            count = max(1, min(16, ROTATE // w.nbytes + 1))
            self.timers["torch_int4"] = torch_timer(
                torch, lambda a, p: torch._weight_int4pack_mm(a, p, block, both), [(b16, packed.clone()) for _ in range(count)])
        except Exception as e:
            self.found["torch_int4_error"] = str(e)[:160]

    def run(self, rounds, rate):
        us = {who: [] for who in self.timers}
        for _ in range(rounds):
            for who, batch in self.timers.items():
                time.sleep(REST_MS * 1e-3)
                us[who].append(batch())
        for who, times in us.items():
            self.found[who + "_us"] = round(statistics.median(times), 2)
        self.found["limit_us"] = round(self.bytes / rate * 1e-3, 2)
        self.found["share_of_limit"] = round(self.found["limit_us"] / self.found["pestle_us"], 3)
        peer = min(v for w, v in self.found.items() if w in ("torch_f16_us", "torch_int4_us"))
        self.found["ratio"] = round(self.found["pestle_us"] / peer, 3)
        self.child.child.kill()
        return self.found


def generate(base, size, folder):
    """A decoder of |size| from a seed, 64 tokens behind 128."""
    import llama

    path = folder / f"{size}.onnx"
    llama.make(path, size, level=4)
    env = dict(os.environ, LD_LIBRARY_PATH=f"{base}/lib:" + os.environ.get("LD_LIBRARY_PATH", ""),
               PESTLE_BACKEND_PATH=f"{base}/backends")
    ids = ",".join(str(i) for i in np.random.default_rng(1).integers(0, 49152, 128))
    done = subprocess.run([f"{base}/bin/pestle", "generate", str(path), "--ids", ids, "-n", "64", "--device", "cuda"],
                          capture_output=True, text=True, env=env, timeout=150, check=False)
    found = {"row": f"generate_{size}", "said": (done.stdout + done.stderr)[:600]}
    rate = re.search(r"(\d+) steps in .*?\(([\d.]+) tokens/s\)", done.stdout + done.stderr)
    found["right"] = done.returncode == 0 and rate is not None
    if rate:
        found["tokens_s"] = float(rate.group(2))
    return found


def torch_products(torch, size):
    """Microseconds that torch takes for a token's products in f16, one graph."""
    width, layers, inner, shared, words = SIZES[size]
    r = lambda n, k: torch.randn(n, k, device="cuda", dtype=torch.float16)  # noqa: E731
    matrices = [[r(width + 2 * shared, width), r(width, width), r(2 * inner, width), r(width, inner)] for _ in range(layers)]
    head, x, y = r(words, width), r(1, width), r(1, inner)

    def token():
        for a, b, c, d in matrices:
            x @ a.T, x @ b.T, x @ c.T, y @ d.T
        return x @ head.T
    return torch_timer(torch, token, [()])()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--base", required=True)
    p.add_argument("--minutes", type=float, default=2.5)
    p.add_argument("--only", default="")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--sizes", default="135m")
    options = p.parse_args()
    import torch

    end, wrong, left = time.time() + 60 * options.minutes, 0, []
    rate = read_rate(torch)
    print(json.dumps({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "read_gb_s": round(rate)}), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for size in filter(None, options.sizes.split(",")):
            try:
                found = generate(options.base, size, folder)
                found["torch_products_us"] = round(torch_products(torch, size), 1)
            except Exception as e:
                found = {"row": f"generate_{size}", "right": False, "error": str(e)[:300]}
            wrong += not found["right"]
            print(json.dumps(found), flush=True)
        for row in ROWS:
            if options.only not in row[0]:
                continue
            if time.time() > end:
                left.append(row[0])
                continue
            try:
                found = Row(torch, options.base, row, folder).run(options.rounds, rate)
            except Exception as e:
                found = {"row": row[0], "right": False, "error": str(e)[:300]}
            wrong += not found["right"]
            torch.cuda.empty_cache()
            print(json.dumps(found), flush=True)
    print(json.dumps({"wrong": wrong, "not_reached": left}))
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
