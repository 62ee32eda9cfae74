// SPDX-License-Identifier: Apache-2.0
// Axes as lists of atoms: what splits, what is one, what cannot be, and what views
// make of them.
#include "passes/axes.h"

#include "passes_test.h"

static int64_t extent_of(const pestle_axes_t* t, const pestle_axis_t* axis,
                         uint8_t i) {
  return t->atoms[axis->atoms[i]].extent;
}

static void test_equations(void** state) {
  (void)state;
  pestle_axes_t t = {.count = 0};
  pestle_axis_t whole = pestle_axes_new(&t, 12, true), parts = {.count = 0};
  pestle_axis_t three = pestle_axes_new(&t, 3, false);
  pestle_axis_t four = pestle_axes_new(&t, 4, false);
  pestle_axes_append(&t, &parts, &three);
  pestle_axes_append(&t, &parts, &four);
  assert_true(pestle_axes_equate(&t, whole, parts));
  pestle_axes_expand(&t, &whole);
  assert_int_equal(whole.count, 2);
  assert_int_equal(extent_of(&t, &whole, 0), 3);
  assert_int_equal(extent_of(&t, &whole, 1), 4);
  assert_int_equal(pestle_axes_extent(&t, &whole), 12);
  assert_int_equal(pestle_axes_common(&t, &whole, &three), 1);
  assert_int_equal(pestle_axes_common(&t, &three, &whole), 1);
  // What is known to be two stays two; what is one may be said again.
  pestle_axis_t other = pestle_axes_new(&t, 4, true);
  assert_false(pestle_axes_equate(&t, four, other));
  assert_true(pestle_axes_equate(&t, four, four));
  // 4 and 6 elements have no common parts in this order.
  pestle_axis_t six = pestle_axes_new(&t, 6, false), left = four, right = six;
  pestle_axes_append(&t, &left, &six);
  pestle_axes_append(&t, &right, &four);
  assert_false(pestle_axes_equate(&t, left, right));
  // Nor have 12 and 8.
  pestle_axis_t eight = pestle_axes_new(&t, 8, false);
  assert_false(pestle_axes_equate(&t, whole, eight));
  // One element is no axis.
  pestle_axis_t one = pestle_axes_new(&t, 1, true);
  assert_int_equal(one.count, 0);
  assert_false(t.full);
}

static void test_no_room(void** state) {
  (void)state;
  pestle_axes_t t = {.count = 0};
  (void)pestle_axes_new(&t, 0, true);
  assert_true(t.full);
  t = (pestle_axes_t){.count = 0};
  for (int i = 0; i < 2 * PESTLE_AXES_ATOMS; ++i)
    (void)pestle_axes_new(&t, 2, false);
  assert_true(t.full);
  // An axis of 2^24 elements has as many atoms as fit, one of 2^25 has not.
  for (int bits = 24; bits < 26; ++bits) {
    t = (pestle_axes_t){.count = 0};
    pestle_axis_t whole = pestle_axes_new(&t, INT64_C(1) << bits, false);
    pestle_axis_t parts = {.count = 0};
    for (int i = 0; i < bits; ++i) {
      pestle_axis_t two = pestle_axes_new(&t, 2, true);
      pestle_axes_append(&t, &parts, &two);
    }
    bool fits = pestle_axes_equate(&t, whole, parts);
    assert_int_equal(fits && !t.full, bits == 24);
  }
}

static const char views[] =
    "func.func @main(%x: tensor<2x6x1x5xf32>) -> tensor<5x3x2x2x7xf32> {\n"
    "  %0 = stablehlo.transpose %x, dims = [3, 1, 2, 0] : "
    "(tensor<2x6x1x5xf32>) -> tensor<5x6x1x2xf32>\n"
    "  %1 = stablehlo.reshape %0 : (tensor<5x6x1x2xf32>) -> "
    "tensor<5x3x2x2xf32>\n"
    "  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2, 3] : "
    "(tensor<5x3x2x2xf32>) -> tensor<5x3x2x2x7xf32>\n"
    "  return %2 : tensor<5x3x2x2x7xf32>\n}\n";

static void test_views(void** state) {
  (void)state;
  pestle_context_t* context = test_context();
  pestle_module_t* module = test_parse(context, views);
  pestle_block_t* block = pestle_module_entry(module)->body->block;
  pestle_value_t* y = pestle_node_operand(block->last, 0);
  pestle_axes_t t = {.count = 0};
  pestle_axes_list_t axes, of;
  pestle_axes_of(&t, y->type, true, &of);
  // The broadcast repeats: not without leave.
  pestle_value_t* x = y;
  axes = of;
  assert_false(pestle_axes_step(&t, false, false, &x, &axes));
  assert_ptr_equal(x, y);
  pestle_axes_trace(&t, true, true, &x, &axes);
  assert_ptr_equal(x, pestle_block_argument(block, 0));
  assert_int_equal(axes.rank, 4);
  static const int want[4][3] = {{3}, {1, 2}, {0}, {0}};
  static const uint8_t counts[4] = {1, 2, 0, 1};
  for (int i = 0; i < 4; ++i) {
    pestle_axes_expand(&t, &axes.axis[i]);
    assert_int_equal(axes.axis[i].count, counts[i]);
    for (int j = 0; j < counts[i]; ++j) {
      assert_int_equal(axes.axis[i].atoms[j], of.axis[want[i][j]].atoms[0]);
    }
  }
  // The way back is one of each view; without what it lacks there is one element.
  pestle_formula_t f = pestle_formula_before(block->last);
  pestle_value_t* made = pestle_axes_arrange(&t, &f, x, &axes, &of, true);
  assert_ok(f.status);
  assert_true(pestle_type_equal(made->type, y->type));
  made = pestle_axes_arrange(&t, &f, x, &axes, &of, false);
  assert_ok(f.status);
  assert_int_equal(made->type->dims[3], 2);
  assert_int_equal(made->type->dims[4], 1);
  // What does not have all of its atoms is no place for it.
  of.rank = 2;
  assert_null(pestle_axes_arrange(&t, &f, x, &axes, &of, true));
  assert_ok(f.status);
  pestle_module_release(module);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equations),
      cmocka_unit_test(test_no_room),
      cmocka_unit_test(test_views),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
