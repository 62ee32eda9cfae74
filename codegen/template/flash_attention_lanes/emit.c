// SPDX-License-Identifier: Apache-2.0
// Attention of f32 in one pass over the keys. A lane has four rows of a group's and,
// of scores and results, each sixteenth vector of columns:
//
//   q to shared memory
//   for each block of keys:  (the next one of k and v is on its way)
//     scores = q k; x of them, and its maximum m of each row, over sixteen lanes
//     what was summed so far is scaled by exp(old m - m)
//     weights = exp(x - m) go to shared memory, their sum is added
//     sums += weights v
//   the last stage, from sums and total
//
// Boxes are moved and multiplied as shared_tile's are.
#include <math.h>

#include "codegen/template/flash_attention_lanes/flash_attention_lanes.h"
#include "codegen/template/flash_attention_mma/rows.h"

enum {
  KEYS = PESTLE_FLASH_LANES_KEYS,
  ACROSS = PESTLE_FLASH_LANES_ACROSS,
  DOWN = PESTLE_FLASH_LANES_DOWN,
  VECTOR = 4,   // keys of a lane
  UNROLL = 16,  // taps
};

typedef struct flash_lanes_t {
  flash_rows_t r;  // its accesses, places and bounds; not its fragments
  pestle_emit_t* e;
  pestle_kir_builder_t* k;
  pestle_shared_tile_t tile_s, tile_o;
  shared_emit_t s, o;  // the two products
  int64_t rows, depth, columns, steps, width;
  uint32_t weights;  // shared, rows of a key side by side
  pestle_kir_id_t batch, lane, first, last;
} flash_lanes_t;

static pestle_kir_id_t at(const flash_lanes_t* t, int64_t i) {
  return pestle_kir_index(t->k, i);
}

static pestle_kir_id_t op2(const flash_lanes_t* t, pestle_op_t op,
                           pestle_kir_id_t a, pestle_kir_id_t b) {
  return pestle_kir_scalar(t->k, op, a, b, PESTLE_KIR_NONE);
}

static pestle_kir_id_t get(const flash_lanes_t* t, uint32_t buffer, int64_t i) {
  return pestle_flash_get(&t->r, buffer, at(t, i));
}

static void set(const flash_lanes_t* t, uint32_t buffer, int64_t i,
                pestle_kir_id_t value) {
  pestle_flash_put(&t->r, buffer, at(t, i), value);
}

static pestle_kir_id_t number(const flash_lanes_t* t, double x) {
  return pestle_kir_float(t->k, PESTLE_F32, 1, x);
}

// --- Products ---

// Sums += boxes of |slot|, a few taps at once: |taps| of them, a multiple.
static void multiply(flash_lanes_t* t, shared_emit_t* of,
                     pestle_shared_tile_t* tile, pestle_kir_id_t slot,
                     int64_t taps) {
  pestle_kir_id_t a = of->from_a, b = of->from_b;
  pestle_kir_id_t step = pestle_kir_for(
      t->k, "taps", at(t, 0), at(t, taps / UNROLL), 1, PESTLE_KIR_SERIAL);
  tile->k = UNROLL;
  of->from_a = pestle_kir_madi(t->k, step, UNROLL * of->a.pitch, a);
  of->from_b = pestle_kir_madi(t->k, step, UNROLL * of->b.pitch, b);
  of->from_b = pestle_kir_madi(t->k, slot, of->b.slot, of->from_b);
  pestle_shared_tile_multiply(of, at(t, 0));
  pestle_kir_end(t->k);
  tile->k = taps;
  of->from_a = a;
  of->from_b = b;
}

static void clear(const flash_lanes_t* t, uint32_t buffer) {
  int64_t count = t->k->failed ? 1 : (int64_t)t->k->buffer.data[buffer].count;
  pestle_flash_fill(&t->r, buffer, count, 0);
}

// --- Rows ---

static pestle_kir_id_t row_at(const flash_lanes_t* t, int64_t l) {
  pestle_kir_id_t row = pestle_kir_madi(t->k, t->r.row, 1, at(t, l));
  if (t->r.a.rows.all % t->rows) {
    row =
        pestle_kir_scalar_i(t->k, PESTLE_OP_MINIMUM, row, t->r.a.rows.all - 1);
  }
  return row;
}

// x of |width| scores of a row from |key| on, counted in such vectors.
static pestle_kir_id_t x_of(flash_lanes_t* t, int64_t l, pestle_kir_id_t key,
                            pestle_kir_id_t scores) {
  int64_t keys = t->r.a.keys.all / t->width;
  bool tail = t->r.a.keys.all % KEYS != 0;
  pestle_kir_id_t exists = PESTLE_KIR_NONE;
  if (tail) {
    exists = pestle_kir_scalar_i(t->k, PESTLE_OP_LT, key, keys);
    key = pestle_kir_scalar_i(t->k, PESTLE_OP_MINIMUM, key, keys - 1);
  }
  pestle_kir_id_t x =
      pestle_flash_x(&t->r, row_at(t, l), key, scores, t->r.a.x);
  if (!tail) return x;
  if (t->width > 1) exists = pestle_kir_splat(t->k, exists, (unsigned)t->width);
  return pestle_kir_scalar(
      t->k, PESTLE_OP_SELECT, exists, x,
      pestle_kir_float(t->k, PESTLE_F32, (unsigned)t->width, -INFINITY));
}

// The four of a lane, as x of them.
static pestle_kir_id_t x_of_four(flash_lanes_t* t, int64_t l,
                                 pestle_kir_id_t key, pestle_kir_id_t four) {
  if (t->width == VECTOR) return x_of(t, l, key, four);
  pestle_kir_id_t x[VECTOR];
  for (uint32_t i = 0; i < VECTOR; ++i) {
    pestle_kir_id_t one = pestle_kir_madi(t->k, key, VECTOR, at(t, i));
    x[i] = x_of(t, l, one, pestle_kir_extract(t->k, four, i));
  }
  pestle_kir_id_t low = pestle_kir_pair(t->k, x[0], x[1]);
  return pestle_flash_pick(&t->r, low, pestle_kir_pair(t->k, x[2], x[3]), 0, 4);
}

// Scores become weights; maxima, totals and sums follow.
static void take_scores(flash_lanes_t* t, pestle_kir_id_t step) {
  pestle_kir_builder_t* k = t->k;
  int64_t vectors = t->columns / ACROSS / t->o.vector;
  pestle_kir_id_t key =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, t->s.column, VECTOR);
  key = pestle_kir_madi(k, step, KEYS / VECTOR, key);
  for (int64_t l = 0; l < DOWN; ++l) {
    pestle_kir_id_t x = x_of_four(t, l, key, get(t, t->s.sums, l));
    pestle_kir_id_t most = pestle_kir_reduce(k, x, PESTLE_OP_MAXIMUM);
    pestle_kir_id_t old = get(t, t->r.most, l);
    most = pestle_kir_sg_reduce(k, op2(t, PESTLE_OP_MAXIMUM, old, most),
                                PESTLE_OP_MAXIMUM, ACROSS);
    pestle_kir_id_t none = op2(t, PESTLE_OP_EQ, most, number(t, -INFINITY));
    pestle_kir_id_t safe =
        pestle_kir_scalar(k, PESTLE_OP_SELECT, none, number(t, 0), most);
    pestle_kir_id_t scale = pestle_kir_scalar(
        k, t->r.a.power, op2(t, PESTLE_OP_SUBTRACT, old, safe), PESTLE_KIR_NONE,
        PESTLE_KIR_NONE);
    x = op2(t, PESTLE_OP_SUBTRACT, x, pestle_kir_splat(k, safe, VECTOR));
    x = pestle_kir_scalar(k, t->r.a.power, x, PESTLE_KIR_NONE, PESTLE_KIR_NONE);
    pestle_kir_id_t all =
        op2(t, PESTLE_OP_MULTIPLY, get(t, t->r.all, l), scale);
    set(t, t->r.all, l,
        op2(t, PESTLE_OP_ADD, all, pestle_kir_reduce(k, x, PESTLE_OP_ADD)));
    set(t, t->r.most, l, most);
    set(t, t->s.sums, l, x);
    for (int64_t j = 0; j < vectors; ++j) {
      pestle_kir_id_t sum = get(t, t->o.sums, l * vectors + j);
      pestle_kir_id_t by = scale;
      if (t->o.vector > 1) by = pestle_kir_splat(k, by, (unsigned)t->o.vector);
      set(t, t->o.sums, l * vectors + j, op2(t, PESTLE_OP_MULTIPLY, sum, by));
    }
  }
}

// To shared memory: of each of its keys a lane has four rows side by side.
static void put_weights(flash_lanes_t* t) {
  pestle_kir_builder_t* k = t->k;
  for (uint32_t i = 0; i < VECTOR; ++i) {
    pestle_kir_id_t one[DOWN];
    for (int64_t l = 0; l < DOWN; ++l)
      one[l] = pestle_kir_extract(k, get(t, t->s.sums, l), i);
    pestle_kir_id_t low = pestle_kir_pair(k, one[0], one[1]);
    pestle_kir_id_t four =
        pestle_flash_pick(&t->r, low, pestle_kir_pair(k, one[2], one[3]), 0, 4);
    pestle_kir_id_t to = pestle_kir_madi(k, t->s.column, 1, at(t, i));
    to = pestle_kir_madi(k, to, t->o.a.pitch, t->s.row);
    pestle_kir_store(k, t->weights, to, four, PESTLE_KIR_NONE, 16);
  }
}

// --- All blocks ---

static void fetch(flash_lanes_t* t, pestle_kir_id_t step) {
  t->s.b.tile = step;
  pestle_shared_tile_fetch(&t->s, &t->s.b, at(t, 0), at(t, 0));
  pestle_shared_tile_fetch(&t->o, &t->o.b, step, at(t, 0));
}

static void arrive(flash_lanes_t* t) {
  pestle_shared_tile_put(&t->s, &t->s.b, at(t, 0));
  pestle_shared_tile_put(&t->o, &t->o.b, at(t, 0));
}

static void take_blocks(flash_lanes_t* t) {
  pestle_kir_builder_t* k = t->k;
  const pestle_flash_attention_t* a = &t->r.a;
  pestle_flash_fill(&t->r, t->r.most, DOWN, -INFINITY);
  pestle_flash_fill(&t->r, t->r.all, DOWN, 0);
  clear(t, t->o.sums);
  pestle_shared_tile_fetch(&t->s, &t->s.a, at(t, 0), at(t, 0));
  pestle_shared_tile_put(&t->s, &t->s.a, at(t, 0));
  pestle_kir_id_t steps = pestle_emit_fold_steps(
      t->e, a->maximum, a->x_keys.reduce[0], KEYS, t->steps);
  if (steps == PESTLE_KIR_NONE) steps = at(t, t->steps);
  t->last = pestle_flash_rows_blocks(&t->r, t->r.first_row, t->r.last_row,
                                     steps, &t->first);
  pestle_kir_id_t step =
      pestle_kir_for(k, "block", t->first, t->last, 1, PESTLE_KIR_SERIAL);
  fetch(t, step);
  pestle_kir_barrier(k);  // who read the block before has done so
  arrive(t);
  pestle_kir_barrier(k);
  clear(t, t->s.sums);
  multiply(t, &t->s, &t->tile_s, at(t, 0), t->depth);
  take_scores(t, step);
  put_weights(t);
  pestle_kir_barrier(k);
  multiply(t, &t->o, &t->tile_o, at(t, 0), KEYS);
  pestle_kir_end(k);
}

// --- The last stage ---

static void give_results(flash_lanes_t* t) {
  pestle_kir_builder_t* k = t->k;
  int64_t vectors = t->columns / ACROSS / t->o.vector, wide = t->o.vector;
  bool rest = t->r.a.rows.all % t->rows != 0;
  pestle_kir_id_t first =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, t->o.column, wide);
  int64_t width = t->r.width_columns;
  pestle_kir_alloc(k, t->r.total);
  t->r.pair = pestle_flash_registers(&t->r, "shown", PESTLE_F32, width, 1);
  pestle_kir_alloc(k, t->r.pair);
  for (int64_t l = 0; l < DOWN; ++l) {
    pestle_kir_id_t total =
        pestle_kir_sg_reduce(k, get(t, t->r.all, l), PESTLE_OP_ADD, ACROSS);
    pestle_kir_id_t row = pestle_kir_madi(k, t->r.row, 1, at(t, l));
    if (rest) {
      pestle_kir_if(k,
                    pestle_kir_scalar_i(k, PESTLE_OP_LT, row, t->r.a.rows.all));
    }
    set(t, t->r.total, 0, total);
    for (int64_t j = 0; j < vectors; ++j) {
      pestle_kir_id_t sum = get(t, t->o.sums, l * vectors + j);
      pestle_kir_id_t column = pestle_kir_madi(k, first, 1, at(t, j * ACROSS));
      for (int64_t i = 0; i < wide / width; ++i) {
        pestle_kir_id_t part =
            width == wide ? sum
            : width > 1
                ? pestle_flash_pick(&t->r, sum, sum, (uint32_t)(i * width),
                                    (unsigned)width)
                : pestle_kir_extract(k, sum, (uint32_t)i);
        pestle_flash_result(&t->r, row_at(t, l),
                            pestle_kir_madi(k, column, wide / width, at(t, i)),
                            part);
      }
    }
    if (rest) pestle_kir_end(k);
  }
}

// --- The whole ---

static void add_box(flash_lanes_t* t, shared_emit_t* of, const char* name,
                    const pestle_product_side_t* side,
                    const pestle_product_axes_t* rows,
                    const pestle_product_axes_t* depth, int64_t count,
                    shared_box_t* box) {
  pestle_flash_add_run(&t->r, name, side->along_k ? depth->all : rows->all,
                       side->run, &box->run_axis, &box->lane_axis);
  pestle_shared_tile_add_box(of, name, side, rows, count, box);
}

static void make_products(flash_lanes_t* t) {
  const pestle_flash_attention_t* a = &t->r.a;
  int64_t each = t->columns / ACROSS;
  t->tile_s = (pestle_shared_tile_t){.m = t->rows,
                                     .n = KEYS,
                                     .k = t->depth,
                                     .r = DOWN,
                                     .c = KEYS / ACROSS,
                                     .slots = 1};
  t->tile_o = t->tile_s;
  t->tile_o.n = t->columns;
  t->tile_o.c = each;
  t->tile_o.k = KEYS;
  t->s = (shared_emit_t){.e = t->e, .k = t->k, .t = &t->tile_s};
  t->o = (shared_emit_t){.e = t->e, .k = t->k, .t = &t->tile_o};
  t->s.lanes = t->o.lanes = t->rows / DOWN * ACROSS;
  t->s.p.k = a->depth;
  t->o.p.k = a->v_keys;
  t->s.p.sums = t->o.p.sums = PESTLE_F32;
  t->s.row_vector = t->o.row_vector = DOWN;
  t->s.vector = VECTOR;
  t->o.vector = each < VECTOR ? each : VECTOR;
  add_box(t, &t->s, "tile_q", &a->q, &a->rows, &a->depth, t->rows, &t->s.a);
  add_box(t, &t->s, "tile_k", &a->k, &a->keys, &a->depth, KEYS, &t->s.b);
  add_box(t, &t->o, "tile_v", &a->v, &a->v_columns, &a->v_keys, t->columns,
          &t->o.b);
  // Weights lie as a box of rows would that came turned.
  t->o.a = t->s.a;
  t->o.a.pitch = t->rows + 4;
  t->o.a.slot = KEYS * t->o.a.pitch;
  t->weights = pestle_kir_add_buffer(t->k, "weights", PESTLE_KIR_SHARED,
                                     PESTLE_F32, 1, t->o.a.slot, 0);
  t->o.a.buffer = t->weights;
}

static void add_registers(flash_lanes_t* t) {
  const pestle_flash_attention_t* a = &t->r.a;
  t->width = a->keys.all % VECTOR ? 1 : VECTOR;
  pestle_flash_attention_visible(t->e->nest, a, &t->r.visible);
  t->r.width_keys = t->width;
  t->r.width_columns = a->v_columns.all % t->o.vector ? 1 : t->o.vector;
  pestle_flash_add_run(&t->r, "key", a->keys.all, t->width, &t->r.key_run,
                       &t->r.key_lane);
  pestle_flash_add_run(&t->r, "column", a->v_columns.all, t->r.width_columns,
                       &t->r.column_run, &t->r.column_lane);
  t->r.pair = pestle_flash_registers(&t->r, "pair", PESTLE_F32, t->width, 1);
  t->r.total = pestle_flash_registers(&t->r, "total", PESTLE_F32, 1, 1);
  t->r.most = pestle_flash_registers(&t->r, "most", PESTLE_F32, 1, DOWN);
  t->r.all = pestle_flash_registers(&t->r, "all", PESTLE_F32, 1, DOWN);
}

static void open_groups(flash_lanes_t* t) {
  pestle_kir_builder_t* k = t->k;
  const pestle_flash_attention_t* a = &t->r.a;
  int64_t tiles = pestle_ceil_div(a->rows.all, t->rows);
  pestle_kir_id_t g = pestle_kir_for(
      k, "g", at(t, 0), at(t, tiles * a->batch.all), 1, PESTLE_KIR_GROUP_X);
  t->lane = pestle_kir_for(k, "lane", at(t, 0), at(t, t->s.lanes), 1,
                           PESTLE_KIR_LANE_X);
  pestle_kir_id_t tile = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, g, tiles);
  if (t->r.visible.count) tile = pestle_kir_madi(k, tile, -1, at(t, tiles - 1));
  t->batch = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, g, tiles);
  t->s.lane = t->o.lane = t->lane;
  t->s.a.tile = tile;
  t->o.b.tile = at(t, 0);
  pestle_flash_rows_bound(&t->r, tile);
  pestle_shared_tile_start_sums(&t->s);
  pestle_shared_tile_start_sums(&t->o);
  t->r.row = pestle_kir_madi(k, tile, t->rows, t->s.row);
  pestle_flash_rows_batch(&t->r, &t->s, t->batch);
}

pestle_status_t pestle_flash_attention_lanes_emit(pestle_emit_t* e) {
  flash_lanes_t t = {.e = e,
                     .k = e->k,
                     .rows = e->nest->template.ints[0],
                     .r = {.e = e, .k = e->k, .keys = KEYS, .block = KEYS}};
  if (!pestle_flash_lanes_find(e->nest, &t.r.a)) {
    return PESTLE_ERROR(INTERNAL, "kernel '%s': it is no attention any more",
                        e->nest->name);
  }
  t.depth = pestle_flash_attention_pad(t.r.a.depth.all);
  t.columns = pestle_flash_lanes_pad(t.r.a.v_columns.all);
  t.steps = pestle_ceil_div(t.r.a.keys.all, KEYS);
  t.r.tile = t.rows;
  t.r.columns = t.columns;
  make_products(&t);
  t.r.at = t.s;
  add_registers(&t);
  open_groups(&t);
  uint32_t ends = pestle_flash_rows_open_ends(&t.r, t.batch, t.r.first_row);
  take_blocks(&t);
  give_results(&t);
  pestle_emit_close_places(e, ends);
  pestle_kir_end(e->k);
  pestle_kir_end(e->k);
  return NULL;
}
