// SPDX-License-Identifier: Apache-2.0
// Elementwise ops on complex numbers as arithmetic on their parts. No formula
// overflows or cancels where its result does not; each says where its error is
// from. What rows mean is ir/complex.def.
#include <math.h>

#include "base/mem.h"
#include "passes/expand_complex.h"

typedef pestle_pair_t pair_t;

#define OP1(op, a) pestle_f_unary(f, PESTLE_OP_##op, a)
#define OP2(op, a, b) pestle_f_binary(f, PESTLE_OP_##op, a, b)
#define NUMBER(like, value) pestle_f_splat(f, like, value)

static pv_t* is_endless(pestle_formula_t* f, pv_t* a) {
  return OP2(EQ, OP1(ABS, a), NUMBER(a, INFINITY));
}

// sqrt(a * a + b * b) = m sqrt(1 + (n / m)^2), m the larger of the sizes.
static pv_t* size_of(pestle_formula_t* f, pair_t a) {
  pv_t *x = OP1(ABS, a.re), *y = OP1(ABS, a.im);
  pv_t* m = OP2(MAXIMUM, x, y);
  pv_t* q = OP2(DIVIDE, OP2(MINIMUM, x, y), m);
  pv_t* h =
      OP2(MULTIPLY, m, OP1(SQRT, pestle_f_plus(f, OP2(MULTIPLY, q, q), 1)));
  h = pestle_f_select(f, pestle_f_is_zero(f, m), m, h);
  pv_t* endless = OP2(OR, is_endless(f, x), is_endless(f, y));
  return pestle_f_select(f, endless, NUMBER(h, INFINITY), h);
}

// |a|, or an eighth of it where its size would overflow; |back| is 8 there, else 1.
static pair_t within(pestle_formula_t* f, pair_t a, pv_t** back) {
  *back = NULL;
  if (!a.re) return a;
  double end = ldexp(1, a.re->type->dtype == PESTLE_F64 ? 1020 : 124);
  pv_t* one = NUMBER(a.re, 1);
  pv_t* m = OP2(MAXIMUM, OP1(ABS, a.re), OP1(ABS, a.im));
  pv_t* large = OP2(GT, m, NUMBER(a.re, end));
  pv_t* by = pestle_f_select(f, large, NUMBER(a.re, 0.125), one);
  *back = pestle_f_select(f, large, NUMBER(a.re, 8), one);
  pair_t out;
  out.re = OP2(MULTIPLY, a.re, by);
  out.im = OP2(MULTIPLY, a.im, by);
  return out;
}

static pair_t multiply(pestle_formula_t* f, pair_t a, pair_t b) {
  pv_t* p = OP2(MULTIPLY, a.re, b.re);
  pv_t* q = OP2(MULTIPLY, a.im, b.im);
  pv_t* r = OP2(MULTIPLY, a.re, b.im);
  pv_t* t = OP2(MULTIPLY, a.im, b.re);
  pair_t out;
  out.re = OP2(SUBTRACT, p, q);
  out.im = OP2(ADD, r, t);
  return out;
}

// Smith's way: with q = d / c where |c| is the larger part of the divisor,
//   (a + ib) / (c + id) = ((a + b q) + i (b - a q)) / (c + d q)
static pair_t smith(pestle_formula_t* f, pair_t a, pair_t b) {
  pv_t *c = OP1(ABS, b.re), *d = OP1(ABS, b.im);
  pv_t* wide = OP2(GE, c, d);
  pv_t* big = pestle_f_select(f, wide, b.re, b.im);
  // Turned by -i, where the imaginary part is the larger.
  pv_t* small = pestle_f_select(f, wide, b.im, OP1(NEGATE, b.re));
  pv_t* q = OP2(DIVIDE, small, big);
  q = pestle_f_select(f, pestle_f_is_zero(f, big), small, q);
  pv_t* size = OP2(ADD, big, OP2(MULTIPLY, small, q));
  pv_t* first = pestle_f_select(f, wide, a.re, a.im);
  pv_t* second = pestle_f_select(f, wide, a.im, OP1(NEGATE, a.re));
  pair_t out;
  out.re = OP2(DIVIDE, OP2(ADD, first, OP2(MULTIPLY, second, q)), size);
  out.im = OP2(DIVIDE, OP2(SUBTRACT, second, OP2(MULTIPLY, first, q)), size);
  return out;
}

// +-1 in the place of infinities, else +-0.
static pv_t* boxed(pestle_formula_t* f, pv_t* a) {
  pv_t* size = pestle_f_select(f, is_endless(f, a), NUMBER(a, 1), NUMBER(a, 0));
  return pestle_f_copy_sign(f, size, a);
}

static pv_t* is_finite(pestle_formula_t* f, pair_t a) {
  pv_t* re = OP1(IS_FINITE, a.re);
  return OP2(AND, re, OP1(IS_FINITE, a.im));
}

// What C says of numbers with infinite parts, some of which Smith's way makes NaN:
// over zero and over a number infinite ones are infinite, and over infinite ones
// numbers are 0.
static pair_t divide(pestle_formula_t* f, pair_t a, pair_t b) {
  if (!a.re || !b.re) return a;
  pv_t *up, *down;
  pair_t above = within(f, a, &up), below = within(f, b, &down);
  pair_t out = smith(f, above, below);
  pv_t* back = OP2(DIVIDE, up, down);
  out.re = OP2(MULTIPLY, out.re, back);
  out.im = OP2(MULTIPLY, out.im, back);
  pv_t* endless = NUMBER(a.re, INFINITY);
  pair_t c = {boxed(f, a.re), boxed(f, a.im)};
  pair_t turned = {b.re, OP1(NEGATE, b.im)};
  c = multiply(f, c, turned);
  pv_t* from = OP2(OR, is_endless(f, a.re), is_endless(f, a.im));
  from = OP2(AND, from, is_finite(f, b));
  out.re = pestle_f_select(f, from, OP2(MULTIPLY, endless, c.re), out.re);
  out.im = pestle_f_select(f, from, OP2(MULTIPLY, endless, c.im), out.im);
  pv_t* by = OP2(OR, is_endless(f, b.re), is_endless(f, b.im));
  by = OP2(AND, by, is_finite(f, a));
  out.re = pestle_f_select(f, by, NUMBER(a.re, 0), out.re);
  out.im = pestle_f_select(f, by, NUMBER(a.re, 0), out.im);
  pv_t* over = OP2(AND, pestle_f_is_zero(f, b.re), pestle_f_is_zero(f, b.im));
  endless = pestle_f_copy_sign(f, endless, b.re);
  out.re = pestle_f_select(f, over, OP2(MULTIPLY, endless, a.re), out.re);
  out.im = pestle_f_select(f, over, OP2(MULTIPLY, endless, a.im), out.im);
  return out;
}

static pair_t polar(pestle_formula_t* f, pv_t* size, pv_t* angle) {
  pair_t out;
  out.re = OP2(MULTIPLY, size, OP1(COSINE, angle));
  out.im = OP2(MULTIPLY, size, OP1(SINE, angle));
  // The sine of zero, not zero times infinity.
  out.im = pestle_f_select(f, pestle_f_is_zero(f, angle), angle, out.im);
  return out;
}

// Where e^x overflows and a part of the result need not, e^(x - c) and e^c are
// multiplied one by one. To the left of all numbers it is 0, to the right infinite,
// whatever the angle.
static pair_t exponential(pestle_formula_t* f, pair_t a) {
  if (!a.re) return a;
  double c = a.re->type->dtype == PESTLE_F64 ? 709 : 88;
  pv_t* large = OP2(GT, a.re, NUMBER(a.re, c));
  pv_t* rest = pestle_f_select(f, large, pestle_f_plus(f, a.re, -c), a.re);
  pair_t out = polar(f, OP1(EXP, rest), a.im);
  pv_t* factor =
      pestle_f_select(f, large, NUMBER(a.re, exp(c)), NUMBER(a.re, 1));
  out.re = OP2(MULTIPLY, out.re, factor);
  out.im = OP2(MULTIPLY, out.im, factor);
  pv_t* left = OP2(EQ, a.re, NUMBER(a.re, -INFINITY));
  pv_t* zero = NUMBER(a.re, 0);
  pv_t* turning = OP1(NOT, OP1(IS_FINITE, a.im));
  pv_t* right = OP2(AND, turning, OP2(EQ, a.re, NUMBER(a.re, INFINITY)));
  out.re =
      pestle_f_select(f, right, a.re, pestle_f_select(f, left, zero, out.re));
  out.im = pestle_f_select(f, left, zero, out.im);
  return out;
}

// exp(x) cos y - 1 = expm1(x) cos y - 2 sin^2(y / 2)
static pair_t expm1_of(pestle_formula_t* f, pair_t a) {
  pv_t* half = OP1(SINE, pestle_f_times(f, a.im, 0.5));
  pv_t* less = pestle_f_times(f, OP2(MULTIPLY, half, half), 2);
  pair_t out = exponential(f, a);
  pv_t* end = pestle_f_plus(f, out.re, -1);
  out.re = OP1(EXPM1, a.re);
  out.re = OP2(MULTIPLY, out.re, OP1(COSINE, a.im));
  out.re = OP2(SUBTRACT, out.re, less);
  out.re = pestle_f_select(f, is_endless(f, a.re), end, out.re);
  return out;
}

// Whether low < a < high.
static pv_t* between(pestle_formula_t* f, pv_t* a, double low, double high) {
  pv_t* over = OP2(GT, a, NUMBER(a, low));
  pv_t* under = OP2(LT, a, NUMBER(a, high));
  return OP2(AND, over, under);
}

// log |a|: near the unit circle log1p((m - 1)(m + 1) + n^2) / 2, near the end of the
// range that of an eighth.
static pv_t* log_size(pestle_formula_t* f, pair_t a) {
  pv_t *x = OP1(ABS, a.re), *y = OP1(ABS, a.im);
  pv_t *m = OP2(MAXIMUM, x, y), *n = OP2(MINIMUM, x, y);
  pv_t* excess = pestle_f_plus(f, m, -1);
  excess = OP2(MULTIPLY, excess, pestle_f_plus(f, m, 1));
  excess = OP2(ADD, excess, OP2(MULTIPLY, n, n));
  pv_t* inside = pestle_f_times(f, OP1(LOG1P, excess), 0.5);
  pv_t* back;
  pair_t part = within(f, a, &back);
  pv_t* outside = OP1(LOG, size_of(f, part));
  pv_t* more = NUMBER(m, log(8));
  more = pestle_f_select(f, OP2(GT, back, NUMBER(m, 1)), more, NUMBER(m, 0));
  outside = OP2(ADD, outside, more);
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

// With t = sqrt((|x| + |a|) / 2): (t, y / 2t), or (|y| / 2t, +-t) left of zero.
// Sizes near the ends of the range are brought to the middle and back.
static pair_t root(pestle_formula_t* f, pair_t a) {
  if (!a.re) return a;
  bool wide = a.re->type->dtype == PESTLE_F64;
  double end = ldexp(1, wide ? 1000 : 120), scale = ldexp(1, wide ? 512 : 64);
  pv_t *x = OP1(ABS, a.re), *y = OP1(ABS, a.im);
  pv_t* m = OP2(MAXIMUM, x, y);
  pv_t* one = NUMBER(m, 1);
  pv_t* low = OP2(LT, m, NUMBER(m, 1 / end));
  pv_t* high = OP2(GT, m, NUMBER(m, end));
  pv_t* by = pestle_f_select(f, high, NUMBER(m, 1 / scale), one);
  by = pestle_f_select(f, low, NUMBER(m, scale), by);
  pv_t* back = pestle_f_select(f, high, NUMBER(m, sqrt(scale)), one);
  back = pestle_f_select(f, low, NUMBER(m, 1 / sqrt(scale)), back);
  pair_t z;
  z.re = OP2(MULTIPLY, a.re, by);
  z.im = OP2(MULTIPLY, a.im, by);
  x = OP1(ABS, z.re);
  pv_t* sum = OP2(ADD, x, size_of(f, z));
  pv_t* t = OP1(SQRT, pestle_f_times(f, sum, 0.5));
  y = OP1(ABS, z.im);
  pv_t* u = OP2(DIVIDE, y, pestle_f_times(f, t, 2));
  u = pestle_f_select(f, pestle_f_is_zero(f, t), t, u);
  pv_t* endless = OP2(EQ, y, NUMBER(y, INFINITY));
  u = pestle_f_select(f, endless, y, u);
  t = pestle_f_select(f, endless, y, t);
  t = OP2(MULTIPLY, t, back);
  u = OP2(MULTIPLY, u, back);
  pv_t* left = OP2(LT, a.re, NUMBER(a.re, 0));
  pair_t out;
  out.re = pestle_f_select(f, left, u, t);
  out.im = pestle_f_copy_sign(f, pestle_f_select(f, left, t, u), a.im);
  return out;
}

// 1 / a: 0 where a part of a is infinite, whatever the other.
static pair_t inverse(pestle_formula_t* f, pair_t a) {
  if (!a.re) return a;
  pair_t one;
  one.re = NUMBER(a.re, 1);
  one.im = NUMBER(a.re, 0);
  pair_t out = smith(f, one, a);
  pv_t* endless = OP2(OR, is_endless(f, a.re), is_endless(f, a.im));
  out.re = pestle_f_select(f, endless, one.im, out.re);
  out.im = pestle_f_select(f, endless, one.im, out.im);
  return out;
}

static pair_t cube_root(pestle_formula_t* f, pair_t a) {
  pv_t* back;
  pair_t part = within(f, a, &back);
  pv_t* angle = pestle_f_times(f, OP2(ATAN2, a.im, a.re), 1.0 / 3);
  pv_t* size = OP1(CBRT, size_of(f, part));
  // The root of 8 is 2.
  pv_t* twice = OP2(ADD, size, size);
  pv_t* large = OP2(GT, back, NUMBER(back, 1));
  return polar(f, pestle_f_select(f, large, twice, size), angle);
}

// |cosh| and sinh of |y|: the squares of exp(y / 2) do not overflow before the
// results do.
static pair_t hyperbolic(pestle_formula_t* f, pv_t* y) {
  pv_t* size = OP1(ABS, y);
  pv_t* h = OP1(EXP, pestle_f_times(f, size, 0.5));
  pv_t* up = OP2(MULTIPLY, pestle_f_times(f, h, 0.5), h);
  pv_t* down = OP2(DIVIDE, NUMBER(y, 0.25), up);
  // expm1(y) / 2 + expm1(y) / 2 / (expm1(y) + 1) where the two would cancel.
  pv_t* e = OP1(EXPM1, size);
  pv_t* small = pestle_f_times(
      f, OP2(ADD, e, OP2(DIVIDE, e, pestle_f_plus(f, e, 1))), 0.5);
  pv_t* sinh = OP2(SUBTRACT, up, down);
  sinh = pestle_f_select(f, OP2(LT, size, NUMBER(y, 1)), small, sinh);
  pair_t out;
  out.re = OP2(ADD, up, down);
  out.im = pestle_f_copy_sign(f, sinh, y);
  return out;
}

// Whether the size of a sine is infinite and its angle nothing.
static pv_t* is_turning(pestle_formula_t* f, pair_t a) {
  pv_t* turning = OP1(NOT, OP1(IS_FINITE, a.re));
  return OP2(AND, turning, is_endless(f, a.im));
}

static pair_t sine(pestle_formula_t* f, pair_t a) {
  pair_t h = hyperbolic(f, a.im);
  pair_t out;
  out.re = OP2(MULTIPLY, OP1(SINE, a.re), h.re);
  out.im = OP2(MULTIPLY, OP1(COSINE, a.re), h.im);
  out.re = pestle_f_select(f, pestle_f_is_zero(f, a.re), a.re, out.re);
  out.im = pestle_f_select(f, pestle_f_is_zero(f, a.im), a.im, out.im);
  out.im = pestle_f_select(f, is_turning(f, a), h.re, out.im);
  return out;
}

static pair_t cosine(pestle_formula_t* f, pair_t a) {
  if (!a.re) return a;
  pair_t h = hyperbolic(f, a.im);
  pair_t out;
  out.re = OP2(MULTIPLY, OP1(COSINE, a.re), h.re);
  out.im = OP1(NEGATE, OP2(MULTIPLY, OP1(SINE, a.re), h.im));
  pv_t* on_axis = OP2(OR, pestle_f_is_zero(f, a.re), pestle_f_is_zero(f, a.im));
  out.im = pestle_f_select(f, on_axis, NUMBER(a.re, 0), out.im);
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
  pv_t* far = is_endless(f, a.im);
  pv_t* zero = NUMBER(size, 0);
  pair_t out;
  out.re = OP2(DIVIDE, OP2(MULTIPLY, sin, cos), d);
  out.re = pestle_f_select(f, far, zero, out.re);
  out.re = pestle_f_select(f, pestle_f_is_zero(f, a.re), a.re, out.re);
  out.im = pestle_f_select(f, far, NUMBER(size, 1), OP2(DIVIDE, grown, d));
  out.im = pestle_f_select(f, pestle_f_is_zero(f, a.im), a.im,
                           pestle_f_copy_sign(f, out.im, a.im));
  return out;
}

// tanh z = -i tan iz
static pair_t hyperbolic_tangent(pestle_formula_t* f, pair_t a) {
  pair_t turned = {OP1(NEGATE, a.im), a.re};
  pair_t t = tangent(f, turned);
  return (pair_t){t.im, OP1(NEGATE, t.re)};
}

// By the exponential that does not overflow: e / (1 + e) or 1 / (1 + e).
static pair_t logistic(pestle_formula_t* f, pair_t a) {
  if (!a.re) return a;
  pv_t* left = OP2(LT, a.re, NUMBER(a.re, 0));
  pair_t z, top;
  z.re = OP1(NEGATE, OP1(ABS, a.re));
  z.im = pestle_f_select(f, left, a.im, OP1(NEGATE, a.im));
  pair_t e = exponential(f, z);
  top.re = pestle_f_select(f, left, e.re, NUMBER(a.re, 1));
  top.im = pestle_f_select(f, left, e.im, NUMBER(a.re, 0));
  pair_t under = {pestle_f_plus(f, e.re, 1), e.im};
  return divide(f, top, under);
}

// exp(b log a); 1 for a zero exponent, else of zero 0. The error is that of b log a,
// which its exponential makes relative.
static pair_t power(pestle_formula_t* f, pair_t a, pair_t b) {
  pair_t out = exponential(f, multiply(f, b, logarithm(f, a)));
  pv_t* nothing =
      OP2(AND, pestle_f_is_zero(f, a.re), pestle_f_is_zero(f, a.im));
  pv_t* none = OP2(AND, pestle_f_is_zero(f, b.re), pestle_f_is_zero(f, b.im));
  pv_t* zero = NUMBER(a.re, 0);
  pv_t* either = OP2(OR, nothing, none);
  pv_t* one = pestle_f_select(f, none, NUMBER(a.re, 1), zero);
  out.re = pestle_f_select(f, either, one, out.re);
  out.im = pestle_f_select(f, either, zero, out.im);
  return out;
}

static pair_t sign(pestle_formula_t* f, pair_t a) {
  pv_t* back;
  a = within(f, a, &back);
  pv_t* size = size_of(f, a);
  pv_t* zero = pestle_f_is_zero(f, size);
  pair_t out;
  out.re = pestle_f_select(f, zero, a.re, OP2(DIVIDE, a.re, size));
  out.im = pestle_f_select(f, zero, a.im, OP2(DIVIDE, a.im, size));
  return out;
}

// |op| on each part.
static pair_t apart(pestle_formula_t* f, pestle_op_t op, pair_t a, pair_t b) {
  pair_t out;
  bool binary = pestle_op_info(op)->operands == 2;
  out.re =
      binary ? pestle_f_binary(f, op, a.re, b.re) : pestle_f_unary(f, op, a.re);
  out.im =
      binary ? pestle_f_binary(f, op, a.im, b.im) : pestle_f_unary(f, op, a.im);
  return out;
}

// By the real parts, and by the imaginary ones where those are equal.
static pv_t* order(pestle_formula_t* f, pestle_op_t op, pair_t a, pair_t b) {
  pestle_op_t strict = op == PESTLE_OP_LE   ? PESTLE_OP_LT
                       : op == PESTLE_OP_GE ? PESTLE_OP_GT
                                            : op;
  pv_t* before = pestle_f_binary(f, strict, a.re, b.re);
  pv_t* equal = OP2(EQ, a.re, b.re);
  return OP2(OR, before, OP2(AND, equal, pestle_f_binary(f, op, a.im, b.im)));
}

pestle_pair_t pestle_complex_scalar(pestle_formula_t* f, pestle_op_t op,
                                    pestle_pair_t a, pestle_pair_t b) {
  switch ((int)op) {
    case PESTLE_OP_ADD:
    case PESTLE_OP_SUBTRACT:
    case PESTLE_OP_NEGATE:
      return apart(f, op, a, b);
    case PESTLE_OP_EQ:
    case PESTLE_OP_NE: {
      pair_t each = apart(f, op, a, b);
      return (pair_t){op == PESTLE_OP_EQ ? OP2(AND, each.re, each.im)
                                         : OP2(OR, each.re, each.im),
                      NULL};
    }
    case PESTLE_OP_LT:
    case PESTLE_OP_LE:
    case PESTLE_OP_GT:
    case PESTLE_OP_GE:
      return (pair_t){order(f, op, a, b), NULL};
    case PESTLE_OP_ABS:
      return (pair_t){size_of(f, a), NULL};
    case PESTLE_OP_MULTIPLY:
      return multiply(f, a, b);
    case PESTLE_OP_DIVIDE:
      return divide(f, a, b);
    case PESTLE_OP_POWER:
      return power(f, a, b);
    case PESTLE_OP_SIGN:
      return sign(f, a);
    case PESTLE_OP_SQRT:
      return root(f, a);
    case PESTLE_OP_RSQRT:
      return inverse(f, root(f, a));
    case PESTLE_OP_CBRT:
      return cube_root(f, a);
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
  if (!f->status) {
    f->status = pestle_node_error(f->of->node, PESTLE_STATUS_UNSUPPORTED,
                                  "the op has no kernel on complex numbers");
  }
  return (pair_t){NULL, NULL};
}
