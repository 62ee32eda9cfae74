// SPDX-License-Identifier: Apache-2.0
// Transcendental rows as Kernel IR arithmetic, for targets that lack them: one
// expansion shared by all, in terms of fma, rounding, bit casts, shifts and
// selects, on any number of lanes. Without branches, but where huge arguments
// of sine, cosine and tan need a longer reduction.
//
// Results are within 2 units in the last place of the correctly rounded one
// over all of f32 and f64: denormals, infinities, NaN and signed zeros included.
// They hold on targets that keep denormals and whose fma is fused.
#ifndef PESTLE_CODEGEN_LEGALISE_VECTOR_MATH_H_
#define PESTLE_CODEGEN_LEGALISE_VECTOR_MATH_H_

#include "codegen/kir/kir_build.h"

// Appends |op| on |v| (f32 or f64, one lane number) to |k| and puts the result into
// |out_id|. False, with nothing appended, when the row or its dtype has no
// expansion here. Leaves k->facts as it was; its own instructions have none,
// since contraction or reassociation would undo them. |scales|: the target has
// SCALE on f32.
bool pestle_vector_math(pestle_kir_builder_t* k, pestle_op_t op,
                        const pestle_kir_id_t v[3], bool scales,
                        pestle_kir_id_t* out_id);

// Whether |op| on |dtype| has one, and whether it computes in f64 on the way.
bool pestle_vector_math_has(pestle_op_t op, pestle_dtype_t dtype,
                            bool* out_needs_f64);

#endif  // PESTLE_CODEGEN_LEGALISE_VECTOR_MATH_H_
