// SPDX-License-Identifier: Apache-2.0
// The inverse trigonometric and the hyperbolic functions. Formulas keep denormals,
// signed zeros, infinities and NaN, and what cancels is kept from cancelling:
// 1 - x^2 is (1 - x)(1 + x), sinh goes by expm1.
#include <math.h>

#include "ir/chlo.h"

#define LN2 0.69314718055994530942

static pv_t* op1(pestle_formula_t* f, pestle_op_t op, pv_t* a) {
  return pestle_f_unary(f, op, a);
}

// |a| where |x| > |limit|, else |b|.
static pv_t* above(pestle_formula_t* f, pv_t* x, double limit, pv_t* a,
                   pv_t* b) {
  pv_t* which = pestle_f_gt(f, x, pestle_f_splat(f, x, limit));
  return pestle_f_select(f, which, a, b);
}

// |magnitude|, which is not negative, with the sign of |x|, which is 0 where
// that is.
static pv_t* signed_as(pestle_formula_t* f, pv_t* magnitude, pv_t* x) {
  return pestle_f_multiply(f, magnitude, op1(f, PESTLE_OP_SIGN, x));
}

// sqrt(1 - x^2)
static pv_t* opposite(pestle_formula_t* f, pv_t* x) {
  pv_t* one = pestle_f_splat(f, x, 1);
  pv_t* below = pestle_f_subtract(f, one, x);
  return op1(f, PESTLE_OP_SQRT,
             pestle_f_multiply(f, below, pestle_f_add(f, one, x)));
}

pv_t* pestle_chlo_asin(pestle_formula_t* f, pv_t* const* operands) {
  pv_t* x = operands[0];
  return pestle_f_atan2(f, x, opposite(f, x));
}

pv_t* pestle_chlo_acos(pestle_formula_t* f, pv_t* const* operands) {
  pv_t* x = operands[0];
  return pestle_f_atan2(f, opposite(f, x), x);
}

pv_t* pestle_chlo_atan(pestle_formula_t* f, pv_t* const* operands) {
  pv_t* x = operands[0];
  return pestle_f_atan2(f, x, pestle_f_splat(f, x, 1));
}

// e^a / 2 without overflow before the result does.
static pv_t* half_exp(pestle_formula_t* f, pv_t* a) {
  pv_t* root = op1(f, PESTLE_OP_EXP, pestle_f_times(f, a, 0.5));
  return pestle_f_multiply(f, pestle_f_times(f, root, 0.5), root);
}

// (e + e / (e + 1)) / 2 with e = e^|x| - 1; from 22 on e^|x| / 2.
pv_t* pestle_chlo_sinh(pestle_formula_t* f, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* a = op1(f, PESTLE_OP_ABS, x);
  pv_t* e = op1(f, PESTLE_OP_EXPM1, a);
  pv_t* sum = pestle_f_add(f, e, pestle_f_divide(f, e, pestle_f_plus(f, e, 1)));
  pv_t* half = pestle_f_times(f, sum, 0.5);
  return signed_as(f, above(f, a, 22, half_exp(f, a), half), x);
}

pv_t* pestle_chlo_cosh(pestle_formula_t* f, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* a = op1(f, PESTLE_OP_ABS, x);
  pv_t* e = op1(f, PESTLE_OP_EXP, a);
  pv_t* inverse = pestle_f_divide(f, pestle_f_splat(f, e, 0.5), e);
  pv_t* sum = pestle_f_add(f, pestle_f_times(f, e, 0.5), inverse);
  return above(f, a, 22, half_exp(f, a), sum);
}

// log1p(a + a^2 / (1 + sqrt(a^2 + 1))), a = |x|; from 2^28 on log(a) + log(2).
pv_t* pestle_chlo_asinh(pestle_formula_t* f, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* a = op1(f, PESTLE_OP_ABS, x);
  pv_t* square = pestle_f_multiply(f, a, a);
  pv_t* root = op1(f, PESTLE_OP_SQRT, pestle_f_plus(f, square, 1));
  pv_t* sum =
      pestle_f_add(f, a, pestle_f_divide(f, square, pestle_f_plus(f, root, 1)));
  pv_t* far = pestle_f_plus(f, op1(f, PESTLE_OP_LOG, a), LN2);
  pv_t* near = op1(f, PESTLE_OP_LOG1P, sum);
  return signed_as(f, above(f, a, 0x1p28, far, near), x);
}

// log1p(t + sqrt(t (t + 2))), t = x - 1; NaN below 1.
pv_t* pestle_chlo_acosh(pestle_formula_t* f, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* t = pestle_f_plus(f, x, -1);
  pv_t* root =
      op1(f, PESTLE_OP_SQRT, pestle_f_multiply(f, t, pestle_f_plus(f, t, 2)));
  pv_t* near = op1(f, PESTLE_OP_LOG1P, pestle_f_add(f, t, root));
  pv_t* far = pestle_f_plus(f, op1(f, PESTLE_OP_LOG, x), LN2);
  pv_t* y = above(f, x, 0x1p28, far, near);
  pv_t* less = pestle_f_lt(f, x, pestle_f_splat(f, x, 1));
  return pestle_f_select(f, less, pestle_f_splat(f, x, (double)NAN), y);
}

// (log1p(x) - log1p(-x)) / 2: both have one sign, nothing cancels.
pv_t* pestle_chlo_atanh(pestle_formula_t* f, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* up = op1(f, PESTLE_OP_LOG1P, x);
  pv_t* down = op1(f, PESTLE_OP_LOG1P, op1(f, PESTLE_OP_NEGATE, x));
  return pestle_f_times(f, pestle_f_subtract(f, up, down), 0.5);
}
