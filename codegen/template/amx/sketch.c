// SPDX-License-Identifier: Apache-2.0
// Products by matrix registers, where the target has them.
#include <inttypes.h>

#include "base/bits.h"
#include "codegen/sketch/choice.h"
#include "codegen/sketch/sketch.h"
#include "codegen/template/amx/amx.h"

enum {
  // Rows or columns of a block that is not cut for more groups' sake.
  LEAST_BLOCK = 128,
};

// Of the L2 a block of columns takes this share at most; where all rows are more
// than half of it, and come from the L3 for each block anew, the larger one
// (1024^3 of bf16: 1.76 ms, 1.53 by the larger; 128 x 3072 x 768: 0.65, 0.89).
static const double BLOCK_OF_L2 = 0.25, LARGE_BLOCK_OF_L2 = 0.5;

// Cycles, measured on Sapphire Rapids: of making the registers ready; of a step of
// a tile by its loads, of a tile's sums, of a row that is copied and of each vector
// of it, of a vector of results, of an element of k of a panel that is packed.
static const double CALL = 400, LOAD = 17, TILE = 60, ROW = 2, MOVE = 2,
                    RESULT = 2, PACK = 6;
// Without the registers: products a cycle, of a vector of results, of an element of k of 32
// columns that is packed.
static const double BYTE_PRODUCTS = 110, BF16_PRODUCTS = 16, VECTOR = 1.5,
                    WORDS = 2.6;

static bool has_unit(const pestle_sketch_t* k, pestle_dtype_t a,
                     pestle_dtype_t b) {
  for (uint32_t i = 0; i < k->caps->intrinsic_count && i < 16; ++i) {
    const pestle_intrinsic_t* x = &k->caps->intrinsic[i];
    if (x->kind == PESTLE_INTRINSIC_MREG && x->a == a && x->b == b) return true;
  }
  return false;
}

static bool has_registers(const pestle_sketch_t* k) {
  return k->caps->op_dtypes[PESTLE_KIR_MREG_MMA] != 0 &&
         k->caps->intrinsic_count > 0;
}

// The dtype that |x| casts, or NONE.
static pestle_dtype_t cast_from(const pestle_expr_t* x) {
  return x->kind == PESTLE_EXPR_CAST ? (pestle_dtype_t)x->args[0]->dtype
                                     : PESTLE_NONE;
}

typedef struct sizes_t {
  int64_t rows, columns, depth, batch;
  bool bytes, constant;  // the columns' operand is
} sizes_t;

static void find_constant(void* user, const pestle_expr_t* x) {
  const pestle_expr_t** read = user;
  *read = x;
}

static bool is_constant(pestle_sketch_t* k, const pestle_expr_t* side) {
  const pestle_expr_t* read = NULL;
  pestle_status_t status =
      pestle_expr_visit_reads(k->nest, side, find_constant, &read);
  if (status) pestle_nest_fail(k->nest, status);
  return read && k->nest->tensors.data[read->i].constant;
}

static double cycles_with(const sizes_t* s) {
  int64_t step = s->bytes ? 64 : 32;
  int64_t down = s->rows > 16 ? 2 : 1, across = s->columns > 16 ? 2 : 1;
  double steps = (double)pestle_ceil_div(s->depth, step);
  double panels = (double)pestle_ceil_div(s->columns, 16 * across);
  double tiles = (double)pestle_ceil_div(s->rows, 16 * down) * panels;
  double loads = (double)(down + across);
  double each = tiles * (steps * loads * LOAD + TILE);
  each += (double)s->rows * (ROW + steps * MOVE);
  each += (double)(s->rows * pestle_ceil_div(s->columns, 16)) * RESULT;
  if (!s->constant) each += panels * steps * (double)step * PACK;
  return CALL + (double)s->batch * each;
}

static double cycles_without(const sizes_t* s) {
  int64_t word = s->bytes ? 4 : 2;
  double vectors = (double)pestle_ceil_div(s->columns, 16);
  double depth = (double)(pestle_ceil_div(s->depth, word) * word);
  double products = (double)s->rows * vectors * 16 * depth;
  double each = products / (s->bytes ? BYTE_PRODUCTS : BF16_PRODUCTS) +
                (double)s->rows * vectors * VECTOR;
  if (!s->constant) each += vectors / 2 * depth * WORDS;
  return (double)s->batch * each;
}

// Whether it is a product of what the registers multiply, and estimated to be worth
// it. What follows inlines what was kept for other schedules.
static bool resembles(pestle_sketch_t* k, uint32_t reduce) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, reduce);
  if (!pestle_sketch_is_product(s) || !s->map_count) return false;
  const pestle_expr_t* const* x = s->values[0]->args;
  if (!has_unit(k, cast_from(x[0]), cast_from(x[1]))) return false;
  if (s->acc_dtype == PESTLE_F32 && !k->reassociate) return false;
  int64_t all[2] = {1, 1};
  sizes_t z = {.batch = 1, .bytes = s->acc_dtype == PESTLE_I32};
  int columns = -1;  // whose operand has the last axis that is longer than 1
  for (uint32_t i = 0; i < s->map_count; ++i) {
    int64_t extent = pestle_sketch_extent(k, s->roots[i]);
    bool a = pestle_expr_depends(k->nest, x[0], s->roots[i]);
    bool b = pestle_expr_depends(k->nest, x[1], s->roots[i]);
    if (extent == 1) continue;
    columns = a == b ? -1 : b;
    *(a == b ? &z.batch : &all[b]) *= extent;
  }
  if (columns < 0) return false;
  z.columns = all[columns];
  z.rows = all[1 - columns];
  z.depth = pestle_sketch_reduction_extent(k, s);
  z.constant = is_constant(k, x[columns]);
  if (k->caps->flags & PESTLE_TARGET_INTERPRETED) return true;
  double with = cycles_with(&z), without = cycles_without(&z);
  if (with < without) return true;
  pestle_sketch_note(k,
                     "not by matrix registers: %.3g cycles, %.3g without them",
                     with, without);
  return false;
}

static int64_t groups(const pestle_amx_t* m, const pestle_amx_how_t* how) {
  return m->p.batch.all * pestle_ceil_div(m->p.m.all, how->rows) *
         pestle_ceil_div(m->p.n.all, how->columns);
}

static int64_t even_block(int64_t all, int64_t most, int64_t tile) {
  int64_t tiles = pestle_ceil_div(all, tile), each = most / tile;
  if (each < 1) each = 1;
  return pestle_ceil_div(tiles, pestle_ceil_div(tiles, each)) * tile;
}

// Columns: as many as the L2 has room for, all rows pass them by. Where that
// makes fewer groups than two a core, first those of fewer columns, which are
// still packed once; then of fewer rows.
static pestle_amx_how_t size_up(const pestle_sketch_t* k,
                                const pestle_amx_t* m) {
  int64_t tap = m->depth * (4 / m->word);
  bool far = m->p.m.all * tap > k->l2 / 2;
  double share = far ? LARGE_BLOCK_OF_L2 : BLOCK_OF_L2;
  int64_t bytes = (int64_t)((double)k->l2 * share);
  if (k->caps->scratch_bytes) {
    bytes = pestle_sketch_min(bytes, k->caps->scratch_bytes / 2);
  }
  int64_t most = bytes / tap;
  pestle_amx_how_t how = {
      .rows = pestle_ceil_div(m->p.m.all, m->tile_rows) * m->tile_rows,
      .columns = even_block(m->p.n.all, most, m->tile_columns)};
  int64_t cores = k->cores, wanted = cores > 1 ? 2 * cores : 1;
  // Rows are copied for each block of columns.
  while (groups(m, &how) < wanted && how.columns >= 2 * LEAST_BLOCK) {
    how.columns = even_block(m->p.n.all, how.columns / 2, m->tile_columns);
  }
  while (groups(m, &how) < wanted && how.rows >= 2 * m->tile_rows &&
         (m->constant || how.rows >= 2 * LEAST_BLOCK)) {
    how.rows = even_block(m->p.m.all, how.rows / 2, m->tile_rows);
  }
  return how;
}

pestle_status_t pestle_amx_sketch(pestle_sketch_t* k,
                                  const pestle_offer_t* offer, bool* out_done) {
  pestle_amx_t m;
  if (!has_registers(k) || k->nest->no_scratch ||
      !resembles(k, offer->reduce)) {
    return pestle_nest_status(k->nest);
  }
  PESTLE_TRY(pestle_sketch_inline_kept(k));
  if (!pestle_amx_find(k->nest, offer->reduce, &m)) {
    return pestle_nest_status(k->nest);
  }
  pestle_amx_how_t how = size_up(k, &m);
  int64_t scratch = k->caps->scratch_bytes;
  if (scratch && pestle_amx_scratch(&m, &how) > scratch) return NULL;
  pestle_sketch_note(k,
                     "amx: matrix registers make groups of %" PRId64
                     " x %" PRId64 " sums, tiles of %" PRId64 " x %" PRId64
                     "; %s, %s",
                     how.rows, how.columns, m.tile_rows, m.tile_columns,
                     m.direct ? "rows are loaded where they lie"
                              : "rows are copied into scratch",
                     m.constant ? "columns were packed with the plan"
                                : "columns are packed in scratch");
  *out_done = true;
  pestle_choose_only(k->nest, "by", offer->row->name);
  return pestle_schedule_template(
      k->nest, &(pestle_nest_template_t){.row = offer->row,
                                         .stage = offer->reduce,
                                         .ints = {how.rows, how.columns}});
}
