// SPDX-License-Identifier: Apache-2.0
// Windows of a plain reduction over planes, such as a pool of channels that lie one behind
// the other. Along the results, taps lie side by side too.
#include "codegen/sketch/sketch.h"

enum {
  // Results from one to the next at most so many elements apart: more are gathered.
  MOST_APART = 4,
  LEAST_WIDTH = 4,  // fewer results side by side are reduced one at a time
};

// Whether taps lie side by side as results do: along a reduction axis that moves within a
// row of results, not past it.
static bool has_inner_taps(pestle_sketch_t* k, const pestle_nest_stage_t* f) {
  int64_t width = pestle_sketch_extent(k, f->roots[f->map_count - 1]);
  for (uint32_t i = f->map_count; i < f->root_count; ++i) {
    if (pestle_sketch_extent(k, f->roots[i]) > 1 &&
        pestle_sketch_pace(k, f, f->roots[i], width - 1).walks) {
      return true;
    }
  }
  return false;
}

bool pestle_sketch_is_window(pestle_sketch_t* k, uint32_t reduce) {
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, reduce);
  if (!f->map_count || f->value_count != 1 || f->combine ||
      pestle_sketch_is_product(f) ||
      pestle_sketch_reduction_extent(k, f) > PESTLE_SKETCH_SLIDING_TAPS ||
      !has_inner_taps(k, f)) {
    return false;
  }
  uint32_t last = f->roots[f->map_count - 1];
  pestle_pace_t p = pestle_sketch_pace(k, f, last, MOST_APART);
  return p.moves && !p.jumps && pestle_sketch_extent(k, last) >= LEAST_WIDTH;
}
