// SPDX-License-Identifier: Apache-2.0
// Shared by direct_scatter_lists.c, which says what the kernel does, and
// direct_scatter_kept.c; nobody else includes it.
#ifndef PESTLE_CODEGEN_DIRECT_DIRECT_SCATTER_LISTS_H_
#define PESTLE_CODEGEN_DIRECT_DIRECT_SCATTER_LISTS_H_

#include "codegen/direct/direct_scatter.h"

enum { PESTLE_SCATTER_KEPT = 4 };  // inputs whose elements a lane keeps

typedef struct pestle_scatter_lists_t {
  pestle_scatter_t* s;
  pestle_direct_t* d;
  pestle_scatter_axes_t outer,
      inner;  // group axes: with indices of their own, and not
  int64_t updates, each, lanes;  // in all; of a lane; of a group
  int64_t elements,
      across;        // of inner axes; lanes along them, the others by place
  int64_t parts;     // groups that share the elements
  uint32_t list[3];  // in shared memory: input, update, place
  bool ballots;      // subgroups have them
  uint32_t
      chosen;     // the same: the place of each update, or -1; without ballots
  uint32_t sums;  // the same, two of each lane; of each subgroup by ballots
  pk_t t, part;
  bool keeps;  // a lane's only element stays in registers
  uint32_t kept[PESTLE_SCATTER_KEPT];
  pk_t own, owns;  // its place, as i32, and whether there is one
  pk_t input, element;
} pestle_scatter_lists_t;

// Entry |i| of column |column| of the list, which is at most |most|.
pk_t pestle_scatter_entry(pestle_scatter_lists_t* l, int column, pk_t i,
                          int64_t most);
// The largest place along |axes|, of the input or of the updates.
int64_t pestle_scatter_reach(const pestle_scatter_axes_t* axes, bool of_input);

// --- direct_scatter_kept.c: elements that stay in registers ---

// Whether each lane has one element of one place at most, of so many |runs| of elements.
bool pestle_scatter_keeps(const pestle_scatter_lists_t* l, int64_t runs);
// Loads them: lanes y of the group have place y of its range.
void pestle_scatter_fetch_kept(pestle_scatter_lists_t* l,
                               pestle_scatter_position_t from);
// The updates of all of a list of |count| that are the lane's, in their order.
PESTLE_NODISCARD pestle_status_t
pestle_scatter_change_kept(pestle_scatter_lists_t* l, pk_t count);
void pestle_scatter_store_kept(pestle_scatter_lists_t* l);

#endif  // PESTLE_CODEGEN_DIRECT_DIRECT_SCATTER_LISTS_H_
