// SPDX-License-Identifier: Apache-2.0
// Attention of f32 in one pass, where groups have lanes that can add up a row.
#include <inttypes.h>

#include "codegen/sketch/sketch.h"
#include "codegen/template/flash_attention_lanes/flash_attention_lanes.h"

enum { LEAST_KEYS = 16, MOST_ROWS = 64 };

pestle_status_t pestle_flash_attention_lanes_sketch(pestle_sketch_t* k,
                                                    const pestle_offer_t* offer,
                                                    bool* out_done) {
  pestle_flash_attention_t a;
  int64_t scratch = (int64_t)k->caps->scratch_bytes;
  if (k->nest->no_scratch || !k->reassociate ||
      k->caps->subgroup < PESTLE_FLASH_LANES_ACROSS ||
      k->caps->max_group_lanes < 256 ||
      !pestle_flash_attention_resembles(k->nest, PESTLE_UNITS_LANES)) {
    return NULL;
  }
  PESTLE_TRY(pestle_sketch_inline_kept(k));
  if (!pestle_flash_lanes_find(k->nest, &a) || a.keys.all < LEAST_KEYS) {
    return pestle_nest_status(k->nest);
  }
  // The most rows of which there are groups for all units.
  int64_t rows = MOST_ROWS;
  while (rows > 16 &&
         (pestle_flash_lanes_bytes(&a, rows) > scratch ||
          pestle_ceil_div(a.rows.all, rows) * a.batch.all < 2 * k->cores)) {
    rows /= 2;
  }
  if (pestle_flash_lanes_bytes(&a, rows) > scratch) return NULL;
  pestle_sketch_note(k,
                     "flash_attention_lanes: one pass over the keys, %d at "
                     "once, by groups of %" PRId64
                     " rows; lanes make four rows of scores and results; lost: "
                     "rows of scores, which each group of columns makes again",
                     (int)PESTLE_FLASH_LANES_KEYS, rows);
  *out_done = true;
  return pestle_schedule_template(
      k->nest, &(pestle_nest_template_t){
                   .row = offer->row, .stage = a.output, .ints = {rows}});
}
