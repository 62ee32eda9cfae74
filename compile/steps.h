// SPDX-License-Identifier: Apache-2.0
// From a fused, ordered, placed function to plan steps and kernels.
#ifndef PESTLE_COMPILE_STEPS_H_
#define PESTLE_COMPILE_STEPS_H_

#include "compile/plan_build.h"

// Where values live, as the memory planner decided; read through these, since
// only compile.c sees passes/.
typedef struct pestle_placements_t {
  const void* plan;
  // The binding of |value|, which is planned and no constant. What it is a part
  // of, if not of itself, is |*out_root|.
  pestle_plan_binding_t (*binding)(const void* plan,
                                   const pestle_value_t* value,
                                   const pestle_value_t** out_root);
} pestle_placements_t;

// What input |index| is called: its name in the source, else its SSA name, else
// its number ("arg2").
void pestle_steps_input_name(const pestle_function_t* function, uint32_t index,
                             char* out_name, size_t capacity);

// Appends inputs, outputs and the steps of |function|, and the kernels that
// they launch. pestle_steps_finish() completes them.
PESTLE_NODISCARD pestle_status_t pestle_steps_build(
    pestle_kernels_t* kernels, pestle_plan_build_t* plan,
    const pestle_placements_t* placements, const pestle_function_t* function);
// After compilation: the records of kernels and devices, and where each launch
// runs and what it is given.
PESTLE_NODISCARD pestle_status_t
pestle_steps_finish(pestle_kernels_t* kernels, pestle_plan_build_t* plan,
                    const pestle_placements_t* placements);

// A plan of one launch, of the only kernel of |kernels|, which is compiled:
// inputs are the operands that it reads ("o0", by number), outputs its results
// ("r0").
PESTLE_NODISCARD pestle_status_t
pestle_steps_single(const pestle_kernels_t* kernels, pestle_plan_build_t* plan);

#endif  // PESTLE_COMPILE_STEPS_H_
