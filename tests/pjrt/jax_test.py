# SPDX-License-Identifier: Apache-2.0
"""JAX itself on the plugin: with its Python side and without, each case in a process of
its own. Skips where JAX cannot be imported (PESTLE_JAX_PYTHON names a Python that can)."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ.get("PESTLE_SOURCE_DIR", HERE.parent.parent))
BUILD = pathlib.Path(os.environ.get("PESTLE_BUILD_DIR", "build/release"))
LIBRARY = BUILD / "pjrt_plugin_pestle.so"

START = """
import os, sys
import jax, jax.numpy as jnp, numpy as np
assert jax.devices()[0].platform == "pestle", jax.devices()
def same(got, want, **tolerance):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), **tolerance)
cpu = jax.devices("cpu")[0]
"""

# name -> (needs the Python side, source)
CASES = {
    "add": (False, """
same(jax.jit(lambda x: x + 1)(np.arange(5.)), np.arange(5.) + 1)
x = np.arange(12000, dtype=np.float32).reshape(100, 120)
same(jax.device_put(x.T), x.T)
same(jax.jit(lambda x: x[::2].T @ x[1::2])(x), x[::2].T @ x[1::2], rtol=1e-5)
assert np.asarray(jax.device_put(np.int32(7))) == 7
"""),
    "train": (False, """
def loss(p, x, y):
    h = jnp.tanh(x @ p["w"] + p["b"])
    return jnp.mean((h @ p["v"] - y) ** 2)
@jax.jit
def step(p, x, y):
    value, g = jax.value_and_grad(loss)(p, x, y)
    return jax.tree.map(lambda a, b: a - .1 * b, p, g), value
def train(device):
    with jax.default_device(device):
        k = jax.random.split(jax.random.key(0), 4)
        p = {"w": jax.random.normal(k[0], (8, 32)), "b": jnp.zeros(32),
             "v": jax.random.normal(k[1], (32, 1)) / 6}
        x, y = jax.random.normal(k[2], (64, 8)), jax.random.normal(k[3], (64, 1))
        losses = []
        for _ in range(30):
            p, value = step(p, x, y)
            losses.append(value)
        return np.array([float(v) for v in losses])
got, want = train(jax.devices()[0]), train(cpu)
same(got, want, rtol=1e-4)
assert got[-1] < got[0]
"""),
    "loops": (False, """
f = jax.jit(lambda x: jax.lax.scan(lambda c, y: (c + y, c * y), 0., x))
c, ys = f(np.arange(50, dtype=np.float32))
assert c == 1225 and ys.shape == (50,)
g = jax.jit(lambda n: jax.lax.while_loop(lambda i: i < n, lambda i: i * 2, 1))
assert g(1000) == 1024
h = jax.jit(lambda i, x: jax.lax.cond(i > 0, jnp.sin, jnp.cos, x))
same(h(1, 2.), np.sin(2.), rtol=1e-6)
same(h(0, 2.), np.cos(2.), rtol=1e-6)
"""),
    "callback_behind": (True, """
import threading, time
later, went = [], threading.Event()
def ask(x):
    went.wait(20)
    return np.asarray(later[0]) + x
f = jax.jit(lambda x: jax.pure_callback(ask, jax.ShapeDtypeStruct((3,), jnp.float32), x))
g = jax.jit(lambda x: x @ x)
y = jax.device_put(np.ones((300, 300), np.float32))
g(y).block_until_ready()
x = jnp.ones(3, jnp.float32)
r = f(x)
later.append(g(y)[0, :3])
went.set()
try:
    r.block_until_ready()
    raise SystemExit("the callback got what was computed behind it")
except Exception as e:
    assert "behind it" in str(e), e
# What was computed before is there.
later[0] = g(y)[0, :3]
same(f(x), np.full(3, 301.))
"""),
    "merging": (True, """
import subprocess
TRAIN = '''
import hashlib, sys, time, jax, jax.numpy as jnp, numpy as np
def loss(p, x): return jnp.sum(jnp.tanh(p["w"] @ x) ** 2 + p["b"])
f = jax.jit(loss, compiler_options={"pestle_merge": sys.argv[1] == "true"})
g = jax.jit(jax.grad(loss))
u = jax.jit(lambda p, d: jax.tree.map(lambda a, b: a - 1e-4 * b, p, d), donate_argnums=0)
p = {"w": jax.device_put(np.linspace(-1, 1, 200 * 200, dtype=np.float32).reshape(200, 200)),
     "b": jax.device_put(np.zeros(200, np.float32))}
x = jax.device_put(np.linspace(0, 1, 200 * 200, dtype=np.float32).reshape(200, 200))
seen = hashlib.sha256()
for i in range(60):
    l = f(p, x)
    p = u(p, g(p, x))
    seen.update(np.asarray(l).tobytes())
    if i == 20: time.sleep(1)
seen.update(np.asarray(p["w"]).tobytes())
print(seen.hexdigest())
'''
def train(merge, may="true"):
    env = {**os.environ, "PESTLE_PJRT_TIMES": "1", "PESTLE_PJRT_MERGE": merge}
    return subprocess.run([sys.executable, "-c", TRAIN, may], env=env, capture_output=True,
                          text=True, check=True)
single, merged = train("0"), train("soon")
assert single.stdout == merged.stdout, (single.stdout, merged.stdout)
assert "jit_loss+" not in single.stderr
apart = train("soon", "false")
assert single.stdout == apart.stdout and "jit_loss+" not in apart.stderr, apart.stderr
assert "jit_loss+jit_loss+jit__lambda" in merged.stderr, merged.stderr
"""),
    "donation": (True, """
f = jax.jit(lambda x: x * 2, donate_argnums=0)
a = np.arange(10000, dtype=np.float32)
x = jax.device_put(a)
y = f(x)
assert x.is_deleted()
same(y, a * 2)
assert a[5] == 5
seen = np.asarray(y)
z = f(y)
assert y.is_deleted() and seen[5] == 10
same(z, a * 4)
"""),
    "callbacks": (True, """
seen = []
x = jnp.arange(3.)
same(jax.jit(lambda x: jax.pure_callback(np.sin, x, x))(x), np.sin(np.arange(3.)),
     rtol=1e-6)
c = jnp.array([1 + 2j, 3 - 1j])
same(jax.jit(lambda x: jax.pure_callback(np.conj, x, x))(c), np.conj(c))
def count(x):
    def body(i, c):
        jax.debug.callback(lambda i: seen.append(int(i)), i, ordered=True)
        return c + 1
    return jax.lax.fori_loop(0, 20, body, x)
assert jax.jit(count)(0) == 20
jax.effects_barrier()
assert seen == list(range(20)), seen
def io(x):
    a = jax.experimental.io_callback(lambda v: v + 1, x, x, ordered=True)
    return jax.experimental.io_callback(lambda v: v * 3, a, a, ordered=True)
import jax.experimental
assert jax.jit(io)(1.) == 6
# One that runs JAX on the same device.
inner = lambda v: np.asarray(jax.jit(lambda z: z * 3)(jnp.asarray(v)))
same(jax.jit(lambda x: jax.pure_callback(inner, x, x) + 1)(x), np.arange(3.) * 3 + 1)
try:
    jax.jit(lambda x: jax.pure_callback(lambda v: 1 / 0, x, x))(x).block_until_ready()
    raise AssertionError("no error")
except jax.errors.JaxRuntimeError as e:
    assert "ZeroDivisionError" in str(e)
"""),
    "matrices": (True, """
m = np.random.RandomState(0).randn(3, 6, 6).astype(np.float32)
s = m + m.transpose(0, 2, 1)
same(jnp.linalg.eigh(s)[0], np.linalg.eigh(s)[0], rtol=1e-3, atol=1e-4)
u, d, v = jnp.linalg.svd(m)
same(u * d[:, None] @ v, m, atol=1e-4)
l = jnp.linalg.cholesky(m @ m.transpose(0, 2, 1))
same(l @ l.transpose(0, 2, 1), m @ m.transpose(0, 2, 1), atol=1e-3)
assert np.isnan(np.asarray(jnp.linalg.cholesky(jnp.ones((2, 2))))[[0, 1, 1], [0, 0, 1]]).all()
q, r = jnp.linalg.qr(m)
same(q @ r, m, atol=1e-5)
same(jnp.linalg.solve(m, m), np.broadcast_to(np.eye(6), m.shape), atol=1e-3)
same(np.sort_complex(jnp.linalg.eigvals(m[0])), np.sort_complex(np.linalg.eigvals(m[0])),
     rtol=1e-3)
z = m[0] + 1j * m[0].T
w, v = jnp.linalg.eig(z)
same(z @ np.asarray(v), np.asarray(v) * np.asarray(w), rtol=1e-3, atol=1e-3)
h = z + z.conj().T
w, v = jnp.linalg.eigh(h)
same(h @ np.asarray(v), np.asarray(v) * np.asarray(w), rtol=1e-3, atol=1e-3)
v, w = jax.lax.linalg.eigh(h, subset_by_index=(1, 3))
same(w, np.linalg.eigvalsh(h)[1:3], rtol=1e-3, atol=1e-3)
import jax.scipy.linalg as jsl
for x in (m[0], z):
    t, u = map(np.asarray, jsl.schur(x))
    same(u @ t @ u.conj().T, x, atol=1e-3)
    q, r, order = map(np.asarray, jsl.qr(x, pivoting=True))
    same(q @ r, x[:, order], atol=1e-3)
    t, u = map(np.asarray, jsl.hessenberg(x, calc_q=True))
    same(u @ t @ u.conj().T, x, atol=1e-3)
for axis, back in ((0, False), (1, True)):
    y = np.flip(m[0], axis) if back else m[0]
    y = np.logaddexp.accumulate(y, axis)
    same(jax.lax.cumlogsumexp(m[0], axis, reverse=back), np.flip(y, axis) if back else y,
         rtol=1e-5)
# Nothing of it is computed by Python.
text = jax.jit(jnp.linalg.eig).lower(z).as_text()
assert "lapack_cgeev_ffi" in text and "python_callback" not in text
"""),
    "dlpack": (True, """
x = jnp.arange(4096, dtype=jnp.float32).reshape(4, 1024)
y = np.from_dlpack(x)
same(y, x)
assert y.ctypes.data == np.asarray(x).ctypes.data and not y.flags.writeable
class Old:  # a consumer's view of DLPack before 1.0
    def __dlpack_device__(self): return x.__dlpack_device__()
    def __dlpack__(self, stream=None): return x.__dlpack__(stream=stream)
z = jnp.from_dlpack(Old())
same(z, x)
assert z.devices() == x.devices()
n = np.ones((3, 1000), np.float32)
z = jnp.from_dlpack(n)
assert z.devices() == {jax.devices()[0]} and (np.asarray(z) == 1).all()
assert jnp.from_dlpack(n, device=cpu).devices() == {cpu}
c = jnp.from_dlpack(n, copy=True)
n[:] = 2
assert (np.asarray(c) == 1).all()
same(jnp.from_dlpack(x), x)
for wrong in (lambda: x.__dlpack__(dl_device=(2, 0)), lambda: np.from_dlpack(
        jnp.ones(3, jnp.bfloat16))):
    try:
        wrong()
    except BufferError:
        continue
    raise AssertionError("was taken")
same(jnp.from_dlpack(jax.device_put(np.arange(5.), cpu)), np.arange(5.))
"""),
    "serialize": (False, """
from jax.experimental import serialize_executable as se
c = jax.jit(lambda x: jnp.sin(x) * 2).lower(jnp.ones(8)).compile()
assert c.cost_analysis()["flops"] > 0
assert c.memory_analysis().output_size_in_bytes == 32
again = se.deserialize_and_load(*se.serialize(c))
same(again(jnp.ones(8)), np.full(8, 2 * np.sin(1)), rtol=1e-6)
"""),
    "options": (False, """
import os, subprocess, tempfile
f = lambda x: jnp.tanh(x @ x) + 1
x = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
def jit(**options):
    return jax.jit(f, compiler_options={f"pestle_{k}": v for k, v in options.items()})
with tempfile.TemporaryDirectory() as folder:
    same(jit(dump=folder)(x), f(x), rtol=1e-5)
    files = sorted(os.listdir(folder))
    assert all(n.startswith("jit__lambda") for n in files), files
    for stage in ("graph", "fused", "schedule", "kernels", "source", "plan", "explain"):
        assert any(f".{stage}." in n for n in files), (stage, files)
    graph = next(n for n in files if ".graph." in n)
    assert "dot_general" in open(os.path.join(folder, graph)).read()
    os.chdir(folder)
    same(jit(tune_seconds=0.05)(x), f(x), rtol=1e-5)
    assert "pestle.lock" in open("pestle.lock").read()
    same(jit(merge=False)(x), f(x), rtol=1e-5)
    for bad, why in (({"dump": folder + "/none"}, "pestle_dump"),
                     ({"merge": "perhaps"}, "pestle_merge may be true or false"),
                     ({"tune_seconds": -1.}, "pestle_tune_seconds may be 0")):
        try:
            jit(**bad)(x)
            raise AssertionError(bad)
        except jax.errors.JaxRuntimeError as e:
            assert why in str(e), e
    trace = os.path.join(folder, "trace.json")
    subprocess.run([sys.executable, "-c", "import jax; jax.jit(lambda x: x + 1)(1.)"],
                   env={**os.environ, "JAX_PJRT_CLIENT_CREATE_OPTIONS": f"trace:{trace}"},
                   check=True, capture_output=True)
    assert "traceEvents" in open(trace).read()
    os.chdir("/")
"""),
    "errors": (False, """
try:
    jax.jit(lambda x: x, compiler_options={"nothing": True})(1.)
    raise AssertionError("no error")
except jax.errors.JaxRuntimeError as e:
    assert "No such compile option: 'nothing'" in str(e)
x = jnp.ones(3)
x.delete()
try:
    x + 1
    raise AssertionError("no error")
except RuntimeError as e:
    assert "deleted" in str(e)
"""),
    "fork": (False, """
f = jax.jit(lambda x: x @ x)
x = f(jnp.ones((200, 200)))
child = os.fork()
if not child:
    try:
        f(x)
        os._exit(1)
    except Exception as e:
        os._exit(0 if "child of" in str(e) else 2)
assert os.waitpid(child, 0)[1] == 0
# (A child that ends the interpreter crashes in jaxlib, on JAX's own CPU backend too.)
for _ in range(20):
    x = f(x * 1e-3)
sys.exit(0)  # with runs in the queue
"""),
}


def run(name, has_python_side, python):
    env = dict(os.environ, JAX_PLATFORMS="pestle,cpu", PYTHONDONTWRITEBYTECODE="1",
               PESTLE_PJRT_DEVICE="cpu")
    if has_python_side:
        env["PYTHONPATH"] = str(SOURCE / "python")
        env["PESTLE_PJRT_LIBRARY"] = str(LIBRARY.resolve())
    else:
        env["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"pestle:{LIBRARY.resolve()}"
    done = subprocess.run([python, "-c", START + CASES[name][1]], env=env, check=False,
                          capture_output=True, text=True, timeout=120)
    if done.returncode == 0:
        return True
    print(f"{name}, {'with' if has_python_side else 'without'} the Python side: "
          f"{done.returncode}\n{done.stderr[-3000:]}")
    return False


def main():
    python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
    probe = subprocess.run([python, "-c", "import jax, scipy"], check=False,
                           capture_output=True)
    if probe.returncode or not LIBRARY.exists():
        print("no JAX here")
        return 77
    good = True
    for name, (needs_python_side, _) in CASES.items():
        good &= run(name, True, python)
        if not needs_python_side:
            good &= run(name, False, python)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
