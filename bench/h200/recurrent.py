#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LSTM and GRU beside cuDNN's through torch on one GPU, in one run.

    recurrent.py --base BUNDLE [--also NAME=BUNDLE] [--seconds N] [--rounds N]
                 [--only CASE] [--print CASE]

A case is cell_features_steps_batch[_directions_layers]; BUNDLE has bin/bench_device, lib/
and backends/. Each is written as JAX writes it, a while whose turn takes a row of x, two
products and the gates, with its weights as constants. Contenders take turns; the median of
the rounds counts. torch runs as it does by default (products in tf32 where cuDNN likes)
and with f32 alone, each by calls and as a CUDA graph where it can be captured; the ratio is
to the best of all of these. --print writes a case's module and needs no GPU.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bench import Pestle  # noqa: E402

BATCH_MS = 4.0
SIZES = [(64, 100, 1), (256, 100, 1), (64, 1000, 32), (1024, 100, 1), (256, 1000, 1),
         (256, 100, 32), (64, 1000, 1), (64, 100, 32), (256, 1000, 32), (1024, 100, 32),
         (1024, 1000, 1), (1024, 1000, 32)]
CASES = ["gru_64_247_1_2_2", "lstm_256_100_8_1_2"]
CASES += [f"{cell}_{h}_{t}_{b}" for h, t, b in SIZES for cell in ("lstm", "gru")]
GATES = {"lstm": 4, "gru": 3}


def read(case):
    cell, *numbers = case.split("_")
    h, t, b, directions, layers = [int(n) for n in numbers] + [1, 1][len(numbers) - 3:]
    return cell, h, t, b, directions, layers


def weights_of(case):
    """For each layer and direction W [in, gates], R [h, gates] and both biases."""
    cell, h, _, _, directions, layers = read(case)
    rng, n = np.random.default_rng(7), GATES[cell] * h
    s = 1 / np.sqrt(h)
    return [[rng.uniform(-s, s, shape).astype(np.float32)
             for shape in ((h if layer == 0 else directions * h, n), (h, n), (n,), (n,))]
            for layer in range(layers) for _ in range(directions)]


def tensor(*dims):
    return f"tensor<{''.join(f'{d}x' for d in dims)}f32>"


class Text:
    """A module that is being written."""

    def __init__(self):
        self.lines, self.next = [], 0

    def op(self, text):
        self.next += 1
        self.lines.append(f"  %v{self.next} = {text}")
        return f"%v{self.next}"

    def constant(self, a):
        data = f'"0x{a.tobytes().hex()}"'
        return self.op(f"stablehlo.constant dense<{data}> : {tensor(*a.shape)}")

    def splat(self, value, *dims):
        return self.op(f"stablehlo.constant dense<{value:.1f}> : {tensor(*dims)}")

    def two(self, name, a, b, t):
        return self.op(f"stablehlo.{name} {a}, {b} : {t}")

    def one(self, name, a, t):
        return self.op(f"stablehlo.{name} {a} : {t}")

    def dot(self, a, w, m, k, n):
        return self.op(f"stablehlo.dot_general {a}, {w}, contracting_dims = [1] x [0] : "
                       f"({tensor(m, k)}, {tensor(k, n)}) -> {tensor(m, n)}")

    def along(self, a, m, n):
        return self.op(f"stablehlo.broadcast_in_dim {a}, dims = [1] : ({tensor(n)}) -> "
                       f"{tensor(m, n)}")

    def part(self, a, i, m, h, n):
        return self.op(f"stablehlo.slice {a} [0:{m}, {i * h}:{(i + 1) * h}] : "
                       f"({tensor(m, n)}) -> {tensor(m, h)}")


def direction_of(t, cell, x, w, steps, batch, wide, h, reverse):
    n, state = GATES[cell] * h, tensor(batch, h)
    W, R, bx, bh = [t.constant(a) for a in w]
    zero = t.op("stablehlo.constant dense<0> : tensor<i32>")
    one = t.op("stablehlo.constant dense<1> : tensor<i32>")
    count = t.op(f"stablehlo.constant dense<{steps}> : tensor<i32>")
    last = t.op(f"stablehlo.constant dense<{steps - 1}> : tensor<i32>")
    h0, ys = t.splat(0, batch, h), t.splat(0, steps, batch, h)
    names = ["i", "h", "y"] + (["c"] if cell == "lstm" else [])
    begin = [zero, h0, ys] + ([h0] if cell == "lstm" else [])
    types = ["tensor<i32>", state, tensor(steps, batch, h)] + [state] * (len(names) - 3)
    t.next += 1
    loop = f"%v{t.next}"
    p = f"{loop[1:]}_"
    carried = ", ".join(f"%{p}{a} = {b}" for a, b in zip(names, begin))
    t.lines.append(f"  {loop}:{len(names)} = stablehlo.while({carried}) : "
                   f"{', '.join(types)} cond {{")
    test = t.op(f"stablehlo.compare LT, %{p}i, {count} : (tensor<i32>, tensor<i32>) -> "
                "tensor<i1>")
    t.lines.append(f"  stablehlo.return {test} : tensor<i1>\n  }} do {{")
    at = t.op(f"stablehlo.subtract {last}, %{p}i : tensor<i32>") if reverse else f"%{p}i"
    row = t.op(f"stablehlo.dynamic_slice {x}, {at}, {zero}, {zero}, sizes = [1, {batch}, "
               f"{wide}] : ({tensor(steps, batch, wide)}, tensor<i32>, tensor<i32>, "
               f"tensor<i32>) -> {tensor(1, batch, wide)}")
    row = t.op(f"stablehlo.reshape {row} : ({tensor(1, batch, wide)}) -> "
               f"{tensor(batch, wide)}")
    gates = tensor(batch, n)
    gx = t.two("add", t.dot(row, W, batch, wide, n), t.along(bx, batch, n), gates)
    gh = t.two("add", t.dot(f"%{p}h", R, batch, h, n), t.along(bh, batch, n), gates)
    if cell == "lstm":
        g = t.two("add", gx, gh, gates)
        i, f, c, o = [t.part(g, j, batch, h, n) for j in range(4)]
        i, f, o = [t.one("logistic", v, state) for v in (i, f, o)]
        c = t.two("multiply", i, t.one("tanh", c, state), state)
        c = t.two("add", t.two("multiply", f, f"%{p}c", state), c, state)
        new = t.two("multiply", o, t.one("tanh", c, state), state)
    else:
        (rx, zx, nx), (rh, zh, nh) = [[t.part(v, j, batch, h, n) for j in range(3)]
                                      for v in (gx, gh)]
        r = t.one("logistic", t.two("add", rx, rh, state), state)
        z = t.one("logistic", t.two("add", zx, zh, state), state)
        q = t.two("add", nx, t.two("multiply", r, nh, state), state)
        q = t.one("tanh", q, state)
        rest = t.two("subtract", t.splat(1, batch, h), z, state)
        new = t.two("add", t.two("multiply", rest, q, state),
                    t.two("multiply", z, f"%{p}h", state), state)
    y = t.op(f"stablehlo.reshape {new} : ({state}) -> {tensor(1, batch, h)}")
    y = t.op(f"stablehlo.dynamic_update_slice %{p}y, {y}, {at}, {zero}, {zero} : "
             f"({types[2]}, {tensor(1, batch, h)}, tensor<i32>, tensor<i32>, tensor<i32>) "
             f"-> {types[2]}")
    j = t.op(f"stablehlo.add %{p}i, {one} : tensor<i32>")
    back = [j, new, y] + ([c] if cell == "lstm" else [])
    t.lines.append(f"  stablehlo.return {', '.join(back)} : {', '.join(types)}\n  }}")
    return f"{loop}#2"


def module(case):
    cell, h, steps, batch, directions, layers = read(case)
    t, all_weights = Text(), iter(weights_of(case))
    x, wide = "%x", h
    for _ in range(layers):
        ys = [direction_of(t, cell, x, next(all_weights), steps, batch, wide, h, d == 1)
              for d in range(directions)]
        x = ys[0]
        if directions == 2:
            half = tensor(steps, batch, h)
            x = t.op(f"stablehlo.concatenate {ys[0]}, {ys[1]}, dim = 2 : ({half}, {half}) "
                     f"-> {tensor(steps, batch, 2 * h)}")
        wide = directions * h
    body = "\n".join(t.lines)
    return (f"func.func @main(%x: {tensor(steps, batch, h)}) -> "
            f"{tensor(steps, batch, wide)} {{\n{body}\n  return {x} : "
            f"{tensor(steps, batch, wide)}\n}}\n")


def torch_layer(torch, case):
    cell, h, _, _, directions, layers = read(case)
    make = torch.nn.LSTM if cell == "lstm" else torch.nn.GRU
    net = make(h, h, num_layers=layers, bidirectional=directions == 2).cuda()
    with torch.no_grad():
        for at, (W, R, bx, bh) in enumerate(weights_of(case)):
            tail = f"l{at // directions}" + ("_reverse" if at % directions else "")
            for name, a in (("weight_ih", W.T), ("weight_hh", R.T), ("bias_ih", bx),
                            ("bias_hh", bh)):
                getattr(net, f"{name}_{tail}").copy_(torch.from_numpy(a.copy()))
    net.flatten_parameters()
    return net


def torch_timers(torch, net, x):
    """Names to functions that give microseconds a run of a batch of BATCH_MS."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def timed(run, count):
        begin.record()
        for _ in range(count):
            run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / count

    def timer(run):
        timed(run, 2)
        count = max(1, int(BATCH_MS * 1e3 / max(timed(run, 2), 1)))
        return lambda: timed(run, count)

    found = {"calls": timer(lambda: net(x))}
    try:
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            net(x)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            net(x)
        found["graph"] = timer(graph.replay)
    except Exception as e:  # noqa: BLE001  what cannot be captured is timed by calls
        print(f"  no graph of torch: {str(e)[:100]}", file=sys.stderr)
    return found


def run(torch, case, bundles, rounds, folder):
    _, _, steps, batch, directions, _ = read(case)
    path = folder / f"{case}.mlir"
    path.write_text(module(case), encoding="ascii")
    row = {"case": case}
    for name, p in bundles.items():
        row[f"{name}_compile_ms"] = round(float(p.ask(f"load {path} 1")[0]))
    first = next(iter(bundles.values()))
    first.ask(f"normal {folder}/normal")
    first.ask(f"save 0 {folder}/y")
    numbers = np.fromfile(folder / "normal", np.float32)
    cell, h = read(case)[:2]
    count = steps * batch * h
    x = np.resize(numbers, count).reshape(steps, batch, h)
    x = torch.from_numpy(x.copy()).cuda()
    contenders = {name: (lambda p=p: float(p.ask(f"time {BATCH_MS}")[0]))
                  for name, p in bundles.items()}
    with torch.no_grad():
        net = torch_layer(torch, case)
        torch.backends.cudnn.allow_tf32 = False
        got = np.fromfile(folder / "y", np.float32)
        want = net(x)[0].cpu().numpy().ravel()
        row["off"] = float(np.abs(got - want).max())
        row["right"] = bool(row["off"] < 2e-4)
        for tf32 in (False, True):
            torch.backends.cudnn.allow_tf32 = tf32
            for name, f in torch_timers(torch, net, x).items():
                def batch_of(f=f, tf32=tf32):
                    torch.backends.cudnn.allow_tf32 = tf32
                    return f()
                contenders[f"torch_{'tf32' if tf32 else 'f32'}_{name}"] = batch_of
        times = {name: [] for name in contenders}
        for _ in range(rounds):
            for name, f in contenders.items():
                times[name].append(f())
    for name, t in times.items():
        row[name] = round(statistics.median(t), 1)
    row["best_peer"] = min(v for k, v in row.items() if k.startswith("torch_"))
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", type=pathlib.Path)
    parser.add_argument("--also", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=80)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--print", dest="shown")
    args = parser.parse_args()
    if args.shown:
        print(module(args.shown))
        return
    import torch
    began = time.time()
    print(torch.cuda.get_device_name(0), "torch", torch.__version__, "cuDNN",
          torch.backends.cudnn.version())
    bundles = {"pestle": Pestle(args.base, "cuda")}
    for text in args.also:
        name, _, base = text.partition("=")
        bundles[name] = Pestle(base, "cuda")
    out = pathlib.Path(os.environ.get("OUT", "."))
    with tempfile.TemporaryDirectory() as folder, \
            open(out / "recurrent.jsonl", "w", encoding="utf-8") as log:
        for case in args.only or CASES:
            if time.time() - began > args.seconds:
                print("no time left for", case)
                continue
            try:
                row = run(torch, case, bundles, args.rounds, pathlib.Path(folder))
            except Exception as e:  # noqa: BLE001  one case must not end the others
                print(f"{case:20} failed: {str(e)[:300]}")
                for name in list(bundles):
                    base = args.base if name == "pestle" else dict(
                        a.split("=", 1) for a in args.also)[name]
                    bundles[name] = Pestle(base, "cuda")
                continue
            log.write(json.dumps(row) + "\n")
            steps = read(case)[2]
            others = " ".join(f"{k[6:]} {v:.0f}" for k, v in row.items()
                              if k.startswith("torch_"))
            more = " ".join(f"{n} {row[n]:.0f}" for n in bundles if n != "pestle")
            print(f"{case:20} {row['pestle']:9.1f} us, {row['pestle'] / steps:6.2f} a step, "
                  f"ratio {row['pestle'] / row['best_peer']:5.2f}  ({others}) {more} "
                  f"off {row['off']:.1e}{'' if row['right'] else ' WRONG'} "
                  f"compile {row['pestle_compile_ms']} ms", flush=True)


if __name__ == "__main__":
    main()
