#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The transport by MPI, of each MPI there is: OpenMPI's interface, MPICH's and the
standard's. PESTLE_TEST_MPI names folders of more, with ':' between them: a mpirun in
bin, libraries in lib."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy  # noqa: F401  runs_test skips without it
except ImportError:
    sys.exit(77)

from ranks import RANK, SECRET, model
from runs_test import expected, fnv

QUIET = ["--oversubscribe", "--allow-run-as-root", "--mca", "mpi_yield_when_idle", "1",
         "--mca", "btl_vader_single_copy_mechanism", "none"]


def installed():
    """(launcher with its options, folder of libraries or None)."""
    found = {}
    roots = [p for p in os.environ.get("PESTLE_TEST_MPI", "").split(":") if p]
    programs = [(str(pathlib.Path(root) / "bin" / "mpirun"), str(pathlib.Path(root) / "lib"))
                for root in roots]
    programs += [(shutil.which(name), None)
                 for name in ("mpirun.openmpi", "mpirun.mpich", "mpirun")]
    for program, lib in programs:
        if not program or os.path.realpath(program) in found:
            continue
        says = subprocess.run([program, "--version"], capture_output=True, text=True,
                              check=False).stdout
        options = QUIET if "Open MPI" in says else []
        found[os.path.realpath(program)] = ([program, *options], lib)
    return list(found.values())


def run(mpi, command, limit=120, **more):
    launcher, lib = mpi
    env = {k: v for k, v in os.environ.items()
           if k not in ("RANK", "WORLD_SIZE", "PESTLE_WORLD")}
    env |= {"PESTLE_WORLD_SECRET": SECRET, "PESTLE_WORLD_TRANSPORT": "mpi",
            "PESTLE_THREADS": "1", "PESTLE_WORLD_CREATE_MS": "60000"}
    if lib:
        env["LD_LIBRARY_PATH"] = lib
    env |= {k: str(v) for k, v in more.items()}
    done = subprocess.run([*launcher, "-n", "4", *map(str, command)], env=env,
                          capture_output=True, text=True, timeout=limit, check=False)
    return done.returncode, done.stdout + done.stderr


def abis(mpi):
    """Files by which this MPI's other interfaces are asked for."""
    if not mpi[1]:
        return [None]
    files = [pathlib.Path(mpi[1]) / name for name in
             ("libmpi.so.40", "libmpi.so.12", "libmpi_abi.so.1")]
    return [str(f) for f in files if f.exists()]


def check(mpi, folder):
    for size in (7, 3000, 100001):
        path = folder / f"m{size}.mlir"
        path.write_text(model(4, size))
        want = f"done {fnv(expected(4, size, 3).tobytes()):016x}"
        for file in abis(mpi):
            more = {"PESTLE_MPI": file} if file else {}
            code, text = run(mpi, [RANK, path, 3], PESTLE_WORLD_ORDERED=1,
                             PESTLE_WORLD_CHECK=1, **more)
            assert code == 0 and text.count(want) == 4, (mpi, file, size, want, text)
            # By MPI's own sums: the same at all ranks.
            code, text = run(mpi, [RANK, path, 3], **more)
            lines = [x for x in text.splitlines() if x.startswith("done")]
            assert code == 0 and len(lines) == 4 and len(set(lines)) == 1, text
    # One that comes late ends them all, with its number.
    line = ('r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; if [ "$r" = 2 ]; then '
            'exec "$0" "$1" 50 late 5; else exec "$0" "$1" 50; fi')
    code, text = run(mpi, ["sh", "-c", line, RANK, folder / "m7.mlir"],
                     PESTLE_WORLD_DEADLINE_MS=500)
    assert code and "rank 2 has not come to collective" in text, (code, text)


def main():
    all_of_them = installed()
    if not all_of_them:
        print("skipped: neither OpenMPI nor MPICH is here (mpirun)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for mpi in all_of_them:
            check(mpi, pathlib.Path(folder))
            print(mpi[0][0], "is right:", abis(mpi))
    return 0


if __name__ == "__main__":
    sys.exit(main())
