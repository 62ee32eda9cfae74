// SPDX-License-Identifier: Apache-2.0
// Quantisation. Scales and zero points become rank 0, or lists along an axis.
#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

// A parameter of |x|: a list with one number an element of |axis|, or a scalar.
static pestle_value_t* parameter(pestle_onnx_call_t* call,
                                 pestle_value_t* value, bool per_axis) {
  if (!value) return NULL;
  int64_t count = pestle_type_count(value->type);
  if (per_axis) {
    return pestle_f_reshape(&call->f, value, 1, &count);
  }
  return pestle_f_reshape(&call->f, value, 0, NULL);
}

// Whether |scale| has a number for each element of an axis of |x|.
static bool is_per_axis(pestle_onnx_call_t* call, const pestle_value_t* x,
                        const pestle_value_t* scale, int64_t* axis) {
  if (!scale || pestle_type_count(scale->type) == 1) return false;
  *axis = pestle_onnx_axis(call, *axis, rank_of(x));
  if (rank_of(scale) != 1) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its scale has rank %d; it should be a number, a list "
                     "along an axis or, with a block_size, have the rank of "
                     "its input",
                     rank_of(scale));
  }
  return true;
}

// --- Blocks: a parameter for each |block_size| elements of an axis ---

static bool is_blocked(pestle_onnx_call_t* call, const pestle_value_t* x,
                       const pestle_value_t* scale) {
  return pestle_onnx_int(call, "block_size", 0) != 0 &&
         rank_of(scale) == rank_of(x);
}

// |value| with each element repeated for its block, in the shape of |x|.
static pestle_value_t* over_blocks(pestle_onnx_call_t* call,
                                   pestle_value_t* value,
                                   const pestle_value_t* x) {
  int64_t axis =
      pestle_onnx_axis(call, pestle_onnx_int(call, "axis", 1), rank_of(x));
  int64_t block = pestle_onnx_int(call, "block_size", 0);
  if (!value || call->f.status) return NULL;
  int64_t extent = pestle_onnx_dim(x, axis);
  bool fits = rank_of(value) == rank_of(x) && block > 0 &&
              extent <= PESTLE_ONNX_MAX_INDICES;
  for (int32_t i = 0; fits && i < rank_of(x); ++i) {
    int64_t whole = pestle_onnx_dim(x, i);
    int64_t wanted = i == axis ? whole / block + (whole % block != 0) : whole;
    fits = pestle_onnx_dim(value, i) == wanted;
  }
  if (!fits) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "its scale or zero point does not have a number "
                            "for each block of %lld elements along axis %lld",
                            (long long)block, (long long)axis);
  }
  int64_t* indices =
      pestle_onnx_scratch(call, (size_t)(extent + 1) * sizeof(int64_t));
  for (int64_t i = 0; indices && i < extent; ++i)
    indices[i] = i / block;
  return indices
             ? pestle_onnx_take_list(call, value, indices, (size_t)extent, axis)
             : NULL;
}

// Integers from x / scale + zero point.
static pestle_value_t* quantize_blocks(pestle_onnx_call_t* call,
                                       pestle_value_t* x, pestle_value_t* scale,
                                       pestle_value_t* zero,
                                       pestle_dtype_t dtype) {
  pestle_type_t scalar = {.dtype = dtype};
  pestle_dtype_t work = dtype_of(x) == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
  scale = pestle_onnx_convert(call, over_blocks(call, scale, x), work);
  x = quotient(call, pestle_onnx_convert(call, x, work), scale);
  x = pestle_f_round_nearest_even(&call->f, x);
  if (zero) {
    x = add(call, x,
            pestle_onnx_convert(call, over_blocks(call, zero, x), work));
  }
  pestle_value_t* low = pestle_onnx_lowest(call, &scalar);
  pestle_value_t* high = pestle_onnx_highest(call, &scalar);
  x = pestle_f_maximum(&call->f, x, pestle_onnx_convert(call, low, work));
  x = pestle_f_minimum(&call->f, x, pestle_onnx_convert(call, high, work));
  return pestle_onnx_convert(call, x, dtype);
}

static pestle_value_t* dequantize_blocks(pestle_onnx_call_t* call,
                                         pestle_value_t* x,
                                         pestle_value_t* scale,
                                         pestle_value_t* zero) {
  pestle_dtype_t dtype = dtype_of(scale);
  pestle_dtype_t whole =
      pestle_dtype_is(dtype_of(x), PESTLE_KIND_INT) ? PESTLE_I32 : dtype;
  scale = over_blocks(call, scale, x);
  if (zero) zero = over_blocks(call, zero, x);
  x = pestle_onnx_convert(call, x, whole);
  if (zero) x = sub(call, x, pestle_onnx_convert(call, zero, whole));
  return mul(call, pestle_onnx_convert(call, x, dtype), scale);
}

static pestle_value_t* composite(pestle_onnx_call_t* call, pestle_op_t op,
                                 pestle_value_t* x, pestle_value_t* scale,
                                 pestle_value_t* zero, int64_t axis) {
  pestle_attr_t attr = {
      .name = PESTLE_ATTR_axis, .kind = PESTLE_ATTR_KIND_I64, .as.i64 = axis};
  return pestle_f_make(&call->f, op, (pestle_value_t*[]){x, scale, zero}, 3,
                       &attr, 1, NULL);
}

pestle_value_t* pestle_onnx_quantize(pestle_onnx_call_t* call,
                                     pestle_value_t* x, pestle_value_t* scale,
                                     pestle_value_t* zero_point,
                                     pestle_dtype_t dtype, int64_t axis) {
  bool per_axis = is_per_axis(call, x, scale, &axis);
  scale = parameter(call, scale, per_axis);
  if (!scale) return NULL;
  pestle_type_t type = *scale->type;
  type.dtype = dtype;
  pestle_value_t* zero = zero_point ? parameter(call, zero_point, per_axis)
                                    : pestle_onnx_splat(call, &type, 0);
  if (dtype_of(scale) != dtype_of(x)) {
    scale = pestle_onnx_convert(call, scale, dtype_of(x));
  }
  return composite(call, PESTLE_OP_QUANTIZE, x, scale, zero,
                   per_axis ? axis : 0);
}

// f8 results are x / scale, saturated unless the node says otherwise.
static pestle_value_t* quantize_to_float(pestle_onnx_call_t* call,
                                         pestle_value_t* x,
                                         pestle_value_t* scale,
                                         pestle_dtype_t dtype, int64_t axis) {
  bool per_axis = is_per_axis(call, x, scale, &axis);
  scale = parameter(call, scale, per_axis);
  if (per_axis) scale = pestle_onnx_along(call, scale, x, axis);
  return pestle_onnx_cast(call, quotient(call, x, scale), dtype);
}

void pestle_onnx_import_quantize_linear(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *zero = pestle_onnx_input(call, 2);
  int64_t type = pestle_onnx_int(call, "output_dtype", 0);
  pestle_dtype_t dtype = zero   ? dtype_of(zero)
                         : type ? pestle_onnx_dtype(type)
                                : PESTLE_U8;
  if (dtype == PESTLE_NONE || pestle_onnx_int(call, "precision", 0)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute 'output_dtype' is %s, or it has a precision",
                     pestle_onnx_dtype_name(type));
    return;
  }
  if (pestle_dtype_is(dtype_of(x), PESTLE_KIND_INT)) {
    x = pestle_onnx_convert(call, x, PESTLE_F32);
  }
  int64_t axis = pestle_onnx_int(call, "axis", 1);
  pestle_value_t* scale = call->inputs[1];
  if (is_blocked(call, x, scale) && pestle_dtype_is(dtype, PESTLE_KIND_INT)) {
    call->outputs[0] = quantize_blocks(call, x, scale, zero, dtype);
    return;
  }
  call->outputs[0] =
      pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)
          ? quantize_to_float(call, x, scale, dtype, axis)
          : pestle_onnx_quantize(call, x, scale, zero, dtype, axis);
}

static pestle_value_t* dequantize(pestle_onnx_call_t* call, pestle_value_t* x,
                                  pestle_value_t* scale,
                                  pestle_value_t* zero_point, int64_t axis) {
  if (is_blocked(call, x, scale)) {
    return dequantize_blocks(call, x, scale, zero_point);
  }
  bool per_axis = is_per_axis(call, x, scale, &axis);
  scale = parameter(call, scale, per_axis);
  if (!scale) return NULL;
  pestle_type_t type = *scale->type;
  type.dtype = dtype_of(x);
  pestle_value_t* zero = zero_point ? parameter(call, zero_point, per_axis)
                                    : pestle_onnx_splat(call, &type, 0);
  return composite(call, PESTLE_OP_DEQUANTIZE, x, scale, zero,
                   per_axis ? axis : 0);
}

void pestle_onnx_import_dequantize_linear(pestle_onnx_call_t* call) {
  pestle_value_t* y =
      dequantize(call, call->inputs[0], call->inputs[1],
                 pestle_onnx_input(call, 2), pestle_onnx_int(call, "axis", 1));
  int64_t type = pestle_onnx_int(call, "output_dtype", 0);
  if (type) {
    pestle_dtype_t dtype = pestle_onnx_dtype(type);
    if (dtype == PESTLE_NONE) {
      pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                       "attribute 'output_dtype' is %s",
                       pestle_onnx_dtype_name(type));
      return;
    }
    y = pestle_onnx_convert(call, y, dtype);
  }
  call->outputs[0] = y;
}

// |op| over what is real of |x|: |axes| are all.
static pestle_value_t* reduce_real(pestle_onnx_call_t* call, pestle_op_t op,
                                   pestle_value_t* x, const int64_t* axes) {
  x = pestle_onnx_fill_unreal(call, x, UINT32_MAX,
                              pestle_f_identity(&call->f, op, dtype_of(x)));
  return x ? pestle_onnx_reduce(call, op, x, axes, (size_t)rank_of(x), false)
           : NULL;
}

// scale = (max(x, 0) - min(x, 0)) / 255, zero point = round(-min / scale).
void pestle_onnx_import_dynamic_quantize_linear(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  int64_t axes[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < rank_of(x); ++i)
    axes[i] = i;
  pestle_value_t* top =
      pestle_onnx_binary_f(call, PESTLE_OP_MAXIMUM,
                           reduce_real(call, PESTLE_OP_MAXIMUM, x, axes), 0);
  pestle_value_t* bottom =
      pestle_onnx_binary_f(call, PESTLE_OP_MINIMUM,
                           reduce_real(call, PESTLE_OP_MINIMUM, x, axes), 0);
  pestle_value_t* scale =
      pestle_onnx_binary_f(call, PESTLE_OP_DIVIDE, sub(call, top, bottom), 255);
  // All zeros: any scale will do, but not zero.
  pestle_value_t* one = splat_like(call, scale, 1);
  pestle_value_t* divisor = pestle_f_select(
      &call->f, pestle_onnx_binary_f(call, PESTLE_OP_EQ, scale, 0), one, scale);
  pestle_value_t* zero =
      quotient(call, pestle_f_negate(&call->f, bottom), divisor);
  zero = pestle_f_round_nearest_even(&call->f, zero);
  zero = pestle_onnx_binary_f(call, PESTLE_OP_MINIMUM, zero, 255);
  zero = pestle_onnx_convert(call, zero, PESTLE_U8);
  call->outputs[0] = pestle_onnx_quantize(call, x, divisor, zero, PESTLE_U8, 0);
  pestle_onnx_copy_real(call, call->outputs[0], x);
  if (call->output_count > 1) call->outputs[1] = scale;
  if (call->output_count > 2) call->outputs[2] = zero;
}

// --- Products of quantised tensors ---

// |x| as i32 without its zero point, which is a scalar or a list along |axis|.
static pestle_value_t* centred(pestle_onnx_call_t* call, pestle_value_t* x,
                               pestle_value_t* zero, int64_t axis) {
  pestle_value_t* wide = pestle_onnx_convert(call, x, PESTLE_I32);
  if (!zero || !wide) return wide;
  zero = pestle_onnx_convert(call, zero, PESTLE_I32);
  if (!zero) return NULL;
  if (pestle_type_count(zero->type) == 1) {
    zero = pestle_f_reshape(&call->f, zero, 0, NULL);
  } else if (rank_of(zero) == 1) {
    zero = pestle_onnx_along(call, zero, wide, axis);
  }
  return sub(call, wide, zero);
}

static pestle_value_t* multiply_integers(pestle_onnx_call_t* call, void* self,
                                         pestle_value_t* a, pestle_value_t* b) {
  (void)self;
  return pestle_onnx_matmul(call, a, b, PESTLE_I32);
}

// The product of inputs |a| and |b| without their zero points, inputs |a_zero| and
// |b_zero|. How long the two are may be what only a run tells.
static pestle_value_t* product_of(pestle_onnx_call_t* call, size_t a,
                                  size_t a_zero, size_t b, size_t b_zero) {
  for (size_t i = 0; i < call->input_count; ++i) {
    if (i != a && i != b && !pestle_onnx_allow_real(call, i, 0)) return NULL;
  }
  pestle_value_t *x = call->inputs[a], *y = call->inputs[b];
  pestle_value_t* wide[] = {
      centred(call, x, pestle_onnx_input(call, a_zero), rank_of(x) - 2),
      centred(call, y, pestle_onnx_input(call, b_zero), rank_of(y) - 1)};
  pestle_onnx_copy_real(call, wide[0], x);
  pestle_onnx_copy_real(call, wide[1], y);
  return pestle_onnx_matmul_real(call, wide[0], wide[1], multiply_integers,
                                 NULL);
}

void pestle_onnx_import_matmul_integer(pestle_onnx_call_t* call) {
  call->outputs[0] = product_of(call, 0, 2, 1, 3);
}

// i32 sums in units of |scale_a| |scale_b|, requantised to the output's type.
static pestle_value_t* requantize(pestle_onnx_call_t* call,
                                  pestle_value_t* sums, pestle_value_t* scale_a,
                                  pestle_value_t* scale_b,
                                  pestle_value_t* scale_y,
                                  pestle_value_t* zero_y, int64_t axis) {
  pestle_dtype_t dtype = dtype_of(scale_y);
  pestle_value_t* scale = mul(call, scale_a, scale_b);
  if (!scale || !sums) return NULL;
  if (pestle_type_count(scale->type) == 1) {
    scale = pestle_f_reshape(&call->f, scale, 0, NULL);
  } else if (rank_of(scale) == 1) {
    scale = pestle_onnx_along(call, scale, sums, axis);
  }
  pestle_value_t* real =
      mul(call, pestle_onnx_convert(call, sums, dtype), scale);
  return pestle_onnx_quantize(call, real, scale_y, zero_y, dtype_of(zero_y), 0);
}

void pestle_onnx_import_qlinear_matmul(pestle_onnx_call_t* call) {
  pestle_value_t** in = call->inputs;
  pestle_value_t* sums = product_of(call, 0, 2, 3, 5);
  if (!sums) return;
  pestle_value_t* y =
      requantize(call, sums, in[1], in[4], in[6], in[7], rank_of(sums) - 1);
  pestle_onnx_copy_real(call, y, sums);
  call->outputs[0] = y;
}

void pestle_onnx_import_qlinear_conv(pestle_onnx_call_t* call) {
  pestle_value_t** in = call->inputs;
  pestle_value_t* bias = pestle_onnx_input(call, 8);
  pestle_value_t* x = centred(call, in[0], in[2], 1);
  pestle_value_t* w = centred(call, in[3], in[5], 0);
  pestle_value_t* sums = pestle_onnx_conv_of(call, x, w);
  if (bias) sums = add(call, sums, pestle_onnx_along(call, bias, sums, 1));
  call->outputs[0] = requantize(call, sums, in[1], in[4], in[6], in[7], 1);
}
