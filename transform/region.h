// SPDX-License-Identifier: Apache-2.0
// What the rules of control flow share: blocks with tangents, taken apart.
#ifndef PESTLE_TRANSFORM_REGION_H_
#define PESTLE_TRANSFORM_REGION_H_

#include "ir/copy.h"
#include "transform/transform.h"

typedef PESTLE_VEC(pv_t*) pestle_values_t;

// Walks |block|, which need not have its end yet, by |j|, whose formula stays where it
// was.
PESTLE_NODISCARD pestle_status_t pestle_jvp_inner(pestle_jvp_t* j,
                                                  pestle_block_t* block);
// The values of |block| that linear ops of |x|, and |outputs|, read and that are not
// linear. Constants are not among them.
PESTLE_NODISCARD pestle_status_t pestle_region_residuals(
    const pestle_transposer_t* x, const pestle_block_t* block,
    pv_t* const* outputs, size_t output_count, pestle_values_t* out_residuals);
// Copies the linear ops of |x|, and constants that they read, by |copier|, which has
// what takes the place of residuals and inputs.
PESTLE_NODISCARD pestle_status_t pestle_region_copy_linear(
    const pestle_transposer_t* x, pestle_copier_t* copier);
// Copies the ops of |block| that are not linear, without its end.
PESTLE_NODISCARD pestle_status_t
pestle_region_copy_primal(const pestle_transposer_t* x,
                          const pestle_block_t* block, pestle_copier_t* copier);
// What takes the place of |value|; of a constant that was not copied yet its copy.
PESTLE_NODISCARD pestle_status_t pestle_region_map(pestle_copier_t* copier,
                                                   pv_t* value,
                                                   pv_t** out_value);
// Puts a return of |values| behind the others of |block|, or in the place of its own.
PESTLE_NODISCARD pestle_status_t pestle_region_return(pestle_module_t* module,
                                                      pestle_block_t* block,
                                                      pv_t* const* values,
                                                      size_t count);
// The values from outside of |node|'s regions that they read and |map| has, each once.
PESTLE_NODISCARD pestle_status_t
pestle_region_captures(const pestle_node_t* node, const pestle_map_t* map,
                       pestle_values_t* out_values);

#endif  // PESTLE_TRANSFORM_REGION_H_
