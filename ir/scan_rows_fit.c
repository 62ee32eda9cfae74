// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "ir/scan_rows.h"
#include "pestle/kir.h"

enum {
  MOST_GROUP_ROWS = 4,  // each is written out
  MOST_SPLIT = 32,
  FEW_NARROW = 8,
  FOUR = 4,
  WORD = 4,
  // Words of a lane for addresses, sums and functions.
  RESERVED = 56,
  USUAL_WORDS = 1 << 16,  // of a group, where a target does not say
  WARP = 32,  // lanes that go together, words that shared memory gives a cycle
  SCHEDULERS = 4,  // of an execution unit
  JOIN = 2,        // instructions of one step of a sum over lanes
  WIDE_BARRIER = 1200,
  LAUNCH_BARRIER = 3000,  // through memory
};

pestle_scan_rows_room_t pestle_scan_rows_room(
    const pestle_target_caps_t* caps) {
  bool reduces =
      caps->op_dtypes[PESTLE_KIR_SG_REDUCE] & pestle_dtype_bit(PESTLE_F32);
  int64_t units =
      caps->flags & PESTLE_TARGET_WIDE_GROUPS ? PESTLE_WIDE_GROUP : 1;
  bool launches = caps->flags & PESTLE_TARGET_WIDE_LAUNCHES;
  return (pestle_scan_rows_room_t){
      .shared_bytes = caps->scratch_bytes,
      .lane_words = caps->register_bytes_lane / WORD,
      .group_words = caps->register_bytes_group / WORD,
      .lanes = caps->max_group_lanes,
      .subgroup = reduces ? caps->subgroup : 0,
      .groups = caps->cores,
      .units = units,
      .launch_units = launches ? caps->cores : 0};
}

int64_t pestle_scan_rows_state(const pestle_scan_t* s,
                               const pestle_scan_rows_t* r) {
  int64_t count = 0;
  for (size_t i = 0; i < s->carry_count; ++i) {
    bool rows = pestle_type_count(s->carry[i]->type) != 1;
    count += rows && !pestle_scan_rows_is_own(r, i);
  }
  return count;
}

static int64_t aligned(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

// Rows of a group: as few as leave no more groups than run at once.
static int64_t rows_of_group(const pestle_scan_rows_t* r, int64_t groups) {
  int64_t best = 1;
  for (int64_t n = 1; n <= MOST_GROUP_ROWS && n <= r->rows; ++n) {
    if (r->rows % n) continue;
    best = n;
    if (!groups || r->rows / n <= groups) break;
  }
  return best;
}

// Words that a lane has for columns.
static int64_t words_for_columns(const pestle_scan_rows_t* r,
                                 const pestle_scan_rows_room_t* room,
                                 const pestle_scan_rows_fit_t* fit) {
  int64_t words = room->lane_words;
  int64_t all = room->group_words ? room->group_words : USUAL_WORDS;
  if (all / fit->lanes < words) words = all / fit->lanes;
  int64_t rows = fit->by_lanes ? 1 : fit->group_rows;
  int64_t used = (2 * r->xs + r->fixeds + r->dots) * rows;
  return words - RESERVED - used;
}

// Products of many rows of narrow floats are better left to the units for matrices.
static bool has_narrow(const pestle_scan_rows_t* r) {
  for (uint32_t i = 0; i < r->dots; ++i) {
    if (pestle_node_operand(r->dot[i].node, 0)->type->dtype != PESTLE_F32)
      return true;
  }
  return false;
}

static bool fits(const pestle_scan_rows_t* r, int64_t state, int64_t split,
                 int64_t units, bool by_lanes,
                 const pestle_scan_rows_room_t* room,
                 pestle_scan_rows_fit_t* fit) {
  int64_t subgroup = room->subgroup ? room->subgroup : 32;
  memset(fit, 0, sizeof(*fit));
  if (r->width % units) return false;
  fit->units = units;
  fit->split = split;
  fit->by_lanes = by_lanes;
  fit->depth = aligned(r->width, FOUR * split);
  fit->each = fit->depth / split;
  fit->lanes = aligned(r->width / units * split, subgroup);
  fit->group_rows = rows_of_group(r, room->groups / units);
  if (by_lanes) {
    bool few = r->rows <= (has_narrow(r) ? FEW_NARROW : split);
    if (split != subgroup || !few) return false;
    fit->group_rows = r->rows;
  }
  if (units > room->units && fit->group_rows != r->rows) return false;
  if (fit->lanes > room->lanes) return false;
  int64_t words = words_for_columns(r, room, fit);
  if (units == 1) {
    fit->shared_bytes =
        (2 * state + r->stages) * fit->group_rows * fit->depth * WORD;
  }
  for (uint32_t i = 0; i < r->dots; ++i) {
    fit->in_registers[i] = words >= fit->each;
    if (fit->in_registers[i]) {
      words -= fit->each;
    } else if (units > 1) {
      return false;
    } else {
      fit->shared_bytes += fit->each * fit->lanes * WORD;
    }
  }
  return fit->shared_bytes <= room->shared_bytes;
}

// Cycles of a turn, about: instructions of a unit's lanes, which wait for each other less the
// more there are of them; columns from shared memory; the barrier of several units.
static int64_t cycles_of(const pestle_scan_rows_t* r,
                         const pestle_scan_rows_fit_t* fit) {
  int64_t warps = (fit->lanes + WARP - 1) / WARP, joins = 0, shared = 0;
  for (int64_t n = fit->split; n > 1; n /= 2)
    joins += JOIN * r->dots;
  for (uint32_t i = 0; i < r->dots; ++i)
    shared += fit->in_registers[i] ? 0 : fit->each * fit->lanes;
  int64_t sums = r->dots * fit->each;
  int64_t lane = fit->by_lanes ? 2 * r->ops + (sums + joins) * fit->group_rows
                               : (2 * r->ops + sums) * fit->group_rows + joins;
  int64_t rounds = (warps + SCHEDULERS - 1) / SCHEDULERS;
  int64_t barrier = fit->units > PESTLE_WIDE_GROUP ? LAUNCH_BARRIER
                    : fit->units > 1               ? WIDE_BARRIER
                                                   : 0;
  return lane * rounds + shared / WARP + barrier;
}

// The best fit so far, if there is one.
typedef struct best_t {
  pestle_scan_rows_fit_t fit;
  int64_t cycles;
  bool found;
} best_t;

static void try_fit(const pestle_scan_rows_t* r, int64_t state, int64_t split,
                    int64_t units, bool by_lanes,
                    const pestle_scan_rows_room_t* room, best_t* best) {
  pestle_scan_rows_fit_t fit;
  bool whole = split == 1 || (split <= room->subgroup &&
                              FOUR * split <= aligned(r->width, FOUR));
  if (!whole || !fits(r, state, split, units, by_lanes, room, &fit)) return;
  int64_t cycles = cycles_of(r, &fit);
  if (best->found && cycles >= best->cycles) return;
  *best = (best_t){fit, cycles, true};
}

bool pestle_scan_rows_fit(const pestle_scan_rows_t* r, int64_t state,
                          const pestle_scan_rows_room_t* room,
                          pestle_scan_rows_fit_t* out_fit) {
  best_t best = {.found = false};
  int64_t most =
      room->launch_units > room->units ? room->launch_units : room->units;
  // A cluster's units are a power of two; those of a launch are any that divide the columns.
  for (int64_t units = 1; units <= most;
       units = units < room->units ? 2 * units : units + 1) {
    for (int64_t split = 1; split <= MOST_SPLIT; split *= 2)
      try_fit(r, state, split, units, false, room, &best);
    if (units > room->units)
      try_fit(r, state, MOST_SPLIT, units, true, room, &best);
  }
  if (best.found) *out_fit = best.fit;
  return best.found;
}
