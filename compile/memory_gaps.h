// SPDX-License-Identifier: Apache-2.0
// Free ranges of an arena that is filled and emptied, by best fit: each request
// and each return takes time in the logarithm of how many ranges there are.
#ifndef PESTLE_COMPILE_MEMORY_GAPS_H_
#define PESTLE_COMPILE_MEMORY_GAPS_H_

#include "base/arena.h"
#include "base/map.h"
#include "pestle/status.h"

// A free range between used ones: a node of a treap, by size and then offset.
typedef struct pestle_gap_t {
  int64_t offset, size;
  uint32_t priority;
  uint32_t left, right;  // 0: none
} pestle_gap_t;

typedef struct pestle_gaps_t {
  pestle_gap_t* gaps;  // [0] is none
  uint32_t used;       // nodes that were ever taken
  uint32_t unused;     // list of those given back, by |left|
  uint32_t root;
  pestle_map_t begins;  // offset -> gap
  pestle_map_t ends;    // end -> gap
  int64_t top;          // all is free from here on
} pestle_gaps_t;

// For at most |most| ranges in use at once.
PESTLE_NODISCARD pestle_status_t pestle_gaps_init(pestle_arena_t* arena,
                                                  size_t most,
                                                  pestle_gaps_t* out_gaps);
void pestle_gaps_deinit(pestle_gaps_t* gaps);
// Takes |size| bytes from the smallest range that has them, of equal ones the
// lowest, at its beginning.
PESTLE_NODISCARD pestle_status_t pestle_gaps_take(pestle_gaps_t* gaps,
                                                  int64_t size,
                                                  int64_t* out_offset);
// Gives |size| bytes at |offset| back, which were taken.
PESTLE_NODISCARD pestle_status_t pestle_gaps_give(pestle_gaps_t* gaps,
                                                  int64_t offset, int64_t size);

#endif  // PESTLE_COMPILE_MEMORY_GAPS_H_
