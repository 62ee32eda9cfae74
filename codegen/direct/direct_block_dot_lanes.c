// SPDX-License-Identifier: Apache-2.0
// A product of few rows with weights of a few bits on a target whose lanes run side by side:
// a team of lanes shares a row of weights, which it reads once, as it lies.
//
//   for groups of columns in group.x: for l in lane.x:      team = l / lanes, its columns
//     for each few rows of x:
//       for chunks of words, one a lane of the team:        up to 16 bytes of weights
//         x there, the sums of it
//         for each column: total += scale * (parts of the words by parts of x)
//     of some chunks all weights are on their way together
//       y = sg_reduce(total), and the ops that follow           // direct_block_dot_y.c
//
// Products of one x are one kernel: the groups of one follow those of the other, but products
// of which one result is made share their columns.
//
// In bytes x is bytes with a scale for each 32 of them. Few of them each group makes itself
// before its first product; more are an operand, which a kernel in front of the group makes
// (passes/whole_block_dot_lanes.c). They lie as [rows, words, parts, 4], in the order in which
// a word has its weights. A part of a word's bytes is multiplied where it lies, so that the
// upper ones count 2^bits times and more: sums are of the uppermost part's size.
//
// Groups that make the bytes ask for their first weights before that; where kernels may begin
// before the one in front of them ends, before they wait for it too: to shared memory where
// weights are the caller's or constants, which no kernel in front writes, else as far as the cache.
// Where a target copies to shared memory past the registers each lane has its weights and their
// scales copied there, to places of its own: what is under way takes no registers, and a
// compiler does not put it off. Copies for steps to come are under way while one is used, also
// those of the next columns of a group that takes turns at them. Of long rows groups are
// large, since each makes all bytes of x. In f32 a weight becomes 1 + w / 2^bits, as
// direct_block_dot.c says.
#include "base/bits.h"
#include "codegen/direct/direct_block_dot.h"

enum {
  GROUP_LANES = 128,
  // Where copies take no registers, and of numbers of x for each that more are of.
  MOST_GROUP_LANES = 512,
  MOST_NUMBERS = 16,
  // On a core: for whose columns there are groups, and of groups that take turns.
  LEAST_LANES = 384,
  LEAST_TURN_LANES = 512,
  MOST_TURN_LANES = 1024,
  LEAST_TEAM = 8,
  TEAM_ROWS = 4,
  CHUNK_WORDS = 4,
  F32_CHUNK = 8,  // numbers of x that a lane takes at once
  FRACTION = 23,
  ONE = 0x3f800000,
  // Loads of weights that are on their way together, and chunks.
  MOST_LOADS = 8,
  SOME_LOADS = 4,
  COPY_BYTES = 16,
  SCALE_BYTES = 4,
  MOST_STAGES = 4,
  BYTES_AHEAD = 64 << 10,  // on a core
};

typedef struct lanes_dot_t {
  block_dot_t b;
  int64_t chunk, units;  // words of a lane, such chunks of a row
  int64_t turns,
      together;            // chunks of a lane, of which some are taken together
  int64_t team, teams;     // lanes of a team, teams of a group
  int64_t rows_at_a_time;  // of x
  int64_t most_columns;    // of a team, of all its products
  bool makes_bytes;        // of x
  bool has_turns;          // a group has columns more than once
  bool copies;             // weights to shared memory
  bool is_early;  // the first of them before a wait for kernels in front
  int64_t group_lanes;
  int64_t trips;         // of a group, most: turns at columns
  int64_t stride;        // from one of its columns to the next, in groups
  int64_t stages;        // steps whose weights have places
  int64_t stage_loads;   // places of a stage
  uint32_t ahead;        // places of weights there, by stage, load and lane
  uint32_t ahead_of[2];  // of scales and zero points
  uint32_t totals;
  pk_t lane, team_at;  // of the team; the team of its piece
  pk_t group_lane;
  pk_t
      columns[MOST_COLUMNS];  // b.columns of them, of each product of the piece
  // What the ops behind the products read of them, which is on its way with x.
  bool reads_y;
  pk_t y[MOST_COLUMNS][MOST_ARGUMENTS];
  // Of a chunk, by row: parts of x, its sum and the scale.
  pk_t x[TEAM_ROWS][32], sum[TEAM_ROWS], first[TEAM_ROWS], rate[TEAM_ROWS];
  // Weights of chunks that are on their way, by chunk, product and column.
  pk_t words[MOST_LOADS][MOST_PRODUCTS][MOST_COLUMNS], unit[MOST_LOADS];
  pk_t scales[MOST_LOADS][MOST_PRODUCTS][MOST_COLUMNS];  // of their blocks
  pk_t zeros[MOST_LOADS][MOST_PRODUCTS][MOST_COLUMNS];
  pk_t is_there[MOST_LOADS];  // NONE: the chunk is one
} lanes_dot_t;

static pk_t op(lanes_dot_t* w, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_kir_scalar(w->b.k, o, a, b, PESTLE_KIR_NONE);
}

static pk_t real(lanes_dot_t* w, double value) {
  return pestle_kir_float(w->b.k, PESTLE_F32, 1, value);
}

static pk_t words_of(lanes_dot_t* w, uint32_t buffer, unsigned lanes, pk_t at,
                     unsigned align) {
  pk_t id = pestle_kir_load_words(w->b.k, buffer, lanes, at);
  if (!w->b.k->failed) w->b.k->inst.data[id].align_log2 = (uint8_t)align;
  return id;
}

// Words that begin at multiples of |words| of them, log2 of the bytes.
static unsigned align_of(const lanes_dot_t* w, uint32_t buffer, int64_t words) {
  unsigned bytes = pestle_log2_floor((uint64_t)(words & -words)) + 2;
  unsigned own =
      w->b.k->failed ? 6 : pestle_log2_floor(w->b.k->buffer.data[buffer].align);
  if (own < bytes) bytes = own;
  return bytes < 4 ? bytes : 4;
}

// --- x ---

static void load_bytes(lanes_dot_t* w, int64_t m, pk_t row, pk_t unit) {
  block_dot_t* b = &w->b;
  uint32_t lanes_of[CHUNK_WORDS];
  unsigned chunk = (unsigned)w->chunk, all = (unsigned)(w->chunk * b->parts);
  pk_t at = pestle_kir_madi(b->k, row, b->words, number(b, 0));
  at = pestle_kir_madi(b->k, unit, w->chunk, at);
  at = pestle_kir_madi(b->k, at, b->parts * WORD_BYTES, number(b, 0));
  pk_t words = words_of(w, b->x, all, at,
                        align_of(w, b->x, (b->words | w->chunk) * b->parts));
  for (int64_t part = 0; part < b->parts; ++part) {
    for (unsigned i = 0; i < chunk; ++i)
      lanes_of[i] = (uint32_t)(i * b->parts + part);
    w->x[m][part] = pestle_kir_shuffle(b->k, words, words, lanes_of, chunk);
  }
  // Scales of x are of as many numbers as a block has, or of 32.
  int64_t size = b->block < X_BLOCK ? b->block : X_BLOCK;
  int64_t each = size / (w->chunk * b->word_weights);
  pk_t scale =
      each > 1 ? pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, unit, each) : unit;
  int64_t scales = b->words * b->word_weights / size;
  scale = pestle_kir_madi(b->k, row, scales, scale);
  int64_t size_of_part = (int64_t)1 << (b->bits * (b->parts - 1));
  w->rate[m] = pestle_direct_load(b->d, w->b.x_scales, scale);
  w->rate[m] = op(w, PESTLE_OP_MULTIPLY, w->rate[m],
                  real(w, 1.0 / (double)size_of_part));
  pk_t sum = word_number(b, 1, 0);
  if (w->makes_bytes && each == 1) {
    sum = pestle_direct_load(b->d, b->sums, scale);
  } else {
    for (int64_t part = 0; part < b->parts; ++part) {
      for (unsigned i = 0; i < chunk; ++i)
        sum = pestle_kir_dot(b->k, word_number(b, 1, 0x01010101),
                             pestle_kir_extract(b->k, w->x[m][part], i), sum,
                             PESTLE_KIR_DOT4_B_SIGNED);
    }
  }
  // Of the size of the uppermost part, as the products are.
  int64_t zero = (int64_t)1 << (b->bits - 1);
  sum =
      op(w, PESTLE_OP_MULTIPLY, sum,
         word_number(b, 1, b->has_zeros ? size_of_part : -zero * size_of_part));
  w->first[m] = sum;
  w->sum[m] = b->has_zeros ? pestle_kir_cast(b->k, sum, PESTLE_F32) : 0;
}

static void load_floats(lanes_dot_t* w, int64_t m, pk_t row, pk_t unit) {
  block_dot_t* b = &w->b;
  int64_t count = w->chunk * b->word_weights;
  pk_t at = pestle_kir_madi(b->k, unit, count, number(b, 0));
  pk_t index = pestle_kir_madi(b->k, row, b->depth, at);
  pk_t mask = PESTLE_KIR_NONE;
  if (b->words * b->word_weights != b->depth)
    mask = pestle_kir_mask(b->k, at, number(b, b->depth), (unsigned)count);
  unsigned size = (unsigned)pestle_dtype_size(b->dtype);
  int64_t together = b->depth | count;
  unsigned align = (unsigned)(together & -together) * size;
  pk_t x = pestle_kir_load(b->k, b->x, (unsigned)count, index, mask,
                           align < 16 ? align : 16);
  x = pestle_kir_cast(b->k, x, PESTLE_F32);
  pk_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    pk_t one = pestle_kir_extract(b->k, x, (unsigned)i);
    one = op(w, PESTLE_OP_MULTIPLY, one, real(w, (double)(1 << b->bits)));
    w->x[m][i] = one;
    sum = i ? op(w, PESTLE_OP_ADD, sum, one) : one;
  }
  w->first[m] =
      op(w, PESTLE_OP_MULTIPLY, sum, real(w, b->has_zeros ? -1 : -1.5));
  w->sum[m] =
      op(w, PESTLE_OP_MULTIPLY, sum, real(w, 1.0 / (double)(1 << b->bits)));
}

// --- Weights ---

// Where they lie: the weights times 2^(bits part).
static pk_t bytes_of(lanes_dot_t* w, pk_t words, int64_t part) {
  block_dot_t* b = &w->b;
  if (b->bits == 8) return words;
  int64_t mask = ((1 << b->bits) - 1) * INT64_C(0x01010101);
  mask <<= part * b->bits;
  return op(w, PESTLE_OP_AND, words,
            word_number(b, (unsigned)w->chunk, (int32_t)(uint32_t)mask));
}

// Weight |i| of a word as 1 + w / 2^bits.
static pk_t float_of(lanes_dot_t* w, pk_t word, int64_t i) {
  block_dot_t* b = &w->b;
  int64_t left = FRACTION - b->bits - i * b->bits;
  int64_t mask = ((1 << b->bits) - 1) << (FRACTION - b->bits);
  if (left)
    word =
        op(w, left > 0 ? PESTLE_OP_SHIFT_LEFT : PESTLE_OP_SHIFT_RIGHT_LOGICAL,
           word, word_number(b, 1, left > 0 ? left : -left));
  word = op(w, PESTLE_OP_AND, word, word_number(b, 1, mask));
  word = op(w, PESTLE_OP_OR, word, word_number(b, 1, ONE));
  return pestle_kir_bitcast(b->k, word, PESTLE_F32);
}

// Sums of products of a chunk, a row of x each, as f32.
static void multiply(lanes_dot_t* w, pk_t words, pk_t* d) {
  block_dot_t* b = &w->b;
  unsigned chunk = (unsigned)w->chunk;
  if (!b->is_bytes) {
    for (int64_t m = 0; m < b->rows; ++m)
      d[m] = w->first[m];
    for (int64_t i = 0; i < w->chunk * b->word_weights; ++i) {
      pk_t word = words;
      if (chunk > 1)
        word = pestle_kir_extract(b->k, words, (unsigned)(i / b->word_weights));
      pk_t one = float_of(w, word, i % b->word_weights);
      for (int64_t m = 0; m < b->rows; ++m)
        d[m] = pestle_kir_scalar(b->k, PESTLE_OP_FMA, one, w->x[m][i], d[m]);
    }
    return;
  }
  for (int64_t part = 0; part < b->parts; ++part) {
    pk_t bytes = bytes_of(w, words, part);
    for (int64_t m = 0; m < b->rows; ++m) {
      pk_t sum = word_number(b, 1, 0);
      for (unsigned i = 0; i < chunk; ++i)
        sum = pestle_kir_dot(b->k, pestle_kir_extract(b->k, bytes, i),
                             pestle_kir_extract(b->k, w->x[m][part], i), sum,
                             PESTLE_KIR_DOT4_B_SIGNED);
      if (part) {
        d[m] = op(w, PESTLE_OP_SHIFT_LEFT, d[m], word_number(b, 1, b->bits));
        d[m] = op(w, PESTLE_OP_ADD, d[m], sum);
      } else {
        d[m] = sum;
      }
    }
  }
  for (int64_t m = 0; m < b->rows; ++m) {
    pk_t whole = word_number(b, 1, BLOCK_DOT_WHOLE_BITS);
    if (!b->has_zeros) whole = op(w, PESTLE_OP_ADD, w->first[m], whole);
    d[m] = op(w, PESTLE_OP_ADD, d[m], whole);
    d[m] = pestle_kir_bitcast(b->k, d[m], PESTLE_F32);
    d[m] = op(w, PESTLE_OP_SUBTRACT, d[m], real(w, BLOCK_DOT_WHOLE));
  }
}

static pk_t of_block(lanes_dot_t* w, uint32_t buffer, pk_t column, pk_t block) {
  pk_t at = pestle_kir_madi(w->b.k, column, w->b.blocks, block);
  return pestle_direct_load(w->b.d, buffer, at);
}

// Total of row |m| of column |c| of the piece's product |p|.
static pk_t total_at(lanes_dot_t* w, int64_t p, int64_t c, int64_t m) {
  return number(&w->b, (p * w->b.columns + c) * w->rows_at_a_time + m);
}

// Product |p|, the piece's |at|th, of chunk |u|.
static void add_product(lanes_dot_t* w, int64_t at, unsigned p, int64_t u) {
  block_dot_t* b = &w->b;
  pk_t d[TEAM_ROWS], is_there = w->is_there[u];
  for (int64_t c = 0; c < b->columns; ++c) {
    pk_t scale = pestle_kir_cast(b->k, w->scales[u][p][c], PESTLE_F32);
    pk_t zero = 0;
    if (b->has_zeros) {
      zero = pestle_kir_cast(b->k, w->zeros[u][p][c], PESTLE_F32);
      zero = op(w, PESTLE_OP_NEGATE, zero, PESTLE_KIR_NONE);
    }
    multiply(w, w->words[u][p][c], d);
    for (int64_t m = 0; m < b->rows; ++m) {
      pk_t index = total_at(w, at, c, m);
      if (b->has_zeros)
        d[m] = pestle_kir_scalar(b->k, PESTLE_OP_FMA, zero, w->sum[m], d[m]);
      if (b->is_bytes) d[m] = op(w, PESTLE_OP_MULTIPLY, d[m], w->rate[m]);
      pk_t total = pestle_direct_load(b->d, w->totals, index), old = total;
      total = pestle_kir_scalar(b->k, PESTLE_OP_FMA, scale, d[m], total);
      if (is_there != PESTLE_KIR_NONE)
        total = pestle_direct_select(b->d, is_there, total, old);
      pestle_direct_store(b->d, w->totals, index, total);
    }
  }
}

// The place of load |load| of |stage|.
static pk_t place_of(lanes_dot_t* w, pk_t stage, int64_t load) {
  block_dot_t* b = &w->b;
  pk_t at = pestle_kir_madi(b->k, stage, w->stage_loads, number(b, load));
  return pestle_kir_madi(b->k, at, w->group_lanes, w->group_lane);
}

static void find_units(lanes_dot_t* w, pk_t step) {
  block_dot_t* b = &w->b;
  bool has_tail = w->turns * w->team != w->units;
  for (int64_t u = 0; u < w->together; ++u) {
    pk_t turn = pestle_kir_madi(b->k, step, w->together, number(b, u));
    pk_t unit = pestle_kir_madi(b->k, turn, w->team, w->lane);
    w->is_there[u] = PESTLE_KIR_NONE;
    if (has_tail) {
      w->is_there[u] = pestle_kir_scalar_i(b->k, PESTLE_OP_LT, unit, w->units);
      unit = pestle_kir_scalar_i(b->k, PESTLE_OP_MINIMUM, unit, w->units - 1);
    }
    w->unit[u] = unit;
  }
}

static pk_t block_of(lanes_dot_t* w, pk_t unit) {
  block_dot_t* b = &w->b;
  if (b->block_words <= w->chunk) return unit;
  return pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, unit,
                             b->block_words / w->chunk);
}

static pk_t weight_at(lanes_dot_t* w, int64_t u, int64_t c) {
  block_dot_t* b = &w->b;
  pk_t at = pestle_kir_madi(b->k, w->columns[c], b->words, number(b, 0));
  at = pestle_kir_madi(b->k, w->unit[u], w->chunk, at);
  return pestle_kir_madi(b->k, at, WORD_BYTES, number(b, 0));
}

static void copy(lanes_dot_t* w, uint32_t to, pk_t to_at, uint32_t from,
                 pk_t from_at, int64_t elements) {
  (void)pestle_kir_put(w->b.k,
                       (pestle_kir_inst_t){.op = PESTLE_KIR_COPY_ASYNC,
                                           .type = PESTLE_NONE,
                                           .lanes = (uint8_t)elements,
                                           .arg = {to, to_at, from, from_at}});
}

// Numbers of 4 bytes, of which the first one is at a multiple of them.
static int64_t scales_of_word(const lanes_dot_t* w, uint32_t buffer) {
  if (w->b.k->failed) return 1;
  return SCALE_BYTES / (int64_t)pestle_dtype_size(
                           (pestle_dtype_t)w->b.k->buffer.data[buffer].dtype);
}

// The scale of unit |u|, or its zero point, and what is beside it.
static void copy_scale(lanes_dot_t* w, int which, uint32_t buffer, pk_t place,
                       int64_t u, int64_t c) {
  block_dot_t* b = &w->b;
  int64_t each = scales_of_word(w, buffer);
  pk_t block = block_of(w, w->unit[u]);
  if (each > 1) {
    block = pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, block, each);
    block = pestle_kir_madi(b->k, block, each, number(b, 0));
  }
  pk_t from = pestle_kir_madi(b->k, w->columns[c], b->blocks, block);
  copy(w, w->ahead_of[which], pestle_kir_madi(b->k, place, each, number(b, 0)),
       buffer, from, each);
}

static pk_t copied_scale(lanes_dot_t* w, int which, uint32_t buffer, pk_t place,
                         int64_t u) {
  block_dot_t* b = &w->b;
  int64_t each = scales_of_word(w, buffer);
  pk_t within = number(b, 0);
  if (each > 1)
    within = pestle_kir_scalar_i(b->k, PESTLE_OP_REMAINDER,
                                 block_of(w, w->unit[u]), each);
  pk_t at = pestle_kir_madi(b->k, place, each, within);
  return pestle_direct_load(b->d, w->ahead_of[which], at);
}

// A column's weights of a unit and a product, the |load|-th of a step.
typedef struct lanes_load_t {
  int64_t unit, column, load;
  unsigned product;
} lanes_load_t;

// Calls |visit| with each of the piece.
static void each_load(lanes_dot_t* w, unsigned piece, pk_t stage,
                      void (*visit)(lanes_dot_t* w, lanes_load_t at,
                                    pk_t stage)) {
  const block_dot_t* b = &w->b;
  lanes_load_t at = {.load = 0};
  for (at.unit = 0; at.unit < w->together; ++at.unit) {
    for (at.product = 0; at.product < b->product_count; ++at.product) {
      if (b->products[at.product].piece != piece) continue;
      for (at.column = 0; at.column < b->columns; ++at.column, ++at.load)
        visit(w, at, stage);
    }
  }
}

// Asks for the weights.
static void ask_weight(lanes_dot_t* w, lanes_load_t at, pk_t stage) {
  uint32_t buffer = w->b.products[at.product].w;
  unsigned align = align_of(w, buffer, w->b.words | w->chunk);
  (void)stage;
  w->words[at.unit][at.product][at.column] = words_of(
      w, buffer, (unsigned)w->chunk, weight_at(w, at.unit, at.column), align);
}

// The same with their scale, to its place of |stage|.
static void copy_weight(lanes_dot_t* w, lanes_load_t at, pk_t stage) {
  block_dot_t* b = &w->b;
  const block_product_t* product = &b->products[at.product];
  pk_t place = place_of(w, stage, at.load);
  copy(w, w->ahead, pestle_kir_madi(b->k, place, COPY_BYTES, number(b, 0)),
       product->w, weight_at(w, at.unit, at.column), COPY_BYTES);
  copy_scale(w, 0, product->scales, place, at.unit, at.column);
  if (b->has_zeros) copy_scale(w, 1, product->zeros, place, at.unit, at.column);
}

static void load_scales(lanes_dot_t* w, unsigned piece) {
  block_dot_t* b = &w->b;
  for (int64_t u = 0; u < w->together; ++u) {
    pk_t block = block_of(w, w->unit[u]);
    for (unsigned p = 0; p < b->product_count; ++p) {
      if (b->products[p].piece != piece) continue;
      for (int64_t c = 0; c < b->columns; ++c) {
        w->scales[u][p][c] =
            of_block(w, b->products[p].scales, w->columns[c], block);
        if (b->has_zeros)
          w->zeros[u][p][c] =
              of_block(w, b->products[p].zeros, w->columns[c], block);
      }
    }
  }
}

// What was copied to |stage|.
static void take_copy(lanes_dot_t* w, lanes_load_t at, pk_t stage) {
  block_dot_t* b = &w->b;
  const block_product_t* product = &b->products[at.product];
  pk_t place = place_of(w, stage, at.load);
  pk_t from = pestle_kir_madi(b->k, place, COPY_BYTES, number(b, 0));
  w->words[at.unit][at.product][at.column] =
      words_of(w, w->ahead, (unsigned)w->chunk, from, 4);
  w->scales[at.unit][at.product][at.column] =
      copied_scale(w, 0, product->scales, place, at.unit);
  if (b->has_zeros)
    w->zeros[at.unit][at.product][at.column] =
        copied_scale(w, 1, product->zeros, place, at.unit);
}

static void use_weights(lanes_dot_t* w, unsigned piece, pk_t first_row) {
  block_dot_t* b = &w->b;
  for (int64_t u = 0; u < w->together; ++u) {
    pk_t unit = w->unit[u];
    int64_t at = 0;
    for (int64_t m = 0; m < b->rows; ++m) {
      pk_t row = pestle_kir_madi(b->k, first_row, 1, number(b, m));
      if (b->is_bytes)
        load_bytes(w, m, row, unit);
      else
        load_floats(w, m, row, unit);
    }
    for (unsigned p = 0; p < b->product_count; ++p) {
      if (b->products[p].piece != piece) continue;
      add_product(w, at++, p, u);
    }
  }
}

// --- Columns ---

// Of the team, in group |group| of the piece.
static void find_columns(lanes_dot_t* w, pk_t group) {
  block_dot_t* b = &w->b;
  pk_t team =
      pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, w->group_lane, w->team);
  w->team_at = pestle_kir_madi(b->k, group, w->teams, team);
  for (int64_t c = 0; c < b->columns; ++c) {
    w->columns[c] = pestle_kir_madi(b->k, w->team_at, b->columns, number(b, c));
    w->columns[c] = pestle_kir_scalar_i(b->k, PESTLE_OP_MINIMUM, w->columns[c],
                                        b->piece->columns - 1);
  }
}

static int64_t steps_of(const lanes_dot_t* w) {
  return w->turns / w->together;
}

// How many steps the weights are ahead of the one that is used.
static int64_t steps_ahead(const lanes_dot_t* w) {
  int64_t all = steps_of(w) * w->trips;
  return all == 1 || w->stages == 1 ? 1 : w->stages - 1;
}

// Where weights of step |step| of all turns of the group, the first of which is |group|, come
// from; true: an if has begun, since the group may have no such turn.
static bool find_step(lanes_dot_t* w, pk_t group, pk_t step, bool is_known) {
  block_dot_t* b = &w->b;
  int64_t steps = steps_of(w);
  if (w->trips > 1) {
    pk_t trip = pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, step, steps);
    step = pestle_kir_scalar_i(b->k, PESTLE_OP_REMAINDER, step, steps);
    group = pestle_kir_madi(b->k, trip, w->stride, group);
  }
  bool asks = !is_known && (w->trips > 1 || steps > 1);
  if (asks) {
    pk_t last = w->trips > 1 ? group : step;
    int64_t limit = w->trips > 1 ? b->piece->groups : steps;
    pestle_kir_if(b->k, pestle_kir_scalar_i(b->k, PESTLE_OP_LT, last, limit));
    step = pestle_kir_scalar_i(b->k, PESTLE_OP_MINIMUM, step, steps - 1);
  }
  find_columns(w, group);
  find_units(w, step);
  return asks;
}

static void commit(lanes_dot_t* w) {
  pestle_kir_act(w->b.k, PESTLE_KIR_COPY_COMMIT, 0, 0, 0, 0);
}

// The first steps', which come first.
static void begin_weights(lanes_dot_t* w, unsigned piece, pk_t group) {
  block_dot_t* b = &w->b;
  if (!w->copies) {
    find_columns(w, group);
    find_units(w, number(b, 0));
    each_load(w, piece, PESTLE_KIR_NONE, ask_weight);
    load_scales(w, piece);
    return;
  }
  for (int64_t i = 0; i < steps_ahead(w); ++i) {
    bool asks = find_step(w, group, number(b, i), i < steps_of(w));
    each_load(w, piece, number(b, i), copy_weight);
    if (asks) pestle_kir_end(b->k);
    commit(w);
  }
}

static void prefetch(lanes_dot_t* w, uint32_t buffer, pk_t at) {
  pestle_kir_act(w->b.k, PESTLE_KIR_PREFETCH, buffer, at, 0, 0);
}

// Asks for what begin_weights() will, as far as the nearest memory that all cores share.
static void prefetch_weights(lanes_dot_t* w, unsigned piece, pk_t group) {
  block_dot_t* b = &w->b;
  int64_t ahead = w->copies ? steps_ahead(w) : 1;
  if (ahead > steps_of(w)) ahead = steps_of(w);
  for (int64_t i = 0; i < ahead; ++i) {
    find_columns(w, group);
    find_units(w, number(b, i));
    for (int64_t u = 0; u < w->together; ++u) {
      for (unsigned p = 0; p < b->product_count; ++p) {
        const block_product_t* product = &b->products[p];
        if (product->piece != piece) continue;
        for (int64_t c = 0; c < b->columns; ++c) {
          pk_t scale = pestle_kir_madi(b->k, w->columns[c], b->blocks,
                                       block_of(w, w->unit[u]));
          prefetch(w, product->w, weight_at(w, u, c));
          prefetch(w, product->scales, scale);
          if (b->has_zeros) prefetch(w, product->zeros, scale);
        }
      }
    }
  }
}

static void clear_totals(lanes_dot_t* w) {
  int64_t totals = w->most_columns * w->rows_at_a_time;
  pestle_kir_alloc(w->b.k, w->totals);
  for (int64_t i = 0; i < totals; ++i)
    pestle_direct_store(w->b.d, w->totals, number(&w->b, i), real(w, 0));
}

static pk_t stage_of(lanes_dot_t* w, pk_t step) {
  if (w->stages == 1) return number(&w->b, 0);
  return pestle_kir_scalar_i(w->b.k, PESTLE_OP_REMAINDER, step, w->stages);
}

// The steps of turn |trip|, while the weights of those that follow are copied.
static void use_copies(lanes_dot_t* w, unsigned piece, pk_t first_row,
                       pk_t group, pk_t trip) {
  block_dot_t* b = &w->b;
  int64_t steps = steps_of(w), all = steps * w->trips, ahead = steps_ahead(w);
  pk_t within = pestle_kir_repeat(b->k, "step", steps);
  pk_t step = pestle_kir_madi(b->k, trip, steps, within);
  if (ahead < all) {
    pk_t next = pestle_kir_madi(b->k, step, 1, number(b, ahead));
    bool asks = find_step(w, group, next, false);
    each_load(w, piece, stage_of(w, next), copy_weight);
    if (asks) pestle_kir_end(b->k);
    commit(w);
    pestle_kir_act(b->k, PESTLE_KIR_COPY_WAIT, (uint32_t)ahead, 0, 0, 0);
  } else {
    pestle_kir_act(b->k, PESTLE_KIR_COPY_WAIT, 0, 0, 0, 0);
  }
  find_units(w, within);
  each_load(w, piece, stage_of(w, step), take_copy);
  use_weights(w, piece, first_row);
  pestle_kir_end_repeat(b->k, steps);
}

// --- Rows ---

static void finish(lanes_dot_t* w, unsigned piece, int64_t c, pk_t first_row) {
  block_dot_t* b = &w->b;
  int64_t at = 0;
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->products[p].piece != piece) continue;
    for (int64_t m = 0; m < b->rows; ++m) {
      pk_t total = pestle_direct_load(b->d, w->totals, total_at(w, at, c, m));
      b->products[p].now[m] =
          pestle_kir_sg_reduce(b->k, total, PESTLE_OP_ADD, (unsigned)w->team);
    }
    ++at;
  }
  pk_t column = pestle_kir_madi(b->k, w->team_at, b->columns, number(b, c));
  pk_t is_stored = op(w, PESTLE_OP_EQ, w->lane, number(b, 0));
  is_stored =
      op(w, PESTLE_OP_AND, is_stored,
         pestle_kir_scalar_i(b->k, PESTLE_OP_LT, column, b->piece->columns));
  pestle_kir_if(b->k, is_stored);
  b->read_y = w->reads_y ? w->y[c] : NULL;
  pestle_block_dot_finish(b, w->columns[c], first_row);
  pestle_kir_end(b->k);
}

// Columns of the team in group |group| of the piece and those of its next turns. |asked|: the
// first weights are on their way.
static void do_rows(lanes_dot_t* w, unsigned piece, pk_t first_row,
                    int64_t rows, pk_t group, bool asked) {
  block_dot_t* b = &w->b;
  b->rows = rows;
  int64_t steps = steps_of(w);
  if (w->copies && !asked) begin_weights(w, piece, group);
  pk_t trip = pestle_kir_repeat(b->k, "trip", w->trips);
  pk_t now = pestle_kir_madi(b->k, trip, w->stride, group);
  if (w->trips > 1)
    pestle_kir_if(
        b->k, pestle_kir_scalar_i(b->k, PESTLE_OP_LT, now, b->piece->groups));
  clear_totals(w);
  if (w->copies) {
    use_copies(w, piece, first_row, group, trip);
  } else {
    if (asked) use_weights(w, piece, first_row);
    bool loops = steps - asked > 1;
    pk_t step = number(b, asked);
    if (loops)
      step = pestle_kir_for(b->k, "step", step, number(b, steps), 1,
                            PESTLE_KIR_SERIAL);
    if (steps > asked) {
      find_columns(w, now);
      find_units(w, step);
      each_load(w, piece, PESTLE_KIR_NONE, ask_weight);
      load_scales(w, piece);
      use_weights(w, piece, first_row);
    }
    if (loops) pestle_kir_end(b->k);
  }
  find_columns(w, now);
  for (int64_t c = 0; c < b->columns; ++c)
    finish(w, piece, c, first_row);
  if (w->trips > 1) pestle_kir_end(b->k);
  pestle_kir_end_repeat(b->k, w->trips);
}

// --- Pieces ---

static int64_t products_of(const block_dot_t* b, unsigned piece) {
  int64_t count = 0;
  for (unsigned p = 0; p < b->product_count; ++p)
    count += b->products[p].piece == piece;
  return count;
}

// Columns of a team of each product of |piece|.
static int64_t columns_of(const lanes_dot_t* w, unsigned piece) {
  int64_t columns = w->most_columns / products_of(&w->b, piece);
  return columns > 1 ? columns : 1;
}

// As many chunks as divide a lane's, with the loads of all products and columns. Groups that
// take turns are many on a core.
static int64_t together_of(const lanes_dot_t* w, unsigned piece) {
  int64_t loads = columns_of(w, piece) * products_of(&w->b, piece), best = 1;
  int64_t most = (w->has_turns ? SOME_LOADS : MOST_LOADS) / loads;
  // In f32 a chunk is many products.
  if (!w->b.is_bytes) return 1;
  for (int64_t u = 2; u <= most && u <= w->turns; ++u) {
    if (w->turns % u == 0) best = u;
  }
  return best;
}

// Makes |piece| the one that is made, and |*group| a number of its own; true: an if has
// begun, in which groups of it are.
static bool begin_piece(lanes_dot_t* w, unsigned piece, pk_t* group) {
  block_dot_t* b = &w->b;
  b->piece = &b->pieces[piece];
  b->columns = columns_of(w, piece);
  w->together = together_of(w, piece);
  int64_t first = b->piece->first_group, all = b->piece->groups;
  if (all == b->groups) return false;
  pk_t from = pestle_kir_scalar_i(b->k, PESTLE_OP_GE, *group, first);
  pk_t to = pestle_kir_scalar_i(b->k, PESTLE_OP_LT, *group, first + all);
  pestle_kir_if(b->k, op(w, PESTLE_OP_AND, from, to));
  *group = pestle_kir_madi(b->k, *group, 1, number(b, -first));
  *group = pestle_direct_clamp(b->d, *group, 0, all - 1);
  return true;
}

// Columns that a lane has just once need not wait for their sum.
static void read_y(lanes_dot_t* w, pk_t group) {
  block_dot_t* b = &w->b;
  w->reads_y = b->keeps && w->trips == 1;
  if (!w->reads_y) return;
  find_columns(w, group);
  for (int64_t c = 0; c < b->columns; ++c)
    pestle_block_dot_read_y(b, w->columns[c], w->y[c]);
}

static void do_piece(lanes_dot_t* w, unsigned piece, pk_t group, bool makes) {
  block_dot_t* b = &w->b;
  bool is_some = begin_piece(w, piece, &group);
  if (makes) {
    pestle_block_bytes_ask(b, w->group_lane, w->group_lanes);
    read_y(w, group);
    if (!w->is_early) begin_weights(w, piece, group);
    pestle_block_bytes_make(b, w->group_lane, w->group_lanes);
  }
  int64_t whole = b->all_rows / w->rows_at_a_time,
          rest = b->all_rows % w->rows_at_a_time;
  pk_t i = pestle_kir_repeat(b->k, "rows", whole);
  do_rows(w, piece, pestle_kir_madi(b->k, i, w->rows_at_a_time, number(b, 0)),
          w->rows_at_a_time, group, makes);
  pestle_kir_end_repeat(b->k, whole);
  if (rest)
    do_rows(w, piece, number(b, whole * w->rows_at_a_time), rest, group, makes);
  if (is_some) pestle_kir_end(b->k);
}

static bool are_given(const block_dot_t* b) {
  for (unsigned p = 0; p < b->product_count; ++p) {
    const pestle_node_t* node = b->products[p].node;
    for (uint32_t i = 1; i < node->operand_count; ++i) {
      if (!pestle_direct_is_given(b->d, pestle_node_operand(node, i)))
        return false;
    }
  }
  return true;
}

// Where kernels may begin before the one in front of them ends: all that is known not to be
// written by that one is on its way while they wait for it.
static void wait_for_x(lanes_dot_t* w, pk_t all_group) {
  block_dot_t* b = &w->b;
  if (!b->d->caps->op_dtypes[PESTLE_KIR_GRID_WAIT]) return;
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->products[p].piece != p) continue;
    pk_t group = all_group;
    bool is_some = begin_piece(w, p, &group);
    if (w->is_early)
      begin_weights(w, p, group);
    else
      prefetch_weights(w, p, group);
    if (is_some) pestle_kir_end(b->k);
  }
  if (b->norm && w->makes_bytes) {
    int64_t each = (b->depth + w->group_lanes - 1) / w->group_lanes;
    pk_t at = pestle_kir_madi(b->k, w->group_lane, each, number(b, 0));
    prefetch(w, b->norm_scale,
             pestle_kir_scalar_i(b->k, PESTLE_OP_MINIMUM, at, b->depth - 1));
  }
  pestle_kir_act(b->k, PESTLE_KIR_GRID_WAIT, 0, 0, 0, 0);
}

// --- The kernel ---

// The most lanes that are busy, of those the most lanes.
static int64_t choose_team(int64_t units, int64_t most) {
  enum { PERCENT = 85 };
  int64_t best = LEAST_TEAM, best_busy = 0;
  for (int64_t team = most; team >= LEAST_TEAM; team /= 2) {
    int64_t busy = 100 * units / ((units + team - 1) / team * team);
    if (busy >= PERCENT) return team;
    if (busy > best_busy) {
      best = team;
      best_busy = busy;
    }
  }
  return best;
}

// As many columns of a team as leave lanes enough for all cores.
static int64_t choose_columns(const lanes_dot_t* w, int64_t all,
                              int64_t cores) {
  int64_t columns = MOST_COLUMNS;
  while (columns > 1 && (all + w->teams * columns - 1) / (w->teams * columns) *
                                w->group_lanes <
                            LEAST_LANES * cores)
    columns /= 2;
  return columns;
}

// Of groups that take turns: so many that the last turn has most of them.
static int64_t choose_groups(const lanes_dot_t* w, int64_t all, int64_t cores,
                             double* out_busy) {
  int64_t best = all, most = MOST_TURN_LANES / w->group_lanes,
          least = LEAST_TURN_LANES / w->group_lanes;
  *out_busy = 0;
  if (!cores || all <= most * cores) return all;
  for (int64_t each = most; each >= least && each; --each) {
    int64_t groups = each * cores, turns = (all + groups - 1) / groups;
    double busy = (double)all / (double)(turns * groups);
    if (busy <= *out_busy + 0.02) continue;
    *out_busy = busy;
    best = groups;
  }
  return best;
}

static pestle_status_t read(lanes_dot_t* w, pestle_direct_t* d) {
  block_dot_t* b = &w->b;
  const pestle_node_t* node = pestle_direct_whole_of(d->node);
  const pestle_type_t *x = pestle_node_operand(node, 0)->type,
                      *scales = pestle_node_operand(node, 2)->type;
  b->d = d;
  b->k = d->k;
  b->is_lanes = true;
  b->lanes = 1;
  b->dtype = x->dtype;
  b->rank = x->rank;
  b->bits = PESTLE_NODE_I64(node, bits);
  b->block = PESTLE_NODE_I64(node, block);
  b->blocks = scales->dims[1];
  b->has_zeros = node->operand_count > 3;
  b->block_words = b->block * b->bits / 32;
  b->words = b->blocks * b->block_words;
  b->word_weights = 32 / b->bits;
  b->parts = 8 / b->bits;
  b->depth = x->dims[x->rank - 1];
  b->all_rows = pestle_type_count(x) / b->depth;
  PESTLE_TRY(pestle_block_dot_read(b));
  // Bytes of x, and behind them their scales.
  for (uint32_t i = 0; i + 1 < b->body->argument_count && !b->is_bytes; ++i) {
    b->is_bytes = b->body->arguments[i]->type->dtype == PESTLE_I8;
    if (!b->is_bytes) continue;
    b->x = b->arguments[i];
    b->x_scales = b->arguments[i + 1];
  }
  w->makes_bytes = !b->is_bytes && PESTLE_NODE_I64(node, accuracy) == 4 &&
                   d->caps->op_dtypes[PESTLE_KIR_DOT4] != 0;
  b->is_bytes |= w->makes_bytes;
  return NULL;
}

// Whether each lane has its weights copied to shared memory.
static bool may_copy(const lanes_dot_t* w) {
  const block_dot_t* b = &w->b;
  bool may = b->is_bytes && w->chunk * WORD_BYTES == COPY_BYTES &&
             b->d->caps->flags & PESTLE_TARGET_ASYNC_COPY;
  for (unsigned p = 0; p < b->product_count; ++p) {
    const block_product_t* product = &b->products[p];
    if (align_of(w, product->w, b->words | w->chunk) < 4) may = false;
    if (products_of(b, p) > MOST_LOADS) may = false;
    // Of scales words are copied.
    for (int i = 0; i < 1 + b->has_zeros && !b->k->failed; ++i) {
      uint32_t buffer = i ? product->zeros : product->scales;
      const pestle_kir_buffer_t* u = &b->k->buffer.data[buffer];
      unsigned size = pestle_dtype_size((pestle_dtype_t)u->dtype);
      if (size > SCALE_BYTES || u->align < SCALE_BYTES ||
          b->blocks * size % SCALE_BYTES)
        may = false;
    }
  }
  return may;
}

// Groups of all pieces, where a team has so many columns of all products of one.
static void lay_out(lanes_dot_t* w, int64_t columns) {
  block_dot_t* b = &w->b;
  w->most_columns = columns;
  b->groups = 0;
  for (unsigned p = 0; p < b->product_count; ++p) {
    block_piece_t* piece = &b->pieces[p];
    if (b->products[p].piece != p) continue;
    piece->panel = w->teams * columns_of(w, p);
    piece->groups = (piece->columns + piece->panel - 1) / piece->panel;
    piece->first_group = b->groups;
    b->groups += piece->groups;
  }
}

// Of a group of |lanes| that has |loads| under way, in shared memory.
static int64_t shared_bytes(const lanes_dot_t* w, int64_t lanes,
                            int64_t loads) {
  const block_dot_t* b = &w->b;
  int64_t scales = (1 + b->has_zeros) * SCALE_BYTES;
  int64_t x = w->makes_bytes ? b->all_rows * (b->depth + b->depth / 2) : 0;
  return lanes * loads * (COPY_BYTES + scales) + x;
}

// Whether groups of twice the lanes are better: they begin sooner, being fewer, and make x
// fewer times. Most cores must have one, and beyond twice the least all of them.
static bool wants_more_lanes(const lanes_dot_t* w,
                             const pestle_target_caps_t* caps,
                             int64_t columns) {
  const block_dot_t* b = &w->b;
  int64_t lanes = 2 * w->group_lanes, all = columns * w->team;
  bool is_long = b->depth * b->all_rows > MOST_NUMBERS * w->group_lanes &&
                 all >= lanes * caps->cores;
  bool is_least =
      w->group_lanes == GROUP_LANES && 4 * all >= 3 * lanes * caps->cores;
  return w->copies && w->makes_bytes && w->group_lanes < MOST_GROUP_LANES &&
         lanes <= caps->max_group_lanes && (is_long || is_least) &&
         shared_bytes(w, lanes, 2 * MOST_LOADS) <= (int64_t)caps->scratch_bytes;
}

static void choose_lanes(lanes_dot_t* w, const pestle_target_caps_t* caps,
                         int64_t columns) {
  w->group_lanes = GROUP_LANES;
  while (wants_more_lanes(w, caps, columns))
    w->group_lanes *= 2;
  w->teams = w->group_lanes / w->team;
}

// Returns how many groups run.
static int64_t choose(lanes_dot_t* w, const pestle_target_caps_t* caps) {
  block_dot_t* b = &w->b;
  int64_t all = 0, most = caps->subgroup < 32 ? caps->subgroup : 32, least = 1;
  w->chunk = b->is_bytes ? CHUNK_WORDS : F32_CHUNK / b->word_weights;
  if (w->chunk < 1) w->chunk = 1;
  // A chunk is of one block, and of one scale of x.
  if (w->chunk > X_BLOCK / b->word_weights)
    w->chunk = X_BLOCK / b->word_weights;
  if (w->chunk > b->block_words) w->chunk = b->block_words;
  w->units = b->words / w->chunk;
  w->rows_at_a_time = b->all_rows < TEAM_ROWS ? b->all_rows : TEAM_ROWS;
  w->team = choose_team(w->units, most);
  w->turns = (w->units + w->team - 1) / w->team;
  w->copies = may_copy(w);
  for (unsigned p = 0; p < b->product_count; ++p) {
    all += b->pieces[b->products[p].piece].columns;
    int64_t count = products_of(b, p);
    if (count > least) least = count;
  }
  choose_lanes(w, caps, all);
  int64_t columns = choose_columns(w, all, caps->cores);
  lay_out(w, columns > least ? columns : least);
  if (!w->makes_bytes) return b->groups;
  double busy, other;
  int64_t groups = choose_groups(w, b->groups, caps->cores, &busy);
  w->has_turns = groups < b->groups;
  if (!w->has_turns || w->most_columns / 2 < least) return groups;
  // Fewer columns at a time may fill the last turn.
  columns = w->most_columns;
  lay_out(w, columns / 2);
  int64_t more = choose_groups(w, b->groups, caps->cores, &other);
  if (more < b->groups && other > busy + 0.02) return more;
  lay_out(w, columns);
  return groups;
}

// How many steps' weights have places, so that enough is on its way on a core.
static int64_t choose_stages(const lanes_dot_t* w, int64_t groups,
                             int64_t all) {
  int64_t cores = w->b.d->caps->cores ? w->b.d->caps->cores : 1;
  int64_t lanes = groups * w->group_lanes / cores;
  if (lanes > MOST_TURN_LANES) lanes = MOST_TURN_LANES;
  if (lanes < w->group_lanes) lanes = w->group_lanes;
  int64_t step = lanes * w->stage_loads * COPY_BYTES;
  int64_t stages = (BYTES_AHEAD + step - 1) / step + 1;
  if (stages > MOST_STAGES) stages = MOST_STAGES;
  while (stages > 2 &&
         shared_bytes(w, w->group_lanes, stages * w->stage_loads) >
             (int64_t)w->b.d->caps->scratch_bytes)
    --stages;
  return stages < all ? stages : all;
}

static void add_copies(lanes_dot_t* w, int64_t groups) {
  block_dot_t* b = &w->b;
  w->stages = 1;
  if (!w->copies) return;
  int64_t all = 1;
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->products[p].piece != p) continue;
    w->together = together_of(w, p);
    int64_t loads = w->together * columns_of(w, p) * products_of(b, p);
    int64_t steps = steps_of(w) * w->trips;
    if (loads > w->stage_loads) w->stage_loads = loads;
    if (steps > all) all = steps;
  }
  w->stages = choose_stages(w, groups, all);
  int64_t places = w->stages * w->stage_loads * w->group_lanes;
  w->ahead = pestle_kir_add_buffer(b->k, "ahead", PESTLE_KIR_SHARED, PESTLE_U8,
                                   1, places * COPY_BYTES, 0);
  for (int i = 0; i < 1 + b->has_zeros; ++i) {
    uint32_t buffer = i ? b->products[0].zeros : b->products[0].scales;
    pestle_dtype_t dtype =
        b->k->failed ? PESTLE_F32
                     : (pestle_dtype_t)b->k->buffer.data[buffer].dtype;
    w->ahead_of[i] =
        pestle_kir_add_buffer(b->k, i ? "zeros" : "scales", PESTLE_KIR_SHARED,
                              dtype, 1, places * scales_of_word(w, buffer), 0);
  }
}

static bool has_one_piece(const lanes_dot_t* w) {
  return w->b.pieces[w->b.products[0].piece].groups == w->b.groups;
}

pestle_status_t pestle_direct_block_dot_lanes(pestle_direct_t* d) {
  lanes_dot_t w = {0};
  block_dot_t* b = &w.b;
  PESTLE_TRY(read(&w, d));
  int64_t groups = choose(&w, d->caps);
  bool loops = false;
  w.totals =
      pestle_kir_add_buffer(b->k, "totals", PESTLE_KIR_PRIVATE, PESTLE_F32, 1,
                            w.most_columns * w.rows_at_a_time, 0);
  // Turns at the columns of one piece are steps of one row of copies.
  w.trips = 1;
  w.stride = groups;
  if (w.has_turns && w.copies && has_one_piece(&w))
    w.trips = (b->groups + groups - 1) / groups;
  else
    loops = w.has_turns;
  add_copies(&w, groups);
  w.is_early = w.copies && w.makes_bytes && !loops && are_given(b) &&
               d->caps->op_dtypes[PESTLE_KIR_GRID_WAIT];
  pk_t group = pestle_kir_for(b->k, "group", number(b, 0), number(b, groups), 1,
                              PESTLE_KIR_GROUP_X);
  w.group_lane = pestle_kir_for(b->k, "lane", number(b, 0),
                                number(b, w.group_lanes), 1, PESTLE_KIR_LANE_X);
  w.lane = pestle_kir_scalar_i(b->k, PESTLE_OP_REMAINDER, w.group_lane, w.team);
  wait_for_x(&w, group);
  if (loops) {
    pestle_block_bytes_make(b, w.group_lane, w.group_lanes);
    group = pestle_kir_for(b->k, "turn", group, number(b, b->groups),
                           (int32_t)groups, PESTLE_KIR_SERIAL);
  }
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->products[p].piece == p)
      do_piece(&w, p, group, w.makes_bytes && !loops);
  }
  if (loops) pestle_kir_end(b->k);
  pestle_kir_end(b->k);
  pestle_kir_end(b->k);
  for (unsigned p = 0; p < b->product_count; ++p) {
    int64_t columns = b->pieces[b->products[p].piece].columns;
    d->steps += (uint64_t)(b->all_rows * columns * b->words * b->parts);
  }
  return NULL;
}
