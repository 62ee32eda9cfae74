# SPDX-License-Identifier: Apache-2.0
"""A small GPT in JAX that learns to continue counting, trained with Adam on a grid of
devices: lines lie in parts along "data", and the weights of attention and of the MLP along
"model", as Megatron has them.

usage: JAX_PLATFORMS=pestle PESTLE_CPU_DEVICES=4 gpt_jax.py [STEPS]
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

WORDS, LENGTH, WIDTH, HEADS, LAYERS = 16, 12, 64, 4, 2
# Where each weight lies; "mix" and "down" take what the columns before them made.
PLACES = {"q": P(None, "model"), "k": P(None, "model"), "v": P(None, "model"),
          "mix": P("model"), "up": P(None, "model"), "down": P("model"),
          "words": P(), "places": P(), "head": P()}
SHAPES = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH),
          "mix": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}


def lines(random, count):
    """Counting by one to three, from anywhere, modulo the words."""
    first, by = random.integers(0, WORDS, (count, 1)), random.integers(1, 4, (count, 1))
    return ((first + by * np.arange(LENGTH)) % WORDS).astype(np.int32)


def parameters(key):
    keys = iter(jax.random.split(key, 3 + LAYERS * len(SHAPES)))

    def normal(shape):
        return jax.random.normal(next(keys), shape) * 0.3 / shape[0] ** 0.5
    return {"words": normal((WORDS, WIDTH)), "places": normal((LENGTH, WIDTH)),
            "head": normal((WIDTH, WORDS)),
            "layers": [{n: normal(s) for n, s in SHAPES.items()} for _ in range(LAYERS)]}


def normalised(x):
    x = x - x.mean(-1, keepdims=True)
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def attention(x, p):
    n, t, _ = x.shape
    q, k, v = ((x @ p[w]).reshape(n, t, HEADS, -1) for w in "qkv")
    scores = jnp.einsum("nthc,nshc->nhts", q, k) / (WIDTH // HEADS) ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((t, t))) > 0, scores, -1e9)
    mixed = jnp.einsum("nhts,nshc->nthc", jax.nn.softmax(scores), v)
    return mixed.reshape(n, t, WIDTH) @ p["mix"]


def loss(p, rows):
    x = p["words"][rows[:, :-1]] + p["places"][:LENGTH - 1]
    for layer in p["layers"]:
        x = x + attention(normalised(x), layer)
        x = x + jax.nn.gelu(normalised(x) @ layer["up"]) @ layer["down"]
    logs = jax.nn.log_softmax(normalised(x) @ p["head"])
    # Two words say by what it counts.
    return -jnp.mean(jnp.take_along_axis(logs[:, 1:], rows[:, 2:, None], 2))


def update(state, rows, i):
    p, first, second = state
    value, grads = jax.value_and_grad(loss)(p, rows)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, grads)
    rate = 3e-3 * jnp.sqrt(1 - 0.99 ** i) / (1 - 0.9 ** i)
    p = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-8), p, first, second)
    return (p, first, second), value


def train(devices, steps, batch=32):
    """The loss of each step, on a grid with up to two places along "model"."""
    model = 2 if len(devices) % 2 == 0 else 1
    mesh = Mesh(np.array(devices).reshape(-1, model), ("data", "model"))
    place = jax.tree_util.tree_map_with_path(
        lambda path, _: NamedSharding(mesh, PLACES[path[-1].key]),
        parameters(jax.random.key(0)))
    p = jax.device_put(parameters(jax.random.key(0)), place)
    zeros = jax.tree.map(jnp.zeros_like, p)
    state, random, losses = (p, zeros, zeros), np.random.default_rng(0), []
    step = jax.jit(update, out_shardings=((place, place, place), None))
    for i in range(steps):
        rows = jax.device_put(lines(random, batch), NamedSharding(mesh, P("data")))
        state, value = step(state, rows, i + 1.0)
        losses.append(float(value))
    return losses


def main(steps):
    many, one = train(jax.devices(), steps), train(jax.devices()[:1], steps)
    for i, (a, b) in enumerate(zip(one, many)):
        print(f"step {i:2}  loss {a:.5f} on one device, {b:.5f} on {len(jax.devices())}")
    assert np.allclose(one, many, rtol=1e-2)
    assert many[-1] < many[0]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
