// SPDX-License-Identifier: Apache-2.0
// Which attention lanes take: of f32 arguments, whatever lies how.
#include "codegen/template/flash_attention_lanes/flash_attention_lanes.h"

bool pestle_flash_lanes_find(pestle_nest_t* nest,
                             pestle_flash_attention_t* out) {
  return pestle_flash_attention_find(nest, PESTLE_UNITS_LANES,
                                     PESTLE_FLASH_LANES_COLUMNS, out) &&
         out->q.dtype == PESTLE_F32;
}

int64_t pestle_flash_lanes_pad(int64_t columns) {
  int64_t each = 1;
  while (each * PESTLE_FLASH_LANES_ACROSS < columns)
    each *= 2;
  return each * PESTLE_FLASH_LANES_ACROSS;
}

// Rows of q and of weights, keys and values; a slot's rows are four longer.
int64_t pestle_flash_lanes_bytes(const pestle_flash_attention_t* a,
                                 int64_t rows) {
  int64_t keys = PESTLE_FLASH_LANES_KEYS;
  int64_t depth = pestle_flash_attention_pad(a->depth.all);
  int64_t columns = pestle_flash_lanes_pad(a->v_columns.all);
  return 4 * (depth * (rows + 4) + keys * (rows + 4) + depth * (keys + 4) +
              keys * (columns + 4));
}

pestle_status_t pestle_flash_attention_lanes_match(
    pestle_nest_t* nest, const pestle_nest_template_t* use) {
  pestle_flash_attention_t a;
  int64_t rows = use->ints[0];
  if ((rows == 16 || rows == 32 || rows == 64) &&
      pestle_flash_lanes_find(nest, &a) && a.output == use->stage) {
    return NULL;
  }
  PESTLE_TRY(pestle_nest_status(nest));
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "flash_attention_lanes %s: it must be the output of "
                      "attention on f32 of at most %d columns, 16, 32 or 64 "
                      "rows a group",
                      pestle_nest_stage(nest, use->stage)->name,
                      (int)PESTLE_FLASH_LANES_COLUMNS);
}
