// SPDX-License-Identifier: Apache-2.0
// The reference evaluator: every op straight from its meaning, slowly. Constant
// folding uses it and every other path is held against it. It shares no code
// with passes/ or codegen/.
#ifndef PESTLE_IR_REF_REF_H_
#define PESTLE_IR_REF_REF_H_

#include "ir/graph.h"

// Evaluates |node| (regions included) on |operands|: row-major arrays of the
// operands' types, |results| likewise, made by the caller. Values that a region
// captures are found by evaluating constants only; anything else is UNSUPPORTED
// (see pestle_ref_evaluate_function for whole functions). Scratch memory comes
// from |allocator|. Thread-safe.
PESTLE_NODISCARD pestle_status_t pestle_ref_evaluate_node(
    pestle_allocator_t allocator, const pestle_node_t* node,
    const void* const* operands, void* const* results);

// Runs a whole function of static types. |arguments| and |results| are
// row-major arrays in the function's order.
PESTLE_NODISCARD pestle_status_t pestle_ref_evaluate_function(
    pestle_allocator_t allocator, const pestle_function_t* function,
    const void* const* arguments, void* const* results);

// Runs it as every process of the module's world at once, which meet at collectives:
// |arguments| and |results| have a list of arrays for each process. Threads, one a
// process. The failure names the process. UNAVAILABLE: one ended while others
// waited for it.
PESTLE_NODISCARD pestle_status_t pestle_ref_evaluate_world(
    pestle_allocator_t allocator, const pestle_function_t* function,
    const void* const* const* arguments, void* const* const* results);

#endif  // PESTLE_IR_REF_REF_H_
