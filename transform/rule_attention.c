// SPDX-License-Identifier: Apache-2.0
// attention: with w = softmax(x), dy = (w (dx - sum w dx)) v + w dv, where dx is that of
// the scores, 0 where they are masked. Computed in f32 at least, rounded once.
#include "transform/transform.h"

typedef struct attention_t {
  pestle_formula_t* f;
  const pestle_node_t* node;
  pestle_dtype_t compute;
  pestle_type_t scores, result;
  pv_t *q, *k, *v, *mask;  // mask or NULL
} attention_t;

static pv_t* wide(attention_t* a, pv_t* value) {
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

static void init(attention_t* a, pestle_formula_t* f,
                 const pestle_node_t* node) {
  const pestle_type_t* type = node->results[0].type;
  size_t mask = pestle_attention_mask(node);
  *a = (attention_t){.f = f,
                     .node = node,
                     .compute = pestle_compute_dtype(type->dtype),
                     .result = *type};
  a->result.dtype = a->compute;
  a->scores = a->result;
  const pestle_type_t* k = pestle_node_operand(node, 1)->type;
  a->scores.dims[a->scores.rank - 1] = k->dims[k->rank - 2];
  a->q = wide(a, pestle_node_operand(node, 0));
  a->k = wide(a, pestle_node_operand(node, 1));
  a->v = wide(a, pestle_node_operand(node, 2));
  a->mask = mask ? spread(a, pestle_node_operand(node, mask)) : NULL;
}

// scale q k^T
static pv_t* product(attention_t* a, pv_t* q, pv_t* k) {
  pv_t* x = q && k ? pestle_f_dot(a->f, q, k, true, &a->scores) : NULL;
  return x ? pestle_f_times(a->f, x, PESTLE_NODE_F64(a->node, scale)) : NULL;
}

static pv_t* weights(attention_t* a) {
  pestle_formula_t* f = a->f;
  size_t bias = pestle_attention_bias(a->node);
  int64_t last = a->scores.rank - 1;
  pv_t* x = product(a, a->q, a->k);
  if (bias) {
    pv_t* b = spread(a, wide(a, pestle_node_operand(a->node, bias)));
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
  if (t[0]) terms[0] = product(a, wide(a, t[0]), a->k);
  if (t[1]) terms[1] = product(a, a->q, wide(a, t[1]));
  if (bias && t[bias]) terms[2] = spread(a, wide(a, t[bias]));
  pv_t* x = pestle_sum(f, terms, 3);
  if (!x || !a->mask) return x;
  pv_t* zeros = pestle_zeros(f, x);
  return pestle_f_select(f, a->mask, x, zeros);
}

void pestle_jvp_attention(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                          pv_t** out) {
  attention_t a;
  pestle_formula_t* f = &j->f;
  init(&a, f, node);
  pv_t *w = weights(&a), *terms[2] = {NULL, NULL};
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
    pv_t* v = wide(&a, t[2]);
    terms[1] = v ? pestle_f_dot(f, w, v, false, &a.result) : NULL;
  }
  out[0] = pestle_f_convert(f, pestle_sum(f, terms, 2),
                            node->results[0].type->dtype);
}
