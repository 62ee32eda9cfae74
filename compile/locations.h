// SPDX-License-Identifier: Apache-2.0
// Where the ops of a module come from, as numbers that go with them through
// fusion, kernels and steps to profiles, traces and viewers.
//
// Each location (name, file, line, column) of the module that the caller gave has
// one number, in the order in which the module has them, whatever the target and
// the options; an op without a location has a number of its own. Passes do not know
// of it: what they make has the location of what it is made from, and the heirs of
// ir/graph.h say who computes what the others did.
#ifndef PESTLE_COMPILE_LOCATIONS_H_
#define PESTLE_COMPILE_LOCATIONS_H_

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "ir/graph.h"

typedef struct pestle_location_t {
  pestle_op_t op;  // the first one there that is no view, or the first
  pestle_loc_t loc;
} pestle_location_t;

// An op of the module as it was given.
typedef struct pestle_located_t {
  pestle_node_t* node;  // may be gone from the module, not from its memory
  uint32_t location;
  uint32_t next;  // another one with its heir, + 1; 0: none
} pestle_located_t;

typedef struct pestle_locations_t {
  PESTLE_VEC(pestle_location_t) list;  // by number
  PESTLE_VEC(pestle_located_t) ops;
  pestle_map_t numbers;  // location -> number
  pestle_map_t heirs;    // node -> the first of |ops| whose heir it is
  // What pestle_locations_add() adds to; |weak| counts if there is nothing else.
  PESTLE_VEC(uint32_t) added, weak;
} pestle_locations_t;

void pestle_locations_init(pestle_allocator_t allocator,
                           pestle_locations_t* out_locations);
void pestle_locations_deinit(pestle_locations_t* locations);

// Numbers the ops of |module|, which no pass has seen.
PESTLE_NODISCARD pestle_status_t
pestle_locations_number(pestle_locations_t* locations, pestle_module_t* module);
// Finds the heirs of all of them, once the passes are through.
PESTLE_NODISCARD pestle_status_t
pestle_locations_settle(pestle_locations_t* locations);

// Empties what pestle_locations_add() fills.
void pestle_locations_clear(pestle_locations_t* locations);
// Adds the numbers that |node| stands for. Constants stand for none, and a view
// that a pass made for an op of another kind counts only if nothing else does.
PESTLE_NODISCARD pestle_status_t
pestle_locations_add(pestle_locations_t* locations, const pestle_node_t* node);
// Those that were added, ascending and each once; borrowed until the next call.
const uint32_t* pestle_locations_sorted(pestle_locations_t* locations,
                                        uint32_t* out_count);

#endif  // PESTLE_COMPILE_LOCATIONS_H_
