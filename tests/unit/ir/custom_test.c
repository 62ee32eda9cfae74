// SPDX-License-Identifier: Apache-2.0
// Ops by name: composites of the text and what becomes of them.
#include "ir/signature.h"
#include "ir_test.h"
#include "ref_test.h"

// --- Text ---

static const char plain[] =
    "module {\n"
    "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
    "    %0 = stablehlo.composite \"user.twice\" %arg0 {composite_attributes = "
    "{by = 2 : i64}, decomposition = @user.twice.impl, version = 3 : i32} : "
    "(tensor<4xf32>) -> tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n"
    "  }\n"
    "  func.func private @user.twice.impl(%arg0: tensor<4xf32>) -> "
    "tensor<4xf32> {\n"
    "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n"
    "  }\n"
    "}\n";

static void composites_keep_what_they_say(void** state) {
  (void)state;
  assert_prints(plain, plain, 0);
  // Neither the form nor the function's name and place matter.
  assert_prints(
      "  func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "%0 = \"stablehlo.composite\"(%arg0) <{name = \"user.twice\", "
      "composite_attributes = {by = 2 : i64}, decomposition = @f, version = 3 "
      ": i32}> : (tensor<4xf32>) -> tensor<4xf32>\n"
      "return %0 : tensor<4xf32>\n"
      "}\n",
      plain, 0);
}

static const char nested[] =
    "module {\n"
    "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
    "    %0 = stablehlo.composite \"user.four\" %arg0 {decomposition = "
    "@user.four.impl, version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n"
    "  }\n"
    "  func.func private @user.four.impl(%arg0: tensor<4xf32>) -> "
    "tensor<4xf32> {\n"
    "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = "
    "@user.twice.impl, version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
    "    %1 = stablehlo.composite \"user.twice\" %0 {decomposition = "
    "@user.twice.impl, version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
    "    return %1 : tensor<4xf32>\n"
    "  }\n"
    "  func.func private @user.twice.impl(%arg0: tensor<4xf32>) -> "
    "tensor<4xf32> {\n"
    "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n"
    "  }\n"
    "}\n";

static void bodies_hold_composites(void** state) {
  (void)state;
  assert_prints(nested, nested, 0);
  const float x[] = {1, 2, 3, -4};
  float y[4];
  evaluate(nested, (const void*[]){x}, (void*[]){y});
  for (int i = 0; i < 4; ++i)
    assert_true(y[i] == 4 * x[i]);
}

static void equal_bodies_are_one_function(void** state) {
  (void)state;
  assert_prints(
      "module {\n"
      "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = @f, "
      "version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    %1 = stablehlo.composite \"user.twice\" %0 {decomposition = @g, "
      "version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %1 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @g(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n",

      "module {\n"
      "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = "
      "@user.twice.impl, version = 3 : i32} : (tensor<4xf32>) -> "
      "tensor<4xf32>\n"
      "    %1 = stablehlo.composite \"user.twice\" %0 {decomposition = "
      "@user.twice.impl, version = 3 : i32} : (tensor<4xf32>) -> "
      "tensor<4xf32>\n"
      "    return %1 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @user.twice.impl(%arg0: tensor<4xf32>) -> "
      "tensor<4xf32> {\n"
      "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n",
      0);
}

static void what_is_called_stays_a_function(void** state) {
  (void)state;
  static const char want[] =
      "module {\n"
      "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = "
      "@user.twice.impl_1, version = 3 : i32} : (tensor<4xf32>) -> "
      "tensor<4xf32>\n"
      "    %1 = call @user.twice.impl(%0) : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %1 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @user.twice.impl(%arg0: tensor<4xf32>) -> "
      "tensor<4xf32> {\n"
      "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @user.twice.impl_1(%arg0: tensor<4xf32>) -> "
      "tensor<4xf32> {\n"
      "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n";

  assert_prints(
      "module {\n"
      "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = "
      "@user.twice.impl, version = 3 : i32} : (tensor<4xf32>) -> "
      "tensor<4xf32>\n"
      "    %1 = call @user.twice.impl(%0) : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %1 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @user.twice.impl(%arg0: tensor<4xf32>) -> "
      "tensor<4xf32> {\n"
      "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n",
      want, 0);
  assert_prints(want, want, 0);
}

static void without_a_body_it_is_a_custom_call(void** state) {
  (void)state;
  static const char text[] =
      "module {\n"
      "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.custom_call @user.twice(%arg0) {api_version = 4 : "
      "i32, backend_config = {by = 2 : i64}, pestle.version = 3 : i64} : "
      "(tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n";

  assert_prints(text, text, 0);
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(context, text);
  const pestle_node_t* node = module->first->body->block->first;
  assert_int_equal(node->op, PESTLE_OP_CUSTOM);
  assert_string_equal(PESTLE_NODE_STR(node, name), "user.twice");
  assert_string_equal(PESTLE_NODE_STR(node, attributes), "{by = 2 : i64}");
  assert_int_equal(PESTLE_NODE_I64(node, version), 3);
  char* generic = text_print(module, PESTLE_PRINT_GENERIC);
  pestle_module_t* again = text_parse(context, generic);
  char* pretty = text_print(again, 0);
  assert_string_equal(pretty, text);
  free(pretty);
  free(generic);
  pestle_module_release(again);
  pestle_module_release(module);
  pestle_context_release(context);
}

static void refusals(void** state) {
  (void)state;
  assert_refuses(
      "module {\n"
      "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = @f, "
      "version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = @g, "
      "version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @g(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = @f, "
      "version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n",
      MALFORMED, "is its own decomposition");
  assert_refuses(
      "module {\n"
      "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = @f, "
      "version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = @f, "
      "version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n",
      MALFORMED, "is its own decomposition");
  assert_refuses(
      "module {\n"
      "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = @f, "
      "version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = call @g(%arg0) : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @g(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = @f, "
      "version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n",
      MALFORMED, "called while it runs");
  assert_refuses(
      "module {\n"
      "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = @f, "
      "version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n",
      MALFORMED, "there is no function 'f'");
  assert_refuses(
      "module {\n"
      "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = @f, "
      "version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @f(%arg0: tensor<3xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.constant dense<0.0> : tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n",
      MALFORMED, "tensor<3xf32>");
  assert_refuses(
      "module {\n"
      "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {version = 3 : i32} : "
      "(tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n",
      MALFORMED, "expected attribute 'decomposition'");
  assert_refuses(
      "module {\n"
      "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {composite_attributes "
      "= 3 : i32, decomposition = @f} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n",
      MALFORMED, "must be a dictionary");
  assert_refuses(
      "module {\n"
      "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.composite \"user.twice\" %arg0 {more = 3 : i32, "
      "decomposition = @f} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n",
      UNSUPPORTED, "has no attribute 'more'");
  assert_refuses(
      "module {\n"
      "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.custom_call @user.twice(%arg0) {has_side_effect = "
      "true, pestle.version = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "  func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
      "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
      "    return %0 : tensor<4xf32>\n"
      "  }\n"
      "}\n",
      UNSUPPORTED, "has no attribute 'has_side_effect'");
}

// Each function names the one before it twice: 2^24 ops.
static void bodies_do_not_explode(void** state) {
  (void)state;
  enum { LEVELS = 24 };
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  for (int i = 0; i < LEVELS; ++i) {
    pestle_strbuf_appendf(&text,
                          "func.func %s @f%d(%%x: tensor<4xf32>) -> "
                          "tensor<4xf32> {\n",
                          i + 1 < LEVELS ? "private" : "public", i);
    for (int k = 0; k < 2 && i; ++k) {
      pestle_strbuf_appendf(&text,
                            "%%y%d = stablehlo.composite \"a.b\" %%x "
                            "{decomposition = @f%d} : (tensor<4xf32>) -> "
                            "tensor<4xf32>\n",
                            k, i - 1);
    }
    pestle_strbuf_append_c(&text, "return %x : tensor<4xf32>\n}\n");
  }
  assert_refuses(pestle_strbuf_cstr(&text), RESOURCE_EXHAUSTED,
                 "more than 1048576 ops");
  pestle_strbuf_deinit(&text);
}

// --- Binary form, clones, signature ---

static void binary_form_and_clones_are_exact(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t *module = text_parse(context, nested), *loaded, *clone;
  void* data;
  size_t size;
  assert_ok(pestle_module_serialize(module, &data, &size));
  assert_ok(pestle_module_deserialize(context, data, size, &loaded));
  assert_ok(pestle_module_clone(module, &clone));
  pestle_module_t* const copies[] = {loaded, clone};
  for (int i = 0; i < 2; ++i) {
    char* text = text_print(copies[i], 0);
    assert_string_equal(text, nested);
    assert_ok(pestle_module_verify(copies[i]));
    free(text);
    pestle_module_release(copies[i]);
  }
  pestle_context_free(context, data, size);
  pestle_module_release(module);
  pestle_context_release(context);
}

// The signature of |plain| with |from| replaced by |to| of the same length.
static uint64_t signature_with(const char* from, const char* to) {
  char text[sizeof(plain)];
  memcpy(text, plain, sizeof(plain));
  for (char* at = text; (at = strstr(at, from));) {
    memcpy(at, to, strlen(to));
    at += strlen(to);
  }
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(context, text);
  uint64_t hash[2];
  assert_ok(pestle_module_signature(module, hash));
  pestle_module_release(module);
  pestle_context_release(context);
  return hash[0];
}

static void the_signature_sees_name_attributes_and_body(void** state) {
  (void)state;
  uint64_t base = signature_with("-", "-");
  assert_true(base == signature_with("@user.twice.impl", "@any.name.of.its"));
  assert_false(base == signature_with("\"user.twice", "\"user.thice"));
  assert_false(base == signature_with("by = 2", "by = 3"));
  assert_false(base == signature_with("version = 3", "version = 4"));
  assert_false(base == signature_with("add %arg0, %arg0", "abs %arg0       "));
}

// --- Evaluation, specialisation ---

static const char dynamic[] =
    "module {\n"
    "  func.func public @main(%arg0: tensor<?xf32>) -> tensor<?xf32> {\n"
    "    %0 = stablehlo.composite \"user.twice\" %arg0 {decomposition = "
    "@user.twice.impl, version = 1 : i32} : (tensor<?xf32>) -> tensor<?xf32>\n"
    "    return %0 : tensor<?xf32>\n"
    "  }\n"
    "  func.func private @user.twice.impl(%arg0: tensor<?xf32>) -> "
    "tensor<?xf32> {\n"
    "    %0 = stablehlo.add %arg0, %arg0 : tensor<?xf32>\n"
    "    return %0 : tensor<?xf32>\n"
    "  }\n"
    "}\n";

static void specialisation_enters_bodies(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t *module = text_parse(context, dynamic), *fixed;
  assert_ok(pestle_module_specialize(module, (pestle_type_t[]){T(F32, 4)}, 1,
                                     &fixed));
  char* text = text_print(fixed, 0);
  assert_null(strstr(text, "?"));
  assert_non_null(strstr(text, "@user.twice.impl(%arg0: tensor<4xf32>)"));
  free(text);
  pestle_module_release(fixed);
  pestle_module_release(module);
  pestle_context_release(context);
}

static void no_body_is_no_value(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4));
  pestle_value_t* y;
  pestle_type_t type = T(F32, 4);
  assert_ok(pestle_op_composite(&t.b, t.a, 1,
                                ATTRS(composite, .name = "user.op"), NULL, 0,
                                &type, 1, &y, 1));
  assert_ok(pestle_op_return(&t.b, &y, 1, NULL));
  assert_ok(pestle_module_verify(t.module));
  const float x[4] = {0};
  float out[4];
  assert_error(
      pestle_ref_evaluate_function(pestle_allocator_system(), t.function,
                                   (const void*[]){x}, (void*[]){out}),
      UNSUPPORTED, "'user.op' has no body");
  ir_test_end(&t);
}

static pestle_status_t parse_and_print(pestle_allocator_t allocator) {
  pestle_context_t* context = NULL;
  pestle_module_t* module = NULL;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .allocator = allocator};
  pestle_status_t status = pestle_context_create(&options, &context);
  if (!status) {
    status = pestle_module_parse(context, nested, sizeof(nested) - 1, "t.mlir",
                                 &module);
  }
  char* text = NULL;
  size_t size = 0;
  if (!status) status = pestle_module_print(module, 0, &text, &size);
  if (!status) pestle_context_free(context, text, size + 1);
  pestle_module_release(module);
  pestle_context_release(context);
  return status;
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, k);
    pestle_status_t status = parse_and_print(pestle_test_allocator(&memory));
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
      cmocka_unit_test(composites_keep_what_they_say),
      cmocka_unit_test(bodies_hold_composites),
      cmocka_unit_test(equal_bodies_are_one_function),
      cmocka_unit_test(what_is_called_stays_a_function),
      cmocka_unit_test(without_a_body_it_is_a_custom_call),
      cmocka_unit_test(refusals),
      cmocka_unit_test(bodies_do_not_explode),
      cmocka_unit_test(binary_form_and_clones_are_exact),
      cmocka_unit_test(the_signature_sees_name_attributes_and_body),
      cmocka_unit_test(specialisation_enters_bodies),
      cmocka_unit_test(no_body_is_no_value),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
