// SPDX-License-Identifier: Apache-2.0
// Scalar ops that a target lacks, out of ops that it has: the table of expand.def.
// Private to codegen/legalise/*.c.
//
// Transcendental ops are arithmetic (vector_math*.c), one expansion shared by all
// targets, in terms of fma, rounding, bit casts, shifts and selects, on any number
// of lanes. Without branches, but where huge arguments of sine, cosine and tan
// need a longer reduction. Results are within 2 units in the last place of the
// correctly rounded one over all of f32 and f64: denormals, infinities, NaN and
// signed zeros included. They hold on targets that keep denormals and whose fma is
// fused.
#ifndef PESTLE_CODEGEN_LEGALISE_EXPAND_H_
#define PESTLE_CODEGEN_LEGALISE_EXPAND_H_

#include "codegen/legalise/legalise.h"

// Appends |op| on |a|, of one dtype and number of lanes, to |r->to|, and puts the
// result into |*out_id|. False, with nothing appended, when the target must have
// the op itself, or lacks the f64 that it computes in. The instructions of a row of
// expand.c have the facts that the builder has: contract and reassoc say nothing
// about them, nnan and its kin hold for the parts where they hold for the whole;
// those of vector_math*.c have none.
bool pestle_expand(pestle_rewrite_t* r, pestle_op_t op,
                   const pestle_kir_id_t a[3], pestle_kir_id_t* out_id);

#endif  // PESTLE_CODEGEN_LEGALISE_EXPAND_H_
