// SPDX-License-Identifier: Apache-2.0
// Formulas of CHLO's ops, one for each row of chlo.def. The operands of those that
// are WIDE are of |f->compute|, f32 or f64; of complex ones its parts are.
#ifndef PESTLE_IR_CHLO_H_
#define PESTLE_IR_CHLO_H_

#include "ir/composite.h"

#define PESTLE_CHLO(op, base, IN, ULPS, bound) \
  pv_t* pestle_chlo_##op(pestle_formula_t* f, pv_t* const* operands);
#define PESTLE_CHLO_COMPLEX(op, STEPS, REACH) \
  pv_t* pestle_chlo_complex_##op(pestle_formula_t* f, pv_t* z);
#include "ir/chlo.def"

// --- Rows (chlo_body.c) ---

typedef struct pestle_chlo_row_t {
  const char* name;
  pestle_op_t base;
  bool self;  // computed in the type of its operands
  pv_t* (*formula)(pestle_formula_t* f, pv_t* const* operands);
} pestle_chlo_row_t;

const pestle_chlo_row_t* pestle_chlo_table(size_t* out_count);
// By the op's name in text; NULL: none.
const pestle_chlo_row_t* pestle_chlo_find(pestle_str_t name);
// The formula of |row| of |operands|, whose types must be static.
PESTLE_NODISCARD pestle_status_t pestle_chlo_build(pestle_builder_t* b,
                                                   const pestle_chlo_row_t* row,
                                                   pv_t* const* operands,
                                                   size_t count, pv_t** out);
// A body for |composite|, where its name is that of an op of CHLO which we have and
// its types are the op's; else NULL.
PESTLE_NODISCARD pestle_status_t
pestle_chlo_body(const pestle_node_t* composite, pestle_region_t** out_region);

// What the inverse sines of complex numbers are made of, chlo._asin_acos_kernel: w with
//   asin z = (atan2(re z, re w), +-im w),  acos z = (atan2(re w, re z), -+im w)
pv_t* pestle_chlo_complex_kernel(pestle_formula_t* f, pv_t* z);

// --- The largest of each row (chlo_top_k.c) ---

// The types of the |k| largest along the last axis and of their places; false:
// there is no such thing.
bool pestle_chlo_top_k_types(const pestle_type_t* x, int64_t k,
                             pestle_type_t out_types[2]);
// Those values, in order, and places. NaN is the largest number; of equals the first
// comes first.
void pestle_chlo_top_k(pestle_formula_t* f, pv_t* x, int64_t k, pv_t* out[2]);

#endif  // PESTLE_IR_CHLO_H_
