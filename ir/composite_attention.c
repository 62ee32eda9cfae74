// SPDX-License-Identifier: Apache-2.0
// Attention as core ops. The division by the sum comes last: it is on
// [batch.., S, E] and not on the scores, and the weighted sum of values does
// not have to wait for the sum of the weights.
#include <float.h>
#include <math.h>

#include "ir/composite.h"

#define LOG2E 0x1.71547652b82fep+0

// Operand |index| of |dtype|, which spreads over the scores |x|.
static pv_t* spread(pestle_formula_t* f, size_t index, pestle_dtype_t dtype,
                    const pestle_type_t* type) {
  int64_t axes[PESTLE_MAX_RANK];
  for (int i = 0; i < type->rank; ++i)
    axes[i] = i;
  pestle_i64s_t all = {axes, (size_t)type->rank};
  return pestle_f_to_shape(f, pestle_f_operand(f, index, dtype), all);
}

// What hides a score, in the scores' unit. It stays finite where it was: a row that
// is hidden as a whole has equal weights then.
static double hidden(const pestle_formula_t* f, double unit) {
  double low = PESTLE_NODE_F64(f->of->node, masked);
  double most = f->compute == PESTLE_F64 ? DBL_MAX : (double)FLT_MAX;
  if (fabs(low) > most) return low;
  return fmin(fmax(low * unit, -most), most);
}

// (scale * q.k + bias where the mask is true) * unit
static pv_t* scores(pestle_formula_t* f, const pestle_type_t* type,
                    double unit) {
  double scale = PESTLE_NODE_F64(f->of->node, scale) * unit;
  size_t bias = pestle_attention_bias(f->of->node);
  size_t mask = pestle_attention_mask(f->of->node);
  pv_t* x = pestle_f_dot(f, pestle_node_operand(f->of->node, 0),
                         pestle_node_operand(f->of->node, 1), true, type);
  if (scale < 1 || scale > 1) {
    x = pestle_f_multiply(f, x, pestle_f_splat(f, x, scale));
  }
  if (bias) x = pestle_f_add(f, x, spread(f, bias, f->compute, type));
  if (!mask) return x;
  pv_t* low = pestle_f_splat(f, x, hidden(f, unit));
  return pestle_f_select(f, spread(f, mask, PESTLE_I1, type), x, low);
}

// w = exp(x - max(x)); attention = sum(w * v) / sum(w)
//
// Without a bias w = 2^(x - max(x)), the scores in units of ln 2: log2(e) goes into
// their scale, and a power of 2 takes three multiply-adds less than one of e. A bias
// of the lowest float, as hides scores, would overflow in that unit.
pv_t* pestle_decompose_attention(pestle_formula_t* f) {
  const pestle_type_t* q = pestle_node_operand(f->of->node, 0)->type;
  pestle_type_t result = f->of->node->results[0].type[0];
  int64_t last = q->rank - 1;
  pestle_i64s_t along = {&last, 1};
  result.dtype = f->compute;
  f->of->shape.dims[last] =
      pestle_node_operand(f->of->node, 1)->type->dims[last - 1];
  bool binary = !pestle_attention_bias(f->of->node);
  pv_t* x = scores(f, &f->of->shape, binary ? LOG2E : 1);
  pv_t* max = pestle_f_reduce(f, PESTLE_OP_MAXIMUM, x, along, -INFINITY);
  pv_t* w =
      pestle_f_unary(f, binary ? PESTLE_OP_EXP2 : PESTLE_OP_EXP,
                     pestle_f_subtract(f, x, pestle_f_spread(f, max, along)));
  pv_t* total = pestle_f_reduce(f, PESTLE_OP_ADD, w, along, 0);
  pv_t* v = pestle_f_operand(f, 2, f->compute);
  pv_t* sum = pestle_f_dot(f, w, v, false, &result);
  f->of->shape = result;
  pv_t* y = pestle_f_divide(f, sum, pestle_f_spread(f, total, along));
  return pestle_f_convert(f, y, q->dtype);
}
