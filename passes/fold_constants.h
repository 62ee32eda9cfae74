// SPDX-License-Identifier: Apache-2.0
// Folding one op, for the pass and for canonicalise.
#ifndef PESTLE_PASSES_FOLD_CONSTANTS_H_
#define PESTLE_PASSES_FOLD_CONSTANTS_H_

#include "passes/pass.h"

// When |node| can be folded, |out| (room for 16) has one constant for each of
// its results; else |out[0]| is NULL. The node is left for the caller to
// replace.
PESTLE_NODISCARD pestle_status_t
pestle_fold_node(const pestle_pass_context_t* ctx, pestle_module_t* module,
                 pestle_node_t* node, pestle_value_t** out);

// The same of a node whose operands are constants or parts of some (fold_parts.c), and of
// partition_id; its result is a constant_part where processes have different ones.
PESTLE_NODISCARD pestle_status_t
pestle_fold_parts(const pestle_pass_context_t* ctx, pestle_module_t* module,
                  pestle_node_t* node, pestle_value_t** out);

// |*value| as a constant if its node can be folded, which stays.
PESTLE_NODISCARD pestle_status_t
pestle_pass_fold_value(const pestle_pass_context_t* ctx,
                       pestle_module_t* module, pestle_value_t** value);

// Folds the large ones among the transposes of constants, each by a thread: they
// are all of what a layout for the whole module costs where weights are many.
PESTLE_NODISCARD pestle_status_t
pestle_fold_turned_weights(const pestle_pass_context_t* ctx,
                           pestle_module_t* module, bool* out_changed);

#endif  // PESTLE_PASSES_FOLD_CONSTANTS_H_
