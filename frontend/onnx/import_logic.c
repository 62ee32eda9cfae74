// SPDX-License-Identifier: Apache-2.0
// Comparisons, booleans, bits and conversions.
#include <math.h>

#include "base/half.h"
#include "frontend/onnx/ops.h"

#define BINARY(fn, OP)                                             \
  void pestle_onnx_import_##fn(pestle_onnx_call_t* call) {         \
    call->outputs[0] =                                             \
        pestle_f_binary(&call->f, PESTLE_OP_##OP, call->inputs[0], \
                        pestle_onnx_second_operand(call));         \
  }
BINARY(and, AND)
BINARY(or, OR)
BINARY(xor, XOR)
BINARY(equal, EQ)
BINARY(greater, GT)
BINARY(greater_or_equal, GE)
BINARY(less, LT)
BINARY(less_or_equal, LE)

void pestle_onnx_import_not(pestle_onnx_call_t* call) {
  call->outputs[0] = pestle_f_not(&call->f, call->inputs[0]);
}

void pestle_onnx_import_is_nan(pestle_onnx_call_t* call) {
  call->outputs[0] = pestle_f_is_nan(&call->f, call->inputs[0]);
}

void pestle_onnx_import_is_inf(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  bool negative = pestle_onnx_int(call, "detect_negative", 1) != 0;
  bool positive = pestle_onnx_int(call, "detect_positive", 1) != 0;
  pestle_type_t type = *pestle_onnx_type(x);
  type.dtype = PESTLE_I1;
  if (!negative && !positive) {
    call->outputs[0] = pestle_onnx_splat(call, &type, 0);
    return;
  }
  if (negative && positive) x = pestle_f_abs(&call->f, x);
  call->outputs[0] = pestle_onnx_binary_f(
      call, PESTLE_OP_EQ, x, positive ? (double)INFINITY : -(double)INFINITY);
}

void pestle_onnx_import_bit_shift(pestle_onnx_call_t* call) {
  pestle_str_t direction = pestle_onnx_string(call, "direction", "");
  bool left = pestle_str_equal_c(direction, "LEFT");
  if (!left && !pestle_str_equal_c(direction, "RIGHT")) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'direction' is '%.*s', it should be LEFT or "
                     "RIGHT",
                     PESTLE_STR_ARG(direction));
  }
  bool is_signed =
      pestle_dtype_is(dtype_of(call->inputs[0]), PESTLE_KIND_SIGNED);
  pestle_op_t right = is_signed ? PESTLE_OP_SHIFT_RIGHT_ARITHMETIC
                                : PESTLE_OP_SHIFT_RIGHT_LOGICAL;
  call->outputs[0] =
      pestle_f_binary(&call->f, left ? PESTLE_OP_SHIFT_LEFT : right,
                      call->inputs[0], call->inputs[1]);
}

void pestle_onnx_import_where(pestle_onnx_call_t* call) {
  call->outputs[0] = pestle_f_select(&call->f, call->inputs[0], call->inputs[1],
                                     call->inputs[2]);
}

// --- Conversions ---

// |x| as |dtype|, which has as many bits.
static pestle_value_t* bitcast(pestle_onnx_call_t* call, pestle_value_t* x,
                               pestle_dtype_t dtype) {
  if (call->f.status) return NULL;
  pestle_type_t type = *pestle_onnx_type(x);
  type.dtype = dtype;
  return pestle_f_make(&call->f, PESTLE_OP_BITCAST_CONVERT, &x, 1, NULL, 0,
                       &type);
}

// The largest finite value of formats of a byte; 0 for other dtypes.
static double byte_limit(pestle_dtype_t dtype) {
  return pestle_dtype_size(dtype) == 1 ? pestle_float_max(dtype) : 0;
}

// To powers of two, on the bits of f32: the exponent, which |round_mode| steps
// up by the mantissa. As the operator has it, a sign is dropped and 0 becomes the
// least one.
static pestle_value_t* cast_to_scale(pestle_onnx_call_t* call,
                                     pestle_value_t* x) {
  pestle_str_t mode = pestle_onnx_string(call, "round_mode", "up");
  bool up = pestle_str_equal_c(mode, "up");
  bool near = pestle_str_equal_c(mode, "nearest");
  if (!up && !near && !pestle_str_equal_c(mode, "down")) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "attribute 'round_mode' is '%.*s', it should be "
                            "up, down or nearest",
                            PESTLE_STR_ARG(mode));
  }
  x = pestle_onnx_convert(call, x, PESTLE_F32);
  x = pestle_f_abs(&call->f, x);
  if (call->f.status) return NULL;
  pestle_type_t type = *pestle_onnx_type(x);
  type.dtype = PESTLE_U32;
  pestle_value_t* bits = bitcast(call, x, PESTLE_U32);
  // Half a power below the least normal number is not more than half of it.
  int64_t carry = up ? 0x7fffff : near ? 0x400000 : 0;
  pestle_value_t* code =
      pestle_f_add(&call->f, bits, pestle_onnx_splat_int(call, &type, carry));
  if (near) {
    pestle_value_t* is_small = pestle_f_le(
        &call->f, bits, pestle_onnx_splat_int(call, &type, 0x400000));
    code = pestle_f_select(&call->f, is_small, bits, code);
  }
  code = pestle_f_shift_right_logical(&call->f, code,
                                      pestle_onnx_splat_int(call, &type, 23));
  bool saturate = pestle_onnx_int(call, "saturate", 1) != 0;
  code = pestle_f_minimum(
      &call->f, code, pestle_onnx_splat_int(call, &type, saturate ? 254 : 255));
  pestle_value_t* is_special = pestle_f_ge(
      &call->f, bits, pestle_onnx_splat_int(call, &type, 0x7f800000));
  code = pestle_f_select(&call->f, is_special,
                         pestle_onnx_splat_int(call, &type, 255), code);
  code = pestle_onnx_convert(call, code, PESTLE_U8);
  return bitcast(call, code, PESTLE_F8E8M0FNU);
}

pestle_value_t* pestle_onnx_cast(pestle_onnx_call_t* call, pestle_value_t* x,
                                 pestle_dtype_t dtype) {
  if (dtype == PESTLE_F8E8M0FNU) {
    return dtype_of(x) == dtype ? x : cast_to_scale(call, x);
  }
  double limit = byte_limit(dtype);
  if (limit != 0 && pestle_onnx_int(call, "saturate", 1)) {
    x = pestle_onnx_binary_f(call, PESTLE_OP_MINIMUM, x, limit);
    x = pestle_onnx_binary_f(call, PESTLE_OP_MAXIMUM, x, -limit);
  }
  // ONNX wraps what does not fit few bits, StableHLO saturates floats.
  if (pestle_dtype_is(dtype, PESTLE_KIND_INT) &&
      pestle_dtype_is_sub_byte(dtype)) {
    x = pestle_onnx_convert(call, x, PESTLE_I32);
  }
  return pestle_onnx_convert(call, x, dtype);
}

static pestle_dtype_t target_of(pestle_onnx_call_t* call) {
  int64_t to = pestle_onnx_int(call, "to", 0);
  pestle_dtype_t dtype = pestle_onnx_dtype(to);
  if (dtype == PESTLE_NONE && !call->f.status) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "it converts to %s (%lld), which is not supported",
                     pestle_onnx_dtype_name(to), (long long)to);
  }
  return dtype;
}

void pestle_onnx_import_cast(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  bool is_text = pestle_onnx_is_text(call->import, x);
  if (pestle_onnx_int(call, "to", 0) == PESTLE_ONNX_STRING) {
    call->outputs[0] = is_text ? pestle_onnx_mark_text(call, x)
                               : pestle_onnx_text_of(call, x, false);
    return;
  }
  pestle_dtype_t dtype = target_of(call);
  if (call->f.status) return;
  call->outputs[0] = is_text ? pestle_onnx_number_of(call, x, dtype)
                             : pestle_onnx_cast(call, x, dtype);
}

void pestle_onnx_import_cast_like(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *target = call->inputs[1];
  bool is_text = pestle_onnx_is_text(call->import, x);
  if (pestle_onnx_is_text(call->import, target)) {
    call->outputs[0] = is_text ? pestle_onnx_mark_text(call, x)
                               : pestle_onnx_text_of(call, x, false);
  } else {
    call->outputs[0] = is_text
                           ? pestle_onnx_number_of(call, x, dtype_of(target))
                           : pestle_onnx_cast(call, x, dtype_of(target));
  }
}

// Of an element as ONNX has it, where a bool is a byte.
static unsigned bits_of(pestle_dtype_t dtype) {
  return dtype == PESTLE_I1 ? 8 : pestle_dtype_info(dtype)->bits;
}

void pestle_onnx_import_bit_cast(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  pestle_type_t type = *pestle_onnx_type(x);
  type.dtype = target_of(call);
  if (call->f.status) return;
  if (bits_of(type.dtype) != bits_of(dtype_of(x))) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "it changes the size of the elements");
  }
  // A bool is a byte here and a bit in StableHLO.
  if (type.dtype == PESTLE_I1 || dtype_of(x) == PESTLE_I1) {
    call->outputs[0] = pestle_onnx_convert(call, x, type.dtype);
    return;
  }
  call->outputs[0] = bitcast(call, x, type.dtype);
}
