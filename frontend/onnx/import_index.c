// SPDX-License-Identifier: Apache-2.0
// Slices, padding and computed indices.
#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

// --- Slice ---

typedef struct slice_list_t {
  pestle_i64s_t starts, ends, axes, steps;
} slice_list_t;

static bool read_slices(pestle_onnx_call_t* call, slice_list_t* out) {
  *out = (slice_list_t){0};
  if (call->opset < 10) {
    out->starts = pestle_onnx_ints(call, "starts");
    out->ends = pestle_onnx_ints(call, "ends");
    out->axes = pestle_onnx_ints(call, "axes");
  } else {
    out->starts = pestle_onnx_input_ints(call, 1, "starts");
    out->ends = pestle_onnx_input_ints(call, 2, "ends");
    if (pestle_onnx_input(call, 3)) {
      out->axes = pestle_onnx_input_ints(call, 3, "axes");
    }
    if (pestle_onnx_input(call, 4)) {
      out->steps = pestle_onnx_input_ints(call, 4, "steps");
    }
  }
  size_t count = out->starts.count;
  if (out->ends.count != count ||
      (out->axes.count && out->axes.count != count) ||
      (out->steps.count && out->steps.count != count) ||
      (!out->axes.count && count > (size_t)rank_of(call->inputs[0]))) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its starts, ends, axes and steps differ in length");
  }
  return !call->f.status;
}

static int64_t clamp_to(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

// One axis, by numpy's rules; a negative step is a reversal of the elements
// that it visits.
static pestle_value_t* slice_one(pestle_onnx_call_t* call, pestle_value_t* x,
                                 int64_t axis, int64_t start, int64_t end,
                                 int64_t step) {
  int64_t extent = pestle_onnx_dim(x, axis);
  if (step == 0 || step == INT64_MIN) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "its step is %lld",
                            (long long)step);
  }
  if (start < 0) start = start < -extent ? -1 : start + extent;
  if (end < 0) end = end < -extent ? -1 : end + extent;
  if (step > 0) {
    start = clamp_to(start, 0, extent);
    end = clamp_to(end, 0, extent);
    if (end < start) end = start;
    if (step > extent) step = extent ? extent : 1;
    return pestle_onnx_slice_axis(call, x, axis, start, end, step);
  }
  start = clamp_to(start, -1, extent - 1);
  end = clamp_to(end, -1, extent - 1);
  if (step < -extent) step = extent ? -extent : -1;
  int64_t count = start > end ? (start - end + (-step) - 1) / -step : 0;
  if (count == 0) return pestle_onnx_slice_axis(call, x, axis, 0, 0, 1);
  int64_t first = start + (count - 1) * step;
  x = pestle_onnx_slice_axis(call, x, axis, first, start + 1, -step);
  return pestle_f_reverse(&call->f, x, (pestle_i64s_t){&axis, 1});
}

static pestle_value_t* slice_known(pestle_onnx_call_t* call, pestle_value_t* x,
                                   int64_t axis, int64_t start, int64_t end,
                                   int64_t step) {
  if (pestle_onnx_real_size(call->import, x, axis))
    return pestle_onnx_slice_real(call, x, axis, start, end, step);
  pestle_value_t* y = slice_one(call, x, axis, start, end, step);
  pestle_onnx_copy_real(call, y, x);
  return y;
}

static pestle_value_t* slice_axis_of(pestle_onnx_call_t* call,
                                     pestle_value_t* x, int64_t axis,
                                     pestle_value_t* start, pestle_value_t* end,
                                     int64_t step) {
  const pestle_elements_t* first = start ? pestle_value_constant(start) : NULL;
  const pestle_elements_t* last = end ? pestle_value_constant(end) : NULL;
  if (!first || !last)
    return pestle_onnx_slice_computed(call, x, axis, start, end, step);
  return slice_known(call, x, axis, pestle_onnx_element_i64(first, 0),
                     pestle_onnx_element_i64(last, 0), step);
}

// Whether only a run tells the starts or the ends: they are made of extents that it
// tells, or of more elements than are ever specialised on (adr/010).
static bool is_computed(pestle_onnx_call_t* call) {
  for (size_t i = 1; i < 3; ++i) {
    pestle_onnx_extent_t extents[PESTLE_MAX_RANK];
    size_t count;
    pestle_value_t* list = pestle_onnx_input(call, i);
    if (!list || pestle_value_constant(list)) continue;
    if (pestle_onnx_extents(call, i, extents, &count) ||
        !pestle_onnx_can_need(call, list)) {
      return true;
    }
  }
  return false;
}

static void slice_by_computed(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *starts = pestle_onnx_input(call, 1);
  pestle_value_t* ends = pestle_onnx_input(call, 2);
  pestle_i64s_t axes = {0}, steps = {0};
  if (pestle_onnx_input(call, 3))
    axes = pestle_onnx_input_ints(call, 3, "axes");
  if (pestle_onnx_input(call, 4))
    steps = pestle_onnx_input_ints(call, 4, "steps");
  int64_t count = starts ? pestle_type_count(pestle_onnx_type(starts)) : -1;
  bool fits = ends && count == pestle_type_count(pestle_onnx_type(ends)) &&
              rank_of(starts) <= 1 && rank_of(ends) <= 1 &&
              (!axes.count || (int64_t)axes.count == count) &&
              (!steps.count || (int64_t)steps.count == count) &&
              count <= rank_of(x);
  if (!fits) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its starts, ends, axes and steps differ in length");
  }
  for (int64_t i = 0; i < count && !call->f.status; ++i) {
    int64_t axis =
        pestle_onnx_axis(call, axes.count ? axes.data[i] : i, rank_of(x));
    int64_t step = steps.count ? steps.data[i] : 1;
    if (step == 0 || step == INT64_MIN) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "its step is %lld",
                       (long long)step);
    }
    if (call->f.status) return;
    x = slice_axis_of(call, x, axis, pestle_onnx_list_number(call, starts, i),
                      pestle_onnx_list_number(call, ends, i), step);
  }
  call->outputs[0] = x;
}

void pestle_onnx_import_slice(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  slice_list_t list;
  if (call->opset >= 10 && is_computed(call)) {
    slice_by_computed(call);
    return;
  }
  if (!read_slices(call, &list)) return;
  for (size_t i = 0; i < list.starts.count && x; ++i) {
    int64_t axis = pestle_onnx_axis(
        call, list.axes.count ? list.axes.data[i] : (int64_t)i, rank_of(x));
    if (call->f.status) return;
    x = slice_known(call, x, axis, list.starts.data[i], list.ends.data[i],
                    list.steps.count ? list.steps.data[i] : 1);
  }
  call->outputs[0] = x;
}

// --- Pad ---

// The source index of padded position |i| (which may be negative), or -1.
static int64_t padded_source(pestle_str_t mode, int64_t i, int64_t extent) {
  if (pestle_str_equal_c(mode, "edge")) return clamp_to(i, 0, extent - 1);
  if (pestle_str_equal_c(mode, "wrap")) {
    return (i % extent + extent) % extent;
  }
  if (extent == 1) return 0;
  int64_t period = 2 * (extent - 1);
  i = (i % period + period) % period;
  return i < extent ? i : period - i;
}

// Pads one axis with elements of its own: slices and reversed slices where the
// padding is short enough, else a gather.
static pestle_value_t* pad_reflect(pestle_onnx_call_t* call, pestle_value_t* x,
                                   int64_t axis, int64_t low, int64_t high) {
  int64_t extent = pestle_onnx_dim(x, axis);
  pestle_value_t* parts[3];
  size_t count = 0;
  if (low) {
    parts[count++] = pestle_f_reverse(
        &call->f, pestle_onnx_slice_axis(call, x, axis, 1, low + 1, 1),
        (pestle_i64s_t){&axis, 1});
  }
  parts[count++] = x;
  if (high) {
    parts[count++] = pestle_f_reverse(
        &call->f,
        pestle_onnx_slice_axis(call, x, axis, extent - 1 - high, extent - 1, 1),
        (pestle_i64s_t){&axis, 1});
  }
  return pestle_f_concatenate(&call->f, parts, count, axis);
}

static pestle_value_t* pad_gather(pestle_onnx_call_t* call, pestle_value_t* x,
                                  pestle_str_t mode, int64_t axis, int64_t low,
                                  int64_t high) {
  int64_t extent = pestle_onnx_dim(x, axis), count = extent + low + high;
  if (extent == 0 || count < 0 || count > PESTLE_ONNX_MAX_INDICES) {
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "axis %lld of extent %lld cannot be padded by %lld "
                            "and %lld",
                            (long long)axis, (long long)extent, (long long)low,
                            (long long)high);
  }
  int64_t* indices =
      pestle_onnx_scratch(call, (size_t)(count + 1) * sizeof(int64_t));
  if (!indices) return NULL;
  for (int64_t i = 0; i < count; ++i) {
    indices[i] = padded_source(mode, i - low, extent);
  }
  return pestle_onnx_take_list(call, x, indices, (size_t)count, axis);
}

static pestle_value_t* padding_value(pestle_onnx_call_t* call) {
  pestle_dtype_t dtype = dtype_of(call->inputs[0]);
  if (call->opset < 11) {
    return pestle_onnx_scalar(call, dtype, pestle_onnx_float(call, "value", 0));
  }
  if (!pestle_onnx_input(call, 2)) return pestle_onnx_scalar(call, dtype, 0);
  return pestle_f_reshape(&call->f, call->inputs[2], 0, NULL);
}

// Spreads |pads| (all lows, then all highs, of |axes| or of every axis).
static bool read_pads(pestle_onnx_call_t* call, int64_t* low, int64_t* high) {
  int64_t rank = rank_of(call->inputs[0]);
  pestle_i64s_t pads =
      call->opset >= 11
          ? pestle_onnx_input_ints(call, 1, "pads")
          : pestle_onnx_ints(
                call, pestle_onnx_has(call, "pads") ? "pads" : "paddings");
  pestle_i64s_t axes = {0};
  bool listed = call->opset >= 18 && pestle_onnx_input(call, 3);
  if (listed) axes = pestle_onnx_input_ints(call, 3, "axes");
  size_t count = listed ? axes.count : (size_t)rank;
  if (!call->f.status && pads.count != 2 * count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its pads have %zu numbers, it should be two for each of "
                     "%zu axes",
                     pads.count, count);
  }
  for (size_t i = 0; i < count && !call->f.status; ++i) {
    int64_t axis =
        listed ? pestle_onnx_axis(call, axes.data[i], rank) : (int64_t)i;
    low[axis] = pads.data[i];
    high[axis] = pads.data[i + count];
    if (low[axis] > INT32_MAX || low[axis] < INT32_MIN ||
        high[axis] > INT32_MAX || high[axis] < INT32_MIN) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "axis %lld is padded by more than 2^31",
                       (long long)axis);
    }
  }
  return !call->f.status;
}

// Negative pads take elements away before others are repeated: what a mode
// repeats is of what is left.
static pestle_value_t* crop(pestle_onnx_call_t* call, pestle_value_t* x,
                            int64_t axis, int64_t* low, int64_t* high) {
  int64_t extent = pestle_onnx_dim(x, axis);
  int64_t begin = *low < 0 ? -*low : 0,
          end = *high < 0 ? extent + *high : extent;
  if (begin > end) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "its pads %lld and %lld take more than the %lld "
                            "elements of axis %lld away",
                            (long long)*low, (long long)*high,
                            (long long)extent, (long long)axis);
  }
  if (*low < 0) *low = 0;
  if (*high < 0) *high = 0;
  if (begin == 0 && end == extent) return x;
  return pestle_onnx_slice_axis(call, x, axis, begin, end, 1);
}

static pestle_value_t* pad_axis(pestle_onnx_call_t* call, pestle_value_t* x,
                                pestle_str_t mode, int64_t axis, int64_t low,
                                int64_t high) {
  x = crop(call, x, axis, &low, &high);
  if (!x || (!low && !high)) return x;
  int64_t extent = pestle_onnx_dim(x, axis);
  bool is_short = low < extent && high < extent;
  return is_short && pestle_str_equal_c(mode, "reflect")
             ? pad_reflect(call, x, axis, low, high)
             : pad_gather(call, x, mode, axis, low, high);
}

// Behind the end of an axis that only a run tells the padding begins sooner.
static void pad_real(pestle_onnx_call_t* call, const int64_t* low,
                     const int64_t* high) {
  pestle_value_t *x = call->inputs[0], *y = call->outputs[0];
  if (!y || !pestle_onnx_real(call->import, x)) return;
  pestle_type_t index = *pestle_onnx_type(y);
  index.dtype = PESTLE_I64;
  pestle_value_t* value = padding_value(call);
  pestle_value_t* sizes[PESTLE_MAX_RANK] = {NULL};
  for (int32_t i = 0; i < rank_of(x); ++i) {
    sizes[i] = pestle_onnx_real_size(call->import, x, i);
    if (!sizes[i] || (!low[i] && !high[i])) continue;
    pestle_value_t* end =
        add(call, sizes[i], pestle_onnx_size_number(call, low[i]));
    if (high[i] > 0) {
      pestle_value_t* inside =
          pestle_f_lt(&call->f, pestle_f_iota(&call->f, &index, i), end);
      y = pestle_f_select(&call->f, inside, y, value);
    }
    sizes[i] = pestle_f_maximum(
        &call->f, add(call, end, pestle_onnx_size_number(call, high[i])),
        pestle_onnx_size_number(call, 0));
  }
  call->outputs[0] = y;
  for (int32_t i = 0; y != x && i < rank_of(x); ++i)
    pestle_onnx_set_real(call, y, i, sizes[i]);
}

void pestle_onnx_import_pad(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  int64_t low[PESTLE_MAX_RANK] = {0}, high[PESTLE_MAX_RANK] = {0};
  pestle_str_t mode = pestle_onnx_string(call, "mode", "constant");
  if (!read_pads(call, low, high)) return;
  if (pestle_str_equal_c(mode, "constant")) {
    call->outputs[0] =
        pestle_f_pad(&call->f, x, padding_value(call), low, high, NULL);
    pad_real(call, low, high);
    return;
  }
  if (pestle_onnx_real(call->import, x)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "it repeats elements of a tensor whose extents only a run "
                     "tells");
    return;
  }
  if (!pestle_str_is_one_of(mode, "reflect edge wrap")) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute 'mode' is '%.*s', known are constant, reflect, "
                     "edge and wrap",
                     PESTLE_STR_ARG(mode));
    return;
  }
  for (int64_t i = 0; i < rank_of(x); ++i) {
    x = pad_axis(call, x, mode, i, low[i], high[i]);
  }
  call->outputs[0] = x;
}

// --- CenterCropPad ---

// Axis |axis| of |x| with as much cut from both sides, or zeros put there, as makes
// |to| of its elements, where a run tells that or how many there are: element i is
// that at i + (n - to) / 2, towards 0.
static pestle_value_t* center_real(pestle_onnx_call_t* call, pestle_value_t* x,
                                   int64_t axis,
                                   const pestle_onnx_extent_t* to) {
  pestle_formula_t* f = &call->f;
  const pestle_type_t list = {
      .dtype = PESTLE_I64, .rank = 1, .dims = {to->dim}};
  int64_t bound = pestle_onnx_dim(x, axis);
  pestle_value_t* zero = pestle_onnx_size_number(call, 0);
  pestle_value_t* n = pestle_onnx_size(call, x, axis);
  pestle_value_t* wanted =
      to->size ? to->size : pestle_onnx_size_number(call, to->dim);
  pestle_value_t* more = pestle_f_binary(f, PESTLE_OP_SUBTRACT, n, wanted);
  pestle_value_t* first = pestle_f_binary(f, PESTLE_OP_DIVIDE, more,
                                          pestle_onnx_size_number(call, 2));
  pestle_value_t* at = add(call, pestle_f_iota(f, &list, 0), first);
  pestle_value_t* after = pestle_f_lt(f, at, n);
  pestle_value_t* inside = pestle_f_and(f, pestle_f_ge(f, at, zero), after);
  pestle_value_t* last = pestle_onnx_size_number(call, bound ? bound - 1 : 0);
  at = pestle_f_minimum(f, pestle_f_maximum(f, at, zero), last);
  pestle_value_t* y = bound ? pestle_onnx_take(call, x, at, axis) : NULL;
  if (!bound) {
    int64_t dims[PESTLE_MAX_RANK];
    for (int32_t i = 0; i < rank_of(x); ++i)
      dims[i] = i == axis ? to->dim : pestle_onnx_dim(x, i);
    y = pestle_onnx_widen(call, x, dims);
  }
  if (!y) return NULL;
  inside = pestle_onnx_along(call, inside, y, axis);
  y = pestle_f_select(f, inside, y, splat_like(call, y, 0));
  for (int32_t i = 0; y && i < rank_of(x); ++i) {
    pestle_onnx_set_real(
        call, y, i,
        i == axis ? to->size : pestle_onnx_real_size(call->import, x, i));
  }
  return y;
}

// The extents that input 1 asks for, numbers but where a run tells them.
static bool center_extents(pestle_onnx_call_t* call, pestle_onnx_extent_t* out,
                           size_t* out_count) {
  if (pestle_onnx_extents(call, 1, out, out_count)) return true;
  pestle_i64s_t shape = pestle_onnx_input_ints(call, 1, "shape");
  *out_count = shape.count;
  for (size_t i = 0; !call->f.status && i < shape.count; ++i) {
    if (i < PESTLE_MAX_RANK && shape.data[i] >= 0 &&
        shape.data[i] <= INT64_MAX / 4) {
      out[i] = (pestle_onnx_extent_t){shape.data[i], NULL};
      continue;
    }
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "its shape holds %lld",
                     (long long)shape.data[i]);
  }
  return !call->f.status;
}

// Cuts or pads each axis to an extent, the same on both sides; the odd element
// goes at the end.
void pestle_onnx_import_center_crop_pad(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *y;
  int64_t low[PESTLE_MAX_RANK] = {0}, high[PESTLE_MAX_RANK] = {0};
  pestle_onnx_extent_t to[PESTLE_MAX_RANK];
  size_t given = 0;
  pestle_i64s_t axes = pestle_onnx_ints(call, "axes");
  size_t count = axes.count ? axes.count : (size_t)rank_of(x);
  if (!center_extents(call, to, &given)) return;
  if (given != count || count > (size_t)rank_of(x)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its shape has %zu extents for %zu axes", given, count);
  }
  y = x;
  for (size_t i = 0; i < count && !call->f.status; ++i) {
    int64_t axis = axes.count ? pestle_onnx_axis(call, axes.data[i], rank_of(x))
                              : (int64_t)i;
    if (call->f.status) return;
    if (to[i].size || pestle_onnx_real_size(call->import, x, axis)) {
      y = center_real(call, y, axis, &to[i]);
      continue;
    }
    int64_t more = to[i].dim - pestle_onnx_dim(x, axis);
    low[axis] = more / 2;  // towards 0: the odd one is at the end either way
    high[axis] = more - more / 2;
  }
  if (call->f.status) return;
  call->outputs[0] = pestle_f_pad(
      &call->f, y, pestle_onnx_scalar(call, dtype_of(x), 0), low, high, NULL);
  if (call->outputs[0] != y) pestle_onnx_copy_real(call, call->outputs[0], y);
}

// --- Gather ---

// Indices below zero count from the end of |axis| of |x|, the real one.
static pestle_value_t* wrap_indices(pestle_onnx_call_t* call,
                                    pestle_value_t* indices,
                                    const pestle_value_t* x, int64_t axis) {
  pestle_value_t* size = pestle_onnx_real_size(call->import, x, axis);
  pestle_value_t* shifted =
      size ? add(call, indices,
                 pestle_onnx_convert(call, size, dtype_of(indices)))
           : pestle_onnx_binary_f(call, PESTLE_OP_ADD, indices,
                                  (double)pestle_onnx_dim(x, axis));
  return pestle_f_select(&call->f,
                         pestle_onnx_binary_f(call, PESTLE_OP_LT, indices, 0),
                         shifted, indices);
}

// Indices known now: checked, and a slice where they are a run.
static pestle_value_t* gather_known(pestle_onnx_call_t* call, pestle_value_t* x,
                                    const pestle_value_t* indices,
                                    int64_t axis) {
  const pestle_elements_t* known = pestle_value_constant(indices);
  size_t count = (size_t)pestle_type_count(&known->type);
  int64_t extent = pestle_onnx_dim(x, axis);
  int64_t* list = pestle_onnx_scratch(call, (count + 1) * sizeof(int64_t));
  if (!list) return NULL;
  for (size_t i = 0; i < count; ++i) {
    list[i] = pestle_onnx_element_i64(known, i);
    if (list[i] < -extent || list[i] >= extent) {
      return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                              "index %lld is outside of axis %lld, which has "
                              "the extent %lld",
                              (long long)list[i], (long long)axis,
                              (long long)extent);
    }
    if (list[i] < 0) list[i] += extent;
  }
  int64_t dims[PESTLE_MAX_RANK];
  int32_t rank = 0;
  for (int64_t i = 0; i < axis; ++i)
    dims[rank++] = pestle_onnx_dim(x, i);
  for (int32_t i = 0; i < known->type.rank; ++i) {
    dims[rank++] = known->type.dims[i];
  }
  for (int64_t i = axis + 1; i < rank_of(x); ++i) {
    dims[rank++] = pestle_onnx_dim(x, i);
  }
  return pestle_f_reshape(
      &call->f, pestle_onnx_take_list(call, x, list, count, axis), rank, dims);
}

// The real extents of what |rank| axes of indices choose from axes
// [axis, axis + width) of the data. Indices behind the real ones choose
// something.
static void choose_real(pestle_onnx_call_t* call, int64_t axis, int64_t width,
                        int32_t rank) {
  const pestle_value_t *x = call->inputs[0], *indices = call->inputs[1];
  int64_t at = 0;
  for (int64_t i = 0; i < rank_of(x); ++i) {
    pestle_value_t* size = pestle_onnx_real_size(call->import, x, i);
    if (i == axis) at += rank;
    if (i < axis || i >= axis + width)
      pestle_onnx_set_real(call, call->outputs[0], at++, size);
  }
  for (int32_t i = 0; i < rank; ++i) {
    pestle_onnx_set_real(call, call->outputs[0], axis + i,
                         pestle_onnx_real_size(call->import, indices, i));
  }
}

void pestle_onnx_import_gather(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *indices = call->inputs[1];
  int64_t axis =
      pestle_onnx_axis(call, pestle_onnx_int(call, "axis", 0), rank_of(x));
  if (call->f.status) return;
  if (rank_of(x) + rank_of(indices) - 1 > PESTLE_MAX_RANK ||
      !pestle_dtype_is(dtype_of(indices), PESTLE_KIND_INT)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "indices must be integers and the result have at most %d "
                     "axes",
                     PESTLE_MAX_RANK);
    return;
  }
  if (pestle_value_constant(indices) &&
      !pestle_onnx_real_size(call->import, x, axis) &&
      pestle_type_count(pestle_onnx_type(indices)) <= 65536) {
    call->outputs[0] = gather_known(call, x, indices, axis);
  } else {
    call->outputs[0] =
        pestle_onnx_take(call, x, wrap_indices(call, indices, x, axis), axis);
  }
  if (!call->f.status) choose_real(call, axis, 1, rank_of(indices));
}

// Every axis but |axis| is a batch of its own.
void pestle_onnx_import_gather_elements(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *indices = call->inputs[1];
  int64_t rank = rank_of(x);
  int64_t axis = pestle_onnx_axis(call, pestle_onnx_int(call, "axis", 0), rank);
  if (call->f.status || rank_of(indices) != rank) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "data and indices differ in rank");
    return;
  }
  pestle_onnx_gather_t how = {
      .vector = rank, .mapped_count = 1, .mapped = {axis}};
  indices = wrap_indices(call, indices, x, axis);
  for (int64_t i = 0; i < rank; ++i) {
    how.sizes[i] = 1;
    if (i == axis) continue;
    how.batch[how.batch_count++] = i;
    x = pestle_onnx_slice_axis(call, x, i, 0, pestle_onnx_dim(indices, i), 1);
  }
  call->outputs[0] = pestle_onnx_gather(call, x, indices, &how);
  pestle_onnx_copy_real(call, call->outputs[0], call->inputs[1]);
}

// The extents by which the columns of GatherND's index vectors wrap.
static pestle_value_t* wrap_vectors(pestle_onnx_call_t* call, pestle_value_t* x,
                                    pestle_value_t* indices, int64_t batches,
                                    int64_t width) {
  const int64_t one[] = {1};
  pestle_value_t* extents[PESTLE_MAX_RANK];
  for (int64_t i = 0; i < width; ++i) {
    extents[i] = pestle_onnx_convert(
        call, pestle_onnx_size(call, x, batches + i), dtype_of(indices));
    extents[i] = pestle_f_reshape(&call->f, extents[i], 1, one);
  }
  pestle_value_t* shifted = add(
      call, indices, pestle_f_concatenate(&call->f, extents, (size_t)width, 0));
  return pestle_f_select(&call->f,
                         pestle_onnx_binary_f(call, PESTLE_OP_LT, indices, 0),
                         shifted, indices);
}

void pestle_onnx_import_gather_nd(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *indices = call->inputs[1];
  int64_t rank = rank_of(x), vector = rank_of(indices) - 1;
  int64_t batches = pestle_onnx_int(call, "batch_dims", 0);
  int64_t width = pestle_onnx_dim(indices, vector);
  if (vector < batches || batches < 0 || width < 1 || batches + width > rank ||
      rank + vector > PESTLE_MAX_RANK) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its index vectors do not fit its data");
    return;
  }
  indices = wrap_vectors(call, x, indices, batches, width);
  pestle_onnx_gather_t how = {.vector = vector,
                              .offset_count = (size_t)(rank - batches - width),
                              .mapped_count = (size_t)width,
                              .batch_count = (size_t)batches};
  for (int64_t i = 0; i < rank; ++i) {
    how.offsets[i] = vector + i;
    how.mapped[i] = batches + i;
    how.batch[i] = i;
    how.sizes[i] = i < batches + width ? 1 : pestle_onnx_dim(x, i);
  }
  bool is_bounded = pestle_onnx_real(call->import, x) ||
                    pestle_onnx_real(call->import, call->inputs[1]);
  if (is_bounded && (batches || pestle_onnx_real_size(
                                    call->import, call->inputs[1], vector))) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "extents that only a run tells are taken along axes of "
                     "the index vectors alone, and without batches");
    return;
  }
  call->outputs[0] = pestle_onnx_gather(call, x, indices, &how);
  if (!call->f.status) choose_real(call, 0, width, (int32_t)vector);
}

// values[1] where the index is the position on the new axis, else values[0].
void pestle_onnx_import_one_hot(pestle_onnx_call_t* call) {
  pestle_value_t *indices = call->inputs[0], *values = call->inputs[2];
  double depth = pestle_onnx_input_float(call, 1, "depth", 0);
  int64_t rank = rank_of(indices) + 1;
  int64_t axis =
      pestle_onnx_axis(call, pestle_onnx_int(call, "axis", -1), rank);
  bool sane = depth >= 1 && depth <= 1e9;  // false for NaN too
  if (call->f.status || rank > PESTLE_MAX_RANK || !sane ||
      rank_of(values) != 1 || pestle_onnx_dim(values, 0) != 2) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it needs a positive depth and two values");
    return;
  }
  pestle_type_t type = {.dtype = PESTLE_I64, .rank = (int32_t)rank};
  int64_t axes[PESTLE_MAX_RANK];
  for (int64_t i = 0, at = 0; i < rank; ++i) {
    type.dims[i] = i == axis ? (int64_t)depth : pestle_onnx_dim(indices, at);
    if (i != axis) axes[at++] = i;
  }
  indices = pestle_onnx_convert(call, indices, PESTLE_I64);
  indices = pestle_f_select(
      &call->f, pestle_onnx_binary_f(call, PESTLE_OP_LT, indices, 0),
      pestle_onnx_binary_f(call, PESTLE_OP_ADD, indices, depth), indices);
  indices = pestle_f_broadcast(&call->f, indices, type.rank, type.dims,
                               (pestle_i64s_t){axes, (size_t)rank_of(indices)});
  pestle_value_t* hit =
      pestle_f_eq(&call->f, indices, pestle_f_iota(&call->f, &type, axis));
  pestle_value_t* parts[2];
  for (int64_t i = 0; i < 2; ++i) {
    parts[i] = pestle_f_reshape(
        &call->f, pestle_onnx_slice_axis(call, values, 0, i, i + 1, 1), 0,
        NULL);
  }
  call->outputs[0] = pestle_f_select(&call->f, hit, parts[1], parts[0]);
  for (int64_t i = 0, at = 0; i < rank; ++i) {
    if (i == axis) continue;
    pestle_onnx_set_real(
        call, call->outputs[0], i,
        pestle_onnx_real_size(call->import, call->inputs[0], at++));
  }
}
