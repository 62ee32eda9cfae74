# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of JAX share: a process per backend, in turns, and least times."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def environment(backend, build, device, threads):
    """Of a child that runs |backend|: pestle, or a platform of JAX's own."""
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    env["JAX_PLATFORMS"] = "pestle,cpu" if backend.startswith("pestle") else backend
    if backend.startswith("pestle"):
        path = [str(ROOT / "python"), os.environ.get("PYTHONPATH")]
        env["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        env.setdefault("PESTLE_PJRT_LIBRARY", str(build.resolve() / "pjrt_plugin_pestle.so"))
        env.setdefault("PESTLE_BACKEND_PATH", str(build.resolve() / "backends"))
        env["PESTLE_PJRT_DEVICE"] = device
        if backend == "pestle-unfused":
            env["PESTLE_PJRT_FUSE"] = "0"
    if threads:
        env["PESTLE_THREADS"] = str(threads)
    return env


def least(call, budget=0.3):
    """Seconds of the fastest of many short bursts of |call|, which returns arrays."""
    import jax
    jax.block_until_ready(call())
    begin = time.perf_counter()
    jax.block_until_ready(call())
    count = max(1, int(2e-3 / max(time.perf_counter() - begin, 1e-7)))
    best, until = float("inf"), time.perf_counter() + budget
    while time.perf_counter() < until:
        begin = time.perf_counter()
        for _ in range(count):
            out = call()
        jax.block_until_ready(out)
        best = min(best, (time.perf_counter() - begin) / count)
    return best


def turns(script, backends, args):
    """backend -> row -> seconds, the median over args.rounds of processes in turns."""
    seen = {}
    for _ in range(args.rounds):
        for backend in backends:
            # JAX's CPU backend has no option for threads: the process is pinned.
            pin = ["taskset", "-c", f"0-{args.threads - 1}"] if args.threads else []
            done = subprocess.run(
                [*pin, args.python, script, "--child"], check=False,
                env=environment(backend, args.build, args.device, args.threads),
                stdout=subprocess.PIPE, text=True)
            if done.returncode:
                sys.exit(f"{backend} ended with {done.returncode}")
            for name, seconds in json.loads(done.stdout.splitlines()[-1]).items():
                seen.setdefault(name, {}).setdefault(backend, []).append(seconds)
    return {n: {b: statistics.median(t) for b, t in row.items()} for n, row in seen.items()}


def show(rows, backends):
    """A table of microseconds, and the first backend's time by that of each other."""
    print("| |" + "".join(f" {b}, us |" for b in backends)
          + "".join(f" {backends[0]} / {b} |" for b in backends[1:]))
    print("|---" * (2 * len(backends)) + "|")
    for name, row in rows.items():
        first = row[backends[0]]
        print(f"| {name} |" + "".join(f" {row[b] * 1e6:.1f} |" for b in backends)
              + "".join(f" {first / row[b]:.2f} |" for b in backends[1:]))


def arguments(parser):
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--device", default="cpu", help="Pestle's: cpu, cuda, ...")
    parser.add_argument("--peer", default="cpu", help="JAX's own backend: cpu, cuda")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--python", default=sys.executable, help="one that has jax")
    parser.add_argument("--child", action="store_true")
    return parser
