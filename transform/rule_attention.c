// SPDX-License-Identifier: Apache-2.0
// attention: with w = softmax(x), dy = (w (dx - sum w dx)) v + w dv, where dx is that of
// the scores, 0 where they are masked. Computed in f32 at least, rounded once.
//
// Its tangent in reverse mode would be an op that has no meaning but to be transposed
// (rule_custom.c says more of such), so that the cotangents are one op, attention_grad.
#include "ir/attention.h"
#include "transform/transform.h"

typedef pestle_attention_parts_t attention_t;

// Tangent of the operand that is |index| by meaning, or NULL.
static pv_t* tangent_of(const pestle_node_t* node, pv_t* const* t,
                        size_t index) {
  size_t bias = pestle_attention_bias(node);
  if (index == PESTLE_ATTENTION_BIAS) return bias ? t[bias] : NULL;
  return t[index];
}

// The tangent of the scores, or NULL.
static pv_t* score_tangent(attention_t* a, pv_t* const* t) {
  pestle_formula_t* f = a->f;
  pv_t* bias = tangent_of(a->node, t, PESTLE_ATTENTION_BIAS);
  pv_t* terms[3] = {NULL};
  if (t[0]) {
    terms[0] =
        pestle_attention_product(a, pestle_attention_wide(a, t[0]), a->k);
  }
  if (t[1]) {
    terms[1] =
        pestle_attention_product(a, a->q, pestle_attention_wide(a, t[1]));
  }
  if (bias) {
    terms[2] = pestle_attention_spread(a, pestle_attention_wide(a, bias));
  }
  pv_t* x = pestle_sum(f, terms, 3);
  if (!x || !a->mask) return x;
  pv_t* zeros = pestle_zeros(f, x);
  return pestle_f_select(f, a->mask, x, zeros);
}

void pestle_jvp_attention(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                          pv_t** out) {
  attention_t a;
  pv_t* values[PESTLE_ATTENTION_VALUES];
  pestle_formula_t* f = &j->f;
  if (j->is_reverse) {
    pestle_custom_attr_value_t attrs[] = {
        pestle_pull_f64("scale", PESTLE_NODE_F64(node, scale)),
        pestle_pull_f64("masked", PESTLE_NODE_F64(node, masked))};
    pestle_pull_back_by(j, node, PESTLE_PULLED_ATTENTION, 0, attrs, 2, t, out);
    return;
  }
  pestle_attention_values(node, values);
  pestle_attention_parts(f, node, values, &a);
  pv_t *w = pestle_attention_weights(&a), *terms[2] = {NULL, NULL};
  pv_t* x = score_tangent(&a, t);
  if (!w) return;
  if (x) {
    pv_t* sum = pestle_attention_row_sums(&a, pestle_f_multiply(f, w, x));
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

void pestle_attention_pull(pestle_transposer_t* x, const pestle_node_t* node,
                           uint32_t count, pv_t* ct) {
  pv_t* operands[7];
  pv_t* y = pestle_node_operand(node, count);
  pestle_custom_attrs_t how;
  if (!pestle_pull_attrs(x, node, &how)) return;
  bool has_bias =
      count > PESTLE_ATTENTION_BIAS &&
      pestle_node_operand(node, PESTLE_ATTENTION_BIAS)->type->dtype !=
          PESTLE_I1;
  size_t bias = has_bias ? PESTLE_ATTENTION_BIAS : 0;
  for (uint32_t i = 0; i < count; ++i)
    operands[i < 3 ? i : i + 2] = pestle_node_operand(node, i);
  operands[3] = y;
  operands[4] = ct;
  pestle_attr_t attrs[] = {
      PESTLE_SET_F64(scale, pestle_custom_f64(&how, "scale")),
      PESTLE_SET_F64(masked, pestle_custom_f64(&how, "masked")),
      PESTLE_SET_BOOL(
          of_bias,
          bias && pestle_is_linear(x, pestle_node_operand(
                                          node, count + 1 + (uint32_t)bias)))};
  pestle_node_t* grad =
      pestle_f_node(&x->f, &(pestle_node_spec_t){.op = PESTLE_OP_ATTENTION_GRAD,
                                                 .operands = operands,
                                                 .operand_count = count + 2,
                                                 .attrs = attrs,
                                                 .attr_count = 3});
  for (uint32_t r = 0; grad && r < grad->result_count; ++r) {
    uint32_t to = r < 3 ? r : (uint32_t)bias;
    pestle_cotangent_add(x, node, count + 1 + to, pestle_node_result(grad, r));
  }
}
