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
