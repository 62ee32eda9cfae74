# SPDX-License-Identifier: Apache-2.0
"""The last two layers of an image network, PP-LCNet as an ONNX file, learn new classes:
gratings by their direction. The weights that learn become inputs of the model; gradients
go through its graph, and the other weights stay the constants that they are.

usage: finetune.py lcnet_orient.onnx [STEPS]
"""

import sys

import numpy
import onnx
from onnx import numpy_helper

import pestle as pt

LEARN = {"conv2d_31.w_0_deepcopy_143": "conv", "linear_0.w_0_deepcopy_144": "w",
         "linear_0.b_0_deepcopy_145": "b"}


def load(path):
    """The network as a function of its input and the weights that learn, and those."""
    model = onnx.load(path)
    weights = {}
    for tensor in list(model.graph.initializer):
        if tensor.name in LEARN:
            value = numpy_helper.to_array(tensor)
            weights[tensor.name] = pt.asarray(value.copy())
            model.graph.initializer.remove(tensor)
            model.graph.input.append(onnx.helper.make_tensor_value_info(
                tensor.name, tensor.data_type, value.shape))
    if len(weights) != len(LEARN):
        raise SystemExit(f"{path} has no {', '.join(set(LEARN) - set(weights))}")
    network = pt.load_onnx(model.SerializeToString())
    names = [row[0] for row in network.inputs]
    order = names[1:]
    return (lambda x, p: network(x, *(p[n] for n in order))), weights


def gratings(key, count, size):
    """Images of stripes in one of four directions, and which one."""
    labels_key, phase_key, noise_key = pt.random.split(key, 3)
    labels = pt.random.randint(labels_key, (count,), 0, 4)
    phase = pt.random.uniform(phase_key, (count, 1, 1)) * 6.3
    row, column = pt.meshgrid(pt.arange(size) / 6, pt.arange(size) / 6, indexing="ij")
    angle = pt.reshape(pt.astype(labels, pt.float32), (count, 1, 1)) * (pt.pi / 4)
    wave = pt.sin(row * pt.cos(angle) + column * pt.sin(angle) + phase)
    noise = pt.random.normal(noise_key, (count, 3, size, size)) * 0.3
    return pt.expand_dims(wave, axis=1) + noise, labels


def make_step(network):
    def loss(p, x, labels):
        wanted = pt.take_along_axis(network(x, p), pt.reshape(labels, (-1, 1)), axis=1)
        return -pt.mean(pt.log(wanted + 1e-7))

    def update(p, momentum, x, labels, rate):
        value, grads = pt.value_and_grad(loss)(p, x, labels)
        momentum = pt.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        return pt.tree.map(lambda w, m: w - rate * m, p, momentum), momentum, value
    return pt.jit(update, donate_argnums=(0, 1))


def main(path, steps, batch=8, size=224):
    network, p = load(path)
    step = make_step(network)
    momentum = pt.tree.map(pt.zeros_like, p)
    draw, losses = pt.jit(gratings, static_argnums=(1, 2)), []
    for i in range(steps):
        x, labels = draw(pt.random.key(i), batch, size)
        p, momentum, value = step(p, momentum, x, labels, 0.02)
        losses.append(float(value))
        if i % 10 == 0 or i == steps - 1:
            print(f"step {i:3}  loss {losses[-1]:.4f}")
    x, labels = draw(pt.random.key(steps), 32, size)
    answers = pt.argmax(network(x, p), axis=1)
    right = float(pt.mean(pt.astype(answers == labels, pt.float32)))
    print(f"right of new images {right:.0%}")
    return losses, right


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__)
        sys.exit(0)
    found, share = main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 30)
    assert numpy.mean(found[-5:]) < numpy.mean(found[:5]) and share > 0.5
