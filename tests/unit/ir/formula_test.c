// SPDX-License-Identifier: Apache-2.0
// The formula builder: its sticky error, constants, steps that change nothing.
#include "ir/formula.h"

#include "ir_test.h"

#define BEGIN_FORMULA(...) \
  BEGIN(t, __VA_ARGS__);   \
  pestle_formula_t f = pestle_formula_make(t.b)

static void ends(ir_test_t* t, pestle_formula_t* f, pestle_value_t* y) {
  assert_ok(f->status);
  assert_non_null(y);
  assert_ok(pestle_op_return(&f->builder, &y, 1, NULL));
  assert_ok(pestle_module_verify(t->module));
  ir_test_end(t);
}

static size_t count_ops(const ir_test_t* t) {
  size_t count = 0;
  for (const pestle_node_t* n = t->b.block->first; n; n = n->next)
    ++count;
  return count;
}

static void formulas_are_ops(void** state) {
  (void)state;
  BEGIN_FORMULA(T(F32, 3, 4));
  // exp(x - max(x)) over the last axis
  pestle_i64s_t axes = PESTLE_I64S(1), kept = PESTLE_I64S(0);
  pestle_value_t* x = t.a[0];
  pestle_value_t* max = pestle_f_reduce(&f, PESTLE_OP_MAXIMUM, x, axes, -1e30);
  max = pestle_f_broadcast(&f, max, 2, x->type->dims, kept);
  pestle_value_t* e = pestle_f_exponential(&f, pestle_f_subtract(&f, x, max));
  assert_int_equal(e->node->op, PESTLE_OP_EXP);
  pestle_op_t op = pestle_block_reduce_op(
      pestle_node_body(pestle_node_operand(max->node, 0)->node, 0));
  assert_int_equal(op, PESTLE_OP_MAXIMUM);
  ends(&t, &f, e);
}

static void the_first_failure_is_kept(void** state) {
  (void)state;
  BEGIN_FORMULA(T(F32, 4), T(F32, 5));
  pestle_value_t* bad = pestle_f_add(&f, t.a[0], t.a[1]);
  assert_null(bad);
  size_t count = count_ops(&t);
  // What follows does nothing, whether it depends on the failure or not.
  assert_null(pestle_f_exponential(&f, bad));
  assert_null(pestle_f_exponential(&f, t.a[0]));
  assert_null(pestle_f_plus(&f, bad, 1));
  assert_null(pestle_f_convert(&f, bad, PESTLE_F16));
  assert_null(pestle_f_reshape(&f, bad, 0, NULL));
  assert_null(pestle_f_transpose(&f, bad, NULL));
  assert_null(pestle_f_slice_axis(&f, bad, 0, 0, 1));
  assert_null(pestle_f_part(&f, bad, 0, 0));
  assert_null(pestle_f_pad_end(&f, bad, 0, 1));
  assert_null(pestle_f_stack(&f, (pestle_value_t*[]){t.a[0], bad}, 2));
  assert_null(pestle_f_region(&f, PESTLE_OP_ADD, PESTLE_F32));
  assert_null(pestle_f_reduce(&f, PESTLE_OP_ADD, bad, PESTLE_I64S(0), 0));
  assert_null(pestle_f_numbers(&f, t.a[0]->type, (double[]){1, 2, 3, 4}));
  assert_int_equal(count_ops(&t), count);
  assert_error(f.status, INVALID_ARGUMENT, "shapes must be equal");
  ir_test_end(&t);
}

static void no_operand_is_no_op(void** state) {
  (void)state;
  BEGIN_FORMULA(T(F32, 4));
  assert_null(pestle_f_add(&f, t.a[0], NULL));
  assert_null(pestle_f_select(&f, NULL, t.a[0], t.a[0]));
  assert_null(pestle_f_splat(&f, NULL, 1));
  assert_null(f.status);
  assert_int_equal(count_ops(&t), 0);
  ir_test_end(&t);
}

static void what_changes_nothing_is_no_op(void** state) {
  (void)state;
  BEGIN_FORMULA(T(F32, 3, 4));
  pestle_value_t* x = t.a[0];
  const int64_t order[] = {0, 1};
  assert_ptr_equal(pestle_f_convert(&f, x, PESTLE_F32), x);
  assert_ptr_equal(pestle_f_bitcast(&f, x, PESTLE_F32), x);
  assert_ptr_equal(pestle_f_reshape(&f, x, 2, x->type->dims), x);
  assert_ptr_equal(pestle_f_transpose(&f, x, order), x);
  assert_ptr_equal(
      pestle_f_broadcast(&f, x, 2, x->type->dims, PESTLE_I64S(0, 1)), x);
  assert_ptr_equal(pestle_f_slice_axis(&f, x, 1, 0, 4), x);
  assert_ptr_equal(pestle_f_pad_end(&f, x, 1, 0), x);
  assert_int_equal(count_ops(&t), 0);
  // Axes of one extent may still change places.
  const int64_t square[] = {3, 3};
  pestle_value_t* y = pestle_f_slice_axis(&f, x, 1, 0, 3);
  assert_ptr_not_equal(pestle_f_broadcast(&f, y, 2, square, PESTLE_I64S(1, 0)),
                       y);
  ends(&t, &f, y);
}

// The bits of the one element of |value|.
static uint64_t bits_of(const pestle_value_t* value) {
  const pestle_elements_t* e = pestle_value_constant(value);
  assert_non_null(e);
  assert_true(e->splat);
  uint64_t bits = 0;
  memcpy(&bits, e->data, e->size < 8 ? e->size : 8);
  return bits;
}

static void numbers_have_the_bits_of_their_type(void** state) {
  (void)state;
  BEGIN_FORMULA(T(F32, 4));
  assert_int_equal(bits_of(pestle_f_scalar(&f, PESTLE_F32, 1)), 0x3f800000);
  assert_int_equal(bits_of(pestle_f_scalar(&f, PESTLE_F16, -2)), 0xc000);
  assert_int_equal(bits_of(pestle_f_scalar(&f, PESTLE_BF16, 1)), 0x3f80);
  assert_int_equal(bits_of(pestle_f_scalar(&f, PESTLE_I8, -1)), 0xff);
  assert_int_equal(bits_of(pestle_f_scalar(&f, PESTLE_I1, 1)), 1);
  assert_true(bits_of(pestle_f_scalar(&f, PESTLE_U64, 0x1p63)) == UINT64_C(1)
                                                                      << 63);
  assert_true(bits_of(pestle_f_scalar(&f, PESTLE_I64, -0x1p63)) == UINT64_C(1)
                                                                       << 63);
  assert_int_equal(bits_of(pestle_f_scalar(&f, PESTLE_C64, 1)), 0x3f800000);
  pestle_value_t* c = pestle_f_scalar(&f, PESTLE_C128, 1);
  const double want[2] = {1, 0};
  assert_memory_equal(pestle_value_constant(c)->data, want, sizeof(want));
  assert_int_equal(
      bits_of(pestle_f_identity(&f, PESTLE_OP_MULTIPLY, PESTLE_I16)), 1);
  // -0 + x is x, of -0 too.
  assert_true(bits_of(pestle_f_identity(&f, PESTLE_OP_ADD, PESTLE_F32)) ==
              0x80000000);
  pestle_type_t type = T(I16, 3);
  pestle_value_t* three =
      pestle_f_numbers(&f, &type, (const double[]){1, -2, 3});
  const int16_t numbers[] = {1, -2, 3};
  assert_memory_equal(pestle_value_constant(three)->data, numbers,
                      sizeof(numbers));
  ends(&t, &f, three);
}

static void windows_are_reduced(void** state) {
  (void)state;
  BEGIN_FORMULA(T(F32, 3, 8));
  pestle_windows_t w;
  pestle_windows_init(&w);
  w.sizes[1] = w.strides[1] = 2;
  pestle_value_t* zero = pestle_f_scalar(&f, PESTLE_F32, 0);
  pestle_value_t* y =
      pestle_f_reduce_windows(&f, PESTLE_OP_ADD, t.a[0], zero, &w);
  assert_int_equal(y->type->dims[0], 3);
  assert_int_equal(y->type->dims[1], 4);
  ends(&t, &f, y);
}

static pestle_status_t work_formula(ir_test_t* t) {
  pestle_formula_t f = pestle_formula_make(t->b);
  pestle_value_t* x = t->a[0];
  pestle_value_t* row = pestle_f_part(&f, x, 0, 1);
  pestle_value_t* table =
      pestle_f_numbers(&f, row ? row->type : x->type,
                       (const double[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  row = pestle_f_multiply(&f, row, table);
  pestle_value_t* both = pestle_f_stack(&f, (pestle_value_t*[]){row, row}, 2);
  both = pestle_f_pad_end(&f, both, 1, 3);
  both = pestle_f_reverse(&f, both, PESTLE_I64S(1));
  both = pestle_f_reduce(&f, PESTLE_OP_ADD, both, PESTLE_I64S(0, 1), 0);
  (void)pestle_f_copy_sign(&f, both, both);
  return f.status;
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  pestle_type_t types[] = {T(F32, 3, 4)};
  ir_test_every_failure(types, 1, work_formula);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(formulas_are_ops),
      cmocka_unit_test(the_first_failure_is_kept),
      cmocka_unit_test(no_operand_is_no_op),
      cmocka_unit_test(what_changes_nothing_is_no_op),
      cmocka_unit_test(numbers_have_the_bits_of_their_type),
      cmocka_unit_test(windows_are_reduced),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
