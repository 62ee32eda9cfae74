// SPDX-License-Identifier: Apache-2.0
// The whole kernel: groups, tiles of sums in matrix registers, the last stage.
#include "codegen/template/amx/emit.h"

#include "base/bits.h"
#include "codegen/schedule/schedule.h"

enum {
  SIDE = PESTLE_AMX_SIDE,
  LANES = PESTLE_AMX_LANES,
  // Registers: sums of up to 2 x 2 tiles, then a's, then b's.
  REGISTER_A = 4,
  REGISTER_B = 6,
  // Lines of results that are asked for a step: more get in the loads' way (bytes
  // of 512^3, 8 lines: 87 us, 85 without).
  MOST_CLAIMED = 4,
  // Steps of tiles whose results the next tile stores, and whose rows the one before
  // asks for (of 32 x 32 sums just so many: fewer have too many lines each). In longer
  // ones both take more than what is waited for: 512^3 of bf16 191 -> 184 and 180 us,
  // 1024^3 of bytes 795 -> 718 and 703; 24 steps, 768^3 of bf16, 650 -> 690 and 660; 32
  // steps, 1024^3 of bf16 with two threads, 1 and 3 % more.
  MOST_STEPS = 16,
};

_Static_assert((int)LANES == (int)SIDE, "a vector is a register's row");

pestle_kir_id_t pestle_amx_emit_add(amx_t* t, pestle_kir_id_t a, int64_t b) {
  return pestle_kir_madi(t->k, a, 1, pestle_kir_index(t->k, b));
}

static pestle_kir_id_t least(amx_t* t, pestle_kir_id_t a, int64_t b) {
  return pestle_kir_scalar_i(t->k, PESTLE_OP_MINIMUM, a, b);
}

static pestle_kir_id_t below(amx_t* t, pestle_kir_id_t a, int64_t b) {
  return pestle_kir_scalar_i(t->k, PESTLE_OP_LT, a, b);
}

// --- Coordinates ---

void pestle_amx_emit_fix(amx_t* t, uint32_t axis, pestle_kir_id_t id) {
  t->e->coord[axis] = pestle_affine_axis(t->e->nest, axis);
  t->e->axis_id[axis] = id;
}

void pestle_amx_emit_place(amx_t* t, const pestle_product_axes_t* axes,
                           bool last, pestle_kir_id_t number) {
  int64_t left = axes->all;
  for (uint32_t i = axes->count; i-- > 0;) {
    int32_t axis = last ? axes->last[i] : (int32_t)axes->reduce[i];
    int64_t extent = axes->extent[i];
    pestle_kir_id_t id = extent == 1 ? pestle_kir_index(t->k, 0) : number;
    if (extent > 1 && left > extent) {
      id = pestle_kir_scalar_i(t->k, PESTLE_OP_REMAINDER, number, extent);
      number = pestle_kir_scalar_i(t->k, PESTLE_OP_DIVIDE, number, extent);
    }
    left /= extent;
    if (axis >= 0) pestle_amx_emit_fix(t, (uint32_t)axis, id);
  }
}

void pestle_amx_emit_open(amx_t* t, uint32_t axis, const amx_axis_t* own,
                          pestle_kir_id_t number, int64_t valid) {
  pestle_nest_t* nest = t->e->nest;
  const pestle_affine_t* first = pestle_affine_scale(
      nest, pestle_affine_axis(nest, own->vector), own->lanes);
  t->e->coord[axis] =
      pestle_affine_add(nest, first, pestle_affine_axis(nest, own->lane));
  t->e->axis_id[own->vector] = number;
  pestle_emit_open_vector(t->e, own->lane, own->lanes);
  t->e->valid = valid;
}

static amx_axis_t add_axis(amx_t* t, const char* vector, const char* lane,
                           int64_t extent, int64_t lanes) {
  pestle_nest_t* nest = t->e->nest;
  int32_t stage = (int32_t)t->m.p.reduce;
  return (amx_axis_t){pestle_nest_add_axis(nest, vector, stage, false,
                                           pestle_ceil_div(extent, lanes)),
                      pestle_nest_add_axis(nest, lane, stage, false, lanes),
                      lanes};
}

// --- Sums ---

static int64_t lines_of_tile(const amx_t* t) {
  return t->m.tile_rows * (t->m.tile_columns / SIDE);
}

// Where a's rows of a tile are, and b's panel.
typedef struct amx_tile_t {
  uint32_t a, b;  // buffers
  pestle_kir_id_t a_at, b_at;
  int64_t a_stride;
  int64_t down, across;  // registers
  uint32_t sums;         // where they go
  pestle_kir_id_t sums_at;
  int64_t sums_stride;
  pestle_kir_id_t before, before_at;  // the tile before's, and their place
  int64_t fetched;  // rows of the next tile of which each step asks for a line
  pestle_kir_id_t fetch;  // the first of them
} amx_tile_t;

// Step |s|'s part of the lines of results that the tile will store: when they
// are, they are at hand.
static void claim(amx_t* t, const amx_tile_t* x, pestle_kir_id_t s,
                  int64_t steps) {
  pestle_kir_builder_t* k = t->k;
  int64_t lines = x->down * SIDE * x->across;
  int64_t share = pestle_ceil_div(lines, steps);
  if (x->sums == t->sums || share > MOST_CLAIMED) return;
  pestle_kir_id_t line = pestle_kir_unroll(k, "line", share);
  line = pestle_kir_madi(k, s, share, line);
  if (share * steps > lines) line = least(t, line, lines - 1);
  pestle_kir_id_t row =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, line, x->across);
  pestle_kir_id_t at =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, line, x->across);
  at = pestle_kir_madi(k, at, SIDE, x->sums_at);
  at = pestle_kir_madi(k, row, x->sums_stride, at);
  pestle_kir_act(k, PESTLE_KIR_PREFETCH, x->sums, at, 0, 0);
  pestle_kir_end(k);
}

// Line |line| of a tile's sums, that are |from| in scratch on, to the result, where the
// tile's place is |to|.
static void put_line(amx_t* t, pestle_kir_id_t from, pestle_kir_id_t to,
                     pestle_kir_id_t line) {
  pestle_kir_builder_t* k = t->k;
  const pestle_amx_t* m = &t->m;
  int64_t across = m->tile_columns / SIDE;
  const pestle_nest_stage_t* y = pestle_nest_stage(t->e->nest, m->p.last);
  pestle_kir_id_t row = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, line, across);
  pestle_kir_id_t part =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, line, across);
  from = pestle_kir_madi(k, line, SIDE, from);
  to = pestle_kir_madi(k, part, SIDE, to);
  to = pestle_kir_madi(k, row, t->result_stride, to);
  pestle_kir_id_t sums =
      pestle_kir_load(k, t->sums, LANES, from, PESTLE_KIR_NONE, 0);
  pestle_kir_store(k, pestle_emit_buffer(t->e, y->tensors[0]), to, sums,
                   PESTLE_KIR_NONE, 0);
}

// Step |s|'s part of the tile before: while its lines come, this one multiplies.
static void put_behind(amx_t* t, const amx_tile_t* x, pestle_kir_id_t s) {
  pestle_kir_id_t line = pestle_kir_unroll(t->k, "line", t->behind);
  line = pestle_kir_madi(t->k, s, t->behind, line);
  put_line(t, x->before, x->before_at, line);
  pestle_kir_end(t->k);
}

// A tile's rows of a stay in the L1 while all panels pass them by. Each panel, of
// eight and more of a block, asks for some rows of the next tile where steps are few:
// the hardware fetches nothing of rows apart by itself. Panels are not asked for: that
// takes more than waiting (1024^3 on a quiet core, bytes 917 us against 760, bf16 1.75
// ms against 1.60).
static void fetch_rows(amx_t* t, const amx_tile_t* x, pestle_kir_id_t s) {
  pestle_kir_builder_t* k = t->k;
  if (!x->fetched) return;
  pestle_kir_id_t row = pestle_kir_unroll(k, "row", x->fetched);
  row = pestle_kir_madi(k, row, 1, x->fetch);
  row = least(t, row, t->m.tile_rows - 1);
  pestle_kir_id_t at =
      pestle_amx_emit_add(t, x->a_at, t->m.tile_rows * x->a_stride);
  at = pestle_kir_madi(k, row, x->a_stride, at);
  at = pestle_kir_madi(k, s, t->m.step, at);
  pestle_kir_act(k, PESTLE_KIR_PREFETCH, x->a, at, 0, 0);
  pestle_kir_end(k);
}

static void step(amx_t* t, const amx_tile_t* x, pestle_kir_id_t s) {
  const pestle_amx_t* m = &t->m;
  pestle_kir_builder_t* k = t->k;
  int64_t across = m->tile_columns / SIDE, size = SIDE * m->step;
  fetch_rows(t, x, s);
  for (int64_t i = 0; i < x->down; ++i) {
    pestle_kir_id_t at =
        pestle_amx_emit_add(t, x->a_at, i * SIDE * x->a_stride);
    at = pestle_kir_madi(k, s, m->step, at);
    pestle_kir_act(k, PESTLE_KIR_MREG_LOAD, x->a, at, (uint32_t)x->a_stride,
                   (uint32_t)(REGISTER_A + i));
    for (int64_t j = 0; j < x->across; ++j) {
      if (i == 0) {
        at = pestle_amx_emit_add(t, x->b_at, j * size);
        at = pestle_kir_madi(k, s, across * size, at);
        pestle_kir_act(k, PESTLE_KIR_MREG_STREAM, x->b, at, (uint32_t)m->step,
                       (uint32_t)(REGISTER_B + j));
      }
      pestle_kir_act(k, PESTLE_KIR_MREG_MMA, (uint32_t)(2 * i + j),
                     (uint32_t)(REGISTER_A + i), (uint32_t)(REGISTER_B + j),
                     m->kind);
    }
  }
}

static void multiply(amx_t* t, const amx_tile_t* x) {
  const pestle_amx_t* m = &t->m;
  pestle_kir_builder_t* k = t->k;
  for (int64_t i = 0; i < x->down * 2; ++i) {
    if (i % 2 < x->across)
      pestle_kir_act(k, PESTLE_KIR_MREG_ZERO, (uint32_t)i, 0, 0, 0);
  }
  int64_t steps = m->depth / m->step;
  int64_t busy = t->behind ? lines_of_tile(t) / t->behind : 0;
  if (busy) {
    pestle_kir_id_t s = pestle_kir_repeat(k, "s", busy);
    put_behind(t, x, s);
    step(t, x, s);
    pestle_kir_end_repeat(k, busy);
  }
  if (steps > busy) {
    pestle_kir_id_t s = pestle_kir_repeat(k, "s", steps - busy);
    s = pestle_amx_emit_add(t, s, busy);
    if (!busy) claim(t, x, s, steps);
    step(t, x, s);
    pestle_kir_end_repeat(k, steps - busy);
  }
  for (int64_t i = 0; i < x->down; ++i) {
    for (int64_t j = 0; j < x->across; ++j) {
      pestle_kir_id_t at = pestle_amx_emit_add(
          t, x->sums_at, i * SIDE * x->sums_stride + j * SIDE);
      pestle_kir_act(k, PESTLE_KIR_MREG_STORE, x->sums, at,
                     (uint32_t)x->sums_stride, (uint32_t)(2 * i + j));
    }
  }
}

// --- The last stage ---

static const pestle_expr_t* read_of_sums(amx_t* t) {
  const pestle_nest_stage_t* f = pestle_nest_stage(t->e->nest, t->m.p.reduce);
  return pestle_schedule_find_read(t->e->nest, t->m.p.last, f->tensors[0]);
}

// All values first: results may overwrite arguments that others read.
static void finish(amx_t* t, pestle_kir_id_t value) {
  pestle_emit_t* e = t->e;
  const pestle_nest_stage_t* y = pestle_nest_stage(e->nest, t->m.p.last);
  const pestle_expr_t* read = read_of_sums(t);
  pestle_kir_id_t ids[PESTLE_MAX_RANK];
  if (!read) return;
  pestle_emit_take(e, read, value);
  for (uint32_t first = 0; first < y->value_count; first += PESTLE_MAX_RANK) {
    uint32_t left = y->value_count - first;
    uint32_t count = left < PESTLE_MAX_RANK ? left : PESTLE_MAX_RANK;
    for (uint32_t v = 0; v < count; ++v)
      ids[v] = pestle_emit_expr(e, y->values[first + v]);
    for (uint32_t v = 0; v < count; ++v)
      pestle_emit_store_stage(e, t->m.p.last, first + v, ids[v]);
  }
}

// Whether the sums are the result, and registers can be stored into it: its rows
// |result_stride| elements apart.
static void look_at_result(amx_t* t) {
  const pestle_nest_t* nest = t->e->nest;
  const pestle_nest_stage_t* y = pestle_nest_stage(t->e->nest, t->m.p.last);
  const pestle_nest_tensor_t* z = &nest->tensors.data[y->tensors[0]];
  bool nested;
  if (y->value_count != 1 || y->values[0] != read_of_sums(t) ||
      !y->write_index[0] || z->kind != PESTLE_TENSOR_OUTPUT || z->streamed ||
      z->type.dtype != t->m.p.sums) {
    return;
  }
  const pestle_affine_t* at = y->write_index[0][0];
  const pestle_product_axes_t* rows = &t->m.p.m;
  int64_t next = 0, stride = 0;
  for (uint32_t i = rows->count; i-- > 0;) {
    if (rows->extent[i] == 1) continue;
    int64_t step = pestle_affine_coef(at, (uint32_t)rows->last[i], &nested);
    if (nested || (next && step != next)) return;
    if (!stride) stride = step;
    next = step * rows->extent[i];
  }
  int64_t column = pestle_affine_coef(at, (uint32_t)t->m.last_column, &nested);
  if (column != 1 || nested || stride < LANES || stride > INT32_MAX / 64) {
    return;
  }
  t->result_stride = stride;
}

// Of whole tiles whose steps are few: registers that are stored into the result wait
// for its lines, which come from the L3 where all does not fit the L2.
static void look_at_steps(amx_t* t) {
  const pestle_amx_t* m = &t->m;
  int64_t steps = m->depth / m->step;
  if (!t->result_stride || m->p.m.all % t->how->rows ||
      m->p.n.all % t->how->columns || steps > MOST_STEPS) {
    return;
  }
  for (int64_t share = 1; share <= MOST_CLAIMED && !t->behind; share *= 2) {
    if (lines_of_tile(t) <= share * steps) t->behind = share;
  }
}

// Element of the result at |row| and the first column of |panel|.
static pestle_kir_id_t place_in_result(amx_t* t, pestle_kir_id_t row,
                                       pestle_kir_id_t panel) {
  pestle_emit_t* e = t->e;
  const pestle_amx_t* m = &t->m;
  const pestle_nest_stage_t* y = pestle_nest_stage(e->nest, m->p.last);
  pestle_kir_id_t zero = pestle_kir_index(t->k, 0);
  pestle_amx_emit_place(t, &m->p.batch, true, t->batch);
  pestle_amx_emit_place(t, &m->p.m, true, zero);
  pestle_amx_emit_place(t, &m->p.n, true, zero);
  pestle_kir_id_t at =
      pestle_emit_scalar_index(e, pestle_emit_resolve(e, y->write_index[0][0]));
  at = pestle_kir_madi(t->k, row, t->result_stride, at);
  return pestle_kir_madi(t->k, panel, m->tile_columns, at);
}

// Of |count| rows from number |first| on and |columns| columns of |panel|.
static void results(amx_t* t, pestle_kir_id_t first, pestle_kir_id_t count,
                    pestle_kir_id_t panel, int64_t columns) {
  pestle_emit_t* e = t->e;
  pestle_kir_builder_t* k = t->k;
  const pestle_amx_t* m = &t->m;
  pestle_kir_id_t r = pestle_kir_for(k, "r", pestle_kir_index(k, 0), count, 1,
                                     PESTLE_KIR_SERIAL);
  size_t scope = pestle_emit_scope(e);
  pestle_kir_id_t row = pestle_kir_madi(k, first, 1, r);
  if (m->p.m.all % m->tile_rows) row = least(t, row, m->p.m.all - 1);
  pestle_amx_emit_place(t, &m->p.batch, true, t->batch);
  pestle_amx_emit_place(t, &m->p.m, true, row);
  pestle_amx_emit_place(t, &m->p.n, true, pestle_kir_index(k, 0));
  int64_t vectors = pestle_ceil_div(columns, LANES);
  for (int64_t v = 0; v < vectors; ++v) {
    size_t inner = pestle_emit_scope(e);
    int64_t valid = columns - v * LANES < LANES ? columns - v * LANES : LANES;
    pestle_kir_id_t vector = pestle_kir_madi(k, panel, m->tile_columns / LANES,
                                             pestle_kir_index(k, v));
    pestle_amx_emit_open(t, (uint32_t)m->last_column, &t->results, vector,
                         valid);
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

// Rows of a tile: the first, how many, and where registers are loaded from.
typedef struct mx_rows_t {
  pestle_kir_id_t first, count;
  bool whole;  // a tile's
  uint32_t buffer;
  pestle_kir_id_t at;
  int64_t stride;
} mx_rows_t;

// The sums of the group's tile |number| in scratch, which two take turns in, and
// where they go.
static pestle_kir_id_t own_sums(amx_t* t, pestle_kir_id_t number) {
  pestle_kir_id_t turn =
      pestle_kir_scalar_i(t->k, PESTLE_OP_REMAINDER, number, 2);
  return pestle_kir_scalar_i(t->k, PESTLE_OP_MULTIPLY, turn,
                             t->m.tile_rows * t->m.tile_columns);
}

static pestle_kir_id_t own_place(amx_t* t, pestle_kir_id_t number) {
  pestle_kir_builder_t* k = t->k;
  int64_t count = t->how->columns / t->m.tile_columns;
  pestle_kir_id_t row = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, number, count);
  pestle_kir_id_t panel =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, number, count);
  row = pestle_kir_madi(k, row, t->m.tile_rows, t->block_row);
  panel = pestle_kir_madi(k, t->block_column, count, panel);
  return place_in_result(t, row, panel);
}

// The first tile, which has none before, stores what scratch holds in its own place:
// the next one, or put_last(), writes its sums over that.
static void look_behind(amx_t* t, pestle_kir_id_t number, amx_tile_t* x) {
  pestle_kir_builder_t* k = t->k;
  int64_t count = t->how->columns / t->m.tile_columns;
  pestle_kir_id_t tile = pestle_kir_madi(k, t->row_of_tiles, count, number);
  pestle_kir_id_t before = pestle_kir_scalar_i(
      k, PESTLE_OP_MAXIMUM, pestle_amx_emit_add(t, tile, -1), 0);
  x->sums_at = own_sums(t, tile);
  x->before = own_sums(t, pestle_amx_emit_add(t, tile, 1));
  x->before_at = own_place(t, before);
}

// The last of the group's |tiles| tiles of rows, PESTLE_KIR_NONE for |most|.
static void put_last(amx_t* t, pestle_kir_id_t tiles, int64_t most) {
  pestle_kir_builder_t* k = t->k;
  const pestle_amx_t* m = &t->m;
  int64_t count = t->how->columns / m->tile_columns;
  int64_t lines = lines_of_tile(t);
  pestle_kir_id_t last =
      tiles == PESTLE_KIR_NONE
          ? pestle_kir_index(k, most * count - 1)
          : pestle_kir_madi(k, tiles, count, pestle_kir_index(k, -1));
  pestle_kir_id_t from = own_sums(t, last), to = own_place(t, last);
  put_line(t, from, to, pestle_kir_repeat(k, "line", lines));
  pestle_kir_end_repeat(k, lines);
}

// Rows of the next tile that panel |number| asks for.
static void look_ahead(amx_t* t, pestle_kir_id_t number, amx_tile_t* x) {
  const pestle_amx_t* m = &t->m;
  int64_t share =
      pestle_ceil_div(m->tile_rows, t->how->columns / m->tile_columns);
  if (!m->direct || t->how->rows == m->tile_rows || share > MOST_CLAIMED) {
    return;
  }
  x->fetched = share;
  x->fetch = pestle_kir_scalar_i(t->k, PESTLE_OP_MULTIPLY, number, share);
}

// One tile with panel |number| of the block, |panel| of all.
static void one_tile(amx_t* t, const void* user, pestle_kir_id_t number,
                     pestle_kir_id_t panel, int64_t columns) {
  const mx_rows_t* rows = user;
  pestle_kir_builder_t* k = t->k;
  const pestle_amx_t* m = &t->m;
  pestle_kir_id_t in_group = number;
  amx_tile_t x = {.a = rows->buffer,
                  .b = t->panel,
                  .a_at = rows->at,
                  .a_stride = rows->stride,
                  .down = m->tile_rows / SIDE,
                  .across = pestle_ceil_div(columns, SIDE)};
  if (m->constant) {
    x.b = t->e->buffer[m->p.b.value->i];
    number = pestle_kir_madi(k, t->batch, pestle_amx_panels(m), panel);
  }
  x.b_at =
      pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, number, pestle_amx_panel(m));
  bool direct = t->result_stride && rows->whole && columns == m->tile_columns;
  x.sums = t->sums;
  x.sums_at = pestle_kir_index(k, 0);
  x.sums_stride = m->tile_columns;
  if (t->behind) {
    look_behind(t, in_group, &x);
    look_ahead(t, in_group, &x);
  } else if (direct) {
    const pestle_nest_stage_t* y = pestle_nest_stage(t->e->nest, m->p.last);
    x.sums = pestle_emit_buffer(t->e, y->tensors[0]);
    x.sums_at = place_in_result(t, rows->first, panel);
    x.sums_stride = t->result_stride;
  }
  multiply(t, &x);
  if (!direct) results(t, rows->first, rows->count, panel, columns);
}

void pestle_amx_emit_panels(amx_t* t, amx_each_t each, const void* user) {
  pestle_kir_builder_t* k = t->k;
  const pestle_amx_t* m = &t->m;
  int64_t all = pestle_amx_panels(m), rest = m->p.n.all % m->tile_columns;
  int64_t whole = m->p.n.all / m->tile_columns;
  int64_t count = t->how->columns / m->tile_columns;
  pestle_kir_id_t number = pestle_kir_repeat(t->k, "panel", count);
  pestle_kir_id_t panel = pestle_kir_madi(k, t->block_column, count, number);
  bool cut = all % count != 0;
  if (cut) {
    pestle_kir_if(k, below(t, panel, all));
    panel = least(t, panel, all - 1);
  }
  bool both = rest && whole;
  if (both) pestle_kir_if(k, below(t, panel, whole));
  if (whole) {
    each(t, user, number, both ? least(t, panel, whole - 1) : panel,
         m->tile_columns);
  }
  if (both) pestle_kir_else(k);
  if (rest) each(t, user, number, pestle_kir_index(k, whole), rest);
  if (both) pestle_kir_end(k);
  if (cut) pestle_kir_end(k);
  pestle_kir_end_repeat(t->k, count);
}

// Element of a at which row 0 of the batch begins.
static pestle_kir_id_t start_of_rows(amx_t* t) {
  pestle_emit_t* e = t->e;
  const pestle_amx_t* m = &t->m;
  size_t scope = pestle_emit_scope(e);
  for (uint32_t i = 0; i < m->p.m.count; ++i)
    pestle_amx_emit_fix(t, m->p.m.reduce[i], pestle_kir_index(t->k, 0));
  for (uint32_t i = 0; i < m->p.k.count; ++i)
    pestle_amx_emit_fix(t, m->p.k.reduce[i], pestle_kir_index(t->k, 0));
  pestle_amx_emit_place(t, &m->p.batch, false, t->batch);
  const pestle_expr_t* a = m->p.a.value;
  pestle_kir_id_t from =
      pestle_emit_scalar_index(e, pestle_emit_resolve(e, a->index[0]));
  pestle_emit_unscope(e, scope);
  return from;
}

// |count| rows from |first| on, a constant number or up to a tile's, copied.
static void copied_rows(amx_t* t, pestle_kir_id_t first, pestle_kir_id_t count,
                        bool whole) {
  mx_rows_t rows = {first,   count, whole, t->rows, pestle_kir_index(t->k, 0),
                    t->pitch};
  pestle_amx_emit_pack_rows(t, first, count);
  pestle_amx_emit_panels(t, one_tile, &rows);
}

// A tile of rows from |row| on; of the last of all there may be fewer, which are
// copied even where whole tiles are loaded from a.
static void tile_of_rows(amx_t* t, pestle_kir_id_t row) {
  pestle_kir_builder_t* k = t->k;
  const pestle_amx_t* m = &t->m;
  int64_t all = m->p.m.all, side = m->tile_rows, whole = all / side * side;
  bool cut = all % t->how->rows != 0;
  if (cut && whole) pestle_kir_if(k, below(t, row, whole));
  if (whole) {
    mx_rows_t rows = {cut ? least(t, row, whole - side) : row,
                      pestle_kir_index(k, side),
                      true,
                      0,
                      0,
                      m->a_stride};
    if (m->direct) {
      rows.buffer = t->e->buffer[m->p.a.value->i];
      rows.at = pestle_kir_madi(k, rows.first, m->a_stride, start_of_rows(t));
      pestle_amx_emit_panels(t, one_tile, &rows);
    } else {
      copied_rows(t, rows.first, rows.count, true);
    }
  }
  if (all > whole) {
    if (whole) pestle_kir_else(k);
    pestle_kir_if(k, below(t, row, all));
    copied_rows(t, pestle_kir_index(k, whole), pestle_kir_index(k, all - whole),
                false);
    pestle_kir_end(k);
  }
  if (cut && whole) pestle_kir_end(k);
}

// --- Groups ---

static void open_group(amx_t* t) {
  pestle_kir_builder_t* k = t->k;
  const pestle_amx_t* m = &t->m;
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

static uint32_t scratch(amx_t* t, const char* name, pestle_dtype_t dtype,
                        int64_t count) {
  return pestle_kir_add_buffer(t->k, name, PESTLE_KIR_SHARED, dtype, 1, count,
                               0);
}

static void add_scratch(amx_t* t) {
  const pestle_amx_t* m = &t->m;
  bool some = m->p.m.all % m->tile_rows != 0;
  int64_t rows = !m->direct || some ? m->tile_rows : 0;
  t->pitch = pestle_amx_pitch(m);
  // Vectors of a row's end reach into the next one.
  if (rows) t->rows = scratch(t, "rows", t->bits, rows * t->pitch + m->step);
  if (!m->constant) {
    t->panel = scratch(t, "panel", t->bits, t->how->columns * m->depth);
  }
  int64_t sums = m->tile_rows * m->tile_columns;
  t->sums = scratch(t, "sums", m->p.sums, t->behind ? 2 * sums : sums);
}

// How many tiles of rows the group makes where these end: at least one, as it begins
// before their end, and at most |most|. PESTLE_KIR_NONE: all.
static pestle_kir_id_t count_tiles(amx_t* t, int64_t most) {
  const pestle_product_axes_t* rows = &t->m.p.m;
  pestle_kir_id_t tiles = PESTLE_KIR_NONE;
  if (most > 1) {
    tiles =
        pestle_emit_places_to_end(t->e, rows->last, rows->extent, rows->count,
                                  t->block_row, t->m.tile_rows, most);
  }
  return tiles == PESTLE_KIR_NONE ? tiles
                                  : pestle_emit_clamp(t->e, tiles, 1, most);
}

pestle_status_t pestle_amx_emit(pestle_emit_t* e) {
  pestle_nest_t* nest = e->nest;
  pestle_amx_how_t how = pestle_amx_of(&nest->template);
  amx_t t = {.e = e, .k = e->k, .how = &how};
  if (!pestle_amx_find(nest, nest->template.stage, &t.m) ||
      !pestle_amx_fits(&t.m, t.how)) {
    return PESTLE_ERROR(INTERNAL, "kernel '%s': its product is none any more",
                        nest->name);
  }
  const pestle_amx_t* m = &t.m;
  t.bits = m->word == 2 ? PESTLE_U16 : PESTLE_U8;
  look_at_result(&t);
  look_at_steps(&t);
  add_scratch(&t);
  t.depth =
      add_axis(&t, "tap_v", "tap_l", m->k_axis[m->k_count - 1].extent, m->step);
  t.columns = add_axis(&t, "n_v", "n_l", m->p.n.all, m->tile_columns);
  t.results = add_axis(&t, "y_v", "y_l", m->p.n.all, LANES);
  if (nest->failed) return NULL;
  open_group(&t);
  uint32_t ends = pestle_emit_open_place(e, m->p.batch.last, m->p.batch.extent,
                                         m->p.batch.count, t.batch);
  ends += pestle_emit_open_end(e, m->p.m.last, m->p.m.extent, m->p.m.count,
                               t.block_row);
  if (!m->constant) pestle_amx_emit_pack_panels(&t);
  int64_t most = t.how->rows / m->tile_rows;
  pestle_kir_id_t tiles = count_tiles(&t, most),
                  zero = pestle_kir_index(t.k, 0);
  pestle_kir_id_t i =
      tiles == PESTLE_KIR_NONE
          ? pestle_kir_repeat(t.k, "i", most)
          : pestle_kir_for(t.k, "i", zero, tiles, 1, PESTLE_KIR_SERIAL);
  t.row_of_tiles = i;
  tile_of_rows(&t, pestle_kir_madi(t.k, i, m->tile_rows, t.block_row));
  pestle_kir_end_repeat(t.k, most);
  if (t.behind) put_last(&t, tiles, most);
  pestle_emit_close_places(e, ends);
  pestle_kir_end(e->k);
  return NULL;
}
