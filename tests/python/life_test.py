#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package beside what ends and shares processes: eight threads, fork(), a second
process by multiprocessing, the interpreter's end, a loop that never evaluates."""

import os
import subprocess
import sys
import textwrap
import threading

from case import HOME, SANITIZED, run
import pestle as pt


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def python(code, status=0):
    env = {**os.environ, "PYTHONPATH": str(HOME)}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False,
                          capture_output=True, text=True, env=env, timeout=600)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def test_threads():
    """Eight threads that share arrays which are not computed, a function, and memory."""
    shared = [pt.asarray([1.0, 2.0, 3.0]) * k for k in range(1, 9)]
    f = pt.jit(lambda x, y: (x * 2 + y, x - y))
    wrong, gate = [], threading.Barrier(8)

    def work(k):
        gate.wait()
        for i in range(60 if SANITIZED else 200):
            a, b = shared[(k + i) % 8], shared[(k * 3 + i) % 8]
            total, less = f(a, b)
            x = total + less  # 3a
            got = x.tolist()
            want = [3.0 * v * ((k + i) % 8 + 1) for v in (1, 2, 3)]
            view = pt.from_dlpack(x)[1:]
            if got != want or view.tolist() != want[1:]:
                wrong.append((k, i, got, want))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong[:3]


def test_fork():
    """A child goes on with what the parent had, on the CPU."""
    out = python("""
        import os, warnings
        import pestle as pt
        warnings.simplefilter("ignore")
        x = pt.asarray([1.0, 2.0]) + 1
        pt.eval(x)
        lazy = x * 10
        f = pt.jit(lambda v: v + 1)
        f(x)
        child = os.fork()
        if not child:
            ok = lazy.tolist() == [20, 30] and f(x).tolist() == [3, 4]
            ok = ok and pt.exp(pt.zeros(7)).sum().item() == 7
            os._exit(0 if ok else 1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == 0, status
        assert lazy.tolist() == [20, 30]
        print("right")
    """)
    assert out == "right\n", out


def test_spawn():
    """Arrays go to another process by pickle."""
    out = python("""
        import multiprocessing as mp
        import operator
        import pestle as pt
        if __name__ == "__main__":
            with mp.get_context("spawn").Pool(1) as pool:
                y = pool.apply(operator.neg, (pt.asarray([1.0, 2.0]),))
            print(y.tolist())
    """)
    assert out == "[-1.0, -2.0]\n", out


def test_end():
    """Arrays, exports and functions that are alive when the interpreter ends."""
    out = python("""
        import atexit
        import pestle as pt
        x = pt.arange(1000) * 2
        pt.eval(x)
        capsule = x.__dlpack__(max_version=(1, 3))
        view = memoryview(x)
        lazy = x + 1
        f = pt.jit(lambda v: v * 2)
        held = [f(x), pt.from_dlpack(x), x[::2]]
        cycle = [lazy]
        cycle.append(cycle)
        atexit.register(lambda: print(lazy.sum().item()))
    """)
    assert out == "1000000\n", out


def test_loop_without_eval():
    """x = x + 1 is computed on the way and holds no more than its own memory."""
    count, size = (3_000, 1 << 16) if SANITIZED else (100_000, 1 << 16)
    x = pt.zeros(size)
    for _ in range(2_000):
        x = x + 1
    pt.eval(x)
    before = resident()
    peak = 0
    for i in range(count):
        x = x + 1
        if i % 1000 == 0:
            peak = max(peak, resident() - before)
    assert x[0].item() == count + 2_000
    if not SANITIZED:
        assert peak <= 2 * size * 4 + (1 << 20), peak


if __name__ == "__main__":
    run(dict(globals()))
