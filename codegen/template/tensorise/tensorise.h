// SPDX-License-Identifier: Apache-2.0
// The template tensorise: a product of two matrices, or a convolution, by a target's
// warpgroups (wgmma).
//
//   tensorise S m n g b c p s
//   tensorise S m n g b c p s apart
//
// Groups, at most g at once, make tiles of m x n sums in registers of warpgroups; each
// has b bytes of shared memory for the operands that are on their way, in at most s
// slots. Clusters of c groups make c tiles below each other, whose columns they bring
// each other; clusters of p groups make one tile, a part of k each, which they add up in
// the parts' order. With `apart` the sums of each step of k are added to those before in
// registers, since units cut long sums of 8-bit floats short.
#ifndef PESTLE_CODEGEN_TEMPLATE_TENSORISE_TENSORISE_H_
#define PESTLE_CODEGEN_TEMPLATE_TENSORISE_TENSORISE_H_

#include "codegen/nest/nest.h"
#include "codegen/template/template.h"

// What the primitive says, in its order.
typedef struct pestle_tensorise_how_t {
  int64_t rows, columns;  // of a tile
  int64_t groups;         // that run side by side
  int64_t group_bytes;    // of shared memory that one has
  int64_t cluster, parts;
  int64_t slots;
  bool apart;
} pestle_tensorise_how_t;

pestle_tensorise_how_t pestle_tensorise_of(const pestle_nest_template_t* use);

// One operand: element (row, element of k) of matrix |batch| is at
// offset + row * row_stride + element of k * k_stride + batch * batch_stride.
typedef struct pestle_matrix_t {
  uint32_t tensor;
  int64_t offset, row_stride, k_stride, batch_stride;
} pestle_matrix_t;

enum { PESTLE_WINDOW_DIMS = 3 };

// One spatial dim of a convolution: tap t of the window at position o is place
// low + o * step + t * dilation of |extent|; outside of these is zero.
typedef struct pestle_window_dim_t {
  int64_t extent,
      stride;  // of places: how many; elements of a from one to the next
  int64_t positions, taps;
  int64_t low, step, dilation;
  int64_t b_stride;  // elements of b from one tap to the next; may be negative
} pestle_window_dim_t;

// Rows of a convolution's operand a: windows of images, whose elements of k are taps,
// and for each tap all channels, which lie side by side.
typedef struct pestle_window_t {
  uint32_t rank;  // spatial dims; 0: a is a matrix
  pestle_window_dim_t dim[PESTLE_WINDOW_DIMS];  // fastest first
  int64_t images, image_stride, channels;
} pestle_window_t;

// sums[batch, m, n] = +[k] a[batch, m, k] * b[batch, n, k], of one narrow float. Of
// bytes and 8-bit floats, all that counts elements of k or of operands counts pairs, which
// move as |dtype| does, and both lie along k; of f32, as tf32, it counts halves.
typedef struct pestle_tensorise_t {
  pestle_matrix_t a, b;
  pestle_window_t window;
  int64_t batch, m, n, k;
  pestle_dtype_t dtype, sums;
  uint32_t how;                 // WGMMA's bits of its operands' types
  uint32_t batch_axis, n_axis;  // of the last stage; UINT32_MAX: none
  // Of the last stage, counted together as rows, the last one fastest.
  uint32_t m_count, m_axis[PESTLE_WINDOW_DIMS + 1];
  int64_t m_extent[PESTLE_WINDOW_DIMS + 1];
  // By dim of the sums: the last stage's axis there, -1: it has one element.
  uint32_t sum_rank;
  int32_t sum_axis[PESTLE_WINDOW_DIMS + 2];
} pestle_tensorise_t;

// Elements of k that one copy brings.
enum { PESTLE_TENSORISE_DEPTH = 64 };
// Of a tile whose steps are summed apart, at most.
enum {
  PESTLE_TENSORISE_APART_SUMS = 128 * 192,
  PESTLE_TENSORISE_APART_COLUMNS = 192,
};

// Copies of each operand that a tile takes, one behind the other along k.
int64_t pestle_tensorise_steps(const pestle_tensorise_t* product);

// Rows of a tile of a, of |rows|, that are copied: of few the rest are zeros from the
// beginning.
int64_t pestle_tensorise_copied_rows(const pestle_tensorise_t* product,
                                     int64_t rows);

// Whether stage |reduce| is such a product, which the last stage reads where it
// was made, and its operands lie so that boxes of them can be copied: runs of
// 16 bytes, along k or rows.
bool pestle_tensorise_find(pestle_nest_t* nest, uint32_t reduce,
                           pestle_tensorise_t* out_product);

// --- match_window.c ---

// The same of a convolution, of which is known that it is a sum of products in f32.
bool pestle_tensorise_find_window(pestle_nest_t* nest, uint32_t reduce,
                                  pestle_tensorise_t* out_product);

#endif  // PESTLE_CODEGEN_TEMPLATE_TENSORISE_TENSORISE_H_
