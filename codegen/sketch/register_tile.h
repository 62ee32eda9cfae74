// SPDX-License-Identifier: Apache-2.0
// A register tile: rows x vectors x lanes of accumulators that a contraction or a
// plain reduction keeps in registers, and the operands that it reads. Which tile is
// the cost model's choice (cost.h).
#ifndef PESTLE_CODEGEN_SKETCH_REGISTER_TILE_H_
#define PESTLE_CODEGEN_SKETCH_REGISTER_TILE_H_

#include "codegen/schedule/schedule.h"

// Accumulators for rows x vectors x lanes of |reduce|'s result.
typedef struct pestle_register_tile_t {
  uint32_t reduce;
  int32_t row;  // position of the tile's row axis among the roots; -1: none
  int64_t rows, vectors, lanes;
  // Columns of one group, as of a grouped convolution, if it has a vector or more of
  // them and they read the same; else 0. |group_stride|: elements from what a group
  // reads to what the next one does.
  int64_t group, group_stride;
  bool per_group;  // a tile has columns of one group; else vectors of several
  // Steps of the axis |halo_axis| that share a padded box; or 0. The axis' position
  // among the roots; -1: none.
  int64_t halo_rows;
  int32_t halo_axis;
  // Tiles of columns that go through the rows of windows together, where there is no
  // box: a strip; or 0.
  int64_t column_strip;
  bool slides;       // neighbours along |row| share what their windows read
  bool per_channel;  // a padded box is for all columns of a channel's rows
  // A padded box is for all rows, which are features that share their windows, and all
  // columns.
  bool im2row;
  int64_t chunk;         // rows of a core, outside tiles of columns; 0: of all
  bool row_major_tiles;  // tiles of columns are within those of rows
} pestle_register_tile_t;

// The argument of a product's operand that moves along an axis; -1: none does.
// Only contiguously it is the vector operand of a tile, else it is staged.
typedef struct pestle_operand_t {
  pestle_sketch_t* k;
  uint32_t axis;
  int32_t tensor;
  int64_t stride;  // elements, along the axis
  bool unit, constant;
  bool packed;    // its elements are gathered into packed words
  int64_t size;   // bytes of an element
  bool aliasing;  // rows a large power of two apart fall into few cache sets
  int64_t
      pitch;  // bytes that the reduction's axis moves by; 0: several axes do
} pestle_operand_t;

// Columns of a panel of the vector operand: a tile's, or a group's, if it has no whole
// number of tiles.
static inline int64_t pestle_sketch_panel(const pestle_register_tile_t* t) {
  int64_t columns = t->vectors * t->lanes;
  return t->per_group && t->group % columns ? t->group : columns;
}

pestle_operand_t pestle_sketch_operand(pestle_sketch_t* k,
                                       const pestle_expr_t* side,
                                       uint32_t axis);

// A tile of accumulators for |width| columns and |height| rows of products.
pestle_register_tile_t pestle_sketch_size_tile(pestle_sketch_t* k,
                                               int64_t width, int64_t height);
// Packs a constant vector operand of the tile's reduction into panels of |panel| columns,
// or, |copied|, copies one into scratch: the tensor, or the stage; else -1.
PESTLE_NODISCARD pestle_status_t pestle_sketch_pack_operand(
    pestle_sketch_t* k, pestle_register_tile_t* t, int64_t panel, bool copied,
    int32_t* out_packed, int32_t* out_staged);
// The reduction inside its tile: reduction loops, then the unrolled tile.
PESTLE_NODISCARD pestle_status_t
pestle_sketch_tile_reduce(pestle_sketch_t* k, const pestle_register_tile_t* t);
// The tile for |reduce|, a plain one: one row.
pestle_register_tile_t pestle_sketch_plain_tile(pestle_sketch_t* k,
                                                uint32_t reduce);

#endif  // PESTLE_CODEGEN_SKETCH_REGISTER_TILE_H_
