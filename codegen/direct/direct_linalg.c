// SPDX-License-Identifier: Apache-2.0
// cholesky and triangular_solve: one matrix, or one block of right-hand sides,
// a group.
//
//   for k: for i in k .. n:                   for i, along the triangle:
//     s = a[i, k] - l[i, ..k] . l[k, ..k]       x[i] = (b[i] - a[i, done] .
//     l[i, k] = i == k ? sqrt(s) : s / l[k, k]          x[done]) / a[i, i]
//
// The root of an s that is not positive is NaN: of 0 too, as the matrix is not
// positive definite.
// Sums are in f32 at least. Right-hand sides that lie side by side go in vectors.
#include <math.h>
#include <string.h>

#include "codegen/direct/direct.h"

#define LANES 16

typedef struct linalg_t {
  pestle_direct_t* d;
  pestle_dtype_t stored, computed;
  uint32_t sum;  // variable
} linalg_t;

static linalg_t make(pestle_direct_t* d) {
  pestle_dtype_t dtype = d->node->results[0].type->dtype;
  bool wide = pestle_dtype_size(dtype) >= 4;
  return (linalg_t){
      .d = d, .stored = dtype, .computed = wide ? dtype : PESTLE_F32};
}

static pk_t load(linalg_t* l, uint32_t buffer, pk_t at, unsigned lanes,
                 pk_t mask) {
  pk_t x = pestle_kir_load(l->d->k, buffer, lanes, at, mask, 0);
  return l->stored == l->computed ? x
                                  : pestle_kir_cast(l->d->k, x, l->computed);
}

static void store(linalg_t* l, uint32_t buffer, pk_t at, pk_t x, pk_t mask) {
  if (l->stored != l->computed) x = pestle_kir_cast(l->d->k, x, l->stored);
  pestle_kir_store(l->d->k, buffer, at, x, mask, 0);
}

static pk_t loop(linalg_t* l, const char* name, pk_t lo, pk_t hi) {
  return pestle_kir_for(l->d->k, name, lo, hi, 1, PESTLE_KIR_SERIAL);
}

// sum -= a * b
static void take_away(linalg_t* l, pk_t a, pk_t b) {
  pestle_direct_t* d = l->d;
  pk_t product = pestle_direct_op(d, PESTLE_OP_MULTIPLY, a, b);
  pestle_direct_set(d, l->sum,
                    pestle_direct_op(d, PESTLE_OP_SUBTRACT,
                                     pestle_direct_get(d, l->sum), product));
}

// --- cholesky ---

bool pestle_direct_cholesky_is_idle(const pestle_node_t* node) {
  (void)node;
  return false;
}

// Element [i, k] of the triangle, seen as the lower one.
static pk_t element(linalg_t* l, pk_t base, pk_t i, int64_t row, pk_t k,
                    int64_t column) {
  return pestle_kir_madi(l->d->k, i, row,
                         pestle_kir_madi(l->d->k, k, column, base));
}

static pk_t pivot_root(linalg_t* l, pk_t sum) {
  pestle_kir_builder_t* k = l->d->k;
  pk_t positive = pestle_direct_op(l->d, PESTLE_OP_GT, sum,
                                   pestle_kir_const(k, l->computed, 1, 0, 0));
  pk_t root = pestle_kir_scalar(k, PESTLE_OP_SQRT, sum, PESTLE_KIR_NONE,
                                PESTLE_KIR_NONE);
  pk_t nan = pestle_kir_const(k, l->computed, 1, (double)NAN, 0);
  return pestle_direct_select(l->d, positive, root, nan);
}

static void factor_column(linalg_t* l, uint32_t a, pk_t base, int64_t n,
                          int64_t row, int64_t column) {
  pestle_direct_t* d = l->d;
  pk_t zero = pestle_direct_index(d, 0), end = pestle_direct_index(d, n);
  pk_t k = loop(l, "k", zero, end);
  pk_t above = loop(l, "i", zero, k);
  pk_t nothing = pestle_kir_const(d->k, l->computed, 1, 0, 0);
  store(l, a, element(l, base, above, row, k, column), nothing,
        PESTLE_KIR_NONE);
  pestle_kir_end(d->k);
  pk_t i = loop(l, "i", k, end);
  pk_t at = element(l, base, i, row, k, column);
  pestle_direct_set(d, l->sum, load(l, a, at, 1, PESTLE_KIR_NONE));
  pk_t j = loop(l, "j", zero, k);
  pk_t p = element(l, base, i, row, j, column);
  p = load(l, a, p, 1, PESTLE_KIR_NONE);
  pk_t q = element(l, base, k, row, j, column);
  q = load(l, a, q, 1, PESTLE_KIR_NONE);
  take_away(l, p, q);
  pestle_kir_end(d->k);
  pk_t sum = pestle_direct_get(d, l->sum);
  pestle_kir_if(d->k, pestle_direct_op(d, PESTLE_OP_EQ, i, k));
  store(l, a, at, pivot_root(l, sum), PESTLE_KIR_NONE);
  pestle_kir_else(d->k);
  pk_t root =
      load(l, a, element(l, base, k, row, k, column), 1, PESTLE_KIR_NONE);
  store(l, a, at, pestle_direct_op(d, PESTLE_OP_DIVIDE, sum, root),
        PESTLE_KIR_NONE);
  pestle_kir_end(d->k);
  pestle_kir_end(d->k);
  pestle_kir_end(d->k);
}

pestle_status_t pestle_direct_cholesky(pestle_direct_t* d) {
  const pestle_type_t* type = d->node->results[0].type;
  int64_t n = type->dims[type->rank - 1];
  int64_t matrices = pestle_type_count(type) / (n * n);
  bool lower = PESTLE_NODE_BOOL(d->node, lower);
  linalg_t l = make(d);
  uint32_t a = pestle_direct_result(d, 0);
  pk_t zero = pestle_direct_index(d, 0);
  pk_t all = pestle_direct_index(d, matrices);
  pk_t g = pestle_kir_for(d->k, "g", zero, all, 1, PESTLE_KIR_GROUP_X);
  l.sum = pestle_direct_variable(d, "sum", l.computed, 1);
  factor_column(&l, a, pestle_kir_madi(d->k, g, n * n, PESTLE_KIR_NONE), n,
                lower ? n : 1, lower ? 1 : n);
  pestle_kir_end(d->k);
  d->steps = (uint64_t)(matrices * n * n) * (uint64_t)n;
  return NULL;
}

// --- triangular_solve ---

// A triangle of n x n, seen from the left without a transpose, and |others|
// vectors of n; strides in elements.
typedef struct system_t {
  uint32_t a, b, x;  // buffers
  int64_t n, row, column, others, along, across;
  bool lower, unit;
  unsigned lanes;  // vectors of right-hand sides
} system_t;

static system_t system_of(const pestle_node_t* node) {
  const pestle_type_t* b = pestle_node_operand(node, 1)->type;
  bool left = PESTLE_NODE_BOOL(node, left_side);
  bool turned = strcmp(PESTLE_NODE_STR(node, transpose_a), "NO_TRANSPOSE") != 0;
  int64_t rows = b->dims[b->rank - 2], columns = b->dims[b->rank - 1];
  // x op(a) = b is transpose(op(a)) transpose(x) = transpose(b).
  bool swaps = turned == left;
  system_t s = {.n = left ? rows : columns,
                .others = left ? columns : rows,
                .along = left ? columns : 1,
                .across = left ? 1 : columns,
                .lower = PESTLE_NODE_BOOL(node, lower) != swaps,
                .unit = PESTLE_NODE_BOOL(node, unit_diagonal),
                .lanes = left && columns > 1 ? LANES : 1};
  s.row = swaps ? 1 : s.n;
  s.column = swaps ? s.n : 1;
  return s;
}

bool pestle_direct_triangular_solve_is_idle(const pestle_node_t* node) {
  (void)node;
  return false;
}

// Position |step| along the triangle.
static pk_t counted(linalg_t* l, const system_t* s, pk_t step) {
  if (s->lower) return step;
  return pestle_direct_op(l->d, PESTLE_OP_SUBTRACT,
                          pestle_direct_index(l->d, s->n - 1), step);
}

// The right-hand sides from |base| on; |matrix| is where the triangle begins.
static void solve_block(linalg_t* l, const system_t* s, pk_t matrix, pk_t base,
                        pk_t mask) {
  pestle_direct_t* d = l->d;
  pk_t zero = pestle_direct_index(d, 0);
  pk_t step = loop(l, "i", zero, pestle_direct_index(d, s->n));
  pk_t i = counted(l, s, step);
  pk_t at = pestle_kir_madi(d->k, i, s->along, base);
  pestle_direct_set(d, l->sum, load(l, s->b, at, s->lanes, mask));
  pk_t k = counted(l, s, loop(l, "j", zero, step));
  pk_t factor = load(l, s->a, element(l, matrix, i, s->row, k, s->column), 1,
                     PESTLE_KIR_NONE);
  pk_t known =
      load(l, s->x, pestle_kir_madi(d->k, k, s->along, base), s->lanes, mask);
  take_away(l, pestle_kir_splat(d->k, factor, s->lanes), known);
  pestle_kir_end(d->k);
  pk_t sum = pestle_direct_get(d, l->sum);
  if (!s->unit) {
    pk_t diagonal = load(l, s->a, element(l, matrix, i, s->row, i, s->column),
                         1, PESTLE_KIR_NONE);
    sum = pestle_direct_op(d, PESTLE_OP_DIVIDE, sum,
                           pestle_kir_splat(d->k, diagonal, s->lanes));
  }
  store(l, s->x, at, sum, mask);
  pestle_kir_end(d->k);
}

pestle_status_t pestle_direct_triangular_solve(pestle_direct_t* d) {
  const pestle_type_t* type = d->node->results[0].type;
  system_t s = system_of(d->node);
  linalg_t l = make(d);
  int64_t matrices = pestle_type_count(type) / (s.n * s.others);
  int64_t blocks = (s.others + s.lanes - 1) / s.lanes;
  s.a = pestle_direct_operand(d, 0);
  s.b = pestle_direct_operand(d, 1);
  s.x = pestle_direct_result(d, 0);
  pk_t zero = pestle_direct_index(d, 0);
  pk_t all = pestle_direct_index(d, matrices * blocks);
  pk_t g = pestle_kir_for(d->k, "g", zero, all, 1, PESTLE_KIR_GROUP_X);
  pk_t by = pestle_direct_index(d, blocks);
  pk_t matrix = pestle_direct_op(d, PESTLE_OP_DIVIDE, g, by);
  pk_t other =
      pestle_kir_madi(d->k, pestle_direct_op(d, PESTLE_OP_REMAINDER, g, by),
                      s.lanes, PESTLE_KIR_NONE);
  pk_t mask = s.lanes == 1
                  ? PESTLE_KIR_NONE
                  : pestle_kir_mask(d->k, other,
                                    pestle_direct_index(d, s.others), s.lanes);
  l.sum = pestle_direct_variable(d, "sum", l.computed, s.lanes);
  pk_t base =
      pestle_kir_madi(d->k, matrix, s.n * s.others,
                      pestle_kir_madi(d->k, other, s.across, PESTLE_KIR_NONE));
  matrix = pestle_kir_madi(d->k, matrix, s.n * s.n, PESTLE_KIR_NONE);
  solve_block(&l, &s, matrix, base, mask);
  pestle_kir_end(d->k);
  d->steps = (uint64_t)pestle_type_count(type) * (uint64_t)s.n;
  return NULL;
}
