#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The training examples: a few steps of each lower the loss; a step is traced once, is
given all of its parameters, and copies none of them."""

import importlib.util
import os
import pathlib
import re

from case import run

import pestle as pt

EXAMPLES = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"]) / "examples/python"
MODEL = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]) / "models/lcnet_orient.onnx"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(losses, step, traces=1):
    n = len(losses) // 4
    assert all(x == x for x in losses) and sum(losses[-n:]) < sum(losses[:n]), losses
    assert step.traces == traces, step.explain_misses()


def check_donation(step, update, given, *rest):
    """Each array of |given| is one whose memory the run has, and no step of the plan
    copies an argument, or to a result."""
    given = pt.tree.map(pt.copy, given)
    leaves = pt.tree.leaves(given)
    pt.eval(leaves, rest)
    before = pt.stats()["donations"]
    out = step(*given, *rest)
    pt.eval(out)
    assert pt.stats()["donations"] - before == len(leaves), pt.stats()
    assert all(x.is_deleted() for x in leaves)
    plan = pt.lower(update, *out[:len(given)], *rest).text("plan")
    steps = re.findall(r"^ *\d+ +(\w+) +(.*)$", plan, re.M)
    assert any(kind == "launch" for kind, _ in steps), plan[:300]
    copies = [what for kind, what in steps if kind == "copy" and
              re.search(r"\b(input|output)\d", what)]
    assert not copies, copies


def test_lenet():
    lenet = example("lenet")
    check(lenet.main(40, 32), lenet.step)
    p = lenet.parameters(pt.random.key(0))
    x, labels = lenet.images(pt.random.key(1), 16)
    check_donation(lenet.step, lenet.update, (p, pt.tree.map(pt.zeros_like, p)), x,
                   labels, 0.05)


def test_gpt():
    gpt = example("gpt")
    check(gpt.main(8, 16), gpt.step)
    p = gpt.parameters(pt.random.key(0))
    zeros = pt.tree.map(pt.zeros_like, p)
    check_donation(gpt.step, gpt.update, ((p, zeros, zeros),),
                   gpt.lines(pt.random.key(1), 16), pt.asarray(1.0))


def test_finetune():
    if not MODEL.exists():
        print(f"{MODEL} is not there: tests/models/fetch_models.py fetches it")
        return
    finetune = example("finetune")
    losses, _ = finetune.main(str(MODEL), 6, 4)
    assert min(losses[2:]) < losses[0], losses
    network, p = finetune.load(str(MODEL))
    # The gradient by a weight is what moving it does.
    x, labels = finetune.gratings(pt.random.key(5), 2, 224)
    name = next(n for n, short in finetune.LEARN.items() if short == "b")

    def loss(b):
        out = network(x, {**p, name: b})
        return pt.sum(pt.take_along_axis(out, pt.reshape(labels, (-1, 1)), axis=1))
    grad = pt.grad(loss)(p[name])
    for k in range(4):
        step = pt.astype(pt.arange(4) == k, pt.float32) * 1e-2
        moved = float(loss(p[name] + step) - loss(p[name] - step)) / 2e-2
        assert abs(moved - float(grad[k])) < 2e-3, (k, moved, float(grad[k]))


run(globals())
