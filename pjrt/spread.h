// SPDX-License-Identifier: Apache-2.0
// Programs of several devices: which devices they run on, in what parts their inputs
// and outputs lie, and running them.
#ifndef PESTLE_PJRT_SPREAD_H_
#define PESTLE_PJRT_SPREAD_H_

#include "pjrt/program.h"

// The devices of |program|, whose plan and options are there.
PJRT_Error* pestle_pjrt_spread_devices(pestle_pjrt_program_t* program);
// Its shardings as the framework asks for them; inputs and outputs are there.
PJRT_Error* pestle_pjrt_spread_shardings(
    pestle_pjrt_program_t* program, const pestle_pjrt_program_info_t* info);
// What |module|, whose plan is |plan|, says of its shardings, in |arena|.
PJRT_Error* pestle_pjrt_spread_read(pestle_module_t* module,
                                    const pestle_plan_t* plan,
                                    pestle_arena_t* arena,
                                    pestle_pjrt_program_info_t* info);
extern const PJRT_Shardings_Extension pestle_pjrt_shardings;

#endif  // PESTLE_PJRT_SPREAD_H_
