// SPDX-License-Identifier: Apache-2.0
// lu: one matrix a group, row by row in place of its copy.
//
//   for k:  swap row k and the one with the largest |element| k
//           for i > k:  f = lu[i, k] /= lu[k, k]
//                       lu[i, k+1 ..] -= f * lu[k, k+1 ..]     in vectors
//
// A column of zeros is left as it is, as LAPACK does.
#include "codegen/direct/direct.h"

#define LANES 16

typedef struct lu_t {
  pestle_direct_t* d;
  uint32_t a, lu, pivots, order;  // buffers
  uint32_t best, at;              // variables
  int64_t rows, columns, steps;
  pk_t base, order_base;
} lu_t;

static pk_t loop(lu_t* l, const char* name, pk_t lo, int64_t hi, int32_t step) {
  return pestle_kir_for(l->d->k, name, lo, pestle_direct_index(l->d, hi), step,
                        PESTLE_KIR_SERIAL);
}

static pk_t place(lu_t* l, pk_t i, pk_t j) {
  pk_t row = pestle_kir_madi(l->d->k, i, l->columns, l->base);
  return pestle_direct_op(l->d, PESTLE_OP_ADD, row, j);
}

static pk_t size_at(lu_t* l, pk_t at) {
  return pestle_kir_scalar(l->d->k, PESTLE_OP_ABS,
                           pestle_direct_load(l->d, l->lu, at), PESTLE_KIR_NONE,
                           PESTLE_KIR_NONE);
}

static void copy(lu_t* l) {
  pestle_direct_t* d = l->d;
  pk_t zero = pestle_direct_index(d, 0);
  pk_t i = loop(l, "i", zero, l->rows * l->columns, LANES);
  pk_t end = pestle_direct_index(d, l->rows * l->columns);
  pk_t mask = pestle_kir_mask(d->k, i, end, LANES);
  pk_t at = pestle_direct_op(d, PESTLE_OP_ADD, l->base, i);
  pestle_kir_store(d->k, l->lu, at,
                   pestle_kir_load(d->k, l->a, LANES, at, mask, 0), mask, 0);
  pestle_kir_end(d->k);
  i = loop(l, "i", zero, l->rows, 1);
  pestle_direct_store(d, l->order,
                      pestle_direct_op(d, PESTLE_OP_ADD, l->order_base, i),
                      pestle_kir_cast(d->k, i, PESTLE_I32));
  pestle_kir_end(d->k);
}

// The row at or below k with the largest element k, the first of equals.
static void find_pivot(lu_t* l, pk_t k) {
  pestle_direct_t* d = l->d;
  pestle_direct_set(d, l->at, k);
  pestle_direct_set(d, l->best, size_at(l, place(l, k, k)));
  pk_t i = loop(l, "i", k, l->rows, 1);
  pk_t size = size_at(l, place(l, i, k));
  pk_t best = pestle_direct_get(d, l->best);
  pk_t more = pestle_direct_op(d, PESTLE_OP_GT, size, best);
  pk_t at = pestle_direct_get(d, l->at);
  pestle_direct_set(d, l->at, pestle_direct_select(d, more, i, at));
  pestle_direct_set(d, l->best, pestle_direct_select(d, more, size, best));
  pestle_kir_end(d->k);
}

static void swap(lu_t* l, uint32_t buffer, pk_t p, pk_t q, unsigned lanes,
                 pk_t mask) {
  pestle_kir_builder_t* k = l->d->k;
  pk_t x = pestle_kir_load(k, buffer, lanes, p, mask, 0);
  pk_t y = pestle_kir_load(k, buffer, lanes, q, mask, 0);
  pestle_kir_store(k, buffer, p, y, mask, 0);
  pestle_kir_store(k, buffer, q, x, mask, 0);
}

static void swap_rows(lu_t* l, pk_t k) {
  pestle_direct_t* d = l->d;
  // A row; the clamp is for who checks that.
  pk_t at = pestle_direct_clamp(d, pestle_direct_get(d, l->at), 0, l->rows - 1);
  pk_t p = pestle_direct_op(d, PESTLE_OP_ADD, l->order_base, k);
  pk_t q = pestle_direct_op(d, PESTLE_OP_ADD, l->order_base, at);
  swap(l, l->order, p, q, 1, PESTLE_KIR_NONE);
  pk_t j = loop(l, "j", pestle_direct_index(d, 0), l->columns, LANES);
  pk_t mask =
      pestle_kir_mask(d->k, j, pestle_direct_index(d, l->columns), LANES);
  pk_t first = place(l, k, j);
  swap(l, l->lu, first, place(l, at, j), LANES, mask);
  pestle_kir_end(d->k);
}

static void eliminate(lu_t* l, pk_t k, pk_t next) {
  pestle_direct_t* d = l->d;
  pk_t pivot = pestle_direct_load(d, l->lu, place(l, k, k));
  pestle_dtype_t dtype = d->node->results[0].type->dtype;
  pk_t nothing = pestle_kir_const(d->k, dtype, 1, 0, 0);
  pk_t none = pestle_direct_op(d, PESTLE_OP_EQ, pivot, nothing);
  pk_t i = loop(l, "i", next, l->rows, 1);
  pk_t at = place(l, i, k);
  pk_t f = pestle_direct_load(d, l->lu, at);
  f = pestle_direct_select(d, none, f,
                           pestle_direct_op(d, PESTLE_OP_DIVIDE, f, pivot));
  pestle_direct_store(d, l->lu, at, f);
  f = pestle_kir_splat(d->k, f, LANES);
  pk_t j = loop(l, "j", next, l->columns, LANES);
  pk_t mask =
      pestle_kir_mask(d->k, j, pestle_direct_index(d, l->columns), LANES);
  pk_t above = pestle_kir_load(d->k, l->lu, LANES, place(l, k, j), mask, 0);
  pk_t to = place(l, i, j);
  pk_t x = pestle_kir_load(d->k, l->lu, LANES, to, mask, 0);
  pk_t less = pestle_direct_op(d, PESTLE_OP_MULTIPLY, f, above);
  pestle_kir_store(d->k, l->lu, to,
                   pestle_direct_op(d, PESTLE_OP_SUBTRACT, x, less), mask, 0);
  pestle_kir_end(d->k);
  pestle_kir_end(d->k);
}

bool pestle_direct_lu_is_idle(const pestle_node_t* node) {
  (void)node;
  return false;
}

pestle_status_t pestle_direct_lu(pestle_direct_t* d) {
  const pestle_type_t* type = d->node->results[0].type;
  lu_t l = {.d = d,
            .rows = type->dims[type->rank - 2],
            .columns = type->dims[type->rank - 1]};
  l.steps = l.rows < l.columns ? l.rows : l.columns;
  int64_t size = l.rows * l.columns, matrices = pestle_type_count(type) / size;
  l.a = pestle_direct_operand(d, 0);
  l.lu = pestle_direct_result(d, 0);
  l.pivots = pestle_direct_result(d, 1);
  l.order = pestle_direct_result(d, 2);
  pk_t zero = pestle_direct_index(d, 0);
  pk_t g = pestle_kir_for(d->k, "g", zero, pestle_direct_index(d, matrices), 1,
                          PESTLE_KIR_GROUP_X);
  l.best = pestle_direct_variable(d, "best", type->dtype, 1);
  l.at = pestle_direct_variable(d, "at", PESTLE_INDEX, 1);
  l.base = pestle_kir_madi(d->k, g, size, PESTLE_KIR_NONE);
  l.order_base = pestle_kir_madi(d->k, g, l.rows, PESTLE_KIR_NONE);
  copy(&l);
  pk_t k = loop(&l, "k", zero, l.steps, 1);
  find_pivot(&l, k);
  pestle_direct_store(
      d, l.pivots, pestle_kir_madi(d->k, g, l.steps, k),
      pestle_kir_cast(d->k, pestle_direct_get(d, l.at), PESTLE_I32));
  swap_rows(&l, k);
  pk_t one = pestle_direct_index(d, 1);
  eliminate(&l, k, pestle_direct_op(d, PESTLE_OP_ADD, k, one));
  pestle_kir_end(d->k);
  pestle_kir_end(d->k);
  d->steps = (uint64_t)pestle_type_count(type) * (uint64_t)l.steps;
  return NULL;
}
