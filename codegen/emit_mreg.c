// SPDX-License-Identifier: Apache-2.0
// The whole kernel: groups, tiles of sums in matrix registers, the last stage.
#include "codegen/emit_mreg.h"

#include "base/bits.h"
#include "codegen/schedule.h"

enum {
  SIDE = PESTLE_MREG_SIDE,
  LANES = PESTLE_MREG_LANES,
  // Registers: sums of up to 2 x 2 tiles, then a's, then b's.
  REGISTER_A = 4,
  REGISTER_B = 6,
};

_Static_assert((int)LANES == (int)SIDE, "a vector is a register's row");

pestle_kir_id_t pestle_mx_for(mx_t* t, const char* name, int64_t count) {
  pestle_kir_id_t zero = pestle_kir_index(t->k, 0);
  if (count == 1) return zero;
  return pestle_kir_for(t->k, name, zero, pestle_kir_index(t->k, count), 1,
                        PESTLE_KIR_SERIAL);
}

void pestle_mx_end(mx_t* t, int64_t count) {
  if (count != 1) pestle_kir_end(t->k);
}

pestle_kir_id_t pestle_mx_add(mx_t* t, pestle_kir_id_t a, int64_t b) {
  return pestle_kir_madi(t->k, a, 1, pestle_kir_index(t->k, b));
}

static pestle_kir_id_t least(mx_t* t, pestle_kir_id_t a, int64_t b) {
  return pestle_kir_scalar_i(t->k, PESTLE_OP_MINIMUM, a, b);
}

static pestle_kir_id_t below(mx_t* t, pestle_kir_id_t a, int64_t b) {
  return pestle_kir_scalar_i(t->k, PESTLE_OP_LT, a, b);
}

// --- Coordinates ---

void pestle_mx_fix(mx_t* t, uint32_t axis, pestle_kir_id_t id) {
  t->e->coord[axis] = pestle_lin_axis(t->e->nest, axis);
  t->e->axis_id[axis] = id;
}

void pestle_mx_place(mx_t* t, const pestle_tile_axes_t* axes, bool last,
                     pestle_kir_id_t number) {
  int64_t left = axes->all;
  for (uint32_t i = axes->count; i-- > 0;) {
    int32_t axis = last ? axes->last[i] : (int32_t)axes->fold[i];
    int64_t extent = axes->extent[i];
    pestle_kir_id_t id = extent == 1 ? pestle_kir_index(t->k, 0) : number;
    if (extent > 1 && left > extent) {
      id = pestle_kir_scalar_i(t->k, PESTLE_OP_REMAINDER, number, extent);
      number = pestle_kir_scalar_i(t->k, PESTLE_OP_DIVIDE, number, extent);
    }
    left /= extent;
    if (axis >= 0) pestle_mx_fix(t, (uint32_t)axis, id);
  }
}

void pestle_mx_open(mx_t* t, uint32_t axis, const mx_axis_t* own,
                    pestle_kir_id_t number, int64_t valid) {
  pestle_nest_t* nest = t->e->nest;
  const pestle_lin_t* first =
      pestle_lin_scale(nest, pestle_lin_axis(nest, own->vector), own->lanes);
  t->e->coord[axis] =
      pestle_lin_add(nest, first, pestle_lin_axis(nest, own->lane));
  t->e->axis_id[own->vector] = number;
  pestle_emit_open_vector(t->e, own->lane, own->lanes);
  t->e->valid = valid;
}

static mx_axis_t add_axis(mx_t* t, const char* vector, const char* lane,
                          int64_t extent, int64_t lanes) {
  pestle_nest_t* nest = t->e->nest;
  int32_t stage = (int32_t)t->m.p.fold;
  return (mx_axis_t){pestle_nest_add_axis(nest, vector, stage, false,
                                          pestle_ceil_div(extent, lanes)),
                     pestle_nest_add_axis(nest, lane, stage, false, lanes),
                     lanes};
}

// --- Sums ---

static void load(mx_t* t, uint32_t buffer, pestle_kir_id_t at, int64_t stride,
                 uint32_t number) {
  pestle_kir_act(t->k, PESTLE_KIR_MREG_LOAD, buffer, at, (uint32_t)stride,
                 number);
}

// Where a's rows of a tile are, and b's panel.
typedef struct mx_tile_t {
  uint32_t a, b;  // buffers
  pestle_kir_id_t a_at, b_at;
  int64_t a_stride;
  int64_t down, across;  // registers
} mx_tile_t;

static void multiply(mx_t* t, const mx_tile_t* x) {
  const pestle_mreg_t* m = &t->m;
  pestle_kir_builder_t* k = t->k;
  int64_t across = m->tile_columns / SIDE, size = SIDE * m->step;
  for (int64_t i = 0; i < x->down * 2; ++i) {
    if (i % 2 < x->across)
      pestle_kir_act(k, PESTLE_KIR_MREG_ZERO, (uint32_t)i, 0, 0, 0);
  }
  int64_t steps = m->taps / m->step;
  pestle_kir_id_t s = pestle_mx_for(t, "s", steps);
  for (int64_t i = 0; i < x->down; ++i) {
    pestle_kir_id_t at = pestle_mx_add(t, x->a_at, i * SIDE * x->a_stride);
    load(t, x->a, pestle_kir_madi(k, s, m->step, at), x->a_stride,
         (uint32_t)(REGISTER_A + i));
    for (int64_t j = 0; j < x->across; ++j) {
      if (i == 0) {
        at = pestle_mx_add(t, x->b_at, j * size);
        load(t, x->b, pestle_kir_madi(k, s, across * size, at), m->step,
             (uint32_t)(REGISTER_B + j));
      }
      pestle_kir_act(k, PESTLE_KIR_MREG_MMA, (uint32_t)(2 * i + j),
                     (uint32_t)(REGISTER_A + i), (uint32_t)(REGISTER_B + j),
                     m->kind);
    }
  }
  pestle_mx_end(t, steps);
  for (int64_t i = 0; i < x->down; ++i) {
    for (int64_t j = 0; j < x->across; ++j) {
      int64_t at = i * SIDE * m->tile_columns + j * SIDE;
      pestle_kir_act(k, PESTLE_KIR_MREG_STORE, t->sums, pestle_kir_index(k, at),
                     (uint32_t)m->tile_columns, (uint32_t)(2 * i + j));
    }
  }
}

// --- The last stage ---

static void finish(mx_t* t, pestle_kir_id_t value) {
  pestle_emit_t* e = t->e;
  const pestle_nest_stage_t* f = pestle_nest_stage(e->nest, t->m.p.fold);
  const pestle_nest_stage_t* y = pestle_nest_stage(e->nest, t->m.p.last);
  const pestle_expr_t* read =
      pestle_schedule_find_read(e->nest, t->m.p.last, f->tensors[0]);
  if (!read) return;
  pestle_emit_take(e, read, value);
  for (uint32_t v = 0; v < y->value_count; ++v) {
    pestle_kir_id_t result = pestle_emit_expr(e, y->values[v]);
    pestle_emit_store_stage(e, t->m.p.last, v, result);
  }
}

// Of |count| rows from number |first| on and |columns| columns of |panel|.
static void results(mx_t* t, pestle_kir_id_t first, pestle_kir_id_t count,
                    pestle_kir_id_t panel, int64_t columns) {
  pestle_emit_t* e = t->e;
  pestle_kir_builder_t* k = t->k;
  const pestle_mreg_t* m = &t->m;
  pestle_kir_id_t r = pestle_kir_for(k, "r", pestle_kir_index(k, 0), count, 1,
                                     PESTLE_KIR_SERIAL);
  size_t scope = pestle_emit_scope(e);
  pestle_kir_id_t row = pestle_kir_madi(k, first, 1, r);
  if (m->p.m.all % m->tile_rows) row = least(t, row, m->p.m.all - 1);
  pestle_mx_place(t, &m->p.batch, true, t->batch);
  pestle_mx_place(t, &m->p.m, true, row);
  for (uint32_t i = 0; i < m->p.n.count; ++i) {
    if (m->p.n.last[i] >= 0)
      pestle_mx_fix(t, (uint32_t)m->p.n.last[i], pestle_kir_index(k, 0));
  }
  int64_t vectors = pestle_ceil_div(columns, LANES);
  for (int64_t v = 0; v < vectors; ++v) {
    size_t inner = pestle_emit_scope(e);
    int64_t valid = columns - v * LANES < LANES ? columns - v * LANES : LANES;
    pestle_kir_id_t vector = pestle_kir_madi(k, panel, m->tile_columns / LANES,
                                             pestle_kir_index(k, v));
    pestle_mx_open(t, (uint32_t)m->last_column, &t->results, vector, valid);
    pestle_kir_id_t at =
        pestle_kir_madi(k, r, m->tile_columns, pestle_kir_index(k, v * LANES));
    finish(t, pestle_kir_load(k, t->sums, LANES, at, PESTLE_KIR_NONE, 0));
    pestle_emit_close_vector(e);
    pestle_emit_unscope(e, inner);
  }
  pestle_emit_unscope(e, scope);
  pestle_kir_end(k);
}

// --- Tiles ---

// The rows of a tile from number |row| on, which lie in a, or at |at| in
// scratch.
static void one_tile(mx_t* t, mx_tile_t* x, pestle_kir_id_t row,
                     pestle_kir_id_t count, pestle_kir_id_t panel,
                     int64_t columns) {
  x->down = t->m.tile_rows / SIDE;
  x->across = pestle_ceil_div(columns, SIDE);
  multiply(t, x);
  results(t, row, count, panel, columns);
}

// Tiles of registers that are loaded from a: the last rows of all, fewer than a
// tile's, are copied.
static void direct_tile(mx_t* t, mx_tile_t* x, pestle_kir_id_t row,
                        pestle_kir_id_t panel, int64_t columns) {
  pestle_emit_t* e = t->e;
  pestle_kir_builder_t* k = t->k;
  const pestle_mreg_t* m = &t->m;
  int64_t all = m->p.m.all, rest = all % m->tile_rows;
  bool cut = all % t->how->rows != 0;
  if (cut) {
    pestle_kir_if(k, below(t, row, all - m->tile_rows + 1));
  }
  const pestle_expr_t* a = m->p.a.value;
  pestle_kir_id_t whole = cut ? least(t, row, all - m->tile_rows) : row;
  size_t scope = pestle_emit_scope(e);
  for (uint32_t i = 0; i < m->p.m.count; ++i)
    pestle_mx_fix(t, m->p.m.fold[i], pestle_kir_index(k, 0));
  for (uint32_t i = 0; i < m->p.k.count; ++i)
    pestle_mx_fix(t, m->p.k.fold[i], pestle_kir_index(k, 0));
  pestle_mx_place(t, &m->p.batch, false, t->batch);
  pestle_kir_id_t from =
      pestle_emit_scalar_index(e, pestle_emit_resolve(e, a->index[0]));
  pestle_emit_unscope(e, scope);
  x->a = e->buffer[a->i];
  x->a_at = pestle_kir_madi(k, whole, m->a_stride, from);
  x->a_stride = m->a_stride;
  one_tile(t, x, whole, pestle_kir_index(k, m->tile_rows), panel, columns);
  if (cut && rest) {
    pestle_kir_else(k);
    pestle_kir_id_t last = pestle_kir_index(k, all - rest);
    pestle_kir_id_t count = pestle_kir_index(k, rest);
    pestle_kir_if(k, below(t, row, all));
    pestle_mx_pack_rows(t, last, count);
    x->a = t->rows;
    x->a_at = pestle_kir_index(k, 0);
    x->a_stride = t->pitch;
    one_tile(t, x, last, count, panel, columns);
    pestle_kir_end(k);
  }
  if (cut) pestle_kir_end(k);
}

static void copied_tile(mx_t* t, mx_tile_t* x, pestle_kir_id_t i,
                        pestle_kir_id_t row, pestle_kir_id_t panel,
                        int64_t columns) {
  pestle_kir_builder_t* k = t->k;
  const pestle_mreg_t* m = &t->m;
  int64_t all = m->p.m.all;
  bool cut = all % t->how->rows != 0;
  pestle_kir_id_t count = pestle_kir_index(k, m->tile_rows);
  if (cut) {
    pestle_kir_if(k, below(t, row, all));
    row = least(t, row, (all - 1) / m->tile_rows * m->tile_rows);
    count = least(t, pestle_kir_madi(k, row, -1, pestle_kir_index(k, all)),
                  m->tile_rows);
  }
  x->a = t->rows;
  x->a_at =
      pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, i, m->tile_rows * t->pitch);
  x->a_stride = t->pitch;
  one_tile(t, x, row, count, panel, columns);
  if (cut) pestle_kir_end(k);
}

// All rows of the group with one panel.
static void one_panel(mx_t* t, pestle_kir_id_t panel, int64_t columns) {
  pestle_kir_builder_t* k = t->k;
  const pestle_mreg_t* m = &t->m;
  mx_tile_t x = {.b = t->panel, .b_at = pestle_kir_index(k, 0)};
  if (m->constant) {
    x.b = t->e->buffer[m->p.b.value->i];
    x.b_at = pestle_kir_scalar_i(
        k, PESTLE_OP_MULTIPLY,
        pestle_kir_madi(k, t->batch, pestle_mreg_panels(m), panel),
        pestle_mreg_panel(m));
  } else {
    pestle_mx_pack_panel(t, panel, columns);
  }
  int64_t tiles = t->how->rows / m->tile_rows;
  pestle_kir_id_t i = pestle_mx_for(t, "i", tiles);
  pestle_kir_id_t row = pestle_kir_madi(k, i, m->tile_rows, t->block_row);
  if (m->direct) {
    direct_tile(t, &x, row, panel, columns);
  } else {
    copied_tile(t, &x, i, row, panel, columns);
  }
  pestle_mx_end(t, tiles);
}

// The panels of this group; the last of all may have fewer columns.
static void panels(mx_t* t) {
  pestle_kir_builder_t* k = t->k;
  const pestle_mreg_t* m = &t->m;
  int64_t all = pestle_mreg_panels(m), rest = m->p.n.all % m->tile_columns;
  int64_t whole = m->p.n.all / m->tile_columns;
  int64_t count = t->how->columns / m->tile_columns;
  pestle_kir_id_t panel = pestle_mx_for(t, "panel", count);
  panel = pestle_kir_madi(k, t->block_column, count, panel);
  bool cut = all % count != 0;
  if (cut) {
    pestle_kir_if(k, below(t, panel, all));
    panel = least(t, panel, all - 1);
  }
  bool both = rest && whole;
  if (both) pestle_kir_if(k, below(t, panel, whole));
  if (whole) {
    one_panel(t, both ? least(t, panel, whole - 1) : panel, m->tile_columns);
  }
  if (both) pestle_kir_else(k);
  if (rest) one_panel(t, pestle_kir_index(k, whole), rest);
  if (both) pestle_kir_end(k);
  if (cut) pestle_kir_end(k);
  pestle_mx_end(t, count);
}

// --- Groups ---

static void open_group(mx_t* t) {
  pestle_kir_builder_t* k = t->k;
  const pestle_mreg_t* m = &t->m;
  int64_t down = pestle_ceil_div(m->p.m.all, t->how->rows);
  int64_t across = pestle_ceil_div(m->p.n.all, t->how->columns);
  pestle_kir_id_t g =
      pestle_kir_for(k, "g", pestle_kir_index(k, 0),
                     pestle_kir_index(k, m->p.batch.all * down * across), 1,
                     PESTLE_KIR_GROUP_X);
  // Neighbours have the rows in common.
  t->block_column = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, g, across);
  g = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, g, across);
  t->block_row = pestle_kir_scalar_i(
      k, PESTLE_OP_MULTIPLY,
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, g, down), t->how->rows);
  t->batch = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, g, down);
}

static uint32_t scratch(mx_t* t, const char* name, pestle_dtype_t dtype,
                        int64_t count) {
  return pestle_kir_add_buffer(t->k, name, PESTLE_KIR_SHARED, dtype, 1, count,
                               0);
}

static void add_scratch(mx_t* t) {
  const pestle_mreg_t* m = &t->m;
  bool some = m->p.m.all % m->tile_rows != 0;
  int64_t rows = !m->direct ? t->how->rows : some ? m->tile_rows : 0;
  t->pitch = pestle_mreg_pitch(m);
  // Vectors of a row's end reach into the next one.
  if (rows) t->rows = scratch(t, "rows", t->bits, rows * t->pitch + m->step);
  if (!m->constant) {
    t->panel = scratch(t, "panel", t->bits, pestle_mreg_panel(m));
  }
  t->sums = scratch(t, "sums", m->p.sums, m->tile_rows * m->tile_columns);
}

pestle_status_t pestle_emit_mreg(pestle_emit_t* e) {
  pestle_nest_t* nest = e->nest;
  mx_t t = {.e = e, .k = e->k, .how = &nest->mreg_how};
  if (!pestle_mreg_match(nest, (uint32_t)nest->mreg, &t.m) ||
      !pestle_mreg_fits(&t.m, t.how)) {
    return PESTLE_ERROR(INTERNAL, "kernel '%s': its product is none any more",
                        nest->name);
  }
  const pestle_mreg_t* m = &t.m;
  t.bits = m->word == 2 ? PESTLE_U16 : PESTLE_U8;
  add_scratch(&t);
  t.taps =
      add_axis(&t, "tap_v", "tap_l", m->tap[m->tap_count - 1].extent, m->step);
  t.columns = add_axis(&t, "n_v", "n_l", m->p.n.all, m->tile_columns);
  t.results = add_axis(&t, "y_v", "y_l", m->p.n.all, LANES);
  if (nest->failed) return NULL;
  open_group(&t);
  if (!m->direct) {
    pestle_kir_id_t count = pestle_kir_index(t.k, t.how->rows);
    if (m->p.m.all % t.how->rows) {
      pestle_kir_id_t left = pestle_kir_madi(t.k, t.block_row, -1,
                                             pestle_kir_index(t.k, m->p.m.all));
      count = least(&t, left, t.how->rows);
    }
    pestle_mx_pack_rows(&t, t.block_row, count);
  }
  panels(&t);
  pestle_kir_end(e->k);
  return NULL;
}
