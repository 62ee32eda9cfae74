// SPDX-License-Identifier: Apache-2.0
// Which function of the text the body of each CUSTOM is. Equal bodies of ops of
// one name share one.
#ifndef PESTLE_IR_PRINT_BODIES_H_
#define PESTLE_IR_PRINT_BODIES_H_

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "ir/graph.h"

typedef struct pestle_print_bodies_t {
  pestle_arena_t arena;
  pestle_map_t name_of;  // node -> its function's name
  pestle_map_t taken;    // names of functions
  pestle_map_t latest;   // name and types -> the last node with a new body
  PESTLE_VEC(const pestle_node_t*) nodes;  // whose bodies are to be printed
  bool apart;  // equal bodies are printed each: their locations differ
} pestle_print_bodies_t;

void pestle_print_bodies_init(pestle_allocator_t allocator,
                              pestle_print_bodies_t* out_bodies);
void pestle_print_bodies_deinit(pestle_print_bodies_t* bodies);
// Finds and names the bodies in |module|: "user.op.impl", or with a number
// behind where a function has that name.
PESTLE_NODISCARD pestle_status_t pestle_print_bodies_assign(
    pestle_print_bodies_t* bodies, const pestle_module_t* module);
// The function of |node|'s body. It has one.
const char* pestle_print_bodies_name(const pestle_print_bodies_t* bodies,
                                     const pestle_node_t* node);

#endif  // PESTLE_IR_PRINT_BODIES_H_
