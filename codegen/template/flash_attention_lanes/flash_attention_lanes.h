// SPDX-License-Identifier: Apache-2.0
// The template flash_attention_lanes: softmax(q k) v of f32 in one pass over the keys,
// both products by the multiply-adds of lanes.
//
//   flash_attention_lanes S m
//
// Groups have m rows of S, the stage of the output: sixteen lanes for each four.
#ifndef PESTLE_CODEGEN_TEMPLATE_FLASH_ATTENTION_LANES_FLASH_ATTENTION_LANES_H_
#define PESTLE_CODEGEN_TEMPLATE_FLASH_ATTENTION_LANES_FLASH_ATTENTION_LANES_H_

#include "codegen/template/flash_attention_mma/flash_attention_mma.h"

enum {
  PESTLE_FLASH_LANES_KEYS = 64,      // of a block
  PESTLE_FLASH_LANES_ACROSS = 16,    // lanes that have a row
  PESTLE_FLASH_LANES_DOWN = 4,       // rows of a lane
  PESTLE_FLASH_LANES_COLUMNS = 128,  // of q, k and v, at most
};

bool pestle_flash_lanes_find(pestle_nest_t* nest,
                             pestle_flash_attention_t* out);

// Columns that the lanes of a row have: whole vectors of each.
int64_t pestle_flash_lanes_pad(int64_t columns);
int64_t pestle_flash_lanes_bytes(const pestle_flash_attention_t* a,
                                 int64_t rows);

#endif  // PESTLE_CODEGEN_TEMPLATE_FLASH_ATTENTION_LANES_FLASH_ATTENTION_LANES_H_
