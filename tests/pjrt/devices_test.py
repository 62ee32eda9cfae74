# SPDX-License-Identifier: Apache-2.0
"""JAX on 2, 4 and 8 devices of a CPU (PESTLE_CPU_DEVICES): collectives in shard_map and
pmap, ops on values that lie in parts, data-parallel training, against JAX's own CPU
backend with as many devices. Skips where JAX cannot be imported (PESTLE_JAX_PYTHON names a
Python that can)."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ.get("PESTLE_SOURCE_DIR", HERE.parent.parent))
BUILD = pathlib.Path(os.environ.get("PESTLE_BUILD_DIR", "build/release"))
LIBRARY = BUILD / "pjrt_plugin_pestle.so"

CASES = r"""
import sys
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, PartitionSpec as P, NamedSharding


def same(a, b, **k):
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(np.asarray(x), np.asarray(y), **k), a, b
    )


n = int(sys.argv[1])
assert len(jax.devices()) == n, jax.devices()
cpus = jax.devices("cpu")[:n]
rng = np.random.default_rng(0)


def both(f, *args, shape=None, names=("i",), **k):
    shape = shape or (n,)
    out = []
    for d in (jax.devices(), cpus):
        mesh = Mesh(np.array(d).reshape(shape), names)
        out.append(jax.tree.map(np.asarray, f(mesh)(*args)))
    same(out[0], out[1], **k)


sm = lambda f, i, o, **k: lambda mesh: jax.jit(
    jax.shard_map(f, mesh=mesh, in_specs=i, out_specs=o, **k)
)
x = rng.standard_normal((8 * n, 4)).astype(np.float32)
L = jax.lax
cases = {}


def case(f):
    cases[f.__name__] = f
    return f


@case
def ordered_callbacks():
    # A token goes in and out of the computation, with a sharding of its own.
    import jax.experimental
    seen = []

    def f(a, b):
        jax.experimental.io_callback(lambda v: seen.append(np.array(v)), (), a, ordered=True)
        return a + b[..., None]

    both(sm(f, (P(None, "i"), P()), P(None, "i")), x.T.copy(), np.arange(4, dtype=np.float32))
    jax.effects_barrier()
    assert len(seen) == 2 * n, len(seen)
    parts = np.split(x.T, n, axis=1)
    for part in parts:
        assert sum(np.array_equal(part, s) for s in seen) == 2


@case
def psum():
    both(sm(lambda a: L.psum(a, "i"), P("i"), P()), x, rtol=1e-6)


@case
def pmax():
    both(
        sm(lambda a: (L.pmax(a, "i"), L.pmin(a, "i"), L.pmean(a, "i")), P("i"), P()),
        x,
        rtol=1e-6,
    )


@case
def gather():
    both(
        sm(
            lambda a: (L.all_gather(a, "i"), L.all_gather(a, "i", axis=1, tiled=True)),
            P("i"),
            (P("i"), P("i")),
        ),
        x,
    )


@case
def scatter():
    both(
        sm(lambda a: L.psum_scatter(a, "i", scatter_dimension=0, tiled=True), P("i"), P("i")),
        x,
        rtol=1e-6,
    )


@case
def to_all():
    y = rng.standard_normal((n, n * 2, 3)).astype(np.float32)
    both(sm(lambda a: L.all_to_all(a, "i", 1, 0, tiled=True), P("i"), P("i")), y)


@case
def permute():
    both(
        sm(
            lambda a: (
                L.ppermute(a, "i", [(k, (k + 1) % n) for k in range(n)]),
                L.ppermute(a, "i", [(0, n - 1)]),
            ),
            P("i"),
            P("i"),
        ),
        x,
    )


@case
def index():
    both(sm(lambda a: a + L.axis_index("i"), P("i"), P("i")), x)


@case
def scan():
    def f(a):
        def body(c, _):
            c = L.psum(c, "i") * 0.1 + L.axis_index("i")
            return c, c.sum()

        return L.scan(body, a, None, length=4)

    both(sm(f, P("i"), (P("i"), P()), check_vma=False), x, rtol=1e-5)


@case
def types():
    for t in (np.int32, np.uint8, np.float16, np.bool_, np.complex64, np.int64):
        y = (rng.integers(0, 2, (2 * n, 3))).astype(t)
        if t == np.bool_:
            both(
                sm(lambda a: L.all_gather(a, "i", tiled=True), P("i"), P(), check_vma=False), y
            )
        else:
            both(
                sm(
                    lambda a: (L.psum(a, "i"), L.ppermute(a, "i", [(0, 1)])),
                    P("i"),
                    (P(), P("i")),
                ),
                y,
            )


@case
def tree():
    both(
        sm(lambda a: L.psum({"a": a, "b": a.sum(), "c": (a[:1] * 2,)}, "i"), P("i"), P()),
        x,
        rtol=1e-5,
    )


@case
def two_axes():
    if n < 4:
        return
    both(
        sm(
            lambda a: (
                L.psum(a, "x"),
                L.psum(a, "y"),
                L.psum(a, ("x", "y")),
                L.all_gather(a, "y", tiled=True),
            ),
            P("x", "y"),
            (P(None, "y"), P("x", None), P(), P("x", None)),
            check_vma=False,
        ),
        x,
        shape=(n // 2, 2),
        names=("x", "y"),
        rtol=1e-5,
    )


@case
def sharded_in():
    out = []
    for d in (jax.devices(), cpus):
        mesh = Mesh(np.array(d), ("i",))
        s = NamedSharding(mesh, P("i"))
        a = jax.device_put(x, s)
        assert len(a.addressable_shards) == n
        y = jax.jit(
            jax.shard_map(lambda a: a * 2, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
        )(a)
        assert y.sharding.spec == P("i"), y.sharding
        z = jax.jit(
            jax.shard_map(lambda a: L.psum(a, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
        )(y)
        out.append(np.asarray(z))
    same(*out, rtol=1e-6)


@case
def pmap():
    y = rng.standard_normal((n, 5)).astype(np.float32)
    out = []
    for d in (jax.devices(), cpus):
        out.append(
            np.asarray(
                jax.pmap(
                    lambda a: L.psum(a, "b") + L.axis_index("b"), axis_name="b", devices=d
                )(y)
            )
        )
    same(*out, rtol=1e-6)


@case
def one_device():
    d = jax.devices()[-1]
    y = jax.device_put(x, d)
    z = jax.jit(lambda a: a @ a.T)(y)
    assert z.devices() == {d}, z.devices()
    same(z, x @ x.T, rtol=1e-4)
    w = jax.device_put(z, jax.devices()[0])
    same(w, z)


@case
def training():
    w0 = rng.standard_normal((4, 16)).astype(np.float32)
    v0 = rng.standard_normal((16, 1)).astype(np.float32)
    t = rng.standard_normal((8 * n, 1)).astype(np.float32)

    def run(d):
        mesh = Mesh(np.array(d), ("b",))

        def loss(p, a, t):
            return jnp.mean((jnp.tanh(a @ p[0]) @ p[1] - t) ** 2)

        def step(p, a, t):
            l, g = jax.value_and_grad(loss)(p, a, t)
            g = jax.tree.map(lambda q: L.pmean(q, "b"), g)
            return jax.tree.map(lambda q, r: q - 0.1 * r, p, g), L.pmean(l, "b")

        f = jax.jit(
            jax.shard_map(
                step,
                mesh=mesh,
                in_specs=(P(), P("b"), P("b")),
                out_specs=(P(), P()),
                check_vma=False,
            ),
            donate_argnums=0,
        )
        p = jax.device_put((w0, v0), NamedSharding(mesh, P()))
        a = jax.device_put(x, NamedSharding(mesh, P("b")))
        tt = jax.device_put(t, NamedSharding(mesh, P("b")))
        ls = []
        for _ in range(30):
            p, l = f(p, a, tt)
            ls.append(l)
        return [float(q) for q in ls]

    a, b = run(jax.devices()), run(cpus)
    same(np.array(a), np.array(b), rtol=2e-4)
    assert a[-1] < a[0]


# Ops outside of shard_map, on values that lie in parts.
@case
def auto():
    out = []
    for d in (jax.devices(), cpus):
        mesh = Mesh(np.array(d).reshape(n // 2, 2), ("a", "b"))
        a = jax.device_put(x, NamedSharding(mesh, P("a", "b")))
        w = jax.device_put(x.T.copy(), NamedSharding(mesh, P(None, "a")))
        f = jax.jit(
            lambda a, w: (jnp.tanh(a @ w).sum(0), a.T, a + 1, jnp.sort(a, 0), a[3:5]),
        )
        g = jax.jit(
            lambda a: (a * 2, a.T @ a),
            out_shardings=(NamedSharding(mesh, P("b", "a")), NamedSharding(mesh, P("b"))),
        )
        r = g(a)
        assert r[0].sharding.spec == P("b", "a"), r[0].sharding
        e = (a + a, a @ a.T, a[0], a.reshape(4 * n, 8), a.at[2].set(0), a.sum())
        out.append(jax.tree.map(np.asarray, (f(a, w), r, e)))
    same(*out, rtol=1e-4, atol=1e-5)


@case
def auto_loops():
    out = []
    for d in (jax.devices(), cpus):
        mesh = Mesh(np.array(d), ("a",))
        a = jax.device_put(x, NamedSharding(mesh, P("a")))
        g = jax.shard_map(
            lambda v: v * L.axis_index("a") + L.pmean(v, "a"),
            mesh=mesh,
            in_specs=P("a"),
            out_specs=P("a"),
        )

        @jax.jit
        def f(a):
            return (
                L.scan(lambda c, v: (c + v @ v, c * v), 0.0, a),
                L.fori_loop(0, 5, lambda i, v: v * 1.1 + a, a),
                L.cond(a.sum() > 0, lambda v: v + 1, lambda v: v * 2, a),
                L.scan(lambda c, _: (g(c) * 0.1, c.sum()), a, None, length=4),
            )

        out.append(jax.tree.map(np.asarray, f(a)))
    same(*out, rtol=2e-4, atol=1e-4)


@case
def some_axes():
    both(
        lambda mesh: jax.jit(
            jax.shard_map(
                lambda v: L.psum(v @ v.T, "x"),
                mesh=mesh,
                in_specs=P("x"),
                out_specs=P(),
                axis_names={"x"},
            )
        ),
        x,
        shape=(n // 2, 2),
        names=("x", "y"),
        rtol=1e-4,
        atol=1e-4,
    )


# Sums whose summands lie on the devices, and a program without results.
@case
def unreduced():
    out = []
    for d in (jax.devices(), cpus):
        mesh = jax.make_mesh(
            (n // 2, 2),
            ("x", "y"),
            devices=d,
            axis_types=(jax.sharding.AxisType.Explicit,) * 2,
        )
        with jax.set_mesh(mesh):
            a = jax.device_put(x, P("x", "y"))
            b = jax.device_put(x.T.copy()[:, :4], P("y", None))
            f = jax.jit(
                lambda a, b: jnp.einsum(
                    "ab,bc->ac", a, b, out_sharding=P("x", None, unreduced={"y"})
                )
            )
            h = jax.jit(lambda v: jax.sharding.reshard(v, P("x", None)))
            y = f(a, b)
            assert y.sharding.spec.unreduced == {"y"}, y.sharding
            out.append(np.asarray(h(y)))
    same(*out, rtol=1e-4, atol=1e-5)


@case
def layouts():
    from jax.experimental.layout import Format, Layout

    mesh = Mesh(np.array(jax.devices()), ("i",))
    s = NamedSharding(mesh, P("i"))
    columns = Format(Layout((1, 0)), s)
    f = jax.shard_map(
        lambda v: v * L.axis_index("i") + L.psum(v, "i"), mesh=mesh, in_specs=P("i"), out_specs=P("i")
    )
    y = jax.jit(f, out_shardings=columns)(jax.device_put(x, s))
    assert y.format.layout.major_to_minor == (1, 0), y.format
    parts = x.reshape(n, 8, 4)
    want = parts * np.arange(n)[:, None, None] + parts.sum(0)
    same(y, want.reshape(x.shape), rtol=1e-5)
    g = jax.jit(lambda v: v * 2 + v.sum(), in_shardings=columns, out_shardings=columns)
    y = np.asarray(y)
    # Where 2 v and the sum cancel, what is left has the rounding of the sum, whose order is
    # the devices': a step of f32 at the sum of magnitudes.
    same(g(jax.device_put(y, columns)), y * 2 + y.sum(), rtol=1e-4,
         atol=float(np.finfo(np.float32).eps * np.abs(y).sum()))


@case
def divides():
    # What nobody says follows from what the arguments are, and constraints are kept.
    w = rng.standard_normal((4, 16)).astype(np.float32)
    mesh = Mesh(np.array(jax.devices()), ("i",))
    put = lambda v, *s: jax.device_put(v, NamedSharding(mesh, P(*s)))
    y = jax.jit(lambda a, b: jnp.tanh(a @ b) + 1)(put(x, "i"), put(w))
    assert y.sharding.shard_shape(y.shape) == (8, 16), y.sharding
    same(y, np.tanh(x @ w) + 1, rtol=1e-5, atol=1e-5)

    def f(a, b):
        h = jax.lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P(None, "i")))
        return h * 2

    y = jax.jit(f)(put(x), put(w))
    assert y.sharding.shard_shape(y.shape) == (8 * n, 16 // n), y.sharding
    same(y, x @ w * 2, rtol=1e-5, atol=1e-5)
    # A sum over what lies in parts.
    y = jax.jit(lambda a: (a * a).sum(0))(put(x, "i"))
    same(y, (x * x).sum(0), rtol=1e-5)


# Results of constraints that a dim cannot be divided by, parts as summands, random keys.
@case
def wishes():
    mesh = Mesh(np.array(jax.devices()), ("i",))
    put = lambda v, *s: jax.device_put(v, NamedSharding(mesh, P(*s)))
    s = NamedSharding(mesh, P("i"))
    y = jax.jit(lambda a: jax.lax.with_sharding_constraint(a[: n + 1], s) * 2)(put(x, "i"))
    same(y, x[: n + 1] * 2)
    keys = jax.jit(lambda v: jax.vmap(jax.random.key)(v))(put(np.arange(4 * n), "i"))
    assert keys.sharding.shard_shape(keys.shape) == (4,), keys.sharding
    same(jax.random.key_data(keys), jax.random.key_data(jax.vmap(jax.random.key)(np.arange(4 * n))))


# Gradients of microbatches that stay summands through a scan meet once, behind it.
@case
def accumulates():
    import os

    mesh = jax.make_mesh((n,), ("i",), devices=jax.devices(),
                         axis_types=(jax.sharding.AxisType.Explicit,))
    w, v = (rng.standard_normal((4, 4)).astype(np.float32) for _ in range(2))
    batches = rng.standard_normal((3, 2 * n, 4)).astype(np.float32)

    def step(p, xs):
        def turn(acc, b):
            g = jax.grad(lambda p: jnp.sum(jnp.tanh(b @ p[0]) @ p[1]))(p)
            return jax.tree.map(jnp.add, acc, g), None

        zeros = jax.sharding.reshard(jax.tree.map(jnp.zeros_like, p), P(unreduced={"i"}))
        acc, _ = L.scan(turn, zeros, xs)
        return jax.sharding.reshard(acc, P())

    with jax.set_mesh(mesh):
        p = tuple(jax.device_put(q, P(reduced={"i"})) for q in (w, v))
        f = jax.jit(step)
        xs = jax.device_put(batches, P(None, "i", None))
        got = jax.tree.map(np.asarray, f(p, xs))
        text = f.lower(p, xs).compile().as_text()
    flat = batches.reshape(-1, 4)
    h = np.tanh(flat @ w)
    same(got[1], h.T @ np.ones((len(flat), 4)), rtol=1e-4, atol=1e-4)
    same(got[0], flat.T @ ((np.ones((len(flat), 4)) @ v.T) * (1 - h * h)), rtol=1e-4, atol=1e-4)
    if os.environ.get("PESTLE_PJRT_PROGRAM_TEXT"):
        assert text.count("all-reduce(") == 1 and "all-gather" not in text, text


# What as_text() shows of a program of several devices: what each of them runs.
@case
def text():
    import os

    mesh = Mesh(np.array(jax.devices()), ("i",))
    a = jax.device_put(x, NamedSharding(mesh, P("i")))
    f = jax.jit(lambda a: (a * a).sum(), out_shardings=NamedSharding(mesh, P()))
    for _ in range(2):
        got = f.lower(a).compile().as_text()
        f = jax.jit(lambda a: (a * a).sum(), out_shardings=NamedSharding(mesh, P()))
        if os.environ.get("PESTLE_PJRT_PROGRAM_TEXT"):
            assert got.count("all-reduce(") == 1 and "f32[8,4]" in got, got
        else:
            assert got is None, got


@case
def nothing():
    mesh = Mesh(np.array(jax.devices()), ("i",))
    f = jax.shard_map(lambda a: (), mesh=mesh, in_specs=P("i"), out_specs=())
    assert jax.jit(f)(x) == ()


@case
def auto_training():
    w = rng.standard_normal((4, 16)).astype(np.float32)

    def run(d):
        mesh = Mesh(np.array(d).reshape(n // 2, 2), ("dp", "tp"))
        p = jax.device_put(
            (w, w.T.copy()), (NamedSharding(mesh, P(None, "tp")), NamedSharding(mesh, P("tp")))
        )
        b = jax.device_put(x, NamedSharding(mesh, P("dp")))

        @jax.jit
        def step(p, b):
            l, g = jax.value_and_grad(
                lambda p: ((jax.nn.relu(b @ p[0]) @ p[1]) ** 2).mean()
            )(p)
            return jax.tree.map(lambda q, r: q - 1e-2 * r, p, g), l

        ls = []
        for _ in range(10):
            p, l = step(p, b)
            ls.append(float(l))
        return ls

    a, b = run(jax.devices()), run(cpus)
    same(np.array(a), np.array(b), rtol=2e-4)
    assert a[-1] < a[0]


bad = 0
for k, f in cases.items():
    if len(sys.argv) > 2 and k not in sys.argv[2:]:
        continue
    try:
        f()
        print("ok", k)
    except Exception as e:
        bad += 1
        print("FAIL", k, type(e).__name__, str(e)[:600])
sys.exit(bad)
"""


def run(count, python):
    env = dict(os.environ, JAX_PLATFORMS="pestle,cpu", PYTHONDONTWRITEBYTECODE="1",
               PESTLE_PJRT_DEVICE="cpu", PESTLE_CPU_DEVICES=str(count),
               XLA_FLAGS="--xla_force_host_platform_device_count=8",
               PYTHONPATH=str(SOURCE / "python"),
               PESTLE_PJRT_LIBRARY=str(LIBRARY.resolve()))
    if count == 2:
        env["PESTLE_PJRT_PROGRAM_TEXT"] = "1"
    env.pop("PJRT_NAMES_AND_LIBRARY_PATHS", None)
    done = subprocess.run([python, "-c", CASES, str(count)], env=env, check=False,
                          capture_output=True, text=True, timeout=200)
    if done.returncode == 0:
        return True
    print(f"{count} devices: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return False


def main():
    python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
    probe = subprocess.run([python, "-c", "import jax"], check=False, capture_output=True)
    if probe.returncode or not LIBRARY.exists():
        print("no JAX here")
        return 77
    good = True
    for count in (2, 4, 8):
        good &= run(count, python)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
