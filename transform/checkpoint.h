// SPDX-License-Identifier: Apache-2.0
// Ops by name that derivatives know: one that is computed again, one without any.
#ifndef PESTLE_TRANSFORM_CHECKPOINT_H_
#define PESTLE_TRANSFORM_CHECKPOINT_H_

#include "transform/transform.h"
#include "transform/vmap.h"

#define PESTLE_CHECKPOINT "pestle.checkpoint"
#define PESTLE_STOP_GRADIENT "pestle.stop_gradient"

// Whether |node| is the first, with a body, or the second.
bool pestle_is_checkpoint(const pestle_node_t* node);
bool pestle_is_stop(const pestle_node_t* node);
// Whether |node|, one of these with a body, is to be the same op when it is batched.
static inline bool pestle_is_kept(const pestle_node_t* node) {
  return pestle_is_checkpoint(node) ||
         (pestle_is_stop(node) && node->region_count == 1);
}
void pestle_vmap_kept(pestle_vmap_t* v, const pestle_node_t* node,
                      pv_t* const* operands, const bool* is_batched,
                      pv_t** out);
// Adds the cotangents of the |count| operands of a checkpoint: |node|'s operands are
// these, its results, and a tangent for each operand; |ct| are the results' cotangents.
void pestle_checkpoint_pull(pestle_transposer_t* x, const pestle_node_t* node,
                            uint32_t count, pv_t* const* ct);
// Where |node|, a linear op whose results' cotangents are |ct|, reads a checkpoint that
// linear ops alone read: that is computed when |ct| is there, no sooner.
void pestle_checkpoint_delay(pestle_transposer_t* x, const pestle_node_t* node,
                             pv_t** ct);

#endif  // PESTLE_TRANSFORM_CHECKPOINT_H_
