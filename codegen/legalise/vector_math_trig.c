// SPDX-License-Identifier: Apache-2.0
// sine, cosine, tan and atan2 of f32, computed in f64 lanes, where plain
// polynomials give correctly rounded results but for rare ties.
//
// The angle is reduced to r in [-pi/4, pi/4] and a quadrant. Below 2^30 by
// Cody and Waite in f64: pi/2 in two parts is exact to 2^-107, and a float
// below 2^30 is no nearer to a multiple of pi/2 than 2^-33. From there on by
// Payne and Hanek: with |x| = M 2^E, the bits of 2/pi from E - 1 on, 96 of
// them, times M give quadrant and fraction in one 64-bit number. That part
// stands in an `if` that is taken when a lane needs it.
#include "codegen/legalise/vector_math_internal.h"
#include "codegen/legalise/vector_math_poly.h"

#define TWO_OVER_PI 0x1.45f306dc9c883p-1
#define PI 0x1.921fb54442d18p+1
#define HALF_PI 0x1.921fb54442d18p+0
#define HALF_PI_LOW 0x1.1a62633145c07p-54
#define MAGIC 0x1.8p+52
#define LARGE 0x1p+30

typedef struct angle_t {
  vm_id_t r;         // f64
  vm_id_t quadrant;  // i64, the low two bits
} angle_t;

// --- Large arguments ---

// 64 bits of 2/pi after the point, from bit 32 * |word| on.
static int64_t pi_bits(unsigned word) {
  static const uint32_t bits[] = {0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                  0xf534ddc0, 0xdb629599, 0x3c439041,
                                  0xfe5163ab, 0xdebbc561};
  return (int64_t)((uint64_t)bits[word] << 32 | bits[word + 1]);
}

// 32 bits of 2/pi from bit 32 * (group + |word|) + |shift| on.
static vm_id_t pi_window(vm_t u, vm_id_t low_bit, vm_id_t high_bit,
                         vm_id_t shift, unsigned word) {
  vm_id_t w[4];
  for (unsigned i = 0; i < 4; ++i)
    w[i] = vm_int(u, pi_bits(word + i));
  vm_id_t low = vm_select(u, low_bit, w[1], w[0]);
  vm_id_t high = vm_select(u, low_bit, w[3], w[2]);
  vm_id_t bits = vm_select(u, high_bit, high, low);
  bits = vm_op2(u, PESTLE_OP_SHIFT_LEFT, bits, shift);
  return vm_op2i(u, PESTLE_OP_SHIFT_RIGHT_LOGICAL, bits, 32);
}

static vm_id_t test_bit(vm_t u, vm_id_t value, int64_t bit) {
  vm_id_t masked = vm_op2i(u, PESTLE_OP_AND, value, bit);
  return vm_op2i(u, PESTLE_OP_NE, masked, 0);
}

// M and E - 2 of |x|, whose bits are |bits|, as u64.
static vm_id_t fraction_of(vm_t u, vm_id_t bits, vm_id_t* out_offset) {
  vm_id_t wide = vm_cast(u, bits, PESTLE_U64);
  vm_id_t exponent = vm_op2i(u, PESTLE_OP_SHIFT_RIGHT_LOGICAL, wide, 23);
  exponent = vm_op2i(u, PESTLE_OP_AND, exponent, 0xff);
  *out_offset = vm_op2i(u, PESTLE_OP_SUBTRACT, exponent, 152);
  vm_id_t m = vm_op2i(u, PESTLE_OP_AND, wide, 0x7fffff);
  return vm_op2i(u, PESTLE_OP_OR, m, 0x800000);
}

static angle_t reduce_large(vm_t v, vm_id_t x) {
  vm_t u = vm_as(v, PESTLE_U64), s = vm_as(v, PESTLE_I64);
  vm_t d = vm_as(v, PESTLE_F64);
  angle_t a;
  vm_id_t offset;
  vm_id_t bits = vm_bits(v, x, PESTLE_U32);
  vm_id_t m = fraction_of(u, bits, &offset);
  vm_id_t shift = vm_op2i(u, PESTLE_OP_AND, offset, 31);
  vm_id_t low_bit = test_bit(u, offset, 32);
  vm_id_t high_bit = test_bit(u, offset, 64);
  vm_id_t w0 = pi_window(u, low_bit, high_bit, shift, 0);
  vm_id_t w1 = pi_window(u, low_bit, high_bit, shift, 1);
  vm_id_t w2 = pi_window(u, low_bit, high_bit, shift, 2);
  // The top 64 of the low 96 bits of M * (w0 w1 w2).
  vm_id_t p = vm_mul(u, m, w0);
  p = vm_op2i(u, PESTLE_OP_SHIFT_LEFT, p, 32);
  vm_id_t middle = vm_mul(u, m, w1);
  p = vm_add(u, p, middle);
  vm_id_t last = vm_mul(u, m, w2);
  last = vm_op2i(u, PESTLE_OP_SHIFT_RIGHT_LOGICAL, last, 32);
  p = vm_add(u, p, last);
  vm_id_t n = vm_op2i(u, PESTLE_OP_ADD, p, INT64_C(1) << 61);
  n = vm_op2i(u, PESTLE_OP_SHIFT_RIGHT_LOGICAL, n, 62);
  vm_id_t whole = vm_op2i(u, PESTLE_OP_SHIFT_LEFT, n, 62);
  vm_id_t rest = vm_sub(u, p, whole);
  rest = vm_cast(u, rest, PESTLE_I64);
  vm_id_t r = vm_cast(s, rest, PESTLE_F64);
  r = vm_op2f(d, PESTLE_OP_MULTIPLY, r, HALF_PI * 0x1p-62);
  // |x| so far.
  n = vm_cast(u, n, PESTLE_I64);
  vm_id_t negative = vm_op2f(v, PESTLE_OP_LT, x, 0.0);
  vm_id_t minus_r = vm_neg(d, r);
  vm_id_t minus_n = vm_neg(s, n);
  a.r = vm_select(d, negative, minus_r, r);
  a.quadrant = vm_select(s, negative, minus_n, n);
  return a;
}

// --- Reduction ---

static angle_t reduce(vm_t v, vm_id_t x) {
  vm_t d = vm_as(v, PESTLE_F64);
  angle_t a;
  vm_id_t wide = vm_cast(v, x, PESTLE_F64);
  vm_id_t scale = vm_const(d, TWO_OVER_PI);
  vm_id_t z = vm_fma_const(d, wide, scale, MAGIC);
  vm_id_t n = vm_op2f(d, PESTLE_OP_SUBTRACT, z, MAGIC);
  a.r = vm_scale_add(d, n, -HALF_PI, wide);
  a.r = vm_scale_add(d, n, -HALF_PI_LOW, a.r);
  a.quadrant = vm_bits(d, z, PESTLE_I64);
  vm_id_t size = vm_abs(v, x);
  vm_id_t large = vm_op2f(v, PESTLE_OP_GE, size, LARGE);
  vm_id_t finite = vm_op2f(v, PESTLE_OP_LT, size, (double)INFINITY);
  large = vm_op2(v, PESTLE_OP_AND, large, finite);
  uint32_t r_tile = vm_tile(v, "angle", a.r);
  uint32_t n_tile = vm_tile(v, "quadrant", a.quadrant);
  vm_id_t any = pestle_kir_reduce(v.k, large, PESTLE_OP_OR);
  pestle_kir_if(v.k, any);
  angle_t far = reduce_large(v, x);
  vm_id_t r = vm_select(d, large, far.r, a.r);
  vm_id_t q = vm_select(d, large, far.quadrant, a.quadrant);
  vm_tile_set(v, r_tile, r);
  vm_tile_set(v, n_tile, q);
  pestle_kir_end(v.k);
  a.r = vm_tile_get(v, r_tile);
  a.quadrant = vm_tile_get(v, n_tile);
  return a;
}

// --- sine, cosine, tan ---

static vm_id_t sine_poly(vm_t d, vm_id_t r, vm_id_t square) {
  vm_id_t p = VM_POLY(d, square, poly_sin_f64);
  p = vm_mul(d, p, square);
  return vm_fma(d, p, r, r);
}

static vm_id_t cosine_poly(vm_t d, vm_id_t square) {
  vm_id_t p = VM_POLY(d, square, poly_cos_f64);
  vm_id_t fourth = vm_mul(d, square, square);
  vm_id_t half = vm_const(d, -0.5);
  vm_id_t start = vm_fma_const(d, square, half, 1.0);
  return vm_fma(d, p, fourth, start);
}

// sin(x + quarters * pi/2).
static vm_id_t turned_sine(vm_t v, vm_id_t x, int64_t quarters) {
  vm_t d = vm_as(v, PESTLE_F64), s = vm_as(v, PESTLE_I64);
  angle_t a = reduce(v, x);
  vm_id_t square = vm_mul(d, a.r, a.r);
  vm_id_t sine = sine_poly(d, a.r, square);
  vm_id_t cosine = cosine_poly(d, square);
  vm_id_t q = vm_op2i(s, PESTLE_OP_ADD, a.quadrant, quarters);
  vm_id_t odd = test_bit(s, q, 1);
  vm_id_t y = vm_select(d, odd, cosine, sine);
  // Bit 1 of the quadrant becomes the sign.
  vm_id_t sign = vm_op2i(s, PESTLE_OP_AND, q, 2);
  sign = vm_op2i(s, PESTLE_OP_SHIFT_LEFT, sign, 62);
  vm_id_t bits = vm_bits(d, y, PESTLE_I64);
  bits = vm_op2(s, PESTLE_OP_XOR, bits, sign);
  y = vm_bits(d, bits, PESTLE_F64);
  return vm_cast(d, y, PESTLE_F32);
}

// Tiny angles are their own sine and tangent, -0 and denormals with them.
static vm_id_t unless_tiny(vm_t v, vm_id_t x, vm_id_t y) {
  vm_id_t size = vm_abs(v, x);
  vm_id_t tiny = vm_op2f(v, PESTLE_OP_LT, size, 0x1p-13);
  return vm_select(v, tiny, x, y);
}

vm_id_t pestle_vm_sine(vm_t v, vm_id_t x) {
  vm_id_t y = turned_sine(v, x, 0);
  return unless_tiny(v, x, y);
}

vm_id_t pestle_vm_cosine(vm_t v, vm_id_t x) {
  return turned_sine(v, x, 1);
}

// sin / cos, or -cos / sin in odd quadrants.
vm_id_t pestle_vm_tan(vm_t v, vm_id_t x) {
  vm_t d = vm_as(v, PESTLE_F64), s = vm_as(v, PESTLE_I64);
  angle_t a = reduce(v, x);
  vm_id_t square = vm_mul(d, a.r, a.r);
  vm_id_t sine = sine_poly(d, a.r, square);
  vm_id_t cosine = cosine_poly(d, square);
  vm_id_t odd = test_bit(s, a.quadrant, 1);
  vm_id_t minus = vm_neg(d, cosine);
  vm_id_t above = vm_select(d, odd, minus, sine);
  vm_id_t below = vm_select(d, odd, sine, cosine);
  vm_id_t y = vm_div(d, above, below);
  y = vm_cast(d, y, PESTLE_F32);
  return unless_tiny(v, x, y);
}

// --- atan2 ---

// atan(q) of q = the smaller of |x|, |y| by the larger, then the octant.
vm_id_t pestle_vm_atan2(vm_t v, vm_id_t y, vm_id_t x) {
  vm_t d = vm_as(v, PESTLE_F64), i = vm_as(v, PESTLE_I32);
  vm_id_t ax = vm_abs(v, x);
  vm_id_t ay = vm_abs(v, y);
  ax = vm_cast(v, ax, PESTLE_F64);
  ay = vm_cast(v, ay, PESTLE_F64);
  vm_id_t steep = vm_op2(d, PESTLE_OP_GT, ay, ax);
  vm_id_t more = vm_select(d, steep, ay, ax);
  vm_id_t less = vm_select(d, steep, ax, ay);
  vm_id_t q = vm_div(d, less, more);
  // 0/0 is 0 here and inf/inf is 1.
  vm_id_t at_zero = vm_op2f(d, PESTLE_OP_EQ, more, 0.0);
  vm_id_t at_inf = vm_op2f(d, PESTLE_OP_EQ, less, (double)INFINITY);
  vm_id_t zero = vm_const(d, 0.0);
  vm_id_t one = vm_const(d, 1.0);
  q = vm_select(d, at_zero, zero, q);
  q = vm_select(d, at_inf, one, q);
  vm_id_t square = vm_mul(d, q, q);
  vm_id_t p = VM_POLY(d, square, poly_atan_f64);
  p = vm_mul(d, p, square);
  vm_id_t r = vm_fma(d, p, q, q);
  vm_id_t half_pi = vm_const(d, HALF_PI);
  vm_id_t rest = vm_sub(d, half_pi, r);
  r = vm_select(d, steep, rest, r);
  vm_id_t bits = vm_bits(v, x, PESTLE_I32);
  vm_id_t left = vm_op2i(i, PESTLE_OP_LT, bits, 0);
  vm_id_t pi = vm_const(d, PI);
  rest = vm_sub(d, pi, r);
  r = vm_select(d, left, rest, r);
  r = vm_cast(d, r, PESTLE_F32);
  r = vm_copy_sign(v, r, y, PESTLE_I32);
  vm_id_t x_nan = vm_op2(v, PESTLE_OP_NE, x, x);
  vm_id_t y_nan = vm_op2(v, PESTLE_OP_NE, y, y);
  vm_id_t nan = vm_op2(v, PESTLE_OP_OR, x_nan, y_nan);
  vm_id_t sum = vm_add(v, x, y);
  return vm_select(v, nan, sum, r);
}
