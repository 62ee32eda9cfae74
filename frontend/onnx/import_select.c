// SPDX-License-Identifier: Apache-2.0
// Ops whose results are as long as their inputs' elements say. What is known
// while importing decides it then; anything else is refused.
#include "base/mem.h"
#include "frontend/onnx/ops.h"

// The constant behind input |index|, or NULL with an error kept.
static const pestle_elements_t* known_elements(pestle_onnx_call_t* call,
                                               size_t index) {
  const pestle_elements_t* known = pestle_value_constant(call->inputs[index]);
  if (!known) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "the extent of its result depends on the elements of "
                     "input %zu, which must be known while importing; if it is "
                     "or depends on an input of the model, fix that input with "
                     "--const NAME=VALUE",
                     index);
  } else if (pestle_type_count(&known->type) > PESTLE_ONNX_MAX_INDICES) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "input %zu has more than %lld elements", index,
                     (long long)PESTLE_ONNX_MAX_INDICES);
  } else {
    return known;
  }
  return NULL;
}

static bool is_set(const pestle_elements_t* elements, int64_t i) {
  return pestle_onnx_element_f64(elements, (size_t)i) != 0;
}

// The places along an axis where the condition holds.
void pestle_onnx_import_compress(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  const pestle_elements_t* condition = known_elements(call, 1);
  if (!condition) return;
  int64_t axis = 0, count = pestle_type_count(pestle_onnx_type(x));
  if (pestle_onnx_has(call, "axis")) {
    axis = pestle_onnx_axis(call, pestle_onnx_int(call, "axis", 0), rank_of(x));
  } else {
    x = pestle_onnx_reshape(call, x, 1, &count);
  }
  int64_t length = pestle_type_count(&condition->type), used = 0;
  if (call->status || condition->type.rank != 1 ||
      length > pestle_onnx_dim(x, axis)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its condition has %lld elements for an axis of %lld",
                     (long long)length, (long long)pestle_onnx_dim(x, axis));
    return;
  }
  int64_t* places =
      pestle_onnx_scratch(call, (size_t)(length + 1) * sizeof(int64_t));
  for (int64_t i = 0; places && i < length; ++i) {
    if (is_set(condition, i)) places[used++] = i;
  }
  if (!places) return;
  call->outputs[0] =
      used ? pestle_onnx_take_list(call, x, places, (size_t)used, axis)
           : pestle_onnx_slice_axis(call, x, axis, 0, 0, 1);
}

// The indices of what is not 0: a row for each axis.
void pestle_onnx_import_non_zero(pestle_onnx_call_t* call) {
  const pestle_elements_t* x = known_elements(call, 0);
  if (!x) return;
  int64_t count = pestle_type_count(&x->type), found = 0;
  int32_t rank = x->type.rank ? x->type.rank : 1;
  for (int64_t i = 0; i < count; ++i)
    found += is_set(x, i);
  int64_t* indices =
      pestle_onnx_scratch(call, (size_t)(found * rank + 1) * sizeof(int64_t));
  for (int64_t i = 0, at = 0; indices && i < count; ++i) {
    if (!is_set(x, i)) continue;
    int64_t rest = i;
    for (int32_t axis = rank - 1; axis >= 0; --axis) {
      int64_t extent = x->type.rank ? x->type.dims[axis] : 1;
      indices[axis * found + at] = rest % extent;
      rest /= extent;
    }
    ++at;
  }
  if (!indices) return;
  int64_t dims[] = {rank, found};
  call->outputs[0] = pestle_onnx_reshape(
      call, pestle_onnx_int_list(call, indices, (size_t)(found * rank)), 2,
      dims);
}
