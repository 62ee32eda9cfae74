#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A CUDA kernel as text beside the built-in one, from Python on the GPU of this machine:
values, derivatives and batches, an error with its line, launches, and time a call for
three sizes, in turns. Exits with 1 where something is wrong; a ratio above 1.03 says so.

usage: PYTHONPATH=build/python bench/h200/custom.py [ROUNDS]
"""

import re
import sys
import time

import numpy

import pestle as pt

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
SIZES = (1 << 20, 1 << 24, 1 << 26)
failed = []


def check(what, right):
    print(f"{'right' if right else 'WRONG':6} {what}")
    if not right:
        failed.append(what)


def burst(function, args, calls):
    """The time of a call, in us, of calls that are queued one behind another."""
    begin = time.perf_counter()
    for _ in range(calls):
        z = function(*args)
    numpy.asarray(z[:1])
    return (time.perf_counter() - begin) / calls * 1e6


def least(functions, args, calls):
    best = {name: float("inf") for name in functions}
    for function in functions.values():
        burst(function, args, 3)
    for _ in range(ROUNDS):
        for name, function in functions.items():
            best[name] = min(best[name], burst(function, args, calls))
    return best


def launches(function, *args):
    plan = pt.lower(function, *args).text("plan")
    return len(re.findall(r"^ *\d+ +launch ", plan, re.M))


def values(own):
    host = numpy.random.default_rng(0).standard_normal((2, 1000), dtype=numpy.float32)
    x, y = (pt.asarray(a, device="cuda") for a in host)
    check("values", numpy.allclose(own(x, y), 4 * host[0] + 2 * host[1], rtol=1e-6))
    dx, dy = pt.grad(lambda a, b: pt.sum(own(a, b) * a), (0, 1))(x, y)
    check("gradients", numpy.allclose(dx, 8 * host[0] + 2 * host[1], rtol=1e-5, atol=1e-5)
          and numpy.allclose(dy, 2 * host[0], rtol=1e-6))
    rows = pt.reshape(x, (10, 100))
    z = pt.vmap(own, (0, None))(rows, y[:100])
    check("vmap", numpy.allclose(z, 4 * host[0].reshape(10, 100) + 2 * host[1][:100],
                                 rtol=1e-6))
    wrong = pt.kernel("wrong", ["x"], ["y"], grid="x.size", types=lambda x: x,
                      cuda="float a = x[i];\ny[i] = nothing;")
    try:
        pt.eval(wrong(x))
        check("an error of the text", False)
    except ValueError as error:
        check("an error has its line", "(2)" in str(error) or ":2:" in str(error))


def main():
    text = "z[i] = 4.0f * x[i] + (T)B * y[i];"
    options = dict(inputs=["x", "y"], outputs=["z"], grid="x.size", template={"B": 2},
                   elementwise=True,
                   cuda=text)
    own = pt.kernel("axpby", types=lambda x, y: x, **options)
    values(pt.kernel("axpby_body", body=lambda x, y: 4 * x + 2 * y, **options))
    functions = {"own": pt.jit(lambda x, y: own(x, y)),
                 "built in": pt.jit(lambda x, y: 4 * x + 2 * y)}
    for size in SIZES:
        host = numpy.random.default_rng(0).standard_normal((2, size), dtype=numpy.float32)
        args = [pt.asarray(a, device="cuda") for a in host]
        want = 4 * host[0] + 2 * host[1]
        counts = {n: launches(f, *args) for n, f in functions.items()}
        check(f"launches of {size} elements: {counts}", len(set(counts.values())) == 1)
        for name, f in functions.items():
            check(f"{name}, {size} elements",
                  numpy.allclose(f(*args), want, rtol=1e-5, atol=1e-6))
        t = least(functions, args, 200 if size < 1 << 24 else 50)
        ratio = t["own"] / t["built in"]
        print(f"{size:9} elements: own {t['own']:8.2f} us, built in {t['built in']:8.2f} "
              f"us, ratio {ratio:.3f}{'' if ratio <= 1.03 else '  ABOVE 1.03'}, "
              f"{12 * size / t['own'] / 1e3:.0f} GB/s")
    print("WRONG: " + "; ".join(failed) if failed else "all right")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
