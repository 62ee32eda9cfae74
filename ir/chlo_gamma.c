// SPDX-License-Identifier: Apache-2.0
// The logarithm of the gamma function, its derivatives, and Hurwitz' zeta function.
//
// Between 1/2 and 8 log(gamma(z)) is taken to [3/2, 5/2], where it is a power series
// about its root 2, by one logarithm of a product: nothing cancels beyond 2, and
// digamma goes the same way by one quotient. Further out are Stirling's series and
// that of its derivative, below are the reflections. Zeta is ten terms and Euler and
// Maclaurin's formula for the others, as in XLA. What is no number is what XLA says.
#include <math.h>

#include "ir/chlo.h"
#include "ir/chlo_tables.h"

#define PI 3.14159265358979323846
#define LOG_PI 1.14472988584940017414
#define STIRLING 0.41893853320467274178  // (log(2 pi) - 1) / 2

enum { FAR = 8, ZETA_TERMS = 10 };

#define OP1(op, a) pestle_step1(s, PESTLE_OP_##op, a)
#define OP2(op, a, b) pestle_step2(s, PESTLE_OP_##op, a, b)
#define NUMBER(like, value) pestle_step_splat(s, like, value)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static pv_t* choose_number(pestle_steps_t* s, pv_t* which, double yes,
                           pv_t* no) {
  return pestle_step_select(s, which, no ? NUMBER(no, yes) : NULL, no);
}

#define IS(op, a, b) OP2(op, a, NUMBER(a, b))
#define BOTH(a, b) OP2(AND, a, b)

static pv_t* is_whole(pestle_steps_t* s, pv_t* a) {
  return OP2(EQ, a, OP1(FLOOR, a));
}

// c[0] + x (c[1] + x (...)) of |count|, each times its place + |scale|.
static pv_t* series(pestle_steps_t* s, pv_t* x, const double* c, size_t count,
                    bool derive) {
  pv_t* y = NULL;
  for (size_t i = count; i-- > 0;) {
    double value = derive ? c[i] * (double)(i + 1) : c[i];
    y = y ? pestle_step_plus(s, PESTLE_MUL(s, y, x), value) : NUMBER(x, value);
  }
  return y;
}

// How much of a series f32 and f64 need.
static size_t terms(const pestle_steps_t* s, size_t narrow, size_t wide) {
  return s->compute == PESTLE_F64 ? wide : narrow;
}

// --- log(gamma) and digamma above 0 ---

// z as 2 + offset + rest: |place| is 2 + offset, from 0 to 8.
typedef struct place_t {
  pv_t *z, *place, *rest, *low, *far;
} place_t;

static place_t place_of(pestle_steps_t* s, pv_t* z) {
  place_t p = {.z = z};
  p.place = OP1(CEIL, pestle_step_plus(s, z, -0.5));
  p.place = OP2(MAXIMUM, p.place, NUMBER(z, 0));
  p.place = OP2(MINIMUM, p.place, NUMBER(z, FAR));
  p.rest = PESTLE_SUB(s, z, p.place);
  p.low = IS(LT, p.place, 2);
  p.far = IS(GE, z, FAR);
  return p;
}

// What lies between z and where the series is: (z - 1) (z - 2) ..; z; z (z + 1).
static pv_t* product(pestle_steps_t* s, const place_t* p) {
  pv_t* up = NUMBER(p->z, 1);
  for (int i = 1; i <= FAR - 2; ++i) {
    pv_t* more = PESTLE_MUL(s, up, pestle_step_plus(s, p->z, -i));
    up = pestle_step_select(s, IS(GE, p->place, i + 2), more, up);
  }
  pv_t* two = PESTLE_MUL(s, p->z, pestle_step_plus(s, p->z, 1));
  return pestle_step_select(
      s, p->low, pestle_step_select(s, IS(EQ, p->place, 0), two, p->z), up);
}

static pv_t* lgamma_above(pestle_steps_t* s, pv_t* z) {
  place_t p = place_of(s, z);
  pv_t* log = OP1(LOG, pestle_step_select(s, p.far, z, product(s, &p)));
  pv_t* near =
      series(s, p.rest, lgamma_near, terms(s, 13, COUNT(lgamma_near)), false);
  near = PESTLE_MUL(s, near, p.rest);
  near =
      PESTLE_ADD(s, near, pestle_step_select(s, p.low, OP1(NEGATE, log), log));
  pv_t* inverse = PESTLE_DIV(s, NUMBER(z, 1), z);
  pv_t* square = PESTLE_MUL(s, inverse, inverse);
  pv_t* tail =
      series(s, square, lgamma_far, terms(s, 3, COUNT(lgamma_far)), false);
  tail = pestle_step_plus(s, PESTLE_MUL(s, tail, inverse), STIRLING);
  pv_t* far =
      PESTLE_MUL(s, pestle_step_plus(s, z, -0.5), pestle_step_plus(s, log, -1));
  return pestle_step_select(s, p.far, PESTLE_ADD(s, far, tail), near);
}

// The sum of 1 / (z - i), by one quotient; or 1 / z; or 1 / z + 1 / (z + 1).
static pv_t* quotients(pestle_steps_t* s, const place_t* p) {
  pv_t *above = NUMBER(p->z, 0), *below = NUMBER(p->z, 1);
  for (int i = 1; i <= FAR - 2; ++i) {
    pv_t* factor = pestle_step_plus(s, p->z, -i);
    pv_t* used = IS(GE, p->place, i + 2);
    pv_t* sum = PESTLE_ADD(s, PESTLE_MUL(s, above, factor), below);
    above = pestle_step_select(s, used, sum, above);
    below = pestle_step_select(s, used, PESTLE_MUL(s, below, factor), below);
  }
  pv_t* none = IS(EQ, p->place, 0);
  pv_t* one = NUMBER(p->z, 1);
  pv_t* more = pestle_step_plus(s, p->z, 1);
  pv_t* both = PESTLE_MUL(s, p->z, more);
  pv_t* sum = PESTLE_ADD(s, p->z, more);
  above = pestle_step_select(s, p->low, pestle_step_select(s, none, sum, one),
                             above);
  below = pestle_step_select(s, p->low, pestle_step_select(s, none, both, p->z),
                             below);
  return PESTLE_DIV(s, above, below);
}

static pv_t* digamma_above(pestle_steps_t* s, pv_t* z) {
  place_t p = place_of(s, z);
  pv_t* near =
      series(s, p.rest, lgamma_near, terms(s, 14, COUNT(lgamma_near)), true);
  pv_t* sum = quotients(s, &p);
  near =
      PESTLE_ADD(s, near, pestle_step_select(s, p.low, OP1(NEGATE, sum), sum));
  pv_t* inverse = PESTLE_DIV(s, NUMBER(z, 1), z);
  pv_t* square = PESTLE_MUL(s, inverse, inverse);
  pv_t* tail =
      series(s, square, digamma_far, terms(s, 3, COUNT(digamma_far)), false);
  tail = PESTLE_ADD(s, pestle_step_times(s, inverse, 0.5),
                    PESTLE_MUL(s, tail, square));
  pv_t* far = PESTLE_SUB(s, OP1(LOG, z), tail);
  return pestle_step_select(s, p.far, far, near);
}

// --- Everywhere ---

// 1 - x where |x| is below 0, else x.
static pv_t* reflected(pestle_steps_t* s, pv_t* below, pv_t* x) {
  return pestle_step_select(s, below, PESTLE_SUB(s, NUMBER(x, 1), x), x);
}

// gamma(x) gamma(1 - x) = pi / sin(pi x)
pv_t* pestle_chlo_lgamma(pestle_steps_t* s, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* below = IS(LT, x, 0);
  pv_t* y = lgamma_above(s, reflected(s, below, x));
  pv_t* size = OP1(ABS, x);
  pv_t* part = PESTLE_SUB(s, size, OP1(FLOOR, size));
  part = OP2(MINIMUM, part, PESTLE_SUB(s, NUMBER(x, 1), part));
  pv_t* sine = OP1(LOG, OP1(SINE, pestle_step_times(s, part, PI)));
  pv_t* mirrored =
      OP1(NEGATE, pestle_step_plus(s, PESTLE_ADD(s, sine, y), -LOG_PI));
  y = pestle_step_select(s, below, mirrored, y);
  pv_t* pole = BOTH(below, is_whole(s, x));
  return choose_number(s, pole, (double)INFINITY, y);
}

// digamma(1 - x) - digamma(x) = pi cot(pi x)
pv_t* pestle_chlo_digamma(pestle_steps_t* s, pv_t* const* operands) {
  pv_t* x = operands[0];
  pv_t* below = IS(LT, x, 0);
  pv_t* y = digamma_above(s, reflected(s, below, x));
  pv_t* part = PESTLE_SUB(s, x, OP1(ROUND_EVEN, x));
  pv_t* tangent = OP1(TAN, pestle_step_times(s, part, PI));
  pv_t* cotangent = PESTLE_DIV(s, NUMBER(x, PI), tangent);
  y = pestle_step_select(s, below, PESTLE_SUB(s, y, cotangent), y);
  pv_t* pole = BOTH(IS(LE, x, 0), is_whole(s, x));
  return choose_number(s, pole, (double)NAN, y);
}

// --- Zeta ---

// Of order |x| what lies behind the terms before |a|, whose power a^-x is |power|.
static pv_t* zeta_rest(pestle_steps_t* s, pv_t* x, pv_t* a, pv_t* power) {
  pv_t* whole = PESTLE_DIV(s, a, pestle_step_plus(s, x, -1));
  pv_t* square = PESTLE_DIV(s, NUMBER(a, 1), PESTLE_MUL(s, a, a));
  size_t count = terms(s, 6, COUNT(zeta_tail));
  // c0 x/a (1 + ..), where one more term brings (x + 2i + 1) (x + 2i + 2) / a^2.
  pv_t* sum = NULL;
  for (size_t i = count; i-- > 0;) {
    if (sum) {
      double k = 2 * (double)i;
      pv_t* factor =
          PESTLE_MUL(s, pestle_step_plus(s, x, k + 1),
                     PESTLE_MUL(s, pestle_step_plus(s, x, k + 2), square));
      sum = pestle_step_plus(s, PESTLE_MUL(s, sum, factor), zeta_tail[i]);
    } else {
      sum = NUMBER(x, zeta_tail[i]);
    }
  }
  sum = PESTLE_MUL(s, sum, PESTLE_DIV(s, x, a));
  sum = pestle_step_plus(s, PESTLE_ADD(s, sum, whole), 0.5);
  return PESTLE_MUL(s, sum, power);
}

// What is no sum: x is 1, below it, or a term is 1 / 0 or a root of less than 0.
static pv_t* zeta_outside(pestle_steps_t* s, pv_t* x, pv_t* q, pv_t* y) {
  pv_t* half = pestle_step_times(s, x, 0.5);
  pv_t* even = is_whole(s, half);
  pv_t* pole = BOTH(IS(LE, q, 0), is_whole(s, q));
  pv_t* root = BOTH(IS(LE, q, 0), OP1(NOT, is_whole(s, x)));
  y = choose_number(s, OP2(OR, root, IS(LT, x, 1)), (double)NAN, y);
  pv_t* at = choose_number(s, even, (double)INFINITY, NUMBER(y, (double)NAN));
  y = pestle_step_select(s, pole, at, y);
  return choose_number(s, IS(EQ, x, 1), (double)INFINITY, y);
}

pv_t* pestle_chlo_zeta(pestle_steps_t* s, pv_t* const* operands) {
  pv_t *x = operands[0], *q = operands[1];
  pv_t* minus = OP1(NEGATE, x);
  pv_t *sum = NULL, *power = NULL, *a = q;
  for (int i = 0; i < ZETA_TERMS; ++i) {
    a = i ? pestle_step_plus(s, q, i) : q;
    power = OP2(POWER, a, minus);
    sum = sum ? PESTLE_ADD(s, sum, power) : power;
  }
  a = pestle_step_plus(s, q, ZETA_TERMS);
  pv_t* next = OP2(POWER, a, minus);
  pv_t* rest = zeta_rest(s, x, a, next);
  // Large orders overflow in the rest, which then adds nothing.
  double least = s->compute == PESTLE_F64 ? 0x1p-53 : 0x1p-24;
  pv_t* enough =
      OP2(LT, OP1(ABS, power), pestle_step_times(s, OP1(ABS, sum), least));
  pv_t* y = pestle_step_select(s, enough, sum, PESTLE_ADD(s, sum, rest));
  return zeta_outside(s, x, q, y);
}

// (-1)^(n + 1) n! zeta(n + 1, x), digamma for n = 0.
pv_t* pestle_chlo_polygamma(pestle_steps_t* s, pv_t* const* operands) {
  pv_t* n = operands[0];
  pv_t* zeta[2] = {pestle_step_plus(s, n, 1), operands[1]};
  pv_t* y = OP1(EXP, pestle_chlo_lgamma(s, zeta));
  y = PESTLE_MUL(s, y, pestle_chlo_zeta(s, zeta));
  y = pestle_step_select(s, is_whole(s, pestle_step_times(s, n, 0.5)),
                         OP1(NEGATE, y), y);
  y = pestle_step_select(s, IS(EQ, n, 0), pestle_chlo_digamma(s, operands + 1),
                         y);
  pv_t* right = BOTH(IS(GE, n, 0), is_whole(s, n));
  return choose_number(s, OP1(NOT, right), (double)NAN, y);
}
