// SPDX-License-Identifier: Apache-2.0
// The world that a module runs in, and who takes part in each of its collectives:
// the table at ALL_REDUCE in ops.def.
#ifndef PESTLE_IR_COLLECTIVE_H_
#define PESTLE_IR_COLLECTIVE_H_

#include "base/arena.h"
#include "ir/graph.h"

// A module runs as |replicas| x |partitions| processes: number replica *
// partitions + partition.
typedef struct pestle_world_shape_t {
  int32_t replicas, partitions;
} pestle_world_shape_t;

// As module attributes mhlo.num_replicas and mhlo.num_partitions say; 1 where one is
// missing or no such number.
pestle_world_shape_t pestle_module_world(const pestle_module_t* module);

// |count| rows of |size| numbers of processes, -1 where a row has no more: the members
// of each group in their order, or who sends and who receives.
typedef struct pestle_groups_t {
  const int32_t* ranks;
  uint32_t count, size;
} pestle_groups_t;

// Fills |*out_groups| in, in |arena|; UNSUPPORTED and MALFORMED say what is wrong with
// them. |node| is in a module.
PESTLE_NODISCARD pestle_status_t
pestle_collective_groups(const pestle_node_t* node, pestle_arena_t* arena,
                         pestle_groups_t* out_groups);
// Whether groups and types of |node| fit each other.
PESTLE_NODISCARD pestle_status_t pestle_collective_check(
    const pestle_node_t* node, pestle_allocator_t allocator);
// The row that |rank| is in, and its place there; false: in none.
bool pestle_groups_find(const pestle_groups_t* groups, int32_t rank,
                        uint32_t* out_row, uint32_t* out_place);
// How many members row |row| has.
uint32_t pestle_groups_members(const pestle_groups_t* groups, uint32_t row);

#endif  // PESTLE_IR_COLLECTIVE_H_
