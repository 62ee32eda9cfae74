// SPDX-License-Identifier: Apache-2.0
// pestle_import_file(): a file is taken for what it holds, whatever its name.
#include <unistd.h>

#include "base/file.h"
#include "onnx_test.h"

static char path[64];

static const char text[] =
    "func.func public @main(%arg0: tensor<?x3xf32> {pestle.name = \"x\"}) -> "
    "tensor<?x3xf32> {\n"
    "  %0 = stablehlo.negate %arg0 : tensor<?x3xf32>\n"
    "  return %0 : tensor<?x3xf32>\n"
    "}\n";

static void write_file(const void* data, size_t size) {
  assert_ok(pestle_file_write(path, pestle_str_make(data, size)));
}

static pestle_status_t import_path(onnx_test_t* t) {
  return pestle_import_file(t->context, path, &t->options, &t->module);
}

static void reads_text(void** state) {
  (void)state;
  onnx_test_t t;
  onnx_begin(&t);
  write_file(text, sizeof(text) - 1);
  assert_ok(import_path(&t));
  assert_int_equal(onnx_count(t.module, PESTLE_OP_NEGATE), 1);
  onnx_end(&t);
}

// A caller that is of an earlier header says nothing of it; one that says another number is
// told.
static void reads_whose_reading_it_is(void** state) {
  (void)state;
  onnx_test_t t;
  onnx_begin(&t);
  write_file(text, sizeof(text) - 1);
  t.options.onnx_compat = PESTLE_ONNX_COMPAT_ORT;
  assert_ok(import_path(&t));
  pestle_module_release(t.module);
  t.module = NULL;
  t.options.onnx_compat = (pestle_onnx_compat_t)7;
  assert_error(import_path(&t), INVALID_ARGUMENT, "onnx_compat is 7");
  t.options.struct_size = offsetof(pestle_import_options_t, onnx_compat);
  assert_ok(import_path(&t));
  onnx_end(&t);
}

static void fixes_shapes_of_text(void** state) {
  (void)state;
  onnx_test_t t;
  onnx_begin(&t);
  write_file(text, sizeof(text) - 1);
  const int64_t dims[2] = {5, 3};
  pestle_shape_binding_t shape = {"x", 2, dims};
  t.options.shapes = &shape;
  t.options.shape_count = 1;
  assert_ok(import_path(&t));
  pestle_type_t type = pestle_value_type(
      pestle_function_argument(pestle_module_entry(t.module), 0));
  assert_true(type.dims[0] == 5);
  pestle_module_release(t.module);
  t.module = NULL;
  shape.input = "nobody";
  assert_error(import_path(&t), NOT_FOUND, "'nobody'");
  t.options.shape_count = 0;
  pestle_dim_binding_t dim = {"n", 5};
  t.options.dims = &dim;
  t.options.dim_count = 1;
  assert_error(import_path(&t), INVALID_ARGUMENT, "have no names; call one");
  dim.name = "nobody.0";
  assert_error(import_path(&t), NOT_FOUND, "'nobody'");
  dim.name = "0.0";
  assert_ok(import_path(&t));
  type = pestle_value_type(
      pestle_function_argument(pestle_module_entry(t.module), 0));
  assert_true(type.dims[0] == 5);
  pestle_module_release(t.module);
  t.module = NULL;
  onnx_end(&t);
}

// Text with a control byte is text, at whatever place that is: the parser tells where.
static void tells_control_bytes_of_text(void** state) {
  (void)state;
  static const size_t places[] = {0, 3, 7, 40};
  for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); ++i) {
    onnx_test_t t;
    onnx_begin(&t);
    char damaged[sizeof(text)];
    memcpy(damaged, text, sizeof(text));
    damaged[places[i]] = 0;
    write_file(damaged, sizeof(text) - 1);
    pestle_status_t status = import_path(&t);
    assert_non_null(status);
    assert_null(strstr(pestle_status_message(status), "protobuf"));
    assert_non_null(strstr(pestle_status_message(status), ":1:"));
    pestle_status_release(status);
    onnx_end(&t);
  }
}

static void reads_the_binary_form(void** state) {
  (void)state;
  onnx_test_t t;
  onnx_begin(&t);
  write_file(text, sizeof(text) - 1);
  assert_ok(import_path(&t));
  void* data;
  size_t size;
  assert_ok(pestle_module_serialize(t.module, &data, &size));
  write_file(data, size);
  pestle_context_free(t.context, data, size);
  pestle_module_release(t.module);
  t.module = NULL;
  assert_ok(import_path(&t));
  assert_int_equal(onnx_count(t.module, PESTLE_OP_NEGATE), 1);
  onnx_end(&t);
}

// The file stays mapped while the module lives; constants lie in it.
static void reads_onnx(void** state) {
  (void)state;
  const float w[4] = {1, 2, 3, 4};
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "4");
  onnx_floats(&g, "w", 1, (const int64_t[]){4}, w);
  onnx_node(&g, "Add", "plus", "x,w", "y", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  write_file(model.data, model.size);
  pb_free(&model);
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(import_path(&t));
  unlink(path);
  float y[4];
  const float x[4] = {10, 20, 30, 40}, expected[4] = {11, 22, 33, 44};
  assert_ok(pestle_ref_evaluate_function(pestle_test_allocator(&t.memory),
                                         pestle_module_entry(t.module),
                                         (const void*[]){x}, (void*[]){y}));
  assert_memory_equal(y, expected, sizeof(y));
  const pestle_node_t* first =
      pestle_module_entry(t.module)->body->block->first;
  assert_non_null(strstr(path, first->loc.file));
  onnx_end(&t);
}

static void names_what_is_wrong(void** state) {
  (void)state;
  onnx_test_t t;
  onnx_begin(&t);
  unlink(path);
  assert_error(import_path(&t), NOT_FOUND, path);
  write_file("", 0);
  assert_code(import_path(&t), MALFORMED);
  write_file("hello", 5);
  assert_code(import_path(&t), MALFORMED);
  write_file("PSTLGRPH", 8);
  assert_code(import_path(&t), MALFORMED);
  onnx_end(&t);
}

static int make_path(void** state) {
  (void)state;
  snprintf(path, sizeof(path), "/tmp/pestle-import-XXXXXX");
  int file = mkstemp(path);
  return file < 0 ? -1 : close(file);
}

static int remove_path(void** state) {
  (void)state;
  unlink(path);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_text),
      cmocka_unit_test(reads_whose_reading_it_is),
      cmocka_unit_test(fixes_shapes_of_text),
      cmocka_unit_test(tells_control_bytes_of_text),
      cmocka_unit_test(reads_the_binary_form),
      cmocka_unit_test(reads_onnx),
      cmocka_unit_test(names_what_is_wrong),
  };
  return cmocka_run_group_tests(tests, make_path, remove_path);
}
