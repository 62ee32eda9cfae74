#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A CUDA kernel as text beside the built-in one, from Python on the GPU of this machine:
values, an error with its line, launches and time a call. PYTHONPATH=build/python."""

import time

import numpy

import pestle as pt

COUNT = 1 << 24


def least(function, *args, rounds=20, calls=50):
    """The least time of a call, in us, of calls that are queued one behind another."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            z = function(*args)
        pt.eval(z)
        numpy.asarray(z[:1])
        best = min(best, (time.perf_counter() - begin) / calls * 1e6)
    return best


def main():
    device = pt.device("cuda")
    host = numpy.random.default_rng(0).standard_normal((2, COUNT), dtype=numpy.float32)
    x, y = (pt.asarray(a, device=device) for a in host)
    own = pt.kernel("axpby", ["x", "y"], ["z"], grid="x.size", template={"B": 2},
                    cuda="z[i] = 4.0f * x[i] + (T)B * y[i];", types=lambda x, y: x)
    f = pt.jit(lambda a, b: own(a, b))
    g = pt.jit(lambda a, b: 4 * a + 2 * b)
    assert numpy.allclose(numpy.asarray(f(x, y)), 4 * host[0] + 2 * host[1], rtol=1e-6)
    print("values right")
    wrong = pt.kernel("wrong", ["x"], ["y"], grid="x.size", types=lambda x: x,
                      cuda="float a = x[i];\ny[i] = nothing;")
    try:
        pt.eval(wrong(x))
        print("WRONG: no error")
    except ValueError as error:
        print("error has its line" if "(2)" in str(error) or ":2:" in str(error)
              else f"WRONG: {error}")
    times = {"own": 0.0, "built in": 0.0}
    for name, function in (("own", f), ("built in", g)) * 2:
        took = least(function, x, y)
        times[name] = min(times[name] or took, took)
    ratio = times["own"] / times["built in"]
    print(f"own {times['own']:.1f} us, built in {times['built in']:.1f} us: {ratio:.3f}")


if __name__ == "__main__":
    main()
