// SPDX-License-Identifier: Apache-2.0
// The template shared_transpose: an argument that lies along another axis than the
// results is read in square tiles, which lanes pass to each other through shared memory.
//
//   shared_transpose S t
//
// S is the last stage, t the argument.
#ifndef PESTLE_CODEGEN_TEMPLATE_SHARED_TRANSPOSE_SHARED_TRANSPOSE_H_
#define PESTLE_CODEGEN_TEMPLATE_SHARED_TRANSPOSE_SHARED_TRANSPOSE_H_

#include "codegen/nest/nest.h"
#include "codegen/template/template.h"

// Lanes of a group: so many along a row of a tile, and rows at once.
enum { PESTLE_SHARED_TRANSPOSE_ALONG = 32, PESTLE_SHARED_TRANSPOSE_ROWS = 8 };

typedef struct pestle_shared_transpose_t {
  const pestle_expr_t* read;
  uint32_t turned;  // the axis of the last stage along which the argument lies
  int64_t vector;   // elements that a lane moves at once, along either axis
  int64_t side;     // of a tile, elements
} pestle_shared_transpose_t;

// Whether the last stage, a map, reads an argument once, along another axis than
// its last one, and both are long enough for a tile.
bool pestle_shared_transpose_find(pestle_nest_t* nest,
                                  pestle_shared_transpose_t* out);

// Elements of shared memory from one row of a tile to the next: odd, so that
// neither rows nor columns fall into one bank.
static inline int64_t pestle_shared_transpose_pitch(
    const pestle_shared_transpose_t* x) {
  return x->side + 1;
}

#endif  // PESTLE_CODEGEN_TEMPLATE_SHARED_TRANSPOSE_SHARED_TRANSPOSE_H_
