// SPDX-License-Identifier: Apache-2.0
// Products by groups of lanes that share boxes of both operands: which tile, by
// an estimate of cycles, and whether at all.
#include <inttypes.h>

#include "base/bits.h"
#include "codegen/sketch/sketch.h"
#include "codegen/template/shared_tile/shared_tile.h"

enum {
  // Groups of a unit that take turns.
  RESIDENT = 4,
  LARGE_SCRATCH = 100 << 10,  // from here on two groups share it
  MOST_PARTS = 4,
  LEAST_STEPS = 16,  // of a part of k
  LONG_STEP = 64,
  // Sums of a lane, and tiles of a core, with which lanes need not share k.
  MANY_SUMS = 64,
  ROUNDS = 3,
  WIDE = 128,  // columns of a large tile
};

typedef struct staged_t {
  pestle_sketch_t* k;
  pestle_product_t p;
  uint8_t units;  // pestle_product_units_t
  bool strips;
} staged_t;

static const pestle_shared_tile_t by_units[] = {
    {128, 256, 32, 64, 64, 4, PESTLE_UNITS_MMA, false, 1},
    {256, 128, 32, 64, 64, 4, PESTLE_UNITS_MMA, false, 1},
    {128, 128, 32, 64, 64, 4, PESTLE_UNITS_MMA, false, 1},
    {128, 128, 32, 64, 32, 4, PESTLE_UNITS_MMA, false, 1},
    {128, 64, 32, 64, 32, 4, PESTLE_UNITS_MMA, false, 1},
    {64, 128, 32, 32, 64, 4, PESTLE_UNITS_MMA, false, 1},
    {64, 64, 32, 32, 32, 4, PESTLE_UNITS_MMA, false, 1},
    {32, 128, 32, 32, 32, 4, PESTLE_UNITS_MMA, false, 1},
    {32, 64, 32, 16, 32, 4, PESTLE_UNITS_MMA, false, 1},
    {32, 32, 32, 16, 16, 4, PESTLE_UNITS_MMA, false, 1},
    {16, 128, 64, 16, 32, 4, PESTLE_UNITS_MMA, false, 1},
    {16, 64, 64, 16, 16, 4, PESTLE_UNITS_MMA, false, 1},
    {64, 16, 64, 16, 16, 4, PESTLE_UNITS_MMA, false, 1},
    {16, 32, 32, 16, 8, 4, PESTLE_UNITS_MMA, false, 1},
    {128, 16, 32, 32, 16, 4, PESTLE_UNITS_MMA, false, 1},
};

static const pestle_shared_tile_t by_lanes[] = {
    {128, 256, 16, 8, 16, 2, PESTLE_UNITS_LANES, false, 1},
    {128, 128, 16, 8, 8, 2, PESTLE_UNITS_LANES, false, 1},
    {128, 128, 8, 8, 8, 2, PESTLE_UNITS_LANES, false, 1},
    {128, 64, 16, 8, 8, 2, PESTLE_UNITS_LANES, false, 1},
    {128, 64, 8, 8, 4, 2, PESTLE_UNITS_LANES, false, 1},
    {64, 128, 8, 4, 8, 2, PESTLE_UNITS_LANES, false, 1},
    {64, 64, 16, 4, 4, 2, PESTLE_UNITS_LANES, false, 1},
    {32, 64, 16, 2, 4, 2, PESTLE_UNITS_LANES, false, 1},
    {64, 32, 16, 4, 2, 2, PESTLE_UNITS_LANES, false, 1},
    {32, 32, 16, 2, 4, 2, PESTLE_UNITS_LANES, false, 1},
    {16, 32, 16, 1, 4, 2, PESTLE_UNITS_LANES, false, 1},
    {16, 16, 16, 1, 2, 2, PESTLE_UNITS_LANES, false, 1},
};

// Few rows or few columns, and a long k: more groups than by lanes, and k in as many
// parts as a group has subgroups. Of the last ones, more of a matrix is under way; of
// 16 x 16 and 8 x 64 where it passes through registers, one step ahead: on an H200
// 24 x 2,415 x 2,520 takes 32.8 us so, 45.5 by steps of 64.
static const pestle_shared_tile_t by_teams[] = {
    {64, 32, 64, 8, 8, 4, PESTLE_UNITS_TEAMS, false, 1},
    {32, 64, 64, 8, 8, 4, PESTLE_UNITS_TEAMS, false, 1},
    {32, 32, 64, 8, 4, 4, PESTLE_UNITS_TEAMS, false, 1},
    {32, 16, 64, 4, 4, 4, PESTLE_UNITS_TEAMS, false, 1},
    {16, 64, 64, 4, 8, 4, PESTLE_UNITS_TEAMS, false, 1},
    {16, 32, 64, 4, 4, 4, PESTLE_UNITS_TEAMS, false, 1},
    {16, 16, 64, 4, 2, 4, PESTLE_UNITS_TEAMS, false, 1},
    {8, 64, 64, 4, 4, 4, PESTLE_UNITS_TEAMS, false, 1},
    {8, 32, 64, 4, 2, 4, PESTLE_UNITS_TEAMS, false, 1},
    {8, 16, 64, 2, 2, 4, PESTLE_UNITS_TEAMS, false, 1},
    {16, 16, 128, 4, 2, 4, PESTLE_UNITS_TEAMS, false, 1},
    {8, 64, 128, 4, 4, 4, PESTLE_UNITS_TEAMS, false, 1},
    {4, 32, 128, 4, 1, 4, PESTLE_UNITS_TEAMS, false, 1},
    {4, 16, 128, 2, 1, 4, PESTLE_UNITS_TEAMS, false, 1},
};

static const pestle_shared_tile_t by_units8[] = {
    {64, 64, 16, 32, 32, 2, PESTLE_UNITS_MMA8, false, 1},
    {64, 32, 32, 32, 16, 2, PESTLE_UNITS_MMA8, false, 1},
    {32, 64, 32, 16, 32, 2, PESTLE_UNITS_MMA8, false, 1},
    {32, 32, 32, 16, 16, 2, PESTLE_UNITS_MMA8, false, 1},
    {16, 64, 32, 16, 16, 2, PESTLE_UNITS_MMA8, false, 1},
    {64, 16, 32, 16, 16, 2, PESTLE_UNITS_MMA8, false, 1},
    {16, 32, 32, 8, 16, 2, PESTLE_UNITS_MMA8, false, 1},
    {8, 64, 32, 8, 16, 2, PESTLE_UNITS_MMA8, false, 1},
    {16, 16, 32, 8, 8, 2, PESTLE_UNITS_MMA8, false, 1},
    {8, 32, 32, 8, 8, 2, PESTLE_UNITS_MMA8, false, 1},
};

static bool has_unit(const pestle_sketch_t* k, const pestle_product_t* p) {
  if (p->sums == PESTLE_I32) {
    return pestle_sketch_has_byte_unit(k, PESTLE_INTRINSIC_MMA, p->a.dtype,
                                       p->b.dtype);
  }
  if (!k->reassociate) return false;
  if (pestle_dtype_size(p->a.dtype) == 1)
    return pestle_sketch_has_f8_unit(k, PESTLE_INTRINSIC_MMA);
  unsigned taps = 32 / (unsigned)pestle_dtype_size(p->a.dtype);
  return pestle_sketch_has_unit(k, PESTLE_INTRINSIC_MMA, p->a.dtype, 16, 8,
                                taps);
}
static bool has_unit8(const pestle_sketch_t* k) {
  return pestle_sketch_has_unit(k, PESTLE_INTRINSIC_MMA, PESTLE_F32, 8, 8, 8);
}

// --- Cycles ---

static double most(double a, double b) {
  return a > b ? a : b;
}

static double least(double a, double b) {
  return a < b ? a : b;
}

// What two rows of fragments, or of a lane's sums, cost to read an element of k.
static double shared_cycles(const staged_t* s, const pestle_shared_tile_t* t) {
  double parts = (double)(t->m / t->r) * (double)(t->n / t->c);
  double a = (double)t->r, b = (double)t->c;
  // Bytes that do not lie along k are read one by one.
  if (pestle_dtype_size(s->p.a.dtype) == 1 && t->units == PESTLE_UNITS_MMA) {
    a *= s->p.a.along_k ? 1 : 4;
    b *= s->p.b.along_k ? 1 : 4;
  }
  double bytes = (a + b) * pestle_dtype_size(s->p.a.dtype);
  // A subgroup's lanes share what they read: 4 of them in each direction. Those of a
  // team read 16 bytes each, of which eight lanes' are one step.
  if (!t->units) parts /= 4;
  if (t->units == PESTLE_UNITS_TEAMS) parts /= 2;
  return parts * bytes / PESTLE_GPU_SHARED_BYTES;
}

static double tile_cycles(const staged_t* s, const pestle_shared_tile_t* t) {
  const pestle_product_t* p = &s->p;
  double bytes = pestle_dtype_size(p->a.dtype);
  double tiles = (double)pestle_ceil_div(p->m.all, t->m) *
                 (double)pestle_ceil_div(p->n.all, t->n) *
                 (double)p->batch.all * (double)t->parts;
  double cores = (double)s->k->cores;
  double waves = tiles / cores;
  if (waves < 1) waves = 1;
  if (waves > (double)(int64_t)waves) waves = (double)(int64_t)waves + 1;
  double rate =
      t->units == PESTLE_UNITS_MMA    ? PESTLE_GPU_UNIT_PRODUCTS * 2 / bytes
      : t->units == PESTLE_UNITS_MMA8 ? PESTLE_GPU_LANE_PRODUCTS
                                      : PESTLE_GPU_LANE_PRODUCTS * 4 / bytes;
  // Not all that a lane waits for is hidden behind other lanes' products.
  double products = (double)(t->m * t->n) / rate, shared = shared_cycles(s, t);
  double tap = most(products, shared) + least(products, shared) / 2;
  tap = most(tap, (double)(t->m + t->n) * bytes / PESTLE_GPU_GLOBAL_BYTES);
  double steps =
      (double)pestle_ceil_div(pestle_ceil_div(p->k.all, t->k), t->parts);
  double result = (double)(t->m * t->n) * 4 / PESTLE_GPU_GLOBAL_BYTES;
  if (t->units == PESTLE_UNITS_TEAMS) {  // sums are put and read
    result += (double)(t->m * t->n) * 8 *
              (double)(pestle_shared_tile_lanes(t) / 32) /
              PESTLE_GPU_SHARED_BYTES;
  }
  if (t->parts > 1) {  // the same, and groups wait for each other
    result += (double)(t->m * t->n) * 8 / PESTLE_GPU_SHARED_BYTES +
              2 * PESTLE_GPU_GROUP_CYCLES;
  }
  double step = (double)t->k * tap + PESTLE_GPU_STEP_CYCLES;
  // Boxes on their way hide the time that memory takes, and so do other groups.
  double wait = PESTLE_GPU_LATENCY / (double)(t->slots - 1);
  double groups = waves < RESIDENT ? waves : RESIDENT;
  return waves *
         (steps * most(step, wait / groups) + result + PESTLE_GPU_GROUP_CYCLES);
}

// Columns that a line of memory has and a subgroup's lanes take side by side.
static double columns_of_line(const staged_t* s) {
  int64_t columns = 1,
          most = PESTLE_GPU_LINE / (int64_t)pestle_dtype_size(s->p.b.dtype);
  while (columns < most && s->p.n.all % (2 * columns) == 0)
    columns *= 2;
  return columns < PESTLE_GPU_LEAST_COLUMNS ? 1 : (double)columns;
}

// Without a tile. Few results are reduced by lanes side by side along k,
// which read a line of memory each where columns lie side by side instead.
static double point_cycles(const staged_t* s) {
  const pestle_product_t* p = &s->p;
  double cores = (double)s->k->cores;
  double results = (double)p->batch.all * (double)p->m.all * (double)p->n.all;
  double products = results * (double)p->k.all;
  bool few = results < cores * PESTLE_GPU_THREADS_PER_UNIT &&
             p->k.all >= PESTLE_GPU_LONG_REDUCE;
  bool across = few && !p->b.along_k && p->n.all > 1;
  // One row: lanes read the other operand once, as it lies, and bytes are all that counts.
  if (few && p->m.all == 1 && p->b.along_k && p->b.dtype != PESTLE_F32) {
    double bytes = (double)pestle_dtype_size(p->b.dtype);
    return products * bytes / (cores * PESTLE_GPU_GLOBAL_BYTES);
  }
  double chain = few ? 0 : (double)p->k.all * PESTLE_GPU_POINT_CYCLES;
  return chain + products / (cores * PESTLE_GPU_POINT_PRODUCTS) +
         (across ? products * PESTLE_GPU_LINE /
                       (cores * PESTLE_GPU_GLOBAL_BYTES * columns_of_line(s))
                 : 0);
}

// --- The choice ---

// As many slots as two groups of a unit have room for.
static bool fit(const staged_t* s, pestle_shared_tile_t* t) {
  const pestle_target_caps_t* caps = s->k->caps;
  int64_t room = caps->scratch_bytes;
  if (room >= LARGE_SCRATCH) room /= 2;
  bool ahead = s->p.a.read && s->p.b.read &&
               (caps->flags & PESTLE_TARGET_ASYNC_COPY) && t->units;
  if (!ahead) t->slots = 2;
  // What is copied past the registers is under way by slots instead.
  if (ahead && t->units == PESTLE_UNITS_TEAMS && t->m > 4 && t->k > LONG_STEP)
    return false;
  int64_t least = 16;
  if (t->units == PESTLE_UNITS_MMA || t->units == PESTLE_UNITS_MMA8) {
    least = pestle_shared_tile_unit_k(t->units, s->p.a.dtype);
    if (least < pestle_shared_tile_unit_rows(t->units))
      least = pestle_shared_tile_unit_rows(t->units);
  }
  while (t->k > least && t->k >= 2 * s->p.k.all)
    t->k /= 2;
  if (t->k >= s->p.k.all) t->slots = 2;
  while (t->slots > 2 && pestle_shared_tile_bytes(t, &s->p) > room)
    --t->slots;
  // Registers: sums, and as much again for what is multiplied, and of long steps what is
  // copied, unless that is by runs. On an H200 4,096^3 takes 2,909 us by 8 x 16 sums a lane,
  // one group a unit, 3,058 by 8 x 8, and 3,299 by steps of 8.
  int64_t sums = t->r * t->c * (int64_t)pestle_dtype_size(s->p.sums);
  // Half of the usual columns bring the rows twice: only where fewer lie behind the last one.
  bool narrow = !t->units && t->r * t->c == MANY_SUMS && t->n == WIDE / 2;
  if (narrow && pestle_ceil_div(s->p.n.all, t->n) * t->n ==
                    pestle_ceil_div(s->p.n.all, WIDE) * WIDE) {
    return false;
  }
  if (!t->units && t->r * t->c * t->k > 8 * 8 * 8 &&
      (s->p.a.run < 4 || s->p.b.run < 4)) {
    return false;
  }
  if (!t->units && sums > 256 &&
      2 * sums * pestle_shared_tile_lanes(t) >
          (int64_t)caps->register_bytes_group) {
    return false;
  }
  // What copies past the registers cannot keep under way is no faster so.
  if (t->units == PESTLE_UNITS_TEAMS &&
      (!s->k->reassociate || s->p.sums != PESTLE_F32 ||
       !(caps->flags & PESTLE_TARGET_ASYNC_COPY))) {
    return false;
  }
  int64_t strips = s->strips ? pestle_shared_tile_strips(t) * 4 : 0;
  return pestle_shared_tile_bytes(t, &s->p) + strips <=
             (int64_t)caps->scratch_bytes &&
         pestle_shared_tile_lanes(t) <= (int64_t)caps->max_group_lanes &&
         pestle_shared_tile_lanes(t) >= (int64_t)caps->subgroup;
}

// Whether groups of clusters can have |t|'s parts of k.
static bool has_parts(const staged_t* s, const pestle_shared_tile_t* t) {
  if (t->parts == 1) return true;
  return t->units == PESTLE_UNITS_MMA && t->slots > 2 &&
         s->k->caps->op_dtypes[PESTLE_KIR_CLUSTER_SYNC] != 0 &&
         pestle_ceil_div(s->p.k.all, t->k) >= LEAST_STEPS * t->parts;
}

// The cheapest of |count| tiles that takes less than |*best|.
static bool choose_of(const staged_t* s, const pestle_shared_tile_t* tiles,
                      size_t count, double* best, pestle_shared_tile_t* out) {
  bool found = false;
  for (size_t i = 0; i < count; ++i) {
    for (int64_t parts = 1; parts <= MOST_PARTS; parts *= 2) {
      pestle_shared_tile_t t = tiles[i];
      t.parts = parts;
      // A step's rows are as many bytes.
      if (s->units == PESTLE_UNITS_MMA)
        t.k = t.k * 2 / (int64_t)pestle_dtype_size(s->p.a.dtype);
      if (!fit(s, &t) || !has_parts(s, &t)) continue;
      double cycles = tile_cycles(s, &t);
      if (cycles >= *best) continue;
      *best = cycles;
      *out = t;
      found = true;
    }
  }
  return found;
}

// Whether all cores have several of such tiles, of which lanes have many sums each.
static bool fills_rounds(const staged_t* s, const pestle_shared_tile_t* t) {
  int64_t tiles = pestle_ceil_div(s->p.m.all, t->m) *
                  pestle_ceil_div(s->p.n.all, t->n) * s->p.batch.all;
  return t->r * t->c >= MANY_SUMS && tiles >= ROUNDS * (int64_t)s->k->cores;
}

static bool choose(const staged_t* s, pestle_shared_tile_t* out) {
  static const struct {
    const pestle_shared_tile_t* tile;
    size_t count;
  } menu[] = {
      [PESTLE_UNITS_LANES] = {by_lanes, sizeof by_lanes / sizeof *by_lanes},
      [PESTLE_UNITS_MMA] = {by_units, sizeof by_units / sizeof *by_units},
      [PESTLE_UNITS_MMA8] = {by_units8, sizeof by_units8 / sizeof *by_units8},
  };
  double best = point_cycles(s);
  bool found =
      choose_of(s, menu[s->units].tile, menu[s->units].count, &best, out);
  // Enough large tiles keep all cores busy without: in turns their lanes read less.
  if (s->units || (found && fills_rounds(s, out))) return found;
  return choose_of(s, by_teams, sizeof by_teams / sizeof *by_teams, &best,
                   out) ||
         found;
}

// The best units that the target has for |reduce|, or none. False: it is no such
// product.
static bool find_units(staged_t* s, uint32_t reduce) {
  pestle_nest_t* nest = s->k->nest;
  bool any = s->k->caps->intrinsic_count;
  s->units = PESTLE_UNITS_MMA;
  if (any && pestle_product_find(nest, reduce, s->units, &s->p) &&
      has_unit(s->k, &s->p)) {
    return true;
  }
  s->units = PESTLE_UNITS_MMA8;
  if (any && s->k->reassociate && has_unit8(s->k) &&
      pestle_product_find(nest, reduce, s->units, &s->p)) {
    return true;
  }
  s->units = PESTLE_UNITS_LANES;
  return pestle_product_find(nest, reduce, s->units, &s->p);
}

pestle_status_t pestle_shared_tile_sketch(pestle_sketch_t* k,
                                          const pestle_offer_t* offer,
                                          bool* out_done) {
  staged_t s = {.k = k};
  pestle_shared_tile_t t;
  if (k->nest->no_scratch || k->caps->max_group_lanes < 32) return NULL;
  if (!find_units(&s, offer->reduce)) return pestle_nest_status(k->nest);
  s.strips = pestle_shared_tile_has_strips(
      &(pestle_shared_tile_t){.units = s.units}, k->nest, &s.p);
  if (!choose(&s, &t)) return pestle_nest_status(k->nest);
  pestle_sketch_note(k,
                     "shared_tile: groups of %" PRId64 " lanes make %" PRId64
                     " x %" PRId64 " sums from boxes of %" PRId64
                     " products each in shared memory, %s%s",
                     pestle_shared_tile_lanes(&t), t.m, t.n, t.k,
                     t.units == PESTLE_UNITS_TEAMS ? "by subgroups that share k"
                     : t.units ? "by matrix units of a subgroup"
                               : "each lane some of them",
                     t.parts == 1   ? ""
                     : t.parts == 2 ? "; two groups share k"
                                    : "; four groups share k");
  *out_done = true;
  bool async = k->caps->flags & PESTLE_TARGET_ASYNC_COPY;
  return pestle_schedule_template(
      k->nest,
      &(pestle_nest_template_t){.row = offer->row,
                                .stage = offer->reduce,
                                .ints = {t.m, t.n, t.k, t.r, t.c, t.slots,
                                         t.units, async, t.parts / 2}});
}
