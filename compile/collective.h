// SPDX-License-Identifier: Apache-2.0
// Records of a plan's collectives.
#ifndef PESTLE_COMPILE_COLLECTIVE_H_
#define PESTLE_COMPILE_COLLECTIVE_H_

#include "compile/plan_build.h"
#include "ir/collective.h"

// Appends the collective of |node|, in a form that transports have, whose tensors are
// the |count| |bindings|; its step comes next.
void pestle_plan_add_collective(pestle_plan_build_t* plan,
                                const pestle_node_t* node,
                                const pestle_groups_t* groups,
                                const pestle_plan_binding_t* bindings,
                                uint32_t count);

#endif  // PESTLE_COMPILE_COLLECTIVE_H_
