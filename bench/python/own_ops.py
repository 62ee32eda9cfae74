#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an op of one's own and a gradient cost from Python, beside a C loop, MLX and JAX
in the same run: alpha x + beta y of 256 x 512 f32, by a C function and by its body; the
gradient of sum(x x) of 4 f32, called and made. The least of many bursts in turns.

usage: PYTHONPATH=build/release/python PEER_PYTHON bench/python/own_ops.py [BURSTS]
What is not installed (mlx, jax) is left out.
"""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

import pestle as pt

BURSTS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
SOURCE = """
#include <pestle/custom_op.h>
#include <time.h>
__attribute__((noinline)) static void axpby(const float* x, const float* y, float* z,
                                            float a, float b, long n) {
  for (long i = 0; i < n; ++i) z[i] = a * x[i] + b * y[i];
}
pestle_status_t own(void* user, const pestle_custom_call_t* call) {
  const pestle_tensor_t* t = &call->outputs[0];
  (void)user;
  axpby(call->inputs[0].data, call->inputs[1].data, t->data,
        (float)pestle_custom_f64(call->attrs, "alpha"),
        (float)pestle_custom_f64(call->attrs, "beta"), t->shape[0] * t->shape[1]);
  return NULL;
}
double loop_ns(const float* x, const float* y, float* z, long n, int calls) {
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (int i = 0; i < calls; ++i) axpby(x, y, z, 4, 2, n);
  clock_gettime(CLOCK_MONOTONIC, &b);
  return (1e9 * (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec)) / calls;
}
"""


def c_library(folder):
    """The C loop and the op's function."""
    root = pathlib.Path(__file__).resolve().parents[2]
    build = pathlib.Path(pt.__file__).parents[2]
    path = pathlib.Path(folder) / "own.c"
    path.write_text(SOURCE)
    out = str(path.with_suffix(".so"))
    subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-fPIC", "-shared",
                    f"-I{root}/include", f"-I{build}/include", str(path), "-o", out,
                    f"-L{build}", "-lpestle"], check=True)
    library = ctypes.CDLL(out)
    library.loop_ns.restype = ctypes.c_double
    return library


def burst(function, calls):
    function()  # what it reads is in the cache again
    begin = time.perf_counter_ns()
    for _ in range(calls):
        function()
    return (time.perf_counter_ns() - begin) / calls


def least(functions, calls):
    best = {name: float("inf") for name in functions}
    for function in functions.values():
        function()
    for _ in range(BURSTS):
        for name, function in functions.items():
            best[name] = min(best[name], function() if name == "C loop" else
                             burst(function, calls))
    return best


def axpby(library):
    rng = np.random.default_rng(0)
    hx, hy = rng.standard_normal((2, 256, 512), dtype=np.float32)
    x, y = pt.copy(pt.asarray(hx)), pt.copy(pt.asarray(hy))
    pt.eval(x, y)

    def op(name, prefer):
        @pt.custom_op(name, prefer=prefer)
        def body(x, y, *, alpha: float, beta: float):
            return alpha * x + beta * y
        if prefer == "eval":
            body.eval("cpu", id="native-1")(ctypes.cast(library.own, ctypes.c_void_p).value)
        return pt.jit(lambda x, y: body(x, y, alpha=4.0, beta=2.0))
    own, inlined = op("bench.axpby", "eval"), op("bench.axpby_body", "inline")
    composed = pt.jit(lambda x, y: 4 * x + 2 * y)
    for f in (own, inlined, composed):
        assert np.allclose(np.asarray(f(x, y)), 4 * hx + 2 * hy, rtol=1e-5)
    # Memory as the arrays have it: on 64 bytes, warm.
    z = np.empty(hx.size + 16, np.float32)
    z = z[-z.ctypes.data % 64 // 4:][:hx.size]
    views = [np.asarray(a) for a in (x, y)]
    where = [ctypes.c_void_p(v.ctypes.data) for v in (*views, z)]
    rows = {"C loop": lambda: library.loop_ns(*where, ctypes.c_long(hx.size), 20),
            "own op, C function": lambda: own(x, y), "own op, body": lambda: inlined(x, y),
            "jit 4x + 2y": lambda: composed(x, y)}
    try:
        import mlx.core as mx
        mx.set_default_device(mx.cpu)
        mlx_x, mlx_y = mx.array(hx), mx.array(hy)
        compiled = mx.compile(lambda x, y: 4 * x + 2 * y)
        rows["mlx, compiled"] = lambda: mx.eval(compiled(mlx_x, mlx_y))
    except ImportError:
        pass
    t = least(rows, 20)
    for name, ns in t.items():
        print(f"{name:24} {ns:10.0f} ns")
    print(f"own op, body: {t['own op, body'] / t['jit 4x + 2y']:.3f} of the expression")
    for name in ("own op, C function", "own op, body"):
        print(f"{name}: {t[name] / t['C loop']:.2f} of the C loop; less 1 us "
              f"{(t[name] - 1000) / t['C loop']:.2f} (asked: 1.25)")
        if "mlx, compiled" in t:
            print(f"{name}: {t[name] / t['mlx, compiled']:.2f} of mlx (asked: 0.5)")


def gradients():
    x = pt.asarray([1.0, 2.0, 3.0, 4.0])
    pt.eval(x)

    def loss(x):
        return pt.sum(x * x)
    grad = pt.grad(loss)
    rows = {"grad": lambda: grad(x)}
    make = {"pestle, made and called": lambda: pt.eval(pt.grad(loss)(x))}
    try:
        import jax
        import jax.numpy as jnp
        jax_x = jnp.asarray(np.asarray(x))
        jax_grad = jax.jit(jax.grad(lambda x: jnp.sum(x * x)))
        rows["jax.jit of grad"] = lambda: jax_grad(jax_x)
        make["jax, made and called"] = lambda: jax.grad(
            lambda x: jnp.sum(x * x))(jax_x).block_until_ready()
    except ImportError:
        pass
    t = least(rows, 200)
    t.update(least(make, 3))
    for name, ns in t.items():
        print(f"{name:24} {ns:10.0f} ns")
    if "jax.jit of grad" in t:
        print(f"a gradient's call: {t['grad'] / t['jax.jit of grad']:.3f} of jax "
              "(asked: 0.1)")
        print("made and called: "
              f"{t['pestle, made and called'] / t['jax, made and called']:.2f} of jax")


def main():
    with tempfile.TemporaryDirectory() as folder:
        axpby(c_library(folder))
    gradients()


if __name__ == "__main__":
    main()
