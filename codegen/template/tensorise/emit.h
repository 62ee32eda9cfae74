// SPDX-License-Identifier: Apache-2.0
// Shared by the emit*.c files: a product by matrix units, as it is
// emitted.
#ifndef PESTLE_CODEGEN_TEMPLATE_TENSORISE_EMIT_H_
#define PESTLE_CODEGEN_TEMPLATE_TENSORISE_EMIT_H_

#include "codegen/emit/emit_internal.h"
#include "codegen/template/tensorise/tensorise.h"

enum {
  PESTLE_WARPGROUP = 128,
  PESTLE_WARPGROUP_ROWS = 64,  // of the sums
  PESTLE_TILE_ROW = 128,       // bytes of a tile's row in shared memory
  PESTLE_TILE_CHUNK = 16,      // bytes that the swizzle moves as one
};

typedef struct pestle_tiles_t {
  pestle_emit_t* e;
  pestle_tensorise_t p;
  pestle_tensorise_how_t how;
  uint32_t reduce, last;
  int64_t rows, columns;  // of a tile
  int64_t consumers, lanes, slots;
  // Tiles of a cluster, or of a group where there is none, and how many of these run at
  // once; steps along k of one group.
  int64_t tiles_m, tiles_n, count, groups, steps;
  int64_t size;  // groups of a cluster
  uint32_t map_a, map_b, tile_a, tile_b, full, empty, sums, pair;
  uint32_t step_sums;    // of the step at hand, where they are apart
  int64_t staged_bytes;  // of shared memory where results wait; 0: nowhere
  uint32_t map_y, staged;
  uint32_t rounds;  // how many tiles came before, where some are left out
  bool ends;        // some of them may be
  uint32_t parts;   // sums of a group's part of k; where there are parts
  pestle_kir_id_t lane, in_warpgroup, warpgroup, group;
  pestle_kir_id_t rank;                       // of the group in its cluster
  pestle_kir_id_t round, batch, row, column;  // of the tile at hand
  // Of its first window: by dim, and the image behind them.
  pestle_kir_id_t window[PESTLE_WINDOW_DIMS + 1];
  pestle_kir_id_t
      cluster_row;  // of the first of its cluster's tiles, in |rows|
} pestle_tiles_t;

// --- emit.c ---

pestle_kir_id_t pestle_tiles_op(const pestle_tiles_t* t, pestle_op_t row,
                                pestle_kir_id_t a, pestle_kir_id_t b);
// An instruction whose value is an address.
pestle_kir_id_t pestle_tiles_address(const pestle_tiles_t* t,
                                     pestle_kir_op_t code, uint32_t a,
                                     uint32_t b);
pestle_kir_id_t pestle_tiles_ref(const pestle_tiles_t* t, uint32_t buffer,
                                 pestle_kir_id_t index);
uint32_t pestle_tiles_shared(const pestle_tiles_t* t, const char* name,
                             pestle_dtype_t dtype, int64_t count,
                             uint32_t align);

// A dim of a tensor map: its extent, that of a box, elements from one to the
// next.
typedef struct pestle_map_dim_t {
  int64_t extent, box, stride;
} pestle_map_dim_t;

// A view of |buffer| from element |offset| on, fastest dim first, whose elements are
// |dtype|'s; of |windows|, unless that is NULL.
uint32_t pestle_tiles_map(const pestle_tiles_t* t, const char* name,
                          uint32_t buffer, pestle_dtype_t dtype, int64_t offset,
                          const pestle_map_dim_t* dims, uint32_t rank,
                          const pestle_window_t* windows);

// A step of k, as the loop over steps opens it.
typedef struct pestle_tiles_step_t {
  pestle_kir_id_t number;
  pestle_kir_id_t depth;  // the first element of k; of a convolution, see below
  pestle_kir_id_t slot, phase;
} pestle_tiles_step_t;

// --- emit_window.c: the copies of a convolution, whose steps are taps, and for each
// tap parts of its channels ---

void pestle_tiles_window_maps(pestle_tiles_t* t);
// Where the first window of the tile at hand stands.
void pestle_tiles_start_window(pestle_tiles_t* t);
void pestle_tiles_copy_window(const pestle_tiles_t* t,
                              const pestle_tiles_step_t* s,
                              pestle_kir_id_t arrives);

// --- emit_result.c ---

// Bytes of shared memory in which results could wait; 0: they must be written by
// the lanes that have them.
int64_t pestle_tiles_staged_bytes(const pestle_tiles_t* t);
void pestle_tiles_add_staged(pestle_tiles_t* t);
// The last stage at the tile at hand, from its sums.
void pestle_tiles_results(const pestle_tiles_t* t);
// Leaves the sums of a part of k where the cluster's groups find them.
void pestle_tiles_keep_part(const pestle_tiles_t* t);
// When all tiles are done.
void pestle_tiles_finish(const pestle_tiles_t* t);

#endif  // PESTLE_CODEGEN_TEMPLATE_TENSORISE_EMIT_H_
