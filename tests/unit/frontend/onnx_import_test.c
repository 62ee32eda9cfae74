// SPDX-License-Identifier: Apache-2.0
// Whole models: names, order, shapes, subgraphs, folding, what is refused.
#include "frontend/onnx/proto.h"
#include "onnx_test.h"

static const int64_t two[] = {2}, two_three[] = {2, 3};

// y = Relu(x + w)
static pb_t small_graph(const char* dims) {
  pb_t g = {0};
  const float w[3] = {1, -2, 3};
  onnx_input(&g, "x", ONNX_FLOAT, dims);
  onnx_floats(&g, "w", 1, (const int64_t[]){3}, w);
  onnx_node(&g, "Add", "plus", "x,w", "s", NULL);
  onnx_node(&g, "Relu", "", "s", "y", NULL);
  onnx_output(&g, "y");
  return g;
}

static void runs_a_model(void** state) {
  (void)state;
  pb_t g = small_graph("2,3");
  pb_t model = onnx_model(13, &g);
  const float x[6] = {1, 1, -9, 0, 5, 0}, expected[6] = {2, 0, 0, 1, 3, 3};
  float y[6];
  onnx_run(&model, (const void*[]){x}, (void*[]){y});
  assert_memory_equal(y, expected, sizeof(y));
}

static void keeps_names_and_locations(void** state) {
  (void)state;
  pb_t g = small_graph("2,3");
  pb_t model = onnx_model(13, &g);
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(onnx_import(&t, &model));
  pestle_function_t* f = pestle_module_entry(t.module);
  assert_string_equal(f->argument_names[0], "x");
  assert_string_equal(f->result_names[0], "y");
  bool plus = false, relu = false;
  for (pestle_node_t* n = f->body->block->first; n; n = n->next) {
    plus |= n->op == PESTLE_OP_ADD && strcmp(n->loc.name, "plus") == 0;
    relu |= n->op == PESTLE_OP_MAXIMUM && strcmp(n->loc.name, "Relu_1") == 0;
  }
  assert_true(plus && relu);
  onnx_end(&t);
  pb_free(&model);
}

// --- Structure ---

static void sorts_nodes(void** state) {
  (void)state;
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_node(&g, "Neg", "last", "a", "y", NULL);
  onnx_node(&g, "Abs", "first", "x", "a", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  const float x[2] = {-1, 2}, expected[2] = {-1, -2};
  float y[2];
  onnx_run(&model, (const void*[]){x}, (void*[]){y});
  assert_memory_equal(y, expected, sizeof(y));
}

static void names_a_cycle(void** state) {
  (void)state;
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_node(&g, "Add", "one", "x,c", "a", NULL);
  onnx_node(&g, "Neg", "two", "a", "b", NULL);
  onnx_node(&g, "Abs", "three", "b", "c", NULL);
  onnx_output(&g, "c");
  pb_t model = onnx_model(13, &g);
  onnx_fails(model, MALFORMED, "'one' (Add), 'three' (Abs), 'two' (Neg)");
}

static void refuses_unknown_and_repeated_names(void** state) {
  (void)state;
  pb_t g = {0};
  onnx_node(&g, "Neg", "n", "nowhere", "y", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_fails(model, MALFORMED, "node 'n' (Neg, opset 13) reads 'nowhere'");

  g = (pb_t){0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_node(&g, "Neg", "n", "x", "y", NULL);
  onnx_node(&g, "Abs", "m", "x", "y", NULL);
  onnx_output(&g, "y");
  model = onnx_model(13, &g);
  onnx_fails(model, MALFORMED, "make 'y': node 0 'n' (Neg) and node 1 'm'");

  g = (pb_t){0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_output(&g, "z");
  model = onnx_model(13, &g);
  onnx_fails(model, MALFORMED, "output 'z'");
}

static void refuses_wrong_operands(void** state) {
  (void)state;
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_input(&g, "i", ONNX_INT64, "2");
  onnx_node(&g, "Add", "mixed", "x,i", "y", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_fails(model, MALFORMED, "node 'mixed' (Add, opset 13)");

  g = (pb_t){0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_input(&g, "z", ONNX_FLOAT, "3");
  onnx_node(&g, "Add", "clash", "x,z", "y", NULL);
  onnx_output(&g, "y");
  model = onnx_model(13, &g);
  onnx_fails(model, MALFORMED, "tensor<2xf32> and tensor<3xf32>");

  g = (pb_t){0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_node(&g, "Add", "lonely", "x", "y", NULL);
  onnx_output(&g, "y");
  model = onnx_model(13, &g);
  onnx_fails(model, MALFORMED, "has 1 inputs, it takes at least 2");

  g = (pb_t){0};
  pb_t attrs = {0};
  onnx_attr_text(&attrs, "perm", "01");
  onnx_input(&g, "x", ONNX_FLOAT, "2,3");
  onnx_node(&g, "Transpose", "t", "x", "y", &attrs);
  onnx_output(&g, "y");
  model = onnx_model(13, &g);
  onnx_fails(model, MALFORMED, "attribute 'perm' is a string");
}

static void lists_every_unsupported_op(void** state) {
  (void)state;
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_node(&g, "Frobnicate", "f1", "x", "a", NULL);
  onnx_node(&g, "Frobnicate", "f2", "a", "b", NULL);
  onnx_node(&g, "ImageDecoder", "nms", "b", "c", NULL);
  onnx_node(&g, "Gelu", "young", "c", "y", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_fails(model, UNSUPPORTED,
             "3 ops that Pestle cannot import: Frobnicate (opset 13; 2 nodes: "
             "'f1', 'f2'), ImageDecoder (opset 13; 1 node: 'nms'), Gelu "
             "(opset 13, supported 20 to ");
}

static void rejects_domains_on_use(void** state) {
  (void)state;
  pb_t g = small_graph("2,3");
  pb_t model = onnx_model(13, &g);
  onnx_opset(&model, "com.example", 1);
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(onnx_import(&t, &model));
  onnx_end(&t);
  pb_free(&model);
}

static void drops_initializers_from_inputs(void** state) {
  (void)state;
  pb_t g = {0};
  const float w[2] = {1, 2}, x[2] = {10, 20}, expected[2] = {11, 22};
  float y[2];
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_input(&g, "w", ONNX_FLOAT, "2");
  onnx_floats(&g, "w", 1, two, w);
  onnx_node(&g, "Add", "", "x,w", "y", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_run(&model, (const void*[]){x}, (void*[]){y});
  assert_memory_equal(y, expected, sizeof(y));
}

// --- Shapes ---

static void folds_shapes_away(void** state) {
  (void)state;
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "2,3,4");
  onnx_int_list(&g, "first", 1, (const int64_t[]){0});
  onnx_int_list(&g, "rest", 1, (const int64_t[]){-1});
  pb_t attrs = {0};
  onnx_attr_int(&attrs, "axis", 0);
  onnx_node(&g, "Shape", "", "x", "shape", NULL);
  onnx_node(&g, "Gather", "", "shape,first", "n", NULL);
  onnx_node(&g, "Concat", "", "n,rest", "target", &attrs);
  onnx_node(&g, "Reshape", "", "x,target", "y", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(onnx_import(&t, &model));
  assert_int_equal(onnx_count(t.module, PESTLE_OP_RESHAPE), 1);
  assert_int_equal(onnx_count(t.module, PESTLE_OP_CONSTANT), 0);
  assert_int_equal(onnx_count(t.module, PESTLE_OP_CONCATENATE), 0);
  onnx_end(&t);
  pb_free(&model);
}

static pestle_type_t argument_type(onnx_test_t* t) {
  return pestle_value_type(
      pestle_function_argument(pestle_module_entry(t->module), 0));
}

static void specializes_symbolic_dims(void** state) {
  (void)state;
  pb_t g = small_graph("batch,3");
  pb_t model = onnx_model(13, &g);
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(onnx_import(&t, &model));
  assert_true(argument_type(&t).dims[0] == PESTLE_DIM_DYNAMIC);
  pestle_type_t type = pestle_type_make(PESTLE_F32, 2, two_three);
  pestle_module_t* fixed;
  assert_ok(pestle_module_specialize(t.module, &type, 1, &fixed));
  assert_ok(pestle_module_verify(fixed));
  pestle_module_release(t.module);
  t.module = fixed;
  assert_true(argument_type(&t).dims[0] == 2);
  type.dims[1] = 4;
  assert_error(pestle_module_specialize(fixed, &type, 1, &fixed),
               INVALID_ARGUMENT, "");
  onnx_end(&t);
  pb_free(&model);
}

static void binds_dims_and_shapes(void** state) {
  (void)state;
  pb_t g = small_graph("batch,?");
  pb_t model = onnx_model(13, &g);
  onnx_test_t t;
  onnx_begin(&t);
  const pestle_shape_binding_t shape = {"x", 2, two_three};
  t.options.shapes = &shape;
  t.options.shape_count = 1;
  assert_ok(onnx_import(&t, &model));
  assert_true(argument_type(&t).dims[1] == 3);
  pestle_module_release(t.module);
  t.module = NULL;
  const pestle_dim_binding_t dims[2] = {{"batch", 5}, {"typo", 1}};
  t.options.shape_count = 0;
  t.options.dims = dims;
  t.options.dim_count = 1;
  assert_ok(onnx_import(&t, &model));
  assert_true(argument_type(&t).dims[0] == 5);
  pestle_module_release(t.module);
  t.module = NULL;
  t.options.dim_count = 2;
  assert_error(onnx_import(&t, &model), NOT_FOUND, "'typo'");
  onnx_end(&t);
  pb_free(&model);
}

static void refuses_wrong_shapes(void** state) {
  (void)state;
  pb_t g = small_graph("batch,3");
  pb_t model = onnx_model(13, &g);
  onnx_test_t t;
  onnx_begin(&t);
  const pestle_shape_binding_t shape = {"x", 2, (const int64_t[]){2, 4}};
  const pestle_shape_binding_t nobody = {"z", 2, two_three};
  t.options.shapes = &shape;
  t.options.shape_count = 1;
  assert_error(onnx_import(&t, &model), INVALID_ARGUMENT,
               "'x' is given the shape 2x4, the model says ?x3");
  t.options.shapes = &nobody;
  assert_error(onnx_import(&t, &model), NOT_FOUND, "'z'");
  onnx_end(&t);
  pb_free(&model);
}

static void makes_inputs_constant(void** state) {
  (void)state;
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "2,3");
  onnx_input(&g, "shape", ONNX_INT64, "1");
  onnx_node(&g, "Reshape", "flat", "x,shape", "y", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(onnx_import(&t, &model));
  assert_int_equal(pestle_module_value_argument_count(t.module), 1);
  assert_int_equal(pestle_module_value_argument(t.module, 0), 1);
  pestle_module_release(t.module);
  t.module = NULL;
  int64_t six = 6, extent = 1, count = 1;
  pestle_tensor_t value = {.data = &six,
                           .device = {PESTLE_DEVICE_CPU, 0},
                           .ndim = 1,
                           .dtype = pestle_dtype_to_dlpack(PESTLE_I64),
                           .shape = &extent};
  const pestle_const_binding_t binding = {"shape", &value};
  t.options.consts = &binding;
  t.options.const_count = 1;
  assert_ok(onnx_import(&t, &model));
  count =
      (int64_t)pestle_function_argument_count(pestle_module_entry(t.module));
  assert_int_equal(count, 1);
  onnx_end(&t);
  pb_free(&model);
}

// --- Values that decide shapes ---

static pestle_tensor_t host_view(void* data, pestle_dtype_t dtype, int32_t rank,
                                 int64_t* dims) {
  return (pestle_tensor_t){.data = data,
                           .device = {PESTLE_DEVICE_CPU, 0},
                           .ndim = rank,
                           .dtype = pestle_dtype_to_dlpack(dtype),
                           .shape = dims};
}

// y = reshape(pad(x, [before, after]), shape), |before| being what node "n"
// computes from "p", and z = x + q, for whose sake q stays an argument.
static pb_t value_model(const char* x_dims) {
  pb_t g = {0}, axis = {0};
  onnx_input(&g, "p", ONNX_INT64, "1");
  onnx_input(&g, "x", ONNX_FLOAT, x_dims);
  onnx_input(&g, "q", ONNX_FLOAT, "1");
  onnx_input(&g, "shape", ONNX_INT64, "2");
  onnx_node(&g, "Neg", "n", "p", "minus", NULL);
  onnx_node(&g, "Abs", "a", "minus", "before", NULL);
  onnx_attr_int(&axis, "axis", 0);
  onnx_node(&g, "Concat", "c", "before,p", "pads", &axis);
  onnx_node(&g, "Pad", "pad", "x,pads", "padded", NULL);
  onnx_node(&g, "Reshape", "r", "padded,shape", "y", NULL);
  onnx_node(&g, "Add", "add", "x,q", "z", NULL);
  onnx_output(&g, "y");
  onnx_output(&g, "z");
  return onnx_model(13, &g);
}

static void specialises_by_value(void** state) {
  (void)state;
  pb_t model = value_model("n");
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(onnx_import(&t, &model));
  pb_free(&model);
  assert_int_equal(pestle_module_value_argument_count(t.module), 2);
  assert_int_equal(pestle_module_value_argument(t.module, 0), 0);
  assert_int_equal(pestle_module_value_argument(t.module, 1), 3);
  assert_true(pestle_module_value_argument(t.module, 2) == SIZE_MAX);
  int64_t p = 1, shape[2] = {2, 3}, one = 1, pair = 2, four = 4;
  float x[4] = {1, 2, 3, 4}, q = 10, y[6], z[4];
  pestle_tensor_t inputs[4] = {host_view(&p, PESTLE_I64, 1, &one),
                               host_view(x, PESTLE_F32, 1, &four),
                               host_view(&q, PESTLE_F32, 1, &one),
                               host_view(shape, PESTLE_I64, 1, &pair)};
  pestle_module_t *made, *other;
  assert_ok(pestle_module_specialize_values(t.module, inputs, 4, &made));
  pestle_function_t* f = pestle_module_entry(made);
  assert_int_equal(pestle_module_value_argument_count(made), 0);
  assert_int_equal(pestle_function_argument_count(f), 2);
  assert_string_equal(pestle_function_argument_name(f, 0), "x");
  assert_string_equal(pestle_function_argument_name(f, 1), "q");
  assert_ok(pestle_ref_evaluate_function(pestle_test_allocator(&t.memory), f,
                                         (const void*[]){x, &q},
                                         (void*[]){y, z}));
  for (int i = 0; i < 6; ++i)
    assert_true(y[i] == (i >= 1 && i < 5 ? (float)i : 0));
  for (int i = 0; i < 4; ++i)
    assert_true(z[i] == x[i] + 10);
  // Another value is another module with another signature; one of the same
  // value has the same, for which the place of the elements does not matter.
  uint64_t a[2], b[2], c[2];
  assert_ok(pestle_module_signature(made, a));
  pestle_module_release(made);
  int64_t turned[4] = {3, 0, 2, 0}, back = -2;
  inputs[3].data = &turned[2];
  inputs[3].strides = &back;
  assert_ok(pestle_module_specialize_values(t.module, inputs, 4, &made));
  assert_ok(pestle_module_signature(made, b));
  shape[0] = 3;
  shape[1] = 2;
  inputs[3] = host_view(shape, PESTLE_I64, 1, &pair);
  assert_ok(pestle_module_specialize_values(t.module, inputs, 4, &other));
  assert_ok(pestle_module_signature(other, c));
  assert_memory_equal(a, b, sizeof(a));
  assert_memory_not_equal(a, c, sizeof(a));
  pestle_module_release(other);
  pestle_module_release(made);
  // Only what decides shapes has to be there.
  inputs[1].data = inputs[2].data = NULL;
  assert_ok(pestle_module_specialize_values(t.module, inputs, 4, &made));
  pestle_module_release(made);
  onnx_end(&t);
}

// Whoever wants a body is told of all the values that are missing, at once.
static void lists_missing_values(void** state) {
  (void)state;
  pb_t model = value_model("4");
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(onnx_import(&t, &model));
  pb_free(&model);
  static const char all[] =
      "'p' (tensor<1xi64>), 'shape' (tensor<2xi64>); give";
  assert_error(pestle_module_check_values(t.module), INVALID_ARGUMENT, all);
  pestle_function_t* f = pestle_module_entry(t.module);
  pestle_type_t types[4];
  pestle_tensor_t inputs[4];
  for (size_t i = 0; i < 4; ++i) {
    types[i] = pestle_value_type(pestle_function_argument(f, i));
    inputs[i] = host_view(NULL, types[i].dtype, types[i].rank, types[i].dims);
  }
  pestle_module_t* made;
  assert_error(pestle_module_specialize(t.module, types, 4, &made),
               INVALID_ARGUMENT, all);
  assert_null(made);
  int64_t p = 1;
  inputs[0].data = &p;
  assert_error(pestle_module_specialize_values(t.module, inputs, 4, &made),
               INVALID_ARGUMENT, ": 'shape' (tensor<2xi64>); give");
  inputs[0].ndim = 0;
  assert_error(pestle_module_specialize_values(t.module, inputs, 4, &made),
               INVALID_ARGUMENT, "'p'");
  pestle_module_t* copy;
  assert_ok(pestle_module_clone(t.module, &copy));
  assert_int_equal(pestle_module_value_argument_count(copy), 2);
  pestle_module_release(copy);
  onnx_end(&t);
}

// What is too long for a list of extents is data, not a value.
static void refuses_long_values(void** state) {
  (void)state;
  for (int over = 0; over < 2; ++over) {
    pb_t g = {0};
    char dims[16];
    snprintf(dims, sizeof(dims), "%d", PESTLE_VALUE_ARGUMENT_MAX + over);
    onnx_input(&g, "x", ONNX_INT64, dims);
    onnx_node(&g, "ReduceMax", "m", "x", "top", NULL);
    onnx_node(&g, "ConstantOfShape", "c", "top", "y", NULL);
    onnx_output(&g, "y");
    pb_t model = onnx_model(13, &g);
    if (over) {
      onnx_fails(model, UNSUPPORTED, "at most 1024 elements");
      continue;
    }
    onnx_test_t t;
    onnx_begin(&t);
    assert_ok(onnx_import(&t, &model));
    assert_int_equal(pestle_module_value_argument_count(t.module), 1);
    onnx_end(&t);
    pb_free(&model);
  }
}

// A branch or a number of trips that an argument decides, where no name says so.
static void needs_values_of_conditions(void** state) {
  (void)state;
  pb_t g = {0}, attrs = {0};
  const char* inputs[] = {"one", "two"};
  const char* names[] = {"then_branch", "else_branch"};
  onnx_input(&g, "c", ONNX_BOOL, "");
  onnx_input(&g, "one", ONNX_FLOAT, "1");
  onnx_input(&g, "two", ONNX_FLOAT, "2,1");
  for (int i = 0; i < 2; ++i) {
    pb_t branch = {0};
    onnx_node(&branch, "Neg", "", inputs[i], "out", NULL);
    onnx_output(&branch, "out");
    onnx_attr_message(&attrs, names[i], 5, 6, branch);
  }
  onnx_node(&g, "If", "choice", "c", "y", &attrs);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(onnx_import(&t, &model));
  pb_free(&model);
  assert_int_equal(pestle_module_value_argument_count(t.module), 1);
  assert_int_equal(pestle_module_value_argument(t.module, 0), 0);
  bool no = false;
  int64_t one = 1, pair[] = {2, 1};
  pestle_tensor_t views[] = {host_view(&no, PESTLE_I1, 0, NULL),
                             host_view(NULL, PESTLE_F32, 1, &one),
                             host_view(NULL, PESTLE_F32, 2, pair)};
  pestle_module_t* made;
  assert_ok(pestle_module_specialize_values(t.module, views, 3, &made));
  assert_int_equal(onnx_count(made, PESTLE_OP_IF), 0);
  pestle_module_release(made);
  onnx_end(&t);
}

// --- Sequences ---

// [x, x + x] with what node |op| makes of "s", a sequence of both.
static pb_t sequence_model(const char* op, const char* inputs, pb_t* attrs) {
  pb_t g = {0};
  const int64_t places[] = {0, 1, 2, -1, -3};
  const char* names[] = {"p0", "p1", "p2", "last", "before"};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  for (int i = 0; i < 5; ++i)
    onnx_int_list(&g, names[i], 1, &places[i]);
  onnx_node(&g, "Add", "add", "x,x", "twice", NULL);
  onnx_node(&g, "SequenceConstruct", "make", "x,twice", "s", NULL);
  onnx_node(&g, "SequenceInsert", "in", "s,x,p1", "s3", NULL);  // x, x, twice
  onnx_node(&g, op, "op", inputs, "y", attrs);
  onnx_output(&g, "y");
  return onnx_model(13, &g);
}

static void knows_sequences(void** state) {
  (void)state;
  const float x[2] = {1, 2};
  float y[2];
  static const struct {
    const char* inputs;
    float factor;
  } rows[] = {{"s,p0", 1},  {"s,p1", 2},  {"s,last", 2},
              {"s3,p1", 1}, {"s3,p2", 2}, {"s3,before", 1}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    pb_t model = sequence_model("SequenceAt", rows[i].inputs, NULL);
    onnx_run(&model, (const void*[]){x}, (void*[]){y});
    assert_float_equal(y[1], 2 * rows[i].factor, 0);
  }
  int64_t length;
  pb_t model = sequence_model("SequenceLength", "s3", NULL);
  onnx_run(&model, (const void*[]){x}, (void*[]){&length});
  assert_int_equal(length, 3);
}

static void refuses_sequences_elsewhere(void** state) {
  (void)state;
  pb_t attrs = {0};
  pb_t model = sequence_model("SequenceAt", "s,p2", NULL);
  onnx_fails(model, MALFORMED, "outside of a sequence of 2");
  model = sequence_model("SequenceInsert", "s,s", NULL);
  onnx_fails(model, MALFORMED, "its input 1 is no tensor");
  model = sequence_model("Neg", "s", NULL);
  onnx_fails(model, UNSUPPORTED, "'s', is a sequence");
  model = sequence_model("SequenceAt", "x,p0", NULL);
  onnx_fails(model, MALFORMED, "is no sequence");
  onnx_attr_int(&attrs, "axis", 3);
  model = sequence_model("ConcatFromSequence", "s3", &attrs);
  onnx_fails(model, MALFORMED, "axis 3 is outside");
  const int64_t three = 3;
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "4");
  onnx_int_list(&g, "three", 1, &three);
  onnx_node(&g, "SplitToSequence", "cut", "x,three", "s", NULL);
  onnx_node(&g, "SequenceLength", "n", "s", "y", NULL);
  onnx_output(&g, "y");
  model = onnx_model(13, &g);
  onnx_fails(model, MALFORMED, "do not make up the 4 elements of axis 0");
}

// A lone number takes the input's dtype and rank.
static void converts_a_lone_number(void** state) {
  (void)state;
  pb_t g = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_input(&g, "k", ONNX_INT32, "1");
  onnx_node(&g, "Unsqueeze", "", "x,k", "y", NULL);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_test_t t;
  onnx_begin(&t);
  int64_t number = 1;
  pestle_tensor_t value = {.data = &number,
                           .device = {PESTLE_DEVICE_CPU, 0},
                           .dtype = pestle_dtype_to_dlpack(PESTLE_I64)};
  const pestle_const_binding_t binding = {"k", &value};
  t.options.consts = &binding;
  t.options.const_count = 1;
  assert_ok(onnx_import(&t, &model));
  pestle_module_release(t.module);
  t.module = NULL;
  number = (int64_t)1 << 40;
  assert_error(onnx_import(&t, &model), INVALID_ARGUMENT, "is of i64");
  onnx_end(&t);
  pb_free(&model);
}

// A deadline that has passed and a raised flag end an import.
// A function of domain d: b = op(a, a), or what calls itself |callee|.
static pb_t onnx_function_of(const char* name, const char* op,
                             const char* domain) {
  pb_t f = {0}, node = {0}, import = {0};
  pb_text(&node, 1, "a");
  if (!domain) pb_text(&node, 1, "a");
  pb_text(&node, 2, "b");
  pb_text(&node, 4, op);
  if (domain) pb_text(&node, 7, domain);
  pb_text(&f, 1, name);
  pb_text(&f, 4, "a");
  pb_text(&f, 5, "b");
  pb_message(&f, 7, node);
  pb_text(&import, 1, domain ? domain : "");
  pb_int(&import, 2, domain ? 1 : 13);
  pb_message(&f, 9, import);
  pb_text(&f, 10, "d");
  return f;
}

static pb_t model_calling(const char* callee) {
  pb_t g = {0}, node = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  pb_text(&node, 1, "x");
  pb_text(&node, 2, "y");
  pb_text(&node, 4, callee);
  pb_text(&node, 7, "d");
  pb_message(&g, 1, node);
  onnx_output(&g, "y");
  pb_t model = onnx_model(13, &g);
  onnx_opset(&model, "d", 1);
  return model;
}

static void finds_functions(void** state) {
  (void)state;
  const float x[2] = {3, 4};
  float y[2];
  pb_t model = model_calling("Square");
  pb_message(&model, 25, onnx_function_of("Double", "Add", NULL));
  pb_message(&model, 25, onnx_function_of("Square", "Mul", NULL));
  pb_message(&model, 25, onnx_function_of("Another", "Sub", NULL));
  onnx_run(&model, (const void*[]){x}, (void*[]){y});
  assert_memory_equal(y, ((const float[2]){9, 16}), sizeof(y));
}

static void refuses_functions_of_one_name(void** state) {
  (void)state;
  pb_t model = model_calling("F");
  pb_message(&model, 25, onnx_function_of("F", "Add", NULL));
  pb_message(&model, 25, onnx_function_of("F", "Mul", NULL));
  onnx_fails(model, MALFORMED, "two functions 'F' of domain 'd'");
}

// Very many, each of which calls the next.
static void refuses_deep_functions(void** state) {
  (void)state;
  char name[16], next[16];
  pb_t model = model_calling("f0");
  for (int i = 0; i < 20000; ++i) {
    snprintf(name, sizeof(name), "f%d", i);
    snprintf(next, sizeof(next), "f%d", i + 1);
    pb_message(&model, 25, onnx_function_of(name, next, "d"));
  }
  pb_message(&model, 25, onnx_function_of("f20000", "Add", NULL));
  onnx_fails(model, MALFORMED, "more than 64 deep");
}

static void obeys_control(void** state) {
  (void)state;
  pb_t g = small_graph("2,3");
  pb_t model = onnx_model(13, &g);
  onnx_test_t t;
  onnx_begin(&t);
  volatile int32_t cancel = 1;
  pestle_control_t control = {.struct_size = sizeof(control),
                              .cancel = &cancel};
  t.options.control = &control;
  assert_code(onnx_import(&t, &model), CANCELLED);
  cancel = 0;
  control.deadline_ns = 1;
  assert_code(onnx_import(&t, &model), DEADLINE_EXCEEDED);
  onnx_end(&t);
  pb_free(&model);
}

// --- Subgraphs ---

// then: x + w (captured); else: -x.
static pb_t if_graph(void) {
  pb_t g = {0}, then_graph = {0}, else_graph = {0}, attrs = {0};
  const float w[2] = {1, 2};
  onnx_node(&then_graph, "Add", "then_add", "x,w", "then_y", NULL);
  onnx_output(&then_graph, "then_y");
  onnx_node(&else_graph, "Neg", "else_neg", "x", "else_y", NULL);
  onnx_output(&else_graph, "else_y");
  onnx_attr_message(&attrs, "then_branch", 5, 6, then_graph);
  onnx_attr_message(&attrs, "else_branch", 5, 6, else_graph);
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_floats(&g, "w", 1, two, w);
  onnx_node(&g, "If", "choice", "c", "y", &attrs);
  onnx_output(&g, "y");
  return g;
}

static void keeps_an_if(void** state) {
  (void)state;
  for (int taken = 0; taken < 2; ++taken) {
    pb_t g = if_graph();
    onnx_input(&g, "c", ONNX_BOOL, "");
    pb_t model = onnx_model(13, &g);
    const float x[2] = {10, 20}, expected[2][2] = {{-10, -20}, {11, 22}};
    uint8_t condition = (uint8_t)taken;
    float y[2];
    onnx_run(&model, (const void*[]){x, &condition}, (void*[]){y});
    assert_memory_equal(y, expected[taken], sizeof(y));
  }
}

static void folds_a_constant_if(void** state) {
  (void)state;
  pb_t g = if_graph();
  const uint8_t yes = 1;
  pb_message(&g, 5, onnx_tensor("c", ONNX_BOOL, 0, NULL, &yes, 1));
  pb_t model = onnx_model(13, &g);
  onnx_test_t t;
  onnx_begin(&t);
  assert_ok(onnx_import(&t, &model));
  assert_int_equal(onnx_count(t.module, PESTLE_OP_IF), 0);
  assert_int_equal(onnx_count(t.module, PESTLE_OP_ADD), 1);
  assert_int_equal(onnx_count(t.module, PESTLE_OP_NEGATE), 0);
  onnx_end(&t);
  pb_free(&model);
}

static void bounds_the_nesting(void** state) {
  (void)state;
  pb_t inner = {0};
  onnx_node(&inner, "Neg", "n", "x", "y", NULL);
  onnx_output(&inner, "y");
  for (int i = 0; i < PESTLE_PROTO_MAX_DEPTH + 2; ++i) {
    pb_t outer = {0}, attrs = {0};
    onnx_attr_message(&attrs, "then_branch", 5, 6, inner);
    onnx_node(&outer, "If", "if", "c", "y", &attrs);
    onnx_output(&outer, "y");
    inner = outer;
  }
  pb_t model = onnx_model(13, &inner);
  onnx_fails(model, MALFORMED, "nested");
}

static void refuses_what_is_no_model(void** state) {
  (void)state;
  pb_t empty = {0};
  onnx_fails(empty, MALFORMED, "empty");
  pb_t text = {0};
  pb_raw(&text, "hello, world", 12);
  onnx_fails(text, MALFORMED, "byte");
  pb_t no_graph = {0};
  pb_int(&no_graph, 1, 8);
  onnx_fails(no_graph, MALFORMED, "0 graphs");
  // A number where the op's name is.
  pb_t g = {0}, node = {0};
  pb_list(&node, 2, "y");
  pb_int(&node, 4, 7);
  pb_message(&g, 1, node);
  onnx_output(&g, "y");
  pb_t number = onnx_model(13, &g);
  onnx_fails(number, MALFORMED, "field 4 before byte");
}

// Every allocation of an import may fail.
static void survives_failing_memory(void** state) {
  (void)state;
  pb_t g = if_graph();
  onnx_input(&g, "c", ONNX_BOOL, "");
  onnx_int_list(&g, "axes", 1, (const int64_t[]){0});
  onnx_node(&g, "Shape", "", "x", "shape", NULL);
  onnx_node(&g, "Unsqueeze", "", "shape,axes", "z", NULL);
  onnx_output(&g, "z");
  pb_t model = onnx_model(13, &g);
  bool failed = true;
  for (size_t k = 1; failed; ++k) {
    onnx_test_t t;
    onnx_begin(&t);
    size_t before = atomic_load(&t.memory.request_count);
    atomic_store(&t.memory.fail_at, before + k);
    pestle_status_t status = onnx_import(&t, &model);
    failed = pestle_test_allocator_failed(&t.memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
    onnx_end(&t);
  }
  pb_free(&model);
}

// An import that stops, a module that asks for a value, and one that is made
// with it, of sequences and of extents that only a run tells.
static pestle_status_t import_with_values(onnx_test_t* t, const pb_t* model) {
  PESTLE_TRY(onnx_import(t, model));
  int64_t times = 2, one = 1, pair = 2;
  pestle_tensor_t views[] = {host_view(NULL, PESTLE_F32, 1, &pair),
                             host_view(&times, PESTLE_I64, 1, &one)};
  pestle_module_t* made;
  PESTLE_TRY(pestle_module_specialize_values(t->module, views, 2, &made));
  pestle_module_t* copy;
  pestle_status_t status = pestle_module_clone(made, &copy);
  pestle_module_release(made);
  if (!status) pestle_module_release(copy);
  return status;
}

static void survives_failing_memory_with_values(void** state) {
  (void)state;
  pb_t g = {0}, axis = {0};
  onnx_input(&g, "x", ONNX_FLOAT, "2");
  onnx_input(&g, "times", ONNX_INT64, "1");
  onnx_node(&g, "Tile", "", "x,times", "four", NULL);
  onnx_node(&g, "SequenceConstruct", "", "four,x", "list", NULL);
  onnx_node(&g, "SequenceErase", "", "list", "rest", NULL);
  onnx_attr_int(&axis, "axis", 0);
  onnx_node(&g, "ConcatFromSequence", "", "rest", "again", &axis);
  onnx_node(&g, "Unique", "", "again", "y,first", NULL);
  onnx_node(&g, "ReduceMax", "", "y", "top", NULL);
  onnx_output(&g, "y");
  onnx_output(&g, "top");
  pb_t model = onnx_model(11, &g);
  bool failed = true;
  for (size_t k = 1; failed; ++k) {
    onnx_test_t t;
    onnx_begin(&t);
    size_t before = atomic_load(&t.memory.request_count);
    atomic_store(&t.memory.fail_at, before + k);
    pestle_status_t status = import_with_values(&t, &model);
    failed = pestle_test_allocator_failed(&t.memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
    onnx_end(&t);
  }
  pb_free(&model);
}

// --- Where runtimes differ: docs/onnx.md ---

static void check_pad(const char* mode, int64_t low, int64_t high, size_t count,
                      const float* expected) {
  static const float x[5] = {1, 2, 3, 4, 5};
  float y[16] = {0};
  pb_t graph = {0}, attrs = {0};
  onnx_input(&graph, "x", ONNX_FLOAT, "5");
  onnx_int_list(&graph, "pads", 2, (int64_t[]){low, high});
  onnx_attr_text(&attrs, "mode", mode);
  onnx_node(&graph, "Pad", "pad", "x,pads", "y", &attrs);
  onnx_output(&graph, "y");
  pb_t model = onnx_model(19, &graph);
  onnx_run(&model, (const void*[]){x}, (void*[]){y});
  for (size_t i = 0; i < count; ++i)
    assert_float_equal(y[i], expected[i], 0);
  assert_float_equal(y[count], 0, 0);
}
#define PAD(mode, low, high, ...)                                            \
  check_pad(mode, low, high, sizeof((float[]){__VA_ARGS__}) / sizeof(float), \
            (float[]){__VA_ARGS__})

// Negative pads crop first; the mode repeats what is left.
static void test_negative_pads(void** state) {
  (void)state;
  PAD("wrap", 2, 2, 4, 5, 1, 2, 3, 4, 5, 1, 2);
  PAD("wrap", -1, 2, 2, 3, 4, 5, 2, 3);
  PAD("wrap", 2, -1, 3, 4, 1, 2, 3, 4);
  PAD("wrap", -3, 4, 4, 5, 4, 5, 4, 5);
  PAD("wrap", -1, -1, 2, 3, 4);
  PAD("reflect", -1, 2, 2, 3, 4, 5, 4, 3);
  PAD("reflect", 2, -1, 3, 2, 1, 2, 3, 4);
  PAD("reflect", -3, 4, 4, 5, 4, 5, 4, 5);
  PAD("edge", -1, 2, 2, 3, 4, 5, 5, 5);
  PAD("edge", 2, -1, 1, 1, 1, 2, 3, 4);
  PAD("constant", 2, -1, 0, 0, 1, 2, 3, 4);
  pb_t graph = {0}, attrs = {0};
  onnx_input(&graph, "x", ONNX_FLOAT, "5");
  onnx_int_list(&graph, "pads", 2, (int64_t[]){-3, -3});
  onnx_attr_text(&attrs, "mode", "wrap");
  onnx_node(&graph, "Pad", "pad", "x,pads", "y", &attrs);
  onnx_output(&graph, "y");
  pb_t model = onnx_model(19, &graph);
  onnx_fails(model, MALFORMED, "take more than the 5 elements of axis 0 away");
}

static void check_average(const char* auto_pad, int64_t stride, bool include,
                          size_t count, const float* expected) {
  static const float x[7] = {1, 2, 3, 4, 5, 6, 7};
  float y[8] = {0};
  pb_t graph = {0}, attrs = {0};
  onnx_input(&graph, "x", ONNX_FLOAT, "1,1,7");
  onnx_attr_ints(&attrs, "kernel_shape", 1, (int64_t[]){3});
  onnx_attr_ints(&attrs, "dilations", 1, (int64_t[]){2});
  onnx_attr_ints(&attrs, "strides", 1, (int64_t[]){stride});
  onnx_attr_text(&attrs, "auto_pad", auto_pad);
  onnx_attr_int(&attrs, "count_include_pad", include);
  onnx_node(&graph, "AveragePool", "pool", "x", "y", &attrs);
  onnx_output(&graph, "y");
  pb_t model = onnx_model(19, &graph);
  onnx_run(&model, (const void*[]){x}, (void*[]){y});
  // One rounding of a quotient.
  for (size_t i = 0; i < count; ++i)
    assert_float_equal(y[i], expected[i], 1e-6);
  assert_float_equal(y[count], 0, 0);
}
#define AVERAGE(pad, stride, include, ...)                      \
  check_average(pad, stride, include,                           \
                sizeof((float[]){__VA_ARGS__}) / sizeof(float), \
                (float[]){__VA_ARGS__})

// ceil(extent / stride) windows over as much padding as the dilated kernel
// needs, as the text of the op says.
static void test_dilated_average_with_same_padding(void** state) {
  (void)state;
  AVERAGE("SAME_UPPER", 1, false, 2, 3, 3, 4, 5, 5, 6);
  AVERAGE("SAME_UPPER", 1, true, 4.f / 3, 2, 3, 4, 5, 10.f / 3, 4);
  AVERAGE("SAME_UPPER", 2, false, 2, 3, 5, 6);
  AVERAGE("SAME_LOWER", 2, true, 4.f / 3, 3, 5, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_negative_pads),
      cmocka_unit_test(test_dilated_average_with_same_padding),
      cmocka_unit_test(runs_a_model),
      cmocka_unit_test(keeps_names_and_locations),
      cmocka_unit_test(sorts_nodes),
      cmocka_unit_test(names_a_cycle),
      cmocka_unit_test(refuses_unknown_and_repeated_names),
      cmocka_unit_test(refuses_wrong_operands),
      cmocka_unit_test(lists_every_unsupported_op),
      cmocka_unit_test(rejects_domains_on_use),
      cmocka_unit_test(drops_initializers_from_inputs),
      cmocka_unit_test(folds_shapes_away),
      cmocka_unit_test(specializes_symbolic_dims),
      cmocka_unit_test(binds_dims_and_shapes),
      cmocka_unit_test(refuses_wrong_shapes),
      cmocka_unit_test(makes_inputs_constant),
      cmocka_unit_test(specialises_by_value),
      cmocka_unit_test(lists_missing_values),
      cmocka_unit_test(refuses_long_values),
      cmocka_unit_test(needs_values_of_conditions),
      cmocka_unit_test(knows_sequences),
      cmocka_unit_test(refuses_sequences_elsewhere),
      cmocka_unit_test(converts_a_lone_number),
      cmocka_unit_test(finds_functions),
      cmocka_unit_test(refuses_functions_of_one_name),
      cmocka_unit_test(refuses_deep_functions),
      cmocka_unit_test(obeys_control),
      cmocka_unit_test(keeps_an_if),
      cmocka_unit_test(folds_a_constant_if),
      cmocka_unit_test(bounds_the_nesting),
      cmocka_unit_test(refuses_what_is_no_model),
      cmocka_unit_test(survives_failing_memory),
      cmocka_unit_test(survives_failing_memory_with_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
