// SPDX-License-Identifier: Apache-2.0
// Shared by the emit_*.c files; nobody else includes it.
#ifndef PESTLE_CODEGEN_EMIT_INTERNAL_H_
#define PESTLE_CODEGEN_EMIT_INTERNAL_H_

#include "codegen/emit_flat.h"

// The part of a stage's tensor that is alive at one place of the loop tree:
// row-major extents from an origin that the loops around it fix.
typedef struct pestle_box_t {
  bool known;
  const pestle_lin_t* origin[PESTLE_MAX_RANK];
  int64_t extent[PESTLE_MAX_RANK];
  int64_t stride[PESTLE_MAX_RANK];
  int64_t count;
} pestle_box_t;

typedef struct pestle_memo_undo_t {
  uint32_t expr;
  pestle_kir_id_t before;
} pestle_memo_undo_t;

typedef struct pestle_emit_t {
  pestle_nest_t* nest;
  pestle_kir_builder_t* k;
  bool contract;
  uint32_t* buffer;   // by tensor; PESTLE_KIR_NONE until made
  pestle_box_t* box;  // by tensor
  bool* ready;        // by tensor: its stage has run where we are
  bool* open;         // by axis: its loop is open or its value is fixed
  const pestle_lin_t** value;  // by axis: leaf value while open
  pestle_kir_id_t* axis_id;    // by axis: loop index while open
  const pestle_lin_t** coord;  // by axis: roots, as index forms over leaves
  pestle_kir_id_t* memo;       // by expression
  uint32_t memo_count;
  uint32_t* checked;  // by expression: epoch of the last look * 2 + result
  uint32_t epoch;     // of what is open
  PESTLE_VEC(pestle_memo_undo_t) undo;
  int32_t vector_axis;  // -1: none is open
  unsigned lanes;
  int64_t valid;                   // lanes that exist, from 0
  const pestle_kir_id_t* acc_ids;  // of a general fold's combine step
  const pestle_kir_id_t* val_ids;
} pestle_emit_t;

// An index: |scalar| for lane 0 and its step along lanes, or |vector| (one
// index a lane) when it is not affine in the lane.
typedef struct pestle_emit_index_t {
  pestle_kir_id_t scalar;
  int64_t step;
  pestle_kir_id_t vector;  // PESTLE_KIR_NONE when affine
} pestle_emit_index_t;

// Recomputes the coordinates of |stage|'s roots from what is open.
void pestle_emit_coords(pestle_emit_t* e, uint32_t stage);
const pestle_lin_t* pestle_emit_resolve(pestle_emit_t* e,
                                        const pestle_lin_t* lin);
pestle_emit_index_t pestle_emit_index(pestle_emit_t* e,
                                      const pestle_lin_t* resolved);
pestle_kir_id_t pestle_emit_expr(pestle_emit_t* e, const pestle_expr_t* x);
// Evaluates now what depends on open axes only, so that inner loops reuse it.
void pestle_emit_hoist(pestle_emit_t* e, const pestle_expr_t* x);
// Writes |value| to |tensor| at |resolved|, a flat index of the result or of
// the tensor's box.
void pestle_emit_store(pestle_emit_t* e, uint32_t tensor,
                       const pestle_lin_t* resolved, pestle_kir_id_t value);
// The flat index in |tensor|'s box of |index|, one a dim, not resolved yet.
const pestle_lin_t* pestle_emit_local(pestle_emit_t* e, uint32_t tensor,
                                      const pestle_lin_t* const* index);
uint32_t pestle_emit_buffer(pestle_emit_t* e, uint32_t tensor);
// The lane mask of the open vector axis for an access at |index|, or NONE.
pestle_kir_id_t pestle_emit_mask(pestle_emit_t* e, pestle_kir_id_t index);
// Results of expressions are remembered until the scope that they were made in
// closes.
size_t pestle_emit_scope(const pestle_emit_t* e);
void pestle_emit_unscope(pestle_emit_t* e, size_t scope);

#endif  // PESTLE_CODEGEN_EMIT_INTERNAL_H_
