// SPDX-License-Identifier: Apache-2.0
// Kernels that differ by numbers alone, such as the scales of a quantised model's
// layers, made one: the numbers become elements of an argument.
#ifndef PESTLE_CODEGEN_KIR_KIR_SCALARS_H_
#define PESTLE_CODEGEN_KIR_KIR_SCALARS_H_

#include "codegen/kir/kir_build.h"

// Sets out_is_scalar[i] where instruction i of |k|, which is finished, is such a
// number: an f32 constant that is added, subtracted, multiplied or divided by alone.
// What code may be better for is none: 0, 1, -1, what is not finite, and the divisor
// of a division that may be by its reciprocal. Nor is what stands outside of the loops
// over groups and lanes, where nothing may be read.
void pestle_kir_find_scalars(const pestle_kir_builder_t* k,
                             uint8_t* out_is_scalar);

// The hash of |k| with any number for its scalars: that of all kernels that are the same
// but for them.
void pestle_kir_hash_but_scalars(const pestle_kir_builder_t* k,
                                 const uint8_t* is_scalar,
                                 uint64_t out_hash[2]);

// A copy of |k| with a last argument of |count| f32, in which each constant i whose
// slot[i] is not PESTLE_KIR_NONE is loaded from that element. On failure
// |out_builder| is empty and needs no deinit.
PESTLE_NODISCARD pestle_status_t pestle_kir_lift_scalars(
    pestle_allocator_t allocator, const pestle_kir_builder_t* k,
    const uint32_t* slot, uint32_t count, pestle_kir_builder_t* out_builder);

#endif  // PESTLE_CODEGEN_KIR_KIR_SCALARS_H_
