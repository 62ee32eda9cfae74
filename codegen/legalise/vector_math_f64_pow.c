// SPDX-License-Identifier: Apache-2.0
// power, cbrt and remainder in f64.
//
// x^y = e^(y log x) with the logarithm as a pair to 2^-64: y log x is at most
// 746 in size where the result is finite and not 0, so that its error stays
// below 2^-54, less than the result's own rounding.
#include "codegen/legalise/vector_math_f64.h"
#include "codegen/legalise/vector_math_f64_poly.h"

#define TWO_TO_52 (INT64_C(0x433) << 52)

// The bits of |x|'s exponent as a float, |x| positive and normal; 2^52 + n has
// n in its low bits.
static vm_id_t biased_exponent(vm_t v, vm_id_t x) {
  vm_t i = vm_as(v, PESTLE_I64);
  vm_id_t bits = vm_bits(v, x, PESTLE_I64);
  bits = vm_op2i(i, PESTLE_OP_SHIFT_RIGHT_LOGICAL, bits, 52);
  bits = vm_op2i(i, PESTLE_OP_OR, bits, TWO_TO_52);
  bits = vm_bits(i, bits, PESTLE_F64);
  return vm_op2f(v, PESTLE_OP_SUBTRACT, bits, 0x1p+52);
}

// 2^n for a whole number n in [-1022, 1023].
static vm_id_t power_of_two(vm_t v, vm_id_t n) {
  vm_t i = vm_as(v, PESTLE_I64);
  vm_id_t sum = vm_op2f(v, PESTLE_OP_ADD, n, 0x1p+52 + 1023);
  vm_id_t bits = vm_bits(v, sum, PESTLE_I64);
  bits = vm_op2i(i, PESTLE_OP_SHIFT_LEFT, bits, 52);
  return vm_bits(i, bits, PESTLE_F64);
}

// --- power ---

// log |x|, with its poles.
static vm_pair_t log_of(vm_t v, vm_id_t a) {
  vm_pair_t l = pestle_vm_log_pair_f64(v, a);
  vm_id_t inf = vm_const(v, (double)INFINITY);
  vm_id_t pole = vm_const(v, -(double)INFINITY);
  vm_id_t infinite = vm_op2(v, PESTLE_OP_EQ, a, inf);
  vm_id_t zero = vm_op2f(v, PESTLE_OP_EQ, a, 0.0);
  l.hi = vm_select(v, infinite, inf, l.hi);
  l.hi = vm_select(v, zero, pole, l.hi);
  return l;
}

vm_id_t pestle_vm_pow_f64(vm_t v, vm_id_t x, vm_id_t y) {
  vm_t i = vm_as(v, PESTLE_I64);
  vm_id_t a = vm_abs(v, x);
  vm_pair_t l = log_of(v, a);
  vm_pair_t t = vm_pair_product(v, y, l.hi);
  t.lo = vm_fma(v, y, l.lo, t.lo);
  // Beyond, the result is inf or 0, and the rest may be inf - inf.
  vm_id_t size = vm_abs(v, t.hi);
  vm_id_t near = vm_op2f(v, PESTLE_OP_LT, size, 800.0);
  vm_id_t zero = vm_const(v, 0.0);
  t.lo = vm_select(v, near, t.lo, zero);
  t.hi = vm_at_most(v, t.hi, 710.0);
  t.hi = vm_at_least(v, t.hi, -746.0);
  vm_exp_t e = pestle_vm_exp_parts_f64(v, t.hi);
  // (1 + q) (1 + lo)
  vm_id_t more = vm_fma(v, t.lo, e.q, t.lo);
  vm_id_t p = vm_add(v, e.q, more);
  p = vm_op2f(v, PESTLE_OP_ADD, p, 1.0);
  p = vm_mul(v, p, e.low);
  vm_id_t r = vm_mul(v, p, e.high);
  vm_parity_t parity = pestle_vm_parity(v, y);
  vm_id_t bits = vm_bits(v, x, PESTLE_I64);
  vm_id_t minus = vm_op2i(i, PESTLE_OP_LT, bits, 0);
  minus = vm_op2(v, PESTLE_OP_AND, minus, parity.odd);
  vm_id_t negated = vm_neg(v, r);
  r = vm_select(v, minus, negated, r);
  return pestle_vm_pow_edges(v, x, y, parity.whole, r);
}

// --- cbrt ---

// 1 / cbrt(m) for m in [1, 8) as 2^j of [1, 2): a polynomial times 2^(-j/3),
// then one step of the series of (1 - e)^(-1/3), e = 1 - m z^3.
static vm_id_t inverse_root(vm_t v, vm_id_t unit, vm_id_t m, vm_id_t j) {
  vm_id_t z = VM_POLY(v, unit, poly_rcbrt_start);
  vm_id_t one = vm_const(v, 1.0);
  vm_id_t third = vm_const(v, 0x1.965fea53d6e3dp-1);
  vm_id_t two_thirds = vm_const(v, 0x1.428a2f98d728bp-1);
  vm_id_t is_one = vm_op2f(v, PESTLE_OP_EQ, j, 1.0);
  vm_id_t is_two = vm_op2f(v, PESTLE_OP_EQ, j, 2.0);
  vm_id_t scale = vm_select(v, is_one, third, one);
  scale = vm_select(v, is_two, two_thirds, scale);
  z = vm_mul(v, z, scale);
  vm_id_t square = vm_mul(v, z, z);
  vm_id_t w = vm_mul(v, square, m);
  w = vm_neg(v, w);
  vm_id_t e = vm_fma(v, w, z, one);
  vm_id_t p = vm_const(v, 14.0 / 81);
  p = vm_fma_const(v, p, e, 2.0 / 9);
  p = vm_fma_const(v, p, e, 1.0 / 3);
  p = vm_mul(v, p, e);
  return vm_fma(v, z, p, z);
}

// |x| = 2^(3k) m: cbrt is 2^k m z^2, corrected by what its cube leaves of m.
vm_id_t pestle_vm_cbrt_f64(vm_t v, vm_id_t x) {
  vm_t i = vm_as(v, PESTLE_I64);
  vm_id_t a = vm_abs(v, x);
  vm_id_t tiny = vm_op2f(v, PESTLE_OP_LT, a, 0x1p-1022);
  vm_id_t scaled = vm_op2f(v, PESTLE_OP_MULTIPLY, a, 0x1p+54);
  scaled = vm_select(v, tiny, scaled, a);
  vm_id_t b = biased_exponent(v, scaled);
  // floor(b / 3), b a whole number.
  vm_id_t k = vm_op2f(v, PESTLE_OP_ADD, b, 0.5);
  k = vm_op2f(v, PESTLE_OP_MULTIPLY, k, 1.0 / 3);
  k = vm_op1(v, PESTLE_OP_FLOOR, k);
  vm_id_t j = vm_scale_add(v, k, -3.0, b);
  vm_id_t bits = vm_bits(v, scaled, PESTLE_I64);
  bits = vm_op2i(i, PESTLE_OP_AND, bits, (INT64_C(1) << 52) - 1);
  bits = vm_op2i(i, PESTLE_OP_OR, bits, VM_EXPONENT_ONE);
  vm_id_t unit = vm_bits(i, bits, PESTLE_F64);
  vm_id_t factor = power_of_two(v, j);
  vm_id_t m = vm_mul(v, unit, factor);
  vm_id_t z = inverse_root(v, unit, m, j);
  vm_id_t square = vm_mul(v, z, z);
  vm_id_t y = vm_mul(v, m, square);
  vm_pair_t own = vm_pair_product(v, y, y);
  vm_id_t minus = vm_neg(v, y);
  vm_id_t rest = vm_fma(v, own.hi, minus, m);
  rest = vm_fma(v, own.lo, minus, rest);
  square = vm_op2f(v, PESTLE_OP_MULTIPLY, square, 1.0 / 3);
  y = vm_fma(v, rest, square, y);
  // 1023 = 3 * 341, and 2^54 = (2^18)^3.
  k = vm_op2f(v, PESTLE_OP_SUBTRACT, k, 341.0);
  vm_id_t lower = vm_op2f(v, PESTLE_OP_SUBTRACT, k, 18.0);
  k = vm_select(v, tiny, lower, k);
  vm_id_t scale = power_of_two(v, k);
  y = vm_mul(v, y, scale);
  y = vm_copy_sign(v, y, x, PESTLE_I64);
  vm_id_t finite = vm_op2f(v, PESTLE_OP_LT, a, (double)INFINITY);
  vm_id_t some = vm_op2f(v, PESTLE_OP_GT, a, 0.0);
  vm_id_t ordinary = vm_op2(v, PESTLE_OP_AND, finite, some);
  return vm_select(v, ordinary, y, x);
}

// --- remainder ---

// r - rint(r / b) b, one b more where that is negative: exact while the
// quotient is below 2^52.
static vm_id_t fmod_near(vm_t v, vm_id_t r, vm_id_t b) {
  vm_id_t q = vm_div(v, r, b);
  q = vm_op1(v, PESTLE_OP_ROUND_EVEN, q);
  q = vm_neg(v, q);
  r = vm_fma(v, q, b, r);
  vm_id_t under = vm_op2f(v, PESTLE_OP_LT, r, 0.0);
  vm_id_t more = vm_add(v, r, b);
  return vm_select(v, under, more, r);
}

// |r| mod |b| 2^k, for quotients of 2^52 and more, with k such that the
// quotient by b 2^k has 25 bits or so: 24 bits nearer each time.
static vm_id_t fmod_step(vm_t v, vm_id_t r, vm_id_t b, vm_id_t exponent) {
  vm_id_t limit = vm_op2f(v, PESTLE_OP_MULTIPLY, b, 0x1p+52);
  vm_id_t many = vm_op2(v, PESTLE_OP_GE, r, limit);
  vm_id_t k = biased_exponent(v, r);
  k = vm_sub(v, k, exponent);
  k = vm_op2f(v, PESTLE_OP_SUBTRACT, k, 25.0);
  k = vm_at_least(v, k, 0.0);  // where the lane is not meant
  // In three steps: a denormal b may be 2^2098 times smaller than r.
  vm_id_t first = vm_at_most(v, k, 1000.0);
  k = vm_sub(v, k, first);
  vm_id_t second = vm_at_most(v, k, 1000.0);
  k = vm_sub(v, k, second);
  first = power_of_two(v, first);
  second = power_of_two(v, second);
  vm_id_t third = power_of_two(v, k);
  b = vm_mul(v, b, first);
  b = vm_mul(v, b, second);
  b = vm_mul(v, b, third);
  vm_id_t rest = fmod_near(v, r, b);
  return vm_select(v, many, rest, r);
}

// 88 steps bring the largest quotient of two floats, 2^2098, below 2^52.
static vm_id_t fmod_far(vm_t v, vm_id_t r, vm_id_t b) {
  vm_id_t limit = vm_op2f(v, PESTLE_OP_MULTIPLY, b, 0x1p+52);
  vm_id_t many = vm_op2(v, PESTLE_OP_GE, r, limit);
  vm_id_t any = pestle_kir_reduce(v.k, many, PESTLE_OP_OR);
  vm_id_t tiny = vm_op2f(v, PESTLE_OP_LT, b, 0x1p-1022);
  vm_id_t scaled = vm_op2f(v, PESTLE_OP_MULTIPLY, b, 0x1p+54);
  scaled = vm_select(v, tiny, scaled, b);
  vm_id_t exponent = biased_exponent(v, scaled);
  vm_id_t lower = vm_op2f(v, PESTLE_OP_SUBTRACT, exponent, 54.0);
  exponent = vm_select(v, tiny, lower, exponent);
  uint32_t tile = vm_tile(v, "rest", r);
  vm_id_t lo = pestle_kir_index(v.k, 0);
  vm_id_t hi = pestle_kir_index(v.k, 88);
  pestle_kir_if(v.k, any);
  pestle_kir_for(v.k, "step", lo, hi, 1, PESTLE_KIR_SERIAL);
  vm_id_t part = vm_tile_get(v, tile);
  part = fmod_step(v, part, b, exponent);
  vm_tile_set(v, tile, part);
  pestle_kir_end(v.k);
  pestle_kir_end(v.k);
  return vm_tile_get(v, tile);
}

// Exact. NaN for x infinite or y 0; x itself for y infinite.
vm_id_t pestle_vm_fmod_f64(vm_t v, vm_id_t x, vm_id_t y) {
  vm_id_t a = vm_abs(v, x);
  vm_id_t b = vm_abs(v, y);
  vm_id_t endless = vm_op2f(v, PESTLE_OP_EQ, b, (double)INFINITY);
  vm_id_t finite = vm_op2f(v, PESTLE_OP_LT, a, (double)INFINITY);
  vm_id_t some = vm_op2f(v, PESTLE_OP_GT, b, 0.0);
  vm_id_t defined = vm_op2(v, PESTLE_OP_AND, finite, some);
  vm_id_t itself = vm_op2(v, PESTLE_OP_AND, endless, finite);
  vm_id_t r = fmod_far(v, a, b);
  r = fmod_near(v, r, b);
  r = vm_copy_sign(v, r, x, PESTLE_I64);
  r = vm_select(v, itself, x, r);
  vm_id_t nan = vm_const(v, (double)NAN);
  return vm_select(v, defined, r, nan);
}
