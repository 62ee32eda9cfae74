#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The training examples against JAX (PESTLE_JAX_PYTHON, or this Python): the same text
with JAX's namespace in the place of pestle's, from the same parameters on the same data,
has the same losses for 200 steps: within 1e-4, or four times of what JAX in f32 is off from
JAX in f64, since Adam makes much of little."""

import os
import pathlib
import subprocess
import sys
import types

python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
try:
    import jax
except ImportError:
    if python == sys.executable or os.environ.get("PESTLE_JAX_AGAIN"):
        print(f"{python} has no JAX")
        sys.exit(77)
    sys.exit(subprocess.run([python, *sys.argv],
                            env=dict(os.environ, PESTLE_JAX_AGAIN="1"),
                            check=False).returncode)

import jax.numpy as jnp
import numpy as np
from case import run

import pestle as pt

jax.config.update("jax_enable_x64", True)
EXAMPLES = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"]) / "examples/python"
STEPS = 200


class Namespace:
    """What the examples use of pestle, of JAX."""
    tree, random = jax.tree, types.SimpleNamespace(**vars(jax.random))
    jit = staticmethod(jax.jit)
    value_and_grad = staticmethod(jax.value_and_grad)
    softmax = staticmethod(jax.nn.softmax)
    logsumexp = staticmethod(jax.scipy.special.logsumexp)

    def __getattr__(self, name):
        return getattr(jnp, name)


def both(name):
    """The example as it is, and of JAX."""
    text = (EXAMPLES / f"{name}.py").read_text()
    found = []
    for namespace in (pt, Namespace()):
        module = {"__name__": name, "pt": namespace}
        exec(compile(text.replace("import pestle as pt\n", ""), name, "exec"), module)
        found.append(types.SimpleNamespace(**module))
    return found


def theirs(tree, dtype=np.float32):
    def one(x):
        x = np.asarray(x)
        return jnp.asarray(x.astype(dtype) if x.dtype.kind == "f" else x)
    return jax.tree.map(one, tree)


def compare(ours, other, draw, state, run_step):
    """Losses of steps from |state|, side by side."""
    mine, his, exact = state, theirs(state), theirs(state, np.float64)
    worst = off = 0.0
    for i in range(STEPS):
        data = draw(i)
        mine, a = run_step(ours, mine, data, i, lambda x: pt.asarray(np.float32(x)))
        his, b = run_step(other, his, theirs(data), i, jnp.float32)
        exact, c = run_step(other, exact, theirs(data, np.float64), i, jnp.float64)
        a, b, c = float(a), float(b), float(c)
        off = max(off, abs(b - c))
        worst = max(worst, abs(a - c))
        assert worst < max(1e-4, 4 * off), f"step {i}: {a}, JAX {b}, in f64 {c}"
    print(f"{STEPS} steps, losses are off by {worst:.2g} at most, JAX's by {off:.2g}; the "
          f"last is {a:.4f}")


def test_lenet():
    ours, other = both("lenet")
    p = ours.parameters(pt.random.key(0))
    state = p, pt.tree.map(pt.zeros_like, p)

    def run_step(module, state, data, i, asarray):
        p, momentum, value = module.step(*state, *data, asarray(0.05))
        return (p, momentum), value
    compare(ours, other, lambda i: ours.images(pt.random.key(i + 1), 32), state, run_step)


def test_gpt():
    ours, other = both("gpt")
    p = ours.parameters(pt.random.key(0))
    state = p, pt.tree.map(pt.zeros_like, p), pt.tree.map(pt.zeros_like, p)

    def run_step(module, state, data, i, asarray):
        return module.step(state, data, asarray(i + 1))
    compare(ours, other, lambda i: ours.lines(pt.random.key(i + 1), 32), state, run_step)


run(globals())
