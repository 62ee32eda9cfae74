// SPDX-License-Identifier: Apache-2.0
// What vmap's rules are written with.
#ifndef PESTLE_TRANSFORM_VMAP_H_
#define PESTLE_TRANSFORM_VMAP_H_

#include "transform/transform.h"

// |type| with the new axis in front.
pestle_type_t pestle_vmap_type(const pestle_vmap_t* v,
                               const pestle_type_t* type);
// |value| of the source's type with the axis in front: as it is if |is_batched|,
// else repeated along it.
pv_t* pestle_vmap_batch(pestle_vmap_t* v, pv_t* value, bool is_batched);
// What takes the place of |value| of the source: itself where it is not batched.
pv_t* pestle_vmap_get(const pestle_vmap_t* v, pv_t* value);
static inline bool pestle_vmap_is_batched(const pestle_vmap_t* v, pv_t* value) {
  return pestle_vmap_get(v, value) != value;
}
// From now on |to| takes the place of |from|.
void pestle_vmap_set(pestle_vmap_t* v, const pv_t* from, pv_t* to);
// Batches the ops of |block|, which has its end: those that stay are those that no
// batched value reaches. v->f stays where it was.
PESTLE_NODISCARD pestle_status_t pestle_vmap_inner(pestle_vmap_t* v,
                                                   pestle_block_t* block);
// The same of the ops from |first| up to |end|, each in front of what is made of it.
PESTLE_NODISCARD pestle_status_t pestle_vmap_nodes(pestle_vmap_t* v,
                                                   pestle_node_t* first,
                                                   const pestle_node_t* end);
// Keeps UNSUPPORTED.
void pestle_vmap_refuse(pestle_vmap_t* v, const pestle_node_t* node,
                        const char* why);
// The attributes of |node| with all dims one further, by the column MEANS of
// ops.def; |out_attrs| has room for PESTLE_MAX_ATTRS.
PESTLE_NODISCARD pestle_status_t pestle_vmap_attrs(pestle_vmap_t* v,
                                                   const pestle_node_t* node,
                                                   pestle_attr_t* out_attrs);
// Copies of |node|'s regions.
PESTLE_NODISCARD pestle_status_t
pestle_vmap_regions(pestle_vmap_t* v, const pestle_node_t* node,
                    pestle_region_t*** out_regions);
// |node| on |operands|, with those attributes and regions; NULL on failure.
pestle_node_t* pestle_vmap_shifted(pestle_vmap_t* v, const pestle_node_t* node,
                                   pv_t* const* operands);

#endif  // PESTLE_TRANSFORM_VMAP_H_
