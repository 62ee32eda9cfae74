// SPDX-License-Identifier: Apache-2.0
// What the files of block_dot's kernel share (direct_block_dot.c).
#ifndef PESTLE_CODEGEN_DIRECT_DIRECT_BLOCK_DOT_H_
#define PESTLE_CODEGEN_DIRECT_DIRECT_BLOCK_DOT_H_

#include "codegen/direct/direct.h"

enum {
  MOST_LANES = 16,
  MOST_ROWS = 4,     // of x at a time
  MOST_COLUMNS = 4,  // of y
  WORD_BYTES = 4,
  X_BLOCK = 32,  // numbers of x with one scale, at most
};

typedef struct block_dot_t {
  pestle_direct_t* d;
  pestle_kir_builder_t* k;
  pestle_dtype_t dtype;  // of x and y
  int64_t bits, block, blocks;
  int64_t block_words, words;  // of a block, of a row of w
  int64_t word_weights;
  int64_t parts;  // of a word
  bool is_bytes, has_zeros;
  unsigned lanes;
  int64_t depth, all_rows, all_columns;
  int64_t rows, most_rows;  // of x: now, and at most
  int64_t columns;          // of y at a time
  int64_t panel, groups;    // columns of y a group
  bool has_tail;
  uint32_t x, w, scales, zeros, y;  // arguments
  // Scratch, [most_rows, words] of a number for each word of a row of x, but for |xs|
  // [parts, most_rows, words] of words or f32 and |line| [words * word_weights] of bytes.
  uint32_t xs, line, first, x_scales, sums;
  uint32_t total;  // registers
  pk_t group;
} block_dot_t;

static inline pk_t number(block_dot_t* b, int64_t value) {
  return pestle_kir_index(b->k, value);
}
static inline pk_t word_number(block_dot_t* b, unsigned lanes, int64_t value) {
  return pestle_kir_int(b->k, PESTLE_I32, lanes, (int32_t)value);
}

// |a| of fewer lanes with zeros behind.
pk_t widen(block_dot_t* b, pk_t a);

// Makes the scratch buffers.
void pestle_block_dot_buffers(block_dot_t* b);
// Fills them with rows [first_row, + rows) of x.
void pestle_block_dot_prepare(block_dot_t* b, pk_t first_row);

#endif  // PESTLE_CODEGEN_DIRECT_DIRECT_BLOCK_DOT_H_
