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
  int64_t rows, steps, columns;  // of a; columns is the length of a row here
  pv_t *a, *tau;                 // of the first loop, for the second
} qr_t;

// Scalar |k| in the shape of |like|.
static pv_t* everywhere(pestle_steps_t* s, pv_t* k, const pv_t* like) {
  return pestle_matrix_over(s, k, like, NULL);
}

// What one reflection is: v [batch, m], tau and beta [batch].
typedef struct reflection_t {
  pv_t *v, *tau, *beta;
} reflection_t;

// Of |x|, of which the elements from |k| on count. They are scaled, so that
// squares neither overflow nor vanish.
static reflection_t reflection(pestle_steps_t* s, pv_t* x, pv_t* k) {
  reflection_t out;
  pv_t* zeros = pestle_matrix_fill(s, x, 0);
  pv_t* i = pestle_matrix_iota(s, x, 1);
  pv_t* at = pestle_step2(s, PESTLE_OP_EQ, i, everywhere(s, k, i));
  pv_t* behind = pestle_step2(s, PESTLE_OP_GT, i, everywhere(s, k, i));
  pv_t* counts = pestle_step2(s, PESTLE_OP_OR, at, behind);
  x = pestle_step3(s, PESTLE_OP_SELECT, counts, x, zeros);
  pv_t* size = pestle_step1(s, PESTLE_OP_ABS, x);
  size = pestle_matrix_fold(s, PESTLE_OP_MAXIMUM, size, 1, 0);
  size = pestle_matrix_power(s, size);
  x = PESTLE_DIV(s, x, pestle_matrix_per_batch(s, size, x));
  pv_t* rest = pestle_step3(s, PESTLE_OP_SELECT, behind, x, zeros);
  rest = pestle_matrix_sum(s, PESTLE_MUL(s, rest, rest), 1);
  pv_t* alpha = pestle_step3(s, PESTLE_OP_SELECT, at, x, zeros);
  alpha = pestle_matrix_sum(s, alpha, 1);
  pv_t* none = pestle_matrix_fill(s, alpha, 0);
  pv_t* done = pestle_step2(s, PESTLE_OP_EQ, rest, none);
  pv_t* norm = PESTLE_ADD(s, PESTLE_MUL(s, alpha, alpha), rest);
  norm = pestle_step1(s, PESTLE_OP_SQRT, norm);
  pv_t* other = pestle_step1(s, PESTLE_OP_NEGATE, norm);
  pv_t* negative = pestle_step2(s, PESTLE_OP_LT, alpha, none);
  pv_t* beta = pestle_step3(s, PESTLE_OP_SELECT, negative, norm, other);
  pv_t* one = pestle_matrix_fill(s, alpha, 1);
  pv_t* by = PESTLE_SUB(s, alpha, beta);
  by = pestle_step3(s, PESTLE_OP_SELECT, done, one, by);
  pv_t* tau = PESTLE_SUB(s, beta, alpha);
  tau = PESTLE_DIV(s, tau, beta);
  out.tau = pestle_step3(s, PESTLE_OP_SELECT, done, none, tau);
  beta = pestle_step3(s, PESTLE_OP_SELECT, done, alpha, beta);
  out.beta = PESTLE_MUL(s, beta, size);
  pv_t* v = PESTLE_DIV(s, x, pestle_matrix_per_batch(s, by, x));
  v = pestle_step3(s, PESTLE_OP_SELECT, behind, v, zeros);
  pv_t* ones = pestle_matrix_fill(s, x, 1);
  out.v = pestle_step3(s, PESTLE_OP_SELECT, at, ones, v);
  return out;
}

// Rows of |a| reflected: a - tau (a . v) v.
static pv_t* reflected(pestle_steps_t* s, pv_t* a, pv_t* v, pv_t* tau) {
  pv_t* wide = pestle_matrix_across(s, v, a);
  pv_t* dots = pestle_matrix_sum(s, PESTLE_MUL(s, a, wide), 2);
  dots = PESTLE_MUL(s, dots, pestle_matrix_per_batch(s, tau, dots));
  dots = pestle_matrix_down(s, dots, a);
  return PESTLE_SUB(s, a, PESTLE_MUL(s, dots, wide));
}

// --- The first loop: k, a, tau [batch, steps] ---

static pv_t* before_end(pestle_steps_t* s, void* user, pv_t* const* state) {
  qr_t* q = user;
  pv_t* end = pestle_matrix_i32(s, q->steps);
  return pestle_step2(s, PESTLE_OP_LT, state[0], end);
}

static void eliminate(pestle_steps_t* s, void* user, pv_t** state) {
  pv_t *k = state[0], *a = state[1];
  (void)user;
  pv_t* x = pestle_matrix_row(s, a, k);
  reflection_t r = reflection(s, x, k);
  pv_t* j = pestle_matrix_iota(s, a, 1);
  pv_t* later = pestle_step2(s, PESTLE_OP_GT, j, everywhere(s, k, j));
  pv_t* turned = reflected(s, a, r.v, r.tau);
  turned = pestle_step3(s, PESTLE_OP_SELECT, later, turned, a);
  pv_t* i = pestle_matrix_iota(s, x, 1);
  pv_t* at = pestle_step2(s, PESTLE_OP_EQ, i, everywhere(s, k, i));
  pv_t* behind = pestle_step2(s, PESTLE_OP_GT, i, everywhere(s, k, i));
  pv_t* row = pestle_step3(s, PESTLE_OP_SELECT, behind, r.v, x);
  pv_t* beta = pestle_matrix_per_batch(s, r.beta, x);
  row = pestle_step3(s, PESTLE_OP_SELECT, at, beta, row);
  state[1] = pestle_matrix_set_row(s, turned, row, k);
  i = pestle_matrix_iota(s, state[2], 1);
  at = pestle_step2(s, PESTLE_OP_EQ, i, everywhere(s, k, i));
  pv_t* tau = pestle_matrix_per_batch(s, r.tau, state[2]);
  state[2] = pestle_step3(s, PESTLE_OP_SELECT, at, tau, state[2]);
  pv_t* one = pestle_matrix_i32(s, 1);
  state[0] = PESTLE_ADD(s, k, one);
}

// --- The second: k, Q' ---

static pv_t* after_begin(pestle_steps_t* s, void* user, pv_t* const* state) {
  (void)user;
  pv_t* zero = pestle_matrix_i32(s, 0);
  return pestle_step2(s, PESTLE_OP_GE, state[0], zero);
}

static void collect(pestle_steps_t* s, void* user, pv_t** state) {
  qr_t* q = user;
  pv_t* k = state[0];
  pv_t* v = pestle_matrix_row(s, q->a, k);
  pv_t* i = pestle_matrix_iota(s, v, 1);
  pv_t* at = pestle_step2(s, PESTLE_OP_EQ, i, everywhere(s, k, i));
  pv_t* behind = pestle_step2(s, PESTLE_OP_GT, i, everywhere(s, k, i));
  pv_t* zeros = pestle_matrix_fill(s, v, 0);
  v = pestle_step3(s, PESTLE_OP_SELECT, behind, v, zeros);
  pv_t* ones = pestle_matrix_fill(s, v, 1);
  v = pestle_step3(s, PESTLE_OP_SELECT, at, ones, v);
  i = pestle_matrix_iota(s, q->tau, 1);
  at = pestle_step2(s, PESTLE_OP_EQ, i, everywhere(s, k, i));
  pv_t* none = pestle_matrix_fill(s, q->tau, 0);
  pv_t* tau = pestle_step3(s, PESTLE_OP_SELECT, at, q->tau, none);
  tau = pestle_matrix_sum(s, tau, 1);
  state[1] = reflected(s, state[1], v, tau);
  pv_t* one = pestle_matrix_i32(s, 1);
  state[0] = PESTLE_SUB(s, k, one);
}

// --- The whole ---

// R [batch, k, n] and where its diagonal is negative, [batch, k].
static pv_t* triangle(pestle_steps_t* s, pv_t* a, int64_t k,
                      pv_t** out_negative) {
  pv_t* r = pestle_step_slice(s, pestle_matrix_transpose(s, a), 1, 0, k);
  pv_t* i = pestle_matrix_iota(s, r, 1);
  pv_t* j = pestle_matrix_iota(s, r, 2);
  pv_t* diagonal = pestle_step2(s, PESTLE_OP_EQ, i, j);
  pv_t* zeros = pestle_matrix_fill(s, r, 0);
  pv_t* d = pestle_step3(s, PESTLE_OP_SELECT, diagonal, r, zeros);
  d = pestle_matrix_sum(s, d, 2);
  pv_t* none = pestle_matrix_fill(s, d, 0);
  *out_negative = pestle_step2(s, PESTLE_OP_LT, d, none);
  pv_t* other = pestle_step1(s, PESTLE_OP_NEGATE, r);
  pv_t* flips = pestle_matrix_down(s, *out_negative, r);
  r = pestle_step3(s, PESTLE_OP_SELECT, flips, other, r);
  pv_t* upper = pestle_step2(s, PESTLE_OP_LE, i, j);
  return pestle_step3(s, PESTLE_OP_SELECT, upper, r, zeros);
}

pv_t* pestle_matrix_qr(pestle_steps_t* s, pv_t* a, bool full, pv_t** out_r) {
  if (!a) return NULL;
  int64_t batch = a->type->dims[0];
  qr_t q = {.rows = a->type->dims[1], .columns = a->type->dims[2]};
  q.steps = q.rows < q.columns ? q.rows : q.columns;
  int64_t k = full ? q.columns : q.steps;
  pestle_type_t type =
      pestle_type_make(a->type->dtype, 2, (int64_t[]){batch, q.steps});
  pestle_matrix_loop_t first = {before_end, eliminate, &q, .count = 3};
  first.state[0] = pestle_matrix_i32(s, 0);
  first.state[1] = a;
  first.state[2] = pestle_step_number(s, &type, 0);
  pestle_matrix_loop(s, &first);
  q.a = first.state[1];
  q.tau = first.state[2];
  pestle_matrix_loop_t second = {after_begin, collect, &q, .count = 2};
  second.state[0] = pestle_matrix_i32(s, q.steps - 1);
  second.state[1] = pestle_matrix_unit(s, a, k, q.columns);
  pestle_matrix_loop(s, &second);
  pv_t *negative, *turned = second.state[1];
  pv_t* r = triangle(s, q.a, k, &negative);
  if (out_r) *out_r = r;
  pv_t* other = pestle_step1(s, PESTLE_OP_NEGATE, turned);
  pv_t* flips = pestle_matrix_down(s, negative, turned);
  return pestle_step3(s, PESTLE_OP_SELECT, flips, other, turned);
}

pv_t* pestle_decompose_qr(pestle_steps_t* s) {
  bool full = PESTLE_NODE_BOOL(s->node, full);
  if (!pestle_type_count(pestle_node_operand(s->node, 0)->type)) {
    s->more[0] = pestle_matrix_of_nothing(s, 1);
    return pestle_matrix_of_nothing(s, 0);
  }
  pv_t *a = pestle_matrix_of_operand(s), *r;
  pv_t* good = pestle_matrix_largest(s, a);
  good = pestle_step1(s, PESTLE_OP_IS_FINITE, good);
  pv_t* q = pestle_matrix_qr(s, pestle_matrix_transpose(s, a), full, &r);
  r = pestle_matrix_checked(s, r, good);
  s->more[0] = pestle_matrix_result(s, r, 1);
  q = pestle_matrix_checked(s, pestle_matrix_transpose(s, q), good);
  return pestle_matrix_result(s, q, 0);
}
