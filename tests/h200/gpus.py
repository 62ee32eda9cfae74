#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All GPUs of a machine in one call: collectives in a plan beside NCCL called directly and torch
in the same run, weak and strong scaling of a data-parallel step, a product divided over all, what
the simulator plans beside what was measured, and last a rank that dies and one that stops.

    gpus.py --base BUNDLE [--counts 2,4,8] [--only PART,PART] [--seconds N] [--small]

BUNDLE has lib/libpestle.so.0, backends/libpestle-cuda.so and bin/pestle (bundle.sh makes one).
Needs NCCL (the wheel that torch brings is found), numpy, and torch for its own rows. Each of
--counts that the machine has GPUs for is run. Rows are printed as they come and go to
$OUT/gpus.jsonl (or ./gpus.jsonl): one that is there already is not measured again, so that a
second call goes on where the first one stopped. The table of all rows, with what is asked and
whether it is reached, comes at the end. NVLink multicast stays off (world.py). --small: sizes for
the fakes of tests/cuda. PARTS: wire, data, tensor, torch, fail. The exit status tells whether all
results were right."""
import argparse
import ctypes
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

import world
from world import P, RANKS, best, filled, free_port

PARTS = ("wire", "data", "tensor", "torch", "fail")
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
SIZES = tuple(1 << e for e in (10, 14, 18, 22, 26, 28, 30))
SMALL_SIZES = (1 << 10, 1 << 14)
SUM, F32 = 0, 7  # ncclRedOp_t and ncclDataType_t
LIMIT = 5.0  # seconds that a rank may be late in the part "fail"


def sizes(small):
    return SMALL_SIZES if small else SIZES


def times_of(size):
    return 20 if size <= 1 << 18 else 10 if size <= 1 << 24 else 4


def bus(kind, size, seconds, n):
    """GB/s as nccl-tests count them."""
    return (2 if kind == "all_reduce" else 1) * (n - 1) / n * size / seconds * 1e-9


# --- Collectives ---


def given_and_made(kind, size):
    """Numbers that a rank gives and has afterwards, where |size| bytes are what nccl-tests say."""
    n = size // 4
    return (n // RANKS if kind == "all_gather" else n,
            n // RANKS if kind == "reduce_scatter" else n)


def several(kind, size, times):
    """|times| collectives that do not need each other, of arguments of their own."""
    given, made = given_and_made(kind, size)
    text, out = world.one_collective(kind, given, "f32", "add")
    body = text[text.index("  %b ="):text.index("  return")]
    lines = [body.replace("%b", f"%b{i}").replace("(%a)", f"(%a{i})") for i in range(times)]
    a = f"{given}xf32"
    return world.module([(f"a{i}", a) for i in range(times)],
                        [(f"b{i}", f"{made}xf32") for i in range(times)], "".join(lines),
                        f"{kind}_{size}")


def in_turn(kind, size, times):
    """Sums one after the other, else several()."""
    return world.chain(size // 4, times) if kind == "all_reduce" else several(kind, size, times)


class Direct(world.Nccl):
    """What a program by hand would call, |times| of them."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        n, i = ctypes.c_size_t, ctypes.c_int
        self.lib.ncclAllGather.argtypes = [P, P, n, i, P, P]
        self.lib.ncclReduceScatter.argtypes = [P, P, n, i, i, P, P]
        self.lib.ncclSend.argtypes = self.lib.ncclRecv.argtypes = [P, n, i, i, P, P]

    def keep(self, result):
        if result:
            self.ready(result)

    def all_to_all(self, a, b, count, stream):
        part = count // RANKS
        self.check(self.lib.ncclGroupStart())  # within a group nothing ends
        for peer in range(RANKS):
            at = 4 * part * peer
            self.check(self.lib.ncclSend(a + at, part, F32, peer, self.comm, stream))
            self.check(self.lib.ncclRecv(b + at, part, F32, peer, self.comm, stream))
        self.keep(self.lib.ncclGroupEnd())

    def run(self, kind, a, b, given, made, times):
        c, s = self.comm, self.gpu.stream
        call = {"all_reduce": lambda: self.lib.ncclAllReduce(a, b, given, F32, SUM, c, s),
                "all_gather": lambda: self.lib.ncclAllGather(a, b, given, F32, c, s),
                "reduce_scatter": lambda: self.lib.ncclReduceScatter(a, b, made, F32, SUM, c, s),
                "all_to_all": lambda: self.all_to_all(a, b, given, s)}[kind]
        for _ in range(times):
            self.keep(call())
        while self.gpu.lib.cuStreamQuery(s):
            pass


def ends(gpu, data, count, parts):
    """The first and the last number of each of |parts| of |count| numbers at |data|."""
    one = np.empty(1, np.float32)
    each = count // parts
    return [float(gpu.get(data + 4 * at, one)[0])
            for part in range(parts) for at in (part * each, (part + 1) * each - 1)]


def wanted(kind, times):
    """Of ranks that give rank + 1 everywhere; a chain of sums adds up sums."""
    total = RANKS * (RANKS + 1) // 2
    if kind == "all_reduce":
        return [float(np.float32(total) * np.float32(RANKS) ** (times - 1))] * 2
    if kind == "reduce_scatter":
        return [float(total)] * 2
    return [float(part + 1) for part in range(RANKS) for _ in range(2)]


def one_size(r, direct, kind, size):
    times = times_of(size)
    given, made = given_and_made(kind, size)
    if not given or not made:
        return
    many = 1 if kind == "all_reduce" else times
    executable = r.load(in_turn(kind, size, times))
    a = r.gpu.put(np.full(given, r.rank + 1, np.float32))
    outs = [r.gpu.new(4 * made) for _ in range(many)]
    ins = [(a, "f32", (given,), r.rank)] * many
    views = [(b, "f32", (made,), r.rank) for b in outs]

    def plan():
        r.pestle.run(executable, ins, views, r.world)

    def by_hand():
        direct.run(kind, a, outs[0], given, made, times)

    plan()
    parts = 1 if kind in ("all_reduce", "reduce_scatter") else RANKS
    got = ends(r.gpu, outs[-1], made, parts)
    right = got == wanted(kind, times)
    plan(), by_hand(), plan(), by_hand()
    mine, bare = [], []
    for _ in range(2 if r.small else 4):
        mine.append(best(plan, 5) / times)
        bare.append(best(by_hand, 5) / times)
    mine, bare = min(mine), min(bare)
    r.say("wire", f"{kind} {size} B", right, plan_us=mine * 1e6, nccl_us=bare * 1e6,
          plan_bus=bus(kind, size, mine, RANKS), nccl_bus=bus(kind, size, bare, RANKS),
          ratio=bare / mine, said=[] if right else got)
    for data in [a, *outs]:
        r.gpu.free(data)
    r.pestle.lib.pestle_executable_release(executable)


def part_wire(r):
    direct = Direct(r.gpu, r.rank, RANKS, r.folder / "direct.id")
    for kind in KINDS:
        for size in sizes(r.small):
            one_size(r, direct, kind, size)
    direct.end()


# --- A model over all ---


class Placed:
    """A program's arguments and results on this rank's GPU."""

    def __init__(self, r, arrays, results):
        self.r = r
        self.data = [(r.gpu.put(v), "bf16", v.shape, r.rank) for v in arrays]
        self.outs = [(r.gpu.new(4 if kind == "f32" else 2 * int(np.prod(shape))), kind, shape,
                      r.rank) for kind, shape in results]

    def seconds(self, text, alone, save, times):
        """The least of |times| runs; rank 0 alone or all together. The plan goes to |save|."""
        r = self.r
        if alone:
            executable = r.pestle.load(text, r.device, save=save if r.rank == 0 else None)
        else:
            executable = r.load(text)
            if r.rank == 0:
                save.write_bytes((r.folder / f"shared{r.met - 1}.plan").read_bytes())
        where = None if alone else r.world
        for _ in range(3):  # as it is seen first, recorded, launched
            r.pestle.run(executable, self.data, self.outs, where)
        r.meet()
        found = best(lambda: r.pestle.run(executable, self.data, self.outs, where), times)
        r.pestle.lib.pestle_executable_release(executable)
        r.meet()
        return found

    def free(self):
        for view in self.data + self.outs:
            self.r.gpu.free(view[0])


def transformer(small, batch):
    return (world.Transformer(2, batch, 16, 32, 2, 64) if small else
            world.Transformer(6, batch, 1024, 1024, 16, 4096))


def step_of(r, batch, ranks, save, times):
    model = transformer(r.small, batch)
    gradient = r.pestle.gradient(model.loss(), range(2, 2 + len(model.weights)))
    flat = (model.tokens, model.width)
    shapes = [flat, flat] + model.weights
    placed = Placed(r, [filled(s, i + (1000 * r.rank if i < 2 else 0), 0.02 if i > 1 else 1.0)
                        for i, s in enumerate(shapes)],
                    [("f32", ())] + [("bf16", s) for s in model.weights])
    found = placed.seconds(model.step(gradient, ranks, "1.0e-6"), ranks == 1, save, times)
    weight = model.weights[0]
    moved = r.gpu.get(placed.outs[1][0], np.empty(weight, np.uint16)).tobytes()
    placed.free()
    return found, moved


def part_data(r):
    """A batch of 8 sequences a GPU, and one that all share."""
    times = 2 if r.small else 10
    plans = r.folder.parent
    alone, _ = step_of(r, 8, 1, plans / "one.plan", times)
    weak, moved = step_of(r, 8, RANKS, plans / "all.plan", times)
    (r.folder / f"moved{r.rank}").write_bytes(moved)
    r.meet()
    same = all((r.folder / f"moved{i}").read_bytes() == moved for i in range(RANKS))
    r.say("data", "weak: 75 M parameters, 8 x 1,024 tokens a GPU", same, one_gpu_ms=alone * 1e3,
          all_ms=weak * 1e3, scaling=alone / weak)
    simulated(r, "data-parallel step", plans / "one.plan", alone, plans / "all.plan", weak)
    if 8 % RANKS:
        return
    strong, _ = step_of(r, 8 // RANKS, RANKS, plans / "strong.plan", times)
    r.say("data", "strong: 75 M parameters, 8 x 1,024 tokens in all", True, one_gpu_ms=alone * 1e3,
          all_ms=strong * 1e3, speedup=alone / strong, scaling=alone / strong / RANKS)


def part_tensor(r):
    """An MLP of which each rank has a part of the middle, beside the whole on one GPU."""
    tokens, d, h = (64, 64, 128) if r.small else (4096, 8192, 28672)
    times = 2 if r.small else 10
    plans, part = r.folder.parent, h // RANKS
    x, w1, w2 = (filled(s, i + 1, 0.02 if i else 1.0)
                 for i, s in enumerate(((tokens, d), (d, h), (h, d))))
    out = [("bf16", (tokens, d))]
    y = np.empty((tokens, d), np.uint16)
    whole = Placed(r, (x, w1, w2), out)
    alone = whole.seconds(world.mlp(tokens, d, h, 1), True, plans / "one.plan", times)
    want = world.from_bf16(r.gpu.get(whole.outs[0][0], y))
    whole.free()
    mine = slice(r.rank * part, (r.rank + 1) * part)
    divided = Placed(r, (x, w1[:, mine], w2[mine]), out)
    found = divided.seconds(world.mlp(tokens, d, part, RANKS), False, plans / "all.plan", times)
    got = world.from_bf16(r.gpu.get(divided.outs[0][0], y))
    off = float(np.linalg.norm(got - want) / np.linalg.norm(want))
    # Partial sums are rounded to bf16 before they are added: 2^-9 each, some of them.
    r.say("tensor", f"MLP {d} x {d} x {h} bf16, {tokens} tokens", off < 0.02,
          one_gpu_ms=alone * 1e3, all_ms=found * 1e3, speedup=alone / found, off=off)
    simulated(r, "MLP", plans / "one.plan", alone, plans / "all.plan", found)
    divided.free()


# --- What the simulator plans ---


def seconds_of_sum(r, size):
    times = times_of(size)
    executable = r.load(world.chain(size // 4, times))
    a, b = r.gpu.put(np.zeros(size // 4, np.float32)), r.gpu.new(size)
    view = [(a, "f32", (size // 4,), r.rank)], [(b, "f32", (size // 4,), r.rank)]
    for _ in range(3):
        r.pestle.run(executable, *view, r.world)
    r.meet()
    found = best(lambda: r.pestle.run(executable, *view, r.world), 5) / times
    r.gpu.free(a)
    r.gpu.free(b)
    r.pestle.lib.pestle_executable_release(executable)
    return found


def wire_of(r):
    """A ring's alpha and beta, from sums of sizes that no row compares."""
    if not hasattr(r, "wire"):
        small, large = (1 << 12, 1 << 16) if r.small else (1 << 21, 3 << 25)
        one, two = seconds_of_sum(r, small), seconds_of_sum(r, large)
        share = 2 * (RANKS - 1) / RANKS
        beta = share * (large - small) / max(two - one, 1e-9)
        alpha = max(one - share * small / beta, 1e-7) / (2 * (RANKS - 1))
        r.wire = f"link nvlink alpha={alpha:.6g} beta={beta:.6g}\n"
    return r.wire


def plan_seconds(r, plan, ranks, slower):
    """By the simulator, of GPUs |slower| times as slow as a first guess."""
    rank = (f"rank flops={60e12 / slower:.6g} half={700e12 / slower:.6g} "
            f"memory={2.8e12 / slower:.6g} launch={3e-6 * slower:.6g} overlap=yes\n")
    path = plan.with_suffix(".topology")
    path.write_text(rank + (wire_of(r) if ranks > 1 else "link none alpha=0 beta=1T\n"))
    done = subprocess.run([str(r.base / "bin/pestle"), "world", str(plan), "--simulate",
                           str(ranks), "--topology", str(path), "--json"], text=True, check=False,
                          capture_output=True,
                          env=os.environ | {"LD_LIBRARY_PATH": str(r.base / "lib") + ":" +
                                            os.environ.get("LD_LIBRARY_PATH", ""),
                                            "PESTLE_BACKEND_PATH": str(r.base / "backends")})
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)["run_us"] * 1e-6


def simulated(r, name, one, alone, many, measured):
    """One GPU's time sets the rates; what all take is then planned, and compared."""
    wire_of(r)  # all ranks measure it
    if r.rank == 0:
        try:
            slower = 1.0
            for _ in range(3):
                slower *= alone / plan_seconds(r, one, 1, slower)
            planned = plan_seconds(r, many, RANKS, slower)
            r.say("plan", f"simulator: {name}", True, planned_ms=planned * 1e3,
                  measured_ms=measured * 1e3, ratio=planned / measured)
        except (RuntimeError, OSError, ValueError) as failed:
            r.say("plan", f"simulator: {name}", False, said=str(failed)[-400:])
    r.meet()


# --- Ranks ---


def rank_main(arguments):
    r = world.Rank(arguments)
    r.base = arguments.base
    if arguments.rank == "loop":
        try:
            r.loop()
        except world.Failed as failed:
            print(f"error {failed}", flush=True)
            # What NCCL or the driver still do must not hold the process.
            os._exit(1)
    for name in arguments.rank.split(","):
        globals()["part_" + name](r)
        r.meet()
    sys.stdout.flush()
    r.pestle.lib.pestle_world_release(r.world)
    return 0


def torch_call(dist, kind, a, b):
    return {"all_reduce": lambda: dist.all_reduce(a),
            "all_gather": lambda: dist.all_gather_into_tensor(b, a),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(b, a),
            "all_to_all": lambda: dist.all_to_all_single(b, a)}[kind]


def torch_main(arguments):
    import torch
    import torch.distributed as dist
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{arguments.port}", rank=rank,
                            world_size=RANKS)
    for kind in KINDS:
        for size in SIZES:
            given, made = given_and_made(kind, size)
            a = torch.ones(given, device="cuda")
            b = torch.ones(made, device="cuda")
            call, times = torch_call(dist, kind, a, b), times_of(size)

            def run(call=call, times=times):
                for _ in range(times):
                    call()
                torch.cuda.synchronize()
            run(), run()
            seconds = best(run, 8) / times
            if rank == 0:
                print("ROW " + json.dumps({
                    "part": "torch", "name": f"{kind} {size} B", "right": True, "rank": 0,
                    "us": seconds * 1e6, "bus": bus(kind, size, seconds, RANKS),
                    "torch": torch.__version__}), flush=True)
            del a, b
    dist.destroy_process_group()
    return 0


# --- The whole ---


class Main(world.Main):
    def __init__(self, arguments):
        self.a = arguments
        self.right, self.count = True, 0
        self.begin = time.monotonic()
        out = pathlib.Path(os.environ.get("OUT", "."))
        out.mkdir(parents=True, exist_ok=True)
        path = out / "gpus.jsonl"
        self.rows = []
        for line in path.read_text().splitlines() if path.exists() else ():
            self.rows.append(json.loads(line))
        self.done = {(r.get("gpus"), r["part"]) for r in self.rows if r["name"] == "ended"}
        self.rows = [r for r in self.rows if (r.get("gpus"), r["part"]) in self.done]
        self.file = open(path, "w", encoding="utf-8")
        for row in self.rows:
            self.file.write(json.dumps(row) + "\n")
        self.folder = pathlib.Path(tempfile.mkdtemp())

    def row(self, row):
        row = {"gpus": self.count} | row
        self.rows.append(row)
        super().row(row)

    def start(self, words, port, rank=None, deadline=30000):
        folder = self.folder / f"{self.count}" / str(port)
        folder.mkdir(exist_ok=True, parents=True)
        env = os.environ | {"PESTLE_WORLD": f"tcp://127.0.0.1:{port}",
                            "WORLD_SIZE": str(self.count), "RANK": str(rank),
                            "PESTLE_WORLD_SECRET": world.SECRET, "PESTLE_NCCL": world.find_nccl()}
        line = [sys.executable, __file__, "--base", self.a.base, "--folder", folder, "--port",
                port, "--deadline", deadline, *words, *(["--small"] if self.a.small else [])]
        return subprocess.Popen([str(w) for w in line], env=env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def together(self, name, limit):
        if name not in self.a.only or (self.count, name) in self.done:
            return
        if self.left() < 15:
            self.row({"part": name, "name": "no time is left: call again", "right": False})
            return
        if name == "torch" and not importlib.util.find_spec("torch"):
            self.row({"part": name, "name": "torch is not here"})
            return
        port, before = free_port(), self.right
        self.right = True
        self.listen(name, [self.start(["--rank", name], port, i) for i in range(self.count)], limit)
        if self.right:
            self.row({"part": name, "name": "ended"})
        self.right &= before

    def fail(self, number, words):
        """The last rank dies or stops: all others end with its name in time."""
        port, n = free_port(), self.count
        ranks = [self.start(["--rank", "loop"], port, i, int(LIMIT * 1000)) for i in range(n)]
        try:
            for p in ranks:
                line = p.stdout.readline()
                if line != "ready\n":
                    self.row({"part": "fail", "name": number.name, "right": False, "said": line})
                    return
            time.sleep(1.0)
            begin = time.monotonic()
            ranks[-1].send_signal(number)
            said = []
            for p in ranks[:-1]:
                try:
                    said.append(p.communicate(timeout=25)[0].strip())
                except subprocess.TimeoutExpired:
                    said.append("has not ended for 25 s")
            seconds = time.monotonic() - begin
            right = all(any(f"rank {n - 1} {w}" in text or "has ended its world" in text
                            for w in words) for text in said)
            named = any(f"rank {n - 1} {w}" in text for text in said for w in words)
            self.row({"part": "fail", "name": number.name, "seconds": seconds,
                      "right": right and named and seconds < LIMIT + 2 + 2, "said": said[0][-300:]})
        finally:
            self.stop(ranks)

    def gpus(self):
        lib, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        lib.cuInit(0)
        lib.cuDeviceGetCount(ctypes.byref(count))
        return count.value

    def run(self):
        there = self.gpus()
        self.count = there
        facts = subprocess.run("nvidia-smi --query-gpu=name,driver_version --format=csv,noheader",
                               shell=True, text=True, capture_output=True, check=False).stdout
        version = ctypes.c_int()
        ctypes.CDLL(world.find_nccl()).ncclGetVersion(ctypes.byref(version))
        self.row({"part": "facts", "name": f"{there} GPUs", "nccl": version.value,
                  "said": sorted(set(facts.strip().split("\n")))})
        counts = [n for n in self.a.counts if n <= there]
        for name, limit in (("wire", 150), ("tensor", 120), ("data", 150), ("torch", 90)):
            for self.count in counts:
                self.together(name, limit)
        if "fail" in self.a.only and counts:  # last: what they leave is the driver's matter
            self.count = counts[-1]
            self.fail(signal.SIGKILL, ("has died", "has gone"))
            self.fail(signal.SIGSTOP, ("has",))
        print(table(self.rows))
        print("all right" if self.right else "NOT all right", flush=True)
        return 0 if self.right else 1


# --- The table ---


def asked(row, rows):
    """What is asked of a row, and whether it is reached; None: nothing."""
    part, n = row["part"], row["gpus"]
    size = int(row["name"].split()[1]) if part == "wire" else 0
    if part == "wire" and size >= 1 << 26:
        return ">= 0.97 of NCCL", row["ratio"] >= 0.97
    if part == "data" and row["name"].startswith("weak"):
        least = 0.93 if n > 4 else 0.95
        return f"scaling >= {least}", row["scaling"] >= least
    if part == "tensor" and n == 2:
        return ">= 1.7 of one GPU", row["speedup"] >= 1.7
    if part == "plan" and "ratio" in row:
        return "within 15 %", abs(row["ratio"] - 1) <= 0.15
    if part == "fail" and "seconds" in row:
        return f"<= {LIMIT + 2:g} s", row["right"] and row["seconds"] <= LIMIT + 2
    return None


def numbers(row, rows):
    if row["part"] == "wire":
        torch = [r for r in rows if r["part"] == "torch" and r["name"] == row["name"] and
                 r["gpus"] == row["gpus"] and "bus" in r]
        beside = f", torch {torch[0]['bus']:.1f}" if torch else ""
        return (f"{row['plan_us']:.1f} us; bus {row['plan_bus']:.1f} GB/s, NCCL "
                f"{row['nccl_bus']:.1f}{beside}; {row['ratio']:.3f} of NCCL")
    return ", ".join(f"{k} {v:.4g}" for k, v in row.items() if isinstance(v, float) and k != "t")


def table(rows):
    lines = ["", f"{'GPUs':>4}  {'what':48} {'measured':66} asked"]
    for row in rows:
        if row["part"] in ("facts", "torch") or row["name"] == "ended":
            continue
        aim = asked(row, rows) if row.get("right", True) else ("", False)
        word = "" if aim is None else f"{aim[0]}: {'reached' if aim[1] else 'NOT REACHED'}"
        lines.append(f"{row['gpus']:4}  {row['name'][:48]:48} {numbers(row, rows):66} {word}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", type=lambda p: pathlib.Path(p).resolve(), required=True)
    parser.add_argument("--counts", type=lambda t: [int(n) for n in t.split(",")],
                        default=[2, 4, 8])
    parser.add_argument("--only", type=lambda t: t.split(","), default=PARTS)
    parser.add_argument("--seconds", type=float, default=530)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--deadline", type=int, default=30000, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank == "torch":
        return torch_main(arguments)
    if arguments.rank:
        return rank_main(arguments)
    return Main(arguments).run()


if __name__ == "__main__":
    sys.exit(main())
