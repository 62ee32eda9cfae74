// SPDX-License-Identifier: Apache-2.0
// Kernels that a run does not notice are compiled soon rather than fast; those that
// count, those of loops, and all of a model whose kernels weigh the same are not.
#include <stdlib.h>

#include "pestle/pestle.h"
#include "test.h"

typedef struct seen_t {
  unsigned kernels, cold;
  char cold_names[256];
} seen_t;

static void see(void* user, pestle_stage_t stage, const char* name,
                const char* text, size_t size) {
  (void)stage, (void)size;
  seen_t* seen = user;
  if (strncmp(text, "kernel ", 7)) return;
  seen->kernels++;
  if (!strstr(text, "made soon rather than fast")) return;
  seen->cold++;
  size_t used = strlen(seen->cold_names);
  snprintf(seen->cold_names + used, sizeof seen->cold_names - used, "%s ",
           name);
}

static seen_t explain(const char* text, const char* device_name) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .no_cache = true,
                                      .threads = 1};
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_module_t* module;
  pestle_plan_t* plan;
  seen_t seen = {0};
  assert_ok(pestle_context_create(&options, &context));
  assert_ok(pestle_context_device(context, device_name, &device));
  assert_ok(
      pestle_module_parse(context, text, strlen(text), "m.mlir", &module));
  pestle_compile_options_t how = {.struct_size = sizeof(how),
                                  .no_cache = true,
                                  .dump_stages = 1u << PESTLE_STAGE_EXPLAIN,
                                  .dump = see,
                                  .dump_user = &seen};
  assert_ok(pestle_compile(context, module, device, &how, &plan));
  pestle_plan_release(plan);
  pestle_module_release(module);
  pestle_context_release(context);
  return seen;
}

// A product of 67 M operations, then a softmax over 64 numbers of it.
static void test_small_beside_large(void** state) {
  (void)state;
  seen_t seen = explain(
      "module { func.func @main(%a: tensor<256x512xf32>, %b: "
      "tensor<512x256xf32>) -> tensor<1x1xf32> {\n"
      "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
      "(tensor<256x512xf32>, tensor<512x256xf32>) -> tensor<256x256xf32>\n"
      "%1 = stablehlo.slice %0 [0:1, 0:64] : (tensor<256x256xf32>) -> "
      "tensor<1x64xf32>\n"
      "%2 = stablehlo.slice %0 [1:2, 0:64] : (tensor<256x256xf32>) -> "
      "tensor<1x64xf32>\n"
      "%3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [1] : "
      "(tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x1xf32>\n"
      "return %3 : tensor<1x1xf32> } }",
      "ref");
  assert_int_equal(seen.kernels, 2);
  assert_int_equal(seen.cold, 1);
  assert_non_null(strstr(seen.cold_names, "_1 "));
}

static void test_alike(void** state) {
  (void)state;
  seen_t seen = explain(
      "module { func.func @main(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {\n"
      "%0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : "
      "(tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>\n"
      "%1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0] : "
      "(tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>\n"
      "return %1 : tensor<64x64xf32> } }",
      "ref");
  assert_int_equal(seen.kernels, 2);
  assert_int_equal(seen.cold, 0);
}

// How often a body runs is not known.
static void test_loop(void** state) {
  (void)state;
  seen_t seen = explain(
      "module { func.func @main(%a: tensor<256x512xf32>, %b: "
      "tensor<512x256xf32>, %n: tensor<i32>, %x: tensor<4xf32>) -> "
      "(tensor<256x256xf32>, tensor<4xf32>) {\n"
      "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
      "(tensor<256x512xf32>, tensor<512x256xf32>) -> tensor<256x256xf32>\n"
      "%one = stablehlo.constant dense<1> : tensor<i32>\n"
      "%2:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, tensor<4xf32>\n"
      "cond { %c = stablehlo.compare GT, %i, %one : (tensor<i32>, "
      "tensor<i32>) -> tensor<i1>\n stablehlo.return %c : tensor<i1> }\n"
      "do { %j = stablehlo.subtract %i, %one : tensor<i32>\n"
      "%z = stablehlo.tanh %y : tensor<4xf32>\n"
      "stablehlo.return %j, %z : tensor<i32>, tensor<4xf32> }\n"
      "return %0, %2#1 : tensor<256x256xf32>, tensor<4xf32> } }",
      "ref");
  assert_true(seen.kernels >= 3);
  assert_int_equal(seen.cold, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_beside_large),
                                     cmocka_unit_test(test_alike),
                                     cmocka_unit_test(test_loop)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
