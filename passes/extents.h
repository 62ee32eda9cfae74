// SPDX-License-Identifier: Apache-2.0
// Which values of a block need not be computed whole, as pestle.extent says of some
// (docs/adr/021): along an axis only the places before an *end*, a number that the run
// knows, mean something. An end is a permission, so that what is not understood here
// costs work and never a value.
//
// Two things give a value an end. What lies behind its operands' end, and so behind its
// own, is arbitrary: ends go forward, but not through what chooses between operands. Or
// nobody asks for more: ends go back from the users, if all of them have one.
#ifndef PESTLE_PASSES_EXTENTS_H_
#define PESTLE_PASSES_EXTENTS_H_

#include "base/map.h"
#include "passes/util.h"

// The first |scale| * n places, n the operand 1 of |anchor|; NULL: all.
typedef struct pestle_end_t {
  const pestle_node_t* anchor;
  int64_t scale;
} pestle_end_t;

typedef struct pestle_extents_t {
  pestle_arena_t* arena;
  pestle_map_t ends;  // value -> one end a dim
  bool any;
} pestle_extents_t;

// Finds the ends of |block|'s values, in |arena|. Each pestle.extent is its operand
// from then on, and stays as an anchor: a use of n and of nothing else, which the
// caller erases (pestle_extents_drop()).
PESTLE_NODISCARD pestle_status_t
pestle_extents_find(pestle_allocator_t allocator, pestle_arena_t* arena,
                    pestle_block_t* block, pestle_extents_t* out_extents);
void pestle_extents_deinit(pestle_extents_t* extents);
// Whether values of equal dims end alike.
bool pestle_extents_same(const pestle_extents_t* extents,
                         const pestle_value_t* a, const pestle_value_t* b);
// One end a dim of |value|, or NULL.
const pestle_end_t* pestle_extents_of(const pestle_extents_t* extents,
                                      const pestle_value_t* value);
static inline bool pestle_extents_is_anchor(const pestle_node_t* node) {
  return node->op == PESTLE_OP_EXTENT;
}
void pestle_extents_drop(pestle_block_t* block);

#endif  // PESTLE_PASSES_EXTENTS_H_
