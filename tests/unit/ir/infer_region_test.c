// SPDX-License-Identifier: Apache-2.0
// The type rules of ops with regions, of calls and of composites.
#include "ir_test.h"

#define GOOD(call, ...)          \
  do {                           \
    assert_ok(call);             \
    assert_type(y, __VA_ARGS__); \
  } while (0)
#define BAD(call, text) assert_error(call, INVALID_ARGUMENT, text)

// A region that takes |count| |types| and returns the values of the arguments
// whose numbers are in |returned|.
static pestle_region_t* passing(ir_test_t* t, const pestle_type_t* types,
                                size_t count, pestle_i64s_t returned) {
  pestle_region_t* region;
  pestle_builder_t b = {.module = t->module};
  pestle_value_t* values[8] = {NULL};
  assert_ok(pestle_region_create(t->module, types, count, &region, &b.block));
  for (size_t i = 0; i < returned.count; ++i) {
    values[i] = pestle_block_argument(b.block, (size_t)returned.data[i]);
  }
  assert_ok(pestle_op_return(&b, values, returned.count, NULL));
  return region;
}

#define NONE ((pestle_i64s_t){0})

// A region that takes nothing and returns |value|, or nothing for NULL.
static pestle_region_t* yielding(ir_test_t* t, pestle_value_t* value) {
  pestle_region_t* region;
  pestle_builder_t b = {.module = t->module};
  assert_ok(pestle_region_create(t->module, NULL, 0, &region, &b.block));
  assert_ok(pestle_op_return(&b, &value, value ? 1 : 0, NULL));
  return region;
}

// A region without a return.
static pestle_region_t* unfinished(ir_test_t* t, const pestle_type_t* types,
                                   size_t count) {
  pestle_region_t* region;
  pestle_block_t* block;
  assert_ok(pestle_region_create(t->module, types, count, &region, &block));
  return region;
}

static pestle_region_t* add_body(ir_test_t* t) {
  return ir_test_reducer(t, PESTLE_OP_ADD, T0(F32));
}

// --- Reductions ---

static void reduces(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 2, 3, DYN), T0(F32), T0(F16), T(F32, 1), T(F32, 2, 4, 5));
  pestle_value_t** a = t.a;
#define REDUCE(dims, body, ...)                                  \
  pestle_op_reduce(&t.b, (pestle_value_t*[]){__VA_ARGS__},       \
                   sizeof((pestle_value_t*[]){__VA_ARGS__}) / 8, \
                   ATTRS(reduce, .dimensions = dims), body, &y, 1)
  GOOD(REDUCE(I64S(1), add_body(&t), a[0], a[1]), T(F32, 2, DYN));
  GOOD(REDUCE(I64S(2, 0, 1), add_body(&t), a[0], a[1]), T0(F32));
  GOOD(REDUCE({0}, add_body(&t), a[0], a[1]), T(F32, 2, 3, DYN));
  BAD(REDUCE(I64S(3), add_body(&t), a[0], a[1]), "names axis 3");
  BAD(REDUCE(I64S(1, 1), add_body(&t), a[0], a[1]), "twice");
  BAD(REDUCE(I64S(1), add_body(&t), a[0]), "an initial value for each input");
  BAD(REDUCE(I64S(1), add_body(&t), a[0], a[2]), "element types");
  BAD(REDUCE(I64S(1), add_body(&t), a[0], a[3]), "rank must be 0");
  BAD(REDUCE(I64S(1), add_body(&t), a[0], a[4], a[1], a[1]), "shapes must be");
  BAD(REDUCE(I64S(1), yielding(&t, a[1]), a[0], a[1]),
      "region 0 takes 0 arguments, not 2");
  pestle_type_t f32s[] = {T0(F32), T0(F32)}, mixed[] = {T0(F32), T0(F16)};
  BAD(REDUCE(I64S(1), unfinished(&t, f32s, 2), a[0], a[1]),
      "region 0 does not end with a return");
  BAD(REDUCE(I64S(1), passing(&t, f32s, 2, NONE), a[0], a[1]),
      "region 0 returns 0 values for 1 inputs");
  BAD(REDUCE(I64S(1), passing(&t, mixed, 2, I64S(0)), a[0], a[1]),
      "argument 1 of region 0 is tensor<f16>, not tensor<f32>");
  BAD(REDUCE(I64S(1), ir_test_reducer(&t, PESTLE_OP_LT, T0(F32)), a[0], a[1]),
      "result 0 of region 0 is tensor<i1>, not tensor<f32>");
  BAD(pestle_op_reduce(&t.b, a, 0, ATTRS(reduce, .dimensions = {0}),
                       add_body(&t), &y, 1),
      "an initial value for each input");
  ir_test_end(&t);
}

// argmax-like: two inputs of two types give two results.
static void reduces_several(void** state) {
  (void)state;
  BEGIN(t, T(F32, 2, 3), T(I32, 2, 3), T0(F32), T0(I32));
  pestle_type_t types[] = {T0(F32), T0(I32), T0(F32), T0(I32)};
  pestle_value_t* out[2];
  assert_ok(pestle_op_reduce(&t.b, t.a, 4, ATTRS(reduce, .dimensions = I64S(1)),
                             passing(&t, types, 4, I64S(0, 3)), out, 2));
  assert_type(out[0], T(F32, 2));
  assert_type(out[1], T(I32, 2));
  ir_test_end(&t);
}

static void reduce_windows(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 4, 6), T0(F32), T(F32, DYN, 6));
#define WINDOW(x, ...)                                                         \
  pestle_op_reduce_window(&t.b, (pestle_value_t*[]){x, t.a[1]}, 2,             \
                          ATTRS(reduce_window, __VA_ARGS__), add_body(&t), &y, \
                          1)
  pestle_value_t* x = t.a[0];
  GOOD(WINDOW(x, .window_dimensions = I64S(2, 3)), T(F32, 3, 4));
  GOOD(WINDOW(x, .window_dimensions = I64S(2, 3), .window_strides = I64S(2, 3)),
       T(F32, 2, 2));
  GOOD(WINDOW(x, .window_dimensions = I64S(2, 3), .padding = I64S(1, 0, -1, 0)),
       T(F32, 4, 3));
  GOOD(WINDOW(x, .window_dimensions = I64S(2, 3), .base_dilations = I64S(2, 1),
              .window_dilations = I64S(3, 2)),
       T(F32, 4, 2));
  GOOD(WINDOW(x, .window_dimensions = I64S(5, 1)), T(F32, 0, 6));
  GOOD(WINDOW(t.a[2], .window_dimensions = I64S(2, 3)), T(F32, DYN, 4));
  assert_int_equal(PESTLE_NODE_I64S(y->node, padding).count, 4);
  assert_int_equal(PESTLE_NODE_I64S(y->node, base_dilations).data[1], 1);
  BAD(WINDOW(x, .window_dimensions = I64S(2)), "1 elements, not 2");
  BAD(WINDOW(x, .window_dimensions = I64S(2, 0)), "at least 1");
  BAD(WINDOW(x, .window_dimensions = I64S(2, 3), .window_strides = I64S(0, 1)),
      "'window_strides' has 0 at 0");
  BAD(WINDOW(x, .window_dimensions = I64S(2, 3), .padding = I64S(0, 0)),
      "'padding' has 2 elements, not 4");
  BAD(WINDOW(x, .window_dimensions = I64S(2, INT64_MAX),
             .window_dilations = I64S(1, 3)),
      "2^63");
  BAD(WINDOW(x, .window_dimensions =
                    I64S(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)),
      "17 elements, not 2");
  ir_test_end(&t);
}

// --- Control ---

static void whiles(void** state) {
  (void)state;
  pestle_value_t* out[2];
  BEGIN(t, T0(I1), T(F32, 2));
  pestle_type_t types[] = {T0(I1), T(F32, 2)}, swapped[] = {types[1], types[0]};
#define WHILE(cond, body) \
  pestle_op_while(&t.b, t.a, 2, NULL, cond, body, out, 2)
#define PASS(...) passing(&t, types, 2, I64S(__VA_ARGS__))
  assert_ok(WHILE(PASS(0), PASS(0, 1)));
  assert_type(out[1], T(F32, 2));
  BAD(WHILE(PASS(1), PASS(0, 1)),
      "result 0 of region 0 is tensor<2xf32>, not tensor<i1>");
  BAD(WHILE(PASS(0, 0), PASS(0, 1)),
      "region 0, the condition, returns 2 values");
  BAD(WHILE(PASS(0), PASS(0)), "region 1, the body, returns 1 values for 2");
  BAD(WHILE(PASS(0), PASS(0, 0)),
      "result 1 of region 1 is tensor<i1>, not tensor<2xf32>");
  BAD(WHILE(PASS(0), passing(&t, swapped, 2, I64S(1, 0))),
      "argument 0 of region 1 is tensor<2xf32>, not tensor<i1>");
  BAD(WHILE(passing(&t, types, 1, I64S(0)), PASS(0, 1)),
      "region 0 takes 1 arguments, not 2");
  BAD(WHILE(unfinished(&t, types, 2), PASS(0, 1)), "does not end");
  ir_test_end(&t);
}

static void scans(void** state) {
  (void)state;
  pestle_value_t* out[2];
  BEGIN(t, T0(I32), T(F32, 5, 2), T(F32, DYN, 2), T0(F16),
        T(F32, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
  pestle_value_t** a = t.a;
  pestle_type_t types[] = {T0(I32), T(F32, 2), T0(F16)};
#define SCAN(body, carries, count_of_xs, n, ...)                  \
  pestle_op_scan(&t.b, (pestle_value_t*[]){__VA_ARGS__},          \
                 sizeof((pestle_value_t*[]){__VA_ARGS__}) / 8,    \
                 ATTRS(scan, .length = n, .carry_count = carries, \
                       .xs_count = count_of_xs),                  \
                 body, out, 2)
#define PASS3(...) passing(&t, types, 3, I64S(__VA_ARGS__))
  assert_ok(SCAN(PASS3(0, 1), 1, 1, 5, a[0], a[1], a[3]));
  assert_type(out[0], T0(I32));
  assert_type(out[1], T(F32, 5, 2));
  assert_ok(SCAN(PASS3(0, 2), 1, 1, 5, a[0], a[1], a[3]));
  assert_type(out[1], T(F16, 5));
  assert_ok(SCAN(PASS3(0, 1), 1, 1, 7, a[0], a[2], a[3]));
  assert_type(out[1], T(F32, 7, 2));
  BAD(SCAN(PASS3(0, 1), 1, 1, 4, a[0], a[1], a[3]),
      "operand 1 is tensor<5x2xf32>: the arrays that are scanned have "
      "'length', "
      "4, elements along dimension 0");
  BAD(SCAN(PASS3(0), 1, 1, 5, a[0], a[3], a[3]), "operand 1 is tensor<f16>");
  BAD(SCAN(PASS3(0), 4, 0, 5, a[0], a[1], a[3]), "'carry_count' is 4 of 3");
  BAD(SCAN(PASS3(0), 1, 3, 5, a[0], a[1], a[3]), "'xs_count' is 3 of 3");
  BAD(SCAN(PASS3(0), 1, -1, 5, a[0], a[1], a[3]), "'xs_count' is -1");
  BAD(SCAN(PASS3(0), 1, 1, -5, a[0], a[1], a[3]), "'length' is -5");
  BAD(SCAN(PASS3(2), 1, 1, 5, a[0], a[1], a[3]),
      "result 0 of region 0 is tensor<f16>, not tensor<i32>");
  BAD(SCAN(PASS3(0), 2, 1, 5, a[0], a[3], a[1]), "argument 1 of region 0 is");
  BAD(SCAN(passing(&t, types, 3, NONE), 1, 1, 5, a[0], a[1], a[3]),
      "returns 0 values, fewer than the 1");
  BAD(SCAN(passing(&t, a[4]->type, 1, I64S(0, 0)), 1, 0, 5, a[4]),
      "what is stacked up has at most 15 dimensions");
  ir_test_end(&t);
}

static void branches(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T0(I1), T0(I32), T(F32, 2), T(F32, 3), T0(I64));
  pestle_value_t** a = t.a;
  pestle_type_t type = T(F32, 2);
#define IF(p, x, z) \
  pestle_op_if(&t.b, p, NULL, yielding(&t, x), yielding(&t, z), &y, 1)
#define CASE(i, ...)                                               \
  pestle_op_case(&t.b, i, NULL, (pestle_region_t*[]){__VA_ARGS__}, \
                 sizeof((pestle_region_t*[]){__VA_ARGS__}) / 8, &y, 1)
  GOOD(IF(a[0], a[2], a[2]), T(F32, 2));
  BAD(IF(a[1], a[2], a[2]), "operand 0 is tensor<i32>, not tensor<i1>");
  BAD(IF(a[0], a[2], a[3]),
      "result 0 of region 1 is tensor<3xf32>, not tensor<2xf32>");
  BAD(IF(a[0], a[2], NULL), "region 0 returns 1 values, region 1 returns 0");
  BAD(pestle_op_if(&t.b, a[0], NULL, passing(&t, &type, 1, I64S(0)),
                   yielding(&t, a[2]), &y, 1),
      "region 0 takes 1 arguments, not 0");
  GOOD(CASE(a[1], yielding(&t, a[2])), T(F32, 2));
  GOOD(CASE(a[1], yielding(&t, a[2]), yielding(&t, a[2]), yielding(&t, a[2])),
       T(F32, 2));
  BAD(CASE(a[4], yielding(&t, a[2])), "not tensor<i32>");
  BAD(CASE(a[1], yielding(&t, a[2]), yielding(&t, a[3])), "of region 1 is");
  BAD(pestle_op_case(&t.b, a[1], NULL, NULL, 0, &y, 1), "at least one region");
  ir_test_end(&t);
}

static void calls(void** state) {
  (void)state;
  pestle_value_t* y;
  pestle_function_t* f;
  BEGIN(t, T(F32, 2), T(F32, 3));
  pestle_type_t type = T(F32, 2);
  assert_ok(pestle_module_add_function(t.module, "f", &type, NULL, 1, &f));
  pestle_builder_t b = pestle_builder_make(f);
  y = pestle_function_argument(f, 0);
  assert_ok(pestle_op_return(&b, &y, 1, NULL));
  GOOD(pestle_op_call(&t.b, t.a, 1, ATTRS(call, .callee = "f"), &y, 1),
       T(F32, 2));
  BAD(pestle_op_call(&t.b, t.a + 1, 1, ATTRS(call, .callee = "f"), &y, 1),
      "operand 0 is tensor<3xf32>, 'f' takes tensor<2xf32>");
  BAD(pestle_op_call(&t.b, t.a, 2, ATTRS(call, .callee = "f"), &y, 1),
      "2 operands are given, 'f' takes 1");
  BAD(pestle_op_call(&t.b, t.a, 1, NULL, &y, 1), "'callee' is missing");
  ir_test_end(&t);
}

static void ops_by_name(void** state) {
  (void)state;
  pestle_value_t* y[2];
  BEGIN(t, T(F32, 2), T(I32, DYN));
  pestle_type_t types[] = {T(F32, 2), T(I32, DYN)};
  pestle_type_t swapped[] = {T(I32, 5), T(F32, 2)};
  pestle_region_t* region = passing(&t, types, 2, I64S(1, 0));
  // What is stated agrees; what is known of the body counts.
  assert_ok(pestle_op_composite(&t.b, t.a, 2, ATTRS(composite, .name = "a.b"),
                                &region, 1, swapped, 2, y, 2));
  assert_type(y[0], T(I32, DYN));
  assert_type(y[1], T(F32, 2));
  region = passing(&t, types, 2, I64S(0));
  assert_ok(pestle_op_composite(&t.b, t.a, 2, ATTRS(composite, .name = "a.b"),
                                &region, 1, NULL, 0, y, 1));
  assert_type(y[0], T(F32, 2));
  // Without a body the types are what is stated.
  assert_ok(pestle_op_composite(&t.b, t.a, 2, ATTRS(composite, .name = "a.b"),
                                NULL, 0, swapped, 2, y, 2));
  assert_type(y[0], T(I32, 5));
  BAD(pestle_op_composite(&t.b, t.a, 2, NULL, NULL, 0, swapped, 2, y, 2),
      "'name' is missing");
  BAD(pestle_op_composite(&t.b, t.a, 2, ATTRS(composite, .name = ""), NULL, 0,
                          swapped, 2, y, 2),
      "'name' is empty");
  region = passing(&t, types, 2, I64S(0));
  BAD(pestle_op_composite(&t.b, t.a, 1, ATTRS(composite, .name = "a.b"),
                          &region, 1, NULL, 0, y, 2),
      "region 0 takes 2 arguments");
  BAD(pestle_op_composite(&t.b, t.a, 2, ATTRS(composite, .name = "a.b"),
                          &region, 1, swapped, 2, y, 2),
      "2 result types are stated, the body returns 1 values");
  BAD(pestle_op_composite(&t.b, t.a, 2, ATTRS(composite, .name = "a.b"),
                          &region, 1, swapped, 1, y, 2),
      "result 0 is stated as tensor<5xi32>, the body returns tensor<2xf32>");
  pestle_region_t* two[] = {region, passing(&t, types, 2, I64S(0))};
  BAD(pestle_op_composite(&t.b, t.a, 2, ATTRS(composite, .name = "a.b"), two, 2,
                          NULL, 0, y, 2),
      "2 regions are given");
  ir_test_end(&t);
}

static void barriers_and_fusions(void** state) {
  (void)state;
  pestle_value_t *y, *out[2];
  BEGIN(t, T(F32, 2), T(I8, 3));
  pestle_type_t types[] = {T(F32, 2), T(I8, 3)};
  assert_ok(pestle_op_optimization_barrier(&t.b, t.a, 2, NULL, out, 2));
  assert_type(out[1], T(I8, 3));
  GOOD(pestle_op_fusion(&t.b, t.a, 2, ATTRS(fusion, .label = "swap"),
                        passing(&t, types, 2, I64S(1)), &y, 1),
       T(I8, 3));
  assert_string_equal(PESTLE_NODE_STR(y->node, label), "swap");
  assert_ok(pestle_op_fusion(&t.b, t.a, 2, NULL,
                             passing(&t, types, 2, I64S(1, 0)), out, 2));
  assert_type(out[1], T(F32, 2));
  assert_string_equal(PESTLE_NODE_STR(out[1]->node, label), "");
  BAD(pestle_op_fusion(&t.b, t.a, 1, NULL, passing(&t, types, 2, I64S(1)), &y,
                       1),
      "region 0 takes 2 arguments, not 1");
  ir_test_end(&t);
}

// --- Composites ---

static void softmaxes_and_activations(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F16, 2, DYN), T(I32, 2, 3));
  pestle_value_t** a = t.a;
  pestle_type_t type = T(F16, 2, DYN);
  GOOD(pestle_op_softmax(&t.b, a[0], ATTRS(softmax, .dimensions = I64S(1)), &y),
       type);
  GOOD(pestle_op_log_softmax(&t.b, a[0],
                             ATTRS(log_softmax, .dimensions = I64S(0, 1)), &y),
       type);
  GOOD(pestle_op_gelu(&t.b, a[0], NULL, &y), type);
  assert_false(PESTLE_NODE_BOOL(y->node, approximate));
  GOOD(pestle_op_silu(&t.b, a[0], NULL, &y), type);
  GOOD(pestle_op_hard_sigmoid(
           &t.b, a[0], ATTRS(hard_sigmoid, .alpha = 0.2, .beta = 0.5), &y),
       type);
  assert_true(PESTLE_NODE_F64(y->node, alpha) == 0.2);
  BAD(pestle_op_softmax(&t.b, a[0], ATTRS(softmax, .dimensions = I64S(2)), &y),
      "names axis 2");
  BAD(pestle_op_softmax(&t.b, a[1], ATTRS(softmax, .dimensions = I64S(1)), &y),
      "of kind float");
  BAD(pestle_op_gelu(&t.b, a[1], NULL, &y), "of kind float");
  BAD(pestle_op_hard_sigmoid(&t.b, a[0], NULL, &y), "'alpha' is missing");
  ir_test_end(&t);
}

static void norms(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 2, 3, 4), T(F32, 3, 4), T(F32, 4), T(F16, 4), T(F32, 4, 3));
  pestle_value_t** a = t.a;
#define NORM(scale, offset, ...)                  \
  pestle_op_layer_norm(&t.b, a[0], scale, offset, \
                       ATTRS(layer_norm, __VA_ARGS__), &y)
  GOOD(NORM(a[1], a[1], .dimensions = I64S(1, 2), .epsilon = 1e-5),
       T(F32, 2, 3, 4));
  GOOD(NORM(a[2], a[2], .dimensions = I64S(2)), T(F32, 2, 3, 4));
  GOOD(pestle_op_rms_norm(&t.b, a[0], a[2],
                          ATTRS(rms_norm, .dimensions = I64S(2)), &y),
       T(F32, 2, 3, 4));
  BAD(NORM(a[1], a[2], .dimensions = I64S(1, 2)),
      "operand 2 is tensor<4xf32>, not tensor<3x4xf32>: the shape of the "
      "normalised 'dimensions'");
  BAD(NORM(a[3], a[2], .dimensions = I64S(2)), "operand 1 is tensor<4xf16>");
  BAD(NORM(a[4], a[4], .dimensions = I64S(2, 1)), "'dimensions' must ascend");
  BAD(NORM(a[2], a[2], .dimensions = I64S(3)), "names axis 3");
  BAD(NORM(a[2], a[2], .dimensions = I64S(2), .epsilon = -1),
      "'epsilon' is -1");
  ir_test_end(&t);
}

static void attention_grad(void** state) {
  (void)state;
  pestle_value_t* y[4];
  BEGIN(t, T(F32, 2, 5, 8), T(F32, 2, 7, 8), T(F32, 2, 7, 4), T(F32, 2, 5, 4),
        T(F32, 1, 5, 7), T(I1, 2, 1, 7), T(F32, 2, 5, 7));
  pestle_value_t** a = t.a;
#define GRAD(count, attrs, results, ...)                                  \
  pestle_op_attention_grad(&t.b, (pestle_value_t*[]){__VA_ARGS__}, count, \
                           attrs, y, results)
  const pestle_attention_grad_attrs_t* plain =
      ATTRS(attention_grad, .scale = 0.5);
  const pestle_attention_grad_attrs_t* bias =
      ATTRS(attention_grad, .scale = 0.5, .of_bias = true);
  assert_ok(GRAD(5, plain, 3, a[0], a[1], a[2], a[3], a[3]));
  for (int i = 0; i < 3; ++i)
    assert_true(pestle_type_equal(y[i]->type, a[i]->type));
  assert_int_equal(pestle_attention_bias(y[0]->node), 0);
  assert_int_equal(pestle_attention_mask(y[0]->node), 0);
  assert_ok(GRAD(6, plain, 3, a[0], a[1], a[2], a[3], a[3], a[5]));
  assert_int_equal(pestle_attention_mask(y[0]->node), 5);
  assert_ok(GRAD(7, bias, 4, a[0], a[1], a[2], a[3], a[3], a[4], a[5]));
  assert_true(pestle_type_equal(y[3]->type, a[4]->type));
  assert_int_equal(pestle_attention_bias(y[0]->node), 5);
  assert_int_equal(pestle_attention_mask(y[0]->node), 6);
  BAD(GRAD(4, plain, 3, a[0], a[1], a[2], a[3]),
      "4 operands: it takes q, k, v");
  BAD(GRAD(5, plain, 3, a[0], a[1], a[2], a[3], a[6]),
      "axis 2 must have 4 elements");
  BAD(GRAD(6, bias, 4, a[0], a[1], a[2], a[3], a[3], a[5]),
      "'of_bias' is true, and there is no bias");
  BAD(GRAD(6, plain, 3, a[0], a[1], a[2], a[3], a[3], a[0]),
      "operand 5 is tensor<2x5x8xf32>: it does not spread over the scores");
  ir_test_end(&t);
}

static void norm_grad(void** state) {
  (void)state;
  pestle_value_t* y[3];
  BEGIN(t, T(F16, 6, 5, 8), T(F16, 8), T(F16, 5, 8), T(F32, 6, 5, 8));
  pestle_value_t** a = t.a;
#define NORM_GRAD(x, scale, c, results, ...)                            \
  pestle_op_norm_grad(&t.b, x, scale, c,                                \
                      ATTRS(norm_grad, .epsilon = 0.5, __VA_ARGS__), y, \
                      results)
  assert_ok(NORM_GRAD(a[0], a[1], a[0], 2, .dimension = 2, .blocks = 7));
  assert_true(pestle_type_equal(y[0]->type, a[0]->type));
  assert_int_equal(y[1]->type->dtype, PESTLE_F32);
  assert_int_equal(y[1]->type->dims[0], 7);
  assert_int_equal(y[1]->type->rank, 2);
  assert_ok(NORM_GRAD(a[0], a[2], a[0], 3, .dimension = 1, .blocks = 2,
                      .centred = true));
  assert_int_equal(y[2]->type->rank, 3);
  BAD(NORM_GRAD(a[0], a[1], a[0], 2, .dimension = 1, .blocks = 2),
      "operand 1 is tensor<8xf16>, not tensor<5x8xf16>");
  BAD(NORM_GRAD(a[0], a[1], a[3], 2, .dimension = 2, .blocks = 2),
      "types must be equal");
  BAD(NORM_GRAD(a[0], a[1], a[0], 2, .dimension = 2, .blocks = 31),
      "'blocks' is 31: there are 30 rows");
  ir_test_end(&t);
}

static void block_dot(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F16, 6, 5, 60), T(U8, 7, 32), T(F16, 7, 2), T(U8, 7, 2),
        T(F32, 2, 7));
  pestle_value_t** a = t.a;
#define BLOCK_DOT(n, ...) \
  pestle_op_block_dot(&t.b, ((pestle_value_t*[]){__VA_ARGS__}), n, &attrs, &y)
  pestle_block_dot_attrs_t attrs = {sizeof(attrs), 4, 32, 4};
  assert_ok(BLOCK_DOT(3, a[0], a[1], a[2]));
  assert_int_equal(y->type->rank, 3);
  assert_int_equal(y->type->dims[2], 7);
  assert_int_equal(y->type->dtype, PESTLE_F16);
  assert_ok(BLOCK_DOT(4, a[0], a[1], a[2], a[3]));
  assert_ok(BLOCK_DOT(4, a[0], a[1], a[2], a[2]));
  BAD(BLOCK_DOT(2, a[0], a[1]), "2 operands are given, the op takes 3 or 4");
  BAD(BLOCK_DOT(3, a[0], a[2], a[2]), "its elements must be ui8");
  BAD(BLOCK_DOT(3, a[0], a[1], a[4]), "they must have the same rows");
  BAD(BLOCK_DOT(4, a[0], a[1], a[2], a[4]), "its shape that of operand 2");
  BAD(BLOCK_DOT(3, a[4], a[1], a[2]), "must end within the last of 2 blocks");
  attrs.bits = 3;
  BAD(BLOCK_DOT(3, a[0], a[1], a[2]), "'bits' is 3 and 'block' is 32");
  attrs = (pestle_block_dot_attrs_t){sizeof(attrs), 4, 24, 4};
  BAD(BLOCK_DOT(3, a[0], a[1], a[2]), "powers of two from 16 on");
  attrs = (pestle_block_dot_attrs_t){sizeof(attrs), 4, 32, 5};
  BAD(BLOCK_DOT(3, a[0], a[1], a[2]), "'accuracy' is 5");
  ir_test_end(&t);
}

static void attention(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F16, 2, 5, DYN), T(F16, 2, 7, 8), T(F16, DYN, 7, 4),
        T(F32, 1, 5, 7), T(F16, 2, 1, 1), T(F16, 2, 7), T(F16, 2, 6, 4),
        T(I32, 2, 7, 8), T(I1, 2, 1, 7), T(I1, 2, 5, 6));
  pestle_value_t** a = t.a;
#define ATTENTION(count, ...) \
  pestle_op_attention(&t.b, (pestle_value_t*[]){__VA_ARGS__}, count, scale, &y)
  const pestle_attention_attrs_t* scale = ATTRS(attention, .scale = 0.5);
  GOOD(ATTENTION(3, a[0], a[1], a[2]), T(F16, 2, 5, 4));
  assert_true(PESTLE_NODE_F64(y->node, scale) == 0.5);
  GOOD(ATTENTION(4, a[0], a[1], a[2], a[3]), T(F16, 2, 5, 4));
  GOOD(ATTENTION(4, a[0], a[1], a[2], a[4]), T(F16, 2, 5, 4));
  BAD(ATTENTION(2, a[0], a[1]), "2 operands: it takes q, k, v");
  BAD(ATTENTION(3, a[0], a[1], a[5]), "operand 2 is tensor<2x7xf16>: its rank");
  BAD(ATTENTION(3, a[0], a[1], a[6]), "axis 1 must have 7 elements");
  BAD(ATTENTION(3, a[0], a[7], a[2]), "operand 1 is");
  BAD(ATTENTION(4, a[0], a[1], a[2], a[6]),
      "operand 3 is tensor<2x6x4xf16>: it does not spread over the scores");
  BAD(ATTENTION(4, a[0], a[1], a[2], a[7]), "of kind float");
  GOOD(ATTENTION(4, a[0], a[1], a[2], a[8]), T(F16, 2, 5, 4));
  assert_int_equal(pestle_attention_bias(y->node), 0);
  assert_int_equal(pestle_attention_mask(y->node), 3);
  GOOD(ATTENTION(5, a[0], a[1], a[2], a[3], a[8]), T(F16, 2, 5, 4));
  assert_int_equal(pestle_attention_bias(y->node), 3);
  assert_int_equal(pestle_attention_mask(y->node), 4);
  BAD(ATTENTION(5, a[0], a[1], a[2], a[8], a[3]), "of kind float");
  BAD(ATTENTION(5, a[0], a[1], a[2], a[3], a[4]),
      "behind the bias there may be a mask of i1");
  BAD(ATTENTION(4, a[0], a[1], a[2], a[9]),
      "operand 3 is tensor<2x5x6xi1>: it does not spread over the scores");
  ir_test_end(&t);
}

static void quantisation(void** state) {
  (void)state;
  pestle_value_t* y;
  BEGIN(t, T(F32, 2, 3), T0(F32), T0(I8), T(F32, 3), T(U8, 3), T(I8, 2, 3),
        T0(I32), T(F32, 4));
  pestle_value_t** a = t.a;
  const pestle_quantize_attrs_t* one = ATTRS(quantize, .axis = 1);
  const pestle_dequantize_attrs_t* d_one = ATTRS(dequantize, .axis = 1);
  GOOD(pestle_op_quantize(&t.b, a[0], a[1], a[2], NULL, &y), T(I8, 2, 3));
  GOOD(pestle_op_quantize(&t.b, a[0], a[3], a[4], one, &y), T(U8, 2, 3));
  BAD(pestle_op_quantize(&t.b, a[0], a[3], a[4], NULL, &y),
      "operand 1 is tensor<3xf32>: its extent must be that of axis 0");
  BAD(pestle_op_quantize(&t.b, a[0], a[3], a[2], one, &y), "shapes must be");
  BAD(pestle_op_quantize(&t.b, a[0], a[1], a[6], NULL, &y),
      "an integer of up to 16 bits or an f8");
  BAD(pestle_op_quantize(&t.b, a[5], a[1], a[2], NULL, &y), "element types");
  BAD(pestle_op_quantize(&t.b, a[0], a[0], a[5], one, &y), "rank must be 1");
  GOOD(pestle_op_dequantize(&t.b, a[5], a[1], a[2], NULL, &y), T(F32, 2, 3));
  BAD(pestle_op_dequantize(&t.b, a[5], a[3], a[4], d_one, &y),
      "element types must be equal");
  BAD(pestle_op_dequantize(&t.b, a[0], a[1], a[1], NULL, &y),
      "must be i32, an integer");
  ir_test_end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reduces),
      cmocka_unit_test(reduces_several),
      cmocka_unit_test(reduce_windows),
      cmocka_unit_test(whiles),
      cmocka_unit_test(scans),
      cmocka_unit_test(branches),
      cmocka_unit_test(calls),
      cmocka_unit_test(ops_by_name),
      cmocka_unit_test(barriers_and_fusions),
      cmocka_unit_test(softmaxes_and_activations),
      cmocka_unit_test(attention),
      cmocka_unit_test(attention_grad),
      cmocka_unit_test(norm_grad),
      cmocka_unit_test(block_dot),
      cmocka_unit_test(norms),
      cmocka_unit_test(quantisation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
