// SPDX-License-Identifier: Apache-2.0
// What the rules of collectives share.
#ifndef PESTLE_TRANSFORM_COLLECTIVE_H_
#define PESTLE_TRANSFORM_COLLECTIVE_H_

#include "transform/transform.h"

// |op| on |a|, of |type|, with |attrs|; sums where it combines.
pv_t* pestle_collective_make(pestle_formula_t* f, pestle_op_t op, pv_t* a,
                             const pestle_type_t* type,
                             const pestle_attr_t* attrs, size_t count);
// The tangents of |node|, an all_reduce or reduce_scatter that does not add.
void pestle_jvp_collective(pestle_jvp_t* j, pestle_node_t* node, pv_t** out);

#endif  // PESTLE_TRANSFORM_COLLECTIVE_H_
