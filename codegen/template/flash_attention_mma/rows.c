// SPDX-License-Identifier: Apache-2.0
// The rows of attention between its two products: scores -> x and maxima ->
// weights and their sums -> results. See rows.h.
//
// Rows whose keys were all -inf so far take 0 for m: their weights are 0 then,
// and not NaN. What a row sees of a block may follow from where both are: of
// blocks that it sees whole nothing is tested, others are left out.
#include "codegen/template/flash_attention_mma/rows.h"

#include <math.h>

enum { QUAD = 4 };

#define LOG2_E 1.4426950408889634

static pestle_kir_id_t op2(const flash_rows_t* t, pestle_op_t op,
                           pestle_kir_id_t a, pestle_kir_id_t b) {
  return pestle_kir_scalar(t->k, op, a, b, PESTLE_KIR_NONE);
}

static pestle_kir_id_t op1(const flash_rows_t* t, pestle_op_t op,
                           pestle_kir_id_t a) {
  return pestle_kir_scalar(t->k, op, a, PESTLE_KIR_NONE, PESTLE_KIR_NONE);
}

pestle_kir_id_t pestle_flash_get(const flash_rows_t* t, uint32_t buffer,
                                 pestle_kir_id_t index) {
  unsigned lanes = t->k->failed ? 1 : t->k->buffer.data[buffer].lanes;
  return pestle_kir_load(t->k, buffer, lanes, index, PESTLE_KIR_NONE, 0);
}

void pestle_flash_put(const flash_rows_t* t, uint32_t buffer,
                      pestle_kir_id_t index, pestle_kir_id_t value) {
  pestle_kir_store(t->k, buffer, index, value, PESTLE_KIR_NONE, 0);
}

pestle_kir_id_t pestle_flash_pick(const flash_rows_t* t, pestle_kir_id_t a,
                                  pestle_kir_id_t b, uint32_t first,
                                  unsigned count) {
  uint32_t lane[4];
  for (uint32_t i = 0; i < count; ++i)
    lane[i] = first + i;
  return pestle_kir_shuffle(t->k, a, b, lane, count);
}

// One of the lane's two rows, or what they have.
static pestle_kir_id_t of_row(const flash_rows_t* t, uint32_t buffer,
                              int64_t half) {
  return pestle_flash_get(t, buffer, flash_index(t, half));
}

static void set_row(const flash_rows_t* t, uint32_t buffer, int64_t half,
                    pestle_kir_id_t value) {
  pestle_flash_put(t, buffer, flash_index(t, half), value);
}

// What both rows have, for the four sums of a fragment.
static pestle_kir_id_t by_rows(const flash_rows_t* t, pestle_kir_id_t low,
                               pestle_kir_id_t high) {
  low = pestle_kir_splat(t->k, low, 2);
  return pestle_flash_pick(t, low, pestle_kir_splat(t->k, high, 2), 0, 4);
}

uint32_t pestle_flash_registers(const flash_rows_t* t, const char* name,
                                pestle_dtype_t dtype, int64_t lanes,
                                int64_t count) {
  return pestle_kir_add_buffer(t->k, name, PESTLE_KIR_PRIVATE, dtype,
                               (unsigned)lanes, count, 0);
}

void pestle_flash_fill(const flash_rows_t* t, uint32_t buffer, int64_t count,
                       double value) {
  unsigned lanes = t->k->failed ? 1 : t->k->buffer.data[buffer].lanes;
  pestle_kir_alloc(t->k, buffer);
  pestle_kir_id_t i = pestle_kir_unroll(t->k, "i", count);
  pestle_flash_put(t, buffer, i,
                   pestle_kir_float(t->k, PESTLE_F32, lanes, value));
  pestle_kir_end(t->k);
}

void pestle_flash_add_run(flash_rows_t* t, const char* name, int64_t extent,
                          int64_t run, uint32_t* out_run, uint32_t* out_lane) {
  pestle_nest_t* nest = t->e->nest;
  int32_t stage = (int32_t)t->a.last;
  *out_run = pestle_nest_add_axis(nest, name, stage, false,
                                  pestle_ceil_div(extent, run));
  *out_lane = pestle_nest_add_axis(nest, name, stage, false, run);
}

void pestle_flash_rows_add_registers(flash_rows_t* t) {
  const pestle_flash_attention_t* a = &t->a;
  pestle_flash_attention_visible(t->e->nest, a, &t->visible);
  t->raw = t->rounded && t->visible.factor > 0;
  t->width_keys = a->keys.all % 2 ? 1 : 2;
  t->width_columns = a->v_columns.all % 2 ? 1 : 2;
  pestle_flash_add_run(t, "key", a->keys.all, t->width_keys, &t->key_run,
                       &t->key_lane);
  pestle_flash_add_run(t, "column", a->v_columns.all, t->width_columns,
                       &t->column_run, &t->column_lane);
  t->scores = pestle_flash_registers(t, "scores", PESTLE_F32, 4, t->keys / 8);
  t->sums = pestle_flash_registers(t, "sums", PESTLE_F32, 4, t->columns / 8);
  t->pair = pestle_flash_registers(t, "pair", PESTLE_F32, t->width_keys, 1);
  t->total = pestle_flash_registers(t, "total", PESTLE_F32, 1, 1);
  t->most = pestle_flash_registers(t, "most", PESTLE_F32, 1, 2);
  t->next = pestle_flash_registers(t, "next", PESTLE_F32, 1, 2);
  t->safe = pestle_flash_registers(t, "safe", PESTLE_F32, 1, 2);
  t->scale = pestle_flash_registers(t, "scale", PESTLE_F32, 1, 2);
  t->all = pestle_flash_registers(t, "all", PESTLE_F32, 1, 2);
}

void pestle_flash_rows_bound(flash_rows_t* t, pestle_kir_id_t tile) {
  pestle_kir_builder_t* k = t->k;
  int64_t rows = t->a.rows.all;
  t->first_row = pestle_kir_madi(k, tile, t->tile, flash_index(t, 0));
  t->last_row = pestle_kir_madi(k, tile, t->tile, flash_index(t, t->tile - 1));
  if (rows % t->tile) {
    t->last_row =
        pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, t->last_row, rows - 1);
  }
}

void pestle_flash_rows_start(flash_rows_t* t) {
  pestle_flash_fill(t, t->most, 2, -INFINITY);
  pestle_flash_fill(t, t->all, 2, 0);
  pestle_flash_fill(t, t->sums, t->columns / 8, 0);
  const uint32_t scratch[] = {t->next, t->safe, t->scale, t->pair};
  for (int i = 0; i < 4; ++i)
    pestle_kir_alloc(t->k, scratch[i]);
}

// --- Scores ---

// |width| values in |t->pair| as the box of |stage|'s tensor that is read at
// these axes, of which the last one may be a vector.
static void show(flash_rows_t* t, uint32_t stage, uint32_t buffer,
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

static bool has_tail(const flash_rows_t* t) {
  return t->a.keys.all % t->block != 0;
}

pestle_kir_id_t pestle_flash_x(flash_rows_t* t, pestle_kir_id_t row,
                               pestle_kir_id_t key, pestle_kir_id_t scores,
                               const pestle_expr_t* expr) {
  const pestle_flash_attention_t* a = &t->a;
  const pestle_product_axes_t* const kinds[3] = {&a->x_batch, &a->x_rows,
                                                 &a->x_keys};
  int64_t width = t->width_keys;
  size_t scope = pestle_emit_scope(t->e);
  pestle_shared_tile_coords(&t->at, &a->x_rows, false, row, 1, 0, 0);
  pestle_shared_tile_coords(&t->at, &a->x_keys, false, key, width, t->key_run,
                            t->key_lane);
  show(t, a->scores, t->pair, kinds, 3, t->key_run, width);
  pestle_flash_put(t, t->pair, flash_index(t, 0), scores);
  pestle_emit_open_vector(t->e, t->key_lane, width);
  pestle_kir_id_t x = pestle_emit_expr(t->e, expr);
  pestle_emit_close_vector(t->e);
  pestle_emit_unscope(t->e, scope);
  if (pestle_kir_lanes_of(t->k, x) < width) {
    x = pestle_kir_splat(t->k, x, (unsigned)width);
  }
  return x;
}

// What is kept of such scores. |tested|: keys may be hidden by where they are, or
// may not be there.
static pestle_kir_id_t keep_vector(flash_rows_t* t, pestle_kir_id_t row,
                                   pestle_kir_id_t key, pestle_kir_id_t scores,
                                   bool tested) {
  const pestle_visible_t* v = &t->visible;
  int64_t keys = t->a.keys.all / t->width_keys;
  pestle_kir_id_t exists = PESTLE_KIR_NONE, x = scores;
  pestle_kir_id_t hidden =
      pestle_kir_float(t->k, PESTLE_F32, (unsigned)t->width_keys, -INFINITY);
  if (tested && has_tail(t)) {
    exists = pestle_kir_scalar_i(t->k, PESTLE_OP_LT, key, keys);
    key = pestle_kir_scalar_i(t->k, PESTLE_OP_MINIMUM, key, keys - 1);
  }
  if (!t->raw) {
    x = pestle_flash_x(t, row, key, scores, tested ? t->a.x : v->plain);
  } else if (v->test && (tested || !v->placed)) {
    pestle_kir_id_t on = pestle_flash_x(t, row, key, scores, v->test);
    x = pestle_kir_scalar(t->k, PESTLE_OP_SELECT, on, x, hidden);
  }
  if (exists == PESTLE_KIR_NONE) return x;
  if (t->width_keys > 1) exists = pestle_kir_splat(t->k, exists, 2);
  return pestle_kir_scalar(t->k, PESTLE_OP_SELECT, exists, x, hidden);
}

// Two scores of a row.
static pestle_kir_id_t keep_pair(flash_rows_t* t, pestle_kir_id_t row,
                                 pestle_kir_id_t key, pestle_kir_id_t two,
                                 bool tested) {
  if (t->width_keys == 2) return keep_vector(t, row, key, two, tested);
  pestle_kir_id_t x[2];
  for (uint32_t l = 0; l < 2; ++l) {
    pestle_kir_id_t each = pestle_kir_madi(t->k, key, 2, flash_index(t, l));
    x[l] = keep_vector(t, row, each, pestle_kir_extract(t->k, two, l), tested);
  }
  return pestle_kir_pair(t->k, x[0], x[1]);
}

static void take_scores(flash_rows_t* t, pestle_kir_id_t step, bool tested) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", t->keys / 8);
  pestle_kir_id_t sum = pestle_flash_get(t, t->scores, i);
  pestle_kir_id_t key = pestle_kir_madi(k, i, 4, t->quad);
  key = pestle_kir_madi(k, step, t->keys / 2, key);
  pestle_kir_id_t x[2];
  for (uint32_t h = 0; h < 2; ++h) {
    pestle_kir_id_t row = pestle_kir_madi(k, t->row, 1, flash_index(t, 8 * h));
    if (t->a.rows.all % t->tile) {
      row = pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, row, t->a.rows.all - 1);
    }
    x[h] = keep_pair(t, row, key, pestle_flash_pick(t, sum, sum, 2 * h, 2),
                     tested);
    pestle_kir_id_t most =
        op2(t, PESTLE_OP_MAXIMUM, pestle_kir_extract(k, x[h], 0),
            pestle_kir_extract(k, x[h], 1));
    set_row(t, t->next, h,
            op2(t, PESTLE_OP_MAXIMUM, of_row(t, t->next, h), most));
  }
  // As they are they stay.
  bool same = t->raw && !(tested && (has_tail(t) || t->visible.test)) &&
              !(t->visible.test && !t->visible.placed);
  if (!same)
    pestle_flash_put(t, t->scores, i, pestle_flash_pick(t, x[0], x[1], 0, 4));
  pestle_kir_end(k);
}

// --- What rows see ---

// row * r + constant of the rows at which it is least, or most.
static pestle_kir_id_t bound_of(const flash_rows_t* t,
                                const pestle_visible_test_t* v, bool least,
                                pestle_kir_id_t first, pestle_kir_id_t last) {
  pestle_kir_id_t row = (v->row > 0) == least ? first : last;
  return pestle_kir_madi(t->k, row, v->row, flash_index(t, v->constant));
}

pestle_kir_id_t pestle_flash_rows_blocks(flash_rows_t* t, pestle_kir_id_t first,
                                         pestle_kir_id_t last,
                                         pestle_kir_id_t steps,
                                         pestle_kir_id_t* out_from) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t from = flash_index(t, 0);
  for (uint32_t i = 0; i < t->visible.count; ++i) {
    const pestle_visible_test_t* v = &t->visible.tests[i];
    pestle_kir_id_t most = bound_of(t, v, false, first, last), at;
    if (v->key < 0) {
      // The last key that is seen is |most|.
      at = pestle_kir_madi(k, most, 1, flash_index(t, t->block));
      at = pestle_kir_scalar_i(k, PESTLE_OP_MAXIMUM, at, 0);
      at = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, at, t->block);
      steps = op2(t, PESTLE_OP_MINIMUM, steps, at);
    } else {
      // The first one is -most.
      at = pestle_kir_madi(k, most, -1, flash_index(t, 0));
      at = pestle_kir_scalar_i(k, PESTLE_OP_MAXIMUM, at, 0);
      at = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, at, t->block);
      from = op2(t, PESTLE_OP_MAXIMUM, from, at);
    }
  }
  *out_from = from;
  return steps;
}

// Whether the lane's rows see all keys of block |step|, which are all there.
static pestle_kir_id_t sees_all(flash_rows_t* t, pestle_kir_id_t step) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t all = PESTLE_KIR_NONE, zero = flash_index(t, 0);
  // The same for all rows of a tile, and so for whole subgroups.
  pestle_kir_id_t first = pestle_kir_madi(k, step, t->keys, zero);
  pestle_kir_id_t last =
      pestle_kir_madi(k, step, t->keys, flash_index(t, t->keys - 1));
  if (has_tail(t)) {
    all = pestle_kir_scalar_i(k, PESTLE_OP_LT, last, t->a.keys.all);
  }
  for (uint32_t i = 0; i < t->visible.count && t->visible.placed; ++i) {
    const pestle_visible_test_t* v = &t->visible.tests[i];
    pestle_kir_id_t least = bound_of(t, v, true, t->first_row, t->last_row);
    least = pestle_kir_madi(k, v->key < 0 ? last : first, v->key, least);
    pestle_kir_id_t on = pestle_kir_scalar_i(k, PESTLE_OP_GE, least, 0);
    all = all == PESTLE_KIR_NONE ? on : op2(t, PESTLE_OP_AND, all, on);
  }
  return all;
}

void pestle_flash_rows_maximum(flash_rows_t* t, pestle_kir_id_t step) {
  for (int64_t h = 0; h < 2; ++h)
    set_row(t, t->next, h, of_row(t, t->most, h));
  pestle_kir_id_t all = sees_all(t, step);
  if (all == PESTLE_KIR_NONE) {
    take_scores(t, step, true);
    return;
  }
  pestle_kir_if(t->k, all);
  take_scores(t, step, false);
  pestle_kir_else(t->k);
  take_scores(t, step, true);
  pestle_kir_end(t->k);
}

// --- Weights ---

static pestle_kir_id_t scalar_f32(const flash_rows_t* t, double x) {
  return pestle_kir_float(t->k, PESTLE_F32, 1, x);
}

// What a kept score is multiplied by to be an exponent; of rounded weights one of
// two, which targets have an instruction for.
static double times_of(const flash_rows_t* t) {
  double times = t->raw ? t->visible.factor : 1;
  return t->rounded && t->a.power == PESTLE_OP_EXP ? times * LOG2_E : times;
}

static bool is_one(double x) {
  return !(x < 1) && !(x > 1);
}

static pestle_kir_id_t as_exponent(const flash_rows_t* t, pestle_kir_id_t x) {
  if (is_one(times_of(t))) return x;
  return op2(t, PESTLE_OP_MULTIPLY, x, scalar_f32(t, times_of(t)));
}

// A power whose result is rounded to a narrow float, or scales what is made of
// such: the target's own instruction will do, with 0 for what is below 2^-126 of the
// greatest weight.
static pestle_kir_id_t power(const flash_rows_t* t, pestle_kir_id_t x) {
  if (!t->rounded) return op1(t, t->a.power, x);
  pestle_kir_id_t id = op1(t, PESTLE_OP_EXP2, x);
  if (!t->k->failed && id < t->k->inst.size)
    t->k->inst.data[id].facts |= PESTLE_KIR_APPROX | PESTLE_KIR_FLUSH;
  return id;
}

void pestle_flash_rows_scale(flash_rows_t* t) {
  pestle_kir_builder_t* k = t->k;
  for (int64_t h = 0; h < 2; ++h) {
    pestle_kir_id_t most =
        pestle_kir_sg_reduce(k, of_row(t, t->next, h), PESTLE_OP_MAXIMUM, QUAD);
    pestle_kir_id_t none = op2(t, PESTLE_OP_EQ, most, scalar_f32(t, -INFINITY));
    pestle_kir_id_t safe =
        pestle_kir_scalar(k, PESTLE_OP_SELECT, none, scalar_f32(t, 0), most);
    pestle_kir_id_t old = of_row(t, t->most, h);
    pestle_kir_id_t by = op2(t, PESTLE_OP_SUBTRACT, old, safe);
    pestle_kir_id_t scale = power(t, as_exponent(t, by));
    set_row(t, t->safe, h, as_exponent(t, safe));
    set_row(t, t->scale, h, scale);
    set_row(t, t->most, h, most);
    set_row(t, t->all, h,
            op2(t, PESTLE_OP_MULTIPLY, of_row(t, t->all, h), scale));
  }
}

void pestle_flash_rows_scale_sums(flash_rows_t* t) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t scale =
      by_rows(t, of_row(t, t->scale, 0), of_row(t, t->scale, 1));
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", t->columns / 8);
  pestle_flash_put(
      t, t->sums, i,
      op2(t, PESTLE_OP_MULTIPLY, pestle_flash_get(t, t->sums, i), scale));
  pestle_kir_end(k);
}

// exp(x - m) of four scores that were kept.
static pestle_kir_id_t weights_of(const flash_rows_t* t, pestle_kir_id_t x) {
  pestle_kir_id_t low = of_row(t, t->safe, 0), high = of_row(t, t->safe, 1);
  if (is_one(times_of(t))) {
    pestle_kir_id_t safe = by_rows(t, low, high);
    return power(t, op2(t, PESTLE_OP_SUBTRACT, x, safe));
  }
  low = op1(t, PESTLE_OP_NEGATE, low);
  high = op1(t, PESTLE_OP_NEGATE, high);
  pestle_kir_id_t times = pestle_kir_float(t->k, PESTLE_F32, 4, times_of(t));
  return power(t, pestle_kir_scalar(t->k, PESTLE_OP_FMA, x, times,
                                    by_rows(t, low, high)));
}

static void add_weights(const flash_rows_t* t, pestle_kir_id_t w) {
  for (uint32_t h = 0; h < 2; ++h) {
    pestle_kir_id_t two =
        op2(t, PESTLE_OP_ADD, pestle_kir_extract(t->k, w, 2 * h),
            pestle_kir_extract(t->k, w, 2 * h + 1));
    set_row(t, t->all, h, op2(t, PESTLE_OP_ADD, of_row(t, t->all, h), two));
  }
}

void pestle_flash_rows_weights(flash_rows_t* t, pestle_kir_id_t u,
                               pestle_kir_id_t out_words[2]) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t words[2][2];
  pestle_dtype_t dtype = t->a.q.dtype;
  for (int64_t i = 0; i < 2; ++i) {
    pestle_kir_id_t at = pestle_kir_madi(k, u, 2, flash_index(t, i));
    pestle_kir_id_t w = weights_of(t, pestle_flash_get(t, t->scores, at));
    pestle_kir_id_t narrow = pestle_kir_cast(k, w, dtype);
    pestle_kir_id_t wide = pestle_kir_cast(k, narrow, PESTLE_F32);
    pestle_kir_id_t rest = op2(t, PESTLE_OP_SUBTRACT, w, wide);
    add_weights(t, w);
    words[0][i] = pestle_kir_pack(k, narrow);
    words[1][i] = pestle_kir_pack(k, pestle_kir_cast(k, rest, dtype));
  }
  for (int i = 0; i < 2; ++i)
    out_words[i] = pestle_flash_pick(t, words[i][0], words[i][1], 0, 4);
}

void pestle_flash_rows_round(flash_rows_t* t) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", t->keys / 8);
  pestle_kir_id_t w = weights_of(t, pestle_flash_get(t, t->scores, i));
  add_weights(t, w);
  pestle_flash_put(t, t->scores, i, w);
  pestle_kir_end(k);
}

pestle_kir_id_t pestle_flash_rows_rounded(flash_rows_t* t, pestle_kir_id_t u) {
  pestle_kir_id_t words[2];
  for (int64_t i = 0; i < 2; ++i) {
    pestle_kir_id_t at = pestle_kir_madi(t->k, u, 2, flash_index(t, i));
    pestle_kir_id_t w = pestle_flash_get(t, t->scores, at);
    words[i] = pestle_kir_pack(t->k, pestle_kir_cast(t->k, w, t->a.q.dtype));
  }
  return pestle_flash_pick(t, words[0], words[1], 0, 4);
}

// --- The last stage ---

void pestle_flash_result(flash_rows_t* t, pestle_kir_id_t row,
                         pestle_kir_id_t column, pestle_kir_id_t sums) {
  pestle_emit_t* e = t->e;
  const pestle_flash_attention_t* a = &t->a;
  const pestle_nest_stage_t* y = pestle_nest_stage(e->nest, a->last);
  const pestle_product_axes_t* const kinds[3] = {&a->y_batch, &a->y_rows,
                                                 &a->y_columns};
  int64_t width = t->width_columns, columns = a->y_columns.all / width;
  bool rest = t->beyond || a->y_columns.all % t->columns != 0;
  if (rest) {
    pestle_kir_if(t->k,
                  pestle_kir_scalar_i(t->k, PESTLE_OP_LT, column, columns));
    column = pestle_kir_scalar_i(t->k, PESTLE_OP_MINIMUM, column, columns - 1);
  }
  size_t scope = pestle_emit_scope(e);
  pestle_shared_tile_coords(&t->at, &a->y_rows, false, row, 1, 0, 0);
  pestle_shared_tile_coords(&t->at, &a->y_columns, false, column, width,
                            t->column_run, t->column_lane);
  show(t, a->output, t->pair, kinds, 3, t->column_run, width);
  show(t, a->total, t->total, kinds, 2, 0, 1);
  pestle_flash_put(t, t->pair, flash_index(t, 0), sums);
  pestle_emit_open_vector(t->e, t->column_lane, width);
  for (uint32_t v = 0; v < y->value_count; ++v) {
    pestle_kir_id_t value = pestle_emit_expr(e, y->values[v]);
    pestle_emit_store_stage(e, a->last, v, value);
  }
  pestle_emit_close_vector(t->e);
  pestle_emit_unscope(e, scope);
  if (rest) pestle_kir_end(t->k);
}

// Whether all that |x| does with the totals is to divide the sums by them.
static bool divides_alone(const flash_rows_t* t, const pestle_expr_t* x) {
  const pestle_nest_t* nest = t->e->nest;
  uint32_t total = nest->stages.data[t->a.total].tensors[0];
  uint32_t sums = nest->stages.data[t->a.output].tensors[0];
  if (!x) return true;
  if (x->kind == PESTLE_EXPR_READ) return x->i != (int64_t)total;
  const pestle_expr_t *a = x->args[0], *b = x->args[1];
  if (x->kind == PESTLE_EXPR_OP && x->op == PESTLE_OP_DIVIDE &&
      a->kind == PESTLE_EXPR_READ && a->i == (int64_t)sums &&
      b->kind == PESTLE_EXPR_READ && b->i == (int64_t)total) {
    return true;
  }
  return divides_alone(t, a) && divides_alone(t, b) &&
         divides_alone(t, x->args[2]);
}

// Sums of weights that were rounded are divided once a row: they come as
// quotients, and the total as 1.
static bool divides_once(const flash_rows_t* t) {
  const pestle_nest_stage_t* y = pestle_nest_stage(t->e->nest, t->a.last);
  bool all = t->rounded;
  for (uint32_t v = 0; v < y->value_count; ++v)
    all = all && divides_alone(t, y->values[v]);
  return all;
}

void pestle_flash_rows_results(flash_rows_t* t, pestle_kir_id_t first,
                               int64_t count) {
  pestle_kir_builder_t* k = t->k;
  int64_t rows = t->a.rows.all;
  bool rest = rows % t->tile != 0;
  uint32_t kept = t->pair;
  pestle_kir_id_t total[2];
  pestle_kir_alloc(k, t->total);
  t->pair = pestle_flash_registers(t, "shown", PESTLE_F32, t->width_columns, 1);
  pestle_kir_alloc(k, t->pair);
  for (int64_t h = 0; h < 2; ++h) {
    total[h] =
        pestle_kir_sg_reduce(k, of_row(t, t->all, h), PESTLE_OP_ADD, QUAD);
  }
  for (uint32_t h = 0; h < 2; ++h) {
    pestle_kir_id_t row = pestle_kir_madi(k, t->row, 1, flash_index(t, 8 * h));
    if (rest) {
      pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_LT, row, rows));
      row = pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, row, rows - 1);
    }
    pestle_kir_id_t one = scalar_f32(t, 1), inverse = PESTLE_KIR_NONE;
    if (divides_once(t)) inverse = op2(t, PESTLE_OP_DIVIDE, one, total[h]);
    pestle_flash_put(t, t->total, flash_index(t, 0),
                     inverse == PESTLE_KIR_NONE ? total[h] : one);
    pestle_kir_id_t j = pestle_kir_unroll(k, "j", count);
    pestle_kir_id_t sum = pestle_flash_get(t, t->sums, j);
    if (inverse != PESTLE_KIR_NONE) {
      sum = op2(t, PESTLE_OP_MULTIPLY, sum, pestle_kir_splat(k, inverse, 4));
    }
    j = pestle_kir_madi(k, j, 1, first);
    pestle_kir_id_t column = pestle_kir_madi(k, j, 4, t->quad);
    if (t->width_columns == 2) {
      pestle_flash_result(t, row, column,
                          pestle_flash_pick(t, sum, sum, 2 * h, 2));
    } else {
      for (uint32_t l = 0; l < 2; ++l) {
        pestle_flash_result(t, row,
                            pestle_kir_madi(k, column, 2, flash_index(t, l)),
                            pestle_kir_extract(k, sum, 2 * h + l));
      }
    }
    pestle_kir_end(k);
    if (rest) pestle_kir_end(k);
  }
  t->pair = kept;
}
