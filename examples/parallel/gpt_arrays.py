# SPDX-License-Identifier: Apache-2.0
"""The small GPT that learns to add (examples/python/gpt.py), trained with Adam on several
processes, each with its part of the lines: one plan for all, one rule for the lines.

usage: gpt_arrays.py [PROCESSES [STEPS]]
"""

import sys

from training import run_both

import gpt  # noqa: E402  of examples/python, which training.py finds
import pestle as pt


def loss(p, rows, wanted):
    """Of the three digits behind the sign of equality, which |wanted| has as ones."""
    logits = gpt.network(p, rows[:, :-1])[:, 5:]
    return pt.mean(pt.logsumexp(logits, axis=2) - pt.sum(logits * wanted, axis=2))


def train(p, first, second, rows, wanted):
    def step(i, state):
        p, first, second, losses = state
        value, grads = pt.value_and_grad(loss)(p, rows[i], wanted[i])
        first = pt.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = pt.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, grads)
        n = pt.astype(i, pt.float32) + 1
        rate = 3e-3 * pt.sqrt(1 - 0.99 ** n) / (1 - 0.9 ** n)
        p = pt.tree.map(lambda w, m, v: w - rate * m / (pt.sqrt(v) + 1e-8), p, first,
                        second)
        return p, first, second, losses.at[i].set(value)
    p, _, _, losses = pt.fori_loop(0, rows.shape[0], step, (
        p, first, second, pt.zeros(rows.shape[:1])))
    return losses, p


def main(processes, steps, batch=32):
    p = gpt.parameters(pt.random.key(0))
    zeros = pt.tree.map(pt.zeros_like, p)
    rows = pt.stack([gpt.lines(pt.random.key(i + 1), batch) for i in range(steps)])
    wanted = pt.take(pt.eye(gpt.WORDS), rows[:, :, 6:], axis=0)
    return run_both(train, {"p": p, "first": zeros, "second": zeros, "rows": rows,
                            "wanted": wanted},
                    f"data={processes}", ["rows=-,data,-", "wanted=-,data,-,-"])


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    main(*(numbers + [2, 12][len(numbers):]))
