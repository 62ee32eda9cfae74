// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a function whose derivative is taken in two halves (linearize.c). Their
// bodies are put in their places, and where these begin and end is written down: of what
// the linear half reads of such a range the policy says what is kept, as a residual. The
// rest the linear half computes again, by an op "pestle.checkpoint" of its own:
//
//   f(x)               -> y, x, and what the policy keeps
//   f(x, kept, x.t)    -> y.t         %v = pestle.checkpoint %x, %kept { .. }
#ifndef PESTLE_TRANSFORM_RECOMPUTE_H_
#define PESTLE_TRANSFORM_RECOMPUTE_H_

#include "transform/remat.h"
#include "transform/work.h"

// What was a checkpoint lies between two ops that nobody reads.
typedef struct pestle_range_t {
  pestle_node_t *first, *end;
  pestle_policy_t policy;
  pestle_remat_op_t* ops;  // that are not linear, in order
  size_t op_count;
} pestle_range_t;

// What "pestle.checkpoint_name" says of a value.
typedef struct pestle_named_t {
  const pestle_node_t* node;  // that computes it
  const char* name;           // up to a quote
} pestle_named_t;

typedef struct pestle_ranges_t {
  pestle_arena_t arena;
  PESTLE_VEC(pestle_range_t) list;  // by their beginnings; some lie in others
  PESTLE_VEC(pestle_named_t) named;
} pestle_ranges_t;

void pestle_ranges_init(pestle_allocator_t allocator,
                        pestle_ranges_t* out_ranges);
void pestle_ranges_deinit(pestle_ranges_t* ranges);
// pestle_transform_expand() of |node|, which is written down if it is a checkpoint or a
// name.
PESTLE_NODISCARD pestle_status_t pestle_ranges_expand(pestle_ranges_t* ranges,
                                                      pestle_node_t* node,
                                                      pestle_node_t** out_next);

// The values of a function that its linear ops read and that are kept.
typedef struct pestle_residuals_t {
  pestle_work_t* w;
  pestle_ranges_t* ranges;
  pestle_map_t places;  // value -> its place among |values|
  PESTLE_VEC(pv_t*) values;
} pestle_residuals_t;

// Fills |r|->values.
PESTLE_NODISCARD pestle_status_t pestle_residuals_find(pestle_residuals_t* r);
// Linear ops read |arguments|, one for each residual, in the place of these, and of what
// is not kept the results of ops that compute it again from |arguments|.
PESTLE_NODISCARD pestle_status_t
pestle_residuals_replace(pestle_residuals_t* r, pv_t* const* arguments);

#endif  // PESTLE_TRANSFORM_RECOMPUTE_H_
