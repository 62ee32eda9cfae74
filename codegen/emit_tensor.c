// SPDX-License-Identifier: Apache-2.0
// A product by matrix units: as many groups as the target has units stay for
// the whole launch and take tiles in turn. One warpgroup asks for boxes of both
// operands, a ring of them ahead; the others multiply what has arrived into sums
// in registers, and compute the last stage from them.
//
//   group g, lanes 384:
//     warpgroup 0, one lane:  for tile, for step: wait until the slot is free;
//                             copy the boxes of a and b to it
//     warpgroups 1, 2:        for tile: sums = 0; for step: wait for the slot;
//                             sums += a * b; give the slot back
//                             the last stage, from the sums
//
// The sums of a warpgroup's 64 rows: lane l of warp w has, of rows 16 w + l / 4
// and that + 8, columns 8 j + 2 (l % 4) and the next.
#include "base/bits.h"
#include "codegen/emit_internal.h"
#include "codegen/tensorise.h"

enum {
  WARPGROUP = 128,
  TAPS = 64,       // of a box: 128 bytes, the swizzle's width
  STEP_TAPS = 16,  // of one instruction
  CHUNK = 64,      // elements of a swizzled row
  MOST_SLOTS = 4,
  REGISTER_FILE = 65536,
  COPY_REGISTERS = 40,
  STRIP = 8,  // rows of tiles that share columns of b in the cache
};

typedef struct tiles_t {
  pestle_emit_t* e;
  pestle_product_t p;
  uint32_t fold, last;
  int64_t rows, columns;  // of a tile
  int64_t consumers, lanes, slots;
  int64_t tiles_m, tiles_n, count, groups, steps, strip;
  uint32_t map_a, map_b, tile_a, tile_b, full, empty, sums, pair;
  pestle_kir_id_t lane, in_warpgroup, warpgroup, group;
  pestle_kir_id_t round, batch, row, column;  // of the tile at hand
} tiles_t;

static pestle_kir_id_t op(const tiles_t* t, pestle_op_t row, pestle_kir_id_t a,
                          pestle_kir_id_t b) {
  return pestle_kir_scalar(t->e->k, row, a, b, PESTLE_KIR_NONE);
}

static pestle_kir_id_t op_i(const tiles_t* t, pestle_op_t row,
                            pestle_kir_id_t a, int64_t b) {
  pestle_kir_id_t c = pestle_kir_index(t->e->k, b);
  return op(t, row, a, c);
}

static void act(const tiles_t* t, pestle_kir_op_t code, uint32_t a, uint32_t b,
                uint32_t c, uint32_t d) {
  (void)pestle_kir_put(t->e->k, (pestle_kir_inst_t){.op = (uint16_t)code,
                                                    .type = PESTLE_NONE,
                                                    .lanes = 1,
                                                    .arg = {a, b, c, d}});
}

static pestle_kir_id_t address(const tiles_t* t, pestle_kir_op_t code,
                               uint32_t a, uint32_t b) {
  return pestle_kir_put(t->e->k, (pestle_kir_inst_t){.op = (uint16_t)code,
                                                     .type = PESTLE_ADDR,
                                                     .lanes = 1,
                                                     .arg = {a, b}});
}

static pestle_kir_id_t ref(const tiles_t* t, uint32_t buffer,
                           pestle_kir_id_t index) {
  return address(t, PESTLE_KIR_REF, buffer, index);
}

// --- Buffers ---

static void put_word(pestle_kir_builder_t* k, uint64_t word, bool wide) {
  if (!pestle_vec_push(&k->word, (uint32_t)word)) k->failed = true;
  if (wide && !pestle_vec_push(&k->word, (uint32_t)(word >> 32))) {
    k->failed = true;
  }
}

static bool along_taps(const pestle_matrix_t* x) {
  return x->tap_stride == 1;
}

// A view of operand |x| by boxes of |box_rows| rows and TAPS taps; transposed,
// of CHUNK rows.
static uint32_t add_map(const tiles_t* t, const char* name,
                        const pestle_matrix_t* x, int64_t rows,
                        int64_t box_rows) {
  pestle_kir_builder_t* k = t->e->k;
  uint32_t id = pestle_kir_add_buffer(k, name, PESTLE_KIR_TENSOR_MAP,
                                      t->p.dtype, 1, 1, PESTLE_KIR_READONLY);
  pestle_kir_table_t table = {(uint32_t)k->word.size, 0};
  bool taps_first = along_taps(x);
  bool batched = t->p.batch > 1;
  put_word(k, t->e->buffer[x->tensor], false);
  put_word(k, batched ? 3 : 2, false);
  put_word(k, 128, false);
  put_word(k, (uint64_t)x->offset, true);
  const int64_t fast[3] = {taps_first ? t->p.k : rows,
                           taps_first ? TAPS : CHUNK, 1};
  const int64_t slow[3] = {taps_first ? rows : t->p.k,
                           taps_first ? box_rows : TAPS,
                           taps_first ? x->row_stride : x->tap_stride};
  const int64_t many[3] = {t->p.batch, 1, x->batch_stride};
  const int64_t* const dims[3] = {fast, slow, many};
  for (int d = 0; d < 2 + batched; ++d) {
    put_word(k, (uint64_t)dims[d][0], false);
    put_word(k, (uint64_t)dims[d][1], false);
    put_word(k, (uint64_t)dims[d][2], true);
  }
  table.count = (uint32_t)k->word.size - table.first;
  if (k->failed || !pestle_vec_push(&k->table, table)) {
    k->failed = true;
    return id;
  }
  k->buffer.data[id].layout = (uint16_t)k->table.size;
  return id;
}

static uint32_t add_shared(const tiles_t* t, const char* name,
                           pestle_dtype_t dtype, int64_t count,
                           uint32_t align) {
  pestle_kir_builder_t* k = t->e->k;
  uint32_t id =
      pestle_kir_add_buffer(k, name, PESTLE_KIR_SHARED, dtype, 1, count, 0);
  if (!k->failed) k->buffer.data[id].align = align;
  return id;
}

static void add_buffers(tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  t->map_a = add_map(t, "map_a", &t->p.a, t->p.m, t->rows);
  t->map_b = add_map(t, "map_b", &t->p.b, t->p.n, t->columns);
  t->tile_a =
      add_shared(t, "tile_a", t->p.dtype, t->slots * t->rows * TAPS, 1024);
  t->tile_b =
      add_shared(t, "tile_b", t->p.dtype, t->slots * t->columns * TAPS, 1024);
  t->full = add_shared(t, "full", PESTLE_MBAR, t->slots, 64);
  t->empty = add_shared(t, "empty", PESTLE_MBAR, t->slots, 64);
  t->sums = pestle_kir_add_buffer(k, "sums", PESTLE_KIR_PRIVATE, PESTLE_F32, 1,
                                  t->columns / 2, 0);
  t->pair =
      pestle_kir_add_buffer(k, "pair", PESTLE_KIR_PRIVATE, PESTLE_F32, 2, 1, 0);
}

// --- Tiles in turn ---

// Opens the loop over this group's tiles, and says which one it is. Strips of
// |strip| rows of tiles, column by column: neighbours share what they read.
static void open_tiles(tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_id_t end = pestle_kir_index(k, t->count);
  pestle_kir_id_t tile = pestle_kir_for(k, "tile", t->group, end,
                                        (int32_t)t->groups, PESTLE_KIR_SERIAL);
  int64_t of_batch = t->tiles_m * t->tiles_n;
  t->round = op_i(t, PESTLE_OP_DIVIDE, tile, t->groups);
  t->batch = op_i(t, PESTLE_OP_DIVIDE, tile, of_batch);
  pestle_kir_id_t in_batch = op_i(t, PESTLE_OP_REMAINDER, tile, of_batch);
  int64_t of_strip = t->strip * t->tiles_n;
  pestle_kir_id_t strip = op_i(t, PESTLE_OP_DIVIDE, in_batch, of_strip);
  pestle_kir_id_t in_strip = op_i(t, PESTLE_OP_REMAINDER, in_batch, of_strip);
  pestle_kir_id_t row = op_i(t, PESTLE_OP_REMAINDER, in_strip, t->strip);
  t->row = pestle_kir_madi(k, strip, t->strip, row);
  t->column = op_i(t, PESTLE_OP_DIVIDE, in_strip, t->strip);
}

typedef struct step_t {
  pestle_kir_id_t taps;  // the first tap
  pestle_kir_id_t slot, phase;
} step_t;

static step_t open_steps(const tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t end = pestle_kir_index(k, t->steps);
  pestle_kir_id_t i =
      pestle_kir_for(k, "step", zero, end, 1, PESTLE_KIR_SERIAL);
  pestle_kir_id_t all = pestle_kir_madi(k, t->round, t->steps, i);
  pestle_kir_id_t turn = op_i(t, PESTLE_OP_DIVIDE, all, t->slots);
  step_t s;
  s.taps = pestle_kir_madi(k, i, TAPS, zero);
  s.slot = op_i(t, PESTLE_OP_REMAINDER, all, t->slots);
  s.phase = op_i(t, PESTLE_OP_REMAINDER, turn, 2);
  return s;
}

// --- The copying warpgroup ---

static void copy_boxes(const tiles_t* t, const step_t* s,
                       const pestle_matrix_t* x, uint32_t map, uint32_t tile,
                       int64_t rows, pestle_kir_id_t first_row,
                       pestle_kir_id_t arrives) {
  pestle_kir_builder_t* k = t->e->k;
  bool taps_first = along_taps(x);
  int64_t boxes = taps_first ? 1 : rows / CHUNK;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t base = pestle_kir_madi(k, s->slot, rows * TAPS, zero);
  for (int64_t i = 0; i < boxes; ++i) {
    pestle_kir_id_t row =
        pestle_kir_madi(k, first_row, 1, pestle_kir_index(k, i * CHUNK));
    pestle_kir_id_t x0 = taps_first ? s->taps : row;
    pestle_kir_id_t x1 = taps_first ? row : s->taps;
    if (t->p.batch > 1) x1 = address(t, PESTLE_KIR_COORD, x1, t->batch);
    pestle_kir_id_t at = address(t, PESTLE_KIR_COORD, x0, x1);
    pestle_kir_id_t to =
        ref(t, tile,
            pestle_kir_madi(k, base, 1, pestle_kir_index(k, i * CHUNK * TAPS)));
    act(t, PESTLE_KIR_TILE_LOAD, to, map, at, arrives);
  }
}

static void emit_copies(tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  act(t, PESTLE_KIR_REGISTERS, (uint32_t)-COPY_REGISTERS, 0, 0, 0);
  pestle_kir_if(k, op_i(t, PESTLE_OP_EQ, t->in_warpgroup, 0));
  open_tiles(t);
  step_t s = open_steps(t);
  pestle_kir_id_t free_phase =
      op(t, PESTLE_OP_SUBTRACT, pestle_kir_index(k, 1), s.phase);
  act(t, PESTLE_KIR_MBAR_WAIT, ref(t, t->empty, s.slot), free_phase, 0, 0);
  pestle_kir_id_t arrives = ref(t, t->full, s.slot);
  int64_t bytes =
      (t->rows + t->columns) * TAPS * (int64_t)pestle_dtype_size(t->p.dtype);
  act(t, PESTLE_KIR_MBAR_EXPECT, arrives, (uint32_t)bytes, 0, 0);
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  copy_boxes(t, &s, &t->p.a, t->map_a, t->tile_a, t->rows,
             pestle_kir_madi(k, t->row, t->rows, zero), arrives);
  copy_boxes(t, &s, &t->p.b, t->map_b, t->tile_b, t->columns,
             pestle_kir_madi(k, t->column, t->columns, zero), arrives);
  pestle_kir_end(k);
  pestle_kir_end(k);
  pestle_kir_end(k);
}

// --- The multiplying warpgroups ---

// Element of |tile| at which step |u| of the slot's taps begins.
static pestle_kir_id_t operand_at(const tiles_t* t, const step_t* s,
                                  const pestle_matrix_t* x, uint32_t tile,
                                  int64_t rows, pestle_kir_id_t first,
                                  pestle_kir_id_t u) {
  pestle_kir_builder_t* k = t->e->k;
  int64_t step = along_taps(x) ? STEP_TAPS : STEP_TAPS * CHUNK;
  pestle_kir_id_t at = pestle_kir_madi(k, s->slot, rows * TAPS, first);
  return ref(t, tile, pestle_kir_madi(k, u, step, at));
}

static void multiply(const tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  step_t s = open_steps(t);
  act(t, PESTLE_KIR_MBAR_WAIT, ref(t, t->full, s.slot), s.phase, 0, 0);
  act(t, PESTLE_KIR_WGMMA_FENCE, 0, 0, 0, 0);
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t end = pestle_kir_index(k, TAPS / STEP_TAPS);
  pestle_kir_id_t own = pestle_kir_madi(k, t->warpgroup, CHUNK * TAPS,
                                        pestle_kir_index(k, -CHUNK * TAPS));
  pestle_kir_id_t u = pestle_kir_for(k, "u", zero, end, 1, PESTLE_KIR_UNROLL);
  pestle_kir_id_t a = operand_at(t, &s, &t->p.a, t->tile_a, t->rows, own, u);
  pestle_kir_id_t b =
      operand_at(t, &s, &t->p.b, t->tile_b, t->columns, zero, u);
  uint32_t how = (uint32_t)t->columns;
  if (!along_taps(&t->p.a)) how |= PESTLE_KIR_WGMMA_A_TRANSPOSED;
  if (!along_taps(&t->p.b)) how |= PESTLE_KIR_WGMMA_B_TRANSPOSED;
  if (t->p.dtype == PESTLE_F16) how |= PESTLE_KIR_WGMMA_F16;
  act(t, PESTLE_KIR_WGMMA, t->sums, a, b, how);
  pestle_kir_end(k);
  act(t, PESTLE_KIR_WGMMA_COMMIT, 0, 0, 0, 0);
  act(t, PESTLE_KIR_WGMMA_WAIT, 0, 0, 0, 0);
  pestle_kir_if(k, op_i(t, PESTLE_OP_EQ, t->in_warpgroup, 0));
  act(t, PESTLE_KIR_MBAR_ARRIVE, ref(t, t->empty, s.slot), 0, 0, 0);
  pestle_kir_end(k);
  pestle_kir_end(k);
}

static void clear_sums(const tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_alloc(k, t->sums);
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t end = pestle_kir_index(k, t->columns / 2);
  pestle_kir_id_t i = pestle_kir_for(k, "i", zero, end, 1, PESTLE_KIR_UNROLL);
  pestle_kir_store(k, t->sums, i, pestle_kir_float(k, PESTLE_F32, 1, 0),
                   PESTLE_KIR_NONE, 0);
  pestle_kir_end(k);
}

// --- The last stage, from the sums ---

static void open_axis(pestle_emit_t* e, uint32_t axis, pestle_kir_id_t id) {
  e->open[axis] = true;
  e->value[axis] = pestle_lin_axis(e->nest, axis);
  e->axis_id[axis] = id;
}

// The pair of sums as the box of the product that the last stage reads.
static void show_pair(const tiles_t* t) {
  pestle_emit_t* e = t->e;
  pestle_nest_t* nest = e->nest;
  const pestle_nest_stage_t* y = pestle_nest_stage(nest, t->last);
  uint32_t tensor = pestle_nest_stage(nest, t->fold)->tensors[0];
  pestle_box_t* box = &e->box[tensor];
  const pestle_nest_axis_t* n = &nest->axes.data[t->p.n_axis];
  e->buffer[tensor] = t->pair;
  box->known = true;
  box->count = 2;
  for (uint32_t d = 0; d < y->map_count; ++d) {
    bool column = y->roots[d] == t->p.n_axis;
    box->extent[d] = column ? 2 : 1;
    box->stride[d] = column ? 1 : 2;
    box->origin[d] =
        column ? pestle_lin_scale(nest,
                                  pestle_lin_axis(nest, (uint32_t)n->outer), 2)
               : e->coord[y->roots[d]];
  }
  e->ready[tensor] = true;
}

static void emit_pair(const tiles_t* t, pestle_kir_id_t j, int64_t half) {
  pestle_emit_t* e = t->e;
  pestle_kir_builder_t* k = e->k;
  pestle_kir_id_t first =
      pestle_kir_madi(k, j, 4, pestle_kir_index(k, 2 * half));
  pestle_kir_id_t second =
      pestle_kir_madi(k, j, 4, pestle_kir_index(k, 2 * half + 1));
  pestle_kir_id_t low =
      pestle_kir_load(k, t->sums, 1, first, PESTLE_KIR_NONE, 0);
  pestle_kir_id_t high =
      pestle_kir_load(k, t->sums, 1, second, PESTLE_KIR_NONE, 0);
  pestle_kir_id_t both = pestle_kir_put(
      k, (pestle_kir_inst_t){.op = PESTLE_KIR_INSERT,
                             .type = PESTLE_F32,
                             .lanes = 2,
                             .arg = {pestle_kir_splat(k, low, 2), high, 1}});
  pestle_kir_store(k, t->pair, pestle_kir_index(k, 0), both, PESTLE_KIR_NONE,
                   0);
  const pestle_nest_stage_t* y = pestle_nest_stage(e->nest, t->last);
  for (uint32_t v = 0; v < y->value_count; ++v) {
    pestle_kir_id_t value = pestle_emit_expr(e, y->values[v]);
    pestle_emit_store_stage(e, t->last, v, value);
  }
}

// Two columns of |row|: the axes of the last stage are open at them.
static void emit_half(const tiles_t* t, pestle_kir_id_t row,
                      pestle_kir_id_t columns, int64_t half) {
  pestle_emit_t* e = t->e;
  pestle_kir_builder_t* k = e->k;
  const pestle_nest_axis_t* n = &e->nest->axes.data[t->p.n_axis];
  bool rest_m = t->p.m % t->rows != 0, rest_n = t->p.n % t->columns != 0;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  if (rest_m) pestle_kir_if(k, op_i(t, PESTLE_OP_LT, row, t->p.m));
  pestle_kir_id_t end = pestle_kir_index(k, t->columns / 8);
  pestle_kir_id_t j = pestle_kir_for(k, "j", zero, end, 1, PESTLE_KIR_UNROLL);
  pestle_kir_id_t column = pestle_kir_madi(k, j, 4, columns);
  if (rest_n) pestle_kir_if(k, op_i(t, PESTLE_OP_LT, column, t->p.n / 2));
  size_t scope = pestle_emit_scope(e);
  if (t->p.batch_axis != UINT32_MAX) open_axis(e, t->p.batch_axis, t->batch);
  open_axis(e, t->p.m_axis, row);
  open_axis(e, (uint32_t)n->outer, column);
  e->vector_axis = n->inner;
  e->lanes = 2;
  e->valid = 2;
  e->open[n->inner] = true;
  e->value[n->inner] = pestle_lin_axis(e->nest, (uint32_t)n->inner);
  pestle_emit_coords(e, t->last);
  show_pair(t);
  emit_pair(t, j, half);
  e->vector_axis = -1;
  pestle_emit_unscope(e, scope);
  if (rest_n) pestle_kir_end(k);
  pestle_kir_end(k);
  if (rest_m) pestle_kir_end(k);
}

static void emit_results(const tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_id_t in_warp = op_i(t, PESTLE_OP_REMAINDER, t->in_warpgroup, 32);
  pestle_kir_id_t warp = op_i(t, PESTLE_OP_DIVIDE, t->in_warpgroup, 32);
  pestle_kir_id_t quad = op_i(t, PESTLE_OP_DIVIDE, in_warp, 4);
  pestle_kir_id_t in_quad = op_i(t, PESTLE_OP_REMAINDER, in_warp, 4);
  pestle_kir_id_t row = pestle_kir_madi(k, warp, 16, quad);
  row =
      pestle_kir_madi(k, t->warpgroup, CHUNK,
                      pestle_kir_madi(k, row, 1, pestle_kir_index(k, -CHUNK)));
  row = pestle_kir_madi(k, t->row, t->rows, row);
  pestle_kir_id_t columns =
      pestle_kir_madi(k, t->column, t->columns / 2, in_quad);
  pestle_kir_alloc(k, t->pair);
  for (int64_t half = 0; half < 2; ++half) {
    pestle_kir_id_t at =
        pestle_kir_madi(k, row, 1, pestle_kir_index(k, 8 * half));
    emit_half(t, at, columns, half);
  }
}

static void emit_products(tiles_t* t) {
  int64_t registers =
      (REGISTER_FILE - WARPGROUP * COPY_REGISTERS) / (WARPGROUP * t->consumers);
  if (registers > 232) registers = 232;
  act(t, PESTLE_KIR_REGISTERS, (uint32_t)(registers / 8 * 8), 0, 0, 0);
  open_tiles(t);
  clear_sums(t);
  multiply(t);
  emit_results(t);
  pestle_kir_end(t->e->k);
}

// --- The whole ---

static void init_barriers(const tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_if(k, op_i(t, PESTLE_OP_EQ, t->lane, 0));
  for (int64_t s = 0; s < t->slots; ++s) {
    pestle_kir_id_t slot = pestle_kir_index(k, s);
    act(t, PESTLE_KIR_MBAR_INIT, ref(t, t->full, slot), 1, 0, 0);
    act(t, PESTLE_KIR_MBAR_INIT, ref(t, t->empty, slot), (uint32_t)t->consumers,
        0, 0);
  }
  act(t, PESTLE_KIR_MBAR_FENCE, 0, 0, 0, 0);
  pestle_kir_end(k);
  pestle_kir_barrier(k);
}

static void plan_tiles(tiles_t* t) {
  const pestle_nest_t* nest = t->e->nest;
  t->rows = nest->tile_rows;
  t->columns = nest->tile_columns;
  t->consumers = t->rows / CHUNK;
  t->lanes = WARPGROUP * (1 + t->consumers);
  t->slots = MOST_SLOTS;
  t->tiles_m = pestle_ceil_div(t->p.m, t->rows);
  t->tiles_n = pestle_ceil_div(t->p.n, t->columns);
  t->count = t->tiles_m * t->tiles_n * t->p.batch;
  t->groups = t->count < nest->groups ? t->count : nest->groups;
  t->steps = pestle_ceil_div(t->p.k, TAPS);
  for (t->strip = STRIP; t->tiles_m % t->strip; t->strip /= 2) {
  }
}

pestle_status_t pestle_emit_tensor(pestle_emit_t* e, uint32_t stage) {
  pestle_kir_builder_t* k = e->k;
  tiles_t t = {.e = e, .fold = (uint32_t)e->nest->tensorised, .last = stage};
  if (!pestle_tensorise_match(e->nest, t.fold, &t.p)) {
    return PESTLE_ERROR(INTERNAL, "kernel '%s': its product is none any more",
                        e->nest->name);
  }
  plan_tiles(&t);
  add_buffers(&t);
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t groups = pestle_kir_index(k, t.groups);
  t.group = pestle_kir_for(k, "g", zero, groups, 1, PESTLE_KIR_GROUP_X);
  pestle_kir_id_t lanes = pestle_kir_index(k, t.lanes);
  t.lane = pestle_kir_for(k, "lane", zero, lanes, 1, PESTLE_KIR_LANE_X);
  init_barriers(&t);
  t.warpgroup = op_i(&t, PESTLE_OP_DIVIDE, t.lane, WARPGROUP);
  t.in_warpgroup = op_i(&t, PESTLE_OP_REMAINDER, t.lane, WARPGROUP);
  pestle_kir_if(k, op_i(&t, PESTLE_OP_LT, t.warpgroup, 1));
  emit_copies(&t);
  pestle_kir_else(k);
  emit_products(&t);
  pestle_kir_end(k);
  pestle_kir_end(k);
  pestle_kir_end(k);
  return NULL;
}
