#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loops and branches around work that fuses, on Pestle and on JAX's own backend, in
turns: what compiling a loop as a whole is worth.

    control_flow.py --python PYTHON [--build BUILD] [--device cpu --peer cpu]"""
import argparse
import json

import common


def child():
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    r = np.random.RandomState(0)
    x, w = (r.standard_normal(s).astype(np.float32) for s in ((8, 64), (64, 64)))
    w *= 0.1
    xs = jnp.asarray(r.standard_normal((100, 8, 64)).astype(np.float32))
    x, w = jnp.asarray(x), jnp.asarray(w)
    cell = lambda h, v: (jnp.tanh(h @ w + v), (h * v).sum(-1))

    def slope(s):
        return jnp.stack([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1],
                          s[0] * s[1] - 8 / 3 * s[2]])

    def runge_kutta(s, _):
        a = slope(s)
        b = slope(s + .005 * a)
        c = slope(s + .005 * b)
        s = s + .01 / 6 * (a + 2 * b + 2 * c + slope(s + .01 * c))
        return s, s

    integrate = lambda v: lax.scan(runge_kutta, v, None, 1000)
    programs = {
        "fori, element-wise, 100 trips": (
            lambda v: lax.fori_loop(0, 100, lambda i, z: jnp.sin(z) * 1.01 + i * 1e-3, v), x),
        "while, product and tanh, 100 trips": (
            lambda v: lax.while_loop(lambda s: s[0] < 100, lambda s:
                                     (s[0] + 1, jnp.tanh(s[1] @ w + v)), (0, v))[1], x),
        "scan, recurrent cell, 100 steps": (lambda v: lax.scan(cell, v, xs), x),
        "scan, gradient": (jax.grad(lambda v: lax.scan(cell, v, xs)[1].sum()), x),
        "scan, 10,000 small steps": (
            lambda v: lax.scan(lambda c, _: (c * 0.999 + 1, c.sum()), v, None, 10000), x[0, :4]),
        "scan, integration, 1,000 steps": (integrate, x[0, :3]),
        "scan, its gradient": (jax.grad(lambda v: integrate(v)[1].sum()), x[0, :3]),
        "cond around a chain": (
            lambda v: lax.cond(v[0, 0] > 0, lambda z: jnp.exp(-z * z) * 2 + 1,
                               lambda z: jnp.tanh(z) - z, v), x),
        "nested loops, 10 x 10": (
            lambda v: lax.fori_loop(0, 10, lambda i, z: lax.fori_loop(
                0, 10, lambda j, q: q * 0.9 + jnp.cos(q), z), v), x),
    }
    print(json.dumps({name: common.least(lambda g=jax.jit(f), v=v: g(v))
                      for name, (f, v) in programs.items()}))


def main():
    parser = common.arguments(argparse.ArgumentParser(description=__doc__))
    args = parser.parse_args()
    if args.child:
        return child()
    backends = ["pestle", args.peer]
    common.show(common.turns(__file__, backends, args), backends)


if __name__ == "__main__":
    main()
