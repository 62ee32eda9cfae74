// SPDX-License-Identifier: Apache-2.0
// The kernels of an attention's gradient where subgroups multiply small matrices
// (direct_attention_grad_lanes.c): what their files share.
#ifndef PESTLE_CODEGEN_DIRECT_DIRECT_ATTENTION_GRAD_LANES_H_
#define PESTLE_CODEGEN_DIRECT_DIRECT_ATTENTION_GRAD_LANES_H_

#include "codegen/direct/direct.h"
#include "ir/attention.h"

enum {
  FLASH_LANES = 128,
  FLASH_SUBGROUP = 32,
  FLASH_SUBGROUPS = FLASH_LANES / FLASH_SUBGROUP,
  FLASH_UNIT = 16,  // rows of a fragment, and columns of two
  FLASH_EIGHT = 8,  // columns of four sums
  FLASH_QUAD = 4,   // lanes that share a row
  FLASH_MOST_UNITS = 2,
  FLASH_SLOTS = 2,
  FLASH_RUN = 8,  // elements of a copy
  FLASH_RUN_BYTES = 16,
  // What the second kernel reads of each row: these, each for all rows.
  FLASH_MOST = 0,  // the maximum of its scores
  FLASH_INVERSE,   // one over the sum of its weights
  FLASH_DELTA,     // the sum of weights times their cotangents
};

// Rows of q, k, v or c, and their place in shared memory.
typedef struct flash_matrix_t {
  uint32_t from, shared;   // buffers
  int64_t count, columns;  // of a head
  int64_t padded, pitch;   // columns, in shared memory
  int64_t rows;            // of a block
} flash_matrix_t;

// Of a group: rows of q (and c), or of k (and v), which it owns, and blocks of the others,
// which it goes over.
typedef struct flash_grad_t {
  pestle_direct_t* d;
  pestle_kir_builder_t* k;
  const pestle_node_t* node;
  pestle_dtype_t dtype;
  bool by_keys;           // k and v are what it owns
  bool of_first;          // makes the gradient of what it owns first: q or k
  bool of_second;         // of v
  int64_t heads, units;   // units: of 16 rows, of a subgroup
  int64_t block, blocks;  // of what it goes over
  int64_t tile, tiles;    // of what it owns
  int64_t padded;         // rows in |stats|
  flash_matrix_t own[2], other[2];
  const pestle_value_t *bias, *mask;  // in memory
  // Which keys rows see: of what the group goes over, from own + low to own + high.
  bool is_limited;
  int64_t low, high;
  double scale,
      masked;   // of scores, which are in units of ln 2 unless there is a bias
  bool copies;  // past the registers
  bool has_warpgroups;  // which make the products
  uint32_t y, c, bias_from, mask_from, stats, result[2];  // buffers
  uint32_t scores, cotangents, sums[2], part, words[2];   // registers
  uint32_t most, next, safe, total, reach, delta, rate;   // of a lane's rows
  pk_t first, last;                                       // blocks
  pk_t group_tile, head, lane, subgroup, row, quad;  // row: the lane's first
  pk_t bias_at, mask_at;
  pk_t from_rows, from_own[2], from_columns[2], from_taps[2];  // fragments
} flash_grad_t;

static inline pk_t flash_number(const flash_grad_t* g, int64_t value) {
  return pestle_kir_index(g->k, value);
}
static inline pk_t flash_at(const flash_grad_t* g, pk_t a, int64_t factor,
                            pk_t plus) {
  return pestle_kir_madi(g->k, a, factor, plus);
}
static inline pk_t flash_plus(const flash_grad_t* g, pk_t a, int64_t value) {
  return value ? pestle_kir_madi(g->k, a, 1, flash_number(g, value)) : a;
}
static inline pk_t flash_op(const flash_grad_t* g, pestle_op_t op, pk_t a,
                            pk_t b) {
  return pestle_kir_scalar(g->k, op, a, b, PESTLE_KIR_NONE);
}
static inline pk_t flash_by(const flash_grad_t* g, pestle_op_t op, pk_t a,
                            int64_t b) {
  return pestle_kir_scalar_i(g->k, op, a, b);
}
static inline pk_t flash_real(const flash_grad_t* g, unsigned lanes,
                              double value) {
  return pestle_kir_float(g->k, PESTLE_F32, lanes, value);
}
static inline pk_t flash_get(const flash_grad_t* g, uint32_t registers,
                             pk_t index) {
  unsigned lanes = g->k->failed ? 1 : g->k->buffer.data[registers].lanes;
  return pestle_kir_load(g->k, registers, lanes, index, PESTLE_KIR_NONE, 0);
}
static inline void flash_put(const flash_grad_t* g, uint32_t registers,
                             pk_t index, pk_t value) {
  pestle_kir_store(g->k, registers, index, value, PESTLE_KIR_NONE, 0);
}
// A run of |buffer|, whose rows are whole runs.
static inline pk_t flash_run(const flash_grad_t* g, uint32_t buffer,
                             pk_t index) {
  unsigned align = g->k->failed ? 0 : g->k->buffer.data[buffer].align;
  if (align > FLASH_RUN_BYTES) align = FLASH_RUN_BYTES;
  return pestle_kir_load(g->k, buffer, FLASH_RUN, index, PESTLE_KIR_NONE,
                         align);
}
// Place of the sums |eight| of unit |unit|, where each unit has |count|.
static inline pk_t flash_place(const flash_grad_t* g, int64_t unit,
                               int64_t count, pk_t eight) {
  return flash_plus(g, eight, unit * count);
}

// |count| values of registers are |value| from here on.
void pestle_flash_grad_fill(const flash_grad_t* g, uint32_t registers,
                            int64_t count, double value);

// Fragment |u|, 16 columns, of what |factors| have of unit |unit|, rounded.
pk_t pestle_flash_grad_fragment(const flash_grad_t* g, uint32_t factors,
                                int64_t unit, pk_t u);

// Sets how it is cut, by what is read of the node (direct_attention_grad_sizes.c).
void pestle_flash_grad_choose(flash_grad_t* g);

// --- Products by warpgroups (direct_attention_grad_wgmma.c) ---

bool pestle_flash_grad_has_warpgroups(const flash_grad_t* g);
// Where run |run| of row |row| stands, of a block of |m| that begins at |from|.
pk_t pestle_flash_grad_swizzled(const flash_grad_t* g, const flash_matrix_t* m,
                                pk_t row, pk_t run, pk_t from);
// Asks for the products of what is owned and the block in |slot|; for result |of| += the
// fragments in |words| times rows of the block; waits for what was asked for.
void pestle_flash_grad_ask_products(const flash_grad_t* g, int which,
                                    uint32_t sums, pk_t slot);
void pestle_flash_grad_ask_sums(const flash_grad_t* g, int of, int which,
                                pk_t slot);
void pestle_flash_grad_wait(const flash_grad_t* g);

// --- Between products (direct_attention_grad_lanes_rows.c) ---

// Before the first block of keys: delta of y, and that there was no key so far.
void pestle_flash_grad_begin_rows(flash_grad_t* g);
// Products of block |step| are scores, -inf behind the last row of it and where they are
// not seen.
void pestle_flash_grad_scores(flash_grad_t* g, pk_t step);
// Of rows that meet block |step| of keys: cotangents of products are those of scores; what
// was summed so far is scaled to the new maxima.
void pestle_flash_grad_weigh_rows(flash_grad_t* g, pk_t step);
// Of keys that meet block |step| of rows: scores are weights, cotangents as above.
void pestle_flash_grad_weigh_keys(flash_grad_t* g, pk_t step);
// Writes what the group made.
void pestle_flash_grad_end_rows(flash_grad_t* g);
void pestle_flash_grad_end_keys(flash_grad_t* g);

#endif  // PESTLE_CODEGEN_DIRECT_DIRECT_ATTENTION_GRAD_LANES_H_
