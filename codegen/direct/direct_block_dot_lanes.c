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
// Groups that make the bytes ask for their first weights before that. Where a target copies to
// shared memory past the registers each lane has its weights copied there, to places of its
// own: what is under way takes no registers, and a compiler does not put it off. In f32 a
// weight becomes 1 + w / 2^bits, as direct_block_dot.c says.
#include <string.h>

#include "base/bits.h"
#include "codegen/direct/direct_block_dot.h"

enum {
  GROUP_LANES = 128,
  // Of those that make the bytes of x, for which more of them take turns at columns.
  MOST_GROUPS_A_CORE = 8,
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
  STAGES = 2,
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
  int64_t stage_loads;     // places of a stage
  uint32_t ahead;          // places of weights there, by stage, load and lane
  uint32_t kept[2];        // scales and zero points of the stage that is used
  uint32_t totals;
  pk_t lane, team_at;  // of the team; the team of its piece
  pk_t group_lane;
  pk_t
      columns[MOST_COLUMNS];  // b.columns of them, of each product of the piece
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
  at = pestle_kir_madi(b->k, at, GROUP_LANES, w->group_lane);
  return pestle_kir_madi(b->k, at, COPY_BYTES, number(b, 0));
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

// Asks for the weights of the units, to the places of |stage| where they are copied.
static void ask_weights(lanes_dot_t* w, unsigned piece, pk_t stage) {
  block_dot_t* b = &w->b;
  int64_t load = 0;
  for (int64_t u = 0; u < w->together; ++u) {
    for (unsigned p = 0; p < b->product_count; ++p) {
      if (b->products[p].piece != piece) continue;
      uint32_t buffer = b->products[p].w;
      unsigned align = align_of(w, buffer, b->words | w->chunk);
      for (int64_t c = 0; c < b->columns; ++c, ++load) {
        pk_t from =
            pestle_kir_madi(b->k, w->columns[c], b->words, number(b, 0));
        from = pestle_kir_madi(b->k, w->unit[u], w->chunk, from);
        from = pestle_kir_madi(b->k, from, WORD_BYTES, number(b, 0));
        if (w->copies) {
          pk_t to = place_of(w, stage, load);
          (void)pestle_kir_put(
              b->k, (pestle_kir_inst_t){.op = PESTLE_KIR_COPY_ASYNC,
                                        .type = PESTLE_NONE,
                                        .lanes = COPY_BYTES,
                                        .arg = {w->ahead, to, buffer, from}});
        } else {
          w->words[u][p][c] =
              words_of(w, buffer, (unsigned)w->chunk, from, align);
        }
      }
    }
  }
}

static void load_scales(lanes_dot_t* w, unsigned piece) {
  block_dot_t* b = &w->b;
  for (int64_t u = 0; u < w->together; ++u) {
    pk_t block = w->unit[u];
    if (b->block_words > w->chunk)
      block = pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, block,
                                  b->block_words / w->chunk);
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

// In registers, so that they stay while the next ones are on their way.
static void keep_scales(lanes_dot_t* w, unsigned piece) {
  block_dot_t* b = &w->b;
  int64_t load = 0;
  for (int64_t u = 0; u < w->together; ++u) {
    for (unsigned p = 0; p < b->product_count; ++p) {
      if (b->products[p].piece != piece) continue;
      for (int64_t c = 0; c < b->columns; ++c, ++load) {
        for (int i = 0; i < 1 + b->has_zeros; ++i) {
          pk_t value = i ? w->zeros[u][p][c] : w->scales[u][p][c];
          pestle_direct_store(b->d, w->kept[i], number(b, load),
                              pestle_kir_cast(b->k, value, PESTLE_F32));
        }
      }
    }
  }
}

// What was copied to |stage|, and the scales that were kept.
static void take_copies(lanes_dot_t* w, unsigned piece, pk_t stage) {
  block_dot_t* b = &w->b;
  int64_t load = 0;
  for (int64_t u = 0; u < w->together; ++u) {
    for (unsigned p = 0; p < b->product_count; ++p) {
      if (b->products[p].piece != piece) continue;
      for (int64_t c = 0; c < b->columns; ++c, ++load) {
        pk_t at = number(b, load);
        w->words[u][p][c] = words_of(w, w->ahead, (unsigned)w->chunk,
                                     place_of(w, stage, load), 4);
        w->scales[u][p][c] = pestle_direct_load(b->d, w->kept[0], at);
        if (b->has_zeros)
          w->zeros[u][p][c] = pestle_direct_load(b->d, w->kept[1], at);
      }
    }
  }
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

// The first step's, which come first.
static void begin_weights(lanes_dot_t* w, unsigned piece) {
  find_units(w, number(&w->b, 0));
  ask_weights(w, piece, number(&w->b, 0));
  if (w->copies) pestle_kir_act(w->b.k, PESTLE_KIR_COPY_COMMIT, 0, 0, 0, 0);
  load_scales(w, piece);
}

// All steps, while the weights of the one that follows are copied.
static void use_copies(lanes_dot_t* w, unsigned piece, pk_t first_row,
                       int64_t steps) {
  block_dot_t* b = &w->b;
  pk_t step = number(b, 0), stage = step;
  for (int i = 0; i < 2; ++i) {
    if (!i || b->has_zeros) pestle_kir_alloc(b->k, w->kept[i]);
  }
  keep_scales(w, piece);
  if (steps > 1) {
    step = pestle_kir_for(b->k, "step", number(b, 0), number(b, steps), 1,
                          PESTLE_KIR_SERIAL);
    stage = pestle_kir_scalar_i(b->k, PESTLE_OP_REMAINDER, step, STAGES);
    pk_t next = pestle_kir_madi(b->k, step, 1, number(b, 1)), last = next;
    next = pestle_kir_scalar_i(b->k, PESTLE_OP_MINIMUM, next, steps - 1);
    find_units(w, next);
    pestle_kir_if(b->k, pestle_kir_scalar_i(b->k, PESTLE_OP_LT, last, steps));
    ask_weights(w, piece,
                pestle_kir_scalar_i(b->k, PESTLE_OP_REMAINDER, last, STAGES));
    pestle_kir_end(b->k);
    pestle_kir_act(b->k, PESTLE_KIR_COPY_COMMIT, 0, 0, 0, 0);
    load_scales(w, piece);
  }
  pk_t scales[MOST_LOADS][MOST_PRODUCTS][MOST_COLUMNS],
      zeros[MOST_LOADS][MOST_PRODUCTS][MOST_COLUMNS];
  memcpy(scales, w->scales, sizeof(scales));
  memcpy(zeros, w->zeros, sizeof(zeros));
  pestle_kir_act(b->k, PESTLE_KIR_COPY_WAIT, steps > 1, 0, 0, 0);
  find_units(w, step);
  take_copies(w, piece, stage);
  use_weights(w, piece, first_row);
  if (steps == 1) return;
  memcpy(w->scales, scales, sizeof(scales));
  memcpy(w->zeros, zeros, sizeof(zeros));
  keep_scales(w, piece);
  pestle_kir_end(b->k);
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
  pestle_block_dot_finish(b, w->columns[c], first_row);
  pestle_kir_end(b->k);
}

// |asked|: the first weights are on their way.
static void do_rows(lanes_dot_t* w, unsigned piece, pk_t first_row,
                    int64_t rows, bool asked) {
  block_dot_t* b = &w->b;
  b->rows = rows;
  int64_t steps = w->turns / w->together;
  int64_t totals = w->most_columns * w->rows_at_a_time;
  pestle_kir_alloc(b->k, w->totals);
  for (int64_t i = 0; i < totals; ++i)
    pestle_direct_store(b->d, w->totals, number(b, i), real(w, 0));
  if (w->copies) {
    if (!asked) begin_weights(w, piece);
    use_copies(w, piece, first_row, steps);
  } else {
    if (asked) use_weights(w, piece, first_row);
    bool loops = steps - asked > 1;
    pk_t step = number(b, asked);
    if (loops)
      step = pestle_kir_for(b->k, "step", step, number(b, steps), 1,
                            PESTLE_KIR_SERIAL);
    if (steps > asked) {
      find_units(w, step);
      ask_weights(w, piece, number(b, 0));
      load_scales(w, piece);
      use_weights(w, piece, first_row);
    }
    if (loops) pestle_kir_end(b->k);
  }
  for (int64_t c = 0; c < b->columns; ++c)
    finish(w, piece, c, first_row);
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

static void do_piece(lanes_dot_t* w, unsigned piece, pk_t group, pk_t lane) {
  block_dot_t* b = &w->b;
  b->piece = &b->pieces[piece];
  b->columns = columns_of(w, piece);
  int64_t first = b->piece->first_group, all = b->piece->groups;
  bool is_alone = all == b->groups;
  if (!is_alone) {
    pk_t from = pestle_kir_scalar_i(b->k, PESTLE_OP_GE, group, first);
    pk_t to = pestle_kir_scalar_i(b->k, PESTLE_OP_LT, group, first + all);
    pestle_kir_if(b->k, op(w, PESTLE_OP_AND, from, to));
    group = pestle_kir_madi(b->k, group, 1, number(b, -first));
    group = pestle_direct_clamp(b->d, group, 0, all - 1);
  }
  pk_t team = pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, lane, w->team);
  w->team_at = pestle_kir_madi(b->k, group, w->teams, team);
  for (int64_t c = 0; c < b->columns; ++c) {
    w->columns[c] = pestle_kir_madi(b->k, w->team_at, b->columns, number(b, c));
    w->columns[c] = pestle_kir_scalar_i(b->k, PESTLE_OP_MINIMUM, w->columns[c],
                                        b->piece->columns - 1);
  }
  w->together = together_of(w, piece);
  bool asked = w->makes_bytes && !w->has_turns;
  if (asked) {
    begin_weights(w, piece);
    pestle_block_bytes_make(b, lane, GROUP_LANES);
  }
  int64_t whole = b->all_rows / w->rows_at_a_time,
          rest = b->all_rows % w->rows_at_a_time;
  pk_t i = pestle_kir_repeat(b->k, "rows", whole);
  do_rows(w, piece, pestle_kir_madi(b->k, i, w->rows_at_a_time, number(b, 0)),
          w->rows_at_a_time, asked);
  pestle_kir_end_repeat(b->k, whole);
  if (rest)
    do_rows(w, piece, number(b, whole * w->rows_at_a_time), rest, asked);
  if (!is_alone) pestle_kir_end(b->k);
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

// As many columns of a team as leave groups enough for all cores.
static int64_t choose_columns(int64_t all, int64_t teams, int64_t cores) {
  enum { GROUPS_A_CORE = 3 };
  int64_t columns = MOST_COLUMNS;
  while (columns > 1 && (all + teams * columns - 1) / (teams * columns) <
                            GROUPS_A_CORE * cores)
    columns /= 2;
  return columns;
}

// Of groups that take turns: so many that the last turn has most of them.
static int64_t choose_groups(int64_t all, int64_t cores) {
  enum { LEAST_GROUPS_A_CORE = 5 };
  int64_t best = all;
  double best_busy = 0;
  if (!cores || all <= MOST_GROUPS_A_CORE * cores) return all;
  for (int64_t each = MOST_GROUPS_A_CORE; each >= LEAST_GROUPS_A_CORE; --each) {
    int64_t groups = each * cores, turns = (all + groups - 1) / groups;
    double busy = (double)all / (double)(turns * groups);
    if (busy <= best_busy + 0.02) continue;
    best_busy = busy;
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

static void choose(lanes_dot_t* w, const pestle_target_caps_t* caps) {
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
  w->teams = GROUP_LANES / w->team;
  w->turns = (w->units + w->team - 1) / w->team;
  for (unsigned p = 0; p < b->product_count; ++p) {
    all += b->pieces[b->products[p].piece].columns;
    int64_t count = products_of(b, p);
    if (count > least) least = count;
  }
  w->most_columns = choose_columns(all, w->teams, caps->cores);
  if (w->most_columns < least) w->most_columns = least;
  for (unsigned p = 0; p < b->product_count; ++p) {
    block_piece_t* piece = &b->pieces[p];
    if (b->products[p].piece != p) continue;
    piece->panel = w->teams * columns_of(w, p);
    piece->groups = (piece->columns + piece->panel - 1) / piece->panel;
    piece->first_group = b->groups;
    b->groups += piece->groups;
  }
}

// Where weights are copied to, if they are.
static void add_copies(lanes_dot_t* w) {
  block_dot_t* b = &w->b;
  w->copies = b->is_bytes && w->chunk * WORD_BYTES == COPY_BYTES &&
              b->d->caps->flags & PESTLE_TARGET_ASYNC_COPY;
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (align_of(w, b->products[p].w, b->words | w->chunk) < 4)
      w->copies = false;
    if (products_of(b, p) > MOST_LOADS) w->copies = false;
  }
  if (!w->copies) return;
  int64_t stages = 1;
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->products[p].piece != p) continue;
    int64_t together = together_of(w, p);
    int64_t loads = together * columns_of(w, p) * products_of(b, p);
    if (loads > w->stage_loads) w->stage_loads = loads;
    if (together < w->turns) stages = STAGES;
  }
  w->ahead = pestle_kir_add_buffer(
      b->k, "ahead", PESTLE_KIR_SHARED, PESTLE_U8, 1,
      stages * w->stage_loads * GROUP_LANES * COPY_BYTES, 0);
  for (int i = 0; i < 1 + b->has_zeros; ++i)
    w->kept[i] =
        pestle_kir_add_buffer(b->k, i ? "zeros" : "scales", PESTLE_KIR_PRIVATE,
                              PESTLE_F32, 1, MOST_LOADS, 0);
}

pestle_status_t pestle_direct_block_dot_lanes(pestle_direct_t* d) {
  lanes_dot_t w = {0};
  block_dot_t* b = &w.b;
  PESTLE_TRY(read(&w, d));
  choose(&w, d->caps);
  w.totals =
      pestle_kir_add_buffer(b->k, "totals", PESTLE_KIR_PRIVATE, PESTLE_F32, 1,
                            w.most_columns * w.rows_at_a_time, 0);
  int64_t groups = b->groups;
  if (w.makes_bytes) groups = choose_groups(groups, d->caps->cores);
  bool has_turns = w.has_turns = groups < b->groups;
  add_copies(&w);
  pk_t group = pestle_kir_for(b->k, "group", number(b, 0), number(b, groups), 1,
                              PESTLE_KIR_GROUP_X);
  pk_t lane = pestle_kir_for(b->k, "lane", number(b, 0), number(b, GROUP_LANES),
                             1, PESTLE_KIR_LANE_X);
  w.group_lane = lane;
  w.lane = pestle_kir_scalar_i(b->k, PESTLE_OP_REMAINDER, lane, w.team);
  if (has_turns) {
    pestle_block_bytes_make(b, lane, GROUP_LANES);
    group = pestle_kir_for(b->k, "turn", group, number(b, b->groups),
                           (int32_t)groups, PESTLE_KIR_SERIAL);
  }
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->products[p].piece == p) do_piece(&w, p, group, lane);
  }
  if (has_turns) pestle_kir_end(b->k);
  pestle_kir_end(b->k);
  pestle_kir_end(b->k);
  for (unsigned p = 0; p < b->product_count; ++p) {
    int64_t columns = b->pieces[b->products[p].piece].columns;
    d->steps += (uint64_t)(b->all_rows * columns * b->words * b->parts);
  }
  return NULL;
}
