// SPDX-License-Identifier: Apache-2.0
// Rows of x as the words of weights want them (direct_block_dot.c), in scratch: a part's
// numbers side by side for neighbouring words, and of each word the sum of what it meets.
//
// In bytes: x / scale rounded to even, the scale a 127th of the largest size of 32 numbers.
// What is smaller than 1e-30 there is 0. A NaN is in the scale.
#include "codegen/direct/direct_block_dot.h"

static pk_t op(block_dot_t* b, pestle_op_t o, pk_t x, pk_t y) {
  return pestle_kir_scalar(b->k, o, x, y, PESTLE_KIR_NONE);
}

static pk_t real(block_dot_t* b, unsigned lanes, double value) {
  return pestle_kir_float(b->k, PESTLE_F32, lanes, value);
}

pk_t widen(block_dot_t* b, pk_t a) {
  uint32_t lanes_of[MOST_LANES];
  unsigned lanes = pestle_kir_lanes_of(b->k, a);
  for (unsigned i = 0; i < b->lanes; ++i)
    lanes_of[i] = i < lanes ? i : lanes;
  return pestle_kir_shuffle(b->k, a, real(b, lanes, 0), lanes_of, b->lanes);
}

uint32_t pestle_block_dot_scratch(block_dot_t* b, const char* name,
                                  pestle_dtype_t dtype, int64_t count) {
  return pestle_kir_add_buffer(b->k, name, PESTLE_KIR_SHARED, dtype, 1, count,
                               0);
}

void pestle_block_dot_buffers(block_dot_t* b) {
  int64_t each = b->most_rows * b->words;
  bool bytes = b->is_bytes;
  b->xs = pestle_block_dot_scratch(b, "xs", bytes ? PESTLE_I8 : PESTLE_F32,
                                   b->parts * each * (bytes ? WORD_BYTES : 1));
  b->line = b->xs;
  if (b->parts > 1)
    b->line = pestle_block_dot_scratch(
        b, "line", bytes ? PESTLE_I8 : PESTLE_F32, b->words * b->word_weights);
  b->first = pestle_block_dot_scratch(b, "first",
                                      bytes ? PESTLE_I32 : PESTLE_F32, each);
  if (bytes)
    b->x_scales = pestle_block_dot_scratch(b, "x_scales", PESTLE_F32, each);
  if (b->has_zeros)
    b->sums = pestle_block_dot_scratch(b, "sums", PESTLE_F32, each);
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->pieces[b->products[p].piece].has_more)
      b->products[p].made = pestle_block_dot_scratch(
          b, "made", PESTLE_F32, b->most_rows * (b->lanes + MOST_COLUMNS));
  }
}

// The largest number of words up to |most| that a row has a whole number of.
static int64_t chunk_of(const block_dot_t* b, int64_t most) {
  int64_t chunk = b->words & -b->words;
  return chunk < most ? chunk : most;
}

static pk_t load_f32(block_dot_t* b, uint32_t buffer, pk_t index, pk_t mask) {
  pk_t a = pestle_kir_load(b->k, buffer, b->lanes, index, mask, 0);
  return pestle_kir_cast(b->k, a, PESTLE_F32);
}

static pk_t mask_of(block_dot_t* b, pk_t at, bool is_masked) {
  if (!is_masked) return PESTLE_KIR_NONE;
  return pestle_kir_mask(b->k, at, number(b, b->depth), b->lanes);
}

pk_t pestle_block_dot_line(block_dot_t* b, pk_t row, pk_t at, bool is_masked) {
  pk_t mask = mask_of(b, at, is_masked);
  pk_t index = pestle_kir_madi(b->k, row, b->depth, at);
  pk_t a = load_f32(b, b->x, index, mask);
  if (!b->norm) return a;
  a = op(b, PESTLE_OP_MULTIPLY, a, b->norm_rate);
  a = op(b, PESTLE_OP_MULTIPLY, a, load_f32(b, b->norm_scale, at, mask));
  return pestle_kir_cast(b->k, pestle_kir_cast(b->k, a, b->dtype), PESTLE_F32);
}

// --- The norm ---

static void add_squares(block_dot_t* b, pk_t row, uint32_t sums, pk_t v,
                        bool is_masked) {
  pk_t at = pestle_kir_madi(b->k, v, b->lanes, number(b, 0));
  pk_t index = pestle_kir_madi(b->k, row, b->depth, at);
  pk_t a = load_f32(b, b->x, index, mask_of(b, at, is_masked));
  pk_t sum = pestle_direct_get(b->d, sums);
  pestle_direct_set(b->d, sums,
                    pestle_kir_scalar(b->k, PESTLE_OP_FMA, a, a, sum));
}

pk_t pestle_block_dot_rate(block_dot_t* b, pk_t row) {
  int64_t whole = b->depth / b->lanes;
  uint32_t sums = pestle_direct_variable(b->d, "squares", PESTLE_F32, b->lanes);
  pestle_direct_set(b->d, sums, real(b, b->lanes, 0));
  if (whole) {
    pk_t v = pestle_kir_repeat(b->k, "v", whole);
    add_squares(b, row, sums, v, false);
    pestle_kir_end_repeat(b->k, whole);
  }
  if (b->depth % b->lanes) add_squares(b, row, sums, number(b, whole), true);
  pk_t sum =
      pestle_kir_reduce(b->k, pestle_direct_get(b->d, sums), PESTLE_OP_ADD);
  sum = op(b, PESTLE_OP_DIVIDE, sum, real(b, 1, (double)b->depth));
  sum =
      op(b, PESTLE_OP_ADD, sum, real(b, 1, PESTLE_NODE_F64(b->norm, epsilon)));
  return pestle_kir_splat(b->k, op(b, PESTLE_OP_RSQRT, sum, PESTLE_KIR_NONE),
                          b->lanes);
}

// --- Bytes ---

// The largest size in |x|, |vectors| of f32. Sizes are in the order of their bits, as whole
// numbers, and a NaN is behind all others.
static pk_t largest(block_dot_t* b, const pk_t* x, int64_t vectors) {
  pk_t most = 0, sign = word_number(b, b->lanes, INT32_MAX);
  for (int64_t v = 0; v < vectors; ++v) {
    pk_t a =
        op(b, PESTLE_OP_AND, pestle_kir_bitcast(b->k, x[v], PESTLE_I32), sign);
    most = v ? op(b, PESTLE_OP_MAXIMUM, most, a) : a;
  }
  most = pestle_kir_reduce(b->k, most, PESTLE_OP_MAXIMUM);
  return pestle_kir_bitcast(b->k, most, PESTLE_F32);
}

// Their sum of the bits of |vectors| such sums.
static pk_t sum_of(block_dot_t* b, const pk_t* bits, int64_t vectors) {
  pk_t sum = bits[0];
  for (int64_t v = 1; v < vectors; ++v)
    sum = op(b, PESTLE_OP_ADD, sum, bits[v]);
  sum = pestle_kir_reduce(b->k, sum, PESTLE_OP_ADD);
  uint32_t more =
      (uint32_t)vectors * (uint32_t)b->lanes * (uint32_t)BLOCK_DOT_WHOLE_BITS;
  return op(b, PESTLE_OP_SUBTRACT, sum, word_number(b, 1, (int32_t)more));
}

// The sum of a number up to 127 with BLOCK_DOT_WHOLE is rounded to even, and its last byte is
// the number's. That of the NaN of 0 times infinity is 0; where there is another, the scale
// is one.
pk_t pestle_block_dot_quantise(block_dot_t* b, pk_t row, int64_t first, pk_t q,
                               int64_t size, bool is_masked, pk_t* out_sum) {
  pk_t x[X_BLOCK], whole = real(b, b->lanes, BLOCK_DOT_WHOLE);
  int64_t vectors = size / b->lanes;
  for (int64_t v = 0; v < vectors; ++v) {
    pk_t at = pestle_kir_madi(b->k, q, size, number(b, v * b->lanes));
    x[v] = pestle_block_dot_line(b, row, at, is_masked);
  }
  pk_t most = largest(b, x, vectors);
  pk_t is_some = op(b, PESTLE_OP_GT, most, real(b, 1, 1e-30));
  pk_t rate = op(b, PESTLE_OP_DIVIDE, real(b, 1, 127), most);
  rate =
      pestle_kir_scalar(b->k, PESTLE_OP_SELECT, is_some, rate, real(b, 1, 0));
  rate = pestle_kir_splat(b->k, rate, b->lanes);
  for (int64_t v = 0; v < vectors; ++v) {
    pk_t a = op(b, PESTLE_OP_ADD, op(b, PESTLE_OP_MULTIPLY, x[v], rate), whole);
    x[v] = pestle_kir_bitcast(b->k, a, PESTLE_I32);
    a = pestle_kir_cast(b->k, x[v], PESTLE_I8);
    pk_t at = pestle_kir_madi(b->k, q, size, number(b, first + v * b->lanes));
    pestle_kir_store(b->k, b->line, at, a, PESTLE_KIR_NONE, 0);
  }
  if (out_sum) *out_sum = sum_of(b, x, vectors);
  return op(b, PESTLE_OP_MULTIPLY, most, real(b, 1, 1.0 / 127));
}

// The same of row |row|, which is row |m| here.
static void quantise(block_dot_t* b, pk_t row, int64_t m, pk_t q, int64_t size,
                     bool is_masked) {
  int64_t words = size / b->word_weights;
  int64_t first = b->parts == 1 ? m * b->words * WORD_BYTES : 0;
  pk_t scale =
      pestle_block_dot_quantise(b, row, first, q, size, is_masked, NULL);
  pk_t at = pestle_kir_madi(b->k, q, words, number(b, m * b->words));
  pestle_kir_store(b->k, b->x_scales, at,
                   pestle_kir_splat(b->k, scale, (unsigned)words),
                   PESTLE_KIR_NONE, 0);
}

// The bytes of |chunk| words from number |i| * |chunk| on, apart by their parts.
static void part_bytes(block_dot_t* b, int64_t m, pk_t i, int64_t chunk) {
  uint32_t lanes_of[PESTLE_KIR_MAX_LANES];
  int64_t bytes = chunk * WORD_BYTES, all = bytes * b->parts;
  pk_t from = pestle_kir_load(b->k, b->line, (unsigned)all,
                              pestle_kir_madi(b->k, i, all, number(b, 0)),
                              PESTLE_KIR_NONE, 0);
  for (int64_t part = 0; part < b->parts; ++part) {
    for (int64_t t = 0; t < bytes; ++t)
      lanes_of[t] = (uint32_t)(t * b->parts + part);
    pk_t a = pestle_kir_shuffle(b->k, from, from, lanes_of, (unsigned)bytes);
    int64_t first = (part * b->most_rows + m) * b->words * WORD_BYTES;
    pestle_kir_store(b->k, b->xs,
                     pestle_kir_madi(b->k, i, bytes, number(b, first)), a,
                     PESTLE_KIR_NONE, 0);
  }
}

// What |chunk| words from number |i| * |chunk| on meet, summed.
static void sum_bytes(block_dot_t* b, int64_t m, pk_t i, int64_t chunk) {
  unsigned lanes = (unsigned)chunk;
  pk_t sum = word_number(b, lanes, 0), ones = word_number(b, lanes, 0x01010101);
  for (int64_t part = 0; part < b->parts; ++part) {
    int64_t first = (part * b->most_rows + m) * b->words * WORD_BYTES;
    pk_t at = pestle_kir_madi(b->k, i, chunk * WORD_BYTES, number(b, first));
    pk_t x = pestle_kir_load_words(b->k, b->xs, lanes, at);
    sum = pestle_kir_dot(b->k, ones, x, sum, PESTLE_KIR_DOT4_B_SIGNED);
  }
  pk_t at = pestle_kir_madi(b->k, i, chunk, number(b, m * b->words));
  int64_t zero = b->has_zeros ? 0 : (int64_t)1 << (b->bits - 1);
  pk_t first = op(b, PESTLE_OP_MULTIPLY, sum, word_number(b, lanes, -zero));
  pestle_kir_store(b->k, b->first, at, first, PESTLE_KIR_NONE, 0);
  if (!b->has_zeros) return;
  pk_t scale =
      pestle_kir_load(b->k, b->x_scales, lanes, at, PESTLE_KIR_NONE, 0);
  sum = pestle_kir_cast(b->k, sum, PESTLE_F32);
  pestle_kir_store(b->k, b->sums, at, op(b, PESTLE_OP_MULTIPLY, sum, scale),
                   PESTLE_KIR_NONE, 0);
}

static void prepare_bytes(block_dot_t* b, pk_t row, int64_t m) {
  enum { CHUNK = 4 };
  int64_t size = b->block < X_BLOCK ? b->block : X_BLOCK;
  int64_t all = b->words * b->word_weights / size, whole = b->depth / size;
  int64_t chunk = chunk_of(b, CHUNK), chunks = b->words / chunk;
  if (whole) {
    pk_t q = pestle_kir_repeat(b->k, "q", whole);
    quantise(b, row, m, q, size, false);
    pestle_kir_end_repeat(b->k, whole);
  }
  if (all > whole) {
    pk_t q = pestle_kir_repeat(b->k, "q", all - whole);
    quantise(b, row, m, pestle_kir_madi(b->k, q, 1, number(b, whole)), size,
             true);
    pestle_kir_end_repeat(b->k, all - whole);
  }
  pk_t i = pestle_kir_repeat(b->k, "i", chunks);
  if (b->parts > 1) part_bytes(b, m, i, chunk);
  sum_bytes(b, m, i, chunk);
  pestle_kir_end_repeat(b->k, chunks);
}

// --- f32 ---

static void copy_line(block_dot_t* b, pk_t row, pk_t v, bool is_masked) {
  pk_t at = pestle_kir_madi(b->k, v, b->lanes, number(b, 0));
  pk_t factor = real(b, b->lanes, (double)(1 << b->bits));
  pk_t x = op(b, PESTLE_OP_MULTIPLY,
              pestle_block_dot_line(b, row, at, is_masked), factor);
  pestle_kir_store(b->k, b->line, at, x, PESTLE_KIR_NONE, 0);
}

static void part_line(block_dot_t* b, int64_t m, pk_t i, int64_t chunk) {
  unsigned lanes = (unsigned)chunk;
  pk_t at = pestle_kir_madi(b->k, i, chunk, number(b, 0));
  pk_t words = pestle_kir_iota(b->k, PESTLE_INDEX, lanes);
  words = op(b, PESTLE_OP_ADD, words, pestle_kir_splat(b->k, at, lanes));
  pk_t places = op(b, PESTLE_OP_MULTIPLY, words,
                   pestle_kir_int(b->k, PESTLE_INDEX, lanes, b->word_weights));
  pk_t sum = real(b, lanes, 0);
  for (int64_t part = 0; part < b->parts; ++part) {
    pk_t indices = op(b, PESTLE_OP_ADD, places,
                      pestle_kir_int(b->k, PESTLE_INDEX, lanes, part));
    pk_t x = pestle_kir_gather(b->k, b->line, indices, PESTLE_KIR_NONE);
    sum = op(b, PESTLE_OP_ADD, sum, x);
    int64_t first = (part * b->most_rows + m) * b->words;
    pestle_kir_store(b->k, b->xs,
                     pestle_kir_madi(b->k, i, chunk, number(b, first)), x,
                     PESTLE_KIR_NONE, 0);
  }
  at = pestle_kir_madi(b->k, i, chunk, number(b, m * b->words));
  double factor = b->has_zeros ? -1 : -1.5;
  pestle_kir_store(b->k, b->first, at,
                   op(b, PESTLE_OP_MULTIPLY, sum, real(b, lanes, factor)),
                   PESTLE_KIR_NONE, 0);
  if (!b->has_zeros) return;
  pk_t part = real(b, lanes, 1.0 / (double)(1 << b->bits));
  pestle_kir_store(b->k, b->sums, at, op(b, PESTLE_OP_MULTIPLY, sum, part),
                   PESTLE_KIR_NONE, 0);
}

static void prepare_floats(block_dot_t* b, pk_t row, int64_t m) {
  int64_t all = b->words * b->word_weights / b->lanes;
  int64_t whole = b->depth / b->lanes, chunk = chunk_of(b, b->lanes);
  if (whole) {
    pk_t v = pestle_kir_repeat(b->k, "v", whole);
    copy_line(b, row, v, false);
    pestle_kir_end_repeat(b->k, whole);
  }
  if (all > whole) {
    pk_t v = pestle_kir_repeat(b->k, "v", all - whole);
    copy_line(b, row, pestle_kir_madi(b->k, v, 1, number(b, whole)), true);
    pestle_kir_end_repeat(b->k, all - whole);
  }
  pk_t i = pestle_kir_repeat(b->k, "i", b->words / chunk);
  part_line(b, m, i, chunk);
  pestle_kir_end_repeat(b->k, b->words / chunk);
}

void pestle_block_dot_prepare(block_dot_t* b, pk_t first_row) {
  for (int64_t m = 0; m < b->rows; ++m) {
    pk_t row = pestle_kir_madi(b->k, first_row, 1, number(b, m));
    if (b->norm) b->norm_rate = pestle_block_dot_rate(b, row);
    if (b->is_bytes)
      prepare_bytes(b, row, m);
    else
      prepare_floats(b, row, m);
  }
}
