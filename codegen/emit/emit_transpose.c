// SPDX-License-Identifier: Apache-2.0
// Copies that are transposed in registers. As many vectors as a vector has lanes are read
// along the axis where the source is contiguous; log2(n) rounds of n shuffles turn them
// into vectors along the copy's last axis. That replaces n gathers.
#include "codegen/emit/emit_internal.h"
#include "pestle/kir.h"

typedef struct transpose_t {
  pestle_kir_id_t rows[PESTLE_KIR_MAX_LANES];
  uint32_t row;  // the one that is read
  unsigned lanes;
} transpose_t;

static void read_row(pestle_emit_t* e, uint32_t stage, void* user) {
  transpose_t* t = user;
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  pestle_kir_id_t id = pestle_emit_expr(e, s->values[0]);
  if (pestle_kir_lanes_of(e->k, id) != t->lanes) {
    id = pestle_kir_splat(e->k, id, t->lanes);
  }
  t->rows[t->row] = id;
}

// Swaps, of each two rows |step| apart, the blocks of |step| lanes beside the
// diagonal.
static void turn_round(pestle_emit_t* e, transpose_t* t, uint32_t step) {
  uint32_t low[PESTLE_KIR_MAX_LANES], high[PESTLE_KIR_MAX_LANES];
  for (uint32_t lane = 0; lane < t->lanes; ++lane) {
    bool right = (lane & step) != 0;
    low[lane] = right ? t->lanes + lane - step : lane;
    high[lane] = right ? t->lanes + lane : lane + step;
  }
  for (uint32_t i = 0; i < t->lanes; ++i) {
    if (i & step) continue;
    pestle_kir_id_t a = t->rows[i], b = t->rows[i + step];
    t->rows[i] = pestle_kir_shuffle(e->k, a, b, low, t->lanes);
    t->rows[i + step] = pestle_kir_shuffle(e->k, a, b, high, t->lanes);
  }
}

static void turn_tile(pestle_emit_t* e, uint32_t stage, void* user) {
  (void)user;
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  uint32_t row = s->order[s->order_count - 2];
  uint32_t lane = s->order[s->order_count - 1];
  const pestle_nest_axis_t* axes = e->nest->axes.data;
  transpose_t t = {.lanes = (unsigned)axes[lane].full_extent};
  int64_t rows = axes[row].extent;
  for (t.row = 0; t.row < t.lanes && !e->nest->failed; ++t.row) {
    if (t.row >= rows) {  // beyond the tile: read by nobody
      t.rows[t.row] = t.rows[0];
      continue;
    }
    e->open[row] = true;
    e->value[row] = pestle_affine_const(e->nest, t.row);
    pestle_emit_walk_t w = {e, stage, read_row, &t, false};
    pestle_emit_walk(&w, &lane, 1);
    e->open[row] = false;
  }
  if (e->nest->failed) return;
  for (uint32_t step = 1; step < t.lanes; step *= 2)
    turn_round(e, &t, step);
  // Row i of the result begins where lane i of the first row was read.
  e->open[row] = e->open[lane] = true;
  e->value[row] = pestle_affine_const(e->nest, 0);
  for (uint32_t i = 0; i < t.lanes && i < (uint64_t)axes[lane].extent; ++i) {
    e->value[lane] = pestle_affine_const(e->nest, i);
    pestle_emit_coords(e, stage);
    pestle_emit_store_stage(e, stage, 0, t.rows[i]);
  }
  e->open[row] = e->open[lane] = false;
}

void pestle_emit_transpose_in_registers(pestle_emit_t* e, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  pestle_emit_coords(e, stage);
  pestle_emit_walk_t w = {e, stage, turn_tile, NULL, false};
  pestle_emit_walk(&w, s->order, s->order_count - 2);
}
