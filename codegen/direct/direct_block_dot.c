// SPDX-License-Identifier: Apache-2.0
// A product with weights of a few bits on a CPU, in one kernel: the weights are read as they
// lie in their model, a row after the other, and become numbers in registers only. A word of
// 32 bits holds neighbouring weights of a row, a lane takes a word:
//
//   for each group of columns of y, and each few rows of x:
//     x as the words want it, with sums of what a word meets       // direct_block_dot_x.c
//     for each few columns:
//       for each vector of words of their rows of w:
//         d = first + sum over the parts of a word of part * x's part
//         total += scale of the block * d
//       y = sum of the lanes of total
//
// Products that share x are one kernel, in which the columns of one follow those of the
// other. Ops behind them are made a vector of columns at a time        // direct_block_dot_y.c
//
// |first| is minus the zero point times the sum of x, so that a zero point that all weights
// share costs nothing.
//
// In bytes (accuracy 4, where the target has DOT4) a part is four bytes, each with one weight
// in its low bits, and x is bytes with a scale for each 32 of them. In f32 a part is one
// weight: its bits become the first ones of the fraction of 1 + w / 2^bits, which takes a
// shift and an and-or, no conversion; x is given 2^bits times, and what the 1 adds is taken
// away with |first|.
#include <stdio.h>

#include "codegen/direct/direct_block_dot.h"

enum {
  LEAST_PANEL = 64,
  TILES_FASTER = 8,  // than what is counted for products in f32
  F32_FRACTION = 23,
  // How far weights, in bytes, and scales are asked for ahead, where they are read once.
  WEIGHTS_AHEAD = 16384,
  SCALES_AHEAD = 2048,
  F32_ONE = 0x3f800000,
};

// --- A vector of words ---

// What is loaded for words |word| of column |c| on.
typedef struct vector_t {
  unsigned lanes;
  pk_t word;   // within the row
  pk_t block;  // of its first word, within the row
} vector_t;

static void prefetch(block_dot_t* b, const vector_t* v, uint32_t buffer,
                     pk_t at, int64_t ahead) {
  if (v->lanes < b->lanes || b->all_rows > MOST_ROWS) return;
  at = pestle_kir_madi(b->k, at, 1, number(b, ahead));
  pestle_kir_act(b->k, PESTLE_KIR_PREFETCH, buffer, at, PESTLE_KIR_PREFETCH_FAR,
                 0);
}

// A number for each of the blocks that the words are of, in their lanes, as f32.
static pk_t spread(block_dot_t* b, uint32_t buffer, pk_t column,
                   const vector_t* v) {
  uint32_t lanes_of[PESTLE_KIR_MAX_LANES];
  unsigned count = v->lanes / (unsigned)b->block_words;
  pk_t at = pestle_kir_madi(b->k, column, b->blocks, v->block);
  prefetch(b, v, buffer, at, SCALES_AHEAD);
  pk_t a =
      pestle_kir_load(b->k, buffer, count ? count : 1, at, PESTLE_KIR_NONE, 0);
  a = pestle_kir_cast(b->k, a, PESTLE_F32);
  if (count <= 1) return pestle_kir_splat(b->k, a, v->lanes);
  if (count == v->lanes) return a;
  for (unsigned i = 0; i < v->lanes; ++i)
    lanes_of[i] = i / (unsigned)b->block_words;
  return pestle_kir_shuffle(b->k, a, a, lanes_of, v->lanes);
}

static pk_t load_x(block_dot_t* b, uint32_t buffer, int64_t part, int64_t row,
                   const vector_t* v) {
  int64_t at = (part * b->most_rows + row) * b->words;
  pk_t index = pestle_kir_madi(b->k, v->word, 1, number(b, at));
  return pestle_kir_load(b->k, buffer, v->lanes, index, PESTLE_KIR_NONE, 0);
}

pk_t pestle_block_dot_part(block_dot_t* b, pk_t words, int64_t part) {
  unsigned lanes = pestle_kir_lanes_of(b->k, words);
  int64_t mask = (1 << b->bits) - 1, shift = part * b->bits;
  if (b->is_bytes) {
    if (b->bits == 8) return words;
    if (shift)
      words = pestle_kir_scalar(b->k, PESTLE_OP_SHIFT_RIGHT_LOGICAL, words,
                                word_number(b, lanes, shift), PESTLE_KIR_NONE);
    return pestle_kir_scalar(b->k, PESTLE_OP_AND, words,
                             word_number(b, lanes, mask * 0x01010101),
                             PESTLE_KIR_NONE);
  }
  int64_t left = F32_FRACTION - b->bits - shift;
  if (left)
    words = pestle_kir_scalar(
        b->k, left > 0 ? PESTLE_OP_SHIFT_LEFT : PESTLE_OP_SHIFT_RIGHT_LOGICAL,
        words, word_number(b, lanes, left > 0 ? left : -left), PESTLE_KIR_NONE);
  words = pestle_kir_scalar(
      b->k, PESTLE_OP_AND, words,
      word_number(b, lanes, mask << (F32_FRACTION - b->bits)), PESTLE_KIR_NONE);
  words = pestle_kir_scalar(b->k, PESTLE_OP_OR, words,
                            word_number(b, lanes, F32_ONE), PESTLE_KIR_NONE);
  return pestle_kir_bitcast(b->k, words, PESTLE_F32);
}

// The words of |v| of column |column| times each row of x, as f32, into |d|.
static void multiply(block_dot_t* b, pk_t column, const vector_t* v, pk_t* d) {
  pk_t at = pestle_kir_madi(
      b->k, v->word, WORD_BYTES,
      pestle_kir_madi(b->k, column, b->words * WORD_BYTES, number(b, 0)));
  pk_t words = pestle_kir_load_words(b->k, b->product->w, v->lanes, at);
  prefetch(b, v, b->product->w, at, WEIGHTS_AHEAD);
  for (int64_t m = 0; m < b->rows; ++m)
    d[m] = load_x(b, b->first, 0, m, v);
  for (int64_t part = 0; part < b->parts; ++part) {
    pk_t w = pestle_block_dot_part(b, words, part);
    for (int64_t m = 0; m < b->rows; ++m) {
      if (b->is_bytes) {
        int64_t x_at = (part * b->most_rows + m) * b->words * WORD_BYTES;
        pk_t index =
            pestle_kir_madi(b->k, v->word, WORD_BYTES, number(b, x_at));
        pk_t x = pestle_kir_load_words(b->k, b->xs, v->lanes, index);
        d[m] = pestle_kir_dot(b->k, w, x, d[m], PESTLE_KIR_DOT4_B_SIGNED);
      } else {
        d[m] = pestle_kir_scalar(b->k, PESTLE_OP_FMA, w,
                                 load_x(b, b->xs, part, m, v), d[m]);
      }
    }
  }
}

// The same with scales and zero points, added to the totals.
static void add_vector(block_dot_t* b, pk_t column, int64_t r,
                       const vector_t* v) {
  pk_t d[MOST_ROWS], scale = spread(b, b->product->scales, column, v);
  pk_t zero = b->has_zeros ? spread(b, b->product->zeros, column, v) : 0;
  if (b->has_zeros) {
    zero = pestle_kir_scalar(b->k, PESTLE_OP_NEGATE, zero, PESTLE_KIR_NONE,
                             PESTLE_KIR_NONE);
  }
  multiply(b, column, v, d);
  for (int64_t m = 0; m < b->rows; ++m) {
    pk_t value = d[m];
    if (b->is_bytes) {
      value = pestle_kir_cast(b->k, value, PESTLE_F32);
      value =
          pestle_kir_scalar(b->k, PESTLE_OP_MULTIPLY, value,
                            load_x(b, b->x_scales, 0, m, v), PESTLE_KIR_NONE);
    }
    if (b->has_zeros) {
      value = pestle_kir_scalar(b->k, PESTLE_OP_FMA, zero,
                                load_x(b, b->sums, 0, m, v), value);
    }
    pk_t index = number(b, r * b->most_rows + m);
    pk_t total =
        pestle_kir_load(b->k, b->total, b->lanes, index, PESTLE_KIR_NONE, 0);
    if (v->lanes < b->lanes) {
      value = pestle_kir_scalar(b->k, PESTLE_OP_MULTIPLY, scale, value,
                                PESTLE_KIR_NONE);
      value = widen(b, value);
      total =
          pestle_kir_scalar(b->k, PESTLE_OP_ADD, total, value, PESTLE_KIR_NONE);
    } else {
      total = pestle_kir_scalar(b->k, PESTLE_OP_FMA, scale, value, total);
    }
    pestle_kir_store(b->k, b->total, index, total, PESTLE_KIR_NONE, 0);
  }
}

// --- Columns ---

static void add_columns(block_dot_t* b, const pk_t* columns,
                        const vector_t* v) {
  for (int64_t r = 0; r < b->columns; ++r)
    add_vector(b, columns[r], r, v);
}

// Vectors of which each is of several blocks, or one, and what is left over.
static void add_short_blocks(block_dot_t* b, const pk_t* columns) {
  int64_t whole = b->words / b->lanes, at = whole * b->lanes;
  vector_t v = {.lanes = b->lanes};
  if (whole) {
    pk_t i = pestle_kir_repeat(b->k, "i", whole);
    v.word = pestle_kir_madi(b->k, i, b->lanes, number(b, 0));
    v.block = pestle_kir_madi(b->k, i, b->lanes / b->block_words, number(b, 0));
    add_columns(b, columns, &v);
    pestle_kir_end_repeat(b->k, whole);
  }
  for (unsigned lanes = b->lanes / 2; at < b->words; lanes /= 2) {
    if (at + lanes > b->words) continue;
    v = (vector_t){lanes, number(b, at), number(b, at / b->block_words)};
    add_columns(b, columns, &v);
    at += lanes;
  }
}

// Several vectors a block.
static void add_long_blocks(block_dot_t* b, const pk_t* columns) {
  int64_t count = b->block_words / b->lanes;
  vector_t v = {.lanes = b->lanes};
  v.block = pestle_kir_repeat(b->k, "block", b->blocks);
  pk_t i = pestle_kir_repeat(b->k, "i", count);
  pk_t first = pestle_kir_madi(b->k, v.block, b->block_words, number(b, 0));
  v.word = pestle_kir_madi(b->k, i, b->lanes, first);
  add_columns(b, columns, &v);
  pestle_kir_end_repeat(b->k, count);
  pestle_kir_end_repeat(b->k, b->blocks);
}

// Stores a total of row |m| and column |column|, number |r| of those that are made.
static void store_total(block_dot_t* b, pk_t total, int64_t m, pk_t column,
                        int64_t r, pk_t first, pk_t first_row) {
  if (b->piece->has_more) {
    pk_t at =
        pestle_kir_madi(b->k, first, 1, number(b, m * b->made_stride + r));
    pestle_kir_store(b->k, b->product->made, at, total, PESTLE_KIR_NONE, 0);
    return;
  }
  pk_t row = pestle_kir_madi(b->k, first_row, 1, number(b, m));
  pk_t at = pestle_kir_madi(b->k, row, b->piece->columns, column);
  total = pestle_kir_cast(b->k, total, b->dtype);
  pestle_kir_store(b->k, b->results[b->product->result], at, total,
                   PESTLE_KIR_NONE, 0);
}

void pestle_block_dot_columns(block_dot_t* b, pk_t first, int64_t count,
                              pk_t* columns) {
  for (int64_t c = 0; c < count; ++c) {
    columns[c] = pestle_kir_madi(b->k, first, 1, number(b, c));
    if (b->piece->has_tail)
      columns[c] = pestle_kir_scalar_i(b->k, PESTLE_OP_MINIMUM, columns[c],
                                       b->piece->columns - 1);
  }
}

// Elements [first_row, + rows) x [first + i, + columns) of y.
static void do_columns(block_dot_t* b, pk_t first, pk_t i, pk_t first_row) {
  pk_t columns[MOST_COLUMNS];
  pestle_block_dot_columns(b, pestle_kir_madi(b->k, first, 1, i), b->columns,
                           columns);
  b->total =
      pestle_kir_add_buffer(b->k, "total", PESTLE_KIR_PRIVATE, PESTLE_F32,
                            b->lanes, b->columns * b->most_rows, 0);
  pestle_kir_alloc(b->k, b->total);
  pk_t none = pestle_kir_float(b->k, PESTLE_F32, b->lanes, 0);
  for (int64_t t = 0; t < b->columns * b->most_rows; ++t)
    pestle_kir_store(b->k, b->total, number(b, t), none, PESTLE_KIR_NONE, 0);
  if (b->block_words > b->lanes)
    add_long_blocks(b, columns);
  else
    add_short_blocks(b, columns);
  for (int64_t r = 0; r < b->columns; ++r) {
    for (int64_t m = 0; m < b->rows; ++m) {
      pk_t total =
          pestle_kir_load(b->k, b->total, b->lanes,
                          number(b, r * b->most_rows + m), PESTLE_KIR_NONE, 0);
      total = pestle_kir_reduce(b->k, total, PESTLE_OP_ADD);
      store_total(b, total, m, columns[r], r, i, first_row);
    }
  }
}

// Columns [first, + lanes) of all products of the piece, and what follows.
static void do_vector(block_dot_t* b, unsigned piece, pk_t first,
                      pk_t first_row) {
  int64_t count = ((int64_t)b->lanes + b->columns - 1) / b->columns;
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->products[p].piece != piece) continue;
    b->product = &b->products[p];
    pk_t i = pestle_kir_repeat(b->k, "columns", count);
    i = pestle_kir_madi(b->k, i, b->columns, number(b, 0));
    do_columns(b, first, i, first_row);
    pestle_kir_end_repeat(b->k, count);
  }
  pestle_block_dot_finish(b, first, first_row);
}

bool pestle_block_dot_begin_piece(block_dot_t* b, unsigned piece,
                                  pk_t* out_group) {
  b->piece = &b->pieces[piece];
  bool is_alone = b->piece->groups == b->groups;
  int64_t end = b->piece->first_group + b->piece->groups;
  pk_t group = b->group;
  if (!is_alone) {
    pk_t from =
        pestle_kir_scalar_i(b->k, PESTLE_OP_GE, group, b->piece->first_group);
    pk_t to = pestle_kir_scalar_i(b->k, PESTLE_OP_LT, group, end);
    pestle_kir_if(b->k, pestle_kir_scalar(b->k, PESTLE_OP_AND, from, to,
                                          PESTLE_KIR_NONE));
    group = pestle_kir_madi(b->k, group, 1, number(b, -b->piece->first_group));
    group = pestle_direct_clamp(b->d, group, 0, b->piece->groups - 1);
  }
  *out_group = group;
  return !is_alone;
}

static void do_piece(block_dot_t* b, unsigned piece, pk_t first_row) {
  pk_t group;
  bool has_begun = pestle_block_dot_begin_piece(b, piece, &group);
  int64_t step = b->piece->has_more ? (int64_t)b->lanes : b->columns;
  int64_t count = b->piece->panel / step;
  pk_t i = pestle_kir_repeat(b->k, "columns", count);
  pk_t at = pestle_kir_madi(b->k, group, b->piece->panel, number(b, 0));
  at = pestle_kir_madi(b->k, i, step, at);
  b->product = &b->products[piece];
  if (b->piece->has_more)
    do_vector(b, piece, at, first_row);
  else
    do_columns(b, at, number(b, 0), first_row);
  pestle_kir_end_repeat(b->k, count);
  if (has_begun) pestle_kir_end(b->k);
}

static void do_rows(block_dot_t* b, pk_t first_row, int64_t rows) {
  b->rows = rows;
  pestle_block_dot_prepare(b, first_row);
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->products[p].piece == p) do_piece(b, p, first_row);
  }
}

static int64_t row_groups(const block_dot_t* b) {
  return b->chunk ? (b->all_rows + b->chunk - 1) / b->chunk : 1;
}

// Columns that are made at a time.
static int64_t step_of(const block_dot_t* b, const block_piece_t* piece) {
  return piece->has_more && !b->chunk ? (int64_t)b->lanes : b->columns;
}

static void cut(const block_dot_t* b, block_piece_t* piece, int64_t panel) {
  int64_t step = step_of(b, piece);
  piece->panel = (panel + step - 1) / step * step;
  piece->groups = (piece->columns + piece->panel - 1) / piece->panel;
  piece->has_tail =
      piece->groups * piece->panel != piece->columns || step % b->columns;
}

// Whether |groups| have a part of each piece, about as large as the others'.
static bool share_all(block_dot_t* b, int64_t groups) {
  enum { PART = 8 };  // of a piece, that there may be too much
  int64_t all = 0;
  for (unsigned p = 0; p < b->product_count; ++p) {
    block_piece_t* piece = &b->pieces[p];
    if (b->products[p].piece != p) continue;
    cut(b, piece, (piece->columns + groups - 1) / groups);
    int64_t more = groups * piece->panel - piece->columns;
    if (groups > 1 && more > piece->columns / PART) return false;
    all += piece->panel;
  }
  if (groups > 1 && all < LEAST_PANEL) return false;
  b->groups = groups;
  return true;
}

// A few groups a core; of many rows one, since each makes its own x.
static void choose_panels(block_dot_t* b, int64_t cores) {
  enum { GROUPS_A_CORE = 2 };
  int64_t wanted = cores ? cores : 1, all = 0;
  if (!b->chunk) wanted *= GROUPS_A_CORE;
  int64_t groups = (wanted + row_groups(b) - 1) / row_groups(b);
  if (share_all(b, groups)) return;
  for (unsigned p = 0; p < b->product_count; ++p)
    all += b->products[p].node->results[0].type->dims[b->rank - 1];
  for (unsigned p = 0; p < b->product_count; ++p) {
    block_piece_t* piece = &b->pieces[p];
    if (b->products[p].piece != p) continue;
    int64_t of = 0;
    for (unsigned i = 0; i < b->product_count; ++i)
      of += b->products[i].piece == p;
    int64_t least = piece->columns < LEAST_PANEL ? piece->columns : LEAST_PANEL;
    int64_t panel = (all + groups * of - 1) / (groups * of);
    cut(b, piece, panel < least ? least : panel);
    piece->first_group = b->groups;
    b->groups += piece->groups;
  }
}

static bool takes_bytes(const pestle_node_t* node,
                        const pestle_target_caps_t* caps) {
  bool any = !(caps->op_dtypes[PESTLE_KIR_DOT4] & pestle_dtype_bit(PESTLE_I8));
  return PESTLE_NODE_I64(node, accuracy) == 4 &&
         caps->op_dtypes[PESTLE_KIR_DOT4] != 0 &&
         (any || PESTLE_NODE_I64(node, bits) < 8);
}

static pestle_status_t make(pestle_direct_t* d, block_dot_t* b) {
  const pestle_node_t* node = pestle_direct_whole_of(d->node);
  const pestle_type_t *x = pestle_node_operand(node, 0)->type,
                      *scales = pestle_node_operand(node, 2)->type;
  *b = (block_dot_t){.d = d,
                     .k = d->k,
                     .dtype = x->dtype,
                     .rank = x->rank,
                     .bits = PESTLE_NODE_I64(node, bits),
                     .is_bytes = takes_bytes(node, d->caps),
                     .has_zeros = node->operand_count > 3,
                     .lanes = d->caps->vector_bytes / WORD_BYTES,
                     .depth = x->dims[x->rank - 1],
                     .all_rows = 1,
                     .columns = MOST_COLUMNS,
                     .blocks = scales->dims[1]};
  b->block = PESTLE_NODE_I64(node, block);
  b->block_words = b->block * b->bits / 32;
  b->words = b->blocks * b->block_words;
  b->word_weights = 32 / b->bits;
  if (b->lanes > MOST_LANES) b->lanes = MOST_LANES;
  for (int32_t i = 0; i + 1 < x->rank; ++i)
    b->all_rows *= x->dims[i];
  b->parts = b->is_bytes ? 8 / b->bits : b->word_weights;
  b->most_rows = b->all_rows < MOST_ROWS ? b->all_rows : MOST_ROWS;
  b->made_stride = (int64_t)b->lanes + MOST_COLUMNS;
  b->made_row = PESTLE_KIR_NONE;
  PESTLE_TRY(pestle_block_dot_read(b));
  b->is_tiles = pestle_block_dot_is_tiles(b, PESTLE_NODE_I64(node, accuracy));
  if (!b->is_tiles) (void)pestle_block_dot_is_panel(b);
  choose_panels(b, d->caps->cores);
  return NULL;
}

// A few rows of x at a time.
static void do_all_rows(block_dot_t* b) {
  int64_t whole = b->all_rows / b->most_rows, rest = b->all_rows % b->most_rows;
  pestle_block_dot_buffers(b);
  b->group = pestle_kir_for(b->k, "group", number(b, 0), number(b, b->groups),
                            1, PESTLE_KIR_GROUP_X);
  pk_t i = pestle_kir_repeat(b->k, "rows", whole);
  do_rows(b, pestle_kir_madi(b->k, i, b->most_rows, number(b, 0)),
          b->most_rows);
  pestle_kir_end_repeat(b->k, whole);
  if (rest) do_rows(b, number(b, whole * b->most_rows), rest);
  pestle_kir_end(b->k);
}

void pestle_block_dot_groups(block_dot_t* b,
                             void (*each)(block_dot_t* b, pk_t first_row,
                                          int64_t rows)) {
  int64_t whole = b->all_rows / b->chunk, rest = b->all_rows % b->chunk;
  bool both = whole && rest;
  pk_t all = pestle_kir_for(b->k, "group", number(b, 0),
                            number(b, b->groups * row_groups(b)), 1,
                            PESTLE_KIR_GROUP_X);
  pk_t turn = pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, all, b->groups);
  b->group = pestle_kir_scalar_i(b->k, PESTLE_OP_REMAINDER, all, b->groups);
  if (both) {
    pestle_kir_if(b->k, pestle_kir_scalar_i(b->k, PESTLE_OP_LT, turn, whole));
    turn = pestle_kir_scalar_i(b->k, PESTLE_OP_MINIMUM, turn, whole - 1);
  }
  if (whole)
    each(b, pestle_kir_madi(b->k, turn, b->chunk, number(b, 0)), b->chunk);
  if (both) pestle_kir_else(b->k);
  if (rest) each(b, number(b, whole * b->chunk), rest);
  if (both) pestle_kir_end(b->k);
  pestle_kir_end(b->k);
}

static int64_t bytes_of(const pestle_node_t* node, uint32_t operand) {
  const pestle_type_t* type = pestle_node_operand(node, operand)->type;
  return pestle_type_count(type) * (int64_t)pestle_dtype_size(type->dtype);
}

// For the choice of threads: what is computed, or what is read if that takes longer, as the
// weights of a few rows do, which come from memory.
static void count_steps(block_dot_t* b) {
  enum { RATE = 5, GHZ = 3, STEPS_NS = 4 };  // of a CPU whose rate is not known
  int64_t rate = b->d->caps->memory_rate, computed = 0, bytes = 0;
  for (unsigned p = 0; p < b->product_count; ++p) {
    const pestle_node_t* node = b->products[p].node;
    int64_t columns = b->pieces[b->products[p].piece].columns;
    computed += b->all_rows * columns * b->words / b->lanes * (b->parts + 2);
    for (uint32_t i = 1; i < node->operand_count; ++i)
      bytes += bytes_of(node, i);
  }
  if (b->is_tiles) computed /= TILES_FASTER;
  int64_t read = bytes * STEPS_NS / (GHZ * (rate ? rate : RATE));
  b->d->steps = (uint64_t)(computed > read ? computed : read);
}

pestle_status_t pestle_direct_block_dot(pestle_direct_t* d) {
  block_dot_t b;
  if (d->caps->flags & PESTLE_TARGET_LANES)
    return pestle_direct_block_dot_lanes(d);
  PESTLE_TRY(make(d, &b));
  if (!b.is_tiles)
    snprintf(d->how, sizeof d->how,
             "products in %s, weights unpacked for %s rows of x at once\n",
             b.is_bytes ? "bytes" : "f32", b.chunk ? "many" : "a few");
  if (b.is_tiles)
    pestle_block_dot_tiles(&b);
  else if (b.chunk)
    pestle_block_dot_panels(&b);
  else
    do_all_rows(&b);
  count_steps(&b);
  return NULL;
}
