// SPDX-License-Identifier: Apache-2.0
// erfc and the inverse of erf, in f32 and f64 by the same forms.
//
// erfc(a) e^(a^2) (1 + 2 a) lies between 1 and 1.27 for all a >= 0, and is a
// polynomial of q = (a - k) / (a + k), which is in [-1, 1). So what is left is
// e^(-a^2), of a square in two parts, over 1 + 2 a.
//
// With w = -log(1 - x^2), erf_inv(x) / x is smooth in w while that is small and
// in its root further out. 1 - x^2 is one fma: as near 1 as at 0 it is rounded
// once, and a relative error of w shows half as large in the result.
//
// Polynomials are what is added to a constant with few bits, so that their
// first coefficient's rounding and most of their own do not show.
#include "codegen/legalise/vector_math_f64.h"
#include "codegen/legalise/vector_math_f64_poly.h"
#include "codegen/legalise/vector_math_internal.h"
#include "codegen/legalise/vector_math_poly.h"

// --- erfc ---

// (a - k) / (a + k), with what the difference and the quotient lose.
static vm_id_t ratio(vm_t v, vm_id_t a, double k) {
  vm_id_t above = vm_op2f(v, PESTLE_OP_SUBTRACT, a, k);
  vm_id_t below = vm_op2f(v, PESTLE_OP_ADD, a, k);
  vm_id_t q = vm_div(v, above, below);
  vm_id_t more = vm_op2f(v, PESTLE_OP_ADD, q, 1.0);
  vm_id_t rest = vm_scale_add(v, more, -k, a);
  vm_id_t minus = vm_neg(v, q);
  rest = vm_fma(v, minus, a, rest);
  rest = vm_div(v, rest, below);
  return vm_add(v, q, rest);
}

// (1.25 + |p|) (1 + q) / (1 + 2 a), with the roundings of all but the last sum
// put back: |e| is e^-h, and the square is h + |low|.
static vm_id_t scaled(vm_t v, vm_id_t p, vm_exp_t e, vm_id_t low, vm_id_t a) {
  vm_id_t minus = vm_neg(v, low);
  vm_id_t q = vm_fma(v, minus, e.q, e.q);
  q = vm_sub(v, q, low);
  vm_id_t f = vm_op2f(v, PESTLE_OP_ADD, p, 1.25);
  vm_id_t lost = vm_op2f(v, PESTLE_OP_SUBTRACT, f, 1.25);
  lost = vm_sub(v, p, lost);
  vm_id_t above = vm_fma(v, f, q, f);
  vm_id_t rest = vm_sub(v, f, above);
  rest = vm_fma(v, f, q, rest);
  rest = vm_add(v, rest, lost);
  vm_id_t two = vm_const(v, 2.0);
  vm_id_t below = vm_fma_const(v, two, a, 1.0);
  vm_id_t one = vm_const(v, 1.0);
  vm_id_t below_rest = vm_sub(v, one, below);
  below_rest = vm_fma(v, two, a, below_rest);
  vm_id_t inverse = vm_div(v, one, below);
  vm_id_t r = vm_mul(v, above, inverse);
  minus = vm_neg(v, r);
  vm_id_t left = vm_fma(v, minus, below, above);
  left = vm_add(v, left, rest);
  left = vm_fma(v, minus, below_rest, left);
  return vm_fma(v, left, inverse, r);
}

// |p| is the polynomial at |a|, that is |x| up to where the result is 0, and
// |small| that of erf: below 1/2 the result is 1 - x - x small, since half an ulp
// of q would be more than one of what is just below 1.
static vm_id_t complementary(vm_t v, vm_id_t x, vm_id_t a, vm_id_t p,
                             vm_id_t small) {
  bool wide = v.dtype == PESTLE_F64;
  vm_id_t square = vm_mul(v, a, a);
  vm_id_t minus = vm_neg(v, square);
  vm_id_t low = vm_fma(v, a, a, minus);
  vm_exp_t e =
      wide ? pestle_vm_exp_parts_f64(v, minus) : pestle_vm_exp_parts(v, minus);
  vm_id_t r = scaled(v, p, e, low, a);
  if (wide) {
    r = vm_mul(v, r, e.low);
    r = vm_mul(v, r, e.high);
  } else {
    r = pestle_vm_times_power(v, r, e);
  }
  vm_id_t two = vm_const(v, 2.0);
  vm_id_t mirrored = vm_sub(v, two, r);
  vm_id_t negative = vm_op2f(v, PESTLE_OP_LT, x, 0.0);
  r = vm_select(v, negative, mirrored, r);
  vm_id_t near = vm_fma(v, small, x, x);
  vm_id_t one = vm_const(v, 1.0);
  near = vm_sub(v, one, near);
  vm_id_t is_small = vm_op2f(v, PESTLE_OP_LT, a, 0.5);
  return vm_select(v, is_small, near, r);
}

// 0 from 10.1 on. At most 1.6 ulp.
vm_id_t pestle_vm_erfc(vm_t v, vm_id_t x) {
  vm_id_t a = vm_abs(v, x);
  a = vm_at_most(v, a, 10.19);
  vm_id_t q = ratio(v, a, 3.0);
  vm_id_t p = VM_POLY(v, q, poly_erfcx_f32);
  vm_id_t square = vm_mul(v, a, a);
  vm_id_t small = VM_POLY(v, square, poly_erf_f32);
  return complementary(v, x, a, p, small);
}

// 0 from 27.3 on. At most 1.6 ulp.
vm_id_t pestle_vm_erfc_f64(vm_t v, vm_id_t x) {
  vm_id_t a = vm_abs(v, x);
  a = vm_at_most(v, a, 27.3);
  vm_id_t q = ratio(v, a, 4.0);
  vm_id_t p = VM_POLY(v, q, poly_erfcx_full);
  vm_id_t square = vm_mul(v, a, a);
  vm_id_t small = VM_POLY(v, square, poly_erf_full);
  return complementary(v, x, a, p, small);
}

// --- erf_inv ---

// |constant| + |p|, which is the result over x, as two parts.
typedef struct factor_t {
  vm_id_t constant, p;
} factor_t;

// A polynomial of |at| - |middle|.
static factor_t factor(vm_t v, vm_pair_t at, double middle, double constant,
                       const double* poly, unsigned count) {
  factor_t f;
  vm_id_t u = vm_op2f(v, PESTLE_OP_SUBTRACT, at.hi, middle);
  u = vm_add(v, u, at.lo);
  f.constant = vm_const(v, constant);
  f.p = vm_poly(v, u, poly, count);
  return f;
}
#define FACTOR(v, at, middle, constant, poly) \
  factor(v, at, middle, constant, poly, sizeof(poly) / sizeof *(poly))

static factor_t either(vm_t v, vm_id_t which, factor_t a, factor_t b) {
  factor_t r;
  r.constant = vm_select(v, which, a.constant, b.constant);
  r.p = vm_select(v, which, a.p, b.p);
  return r;
}

// x (constant + p). On the edges, where |rest| = 1 - x^2 is 0, it is infinite,
// and outside NaN, as x over the root of that is.
static vm_id_t times(vm_t v, vm_id_t x, factor_t f, vm_id_t rest) {
  bool wide = v.dtype == PESTLE_F64;
  vm_id_t part = vm_mul(v, x, f.p);
  vm_id_t r = vm_fma(v, x, f.constant, part);
  vm_id_t root = vm_op1(v, PESTLE_OP_SQRT, rest);
  vm_id_t edge = vm_div(v, x, root);
  vm_id_t is_inside = vm_op2f(v, PESTLE_OP_GT, rest, 0.0);
  r = vm_select(v, is_inside, r, edge);
  // The sum of zeros of both signs is +0.
  return vm_copy_sign(v, r, x, wide ? PESTLE_I64 : PESTLE_I32);
}

// 1 - x^2.
static vm_id_t complement(vm_t v, vm_id_t x) {
  vm_id_t minus = vm_neg(v, x);
  return vm_fma_const(v, minus, x, 1.0);
}

// w = -log(rest) and its root, each with what its last digit lacks: half an ulp
// of them would be as much of the result.
typedef struct log_t {
  vm_pair_t w, root;
} log_t;

static log_t minus_log(vm_t v, vm_id_t rest) {
  log_t r;
  rest = vm_at_least(v, rest, 0x1p-54);
  vm_pair_t log = v.dtype == PESTLE_F64 ? pestle_vm_log_pair_f64(v, rest)
                                        : pestle_vm_log_pair(v, rest);
  r.w.hi = vm_neg(v, log.hi);
  r.w.lo = vm_neg(v, log.lo);
  r.root.hi = vm_op1(v, PESTLE_OP_SQRT, r.w.hi);
  vm_id_t minus = vm_neg(v, r.root.hi);
  vm_id_t left = vm_fma(v, minus, r.root.hi, r.w.hi);
  left = vm_add(v, left, r.w.lo);
  vm_id_t twice = vm_add(v, r.root.hi, r.root.hi);
  r.root.lo = vm_div(v, left, twice);
  return r;
}

// At most 1.5 ulp.
vm_id_t pestle_vm_erf_inv(vm_t v, vm_id_t x) {
  vm_id_t rest = complement(v, x);
  log_t log = minus_log(v, rest);
  factor_t near = FACTOR(v, log.w, 1.25, 0.875, poly_erf_inv_f32);
  factor_t far = FACTOR(v, log.root, 3.0, 2.75, poly_erf_inv_tail_f32);
  vm_id_t is_near = vm_op2f(v, PESTLE_OP_LT, log.w.hi, 4.0);
  return times(v, x, either(v, is_near, near, far), rest);
}

// At most 1.8 ulp.
vm_id_t pestle_vm_erf_inv_f64(vm_t v, vm_id_t x) {
  vm_id_t rest = complement(v, x);
  log_t log = minus_log(v, rest);
  factor_t near = FACTOR(v, log.w, 1.25, 0.875, poly_erf_inv_full);
  factor_t middle = FACTOR(v, log.root, 3.0, 2.75, poly_erf_inv_middle_full);
  factor_t far = FACTOR(v, log.root, 5.0, 4.75, poly_erf_inv_tail_full);
  vm_id_t is_middle = vm_op2f(v, PESTLE_OP_LT, log.w.hi, 16.0);
  far = either(v, is_middle, middle, far);
  vm_id_t is_near = vm_op2f(v, PESTLE_OP_LT, log.w.hi, 4.0);
  return times(v, x, either(v, is_near, near, far), rest);
}
