// SPDX-License-Identifier: Apache-2.0
// A host that has Pestle and every backend of the tree in itself: no file is
// opened to find them, and those that work here run a module.
#include <math.h>

#include "pestle/pestle.h"
#include "test.h"

// LINKED(name) for each static backend of this build: STATIC_ROWS.
#define LINKED(name)                                                       \
  const pestle_backend_abi_info_t* pestle_##name##_backend_abi_info(void); \
  const pestle_backend_t* pestle_##name##_backend_init(                    \
      const pestle_host_t* host, pestle_status_t* out_status);             \
  __attribute__((weak)) int32_t pestle_##name##_backend_score(char*, size_t);
STATIC_ROWS
#undef LINKED

static const struct {
  const char* name;
  pestle_backend_abi_info_fn_t abi_info;
  pestle_backend_score_fn_t score;
  pestle_backend_init_fn_t init;
} rows[] = {
#define LINKED(name)                                                       \
  {#name, pestle_##name##_backend_abi_info, pestle_##name##_backend_score, \
   pestle_##name##_backend_init},
    STATIC_ROWS
#undef LINKED
    {NULL, NULL, NULL, NULL}};

static const char text[] =
    "func.func public @main(%x: tensor<40xf32>) -> tensor<40xf32> {\n"
    "  %0 = stablehlo.multiply %x, %x : tensor<40xf32>\n"
    "  %1 = stablehlo.add %0, %x : tensor<40xf32>\n"
    "  return %1 : tensor<40xf32>\n"
    "}\n";
enum { COUNT = 40 };

static void run_on(pestle_context_t* context, const char* name) {
  pestle_device_t* device;
  pestle_module_t* module;
  pestle_plan_t* plan;
  pestle_executable_t* executable;
  assert_ok(pestle_context_device(context, name, &device));
  assert_ok(
      pestle_module_parse(context, text, strlen(text), "m.mlir", &module));
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true};
  assert_ok(pestle_compile(context, module, device, &options, &plan));
  assert_ok(pestle_executable_create(context, plan, device, &executable));
  float x[COUNT], y[COUNT];
  for (int i = 0; i < COUNT; ++i)
    x[i] = (float)i;
  int64_t shape[1] = {COUNT};
  pestle_tensor_t in = {.data = x,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = 1,
                        .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                        .shape = shape};
  pestle_tensor_t out = in;
  out.data = y;
  assert_ok(pestle_executable_run(executable, NULL, &in, 1, &out, 1, NULL));
  for (int i = 0; i < COUNT; ++i)
    assert_true(y[i] == x[i] * x[i] + x[i]);
  pestle_executable_release(executable);
  pestle_plan_release(plan);
  pestle_module_release(module);
}

static void test_all(void** state) {
  (void)state;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .threads = 1,
                                      .strict = true,
                                      .manual_backends = true};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  run_on(context, "ref");
  for (size_t i = 0; rows[i].name; ++i) {
    pestle_status_t status = pestle_context_add_backend(
        context, rows[i].abi_info, rows[i].score, rows[i].init);
    if (pestle_status_code(status) == PESTLE_STATUS_UNAVAILABLE) {
      // A driver or a CPU that is not here: linked, and says why.
      print_message("%s\n", pestle_status_message(status));
      assert_non_null(strstr(pestle_status_message(status), "linked-in"));
      pestle_status_release(status);
      continue;
    }
    assert_ok(status);
    assert_non_null(pestle_context_backend(context, rows[i].name));
    pestle_device_t* device;
    status = pestle_context_device(context, rows[i].name, &device);
    // Views in the host's memory are what cpu devices take.
    if (!status && pestle_device_dl(device).device_type == PESTLE_DEVICE_CPU) {
      run_on(context, rows[i].name);
    }
    pestle_status_release(status);
  }
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
