// SPDX-License-Identifier: Apache-2.0
// Products of two boxes in shared memory, into sums in registers: by fragments
// of a subgroup's matrix units, or by vectors of each lane.
#include "codegen/template/shared_tile/emit.h"

static uint32_t add_private(shared_emit_t* t, const char* name,
                            pestle_dtype_t dtype, int64_t lanes,
                            int64_t count) {
  return pestle_kir_add_buffer(t->k, name, PESTLE_KIR_PRIVATE, dtype,
                               (unsigned)lanes, count, 0);
}

static void clear_sums(shared_emit_t* t, int64_t count, unsigned lanes) {
  pestle_kir_alloc(t->k, t->sums);
  pestle_kir_id_t i = pestle_kir_unroll(t->k, "i", count);
  pestle_kir_store(t->k, t->sums, i,
                   pestle_kir_const(t->k, t->p.sums, lanes, 0, 0),
                   PESTLE_KIR_NONE, 0);
  pestle_kir_end(t->k);
}

// --- By matrix units ---

// Elements of k of a row of LDMATRIX.
static int64_t matrix_taps(const shared_box_t* box) {
  return 16 / (int64_t)pestle_dtype_size(box->side->dtype);
}

// LDMATRIX turns elements of two bytes alone: a lane puts other words together itself.
static bool joins_words(const shared_box_t* box) {
  return !box->by_rows && pestle_dtype_size(box->side->dtype) != 2;
}

// Elements of k of a word.
static int64_t word_taps(const shared_box_t* box) {
  return 4 / (int64_t)pestle_dtype_size(box->side->dtype);
}

// Where lane |in| of a subgroup points: for LDMATRIX rows of 16 bytes, along elements of
// k (|by_rows|) or across them. Of a, matrices are two of rows, then of k; of b two of
// k, then of columns. Else the lane's first element.
pestle_kir_id_t pestle_shared_tile_fragment_at(shared_emit_t* t,
                                               const shared_box_t* box,
                                               pestle_kir_id_t in, bool is_a,
                                               pestle_kir_id_t first) {
  pestle_kir_id_t low = pestle_kir_scalar_i(t->k, PESTLE_OP_REMAINDER, in, 8);
  pestle_kir_id_t half = pestle_kir_scalar_i(t->k, PESTLE_OP_DIVIDE, in, 8);
  pestle_kir_id_t second = pestle_kir_scalar_i(t->k, PESTLE_OP_DIVIDE, in, 16);
  half = pestle_kir_scalar_i(t->k, PESTLE_OP_REMAINDER, half, 2);
  int64_t row = box->by_rows ? box->pitch : 1;
  int64_t tap = box->by_rows ? 1 : box->pitch;
  bool one = !is_a && t->t->c == 8;  // column of fragments
  pestle_kir_id_t at =
      pestle_kir_madi(t->k, first, row, pestle_kir_index(t->k, 0));
  if (joins_words(box)) {
    low = pestle_kir_scalar_i(t->k, PESTLE_OP_REMAINDER, in, 4);
    at = pestle_kir_madi(t->k, low, word_taps(box) * tap, at);
    low = pestle_kir_scalar_i(t->k, PESTLE_OP_DIVIDE, in, 4);
    return pestle_kir_madi(t->k, low, row, at);
  }
  int64_t down = 8 * row, deep = matrix_taps(box) * tap;
  at = pestle_kir_madi(t->k, low, box->by_rows ? row : tap, at);
  at = pestle_kir_madi(t->k, half, is_a ? down : deep, at);
  if (one) return at;
  return pestle_kir_madi(t->k, second, is_a ? deep : down, at);
}

// Four bytes of elements of k from |at| on, the first in the lowest one.
static pestle_kir_id_t join_word(shared_emit_t* t, const shared_box_t* box,
                                 pestle_kir_id_t at) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t word = PESTLE_KIR_NONE;
  if (word_taps(box) == 1) {
    word = pestle_kir_load(k, box->buffer, 1, at, PESTLE_KIR_NONE, 0);
    return pestle_kir_bitcast(k, word, PESTLE_U32);
  }
  pestle_kir_id_t low = pestle_kir_const(k, PESTLE_U32, 1, 0, 0xff);
  for (int64_t e = 0; e < 4; ++e) {
    pestle_kir_id_t from =
        pestle_kir_madi(k, at, 1, pestle_kir_index(k, e * box->pitch));
    pestle_kir_id_t byte =
        pestle_kir_load(k, box->buffer, 1, from, PESTLE_KIR_NONE, 0);
    if (t->p.sums == PESTLE_F32) byte = pestle_kir_bitcast(k, byte, PESTLE_U8);
    byte = pestle_kir_cast(k, byte, PESTLE_U32);
    if (box->side->dtype == PESTLE_I8 && e < 3) {
      byte = pestle_kir_scalar(k, PESTLE_OP_AND, byte, low, PESTLE_KIR_NONE);
    }
    if (e) {
      pestle_kir_id_t shift = pestle_kir_const(k, PESTLE_U32, 1, 0, 8 * e);
      byte = pestle_kir_scalar(k, PESTLE_OP_SHIFT_LEFT, byte, shift,
                               PESTLE_KIR_NONE);
    }
    word = e ? pestle_kir_scalar(k, PESTLE_OP_OR, word, byte, PESTLE_KIR_NONE)
             : byte;
  }
  return word;
}

// The |words| of a fragment, of a or of b, whose first element is at |at|.
static pestle_kir_id_t join_fragment(shared_emit_t* t, const shared_box_t* box,
                                     pestle_kir_id_t at, unsigned words) {
  static const uint32_t lanes[4] = {0, 1, 2, 3};
  pestle_kir_builder_t* k = t->k;
  int64_t deep = matrix_taps(box) * box->pitch;
  bool is_a = box == &t->a;
  pestle_kir_id_t pair[2], word[2];
  for (unsigned p = 0; p < words / 2 && p < 2; ++p) {
    for (unsigned w = 0; w < 2; ++w) {
      int64_t offset = is_a ? 8 * w + deep * p : deep * w + 8 * p;
      word[w] = join_word(
          t, box, pestle_kir_madi(k, at, 1, pestle_kir_index(k, offset)));
    }
    pair[p] = pestle_kir_shuffle(k, word[0], word[1], lanes, 2);
  }
  if (words == 2) return pair[0];
  return pestle_kir_shuffle(k, pair[0], pair[1], lanes, 4);
}

// A lane's number in its subgroup, and where the part of the tile begins that
// this one makes.
typedef struct seat_t {
  pestle_kir_id_t in, row, column;
} seat_t;

static seat_t find_seat(const shared_emit_t* t) {
  pestle_kir_builder_t* k = t->k;
  int64_t across = t->t->n / t->t->c;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t subgroup =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, t->lane, 32);
  seat_t seat;
  seat.in = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, t->lane, 32);
  pestle_kir_id_t down =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, subgroup, across);
  pestle_kir_id_t right =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, subgroup, across);
  seat.row = pestle_kir_madi(k, down, t->t->r, zero);
  seat.column = pestle_kir_madi(k, right, t->t->c, zero);
  return seat;
}

static void start_units(shared_emit_t* t) {
  pestle_kir_builder_t* k = t->k;
  seat_t seat = find_seat(t);
  t->from_a = pestle_shared_tile_fragment_at(t, &t->a, seat.in, true, seat.row);
  t->from_b =
      pestle_shared_tile_fragment_at(t, &t->b, seat.in, false, seat.column);
  // What a lane has of its subgroup's sums begins here.
  t->row = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, seat.in, 4);
  t->row = pestle_kir_madi(k, t->row, 1, seat.row);
  t->column = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, seat.in, 4);
  t->column = pestle_kir_madi(k, t->column, 2, seat.column);
  int64_t fragments = t->t->r / 16 * (t->t->c / 8);
  t->sums = add_private(t, "sums", t->p.sums, 4, fragments);
  t->fragment_a = add_private(t, "part_a", PESTLE_U32, 4, t->t->r / 16);
  t->fragment_b = add_private(t, "part_b", PESTLE_U32, t->t->c == 8 ? 2 : 4,
                              t->t->c == 8 ? 1 : t->t->c / 16);
  clear_sums(t, fragments, 4);
}

// Fragments of step |u| of the slot, of |count| times 16 rows or columns.
void pestle_shared_tile_load_fragments(shared_emit_t* t,
                                       const shared_box_t* box, uint32_t to,
                                       int64_t count, pestle_kir_id_t from,
                                       pestle_kir_id_t u) {
  pestle_kir_builder_t* k = t->k;
  int64_t row = box->by_rows ? box->pitch : 1;
  int64_t tap = box->by_rows ? 1 : box->pitch;
  pestle_kir_alloc(k, to);
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", count);
  pestle_kir_id_t at = pestle_kir_madi(k, u, 2 * matrix_taps(box) * tap, from);
  at = pestle_kir_madi(k, i, 16 * row, at);
  unsigned words = k->failed ? 2 : k->buffer.data[to].lanes;
  pestle_kir_id_t value =
      joins_words(box)
          ? join_fragment(t, box, at, words)
          : pestle_kir_put(k, (pestle_kir_inst_t){
                                  .op = PESTLE_KIR_LDMATRIX,
                                  .type = PESTLE_U32,
                                  .lanes = (uint8_t)words,
                                  .arg = {box->buffer, at, !box->by_rows}});
  pestle_kir_store(k, to, i, value, PESTLE_KIR_NONE, 0);
  pestle_kir_end(k);
}

// The immediate of MMA.
static uint32_t product_of(const shared_emit_t* t) {
  const pestle_dtype_t a = t->a.side->dtype, b = t->b.side->dtype;
  if (t->p.sums == PESTLE_F32) {
    if (a == PESTLE_F32) return PESTLE_KIR_MMA_TF32;
    if (a == PESTLE_F16 || a == PESTLE_BF16)
      return a == PESTLE_F16 ? PESTLE_KIR_MMA_F16 : PESTLE_KIR_MMA_BF16;
    return PESTLE_KIR_MMA_F8 |
           (a == PESTLE_F8E5M2 ? (uint32_t)PESTLE_KIR_MMA_A_E5M2 : 0u) |
           (b == PESTLE_F8E5M2 ? (uint32_t)PESTLE_KIR_MMA_B_E5M2 : 0u);
  }
  return PESTLE_KIR_MMA_BYTES |
         (a == PESTLE_I8 ? (uint32_t)PESTLE_KIR_DOT4_A_SIGNED : 0u) |
         (b == PESTLE_I8 ? (uint32_t)PESTLE_KIR_DOT4_B_SIGNED : 0u);
}

// |sum| and the product of two fragments. Units cut sums of 8-bit floats short: those of
// one product are added up in registers.
static pestle_kir_id_t add_fragments(shared_emit_t* t, pestle_kir_id_t a,
                                     pestle_kir_id_t b, pestle_kir_id_t sum) {
  pestle_kir_builder_t* k = t->k;
  uint32_t product = product_of(t);
  bool apart = product >= PESTLE_KIR_MMA_F8 && !t->e->nest->is_fast;
  pestle_kir_id_t from = apart ? pestle_kir_const(k, t->p.sums, 4, 0, 0) : sum;
  pestle_kir_id_t made =
      pestle_kir_put(k, (pestle_kir_inst_t){.op = PESTLE_KIR_MMA,
                                            .type = (uint8_t)t->p.sums,
                                            .lanes = 4,
                                            .arg = {a, b, from, product}});
  return apart ? pestle_kir_scalar(k, PESTLE_OP_ADD, sum, made, PESTLE_KIR_NONE)
               : made;
}

static void multiply_fragments(shared_emit_t* t, pestle_kir_id_t i,
                               pestle_kir_id_t j) {
  static const uint32_t halves[2][2] = {{0, 1}, {2, 3}};
  pestle_kir_builder_t* k = t->k;
  unsigned pieces = t->t->c == 8 ? 1 : 2;
  int64_t columns = t->t->c / 8;
  pestle_kir_id_t a =
      pestle_kir_load(k, t->fragment_a, 4, i, PESTLE_KIR_NONE, 0);
  pestle_kir_id_t b =
      pestle_kir_load(k, t->fragment_b, 2 * pieces, j, PESTLE_KIR_NONE, 0);
  for (unsigned h = 0; h < pieces; ++h) {
    pestle_kir_id_t half =
        pieces == 1 ? b : pestle_kir_shuffle(k, b, b, halves[h], 2);
    pestle_kir_id_t at = pestle_kir_madi(k, j, pieces, pestle_kir_index(k, h));
    at = pestle_kir_madi(k, i, columns, at);
    pestle_kir_id_t sum =
        pestle_kir_load(k, t->sums, 4, at, PESTLE_KIR_NONE, 0);
    sum = add_fragments(t, a, half, sum);
    pestle_kir_store(k, t->sums, at, sum, PESTLE_KIR_NONE, 0);
  }
}

static void multiply_by_units(shared_emit_t* t, pestle_kir_id_t slot) {
  int64_t rows = t->t->r / 16, columns = t->t->c == 8 ? 1 : t->t->c / 16;
  pestle_kir_id_t a = pestle_kir_madi(t->k, slot, t->a.slot, t->from_a);
  pestle_kir_id_t b = pestle_kir_madi(t->k, slot, t->b.slot, t->from_b);
  pestle_kir_id_t u =
      pestle_kir_unroll(t->k, "u", t->t->k / (2 * matrix_taps(&t->a)));
  pestle_shared_tile_load_fragments(t, &t->a, t->fragment_a, rows, a, u);
  pestle_shared_tile_load_fragments(t, &t->b, t->fragment_b, columns, b, u);
  pestle_kir_id_t i = pestle_kir_unroll(t->k, "i", rows);
  pestle_kir_id_t j = pestle_kir_unroll(t->k, "j", columns);
  multiply_fragments(t, i, j);
  pestle_kir_end(t->k);
  pestle_kir_end(t->k);
  pestle_kir_end(t->k);
}

// --- By matrix units of 8 x 8: fragments are two elements a lane, side by side
// in a row ---

// Where lane |in| of a subgroup has its elements: a row, and the first column.
static void place_in_matrix(shared_emit_t* t, pestle_kir_id_t in,
                            pestle_kir_id_t* out_row,
                            pestle_kir_id_t* out_column) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t half = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, in, 2);
  half = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, half, 4);
  pestle_kir_id_t down = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, in, 16);
  *out_row = pestle_kir_madi(k, down, 4, half);
  pestle_kir_id_t right = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, in, 8);
  right = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, right, 2);
  pestle_kir_id_t pair = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, in, 2);
  pair = pestle_kir_madi(k, pair, 2, pestle_kir_index(k, 0));
  *out_column = pestle_kir_madi(k, right, 4, pair);
}

// Elements from one row (or column) of a box to the next, and from an element of k.
static int64_t row_step(const shared_box_t* box) {
  return box->by_rows ? box->pitch : 1;
}
static int64_t tap_step(const shared_box_t* box) {
  return box->by_rows ? 1 : box->pitch;
}

static void start_matrices(shared_emit_t* t) {
  pestle_kir_builder_t* k = t->k;
  int64_t rows = t->t->r / 8, columns = t->t->c / 8;
  pestle_kir_id_t zero = pestle_kir_index(k, 0), row, column;
  seat_t seat = find_seat(t);
  place_in_matrix(t, seat.in, &row, &column);
  t->row = pestle_kir_madi(k, row, 1, seat.row);
  t->column = pestle_kir_madi(k, column, 1, seat.column);
  // Of a rows and k, of b k and columns.
  pestle_kir_id_t at = pestle_kir_madi(k, t->row, row_step(&t->a), zero);
  t->from_a = pestle_kir_madi(k, column, tap_step(&t->a), at);
  at = pestle_kir_madi(k, t->column, row_step(&t->b), zero);
  t->from_b = pestle_kir_madi(k, row, tap_step(&t->b), at);
  t->sums = add_private(t, "sums", PESTLE_F32, 2, rows * columns);
  t->fragment_a = add_private(t, "part_a", PESTLE_F32, 2, rows);
  t->fragment_b = add_private(t, "part_b", PESTLE_F32, 2, columns);
  clear_sums(t, rows * columns, 2);
}

// A lane's two elements from |at| on, |step| apart, in f32.
static pestle_kir_id_t load_pair(shared_emit_t* t, const shared_box_t* box,
                                 pestle_kir_id_t at, int64_t step) {
  static const uint32_t both[2] = {0, 1};
  pestle_kir_builder_t* k = t->k;
  unsigned bytes = pestle_dtype_size(box->side->dtype);
  pestle_kir_id_t pair;
  if (step == 1) {
    pair = pestle_kir_load(k, box->buffer, 2, at, PESTLE_KIR_NONE, 2 * bytes);
  } else {
    pestle_kir_id_t one =
        pestle_kir_load(k, box->buffer, 1, at, PESTLE_KIR_NONE, 0);
    at = pestle_kir_madi(k, at, 1, pestle_kir_index(k, step));
    pestle_kir_id_t other =
        pestle_kir_load(k, box->buffer, 1, at, PESTLE_KIR_NONE, 0);
    pair = pestle_kir_shuffle(k, one, other, both, 2);
  }
  return pestle_kir_cast(k, pair, PESTLE_F32);
}

// |count| fragments of step |u| of 8 elements of k.
static void load_matrices(shared_emit_t* t, const shared_box_t* box,
                          uint32_t to, int64_t count, pestle_kir_id_t from,
                          pestle_kir_id_t u, bool is_a) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_alloc(k, to);
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", count);
  pestle_kir_id_t at = pestle_kir_madi(k, u, 8 * tap_step(box), from);
  at = pestle_kir_madi(k, i, 8 * row_step(box), at);
  pestle_kir_id_t pair =
      load_pair(t, box, at, is_a ? tap_step(box) : row_step(box));
  pestle_kir_store(k, to, i, pair, PESTLE_KIR_NONE, 0);
  pestle_kir_end(k);
}

static void multiply_matrices(shared_emit_t* t, pestle_kir_id_t slot) {
  pestle_kir_builder_t* k = t->k;
  int64_t rows = t->t->r / 8, columns = t->t->c / 8;
  pestle_kir_id_t from_a = pestle_kir_madi(k, slot, t->a.slot, t->from_a);
  pestle_kir_id_t from_b = pestle_kir_madi(k, slot, t->b.slot, t->from_b);
  pestle_kir_id_t u = pestle_kir_unroll(k, "u", t->t->k / 8);
  load_matrices(t, &t->a, t->fragment_a, rows, from_a, u, true);
  load_matrices(t, &t->b, t->fragment_b, columns, from_b, u, false);
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", rows);
  pestle_kir_id_t j = pestle_kir_unroll(k, "j", columns);
  pestle_kir_id_t a =
      pestle_kir_load(k, t->fragment_a, 2, i, PESTLE_KIR_NONE, 0);
  pestle_kir_id_t b =
      pestle_kir_load(k, t->fragment_b, 2, j, PESTLE_KIR_NONE, 0);
  pestle_kir_id_t at = pestle_kir_madi(k, i, columns, j);
  pestle_kir_id_t sum = pestle_kir_load(k, t->sums, 2, at, PESTLE_KIR_NONE, 0);
  sum = pestle_kir_put(
      k, (pestle_kir_inst_t){.op = PESTLE_KIR_MMA,
                             .type = PESTLE_F32,
                             .lanes = 2,
                             .arg = {a, b, sum, PESTLE_KIR_MMA_F32_8X8}});
  pestle_kir_store(k, t->sums, at, sum, PESTLE_KIR_NONE, 0);
  pestle_kir_end(k);
  pestle_kir_end(k);
  pestle_kir_end(k);
}

// --- By lanes ---

// A lane's rows are chunks of |row_vector| that are as far apart as all lanes'
// first ones are wide; its columns likewise.
static void start_lanes(shared_emit_t* t) {
  pestle_kir_builder_t* k = t->k;
  int64_t across = t->t->n / t->t->c;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t down =
      pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, t->lane, across);
  pestle_kir_id_t right =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, t->lane, across);
  t->row = pestle_kir_madi(k, down, t->row_vector, zero);
  t->column = pestle_kir_madi(k, right, t->vector, zero);
  t->from_a = t->row;
  t->from_b = t->column;
  int64_t vectors = t->t->r * t->t->c / t->vector;
  t->sums = add_private(t, "sums", t->p.sums, t->vector, vectors);
  clear_sums(t, vectors, (unsigned)t->vector);
}

static pestle_kir_id_t load_chunk(shared_emit_t* t, const shared_box_t* box,
                                  pestle_kir_id_t at, int64_t offset,
                                  int64_t lanes) {
  unsigned bytes = (unsigned)lanes * pestle_dtype_size(box->side->dtype);
  at = pestle_kir_madi(t->k, at, 1, pestle_kir_index(t->k, offset));
  return pestle_kir_load(t->k, box->buffer, (unsigned)lanes, at,
                         PESTLE_KIR_NONE, bytes > 16 ? 16 : bytes);
}

static void add_product(shared_emit_t* t, pestle_kir_id_t a, pestle_kir_id_t b,
                        int64_t which) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t at = pestle_kir_index(k, which);
  pestle_kir_id_t sum =
      pestle_kir_load(k, t->sums, (unsigned)t->vector, at, PESTLE_KIR_NONE, 0);
  pestle_kir_id_t product =
      pestle_kir_scalar(k, PESTLE_OP_MULTIPLY, a, b, PESTLE_KIR_NONE);
  sum = pestle_kir_scalar(k, PESTLE_OP_ADD, sum, product, PESTLE_KIR_NONE);
  pestle_kir_store(k, t->sums, at, sum, PESTLE_KIR_NONE, 0);
}

static void multiply_by_lanes(shared_emit_t* t, pestle_kir_id_t slot) {
  enum { MOST = 64 };
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t b[MOST];
  int64_t chunks = t->t->r / t->row_vector, vectors = t->t->c / t->vector;
  int64_t down = t->t->m / chunks, across = t->t->n / vectors;
  pestle_kir_id_t u = pestle_kir_unroll(k, "u", t->t->k);
  pestle_kir_id_t from_a = pestle_kir_madi(k, slot, t->a.slot, t->from_a);
  pestle_kir_id_t from_b = pestle_kir_madi(k, slot, t->b.slot, t->from_b);
  from_a = pestle_kir_madi(k, u, t->a.pitch, from_a);
  from_b = pestle_kir_madi(k, u, t->b.pitch, from_b);
  for (int64_t j = 0; j < vectors && j < MOST; ++j)
    b[j] = load_chunk(t, &t->b, from_b, j * across, t->vector);
  for (int64_t i = 0; i < chunks; ++i) {
    pestle_kir_id_t a = load_chunk(t, &t->a, from_a, i * down, t->row_vector);
    for (int64_t l = 0; l < t->row_vector; ++l) {
      pestle_kir_id_t one = pestle_kir_extract(k, a, (uint32_t)l);
      if (t->vector > 1) one = pestle_kir_splat(k, one, (unsigned)t->vector);
      for (int64_t j = 0; j < vectors && j < MOST; ++j)
        add_product(t, one, b[j], (i * t->row_vector + l) * vectors + j);
    }
  }
  pestle_kir_end(k);
}

// --- Either ---

void pestle_shared_tile_start_sums(shared_emit_t* t) {
  if (t->t->units == PESTLE_UNITS_MMA) {
    start_units(t);
  } else if (t->t->units == PESTLE_UNITS_MMA8) {
    start_matrices(t);
  } else if (t->t->units == PESTLE_UNITS_TEAMS) {
    pestle_shared_tile_start_teams(t);
  } else {
    start_lanes(t);
  }
}

void pestle_shared_tile_multiply(shared_emit_t* t, pestle_kir_id_t slot) {
  if (t->t->units == PESTLE_UNITS_MMA) {
    multiply_by_units(t, slot);
  } else if (t->t->units == PESTLE_UNITS_MMA8) {
    multiply_matrices(t, slot);
  } else if (t->t->units == PESTLE_UNITS_TEAMS) {
    pestle_shared_tile_multiply_teams(t, slot);
  } else {
    multiply_by_lanes(t, slot);
  }
}
