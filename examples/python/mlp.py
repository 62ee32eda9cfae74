# SPDX-License-Identifier: Apache-2.0
"""A network of two layers that learns the exclusive or, with its gradients by hand. A
step is one plan; the learning rate is an argument of it."""

import pestle as pt

x = pt.asarray([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
y = pt.asarray([[0.0], [1.0], [1.0], [0.0]])


def init(key, sizes):
    layers = []
    for k, (n, m) in zip(pt.random.split(key, len(sizes) - 1), zip(sizes, sizes[1:])):
        layers.append({"w": pt.random.normal(k, (n, m)), "b": pt.zeros((m,))})
    return layers


@pt.jit
def step(layers, x, y, rate):
    first, second = layers
    h = pt.tanh(x @ first["w"] + first["b"])
    error = h @ second["w"] + second["b"] - y
    dh = (error @ second["w"].T) * (1 - h * h)
    gradients = [{"w": x.T @ dh, "b": dh.sum(axis=0)},
                 {"w": h.T @ error, "b": error.sum(axis=0)}]
    update = pt.tree.map(lambda p, g: p - rate * g, layers, gradients)
    return update, (error * error).sum()


layers = init(pt.random.key(1), [2, 8, 1])
for i in range(501):
    layers, loss = step(layers, x, y, 0.1 if i < 250 else 0.05)
    if i % 100 == 0:
        print(f"step {i:3}  squared error {loss.item():.6f}")
assert loss.item() < 0.01 and step.traces == 1
