// SPDX-License-Identifier: Apache-2.0
// Quantisation as ONNX defines it: QuantizeLinear and DequantizeLinear.
#include "base/fault.h"
#include "base/half.h"
#include "ir/composite.h"

// Operand |index|, of rank 0 or along 'axis', in the shape of x.
static pv_t* parameter(pestle_formula_t* f, size_t index,
                       pestle_dtype_t dtype) {
  pv_t* value = pestle_f_operand(f, index, dtype);
  int64_t axis = PESTLE_NODE_I64(f->of->node, axis);
  int rank = pestle_node_operand(f->of->node, index)->type->rank;
  return pestle_f_to_shape(f, value, (pestle_i64s_t){&axis, (size_t)rank});
}

static void range_of(pestle_dtype_t dtype, double* out_low, double* out_high) {
  int bits = pestle_dtype_info(dtype)->bits;
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    *out_high = pestle_float_max(dtype);
    *out_low = -*out_high;
  } else if (pestle_dtype_is(dtype, PESTLE_KIND_SIGNED)) {
    *out_high = (double)((INT64_C(1) << (bits - 1)) - 1);
    *out_low = -*out_high - 1;
  } else {
    *out_high = (double)((INT64_C(1) << bits) - 1);
    *out_low = 0;
  }
}

// quantize(x) = convert(clamp(low, round(x / scale) + zero_point, high));
// an f8 is not rounded to an integer first.
pv_t* pestle_decompose_quantize(pestle_formula_t* f) {
  pestle_dtype_t dtype = pestle_node_operand(f->of->node, 2)->type->dtype;
  double low, high;
  range_of(dtype, &low, &high);
  pv_t* scale = parameter(f, 1, f->compute);
  pv_t* q = pestle_f_divide(f, pestle_f_operand(f, 0, f->compute), scale);
  if (!pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    q = pestle_f_round_nearest_even(f, q);
  }
  q = pestle_f_add(f, q, parameter(f, 2, f->compute));
  pv_t* highest = pestle_f_splat(f, q, high);
  pv_t* lowest = pestle_f_splat(f, q, low);
  q = pestle_f_clamp(f, lowest, q, highest);
  return pestle_f_convert(f, q, dtype);
}

// dequantize(x) = (x - zero_point) * scale. The difference of up to 16 bits is
// exact in f32; that of i32 is taken in i32.
pv_t* pestle_decompose_dequantize(pestle_formula_t* f) {
  pestle_dtype_t from = pestle_node_operand(f->of->node, 0)->type->dtype;
  pestle_dtype_t to = pestle_node_operand(f->of->node, 1)->type->dtype;
  pestle_dtype_t inside = from == PESTLE_I32 ? PESTLE_I32 : f->compute;
  pv_t* zero_point = parameter(f, 2, inside);
  pv_t* d = pestle_f_operand(f, 0, inside);
  if (!PESTLE_FAULT(lost_zero_point)) d = pestle_f_subtract(f, d, zero_point);
  pv_t* scale = parameter(f, 1, f->compute);
  d = pestle_f_multiply(f, pestle_f_convert(f, d, f->compute), scale);
  return pestle_f_convert(f, d, to);
}
