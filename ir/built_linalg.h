// SPDX-License-Identifier: Apache-2.0
// What the formulas of linear algebra's functions share.
#ifndef PESTLE_IR_BUILT_LINALG_H_
#define PESTLE_IR_BUILT_LINALG_H_

#include "ir/built.h"

// Whether operand 0 is complex matrices: those are for Pestle's own functions.
bool pestle_built_is_complex(pestle_built_t* b);
// A number or flag of the configuration; |otherwise| where it is not there.
int64_t pestle_built_option(const pestle_built_t* b, const char* key,
                            int64_t otherwise);
// Whether the lower half counts: "uplo" of LAPACK, or "lower".
bool pestle_built_is_lower(const pestle_built_t* b);
// 0 in the type of result |index|, if there is one.
void pestle_built_nothing_at(pestle_built_t* b, size_t index);
// |name| of all operands, whose results are the first ones of the op: see built_own.h.
void pestle_built_own(pestle_built_t* b, const char* name, const char* flags,
                      const char* parts);

#endif  // PESTLE_IR_BUILT_LINALG_H_
