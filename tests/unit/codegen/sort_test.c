// SPDX-License-Identifier: Apache-2.0
// Sorts, and slices of them, compiled whole: what the evaluator says, over
// lengths around those of vectors and blocks, how many are read, orders, and
// values among which many are equal or NaN.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ref/ref.h"
#include "pestle/pestle.h"
#include "test.h"

static pestle_context_t* context;

// Comparators of %a and %b, of f32. By the last one NaN are equal to all: which
// merge sort it is decides where they come.
typedef struct order_t {
  const char* name;
  const char* lines;  // end in %r
} order_t;

static const order_t orders[] = {
    {"total",
     "    %r = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, "
     "tensor<f32>) -> tensor<i1>\n"},
    {"largest, NaN above",
     "    %g = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> "
     "tensor<i1>\n"
     "    %n = \"pestle.is_nan\"(%a) : (tensor<f32>) -> tensor<i1>\n"
     "    %e = stablehlo.compare EQ, %b, %b : (tensor<f32>, tensor<f32>) -> "
     "tensor<i1>\n"
     "    %m = stablehlo.and %n, %e : tensor<i1>\n"
     "    %r = stablehlo.or %g, %m : tensor<i1>\n"},
    {"less",
     "    %r = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> "
     "tensor<i1>\n"},
};

static const int64_t lengths[] = {1, 2, 15, 16, 17, 63, 64, 65, 130, 300, 1030};

typedef struct run_t {
  int64_t length, inner;  // of [3, length, inner], sorted along 1
  int64_t count;          // of them are read
  const order_t* order;
  int values;
} run_t;

static float make_value(const run_t* r, uint32_t* state, int64_t i) {
  *state = *state * 1664525u + 1013904223u;
  float x = (float)(*state >> 8) / (1 << 20);
  switch (r->values) {
    case 0:
      return x;
    case 1:
      return floorf(x);
    case 2:
      return (float)i;
    case 3:
      return -(float)i;
    default:
      return *state >> 29 ? floorf(x) : NAN;
  }
}

static void print(const run_t* r, char* out, size_t size) {
  char all[64], some[64], places[64];
  int n = (int)r->length, k = (int)r->count, m = (int)r->inner;
  snprintf(all, sizeof(all), "3x%dx%dx", n, m);
  snprintf(some, sizeof(some), "tensor<3x%dx%dxf32>", k, m);
  snprintf(places, sizeof(places), "tensor<3x%dx%dxi32>", k, m);
  snprintf(
      out, size,
      "func.func @main(%%x: tensor<%sf32>) -> (%s, %s) {\n"
      "  %%i = stablehlo.iota dim = 1 : tensor<%si32>\n"
      "  %%0:2 = \"stablehlo.sort\"(%%x, %%i) <{dimension = 1 : i64, is_stable "
      "= true}> ({\n"
      "  ^bb0(%%a: tensor<f32>, %%b: tensor<f32>, %%c: tensor<i32>, %%d: "
      "tensor<i32>):\n%s"
      "    stablehlo.return %%r : tensor<i1>\n"
      "  }) : (tensor<%sf32>, tensor<%si32>) -> (tensor<%sf32>, "
      "tensor<%si32>)\n"
      "  %%1 = stablehlo.slice %%0#0 [0:3, 0:%d, 0:%d] : (tensor<%sf32>) -> "
      "%s\n"
      "  %%2 = stablehlo.slice %%0#1 [0:3, 0:%d, 0:%d] : (tensor<%si32>) -> "
      "%s\n"
      "  return %%1, %%2 : %s, %s\n"
      "}\n",
      all, some, places, all, r->order->lines, all, all, all, all, k, m, all,
      some, k, m, all, places, some, places);
}

// |cpu|: what the device describes itself as; NULL: as what it is.
static void compile_and_run(pestle_module_t* module, const char* name,
                            const char* cpu, const pestle_tensor_t* in,
                            void* const* want, size_t bytes, const run_t* r) {
  pestle_device_t* device;
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  pestle_tensor_t out[2] = {{0}};
  pestle_status_t status = pestle_context_device(context, name, &device);
  if (status) {
    pestle_status_release(status);
    return;
  }
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true,
                                      .target_cpu = cpu,
                                      .verify = true};
  assert_ok(pestle_compile(context, module, device, &options, &plan));
  assert_ok(pestle_executable_create(context, plan, device, &exe));
  assert_ok(pestle_executable_run(exe, NULL, in, 1, out, 2, NULL));
  for (size_t i = 0; i < 2; ++i) {
    if (memcmp(out[i].data, want[i], bytes)) {
      fail_msg("%s %s: result %zu of %d of %d x %d, order '%s', values %d",
               name, cpu ? cpu : "", i, (int)r->count, (int)r->length,
               (int)r->inner, r->order->name, r->values);
    }
    pestle_tensor_release(exe, &out[i]);
  }
  pestle_executable_release(exe);
  pestle_plan_release(plan);
}

static void check(const run_t* r) {
  char text[4096];
  uint32_t state = (uint32_t)(r->length * 31 + r->count);
  pestle_module_t* module;
  int64_t n = 3 * r->length * r->inner;
  size_t bytes = (size_t)(3 * r->count * r->inner) * 4;
  float* x = malloc((size_t)n * 4);
  void* want[] = {malloc(bytes), malloc(bytes)};
  for (int64_t i = 0; i < n; ++i)
    x[i] = make_value(r, &state, i);
  print(r, text, sizeof(text));
  assert_ok(pestle_module_parse(context, text, strlen(text), NULL, &module));
  pestle_function_t* f = pestle_module_entry(module);
  const pestle_type_t* type = pestle_function_argument(f, 0)->type;
  pestle_tensor_t in = {.data = x,
                        .device = {PESTLE_DEVICE_CPU, 0},
                        .ndim = type->rank,
                        .dtype = pestle_dtype_to_dlpack(type->dtype),
                        .shape = (int64_t*)(uintptr_t)type->dims};
  assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(), f,
                                         (const void* const[]){x}, want));
  compile_and_run(module, "ref", NULL, &in, want, bytes, r);
  compile_and_run(module, "llvm", NULL, &in, want, bytes, r);
  // Of long rows a few, since lanes take turns there.
  if (r->length <= 130 || r->count == r->length)
    compile_and_run(module, "ref", "simt", &in, want, bytes, r);
  pestle_module_release(module);
  free(want[0]);
  free(want[1]);
  free(x);
}

static void test_order(void** state) {
  const order_t* order = *state;
  int values = 0;
  for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
    int64_t n = lengths[i], counts[] = {1, 5, n / 3, n - 1, n};
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); ++k) {
      if (counts[k] < 1 || counts[k] > n) continue;
      run_t r = {.length = n,
                 .inner = 1 + (int64_t)(k % 2),
                 .count = counts[k],
                 .order = order,
                 .values = values};
      values = (values + 1) % 5;
      check(&r);
    }
  }
}

static int setup(void** state) {
  (void)state;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true};
  assert_ok(pestle_context_create(&options, &context));
  return 0;
}

static int teardown(void** state) {
  (void)state;
  pestle_context_release(context);
  return 0;
}

enum { ORDERS = sizeof(orders) / sizeof(orders[0]) };

int main(void) {
  struct CMUnitTest tests[ORDERS];
  for (size_t i = 0; i < ORDERS; ++i) {
    tests[i] =
        (struct CMUnitTest){.name = orders[i].name,
                            .test_func = test_order,
                            .initial_state = (void*)(uintptr_t)&orders[i]};
  }
  return cmocka_run_group_tests(tests, setup, teardown);
}
