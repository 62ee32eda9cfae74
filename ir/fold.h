// SPDX-License-Identifier: Apache-2.0
// Numbers that shapes are computed with: what readers of symbolic modules evaluate
// as they read it, by the reference evaluator.
#ifndef PESTLE_IR_FOLD_H_
#define PESTLE_IR_FOLD_H_

#include "ir/graph.h"

// Puts a constant in the place of |*value|, integers or truth values that an op at
// the end of |builder|'s block gives, where all that it reads is constant and small.
// Else nothing happens.
PESTLE_NODISCARD pestle_status_t pestle_fold_value(pestle_builder_t* builder,
                                                   pestle_value_t** value);
// The integers of a constant of rank 0 or 1, in |arena|; |*out_known| is false for what
// is none.
PESTLE_NODISCARD pestle_status_t
pestle_constant_i64s(pestle_arena_t* arena, const pestle_value_t* value,
                     pestle_i64s_t* out, bool* out_known);

#endif  // PESTLE_IR_FOLD_H_
