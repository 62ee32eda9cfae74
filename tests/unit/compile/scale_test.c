// SPDX-License-Identifier: Apache-2.0
// The cost of compiling grows linearly with the model, in memory and requests
// for memory, which unlike times are the same on every run.
#include <stdlib.h>

#include "base/str.h"
#include "pestle/pestle.h"
#include "test.h"

typedef struct cost_t {
  size_t peak, requests;
  unsigned kernels;
} cost_t;

static void count_kernels(void* user, pestle_stage_t stage, const char* name,
                          const char* text, size_t size) {
  (void)stage, (void)name, (void)size;
  cost_t* cost = user;
  unsigned steps;
  assert_int_equal(
      sscanf(text, "plan: %u steps, %u kernels", &steps, &cost->kernels), 2);
}

// Of a compile for the interpreter: a code generator costs the same a kernel.
static cost_t compile(const pestle_strbuf_t* text) {
  cost_t cost = {0};
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = pestle_test_allocator(&memory),
      .backend_path = getenv("PESTLE_BACKEND_PATH"),
      .no_cache = true,
      .threads = 1};
  pestle_context_t* context;
  pestle_module_t* module;
  pestle_device_t* device;
  pestle_plan_t* plan;
  assert_ok(pestle_context_create(&options, &context));
  assert_ok(pestle_context_device(context, "ref", &device));
  assert_ok(pestle_module_parse(context, text->data, text->size, "scale.mlir",
                                &module));
  pestle_compile_options_t how = {.struct_size = sizeof(how),
                                  .no_cache = true,
                                  .dump_stages = 1u << PESTLE_STAGE_PLAN,
                                  .dump = count_kernels,
                                  .dump_user = &cost};
  assert_ok(pestle_compile(context, module, device, &how, &plan));
  cost.peak = atomic_load(&memory.peak_bytes);
  cost.requests = atomic_load(&memory.request_count);
  pestle_plan_release(plan);
  pestle_module_release(module);
  pestle_context_release(context);
  pestle_test_allocator_check(&memory);
  return cost;
}

// One kernel an operand.
static cost_t concatenate(int n) {
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_strbuf_append_c(&text, "module @wide {\n  func.func @main(");
  for (int i = 0; i < n; ++i) {
    pestle_strbuf_appendf(&text, "%s%%x%d: tensor<2x%dxf32>", i ? ", " : "", i,
                          3 + i % 5);
  }
  int width = 5 * n;  // of a multiple of five operands
  pestle_strbuf_appendf(&text,
                        ") -> tensor<2x%dxf32> {\n    %%y = stablehlo."
                        "concatenate ",
                        width);
  for (int i = 0; i < n; ++i)
    pestle_strbuf_appendf(&text, "%%x%d, ", i);
  pestle_strbuf_append_c(&text, "dim = 1 : (");
  for (int i = 0; i < n; ++i) {
    pestle_strbuf_appendf(&text, "%stensor<2x%dxf32>", i ? ", " : "",
                          3 + i % 5);
  }
  pestle_strbuf_appendf(&text,
                        ") -> tensor<2x%dxf32>\n"
                        "    return %%y : tensor<2x%dxf32>\n  }\n}\n",
                        width, width);
  cost_t cost = compile(&text);
  pestle_strbuf_deinit(&text);
  return cost;
}

static cost_t chain(int n) {
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_strbuf_append_c(&text,
                         "module @long {\n  func.func @main(%t0: tensor<64xf32>"
                         ", %y: tensor<64xf32>) -> tensor<64xf32> {\n");
  for (int i = 0; i < n; ++i) {
    pestle_strbuf_appendf(
        &text, "    %%t%d = stablehlo.%s %%t%d, %%y : tensor<64xf32>\n", i + 1,
        i % 2 ? "multiply" : "add", i);
  }
  pestle_strbuf_appendf(&text, "    return %%t%d : tensor<64xf32>\n  }\n}\n",
                        n);
  cost_t cost = compile(&text);
  pestle_strbuf_deinit(&text);
  return cost;
}

// |large| is of |times| as much work as |small|. Half as much again is for
// arrays that have just doubled; quadratic growth is |times| as much again.
static void check_growth(const cost_t* small, const cost_t* large,
                         unsigned times) {
  print_message(
      "kernels %u -> %u, peak %zu -> %zu bytes, requests %zu -> %zu\n",
      small->kernels, large->kernels, small->peak, large->peak, small->requests,
      large->requests);
  assert_true(large->peak <= small->peak * times * 3 / 2);
  assert_true(large->requests <= small->requests * times * 3 / 2);
}

static void test_concatenate(void** state) {
  (void)state;
  cost_t small = concatenate(75), large = concatenate(300);
  assert_int_equal(small.kernels, 75);
  assert_int_equal(large.kernels, 300);
  check_growth(&small, &large, 4);
}

static void test_chain(void** state) {
  (void)state;
  cost_t small = chain(1250), large = chain(10000);
  // Fusions end at some length; one op a kernel would be no fusion.
  assert_true(large.kernels < 10000 / 8);
  assert_true(large.kernels <= small.kernels * 9);
  check_growth(&small, &large, 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_concatenate),
      cmocka_unit_test(test_chain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
