// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample. Every mode is separable: along one axis each output
// element is a weighted sum of a few input elements ("taps") whose positions
// and weights are known now. Nearest by a whole factor becomes a broadcast, few
// taps become gathers with constant indices, many (antialiasing) a matrix
// product.
#include <math.h>

#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

typedef enum filter_e { FILTER_NEAREST, FILTER_LINEAR, FILTER_CUBIC } filter_t;

typedef struct resize_t {
  filter_t filter;
  pestle_str_t coordinates, nearest;
  double cubic_a, extrapolation;
  bool antialias, exclude_outside, by_scales;
  bool ceils_down;  // the nearest, where there become fewer
  double scale[PESTLE_MAX_RANK];
  int64_t out[PESTLE_MAX_RANK];
  double roi[2][PESTLE_MAX_RANK];  // start, end
} resize_t;

// The taps of one axis: |count| for each of |out| elements.
typedef struct taps_t {
  int64_t out, count;
  int64_t* index;  // [tap][out]
  double* weight;  // [tap][out]
  bool* outside;   // [out]: extrapolated
  bool any_outside;
} taps_t;

// --- Where an output element lies in the input ---

// Scales are f32, and so is what other implementations divide by them: the point
// between two elements, or on one, goes to the same side as theirs.
static double rounded(const resize_t* how, double number) {
  return how->filter == FILTER_NEAREST && how->by_scales ? (double)(float)number
                                                         : number;
}

static double origin(const resize_t* how, int64_t axis, int64_t extent,
                     int64_t x) {
  double scale = rounded(how, how->scale[axis]), in = (double)extent;
  double out = (double)how->out[axis], at = (double)x;
  double wide = rounded(how, scale * in);  // before it is an extent
  pestle_str_t mode = how->coordinates;
  if (pestle_str_equal_c(mode, "align_corners")) {
    // ONNX's own cases measure the output before it is rounded to an extent.
    return out <= 1 ? 0 : rounded(how, at * (in - 1) / (wide - 1));
  }
  if (pestle_str_equal_c(mode, "asymmetric")) return rounded(how, at / scale);
  if (pestle_str_equal_c(mode, "tf_crop_and_resize")) {
    double start = how->roi[0][axis];
    double length = rounded(how, how->roi[1][axis] - start);
    double first = rounded(how, start * (in - 1));
    double rest = rounded(how, at * length);
    rest = rounded(how, rest * (in - 1));
    return out <= 1 ? first + length * (in - 1) / 2
                    : rounded(how, first + rounded(how, rest / (wide - 1)));
  }
  if (pestle_str_equal_c(mode, "pytorch_half_pixel") && out <= 1) return -0.5;
  double middle = rounded(how, rounded(how, (at + 0.5) / scale) - 0.5);
  if (pestle_str_equal_c(mode, "half_pixel_symmetric")) {
    double adjustment = rounded(how, out / wide);
    return rounded(how, in / 2 * rounded(how, 1 - adjustment) + middle);
  }
  return middle;
}

static bool known_coordinates(pestle_str_t mode) {
  return pestle_str_is_one_of(
      mode,
      "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners "
      "asymmetric tf_crop_and_resize");
}

// --- Weights ---

static double triangle(double x) {
  x = fabs(x);
  return x < 1 ? 1 - x : 0;
}

static double keys(double x, double a) {
  x = fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Nearest: 0 for the element at or below, 1 for the one above.
static int64_t pick(pestle_str_t mode, double ratio) {
  if (ratio == 1) return 1;
  if (pestle_str_equal_c(mode, "floor")) return 0;
  if (pestle_str_equal_c(mode, "ceil")) return 1;
  return pestle_str_equal_c(mode, "round_prefer_ceil") ? ratio >= 0.5
                                                       : ratio > 0.5;
}

// The weights of taps first, first + 1, ... around a point |ratio| past the
// element 0, normalised.
static void weigh(const resize_t* how, double scale, double ratio,
                  int64_t first, int64_t count, double* weights) {
  double shrink = how->antialias && scale < 1 ? scale : 1, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    double x = ((double)(first + i) - ratio) * shrink;
    weights[i] =
        how->filter == FILTER_CUBIC ? keys(x, how->cubic_a) : triangle(x);
    sum += weights[i];
  }
  for (int64_t i = 0; i < count && sum != 0; ++i)
    weights[i] /= sum;
}

// How far the filter reaches to the left, in elements; 0 or less.
static int64_t first_tap(const resize_t* how, double scale) {
  double reach = how->filter == FILTER_CUBIC ? 2 : 1;
  double shrink = how->antialias && scale < 1 ? scale : 1;
  // A filter that is wider than that is refused with its taps.
  double first = fmax(floor(-reach / shrink) + 1, -0x1p40);
  return (int64_t)first;
}

static int64_t inside(int64_t index, int64_t extent) {
  return index < 0 ? 0 : index >= extent ? extent - 1 : index;
}

static void fill_element(const resize_t* how, int64_t axis, int64_t extent,
                         int64_t x, taps_t* taps, double* weights) {
  double at = origin(how, axis, extent, x), scale = how->scale[axis];
  // The element left of the point; a point on an element has it on its right.
  double base = floor(at) == at ? at - 1 : floor(at);
  double ratio = at - base, limit = (double)(extent - 1);
  taps->outside[x] =
      pestle_str_equal_c(how->coordinates, "tf_crop_and_resize") &&
      (at < 0 || at > limit);
  taps->any_outside |= taps->outside[x];
  // Written so that a NaN, which a region of interest may be, goes left.
  int64_t left = !(base >= -1e9) ? -1000000000
                 : base > 1e12   ? extent
                                 : (int64_t)base;
  if (how->filter == FILTER_NEAREST) {
    pestle_str_t nearest =
        how->ceils_down && scale < 1 ? PESTLE_STR("ceil") : how->nearest;
    taps->index[x] = inside(left + pick(nearest, ratio), extent);
    taps->weight[x] = 1;
    return;
  }
  int64_t first = first_tap(how, scale);
  weigh(how, scale, ratio, first, taps->count, weights);
  double sum = 0;
  for (int64_t i = 0; i < taps->count; ++i) {
    int64_t index = left + first + i;
    if (how->exclude_outside && (index < 0 || index >= extent)) weights[i] = 0;
    taps->index[i * taps->out + x] = inside(index, extent);
    sum += weights[i];
  }
  for (int64_t i = 0; i < taps->count; ++i) {
    taps->weight[i * taps->out + x] =
        how->exclude_outside && sum != 0 ? weights[i] / sum : weights[i];
  }
}

static bool make_taps(pestle_onnx_call_t* call, const resize_t* how,
                      int64_t axis, int64_t extent, taps_t* taps) {
  *taps = (taps_t){.out = how->out[axis], .count = 1};
  if (how->filter != FILTER_NEAREST) {
    taps->count = 2 - 2 * first_tap(how, how->scale[axis]);
  }
  if (extent < 1 || taps->out > PESTLE_ONNX_MAX_INDICES ||
      taps->count > PESTLE_ONNX_MAX_INDICES / (taps->out + 1)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "axis %lld of extent %lld resized to %lld",
                     (long long)axis, (long long)extent, (long long)taps->out);
    return false;
  }
  size_t n = (size_t)(taps->out * taps->count) + 1;
  taps->index = pestle_onnx_scratch(call, n * sizeof(int64_t));
  taps->weight = pestle_onnx_scratch(call, n * sizeof(double));
  taps->outside = pestle_onnx_scratch(call, n);
  double* weights =
      pestle_onnx_scratch(call, (size_t)taps->count * sizeof(double));
  if (call->f.status) return false;
  for (int64_t x = 0; x < taps->out; ++x) {
    fill_element(how, axis, extent, x, taps, weights);
  }
  return true;
}

// --- Applying taps ---

// Each element of axis i |factors[i]| times, all axes at once:
// [.., n, m, ..] -> [.., n, k, m, l, ..] -> [.., n k, m l, ..]
static pestle_value_t* repeat_each(pestle_onnx_call_t* call, pestle_value_t* x,
                                   const int64_t* factors) {
  int64_t dims[PESTLE_MAX_RANK], axes[PESTLE_MAX_RANK];
  int32_t rank = rank_of(x), wide_rank = 0;
  pestle_type_t type = *pestle_onnx_type(x);
  for (int32_t i = 0; i < rank; ++i) {
    axes[i] = wide_rank;
    dims[wide_rank++] = type.dims[i];
    if (factors[i] > 1) dims[wide_rank++] = factors[i];
    type.dims[i] *= factors[i];
  }
  if (wide_rank == rank) return x;
  pestle_value_t* wide = pestle_f_broadcast(
      &call->f, x, wide_rank, dims, (pestle_i64s_t){axes, (size_t)rank_of(x)});
  return pestle_f_reshape(&call->f, wide, rank, type.dims);
}

static bool is_whole_factor(const taps_t* taps, int64_t extent) {
  if (taps->out % extent != 0) return false;
  int64_t factor = taps->out / extent;
  for (int64_t i = 0; i < taps->out; ++i) {
    if (taps->index[i] != i / factor) return false;
  }
  return true;
}

static pestle_value_t* tap_weights(pestle_onnx_call_t* call,
                                   const pestle_value_t* x, int64_t axis,
                                   const taps_t* taps, int64_t tap) {
  pestle_type_t type = {.dtype = dtype_of(x), .rank = rank_of(x)};
  for (int32_t i = 0; i < type.rank; ++i)
    type.dims[i] = 1;
  type.dims[axis] = taps->out;
  return pestle_onnx_numbers(call, &type, taps->weight + tap * taps->out);
}

static bool all_are(const double* values, int64_t count, double value) {
  for (int64_t i = 0; i < count; ++i) {
    if (values[i] != value) return false;
  }
  return true;
}

static pestle_value_t* apply_few(pestle_onnx_call_t* call, pestle_value_t* x,
                                 int64_t axis, const taps_t* taps) {
  pestle_value_t* sum = NULL;
  for (int64_t tap = 0; tap < taps->count; ++tap) {
    const double* weights = taps->weight + tap * taps->out;
    if (all_are(weights, taps->out, 0)) continue;
    pestle_value_t* part = pestle_onnx_take_list(
        call, x, taps->index + tap * taps->out, (size_t)taps->out, axis);
    if (!all_are(weights, taps->out, 1)) {
      part = mul(call, part, tap_weights(call, x, axis, taps, tap));
    }
    sum = sum ? add(call, sum, part) : part;
  }
  // Where all lies outside and counts for nothing.
  if (!sum) {
    pestle_type_t type = *pestle_onnx_type(x);
    type.dims[axis] = taps->out;
    sum = pestle_onnx_splat(call, &type, 0);
  }
  return sum;
}

static pestle_value_t* apply_matrix(pestle_onnx_call_t* call, pestle_value_t* x,
                                    int64_t axis, const taps_t* taps) {
  int64_t extent = pestle_onnx_dim(x, axis);
  pestle_type_t type = {
      .dtype = dtype_of(x), .rank = 2, .dims = {extent, taps->out}};
  double* matrix =
      extent > PESTLE_ONNX_MAX_INDICES / taps->out
          ? NULL
          : pestle_onnx_scratch(
                call, (size_t)(extent * taps->out + 1) * sizeof(double));
  if (!matrix) {
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "axis %lld is too long to be filtered",
                            (long long)axis);
  }
  for (int64_t i = 0; i < taps->out * taps->count; ++i) {
    matrix[taps->index[i] * taps->out + i % taps->out] += taps->weight[i];
  }
  pestle_value_t* y =
      pestle_onnx_dot(call, x, pestle_onnx_numbers(call, &type, matrix),
                      (pestle_i64s_t){0}, (pestle_i64s_t){0},
                      (pestle_i64s_t){&axis, 1}, PESTLE_I64S(0), dtype_of(x));
  int64_t order[PESTLE_MAX_RANK];
  int32_t rank = rank_of(x);
  for (int32_t i = 0; i < rank; ++i) {
    order[i] = i < axis ? i : i == axis ? rank - 1 : i - 1;
  }
  return pestle_f_transpose(&call->f, y, order);
}

static pestle_value_t* extrapolate(pestle_onnx_call_t* call, pestle_value_t* y,
                                   int64_t axis, const taps_t* taps,
                                   double value) {
  pestle_type_t type = {.dtype = PESTLE_I1, .rank = 1, .dims = {taps->out}};
  double* mask =
      pestle_onnx_scratch(call, (size_t)(taps->out + 1) * sizeof(double));
  if (!mask || !y) return NULL;
  for (int64_t i = 0; i < taps->out; ++i)
    mask[i] = taps->outside[i];
  pestle_value_t* outside =
      pestle_onnx_along(call, pestle_onnx_numbers(call, &type, mask), y, axis);
  return pestle_f_select(&call->f, outside, splat_like(call, y, value), y);
}

// Of an axis whose elements are repeated a whole number of times that is left to
// |*factor|.
static pestle_value_t* resize_axis(pestle_onnx_call_t* call, pestle_value_t* x,
                                   const resize_t* how, int64_t axis,
                                   int64_t* factor) {
  int64_t extent = pestle_onnx_dim(x, axis);
  taps_t taps;
  bool crops = pestle_str_equal_c(how->coordinates, "tf_crop_and_resize");
  if (how->out[axis] == extent && how->scale[axis] == 1 && !crops) return x;
  if (how->out[axis] == 0) {
    return pestle_onnx_slice_axis(call, x, axis, 0, 0, 1);
  }
  if (!make_taps(call, how, axis, extent, &taps)) return NULL;
  if (how->filter == FILTER_NEAREST && is_whole_factor(&taps, extent) &&
      !taps.any_outside && 2 * rank_of(x) <= PESTLE_MAX_RANK) {
    *factor = taps.out / extent;
    return x;
  }
  pestle_value_t* y = taps.count <= 4 ? apply_few(call, x, axis, &taps)
                                      : apply_matrix(call, x, axis, &taps);
  return taps.any_outside
             ? extrapolate(call, y, axis, &taps, how->extrapolation)
             : y;
}

// --- Reading the node ---

// Numbers of input |index|, one for each of |axes|, into |out|.
static bool read_numbers(pestle_onnx_call_t* call, size_t index,
                         const char* what, size_t wanted, double* out) {
  pestle_value_t* value = pestle_onnx_input(call, index);
  const pestle_elements_t* known = value ? pestle_value_constant(value) : NULL;
  if (!known || pestle_type_count(&known->type) != (int64_t)wanted) {
    if (!known) pestle_onnx_need(call, value);
    pestle_onnx_fail(
        call, known ? PESTLE_STATUS_MALFORMED : PESTLE_STATUS_UNSUPPORTED,
        "its %s must be known while importing and hold %zu "
        "numbers",
        what, wanted);
    return false;
  }
  for (size_t i = 0; i < wanted; ++i) {
    out[i] = pestle_onnx_element_f64(known, i);
  }
  return true;
}

static bool has_elements(const pestle_onnx_call_t* call, size_t index) {
  pestle_value_t* value = pestle_onnx_input(call, index);
  return value && pestle_type_count(pestle_onnx_type(value)) != 0;
}

static void scale_from_sizes(pestle_onnx_call_t* call, const pestle_value_t* x,
                             const int64_t* axes, const double* sizes,
                             size_t count, resize_t* how) {
  pestle_str_t policy =
      pestle_onnx_word(call, "keep_aspect_ratio_policy", "stretch",
                       "stretch not_larger not_smaller");
  bool stretch = pestle_str_equal_c(policy, "stretch");
  bool larger = pestle_str_equal_c(policy, "not_smaller");
  double common = larger ? 0 : (double)INFINITY;
  for (size_t i = 0; i < count; ++i) {
    double ratio = sizes[i] / (double)pestle_onnx_dim(x, axes[i]);
    common = larger ? fmax(common, ratio) : fmin(common, ratio);
  }
  for (size_t i = 0; i < count; ++i) {
    double extent = (double)pestle_onnx_dim(x, axes[i]), size = sizes[i];
    how->scale[axes[i]] = stretch ? size / extent : common;
    if (!stretch) size = floor(common * extent + 0.5);
    how->out[axes[i]] = size >= 0 && size < 1e12 ? (int64_t)size : -1;
  }
}

// An extent times a scale in f32, as ONNX's shape inference has it: 5 times 2.6,
// which f32 has a little less of, is 13.
static double scaled(double extent, double scale) {
  return (double)floorf((float)extent * (float)scale);
}

// Fills scale and out from the scales or sizes that are given for |axes|.
static bool read_target(pestle_onnx_call_t* call, const pestle_value_t* x,
                        const int64_t* axes, size_t count, size_t scales_at,
                        resize_t* how) {
  double numbers[PESTLE_MAX_RANK];
  bool sizes = call->opset >= 11 && has_elements(call, 3);
  how->by_scales = !sizes;
  if (!read_numbers(call, sizes ? 3 : scales_at, sizes ? "sizes" : "scales",
                    count, numbers)) {
    return false;
  }
  // A stated size is not that of an axis whose extent only a run tells.
  for (size_t i = 0; sizes && i < count; ++i) {
    if (axes[i] == 0 && !pestle_onnx_allow_real(call, 0, 0)) return false;
  }
  if (sizes) {
    scale_from_sizes(call, x, axes, numbers, count, how);
  } else {
    for (size_t i = 0; i < count; ++i) {
      double size = scaled((double)pestle_onnx_dim(x, axes[i]), numbers[i]);
      how->scale[axes[i]] = numbers[i];
      how->out[axes[i]] = size >= 0 && size < 1e12 ? (int64_t)size : -1;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (how->out[axes[i]] >= 0 && how->scale[axes[i]] >= 0) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "axis %lld is resized by %g", (long long)axes[i],
                     numbers[i]);
  }
  return !call->f.status;
}

static void read_roi(pestle_onnx_call_t* call, const int64_t* axes,
                     size_t count, resize_t* how) {
  double numbers[2 * PESTLE_MAX_RANK];
  if (!pestle_str_equal_c(how->coordinates, "tf_crop_and_resize") ||
      !read_numbers(call, 1, "roi", 2 * count, numbers)) {
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    how->roi[0][axes[i]] = numbers[i];
    how->roi[1][axes[i]] = numbers[i + count];
  }
}

static void read_mode(pestle_onnx_call_t* call, resize_t* how) {
  pestle_str_t mode = pestle_onnx_string(call, "mode", "nearest");
  if (pestle_str_equal_c(mode, "nearest")) {
    how->filter = FILTER_NEAREST;
  } else if (pestle_str_is_one_of(mode, "linear bilinear")) {
    how->filter = FILTER_LINEAR;
  } else if (pestle_str_equal_c(mode, "cubic")) {
    how->filter = FILTER_CUBIC;
  } else {
    pestle_onnx_fail(
        call, PESTLE_STATUS_UNSUPPORTED,
        "attribute 'mode' is '%.*s', known are nearest, linear and "
        "cubic",
        PESTLE_STR_ARG(mode));
  }
}

static void resize(pestle_onnx_call_t* call, resize_t* how) {
  pestle_value_t* x = call->inputs[0];
  pestle_dtype_t dtype = dtype_of(x);
  bool wide = dtype == PESTLE_F32 || dtype == PESTLE_F64 ||
              how->filter == FILTER_NEAREST;
  // f32 does not hold all integers of 32 bits.
  bool is_integer = !pestle_dtype_is(dtype, PESTLE_KIND_FLOAT);
  bool needs_f64 = is_integer && pestle_dtype_size(dtype) > 2;
  if (!wide) {
    x = pestle_onnx_convert(call, x, needs_f64 ? PESTLE_F64 : PESTLE_F32);
  }
  int64_t factors[PESTLE_MAX_RANK];
  for (int64_t axis = rank_of(x) - 1; axis >= 0 && !call->f.status; --axis) {
    factors[axis] = 1;
    x = resize_axis(call, x, how, axis, &factors[axis]);
  }
  if (!call->f.status) x = repeat_each(call, x, factors);
  // To the nearest integer, as the evaluator; the conversion saturates.
  if (!wide && is_integer) {
    x = pestle_f_round_nearest_even(&call->f, x);
  }
  call->outputs[0] = pestle_onnx_convert(call, x, dtype);
}

static resize_t make_resize(const pestle_value_t* x) {
  resize_t how = {.cubic_a = -0.75};
  for (int32_t i = 0; i < rank_of(x); ++i) {
    how.scale[i] = 1;
    how.out[i] = pestle_onnx_dim(x, i);
    how.roi[1][i] = 1;
  }
  return how;
}

void pestle_onnx_import_resize(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  resize_t how = make_resize(x);
  bool first_form = call->opset < 11;
  how.coordinates =
      pestle_onnx_string(call, "coordinate_transformation_mode",
                         first_form ? "asymmetric" : "half_pixel");
  how.nearest = pestle_onnx_word(
      call, "nearest_mode", first_form ? "floor" : "round_prefer_floor",
      "round_prefer_floor round_prefer_ceil floor ceil");
  // Before opset 11 no attribute says which is the nearest.
  how.ceils_down = first_form && pestle_onnx_as_ort(call);
  how.cubic_a = pestle_onnx_float(call, "cubic_coeff_a", -0.75);
  how.extrapolation = pestle_onnx_float(call, "extrapolation_value", 0);
  how.exclude_outside = pestle_onnx_int(call, "exclude_outside", 0) != 0;
  how.antialias = pestle_onnx_int(call, "antialias", 0) != 0;
  read_mode(call, &how);
  if (!known_coordinates(how.coordinates)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute 'coordinate_transformation_mode' is '%.*s'",
                     PESTLE_STR_ARG(how.coordinates));
  }
  int64_t axes[PESTLE_MAX_RANK];
  pestle_i64s_t listed = pestle_onnx_ints(call, "axes");
  size_t count = listed.count ? listed.count : (size_t)rank_of(x);
  if (count > (size_t)rank_of(x)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'axes' has too many axes");
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    axes[i] = listed.count ? pestle_onnx_axis(call, listed.data[i], rank_of(x))
                           : (int64_t)i;
  }
  if (call->f.status) return;
  read_roi(call, axes, count, &how);
  if (read_target(call, x, axes, count, first_form ? 1 : 2, &how)) {
    resize(call, &how);
  }
}

void pestle_onnx_import_upsample(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  resize_t how = make_resize(x);
  how.coordinates = PESTLE_STR("asymmetric");
  how.nearest = PESTLE_STR("floor");
  how.by_scales = true;
  read_mode(call, &how);
  int64_t axes[PESTLE_MAX_RANK];
  size_t count = (size_t)rank_of(x);
  for (size_t i = 0; i < count; ++i)
    axes[i] = (int64_t)i;
  const pestle_onnx_attr_t* scales =
      pestle_onnx_node_attr(call->node, "scales");
  if (call->opset >= 9) {
    if (read_target(call, x, axes, count, 1, &how)) resize(call, &how);
    return;
  }
  if (!scales || scales->kind != PESTLE_ONNX_ATTR_FLOATS ||
      scales->count != count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'scales' must have %zu numbers", count);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    how.scale[i] = (double)scales->floats[i];
    double size = scaled((double)how.out[i], how.scale[i]);
    if (!(how.scale[i] > 0) || !(size < 1e12)) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "axis %zu is resized by %g", i, how.scale[i]);
      return;
    }
    how.out[i] = (int64_t)size;
  }
  resize(call, &how);
}
