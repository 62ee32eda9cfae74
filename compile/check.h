// SPDX-License-Identifier: Apache-2.0
// What pestle_compile() refuses before it begins: options that contradict each
// other, modules whose shapes are open, values that no machine can hold.
#ifndef PESTLE_COMPILE_CHECK_H_
#define PESTLE_COMPILE_CHECK_H_

#include "ir/graph.h"
#include "pestle/compile.h"

// Copies |options|, which may be NULL or of an older, shorter struct; what it
// lacks is zero. The control that they point at is copied in the same way, to
// |*out_control|, which must live as long as the options are used.
// INVALID_ARGUMENT: a number or an enumeration has no meaning.
PESTLE_NODISCARD pestle_status_t pestle_options_read(
    const pestle_compile_options_t* options,
    pestle_compile_options_t* out_options, pestle_control_t* out_control);
// INVALID_ARGUMENT for what tuning and lock files do not go together with.
PESTLE_NODISCARD pestle_status_t
pestle_options_check(const pestle_compile_options_t* options);

// INVALID_ARGUMENT unless |module| verifies and its entry's shapes are static.
PESTLE_NODISCARD pestle_status_t
pestle_check_module(const pestle_module_t* module);
// RESOURCE_EXHAUSTED if a value of |function|, which is fused, would need more
// memory than a process can have. What a kernel makes and uses up may.
PESTLE_NODISCARD pestle_status_t
pestle_check_sizes(const pestle_function_t* function);

#endif  // PESTLE_COMPILE_CHECK_H_
