// SPDX-License-Identifier: Apache-2.0
// From a fused, ordered, placed function, whose kernels are compiled, to the
// steps of a plan.
#ifndef PESTLE_COMPILE_STEPS_H_
#define PESTLE_COMPILE_STEPS_H_

#include "compile/locations.h"
#include "compile/memory_plan.h"
#include "compile/plan_build.h"

// What input |index| is called: its name in the source, else its SSA name, else
// its number ("arg2").
void pestle_steps_input_name(const pestle_function_t* function, uint32_t index,
                             char* out_name, size_t capacity);

// Writes inputs, outputs, the steps of |function|, and the records of |kernels|,
// their devices and |locations|, which are settled, into |plan|, which is empty.
PESTLE_NODISCARD pestle_status_t pestle_steps_build(
    const pestle_kernels_t* kernels, const pestle_memory_plan_t* memory,
    pestle_locations_t* locations, const pestle_function_t* function,
    pestle_plan_build_t* plan);

// A plan of one launch, of the only kernel of |kernels|, which is compiled:
// inputs are the operands that it reads ("o0", by number), outputs its results
// ("r0").
PESTLE_NODISCARD pestle_status_t
pestle_steps_single(const pestle_kernels_t* kernels, pestle_plan_build_t* plan);

#endif  // PESTLE_COMPILE_STEPS_H_
