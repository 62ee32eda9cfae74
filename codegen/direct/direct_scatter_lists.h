// SPDX-License-Identifier: Apache-2.0
// Shared by direct_scatter_lists.c, which says what the kernel does, and
// direct_scatter_places.c; nobody else includes it.
#ifndef PESTLE_CODEGEN_DIRECT_DIRECT_SCATTER_LISTS_H_
#define PESTLE_CODEGEN_DIRECT_DIRECT_SCATTER_LISTS_H_

#include "codegen/direct/direct_scatter.h"

enum { PESTLE_SCATTER_SOURCES = 4 };  // inputs of which lanes keep elements

typedef struct pestle_scatter_lists_t {
  pestle_scatter_t* s;
  pestle_direct_t* d;
  pestle_scatter_axes_t outer,
      inner;  // group axes: with indices of their own, and not
  int64_t updates, each, lanes;  // in all; of a lane in a turn; of a group
  int64_t elements,
      across;        // of inner axes; lanes along them, the others by place
  int64_t parts;     // groups that share the elements
  int64_t turns;     // in which indices are looked at
  uint32_t list[3];  // in shared memory: input, update, place
  bool ballots;      // subgroups have them
  uint32_t
      chosen;  // the same: the place of each update, or -1; without ballots
  uint32_t
      sums;  // the same, two of each lane; by ballots of each subgroup, and all before
  pk_t t, part;
  // direct_scatter_places.c.
  bool packs;  // the list has one word an update: its number and its place
  unsigned
      local_bits;    // of the word, the lower ones: the place within the range
  int64_t segments;  // lists after each other, of |room| updates
  int64_t room;
  int64_t held,
      at_once;  // elements of a lane; updates that are loaded together
  pestle_dtype_t numbers;  // of updates, as |sorted| has them
  // In shared memory: numbers by place; of each place how many, and where they begin.
  uint32_t sorted, counts, firsts;
  uint32_t sources[PESTLE_SCATTER_SOURCES];  // where elements come from
} pestle_scatter_lists_t;

// Entry |i| of column |column| of the list, which is at most |most|.
pk_t pestle_scatter_entry(pestle_scatter_lists_t* l, int column, pk_t i,
                          int64_t most);

// --- direct_scatter_places.c: place by place ---

// Whether the op is of the kind; how much of what.
bool pestle_scatter_plan_places(pestle_scatter_lists_t* l);
// Its buffers.
void pestle_scatter_add_places(pestle_scatter_lists_t* l);
// What the list's |count| updates make of the group's places.
PESTLE_NODISCARD pestle_status_t pestle_scatter_change_places(
    pestle_scatter_lists_t* l, pestle_scatter_position_t from, pk_t count);

#endif  // PESTLE_CODEGEN_DIRECT_DIRECT_SCATTER_LISTS_H_
