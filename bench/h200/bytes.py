#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of bytes in i32, of 8-bit floats in bf16, and of f32 by tf32 or by six products of
bf16 (`algorithm`): Pestle, torch (cuBLASLt) and JAX in turns.

    bytes.py --base DIR [--types i8,f8,tf32,x6] [--out FILE] [--only TEXT,...] [--rounds N]
             [--seconds N]

DIR has bin/bench_device, lib/ and backends/. Timed as every_shape.py says: about 3 ms
each after 10 ms of rest, inputs over 256 MiB, the median; torch is a CUDA graph. A row
says which operands lie along k (nt: both); of bytes how many results differ from sums in
f64, which are exact, of floats how far results are off, in parts of the sum of |a b|. torch
is tf32 too, or f32 beside x6. `fast` is Pestle in numerics `fast` and torch with use_fast_accum: the whole sum is
left to the units."""

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
CASES = {
    "i8": [
        (4096, 4096, 4096, True), (4096, 4096, 4096, False), (2048, 2048, 2048, True),
        (1024, 1024, 1024, True), (512, 512, 512, True), (128, 4096, 14336, True),
        (32, 4096, 4096, True), (16, 4096, 4096, True), (1, 4096, 4096, True),
        (3000, 777, 1111, True), (3000, 777, 1111, False), (2048, 2048, 2048, False),
    ],
    "f8": [
        (8192, 8192, 8192, True), (4096, 4096, 4096, True), (4096, 4096, 4096, False),
        (2048, 2048, 2048, True), (1024, 1024, 1024, True), (512, 512, 512, True),
        (128, 4096, 14336, True), (32, 4096, 4096, True), (3000, 777, 1111, True),
    ],
    "tf32": [
        (4096, 4096, 4096, True), (4096, 4096, 4096, False), (2048, 2048, 2048, True),
        (1024, 1024, 1024, True), (8192, 1024, 1024, True), (3000, 777, 1111, False),
    ],
    "x6": [(4096, 4096, 4096, True), (2048, 2048, 2048, True)],
}  # fmt: skip
NAMES = {"i8": ("i8", "i32"), "f8": ("f8E4M3FN", "bf16"), "tf32": ("f32", "f32"),
         "x6": ("f32", "f32")}  # fmt: skip
# How far results may be off: docs/ops.md, of 8-bit floats with the rounding to bf16.
MOST_OFF = {"f8": 2.0**-5, "tf32": 2.0**-9, "x6": 2.0**-18}
PARTS = {"tf32": ("tf32", 1, 1), "x6": ("bf16", 3, 6)}


def text_of(kind, m, n, k, along):
    of, to = NAMES[kind]
    a, b, y = (f"tensor<{m}x{k}x{of}>", f"tensor<{n}x{k}x{of}>" if along else
               f"tensor<{k}x{n}x{of}>", f"tensor<{m}x{n}x{to}>")  # fmt: skip
    how = ""
    if kind in PARTS:
        kept, parts, count = PARTS[kind]
        how = (f", algorithm = <lhs_precision_type = {kept}, rhs_precision_type = {kept}, "
               f"accumulation_type = f32, lhs_component_count = {parts}, rhs_component_count = "
               f"{parts}, num_primitive_operations = {count}, allow_imprecise_accumulation = "
               "false>")
    return (f"func.func @main(%a: {a}, %b: {b}) -> {y} {{\n"
            f"  %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [{int(along)}]{how} : "
            f"({a}, {b}) -> {y}\n  return %y : {y}\n}}\n")


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


def raw(x, torch):
    """Its bytes, which numpy has no type for."""
    return x.view(torch.uint8).cpu().numpy()


def draw_sets(kind, case, torch):
    m, n, k, along = case
    draw = torch.Generator(device="cuda").manual_seed(m + n + k)
    size = 4 if kind in PARTS else 1
    count = max(1, min(16, ROTATE // (size * (m * k + n * k)) + 1))

    def number(*shape):
        if kind == "i8":
            return torch.randint(-128, 128, shape, dtype=torch.int8, device="cuda", generator=draw)
        x = torch.randn(shape, device="cuda", generator=draw)
        return x.to(torch.float8_e4m3fn) if kind == "f8" else x

    return [(number(m, k), number(n, k) if along else number(k, n)) for _ in range(count)]


def judge(kind, made, sets, along, torch):
    """What the row says of the first set's results, and whether they are wrong."""
    a, b = sets[0]
    b = b.T if along else b
    if kind == "i8":
        differ = int((made.cuda().view(a.shape[0], -1).double() != a.double() @ b.double()).sum())
        return {"differ": differ}, differ != 0
    a, b = a.double(), b.double()
    of = torch.bfloat16 if kind == "f8" else torch.float32
    y = made.cuda().view(of).view(a.shape[0], -1).double()
    off = float(((y - a @ b).abs() / (a.abs() @ b.abs())).max())
    return {"off": float(f"{off:.3g}")}, not off < MOST_OFF[kind]


def measure(kind, case, options, torch, folder):
    m, n, k, along = case
    row = {"name": f"{kind}_{m}x{n}x{k}_{'nt' if along else 'nn'}"}
    sets, times, children, wrong = draw_sets(kind, case, torch), {}, [], []

    def contender(who, make):
        try:
            times[who] = (make(), [])
        except Exception as error:  # the row says it
            row[f"{who}_error"] = f"{type(error).__name__}: {str(error)[:200]}"

    def pestle(fast=False):
        child = Pestle(options.base, "cuda")
        children.append(child)
        path = folder / "row.mlir"
        path.write_text(text_of(kind, *case), encoding="utf-8")
        ready = child.ask(f"load {path} {len(sets)}{' fast' if fast else ''}")
        for i, x in enumerate(sets[0]):
            (folder / "input").write_bytes(raw(x, torch).tobytes())
            child.ask(f"input {i} {folder / 'input'}")
        child.ask(f"save 0 {folder / 'output'}")
        out = bytearray((folder / "output").read_bytes())
        made = torch.frombuffer(out, dtype=torch.int16 if kind == "f8" else torch.int32)
        said, is_wrong = judge(kind, made, sets, along, torch)
        row.update({f"fast_{name}" if fast else name: value for name, value in said.items()})
        if fast:
            return lambda: float(child.ask(f"time {BATCH_MS}")[0])
        row["compile_ms"] = float(ready[0])
        wrong.append(is_wrong)
        return lambda: float(child.ask(f"time {BATCH_MS}")[0])

    def by_torch(fast=False):
        one = torch.ones((), device="cuda")
        if kind == "i8":
            return torch_timer(torch, lambda a, b: torch._int_mm(a, b.T if along else b), sets)
        if kind in PARTS:
            torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
            return torch_timer(torch, lambda a, b: a @ (b.T if along else b), sets)
        # It takes a second operand along k alone.
        return torch_timer(torch, lambda a, b: torch._scaled_mm(
            a, (b if along else b.T.contiguous()).T, scale_a=one, scale_b=one,
            out_dtype=torch.bfloat16, use_fast_accum=fast), sets)

    def by_jax():
        import jax
        to = {"i8": jax.numpy.int32, "f8": jax.numpy.bfloat16}.get(kind, jax.numpy.float32)
        preset = jax.lax.DotAlgorithmPreset
        how = {"tf32": preset.TF32_TF32_F32, "x6": preset.BF16_BF16_F32_X6}.get(kind)

        def seen(x):
            if kind in PARTS:
                return jax.numpy.asarray(x.cpu().numpy())
            x = jax.numpy.asarray(raw(x, torch))
            of = jax.numpy.int8 if kind == "i8" else jax.numpy.float8_e4m3fn
            return jax.lax.bitcast_convert_type(x, of)

        def dot(a, b):
            return jax.lax.dot_general(a, b, (((1,), (int(along),)), ((), ())),
                                       precision=how, preferred_element_type=to)
        return clock_timer(jax.jit(dot), [[seen(x) for x in s] for s in sets])

    contender("pestle", pestle)
    contender("torch", by_torch)
    if kind == "f8":
        contender("pestle_fast", lambda: pestle(True))
        contender("torch_fast", lambda: by_torch(True))
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
    for child in children:
        child.child.kill()
        child.child.wait()
    return row, wrong != [False]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True)
    parser.add_argument("--types", default="i8,f8")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("bytes.jsonl"))
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=240)
    options = parser.parse_args()
    options.base = str(pathlib.Path(options.base).resolve())
    import torch
    torch.set_grad_enabled(False)
    end, wrong = time.monotonic() + options.seconds, 0
    rows = [(kind, case) for kind in options.types.split(",") for case in CASES[kind]]
    with tempfile.TemporaryDirectory() as folder:
        for kind, case in rows:
            name = f"{case[0]}x{case[1]}x{case[2]}"
            if time.monotonic() > end:
                print("time is up")
                break
            if not any(word in name for word in options.only.split(",")):
                continue
            row, is_wrong = measure(kind, case, options, torch, pathlib.Path(folder))
            wrong += is_wrong
            print(json.dumps(row), flush=True)
            with open(options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            torch.cuda.empty_cache()
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
