#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operations of JAX by category: how many are compiled for the device, and how many fall
back to the reference backend. None may; values are JAX's own CPU backend's.

    coverage_test.py                 the CPU (skips where JAX cannot be imported)
    PESTLE_PJRT_DEVICE=cuda coverage_test.py

A client with PESTLE_PJRT_STRICT=1 refuses what only the reference backend has, so that
an operation that falls back is an error with its name."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ.get("PESTLE_SOURCE_DIR", HERE.parent.parent))
BUILD = pathlib.Path(os.environ.get("PESTLE_BUILD_DIR", "build/release"))
LIBRARY = pathlib.Path(os.environ.get("PESTLE_PJRT_LIBRARY",
                                      BUILD / "pjrt_plugin_pestle.so"))

# Names stand for arrays that the child makes: x, y f32 [4, 6], p positive, u within
# -1 and 1, i, j i32, k, l bool, c complex, a, b matrices, s symmetric, t [2, 8, 8],
# n an image, w its kernel.
CATEGORIES = {
    "element-wise": """x + y; x - y; x * y; x / y; jnp.exp(x); jnp.log(p); jnp.sin(x);
        jnp.cos(x); jnp.tan(u); jnp.tanh(x); jnp.sinh(x); jnp.cosh(x); jnp.arcsin(u);
        jnp.arccos(u); jnp.arctan(x); jnp.arctan2(x, y); jnp.arcsinh(x); jnp.arctanh(u);
        abs(x); jnp.sign(x); jnp.floor(x); jnp.ceil(x); jnp.round(x); p ** y;
        jnp.sqrt(p); lax.rsqrt(p); jnp.cbrt(x); -x; jnp.clip(x, -1, 1); jnp.log1p(p);
        jnp.expm1(x); jnp.square(x); jax.nn.sigmoid(x); jax.nn.gelu(x); jax.nn.softplus(x);
        x % p; jnp.hypot(x, y); jax.scipy.special.erf(x); jax.scipy.special.erfinv(u);
        lax.lgamma(p); lax.digamma(p); jnp.nextafter(x, y); jnp.copysign(x, y)""",
    "reductions": """x.sum(); x.sum(0); x.max(1); x.min(); x.prod(1); x.mean(0);
        k.all(1); k.any(); jnp.argmax(x, 1); jnp.argmin(x, 0); jnp.var(x, 1);
        jnp.median(x, 1); jax.nn.logsumexp(x, 1); jnp.cumsum(x, 1); jnp.cumprod(x, 0);
        lax.cummax(x, 1); lax.reduce_and(k, (1,)); lax.reduce_or(k, (0,))""",
    "linear algebra": """a @ b; jnp.dot(x, x.T); jnp.einsum('bij,bjk->bik', t, t);
        jnp.linalg.cholesky(s); jnp.linalg.qr(a); lax.linalg.lu(t)[0];
        jax.scipy.linalg.solve_triangular(s, s); jnp.linalg.solve(s, s);
        jnp.linalg.inv(s); jnp.linalg.det(s); jnp.linalg.eigvalsh(s);
        jnp.linalg.svd(a, compute_uv=False); jnp.linalg.norm(x, axis=1); jnp.outer(x, y)""",
    "convolutions": """lax.conv_general_dilated(n, w, (1, 1), 'SAME',
            dimension_numbers=('NHWC', 'HWIO', 'NHWC'));
        lax.conv_general_dilated(n.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), (2, 2),
            'VALID', dimension_numbers=('NCHW', 'OIHW', 'NCHW'));
        lax.conv_general_dilated(n, w, (1, 1), 'SAME', rhs_dilation=(2, 2),
            dimension_numbers=('NHWC', 'HWIO', 'NHWC'));
        lax.conv_transpose(n, w, (2, 2), 'SAME');
        jax.grad(lambda v: lax.conv_general_dilated(n, v, (1, 1), 'SAME',
            dimension_numbers=('NHWC', 'HWIO', 'NHWC')).sum())(w)""",
    "shape": """x.reshape(3, 8); x.T; jnp.broadcast_to(x, (2, 4, 6)); x[1:3, ::2];
        jnp.concatenate([x, y], 1); jnp.pad(x, 1); x[::-1]; jnp.take(x, i[0] % 4, 0);
        x.at[i[0] % 4].add(y[0]); lax.dynamic_slice(x, (i[0, 0] % 3, 1), (2, 3));
        lax.dynamic_update_slice(x, y[:2, :3], (i[0, 0] % 3, 1)); jnp.sort(x, 1);
        jnp.argsort(x, 0); jnp.arange(12.) + x[0, 0]; jnp.squeeze(x[:1]); jnp.tile(x, (2, 1));
        jnp.repeat(x, 2, 0); jnp.roll(x, 1); jnp.stack([x, y]); lax.top_k(x, 3)[0];
        jnp.tril(t); jnp.diagonal(s); jnp.take_along_axis(x, i % 6, 1)""",
    "control flow": """lax.cond(x[0, 0] > 0, lambda z: z + 1, lambda z: z - 1, x);
        lax.while_loop(lambda z: z.sum() < 1e3, lambda z: z * z + 2, x);
        lax.scan(lambda z, v: (z + v, z * v), x[0], y)[1];
        lax.fori_loop(0, 7, lambda m, z: z * 0.5 + m, x);
        lax.switch(i[0, 0] % 3, [jnp.sin, jnp.cos, jnp.tanh], x);
        lax.map(jnp.sum, x); lax.associative_scan(jnp.add, x)""",
    "random": """jax.random.uniform(jax.random.key(3), (5, 7));
        jax.random.normal(jax.random.key(3), (5, 7)); jax.random.bits(jax.random.key(3), (9,));
        jax.random.randint(jax.random.key(3), (9,), 0, 100);
        jax.random.permutation(jax.random.key(3), x);
        jax.random.key_data(jax.random.split(jax.random.key(3), 3));
        lax.rng_bit_generator(jnp.arange(4, dtype=jnp.uint32), (8,))[1]""",
    "comparison": "x == y; x != y; x < y; x <= y; x > y; x >= y; jnp.isclose(x, y)",
    "bitwise": """i & j; i | j; i ^ j; ~i; i << (j & 7); i >> 2;
        lax.shift_right_logical(i, j & 7); lax.population_count(i); lax.clz(i)""",
    "types": """x.astype(jnp.int32); i.astype(jnp.float32); x.astype(jnp.bfloat16);
        k.astype(jnp.int8); lax.bitcast_convert_type(x, jnp.int32);
        lax.reduce_precision(x, 5, 10); x.astype(jnp.float8_e4m3fn).astype(jnp.float32)""",
    "fft": """jnp.fft.fft(c); jnp.fft.ifft(c); jnp.fft.rfft(x); jnp.fft.irfft(c);
        jnp.fft.fft2(c); jnp.fft.fftn(x)""",
    "pooling": """lax.reduce_window(n, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID');
        lax.reduce_window(n, 0., lax.add, (1, 3, 3, 1), (1, 1, 1, 1), 'SAME');
        jax.grad(lambda v: lax.reduce_window(v, -jnp.inf, lax.max, (1, 2, 2, 1),
            (1, 2, 2, 1), 'VALID').sum())(n)""",
    "other": """jnp.real(c); jnp.imag(c); lax.complex(x, y); jnp.isfinite(x);
        jnp.where(k, x, y); lax.clamp(-1., x, 1.); jax.nn.softmax(x); jnp.conj(c) * c;
        jnp.interp(x[0], jnp.arange(6.), y[0]); jnp.searchsorted(jnp.sort(x[0]), y)""",
}

CHILD = """
import sys
import jax, jax.numpy as jnp, numpy as np
from jax import lax
r = np.random.RandomState(5)
f = lambda *d: r.standard_normal(d).astype(np.float32)
e = {"x": f(4, 6), "y": f(4, 6), "p": r.uniform(.2, 3, (4, 6)).astype(np.float32),
     "u": r.uniform(-.9, .9, (4, 6)).astype(np.float32), "k": r.rand(4, 6) > .4,
     "i": r.randint(0, 99, (4, 6)).astype(np.int32),
     "j": r.randint(0, 99, (4, 6)).astype(np.int32), "l": r.rand(4, 6) > .6,
     "c": (f(4, 6) + 1j * f(4, 6)).astype(np.complex64), "a": f(6, 5), "b": f(5, 6),
     "s": 8 * np.eye(6, dtype=np.float32), "t": f(2, 8, 8) + 3 * np.eye(8, dtype=np.float32),
     "n": f(2, 8, 8, 3), "w": f(3, 3, 3, 4)}
m = f(6, 6)
e["s"] += (m + m.T) / 2
names = list(e)
device, cpu = jax.devices()[0], jax.devices("cpu")[0]
for number, text in enumerate(sys.stdin.read().split(";")):
    text = " ".join(text.split())
    code = eval("lambda " + ", ".join(names) + ": " + text,
                {"jax": jax, "jnp": jnp, "lax": lax, "np": np})
    g = jax.jit(lambda *v: jax.tree.leaves(code(*v)))
    try:
        with jax.default_device(device):
            got = [np.asarray(z) for z in g(*e.values())]
    except Exception as error:
        print("fallen", text, "|", " ".join(str(error).split())[:200], flush=True)
        continue
    with jax.default_device(cpu):
        want = [np.asarray(z) for z in g(*e.values())]
    for z, o in zip(got, want):
        if z.dtype.kind not in "fc" or z.dtype.itemsize < 4:
            same = np.array_equal(z, o)
        else:
            same = np.allclose(abs(z) if "qr" in text else z, abs(o) if "qr" in text else o,
                               rtol=2e-3, atol=2e-4, equal_nan=True)
        if not same:
            print("wrong", text, flush=True)
            break
    else:
        print("compiled", text, flush=True)
"""


def main():
    python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
    probe = subprocess.run([python, "-c", "import jax, scipy"], check=False,
                           capture_output=True)
    if probe.returncode or not LIBRARY.exists():
        print("no JAX here")
        return 77
    env = dict(os.environ, JAX_PLATFORMS="pestle,cpu", PYTHONDONTWRITEBYTECODE="1",
               PESTLE_PJRT_STRICT="1", PESTLE_PJRT_LIBRARY=str(LIBRARY.resolve()),
               PYTHONPATH=os.pathsep.join(filter(None, [str(SOURCE / "python"),
                                                        os.environ.get("PYTHONPATH")])))
    env.setdefault("PESTLE_PJRT_DEVICE", "cpu")
    bad = 0
    print(f"{'category':16}{'compiled':>9}{'fallen back':>13}{'wrong':>7}")
    for name, text in CATEGORIES.items():
        done = subprocess.run([python, "-c", CHILD], input=text, env=env, check=False,
                              capture_output=True, text=True, timeout=600)
        rows = [line.split(" ", 1) for line in done.stdout.splitlines()]
        count = {w: sum(r[0] == w for r in rows) for w in ("compiled", "fallen", "wrong")}
        print(f"{name:16}{count['compiled']:9}{count['fallen']:13}{count['wrong']:7}")
        for word, rest in rows:
            if word != "compiled":
                print(f"  {word}: {rest}")
        if done.returncode or len(rows) != len(text.split(";")):
            print(f"  the process ended with {done.returncode}: {done.stderr[-500:]}")
            bad += 1
        bad += count["fallen"] + count["wrong"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
