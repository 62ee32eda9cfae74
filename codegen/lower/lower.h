// SPDX-License-Identifier: Apache-2.0
// From a fusion to nests: what it computes as stages, before any schedule.
//
// codegen/lower/ says what an op computes: its stages, a file a class of ops.
// codegen/lower/ knows nothing of targets, schedules or the flat form.
#ifndef PESTLE_CODEGEN_LOWER_LOWER_H_
#define PESTLE_CODEGEN_LOWER_LOWER_H_

#include "codegen/nest/nest.h"
#include "pestle/compile.h"

// One result of the group, or one operand's part of a result that is a
// concatenation: |value| written to result |slot| through |writes|.
typedef struct pestle_piece_t {
  uint32_t slot;
  pestle_value_t* value;
  // From |value| to the result: views to apply, outermost (last) first.
  pestle_node_t** views;
  uint32_t view_count;
  int32_t concat_dim;  // -1, or the dim of the concatenation below the views
  int64_t concat_offset;
} pestle_piece_t;

// Results that one kernel computes.
typedef struct pestle_kernel_group_t {
  pestle_piece_t* pieces;
  pestle_node_t** nodes;  // of the body that it needs, in order
  uint32_t* arguments;    // operands of the fusion that it reads, in order
  uint32_t piece_count, node_count, argument_count;
} pestle_kernel_group_t;

// Divides the results of |fusion| among kernels: results of one shape share
// one, a concatenation is written by one kernel an operand. |joins|: of operands of one
// shape that are copied some are written by one kernel.
PESTLE_NODISCARD pestle_status_t pestle_lower_partition(
    pestle_arena_t* arena, const pestle_node_t* fusion, bool joins,
    pestle_kernel_group_t** out_groups, uint32_t* out_count);

// Builds |out_nest| (initialised by the caller) for |group|: INPUT tensors for
// the operands that it reads, one OUTPUT tensor a piece, map and reduction stages in
// topological order, nothing inlined. |aliases| (result slot to operand, -1
// none) may be NULL.
PESTLE_NODISCARD pestle_status_t pestle_lower_group(
    const pestle_node_t* fusion, const pestle_kernel_group_t* group,
    const int32_t* aliases, pestle_numerics_t numerics, pestle_nest_t* nest);

#endif  // PESTLE_CODEGEN_LOWER_LOWER_H_
