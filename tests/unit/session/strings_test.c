// SPDX-License-Identifier: Apache-2.0
// A session of a model that takes and gives strings: of the model, and of its plan.
#include "pestle/strings.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pestle/compile.h"
#include "pestle/session.h"
#include "test.h"
#include "view.h"

static const char text[] =
    "func.func public @main(%x: tensor<?xi32> {pestle.name = \"x\", "
    "pestle.strings}) -> (tensor<?xi32> {pestle.name = \"y\", pestle.strings}) "
    "attributes {pestle.dictionary = \"3:red5:green4:a\\\"\\0Ab\"} {\n"
    "  %r = stablehlo.reverse %x, dims = [0] : tensor<?xi32>\n"
    "  return %r : tensor<?xi32>\n}\n";

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

int main(void) {
  int out = mkstemps(path, 5);
  if (out < 0 || write(out, text, sizeof(text) - 1) != sizeof(text) - 1)
    return 1;
  (void)close(out);
  (void)snprintf(plan_path, sizeof(plan_path), "%s.plan", path);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_model),
      cmocka_unit_test(test_plan),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  (void)remove(path);
  (void)remove(plan_path);
  return failed;
}
