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

pv_t* pestle_complex_is_endless(pestle_formula_t* f, pv_t* a) {
  pv_t* infinity = NUMBER(a, INFINITY);
  return OP2(EQ, OP1(ABS, a), infinity);
}

static pv_t* any_endless(pestle_formula_t* f, pair_t a) {
  pv_t* re = pestle_complex_is_endless(f, a.re);
  return OP2(OR, re, pestle_complex_is_endless(f, a.im));
}

// sqrt(a * a + b * b) = m sqrt(1 + (n / m)^2), m the larger of the sizes.
pv_t* pestle_complex_size(pestle_formula_t* f, pair_t a) {
  pv_t *x = OP1(ABS, a.re), *y = OP1(ABS, a.im);
  pv_t* m = OP2(MAXIMUM, x, y);
  pv_t* q = OP2(DIVIDE, OP2(MINIMUM, x, y), m);
  pv_t* h =
      OP2(MULTIPLY, m, OP1(SQRT, pestle_f_plus(f, OP2(MULTIPLY, q, q), 1)));
  h = pestle_f_select(f, pestle_f_is_zero(f, m), m, h);
  pv_t* endless = any_endless(f, a);
  return pestle_f_select(f, endless, NUMBER(h, INFINITY), h);
}

int pestle_complex_scale(const pv_t* like) {
  return like->type->dtype == PESTLE_F64 ? 510 : 66;
}

pv_t* pestle_complex_by_scale(pestle_formula_t* f, pestle_complex_scaled_t s,
                              double high, double middle, double low) {
  if (!s.z.re) return NULL;
  pv_t* y = NUMBER(s.z.re, middle);
  y = pestle_f_select(f, s.low, NUMBER(s.z.re, low), y);
  return pestle_f_select(f, s.high, NUMBER(s.z.re, high), y);
}

pestle_complex_scaled_t pestle_complex_within(pestle_formula_t* f, pair_t a) {
  pestle_complex_scaled_t out = {a, NULL, NULL};
  if (!a.re) return out;
  bool wide = a.re->type->dtype == PESTLE_F64;
  pv_t* m = OP1(ABS, a.re);
  m = OP2(MAXIMUM, m, OP1(ABS, a.im));
  out.high = OP2(GT, m, NUMBER(a.re, ldexp(1, wide ? 1020 : 124)));
  out.low = OP2(LT, m, NUMBER(a.re, ldexp(1, wide ? -900 : -100)));
  pv_t* by = pestle_complex_by_scale(f, out, 0.125, 1,
                                     ldexp(1, pestle_complex_scale(a.re)));
  out.z.re = OP2(MULTIPLY, a.re, by);
  out.z.im = OP2(MULTIPLY, a.im, by);
  return out;
}

// What |a| is scaled down by.
static pv_t* back_from(pestle_formula_t* f, pestle_complex_scaled_t a) {
  if (!a.z.re) return NULL;
  return pestle_complex_by_scale(f, a, 8, 1,
                                 ldexp(1, -pestle_complex_scale(a.z.re)));
}

pair_t pestle_complex_multiply(pestle_formula_t* f, pair_t a, pair_t b) {
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
  pv_t* zero = NUMBER(a, 0);
  pv_t* one = NUMBER(a, 1);
  pv_t* size = pestle_complex_is_endless(f, a);
  size = pestle_f_select(f, size, one, zero);
  return pestle_f_copy_sign(f, size, a);
}

pv_t* pestle_complex_is_finite(pestle_formula_t* f, pair_t a) {
  pv_t* re = OP1(IS_FINITE, a.re);
  return OP2(AND, re, OP1(IS_FINITE, a.im));
}

// What C says of numbers with infinite parts, some of which Smith's way makes NaN:
// over zero and over a number infinite ones are infinite, and over infinite ones
// numbers are 0.
pair_t pestle_complex_divide(pestle_formula_t* f, pair_t a, pair_t b) {
  if (!a.re || !b.re) return a;
  pestle_complex_scaled_t above = pestle_complex_within(f, a),
                          below = pestle_complex_within(f, b);
  pair_t out = smith(f, above.z, below.z);
  pv_t* back = back_from(f, above);
  back = OP2(DIVIDE, back, back_from(f, below));
  out.re = OP2(MULTIPLY, out.re, back);
  out.im = OP2(MULTIPLY, out.im, back);
  pv_t* endless = NUMBER(a.re, INFINITY);
  pair_t c = {boxed(f, a.re), boxed(f, a.im)};
  pair_t turned = {b.re, OP1(NEGATE, b.im)};
  c = pestle_complex_multiply(f, c, turned);
  pv_t* from = any_endless(f, a);
  from = OP2(AND, from, pestle_complex_is_finite(f, b));
  out.re = pestle_f_select(f, from, OP2(MULTIPLY, endless, c.re), out.re);
  out.im = pestle_f_select(f, from, OP2(MULTIPLY, endless, c.im), out.im);
  pv_t* by = any_endless(f, b);
  by = OP2(AND, by, pestle_complex_is_finite(f, a));
  out.re = pestle_f_select(f, by, NUMBER(a.re, 0), out.re);
  out.im = pestle_f_select(f, by, NUMBER(a.re, 0), out.im);
  pv_t* over = pestle_f_is_zero(f, b.im);
  over = OP2(AND, pestle_f_is_zero(f, b.re), over);
  endless = pestle_f_copy_sign(f, endless, b.re);
  out.re = pestle_f_select(f, over, OP2(MULTIPLY, endless, a.re), out.re);
  out.im = pestle_f_select(f, over, OP2(MULTIPLY, endless, a.im), out.im);
  return out;
}

pair_t pestle_complex_polar(pestle_formula_t* f, pv_t* size, pv_t* angle) {
  pair_t out;
  out.re = OP2(MULTIPLY, size, OP1(COSINE, angle));
  out.im = OP2(MULTIPLY, size, OP1(SINE, angle));
  // The sine of zero, not zero times infinity.
  out.im = pestle_f_select(f, pestle_f_is_zero(f, angle), angle, out.im);
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
  pv_t* sum = OP2(ADD, x, pestle_complex_size(f, z));
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

// 1 / a: 0 where a part of a is infinite, whatever the other. The signs are those of
// a's conjugate, also of zeros.
static pair_t inverse(pestle_formula_t* f, pair_t a) {
  if (!a.re) return a;
  pair_t one;
  one.re = NUMBER(a.re, 1);
  one.im = NUMBER(a.re, 0);
  pair_t out = smith(f, one, a);
  pv_t* endless = any_endless(f, a);
  out.re = pestle_f_select(f, endless, one.im, out.re);
  out.im = pestle_f_select(f, endless, one.im, out.im);
  out.re = pestle_f_copy_sign(f, out.re, a.re);
  out.im = pestle_f_copy_sign(f, out.im, OP1(NEGATE, a.im));
  return out;
}

static pair_t cube_root(pestle_formula_t* f, pair_t a) {
  if (!a.re) return a;
  pestle_complex_scaled_t part = pestle_complex_within(f, a);
  pv_t* angle = pestle_f_times(f, OP2(ATAN2, a.im, a.re), 1.0 / 3);
  pv_t* size = OP1(CBRT, pestle_complex_size(f, part.z));
  // Scales are cubes.
  double low = ldexp(1, -pestle_complex_scale(a.re) / 3);
  size = OP2(MULTIPLY, size, pestle_complex_by_scale(f, part, 2, 1, low));
  return pestle_complex_polar(f, size, angle);
}

static pair_t sign(pestle_formula_t* f, pair_t a) {
  a = pestle_complex_within(f, a).z;
  pv_t* size = pestle_complex_size(f, a);
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

pestle_pair_t pestle_complex_unknown(pestle_formula_t* f) {
  if (!f->status) {
    f->status = pestle_node_error(f->of->node, PESTLE_STATUS_UNSUPPORTED,
                                  "the op has no kernel on complex numbers");
  }
  return (pair_t){NULL, NULL};
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
      return (pair_t){pestle_complex_size(f, a), NULL};
    case PESTLE_OP_MULTIPLY:
      return pestle_complex_multiply(f, a, b);
    case PESTLE_OP_DIVIDE:
      return pestle_complex_divide(f, a, b);
    case PESTLE_OP_SIGN:
      return sign(f, a);
    case PESTLE_OP_SQRT:
      return root(f, a);
    case PESTLE_OP_RSQRT:
      return inverse(f, root(f, a));
    case PESTLE_OP_CBRT:
      return cube_root(f, a);
  }
  return pestle_complex_exponential(f, op, a, b);
}
