// SPDX-License-Identifier: Apache-2.0
// The gradient of a norm on a CPU, in one kernel: each row is read from memory once and stays
// in L1, and the sums of a block of rows stay there too. A group takes a block of rows:
//
//   for each row:
//     mean(x), where the norm is centred
//     sums of d^2, d t and t, with d = x - mean and t = c scale
//     dx = rate (t - h along - all), of scale += c h, of offset += c
#include "codegen/direct/direct.h"

enum {
  UNROLL = 4,  // sums side by side
  SUMS = 3,
  F32_BYTES = 4,
};

typedef struct norm_t {
  pestle_direct_t* d;
  pestle_kir_builder_t* k;
  unsigned lanes;
  int64_t rows, length, blocks, block;  // |block|: rows of one
  double epsilon;
  bool is_centred;
  uint32_t x, scale, c, dx, result[2];  // buffers; the sums of the results
  uint32_t total[2];                    // and of the block, in scratch
  uint32_t sums[SUMS];                  // registers
  pk_t group, row_at, next_at;          // where this row and the next one begin
  pk_t mean, rate, along, all;          // vectors, of the row
} norm_t;

// One vector of a row, at |at|; |mask| NONE: all of it; |slot|: which of UNROLL.
typedef void (*step_t)(norm_t* n, pk_t at, pk_t mask, int64_t slot);

static pk_t number(norm_t* n, int64_t value) {
  return pestle_kir_index(n->k, value);
}

static pk_t real(norm_t* n, unsigned lanes, double value) {
  return pestle_kir_float(n->k, PESTLE_F32, lanes, value);
}

static pk_t op(norm_t* n, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_kir_scalar(n->k, o, a, b, PESTLE_KIR_NONE);
}

static pk_t multiply_add(norm_t* n, pk_t a, pk_t b, pk_t c) {
  return pestle_kir_scalar(n->k, PESTLE_OP_FMA, a, b, c);
}

// 0 where |mask| is not.
static pk_t load(norm_t* n, uint32_t buffer, pk_t at, pk_t mask) {
  pk_t a = pestle_kir_load(n->k, buffer, n->lanes, at, mask, 0);
  if (mask == PESTLE_KIR_NONE) return a;
  return pestle_kir_scalar(n->k, PESTLE_OP_SELECT, mask, a,
                           real(n, n->lanes, 0));
}

static pk_t load_row(norm_t* n, uint32_t buffer, pk_t at, pk_t mask) {
  return load(n, buffer, op(n, PESTLE_OP_ADD, n->row_at, at), mask);
}

static void walk(norm_t* n, step_t step) {
  int64_t whole = n->length / n->lanes, rest = n->length % n->lanes;
  int64_t turns = whole / UNROLL, lanes = n->lanes;
  if (turns) {
    pk_t i = pestle_kir_repeat(n->k, "i", turns);
    for (int64_t u = 0; u < UNROLL; ++u) {
      pk_t at = pestle_kir_madi(n->k, i, UNROLL * lanes, number(n, u * lanes));
      step(n, at, PESTLE_KIR_NONE, u);
    }
    pestle_kir_end_repeat(n->k, turns);
  }
  for (int64_t v = turns * UNROLL; v < whole; ++v)
    step(n, number(n, v * lanes), PESTLE_KIR_NONE, v % UNROLL);
  if (rest) {
    pk_t at = number(n, whole * lanes);
    pk_t mask = pestle_kir_mask(n->k, at, number(n, n->length), n->lanes);
    step(n, at, mask, 0);
  }
}

// --- Sums of a row ---

static void begin_sums(norm_t* n) {
  for (int s = 0; s < SUMS; ++s) {
    n->sums[s] = pestle_kir_add_buffer(n->k, "sums", PESTLE_KIR_PRIVATE,
                                       PESTLE_F32, n->lanes, UNROLL, 0);
    pestle_kir_alloc(n->k, n->sums[s]);
    for (int64_t u = 0; u < UNROLL; ++u)
      pestle_kir_store(n->k, n->sums[s], number(n, u), real(n, n->lanes, 0),
                       PESTLE_KIR_NONE, 0);
  }
}

static pk_t sum_of(norm_t* n, int s, int64_t slot) {
  return pestle_kir_load(n->k, n->sums[s], n->lanes, number(n, slot),
                         PESTLE_KIR_NONE, 0);
}

static void set_sum(norm_t* n, int s, int64_t slot, pk_t value) {
  pestle_kir_store(n->k, n->sums[s], number(n, slot), value, PESTLE_KIR_NONE,
                   0);
}

// The mean of sum |s|, one number.
static pk_t finish_mean(norm_t* n, int s) {
  pk_t a = op(n, PESTLE_OP_ADD, sum_of(n, s, 0), sum_of(n, s, 1));
  pk_t b = op(n, PESTLE_OP_ADD, sum_of(n, s, 2), sum_of(n, s, 3));
  a = pestle_kir_reduce(n->k, op(n, PESTLE_OP_ADD, a, b), PESTLE_OP_ADD);
  return op(n, PESTLE_OP_DIVIDE, a, real(n, 1, (double)n->length));
}

static void add_x(norm_t* n, pk_t at, pk_t mask, int64_t slot) {
  pk_t x = load_row(n, n->x, at, mask);
  set_sum(n, 0, slot, op(n, PESTLE_OP_ADD, sum_of(n, 0, slot), x));
}

// x less its mean, 0 where |mask| is not.
static pk_t centred(norm_t* n, pk_t at, pk_t mask) {
  pk_t x = load_row(n, n->x, at, mask);
  if (!n->is_centred) return x;
  x = op(n, PESTLE_OP_SUBTRACT, x, n->mean);
  if (mask == PESTLE_KIR_NONE) return x;
  return pestle_kir_scalar(n->k, PESTLE_OP_SELECT, mask, x,
                           real(n, n->lanes, 0));
}

static void add_products(norm_t* n, pk_t at, pk_t mask, int64_t slot) {
  pk_t x = centred(n, at, mask);
  pk_t c = load_row(n, n->c, at, mask), scale = load(n, n->scale, at, mask);
  pk_t t = op(n, PESTLE_OP_MULTIPLY, c, scale);
  set_sum(n, 0, slot, multiply_add(n, x, x, sum_of(n, 0, slot)));
  set_sum(n, 1, slot, multiply_add(n, x, t, sum_of(n, 1, slot)));
  if (!n->is_centred) return;
  set_sum(n, 2, slot, op(n, PESTLE_OP_ADD, sum_of(n, 2, slot), t));
}

// --- What a row gives ---

static void add_total(norm_t* n, int s, pk_t at, pk_t value) {
  pk_t sum = load(n, n->total[s], at, PESTLE_KIR_NONE);
  pestle_kir_store(n->k, n->total[s], at, op(n, PESTLE_OP_ADD, sum, value),
                   PESTLE_KIR_NONE, 0);
}

// The next row is asked for while this one is computed.
static void fetch_next(norm_t* n, uint32_t buffer, pk_t at) {
  pestle_kir_act(n->k, PESTLE_KIR_PREFETCH, buffer,
                 op(n, PESTLE_OP_ADD, n->next_at, at), 0, 0);
}

static void write(norm_t* n, pk_t at, pk_t mask, int64_t slot) {
  (void)slot;
  fetch_next(n, n->x, at);
  fetch_next(n, n->c, at);
  pk_t x = centred(n, at, mask);
  pk_t c = load_row(n, n->c, at, mask), scale = load(n, n->scale, at, mask);
  pk_t h = op(n, PESTLE_OP_MULTIPLY, x, n->rate);
  pk_t t = op(n, PESTLE_OP_MULTIPLY, c, scale);
  pk_t y = op(n, PESTLE_OP_SUBTRACT, t, op(n, PESTLE_OP_MULTIPLY, h, n->along));
  if (n->is_centred) y = op(n, PESTLE_OP_SUBTRACT, y, n->all);
  y = op(n, PESTLE_OP_MULTIPLY, y, n->rate);
  pestle_kir_store(n->k, n->dx, op(n, PESTLE_OP_ADD, n->row_at, at), y, mask,
                   0);
  add_total(n, 0, at, op(n, PESTLE_OP_MULTIPLY, c, h));
  if (n->is_centred) add_total(n, 1, at, c);
}

static void clear_totals(norm_t* n, pk_t at, pk_t mask, int64_t slot) {
  (void)mask;
  (void)slot;
  for (int s = 0; s < 1 + n->is_centred; ++s)
    pestle_kir_store(n->k, n->total[s], at, real(n, n->lanes, 0),
                     PESTLE_KIR_NONE, 0);
}

static void write_totals(norm_t* n, pk_t at, pk_t mask, int64_t slot) {
  (void)slot;
  for (int s = 0; s < 1 + n->is_centred; ++s) {
    pk_t sum = load(n, n->total[s], at, PESTLE_KIR_NONE);
    pk_t to = pestle_kir_madi(n->k, n->group, n->length, at);
    pestle_kir_store(n->k, n->result[s], to, sum, mask, 0);
  }
}

static void do_row(norm_t* n) {
  if (n->is_centred) {
    begin_sums(n);
    walk(n, add_x);
    n->mean = pestle_kir_splat(n->k, finish_mean(n, 0), n->lanes);
  }
  begin_sums(n);
  walk(n, add_products);
  pk_t rate = op(n, PESTLE_OP_ADD, finish_mean(n, 0), real(n, 1, n->epsilon));
  rate = op(n, PESTLE_OP_RSQRT, rate, PESTLE_KIR_NONE);
  pk_t along = op(n, PESTLE_OP_MULTIPLY, finish_mean(n, 1), rate);
  n->rate = pestle_kir_splat(n->k, rate, n->lanes);
  n->along = pestle_kir_splat(n->k, along, n->lanes);
  if (n->is_centred) {
    n->all = pestle_kir_splat(n->k, finish_mean(n, 2), n->lanes);
  }
  walk(n, write);
}

static void do_block(norm_t* n) {
  bool has_tail = n->blocks * n->block != n->rows;
  walk(n, clear_totals);
  pk_t r = pestle_kir_repeat(n->k, "r", n->block);
  pk_t row = pestle_kir_madi(n->k, n->group, n->block, r);
  if (has_tail) {
    pestle_kir_if(n->k, pestle_kir_scalar_i(n->k, PESTLE_OP_LT, row, n->rows));
    row = pestle_kir_scalar_i(n->k, PESTLE_OP_MINIMUM, row, n->rows - 1);
  }
  n->row_at = pestle_kir_madi(n->k, row, n->length, number(n, 0));
  pk_t next = pestle_kir_madi(n->k, row, 1, number(n, 1));
  next = pestle_kir_scalar_i(n->k, PESTLE_OP_MINIMUM, next, n->rows - 1);
  n->next_at = pestle_kir_madi(n->k, next, n->length, number(n, 0));
  do_row(n);
  if (has_tail) pestle_kir_end(n->k);
  pestle_kir_end_repeat(n->k, n->block);
  walk(n, write_totals);
}

pestle_status_t pestle_direct_norm_grad(pestle_direct_t* d) {
  const pestle_node_t* node = pestle_direct_whole_of(d->node);
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  norm_t n = {.d = d,
              .k = d->k,
              .lanes = d->caps->vector_bytes / F32_BYTES,
              .rows = 1,
              .length = 1,
              .blocks = PESTLE_NODE_I64(node, blocks),
              .epsilon = PESTLE_NODE_F64(node, epsilon),
              .is_centred = PESTLE_NODE_BOOL(node, centred)};
  if (n.lanes < 1) n.lanes = 1;
  for (int32_t i = 0; i < x->rank; ++i)
    *(i < PESTLE_NODE_I64(node, dimension) ? &n.rows : &n.length) *= x->dims[i];
  n.block = (n.rows + n.blocks - 1) / n.blocks;
  n.x = pestle_direct_operand(d, 0);
  n.scale = pestle_direct_operand(d, 1);
  n.c = pestle_direct_operand(d, 2);
  n.dx = pestle_direct_result(d, 0);
  int64_t padded = (n.length + n.lanes - 1) / n.lanes * n.lanes;
  for (int s = 0; s < 1 + n.is_centred; ++s) {
    n.result[s] = pestle_direct_result(d, (size_t)s + 1);
    n.total[s] = pestle_kir_add_buffer(d->k, "total", PESTLE_KIR_SHARED,
                                       PESTLE_F32, 1, padded, 0);
  }
  n.group = pestle_kir_for(n.k, "group", number(&n, 0), number(&n, n.blocks), 1,
                           PESTLE_KIR_GROUP_X);
  do_block(&n);
  pestle_kir_end(n.k);
  d->steps = (uint64_t)(n.rows * n.length * 12 / (int64_t)n.lanes);
  return NULL;
}
