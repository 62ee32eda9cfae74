// SPDX-License-Identifier: Apache-2.0
#include "ir/composite_matrix.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

static pestle_attr_t list(pestle_attr_name_t name, const int64_t* data,
                          size_t count) {
  return (pestle_attr_t){.name = (uint16_t)name,
                         .kind = PESTLE_ATTR_KIND_I64S,
                         .as.i64s = {data, count}};
}

// --- Loops ---

static pestle_block_t* enter(pestle_formula_t* f, const pestle_matrix_loop_t* l,
                             pestle_region_t** out_region, pv_t** arguments) {
  pestle_type_t types[PESTLE_MATRIX_STATE];
  pestle_block_t* block;
  for (size_t i = 0; i < l->count; ++i) {
    if (!l->state[i]) return NULL;
    types[i] = *l->state[i]->type;
  }
  if (f->status) return NULL;
  f->status = pestle_region_create(f->builder.module, types, l->count,
                                   out_region, &block);
  if (f->status) return NULL;
  for (size_t i = 0; i < l->count; ++i)
    arguments[i] = pestle_block_argument(block, i);
  f->builder.block = block;
  f->builder.before = NULL;
  return block;
}

static void leave(pestle_formula_t* f, pv_t* const* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!values[i]) return;
  }
  if (f->status) return;
  f->status = pestle_op_return(&f->builder, (pv_t**)values, count, NULL);
}

static void emit_while(pestle_formula_t* f, pestle_matrix_loop_t* l,
                       pestle_region_t* const* regions) {
  pestle_node_t* node;
  if (f->status) return;
  f->status =
      pestle_node_create(&f->builder,
                         &(pestle_node_spec_t){.op = PESTLE_OP_WHILE,
                                               .operands = l->state,
                                               .operand_count = l->count,
                                               .regions = regions,
                                               .region_count = 2},
                         &node);
  for (size_t i = 0; i < l->count; ++i)
    l->state[i] = f->status ? NULL : pestle_node_result(node, i);
}

void pestle_matrix_loop(pestle_formula_t* f, pestle_matrix_loop_t* l) {
  pestle_builder_t outer = f->builder;
  pestle_region_t* regions[2] = {NULL, NULL};
  pv_t* values[PESTLE_MATRIX_STATE];
  if (enter(f, l, &regions[0], values)) {
    pv_t* flag = l->goes_on(f, l->user, values);
    leave(f, &flag, 1);
  }
  if (!f->status && enter(f, l, &regions[1], values)) {
    l->step(f, l->user, values);
    leave(f, values, l->count);
  }
  f->builder = outer;
  emit_while(f, l, regions);
  if (!f->status) return;
  // What the regions use of the block around them is used by nothing.
  for (size_t i = 0; i < 2; ++i) {
    if (regions[i]) pestle_region_discard(regions[i]);
  }
}

// --- Values ---

pv_t* pestle_matrix_over(pestle_formula_t* f, pv_t* a, const pv_t* like,
                         const int64_t* axes) {
  if (!a || !like) return NULL;
  pestle_i64s_t to = {axes, (size_t)a->type->rank};
  return pestle_f_broadcast(f, a, like->type->rank, like->type->dims, to);
}

pv_t* pestle_matrix_down(pestle_formula_t* f, pv_t* a, const pv_t* like) {
  static const int64_t axes[] = {0, 1};
  return pestle_matrix_over(f, a, like, axes);
}

pv_t* pestle_matrix_across(pestle_formula_t* f, pv_t* a, const pv_t* like) {
  static const int64_t axes[] = {0, 2};
  return pestle_matrix_over(f, a, like, axes);
}

pv_t* pestle_matrix_per_batch(pestle_formula_t* f, pv_t* a, const pv_t* like) {
  static const int64_t axes[] = {0};
  return pestle_matrix_over(f, a, like, axes);
}

pv_t* pestle_matrix_iota(pestle_formula_t* f, const pv_t* like, int64_t axis) {
  if (!like) return NULL;
  pestle_type_t type = *like->type;
  type.dtype = PESTLE_I32;
  return pestle_f_iota(f, &type, axis);
}

pv_t* pestle_matrix_i32(pestle_formula_t* f, int64_t value) {
  pestle_type_t type = pestle_type_make(PESTLE_I32, 0, NULL);
  return pestle_f_number(f, &type, (double)value);
}

pv_t* pestle_matrix_fill(pestle_formula_t* f, const pv_t* like, double value) {
  return like ? pestle_f_number(f, like->type, value) : NULL;
}

pv_t* pestle_matrix_reduce(pestle_formula_t* f, pestle_op_t op, pv_t* a,
                           int64_t axis, double initial) {
  return pestle_f_reduce(f, op, a, (pestle_i64s_t){&axis, 1}, initial);
}

pv_t* pestle_matrix_sum(pestle_formula_t* f, pv_t* a, int64_t axis) {
  return pestle_matrix_reduce(f, PESTLE_OP_ADD, a, axis, 0);
}

static pv_t* unit(pestle_formula_t* f, const pestle_type_t* type) {
  pv_t like = {.type = type};
  pv_t* i = pestle_matrix_iota(f, &like, type->rank - 2);
  pv_t* j = pestle_matrix_iota(f, &like, type->rank - 1);
  pv_t* same = pestle_f_eq(f, i, j);
  return pestle_f_convert(f, same, type->dtype);
}

pv_t* pestle_matrix_unit(pestle_formula_t* f, const pv_t* like, int64_t rows,
                         int64_t columns) {
  if (!like) return NULL;
  pestle_type_t type = pestle_type_make(
      like->type->dtype, 3, (int64_t[]){like->type->dims[0], rows, columns});
  return unit(f, &type);
}

pv_t* pestle_matrix_transpose(pestle_formula_t* f, pv_t* a) {
  return pestle_f_transpose(f, a, (int64_t[]){0, 2, 1});
}

pv_t* pestle_matrix_row(pestle_formula_t* f, pv_t* a, pv_t* k) {
  pv_t* zero = pestle_matrix_i32(f, 0);
  if (!a) return NULL;
  const int64_t* dims = a->type->dims;
  pestle_attr_t attr =
      list(PESTLE_ATTR_slice_sizes, (int64_t[]){dims[0], 1, dims[2]}, 3);
  pv_t* row = pestle_f_make(f, PESTLE_OP_DYNAMIC_SLICE,
                            (pv_t*[]){a, zero, k, zero}, 4, &attr, 1, NULL);
  return pestle_f_reshape(f, row, 2, (int64_t[]){dims[0], dims[2]});
}

pv_t* pestle_matrix_set_row(pestle_formula_t* f, pv_t* a, pv_t* row, pv_t* k) {
  pv_t* zero = pestle_matrix_i32(f, 0);
  if (!row) return NULL;
  const int64_t* dims = row->type->dims;
  row = pestle_f_reshape(f, row, 3, (int64_t[]){dims[0], 1, dims[1]});
  return pestle_f_make(f, PESTLE_OP_DYNAMIC_UPDATE_SLICE,
                       (pv_t*[]){a, row, zero, k, zero}, 5, NULL, 0, NULL);
}

pv_t* pestle_matrix_in_order(pestle_formula_t* f, pv_t* a, pv_t* order) {
  if (!a) return NULL;
  pestle_attr_t attrs[] = {
      list(PESTLE_ATTR_offset_dims, (int64_t[]){2}, 1),
      list(PESTLE_ATTR_collapsed_slice_dims, (int64_t[]){1}, 1),
      list(PESTLE_ATTR_operand_batching_dims, (int64_t[]){0}, 1),
      list(PESTLE_ATTR_start_indices_batching_dims, (int64_t[]){0}, 1),
      list(PESTLE_ATTR_start_index_map, (int64_t[]){1}, 1),
      {PESTLE_ATTR_index_vector_dim, PESTLE_ATTR_KIND_I64, .as.i64 = 2},
      list(PESTLE_ATTR_slice_sizes, (int64_t[]){1, 1, a->type->dims[2]}, 3),
  };
  return pestle_f_make(f, PESTLE_OP_GATHER, (pv_t*[]){a, order}, 2, attrs, 7,
                       NULL);
}

pv_t* pestle_matrix_power(pestle_formula_t* f, pv_t* x) {
  if (!x) return NULL;
  bool wide = x->type->dtype == PESTLE_F64;
  pestle_type_t bits = *x->type;
  bits.dtype = wide ? PESTLE_U64 : PESTLE_U32;
  pv_t* mask = pestle_f_bits(
      f, &bits, wide ? UINT64_C(0x7ff0000000000000) : UINT64_C(0x7f800000));
  pv_t* least = pestle_matrix_fill(f, x, wide ? 0x1p-1022 : 0x1p-126);
  pv_t* y = pestle_f_make(f, PESTLE_OP_BITCAST_CONVERT, &x, 1, NULL, 0, &bits);
  y = pestle_f_and(f, y, mask);
  y = pestle_f_make(f, PESTLE_OP_BITCAST_CONVERT, &y, 1, NULL, 0, x->type);
  return pestle_f_maximum(f, y, least);
}

pv_t* pestle_matrix_largest(pestle_formula_t* f, pv_t* a) {
  static const int64_t axes[] = {1, 2};
  a = pestle_f_abs(f, a);
  return pestle_f_reduce(f, PESTLE_OP_MAXIMUM, a, (pestle_i64s_t){axes, 2}, 0);
}

// --- Operands and results ---

pv_t* pestle_matrix_checked(pestle_formula_t* f, pv_t* a, pv_t* good) {
  pv_t* nan = pestle_matrix_fill(f, a, NAN);
  good = pestle_matrix_per_batch(f, good, a);
  return pestle_f_select(f, good, a, nan);
}
pv_t* pestle_matrix_of_operand(pestle_formula_t* f) {
  pv_t* a = pestle_node_operand(f->of->node, 0);
  int32_t rank = a->type->rank;
  int64_t dims[3] = {1, a->type->dims[rank - 2], a->type->dims[rank - 1]};
  for (int32_t i = 0; i < rank - 2; ++i)
    dims[0] *= a->type->dims[i];
  return pestle_f_reshape(f, a, 3, dims);
}

pv_t* pestle_matrix_result(pestle_formula_t* f, pv_t* a, size_t index) {
  const pestle_type_t* type = f->of->node->results[index].type;
  return pestle_f_reshape(f, a, type->rank, type->dims);
}

pv_t* pestle_matrix_of_nothing(pestle_formula_t* f, size_t index) {
  const pestle_type_t* type = f->of->node->results[index].type;
  return pestle_type_count(type) ? unit(f, type) : pestle_f_number(f, type, 0);
}
