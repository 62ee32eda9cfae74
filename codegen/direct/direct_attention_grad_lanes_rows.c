// SPDX-License-Identifier: Apache-2.0
// The gradient of an attention where lanes run side by side: what stands between the
// products, on a lane's part of them: of each unit of 16 rows two, g and g + 8, and two of
// every eight columns.
#include <math.h>

#include "codegen/direct/direct_attention_grad_lanes.h"

#define LOG2E 0x1.71547652b82fep+0

enum { HALVES = 2 };

static pk_t pick(const flash_grad_t* g, pk_t a, pk_t b, uint32_t first,
                 unsigned count) {
  uint32_t lane[4];
  for (uint32_t i = 0; i < count; ++i)
    lane[i] = first + i;
  return pestle_kir_shuffle(g->k, a, b, lane, count);
}

// What both rows have, for four sums; the same of both columns.
static pk_t by_rows(const flash_grad_t* g, uint32_t registers, int64_t unit) {
  pk_t low = flash_get(g, registers, flash_number(g, HALVES * unit));
  pk_t high = flash_get(g, registers, flash_number(g, HALVES * unit + 1));
  low = pestle_kir_splat(g->k, low, 2);
  return pick(g, low, pestle_kir_splat(g->k, high, 2), 0, 4);
}
static pk_t by_columns(const flash_grad_t* g, pk_t two) {
  return pick(g, two, two, 0, 4);
}

static pk_t join(const flash_grad_t* g, const pk_t each[4]) {
  pk_t low = pestle_kir_pair(g->k, each[0], each[1]);
  return pick(g, low, pestle_kir_pair(g->k, each[2], each[3]), 0, 4);
}

// The first is below -150 where the weight is not 0 as a narrow float: the target's own
// instruction will do.
static pk_t power(const flash_grad_t* g, pk_t x) {
  unsigned lanes = g->k->failed ? 1 : pestle_kir_lanes_of(g->k, x);
  if (g->bias)
    x = flash_op(g, PESTLE_OP_MULTIPLY, x, flash_real(g, lanes, LOG2E));
  pk_t id = flash_op(g, PESTLE_OP_EXP2, x, PESTLE_KIR_NONE);
  if (!g->k->failed && id < g->k->inst.size)
    g->k->inst.data[id].facts |= PESTLE_KIR_APPROX | PESTLE_KIR_FLUSH;
  return id;
}

// --- Scores ---

// Row |half| of unit |unit| of what the group owns, and column |l| of the sums |eight| of
// block |step|.
static pk_t own_of(const flash_grad_t* g, int64_t unit, int64_t half) {
  return flash_plus(g, g->row, FLASH_UNIT * unit + FLASH_EIGHT * half);
}
static pk_t other_of(const flash_grad_t* g, pk_t step, pk_t eight, int64_t l) {
  pk_t first = flash_at(g, step, g->block, flash_number(g, l));
  return flash_at(g, eight, FLASH_EIGHT, flash_at(g, g->quad, 2, first));
}

// What bias or mask |value| has for a row and a key.
static pk_t spread(const flash_grad_t* g, const pestle_value_t* value,
                   uint32_t buffer, pk_t from, pk_t own, pk_t other) {
  const pestle_type_t* type = value->type;
  int64_t rows = type->dims[type->rank - 2], keys = type->dims[type->rank - 1];
  if (g->own[0].count % g->tile)
    own = flash_by(g, PESTLE_OP_MINIMUM, own, g->own[0].count - 1);
  if (g->other[0].count % g->block)
    other = flash_by(g, PESTLE_OP_MINIMUM, other, g->other[0].count - 1);
  pk_t row = g->by_keys ? other : own, key = g->by_keys ? own : other;
  pk_t index = rows == 1 ? from : flash_at(g, row, keys, from);
  if (keys > 1) index = flash_op(g, PESTLE_OP_ADD, index, key);
  return pestle_direct_load(g->d, buffer, index);
}

static pk_t finish(const flash_grad_t* g, pk_t x, pk_t own, pk_t other) {
  if (g->bias) {
    pk_t bias = spread(g, g->bias, g->bias_from, g->bias_at, own, other);
    x = flash_op(g, PESTLE_OP_ADD, x, pestle_kir_cast(g->k, bias, PESTLE_F32));
  }
  if (g->mask) {
    pk_t kept = spread(g, g->mask, g->mask_from, g->mask_at, own, other);
    x = pestle_direct_select(g->d, kept, x, flash_real(g, 1, g->masked));
  }
  return x;
}

// Calls |f| for each of four sums of unit |unit|.
static pk_t each(const flash_grad_t* g, pk_t four, int64_t unit, pk_t step,
                 pk_t eight,
                 pk_t (*f)(const flash_grad_t* g, pk_t x, pk_t own,
                           pk_t other)) {
  pk_t out[4];
  for (uint32_t i = 0; i < 4; ++i)
    out[i] = f(g, pestle_kir_extract(g->k, four, i), own_of(g, unit, i / 2),
               other_of(g, step, eight, i % 2));
  return join(g, out);
}

static pk_t both(const flash_grad_t* g, pk_t a, pk_t b) {
  return a == PESTLE_KIR_NONE ? b : flash_op(g, PESTLE_OP_AND, a, b);
}

static pk_t hide(const flash_grad_t* g, pk_t x, pk_t own, pk_t other) {
  pk_t seen = PESTLE_KIR_NONE;
  if (g->other[0].count % g->block)
    seen = flash_by(g, PESTLE_OP_LT, other, g->other[0].count);
  if (g->is_limited) {
    pk_t gap = flash_at(g, own, -1, other);
    seen = both(g, seen, flash_by(g, PESTLE_OP_GE, gap, g->low));
    seen = both(g, seen, flash_by(g, PESTLE_OP_LE, gap, g->high));
  }
  return pestle_direct_select(g->d, seen, x, flash_real(g, 1, -INFINITY));
}

// Whether all that is in block |step| is there and seen; NONE: it always is.
static pk_t sees_all(const flash_grad_t* g, pk_t step) {
  pk_t all = PESTLE_KIR_NONE;
  if (g->other[0].count % g->block)
    all = flash_by(g, PESTLE_OP_LT, step, g->blocks - 1);
  if (!g->is_limited) return all;
  // Of the last of what is owned and the first of the block, and the other way.
  pk_t gap = flash_at(g, step, g->block, flash_number(g, 1 - g->tile));
  gap = flash_at(g, g->group_tile, -g->tile, gap);
  all = both(g, all, flash_by(g, PESTLE_OP_GE, gap, g->low));
  gap = flash_plus(g, gap, g->tile - 1 + g->block - 1);
  return both(g, all, flash_by(g, PESTLE_OP_LE, gap, g->high));
}

static pk_t keep(const flash_grad_t* g, pk_t x, pk_t own, pk_t other) {
  pk_t kept = spread(g, g->mask, g->mask_from, g->mask_at, own, other);
  return pestle_direct_select(g->d, kept, x, flash_real(g, 1, 0));
}

// Replaces what |registers| have of the block by |f| of it.
static void change(flash_grad_t* g, uint32_t registers, pk_t step,
                   pk_t (*f)(const flash_grad_t* g, pk_t x, pk_t own,
                             pk_t other)) {
  int64_t count = g->block / FLASH_EIGHT;
  pk_t j = pestle_kir_unroll(g->k, "j", count);
  for (int64_t i = 0; i < g->units; ++i) {
    pk_t place = flash_place(g, i, count, j);
    flash_put(g, registers, place,
              each(g, flash_get(g, registers, place), i, step, j, f));
  }
  pestle_kir_end(g->k);
}

void pestle_flash_grad_scores(flash_grad_t* g, pk_t step) {
  pk_t j = pestle_kir_unroll(g->k, "j", g->units * g->block / FLASH_EIGHT);
  flash_put(g, g->scores, j,
            flash_op(g, PESTLE_OP_MULTIPLY, flash_get(g, g->scores, j),
                     flash_real(g, 4, g->scale)));
  pestle_kir_end(g->k);
  if (g->bias || g->mask) change(g, g->scores, step, finish);
  pk_t all = sees_all(g, step);
  if (all == PESTLE_KIR_NONE) return;
  pestle_kir_if(g->k, flash_op(g, PESTLE_OP_NOT, all, PESTLE_KIR_NONE));
  change(g, g->scores, step, hide);
  pestle_kir_end(g->k);
}

// --- Rows ---

// The sum of c y of a row, by the four lanes that share it.
static pk_t delta_of(flash_grad_t* g, uint32_t sum, pk_t row) {
  const flash_matrix_t* c = &g->own[1];
  if (c->count % g->tile)
    row = flash_by(g, PESTLE_OP_MINIMUM, row, c->count - 1);
  pk_t from = flash_at(g, g->head, c->count, row);
  from = flash_at(g, from, c->columns, flash_number(g, 0));
  flash_put(g, sum, flash_number(g, 0), flash_real(g, FLASH_RUN, 0));
  pk_t i = pestle_kir_for(g->k, "i", g->quad,
                          flash_number(g, c->columns / FLASH_RUN), FLASH_QUAD,
                          PESTLE_KIR_SERIAL);
  pk_t at = flash_at(g, i, FLASH_RUN, from);
  pk_t a = flash_run(g, g->y, at);
  pk_t b = flash_run(g, g->c, at);
  flash_put(g, sum, flash_number(g, 0),
            pestle_kir_scalar(g->k, PESTLE_OP_FMA,
                              pestle_kir_cast(g->k, a, PESTLE_F32),
                              pestle_kir_cast(g->k, b, PESTLE_F32),
                              flash_get(g, sum, flash_number(g, 0))));
  pestle_kir_end(g->k);
  pk_t all = pestle_kir_reduce(g->k, flash_get(g, sum, flash_number(g, 0)),
                               PESTLE_OP_ADD);
  return pestle_kir_sg_reduce(g->k, all, PESTLE_OP_ADD, FLASH_QUAD);
}

void pestle_flash_grad_begin_rows(flash_grad_t* g) {
  int64_t rows = HALVES * g->units;
  uint32_t sum = pestle_direct_variable(g->d, "sum", PESTLE_F32, FLASH_RUN);
  pestle_flash_grad_fill(g, g->most, rows, -INFINITY);
  pestle_flash_grad_fill(g, g->total, rows, 0);
  pestle_flash_grad_fill(g, g->reach, rows, 0);
  pestle_kir_alloc(g->k, g->next);
  pestle_kir_alloc(g->k, g->safe);
  pestle_kir_alloc(g->k, g->rate);
  pestle_kir_alloc(g->k, g->delta);
  for (int64_t r = 0; r < rows; ++r)
    flash_put(g, g->delta, flash_number(g, r),
              delta_of(g, sum, own_of(g, r / HALVES, r % HALVES)));
}

// The maxima of the rows with this block; what was summed before counts at |rate|.
static void find_maxima(flash_grad_t* g) {
  int64_t count = g->block / FLASH_EIGHT;
  for (int64_t r = 0; r < HALVES * g->units; ++r)
    flash_put(g, g->next, flash_number(g, r),
              flash_get(g, g->most, flash_number(g, r)));
  pk_t j = pestle_kir_unroll(g->k, "j", count);
  for (int64_t r = 0; r < HALVES * g->units; ++r) {
    pk_t x = flash_get(g, g->scores, flash_place(g, r / HALVES, count, j));
    uint32_t first = (uint32_t)(r % HALVES) * 2;
    pk_t most =
        flash_op(g, PESTLE_OP_MAXIMUM, pestle_kir_extract(g->k, x, first),
                 pestle_kir_extract(g->k, x, first + 1));
    pk_t next = flash_get(g, g->next, flash_number(g, r));
    flash_put(g, g->next, flash_number(g, r),
              flash_op(g, PESTLE_OP_MAXIMUM, next, most));
  }
  pestle_kir_end(g->k);
  for (int64_t r = 0; r < HALVES * g->units; ++r) {
    pk_t at = flash_number(g, r);
    pk_t most = pestle_kir_sg_reduce(g->k, flash_get(g, g->next, at),
                                     PESTLE_OP_MAXIMUM, FLASH_QUAD);
    // Of rows that saw no key all weights are 0, and not NaN.
    pk_t none = flash_op(g, PESTLE_OP_EQ, most, flash_real(g, 1, -INFINITY));
    pk_t safe = pestle_direct_select(g->d, none, flash_real(g, 1, 0), most);
    pk_t rate = power(
        g, flash_op(g, PESTLE_OP_SUBTRACT, flash_get(g, g->most, at), safe));
    flash_put(g, g->most, at, most);
    flash_put(g, g->safe, at, safe);
    flash_put(g, g->rate, at, rate);
    const uint32_t sums[] = {g->total, g->reach};
    for (int s = 0; s < 2; ++s)
      flash_put(
          g, sums[s], at,
          flash_op(g, PESTLE_OP_MULTIPLY, flash_get(g, sums[s], at), rate));
  }
}

static void add_halves(flash_grad_t* g, uint32_t to, int64_t unit, pk_t four) {
  for (uint32_t h = 0; h < HALVES; ++h) {
    pk_t at = flash_number(g, HALVES * unit + h);
    pk_t two = flash_op(g, PESTLE_OP_ADD, pestle_kir_extract(g->k, four, 2 * h),
                        pestle_kir_extract(g->k, four, 2 * h + 1));
    flash_put(g, to, at, flash_op(g, PESTLE_OP_ADD, flash_get(g, to, at), two));
  }
}

void pestle_flash_grad_weigh_rows(flash_grad_t* g, pk_t step) {
  int64_t count = g->block / FLASH_EIGHT,
          wide = g->other[0].padded / FLASH_EIGHT;
  find_maxima(g);
  pk_t j = pestle_kir_unroll(g->k, "j", wide);
  for (int64_t i = 0; i < g->units; ++i) {
    pk_t place = flash_place(g, i, wide, j);
    flash_put(g, g->sums[0], place,
              flash_op(g, PESTLE_OP_MULTIPLY, flash_get(g, g->sums[0], place),
                       by_rows(g, g->rate, i)));
  }
  pestle_kir_end(g->k);
  j = pestle_kir_unroll(g->k, "j", count);
  for (int64_t i = 0; i < g->units; ++i) {
    pk_t place = flash_place(g, i, count, j);
    pk_t x = flash_get(g, g->scores, place),
         dw = flash_get(g, g->cotangents, place);
    pk_t w =
        power(g, flash_op(g, PESTLE_OP_SUBTRACT, x, by_rows(g, g->safe, i)));
    add_halves(g, g->total, i, w);
    add_halves(g, g->reach, i, flash_op(g, PESTLE_OP_MULTIPLY, w, dw));
    dw = flash_op(g, PESTLE_OP_SUBTRACT, dw, by_rows(g, g->delta, i));
    flash_put(g, g->cotangents, place, flash_op(g, PESTLE_OP_MULTIPLY, w, dw));
  }
  pestle_kir_end(g->k);
  if (g->mask) change(g, g->cotangents, step, keep);
}

// --- Keys ---

// Two numbers of the rows that the lane's columns |eight| of block |step| are of.
static pk_t stat(const flash_grad_t* g, int64_t which, pk_t step, pk_t eight) {
  pk_t from = flash_at(g, g->head, g->padded, other_of(g, step, eight, 0));
  from = flash_plus(g, from, which * g->heads * g->padded);
  return by_columns(g, pestle_kir_load(g->k, g->stats, 2, from, PESTLE_KIR_NONE,
                                       2 * sizeof(float)));
}

void pestle_flash_grad_weigh_keys(flash_grad_t* g, pk_t step) {
  int64_t count = g->block / FLASH_EIGHT;
  pk_t j = pestle_kir_unroll(g->k, "j", count);
  pk_t most = stat(g, FLASH_MOST, step, j);
  pk_t inverse = stat(g, FLASH_INVERSE, step, j);
  pk_t delta = g->of_first ? stat(g, FLASH_DELTA, step, j) : PESTLE_KIR_NONE;
  for (int64_t i = 0; i < g->units; ++i) {
    pk_t place = flash_place(g, i, count, j);
    pk_t x = flash_get(g, g->scores, place);
    pk_t w = power(g, flash_op(g, PESTLE_OP_SUBTRACT, x, most));
    w = flash_op(g, PESTLE_OP_MULTIPLY, w, inverse);
    flash_put(g, g->scores, place, w);
    if (!g->of_first) continue;
    pk_t dw = flash_get(g, g->cotangents, place);
    dw = flash_op(g, PESTLE_OP_SUBTRACT, dw, delta);
    flash_put(g, g->cotangents, place, flash_op(g, PESTLE_OP_MULTIPLY, w, dw));
  }
  pestle_kir_end(g->k);
  if (g->mask && g->of_first) change(g, g->cotangents, step, keep);
}

// --- Results ---

// Row |r| of the lane's, times |factor|, to result |which|.
static void write_row(flash_grad_t* g, int which, int64_t r, pk_t factor) {
  const flash_matrix_t* m = &g->own[which];
  int64_t wide = m->padded / FLASH_EIGHT;
  pk_t row = own_of(g, r / HALVES, r % HALVES);
  bool has_tail = m->count % g->tile;
  if (has_tail) {
    pestle_kir_if(g->k, flash_by(g, PESTLE_OP_LT, row, m->count));
    row = flash_by(g, PESTLE_OP_MINIMUM, row, m->count - 1);
  }
  pk_t to = flash_at(g, g->head, m->count, row);
  to = flash_at(g, to, m->columns, flash_at(g, g->quad, 2, flash_number(g, 0)));
  pk_t j = pestle_kir_unroll(g->k, "j", m->columns / FLASH_EIGHT);
  pk_t four = flash_get(g, g->sums[which], flash_place(g, r / HALVES, wide, j));
  pk_t two = pick(g, four, four, (uint32_t)(r % HALVES) * 2, 2);
  if (factor != PESTLE_KIR_NONE)
    two =
        flash_op(g, PESTLE_OP_MULTIPLY, two, pestle_kir_splat(g->k, factor, 2));
  pestle_kir_store(g->k, g->result[which], flash_at(g, j, FLASH_EIGHT, to),
                   pestle_kir_cast(g->k, two, g->dtype), PESTLE_KIR_NONE, 4);
  pestle_kir_end(g->k);
  if (has_tail) pestle_kir_end(g->k);
}

static void write_stat(flash_grad_t* g, int64_t which, pk_t row, pk_t value) {
  if (g->own[0].count % g->tile) {
    pk_t is_there = flash_by(g, PESTLE_OP_LT, row, g->own[0].count);
    value = pestle_direct_select(g->d, is_there, value, flash_real(g, 1, 0));
  }
  pk_t to = flash_at(g, g->head, g->padded, row);
  pestle_direct_store(g->d, g->stats,
                      flash_plus(g, to, which * g->heads * g->padded), value);
}

void pestle_flash_grad_end_rows(flash_grad_t* g) {
  pk_t scale = flash_real(g, 1, PESTLE_NODE_F64(g->node, scale));
  for (int64_t r = 0; r < HALVES * g->units; ++r) {
    pk_t at = flash_number(g, r), row = own_of(g, r / HALVES, r % HALVES);
    pk_t total = pestle_kir_sg_reduce(g->k, flash_get(g, g->total, at),
                                      PESTLE_OP_ADD, FLASH_QUAD);
    pk_t reach = pestle_kir_sg_reduce(g->k, flash_get(g, g->reach, at),
                                      PESTLE_OP_ADD, FLASH_QUAD);
    pk_t inverse = flash_op(g, PESTLE_OP_DIVIDE, flash_real(g, 1, 1), total);
    pk_t factor = flash_op(g, PESTLE_OP_MULTIPLY, inverse, scale);
    if (g->mask) {
      // A row that a mask hides as a whole moves nothing.
      pk_t none = flash_op(g, PESTLE_OP_EQ, total, flash_real(g, 1, 0));
      factor = pestle_direct_select(g->d, none, flash_real(g, 1, 0), factor);
    }
    write_row(g, 0, r, factor);
    pestle_kir_if(g->k, flash_by(g, PESTLE_OP_EQ, g->quad, 0));
    write_stat(g, FLASH_MOST, row, flash_get(g, g->safe, at));
    write_stat(g, FLASH_INVERSE, row, inverse);
    write_stat(g, FLASH_DELTA, row,
               flash_op(g, PESTLE_OP_MULTIPLY, reach, inverse));
    pestle_kir_end(g->k);
  }
}

void pestle_flash_grad_end_keys(flash_grad_t* g) {
  pk_t scale = flash_real(g, 1, PESTLE_NODE_F64(g->node, scale));
  for (int64_t r = 0; r < HALVES * g->units; ++r) {
    if (g->of_first) write_row(g, 0, r, scale);
    if (g->of_second) write_row(g, 1, r, PESTLE_KIR_NONE);
  }
}
