// SPDX-License-Identifier: Apache-2.0
#include "ir/attention.h"

void pestle_attention_values(
    const pestle_node_t* node,
    pestle_value_t* out_values[PESTLE_ATTENTION_VALUES]) {
  size_t bias = pestle_attention_bias(node), mask = pestle_attention_mask(node);
  for (uint32_t i = 0; i <= PESTLE_ATTENTION_V; ++i)
    out_values[i] = pestle_node_operand(node, i);
  out_values[PESTLE_ATTENTION_BIAS] =
      bias ? pestle_node_operand(node, bias) : NULL;
  out_values[PESTLE_ATTENTION_MASK] =
      mask ? pestle_node_operand(node, mask) : NULL;
}

pestle_value_t* pestle_attention_wide(const pestle_attention_parts_t* a,
                                      pestle_value_t* value) {
  return value ? pestle_f_convert(a->f, value, a->compute) : NULL;
}

pestle_value_t* pestle_attention_spread(const pestle_attention_parts_t* a,
                                        pestle_value_t* value) {
  int64_t axes[PESTLE_MAX_RANK];
  if (!value) return NULL;
  pestle_type_t type = a->scores;
  type.dtype = value->type->dtype;
  for (int32_t d = 0; d < type.rank; ++d)
    axes[d] = d;
  return pestle_f_broadcast_to(a->f, value, &type, axes);
}

void pestle_attention_parts(
    pestle_formula_t* f, const pestle_node_t* node,
    pestle_value_t* const values[PESTLE_ATTENTION_VALUES],
    pestle_attention_parts_t* out_parts) {
  pestle_dtype_t dtype = node->results[0].type->dtype;
  pestle_attention_parts_t a = {
      .f = f,
      .node = node,
      .compute = dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32};
  for (int i = 0; i < PESTLE_ATTENTION_VALUES; ++i)
    a.given[i] = values[i];
  *out_parts = a;
  pestle_value_t *q = values[PESTLE_ATTENTION_Q],
                 *k = values[PESTLE_ATTENTION_K],
                 *v = values[PESTLE_ATTENTION_V];
  if (!q || !k || !v) return;
  a.scores = a.result = *q->type;
  a.scores.dtype = a.result.dtype = a.compute;
  int32_t last = a.scores.rank - 1;
  a.scores.dims[last] = k->type->dims[last - 1];
  a.result.dims[last] = v->type->dims[last];
  a.q = pestle_attention_wide(&a, q);
  a.k = pestle_attention_wide(&a, k);
  a.v = pestle_attention_wide(&a, v);
  a.mask = pestle_attention_spread(&a, values[PESTLE_ATTENTION_MASK]);
  *out_parts = a;
}

pestle_value_t* pestle_attention_product(const pestle_attention_parts_t* a,
                                         pestle_value_t* q, pestle_value_t* k) {
  pestle_value_t* x =
      q && k ? pestle_f_dot(a->f, q, k, true, &a->scores) : NULL;
  return x ? pestle_f_times(a->f, x, PESTLE_NODE_F64(a->node, scale)) : NULL;
}

pestle_value_t* pestle_attention_scores(pestle_attention_parts_t* a) {
  pestle_formula_t* f = a->f;
  pestle_value_t* bias = a->given[PESTLE_ATTENTION_BIAS];
  pestle_value_t* x = pestle_attention_product(a, a->q, a->k);
  if (bias) {
    bias = pestle_attention_spread(a, pestle_attention_wide(a, bias));
    x = pestle_f_add(f, x, bias);
  }
  if (a->mask) {
    pestle_value_t* masked =
        pestle_f_number(f, &a->scores, PESTLE_NODE_F64(a->node, masked));
    x = pestle_f_select(f, a->mask, x, masked);
  }
  return x;
}

pestle_value_t* pestle_attention_weights(pestle_attention_parts_t* a) {
  int64_t last = a->scores.rank - 1;
  pestle_value_t* x = pestle_attention_scores(a);
  pestle_attr_t attr = PESTLE_SET_I64S(dimensions, &last, 1);
  return pestle_f_make(a->f, PESTLE_OP_SOFTMAX, &x, 1, &attr, 1, NULL);
}

pestle_value_t* pestle_attention_row_sums(const pestle_attention_parts_t* a,
                                          pestle_value_t* x) {
  int64_t last = a->scores.rank - 1, kept[PESTLE_MAX_RANK];
  if (!x) return NULL;
  for (int32_t d = 0; d < last; ++d)
    kept[d] = d;
  x = pestle_f_reduce(a->f, PESTLE_OP_ADD, x, (pestle_i64s_t){&last, 1}, 0);
  return x ? pestle_f_broadcast_to(a->f, x, &a->scores, kept) : NULL;
}

pestle_value_t* pestle_attention_limited(pestle_formula_t* f, int32_t rank,
                                         int64_t rows, int64_t keys,
                                         pestle_attention_limits_t limits) {
  pestle_type_t type = {.dtype = PESTLE_I32, .rank = rank};
  for (int32_t d = 0; d < rank; ++d)
    type.dims[d] = 1;
  type.dims[rank - 2] = rows;
  type.dims[rank - 1] = keys;
  pestle_value_t* key = pestle_f_iota(f, &type, rank - 1);
  pestle_value_t* row = pestle_f_iota(f, &type, rank - 2);
  pestle_value_t* gap = pestle_f_subtract(f, key, row);
  pestle_value_t* low = pestle_f_number(f, &type, (double)limits.low);
  pestle_value_t* high = pestle_f_number(f, &type, (double)limits.high);
  low = pestle_f_ge(f, gap, low);
  high = pestle_f_le(f, gap, high);
  return pestle_f_and(f, low, high);
}

static bool reads_number(const pestle_node_t* node, pestle_op_t op,
                         int64_t* out) {
  double f;
  if (!node || node->op != op) return false;
  const pestle_elements_t* e =
      pestle_value_constant(pestle_node_operand(node, 1));
  if (!e) return false;
  pestle_elements_first(e, &f, out);
  return true;
}

bool pestle_attention_limits_of(const pestle_value_t* mask,
                                pestle_attention_limits_t* out) {
  const pestle_node_t* node = mask->node;
  return node && node->op == PESTLE_OP_AND &&
         reads_number(pestle_node_operand(node, 0)->node, PESTLE_OP_GE,
                      &out->low) &&
         reads_number(pestle_node_operand(node, 1)->node, PESTLE_OP_LE,
                      &out->high);
}

static pestle_value_t* turned(const pestle_node_t* node, size_t operand) {
  return operand ? pestle_node_operand(
                       pestle_node_operand(node, (uint32_t)operand)->node, 0)
                 : NULL;
}

pestle_attention_grad_t pestle_attention_grad_read(const pestle_node_t* node) {
  return (pestle_attention_grad_t){
      .q = pestle_node_operand(node, 0),
      .k = pestle_node_operand(node, 1),
      .v = pestle_node_operand(node, 2),
      .y = pestle_node_operand(node, 3),
      .c = pestle_node_operand(node, 4),
      .bias = turned(node, pestle_attention_bias(node)),
      .mask = turned(node, pestle_attention_mask(node))};
}
