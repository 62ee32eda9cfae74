// SPDX-License-Identifier: Apache-2.0
// The exponential family in f64. The forms are those of vector_math.c with
// longer polynomials; the errors given are the largest that
// vector_math_f64_test.c meets in 2^20 numbers a range.
#include "codegen/legalise/vector_math_f64.h"

#include "codegen/legalise/vector_math_f64_poly.h"

#define LOG2E 0x1.71547652b82fep+0

// 2^n in two halves. n stands in the low bits of |z|; only twelve of them are left
// after the shift, so that it does not matter what comes in from above.
static void halve_power(vm_t v, vm_id_t z, vm_exp_t* e) {
  vm_t i = vm_as(v, PESTLE_I64);
  vm_id_t bits = vm_bits(v, z, PESTLE_I64);
  vm_id_t all = vm_op2i(i, PESTLE_OP_SHIFT_LEFT, bits, 52);
  vm_id_t half = vm_op2i(i, PESTLE_OP_SHIFT_RIGHT_LOGICAL, bits, 1);
  half = vm_op2i(i, PESTLE_OP_SHIFT_LEFT, half, 52);
  vm_id_t rest = vm_sub(i, all, half);
  half = vm_op2i(i, PESTLE_OP_ADD, half, VM_EXPONENT_ONE);
  rest = vm_op2i(i, PESTLE_OP_ADD, rest, VM_EXPONENT_ONE);
  e->low = vm_bits(v, half, PESTLE_F64);
  e->high = vm_bits(v, rest, PESTLE_F64);
}

// e^r - 1, |lost| added to it, which r lost
static vm_id_t above_one(vm_t v, vm_id_t r, vm_id_t lost) {
  vm_id_t p = VM_POLY(v, r, poly_exp_full);
  vm_id_t square = vm_mul(v, r, r);
  vm_id_t q = vm_fma(v, square, p, lost);
  return vm_add(v, q, r);
}

vm_exp_t pestle_vm_exp_parts_f64(vm_t v, vm_id_t x) {
  vm_exp_t e = {0, 0, 0, 0, 0};
  vm_id_t scale = vm_const(v, LOG2E);
  vm_id_t z = vm_fma_const(v, x, scale, VM_MAGIC);
  vm_id_t n = vm_op2f(v, PESTLE_OP_SUBTRACT, z, VM_MAGIC);
  // Exact: a multiple of 2^-54 below 0.35.
  vm_id_t whole = vm_scale_add(v, n, -VM_LN2, x);
  vm_id_t r = vm_scale_add(v, n, -VM_LN2_REST, whole);
  // What r lost, without which expm1 comes close to 2 ulp.
  vm_id_t lost = vm_sub(v, whole, r);
  lost = vm_scale_add(v, n, -VM_LN2_REST, lost);
  e.q = above_one(v, r, lost);
  halve_power(v, z, &e);
  return e;
}

static vm_id_t times_power(vm_t v, vm_exp_t e) {
  vm_id_t p = vm_op2f(v, PESTLE_OP_ADD, e.q, 1.0);
  p = vm_mul(v, p, e.low);
  return vm_mul(v, p, e.high);
}

vm_id_t pestle_vm_exp_f64(vm_t v, vm_id_t x) {
  x = vm_at_most(v, x, 710.0);
  x = vm_at_least(v, x, -746.0);
  return times_power(v, pestle_vm_exp_parts_f64(v, x));
}

// 2^x = 2^n e^(r ln2) with r = x - n, which is exact.
vm_id_t pestle_vm_exp2_f64(vm_t v, vm_id_t x) {
  x = vm_at_most(v, x, 1025.0);
  x = vm_at_least(v, x, -1076.0);
  vm_id_t z = vm_op2f(v, PESTLE_OP_ADD, x, VM_MAGIC);
  vm_id_t n = vm_op2f(v, PESTLE_OP_SUBTRACT, z, VM_MAGIC);
  vm_id_t r = vm_sub(v, x, n);
  vm_id_t y = vm_op2f(v, PESTLE_OP_MULTIPLY, r, VM_LN2);
  vm_id_t lost = vm_neg(v, y);
  lost = vm_scale_add(v, r, VM_LN2, lost);
  vm_exp_t e = {.q = above_one(v, y, lost)};
  halve_power(v, z, &e);
  return times_power(v, e);
}

vm_id_t pestle_vm_expm1_f64(vm_t v, vm_id_t x) {
  vm_id_t bounded = vm_at_most(v, x, 710.0);
  bounded = vm_at_least(v, bounded, -40.0);
  vm_exp_t e = pestle_vm_exp_parts_f64(v, bounded);
  vm_id_t half = vm_op2f(v, PESTLE_OP_MULTIPLY, e.low, 0.5);
  half = vm_mul(v, half, e.high);
  vm_id_t rest = vm_op2f(v, PESTLE_OP_SUBTRACT, half, 0.5);
  vm_id_t p = vm_fma(v, half, e.q, rest);
  p = vm_add(v, p, p);
  vm_id_t size = vm_abs(v, x);
  vm_id_t small = vm_op2f(v, PESTLE_OP_LT, size, 0x1p-55);
  return vm_select(v, small, x, p);
}

vm_id_t pestle_vm_logistic_f64(vm_t v, vm_id_t x) {
  vm_t i = vm_as(v, PESTLE_I64);
  vm_id_t a = vm_neg(v, x);
  a = vm_at_most(v, a, 746.0);
  a = vm_at_least(v, a, -746.0);
  vm_exp_t e = pestle_vm_exp_parts_f64(v, a);
  vm_id_t high = vm_bits(v, e.high, PESTLE_I64);
  vm_id_t twice_bias = vm_int(i, 2 * VM_EXPONENT_ONE);
  vm_id_t c = vm_sub(i, twice_bias, high);
  c = vm_bits(i, c, PESTLE_F64);
  vm_id_t sum = vm_add(v, c, e.low);
  vm_id_t lost = vm_sub(v, sum, e.low);
  lost = vm_sub(v, c, lost);
  vm_id_t rest = vm_fma(v, e.low, e.q, lost);
  sum = vm_add(v, sum, rest);
  return vm_div(v, c, sum);
}

vm_id_t pestle_vm_tanh_f64(vm_t v, vm_id_t x) {
  vm_id_t a = vm_abs(v, x);
  vm_id_t twice = vm_add(v, a, a);
  twice = vm_at_most(v, twice, 44.0);
  vm_exp_t e = pestle_vm_exp_parts_f64(v, twice);
  vm_id_t s = vm_mul(v, e.low, e.high);
  vm_id_t below = vm_op2f(v, PESTLE_OP_ADD, s, 1.0);
  below = vm_fma(v, s, e.q, below);
  vm_id_t two = vm_const(v, -2.0);
  vm_id_t large = vm_div(v, two, below);
  large = vm_op2f(v, PESTLE_OP_ADD, large, 1.0);
  vm_id_t square = vm_mul(v, a, a);
  vm_id_t p = VM_POLY(v, square, poly_tanh_full);
  p = vm_mul(v, p, square);
  vm_id_t small = vm_fma(v, p, a, a);
  vm_id_t is_small = vm_op2f(v, PESTLE_OP_LT, a, 0.625);
  vm_id_t r = vm_select(v, is_small, small, large);
  return vm_copy_sign(v, r, x, PESTLE_I64);
}

// 1 from 5.93 on.
vm_id_t pestle_vm_erf_f64(vm_t v, vm_id_t x) {
  vm_id_t a = vm_abs(v, x);
  vm_id_t t = vm_at_most(v, a, 6.0);
  vm_id_t u = vm_op2f(v, PESTLE_OP_SUBTRACT, t, 3.0);
  vm_id_t p = VM_POLY(v, u, poly_erfc_full);
  p = vm_mul(v, p, t);
  p = vm_neg(v, p);
  vm_exp_t e = pestle_vm_exp_parts_f64(v, p);
  vm_id_t s = vm_mul(v, e.low, e.high);
  vm_id_t rest = vm_op2f(v, PESTLE_OP_SUBTRACT, s, 1.0);
  vm_id_t large = vm_fma(v, s, e.q, rest);
  large = vm_neg(v, large);
  vm_id_t square = vm_mul(v, a, a);
  vm_id_t q = VM_POLY(v, square, poly_erf_full);
  vm_id_t small = vm_fma(v, q, a, a);
  vm_id_t is_small = vm_op2f(v, PESTLE_OP_LT, a, 1.0);
  vm_id_t r = vm_select(v, is_small, small, large);
  return vm_copy_sign(v, r, x, PESTLE_I64);
}
