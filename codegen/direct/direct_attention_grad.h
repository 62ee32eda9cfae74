// SPDX-License-Identifier: Apache-2.0
// The kernel of an attention's gradient: what its files share.
#ifndef PESTLE_CODEGEN_DIRECT_DIRECT_ATTENTION_GRAD_H_
#define PESTLE_CODEGEN_DIRECT_DIRECT_ATTENTION_GRAD_H_

#include "codegen/direct/direct.h"
#include "codegen/direct/direct_tile.h"
#include "ir/attention.h"

enum { TILE_ROWS = 6 };

// What is multiplied, and how it is cut.
typedef struct shape_t {
  pestle_attention_grad_t of;
  int64_t heads, rows, columns, depth, width;
  int64_t block;    // rows
  int64_t vectors;  // of a tile
  // Of a vector of rows, of rows of v and of q.
  unsigned lanes, width_lanes, depth_lanes;
} shape_t;

typedef struct grad_t {
  pestle_direct_t* d;
  pestle_kir_builder_t* k;
  shape_t s;
  const pestle_node_t* node;
  double factor, masked;  // of q; of scores that are hidden
  bool binary;            // scores are in units of ln 2
  bool narrow;            // operands are of 16 bits
  uint32_t q, keys, v, y, c, bias, mask, dq, dk, dv;  // buffers
  uint32_t w, qt, ct, co, dqt, delta, inverse;        // scratch
  // Of 16 bits: what |keys|, |v|, |dk| and |dv|, then in f32, are outside; the block's rows
  // of q, and the cotangents of w^T.
  uint32_t k_narrow, v_narrow, dk_narrow, dv_narrow, q_wide, dw;
  pk_t head, block, q_at, k_at, v_at, y_at, bias_at, mask_at;  // of the head
} grad_t;

// --- Small words ---

static inline pk_t number(grad_t* g, int64_t value) {
  return pestle_kir_index(g->k, value);
}

static inline pk_t op(grad_t* g, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_kir_scalar(g->k, o, a, b, PESTLE_KIR_NONE);
}

static inline pk_t at(grad_t* g, pk_t a, int64_t factor, pk_t plus) {
  return pestle_kir_madi(g->k, a, factor, plus);
}

static inline pk_t plus(grad_t* g, pk_t a, int64_t value) {
  return value ? pestle_kir_madi(g->k, a, 1, number(g, value)) : a;
}

static inline pk_t load(grad_t* g, uint32_t buffer, unsigned lanes,
                        pk_t index) {
  return pestle_kir_load(g->k, buffer, lanes, index, PESTLE_KIR_NONE, 0);
}

static inline pk_t cast(grad_t* g, pk_t a, pestle_dtype_t to) {
  return g->narrow ? pestle_kir_cast(g->k, a, to) : a;
}

// In f32, from what an operand has.
static inline pk_t load_wide(grad_t* g, uint32_t buffer, unsigned lanes,
                             pk_t index) {
  return cast(g, load(g, buffer, lanes, index), PESTLE_F32);
}

static inline pestle_dtype_t dtype_of(const grad_t* g) {
  return g->s.of.q->type->dtype;
}

static inline void store(grad_t* g, uint32_t buffer, pk_t index, pk_t value) {
  pestle_kir_store(g->k, buffer, index, value, PESTLE_KIR_NONE, 0);
}

static inline pk_t loop(grad_t* g, const char* name, int64_t count) {
  return pestle_kir_repeat(g->k, name, count);
}

static inline void end(grad_t* g, int64_t count) {
  pestle_kir_end_repeat(g->k, count);
}

static inline pk_t real(grad_t* g, unsigned lanes, double value) {
  return pestle_kir_float(g->k, PESTLE_F32, lanes, value);
}

static inline bool has_tail(const grad_t* g) {
  return g->s.rows % g->s.block != 0;
}

// Row |r| of the block; behind the end the last one, whose cotangent is taken for 0.
static inline pk_t row_of(grad_t* g, pk_t r) {
  pk_t row = at(g, g->block, g->s.block, r);
  if (!has_tail(g)) return row;
  return pestle_kir_scalar_i(g->k, PESTLE_OP_MINIMUM, row, g->s.rows - 1);
}

static inline pk_t is_row(grad_t* g, pk_t r) {
  return pestle_kir_scalar_i(g->k, PESTLE_OP_LT, at(g, g->block, g->s.block, r),
                             g->s.rows);
}

// --- Rows (direct_attention_grad_rows.c) ---

// w^T of a block, q^T, c', c'^T and delta, which of 16 bits is 0; dq^T is 0.
void pestle_direct_grad_begin_block(grad_t* g);
// Of 16 bits, delta from sum w dw.
void pestle_direct_grad_scale_delta(grad_t* g);
// dq of it from dq^T.
void pestle_direct_grad_end_block(grad_t* g);
// |count| numbers of 0 from |from| on.
void pestle_direct_grad_clear(grad_t* g, uint32_t buffer, pk_t from,
                              int64_t count);
// |count| numbers from |from| on of |buffer|, of another dtype, to |to|.
void pestle_direct_grad_convert(grad_t* g, uint32_t buffer, pk_t from,
                                int64_t count, uint32_t to, pk_t to_at,
                                pestle_dtype_t dtype);
// Where scores of column |c| and rows from |r| on of the block count.
pk_t pestle_direct_grad_kept(grad_t* g, pk_t c, pk_t r);

#endif  // PESTLE_CODEGEN_DIRECT_DIRECT_ATTENTION_GRAD_H_
