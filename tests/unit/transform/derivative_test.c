// SPDX-License-Identifier: Apache-2.0
// Every function of derivatives.mlir, in f64, by the evaluator: its jvp against
// differences, its vjp against its jvp (<c, J t> = <J^T c, t>), the two halves of
// linearize against both; then all of that for its vjp, which is second order.
#include "transform/transform.h"
#include "transform_test.h"

static pestle_context_t* context;
static pestle_module_t* cases;

typedef struct case_t {
  const char* name;
  pestle_module_t* module;
  numbers_list_t arguments;
} case_t;

static numbers_list_t copy(const numbers_list_t* list) {
  numbers_list_t out = list_make(0);
  for (size_t i = 0; i < list->count; ++i)
    list_add(&out, &list->items[i]);
  return out;
}

static numbers_list_t directions(const numbers_list_t* like, uint64_t seed) {
  numbers_list_t out = list_make(0);
  for (size_t i = 0; i < like->count; ++i) {
    if (!is_smooth(like->items[i].type)) continue;
    list_add(&out, &like->items[i]);
    numbers_t* a = &out.items[out.count - 1];
    for (size_t k = 0; k < a->count; ++k)
      a->data[k] = 2 * next_random(&seed) - 1;
  }
  return out;
}

static void append(numbers_list_t* list, const numbers_list_t* more,
                   size_t from) {
  for (size_t i = from; i < more->count; ++i)
    list_add(list, &more->items[i]);
}

// The sum of real parts of products.
static double inner(const numbers_list_t* a, size_t from,
                    const numbers_list_t* b) {
  double sum = 0;
  assert_int_equal(a->count - from, b->count);
  for (size_t i = 0; i < b->count; ++i) {
    const numbers_t *x = &a->items[from + i], *y = &b->items[i];
    bool is_complex = pestle_type_is_complex(x->type);
    assert_int_equal(x->count, y->count);
    for (size_t k = 0; k < x->count; ++k)
      sum += (is_complex && k % 2 ? -1 : 1) * x->data[k] * y->data[k];
  }
  return sum;
}

// The function at arguments + h * tangents.
static numbers_list_t at(const case_t* c, const numbers_list_t* tangents,
                         double h) {
  numbers_list_t arguments = copy(&c->arguments);
  size_t next = 0;
  for (size_t i = 0; i < arguments.count; ++i) {
    numbers_t* a = &arguments.items[i];
    if (!is_smooth(a->type)) continue;
    const numbers_t* t = &tangents->items[next++];
    for (size_t k = 0; k < a->count; ++k)
      a->data[k] += h * t->data[k];
  }
  numbers_list_t out = run(c->module, &arguments);
  list_free(&arguments);
  return out;
}

static void check_close(const case_t* c, const char* what,
                        const numbers_list_t* got, size_t from,
                        const numbers_list_t* want, double tolerance) {
  size_t next = from;
  for (size_t i = 0; i < want->count; ++i) {
    const numbers_t* w = &want->items[i];
    if (!is_smooth(w->type)) continue;
    const numbers_t* g = &got->items[next++];
    double scale = 1 + largest(w);
    for (size_t k = 0; k < w->count; ++k) {
      double error = error_of(g->data[k], w->data[k], scale);
      if (error <= tolerance) continue;
      fail_msg("%s: %s of result %zu, element %zu: %.17g, not %.17g", c->name,
               what, i, k, g->data[k], w->data[k]);
    }
  }
  assert_int_equal(next, got->count);
}

// NaN would agree with NaN.
static void check_finite(const case_t* c, const numbers_list_t* list) {
  for (size_t i = 0; i < list->count; ++i) {
    for (size_t k = 0; k < list->items[i].count; ++k) {
      if (!isfinite(list->items[i].data[k])) {
        fail_msg("%s: result %zu is not finite", c->name, i);
      }
    }
  }
}

// Central differences with a Richardson step.
static numbers_list_t differences(const case_t* c,
                                  const numbers_list_t* tangents) {
  const double h = 0x1p-9;
  numbers_list_t a = at(c, tangents, h), b = at(c, tangents, -h);
  numbers_list_t d = at(c, tangents, h / 2), e = at(c, tangents, -h / 2);
  for (size_t i = 0; i < a.count; ++i) {
    for (size_t k = 0; k < a.items[i].count; ++k) {
      double wide = (a.items[i].data[k] - b.items[i].data[k]) / (2 * h);
      double near = (d.items[i].data[k] - e.items[i].data[k]) / h;
      a.items[i].data[k] = (4 * near - wide) / 3;
    }
  }
  list_free(&b);
  list_free(&d);
  list_free(&e);
  return a;
}

static numbers_list_t run_with(pestle_module_t* module, const numbers_list_t* a,
                               const numbers_list_t* b, size_t from) {
  numbers_list_t all = copy(a);
  append(&all, b, from);
  assert_ok(pestle_module_verify(module));
  numbers_list_t out = run(module, &all);
  list_free(&all);
  return out;
}

// Gradients that are one op each.
static size_t count_whole(pestle_module_t* module) {
  size_t count = 0;
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    const pestle_node_t* n = NULL;
    while ((n = pestle_region_next(f->body, n))) {
      count += n->op == PESTLE_OP_ATTENTION_GRAD ||
               n->op == PESTLE_OP_NORM_GRAD ||
               n->op == PESTLE_OP_BATCH_NORM_GRAD;
    }
  }
  return count;
}

// f(x) = y, r; linear(r, t) and its transposed. One that is to be transposed may have ops
// that have no meaning else, and so has gradients whole, as |whole| of a vjp.
static void check_linearize(const case_t* c, bool to_transpose,
                            size_t result_count, const numbers_list_t* tangents,
                            const numbers_list_t* jvp,
                            const numbers_list_t* cts,
                            const numbers_list_t* vjp, size_t whole) {
  pestle_module_t *forward, *linear, *backward;
  uint32_t list[64];
  pestle_transform_options_t how = {.struct_size = sizeof(how),
                                    .to_transpose = to_transpose};
  assert_ok(pestle_module_linearize(c->module, &how, &forward, &linear));
  assert_ok(pestle_module_verify(forward));
  numbers_list_t f = run(forward, &c->arguments);
  numbers_list_t residuals = list_make(0), none = list_make(0);
  append(&residuals, &f, result_count);
  numbers_list_t y = list_make(0), want = list_make(0);
  if (!to_transpose) {
    append(&want, jvp, result_count);
    list_free(&y);
    y = run_with(linear, &residuals, tangents, 0);
    check_close(c, "linearize", &y, 0, &want, 1e-13);
  }
  for (size_t i = 0; i < tangents->count; ++i)
    list[i] = (uint32_t)(residuals.count + i);
  pestle_transform_options_t o = {.struct_size = sizeof(o),
                                  .arguments = list,
                                  .argument_count = tangents->count};
  assert_ok(pestle_module_transpose(linear, &o, &backward));
  if (to_transpose && count_whole(forward) + count_whole(backward) != whole)
    fail_msg("%s: halves have not the gradients of a vjp", c->name);
  // Operand and scale, and what an attention reads beside its result.
  if (to_transpose && result_count == 1 && !strcmp(c->name, "layer_norm"))
    assert_int_equal(residuals.count, 2);
  if (to_transpose && result_count == 1 && !strcmp(c->name, "attention"))
    assert_int_equal(residuals.count, 4);
  numbers_list_t x = run_with(backward, &residuals, cts, 0);
  numbers_list_t want_x = list_make(0);
  append(&want_x, vjp, result_count);
  check_close(c, "transpose", &x, 0, &want_x, 1e-13);
  numbers_list_t* all[] = {&f, &residuals, &none, &y, &want, &x, &want_x};
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i)
    list_free(all[i]);
  pestle_module_release(forward);
  pestle_module_release(linear);
  pestle_module_release(backward);
}

static void check(const case_t* c, int order) {
  pestle_module_t *jvp, *vjp;
  assert_ok(pestle_module_jvp(c->module, NULL, &jvp));
  assert_ok(pestle_module_vjp(c->module, NULL, &vjp));
  numbers_list_t value = run(c->module, &c->arguments);
  check_finite(c, &value);
  numbers_list_t tangents = directions(&c->arguments, 7);
  numbers_list_t cts = directions(&value, 11);
  numbers_list_t j = run_with(jvp, &c->arguments, &tangents, 0);
  numbers_list_t v = run_with(vjp, &c->arguments, &cts, 0);
  numbers_list_t d = differences(c, &tangents);
  check_close(c, order > 1 ? "second jvp" : "jvp",
              &(numbers_list_t){j.count - value.count, j.items + value.count},
              0, &d, 2e-7);
  double by_jvp = inner(&j, value.count, &cts);
  double by_vjp = inner(&v, value.count, &tangents);
  double scale = 1 + fabs(by_jvp);
  if (error_of(by_vjp, by_jvp, scale) > 1e-11) {
    fail_msg("%s: order %d: <c, J t> = %.17g, <J^T c, t> = %.17g", c->name,
             order, by_jvp, by_vjp);
  }
  check_linearize(c, false, value.count, &tangents, &j, &cts, &v, 0);
  check_linearize(c, true, value.count, &tangents, &j, &cts, &v,
                  count_whole(vjp));
  if (order == 1 && !strncmp(c->name, "whole_", 6))
    assert_true(count_whole(vjp) == 2);
  if (order == 1) {
    case_t next = {c->name, vjp, copy(&c->arguments)};
    append(&next.arguments, &cts, 0);
    check(&next, 2);
    list_free(&next.arguments);
  }
  numbers_list_t* all[] = {&value, &tangents, &cts, &j, &v, &d};
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i)
    list_free(all[i]);
  pestle_module_release(jvp);
  pestle_module_release(vjp);
}

static void test_function(void** state) {
  pestle_function_t* function = *state;
  case_t c = {.name = function->name};
  assert_ok(pestle_module_extract(function, &c.module));
  c.arguments = random_arguments(function, 3);
  check(&c, 1);
  list_free(&c.arguments);
  pestle_module_release(c.module);
}

// derivatives.mlir has each op that has a derivative.
static void test_all_ops_are_there(void** state) {
  (void)state;
  bool seen[PESTLE_OP_COUNT] = {false};
  for (const pestle_function_t* f = cases->first; f; f = f->next) {
    const pestle_node_t* n = NULL;
    while ((n = pestle_region_next(f->body, n)))
      seen[n->op] = true;
  }
  for (int op = 0; op < PESTLE_OP_COUNT; ++op) {
    int kind = pestle_transform_row((pestle_op_t)op).derivative;
    bool is_needed = kind != PESTLE_DERIVATIVE_ZERO &&
                     kind != PESTLE_DERIVATIVE_REFUSED &&
                     op != PESTLE_OP_CUSTOM &&  // custom_test.c
                     pestle_op_info((pestle_op_t)op)->fuse !=
                         PESTLE_FUSE_COLLECTIVE;  // collective_test.c
    if (is_needed && !seen[op]) {
      fail_msg("derivatives.mlir has no %s",
               pestle_op_info((pestle_op_t)op)->name);
    }
  }
}

int main(int argc, char** argv) {
  size_t size, count = 0;
  static struct CMUnitTest tests[1024];
  if (!getenv("PESTLE_SOURCE_DIR")) return 77;
  char* text = read_source("tests/unit/transform/derivatives.mlir", &size);
  assert_ok(pestle_context_create(NULL, &context));
  assert_ok(
      pestle_module_parse(context, text, size, "derivatives.mlir", &cases));
  if (argc < 2) {
    tests[count++] =
        (struct CMUnitTest)cmocka_unit_test(test_all_ops_are_there);
  }
  for (pestle_function_t* f = cases->first; f; f = f->next) {
    if (f->is_private || (argc > 1 && strcmp(argv[1], f->name))) continue;
    tests[count++] = (struct CMUnitTest){f->name, test_function, NULL, NULL, f};
  }
  int failed = _cmocka_run_group_tests("derivatives", tests, count, NULL, NULL);
  pestle_module_release(cases);
  pestle_context_release(context);
  free(text);
  return failed;
}
