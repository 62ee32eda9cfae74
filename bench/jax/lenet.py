#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of training LeNet-5 on 28x28 images through JAX: on Pestle, on JAX's own backend
and, where torch can be imported, in torch eager; in turns, microseconds a step.

    lenet.py --python PYTHON [--build BUILD] [--device cpu --peer cpu] [--batch 64]

"one jit": loss, gradients and update are one program that donates its parameters.
"three jits": loss, gradients and update are three, as code often is written. Losses of all
are compared after the steps of the first burst."""
import argparse
import json
import os

import common


def data(batch):
    import numpy as np
    r = np.random.RandomState(7)
    shapes = {"c1": (5, 5, 1, 6), "c2": (5, 5, 6, 16), "f1": (784, 120), "f2": (120, 84),
              "f3": (84, 10)}
    params = {n: ((r.standard_normal(s) / np.sqrt(np.prod(s[:-1]))).astype(np.float32),
                  np.zeros(s[-1], np.float32)) for n, s in shapes.items()}
    return (params, r.standard_normal((batch, 28, 28, 1)).astype(np.float32),
            r.randint(0, 10, batch).astype(np.int32))


def jax_steps(batch):
    import jax
    import jax.numpy as jnp
    from jax import lax
    params, x, y = jax.tree.map(jnp.asarray, data(batch))

    def layer(h, w, b):
        h = jax.nn.relu(lax.conv_general_dilated(
            h, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + b)
        return lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def loss(p, x, y):
        h = layer(layer(x, *p["c1"]), *p["c2"]).reshape(len(x), -1)
        for name in ("f1", "f2"):
            h = jax.nn.relu(h @ p[name][0] + p[name][1])
        h = jax.nn.log_softmax(h @ p["f3"][0] + p["f3"][1])
        return -jnp.take_along_axis(h, y[:, None], 1).mean()

    update = lambda p, g: jax.tree.map(lambda a, b: a - 0.01 * b, p, g)

    def whole(p, x, y):
        value, g = jax.value_and_grad(loss)(p, x, y)
        return update(p, g), value

    one = jax.jit(whole, donate_argnums=0)
    parts = jax.jit(loss), jax.jit(jax.grad(loss)), jax.jit(update, donate_argnums=0)

    def step_of_one(state):
        state[0], value = one(state[0], x, y)
        return value

    def step_of_three(state):
        value = parts[0](state[0], x, y)
        state[0] = parts[2](state[0], parts[1](state[0], x, y))
        return value

    copy = lambda: [jax.tree.map(jnp.array, params)]
    return {"one jit": (step_of_one, copy()), "three jits": (step_of_three, copy())}


def torch_steps(batch, threads):
    import torch
    import torch.nn.functional as F
    if threads:
        torch.set_num_threads(threads)
    params, x, y = data(batch)
    x, y = torch.tensor(x).permute(0, 3, 1, 2).contiguous(), torch.tensor(y).long()
    p = {}
    for n, (w, b) in params.items():
        w = torch.tensor(w)
        w = w.permute(3, 2, 0, 1).contiguous() if w.ndim == 4 else w
        p[n] = [w.requires_grad_(), torch.tensor(b).requires_grad_()]
    flat = [t for pair in p.values() for t in pair]

    def step(_):
        h = F.max_pool2d(F.relu(F.conv2d(x, *p["c1"], padding=2)), 2)
        h = F.max_pool2d(F.relu(F.conv2d(h, *p["c2"], padding=2)), 2)
        h = h.permute(0, 2, 3, 1).reshape(len(x), -1)
        for n in ("f1", "f2"):
            h = F.relu(h @ p[n][0] + p[n][1])
        value = F.cross_entropy(h @ p["f3"][0] + p["f3"][1], y)
        grads = torch.autograd.grad(value, flat)
        with torch.no_grad():
            for t, g in zip(flat, grads):
                t -= 0.01 * g
        return value.detach()

    return {"one jit": (step, None)}


def child(args):
    out = {}
    is_torch = os.environ["JAX_PLATFORMS"] == "torch"
    steps = torch_steps(args.batch, args.threads) if is_torch else jax_steps(args.batch)
    for name, (step, state) in steps.items():
        losses = [float(step(state)) for _ in range(20)]
        # Of every backend, or what is timed is another program.
        assert losses[-1] < losses[0] and abs(losses[0] - 2.4) < 0.5, losses
        out[name] = least(step, state)
    if is_torch:  # whose step is the same beside either, and trains in place
        out["three jits"] = out["one jit"]
    print(json.dumps(out))


def least(step, state):
    """As in training: the loss of each step is waited for."""
    import time
    best = float("inf")
    for _ in range(60):
        begin = time.perf_counter()
        for _ in range(5):
            float(step(state))
        best = min(best, (time.perf_counter() - begin) / 5)
    return best


def main():
    parser = common.arguments(argparse.ArgumentParser(description=__doc__))
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--torch", action="store_true", help="torch eager too")
    args = parser.parse_args()
    if args.child:
        return child(args)
    backends = ["pestle", args.peer] + (["torch"] if args.torch else [])
    common.show(common.turns(__file__, backends, args), backends)


if __name__ == "__main__":
    main()
