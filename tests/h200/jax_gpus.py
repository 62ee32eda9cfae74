#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX on all GPUs of a machine, by one client of Pestle's plugin: arrays move between them,
collectives in shard_map, a data-parallel training step and a tensor-parallel product, which
jit divides, beside the same on one GPU, with the times of both.

    jax_gpus.py --base BUNDLE [--only PART,PART] [--small]

BUNDLE has lib/libpestle.so.0, lib/pjrt_plugin_pestle.so and backends/libpestle-cuda.so
(bundle.sh makes one). Needs two GPUs, NCCL (the wheel that torch brings is found) and JAX.
Rows are printed as they come, and go to $OUT/jax_gpus.jsonl (or ./jax_gpus.jsonl). NVLink
multicast stays off. PARTS: move, collectives, data, tensor. --small: sizes for the fakes of
tests/cuda. The exit status tells whether all that ran was right."""
import argparse
import json
import os
import pathlib
import sys
import time

os.environ.update(NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1",
                  NVSHMEM_DISABLE_NVLS="1")
PARTS = ("move", "collectives", "data", "tensor")
HERE = pathlib.Path(__file__).resolve().parent


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--base", type=pathlib.Path)
    p.add_argument("--only", default=",".join(PARTS))
    p.add_argument("--small", action="store_true")
    return p.parse_args()


ARGUMENTS = arguments()
os.environ["JAX_PLATFORMS"] = "pestle,cpu"
os.environ.setdefault("PESTLE_PJRT_DEVICE", "cuda")
if ARGUMENTS.base:
    BASE = ARGUMENTS.base.resolve()
    os.environ["PESTLE_PJRT_LIBRARY"] = str(BASE / "lib" / "pjrt_plugin_pestle.so")
    os.environ["PESTLE_BACKEND_PATH"] = str(BASE / "backends")
sys.path.insert(0, str(HERE.parent.parent / "python"))

import numpy as np  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

L = jax.lax
SMALL = ARGUMENTS.small
rng = np.random.default_rng(0)
wrong = 0
rows = open(pathlib.Path(os.environ.get("OUT", ".")) / "jax_gpus.jsonl", "w", encoding="utf-8")


def row(name, good, **more):
    global wrong
    wrong += not good
    line = {"name": name, "good": bool(good)} | more
    print(json.dumps(line), flush=True)
    print(json.dumps(line), file=rows, flush=True)


def far(got, want, scale=None):
    """The greatest difference, as a part of the greatest number."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape != want.shape:
        return float("inf")
    return float(np.abs(got - want).max(initial=0) /
                 (scale or max(np.abs(want).max(initial=0), 1e-30)))


def seconds(f, rounds):
    """The median of |rounds| calls, each waited for."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        jax.block_until_ready(f())
        times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2]


def pipelined(f, rounds):
    """Seconds of each of |rounds| calls of which the last is waited for."""
    out = f()
    jax.block_until_ready(out)
    begin = time.perf_counter()
    for _ in range(rounds):
        out = f()
    jax.block_until_ready(out)
    return (time.perf_counter() - begin) / rounds


def line_of(devices):
    return Mesh(np.array(devices), ("i",))


def move(devices):
    x = rng.standard_normal((257, 65)).astype(np.float32)
    a = jax.device_put(x, devices[0])
    good = True
    for d in devices[1:] + devices[:1]:
        a = jax.device_put(a * 2, d)  # what is still being computed
        x = x * 2
        good &= a.devices() == {d} and np.array_equal(np.asarray(a), x)
    row("move", good)
    b = [jax.jit(lambda v: v @ v.T)(jax.device_put(x, d)) for d in devices]
    row("each alone", all(np.array_equal(b[0], c) for c in b))


def collectives(devices):
    n, mesh = len(devices), line_of(devices)
    sm = lambda f, i, o: jax.jit(jax.shard_map(f, mesh=mesh, in_specs=i, out_specs=o))
    for dtype in (np.float32, jnp.bfloat16) if SMALL else (np.float32, np.int32, jnp.bfloat16,
                                                           np.float16):
        for size in (1, 3000) if SMALL else (1, 3000, 1 << 22):
            x = rng.integers(-8, 8, (n, size)).astype(dtype)
            a = jax.device_put(x, NamedSharding(mesh, P("i")))
            got = sm(lambda v: L.psum(v, "i"), P("i"), P())(a)
            row("psum", far(got[0], x.astype(np.float64).sum(0)) == 0,
                dtype=str(np.dtype(dtype)), size=size)
    x = rng.standard_normal((4 * n * n, 8)).astype(np.float32)
    a = jax.device_put(x, NamedSharding(mesh, P("i")))
    b = x.reshape(n, 4 * n, 8)
    cases = {
        "pmax": (lambda v: L.pmax(v, "i"), P(), b.max(0)),
        "all_gather": (lambda v: L.all_gather(v, "i", tiled=True) + L.axis_index("i"), P("i"),
                       np.concatenate([x + k for k in range(n)])),
        "psum_scatter": (lambda v: L.psum_scatter(v, "i", scatter_dimension=0, tiled=True),
                         P("i"), b.sum(0)),
        "ppermute": (lambda v: L.ppermute(v, "i", [(k, (k + 1) % n) for k in range(n)]), P("i"),
                     np.roll(b, 1, 0).reshape(x.shape)),
        "all_to_all": (lambda v: L.all_to_all(v, "i", 0, 0, tiled=True), P("i"),
                       b.reshape(n, n, 4, 8).swapaxes(0, 1).reshape(x.shape)),
    }
    for name, (f, spec, want) in cases.items():
        row(name, far(sm(f, P("i"), spec)(a), want) < 1e-6)
    backwards = line_of(devices[::-1])
    f = jax.shard_map(lambda v: v + L.axis_index("i"), mesh=backwards, in_specs=P("i"),
                      out_specs=P("i"))
    got = jax.jit(f)(jax.device_put(x, NamedSharding(backwards, P("i"))))
    row("devices in another order", far(got, x + np.repeat(np.arange(n), 4 * n)[:, None]) < 1e-6)
    f = sm(lambda v: L.psum(v, "i"), P("i"), P())
    bits = {np.asarray(f(a)).tobytes() for _ in range(20)}
    row("20 runs equal", len(bits) == 1)


def loss(p, x, t):
    for w in p[:-1]:
        x = jax.nn.gelu(x @ w)
    return ((x @ p[-1] - t) ** 2).mean()


def step(p, x, t):
    l, g = jax.value_and_grad(loss)(p, x, t)
    return jax.tree.map(lambda q, r: q - 0.05 * r, p, g), l


def train(devices, p, x, t, steps):
    mesh = line_of(devices)
    p = jax.device_put(p, NamedSharding(mesh, P()))
    x, t = (jax.device_put(v, NamedSharding(mesh, P("i"))) for v in (x, t))
    f = jax.jit(step, donate_argnums=0)
    losses = []
    for _ in range(steps):
        p, l = f(p, x, t)
        losses.append(float(l))
    state = [p]

    def once():
        state[0], last = f(state[0], x, t)
        return last

    return losses, pipelined(once, 3 if SMALL else 50)


def data(devices):
    """Each GPU has as many rows with all of them as one has alone: weak scaling."""
    n = len(devices)
    d, rows_each = (16, 8) if SMALL else (2048, 4096)
    p = [(rng.standard_normal((d, d)) / np.sqrt(d)).astype(np.float32) for _ in range(6)]
    x = rng.standard_normal((rows_each * n, d)).astype(np.float32)
    t = rng.standard_normal((rows_each * n, d)).astype(np.float32)
    steps = 3 if SMALL else 20
    one, _ = train(devices[:1], p, x, t, steps)
    all_of, many = train(devices, p, x, t, steps)
    _, alone = train(devices[:1], p, x[:rows_each], t[:rows_each], 1)
    apart = far(all_of, one)
    row("data-parallel training", apart < 2e-3 and all_of[-1] < all_of[0], apart=apart,
        first=one[0], last=one[-1], parameters=6 * d * d, ms=many * 1e3, ms_alone=alone * 1e3,
        weak_scaling=alone / many)


def product(devices, x, a, b):
    mesh = line_of(devices)
    put = lambda v, *spec: jax.device_put(v, NamedSharding(mesh, P(*spec)))
    args = put(x), put(a, None, "i"), put(b, "i", None)
    f = jax.jit(lambda x, a, b: jax.nn.gelu(x @ a) @ b, out_shardings=NamedSharding(mesh, P()))
    got = np.asarray(f(*args).astype(jnp.float32))
    return got, pipelined(lambda: f(*args), 3 if SMALL else 50), seconds(lambda: f(*args), 3)


def tensor(devices):
    tokens, d, h = (16, 32, 64) if SMALL else (4096, 8192, 28672)
    make = lambda *s: (rng.standard_normal(s, np.float32) / np.sqrt(s[0])).astype(jnp.bfloat16)
    x, a, b = make(tokens, d), make(d, h), make(h, d)
    one, alone, _ = product(devices[:1], x, a, b)
    many, ms, latency = product(devices, x, a, b)
    apart = far(many, one)
    row("tensor-parallel product", apart < 2e-2, apart=apart, ms=ms * 1e3, ms_alone=alone * 1e3,
        times=alone / ms, latency_ms=latency * 1e3)


def main():
    devices = jax.devices()
    row("devices", len(devices) >= 2 and devices == jax.local_devices(),
        devices=[str(d) for d in devices], kind=devices[0].device_kind,
        version=jax.devices()[0].client.platform_version, jax=jax.__version__)
    if len(devices) < 2:
        return 1
    for part in PARTS:
        if part not in ARGUMENTS.only.split(","):
            continue
        try:
            globals()[part](devices)
        except Exception as e:  # the other parts are still of use
            row(part, False, error=f"{type(e).__name__}: {str(e)[:500]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
