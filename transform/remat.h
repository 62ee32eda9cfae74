// SPDX-License-Identifier: Apache-2.0
// What a checkpoint keeps besides its operands: its policy, as attributes of the op
// "pestle.checkpoint", and which values of the body that is.
//
//   policy        "nothing" (where none is said), "everything" that reverse mode reads,
//                 "dots": results of contractions, "names": those that |names| lists, or
//                 "min_bytes": as few bytes as there can be without a contraction again
//   names         of values, which the op "pestle.checkpoint_name" gives: "a,b"
//   budget_bytes  the values kept take no more; what is cheapest to compute again for its
//                 bytes goes first. 0: no bound
#ifndef PESTLE_TRANSFORM_REMAT_H_
#define PESTLE_TRANSFORM_REMAT_H_

#include "transform/transform.h"

#define PESTLE_CHECKPOINT_NAME "pestle.checkpoint_name"

typedef enum pestle_keep_e {
  PESTLE_KEEP_NOTHING,
  PESTLE_KEEP_EVERYTHING,
  PESTLE_KEEP_DOTS,
  PESTLE_KEEP_NAMES,
  PESTLE_KEEP_MIN_BYTES,
} pestle_keep_t;

typedef struct pestle_policy_t {
  pestle_keep_t keep;
  const char* names;
  int64_t budget;  // bytes; 0: no bound
} pestle_policy_t;

// Of |node|, a checkpoint; INVALID_ARGUMENT names what it does not know.
PESTLE_NODISCARD pestle_status_t pestle_policy_read(pestle_arena_t* arena,
                                                    const pestle_node_t* node,
                                                    pestle_policy_t* out);

// The name that |node| gives its operand, up to a quote, or NULL.
const char* pestle_remat_name(const pestle_node_t* node);

// One op of a body, in order.
typedef struct pestle_remat_op_t {
  const pestle_node_t* node;  // of the body
  pestle_node_t* again;       // what computes it again
  const char* name;  // of its value, up to a quote; NULL: as |node| says
  bool is_read;      // reverse mode reads a result
  // Set by pestle_remat_choose(): a result is read, or by what is computed again; it is
  // kept; it would not fit.
  bool is_needed, is_kept, is_dropped;
} pestle_remat_op_t;

// Chooses what of |ops| is kept. The scratch of their nodes is their place in |ops|, one
// above.
void pestle_remat_choose(const pestle_policy_t* policy, pestle_remat_op_t* ops,
                         size_t count);
// Bytes of what is kept.
int64_t pestle_remat_bytes(const pestle_remat_op_t* ops, size_t count);

#endif  // PESTLE_TRANSFORM_REMAT_H_
