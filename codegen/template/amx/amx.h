// SPDX-License-Identifier: Apache-2.0
// The template amx: a sum of products by matrix registers of one thread (MREG_MMA).
//
//   amx S m n
//
// A group makes a block of m x n sums, in tiles of up to 2 x
// 2 registers whose elements of k are all added up before the last stage takes them from
// scratch.
//
// Of one operand, a, register rows are rows of the product and hold 64 bytes of
// elements of k. Of the other, b, they are words of 2 or 4 elements of k for 16 columns: its panel
// of a tile's columns is a register behind the other, made with the plan where
// b is constant, else by the group in scratch. Where a lies so that registers
// can be loaded from it they are; else its rows are copied into scratch too.
#ifndef PESTLE_CODEGEN_TEMPLATE_AMX_AMX_H_
#define PESTLE_CODEGEN_TEMPLATE_AMX_AMX_H_

#include "codegen/template/product.h"
#include "codegen/template/template.h"

enum {
  PESTLE_AMX_SIDE = 16,  // rows of a register, and words of one of these
  PESTLE_AMX_BYTES = 64,
};

// A reduction axis as both operands are walked along it.
typedef struct pestle_amx_k_axis_t {
  uint32_t axis;
  int64_t extent;
  int64_t apart;  // elements of k from one of its steps to the next
} pestle_amx_k_axis_t;

typedef struct pestle_amx_t {
  pestle_product_t p;
  unsigned kind;  // MREG_MMA's immediate
  int64_t word;   // elements of k of a word
  int64_t step;   // elements of k of a register's row
  int64_t depth;  // whole steps; those that are too many are zeros
  bool joined;    // they lie behind each other over all axes, else the
                  // innermost axis is padded to whole steps
  uint32_t k_count;
  pestle_amx_k_axis_t k_axis[PESTLE_NEST_MAX_AXES];  // the innermost last
  uint32_t column;  // the one axis of the columns, of the reduction
  int32_t last_column;
  int64_t tile_rows, tile_columns;  // 16 or 32
  bool constant;                    // b is, and packed
  bool direct;  // registers are loaded from a, |a_stride| elements a row
  int64_t a_stride;
} pestle_amx_t;

// What the primitive says, in its order.
typedef struct pestle_amx_how_t {
  int64_t rows, columns;  // of a group
} pestle_amx_how_t;

pestle_amx_how_t pestle_amx_of(const pestle_nest_template_t* use);

// Whether stage |reduce| is one; what it reads of was inlined before.
bool pestle_amx_find(pestle_nest_t* nest, uint32_t reduce, pestle_amx_t* out);

static inline bool pestle_amx_fits(const pestle_amx_t* m,
                                   const pestle_amx_how_t* how) {
  return how->rows > 0 && how->rows % m->tile_rows == 0 && how->columns > 0 &&
         how->columns % m->tile_columns == 0 && how->rows <= 1 << 20 &&
         how->columns <= 1 << 20;
}
// Elements of a panel of b, of the packed constant, and of a row of a in
// scratch, which are so far apart that rows do not fall into one set of the
// cache.
static inline int64_t pestle_amx_panel(const pestle_amx_t* m) {
  return m->depth * m->tile_columns;
}
int64_t pestle_amx_panels(const pestle_amx_t* m);
int64_t pestle_amx_pitch(const pestle_amx_t* m);
// Bytes of scratch that a group needs.
int64_t pestle_amx_scratch(const pestle_amx_t* m, const pestle_amx_how_t* how);

#endif  // PESTLE_CODEGEN_TEMPLATE_AMX_AMX_H_
