// SPDX-License-Identifier: Apache-2.0
// A product by matrix units: as many groups as the target has units stay for
// the whole launch and take tiles in turn. One warpgroup asks for boxes of both
// operands, a ring of them ahead; the others multiply what has arrived into sums
// in registers, and compute the last stage from them (emit_result.c).
//
//   group g, lanes 384:
//     warpgroup 0, one lane:  for tile, for step: wait until the slot is free;
//                             copy the boxes of a and b to it
//     warpgroups 1, 2:        for tile: sums = 0; for step: wait for the slot;
//                             sums += a * b; give the slot back
//                             the last stage, from the sums: to global
//                             memory, or through shared memory, from where it
//                             is copied while the next tile is multiplied
//
// Clusters of groups that make tiles below each other bring each other the tiles of b:
// each asks for a part, which comes to all of them, so that a slot is free when the
// warpgroups of all groups have given it back. Clusters of groups that share a tile's k
// leave their sums in shared memory, and each finishes some of the tile's columns.
//
// The sums of a warpgroup's 64 rows: lane l of warp w has, of rows 16 w + l / 4
// and that + 8, columns 8 j + 2 (l % 4) and the next.
#include "codegen/template/tensorise/emit.h"
#include "base/bits.h"

enum {
  STEP_K = PESTLE_TENSORISE_DEPTH,  // of a box: 128 bytes, the swizzle's width
  UNIT_K = 16,                      // of one instruction
  CHUNK = 64,                       // elements of a swizzled row
  RUN = 8,                          // elements that a lane clears at once
  FEWEST_SLOTS = 3,
  BARRIER_BYTES = 256,
  REGISTER_FILE = 65536,
  COPY_REGISTERS = 40,
};

pestle_kir_id_t pestle_tiles_op(const pestle_tiles_t* t, pestle_op_t row,
                                pestle_kir_id_t a, pestle_kir_id_t b) {
  return pestle_kir_scalar(t->e->k, row, a, b, PESTLE_KIR_NONE);
}

pestle_kir_id_t pestle_tiles_address(const pestle_tiles_t* t,
                                     pestle_kir_op_t code, uint32_t a,
                                     uint32_t b) {
  return pestle_kir_put(t->e->k, (pestle_kir_inst_t){.op = (uint16_t)code,
                                                     .type = PESTLE_ADDR,
                                                     .lanes = 1,
                                                     .arg = {a, b}});
}

pestle_kir_id_t pestle_tiles_ref(const pestle_tiles_t* t, uint32_t buffer,
                                 pestle_kir_id_t index) {
  return pestle_tiles_address(t, PESTLE_KIR_REF, buffer, index);
}

// --- Buffers ---

static void put_word(pestle_kir_builder_t* k, uint64_t word, bool wide) {
  if (!pestle_vec_push(&k->word, (uint32_t)word)) k->failed = true;
  if (wide && !pestle_vec_push(&k->word, (uint32_t)(word >> 32))) {
    k->failed = true;
  }
}

static bool along_k(const pestle_matrix_t* x) {
  return x->k_stride == 1;
}

uint32_t pestle_tiles_map(const pestle_tiles_t* t, const char* name,
                          uint32_t buffer, pestle_dtype_t dtype, int64_t offset,
                          const pestle_map_dim_t* dims, uint32_t rank,
                          const pestle_window_t* windows) {
  pestle_kir_builder_t* k = t->e->k;
  if (k->failed) return 0;
  uint32_t id = pestle_kir_add_buffer(k, name, PESTLE_KIR_TENSOR_MAP, dtype, 1,
                                      1, PESTLE_KIR_READONLY);
  pestle_kir_table_t table = {(uint32_t)k->word.size, 0};
  put_word(k, buffer, false);
  put_word(k, rank, false);
  put_word(k, PESTLE_TILE_ROW, false);
  put_word(k, (uint64_t)offset, true);
  for (uint32_t d = 0; d < rank; ++d) {
    put_word(k, (uint64_t)dims[d].extent, false);
    put_word(k, (uint64_t)dims[d].box, false);
    put_word(k, (uint64_t)dims[d].stride, true);
  }
  if (windows) put_word(k, PESTLE_KIR_MAP_WINDOWS, false);
  for (uint32_t d = 0; windows && d < windows->rank; ++d) {
    const pestle_window_dim_t* x = &windows->dim[d];
    int64_t last = x->low + (x->positions - 1) * x->step;
    put_word(k, (uint64_t)x->low, false);
    put_word(k, (uint64_t)(last - (x->extent - 1)), false);
    put_word(k, (uint64_t)x->step, false);
  }
  table.count = (uint32_t)k->word.size - table.first;
  if (k->failed || !pestle_vec_push(&k->table, table)) {
    k->failed = true;
    return id;
  }
  k->buffer.data[id].layout = (uint16_t)k->table.size;
  return id;
}

static int64_t copied_rows(const pestle_tiles_t* t) {
  return pestle_tensorise_copied_rows(&t->p, t->rows);
}

// A view of operand |x| by boxes of |box_rows| rows and STEP_K elements of k; transposed,
// of CHUNK rows.
static uint32_t add_map(const pestle_tiles_t* t, const char* name,
                        const pestle_matrix_t* x, int64_t rows,
                        int64_t box_rows) {
  pestle_map_dim_t depth = {t->p.k, STEP_K, x->k_stride};
  pestle_map_dim_t lines = {rows, along_k(x) ? box_rows : CHUNK, x->row_stride};
  const pestle_map_dim_t dims[3] = {along_k(x) ? depth : lines,
                                    along_k(x) ? lines : depth,
                                    {t->p.batch, 1, x->batch_stride}};
  return pestle_tiles_map(t, name, t->e->buffer[x->tensor], t->p.dtype,
                          x->offset, dims, t->p.batch > 1 ? 3 : 2, NULL);
}

uint32_t pestle_tiles_shared(const pestle_tiles_t* t, const char* name,
                             pestle_dtype_t dtype, int64_t count,
                             uint32_t align) {
  pestle_kir_builder_t* k = t->e->k;
  uint32_t id =
      pestle_kir_add_buffer(k, name, PESTLE_KIR_SHARED, dtype, 1, count, 0);
  if (!k->failed) k->buffer.data[id].align = align;
  return id;
}

static bool axis_ends(const pestle_tiles_t* t, uint32_t axis) {
  return axis != UINT32_MAX && pestle_emit_has_end(t->e, axis);
}

static void add_buffers(pestle_tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  if (t->p.window.rank) {
    pestle_tiles_window_maps(t);
  } else {
    t->map_a = add_map(t, "map_a", &t->p.a, t->p.m, copied_rows(t));
    t->map_b =
        add_map(t, "map_b", &t->p.b, t->p.n, t->columns / t->how.cluster);
  }
  t->tile_a = pestle_tiles_shared(t, "tile_a", t->p.dtype,
                                  t->slots * t->rows * STEP_K, 1024);
  t->tile_b = pestle_tiles_shared(t, "tile_b", t->p.dtype,
                                  t->slots * t->columns * STEP_K, 1024);
  pestle_tiles_add_staged(t);
  if (t->how.parts > 1) {
    t->parts =
        pestle_tiles_shared(t, "parts", t->p.sums, t->rows * t->columns, 1024);
  }
  t->full = pestle_tiles_shared(t, "full", PESTLE_MBAR, t->slots, 64);
  t->empty = pestle_tiles_shared(t, "empty", PESTLE_MBAR, t->slots, 64);
  t->sums = pestle_kir_add_buffer(k, "sums", PESTLE_KIR_PRIVATE, t->p.sums, 1,
                                  t->columns / 2, 0);
  if (t->how.apart) {
    t->step_sums = pestle_kir_add_buffer(k, "step_sums", PESTLE_KIR_PRIVATE,
                                         t->p.sums, 1, t->columns / 2, 0);
  }
  t->pair =
      pestle_kir_add_buffer(k, "pair", PESTLE_KIR_PRIVATE, t->p.sums, 2, 1, 0);
  // Rows of a convolution do not end.
  t->ends = !t->p.window.rank &&
            (axis_ends(t, t->p.batch_axis) || axis_ends(t, t->p.m_axis[0]) ||
             axis_ends(t, t->p.n_axis));
  if (!t->ends) return;
  t->rounds = pestle_kir_add_buffer(k, "rounds", PESTLE_KIR_PRIVATE,
                                    PESTLE_INDEX, 1, 1, 0);
}

// --- Tiles in turn ---

// Opens an IF for each of batch, rows and columns of which the tile may lie behind an end.
// What copies and what multiplies leave out the same tiles, so that the ring's slots are
// those of the tiles that are made: these are counted.
static uint32_t open_ends(pestle_tiles_t* t) {
  pestle_emit_t* e = t->e;
  pestle_kir_builder_t* k = e->k;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  uint32_t axes[3] = {t->p.batch_axis, t->p.m_axis[0], t->p.n_axis};
  int64_t extents[3] = {t->p.batch, t->p.m, t->p.n};
  pestle_kir_id_t places[3] = {
      t->batch, pestle_kir_madi(k, t->cluster_row, t->rows, zero),
      pestle_kir_madi(k, t->column, t->columns, zero)};
  uint32_t opened = 0;
  // The numbers are read once by each of the two.
  size_t scope = pestle_emit_scope(e);
  for (int i = 0; i < 3; ++i) {
    int32_t axis = (int32_t)axes[i];
    if (axis_ends(t, axes[i]))
      opened += pestle_emit_open_place(e, &axis, &extents[i], 1, places[i]);
  }
  pestle_emit_unscope(e, scope);
  pestle_kir_id_t round =
      pestle_kir_load(k, t->rounds, 1, zero, PESTLE_KIR_NONE, 0);
  t->round = pestle_emit_clamp(e, round, 0, t->count);
  pestle_kir_store(k, t->rounds, zero,
                   pestle_kir_madi(k, t->round, 1, pestle_kir_index(k, 1)),
                   PESTLE_KIR_NONE, 0);
  return opened;
}

// Opens the loop over this group's tiles, and says which one it is; how many IFs it opens
// within.
static uint32_t open_tiles(pestle_tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  if (t->ends) {
    pestle_kir_id_t zero = pestle_kir_index(k, 0);
    pestle_kir_alloc(k, t->rounds);
    pestle_kir_store(k, t->rounds, zero, zero, PESTLE_KIR_NONE, 0);
  }
  pestle_kir_id_t end = pestle_kir_index(k, t->count);
  pestle_kir_id_t tile = pestle_kir_for(k, "tile", t->group, end,
                                        (int32_t)t->groups, PESTLE_KIR_SERIAL);
  int64_t of_batch = t->tiles_m * t->tiles_n;
  t->round = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, tile, t->groups);
  t->batch = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, tile, of_batch);
  pestle_kir_id_t in_batch =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, tile, of_batch);
  pestle_emit_strips(k, in_batch, t->tiles_m, t->tiles_n, &t->row, &t->column);
  t->cluster_row = t->row;
  if (t->how.cluster > 1) {
    pestle_kir_id_t zero = pestle_kir_index(k, 0);
    t->cluster_row = pestle_kir_madi(k, t->row, (int32_t)t->how.cluster, zero);
    t->row = pestle_kir_madi(k, t->row, (int32_t)t->how.cluster, t->rank);
  }
  return t->ends ? open_ends(t) : 0;
}

static void close_tiles(pestle_tiles_t* t, uint32_t ends) {
  pestle_emit_close_places(t->e, ends);
  pestle_kir_end(t->e->k);
}

static pestle_tiles_step_t open_steps(const pestle_tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t end = pestle_kir_index(k, t->steps);
  pestle_kir_id_t i =
      pestle_kir_for(k, "step", zero, end, 1, PESTLE_KIR_SERIAL);
  pestle_kir_id_t all = pestle_kir_madi(k, t->round, t->steps, i);
  pestle_kir_id_t turn =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, all, t->slots);
  pestle_tiles_step_t s = {.number = i};
  s.depth = pestle_kir_madi(k, i, STEP_K, zero);
  if (t->how.parts > 1)
    s.depth = pestle_kir_madi(k, t->rank, t->steps * STEP_K, s.depth);
  s.slot = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, all, t->slots);
  s.phase = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, turn, 2);
  return s;
}

// --- The copying warpgroup ---

// |shares|: this group's part, to all groups of the cluster.
static void copy_boxes(const pestle_tiles_t* t, const pestle_tiles_step_t* s,
                       const pestle_matrix_t* x, uint32_t map, uint32_t tile,
                       int64_t rows, pestle_kir_id_t first_row,
                       pestle_kir_id_t arrives, bool shares) {
  pestle_kir_builder_t* k = t->e->k;
  bool k_first = along_k(x);
  int64_t own = shares ? rows / t->how.cluster : rows;
  int64_t boxes = k_first ? 1 : own / CHUNK;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t base = pestle_kir_madi(k, s->slot, rows * STEP_K, zero);
  if (shares) {
    base = pestle_kir_madi(k, t->rank, own * STEP_K, base);
    first_row = pestle_kir_madi(k, t->rank, own, first_row);
  }
  for (int64_t i = 0; i < boxes; ++i) {
    pestle_kir_id_t row =
        pestle_kir_madi(k, first_row, 1, pestle_kir_index(k, i * CHUNK));
    pestle_kir_id_t x0 = k_first ? s->depth : row;
    pestle_kir_id_t x1 = k_first ? row : s->depth;
    if (t->p.batch > 1)
      x1 = pestle_tiles_address(t, PESTLE_KIR_COORD, x1, t->batch);
    pestle_kir_id_t at = pestle_tiles_address(t, PESTLE_KIR_COORD, x0, x1);
    pestle_kir_id_t to = pestle_tiles_ref(
        t, tile,
        pestle_kir_madi(k, base, 1, pestle_kir_index(k, i * CHUNK * STEP_K)));
    pestle_kir_act(k, shares ? PESTLE_KIR_TILE_LOAD_ALL : PESTLE_KIR_TILE_LOAD,
                   to, map, at, arrives);
  }
}

// Two warpgroups have registers enough as they are.
static bool has_roles(const pestle_tiles_t* t) {
  return t->consumers > 1;
}

static void emit_copies(pestle_tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  if (has_roles(t)) {
    pestle_kir_act(k, PESTLE_KIR_REGISTERS, (uint32_t)-COPY_REGISTERS, 0, 0, 0);
  }
  pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_EQ, t->in_warpgroup, 0));
  uint32_t ends = open_tiles(t);
  if (t->p.window.rank) pestle_tiles_start_window(t);
  pestle_tiles_step_t s = open_steps(t);
  pestle_kir_id_t free_phase =
      pestle_tiles_op(t, PESTLE_OP_SUBTRACT, pestle_kir_index(k, 1), s.phase);
  pestle_kir_act(k, PESTLE_KIR_MBAR_WAIT, pestle_tiles_ref(t, t->empty, s.slot),
                 free_phase, 0, 0);
  pestle_kir_id_t arrives = pestle_tiles_ref(t, t->full, s.slot);
  int64_t bytes = (copied_rows(t) + t->columns) * STEP_K *
                  (int64_t)pestle_dtype_size(t->p.dtype);
  pestle_kir_act(k, PESTLE_KIR_MBAR_EXPECT, arrives, (uint32_t)bytes, 0, 0);
  if (t->p.window.rank) {
    pestle_tiles_copy_window(t, &s, arrives);
  } else {
    pestle_kir_id_t zero = pestle_kir_index(k, 0);
    copy_boxes(t, &s, &t->p.a, t->map_a, t->tile_a, t->rows,
               pestle_kir_madi(k, t->row, t->rows, zero), arrives, false);
    copy_boxes(t, &s, &t->p.b, t->map_b, t->tile_b, t->columns,
               pestle_kir_madi(k, t->column, t->columns, zero), arrives,
               t->how.cluster > 1);
  }
  pestle_kir_end(k);
  close_tiles(t, ends);
  pestle_kir_end(k);
}

// --- The multiplying warpgroups ---

// Element of |tile| at which step |u| of the slot's k begins.
static pestle_kir_id_t operand_at(const pestle_tiles_t* t,
                                  const pestle_tiles_step_t* s,
                                  const pestle_matrix_t* x, uint32_t tile,
                                  int64_t rows, pestle_kir_id_t first,
                                  pestle_kir_id_t u) {
  pestle_kir_builder_t* k = t->e->k;
  int64_t step = along_k(x) ? UNIT_K : UNIT_K * CHUNK;
  pestle_kir_id_t at = pestle_kir_madi(k, s->slot, rows * STEP_K, first);
  return pestle_tiles_ref(t, tile, pestle_kir_madi(k, u, step, at));
}

// To each group that copies to the slot: lane i of the warpgroup tells group i.
static void give_back(const pestle_tiles_t* t, pestle_kir_id_t slot) {
  pestle_kir_builder_t* k = t->e->k;
  int64_t groups = t->how.cluster;
  pestle_kir_if(
      k, groups == 1
             ? pestle_kir_scalar_i(k, PESTLE_OP_EQ, t->in_warpgroup, 0)
             : pestle_kir_scalar_i(k, PESTLE_OP_LT, t->in_warpgroup, groups));
  pestle_kir_id_t empty = pestle_tiles_ref(t, t->empty, slot);
  if (groups > 1) {
    empty = pestle_tiles_address(
        t, PESTLE_KIR_REF_AT, empty,
        pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, t->in_warpgroup, groups));
  }
  pestle_kir_act(k, PESTLE_KIR_MBAR_ARRIVE, empty, 0, 0, 0);
  pestle_kir_end(k);
}

// |to| += the part of slot |s| that is |u| along k; |more|: bits of how.
static void put_product(const pestle_tiles_t* t, const pestle_tiles_step_t* s,
                        uint32_t to, pestle_kir_id_t own, pestle_kir_id_t u,
                        uint32_t more) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t a = operand_at(t, s, &t->p.a, t->tile_a, t->rows, own, u);
  pestle_kir_id_t b = operand_at(t, s, &t->p.b, t->tile_b, t->columns, zero, u);
  uint32_t how = (uint32_t)t->columns | t->p.how | more;
  if (!along_k(&t->p.a)) how |= PESTLE_KIR_WGMMA_A_TRANSPOSED;
  if (!along_k(&t->p.b)) how |= PESTLE_KIR_WGMMA_B_TRANSPOSED;
  pestle_kir_act(k, PESTLE_KIR_WGMMA, to, a, b, how);
}

static void put_products(const pestle_tiles_t* t, const pestle_tiles_step_t* s,
                         pestle_kir_id_t own) {
  pestle_kir_builder_t* k = t->e->k;
  int64_t units = STEP_K / UNIT_K;
  if (!t->how.apart) {
    pestle_kir_id_t u = pestle_kir_unroll(k, "u", units);
    put_product(t, s, t->sums, own, u, 0);
    pestle_kir_end(k);
    return;
  }
  for (int64_t u = 0; u < units; ++u) {
    put_product(t, s, t->step_sums, own, pestle_kir_index(k, u),
                u ? 0 : PESTLE_KIR_WGMMA_ZERO);
  }
}

static void add_step(const pestle_tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", t->columns / 2);
  pestle_kir_id_t sum = pestle_kir_load(k, t->sums, 1, i, PESTLE_KIR_NONE, 0);
  pestle_kir_id_t more =
      pestle_kir_load(k, t->step_sums, 1, i, PESTLE_KIR_NONE, 0);
  pestle_kir_store(k, t->sums, i, pestle_tiles_op(t, PESTLE_OP_ADD, sum, more),
                   PESTLE_KIR_NONE, 0);
  pestle_kir_end(k);
}

static void multiply(const pestle_tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  if (t->how.apart) pestle_kir_alloc(k, t->step_sums);
  pestle_tiles_step_t s = open_steps(t);
  pestle_kir_act(k, PESTLE_KIR_MBAR_WAIT, pestle_tiles_ref(t, t->full, s.slot),
                 s.phase, 0, 0);
  pestle_kir_act(k, PESTLE_KIR_WGMMA_FENCE, 0, 0, 0, 0);
  pestle_kir_id_t own = pestle_kir_madi(k, t->warpgroup, CHUNK * STEP_K,
                                        pestle_kir_index(k, -CHUNK * STEP_K));
  put_products(t, &s, own);
  pestle_kir_act(k, PESTLE_KIR_WGMMA_COMMIT, 0, 0, 0, 0);
  pestle_kir_act(k, PESTLE_KIR_WGMMA_WAIT, 0, 0, 0, 0);
  give_back(t, s.slot);
  if (t->how.apart) add_step(t);
  pestle_kir_end(k);
}

static void clear_sums(const pestle_tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_alloc(k, t->sums);
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", t->columns / 2);
  pestle_kir_store(k, t->sums, i, pestle_kir_const(k, t->p.sums, 1, 0, 0),
                   PESTLE_KIR_NONE, 0);
  pestle_kir_end(k);
}

// The rows of each slot that no copy brings, while the first copies are on their way: the
// one warpgroup that multiplies them does.
static void clear_rows(const pestle_tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  int64_t first = copied_rows(t), runs = (t->rows - first) * CHUNK / RUN;
  if (!runs) return;
  pestle_kir_id_t i = pestle_kir_for(k, "i", t->in_warpgroup,
                                     pestle_kir_index(k, t->slots * runs),
                                     PESTLE_WARPGROUP, PESTLE_KIR_SERIAL);
  pestle_kir_id_t slot = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, i, runs);
  pestle_kir_id_t run = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, i, runs);
  pestle_kir_id_t at = pestle_kir_madi(k, slot, t->rows * CHUNK,
                                       pestle_kir_index(k, first * CHUNK));
  pestle_kir_store(k, t->tile_a, pestle_kir_madi(k, run, RUN, at),
                   pestle_kir_const(k, t->p.dtype, RUN, 0, 0), PESTLE_KIR_NONE,
                   16);
  pestle_kir_end(k);
  pestle_kir_act(k, PESTLE_KIR_TILE_FENCE, 0, 0, 0, 0);
  pestle_kir_act(k, PESTLE_KIR_SYNC, t->warpgroup, PESTLE_WARPGROUP, 0, 0);
}

static void emit_products(pestle_tiles_t* t) {
  int64_t registers = (REGISTER_FILE - PESTLE_WARPGROUP * COPY_REGISTERS) /
                      (PESTLE_WARPGROUP * t->consumers);
  if (registers > 232) registers = 232;
  if (has_roles(t)) {
    pestle_kir_act(t->e->k, PESTLE_KIR_REGISTERS, (uint32_t)(registers / 8 * 8),
                   0, 0, 0);
  }
  clear_rows(t);
  uint32_t ends = open_tiles(t);
  clear_sums(t);
  multiply(t);
  if (t->how.parts > 1) {
    pestle_tiles_keep_part(t);
    close_tiles(t, ends);
    return;
  }
  pestle_tiles_results(t);
  close_tiles(t, ends);
  pestle_tiles_finish(t);
}

// The cluster's groups have left their parts.
static void emit_parts_results(pestle_tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_act(k, PESTLE_KIR_CLUSTER_SYNC, 0, 0, 0, 0);
  pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_GE, t->warpgroup, 1));
  uint32_t ends = open_tiles(t);
  pestle_tiles_results(t);
  close_tiles(t, ends);
  pestle_tiles_finish(t);
  pestle_kir_end(k);
}

// --- The whole ---

static void init_barriers(const pestle_tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_EQ, t->lane, 0));
  for (int64_t s = 0; s < t->slots; ++s) {
    pestle_kir_id_t slot = pestle_kir_index(k, s);
    pestle_kir_act(k, PESTLE_KIR_MBAR_INIT, pestle_tiles_ref(t, t->full, slot),
                   1, 0, 0);
    pestle_kir_act(k, PESTLE_KIR_MBAR_INIT, pestle_tiles_ref(t, t->empty, slot),
                   (uint32_t)(t->consumers * t->how.cluster), 0, 0);
  }
  pestle_kir_act(k, PESTLE_KIR_MBAR_FENCE, 0, 0, 0, 0);
  pestle_kir_end(k);
  if (t->how.cluster > 1) {
    pestle_kir_act(k, PESTLE_KIR_CLUSTER_SYNC, 0, 0, 0, 0);
  } else {
    pestle_kir_barrier(k);
  }
}

// Of shared memory, what is left by the barriers goes to results first, which
// are then written while the next tile is multiplied, and to the ring.
static void plan_slots(pestle_tiles_t* t) {
  int64_t slot =
      (t->rows + t->columns) * STEP_K * (int64_t)pestle_dtype_size(t->p.dtype);
  int64_t room = t->how.group_bytes - BARRIER_BYTES;
  if (t->how.parts > 1) room -= 4 * t->rows * t->columns;
  t->slots = t->how.slots;
  t->staged_bytes = pestle_tiles_staged_bytes(t);
  if (t->staged_bytes && room - t->staged_bytes < FEWEST_SLOTS * slot) {
    t->staged_bytes = 0;
  }
  while (t->slots > FEWEST_SLOTS && t->slots * slot > room - t->staged_bytes)
    --t->slots;
}

static void plan_tiles(pestle_tiles_t* t) {
  t->rows = t->how.rows;
  t->columns = t->how.columns;
  t->consumers = t->rows / CHUNK;
  t->lanes = PESTLE_WARPGROUP * (1 + t->consumers);
  t->size = t->how.cluster * t->how.parts;
  t->tiles_m = pestle_ceil_div(t->p.m, t->rows * t->how.cluster);
  t->tiles_n = pestle_ceil_div(t->p.n, t->columns);
  t->count = t->tiles_m * t->tiles_n * t->p.batch;
  // With parts each cluster makes one tile.
  int64_t most = t->how.parts > 1 ? t->count : t->how.groups / t->size;
  if (most < 1) most = 1;
  t->groups = t->count < most ? t->count : most;
  t->steps = pestle_ceil_div(pestle_tensorise_steps(&t->p), t->how.parts);
  plan_slots(t);
}

pestle_status_t pestle_tensorise_emit(pestle_emit_t* e) {
  pestle_kir_builder_t* k = e->k;
  pestle_tiles_t t = {.e = e,
                      .reduce = e->nest->template.stage,
                      .last = (uint32_t)e->nest->stages.size - 1,
                      .how = pestle_tensorise_of(&e->nest->template)};
  if (!pestle_tensorise_find(e->nest, t.reduce, &t.p)) {
    return PESTLE_ERROR(INTERNAL, "kernel '%s': its product is none any more",
                        e->nest->name);
  }
  plan_tiles(&t);
  add_buffers(&t);
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t groups = pestle_kir_index(k, t.groups);
  t.group = pestle_kir_for(k, "g", zero, groups, 1, PESTLE_KIR_GROUP_X);
  if (t.size > 1) {
    t.rank = pestle_kir_for(k, "rank", zero, pestle_kir_index(k, t.size), 1,
                            PESTLE_KIR_CLUSTER);
  }
  pestle_kir_id_t lanes = pestle_kir_index(k, t.lanes);
  t.lane = pestle_kir_for(k, "lane", zero, lanes, 1, PESTLE_KIR_LANE_X);
  init_barriers(&t);
  t.warpgroup =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, t.lane, PESTLE_WARPGROUP);
  t.in_warpgroup =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, t.lane, PESTLE_WARPGROUP);
  pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_LT, t.warpgroup, 1));
  emit_copies(&t);
  pestle_kir_else(k);
  emit_products(&t);
  pestle_kir_end(k);
  if (t.how.parts > 1) emit_parts_results(&t);
  // Who has ended has no memory.
  if (t.size > 1) {
    pestle_kir_act(k, PESTLE_KIR_CLUSTER_SYNC, 0, 0, 0, 0);
    pestle_kir_end(k);
  }
  pestle_kir_end(k);
  pestle_kir_end(k);
  return NULL;
}
