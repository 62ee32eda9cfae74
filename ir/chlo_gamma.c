// SPDX-License-Identifier: Apache-2.0
// The logarithm of the gamma function, its derivatives, and Hurwitz' zeta function.
//
// Between 1/2 and 8 log(gamma(z)) is taken to [3/2, 5/2], where it is a power series
// about its root 2, by one logarithm of a product: nothing cancels beyond 2, and
// digamma goes the same way by one quotient. Further out are Stirling's series and
// that of its derivative, below are the reflections. Zeta is ten terms and Euler and
// Maclaurin's formula for the others, as in XLA. What is no number is what XLA says.
// A branch that is not taken gets an operand at which its derivative is finite.
#include <math.h>

#include "ir/chlo.h"
#include "ir/chlo_tables.h"

#define PI 3.14159265358979323846
#define LOG_PI 1.14472988584940017414
#define STIRLING 0.41893853320467274178  // (log(2 pi) - 1) / 2

enum { FAR = 8, ZETA_TERMS = 10 };

#define OP1(op, a) pestle_f_unary(f, PESTLE_OP_##op, a)
#define OP2(op, a, b) pestle_f_binary(f, PESTLE_OP_##op, a, b)
#define NUMBER(like, value) pestle_f_splat(f, like, value)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static pv_t* choose_number(pestle_formula_t* f, pv_t* which, double yes,
                           pv_t* no) {
  return pestle_f_select(f, which, no ? NUMBER(no, yes) : NULL, no);
}

#define IS(op, a, b) OP2(op, a, NUMBER(a, b))
#define BOTH(a, b) OP2(AND, a, b)

static pv_t* is_whole(pestle_formula_t* f, pv_t* a) {
  return OP2(EQ, a, OP1(FLOOR, a));
}

// c[0] + x (c[1] + x (...)) of |count|, each times its place + |scale|.
static pv_t* series(pestle_formula_t* f, pv_t* x, const double* c, size_t count,
                    bool derive) {
  pv_t* y = NULL;
  for (size_t i = count; i-- > 0;) {
    double value = derive ? c[i] * (double)(i + 1) : c[i];
    y = y ? pestle_f_plus(f, pestle_f_multiply(f, y, x), value)
          : NUMBER(x, value);
  }
  return y;
}

// How much of a series f32 and f64 need.
static size_t terms(const pestle_formula_t* f, size_t narrow, size_t wide) {
  return f->compute == PESTLE_F64 ? wide : narrow;
}

// --- log(gamma) and digamma above 0 ---

// z below 8, else 2, as 2 + offset + rest: |place| is 2 + offset, from 0 to 8. And z
// from 8 on, else 8.
typedef struct place_t {
  pv_t *near, *place, *rest, *low, *is_far, *far;
} place_t;

static place_t place_of(pestle_formula_t* f, pv_t* z) {
  place_t p = {.is_far = IS(GE, z, FAR)};
  p.near = choose_number(f, p.is_far, 2, z);
  p.far = pestle_f_select(f, p.is_far, z, NUMBER(z, FAR));
  p.place = OP1(CEIL, pestle_f_plus(f, p.near, -0.5));
  p.place = OP2(MAXIMUM, p.place, NUMBER(z, 0));
  p.rest = pestle_f_subtract(f, p.near, p.place);
  p.low = IS(LT, p.place, 2);
  return p;
}

// What lies between z and where the series is: (z - 1) (z - 2) ..; z; z (z + 1).
static pv_t* product(pestle_formula_t* f, const place_t* p) {
  pv_t* up = NUMBER(p->near, 1);
  for (int i = 1; i <= FAR - 2; ++i) {
    pv_t* more = pestle_f_multiply(f, up, pestle_f_plus(f, p->near, -i));
    up = pestle_f_select(f, IS(GE, p->place, i + 2), more, up);
  }
  pv_t* two = pestle_f_multiply(f, p->near, pestle_f_plus(f, p->near, 1));
  return pestle_f_select(
      f, p->low, pestle_f_select(f, IS(EQ, p->place, 0), two, p->near), up);
}

static pv_t* lgamma_above(pestle_formula_t* f, pv_t* z) {
  place_t p = place_of(f, z);
  pv_t* log = OP1(LOG, pestle_f_select(f, p.is_far, z, product(f, &p)));
  pv_t* near =
      series(f, p.rest, lgamma_near, terms(f, 13, COUNT(lgamma_near)), false);
  near = pestle_f_multiply(f, near, p.rest);
  near =
      pestle_f_add(f, near, pestle_f_select(f, p.low, OP1(NEGATE, log), log));
  pv_t* inverse = pestle_f_divide(f, NUMBER(z, 1), p.far);
  pv_t* square = pestle_f_multiply(f, inverse, inverse);
  pv_t* tail =
      series(f, square, lgamma_far, terms(f, 3, COUNT(lgamma_far)), false);
  tail = pestle_f_plus(f, pestle_f_multiply(f, tail, inverse), STIRLING);
  log = pestle_f_plus(f, log, -1);
  pv_t* far = pestle_f_multiply(f, pestle_f_plus(f, p.far, -0.5), log);
  return pestle_f_select(f, p.is_far, pestle_f_add(f, far, tail), near);
}

// The sum of 1 / (z - i), by one quotient; or 1 / z; or 1 / z + 1 / (z + 1).
static pv_t* quotients(pestle_formula_t* f, const place_t* p) {
  pv_t *above = NUMBER(p->near, 0), *below = NUMBER(p->near, 1);
  for (int i = 1; i <= FAR - 2; ++i) {
    pv_t* factor = pestle_f_plus(f, p->near, -i);
    pv_t* used = IS(GE, p->place, i + 2);
    pv_t* sum = pestle_f_add(f, pestle_f_multiply(f, above, factor), below);
    above = pestle_f_select(f, used, sum, above);
    below =
        pestle_f_select(f, used, pestle_f_multiply(f, below, factor), below);
  }
  pv_t* none = IS(EQ, p->place, 0);
  pv_t* one = NUMBER(p->near, 1);
  pv_t* more = pestle_f_plus(f, p->near, 1);
  pv_t* both = pestle_f_multiply(f, p->near, more);
  pv_t* sum = pestle_f_add(f, p->near, more);
  above = pestle_f_select(f, p->low, pestle_f_select(f, none, sum, one), above);
  below = pestle_f_select(f, p->low, pestle_f_select(f, none, both, p->near),
                          below);
  return pestle_f_divide(f, above, below);
}

static pv_t* digamma_above(pestle_formula_t* f, pv_t* z) {
  place_t p = place_of(f, z);
  pv_t* near =
      series(f, p.rest, lgamma_near, terms(f, 14, COUNT(lgamma_near)), true);
  pv_t* sum = quotients(f, &p);
  near =
      pestle_f_add(f, near, pestle_f_select(f, p.low, OP1(NEGATE, sum), sum));
  pv_t* inverse = pestle_f_divide(f, NUMBER(z, 1), p.far);
  pv_t* square = pestle_f_multiply(f, inverse, inverse);
  pv_t* tail =
      series(f, square, digamma_far, terms(f, 3, COUNT(digamma_far)), false);
  tail = pestle_f_multiply(f, tail, square);
  tail = pestle_f_add(f, pestle_f_times(f, inverse, 0.5), tail);
  pv_t* far = pestle_f_subtract(f, OP1(LOG, p.far), tail);
  return pestle_f_select(f, p.is_far, far, near);
}

// --- Everywhere ---

// 1 - x where |x| is below 0, else x.
static pv_t* reflected(pestle_formula_t* f, pv_t* below, pv_t* x) {
  return pestle_f_select(f, below, pestle_f_subtract(f, NUMBER(x, 1), x), x);
}

// gamma(x) gamma(1 - x) = pi / sin(pi x)
pv_t* pestle_chlo_lgamma(pestle_formula_t* f, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* below = IS(LT, x, 0);
  pv_t* y = lgamma_above(f, reflected(f, below, x));
  pv_t* size = OP1(ABS, x);
  pv_t* part = pestle_f_subtract(f, size, OP1(FLOOR, size));
  pv_t* rest = pestle_f_subtract(f, NUMBER(x, 1), part);
  part = pestle_f_select(f, IS(GT, part, 0.5), rest, part);
  part = pestle_f_select(f, below, part, NUMBER(x, 0.5));
  pv_t* sine = OP1(LOG, OP1(SINE, pestle_f_times(f, part, PI)));
  pv_t* mirrored =
      OP1(NEGATE, pestle_f_plus(f, pestle_f_add(f, sine, y), -LOG_PI));
  y = pestle_f_select(f, below, mirrored, y);
  pv_t* pole = BOTH(below, is_whole(f, x));
  return choose_number(f, pole, (double)INFINITY, y);
}

// digamma(1 - x) - digamma(x) = pi cot(pi x)
pv_t* pestle_chlo_digamma(pestle_formula_t* f, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* below = IS(LT, x, 0);
  pv_t* y = digamma_above(f, reflected(f, below, x));
  pv_t* part = pestle_f_subtract(f, x, OP1(ROUND_EVEN, x));
  part = pestle_f_select(f, below, part, NUMBER(x, 0.25));
  pv_t* tangent = OP1(TAN, pestle_f_times(f, part, PI));
  pv_t* cotangent = pestle_f_divide(f, NUMBER(x, PI), tangent);
  y = pestle_f_select(f, below, pestle_f_subtract(f, y, cotangent), y);
  pv_t* pole = BOTH(IS(LE, x, 0), is_whole(f, x));
  return choose_number(f, pole, (double)NAN, y);
}

// --- Zeta ---

// Of order |x| what lies behind the terms before |a|, whose power a^-x is |power|.
static pv_t* zeta_rest(pestle_formula_t* f, pv_t* x, pv_t* a, pv_t* power) {
  pv_t* whole = pestle_f_divide(f, a, pestle_f_plus(f, x, -1));
  pv_t* square = pestle_f_multiply(f, a, a);
  square = pestle_f_divide(f, NUMBER(a, 1), square);
  size_t count = terms(f, 6, COUNT(zeta_tail));
  // c0 x/a (1 + ..), where one more term brings (x + 2i + 1) (x + 2i + 2) / a^2.
  pv_t* sum = NULL;
  for (size_t i = count; i-- > 0;) {
    if (sum) {
      double k = 2 * (double)i;
      pv_t* factor = pestle_f_plus(f, x, k + 2);
      factor = pestle_f_multiply(f, factor, square);
      factor = pestle_f_multiply(f, pestle_f_plus(f, x, k + 1), factor);
      sum = pestle_f_plus(f, pestle_f_multiply(f, sum, factor), zeta_tail[i]);
    } else {
      sum = NUMBER(x, zeta_tail[i]);
    }
  }
  sum = pestle_f_multiply(f, sum, pestle_f_divide(f, x, a));
  sum = pestle_f_plus(f, pestle_f_add(f, sum, whole), 0.5);
  return pestle_f_multiply(f, sum, power);
}

// What is no sum: x is 1, below it, or a term is 1 / 0 or a root of less than 0.
static pv_t* zeta_outside(pestle_formula_t* f, pv_t* x, pv_t* q, pv_t* y) {
  pv_t* half = pestle_f_times(f, x, 0.5);
  pv_t* even = is_whole(f, half);
  pv_t* pole = BOTH(IS(LE, q, 0), is_whole(f, q));
  pv_t* root = BOTH(IS(LE, q, 0), OP1(NOT, is_whole(f, x)));
  y = choose_number(f, OP2(OR, root, IS(LT, x, 1)), (double)NAN, y);
  pv_t* at = choose_number(f, even, (double)INFINITY, NUMBER(y, (double)NAN));
  y = pestle_f_select(f, pole, at, y);
  return choose_number(f, IS(EQ, x, 1), (double)INFINITY, y);
}

pv_t* pestle_chlo_zeta(pestle_formula_t* f, pv_t* const* operands) {
  pv_t *x = operands[0], *q = operands[1];
  pv_t* minus = OP1(NEGATE, x);
  pv_t *sum = NULL, *power = NULL, *a = q;
  for (int i = 0; i < ZETA_TERMS; ++i) {
    a = i ? pestle_f_plus(f, q, i) : q;
    power = OP2(POWER, a, minus);
    sum = sum ? pestle_f_add(f, sum, power) : power;
  }
  a = pestle_f_plus(f, q, ZETA_TERMS);
  pv_t* next = OP2(POWER, a, minus);
  pv_t* rest = zeta_rest(f, x, a, next);
  // Large orders overflow in the rest, which then adds nothing.
  double least = f->compute == PESTLE_F64 ? 0x1p-53 : 0x1p-24;
  pv_t* enough = pestle_f_times(f, OP1(ABS, sum), least);
  enough = OP2(LT, OP1(ABS, power), enough);
  pv_t* y = pestle_f_select(f, enough, sum, pestle_f_add(f, sum, rest));
  return zeta_outside(f, x, q, y);
}

// (-1)^(n + 1) n! zeta(n + 1, x), digamma for n = 0.
pv_t* pestle_chlo_polygamma(pestle_formula_t* f, pv_t* const* operands) {
  pv_t* n = operands[0];
  pv_t* zeta[2] = {pestle_f_plus(f, n, 1), operands[1]};
  pv_t* y = OP1(EXP, pestle_chlo_lgamma(f, zeta));
  y = pestle_f_multiply(f, y, pestle_chlo_zeta(f, zeta));
  pv_t* other = OP1(NEGATE, y);
  y = pestle_f_select(f, is_whole(f, pestle_f_times(f, n, 0.5)), other, y);
  pv_t* digamma = pestle_chlo_digamma(f, operands + 1);
  y = pestle_f_select(f, IS(EQ, n, 0), digamma, y);
  pv_t* right = BOTH(IS(GE, n, 0), is_whole(f, n));
  return choose_number(f, OP1(NOT, right), (double)NAN, y);
}
