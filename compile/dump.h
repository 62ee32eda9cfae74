// SPDX-License-Identifier: Apache-2.0
// The stages of a compilation as text, for the caller's dump.
#ifndef PESTLE_COMPILE_DUMP_H_
#define PESTLE_COMPILE_DUMP_H_

#include "compile/memory_plan.h"
#include "compile/plan_build.h"
#include "pestle/compile.h"

// Whether the caller wants to see |stage|.
bool pestle_wants_dump(const pestle_compile_options_t* options,
                       pestle_stage_t stage);
// Shows |text|, what |stage| has made of |name|, to a caller who wants it.
void pestle_dump(const pestle_compile_options_t* options, pestle_stage_t stage,
                 const char* name, const char* text, size_t size);

// The same with the text of a module, and of a plan.
PESTLE_NODISCARD pestle_status_t
pestle_dump_module(const pestle_compile_options_t* options,
                   pestle_stage_t stage, const pestle_module_t* module);
PESTLE_NODISCARD pestle_status_t pestle_dump_plan(
    const pestle_compile_options_t* options, const pestle_module_t* module,
    const pestle_memory_plan_t* memory, const pestle_plan_build_t* plan);

#endif  // PESTLE_COMPILE_DUMP_H_
