// SPDX-License-Identifier: Apache-2.0
// The gradient of an attention, block by block of rows: the weights, and what is turned.
#include <math.h>

#include "codegen/direct/direct_attention_grad.h"

// --- Scores ---

// Bias or mask |buffer| of column |c| and rows from |r| on of the block.
static pk_t spread(grad_t* g, uint32_t buffer, const pestle_type_t* type,
                   pk_t from, pk_t c, pk_t r) {
  int32_t n = type->rank;
  int64_t columns = type->dims[n - 2], rows = type->dims[n - 1];
  pk_t index = columns == 1 ? from : at(g, c, rows, from);
  if (rows == 1) {
    return pestle_kir_splat(g->k, load(g, buffer, 1, index), g->s.lanes);
  }
  pk_t row = at(g, g->block, g->s.block, r);
  pk_t keep = has_tail(g)
                  ? pestle_kir_mask(g->k, row, number(g, g->s.rows), g->s.lanes)
                  : PESTLE_KIR_NONE;
  index = pestle_kir_scalar(g->k, PESTLE_OP_ADD, index, row, PESTLE_KIR_NONE);
  return pestle_kir_load(g->k, buffer, g->s.lanes, index, keep, 0);
}

// Where scores count; behind the last row everywhere.
pk_t pestle_direct_grad_kept(grad_t* g, pk_t c, pk_t r) {
  pk_t keep = spread(g, g->mask, g->s.of.mask->type, g->mask_at, c, r);
  if (!has_tail(g)) return keep;
  pk_t row = at(g, g->block, g->s.block, r);
  pk_t valid = pestle_kir_mask(g->k, row, number(g, g->s.rows), g->s.lanes);
  pk_t yes = pestle_kir_int(g->k, PESTLE_I1, g->s.lanes, 1);
  return pestle_kir_scalar(g->k, PESTLE_OP_SELECT, valid, keep, yes);
}

static pk_t finish_score(grad_t* g, pk_t x, pk_t c, pk_t r) {
  unsigned n = g->s.lanes;
  if (g->s.of.bias) {
    pk_t bias = spread(g, g->bias, g->s.of.bias->type, g->bias_at, c, r);
    bias = cast(g, bias, PESTLE_F32);
    if (has_tail(g) &&
        g->s.of.bias->type->dims[g->s.of.bias->type->rank - 1] != 1) {
      pk_t row = at(g, g->block, g->s.block, r);
      pk_t valid = pestle_kir_mask(g->k, row, number(g, g->s.rows), n);
      bias =
          pestle_kir_scalar(g->k, PESTLE_OP_SELECT, valid, bias, real(g, n, 0));
    }
    x = op(g, PESTLE_OP_ADD, x, bias);
  }
  if (g->s.of.mask) {
    x = pestle_kir_scalar(g->k, PESTLE_OP_SELECT,
                          pestle_direct_grad_kept(g, c, r), x,
                          real(g, n, g->masked));
  }
  return x;
}

// |rows| columns from |c| on, of rows from |r| on of the block.
static void make_scores(grad_t* g, pk_t c, int64_t rows, pk_t r,
                        uint32_t maximum) {
  const shape_t* s = &g->s;
  pestle_direct_tile_t t = {.k = g->k,
                            .rows = rows,
                            .vectors = s->vectors,
                            .depth = s->depth,
                            .lanes = s->lanes,
                            .a = g->keys,
                            .a_at = at(g, c, s->depth, g->k_at),
                            .a_row = s->depth,
                            .a_step = 1,
                            .b = g->qt,
                            .b_at = r,
                            .b_step = s->block};
  pestle_direct_tile_begin(&t);
  pestle_direct_tile_clear(&t);
  pestle_direct_tile_multiply(&t);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < s->vectors; ++j) {
      pk_t x = finish_score(g, pestle_direct_tile_get(&t, i, j), plus(g, c, i),
                            plus(g, r, j * s->lanes));
      pk_t most = load(g, maximum, s->lanes, number(g, j));
      store(g, maximum, number(g, j), op(g, PESTLE_OP_MAXIMUM, most, x));
      pestle_direct_tile_set(&t, i, j, x);
    }
  }
  pestle_direct_tile_store(&t, g->w, at(g, c, s->block, r), s->block);
}

static uint32_t registers(grad_t* g, const char* name, double value) {
  uint32_t id = pestle_kir_add_buffer(g->k, name, PESTLE_KIR_PRIVATE,
                                      PESTLE_F32, g->s.lanes, g->s.vectors, 0);
  pestle_kir_alloc(g->k, id);
  for (int64_t j = 0; j < g->s.vectors; ++j)
    store(g, id, number(g, j), real(g, g->s.lanes, value));
  return id;
}

// w^T of the rows from |r| on, as many as a tile has, and one over its sums.
static void make_weights(grad_t* g, pk_t r) {
  const shape_t* s = &g->s;
  int64_t whole = s->columns / TILE_ROWS, rest = s->columns % TILE_ROWS;
  uint32_t maximum = registers(g, "maximum", -INFINITY);
  if (whole) {
    pk_t i = loop(g, "c", whole);
    make_scores(g, at(g, i, TILE_ROWS, number(g, 0)), TILE_ROWS, r, maximum);
    end(g, whole);
  }
  if (rest) make_scores(g, number(g, whole * TILE_ROWS), rest, r, maximum);
  uint32_t total = registers(g, "total", 0);
  pk_t c = loop(g, "e", s->columns);
  for (int64_t j = 0; j < s->vectors; ++j) {
    pk_t index = at(g, c, s->block, plus(g, r, j * s->lanes));
    pk_t x = load(g, g->w, s->lanes, index);
    x = op(g, PESTLE_OP_SUBTRACT, x, load(g, maximum, s->lanes, number(g, j)));
    x = pestle_kir_scalar(g->k, g->binary ? PESTLE_OP_EXP2 : PESTLE_OP_EXP, x,
                          PESTLE_KIR_NONE, PESTLE_KIR_NONE);
    store(g, g->w, index, x);
    pk_t sum = load(g, total, s->lanes, number(g, j));
    store(g, total, number(g, j), op(g, PESTLE_OP_ADD, sum, x));
  }
  end(g, s->columns);
  for (int64_t j = 0; j < s->vectors; ++j) {
    pk_t sum = load(g, total, s->lanes, number(g, j));
    store(g, g->inverse, plus(g, r, j * s->lanes),
          op(g, PESTLE_OP_DIVIDE, real(g, s->lanes, 1), sum));
  }
}

// --- Blocks of q, c and dq ---

// to[j, r] = factor * from[row r, j]
static void turn(grad_t* g, uint32_t from, pk_t from_at, int64_t width,
                 bool has_rows, double factor, uint32_t to) {
  pk_t r = loop(g, "r", g->s.block);
  pk_t row = has_rows ? row_of(g, r) : r;
  pk_t j = loop(g, "j", width);
  pk_t first = at(g, row, width, from_at);
  pk_t x = load(g, from, 1, op(g, PESTLE_OP_ADD, first, j));
  if (factor < 1 || factor > 1) {
    x = op(g, PESTLE_OP_MULTIPLY, x, real(g, 1, factor));
  }
  store(g, to, at(g, j, g->s.block, r), x);
  end(g, width);
  end(g, g->s.block);
}

// c' = c / sum and delta = sum c' y, of 0 behind the last row. A y of 16 bits was rounded
// too far for that: delta is then sum w dw.
static void scale_cotangents(grad_t* g) {
  const shape_t* s = &g->s;
  unsigned n = s->width_lanes;
  int64_t vectors = s->width / n;
  pk_t r = loop(g, "r", s->block);
  pk_t factor = load(g, g->inverse, 1, r);
  if (has_tail(g)) {
    factor = pestle_kir_scalar(g->k, PESTLE_OP_SELECT, is_row(g, r), factor,
                               real(g, 1, 0));
  }
  factor = pestle_kir_splat(g->k, factor, n);
  pk_t from = at(g, row_of(g, r), s->width, g->y_at);
  pk_t to = at(g, r, s->width, number(g, 0));
  uint32_t delta = pestle_direct_variable(g->d, "delta", PESTLE_F32, n);
  pestle_direct_set(g->d, delta, real(g, n, 0));
  pk_t j = loop(g, "j", vectors);
  pk_t c = load_wide(g, g->c, n, at(g, j, n, from));
  c = op(g, PESTLE_OP_MULTIPLY, c, factor);
  store(g, g->co, at(g, j, n, to), c);
  pk_t sum = pestle_direct_get(g->d, delta);
  if (!g->narrow) {
    pk_t y = load(g, g->y, n, at(g, j, n, from));
    pestle_direct_set(g->d, delta,
                      pestle_kir_scalar(g->k, PESTLE_OP_FMA, c, y, sum));
  }
  end(g, vectors);
  sum = pestle_direct_get(g->d, delta);
  store(g, g->delta, r, pestle_kir_reduce(g->k, sum, PESTLE_OP_ADD));
  end(g, s->block);
}

void pestle_direct_grad_scale_delta(grad_t* g) {
  const shape_t* s = &g->s;
  pk_t i = loop(g, "i", s->block / s->lanes);
  pk_t index = at(g, i, s->lanes, number(g, 0));
  pk_t sum = load(g, g->delta, s->lanes, index);
  pk_t factor = load(g, g->inverse, s->lanes, index);
  store(g, g->delta, index, op(g, PESTLE_OP_MULTIPLY, sum, factor));
  end(g, s->block / s->lanes);
}

void pestle_direct_grad_end_block(grad_t* g) {
  const shape_t* s = &g->s;
  pk_t r = loop(g, "r", s->block);
  if (has_tail(g)) pestle_kir_if(g->k, is_row(g, r));
  pk_t to = at(g, row_of(g, r), s->depth, g->q_at);
  pk_t j = loop(g, "j", s->depth);
  pk_t x = load(g, g->dqt, 1, at(g, j, s->block, r));
  x = cast(g, x, dtype_of(g));
  store(g, g->dq, op(g, PESTLE_OP_ADD, to, j), x);
  end(g, s->depth);
  if (has_tail(g)) pestle_kir_end(g->k);
  end(g, s->block);
}

void pestle_direct_grad_clear(grad_t* g, uint32_t buffer, pk_t from,
                              int64_t count) {
  unsigned n = g->s.lanes;
  while (count % n)
    n /= 2;
  pk_t i = loop(g, "i", count / n);
  store(g, buffer, at(g, i, n, from), real(g, n, 0));
  end(g, count / n);
}

void pestle_direct_grad_convert(grad_t* g, uint32_t buffer, pk_t from,
                                int64_t count, uint32_t to, pk_t to_at,
                                pestle_dtype_t dtype) {
  unsigned n = g->s.lanes;
  while (count % n)
    n /= 2;
  pk_t i = loop(g, "i", count / n);
  pk_t x = cast(g, load(g, buffer, n, at(g, i, n, from)), dtype);
  store(g, to, at(g, i, n, to_at), x);
  end(g, count / n);
}

// The rows of q, in f32.
static void widen_rows(grad_t* g) {
  const shape_t* s = &g->s;
  pk_t r = loop(g, "r", s->block);
  pk_t from = at(g, row_of(g, r), s->depth, g->q_at);
  pk_t to = at(g, r, s->depth, number(g, 0));
  pestle_direct_grad_convert(g, g->q, from, s->depth, g->q_wide, to,
                             PESTLE_F32);
  end(g, s->block);
}

void pestle_direct_grad_begin_block(grad_t* g) {
  const shape_t* s = &g->s;
  int64_t side = s->vectors * s->lanes;
  if (g->narrow) {
    widen_rows(g);
    turn(g, g->q_wide, number(g, 0), s->depth, false, g->factor, g->qt);
  } else {
    turn(g, g->q, g->q_at, s->depth, true, g->factor, g->qt);
  }
  pk_t part = loop(g, "part", s->block / side);
  make_weights(g, at(g, part, side, number(g, 0)));
  end(g, s->block / side);
  scale_cotangents(g);
  turn(g, g->co, number(g, 0), s->width, false, 1, g->ct);
  pestle_direct_grad_clear(g, g->dqt, number(g, 0), s->depth * s->block);
}
