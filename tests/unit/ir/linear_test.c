// SPDX-License-Identifier: Apache-2.0
// pestle_op_linear(), and the macros that write types and attributes.
#include "ir_test.h"
#include "pestle/helpers.h"

static void macros(void** state) {
  (void)state;
  pestle_type_t matrix = PESTLE_TYPE(PESTLE_F16, 2, 3);
  pestle_type_t number = PESTLE_TYPE(PESTLE_I64);
  assert_true(matrix.dtype == PESTLE_F16 && matrix.rank == 2);
  assert_true(matrix.dims[0] == 2 && matrix.dims[1] == 3);
  assert_true(number.dtype == PESTLE_I64 && number.rank == 0);
  assert_int_equal(pestle_type_byte_size(matrix), 12);
  assert_int_equal(pestle_type_byte_size(number), 8);
  pestle_type_t none = PESTLE_TYPE(PESTLE_F32, 0, 7);
  pestle_type_t open = PESTLE_TYPE(PESTLE_F32, PESTLE_DIM_DYNAMIC, 7);
  pestle_type_t large = PESTLE_TYPE(PESTLE_F32, INT64_MAX, 7);
  pestle_type_t opaque = PESTLE_TYPE(PESTLE_ADDR, 7);
  assert_int_equal(pestle_type_byte_size(none), 0);
  assert_int_equal(pestle_type_byte_size(open), 0);
  assert_int_equal(pestle_type_byte_size(large), 0);
  assert_int_equal(pestle_type_byte_size(opaque), 0);
  const pestle_transpose_attrs_t* attrs =
      PESTLE_ATTRS(transpose, .permutation = PESTLE_I64S(1, 0));
  assert_int_equal(attrs->struct_size, sizeof(*attrs));
  assert_int_equal(attrs->permutation.count, 2);
}

static void layers(void** state) {
  (void)state;
  BEGIN(t, T(F32, 5, 4, 3), T(F32, 3, 2), T(F32, 2), T(F32, 3));
  pestle_type_t wanted = T(F32, 5, 4, 2), row = T(F32, 2), type;
  pestle_value_t* y;
  assert_ok(pestle_op_linear(&t.b, t.a[0], t.a[1], t.a[2], &y));
  type = pestle_value_type(y);
  assert_true(pestle_type_equal(&type, &wanted));
  assert_int_equal(ir_test_node_count(&t), 3);
  assert_ok(pestle_op_linear(&t.b, t.a[0], t.a[1], NULL, &y));
  type = pestle_value_type(y);
  assert_true(pestle_type_equal(&type, &wanted));
  assert_ok(pestle_op_linear(&t.b, t.a[3], t.a[1], t.a[2], &y));
  type = pestle_value_type(y);
  assert_true(pestle_type_equal(&type, &row));
  assert_ok(pestle_op_return(&t.b, &y, 1, NULL));
  assert_ok(pestle_module_verify(t.module));
  ir_test_end(&t);
}

static void open_rows(void** state) {
  (void)state;
  BEGIN(t, T(F32, DYN, 3), T(F32, 3, 2), T(F32, 2));
  pestle_value_t* y;
  assert_ok(pestle_op_linear(&t.b, t.a[0], t.a[1], t.a[2], &y));
  pestle_type_t type = pestle_value_type(y), wanted = T(F32, DYN, 2);
  assert_true(pestle_type_equal(&type, &wanted));
  ir_test_end(&t);
}

static void refusals_add_nothing(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4, 3), T(F32, 3, 2), T(F32, 3), T(F16, 2), T0(F32));
  pestle_value_t* y = t.a[0];
  assert_error(pestle_op_linear(&t.b, t.a[1], t.a[0], NULL, &y),
               INVALID_ARGUMENT, "rows of x have 2 elements, but w has 4 rows");
  assert_null(y);
  assert_error(pestle_op_linear(&t.b, t.a[0], t.a[2], NULL, &y),
               INVALID_ARGUMENT, "w has rank 1");
  assert_error(pestle_op_linear(&t.b, t.a[4], t.a[1], NULL, &y),
               INVALID_ARGUMENT, "x has rank 0");
  assert_error(pestle_op_linear(&t.b, t.a[0], t.a[1], t.a[2], &y),
               INVALID_ARGUMENT, "one row of the 2 columns");
  assert_error(pestle_op_linear(&t.b, t.a[0], t.a[1], t.a[3], &y),
               INVALID_ARGUMENT, "the bias of f16");
  assert_int_equal(ir_test_node_count(&t), 0);
  ir_test_end(&t);
}

static pestle_status_t build(ir_test_t* t) {
  return pestle_op_linear(&t->b, t->a[0], t->a[1], t->a[2], NULL);
}
static void out_of_memory(void** state) {
  (void)state;
  const pestle_type_t types[] = {T(F32, 4, 3), T(F32, 3, 2), T(F32, 2)};
  ir_test_every_failure(types, 3, build);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(macros),        cmocka_unit_test(layers),
      cmocka_unit_test(open_rows),     cmocka_unit_test(refusals_add_nothing),
      cmocka_unit_test(out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
