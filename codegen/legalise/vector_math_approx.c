// SPDX-License-Identifier: Apache-2.0
// The exponential family in f32 by a target's approximations of 2^x and 1 / x,
// each of which is within 2^-22.
#include "codegen/legalise/vector_math_internal.h"
#include "codegen/legalise/vector_math_poly.h"

#define LOG2E 0x1.715476p+0

vm_id_t vm_approx1(vm_t v, pestle_op_t op, vm_id_t a) {
  return vm_approx2(v, op, a, PESTLE_KIR_NONE);
}

vm_id_t vm_approx2(vm_t v, pestle_op_t op, vm_id_t a, vm_id_t b) {
  uint8_t facts = v.k->facts;
  v.k->facts |= PESTLE_KIR_APPROX;
  vm_id_t r = vm_op2(v, op, a, b);
  v.k->facts = facts;
  return r;
}

// By 1 / b within 2^-22 and what is left of a: a branchless quotient. Denormal results
// are rounded twice, each time by less than a unit.
vm_id_t pestle_vm_quotient(vm_t v, vm_id_t a, vm_id_t b) {
  if (!(v.has & VM_APPROX)) return vm_div(v, a, b);
  vm_id_t one = vm_const(v, 1.0);
  vm_id_t inverse = vm_approx2(v, PESTLE_OP_DIVIDE, one, b);
  vm_id_t q = vm_mul(v, a, inverse);
  vm_id_t minus = vm_neg(v, q);
  vm_id_t rest = vm_fma(v, minus, b, a);
  return vm_fma(v, rest, inverse, q);
}

// What the product loses is |x| 2^-24 of the result at most: 2^-17 where e^x is the
// greatest number.
vm_id_t pestle_vm_approx_exp(vm_t v, vm_id_t x) {
  vm_id_t t = vm_op2f(v, PESTLE_OP_MULTIPLY, x, LOG2E);
  return vm_approx1(v, PESTLE_OP_EXP2, t);
}

// e^x / (1 + e^x): denormal on the left, and 1 from 30 on.
vm_id_t pestle_vm_approx_logistic(vm_t v, vm_id_t x) {
  x = vm_at_most(v, x, 30.0);
  vm_id_t e = pestle_vm_approx_exp(v, x);
  vm_id_t sum = vm_op2f(v, PESTLE_OP_ADD, e, 1.0);
  return vm_approx2(v, PESTLE_OP_DIVIDE, e, sum);
}

// As pestle_vm_tanh: a polynomial near 0, where 1 - 2 / (e^(2a) + 1) cancels.
vm_id_t pestle_vm_approx_tanh(vm_t v, vm_id_t x) {
  vm_id_t a = vm_abs(v, x);
  vm_id_t twice = vm_add(v, a, a);
  twice = vm_at_most(v, twice, 20.0);
  vm_id_t below = pestle_vm_approx_exp(v, twice);
  below = vm_op2f(v, PESTLE_OP_ADD, below, 1.0);
  vm_id_t two = vm_const(v, -2.0);
  vm_id_t large = vm_approx2(v, PESTLE_OP_DIVIDE, two, below);
  large = vm_op2f(v, PESTLE_OP_ADD, large, 1.0);
  return pestle_vm_tanh_joined(v, x, a, large);
}

// As pestle_vm_erfc, with nothing put back of what is lost: (1.25 + p) e^(-a^2) over
// 1 + 2 a also below 1/2, where the result is not small.
vm_id_t pestle_vm_approx_erfc(vm_t v, vm_id_t x) {
  vm_id_t a = vm_abs(v, x);
  a = vm_at_most(v, a, 10.19);
  vm_id_t above = vm_op2f(v, PESTLE_OP_SUBTRACT, a, 3.0);
  vm_id_t below = vm_op2f(v, PESTLE_OP_ADD, a, 3.0);
  vm_id_t q = vm_approx2(v, PESTLE_OP_DIVIDE, above, below);
  vm_id_t p = VM_POLY(v, q, poly_erfcx_f32);
  p = vm_op2f(v, PESTLE_OP_ADD, p, 1.25);
  vm_id_t minus = vm_neg(v, a);
  vm_id_t square = vm_mul(v, minus, a);
  vm_id_t e = pestle_vm_approx_exp(v, square);
  vm_id_t r = vm_mul(v, p, e);
  below = vm_add(v, a, a);
  below = vm_op2f(v, PESTLE_OP_ADD, below, 1.0);
  r = vm_approx2(v, PESTLE_OP_DIVIDE, r, below);
  vm_id_t two = vm_const(v, 2.0);
  vm_id_t mirrored = vm_sub(v, two, r);
  vm_id_t negative = vm_op2f(v, PESTLE_OP_LT, x, 0.0);
  return vm_select(v, negative, mirrored, r);
}
