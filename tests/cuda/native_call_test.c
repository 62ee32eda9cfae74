// SPDX-License-Identifier: Apache-2.0
// A function that is given the device's memory runs with the device's context current,
// as code expects that launches kernels; the thread has none afterwards.
#include "event_cuda.h"
#include "plugins/cuda/driver.h"

static cuda_t c;
static CUresult (*push)(CUcontext);
static CUresult (*pop)(CUcontext*);

typedef struct seen_t {
  int calls;
  bool has_context;
  bool refuses;
} seen_t;

static pestle_status_t look(void* user, const pestle_custom_call_t* call) {
  seen_t* seen = user;
  CUcontext context = NULL;
  ++seen->calls;
  seen->has_context = !pop(&context) && context && !push(context);
  assert_non_null(call->stream);
  assert_int_equal(call->inputs[0].device.device_type, PESTLE_DEVICE_CUDA);
  if (seen->refuses) return PESTLE_ERROR(OUT_OF_RANGE, "as it was told");
  return NULL;
}

static bool has_context(void) {
  CUcontext context = NULL;
  return !pop(&context) && context && !push(context);
}

static void context_is_current(void** state) {
  static const char text[] =
      "func.func public @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {\n"
      "  %y = stablehlo.custom_call @look(%x) : (tensor<4096xf32>) -> "
      "tensor<4096xf32>\n"
      "  %z = stablehlo.add %y, %y : tensor<4096xf32>\n"
      "  return %z : tensor<4096xf32>\n"
      "}\n";
  seen_t seen = {0};
  pestle_custom_call_options_t options = {.struct_size = sizeof(options),
                                          .device_memory = true};
  (void)state;
  assert_ok(pestle_context_register_custom_call(c.context, "look", look, &seen,
                                                &options));
  pestle_executable_t* e = load(&c, text);
  for (int i = 1; i < 4; ++i) {
    seen.has_context = false;
    assert_ok(run(&c, e, 0, 1));
    assert_int_equal(seen.calls, i);
    assert_true(seen.has_context);
    assert_false(has_context());
  }
  seen.refuses = true;
  assert_ok(run(&c, e, 0, 1));
  assert_error(pestle_stream_synchronize(c.stream), OUT_OF_RANGE,
               "as it was told");
  assert_int_equal(seen.calls, 4);
  assert_false(has_context());
  pestle_executable_release(e);
}

static void devices_are_checked(void** state) {
  const pestle_backend_t* backend = pestle_device_backend(c.device);
  (void)state;
  assert_error(backend->device->native_call(backend->self, 99, NULL, NULL),
               NOT_FOUND, "no number 99");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(context_is_current),
      cmocka_unit_test(devices_are_checked),
  };
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver) {
    *(void**)&push = dlsym(driver, "cuCtxPushCurrent_v2");
    *(void**)&pop = dlsym(driver, "cuCtxPopCurrent_v2");
  }
  cuda_begin(&c);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cuda_end(&c);
  return failed;
}
