// SPDX-License-Identifier: Apache-2.0
// A session of a model that takes and gives strings: of the model, and of its plan.
#include "pestle/strings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pestle/compile.h"
#include "pestle/graph.h"
#include "pestle/session.h"
#include "test.h"
#include "view.h"

static const char text[] =
    "func.func public @main(%x: tensor<?xi32> {pestle.name = \"x\", "
    "pestle.strings}) -> (tensor<?xi32> {pestle.name = \"y\", pestle.strings}) "
    "attributes {pestle.dictionary = \"3:red5:green4:a\\\"\\0Ab\"} {\n"
    "  %r = stablehlo.reverse %x, dims = [0] : tensor<?xi32>\n"
    "  return %r : tensor<?xi32>\n}\n";

// Each string behind itself: one that the model has not.
static const char twice_text[] =
    "func.func public @main(%x: tensor<2xi32> {pestle.name = \"x\", "
    "pestle.strings}) -> (tensor<2xi32> {pestle.name = \"y\", pestle.strings}) "
    "attributes {pestle.dictionary = \"3:red\"} {\n"
    "  %r = stablehlo.custom_call @pestle.s.concat(%x, %x) {backend_config = "
    "\" \"} : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>\n"
    "  return %r : tensor<2xi32>\n}\n";
// How many digits a number has more than one, by way of strings that nobody sees.
static const char inner_text[] =
    "func.func public @main(%x: tensor<3xi64>) -> tensor<3xi1> {\n"
    "  %s = stablehlo.custom_call @pestle.s.of_number(%x) {backend_config = "
    "\"%223:red%22 short \"} : (tensor<3xi64>) -> tensor<3xi32>\n"
    "  %r = stablehlo.custom_call @pestle.s.match(%s) {backend_config = "
    "\"%223:red%22 [0-9]{2,} \"} : (tensor<3xi32>) -> tensor<3xi1>\n"
    "  return %r : tensor<3xi1>\n}\n";

static char path[64] = "/tmp/pestle-strings-XXXXXX.mlir";
static char plan_path[80];

static pestle_context_t* make_context(void) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .backend_path = "/nonexistent",
                                      .threads = 1};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

static void check_word(pestle_string_t word, const char* wanted, size_t size) {
  assert_int_equal(word.size, size);
  assert_memory_equal(word.data, wanted, size);
}

static void reverse_words(pestle_session_t* session) {
  const pestle_string_t words[3] = {{"a\"\nb", 4}, {"new", 3}, {"red", 3}};
  pestle_string_t back[3];
  int32_t ids[3];
  int64_t dims[] = {3};
  pestle_strings_t* strings;
  assert_true(pestle_session_input_is_strings(session, 0));
  assert_true(pestle_session_output_is_strings(session, 0));
  assert_false(pestle_session_input_is_strings(session, 1));
  assert_false(pestle_session_output_is_strings(session, 1));
  assert_ok(pestle_session_strings_create(session, &strings));
  assert_int_equal(pestle_strings_count(strings), 3);
  assert_ok(pestle_strings_encode(strings, words, 3, ids));
  assert_int_equal(ids[0], 2);
  assert_int_equal(ids[2], 0);
  pestle_named_tensor_t in = {"x", test_view(ids, PESTLE_I32, 1, dims, NULL)};
  pestle_named_tensor_t out = {.name = "y"};
  assert_ok(pestle_session_run(session, &in, 1, &out, 1, NULL));
  assert_ok(pestle_strings_decode(strings, out.tensor.data, 3, back));
  check_word(back[0], "red", 3);
  check_word(back[1], "new", 3);
  check_word(back[2], "a\"\nb", 4);
  pestle_session_tensor_release(session, &out.tensor);
  pestle_strings_release(strings);
}

static void test_model(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_session_t* session;
  assert_ok(pestle_session_create(context, path, NULL, &session));
  reverse_words(session);
  pestle_session_release(session);
  pestle_context_release(context);
}

static void test_plan(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_module_t *symbolic, *module;
  pestle_device_t* device;
  pestle_plan_t* plan;
  pestle_session_t* session;
  pestle_type_t type = {.dtype = PESTLE_I32, .rank = 1, .dims = {3}};
  assert_ok(pestle_import_file(context, path, NULL, &symbolic));
  assert_ok(pestle_module_specialize(symbolic, &type, 1, &module));
  assert_ok(pestle_context_device(context, NULL, &device));
  assert_ok(pestle_compile(context, module, device, NULL, &plan));
  assert_ok(pestle_plan_save(plan, plan_path));
  pestle_plan_release(plan);
  pestle_module_release(module);
  pestle_module_release(symbolic);
  assert_ok(pestle_session_create(context, plan_path, NULL, &session));
  reverse_words(session);
  pestle_session_release(session);
  pestle_context_release(context);
}

static pestle_executable_t* load(pestle_context_t* context,
                                 const char* program) {
  pestle_module_t* module;
  pestle_device_t* device;
  pestle_plan_t* plan;
  pestle_executable_t* executable;
  assert_ok(
      pestle_module_parse(context, program, strlen(program), NULL, &module));
  assert_ok(pestle_context_device(context, NULL, &device));
  assert_ok(pestle_compile(context, module, device, NULL, &plan));
  assert_ok(pestle_executable_create(context, plan, device, &executable));
  pestle_plan_release(plan);
  pestle_module_release(module);
  return executable;
}

static void test_new_strings(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_executable_t* e = load(context, twice_text);
  pestle_executable_t* other = load(context, inner_text);
  const pestle_string_t words[2] = {{"red", 3}, {"\xe8\x89\xb2", 3}};
  pestle_string_t back[2];
  pestle_strings_t *strings, *foreign;
  int32_t ids[2];
  int64_t dims[] = {2};
  pestle_tensor_t y = {0};
  pestle_run_options_t options = {.struct_size = sizeof(options)};
  assert_true(pestle_executable_needs_strings(e));
  assert_false(pestle_executable_needs_strings(other));
  assert_ok(pestle_strings_create(e, &strings));
  assert_ok(pestle_strings_create(other, &foreign));
  assert_ok(pestle_strings_encode(strings, words, 2, ids));
  pestle_tensor_t x = test_view(ids, PESTLE_I32, 1, dims, NULL);
  assert_error(pestle_executable_run(e, NULL, &x, 1, &y, 1, NULL),
               INVALID_ARGUMENT, "pestle_run_options_t.strings");
  options.strings = foreign;
  assert_error(pestle_executable_run(e, NULL, &x, 1, &y, 1, &options),
               INVALID_ARGUMENT, "another model");
  options.strings = strings;
  assert_ok(pestle_executable_run(e, NULL, &x, 1, &y, 1, &options));
  assert_ok(pestle_strings_decode(strings, y.data, 2, back));
  check_word(back[0], "redred", 6);
  check_word(back[1], "\xe8\x89\xb2\xe8\x89\xb2", 6);
  assert_int_equal(pestle_strings_count(strings), 4);
  pestle_strings_forget(strings);
  assert_int_equal(pestle_strings_count(strings), 1);
  pestle_tensor_release(e, &y);
  pestle_strings_release(foreign);
  pestle_strings_release(strings);
  pestle_executable_release(other);
  pestle_executable_release(e);
  pestle_context_release(context);
}

// Tensors that do not go together are told, not written past.
static void test_foreign_extents(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  static const char* const programs[] = {
      "func.func public @main(%x: tensor<3xi32>) -> tensor<0xi64> {\n"
      "  %s:3 = stablehlo.custom_call @pestle.s.split(%x) {backend_config = "
      "\" -1 , \"} : (tensor<3xi32>) -> (tensor<3x4xi32>, tensor<3xi64>, "
      "tensor<0xi64>)\n  return %s#2 : tensor<0xi64>\n}\n",
      "func.func public @main(%x: tensor<3xi32>) -> tensor<2xi32> {\n"
      "  %s = stablehlo.custom_call @pestle.s.normalize(%x) {backend_config = "
      "\" NONE 1 \"} : (tensor<3xi32>) -> tensor<2xi32>\n"
      "  return %s : tensor<2xi32>\n}\n"};
  for (int i = 0; i < 2; ++i) {
    pestle_executable_t* e = load(context, programs[i]);
    int32_t ids[3] = {0, 1, 2};
    int64_t dims[] = {3};
    pestle_tensor_t x = test_view(ids, PESTLE_I32, 1, dims, NULL), y = {0};
    assert_error(pestle_executable_run(e, NULL, &x, 1, &y, 1, NULL),
                 INVALID_ARGUMENT, "extents that do not go together");
    pestle_executable_release(e);
  }
  pestle_context_release(context);
}

static void test_inner_strings(void** state) {
  (void)state;
  pestle_context_t* context = make_context();
  pestle_executable_t* e = load(context, inner_text);
  for (int64_t run = 0; run < 3; ++run) {
    int64_t dims[] = {3}, numbers[] = {run, 10 + run, -run - 1};
    unsigned char y[3] = {9, 9, 9};
    pestle_tensor_t x = test_view(numbers, PESTLE_I64, 1, dims, NULL);
    pestle_tensor_t out = test_view(y, PESTLE_I1, 1, dims, NULL);
    assert_ok(pestle_executable_run(e, NULL, &x, 1, &out, 1, NULL));
    assert_int_equal(y[0], 0);
    assert_int_equal(y[1], 1);
    assert_int_equal(y[2], 0);
  }
  pestle_executable_release(e);
  pestle_context_release(context);
}

int main(void) {
  int out = mkstemps(path, 5);
  if (out < 0 || write(out, text, sizeof(text) - 1) != sizeof(text) - 1)
    return 1;
  (void)close(out);
  (void)snprintf(plan_path, sizeof(plan_path), "%s.plan", path);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_model),
      cmocka_unit_test(test_plan),
      cmocka_unit_test(test_new_strings),
      cmocka_unit_test(test_foreign_extents),
      cmocka_unit_test(test_inner_strings),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  (void)remove(path);
  (void)remove(plan_path);
  return failed;
}
