// SPDX-License-Identifier: Apache-2.0
// Tiles of sums in registers, with which ops of class DIRECT and whole composites multiply
// matrices.
#ifndef PESTLE_CODEGEN_DIRECT_DIRECT_TILE_H_
#define PESTLE_CODEGEN_DIRECT_DIRECT_TILE_H_

#include "codegen/direct/direct.h"

enum { PESTLE_DIRECT_TILE_VECTORS = 4 };  // of a row, at most

// sums[i, j] += a[a_at + i a_row + t a_step] * b[b_at + row(t) b_step + j lanes] for t below
// |depth|, f32. row(t) is t, or where b is |bounded| b_first + t, b_last at most.
typedef struct pestle_direct_tile_t {
  pestle_kir_builder_t* k;
  int64_t rows, vectors, depth;
  unsigned lanes;
  uint32_t a, b;  // buffers
  pk_t a_at, b_at;
  int64_t a_row, a_step, b_step;
  bool bounded;
  pk_t b_first;
  int64_t b_last;
  uint32_t sums;  // set by begin
} pestle_direct_tile_t;

// Makes the registers, undefined, where this is called.
void pestle_direct_tile_begin(pestle_direct_tile_t* t);
void pestle_direct_tile_clear(const pestle_direct_tile_t* t);
pk_t pestle_direct_tile_get(const pestle_direct_tile_t* t, int64_t i,
                            int64_t j);
void pestle_direct_tile_set(const pestle_direct_tile_t* t, int64_t i, int64_t j,
                            pk_t value);
// Row i of the tile is at |from| + i |pitch| of |buffer|.
void pestle_direct_tile_load(const pestle_direct_tile_t* t, uint32_t buffer,
                             pk_t from, int64_t pitch);
void pestle_direct_tile_store(const pestle_direct_tile_t* t, uint32_t buffer,
                              pk_t to, int64_t pitch);
void pestle_direct_tile_multiply(const pestle_direct_tile_t* t);

#endif  // PESTLE_CODEGEN_DIRECT_DIRECT_TILE_H_
