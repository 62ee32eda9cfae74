// SPDX-License-Identifier: Apache-2.0
// Sums of products as templates see them: what is multiplied, along which axes, and
// how operands lie.
//
// Axes of the product fall into four kinds, each counted as one number, last
// axis fastest: batch axes, on which both operands depend, rows (of a alone),
// columns (of b alone) and k, which is reduced. A convolution is one too.
#ifndef PESTLE_CODEGEN_TEMPLATE_PRODUCT_H_
#define PESTLE_CODEGEN_TEMPLATE_PRODUCT_H_

#include "codegen/nest/nest.h"

// The units that multiply.
typedef enum pestle_product_units_e {
  PESTLE_UNITS_LANES = 0,  // none: lanes do
  // Of a subgroup: 16 x 8, k = 16 of f16 or bf16, 32 of bytes or 8-bit floats, 8 of f32
  // as tf32.
  PESTLE_UNITS_MMA = 1,
  PESTLE_UNITS_MMA8 = 2,   // of a subgroup: 8 x 8, k = 8 of f32
  PESTLE_UNITS_TEAMS = 3,  // none: lanes do, subgroups that share k, in f32
  PESTLE_UNITS_AMX = 4,    // of a thread: bf16 in f32, or bytes in i32
} pestle_product_units_t;

typedef struct pestle_product_axes_t {
  uint32_t count;
  uint32_t reduce[PESTLE_NEST_MAX_AXES];  // roots of the reduction
  int32_t last[PESTLE_NEST_MAX_AXES];  // the same of the last stage; -1: none
  int64_t extent[PESTLE_NEST_MAX_AXES];
  int64_t all;  // their product
} pestle_product_axes_t;

// An operand, as lanes move it. It lies in runs: |run| elements
// side by side along the last of its rows or k.
typedef struct pestle_product_side_t {
  const pestle_expr_t* value;
  pestle_dtype_t dtype;
  bool along_k;
  int64_t run;
  // Where runs can be copied as they lie: the read, and what must hold for it
  // not to be zeros instead (or NULL). Else NULL.
  const pestle_expr_t *read, *guard;
} pestle_product_side_t;

typedef struct pestle_product_t {
  uint32_t reduce, last;  // stages
  pestle_product_axes_t batch, m, n, k;
  pestle_product_side_t a, b;
  pestle_dtype_t sums;
} pestle_product_t;

// Whether stage |reduce| is such a product, which the last stage reads where it
// was made. Operands are kept in the dtype of the sums. For |units|, a
// pestle_product_units_t, sums are f32 and operands of bf16 and f16 are kept as they
// are, MMA's both alike; it has no others. TEAMS keeps none so. Of AMX they are of bf16
// for f32. Of bytes AMX and MMA make sums of i32; one may have a sign and the other none.
// MMA has others where the stage's factors say so: f32 as tf32, and 8-bit floats, of two types
// too.
bool pestle_product_find(pestle_nest_t* nest, uint32_t reduce, uint8_t units,
                         pestle_product_t* out_product);

// The axis of the last stage at which |read| of its has axis |d| of the sums: -1
// where that has one element, -2 where there is none such.
int32_t pestle_product_last_axis(const pestle_nest_t* nest,
                                 const pestle_expr_t* read, uint32_t d,
                                 int64_t extent);
// Of the last axis that has more than one element.
static inline int64_t pestle_product_last_extent(
    const pestle_product_axes_t* axes) {
  for (uint32_t i = axes->count; i-- > 0;) {
    if (axes->extent[i] > 1) return axes->extent[i];
  }
  return 1;
}
// Whether |s| adds up products, from 0 on, in numbers of 32 bits or more.
bool pestle_product_is_sum(const pestle_nest_stage_t* s);
// Whether |axis| stands somewhere in |x|.
bool pestle_expr_depends(pestle_nest_t* nest, const pestle_expr_t* x,
                         uint32_t axis);
// Whether |x| is a cast of bf16 or f16 to f32.
bool pestle_expr_widens_half(const pestle_expr_t* x);
// |x| as the operand of such units that has these rows and k: what reads
// arguments alone, for MMA a cast of bf16 or f16. False: it is none.
bool pestle_product_side(pestle_nest_t* nest, const pestle_expr_t* x,
                         uint8_t units, const pestle_product_axes_t* rows,
                         const pestle_product_axes_t* depth,
                         pestle_product_side_t* out);

#endif  // PESTLE_CODEGEN_TEMPLATE_PRODUCT_H_
