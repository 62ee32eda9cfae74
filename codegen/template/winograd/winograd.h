// SPDX-License-Identifier: Apache-2.0
// The template winograd: a convolution of 3 x 3 taps by Winograd's algorithm.
//
//   winograd S h w m n l loops p r
//
// Groups have h x w tiles; products m rows and n vectors of l lanes; the last stage is in
// loops over a tile's results if |loops| is not 0, else a copy of it for each; a group
// makes p panels of features, a divisor of how many there are; tiles have r x r results.
//
// F(4x4, 3x3)
// multiplies 36 times for 16 results of a channel where taps take 144:
//
//   V = B^T d B          for each tile of 6 x 6 inputs and each channel
//   M[p] = V[p] U[p]     36 products over channels, U = G g G^T
//   Y = A^T M A          4 x 4 results
//
// and F(2x2, 3x3) 16 times for 2 x 2 results of 4 x 4 inputs, where taps take 36. Its weights are less than half as large, and it leaves less of the last tiles
// of a small image unused.
//
// S. Winograd, Arithmetic Complexity of Computations (1980), as A. Lavin and S.
// Gray use it (Fast Algorithms for Convolutional Neural Networks, 2015). The
// points are 0, 2/3, -2/3, 3/2, -3/2 and infinity: their error in f32 is the
// least of what was tried, 1.7 times that of the taps' own sum (64 channels,
// docs/adr/014); 0, 1, -1, 2, -2 has 4.7 times. Those of F(2x2, 3x3) are 0, 1, -1
// and infinity.
#ifndef PESTLE_CODEGEN_TEMPLATE_WINOGRAD_WINOGRAD_H_
#define PESTLE_CODEGEN_TEMPLATE_WINOGRAD_WINOGRAD_H_

#include "codegen/nest/nest.h"
#include "codegen/template/template.h"

enum {
  PESTLE_WINOGRAD_TAPS = 3,     // of the convolution, along each axis
  PESTLE_WINOGRAD_LARGE = 4,    // results of a tile along each axis: this
  PESTLE_WINOGRAD_SMALL = 2,    // or this many
  PESTLE_WINOGRAD_MOST = 6,     // inputs of a tile along each axis, at most
  PESTLE_WINOGRAD_VECTORS = 8,  // of a tile of products, at most
};

// Inputs along each axis, which are its factors too, of a tile of |results|.
static inline int64_t pestle_winograd_factors(int64_t results) {
  return results + PESTLE_WINOGRAD_TAPS - 1;
}

// The points of six that are not 0 and infinity, without their signs.
static const double PESTLE_WINOGRAD_NEAR = 2.0 / 3.0;
static const double PESTLE_WINOGRAD_FAR = 3.0 / 2.0;

// Row |i| of G: what tap |tap| counts in factor |i| of |count|, 4 or 6.
double pestle_winograd_weight(int64_t count, int64_t i, int64_t tap);

// What the primitive says, in its order.
typedef struct pestle_winograd_how_t {
  int64_t tiles_high, tiles_wide;  // of a group
  int64_t rows, vectors, lanes;    // of a tile of the products
  bool looped;                     // the last stage is, over a tile
  int64_t panels;                  // of features, that a group makes
  int64_t results;                 // of a tile along each axis
} pestle_winograd_how_t;

pestle_winograd_how_t pestle_winograd_of(const pestle_nest_template_t* use);
pestle_nest_template_t pestle_winograd_use(const pestle_template_t* row,
                                           uint32_t stage,
                                           const pestle_winograd_how_t* how);

// A convolution that the template takes. Axes are roots of the reduction |reduce| and, as
// |last_...|, of the last stage; those of one element are -1 there.
typedef struct pestle_winograd_t {
  uint32_t reduce, last;
  const pestle_expr_t* x;     // the input's side of the product
  const pestle_expr_t* read;  // of the sum, in the last stage
  uint32_t weights;           // tensor
  uint32_t batch_count;
  uint32_t batch[PESTLE_MAX_RANK];
  int32_t last_batch[PESTLE_MAX_RANK];
  uint32_t high, wide, tap_high, tap_wide, channels, features;
  int32_t last_high, last_wide, last_features;
  int64_t height, width, inputs, outputs, images;  // extents
  int64_t results, factors;                        // of a tile, along each axis
  int64_t products;                                // of a tile, of each channel
  int64_t tiles_high, tiles_wide;
  // Tiles [first, end) along each axis whose inputs are all inside; equal where
  // none is known to be.
  int64_t inside_high[2], inside_wide[2];
} pestle_winograd_t;

// Whether stage |reduce| is one, for tiles of |results|, 2 or 4, along each axis; what
// it reads of was inlined before.
bool pestle_winograd_find(pestle_nest_t* nest, uint32_t reduce, int64_t results,
                          pestle_winograd_t* out);

// Elements of the packed weights: panels of features, in each [products][channels].
int64_t pestle_winograd_elements(const pestle_winograd_t* w,
                                 const pestle_winograd_how_t* how);
// Whether |w| can have |how|.
bool pestle_winograd_fits(const pestle_winograd_t* w,
                          const pestle_winograd_how_t* how);

#endif  // PESTLE_CODEGEN_TEMPLATE_WINOGRAD_WINOGRAD_H_
