// SPDX-License-Identifier: Apache-2.0
// Convolutions, in ONNX's layouts: NC..., OI... . Layout passes choose others.
#include "base/checked.h"
#include "base/mem.h"
#include "frontend/onnx/ops.h"

// --- Geometry ---

// Reads a list with one number a spatial axis into |out|, or fills it with
// |missing|.
static void read_list(pestle_onnx_call_t* call, const char* name, int32_t count,
                      int64_t missing, int64_t minimum, int64_t* out) {
  pestle_i64s_t list = pestle_onnx_ints(call, name);
  if (list.count && list.count != (size_t)count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute '%s' has %zu numbers for %d spatial axes", name,
                     list.count, count);
    return;
  }
  for (int32_t i = 0; i < count; ++i) {
    out[i] = list.count ? list.data[i] : missing;
    // Extents fit 32 bits, so that sums and products of two fit 64.
    if (out[i] < minimum || out[i] > INT32_MAX) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "attribute '%s' holds %lld", name, (long long)out[i]);
    }
  }
}

bool pestle_onnx_read_kernel(pestle_onnx_call_t* call, const pestle_value_t* x,
                             pestle_onnx_space_t* space) {
  space->count = rank_of(x) - 2;
  if (space->count < 1) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input has rank %d; it needs batch, channels and at "
                     "least one spatial axis",
                     rank_of(x));
    return false;
  }
  if (!pestle_onnx_has(call, "kernel_shape")) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'kernel_shape' is missing");
  }
  read_list(call, "kernel_shape", space->count, 1, 1, space->kernel);
  return !call->f.status;
}

// auto_pad: as much as makes ceil(extent / stride) windows, the odd one at the
// end (SAME_UPPER) or at the start.
static void same_padding(const pestle_value_t* x, pestle_onnx_space_t* space,
                         bool upper) {
  for (int32_t i = 0; i < space->count; ++i) {
    int64_t extent = pestle_onnx_dim(x, 2 + i);
    int64_t windows = (extent + space->strides[i] - 1) / space->strides[i];
    int64_t reach = (space->kernel[i] - 1) * space->dilations[i] + 1;
    int64_t total = (windows - 1) * space->strides[i] + reach - extent;
    if (total < 0) total = 0;
    space->low[i] = upper ? total / 2 : total - total / 2;
    space->high[i] = total - space->low[i];
  }
}

static void read_padding(pestle_onnx_call_t* call, const pestle_value_t* x,
                         pestle_onnx_space_t* space) {
  pestle_str_t how = pestle_onnx_string(call, "auto_pad", "NOTSET");
  pestle_i64s_t pads = pestle_onnx_ints(call, "pads");
  bool upper = pestle_str_equal_c(how, "SAME_UPPER");
  if (upper || pestle_str_equal_c(how, "SAME_LOWER")) {
    same_padding(x, space, upper);
    return;
  }
  bool valid = pestle_str_equal_c(how, "VALID");
  if (!valid && how.size && !pestle_str_equal_c(how, "NOTSET")) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'auto_pad' is '%.*s'", PESTLE_STR_ARG(how));
  }
  if (pads.count && pads.count != 2 * (size_t)space->count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'pads' has %zu numbers for %d spatial axes",
                     pads.count, space->count);
    return;
  }
  for (int32_t i = 0; i < space->count && pads.count && !valid; ++i) {
    space->low[i] = pads.data[i];
    space->high[i] = pads.data[i + space->count];
    if (space->low[i] < INT32_MIN || space->low[i] > INT32_MAX ||
        space->high[i] < INT32_MIN || space->high[i] > INT32_MAX) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "attribute 'pads' holds more than 2^31");
    }
  }
}

bool pestle_onnx_read_space(pestle_onnx_call_t* call, const pestle_value_t* x,
                            pestle_onnx_space_t* space) {
  read_list(call, "strides", space->count, 1, 1, space->strides);
  read_list(call, "dilations", space->count, 1, 1, space->dilations);
  if (call->f.status) return false;
  read_padding(call, x, space);
  return !call->f.status;
}

// --- Convolution ---

// The result's extents; false when a window does not fit.
static bool result_dims(pestle_onnx_call_t* call, const pestle_value_t* x,
                        const pestle_onnx_space_t* space,
                        const int64_t* lhs_dilation, int64_t* dims) {
  for (int32_t i = 0; i < space->count; ++i) {
    int64_t extent = pestle_onnx_dim(x, 2 + i);
    if (lhs_dilation && extent > 0 &&
        !pestle_checked_mul_i64(extent - 1, lhs_dilation[i], &extent)) {
      extent = INT64_MAX / 2;
    } else if (lhs_dilation && pestle_onnx_dim(x, 2 + i) > 0) {
      ++extent;
    }
    if (extent > INT64_MAX / 4) extent = INT64_MAX / 4;
    int64_t reach = (space->kernel[i] - 1) * space->dilations[i] + 1;
    int64_t room = extent + space->low[i] + space->high[i] - reach;
    if (room < 0) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "a window of %lld does not fit spatial axis %d of "
                       "extent %lld with padding %lld and %lld",
                       (long long)reach, i, (long long)extent,
                       (long long)space->low[i], (long long)space->high[i]);
      return false;
    }
    dims[i] = room / space->strides[i] + 1;
  }
  return true;
}

pestle_value_t* pestle_onnx_convolve(pestle_onnx_call_t* call,
                                     pestle_value_t* x, pestle_value_t* w,
                                     const pestle_onnx_space_t* space,
                                     const int64_t* lhs_dilation,
                                     int64_t groups, pestle_dtype_t dtype) {
  if (!x || !w) return NULL;
  size_t n = (size_t)space->count;
  pestle_type_t type = {.dtype = dtype,
                        .rank = x->type->rank,
                        .dims = {x->type->dims[0], w->type->dims[0]}};
  if (!result_dims(call, x, space, lhs_dilation, type.dims + 2)) return NULL;
  int64_t ones[PESTLE_MAX_RANK], zeros[PESTLE_MAX_RANK] = {0};
  int64_t axes[PESTLE_MAX_RANK], padding[2 * PESTLE_MAX_RANK];
  for (size_t i = 0; i < n; ++i) {
    ones[i] = 1;
    axes[i] = (int64_t)i + 2;
    padding[2 * i] = space->low[i];
    padding[2 * i + 1] = space->high[i];
  }
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(window_strides, space->strides, n),
      PESTLE_SET_I64S(padding, padding, 2 * n),
      PESTLE_SET_I64S(lhs_dilation, lhs_dilation ? lhs_dilation : ones, n),
      PESTLE_SET_I64S(rhs_dilation, space->dilations, n),
      PESTLE_SET_I64S(window_reversal, zeros, n),
      PESTLE_SET_I64(input_batch_dimension, 0),
      PESTLE_SET_I64(input_feature_dimension, 1),
      PESTLE_SET_I64S(input_spatial_dimensions, axes, n),
      PESTLE_SET_I64(kernel_output_feature_dimension, 0),
      PESTLE_SET_I64(kernel_input_feature_dimension, 1),
      PESTLE_SET_I64S(kernel_spatial_dimensions, axes, n),
      PESTLE_SET_I64(output_batch_dimension, 0),
      PESTLE_SET_I64(output_feature_dimension, 1),
      PESTLE_SET_I64S(output_spatial_dimensions, axes, n),
      PESTLE_SET_I64(feature_group_count, groups),
      PESTLE_SET_I64(batch_group_count, 1),
  };
  return pestle_f_make(&call->f, PESTLE_OP_CONVOLUTION,
                       (pestle_value_t*[]){x, w}, 2, attrs,
                       sizeof(attrs) / sizeof(attrs[0]), &type);
}

// The kernel's extents are those of the weights; kernel_shape may repeat them.
static bool kernel_of(pestle_onnx_call_t* call, const pestle_value_t* x,
                      const pestle_value_t* w, pestle_onnx_space_t* space) {
  *space = (pestle_onnx_space_t){.count = rank_of(x) - 2};
  if (space->count < 1 || rank_of(w) != rank_of(x)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input has rank %d and its weights %d; both need a "
                     "spatial axis and the same rank",
                     rank_of(x), rank_of(w));
    return false;
  }
  read_list(call, "kernel_shape", space->count, 1, 1, space->kernel);
  for (int32_t i = 0; i < space->count && !call->f.status; ++i) {
    int64_t extent = pestle_onnx_dim(w, 2 + i);
    if (extent < 1 || extent > INT32_MAX ||
        (pestle_onnx_has(call, "kernel_shape") && extent != space->kernel[i])) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "attribute 'kernel_shape' says %lld for spatial axis "
                       "%d, the weights %lld",
                       (long long)space->kernel[i], i, (long long)extent);
    }
    space->kernel[i] = extent;
  }
  return !call->f.status;
}

static pestle_value_t* add_bias(pestle_onnx_call_t* call, pestle_value_t* y,
                                pestle_value_t* bias) {
  return bias ? add(call, y, pestle_onnx_along(call, bias, y, 1)) : y;
}

pestle_value_t* pestle_onnx_conv_of(pestle_onnx_call_t* call, pestle_value_t* x,
                                    pestle_value_t* w) {
  pestle_onnx_space_t space;
  if (!x || !w || !kernel_of(call, x, w, &space) ||
      !pestle_onnx_read_space(call, x, &space)) {
    return NULL;
  }
  return pestle_onnx_convolve(call, x, w, &space, NULL,
                              pestle_onnx_int(call, "group", 1), dtype_of(x));
}

void pestle_onnx_import_conv(pestle_onnx_call_t* call) {
  pestle_value_t* y =
      pestle_onnx_conv_of(call, call->inputs[0], call->inputs[1]);
  call->outputs[0] = add_bias(call, y, pestle_onnx_input(call, 2));
}

// Integers are convolved after their zero points are taken off.
void pestle_onnx_import_conv_integer(pestle_onnx_call_t* call) {
  pestle_value_t* x = pestle_onnx_convert(call, call->inputs[0], PESTLE_I32);
  pestle_value_t* w = pestle_onnx_convert(call, call->inputs[1], PESTLE_I32);
  pestle_value_t* x_zero = pestle_onnx_input(call, 2);
  pestle_value_t* w_zero = pestle_onnx_input(call, 3);
  if (x_zero) {
    x_zero = pestle_f_reshape(&call->f, x_zero, 0, NULL);
    x = sub(call, x, pestle_onnx_convert(call, x_zero, PESTLE_I32));
  }
  if (w_zero) {
    w_zero = pestle_onnx_convert(call, w_zero, PESTLE_I32);
    if (rank_of(w_zero) == 1 && pestle_onnx_dim(w_zero, 0) != 1) {
      w_zero = pestle_onnx_along(call, w_zero, w, 0);
    }
    w = sub(call, w, w_zero);
  }
  call->outputs[0] = pestle_onnx_conv_of(call, x, w);
}

// --- Transposed convolution ---
//
// The gradient of a convolution: the input spread out by the strides, convolved
// with the kernel turned round. Weights are (in, out / groups, ...) and become
// (out, in / groups, ...).

static pestle_value_t* transpose_weights(pestle_onnx_call_t* call,
                                         pestle_value_t* w, int64_t groups) {
  int64_t dims[PESTLE_MAX_RANK], order[PESTLE_MAX_RANK];
  int64_t axes[PESTLE_MAX_RANK];
  const pestle_type_t type = *w->type;
  if (groups < 1 || type.dims[0] < groups || type.dims[0] % groups != 0 ||
      type.rank == PESTLE_MAX_RANK) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "%lld channels cannot be split into %lld groups",
                            (long long)type.dims[0], (long long)groups);
  }
  for (int32_t i = 2; i < type.rank; ++i)
    axes[i - 2] = i;
  w = pestle_f_reverse(&call->f, w,
                       (pestle_i64s_t){axes, (size_t)type.rank - 2});
  dims[0] = groups;
  dims[1] = type.dims[0] / groups;
  for (int32_t i = 1; i < type.rank; ++i)
    dims[i + 1] = type.dims[i];
  for (int32_t i = 0; i <= type.rank; ++i)
    order[i] = i;
  order[1] = 2;
  order[2] = 1;
  w = pestle_f_reshape(&call->f, w, type.rank + 1, dims);
  w = pestle_f_transpose(&call->f, w, order);
  dims[1] = type.dims[0] / groups;
  dims[0] = type.dims[1] * groups;
  for (int32_t i = 2; i < type.rank; ++i)
    dims[i] = type.dims[i];
  return pestle_f_reshape(&call->f, w, type.rank, dims);
}

// The padding of the spread-out input: what the padding that ONNX means leaves
// of a full convolution, or what makes |output_shape|.
static bool transposed_padding(pestle_onnx_call_t* call,
                               const pestle_value_t* x,
                               pestle_onnx_space_t* space) {
  int64_t extra[PESTLE_MAX_RANK];
  read_list(call, "output_padding", space->count, 0, 0, extra);
  pestle_i64s_t shape = pestle_onnx_ints(call, "output_shape");
  pestle_str_t how = pestle_onnx_string(call, "auto_pad", "NOTSET");
  bool upper = pestle_str_equal_c(how, "SAME_UPPER");
  bool same = upper || pestle_str_equal_c(how, "SAME_LOWER");
  if (call->f.status || (shape.count && shape.count < (size_t)space->count)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'output_shape' has %zu numbers", shape.count);
    return false;
  }
  for (int32_t i = 0; i < space->count; ++i) {
    int64_t reach = (space->kernel[i] - 1) * space->dilations[i];
    int64_t extent = pestle_onnx_dim(x, 2 + i), stride = space->strides[i];
    int64_t full, wanted;
    size_t first = shape.count ? shape.count - (size_t)space->count : 0;
    wanted = shape.count ? shape.data[first + (size_t)i] : 0;
    if (extent > INT64_MAX / 8 / stride || reach > INT64_MAX / 8 ||
        wanted < 0 || wanted > INT64_MAX / 8) {
      pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                       "spatial axis %d of extent %lld is spread by %lld and "
                       "reached over by %lld to give %lld",
                       i, (long long)extent, (long long)stride,
                       (long long)reach + 1, (long long)wanted);
      return false;
    }
    full = stride * (extent - 1) + extra[i] + reach + 1;
    if (shape.count || same) {
      if (same && !shape.count) wanted = extent * stride;
      int64_t total = full - wanted;
      // There ONNX Runtime makes what a kernel that is smaller than its stride reaches.
      bool keeps = same && !shape.count && pestle_onnx_as_ort(call);
      if (keeps && total < 0) total = 0;
      // A total below zero adds at the end.
      space->low[i] = upper || total < 0 ? total / 2 : total - total / 2;
      if (total < 0) space->low[i] = 0;
      space->high[i] = total - space->low[i];
    }
    space->low[i] = reach - space->low[i];
    space->high[i] = reach - space->high[i] + extra[i];
  }
  return true;
}

void pestle_onnx_import_conv_transpose(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *w = call->inputs[1];
  int64_t groups = pestle_onnx_int(call, "group", 1);
  pestle_onnx_space_t space;
  if (!kernel_of(call, x, w, &space) ||
      !pestle_onnx_read_space(call, x, &space)) {
    return;
  }
  pestle_str_t how = pestle_onnx_string(call, "auto_pad", "NOTSET");
  if (how.size && !pestle_str_equal_c(how, "NOTSET")) {
    memset(space.low, 0, sizeof(space.low));
    memset(space.high, 0, sizeof(space.high));
  }
  if (!transposed_padding(call, x, &space)) return;
  w = transpose_weights(call, w, groups);
  pestle_onnx_space_t unit = space;
  for (int32_t i = 0; i < space.count; ++i)
    unit.strides[i] = 1;
  pestle_value_t* y = pestle_onnx_convolve(call, x, w, &unit, space.strides,
                                           groups, dtype_of(x));
  call->outputs[0] = add_bias(call, y, pestle_onnx_input(call, 2));
}
