// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "ir/scan_rows.h"
#include "pestle/kir.h"

enum {
  MOST_GROUP_ROWS = 4,  // each is written out
  MOST_SPLIT = 16,
  FOUR = 4,
  WORD = 4,
  // Words of a lane for addresses, sums and functions.
  RESERVED = 56,
  USUAL_WORDS = 1 << 16,  // of a group, where a target does not say
  // More lanes wait for each other longer at a barrier than they gain.
  GOOD_LANES = 512,
};

pestle_scan_rows_room_t pestle_scan_rows_room(
    const pestle_target_caps_t* caps) {
  bool reduces =
      caps->op_dtypes[PESTLE_KIR_SG_REDUCE] & pestle_dtype_bit(PESTLE_F32);
  return (pestle_scan_rows_room_t){
      .shared_bytes = caps->scratch_bytes,
      .lane_words = caps->register_bytes_lane / WORD,
      .group_words = caps->register_bytes_group / WORD,
      .lanes = caps->max_group_lanes,
      .subgroup = reduces ? caps->subgroup : 0,
      .groups = caps->cores};
}

int64_t pestle_scan_rows_state(const pestle_scan_t* s) {
  int64_t count = 0;
  for (size_t i = 0; i < s->carry_count; ++i)
    count += pestle_type_count(s->carry[i]->type) != 1;
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
  int64_t used = (2 * r->xs + r->fixeds + r->dots) * fit->group_rows;
  return words - RESERVED - used;
}

static bool fits(const pestle_scan_rows_t* r, int64_t state, int64_t split,
                 const pestle_scan_rows_room_t* room,
                 pestle_scan_rows_fit_t* fit) {
  int64_t subgroup = room->subgroup ? room->subgroup : 32;
  memset(fit, 0, sizeof(*fit));
  fit->split = split;
  fit->depth = aligned(r->width, FOUR * split);
  fit->each = fit->depth / split;
  fit->lanes = aligned(r->width * split, subgroup);
  fit->group_rows = rows_of_group(r, room->groups);
  if (fit->lanes > room->lanes) return false;
  int64_t words = words_for_columns(r, room, fit);
  fit->shared_bytes =
      (2 * state + r->stages) * fit->group_rows * fit->depth * WORD;
  for (uint32_t i = 0; i < r->dots; ++i) {
    fit->in_registers[i] = words >= fit->each;
    if (fit->in_registers[i]) {
      words -= fit->each;
    } else {
      fit->shared_bytes += fit->each * fit->lanes * WORD;
    }
  }
  return fit->shared_bytes <= room->shared_bytes;
}

// Of two that fit the one that keeps more in registers, and then the one of more lanes.
static bool is_better(const pestle_scan_rows_fit_t* a,
                      const pestle_scan_rows_fit_t* b) {
  if (a->lanes > GOOD_LANES && b->lanes <= GOOD_LANES)
    return a->shared_bytes < b->shared_bytes / 2;
  return a->shared_bytes <= b->shared_bytes;
}

bool pestle_scan_rows_fit(const pestle_scan_rows_t* r, int64_t state,
                          const pestle_scan_rows_room_t* room,
                          pestle_scan_rows_fit_t* out_fit) {
  bool found = false;
  for (int64_t split = 1; split <= MOST_SPLIT; split *= 2) {
    pestle_scan_rows_fit_t fit;
    bool whole = split == 1 || (split <= room->subgroup &&
                                FOUR * split <= aligned(r->width, FOUR));
    if (!whole || !fits(r, state, split, room, &fit)) continue;
    if (!found || is_better(&fit, out_fit)) *out_fit = fit;
    found = true;
  }
  return found;
}
