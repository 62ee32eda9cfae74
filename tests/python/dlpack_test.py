#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle.testing.dlpack with Pestle on both sides, and beside NumPy: no fault, and
faults that are planted are found. Then what only this package promises."""

import gc
import threading

from case import SANITIZED, raises, run
import numpy as np
import pestle as pt
from pestle.testing.dlpack import cells, runner, zoo
from pestle.testing.dlpack.capsules import capsules


def faults(producer, consumer, block):
    results = runner.run(producer, consumer, block)
    assert len(results) > 40
    bad = [f"{cell.block}: {cell.name}: {o.kind} {o.text}" for cell, o in results
           if runner.is_fault(cell, o)]
    ok = sum(o.kind == cells.OK for _, o in results)
    return bad, ok, len(results)


def test_alone():
    bad, ok, count = faults("pestle", "pestle", "alone")
    assert not bad, "\n".join(bad)
    assert count >= 230 and ok >= 150, (ok, count)


def test_pairs():
    for producer, consumer in (("numpy", "pestle"), ("pestle", "numpy"),
                               ("pestle", "pestle")):
        bad, ok, count = faults(producer, consumer, "pairs")
        assert not bad, "\n".join(bad)
        assert ok >= 30, (producer, consumer, ok, count)


def test_exceptions():
    x = pt.asarray([1.0, 2.0])
    raises(TypeError, lambda: pt.from_dlpack(3), "has no __dlpack__")
    raises(TypeError, lambda: pt.from_dlpack(b"12"), "pestle.asarray() takes that")
    raises(TypeError, lambda: pt.from_dlpack(), "one positional argument")
    raises(TypeError, lambda: pt.from_dlpack(x, 1), "one positional argument")
    raises(TypeError, lambda: pt.from_dlpack(x, stream=1), "no keyword")
    raises(TypeError, lambda: x.__dlpack__(1), "keywords alone")
    raises(TypeError, lambda: x.__dlpack__(version=1), "no keyword")
    raises(TypeError, lambda: x.__dlpack__(max_version=1), "not a tuple")
    raises(ValueError, lambda: x.__dlpack__(max_version=(-1, 0)), "max_version")
    raises(ValueError, lambda: x.__dlpack__(stream=1), "has no streams")
    raises(TypeError, lambda: x.__dlpack__(dl_device=1), "not a tuple")
    raises(BufferError, lambda: x.__dlpack__(dl_device=(10, 0)), "ROCm device 0")
    raises(BufferError, lambda: x.__dlpack__(dl_device=(77, 0)), "unknown type")
    y = x[::-1]
    raises(BufferError, lambda: y.__dlpack__(copy=False), "older struct")
    f = pt.jit(lambda a: pt.from_dlpack(a))
    raises(TypeError, lambda: f(x), "being traced has no memory")
    g = pt.jit(lambda a: a.__dlpack__())
    raises(TypeError, lambda: g(x), "being traced has no memory")


def test_memory():
    n = np.arange(6, dtype=np.float32)
    x = pt.from_dlpack(n)
    n[0] = 9
    assert x.tolist()[0] == 9
    assert pt.from_dlpack(n, copy=True).tolist() == x.tolist()
    # Nothing that was imported is written by an evaluation.
    y = x + 1
    del x
    pt.eval(y)
    assert n.tolist() == [9, 1, 2, 3, 4, 5]
    # A fresh result goes out writable, and the flag comes as soon as it is shared.
    out = np.from_dlpack(y)
    assert out.flags.writeable
    z = y[1:]
    assert not np.from_dlpack(y).flags.writeable
    del z
    assert np.from_dlpack(y * 1).flags.writeable


def test_lazy_failure_is_not_hidden():
    x = pt.asarray([1.0, 2.0])
    assert (x + 1).state == "lazy"
    assert (x + 1).__dlpack_device__() == (1, 0)
    y = x + 1
    y.__dlpack_device__()
    assert y.state == "lazy"
    y.__dlpack__()
    assert y.state == "data"


def test_no_leak():
    """A hundred thousand round trips in flat memory."""
    import resource
    n, x = np.ones(1000, np.float32), pt.asarray(np.ones(1000, np.float32))
    pt.eval(x)

    def turn(count):
        for _ in range(count):
            pt.from_dlpack(n)
            np.from_dlpack(x)
            x.__dlpack__(max_version=(1, 3))
            pt.from_dlpack(x.__dlpack__())
    turn(2000)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    turn(25000)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert SANITIZED or grown < 2000, grown


def test_deleters_on_threads():
    made = [zoo.Made(zoo.pack("float32", range(6)), (6,), (2, 32)) for _ in range(64)]
    arrays = [[pt.from_dlpack(zoo.Producer(m))] for m in made]
    threads = [threading.Thread(target=a.clear) for a in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [m.ended for m in made] == [1] * 64


def test_planted_faults_are_found():
    """A consumer that ends twice, one that never does, one with other values."""
    class Bad:
        name, takes_capsules = "bad", True

        def __init__(self, how):
            self.how = how

        def take(self, x, **keywords):
            capsule = x.__dlpack__(max_version=(1, 3))
            y = pt.from_dlpack(capsule)
            if self.how == "never":
                zoo._alive[id(y)] = y
            elif self.how == "twice":
                m = x.made
                zoo.DELETER(m.versioned.deleter)(0)
            return y

        def flat(self, y):
            found = pt.reshape(y, (-1,)).tolist()
            return [v + 1 for v in found] if self.how == "values" else found

    plain = next(c for c in capsules() if c.name == "versioned: plain")
    for how in ("never", "twice", "values"):
        assert plain.do(None, Bad(how)).kind == cells.WRONG, how
    outcome = plain.do(None, Bad(""))
    assert outcome.kind == cells.OK, outcome


def test_handles():
    """Devices whose memory has no address: what goes out comes back where it lies."""
    for name in ("opencl", "vulkan"):
        try:
            device = pt.device(name)
        except pt.Error:
            continue
        x = pt.arange(6, dtype=pt.float32, device=device).reshape(2, 3) + 1
        kind = x.__dlpack_device__()[0]
        assert kind == {"opencl": 4, "vulkan": 7}[name]
        for view in (x, x.T, x[1:, 1:], x[:, ::-2], x[:0]):
            y = pt.from_dlpack(view.__dlpack__(max_version=(1, 3)))
            assert y.device == device and y.tolist() == view.tolist(), (name, view)
        y = pt.from_dlpack(x.__dlpack__(max_version=(1, 3)))
        del x
        gc.collect()
        assert (y * 2).tolist() == [[2, 4, 6], [8, 10, 12]]
        assert pt.from_dlpack(y.__dlpack__(max_version=(1, 3)), device="cpu")[1, 2].item() == 6
        raises(ValueError, lambda v=y: v.__dlpack__(stream=1), "stream")
        capsule = y.__dlpack__(max_version=(1, 3), stream=-1)
        assert pt.from_dlpack(capsule).tolist() == y.tolist()


run(globals())
