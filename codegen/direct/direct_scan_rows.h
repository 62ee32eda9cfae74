// SPDX-License-Identifier: Apache-2.0
// A scan by rows while its kernel is written: what turns are made of
// (direct_scan_rows.c) and what elements are (direct_scan_rows_value.c).
#ifndef PESTLE_CODEGEN_DIRECT_DIRECT_SCAN_ROWS_H_
#define PESTLE_CODEGEN_DIRECT_DIRECT_SCAN_ROWS_H_

#include "base/arena.h"
#include "base/mem.h"
#include "codegen/direct/direct_scan.h"

enum { PESTLE_SCAN_MOST_ROWS = 4, PESTLE_SCAN_MEMOS = 2048 };

typedef struct pestle_scan_memo_t {
  const pestle_value_t* value;
  pestle_scan_element_t at;
  unsigned row;
  pk_t id;
} pestle_scan_memo_t;

typedef struct pestle_direct_rows_t {
  pestle_direct_t* d;
  pestle_kir_builder_t* k;
  pestle_scan_t s;
  pestle_scan_rows_t r;
  pestle_scan_rows_fit_t fit;
  pestle_arena_t arena;
  bool lanes, wide, failed;
  uint32_t *buffers,
      *state;  // of operands and results; of carries: shared, or one number
  uint32_t stage[PESTLE_SCAN_ROWS_STAGES], weights[PESTLE_SCAN_ROWS_DOTS];
  uint32_t x[PESTLE_SCAN_ROWS_READS][PESTLE_SCAN_MOST_ROWS];
  pk_t fixed[PESTLE_SCAN_ROWS_READS][PESTLE_SCAN_MOST_ROWS];
  pk_t sums[PESTLE_SCAN_ROWS_DOTS]
           [PESTLE_SCAN_MOST_ROWS];  // of this turn; NONE: not made yet
  pk_t row[PESTLE_SCAN_MOST_ROWS];   // among all
  pk_t lane, part, column, unit;
  pk_t of_group;  // the lane among all of the group
  pk_t stores,
      is_first;  // whether the lane stores its element; whether it is the first
  uint32_t (*own)[PESTLE_SCAN_MOST_ROWS];  // of carries that a lane keeps alone
  pk_t state_at, stage_at;                 // the group's in their memory
  pk_t now, next;  // where the state of this turn and the next one begins
  pk_t turn;       // the row of xs and ys
  pestle_scan_memo_t* memo;
  size_t memos;
} pestle_direct_rows_t;

static inline pk_t pestle_rows_number(pestle_direct_rows_t* x, int64_t value) {
  return pestle_direct_index(x->d, value);
}
static inline pk_t pestle_rows_op(pestle_direct_rows_t* x, pestle_op_t o,
                                  pk_t a, pk_t b) {
  return pestle_direct_op(x->d, o, a, b);
}
// How many rows a lane computes.
static inline unsigned pestle_rows_of_lane(const pestle_direct_rows_t* x) {
  return x->fit.by_lanes ? 1 : (unsigned)x->fit.group_rows;
}
// Whether carry |i| is in registers of the lanes that compute its elements.
static inline bool pestle_rows_is_own(const pestle_direct_rows_t* x, size_t i) {
  return x->lanes && pestle_scan_rows_is_own(&x->r, i);
}
static inline bool pestle_rows_is_one(const pestle_value_t* v) {
  return pestle_type_count(v->type) == 1;
}

// --- direct_scan_rows_value.c ---

// Element |at| of |type| of the group's row |row|, behind |base| (NONE: 0).
pk_t pestle_rows_linear(pestle_direct_rows_t* x, const pestle_type_t* type,
                        const pestle_scan_element_t* at, unsigned row,
                        pk_t base);
// Element |column| of row |row| of a state or a stage that begins at |base|.
pk_t pestle_rows_of_row(pestle_direct_rows_t* x, pk_t base, unsigned row,
                        pk_t column);
// Element |l| of an array, in its row |turn| (NONE: of a constant).
pk_t pestle_rows_load(pestle_direct_rows_t* x, const pestle_scan_load_t* l,
                      unsigned row, pk_t turn);
// Makes the lane's part of column |dot| what it keeps for all turns.
void pestle_rows_load_column(pestle_direct_rows_t* x, uint32_t dot);
// What |v| is at its own element.
pk_t pestle_rows_value(pestle_direct_rows_t* x, const pestle_value_t* v,
                       unsigned row);
// Values are made anew from here on.
void pestle_rows_forget(pestle_direct_rows_t* x);

#endif  // PESTLE_CODEGEN_DIRECT_DIRECT_SCAN_ROWS_H_
