// SPDX-License-Identifier: Apache-2.0
// The op tables and what every builder does alike: defaults, copies, errors
// that name the op and its place, and a failed call that adds nothing.
#include "ir_test.h"

static void rows_hold_together(void** state) {
  (void)state;
  assert_null(pestle_op_info(PESTLE_OP_COUNT));
  assert_null(pestle_op_info((pestle_op_t)-1));
  for (int op = 0; op < PESTLE_OP_COUNT; ++op) {
    const pestle_op_info_t* info = pestle_op_info((pestle_op_t)op);
    size_t count;
    const pestle_attr_row_t* rows =
        pestle_op_attr_rows((pestle_op_t)op, &count);
    assert_non_null(info->name);
    assert_non_null(strchr(info->mlir, '.'));
    assert_true(pestle_op_is_scalar((pestle_op_t)op) == (info->kinds != 0));
    assert_true(!pestle_op_is_scalar((pestle_op_t)op) || count == 0);
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < i; ++j) {
        assert_int_not_equal(rows[i].name, rows[j].name);
      }
    }
  }
  const pestle_op_info_t* add = pestle_op_info(PESTLE_OP_ADD);
  assert_string_equal(add->name, "add");
  assert_string_equal(add->mlir, "stablehlo.add");
  assert_int_equal(add->operands, 2);
  assert_int_equal(add->flags, PESTLE_OP_FLAG_COMM | PESTLE_OP_FLAG_ASSOC);
  const pestle_op_info_t* ret = pestle_op_info(PESTLE_OP_RETURN);
  assert_int_equal(ret->operands, PESTLE_VARIADIC);
  assert_int_equal(ret->flags, PESTLE_OP_FLAG_TERMINATOR);
  assert_string_equal(pestle_attr_name_text(PESTLE_ATTR_permutation),
                      "permutation");
  assert_string_equal(pestle_attr_name_text(PESTLE_ATTR_COUNT), "");
}

static void attributes_are_whole_and_sorted(void** state) {
  (void)state;
  BEGIN(t, T(F32, 1, 8, 8, 3), T(F32, 3, 3, 3, 4));
  pestle_value_t* y;
  assert_ok(pestle_op_convolution(
      &t.b, t.a[0], t.a[1],
      ATTRS(convolution, .input_batch_dimension = 0,
            .input_feature_dimension = 3,
            .input_spatial_dimensions = I64S(1, 2),
            .kernel_input_feature_dimension = 2,
            .kernel_output_feature_dimension = 3,
            .kernel_spatial_dimensions = I64S(0, 1),
            .output_batch_dimension = 0, .output_feature_dimension = 3,
            .output_spatial_dimensions = I64S(1, 2), .feature_group_count = 1,
            .batch_group_count = 1),
      T(F32, 1, 6, 6, 4), &y));
  const pestle_node_t* node = y->node;
  size_t count;
  (void)pestle_op_attr_rows(PESTLE_OP_CONVOLUTION, &count);
  assert_int_equal(node->attr_count, count);
  for (uint32_t i = 1; i < node->attr_count; ++i) {
    assert_true(node->attrs[i - 1].name < node->attrs[i].name);
  }
  assert_int_equal(PESTLE_NODE_I64S(node, window_strides).count, 2);
  assert_int_equal(PESTLE_NODE_I64S(node, window_strides).data[1], 1);
  assert_int_equal(PESTLE_NODE_I64S(node, lhs_dilation).data[0], 1);
  assert_int_equal(PESTLE_NODE_I64S(node, rhs_dilation).data[1], 1);
  assert_int_equal(PESTLE_NODE_I64S(node, padding).count, 4);
  assert_int_equal(PESTLE_NODE_I64S(node, padding).data[3], 0);
  assert_int_equal(PESTLE_NODE_I64S(node, window_reversal).count, 2);
  assert_int_equal(PESTLE_NODE_I64(node, input_feature_dimension), 3);
  // An attribute that the op has not reads as empty.
  assert_int_equal(PESTLE_NODE_I64S(node, permutation).count, 0);
  assert_string_equal(PESTLE_NODE_STR(node, callee), "");
  assert_int_equal(PESTLE_NODE_ELEMENTS(node)->size, 0);
  ir_test_end(&t);
}

static void contents_are_copied(void** state) {
  (void)state;
  BEGIN(t, T(F32, 2, 3));
  int64_t permutation[] = {1, 0};
  char name[] = "conv1", file[] = "model.onnx";
  float data[] = {1, 2};
  pestle_value_t *y, *c, *shared;
  t.b.loc = (pestle_loc_t){.name = name, .file = file, .line = 7};
  assert_ok(pestle_op_transpose(
      &t.b, t.a[0], ATTRS(transpose, .permutation = {permutation, 2}), &y));
  assert_ok(ir_test_constant(&t.b, T(F32, 2), data, &c));
  pestle_elements_t elements = {T(F32, 2), data, sizeof(data), false};
  pestle_attr_t attr = {
      PESTLE_ATTR_value, PESTLE_ATTR_KIND_ELEMENTS, {.elements = &elements}};
  pestle_node_t* node;
  assert_ok(pestle_node_create(&t.b,
                               &(pestle_node_spec_t){.op = PESTLE_OP_CONSTANT,
                                                     .attrs = &attr,
                                                     .attr_count = 1,
                                                     .share_elements = true},
                               &node));
  shared = pestle_node_result(node, 0);
  memset(permutation, 0, sizeof(permutation));
  memset(name, 'x', sizeof(name) - 1);
  memset(file, 'x', sizeof(file) - 1);
  data[0] = 5;
  assert_int_equal(PESTLE_NODE_I64S(y->node, permutation).data[0], 1);
  assert_string_equal(y->node->loc.name, "conv1");
  assert_string_equal(y->node->loc.file, "model.onnx");
  assert_true(*(const float*)pestle_value_constant(c)->data == 1);
  assert_ptr_equal(pestle_value_constant(shared)->data, data);
  assert_null(pestle_value_constant(y));
  assert_null(pestle_value_constant(t.a[0]));
  ir_test_end(&t);
}

static void errors_name_op_and_place(void** state) {
  (void)state;
  BEGIN(t, T(F32, 2), T(F32, 3));
  pestle_value_t* y = t.a[0];
  t.b.loc = (pestle_loc_t){"conv1", "model.onnx", 0, 0};
  assert_error(pestle_op_add(&t.b, t.a[0], t.a[1], &y), INVALID_ARGUMENT,
               "'stablehlo.add' (node 'conv1' in model.onnx): operand 0 is "
               "tensor<2xf32>, operand 1 is tensor<3xf32>: shapes must be "
               "equal");
  assert_null(y);
  t.b.loc = (pestle_loc_t){NULL, "m.mlir", 3, 5};
  assert_error(pestle_op_add(&t.b, t.a[0], t.a[1], &y), INVALID_ARGUMENT,
               "'stablehlo.add' (m.mlir:3:5): operand 0");
  t.b.loc = (pestle_loc_t){"n", "m.mlir", 3, 0};
  assert_error(pestle_op_add(&t.b, t.a[0], t.a[1], &y), INVALID_ARGUMENT,
               "'stablehlo.add' (node 'n' in m.mlir:3): operand 0");
  t.b.loc = (pestle_loc_t){"n", NULL, 0, 0};
  assert_error(pestle_op_add(&t.b, t.a[0], t.a[1], &y), INVALID_ARGUMENT,
               "'stablehlo.add' (node 'n'): operand 0");
  assert_int_equal(ir_test_node_count(&t), 0);
  assert_int_equal(t.a[0]->use_count, 0);
  assert_ok(pestle_op_add(&t.b, t.a[0], t.a[0], &y));
  assert_error(
      pestle_node_error(y->node, PESTLE_STATUS_UNSUPPORTED, "no %d", 1),
      UNSUPPORTED, "'stablehlo.add' (node 'n'): no 1");
  y->name = "v";
  y->node->loc = (pestle_loc_t){"conv1", "model.onnx", 0, 0};
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_node_describe(y->node, &text);
  assert_string_equal(pestle_strbuf_cstr(&text),
                      "%v = stablehlo.add at model.onnx node 'conv1'");
  pestle_strbuf_deinit(&text);
  ir_test_end(&t);
}

static void attribute_errors(void** state) {
  (void)state;
  BEGIN(t, T(F32, 2));
  pestle_value_t* y;
  pestle_node_t* node;
  assert_error(pestle_op_transpose(&t.b, t.a[0], NULL, &y), INVALID_ARGUMENT,
               "attribute 'permutation' is missing");
  pestle_transpose_attrs_t unset = {0};
  assert_error(pestle_op_transpose(&t.b, t.a[0], &unset, &y), INVALID_ARGUMENT,
               "struct_size of the attributes is not set");
  // An older caller's struct ends before the field.
  unset.struct_size = sizeof(size_t);
  assert_error(pestle_op_transpose(&t.b, t.a[0], &unset, &y), INVALID_ARGUMENT,
               "attribute 'permutation' is missing");
  pestle_attr_t attrs[2] = {
      {PESTLE_ATTR_permutation, PESTLE_ATTR_KIND_I64, {.i64 = 0}},
      {PESTLE_ATTR_permutation, PESTLE_ATTR_KIND_I64, {.i64 = 0}}};
  pestle_node_spec_t spec = {.op = PESTLE_OP_TRANSPOSE,
                             .operands = t.a,
                             .operand_count = 1,
                             .attrs = attrs,
                             .attr_count = 1};
  assert_error(
      pestle_node_create(&t.b, &spec, &node), INVALID_ARGUMENT,
      "attribute 'permutation' is an integer, not an array of integers");
  spec.attr_count = 2;
  assert_error(pestle_node_create(&t.b, &spec, &node), INVALID_ARGUMENT,
               "attribute 'permutation' is given twice");
  attrs[1].name = PESTLE_ATTR_axis;
  assert_error(pestle_node_create(&t.b, &spec, &node), INVALID_ARGUMENT,
               "the op has no attribute 'axis'");
  spec.op = PESTLE_OP_COUNT;
  assert_error(pestle_node_create(&t.b, &spec, &node), INVALID_ARGUMENT,
               "there is no op number");
  spec.op = PESTLE_OP_ADD;
  spec.attr_count = 0;
  assert_error(pestle_node_create(&t.b, &spec, &node), INVALID_ARGUMENT,
               "1 operands are given, the op takes 2");
  assert_int_equal(ir_test_node_count(&t), 0);
  ir_test_end(&t);
}

static void places(void** state) {
  (void)state;
  BEGIN(t, T(F32, 2));
  BEGIN(u, T(F32, 2));
  pestle_value_t *x, *y;
  pestle_builder_t nowhere = {.module = t.module};
  assert_error(pestle_op_negate(&nowhere, t.a[0], &y), INVALID_ARGUMENT,
               "the builder has no block");
  assert_error(pestle_op_negate(&t.b, u.a[0], &y), INVALID_ARGUMENT,
               "operand 0 belongs to another module");
  assert_error(pestle_op_negate(&t.b, NULL, &y), INVALID_ARGUMENT,
               "operand 0 is NULL");
  assert_ok(pestle_op_negate(&t.b, t.a[0], &x));
  pestle_builder_t before = pestle_builder_before(x->node);
  assert_error(pestle_op_return(&before, &t.a[0], 1, NULL), INVALID_ARGUMENT,
               "a return can only be the last op");
  assert_ok(pestle_op_return(&t.b, &x, 1, NULL));
  assert_error(pestle_op_negate(&t.b, x, &y), INVALID_ARGUMENT,
               "the block has ended");
  // A new return before the old one, which then goes.
  pestle_node_t* old = t.b.block->last;
  before = pestle_builder_before(old);
  assert_ok(pestle_op_return(&before, &t.a[0], 1, NULL));
  pestle_node_erase(old);
  assert_ok(pestle_module_verify(t.module));
  ir_test_end(&t);
  ir_test_end(&u);
}

static void regions_are_taken_once(void** state) {
  (void)state;
  BEGIN(t, T(F32, 2, 3), T0(F32));
  pestle_region_t* body = ir_test_reducer(&t, PESTLE_OP_ADD, T0(F32));
  pestle_value_t* y;
  assert_error(
      pestle_op_reduce(&t.b, t.a, 2, ATTRS(reduce, .dimensions = I64S(5)), body,
                       &y, 1),
      INVALID_ARGUMENT, "axis 5");
  assert_null(body->owner);
  assert_error(
      pestle_op_reduce(&t.b, t.a, 2, ATTRS(reduce, .dimensions = I64S(1)), body,
                       NULL, 0),
      INVALID_ARGUMENT, "1 results, there is room for 0");
  assert_ok(pestle_op_reduce(&t.b, t.a, 2, ATTRS(reduce, .dimensions = I64S(1)),
                             body, &y, 1));
  assert_ptr_equal(body->owner, y->node);
  assert_int_equal(ir_test_node_count(&t), 3);
  assert_error(
      pestle_op_reduce(&t.b, t.a, 2, ATTRS(reduce, .dimensions = I64S(1)), body,
                       &y, 1),
      INVALID_ARGUMENT, "region 0 has an owner already");
  assert_null(y);
  assert_error(
      pestle_op_reduce(&t.b, t.a, 2, ATTRS(reduce, .dimensions = I64S(1)), NULL,
                       &y, 1),
      INVALID_ARGUMENT, "region 0 is NULL");
  // A region cannot hold the op that owns it.
  pestle_region_t* region;
  pestle_builder_t inside = {.module = t.module};
  pestle_type_t types[] = {T0(F32), T0(F32)};
  assert_ok(pestle_region_create(t.module, types, 2, &region, &inside.block));
  assert_ok(pestle_op_return(&inside, inside.block->arguments, 1, NULL));
  inside.before = inside.block->last;
  assert_error(
      pestle_op_reduce(&inside, t.a, 2, ATTRS(reduce, .dimensions = I64S(1)),
                       region, &y, 1),
      INVALID_ARGUMENT, "region 0 would contain its own op");
  pestle_value_t* flag;
  inside.before = NULL;
  assert_ok(pestle_region_create(t.module, NULL, 0, &region, &inside.block));
  assert_ok(pestle_op_return(&inside, &t.a[1], 1, NULL));
  assert_ok(pestle_op_ne(&t.b, t.a[1], t.a[1], &flag));
  assert_error(pestle_op_if(&t.b, flag, NULL, region, region, &y, 1),
               INVALID_ARGUMENT, "region 0 is given twice");
  ir_test_end(&t);
}

static void reduce_ops(void** state) {
  (void)state;
  BEGIN(t, T0(F32));
  assert_int_equal(pestle_block_reduce_op(
                       ir_test_reducer(&t, PESTLE_OP_MAXIMUM, T0(F32))->block),
                   PESTLE_OP_MAXIMUM);
  assert_int_equal(pestle_block_reduce_op(
                       ir_test_reducer(&t, PESTLE_OP_SUBTRACT, T0(F32))->block),
                   PESTLE_OP_COUNT);
  assert_int_equal(pestle_block_reduce_op(t.b.block), PESTLE_OP_COUNT);
  // add(b, a) reduces too, add(a, a) does not.
  for (size_t i = 0; i < 2; ++i) {
    pestle_region_t* region;
    pestle_builder_t b = {.module = t.module};
    pestle_type_t types[] = {T0(F32), T0(F32)};
    pestle_value_t* y;
    assert_ok(pestle_region_create(t.module, types, 2, &region, &b.block));
    assert_ok(pestle_op_add(&b, pestle_block_argument(b.block, i),
                            pestle_block_argument(b.block, 0), &y));
    assert_ok(pestle_op_return(&b, &y, 1, NULL));
    assert_int_equal(pestle_block_reduce_op(b.block),
                     i ? PESTLE_OP_ADD : PESTLE_OP_COUNT);
  }
  ir_test_end(&t);
}

static pestle_status_t work_build(ir_test_t* t) {
  float data[] = {1, 2};
  pestle_value_t *c, *x, *y;
  t->b.loc = (pestle_loc_t){"node", "file", 1, 2};
  PESTLE_TRY(ir_test_constant(&t->b, T(F32, 2), data, &c));
  PESTLE_TRY(pestle_op_add(&t->b, c, t->a[0], &x));
  pestle_value_t* many[6] = {x, x, x, x, x, x};
  pestle_value_t* out[6];
  PESTLE_TRY(pestle_op_optimization_barrier(&t->b, many, 6, NULL, out, 6));
  return pestle_op_concatenate(&t->b, out, 6,
                               ATTRS(concatenate, .dimension = 0), &y);
}

static void survives_failures(void** state) {
  (void)state;
  pestle_type_t type = T(F32, 2);
  ir_test_every_failure(&type, 1, work_build);
}

static void calls_need_known_results(void** state) {
  (void)state;
  BEGIN(t, T(F32, 2));
  pestle_function_t* f;
  pestle_type_t type = T(F32, 2);
  pestle_value_t* y;
  assert_ok(pestle_module_add_function(t.module, "f", &type, NULL, 1, &f));
  const pestle_call_attrs_t* to_f = ATTRS(call, .callee = "f");
  assert_error(pestle_op_call(&t.b, t.a, 1, ATTRS(call, .callee = "g"), &y, 1),
               INVALID_ARGUMENT, "there is no function 'g'");
  assert_error(pestle_op_call(&t.b, t.a, 1, to_f, &y, 1), INVALID_ARGUMENT,
               "the results of 'f' are not known yet");
  assert_ok(pestle_function_declare_results(f, &type, 1));
  assert_ok(pestle_op_call(&t.b, t.a, 1, to_f, &y, 1));
  assert_type(y, T(F32, 2));
  assert_error(pestle_op_call(&t.b, t.a, 0, to_f, &y, 1), INVALID_ARGUMENT,
               "0 operands are given, 'f' takes 1");
  pestle_builder_t b = pestle_builder_make(f);
  y = pestle_function_argument(f, 0);
  assert_ok(pestle_op_return(&b, &y, 1, NULL));
  assert_ok(pestle_op_return(&t.b, &y, 0, NULL));
  assert_ok(pestle_module_verify(t.module));
  ir_test_end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_hold_together),
      cmocka_unit_test(attributes_are_whole_and_sorted),
      cmocka_unit_test(contents_are_copied),
      cmocka_unit_test(errors_name_op_and_place),
      cmocka_unit_test(attribute_errors),
      cmocka_unit_test(places),
      cmocka_unit_test(regions_are_taken_once),
      cmocka_unit_test(reduce_ops),
      cmocka_unit_test(survives_failures),
      cmocka_unit_test(calls_need_known_results),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
