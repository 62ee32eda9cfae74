// SPDX-License-Identifier: Apache-2.0
// Products by warpgroups, where the target has them and a tile is filled.
#include <inttypes.h>

#include "base/bits.h"
#include "codegen/sketch/sketch.h"
#include "codegen/template/tensorise/tensorise.h"

enum {
  TILE_ROWS = 128,
  MOST_COLUMNS = 256,
  APART_COLUMNS = 128,
  LEAST_COLUMNS = 64,
  LEAST_TAPS = 32,
  // Of a unit of an H200; bytes as convolutions were measured to bring them: 570, 910
  // and 1330 cycles a step of 64, 128 and 256 columns.
  PRODUCTS_A_CYCLE = 2048,
  BYTES_A_CYCLE = 37,
  SLOTS = 4,
  MOST_SLOTS = 8,
  LEAST_ROWS = 64,
  MOST_PARTS =
      2,  // clusters of 4 cost more than they gain, measured on an H200
  PARTS_CYCLES = 5000,
  // Of few rows, on an H200: what a step takes at least, a unit's share of memory's
  // bytes a cycle, and steps until copies are under way.
  LEAST_STEP = 400,
  MEMORY_BYTES_A_CYCLE = 17,
  FIRST_STEPS = 4,
  AHEAD = 128 << 10,
  SHARED_STEPS = 16,
  // Of convolutions: where few units are busy one brings more, as far as its slots hold
  // what is on its way. A tile costs more than its steps, and so do sums of parts.
  MOST_BYTES_A_CYCLE = 56,
  TILE_CYCLES = 1500,
  COLUMN_CYCLES = 18,
  SUMS_CYCLES = 3000,
  START_CYCLES = 2000,
  // Units of subgroups take so long for 64 elements of k of a tile.
  SUBGROUP_CYCLES = 800,
  // With 16 steps shared that was slower, with 18 faster.
  LEAST_STEPS = 18,
  MOST_WINDOW_PARTS = 4,
  // Groups a unit beside a collective.
  BESIDE_GROUPS = 4,
};

// mma.sync reaches 26 % of these units' rate in a convolution, and they 92 % of it in a
// product, on an H200.
static const double LEAST_USED = 0.3;
static const double CLEARLY = 0.9;
static const double SUBGROUP_RATE = 0.22, SURE = 1.25;
// Of the units that have a tile of the fewest columns: above that windows do not share k.
static const double MOST_BUSY = 0.6;

// A tile, and how many groups take a part of its k each.
typedef struct form_t {
  int64_t rows, columns, parts;
} form_t;

// Units cut what they add to long sums of 8-bit floats, so that these are made in parts,
// but for numerics that ask for speed.
static bool adds_apart(const pestle_sketch_t* k, const pestle_tensorise_t* p) {
  return p->how & PESTLE_KIR_WGMMA_F8 && !k->nest->is_fast;
}

// Of tiles that are usual, whose columns are halved.
static int64_t usual_columns(const pestle_sketch_t* k,
                             const pestle_tensorise_t* p) {
  return adds_apart(k, p) ? APART_COLUMNS : MOST_COLUMNS;
}

static int64_t most_columns(const pestle_sketch_t* k,
                            const pestle_tensorise_t* p) {
  return adds_apart(k, p) ? PESTLE_TENSORISE_APART_COLUMNS : MOST_COLUMNS;
}

static int64_t tiles_of(const pestle_tensorise_t* p, const form_t* f) {
  return pestle_ceil_div(p->m, f->rows) * pestle_ceil_div(p->n, f->columns) *
         p->batch;
}

// In each round of tiles a step waits for the products or for what both operands bring
// through the cache. Parts are brought together at the end.
static double cycles(const pestle_sketch_t* k, const pestle_tensorise_t* p,
                     const form_t* f) {
  double products = (double)(f->rows * f->columns) / PRODUCTS_A_CYCLE;
  double bytes = (double)((f->rows + f->columns) * 2) / BYTES_A_CYCLE;
  double step = PESTLE_TENSORISE_DEPTH * (bytes > products ? bytes : products);
  int64_t steps = pestle_ceil_div(pestle_tensorise_steps(p), f->parts);
  int64_t rounds = pestle_ceil_div(tiles_of(p, f) * f->parts, k->cores);
  return (double)(rounds * steps) * step + (f->parts > 1 ? PARTS_CYCLES : 0);
}

// The widest tile of which there is one for each unit, if any; of convolutions the one
// with the fewest cycles.
static int64_t tile_columns(const pestle_sketch_t* k,
                            const pestle_tensorise_t* p) {
  form_t best = {TILE_ROWS, usual_columns(k, p), 1}, f = best;
  if (!p->window.rank) {
    while (f.columns > LEAST_COLUMNS && tiles_of(p, &f) < k->cores)
      f.columns /= 2;
    return f.columns;
  }
  for (f.columns /= 2; f.columns >= LEAST_COLUMNS; f.columns /= 2) {
    if (cycles(k, p, &f) < cycles(k, p, &best)) best = f;
  }
  return best.columns;
}

static bool has_clusters(const pestle_sketch_t* k) {
  return k->caps->op_dtypes[PESTLE_KIR_CLUSTER_SYNC] != 0;
}

// --- Convolutions of few tiles ---

// Rounds of tiles, a cluster of groups each.
static double parts_cycles(const pestle_sketch_t* k,
                           const pestle_tensorise_t* p, const form_t* f) {
  int64_t needed = tiles_of(p, f), room = k->cores / f->parts;
  if (room < 1) room = 1;
  int64_t busy = (needed < room ? needed : room) * f->parts;
  double rate = (double)BYTES_A_CYCLE * (double)k->cores / (double)busy;
  if (rate > MOST_BYTES_A_CYCLE) rate = MOST_BYTES_A_CYCLE;
  double products = (double)(TILE_ROWS * f->columns) / PRODUCTS_A_CYCLE;
  double bytes = (double)((TILE_ROWS + f->columns) * 2) / rate;
  double step = PESTLE_TENSORISE_DEPTH * (bytes > products ? bytes : products);
  int64_t steps = pestle_ceil_div(pestle_tensorise_steps(p), f->parts);
  double tile = (double)(TILE_CYCLES + COLUMN_CYCLES * f->columns);
  return START_CYCLES + (f->parts > 1 ? SUMS_CYCLES : 0) +
         (double)pestle_ceil_div(needed, room) * ((double)steps * step + tile);
}

// The same by units of subgroups, at their best.
static double subgroup_cycles(const pestle_sketch_t* k,
                              const pestle_tensorise_t* p) {
  double products = (double)p->m * (double)p->n * (double)p->k;
  double all = products / ((double)k->cores * PRODUCTS_A_CYCLE * SUBGROUP_RATE);
  double least = (double)p->k / PESTLE_TENSORISE_DEPTH * SUBGROUP_CYCLES;
  return START_CYCLES + (all > least ? all : least);
}

// Parts' sums wait in shared memory beside three slots and the strips of results.
static bool has_room(const pestle_sketch_t* k, int64_t columns) {
  int64_t slot = (TILE_ROWS + columns) * PESTLE_TENSORISE_DEPTH * 2;
  return 4 * TILE_ROWS * columns + 3 * slot + (33 << 10) <=
         (int64_t)k->caps->scratch_bytes;
}

// Groups share k where a tile for each unit is far away, and k is long; not if units of
// subgroups may be as fast.
static void share_k(const pestle_sketch_t* k, const pestle_tensorise_t* p,
                    form_t* f) {
  form_t narrow = {TILE_ROWS, LEAST_COLUMNS, 1};
  if (!has_clusters(k) ||
      (double)tiles_of(p, &narrow) > MOST_BUSY * (double)k->cores ||
      pestle_tensorise_steps(p) < LEAST_STEPS) {
    return;
  }
  double best = parts_cycles(k, p, f), other = subgroup_cycles(k, p) / SURE;
  if (best > other) best = other;
  for (int64_t c = 2 * LEAST_COLUMNS; c >= LEAST_COLUMNS; c /= 2) {
    for (int64_t parts = 2; parts <= MOST_WINDOW_PARTS; parts *= 2) {
      form_t shared = {TILE_ROWS, c, parts};
      if (!has_room(k, c) || parts_cycles(k, p, &shared) >= best) continue;
      best = parts_cycles(k, p, &shared);
      *f = shared;
    }
  }
}

// --- The choice ---

// Of few rows: no step takes less than it waits, and all groups together for the columns'
// matrix from memory; the first steps are waited for in full.
static double few_cycles(const pestle_sketch_t* k, const pestle_tensorise_t* p,
                         const form_t* f) {
  double size = pestle_dtype_size(p->dtype);
  int64_t copied = pestle_tensorise_copied_rows(p, f->rows) + f->columns;
  double step = PESTLE_TENSORISE_DEPTH * (double)copied * size / BYTES_A_CYCLE;
  if (step < LEAST_STEP) step = LEAST_STEP;
  int64_t steps = pestle_ceil_div(pestle_tensorise_steps(p), f->parts);
  int64_t groups = tiles_of(p, f) * f->parts;
  int64_t rounds = pestle_ceil_div(groups, k->cores);
  double all = (double)(rounds * steps) * step;
  double memory = (double)p->batch * (double)p->n * (double)p->k * size /
                  ((double)k->cores * MEMORY_BYTES_A_CYCLE);
  // In the last round of several fewer groups ask for it.
  if (rounds > 1) memory *= (double)(rounds * k->cores) / (double)groups;
  return (all > memory ? all : memory) + (double)rounds * FIRST_STEPS * step +
         (f->parts > 1 ? PARTS_CYCLES : 0);
}

// A cluster makes one tile, whose strips its groups share if there are several.
static bool fits(const pestle_sketch_t* k, const pestle_tensorise_t* p,
                 const form_t* f) {
  int64_t strips = f->columns / LEAST_COLUMNS;
  return f->parts == 1 ||
         (tiles_of(p, f) * f->parts <= k->cores &&
          (strips == 1 || strips % f->parts == 0) && has_room(k, f->columns));
}

// The form of |rows| or half of them that takes the fewest |cycles|, fewer than |best|.
static form_t cheapest(const pestle_sketch_t* k, const pestle_tensorise_t* p,
                       int64_t rows, form_t best,
                       double (*of)(const pestle_sketch_t*,
                                    const pestle_tensorise_t*, const form_t*)) {
  int64_t most = has_clusters(k) ? MOST_PARTS : 1;
  for (; rows >= LEAST_ROWS; rows /= 2) {
    for (int64_t columns = most_columns(k, p); columns >= LEAST_COLUMNS;
         columns -= LEAST_COLUMNS) {
      for (int64_t parts = 1; parts <= most; parts *= 2) {
        form_t f = {rows, columns, parts};
        if (fits(k, p, &f) && of(k, p, &f) < of(k, p, &best)) best = f;
      }
    }
  }
  return best;
}

// That, or, of a product of which units would wait or copy rows that are not there,
// smaller tiles and parts of k, where they gain clearly. On an H200 16 x 8,192 x 8,192
// takes 33.9 us by tiles of 64 columns, 35.8 by 128 whose k two groups share.
static form_t form_of(const pestle_sketch_t* k, const pestle_tensorise_t* p) {
  form_t usual = {TILE_ROWS, tile_columns(k, p), 1};
  if (p->window.rank) {
    share_k(k, p, &usual);
    return usual;
  }
  if (p->m <= LEAST_ROWS) {
    usual = (form_t){LEAST_ROWS, LEAST_COLUMNS, 1};
    return cheapest(k, p, LEAST_ROWS, usual, few_cycles);
  }
  form_t best = cheapest(k, p, TILE_ROWS, usual, cycles);
  return cycles(k, p, &best) < CLEARLY * cycles(k, p, &usual) ? best : usual;
}

// Whether groups bring each other the columns: where the widest tiles are one round, on
// an H200 2,048^3 takes 29.4 us so, 31.5 by the tiles that are usual; of several rounds
// groups wait for each other, 4,096^3 takes 197 and 189.
static bool shares_columns(const pestle_sketch_t* k,
                           const pestle_tensorise_t* p, form_t* f) {
  form_t wide = {TILE_ROWS, usual_columns(k, p), 1};
  int64_t rows = pestle_ceil_div(p->m, wide.rows), tiles = tiles_of(p, &wide);
  bool is_wide = f->columns == wide.columns;
  if (!has_clusters(k) || p->window.rank || rows % 2 || tiles > k->cores ||
      tiles <= k->cores * 3 / 4 || pestle_tensorise_steps(p) < SHARED_STEPS ||
      (!is_wide && cycles(k, p, &wide) >= CLEARLY * cycles(k, p, f))) {
    return false;
  }
  *f = wide;
  return true;
}

// As many as bring 128 KiB ahead.
static int64_t slots_of(const pestle_tensorise_t* p, const form_t* f) {
  int64_t slot = (f->rows + f->columns) * PESTLE_TENSORISE_DEPTH *
                 (int64_t)pestle_dtype_size(p->dtype);
  int64_t slots = AHEAD / slot;
  // As measured.
  if (p->window.rank)
    slots = f->parts > 1 || f->columns == LEAST_COLUMNS ? MOST_SLOTS : SLOTS;
  return slots < SLOTS ? SLOTS : slots > MOST_SLOTS ? MOST_SLOTS : slots;
}

// The share of what the target's units multiply meanwhile that are products of the
// result: tiles at the ends, and steps of channels at theirs, are padded, and in the
// last round units have nothing to do.
static double used(const pestle_sketch_t* k, const pestle_tensorise_t* p,
                   int64_t columns) {
  form_t f = {TILE_ROWS, columns, 1};
  double rounds =
      (double)(pestle_ceil_div(tiles_of(p, &f), k->cores) * k->cores);
  double all = rounds * TILE_ROWS * (double)columns *
               (double)pestle_tensorise_steps(p) * PESTLE_TENSORISE_DEPTH;
  return (double)p->m * (double)p->n * (double)p->k * (double)p->batch / all;
}

// Whether units of subgroups, which multiply at a quarter of the rate, but in tiles
// of any size, are left behind. Of few rows a tile is mostly copies of nothing, but
// twice as much is under way: 7 x 4056 x 3056 by 48 groups of subgroups took 28 us on an
// H200, 48 x 1576 x 3608 by 87 of them 21.5.
static bool is_worth(pestle_sketch_t* k, const pestle_tensorise_t* p,
                     const form_t* f) {
  double share = used(k, p, f->columns);
  if (!p->window.rank && p->m >= LEAST_ROWS) return true;
  if (!p->window.rank) {
    form_t least = cheapest(k, p, LEAST_ROWS, *f, cycles);
    double own = cycles(k, p, &least), other = subgroup_cycles(k, p);
    pestle_sketch_note(k,
                       "tensorise: %" PRId64 " of %" PRId64
                       " rows take about %.0f cycles, shared_tile by units of "
                       "subgroups %.0f",
                       p->m, f->rows, own, other);
    return own < CLEARLY * other;
  }
  if (f->parts > 1) {
    pestle_sketch_note(k,
                       "tensorise: groups that share k take about %.0f cycles, "
                       "shared_tile by units of subgroups %.0f",
                       parts_cycles(k, p, f), subgroup_cycles(k, p));
    return true;
  }
  pestle_sketch_note(k,
                     "tensorise: %.0f %% of the products of tiles of %d x "
                     "%" PRId64
                     " are of the result; from %.0f %% on that beats "
                     "shared_tile by units of subgroups",
                     100 * share, TILE_ROWS, f->columns, 100 * LEAST_USED);
  return share >= LEAST_USED;
}

static bool has_unit(const pestle_sketch_t* k, const pestle_tensorise_t* p) {
  if (p->how & PESTLE_KIR_WGMMA_F8)
    return k->reassociate &&
           pestle_sketch_has_f8_unit(k, PESTLE_INTRINSIC_WGMMA);
  if ((p->how & PESTLE_KIR_WGMMA_TYPE) == PESTLE_KIR_WGMMA_TF32) {
    return k->reassociate && pestle_sketch_has_unit(k, PESTLE_INTRINSIC_WGMMA,
                                                    PESTLE_F32, 64, 256, 8);
  }
  if (p->sums == PESTLE_F32) {
    return k->reassociate && pestle_sketch_has_unit(k, PESTLE_INTRINSIC_WGMMA,
                                                    p->dtype, 64, 256, 16);
  }
  return pestle_sketch_has_byte_unit(
      k, PESTLE_INTRINSIC_WGMMA,
      p->how & PESTLE_KIR_WGMMA_A_SIGNED ? PESTLE_I8 : PESTLE_U8,
      p->how & PESTLE_KIR_WGMMA_B_SIGNED ? PESTLE_I8 : PESTLE_U8);
}

// A group for each unit, which takes its share of the tiles: where a collective has some of
// the units meanwhile, its groups would begin when that is done. Of smaller shares those
// that are left take what is over.
static int64_t groups_of(const pestle_sketch_t* k) {
  return k->nest->is_beside ? BESIDE_GROUPS * (int64_t)k->cores : k->cores;
}

pestle_status_t pestle_tensorise_sketch(pestle_sketch_t* k,
                                        const pestle_offer_t* offer,
                                        bool* out_done) {
  pestle_tensorise_t p;
  if (!pestle_tensorise_find(k->nest, offer->reduce, &p) || !has_unit(k, &p) ||
      (p.window.rank && p.m < LEAST_ROWS) || p.n < LEAST_COLUMNS ||
      p.k < LEAST_TAPS) {
    return NULL;
  }
  form_t f = form_of(k, &p);
  if (!is_worth(k, &p, &f)) return NULL;
  pestle_sketch_note(k,
                     "tensorise: matrix units multiply tiles of %" PRId64
                     " x %" PRId64 ", whose %s are copied ahead of them",
                     f.rows, f.columns,
                     p.window.rank ? "windows and weights" : "operands");
  bool shares = shares_columns(k, &p, &f);
  if (shares) {
    pestle_sketch_note(k, "tensorise: two groups bring each other the columns");
  } else if (f.parts > 1) {
    pestle_sketch_note(k,
                       "tensorise: %" PRId64
                       " groups take a part of k each, since there are %" PRId64
                       " tiles for %" PRId64 " units",
                       f.parts, tiles_of(&p, &f), k->cores);
  }
  bool apart = adds_apart(k, &p);
  if (apart) {
    pestle_sketch_note(k,
                       "tensorise: the sums of %d elements of k are added up "
                       "in registers, since units cut longer ones short",
                       2 * PESTLE_TENSORISE_DEPTH);
  }
  *out_done = true;
  return pestle_schedule_template(
      k->nest,
      &(pestle_nest_template_t){
          .row = offer->row,
          .stage = offer->reduce,
          .ints = {f.rows, f.columns, groups_of(k), k->caps->scratch_bytes,
                   1 + shares, f.parts, slots_of(&p, &f), apart}});
}
