// SPDX-License-Identifier: Apache-2.0
// How an attention's gradient is cut where lanes run side by side: by a warpgroup, or how
// many rows a subgroup owns and how many a group goes over at a time.
#include "base/bits.h"
#include "codegen/direct/direct_attention_grad_lanes.h"

enum { MOST_REGISTERS = 192, MOST_BLOCK = 64, LEAST_BLOCK = 16 };

static int64_t rest_bytes(const flash_grad_t* g, int64_t tile, int64_t block) {
  int64_t row = (g->own[0].pitch + g->own[1].pitch) * 2;
  return row * (tile + FLASH_SLOTS * block);
}

static int64_t registers_of(const flash_grad_t* g, int64_t units,
                            int64_t block) {
  int64_t sums = (g->of_first ? g->own[0].padded : 0) +
                 (g->of_second ? g->own[1].padded : 0);
  return units * (sums / 2 + (g->of_first ? block : block / 2));
}

static bool fits(const flash_grad_t* g, int64_t units, int64_t block) {
  int64_t tile = FLASH_SUBGROUPS * FLASH_UNIT * units;
  return registers_of(g, units, block) <= MOST_REGISTERS &&
         rest_bytes(g, tile, block) <= (int64_t)g->d->caps->scratch_bytes;
}

// Whether a warpgroup makes the products: what it goes over fills a block, sums and scores
// fit its registers, and blocks shared memory.
static bool takes_warpgroup(flash_grad_t* g) {
  int64_t pitch[2], columns = 0;
  bool is_aligned = true;
  if (!pestle_flash_grad_has_warpgroups(g) ||
      !(g->d->caps->flags & PESTLE_TARGET_ASYNC_COPY)) {
    return false;
  }
  for (uint32_t i = 0; g->d->aligns && i < g->node->operand_count; ++i)
    is_aligned &= !g->d->aligns[i] || g->d->aligns[i] >= FLASH_RUN_BYTES;
  for (int i = 0; i < 2; ++i) {
    pitch[i] = (int64_t)pestle_align_up((size_t)g->own[i].columns, MOST_BLOCK);
    columns += pitch[i];
  }
  int64_t bytes = columns * 2 * (1 + FLASH_SLOTS) * MOST_BLOCK;
  if (!is_aligned || 2 * g->other[0].count <= MOST_BLOCK ||
      registers_of(g, 1, MOST_BLOCK) > MOST_REGISTERS ||
      bytes > (int64_t)g->d->caps->scratch_bytes) {
    return false;
  }
  for (int i = 0; i < 2; ++i)
    g->own[i].pitch = g->other[i].pitch = pitch[i];
  return true;
}

// The most rows a subgroup with which no core is without a group, and of those that it meets
// at once the most that fit.
void pestle_flash_grad_choose(flash_grad_t* g) {
  int64_t own = g->own[0].count, other = g->other[0].count;
  if (takes_warpgroup(g)) {
    g->has_warpgroups = true;
    g->units = 1;
    g->block = g->tile = MOST_BLOCK;
    g->tiles = pestle_ceil_div(own, g->tile);
    g->blocks = pestle_ceil_div(other, g->block);
    return;
  }
  int64_t tile = FLASH_SUBGROUPS * FLASH_UNIT, cores = g->d->caps->cores;
  g->units = 1;
  for (int64_t units = FLASH_MOST_UNITS; units > 1; --units) {
    if (g->heads * pestle_ceil_div(own, units * tile) >= cores &&
        fits(g, units, MOST_BLOCK / 2)) {
      g->units = units;
      break;
    }
  }
  g->tile = g->units * tile;
  g->tiles = pestle_ceil_div(own, g->tile);
  g->block = MOST_BLOCK;
  while (g->block > LEAST_BLOCK &&
         (!fits(g, g->units, g->block) || g->block / 2 >= other))
    g->block /= 2;
  g->blocks = pestle_ceil_div(other, g->block);
}
