// SPDX-License-Identifier: Apache-2.0
// The row tensorise: a product of two matrices by a target's matrix units.
#ifndef PESTLE_CODEGEN_TEMPLATE_TENSORISE_TENSORISE_H_
#define PESTLE_CODEGEN_TEMPLATE_TENSORISE_TENSORISE_H_

#include "codegen/nest/nest.h"

// One operand: element (row, tap) of matrix |batch| is at
// offset + row * row_stride + tap * tap_stride + batch * batch_stride.
typedef struct pestle_matrix_t {
  uint32_t tensor;
  int64_t offset, row_stride, tap_stride, batch_stride;
} pestle_matrix_t;

// sums[batch, m, n] = +[k] a[batch, m, k] * b[batch, n, k], of one narrow float.
typedef struct pestle_tensorise_t {
  pestle_matrix_t a, b;
  int64_t batch, m, n, k;
  pestle_dtype_t dtype;
  uint32_t batch_axis, m_axis, n_axis;  // of the last stage; UINT32_MAX: none
} pestle_tensorise_t;

// Whether stage |fold| is such a product, which the last stage reads where it
// was made, and its operands lie so that boxes of them can be copied: runs of
// 16 bytes, along taps or rows.
bool pestle_tensorise_find(pestle_nest_t* nest, uint32_t fold,
                           pestle_tensorise_t* out_product);

// tensorise S m n: sums of m x n elements a group, in registers of warpgroups.
// INVALID_ARGUMENT: no such product, or no such tile.
PESTLE_NODISCARD pestle_status_t pestle_tensorise_apply(pestle_nest_t* nest,
                                                        uint32_t stage,
                                                        int64_t m, int64_t n);

#endif  // PESTLE_CODEGEN_TEMPLATE_TENSORISE_TENSORISE_H_
