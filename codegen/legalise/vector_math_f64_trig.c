// SPDX-License-Identifier: Apache-2.0
// sine, cosine, tan and atan2 in f64.
//
// The angle is reduced to a pair r in [-pi/4, pi/4] and a quadrant. Below 2^30
// by Cody and Waite with pi/2 in three parts: the first step is exact, the
// second keeps what it loses. From there on by Payne and Hanek: with |x| =
// M 2^E, the 192 bits of 2/pi from E - 1 on times M, of which the top 128 are
// taken; a double is no nearer to a multiple of pi/2 than 2^-62. That part
// stands in an `if` that is taken when a lane needs it. Its window of 2/pi comes
// out of all bits by five levels of selects, as a barrel shifter does it: a
// kernel has no table to look into.
#include "codegen/legalise/vector_math_f64.h"
#include "codegen/legalise/vector_math_f64_poly.h"

#define TWO_OVER_PI 0x1.45f306dc9c883p-1
#define HALF_PI 0x1.921fb54442d18p+0
#define HALF_PI_MIDDLE 0x1.1a62633145c07p-54
#define HALF_PI_LOW -0x1.f1976b7ed8fbcp-110
#define LARGE 0x1p+30
#define TAN_EIGHTH 0x1.a827999fcef32p-2

typedef struct angle_t {
  vm_pair_t r;
  vm_id_t quadrant;  // i64, the low two bits
} angle_t;

// --- Large arguments ---

static vm_id_t test_bit(vm_t u, vm_id_t value, int64_t bit) {
  vm_id_t masked = vm_op2i(u, PESTLE_OP_AND, value, bit);
  return vm_op2i(u, PESTLE_OP_NE, masked, 0);
}

enum { PI_WORDS = sizeof(two_over_pi_words) / sizeof(*two_over_pi_words) };

// Six words of 32 bits of 2/pi from bit |offset| of the table on.
static void pi_window(vm_t u, vm_id_t offset, vm_id_t w[6]) {
  vm_id_t t[PI_WORDS];
  unsigned count = PI_WORDS;
  for (unsigned i = 0; i < count; ++i)
    t[i] = vm_int(u, two_over_pi_words[i]);
  for (unsigned step = 16; step; step /= 2) {
    vm_id_t by = test_bit(u, offset, (int64_t)step * 32);
    count -= step;
    for (unsigned i = 0; i < count; ++i)
      t[i] = vm_select(u, by, t[i + step], t[i]);
  }
  vm_id_t shift = vm_op2i(u, PESTLE_OP_AND, offset, 31);
  for (unsigned i = 0; i < 6; ++i) {
    vm_id_t both = vm_op2i(u, PESTLE_OP_SHIFT_LEFT, t[i], 32);
    both = vm_op2(u, PESTLE_OP_OR, both, t[i + 1]);
    both = vm_op2(u, PESTLE_OP_SHIFT_LEFT, both, shift);
    w[i] = vm_op2i(u, PESTLE_OP_SHIFT_RIGHT_LOGICAL, both, 32);
  }
}

static vm_id_t low_word(vm_t u, vm_id_t a) {
  return vm_op2i(u, PESTLE_OP_AND, a, 0xffffffff);
}
static vm_id_t high_word(vm_t u, vm_id_t a) {
  return vm_op2i(u, PESTLE_OP_SHIFT_RIGHT_LOGICAL, a, 32);
}

typedef struct wide_t {
  vm_id_t high, low;  // u64
} wide_t;

// The top 128 of the low 192 bits of (|m1| 2^32 + |m0|) * |w|, but for the
// carries of what is left out. Columns of 32 bits, the lowest first.
static wide_t multiply_window(vm_t u, vm_id_t m0, vm_id_t m1,
                              const vm_id_t w[6]) {
  vm_id_t column[4], carry, p, q;
  p = vm_mul(u, m0, w[4]);
  p = high_word(u, p);
  q = vm_mul(u, m1, w[5]);
  q = high_word(u, q);
  carry = vm_add(u, p, q);
  for (unsigned c = 0; c < 4; ++c) {
    p = vm_mul(u, m0, w[3 - c]);
    q = vm_mul(u, m1, w[4 - c]);
    vm_id_t low = low_word(u, p), other = low_word(u, q);
    column[c] = vm_add(u, carry, low);
    column[c] = vm_add(u, column[c], other);
    carry = high_word(u, column[c]);
    p = high_word(u, p);
    carry = vm_add(u, carry, p);
    q = high_word(u, q);
    carry = vm_add(u, carry, q);
    column[c] = low_word(u, column[c]);
  }
  wide_t r;
  r.high = vm_op2i(u, PESTLE_OP_SHIFT_LEFT, column[3], 32);
  r.high = vm_op2(u, PESTLE_OP_OR, r.high, column[2]);
  r.low = vm_op2i(u, PESTLE_OP_SHIFT_LEFT, column[1], 32);
  r.low = vm_op2(u, PESTLE_OP_OR, r.low, column[0]);
  return r;
}

// |high| 2^-62 + |low| 2^-126 quarter turns, |high| signed, as an angle.
static vm_pair_t to_angle(vm_t d, vm_id_t high, vm_id_t low) {
  vm_t s = vm_as(d, PESTLE_I64), u = vm_as(d, PESTLE_U64);
  vm_id_t h = vm_cast(s, high, PESTLE_F64);
  vm_id_t back = vm_cast(d, h, PESTLE_I64);
  vm_id_t lost = vm_sub(s, high, back);
  lost = vm_cast(s, lost, PESTLE_F64);
  vm_id_t l = vm_cast(u, low, PESTLE_F64);
  l = vm_scale_add(d, l, 0x1p-64, lost);
  vm_pair_t turns = vm_pair_sum(d, h, l);
  vm_id_t scale = vm_const(d, HALF_PI * 0x1p-62);
  vm_pair_t r = vm_pair_product(d, turns.hi, scale);
  r.lo = vm_scale_add(d, turns.hi, HALF_PI_MIDDLE * 0x1p-62, r.lo);
  r.lo = vm_fma(d, turns.lo, scale, r.lo);
  return vm_pair_sum(d, r.hi, r.lo);
}

static angle_t reduce_large(vm_t d, vm_id_t x) {
  vm_t u = vm_as(d, PESTLE_U64), s = vm_as(d, PESTLE_I64);
  vm_id_t w[6];
  vm_id_t bits = vm_bits(d, x, PESTLE_U64);
  vm_id_t exponent = vm_op2i(u, PESTLE_OP_SHIFT_RIGHT_LOGICAL, bits, 52);
  exponent = vm_op2i(u, PESTLE_OP_AND, exponent, 0x7ff);
  // E - 2, behind the table's 32 zeros.
  vm_id_t offset = vm_op2i(u, PESTLE_OP_SUBTRACT, exponent, 1075 + 2 - 32);
  pi_window(u, offset, w);
  vm_id_t m1 = vm_op2i(u, PESTLE_OP_AND, bits, (INT64_C(1) << 52) - 1);
  m1 = vm_op2i(u, PESTLE_OP_OR, m1, INT64_C(1) << 52);
  vm_id_t m0 = low_word(u, m1);
  m1 = high_word(u, m1);
  wide_t p = multiply_window(u, m0, m1, w);
  vm_id_t n = vm_op2i(u, PESTLE_OP_ADD, p.high, INT64_C(1) << 61);
  n = vm_op2i(u, PESTLE_OP_SHIFT_RIGHT_LOGICAL, n, 62);
  vm_id_t whole = vm_op2i(u, PESTLE_OP_SHIFT_LEFT, n, 62);
  vm_id_t rest = vm_sub(u, p.high, whole);
  rest = vm_cast(u, rest, PESTLE_I64);
  angle_t a;
  a.r = to_angle(d, rest, p.low);
  // |x| so far.
  n = vm_cast(u, n, PESTLE_I64);
  vm_id_t negative = vm_op2f(d, PESTLE_OP_LT, x, 0.0);
  vm_id_t minus = vm_neg(d, a.r.hi);
  a.r.hi = vm_select(d, negative, minus, a.r.hi);
  minus = vm_neg(d, a.r.lo);
  a.r.lo = vm_select(d, negative, minus, a.r.lo);
  minus = vm_neg(s, n);
  a.quadrant = vm_select(s, negative, minus, n);
  return a;
}

// --- Reduction ---

// Below LARGE.
static angle_t reduce_near(vm_t d, vm_id_t x) {
  angle_t a;
  vm_id_t scale = vm_const(d, TWO_OVER_PI);
  vm_id_t z = vm_fma_const(d, x, scale, VM_MAGIC);
  vm_id_t n = vm_op2f(d, PESTLE_OP_SUBTRACT, z, VM_MAGIC);
  // Exact: a multiple of 2^-53 below 1.
  vm_id_t r = vm_scale_add(d, n, -HALF_PI, x);
  vm_id_t middle = vm_const(d, HALF_PI_MIDDLE);
  vm_pair_t p = vm_pair_product(d, n, middle);
  // r - p.hi as a pair, whichever is larger.
  vm_id_t hi = vm_sub(d, r, p.hi);
  vm_id_t taken = vm_sub(d, hi, r);
  vm_id_t left = vm_sub(d, hi, taken);
  left = vm_sub(d, r, left);
  taken = vm_add(d, p.hi, taken);
  vm_id_t lo = vm_sub(d, left, taken);
  lo = vm_sub(d, lo, p.lo);
  lo = vm_scale_add(d, n, -HALF_PI_LOW, lo);
  a.r = vm_pair_sum(d, hi, lo);
  a.quadrant = vm_bits(d, z, PESTLE_I64);
  return a;
}

static angle_t reduce(vm_t d, vm_id_t x) {
  vm_t s = vm_as(d, PESTLE_I64);
  angle_t a = reduce_near(d, x);
  vm_id_t size = vm_abs(d, x);
  vm_id_t large = vm_op2f(d, PESTLE_OP_GE, size, LARGE);
  vm_id_t finite = vm_op2f(d, PESTLE_OP_LT, size, (double)INFINITY);
  large = vm_op2(d, PESTLE_OP_AND, large, finite);
  uint32_t hi = vm_tile(d, "angle", a.r.hi);
  uint32_t lo = vm_tile(d, "angle_rest", a.r.lo);
  uint32_t n = vm_tile(d, "quadrant", a.quadrant);
  vm_id_t any = pestle_kir_reduce(d.k, large, PESTLE_OP_OR);
  pestle_kir_if(d.k, any);
  angle_t far = reduce_large(d, x);
  vm_id_t value = vm_select(d, large, far.r.hi, a.r.hi);
  vm_tile_set(d, hi, value);
  value = vm_select(d, large, far.r.lo, a.r.lo);
  vm_tile_set(d, lo, value);
  value = vm_select(s, large, far.quadrant, a.quadrant);
  vm_tile_set(d, n, value);
  pestle_kir_end(d.k);
  a.r.hi = vm_tile_get(d, hi);
  a.r.lo = vm_tile_get(d, lo);
  a.quadrant = vm_tile_get(d, n);
  return a;
}

// --- sine, cosine, tan ---

// r + r s p(s), the second part beside the first.
static vm_pair_t sine_parts(vm_t d, vm_pair_t r, vm_id_t square) {
  vm_pair_t y;
  vm_id_t p = VM_POLY(d, square, poly_sin_full);
  vm_id_t cube = vm_mul(d, square, r.hi);
  y.hi = r.hi;
  y.lo = vm_fma(d, cube, p, r.lo);
  return y;
}

// 1 - s/2, rounded, and what that lost, s^2 p(s), and what r.lo changes.
static vm_pair_t cosine_parts(vm_t d, vm_pair_t r, vm_id_t square) {
  vm_pair_t y;
  vm_id_t p = VM_POLY(d, square, poly_cos_full);
  vm_id_t fourth = vm_mul(d, square, square);
  vm_id_t half = vm_op2f(d, PESTLE_OP_MULTIPLY, square, 0.5);
  vm_id_t one = vm_const(d, 1.0);
  y.hi = vm_sub(d, one, half);
  vm_id_t lost = vm_sub(d, one, y.hi);
  lost = vm_sub(d, lost, half);
  vm_id_t minus = vm_neg(d, r.hi);
  lost = vm_fma(d, minus, r.lo, lost);
  y.lo = vm_fma(d, fourth, p, lost);
  return y;
}

// sin(x + quarters * pi/2).
static vm_id_t turned_sine(vm_t d, vm_id_t x, int64_t quarters) {
  vm_t s = vm_as(d, PESTLE_I64);
  angle_t a = reduce(d, x);
  vm_id_t square = vm_mul(d, a.r.hi, a.r.hi);
  vm_pair_t sine = sine_parts(d, a.r, square);
  vm_pair_t cosine = cosine_parts(d, a.r, square);
  vm_id_t q = vm_op2i(s, PESTLE_OP_ADD, a.quadrant, quarters);
  vm_id_t odd = test_bit(s, q, 1);
  vm_id_t hi = vm_select(d, odd, cosine.hi, sine.hi);
  vm_id_t lo = vm_select(d, odd, cosine.lo, sine.lo);
  vm_id_t y = vm_add(d, hi, lo);
  // Bit 1 of the quadrant becomes the sign.
  vm_id_t sign = vm_op2i(s, PESTLE_OP_AND, q, 2);
  sign = vm_op2i(s, PESTLE_OP_SHIFT_LEFT, sign, 62);
  vm_id_t bits = vm_bits(d, y, PESTLE_I64);
  bits = vm_op2(s, PESTLE_OP_XOR, bits, sign);
  return vm_bits(s, bits, PESTLE_F64);
}

// Tiny angles are their own sine and tangent, -0 and denormals with them.
static vm_id_t unless_tiny(vm_t d, vm_id_t x, vm_id_t y) {
  vm_id_t size = vm_abs(d, x);
  vm_id_t tiny = vm_op2f(d, PESTLE_OP_LT, size, 0x1p-27);
  return vm_select(d, tiny, x, y);
}

vm_id_t pestle_vm_sine_f64(vm_t v, vm_id_t x) {
  vm_id_t y = turned_sine(v, x, 0);
  return unless_tiny(v, x, y);
}

vm_id_t pestle_vm_cosine_f64(vm_t v, vm_id_t x) {
  return turned_sine(v, x, 1);
}

// sin / cos, or -cos / sin in odd quadrants, of pairs: two rounded functions
// divided would be up to 3 ulp off.
vm_id_t pestle_vm_tan_f64(vm_t v, vm_id_t x) {
  vm_t s = vm_as(v, PESTLE_I64);
  angle_t a = reduce(v, x);
  vm_id_t square = vm_mul(v, a.r.hi, a.r.hi);
  vm_pair_t sine = sine_parts(v, a.r, square);
  vm_pair_t cosine = cosine_parts(v, a.r, square);
  sine = vm_pair_sum(v, sine.hi, sine.lo);
  cosine = vm_pair_sum(v, cosine.hi, cosine.lo);
  vm_id_t odd = test_bit(s, a.quadrant, 1);
  vm_pair_t above, below;
  vm_id_t minus = vm_neg(v, cosine.hi);
  above.hi = vm_select(v, odd, minus, sine.hi);
  minus = vm_neg(v, cosine.lo);
  above.lo = vm_select(v, odd, minus, sine.lo);
  below.hi = vm_select(v, odd, sine.hi, cosine.hi);
  below.lo = vm_select(v, odd, sine.lo, cosine.lo);
  vm_pair_t q = vm_pair_quotient(v, above, below);
  vm_id_t y = vm_add(v, q.hi, q.lo);
  return unless_tiny(v, x, y);
}

// --- atan2 ---

// atan of less / more in [0, 1] as a sum: above tan(pi/8) it is pi/4 more than
// that of (less - more) / (less + more), which *out_turned says. The quotient is
// a pair, or its three roundings would make up 2 ulp.
static vm_pair_t atan_ratio(vm_t v, vm_id_t less, vm_id_t more,
                            vm_id_t* out_turned) {
  vm_id_t bound = vm_op2f(v, PESTLE_OP_MULTIPLY, more, TAN_EIGHTH);
  vm_id_t turned = vm_op2(v, PESTLE_OP_GT, less, bound);
  vm_id_t zero = vm_const(v, 0.0);
  vm_id_t minus = vm_neg(v, more);
  vm_pair_t difference = vm_pair_sum(v, minus, less);
  vm_pair_t sum = vm_pair_sum(v, more, less);
  vm_pair_t above, below;
  above.hi = vm_select(v, turned, difference.hi, less);
  above.lo = vm_select(v, turned, difference.lo, zero);
  below.hi = vm_select(v, turned, sum.hi, more);
  below.lo = vm_select(v, turned, sum.lo, zero);
  vm_pair_t q = vm_pair_quotient(v, above, below);
  vm_id_t square = vm_mul(v, q.hi, q.hi);
  vm_id_t p = VM_POLY(v, square, poly_atan_full);
  p = vm_mul(v, p, square);
  q.lo = vm_fma(v, p, q.hi, q.lo);
  *out_turned = turned;
  return q;
}

// |yes| or |no|, both constants.
static vm_id_t pick(vm_t v, vm_id_t which, double yes, double no) {
  vm_id_t a = vm_const(v, yes);
  vm_id_t b = vm_const(v, no);
  return vm_select(v, which, a, b);
}

// The angle is a multiple of pi/4 plus or minus the ratio's: in [0, pi/4] for
// flat ones, from pi/2 down for steep ones, from pi down on the left.
vm_id_t pestle_vm_atan2_f64(vm_t v, vm_id_t y, vm_id_t x) {
  vm_t i = vm_as(v, PESTLE_I64);
  vm_id_t ax = vm_abs(v, x);
  vm_id_t ay = vm_abs(v, y);
  vm_id_t steep = vm_op2(v, PESTLE_OP_GT, ay, ax);
  vm_id_t more = vm_select(v, steep, ay, ax);
  vm_id_t less = vm_select(v, steep, ax, ay);
  // 0/0 is 0 here, less/inf is 0 and inf/inf is 1.
  vm_id_t at_zero = vm_op2f(v, PESTLE_OP_EQ, more, 0.0);
  vm_id_t far = vm_op2f(v, PESTLE_OP_EQ, more, (double)INFINITY);
  vm_id_t both = vm_op2f(v, PESTLE_OP_EQ, less, (double)INFINITY);
  vm_id_t one = vm_const(v, 1.0);
  vm_id_t zero = vm_const(v, 0.0);
  more = vm_select(v, at_zero, one, more);
  more = vm_select(v, far, one, more);
  less = vm_select(v, far, zero, less);
  less = vm_select(v, both, one, less);
  // Sums must not overflow, nor rests be denormal.
  vm_id_t huge = vm_op2f(v, PESTLE_OP_GT, more, 0x1p+1020);
  vm_id_t small = vm_op2f(v, PESTLE_OP_LT, more, 0x1p-900);
  vm_id_t scale = pick(v, huge, 0.25, 1.0);
  vm_id_t up = vm_const(v, 0x1p+200);
  scale = vm_select(v, small, up, scale);
  less = vm_mul(v, less, scale);
  more = vm_mul(v, more, scale);
  vm_id_t turned;
  vm_pair_t r = atan_ratio(v, less, more, &turned);
  vm_id_t bits = vm_bits(v, x, PESTLE_I64);
  vm_id_t left = vm_op2i(i, PESTLE_OP_LT, bits, 0);
  // pi/2 - or + for steep, pi - for flat ones on the left; the ratio's own
  // pi/4 goes with its sign.
  vm_id_t down = vm_op2(v, PESTLE_OP_NE, steep, left);
  vm_id_t minus = vm_neg(v, r.hi);
  r.hi = vm_select(v, down, minus, r.hi);
  minus = vm_neg(v, r.lo);
  r.lo = vm_select(v, down, minus, r.lo);
  vm_id_t quarter = pick(v, turned, 1.0, 0.0);
  minus = vm_neg(v, quarter);
  quarter = vm_select(v, down, minus, quarter);
  vm_id_t flat = pick(v, left, 4.0, 0.0);
  vm_id_t two = vm_const(v, 2.0);
  vm_id_t quarters = vm_select(v, steep, two, flat);
  quarters = vm_add(v, quarters, quarter);
  // quarters * pi/4, in two parts.
  vm_id_t unit = vm_const(v, HALF_PI / 2);
  vm_pair_t base = vm_pair_product(v, quarters, unit);
  base.lo = vm_scale_add(v, quarters, HALF_PI_MIDDLE / 2, base.lo);
  vm_pair_t sum = vm_pair_sum(v, base.hi, r.hi);
  r.lo = vm_add(v, r.lo, base.lo);
  sum.lo = vm_add(v, sum.lo, r.lo);
  vm_id_t angle = vm_add(v, sum.hi, sum.lo);
  angle = vm_copy_sign(v, angle, y, PESTLE_I64);
  vm_id_t x_nan = vm_op2(v, PESTLE_OP_NE, x, x);
  vm_id_t y_nan = vm_op2(v, PESTLE_OP_NE, y, y);
  vm_id_t nan = vm_op2(v, PESTLE_OP_OR, x_nan, y_nan);
  vm_id_t x_plus_y = vm_add(v, x, y);
  return vm_select(v, nan, x_plus_y, angle);
}
