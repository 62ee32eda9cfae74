#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention with its gradients by queries, keys and values: Pestle and torch in turns.

    attention_grad.py --base DIR [--rounds N] [--device cuda]

DIR has bin/bench_device, bin/pestle, lib/ and backends/. Pestle differentiates the forward
graph itself (`opt --passes vjp=0,1,2`). torch runs scaled_dot_product_attention and its
backward by cuDNN, else by the best of its own kernels (the row says which), both as CUDA graphs.
A row: microseconds forward, and forward with backward, of each; the ratio of what the
backward adds; how far the gradients are from torch's in f32, of their norm."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from bench import BATCH_MS, Pestle, torch_timer  # noqa: E402

# Batch, heads, queries, keys, columns, type.
CASES = ((4, 16, 2048, 2048, 128, "bf16"), (8, 12, 512, 512, 64, "f16"),
         (1, 16, 4096, 4096, 64, "bf16"), (8, 12, 128, 128, 64, "f16"))
BYTES = 256 << 20


def forward_text(case):
    b, h, q, k, c, dtype = case
    rows, keys = (f"tensor<{b}x{h}x{n}x{c}x{dtype}>" for n in (q, k))
    return (f"func.func @main(%q: {rows}, %k: {keys}, %v: {keys}) -> {rows} {{\n"
            f'  %0 = "pestle.attention"(%q, %k, %v) {{scale = {c**-0.5!r} : f64}} : '
            f"({rows}, {keys}, {keys}) -> {rows}\n  return %0 : {rows}\n}}\n")


def gradient_text(base, text, folder):
    path = os.path.join(folder, "forward.mlir")
    pathlib.Path(path).write_text(text)
    env = dict(os.environ, LD_LIBRARY_PATH=f"{base}/lib", PESTLE_BACKEND_PATH=f"{base}/backends")
    made = subprocess.run([f"{base}/bin/pestle", "opt", path, "--passes", "vjp=0,1,2"], env=env,
                          capture_output=True, text=True, check=True)
    return made.stdout


def load(base, device, text, sets, folder, name):
    path = os.path.join(folder, name + ".mlir")
    pathlib.Path(path).write_text(text)
    child = Pestle(base, device)
    child.ask(f"load {path} {sets}")
    return child


def torch_functions(torch, case):
    """The forward and the one with gradients, and by which kernels."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    attention = torch.nn.functional.scaled_dot_product_attention

    def made(backend):
        def forward(q, k, v, g):
            with sdpa_kernel(backend):
                return attention(q, k, v)

        def both(q, k, v, g):
            with sdpa_kernel(backend):
                y = attention(q, k, v)
                return (y, *torch.autograd.grad(y, (q, k, v), g))
        return forward, both

    found = []
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
        try:
            data = operands(torch, case, 1)[0]
            made(backend)[1](*data)
            torch.cuda.synchronize()
            found.append((backend.name, *made(backend)))
        except RuntimeError as e:
            print(f"{backend.name}: {str(e)[:200]}", file=sys.stderr)
    return found


def operands(torch, case, sets, grad=True):
    b, h, q, k, c, dtype = case
    kind = {"bf16": torch.bfloat16, "f16": torch.float16}[dtype]
    r = torch.Generator("cuda").manual_seed(1)
    draw = lambda n: torch.randn(b, h, n, c, generator=r, device="cuda").to(kind)
    return [[draw(q).requires_grad_(grad), draw(k).requires_grad_(grad),
             draw(k).requires_grad_(grad), draw(q)] for _ in range(sets)]


def off(torch, child, case, folder):
    """How far Pestle's gradients are from torch's in f32."""
    data = operands(torch, case, 1, False)[0]
    for i, x in enumerate(data):
        path = os.path.join(folder, f"in{i}")
        x.cpu().view(torch.uint8).numpy().tofile(path)
        child.ask(f"input {i} {path}")
    wide = [x.float().requires_grad_(i < 3) for i, x in enumerate(data)]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        y = torch.nn.functional.scaled_dot_product_attention(*wide[:3])
    wants = torch.autograd.grad(y, wide[:3], wide[3])
    worst = 0.0
    for i, want in enumerate(wants):
        path = os.path.join(folder, f"out{i}")
        child.ask(f"save {i + 1} {path}")
        got = torch.frombuffer(bytearray(pathlib.Path(path).read_bytes()), dtype=data[0].dtype)
        got = got.cuda().float().reshape(want.shape)
        worst = max(worst, ((got - want).norm() / want.norm()).item())
    return worst


def row(torch, options, case):
    b, h, q, k, c, dtype = case
    sets = max(2, min(16, BYTES // (2 * b * h * c * 2 * (q + k))))
    with tempfile.TemporaryDirectory() as folder:
        text = forward_text(case)
        ours = [load(options.base, options.device, t, sets, folder, n)
                for n, t in (("f", text), ("g", gradient_text(options.base, text, folder)))]
        wrong = off(torch, ours[1], case, folder)
        timers = {"pestle": [lambda m=m: float(m.ask(f"time {BATCH_MS}")[0]) for m in ours]}
        data = operands(torch, case, sets)
        for name, *functions in torch_functions(torch, case):
            timers[name] = [torch_timer(torch, f, data) for f in functions]
        times = {name: [[], []] for name in timers}
        for _ in range(options.rounds):
            for name, pair in timers.items():
                for which, timer in enumerate(pair):
                    times[name][which].append(timer())
        found = {n: [round(statistics.median(t), 1) for t in pair] for n, pair in times.items()}
        backward = {n: both - forward for n, (forward, both) in found.items()}
        peers = [t for n, t in backward.items() if n != "pestle"]
        print(json.dumps({"case": case, "us": found, "off": round(wrong, 6),
                          "backward": {n: round(t, 1) for n, t in backward.items()},
                          "ratio": round(backward["pestle"] / min(peers), 2) if peers else None}),
              flush=True)
        for m in ours:
            m.child.stdin.close()
            m.child.wait()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--base", required=True)
    p.add_argument("--device", default="cuda")
    p.add_argument("--rounds", type=int, default=9)
    options = p.parse_args()
    import torch
    for case in CASES:
        try:
            row(torch, options, case)
        except Exception as e:  # a row that fails leaves the others
            print(json.dumps({"case": case, "error": f"{type(e).__name__}: {e}"[:400]}), flush=True)


if __name__ == "__main__":
    main()
