// SPDX-License-Identifier: Apache-2.0
// Plugins of other minor versions in this host: eight compiled with the headers
// of minor versions 0 to 7, whose tables end where they ended then, and one
// that is newer, with tables that are longer than this host knows. Two variants
// of one backend are loaded side by side too.
#include <math.h>

#include "pestle/pestle.h"
#include "test.h"

static const char text[] =
    "func.func public @main(%x: tensor<4x9xf32>) -> tensor<4x9xf32> {\n"
    "  %0 = stablehlo.exponential %x : tensor<4x9xf32>\n"
    "  %1 = stablehlo.add %0, %x : tensor<4x9xf32>\n"
    "  return %1 : tensor<4x9xf32>\n"
    "}\n";
enum { COUNT = 36 };

static pestle_context_t* open_context(const char* folder) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .threads = 1,
                                      .strict = true,
                                      .backend_path = folder};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

// Dtypes that none of the old headers has.
static const char new_text[] =
    "func.func public @main(%x: tensor<16xf4E2M1FN>) -> "
    "tensor<16xf4E2M1FN> {\n"
    "  %0 = stablehlo.add %x, %x : tensor<16xf4E2M1FN>\n"
    "  return %0 : tensor<16xf4E2M1FN>\n"
    "}\n";

static pestle_executable_t* load_text(pestle_context_t* context,
                                      const char* name, const char* source) {
  pestle_device_t* device;
  pestle_module_t* module;
  pestle_plan_t* plan;
  pestle_executable_t* executable;
  assert_ok(pestle_context_device(context, name, &device));
  assert_ok(
      pestle_module_parse(context, source, strlen(source), "m.mlir", &module));
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true};
  assert_ok(pestle_compile(context, module, device, &options, &plan));
  assert_ok(pestle_executable_create(context, plan, device, &executable));
  pestle_plan_release(plan);
  pestle_module_release(module);
  return executable;
}

// Twice every number, as bytes, by the plugin itself: strict, so without the
// fallback. Bits above the sign are not looked at.
static void run_new_dtype(pestle_context_t* context) {
  static const uint8_t twice[16] = {0, 2,  4,  5,  6,  7,  7,  7,
                                    8, 10, 12, 13, 14, 15, 15, 15};
  pestle_executable_t* executable = load_text(context, "example", new_text);
  uint8_t x[16], y[16] = {0};
  for (int i = 0; i < 16; ++i)
    x[i] = (uint8_t)(i | (i % 3) << 4);
  int64_t shape[1] = {16};
  pestle_tensor_t in = {.data = x,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = 1,
                        .dtype = pestle_dtype_to_dlpack(PESTLE_F4E2M1FN),
                        .shape = shape};
  pestle_tensor_t out = in;
  out.data = y;
  assert_ok(pestle_executable_run(executable, NULL, &in, 1, &out, 1, NULL));
  assert_memory_equal(y, twice, 16);
  pestle_executable_release(executable);
}

static void run_on(pestle_context_t* context, const char* name) {
  pestle_executable_t* executable = load_text(context, name, text);
  float x[COUNT], y[COUNT];
  for (int i = 0; i < COUNT; ++i)
    x[i] = (float)(i - 18) / 5;
  int64_t shape[2] = {4, 9};
  pestle_tensor_t in = {.data = x,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = 2,
                        .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                        .shape = shape};
  pestle_tensor_t out = in;
  out.data = y;
  assert_ok(pestle_executable_run(executable, NULL, &in, 1, &out, 1, NULL));
  for (int i = 0; i < COUNT; ++i) {
    float want = expf(x[i]) + x[i];
    // exp within 2 ulp, and the sum's own rounding.
    assert_true(fabsf(y[i] - want) <= 4e-7f * (1 + fabsf(want) + expf(x[i])));
  }
  pestle_executable_release(executable);
}

// Its tables have no slot for a library.
static void test_minor1_plugin(void** state) {
  (void)state;
  pestle_context_t* context = open_context(OLD_FOLDER "1");
  const pestle_backend_t* backend = pestle_context_backend(context, "example");
  assert_non_null(backend);
  assert_true(backend->struct_size < sizeof(pestle_backend_t));
  assert_false(PESTLE_HAS(backend, library));
  run_on(context, "example");
  run_new_dtype(context);
  pestle_context_release(context);
}

// Its description of a target states no rates.
static void test_minor2_plugin(void** state) {
  (void)state;
  pestle_context_t* context = open_context(OLD_FOLDER "2");
  const pestle_backend_t* backend = pestle_context_backend(context, "example");
  assert_non_null(backend);
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  assert_ok(backend->target->describe(backend->self, NULL, &caps));
  assert_int_equal(caps.struct_size, offsetof(pestle_target_caps_t, fma_rate));
  assert_int_equal(caps.fma_rate, 0);
  run_on(context, "example");
  run_new_dtype(context);
  pestle_context_release(context);
}

// Its table of a device ends before calls of the host.
static void test_minor3_plugin(void** state) {
  (void)state;
  pestle_context_t* context = open_context(OLD_FOLDER "3");
  const pestle_backend_t* backend = pestle_context_backend(context, "example");
  assert_non_null(backend);
  assert_int_equal(backend->device->struct_size,
                   offsetof(pestle_device_api_t, stream_host_call));
  assert_false(PESTLE_HAS(backend->device, stream_host_call));
  assert_false(PESTLE_HAS(backend->device, native_wait));
  run_on(context, "example");
  run_new_dtype(context);
  pestle_context_release(context);
}

// It ends before memory of others.
static void test_minor4_plugin(void** state) {
  (void)state;
  pestle_context_t* context = open_context(OLD_FOLDER "4");
  const pestle_backend_t* backend = pestle_context_backend(context, "example");
  assert_non_null(backend);
  assert_int_equal(backend->device->struct_size,
                   offsetof(pestle_device_api_t, adopt));
  assert_false(PESTLE_HAS(backend->device, adopt));
  assert_false(PESTLE_HAS(backend->device, dlpack_device));
  run_on(context, "example");
  run_new_dtype(context);
  pestle_context_release(context);
}

// Its table of a target ends before kernels as text.
static void test_minor5_plugin(void** state) {
  (void)state;
  pestle_context_t* context = open_context(OLD_FOLDER "5");
  const pestle_backend_t* backend = pestle_context_backend(context, "example");
  assert_non_null(backend);
  assert_int_equal(backend->target->struct_size,
                   offsetof(pestle_target_api_t, compile_source));
  assert_false(PESTLE_HAS(backend->target, compile_source));
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  assert_ok(backend->target->describe(backend->self, NULL, &caps));
  assert_string_equal(caps.source_language, "");
  run_on(context, "example");
  run_new_dtype(context);
  pestle_context_release(context);
}

// Its table of a backend ends before the transport.
static void test_minor6_plugin(void** state) {
  (void)state;
  pestle_context_t* context = open_context(OLD_FOLDER "6");
  const pestle_backend_t* backend = pestle_context_backend(context, "example");
  assert_non_null(backend);
  assert_int_equal(backend->struct_size,
                   offsetof(pestle_backend_t, collective));
  assert_false(PESTLE_HAS(backend, collective));
  run_on(context, "example");
  run_new_dtype(context);
  pestle_context_release(context);
}

// Its record of options ends before the effort.
static void test_minor7_plugin(void** state) {
  (void)state;
  pestle_context_t* context = open_context(OLD_FOLDER "7");
  const pestle_backend_t* backend = pestle_context_backend(context, "example");
  assert_non_null(backend);
  run_on(context, "example");
  run_new_dtype(context);
  pestle_context_release(context);
}

// Transports of minor 7 do not say how far their streams are.
static void test_minor7_transport(void** state) {
  (void)state;
  pestle_collective_api_t api = {
      .struct_size = offsetof(pestle_collective_api_t, progress)};
  assert_int_equal(api.struct_size, 10 * sizeof(void*));
  assert_false(PESTLE_HAS(&api, progress));
  assert_true(PESTLE_HAS(&api, destroy) || !api.destroy);
}

// What an older host gives, whatever its padding holds, asks for full effort.
static void test_effort(void** state) {
  (void)state;
  pestle_kernel_options_t options;
  memset(&options, 1, sizeof(options));
  options.struct_size = offsetof(pestle_kernel_options_t, effort);
  assert_false(PESTLE_HAS(&options, effort));
  size_t older = 3 * sizeof(void*);  // size, CPU, a bool and its padding
  assert_true(offsetof(pestle_kernel_options_t, effort) >= older);
  options.struct_size = sizeof(options);
  options.effort = PESTLE_EFFORT_QUICK;
  assert_true(PESTLE_HAS(&options, effort));
}

static void test_old_plugin(void** state) {
  (void)state;
  pestle_context_t* context = open_context(OLD_FOLDER "0");
  const pestle_backend_t* backend = pestle_context_backend(context, "example");
  assert_non_null(backend);
  assert_true(backend->device->struct_size < sizeof(pestle_device_api_t));
  run_on(context, "example");
  run_new_dtype(context);
  // What it has no slot for is answered for it, or refused with a sentence.
  pestle_device_t* device;
  uint64_t bytes;
  pestle_device_property_t property = {.struct_size = sizeof(property)};
  assert_ok(pestle_context_device(context, "example", &device));
  assert_error(pestle_device_property(device, 0, &property), NOT_FOUND,
               "example has no properties");
  assert_ok(pestle_device_memory_get(device, PESTLE_MEMORY_ACTIVE, &bytes));
  assert_error(pestle_device_memory_get(device, PESTLE_MEMORY_TOTAL, &bytes),
               UNSUPPORTED, "total memory");
  pestle_context_release(context);
}

static void test_newer_plugin(void** state) {
  (void)state;
  pestle_context_t* context = open_context(FAKE_FOLDER);
  const pestle_backend_t* backend = pestle_context_backend(context, "longer");
  assert_non_null(backend);
  assert_true(backend->struct_size > sizeof(pestle_backend_t));
  assert_true(backend->device->struct_size > sizeof(pestle_device_api_t));
  pestle_context_release(context);
}

#ifdef LLVM_FOLDER
static void test_two_variants(void** state) {
  (void)state;
  pestle_context_t* a = open_context("/nonexistent");
  pestle_context_t* b = open_context("/nonexistent");
  static const char* const files[] = {LLVM_FOLDER "/libpestle-llvm-v19.so",
                                      LLVM_FOLDER "/libpestle-llvm-v16.so"};
  assert_ok(pestle_context_load_backend(a, files[0]));
  assert_ok(pestle_context_load_backend(b, files[1]));
  // By turns, so that each meets the other's state if there is any.
  for (int i = 0; i < 2; ++i) {
    run_on(a, "llvm");
    run_on(b, "llvm");
  }
  const char *of_a, *of_b;
  const pestle_backend_t* in_a = pestle_context_backend(a, "llvm");
  const pestle_backend_t* in_b = pestle_context_backend(b, "llvm");
  assert_ok(in_a->target->toolchain_id(in_a->self, &of_a));
  assert_ok(in_b->target->toolchain_id(in_b->self, &of_b));
  assert_non_null(strstr(of_a, "llvm-19"));
  assert_non_null(strstr(of_b, "llvm-16"));
  // Of one name they compete in a context: the newer one serves.
  pestle_context_t* both = open_context(LLVM_FOLDER);
  in_a = pestle_context_backend(both, "llvm");
  assert_ok(in_a->target->toolchain_id(in_a->self, &of_a));
  assert_non_null(strstr(of_a, "llvm-19"));
  pestle_context_release(both);
  pestle_context_release(a);
  pestle_context_release(b);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_old_plugin),
      cmocka_unit_test(test_minor1_plugin),
      cmocka_unit_test(test_minor2_plugin),
      cmocka_unit_test(test_minor3_plugin),
      cmocka_unit_test(test_minor4_plugin),
      cmocka_unit_test(test_minor5_plugin),
      cmocka_unit_test(test_minor6_plugin),
      cmocka_unit_test(test_minor7_plugin),
      cmocka_unit_test(test_minor7_transport),
      cmocka_unit_test(test_effort),
      cmocka_unit_test(test_newer_plugin),
#ifdef LLVM_FOLDER
      cmocka_unit_test(test_two_variants),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
