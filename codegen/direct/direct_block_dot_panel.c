// SPDX-License-Identifier: Apache-2.0
// Products in bytes of several rows of x on a CPU (direct_block_dot.c): weights are unpacked
// once for all rows, and a lane is a column of y.
//
//   for each group, of columns of y and a chunk of rows of x:
//     x as bytes in the order of the words' parts, with a scale and a sum for each unit
//     for each vector of columns:
//       w_words[word][part][column] = the part of the word of the column   // in L1
//       for each few rows:
//         for each unit:
//           d = first + sum over its words and parts of w_words * x, the same in all lanes
//           total += scale of the block * scale of x * d
//
// A unit is what has one scale of w and one of x: 32 numbers, or a block where that is
// shorter. The words of as many columns as a vector has lanes are transposed in registers.
// Sums over the lanes are not needed, and of the words, scales and shifts of a product of one
// row nothing is done more than once.
#include "codegen/direct/direct_block_dot.h"

enum {
  LEAST_ROWS = 2,
  // Whose totals and sums are registers, with so many vectors of columns: each x that is
  // spread over a vector is for both.
  TILE_ROWS = 4,
  MOST_ACROSS = 2,
  MOST_SUMS = TILE_ROWS * MOST_ACROSS,
  MOST_CHUNK = 64,  // rows of x in scratch
  TILE_LANES = 4,   // as many of the lanes of a 128-bit part are turned at once
  X_BYTES = 192 << 10,  // of a chunk, which stays in L2
  F32_BYTES = 4,
  LINE_BYTES = 64,
  PREFETCH_ROWS = 32,  // at most, where what is asked for comes just once
};

static pk_t op(block_dot_t* b, pestle_op_t o, pk_t x, pk_t y) {
  return pestle_kir_scalar(b->k, o, x, y, PESTLE_KIR_NONE);
}

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Bytes of a row of x and what lies beside it.
static int64_t row_bytes(const block_dot_t* b) {
  return b->words * b->word_weights + 3 * b->units * F32_BYTES +
         b->product_count * b->across * b->lanes * F32_BYTES;
}

bool pestle_block_dot_is_panel(block_dot_t* b) {
  int64_t lanes = b->lanes, tile = TILE_ROWS;
  b->across = b->lanes >= MOST_LANES ? 2 : 1;
  b->unit = smaller(b->block, X_BLOCK);
  b->unit_words = b->unit / b->word_weights;
  b->units = b->words / b->unit_words;
  if (!b->is_bytes || b->all_rows < LEAST_ROWS || b->words < lanes ||
      lanes < TILE_LANES || b->unit < lanes) {
    return false;
  }
  int64_t chunk = smaller(X_BYTES / row_bytes(b), MOST_CHUNK) / tile * tile;
  if (chunk < tile) chunk = tile;
  int64_t chunks = (b->all_rows + chunk - 1) / chunk;
  chunk = (b->all_rows + chunks - 1) / chunks;
  chunk = smaller((chunk + tile - 1) / tile * tile, b->all_rows);
  int64_t weights =
      (b->words * b->parts + 2 * b->blocks) * lanes * b->across * F32_BYTES;
  int64_t bytes =
      weights + (chunk + 1) * row_bytes(b) + b->words * b->word_weights;
  if (bytes > (int64_t)b->d->caps->scratch_bytes) return false;
  b->chunk = chunk;
  b->made_stride = lanes;
  b->columns = lanes * b->across;
  return true;
}

static void make_buffers(block_dot_t* b) {
  int64_t lanes = b->lanes * b->across, numbers = b->words * b->word_weights;
  int64_t each = b->chunk * b->units;
  b->xs = pestle_block_dot_scratch(b, "xs", PESTLE_I8, b->chunk * numbers);
  b->line = pestle_block_dot_scratch(b, "line", PESTLE_I8, numbers);
  b->x_scales = pestle_block_dot_scratch(b, "x_scales", PESTLE_F32, each);
  if (b->has_zeros)
    b->sums = pestle_block_dot_scratch(b, "sums", PESTLE_F32, each);
  else
    b->first = pestle_block_dot_scratch(b, "first", PESTLE_I32, each);
  b->w_words = pestle_block_dot_scratch(b, "w_words", PESTLE_I32,
                                        b->words * b->parts * lanes);
  b->w_scales =
      pestle_block_dot_scratch(b, "w_scales", PESTLE_F32, b->blocks * lanes);
  if (b->has_zeros)
    b->w_zeros =
        pestle_block_dot_scratch(b, "w_zeros", PESTLE_F32, b->blocks * lanes);
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->pieces[b->products[p].piece].has_more)
      b->products[p].made = pestle_block_dot_scratch(
          b, "made", PESTLE_F32, b->across * b->chunk * b->made_stride);
  }
}

// --- x ---

// |chunk| words from number |i| * |chunk| of the line on, into row |m|: of a word the bytes
// of its first part, then of the others.
static void put_words(block_dot_t* b, pk_t m, pk_t i, int64_t chunk) {
  uint32_t lanes_of[PESTLE_KIR_MAX_LANES];
  int64_t all = chunk * b->word_weights;
  pk_t at = pestle_kir_madi(b->k, i, all, number(b, 0));
  pk_t x =
      pestle_kir_load(b->k, b->line, (unsigned)all, at, PESTLE_KIR_NONE, 0);
  for (int64_t t = 0; t < all; ++t) {
    int64_t word = t / b->word_weights, within = t % b->word_weights;
    int64_t part = within / WORD_BYTES, byte = within % WORD_BYTES;
    lanes_of[t] = (uint32_t)(word * b->word_weights + byte * b->parts + part);
  }
  if (b->parts > 1) x = pestle_kir_shuffle(b->k, x, x, lanes_of, (unsigned)all);
  at = pestle_kir_madi(b->k, m, b->words * b->word_weights, at);
  pestle_kir_store(b->k, b->xs, at, x, PESTLE_KIR_NONE, 0);
}

// What unit |at| meets, whose numbers are |sum| together.
static void put_sum(block_dot_t* b, pk_t at, pk_t sum, pk_t scale) {
  if (b->has_zeros) {
    sum = op(b, PESTLE_OP_MULTIPLY, pestle_kir_cast(b->k, sum, PESTLE_F32),
             scale);
    pestle_kir_store(b->k, b->sums, at, sum, PESTLE_KIR_NONE, 0);
    return;
  }
  int64_t zero = (int64_t)1 << (b->bits - 1);
  sum = op(b, PESTLE_OP_MULTIPLY, sum, word_number(b, 1, -zero));
  pestle_kir_store(b->k, b->first, at, sum, PESTLE_KIR_NONE, 0);
}

static void put_unit(block_dot_t* b, pk_t row, pk_t m, pk_t q, bool is_masked) {
  pk_t sum, at = pestle_kir_madi(b->k, m, b->units, q);
  pk_t scale =
      pestle_block_dot_quantise(b, row, 0, q, b->unit, is_masked, &sum);
  pestle_kir_store(b->k, b->x_scales, at, scale, PESTLE_KIR_NONE, 0);
  put_sum(b, at, sum, scale);
}

// Row |m| of the chunk, which is row |row| of x.
static void put_row(block_dot_t* b, pk_t row, pk_t m) {
  enum { WORDS = 4 };
  int64_t whole = b->depth / b->unit;
  int64_t chunk = smaller(b->words & -b->words, WORDS);
  if (b->norm) b->norm_rate = pestle_block_dot_rate(b, row);
  if (whole) {
    pk_t q = pestle_kir_repeat(b->k, "q", whole);
    put_unit(b, row, m, q, false);
    pestle_kir_end_repeat(b->k, whole);
  }
  if (b->units > whole) {
    pk_t q = pestle_kir_repeat(b->k, "q", b->units - whole);
    put_unit(b, row, m, pestle_kir_madi(b->k, q, 1, number(b, whole)), true);
    pestle_kir_end_repeat(b->k, b->units - whole);
  }
  pk_t i = pestle_kir_repeat(b->k, "i", b->words / chunk);
  put_words(b, m, i, chunk);
  pestle_kir_end_repeat(b->k, b->words / chunk);
}

// --- Weights ---

// |rows|, as many vectors of four bytes a lane as they have lanes, become columns.
static void transpose(block_dot_t* b, pk_t* rows) {
  uint32_t low[MOST_LANES], high[MOST_LANES];
  pk_t to[MOST_LANES];
  unsigned lanes = b->lanes;
  // Of each 128 bits: neighbours of one lane, then pairs of these.
  for (unsigned width = 1; width < TILE_LANES; width *= 2) {
    for (unsigned i = 0; i < lanes; ++i) {
      unsigned tile = i / TILE_LANES * TILE_LANES, within = i % TILE_LANES;
      unsigned pair = within / (2 * width), rest = within % width;
      bool is_b = within / width % 2;
      low[i] = tile + pair * width + rest + (is_b ? lanes : 0);
      high[i] = low[i] + TILE_LANES / 2;
    }
    for (unsigned i = 0; i < lanes; ++i) {
      if (i / width % 2) continue;
      pk_t a = rows[i], c = rows[i + width];
      to[i] = pestle_kir_shuffle(b->k, a, c, low, lanes);
      to[i + width] = pestle_kir_shuffle(b->k, a, c, high, lanes);
    }
    for (unsigned i = 0; i < lanes; ++i)
      rows[i] = to[i];
  }
  // What lies in rows 1 and 2 of four is that of lanes 2 and 1.
  for (unsigned i = 0; i < lanes; i += TILE_LANES) {
    pk_t second = rows[i + 1];
    rows[i + 1] = rows[i + 2];
    rows[i + 2] = second;
  }
  // Whole tiles.
  for (unsigned width = TILE_LANES; width < lanes; width *= 2) {
    for (unsigned i = 0; i < lanes; ++i) {
      unsigned turn = i / width, rest = i % width;
      low[i] = turn / 2 * 2 * width + rest + (turn % 2 ? lanes : 0);
      high[i] = low[i] + width;
    }
    for (unsigned i = 0; i < lanes; ++i) {
      if (i / width % 2) continue;
      pk_t a = rows[i], c = rows[i + width];
      to[i] = pestle_kir_shuffle(b->k, a, c, low, lanes);
      to[i + width] = pestle_kir_shuffle(b->k, a, c, high, lanes);
    }
    for (unsigned i = 0; i < lanes; ++i)
      rows[i] = to[i];
  }
}

void pestle_block_dot_turn(block_dot_t* b, const pk_t* columns, pk_t at,
                           pk_t* w) {
  for (int64_t c = 0; c < (int64_t)b->lanes; ++c) {
    pk_t from = pestle_kir_madi(
        b->k, at, WORD_BYTES,
        pestle_kir_madi(b->k, columns[c], b->words * WORD_BYTES, number(b, 0)));
    w[c] = pestle_kir_load_words(b->k, b->product->w, b->lanes, from);
  }
  transpose(b, w);
}

// Words [at, + lanes) of |columns|.
static void put_weights(block_dot_t* b, const pk_t* columns, pk_t half,
                        pk_t at) {
  pk_t w[MOST_LANES];
  int64_t lanes = b->lanes;
  pestle_block_dot_turn(b, columns, at, w);
  for (int64_t i = 0; i < lanes; ++i) {
    for (int64_t part = 0; part < b->parts; ++part) {
      pk_t to = pestle_kir_madi(b->k, at, b->parts * lanes,
                                number(b, (i * b->parts + part) * lanes));
      to = pestle_kir_madi(b->k, half, b->words * b->parts * lanes, to);
      pestle_kir_store(b->k, b->w_words, to,
                       pestle_block_dot_part(b, w[i], part), PESTLE_KIR_NONE,
                       0);
    }
  }
}

// Numbers of blocks [at, + count) of |columns|, as f32.
static void put_blocks(block_dot_t* b, const pk_t* columns, uint32_t from,
                       uint32_t to, pk_t half, pk_t at, int64_t count) {
  pk_t x[MOST_LANES], mask = PESTLE_KIR_NONE;
  int64_t lanes = b->lanes;
  if (count < lanes)
    mask = pestle_kir_mask(b->k, at, number(b, b->blocks), b->lanes);
  for (int64_t c = 0; c < lanes; ++c) {
    pk_t index = pestle_kir_madi(b->k, columns[c], b->blocks, at);
    x[c] = pestle_kir_load(b->k, from, b->lanes, index, mask, 0);
    x[c] = pestle_kir_cast(b->k, x[c], PESTLE_F32);
  }
  transpose(b, x);
  for (int64_t i = 0; i < count; ++i) {
    pk_t index = pestle_kir_madi(b->k, at, lanes, number(b, i * lanes));
    index = pestle_kir_madi(b->k, half, b->blocks * lanes, index);
    pestle_kir_store(b->k, to, index, x[i], PESTLE_KIR_NONE, 0);
  }
}

void pestle_block_dot_blocks(block_dot_t* b, const pk_t* columns, uint32_t from,
                             uint32_t to, pk_t half) {
  int64_t lanes = b->lanes, whole = b->blocks / lanes;
  if (whole) {
    pk_t i = pestle_kir_repeat(b->k, "block", whole);
    put_blocks(b, columns, from, to, half,
               pestle_kir_madi(b->k, i, lanes, number(b, 0)), lanes);
    pestle_kir_end_repeat(b->k, whole);
  }
  if (b->blocks % lanes) {
    put_blocks(b, columns, from, to, half, number(b, whole * lanes),
               b->blocks % lanes);
  }
}

// Columns [first, + across * lanes).
static void put_columns(block_dot_t* b, pk_t first) {
  pk_t columns[MOST_LANES];
  int64_t lanes = b->lanes, whole = b->words / lanes;
  pk_t half = pestle_kir_repeat(b->k, "half", b->across);
  pestle_block_dot_columns(b, pestle_kir_madi(b->k, half, lanes, first), lanes,
                           columns);
  pk_t i = pestle_kir_repeat(b->k, "word", whole);
  put_weights(b, columns, half, pestle_kir_madi(b->k, i, lanes, number(b, 0)));
  pestle_kir_end_repeat(b->k, whole);
  if (b->words % lanes)
    put_weights(b, columns, half, number(b, b->words - lanes));
  pestle_block_dot_blocks(b, columns, b->product->scales, b->w_scales, half);
  if (b->has_zeros)
    pestle_block_dot_blocks(b, columns, b->product->zeros, b->w_zeros, half);
  pestle_kir_end_repeat(b->k, b->across);
}

// --- Rows ---

static pk_t load_all(block_dot_t* b, uint32_t buffer, pk_t at) {
  pk_t a = pestle_kir_load(b->k, buffer, 1, at, PESTLE_KIR_NONE, 0);
  return pestle_kir_splat(b->k, a, b->lanes);
}

// Unit |unit| of rows [m, + rows) and |across| vectors of columns into |d|. Of a few rows
// there are two sums each, since a sum waits for the one before.
static void multiply_unit(block_dot_t* b, pk_t m, pk_t unit, pk_t* d) {
  pk_t more[MOST_SUMS], w[MOST_ACROSS];
  int64_t lanes = b->lanes, words = b->unit_words * b->parts;
  int64_t sums = b->rows * b->across;
  bool has_more = 2 * b->rows <= TILE_ROWS && words > 1;
  for (int64_t i = 0; i < sums; ++i) {
    pk_t row = pestle_kir_madi(b->k, m, 1, number(b, i / b->across));
    d[i] =
        b->has_zeros ? word_number(b, b->lanes, 0)
        : i % b->across
            ? d[i - 1]
            : load_all(b, b->first, pestle_kir_madi(b->k, row, b->units, unit));
    more[i] = word_number(b, b->lanes, 0);
  }
  for (int64_t t = 0; t < words; ++t) {
    for (int64_t v = 0; v < b->across; ++v) {
      pk_t at =
          pestle_kir_madi(b->k, unit, words * lanes,
                          number(b, (v * b->words * b->parts + t) * lanes));
      w[v] =
          pestle_kir_load(b->k, b->w_words, b->lanes, at, PESTLE_KIR_NONE, 0);
    }
    for (int64_t r = 0; r < b->rows; ++r) {
      int64_t row = r * b->words * b->word_weights + t * WORD_BYTES;
      pk_t at =
          pestle_kir_madi(b->k, m, b->words * b->word_weights, number(b, row));
      at = pestle_kir_madi(b->k, unit, words * WORD_BYTES, at);
      pk_t x = pestle_kir_load_words(b->k, b->xs, 1, at);
      x = pestle_kir_splat(b->k, x, b->lanes);
      for (int64_t v = 0; v < b->across; ++v) {
        int64_t i = r * b->across + v;
        pk_t* sum = has_more && t % 2 ? &more[i] : &d[i];
        *sum = pestle_kir_dot(b->k, w[v], x, *sum, PESTLE_KIR_DOT4_B_SIGNED);
      }
    }
  }
  for (int64_t i = 0; i < sums && has_more; ++i)
    d[i] = op(b, PESTLE_OP_ADD, d[i], more[i]);
}

// Number |turn| of |turns| shares of rows [first, + columns) of |buffer|, a row of |count|
// elements.
static void prefetch(block_dot_t* b, uint32_t buffer, pk_t first, int64_t count,
                     pk_t turn, int64_t turns) {
  pestle_dtype_t dtype = (pestle_dtype_t)b->k->buffer.data[buffer].dtype;
  int64_t line = LINE_BYTES / (int64_t)pestle_dtype_size(dtype);
  int64_t share = b->columns * count / turns;
  pk_t at = pestle_kir_madi(b->k, first, count, number(b, b->columns * count));
  at = pestle_kir_madi(b->k, turn, share, at);
  for (int64_t i = 0; i < share; i += line) {
    pk_t to = pestle_kir_madi(b->k, at, 1, number(b, i));
    pestle_kir_act(b->k, PESTLE_KIR_PREFETCH, buffer, to,
                   PESTLE_KIR_PREFETCH_FAR, 0);
  }
}

// Asks for the weights of the next columns, which the kernel reads once: each unit of each
// tile for some of them.
static void prefetch_unit(block_dot_t* b, pk_t m, pk_t first, pk_t unit) {
  const block_product_t* p = b->product;
  int64_t tiles = (b->chunk + TILE_ROWS - 1) / TILE_ROWS;
  int64_t turns = tiles * b->units;
  if (b->all_rows > PREFETCH_ROWS) return;
  pk_t turn = pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, m, TILE_ROWS);
  turn = pestle_kir_madi(b->k, turn, b->units, unit);
  prefetch(b, p->w, first, b->words * WORD_BYTES, turn, turns);
  prefetch(b, p->scales, first, b->blocks, turn, turns);
  if (b->has_zeros) prefetch(b, p->zeros, first, b->blocks, turn, turns);
}

// Of vector |v| of columns: what |buffer| has for |block|.
static pk_t of_block(block_dot_t* b, uint32_t buffer, pk_t block, int64_t v) {
  pk_t at = pestle_kir_madi(b->k, block, b->lanes,
                            number(b, v * b->blocks * (int64_t)b->lanes));
  return pestle_kir_load(b->k, buffer, b->lanes, at, PESTLE_KIR_NONE, 0);
}

static void add_unit(block_dot_t* b, pk_t m, pk_t block, pk_t unit) {
  pk_t d[MOST_SUMS], scale[MOST_ACROSS], zero[MOST_ACROSS];
  multiply_unit(b, m, unit, d);
  for (int64_t v = 0; v < b->across; ++v) {
    scale[v] = of_block(b, b->w_scales, block, v);
    if (!b->has_zeros) continue;
    zero[v] = op(b, PESTLE_OP_NEGATE, of_block(b, b->w_zeros, block, v),
                 PESTLE_KIR_NONE);
  }
  for (int64_t i = 0; i < b->rows * b->across; ++i) {
    int64_t v = i % b->across;
    pk_t row = pestle_kir_madi(b->k, m, 1, number(b, i / b->across));
    pk_t at = pestle_kir_madi(b->k, row, b->units, unit);
    pk_t value = pestle_kir_cast(b->k, d[i], PESTLE_F32);
    value = op(b, PESTLE_OP_MULTIPLY, value, load_all(b, b->x_scales, at));
    if (b->has_zeros) {
      value = pestle_kir_scalar(b->k, PESTLE_OP_FMA, zero[v],
                                load_all(b, b->sums, at), value);
    }
    pk_t index = number(b, i);
    pk_t total =
        pestle_kir_load(b->k, b->total, b->lanes, index, PESTLE_KIR_NONE, 0);
    total = pestle_kir_scalar(b->k, PESTLE_OP_FMA, scale[v], value, total);
    pestle_kir_store(b->k, b->total, index, total, PESTLE_KIR_NONE, 0);
  }
}

// Sum |i| of a tile.
static void store_sum(block_dot_t* b, pk_t m, int64_t i, pk_t first,
                      pk_t first_row) {
  int64_t v = i % b->across;
  pk_t total = pestle_kir_load(b->k, b->total, b->lanes, number(b, i),
                               PESTLE_KIR_NONE, 0);
  pk_t row = pestle_kir_madi(b->k, m, 1, number(b, i / b->across));
  if (b->piece->has_more) {
    pk_t at = pestle_kir_madi(b->k, row, b->made_stride,
                              number(b, v * b->chunk * b->made_stride));
    pestle_kir_store(b->k, b->product->made, at, total, PESTLE_KIR_NONE, 0);
    return;
  }
  pk_t mask = PESTLE_KIR_NONE;
  first = pestle_kir_madi(b->k, first, 1, number(b, v * (int64_t)b->lanes));
  if (b->piece->has_tail)
    mask = pestle_kir_mask(b->k, first, number(b, b->piece->columns), b->lanes);
  row = op(b, PESTLE_OP_ADD, row, first_row);
  pk_t at = pestle_kir_madi(b->k, row, b->piece->columns, first);
  pestle_kir_store(b->k, b->results[b->product->result], at,
                   pestle_kir_cast(b->k, total, b->dtype), mask, 0);
}

// Rows [m, + rows) of the chunk, columns [first, + across * lanes).
static void do_tile(block_dot_t* b, pk_t m, pk_t first, pk_t first_row) {
  int64_t units = b->units / b->blocks, sums = b->rows * b->across;
  b->total = pestle_kir_add_buffer(b->k, "total", PESTLE_KIR_PRIVATE,
                                   PESTLE_F32, b->lanes, sums, 0);
  pestle_kir_alloc(b->k, b->total);
  pk_t none = pestle_kir_float(b->k, PESTLE_F32, b->lanes, 0);
  for (int64_t i = 0; i < sums; ++i)
    pestle_kir_store(b->k, b->total, number(b, i), none, PESTLE_KIR_NONE, 0);
  pk_t block = pestle_kir_repeat(b->k, "block", b->blocks);
  pk_t i = pestle_kir_repeat(b->k, "unit", units);
  i = pestle_kir_madi(b->k, block, units, i);
  prefetch_unit(b, m, first, i);
  add_unit(b, m, block, i);
  pestle_kir_end_repeat(b->k, units);
  pestle_kir_end_repeat(b->k, b->blocks);
  for (int64_t r = 0; r < sums; ++r)
    store_sum(b, m, r, first, first_row);
}

// Calls |each| for tiles of the |rows| rows of a chunk.
static void do_tiles(block_dot_t* b, int64_t rows, pk_t first, pk_t first_row,
                     void (*each)(block_dot_t*, pk_t, pk_t, pk_t)) {
  int64_t tile = smaller(TILE_ROWS, rows), whole = rows / tile;
  b->rows = tile;
  pk_t i = pestle_kir_repeat(b->k, "tile", whole);
  each(b, pestle_kir_madi(b->k, i, tile, number(b, 0)), first, first_row);
  pestle_kir_end_repeat(b->k, whole);
  b->rows = rows % tile;
  if (b->rows) each(b, number(b, whole * tile), first, first_row);
}

static void finish_tile(block_dot_t* b, pk_t m, pk_t first, pk_t first_row) {
  pk_t row = op(b, PESTLE_OP_ADD, first_row, m);
  for (int64_t v = 0; v < b->across; ++v) {
    b->made_row = pestle_kir_madi(b->k, m, 1, number(b, v * b->chunk));
    pestle_block_dot_finish(
        b, pestle_kir_madi(b->k, first, 1, number(b, v * (int64_t)b->lanes)),
        row);
  }
}

// --- Groups ---

static void do_vector(block_dot_t* b, unsigned piece, int64_t rows, pk_t first,
                      pk_t first_row) {
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->products[p].piece != piece) continue;
    b->product = &b->products[p];
    put_columns(b, first);
    do_tiles(b, rows, first, first_row, do_tile);
  }
  if (b->piece->has_more) do_tiles(b, rows, first, first_row, finish_tile);
}

// Rows [first_row, + rows).
static void do_chunk(block_dot_t* b, pk_t first_row, int64_t rows) {
  pk_t m = pestle_kir_repeat(b->k, "m", rows);
  put_row(b, op(b, PESTLE_OP_ADD, first_row, m), m);
  pestle_kir_end_repeat(b->k, rows);
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->products[p].piece != p) continue;
    pk_t group;
    bool has_begun = pestle_block_dot_begin_piece(b, p, &group);
    int64_t count = b->piece->panel / b->columns;
    pk_t i = pestle_kir_repeat(b->k, "columns", count);
    pk_t at = pestle_kir_madi(b->k, group, b->piece->panel, number(b, 0));
    do_vector(b, p, rows, pestle_kir_madi(b->k, i, b->columns, at), first_row);
    pestle_kir_end_repeat(b->k, count);
    if (has_begun) pestle_kir_end(b->k);
  }
}

void pestle_block_dot_panels(block_dot_t* b) {
  make_buffers(b);
  pestle_block_dot_groups(b, do_chunk);
}
