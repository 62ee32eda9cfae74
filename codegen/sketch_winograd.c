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
  // Tiles that share a pass over weights that a cache holds, at most, and at
  // least where there are as many.
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
  // Factors of inputs of this part are, if the group has just made them.
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

static int64_t factor_bytes(const pestle_winograd_t* w, int64_t tiles) {
  return PESTLE_WINOGRAD_ALL * PESTLE_SKETCH_ELEMENT * tiles * w->inputs;
}

// Groups of as many tiles as keep their factors and sums in |bytes|.
static pestle_nest_winograd_t size_up(pestle_sketch_t* k,
                                      const pestle_winograd_t* w, int64_t bytes,
                                      int64_t most_tiles) {
  pestle_nest_winograd_t h = {.lanes = k->lanes};
  while (h.lanes > 1 && w->inputs % h.lanes)
    h.lanes /= 2;
  int64_t vectors = pestle_ceil_div(w->outputs, h.lanes);
  h.vectors = even_share(vectors, k->registers >= 32 ? WIDE_VECTORS : 2);
  int64_t tile = PESTLE_WINOGRAD_ALL * PESTLE_SKETCH_ELEMENT *
                 (w->inputs + h.vectors * h.lanes);
  int64_t scratch = k->caps->scratch_bytes;
  if (scratch && bytes > scratch * 9 / 10) bytes = scratch * 9 / 10;
  int64_t most = pestle_sketch_min(bytes / tile, most_tiles);
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

// Cycles to read |bytes| again that a kernel has read or made before.
static double cache_cycles(const pestle_sketch_t* k, pestle_core_rates_t rates,
                           double bytes) {
  double rate = bytes <= (double)k->l2 / 2          ? rates.l2
                : bytes <= (double)k->l3 / L3_SHARE ? rates.l3
                                                    : rates.crowded;
  return bytes / rate;
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
  double traffic =
      cache_cycles(k, rates, (double)weight_bytes(w, h)) * (double)groups;
  double factors = (double)factor_bytes(w, h->tiles_high * h->tiles_wide);
  if (factors > (double)k->l2 * SCRATCH_OF_L2) {
    double panels = (double)pestle_ceil_div(w->outputs, h->vectors * h->lanes);
    traffic += cache_cycles(k, rates, factors) * panels * (double)groups;
  }
  double hidden = traffic < products
                      ? traffic * HIDDEN_SHARE
                      : traffic - products + products * HIDDEN_SHARE;
  return products + transforms + hidden;
}

// Each group reads all weights, so that groups are larger, past the L2, where no
// cache holds these.
static pestle_nest_winograd_t choose_groups(pestle_sketch_t* k,
                                            const pestle_winograd_t* w,
                                            double* out_cycles) {
  int64_t bytes = (int64_t)((double)k->l2 * SCRATCH_OF_L2);
  pestle_nest_winograd_t best = size_up(k, w, bytes, MOST_TILES);
  *out_cycles = cycles_of(k, w, &best);
  if (weight_bytes(w, &best) <= k->l3 / L3_SHARE) return best;
  int64_t most = pestle_sketch_min(k->l3 / L3_SHARE, k->caps->scratch_bytes);
  for (bytes *= 2; bytes <= most; bytes *= 2) {
    pestle_nest_winograd_t how =
        size_up(k, w, bytes, w->tiles_high * w->tiles_wide);
    double cycles = cycles_of(k, w, &how);
    if (cycles >= *out_cycles) continue;
    best = how;
    *out_cycles = cycles;
  }
  return best;
}

pestle_status_t pestle_sketch_winograd(pestle_sketch_t* k, uint32_t fold,
                                       double cycles, bool* out_done) {
  pestle_winograd_t w;
  *out_done = false;
  if (!k->reassociate || k->nest->frugal || k->lanes < 4 ||
      !pestle_winograd_match(k->nest, fold, &w)) {
    return pestle_nest_status(k->nest);
  }
  double own;
  pestle_nest_winograd_t how = choose_groups(k, &w, &own);
  if (how.lanes < 4 || how.vectors * how.rows < 4) return NULL;
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
