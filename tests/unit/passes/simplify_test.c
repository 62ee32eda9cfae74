// SPDX-License-Identifier: Apache-2.0
// Every row of simplify.def: its example parses, its rule changes it, and both
// sides evaluate to the same bits (to a tolerance for DEFAULT rows).
#include "passes_test.h"

#include "passes/simplify.h"

static char* example(const pestle_simplify_rule_t* rule) {
  size_t size = strlen(rule->arguments) + strlen(rule->result) * 2 +
                strlen(rule->body) + 100;
  char* text = malloc(size);
  snprintf(text, size, "func.func @main(%s) -> %s {\n%s\nreturn %%r : %s\n}\n",
           rule->arguments, rule->result, rule->body, rule->result);
  return text;
}

// Applies |rule| alone to each op of the entry; says how often it fitted.
static size_t apply(pestle_module_t* module, const char* rule,
                    pestle_numerics_t numerics) {
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .numerics = numerics};
  pestle_arena_t scratch;
  pestle_arena_init(pestle_context_allocator(module->context), &scratch);
  pestle_pass_context_t ctx = {
      .context = module->context, .options = &options, .scratch = &scratch};
  pestle_block_t* block = pestle_module_entry(module)->body->block;
  size_t applied = 0;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    pestle_value_t* out[PESTLE_SIMPLIFY_MAX_RESULTS];
    next = n->next;
    assert_ok(pestle_simplify_node(&ctx, rule, n, out));
    if (!out[0]) continue;
    for (uint32_t i = 0; i < n->result_count; ++i) {
      pestle_value_replace_all_uses(&n->results[i], out[i]);
    }
    pestle_node_erase(n);
    ++applied;
  }
  pestle_arena_deinit(&scratch);
  return applied;
}

static void test_examples(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  size_t count;
  const pestle_simplify_rule_t* rules = pestle_simplify_table(&count);
  for (size_t i = 0; i < count; ++i) {
    char* text = example(&rules[i]);
    pestle_module_t* module = test_parse(context, text);
    test_results_t before = test_evaluate(module, 4242);
    size_t applied = apply(module, rules[i].name, PESTLE_NUMERICS_DEFAULT);
    if (applied != 1) {
      print_error("rule '%s' fitted %zu times\n", rules[i].name, applied);
    }
    assert_int_equal(applied, 1);
    assert_ok(pestle_module_verify(module));
    test_results_t after = test_evaluate(module, 4242);
    double difference = test_difference(&before, &after);
    bool exact = rules[i].numerics == PESTLE_RULE_EXACT;
    if (difference > (exact ? 0 : 3e-7)) {
      print_error("rule '%s' differs by %g\n", rules[i].name, difference);
    }
    assert_true(difference <= (exact ? 0 : 3e-7));
    test_free_results(&before);
    test_free_results(&after);
    pestle_module_release(module);
    free(text);
  }
  pestle_context_release(context);
}

static void test_strict_leaves_out(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  size_t count;
  const pestle_simplify_rule_t* rules = pestle_simplify_table(&count);
  for (size_t i = 0; i < count; ++i) {
    if (rules[i].numerics == PESTLE_RULE_EXACT) continue;
    char* text = example(&rules[i]);
    pestle_module_t* module = test_parse(context, text);
    assert_int_equal(apply(module, rules[i].name, PESTLE_NUMERICS_STRICT), 0);
    pestle_module_release(module);
    free(text);
  }
  pestle_context_release(context);
}

// What must stay: the body is printed unchanged by the pass.
static void expect_kept(pestle_context_t* context, const char* text) {
  pestle_module_t* module = test_parse(context, text);
  char* before = test_print(module);
  test_run(module, "simplify");
  char* after = test_print(module);
  assert_string_equal(before, after);
  free(before);
  free(after);
  pestle_module_release(module);
}

static void test_signed_zeros_and_nan(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  // -0 + 0 is 0.
  expect_kept(context,
              "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
              "%c = stablehlo.constant dense<0.0> : tensor<4xf32>\n"
              "%r = stablehlo.add %x, %c : tensor<4xf32>\n"
              "return %r : tensor<4xf32>\n}\n");
  // 0 * NaN is NaN, x - x is NaN for infinities.
  expect_kept(context,
              "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
              "%c = stablehlo.constant dense<0.0> : tensor<4xf32>\n"
              "%r = stablehlo.multiply %x, %c : tensor<4xf32>\n"
              "%s = stablehlo.subtract %r, %r : tensor<4xf32>\n"
              "return %s : tensor<4xf32>\n}\n");
  // 1/3 is not exact, 2^-127 has no normal reciprocal.
  expect_kept(context,
              "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
              "%c = stablehlo.constant dense<3.0> : tensor<4xf32>\n"
              "%d = stablehlo.constant dense<5.877471754111438e-39> : "
              "tensor<4xf32>\n"
              "%r = stablehlo.divide %x, %c : tensor<4xf32>\n"
              "%s = stablehlo.divide %r, %d : tensor<4xf32>\n"
              "return %s : tensor<4xf32>\n}\n");
  // The root of what may be negative, or -0, is not its power.
  expect_kept(context,
              "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
              "%c = stablehlo.constant dense<0.5> : tensor<4xf32>\n"
              "%r = stablehlo.power %x, %c : tensor<4xf32>\n"
              "return %r : tensor<4xf32>\n}\n");
  // A NaN is no small exponent: 1 to its power is 1, all else NaN.
  expect_kept(context,
              "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
              "%c = stablehlo.constant dense<0x7FC00000> : tensor<4xf32>\n"
              "%a = stablehlo.abs %x : tensor<4xf32>\n"
              "%r = stablehlo.power %a, %c : tensor<4xf32>\n"
              "return %r : tensor<4xf32>\n}\n");
  // i32 does not fit f32.
  expect_kept(context,
              "func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {\n"
              "%f = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xf32>\n"
              "%r = stablehlo.convert %f : (tensor<4xf32>) -> tensor<4xi32>\n"
              "return %r : tensor<4xi32>\n}\n");
  // -1 as a float stops at 0, as an integer it wraps to 255.
  expect_kept(context,
              "func.func @main(%x: tensor<4xi8>) -> tensor<4xui8> {\n"
              "%f = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xf32>\n"
              "%r = stablehlo.convert %f : (tensor<4xf32>) -> tensor<4xui8>\n"
              "return %r : tensor<4xui8>\n}\n");
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_examples),
      cmocka_unit_test(test_strict_leaves_out),
      cmocka_unit_test(test_signed_zeros_and_nan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
