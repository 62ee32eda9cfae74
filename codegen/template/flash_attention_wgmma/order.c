// SPDX-License-Identifier: Apache-2.0
// In which order persistent groups take the tiles of rows that see different keys.
//
// Group g of n takes tiles g, n + g, 2 n + g and so on, or there and back: g, 2 n - 1 - g,
// 2 n + g. The tiles of a few heads stand by rows, those that see most keys first. How much
// the group with most to do has depends on how many heads these are, and on the way; all
// are tried with the blocks of keys that each tile sees.
#include "codegen/template/flash_attention_wgmma/flash_attention_wgmma.h"

enum {
  MOST_GROUPS = 1024,
  MOST_TILES = 1 << 16,  // of more, any order will do
  L2_BYTES = 32 << 20,   // what k and v of the heads in turn may fill
  BLOCK = 2,             // the cost of a block of keys
  TILE = 1,              // and of a tile, beside its blocks
  CACHED = 12,
  BEYOND = 13  // costs where k and v stay in the cache, and where not
};

// Blocks of which the rows |first| to |last| see keys, of |steps|.
static int64_t count_blocks(const pestle_visible_t* visible, int64_t first,
                            int64_t last, int64_t keys, int64_t steps) {
  int64_t from = 0;
  for (uint32_t i = 0; i < visible->count; ++i) {
    const pestle_visible_test_t* v = &visible->tests[i];
    int64_t most = v->row * (v->row > 0 ? last : first) + v->constant;
    if (v->key < 0) {
      int64_t end = most + keys < 0 ? 0 : (most + keys) / keys;
      if (end < steps) steps = end;
    } else if (most < 0 && -most / keys > from) {
      from = -most / keys;
    }
  }
  return steps > from ? steps - from : 0;
}

typedef struct order_t {
  const pestle_flash_attention_t* a;
  const pestle_flash_wgmma_how_t* how;
  const pestle_visible_t* visible;
  int64_t row_tiles, groups;
} order_t;

static int64_t cost_of_rows(const order_t* o, int64_t tile) {
  int64_t rows = PESTLE_FLASH_WGMMA_ROWS * o->how->consumers;
  int64_t first = tile * rows, last = first + rows - 1;
  if (last >= o->a->rows.all) last = o->a->rows.all - 1;
  int64_t steps = pestle_ceil_div(o->a->keys.all, o->how->keys);
  return BLOCK * count_blocks(o->visible, first, last, o->how->keys, steps) +
         TILE;
}

// The cost of the group with most to do, of |heads| at a time.
static int64_t longest(const order_t* o, int64_t heads, bool back) {
  int64_t load[MOST_GROUPS] = {0}, most = 0, number = 0;
  for (int64_t part = 0; part < o->a->batch.all; part += heads) {
    for (int64_t tile = o->row_tiles; tile-- > 0;) {
      int64_t cost = cost_of_rows(o, tile);
      for (int64_t head = 0; head < heads; ++head, ++number) {
        int64_t g = number % o->groups;
        if (back && number / o->groups % 2) g = o->groups - 1 - g;
        load[g] += cost;
        if (load[g] > most) most = load[g];
      }
    }
  }
  return most;
}

void pestle_flash_wgmma_order(pestle_nest_t* nest,
                              const pestle_flash_attention_t* a,
                              pestle_flash_wgmma_how_t* how) {
  pestle_visible_t visible;
  order_t o = {.a = a, .how = how, .visible = &visible};
  o.row_tiles =
      pestle_ceil_div(a->rows.all, PESTLE_FLASH_WGMMA_ROWS * how->consumers);
  int64_t tiles = o.row_tiles * a->batch.all, least = INT64_MAX;
  o.groups = tiles < how->groups ? tiles : how->groups;
  how->heads = 1;
  how->back = false;
  pestle_flash_attention_visible(nest, a, &visible);
  if (!visible.count || tiles > MOST_TILES || o.groups > MOST_GROUPS) return;
  int64_t bytes = 2 * a->keys.all * (a->depth.all + a->v_columns.all);
  for (int64_t heads = 1; heads <= a->batch.all; ++heads) {
    if (a->batch.all % heads) continue;
    for (int back = 0; back < 2; ++back) {
      int64_t cost = longest(&o, heads, back != 0) *
                     (heads * bytes > L2_BYTES ? BEYOND : CACHED);
      if (cost >= least) continue;
      least = cost;
      how->heads = heads;
      how->back = back != 0;
    }
  }
}
