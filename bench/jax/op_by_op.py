#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chains of operations on Pestle: fused, as one kernel an operation
(PESTLE_PJRT_FUSE=0), and on JAX's own backend, in turns.

    op_by_op.py --python PYTHON [--build BUILD] [--device cpu --peer cpu]"""
import argparse
import json

import common


def child():
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    r = np.random.RandomState(0)
    big = jnp.asarray(r.standard_normal((1024, 1024)).astype(np.float32))
    rows = jnp.asarray(r.standard_normal((512, 768)).astype(np.float32))
    wide = jnp.asarray(r.standard_normal((768, 768)).astype(np.float32) * 0.03)
    image = jnp.asarray(r.standard_normal((1, 56, 56, 64)).astype(np.float32))
    taps = jnp.asarray(r.standard_normal((3, 3, 64, 64)).astype(np.float32) * 0.05)
    qkv = jnp.asarray(r.standard_normal((3, 1, 256, 8, 64)).astype(np.float32))
    ids = jnp.asarray(r.randint(0, 1024, 2048))
    norm = lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(
        x.var(-1, keepdims=True) + 1e-5)
    conv = lambda x: lax.conv_general_dilated(
        x, taps, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    programs = {
        "chain of 8": (lambda x: jnp.tanh(jnp.exp(-x * x) * 2 + jnp.sin(x) / 3 - x), big),
        "gelu": (jax.nn.gelu, big),
        "softmax": (lambda x: jax.nn.softmax(x, -1), big),
        "layer norm": (norm, rows),
        "product, bias, gelu": (lambda x: jax.nn.gelu(x @ wide + x[0]), rows),
        "convolution, relu": (lambda x: jax.nn.relu(conv(x) + 0.5), image),
        "attention": (lambda t: jax.nn.dot_product_attention(t[0], t[1], t[2]), qkv),
        "where, clip, cast": (lambda x: jnp.where(x > 0, jnp.clip(x, 0, 1), -x)
                              .astype(jnp.bfloat16), big),
        "sum of squares": (lambda x: (x * x).sum(-1), big),
        "gather, scatter-add": (lambda x: x.at[(x[:, 0] * 99).astype(jnp.int32) % 64]
                                .add(x[::-1]), big),
        "embedding gradient": (jax.grad(lambda x: (x[ids] ** 2).sum()), big),
    }
    print(json.dumps({name: common.least(lambda g=jax.jit(f), v=v: g(v))
                      for name, (f, v) in programs.items()}))


def main():
    parser = common.arguments(argparse.ArgumentParser(description=__doc__))
    args = parser.parse_args()
    if args.child:
        return child()
    backends = ["pestle", "pestle-unfused", args.peer]
    common.show(common.turns(__file__, backends, args), backends)


if __name__ == "__main__":
    main()
