// SPDX-License-Identifier: Apache-2.0
// What the reader of ONNX files is asked for wrongly, functions of the model with
// attributes and inputs that a call leaves out, constants of a caller's, and what the
// outputs of a model are declared to be.
#include "frontend/info.h"
#include "frontend/onnx/source.h"
#include "onnx_test.h"

// --- Wrong calls ---

static void refuses_wrong_calls(void** state) {
  (void)state;
  onnx_test_t t;
  onnx_begin(&t);
  pestle_module_t* module = NULL;
  pestle_elements_t elements;
  const char* byte = "x";
  char name[4];
  assert_error(pestle_import_onnx(NULL, byte, 1, true, NULL, NULL, &module),
               INVALID_ARGUMENT, "a context");
  assert_error(
      pestle_import_onnx(t.context, NULL, 1, true, NULL, NULL, &module),
      INVALID_ARGUMENT, "the model's bytes");
  assert_error(pestle_import_onnx(t.context, byte, 1, true, NULL, NULL, NULL),
               INVALID_ARGUMENT, "a place for the module");
  assert_error(pestle_import_onnx_file(NULL, "x", NULL, &module),
               INVALID_ARGUMENT, "a context");
  assert_error(pestle_import_onnx_file(t.context, NULL, NULL, &module),
               INVALID_ARGUMENT, "a path");
  assert_error(pestle_import_onnx_file(t.context, "x", NULL, NULL),
               INVALID_ARGUMENT, "a place for the module");
  assert_error(pestle_import_onnx_file(t.context, "/", NULL, &module),
               INVALID_ARGUMENT, "");
  assert_error(pestle_read_onnx_tensor(NULL, byte, 1, &elements, NULL, 0),
               INVALID_ARGUMENT, "a context");
  assert_error(pestle_read_onnx_tensor(t.context, NULL, 1, &elements, NULL, 0),
               INVALID_ARGUMENT, "the tensor's bytes");
  assert_error(pestle_read_onnx_tensor(t.context, byte, 1, NULL, NULL, 0),
               INVALID_ARGUMENT, "a place for the elements");
  assert_error(pestle_read_onnx_tensor(t.context, byte, 1, &elements, NULL, 4),
               INVALID_ARGUMENT, "a place for the elements");
  // A name is cut where there is no room for it.
  static const char* const names[] = {"longer", ""};
  for (size_t i = 0; i < 2; ++i) {
    pb_t tensor = onnx_tensor(names[i], ONNX_INT64, 0, NULL, "12345678", 8);
    assert_ok(pestle_read_onnx_tensor(t.context, tensor.data, tensor.size,
                                      &elements, name, sizeof(name)));
    assert_string_equal(name, i ? "" : "lon");
    pestle_context_free(t.context, (void*)elements.data, elements.size);
    pb_free(&tensor);
  }
  onnx_end(&t);
}

static void refuses_options_without_lists(void** state) {
  (void)state;
  onnx_test_t t;
  onnx_begin(&t);
  pestle_import_options_t wrong[7] = {0};
  const pestle_dim_binding_t dim = {"n", 2};
  for (size_t i = 1; i < 7; ++i)
    wrong[i].struct_size = sizeof(wrong[i]);
  wrong[6].dims = &dim;
  wrong[6].dim_count = wrong[6].length_count = 1;
  wrong[1].dim_count = wrong[2].shape_count = 1;
  wrong[3].const_count = wrong[4].length_count = 1;
  wrong[5].onnx_compat = (pestle_onnx_compat_t)7;
  for (size_t i = 0; i < 7; ++i) {
    const char* says = i == 0   ? "struct_size is not set"
                       : i == 5 ? "no pestle_onnx_compat_t"
                                : "counts dims, shapes, consts or lengths";
    assert_error(
        pestle_import_onnx(t.context, "", 0, true, NULL, &wrong[i], &t.module),
        INVALID_ARGUMENT, says);
    assert_error(pestle_import_onnx_file(t.context, "x", &wrong[i], &t.module),
                 INVALID_ARGUMENT, says);
  }
  onnx_end(&t);
}

// --- Functions ---

// Leaf(a, b): LeakyRelu(a) with the call's slope, plus b clipped below by a.
static pb_t leaf_function(bool has_default) {
  pb_t f = {0}, node = {0}, attr = {0}, body = {0};
  pb_text(&f, 1, "Leaf");
  pb_text(&f, 4, "a");
  pb_text(&f, 4, "b");
  pb_text(&f, 5, "y");
  pb_text(&f, 6, "slope");
  pb_text(&node, 1, "a");
  pb_text(&node, 2, "l");
  pb_text(&node, 4, "LeakyRelu");
  pb_text(&attr, 1, "alpha");
  pb_text(&attr, 21, "slope");
  pb_int(&attr, 20, 1);
  pb_message(&node, 5, attr);
  pb_message(&f, 7, node);
  node = (pb_t){0};
  // Without its second input Clip has no lower bound.
  pb_text(&node, 1, "l");
  pb_text(&node, 1, "b");
  pb_text(&node, 2, "c");
  pb_text(&node, 4, "Clip");
  pb_message(&f, 7, node);
  onnx_node(&body, "Identity", "inner", "c", "t", NULL);
  onnx_output(&body, "t");
  pb_t attrs = {0}, copy = {0};
  pb_raw(&copy, body.data, body.size);
  onnx_attr_message(&attrs, "then_branch", 5, 6, body);
  onnx_attr_message(&attrs, "else_branch", 5, 6, copy);
  node = (pb_t){0};
  bool yes = true;
  pb_t value = onnx_tensor("v", ONNX_BOOL, 0, NULL, &yes, 1);
  pb_t of = {0};
  onnx_attr_message(&of, "value", 4, 5, value);
  pb_text(&node, 2, "yes");
  pb_text(&node, 4, "Constant");
  pb_raw(&node, of.data, of.size);
  pb_free(&of);
  pb_message(&f, 7, node);
  node = (pb_t){0};
  pb_text(&node, 1, "yes");
  pb_text(&node, 2, "y");
  pb_text(&node, 4, "If");
  pb_raw(&node, attrs.data, attrs.size);
  pb_free(&attrs);
  pb_message(&f, 7, node);
  pb_t opset = {0};
  pb_int(&opset, 2, 13);
  pb_message(&f, 9, opset);
  pb_text(&f, 10, "own");
  if (has_default) {
    pb_t one = {0};
    pb_text(&one, 1, "slope");
    pb_f32(&one, 2, 0.5f);
    pb_int(&one, 20, 1);
    pb_message(&f, 11, one);
  }
  return f;
}

static float leaf_of(const char* inputs, bool has_default, double slope) {
  pb_t graph = {0}, attrs = {0}, node = {0};
  onnx_input(&graph, "x", ONNX_FLOAT, "1");
  onnx_floats(&graph, "low", 0, NULL, (float[]){-1});
  if (slope != 0) {
    pb_t one = {0};
    pb_text(&one, 1, "slope");
    pb_f32(&one, 2, (float)slope);
    pb_int(&one, 20, 1);
    pb_message(&attrs, 5, one);
  }
  pb_list(&node, 1, inputs);
  pb_text(&node, 2, "y");
  pb_text(&node, 3, "call");
  pb_text(&node, 4, "Leaf");
  pb_text(&node, 7, "own");
  pb_raw(&node, attrs.data, attrs.size);
  pb_free(&attrs);
  pb_message(&graph, 1, node);
  onnx_output(&graph, "y");
  pb_t model = onnx_model(13, &graph), f = leaf_function(has_default);
  onnx_opset(&model, "own", 1);
  pb_message(&model, 25, f);
  float x = -8, y = 0;
  onnx_fail_each(&model, &(pestle_import_options_t){0});
  onnx_run(&model, (const void*[]){&x}, (void*[]){&y});
  return y;
}

static void calls_functions(void** state) {
  (void)state;
  // The call's attribute, the function's default, the op's own.
  assert_float_equal(leaf_of("x", true, 0.25), -2, 0);
  assert_float_equal(leaf_of("x", true, 0), -4, 0);
  assert_float_equal(leaf_of("x", false, 0), -0.08f, 1e-6);
  // An input that is left out, and one that is not.
  assert_float_equal(leaf_of("x,", true, 0), -4, 0);
  assert_float_equal(leaf_of("x,low", true, 0), -1, 0);
}

// --- Constants of a caller's ---

static pestle_status_t bind_number(onnx_test_t* t, int type, const char* dims,
                                   pestle_dtype_t dtype, const void* data,
                                   int32_t rank) {
  pb_t graph = {0};
  onnx_input(&graph, "x", type, dims);
  onnx_node(&graph, "Identity", "n", "x", "y", NULL);
  onnx_output(&graph, "y");
  pb_t model = onnx_model(13, &graph);
  int64_t extents[] = {2, 2};
  pestle_tensor_t view = {.data = (void*)data,
                          .device = {PESTLE_DEVICE_CPU, 0},
                          .ndim = rank,
                          .dtype = pestle_dtype_to_dlpack(dtype),
                          .shape = extents};
  pestle_const_binding_t binding = {"x", &view};
  t->options.consts = &binding;
  t->options.const_count = 1;
  pestle_status_t status = onnx_import(t, &model);
  t->options.const_count = 0;
  pb_free(&model);
  return status;
}

static void takes_numbers_that_fit(void** state) {
  (void)state;
  const float half = 0.5f, three = 3, four[4] = {1, 2, 3, 4};
  const int64_t big = (int64_t)1 << 40, seven = 7;
  struct {
    int type;
    const char* dims;
    pestle_dtype_t dtype;
    const void* data;
    int32_t rank;
    const char* refusal;  // or NULL
  } rows[] = {
      {ONNX_FLOAT, "2,3", PESTLE_F32, &half, 0, NULL},
      {ONNX_FLOAT, "n,3", PESTLE_I64, &seven, 0, NULL},
      {ONNX_FLOAT, "0,3", PESTLE_F32, &half, 0, NULL},
      {ONNX_INT64, "2", PESTLE_F32, &three, 0, NULL},
      {ONNX_INT64, "2", PESTLE_F32, &half, 0, "which cannot hold it"},
      {ONNX_INT32, "2", PESTLE_I64, &seven, 0, NULL},
      {ONNX_INT32, "2", PESTLE_I64, &big, 0, "which cannot hold it"},
      {ONNX_INT64, "2,2", PESTLE_F32, four, 2, "is of f32, the model says"},
      {ONNX_FLOAT, "2,2", PESTLE_F32, four, 2, NULL},
      {ONNX_FLOAT, "2,n", PESTLE_F32, four, 2, NULL},
      {ONNX_FLOAT, "2,3", PESTLE_F32, four, 2, "another shape"},
      {ONNX_FLOAT, "4", PESTLE_F32, four, 2, "another shape"},
      {ONNX_BOOL, "2", PESTLE_I64, &seven, 0, "which cannot hold it"},
      {ONNX_FLOAT, "4294967296,4294967296", PESTLE_F32, &half, 0,
       "more elements"},
      {8, "2", PESTLE_F32, &half, 0, "the model says"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    onnx_test_t t;
    onnx_begin(&t);
    pestle_status_t status =
        bind_number(&t, rows[i].type, rows[i].dims, rows[i].dtype, rows[i].data,
                    rows[i].rank);
    if (rows[i].refusal) {
      assert_error(status, INVALID_ARGUMENT, rows[i].refusal);
    } else {
      assert_ok(status);
      assert_ok(pestle_module_verify(t.module));
    }
    onnx_end(&t);
  }
}

// --- Outputs ---

static pestle_status_t declare(onnx_test_t* t, int type, const char* dims) {
  pb_t graph = {0};
  onnx_input(&graph, "x", ONNX_FLOAT, "2,3");
  onnx_node(&graph, "Relu", "n", "x", "y", NULL);
  pb_message(&graph, 12, onnx_value("y", type, dims));
  pb_t model = onnx_model(13, &graph);
  pestle_status_t status = onnx_import(t, &model);
  pb_free(&model);
  return status;
}

static void checks_declared_outputs(void** state) {
  (void)state;
  static const char* const fine[] = {"2,3", "n,3", "2", "2,4"};
  for (size_t i = 0; i < 4; ++i) {
    onnx_test_t t;
    onnx_begin(&t);
    assert_ok(declare(&t, ONNX_FLOAT, fine[i]));
    onnx_end(&t);
  }
  static const int wrong[] = {ONNX_INT64, 8};
  for (size_t i = 0; i < 2; ++i) {
    onnx_test_t t;
    onnx_begin(&t);
    assert_error(declare(&t, wrong[i], "2,3"), MALFORMED,
                 "declares its output 'y' to be of");
    onnx_end(&t);
  }
}

// --- What is listed ---

// A default, an initializer that older files list as an input, inputs with and without
// shapes.
static pb_t listed_model(int64_t ir_version) {
  pb_t graph = {0}, model = {0};
  onnx_input(&graph, "x", ONNX_FLOAT, "2,n,?");
  onnx_input(&graph, "w", ONNX_FLOAT, "2");
  onnx_floats(&graph, "w", 1, (int64_t[]){2}, (float[]){1, 2});
  pb_t plain = {0};
  pb_text(&plain, 1, "plain");
  pb_message(&graph, 11, plain);
  onnx_node(&graph, "Neg", "n", "w", "y", NULL);
  onnx_output(&graph, "y");
  pb_int(&model, 1, ir_version);
  pb_text(&model, 2, "writer");
  pb_text(&model, 3, "1.5");
  onnx_opset(&model, "ai.onnx", 13);
  pb_message(&model, 7, graph);
  pb_message(&model, 25, leaf_function(true));
  return model;
}

typedef struct listed_t {
  size_t count, defaults, unknown;
  size_t most;  // to be told
} listed_t;

static pestle_status_t list_input(void* user, const pestle_model_input_t* in) {
  listed_t* listed = user;
  if (listed->count == listed->most)
    return PESTLE_ERROR(CANCELLED, "that is enough");
  ++listed->count;
  listed->defaults += in->has_default;
  listed->unknown += in->rank < 0;
  if (!strcmp(in->name, "x")) {
    assert_int_equal(in->rank, 3);
    assert_int_equal(in->dims[0], 2);
    assert_int_equal(in->dims[1], PESTLE_DIM_DYNAMIC);
  }
  if (in->has_default) assert_int_equal(in->default_dims[0], 2);
  return NULL;
}

static void lists_inputs(void** state) {
  (void)state;
  for (int64_t ir_version = 3; ir_version < 5; ++ir_version) {
    onnx_test_t t;
    onnx_begin(&t);
    pb_t model = listed_model(ir_version);
    listed_t listed = {.most = 9}, few = {.most = 1};
    assert_ok(pestle_onnx_visit_inputs(t.context, model.data, model.size,
                                       list_input, &listed));
    assert_int_equal(listed.count, ir_version < 4 ? 2 : 3);
    assert_int_equal(listed.defaults, ir_version < 4 ? 0 : 1);
    assert_int_equal(listed.unknown, 1);
    assert_error(pestle_onnx_visit_inputs(t.context, model.data, model.size,
                                          list_input, &few),
                 CANCELLED, "enough");
    pestle_info_t info = {.info = {.producer = ""}};
    pestle_allocator_t allocator = pestle_test_allocator(&t.memory);
    pestle_arena_init(allocator, &info.arena);
    pestle_map_init(allocator, &info.ops);
    assert_ok(pestle_onnx_take_info(model.data, model.size, NULL, &info));
    assert_string_equal(info.info.producer, "writer 1.5");
    assert_int_equal(info.info.input_count, ir_version < 4 ? 2 : 3);
    assert_true(info.info.ir_version == ir_version);
    // One of the graph, and those of the function with its branches.
    assert_non_null(pestle_map_find_str(&info.ops, pestle_str("Neg")));
    assert_non_null(pestle_map_find_str(&info.ops, pestle_str("LeakyRelu")));
    assert_non_null(pestle_map_find_str(&info.ops, pestle_str("Identity")));
    pestle_map_deinit(&info.ops);
    pestle_arena_deinit(&info.arena);
    onnx_end(&t);
    pb_free(&model);
  }
}

// --- Ops and cycles ---

static void names_a_few_nodes_of_many(void** state) {
  (void)state;
  pb_t graph = {0};
  char name[16], in[16], out[16];
  onnx_input(&graph, "x", ONNX_FLOAT, "2");
  for (int i = 0; i < 6; ++i) {
    snprintf(name, sizeof(name), "n%d", i);
    snprintf(out, sizeof(out), "y%d", i);
    onnx_node(&graph, i < 5 ? "Nothing" : "Another", name, "x", out, NULL);
  }
  onnx_output(&graph, "y0");
  pb_t model = onnx_model(13, &graph);
  onnx_fails(model, UNSUPPORTED, "Another");
  // A cycle of twelve, of which eight are told.
  for (int i = 0; i < 12; ++i) {
    snprintf(in, sizeof(in), "y%d", (i + 11) % 12);
    snprintf(out, sizeof(out), "y%d", i);
    onnx_node(&graph, "Neg", i % 2 ? "odd" : "", in, out, NULL);
  }
  onnx_output(&graph, "y0");
  model = onnx_model(13, &graph);
  onnx_fails(model, MALFORMED, "odd");
}

static void refuses_calls_that_do_not_fit(void** state) {
  (void)state;
  static const char* const inputs[] = {"x,x,x", "x"};
  static const char* const outputs[] = {"y", "y,z"};
  for (size_t i = 0; i < 2; ++i) {
    pb_t graph = {0}, node = {0};
    onnx_input(&graph, "x", ONNX_FLOAT, "1");
    pb_list(&node, 1, inputs[i]);
    pb_list(&node, 2, outputs[i]);
    pb_text(&node, 3, "call");
    pb_text(&node, 4, "Leaf");
    pb_text(&node, 7, "own");
    pb_message(&graph, 1, node);
    onnx_output(&graph, "y");
    pb_t model = onnx_model(13, &graph);
    onnx_opset(&model, "own", 1);
    pb_message(&model, 25, leaf_function(false));
    onnx_fails(model, MALFORMED, "the function 2 and 1");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refuses_wrong_calls),
      cmocka_unit_test(refuses_options_without_lists),
      cmocka_unit_test(calls_functions),
      cmocka_unit_test(takes_numbers_that_fit),
      cmocka_unit_test(checks_declared_outputs),
      cmocka_unit_test(lists_inputs),
      cmocka_unit_test(names_a_few_nodes_of_many),
      cmocka_unit_test(refuses_calls_that_do_not_fit),
  };
  return cmocka_run_group_tests_name("onnx_reader", tests, NULL, NULL);
}
