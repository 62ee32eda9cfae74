// SPDX-License-Identifier: Apache-2.0
// Attention in one pass by matrix units, where it is that and there are such.
#include <inttypes.h>

#include "codegen/sketch/sketch.h"
#include "codegen/template/flash_attention_mma/flash_attention_mma.h"

enum { LEAST_KEYS = 16, MOST_KEYS = 64 };

static bool has_unit(const pestle_sketch_t* k, pestle_dtype_t dtype) {
  return pestle_sketch_has_unit(k, PESTLE_INTRINSIC_MMA, dtype, 16, 8, 16);
}

static bool fits(const pestle_sketch_t* k, const pestle_flash_attention_t* a,
                 int64_t keys, bool teams) {
  return pestle_flash_attention_bytes(a, keys, teams) <=
         (int64_t)k->caps->scratch_bytes;
}

// Groups of a cluster that share the keys of few rows: while there are units for all of
// them and each has keys. A cluster's groups are neighbours, where some units are left over.
static int64_t choose_parts(const pestle_sketch_t* k,
                            const pestle_flash_attention_t* a) {
  enum { MOST_PARTS = 8 };
  int64_t parts = 1, units = k->cores - k->cores / 8;
  if (!k->caps->op_dtypes[PESTLE_KIR_CLUSTER_SYNC]) return parts;
  while (parts < MOST_PARTS && a->batch.all * parts * 2 <= units &&
         (parts * 2 - 1) * PESTLE_FLASH_ATTENTION_SUBGROUPS * LEAST_KEYS <
             a->keys.all) {
    parts *= 2;
  }
  return parts;
}

pestle_status_t pestle_flash_attention_mma_sketch(pestle_sketch_t* k,
                                                  const pestle_offer_t* offer,
                                                  bool* out_done) {
  pestle_flash_attention_t a;
  bool units = has_unit(k, PESTLE_BF16) || has_unit(k, PESTLE_F16);
  if (k->nest->no_scratch || !k->reassociate || !units ||
      k->caps->max_group_lanes < PESTLE_FLASH_ATTENTION_LANES ||
      !pestle_flash_attention_resembles(k->nest, PESTLE_UNITS_MMA)) {
    return NULL;
  }
  PESTLE_TRY(pestle_sketch_inline_kept(k));
  if (!pestle_flash_attention_find(k->nest, PESTLE_UNITS_MMA,
                                   PESTLE_FLASH_ATTENTION_TEAM_COLUMNS, &a) ||
      !has_unit(k, a.q.dtype) || a.keys.all < LEAST_KEYS) {
    return pestle_nest_status(k->nest);
  }
  // Few rows would leave the other subgroups without any.
  bool wide = a.depth.all > PESTLE_FLASH_ATTENTION_COLUMNS ||
              a.v_columns.all > PESTLE_FLASH_ATTENTION_COLUMNS;
  bool teams = a.rows.all <= PESTLE_FLASH_ATTENTION_ROWS &&
               (wide || a.keys.all > 2 * LEAST_KEYS) &&
               fits(k, &a, LEAST_KEYS, true);
  int64_t columns = pestle_flash_attention_columns(teams);
  if (a.depth.all > columns || a.v_columns.all > columns) return NULL;
  int64_t parts = teams ? choose_parts(k, &a) : 1;
  int64_t across = teams ? PESTLE_FLASH_ATTENTION_SUBGROUPS * parts : 1;
  int64_t keys = MOST_KEYS;
  while (keys > LEAST_KEYS &&
         (!fits(k, &a, keys, teams) || keys * across / 2 >= a.keys.all)) {
    keys /= 2;
  }
  if (!fits(k, &a, keys, teams)) return NULL;
  pestle_sketch_note(k,
                     "flash_attention_mma: one pass over the keys, %" PRId64
                     " at once%s; matrix units make scores and results, which "
                     "stay in registers",
                     keys * across,
                     parts > 1 ? ", shared by subgroups of a cluster's groups"
                     : teams   ? ", shared by subgroups of the same rows"
                               : "");
  *out_done = true;
  int64_t clusters = pestle_log2_floor((uint64_t)parts);
  bool async = k->caps->flags & PESTLE_TARGET_ASYNC_COPY;
  return pestle_schedule_template(
      k->nest,
      &(pestle_nest_template_t){.row = offer->row,
                                .stage = a.output,
                                .ints = {keys, teams, async, clusters}});
}
