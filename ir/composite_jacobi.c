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

static pair_t halves(pestle_formula_t* f, pv_t* a, int32_t axis) {
  int64_t n = extent(a, axis);
  pair_t out;
  out.p = pestle_f_slice_axis(f, a, axis, 0, n / 2);
  out.q = pestle_f_slice_axis(f, a, axis, n / 2, n);
  return out;
}

// The next pairs: p0 q0 p1 .. p(h-2) | q1 .. q(h-1) p(h-1).
static pv_t* moved(pestle_formula_t* f, pair_t x, int32_t axis) {
  int64_t h = extent(x.p, axis);
  if (h <= 1) return pestle_f_concatenate(f, (pv_t*[]){x.p, x.q}, 2, axis);
  pv_t* parts[5];
  size_t count = 0;
  parts[count++] = pestle_f_slice_axis(f, x.p, axis, 0, 1);
  parts[count++] = pestle_f_slice_axis(f, x.q, axis, 0, 1);
  if (h > 2) parts[count++] = pestle_f_slice_axis(f, x.p, axis, 1, h - 1);
  parts[count++] = pestle_f_slice_axis(f, x.q, axis, 1, h);
  parts[count++] = pestle_f_slice_axis(f, x.p, axis, h - 1, h);
  return pestle_f_concatenate(f, parts, count, axis);
}

// Of each pair, [batch, n / 2]; |t| is the tangent, 0 where nothing is turned.
typedef struct rotation_t {
  pv_t *c, *f, *t, *turns;
} rotation_t;

// Turns [pp, pq; pq, qq] where |turns| says so.
static rotation_t rotation(pestle_formula_t* f, pv_t* pp, pv_t* qq, pv_t* pq,
                           pv_t* turns) {
  rotation_t out = {.turns = turns};
  pv_t* one = pestle_matrix_fill(f, pq, 1);
  pv_t* none = pestle_matrix_fill(f, pq, 0);
  pv_t* by = pestle_f_add(f, pq, pq);
  by = pestle_f_select(f, turns, by, one);
  pv_t* theta = pestle_f_subtract(f, qq, pp);
  theta = pestle_f_divide(f, theta, by);
  pv_t* root = pestle_f_add(f, pestle_f_multiply(f, theta, theta), one);
  root = pestle_f_sqrt(f, root);
  pv_t* sum = pestle_f_abs(f, theta);
  pv_t* t = pestle_f_divide(f, one, pestle_f_add(f, sum, root));
  pv_t* other = pestle_f_negate(f, t);
  pv_t* negative = pestle_f_lt(f, theta, none);
  t = pestle_f_select(f, negative, other, t);
  out.t = pestle_f_select(f, turns, t, none);
  root = pestle_f_add(f, pestle_f_multiply(f, out.t, out.t), one);
  root = pestle_f_sqrt(f, root);
  out.c = pestle_f_divide(f, one, root);
  out.f = pestle_f_multiply(f, out.t, out.c);
  return out;
}

// c x - s y and s x + c y, rows or columns of x and y.
static pair_t turned(pestle_formula_t* f, const rotation_t* r, pair_t x,
                     bool columns) {
  pair_t out;
  pv_t* c = columns ? pestle_matrix_across(f, r->c, x.p)
                    : pestle_matrix_down(f, r->c, x.p);
  pv_t* t = columns ? pestle_matrix_across(f, r->f, x.p)
                    : pestle_matrix_down(f, r->f, x.p);
  pv_t* a = pestle_f_multiply(f, c, x.p);
  pv_t* b = pestle_f_multiply(f, t, x.q);
  out.p = pestle_f_subtract(f, a, b);
  a = pestle_f_multiply(f, t, x.p);
  b = pestle_f_multiply(f, c, x.q);
  out.q = pestle_f_add(f, a, b);
  return out;
}

static pv_t* turned_rows(pestle_formula_t* f, const rotation_t* r, pv_t* a) {
  return moved(f, turned(f, r, halves(f, a, 1), false), 1);
}

// --- The loop: steps done, steps since a pair was turned, a or w, v ---

static pv_t* goes_on(pestle_formula_t* f, void* user, pv_t* const* state) {
  (void)user;
  int64_t sweep = extent(state[2], 1) - 1;
  pv_t* most = pestle_matrix_i32(f, sweep * SWEEPS);
  pv_t* all = pestle_matrix_i32(f, sweep);
  pv_t* left = pestle_f_lt(f, state[0], most);
  pv_t* moves = pestle_f_lt(f, state[1], all);
  return pestle_f_and(f, left, moves);
}

static void count_step(pestle_formula_t* f, const rotation_t* r, pv_t** state) {
  static const int64_t axes[] = {0, 1};
  pv_t* any = pestle_f_convert(f, r->turns, PESTLE_F32);
  any = pestle_f_reduce(f, PESTLE_OP_MAXIMUM, any, (pestle_i64s_t){axes, 2}, 0);
  pv_t* none = pestle_matrix_fill(f, any, 0);
  any = pestle_f_gt(f, any, none);
  pv_t* one = pestle_matrix_i32(f, 1);
  state[0] = pestle_f_add(f, state[0], one);
  state[1] = pestle_f_add(f, state[1], one);
  pv_t* zero = pestle_matrix_i32(f, 0);
  state[1] = pestle_f_select(f, any, zero, state[1]);
}

static void run(pestle_formula_t* f,
                void (*step)(pestle_formula_t*, void*, pv_t**), pv_t** a,
                pv_t** v) {
  pestle_matrix_loop_t loop = {goes_on, step, NULL, .count = 4};
  loop.state[0] = pestle_matrix_i32(f, 0);
  loop.state[1] = pestle_matrix_i32(f, 0);
  loop.state[2] = *a;
  loop.state[3] = pestle_matrix_unit(f, *a, extent(*a, 1), extent(*a, 1));
  pestle_matrix_loop(f, &loop);
  *a = loop.state[2];
  *v = loop.state[3];
}

// --- Ends ---

// |a| with the largest of each matrix in [1, 2); |out_size| [batch] is what it
// was divided by, |out_good| whether all its elements are finite.
static pv_t* scaled(pestle_formula_t* f, pv_t* a, pv_t** out_size,
                    pv_t** out_good) {
  pv_t* largest = pestle_matrix_largest(f, a);
  *out_good = pestle_f_is_finite(f, largest);
  *out_size = pestle_matrix_power(f, largest);
  return pestle_f_divide(f, a, pestle_matrix_per_batch(f, *out_size, a));
}

// (key, place) < (key, place): the regions's first two of four arguments.
static pestle_region_t* ascending(pestle_formula_t* f, pestle_dtype_t dtype) {
  pestle_region_t* region;
  pestle_type_t key = pestle_type_make(dtype, 0, NULL);
  pestle_type_t place = pestle_type_make(PESTLE_I32, 0, NULL);
  pestle_builder_t b = {.module = f->builder.module, .loc = f->builder.loc};
  if (!f->status) {
    f->status = pestle_region_create(b.module,
                                     (pestle_type_t[]){key, key, place, place},
                                     4, &region, &b.block);
  }
  if (f->status) return NULL;
  pv_t* less;
  f->status = pestle_op_lt(&b, pestle_block_argument(b.block, 0),
                           pestle_block_argument(b.block, 1), &less);
  if (!f->status) f->status = pestle_op_return(&b, &less, 1, NULL);
  return region;
}

// The places of the |count| smallest keys, in their order; what is sorted in
// |*keys|.
static pv_t* sorted(pestle_formula_t* f, pv_t** keys, int64_t count) {
  pv_t* operands[2] = {*keys, pestle_matrix_iota(f, *keys, 1)};
  if (!operands[1]) return NULL;
  pestle_region_t* region = ascending(f, (*keys)->type->dtype);
  pestle_attr_t attr = {
      .name = PESTLE_ATTR_dimension, .kind = PESTLE_ATTR_KIND_I64, .as.i64 = 1};
  pestle_node_t* node;
  if (f->status) return NULL;
  f->status = pestle_node_create(&f->builder,
                                 &(pestle_node_spec_t){.op = PESTLE_OP_SORT,
                                                       .operands = operands,
                                                       .operand_count = 2,
                                                       .attrs = &attr,
                                                       .attr_count = 1,
                                                       .regions = &region,
                                                       .region_count = 1},
                                 &node);
  if (f->status) return NULL;
  *keys = pestle_f_slice_axis(f, pestle_node_result(node, 0), 1, 0, count);
  return pestle_f_slice_axis(f, pestle_node_result(node, 1), 1, 0, count);
}

// Keys by which the row that was added comes last.
static pv_t* keys_of(pestle_formula_t* f, pv_t* values, pv_t* v, int64_t n) {
  if (extent(v, 1) == n) return values;
  pv_t* mark = pestle_f_part(f, v, 2, n);
  pv_t* none = pestle_matrix_fill(f, mark, 0);
  mark = pestle_f_ne(f, mark, none);
  pv_t* last = pestle_matrix_fill(f, values, INFINITY);
  return pestle_f_select(f, mark, last, values);
}

// Of each row of |x|, whether its leading component is negative: the first of
// those that are at least 3/4 as large as the largest.
static pv_t* lead_is_negative(pestle_formula_t* f, pv_t* x) {
  pv_t* size = pestle_f_abs(f, x);
  pv_t* largest = pestle_matrix_reduce(f, PESTLE_OP_MAXIMUM, size, 2, 0);
  pv_t* share = pestle_matrix_fill(f, largest, 0.75);
  largest = pestle_matrix_down(f, pestle_f_multiply(f, largest, share), x);
  pv_t* large = pestle_f_ge(f, size, largest);
  // Places as floats, which the reduction takes; up to 2^24 they are exact.
  pv_t* place = pestle_matrix_iota(f, x, 2);
  place = pestle_f_convert(f, place, PESTLE_F32);
  pv_t* behind = pestle_matrix_fill(f, place, INFINITY);
  pv_t* key = pestle_f_select(f, large, place, behind);
  key = pestle_matrix_reduce(f, PESTLE_OP_MINIMUM, key, 2, INFINITY);
  pv_t* leads = pestle_f_eq(f, place, pestle_matrix_down(f, key, place));
  pv_t* zeros = pestle_matrix_fill(f, x, 0);
  pv_t* lead = pestle_f_select(f, leads, x, zeros);
  lead = pestle_matrix_sum(f, lead, 2);
  pv_t* none = pestle_matrix_fill(f, lead, 0);
  return pestle_f_lt(f, lead, none);
}

static pv_t* flipped(pestle_formula_t* f, pv_t* x, pv_t* flips) {
  pv_t* other = pestle_f_negate(f, x);
  flips = pestle_matrix_down(f, flips, x);
  return pestle_f_select(f, flips, other, x);
}

// --- eigh ---

// Of the quarters of a, the diagonal of one: elements of pairs.
static pv_t* diagonal(pestle_formula_t* f, pv_t* quarter) {
  pv_t* i = pestle_matrix_iota(f, quarter, 1);
  pv_t* j = pestle_matrix_iota(f, quarter, 2);
  pv_t* same = pestle_f_eq(f, i, j);
  pv_t* zeros = pestle_matrix_fill(f, quarter, 0);
  pv_t* d = pestle_f_select(f, same, quarter, zeros);
  return pestle_matrix_sum(f, d, 2);
}

// |quarter| with |d| on its diagonal; where |only| is, if that is given.
static pv_t* with_diagonal(pestle_formula_t* f, pv_t* quarter, pv_t* d,
                           pv_t* only) {
  pv_t* i = pestle_matrix_iota(f, quarter, 1);
  pv_t* j = pestle_matrix_iota(f, quarter, 2);
  pv_t* same = pestle_f_eq(f, i, j);
  if (only) same = pestle_f_and(f, same, pestle_matrix_down(f, only, quarter));
  d = pestle_matrix_down(f, d, quarter);
  return pestle_f_select(f, same, d, quarter);
}

static void eigh_step(pestle_formula_t* f, void* user, pv_t** state) {
  (void)user;
  pair_t rows = halves(f, state[2], 1);
  pair_t top = halves(f, rows.p, 2);
  pair_t bottom = halves(f, rows.q, 2);
  pv_t* pp = diagonal(f, top.p);
  pv_t* pq = diagonal(f, top.q);
  pv_t* qq = diagonal(f, bottom.q);
  pv_t* size = pestle_f_abs(f, pq);
  pv_t* least = pestle_matrix_fill(f, pq, roundoff(pq) / 2);
  pv_t* turns = pestle_f_gt(f, size, least);
  rotation_t r = rotation(f, pp, qq, pq, turns);
  pair_t left = turned(f, &r, (pair_t){top.p, bottom.p}, false);
  pair_t right = turned(f, &r, (pair_t){top.q, bottom.q}, false);
  top = turned(f, &r, (pair_t){left.p, right.p}, true);
  bottom = turned(f, &r, (pair_t){left.q, right.q}, true);
  // What is known is set, so that its roundings do not turn it again.
  pv_t* less = pestle_f_multiply(f, r.t, pq);
  pv_t* none = pestle_matrix_fill(f, pq, 0);
  pp = pestle_f_subtract(f, pp, less);
  qq = pestle_f_add(f, qq, less);
  top.p = with_diagonal(f, top.p, pp, NULL);
  top.q = with_diagonal(f, top.q, none, turns);
  bottom.p = with_diagonal(f, bottom.p, none, turns);
  bottom.q = with_diagonal(f, bottom.q, qq, NULL);
  rows.p = moved(f, top, 2);
  rows.q = moved(f, bottom, 2);
  state[2] = moved(f, rows, 1);
  state[3] = turned_rows(f, &r, state[3]);
  count_step(f, &r, state);
}

// |a| with both halves from one.
static pv_t* mirrored(pestle_formula_t* f, pv_t* a, bool lower) {
  pv_t* i = pestle_matrix_iota(f, a, 1);
  pv_t* j = pestle_matrix_iota(f, a, 2);
  pv_t* own = pestle_f_binary(f, lower ? PESTLE_OP_GE : PESTLE_OP_LE, i, j);
  pv_t* other = pestle_matrix_transpose(f, a);
  return pestle_f_select(f, own, a, other);
}

pv_t* pestle_decompose_eigh(pestle_formula_t* f) {
  if (!pestle_type_count(pestle_node_operand(f->of->node, 0)->type)) {
    f->of->more[0] = pestle_matrix_of_nothing(f, 1);
    return pestle_matrix_of_nothing(f, 0);
  }
  pv_t *size, *good, *v, *a = pestle_matrix_of_operand(f);
  int64_t n = extent(a, 1);
  a = mirrored(f, a, PESTLE_NODE_BOOL(f->of->node, lower));
  a = scaled(f, a, &size, &good);
  a = pestle_f_pad_end(f, a, 1, n % 2);
  a = pestle_f_pad_end(f, a, 2, n % 2);
  run(f, eigh_step, &a, &v);
  pv_t* w = keys_of(f, diagonal(f, a), v, n);
  pv_t* order = sorted(f, &w, n);
  v = pestle_matrix_in_order(f, pestle_f_slice_axis(f, v, 2, 0, n), order);
  v = flipped(f, v, lead_is_negative(f, v));
  v = pestle_matrix_checked(f, pestle_matrix_transpose(f, v), good);
  f->of->more[0] = pestle_matrix_result(f, v, 1);
  w = pestle_f_multiply(f, w, pestle_matrix_per_batch(f, size, w));
  return pestle_matrix_result(f, pestle_matrix_checked(f, w, good), 0);
}

// --- svd ---

static void svd_step(pestle_formula_t* f, void* user, pv_t** state) {
  (void)user;
  pair_t w = halves(f, state[2], 1);
  pv_t* pp = pestle_matrix_sum(f, pestle_f_multiply(f, w.p, w.p), 2);
  pv_t* qq = pestle_matrix_sum(f, pestle_f_multiply(f, w.q, w.q), 2);
  pv_t* pq = pestle_matrix_sum(f, pestle_f_multiply(f, w.p, w.q), 2);
  pv_t* size = pestle_f_abs(f, pq);
  // Sums of m products have errors of some sqrt(m) roundings.
  double m = (double)extent(w.p, 2);
  pv_t* least = pestle_matrix_fill(f, pq, 2 * roundoff(pq) * sqrt(m));
  pv_t* root = pestle_f_sqrt(f, pp);
  least = pestle_f_multiply(f, least, root);
  root = pestle_f_sqrt(f, qq);
  least = pestle_f_multiply(f, least, root);
  pv_t* turns = pestle_f_gt(f, size, least);
  rotation_t r = rotation(f, pp, qq, pq, turns);
  state[2] = moved(f, turned(f, &r, w, false), 1);
  state[3] = turned_rows(f, &r, state[3]);
  count_step(f, &r, state);
}

// Rows of |v| behind those of |flips| as they are.
static pv_t* flipped_first(pestle_formula_t* f, pv_t* v, pv_t* flips) {
  int64_t n = extent(flips, 1), all = extent(v, 1);
  pv_t* first = flipped(f, pestle_f_slice_axis(f, v, 1, 0, n), flips);
  if (n == all) return first;
  pv_t* rest = pestle_f_slice_axis(f, v, 1, n, all);
  return pestle_f_concatenate(f, (pv_t*[]){first, rest}, 2, 1);
}

pv_t* pestle_decompose_svd(pestle_formula_t* f) {
  bool full = PESTLE_NODE_BOOL(f->of->node, full);
  if (!pestle_type_count(pestle_node_operand(f->of->node, 0)->type)) {
    f->of->more[0] = pestle_matrix_of_nothing(f, 1);
    f->of->more[1] = pestle_matrix_of_nothing(f, 2);
    return pestle_matrix_of_nothing(f, 0);
  }
  pv_t *size, *good, *v, *a = pestle_matrix_of_operand(f);
  bool wide = extent(a, 1) < extent(a, 2);
  if (!wide) a = pestle_matrix_transpose(f, a);
  int64_t n = extent(a, 1);
  pv_t* w = pestle_f_pad_end(f, scaled(f, a, &size, &good), 1, n % 2);
  run(f, svd_step, &w, &v);
  pv_t* d = pestle_matrix_sum(f, pestle_f_multiply(f, w, w), 2);
  d = pestle_f_sqrt(f, d);
  d = keys_of(f, pestle_f_negate(f, d), v, n);
  pv_t* order = sorted(f, &d, n);
  d = pestle_f_abs(f, d);
  w = pestle_matrix_in_order(f, w, order);
  v = pestle_matrix_in_order(f, pestle_f_slice_axis(f, v, 2, 0, n), order);
  // Their directions, and what stands upright on them where there is none.
  w = pestle_matrix_qr(f, w, full, NULL);
  pv_t* left = wide ? v : w;
  pv_t* flips = lead_is_negative(f, pestle_f_slice_axis(f, left, 1, 0, n));
  w = flipped_first(f, w, flips);
  v = flipped_first(f, v, flips);
  pv_t* u = pestle_matrix_transpose(f, wide ? v : w);
  u = pestle_matrix_checked(f, u, good);
  d = pestle_f_multiply(f, d, pestle_matrix_per_batch(f, size, d));
  d = pestle_matrix_checked(f, d, good);
  v = pestle_matrix_checked(f, wide ? w : v, good);
  f->of->more[0] = pestle_matrix_result(f, d, 1);
  f->of->more[1] = pestle_matrix_result(f, v, 2);
  return pestle_matrix_result(f, u, 0);
}
