// SPDX-License-Identifier: Apache-2.0
// The row tile: a sum of products by groups of lanes that keep boxes of both
// operands in shared memory and sums in registers.
//
// Axes of the product fall into four kinds, each counted as one number, last
// axis fastest: batch axes, on which both operands depend, rows (of a alone),
// columns (of b alone) and taps, which are folded. A convolution is one too.
#ifndef PESTLE_CODEGEN_TEMPLATE_PRODUCT_H_
#define PESTLE_CODEGEN_TEMPLATE_PRODUCT_H_

#include "codegen/nest/nest.h"

typedef struct pestle_product_axes_t {
  uint32_t count;
  uint32_t fold[PESTLE_NEST_MAX_AXES];  // roots of the fold
  int32_t last[PESTLE_NEST_MAX_AXES];   // the same of the last stage; -1: none
  int64_t extent[PESTLE_NEST_MAX_AXES];
  int64_t all;  // their product
} pestle_product_axes_t;

// An operand as it is kept in shared memory. It lies in runs: |run| elements
// side by side along the last of its rows or taps.
typedef struct pestle_product_side_t {
  const pestle_expr_t* value;
  pestle_dtype_t dtype;
  bool along_taps;
  int64_t run;
  // Where runs can be copied as they lie: the read, and what must hold for it
  // not to be zeros instead (or NULL). Else NULL.
  const pestle_expr_t *read, *guard;
} pestle_product_side_t;

typedef struct pestle_product_t {
  uint32_t fold, last;  // stages
  pestle_product_axes_t batch, m, n, k;
  pestle_product_side_t a, b;
  pestle_dtype_t sums;
} pestle_product_t;

// Whether stage |fold| is such a product, which the last stage reads where it
// was made. Operands are kept in the dtype of the sums. For |units|, a
// pestle_product_units_t, sums are f32 and operands of bf16 and f16 are kept as they
// are, MMA's both alike; it has no others. Of MREG they are of bf16 for f32, and of
// bytes for i32.
bool pestle_product_find(pestle_nest_t* nest, uint32_t fold, uint8_t units,
                         pestle_product_t* out_product);

// The axis of the last stage at which |read| of its has axis |d| of the sums: -1
// where that has one element, -2 where there is none such.
int32_t pestle_product_last_axis(const pestle_nest_t* nest,
                                 const pestle_expr_t* read, uint32_t d,
                                 int64_t extent);
// Whether |s| adds up products, from 0 on, in numbers of 32 bits or more.
bool pestle_product_is_sum(const pestle_nest_stage_t* s);
// Whether |axis| stands somewhere in |x|.
bool pestle_expr_depends(pestle_nest_t* nest, const pestle_expr_t* x,
                         uint32_t axis);
// Whether |x| is a cast of bf16 or f16 to f32.
bool pestle_expr_widens_half(const pestle_expr_t* x);
// |x| as the operand of matrix units that has these rows and taps: a cast of
// bf16 or f16 that reads arguments alone. False: it is none.
bool pestle_product_side(pestle_nest_t* nest, const pestle_expr_t* x,
                         const pestle_product_axes_t* rows,
                         const pestle_product_axes_t* taps,
                         pestle_product_side_t* out);

// tile S m n k r c slots [units | units8]: a group makes m x n sums, k taps a
// step, a lane r x c of them; by matrix units a subgroup does. More than two
// slots in shared memory are filled by copies past the registers.
// INVALID_ARGUMENT: no such product, or no such tile.
PESTLE_NODISCARD pestle_status_t pestle_shared_tile_apply(
    pestle_nest_t* nest, uint32_t stage, const pestle_shared_tile_t* tile);

// Rows of a product of such units, and its taps; all have 8 columns.
static inline int64_t pestle_shared_tile_unit_rows(uint8_t units) {
  return units == PESTLE_UNITS_MMA8 ? 8 : 16;
}
// Lanes of a group of |tile|.
static inline int64_t pestle_shared_tile_lanes(
    const pestle_shared_tile_t* tile) {
  return tile->m / tile->r * (tile->n / tile->c) * (tile->units ? 32 : 1);
}
// Elements of shared memory from one row (or tap) of a kept box to the next.
static inline int64_t pestle_shared_tile_pitch(
    const pestle_shared_tile_t* tile, const pestle_product_side_t* side,
    int64_t rows) {
  // 16 bytes more: rows that are read together lie in different banks.
  int64_t more = 16 / (int64_t)pestle_dtype_size(side->dtype);
  if (tile->units) return (side->along_taps ? tile->k : rows) + more;
  return rows + 4;
}
// Elements of one slot.
static inline int64_t pestle_shared_tile_slot(const pestle_shared_tile_t* tile,
                                              const pestle_product_side_t* side,
                                              int64_t rows) {
  bool by_rows = tile->units && side->along_taps;
  return pestle_shared_tile_pitch(tile, side, rows) *
         (by_rows ? rows : tile->k);
}
static inline int64_t pestle_shared_tile_bytes(const pestle_shared_tile_t* tile,
                                               const pestle_product_t* p) {
  return tile->slots *
         (int64_t)(pestle_dtype_size(p->a.dtype) *
                       (uint64_t)pestle_shared_tile_slot(tile, &p->a, tile->m) +
                   pestle_dtype_size(p->b.dtype) *
                       (uint64_t)pestle_shared_tile_slot(tile, &p->b, tile->n));
}

#endif  // PESTLE_CODEGEN_TEMPLATE_PRODUCT_H_
