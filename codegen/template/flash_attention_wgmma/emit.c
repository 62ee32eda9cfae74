// SPDX-License-Identifier: Apache-2.0
// Attention in one pass over the keys by warpgroups. As many groups as the target
// has units stay for the whole launch and take tiles of rows in turn:
//
//   warpgroup 0, one lane:  for tile: copy the rows of q;
//                           for block of keys: copy k and v to a slot each
//   the others, 64 rows:    for tile: for block of keys:
//                             scores = q k, both in shared memory
//                             sums += weights v, of the block before
//                             scores become weights, meanwhile
//                           the last stage, from sums and total
//
// The sums of a product have the layout of MMA's, a warp 16 rows, and so have the
// weights that are its tile a: they are rounded where they are. What is between
// the products is flash_attention_mma/rows.c.
//
// In shared memory a tile is columns of 64 elements (rows of 128 bytes, swizzled):
// of q and k along the taps, all rows of a column behind each other; of operands
// that lie along their rows, columns of 64 rows for each 64 taps.
#include "codegen/template/flash_attention_mma/rows.h"
#include "codegen/template/flash_attention_wgmma/flash_attention_wgmma.h"

enum {
  WARPGROUP = 128,
  CHUNK = 64,   // elements of a row of 128 bytes
  UNIT_K = 16,  // of one instruction
  SLOTS = 2,
  ROW_BYTES = 128,
  COPY_REGISTERS = 24,
  REGISTER_FILE = 65536,
};

// An operand, its map and where boxes of it wait.
typedef struct flash_tile_t {
  const pestle_flash_operand_t* from;
  const pestle_product_axes_t* batch;
  int64_t rows, taps;  // of a slot; whole chunks
  int64_t box_rows, box_taps;
  int64_t slots;
  uint32_t map, shared, full, empty;
} flash_tile_t;

// Which slot comes next, of a tile's slots in turn, and the parity of its phase.
typedef struct flash_turn_t {
  uint32_t state;  // private: the number of the turn, modulo two rounds
  int64_t slots;
} flash_turn_t;

typedef struct flash_slot_t {
  pestle_kir_id_t slot, phase;
} flash_slot_t;

typedef struct flash_wgmma_t {
  flash_rows_t r;
  pestle_emit_t* e;
  pestle_kir_builder_t* k;
  pestle_flash_wgmma_how_t how;
  pestle_flash_operand_t operands[3];
  flash_tile_t q, key, value;
  flash_turn_t tiles_turn, keys_turn, values_turn;
  int64_t row_tiles, tiles, steps, depth;
  uint32_t weights;
  pestle_kir_id_t lane, in_warpgroup, warpgroup, group;
  pestle_kir_id_t tile, batch;  // at hand: of the rows; of the batches
  pestle_kir_id_t first, last;  // blocks that its rows see
} flash_wgmma_t;

static pestle_kir_id_t at(const flash_wgmma_t* t, int64_t index) {
  return pestle_kir_index(t->k, index);
}

static pestle_kir_id_t address(const flash_wgmma_t* t, pestle_kir_op_t op,
                               uint32_t a, uint32_t b) {
  return pestle_kir_put(
      t->k,
      (pestle_kir_inst_t){
          .op = (uint16_t)op, .type = PESTLE_ADDR, .lanes = 1, .arg = {a, b}});
}

static pestle_kir_id_t ref(const flash_wgmma_t* t, uint32_t buffer,
                           pestle_kir_id_t index) {
  return address(t, PESTLE_KIR_REF, buffer, index);
}

static void act(const flash_wgmma_t* t, pestle_kir_op_t op, uint32_t a,
                uint32_t b) {
  pestle_kir_act(t->k, op, a, b, 0, 0);
}

static void open_leader(const flash_wgmma_t* t) {
  pestle_kir_if(t->k,
                pestle_kir_scalar_i(t->k, PESTLE_OP_EQ, t->in_warpgroup, 0));
}

// --- Buffers ---

static bool along_k(const flash_tile_t* x) {
  return x->from->k_stride == 1;
}

static int64_t slot_elements(const flash_tile_t* x) {
  return x->rows * x->taps;
}

static void put_word(pestle_kir_builder_t* k, uint64_t word) {
  if (!pestle_vec_push(&k->word, (uint32_t)word)) k->failed = true;
}

static void put_dim(pestle_kir_builder_t* k, int64_t extent, int64_t box,
                    int64_t stride) {
  put_word(k, (uint64_t)extent);
  put_word(k, (uint64_t)box);
  put_word(k, (uint64_t)stride);
  put_word(k, (uint64_t)stride >> 32);
}

// Dims of a view are the one along which elements lie, the other one, and the
// batch axes that move it, last first.
static void add_map(flash_wgmma_t* t, flash_tile_t* x, const char* name,
                    int64_t rows, int64_t taps) {
  pestle_kir_builder_t* k = t->k;
  const pestle_flash_operand_t* o = x->from;
  uint32_t buffer = t->e->buffer[o->tensor], rank = 2;
  if (k->failed) return;
  x->map = pestle_kir_add_buffer(k, name, PESTLE_KIR_TENSOR_MAP,
                                 k->buffer.data[buffer].dtype, 1, 1,
                                 PESTLE_KIR_READONLY);
  for (uint32_t i = 0; i < x->batch->count; ++i)
    rank += o->batch_stride[i] != 0;
  pestle_kir_table_t table = {(uint32_t)k->word.size, 5 + 4 * rank};
  put_word(k, buffer);
  put_word(k, rank);
  put_word(k, ROW_BYTES);
  put_word(k, (uint64_t)o->offset);
  put_word(k, (uint64_t)o->offset >> 32);
  if (along_k(x)) put_dim(k, taps, x->box_taps, 1);
  put_dim(k, rows, x->box_rows, o->row_stride);
  if (!along_k(x)) put_dim(k, taps, x->box_taps, o->k_stride);
  for (uint32_t i = x->batch->count; i-- > 0;) {
    if (o->batch_stride[i])
      put_dim(k, x->batch->extent[i], 1, o->batch_stride[i]);
  }
  if (k->failed || !pestle_vec_push(&k->table, table)) {
    k->failed = true;
    return;
  }
  k->buffer.data[x->map].layout = (uint16_t)k->table.size;
}

static uint32_t add_shared(flash_wgmma_t* t, const char* name,
                           pestle_dtype_t dtype, int64_t count,
                           uint32_t align) {
  uint32_t id =
      pestle_kir_add_buffer(t->k, name, PESTLE_KIR_SHARED, dtype, 1, count, 0);
  if (!t->k->failed) t->k->buffer.data[id].align = align;
  return id;
}

static void add_tile(flash_wgmma_t* t, flash_tile_t* x, const char* map,
                     const char* shared, int64_t rows, int64_t taps) {
  x->box_rows = along_k(x) ? x->rows : CHUNK;
  x->box_taps = CHUNK;
  add_map(t, x, map, rows, taps);
  x->shared =
      add_shared(t, shared, t->r.a.q.dtype, x->slots * slot_elements(x), 1024);
}

static int64_t chunks(int64_t count) {
  return (int64_t)pestle_align_up((size_t)count, CHUNK);
}

static void add_buffers(flash_wgmma_t* t) {
  const pestle_flash_attention_t* a = &t->r.a;
  int64_t depth = chunks(a->depth.all), columns = chunks(a->v_columns.all);
  t->q = (flash_tile_t){.from = &t->operands[0],
                        .batch = &a->batch,
                        .rows = t->r.tile,
                        .taps = depth,
                        .slots = 1};
  t->key = (flash_tile_t){.from = &t->operands[1],
                          .batch = &a->batch,
                          .rows = t->how.keys,
                          .taps = depth,
                          .slots = SLOTS};
  t->value = (flash_tile_t){.from = &t->operands[2],
                            .batch = &a->v_batch,
                            .rows = columns,
                            .taps = t->how.keys,
                            .slots = SLOTS};
  add_tile(t, &t->q, "map_q", "tile_q", a->rows.all, a->depth.all);
  add_tile(t, &t->key, "map_k", "tile_k", a->keys.all, a->depth.all);
  add_tile(t, &t->value, "map_v", "tile_v", a->v_columns.all, a->keys.all);
  // Barriers come last: tiles begin at multiples of 1024 bytes.
  flash_tile_t* const tiles[] = {&t->q, &t->key, &t->value};
  static const char* const full[] = {"full_q", "full_k", "full_v"};
  static const char* const empty[] = {"empty_q", "empty_k", "empty_v"};
  for (int i = 0; i < 3; ++i) {
    flash_tile_t* x = tiles[i];
    x->full = add_shared(t, full[i], PESTLE_MBAR, x->slots, 64);
    x->empty = add_shared(t, empty[i], PESTLE_MBAR, x->slots, 64);
  }
  pestle_flash_rows_add_registers(&t->r);
  t->weights = pestle_flash_registers(&t->r, "weights", PESTLE_U32, 4,
                                      t->how.keys / UNIT_K);
  t->tiles_turn.state =
      pestle_flash_registers(&t->r, "tiles_turn", PESTLE_I32, 1, 1);
  t->tiles_turn.slots = 1;
  t->keys_turn.state =
      pestle_flash_registers(&t->r, "keys_turn", PESTLE_I32, 1, 1);
  t->values_turn.state =
      pestle_flash_registers(&t->r, "values_turn", PESTLE_I32, 1, 1);
  t->keys_turn.slots = t->values_turn.slots = SLOTS;
}

// --- Turns ---

static pestle_kir_id_t number(const flash_wgmma_t* t, int64_t i) {
  return pestle_kir_int(t->k, PESTLE_I32, 1, i);
}

static void start_turn(const flash_wgmma_t* t, const flash_turn_t* turn) {
  pestle_kir_alloc(t->k, turn->state);
  pestle_flash_put(&t->r, turn->state, at(t, 0), number(t, 0));
}

static flash_slot_t take_turn(const flash_wgmma_t* t,
                              const flash_turn_t* turn) {
  pestle_kir_builder_t* k = t->k;
  int64_t round = 2 * turn->slots;
  pestle_kir_id_t state = pestle_flash_get(&t->r, turn->state, at(t, 0));
  // Its range is known so: an index of 32 bits will do.
  state = pestle_kir_scalar(k, PESTLE_OP_MAXIMUM, state, number(t, 0),
                            PESTLE_KIR_NONE);
  state = pestle_kir_scalar(k, PESTLE_OP_MINIMUM, state, number(t, round - 1),
                            PESTLE_KIR_NONE);
  state = pestle_kir_cast(k, state, PESTLE_INDEX);
  flash_slot_t s;
  s.slot = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, state, turn->slots);
  s.phase = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, state, turn->slots);
  pestle_kir_id_t next = pestle_kir_madi(k, state, 1, at(t, 1));
  next = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, next, round);
  pestle_flash_put(&t->r, turn->state, at(t, 0),
                   pestle_kir_cast(k, next, PESTLE_I32));
  return s;
}

// --- Tiles in turn ---

// Which tile is the |number|-th of the group's rounds: those of some heads stand by rows, the
// ones that see most keys first where rows see different ones (order.c).
static void find_tile(flash_wgmma_t* t, pestle_kir_id_t number) {
  pestle_kir_builder_t* k = t->k;
  int64_t heads = t->how.heads;
  pestle_kir_id_t part =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, number, heads * t->row_tiles);
  pestle_kir_id_t in =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, number, heads * t->row_tiles);
  t->tile = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, in, heads);
  if (t->r.visible.count)
    t->tile = pestle_kir_madi(k, t->tile, -1, at(t, t->row_tiles - 1));
  t->batch = pestle_kir_madi(
      k, part, heads, pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, in, heads));
}

// Opens a loop over the group's tiles; how many IFs it opens within. There and back a group
// has no tile in the last round where it would lie behind the last one.
static uint32_t open_rounds(flash_wgmma_t* t) {
  pestle_kir_builder_t* k = t->k;
  int64_t groups = t->tiles < t->how.groups ? t->tiles : t->how.groups;
  if (!t->how.back || groups == t->tiles) {
    find_tile(t, pestle_kir_for(k, "tile", t->group, at(t, t->tiles),
                                (int32_t)groups, PESTLE_KIR_SERIAL));
    return 0;
  }
  int64_t rounds = pestle_ceil_div(t->tiles, groups);
  pestle_kir_id_t round =
      pestle_kir_for(k, "round", at(t, 0), at(t, rounds), 1, PESTLE_KIR_SERIAL);
  pestle_kir_id_t odd = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, round, 2);
  pestle_kir_id_t in = pestle_kir_scalar(
      k, PESTLE_OP_SELECT, pestle_kir_scalar_i(k, PESTLE_OP_EQ, odd, 1),
      pestle_kir_madi(k, t->group, -1, at(t, groups - 1)), t->group);
  pestle_kir_id_t number = pestle_kir_madi(k, round, (int32_t)groups, in);
  bool whole = t->tiles % groups == 0;
  if (!whole) {
    pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_LT, number, t->tiles));
    number = pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, number, t->tiles - 1);
  }
  find_tile(t, number);
  return !whole;
}

// Opens the loop over this group's tiles; how many IFs it opens within, of rows
// and batches that may lie behind an end.
static uint32_t open_tiles(flash_wgmma_t* t) {
  const pestle_flash_attention_t* a = &t->r.a;
  start_turn(t, &t->tiles_turn);
  start_turn(t, &t->keys_turn);
  start_turn(t, &t->values_turn);
  uint32_t ends = open_rounds(t);
  pestle_flash_rows_bound(&t->r, t->tile);
  pestle_flash_rows_batch(&t->r, &t->r.at, t->batch);
  ends += pestle_flash_rows_open_ends(&t->r, t->batch, t->r.first_row);
  // What masks the scores may say how many keys there are.
  pestle_kir_id_t steps = pestle_emit_fold_steps(
      t->e, a->maximum, a->x_keys.reduce[0], t->how.keys, t->steps);
  if (steps == PESTLE_KIR_NONE) steps = at(t, t->steps);
  t->last = pestle_flash_rows_blocks(&t->r, t->r.first_row, t->r.last_row,
                                     steps, &t->first);
  return ends;
}

static pestle_kir_id_t open_blocks(const flash_wgmma_t* t,
                                   pestle_kir_id_t first) {
  return pestle_kir_for(t->k, "block", first, t->last, 1, PESTLE_KIR_SERIAL);
}

// --- The copying warpgroup ---

// The coordinate of the batch at hand, in the dims that it moves; NONE: none.
static pestle_kir_id_t batch_coord(const flash_wgmma_t* t,
                                   const flash_tile_t* x) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t coord = PESTLE_KIR_NONE;
  int64_t below = t->r.a.batch.all;
  // The first axis is the slowest dim.
  for (uint32_t i = 0; i < x->batch->count; ++i) {
    int64_t extent = x->batch->extent[i];
    below /= extent;
    if (!x->from->batch_stride[i]) continue;
    pestle_kir_id_t id =
        pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, t->batch, below);
    id = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, id, extent);
    coord =
        coord == PESTLE_KIR_NONE ? id : address(t, PESTLE_KIR_COORD, id, coord);
  }
  return coord;
}

// The boxes of |x| whose rows and taps begin there, to its slot.
static void copy_boxes(const flash_wgmma_t* t, const flash_tile_t* x,
                       const flash_slot_t* s, pestle_kir_id_t row,
                       pestle_kir_id_t tap) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t full = ref(t, x->full, s->slot);
  pestle_kir_id_t other =
      pestle_kir_madi(k, s->phase, -1, at(t, 1));  // of the round before
  pestle_kir_id_t batch = batch_coord(t, x);
  act(t, PESTLE_KIR_MBAR_WAIT, ref(t, x->empty, s->slot), other);
  act(t, PESTLE_KIR_MBAR_EXPECT, full, (uint32_t)(2 * slot_elements(x)));
  int64_t element = 0;
  for (int64_t i = 0; i < x->taps; i += x->box_taps) {
    for (int64_t j = 0; j < x->rows; j += x->box_rows) {
      pestle_kir_id_t to =
          pestle_kir_madi(k, s->slot, slot_elements(x), at(t, element));
      pestle_kir_id_t x0 = pestle_kir_madi(k, row, 1, at(t, j));
      pestle_kir_id_t x1 = pestle_kir_madi(k, tap, 1, at(t, i));
      if (along_k(x)) {
        pestle_kir_id_t swap = x0;
        x0 = x1;
        x1 = swap;
      }
      if (batch != PESTLE_KIR_NONE)
        x1 = address(t, PESTLE_KIR_COORD, x1, batch);
      pestle_kir_act(k, PESTLE_KIR_TILE_LOAD, ref(t, x->shared, to), x->map,
                     address(t, PESTLE_KIR_COORD, x0, x1), full);
      element += x->box_rows * x->box_taps;
    }
  }
}

static void copy_keys(flash_wgmma_t* t, pestle_kir_id_t block) {
  pestle_kir_id_t key = pestle_kir_madi(t->k, block, t->how.keys, at(t, 0));
  flash_slot_t s = take_turn(t, &t->keys_turn);
  copy_boxes(t, &t->key, &s, key, at(t, 0));
}

// In the order in which they are wanted: scores of a block are asked for before the
// values of the one before, and keys need not wait for the rows of the next tile.
static void emit_copies(flash_wgmma_t* t) {
  pestle_kir_builder_t* k = t->k;
  act(t, PESTLE_KIR_REGISTERS, (uint32_t)-COPY_REGISTERS, 0);
  open_leader(t);
  uint32_t ends = open_tiles(t);
  pestle_kir_if(k, pestle_kir_scalar(k, PESTLE_OP_LT, t->first, t->last,
                                     PESTLE_KIR_NONE));
  copy_keys(t, t->first);
  flash_slot_t s = take_turn(t, &t->tiles_turn);
  copy_boxes(t, &t->q, &s, t->r.first_row, at(t, 0));
  pestle_kir_id_t block = open_blocks(t, t->first);
  pestle_kir_id_t next = pestle_kir_madi(k, block, 1, at(t, 1));
  pestle_kir_if(
      k, pestle_kir_scalar(k, PESTLE_OP_LT, next, t->last, PESTLE_KIR_NONE));
  copy_keys(t, next);
  pestle_kir_end(k);
  s = take_turn(t, &t->values_turn);
  copy_boxes(t, &t->value, &s, at(t, 0),
             pestle_kir_madi(k, block, t->how.keys, at(t, 0)));
  pestle_kir_end(k);
  pestle_kir_end(k);
  pestle_emit_close_places(t->e, ends);
  pestle_kir_end(k);
  pestle_kir_end(k);
}

// --- The multiplying warpgroups ---

// Element of |x|'s slot at which 16 taps, number |u|, of rows from |row| on begin.
static pestle_kir_id_t operand_at(const flash_wgmma_t* t, const flash_tile_t* x,
                                  pestle_kir_id_t slot, pestle_kir_id_t row,
                                  pestle_kir_id_t u) {
  pestle_kir_builder_t* k = t->k;
  int64_t units = CHUNK / UNIT_K;
  pestle_kir_id_t chunk = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, u, units);
  pestle_kir_id_t in = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, u, units);
  pestle_kir_id_t from = pestle_kir_madi(k, slot, slot_elements(x), at(t, 0));
  from = pestle_kir_madi(k, chunk, CHUNK * x->rows, from);
  from = pestle_kir_madi(k, in, along_k(x) ? UNIT_K : UNIT_K * CHUNK, from);
  if (along_k(x)) from = pestle_kir_madi(k, row, CHUNK, from);
  return ref(t, x->shared, from);
}

static uint32_t how_of(const flash_wgmma_t* t, const flash_tile_t* b,
                       int64_t columns) {
  uint32_t how = (uint32_t)columns;
  if (!along_k(b)) how |= PESTLE_KIR_WGMMA_B_TRANSPOSED;
  if (t->r.a.q.dtype == PESTLE_F16) how |= PESTLE_KIR_WGMMA_F16;
  return how;
}

static void wait_full(const flash_wgmma_t* t, const flash_tile_t* x,
                      const flash_slot_t* s) {
  act(t, PESTLE_KIR_MBAR_WAIT, ref(t, x->full, s->slot), s->phase);
}

static void give_back(const flash_wgmma_t* t, const flash_tile_t* x,
                      const flash_slot_t* s) {
  open_leader(t);
  act(t, PESTLE_KIR_MBAR_ARRIVE, ref(t, x->empty, s->slot), 0);
  pestle_kir_end(t->k);
}

// Warpgroups ask for their products in turn, so that the rows of one are worked on
// while the products of the other are made: barrier 1 + i is that of the i-th.
static void await_turn(const flash_wgmma_t* t) {
  if (t->how.consumers == 2)
    act(t, PESTLE_KIR_SYNC, t->warpgroup, 2 * WARPGROUP);
}

static void pass_turn(const flash_wgmma_t* t) {
  if (t->how.consumers != 2) return;
  act(t, PESTLE_KIR_SYNC_ARRIVE,
      pestle_kir_madi(t->k, t->warpgroup, -1, at(t, 3)), 2 * WARPGROUP);
}

static void score(const flash_wgmma_t* t, const flash_slot_t* s,
                  pestle_kir_id_t own, pestle_kir_id_t u, uint32_t more) {
  pestle_kir_id_t zero = at(t, 0);
  pestle_kir_act(t->k, PESTLE_KIR_WGMMA, t->r.scores,
                 operand_at(t, &t->q, zero, own, u),
                 operand_at(t, &t->key, s->slot, zero, u),
                 how_of(t, &t->key, t->how.keys) | more);
}

// Asks for the scores of the next block.
static flash_slot_t ask_scores(const flash_wgmma_t* t) {
  pestle_kir_builder_t* k = t->k;
  flash_slot_t s = take_turn(t, &t->keys_turn);
  pestle_kir_id_t own = pestle_kir_madi(k, t->warpgroup, CHUNK, at(t, -CHUNK));
  int64_t units = pestle_ceil_div(t->r.a.depth.all, UNIT_K);
  pestle_kir_alloc(k, t->r.scores);
  wait_full(t, &t->key, &s);
  await_turn(t);
  act(t, PESTLE_KIR_WGMMA_FENCE, 0, 0);
  score(t, &s, own, at(t, 0), PESTLE_KIR_WGMMA_ZERO);
  if (units > 1) {
    score(t, &s, own,
          pestle_kir_for(k, "u", at(t, 1), at(t, units), 1, PESTLE_KIR_UNROLL),
          0);
    pestle_kir_end(k);
  }
  act(t, PESTLE_KIR_WGMMA_COMMIT, 0, 0);
  return s;
}

static void make_weights(flash_wgmma_t* t) {
  pestle_kir_alloc(t->k, t->weights);
  pestle_kir_id_t u = pestle_kir_unroll(t->k, "u", t->how.keys / UNIT_K);
  pestle_flash_put(&t->r, t->weights, u, pestle_flash_rows_rounded(&t->r, u));
  pestle_kir_end(t->k);
}

// Asks for the sums of the block whose weights there are.
static flash_slot_t ask_values(const flash_wgmma_t* t) {
  pestle_kir_builder_t* k = t->k;
  flash_slot_t s = take_turn(t, &t->values_turn);
  wait_full(t, &t->value, &s);
  act(t, PESTLE_KIR_WGMMA_FENCE, 0, 0);
  pestle_kir_id_t u = pestle_kir_unroll(k, "u", t->how.keys / UNIT_K);
  pestle_kir_act(k, PESTLE_KIR_WGMMA_RA, t->r.sums,
                 pestle_flash_get(&t->r, t->weights, u),
                 operand_at(t, &t->value, s.slot, at(t, 0), u),
                 how_of(t, &t->value, t->r.columns));
  pestle_kir_end(k);
  act(t, PESTLE_KIR_WGMMA_COMMIT, 0, 0);
  return s;
}

static void take_values(const flash_wgmma_t* t, const flash_slot_t* s) {
  act(t, PESTLE_KIR_WGMMA_WAIT, 0, 0);
  give_back(t, &t->value, s);
}

// All blocks of a tile, of which there is one at least: while the rows of one are
// worked on the values of the one before are added.
static void take_blocks(flash_wgmma_t* t, const flash_slot_t* q) {
  pestle_kir_builder_t* k = t->k;
  flash_slot_t s = ask_scores(t), v;
  pass_turn(t);
  act(t, PESTLE_KIR_WGMMA_WAIT, 0, 0);
  give_back(t, &t->key, &s);
  pestle_flash_rows_maximum(&t->r, t->first);
  pestle_flash_rows_scale(&t->r);
  pestle_flash_rows_round(&t->r);
  make_weights(t);
  pestle_kir_id_t block =
      open_blocks(t, pestle_kir_madi(k, t->first, 1, at(t, 1)));
  s = ask_scores(t);
  v = ask_values(t);
  pass_turn(t);
  act(t, PESTLE_KIR_WGMMA_WAIT, 1, 0);
  give_back(t, &t->key, &s);
  pestle_flash_rows_maximum(&t->r, block);
  pestle_flash_rows_scale(&t->r);
  pestle_flash_rows_round(&t->r);
  take_values(t, &v);
  pestle_flash_rows_scale_sums(&t->r);
  make_weights(t);
  pestle_kir_end(k);
  give_back(t, &t->q, q);
  v = ask_values(t);
  take_values(t, &v);
}

// Which rows a lane has.
static void find_seat(flash_wgmma_t* t) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t in =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, t->in_warpgroup, 32);
  pestle_kir_id_t warp =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, t->in_warpgroup, 32);
  t->r.quad = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, in, 4);
  t->r.row = pestle_kir_madi(k, warp, 16,
                             pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, in, 4));
  t->r.row = pestle_kir_madi(k, t->warpgroup, CHUNK,
                             pestle_kir_madi(k, t->r.row, 1, at(t, -CHUNK)));
}

static void emit_rows(flash_wgmma_t* t) {
  pestle_kir_builder_t* k = t->k;
  int64_t registers = (REGISTER_FILE / (WARPGROUP * (1 + t->how.consumers)) /
                           8 * 8 * (1 + t->how.consumers) -
                       COPY_REGISTERS) /
                      t->how.consumers / 8 * 8;
  if (registers > 240) registers = 240;
  act(t, PESTLE_KIR_REGISTERS, (uint32_t)registers, 0);
  // The first one begins.
  if (t->how.consumers == 2) {
    pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_EQ, t->warpgroup, 2));
    pass_turn(t);
    pestle_kir_end(k);
  }
  uint32_t ends = open_tiles(t);
  find_seat(t);
  t->r.row = pestle_kir_madi(k, t->tile, t->r.tile, t->r.row);
  pestle_flash_rows_start(&t->r);
  // Rows that see no key are not copied: nothing would hold the warps of a warpgroup together
  // between a wait for them and the next one.
  pestle_kir_if(k, pestle_kir_scalar(k, PESTLE_OP_LT, t->first, t->last,
                                     PESTLE_KIR_NONE));
  flash_slot_t q = take_turn(t, &t->tiles_turn);
  wait_full(t, &t->q, &q);
  take_blocks(t, &q);
  pestle_kir_end(k);
  pestle_flash_rows_results(&t->r, pestle_kir_index(k, 0), t->r.columns / 8);
  pestle_emit_close_places(t->e, ends);
  pestle_kir_end(k);
}

// --- The whole ---

static void init_barriers(const flash_wgmma_t* t) {
  const flash_tile_t* const tiles[] = {&t->q, &t->key, &t->value};
  pestle_kir_if(t->k, pestle_kir_scalar_i(t->k, PESTLE_OP_EQ, t->lane, 0));
  for (int i = 0; i < 3; ++i) {
    for (int64_t s = 0; s < tiles[i]->slots; ++s) {
      act(t, PESTLE_KIR_MBAR_INIT, ref(t, tiles[i]->full, at(t, s)), 1);
      act(t, PESTLE_KIR_MBAR_INIT, ref(t, tiles[i]->empty, at(t, s)),
          (uint32_t)t->how.consumers);
    }
  }
  act(t, PESTLE_KIR_MBAR_FENCE, 0, 0);
  pestle_kir_end(t->k);
  pestle_kir_barrier(t->k);
}

static void plan(flash_wgmma_t* t) {
  const pestle_flash_attention_t* a = &t->r.a;
  t->r.rounded = true;
  t->r.tile = CHUNK * t->how.consumers;
  t->r.keys = t->r.block = t->how.keys;
  t->r.columns = a->v_columns.all;
  t->row_tiles = pestle_ceil_div(a->rows.all, t->r.tile);
  t->tiles = t->row_tiles * a->batch.all;
  t->steps = pestle_ceil_div(a->keys.all, t->how.keys);
  t->r.at = (shared_emit_t){.e = t->e, .k = t->k};
}

pestle_status_t pestle_flash_attention_wgmma_emit(pestle_emit_t* e) {
  pestle_kir_builder_t* k = e->k;
  flash_wgmma_t t = {.e = e,
                     .k = k,
                     .how = pestle_flash_wgmma_of(&e->nest->template),
                     .r = {.e = e, .k = k}};
  if (!pestle_flash_wgmma_find(e->nest, &t.r.a, t.operands)) {
    return PESTLE_ERROR(INTERNAL, "kernel '%s': it is no attention any more",
                        e->nest->name);
  }
  plan(&t);
  add_buffers(&t);
  int64_t lanes = WARPGROUP * (1 + t.how.consumers);
  int64_t groups = t.tiles < t.how.groups ? t.tiles : t.how.groups;
  t.group =
      pestle_kir_for(k, "g", at(&t, 0), at(&t, groups), 1, PESTLE_KIR_GROUP_X);
  t.lane =
      pestle_kir_for(k, "lane", at(&t, 0), at(&t, lanes), 1, PESTLE_KIR_LANE_X);
  init_barriers(&t);
  t.warpgroup = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, t.lane, WARPGROUP);
  t.in_warpgroup =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, t.lane, WARPGROUP);
  pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_LT, t.warpgroup, 1));
  size_t scope = pestle_emit_scope(e);
  emit_copies(&t);
  pestle_emit_unscope(e, scope);
  pestle_kir_else(k);
  scope = pestle_emit_scope(e);
  emit_rows(&t);
  pestle_emit_unscope(e, scope);
  pestle_kir_end(k);
  pestle_kir_end(k);
  pestle_kir_end(k);
  return NULL;
}
