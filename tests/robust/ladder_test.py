#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A ladder of elementwise ops (a = a - b, b = max(b, a), repeated) shares what it
reads twice: an op costs at most 4 KB of memory through a whole compilation and a run, and the
result is right. Written out as trees, 36 such ops took 0.4 GB and 300 took 22."""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import numpy as np

from build import BUILD, sanitized
from scaling_long_test import ladder

LIMIT = 3 << 30  # of addresses: a machine is not taken down by what this looks for


def limit():
    # Sanitizers reserve addresses by the terabyte.
    if not sanitized():
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def expected(n):
    a, b = 1, 1
    for _ in range(n // 2):
        a -= b
        b = max(b, a)
    return a


def run(n, device):
    """MiB of resident memory; an error's sentence in its place."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "m.mlir").write_text(ladder(n), encoding="utf-8")
        with open(folder / "err", "wb+") as err:
            child = subprocess.Popen(
                [BUILD / "pestle", "run", "m.mlir", "--input", "x=1", "--no-cache",
                 "--device", device, "--outputs", "."],
                cwd=folder, stderr=err, stdout=subprocess.DEVNULL, preexec_fn=limit)
            _, state, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(state)
            err.seek(0)
            if child.returncode:
                said = err.read().decode("utf-8", "replace")[:200]
                return 0, f"exit {child.returncode}: {said}"
        got = np.load(folder / "output_0.npy")
    if got.shape != (4,) or (got != expected(n)).any():
        return 0, f"{got} in place of {expected(n)}"
    return used.ru_maxrss / 1024, ""


def main():
    bad = 0
    # llvm's code of one kernel after the other takes long: a few fused ones.
    for device, sizes in (("ref", (40, 96, 2000, 10000)), ("llvm", (40, 300))):
        before = None
        for n in sizes:
            mib, why = run(n, device)
            if before and not why and not sanitized():
                kb = (mib - before[1]) * 1024 / (n - before[0])
                # What is below 32 MiB more is the start of a process.
                if kb > 4 and mib - before[1] > 32:
                    why = f"{kb:.1f} KB an op"
            print(f"{'FAIL' if why else 'ok  '} {device} {n}: {mib:.0f} MiB {why}")
            bad += bool(why)
            before = (n, mib)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
