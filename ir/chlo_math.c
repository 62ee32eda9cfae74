// SPDX-License-Identifier: Apache-2.0
// The inverse trigonometric and the hyperbolic functions. Formulas keep denormals,
// signed zeros, infinities and NaN, and what cancels is kept from cancelling:
// 1 - x^2 is (1 - x)(1 + x), sinh goes by expm1.
#include <math.h>

#include "ir/chlo.h"

#define LN2 0.69314718055994530942

static pv_t* op1(pestle_steps_t* s, pestle_op_t op, pv_t* a) {
  return pestle_step1(s, op, a);
}

// |a| where |x| > |limit|, else |b|.
static pv_t* above(pestle_steps_t* s, pv_t* x, double limit, pv_t* a, pv_t* b) {
  pv_t* which =
      pestle_step2(s, PESTLE_OP_GT, x, pestle_step_splat(s, x, limit));
  return pestle_step3(s, PESTLE_OP_SELECT, which, a, b);
}

// |magnitude|, which is not negative, with the sign of |x|, which is 0 where
// that is.
static pv_t* signed_as(pestle_steps_t* s, pv_t* magnitude, pv_t* x) {
  return PESTLE_MUL(s, magnitude, op1(s, PESTLE_OP_SIGN, x));
}

// sqrt(1 - x^2)
static pv_t* opposite(pestle_steps_t* s, pv_t* x) {
  pv_t* one = pestle_step_splat(s, x, 1);
  pv_t* below = PESTLE_SUB(s, one, x);
  return op1(s, PESTLE_OP_SQRT, PESTLE_MUL(s, below, PESTLE_ADD(s, one, x)));
}

pv_t* pestle_chlo_asin(pestle_steps_t* s, pv_t* const* operands) {
  pv_t* x = operands[0];
  return pestle_step2(s, PESTLE_OP_ATAN2, x, opposite(s, x));
}

pv_t* pestle_chlo_acos(pestle_steps_t* s, pv_t* const* operands) {
  pv_t* x = operands[0];
  return pestle_step2(s, PESTLE_OP_ATAN2, opposite(s, x), x);
}

pv_t* pestle_chlo_atan(pestle_steps_t* s, pv_t* const* operands) {
  pv_t* x = operands[0];
  return pestle_step2(s, PESTLE_OP_ATAN2, x, pestle_step_splat(s, x, 1));
}

// e^a / 2 without overflow before the result does.
static pv_t* half_exp(pestle_steps_t* s, pv_t* a) {
  pv_t* root = op1(s, PESTLE_OP_EXP, pestle_step_times(s, a, 0.5));
  return PESTLE_MUL(s, pestle_step_times(s, root, 0.5), root);
}

// (e + e / (e + 1)) / 2 with e = e^|x| - 1; from 22 on e^|x| / 2.
pv_t* pestle_chlo_sinh(pestle_steps_t* s, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* a = op1(s, PESTLE_OP_ABS, x);
  pv_t* e = op1(s, PESTLE_OP_EXPM1, a);
  pv_t* sum = PESTLE_ADD(s, e, PESTLE_DIV(s, e, pestle_step_plus(s, e, 1)));
  return signed_as(
      s, above(s, a, 22, half_exp(s, a), pestle_step_times(s, sum, 0.5)), x);
}

pv_t* pestle_chlo_cosh(pestle_steps_t* s, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* a = op1(s, PESTLE_OP_ABS, x);
  pv_t* e = op1(s, PESTLE_OP_EXP, a);
  pv_t* inverse = PESTLE_DIV(s, pestle_step_splat(s, e, 0.5), e);
  pv_t* sum = PESTLE_ADD(s, pestle_step_times(s, e, 0.5), inverse);
  return above(s, a, 22, half_exp(s, a), sum);
}

// log1p(a + a^2 / (1 + sqrt(a^2 + 1))), a = |x|; from 2^28 on log(a) + log(2).
pv_t* pestle_chlo_asinh(pestle_steps_t* s, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* a = op1(s, PESTLE_OP_ABS, x);
  pv_t* square = PESTLE_MUL(s, a, a);
  pv_t* root = op1(s, PESTLE_OP_SQRT, pestle_step_plus(s, square, 1));
  pv_t* sum =
      PESTLE_ADD(s, a, PESTLE_DIV(s, square, pestle_step_plus(s, root, 1)));
  pv_t* far = pestle_step_plus(s, op1(s, PESTLE_OP_LOG, a), LN2);
  pv_t* near = op1(s, PESTLE_OP_LOG1P, sum);
  return signed_as(s, above(s, a, 0x1p28, far, near), x);
}

// log1p(t + sqrt(t (t + 2))), t = x - 1; NaN below 1.
pv_t* pestle_chlo_acosh(pestle_steps_t* s, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* t = pestle_step_plus(s, x, -1);
  pv_t* root =
      op1(s, PESTLE_OP_SQRT, PESTLE_MUL(s, t, pestle_step_plus(s, t, 2)));
  pv_t* near = op1(s, PESTLE_OP_LOG1P, PESTLE_ADD(s, t, root));
  pv_t* far = pestle_step_plus(s, op1(s, PESTLE_OP_LOG, x), LN2);
  pv_t* y = above(s, x, 0x1p28, far, near);
  pv_t* less = pestle_step2(s, PESTLE_OP_LT, x, pestle_step_splat(s, x, 1));
  return pestle_step3(s, PESTLE_OP_SELECT, less,
                      pestle_step_splat(s, x, (double)NAN), y);
}

// (log1p(x) - log1p(-x)) / 2: both have one sign, nothing cancels.
pv_t* pestle_chlo_atanh(pestle_steps_t* s, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* up = op1(s, PESTLE_OP_LOG1P, x);
  pv_t* down = op1(s, PESTLE_OP_LOG1P, op1(s, PESTLE_OP_NEGATE, x));
  return pestle_step_times(s, PESTLE_SUB(s, up, down), 0.5);
}
