#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `pestle world --simulate` plans beside what two ranks of this machine take.

usage: PESTLE_BUILD_DIR=build/release world_plan.py [--runs N] [--sockets] [--keep FILE]
A rank and the wire between two are fitted first, by a product, a sum of arrays, and
collectives of other sizes than are compared; --keep writes that topology. Then one row a
program: planned and measured microseconds, and their ratio. Wants two cores that nothing
else uses: the load is printed.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/world"))
from ranks import PESTLE, World  # noqa: E402

F = "tensor<{0}xf32>"
META = ("channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups "
        "= dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids")
ADD = (" ({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%o = stablehlo.add %p, %q : "
       "tensor<f32>\nstablehlo.return %o : tensor<f32>\n})")
N = 768


def module(body, given, result, ranks=2):
    """%a of |given| in, %r of |result| out."""
    return (f"module @m attributes {{mhlo.num_partitions = {ranks} : i32, "
            f"mhlo.num_replicas = 1 : i32}} {{\nfunc.func @main(%a: {given}) -> {result} "
            f"{{\n{body}return %r : {result}\n}}\n}}\n")


def reduce(size, to="r", of="a"):
    return (f'%{to} = "stablehlo.all_reduce"(%{of}) <{{{META}}}>{ADD} : '
            f"({F.format(size)}) -> {F.format(size)}\n")


def gather(size):
    return (f'%r = "stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, {META}}}> : '
            f"({F.format(size)}) -> {F.format(2 * size)}\n")


def dot(to, of):
    t = F.format(f"{N}x{N}")
    return (f"%{to} = stablehlo.dot_general %{of}, %{of}, contracting_dims = [1] x [0] : "
            f"({t}, {t}) -> {t}\n")


def all_reduce_of(size):
    return module(reduce(size), F.format(size), F.format(size)), size


def all_gather_of(size):
    return module(gather(size), F.format(size), F.format(2 * size)), size


def step():
    """A product, a sum of both ranks' results, and a product of that."""
    t = f"{N}x{N}"
    body = dot("h", "a") + reduce(t, "s", "h") + dot("r", "s")
    return module(body, F.format(t), F.format(t)), t


class Machine:
    def __init__(self, folder, runs, shared):
        self.folder, self.runs, self.shared = folder, runs, shared

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def command(self, text, shape):
        return [str(w) for w in (
            PESTLE, "run", self.file("m.mlir", text), "--input", f"a={shape}xf32=0.001",
            "--bench", self.runs, "--threads", "1")]

    def seconds(self, text, shape, ranks=2):
        """The median of rank 0's runs, of three starts the least."""
        found = []
        for _ in range(3):
            if ranks == 1:
                outs = [subprocess.run(self.command(text, shape), check=True, text=True,
                                       capture_output=True).stdout]
            else:
                with World([self.command(text, shape)] * ranks,
                           PESTLE_WORLD_SHM=self.shared) as world:
                    ends = world.ends(limit=300)
                assert all(code == 0 for code, _, _ in ends.values()), ends
                outs = [ends[0][1]]
            line = next(x for x in outs[0].splitlines() if x.startswith("{"))
            found.append(statistics.median(json.loads(line)["run_ms"]) * 1e-3)
        return min(found)

    def topology(self):
        t = f"{N}x{N}"
        product = self.seconds(module(dot("r", "a"), F.format(t), F.format(t), 1), t, 1)
        wide = 1 << 24
        added = self.seconds(module(
            f"%r = stablehlo.add %a, %a : {F.format(wide)}\n", F.format(wide),
            F.format(wide), 1), wide, 1)
        # alpha + (bytes / beta), then + bytes / fold and another alpha.
        small, large = 64, 1 << 20
        alpha = self.seconds(*all_gather_of(small))
        each = self.seconds(*all_gather_of(large)) - alpha
        beta = 4 * large / each
        summed = self.seconds(*all_reduce_of(large)) - 2 * alpha - each
        fold = 4 * large / max(summed, 1e-9)
        return (f"rank flops={2 * N ** 3 / product:.6g} memory={8 * wide / added:.6g}\n"
                f"link wire alpha={alpha:.6g} beta={beta:.6g} fold={fold:.6g} by=peers\n")

    def planned(self, text, topology):
        done = subprocess.run(
            [PESTLE, "world", self.file("p.mlir", text), "--simulate", "2", "--topology",
             self.file("topology", topology), "--json", "--threads", "1"], check=True,
            capture_output=True, text=True)
        return json.loads(done.stdout)["run_us"] * 1e-6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--sockets", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(pathlib.Path(folder), options.runs, int(not options.sockets))
        topology = machine.topology()
        print(f"load {os.getloadavg()[0]:.1f}\n{topology}", flush=True)
        if options.keep:
            options.keep.write_text(topology)
        cases = {"all_reduce 64 KiB": all_reduce_of(1 << 14),
                 "all_reduce 1 MiB": all_reduce_of(1 << 18),
                 "all_reduce 16 MiB": all_reduce_of(1 << 22),
                 "all_gather 1 MiB": all_gather_of(1 << 18),
                 f"product {N}, sum, product": step()}
        for name, (text, shape) in cases.items():
            planned = machine.planned(text, topology)
            measured = machine.seconds(text, shape)
            print(f"{name:26} {planned * 1e6:10.1f} us planned {measured * 1e6:10.1f} us "
                  f"measured {planned / measured:6.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
