// SPDX-License-Identifier: Apache-2.0
// The hyperbolic functions and the inverse ones of complex numbers, of their parts.
// On zeros, infinities, NaNs and branch cuts they are what C's Annex G says, where the
// sign of a zero tells the sides of a cut apart.
//
// Inverse sines and cosines go the way of Hull, Fairgrieve and Tang (1997), in which
// nothing cancels. With z = x + iy in the first quadrant, its distances r and t from
// -1 and 1, and a = (r + t) / 2:
//
//   asin z = atan(x / d) + i log(a + sqrt(a^2 - 1)),    d = sqrt(a^2 - x^2)
#include <math.h>

#include "ir/chlo.h"

#define LN2 0.69314718055994530942
#define HALF_PI 1.57079632679489661923

#define OP1(op, a) pestle_f_unary(f, PESTLE_OP_##op, a)
#define OP2(op, a, b) pestle_f_binary(f, PESTLE_OP_##op, a, b)
#define NUMBER(like, value) pestle_f_splat(f, like, value)

typedef struct pair_t {
  pv_t *re, *im;
} pair_t;

// --- Parts ---

static pair_t split(pestle_formula_t* f, pv_t* z) {
  pair_t out;
  out.re = OP1(REAL, z);
  out.im = OP1(IMAG, z);
  return out;
}

static pv_t* join(pestle_formula_t* f, pv_t* re, pv_t* im) {
  return OP2(COMPLEX, re, im);
}

// sqrt(x^2 + y^2), which overflows where it is too large alone.
static pv_t* distance(pestle_formula_t* f, pv_t* x, pv_t* y) {
  return OP1(ABS, join(f, x, y));
}

// Whether x or y is so large that 1 is nothing beside its square.
static pv_t* is_far(pestle_formula_t* f, pair_t a, double limit) {
  pv_t* right = OP2(GT, a.re, NUMBER(a.re, limit));
  return OP2(OR, right, OP2(GT, a.im, NUMBER(a.im, limit)));
}

// --- sinh, cosh ---

// sinh z = -i sin iz
pv_t* pestle_chlo_complex_sinh(pestle_formula_t* f, pv_t* z) {
  pair_t a = split(f, z);
  pair_t sine = split(f, OP1(SINE, join(f, OP1(NEGATE, a.im), a.re)));
  return join(f, sine.im, OP1(NEGATE, sine.re));
}

// cosh z = cos iz
pv_t* pestle_chlo_complex_cosh(pestle_formula_t* f, pv_t* z) {
  pair_t a = split(f, z);
  return OP1(COSINE, join(f, OP1(NEGATE, a.im), a.re));
}

// --- asin, acos, asinh, acosh ---

typedef struct arc_t {
  pv_t* d;       // sqrt(a^2 - x^2): asin is atan(x / d), acos atan(d / x)
  pv_t* height;  // log(a + sqrt(a^2 - 1))
} arc_t;

// Left of 1 a - 1 and a - x are y^2 times what does not vanish with y: y is taken out
// of the root, or it would be lost where y^2 is too small for a number.
//
//   a - 1 = y^2 q,  q = (1 / (r + x + 1) + 1 / (t + 1 - x)) / 2    for x < 1
//   a - 1 = (y^2 / (r + x + 1) + (t + x - 1)) / 2                  from 1 on
//   a - x = (y^2 / (r + x + 1) + (t + 1 - x)) / 2                  up to 1
//   a - x = y^2 (1 / (r + x + 1) + 1 / (t + x - 1)) / 2            for x > 1
static arc_t arc(pestle_formula_t* f, pair_t z) {
  pv_t *x = z.re, *y = z.im;
  pv_t* up = pestle_f_plus(f, x, 1);
  pv_t* down = pestle_f_plus(f, x, -1);
  pv_t* r = distance(f, up, y);
  pv_t* t = distance(f, down, y);
  pv_t* a = pestle_f_times(f, OP2(ADD, r, t), 0.5);
  pv_t* left = OP2(ADD, r, up);
  pv_t* inner = OP2(SUBTRACT, t, down);
  pv_t* outer = OP2(ADD, t, down);
  pv_t* part = OP2(MULTIPLY, y, OP2(DIVIDE, y, left));

  pv_t* sum = pestle_f_times(f, OP2(ADD, a, x), 0.5);
  pv_t* inside = OP2(MULTIPLY, sum, OP2(ADD, part, inner));
  inside = OP1(SQRT, inside);
  pv_t* outside = OP2(DIVIDE, sum, left);
  outside = OP2(ADD, outside, OP2(DIVIDE, sum, outer));
  outside = OP2(MULTIPLY, y, OP1(SQRT, outside));
  pv_t* one = NUMBER(x, 1);
  arc_t out;
  out.d = pestle_f_select(f, OP2(GT, x, one), outside, inside);

  pv_t* over = pestle_f_plus(f, a, 1);
  pv_t* q = OP2(DIVIDE, one, left);
  q = pestle_f_times(f, OP2(ADD, q, OP2(DIVIDE, one, inner)), 0.5);
  inside = OP2(MULTIPLY, y, OP1(SQRT, OP2(MULTIPLY, q, over)));
  inside = OP2(ADD, OP2(MULTIPLY, y, OP2(MULTIPLY, y, q)), inside);
  // The root of twice that: a half of the least number is 0.
  pv_t* excess = OP2(ADD, part, outer);
  pv_t* root = pestle_f_times(f, OP1(SQRT, excess), sqrt(0.5));
  excess = pestle_f_times(f, excess, 0.5);
  outside = OP2(ADD, excess, OP2(MULTIPLY, root, OP1(SQRT, over)));
  pv_t* grown = pestle_f_select(f, OP2(LT, x, one), inside, outside);
  out.height = OP1(LOG1P, grown);

  // d = y and a = |z|, but for parts that do not show.
  pv_t* far = is_far(f, z, 0x1p30);
  pv_t* log = OP1(REAL, OP1(LOG, join(f, x, y)));
  out.d = pestle_f_select(f, far, y, out.d);
  out.height = pestle_f_select(f, far, pestle_f_plus(f, log, LN2), out.height);
  return out;
}

static pair_t sizes(pestle_formula_t* f, pair_t a) {
  pair_t out;
  out.re = OP1(ABS, a.re);
  out.im = OP1(ABS, a.im);
  return out;
}

// atan(x / d); 0 where x is, whatever the other part.
static pv_t* arc_sine(pestle_formula_t* f, pv_t* x, pv_t* d) {
  pv_t* angle = OP2(ATAN2, x, d);
  return pestle_f_select(f, pestle_f_is_zero(f, x), x, angle);
}

static pv_t* arc_cosine(pestle_formula_t* f, pv_t* x, pv_t* d) {
  pv_t* angle = OP2(ATAN2, d, x);
  pv_t* right = NUMBER(x, HALF_PI);
  return pestle_f_select(f, pestle_f_is_zero(f, x), right, angle);
}

pv_t* pestle_chlo_complex_asin(pestle_formula_t* f, pv_t* z) {
  pair_t a = split(f, z);
  arc_t b = arc(f, sizes(f, a));
  pv_t* re = arc_sine(f, a.re, b.d);
  return join(f, re, pestle_f_copy_sign(f, b.height, a.im));
}

pv_t* pestle_chlo_complex_acos(pestle_formula_t* f, pv_t* z) {
  pair_t a = split(f, z);
  arc_t b = arc(f, sizes(f, a));
  pv_t* re = arc_cosine(f, a.re, b.d);
  return join(f, re, OP1(NEGATE, pestle_f_copy_sign(f, b.height, a.im)));
}

pv_t* pestle_chlo_complex_kernel(pestle_formula_t* f, pv_t* z) {
  arc_t b = arc(f, sizes(f, split(f, z)));
  return join(f, b.d, b.height);
}

// asinh z = -i asin iz
pv_t* pestle_chlo_complex_asinh(pestle_formula_t* f, pv_t* z) {
  pair_t a = split(f, z);
  pair_t turned = {a.im, a.re};
  arc_t b = arc(f, sizes(f, turned));
  pv_t* re = pestle_f_copy_sign(f, b.height, a.re);
  return join(f, re, arc_sine(f, a.im, b.d));
}

// acosh z = i acos z, or -i acos z: what has no negative real part.
pv_t* pestle_chlo_complex_acosh(pestle_formula_t* f, pv_t* z) {
  pair_t a = split(f, z);
  arc_t b = arc(f, sizes(f, a));
  pv_t* im = pestle_f_copy_sign(f, arc_cosine(f, a.re, b.d), a.im);
  return join(f, b.height, im);
}

// --- atan, atanh ---

// log(|1 + z| / |1 - z|) / 2 of z in the first quadrant; with
//   |1 + z|^2 = |1 - z|^2 + 4 x
// it goes by log1p where that is little more than 1. Far away |1 - z| is |z|, a quarter
// of which does not overflow.
static pv_t* arc_length(pestle_formula_t* f, pair_t a) {
  pv_t *x = a.re, *y = a.im;
  pv_t* r = distance(f, pestle_f_plus(f, x, 1), y);
  pv_t* down = pestle_f_plus(f, x, -1);
  pv_t* t = distance(f, down, y);
  pv_t* more = pestle_f_times(f, OP2(DIVIDE, x, t), 4);
  more = OP2(DIVIDE, more, t);
  pv_t* part = pestle_f_times(f, x, 0.25);
  pv_t* whole = distance(f, part, pestle_f_times(f, y, 0.25));
  pv_t* less = OP2(DIVIDE, OP2(DIVIDE, part, whole), whole);
  more = pestle_f_select(f, is_far(f, a, 0x1p60), less, more);
  pv_t* near = pestle_f_times(f, OP1(LOG1P, more), 0.25);
  pv_t* wide = OP1(LOG, r);
  wide = pestle_f_times(f, OP2(SUBTRACT, wide, OP1(LOG, t)), 0.5);
  pv_t* out = pestle_f_select(f, OP2(GT, more, NUMBER(x, 1)), wide, near);
  pv_t* endless = OP2(EQ, x, NUMBER(x, INFINITY));
  endless = OP2(OR, endless, OP2(EQ, y, NUMBER(y, INFINITY)));
  out = pestle_f_select(f, endless, NUMBER(x, 0), out);
  return pestle_f_select(f, pestle_f_is_zero(f, x), x, out);
}

// Half the angle of ((1 - x) (1 + x) - y^2, 2 y), a quarter turn far from 0: where y
// is infinite even if x is no number.
static pv_t* half_angle(pestle_formula_t* f, pair_t a, pv_t* y) {
  if (!a.re || !y) return NULL;
  pv_t* under = OP2(SUBTRACT, NUMBER(a.re, 1), a.re);
  under = OP2(MULTIPLY, under, pestle_f_plus(f, a.re, 1));
  under = OP2(SUBTRACT, under, OP2(MULTIPLY, y, y));
  pv_t* angle = OP2(ATAN2, pestle_f_times(f, y, 2), under);
  angle = pestle_f_times(f, angle, 0.5);
  pv_t* far = is_far(f, a, a.re->type->dtype == PESTLE_F64 ? 0x1p60 : 0x1p30);
  pv_t* quarter = pestle_f_copy_sign(f, NUMBER(y, HALF_PI), y);
  pv_t* nothing = OP1(IS_FINITE, y);
  nothing = OP2(AND, OP2(NE, a.re, a.re), nothing);
  quarter = pestle_f_select(f, nothing, a.re, quarter);
  quarter = pestle_f_select(f, OP2(NE, y, y), y, quarter);
  return pestle_f_select(f, far, quarter, angle);
}

pv_t* pestle_chlo_complex_atanh(pestle_formula_t* f, pv_t* z) {
  pair_t a = split(f, z), size = sizes(f, a);
  pv_t* re = pestle_f_copy_sign(f, arc_length(f, size), a.re);
  return join(f, re, half_angle(f, size, a.im));
}

// atan z = -i atanh iz
pv_t* pestle_chlo_complex_atan(pestle_formula_t* f, pv_t* z) {
  pair_t a = split(f, z), size = sizes(f, a);
  pair_t turned = {size.im, size.re};
  pv_t* im = pestle_f_copy_sign(f, arc_length(f, turned), a.im);
  return join(f, half_angle(f, turned, a.re), im);
}

// x^2 - y^2 as a product: a difference of squares is lost where they overflow, and
// rounded twice where x is about y. It is 0, not -0, where x is y or -y.
pv_t* pestle_chlo_complex_square(pestle_formula_t* f, pv_t* z) {
  pair_t a = split(f, z);
  pv_t* less = OP2(SUBTRACT, a.re, a.im);
  pv_t* more = OP2(ADD, a.re, a.im);
  pv_t* re = OP2(MULTIPLY, less, more);
  pv_t* size = OP1(ABS, a.re);
  pv_t* same = OP2(EQ, size, OP1(ABS, a.im));
  same = OP2(AND, same, OP1(IS_FINITE, size));
  re = pestle_f_select(f, same, NUMBER(re, 0), re);
  pv_t* both = OP2(MULTIPLY, a.re, a.im);
  return join(f, re, OP2(ADD, both, both));
}
