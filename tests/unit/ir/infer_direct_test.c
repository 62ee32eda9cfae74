// SPDX-License-Identifier: Apache-2.0
// The type rules of ops that are kernels of their own.
#include "ir_test.h"

#define BAD(call, text) assert_error(call, INVALID_ARGUMENT, text)

// A region that takes |count| |types| and returns argument 0 compared with
// itself, or as it is.
static pestle_region_t* scalars(ir_test_t* t, const pestle_type_t* types,
                                size_t count, bool compares) {
  pestle_region_t* region;
  pestle_builder_t b = {.module = t->module};
  assert_ok(pestle_region_create(t->module, types, count, &region, &b.block));
  pestle_value_t* y = pestle_block_argument(b.block, 0);
  if (compares) assert_ok(pestle_op_lt(&b, y, y, &y));
  assert_ok(pestle_op_return(&b, &y, 1, NULL));
  return region;
}

static void sorts(void** state) {
  (void)state;
  BEGIN(t, T(F32, 2, 3), T(I8, 2, DYN), T(F32, 3, 2), T0(F32));
  pestle_value_t *y[2], **a = t.a;
  pestle_type_t f = T0(F32), i = T0(I8);
  pestle_type_t one[] = {f, f}, two[] = {f, f, i, i}, mixed[] = {f, i, f, i};
#define SORT(axis, region, count, ...)                          \
  pestle_op_sort(&t.b, (pestle_value_t*[]){__VA_ARGS__}, count, \
                 ATTRS(sort, .dimension = axis), region, y, 2)
  assert_ok(SORT(1, scalars(&t, one, 2, true), 1, a[0]));
  assert_type(y[0], T(F32, 2, 3));
  assert_ok(SORT(-2, scalars(&t, two, 4, true), 2, a[0], a[1]));
  assert_type(y[0], T(F32, 2, 3));
  assert_type(y[1], T(I8, 2, 3));
  assert_ok(pestle_op_sort(&t.b, a, 1, NULL, scalars(&t, one, 2, true), y, 2));
  assert_int_equal(PESTLE_NODE_I64(y[0]->node, dimension), -1);
  BAD(SORT(2, scalars(&t, one, 2, true), 1, a[0]), "'dimension'");
  BAD(SORT(0, scalars(&t, one, 2, true), 1, a[3]), "'dimension'");
  BAD(SORT(1, scalars(&t, two, 4, true), 2, a[0], a[2]), "shapes must be");
  BAD(SORT(1, scalars(&t, two, 4, true), 1, a[0]),
      "region 0 takes 4 arguments, not 2");
  BAD(SORT(1, scalars(&t, mixed, 4, true), 2, a[0], a[1]),
      "argument 1 of region 0 is tensor<i8>, not tensor<f32>");
  BAD(SORT(1, scalars(&t, one, 2, false), 1, a[0]),
      "result 0 of region 0 is tensor<f32>, not tensor<i1>");
  BAD(SORT(1, scalars(&t, one, 2, true), 0, NULL), "at least 1");
  ir_test_end(&t);
}

static void scatters(void** state) {
  (void)state;
  BEGIN(t, T(F32, 5, 6, 7), T(I32, 2, 3), T(F32, 2, 3, 7), T(F16, 2, 3, 7),
        T(F32, 5, 3, 7), T(I32, 5, 3));
  pestle_value_t *y, **a = t.a;
#define SCATTER(x, i, u, ...)                              \
  pestle_op_scatter(&t.b, (pestle_value_t*[]){x, i, u}, 3, \
                    ATTRS(scatter, __VA_ARGS__),           \
                    ir_test_reducer(&t, PESTLE_OP_ADD, T0(F32)), &y, 1)
#define POINTS                                                       \
  .update_window_dims = I64S(2), .inserted_window_dims = I64S(0, 1), \
  .scatter_dims_to_operand_dims = I64S(1), .index_vector_dim = 2
  assert_ok(SCATTER(a[0], a[1], a[2], POINTS));
  assert_type(y, T(F32, 5, 6, 7));
  assert_ok(
      SCATTER(a[0], a[5], a[4], .update_window_dims = I64S(2),
              .inserted_window_dims = I64S(1), .input_batching_dims = I64S(0),
              .scatter_indices_batching_dims = I64S(0),
              .scatter_dims_to_operand_dims = I64S(1), .index_vector_dim = 2));
  BAD(SCATTER(a[0], a[2], a[2], POINTS), "must be");
  BAD(SCATTER(a[0], a[1], a[3], POINTS), "element types");
  BAD(SCATTER(a[0], a[1], a[4], POINTS),
      "axis 0 of the updates, tensor<5x3x7xf32>, must have the extent of axis "
      "0 of the indices");
  BAD(SCATTER(a[0], a[1], a[2], .update_window_dims = I64S(2),
              .inserted_window_dims = I64S(0),
              .scatter_dims_to_operand_dims = I64S(1), .index_vector_dim = 2),
      "input 0 has rank 3");
  BAD(SCATTER(a[0], a[1], a[2], .update_window_dims = I64S(2),
              .inserted_window_dims = I64S(0, 1),
              .scatter_dims_to_operand_dims = I64S(1), .index_vector_dim = 1),
      "an index has 3 elements, 'scatter_dims_to_operand_dims' has 1");
  BAD(SCATTER(a[0], a[1], a[2], .update_window_dims = I64S(2),
              .inserted_window_dims = I64S(1), .input_batching_dims = I64S(0),
              .scatter_indices_batching_dims = I64S(0),
              .scatter_dims_to_operand_dims = I64S(1), .index_vector_dim = 2),
      "batching axis 0 of input 0 has extent 5, axis 0 of the indices 2");
  BAD(pestle_op_scatter(&t.b, a, 2, NULL,
                        ir_test_reducer(&t, PESTLE_OP_ADD, T0(F32)), &y, 1),
      "an update for each input");
  ir_test_end(&t);
}

static void selects_and_scatters(void** state) {
  (void)state;
  BEGIN(t, T(F32, 6, 7), T(F32, 3, 7), T0(F32), T(F16, 3, 7), T(F32, 2, 7));
  pestle_value_t *y, **a = t.a;
  pestle_type_t two[] = {T0(F32), T0(F32)};
#define SELECT(s, selects, ...)                                    \
  pestle_op_select_and_scatter(                                    \
      &t.b, a[0], s, a[2], ATTRS(select_and_scatter, __VA_ARGS__), \
      scalars(&t, two, 2, selects),                                \
      ir_test_reducer(&t, PESTLE_OP_ADD, T0(F32)), &y)
#define WINDOW .window_dimensions = I64S(2, 1), .window_strides = I64S(2, 1)
  assert_ok(SELECT(a[1], true, WINDOW));
  assert_type(y, T(F32, 6, 7));
  BAD(SELECT(a[4], true, WINDOW),
      "the window has 3 places along axis 0, the source 2 elements");
  BAD(SELECT(a[3], true, WINDOW), "element types");
  BAD(SELECT(a[1], false, WINDOW),
      "result 0 of region 0 is tensor<f32>, not tensor<i1>");
  BAD(SELECT(a[1], true, .window_dimensions = I64S(2)), "1 elements, not 2");
  ir_test_end(&t);
}

static void maps(void** state) {
  (void)state;
  BEGIN(t, T(F32, 2, 3), T(F32, 2, DYN), T(F32, 2, 4));
  pestle_value_t *y, **a = t.a;
  pestle_type_t two[] = {T0(F32), T0(F32)};
#define MAP(second, types, count, ...)                      \
  pestle_op_map(&t.b, (pestle_value_t*[]){a[0], second}, 2, \
                ATTRS(map, __VA_ARGS__), scalars(&t, types, count, true), &y)
  assert_ok(MAP(a[1], two, 2, .dimensions = I64S(0, 1)));
  assert_type(y, T(I1, 2, 3));
  BAD(MAP(a[2], two, 2, .dimensions = I64S(0, 1)), "shapes must be");
  BAD(MAP(a[1], two, 1, .dimensions = I64S(0, 1)), "takes 1 arguments, not 2");
  BAD(MAP(a[1], two, 2, .dimensions = I64S(1, 0)), "all axes in order");
  BAD(pestle_op_reduce_precision(
          &t.b, a[0], ATTRS(reduce_precision, .mantissa_bits = 1), &y),
      "'exponent_bits'");
  assert_ok(pestle_op_reduce_precision(
      &t.b, a[0], ATTRS(reduce_precision, .exponent_bits = 5), &y));
  assert_type(y, T(F32, 2, 3));
  ir_test_end(&t);
}

static void solves(void** state) {
  (void)state;
  BEGIN(t, T(F32, 5, 3, 3), T(F32, 5, 3, 4), T(I32, 3, 3), T(F16, 5, 3, 4));
  pestle_value_t *y, **a = t.a;
#define SOLVE(b_, left, how)  \
  pestle_op_triangular_solve( \
      &t.b, a[0], b_,         \
      ATTRS(triangular_solve, .left_side = left, .transpose_a = how), &y)
  assert_ok(SOLVE(a[1], true, "ADJOINT"));
  assert_type(y, T(F32, 5, 3, 4));
  BAD(SOLVE(a[1], false, "TRANSPOSE"), "axis 2 must have the same extents");
  BAD(SOLVE(a[3], true, "TRANSPOSE"), "element types");
  BAD(SOLVE(a[1], true, "TURN"), "'transpose_a' is 'TURN'");
  assert_ok(pestle_op_cholesky(&t.b, a[0], NULL, &y));
  assert_type(y, T(F32, 5, 3, 3));
  BAD(pestle_op_cholesky(&t.b, a[1], NULL, &y), "extents must be equal");
  BAD(pestle_op_cholesky(&t.b, a[2], NULL, &y), "i32");
  ir_test_end(&t);
}

static void batch_norms(void** state) {
  (void)state;
  BEGIN(t, T(F32, 2, 3, 4), T(F32, 3), T(F16, 3));
  pestle_value_t *y, **a = t.a;
#define NORM(last, count, axis)                                       \
  pestle_op_batch_norm_inference(                                     \
      &t.b, (pestle_value_t*[]){a[0], a[1], a[1], a[1], last}, count, \
      ATTRS(batch_norm_inference, .epsilon = 0.1, .feature_index = axis), &y)
  assert_ok(NORM(a[1], 5, 1));
  assert_type(y, T(F32, 2, 3, 4));
  BAD(NORM(a[1], 5, 2), "its extent must be that of axis 2");
  BAD(NORM(a[1], 5, 3), "'feature_index'");
  BAD(NORM(a[2], 5, 1), "element types");
  BAD(NORM(a[1], 4, 1), "takes 5");
  ir_test_end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sorts),
      cmocka_unit_test(scatters),
      cmocka_unit_test(selects_and_scatters),
      cmocka_unit_test(maps),
      cmocka_unit_test(solves),
      cmocka_unit_test(batch_norms),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
