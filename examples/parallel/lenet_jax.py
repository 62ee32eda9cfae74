# SPDX-License-Identifier: Apache-2.0
"""LeNet-5 in JAX, trained on several devices, each with its part of the images: jit with
shardings, as on any platform. On Pestle these are devices of the CPU.

usage: JAX_PLATFORMS=pestle PESTLE_CPU_DEVICES=2 lenet_jax.py [STEPS]
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


def images(random, count):
    """Bars across or down, at random places in noise: two classes of five widths."""
    labels = random.integers(0, 10, count)
    x = random.standard_normal((count, 32, 32, 1), np.float32) * 0.3
    for image, label in zip(x, labels):
        at, width = random.integers(2, 24), label % 5 + 2
        view = image if label < 5 else image.transpose(1, 0, 2)
        view[at:at + width] += 1
    return x, labels


def parameters(key):
    shapes = {"c1": (5, 5, 1, 6), "c3": (5, 5, 6, 16), "c5": (400, 120), "f6": (120, 84),
              "out": (84, 10)}
    keys = jax.random.split(key, len(shapes))
    return {name: {"w": jax.random.normal(k, shape) / np.prod(shape[:-1]) ** 0.5,
                   "b": jnp.zeros(shape[-1])}
            for k, (name, shape) in zip(keys, shapes.items())}


def convolution(x, layer):
    return jax.lax.conv_general_dilated(
        x, layer["w"], (1, 1), "VALID",
        dimension_numbers=("NHWC", "HWIO", "NHWC")) + layer["b"]


def pool(x):
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).mean((2, 4))


def network(p, x):
    x = pool(jnp.tanh(convolution(x, p["c1"])))
    x = pool(jnp.tanh(convolution(x, p["c3"])))
    x = x.reshape(len(x), -1)
    for name in ("c5", "f6"):
        x = jnp.tanh(x @ p[name]["w"] + p[name]["b"])
    return x @ p["out"]["w"] + p["out"]["b"]


def loss(p, x, labels):
    return -jnp.mean(jax.nn.log_softmax(network(p, x))[jnp.arange(len(x)), labels])


def update(p, momentum, x, labels):
    value, grads = jax.value_and_grad(loss)(p, x, labels)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    return jax.tree.map(lambda w, m: w - 0.05 * m, p, momentum), momentum, value


def train(mesh, steps, batch=32):
    """The loss of each step."""
    everywhere, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    step = jax.jit(update, donate_argnums=(0, 1),
                   in_shardings=(everywhere, everywhere, rows, rows))
    p = jax.device_put(parameters(jax.random.key(0)), everywhere)
    momentum, random, losses = jax.tree.map(jnp.zeros_like, p), np.random.default_rng(0), []
    for _ in range(steps):
        x, labels = (jax.device_put(a, rows) for a in images(random, batch))
        p, momentum, value = step(p, momentum, x, labels)
        losses.append(float(value))
    return losses


def main(steps):
    many = train(Mesh(np.array(jax.devices()), ("data",)), steps)
    one = train(Mesh(np.array(jax.devices()[:1]), ("data",)), steps)
    for i, (a, b) in enumerate(zip(one, many)):
        print(f"step {i:2}  loss {a:.5f} on one device, {b:.5f} on {len(jax.devices())}")
    assert np.allclose(one, many, rtol=1e-2)
    third = steps // 3
    assert np.mean(many[-third:]) < np.mean(many[:third])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 24)
