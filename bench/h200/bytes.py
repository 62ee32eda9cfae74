#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of bytes in i32: Pestle, torch._int_mm (cuBLASLt) and JAX in turns.

    bytes.py --base DIR [--out FILE] [--only TEXT,...] [--rounds N] [--seconds N]

DIR has bin/bench_device, lib/ and backends/. Timed as every_shape.py says: about 3 ms
each after 10 ms of rest, inputs over 256 MiB, the median; torch is a CUDA graph. A row
says which operands lie along k (nt: both) and how many results differ from sums in f64,
which are exact."""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from bench import BATCH_MS, REST_MS, ROTATE, Pestle, torch_timer  # noqa: E402

# Rows, columns, k, and whether the second operand lies along k.
CASES = [
    (4096, 4096, 4096, True), (4096, 4096, 4096, False), (2048, 2048, 2048, True),
    (1024, 1024, 1024, True), (512, 512, 512, True), (128, 4096, 14336, True),
    (32, 4096, 4096, True), (16, 4096, 4096, True), (1, 4096, 4096, True),
    (3000, 777, 1111, True), (3000, 777, 1111, False), (2048, 2048, 2048, False),
]  # fmt: skip


def text_of(m, n, k, along):
    a, b = f"tensor<{m}x{k}xi8>", f"tensor<{n}x{k}xi8>" if along else f"tensor<{k}x{n}xi8>"
    return (f"func.func @main(%a: {a}, %b: {b}) -> tensor<{m}x{n}xi32> {{\n"
            f"  %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [{int(along)}] : "
            f"({a}, {b}) -> tensor<{m}x{n}xi32>\n  return %y : tensor<{m}x{n}xi32>\n}}\n")


def clock_timer(run, sets):
    def burst(rounds):
        begin = time.perf_counter()
        for _ in range(rounds):
            for s in sets:
                out = run(*s)
        out.block_until_ready()
        return (time.perf_counter() - begin) * 1e6 / (rounds * len(sets))

    rounds = max(1, int(BATCH_MS * 1e3 / (burst(1) * len(sets))))
    return lambda: burst(rounds)


def measure(case, options, torch, folder):
    m, n, k, along = case
    row = {"name": f"{m}x{n}x{k}_{'nt' if along else 'nn'}"}
    draw = torch.Generator(device="cuda").manual_seed(m + n + k)
    count = max(1, min(16, ROTATE // (m * k + n * k) + 1))

    def number(*shape):
        return torch.randint(-128, 128, shape, dtype=torch.int8, device="cuda", generator=draw)

    sets = [(number(m, k), number(n, k) if along else number(k, n)) for _ in range(count)]
    times = {}

    def contender(who, make):
        try:
            times[who] = (make(), [])
        except Exception as error:  # the row says it
            row[f"{who}_error"] = f"{type(error).__name__}: {str(error)[:200]}"

    child = Pestle(options.base, "cuda")

    def pestle():
        path = folder / "row.mlir"
        path.write_text(text_of(*case), encoding="utf-8")
        row["compile_ms"] = float(child.ask(f"load {path} {count}")[0])
        for i, x in enumerate(sets[0]):
            (folder / "input").write_bytes(x.cpu().numpy().tobytes())
            child.ask(f"input {i} {folder / 'input'}")
        child.ask(f"save 0 {folder / 'output'}")
        made = torch.frombuffer(bytearray((folder / "output").read_bytes()), dtype=torch.int32)
        a, b = sets[0]
        wanted = a.double() @ (b.T if along else b).double()
        row["differ"] = int((made.cuda().view(m, n).double() != wanted).sum())
        return lambda: float(child.ask(f"time {BATCH_MS}")[0])

    def by_jax():
        import jax
        def dot(a, b):
            return jax.lax.dot_general(a, b, (((1,), (int(along),)), ((), ())),
                                       preferred_element_type=jax.numpy.int32)
        return clock_timer(jax.jit(dot), [[jax.numpy.asarray(x.cpu().numpy()) for x in s]
                                          for s in sets])

    contender("pestle", pestle)
    contender("torch", lambda: torch_timer(
        torch, lambda a, b: torch._int_mm(a, b.T if along else b), sets))
    contender("bf16", lambda: torch_timer(
        torch, lambda a, b: a @ (b.T if along else b),
        [[x.to(torch.bfloat16) for x in s] for s in sets]))
    contender("jax", by_jax)
    for _ in range(options.rounds):
        for batch, us in times.values():
            time.sleep(REST_MS * 1e-3)
            us.append(batch())
    for who, (_, us) in times.items():
        row[f"{who}_us"] = round(statistics.median(us), 2)
    peers = [row[f"{who}_us"] for who in ("torch", "jax") if f"{who}_us" in row]
    if "pestle_us" in row:
        row["tops"] = round(2 * m * n * k / row["pestle_us"] * 1e-6, 1)
        if peers:
            row["ratio"] = round(row["pestle_us"] / min(peers), 3)
    child.child.kill()
    child.child.wait()
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("bytes.jsonl"))
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=240)
    options = parser.parse_args()
    options.base = str(pathlib.Path(options.base).resolve())
    import torch
    torch.set_grad_enabled(False)
    end, wrong = time.monotonic() + options.seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            name = f"{case[0]}x{case[1]}x{case[2]}"
            if time.monotonic() > end:
                print("time is up")
                break
            if not any(word in name for word in options.only.split(",")):
                continue
            row = measure(case, options, torch, pathlib.Path(folder))
            wrong += row.get("differ", 1) != 0
            print(json.dumps(row), flush=True)
            with open(options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            torch.cuda.empty_cache()
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
