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

pv_t* pestle_f_reshape_to(pestle_formula_t* f, pv_t* a,
                          const pestle_type_t* type) {
  return pestle_f_reshape(f, a, type->rank, type->dims);
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

pv_t* pestle_f_transpose_matrix(pestle_formula_t* f, pv_t* a) {
  int64_t order[PESTLE_MAX_RANK];
  if (!a) return NULL;
  int32_t rank = a->type->rank;
  for (int32_t d = 0; d < rank; ++d)
    order[d] = d;
  order[rank - 1] = rank - 2;
  order[rank - 2] = rank - 1;
  return pestle_f_transpose(f, a, order);
}

pv_t* pestle_f_slice(pestle_formula_t* f, pv_t* a, const int64_t* starts,
                     const int64_t* limits, const int64_t* strides) {
  int64_t ones[PESTLE_MAX_RANK];
  if (!a) return NULL;
  size_t rank = (size_t)a->type->rank;
  for (size_t i = 0; i < rank; ++i)
    ones[i] = 1;
  if (!strides) strides = ones;
  bool whole = true;
  for (size_t i = 0; i < rank; ++i) {
    whole &= starts[i] == 0 && limits[i] == a->type->dims[i] && strides[i] == 1;
  }
  if (whole) return a;
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(start_indices, starts, rank),
      PESTLE_SET_I64S(limit_indices, limits, rank),
      PESTLE_SET_I64S(strides, strides, rank),
  };
  return pestle_f_make(f, PESTLE_OP_SLICE, &a, 1, attrs, 3, NULL);
}

pv_t* pestle_f_slice_axis(pestle_formula_t* f, pv_t* a, int32_t axis,
                          int64_t low, int64_t high) {
  int64_t starts[PESTLE_MAX_RANK] = {0}, limits[PESTLE_MAX_RANK];
  if (!a) return NULL;
  for (int32_t i = 0; i < a->type->rank; ++i)
    limits[i] = a->type->dims[i];
  starts[axis] = low;
  limits[axis] = high;
  return pestle_f_slice(f, a, starts, limits, NULL);
}

pv_t* pestle_f_part(pestle_formula_t* f, pv_t* a, int32_t axis, int64_t at) {
  int64_t dims[PESTLE_MAX_RANK];
  if (!a) return NULL;
  a = pestle_f_slice_axis(f, a, axis, at, at + 1);
  int32_t rank = 0;
  for (int32_t i = 0; a && i < a->type->rank; ++i) {
    if (i != axis) dims[rank++] = a->type->dims[i];
  }
  return pestle_f_reshape(f, a, rank, dims);
}

pv_t* pestle_f_reverse(pestle_formula_t* f, pv_t* a, pestle_i64s_t axes) {
  if (!a || !axes.count) return a;
  pestle_attr_t attr = PESTLE_SET_I64S(dimensions, axes.data, axes.count);
  return pestle_f_make(f, PESTLE_OP_REVERSE, &a, 1, &attr, 1, NULL);
}

pv_t* pestle_f_concatenate(pestle_formula_t* f, pv_t* const* parts,
                           size_t count, int64_t axis) {
  if (count == 1) return parts[0];
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

pv_t* pestle_f_pad(pestle_formula_t* f, pv_t* a, pv_t* value,
                   const int64_t* low, const int64_t* high,
                   const int64_t* between) {
  static const int64_t none[PESTLE_MAX_RANK];
  if (!a || !value) return NULL;
  size_t rank = (size_t)a->type->rank;
  if (!low) low = none;
  if (!high) high = none;
  if (!between) between = none;
  bool any = false;
  for (size_t i = 0; i < rank; ++i)
    any |= low[i] || high[i] || between[i];
  if (!any) return a;
  pv_t* operands[2] = {a, value};
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(edge_padding_low, low, rank),
      PESTLE_SET_I64S(edge_padding_high, high, rank),
      PESTLE_SET_I64S(interior_padding, between, rank),
  };
  return pestle_f_make(f, PESTLE_OP_PAD, operands, 2, attrs, 3, NULL);
}

pv_t* pestle_f_pad_end(pestle_formula_t* f, pv_t* a, int32_t axis,
                       int64_t count) {
  int64_t high[PESTLE_MAX_RANK] = {0};
  if (!a || !count) return a;
  high[axis] = count;
  pv_t* zero = pestle_f_scalar(f, a->type->dtype, 0);
  return pestle_f_pad(f, a, zero, NULL, high, NULL);
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

pv_t* pestle_f_broadcast_to(pestle_formula_t* f, pv_t* a,
                            const pestle_type_t* type, const int64_t* axes) {
  if (!a) return NULL;
  pestle_i64s_t list = {axes, (size_t)a->type->rank};
  return pestle_f_broadcast(f, a, type->rank, type->dims, list);
}

// --- One element along an axis ---

static void fill_starts(pestle_formula_t* f, int32_t rank, int32_t axis,
                        pestle_value_t* at, pestle_value_t** starts) {
  pestle_value_t* zero =
      rank > 1 && at ? pestle_f_scalar(f, at->type->dtype, 0) : NULL;
  for (int32_t d = 0; d < rank; ++d)
    starts[d] = d == axis ? at : zero;
}

pestle_value_t* pestle_f_element_at(pestle_formula_t* f, pestle_value_t* a,
                                    int32_t axis, pestle_value_t* at) {
  if (f->status) return NULL;
  pestle_value_t* operands[PESTLE_MAX_RANK + 1] = {a};
  pestle_type_t thin = *a->type, element = thin;
  for (int32_t d = axis; d + 1 < thin.rank; ++d)
    element.dims[d] = thin.dims[d + 1];
  --element.rank;
  thin.dims[axis] = 1;
  fill_starts(f, thin.rank, axis, at, operands + 1);
  pestle_attr_t sizes = PESTLE_SET_I64S(slice_sizes, thin.dims, thin.rank);
  pestle_value_t* y = pestle_f_make(f, PESTLE_OP_DYNAMIC_SLICE, operands,
                                    (size_t)thin.rank + 1, &sizes, 1, NULL);
  return pestle_f_reshape_to(f, y, &element);
}

pestle_value_t* pestle_f_with_element(pestle_formula_t* f, pestle_value_t* a,
                                      int32_t axis, pestle_value_t* at,
                                      pestle_value_t* element) {
  if (f->status) return NULL;
  pestle_value_t* operands[PESTLE_MAX_RANK + 2] = {a};
  pestle_type_t thin = *a->type;
  thin.dims[axis] = 1;
  operands[1] = pestle_f_reshape_to(f, element, &thin);
  fill_starts(f, thin.rank, axis, at, operands + 2);
  return pestle_f_make(f, PESTLE_OP_DYNAMIC_UPDATE_SLICE, operands,
                       (size_t)thin.rank + 2, NULL, 0, NULL);
}
