#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What calls of the package cost beside NumPy's in the same run: ns, the least of many
short bursts taken in turns, and the ratios that count. With JAX, its call of a jitted
function of 16 arrays too.

usage: PYTHONPATH=build/release/python bench/python/arrays.py [BURSTS]
"""

import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import pestle as pt

BURSTS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
CALLS = 200


def burst(function):
    begin = time.perf_counter_ns()
    for _ in range(CALLS):
        function()
    return (time.perf_counter_ns() - begin) / CALLS


def least(functions):
    """The least time of each, in turns, so that all meet the same disturbances."""
    best = {name: float("inf") for name in functions}
    for function in functions.values():
        function()
    for _ in range(BURSTS):
        for name, function in functions.items():
            best[name] = min(best[name], burst(function))
    return best


def import_ms(bytecode):
    """The least of 15 imports; with the bytecode that pip leaves, or where nothing may
    write it."""
    code = ("import time; t = time.perf_counter(); import pestle; "
            "print((time.perf_counter() - t) * 1e3)")
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env["PYTHONPYCACHEPREFIX"] = folder
        if not bytecode:
            env["PYTHONDONTWRITEBYTECODE"] = "1"
        times = [float(subprocess.run([sys.executable, "-c", code], capture_output=True,
                                      text=True, check=True, env=env).stdout)
                 for _ in range(15)]
    return min(times)


def resident_mb():
    """Of a process that has imported the package, before the first array."""
    code = ("import pestle; print(next(line.split()[1] for line in "
            "open('/proc/self/status') if line.startswith('VmRSS')))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=True)
    return int(done.stdout) / 1024


def training_step():
    """Of a network of three layers, 6 arrays, so small that the call is what it costs."""
    def loss(params, x, y):
        for w, b in params[:-1]:
            x = pt.tanh(x @ w + b)
        w, b = params[-1]
        return pt.mean((x @ w + b - y) ** 2)
    gradient = pt.grad(loss)

    @pt.jit
    def step(params, x, y):
        return pt.tree.map(lambda p, g: p - 0.1 * g, params, gradient(params, x, y))
    params = [(pt.ones((4, 4)) * 0.1, pt.zeros((4,))) for _ in range(3)]
    x, y = pt.ones((4, 4)), pt.ones((4, 4))
    pt.eval(params, x, y)
    return lambda: step(params, x, y)


def jax_tree():
    """JAX's call of a jitted function of 16 arrays, or None."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    leaves = {f"k{i}": [jnp.ones(4), jnp.ones(4)] for i in range(8)}
    tree = jax.jit(lambda t: t["k0"][0] + t["k7"][1])
    return lambda: tree(leaves)


def main():
    na, nb = np.ones(4, np.float32), np.ones(4, np.float32)
    a, b = pt.ones((4,)), pt.ones((4,))
    pt.eval(a, b)
    wide = np.ones((256, 512), np.float32)
    x, y = (pt.asarray(wide) for _ in range(2))
    wrapped = wide.copy()
    jitted = pt.jit(lambda v: v * 2 + 1)
    axpby = pt.jit(lambda p, q: 4 * p + 2 * q)
    leaves = {f"k{i}": [a, b] for i in range(8)}
    tree = pt.jit(lambda t: t["k0"][0] + t["k7"][1])

    def record():
        return a + b

    def evaluate():
        pt.eval(a + b)

    rows = {
        "numpy a + b": lambda: na + nb, "record": record, "evaluate": evaluate,
        "numpy x * 2 + 1": lambda: na * 2 + 1, "jit": lambda: jitted(a),
        "numpy 4x + 2y, 256x512": lambda: 4 * wide + 2 * wide,
        "jit 4x + 2y, 256x512": lambda: axpby(x, y),
        "jit of 16 arrays": lambda: tree(leaves), "training step": training_step(),
        "from NumPy, shared": lambda: pt.asarray(wrapped, copy=False),
        "from NumPy, DLPack": lambda: pt.from_dlpack(wrapped),
        "np.from_dlpack": lambda: np.from_dlpack(wrapped),
        "nothing": lambda: None,
    }
    peer = jax_tree()
    if peer:
        rows["jax, 16 arrays"] = peer
    t = least(rows)
    for name, ns in t.items():
        print(f"{name:24} {ns - (t['nothing'] if name != 'nothing' else 0):10.0f} ns")
    none = t["nothing"]

    def ratio(name, base, aim):
        value = (t[name] - none) / (t[base] - none)
        print(f"{name} / {base}: {value:.2f} (to reach {aim})")
    print()
    ratio("record", "numpy a + b", 0.5)
    ratio("evaluate", "numpy a + b", 1.9)
    ratio("jit", "numpy x * 2 + 1", 0.27)
    ratio("from NumPy, DLPack", "np.from_dlpack", 2.1)
    if peer:
        ratio("jit of 16 arrays", "jax, 16 arrays", 0.05)
    print(f"training step: {(t['training step'] - none) / 1e3:.1f} us (to reach 3 beyond "
          "its kernels)")
    print(f"import pestle: {import_ms(True):.1f} ms (to reach 15), "
          f"{import_ms(False):.1f} without bytecode; {resident_mb():.1f} MB resident (12)")


main()
