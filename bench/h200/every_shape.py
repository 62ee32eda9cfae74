#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""200 drawn cases (kinds.py): Pestle, torch and JAX in turns, and the ratio to the better.

    every_shape.py --base DIR [--out FILE] [--part I/N] [--only TEXT,...] [--minutes M]
                   [--seconds N] [--rounds N] [--seed N] [--device cuda] [--compile]
                   [--smallest] [--floors] [--workers N]

Pestle gets the text that JAX lowers a case to. DIR has bin/bench_device, lib/ and
backends/. Contenders take turns, about 3 ms each after 10 ms of rest, the median counts;
on a GPU torch is a CUDA graph, and inputs take turns over 256 MiB. What takes Pestle less
than 30 us is also timed as one module with a copy of the case for each set of inputs, which
is a CUDA graph as torch's is: pestle_us is a copy's time, call_us that of a run alone. Peers tune as they do
by default; --compile adds torch.compile; --smallest takes one row of each kind, --floors the rows that
have a ratio of their own to reach. Each result is held
against the peers'. --only takes the rows whose names have one of the texts, in the order
of the texts. --workers N compiles N rows side by side; then each is timed alone.

Rows that --out has are left out, so that a run goes on where one ended; a row that takes
more than --seconds is ended and said; after --minutes none is begun. Ends with the
geometric mean and the rows above 2."""

import argparse
import json
import math
import os
import pathlib
import select
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import kinds  # noqa: E402
from bench import BATCH_MS, REST_MS, ROTATE, Pestle, torch_timer  # noqa: E402

# Below so much the host's half of a call counts.
SHORT_US = 30

# How far from a peer's a result may be, of the norm: two roundings of the type and sums in
# another order.
OFF = {"bf16": 2e-2, "f16": 4e-3, "f32": 1e-4, "f64": 1e-12, "i32": 0}


def numbers(row, np, ml_dtypes):
    """The inputs of a row, in numpy's types."""
    types = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32,
             "f64": np.float64, "i32": np.int32}
    r = np.random.default_rng(row.index)
    return [r.integers(0, i.below, i.shape, dtype=np.int32) if i.below else
            (r.standard_normal(i.shape, np.float32) * i.scale).astype(types[i.dtype])
            for i in row.inputs]


def clock_timer(run, wait):
    """Microseconds a run by the clock, over about BATCH_MS."""
    wait(run())
    begin = time.perf_counter()
    wait(run())
    rounds = max(1, int(BATCH_MS * 1e-3 / max(time.perf_counter() - begin, 1e-7)))

    def batch():
        begin = time.perf_counter()
        for _ in range(rounds):
            out = run()
        wait(out)
        return (time.perf_counter() - begin) * 1e6 / rounds
    return batch


class Peers:
    """torch and JAX, imported once; each may be missing."""

    def __init__(self, options):
        import ml_dtypes
        import numpy
        self.np, self.ml_dtypes, self.options = numpy, ml_dtypes, options
        import jax
        jax.config.update("jax_enable_x64", True)
        # f32 is f32 in all three.
        jax.config.update("jax_default_matmul_precision", "highest")
        self.jax = jax
        try:
            import torch
            torch.set_grad_enabled(False)
            torch.backends.cudnn.allow_tf32 = False
            self.torch = torch
        except ImportError:
            self.torch = None

    def text(self, row, data, copies=1):
        """The module of |copies| of the case, each with inputs and results of its own."""
        specs = [self.jax.ShapeDtypeStruct(d.shape, d.dtype) for d in data] * copies
        function = kinds.KINDS[row.kind].of_jax(row.parameters, self.jax)

        def every(*inputs):
            return tuple(function(*inputs[at:at + len(data)])
                         for at in range(0, len(inputs), len(data)))
        with self.jax.default_matmul_precision("default"):
            return self.jax.jit(every, keep_unused=True).lower(*specs).as_text()

    def by_jax(self, row, data, sets):
        function = self.jax.jit(kinds.KINDS[row.kind].of_jax(row.parameters, self.jax))
        placed = [[self.jax.device_put(d) for d in data] for _ in range(sets)]
        at = iter(range(1 << 60))

        def run():
            return function(*placed[next(at) % sets])
        return self.np.asarray(run()), clock_timer(
            run, lambda out: out.block_until_ready())

    def by_torch(self, row, data, sets, compiled):
        torch, kind = self.torch, kinds.KINDS[row.kind]
        where = "cuda" if self.options.device == "cuda" else "cpu"
        function = kind.of_torch(row.parameters, torch)
        lay = getattr(kind, "laid_out", lambda p, torch, tensors: tensors)

        def tensor(d):
            bf16 = d.dtype == self.ml_dtypes.bfloat16
            t = torch.from_numpy(d.view(self.np.int16) if bf16 else d).to(where)
            return t.view(torch.bfloat16) if bf16 else t
        placed = [lay(row.parameters, torch, [tensor(d) for d in data])
                  for _ in range(sets)]
        if compiled:
            torch._dynamo.reset()
            function = torch.compile(function, fullgraph=True, dynamic=False)
        got = function(*placed[0]).contiguous().cpu()
        got = (got.view(torch.int16).numpy().view(self.ml_dtypes.bfloat16)
               if got.dtype == torch.bfloat16 else got.numpy())
        if where == "cuda":
            return got, torch_timer(torch, function, placed)
        at = iter(range(1 << 60))
        return got, clock_timer(lambda: function(*placed[next(at) % sets]),
                                lambda out: None)


def by_pestle(child, text, data, sets, folder, output, copies=1):
    path = folder / "row.mlir"
    path.write_text(text, encoding="utf-8")
    compile_ms = float(child.ask(f"load {path} {sets}")[0])
    for i, d in enumerate(data):
        (folder / "input").write_bytes(d.tobytes())
        for copy in range(copies):
            child.ask(f"input {i + copy * len(data)} {folder / 'input'}")
    child.ask(f"save {copies - 1} {folder / 'output'}")
    got = output((folder / "output").read_bytes())
    return got, lambda: float(child.ask(f"time {BATCH_MS}")[0]) / copies, compile_ms


def off(np, got, want, dtype):
    """How far two results are apart, of the norm; of whole numbers, how many differ."""
    if got.size != want.size:
        return math.inf
    a = got.reshape(-1)
    b = want.reshape(-1)
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        return int((a.astype(np.int64) != b.astype(np.int64)).sum())
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))


def prepare(row, peers, options, folder):
    """Compiles a row for all; the function that comes back times it, and says a
    dictionary: its row of the table."""
    np = peers.np
    data = numbers(row, np, peers.ml_dtypes)
    size = sum(d.nbytes for d in data)
    # A recurrent layer's weights are read at every step: from the cache in any case.
    most = 1 if options.device != "cuda" else 2 if row.kind == "recurrent" else 16
    sets = max(1, min(most, ROTATE // max(size, 1) + 1))
    found, times, results = {"row": row.index, "name": row.name}, {}, {}

    def contender(who, make):
        try:
            results[who], batch = make()
            times[who] = (batch, [])
        except Exception as error:  # a row says it, and the next one comes
            found[f"{who}_error"] = f"{type(error).__name__}: {str(error)[:300]}"

    contender("jax", lambda: peers.by_jax(row, data, sets))
    if peers.torch:
        contender("torch", lambda: peers.by_torch(row, data, sets, False))
        if options.compile:
            contender("compile", lambda: peers.by_torch(row, data, sets, True))
    children = []

    def pestle(copies):
        like = results.get("jax", results.get("torch"))
        children.append(Pestle(options.base, options.device))
        got, batch, compile_ms = by_pestle(
            children[-1], peers.text(row, data, copies), data, sets // copies, folder,
            lambda raw: np.frombuffer(raw, like.dtype), copies)
        found.setdefault("compile_ms", compile_ms)
        return got, batch
    contender("pestle", lambda: pestle(1))
    short = "pestle" in times and sets > 2 and options.device == "cuda"
    if short and times["pestle"][0]() < SHORT_US:
        times["call"] = times["pestle"]
        contender("pestle", lambda: pestle(sets))
    others = [who for who in results if who != "pestle"]
    if "pestle" in results and others:
        dtype = row.inputs[0].dtype
        found["off"] = min(off(np, results["pestle"], results[who], dtype)
                           for who in others)
        found["right"] = bool(found["off"] <= OFF[dtype])

    def measure():
        for _ in range(options.rounds):
            for batch, us in times.values():
                time.sleep(REST_MS * 1e-3)
                us.append(batch())
        for who, (_, us) in times.items():
            found[f"{who}_us"] = statistics.median(us)
        for child in children:
            child.child.kill()
            child.child.wait()
        if "pestle" in times and others:
            found["ratio"] = found["pestle_us"] / min(found[f"{who}_us"] for who in others)
            if row.floor:
                found["floor"] = row.floor
        return found
    return measure


def every_row(options):
    return kinds.floors() if options.floors else kinds.rows(options.seed)


def worker(options):
    """Answers a row's number with READY, and what comes next with its times."""
    peers, every = Peers(options), every_row(options)
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            measure = prepare(every[int(line)], peers, options, pathlib.Path(folder))
            print("READY", flush=True)
            sys.stdin.readline()
            print("ROW " + json.dumps(measure()), flush=True)


class Worker:
    """A process that does rows, which may be ended within one."""

    def __init__(self, options):
        words = [f"--{k}={v}" for k, v in vars(options).items()
                 if k in ("base", "rounds", "seed", "device")]
        # Workers share the GPU's memory.
        env = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false")
        self.child = subprocess.Popen(
            [sys.executable, __file__, "--worker", *words,
             *(f"--{word}" for word in ("compile", "floors") if getattr(options, word))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.fresh, self.ended = True, False

    def begin(self, row, seconds):
        # The imports of a new process are not the row's.
        self.row, self.error = row, None
        self.until = time.monotonic() + seconds + (60 if self.fresh else 0)
        self.seconds, self.fresh = seconds, False
        self.say(row.index)

    def say(self, what):
        self.child.stdin.write(f"{what}\n")
        self.child.stdin.flush()

    def hear(self, word):
        """What follows |word|, or None: why is in |error|."""
        while (left := self.until - time.monotonic()) > 0:
            if select.select([self.child.stdout], [], [], left)[0]:
                line = self.child.stdout.readline()
                if line.startswith(word):
                    return line[len(word):]
                if not line:
                    self.error = "the process ended"
                    return None
        self.error = f"took more than {self.seconds:g} s"
        return None

    def is_ready(self):
        return self.hear("READY") is not None

    def measured(self):
        """The row: measured where it is ready, else why it is not."""
        line = None
        if not self.error:
            self.until = time.monotonic() + self.seconds
            self.say("go")
            line = self.hear("ROW ")
        if line is None:
            self.end()
            return {"row": self.row.index, "name": self.row.name, "error": self.error}
        return {"name": self.row.name, **json.loads(line)}

    def end(self):
        """One that is within a call of a driver's ends when that returns: not waited for."""
        self.ended = True
        self.child.kill()
        try:
            self.child.wait(5)
        except subprocess.TimeoutExpired:
            pass


def shown(found):
    ratio = f"{found['ratio']:7.2f}" if "ratio" in found else "      -"
    us = " ".join(f"{who} {found[f'{who}_us']:.1f}" for who in (
        "pestle", "torch", "compile", "jax") if f"{who}_us" in found)
    wrong = "" if found.get("right", True) else f" WRONG, off by {found['off']:.2g}"
    error = "; ".join(str(v) for k, v in found.items() if k.endswith("error"))
    if "floor" in found:
        kept = found.get("ratio", math.inf) <= found["floor"]
        wrong += f" asked {found['floor']}: {'kept' if kept else 'ABOVE'}"
    return f"{found['row']:3} {ratio} {found.get('name', '')} {us}{wrong} {error}".rstrip()


def summary(found):
    ratios = [f["ratio"] for f in found if "ratio" in f]
    if not ratios:
        return "no row has a ratio"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    lines = [f"{len(found)} rows, {len(ratios)} with a ratio: geometric mean {mean:.2f}, "
             f"{sum(r > 2 for r in ratios)} above 2, "
             f"{sum(not f.get('right', True) for f in found)} wrong"]
    for kind in kinds.KINDS:
        of = [f["ratio"] for f in found
              if "ratio" in f and f["name"].startswith(kind + "_")]
        if of:
            lines.append(f"{kind:12} {len(of):3} rows, mean "
                         f"{math.exp(sum(map(math.log, of)) / len(of)):.2f}, "
                         f"most {max(of):.2f}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True)
    parser.add_argument("--out", default="every_shape.jsonl")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--only", default="", help="TEXT,...")
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--smallest", action="store_true")
    parser.add_argument("--floors", action="store_true")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.base = str(pathlib.Path(options.base).resolve())
    if options.worker:
        return worker(options)
    part, parts = map(int, options.part.split("/"))
    out = pathlib.Path(options.out)
    done = {json.loads(line)["row"] for line in out.read_text().splitlines()
            } if out.exists() else set()
    end = time.monotonic() + 60 * options.minutes
    every = every_row(options)
    every = (kinds.smallest(every) if options.smallest else every)[part - 1::parts]
    wanted = {}
    for text in options.only.split(","):
        wanted.update((row.index, row) for row in every
                      if text in row.name and row.index not in done)
    left, workers = list(wanted.values()), []
    while left:
        if time.monotonic() > end:
            print("time is up: the same command goes on from here")
            break
        while len(workers) < min(options.workers, len(left)):
            workers.append(Worker(options))
        busy = list(zip(workers, left[:len(workers)]))
        left = left[len(busy):]
        for child, row in busy:
            child.begin(row, options.seconds)
        # All are ready, or given up, before one is timed.
        for child, _ in busy:
            child.is_ready() or child.end()
        for child, _ in busy:
            found = child.measured()
            print(shown(found), flush=True)
            with open(out, "a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
        workers = [child for child in workers if not child.ended]
    for child in workers:
        child.end()
    print(summary([json.loads(line) for line in out.read_text().splitlines()]
                  if out.exists() else []))
    return 0


if __name__ == "__main__":
    sys.exit(main())
