// SPDX-License-Identifier: Apache-2.0
// A shorthand for building arithmetic: vm_t carries dtype and lanes, so that
// constants are plain numbers. Each call appends one instruction. Private to
// codegen/legalise/vector_math*.c and codegen/legalise/*.c.
//
// Write one call a statement: C does not say in which order arguments are
// evaluated, and kernels must not depend on the compiler that built Pestle.
#ifndef PESTLE_CODEGEN_LEGALISE_VECTOR_MATH_INTERNAL_H_
#define PESTLE_CODEGEN_LEGALISE_VECTOR_MATH_INTERNAL_H_

#include <math.h>

#include "codegen/kir/kir_build.h"

typedef pestle_kir_id_t vm_id_t;

typedef struct vm_t {
  pestle_kir_builder_t* k;
  pestle_dtype_t dtype;  // of constants
  unsigned lanes;
  unsigned has;
} vm_t;

enum {
  VM_SCALES = 1,  // f32 has SCALE
  VM_APPROX = 2,  // and an approximation of quotients (PESTLE_KIR_APPROX)
};

static inline vm_t vm_as(vm_t v, pestle_dtype_t dtype) {
  v.dtype = dtype;
  return v;
}

static inline vm_id_t vm_const(vm_t v, double value) {
  return pestle_kir_float(v.k, v.dtype, v.lanes, value);
}
static inline vm_id_t vm_int(vm_t v, int64_t value) {
  return pestle_kir_int(v.k, v.dtype, v.lanes, value);
}
static inline vm_id_t vm_op1(vm_t v, pestle_op_t op, vm_id_t a) {
  return pestle_kir_scalar(v.k, op, a, PESTLE_KIR_NONE, PESTLE_KIR_NONE);
}
static inline vm_id_t vm_op2(vm_t v, pestle_op_t op, vm_id_t a, vm_id_t b) {
  return pestle_kir_scalar(v.k, op, a, b, PESTLE_KIR_NONE);
}
// The second operand a constant: a float, or an integer.
static inline vm_id_t vm_op2f(vm_t v, pestle_op_t op, vm_id_t a, double b) {
  return vm_op2(v, op, a, vm_const(v, b));
}
static inline vm_id_t vm_op2i(vm_t v, pestle_op_t op, vm_id_t a, int64_t b) {
  return vm_op2(v, op, a, vm_int(v, b));
}

static inline vm_id_t vm_add(vm_t v, vm_id_t a, vm_id_t b) {
  return vm_op2(v, PESTLE_OP_ADD, a, b);
}
static inline vm_id_t vm_sub(vm_t v, vm_id_t a, vm_id_t b) {
  return vm_op2(v, PESTLE_OP_SUBTRACT, a, b);
}
static inline vm_id_t vm_mul(vm_t v, vm_id_t a, vm_id_t b) {
  return vm_op2(v, PESTLE_OP_MULTIPLY, a, b);
}
static inline vm_id_t vm_div(vm_t v, vm_id_t a, vm_id_t b) {
  return vm_op2(v, PESTLE_OP_DIVIDE, a, b);
}
static inline vm_id_t vm_fma(vm_t v, vm_id_t a, vm_id_t b, vm_id_t c) {
  return pestle_kir_scalar(v.k, PESTLE_OP_FMA, a, b, c);
}
// a * b + constant, and a * constant + c.
static inline vm_id_t vm_fma_const(vm_t v, vm_id_t a, vm_id_t b, double c) {
  return vm_fma(v, a, b, vm_const(v, c));
}
static inline vm_id_t vm_scale_add(vm_t v, vm_id_t a, double b, vm_id_t c) {
  return vm_fma(v, a, vm_const(v, b), c);
}
static inline vm_id_t vm_abs(vm_t v, vm_id_t a) {
  return vm_op1(v, PESTLE_OP_ABS, a);
}
static inline vm_id_t vm_neg(vm_t v, vm_id_t a) {
  return vm_op1(v, PESTLE_OP_NEGATE, a);
}
static inline vm_id_t vm_select(vm_t v, vm_id_t which, vm_id_t yes,
                                vm_id_t no) {
  return pestle_kir_scalar(v.k, PESTLE_OP_SELECT, which, yes, no);
}
static inline vm_id_t vm_bits(vm_t v, vm_id_t a, pestle_dtype_t dtype) {
  return pestle_kir_bitcast(v.k, a, dtype);
}
static inline vm_id_t vm_cast(vm_t v, vm_id_t a, pestle_dtype_t dtype) {
  return pestle_kir_cast(v.k, a, dtype);
}
// min(a, limit) and max(a, limit) that keep a NaN |a|, in the form that x86 has
// as one instruction.
static inline vm_id_t vm_at_most(vm_t v, vm_id_t a, double limit) {
  vm_id_t bound = vm_const(v, limit);
  vm_id_t over = vm_op2(v, PESTLE_OP_GT, a, bound);
  return vm_select(v, over, bound, a);
}
static inline vm_id_t vm_at_least(vm_t v, vm_id_t a, double limit) {
  vm_id_t bound = vm_const(v, limit);
  vm_id_t under = vm_op2(v, PESTLE_OP_LT, a, bound);
  return vm_select(v, under, bound, a);
}
// |magnitude| with the sign of |from|: both of v.dtype, |as_int| as wide.
static inline vm_id_t vm_copy_sign(vm_t v, vm_id_t magnitude, vm_id_t from,
                                   pestle_dtype_t as_int) {
  unsigned bits = pestle_dtype_info(as_int)->bits;
  int64_t sign = (int64_t)(UINT64_C(1) << (bits - 1));
  vm_t i = vm_as(v, as_int);
  vm_id_t s = vm_bits(v, from, as_int);
  s = vm_op2i(i, PESTLE_OP_AND, s, sign);
  vm_id_t m = vm_bits(v, magnitude, as_int);
  m = vm_op2i(i, PESTLE_OP_AND, m, ~sign);
  m = vm_op2(i, PESTLE_OP_OR, m, s);
  return vm_bits(v, m, v.dtype);
}
// c[0] + c[1] x + ... by Horner's rule.
static inline vm_id_t vm_poly(vm_t v, vm_id_t x, const double* c,
                              unsigned count) {
  vm_id_t p = vm_const(v, c[count - 1]);
  for (unsigned i = count - 1; i-- > 0;)
    p = vm_fma_const(v, p, x, c[i]);
  return p;
}
#define VM_POLY(v, x, c) vm_poly((v), (x), (c), sizeof(c) / sizeof *(c))

// A private value that a region may change.
static inline uint32_t vm_tile(vm_t v, const char* name, vm_id_t value) {
  pestle_dtype_t dtype = pestle_kir_type_of(v.k, value);
  uint32_t tile = pestle_kir_add_buffer(v.k, name, PESTLE_KIR_PRIVATE, dtype,
                                        v.lanes, 1, 0);
  pestle_kir_alloc(v.k, tile);
  vm_id_t zero = pestle_kir_index(v.k, 0);
  pestle_kir_store(v.k, tile, zero, value, PESTLE_KIR_NONE, 0);
  return tile;
}
static inline void vm_tile_set(vm_t v, uint32_t tile, vm_id_t value) {
  vm_id_t zero = pestle_kir_index(v.k, 0);
  pestle_kir_store(v.k, tile, zero, value, PESTLE_KIR_NONE, 0);
}
static inline vm_id_t vm_tile_get(vm_t v, uint32_t tile) {
  vm_id_t zero = pestle_kir_index(v.k, 0);
  return pestle_kir_load(v.k, tile, v.lanes, zero, PESTLE_KIR_NONE, 0);
}

// --- Between the files ---

// e^x as (1 + q) * 2^n, which is low * high where there is no SCALE; |z| has n in its
// low bits.
typedef struct vm_exp_t {
  vm_id_t q, n, low, high, z;
} vm_exp_t;

// |x| within [-104, 89] or NaN.
vm_exp_t pestle_vm_exp_parts(vm_t v, vm_id_t x);
// y 2^n of those parts, rounded once where all is as it should be, and 2^n.
vm_id_t pestle_vm_times_power(vm_t v, vm_id_t y, vm_exp_t e);
vm_id_t pestle_vm_power(vm_t v, vm_exp_t e);
vm_id_t pestle_vm_exp(vm_t v, vm_id_t x);
vm_id_t pestle_vm_exp2(vm_t v, vm_id_t x);
vm_id_t pestle_vm_expm1(vm_t v, vm_id_t x);
vm_id_t pestle_vm_logistic(vm_t v, vm_id_t x);
vm_id_t pestle_vm_tanh(vm_t v, vm_id_t x);
vm_id_t pestle_vm_erf(vm_t v, vm_id_t x);
// 1 + erf(x), cheaper than erf(x).
vm_id_t pestle_vm_erf_plus_one(vm_t v, vm_id_t x);
// a / b, where |b| and 1 / |b| are normal, almost correctly rounded.
vm_id_t pestle_vm_quotient(vm_t v, vm_id_t a, vm_id_t b);
// By approximations of the target's (vector_math_approx.c).
vm_id_t vm_approx1(vm_t v, pestle_op_t op, vm_id_t a);
vm_id_t vm_approx2(vm_t v, pestle_op_t op, vm_id_t a, vm_id_t b);
vm_id_t pestle_vm_approx_exp(vm_t v, vm_id_t x);
vm_id_t pestle_vm_approx_logistic(vm_t v, vm_id_t x);
vm_id_t pestle_vm_approx_tanh(vm_t v, vm_id_t x);
vm_id_t pestle_vm_approx_erfc(vm_t v, vm_id_t x);
// The tanh of f32 x, a = |x|, from |large|, 1 - 2 / (e^(2a) + 1).
vm_id_t pestle_vm_tanh_joined(vm_t v, vm_id_t x, vm_id_t a, vm_id_t large);
vm_id_t pestle_vm_erfc(vm_t v, vm_id_t x);
vm_id_t pestle_vm_erf_inv(vm_t v, vm_id_t x);
vm_id_t pestle_vm_log(vm_t v, vm_id_t x);
vm_id_t pestle_vm_log1p(vm_t v, vm_id_t x);
vm_id_t pestle_vm_rsqrt(vm_t v, vm_id_t x);
// These compute in f64 lanes.
vm_id_t pestle_vm_sine(vm_t v, vm_id_t x);
vm_id_t pestle_vm_cosine(vm_t v, vm_id_t x);
vm_id_t pestle_vm_tan(vm_t v, vm_id_t x);
vm_id_t pestle_vm_atan2(vm_t v, vm_id_t y, vm_id_t x);
vm_id_t pestle_vm_pow(vm_t v, vm_id_t x, vm_id_t y);
vm_id_t pestle_vm_cbrt(vm_t v, vm_id_t x);
vm_id_t pestle_vm_fmod(vm_t v, vm_id_t x, vm_id_t y);

// Of any float dtype: whether |y| is whole, and odd.
typedef struct vm_parity_t {
  vm_id_t whole, odd;  // i1
} vm_parity_t;
vm_parity_t pestle_vm_parity(vm_t v, vm_id_t y);
// |r| = |x|^y with what C says beyond the sign: x^0 = 1, 1^y = 1, (-1)^inf = 1
// even for NaN on the other side, and NaN below 0 unless y is whole or x
// infinite.
vm_id_t pestle_vm_pow_edges(vm_t v, vm_id_t x, vm_id_t y, vm_id_t whole,
                            vm_id_t r);

#endif  // PESTLE_CODEGEN_LEGALISE_VECTOR_MATH_INTERNAL_H_
