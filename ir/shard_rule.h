// SPDX-License-Identifier: Apache-2.0
// How an op may be divided between processes: its dims as factors, as an einsum has
// them.
//
//   dot_general (b, i, k), (b, k, j) -> (b, i, j)      k is summed up
//   reshape (i j, k) -> (i, j k)
//   sort (i, .) -> (i, .)                              along '.' it is whole
//
// Processes that have parts of a factor do their part of the op. What a dim holds
// besides its factors each process needs whole. A factor that is summed up leaves
// summands.
#ifndef PESTLE_IR_SHARD_RULE_H_
#define PESTLE_IR_SHARD_RULE_H_

#include "ir/spread.h"

enum { PESTLE_RULE_FACTORS = 48, PESTLE_RULE_PER_DIM = 6 };

typedef struct pestle_rule_dim_t {
  uint8_t count;
  uint8_t factors[PESTLE_RULE_PER_DIM];  // the slowest first
} pestle_rule_dim_t;

// One operand or result, or another value that lies as they do.
typedef struct pestle_rule_tensor_t {
  pestle_value_t* value;
  bool is_result;
  // Of an operand: summands of it give summands of the result. With |of_sums| it is
  // counted once where the op leaves summands, as an initial value is.
  bool linear, of_sums;
  pestle_rule_dim_t dims[PESTLE_MAX_RANK];
} pestle_rule_tensor_t;

typedef enum pestle_rule_special_e {
  PESTLE_RULE_PLAIN,
  // Of sharded rows: indices count from this process' first one on.
  PESTLE_RULE_GATHER_ROWS,
  PESTLE_RULE_SCATTER_ROWS,
} pestle_rule_special_t;

typedef struct pestle_shard_rule_t {
  const pestle_node_t* node;
  int factor_count;
  int64_t sizes[PESTLE_RULE_FACTORS];
  bool reduces[PESTLE_RULE_FACTORS];
  pestle_combine_t combine;  // of the factors that are reduced
  // The factor of the rows, and the operand that has the indices; -1: none.
  pestle_rule_special_t special;
  int rows;
  // The groups of a convolution as a factor; -1: none.
  int groups;
  bool view;      // moves elements, or one element makes one
  bool has_rule;  // false: every process does all of it
  uint32_t tensor_count, operand_count;
  pestle_rule_tensor_t* tensors;  // operands, then results
} pestle_shard_rule_t;

// |strict|: sums of floats are not divided. In |arena|. Ops whose regions run on
// tensors (while, if, case) have rules for each value that they hand on: see
// pestle_shard_flow().
PESTLE_NODISCARD pestle_status_t pestle_shard_rule(const pestle_node_t* node,
                                                   bool strict,
                                                   pestle_arena_t* arena,
                                                   pestle_shard_rule_t* out);

// Values of |node|, of its regions and results that lie alike, number |index|: what is
// carried by a while, what branches give. False: there are no more.
PESTLE_NODISCARD pestle_status_t pestle_shard_flow(const pestle_node_t* node,
                                                   uint32_t index,
                                                   pestle_arena_t* arena,
                                                   pestle_shard_rule_t* out,
                                                   bool* out_found);

// |count| tensors without factors; NULL: out of memory.
static inline pestle_rule_tensor_t* pestle_rule_tensors(pestle_arena_t* arena,
                                                        size_t count) {
  return pestle_arena_alloc_zero(arena,
                                 (count + 1) * sizeof(pestle_rule_tensor_t),
                                 _Alignof(pestle_rule_tensor_t));
}

#endif  // PESTLE_IR_SHARD_RULE_H_
