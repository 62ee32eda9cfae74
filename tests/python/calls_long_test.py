#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""10,000,000 calls of each thing that is called often, with flat memory, and
1,000,000 x = x + 1 without eval. After a tenth of the calls nothing grows."""

import os
import sys

from case import SANITIZED, run
import pestle as pt

CALLS = int(os.environ.get("PESTLE_CALLS", "10000000"))
MOST = 1 << 20  # bytes


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def flat(function):
    """function() CALLS times; what a name of the interpreter's own grows by counts."""
    blocks = resident_before = None
    for part in range(10):
        for _ in range(CALLS // 10):
            function()
        if part == 0:
            blocks, resident_before = sys.getallocatedblocks(), resident()
    grown = resident() - resident_before
    assert grown <= MOST, f"{grown} bytes more after {CALLS} calls"
    assert sys.getallocatedblocks() - blocks < 100


def test_record_and_evaluate():
    a, b = pt.ones(4), pt.ones(4)
    pt.eval(a, b)
    flat(lambda: pt.eval(a + b))


def test_record_alone():
    a, b = pt.ones(4), pt.ones(4)
    pt.eval(a, b)
    flat(lambda: a + b)


def test_jit():
    a = pt.ones(4)
    f = pt.jit(lambda x: x * 2 + 1)
    flat(lambda: f(a))


def test_jit_of_a_tree():
    a = pt.ones(4)
    tree = {"a": [a, a], "b": (a, 1.5)}
    f = pt.jit(lambda t: {"y": t["a"][0] + t["b"][0] * t["b"][1]})
    flat(lambda: f(tree))


def test_dlpack():
    a = pt.ones(4)
    pt.eval(a)

    class Producer:
        """Not ours, so that a capsule is made and used."""

        def __dlpack__(self, **keywords):
            return a.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return a.__dlpack_device__()

    x = Producer()
    flat(lambda: pt.from_dlpack(x))


def test_views_and_buffers():
    a = pt.arange(12).reshape(3, 4)
    pt.eval(a)
    flat(lambda: memoryview(a[1:, ::2]))


def test_errors():
    a, b = pt.ones(4), pt.ones(3)

    def wrong():
        try:
            a + b
        except ValueError:
            pass

    flat(wrong)


def test_loop_without_eval():
    size = 1 << 14
    x = pt.zeros(size)
    for _ in range(10_000):
        x = x + 1
    before, peak = resident(), 0
    for i in range(CALLS // 10):
        x = x + 1
        if i % 10_000 == 0:
            peak = max(peak, resident() - before)
    # f32 counts to 2**24 exactly.
    assert x[0].item() == CALLS // 10 + 10_000
    assert peak <= 2 * size * 4 + MOST, peak


if __name__ == "__main__":
    if SANITIZED:
        print("skipped: a sanitizer's runtime keeps what is freed")
        sys.exit(77)
    run(dict(globals()))
