// SPDX-License-Identifier: Apache-2.0
// Changes of functions, and equality and hashes of nodes.
#include "ir/equal.h"
#include "ir_test.h"

// --- Results and arguments ---

static pestle_status_t returns_negated(ir_test_t* t, pestle_value_t** out) {
  PESTLE_TRY(pestle_op_negate(&t->b, t->a[0], out));
  PESTLE_TRY(pestle_op_return(&t->b, out, 1, NULL));
  return pestle_function_set_result_name(t->function, 0, "y");
}

static void results_change_and_keep_their_names(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4), T0(I1));
  pestle_value_t* y;
  assert_ok(returns_negated(&t, &y));
  pestle_value_t* values[] = {t.a[1], y};
  assert_ok(pestle_function_set_results(t.function, values, 2,
                                        (const int64_t[]){-1, 0}));
  size_t count;
  assert_true(pestle_function_result_count(t.function, &count));
  assert_int_equal(count, 2);
  assert_int_equal(pestle_function_result_type(t.function, 0)->dtype,
                   PESTLE_I1);
  assert_null(t.function->result_names[0]);
  assert_string_equal(t.function->result_names[1], "y");
  assert_ok(pestle_module_verify(t.module));
  assert_ok(pestle_function_set_results(t.function, NULL, 0, NULL));
  assert_int_equal(y->use_count, 0);
  assert_ok(pestle_module_verify(t.module));
  ir_test_end(&t);
}

static void declared_results_follow(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4));
  pestle_value_t* y;
  pestle_type_t type = T(F32, 4);
  assert_ok(pestle_function_declare_results(t.function, &type, 1));
  assert_ok(returns_negated(&t, &y));
  pestle_value_t* values[] = {y, t.a[0]};
  assert_ok(pestle_function_set_results(t.function, values, 2, NULL));
  assert_ok(pestle_module_verify(t.module));
  ir_test_end(&t);
}

static void extents_stay_behind_their_results(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4), T(I64, 1));
  assert_ok(pestle_op_return(&t.b, t.a, 2, NULL));
  assert_ok(pestle_function_set_shape_of(t.function, 1, 0));
  pestle_value_t* values[] = {t.a[0], t.a[0], t.a[1]};
  assert_ok(pestle_function_set_results(t.function, values, 3,
                                        (const int64_t[]){-1, 0, 1}));
  assert_int_equal(pestle_function_shape_of(t.function, 2), 1);
  assert_ok(pestle_module_verify(t.module));
  assert_error(
      pestle_function_set_results(t.function, &t.a[1], 1, (const int64_t[]){2}),
      INVALID_ARGUMENT, "must stay before it");
  assert_ok(pestle_module_verify(t.module));
  ir_test_end(&t);
}

static void a_body_without_return_has_no_results_to_change(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4));
  assert_error(pestle_function_set_results(t.function, t.a, 1, NULL),
               INVALID_ARGUMENT, "has no return");
  ir_test_end(&t);
}

static void arguments_come_and_go(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4), T0(I1));
  pestle_value_t *y, *added;
  pestle_type_t type = T(I8, 2);
  assert_ok(returns_negated(&t, &y));
  assert_ok(pestle_function_add_argument(t.function, &type, "extra", &added));
  assert_string_equal(pestle_function_argument_name(t.function, 2), "extra");
  assert_error(pestle_function_remove_argument(t.function, 0), INVALID_ARGUMENT,
               "has uses");
  assert_error(pestle_function_remove_argument(t.function, 3), INVALID_ARGUMENT,
               "has 3 arguments");
  assert_ok(pestle_function_remove_argument(t.function, 1));
  assert_int_equal(added->index, 1);
  assert_string_equal(pestle_function_argument_name(t.function, 1), "extra");
  assert_ok(pestle_module_verify(t.module));
  ir_test_end(&t);
}

static void functions_leave_their_module(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4));
  pestle_value_t* y;
  assert_ok(returns_negated(&t, &y));
  pestle_function_t* f[2];
  assert_ok(pestle_module_add_function(t.module, "f", NULL, NULL, 0, &f[0]));
  assert_ok(pestle_module_add_function(t.module, "g", NULL, NULL, 0, &f[1]));
  for (int i = 0; i < 2; ++i) {
    pestle_builder_t b = pestle_builder_make(f[i]);
    assert_ok(pestle_op_return(&b, NULL, 0, NULL));
  }
  pestle_module_remove_function(f[1]);
  assert_ptr_equal(t.module->last, f[0]);
  pestle_module_remove_function(f[1]);  // is not there: nothing happens
  pestle_module_remove_function(f[0]);
  assert_ptr_equal(t.module->last, t.function);
  assert_ok(pestle_module_verify(t.module));
  ir_test_end(&t);
}

static pestle_status_t work_changes(ir_test_t* t) {
  pestle_value_t *y, *added;
  PESTLE_TRY(returns_negated(t, &y));
  pestle_type_t type = T(I8, 2);
  PESTLE_TRY(pestle_function_add_argument(t->function, &type, "x", &added));
  pestle_value_t* values[] = {added, y};
  PESTLE_TRY(pestle_function_set_results(t->function, values, 2,
                                         (const int64_t[]){-1, 0}));
  return pestle_function_remove_argument(t->function, 1);
}

static void changes_survive_failures(void** state) {
  (void)state;
  pestle_type_t types[] = {T(F32, 4), T0(I1)};
  ir_test_every_failure(types, 2, work_changes);
}

// --- Equality ---

// The sum of |x| over its axis, with an op between for |twice|.
static pestle_node_t* make_sum(ir_test_t* t, pestle_value_t* x,
                               pestle_value_t* zero, bool twice) {
  pestle_type_t types[] = {T0(F32), T0(F32)};
  pestle_region_t* region;
  pestle_builder_t inside = {.module = t->module};
  assert_ok(pestle_region_create(t->module, types, 2, &region, &inside.block));
  pestle_value_t *y = pestle_block_argument(inside.block, 1), *out;
  if (twice) assert_ok(pestle_op_add(&inside, y, y, &y));
  assert_ok(
      pestle_op_add(&inside, pestle_block_argument(inside.block, 0), y, &y));
  assert_ok(pestle_op_return(&inside, &y, 1, NULL));
  pestle_value_t* operands[] = {x, zero};
  assert_ok(pestle_op_reduce(&t->b, operands, 2,
                             ATTRS(reduce, .dimensions = I64S(0)), region, &out,
                             1));
  return out->node;
}

static void equal_nodes_have_equal_hashes(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4), T(F32, 4));
  pestle_value_t *a, *b, *c, *d;
  assert_ok(pestle_op_add(&t.b, t.a[0], t.a[1], &a));
  assert_ok(pestle_op_add(&t.b, t.a[1], t.a[0], &b));
  assert_ok(pestle_op_subtract(&t.b, t.a[0], t.a[1], &c));
  assert_ok(pestle_op_subtract(&t.b, t.a[1], t.a[0], &d));
  assert_true(pestle_node_equal(a->node, b->node));
  assert_true(pestle_node_hash(a->node) == pestle_node_hash(b->node));
  assert_false(pestle_node_equal(a->node, c->node));
  assert_false(pestle_node_equal(c->node, d->node));
  assert_ok(pestle_op_return(&t.b, &d, 1, NULL));
  ir_test_end(&t);
}

static void attributes_tell_nodes_apart(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4, 4));
  pestle_value_t *a, *b, *c;
  assert_ok(pestle_op_reverse(&t.b, t.a[0],
                              ATTRS(reverse, .dimensions = I64S(0)), &a));
  assert_ok(pestle_op_reverse(&t.b, t.a[0],
                              ATTRS(reverse, .dimensions = I64S(1)), &b));
  assert_ok(pestle_op_reverse(&t.b, t.a[0],
                              ATTRS(reverse, .dimensions = I64S(0)), &c));
  assert_false(pestle_node_equal(a->node, b->node));
  assert_true(pestle_node_equal(a->node, c->node));
  ir_test_end(&t);
}

static void regions_are_compared_by_place(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4), T0(F32), T0(F32));
  const pestle_node_t* a = make_sum(&t, t.a[0], t.a[1], true);
  const pestle_node_t* b = make_sum(&t, t.a[0], t.a[1], true);
  const pestle_node_t* c = make_sum(&t, t.a[0], t.a[1], false);
  const pestle_node_t* d = make_sum(&t, t.a[0], t.a[2], true);
  assert_true(pestle_node_equal(a, b));
  assert_true(pestle_node_hash(a) == pestle_node_hash(b));
  assert_false(pestle_node_equal(a, c));
  assert_false(pestle_node_equal(a, d));
  assert_true(pestle_region_equal(a->regions[0], d->regions[0]));
  ir_test_end(&t);
}

// if |p| then |x| else the negated |x|
static pestle_node_t* make_if(ir_test_t* t, pestle_value_t* p,
                              pestle_value_t* x, bool swapped) {
  pestle_region_t* regions[2];
  for (int i = 0; i < 2; ++i) {
    pestle_builder_t inside = {.module = t->module};
    assert_ok(
        pestle_region_create(t->module, NULL, 0, &regions[i], &inside.block));
    pestle_value_t* y = x;
    if (i != swapped) assert_ok(pestle_op_negate(&inside, x, &y));
    assert_ok(pestle_op_return(&inside, &y, 1, NULL));
  }
  pestle_value_t* out;
  assert_ok(pestle_op_if(&t->b, p, NULL, regions[0], regions[1], &out, 1));
  return out->node;
}

static void captured_values_must_be_the_same(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4), T(F32, 4), T0(I1));
  const pestle_node_t* a = make_if(&t, t.a[2], t.a[0], false);
  const pestle_node_t* b = make_if(&t, t.a[2], t.a[0], false);
  const pestle_node_t* c = make_if(&t, t.a[2], t.a[1], false);
  const pestle_node_t* d = make_if(&t, t.a[2], t.a[0], true);
  assert_true(pestle_node_equal(a, b));
  assert_false(pestle_node_equal(a, c));
  assert_false(pestle_node_equal(a, d));
  ir_test_end(&t);
}

// --- Heirs ---

static pestle_node_t* negated(ir_test_t* t, pestle_value_t* x) {
  pestle_value_t* y;
  assert_ok(pestle_op_negate(&t->b, x, &y));
  return y->node;
}

static void replace(pestle_node_t* node, pestle_node_t* by) {
  pestle_value_replace_all_uses(&node->results[0], &by->results[0]);
  pestle_node_erase(node);
}

// e(d(x)) becomes one op, and that another one.
static void a_pattern_has_one_heir(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4));
  pestle_node_t* d = negated(&t, t.a[0]);
  pestle_node_t* e = negated(&t, &d->results[0]);
  pestle_node_t* used = negated(&t, t.a[0]);
  pestle_node_t* g = negated(&t, &used->results[0]);
  pestle_node_t* one = negated(&t, t.a[0]);
  pestle_node_t* other = negated(&t, t.a[0]);
  pestle_value_t* results[] = {&e->results[0], &g->results[0],
                               &used->results[0]};
  assert_ok(pestle_op_return(&t.b, results, 3, NULL));
  assert_ptr_equal(pestle_node_heir(e), e);
  replace(e, one);
  assert_ptr_equal(pestle_node_heir(e), one);
  assert_ptr_equal(pestle_node_heir(d), one);  // only e used it
  pestle_node_erase(d);
  replace(one, other);
  assert_ptr_equal(pestle_node_heir(e), other);
  assert_ptr_equal(pestle_node_heir(d), other);
  // What others use keeps its own meaning.
  replace(g, other);
  assert_ptr_equal(pestle_node_heir(g), other);
  assert_ptr_equal(pestle_node_heir(used), used);
  ir_test_end(&t);
}

static void what_is_dropped_has_no_heir(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4));
  pestle_node_t* d = negated(&t, t.a[0]);
  pestle_node_t* e = negated(&t, &d->results[0]);
  pestle_node_t* f = negated(&t, t.a[0]);
  assert_ok(pestle_op_return(&t.b, &f->results, 0, NULL));
  pestle_node_erase(e);
  assert_ptr_equal(pestle_node_heir(e), e);
  assert_ptr_equal(pestle_node_heir(d), d);
  // An argument is nobody's heir.
  pestle_value_replace_all_uses(&d->results[0], t.a[0]);
  assert_ptr_equal(pestle_node_heir(d), d);
  ir_test_end(&t);
}

// Heirs of each other, and heirs that were dropped again.
static void heirs_make_no_circle(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4));
  pestle_node_t* d = negated(&t, t.a[0]);
  pestle_node_t* e = negated(&t, t.a[0]);
  pestle_node_t* f = negated(&t, t.a[0]);
  pestle_node_set_heir(d, e);
  pestle_node_set_heir(e, d);
  assert_ptr_equal(pestle_node_heir(d), e);
  assert_ptr_equal(pestle_node_heir(e), e);
  pestle_node_set_heir(d, f);  // e lives
  assert_ptr_equal(pestle_node_heir(d), e);
  pestle_node_erase(e);
  pestle_node_set_heir(d, f);
  assert_ptr_equal(pestle_node_heir(d), f);
  ir_test_end(&t);
}

// A convolution in another layout, with a transpose behind it, is still the
// convolution.
static void what_computes_is_the_heir(void** state) {
  (void)state;
  BEGIN(t, T(F32, 2, 3));
  t.b.loc = (pestle_loc_t){.name = "neg"};
  pestle_node_t* d = negated(&t, t.a[0]);
  pestle_node_t* inner = negated(&t, t.a[0]);
  pestle_value_t* turned;
  pestle_transpose_attrs_t a = {sizeof(a), .permutation = PESTLE_I64S(0, 1)};
  assert_ok(pestle_op_transpose(&t.b, &inner->results[0], &a, &turned));
  pestle_value_replace_all_uses(&d->results[0], turned);
  assert_ptr_equal(pestle_node_heir(d), inner);
  ir_test_end(&t);
}

static void a_chain_of_heirs_is_short(void** state) {
  (void)state;
  BEGIN(t, T(F32, 4));
  enum { LONG = 200000 };
  pestle_node_t* first = negated(&t, t.a[0]);
  for (int i = 0; i < LONG; ++i) {
    pestle_node_t* next = negated(&t, t.a[0]);
    pestle_value_replace_all_uses(&pestle_node_heir(first)->results[0],
                                  &next->results[0]);
    assert_ptr_equal(pestle_node_heir(first), next);
  }
  ir_test_end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_change_and_keep_their_names),
      cmocka_unit_test(declared_results_follow),
      cmocka_unit_test(extents_stay_behind_their_results),
      cmocka_unit_test(a_body_without_return_has_no_results_to_change),
      cmocka_unit_test(arguments_come_and_go),
      cmocka_unit_test(functions_leave_their_module),
      cmocka_unit_test(changes_survive_failures),
      cmocka_unit_test(equal_nodes_have_equal_hashes),
      cmocka_unit_test(attributes_tell_nodes_apart),
      cmocka_unit_test(regions_are_compared_by_place),
      cmocka_unit_test(captured_values_must_be_the_same),
      cmocka_unit_test(a_pattern_has_one_heir),
      cmocka_unit_test(what_is_dropped_has_no_heir),
      cmocka_unit_test(heirs_make_no_circle),
      cmocka_unit_test(what_computes_is_the_heir),
      cmocka_unit_test(a_chain_of_heirs_is_short),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
