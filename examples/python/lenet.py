# SPDX-License-Identifier: Apache-2.0
"""LeNet-5, trained on digits of seven segments that are drawn at random places, in noise.
A step is one plan: loss, gradients and update; parameters and momentum are given to it and
lie where they lay.

usage: lenet.py [STEPS]
"""

import sys

import pestle as pt

# Segments of each digit: top, upper right, lower right, bottom, lower left, upper left,
# middle.
DIGITS = ((1, 1, 1, 1, 1, 1, 0), (0, 1, 1, 0, 0, 0, 0), (1, 1, 0, 1, 1, 0, 1),
          (1, 1, 1, 1, 0, 0, 1), (0, 1, 1, 0, 0, 1, 1), (1, 0, 1, 1, 0, 1, 1),
          (1, 0, 1, 1, 1, 1, 1), (1, 1, 1, 0, 0, 0, 0), (1, 1, 1, 1, 1, 1, 1),
          (1, 1, 1, 1, 0, 1, 1))
# First row, last row, first column, last column of each segment.
PLACES = ((0, 1, 0, 9), (0, 9, 8, 9), (8, 17, 8, 9), (16, 17, 0, 9), (8, 17, 0, 1),
          (0, 9, 0, 1), (8, 9, 0, 9))


def images(key, count):
    """Images of 32 x 32 and their labels."""
    labels_key, place_key, noise_key = pt.random.split(key, 3)
    labels = pt.random.randint(labels_key, (count,), 0, 10)
    corner = pt.random.randint(place_key, (count, 2), 2, 14)
    row = pt.reshape(pt.arange(32), (1, 32, 1)) - pt.reshape(corner[:, 0], (count, 1, 1))
    column = pt.reshape(pt.arange(32), (1, 1, 32)) - pt.reshape(corner[:, 1], (count, 1, 1))
    lit = pt.take(pt.asarray(DIGITS) > 0, labels, axis=0)
    ink = pt.zeros((count, 32, 32)) > 0
    for k, (top, bottom, left, right) in enumerate(PLACES):
        inside = (row >= top) & (row <= bottom) & (column >= left) & (column <= right)
        ink = ink | (inside & pt.reshape(lit[:, k], (count, 1, 1)))
    noise = pt.random.normal(noise_key, (count, 32, 32)) * 0.3
    return pt.reshape(pt.astype(ink, pt.float32) + noise, (count, 32, 32, 1)), labels


def parameters(key):
    shapes = {"c1": (25, 6), "c3": (150, 16), "c5": (400, 120), "f6": (120, 84),
              "out": (84, 10)}
    keys = pt.random.split(key, len(shapes))
    return {name: {"w": pt.random.normal(keys[i], shape) / shape[0] ** 0.5,
                   "b": pt.zeros((shape[1],))}
            for i, (name, shape) in enumerate(shapes.items())}


def convolution(x, layer):
    """5 x 5, as a product with the 25 shifted images side by side."""
    n, m = x.shape[1] - 4, x.shape[2] - 4
    parts = [x[:, i:i + n, j:j + m, :] for i in range(5) for j in range(5)]
    return pt.concat(parts, axis=-1) @ layer["w"] + layer["b"]


def pool(x):
    n, h, w, c = x.shape
    return pt.mean(pt.reshape(x, (n, h // 2, 2, w // 2, 2, c)), axis=(2, 4))


def network(p, x):
    x = pool(pt.tanh(convolution(x, p["c1"])))
    x = pool(pt.tanh(convolution(x, p["c3"])))
    x = pt.reshape(x, (x.shape[0], -1))
    for name in ("c5", "f6"):
        x = pt.tanh(x @ p[name]["w"] + p[name]["b"])
    return x @ p["out"]["w"] + p["out"]["b"]


def loss(p, x, labels):
    logits = network(p, x)
    of_label = pt.take_along_axis(logits, pt.reshape(labels, (-1, 1)), axis=1)
    return pt.mean(pt.logsumexp(logits, axis=1) - of_label[:, 0])


def update(p, momentum, x, labels, rate):
    value, grads = pt.value_and_grad(loss)(p, x, labels)
    momentum = pt.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    return pt.tree.map(lambda w, m: w - rate * m, p, momentum), momentum, value


step = pt.jit(update, donate_argnums=(0, 1))


def main(steps, batch=64):
    p = parameters(pt.random.key(0))
    momentum = pt.tree.map(pt.zeros_like, p)
    draw, losses = pt.jit(images, static_argnums=1), []
    for i in range(steps):
        x, labels = draw(pt.random.key(i + 1), batch)
        p, momentum, value = step(p, momentum, x, labels, 0.05)
        losses.append(float(value))
        if i % 50 == 0 or i == steps - 1:
            right = pt.mean(pt.astype(pt.argmax(network(p, x), axis=1) == labels, pt.float32))
            print(f"step {i:4}  loss {losses[-1]:.4f}  right {float(right):.0%}")
    return losses


if __name__ == "__main__":
    result = main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
    assert result[-1] < result[0]
