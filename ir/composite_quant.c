// SPDX-License-Identifier: Apache-2.0
// Quantisation as ONNX defines it: QuantizeLinear and DequantizeLinear.
#include "base/fault.h"
#include "base/half.h"
#include "ir/composite.h"

// Operand |index|, of rank 0 or along 'axis', in the shape of x.
static pv_t* parameter(pestle_steps_t* s, size_t index, pestle_dtype_t dtype) {
  pv_t* value = pestle_step_operand(s, index, dtype);
  int64_t axis = PESTLE_NODE_I64(s->node, axis);
  int rank = pestle_node_operand(s->node, index)->type->rank;
  return pestle_step_broadcast(s, value, (pestle_i64s_t){&axis, (size_t)rank});
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
pv_t* pestle_decompose_quantize(pestle_steps_t* s) {
  pestle_dtype_t dtype = pestle_node_operand(s->node, 2)->type->dtype;
  double low, high;
  range_of(dtype, &low, &high);
  pv_t* scale = parameter(s, 1, s->compute);
  pv_t* q = PESTLE_DIV(s, pestle_step_operand(s, 0, s->compute), scale);
  if (!pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    q = pestle_step1(s, PESTLE_OP_ROUND_EVEN, q);
  }
  q = PESTLE_ADD(s, q, parameter(s, 2, s->compute));
  pv_t* highest = pestle_step_splat(s, q, high);
  pv_t* lowest = pestle_step_splat(s, q, low);
  q = pestle_step3(s, PESTLE_OP_CLAMP, lowest, q, highest);
  return pestle_step_convert(s, q, dtype);
}

// dequantize(x) = (x - zero_point) * scale. The difference of up to 16 bits is
// exact in f32; that of i32 is taken in i32.
pv_t* pestle_decompose_dequantize(pestle_steps_t* s) {
  pestle_dtype_t from = pestle_node_operand(s->node, 0)->type->dtype;
  pestle_dtype_t to = pestle_node_operand(s->node, 1)->type->dtype;
  pestle_dtype_t inside = from == PESTLE_I32 ? PESTLE_I32 : s->compute;
  pv_t* zero_point = parameter(s, 2, inside);
  pv_t* d = pestle_step_operand(s, 0, inside);
  if (!PESTLE_FAULT(lost_zero_point)) d = PESTLE_SUB(s, d, zero_point);
  pv_t* scale = parameter(s, 1, s->compute);
  d = PESTLE_MUL(s, pestle_step_convert(s, d, s->compute), scale);
  return pestle_step_convert(s, d, to);
}
