#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""People's programs through JAX: flax networks trained with optax, a sampler's loop, an
optimiser of jax.scipy, an exported function. Losses and values are JAX's own CPU
backend's; a second process compiles nothing. Skips where JAX, flax or optax lack.

    training_long_test.py [NAME ...]"""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ.get("PESTLE_SOURCE_DIR", HERE.parent.parent))
BUILD = pathlib.Path(os.environ.get("PESTLE_BUILD_DIR", "build/release"))
LIBRARY = pathlib.Path(os.environ.get("PESTLE_PJRT_LIBRARY",
                                      BUILD / "pjrt_plugin_pestle.so"))

START = """
import sys
import jax, jax.numpy as jnp, numpy as np, optax
from flax import nnx
assert jax.devices()[0].platform == "pestle", jax.devices()
cpu = jax.devices("cpu")[0]
def both(f):
    got = f()
    with jax.default_device(cpu):
        return np.asarray(got), np.asarray(f())
def train(make, batch, loss, steps=200, rate=1e-3):
    model = make(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(rate), wrt=nnx.Param)
    @nnx.jit
    def step(model, optimizer, x, y):
        value, grads = nnx.value_and_grad(lambda m: loss(m, x, y))(model)
        optimizer.update(model, grads)
        return value
    return np.array([float(step(model, optimizer, *batch(s))) for s in range(steps)])
def check(got, want, most):
    got, want = np.ravel(got), np.ravel(want)
    off = np.abs(got - want).max()
    print(f"first {got[0]:.5f} last {got[-1]:.5f}, off by at most {off:.2e}")
    assert off <= most, off
"""

CASES = {
    "transformer": """
class Block(nnx.Module):
    def __init__(self, rngs):
        self.n1, self.n2 = nnx.LayerNorm(32, rngs=rngs), nnx.LayerNorm(32, rngs=rngs)
        self.a = nnx.MultiHeadAttention(4, 32, decode=False, rngs=rngs)
        self.f1, self.f2 = nnx.Linear(32, 64, rngs=rngs), nnx.Linear(64, 32, rngs=rngs)
    def __call__(self, x):
        mask = nnx.make_causal_mask(jnp.ones(x.shape[:2]))
        x = x + self.a(self.n1(x), mask=mask)
        return x + self.f2(nnx.gelu(self.f1(self.n2(x))))
class Model(nnx.Module):
    def __init__(self, rngs):
        self.e = nnx.Embed(50, 32, rngs=rngs)
        self.p = nnx.Param(jax.random.normal(rngs.params(), (16, 32)) * .02)
        self.blocks = nnx.List([Block(rngs) for _ in range(2)])
        self.n, self.h = nnx.LayerNorm(32, rngs=rngs), nnx.Linear(32, 50, rngs=rngs)
    def __call__(self, t):
        x = self.e(t) + self.p[...]
        for b in self.blocks:
            x = b(x)
        return self.h(self.n(x))
def batch(s):
    r = np.random.RandomState(s)
    first = r.randint(0, 50, (8, 1))
    t = (first + np.arange(17) * r.randint(1, 4, (8, 1))) % 50
    return t[:, :16].astype(np.int32), t[:, 1:].astype(np.int32)
loss = lambda m, x, y: optax.softmax_cross_entropy_with_integer_labels(m(x), y).mean()
got, want = both(lambda: train(Model, batch, loss))
check(got, want, 1e-3)
assert got[-1] < .7 * got[0]
""",
    "cnn": """
class Model(nnx.Module):
    def __init__(self, rngs):
        self.c1 = nnx.Conv(1, 8, (3, 3), rngs=rngs)
        self.b1 = nnx.BatchNorm(8, rngs=rngs)
        self.c2 = nnx.Conv(8, 16, (3, 3), rngs=rngs)
        self.l1, self.l2 = nnx.Linear(784, 32, rngs=rngs), nnx.Linear(32, 10, rngs=rngs)
    def __call__(self, x):
        x = nnx.avg_pool(nnx.relu(self.b1(self.c1(x))), (2, 2), (2, 2))
        x = nnx.max_pool(nnx.relu(self.c2(x)), (2, 2), (2, 2))
        return self.l2(nnx.relu(self.l1(x.reshape(x.shape[0], -1))))
def batch(s):
    r = np.random.RandomState(s)
    y = r.randint(0, 10, 32)
    x = r.standard_normal((32, 28, 28, 1)) * .3
    x[np.arange(32), 2 * y + 3] += 1.
    return x.astype(np.float32), y.astype(np.int32)
loss = lambda m, x, y: optax.softmax_cross_entropy_with_integer_labels(m(x), y).mean()
got, want = both(lambda: train(Model, batch, loss))
check(got, want, 1e-3)
assert got[-1] < .2 * got[0]
""",
    "sampler": """
betas = np.linspace(1e-4, .02, 100).astype(np.float32)
alphas = np.cumprod(1 - betas)
r = np.random.RandomState(0)
w = [(r.standard_normal(s) * .3).astype(np.float32) for s in ((3, 32), (32, 32), (32, 2))]
def noise(x, t):
    h = jnp.concatenate([x, jnp.full((len(x), 1), t / 100.)], 1)
    return jnp.tanh(jnp.tanh(h @ w[0]) @ w[1]) @ w[2]
@jax.jit
def sample(key):
    def step(carry, t):
        x, key = carry
        key, k = jax.random.split(key)
        a, b = jnp.asarray(alphas)[t], jnp.asarray(betas)[t]
        m = (x - b / jnp.sqrt(1 - a) * noise(x, t)) / jnp.sqrt(1 - b)
        x = m + jnp.where(t > 0, jnp.sqrt(b), 0.) * jax.random.normal(k, x.shape)
        return (x, key), jnp.abs(x).mean()
    x = jax.random.normal(key, (64, 2))
    (x, _), track = jax.lax.scan(step, (x, key), jnp.arange(99, -1, -1))
    return jnp.concatenate([x.ravel(), track])
check(*both(lambda: sample(jax.random.key(1))), 1e-3)
""",
    "optimise": """
from jax.scipy.optimize import minimize
rosen = lambda x: jnp.sum(100. * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
def solve():
    done = minimize(rosen, jnp.zeros(4), method="BFGS", options={"maxiter": 200})
    return done.x
got, want = both(solve)
# In f32 the search ends where steps gain nothing that f32 can tell, in a long valley:
# how deep is what counts.
print(f"Rosenbrock's function: {rosen(got):.5f}, on JAX's own backend {rosen(want):.5f}")
assert rosen(got) <= 1.5 * rosen(want) + 1e-4
from jax.scipy.sparse.linalg import cg
a = np.random.RandomState(0).standard_normal((20, 20)).astype(np.float32)
a = a @ a.T + 20 * np.eye(20, dtype=np.float32)
check(*both(lambda: jax.jit(lambda b: cg(lambda v: a @ v, b)[0])(np.ones(20, np.float32))), 1e-4)
""",
    "export": """
from jax import export
f = jax.jit(lambda x, y: jnp.sin(x) @ y + 1)
x = np.random.RandomState(0).standard_normal((5, 5)).astype(np.float32)
e = export.export(f, platforms=["cpu", "pestle"])(x, x)
again = export.deserialize(e.serialize())
check(np.asarray(again.call(x, x)), np.sin(x) @ x + 1, 1e-5)
g = export.export(jax.jit(lambda z: z * 2 + z.sum()), platforms=["cpu", "pestle"])(
    jax.ShapeDtypeStruct(export.symbolic_shape("n, 3"), np.float32))
for n in (1, 4, 7):
    z = x[:1].repeat(n, 0)[:, :3]
    check(np.asarray(export.deserialize(g.serialize()).call(z)), z * 2 + z.sum(), 1e-4)
""",
}


def run(python, name, cache, **more):
    env = dict(os.environ, JAX_PLATFORMS="pestle,cpu", PYTHONDONTWRITEBYTECODE="1",
               PESTLE_PJRT_LIBRARY=str(LIBRARY.resolve()), PESTLE_CACHE_DIR=cache,
               PYTHONPATH=os.pathsep.join(filter(None, [str(SOURCE / "python"),
                                                        os.environ.get("PYTHONPATH")])), **more)
    env.setdefault("PESTLE_PJRT_DEVICE", "cpu")
    return subprocess.run([python, "-c", START + CASES[name]], env=env, check=False,
                          capture_output=True, text=True, timeout=1200)


def stored(cache):
    return {p.name for p in pathlib.Path(cache).rglob("*") if p.is_file()}


def main():
    python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
    probe = subprocess.run([python, "-c", "import jax, scipy, optax; from flax import nnx"],
                           check=False, capture_output=True)
    if probe.returncode or not LIBRARY.exists():
        print("no JAX, flax and optax here")
        return 77
    bad = 0
    with tempfile.TemporaryDirectory() as cache:
        for name in sys.argv[1:] or CASES:
            done = run(python, name, cache)
            print(f"{name}: {done.returncode}\n{done.stdout}", end="", flush=True)
            if done.returncode:
                print(done.stderr[-3000:])
                bad += 1
        # Whatever a second process needs is there: it stores nothing new.
        name = (sys.argv[1:] or list(CASES))[0]
        before = stored(cache)
        done = run(python, name, cache)
        new = stored(cache) - before
        print(f"{name} again: {done.returncode}, {len(before)} files stored, {len(new)} new")
        bad += bool(done.returncode or new or not before)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
