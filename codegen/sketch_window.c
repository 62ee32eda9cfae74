// SPDX-License-Identifier: Apache-2.0
// Windows of a plain fold over planes, as a pool of channels that lie one behind the
// other has them: along the results, too, taps lie side by side.
#include "codegen/sketch.h"

enum {
  // Results from one to the next at most so many elements apart: more are gathered.
  MOST_APART = 4,
  LEAST_WIDTH = 4,  // fewer results side by side are folded one at a time
};

// How all reads of a stage move along an axis.
typedef struct pace_t {
  const pestle_sketch_t* k;
  uint32_t axis;
  bool moves, jumps;
} pace_t;

static void pace_visit(void* user, const pestle_expr_t* e) {
  pace_t* p = user;
  if (p->k->nest->tensors.data[e->i].kind != PESTLE_TENSOR_INPUT) return;
  bool nested;
  int64_t step = pestle_lin_coef(e->index[0], p->axis, &nested);
  p->moves |= step != 0;
  p->jumps |= nested || step < 0 || step > MOST_APART;
}

// A fold axis that moves within a row of results, not past it.
typedef struct inner_t {
  const pestle_sketch_t* k;
  const pestle_nest_stage_t* f;
  bool found;
} inner_t;

static void inner_visit(void* user, const pestle_expr_t* e) {
  inner_t* v = user;
  const pestle_nest_stage_t* f = v->f;
  int64_t width = pestle_sketch_extent(v->k, f->roots[f->map_count - 1]);
  if (v->k->nest->tensors.data[e->i].kind != PESTLE_TENSOR_INPUT) return;
  for (uint32_t i = f->map_count; i < f->root_count; ++i) {
    bool nested;
    int64_t tap = pestle_lin_coef(e->index[0], f->roots[i], &nested);
    v->found |= pestle_sketch_extent(v->k, f->roots[i]) > 1 && !nested &&
                tap > 0 && tap < width;
  }
}

// Whether taps lie side by side as results do.
static bool has_inner_taps(pestle_sketch_t* k, const pestle_nest_stage_t* f) {
  inner_t v = {.k = k, .f = f};
  pestle_status_t status =
      pestle_expr_visit_reads(k->nest, f->values[0], inner_visit, &v);
  if (status) pestle_nest_fail(k->nest, status);
  return v.found;
}

bool pestle_sketch_is_window(pestle_sketch_t* k, uint32_t fold) {
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, fold);
  if (!f->map_count || f->value_count != 1 || f->combine ||
      pestle_sketch_is_product(f) ||
      pestle_sketch_fold_extent(k, f) > PESTLE_SKETCH_SLIDING_TAPS ||
      !has_inner_taps(k, f)) {
    return false;
  }
  pace_t p = {.k = k, .axis = f->roots[f->map_count - 1]};
  pestle_status_t status =
      pestle_expr_visit_reads(k->nest, f->values[0], pace_visit, &p);
  if (status) pestle_nest_fail(k->nest, status);
  return p.moves && !p.jumps && pestle_sketch_extent(k, p.axis) >= LEAST_WIDTH;
}
