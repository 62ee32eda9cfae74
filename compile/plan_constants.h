// SPDX-License-Identifier: Apache-2.0
// The bytes of a plan's constants, laid out as kernels read them; plan_build.c writes
// the rest.
#ifndef PESTLE_COMPILE_PLAN_CONSTANTS_H_
#define PESTLE_COMPILE_PLAN_CONSTANTS_H_

#include "compile/plan_build.h"

// Hands large constants to the context, which may have them packed already;
// packing, hashing and writing them to the disk is what takes its time.
PESTLE_NODISCARD pestle_status_t pestle_plan_share_constants(
    pestle_context_t* context, pestle_plan_build_t* plan);
// Places the constants that stay in the plan, behind one another from |*end| on, and
// last large ones that some process alone has: where these begin. |refs| has room for
// all constants.
uint64_t pestle_plan_place_constants(const pestle_plan_build_t* plan,
                                     uint64_t* end,
                                     pestle_plan_constant_ref_t* refs);
// Writes those to the plan's bytes. They are packed and hashed by all threads: they
// are most of a plan.
void pestle_plan_fill_constants(pestle_context_t* context, uint8_t* data,
                                const pestle_plan_build_t* plan,
                                pestle_plan_constant_ref_t* refs);

#endif  // PESTLE_COMPILE_PLAN_CONSTANTS_H_
