// SPDX-License-Identifier: Apache-2.0
// Shared by the nest_verify*.c files; nobody else includes it.
#ifndef PESTLE_CODEGEN_NEST_NEST_VERIFY_INTERNAL_H_
#define PESTLE_CODEGEN_NEST_NEST_VERIFY_INTERNAL_H_

#include <stdarg.h>

#include "codegen/nest/nest_verify.h"

// INTERNAL: "nest 'k', stage 's': ...".
PESTLE_NODISCARD pestle_status_t
pestle_nest_broken(const pestle_nest_t* nest, const pestle_nest_stage_t* stage,
                   const char* format, va_list args);
// False when the range does not fit 64 bits.
bool pestle_nest_checked_range(const pestle_nest_t* nest,
                               const pestle_affine_t* affine,
                               pestle_range_t* out);
PESTLE_NODISCARD pestle_status_t
pestle_nest_verify_loops(pestle_nest_t* nest, const pestle_target_caps_t* caps);

#endif  // PESTLE_CODEGEN_NEST_NEST_VERIFY_INTERNAL_H_
