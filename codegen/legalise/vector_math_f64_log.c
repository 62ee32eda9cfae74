// SPDX-License-Identifier: Apache-2.0
// log and log1p in f64, and log as a pair for power.
//
// x = 2^n m with m = 1 + f in [sqrt(1/2), sqrt(2)). With s = f / (2 + f),
// log(m) = 2s + s z p(z), z = s^2, and since 2s = f - s f, f can lead the sum:
// f is exact, and what is small beside it carries the roundings.
#include "codegen/legalise/vector_math_f64.h"
#include "codegen/legalise/vector_math_f64_poly.h"

#define SQRT_HALF INT64_C(0x3fe6a09e667f3bcd)
#define TWO_TO_52 (INT64_C(0x433) << 52)

// n 2^52 for |bits| of 2^n m.
static vm_id_t exponent_of(vm_t v, vm_id_t bits) {
  vm_t i = vm_as(v, PESTLE_I64);
  vm_id_t e = vm_op2i(i, PESTLE_OP_SUBTRACT, bits, SQRT_HALF);
  return vm_op2i(i, PESTLE_OP_AND, e, -(INT64_C(1) << 52));
}

// n as a float, by its place in the low bits of 2^52: few targets convert 64-bit
// integers. 2048 keeps it positive on the way.
static vm_id_t exponent_value(vm_t v, vm_id_t e) {
  vm_t i = vm_as(v, PESTLE_I64);
  vm_id_t n = vm_op2i(i, PESTLE_OP_ADD, e, (int64_t)(UINT64_C(2048) << 52));
  n = vm_op2i(i, PESTLE_OP_SHIFT_RIGHT_LOGICAL, n, 52);
  n = vm_op2i(i, PESTLE_OP_OR, n, TWO_TO_52);
  n = vm_bits(i, n, PESTLE_F64);
  return vm_op2f(v, PESTLE_OP_SUBTRACT, n, 0x1p+52 + 2048);
}

// n ln2 + log(1 + f).
static vm_id_t log_sum(vm_t v, vm_id_t n, vm_id_t f) {
  vm_id_t below = vm_op2f(v, PESTLE_OP_ADD, f, 2.0);
  vm_id_t s = vm_div(v, f, below);
  vm_id_t z = vm_mul(v, s, s);
  vm_id_t p = VM_POLY(v, z, poly_log_full);
  p = vm_mul(v, p, z);
  // 2s = f - f^2/2 + s f^2/2.
  vm_id_t half = vm_op2f(v, PESTLE_OP_MULTIPLY, f, 0.5);
  half = vm_mul(v, half, f);
  p = vm_add(v, p, half);
  vm_id_t rest = vm_op2f(v, PESTLE_OP_MULTIPLY, n, VM_LN2_SHORT_REST);
  rest = vm_fma(v, s, p, rest);
  rest = vm_sub(v, half, rest);
  rest = vm_sub(v, rest, f);
  rest = vm_neg(v, rest);
  return vm_scale_add(v, n, VM_LN2_SHORT, rest);
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

// m and n of |x|; denormals are scaled by 2^54.
static vm_id_t split(vm_t v, vm_id_t x, vm_id_t* out_n) {
  vm_t i = vm_as(v, PESTLE_I64);
  vm_id_t tiny = vm_op2f(v, PESTLE_OP_LT, x, 0x1p-1022);
  vm_id_t scaled = vm_op2f(v, PESTLE_OP_MULTIPLY, x, 0x1p+54);
  scaled = vm_select(v, tiny, scaled, x);
  vm_id_t bits = vm_bits(v, scaled, PESTLE_I64);
  vm_id_t e = exponent_of(v, bits);
  vm_id_t m = vm_sub(i, bits, e);
  vm_id_t n = exponent_value(v, e);
  vm_id_t less = vm_op2f(v, PESTLE_OP_SUBTRACT, n, 54.0);
  *out_n = vm_select(v, tiny, less, n);
  return vm_bits(i, m, PESTLE_F64);
}

vm_id_t pestle_vm_log_f64(vm_t v, vm_id_t x) {
  vm_id_t n;
  vm_id_t m = split(v, x, &n);
  vm_id_t f = vm_op2f(v, PESTLE_OP_SUBTRACT, m, 1.0);
  vm_id_t r = log_sum(v, n, f);
  return log_edges(v, x, r);
}

// As in f32: the exponent of u = 1 + x, f from x itself.
vm_id_t pestle_vm_log1p_f64(vm_t v, vm_id_t x) {
  vm_t i = vm_as(v, PESTLE_I64);
  vm_id_t u = vm_op2f(v, PESTLE_OP_ADD, x, 1.0);
  vm_id_t bits = vm_bits(v, u, PESTLE_I64);
  vm_id_t e = exponent_of(v, bits);
  vm_id_t four = vm_int(i, INT64_C(0x401) << 52);
  vm_id_t scale = vm_sub(i, four, e);
  scale = vm_bits(i, scale, PESTLE_F64);
  vm_id_t quarter = vm_const(v, 0.25);
  vm_id_t rest = vm_fma_const(v, scale, quarter, -1.0);
  vm_id_t part = vm_mul(v, x, quarter);
  vm_id_t f = vm_fma(v, part, scale, rest);
  vm_id_t n = exponent_value(v, e);
  vm_id_t r = log_sum(v, n, f);
  r = log_edges(v, u, r);
  vm_id_t size = vm_abs(v, x);
  vm_id_t small = vm_op2f(v, PESTLE_OP_LT, size, 0x1p-55);
  return vm_select(v, small, x, r);
}

// 2s + 2/3 s^3 as pairs, the rest of the series beside them in one float.
vm_pair_t pestle_vm_log_pair_f64(vm_t v, vm_id_t a) {
  vm_id_t n;
  vm_id_t m = split(v, a, &n);
  vm_pair_t above, below;
  above.hi = vm_op2f(v, PESTLE_OP_SUBTRACT, m, 1.0);
  above.lo = vm_const(v, 0.0);
  below.hi = vm_op2f(v, PESTLE_OP_ADD, m, 1.0);
  vm_id_t back = vm_op2f(v, PESTLE_OP_SUBTRACT, below.hi, 1.0);
  below.lo = vm_sub(v, m, back);
  vm_pair_t s = vm_pair_quotient(v, above, below);
  vm_pair_t z = vm_pair_product(v, s.hi, s.hi);
  vm_id_t twice = vm_add(v, s.hi, s.hi);
  z.lo = vm_fma(v, twice, s.lo, z.lo);
  vm_pair_t cube = vm_pair_product(v, s.hi, z.hi);
  cube.lo = vm_fma(v, s.hi, z.lo, cube.lo);
  cube.lo = vm_fma(v, s.lo, z.hi, cube.lo);
  vm_id_t third = vm_const(v, 0x1.5555555555555p-1);
  vm_pair_t second = vm_pair_product(v, cube.hi, third);
  second.lo = vm_scale_add(v, cube.hi, 0x1.5555555555555p-55, second.lo);
  second.lo = vm_fma(v, cube.lo, third, second.lo);
  vm_id_t p = VM_POLY(v, z.hi, poly_log_tail);
  p = vm_mul(v, p, z.hi);
  second.lo = vm_fma(v, p, cube.hi, second.lo);
  vm_pair_t sum = vm_pair_sum(v, twice, second.hi);
  sum.lo = vm_add(v, sum.lo, second.lo);
  sum.lo = vm_scale_add(v, s.lo, 2.0, sum.lo);
  vm_id_t whole = vm_op2f(v, PESTLE_OP_MULTIPLY, n, VM_LN2_SHORT);
  vm_pair_t r = vm_pair_sum(v, whole, sum.hi);
  r.lo = vm_add(v, r.lo, sum.lo);
  r.lo = vm_scale_add(v, n, VM_LN2_SHORT_REST, r.lo);
  return vm_pair_sum(v, r.hi, r.lo);
}
