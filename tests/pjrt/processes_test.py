# SPDX-License-Identifier: Apache-2.0
"""JAX over two processes (jax.distributed) with devices of CPUs each: which devices there
are, shard_map, jit of values that lie in both, meshes of some devices and in another order,
training beside NumPy's, and what a process says when the other one dies, stops, never comes
or runs something else. Skips where JAX cannot be imported (PESTLE_JAX_PYTHON names a Python
that can)."""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ.get("PESTLE_SOURCE_DIR", HERE.parent.parent))
BUILD = pathlib.Path(os.environ.get("PESTLE_BUILD_DIR", "build/release"))
LIBRARY = BUILD / "pjrt_plugin_pestle.so"

BEGIN = r"""
import os, sys, time
import numpy as np
import jax
index, count, port, each = (int(a) for a in sys.argv[1:5])
jax.distributed.initialize(f"127.0.0.1:{port}", count, index)
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jax.experimental import multihost_utils as hosts
devices, L = jax.devices(), jax.lax
n = len(devices)


def place(x, mesh, *spec):
    return jax.make_array_from_callback(x.shape, NamedSharding(mesh, P(*spec)), lambda i: x[i])


def same(a, b, **k):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), **k)


def parts(a, whole, **k):
    assert {s.device for s in a.addressable_shards} <= set(jax.local_devices())
    for s in a.addressable_shards:
        same(s.data, whole[s.index], **k)
"""

CASES = BEGIN + r"""
# Which devices there are.
assert jax.process_index() == index and jax.process_count() == count
assert [d.id for d in devices] == list(range(count * each)), devices
assert [d.process_index for d in devices] == [i // each for i in range(n)]
assert jax.local_devices() == devices[index * each:(index + 1) * each]
assert [d.local_hardware_id for d in jax.local_devices()] == list(range(each))
assert {d.device_kind for d in devices} == {os.environ["PESTLE_PJRT_DEVICE"].split(":")[0]}
other = devices[(1 - index) * each]
try:
    jax.jit(lambda v: v + 1)(jax.device_put(np.ones(3), other))
    raise SystemExit("a device of another process was used")
except (ValueError, RuntimeError) as e:
    assert "addressable" in str(e) or "process" in str(e), e

rng = np.random.default_rng(0)
x = rng.standard_normal((8 * n, 4)).astype(np.float32)
line = Mesh(np.array(devices), ("i",))
sm = lambda f, i, o, m=line: jax.jit(jax.shard_map(f, mesh=m, in_specs=i, out_specs=o))

# Collectives, of all kinds of them; a program that runs again.
a = place(x, line, "i")
blocks = x.reshape(n, 8, 4)
for _ in range(3):
    same(sm(lambda v: L.psum(v, "i"), P("i"), P())(a), blocks.sum(0), rtol=1e-5, atol=1e-5)
same(sm(lambda v: L.pmax(v, "i"), P("i"), P())(a), blocks.max(0))
parts(sm(lambda v: L.ppermute(v, "i", [(k, (k + 1) % n) for k in range(n)]), P("i"), P("i"))(a),
      np.roll(blocks, 1, 0).reshape(x.shape))
parts(sm(lambda v: L.psum_scatter(v, "i", scatter_dimension=0, tiled=True), P("i"), P("i"))(a),
      blocks.sum(0), rtol=1e-5, atol=1e-5) if 8 % n == 0 else None
gathered = sm(lambda v: L.all_gather(v, "i", tiled=True) + L.axis_index("i"), P("i"), P("i"))(a)
parts(gathered, np.concatenate([x + k for k in range(n)]))
big = place(np.ones((n, 1 << 18), np.float32), line, "i")
same(sm(lambda v: L.psum(v, "i"), P("i"), P())(big)[0, :5], np.full(5, n))

# Some of the devices, of both processes, and all of them in another order; each process alone.
some = Mesh(np.array([devices[0], devices[-1]]), ("i",))
same(sm(lambda v: L.psum(v, "i"), P("i"), P(), some)(place(x, some, "i")),
     x.reshape(2, 4 * n, 4).sum(0), rtol=1e-5, atol=1e-5)
back = Mesh(np.array(devices[::-1]), ("i",))
parts(sm(lambda v: v + L.axis_index("i"), P("i"), P("i"), back)(place(x, back, "i")),
      x + np.repeat(np.arange(n), 8)[:, None])
own = Mesh(np.array(jax.local_devices()), ("i",))
y = jax.device_put(x, NamedSharding(own, P("i")))
for _ in range(1 + index):  # one process may run what the other does not
    same(sm(lambda v: L.psum(v, "i"), P("i"), P(), own)(y) if each > 1 else y.sum(0),
         x.reshape(each, -1, 4).sum(0) if each > 1 else x.sum(0), rtol=1e-5, atol=1e-5)
same(jax.jit(lambda v: v @ v.T)(x), x @ x.T, rtol=1e-4, atol=1e-5)

# jit divides what lies in both.
whole = NamedSharding(line, P())
h = jax.jit(lambda v: (jnp.tanh(v @ v.T).sum(1), v.sum(), jnp.sort(v, 0)[:4]), out_shardings=whole)
for got, want in zip(h(a), (np.tanh(x @ x.T).sum(1), x.sum(), np.sort(x, 0)[:4])):
    same(got, want, rtol=1e-4, atol=1e-4)
parts(jax.jit(lambda v: v * 2 + 1)(a), x * 2 + 1)

# Training: data-parallel, weights in parts too, donated; 20 more programs in between.
w, v, t = (rng.standard_normal(s).astype(np.float32) for s in ((4, 8), (8, 1), (8 * n, 1)))
lay = Mesh(np.array(devices).reshape(count, each), ("data", "model"))


def loss(p, x, t):
    return ((jnp.tanh(x @ p[0]) @ p[1] - t) ** 2).mean()


def step(p, x, t):
    l, g = jax.value_and_grad(loss)(p, x, t)
    return jax.tree.map(lambda q, r: q - 0.1 * r, p, g), l


def by_hand(p, x, t):
    h = np.tanh(x @ p[0])
    e = 2 * (h @ p[1] - t) / t.size
    g = x.T @ ((e @ p[1].T) * (1 - h * h)), h.T @ e
    return [q - 0.1 * r for q, r in zip(p, g)], float(((h @ p[1] - t) ** 2).mean())


p = place(w, lay, None, "model"), place(v, lay, "model", None)
f = jax.jit(step, donate_argnums=0)
b, q = (place(x, lay, "data"), place(t, lay, "data")), [w.astype(np.float64), v.astype(np.float64)]
for i in range(20):
    p, l = f(p, *b)
    q, k = by_hand(q, x, t)
    same(float(l), k, rtol=1e-4)
    same(jax.jit(lambda u, i=i: (u * i).sum(0), out_shardings=whole)(a), x.sum(0) * i, rtol=1e-4,
         atol=1e-4)

# JAX's own helpers.
same(hosts.process_allgather(np.array([index + 5])).ravel(), np.arange(count) + 5)
same(hosts.broadcast_one_to_all(np.array([index + 7])), [7])
hosts.sync_global_devices("end")
print("good", flush=True)
"""

# Process 1 ends, stops or waits in the midst of it, in the way that argument 5 says.
FAULT = BEGIN + r"""
way = sys.argv[5]
line = Mesh(np.array(devices), ("i",))
if way == "other" and index == 1:
    f = lambda v: L.psum(v * 3, "i")
else:
    f = lambda v: L.psum(v, "i")
f = jax.jit(jax.shard_map(f, mesh=line, in_specs=P("i"), out_specs=P()))
a = place(np.ones((n, 1000), np.float32), line, "i")
try:
    for i in range(1000000):
        if i == 20 and way != "other":
            print("ready", flush=True)
            if way == "late" and index == 1:
                time.sleep(1000)
        f(a).block_until_ready()
    print("nothing went wrong")
except Exception as e:
    print("said", str(e).replace("\n", " "), flush=True)
os._exit(0)
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Two:
    """Two processes that run |code|; none is left when it ends. "{i}" in the variables of
    |more| is the process's number."""

    def __init__(self, python, code, each, *arguments, **more):
        self.port = free_port()
        self.files = [tempfile.TemporaryFile("w+") for _ in range(2)]
        self.all = {}
        env = {k: v for k, v in os.environ.items() if not k.startswith("PESTLE_WORLD")}
        env |= {"JAX_PLATFORMS": "pestle,cpu", "PYTHONDONTWRITEBYTECODE": "1",
                "PESTLE_PJRT_DEVICE": "cpu", "PESTLE_CPU_DEVICES": str(each),
                "PYTHONPATH": str(SOURCE / "python"), "PESTLE_THREADS": "1",
                "PESTLE_PJRT_LIBRARY": str(LIBRARY.resolve())} | more
        env.pop("PJRT_NAMES_AND_LIBRARY_PATHS", None)
        for i in (0, 1):
            own = {k: v.replace("{i}", str(i)) for k, v in env.items()}
            self.all[i] = subprocess.Popen(
                [python, "-c", code, str(i), "2", str(self.port), str(each), *arguments],
                env=own, stdout=self.files[i], stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.all.values():
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.kill()
            p.wait()
        for f in self.files:
            f.close()

    def text(self, i):
        self.files[i].flush()
        return os.pread(self.files[i].fileno(), 1 << 20, 0).decode(errors="replace")

    def until(self, i, word, seconds):
        """Waits for |word| in what process |i| says; the line that has it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            over = self.all[i].poll() is not None
            for line in self.text(i).split("\n"):
                if line.startswith(word):
                    return line
            if over:
                break
            time.sleep(0.05)
        raise AssertionError(f"process {i} does not say '{word}':\n" +
                             "\n".join(f"--- {k}\n{self.text(k)[-3000:]}" for k in self.all))


def cases(python, each, **more):
    with Two(python, CASES, each, **more) as two:
        for i in (0, 1):
            two.until(i, "good", 1000)
        for i in (0, 1):
            assert two.all[i].wait(30) == 0, two.text(i)[-3000:]


def fault(python, way, words, slack):
    late = {"PESTLE_WORLD_DEADLINE_MS": "3000"}
    with Two(python, FAULT, 1, way, **late) as two:
        if way != "other":
            for i in (0, 1):
                two.until(i, "ready", 100)
            time.sleep(0.3)
        begin = time.monotonic()
        if way == "kill":
            two.all[1].kill()
        elif way == "stop":
            two.all[1].send_signal(signal.SIGSTOP)
        said = two.until(0, "said", 100 if way == "other" else 3 + 2 + slack)
        seconds = time.monotonic() - begin
        assert any(w in said for w in words), said
        print(f"{way}: {seconds:.1f} s: {said[5:180]}")


def alone(python):
    """Process 1 connects to JAX's own service, and never makes a client."""
    wait = BEGIN.split("import jax.numpy")[0] + "time.sleep(1000)\n"
    ask = BEGIN.split("import jax.numpy")[0] + r"""
try:
    jax.devices()
except Exception as e:
    print("said", str(e).replace("\n", " "), flush=True)
os._exit(0)
"""
    code = f"import sys\nif int(sys.argv[1]):\n exec({wait!r})\nelse:\n exec({ask!r})\n"
    with Two(python, code, 1, PESTLE_WORLD_CREATE_MS="2000") as two:
        said = two.until(0, "said", 100)
        assert "process 1 of 2 has not made a client of Pestle for 2.0 s" in said, said


def main():
    python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
    probe = subprocess.run([python, "-c", "import jax"], check=False, capture_output=True)
    if probe.returncode or not LIBRARY.exists():
        print("no JAX here")
        return 77
    slack = float(os.environ.get("PESTLE_WORLD_SLACK", 30))
    cases(python, 2)
    cases(python, 1)
    fault(python, "kill", ("rank 1 has died", "rank 1 has gone"), slack)
    fault(python, "stop", ("rank 1 has not come to", "rank 1 has come to, but not done"), slack)
    fault(python, "late", ("rank 1 has not come to",), slack)
    fault(python, "other", ("rank 1 came with plan",), slack)
    alone(python)
    return 0


if __name__ == "__main__":
    sys.exit(main())
