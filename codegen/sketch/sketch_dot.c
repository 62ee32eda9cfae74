// SPDX-License-Identifier: Apache-2.0
// Short dot products for sums of products, where the target has them: which
// reduction axis they go along, and where the sums of columns that bytes of one kind
// on both sides need are made.
#include <inttypes.h>

#include "codegen/sketch/sketch.h"

enum {
  LEAST_ROWS_4 = 2,
  LEAST_ROWS_2 = 8,
};

static bool has_op(const pestle_sketch_t* k, unsigned op, pestle_dtype_t type) {
  return (k->caps->op_dtypes[op] & pestle_dtype_bit((pestle_dtype_t)type)) != 0;
}

static bool target_has(const pestle_sketch_t* k, int64_t width) {
  if (!has_op(k, PESTLE_KIR_LOAD_WORDS, PESTLE_I32)) return false;
  return width == 2 ? has_op(k, PESTLE_KIR_DOT2, PESTLE_F32)
                    : has_op(k, PESTLE_KIR_DOT4, PESTLE_I32);
}

// How the factors of a product are read along the last map axis and a reduction
// axis.
typedef struct factor_t {
  const pestle_sketch_t* k;
  uint32_t last, axis;
  bool moves;       // along the last map axis
  bool contiguous;  // along the reduction axis
  bool argument, constant;
} factor_t;

static void factor_visit(void* user, const pestle_expr_t* e) {
  factor_t* f = user;
  const pestle_nest_tensor_t* t = &f->k->nest->tensors.data[e->i];
  f->argument = t->kind == PESTLE_TENSOR_INPUT;
  f->constant = t->constant;
  for (uint32_t d = 0; d < e->index_count; ++d) {
    bool nested;
    if (pestle_affine_coef(e->index[d], f->last, &nested) || nested) {
      f->moves = true;
    }
    if (d + 1 == e->index_count) {
      f->contiguous =
          pestle_affine_coef(e->index[d], f->axis, &nested) == 1 && !nested;
    }
  }
}

static factor_t factor_of(pestle_sketch_t* k, const pestle_expr_t* e,
                          uint32_t last, uint32_t axis) {
  factor_t f = {.k = k, .last = last, .axis = axis};
  pestle_status_t st = pestle_expr_visit_reads(k->nest, e, factor_visit, &f);
  if (st) pestle_nest_fail(k->nest, st);
  return f;
}

// Whether the elements along |axis| can be words: of the factor that a tile
// broadcasts as they lie, of the other one in a panel, packed or copied.
static bool fits(pestle_sketch_t* k, uint32_t reduce, uint32_t axis) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, reduce);
  uint32_t last = s->roots[s->map_count - 1];
  factor_t x = factor_of(k, s->values[0]->args[0], last, axis);
  factor_t y = factor_of(k, s->values[0]->args[1], last, axis);
  if (x.moves == y.moves) return false;
  const factor_t* row = x.moves ? &y : &x;
  const factor_t* panel = x.moves ? &x : &y;
  if (!row->contiguous || !panel->argument) return false;
  if (panel->constant) return true;
  int64_t most = k->l2 / 2;
  if (k->caps->scratch_bytes) {
    most = pestle_sketch_min(most, k->caps->scratch_bytes / 2);
  }
  int64_t width = pestle_nest_dot_width(k->nest, reduce, axis);
  int64_t extent = pestle_sketch_extent(k, axis);
  int64_t words = pestle_sketch_reduction_extent(k, s) / extent *
                  ((extent + width - 1) / width);
  return !k->nest->no_scratch &&
         words * k->lanes * PESTLE_SKETCH_ELEMENT <= most;
}

// Rows of a product with an argument's panel for which copying it into words is
// worth it. Measured, 2048 x 2048: bytes, 2 rows 151 us for 181; bf16, 2 rows
// 380 for 226, 8 rows 603 for 690.
static int64_t least_rows(int64_t width) {
  return width == 2 ? LEAST_ROWS_2 : LEAST_ROWS_4;
}

static bool has_rows(pestle_sketch_t* k, uint32_t reduce, int64_t width) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, reduce);
  uint32_t last = s->roots[s->map_count - 1];
  for (int side = 0; side < 2; ++side) {
    factor_t f = factor_of(k, s->values[0]->args[side], last, last);
    if (f.moves && f.constant) return true;
  }
  int64_t rows = 1;
  for (uint32_t i = 0; i + 1 < s->map_count; ++i) {
    rows *= pestle_sketch_extent(k, s->roots[i]);
  }
  return rows >= least_rows(width);
}

// Taps of windows that lie behind each other, as those of few features do, are
// one axis.
static pestle_status_t join_axes(pestle_sketch_t* k, uint32_t reduce) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, reduce);
  uint32_t inner = s->roots[s->root_count - 1];
  if (s->root_count < s->map_count + 2) return NULL;
  uint32_t outer = s->roots[s->root_count - 2];
  int64_t width = pestle_nest_dot_width(k->nest, reduce, inner);
  if (!width || !target_has(k, width) || (width == 2 && !k->reassociate) ||
      pestle_sketch_extent(k, inner) % width == 0 || !fits(k, reduce, inner) ||
      !pestle_nest_may_join(k->nest, reduce, outer, inner)) {
    return pestle_nest_status(k->nest);
  }
  return pestle_schedule_join(k->nest, reduce, outer, inner);
}

// The reduction axis along which words are taken, |*out_width| elements each, or -1.
static int32_t choose_axis(pestle_sketch_t* k, uint32_t reduce,
                           int64_t* out_width) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, reduce);
  int32_t best = -1;
  for (uint32_t i = s->map_count; i < s->root_count; ++i) {
    uint32_t axis = s->roots[i];
    int64_t n = pestle_nest_dot_width(k->nest, reduce, axis);
    if (!n || !target_has(k, n) || pestle_sketch_extent(k, axis) < n ||
        (n == 2 && !k->reassociate) || !fits(k, reduce, axis) ||
        !has_rows(k, reduce, n)) {
      continue;
    }
    if (best >= 0 && pestle_sketch_extent(k, axis) <=
                         pestle_sketch_extent(k, (uint32_t)best)) {
      continue;
    }
    best = (int32_t)axis;
    *out_width = n;
  }
  return best;
}

bool pestle_sketch_prefers_dot(pestle_sketch_t* k, uint32_t reduce) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, reduce);
  int64_t width, rows = 1;
  for (uint32_t i = 0; i + 1 < s->map_count; ++i) {
    rows *= pestle_sketch_extent(k, s->roots[i]);
  }
  return pestle_sketch_is_product(s) && s->map_count &&
         choose_axis(k, reduce, &width) >= 0 && rows >= 2 * least_rows(width);
}

pestle_status_t pestle_sketch_dot(pestle_sketch_t* k, uint32_t reduce) {
  PESTLE_TRY(join_axes(k, reduce));
  int64_t width = 0;
  int32_t best = choose_axis(k, reduce, &width);
  if (best < 0) return NULL;
  pestle_sketch_note(k,
                     "%" PRId64
                     " products and their sums a lane are one instruction, "
                     "along '%s'",
                     width, k->nest->axes.data[best].name);
  return pestle_schedule_dot(k->nest, reduce, (uint32_t)best, width,
                             width == 2);
}

bool pestle_sketch_wants_flip(const pestle_nest_stage_t* s) {
  const pestle_expr_t* e = s->values[0];
  return e->kind == PESTLE_EXPR_DOT && e->dtype == PESTLE_I32 &&
         (e->i == 0 || e->i == 3);
}

pestle_status_t pestle_sketch_flip(pestle_sketch_t* k,
                                   pestle_register_tile_t* t,
                                   int32_t* out_sums) {
  uint32_t sums;
  *out_sums = -1;
  if (!pestle_sketch_wants_flip(pestle_sketch_stage(k, t->reduce))) return NULL;
  PESTLE_TRY(pestle_schedule_flip(k->nest, t->reduce, &sums));
  pestle_sketch_note(k,
                     "bytes of one kind on both sides: those that are "
                     "broadcast are moved by 128, and 128 times the sums of "
                     "the others are taken off");
  *out_sums = (int32_t)sums;
  ++t->reduce;
  ++k->anchor;
  return NULL;
}

pestle_status_t pestle_sketch_place_sums(pestle_sketch_t* k, uint32_t sums,
                                         int64_t lanes, uint32_t leaf) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, sums);
  uint32_t order[PESTLE_NEST_MAX_AXES], n = 0, j, v;
  uint32_t last = s->roots[s->map_count - 1];
  PESTLE_TRY(pestle_schedule_split(k->nest, sums, last, lanes, &j, &v));
  s = pestle_sketch_stage(k, sums);
  for (uint32_t i = 0; i < s->root_count; ++i) {
    if (s->roots[i] != last) order[n++] = s->roots[i];
  }
  order[n++] = j;
  order[n++] = v;
  PESTLE_TRY(pestle_schedule_reorder(k->nest, sums, order, n));
  PESTLE_TRY(pestle_schedule_at(k->nest, sums, k->anchor, leaf));
  PESTLE_TRY(pestle_schedule_mark(k->nest, sums, j, PESTLE_MARK_UNROLL));
  PESTLE_TRY(pestle_schedule_mark(k->nest, sums, v, PESTLE_MARK_VECTOR));
  return pestle_schedule_store(k->nest, sums, PESTLE_SCOPE_SHARED);
}
