// SPDX-License-Identifier: Apache-2.0
// eigh and svd by plane rotations (Jacobi), half as many at once as there are
// rows. Row i of the first half is paired with row i of the second:
//
//   eigh:  rows and columns of a [n, n] are turned so that a[p, q] becomes 0;
//          rows of v [n, n], which begins as the unit matrix, with them
//   svd:   rows of w [n, m], the columns of a, so that they stand upright on
//          each other, and rows of v
//
// and then all move up one place but the first, so that in as many steps as
// there are other rows each has met each (a sweep). The loop ends when no pair
// of a sweep was turned, or after SWEEPS. An odd row more is zero and is never
// turned; it is left out in the end.
//
// Numbers are scaled by a power of two: the largest is in [1, 2).
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ir/composite_matrix.h"

// Convergence is quadratic: 6 to 10 is usual, 16 the most that was seen.
enum { SWEEPS = 40 };

static double roundoff(const pv_t* x) {
  return x && x->type->dtype == PESTLE_F64 ? 0x1p-53 : 0x1p-24;
}

static int64_t extent(const pv_t* x, int32_t axis) {
  return x ? x->type->dims[axis] : 0;
}

// --- Pairs ---

// The halves of an axis.
typedef struct pair_t {
  pv_t *p, *q;
} pair_t;

static pair_t halves(pestle_steps_t* s, pv_t* a, int32_t axis) {
  int64_t n = extent(a, axis);
  pair_t out;
  out.p = pestle_step_slice(s, a, axis, 0, n / 2);
  out.q = pestle_step_slice(s, a, axis, n / 2, n);
  return out;
}

// The next pairs: p0 q0 p1 .. p(h-2) | q1 .. q(h-1) p(h-1).
static pv_t* moved(pestle_steps_t* s, pair_t x, int32_t axis) {
  int64_t h = extent(x.p, axis);
  if (h <= 1) return pestle_step_concatenate(s, (pv_t*[]){x.p, x.q}, 2, axis);
  pv_t* parts[5];
  size_t count = 0;
  parts[count++] = pestle_step_slice(s, x.p, axis, 0, 1);
  parts[count++] = pestle_step_slice(s, x.q, axis, 0, 1);
  if (h > 2) parts[count++] = pestle_step_slice(s, x.p, axis, 1, h - 1);
  parts[count++] = pestle_step_slice(s, x.q, axis, 1, h);
  parts[count++] = pestle_step_slice(s, x.p, axis, h - 1, h);
  return pestle_step_concatenate(s, parts, count, axis);
}

// Of each pair, [batch, n / 2]; |t| is the tangent, 0 where nothing is turned.
typedef struct rotation_t {
  pv_t *c, *s, *t, *turns;
} rotation_t;

// Turns [pp, pq; pq, qq] where |turns| says so.
static rotation_t rotation(pestle_steps_t* s, pv_t* pp, pv_t* qq, pv_t* pq,
                           pv_t* turns) {
  rotation_t out = {.turns = turns};
  pv_t* one = pestle_matrix_fill(s, pq, 1);
  pv_t* none = pestle_matrix_fill(s, pq, 0);
  pv_t* by = PESTLE_ADD(s, pq, pq);
  by = pestle_step3(s, PESTLE_OP_SELECT, turns, by, one);
  pv_t* theta = PESTLE_SUB(s, qq, pp);
  theta = PESTLE_DIV(s, theta, by);
  pv_t* root = PESTLE_ADD(s, PESTLE_MUL(s, theta, theta), one);
  root = pestle_step1(s, PESTLE_OP_SQRT, root);
  pv_t* sum = pestle_step1(s, PESTLE_OP_ABS, theta);
  pv_t* t = PESTLE_DIV(s, one, PESTLE_ADD(s, sum, root));
  pv_t* other = pestle_step1(s, PESTLE_OP_NEGATE, t);
  pv_t* negative = pestle_step2(s, PESTLE_OP_LT, theta, none);
  t = pestle_step3(s, PESTLE_OP_SELECT, negative, other, t);
  out.t = pestle_step3(s, PESTLE_OP_SELECT, turns, t, none);
  root = PESTLE_ADD(s, PESTLE_MUL(s, out.t, out.t), one);
  root = pestle_step1(s, PESTLE_OP_SQRT, root);
  out.c = PESTLE_DIV(s, one, root);
  out.s = PESTLE_MUL(s, out.t, out.c);
  return out;
}

// c x - s y and s x + c y, rows or columns of x and y.
static pair_t turned(pestle_steps_t* s, const rotation_t* r, pair_t x,
                     bool columns) {
  pair_t out;
  pv_t* c = columns ? pestle_matrix_across(s, r->c, x.p)
                    : pestle_matrix_down(s, r->c, x.p);
  pv_t* t = columns ? pestle_matrix_across(s, r->s, x.p)
                    : pestle_matrix_down(s, r->s, x.p);
  pv_t* a = PESTLE_MUL(s, c, x.p);
  pv_t* b = PESTLE_MUL(s, t, x.q);
  out.p = PESTLE_SUB(s, a, b);
  a = PESTLE_MUL(s, t, x.p);
  b = PESTLE_MUL(s, c, x.q);
  out.q = PESTLE_ADD(s, a, b);
  return out;
}

static pv_t* turned_rows(pestle_steps_t* s, const rotation_t* r, pv_t* a) {
  return moved(s, turned(s, r, halves(s, a, 1), false), 1);
}

// --- The loop: steps done, steps since a pair was turned, a or w, v ---

static pv_t* goes_on(pestle_steps_t* s, void* user, pv_t* const* state) {
  (void)user;
  int64_t sweep = extent(state[2], 1) - 1;
  pv_t* most = pestle_matrix_i32(s, sweep * SWEEPS);
  pv_t* all = pestle_matrix_i32(s, sweep);
  pv_t* left = pestle_step2(s, PESTLE_OP_LT, state[0], most);
  pv_t* moves = pestle_step2(s, PESTLE_OP_LT, state[1], all);
  return pestle_step2(s, PESTLE_OP_AND, left, moves);
}

static void count_step(pestle_steps_t* s, const rotation_t* r, pv_t** state) {
  static const int64_t axes[] = {0, 1};
  pv_t* any = pestle_step_convert(s, r->turns, PESTLE_F32);
  any = pestle_step_reduce(s, PESTLE_OP_MAXIMUM, any, (pestle_i64s_t){axes, 2},
                           0);
  pv_t* none = pestle_matrix_fill(s, any, 0);
  any = pestle_step2(s, PESTLE_OP_GT, any, none);
  pv_t* one = pestle_matrix_i32(s, 1);
  state[0] = PESTLE_ADD(s, state[0], one);
  state[1] = PESTLE_ADD(s, state[1], one);
  pv_t* zero = pestle_matrix_i32(s, 0);
  state[1] = pestle_step3(s, PESTLE_OP_SELECT, any, zero, state[1]);
}

static void run(pestle_steps_t* s, void (*step)(pestle_steps_t*, void*, pv_t**),
                pv_t** a, pv_t** v) {
  pestle_matrix_loop_t loop = {goes_on, step, NULL, .count = 4};
  loop.state[0] = pestle_matrix_i32(s, 0);
  loop.state[1] = pestle_matrix_i32(s, 0);
  loop.state[2] = *a;
  loop.state[3] = pestle_matrix_unit(s, *a, extent(*a, 1), extent(*a, 1));
  pestle_matrix_loop(s, &loop);
  *a = loop.state[2];
  *v = loop.state[3];
}

// --- Ends ---

// |a| with the largest of each matrix in [1, 2); |out_size| [batch] is what it
// was divided by, |out_good| whether all its elements are finite.
static pv_t* scaled(pestle_steps_t* s, pv_t* a, pv_t** out_size,
                    pv_t** out_good) {
  pv_t* largest = pestle_matrix_largest(s, a);
  *out_good = pestle_step1(s, PESTLE_OP_IS_FINITE, largest);
  *out_size = pestle_matrix_power(s, largest);
  return PESTLE_DIV(s, a, pestle_matrix_per_batch(s, *out_size, a));
}

// (key, place) < (key, place): the regions's first two of four arguments.
static pestle_region_t* ascending(pestle_steps_t* s, pestle_dtype_t dtype) {
  pestle_region_t* region;
  pestle_type_t key = pestle_type_make(dtype, 0, NULL);
  pestle_type_t place = pestle_type_make(PESTLE_I32, 0, NULL);
  pestle_builder_t b = {.module = s->builder.module, .loc = s->builder.loc};
  if (!s->status) {
    s->status = pestle_region_create(b.module,
                                     (pestle_type_t[]){key, key, place, place},
                                     4, &region, &b.block);
  }
  if (s->status) return NULL;
  pv_t* less;
  s->status = pestle_op_lt(&b, pestle_block_argument(b.block, 0),
                           pestle_block_argument(b.block, 1), &less);
  if (!s->status) s->status = pestle_op_return(&b, &less, 1, NULL);
  return region;
}

// The places of the |count| smallest keys, in their order; what is sorted in
// |*keys|.
static pv_t* sorted(pestle_steps_t* s, pv_t** keys, int64_t count) {
  pv_t* operands[2] = {*keys, pestle_matrix_iota(s, *keys, 1)};
  if (!operands[1]) return NULL;
  pestle_region_t* region = ascending(s, (*keys)->type->dtype);
  pestle_attr_t attr = {
      .name = PESTLE_ATTR_dimension, .kind = PESTLE_ATTR_KIND_I64, .as.i64 = 1};
  pestle_node_t* node;
  if (s->status) return NULL;
  s->status = pestle_node_create(&s->builder,
                                 &(pestle_node_spec_t){.op = PESTLE_OP_SORT,
                                                       .operands = operands,
                                                       .operand_count = 2,
                                                       .attrs = &attr,
                                                       .attr_count = 1,
                                                       .regions = &region,
                                                       .region_count = 1},
                                 &node);
  if (s->status) return NULL;
  *keys = pestle_step_slice(s, pestle_node_result(node, 0), 1, 0, count);
  return pestle_step_slice(s, pestle_node_result(node, 1), 1, 0, count);
}

// Keys by which the row that was added comes last.
static pv_t* keys_of(pestle_steps_t* s, pv_t* values, pv_t* v, int64_t n) {
  if (extent(v, 1) == n) return values;
  pv_t* mark = pestle_step_part(s, v, 2, n);
  pv_t* none = pestle_matrix_fill(s, mark, 0);
  mark = pestle_step2(s, PESTLE_OP_NE, mark, none);
  pv_t* last = pestle_matrix_fill(s, values, INFINITY);
  return pestle_step3(s, PESTLE_OP_SELECT, mark, last, values);
}

// Of each row of |x|, whether its leading component is negative: the first of
// those that are at least 3/4 as large as the largest.
static pv_t* lead_is_negative(pestle_steps_t* s, pv_t* x) {
  pv_t* size = pestle_step1(s, PESTLE_OP_ABS, x);
  pv_t* largest = pestle_matrix_fold(s, PESTLE_OP_MAXIMUM, size, 2, 0);
  pv_t* share = pestle_matrix_fill(s, largest, 0.75);
  largest = pestle_matrix_down(s, PESTLE_MUL(s, largest, share), x);
  pv_t* large = pestle_step2(s, PESTLE_OP_GE, size, largest);
  // Places as floats, which the fold takes; up to 2^24 they are exact.
  pv_t* place = pestle_matrix_iota(s, x, 2);
  place = pestle_step_convert(s, place, PESTLE_F32);
  pv_t* behind = pestle_matrix_fill(s, place, INFINITY);
  pv_t* key = pestle_step3(s, PESTLE_OP_SELECT, large, place, behind);
  key = pestle_matrix_fold(s, PESTLE_OP_MINIMUM, key, 2, INFINITY);
  pv_t* leads =
      pestle_step2(s, PESTLE_OP_EQ, place, pestle_matrix_down(s, key, place));
  pv_t* zeros = pestle_matrix_fill(s, x, 0);
  pv_t* lead = pestle_step3(s, PESTLE_OP_SELECT, leads, x, zeros);
  lead = pestle_matrix_sum(s, lead, 2);
  pv_t* none = pestle_matrix_fill(s, lead, 0);
  return pestle_step2(s, PESTLE_OP_LT, lead, none);
}

static pv_t* flipped(pestle_steps_t* s, pv_t* x, pv_t* flips) {
  pv_t* other = pestle_step1(s, PESTLE_OP_NEGATE, x);
  flips = pestle_matrix_down(s, flips, x);
  return pestle_step3(s, PESTLE_OP_SELECT, flips, other, x);
}

// --- eigh ---

// Of the quarters of a, the diagonal of one: elements of pairs.
static pv_t* diagonal(pestle_steps_t* s, pv_t* quarter) {
  pv_t* i = pestle_matrix_iota(s, quarter, 1);
  pv_t* j = pestle_matrix_iota(s, quarter, 2);
  pv_t* same = pestle_step2(s, PESTLE_OP_EQ, i, j);
  pv_t* zeros = pestle_matrix_fill(s, quarter, 0);
  pv_t* d = pestle_step3(s, PESTLE_OP_SELECT, same, quarter, zeros);
  return pestle_matrix_sum(s, d, 2);
}

// |quarter| with |d| on its diagonal; where |only| is, if that is given.
static pv_t* with_diagonal(pestle_steps_t* s, pv_t* quarter, pv_t* d,
                           pv_t* only) {
  pv_t* i = pestle_matrix_iota(s, quarter, 1);
  pv_t* j = pestle_matrix_iota(s, quarter, 2);
  pv_t* same = pestle_step2(s, PESTLE_OP_EQ, i, j);
  if (only)
    same = pestle_step2(s, PESTLE_OP_AND, same,
                        pestle_matrix_down(s, only, quarter));
  d = pestle_matrix_down(s, d, quarter);
  return pestle_step3(s, PESTLE_OP_SELECT, same, d, quarter);
}

static void eigh_step(pestle_steps_t* s, void* user, pv_t** state) {
  (void)user;
  pair_t rows = halves(s, state[2], 1);
  pair_t top = halves(s, rows.p, 2);
  pair_t bottom = halves(s, rows.q, 2);
  pv_t* pp = diagonal(s, top.p);
  pv_t* pq = diagonal(s, top.q);
  pv_t* qq = diagonal(s, bottom.q);
  pv_t* size = pestle_step1(s, PESTLE_OP_ABS, pq);
  pv_t* least = pestle_matrix_fill(s, pq, roundoff(pq) / 2);
  pv_t* turns = pestle_step2(s, PESTLE_OP_GT, size, least);
  rotation_t r = rotation(s, pp, qq, pq, turns);
  pair_t left = turned(s, &r, (pair_t){top.p, bottom.p}, false);
  pair_t right = turned(s, &r, (pair_t){top.q, bottom.q}, false);
  top = turned(s, &r, (pair_t){left.p, right.p}, true);
  bottom = turned(s, &r, (pair_t){left.q, right.q}, true);
  // What is known is set, so that its roundings do not turn it again.
  pv_t* less = PESTLE_MUL(s, r.t, pq);
  pv_t* none = pestle_matrix_fill(s, pq, 0);
  pp = PESTLE_SUB(s, pp, less);
  qq = PESTLE_ADD(s, qq, less);
  top.p = with_diagonal(s, top.p, pp, NULL);
  top.q = with_diagonal(s, top.q, none, turns);
  bottom.p = with_diagonal(s, bottom.p, none, turns);
  bottom.q = with_diagonal(s, bottom.q, qq, NULL);
  rows.p = moved(s, top, 2);
  rows.q = moved(s, bottom, 2);
  state[2] = moved(s, rows, 1);
  state[3] = turned_rows(s, &r, state[3]);
  count_step(s, &r, state);
}

// |a| with both halves from one.
static pv_t* mirrored(pestle_steps_t* s, pv_t* a, bool lower) {
  pv_t* i = pestle_matrix_iota(s, a, 1);
  pv_t* j = pestle_matrix_iota(s, a, 2);
  pv_t* own = pestle_step2(s, lower ? PESTLE_OP_GE : PESTLE_OP_LE, i, j);
  pv_t* other = pestle_matrix_transpose(s, a);
  return pestle_step3(s, PESTLE_OP_SELECT, own, a, other);
}

pv_t* pestle_decompose_eigh(pestle_steps_t* s) {
  if (!pestle_type_count(pestle_node_operand(s->node, 0)->type)) {
    s->more[0] = pestle_matrix_of_nothing(s, 1);
    return pestle_matrix_of_nothing(s, 0);
  }
  pv_t *size, *good, *v, *a = pestle_matrix_of_operand(s);
  int64_t n = extent(a, 1);
  a = mirrored(s, a, PESTLE_NODE_BOOL(s->node, lower));
  a = scaled(s, a, &size, &good);
  a = pestle_step_pad_end(s, a, 1, n % 2);
  a = pestle_step_pad_end(s, a, 2, n % 2);
  run(s, eigh_step, &a, &v);
  pv_t* w = keys_of(s, diagonal(s, a), v, n);
  pv_t* order = sorted(s, &w, n);
  v = pestle_matrix_in_order(s, pestle_step_slice(s, v, 2, 0, n), order);
  v = flipped(s, v, lead_is_negative(s, v));
  v = pestle_matrix_checked(s, pestle_matrix_transpose(s, v), good);
  s->more[0] = pestle_matrix_result(s, v, 1);
  w = PESTLE_MUL(s, w, pestle_matrix_per_batch(s, size, w));
  return pestle_matrix_result(s, pestle_matrix_checked(s, w, good), 0);
}

// --- svd ---

static void svd_step(pestle_steps_t* s, void* user, pv_t** state) {
  (void)user;
  pair_t w = halves(s, state[2], 1);
  pv_t* pp = pestle_matrix_sum(s, PESTLE_MUL(s, w.p, w.p), 2);
  pv_t* qq = pestle_matrix_sum(s, PESTLE_MUL(s, w.q, w.q), 2);
  pv_t* pq = pestle_matrix_sum(s, PESTLE_MUL(s, w.p, w.q), 2);
  pv_t* size = pestle_step1(s, PESTLE_OP_ABS, pq);
  // Sums of m products have errors of some sqrt(m) roundings.
  double m = (double)extent(w.p, 2);
  pv_t* least = pestle_matrix_fill(s, pq, 2 * roundoff(pq) * sqrt(m));
  pv_t* root = pestle_step1(s, PESTLE_OP_SQRT, pp);
  least = PESTLE_MUL(s, least, root);
  root = pestle_step1(s, PESTLE_OP_SQRT, qq);
  least = PESTLE_MUL(s, least, root);
  pv_t* turns = pestle_step2(s, PESTLE_OP_GT, size, least);
  rotation_t r = rotation(s, pp, qq, pq, turns);
  state[2] = moved(s, turned(s, &r, w, false), 1);
  state[3] = turned_rows(s, &r, state[3]);
  count_step(s, &r, state);
}

// Rows of |v| behind those of |flips| as they are.
static pv_t* flipped_first(pestle_steps_t* s, pv_t* v, pv_t* flips) {
  int64_t n = extent(flips, 1), all = extent(v, 1);
  pv_t* first = flipped(s, pestle_step_slice(s, v, 1, 0, n), flips);
  if (n == all) return first;
  pv_t* rest = pestle_step_slice(s, v, 1, n, all);
  return pestle_step_concatenate(s, (pv_t*[]){first, rest}, 2, 1);
}

pv_t* pestle_decompose_svd(pestle_steps_t* s) {
  bool full = PESTLE_NODE_BOOL(s->node, full);
  if (!pestle_type_count(pestle_node_operand(s->node, 0)->type)) {
    s->more[0] = pestle_matrix_of_nothing(s, 1);
    s->more[1] = pestle_matrix_of_nothing(s, 2);
    return pestle_matrix_of_nothing(s, 0);
  }
  pv_t *size, *good, *v, *a = pestle_matrix_of_operand(s);
  bool wide = extent(a, 1) < extent(a, 2);
  if (!wide) a = pestle_matrix_transpose(s, a);
  int64_t n = extent(a, 1);
  pv_t* w = pestle_step_pad_end(s, scaled(s, a, &size, &good), 1, n % 2);
  run(s, svd_step, &w, &v);
  pv_t* d = pestle_matrix_sum(s, PESTLE_MUL(s, w, w), 2);
  d = pestle_step1(s, PESTLE_OP_SQRT, d);
  d = keys_of(s, pestle_step1(s, PESTLE_OP_NEGATE, d), v, n);
  pv_t* order = sorted(s, &d, n);
  d = pestle_step1(s, PESTLE_OP_ABS, d);
  w = pestle_matrix_in_order(s, w, order);
  v = pestle_matrix_in_order(s, pestle_step_slice(s, v, 2, 0, n), order);
  // Their directions, and what stands upright on them where there is none.
  w = pestle_matrix_qr(s, w, full, NULL);
  pv_t* left = wide ? v : w;
  pv_t* flips = lead_is_negative(s, pestle_step_slice(s, left, 1, 0, n));
  w = flipped_first(s, w, flips);
  v = flipped_first(s, v, flips);
  pv_t* u = pestle_matrix_transpose(s, wide ? v : w);
  u = pestle_matrix_checked(s, u, good);
  d = PESTLE_MUL(s, d, pestle_matrix_per_batch(s, size, d));
  d = pestle_matrix_checked(s, d, good);
  v = pestle_matrix_checked(s, wide ? w : v, good);
  s->more[0] = pestle_matrix_result(s, d, 1);
  s->more[1] = pestle_matrix_result(s, v, 2);
  return pestle_matrix_result(s, u, 0);
}
