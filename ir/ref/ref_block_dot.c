// SPDX-License-Identifier: Apache-2.0
// A product with weights of a few bits from its definition, one element at a time, in f64.
#include "ir/ref/ref_internal.h"

enum { X, W, SCALES, ZEROS };

static double real_at(const pestle_ref_call_t* call, size_t operand,
                      int64_t at) {
  pestle_dtype_t dtype = pestle_ref_operand_type(call, operand)->dtype;
  size_t size = pestle_dtype_size(dtype);
  double value;
  // Zero points may be bytes; all else is of floats.
  if (dtype == PESTLE_U8) return ((const uint8_t*)call->operands[operand])[at];
  pestle_ref_load_f64(dtype,
                      (const char*)call->operands[operand] + (size_t)at * size,
                      1, &value);
  return value;
}

// Number |i| of row |n| of the weights, of |bytes| bytes a row.
static int weight_at(const pestle_ref_call_t* call, int64_t n, int64_t i,
                     int64_t bytes, int64_t bits) {
  const uint8_t* w = call->operands[W];
  int64_t at = i * bits;
  return w[n * bytes + at / 8] >> at % 8 & ((1 << bits) - 1);
}

pestle_status_t pestle_ref_block_dot(const pestle_ref_call_t* call) {
  const pestle_type_t *x = pestle_ref_operand_type(call, X),
                      *w = pestle_ref_operand_type(call, W),
                      *scales = pestle_ref_operand_type(call, SCALES),
                      *result = pestle_ref_result_type(call, 0);
  int64_t bits = PESTLE_NODE_I64(call->node, bits);
  int64_t block = PESTLE_NODE_I64(call->node, block);
  int64_t rows = w->dims[0], bytes = w->dims[1], k = x->dims[x->rank - 1];
  int64_t count = pestle_type_count(result), blocks = scales->dims[1];
  size_t size = pestle_dtype_size(result->dtype);
  bool has_zeros = call->node->operand_count > ZEROS;
  for (int64_t e = 0; e < count; ++e) {
    int64_t m = e / rows, n = e % rows;
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      int64_t at = n * blocks + i / block;
      double zero =
          has_zeros ? real_at(call, ZEROS, at) : (double)(1 << (bits - 1));
      double value = weight_at(call, n, i, bytes, bits) - zero;
      sum += real_at(call, X, m * k + i) * value * real_at(call, SCALES, at);
    }
    pestle_ref_store_f64(result->dtype, &sum, 1,
                         (char*)call->results[0] + (size_t)e * size);
  }
  return NULL;
}
