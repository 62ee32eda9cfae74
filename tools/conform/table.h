// SPDX-License-Identifier: Apache-2.0
// The structured ops' table: which dtypes and variants each takes, and shapes.
#ifndef PESTLE_TOOLS_CONFORM_TABLE_H_
#define PESTLE_TOOLS_CONFORM_TABLE_H_

#include "tools/conform/instance.h"
#include "tools/conform/ops_direct.h"
#include "tools/conform/ops_move.h"
#include "tools/conform/ops_reduce.h"

static const shape_t shapes[] = {
    {"scalar", 0, {0}},
    {"empty inside", 3, {3, 0, 5}},
    {"empty last", 2, {4, 0}},
    {"ones", 3, {1, 1, 1}},
    {"odd", 3, {3, 5, 7}},
    {"prime", 2, {13, 37}},
    {"ones between", 4, {2, 1, 9, 1}},
    {"one axis", 1, {259}},
    // Vectors with tails, and more than one group of every sketch.
    {"large", 3, {9, 67, 131}},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]), LARGE = SHAPES - 1 };

enum {
  ANY_KIND = REAL_KINDS | PESTLE_KIND_COMPLEX,
  NUMBERS = PESTLE_KIND_REAL | PESTLE_KIND_COMPLEX,
  FLOATS = PESTLE_KIND_FLOAT,
};

// clang-format off
static const row_t rows[] = {
    {PESTLE_OP_CONSTANT, ANY_KIND, 4, build_constant},
    {PESTLE_OP_IOTA, NUMBERS, 3, build_iota},
    {PESTLE_OP_CONVERT, ANY_KIND, 2, build_convert},
    {PESTLE_OP_BITCAST_CONVERT, ANY_KIND, 7, build_bitcast},
    {PESTLE_OP_BROADCAST_IN_DIM, ANY_KIND, 4, build_broadcast},
    {PESTLE_OP_EXTENT, ANY_KIND, 3, build_extent},
    {PESTLE_OP_RESHAPE, ANY_KIND, 3, build_reshape},
    {PESTLE_OP_TRANSPOSE, ANY_KIND, 4, build_transpose},
    {PESTLE_OP_SLICE, ANY_KIND, 4, build_slice},
    {PESTLE_OP_REVERSE, ANY_KIND, 3, build_reverse},
    {PESTLE_OP_PAD, ANY_KIND, 4, build_pad},
    {PESTLE_OP_CONCATENATE, ANY_KIND, 4, build_concatenate},
    {PESTLE_OP_DYNAMIC_SLICE, ANY_KIND, 3, build_dynamic_slice},
    {PESTLE_OP_DYNAMIC_UPDATE_SLICE, ANY_KIND, 3, build_dynamic_update_slice},
    {PESTLE_OP_GATHER, ANY_KIND, 4, build_gather},
    {PESTLE_OP_REDUCE, ANY_KIND, REDUCE_VARIANTS, build_reduce},
    {PESTLE_OP_REDUCE_WINDOW, ANY_KIND, 3 * WINDOWS, build_reduce_window},
    {PESTLE_OP_DOT_GENERAL, NUMBERS, DOTS, build_dot},
    {PESTLE_OP_CONVOLUTION, NUMBERS, CONVS, build_conv},
    {PESTLE_OP_WHILE, ANY_KIND, 3, build_while},
    {PESTLE_OP_SCAN, ANY_KIND, 4, build_scan},
    {PESTLE_OP_IF, ANY_KIND, 2, build_if},
    {PESTLE_OP_CASE, ANY_KIND, 4, build_case},
    {PESTLE_OP_CALL, ANY_KIND, 1, build_call},
    {PESTLE_OP_OPTIMIZATION_BARRIER, ANY_KIND, 1, build_barrier},
    {PESTLE_OP_FUSION, ANY_KIND, 2, build_fusion},
    {PESTLE_OP_CUSTOM_CALL, REAL_KINDS, 2, build_custom_call},
    {PESTLE_OP_CUSTOM, ANY_KIND, 2, build_custom},
    {PESTLE_OP_SOFTMAX, FLOATS, AXIS_CHOICES, build_soft},
    {PESTLE_OP_LOG_SOFTMAX, FLOATS, AXIS_CHOICES, build_soft},
    {PESTLE_OP_LOGSUMEXP, FLOATS, AXIS_CHOICES, build_soft},
    {PESTLE_OP_LAYER_NORM, FLOATS, AXIS_CHOICES, build_norm},
    {PESTLE_OP_RMS_NORM, FLOATS, AXIS_CHOICES, build_norm},
    {PESTLE_OP_GELU, FLOATS, 2, build_activation},
    {PESTLE_OP_SILU, FLOATS, 1, build_activation},
    {PESTLE_OP_HARD_SIGMOID, FLOATS, 1, build_activation},
    {PESTLE_OP_QUANTIZE, FLOATS, 2 * QUANTIZED, build_quantisation},
    {PESTLE_OP_DEQUANTIZE, FLOATS, 2 * QUANTIZED, build_quantisation},
    {PESTLE_OP_ATTENTION, FLOATS, ATTENTIONS, build_attention},
    {PESTLE_OP_SORT, REAL_KINDS, 4, build_sort},
    {PESTLE_OP_SORT_FIRST, REAL_KINDS, 3, build_sort_first},
    {PESTLE_OP_SUPPRESS, FLOATS, 4, build_suppress},
    {PESTLE_OP_PLACES, PESTLE_KIND_BOOL, 2, build_places},
    {PESTLE_OP_SCATTER, REAL_KINDS, 5, build_scatter},
    {PESTLE_OP_SELECT_AND_SCATTER, REAL_KINDS, 4, build_select},
    {PESTLE_OP_CHOLESKY, FLOATS, 2, build_cholesky},
    {PESTLE_OP_TRIANGULAR_SOLVE, FLOATS, 8, build_solve},
    {PESTLE_OP_MAP, REAL_KINDS, 1, build_map},
    {PESTLE_OP_BATCH_NORM_INFERENCE, FLOATS, 2, build_batch_norm},
    {PESTLE_OP_REDUCE_PRECISION, FLOATS, 6, build_reduce_precision},
    {PESTLE_OP_COMPLEX, FLOATS, 1, build_complex},
    {PESTLE_OP_REAL, PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX, 1, build_part},
    {PESTLE_OP_FFT, PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX, FFTS, build_fft},
    {PESTLE_OP_BATCH_NORM_TRAINING, FLOATS, 2, build_batch_training},
    {PESTLE_OP_BATCH_NORM_GRAD, FLOATS, 2, build_batch_training},
    {PESTLE_OP_LU, FLOATS, 4, build_lu},
    {PESTLE_OP_SOLVE, FLOATS, 2, build_lu},
    {PESTLE_OP_INVERSE, FLOATS, 2, build_lu},
    {PESTLE_OP_QR, FLOATS, 4, build_factors},
    {PESTLE_OP_EIGH, FLOATS, 2, build_factors},
    {PESTLE_OP_SVD, FLOATS, 4, build_factors},
    {PESTLE_OP_RNG_BIT_GENERATOR, PESTLE_KIND_INT, 4, build_rng_bits},
    {PESTLE_OP_RNG, PESTLE_KIND_REAL, 2, build_rng},
    {PESTLE_OP_CUMULATIVE, ANY_KIND, CUMULATIVES, build_cumulative},
    {PESTLE_OP_ADAPTIVE_AVERAGE_POOL, FLOATS, POOLS, build_adaptive},
    {PESTLE_OP_ADAPTIVE_MAX_POOL, PESTLE_KIND_REAL, POOLS, build_adaptive},
    {PESTLE_OP_IMAG, PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX, 1, build_part},
    {PESTLE_OP_ATTENTION_GRAD, FLOATS, ATTENTIONS, build_attention_grad},
    {PESTLE_OP_NORM_GRAD, FLOATS, 2, build_norm_grad},
    {PESTLE_OP_BLOCK_DOT, FLOATS, BLOCK_DOTS, build_block_dot},
};
// clang-format on
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

#endif  // PESTLE_TOOLS_CONFORM_TABLE_H_
