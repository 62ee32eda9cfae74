// SPDX-License-Identifier: Apache-2.0
// replica_groups as the axes of a mesh, as StableHLO 1.16 and later have them:
//
//   #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>
//
// are the groups of the devices of the mesh that differ along these axes alone.
#ifndef PESTLE_IR_MESH_AXES_H_
#define PESTLE_IR_MESH_AXES_H_

#include "base/arena.h"
#include "ir/generic.h"
#include "ir/graph.h"

// Whether |value| is such groups.
bool pestle_is_mesh_axes(const pestle_generic_value_t* value);
// The same groups as rows of numbers of devices, i64 [groups, members], in |arena|:
// members by the axes in their order, the first one slowest. |module| has the mesh that
// a name stands for. MALFORMED: a mesh that it has not, axes that the mesh has not or
// that overlap, devices that are not each number once.
PESTLE_NODISCARD pestle_status_t pestle_mesh_axes_groups(
    const pestle_module_t* module, const pestle_generic_value_t* value,
    pestle_arena_t* arena, pestle_elements_t* out_groups);

#endif  // PESTLE_IR_MESH_AXES_H_
