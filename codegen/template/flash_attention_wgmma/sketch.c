// SPDX-License-Identifier: Apache-2.0
// Attention by warpgroups, where the target has them and rows fill their tiles.
#include <inttypes.h>

#include "codegen/sketch/sketch.h"
#include "codegen/template/flash_attention_wgmma/flash_attention_wgmma.h"

enum {
  LEAST_ROWS = 48,
  LEAST_KEYS = 64,
  MOST_KEYS = 128,
  MOST_HELD = 176,  // registers of sums, scores and weights of a lane
};

static bool has_unit(const pestle_sketch_t* k, pestle_dtype_t dtype) {
  return pestle_sketch_has_unit(k, PESTLE_INTRINSIC_WGMMA, dtype, 64, 256, 16);
}

// Whether units of subgroups, whose groups of lanes read what they multiply, are as good:
// of few rows or keys, which fill no tile, where they take the columns.
static bool is_small(const pestle_flash_attention_t* a) {
  if (a->rows.all <= PESTLE_FLASH_ATTENTION_ROWS) return true;
  return (a->rows.all < LEAST_ROWS || a->keys.all < LEAST_KEYS) &&
         a->depth.all <= PESTLE_FLASH_ATTENTION_COLUMNS &&
         a->v_columns.all <= PESTLE_FLASH_ATTENTION_COLUMNS;
}

// Sums of 64 x columns, scores of 64 x keys, and those as weights of half as many
// bits.
static int64_t held(const pestle_flash_attention_t* a, int64_t keys) {
  return a->v_columns.all / 2 + keys / 2 + keys / 4;
}

pestle_status_t pestle_flash_attention_wgmma_sketch(pestle_sketch_t* k,
                                                    const pestle_offer_t* offer,
                                                    bool* out_done) {
  pestle_flash_attention_t a;
  pestle_flash_operand_t operands[3];
  bool units = has_unit(k, PESTLE_BF16) || has_unit(k, PESTLE_F16);
  if (k->nest->no_scratch || !k->reassociate || !units ||
      !pestle_flash_attention_resembles(k->nest, PESTLE_UNITS_MMA)) {
    return NULL;
  }
  PESTLE_TRY(pestle_sketch_inline_kept(k));
  if (!pestle_flash_wgmma_find(k->nest, &a, operands) ||
      !has_unit(k, a.q.dtype) || is_small(&a)) {
    return pestle_nest_status(k->nest);
  }
  pestle_flash_wgmma_how_t how = {
      .keys = MOST_KEYS,
      .consumers = a.rows.all <= PESTLE_FLASH_WGMMA_ROWS ? 1 : 2,
      .groups = k->cores};
  int64_t scratch = (int64_t)k->caps->scratch_bytes;
  while (how.keys > LEAST_KEYS &&
         (held(&a, how.keys) > MOST_HELD || how.keys / 2 >= a.keys.all ||
          pestle_flash_wgmma_bytes(&a, &how) > scratch)) {
    how.keys /= 2;
  }
  if (pestle_flash_wgmma_bytes(&a, &how) > scratch) return NULL;
  pestle_flash_wgmma_order(k->nest, &a, &how);
  pestle_sketch_note(k,
                     "flash_attention_wgmma: one pass over the keys, %" PRId64
                     " at once, which are copied ahead; %" PRId64
                     " warpgroups of 64 rows make scores and results, which "
                     "stay in registers; lost: flash_attention_mma, whose "
                     "subgroups of 16 rows load what they multiply",
                     how.keys, how.consumers);
  *out_done = true;
  return pestle_schedule_template(
      k->nest,
      &(pestle_nest_template_t){
          .row = offer->row,
          .stage = a.output,
          .ints = {how.keys, how.consumers, how.groups, how.heads, how.back}});
}
