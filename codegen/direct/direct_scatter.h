// SPDX-License-Identifier: Apache-2.0
// Shared by the direct_scatter*.c files; nobody else includes it.
#ifndef PESTLE_CODEGEN_DIRECT_DIRECT_SCATTER_H_
#define PESTLE_CODEGEN_DIRECT_DIRECT_SCATTER_H_

#include "codegen/direct/direct.h"

enum { PESTLE_SCATTER_INPUTS = 31 };

// One loop, and what a step of it is in each tensor, in elements.
typedef struct pestle_scatter_axis_t {
  int64_t extent, input, update, index;
} pestle_scatter_axis_t;

typedef struct pestle_scatter_axes_t {
  pestle_scatter_axis_t list[PESTLE_MAX_RANK];
  uint32_t count;
} pestle_scatter_axes_t;

// Positions in the three tensors.
typedef struct pestle_scatter_position_t {
  pk_t input, update, index;
} pestle_scatter_position_t;

typedef struct pestle_scatter_t {
  pestle_direct_t* d;
  uint32_t count;  // inputs
  const pestle_type_t *input, *indices, *updates;
  uint32_t results[PESTLE_SCATTER_INPUTS], changes[PESTLE_SCATTER_INPUTS];
  uint32_t starts;  // buffers
  pestle_scatter_axes_t groups, batch, window;
  pestle_scatter_axis_t vector;  // extent 0: none
  bool vector_groups;            // groups take parts of it
  int64_t part;                  // so many vectors
  bool lanes;                    // one takes an element
  int64_t ranges;                // of |range| places along |ranged|; 1: all
  int64_t range;
  size_t ranged;  // by number among |map|
  pk_t low;       // which range it is of which this group has the places
  pk_t place;  // of an update along |ranged|, once it is known where it begins
  pestle_i64s_t map;
  int64_t index_step;  // between the components of an index
  int64_t input_stride[PESTLE_MAX_RANK], limit[PESTLE_MAX_RANK];
  bool is_slice;  // dynamic_update_slice
} pestle_scatter_t;

pestle_scatter_position_t pestle_scatter_move(pestle_scatter_t* s,
                                              pestle_scatter_position_t at,
                                              const pestle_scatter_axis_t* axis,
                                              pk_t by);
// |number| as a step along each of |axes|, the last one's fastest.
pestle_scatter_position_t pestle_scatter_move_all(
    pestle_scatter_t* s, pestle_scatter_position_t at,
    const pestle_scatter_axes_t* axes, pk_t number);
// Opens a loop for each of |axes|; their number is to be closed.
pestle_scatter_position_t pestle_scatter_open(pestle_scatter_t* s,
                                              const pestle_scatter_axes_t* axes,
                                              const char* name,
                                              pestle_scatter_position_t at);
void pestle_scatter_close(pestle_scatter_t* s, uint32_t count);
int64_t pestle_scatter_elements(const pestle_scatter_axes_t* axes);
// Applies the region there.
PESTLE_NODISCARD pestle_status_t
pestle_scatter_update(pestle_scatter_t* s, pestle_scatter_position_t at,
                      unsigned lanes, pk_t mask);
// Whether the window at the index fits, and in this group's range; and where it then
// begins.
pk_t pestle_scatter_start(pestle_scatter_t* s, pestle_scatter_position_t* at);

// Updates by lists (direct_scatter_lists.c): whether the target and the op are of the
// kind; the kernel.
bool pestle_scatter_has_lists(pestle_scatter_t* s);
PESTLE_NODISCARD pestle_status_t pestle_scatter_lists(pestle_scatter_t* s);

#endif  // PESTLE_CODEGEN_DIRECT_DIRECT_SCATTER_H_
