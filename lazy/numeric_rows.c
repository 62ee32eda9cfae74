// SPDX-License-Identifier: Apache-2.0
// What each row of numeric.def computes, as formulas of scalars.
#include "lazy/numeric.h"

#include <math.h>

#define K(a, value) pestle_f_splat(f, a, value)
#define TWO(op, a, b) pestle_f_binary(f, PESTLE_OP_##op, a, b)
#define ONE(op, a) pestle_f_unary(f, PESTLE_OP_##op, a)

static pv_t* is_infinite(pestle_formula_t* f, pv_t* a);
static pv_t* is_finite(pestle_formula_t* f, pv_t* a);

static unsigned kind_of(const pv_t* a) {
  return pestle_dtype_info(a->type->dtype)->kind;
}
static bool is_float(const pv_t* a) {
  return kind_of(a) == PESTLE_KIND_FLOAT;
}
static bool is_complex(const pv_t* a) {
  return kind_of(a) == PESTLE_KIND_COMPLEX;
}

static pv_t* select(pestle_formula_t* f, pv_t* c, pv_t* a, pv_t* b) {
  return pestle_f_ternary(f, PESTLE_OP_SELECT, c, a, b);
}
static pv_t* truth(pestle_formula_t* f, const pv_t* like, bool value) {
  pestle_type_t type = *like->type;
  type.dtype = PESTLE_I1;
  return pestle_f_number(f, &type, value);
}
static pv_t* part(pestle_formula_t* f, pestle_op_t op, pv_t* a) {
  return pestle_f_make(f, op, &a, 1, NULL, 0, NULL);
}
static pv_t* join(pestle_formula_t* f, pv_t* real, pv_t* imag) {
  return pestle_f_make(f, PESTLE_OP_COMPLEX, (pv_t*[]){real, imag}, 2, NULL, 0,
                       NULL);
}

// --- Signs and sizes ---

static pv_t* sign_bit(pestle_formula_t* f, pv_t* a) {
  if (!a) return NULL;
  if (!is_float(a)) {
    return kind_of(a) == PESTLE_KIND_SIGNED ? TWO(LT, a, K(a, 0))
                                            : truth(f, a, false);
  }
  unsigned bits = pestle_dtype_info(a->type->dtype)->bits;
  pv_t* number = pestle_f_bitcast(f, a, pestle_dtype_unsigned(bits));
  if (!number) return NULL;
  const pestle_float_format_t* format = pestle_float_format(a->type->dtype);
  return TWO(GE, number, pestle_f_bits(f, number->type, format->sign));
}

static pv_t* make_signbit(pestle_formula_t* f, pv_t* const* x) {
  return sign_bit(f, x[0]);
}

// The size of |a| with the sign of |b|.
static pv_t* with_sign(pestle_formula_t* f, pv_t* a, pv_t* b) {
  pv_t* size = ONE(ABS, a);
  pv_t* opposite = ONE(NEGATE, size);
  pv_t* is_negative = sign_bit(f, b);
  return select(f, is_negative, opposite, size);
}

static pv_t* make_copysign(pestle_formula_t* f, pv_t* const* x) {
  return with_sign(f, x[0], x[1]);
}

static pv_t* make_abs(pestle_formula_t* f, pv_t* const* x) {
  return ONE(ABS, x[0]);
}

// That of 0 is 0 without a sign.
static pv_t* make_sign(pestle_formula_t* f, pv_t* const* x) {
  pv_t* y = ONE(SIGN, x[0]);
  if (!is_complex(x[0]) && !is_float(x[0])) return y;
  pv_t* zero = K(x[0], 0);
  return select(f, TWO(EQ, x[0], zero), zero, y);
}

static pv_t* make_same(pestle_formula_t* f, pv_t* const* x) {
  (void)f;
  return x[0];
}

static pv_t* make_right_shift(pestle_formula_t* f, pv_t* const* x) {
  return kind_of(x[0]) == PESTLE_KIND_SIGNED
             ? TWO(SHIFT_RIGHT_ARITHMETIC, x[0], x[1])
             : TWO(SHIFT_RIGHT_LOGICAL, x[0], x[1]);
}

// --- Parts of complex numbers ---

static pv_t* make_real(pestle_formula_t* f, pv_t* const* x) {
  return is_complex(x[0]) ? part(f, PESTLE_OP_REAL, x[0]) : x[0];
}

static pv_t* make_imag(pestle_formula_t* f, pv_t* const* x) {
  return is_complex(x[0]) ? part(f, PESTLE_OP_IMAG, x[0]) : K(x[0], 0);
}

static pv_t* make_conj(pestle_formula_t* f, pv_t* const* x) {
  if (!is_complex(x[0])) return x[0];
  pv_t* real = make_real(f, x);
  pv_t* imag = ONE(NEGATE, make_imag(f, x));
  return join(f, real, imag);
}

// Of both zeros 0, with the sign of the imaginary part alone.
static pv_t* make_expm1(pestle_formula_t* f, pv_t* const* x) {
  pv_t* y = ONE(EXPM1, x[0]);
  if (!is_complex(x[0])) return y;
  pv_t* imag = make_imag(f, x);
  pv_t* zero = imag ? join(f, K(imag, 0), imag) : NULL;
  return select(f, TWO(EQ, x[0], K(x[0], 0)), zero, y);
}

// At infinity the sign of the imaginary part stays, as the standard has it: C's has
// that of sin(2 y).
static pv_t* make_tanh(pestle_formula_t* f, pv_t* const* x) {
  pv_t* y = ONE(TANH, x[0]);
  if (!is_complex(x[0])) return y;
  pv_t* real = make_real(f, x);
  pv_t* imag = make_imag(f, x);
  if (!real || !imag) return NULL;
  pv_t* limit = with_sign(f, K(real, 1), real);
  limit = join(f, limit, with_sign(f, K(imag, 0), imag));
  pv_t* level = is_finite(f, imag);
  pv_t* far = TWO(AND, is_infinite(f, real), level);
  return select(f, far, limit, y);
}

static pv_t* make_angle(pestle_formula_t* f, pv_t* const* x) {
  pv_t* real = make_real(f, x);
  pv_t* imag = make_imag(f, x);
  return TWO(ATAN2, imag, real);
}

static pv_t* round_part(pestle_formula_t* f, pv_t* a) {
  return ONE(ROUND_EVEN, a);
}

static pv_t* make_round(pestle_formula_t* f, pv_t* const* x) {
  if (is_float(x[0])) return round_part(f, x[0]);
  if (!is_complex(x[0])) return x[0];
  pv_t* real = round_part(f, make_real(f, x));
  pv_t* imag = round_part(f, make_imag(f, x));
  return join(f, real, imag);
}

// --- Classes. A complex number is finite when both parts are ---

static pv_t* is_nan(pestle_formula_t* f, pv_t* a) {
  return is_float(a) ? ONE(IS_NAN, a) : truth(f, a, false);
}
static pv_t* is_finite(pestle_formula_t* f, pv_t* a) {
  return is_float(a) ? ONE(IS_FINITE, a) : truth(f, a, true);
}
static pv_t* is_infinite(pestle_formula_t* f, pv_t* a) {
  if (!is_float(a)) return truth(f, a, false);
  pv_t* finite = is_finite(f, a);
  pv_t* other = TWO(OR, ONE(IS_NAN, a), finite);
  return ONE(NOT, other);
}

static pv_t* of_parts(pestle_formula_t* f, pv_t* const* x,
                      pv_t* (*test)(pestle_formula_t* f, pv_t* a),
                      pestle_op_t op) {
  if (!is_complex(x[0])) return test(f, x[0]);
  pv_t* real = make_real(f, x);
  if (!real) return NULL;
  pv_t* first = test(f, real);
  pv_t* imag = make_imag(f, x);
  return imag ? pestle_f_binary(f, op, first, test(f, imag)) : NULL;
}

static pv_t* make_isnan(pestle_formula_t* f, pv_t* const* x) {
  return of_parts(f, x, is_nan, PESTLE_OP_OR);
}
static pv_t* make_isinf(pestle_formula_t* f, pv_t* const* x) {
  return of_parts(f, x, is_infinite, PESTLE_OP_OR);
}
static pv_t* make_isfinite(pestle_formula_t* f, pv_t* const* x) {
  return of_parts(f, x, is_finite, PESTLE_OP_AND);
}

// --- Division that rounds down ---

// Whether the signs of |a| and |b| are not the same.
static pv_t* signs_differ(pestle_formula_t* f, pv_t* a, pv_t* b, pv_t* zero) {
  pv_t* below = TWO(LT, b, zero);
  return TWO(XOR, TWO(LT, a, zero), below);
}

// |a|, and where it is 0 the zero of |b|'s sign, by sums alone: the slope is 1.
static pv_t* with_zero_of(pestle_formula_t* f, pv_t* a, pv_t* b) {
  pv_t* zero = K(a, 0);
  pv_t* positive = TWO(ADD, a, zero);
  pv_t* negative = ONE(NEGATE, TWO(SUBTRACT, zero, a));
  return select(f, sign_bit(f, b), negative, positive);
}

// fmod(a, b), and b more where that is other than 0 and of another sign than b.
static pv_t* make_remainder(pestle_formula_t* f, pv_t* const* x) {
  pv_t *a = x[0], *b = x[1];
  pv_t* rest = TWO(REMAINDER, a, b);
  if (kind_of(a) == PESTLE_KIND_UNSIGNED || !rest) return rest;
  pv_t* zero = K(a, 0);
  pv_t* differs = signs_differ(f, rest, b, zero);
  pv_t* more = TWO(AND, TWO(NE, rest, zero), differs);
  pv_t* sum = TWO(ADD, rest, b);
  return select(f, more, sum, is_float(a) ? with_zero_of(f, rest, b) : rest);
}

static pv_t* divide_integers(pestle_formula_t* f, pv_t* a, pv_t* b) {
  pv_t* y = TWO(DIVIDE, a, b);
  if (kind_of(a) == PESTLE_KIND_UNSIGNED || !y) return y;
  pv_t* zero = K(a, 0);
  pv_t* rest = TWO(SUBTRACT, a, TWO(MULTIPLY, y, b));
  pv_t* differs = signs_differ(f, rest, b, zero);
  pv_t* less = TWO(AND, TWO(NE, rest, zero), differs);
  return select(f, less, TWO(SUBTRACT, y, K(a, 1)), y);
}

// (a - remainder) / b is an integer but for rounding: the nearest one is it. Where
// there is none, with infinities, NaN and division by 0, the quotient rounded down.
static pv_t* make_floor_divide(pestle_formula_t* f, pv_t* const* x) {
  pv_t *a = x[0], *b = x[1];
  if (!is_float(a)) return divide_integers(f, a, b);
  pv_t* quotient = TWO(DIVIDE, a, b);
  pv_t* whole = TWO(DIVIDE, TWO(SUBTRACT, a, make_remainder(f, x)), b);
  pv_t* y = ONE(ROUND_EVEN, whole);
  pv_t* zero = K(a, 0);
  pv_t* none = with_sign(f, zero, quotient);
  y = select(f, TWO(EQ, y, zero), none, y);
  pv_t* plain = ONE(IS_FINITE, quotient);
  plain = TWO(AND, ONE(IS_FINITE, b), plain);
  return select(f, plain, y, ONE(FLOOR, quotient));
}

// --- Roots and logarithms ---

static pv_t* make_square(pestle_formula_t* f, pv_t* const* x) {
  return kind_of(x[0]) == PESTLE_KIND_BOOL ? x[0] : TWO(MULTIPLY, x[0], x[0]);
}

static pv_t* make_reciprocal(pestle_formula_t* f, pv_t* const* x) {
  return TWO(DIVIDE, K(x[0], 1), x[0]);
}

// The larger one of |a| and |b|, then the smaller one; the first of equal ones is the
// larger. A smooth function of both has all its derivatives at equal ones too, which
// means of both sides, as maximum has them, would not give.
static void order_pair(pestle_formula_t* f, pv_t* a, pv_t* b, pv_t* pair[2]) {
  pv_t* is_second = TWO(LT, a, b);
  pair[0] = select(f, is_second, b, a);
  pair[1] = select(f, is_second, a, b);
}

// The larger size times the root of 1 and the square of their ratio. Of zeros the
// slopes are maximum's.
static pv_t* make_hypot(pestle_formula_t* f, pv_t* const* x) {
  pv_t *a = ONE(ABS, x[0]), *b = ONE(ABS, x[1]), *pair[2];
  order_pair(f, a, b, pair);
  pv_t* one = K(x[0], 1);
  pv_t* is_zero = TWO(EQ, pair[0], K(x[0], 0));
  pv_t* ratio = TWO(DIVIDE, pair[1], select(f, is_zero, one, pair[0]));
  pv_t* root = ONE(SQRT, TWO(ADD, TWO(MULTIPLY, ratio, ratio), one));
  pv_t* y = TWO(MULTIPLY, pair[0], root);
  y = select(f, is_zero, TWO(MAXIMUM, a, b), y);
  pv_t* infinity = K(x[0], HUGE_VAL);
  pv_t* endless = TWO(EQ, b, infinity);
  endless = TWO(OR, TWO(EQ, a, infinity), endless);
  return select(f, endless, infinity, y);
}

// |a| without a slope, for a small difference of larger numbers, whose last bit is 0.
static pv_t* without_slope(pestle_formula_t* f, pv_t* a) {
  if (!a) return NULL;
  pestle_dtype_t dtype = a->type->dtype;
  unsigned width = pestle_dtype_info(dtype)->bits;
  pv_t* bits = pestle_f_bitcast(f, a, pestle_dtype_unsigned(width));
  if (!bits) return NULL;
  uint64_t all_but_last = (UINT64_MAX >> (64 - width)) - 1;
  bits = TWO(AND, bits, pestle_f_bits(f, bits->type, all_but_last));
  return pestle_f_bitcast(f, bits, dtype);
}

// log(x) * factor, but the whole number where power(base, that) is x: what is missing to
// it is added, so that the slope stays. Subnormal numbers have too few bits for that:
// many lie at a power of 10 that are none.
static pv_t* log_to(pestle_formula_t* f, pv_t* x, double base) {
  pv_t* y = ONE(LOG, x);
  y = y ? TWO(MULTIPLY, y, K(x, 1 / log(base))) : NULL;
  if (!y || !is_float(x)) return y;
  pv_t* whole = ONE(ROUND_EVEN, y);
  pv_t* back = TWO(POWER, K(x, base), whole);
  const pestle_float_format_t* format = pestle_float_format(x->type->dtype);
  pv_t* normal = TWO(GE, x, K(x, ldexp(1, 1 - format->bias)));
  normal = TWO(AND, normal, is_finite(f, x));
  pv_t* exact = TWO(AND, TWO(EQ, back, x), normal);
  pv_t* missing = without_slope(f, TWO(SUBTRACT, whole, y));
  return TWO(ADD, y, select(f, exact, missing, K(x, 0)));
}

static pv_t* make_log2(pestle_formula_t* f, pv_t* const* x) {
  return log_to(f, x[0], 2);
}
static pv_t* make_log10(pestle_formula_t* f, pv_t* const* x) {
  return log_to(f, x[0], 10);
}

// The larger one and log(1 + exp(smaller - larger)), whose difference is 0 of equal
// infinities.
static pv_t* make_logaddexp(pestle_formula_t* f, pv_t* const* x) {
  pv_t *a = x[0], *pair[2];
  order_pair(f, a, x[1], pair);
  pv_t* same = TWO(EQ, a, x[1]);
  pv_t* infinite = is_infinite(f, a);
  same = TWO(AND, same, infinite);
  pv_t* rest = TWO(SUBTRACT, pair[1], pair[0]);
  rest = select(f, same, K(a, 0), rest);
  return TWO(ADD, pair[0], ONE(LOG1P, ONE(EXP, rest)));
}

// --- The table ---

static pv_t* by_chlo(pestle_formula_t* f, const char* name, pv_t* const* x,
                     size_t count) {
  pv_t* y = NULL;
  const pestle_chlo_row_t* row = pestle_chlo_find(pestle_str(name));
  if (!f->status) {
    f->status = pestle_chlo_build(&f->builder, row, x, count, &y);
  }
  return y;
}

static pv_t* by_op(pestle_formula_t* f, pestle_op_t op, pv_t* const* x,
                   size_t count) {
  return pestle_f_make(f, op, x, count, NULL, 0, NULL);
}

pv_t* pestle_numeric_formula(pestle_formula_t* f, pestle_numeric_t fn,
                             pv_t* const* x, size_t count) {
#define OP(X) by_op(f, PESTLE_OP_##X, x, count)
#define FLOATS(X) (is_float(x[0]) ? by_op(f, PESTLE_OP_##X, x, count) : x[0])
#define CHLO(y) by_chlo(f, "chlo." #y, x, count)
#define BY(y) make_##y(f, x)
#define PESTLE_NUMERIC(NAME, name, n, TO, KINDS, RULE, means) \
  case PESTLE_NUMERIC_##NAME:                                 \
    return RULE;
  switch (fn) {
#include "pestle/numeric.def"
    case PESTLE_NUMERIC_COUNT:
      break;
  }
#undef OP
#undef FLOATS
#undef CHLO
#undef BY
  return NULL;
}

enum { SAME_ = PESTLE_NUMERIC_NO_OP + 1 };

// The op of a row; SAME_ where its result is its operand.
static int op_of(pestle_numeric_t fn, unsigned kind) {
#define OP(X) PESTLE_OP_##X
#define FLOATS(X) (kind == PESTLE_KIND_FLOAT ? (int)PESTLE_OP_##X : SAME_)
#define CHLO(y) PESTLE_NUMERIC_NO_OP
#define BY(y) PESTLE_NUMERIC_NO_OP
#define PESTLE_NUMERIC(NAME, name, n, TO, KINDS, RULE, means) \
  case PESTLE_NUMERIC_##NAME:                                 \
    return RULE;
  switch (fn) {
#include "pestle/numeric.def"
    case PESTLE_NUMERIC_COUNT:
      break;
  }
#undef OP
#undef FLOATS
#undef CHLO
#undef BY
  return PESTLE_NUMERIC_NO_OP;
}

bool pestle_numeric_is_same(pestle_numeric_t fn, pestle_dtype_t dtype) {
  unsigned kind = pestle_dtype_info(dtype)->kind;
  bool plain = kind == PESTLE_KIND_BOOL || kind == PESTLE_KIND_UNSIGNED;
  if (op_of(fn, kind) == SAME_ || fn == PESTLE_NUMERIC_POSITIVE) return true;
  if (fn == PESTLE_NUMERIC_ABS) return plain;
  if (fn == PESTLE_NUMERIC_ROUND) {
    return !(kind & (PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX));
  }
  return (fn == PESTLE_NUMERIC_REAL || fn == PESTLE_NUMERIC_CONJ) &&
         kind != PESTLE_KIND_COMPLEX;
}

int pestle_numeric_op(pestle_numeric_t fn, pestle_dtype_t dtype) {
  int op = op_of(fn, pestle_dtype_info(dtype)->kind);
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    if (fn == PESTLE_NUMERIC_ISNAN) return PESTLE_OP_IS_NAN;
    if (fn == PESTLE_NUMERIC_ISFINITE) return PESTLE_OP_IS_FINITE;
    if (fn == PESTLE_NUMERIC_ABS) return PESTLE_OP_ABS;
    if (fn == PESTLE_NUMERIC_ROUND) return PESTLE_OP_ROUND_EVEN;
    if (fn == PESTLE_NUMERIC_EXPM1) return PESTLE_OP_EXPM1;
    if (fn == PESTLE_NUMERIC_TANH) return PESTLE_OP_TANH;
  }
  return op < PESTLE_NUMERIC_NO_OP ? op : PESTLE_NUMERIC_NO_OP;
}
