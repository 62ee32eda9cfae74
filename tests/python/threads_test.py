#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads, fork(), Ctrl-C in a compilation, and loops that never evaluate."""

import os
import subprocess
import sys
import tempfile
import threading

from case import HOME, run

import pestle as pt

THREADS = 8


def together(work):
    """work(k) on eight threads at once; what one of them raised is raised."""
    failed = []
    gate = threading.Barrier(THREADS)

    def one(k):
        try:
            gate.wait()
            work(k)
        except BaseException as error:  # pylint: disable=broad-except
            failed.append(error)
    threads = [threading.Thread(target=one, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def test_threads_share_arrays():
    x = pt.arange(1000, dtype=pt.float32)
    y = x * 2 + 1
    f = pt.jit(lambda v, k: (v * k).sum())
    sums = [0.0] * THREADS

    def work(k):
        for turn in range(20):
            assert y[k].item() == 2 * k + 1
            z = pt.sin(y + k) + turn
            pt.eval(z)
            sums[k] = f(x, float(k)).item()
            assert pt.ones((k + 1, 3)).sum().item() == 3 * (k + 1)
    together(work)
    assert sums == [499500.0 * k for k in range(THREADS)]


def test_threads_change_an_array():
    """x[i] = v on some threads while others read it: each sees a whole value."""
    x = pt.zeros((2000,))
    pt.eval(x)

    def work(k):
        for turn in range(60):
            if k < 2:
                x[:] = float(k + 1)
            elif k < 5:
                values = set(x.tolist())
                assert len(values) == 1 and values <= {0.0, 1.0, 2.0}, values
            else:
                assert memoryview(x)[turn] in (0.0, 1.0, 2.0)
                pt.eval(x + turn)
    together(work)


def test_threads_trace_one_function():
    f = pt.jit(lambda v: pt.exp(v) * 2)

    def work(k):
        for n in range(1, 12):
            assert f(pt.zeros((n,))).tolist() == [2.0] * n
    together(work)
    assert 11 <= f.traces <= 11 * THREADS


def test_fork():
    if "libtsan" in os.environ.get("LD_PRELOAD", ""):
        return  # which ends a child that starts a thread
    x = pt.arange(10)
    y = (x + 1) * 2
    pt.eval(y)
    z = y + 5
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            assert z.tolist() == [2 * i + 7 for i in range(10)]
            assert pt.jit(lambda v: v * 3)(y)[1].item() == 12
            os.write(write, b"fine")
        finally:
            os._exit(0)
    os.close(write)
    said = os.read(read, 100)
    os.waitpid(child, 0)
    assert said == b"fine"
    assert z.tolist() == [2 * i + 7 for i in range(10)]


INTERRUPTED = """
import os, signal, sys, threading, time
import pestle as pt

def graph(x):
    # Shallow enough to be recorded whole; products and sums that do not fuse: some hundred
    # kernels, none of them seen before.
    for i in range(90):
        x = pt.sin(x @ (x + (os.getpid() * 1000 + i))) + pt.sum(x, axis=i % 2, keepdims=True)
    return x

def press():
    started.wait()
    time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)
    # A handler that raises nothing may be called before the compilation begins.
    while sys.argv[1] == "own" and not done.wait(0.1):
        os.kill(os.getpid(), signal.SIGINT)

started, done = threading.Event(), threading.Event()
if sys.argv[1] == "own":
    seen = []
    signal.signal(signal.SIGINT, lambda *a: seen.append(1))
y = graph(pt.ones((33, 33)))
f = pt.jit(lambda v: graph(v))
threading.Thread(target=press, daemon=True).start()
try:
    started.set()
    if sys.argv[1] == "jit":
        f(pt.ones((35, 35)))
    else:
        pt.eval(y)
except KeyboardInterrupt:
    print("interrupted", y.state)
else:
    print("not interrupted", y.state)
done.set()
x = pt.ones((3,)) + 1
print(x.tolist())
"""


def interrupted(how):
    """What a program of its own says. On a busy machine the thread that presses the key may
    come after the compilation: then once more."""
    for _ in range(20):
        lines = interrupted_once(how)
        if lines[0].endswith("lazy"):
            break
    return lines


def interrupted_once(how):
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, PYTHONPATH=str(HOME), PESTLE_CACHE_DIR=folder)
        done = subprocess.run([sys.executable, "-c", INTERRUPTED, how], env=environment,
                              capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.split("\n")


def test_ctrl_c_in_a_compilation():
    for how in ("eval", "jit"):
        lines = interrupted(how)
        # Compiled to its end, the array would be data.
        assert lines[0] == "interrupted lazy", lines
        assert lines[1] == "[2.0, 2.0, 2.0]", lines


def test_a_handler_of_the_program():
    """It decides what Ctrl-C is; a compilation that was stopped says so."""
    lines = interrupted("own")
    assert lines[0] == "interrupted lazy", lines


def test_a_loop_that_never_evaluates():
    count = 1_000_000 if os.environ.get("PESTLE_LONG") else 100_000
    n = 25_000
    x = pt.zeros((n,))
    pt.eval(x)
    pt.clear_cache()
    pt.reset_peak_memory()
    active = pt.get_active_memory("cpu")
    for _ in range(count):
        x = x + 1
    assert x.state == "lazy"
    grown = pt.get_peak_memory("cpu") - active
    assert grown <= 2 * 4 * n + (1 << 20), f"{grown} bytes more"
    assert x[7].item() == count


run(globals())
