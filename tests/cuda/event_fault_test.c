// SPDX-License-Identifier: Apache-2.0
// A fault on the device, by a kernel that stops at a trap: every callback that is
// pending is made once, and everything later says UNAVAILABLE in the words of the
// first fault. It leaves the device's context broken, so it is a program of its own.
#include "event_cuda.h"
#include "plugins/cuda/driver.h"

static cuda_t c;

static const char trap_ptx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry pestle_trap() {\n"
    "  trap;\n"
    "  ret;\n"
    "}\n";

// Launches it on the stream, as the application's own work.
static void trap_on(void* native) {
  CUresult (*load_module)(CUmodule*, const void*, unsigned, CUjit_option*,
                          void**);
  CUresult (*get_function)(CUfunction*, CUmodule, const char*);
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned,
                     unsigned, unsigned, unsigned, CUstream, void**, void**);
  CUresult (*retain)(CUcontext*, CUdevice);
  CUresult (*push)(CUcontext);
  CUresult (*pop)(CUcontext*);
  CUmodule module;
  CUfunction function;
  CUcontext context;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  assert_non_null(driver);
  *(void**)&load_module = dlsym(driver, "cuModuleLoadDataEx");
  *(void**)&get_function = dlsym(driver, "cuModuleGetFunction");
  *(void**)&launch = dlsym(driver, "cuLaunchKernel");
  *(void**)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
  *(void**)&push = dlsym(driver, "cuCtxPushCurrent_v2");
  *(void**)&pop = dlsym(driver, "cuCtxPopCurrent_v2");
  assert_int_equal(retain(&context, 0), 0);
  assert_int_equal(push(context), 0);
  assert_int_equal(load_module(&module, trap_ptx, 0, NULL, NULL), 0);
  assert_int_equal(get_function(&function, module, "pestle_trap"), 0);
  assert_int_equal(launch(function, 1, 1, 1, 32, 1, 1, 0, native, NULL, NULL),
                   0);
  assert_int_equal(pop(&context), 0);
}

// The driver of threads is told; a GPU gets the kernel.
static void break_device(void* native) {
  void (*lose)(void);
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  *(void**)&lose = driver ? dlsym(driver, "fake_cuda_lose") : NULL;
  if (lose) {
    lose();
  } else {
    trap_on(native);
  }
}

enum { BEFORE = 50, MOST = 100 };

static told_t told[MOST];
static pestle_event_t* events[MOST];

// A run, an event behind it and a function that it calls.
static pestle_status_t add_pending(int i) {
  PESTLE_TRY(pestle_event_create(c.device, &events[i]));
  PESTLE_TRY(run(&c, i % 5 ? c.add : c.loop, 0, 1));
  PESTLE_TRY(pestle_event_record(events[i], c.stream));
  return pestle_event_on_signalled(events[i], note_told, &told[i]);
}

// Every call says |first| from now on.
static void check_later_calls(const char* first) {
  float x[4];
  pestle_buffer_t* buffer;
  pestle_stream_t* stream;
  for (int i = 0; i < 2; ++i) {
    assert_error(run(&c, c.add, 0, 1), UNAVAILABLE, first);
    assert_error(run(&c, c.loop, 0, 1), UNAVAILABLE, first);
    assert_error(pestle_stream_synchronize(c.stream), UNAVAILABLE, first);
    assert_error(pestle_buffer_read(c.buffer[0], 0, x, sizeof(x)), UNAVAILABLE,
                 first);
    assert_error(pestle_buffer_create(c.device, 64, &buffer), UNAVAILABLE,
                 first);
    assert_error(pestle_stream_create(c.device, &stream), UNAVAILABLE, first);
  }
}

static void fault(void** state) {
  const pestle_backend_t* backend = pestle_device_backend(c.device);
  pestle_device_stream_t* stream;
  void* native;
  (void)state;
  assert_ok(backend->device->stream_create(backend->self, 0, &stream));
  assert_ok(backend->device->stream_native(backend->self, stream, &native));
  int count = 0;
  while (count < BEFORE)
    assert_ok(add_pending(count++));
  break_device(native);
  // Until the fault is known calls may still go well.
  pestle_status_t status = NULL;
  while (count < MOST && !(status = add_pending(count)))
    ++count;
  pestle_status_release(status);
  status = backend->device->stream_synchronize(backend->self, stream);
  assert_int_equal(pestle_status_code(status), PESTLE_STATUS_UNAVAILABLE);
  pestle_status_release(status);
  for (int i = 0; i < count; ++i)
    wait_until(&told[i].count, 1);
  status = pestle_stream_synchronize(c.stream);
  assert_int_equal(pestle_status_code(status), PESTLE_STATUS_UNAVAILABLE);
  char first[512];
  snprintf(first, sizeof(first), "%s", pestle_status_message(status));
  pestle_status_release(status);
  print_message("the first fault: %s\n", first);
  check_later_calls(first);
  int broken = 0;
  for (int i = 0; i < count; ++i) {
    assert_int_equal(atomic_load(&told[i].count), 1);
    int code = atomic_load(&told[i].code);
    assert_true(code == PESTLE_STATUS_OK || code == PESTLE_STATUS_UNAVAILABLE);
    if (code) assert_string_equal(told[i].message, first);
    broken += code != 0;
  }
  print_message("%d calls, each once, %d of them with the fault\n", count,
                broken);
  for (int i = 0; i < MOST; ++i)
    pestle_event_release(events[i]);
  backend->device->stream_destroy(backend->self, stream);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(fault)};
  cuda_begin(&c);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
