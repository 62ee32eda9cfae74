// SPDX-License-Identifier: Apache-2.0
// Composites as formulas of core ops. Quantisation is in composite_quant.c, the
// steps are in composite_steps.c.
#include "ir/composite.h"

#include <math.h>

static pestle_i64s_t dimensions_of(const pestle_steps_t* s) {
  return PESTLE_NODE_I64S(s->node, dimensions);
}

static pv_t* input(pestle_steps_t* s) {
  return pestle_step_operand(s, 0, s->compute);
}

// |a| in the type of operand 0.
static pv_t* output(pestle_steps_t* s, pv_t* a) {
  return pestle_step_convert(s, a,
                             pestle_node_operand(s->node, 0)->type->dtype);
}

// --- Along dimensions ---

// x - max(x): the same quotient without overflow.
static pv_t* below_max(pestle_steps_t* s, pv_t* x) {
  pestle_i64s_t dimensions = dimensions_of(s);
  pv_t* max =
      pestle_step_reduce(s, PESTLE_OP_MAXIMUM, x, dimensions, -INFINITY);
  return PESTLE_SUB(s, x, pestle_step_spread(s, max, dimensions));
}

static pv_t* sum(pestle_steps_t* s, pv_t* x) {
  return pestle_step_reduce(s, PESTLE_OP_ADD, x, dimensions_of(s), 0);
}

// softmax(x) = exp(x - max(x)) / sum(exp(x - max(x)))
//
// One division a row: the sum is 1 at least, so that its inverse is as good.
pv_t* pestle_decompose_softmax(pestle_steps_t* s) {
  pv_t* e = pestle_step1(s, PESTLE_OP_EXP, below_max(s, input(s)));
  pv_t* total = sum(s, e);
  pv_t* inverse = PESTLE_DIV(s, pestle_step_splat(s, total, 1), total);
  return output(
      s, PESTLE_MUL(s, e, pestle_step_spread(s, inverse, dimensions_of(s))));
}

// log_softmax(x) = x - max(x) - log(sum(exp(x - max(x))))
pv_t* pestle_decompose_log_softmax(pestle_steps_t* s) {
  pv_t* d = below_max(s, input(s));
  pv_t* total = sum(s, pestle_step1(s, PESTLE_OP_EXP, d));
  pv_t* log = pestle_step1(s, PESTLE_OP_LOG, total);
  return output(s,
                PESTLE_SUB(s, d, pestle_step_spread(s, log, dimensions_of(s))));
}

// logsumexp(x) = m + log(sum(exp(x - m))), m = max(x) where that is finite, else
// 0: rows of -inf alone, and of inf, are what they are.
pv_t* pestle_decompose_logsumexp(pestle_steps_t* s) {
  pv_t* x = input(s);
  pv_t* max =
      pestle_step_reduce(s, PESTLE_OP_MAXIMUM, x, dimensions_of(s), -INFINITY);
  pv_t* finite = pestle_step1(s, PESTLE_OP_IS_FINITE, max);
  max = pestle_step3(s, PESTLE_OP_SELECT, finite, max,
                     pestle_step_splat(s, max, 0));
  pv_t* d = PESTLE_SUB(s, x, pestle_step_spread(s, max, dimensions_of(s)));
  pv_t* total = sum(s, pestle_step1(s, PESTLE_OP_EXP, d));
  return output(s, PESTLE_ADD(s, max, pestle_step1(s, PESTLE_OP_LOG, total)));
}

static pv_t* mean(pestle_steps_t* s, pv_t* x) {
  pestle_i64s_t dimensions = dimensions_of(s);
  double count = 1;
  for (size_t i = 0; i < dimensions.count; ++i) {
    count *= (double)s->shape.dims[dimensions.data[i]];
  }
  pv_t* total = sum(s, x);
  return PESTLE_DIV(s, total, pestle_step_splat(s, total, count));
}

// x / sqrt(mean(x * x) + epsilon)
static pv_t* normalise(pestle_steps_t* s, pv_t* x) {
  pv_t* variance = mean(s, PESTLE_MUL(s, x, x));
  pv_t* epsilon =
      pestle_step_splat(s, variance, PESTLE_NODE_F64(s->node, epsilon));
  pv_t* inverse =
      pestle_step1(s, PESTLE_OP_RSQRT, PESTLE_ADD(s, variance, epsilon));
  return PESTLE_MUL(s, x, pestle_step_spread(s, inverse, dimensions_of(s)));
}

// Operand |index|, which has the shape of the dimensions.
static pv_t* per_dimension(pestle_steps_t* s, size_t index) {
  return pestle_step_broadcast(s, pestle_step_operand(s, index, s->compute),
                               dimensions_of(s));
}

// layer_norm(x) = normalise(x - mean(x)) * scale + offset
pv_t* pestle_decompose_layer_norm(pestle_steps_t* s) {
  pv_t* x = input(s);
  pv_t* centred =
      PESTLE_SUB(s, x, pestle_step_spread(s, mean(s, x), dimensions_of(s)));
  pv_t* scale = per_dimension(s, 1);
  pv_t* scaled = PESTLE_MUL(s, normalise(s, centred), scale);
  return output(s, PESTLE_ADD(s, scaled, per_dimension(s, 2)));
}

// rms_norm(x) = normalise(x) * scale
pv_t* pestle_decompose_rms_norm(pestle_steps_t* s) {
  pv_t* scale = per_dimension(s, 1);
  return output(s, PESTLE_MUL(s, normalise(s, input(s)), scale));
}

// --- Activations ---

// erf(x / sqrt(2))
static pv_t* gelu_erf(pestle_steps_t* s, pv_t* x) {
  return pestle_step1(s, PESTLE_OP_ERF,
                      pestle_step_times(s, x, 0.70710678118654752440));
}

// tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))
static pv_t* gelu_tanh(pestle_steps_t* s, pv_t* x) {
  pv_t* cube = PESTLE_MUL(s, PESTLE_MUL(s, x, x), x);
  pv_t* inner = PESTLE_ADD(s, x, pestle_step_times(s, cube, 0.044715));
  return pestle_step1(s, PESTLE_OP_TANH,
                      pestle_step_times(s, inner, 0.79788456080286535588));
}

// gelu(x) = x / 2 * (1 + erf(...)), or the form with tanh
pv_t* pestle_decompose_gelu(pestle_steps_t* s) {
  pv_t* x = input(s);
  pv_t* t =
      PESTLE_NODE_BOOL(s->node, approximate) ? gelu_tanh(s, x) : gelu_erf(s, x);
  t = pestle_step_plus(s, t, 1);
  return output(s, PESTLE_MUL(s, pestle_step_times(s, x, 0.5), t));
}

// silu(x) = x * logistic(x)
pv_t* pestle_decompose_silu(pestle_steps_t* s) {
  pv_t* x = input(s);
  return output(s, PESTLE_MUL(s, x, pestle_step1(s, PESTLE_OP_LOGISTIC, x)));
}

// hard_sigmoid(x) = clamp(0, alpha * x + beta, 1)
pv_t* pestle_decompose_hard_sigmoid(pestle_steps_t* s) {
  pv_t* line = pestle_step_plus(
      s, pestle_step_times(s, input(s), PESTLE_NODE_F64(s->node, alpha)),
      PESTLE_NODE_F64(s->node, beta));
  pv_t* low = pestle_step_splat(s, line, 0);
  pv_t* high = pestle_step_splat(s, line, 1);
  return output(s, pestle_step3(s, PESTLE_OP_CLAMP, low, line, high));
}
