// SPDX-License-Identifier: Apache-2.0
// The exponential family in f32: exp, exp2, expm1, logistic, tanh, erf.
//
// e^x = 2^n e^r with n = rint(x / ln2) and r = x - n ln2 in [-ln2/2, ln2/2]
// (Cody and Waite: ln2 in two parts, so that n * high is exact under fma), and
// e^r = 1 + q, q = r + r^2 p(r). The n comes out of the low bits of a float to
// which 1.5 * 2^23 was added, so no conversion is needed. Where the target has no
// SCALE, 2^n is applied in two halves, so that denormal results are rounded once
// and overflow is inf: six more instructions, and a product.
//
// The errors given with each function are measured over 2^25 bit patterns
// spread over f32 and as many numbers where it bends (vector_math_test.c takes
// 2^20).
#include "codegen/legalise/vector_math_internal.h"
#include "codegen/legalise/vector_math_poly.h"

#define LOG2E 0x1.715476p+0
#define LN2_HIGH 0x1.62e400p-1  // 15 bits: n * LN2_HIGH is exact
#define LN2_LOW 0x1.7f7d1cp-20
#define MAGIC 0x1.8p+23

// 2^n in two halves: n stands in the low bits of |z|; the magic has none that
// stay.
static void halve_power(vm_t v, vm_id_t z, vm_exp_t* e) {
  vm_t i = vm_as(v, PESTLE_I32);
  vm_id_t bits = vm_bits(v, z, PESTLE_I32);
  vm_id_t all = vm_op2i(i, PESTLE_OP_SHIFT_LEFT, bits, 23);
  vm_id_t half = vm_op2i(i, PESTLE_OP_SHIFT_RIGHT_ARITHMETIC, bits, 1);
  half = vm_op2i(i, PESTLE_OP_SHIFT_LEFT, half, 23);
  vm_id_t rest = vm_sub(i, all, half);
  half = vm_op2i(i, PESTLE_OP_ADD, half, 0x3f800000);
  rest = vm_op2i(i, PESTLE_OP_ADD, rest, 0x3f800000);
  e->low = vm_bits(v, half, PESTLE_F32);
  e->high = vm_bits(v, rest, PESTLE_F32);
}

// x - |times| n ln2: |times| is 1, or -1 where |n| is -n.
static vm_id_t reduced(vm_t v, vm_id_t x, vm_id_t n, double times) {
  vm_id_t r = vm_scale_add(v, n, -times * LN2_HIGH, x);
  return vm_scale_add(v, n, -times * LN2_LOW, r);
}

// e^r - 1
static vm_id_t above_one(vm_t v, vm_id_t r) {
  vm_id_t p = VM_POLY(v, r, poly_exp_f32);
  vm_id_t square = vm_mul(v, r, r);
  return vm_fma(v, square, p, r);
}

// 2^n into |e|; r.
static vm_id_t split_power(vm_t v, vm_id_t x, vm_exp_t* e) {
  vm_id_t scale = vm_const(v, LOG2E);
  vm_id_t z = vm_fma_const(v, x, scale, MAGIC);
  e->n = vm_op2f(v, PESTLE_OP_SUBTRACT, z, MAGIC);
  e->z = z;
  if (!(v.has & VM_SCALES)) halve_power(v, z, e);
  return reduced(v, x, e->n, 1);
}

vm_exp_t pestle_vm_exp_parts(vm_t v, vm_id_t x) {
  vm_exp_t e = {0, 0, 0, 0, 0};
  vm_id_t r = split_power(v, x, &e);
  e.q = above_one(v, r);
  return e;
}

vm_id_t pestle_vm_times_power(vm_t v, vm_id_t y, vm_exp_t e) {
  if (v.has & VM_SCALES) return pestle_kir_scale(v.k, y, e.n);
  y = vm_mul(v, y, e.low);
  return vm_mul(v, y, e.high);
}

vm_id_t pestle_vm_power(vm_t v, vm_exp_t e) {
  if (!(v.has & VM_SCALES)) return vm_mul(v, e.low, e.high);
  vm_id_t one = vm_const(v, 1.0);
  return pestle_kir_scale(v.k, one, e.n);
}

// 2^n that is a normal number.
static vm_id_t small_power(vm_t v, vm_exp_t e) {
  if (v.has & VM_SCALES) return pestle_vm_power(v, e);
  vm_t i = vm_as(v, PESTLE_I32);
  vm_id_t bits = vm_bits(v, e.z, PESTLE_I32);
  bits = vm_op2i(i, PESTLE_OP_SHIFT_LEFT, bits, 23);
  bits = vm_op2i(i, PESTLE_OP_ADD, bits, 0x3f800000);
  return vm_bits(i, bits, PESTLE_F32);
}

// (1 + r (1 + r p)) 2^n, at most 0.9 ulp. What vanishes is 0 times its power of 2 where
// that is one instruction: a CPU takes a hundred cycles for one that underflows, and
// the scores that a mask hides all do. The choice is the mask of the sum before, which
// hides what r becomes then; 0 times 2^n is 0 for any n (kir.def).
vm_id_t pestle_vm_exp(vm_t v, vm_id_t x) {
  x = vm_at_most(v, x, 89.0);
  vm_id_t least = vm_const(v, -104.0);
  vm_id_t vanishes = vm_op2(v, PESTLE_OP_LT, x, least);
  if (!(v.has & VM_SCALES)) x = vm_select(v, vanishes, least, x);
  vm_exp_t e = {0, 0, 0, 0, 0};
  vm_id_t r = split_power(v, x, &e);
  vm_id_t p = VM_POLY(v, r, poly_exp_f32);
  p = vm_fma_const(v, p, r, 1.0);
  p = vm_fma_const(v, p, r, 1.0);
  if (v.has & VM_SCALES) {
    vm_id_t zero = vm_const(v, 0.0);
    p = vm_select(v, vanishes, zero, p);
  }
  return pestle_vm_times_power(v, p, e);
}

// 2^t = 2^n (1 + r p(r)) with r = t - n, which is exact; 0 where |vanishes|, if that is
// a value.
static vm_id_t power_of_two(vm_t v, vm_id_t t, vm_id_t vanishes) {
  vm_id_t z = vm_op2f(v, PESTLE_OP_ADD, t, MAGIC);
  vm_exp_t e = {.n = vm_op2f(v, PESTLE_OP_SUBTRACT, z, MAGIC)};
  if (!(v.has & VM_SCALES)) halve_power(v, z, &e);
  vm_id_t r = vm_sub(v, t, e.n);
  vm_id_t p = VM_POLY(v, r, poly_exp2_f32);
  p = vm_fma_const(v, p, r, 1.0);
  if (vanishes != PESTLE_KIR_NONE) {
    vm_id_t zero = vm_const(v, 0.0);
    p = vm_select(v, vanishes, zero, p);
  }
  return pestle_vm_times_power(v, p, e);
}

// What vanishes is 0 as e^x is. At most 0.9 ulp.
vm_id_t pestle_vm_exp2(vm_t v, vm_id_t x) {
  x = vm_at_most(v, x, 129.0);
  if (!(v.has & VM_SCALES)) {
    x = vm_at_least(v, x, -150.0);
    return power_of_two(v, x, PESTLE_KIR_NONE);
  }
  vm_id_t vanishes = vm_op2f(v, PESTLE_OP_LT, x, -150.0);
  return power_of_two(v, x, vanishes);
}

// 2^n q + (2^n - 1), halved on the way, since 2^128 is no float; where x is so
// small that e^x - 1 rounds to x, x, which keeps -0 and denormals. At most 1.5
// ulp.
vm_id_t pestle_vm_expm1(vm_t v, vm_id_t x) {
  vm_id_t bounded = vm_at_most(v, x, 89.0);
  bounded = vm_at_least(v, bounded, -20.0);
  vm_exp_t e = pestle_vm_exp_parts(v, bounded);
  vm_id_t half = vm_const(v, 0.5);
  half = pestle_vm_times_power(v, half, e);
  vm_id_t rest = vm_op2f(v, PESTLE_OP_SUBTRACT, half, 0.5);
  vm_id_t p = vm_fma(v, half, e.q, rest);
  p = vm_add(v, p, p);
  vm_id_t size = vm_abs(v, x);
  vm_id_t small = vm_op2f(v, PESTLE_OP_LT, size, 0x1p-26);
  return vm_select(v, small, x, p);
}

// 1 / (1 + e^-x) with e^-x = (1 + q) 2^n and c = 2^-n: c / (c + 1 + q). What a
// small c loses in the first sum is added with q. Nothing overflows, and what is
// denormal on the left are c and the result, of one division.
static vm_id_t logistic_by_scale(vm_t v, vm_id_t x) {
  x = vm_at_most(v, x, 30.0);
  x = vm_at_least(v, x, -104.0);
  vm_id_t a = vm_neg(v, x);
  vm_id_t scale = vm_const(v, LOG2E);
  vm_id_t z = vm_fma_const(v, a, scale, MAGIC);
  vm_id_t magic = vm_const(v, MAGIC);
  vm_id_t minus_n = vm_sub(v, magic, z);
  vm_id_t q = above_one(v, reduced(v, a, minus_n, -1));
  vm_id_t one = vm_const(v, 1.0);
  vm_id_t c = pestle_kir_scale(v.k, one, minus_n);
  vm_id_t sum = vm_add(v, c, one);
  vm_id_t lost = vm_sub(v, sum, one);
  lost = vm_sub(v, c, lost);
  lost = vm_add(v, lost, q);
  sum = vm_add(v, sum, lost);
  return vm_div(v, c, sum);
}

// 1 / (1 + e^-x). With e^-x = (1 + q) s / c, s and c about equal halves of the power of 2,
// that is c / (c + s + s q): the sum c + s is exact, or what it loses is added later, and
// nothing overflows, so that the denormal results on the left are those of one division.
// At most 1.7 ulp.
vm_id_t pestle_vm_logistic(vm_t v, vm_id_t x) {
  if (v.has & VM_SCALES) return logistic_by_scale(v, x);
  vm_t i = vm_as(v, PESTLE_I32);
  vm_id_t a = vm_neg(v, x);
  a = vm_at_most(v, a, 104.0);
  a = vm_at_least(v, a, -104.0);
  vm_exp_t e = {0, 0, 0, 0, 0};
  vm_id_t r = split_power(v, a, &e);
  e.q = above_one(v, r);
  vm_id_t low = vm_bits(v, e.low, PESTLE_I32);
  vm_id_t all = vm_bits(v, e.z, PESTLE_I32);
  all = vm_op2i(i, PESTLE_OP_SHIFT_LEFT, all, 23);
  vm_id_t c = vm_sub(i, low, all);
  c = vm_bits(i, c, PESTLE_F32);
  vm_id_t sum = vm_add(v, c, e.low);
  vm_id_t lost = vm_sub(v, sum, e.low);
  lost = vm_sub(v, c, lost);
  vm_id_t rest = vm_fma(v, e.low, e.q, lost);
  sum = vm_add(v, sum, rest);
  return pestle_vm_quotient(v, c, sum);
}

vm_id_t pestle_vm_tanh_joined(vm_t v, vm_id_t x, vm_id_t a, vm_id_t large) {
  vm_id_t square = vm_mul(v, a, a);
  vm_id_t p = VM_POLY(v, square, poly_tanh_f32);
  p = vm_mul(v, p, square);
  vm_id_t small = vm_fma(v, p, a, a);
  vm_id_t is_small = vm_op2f(v, PESTLE_OP_LT, a, 0.625);
  vm_id_t r = vm_select(v, is_small, small, large);
  return vm_copy_sign(v, r, x, PESTLE_I32);
}

// With a = |x| < 0.625: a + a^3 p(a^2). Else 1 - 2 / (e^(2a) + 1), which is 1
// from 10 on. The sign of x goes on last. At most 1.3 ulp.
vm_id_t pestle_vm_tanh(vm_t v, vm_id_t x) {
  vm_id_t a = vm_abs(v, x);
  vm_id_t twice = vm_add(v, a, a);
  twice = vm_at_most(v, twice, 20.0);
  vm_exp_t e = pestle_vm_exp_parts(v, twice);
  vm_id_t s = small_power(v, e);
  vm_id_t below = vm_op2f(v, PESTLE_OP_ADD, s, 1.0);
  below = vm_fma(v, s, e.q, below);
  vm_id_t two = vm_const(v, -2.0);
  vm_id_t large = pestle_vm_quotient(v, two, below);
  large = vm_op2f(v, PESTLE_OP_ADD, large, 1.0);
  return pestle_vm_tanh_joined(v, x, a, large);
}

// With a = |x| < 0.93: a + a p(a^2). Else 1 - e^(-t p(t)) with t = a up to 4,
// where it has long been 1. At most 1.0 ulp.
vm_id_t pestle_vm_erf(vm_t v, vm_id_t x) {
  vm_id_t a = vm_abs(v, x);
  vm_id_t t = vm_at_most(v, a, 4.0);
  vm_id_t p = VM_POLY(v, t, poly_erfc_f32);
  p = vm_mul(v, p, t);
  p = vm_neg(v, p);
  vm_exp_t e = pestle_vm_exp_parts(v, p);
  vm_id_t s = pestle_vm_power(v, e);
  vm_id_t rest = vm_op2f(v, PESTLE_OP_SUBTRACT, s, 1.0);
  vm_id_t large = vm_fma(v, s, e.q, rest);
  large = vm_neg(v, large);
  vm_id_t square = vm_mul(v, a, a);
  vm_id_t q = VM_POLY(v, square, poly_erf_f32);
  vm_id_t small = vm_fma(v, q, a, a);
  vm_id_t is_small = vm_op2f(v, PESTLE_OP_LT, a, 0.93);
  vm_id_t r = vm_select(v, is_small, small, large);
  return vm_copy_sign(v, r, x, PESTLE_I32);
}

// 1 + erf(x): erfc(-x) on the left, 2 - erfc(x) on the right. One polynomial where
// erf has two, since near 0 the sum's rounding hides what the second one is for.
// erfc(t) is 2^(t p(t)), and 0 from 5 on, where it is less than 2^-39. At most 1.05
// ulp on the right, where a rounded erf and 1 are 0.98 off, and 1.2 times 2^-24 on the
// left, where they are 0.98 times that.
vm_id_t pestle_vm_erf_plus_one(vm_t v, vm_id_t x) {
  vm_id_t a = vm_abs(v, x);
  vm_id_t most = vm_const(v, 5.0);
  vm_id_t vanishes = vm_op2(v, PESTLE_OP_GT, a, most);
  vm_id_t t = vm_select(v, vanishes, most, a);
  vm_id_t y = VM_POLY(v, t, poly_erfc_power_f32);
  y = vm_mul(v, y, t);
  vm_id_t q = power_of_two(v, y, vanishes);
  vm_id_t two = vm_const(v, 2.0);
  vm_id_t zero = vm_const(v, 0.0);
  vm_id_t right = vm_sub(v, two, q);
  vm_id_t is_left = vm_op2(v, PESTLE_OP_LT, x, zero);
  return vm_select(v, is_left, q, right);
}
