// SPDX-License-Identifier: Apache-2.0
// The gradient of an attention on a CPU, in one kernel: no more than a block of rows of
// scores is in memory, and that in a core's cache. Groups take a batch element each:
//
//   dk = dv = 0
//   for each block of rows:
//     x^T = k (scale q)^T, its maximum and sum along columns, w^T = exp(x^T - maximum)
//     c' = c / sum,  delta = sum c' y
//     for each chunk of columns, and each tile of them:
//       dv += w^T c'        dx^T = w^T (v c'^T - delta) scale, in the place of w^T
//       dk += dx^T q        and of the chunk: dq^T += k^T dx^T
//     dq = (dq^T)^T
//
// Scores lie by columns, with the rows of each in lanes: maxima, sums and delta need no
// reduction across a vector, and of all operands only blocks of q, c and dq are turned.
// What is added to dk and dv comes in the order of the blocks: the same bits in each run.
//
// Operands of 16 bits are made f32 first, keys and values once a batch element. dv and
// dw^T = v c'^T are then made of all columns before the rest, since delta is sum w dw of
// them: y was rounded.
//
// A bias and a mask are given across too, [.., columns, rows] (passes/whole_composites.c).
#include "codegen/direct/direct_attention_grad.h"

#include <float.h>
#include <math.h>

#define LOG2E 0x1.71547652b82fep+0

enum {
  MOST_VECTORS = PESTLE_DIRECT_TILE_VECTORS,  // where there are 32 registers
  LEAST_VECTORS = 2,                          // and where there are 16
  REGISTERS = 32,
  BLOCK = 64,              // rows of a block, about
  CHUNK = 16 * TILE_ROWS,  // columns
  F32_BYTES = 4,
};

// --- Columns ---

// to[c + i, ..] += sum of w[c + i, r] b[r, ..] over the rows, |width| numbers of each.
static void add_columns(grad_t* g, pk_t c, int64_t rows, uint32_t to,
                        pk_t to_at, int64_t width, unsigned lanes, uint32_t b,
                        pk_t b_at, bool b_has_rows) {
  int64_t vectors = width / lanes;
  for (int64_t first = 0; first < vectors; first += g->s.vectors) {
    pestle_direct_tile_t t = {.k = g->k,
                              .rows = rows,
                              .vectors = vectors - first < g->s.vectors
                                             ? vectors - first
                                             : g->s.vectors,
                              .depth = g->s.block,
                              .lanes = lanes,
                              .a = g->w,
                              .a_at = at(g, c, g->s.block, number(g, 0)),
                              .a_row = g->s.block,
                              .a_step = 1,
                              .b = b,
                              .b_at = plus(g, b_at, first * lanes),
                              .b_step = width,
                              .bounded = b_has_rows};
    if (b_has_rows) {
      t.b_first = at(g, g->block, g->s.block, number(g, 0));
      t.b_last = g->s.rows - 1;
    }
    pk_t from = plus(g, at(g, c, width, to_at), first * lanes);
    pestle_direct_tile_begin(&t);
    pestle_direct_tile_load(&t, to, from, width);
    pestle_direct_tile_multiply(&t);
    pestle_direct_tile_store(&t, to, from, width);
  }
}

// dw^T = v c'^T of columns from |c| and rows from |r| on.
static pestle_direct_tile_t multiply_cotangents(grad_t* g, pk_t c, int64_t rows,
                                                pk_t r) {
  const shape_t* s = &g->s;
  pestle_direct_tile_t t = {.k = g->k,
                            .rows = rows,
                            .vectors = s->vectors,
                            .depth = s->width,
                            .lanes = s->lanes,
                            .a = g->v,
                            .a_at = at(g, c, s->width, g->v_at),
                            .a_row = s->width,
                            .a_step = 1,
                            .b = g->ct,
                            .b_at = r,
                            .b_step = s->block};
  pestle_direct_tile_begin(&t);
  pestle_direct_tile_clear(&t);
  pestle_direct_tile_multiply(&t);
  return t;
}

// Keeps dw^T and adds w dw to delta.
static void weigh_cotangents(grad_t* g, pk_t c, int64_t rows, pk_t r) {
  const shape_t* s = &g->s;
  pestle_direct_tile_t t = multiply_cotangents(g, c, rows, r);
  pestle_direct_tile_store(&t, g->dw, at(g, c, s->block, r), s->block);
  for (int64_t j = 0; j < s->vectors; ++j) {
    pk_t row = plus(g, r, j * s->lanes);
    pk_t sum = load(g, g->delta, s->lanes, row);
    for (int64_t i = 0; i < rows; ++i) {
      pk_t w = load(g, g->w, s->lanes, at(g, plus(g, c, i), s->block, row));
      sum = pestle_kir_scalar(g->k, PESTLE_OP_FMA, w,
                              pestle_direct_tile_get(&t, i, j), sum);
    }
    store(g, g->delta, row, sum);
  }
}

// dw^T that was kept.
static pestle_direct_tile_t kept_cotangents(grad_t* g, pk_t c, int64_t rows,
                                            pk_t r) {
  const shape_t* s = &g->s;
  pestle_direct_tile_t t = {
      .k = g->k, .rows = rows, .vectors = s->vectors, .lanes = s->lanes};
  pestle_direct_tile_begin(&t);
  pestle_direct_tile_load(&t, g->dw, at(g, c, s->block, r), s->block);
  return t;
}

// dx^T in the place of w^T, of rows from |r| on.
static void make_cotangents(grad_t* g, pk_t c, int64_t rows, pk_t r) {
  const shape_t* s = &g->s;
  pestle_direct_tile_t t = g->narrow ? kept_cotangents(g, c, rows, r)
                                     : multiply_cotangents(g, c, rows, r);
  pk_t scale = real(g, s->lanes, PESTLE_NODE_F64(g->node, scale));
  for (int64_t j = 0; j < s->vectors; ++j) {
    pk_t delta = load(g, g->delta, s->lanes, plus(g, r, j * s->lanes));
    for (int64_t i = 0; i < rows; ++i) {
      pk_t row = plus(g, r, j * s->lanes);
      pk_t index = at(g, plus(g, c, i), s->block, row);
      pk_t w = load(g, g->w, s->lanes, index);
      pk_t x =
          op(g, PESTLE_OP_SUBTRACT, pestle_direct_tile_get(&t, i, j), delta);
      x = op(g, PESTLE_OP_MULTIPLY, op(g, PESTLE_OP_MULTIPLY, w, scale), x);
      if (s->of.mask) {
        x = pestle_kir_scalar(g->k, PESTLE_OP_SELECT,
                              pestle_direct_grad_kept(g, plus(g, c, i), row), x,
                              real(g, s->lanes, 0));
      }
      store(g, g->w, index, x);
    }
  }
}

static void add_values(grad_t* g, pk_t c, int64_t rows) {
  add_columns(g, c, rows, g->dv, g->v_at, g->s.width, g->s.width_lanes, g->co,
              number(g, 0), false);
}

// Of 16 bits: what is done before delta is known.
static void weigh_columns(grad_t* g, pk_t c, int64_t rows) {
  int64_t side = g->s.vectors * g->s.lanes;
  add_values(g, c, rows);
  pk_t part = loop(g, "part", g->s.block / side);
  weigh_cotangents(g, c, rows, at(g, part, side, number(g, 0)));
  end(g, g->s.block / side);
}

static void do_columns(grad_t* g, pk_t c, int64_t rows) {
  const shape_t* s = &g->s;
  int64_t side = s->vectors * s->lanes;
  if (!g->narrow) add_values(g, c, rows);
  pk_t part = loop(g, "part", s->block / side);
  make_cotangents(g, c, rows, at(g, part, side, number(g, 0)));
  end(g, s->block / side);
  uint32_t q = g->narrow ? g->q_wide : g->q;
  pk_t q_at = g->narrow ? number(g, 0) : g->q_at;
  add_columns(g, c, rows, g->dk, g->k_at, s->depth, s->depth_lanes, q, q_at,
              !g->narrow);
}

// Calls |tile| for all columns.
static void each_tile(grad_t* g, pk_t first, int64_t count,
                      void (*tile)(grad_t* g, pk_t c, int64_t rows)) {
  int64_t whole = count / TILE_ROWS, rest = count % TILE_ROWS;
  if (whole) {
    pk_t i = loop(g, "tile", whole);
    tile(g, at(g, i, TILE_ROWS, first), TILE_ROWS);
    end(g, whole);
  }
  if (rest) tile(g, plus(g, first, whole * TILE_ROWS), rest);
}

// dq^T += k^T dx^T of |count| columns from |c| on.
static void add_rows(grad_t* g, pk_t c, int64_t count, pk_t depth,
                     int64_t rows) {
  const shape_t* s = &g->s;
  int64_t side = s->vectors * s->lanes;
  pk_t part = loop(g, "part", s->block / side);
  pk_t r = at(g, part, side, number(g, 0));
  pestle_direct_tile_t t = {
      .k = g->k,
      .rows = rows,
      .vectors = s->vectors,
      .depth = count,
      .lanes = s->lanes,
      .a = g->keys,
      .a_at = op(g, PESTLE_OP_ADD, at(g, c, s->depth, g->k_at), depth),
      .a_row = 1,
      .a_step = s->depth,
      .b = g->w,
      .b_at = at(g, c, s->block, r),
      .b_step = s->block};
  pk_t to = at(g, depth, s->block, r);
  pestle_direct_tile_begin(&t);
  pestle_direct_tile_load(&t, g->dqt, to, s->block);
  pestle_direct_tile_multiply(&t);
  pestle_direct_tile_store(&t, g->dqt, to, s->block);
  end(g, s->block / side);
}

static void do_chunk(grad_t* g, pk_t c, int64_t count) {
  int64_t whole = g->s.depth / TILE_ROWS, rest = g->s.depth % TILE_ROWS;
  each_tile(g, c, count, do_columns);
  if (whole) {
    pk_t i = loop(g, "tile", whole);
    add_rows(g, c, count, at(g, i, TILE_ROWS, number(g, 0)), TILE_ROWS);
    end(g, whole);
  }
  if (rest) add_rows(g, c, count, number(g, whole * TILE_ROWS), rest);
}

// --- The kernel ---

static void do_block(grad_t* g) {
  int64_t whole = g->s.columns / CHUNK, rest = g->s.columns % CHUNK;
  pestle_direct_grad_begin_block(g);
  if (g->narrow) {
    each_tile(g, number(g, 0), g->s.columns, weigh_columns);
    pestle_direct_grad_scale_delta(g);
  }
  if (whole) {
    pk_t i = loop(g, "chunk", whole);
    do_chunk(g, at(g, i, CHUNK, number(g, 0)), CHUNK);
    end(g, whole);
  }
  if (rest) do_chunk(g, number(g, whole * CHUNK), rest);
  pestle_direct_grad_end_block(g);
}

// Where the part of the head begins in |value|, whose batch axes may be 1.
static pk_t place_of(grad_t* g, const pestle_value_t* value) {
  const pestle_type_t *type = value->type, *q = g->s.of.q->type;
  int32_t rank = type->rank;
  int64_t stride = type->dims[rank - 1] * type->dims[rank - 2];
  pk_t left = g->head, index = number(g, 0);
  for (int32_t i = rank - 2; i-- > 0;) {
    if (type->dims[i] != 1) {
      pk_t own =
          pestle_kir_scalar_i(g->k, PESTLE_OP_REMAINDER, left, q->dims[i]);
      index = at(g, own, stride, index);
      stride *= type->dims[i];
    }
    left = pestle_kir_scalar_i(g->k, PESTLE_OP_DIVIDE, left, q->dims[i]);
  }
  return index;
}

static uint32_t scratch(grad_t* g, const char* name, int64_t count) {
  return pestle_kir_add_buffer(g->k, name, PESTLE_KIR_SHARED, PESTLE_F32, 1,
                               count, 0);
}

static uint32_t operand_of(grad_t* g, const pestle_value_t* value) {
  for (uint32_t i = 0; i < g->d->node->operand_count; ++i) {
    if (pestle_block_argument(pestle_node_body(g->d->node, 0), i) == value) {
      return pestle_direct_operand(g->d, i);
    }
  }
  g->k->failed = true;
  return 0;
}

// What is multiplied and added up is in f32.
static void add_wide(grad_t* g) {
  const shape_t* s = &g->s;
  g->k_narrow = g->keys;
  g->v_narrow = g->v;
  g->dk_narrow = g->dk;
  g->dv_narrow = g->dv;
  g->keys = scratch(g, "k_wide", s->columns * s->depth);
  g->v = scratch(g, "v_wide", s->columns * s->width);
  g->dk = scratch(g, "dk_wide", s->columns * s->depth);
  g->dv = scratch(g, "dv_wide", s->columns * s->width);
  g->q_wide = scratch(g, "q_wide", s->block * s->depth);
  g->dw = scratch(g, "dw", s->columns * s->block);
}

static void add_buffers(grad_t* g) {
  const shape_t* s = &g->s;
  g->q = operand_of(g, s->of.q);
  g->keys = operand_of(g, s->of.k);
  g->v = operand_of(g, s->of.v);
  g->y = operand_of(g, s->of.y);
  g->c = operand_of(g, s->of.c);
  if (s->of.bias) g->bias = operand_of(g, s->of.bias);
  if (s->of.mask) g->mask = operand_of(g, s->of.mask);
  g->dq = pestle_direct_result(g->d, 0);
  g->dk = pestle_direct_result(g->d, 1);
  g->dv = pestle_direct_result(g->d, 2);
  g->w = scratch(g, "w", s->columns * s->block);
  g->qt = scratch(g, "qt", s->depth * s->block);
  g->ct = scratch(g, "ct", s->width * s->block);
  g->co = scratch(g, "co", s->width * s->block);
  g->dqt = scratch(g, "dqt", s->depth * s->block);
  g->delta = scratch(g, "delta", s->block);
  g->inverse = scratch(g, "inverse", s->block);
  if (g->narrow) add_wide(g);
}

static void do_head(grad_t* g) {
  const shape_t* s = &g->s;
  pk_t zero = number(g, 0);
  g->q_at = at(g, g->head, s->rows * s->depth, zero);
  g->k_at = at(g, g->head, s->columns * s->depth, zero);
  g->v_at = at(g, g->head, s->columns * s->width, zero);
  g->y_at = at(g, g->head, s->rows * s->width, zero);
  if (s->of.bias) g->bias_at = place_of(g, s->of.bias);
  if (s->of.mask) g->mask_at = place_of(g, s->of.mask);
  pk_t k_at = g->k_at, v_at = g->v_at;
  int64_t keys = s->columns * s->depth, values = s->columns * s->width;
  if (g->narrow) {
    pestle_direct_grad_convert(g, g->k_narrow, k_at, keys, g->keys, zero,
                               PESTLE_F32);
    pestle_direct_grad_convert(g, g->v_narrow, v_at, values, g->v, zero,
                               PESTLE_F32);
    g->k_at = g->v_at = zero;
  }
  pestle_direct_grad_clear(g, g->dk, g->k_at, keys);
  pestle_direct_grad_clear(g, g->dv, g->v_at, values);
  int64_t blocks = (s->rows + s->block - 1) / s->block;
  g->block = loop(g, "block", blocks);
  do_block(g);
  end(g, blocks);
  if (!g->narrow) return;
  pestle_dtype_t dtype = dtype_of(g);
  pestle_direct_grad_convert(g, g->dk, zero, keys, g->dk_narrow, k_at, dtype);
  pestle_direct_grad_convert(g, g->dv, zero, values, g->dv_narrow, v_at, dtype);
}

// What hides a score stays finite where it was (composite_attention.c).
static double hidden(double low, double unit) {
  if (fabs(low) > (double)FLT_MAX) return low;
  return fmin(fmax(low * unit, -(double)FLT_MAX), (double)FLT_MAX);
}

// The most lanes, up to |most|, that go into |extent|.
static unsigned lanes_of(int64_t extent, unsigned most) {
  while (extent % most)
    most /= 2;
  return most;
}

static shape_t shape_of(pestle_attention_grad_t of,
                        const pestle_target_caps_t* caps) {
  const pestle_type_t *q = of.q->type, *v = of.v->type;
  shape_t s = {.of = of,
               .heads = 1,
               .rows = q->dims[q->rank - 2],
               .depth = q->dims[q->rank - 1],
               .columns = v->dims[v->rank - 2],
               .width = v->dims[v->rank - 1]};
  for (int32_t i = 0; i + 2 < q->rank; ++i)
    s.heads *= q->dims[i];
  s.lanes = caps->vector_bytes / F32_BYTES;
  if (s.lanes < 1) s.lanes = 1;
  int64_t vectors = (s.rows + s.lanes - 1) / s.lanes;
  s.vectors =
      caps->vector_registers >= REGISTERS ? MOST_VECTORS : LEAST_VECTORS;
  if (s.vectors > vectors) s.vectors = vectors;
  int64_t side = s.vectors * s.lanes, blocks = (s.rows + side - 1) / side;
  int64_t most = BLOCK / side < 1 ? 1 : BLOCK / side;
  s.block = side * (blocks < most ? blocks : most);
  s.width_lanes = lanes_of(s.width, s.lanes);
  s.depth_lanes = lanes_of(s.depth, s.lanes);
  return s;
}

pestle_status_t pestle_direct_attention_grad(pestle_direct_t* d) {
  grad_t g = {.d = d, .k = d->k, .node = pestle_direct_whole_of(d->node)};
  g.s = shape_of(pestle_attention_grad_read(g.node), d->caps);
  g.binary = !g.s.of.bias;
  g.narrow = dtype_of(&g) != PESTLE_F32;
  double unit = g.binary ? LOG2E : 1;
  g.factor = PESTLE_NODE_F64(g.node, scale) * unit;
  g.masked = hidden(PESTLE_NODE_F64(g.node, masked), unit);
  add_buffers(&g);
  g.head = pestle_kir_for(g.k, "head", number(&g, 0), number(&g, g.s.heads), 1,
                          PESTLE_KIR_GROUP_X);
  do_head(&g);
  pestle_kir_end(g.k);
  int64_t scores = g.s.heads * g.s.rows * g.s.columns;
  d->steps = (uint64_t)(scores * (3 * g.s.depth + 2 * g.s.width + 20) /
                        (int64_t)g.s.lanes);
  return NULL;
}
