// SPDX-License-Identifier: Apache-2.0
// Layers that differ by their scales alone are compiled once: their kernels take the
// scales as an argument, and give each layer its own.
#include <math.h>
#include <stdlib.h>

#include "base/str.h"
#include "pestle/pestle.h"
#include "test.h"
#include "view.h"

enum { N = 8, MOST_LAYERS = 4 };

typedef struct kernels_t {
  unsigned count, with_scalars;
} kernels_t;

static void see_kernel(void* user, pestle_stage_t stage, const char* name,
                       const char* text, size_t size) {
  (void)stage, (void)name, (void)size;
  kernels_t* seen = user;
  assert_true(seen->count < MOST_LAYERS);
  seen->count++;
  seen->with_scalars += strstr(text, "@scalars : global f32") != NULL;
}

// Each layer is (x w) scale + offset.
static void print_model(const double (*layers)[2], int count,
                        pestle_strbuf_t* text) {
  pestle_strbuf_append_c(text,
                         "module {\n  func.func @main(%x0: tensor<8x8xf32>, "
                         "%w: tensor<8x8xf32>) -> tensor<8x8xf32> {\n");
  for (int i = 0; i < count; ++i) {
    pestle_strbuf_appendf(
        text,
        "    %%d%d = stablehlo.dot_general %%x%d, %%w, contracting_dims = [1] "
        "x "
        "[0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n"
        "    %%s%d = stablehlo.constant dense<%.9g> : tensor<8x8xf32>\n"
        "    %%m%d = stablehlo.multiply %%d%d, %%s%d : tensor<8x8xf32>\n"
        "    %%o%d = stablehlo.constant dense<%.9g> : tensor<8x8xf32>\n"
        "    %%x%d = stablehlo.add %%m%d, %%o%d : tensor<8x8xf32>\n",
        i, i, i, layers[i][0], i, i, i, i, layers[i][1], i + 1, i, i);
  }
  pestle_strbuf_appendf(text, "    return %%x%d : tensor<8x8xf32>\n  }\n}\n",
                        count);
  assert_false(text->failed);
}

static void check_values(const double (*layers)[2], int count, const float* x,
                         const float* w, const float* result) {
  double now[N][N], next[N][N];
  for (int i = 0; i < N * N; ++i)
    now[i / N][i % N] = (double)x[i];
  for (int l = 0; l < count; ++l) {
    for (int i = 0; i < N * N; ++i) {
      double sum = 0;
      for (int k = 0; k < N; ++k)
        sum += now[i / N][k] * (double)w[k * N + i % N];
      next[i / N][i % N] =
          sum * (double)(float)layers[l][0] + (double)(float)layers[l][1];
    }
    memcpy(now, next, sizeof now);
  }
  for (int i = 0; i < N * N; ++i) {
    double wanted = now[i / N][i % N];
    assert_true(fabs((double)result[i] - wanted) <= 1e-4 * (1 + fabs(wanted)));
  }
}

// Compiles and runs on |device|; false where it is not built here.
static bool see(const char* device_name, const double (*layers)[2], int count,
                kernels_t* out_seen) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true,
                                      .threads = 2};
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_module_t* module;
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  *out_seen = (kernels_t){0};
  assert_ok(pestle_context_create(&options, &context));
  pestle_status_t status = pestle_context_device(context, device_name, &device);
  if (status) {
    pestle_status_release(status);
    pestle_context_release(context);
    return false;
  }
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  print_model(layers, count, &text);
  assert_ok(
      pestle_module_parse(context, text.data, text.size, "m.mlir", &module));
  pestle_strbuf_deinit(&text);
  pestle_compile_options_t how = {.struct_size = sizeof(how),
                                  .no_cache = true,
                                  .dump_stages = 1u << PESTLE_STAGE_KERNELS,
                                  .dump = see_kernel,
                                  .dump_user = out_seen};
  assert_ok(pestle_compile(context, module, device, &how, &plan));
  assert_ok(pestle_executable_create(context, plan, NULL, &exe));
  _Alignas(64) float x[N * N], w[N * N], y[N * N];
  for (int i = 0; i < N * N; ++i) {
    x[i] = (float)(i % 7 - 3) * 0.25F;
    w[i] = (float)(i % 5 - 2) * 0.125F;
  }
  int64_t dims[] = {N, N};
  pestle_tensor_t in[] = {test_view(x, PESTLE_F32, 2, dims, NULL),
                          test_view(w, PESTLE_F32, 2, dims, NULL)};
  pestle_tensor_t out = test_view(y, PESTLE_F32, 2, dims, NULL);
  assert_ok(pestle_executable_run(exe, NULL, in, 2, &out, 1, NULL));
  check_values(layers, count, x, w, y);
  pestle_executable_release(exe);
  pestle_plan_release(plan);
  pestle_module_release(module);
  pestle_context_release(context);
  return true;
}

static const char* const devices[] = {"ref", "llvm"};

static void test_layers(void** state) {
  (void)state;
  static const double layers[][2] = {
      {0.37, -2.25}, {1.7, 0.3}, {-0.6, 4}, {0.2, -7}};
  for (int i = 0; i < 2; ++i) {
    kernels_t seen;
    if (!see(devices[i], layers, 4, &seen)) continue;
    assert_int_equal(seen.count, 4);
    // The first reads where the caller's memory lies.
    assert_true(seen.with_scalars >= 3);
  }
}

// One scale for all, one layer alone, and numbers that code is better for stay code.
static void test_alone(void** state) {
  (void)state;
  static const double same[][2] = {{0.37, 2.5}, {0.37, 2.5}};
  static const double special[][2] = {{0.37, 2.5}, {1.0, 2.5}};
  kernels_t seen;
  for (int i = 0; i < 2; ++i) {
    if (!see(devices[i], same, 2, &seen)) continue;
    assert_int_equal(seen.with_scalars, 0);
    assert_true(see(devices[i], same, 1, &seen));
    assert_int_equal(seen.with_scalars, 0);
    assert_true(see(devices[i], special, 2, &seen));
    assert_int_equal(seen.with_scalars, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers),
                                     cmocka_unit_test(test_alone)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
