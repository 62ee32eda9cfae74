// SPDX-License-Identifier: Apache-2.0
// Attributes of dialects on modules, functions, arguments and results.
#include "ir/signature.h"
#include "ir_test.h"
#include "text_test.h"

static const char full[] =
    "module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = "
    "3 : i32} {\n"
    "  func.func public @main(%x: tensor<4xf32> {pestle.name = \"x\", "
    "mhlo.layout = \"{devices=[2]<=[2]}\", tf.aliasing_output = 0 : i32}, "
    "%y: tensor<2xi8> {jax.buffer_donor = true}, %z: tensor<2xi8> {a.key}) -> "
    "(tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) "
    "attributes {a.list = [1, 2], \"a.no word\" = 1, b.c = {d = \"e  f\"}} "
    "{\n"
    "    %0 = stablehlo.negate %x : tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n"
    "  }\n"
    "}\n";

static void text_keeps_what_has_a_dot(void** state) {
  (void)state;
  assert_prints(full, full, 0);
  // Keys are sorted, spaces and lines are one space, but in strings; what has
  // no dot and what names Python's results goes.
  assert_prints(
      "func.func @main(%x: tensor<4xf32> {tf.aliasing_output = 0:i32,\n"
      "  jax.buffer_donor = true, other = 1 : i32}) -> (tensor<4xf32> "
      "{jax.result_info = \"[0]\"}) {\n return %x : tensor<4xf32> }",
      "module {\n"
      "  func.func public @main(%x: tensor<4xf32> {jax.buffer_donor = true, "
      "tf.aliasing_output = 0:i32}) -> tensor<4xf32> {\n"
      "    return %x : tensor<4xf32>\n  }\n}\n",
      0);
}

static void the_generic_form_keeps_them_too(void** state) {
  (void)state;
  assert_prints(
      "\"builtin.module\"() <{sym_name = \"m\"}> ({\n"
      "  \"func.func\"() <{arg_attrs = [{jax.buffer_donor = true}], "
      "function_type = (tensor<4xf32>) -> tensor<4xf32>, res_attrs = "
      "[{mhlo.memory_kind = \"device\"}], sym_name = \"main\", sym_visibility "
      "= \"public\"}> ({\n"
      "  ^bb0(%x: tensor<4xf32>):\n"
      "    \"func.return\"(%x) : (tensor<4xf32>) -> ()\n"
      "  }) {b.c = 1 : i32} : () -> ()\n"
      "}) {mhlo.num_partitions = 1 : i32} : () -> ()\n",
      "module @m attributes {mhlo.num_partitions = 1 : i32} {\n"
      "  func.func public @main(%x: tensor<4xf32> {jax.buffer_donor = true}) "
      "-> (tensor<4xf32> {mhlo.memory_kind = \"device\"}) attributes {b.c = 1 "
      ": i32} {\n"
      "    return %x : tensor<4xf32>\n  }\n}\n",
      0);
}

static void accessors_read_them(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(context, full);
  const pestle_function_t* f = module->first;
  assert_int_equal(pestle_module_device_count(module), 6);
  assert_int_equal(pestle_function_aliased_result(f, 0), 0);
  assert_int_equal(pestle_function_aliased_result(f, 1), -1);
  assert_int_equal(pestle_function_aliased_result(f, 9), -1);
  assert_false(pestle_function_argument_is_donor(f, 0));
  assert_true(pestle_function_argument_is_donor(f, 1));
  assert_false(pestle_function_argument_is_donor(f, 2));
  assert_string_equal(
      pestle_dialect_attrs_find(pestle_function_argument_attrs(f, 2), "a.key"),
      "");
  assert_string_equal(pestle_dialect_attrs_find(f->dialect_attrs, "b.c"),
                      "{d = \"e  f\"}");
  assert_null(pestle_dialect_attrs_find(f->dialect_attrs, "b"));
  assert_int_equal(pestle_dialect_attrs_i64(f->dialect_attrs, "a.list", 7), 7);
  assert_int_equal(pestle_function_result_attrs(f, 0).count, 1);
  assert_int_equal(pestle_function_result_attrs(f, 5).count, 0);
  pestle_module_release(module);
  pestle_context_release(context);
}

static void copies_have_them(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t *module = text_parse(context, full), *copies[2];
  void* data;
  size_t size;
  assert_ok(pestle_module_serialize(module, &data, &size));
  assert_ok(pestle_module_deserialize(context, data, size, &copies[0]));
  assert_ok(pestle_module_clone(module, &copies[1]));
  for (int i = 0; i < 2; ++i) {
    char* text = text_print(copies[i], 0);
    assert_string_equal(text, full);
    free(text);
    pestle_module_release(copies[i]);
  }
  pestle_context_free(context, data, size);
  pestle_module_release(module);
  pestle_context_release(context);
}

static void edits_move_them(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(context, full);
  pestle_function_t* f = module->first;
  pestle_value_t* x = pestle_function_argument(f, 0);
  pestle_value_t* y = pestle_node_operand(f->body->block->last, 0);
  pestle_value_t* values[] = {y, x, y};
  assert_ok(pestle_function_remove_argument(f, 1));
  assert_string_equal(
      pestle_dialect_attrs_find(pestle_function_argument_attrs(f, 1), "a.key"),
      "");
  assert_ok(
      pestle_function_set_results(f, values, 3, (const int64_t[]){-1, -1, 0}));
  assert_int_equal(pestle_function_result_attrs(f, 0).count, 0);
  assert_int_equal(pestle_function_result_attrs(f, 2).count, 1);
  assert_ok(pestle_module_verify(module));
  pestle_module_release(module);
  pestle_context_release(context);
}

static uint64_t signature_of(const char* module_attrs, const char* argument,
                             const char* result) {
  char text[1024];
  snprintf(text, sizeof(text),
           "module @m %s {\n  func.func @main(%%x: tensor<4xf32> %s) -> "
           "(tensor<4xf32> %s) {\n %%0 = stablehlo.negate %%x : "
           "tensor<4xf32>\n return %%0 : tensor<4xf32> } }",
           module_attrs, argument, result);
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(context, text);
  uint64_t hash[2];
  assert_ok(pestle_module_signature(module, hash));
  pestle_module_release(module);
  pestle_context_release(context);
  return hash[0];
}

static void the_signature_sees_contracts(void** state) {
  (void)state;
  const char* two = "attributes {mhlo.num_partitions = 2 : i32}";
  const char* one = "attributes {mhlo.num_partitions = 1 : i32}";
  const char* sharding = "{mhlo.sharding = \"{devices=[2]<=[2]}\"}";
  uint64_t base = signature_of("", "", "");
  assert_false(base == signature_of("", "{tf.aliasing_output = 0 : i32}", ""));
  assert_false(base == signature_of("", "{jax.buffer_donor = true}", ""));
  assert_false(base == signature_of(two, "", ""));
  assert_false(signature_of(two, "", "") == signature_of(two, sharding, ""));
  assert_false(signature_of(two, "", "") == signature_of(two, "", sharding));
  assert_false(signature_of(two, sharding, "") ==
               signature_of(two, "", sharding));
  // On one device it is all the same, and so is what nobody acts upon.
  assert_true(base == signature_of(one, sharding, sharding));
  assert_true(base == signature_of("", "{a.b = 1 : i32}", "{c.d}"));
  assert_true(base == signature_of("", "{jax.buffer_donor = false}", ""));
}

static void refusals(void** state) {
  (void)state;
#define MAIN(argument)                                                         \
  "func.func @main(%x: tensor<4xf32> " argument ", %y: tensor<4xf32>" argument \
  ") -> tensor<4xf32> { return %x : tensor<4xf32> }"
  assert_refuses(MAIN("{a.b = 1 : i32, a.b = 2 : i32}"), MALFORMED,
                 "'a.b' is given twice");
  assert_refuses(MAIN("{tf.aliasing_output = 0 : i32}"), MALFORMED,
                 "arguments 0 and 1 alias result 0");
  assert_refuses(MAIN("{tf.aliasing_output = 1 : i32}"), MALFORMED,
                 "argument 0 aliases no result");
  assert_refuses(MAIN("{tf.aliasing_output = -1 : i32}"), MALFORMED,
                 "argument 0 aliases no result");
  assert_refuses(
      "func.func @main(%x: tensor<2xi8> {tf.aliasing_output = 0 : "
      "i32}, %y: tensor<4xf32>) -> tensor<4xf32> { return %y : "
      "tensor<4xf32> }",
      MALFORMED, "aliases result 0 of another type");
  BEGIN(t, T(F32, 4));
  const pestle_dialect_attr_t plain = {"plain", ""};
  assert_error(pestle_function_set_argument_attrs(t.function, 0, &plain, 1),
               INVALID_ARGUMENT, "has no dot");
  ir_test_end(&t);
}

static pestle_status_t work(pestle_allocator_t allocator) {
  pestle_context_t* context = NULL;
  pestle_module_t *module = NULL, *loaded = NULL;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .allocator = allocator};
  void* data = NULL;
  size_t size = 0;
  pestle_status_t status = pestle_context_create(&options, &context);
  if (!status) {
    status =
        pestle_module_parse(context, full, sizeof(full) - 1, "t.mlir", &module);
  }
  if (!status) status = pestle_module_serialize(module, &data, &size);
  if (!status) status = pestle_module_deserialize(context, data, size, &loaded);
  if (data) pestle_context_free(context, data, size);
  pestle_module_release(loaded);
  pestle_module_release(module);
  pestle_context_release(context);
  return status;
}

// Tokens are no values: what counts results counts without them.
static void tokens_among_arguments_and_results(void** state) {
  static const char text[] =
      "module @m {\n"
      "  func.func @main(%t: !stablehlo.token {jax.token = true}, %x: "
      "tensor<4xf32> {tf.aliasing_output = 1 : i32}, %u: !stablehlo.token) -> "
      "(!stablehlo.token, tensor<4xf32>) {\n"
      "    return %t, %x : !stablehlo.token, tensor<4xf32>\n"
      "  }\n"
      "}\n";
  const uint32_t* positions;
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(context, text);
  const pestle_function_t* f = pestle_module_entry(module);
  assert_int_equal(pestle_function_argument_count(f), 1);
  assert_int_equal(pestle_function_tokens(f, false, &positions), 2);
  assert_int_equal(positions[0], 0);
  assert_int_equal(positions[1], 2);
  assert_int_equal(pestle_function_tokens(f, true, &positions), 1);
  assert_int_equal(positions[0], 0);
  assert_int_equal(pestle_function_aliased_result(f, 0), 0);
  assert_string_equal(
      pestle_function_argument_attribute(f, 0, "tf.aliasing_output"),
      "0 : i32");
  assert_string_equal(pestle_module_name(module), "m");
  pestle_module_release(module);
  pestle_context_release(context);
}

// A call of one of Pestle's own ops is that op.
static void calls_of_own_ops(void** state) {
  (void)state;
  assert_prints(
      "func.func @main(%x: tensor<3x3xf32>) -> (tensor<3xf32>, "
      "tensor<3x3xf32>) {\n"
      "  %0:2 = stablehlo.custom_call @pestle.eigh(%x) {api_version = 1 : i32, "
      "backend_config = \"\", has_side_effect = false, mhlo.backend_config = "
      "{lower = true}} : (tensor<3x3xf32>) -> (tensor<3xf32>, "
      "tensor<3x3xf32>)\n"
      "  return %0#0, %0#1 : tensor<3xf32>, tensor<3x3xf32>\n"
      "}\n",
      "module {\n"
      "  func.func public @main(%x: tensor<3x3xf32>) -> (tensor<3xf32>, "
      "tensor<3x3xf32>) {\n"
      "    %0:2 = \"pestle.eigh\"(%x) <{lower = true}> : (tensor<3x3xf32>) -> "
      "(tensor<3xf32>, tensor<3x3xf32>)\n"
      "    return %0#0, %0#1 : tensor<3xf32>, tensor<3x3xf32>\n"
      "  }\n}\n",
      0);
  assert_refuses(
      "func.func @main(%x: tensor<3x3xf32>) -> tensor<3xf32> {\n"
      "  %0:2 = stablehlo.custom_call @pestle.eigh(%x) {mhlo.backend_config = "
      "{upper = true}} : (tensor<3x3xf32>) -> (tensor<3xf32>, "
      "tensor<3x3xf32>)\n"
      "  return %0#0 : tensor<3xf32>\n"
      "}\n",
      UNSUPPORTED, "'pestle.eigh' has no attribute 'upper'");
}

// StableHLO lets the factors of a product be of two types.
static void products_of_two_types(void** state) {
  (void)state;
  assert_prints(
      "func.func @main(%x: tensor<3xf32>, %y: tensor<3xbf16>) -> tensor<f32> "
      "{\n"
      "  %0 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : "
      "(tensor<3xf32>, tensor<3xbf16>) -> tensor<f32>\n"
      "  return %0 : tensor<f32>\n"
      "}\n",
      "module {\n"
      "  func.func public @main(%x: tensor<3xf32>, %y: tensor<3xbf16>) -> "
      "tensor<f32> {\n"
      "    %0 = stablehlo.convert %y : (tensor<3xbf16>) -> tensor<3xf32>\n"
      "    %1 = stablehlo.dot_general %x, %0, contracting_dims = [0] x [0] : "
      "(tensor<3xf32>, tensor<3xf32>) -> tensor<f32>\n"
      "    return %1 : tensor<f32>\n"
      "  }\n}\n",
      0);
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, k);
    pestle_status_t status = work(pestle_test_allocator(&memory));
    bool failed = pestle_test_allocator_failed(&memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_keeps_what_has_a_dot),
      cmocka_unit_test(the_generic_form_keeps_them_too),
      cmocka_unit_test(accessors_read_them),
      cmocka_unit_test(copies_have_them),
      cmocka_unit_test(edits_move_them),
      cmocka_unit_test(the_signature_sees_contracts),
      cmocka_unit_test(refusals),
      cmocka_unit_test(tokens_among_arguments_and_results),
      cmocka_unit_test(calls_of_own_ops),
      cmocka_unit_test(products_of_two_types),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
