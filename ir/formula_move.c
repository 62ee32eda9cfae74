// SPDX-License-Identifier: Apache-2.0
// Formulas that move elements: see formula.h.
#include <string.h>

#include "base/mem.h"
#include "ir/formula.h"

typedef pestle_value_t pv_t;

pv_t* pestle_f_reshape(pestle_formula_t* f, pv_t* a, int32_t rank,
                       const int64_t* dims) {
  if (!a) return NULL;
  pestle_type_t type = pestle_type_make(a->type->dtype, rank, dims);
  if (pestle_type_equal(&type, a->type)) return a;
  return pestle_f_make(f, PESTLE_OP_RESHAPE, &a, 1, NULL, 0, &type);
}

pv_t* pestle_f_transpose(pestle_formula_t* f, pv_t* a, const int64_t* order) {
  bool same = true;
  if (!a) return NULL;
  for (int32_t i = 0; i < a->type->rank; ++i)
    same = same && order[i] == i;
  if (same) return a;
  pestle_attr_t attr =
      PESTLE_SET_I64S(permutation, order, (size_t)a->type->rank);
  return pestle_f_make(f, PESTLE_OP_TRANSPOSE, &a, 1, &attr, 1, NULL);
}

pv_t* pestle_f_slice(pestle_formula_t* f, pv_t* a, int32_t axis, int64_t low,
                     int64_t high) {
  int64_t start[PESTLE_MAX_RANK] = {0}, limit[PESTLE_MAX_RANK];
  int64_t stride[PESTLE_MAX_RANK];
  if (!a) return NULL;
  if (low == 0 && high == a->type->dims[axis]) return a;
  size_t rank = (size_t)a->type->rank;
  for (size_t i = 0; i < rank; ++i) {
    limit[i] = a->type->dims[i];
    stride[i] = 1;
  }
  start[axis] = low;
  limit[axis] = high;
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(start_indices, start, rank),
      PESTLE_SET_I64S(limit_indices, limit, rank),
      PESTLE_SET_I64S(strides, stride, rank),
  };
  return pestle_f_make(f, PESTLE_OP_SLICE, &a, 1, attrs, 3, NULL);
}

pv_t* pestle_f_part(pestle_formula_t* f, pv_t* a, int32_t axis, int64_t at) {
  int64_t dims[PESTLE_MAX_RANK];
  if (!a) return NULL;
  a = pestle_f_slice(f, a, axis, at, at + 1);
  int32_t rank = 0;
  for (int32_t i = 0; a && i < a->type->rank; ++i) {
    if (i != axis) dims[rank++] = a->type->dims[i];
  }
  return pestle_f_reshape(f, a, rank, dims);
}

pv_t* pestle_f_reverse(pestle_formula_t* f, pv_t* a, int64_t axis) {
  pestle_attr_t attr = PESTLE_SET_I64S(dimensions, &axis, 1);
  return pestle_f_make(f, PESTLE_OP_REVERSE, &a, 1, &attr, 1, NULL);
}

pv_t* pestle_f_concatenate(pestle_formula_t* f, pv_t* const* parts,
                           size_t count, int64_t axis) {
  pestle_attr_t attr = PESTLE_SET_I64(dimension, axis);
  return pestle_f_make(f, PESTLE_OP_CONCATENATE, parts, count, &attr, 1, NULL);
}

pv_t* pestle_f_stack(pestle_formula_t* f, pv_t* const* parts, size_t count) {
  pv_t* rows[PESTLE_MAX_RANK];
  for (size_t i = 0; i < count; ++i) {
    if (!parts[i]) return NULL;
    int64_t dims[PESTLE_MAX_RANK + 1] = {1};
    int32_t rank = parts[i]->type->rank;
    memcpy(dims + 1, parts[i]->type->dims, sizeof(dims[0]) * (size_t)rank);
    rows[i] = pestle_f_reshape(f, parts[i], rank + 1, dims);
  }
  return pestle_f_concatenate(f, rows, count, 0);
}

pv_t* pestle_f_pad_end(pestle_formula_t* f, pv_t* a, int32_t axis,
                       int64_t count) {
  int64_t none[PESTLE_MAX_RANK] = {0}, high[PESTLE_MAX_RANK] = {0};
  if (!a || !count) return a;
  size_t rank = (size_t)a->type->rank;
  high[axis] = count;
  pestle_type_t scalar = pestle_type_make(a->type->dtype, 0, NULL);
  pv_t* operands[2] = {a, pestle_f_number(f, &scalar, 0)};
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(edge_padding_low, none, rank),
      PESTLE_SET_I64S(edge_padding_high, high, rank),
      PESTLE_SET_I64S(interior_padding, none, rank),
  };
  return pestle_f_make(f, PESTLE_OP_PAD, operands, 2, attrs, 3, NULL);
}

pv_t* pestle_f_broadcast(pestle_formula_t* f, pv_t* a, int32_t rank,
                         const int64_t* dims, pestle_i64s_t axes) {
  if (!a) return NULL;
  pestle_type_t type = pestle_type_make(a->type->dtype, rank, dims);
  bool same = pestle_type_equal(&type, a->type);
  for (size_t i = 0; i < axes.count; ++i)
    same = same && axes.data[i] == (int64_t)i;
  if (same) return a;
  pestle_attr_t attr =
      PESTLE_SET_I64S(broadcast_dimensions, axes.data, axes.count);
  return pestle_f_make(f, PESTLE_OP_BROADCAST_IN_DIM, &a, 1, &attr, 1, &type);
}
