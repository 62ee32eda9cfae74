// SPDX-License-Identifier: Apache-2.0
// Rules of ops that move elements: their tangents move likewise, cotangents move
// back, and add up where an element was read more than once.
#include <string.h>

#include "base/fault.h"
#include "transform/transform.h"

static pv_t* operand(const pestle_node_t* node, size_t index) {
  return pestle_node_operand(node, index);
}

// Operand axis i is axis axes[i] of the result, or repeated along it.
void pestle_transpose_broadcast_in_dim(pestle_transposer_t* x,
                                       pestle_node_t* node, pv_t* const* ct) {
  pestle_i64s_t axes = PESTLE_NODE_I64S(node, broadcast_dimensions);
  const pestle_type_t* from = operand(node, 0)->type;
  const pestle_type_t* to = node->results[0].type;
  int64_t place[PESTLE_MAX_RANK], summed[PESTLE_MAX_RANK];
  int64_t order[PESTLE_MAX_RANK];
  size_t sums = 0, kept = 0, moved = 0;
  for (int32_t d = 0; d < to->rank; ++d)
    place[d] = -1;
  for (size_t i = 0; i < axes.count; ++i) {
    bool is_repeated = from->dims[i] == 1 && to->dims[axes.data[i]] != 1;
    if (!is_repeated) place[axes.data[i]] = 0;
  }
  for (int32_t d = 0; d < to->rank; ++d) {
    if (place[d] < 0) {
      summed[sums++] = d;
    } else {
      place[d] = (int64_t)kept++;
    }
  }
  for (size_t i = 0; i < axes.count; ++i) {
    if (place[axes.data[i]] >= 0) order[moved++] = place[axes.data[i]];
  }
  pv_t* a = ct[0];
  for (size_t i = 0; i < sums && PESTLE_FAULT(lost_broadcast_sum); ++i)
    a = pestle_f_slice_axis(&x->f, a, (int32_t)summed[i], 0, 1);
  a = pestle_sum_axes(&x->f, a, summed, sums);
  a = pestle_f_transpose(&x->f, a, order);
  pestle_cotangent_add(x, node, 0, pestle_f_reshape_to(&x->f, a, from));
}

void pestle_transpose_reshape(pestle_transposer_t* x, pestle_node_t* node,
                              pv_t* const* ct) {
  pestle_cotangent_add(
      x, node, 0, pestle_f_reshape_to(&x->f, ct[0], operand(node, 0)->type));
}

void pestle_transpose_transpose(pestle_transposer_t* x, pestle_node_t* node,
                                pv_t* const* ct) {
  pestle_i64s_t order = PESTLE_NODE_I64S(node, permutation);
  int64_t back[PESTLE_MAX_RANK];
  for (size_t i = 0; i < order.count; ++i)
    back[order.data[i]] = (int64_t)i;
  pestle_cotangent_add(x, node, 0, pestle_f_transpose(&x->f, ct[0], back));
}

void pestle_transpose_slice(pestle_transposer_t* x, pestle_node_t* node,
                            pv_t* const* ct) {
  const pestle_type_t* from = operand(node, 0)->type;
  const pestle_type_t* to = node->results[0].type;
  const int64_t* starts = PESTLE_NODE_I64S(node, start_indices).data;
  const int64_t* strides = PESTLE_NODE_I64S(node, strides).data;
  int64_t high[PESTLE_MAX_RANK], between[PESTLE_MAX_RANK];
  for (int32_t d = 0; d < from->rank; ++d) {
    int64_t n = to->dims[d];
    between[d] = strides[d] - 1;
    high[d] = from->dims[d] - starts[d] - (n ? (n - 1) * strides[d] + 1 : 0);
  }
  pv_t* zero = pestle_f_scalar(&x->f, from->dtype, 0);
  pestle_cotangent_add(x, node, 0,
                       pestle_f_pad(&x->f, ct[0], zero, starts, high, between));
}

void pestle_transpose_reverse(pestle_transposer_t* x, pestle_node_t* node,
                              pv_t* const* ct) {
  pestle_cotangent_add(x, node, 0, pestle_f_like(&x->f, node, ct, NULL));
}

// --- pad ---

// What of |ct| lies where operand 0 was put: padding back, then every
// (interior + 1)-th element.
static pv_t* unpad(pestle_formula_t* f, const pestle_node_t* node, pv_t* ct) {
  const int64_t* low = PESTLE_NODE_I64S(node, edge_padding_low).data;
  const int64_t* high = PESTLE_NODE_I64S(node, edge_padding_high).data;
  const int64_t* between = PESTLE_NODE_I64S(node, interior_padding).data;
  int64_t starts[PESTLE_MAX_RANK] = {0}, strides[PESTLE_MAX_RANK];
  int64_t front[PESTLE_MAX_RANK], back[PESTLE_MAX_RANK];
  int64_t limits[PESTLE_MAX_RANK];
  const pestle_type_t* from = operand(node, 0)->type;
  for (int32_t d = 0; d < from->rank; ++d) {
    int64_t n = from->dims[d];
    front[d] = -low[d];
    back[d] = -high[d];
    strides[d] = between[d] + 1;
    limits[d] = n ? (n - 1) * strides[d] + 1 : 0;
  }
  ct = pestle_f_pad(f, ct, pestle_f_scalar(f, from->dtype, 0), front, back,
                    NULL);
  return pestle_f_slice(f, ct, starts, limits, strides);
}

void pestle_transpose_pad(pestle_transposer_t* x, pestle_node_t* node,
                          pv_t* const* ct) {
  pestle_formula_t* f = &x->f;
  int64_t all[PESTLE_MAX_RANK];
  if (pestle_is_linear(x, operand(node, 0))) {
    pestle_cotangent_add(x, node, 0, unpad(f, node, ct[0]));
  }
  if (PESTLE_FAULT(lost_padding)) return;
  if (!pestle_is_linear(x, operand(node, 1))) return;
  pestle_type_t type = *operand(node, 0)->type;
  type.dtype = PESTLE_I1;
  for (int32_t d = 0; d < type.rank; ++d)
    all[d] = d;
  pv_t* flags[2] = {pestle_f_number(f, &type, 0), NULL};
  flags[1] = pestle_f_scalar(f, PESTLE_I1, 1);
  pv_t* is_padding = pestle_f_like(f, node, flags, NULL);
  pv_t* a = pestle_f_select(f, is_padding, ct[0], pestle_zeros(f, ct[0]));
  pestle_cotangent_add(x, node, 1,
                       pestle_sum_axes(f, a, all, (size_t)type.rank));
}

void pestle_transpose_concatenate(pestle_transposer_t* x, pestle_node_t* node,
                                  pv_t* const* ct) {
  int32_t axis = (int32_t)PESTLE_NODE_I64(node, dimension);
  int64_t low = 0;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    int64_t high = low + operand(node, i)->type->dims[axis];
    if (pestle_is_linear(x, operand(node, i))) {
      pestle_cotangent_add(x, node, i,
                           pestle_f_slice_axis(&x->f, ct[0], axis, low, high));
    }
    low = high;
  }
}

// --- Parts at computed places ---

// |operands| of |node| from |first| on behind |head|.
static pv_t* with_starts(pestle_transposer_t* x, const pestle_node_t* node,
                         pestle_op_t op, pv_t* const* head, size_t heads,
                         size_t first, const pestle_attr_t* attr) {
  pv_t* operands[PESTLE_MAX_RANK + 2];
  size_t count = heads + node->operand_count - first;
  memcpy(operands, head, heads * sizeof(head[0]));
  for (size_t i = first; i < node->operand_count; ++i)
    operands[heads + i - first] = operand(node, i);
  return pestle_f_make(&x->f, op, operands, count, attr, attr ? 1 : 0, NULL);
}

void pestle_transpose_dynamic_slice(pestle_transposer_t* x, pestle_node_t* node,
                                    pv_t* const* ct) {
  pv_t* head[2] = {pestle_zeros(&x->f, operand(node, 0)), ct[0]};
  pestle_cotangent_add(
      x, node, 0,
      with_starts(x, node, PESTLE_OP_DYNAMIC_UPDATE_SLICE, head, 2, 1, NULL));
}

void pestle_transpose_dynamic_update_slice(pestle_transposer_t* x,
                                           pestle_node_t* node,
                                           pv_t* const* ct) {
  const pestle_type_t* part = operand(node, 1)->type;
  if (pestle_is_linear(x, operand(node, 0))) {
    pv_t* head[2] = {ct[0], pestle_zeros(&x->f, operand(node, 1))};
    if (PESTLE_FAULT(kept_overwritten)) {
      pestle_cotangent_add(x, node, 0, ct[0]);
      return;
    }
    pestle_cotangent_add(
        x, node, 0,
        with_starts(x, node, PESTLE_OP_DYNAMIC_UPDATE_SLICE, head, 2, 2, NULL));
  }
  if (pestle_is_linear(x, operand(node, 1))) {
    pestle_attr_t sizes =
        PESTLE_SET_I64S(slice_sizes, part->dims, (size_t)part->rank);
    pestle_cotangent_add(
        x, node, 1,
        with_starts(x, node, PESTLE_OP_DYNAMIC_SLICE, ct, 1, 2, &sizes));
  }
}
