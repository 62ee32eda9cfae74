// SPDX-License-Identifier: Apache-2.0
// Copies that are meant at once, put into an order in which they are made one
// after the other: what another one still reads is overwritten last.
#ifndef PESTLE_COMPILE_COPIES_H_
#define PESTLE_COMPILE_COPIES_H_

#include "base/arena.h"
#include "pestle/plan_format.h"

typedef struct pestle_copies_t {
  pestle_plan_binding_t* from;
  const pestle_plan_binding_t* to;
  size_t count, left;
  bool* done;
  uint32_t* readers;   // of each destination: copies due that read it
  uint32_t* by_place;  // the destinations by where they begin
  uint64_t* ends;      // the last end of those up to here, in the same storage
  uint32_t* ready;     // heap: destinations that nobody reads, lowest first
  size_t ready_count, cursor;
} pestle_copies_t;

// |from| and |to| are borrowed; sources that lie where they are copied to, or have
// no bytes, are left out.
PESTLE_NODISCARD pestle_status_t pestle_copies_init(
    pestle_arena_t* arena, pestle_plan_binding_t* from,
    const pestle_plan_binding_t* to, size_t count, pestle_copies_t* out_copies);
// The next copy to be made. |*out_cycle|: it is in a cycle (a loop that swaps two
// values), so that its source is to be kept elsewhere first; the caller changes
// from[i] to that place, and it comes again. |count| at the end.
size_t pestle_copies_next(pestle_copies_t* copies, bool* out_cycle);

bool pestle_copies_same_place(const pestle_plan_binding_t* a,
                              const pestle_plan_binding_t* b);

#endif  // PESTLE_COMPILE_COPIES_H_
