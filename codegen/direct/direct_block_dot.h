// SPDX-License-Identifier: Apache-2.0
// What the files of block_dot's kernel share (direct_block_dot.c).
#ifndef PESTLE_CODEGEN_DIRECT_DIRECT_BLOCK_DOT_H_
#define PESTLE_CODEGEN_DIRECT_DIRECT_BLOCK_DOT_H_

#include "codegen/direct/direct.h"

// A float whose last bit is 1: whole numbers below 2^22 may be added to it, or to its bits.
#define BLOCK_DOT_WHOLE 12582912.0
#define BLOCK_DOT_WHOLE_BITS 0x4b400000

enum {
  MOST_LANES = 16,
  MOST_ROWS = 4,     // of x at a time
  MOST_COLUMNS = 4,  // of y
  WORD_BYTES = 4,
  X_BLOCK = 32,  // numbers of x with one scale, at most
  MOST_PRODUCTS = 8,
  MOST_ARGUMENTS = 48,
  MOST_RESULTS = 8,
  MOST_NODES = 64,  // of a body
  MOST_KEPT = 6,    // words of x that a lane keeps while all add up
};

// One of the products of x.
typedef struct block_product_t {
  const pestle_node_t* node;
  uint32_t w, scales, zeros;  // arguments
  uint32_t made;  // scratch [rows at a time, made_stride], where ops follow
  pk_t now[MOST_ROWS];  // of a column, where lanes run side by side
  uint32_t result;      // of the group, where none follow
  unsigned piece;       // that it is of: the number of a product of it
} block_product_t;

// Products of one shape and the ops behind them, of which columns are made together.
typedef struct block_piece_t {
  int64_t columns;        // of y
  int64_t panel, groups;  // columns of y a group
  int64_t first_group;
  bool has_tail;
  bool has_more;  // ops behind the products; else it is one, which is stored
} block_piece_t;

typedef struct block_dot_t {
  pestle_direct_t* d;
  pestle_kir_builder_t* k;
  pestle_dtype_t dtype;  // of x and y
  int64_t bits, block, blocks;
  int64_t block_words, words;  // of a block, of a row of w
  int64_t word_weights;
  int64_t parts;  // of a word
  bool is_bytes, has_zeros;
  bool is_lanes;   // that run side by side
  unsigned lanes;  // of a vector
  int64_t depth, all_rows;
  int32_t rank;             // of x and y
  int64_t rows, most_rows;  // of x: now, and at most
  int64_t columns;          // of y at a time
  block_product_t products[MOST_PRODUCTS];
  block_piece_t pieces[MOST_PRODUCTS];  // by their number, others are empty
  unsigned product_count;
  int64_t groups;  // of columns of y
  // Rows of x that a group has in scratch, each of its own; 0: a few at a time, all of them.
  int64_t chunk;
  const pestle_block_t* body;
  const pestle_node_t* first_product;
  const pestle_node_t* norm;                                  // of x, or NULL
  uint32_t arguments[MOST_ARGUMENTS], results[MOST_RESULTS];  // buffers
  uint32_t x, norm_scale;                                     // arguments
  pk_t norm_rate;  // of the row that is being made
  // Scratch, [most_rows, words] of a number for each word of a row of x, but for |xs|
  // [parts, most_rows, words] of words or f32 and |line| [words * word_weights] of bytes.
  uint32_t xs, line, first, x_scales, sums;
  // Where a group of lanes makes bytes of x: x before, the bytes, and sums of its subgroups.
  uint32_t float_x, made_bytes, squares;
  bool has_made;
  // What a lane has of x and of the norm before it makes bytes of them, by turn.
  bool keeps;
  pk_t kept_x[MOST_KEPT], kept_norm[MOST_KEPT];
  // What the ops behind the products read of the column that is finished, by argument, NONE:
  // nothing; or NULL: they read it themselves.
  const pk_t* read_y;
  uint32_t total;  // registers
  int64_t made_stride;
  pk_t made_row;  // the first row of |made| that is finished, or NONE: 0
  // Of panels (direct_block_dot_panel.c): runs of |unit| weights with one scale of x and of w,
  // words of those, vectors of columns side by side.
  int64_t unit, units, unit_words, across;
  uint32_t w_words, w_scales, w_zeros;  // scratch
  // Of tiles (direct_block_dot_tiles.c): registers that a row of x fills, elements from one
  // of its rows to the next, and groups that share the rows of x.
  int64_t steps, pitch;
  bool is_tiles;
  pk_t group;
  const block_product_t* product;  // that is being made
  const block_piece_t* piece;
} block_dot_t;

static inline pk_t number(block_dot_t* b, int64_t value) {
  return pestle_kir_index(b->k, value);
}
static inline pk_t word_number(block_dot_t* b, unsigned lanes, int64_t value) {
  return pestle_kir_int(b->k, PESTLE_I32, lanes, (int32_t)value);
}

// Part |part| of words: the weights in the low bits of bytes, or one as f32.
pk_t pestle_block_dot_part(block_dot_t* b, pk_t words, int64_t part);

// |a| of fewer lanes with zeros behind.
pk_t widen(block_dot_t* b, pk_t a);

// |lanes| numbers of row |row| of x from |at| on, normed, as f32, zeros behind the last one.
pk_t pestle_block_dot_line(block_dot_t* b, pk_t row, pk_t at, bool is_masked);

// A buffer of |count| numbers that lanes of a group share.
uint32_t pestle_block_dot_scratch(block_dot_t* b, const char* name,
                                  pestle_dtype_t dtype, int64_t count);
// Makes the scratch buffers.
void pestle_block_dot_buffers(block_dot_t* b);
// 1 / sqrt(mean of the squares + epsilon) of row |row| of x, in all lanes.
pk_t pestle_block_dot_rate(block_dot_t* b, pk_t row);
// Numbers |q| * size .. of row |row| of x as bytes in |b->line| from |first| on; their scale,
// and their sum, if |out_sum| is not NULL.
pk_t pestle_block_dot_quantise(block_dot_t* b, pk_t row, int64_t first, pk_t q,
                               int64_t size, bool is_masked, pk_t* out_sum);
// Fills them with rows [first_row, + rows) of x.
void pestle_block_dot_prepare(block_dot_t* b, pk_t first_row);

// Of the group's body: the norm, the products, and which of them are of one piece; an error
// names what is not known (direct_block_dot_y.c).
PESTLE_NODISCARD pestle_status_t pestle_block_dot_read(block_dot_t* b);
// Stores the results of the piece, columns [first, + lanes), whose products are |made|.
void pestle_block_dot_finish(block_dot_t* b, pk_t first, pk_t first_row);

// Makes |piece| the one that is made, and |*out_group| the group's number within it; true: an
// if has begun, in which groups of it alone are.
bool pestle_block_dot_begin_piece(block_dot_t* b, unsigned piece,
                                  pk_t* out_group);
// Calls |each| for each group's |chunk| of rows, or what is left of them.
void pestle_block_dot_groups(block_dot_t* b,
                             void (*each)(block_dot_t* b, pk_t first_row,
                                          int64_t rows));
// Whether x has so many rows that weights are unpacked once for all of them, in columns side
// by side, and the rest of that kernel (direct_block_dot_panel.c).
bool pestle_block_dot_is_panel(block_dot_t* b);
void pestle_block_dot_panels(block_dot_t* b);
// Of |count| columns of w from |first| on, those behind the last one being the last one.
void pestle_block_dot_columns(block_dot_t* b, pk_t first, int64_t count,
                              pk_t* out_columns);
// |lanes| words of each of |columns| from |at| on become, for each word, a vector of columns.
void pestle_block_dot_turn(block_dot_t* b, const pk_t* columns, pk_t at,
                           pk_t* out_words);
// Numbers of all blocks of |columns| from |from|, as f32, to |to|: a vector of columns for
// each block, behind those of |half| such lists.
void pestle_block_dot_blocks(block_dot_t* b, const pk_t* columns, uint32_t from,
                             uint32_t to, pk_t half);
// Whether matrix registers are faster than that, and the rest of that kernel
// (direct_block_dot_tiles.c).
bool pestle_block_dot_is_tiles(block_dot_t* b, int64_t accuracy);
void pestle_block_dot_tiles(block_dot_t* b);
// Reads what the ops behind the products of the piece read of column |column| of the first
// row: |out|, by argument, NONE where they read nothing.
void pestle_block_dot_read_y(block_dot_t* b, pk_t column,
                             pk_t out[MOST_ARGUMENTS]);
// Asks for x and the norm, where the lanes of a group can keep them, for the next
// pestle_block_bytes_make() of the same piece.
void pestle_block_bytes_ask(block_dot_t* b, pk_t lane, int64_t lanes);
// Rows of x, normed, as bytes and scales in shared memory, which are |b->x| from here on; by
// all |lanes| of a group (direct_block_bytes.c).
void pestle_block_bytes_make(block_dot_t* b, pk_t lane, int64_t lanes);

// The kernel of a target whose lanes run side by side (direct_block_dot_lanes.c).
PESTLE_NODISCARD pestle_status_t
pestle_direct_block_dot_lanes(pestle_direct_t* d);

#endif  // PESTLE_CODEGEN_DIRECT_DIRECT_BLOCK_DOT_H_
