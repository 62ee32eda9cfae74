// SPDX-License-Identifier: Apache-2.0
// qr by reflections (Householder). The matrix lies transposed, so that what is
// one column of it is one row here:
//
//   for k: x = row k from k on; v, tau, beta with (1 - tau v v') x = beta e_k
//          rows j > k:  a_j -= tau (a_j . v) v
//          row k:       what was, beta, then v without its first element, 1
//   for k from the last: rows of Q':  q_j -= tau_k (q_j . v_k) v_k
//
// At the end rows of R and of Q' change their signs where R's diagonal is
// negative.
#include "ir/composite_matrix.h"

typedef struct qr_t {
  int64_t steps;  // of the first loop
  pv_t *a, *tau;  // what it made, for the second
} qr_t;

// Scalar |k| in the shape of |like|.
static pv_t* everywhere(pestle_formula_t* f, pv_t* k, const pv_t* like) {
  return pestle_matrix_over(f, k, like, NULL);
}

// What one reflection is: v [batch, m], tau and beta [batch].
typedef struct reflection_t {
  pv_t *v, *tau, *beta;
} reflection_t;

// Of |x|, of which the elements from |k| on count. They are scaled, so that
// squares neither overflow nor vanish.
static reflection_t reflection(pestle_formula_t* f, pv_t* x, pv_t* k) {
  reflection_t out;
  pv_t* zeros = pestle_matrix_fill(f, x, 0);
  pv_t* i = pestle_matrix_iota(f, x, 1);
  pv_t* at = pestle_f_eq(f, i, everywhere(f, k, i));
  pv_t* behind = pestle_f_gt(f, i, everywhere(f, k, i));
  pv_t* counts = pestle_f_or(f, at, behind);
  x = pestle_f_select(f, counts, x, zeros);
  pv_t* size = pestle_f_abs(f, x);
  size = pestle_matrix_reduce(f, PESTLE_OP_MAXIMUM, size, 1, 0);
  size = pestle_matrix_power(f, size);
  x = pestle_f_divide(f, x, pestle_matrix_per_batch(f, size, x));
  pv_t* rest = pestle_f_select(f, behind, x, zeros);
  rest = pestle_matrix_sum(f, pestle_f_multiply(f, rest, rest), 1);
  pv_t* alpha = pestle_f_select(f, at, x, zeros);
  alpha = pestle_matrix_sum(f, alpha, 1);
  pv_t* none = pestle_matrix_fill(f, alpha, 0);
  pv_t* done = pestle_f_eq(f, rest, none);
  pv_t* norm = pestle_f_add(f, pestle_f_multiply(f, alpha, alpha), rest);
  norm = pestle_f_sqrt(f, norm);
  pv_t* other = pestle_f_negate(f, norm);
  pv_t* negative = pestle_f_lt(f, alpha, none);
  pv_t* beta = pestle_f_select(f, negative, norm, other);
  pv_t* one = pestle_matrix_fill(f, alpha, 1);
  pv_t* by = pestle_f_subtract(f, alpha, beta);
  by = pestle_f_select(f, done, one, by);
  pv_t* tau = pestle_f_subtract(f, beta, alpha);
  tau = pestle_f_divide(f, tau, beta);
  out.tau = pestle_f_select(f, done, none, tau);
  beta = pestle_f_select(f, done, alpha, beta);
  out.beta = pestle_f_multiply(f, beta, size);
  pv_t* v = pestle_f_divide(f, x, pestle_matrix_per_batch(f, by, x));
  v = pestle_f_select(f, behind, v, zeros);
  pv_t* ones = pestle_matrix_fill(f, x, 1);
  out.v = pestle_f_select(f, at, ones, v);
  return out;
}

// Rows of |a| reflected: a - tau (a . v) v.
static pv_t* reflected(pestle_formula_t* f, pv_t* a, pv_t* v, pv_t* tau) {
  pv_t* wide = pestle_matrix_across(f, v, a);
  pv_t* dots = pestle_matrix_sum(f, pestle_f_multiply(f, a, wide), 2);
  dots = pestle_f_multiply(f, dots, pestle_matrix_per_batch(f, tau, dots));
  dots = pestle_matrix_down(f, dots, a);
  return pestle_f_subtract(f, a, pestle_f_multiply(f, dots, wide));
}

// --- The first loop: k, a, tau [batch, steps] ---

static pv_t* before_end(pestle_formula_t* f, void* user, pv_t* const* state) {
  qr_t* q = user;
  pv_t* end = pestle_matrix_i32(f, q->steps);
  return pestle_f_lt(f, state[0], end);
}

static void eliminate(pestle_formula_t* f, void* user, pv_t** state) {
  pv_t *k = state[0], *a = state[1];
  (void)user;
  pv_t* x = pestle_matrix_row(f, a, k);
  reflection_t r = reflection(f, x, k);
  pv_t* j = pestle_matrix_iota(f, a, 1);
  pv_t* later = pestle_f_gt(f, j, everywhere(f, k, j));
  pv_t* turned = reflected(f, a, r.v, r.tau);
  turned = pestle_f_select(f, later, turned, a);
  pv_t* i = pestle_matrix_iota(f, x, 1);
  pv_t* at = pestle_f_eq(f, i, everywhere(f, k, i));
  pv_t* behind = pestle_f_gt(f, i, everywhere(f, k, i));
  pv_t* row = pestle_f_select(f, behind, r.v, x);
  pv_t* beta = pestle_matrix_per_batch(f, r.beta, x);
  row = pestle_f_select(f, at, beta, row);
  state[1] = pestle_matrix_set_row(f, turned, row, k);
  i = pestle_matrix_iota(f, state[2], 1);
  at = pestle_f_eq(f, i, everywhere(f, k, i));
  pv_t* tau = pestle_matrix_per_batch(f, r.tau, state[2]);
  state[2] = pestle_f_select(f, at, tau, state[2]);
  pv_t* one = pestle_matrix_i32(f, 1);
  state[0] = pestle_f_add(f, k, one);
}

// --- The second: k, Q' ---

static pv_t* after_begin(pestle_formula_t* f, void* user, pv_t* const* state) {
  (void)user;
  pv_t* zero = pestle_matrix_i32(f, 0);
  return pestle_f_ge(f, state[0], zero);
}

static void collect(pestle_formula_t* f, void* user, pv_t** state) {
  qr_t* q = user;
  pv_t* k = state[0];
  pv_t* v = pestle_matrix_row(f, q->a, k);
  pv_t* i = pestle_matrix_iota(f, v, 1);
  pv_t* at = pestle_f_eq(f, i, everywhere(f, k, i));
  pv_t* behind = pestle_f_gt(f, i, everywhere(f, k, i));
  pv_t* zeros = pestle_matrix_fill(f, v, 0);
  v = pestle_f_select(f, behind, v, zeros);
  pv_t* ones = pestle_matrix_fill(f, v, 1);
  v = pestle_f_select(f, at, ones, v);
  i = pestle_matrix_iota(f, q->tau, 1);
  at = pestle_f_eq(f, i, everywhere(f, k, i));
  pv_t* none = pestle_matrix_fill(f, q->tau, 0);
  pv_t* tau = pestle_f_select(f, at, q->tau, none);
  tau = pestle_matrix_sum(f, tau, 1);
  state[1] = reflected(f, state[1], v, tau);
  pv_t* one = pestle_matrix_i32(f, 1);
  state[0] = pestle_f_subtract(f, k, one);
}

// --- The whole ---

// R [batch, k, n] and where its diagonal is negative, [batch, k].
static pv_t* triangle(pestle_formula_t* f, pv_t* a, int64_t k,
                      pv_t** out_negative) {
  pv_t* r = pestle_f_slice_axis(f, pestle_matrix_transpose(f, a), 1, 0, k);
  pv_t* i = pestle_matrix_iota(f, r, 1);
  pv_t* j = pestle_matrix_iota(f, r, 2);
  pv_t* diagonal = pestle_f_eq(f, i, j);
  pv_t* zeros = pestle_matrix_fill(f, r, 0);
  pv_t* d = pestle_f_select(f, diagonal, r, zeros);
  d = pestle_matrix_sum(f, d, 2);
  pv_t* none = pestle_matrix_fill(f, d, 0);
  *out_negative = pestle_f_lt(f, d, none);
  pv_t* other = pestle_f_negate(f, r);
  pv_t* flips = pestle_matrix_down(f, *out_negative, r);
  r = pestle_f_select(f, flips, other, r);
  pv_t* upper = pestle_f_le(f, i, j);
  return pestle_f_select(f, upper, r, zeros);
}

pv_t* pestle_matrix_reflections(pestle_formula_t* f, pv_t* a, pv_t** out_tau) {
  *out_tau = NULL;
  if (!a) return NULL;
  int64_t rows = a->type->dims[1], columns = a->type->dims[2];
  qr_t q = {.steps = rows < columns ? rows : columns};
  pestle_type_t type = pestle_type_make(a->type->dtype, 2,
                                        (int64_t[]){a->type->dims[0], q.steps});
  pestle_matrix_loop_t loop = {before_end, eliminate, &q, .count = 3};
  loop.state[0] = pestle_matrix_i32(f, 0);
  loop.state[1] = a;
  loop.state[2] = pestle_f_number(f, &type, 0);
  pestle_matrix_loop(f, &loop);
  *out_tau = loop.state[2];
  return loop.state[1];
}

pv_t* pestle_matrix_of_reflections(pestle_formula_t* f, pv_t* a, pv_t* tau,
                                   int64_t rows) {
  if (!a || !tau) return NULL;
  qr_t q = {.a = a, .tau = tau};
  pestle_matrix_loop_t loop = {after_begin, collect, &q, .count = 2};
  loop.state[0] = pestle_matrix_i32(f, tau->type->dims[1] - 1);
  loop.state[1] = pestle_matrix_unit(f, a, rows, a->type->dims[2]);
  pestle_matrix_loop(f, &loop);
  return loop.state[1];
}

pv_t* pestle_matrix_qr(pestle_formula_t* f, pv_t* a, bool full, pv_t** out_r) {
  if (!a) return NULL;
  int64_t rows = a->type->dims[1], columns = a->type->dims[2];
  int64_t k = full || columns < rows ? columns : rows;
  pv_t *tau, *negative;
  a = pestle_matrix_reflections(f, a, &tau);
  pv_t* turned = pestle_matrix_of_reflections(f, a, tau, k);
  pv_t* r = triangle(f, a, k, &negative);
  if (out_r) *out_r = r;
  pv_t* other = pestle_f_negate(f, turned);
  pv_t* flips = pestle_matrix_down(f, negative, turned);
  return pestle_f_select(f, flips, other, turned);
}

pv_t* pestle_decompose_qr(pestle_formula_t* f) {
  bool full = PESTLE_NODE_BOOL(f->of->node, full);
  if (!pestle_type_count(pestle_node_operand(f->of->node, 0)->type)) {
    f->of->more[0] = pestle_matrix_of_nothing(f, 1);
    return pestle_matrix_of_nothing(f, 0);
  }
  pv_t *a = pestle_matrix_of_operand(f), *r;
  pv_t* good = pestle_matrix_largest(f, a);
  good = pestle_f_is_finite(f, good);
  pv_t* q = pestle_matrix_qr(f, pestle_matrix_transpose(f, a), full, &r);
  r = pestle_matrix_checked(f, r, good);
  f->of->more[0] = pestle_matrix_result(f, r, 1);
  q = pestle_matrix_checked(f, pestle_matrix_transpose(f, q), good);
  return pestle_matrix_result(f, q, 0);
}
