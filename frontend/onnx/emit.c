// SPDX-License-Identifier: Apache-2.0
// Types of values, numbers as operands, conversions.
#include "frontend/onnx/emit.h"

#include "frontend/onnx/bounded.h"

const pestle_type_t* pestle_onnx_type(const pestle_value_t* value) {
  static const pestle_type_t none = {.dtype = PESTLE_F32};
  return value ? value->type : &none;
}

int64_t pestle_onnx_dim(const pestle_value_t* value, int64_t axis) {
  const pestle_type_t* type = pestle_onnx_type(value);
  return axis >= 0 && axis < type->rank ? type->dims[axis] : 1;
}

int64_t pestle_onnx_dims_product(const pestle_value_t* value, int64_t begin,
                                 int64_t end) {
  int64_t product = 1;
  for (int64_t i = begin; i < end; ++i)
    product *= pestle_onnx_dim(value, i);
  return product;
}

pestle_value_t* pestle_onnx_binary_f(pestle_onnx_call_t* call, pestle_op_t op,
                                     pestle_value_t* a, double number) {
  return a ? pestle_f_binary(&call->f, op, a, splat_like(call, a, number))
           : NULL;
}

pestle_value_t* pestle_onnx_convert(pestle_onnx_call_t* call, pestle_value_t* a,
                                    pestle_dtype_t dtype) {
  if (!a || a->type->dtype == dtype) return a;
  if (dtype == PESTLE_I1) {
    return pestle_onnx_binary_f(call, PESTLE_OP_NE, a, 0);
  }
  pestle_type_t type = *a->type;
  type.dtype = dtype;
  return pestle_f_make(&call->f, PESTLE_OP_CONVERT, &a, 1, NULL, 0, &type);
}

// --- Narrow floats ---

static bool is_narrow(const pestle_value_t* value) {
  return value && pestle_dtype_is(dtype_of(value), PESTLE_KIND_FLOAT) &&
         pestle_dtype_size(dtype_of(value)) < 4;
}

void pestle_onnx_in_f32(pestle_onnx_call_t* call,
                        void (*import)(pestle_onnx_call_t* call)) {
  if (!call->input_count || !is_narrow(call->inputs[0])) {
    import(call);
    return;
  }
  pestle_dtype_t dtype = dtype_of(call->inputs[0]);
  pestle_value_t** given = call->inputs;
  pestle_value_t** wide =
      pestle_onnx_scratch(call, call->input_count * sizeof(*wide));
  if (!wide) return;
  for (size_t i = 0; i < call->input_count; ++i) {
    wide[i] = given[i];
    if (!is_narrow(given[i])) continue;
    wide[i] = pestle_onnx_convert(call, given[i], PESTLE_F32);
    pestle_onnx_copy_real(call, wide[i], given[i]);
  }
  call->inputs = wide;
  import(call);
  call->inputs = given;
  for (size_t i = 0; i < call->output_count; ++i) {
    pestle_value_t* y = call->outputs[i];
    if (!y || dtype_of(y) != PESTLE_F32) continue;
    call->outputs[i] = pestle_onnx_convert(call, y, dtype);
    pestle_onnx_copy_real(call, call->outputs[i], y);
  }
}
