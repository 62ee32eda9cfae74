// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3 x 3 taps by Winograd's algorithm, where that is estimated to
// be clearly cheaper: a quarter of the multiply-adds, for two transforms and
// weights four times as large, or 4 / 9 of them and 16 / 9 of the weights.
#include <inttypes.h>
#include <stdio.h>

#include "base/bits.h"
#include "codegen/sketch/choice.h"
#include "codegen/sketch/sketch.h"
#include "codegen/template/winograd/winograd.h"

enum {
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
  MOST_OPTIONS = 64,  // of a choice
};

// Scratch of a group is this share of L2 at most.
static const double SCRATCH_OF_L2 = 0.75;
// The other way must cost so many times as much.
static const double CLEARLY = 1.15;

static int64_t even_share(int64_t all, int64_t most) {
  if (most < 1) most = 1;
  return pestle_ceil_div(all, pestle_ceil_div(all, most));
}

static int64_t boxes(const pestle_winograd_t* w,
                     const pestle_winograd_how_t* h) {
  return w->images * pestle_ceil_div(w->tiles_high, h->tiles_high) *
         pestle_ceil_div(w->tiles_wide, h->tiles_wide);
}

static int64_t factor_bytes(const pestle_winograd_t* w, int64_t tiles) {
  return w->products * PESTLE_SKETCH_ELEMENT * tiles * w->inputs;
}

// Tiles of a box whose factors and sums |bytes| hold.
static int64_t tiles_in(const pestle_sketch_t* k, const pestle_winograd_t* w,
                        const pestle_winograd_how_t* h, int64_t bytes) {
  int64_t tile =
      w->products * PESTLE_SKETCH_ELEMENT * (w->inputs + h->vectors * h->lanes);
  int64_t scratch = k->caps->scratch_bytes;
  if (scratch && bytes > scratch * 9 / 10) bytes = scratch * 9 / 10;
  return bytes / tile;
}

static bool has_few_groups(const pestle_winograd_t* w,
                           const pestle_winograd_how_t* h) {
  return boxes(w, h) < FEW_GROUPS;
}

// Panels of features that a group multiplies: all, or a share where groups are few.
static int64_t count_panels(const pestle_winograd_t* w,
                            const pestle_winograd_how_t* h) {
  int64_t all = pestle_ceil_div(w->outputs, h->vectors * h->lanes), each = all;
  for (int64_t p = 2; has_few_groups(w, h) && p <= all; ++p) {
    int64_t part = all / p;
    if (all % p == 0 && part * h->vectors * h->lanes >= LEAST_FEATURES) {
      each = part;
    }
  }
  return each;
}

// Groups of as many tiles as keep their factors and sums in |bytes|.
static pestle_winograd_how_t size_up(pestle_sketch_t* k,
                                     const pestle_winograd_t* w, int64_t bytes,
                                     int64_t most_tiles) {
  pestle_winograd_how_t h = {.lanes = k->lanes, .results = w->results};
  while (h.lanes > 1 && w->inputs % h.lanes)
    h.lanes /= 2;
  int64_t vectors = pestle_ceil_div(w->outputs, h.lanes);
  h.vectors = even_share(vectors, k->registers >= 32 ? WIDE_VECTORS : 2);
  int64_t most = pestle_sketch_min(tiles_in(k, w, &h, bytes), most_tiles);
  h.tiles_wide = even_share(w->tiles_wide, most);
  h.tiles_high = even_share(w->tiles_high, most / h.tiles_wide);
  h.panels = count_panels(w, &h);
  // Boxes of fewer tiles, rather than threads without work.
  while (!has_few_groups(w, &h) && boxes(w, &h) < MORE_GROUPS &&
         h.tiles_high > 1 && (h.tiles_high / 2) * h.tiles_wide >= LEAST_TILES) {
    h.tiles_high = even_share(w->tiles_high, h.tiles_high / 2);
  }
  int64_t budget = k->registers * 3 / 4 / h.vectors;
  int64_t rows = pestle_sketch_min(budget, MOST_ROWS);
  h.rows = even_share(h.tiles_high * h.tiles_wide, rows);
  h.looped = pestle_sketch_transcendental(k, pestle_sketch_stage(k, k->anchor));
  return h;
}

static int64_t weight_bytes(const pestle_winograd_t* w,
                            const pestle_winograd_how_t* h) {
  return pestle_winograd_elements(w, h) * PESTLE_SKETCH_ELEMENT;
}

// Cycles to read |bytes| again that a kernel has read or made before.
static double cache_cycles(const pestle_sketch_t* k, pestle_core_rates_t rates,
                           double bytes) {
  double rate = bytes <= (double)k->l2 / 2 ? rates.l2
                : bytes <= (double)k->l3 / PESTLE_CPU_WINOGRAD_L3_SHARE
                    ? rates.l3
                    : rates.crowded;
  return bytes / rate;
}

// Of all boxes, products that lose |loss| of the peak.
static double cycles_of(const pestle_sketch_t* k, const pestle_winograd_t* w,
                        const pestle_winograd_how_t* h, double loss) {
  int64_t groups = boxes(w, h);
  double tiles = (double)(groups * h->tiles_high * h->tiles_wide);
  double shares =
      (double)(pestle_ceil_div(w->outputs, h->vectors * h->lanes) / h->panels);
  double vectors = (double)pestle_ceil_div(w->outputs, h->lanes);
  double products =
      (double)w->products * tiles * (double)w->inputs * vectors * loss;
  bool small = w->results == PESTLE_WINOGRAD_SMALL;
  double in = small ? PESTLE_CPU_WINOGRAD_SMALL_IN : PESTLE_CPU_WINOGRAD_IN;
  double out = small ? PESTLE_CPU_WINOGRAD_SMALL_OUT : PESTLE_CPU_WINOGRAD_OUT;
  double transforms =
      tiles * ((double)(w->inputs / h->lanes) * in * shares + vectors * out);
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
  double hidden =
      traffic < products
          ? traffic * PESTLE_CPU_WINOGRAD_HIDDEN
          : traffic - products + products * PESTLE_CPU_WINOGRAD_HIDDEN;
  return products + transforms + hidden;
}

// Each group reads all weights, so that groups are larger, past the L2, where no
// cache holds these.
static pestle_winograd_how_t usual_groups(pestle_sketch_t* k,
                                          const pestle_winograd_t* w,
                                          double* out_cycles) {
  int64_t bytes = (int64_t)((double)k->l2 * SCRATCH_OF_L2);
  pestle_winograd_how_t best = size_up(k, w, bytes, MOST_TILES);
  *out_cycles = cycles_of(k, w, &best, PESTLE_CPU_WINOGRAD_LOSS);
  if (weight_bytes(w, &best) <= k->l3 / PESTLE_CPU_WINOGRAD_L3_SHARE)
    return best;
  int64_t most = pestle_sketch_min(k->l3 / PESTLE_CPU_WINOGRAD_L3_SHARE,
                                   k->caps->scratch_bytes);
  for (bytes *= 2; bytes <= most; bytes *= 2) {
    pestle_winograd_how_t how =
        size_up(k, w, bytes, w->tiles_high * w->tiles_wide);
    double cycles = cycles_of(k, w, &how, PESTLE_CPU_WINOGRAD_LOSS);
    if (cycles >= *out_cycles) continue;
    best = how;
    *out_cycles = cycles;
  }
  return best;
}

// --- Choices, none of which changes a sum ---

// How much longer the products of a box take than their multiply-adds: a row's
// chains, loads, and the last rows, which are fewer.
static double loss_of(const pestle_sketch_t* k,
                      const pestle_winograd_how_t* h) {
  pestle_core_rates_t rates = pestle_sketch_rates(k->caps);
  int64_t tiles = h->tiles_high * h->tiles_wide;
  double cycles = 0;
  for (int64_t at = 0; at < tiles; at += h->rows) {
    int64_t rows = pestle_sketch_min(h->rows, tiles - at);
    double fmas = (double)(rows * h->vectors) / rates.fmas;
    double loads =
        (double)h->vectors / rates.loads + (double)rows / rates.broadcasts;
    double tap = fmas > loads ? fmas : loads;
    cycles += tap > rates.latency ? tap : rates.latency;
  }
  return PESTLE_CPU_WINOGRAD_LOSS * cycles * rates.fmas /
         (double)(tiles * h->vectors);
}

// Of all cores, which wait for the last box.
static double spread_of(const pestle_sketch_t* k, const pestle_winograd_t* w,
                        const pestle_winograd_how_t* h) {
  int64_t groups =
      boxes(w, h) *
      (pestle_ceil_div(w->outputs, h->vectors * h->lanes) / h->panels);
  double rounds = (double)pestle_ceil_div(groups, k->cores);
  return cycles_of(k, w, h, loss_of(k, h)) * rounds * (double)k->cores /
         (double)groups;
}

typedef struct ways_t {
  pestle_sketch_t* k;
  const pestle_winograd_t* w;
  pestle_winograd_how_t list[MOST_OPTIONS];
  pestle_option_t options[MOST_OPTIONS];
  uint32_t count;
} ways_t;

static bool same(const pestle_winograd_how_t* a,
                 const pestle_winograd_how_t* b) {
  return a->tiles_high == b->tiles_high && a->tiles_wide == b->tiles_wide &&
         a->rows == b->rows && a->vectors == b->vectors;
}

static void add_way(ways_t* x, pestle_winograd_how_t h, int64_t a, int64_t b) {
  for (uint32_t i = 0; i < x->count; ++i) {
    if (same(&x->list[i], &h)) return;
  }
  if (x->count == MOST_OPTIONS) return;
  h.panels = count_panels(x->w, &h);
  if (!pestle_winograd_fits(x->w, &h)) return;
  pestle_option_t* o = &x->options[x->count];
  o->cost = spread_of(x->k, x->w, &h);
  (void)snprintf(o->name, sizeof(o->name), "%dx%d", (int)a, (int)b);
  x->list[x->count++] = h;
}

// The first of |x| is the usual one.
static pestle_winograd_how_t decide(ways_t* x, const char* kind) {
  pestle_question_t q = {
      kind, "cycles of all cores: products, transforms, weights, and waiting"};
  return x->list[pestle_choose(x->k->nest, q, x->options, x->count, 0)];
}

// Boxes of other sizes, even ones, that the L2 holds, or no larger than the usual.
static pestle_winograd_how_t choose_box(ways_t* x,
                                        pestle_winograd_how_t usual) {
  x->count = 0;
  add_way(x, usual, usual.tiles_high, usual.tiles_wide);
  int64_t most = tiles_in(x->k, x->w, &usual, x->k->l2);
  int64_t own = usual.tiles_high * usual.tiles_wide;
  if (most < own) most = own;
  bool lists = pestle_choices_are_listed(x->k->nest);
  for (int64_t i = 1; lists && i <= x->w->tiles_wide; ++i) {
    for (int64_t j = 1; j <= x->w->tiles_high; ++j) {
      pestle_winograd_how_t h = usual;
      h.tiles_wide = pestle_ceil_div(x->w->tiles_wide, i);
      h.tiles_high = pestle_ceil_div(x->w->tiles_high, j);
      int64_t tiles = h.tiles_wide * h.tiles_high;
      if (tiles > most || tiles < LEAST_TILES) continue;
      h.rows = even_share(tiles, usual.rows);
      add_way(x, h, h.tiles_high, h.tiles_wide);
    }
  }
  return decide(x, "box");
}

// Other tiles of its products, whose accumulators fit registers.
static pestle_winograd_how_t choose_products(ways_t* x,
                                             pestle_winograd_how_t usual) {
  x->count = 0;
  add_way(x, usual, usual.rows, usual.vectors);
  int64_t budget = x->k->registers * 3 / 4;
  int64_t tiles = usual.tiles_high * usual.tiles_wide;
  int64_t vectors = pestle_ceil_div(x->w->outputs, usual.lanes);
  int64_t widest = pestle_sketch_min(vectors, WIDE_VECTORS);
  if (!pestle_choices_are_listed(x->k->nest)) widest = 0;
  for (int64_t v = widest; v >= 1; --v) {
    for (int64_t r = pestle_sketch_min(budget / v, MOST_ROWS); r >= 1; --r) {
      pestle_winograd_how_t h = usual;
      h.vectors = v;
      h.rows = r;
      bool even = r == even_share(tiles, r) && v == even_share(vectors, v);
      if (even && v * r >= 4) add_way(x, h, r, v);
    }
  }
  return decide(x, "product");
}

static pestle_winograd_how_t choose(pestle_sketch_t* k,
                                    const pestle_winograd_t* w,
                                    pestle_winograd_how_t usual) {
  ways_t* x = PESTLE_ARENA_NEW(k->nest->arena, ways_t);
  if (!x) {
    pestle_nest_fail_memory(k->nest);
    return usual;
  }
  x->k = k;
  x->w = w;
  usual = choose_box(x, usual);
  return choose_products(x, usual);
}

// --- Whether ---

// A form that a convolution can have.
typedef struct form_t {
  pestle_winograd_t w;
  pestle_winograd_how_t how;
  double cycles;
  bool fits;
} form_t;

static void size_form(pestle_sketch_t* k, uint32_t reduce, int64_t results,
                      form_t* out) {
  out->fits = pestle_winograd_find(k->nest, reduce, results, &out->w);
  if (!out->fits) return;
  out->how = usual_groups(k, &out->w, &out->cycles);
  out->fits = out->how.lanes >= 4 && out->how.vectors * out->how.rows >= 4;
}

// The cheaper of |forms| that fits, or NULL.
static const form_t* cheaper(const form_t forms[2]) {
  if (!forms[0].fits || !forms[1].fits) {
    return forms[0].fits ? &forms[0] : forms[1].fits ? &forms[1] : NULL;
  }
  return forms[1].cycles < forms[0].cycles ? &forms[1] : &forms[0];
}

// |best| of |forms|, or NULL: it is not clearly cheaper than taps.
static const form_t* decide_by(pestle_sketch_t* k, const form_t forms[2],
                               const form_t* best, double taps) {
  static const char* names[] = {"winograd", "winograd2"};
  static const pestle_question_t q = {
      "by", "cycles of a core: products, transforms, weights"};
  bool clear = best->cycles * CLEARLY <= taps;
  pestle_option_t options[3] = {{"taps", taps}};
  uint32_t count = 1, taken = 0;
  for (int i = 0; i < 2; ++i) {
    if (!forms[i].fits) continue;
    options[count].cost = forms[i].cycles;
    (void)snprintf(options[count].name, sizeof(options->name), "%s", names[i]);
    if (clear && &forms[i] == best) taken = count;
    ++count;
  }
  pestle_choose_fixed(k->nest, q, options, count, taken);
  return clear ? best : NULL;
}

pestle_status_t pestle_winograd_sketch(pestle_sketch_t* k,
                                       const pestle_offer_t* offer,
                                       bool* out_done) {
  form_t forms[2] = {0};
  if (!k->reassociate || k->nest->no_scratch || k->lanes < 4) return NULL;
  size_form(k, offer->reduce, PESTLE_WINOGRAD_LARGE, &forms[0]);
  size_form(k, offer->reduce, PESTLE_WINOGRAD_SMALL, &forms[1]);
  PESTLE_TRY(pestle_nest_status(k->nest));
  const form_t* best = cheaper(forms);
  if (!best) return NULL;
  const form_t* taken = decide_by(k, forms, best, offer->cycles);
  if (!taken) {
    pestle_sketch_note(k,
                       "Winograd's algorithm is not clearly cheaper: %.3g "
                       "cycles, %.3g by taps",
                       best->cycles, offer->cycles);
    return NULL;
  }
  pestle_winograd_how_t how = choose(k, &taken->w, taken->how);
  pestle_sketch_note(k,
                     "Winograd's algorithm, tiles of %" PRId64 " x %" PRId64
                     " results: %.3g cycles, %.3g by taps; %" PRId64
                     " x %" PRId64 " tiles a group, products of %" PRId64
                     " rows x %" PRId64 " vectors of %" PRId64,
                     how.results, how.results, taken->cycles, offer->cycles,
                     how.tiles_high, how.tiles_wide, how.rows, how.vectors,
                     how.lanes);
  PESTLE_TRY(pestle_sketch_inline_kept(k));
  pestle_nest_template_t use =
      pestle_winograd_use(offer->row, offer->reduce, &how);
  PESTLE_TRY(pestle_schedule_template(k->nest, &use));
  *out_done = true;
  return NULL;
}
