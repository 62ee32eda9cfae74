// SPDX-License-Identifier: Apache-2.0
// power, cbrt and remainder of f32 in f64 lanes.
//
// x^y = 2^(y log2 x). log2 has an absolute error of 2^-45 at most, y log2 x at
// most 150 in size where the result is finite and not 0, so that the relative
// error of 2^t stays below 2^-38 and the result is correctly rounded but for
// near ties.
#include "codegen/legalise/vector_math_internal.h"
#include "codegen/legalise/vector_math_poly.h"

#define MAGIC 0x1.8p+52
#define SQRT_HALF INT64_C(0x3fe6a09e667f3bcd)

// log2 of |x|, an f64 >= 0 that was an f32 (so never denormal): -inf at 0, inf
// at inf, anything at NaN.
static vm_id_t log2_wide(vm_t d, vm_id_t x) {
  vm_t s = vm_as(d, PESTLE_I64), i = vm_as(d, PESTLE_I32);
  vm_id_t bits = vm_bits(d, x, PESTLE_I64);
  vm_id_t e = vm_op2i(s, PESTLE_OP_SUBTRACT, bits, SQRT_HALF);
  e = vm_op2i(s, PESTLE_OP_SHIFT_RIGHT_ARITHMETIC, e, 52);
  vm_id_t part = vm_op2i(s, PESTLE_OP_SHIFT_LEFT, e, 52);
  vm_id_t m = vm_sub(s, bits, part);
  m = vm_bits(s, m, PESTLE_F64);
  vm_id_t above = vm_op2f(d, PESTLE_OP_SUBTRACT, m, 1.0);
  vm_id_t below = vm_op2f(d, PESTLE_OP_ADD, m, 1.0);
  vm_id_t t = vm_div(d, above, below);
  vm_id_t square = vm_mul(d, t, t);
  vm_id_t p = VM_POLY(d, square, poly_log2_f64);
  vm_id_t n = vm_cast(s, e, PESTLE_I32);
  n = vm_cast(i, n, PESTLE_F64);
  vm_id_t l = vm_fma(d, t, p, n);
  vm_id_t inf = vm_const(d, (double)INFINITY);
  vm_id_t pole = vm_const(d, -(double)INFINITY);
  vm_id_t infinite = vm_op2(d, PESTLE_OP_EQ, x, inf);
  vm_id_t zero = vm_op2f(d, PESTLE_OP_EQ, x, 0.0);
  l = vm_select(d, infinite, inf, l);
  return vm_select(d, zero, pole, l);
}

// 2^t as f32; NaN stays.
static vm_id_t exp2_wide(vm_t d, vm_id_t t) {
  vm_t s = vm_as(d, PESTLE_I64);
  t = vm_at_most(d, t, 200.0);
  t = vm_at_least(d, t, -200.0);
  vm_id_t z = vm_op2f(d, PESTLE_OP_ADD, t, MAGIC);
  vm_id_t n = vm_op2f(d, PESTLE_OP_SUBTRACT, z, MAGIC);
  vm_id_t r = vm_sub(d, t, n);
  vm_id_t p = VM_POLY(d, r, poly_exp2_f64);
  p = vm_fma_const(d, p, r, 1.0);
  vm_id_t bits = vm_bits(d, z, PESTLE_I64);
  bits = vm_op2i(s, PESTLE_OP_SHIFT_LEFT, bits, 52);
  bits = vm_op2i(s, PESTLE_OP_ADD, bits, INT64_C(0x3ff) << 52);
  vm_id_t scale = vm_bits(s, bits, PESTLE_F64);
  p = vm_mul(d, p, scale);
  return vm_cast(d, p, PESTLE_F32);
}

vm_id_t pestle_vm_cbrt(vm_t v, vm_id_t x) {
  vm_t d = vm_as(v, PESTLE_F64);
  vm_id_t a = vm_abs(v, x);
  a = vm_cast(v, a, PESTLE_F64);
  vm_id_t l = log2_wide(d, a);
  l = vm_op2f(d, PESTLE_OP_MULTIPLY, l, 1.0 / 3.0);
  vm_id_t r = exp2_wide(d, l);
  r = vm_copy_sign(v, r, x, PESTLE_I32);
  vm_id_t nan = vm_op2(v, PESTLE_OP_NE, x, x);
  return vm_select(v, nan, x, r);
}

// --- power ---

vm_parity_t pestle_vm_parity(vm_t v, vm_id_t y) {
  vm_parity_t p;
  vm_id_t rounded = vm_op1(v, PESTLE_OP_ROUND_EVEN, y);
  p.whole = vm_op2(v, PESTLE_OP_EQ, rounded, y);
  vm_id_t half = vm_op2f(v, PESTLE_OP_MULTIPLY, y, 0.5);
  rounded = vm_op1(v, PESTLE_OP_ROUND_EVEN, half);
  vm_id_t uneven = vm_op2(v, PESTLE_OP_NE, rounded, half);
  p.odd = vm_op2(v, PESTLE_OP_AND, p.whole, uneven);
  return p;
}

vm_id_t pestle_vm_pow_edges(vm_t v, vm_id_t x, vm_id_t y, vm_id_t whole,
                            vm_id_t r) {
  vm_id_t nan = vm_const(v, (double)NAN);
  vm_id_t one = vm_const(v, 1.0);
  vm_id_t ax = vm_abs(v, x);
  vm_id_t ay = vm_abs(v, y);
  vm_id_t negative = vm_op2f(v, PESTLE_OP_LT, x, 0.0);
  vm_id_t finite = vm_op2f(v, PESTLE_OP_LT, ax, (double)INFINITY);
  vm_id_t broken = vm_op1(v, PESTLE_OP_NOT, whole);
  broken = vm_op2(v, PESTLE_OP_AND, broken, negative);
  broken = vm_op2(v, PESTLE_OP_AND, broken, finite);
  r = vm_select(v, broken, nan, r);
  vm_id_t x_nan = vm_op2(v, PESTLE_OP_NE, x, x);
  r = vm_select(v, x_nan, x, r);
  vm_id_t y_nan = vm_op2(v, PESTLE_OP_NE, y, y);
  r = vm_select(v, y_nan, y, r);
  vm_id_t unit = vm_op2f(v, PESTLE_OP_EQ, ax, 1.0);
  vm_id_t forever = vm_op2f(v, PESTLE_OP_EQ, ay, (double)INFINITY);
  vm_id_t is_one = vm_op2(v, PESTLE_OP_AND, unit, forever);
  vm_id_t plus = vm_op2f(v, PESTLE_OP_EQ, x, 1.0);
  is_one = vm_op2(v, PESTLE_OP_OR, is_one, plus);
  vm_id_t nothing = vm_op2f(v, PESTLE_OP_EQ, y, 0.0);
  is_one = vm_op2(v, PESTLE_OP_OR, is_one, nothing);
  return vm_select(v, is_one, one, r);
}

vm_id_t pestle_vm_pow(vm_t v, vm_id_t x, vm_id_t y) {
  vm_t d = vm_as(v, PESTLE_F64), i = vm_as(v, PESTLE_I32);
  vm_id_t a = vm_abs(v, x);
  a = vm_cast(v, a, PESTLE_F64);
  vm_id_t l = log2_wide(d, a);
  vm_id_t exponent = vm_cast(v, y, PESTLE_F64);
  vm_id_t t = vm_mul(d, exponent, l);
  vm_id_t r = exp2_wide(d, t);
  vm_parity_t parity = pestle_vm_parity(v, y);
  vm_id_t bits = vm_bits(v, x, PESTLE_I32);
  vm_id_t minus = vm_op2i(i, PESTLE_OP_LT, bits, 0);
  minus = vm_op2(v, PESTLE_OP_AND, minus, parity.odd);
  vm_id_t negated = vm_neg(v, r);
  r = vm_select(v, minus, negated, r);
  return pestle_vm_pow_edges(v, x, y, parity.whole, r);
}

// --- remainder ---

// One step towards |r| mod |b| for quotients of 2^26 and more: the leading 25
// bits of the quotient, rounded down, times b are taken off, which is exact.
static vm_id_t fmod_step(vm_t d, vm_id_t r, vm_id_t b) {
  vm_t s = vm_as(d, PESTLE_I64);
  vm_id_t q = vm_div(d, r, b);
  vm_id_t many = vm_op2f(d, PESTLE_OP_GE, q, 0x1p+26);
  q = vm_op2f(d, PESTLE_OP_MULTIPLY, q, 1.0 - 0x1p-24);
  vm_id_t bits = vm_bits(d, q, PESTLE_I64);
  bits = vm_op2i(s, PESTLE_OP_AND, bits, -(INT64_C(1) << 28));
  q = vm_bits(s, bits, PESTLE_F64);
  q = vm_neg(d, q);
  vm_id_t rest = vm_fma(d, q, b, r);
  return vm_select(d, many, rest, r);
}

// Twelve steps bring the largest quotient of two floats, 2^277, below 2^26.
static vm_id_t fmod_far(vm_t v, vm_id_t r, vm_id_t b) {
  vm_t d = vm_as(v, PESTLE_F64);
  vm_id_t q = vm_div(d, r, b);
  vm_id_t many = vm_op2f(d, PESTLE_OP_GE, q, 0x1p+26);
  vm_id_t any = pestle_kir_reduce(v.k, many, PESTLE_OP_OR);
  uint32_t tile = pestle_kir_add_buffer(v.k, "rest", PESTLE_KIR_PRIVATE,
                                        PESTLE_F64, v.lanes, 1, 0);
  pestle_kir_alloc(v.k, tile);
  vm_id_t lo = pestle_kir_index(v.k, 0);
  vm_id_t hi = pestle_kir_index(v.k, 12);
  pestle_kir_store(v.k, tile, lo, r, PESTLE_KIR_NONE, 0);
  pestle_kir_if(v.k, any);
  pestle_kir_for(v.k, "step", lo, hi, 1, PESTLE_KIR_SERIAL);
  vm_id_t part = pestle_kir_load(v.k, tile, v.lanes, lo, PESTLE_KIR_NONE, 0);
  part = fmod_step(d, part, b);
  pestle_kir_store(v.k, tile, lo, part, PESTLE_KIR_NONE, 0);
  pestle_kir_end(v.k);
  pestle_kir_end(v.k);
  return pestle_kir_load(v.k, tile, v.lanes, lo, PESTLE_KIR_NONE, 0);
}

// Exact. NaN for x infinite or y 0; x itself for y infinite.
vm_id_t pestle_vm_fmod(vm_t v, vm_id_t x, vm_id_t y) {
  vm_t d = vm_as(v, PESTLE_F64);
  vm_id_t r = vm_abs(v, x);
  vm_id_t b = vm_abs(v, y);
  vm_id_t endless = vm_op2f(v, PESTLE_OP_EQ, b, (double)INFINITY);
  vm_id_t finite = vm_op2f(v, PESTLE_OP_LT, r, (double)INFINITY);
  vm_id_t itself = vm_op2(v, PESTLE_OP_AND, endless, finite);
  r = vm_cast(v, r, PESTLE_F64);
  b = vm_cast(v, b, PESTLE_F64);
  r = fmod_far(v, r, b);
  vm_id_t q = vm_div(d, r, b);
  q = vm_op1(d, PESTLE_OP_FLOOR, q);
  q = vm_neg(d, q);
  r = vm_fma(d, q, b, r);
  // The quotient may have been rounded up to a whole number.
  vm_id_t under = vm_op2f(d, PESTLE_OP_LT, r, 0.0);
  vm_id_t more = vm_add(d, r, b);
  r = vm_select(d, under, more, r);
  r = vm_cast(d, r, PESTLE_F32);
  r = vm_copy_sign(v, r, x, PESTLE_I32);
  return vm_select(v, itself, x, r);
}
