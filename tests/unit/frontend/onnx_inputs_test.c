// SPDX-License-Identifier: Apache-2.0
// Inputs with a default, sparse tensors, and what a model declares of its
// outputs.
#include "onnx_test.h"

static const int64_t two[] = {2}, one[] = {1};

// y = x + (k + one), where k and one are stored and k is an input too.
static pb_t model_with_default(int64_t ir_version, const char* k_dims) {
  const float k[2] = {1, 2}, add[1] = {1};
  pb_t g = {0}, model = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_input(&g, "k", ONNX_FLOAT, k_dims);
  onnx_floats(&g, "k", 1, two, k);
  onnx_floats(&g, "one", 1, one, add);
  onnx_node(&g, "Add", "", "k,one", "more", NULL);
  onnx_node(&g, "Add", "", "x,more", "y", NULL);
  onnx_output(&g, "y");
  pb_int(&model, 1, ir_version);
  onnx_opset(&model, "", 13);
  pb_message(&model, 7, g);
  return model;
}

static void run(onnx_test_t* t, const void* const* arguments, float* y) {
  assert_ok(pestle_module_verify(t->module));
  assert_ok(pestle_ref_evaluate_function(pestle_test_allocator(&t->memory),
                                         pestle_module_entry(t->module),
                                         arguments, (void*[]){y}));
  pestle_module_release(t->module);
  t->module = NULL;
}

static void takes_the_default_or_what_is_given(void** state) {
  (void)state;
  const float x[2] = {3, 4}, k[2] = {10, 20};
  float y[2];
  onnx_test_t t;
  onnx_begin(&t);
  pb_t model = model_with_default(4, "2");
  assert_ok(onnx_import(&t, &model));
  assert_int_equal(
      pestle_function_argument_count(pestle_module_entry(t.module)), 1);
  run(&t, (const void*[]){x}, y);
  assert_memory_equal(y, ((const float[2]){5, 7}), sizeof(y));
  const pestle_shape_binding_t shape = {"k", 1, two};
  t.options.shapes = &shape;
  t.options.shape_count = 1;
  assert_ok(onnx_import(&t, &model));
  assert_int_equal(
      pestle_function_argument_count(pestle_module_entry(t.module)), 2);
  run(&t, (const void*[]){x, k}, y);
  assert_memory_equal(y, ((const float[2]){14, 25}), sizeof(y));
  pb_free(&model);
  onnx_end(&t);
}

// What is given may have other extents than the default where the model allows.
static void takes_a_longer_one_than_the_default(void** state) {
  (void)state;
  onnx_test_t t;
  onnx_begin(&t);
  pb_t model = model_with_default(4, "n");
  const pestle_shape_binding_t shape = {"k", 1, one};
  t.options.shapes = &shape;
  t.options.shape_count = 1;
  assert_ok(onnx_import(&t, &model));
  const float x[2] = {3, 4}, k[1] = {100};
  float y[2];
  run(&t, (const void*[]){x, k}, y);
  assert_memory_equal(y, ((const float[2]){104, 105}), sizeof(y));
  pb_free(&model);
  onnx_end(&t);
}

static void binds_a_constant_instead_of_the_default(void** state) {
  (void)state;
  onnx_test_t t;
  onnx_begin(&t);
  pb_t model = model_with_default(8, "2");
  float k[2] = {10, 20};
  int64_t dims[1] = {2};
  const pestle_tensor_t value = {.data = k,
                                 .device = {PESTLE_DEVICE_CPU, 0},
                                 .ndim = 1,
                                 .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                                 .shape = dims};
  const pestle_const_binding_t binding = {"k", &value};
  t.options.consts = &binding;
  t.options.const_count = 1;
  assert_ok(onnx_import(&t, &model));
  const float x[2] = {3, 4};
  float y[2];
  run(&t, (const void*[]){x}, y);
  assert_memory_equal(y, ((const float[2]){14, 25}), sizeof(y));
  pb_free(&model);
  onnx_end(&t);
}

// Up to IR version 3 all that is stored is listed as an input.
static void keeps_what_old_models_store(void** state) {
  (void)state;
  onnx_test_t t;
  onnx_begin(&t);
  pb_t model = model_with_default(3, "2");
  const pestle_shape_binding_t shape = {"k", 1, two}, typo = {"q", 1, two};
  t.options.shapes = &shape;
  t.options.shape_count = 1;
  assert_error(onnx_import(&t, &model), INVALID_ARGUMENT,
               "for 'k', which is an initializer of the model; from IR version "
               "4 on");
  t.options.shapes = &typo;
  assert_error(onnx_import(&t, &model), NOT_FOUND, "no such input; it has 'x'");
  pb_free(&model);
  onnx_end(&t);
}

// The body's w is an initializer that no trip gives, its v one that each gives.
static void initializers_of_a_body_are_defaults(void** state) {
  (void)state;
  const float w[2] = {1, 2}, unused[2] = {90, 90}, x[2] = {0, 1};
  const int64_t trips[1] = {3};
  float y[2];
  pb_t body = {0}, g = {0}, attrs = {0};
  onnx_input(&body, "i", ONNX_INT64, "");
  onnx_input(&body, "go", ONNX_BOOL, "");
  onnx_input(&body, "v", ONNX_FLOAT, "2");
  onnx_input(&body, "w", ONNX_FLOAT, "2");
  onnx_floats(&body, "v", 1, two, unused);
  onnx_floats(&body, "w", 1, two, w);
  onnx_node(&body, "Identity", "", "go", "goes", NULL);
  onnx_node(&body, "Add", "", "v,w", "sum", NULL);
  onnx_output(&body, "goes");
  onnx_output(&body, "sum");
  onnx_attr_message(&attrs, "body", 5, 6, body);
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_int_list(&g, "trips", 1, trips);
  onnx_node(&g, "Loop", "", "trips,,x", "y", &attrs);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_run(&model, (const void*[]){x}, (void*[]){y});
  assert_memory_equal(y, ((const float[2]){3, 7}), sizeof(y));
}

static void names_a_body_input_without_a_value(void** state) {
  (void)state;
  pb_t body = {0}, g = {0}, attrs = {0};
  onnx_input(&body, "i", ONNX_INT64, "");
  onnx_input(&body, "go", ONNX_BOOL, "");
  onnx_input(&body, "v", ONNX_FLOAT, "2");
  onnx_input(&body, "w", ONNX_FLOAT, "2");
  onnx_node(&body, "Add", "", "v,w", "sum", NULL);
  onnx_output(&body, "go");
  onnx_output(&body, "sum");
  onnx_attr_message(&attrs, "body", 5, 6, body);
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_input(&g, "n", ONNX_INT64, "");
  onnx_node(&g, "Loop", "", "n,,x", "y", &attrs);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_fails(model, MALFORMED, "3 are given and 'w' has no initializer");
}

// --- Declared outputs ---

static pb_t model_declaring(int type, const char* dims) {
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_node(&g, "Neg", "", "x", "y", NULL);
  pb_message(&g, 12, onnx_value("y", type, dims));
  return onnx_model(13, &g);
}

static void refuses_another_element_type(void** state) {
  (void)state;
  pb_t model = model_declaring(ONNX_INT64, "2");
  onnx_fails(model, MALFORMED,
             "declares its output 'y' to be of INT64, what its nodes make is "
             "of f32");
}

static void keep_message(void* user, pestle_log_level_t level,
                         const char* message) {
  if (level == PESTLE_LOG_WARN) snprintf(user, 256, "%s", message);
}

// The type of a result whose extent a run tells has the bound.
static pb_t model_of_places(const char* dims) {
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_node(&g, "NonZero", "", "x", "y", NULL);
  pb_message(&g, 12, onnx_value("y", ONNX_INT64, dims));
  return onnx_model(13, &g);
}

static void warns_of_other_extents(void** state) {
  (void)state;
  char message[256] = "";
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .log = keep_message,
                                      .log_user = message,
                                      .log_level = PESTLE_LOG_WARN};
  pestle_context_t* context;
  pestle_module_t* module;
  assert_ok(pestle_context_create(&options, &context));
  const char* places[] = {"1,n", "1,1", "1,9", "2,n"};
  for (int i = 0; i < 4; ++i) {
    pb_t model = model_of_places(places[i]);
    message[0] = 0;
    assert_ok(pestle_import_onnx(context, model.data, model.size, true, NULL,
                                 NULL, &module));
    pestle_module_release(module);
    pb_free(&model);
    assert_int_equal(message[0] != 0, i == 3);
  }
  const char* declared[] = {"2", "?", "3", "2,1"};
  for (int i = 0; i < 4; ++i) {
    pb_t model = model_declaring(ONNX_FLOAT, declared[i]);
    message[0] = 0;
    assert_ok(pestle_import_onnx(context, model.data, model.size, true, NULL,
                                 NULL, &module));
    pestle_module_release(module);
    pb_free(&model);
    if (i < 2) assert_string_equal(message, "");
    if (i == 3) {
      assert_non_null(strstr(message,
                             "output 'y' is declared to have the shape 2x1, it "
                             "has 2"));
    }
    if (i >= 2) assert_string_not_equal(message, "");
  }
  pestle_context_release(context);
}

// --- Sparse tensors ---

static pb_t sparse(const char* name, size_t count, const float* values,
                   size_t index_rank, const int64_t* index_dims,
                   const int64_t* indices, size_t rank, const int64_t* dims) {
  int64_t stored[1] = {(int64_t)count};
  size_t index_count = 1;
  for (size_t i = 0; i < index_rank; ++i)
    index_count *= (size_t)index_dims[i];
  pb_t out = {0};
  pb_message(&out, 1,
             onnx_tensor(name, ONNX_FLOAT, 1, stored, values, count * 4));
  pb_message(&out, 2,
             onnx_tensor("", ONNX_INT64, index_rank, index_dims, indices,
                         index_count * 8));
  for (size_t i = 0; i < rank; ++i)
    pb_int(&out, 3, dims[i]);
  return out;
}

static void writes_sparse_tensors_out(void** state) {
  (void)state;
  const float w[2] = {5, 6}, c[2] = {7, 8}, x[6] = {0};
  const int64_t flat[2] = {1, 5}, pairs[4] = {0, 2, 1, 0}, dims[2] = {2, 3};
  const int64_t list[1] = {2}, pair_dims[2] = {2, 2};
  float y[6];
  pb_t g = {0}, attrs = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "2,3");
  pb_message(&g, 15, sparse("w", 2, w, 1, list, flat, 2, dims));
  onnx_attr_message(&attrs, "sparse_value", 11, 22,
                    sparse("", 2, c, 2, pair_dims, pairs, 2, dims));
  onnx_node(&g, "Constant", "", "", "c", &attrs);
  onnx_node(&g, "Add", "", "w,c", "wc", NULL);
  onnx_node(&g, "Add", "", "x,wc", "y", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_fail_each(&model, &(pestle_import_options_t){0});
  onnx_run(&model, (const void*[]){x}, (void*[]){y});
  assert_memory_equal(y, ((const float[6]){0, 5, 7, 8, 0, 6}), sizeof(y));
}

// Of |rank| 1 they count along the whole, of 2 along each axis.
static void refuse_indices_of(const int64_t* index_dims, size_t rank,
                              const int64_t* indices, const int64_t* dims,
                              pestle_status_code_t code, const char* text) {
  const float w[2] = {5, 6};
  pb_t g = {0};
  pb_message(&g, 15, sparse("w", 2, w, rank, index_dims, indices, 2, dims));
  onnx_node(&g, "Neg", "", "w", "y", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_test_t t;
  onnx_begin(&t);
  pestle_status_t status = onnx_import(&t, &model);
  assert_int_equal(pestle_status_code(status), code);
  if (text) assert_non_null(strstr(pestle_status_message(status), text));
  pestle_status_release(status);
  onnx_end(&t);
  pb_free(&model);
}

static void refuse_indices(size_t rank, const int64_t* indices,
                           const int64_t* dims, pestle_status_code_t code,
                           const char* text) {
  const int64_t index_dims[2] = {2, 2};
  refuse_indices_of(index_dims, rank, indices, dims, code, text);
}

static void refuse_sparse(const int64_t* indices, const int64_t* dims,
                          pestle_status_code_t code, const char* text) {
  refuse_indices(1, indices, dims, code, text);
}

static void refuses_sparse_tensors_that_make_no_sense(void** state) {
  (void)state;
  const int64_t small[2] = {2, 3}, large[2] = {1 << 20, 1 << 20};
  const int64_t many[2] = {1 << 10, 1 << 10};
  refuse_sparse((const int64_t[]){1, 6}, small, PESTLE_STATUS_MALFORMED,
                "value 1 of sparse tensor 'w' lies outside");
  refuse_sparse((const int64_t[]){-1, 5}, small, PESTLE_STATUS_MALFORMED,
                "value 0 of sparse tensor 'w' lies outside");
  static const int64_t pairs[][4] = {
      {0, 0, 0, 3}, {0, 0, 2, 0}, {0, 0, 0, -1}, {0, 0, -1, 0}};
  for (size_t i = 0; i < 4; ++i) {
    refuse_indices(2, pairs[i], small, PESTLE_STATUS_MALFORMED,
                   "value 1 of sparse tensor 'w' lies outside");
  }
  refuse_sparse((const int64_t[]){0, 5}, large, PESTLE_STATUS_UNSUPPORTED,
                "bytes when it is written out");
  refuse_sparse((const int64_t[]){0, 5}, many, PESTLE_STATUS_OK, NULL);
  refuse_sparse((const int64_t[]){5, 5}, small, PESTLE_STATUS_MALFORMED,
                "value 1 of sparse tensor 'w' lies in a place that another one "
                "has");
  // Shapes of indices that are not those of two values of a matrix.
  static const struct {
    size_t rank;
    int64_t dims[3];
  } shapes[] = {{3, {2, 1, 1}}, {3, {2, 2, 1}}, {1, {3}},
                {2, {3, 2}},    {2, {2, 3}},    {0, {0}}};
  static const int64_t places[6] = {0, 1, 0, 2, 1, 1};
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
    refuse_indices_of(shapes[i].dims, shapes[i].rank, places, small,
                      PESTLE_STATUS_MALFORMED, "do not fit its 2 values");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(takes_the_default_or_what_is_given),
      cmocka_unit_test(takes_a_longer_one_than_the_default),
      cmocka_unit_test(binds_a_constant_instead_of_the_default),
      cmocka_unit_test(keeps_what_old_models_store),
      cmocka_unit_test(initializers_of_a_body_are_defaults),
      cmocka_unit_test(names_a_body_input_without_a_value),
      cmocka_unit_test(refuses_another_element_type),
      cmocka_unit_test(warns_of_other_extents),
      cmocka_unit_test(writes_sparse_tensors_out),
      cmocka_unit_test(refuses_sparse_tensors_that_make_no_sense),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
