// SPDX-License-Identifier: Apache-2.0
// Attention as core ops. The division by the sum comes last: it is on
// [batch.., S, E] and not on the scores, and the weighted sum of values does
// not have to wait for the sum of the weights.
#include <float.h>
#include <math.h>

#include "ir/composite.h"

#define LOG2E 0x1.71547652b82fep+0

// Operand |index| of |dtype|, which spreads over the scores |x|.
static pv_t* spread(pestle_steps_t* s, size_t index, pestle_dtype_t dtype,
                    const pestle_type_t* type) {
  int64_t axes[PESTLE_MAX_RANK];
  for (int i = 0; i < type->rank; ++i)
    axes[i] = i;
  pestle_i64s_t all = {axes, (size_t)type->rank};
  return pestle_step_broadcast(s, pestle_step_operand(s, index, dtype), all);
}

// What hides a score, in the scores' unit. It stays finite where it was: a row that
// is hidden as a whole has equal weights then.
static double hidden(const pestle_steps_t* s, double unit) {
  double low = PESTLE_NODE_F64(s->node, masked);
  double most = s->compute == PESTLE_F64 ? DBL_MAX : (double)FLT_MAX;
  if (fabs(low) > most) return low;
  return fmin(fmax(low * unit, -most), most);
}

// (scale * q.k + bias where the mask is true) * unit
static pv_t* scores(pestle_steps_t* s, const pestle_type_t* type, double unit) {
  double scale = PESTLE_NODE_F64(s->node, scale) * unit;
  size_t bias = pestle_attention_bias(s->node);
  size_t mask = pestle_attention_mask(s->node);
  pv_t* x = pestle_step_dot(s, pestle_node_operand(s->node, 0),
                            pestle_node_operand(s->node, 1), true, type);
  if (scale < 1 || scale > 1) {
    x = PESTLE_MUL(s, x, pestle_step_splat(s, x, scale));
  }
  if (bias) x = PESTLE_ADD(s, x, spread(s, bias, s->compute, type));
  if (!mask) return x;
  pv_t* low = pestle_step_splat(s, x, hidden(s, unit));
  return pestle_step_select(s, spread(s, mask, PESTLE_I1, type), x, low);
}

// w = exp(x - max(x)); attention = sum(w * v) / sum(w)
//
// Without a bias w = 2^(x - max(x)), the scores in units of ln 2: log2(e) goes into
// their scale, and a power of 2 takes three multiply-adds less than one of e. A bias
// of the lowest float, as hides scores, would overflow in that unit.
pv_t* pestle_decompose_attention(pestle_steps_t* s) {
  const pestle_type_t* q = pestle_node_operand(s->node, 0)->type;
  pestle_type_t result = s->node->results[0].type[0];
  int64_t last = q->rank - 1;
  pestle_i64s_t along = {&last, 1};
  result.dtype = s->compute;
  s->shape.dims[last] = pestle_node_operand(s->node, 1)->type->dims[last - 1];
  bool binary = !pestle_attention_bias(s->node);
  pv_t* x = scores(s, &s->shape, binary ? LOG2E : 1);
  pv_t* max = pestle_step_reduce(s, PESTLE_OP_MAXIMUM, x, along, -INFINITY);
  pv_t* w = pestle_step1(s, binary ? PESTLE_OP_EXP2 : PESTLE_OP_EXP,
                         PESTLE_SUB(s, x, pestle_step_spread(s, max, along)));
  pv_t* total = pestle_step_reduce(s, PESTLE_OP_ADD, w, along, 0);
  pv_t* v = pestle_step_operand(s, 2, s->compute);
  pv_t* sum = pestle_step_dot(s, w, v, false, &result);
  s->shape = result;
  pv_t* y = PESTLE_DIV(s, sum, pestle_step_spread(s, total, along));
  return pestle_step_convert(s, y, q->dtype);
}
