// SPDX-License-Identifier: Apache-2.0
// Attention in one pass over the keys, by groups of four subgroups that have 16
// rows each:
//
//   q's rows as fragments
//   for each block of keys:  (the next one of k and v is on its way)
//     scores = q k, in registers; x of them, and its maximum m of each row
//     what was summed so far is scaled by exp(old m - m)
//     w = exp(x - m), its sum, and sums += w v
//   the last stage, from sums and total
//
// A lane has rows g and g + 8 of its subgroup, g = lane / 4, and of every eight
// columns two. Rows whose keys were all -inf so far take 0 for m: their weights
// are 0 then, and not NaN. Weights are multiplied as two narrow floats each, the
// rounded one and what it lost, so that they have 16 bits and not 8.
#include <math.h>

#include "base/bits.h"
#include "codegen/template/flash_attention_mma/flash_attention_mma.h"
#include "codegen/template/shared_tile/emit.h"

enum { SUBGROUP_ROWS = 16, QUAD = 4 };

typedef struct flash_t {
  pestle_emit_t* e;
  pestle_kir_builder_t* k;
  pestle_flash_attention_t a;
  shared_emit_t s, o;            // the two products
  int64_t keys, depth, columns;  // of a block; padded
  int64_t steps, width_keys, width_columns;
  uint32_t query, scores, sums, part, weights, pair, total;
  uint32_t most, next, safe, scale, all;  // of a lane's two rows
  uint32_t key_run, key_lane, column_run, column_lane;
  pestle_kir_id_t batch, row, quad;
} flash_t;

static pestle_kir_id_t op2(const flash_t* t, pestle_op_t op, pestle_kir_id_t a,
                           pestle_kir_id_t b) {
  return pestle_kir_scalar(t->k, op, a, b, PESTLE_KIR_NONE);
}

static pestle_kir_id_t op1(const flash_t* t, pestle_op_t op,
                           pestle_kir_id_t a) {
  return pestle_kir_scalar(t->k, op, a, PESTLE_KIR_NONE, PESTLE_KIR_NONE);
}

static pestle_kir_id_t get(const flash_t* t, uint32_t buffer,
                           pestle_kir_id_t index) {
  unsigned lanes = t->k->failed ? 1 : t->k->buffer.data[buffer].lanes;
  return pestle_kir_load(t->k, buffer, lanes, index, PESTLE_KIR_NONE, 0);
}

static void put(const flash_t* t, uint32_t buffer, pestle_kir_id_t index,
                pestle_kir_id_t value) {
  pestle_kir_store(t->k, buffer, index, value, PESTLE_KIR_NONE, 0);
}

static pestle_kir_id_t at(const flash_t* t, int64_t index) {
  return pestle_kir_index(t->k, index);
}

static pestle_kir_id_t pick(const flash_t* t, pestle_kir_id_t a,
                            pestle_kir_id_t b, uint32_t first, uint32_t step,
                            unsigned count) {
  uint32_t lane[4];
  for (uint32_t i = 0; i < count; ++i)
    lane[i] = first + i * step;
  return pestle_kir_shuffle(t->k, a, b, lane, count);
}

// What both rows have, for the four sums of a fragment.
static pestle_kir_id_t by_rows(const flash_t* t, uint32_t buffer) {
  pestle_kir_id_t low = pestle_kir_splat(t->k, get(t, buffer, at(t, 0)), 2);
  pestle_kir_id_t high = pestle_kir_splat(t->k, get(t, buffer, at(t, 1)), 2);
  return pick(t, low, high, 0, 1, 4);
}

static uint32_t registers(flash_t* t, const char* name, pestle_dtype_t dtype,
                          int64_t lanes, int64_t count) {
  return pestle_kir_add_buffer(t->k, name, PESTLE_KIR_PRIVATE, dtype,
                               (unsigned)lanes, count, 0);
}

static void fill(flash_t* t, uint32_t buffer, int64_t count, double value) {
  unsigned lanes = t->k->failed ? 1 : t->k->buffer.data[buffer].lanes;
  pestle_kir_alloc(t->k, buffer);
  pestle_kir_id_t i = pestle_kir_unroll(t->k, "i", count);
  put(t, buffer, i, pestle_kir_float(t->k, PESTLE_F32, lanes, value));
  pestle_kir_end(t->k);
}

// --- One block of keys ---

static void mma(flash_t* t, uint32_t sums, pestle_kir_id_t index,
                pestle_kir_id_t a, pestle_kir_id_t b) {
  uint32_t how =
      t->a.q.dtype == PESTLE_F16 ? PESTLE_KIR_MMA_F16 : PESTLE_KIR_MMA_BF16;
  pestle_kir_id_t sum = pestle_kir_put(
      t->k, (pestle_kir_inst_t){.op = PESTLE_KIR_MMA,
                                .type = PESTLE_F32,
                                .lanes = 4,
                                .arg = {a, b, get(t, sums, index), how}});
  put(t, sums, index, sum);
}

// Both halves of 16 columns of |b|, times |a|.
static void mma_pair(flash_t* t, uint32_t sums, pestle_kir_id_t j,
                     pestle_kir_id_t a, pestle_kir_id_t b) {
  for (uint32_t h = 0; h < 2; ++h) {
    mma(t, sums, pestle_kir_madi(t->k, j, 2, at(t, h)), a,
        pick(t, b, b, 2 * h, 1, 2));
  }
}

static void make_scores(flash_t* t, pestle_kir_id_t slot) {
  int64_t wide = t->keys / 16;
  fill(t, t->scores, t->keys / 8, 0);
  pestle_kir_id_t from = pestle_kir_madi(t->k, slot, t->s.b.slot, t->s.from_b);
  pestle_kir_id_t u = pestle_kir_unroll(t->k, "u", t->depth / 16);
  pestle_shared_tile_load_fragments(&t->s, &t->s.b, t->part, wide, from, u);
  pestle_kir_id_t j = pestle_kir_unroll(t->k, "j", wide);
  mma_pair(t, t->scores, j, get(t, t->query, u), get(t, t->part, j));
  pestle_kir_end(t->k);
  pestle_kir_end(t->k);
}

// |width| values in |t->pair| as the box of |stage|'s tensor that is read at
// these axes, of which the last one may be a vector.
static void show(flash_t* t, uint32_t stage, uint32_t buffer,
                 const pestle_product_axes_t* const* kinds, uint32_t count,
                 uint32_t run_axis, int64_t width) {
  pestle_emit_t* e = t->e;
  pestle_nest_t* nest = e->nest;
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  pestle_box_t* box = &e->box[s->tensors[0]];
  uint32_t d = 0;
  e->buffer[s->tensors[0]] = buffer;
  e->ready[s->tensors[0]] = true;
  box->known = true;
  box->count = width;
  for (uint32_t g = 0; g < count; ++g) {
    for (uint32_t i = 0; i < kinds[g]->count; ++i, ++d) {
      bool runs = width > 1 && g + 1 == count;
      box->extent[d] = runs ? width : 1;
      box->stride[d] = runs ? 1 : width;
      box->origin[d] =
          runs ? pestle_affine_scale(nest, pestle_affine_axis(nest, run_axis),
                                     width)
               : e->coord[kinds[g]->reduce[i]];
    }
  }
}

// x of |scores|, |width| of them from |key| (in vectors) on.
static pestle_kir_id_t emit_x(flash_t* t, pestle_kir_id_t row,
                              pestle_kir_id_t key, pestle_kir_id_t scores) {
  const pestle_flash_attention_t* a = &t->a;
  const pestle_product_axes_t* const kinds[3] = {&a->x_batch, &a->x_rows,
                                                 &a->x_keys};
  int64_t width = t->width_keys, keys = a->keys.all / width;
  pestle_kir_id_t exists = PESTLE_KIR_NONE;
  if (a->keys.all % t->keys) {
    exists = pestle_kir_scalar_i(t->k, PESTLE_OP_LT, key, keys);
    key = pestle_kir_scalar_i(t->k, PESTLE_OP_MINIMUM, key, keys - 1);
  }
  size_t scope = pestle_emit_scope(t->e);
  pestle_shared_tile_coords(&t->s, &a->x_rows, false, row, 1, 0, 0);
  pestle_shared_tile_coords(&t->s, &a->x_keys, false, key, width, t->key_run,
                            t->key_lane);
  show(t, a->scores, t->pair, kinds, 3, t->key_run, width);
  put(t, t->pair, at(t, 0), scores);
  pestle_emit_open_vector(t->e, t->key_lane, width);
  pestle_kir_id_t x = pestle_emit_expr(t->e, a->x);
  pestle_emit_close_vector(t->e);
  pestle_emit_unscope(t->e, scope);
  if (pestle_kir_lanes_of(t->k, x) < width) {
    x = pestle_kir_splat(t->k, x, (unsigned)width);
  }
  if (exists == PESTLE_KIR_NONE) return x;
  return pestle_kir_scalar(
      t->k, PESTLE_OP_SELECT, exists, x,
      pestle_kir_float(t->k, PESTLE_F32, (unsigned)width, -INFINITY));
}

// Two scores of a row, as x of them.
static pestle_kir_id_t x_of_pair(flash_t* t, pestle_kir_id_t row,
                                 pestle_kir_id_t key, pestle_kir_id_t two) {
  if (t->width_keys == 2) return emit_x(t, row, key, two);
  pestle_kir_id_t x[2];
  for (uint32_t l = 0; l < 2; ++l) {
    pestle_kir_id_t each = pestle_kir_madi(t->k, key, 2, at(t, l));
    x[l] = emit_x(t, row, each, pestle_kir_extract(t->k, two, l));
  }
  return pestle_kir_pair(t->k, x[0], x[1]);
}

static void take_maximum(flash_t* t, pestle_kir_id_t step) {
  pestle_kir_builder_t* k = t->k;
  for (int64_t h = 0; h < 2; ++h)
    put(t, t->next, at(t, h), get(t, t->most, at(t, h)));
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", t->keys / 8);
  pestle_kir_id_t sum = get(t, t->scores, i);
  pestle_kir_id_t key = pestle_kir_madi(k, i, 4, t->quad);
  key = pestle_kir_madi(k, step, t->keys / 2, key);
  pestle_kir_id_t x[2];
  for (uint32_t h = 0; h < 2; ++h) {
    pestle_kir_id_t row = pestle_kir_madi(k, t->row, 1, at(t, 8 * h));
    if (t->a.rows.all % PESTLE_FLASH_ATTENTION_ROWS) {
      row = pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, row, t->a.rows.all - 1);
    }
    x[h] = x_of_pair(t, row, key, pick(t, sum, sum, 2 * h, 1, 2));
    pestle_kir_id_t most =
        op2(t, PESTLE_OP_MAXIMUM, pestle_kir_extract(k, x[h], 0),
            pestle_kir_extract(k, x[h], 1));
    put(t, t->next, at(t, h),
        op2(t, PESTLE_OP_MAXIMUM, get(t, t->next, at(t, h)), most));
  }
  put(t, t->scores, i, pick(t, x[0], x[1], 0, 1, 4));
  pestle_kir_end(k);
}

static void rescale(flash_t* t) {
  pestle_kir_builder_t* k = t->k;
  for (int64_t h = 0; h < 2; ++h) {
    pestle_kir_id_t most = pestle_kir_sg_reduce(k, get(t, t->next, at(t, h)),
                                                PESTLE_OP_MAXIMUM, QUAD);
    pestle_kir_id_t none = op2(t, PESTLE_OP_EQ, most,
                               pestle_kir_float(k, PESTLE_F32, 1, -INFINITY));
    pestle_kir_id_t safe = pestle_kir_scalar(
        k, PESTLE_OP_SELECT, none, pestle_kir_float(k, PESTLE_F32, 1, 0), most);
    pestle_kir_id_t old = get(t, t->most, at(t, h));
    pestle_kir_id_t scale =
        op1(t, t->a.power, op2(t, PESTLE_OP_SUBTRACT, old, safe));
    put(t, t->safe, at(t, h), safe);
    put(t, t->scale, at(t, h), scale);
    put(t, t->most, at(t, h), most);
    put(t, t->all, at(t, h),
        op2(t, PESTLE_OP_MULTIPLY, get(t, t->all, at(t, h)), scale));
  }
  pestle_kir_id_t scale = by_rows(t, t->scale);
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", t->columns / 8);
  put(t, t->sums, i, op2(t, PESTLE_OP_MULTIPLY, get(t, t->sums, i), scale));
  pestle_kir_end(k);
}

// Four weights as two words of two narrow floats.
static pestle_kir_id_t pack(flash_t* t, pestle_kir_id_t narrow) {
  pestle_kir_id_t bits = pestle_kir_bitcast(t->k, narrow, PESTLE_U16);
  bits = pestle_kir_cast(t->k, bits, PESTLE_U32);
  pestle_kir_id_t high = pick(t, bits, bits, 1, 2, 2);
  high = op2(t, PESTLE_OP_SHIFT_LEFT, high,
             pestle_kir_int(t->k, PESTLE_U32, 2, 16));
  return op2(t, PESTLE_OP_OR, pick(t, bits, bits, 0, 2, 2), high);
}

// The weights of 16 keys: their fragment in weights[0], what it lost in [1].
static void make_weights(flash_t* t, pestle_kir_id_t u) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t safe = by_rows(t, t->safe), words[2][2];
  for (int64_t i = 0; i < 2; ++i) {
    pestle_kir_id_t x = get(t, t->scores, pestle_kir_madi(k, u, 2, at(t, i)));
    pestle_kir_id_t w = op1(t, t->a.power, op2(t, PESTLE_OP_SUBTRACT, x, safe));
    for (uint32_t h = 0; h < 2; ++h) {
      pestle_kir_id_t two =
          op2(t, PESTLE_OP_ADD, pestle_kir_extract(k, w, 2 * h),
              pestle_kir_extract(k, w, 2 * h + 1));
      put(t, t->all, at(t, h),
          op2(t, PESTLE_OP_ADD, get(t, t->all, at(t, h)), two));
    }
    pestle_kir_id_t narrow = pestle_kir_cast(k, w, t->a.q.dtype);
    pestle_kir_id_t rest =
        op2(t, PESTLE_OP_SUBTRACT, w, pestle_kir_cast(k, narrow, PESTLE_F32));
    words[0][i] = pack(t, narrow);
    words[1][i] = pack(t, pestle_kir_cast(k, rest, t->a.q.dtype));
  }
  for (int64_t i = 0; i < 2; ++i)
    put(t, t->weights, at(t, i), pick(t, words[i][0], words[i][1], 0, 1, 4));
}

static void add_values(flash_t* t, pestle_kir_id_t slot) {
  pestle_kir_builder_t* k = t->k;
  int64_t wide = t->columns / 16;
  pestle_kir_id_t from = pestle_kir_madi(k, slot, t->o.b.slot, t->o.from_b);
  pestle_kir_id_t u = pestle_kir_unroll(k, "u", t->keys / 16);
  make_weights(t, u);
  pestle_shared_tile_load_fragments(&t->o, &t->o.b, t->part, wide, from, u);
  pestle_kir_id_t j = pestle_kir_unroll(k, "j", wide);
  pestle_kir_id_t v = get(t, t->part, j);
  for (int64_t i = 0; i < 2; ++i)
    mma_pair(t, t->sums, j, get(t, t->weights, at(t, i)), v);
  pestle_kir_end(k);
  pestle_kir_end(k);
}

// --- All blocks ---

static void fetch(flash_t* t, pestle_kir_id_t step, pestle_kir_id_t slot) {
  t->s.b.tile = step;
  pestle_shared_tile_fetch(&t->s, &t->s.b, at(t, 0), slot);
  pestle_shared_tile_fetch(&t->o, &t->o.b, step, slot);
}

static void arrive(flash_t* t, pestle_kir_id_t slot) {
  pestle_shared_tile_put(&t->s, &t->s.b, slot);
  pestle_shared_tile_put(&t->o, &t->o.b, slot);
}

static void meet(flash_t* t) {
  bool copies = t->s.a.copies || t->s.b.copies || t->o.b.copies;
  pestle_shared_tile_meet(&t->s, copies);
}

static void take_query(flash_t* t) {
  pestle_kir_id_t zero = at(t, 0);
  pestle_shared_tile_fetch(&t->s, &t->s.a, zero, zero);
  fetch(t, zero, zero);
  pestle_shared_tile_put(&t->s, &t->s.a, zero);
  arrive(t, zero);
  meet(t);
  pestle_kir_alloc(t->k, t->query);
  pestle_kir_id_t u = pestle_kir_unroll(t->k, "u", t->depth / 16);
  int64_t tap = t->s.a.by_rows ? 1 : t->s.a.pitch;
  pestle_kir_id_t from = pestle_kir_madi(t->k, u, 16 * tap, t->s.from_a);
  put(t, t->query, u,
      pestle_kir_put(t->k, (pestle_kir_inst_t){
                               .op = PESTLE_KIR_LDMATRIX,
                               .type = PESTLE_U32,
                               .lanes = 4,
                               .arg = {t->s.a.buffer, from, !t->s.a.by_rows}}));
  pestle_kir_end(t->k);
}

static void take_blocks(flash_t* t) {
  pestle_kir_builder_t* k = t->k;
  fill(t, t->most, 2, -INFINITY);
  fill(t, t->all, 2, 0);
  fill(t, t->sums, t->columns / 8, 0);
  const uint32_t scratch[] = {t->next, t->safe, t->scale, t->weights, t->pair};
  for (int i = 0; i < 5; ++i)
    pestle_kir_alloc(k, scratch[i]);
  // What masks the scores may say how many keys there are.
  pestle_kir_id_t steps = pestle_emit_fold_steps(
      t->e, t->a.maximum, t->a.x_keys.reduce[0], t->keys, t->steps);
  if (steps == PESTLE_KIR_NONE) steps = at(t, t->steps);
  pestle_kir_id_t step =
      pestle_kir_for(k, "block", at(t, 0), steps, 1, PESTLE_KIR_SERIAL);
  pestle_kir_id_t next = pestle_kir_madi(k, step, 1, at(t, 1));
  pestle_kir_id_t more =
      pestle_kir_scalar(k, PESTLE_OP_LT, next, steps, PESTLE_KIR_NONE);
  pestle_kir_id_t slot = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, step, 2);
  pestle_kir_id_t other = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, next, 2);
  if (t->steps > 1) {
    pestle_kir_if(k, more);
    fetch(t, next, other);
    pestle_kir_end(k);
  }
  make_scores(t, slot);
  take_maximum(t, step);
  rescale(t);
  add_values(t, slot);
  if (t->steps > 1) {
    pestle_kir_if(k, more);
    arrive(t, other);
    pestle_kir_end(k);
    meet(t);
  }
  pestle_kir_end(k);
}

// --- The last stage ---

static void emit_vector(flash_t* t, pestle_kir_id_t row, pestle_kir_id_t column,
                        pestle_kir_id_t sums) {
  pestle_emit_t* e = t->e;
  const pestle_flash_attention_t* a = &t->a;
  const pestle_nest_stage_t* y = pestle_nest_stage(e->nest, a->last);
  const pestle_product_axes_t* const kinds[3] = {&a->y_batch, &a->y_rows,
                                                 &a->y_columns};
  int64_t width = t->width_columns, columns = a->y_columns.all / width;
  bool rest = a->y_columns.all % t->columns != 0;
  if (rest) {
    pestle_kir_if(t->k,
                  pestle_kir_scalar_i(t->k, PESTLE_OP_LT, column, columns));
    column = pestle_kir_scalar_i(t->k, PESTLE_OP_MINIMUM, column, columns - 1);
  }
  size_t scope = pestle_emit_scope(e);
  pestle_shared_tile_coords(&t->s, &a->y_rows, false, row, 1, 0, 0);
  pestle_shared_tile_coords(&t->s, &a->y_columns, false, column, width,
                            t->column_run, t->column_lane);
  show(t, a->output, t->pair, kinds, 3, t->column_run, width);
  show(t, a->total, t->total, kinds, 2, 0, 1);
  put(t, t->pair, at(t, 0), sums);
  pestle_emit_open_vector(t->e, t->column_lane, width);
  for (uint32_t v = 0; v < y->value_count; ++v) {
    pestle_kir_id_t value = pestle_emit_expr(e, y->values[v]);
    pestle_emit_store_stage(e, a->last, v, value);
  }
  pestle_emit_close_vector(t->e);
  pestle_emit_unscope(e, scope);
  if (rest) pestle_kir_end(t->k);
}

static void give_results(flash_t* t) {
  pestle_kir_builder_t* k = t->k;
  int64_t rows = t->a.rows.all;
  bool rest = rows % PESTLE_FLASH_ATTENTION_ROWS != 0;
  pestle_kir_id_t total[2];
  pestle_kir_alloc(k, t->total);
  t->pair = registers(t, "shown", PESTLE_F32, t->width_columns, 1);
  pestle_kir_alloc(k, t->pair);
  for (int64_t h = 0; h < 2; ++h) {
    total[h] =
        pestle_kir_sg_reduce(k, get(t, t->all, at(t, h)), PESTLE_OP_ADD, QUAD);
  }
  for (uint32_t h = 0; h < 2; ++h) {
    pestle_kir_id_t row = pestle_kir_madi(k, t->row, 1, at(t, 8 * h));
    if (rest) {
      pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_LT, row, rows));
      row = pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, row, rows - 1);
    }
    put(t, t->total, at(t, 0), total[h]);
    pestle_kir_id_t j = pestle_kir_unroll(k, "j", t->columns / 8);
    pestle_kir_id_t sum = get(t, t->sums, j);
    pestle_kir_id_t column = pestle_kir_madi(k, j, 4, t->quad);
    if (t->width_columns == 2) {
      emit_vector(t, row, column, pick(t, sum, sum, 2 * h, 1, 2));
    } else {
      for (uint32_t l = 0; l < 2; ++l) {
        emit_vector(t, row, pestle_kir_madi(k, column, 2, at(t, l)),
                    pestle_kir_extract(k, sum, 2 * h + l));
      }
    }
    pestle_kir_end(k);
    if (rest) pestle_kir_end(k);
  }
}

// --- The whole ---

static void add_run(flash_t* t, const char* name, int64_t extent, int64_t run,
                    uint32_t* out_run, uint32_t* out_lane) {
  pestle_nest_t* nest = t->e->nest;
  int32_t stage = (int32_t)t->a.last;
  *out_run = pestle_nest_add_axis(nest, name, stage, false,
                                  pestle_ceil_div(extent, run));
  *out_lane = pestle_nest_add_axis(nest, name, stage, false, run);
}

static void add_box(flash_t* t, shared_emit_t* of, const char* name,
                    const pestle_product_side_t* side,
                    const pestle_product_axes_t* rows,
                    const pestle_product_axes_t* depth, int64_t count,
                    shared_box_t* box) {
  add_run(t, name, side->along_k ? depth->all : rows->all, side->run,
          &box->run_axis, &box->lane_axis);
  pestle_shared_tile_add_box(of, name, side, rows, count, box);
}

// The two products as tiles: what moves their operands needs no more.
static void make_products(flash_t* t, pestle_shared_tile_t* tiles) {
  const pestle_flash_attention_t* a = &t->a;
  tiles[0] = (pestle_shared_tile_t){.m = PESTLE_FLASH_ATTENTION_ROWS,
                                    .n = t->keys,
                                    .k = t->depth,
                                    .r = SUBGROUP_ROWS,
                                    .c = t->keys,
                                    .slots = 1,
                                    .units = PESTLE_UNITS_MMA,
                                    .async = t->e->nest->template.ints[1] != 0};
  tiles[1] = tiles[0];
  tiles[1].n = tiles[1].c = t->columns;
  tiles[1].k = t->keys;
  tiles[1].slots = 2;
  t->s = (shared_emit_t){.e = t->e, .k = t->k, .t = &tiles[0]};
  t->o = (shared_emit_t){.e = t->e, .k = t->k, .t = &tiles[1]};
  t->s.lanes = t->o.lanes = PESTLE_FLASH_ATTENTION_LANES;
  t->s.p.k = a->depth;
  t->o.p.k = a->v_keys;
  add_box(t, &t->s, "tile_q", &a->q, &a->rows, &a->depth,
          PESTLE_FLASH_ATTENTION_ROWS, &t->s.a);
  tiles[0].slots = 2;
  add_box(t, &t->s, "tile_k", &a->k, &a->keys, &a->depth, t->keys, &t->s.b);
  add_box(t, &t->o, "tile_v", &a->v, &a->v_columns, &a->v_keys, t->columns,
          &t->o.b);
}

static void add_registers(flash_t* t) {
  const pestle_flash_attention_t* a = &t->a;
  int64_t wide = t->keys > t->columns ? t->keys : t->columns;
  t->width_keys = a->keys.all % 2 ? 1 : 2;
  t->width_columns = a->v_columns.all % 2 ? 1 : 2;
  add_run(t, "key", a->keys.all, t->width_keys, &t->key_run, &t->key_lane);
  add_run(t, "column", a->v_columns.all, t->width_columns, &t->column_run,
          &t->column_lane);
  t->query = registers(t, "query", PESTLE_U32, 4, t->depth / 16);
  t->scores = registers(t, "scores", PESTLE_F32, 4, t->keys / 8);
  t->sums = registers(t, "sums", PESTLE_F32, 4, t->columns / 8);
  t->part = registers(t, "part", PESTLE_U32, 4, wide / 16);
  t->weights = registers(t, "weights", PESTLE_U32, 4, 2);
  t->pair = registers(t, "pair", PESTLE_F32, t->width_keys, 1);
  t->total = registers(t, "total", PESTLE_F32, 1, 1);
  t->most = registers(t, "most", PESTLE_F32, 1, 2);
  t->next = registers(t, "next", PESTLE_F32, 1, 2);
  t->safe = registers(t, "safe", PESTLE_F32, 1, 2);
  t->scale = registers(t, "scale", PESTLE_F32, 1, 2);
  t->all = registers(t, "all", PESTLE_F32, 1, 2);
}

static void open_groups(flash_t* t) {
  pestle_kir_builder_t* k = t->k;
  const pestle_flash_attention_t* a = &t->a;
  int64_t tiles = pestle_ceil_div(a->rows.all, PESTLE_FLASH_ATTENTION_ROWS);
  pestle_kir_id_t g = pestle_kir_for(
      k, "g", at(t, 0), at(t, tiles * a->batch.all), 1, PESTLE_KIR_GROUP_X);
  pestle_kir_id_t lane =
      pestle_kir_for(k, "lane", at(t, 0), at(t, PESTLE_FLASH_ATTENTION_LANES),
                     1, PESTLE_KIR_LANE_X);
  pestle_kir_id_t tile = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, g, tiles);
  t->batch = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, g, tiles);
  t->s.lane = t->o.lane = lane;
  t->s.a.tile = tile;
  t->o.b.tile = at(t, 0);
  pestle_kir_id_t subgroup = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, lane, 32);
  pestle_kir_id_t in = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, lane, 32);
  pestle_kir_id_t first = pestle_kir_madi(k, subgroup, SUBGROUP_ROWS, at(t, 0));
  t->s.from_a = pestle_shared_tile_fragment_at(&t->s, &t->s.a, in, true, first);
  t->s.from_b =
      pestle_shared_tile_fragment_at(&t->s, &t->s.b, in, false, at(t, 0));
  t->o.from_b =
      pestle_shared_tile_fragment_at(&t->o, &t->o.b, in, false, at(t, 0));
  t->quad = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, in, 4);
  t->row = pestle_kir_madi(k, pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, in, 4),
                           1, first);
  t->row = pestle_kir_madi(k, tile, PESTLE_FLASH_ATTENTION_ROWS, t->row);
  const pestle_product_axes_t* const batches[] = {&a->batch, &a->x_batch,
                                                  &a->v_batch, &a->y_batch};
  for (int i = 0; i < 4; ++i)
    pestle_shared_tile_coords(&t->s, batches[i], false, t->batch, 1, 0, 0);
}

// Opens an IF for each of batch axes and rows of which the group's may lie behind an end.
static uint32_t open_ends(flash_t* t) {
  const pestle_product_axes_t *b = &t->a.y_batch, *m = &t->a.y_rows;
  pestle_kir_id_t row =
      pestle_kir_madi(t->k, t->s.a.tile, PESTLE_FLASH_ATTENTION_ROWS, at(t, 0));
  uint32_t opened =
      pestle_emit_open_place(t->e, b->last, b->extent, b->count, t->batch);
  opened += pestle_emit_open_end(t->e, m->last, m->extent, m->count, row);
  return opened;
}

pestle_status_t pestle_flash_attention_mma_emit(pestle_emit_t* e) {
  pestle_nest_t* nest = e->nest;
  pestle_shared_tile_t tiles[2];
  flash_t t = {.e = e, .k = e->k, .keys = nest->template.ints[0]};
  if (!pestle_flash_attention_find(nest, &t.a)) {
    return PESTLE_ERROR(INTERNAL, "kernel '%s': it is no attention any more",
                        nest->name);
  }
  t.depth = pestle_flash_attention_pad(t.a.depth.all);
  t.columns = pestle_flash_attention_pad(t.a.v_columns.all);
  t.steps = pestle_ceil_div(t.a.keys.all, t.keys);
  make_products(&t, tiles);
  add_registers(&t);
  open_groups(&t);
  uint32_t ends = open_ends(&t);
  take_query(&t);
  take_blocks(&t);
  give_results(&t);
  pestle_emit_close_places(e, ends);
  pestle_kir_end(e->k);
  pestle_kir_end(e->k);
  return NULL;
}
