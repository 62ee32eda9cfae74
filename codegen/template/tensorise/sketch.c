// SPDX-License-Identifier: Apache-2.0
// Products by warpgroups, where the target has them and a tile is filled.
#include <inttypes.h>

#include "base/bits.h"
#include "codegen/sketch/sketch.h"
#include "codegen/template/tensorise/tensorise.h"

enum {
  TILE_ROWS = 128,
  MOST_COLUMNS = 256,
  LEAST_COLUMNS = 64,
  LEAST_TAPS = 32,
  // Of a unit of an H200; bytes as convolutions were measured to bring them: 570, 910
  // and 1330 cycles a step of 64, 128 and 256 columns.
  PRODUCTS_A_CYCLE = 2048,
  BYTES_A_CYCLE = 37,
  SLOTS = 4,
};

// mma.sync reaches 26 % of these units' rate in a convolution, and they 92 % of it in a
// product, on an H200.
static const double LEAST_USED = 0.3;

static int64_t tiles_of(const pestle_tensorise_t* p, int64_t columns) {
  return pestle_ceil_div(p->m, TILE_ROWS) * pestle_ceil_div(p->n, columns) *
         p->batch;
}

// Cycles of a convolution: in each round of tiles a step waits for the products or for
// what both operands bring through the cache.
static double cycles(const pestle_sketch_t* k, const pestle_tensorise_t* p,
                     int64_t columns) {
  double products = (double)(TILE_ROWS * columns) / PRODUCTS_A_CYCLE;
  double bytes = (double)((TILE_ROWS + columns) * 2) / BYTES_A_CYCLE;
  double step = PESTLE_TENSORISE_DEPTH * (bytes > products ? bytes : products);
  return (double)pestle_ceil_div(tiles_of(p, columns), k->cores) * step;
}

// The widest tile of which there is one for each unit, if any; of convolutions the one
// with the fewest cycles.
static int64_t tile_columns(const pestle_sketch_t* k,
                            const pestle_tensorise_t* p) {
  int64_t columns = MOST_COLUMNS;
  if (!p->window.rank) {
    while (columns > LEAST_COLUMNS && tiles_of(p, columns) < k->cores)
      columns /= 2;
    return columns;
  }
  for (int64_t c = columns / 2; c >= LEAST_COLUMNS; c /= 2) {
    if (cycles(k, p, c) < cycles(k, p, columns)) columns = c;
  }
  return columns;
}

// The share of what the target's units multiply meanwhile that are products of the
// result: tiles at the ends, and steps of channels at theirs, are padded, and in the
// last round units have nothing to do.
static double used(const pestle_sketch_t* k, const pestle_tensorise_t* p,
                   int64_t columns) {
  double rounds =
      (double)(pestle_ceil_div(tiles_of(p, columns), k->cores) * k->cores);
  double all = rounds * TILE_ROWS * (double)columns *
               (double)pestle_tensorise_steps(p) * PESTLE_TENSORISE_DEPTH;
  return (double)p->m * (double)p->n * (double)p->k * (double)p->batch / all;
}

// Whether units of subgroups, which multiply at a quarter of the rate, but in tiles
// of any size, are left behind.
static bool is_worth(pestle_sketch_t* k, const pestle_tensorise_t* p,
                     int64_t columns) {
  double share = used(k, p, columns);
  if (!p->window.rank) return true;
  pestle_sketch_note(k,
                     "tensorise: %.0f %% of the products of tiles of %d x "
                     "%" PRId64
                     " are of the result; from %.0f %% on that beats "
                     "shared_tile by units of subgroups",
                     100 * share, TILE_ROWS, columns, 100 * LEAST_USED);
  return share >= LEAST_USED;
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
  if (!is_worth(k, &p, columns)) return NULL;
  pestle_sketch_note(k,
                     "tensorise: matrix units multiply tiles of %d x %" PRId64
                     ", whose %s are copied ahead of them",
                     TILE_ROWS, columns,
                     p.window.rank ? "windows and weights" : "operands");
  *out_done = true;
  return pestle_schedule_template(
      k->nest,
      &(pestle_nest_template_t){.row = offer->row,
                                .stage = offer->reduce,
                                .ints = {TILE_ROWS, columns, k->cores,
                                         k->caps->scratch_bytes, 1, 1, SLOTS}});
}
