# SPDX-License-Identifier: Apache-2.0
"""LeNet-5 (examples/python/lenet.py), trained on several processes, each with its part of
the images. The training is written once, as for one; two rules say what lies in parts.

usage: lenet_arrays.py [PROCESSES [STEPS]]
"""

import sys

from training import run_both

import lenet  # noqa: E402  of examples/python, which training.py finds
import pestle as pt


def loss(p, x, wanted):
    logits = lenet.network(p, x)
    return pt.mean(pt.logsumexp(logits, axis=1) - pt.sum(logits * wanted, axis=1))


def train(p, momentum, x, wanted):
    """As many steps as there are batches, as one plan; the loss of each."""
    def step(i, state):
        p, momentum, losses = state
        value, grads = pt.value_and_grad(loss)(p, x[i], wanted[i])
        momentum = pt.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        p = pt.tree.map(lambda w, m: w - 0.05 * m, p, momentum)
        return p, momentum, losses.at[i].set(value)
    p, _, losses = pt.fori_loop(0, x.shape[0], step, (p, momentum, pt.zeros(x.shape[:1])))
    return losses, p


def main(processes, steps, batch=32):
    p = lenet.parameters(pt.random.key(0))
    x, labels = (pt.stack(parts) for parts in zip(
        *(lenet.images(pt.random.key(i + 1), batch) for i in range(steps))))
    return run_both(train, {"p": p, "momentum": pt.tree.map(pt.zeros_like, p), "x": x,
                            "wanted": pt.take(pt.eye(10), labels, axis=0)},
                    f"data={processes}", ["x=-,data,-,-,-", "wanted=-,data,-"])


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    main(*(numbers + [2, 24][len(numbers):]))
