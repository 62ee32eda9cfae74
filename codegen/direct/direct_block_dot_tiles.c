// SPDX-License-Identifier: Apache-2.0
// Products of many rows of x by the matrix registers of one thread (direct_block_dot.c), where
// their accuracy allows bf16: x is rounded to it once, and so are weights, after they were
// multiplied by the scale of their block. So registers add up whole rows, and nothing is done
// between blocks.
//
//   for each group of rows of x and of columns of y:
//     its rows of x as bf16                                      // in the L2
//     for each 32 columns:
//       w_words[step][half][pair of weights][column] as bf16     // in the L1 or the L2
//       for each 32 rows:
//         for each step, 32 weights of a row:
//           2 x 2 registers of sums += rows of x * columns of w
//         sums to scratch
//       ops behind, a vector of columns of a row after the other
//
// A product's term is off by 2^-8 + 2^-18 of itself at most, where bytes of x (accuracy 4)
// may be off by 1/254 of the largest of 32 terms with the same weight.
#include <stdio.h>

#include "codegen/direct/direct_block_dot.h"

enum {
  SIDE = PESTLE_KIR_MREG_ROWS,
  TILE = 2 * SIDE,  // rows, and columns, whose sums are in registers
  STEP = 32,        // numbers of a row in a register
  PAIR = 2,         // of them in a word
  REGISTER_X = 4,   // behind the sums
  REGISTER_W = 6,
  FINISHED_ROWS = 4,  // at once
  LEAST_ACCURACY = 3,
  LEAST_ROWS = 64,  // of a group that shares them
  // Cycles of 32 columns and 32 weights of each, of kernels of 16 to 512 rows on Sapphire
  // Rapids. Matrix registers: to make the weights, and for each 16 rows; bytes: the same,
  // for each row.
  WEIGHTS_TILES = 170,
  SIDE_TILES = 110,
  WEIGHTS_BYTES = 30,
  ROW_BYTES = 11,
};

_Static_assert((int)SIDE == (int)MOST_LANES, "a vector is a register's row");

static pk_t op(block_dot_t* b, pestle_op_t o, pk_t x, pk_t y) {
  return pestle_kir_scalar(b->k, o, x, y, PESTLE_KIR_NONE);
}

static int64_t up_to(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

// --- Whether ---

static bool has_registers(const pestle_target_caps_t* caps) {
  for (uint32_t i = 0; i < caps->intrinsic_count; ++i) {
    const pestle_intrinsic_t* unit = &caps->intrinsic[i];
    if (unit->kind == PESTLE_INTRINSIC_MREG && unit->a == PESTLE_BF16)
      return true;
  }
  return false;
}

static bool pays(const block_dot_t* b) {
  int64_t sides = up_to(b->all_rows, SIDE) / SIDE;
  int tiles = (int)(WEIGHTS_TILES + sides * SIDE_TILES);
  int bytes = (int)(WEIGHTS_BYTES + b->all_rows * ROW_BYTES);
  snprintf(b->d->how, sizeof b->d->how,
           "matrix registers make tiles of %d x %d sums in bf16: of %d weights "
           "and columns about %d cycles, in bytes %d\n",
           TILE, TILE, STEP, tiles, bytes);
  return tiles < bytes;
}

// Rows of x that half the L2 holds; of several cores groups share rows too, as long as each
// has some: both the rows of x and the columns of w are made anew for each group.
static int64_t choose_rows(const block_dot_t* b) {
  const pestle_target_caps_t* caps = b->d->caps;
  int64_t bytes = (int64_t)(caps->l2_bytes ? caps->l2_bytes : 1 << 20) / 2;
  int64_t most = bytes / (PAIR * b->pitch) / TILE * TILE;
  if (most < TILE) most = TILE;
  int64_t groups = (b->all_rows + most - 1) / most;
  while (groups * groups < caps->cores &&
         b->all_rows / (2 * groups) >= LEAST_ROWS)
    groups *= 2;
  return up_to((b->all_rows + groups - 1) / groups, SIDE);
}

bool pestle_block_dot_is_tiles(block_dot_t* b, int64_t accuracy) {
  if (accuracy < LEAST_ACCURACY || !has_registers(b->d->caps) ||
      b->lanes != SIDE || b->words < SIDE || !pays(b)) {
    return false;
  }
  int64_t depth = b->words * b->word_weights;
  b->steps = (depth + STEP - 1) / STEP;
  b->pitch = (b->steps | 1) * STEP;  // rows do not fall into one set of a cache
  int64_t chunk = choose_rows(b), rows = up_to(chunk, TILE);
  int64_t bytes = (rows * b->pitch + b->steps * STEP * TILE) * PAIR +
                  (2 * b->blocks * SIDE + b->product_count * rows * TILE) *
                      (int64_t)sizeof(float);
  if (bytes > (int64_t)b->d->caps->scratch_bytes) return false;
  b->chunk = chunk;
  b->is_bytes = false;
  b->parts = b->word_weights;
  b->columns = TILE;
  b->made_stride = SIDE;
  return true;
}

static void make_buffers(block_dot_t* b) {
  int64_t rows = up_to(b->chunk, TILE);
  b->xs = pestle_block_dot_scratch(b, "xs", PESTLE_U16, rows * b->pitch);
  b->w_words = pestle_block_dot_scratch(b, "w_words", PESTLE_I32,
                                        b->steps * TILE * STEP / PAIR);
  b->w_scales =
      pestle_block_dot_scratch(b, "w_scales", PESTLE_F32, b->blocks * SIDE);
  if (b->has_zeros)
    b->w_zeros =
        pestle_block_dot_scratch(b, "w_zeros", PESTLE_F32, b->blocks * SIDE);
  for (unsigned p = 0; p < b->product_count; ++p)
    b->products[p].made =
        pestle_block_dot_scratch(b, "made", PESTLE_F32, TILE * rows);
}

// --- x ---

static void put_line(block_dot_t* b, pk_t row, pk_t m, pk_t v, bool is_masked) {
  pk_t at = pestle_kir_madi(b->k, v, b->lanes, number(b, 0));
  pk_t x = pestle_block_dot_line(b, row, at, is_masked);
  x = pestle_kir_bitcast(b->k, pestle_kir_cast(b->k, x, PESTLE_BF16),
                         PESTLE_U16);
  at = pestle_kir_madi(b->k, m, b->pitch, at);
  pestle_kir_store(b->k, b->xs, at, x, PESTLE_KIR_NONE, 0);
}

// Row |m| of the group's, which is row |row| of x; zeros behind it.
static void put_row(block_dot_t* b, pk_t row, pk_t m) {
  int64_t whole = b->depth / b->lanes, all = b->steps * STEP / b->lanes;
  if (b->norm) b->norm_rate = pestle_block_dot_rate(b, row);
  if (whole) {
    pk_t v = pestle_kir_repeat(b->k, "v", whole);
    put_line(b, row, m, v, false);
    pestle_kir_end_repeat(b->k, whole);
  }
  for (int64_t v = whole; v < all; ++v)
    put_line(b, row, m, number(b, v), true);
}

// --- Weights ---

// What is no number with a mantissa whose upper half says so: the sum that rounds it does
// not reach its sign.
static pk_t plain_nan(block_dot_t* b, pk_t x) {
  pk_t nan = pestle_kir_bitcast(b->k, word_number(b, b->lanes, 0x7fc00000),
                                PESTLE_F32);
  return pestle_kir_scalar(b->k, PESTLE_OP_SELECT, op(b, PESTLE_OP_EQ, x, x), x,
                           nan);
}

// What makes 1 + w / 2^bits the weight: times |factor| plus |more|.
typedef struct block_factors_t {
  pk_t factor, more;
} block_factors_t;

static block_factors_t factors_of(block_dot_t* b, pk_t block) {
  block_factors_t f;
  double whole = (double)((int64_t)1 << b->bits);
  pk_t at = pestle_kir_madi(b->k, block, b->lanes, number(b, 0));
  pk_t zero = pestle_kir_float(b->k, PESTLE_F32, b->lanes, -1.5 * whole);
  pk_t scale =
      pestle_kir_load(b->k, b->w_scales, b->lanes, at, PESTLE_KIR_NONE, 0);
  if (b->has_zeros) {
    zero = pestle_kir_load(b->k, b->w_zeros, b->lanes, at, PESTLE_KIR_NONE, 0);
    zero = op(b, PESTLE_OP_SUBTRACT,
              pestle_kir_float(b->k, PESTLE_F32, b->lanes, -whole), zero);
  }
  f.more = plain_nan(b, op(b, PESTLE_OP_MULTIPLY, scale, zero));
  f.factor = op(b, PESTLE_OP_MULTIPLY, scale,
                pestle_kir_float(b->k, PESTLE_F32, b->lanes, whole));
  f.factor = plain_nan(b, f.factor);
  return f;
}

// Part |part| of words as the bits of an f32 that are right when the lower half is cut off.
static pk_t weight_of(block_dot_t* b, pk_t words, int64_t part,
                      const block_factors_t* f) {
  enum { HALF = 0x8000 };
  pk_t w = pestle_kir_scalar(b->k, PESTLE_OP_FMA,
                             pestle_block_dot_part(b, words, part), f->factor,
                             f->more);
  return op(b, PESTLE_OP_ADD, pestle_kir_bitcast(b->k, w, PESTLE_I32),
            word_number(b, b->lanes, HALF));
}

static pk_t pair_of(block_dot_t* b, pk_t words, int64_t part,
                    const block_factors_t* f) {
  pk_t low = op(b, PESTLE_OP_SHIFT_RIGHT_LOGICAL, weight_of(b, words, part, f),
                word_number(b, b->lanes, 16));
  pk_t high = op(b, PESTLE_OP_AND, weight_of(b, words, part + 1, f),
                 word_number(b, b->lanes, INT32_MIN >> 15));
  return op(b, PESTLE_OP_OR, low, high);
}

// Where row |pair| of |half| of the columns is: 16 rows are a register, and those of the other
// half follow it.
static pk_t place_of(block_dot_t* b, pk_t half, int64_t pair) {
  int64_t row = pair / SIDE * TILE + pair % SIDE;
  return pestle_kir_madi(b->k, half, SIDE * SIDE, number(b, row * SIDE));
}

// Vector |v| of words from number |first| on, of |columns|.
static void put_words(block_dot_t* b, const pk_t* columns, pk_t v, pk_t half,
                      int64_t first) {
  pk_t w[MOST_LANES];
  block_factors_t f = {0};
  int64_t pairs = b->word_weights / PAIR, before = -1;
  pk_t at = pestle_kir_madi(b->k, v, SIDE, number(b, first));
  pk_t own = pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, at, b->block_words);
  pestle_block_dot_turn(b, columns, at, w);
  for (int64_t i = 0; i < SIDE; ++i) {
    int64_t block = (first + i) / b->block_words - first / b->block_words;
    if (block != before)
      f = factors_of(b, pestle_kir_madi(b->k, own, 1, number(b, block)));
    before = block;
    for (int64_t q = 0; q < pairs; ++q) {
      pk_t to = place_of(b, half, (first + i) * pairs + q);
      to = pestle_kir_madi(b->k, v, pairs * TILE * SIDE, to);
      pestle_kir_store(b->k, b->w_words, to, pair_of(b, w[i], q * PAIR, &f),
                       PESTLE_KIR_NONE, 0);
    }
  }
}

// The rows of the last step that no weights are of.
static void put_rest(block_dot_t* b, pk_t half) {
  int64_t all = b->steps * SIDE;
  for (int64_t p = b->words * b->word_weights / PAIR; p < all; ++p)
    pestle_kir_store(b->k, b->w_words, place_of(b, half, p),
                     word_number(b, b->lanes, 0), PESTLE_KIR_NONE, 0);
}

// Columns [first, + TILE).
static void put_columns(block_dot_t* b, pk_t first) {
  pk_t columns[MOST_LANES];
  int64_t whole = b->words / SIDE;
  pk_t half = pestle_kir_repeat(b->k, "half", TILE / SIDE);
  pestle_block_dot_columns(b, pestle_kir_madi(b->k, half, SIDE, first), SIDE,
                           columns);
  pestle_block_dot_blocks(b, columns, b->product->scales, b->w_scales,
                          number(b, 0));
  if (b->has_zeros)
    pestle_block_dot_blocks(b, columns, b->product->zeros, b->w_zeros,
                            number(b, 0));
  pk_t i = pestle_kir_repeat(b->k, "word", whole);
  put_words(b, columns, i, half, 0);
  pestle_kir_end_repeat(b->k, whole);
  if (b->words % SIDE)
    put_words(b, columns, number(b, 0), half, b->words - SIDE);
  put_rest(b, half);
  pestle_kir_end_repeat(b->k, TILE / SIDE);
}

// --- Sums ---

// Rows of x are read again after all others.
static void add_step(block_dot_t* b, pk_t m, pk_t s, int64_t down) {
  enum { ACROSS = TILE / SIDE };
  for (int64_t i = 0; i < down; ++i) {
    pk_t at =
        pestle_kir_madi(b->k, m, b->pitch, number(b, i * SIDE * b->pitch));
    at = pestle_kir_madi(b->k, s, STEP, at);
    pestle_kir_act(b->k, PESTLE_KIR_MREG_STREAM, b->xs, at, (uint32_t)b->pitch,
                   (uint32_t)(REGISTER_X + i));
    for (int64_t j = 0; j < ACROSS; ++j) {
      if (i == 0) {
        at = pestle_kir_madi(b->k, s, TILE * SIDE, number(b, j * SIDE * SIDE));
        pestle_kir_act(b->k, PESTLE_KIR_MREG_LOAD, b->w_words, at, SIDE,
                       (uint32_t)(REGISTER_W + j));
      }
      pestle_kir_act(b->k, PESTLE_KIR_MREG_MMA, (uint32_t)(ACROSS * i + j),
                     (uint32_t)(REGISTER_X + i), (uint32_t)(REGISTER_W + j),
                     PESTLE_KIR_MREG_BF16);
    }
  }
}

// |down| registers of rows from |m| on.
static void do_tile(block_dot_t* b, pk_t m, int64_t down) {
  enum { ACROSS = TILE / SIDE };
  int64_t rows = up_to(b->chunk, TILE);
  for (int64_t r = 0; r < ACROSS * down; ++r)
    pestle_kir_act(b->k, PESTLE_KIR_MREG_ZERO, (uint32_t)r, 0, 0, 0);
  pk_t s = pestle_kir_repeat(b->k, "step", b->steps);
  add_step(b, m, s, down);
  pestle_kir_end_repeat(b->k, b->steps);
  for (int64_t r = 0; r < ACROSS * down; ++r) {
    int64_t from = (r % ACROSS * rows + r / ACROSS * SIDE) * SIDE;
    pk_t at = pestle_kir_madi(b->k, m, SIDE, number(b, from));
    pestle_kir_act(b->k, PESTLE_KIR_MREG_STORE, b->product->made, at, SIDE,
                   (uint32_t)r);
  }
}

static void do_tiles(block_dot_t* b, int64_t rows) {
  int64_t whole = rows / TILE, rest = rows % TILE;
  if (whole) {
    pk_t i = pestle_kir_repeat(b->k, "tile", whole);
    do_tile(b, pestle_kir_madi(b->k, i, TILE, number(b, 0)), TILE / SIDE);
    pestle_kir_end_repeat(b->k, whole);
  }
  if (rest) do_tile(b, number(b, whole * TILE), (rest + SIDE - 1) / SIDE);
}

// --- Results ---

static void store_sums(block_dot_t* b, pk_t first, pk_t first_row) {
  pk_t mask = PESTLE_KIR_NONE;
  if (b->piece->has_tail)
    mask = pestle_kir_mask(b->k, first, number(b, b->piece->columns), b->lanes);
  for (int64_t r = 0; r < b->rows; ++r) {
    pk_t at = pestle_kir_madi(b->k, b->made_row, SIDE, number(b, r * SIDE));
    pk_t sums = pestle_kir_load(b->k, b->product->made, b->lanes, at,
                                PESTLE_KIR_NONE, 0);
    pk_t row = pestle_kir_madi(b->k, first_row, 1, number(b, r));
    at = pestle_kir_madi(b->k, row, b->piece->columns, first);
    pestle_kir_store(b->k, b->results[b->product->result], at,
                     pestle_kir_cast(b->k, sums, b->dtype), mask, 0);
  }
}

// Rows [m, + rows) of the group, columns [first, + TILE).
static void finish_rows(block_dot_t* b, pk_t m, pk_t first, pk_t first_row) {
  int64_t stride = up_to(b->chunk, TILE);
  for (int64_t half = 0; half < TILE / SIDE; ++half) {
    pk_t column = pestle_kir_madi(b->k, first, 1, number(b, half * SIDE));
    pk_t row = op(b, PESTLE_OP_ADD, first_row, m);
    b->made_row = pestle_kir_madi(b->k, m, 1, number(b, half * stride));
    if (b->piece->has_more)
      pestle_block_dot_finish(b, column, row);
    else
      store_sums(b, column, row);
  }
}

static void finish(block_dot_t* b, int64_t rows, pk_t first, pk_t first_row) {
  int64_t whole = rows / FINISHED_ROWS;
  b->rows = FINISHED_ROWS;
  if (whole) {
    pk_t i = pestle_kir_repeat(b->k, "m", whole);
    finish_rows(b, pestle_kir_madi(b->k, i, FINISHED_ROWS, number(b, 0)), first,
                first_row);
    pestle_kir_end_repeat(b->k, whole);
  }
  b->rows = rows % FINISHED_ROWS;
  if (b->rows)
    finish_rows(b, number(b, whole * FINISHED_ROWS), first, first_row);
}

// --- Groups ---

static void do_piece(block_dot_t* b, unsigned piece, int64_t rows,
                     pk_t first_row) {
  pk_t group;
  bool has_begun = pestle_block_dot_begin_piece(b, piece, &group);
  int64_t count = b->piece->panel / TILE;
  pk_t i = pestle_kir_repeat(b->k, "columns", count);
  pk_t first = pestle_kir_madi(b->k, group, b->piece->panel, number(b, 0));
  first = pestle_kir_madi(b->k, i, TILE, first);
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->products[p].piece != piece) continue;
    b->product = &b->products[p];
    put_columns(b, first);
    do_tiles(b, rows);
  }
  finish(b, rows, first, first_row);
  pestle_kir_end_repeat(b->k, count);
  if (has_begun) pestle_kir_end(b->k);
}

// Rows [first_row, + rows).
static void do_rows(block_dot_t* b, pk_t first_row, int64_t rows) {
  pk_t m = pestle_kir_repeat(b->k, "row", rows);
  put_row(b, op(b, PESTLE_OP_ADD, first_row, m), m);
  pestle_kir_end_repeat(b->k, rows);
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->products[p].piece == p) do_piece(b, p, rows, first_row);
  }
}

void pestle_block_dot_tiles(block_dot_t* b) {
  make_buffers(b);
  pestle_block_dot_groups(b, do_rows);
}
