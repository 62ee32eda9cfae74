// SPDX-License-Identifier: Apache-2.0
// transform.h called wrongly: a status with a sentence, no module, and nothing worse.
#include <stdint.h>

#include "pestle/pestle.h"
#include "pestle/transform.h"
#include "test.h"

typedef pestle_status_t (*make_t)(pestle_module_t*,
                                  const pestle_transform_options_t*,
                                  pestle_module_t**);

static const make_t makes[] = {pestle_module_jvp, pestle_module_vjp,
                               pestle_module_gradient, pestle_module_transpose};
enum { MAKES = sizeof(makes) / sizeof(makes[0]) };

static pestle_context_t* context;
static pestle_module_t* module;

static const char text[] =
    "func.func @main(%n: tensor<2xi32>, %x: tensor<2xf32>, %y: tensor<2xf32>)"
    " -> (tensor<2xf32>, tensor<2xi32>) {\n"
    "  %z = stablehlo.add %x, %y : tensor<2xf32>\n"
    "  return %z, %n : tensor<2xf32>, tensor<2xi32>\n}\n";

// The sentence is one, and names |word|.
static void check_refused(pestle_status_t status, const char* word) {
  char line[1024];
  assert_non_null(status);
  assert_int_equal(pestle_status_code(status), PESTLE_STATUS_INVALID_ARGUMENT);
  pestle_status_format(status, line, sizeof(line));
  if (!strstr(line, word)) fail_msg("'%s' does not name %s", line, word);
  pestle_status_release(status);
}

static void refused(const pestle_transform_options_t* options, const char* word,
                    size_t first) {
  for (size_t i = first; i < MAKES; ++i) {
    pestle_module_t* made = module;
    check_refused(makes[i](module, options, &made), word);
    assert_null(made);
  }
}

static void indices_are_checked(void** state) {
  (void)state;
  static const uint32_t far[] = {UINT32_MAX}, twice[] = {1, 1}, integer[] = {0};
  static const uint32_t result[] = {1}, behind[] = {2};
  pestle_transform_options_t o = {.struct_size = sizeof(o)};
  o.argument_count = 1;
  o.arguments = far;
  refused(&o, "4294967295", 0);
  o.arguments = integer;
  refused(&o, "i32", 0);
  o.arguments = twice;
  o.argument_count = 2;
  refused(&o, "twice", 0);
  o = (pestle_transform_options_t){.struct_size = sizeof(o)};
  o.result_count = 1;
  o.results = behind;
  refused(&o, "result 2", 0);
  o.results = result;
  refused(&o, "result 1", 0);
  o = (pestle_transform_options_t){.struct_size = sizeof(o),
                                   .function = "none of it"};
  refused(&o, "none of it", 0);
}

static void sizes_of_structs_are_read(void** state) {
  (void)state;
  static const size_t sizes[] = {0, 1, sizeof(size_t), 4096, SIZE_MAX};
  for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
    // What is behind the part that the caller knows of is not looked at.
    pestle_transform_options_t o = {.struct_size = sizes[s]};
    if (sizes[s] <= sizeof(size_t)) {
      memset((char*)&o + sizeof(size_t), 0xA5, sizeof(o) - sizeof(size_t));
    }
    for (size_t i = 0; i < MAKES; ++i) {
      pestle_module_t* made;
      assert_ok(makes[i](module, &o, &made));
      assert_ok(pestle_module_verify(made));
      pestle_module_release(made);
    }
  }
}

static void counts_may_be_zero(void** state) {
  (void)state;
  static const uint32_t none[] = {0};
  pestle_transform_options_t o = {.struct_size = sizeof(o), .arguments = none};
  pestle_module_t* made;
  for (size_t i = 0; i < 3; ++i) {
    assert_ok(makes[i](module, &o, &made));
    assert_ok(pestle_module_verify(made));
    pestle_module_release(made);
  }
}

static void axes_are_checked(void** state) {
  (void)state;
  static const int64_t axes[][3] = {
      {0, 0, 2}, {0, -2, 0}, {INT64_MIN, 0, 0}, {0, INT64_MAX, 0}};
  pestle_module_t* made;
  pestle_vmap_options_t o = {.struct_size = sizeof(o), .size = 3};
  o.argument_axis_count = 3;
  for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); ++i) {
    o.argument_axes = axes[i];
    check_refused(pestle_module_vmap(module, &o, &made), "axis");
    assert_null(made);
  }
  o.argument_axes = axes[0];
  o.argument_axis_count = SIZE_MAX;
  check_refused(pestle_module_vmap(module, &o, &made), "function 'main' has 3");
  o = (pestle_vmap_options_t){.struct_size = sizeof(o), .size = -1};
  check_refused(pestle_module_vmap(module, &o, &made), "-1");
  o.size = INT64_MAX;
  check_refused(pestle_module_vmap(module, &o, &made), "2^63");
  static const int64_t kept[] = {PESTLE_NOT_BATCHED, PESTLE_NOT_BATCHED};
  o.size = 3;
  o.result_axes = kept;
  o.result_axis_count = 2;
  check_refused(pestle_module_vmap(module, &o, &made), "needs an axis");
  o = (pestle_vmap_options_t){.struct_size = 0};
  assert_ok(pestle_module_vmap(module, &o, &made));  // of no elements
  pestle_module_release(made);
}

static void modules_are_checked(void** state) {
  (void)state;
  pestle_module_t *empty, *open, *made;
  static const char unknown[] =
      "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
      "  %z = stablehlo.sine %x : tensor<?xf32>\n"
      "  return %z : tensor<?xf32>\n}\n";
  assert_ok(pestle_module_create(context, "empty", &empty));
  assert_ok(pestle_module_parse(context, unknown, strlen(unknown), "open.mlir",
                                &open));
  for (size_t i = 0; i < MAKES; ++i) {
    check_refused(makes[i](empty, NULL, &made), "no function");
    check_refused(makes[i](open, NULL, &made), "pestle_module_specialize()");
  }
  pestle_module_release(empty);
  pestle_module_release(open);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(indices_are_checked),
      cmocka_unit_test(sizes_of_structs_are_read),
      cmocka_unit_test(counts_may_be_zero), cmocka_unit_test(axes_are_checked),
      cmocka_unit_test(modules_are_checked)};
  assert_ok(pestle_context_create(NULL, &context));
  assert_ok(
      pestle_module_parse(context, text, strlen(text), "test.mlir", &module));
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  pestle_module_release(module);
  pestle_context_release(context);
  return failed;
}
