// SPDX-License-Identifier: Apache-2.0
// What the expansions that give f64 results share. There is no wider type to
// lean on, so that where one rounding is too much a value is a pair: the
// rounded one, and what the rounding lost. Private to codegen/legalise/vector_math*.c.
#ifndef PESTLE_CODEGEN_LEGALISE_VECTOR_MATH_F64_H_
#define PESTLE_CODEGEN_LEGALISE_VECTOR_MATH_F64_H_

#include "codegen/legalise/vector_math_internal.h"

#define VM_LN2 0x1.62e42fefa39efp-1
#define VM_LN2_REST 0x1.abc9e3b39803fp-56
// The leading 33 bits of ln2, so that times an exponent it is exact, and the
// rest.
#define VM_LN2_SHORT 0x1.62e42feep-1
#define VM_LN2_SHORT_REST 0x1.a39ef35793c76p-33
#define VM_MAGIC 0x1.8p+52  // added, it rounds to a whole number
#define VM_EXPONENT_ONE (INT64_C(0x3ff) << 52)

typedef struct vm_pair_t {
  vm_id_t hi, lo;
} vm_pair_t;

// a + b where |a| >= |b| or a is 0.
static inline vm_pair_t vm_pair_sum(vm_t v, vm_id_t a, vm_id_t b) {
  vm_pair_t r;
  r.hi = vm_add(v, a, b);
  vm_id_t part = vm_sub(v, r.hi, a);
  r.lo = vm_sub(v, b, part);
  return r;
}

// a * b.
static inline vm_pair_t vm_pair_product(vm_t v, vm_id_t a, vm_id_t b) {
  vm_pair_t r;
  r.hi = vm_mul(v, a, b);
  vm_id_t minus = vm_neg(v, r.hi);
  r.lo = vm_fma(v, a, b, minus);
  return r;
}

// above / below, rounded once or next to it.
static inline vm_pair_t vm_pair_quotient(vm_t v, vm_pair_t above,
                                         vm_pair_t below) {
  vm_pair_t r;
  r.hi = vm_div(v, above.hi, below.hi);
  vm_id_t minus = vm_neg(v, r.hi);
  vm_id_t rest = vm_fma(v, minus, below.hi, above.hi);
  rest = vm_add(v, rest, above.lo);
  rest = vm_fma(v, minus, below.lo, rest);
  r.lo = vm_div(v, rest, below.hi);
  return r;
}

// --- vector_math_f64.c ---

// |x| within [-746, 746] or NaN.
vm_exp_t pestle_vm_exp_parts_f64(vm_t v, vm_id_t x);
vm_id_t pestle_vm_exp_f64(vm_t v, vm_id_t x);
vm_id_t pestle_vm_exp2_f64(vm_t v, vm_id_t x);
vm_id_t pestle_vm_expm1_f64(vm_t v, vm_id_t x);
vm_id_t pestle_vm_logistic_f64(vm_t v, vm_id_t x);
vm_id_t pestle_vm_tanh_f64(vm_t v, vm_id_t x);
vm_id_t pestle_vm_erf_f64(vm_t v, vm_id_t x);

// --- vector_math_erf.c ---

vm_id_t pestle_vm_erfc_f64(vm_t v, vm_id_t x);
vm_id_t pestle_vm_erf_inv_f64(vm_t v, vm_id_t x);

// --- vector_math_log.c ---

// log of |x| in f32, normal and positive: what the sum of the exponent's part
// and the rest loses is the second part.
vm_pair_t pestle_vm_log_pair(vm_t v, vm_id_t x);

// --- vector_math_f64_log.c ---

vm_id_t pestle_vm_log_f64(vm_t v, vm_id_t x);
vm_id_t pestle_vm_log1p_f64(vm_t v, vm_id_t x);
// log of |a| > 0, finite, to 2^-64 of itself.
vm_pair_t pestle_vm_log_pair_f64(vm_t v, vm_id_t a);

// --- vector_math_f64_trig.c ---

vm_id_t pestle_vm_sine_f64(vm_t v, vm_id_t x);
vm_id_t pestle_vm_cosine_f64(vm_t v, vm_id_t x);
vm_id_t pestle_vm_tan_f64(vm_t v, vm_id_t x);
vm_id_t pestle_vm_atan2_f64(vm_t v, vm_id_t y, vm_id_t x);

// --- vector_math_f64_pow.c ---

vm_id_t pestle_vm_pow_f64(vm_t v, vm_id_t x, vm_id_t y);
vm_id_t pestle_vm_cbrt_f64(vm_t v, vm_id_t x);
vm_id_t pestle_vm_fmod_f64(vm_t v, vm_id_t x, vm_id_t y);

#endif  // PESTLE_CODEGEN_LEGALISE_VECTOR_MATH_F64_H_
