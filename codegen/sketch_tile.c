// SPDX-License-Identifier: Apache-2.0
// Where a tile of accumulators lies in its stage.
#include <inttypes.h>

#include "codegen/sketch.h"

enum {
  // Vectors of a plain fold side by side: an add is ready after 4 cycles.
  FOLD_VECTORS = 4,
  // A contraction that is one of a chain has its tile chosen as if it had so
  // many taps, and enough of its kind for all cores.
  CHAIN_TAPS = 64,
  CHAIN_BATCH = 1 << 10,
};

// The innermost axis but the vector's that has something to walk.
static int32_t row_position(const pestle_sketch_t* k,
                            const pestle_nest_stage_t* s) {
  for (uint32_t i = s->map_count - 1; i-- > 0;) {
    if (pestle_sketch_extent(k, s->roots[i]) > 1) return (int32_t)i;
  }
  return s->map_count > 1 ? (int32_t)s->map_count - 2 : -1;
}

pestle_tile_t pestle_sketch_size_tile(const pestle_sketch_t* k, int64_t width,
                                      int64_t height) {
  pestle_tile_t t = {.row = -1, .lanes = pestle_sketch_lanes(k, width)};
  pestle_contract_t c = {.lanes = t.lanes,
                         .width = width,
                         .height = height,
                         .batch = CHAIN_BATCH,
                         .taps = CHAIN_TAPS};
  pestle_choice_t x = pestle_sketch_choose(k, &c);
  t.rows = x.rows;
  t.vectors = x.vectors;
  pestle_sketch_note(k,
                     "tile of %" PRId64 " rows x %" PRId64
                     " vectors of %" PRId64 " for %" PRId64 " x %" PRId64
                     " results",
                     t.rows, t.vectors, t.lanes, height, width);
  return t;
}

pestle_tile_t pestle_sketch_plain_tile(pestle_sketch_t* k, uint32_t fold) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int64_t width = pestle_sketch_extent(k, y->roots[y->map_count - 1]);
  pestle_tile_t t = {.fold = fold,
                     .row = row_position(k, y),
                     .rows = 1,
                     .lanes = pestle_sketch_lanes(k, width)};
  t.vectors = pestle_sketch_min((width + t.lanes - 1) / t.lanes, FOLD_VECTORS);
  return t;
}
