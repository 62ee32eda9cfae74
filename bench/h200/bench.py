#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pestle beside torch, torch.compile and jax on one GPU, in one run.

    bench.py --base BUNDLE [--out DIR] [--rounds N] [--only CASE] [--no-peers]

Each case is a module of cases/, given to bench_device; peers are torch's own
op (cuBLAS), torch.compile (Inductor, max-autotune) and jax.jit. Contenders take
turns, one batch of about 3 ms each after 10 ms of rest (the burst regime: what
runs longer is slowed by the power cap), with N rounds of which the median
counts. Inputs take turns over at least 256 MiB, so that they come from memory.
torch is timed by its events around a CUDA graph, jax and Pestle by the clock
around a batch that ends with a wait.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROTATE = 256 << 20
BATCH_MS, REST_MS = 3.0, 10.0
N = 1 << 28

# name, floating-point operations, bytes moved, the floor that the issue names:
# (share, of which contender), where "copy" is the copy bandwidth.
CASES = {
    "gemm_bf16_4096": (2 * 4096**3, 3 * 4096**2 * 2, (0.88, "torch")),
    "chain_bf16": (0, N * 4, (0.85, "copy")),
    "chain_f32": (0, N * 8, (0.85, "copy")),
    "softmax_bf16": (0, 8192**2 * 4, (1.0, "best")),
    "layernorm_bf16": (0, 8192**2 * 4, (1.0, "best")),
}


class Pestle:
    def __init__(self, base, device, *more):
        env = dict(os.environ)
        env["LD_LIBRARY_PATH"] = (f"{base}/lib:" +
                                  env.get("LD_LIBRARY_PATH", ""))
        env["PESTLE_BACKEND_PATH"] = f"{base}/backends"
        self.child = subprocess.Popen([f"{base}/bin/bench_device", device, *map(str, more)],
                                      stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True,
                                      env=env)

    def ask(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise RuntimeError(answer or "bench_device ended")
        return answer.split()[1:]

    def load(self, name, sets):
        self.compile_ms = float(self.ask(f"load {HERE}/cases/{name}.mlir "
                                         f"{sets}")[0])
        return lambda: float(self.ask(f"time {BATCH_MS}")[0])


def chain10(m, x):
    y = x * 1.01
    y = y + 0.1
    y = m.maximum(y, m.zero)
    y = y * x
    y = y - 0.3
    y = m.maximum(y, x)
    y = y + x
    y = m.abs(y)
    y = m.minimum(y, m.three)
    return y * 0.5


def torch_cases(torch):
    F = torch.nn.functional

    class Ops:
        abs = staticmethod(torch.abs)
        zero, three = 0.0, 3.0

        @staticmethod
        def maximum(a, b):
            return a.clamp(min=b) if isinstance(b, float) else torch.maximum(
                a, b)

        @staticmethod
        def minimum(a, b):
            return a.clamp(max=b)

    bf, f32 = torch.bfloat16, torch.float32

    def r(*shape, dtype=bf):
        return torch.randn(*shape, device="cuda", dtype=dtype)

    return {
        "gemm_bf16_4096": (torch.matmul,
                           lambda: (r(4096, 4096), r(4096, 4096))),
        "chain_bf16": (lambda x: chain10(Ops, x), lambda: (r(N),)),
        "chain_f32": (lambda x: chain10(Ops, x), lambda: (r(N, dtype=f32),)),
        "softmax_bf16": (lambda x: torch.softmax(x, -1),
                         lambda: (r(8192, 8192),)),
        "layernorm_bf16": (lambda x, w, b: F.layer_norm(x, (8192,), w, b),
                           lambda: (r(8192, 8192), r(8192), r(8192))),
    }


def torch_timer(torch, function, sets):
    """A graph of about BATCH_MS; a call replays it: microseconds a run."""
    stream = torch.cuda.Stream()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(stream):
        for _ in range(3):
            for s in sets:
                function(*s)
        begin.record()
        for s in sets:
            function(*s)
        end.record()
        end.synchronize()
    rounds = max(1, int(BATCH_MS / max(begin.elapsed_time(end), 1e-3)) + 1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(rounds):
            for s in sets:
                function(*s)
    graph.replay()
    torch.cuda.synchronize()

    def batch():
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / (rounds * len(sets))

    return batch


def take_turns(times, rounds, until, row):
    """Adds a batch of each of |times| (name: its timer and its seconds so far) a round,
    rests between them, and ends early at |until|; then |row| has their medians, and what
    one of them failed with."""
    for _ in range(rounds):
        if time.time() > until:
            break
        for who, (batch, seen) in times.items():
            time.sleep(REST_MS / 1e3)
            try:
                seen.append(batch())
            except Exception as error:
                row[f"{who}_error"] = str(error)[:400]
    for who, (_, seen) in times.items():
        if seen:
            row[who] = sorted(seen)[len(seen) // 2]


def jax_timer(name, sets):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp

    class Ops:
        abs, maximum, minimum = jnp.abs, jnp.maximum, jnp.minimum
        zero, three = 0.0, 3.0

    def norm(x, w, b):
        f = x.astype(jnp.float32)
        m = f.mean(-1, keepdims=True)
        v = jnp.square(f - m).mean(-1, keepdims=True)
        y = (f - m) * jax.lax.rsqrt(v + 1e-5)
        return (y * w.astype(jnp.float32) + b.astype(jnp.float32)).astype(
            x.dtype)

    key = jax.random.key(0)

    def r(*shape, dtype=jnp.bfloat16):
        return jax.random.normal(key, shape, dtype)

    function, make = {
        "gemm_bf16_4096": (jnp.matmul, lambda: (r(4096, 4096), r(4096, 4096))),
        "chain_bf16": (lambda x: chain10(Ops, x), lambda: (r(N),)),
        "chain_f32": (lambda x: chain10(Ops, x),
                      lambda: (r(N, dtype=jnp.float32),)),
        "softmax_bf16": (lambda x: jax.nn.softmax(
            x.astype(jnp.float32), axis=-1).astype(x.dtype),
                         lambda: (r(8192, 8192),)),
        "layernorm_bf16": (norm, lambda: (r(8192, 8192), r(8192), r(8192))),
    }[name]
    run = jax.jit(function)
    data = [make() for _ in range(sets)]
    for s in data:
        run(*s).block_until_ready()
    start = time.perf_counter()
    for s in data:
        out = run(*s)
    out.block_until_ready()
    took = (time.perf_counter() - start) * 1e3
    rounds = max(1, int(BATCH_MS / took) + 1)

    def batch():
        start = time.perf_counter()
        for _ in range(rounds):
            for s in data:
                out = run(*s)
        out.block_until_ready()
        return (time.perf_counter() - start) * 1e6 / (rounds * sets)

    return batch


def contenders(name, pestle, peers, sets):
    found = {}

    def add(who, make):
        try:
            found[who] = make()
        except Exception as error:  # one that fails is a row, not the end
            print(f"# {name} {who}: {type(error).__name__}: "
                  f"{str(error)[:300]}", flush=True)

    add("pestle", lambda: pestle.load(name, sets))
    if not peers:
        return found
    import torch

    function, make = torch_cases(torch)[name]
    data = [make() for _ in range(sets)]
    add("torch", lambda: torch_timer(torch, function, data))

    def compiled():
        torch._dynamo.reset()
        fast = torch.compile(function, mode="max-autotune-no-cudagraphs",
                             fullgraph=True, dynamic=False)
        fast(*data[0])
        return torch_timer(torch, fast, data)

    add("compile", compiled)
    if name.startswith("chain"):
        # A copy of as many bytes by the driver, on the stream.
        target = torch.empty_like(data[0][0])
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

        def copy():
            begin.record()
            for _ in range(4):
                target.copy_(data[0][0])
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) * 1e3 / 4

        add("copy", lambda: copy)
    add("jax", lambda: jax_timer(name, sets))
    return found


def report(name, times, out):
    flops, size, (share, against) = CASES[name]
    best = {who: statistics.median(values) for who, values in times.items()
            if values}
    for who, us in sorted(best.items(), key=lambda item: item[1]):
        rate = (f"{flops / us * 1e-6:8.1f} TFLOP/s" if flops else
                f"{size / us * 1e-3:8.0f} GB/s")
        print(f"{name:16} {who:8} {us:10.2f} us {rate}", flush=True)
        with open(out / "results.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"row": name, "peer": who, "us": us}) + "\n")
    ours = best.pop("pestle", None)
    if against == "best":
        rivals = [best[who] for who in ("compile", "jax") if who in best]
        rival = min(rivals) if rivals else None
    else:
        rival = best.get(against)
    if not ours or not rival:
        return None
    reached = rival / ours
    verdict = "ok" if reached >= share else "BELOW"
    print(f"{name:16} reaches {100 * reached:.1f} % of {against}, wanted "
          f"{100 * share:.0f} %: {verdict}", flush=True)
    return verdict == "ok"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--out", default=".")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", action="append")
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for name in options.only or CASES:
        size = CASES[name][1]
        sets = max(1, min(16, ROTATE // size + 1))
        pestle = Pestle(options.base, options.device)
        found = contenders(name, pestle, not options.no_peers, sets)
        times = {who: [] for who in found}
        for _ in range(options.rounds):
            for who, batch in found.items():
                time.sleep(REST_MS / 1e3)
                times[who].append(batch())
        wrong += report(name, times, out) is False
        pestle.child.kill()
        pestle.child.wait()
        if "torch" in sys.modules:
            import gc

            found = None
            gc.collect()
            sys.modules["torch"].cuda.empty_cache()
    print(f"{wrong} cases are below what they are to reach")


if __name__ == "__main__":
    main()
