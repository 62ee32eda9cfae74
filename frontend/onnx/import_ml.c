// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml: the ops that change features, of which the last axis has them.
// What they hold per feature is a constant along that axis.
#include "frontend/onnx/ops.h"

// |values| along the last axis of |like|, one for each feature or one for all, as
// |dtype|; NULL with an error kept if they are neither.
static pestle_value_t* per_feature(pestle_onnx_call_t* call, const char* name,
                                   pestle_onnx_floats_t values,
                                   const pestle_value_t* like,
                                   pestle_dtype_t dtype) {
  int64_t features = pestle_onnx_dim(like, rank_of(like) - 1);
  if (values.count != 1 && (int64_t)values.count != features) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "attribute '%s' has %zu numbers, its input %lld "
                            "features; one number or one a feature is needed",
                            name, values.count, (long long)features);
  }
  double* numbers =
      pestle_onnx_scratch(call, (values.count + 1) * sizeof(double));
  if (!numbers) return NULL;
  for (size_t i = 0; i < values.count; ++i)
    numbers[i] = (double)values.data[i];
  pestle_type_t type = {
      .dtype = dtype, .rank = 1, .dims = {(int64_t)values.count}};
  return pestle_onnx_numbers(call, &type, numbers);
}

void pestle_onnx_import_ml_scaler(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  pestle_onnx_floats_t offset = pestle_onnx_floats(call, "offset");
  pestle_onnx_floats_t scale = pestle_onnx_floats(call, "scale");
  // In double for doubles alone, and then a float.
  pestle_dtype_t wide = dtype_of(x) == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
  x = pestle_onnx_convert(call, x, wide);
  if (offset.count) {
    pestle_value_t* taken = per_feature(call, "offset", offset, x, wide);
    x = sub(call, x, taken);
  }
  if (scale.count) {
    pestle_value_t* factor = per_feature(call, "scale", scale, x, wide);
    x = mul(call, x, factor);
  }
  call->outputs[0] = pestle_onnx_convert(call, x, PESTLE_F32);
}
