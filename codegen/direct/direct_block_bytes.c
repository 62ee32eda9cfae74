// SPDX-License-Identifier: Apache-2.0
// Rows of x as bytes for products with weights of a few bits (direct_block_dot_lanes.c), on a
// target whose lanes run side by side, with the norm that makes x
// (passes/whole_block_dot_lanes.c):
//
//   for rows in group.x: for l in lane.x:                       // or for parts of rows
//     rate = 1 / sqrt(mean of the squares + epsilon)            // of all lanes, where normed
//     for words, one a lane:                                    // of weights: 4 to 16 numbers
//       most = sg_reduce(largest size of x)                     // of the lanes of a scale
//       q = x * 127 / most, rounded to even, apart by parts of a word;  scale = most / 127
//
// A kernel of products of few numbers makes them itself, each of its groups all of them, in
// shared memory: that takes less than a kernel in front of it.
#include "codegen/direct/direct_block_dot.h"

enum { MOST_GROUP_LANES = 512, SHARED_GROUP_LANES = 128 };

typedef struct bytes_t {
  block_dot_t b;
  int64_t lanes, turns;     // of a group, of its lanes along a row
  int64_t scales, sharers;  // of a row; lanes that share one
  uint32_t q, scale;        // results
  bool makes_sums;          // of the numbers of a scale
  pk_t lane, row;
} bytes_t;

static pk_t op(bytes_t* w, pestle_op_t o, pk_t x, pk_t y) {
  return pestle_kir_scalar(w->b.k, o, x, y, PESTLE_KIR_NONE);
}

static unsigned width(const bytes_t* w) {
  return (unsigned)w->b.word_weights;
}

static pk_t real(bytes_t* w, unsigned lanes, double value) {
  return pestle_kir_float(w->b.k, PESTLE_F32, lanes, value);
}

// --- x ---

// Numbers of word |unit|, zeros behind the row's end.
static pk_t load(bytes_t* w, uint32_t buffer, pk_t row, pk_t unit) {
  block_dot_t* b = &w->b;
  unsigned count = width(w);
  pk_t at = pestle_kir_madi(b->k, unit, count, number(b, 0));
  pk_t mask = PESTLE_KIR_NONE;
  if (b->words * b->word_weights != b->depth)
    mask = pestle_kir_mask(b->k, at, number(b, b->depth), count);
  pk_t index = at;
  if (row != PESTLE_KIR_NONE) index = pestle_kir_madi(b->k, row, b->depth, at);
  pestle_dtype_t dtype = b->k->failed
                             ? PESTLE_F32
                             : (pestle_dtype_t)b->k->buffer.data[buffer].dtype;
  int64_t together = (b->depth | count) * (int64_t)pestle_dtype_size(dtype);
  unsigned align = (unsigned)(together & -together);
  pk_t x = pestle_kir_load(b->k, buffer, count, index, mask,
                           align < 16 ? align : 16);
  return pestle_kir_cast(b->k, x, PESTLE_F32);
}

// |scale|: of the norm there, or NONE.
static pk_t normed(bytes_t* w, pk_t x, pk_t scale, pk_t unit) {
  block_dot_t* b = &w->b;
  if (!b->norm) return x;
  pk_t rate = pestle_kir_splat(b->k, b->norm_rate, width(w));
  x = op(w, PESTLE_OP_MULTIPLY, x, rate);
  if (scale == PESTLE_KIR_NONE)
    scale = load(w, b->norm_scale, PESTLE_KIR_NONE, unit);
  x = op(w, PESTLE_OP_MULTIPLY, x, scale);
  return pestle_kir_cast(b->k, pestle_kir_cast(b->k, x, b->dtype), PESTLE_F32);
}

// --- The norm ---

// The sum of all lanes' |value|, the same in each.
static pk_t sum_of(bytes_t* w, pk_t value, int64_t subgroup) {
  block_dot_t* b = &w->b;
  int64_t parts = w->lanes / subgroup;
  value = pestle_kir_sg_reduce(b->k, value, PESTLE_OP_ADD, (unsigned)subgroup);
  if (parts == 1) return value;
  uint32_t shared = b->squares;
  if (!b->has_made)
    shared = pestle_kir_add_buffer(b->k, "squares", PESTLE_KIR_SHARED,
                                   PESTLE_F32, 1, parts, 0);
  pk_t place = pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, w->lane, subgroup);
  pk_t first =
      pestle_kir_scalar_i(b->k, PESTLE_OP_REMAINDER, w->lane, subgroup);
  pestle_kir_if(b->k, op(w, PESTLE_OP_EQ, first, number(b, 0)));
  pestle_direct_store(b->d, shared, place, value);
  pestle_kir_end(b->k);
  pestle_kir_barrier(b->k);
  for (int64_t i = 0; i < parts; ++i) {
    pk_t one = pestle_direct_load(b->d, shared, number(b, i));
    value = i ? op(w, PESTLE_OP_ADD, value, one) : one;
  }
  return value;
}

static pk_t unit_of(bytes_t* w, pk_t turn) {
  pk_t unit = pestle_kir_madi(w->b.k, turn, w->lanes, w->lane);
  if (w->turns * w->lanes == w->b.words) return unit;
  return pestle_kir_scalar_i(w->b.k, PESTLE_OP_MINIMUM, unit, w->b.words - 1);
}

// Whether the lane's word of |turn| is one, or NONE: all are.
static pk_t is_word(bytes_t* w, pk_t turn) {
  if (w->turns * w->lanes == w->b.words) return PESTLE_KIR_NONE;
  pk_t unit = pestle_kir_madi(w->b.k, turn, w->lanes, w->lane);
  return pestle_kir_scalar_i(w->b.k, PESTLE_OP_LT, unit, w->b.words);
}

// The lane's words of |turn|, squared.
static pk_t square(bytes_t* w, pk_t x, pk_t turn) {
  block_dot_t* b = &w->b;
  pk_t on = is_word(w, turn);
  x = pestle_kir_reduce(b->k, op(w, PESTLE_OP_MULTIPLY, x, x), PESTLE_OP_ADD);
  if (on == PESTLE_KIR_NONE) return x;
  return pestle_kir_scalar(b->k, PESTLE_OP_SELECT, on, x, real(w, 1, 0));
}

// Of all words of the lane.
static pk_t square_all(bytes_t* w) {
  block_dot_t* b = &w->b;
  pk_t all = real(w, 1, 0);
  for (int64_t t = 0; b->keeps && t < w->turns; ++t)
    all = op(w, PESTLE_OP_ADD, all, square(w, b->kept_x[t], number(b, t)));
  if (b->keeps) return all;
  uint32_t sum = pestle_direct_variable(b->d, "sum", PESTLE_F32, 1);
  pestle_direct_set(b->d, sum, all);
  pk_t turn = pestle_kir_repeat(b->k, "turn", w->turns);
  all = square(w, load(w, b->x, w->row, unit_of(w, turn)), turn);
  all = op(w, PESTLE_OP_ADD, pestle_direct_get(b->d, sum), all);
  pestle_direct_set(b->d, sum, all);
  pestle_kir_end_repeat(b->k, w->turns);
  return pestle_direct_get(b->d, sum);
}

static void find_rate(bytes_t* w) {
  block_dot_t* b = &w->b;
  int64_t subgroup = b->d->caps->subgroup;
  pk_t all =
      sum_of(w, square_all(w), w->lanes < subgroup ? w->lanes : subgroup);
  all = op(w, PESTLE_OP_DIVIDE, all, real(w, 1, (double)b->depth));
  all =
      op(w, PESTLE_OP_ADD, all, real(w, 1, PESTLE_NODE_F64(b->norm, epsilon)));
  b->norm_rate = op(w, PESTLE_OP_RSQRT, all, PESTLE_KIR_NONE);
}

// --- Bytes ---

static void store(bytes_t* w, pk_t unit, pk_t bytes, pk_t scale, pk_t sum) {
  block_dot_t* b = &w->b;
  unsigned count = width(w);
  pk_t at = pestle_kir_madi(b->k, w->row, b->words, unit);
  at = pestle_kir_madi(b->k, at, count, number(b, 0));
  pestle_kir_store(b->k, w->q, at, bytes, PESTLE_KIR_NONE,
                   count < 16 ? count : 16);
  pk_t place = unit;
  if (w->sharers > 1) {
    pk_t own = pestle_kir_scalar_i(b->k, PESTLE_OP_REMAINDER, unit, w->sharers);
    place = pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, unit, w->sharers);
    pestle_kir_if(b->k, op(w, PESTLE_OP_EQ, own, number(b, 0)));
  }
  place = pestle_kir_madi(b->k, w->row, w->scales, place);
  pestle_direct_store(b->d, w->scale, place, scale);
  if (w->makes_sums) pestle_direct_store(b->d, b->sums, place, sum);
  if (w->sharers > 1) pestle_kir_end(b->k);
}

// |x|, |scale|: what is there, and what the norm has there, or NONE.
static void do_turn(bytes_t* w, pk_t turn, pk_t x, pk_t scale_of_norm) {
  block_dot_t* b = &w->b;
  uint32_t lanes_of[MOST_LANES];
  unsigned count = width(w);
  pk_t unit = unit_of(w, turn), on = is_word(w, turn);
  if (x == PESTLE_KIR_NONE) x = load(w, b->x, w->row, unit);
  x = normed(w, x, scale_of_norm, unit);
  pk_t most = op(w, PESTLE_OP_ABS, x, PESTLE_KIR_NONE);
  most = pestle_kir_reduce(b->k, most, PESTLE_OP_MAXIMUM);
  if (w->sharers > 1)
    most = pestle_kir_sg_reduce(b->k, most, PESTLE_OP_MAXIMUM,
                                (unsigned)w->sharers);
  pk_t is_some = op(w, PESTLE_OP_GT, most, real(w, 1, 1e-30));
  pk_t rate = op(w, PESTLE_OP_DIVIDE, real(w, 1, 127), most);
  rate =
      pestle_kir_scalar(b->k, PESTLE_OP_SELECT, is_some, rate, real(w, 1, 0));
  x = op(w, PESTLE_OP_MULTIPLY, x, pestle_kir_splat(b->k, rate, count));
  // 0 for what is no number. The sum with a float whose last bit is 1 is rounded to even.
  pk_t is_number = op(w, PESTLE_OP_EQ, x, x);
  x = pestle_kir_scalar(b->k, PESTLE_OP_SELECT, is_number, x,
                        real(w, count, 0));
  x = op(w, PESTLE_OP_ADD, x, real(w, count, BLOCK_DOT_WHOLE));
  x = pestle_kir_bitcast(b->k, x, PESTLE_I32);
  x = op(w, PESTLE_OP_SUBTRACT, x, word_number(b, count, BLOCK_DOT_WHOLE_BITS));
  pk_t sum = PESTLE_KIR_NONE;
  if (w->makes_sums) {
    sum = pestle_kir_reduce(b->k, x, PESTLE_OP_ADD);
    if (w->sharers > 1)
      sum =
          pestle_kir_sg_reduce(b->k, sum, PESTLE_OP_ADD, (unsigned)w->sharers);
  }
  x = pestle_kir_cast(b->k, x, PESTLE_I8);
  for (unsigned i = 0; i < count; ++i)
    lanes_of[i] = (i % WORD_BYTES) * (unsigned)b->parts + i / WORD_BYTES;
  x = pestle_kir_shuffle(b->k, x, x, lanes_of, count);
  pk_t scale = op(w, PESTLE_OP_MULTIPLY, most, real(w, 1, 1.0 / 127));
  if (on != PESTLE_KIR_NONE) pestle_kir_if(b->k, on);
  store(w, unit, x, scale, sum);
  if (on != PESTLE_KIR_NONE) pestle_kir_end(b->k);
}

// --- The kernel ---

static void read(bytes_t* w, pestle_direct_t* d) {
  block_dot_t* b = &w->b;
  const pestle_block_t* body = pestle_node_body(d->node, 0);
  const pestle_type_t *x = body->arguments[0]->type,
                      *q = d->node->results[0].type,
                      *scale = d->node->results[1].type;
  b->d = d;
  b->k = d->k;
  b->dtype = x->dtype;
  b->depth = x->dims[x->rank - 1];
  b->all_rows = q->dims[0];
  b->words = q->dims[1];
  b->parts = q->dims[2];
  b->word_weights = b->parts * WORD_BYTES;
  w->scales = scale->dims[1];
  w->sharers = b->words / w->scales;
  b->x = pestle_direct_operand(d, 0);
  if (body->argument_count > 1) {
    for (const pestle_node_t* n = body->first; n && !b->norm; n = n->next) {
      if (n->op == PESTLE_OP_RMS_NORM) b->norm = n;
    }
    b->norm_scale = pestle_direct_operand(d, 1);
  }
  w->q = pestle_direct_result(d, 0);
  w->scale = pestle_direct_result(d, 1);
}

static void make_row(bytes_t* w) {
  const block_dot_t* b = &w->b;
  if (b->norm) find_rate(w);
  for (int64_t t = 0; b->keeps && t < w->turns; ++t)
    do_turn(w, number(&w->b, t), b->kept_x[t], b->kept_norm[t]);
  if (b->keeps) return;
  pk_t turn = pestle_kir_repeat(w->b.k, "turn", w->turns);
  do_turn(w, turn, PESTLE_KIR_NONE, PESTLE_KIR_NONE);
  pestle_kir_end_repeat(w->b.k, w->turns);
}

// Once for all pieces of a kernel, of which a group is one.
static void add_buffers(block_dot_t* b, int64_t scales, int64_t lanes) {
  int64_t bytes = b->all_rows * b->words * b->parts * WORD_BYTES;
  b->float_x = b->x;
  b->made_bytes = pestle_kir_add_buffer(b->k, "bytes", PESTLE_KIR_SHARED,
                                        PESTLE_I8, 1, bytes, 0);
  b->x_scales = pestle_kir_add_buffer(b->k, "rates", PESTLE_KIR_SHARED,
                                      PESTLE_F32, 1, b->all_rows * scales, 0);
  b->sums = pestle_kir_add_buffer(b->k, "sums", PESTLE_KIR_SHARED, PESTLE_I32,
                                  1, b->all_rows * scales, 0);
  b->squares = pestle_kir_add_buffer(b->k, "squares", PESTLE_KIR_SHARED,
                                     PESTLE_F32, 1, lanes / 8, 0);
  b->has_made = true;
}

void pestle_block_bytes_ask(block_dot_t* b, pk_t lane, int64_t lanes) {
  bytes_t w = {.b = *b, .lanes = lanes, .lane = lane, .row = number(b, 0)};
  w.turns = (b->words + lanes - 1) / lanes;
  b->keeps = b->all_rows == 1 && w.turns <= MOST_KEPT;
  if (b->has_made) w.b.x = b->float_x;
  for (int64_t t = 0; b->keeps && t < w.turns; ++t) {
    pk_t unit = unit_of(&w, number(b, t));
    b->kept_x[t] = load(&w, w.b.x, w.row, unit);
    b->kept_norm[t] = PESTLE_KIR_NONE;
    if (b->norm)
      b->kept_norm[t] = load(&w, b->norm_scale, PESTLE_KIR_NONE, unit);
  }
}

void pestle_block_bytes_make(block_dot_t* b, pk_t lane, int64_t lanes) {
  int64_t least = b->block < X_BLOCK ? b->block : X_BLOCK;
  if (!b->has_made) add_buffers(b, b->words * b->word_weights / least, lanes);
  b->x = b->float_x;
  bytes_t w = {.b = *b, .lanes = lanes, .lane = lane, .makes_sums = true};
  int64_t size = b->block < X_BLOCK ? b->block : X_BLOCK;
  w.turns = (b->words + lanes - 1) / lanes;
  w.scales = b->words * b->word_weights / size;
  w.sharers = b->words / w.scales;
  w.q = b->made_bytes;
  w.scale = b->x_scales;
  w.row = pestle_kir_repeat(b->k, "row", b->all_rows);
  make_row(&w);
  // The next row's sum, and who reads the bytes, come behind it.
  pestle_kir_barrier(b->k);
  pestle_kir_end_repeat(b->k, b->all_rows);
  b->x = w.q;
  b->keeps = false;
}

pestle_status_t pestle_direct_block_bytes(pestle_direct_t* d) {
  bytes_t w = {0};
  block_dot_t* b = &w.b;
  read(&w, d);
  w.lanes = d->caps->subgroup;
  // Without a norm groups share a row.
  int64_t most = b->norm ? MOST_GROUP_LANES : SHARED_GROUP_LANES;
  while (w.lanes < b->words && w.lanes < most)
    w.lanes *= 2;
  w.turns = (b->words + w.lanes - 1) / w.lanes;
  int64_t groups = b->all_rows * (b->norm ? 1 : w.turns);
  w.row = pestle_kir_for(b->k, "row", number(b, 0), number(b, groups), 1,
                         PESTLE_KIR_GROUP_X);
  w.lane = pestle_kir_for(b->k, "lane", number(b, 0), number(b, w.lanes), 1,
                          PESTLE_KIR_LANE_X);
  if (b->norm) {
    make_row(&w);
  } else {
    pk_t group = w.row;
    w.row = pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, group, w.turns);
    do_turn(&w, pestle_kir_scalar_i(b->k, PESTLE_OP_REMAINDER, group, w.turns),
            PESTLE_KIR_NONE, PESTLE_KIR_NONE);
  }
  pestle_kir_end(b->k);
  pestle_kir_end(b->k);
  d->steps = (uint64_t)(b->all_rows * b->depth);
  return NULL;
}
