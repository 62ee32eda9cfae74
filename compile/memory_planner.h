// SPDX-License-Identifier: Apache-2.0
// What the memory_plan_*.c files share: the planner at work.
//
// A *cell* is storage of its own: one argument, constant, or op's result, with
// every value that lies in it (views, results in place, the state of a loop).
// A cell is live over one closed interval of positions. Positions count the ops
// in the order in which they are written, bodies between the begin and the end
// of their op; what a loop reads from outside is live to the loop's end.
#ifndef PESTLE_COMPILE_MEMORY_PLANNER_H_
#define PESTLE_COMPILE_MEMORY_PLANNER_H_

#include "base/vec.h"
#include "compile/memory_plan.h"
#include "passes/util.h"

#define PESTLE_CELL_NONE UINT32_MAX

typedef struct pestle_cell_t {
  const pestle_value_t* root;
  uint8_t storage;  // pestle_storage_t
  uint32_t index;
  int64_t size;          // bytes
  int64_t offset;        // in the arena
  int64_t begin, end;    // live, inclusive
  uint32_t merged_into;  // another cell, or NONE
  uint32_t alternates;   // with a loop's state, from 1 on: memory_plan_loops.c
} pestle_cell_t;

// A value and where it begins in its cell.
typedef struct pestle_planned_t {
  const pestle_value_t* value;
  uint32_t cell;
  int64_t offset;
} pestle_planned_t;

typedef struct pestle_planner_t {
  pestle_arena_t* arena;
  pestle_allocator_t allocator;
  pestle_function_t* function;
  const pestle_memory_wishes_t* wishes;
  PESTLE_VEC(pestle_planned_t) values;  // by value->scratch
  PESTLE_VEC(pestle_cell_t) cells;
} pestle_planner_t;

// node->scratch holds the positions of its begin and end.
static inline int64_t pestle_planner_begin(const pestle_node_t* node) {
  return (int64_t)(node->scratch >> 32);
}
static inline int64_t pestle_planner_end(const pestle_node_t* node) {
  return (int64_t)(node->scratch & UINT32_MAX);
}

// The cell that |cell| has become.
static inline uint32_t pestle_planner_cell(const pestle_planner_t* p,
                                           uint32_t cell) {
  while (p->cells.data[cell].merged_into != PESTLE_CELL_NONE) {
    cell = p->cells.data[cell].merged_into;
  }
  return cell;
}
static inline pestle_cell_t* pestle_planner_cell_of(
    const pestle_planner_t* p, const pestle_value_t* value) {
  return &p->cells.data[pestle_planner_cell(
      p, p->values.data[value->scratch].cell)];
}

// Whether |value| is all of its cell, and so begins where that does: what lies in a cell
// ends in it.
static inline bool pestle_planner_is_whole(const pestle_planner_t* p,
                                           const pestle_value_t* value) {
  return (int64_t)pestle_type_bytes(value->type) ==
         pestle_planner_cell_of(p, value)->size;
}

// memory_plan_cells.c: values, cells and when they are live.
PESTLE_NODISCARD pestle_status_t pestle_planner_find_cells(pestle_planner_t* p);
// memory_plan_in_place.c: results in the storage of operands that die.
PESTLE_NODISCARD pestle_status_t pestle_planner_in_place(pestle_planner_t* p);
// Lets |value| and all that lies in its cell go on in the cell of |into|.
void pestle_planner_merge(pestle_planner_t* p, const pestle_value_t* into,
                          const pestle_value_t* value);
// memory_plan_loops.c: the state of the loop |node|, or what its branches change,
// in place.
PESTLE_NODISCARD pestle_status_t
pestle_planner_chains(pestle_planner_t* p, const pestle_node_t* node);
// What the branches of |node| make themselves, in the place of its results: when all
// within them has its place.
void pestle_planner_branches(pestle_planner_t* p, const pestle_node_t* node);
// State of the loop |node| that its body makes anew elsewhere: the two places take
// turns, so that nothing is copied.
void pestle_planner_alternate(pestle_planner_t* p, const pestle_node_t* node);
// Whether |fusion| reads operand |index| only at the place of the element of
// its one result that it then writes.
bool pestle_planner_may_overwrite(const pestle_node_t* fusion, uint32_t index);
// Whether |node|, whose operand |operand| dies there, may make its result |index|
// where the operand lies.
bool pestle_planner_begins_over(const pestle_planner_t* p,
                                const pestle_node_t* node, uint32_t index,
                                uint32_t operand);
// memory_plan_donation.c: arguments in the storage of results, as it is wished.
// |outputs| has -1 for each argument.
void pestle_planner_place_donated(pestle_planner_t* p, int32_t* outputs);
// memory_plan_offsets.c: a place in the arena for every ARENA cell.
PESTLE_NODISCARD pestle_status_t pestle_planner_offsets(
    pestle_planner_t* p, int64_t* out_size, int64_t* out_lower_bound);

#endif  // PESTLE_COMPILE_MEMORY_PLANNER_H_
