// SPDX-License-Identifier: Apache-2.0
// What explaining a kernel looks up, made once for all of them, so that its time does
// not grow with how many there are.
#ifndef PESTLE_COMPILE_EXPLAIN_INDEX_H_
#define PESTLE_COMPILE_EXPLAIN_INDEX_H_

#include "base/map.h"
#include "compile/kernels.h"
#include "ir/remark.h"

// The kernels of one fusion or direct op, and what is remarked of it.
typedef struct pestle_explain_group_t {
  uint32_t first_kernel, kernels;
  size_t first_read, last_read;  // its remarks about values it reads, + 1
} pestle_explain_group_t;

typedef struct pestle_explain_index_t {
  const pestle_remarks_t* remarks;
  pestle_map_t groups;  // of pestle_node_t*
  uint32_t* part;       // of a kernel: which of its group, from 1 on
  uint32_t* twin;       // of a kernel: the first with the same code
  size_t* next_read;    // of a remark: the next of its group + 1; 0: none
} pestle_explain_index_t;

// The group of |node|; NULL: it has no kernel and no remarks.
pestle_explain_group_t* pestle_explain_group(
    const pestle_explain_index_t* index, const pestle_node_t* node);
// Fills |index|, whose map is empty, from |arena|; false: out of memory.
bool pestle_explain_index_make(const pestle_kernels_t* kernels,
                               const pestle_remarks_t* remarks,
                               pestle_arena_t* arena,
                               pestle_explain_index_t* index);

#endif  // PESTLE_COMPILE_EXPLAIN_INDEX_H_
