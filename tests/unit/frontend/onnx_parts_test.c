// SPDX-License-Identifier: Apache-2.0
// Parts of ONNX files that are seldom or never right: types inside each other, declarations
// without a type or a shape, sparse tensors, functions that take sequences, bindings of a
// caller's beside each other. Each gives a sentence or a result, and survives memory that
// runs out.
#include <unistd.h>

#include "base/file.h"
#include "frontend/info.h"
#include "frontend/onnx/source.h"
#include "onnx_test.h"

// --- Types of inputs ---

// A TypeProto: t a tensor of two floats, u one whose dtype is not said, n one without a
// shape, s a sequence and o an optional of what follows, m a map of that.
static pb_t type_of(const char* kinds) {
  pb_t type = {0}, inner = {0};
  if (*kinds == 's' || *kinds == 'o') {
    pb_message(&inner, 1, type_of(kinds + 1));
    pb_message(&type, *kinds == 's' ? 4 : 9, inner);
  } else if (*kinds == 'm') {
    pb_int(&inner, 1, ONNX_INT64);
    pb_message(&inner, 2, type_of(kinds + 1));
    pb_message(&type, 5, inner);
  } else if (*kinds) {
    pb_t shape = {0}, dim = {0};
    if (*kinds != 'u') pb_int(&inner, 1, ONNX_FLOAT);
    pb_int(&dim, 1, 2);
    pb_message(&shape, 1, dim);
    if (*kinds == 'n') {
      pb_free(&shape);
    } else {
      pb_message(&inner, 2, shape);
    }
    pb_message(&type, 1, inner);
  }
  return type;
}

static pb_t info_of(const char* name, const char* kinds) {
  pb_t info = {0};
  pb_text(&info, 1, name);
  if (*kinds) pb_message(&info, 2, type_of(kinds));
  return info;
}

static pb_t model_of(const char* kinds, const char* op) {
  pb_t g = {0};
  pb_message(&g, 11, info_of("x", kinds));
  onnx_node(&g, op, "n", "x", "y", NULL);
  onnx_output(&g, "y");
  return onnx_model(18, &g);
}

static void reads_types_inside_each_other(void** state) {
  (void)state;
  static const char* const no_tensor = "input 'x' of the model is not a tensor";
  const struct {
    const char *kinds, *op, *says;  // NULL: it is imported
  } rows[] = {
      {"t", "Neg", NULL},
      {"st", "SequenceLength", NULL},
      {"ot", "OptionalHasElement", NULL},
      {"ost", "SequenceLength", "its input 0 is no sequence"},
      {"mt", "Neg", "takes the input 'x', which is a map"},
      {"sst", "SequenceLength", no_tensor},
      {"oot", "OptionalHasElement", no_tensor},
      {"sot", "SequenceLength", no_tensor},
      {"smt", "SequenceLength", no_tensor},
      {"omt", "OptionalHasElement", no_tensor},
      {"mst", "Neg", no_tensor},
      {"", "Neg", no_tensor},
      {"s", "SequenceLength", no_tensor},
      {"u", "Neg", "has the element type UNDEFINED (0)"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    onnx_test_t t;
    onnx_begin(&t);
    pb_t model = model_of(rows[i].kinds, rows[i].op);
    pestle_status_t status = onnx_import(&t, &model);
    if (rows[i].says) {
      assert_non_null(status);
      assert_non_null(strstr(pestle_status_message(status), rows[i].says));
      pestle_status_release(status);
    } else {
      assert_ok(status);
    }
    onnx_end(&t);
    pb_free(&model);
  }
}

// --- What a model says of itself ---

static void begin_info(onnx_test_t* t, pestle_info_t* info) {
  *info = (pestle_info_t){.info = {.producer = ""}};
  pestle_arena_init(pestle_test_allocator(&t->memory), &info->arena);
  pestle_map_init(pestle_test_allocator(&t->memory), &info->ops);
}

static void end_info(pestle_info_t* info) {
  pestle_map_deinit(&info->ops);
  pestle_arena_deinit(&info->arena);
}

static pb_t sparse_of(const char* name, int type, size_t rank,
                      const int64_t* dims) {
  const int64_t places[] = {1, 3}, count[] = {2};
  pb_t sparse = {0};
  pb_message(&sparse, 1, onnx_tensor(name, type, 1, count, "12345678", 8));
  pb_message(&sparse, 2, onnx_tensor("", ONNX_INT64, 1, count, places, 16));
  for (size_t i = 0; i < rank; ++i)
    pb_int(&sparse, 3, dims[i]);
  return sparse;
}

static void counts_weights(void** state) {
  (void)state;
  static const int64_t four[] = {4}, below[] = {-1, 7}, huge[] = {INT64_MAX, 4};
  pb_t g = {0}, node = {0};
  pb_message(&g, 11, info_of("x", "n"));
  pb_message(&g, 15, sparse_of("w", ONNX_FLOAT, 1, four));
  pb_message(&g, 5, onnx_tensor("a", ONNX_FLOAT, 1, four, "", 0));
  // Nothing is counted of extents that are none.
  pb_message(&g, 5, onnx_tensor("b", ONNX_FLOAT, 2, below, "", 0));
  pb_message(&g, 5, onnx_tensor("c", ONNX_FLOAT, 2, huge, "", 0));
  pb_text(&node, 1, "x");
  pb_text(&node, 2, "y");
  pb_text(&node, 4, "Neg");
  pb_text(&node, 7, "ai.onnx");
  pb_message(&g, 1, node);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_test_t t;
  pestle_info_t info;
  onnx_begin(&t);
  begin_info(&t, &info);
  assert_ok(pestle_onnx_take_info(model.data, model.size, NULL, &info));
  assert_int_equal(info.info.weight_count, 2 + 4);
  assert_non_null(pestle_map_find_str(&info.ops, pestle_str("Neg")));
  assert_int_equal(info.info.inputs[0].rank, -1);
  end_info(&info);
  onnx_end(&t);
  pb_free(&model);
}

// An argument of a rank that the model does not say has none until a shape is given.
static void tells_ranks_that_are_given(void** state) {
  (void)state;
  static const int64_t dims[] = {3, 5};
  const pestle_shape_binding_t shapes[] = {{"x", 0, NULL}, {"x", 2, dims}};
  pb_t model = model_of("n", "Neg");
  for (size_t i = 0; i < 2; ++i) {
    onnx_test_t t;
    pestle_info_t info;
    onnx_begin(&t);
    begin_info(&t, &info);
    t.options.shapes = &shapes[i];
    t.options.shape_count = 1;
    assert_ok(onnx_import(&t, &model));
    assert_ok(pestle_onnx_take_info(model.data, model.size, t.module, &info));
    assert_int_equal(info.info.inputs[0].rank, i ? 2 : -1);
    if (i) assert_int_equal(info.info.inputs[0].dims[1], 5);
    assert_int_equal(info.info.outputs[0].rank, shapes[i].rank);
    end_info(&info);
    onnx_end(&t);
  }
  pb_free(&model);
}

// A sequence is as many results as it has tensors, declared or not.
static void tells_outputs_beside_sequences(void** state) {
  (void)state;
  static const struct {
    // Names with kinds: s is an empty sequence, u one of two tensors.
    const char *first, *then;
    int32_t ranks[2];
  } rows[] = {
      {"s:st", "y:n", {-1, 2}},  {"y:n", "s:st", {2, -1}},
      {"s:", "y:n", {-1, 2}},    {"y:n", "s:", {2, -1}},
      {"y:", "s:", {2, -1}},     {"y:", "y:n", {2, 2}},
      {"y:on", "s:st", {2, -1}}, {"y:on", "y:", {2, 2}},
      {"u:", "s:", {-1, -1}},    {"u:st", "y:", {-1, 2}},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    const char* outputs[] = {rows[i].first, rows[i].then};
    pb_t g = {0}, attrs = {0};
    onnx_attr_int(&attrs, "to", ONNX_FLOAT);
    onnx_input(&g, "x", ONNX_FLOAT, "4");
    onnx_node(&g, "NonZero", "", "x", "places", NULL);
    onnx_node(&g, "Cast", "", "places", "y", &attrs);
    onnx_node(&g, "SequenceEmpty", "", "", "s", NULL);
    onnx_node(&g, "SequenceConstruct", "", "x,x", "u", NULL);
    for (size_t k = 0; k < 2; ++k) {
      const char name[2] = {outputs[k][0]};
      pb_message(&g, 12, info_of(name, outputs[k] + 2));
    }
    pb_t model = onnx_model(13, &g);
    onnx_test_t t;
    pestle_info_t info;
    onnx_begin(&t);
    begin_info(&t, &info);
    assert_ok(onnx_import(&t, &model));
    assert_ok(pestle_onnx_take_info(model.data, model.size, t.module, &info));
    assert_int_equal(info.info.output_count, 2);
    for (size_t k = 0; k < 2; ++k)
      assert_int_equal(info.info.outputs[k].rank, rows[i].ranks[k]);
    end_info(&info);
    onnx_end(&t);
    pb_free(&model);
  }
}

// --- Initializers ---

static pestle_status_t count_input(void* user, const pestle_model_input_t* in) {
  size_t* counts = user;
  ++counts[0];
  counts[1] += in->has_default;
  counts[2] += in->rank < 0;
  return NULL;
}

static void lists_defaults_that_are_sparse(void** state) {
  (void)state;
  static const int64_t four[] = {4};
  size_t counts[3] = {0};
  pb_t g = {0};
  pb_message(&g, 11, info_of("x", "n"));
  onnx_input(&g, "w", ONNX_FLOAT, "4");
  pb_message(&g, 15, sparse_of("w", ONNX_FLOAT, 1, four));
  onnx_node(&g, "Add", "", "x,w", "y", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(pestle_onnx_visit_inputs(t.context, model.data, model.size,
                                     count_input, counts));
  assert_int_equal(counts[0], 2);
  assert_int_equal(counts[1], 1);
  assert_int_equal(counts[2], 1);
  onnx_end(&t);
  pb_free(&model);
}

// An input and its initializer have one dtype, where the input says which.
static void compares_dtypes_of_defaults(void** state) {
  (void)state;
  static const char* const kinds[] = {"t", "n", "u", "", "int"};
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
    pb_t g = {0};
    if (i == 4) {
      onnx_input(&g, "x", ONNX_INT64, "2");
    } else {
      pb_message(&g, 11, info_of("x", kinds[i]));
    }
    onnx_floats(&g, "x", 1, (int64_t[]){2}, (float[]){1, 2});
    onnx_node(&g, "Neg", "n", "x", "y", NULL);
    onnx_output(&g, "y");
    pb_t model = onnx_model(13, &g);
    if (i == 4) {
      onnx_fails(model, MALFORMED,
                 "its input 'x' to be of INT64, its initializer is of FLOAT");
      continue;
    }
    float y[2];
    onnx_run(&model, NULL, (void*[]){y});
    assert_float_equal(y[1], -2, 0);
  }
}

// As ONNX Runtime has it: one shape, where the input says it in numbers.
static void compares_shapes_of_defaults(void** state) {
  (void)state;
  static const char* const shapes[] = {"2,3", "n,3", "n,m", "2,4", "3", "0,3"};
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
    pb_t g = {0};
    onnx_input(&g, "x", ONNX_FLOAT, shapes[i]);
    onnx_floats(&g, "x", 2, (int64_t[]){2, 3}, (float[]){1, 2, 3, 4, 5, 6});
    onnx_node(&g, "Neg", "n", "x", "y", NULL);
    onnx_output(&g, "y");
    pb_t model = onnx_model(13, &g);
    if (i >= 3) {
      onnx_fails(model, MALFORMED,
                 "its input 'x' with another shape than its initializer has");
      continue;
    }
    float y[6];
    onnx_run(&model, NULL, (void*[]){y});
    assert_float_equal(y[5], -6, 0);
  }
}

static void refuses_strings_that_are_no_list(void** state) {
  (void)state;
  static const int64_t one[] = {1}, four[] = {4};
  for (int i = 0; i < 3; ++i) {
    pb_t g = {0}, tensor = {0};
    if (i == 0) {
      pb_message(&g, 15, sparse_of("w", 8, 1, four));
    } else {
      tensor = onnx_tensor("w", 8, 1, one, i == 1 ? "a" : NULL, 1);
      if (i == 2) pb_int(&tensor, 14, 1);
      pb_message(&g, 5, tensor);
    }
    onnx_node(&g, "Identity", "n", "w", "y", NULL);
    onnx_output(&g, "y");
    pb_t model = onnx_model(13, &g);
    onnx_fails(model, MALFORMED, "'w' lie where only numbers may");
  }
}

static void refuses_sparse_tensors_of_many_axes(void** state) {
  (void)state;
  int64_t dims[17];
  for (size_t i = 0; i < 17; ++i)
    dims[i] = 2;
  pb_t g = {0};
  pb_message(&g, 15, sparse_of("w", ONNX_FLOAT, 17, dims));
  onnx_node(&g, "Neg", "n", "w", "y", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_fails(model, MALFORMED, "has values of 1 dimensions for a tensor of 17");
}

// All of it is written out, in parts that are given back to the system where it is a file.
static void copies_large_tensors(void** state) {
  (void)state;
  enum { COUNT = (1 << 20) + 5 };
  const int64_t dims[] = {COUNT};
  uint8_t* bytes = malloc(COUNT);
  int32_t wanted = 0;
  for (size_t i = 0; i < COUNT; ++i) {
    bytes[i] = (uint8_t)(i % 3);
    wanted += i % 3 != 0;
  }
  pb_t g = {0}, attrs = {0};
  pb_message(&g, 5, onnx_tensor("w", ONNX_BOOL, 1, dims, bytes, COUNT));
  free(bytes);
  onnx_attr_int(&attrs, "to", ONNX_INT32);
  onnx_node(&g, "Cast", "", "w", "c", &attrs);
  onnx_node(&g, "ReduceSum", "", "c", "y", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(11, &g);
  char path[] = "/tmp/pestle-parts-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  assert_ok(pestle_file_write(
      path, pestle_str_make((const char*)model.data, model.size)));
  for (int i = 0; i < 2; ++i) {
    onnx_test_t t;
    int32_t y = 0;
    onnx_begin(&t);
    assert_ok(i ? onnx_import(&t, &model)
                : pestle_import_onnx_file(t.context, path, NULL, &t.module));
    assert_ok(pestle_ref_evaluate_function(pestle_test_allocator(&t.memory),
                                           pestle_module_entry(t.module), NULL,
                                           (void*[]){&y}));
    assert_int_equal(y, wanted);
    onnx_end(&t);
  }
  unlink(path);
  pb_free(&model);
}

// --- Bindings ---

static pb_t two_inputs(void) {
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "n,m");
  onnx_input(&g, "z", ONNX_FLOAT, "n,n");
  onnx_node(&g, "Neg", "", "x", "y", NULL);
  onnx_node(&g, "Neg", "", "z", "v", NULL);
  onnx_output(&g, "y");
  onnx_output(&g, "v");
  return onnx_model(13, &g);
}

static void names_dims_once(void** state) {
  (void)state;
  pb_t model = two_inputs();
  const pestle_dim_binding_t dim = {"quite another", 2};
  onnx_test_t t;
  onnx_begin(&t);
  t.options.dims = &dim;
  t.options.dim_count = 1;
  pestle_status_t status = onnx_import(&t, &model);
  assert_non_null(status);
  assert_non_null(strstr(pestle_status_message(status), "they have 'n', 'm'"));
  assert_null(strstr(pestle_status_message(status), "'m', 'n'"));
  pestle_status_release(status);
  onnx_end(&t);
  pb_free(&model);
}

static void refuses_shapes_that_are_none(void** state) {
  (void)state;
  static const int64_t dims[17] = {2, 2};
  static const struct {
    pestle_shape_binding_t shape;
    const char *kinds, *says;  // NULL: it is taken
  } rows[] = {
      {{NULL, 1, dims}, "t", "a shape is given without the input's name"},
      {{"x", 1, NULL}, "t", "a shape is given without its dims"},
      {{"x", -1, dims}, "n", "has -1 dimensions"},
      {{"x", 17, dims}, "n", "has 17 dimensions"},
      {{"x", 2, dims}, "t", "is given the shape 2x2, the model says 2"},
      {{"x", 0, NULL}, "t", "is given the shape scalar, the model says 2"},
      {{"x", 1, dims}, "t", NULL},
      {{"x", 2, dims}, "n", NULL},
      {{"x", 0, NULL}, "n", NULL},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    onnx_test_t t;
    onnx_begin(&t);
    pb_t model = model_of(rows[i].kinds, "Neg");
    t.options.shapes = &rows[i].shape;
    t.options.shape_count = 1;
    pestle_status_t status = onnx_import(&t, &model);
    if (rows[i].says) {
      assert_error(status, INVALID_ARGUMENT, rows[i].says);
    } else {
      assert_ok(status);
    }
    onnx_end(&t);
    pb_free(&model);
  }
}

// A lone number fills the shape that is given beside it, which may not be the first.
static void fills_a_shape_that_is_given(void** state) {
  (void)state;
  static const int64_t dims[] = {2, 3};
  float number = 4, y[6] = {0}, v[4];
  const bool yes = true;
  const pestle_shape_binding_t shapes[] = {{"z", 2, (const int64_t[]){2, 2}},
                                           {"x", 2, dims},
                                           {"x", 2, dims},
                                           {NULL, 2, dims}};
  pestle_tensor_t view = {.data = &number,
                          .device = {PESTLE_DEVICE_CPU, 0},
                          .dtype = pestle_dtype_to_dlpack(PESTLE_F32)};
  const pestle_const_binding_t binding = {"x", &view};
  pb_t model = two_inputs();
  onnx_test_t t;
  onnx_begin(&t);
  t.options.consts = &binding;
  t.options.const_count = 1;
  t.options.shapes = shapes;
  t.options.shape_count = 3;
  assert_ok(onnx_import(&t, &model));
  assert_ok(pestle_ref_evaluate_function(
      pestle_test_allocator(&t.memory), pestle_module_entry(t.module),
      (const void*[]){(const float[]){1, 2, 3, 4}}, (void*[]){y, v}));
  assert_float_equal(y[5], -4, 0);
  assert_float_equal(v[3], -4, 0);
  pestle_module_release(t.module);
  t.module = NULL;
  onnx_fail_each(&model, &t.options);
  t.options.shapes = shapes + 3;
  t.options.shape_count = 1;
  assert_error(onnx_import(&t, &model), INVALID_ARGUMENT,
               "a shape is given without the input's name");
  // What is no number has none in the sentence.
  t.options.shape_count = 0;
  view.data = (void*)&yes;
  view.dtype = pestle_dtype_to_dlpack(PESTLE_I1);
  assert_error(onnx_import(&t, &model), INVALID_ARGUMENT,
               "the constant for input 'x' is of i1");
  onnx_end(&t);
  pb_free(&model);
}

static void takes_constants_of_any_rank(void** state) {
  (void)state;
  float x[] = {1, 2}, y[2];
  int64_t dims[] = {1, 2};
  const pestle_tensor_t view = {.data = x,
                                .device = {PESTLE_DEVICE_CPU, 0},
                                .ndim = 2,
                                .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                                .shape = dims};
  const pestle_const_binding_t binding = {"x", &view};
  pb_t model = model_of("n", "Neg");
  onnx_test_t t;
  onnx_begin(&t);
  t.options.consts = &binding;
  t.options.const_count = 1;
  assert_ok(onnx_import(&t, &model));
  assert_ok(pestle_ref_evaluate_function(pestle_test_allocator(&t.memory),
                                         pestle_module_entry(t.module), NULL,
                                         (void*[]){y}));
  assert_float_equal(y[1], -2, 0);
  onnx_end(&t);
  pb_free(&model);
}

// An input that is a sequence has as many tensors as bindings name.
static void counts_tensors_of_a_sequence(void** state) {
  (void)state;
  static const int64_t dims[] = {2};
  static const struct {
    const char* names[2];  // of shapes, or NULL
    const char* constant;  // or NULL
    int64_t length;        // -1: there is no such input
  } rows[] = {
      {{NULL}, NULL, 0},    {{"x[0]"}, NULL, 1},   {{"x[1]", "x[0]"}, NULL, 2},
      {{NULL}, "x[2]", 3},  {{"x[0]"}, "x[1]", 2}, {{"x"}, NULL, -1},
      {{"xyzz"}, NULL, -1}, {{"y[0]"}, NULL, -1},  {{"x(0]"}, NULL, -1},
      {{"x[0)"}, NULL, -1}, {{"x[a]"}, NULL, -1},  {{"x[-1]"}, NULL, -1},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    float x[2] = {1, 2};
    int64_t y = -1, own[] = {2};
    const pestle_shape_binding_t shapes[] = {{rows[i].names[0], 1, dims},
                                             {rows[i].names[1], 1, dims}};
    const pestle_tensor_t view = {.data = x,
                                  .device = {PESTLE_DEVICE_CPU, 0},
                                  .ndim = 1,
                                  .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                                  .shape = own};
    const pestle_const_binding_t binding = {rows[i].constant, &view};
    pb_t model = model_of("st", "SequenceLength");
    onnx_test_t t;
    onnx_begin(&t);
    t.options.shapes = shapes;
    t.options.shape_count = !rows[i].names[0] ? 0 : rows[i].names[1] ? 2 : 1;
    t.options.consts = &binding;
    t.options.const_count = rows[i].constant != NULL;
    pestle_status_t status =
        i ? onnx_import(&t, &model)
          : pestle_import_onnx(t.context, model.data, model.size, true, NULL,
                               NULL, &t.module);
    if (rows[i].length < 0) {
      assert_error(status, NOT_FOUND, "no such input");
    } else {
      assert_ok(status);
      assert_ok(pestle_ref_evaluate_function(
          pestle_test_allocator(&t.memory), pestle_module_entry(t.module),
          (const void*[]){x, x, x}, (void*[]){&y}));
      assert_int_equal(y, rows[i].length);
    }
    onnx_end(&t);
    pb_free(&model);
  }
}

// A caller may give any of these alone.
static void obeys_parts_of_control(void** state) {
  (void)state;
  int flag = 0;
  const pestle_control_t controls[] = {
      {.struct_size = sizeof(pestle_control_t)},
      {.struct_size = sizeof(pestle_control_t), .cancel = &flag},
      {.struct_size = sizeof(pestle_control_t), .deadline_ns = UINT64_MAX / 2},
      {.struct_size = sizeof(pestle_control_t), .deadline_ns = 1},
  };
  pb_t model = model_of("t", "Neg");
  for (size_t i = 0; i < 4; ++i) {
    onnx_test_t t;
    onnx_begin(&t);
    t.options.control = &controls[i];
    if (i < 3) {
      assert_ok(onnx_import(&t, &model));
    } else {
      assert_error(onnx_import(&t, &model), DEADLINE_EXCEEDED, "deadline");
    }
    onnx_end(&t);
  }
  pb_free(&model);
}

// --- Branches ---

static pb_t branch_of(const char* op, const char* kinds) {
  pb_t g = {0};
  onnx_node(&g, op, op, "x", "s", NULL);
  pb_message(&g, 12, info_of("s", kinds));
  return g;
}

// What gives a sequence or an optional cannot wait for a run to choose.
static void asks_for_conditions_of_sequences(void** state) {
  (void)state;
  static const struct {
    const char *op, *kinds[2];
    size_t asked;
  } rows[] = {
      {"Identity", {"t", "t"}, 0},
      {"Identity", {"ot", "t"}, 0},
      {"Identity", {"t", "ot"}, 0},
      {"Identity", {"omt", "t"}, 1},
      {"SequenceConstruct", {"st", "st"}, 1},
      {"SequenceConstruct", {"", "st"}, 1},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    pb_t g = {0}, attrs = {0};
    onnx_input(&g, "c", ONNX_BOOL, "");
    onnx_input(&g, "x", ONNX_FLOAT, "2");
    onnx_attr_message(&attrs, "then_branch", 5, 6,
                      branch_of(rows[i].op, rows[i].kinds[0]));
    onnx_attr_message(&attrs, "else_branch", 5, 6,
                      branch_of(rows[i].op, rows[i].kinds[1]));
    onnx_node(&g, "If", "choice", "c", "y", &attrs);
    onnx_output(&g, "y");
    pb_t model = onnx_model(18, &g);
    onnx_test_t t;
    onnx_begin(&t);
    assert_ok(onnx_import(&t, &model));
    assert_int_equal(pestle_module_value_argument_count(t.module),
                     rows[i].asked);
    onnx_end(&t);
    pb_free(&model);
  }
}

// --- Functions ---

// F(s, a, b): how long s is, with an opset that it states itself.
static pb_t counting_model(const char* inputs) {
  pb_t g = {0}, f = {0}, node = {0}, opset = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_node(&g, "SequenceConstruct", "", "x,x,x", "list", NULL);
  pb_list(&node, 1, inputs);
  pb_text(&node, 2, "y");
  pb_text(&node, 4, "F");
  pb_text(&node, 7, "own");
  pb_message(&g, 1, node);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_opset(&model, "own", 1);
  pb_text(&f, 1, "F");
  pb_list(&f, 4, "s,a,b");
  pb_text(&f, 5, "c");
  node = (pb_t){0};
  pb_text(&node, 1, "s");
  pb_text(&node, 2, "c");
  pb_text(&node, 4, "SequenceLength");
  pb_message(&f, 7, node);
  pb_int(&opset, 2, 13);
  pb_message(&f, 9, opset);
  pb_text(&f, 10, "own");
  pb_message(&model, 25, f);
  return model;
}

static void calls_functions_of_sequences(void** state) {
  (void)state;
  static const char* const inputs[] = {"list", "list,,x", "list,x",
                                       "list,list"};
  const pestle_import_options_t none = {0};
  const float x[2] = {0};
  for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); ++i) {
    int64_t y = 0;
    pb_t model = counting_model(inputs[i]);
    onnx_fail_each(&model, &none);
    onnx_run(&model, (const void*[]){x}, (void*[]){&y});
    assert_int_equal(y, 3);
  }
  pb_t model = counting_model("x");
  onnx_fails(model, MALFORMED, "its input 0 is no sequence");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_types_inside_each_other),
      cmocka_unit_test(counts_weights),
      cmocka_unit_test(tells_ranks_that_are_given),
      cmocka_unit_test(tells_outputs_beside_sequences),
      cmocka_unit_test(lists_defaults_that_are_sparse),
      cmocka_unit_test(compares_dtypes_of_defaults),
      cmocka_unit_test(compares_shapes_of_defaults),
      cmocka_unit_test(refuses_strings_that_are_no_list),
      cmocka_unit_test(refuses_sparse_tensors_of_many_axes),
      cmocka_unit_test(copies_large_tensors),
      cmocka_unit_test(names_dims_once),
      cmocka_unit_test(refuses_shapes_that_are_none),
      cmocka_unit_test(fills_a_shape_that_is_given),
      cmocka_unit_test(takes_constants_of_any_rank),
      cmocka_unit_test(counts_tensors_of_a_sequence),
      cmocka_unit_test(obeys_parts_of_control),
      cmocka_unit_test(asks_for_conditions_of_sequences),
      cmocka_unit_test(calls_functions_of_sequences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
