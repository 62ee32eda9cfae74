// SPDX-License-Identifier: Apache-2.0
// log and log1p in f32, and rsqrt.
//
// x = 2^n (1 + f) with f in [-1/3, 1/3], found by integer arithmetic on the
// bits; log(x) = n ln2 + f + f^2 p(f). Near 1, n is 0 and f exact, so that the
// result's precision is relative.
#include "codegen/legalise/vector_math_f64.h"
#include "codegen/legalise/vector_math_poly.h"

#define LN2 0x1.62e430p-1
#define LN2_REST -0x1.05c6100000000p-29
#define TWO_THIRDS 0x3f2aaaab

// The exponent's part of |bits| of a positive normal float, as a multiple of
// 2^23, such that what remains is in [2/3, 4/3].
static vm_id_t exponent_of(vm_t v, vm_id_t bits) {
  vm_t i = vm_as(v, PESTLE_I32);
  vm_id_t e = vm_op2i(i, PESTLE_OP_SUBTRACT, bits, TWO_THIRDS);
  return vm_op2i(i, PESTLE_OP_AND, e, -0x800000);
}

// n ln2 + log(1 + f), where |e| is n * 2^23 and |offset| is added to n.
static vm_id_t log_sum(vm_t v, vm_id_t e, vm_id_t f, vm_id_t offset) {
  vm_id_t n = vm_cast(v, e, PESTLE_F32);
  n = vm_scale_add(v, n, 0x1p-23, offset);
  vm_id_t p = VM_POLY(v, f, poly_log_f32);
  vm_id_t square = vm_mul(v, f, f);
  p = vm_fma(v, square, p, f);
  return vm_scale_add(v, n, LN2, p);
}

// |r| where |u| is positive and finite; inf and NaN as |u| has them, -inf at 0
// and NaN below.
static vm_id_t log_edges(vm_t v, vm_id_t u, vm_id_t r) {
  vm_id_t finite = vm_op2f(v, PESTLE_OP_LT, u, (double)INFINITY);
  r = vm_select(v, finite, r, u);
  vm_id_t nan = vm_const(v, (double)NAN);
  vm_id_t negative = vm_op2f(v, PESTLE_OP_LT, u, 0.0);
  r = vm_select(v, negative, nan, r);
  vm_id_t pole = vm_const(v, -(double)INFINITY);
  vm_id_t zero = vm_op2f(v, PESTLE_OP_EQ, u, 0.0);
  return vm_select(v, zero, pole, r);
}

vm_pair_t pestle_vm_log_pair(vm_t v, vm_id_t x) {
  vm_t i = vm_as(v, PESTLE_I32);
  vm_pair_t r;
  vm_id_t bits = vm_bits(v, x, PESTLE_I32);
  vm_id_t e = exponent_of(v, bits);
  vm_id_t m = vm_sub(i, bits, e);
  vm_id_t f = vm_bits(v, m, PESTLE_F32);
  f = vm_op2f(v, PESTLE_OP_SUBTRACT, f, 1.0);
  vm_id_t n = vm_cast(v, e, PESTLE_F32);
  n = vm_op2f(v, PESTLE_OP_MULTIPLY, n, 0x1p-23);
  vm_id_t p = VM_POLY(v, f, poly_log_f32);
  vm_id_t square = vm_mul(v, f, f);
  p = vm_fma(v, square, p, f);
  r.hi = vm_scale_add(v, n, LN2, p);
  vm_id_t minus = vm_neg(v, r.hi);
  r.lo = vm_scale_add(v, n, LN2, minus);
  r.lo = vm_add(v, r.lo, p);
  r.lo = vm_scale_add(v, n, LN2_REST, r.lo);
  return r;
}

// Denormals are scaled by 2^23. At most 0.95 ulp.
vm_id_t pestle_vm_log(vm_t v, vm_id_t x) {
  vm_t i = vm_as(v, PESTLE_I32);
  vm_id_t tiny = vm_op2f(v, PESTLE_OP_LT, x, 0x1p-126);
  vm_id_t scaled = vm_op2f(v, PESTLE_OP_MULTIPLY, x, 0x1p+23);
  scaled = vm_select(v, tiny, scaled, x);
  vm_id_t minus = vm_const(v, -23.0);
  vm_id_t zero = vm_const(v, 0.0);
  vm_id_t offset = vm_select(v, tiny, minus, zero);
  vm_id_t bits = vm_bits(v, scaled, PESTLE_I32);
  vm_id_t e = exponent_of(v, bits);
  vm_id_t m = vm_sub(i, bits, e);
  vm_id_t f = vm_bits(v, m, PESTLE_F32);
  f = vm_op2f(v, PESTLE_OP_SUBTRACT, f, 1.0);
  vm_id_t r = log_sum(v, e, f, offset);
  return log_edges(v, x, r);
}

// The exponent is that of u = 1 + x, but f is taken from x itself by one fma:
// f = x 2^-n + (2^-n - 1), which loses nothing while n is small. 2^-n is taken
// four times as large, since 2^-127 is no normal float. At most 1.5 ulp.
vm_id_t pestle_vm_log1p(vm_t v, vm_id_t x) {
  vm_t i = vm_as(v, PESTLE_I32);
  vm_id_t u = vm_op2f(v, PESTLE_OP_ADD, x, 1.0);
  vm_id_t bits = vm_bits(v, u, PESTLE_I32);
  vm_id_t e = exponent_of(v, bits);
  vm_id_t four = vm_int(i, 0x40800000);
  vm_id_t scale = vm_sub(i, four, e);
  scale = vm_bits(v, scale, PESTLE_F32);
  vm_id_t quarter = vm_const(v, 0.25);
  vm_id_t rest = vm_fma_const(v, scale, quarter, -1.0);
  vm_id_t part = vm_mul(v, x, quarter);
  vm_id_t f = vm_fma(v, part, scale, rest);
  vm_id_t zero = vm_const(v, 0.0);
  vm_id_t r = log_sum(v, e, f, zero);
  r = log_edges(v, u, r);
  vm_id_t size = vm_abs(v, x);
  vm_id_t small = vm_op2f(v, PESTLE_OP_LT, size, 0x1p-26);
  return vm_select(v, small, x, r);
}

// Two roundings: at most 1.46 ulp.
vm_id_t pestle_vm_rsqrt(vm_t v, vm_id_t x) {
  vm_id_t root = vm_op1(v, PESTLE_OP_SQRT, x);
  vm_id_t one = vm_const(v, 1.0);
  return vm_div(v, one, root);
}
