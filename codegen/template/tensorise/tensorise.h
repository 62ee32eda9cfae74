// SPDX-License-Identifier: Apache-2.0
// The template tensorise: a product of two matrices by a target's warpgroups (wgmma).
//
//   tensorise S m n g b
//
// Groups, at most g at once, make tiles of m x n sums in registers of warpgroups; each
// has b bytes of shared memory for the operands that are on their way.
#ifndef PESTLE_CODEGEN_TEMPLATE_TENSORISE_TENSORISE_H_
#define PESTLE_CODEGEN_TEMPLATE_TENSORISE_TENSORISE_H_

#include "codegen/nest/nest.h"
#include "codegen/template/template.h"

// What the primitive says, in its order.
typedef struct pestle_tensorise_how_t {
  int64_t rows, columns;  // of a tile
  int64_t groups;         // that run side by side
  int64_t group_bytes;    // of shared memory that one has
} pestle_tensorise_how_t;

pestle_tensorise_how_t pestle_tensorise_of(const pestle_nest_template_t* use);

// One operand: element (row, element of k) of matrix |batch| is at
// offset + row * row_stride + element of k * k_stride + batch * batch_stride.
typedef struct pestle_matrix_t {
  uint32_t tensor;
  int64_t offset, row_stride, k_stride, batch_stride;
} pestle_matrix_t;

// sums[batch, m, n] = +[k] a[batch, m, k] * b[batch, n, k], of one narrow float.
typedef struct pestle_tensorise_t {
  pestle_matrix_t a, b;
  int64_t batch, m, n, k;
  pestle_dtype_t dtype;
  uint32_t batch_axis, m_axis, n_axis;  // of the last stage; UINT32_MAX: none
} pestle_tensorise_t;

// Whether stage |reduce| is such a product, which the last stage reads where it
// was made, and its operands lie so that boxes of them can be copied: runs of
// 16 bytes, along k or rows.
bool pestle_tensorise_find(pestle_nest_t* nest, uint32_t reduce,
                           pestle_tensorise_t* out_product);

#endif  // PESTLE_CODEGEN_TEMPLATE_TENSORISE_TENSORISE_H_
