// SPDX-License-Identifier: Apache-2.0
// Products by warpgroups, where the target has them and a tile is filled.
#include <inttypes.h>

#include "codegen/sketch/sketch.h"
#include "codegen/template/tensorise/tensorise.h"

enum {
  TILE_ROWS = 128,
  MOST_COLUMNS = 256,
  LEAST_COLUMNS = 64,
  LEAST_TAPS = 32,
};

// The widest tile of which there is one for each unit, if any.
static int64_t tile_columns(const pestle_sketch_t* k,
                            const pestle_tensorise_t* p) {
  int64_t rows = (p->m + TILE_ROWS - 1) / TILE_ROWS * p->batch;
  int64_t columns = MOST_COLUMNS;
  while (columns > LEAST_COLUMNS &&
         rows * ((p->n + columns - 1) / columns) < k->cores) {
    columns /= 2;
  }
  return columns;
}

pestle_status_t pestle_tensorise_sketch(pestle_sketch_t* k,
                                        const pestle_offer_t* offer,
                                        bool* out_done) {
  pestle_tensorise_t p;
  if (!k->reassociate || !pestle_tensorise_find(k->nest, offer->reduce, &p) ||
      !pestle_sketch_has_unit(k, PESTLE_INTRINSIC_WGMMA, p.dtype, 64, 256,
                              16) ||
      p.m < TILE_ROWS / 2 || p.n < LEAST_COLUMNS || p.k < LEAST_TAPS) {
    return NULL;
  }
  int64_t columns = tile_columns(k, &p);
  pestle_sketch_note(k,
                     "tensorise: matrix units multiply tiles of %d x %" PRId64
                     ", whose operands are copied ahead of them",
                     TILE_ROWS, columns);
  *out_done = true;
  return pestle_schedule_template(
      k->nest, &(pestle_nest_template_t){.row = offer->row,
                                         .stage = offer->reduce,
                                         .ints = {TILE_ROWS, columns, k->cores,
                                                  k->caps->scratch_bytes}});
}
