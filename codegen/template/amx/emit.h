// SPDX-License-Identifier: Apache-2.0
// Shared by the emit*.c files; nobody else includes it. The kernel is
//
//   for each block of rows and columns: a group
//     its columns' elements of k, word by word, in scratch, but of a constant
//                                               (emit_pack.c)
//     for each tile of rows:
//       its rows in scratch, where registers cannot be loaded from a
//       for each panel of columns:
//         the sums, in registers, then in scratch    (emit.c)
//         the last stage, vector by vector
//
// Where the last stage is the sums themselves, registers of whole tiles are stored
// into the result; of few steps in scratch, from where the next tile's steps, and
// after the last tile a loop, bring them to the result.
#ifndef PESTLE_CODEGEN_TEMPLATE_AMX_EMIT_H_
#define PESTLE_CODEGEN_TEMPLATE_AMX_EMIT_H_

#include "codegen/emit/emit_internal.h"
#include "codegen/template/amx/amx.h"

enum { PESTLE_AMX_LANES = 16 };  // of a vector of sums

// An axis in vectors: its coordinate is |vector| times their lanes and a lane.
typedef struct amx_axis_t {
  uint32_t vector, lane;
  int64_t lanes;
} amx_axis_t;

typedef struct amx_t {
  pestle_emit_t* e;
  pestle_kir_builder_t* k;
  const pestle_amx_how_t* how;
  pestle_amx_t m;
  pestle_dtype_t bits;         // of operands in scratch
  uint32_t rows, panel, sums;  // scratch
  int64_t pitch;               // elements of a row of a in scratch
  // 0 or: of whole tiles that are stored as they are.
  int64_t result_stride;
  // 0 or: lines of results that a step stores for the tile before.
  int64_t behind;
  amx_axis_t depth, columns, results;
  pestle_kir_id_t block_row, block_column, batch;  // of this group
  pestle_kir_id_t row_of_tiles;                    // in the group
} amx_t;

pestle_kir_id_t pestle_amx_emit_add(amx_t* t, pestle_kir_id_t a, int64_t b);
// Fixes |axis|.
void pestle_amx_emit_fix(amx_t* t, uint32_t axis, pestle_kir_id_t id);
// Fixes all axes of |axes|, of the reduction or of the last stage, at the place
// |number|.
void pestle_amx_emit_place(amx_t* t, const pestle_product_axes_t* axes,
                           bool last, pestle_kir_id_t number);
// From here on values are vectors along |axis|, which is |own|; |valid| lanes of
// vector |number| exist. pestle_emit_close_vector() is the end.
void pestle_amx_emit_open(amx_t* t, uint32_t axis, const amx_axis_t* own,
                          pestle_kir_id_t number, int64_t valid);

// Calls |each| for the panels of this group: |panel| of all, |columns| wide, is the
// group's |number|. The last of all may have fewer columns.
typedef void (*amx_each_t)(amx_t* t, const void* user, pestle_kir_id_t number,
                           pestle_kir_id_t panel, int64_t columns);
void pestle_amx_emit_panels(amx_t* t, amx_each_t each, const void* user);

// Copies |count| rows from number |first| on to the start of the scratch.
void pestle_amx_emit_pack_rows(amx_t* t, pestle_kir_id_t first,
                               pestle_kir_id_t count);
// Puts the panels of this group into scratch.
void pestle_amx_emit_pack_panels(amx_t* t);

#endif  // PESTLE_CODEGEN_TEMPLATE_AMX_EMIT_H_
