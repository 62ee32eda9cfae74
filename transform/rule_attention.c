// SPDX-License-Identifier: Apache-2.0
// attention: with w = softmax(x), dy = (w (dx - sum w dx)) v + w dv, where dx is that of
// the scores, 0 where they are masked. Computed in f32 at least, rounded once.
#include "transform/attention.h"

typedef pestle_attention_parts_t attention_t;

pv_t* pestle_attention_wide(const attention_t* a, pv_t* value) {
  return value ? pestle_f_convert(a->f, value, a->compute) : NULL;
}

// |value|, which may have 1 where it is repeated, in the shape of the scores.
static pv_t* spread(attention_t* a, pv_t* value) {
  int64_t axes[PESTLE_MAX_RANK];
  if (!value) return NULL;
  pestle_type_t type = a->scores;
  type.dtype = value->type->dtype;
  for (int32_t d = 0; d < type.rank; ++d)
    axes[d] = d;
  return pestle_f_broadcast_to(a->f, value, &type, axes);
}

void pestle_attention_parts(pestle_formula_t* f, const pestle_node_t* node,
                            pv_t* const* operands, uint32_t count,
                            attention_t* a) {
  size_t mask = pestle_attention_mask(node);
  pestle_dtype_t dtype = pestle_compute_dtype(node->results[0].type->dtype);
  *a = (attention_t){.f = f,
                     .node = node,
                     .operands = operands,
                     .count = count,
                     .compute = dtype};
  for (uint32_t i = 0; i < count; ++i) {
    if (!operands[i]) return;
  }
  a->scores = a->result = *operands[0]->type;
  a->scores.dtype = a->result.dtype = dtype;
  int32_t last = a->scores.rank - 1;
  a->scores.dims[last] = operands[1]->type->dims[last - 1];
  a->result.dims[last] = operands[2]->type->dims[last];
  a->q = pestle_attention_wide(a, operands[0]);
  a->k = pestle_attention_wide(a, operands[1]);
  a->v = pestle_attention_wide(a, operands[2]);
  a->mask = mask ? spread(a, operands[mask]) : NULL;
}

// scale q k^T
static pv_t* product(attention_t* a, pv_t* q, pv_t* k) {
  pv_t* x = q && k ? pestle_f_dot(a->f, q, k, true, &a->scores) : NULL;
  return x ? pestle_f_times(a->f, x, PESTLE_NODE_F64(a->node, scale)) : NULL;
}

pv_t* pestle_attention_weights(attention_t* a) {
  pestle_formula_t* f = a->f;
  size_t bias = pestle_attention_bias(a->node);
  int64_t last = a->scores.rank - 1;
  pv_t* x = product(a, a->q, a->k);
  if (bias) {
    pv_t* b = spread(a, pestle_attention_wide(a, a->operands[bias]));
    x = pestle_f_add(f, x, b);
  }
  if (a->mask) {
    pv_t* masked =
        pestle_f_number(f, &a->scores, PESTLE_NODE_F64(a->node, masked));
    x = pestle_f_select(f, a->mask, x, masked);
  }
  pestle_attr_t attr = PESTLE_SET_I64S(dimensions, &last, 1);
  return pestle_f_make(f, PESTLE_OP_SOFTMAX, &x, 1, &attr, 1, NULL);
}

// The tangent of the scores, or NULL.
static pv_t* score_tangent(attention_t* a, pv_t* const* t) {
  pestle_formula_t* f = a->f;
  size_t bias = pestle_attention_bias(a->node);
  pv_t* terms[3] = {NULL};
  if (t[0]) terms[0] = product(a, pestle_attention_wide(a, t[0]), a->k);
  if (t[1]) terms[1] = product(a, a->q, pestle_attention_wide(a, t[1]));
  if (bias && t[bias]) terms[2] = spread(a, pestle_attention_wide(a, t[bias]));
  pv_t* x = pestle_sum(f, terms, 3);
  if (!x || !a->mask) return x;
  pv_t* zeros = pestle_zeros(f, x);
  return pestle_f_select(f, a->mask, x, zeros);
}

void pestle_jvp_attention(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                          pv_t** out) {
  attention_t a;
  pv_t* operands[5];
  pestle_formula_t* f = &j->f;
  if (j->is_whole && node->block == j->function->body->block) {
    pestle_pull_back(j, node, PESTLE_PULLED_ATTENTION, t, out);
    return;
  }
  for (uint32_t i = 0; i < node->operand_count; ++i)
    operands[i] = pestle_node_operand(node, i);
  pestle_attention_parts(f, node, operands, node->operand_count, &a);
  pv_t *w = pestle_attention_weights(&a), *terms[2] = {NULL, NULL};
  pv_t* x = score_tangent(&a, t);
  if (!w) return;
  if (x) {
    int64_t last = a.scores.rank - 1;
    pv_t* sum = pestle_f_multiply(f, w, x);
    sum = pestle_sum_axes(f, sum, &last, 1);
    sum = pestle_spread_axes(f, sum, &a.scores, (pestle_i64s_t){&last, 1});
    x = pestle_f_multiply(f, w, pestle_f_subtract(f, x, sum));
    terms[0] = x ? pestle_f_dot(f, x, a.v, false, &a.result) : NULL;
  }
  if (t[2]) {
    pv_t* v = pestle_attention_wide(&a, t[2]);
    terms[1] = v ? pestle_f_dot(f, w, v, false, &a.result) : NULL;
  }
  out[0] = pestle_f_convert(f, pestle_sum(f, terms, 2),
                            node->results[0].type->dtype);
}
