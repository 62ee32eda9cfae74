// SPDX-License-Identifier: Apache-2.0
// Composites as formulas of core ops; those of one subject are in composite_<x>.c.
#include "ir/composite.h"

#include <math.h>

static pestle_i64s_t dimensions_of(const pestle_formula_t* f) {
  return PESTLE_NODE_I64S(f->of->node, dimensions);
}

static pv_t* input(pestle_formula_t* f) {
  return pestle_f_operand(f, 0, f->compute);
}

// |a| in the type of operand 0.
static pv_t* output(pestle_formula_t* f, pv_t* a) {
  return pestle_f_convert(f, a,
                          pestle_node_operand(f->of->node, 0)->type->dtype);
}

// What it permits is for the pass that looks for it; else it is its operand.
pv_t* pestle_decompose_extent(pestle_formula_t* f) {
  return pestle_node_operand(f->of->node, 0);
}

// --- Along dimensions ---

// x - max(x): the same quotient without overflow.
static pv_t* below_max(pestle_formula_t* f, pv_t* x) {
  pestle_i64s_t dimensions = dimensions_of(f);
  pv_t* max = pestle_f_reduce(f, PESTLE_OP_MAXIMUM, x, dimensions, -INFINITY);
  return pestle_f_subtract(f, x, pestle_f_spread(f, max, dimensions));
}

static pv_t* sum(pestle_formula_t* f, pv_t* x) {
  return pestle_f_reduce(f, PESTLE_OP_ADD, x, dimensions_of(f), 0);
}

// softmax(x) = exp(x - max(x)) / sum(exp(x - max(x)))
//
// One division a row: the sum is 1 at least, so that its inverse is as good.
pv_t* pestle_decompose_softmax(pestle_formula_t* f) {
  pv_t* e = pestle_f_exponential(f, below_max(f, input(f)));
  pv_t* total = sum(f, e);
  pv_t* inverse = pestle_f_divide(f, pestle_f_splat(f, total, 1), total);
  return output(f, pestle_f_multiply(
                       f, e, pestle_f_spread(f, inverse, dimensions_of(f))));
}

// log_softmax(x) = x - max(x) - log(sum(exp(x - max(x))))
pv_t* pestle_decompose_log_softmax(pestle_formula_t* f) {
  pv_t* d = below_max(f, input(f));
  pv_t* total = sum(f, pestle_f_exponential(f, d));
  pv_t* log = pestle_f_log(f, total);
  return output(
      f, pestle_f_subtract(f, d, pestle_f_spread(f, log, dimensions_of(f))));
}

// logsumexp(x) = m + log(sum(exp(x - m))), m = max(x) where that is finite, else
// 0: rows of -inf alone, and of inf, are what they are.
pv_t* pestle_decompose_logsumexp(pestle_formula_t* f) {
  pv_t* x = input(f);
  pv_t* max =
      pestle_f_reduce(f, PESTLE_OP_MAXIMUM, x, dimensions_of(f), -INFINITY);
  pv_t* finite = pestle_f_is_finite(f, max);
  max = pestle_f_select(f, finite, max, pestle_f_splat(f, max, 0));
  pv_t* d = pestle_f_subtract(f, x, pestle_f_spread(f, max, dimensions_of(f)));
  pv_t* total = sum(f, pestle_f_exponential(f, d));
  return output(f, pestle_f_add(f, max, pestle_f_log(f, total)));
}

static pv_t* mean(pestle_formula_t* f, pv_t* x) {
  pestle_i64s_t dimensions = dimensions_of(f);
  double count = 1;
  for (size_t i = 0; i < dimensions.count; ++i) {
    count *= (double)f->of->shape.dims[dimensions.data[i]];
  }
  pv_t* total = sum(f, x);
  return pestle_f_divide(f, total, pestle_f_splat(f, total, count));
}

// x / sqrt(mean(x * x) + epsilon)
static pv_t* normalise(pestle_formula_t* f, pv_t* x) {
  pv_t* variance = mean(f, pestle_f_multiply(f, x, x));
  pv_t* epsilon =
      pestle_f_splat(f, variance, PESTLE_NODE_F64(f->of->node, epsilon));
  pv_t* inverse = pestle_f_rsqrt(f, pestle_f_add(f, variance, epsilon));
  return pestle_f_multiply(f, x, pestle_f_spread(f, inverse, dimensions_of(f)));
}

// Operand |index|, which has the shape of the dimensions.
static pv_t* per_dimension(pestle_formula_t* f, size_t index) {
  return pestle_f_to_shape(f, pestle_f_operand(f, index, f->compute),
                           dimensions_of(f));
}

// layer_norm(x) = normalise(x - mean(x)) * scale + offset
pv_t* pestle_decompose_layer_norm(pestle_formula_t* f) {
  pv_t* x = input(f);
  pv_t* centred =
      pestle_f_subtract(f, x, pestle_f_spread(f, mean(f, x), dimensions_of(f)));
  pv_t* scale = per_dimension(f, 1);
  pv_t* scaled = pestle_f_multiply(f, normalise(f, centred), scale);
  return output(f, pestle_f_add(f, scaled, per_dimension(f, 2)));
}

// rms_norm(x) = normalise(x) * scale
pv_t* pestle_decompose_rms_norm(pestle_formula_t* f) {
  pv_t* scale = per_dimension(f, 1);
  return output(f, pestle_f_multiply(f, normalise(f, input(f)), scale));
}

// --- Activations ---

// erf(x / sqrt(2))
static pv_t* gelu_erf(pestle_formula_t* f, pv_t* x) {
  return pestle_f_erf(f, pestle_f_times(f, x, 0.70710678118654752440));
}

// tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))
static pv_t* gelu_tanh(pestle_formula_t* f, pv_t* x) {
  pv_t* cube = pestle_f_multiply(f, pestle_f_multiply(f, x, x), x);
  pv_t* inner = pestle_f_add(f, x, pestle_f_times(f, cube, 0.044715));
  return pestle_f_tanh(f, pestle_f_times(f, inner, 0.79788456080286535588));
}

// gelu(x) = x / 2 * (1 + erf(...)), or the form with tanh
pv_t* pestle_decompose_gelu(pestle_formula_t* f) {
  pv_t* x = input(f);
  pv_t* t = PESTLE_NODE_BOOL(f->of->node, approximate) ? gelu_tanh(f, x)
                                                       : gelu_erf(f, x);
  t = pestle_f_plus(f, t, 1);
  return output(f, pestle_f_multiply(f, pestle_f_times(f, x, 0.5), t));
}

// silu(x) = x * logistic(x)
pv_t* pestle_decompose_silu(pestle_formula_t* f) {
  pv_t* x = input(f);
  return output(f, pestle_f_multiply(f, x, pestle_f_logistic(f, x)));
}

// hard_sigmoid(x) = clamp(0, alpha * x + beta, 1)
pv_t* pestle_decompose_hard_sigmoid(pestle_formula_t* f) {
  pv_t* line = pestle_f_plus(
      f, pestle_f_times(f, input(f), PESTLE_NODE_F64(f->of->node, alpha)),
      PESTLE_NODE_F64(f->of->node, beta));
  pv_t* low = pestle_f_splat(f, line, 0);
  pv_t* high = pestle_f_splat(f, line, 1);
  return output(f, pestle_f_clamp(f, low, line, high));
}
