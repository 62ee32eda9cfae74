// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms, powers and sines of complex numbers as arithmetic on their
// parts. None overflows or cancels where its result does not.
#include <float.h>
#include <math.h>

#include "passes/expand_complex.h"

typedef pestle_pair_t pair_t;

#define OP1(op, a) pestle_f_unary(f, PESTLE_OP_##op, a)
#define OP2(op, a, b) pestle_f_binary(f, PESTLE_OP_##op, a, b)
#define NUMBER(like, value) pestle_f_splat(f, like, value)

// e^x = size * by * again, where the products of a part of size overflow no sooner
// than they must: e^x overflows by far before its product with a subnormal sine.
typedef struct growth_t {
  pv_t *size, *by, *again;
} growth_t;

static double growth_step(const pv_t* x) {
  return x->type->dtype == PESTLE_F64 ? 709 : 88;
}

static growth_t grow(pestle_formula_t* f, pv_t* x) {
  growth_t out = {NULL, NULL, NULL};
  if (!x) return out;
  double c = growth_step(x);
  pv_t *one = NUMBER(x, 1), *factor = NUMBER(x, exp(c));
  pv_t* once = OP2(GT, x, NUMBER(x, c));
  pv_t* twice = OP2(GT, x, NUMBER(x, 2 * c));
  pv_t* rest = pestle_f_select(f, once, pestle_f_plus(f, x, -c), x);
  rest = pestle_f_select(f, twice, pestle_f_plus(f, x, -2 * c), rest);
  out.size = OP1(EXP, rest);
  out.by = pestle_f_select(f, once, factor, one);
  out.again = pestle_f_select(f, twice, factor, one);
  return out;
}

static pair_t grown(pestle_formula_t* f, pair_t a, growth_t by) {
  pair_t out;
  out.re = OP2(MULTIPLY, a.re, by.by);
  out.re = OP2(MULTIPLY, out.re, by.again);
  out.im = OP2(MULTIPLY, a.im, by.by);
  out.im = OP2(MULTIPLY, out.im, by.again);
  return out;
}

// To the left of all numbers it is 0, to the right infinite, whatever the angle.
static pair_t exponential(pestle_formula_t* f, pair_t a) {
  if (!a.re) return a;
  growth_t by = grow(f, a.re);
  pair_t out = grown(f, pestle_complex_polar(f, by.size, a.im), by);
  pv_t* left = OP2(EQ, a.re, NUMBER(a.re, -INFINITY));
  pv_t* zero = NUMBER(a.re, 0);
  pv_t* turning = OP1(NOT, OP1(IS_FINITE, a.im));
  pv_t* right = OP2(AND, turning, OP2(EQ, a.re, NUMBER(a.re, INFINITY)));
  left = OP2(AND, left, turning);
  out.re =
      pestle_f_select(f, right, a.re, pestle_f_select(f, left, zero, out.re));
  out.im = pestle_f_select(f, left, zero, out.im);
  return out;
}

// exp(x) cos y - 1 = expm1(x) cos y - 2 sin^2(y / 2); far out 1 does not show.
static pair_t expm1_of(pestle_formula_t* f, pair_t a) {
  pv_t* half = OP1(SINE, pestle_f_times(f, a.im, 0.5));
  pv_t* less = pestle_f_times(f, OP2(MULTIPLY, half, half), 2);
  pair_t out = exponential(f, a);
  pv_t* end = pestle_f_plus(f, out.re, -1);
  out.re = OP1(EXPM1, a.re);
  out.re = OP2(MULTIPLY, out.re, OP1(COSINE, a.im));
  out.re = OP2(SUBTRACT, out.re, less);
  pv_t* x = OP1(ABS, a.re);
  pv_t* far = OP2(GT, x, NUMBER(x, a.re ? growth_step(a.re) : 0));
  out.re = pestle_f_select(f, far, end, out.re);
  return out;
}

// Whether low < a < high.
static pv_t* between(pestle_formula_t* f, pv_t* a, double low, double high) {
  pv_t* over = OP2(GT, a, NUMBER(a, low));
  pv_t* under = OP2(LT, a, NUMBER(a, high));
  return OP2(AND, over, under);
}

// log |a|: near the unit circle log1p((m - 1)(m + 1) + n^2) / 2, near the ends of the
// range that of a scaled number.
static pv_t* log_size(pestle_formula_t* f, pair_t a) {
  pv_t *x = OP1(ABS, a.re), *y = OP1(ABS, a.im);
  pv_t *m = OP2(MAXIMUM, x, y), *n = OP2(MINIMUM, x, y);
  pv_t* excess = pestle_f_plus(f, m, -1);
  excess = OP2(MULTIPLY, excess, pestle_f_plus(f, m, 1));
  excess = OP2(ADD, excess, OP2(MULTIPLY, n, n));
  pv_t* inside = pestle_f_times(f, OP1(LOG1P, excess), 0.5);
  pestle_complex_scaled_t part = pestle_complex_within(f, a);
  pv_t* outside = OP1(LOG, pestle_complex_size(f, part.z));
  double low = a.re ? -pestle_complex_scale(a.re) * log(2) : 0;
  outside = OP2(ADD, outside, pestle_complex_by_scale(f, part, log(8), 0, low));
  return pestle_f_select(f, between(f, m, 0.5, 2), inside, outside);
}

static pair_t logarithm(pestle_formula_t* f, pair_t a) {
  pair_t out;
  out.re = log_size(f, a);
  out.im = OP2(ATAN2, a.im, a.re);
  return out;
}

static pair_t log1p_of(pestle_formula_t* f, pair_t a) {
  pair_t moved = {pestle_f_plus(f, a.re, 1), a.im};
  pv_t *x = OP1(ABS, a.re), *y = OP1(ABS, a.im);
  pv_t* m = OP2(MAXIMUM, x, y);
  pv_t* near = OP2(LT, m, NUMBER(m, 0.5));
  pv_t* excess = OP2(MULTIPLY, a.re, pestle_f_plus(f, a.re, 2));
  excess = OP2(ADD, excess, OP2(MULTIPLY, a.im, a.im));
  pair_t out;
  pv_t* inside = pestle_f_times(f, OP1(LOG1P, excess), 0.5);
  out.re = pestle_f_select(f, near, inside, log_size(f, moved));
  out.im = OP2(ATAN2, a.im, moved.re);
  return out;
}

// |cosh| and sinh of |y|, which are e^|y| / 2 where that is |by|.
static pair_t hyperbolic(pestle_formula_t* f, pv_t* y, growth_t by) {
  pair_t out = {NULL, NULL};
  if (!y) return out;
  pv_t* size = OP1(ABS, y);
  pv_t* up = pestle_f_times(f, by.size, 0.5);
  pv_t* down = OP2(DIVIDE, NUMBER(y, 0.25), up);
  pv_t* far = OP2(GT, size, NUMBER(y, growth_step(y)));
  down = pestle_f_select(f, far, NUMBER(y, 0), down);
  // expm1(y) / 2 + expm1(y) / 2 / (expm1(y) + 1) where the two would cancel.
  pv_t* e = OP1(EXPM1, size);
  pv_t* small = pestle_f_times(
      f, OP2(ADD, e, OP2(DIVIDE, e, pestle_f_plus(f, e, 1))), 0.5);
  pv_t* sinh = OP2(SUBTRACT, up, down);
  sinh = pestle_f_select(f, OP2(LT, size, NUMBER(y, 1)), small, sinh);
  out.re = OP2(ADD, up, down);
  out.im = pestle_f_copy_sign(f, sinh, y);
  return out;
}

// Whether the size of a sine is infinite and its angle nothing.
static pv_t* is_turning(pestle_formula_t* f, pair_t a) {
  pv_t* turning = OP1(NOT, OP1(IS_FINITE, a.re));
  return OP2(AND, turning, pestle_complex_is_endless(f, a.im));
}

static pair_t sine(pestle_formula_t* f, pair_t a) {
  growth_t by = grow(f, OP1(ABS, a.im));
  pair_t h = hyperbolic(f, a.im, by);
  pair_t out;
  out.re = OP2(MULTIPLY, OP1(SINE, a.re), h.re);
  out.im = OP2(MULTIPLY, OP1(COSINE, a.re), h.im);
  out = grown(f, out, by);
  out.re = pestle_f_select(f, pestle_f_is_zero(f, a.re), a.re, out.re);
  pv_t* level = OP1(NOT, OP1(IS_FINITE, a.re));
  level = OP2(AND, level, pestle_f_is_zero(f, a.im));
  out.im = pestle_f_select(f, level, a.im, out.im);
  out.im = pestle_f_select(f, is_turning(f, a), h.re, out.im);
  return out;
}

static pair_t cosine(pestle_formula_t* f, pair_t a) {
  if (!a.re) return a;
  growth_t by = grow(f, OP1(ABS, a.im));
  pair_t h = hyperbolic(f, a.im, by);
  pair_t out;
  out.re = OP2(MULTIPLY, OP1(COSINE, a.re), h.re);
  out.im = OP1(NEGATE, OP2(MULTIPLY, OP1(SINE, a.re), h.im));
  out = grown(f, out, by);
  // Zeros of either sign, also times what is infinite or no number.
  pv_t* level = OP1(NOT, OP1(IS_FINITE, a.re));
  level = OP2(AND, level, pestle_f_is_zero(f, a.im));
  out.im = pestle_f_select(f, level, a.im, out.im);
  pv_t* upright = pestle_f_is_zero(f, a.re);
  pv_t* sign = OP1(NEGATE, a.im);
  sign = pestle_f_copy_sign(f, NUMBER(a.re, 1), sign);
  out.im = pestle_f_select(f, upright, OP2(MULTIPLY, a.re, sign), out.im);
  out.re = pestle_f_select(f, is_turning(f, a), h.re, out.re);
  return out;
}

// With h = exp(-|y|), over d = (1 - h^2)^2 + 4 h^2 cos^2 x, in which nothing
// cancels: (4 h^2 sin x cos x, +-(1 - h^4)) / d. h^2 is never made: it is too small
// before the result is, where a target flushes denormals. Where y is infinite it is
// +-i for all x, and on an axis it stays there.
static pair_t tangent(pestle_formula_t* f, pair_t a) {
  pv_t* size = OP1(ABS, a.im);
  pv_t* h = pestle_f_times(f, OP1(EXP, OP1(NEGATE, size)), 2);
  pv_t* sin = OP2(MULTIPLY, OP1(SINE, a.re), h);
  pv_t* cos = OP2(MULTIPLY, OP1(COSINE, a.re), h);
  pv_t* gap = OP1(EXPM1, pestle_f_times(f, size, -2));
  pv_t* d = OP2(MULTIPLY, gap, gap);
  d = OP2(ADD, d, OP2(MULTIPLY, cos, cos));
  pv_t* grown = OP1(NEGATE, OP1(EXPM1, pestle_f_times(f, size, -4)));
  pv_t* far = pestle_complex_is_endless(f, a.im);
  pv_t* zero = NUMBER(size, 0);
  pair_t out;
  out.re = OP2(DIVIDE, OP2(MULTIPLY, sin, cos), d);
  pv_t* turning = OP1(NOT, OP1(IS_FINITE, a.re));
  out.re = pestle_f_select(f, OP2(AND, far, turning), zero, out.re);
  out.re = pestle_f_select(f, pestle_f_is_zero(f, a.re), a.re, out.re);
  out.im = OP2(DIVIDE, grown, d);
  out.im = pestle_f_select(f, far, NUMBER(size, 1), out.im);
  out.im = pestle_f_copy_sign(f, out.im, a.im);
  out.im = pestle_f_select(f, pestle_f_is_zero(f, a.im), a.im, out.im);
  return out;
}

// tanh z = -i tan iz
static pair_t hyperbolic_tangent(pestle_formula_t* f, pair_t a) {
  pair_t turned = {OP1(NEGATE, a.im), a.re};
  pair_t t = tangent(f, turned);
  return (pair_t){t.im, OP1(NEGATE, t.re)};
}

// By the exponential that does not overflow: e / (1 + e) or 1 / (1 + e). Near its
// poles the real part of 1 + e cancels: there it is
//   1 + e^x cos y = 2 cos^2(y / 2) + expm1(x) cos y
static pair_t logistic(pestle_formula_t* f, pair_t a) {
  if (!a.re) return a;
  pv_t* left = OP2(LT, a.re, NUMBER(a.re, 0));
  pair_t z, top;
  z.re = OP1(NEGATE, OP1(ABS, a.re));
  z.im = pestle_f_select(f, left, a.im, OP1(NEGATE, a.im));
  pair_t e = exponential(f, z);
  top.re = pestle_f_select(f, left, e.re, NUMBER(a.re, 1));
  top.im = pestle_f_select(f, left, e.im, NUMBER(a.re, 0));
  pv_t* half = OP1(COSINE, pestle_f_times(f, z.im, 0.5));
  half = pestle_f_times(f, OP2(MULTIPLY, half, half), 2);
  pv_t* near = OP1(EXPM1, z.re);
  near = OP2(MULTIPLY, near, OP1(COSINE, z.im));
  near = OP2(ADD, half, near);
  pair_t under = {pestle_f_plus(f, e.re, 1), e.im};
  pv_t* flat = OP2(GT, z.re, NUMBER(z.re, -1));
  under.re = pestle_f_select(f, flat, near, under.re);
  return pestle_complex_divide(f, top, under);
}

// b log a, without the infinities of a real b times a zero angle. Where a large b
// overflows it to an infinite angle it is taken back to the largest number: then no
// more than the size of the power is known.
static pair_t exponent(pestle_formula_t* f, pair_t a, pair_t b) {
  pair_t log = logarithm(f, a), out;
  if (!b.re || !log.re) return log;
  double most = b.re->type->dtype == PESTLE_F64 ? DBL_MAX : (double)FLT_MAX;
  double step = 0x1p-14;
  pv_t* size = OP1(ABS, b.re);
  size = OP2(MAXIMUM, size, OP1(ABS, b.im));
  pv_t* large = OP2(GT, size, NUMBER(size, most * step));
  pv_t* by = NUMBER(size, 1);
  by = pestle_f_select(f, large, NUMBER(size, step), by);
  pv_t* back = NUMBER(size, 1);
  back = pestle_f_select(f, large, NUMBER(size, 1 / step), back);
  pair_t part;
  part.re = OP2(MULTIPLY, b.re, by);
  part.im = OP2(MULTIPLY, b.im, by);
  out = pestle_complex_multiply(f, part, log);
  pv_t* real = pestle_f_is_zero(f, b.im);
  pair_t level = {OP2(MULTIPLY, part.re, log.re), NULL};
  level.im = OP2(MULTIPLY, part.re, log.im);
  out.re = pestle_f_select(f, real, level.re, out.re);
  out.im = pestle_f_select(f, real, level.im, out.im);
  out.re = OP2(MULTIPLY, out.re, back);
  out.im = OP2(MULTIPLY, out.im, back);
  pv_t* end = NUMBER(size, most);
  pv_t* turned = OP2(MINIMUM, out.im, end);
  turned = OP2(MAXIMUM, turned, OP1(NEGATE, end));
  pv_t* sized = pestle_complex_is_finite(f, b);
  sized = OP2(AND, sized, OP1(IS_FINITE, log.re));
  out.im = pestle_f_select(f, sized, turned, out.im);
  return out;
}

// exp(b log a); 1 of a zero exponent or of 1, and of zero 0 where b has a positive
// real part. The error is that of b log a, which its exponential makes relative.
static pair_t power(pestle_formula_t* f, pair_t a, pair_t b) {
  pair_t out = exponential(f, exponent(f, a, b));
  if (!out.re) return out;
  pv_t *zero = NUMBER(a.re, 0), *one = NUMBER(a.re, 1);
  pv_t* nothing = pestle_f_is_zero(f, a.re);
  nothing = OP2(AND, nothing, pestle_f_is_zero(f, a.im));
  pv_t* none = pestle_f_is_zero(f, b.re);
  none = OP2(AND, none, pestle_f_is_zero(f, b.im));
  pv_t* unit = pestle_f_is_zero(f, a.im);
  none = OP2(OR, none, OP2(AND, unit, OP2(EQ, a.re, one)));
  pv_t* shrinks = OP2(GT, b.re, zero);
  pv_t* of_zero = pestle_f_select(f, shrinks, zero, NUMBER(a.re, NAN));
  out.re = pestle_f_select(f, nothing, of_zero, out.re);
  out.im = pestle_f_select(f, nothing, of_zero, out.im);
  out.re = pestle_f_select(f, none, one, out.re);
  out.im = pestle_f_select(f, none, zero, out.im);
  return out;
}

pestle_pair_t pestle_complex_exponential(pestle_formula_t* f, pestle_op_t op,
                                         pestle_pair_t a, pestle_pair_t b) {
  switch ((int)op) {
    case PESTLE_OP_POWER:
      return power(f, a, b);
    case PESTLE_OP_EXP:
      return exponential(f, a);
    case PESTLE_OP_EXPM1:
      return expm1_of(f, a);
    case PESTLE_OP_LOG:
      return logarithm(f, a);
    case PESTLE_OP_LOG1P:
      return log1p_of(f, a);
    case PESTLE_OP_LOGISTIC:
      return logistic(f, a);
    case PESTLE_OP_TANH:
      return hyperbolic_tangent(f, a);
    case PESTLE_OP_SINE:
      return sine(f, a);
    case PESTLE_OP_COSINE:
      return cosine(f, a);
    case PESTLE_OP_TAN:
      return tangent(f, a);
  }
  return pestle_complex_unknown(f);
}
