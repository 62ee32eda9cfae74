// SPDX-License-Identifier: Apache-2.0
// solve and inverse by lu: with P a = L U, of x the rows are those of
// U^-1 L^-1 P b.
#include <string.h>

#include "base/mem.h"
#include "ir/composite.h"

// Rows of b [batch.., n, m] in the order |order| [batch.., n].
static pv_t* in_order(pestle_formula_t* f, pv_t* b, pv_t* order) {
  int64_t batch[PESTLE_MAX_RANK], sizes[PESTLE_MAX_RANK];
  if (!b || !order) return NULL;
  int32_t rank = b->type->rank, axis = rank - 2;
  int64_t columns = rank - 1;
  for (int32_t i = 0; i < rank; ++i) {
    if (i < axis) batch[i] = i;
    sizes[i] = i == rank - 1 ? b->type->dims[i] : 1;
  }
  int64_t collapsed = axis;
  pestle_attr_t attrs[] = {
      {PESTLE_ATTR_offset_dims, PESTLE_ATTR_KIND_I64S,
       .as.i64s = {&columns, 1}},
      {PESTLE_ATTR_collapsed_slice_dims, PESTLE_ATTR_KIND_I64S,
       .as.i64s = {&collapsed, 1}},
      {PESTLE_ATTR_operand_batching_dims, PESTLE_ATTR_KIND_I64S,
       .as.i64s = {batch, (size_t)axis}},
      {PESTLE_ATTR_start_indices_batching_dims, PESTLE_ATTR_KIND_I64S,
       .as.i64s = {batch, (size_t)axis}},
      {PESTLE_ATTR_start_index_map, PESTLE_ATTR_KIND_I64S,
       .as.i64s = {&collapsed, 1}},
      {PESTLE_ATTR_index_vector_dim, PESTLE_ATTR_KIND_I64, .as.i64 = rank - 1},
      {PESTLE_ATTR_slice_sizes, PESTLE_ATTR_KIND_I64S,
       .as.i64s = {sizes, (size_t)rank}},
  };
  return pestle_f_make(f, PESTLE_OP_GATHER, (pv_t*[]){b, order}, 2, attrs, 7,
                       NULL);
}

static pv_t* triangle(pestle_formula_t* f, pv_t* lu, pv_t* b, bool lower) {
  pestle_attr_t attrs[] = {
      {PESTLE_ATTR_left_side, PESTLE_ATTR_KIND_BOOL, .as.b = true},
      {PESTLE_ATTR_lower, PESTLE_ATTR_KIND_BOOL, .as.b = lower},
      {PESTLE_ATTR_unit_diagonal, PESTLE_ATTR_KIND_BOOL, .as.b = lower},
      {PESTLE_ATTR_transpose_a, PESTLE_ATTR_KIND_STR, .as.str = "NO_TRANSPOSE"},
  };
  return pestle_f_make(f, PESTLE_OP_TRIANGULAR_SOLVE, (pv_t*[]){lu, b}, 2,
                       attrs, 4, NULL);
}

// x of the type of b.
static pv_t* solve(pestle_formula_t* f, pv_t* b) {
  pv_t* a = pestle_f_operand(f, 0, f->compute);
  pv_t* lu = pestle_f_make(f, PESTLE_OP_LU, &a, 1, NULL, 0, NULL);
  if (!lu) return NULL;
  b = in_order(f, b, &lu->node->results[2]);
  return triangle(f, lu, triangle(f, lu, b, true), false);
}

static pv_t* rounded(pestle_formula_t* f, pv_t* x) {
  return pestle_f_convert(f, x,
                          pestle_node_operand(f->of->node, 0)->type->dtype);
}

pv_t* pestle_decompose_solve(pestle_formula_t* f) {
  pv_t* b = pestle_f_operand(f, 1, f->compute);
  if (!pestle_type_count(b->type)) return pestle_node_operand(f->of->node, 1);
  return rounded(f, solve(f, b));
}

// Of the unit matrix.
pv_t* pestle_decompose_inverse(pestle_formula_t* f) {
  pestle_type_t type = f->of->shape;
  if (!pestle_type_count(&type)) return pestle_node_operand(f->of->node, 0);
  type.dtype = PESTLE_I32;
  pv_t* i = pestle_f_iota(f, &type, type.rank - 2);
  pv_t* j = pestle_f_iota(f, &type, type.rank - 1);
  pv_t* unit = pestle_f_eq(f, i, j);
  return rounded(f, solve(f, pestle_f_convert(f, unit, f->compute)));
}
