// SPDX-License-Identifier: Apache-2.0
// Integers of 64 bits as two words of 32, for targets that have no wider ones:
// arithmetic on any lanes, with the bits that the rows of scalar.def have. Private
// to codegen/legalise/*.c.
#ifndef PESTLE_CODEGEN_LEGALISE_PAIR_H_
#define PESTLE_CODEGEN_LEGALISE_PAIR_H_

#include "codegen/legalise/vector_math_internal.h"

// Both words are ui32.
typedef struct pestle_pair_t {
  vm_id_t low, high;
} pestle_pair_t;

// |v| has the builder and the lanes; its dtype is ui32.
pestle_pair_t pestle_pair_const(vm_t v, int64_t value);
// Of |a| where |which| (i1) is set, else of |b|.
pestle_pair_t pestle_pair_select(vm_t v, vm_id_t which, pestle_pair_t a,
                                 pestle_pair_t b);

// A row of scalar.def on pairs that stand for |dtype|, I64 or U64: false where it
// has none. A comparison's result is |out->low|, an i1.
bool pestle_pair_row(vm_t v, pestle_op_t op, pestle_dtype_t dtype,
                     const pestle_pair_t a[3], pestle_pair_t* out);

// --- Parts of rows ---

// Every bit is |word|'s first one.
static inline vm_id_t pestle_pair_sign(vm_t v, vm_id_t word) {
  return vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_ARITHMETIC, word, 31);
}
static inline vm_id_t pestle_pair_is_negative(vm_t v, vm_id_t high) {
  return vm_op2i(v, PESTLE_OP_NE, pestle_pair_sign(v, high), 0);
}
pestle_pair_t pestle_pair_negate(vm_t v, pestle_pair_t a);
// The size of an I64 as a U64, and whether it was negative.
pestle_pair_t pestle_pair_size(vm_t v, pestle_pair_t a, vm_id_t* out_negative);
// By |n|, a ui32; 0 from 64 on.
pestle_pair_t pestle_pair_shift_left(vm_t v, pestle_pair_t a, vm_id_t n);
// A ui32 of 0 to 64.
vm_id_t pestle_pair_leading_zeros(vm_t v, pestle_pair_t a);

// --- Casts, as CAST of kir.def says ---

// From an integer of at most 32 bits, a bool, f32 or f64 to |dtype|.
pestle_pair_t pestle_pair_from(vm_t v, pestle_dtype_t dtype, vm_id_t x);
// From |dtype| to f32, rounded to nearest even, or to odd, which a narrower type
// rounds to nearest even as if it came from the integer.
vm_id_t pestle_pair_to_f32(vm_t v, pestle_dtype_t dtype, pestle_pair_t a,
                           bool to_odd);
vm_id_t pestle_pair_to_f64(vm_t v, pestle_dtype_t dtype, pestle_pair_t a);
// Held within the numbers of i32, as an i32.
vm_id_t pestle_pair_to_near_i32(vm_t v, pestle_dtype_t dtype, pestle_pair_t a);

#endif  // PESTLE_CODEGEN_LEGALISE_PAIR_H_
