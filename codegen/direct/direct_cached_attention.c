// SPDX-License-Identifier: Apache-2.0
// Attention of new tokens over a cache on a CPU, in one kernel: row i of the s new ones sees
// the keys 0 to past + i, and no key behind the last that any row sees is read, whatever room
// the cache has. |past| is a number in memory, one for each sequence of a batch. Heads that
// share keys are rows of one cache, [sequences * shared, rows, width], row r the new token
// r % s.
//
//   for each group of a few rows of one cache:
//     for each block of as many keys as a vector has lanes, up to past + the last row's i:
//       for each row:
//         scores = q k^T, a key a lane, -inf behind the row's own
//       for each row:
//         the maximum, weights 2^(scores - maximum), their sums, lane by lane
//       for each few rows:
//         y = y * 2^(old maximum - maximum) + weights v
//     y / the sum of the sums
//
// So rows do not wait for each other. A block of keys stays in L1 for all rows. Of the last
// block only the rows of v that a row of the group may see are read: what lies behind may be a
// NaN.
//
// Keys of one new token are read just once. The next block is asked for a few lines at a time
// while this one is computed: a CPU has room for some 16 to 24 lines that are on their way, and
// what asks for more waits.
#include <math.h>

#include "codegen/direct/direct.h"

#define LOG2E 0x1.71547652b82fep+0

enum {
  MOST_LANES = 16,
  MOST_ROWS = 16,
  TILE_ROWS = 4,
  MOST_TILE_ROWS = 8,  // where rows are no whole tiles of TILE_ROWS
  MOST_SUMS = 16,
  F32_BYTES = 4,
  LINE = 16  // f32 of a line; one of narrower floats is asked for again
};

typedef struct cached_t {
  pestle_direct_t* d;
  pestle_kir_builder_t* k;
  unsigned lanes;
  int64_t batch, shared;                    // sequences, caches of each
  int64_t rows, fresh, most, depth, width;  // fresh: new tokens
  int64_t block, blocks;  // rows of a group, groups of a cache
  int64_t tile, across;   // rows and vectors of y whose sums are registers
  double scale;
  pestle_dtype_t dtype;
  int64_t angles;  // lists of them that turn q: none, one, or one a sequence
  uint32_t q, key, value, past_buffer, y, cosine, sine;
  uint32_t wide, sums, top, rates, made, weights;  // scratch
  uint32_t scores, values;                         // registers
  pk_t past, end;  // keys that were there; those that a row of the group sees
  pk_t sequence, shared_at;  // the cache
  pk_t first_row;            // of the group
  pk_t base;                 // the first key of the block
  pk_t next;  // the row of all caches where the next block begins
} cached_t;

static pk_t number(cached_t* c, int64_t value) {
  return pestle_kir_index(c->k, value);
}
static pk_t real(cached_t* c, unsigned lanes, double value) {
  return pestle_kir_float(c->k, PESTLE_F32, lanes, value);
}
static pk_t op(cached_t* c, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_kir_scalar(c->k, o, a, b, PESTLE_KIR_NONE);
}
// a * factor + b.
static pk_t at(cached_t* c, pk_t a, int64_t factor, pk_t b) {
  return pestle_kir_madi(c->k, a, factor, b);
}
static pk_t plus(cached_t* c, pk_t a, int64_t b) {
  return at(c, a, 1, number(c, b));
}
static pk_t load(cached_t* c, uint32_t buffer, pk_t index) {
  pk_t a = pestle_kir_load(c->k, buffer, c->lanes, index, PESTLE_KIR_NONE, 0);
  return pestle_kir_cast(c->k, a, PESTLE_F32);
}
static void store(cached_t* c, uint32_t buffer, pk_t index, pk_t value) {
  pestle_kir_store(c->k, buffer, index, value, PESTLE_KIR_NONE, 0);
}

// Key or row of v |i| of the block, which is within the cache.
static pk_t row_of(cached_t* c, pk_t i, int64_t width) {
  pk_t key = op(c, PESTLE_OP_ADD, c->base, i);
  if (c->most % c->lanes)
    key = pestle_kir_scalar_i(c->k, PESTLE_OP_MINIMUM, key, c->most - 1);
  key = at(c, c->shared_at, c->most, key);
  return at(c, key, width, number(c, 0));
}

// Asks for |count| elements of |buffer|, from |first| on of those of the next block.
static void ask(cached_t* c, uint32_t buffer, int64_t width, pk_t first,
                int64_t count) {
  if (c->fresh > 1) return;
  first = at(c, c->next, width, first);
  for (int64_t i = 0; i < count; i += LINE)
    pestle_kir_act(c->k, PESTLE_KIR_PREFETCH, buffer, plus(c, first, i),
                   PESTLE_KIR_PREFETCH_FAR, 0);
}

// --- Scores ---

// One vector of the sums of |count| vectors, |count| a power of two up to the lanes: those of
// neighbours are added half by half until each lane is of one of them.
static pk_t sums_of(cached_t* c, const pk_t* x, unsigned count) {
  uint32_t even[MOST_LANES], odd[MOST_LANES];
  pk_t parts[MOST_LANES];
  unsigned lanes = c->lanes;
  for (unsigned i = 0; i < count; ++i)
    parts[i] = x[i];
  // Lanes of a and b in turns of |width|: a's of one half and b's of that half.
  for (unsigned width = 1; count > 1; count /= 2, width *= 2) {
    for (unsigned i = 0; i < lanes; ++i) {
      unsigned turn = i / width, within = i % width, pair = turn / 2 * 2;
      bool is_b = turn % 2;
      even[i] = pair * width + within + (is_b ? lanes : 0);
      odd[i] = (pair + 1) * width + within + (is_b ? lanes : 0);
    }
    for (unsigned i = 0; i < count / 2; ++i) {
      pk_t a = parts[2 * i], b = parts[2 * i + 1];
      pk_t low = pestle_kir_shuffle(c->k, a, b, even, lanes);
      pk_t high = pestle_kir_shuffle(c->k, a, b, odd, lanes);
      parts[i] = op(c, PESTLE_OP_ADD, low, high);
    }
  }
  return parts[0];
}

static pk_t make_scores(cached_t* c, pk_t row) {
  int64_t lanes = c->lanes, chunks = c->depth / lanes;
  int64_t part = (lanes * lanes + c->block - 1) / c->block;
  pk_t parts[MOST_LANES];
  pestle_kir_alloc(c->k, c->scores);
  for (int64_t i = 0; i < lanes; ++i)
    store(c, c->scores, number(c, i), real(c, c->lanes, 0));
  pk_t chunk = pestle_kir_repeat(c->k, "chunk", chunks);
  ask(c, c->key, c->depth, at(c, at(c, row, chunks, chunk), part, number(c, 0)),
      part);
  pk_t q =
      load(c, c->wide, at(c, chunk, lanes, at(c, row, c->depth, number(c, 0))));
  for (int64_t i = 0; i < lanes; ++i) {
    pk_t from = row_of(c, number(c, i), c->depth);
    pk_t k = load(c, c->key, at(c, chunk, lanes, from));
    pk_t sum = load(c, c->scores, number(c, i));
    sum = pestle_kir_scalar(c->k, PESTLE_OP_FMA, q, k, sum);
    store(c, c->scores, number(c, i), sum);
  }
  pestle_kir_end_repeat(c->k, chunks);
  for (int64_t i = 0; i < lanes; ++i)
    parts[i] = load(c, c->scores, number(c, i));
  return sums_of(c, parts, c->lanes);
}

// --- Rows ---

static pk_t one(cached_t* c, uint32_t buffer, pk_t index) {
  return pestle_kir_load(c->k, buffer, 1, index, PESTLE_KIR_NONE, 0);
}

// Element |i| of vector |row| of |buffer|.
static pk_t of_row(cached_t* c, pk_t row, pk_t i) {
  return at(c, row, c->lanes, i);
}

static void score(cached_t* c, pk_t row) {
  unsigned lanes = c->lanes;
  pk_t place = op(c, PESTLE_OP_ADD, c->first_row, row);
  if (c->fresh > 1)
    place = pestle_kir_scalar_i(c->k, PESTLE_OP_REMAINDER, place, c->fresh);
  else
    place = number(c, 0);
  pk_t limit = plus(c, op(c, PESTLE_OP_ADD, c->past, place), 1);
  limit = pestle_kir_scalar_i(c->k, PESTLE_OP_MINIMUM, limit, c->most);
  pk_t is_seen = pestle_kir_mask(c->k, c->base, limit, lanes);
  pk_t x = pestle_kir_scalar(c->k, PESTLE_OP_SELECT, is_seen,
                             make_scores(c, row), real(c, lanes, -INFINITY));
  store(c, c->weights, of_row(c, row, number(c, 0)), x);
}

static void weigh(cached_t* c, pk_t row) {
  unsigned lanes = c->lanes;
  pk_t from = of_row(c, row, number(c, 0));
  pk_t x = load(c, c->weights, from), old = one(c, c->top, row);
  pk_t top = pestle_kir_reduce(c->k, x, PESTLE_OP_MAXIMUM);
  top = op(c, PESTLE_OP_MAXIMUM, old, top);
  pestle_kir_store(c->k, c->top, row, top, PESTLE_KIR_NONE, 0);
  pk_t rate = op(c, PESTLE_OP_EXP2, op(c, PESTLE_OP_SUBTRACT, old, top),
                 PESTLE_KIR_NONE);
  pestle_kir_store(c->k, c->rates, row, rate, PESTLE_KIR_NONE, 0);
  x = op(c, PESTLE_OP_SUBTRACT, x, pestle_kir_splat(c->k, top, lanes));
  x = op(c, PESTLE_OP_EXP2, x, PESTLE_KIR_NONE);
  store(c, c->weights, from, x);
  pk_t sum = pestle_kir_scalar(c->k, PESTLE_OP_FMA, load(c, c->sums, from),
                               pestle_kir_splat(c->k, rate, lanes), x);
  store(c, c->sums, from, sum);
}

// Where sum |i| of a tile lies in |made|: of rows from |row| on, vectors from |first| on.
static pk_t place_of(cached_t* c, pk_t row, pk_t first, int64_t i) {
  row = plus(c, row, i / c->across);
  first = plus(c, first, i % c->across);
  return at(c, first, c->lanes, at(c, row, c->width, number(c, 0)));
}

// The sums plus the weights of key |key| of the block times its row of v.
static void add_value(cached_t* c, pk_t row, pk_t first, pk_t key) {
  int64_t lanes = c->lanes;
  pk_t v[MOST_SUMS], w = PESTLE_KIR_NONE;
  pk_t from = at(c, first, lanes, number(c, 0));
  ask(c, c->value, c->width, at(c, key, c->width, from), c->across * lanes);
  from = op(c, PESTLE_OP_ADD, row_of(c, key, c->width), from);
  for (int64_t i = 0; i < c->across; ++i)
    v[i] = load(c, c->value, plus(c, from, i * lanes));
  for (int64_t i = 0; i < c->tile * c->across; ++i) {
    if (i % c->across == 0) {
      w = one(c, c->weights, of_row(c, plus(c, row, i / c->across), key));
      w = pestle_kir_splat(c->k, w, c->lanes);
    }
    pk_t sum = load(c, c->values, number(c, i));
    sum = pestle_kir_scalar(c->k, PESTLE_OP_FMA, w, v[i % c->across], sum);
    store(c, c->values, number(c, i), sum);
  }
}

// y = y * rate + weights v of a tile of rows from |row| on, |across| vectors from |first| on,
// the first |count| keys of the block.
static void add_values(cached_t* c, pk_t row, pk_t first, pk_t count) {
  int64_t sums = c->tile * c->across;
  pestle_kir_alloc(c->k, c->values);
  for (int64_t i = 0; i < sums; ++i) {
    pk_t rate = one(c, c->rates, plus(c, row, i / c->across));
    pk_t sum = load(c, c->made, place_of(c, row, first, i));
    sum =
        op(c, PESTLE_OP_MULTIPLY, sum, pestle_kir_splat(c->k, rate, c->lanes));
    store(c, c->values, number(c, i), sum);
  }
  pk_t key =
      pestle_kir_for(c->k, "key", number(c, 0), count, 1, PESTLE_KIR_SERIAL);
  add_value(c, row, first, key);
  pestle_kir_end(c->k);
  for (int64_t i = 0; i < sums; ++i) {
    pk_t sum = load(c, c->values, number(c, i));
    store(c, c->made, place_of(c, row, first, i), sum);
  }
}

static void do_rows(cached_t* c, pk_t count) {
  int64_t tiles = c->block / c->tile;
  int64_t parts = c->width / c->lanes / c->across;
  pk_t row = pestle_kir_repeat(c->k, "row", c->block);
  score(c, row);
  pestle_kir_end_repeat(c->k, c->block);
  row = pestle_kir_repeat(c->k, "row", c->block);
  weigh(c, row);
  pestle_kir_end_repeat(c->k, c->block);
  pk_t tile = pestle_kir_repeat(c->k, "tile", tiles);
  pk_t part = pestle_kir_repeat(c->k, "part", parts);
  add_values(c, at(c, tile, c->tile, number(c, 0)),
             at(c, part, c->across, number(c, 0)), count);
  pestle_kir_end_repeat(c->k, parts);
  pestle_kir_end_repeat(c->k, tiles);
}

// --- A group ---

static void put_q(cached_t* c, pk_t row, pk_t place, pk_t q) {
  q = op(c, PESTLE_OP_MULTIPLY, q, real(c, c->lanes, c->scale * LOG2E));
  store(c, c->wide, at(c, row, c->depth, place), q);
}

// Vector |i| of both halves of row |row|, which is row |from| of q, turned by its angles.
static void turn(cached_t* c, pk_t row, pk_t from, pk_t i) {
  int64_t half = c->depth / 2;
  pk_t first = at(c, i, c->lanes, number(c, 0)), second = plus(c, first, half);
  pk_t angle = at(c, c->sequence, c->angles > 1 ? half : 0, first);
  pk_t a = load(c, c->q, at(c, from, c->depth, first));
  pk_t b = load(c, c->q, at(c, from, c->depth, second));
  pk_t cosine = load(c, c->cosine, angle), sine = load(c, c->sine, angle);
  pk_t low = op(c, PESTLE_OP_MULTIPLY, b, sine);
  pk_t high = op(c, PESTLE_OP_MULTIPLY, b, cosine);
  low = op(c, PESTLE_OP_SUBTRACT, op(c, PESTLE_OP_MULTIPLY, a, cosine), low);
  high = op(c, PESTLE_OP_ADD, op(c, PESTLE_OP_MULTIPLY, a, sine), high);
  put_q(c, row, first, low);
  put_q(c, row, second, high);
}

// Rows of q as f32, times the scale; sums and y are 0.
static void begin_rows(cached_t* c) {
  int64_t depth = c->depth / c->lanes, width = c->width / c->lanes;
  if (c->angles) depth /= 2;
  pk_t row = pestle_kir_repeat(c->k, "row", c->block);
  pk_t from = op(c, PESTLE_OP_ADD, c->first_row, row);
  from = at(c, c->shared_at, c->rows, from);
  pk_t i = pestle_kir_repeat(c->k, "chunk", depth);
  if (c->angles) {
    turn(c, row, from, i);
  } else {
    pk_t place = at(c, i, c->lanes, number(c, 0));
    put_q(c, row, place, load(c, c->q, at(c, from, c->depth, place)));
  }
  pestle_kir_end_repeat(c->k, depth);
  i = pestle_kir_repeat(c->k, "chunk", width);
  store(c, c->made, at(c, i, c->lanes, at(c, row, c->width, number(c, 0))),
        real(c, c->lanes, 0));
  pestle_kir_end_repeat(c->k, width);
  store(c, c->sums, at(c, row, c->lanes, number(c, 0)), real(c, c->lanes, 0));
  pestle_kir_store(c->k, c->top, row, real(c, 1, -INFINITY), PESTLE_KIR_NONE,
                   0);
  pestle_kir_end_repeat(c->k, c->block);
}

static void end_rows(cached_t* c) {
  int64_t width = c->width / c->lanes;
  pk_t row = pestle_kir_repeat(c->k, "row", c->block);
  pk_t to = op(c, PESTLE_OP_ADD, c->first_row, row);
  to = at(c, at(c, c->shared_at, c->rows, to), c->width, number(c, 0));
  pk_t sum = load(c, c->sums, at(c, row, c->lanes, number(c, 0)));
  sum = pestle_kir_reduce(c->k, sum, PESTLE_OP_ADD);
  pk_t rate = op(c, PESTLE_OP_DIVIDE, real(c, 1, 1), sum);
  rate = pestle_kir_splat(c->k, rate, c->lanes);
  pk_t i = pestle_kir_repeat(c->k, "chunk", width);
  pk_t y =
      load(c, c->made, at(c, i, c->lanes, at(c, row, c->width, number(c, 0))));
  y = pestle_kir_cast(c->k, op(c, PESTLE_OP_MULTIPLY, y, rate), c->dtype);
  store(c, c->y, at(c, i, c->lanes, to), y);
  pestle_kir_end_repeat(c->k, width);
  pestle_kir_end_repeat(c->k, c->block);
}

// The next block of the cache, or the first one of the next cache.
static pk_t next_of(cached_t* c) {
  pk_t key = plus(c, c->base, c->lanes);
  pk_t none = pestle_kir_scalar(c->k, PESTLE_OP_SELECT,
                                op(c, PESTLE_OP_LT, key, c->end), key,
                                number(c, c->most));
  return at(c, c->shared_at, c->most, none);
}

static void do_group(cached_t* c) {
  int64_t lanes = c->lanes, all = (c->most + lanes - 1) / lanes;
  int shift = 0;
  while (1 << shift < lanes)
    ++shift;
  begin_rows(c);
  pk_t end = plus(c, c->end, lanes - 1);
  end = pestle_kir_scalar_i(c->k, PESTLE_OP_SHIFT_RIGHT_LOGICAL, end, shift);
  end = pestle_direct_clamp(c->d, end, 0, all);
  pk_t i =
      pestle_kir_for(c->k, "keys", number(c, 0), end, 1, PESTLE_KIR_SERIAL);
  c->base = at(c, i, lanes, number(c, 0));
  pk_t count = op(c, PESTLE_OP_SUBTRACT, c->end, c->base);
  count = pestle_direct_clamp(c->d, count, 0, lanes);
  c->next = next_of(c);
  do_rows(c, count);
  pestle_kir_end(c->k);
  end_rows(c);
}

static int64_t divisor_of(int64_t rows) {
  int64_t block = rows < MOST_ROWS ? rows : MOST_ROWS;
  while (rows % block)
    --block;
  return block;
}

// As many rows and vectors of y as half of the registers have room for.
static void choose_tile(cached_t* c, int64_t registers) {
  int64_t most = registers / 2 < MOST_SUMS ? registers / 2 : MOST_SUMS;
  c->tile = c->block % TILE_ROWS ? MOST_TILE_ROWS : TILE_ROWS;
  while (c->block % c->tile)
    --c->tile;
  c->across = c->width / c->lanes;
  for (int64_t all = c->across; c->across > 1; --c->across)
    if (all % c->across == 0 && c->tile * c->across <= most) break;
}

static uint32_t scratch(cached_t* c, const char* name, int64_t count) {
  return pestle_kir_add_buffer(c->k, name, PESTLE_KIR_SHARED, PESTLE_F32, 1,
                               count, 0);
}

static cached_t make(pestle_direct_t* d) {
  const pestle_node_t* node = pestle_direct_whole_of(d->node);
  const pestle_type_t *q = pestle_node_operand(node, 0)->type,
                      *k = pestle_node_operand(node, 1)->type,
                      *v = pestle_node_operand(node, 2)->type;
  cached_t c = {.d = d,
                .k = d->k,
                .lanes = d->caps->vector_bytes / F32_BYTES,
                .batch = q->dims[0],
                .shared = q->dims[1],
                .rows = q->dims[2],
                .fresh = pestle_direct_cached_rows(node),
                .most = k->dims[2],
                .depth = q->dims[3],
                .width = v->dims[3],
                .scale = PESTLE_NODE_F64(node, scale),
                .dtype = q->dtype};
  if (c.lanes > MOST_LANES) c.lanes = MOST_LANES;
  c.block = divisor_of(c.rows);
  c.blocks = c.rows / c.block;
  choose_tile(&c, d->caps->vector_registers);
  return c;
}

// q, or what passes/whole_attention_rotation.c has turned to make it.
static void find_q(cached_t* c, const pestle_value_t* q) {
  if (q->node) {
    const pestle_node_t* low = pestle_node_operand(q->node, 0)->node;
    const pestle_node_t *a = pestle_node_operand(low, 0)->node,
                        *b = pestle_node_operand(low, 1)->node;
    const pestle_value_t *cosine = pestle_node_operand(
                             pestle_node_operand(a, 1)->node, 0),
                         *sine = pestle_node_operand(
                             pestle_node_operand(b, 1)->node, 0);
    c->angles = cosine->type->dims[0];
    c->cosine = pestle_direct_argument(c->d, cosine);
    c->sine = pestle_direct_argument(c->d, sine);
    q = pestle_node_operand(pestle_node_operand(a, 0)->node, 0);
  }
  c->q = pestle_direct_argument(c->d, q);
}

pestle_status_t pestle_direct_cached_attention(pestle_direct_t* d) {
  if (d->caps->flags & PESTLE_TARGET_LANES)
    return pestle_direct_cached_attention_lanes(d);
  cached_t c = make(d);
  const pestle_node_t* node = pestle_direct_whole_of(d->node);
  const pestle_node_t *keys = pestle_node_operand(node, 1)->node,
                      *values = pestle_node_operand(node, 2)->node;
  find_q(&c, pestle_node_operand(node, 0));
  c.key = pestle_direct_argument(d, pestle_node_operand(keys, 0));
  c.value = pestle_direct_argument(d, pestle_node_operand(values, 0));
  c.past_buffer = pestle_direct_argument(d, pestle_direct_cached_past(node));
  c.y = pestle_direct_result(d, 0);
  c.wide = scratch(&c, "wide", c.block * c.depth);
  c.made = scratch(&c, "made", c.block * c.width);
  c.sums = scratch(&c, "sums", c.block * c.lanes);
  c.top = scratch(&c, "top", c.block);
  c.rates = scratch(&c, "rates", c.block);
  c.weights = scratch(&c, "weights", c.block * c.lanes);
  c.scores = pestle_kir_add_buffer(c.k, "scores", PESTLE_KIR_PRIVATE,
                                   PESTLE_F32, c.lanes, c.lanes, 0);
  c.values = pestle_kir_add_buffer(c.k, "values", PESTLE_KIR_PRIVATE,
                                   PESTLE_F32, c.lanes, c.tile * c.across, 0);
  pk_t group = pestle_kir_for(c.k, "group", number(&c, 0),
                              number(&c, c.batch * c.shared * c.blocks), 1,
                              PESTLE_KIR_GROUP_X);
  c.sequence = number(&c, 0);
  if (c.batch > 1)
    c.sequence =
        pestle_kir_scalar_i(c.k, PESTLE_OP_DIVIDE, group, c.shared * c.blocks);
  pk_t past = pestle_direct_load(d, c.past_buffer, c.sequence);
  past = pestle_kir_cast(c.k, past, PESTLE_INDEX);
  // A row that sees no key is NaN; none sees more than there are.
  c.past = pestle_direct_clamp(d, past, -c.fresh, c.most);
  pk_t block = pestle_kir_scalar_i(c.k, PESTLE_OP_REMAINDER, group, c.blocks);
  c.shared_at = pestle_kir_scalar_i(c.k, PESTLE_OP_DIVIDE, group, c.blocks);
  c.first_row = at(&c, block, c.block, number(&c, 0));
  pk_t last = number(&c, c.fresh);
  // Rows of a group that are of one head see no more than the last of them.
  if (c.fresh % c.block == 0) {
    last = pestle_kir_scalar_i(c.k, PESTLE_OP_REMAINDER, c.first_row, c.fresh);
    last = plus(&c, last, c.block);
  }
  c.end =
      pestle_direct_clamp(d, op(&c, PESTLE_OP_ADD, c.past, last), 0, c.most);
  do_group(&c);
  pestle_kir_end(c.k);
  d->steps = (uint64_t)(c.batch * c.shared * c.rows * c.most *
                        (c.depth + c.width) / (int64_t)c.lanes);
  return NULL;
}
