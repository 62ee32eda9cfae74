// SPDX-License-Identifier: Apache-2.0
// How large a tile of accumulators is. Figures are of the machine of the
// baselines: Zen 4, 32 registers of 16 f32 lanes, 117.7 GFLOP/s.
#include "codegen/sketch.h"

enum {
  // An FMA's result is ready after 4 cycles and one starts every cycle: so many
  // chains at least must be open.
  LATENCY = 4,
  // Accumulators' share of the registers, in quarters. The rest holds a row of
  // the vector operand, a broadcast of the other one, and what the compiler
  // needs: 24 + 4 + 1 of 32, 12 + 2 + 1 of 16. LLVM then spills nothing;
  // with all of them accumulators, products are a third slower (measured).
  ACCUMULATORS_OF_4 = 3,
  // With 32 registers, 6 rows x 4 vectors: the other operand's rows are then 6
  // streams, few enough to be read where they lie. Measured for GEMM 1024: 110
  // GFLOP/s, against 92 for 14 x 2, whose 14 rows 4 KiB apart evict each other
  // (it needs them packed). With 16 registers, 6 x 2 for the same rows.
  WIDE_BUDGET = 24,
  WIDE_VECTORS = 4,
  NARROW_VECTORS = 2,
  // The most rows that were seen to keep the units busy without spills; only
  // tiles of one vector would take more. 6 is no slower on the products above.
  MOST_ROWS = 14,
  // What the code of tails is taken to cost: a rest of columns masks one
  // vector, a rest of rows doubles the kernel's code. Guesses that decide
  // between tiles that are otherwise even; measured: 88 and 100 for both change
  // no product of 7 to 197 rows and 208 to 400 columns by 1.5 %.
  WIDTH_TAIL_PERCENT = 98,
  HEIGHT_TAIL_PERCENT = 96,
  // Fixed point of scores.
  SCORE_ONE = 100000,
};

// The innermost axis but the vector's that has something to walk.
static int32_t row_position(const pestle_sketch_t* k,
                            const pestle_nest_stage_t* s) {
  for (uint32_t i = s->map_count - 1; i-- > 0;) {
    if (pestle_sketch_extent(k, s->roots[i]) > 1) return (int32_t)i;
  }
  return s->map_count > 1 ? (int32_t)s->map_count - 2 : -1;
}

// Useful multiply-adds per issued load, rows*v over rows + v, less what partly
// empty tiles waste and a little for the code that tails need.
static int64_t tile_score(int64_t height, int64_t vectors, int64_t rows,
                          int64_t v) {
  int64_t across = (vectors + v - 1) / v, down = (height + rows - 1) / rows;
  int64_t score = SCORE_ONE * rows * v / (rows + v);
  score = score * vectors / (across * v);
  score = score * height / (down * rows);
  if (vectors % v) score = score * WIDTH_TAIL_PERCENT / 100;
  return height % rows ? score * HEIGHT_TAIL_PERCENT / 100 : score;
}

pestle_tile_t pestle_sketch_size_tile(const pestle_sketch_t* k, int64_t width,
                                      int64_t height) {
  pestle_tile_t t = {.row = -1, .lanes = pestle_sketch_lanes(k, width)};
  int64_t vectors = (width + t.lanes - 1) / t.lanes;
  int64_t budget = k->registers * ACCUMULATORS_OF_4 / 4;
  int64_t widest = budget >= WIDE_BUDGET ? WIDE_VECTORS : NARROW_VECTORS;
  int64_t best = 0;
  for (int64_t v = pestle_sketch_min(vectors, widest); v >= 1; --v) {
    int64_t most = pestle_sketch_min(budget / v, MOST_ROWS);
    for (int64_t r = pestle_sketch_min(height, most); r >= 1; --r) {
      int64_t score = tile_score(height, vectors, r, v);
      if (score <= best) continue;
      best = score;
      t.vectors = v;
      t.rows = r;
    }
  }
  return t;
}

pestle_tile_t pestle_sketch_choose_tile(pestle_sketch_t* k, uint32_t fold,
                                        bool product) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int64_t width = pestle_sketch_extent(k, y->roots[y->map_count - 1]);
  int32_t row = row_position(k, y);
  int64_t height = row >= 0 ? pestle_sketch_extent(k, y->roots[row]) : 1;
  pestle_tile_t t = pestle_sketch_size_tile(k, width, height);
  t.fold = fold;
  t.row = row;
  if (product) return t;
  t.vectors = pestle_sketch_min((width + t.lanes - 1) / t.lanes, LATENCY);
  t.rows = 1;
  return t;
}
