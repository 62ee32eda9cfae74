// SPDX-License-Identifier: Apache-2.0
// The inverse trigonometric and the hyperbolic functions. Formulas keep denormals,
// signed zeros, infinities and NaN, and what cancels is kept from cancelling:
// 1 - x^2 is (1 - x)(1 + x), sinh goes by expm1. Their derivatives are those of the
// functions: at 0 a side is chosen that goes on smoothly, and a branch that is not
// taken gets an operand at which its own derivative is finite.
#include <math.h>

#include "ir/chlo.h"

#define LN2 0.69314718055994530942

static pv_t* op1(pestle_formula_t* f, pestle_op_t op, pv_t* a) {
  return pestle_f_unary(f, op, a);
}

static pv_t* is_above(pestle_formula_t* f, pv_t* x, double limit) {
  return pestle_f_gt(f, x, pestle_f_splat(f, x, limit));
}

// |a| where |which|, else a number at which what is made of it is harmless.
static pv_t* only(pestle_formula_t* f, pv_t* which, pv_t* a, double harmless) {
  return pestle_f_select(f, which, a, pestle_f_splat(f, a, harmless));
}
static pv_t* unless(pestle_formula_t* f, pv_t* which, pv_t* a,
                    double harmless) {
  return pestle_f_select(f, which, pestle_f_splat(f, a, harmless), a);
}

// -a where |x| is below 0, else |a|. Of x itself this is its size with the sign of
// a zero kept, and the second time gives an odd function its sign.
static pv_t* turned(pestle_formula_t* f, pv_t* a, pv_t* x) {
  pv_t* less = pestle_f_lt(f, x, pestle_f_splat(f, x, 0));
  return pestle_f_select(f, less, op1(f, PESTLE_OP_NEGATE, a), a);
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
  pv_t* a = turned(f, x, x);
  pv_t* is_far = is_above(f, a, 22);
  pv_t* e = op1(f, PESTLE_OP_EXPM1, unless(f, is_far, a, 0));
  pv_t* sum = pestle_f_add(f, e, pestle_f_divide(f, e, pestle_f_plus(f, e, 1)));
  pv_t* half = pestle_f_times(f, sum, 0.5);
  return turned(f, pestle_f_select(f, is_far, half_exp(f, a), half), x);
}

pv_t* pestle_chlo_cosh(pestle_formula_t* f, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* a = op1(f, PESTLE_OP_ABS, x);
  pv_t* is_far = is_above(f, a, 22);
  pv_t* e = op1(f, PESTLE_OP_EXP, unless(f, is_far, a, 0));
  pv_t* inverse = pestle_f_divide(f, pestle_f_splat(f, e, 0.5), e);
  pv_t* sum = pestle_f_add(f, pestle_f_times(f, e, 0.5), inverse);
  return pestle_f_select(f, is_far, half_exp(f, a), sum);
}

// log1p(a (1 + a / (1 + sqrt(a^2 + 1)))), a = |x|; from 2^28 on log(a) + log(2).
pv_t* pestle_chlo_asinh(pestle_formula_t* f, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* a = turned(f, x, x);
  pv_t* is_far = is_above(f, a, 0x1p28);
  pv_t* low = unless(f, is_far, a, 1);
  pv_t* square = pestle_f_multiply(f, low, low);
  pv_t* root = op1(f, PESTLE_OP_SQRT, pestle_f_plus(f, square, 1));
  pv_t* ratio = pestle_f_divide(f, low, pestle_f_plus(f, root, 1));
  pv_t* sum = pestle_f_multiply(f, low, pestle_f_plus(f, ratio, 1));
  pv_t* near = op1(f, PESTLE_OP_LOG1P, sum);
  pv_t* far = op1(f, PESTLE_OP_LOG, only(f, is_far, a, 1));
  far = pestle_f_plus(f, far, LN2);
  return turned(f, pestle_f_select(f, is_far, far, near), x);
}

// log1p(t + sqrt(t (t + 2))), t = x - 1; NaN below 1.
pv_t* pestle_chlo_acosh(pestle_formula_t* f, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* is_far = is_above(f, x, 0x1p28);
  pv_t* t = pestle_f_plus(f, unless(f, is_far, x, 2), -1);
  pv_t* root =
      op1(f, PESTLE_OP_SQRT, pestle_f_multiply(f, t, pestle_f_plus(f, t, 2)));
  pv_t* near = op1(f, PESTLE_OP_LOG1P, pestle_f_add(f, t, root));
  pv_t* far = op1(f, PESTLE_OP_LOG, only(f, is_far, x, 1));
  far = pestle_f_plus(f, far, LN2);
  pv_t* y = pestle_f_select(f, is_far, far, near);
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
