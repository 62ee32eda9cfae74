// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3 x 3 taps by Winograd's algorithm, where that is estimated to
// be clearly cheaper: a quarter of the multiply-adds, for two transforms and
// weights four times as large.
#include <inttypes.h>

#include "base/bits.h"
#include "codegen/sketch.h"
#include "codegen/winograd.h"

enum {
  // Cycles of the transforms for one vector of one tile: 36 loads, 144 steps
  // and 36 stores; 36 loads, 120 steps and 16 results.
  IN_CYCLES = 190,
  OUT_CYCLES = 170,
  // Tiles that share a pass over the weights, at least where there are as many.
  MOST_TILES = 40,
  LEAST_TILES = 12,
  // With fewer boxes groups have a share of the features each, and make the
  // factors of its inputs again: some 8 % of the products of so many features.
  // With fewer than the other number boxes are smaller.
  FEW_GROUPS = 8,
  LEAST_FEATURES = 64,
  MORE_GROUPS = 14,
  WIDE_VECTORS = 4,
  MOST_ROWS = 14,
  // Weights of more than this part of L3 are not there when they are needed
  // again, behind those of other kernels. Measured in ResNet-18 on a Sapphire
  // Rapids with 105 MB: 38 MB for 512 features at 7 x 7 are read at 8 GB/s.
  L3_SHARE = 4,
};

// Scratch of a group is this share of L2 at most.
static const double SCRATCH_OF_L2 = 0.75;
// Products lose this share of the peak to their loops.
static const double PRODUCT_LOSS = 1.07;
// Of what hides behind products this share shows.
static const double HIDDEN_SHARE = 0.3;
// The other way must cost so many times as much.
static const double CLEARLY = 1.15;

static int64_t even_share(int64_t all, int64_t most) {
  if (most < 1) most = 1;
  return pestle_ceil_div(all, pestle_ceil_div(all, most));
}

static int64_t boxes(const pestle_winograd_t* w,
                     const pestle_nest_winograd_t* h) {
  return w->images * pestle_ceil_div(w->tiles_high, h->tiles_high) *
         pestle_ceil_div(w->tiles_wide, h->tiles_wide);
}

static pestle_nest_winograd_t size_up(pestle_sketch_t* k,
                                      const pestle_winograd_t* w) {
  pestle_nest_winograd_t h = {.lanes = k->lanes};
  while (h.lanes > 1 && w->inputs % h.lanes)
    h.lanes /= 2;
  int64_t vectors = pestle_ceil_div(w->outputs, h.lanes);
  h.vectors = even_share(vectors, k->registers >= 32 ? WIDE_VECTORS : 2);
  int64_t tile = PESTLE_WINOGRAD_ALL * PESTLE_SKETCH_ELEMENT *
                 (w->inputs + h.vectors * h.lanes);
  int64_t bytes = (int64_t)((double)k->l2 * SCRATCH_OF_L2);
  int64_t scratch = k->caps->scratch_bytes;
  if (scratch && bytes > scratch * 9 / 10) bytes = scratch * 9 / 10;
  int64_t most = bytes / tile;
  if (most > MOST_TILES) most = MOST_TILES;
  h.tiles_wide = even_share(w->tiles_wide, most);
  h.tiles_high = even_share(w->tiles_high, most / h.tiles_wide);
  h.panels = pestle_ceil_div(vectors, h.vectors);
  bool few = boxes(w, &h) < FEW_GROUPS;
  int64_t each = h.panels;
  for (int64_t p = 2; few && p <= h.panels; ++p) {
    int64_t part = h.panels / p;
    if (h.panels % p == 0 && part * h.vectors * h.lanes >= LEAST_FEATURES) {
      each = part;
    }
  }
  h.panels = each;
  // Boxes of fewer tiles, rather than threads without work.
  while (!few && boxes(w, &h) < MORE_GROUPS && h.tiles_high > 1 &&
         (h.tiles_high / 2) * h.tiles_wide >= LEAST_TILES) {
    h.tiles_high = even_share(w->tiles_high, h.tiles_high / 2);
  }
  int64_t budget = k->registers * 3 / 4 / h.vectors;
  int64_t rows = pestle_sketch_min(budget, MOST_ROWS);
  h.rows = even_share(h.tiles_high * h.tiles_wide, rows);
  h.looped = pestle_sketch_transcendental(k, pestle_sketch_stage(k, k->anchor));
  return h;
}

static int64_t weight_bytes(const pestle_winograd_t* w,
                            const pestle_nest_winograd_t* h) {
  return pestle_winograd_elements(w, h) * PESTLE_SKETCH_ELEMENT;
}

static double cycles_of(const pestle_sketch_t* k, const pestle_winograd_t* w,
                        const pestle_nest_winograd_t* h) {
  int64_t groups = boxes(w, h);
  double tiles = (double)(groups * h->tiles_high * h->tiles_wide);
  double shares =
      (double)(pestle_ceil_div(w->outputs, h->vectors * h->lanes) / h->panels);
  double vectors = (double)pestle_ceil_div(w->outputs, h->lanes);
  double products =
      PESTLE_WINOGRAD_ALL * tiles * (double)w->inputs * vectors * PRODUCT_LOSS;
  double transforms =
      tiles * ((double)(w->inputs / h->lanes) * IN_CYCLES * shares +
               vectors * OUT_CYCLES);
  pestle_core_rates_t rates = pestle_sketch_rates(k->caps);
  products /= rates.fmas;
  transforms /= rates.fmas;
  double bytes = (double)weight_bytes(w, h);
  double rate = bytes <= (double)k->l2 / 2          ? rates.l2
                : bytes <= (double)k->l3 / L3_SHARE ? rates.l3
                                                    : rates.crowded;
  double traffic = bytes / rate * (double)groups;
  double hidden = traffic < products
                      ? traffic * HIDDEN_SHARE
                      : traffic - products + products * HIDDEN_SHARE;
  return products + transforms + hidden;
}

pestle_status_t pestle_sketch_winograd(pestle_sketch_t* k, uint32_t fold,
                                       double cycles, bool* out_done) {
  pestle_winograd_t w;
  *out_done = false;
  if (!k->reassociate || k->nest->frugal || k->lanes < 4 ||
      !pestle_winograd_match(k->nest, fold, &w)) {
    return pestle_nest_status(k->nest);
  }
  pestle_nest_winograd_t how = size_up(k, &w);
  if (how.lanes < 4 || how.vectors * how.rows < 4) return NULL;
  if (weight_bytes(&w, &how) > k->l3 / 2) {
    pestle_sketch_note(k,
                       "not by Winograd's algorithm: no cache holds weights "
                       "four times as large");
    return NULL;
  }
  double own = cycles_of(k, &w, &how);
  if (own * CLEARLY > cycles) {
    pestle_sketch_note(k,
                       "Winograd's algorithm is not clearly cheaper: %.3g "
                       "cycles, %.3g by taps",
                       own, cycles);
    return NULL;
  }
  pestle_sketch_note(k,
                     "Winograd's algorithm, tiles of 4 x 4 results: %.3g "
                     "cycles, %.3g by taps; %" PRId64 " x %" PRId64
                     " tiles a group, products of %" PRId64 " rows x %" PRId64
                     " vectors of %" PRId64,
                     own, cycles, how.tiles_high, how.tiles_wide, how.rows,
                     how.vectors, how.lanes);
  PESTLE_TRY(pestle_sketch_inline_kept(k));
  PESTLE_TRY(pestle_schedule_winograd(k->nest, fold, &how));
  *out_done = true;
  return NULL;
}
