#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Foreign functions (jax.ffi) on a GPU: their buffers lie on the device, they launch on
the stream that they are given and return at once, and their scratch memory is the
device's. Delays on purpose show that what is before and behind them waits.

    ffi_gpu.py --build FUNCTIONS.so    where JAX's headers and a C++ compiler are
    ffi_gpu.py FUNCTIONS.so            on the GPU; PESTLE_PJRT_LIBRARY and PYTHONPATH are set
"""
import ctypes
import pathlib
import subprocess
import sys
import tempfile

FUNCTIONS = r"""
#include <dlfcn.h>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
using F32 = ffi::Buffer<ffi::F32>;
using F32Result = ffi::ResultBuffer<ffi::F32>;
using Stream = void*;

// out[i] = k * x[i], after |spins| nanoseconds in one lane of each block.
static const char* text = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 out, .param .f32 k, .param .u32 n,
                      .param .u32 spins) {
  .reg .u64 %rd<9>; .reg .f32 %f<4>; .reg .u32 %r<8>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [out]; ld.param.f32 %f1, [k];
  ld.param.u32 %r1, [n]; ld.param.u32 %r6, [spins];
wait:
  setp.eq.u32 %p2, %r6, 0; @%p2 bra go;
  nanosleep.u32 1000; sub.u32 %r6, %r6, 1; bra wait;
go:
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4; setp.ge.u32 %p1, %r5, %r1; @%p1 bra done;
  mul.wide.u32 %rd3, %r5, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4]; mul.f32 %f3, %f2, %f1; st.global.f32 [%rd5], %f3;
done:
  ret;
})";

// What of the driver is used. The current context is the caller's.
struct Driver {
  int (*load)(void**, const void*);
  int (*function)(void**, void*, const char*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                void*, void**, void**);
  int (*copy)(uint64_t, uint64_t, size_t, void*);
  int (*where)(void*, int, uint64_t);
  void* kernel = nullptr;
  int error = -1;
  Driver() {
    void* lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) return;
    load = reinterpret_cast<decltype(load)>(dlsym(lib, "cuModuleLoadData"));
    function = reinterpret_cast<decltype(function)>(dlsym(lib, "cuModuleGetFunction"));
    launch = reinterpret_cast<decltype(launch)>(dlsym(lib, "cuLaunchKernel"));
    copy = reinterpret_cast<decltype(copy)>(dlsym(lib, "cuMemcpyDtoDAsync_v2"));
    where = reinterpret_cast<decltype(where)>(dlsym(lib, "cuPointerGetAttribute"));
    void* module;
    error = load(&module, text);
    if (!error) error = function(&kernel, module, "scale");
  }
};
static Driver& driver() {
  static Driver d;
  return d;
}
static ffi::Error run(Stream stream, const void* x, void* y, size_t n, float k, uint32_t spins) {
  Driver& d = driver();
  if (d.error) return ffi::Error::Internal("no kernel: " + std::to_string(d.error));
  uint32_t count = static_cast<uint32_t>(n);
  void* args[] = {&x, &y, &k, &count, &spins};
  int e = d.launch(d.kernel, (count + 127) / 128, 1, 1, 128, 1, 1, 0, stream, args, nullptr);
  return e ? ffi::Error::Internal("no launch: " + std::to_string(e)) : ffi::Error::Success();
}

static ffi::Error Scale(Stream stream, int32_t device, F32 x, F32Result y, float k, int64_t us) {
  if (k < 0) return ffi::Error::InvalidArgument("k is negative");
  if (device != 0) return ffi::Error::Internal("device is not 0");
  int kind = 0;
  driver().where(&kind, 2, reinterpret_cast<uint64_t>(x.untyped_data()));
  if (kind != 2) return ffi::Error::Internal("x is not on the device");
  return run(stream, x.untyped_data(), y->untyped_data(), x.element_count(), k,
             static_cast<uint32_t>(us));
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(scale, Scale, ffi::Ffi::Bind()
    .Ctx<ffi::PlatformStream<Stream>>().Ctx<ffi::DeviceOrdinal>().Arg<F32>().Ret<F32>()
    .Attr<float>("k").Attr<int64_t>("us"));

// y = 6 x by two launches with scratch memory between.
static ffi::Error Twice(Stream stream, ffi::ScratchAllocator scratch, F32 x, F32Result y) {
  size_t n = x.element_count();
  auto middle = scratch.Allocate(n * sizeof(float));
  if (!middle) return ffi::Error::Internal("no scratch memory");
  ffi::Error e = run(stream, x.untyped_data(), *middle, n, 2, 1000);
  if (!e.success()) return e;
  return run(stream, *middle, y->untyped_data(), n, 3, 0);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(twice, Twice, ffi::Ffi::Bind()
    .Ctx<ffi::PlatformStream<Stream>>().Ctx<ffi::ScratchAllocator>().Arg<F32>().Ret<F32>());

// In place where both are one.
static ffi::Error Copy(Stream stream, F32 x, F32Result y) {
  if (x.untyped_data() == y->untyped_data()) return ffi::Error::Success();
  int e = driver().copy(reinterpret_cast<uint64_t>(y->untyped_data()),
                        reinterpret_cast<uint64_t>(x.untyped_data()), x.size_bytes(), stream);
  return e ? ffi::Error::Internal("no copy: " + std::to_string(e)) : ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(copy, Copy, ffi::Ffi::Bind()
    .Ctx<ffi::PlatformStream<Stream>>().Arg<F32>().Ret<F32>());
"""


def build(out):
    import jax
    with tempfile.TemporaryDirectory() as name:
        source = pathlib.Path(name) / "functions.cc"
        source.write_text(FUNCTIONS)
        subprocess.run(["c++", "-w", "-std=c++17", "-O1", "-shared", "-fPIC",
                        "-I", jax.ffi.include_dir(), "-o", out, source], check=True)


def rows(lib):
    import jax
    import jax.numpy as jnp
    import numpy as np
    for name in ("scale", "twice", "copy"):
        jax.ffi.register_ffi_target("t_" + name, jax.ffi.pycapsule(getattr(lib, name)),
                                    platform="pestle")

    def call(name, x, **attributes):
        return jax.ffi.ffi_call("t_" + name, jax.ShapeDtypeStruct(x.shape, x.dtype),
                                vmap_method="broadcast_all")(x, **attributes)

    def scale(x, k, us=0):
        return call("scale", x, k=np.float32(k), us=us)

    x = jnp.arange(3000, dtype=np.float32).reshape(30, 100)
    host = np.arange(3000, dtype=np.float32).reshape(30, 100)

    def plain():
        return jax.jit(lambda x: scale(x, 2.5))(x), host * 2.5

    def between_kernels():
        return jax.jit(lambda x: scale(x + 1, 3, 2000) * 2 - 1)(x), (host + 1) * 6 - 1

    def behind_a_product():
        big = jnp.ones((1024, 1024), np.float32)
        return jax.jit(lambda x: scale(x @ x, 0.5, 1000) @ x)(big), np.full(
            (1024, 1024), 1024. * 512)

    def scratch():
        return jax.jit(lambda x: call("twice", x) + call("twice", x * 2))(x), host * 18

    def in_a_loop():
        return jax.jit(lambda x: jax.lax.fori_loop(0, 7, lambda i, c: scale(c, 2, 200) + 1, x))(
            x), host * 128 + 127

    def batched():
        return jax.vmap(lambda r: scale(r, 4))(x), host * 4

    def programs_in_a_row():
        f, y = jax.jit(lambda x: scale(x, -0.0 + 2, 3000)), x
        g = jax.jit(lambda x: x * 0.5 + 1)
        for _ in range(8):
            y = g(f(y))
        return y, host + 8

    def copied():
        return jax.jit(lambda x: call("copy", x + 2))(x), host + 2

    def error():
        try:
            jax.block_until_ready(jax.jit(lambda x: scale(x, -1))(x))
        except Exception as e:
            return np.array(["k is negative" in str(e)]), np.array([True])
        return np.array([False]), np.array([True])

    def after_an_error():
        return plain()

    wrong = 0
    for row in (plain, between_kernels, behind_a_product, scratch, in_a_loop, batched,
                programs_in_a_row, copied, error, after_an_error):
        try:
            got, wanted = row()
            state = "ok" if np.array_equal(np.asarray(got), wanted) else "FAIL"
            said = "" if state == "ok" else f"{np.asarray(got).ravel()[:4]}, not {wanted.ravel()[:4]}"
        except Exception as e:
            state, said = "FAIL", f"{type(e).__name__}: {e}"[:300]
        wrong += state != "ok"
        print(f"{state:4} ffi_{row.__name__} {said}", flush=True)
    print(jax.__version__, jax.devices()[0])
    return wrong


if __name__ == "__main__":
    if sys.argv[1] == "--build":
        build(sys.argv[2])
    else:
        sys.exit(rows(ctypes.CDLL(sys.argv[1])) != 0)
