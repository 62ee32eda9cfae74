#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Foreign functions (jax.ffi) that are built with the headers that JAX ships: what they are
given and may ask, their errors, states and layouts. Skips where there is no JAX or no C++
compiler. pjrt/ffi_abi.h is held against JAX's header first."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = BUILD / "pjrt_plugin_pestle.so"

FUNCTIONS = r"""
#include <atomic>
#include <thread>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
using F32 = ffi::Buffer<ffi::F32>;
using F32Result = ffi::ResultBuffer<ffi::F32>;

static ffi::Error Scale(F32 x, F32Result y, float k, int64_t n, std::string_view s,
                        ffi::Span<const int64_t> a, bool yes) {
  if (n != -7 || s != "a\"b\n\\" || a.size() != 2 || a[0] != -3 || a[1] != 5 || !yes)
    return ffi::Error::InvalidArgument("attributes are wrong");
  if (k < 0) return ffi::Error::InvalidArgument("k is negative");
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = k * x.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(scale, Scale, ffi::Ffi::Bind().Arg<F32>().Ret<F32>()
    .Attr<float>("k").Attr<int64_t>("n").Attr<std::string_view>("s")
    .Attr<ffi::Span<const int64_t>>("a").Attr<bool>("yes"));

// The sum of whatever it is given, each of any shape, and its dims.
static ffi::Error Sums(ffi::RemainingArgs args, ffi::RemainingRets rets) {
  for (size_t i = 0; i < args.size(); ++i) {
    auto x = args.get<ffi::AnyBuffer>(i);
    auto y = rets.get<ffi::AnyBuffer>(i);
    if (!x || !y) return ffi::Error::Internal("no buffer");
    float sum = 0;
    for (size_t k = 0; k < x->element_count(); ++k) sum += x->typed_data<float>()[k];
    float* out = (*y)->typed_data<float>();
    out[0] = sum;
    for (size_t k = 0; k < x->dimensions().size(); ++k) out[1 + k] = x->dimensions()[k];
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(sums, Sums,
                              ffi::Ffi::Bind().RemainingArgs().RemainingRets());

// Scratch memory, threads, numbers of the run and the device.
static ffi::Error Ask(F32 x, F32Result y, ffi::ScratchAllocator scratch,
                      ffi::ThreadPool pool, int32_t device) {
  size_t n = x.element_count();
  auto memory = scratch.Allocate(n * sizeof(float));
  if (!memory || reinterpret_cast<uintptr_t>(*memory) % 64)
    return ffi::Error::Internal("no scratch memory");
  float* copy = static_cast<float*>(*memory);
  std::atomic<size_t> left{n};
  if (pool.num_threads() < 1 || device != 0) return ffi::Error::Internal("numbers");
  for (size_t i = 0; i < n; ++i) {
    pool.Schedule([&, i] { copy[i] = x.typed_data()[i] + 1; --left; });
  }
  while (left) std::this_thread::yield();
  for (size_t i = 0; i < n; ++i) y->typed_data()[i] = copy[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(ask, Ask, ffi::Ffi::Bind().Arg<F32>().Ret<F32>()
    .Ctx<ffi::ScratchAllocator>().Ctx<ffi::ThreadPool>().Ctx<ffi::DeviceOrdinal>());

// A state that is made once for each set of attributes, and counts its calls.
struct Counter {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  explicit Counter(float s) : step(s) { ++alive; }
  ~Counter() { --alive; }
  float step, value = 0;
  static std::atomic<int> alive;
};
ffi::TypeId Counter::id = {};
std::atomic<int> Counter::alive{0};
static void drop(void* object) { delete static_cast<Counter*>(object); }
extern "C" int counters() { return Counter::alive; }
extern "C" XLA_FFI_TypeId counter_id = {0};
extern "C" XLA_FFI_TypeInfo counter_info = {sizeof(XLA_FFI_TypeInfo), nullptr, drop};
extern "C" void use_id() { Counter::id = counter_id; }
static ffi::ErrorOr<std::unique_ptr<Counter>> Make(float step) {
  if (step == 0) return ffi::Unexpected(ffi::Error::InvalidArgument("no step"));
  return std::make_unique<Counter>(step);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(make_counter, Make,
                              ffi::Ffi::BindInstantiate().Attr<float>("step"));
static ffi::Error Count(Counter* counter, F32 x, F32Result y, float) {
  counter->value += counter->step;
  for (size_t i = 0; i < x.element_count(); ++i)
    y->typed_data()[i] = x.typed_data()[i] + counter->value;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(count, Count, ffi::Ffi::Bind()
    .Ctx<ffi::State<Counter>>().Arg<F32>().Ret<F32>().Attr<float>("step"));

// One that goes on after its return.
static ffi::Future Later(F32 x, F32Result y, bool fails) {
  ffi::Promise promise;
  ffi::Future future(promise);
  std::thread([x, y, fails, promise = std::move(promise)]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (size_t i = 0; i < x.element_count(); ++i)
      y->typed_data()[i] = -x.typed_data()[i];
    if (fails) promise.SetError(ffi::Error::Internal("it failed later"));
    else promise.SetAvailable();
  }).detach();
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(later, Later, ffi::Ffi::Bind().Arg<F32>().Ret<F32>()
    .Attr<bool>("fails"));

// Of another version of the interface.
extern "C" XLA_FFI_Error* tomorrow(XLA_FFI_CallFrame* frame) {
  auto* e = reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start);
  if (e) e->metadata->api_version.major_version = 1;
  return nullptr;
}
"""

CASES = r"""
import ctypes, os, sys
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
lib = ctypes.CDLL(sys.argv[1])
def register(name, fn):
    jax.ffi.register_ffi_target(name, fn, platform="pestle")
for name in ("scale", "sums", "ask", "later"):
    register("t_" + name, jax.ffi.pycapsule(getattr(lib, name)))
def fails(text, f, *args):
    try:
        jax.block_until_ready(f(*args))
    except Exception as e:
        assert text in str(e), (text, str(e))
        return
    raise AssertionError(f"no error with '{text}'")
def same(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)
def call(name, x, **attributes):
    return jax.ffi.ffi_call("t_" + name, same(x), vmap_method="broadcast_all")(
        x, **attributes)
def scale(x, k=2.5, **more):
    attributes = dict(k=np.float32(k), n=-7, s='a"b\n\\', a=np.array([-3, 5]), yes=True)
    return call("scale", x, **{**attributes, **more})
x = jnp.arange(6, dtype=np.float32).reshape(2, 3)

# Values, in programs of several kinds.
np.testing.assert_array_equal(jax.jit(lambda x: scale(x) + 1)(x), np.asarray(x) * 2.5 + 1)
np.testing.assert_array_equal(jax.vmap(scale)(x), np.asarray(x) * 2.5)
loop = jax.jit(lambda x: jax.lax.fori_loop(0, 5, lambda i, c: scale(c, 2.0), x))
np.testing.assert_array_equal(loop(x), np.asarray(x) * 32)
big = jnp.ones((300, 300), np.float32)
np.testing.assert_array_equal(jax.jit(lambda x: scale(x @ x))(big), np.full((300, 300), 750.))

# Errors.
fails("k is negative", jax.jit(lambda x: scale(x, -1)), x)
fails("attributes are wrong", jax.jit(lambda x: scale(x, n=1)), x)
fails("nobody", jax.jit(lambda x: call("nobody", x)), x)
# Its bytes lie otherwise there.
fails("lies otherwise", jax.jit(lambda x: call("later", x, fails=False)),
      jnp.ones(4, jnp.int4))

# Several of several shapes.
def sums(*args):
    shapes = [jax.ShapeDtypeStruct((1 + a.ndim,), np.float32) for a in args]
    return jax.ffi.ffi_call("t_sums", shapes)(*args)
got = jax.jit(sums)(x, jnp.float32(4), jnp.ones((2, 1, 5), np.float32),
                    jnp.zeros((0, 3), np.float32))
for g, w in zip(got, ([15, 2, 3], [4], [10, 2, 1, 5], [0, 0, 3])):
    np.testing.assert_array_equal(g, w)

# Axes keep their names where the memory is in columns.
def columns(x):
    return jax.ffi.ffi_call("t_sums", [jax.ShapeDtypeStruct((3,), np.float32)],
                            input_layouts=[(1, 0)])(x)[0]
np.testing.assert_array_equal(jax.jit(columns)(x), [15, 2, 3])

np.testing.assert_array_equal(jax.jit(lambda x: call("ask", x))(x), np.asarray(x) + 1)

# A state of its own for each set of attributes; it goes with the client.
jax.ffi.register_ffi_type("counter", dict(
    type_id=jax.ffi.pycapsule(ctypes.pointer(ctypes.c_int64.in_dll(lib, "counter_id"))),
    type_info=jax.ffi.pycapsule(ctypes.pointer(ctypes.c_int64.in_dll(
        lib, "counter_info")))), platform="pestle")
assert ctypes.c_int64.in_dll(lib, "counter_id").value > 0
lib.use_id()
register("t_count", dict(instantiate=jax.ffi.pycapsule(lib.make_counter),
                         execute=jax.ffi.pycapsule(lib.count)))
counted = [jax.jit(lambda x, s=s: call("count", x, step=np.float32(s))) for s in (1, 10)]
assert [float(counted[i](x)[0, 0]) for i in (0, 0, 1, 0, 1)] == [1, 2, 10, 3, 20]
assert lib.counters() == 2
fails("no step", jax.jit(lambda x: call("count", x, step=np.float32(0))), x)

# What ends later.
np.testing.assert_array_equal(jax.jit(lambda x: call("later", x, fails=False))(x),
                              -np.asarray(x))
fails("it failed later", jax.jit(lambda x: call("later", x, fails=True)), x)

# Names that are taken, versions, stages.
for name, fn, text in (("t_scale", lib.sums, "registered already"),
                       ("t_new", lib.tomorrow, "built for version 1.0")):
    try:
        register(name, jax.ffi.pycapsule(fn))
        raise AssertionError(f"no error with '{text}'")
    except ValueError as e:
        assert text in str(e), str(e)
try:
    jax.ffi.register_ffi_target("t_old", jax.ffi.pycapsule(lib.scale), platform="pestle",
                                api_version=0)
    raise AssertionError("the old interface was taken")
except NotImplementedError as e:
    assert "typed interface" in str(e)

# A function of jaxlib's own, which wants its matrices in columns.
try:
    from jaxlib import lapack
    lapack._lapack.initialize()
    geqrf = next(fn for name, fn, *_ in lapack.registrations()["cpu"]
                 if name == "lapack_sgeqrf_ffi")
except (ImportError, AttributeError, StopIteration):
    geqrf = None
if geqrf is not None:
    register("t_geqrf", geqrf)
    a = np.random.RandomState(0).randn(2, 5, 3).astype(np.float32)
    def qr(a):
        shapes = (same(a), jax.ShapeDtypeStruct(a.shape[:-2] + (3,), a.dtype))
        return jax.ffi.ffi_call("t_geqrf", shapes, input_layouts=[(0, 2, 1)],
                                output_layouts=[(0, 2, 1), None],
                                input_output_aliases={0: 0})(a)
    packed, tau = jax.jit(qr)(a)
    with jax.default_device(jax.devices("cpu")[0]):
        wanted = jax.jit(jax._src.lax.linalg.geqrf)(a)
    np.testing.assert_allclose(packed, wanted[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(tau, wanted[1], rtol=1e-5, atol=1e-6)
print("DONE")
"""

STRUCTS = ("Api", "Api_Version", "Buffer", "Scalar", "Array", "TypeInfo", "Args", "Rets",
           "Attrs", "CallFrame", "Metadata", "Metadata_Extension", "Error_Create_Args",
           "Error_GetMessage_Args", "Error_Destroy_Args", "Handler_Register_Args",
           "Stream_Get_Args", "Type_Register_Args", "ExecutionContext_Get_Args",
           "State_Set_Args", "State_Get_Args", "DeviceMemory_Allocate_Args",
           "DeviceMemory_Free_Args", "ThreadPool_Schedule_Args",
           "ThreadPool_NumThreads_Args", "Future_Create_Args",
           "Future_SetAvailable_Args", "Future_SetError_Args", "RunId_Get_Args",
           "DeviceOrdinal_Get_Args")


def fields(header, name):
    """The fields of a struct, in their order, from a header's text."""
    text = re.sub(r"//[^\n]*", "", header)
    found = re.search(r"struct XLA_FFI_%s \{(.*?)\n\}" % name, text, re.S)
    if not found:
        return []
    names = re.findall(r"(\w+);", found.group(1))
    names += re.findall(r"_XLA_FFI_API_STRUCT_FIELD\((\w+)\)", found.group(1))
    return [n for n in names if n not in ("XLA_FFI_HEAD_", "XLA_FFI_SLOTS")]


def check_abi(include, folder):
    """Sizes and offsets by both headers, printed by a program each."""
    theirs = (pathlib.Path(include) / "xla/ffi/api/c_api.h").read_text()
    lines = []
    for name in STRUCTS:
        lines.append(f'printf("{name} %zu\\n", sizeof(XLA_FFI_{name}));')
        for field in fields(theirs, name):
            if field not in ("extension_base", "internal_api"):
                lines.append(f'printf("{name}.{field} %zu\\n", '
                             f'offsetof(XLA_FFI_{name}, {field}));')
    for name in ("F32", "C128", "F8E8M0FNU", "PRED", "BF16", "F8E4M3"):
        lines.append(f'printf("{name} %d\\n", (int)XLA_FFI_DataType_{name});')
    printed = []
    for header in ("xla/ffi/api/c_api.h", "pjrt/ffi_abi.h"):
        source = folder / "abi.c"
        source.write_text(f'#include <stdio.h>\n#include "{header}"\n'
                          "int main(void) {" + "\n".join(lines) + "}\n")
        subprocess.run(["cc", "-w", "-I", include, "-I", SOURCE, "-o", folder / "abi",
                        source], check=True)
        printed.append(subprocess.run([folder / "abi"], check=True, capture_output=True,
                                      text=True).stdout.splitlines())
    different = [f"{a} here: {b}" for a, b in zip(*printed) if a != b]
    assert len(printed[0]) > 120 and not different, different


def main():
    python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
    probe = subprocess.run([python, "-c", "import jax; print(jax.ffi.include_dir())"],
                           check=False, capture_output=True, text=True)
    if probe.returncode or not LIBRARY.exists() or not shutil.which("c++"):
        print("no JAX or no C++ compiler here")
        return 77
    include = probe.stdout.strip().splitlines()[-1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_abi(include, folder)
        (folder / "functions.cc").write_text(FUNCTIONS)
        subprocess.run(["c++", "-w", "-std=c++17", "-O1", "-shared", "-fPIC", "-pthread",
                        "-I", include, "-o", folder / "functions.so",
                        folder / "functions.cc"], check=True)
        env = dict(os.environ, JAX_PLATFORMS="pestle,cpu", PESTLE_PJRT_DEVICE="cpu",
                   PYTHONPATH=str(SOURCE / "python"), PYTHONDONTWRITEBYTECODE="1",
                   PESTLE_PJRT_LIBRARY=str(LIBRARY))
        done = subprocess.run([python, "-c", CASES, folder / "functions.so"], env=env,
                              check=False, capture_output=True, text=True, timeout=280)
    if done.returncode or "DONE" not in done.stdout:
        print(done.returncode, done.stderr[-4000:])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
