#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weak scaling of a data-parallel step on two ranks of this machine, a thread each: the time
of the step alone, and of both ranks with the gradients summed, beside kernels and not.

usage: PESTLE_BUILD_DIR=build/release world_scaling.py [--runs N] [--layers N] [--sockets]
Wants two cores that nothing else uses: the load is printed. Each row is the median of rank
0's runs, of three starts the least, in turns.
"""
import argparse
import os
import pathlib
import sys
import tempfile

from world_plan import F, N, Machine, module, reduce

T = F.format(f"{N}x{N}")


def dot(to, a, b, left, right):
    return (f"%{to} = stablehlo.dot_general %{a}, %{b}, contracting_dims = [{left}] x [{right}] "
            f": ({T}, {T}) -> {T}\n")


def step(layers, ranks):
    """%a are the data and each layer's weights; its change is the gradients' sum."""
    body = ""
    for i in range(layers):
        body += dot(f"z{i}", f"h{i}" if i else "a", "a", 1, 0)
        body += f"%h{i + 1} = stablehlo.tanh %z{i} : {T}\n"
    d, total = f"h{layers}", "a"
    body += f"%rate = stablehlo.constant dense<1.0e-3> : {T}\n"
    for i in reversed(range(layers)):
        g = f"g{i}"
        body += dot(g, f"h{i}" if i else "a", d, 0, 0)
        if ranks > 1:
            body += reduce(f"{N}x{N}", f"s{i}", g)
            g = f"s{i}"
        if i:
            body += dot(f"d{i}", d, "a", 1, 1)
            d = f"d{i}"
        new = f"n{i}" if i else "r"
        body += f"%u{i} = stablehlo.multiply %{g}, %rate : {T}\n"
        body += f"%{new} = stablehlo.subtract %{total}, %u{i} : {T}\n"
        total = new
    return module(body, T, T, ranks)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--sockets", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(pathlib.Path(folder), options.runs, int(not options.sockets))
        shape = f"{N}x{N}"
        print(f"load {os.getloadavg()[0]:.1f}, {options.layers} layers of {shape}", flush=True)
        found = {}
        for _ in range(2):
            for name, ranks, overlap in (("alone", 1, "1"), ("two ranks", 2, "0"),
                                         ("two ranks, sums beside kernels", 2, "1")):
                os.environ["PESTLE_WORLD_OVERLAP"] = overlap
                seconds = machine.seconds(step(options.layers, ranks), shape, ranks)
                found[name] = min(seconds, found.get(name, seconds))
        for name, seconds in found.items():
            print(f"{name:32} {seconds * 1e3:9.2f} ms  weak scaling "
                  f"{found['alone'] / seconds:5.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
