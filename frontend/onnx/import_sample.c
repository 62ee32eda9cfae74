// SPDX-License-Identifier: Apache-2.0
// Sampling between elements: GridSample, RoiAlign and DeformConv; and the pool
// of whole elements that came before RoiAlign. Points have a
// coordinate for each spatial axis, in elements; along one axis a point reads
// one, two or four elements ("taps"), and every combination of taps is one
// gather.
#include <math.h>

#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

#define MOST_GATHERS 64
#define MOST_TAPS 4
#define MOST_AXES 6

typedef enum padding_e { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION } padding_t;

typedef struct tap_t {
  pestle_value_t* index;   // i64 [batch, points], inside of the axis
  pestle_value_t* inside;  // whether it was, or NULL where that does not matter
  pestle_value_t* weight;  // or NULL for 1
} tap_t;

typedef struct sampler_t {
  pestle_onnx_call_t* call;
  pestle_value_t* x;      // [n, channels, elements of a plane]
  pestle_value_t* image;  // i64 [batch]: which of n each reads; NULL: its own
  int32_t axes;
  int64_t extents[MOST_AXES];
  pestle_value_t* at[MOST_AXES];  // [batch, points]
  int taps;                       // of an axis: 1 nearest, 2 linear, 4 cubic
  padding_t padding;
  bool align_corners;
  bool takes_maximum;  // of the weighted elements, not their sum
  tap_t tap[MOST_AXES][MOST_TAPS];
} sampler_t;

static pestle_value_t* clamp_to(pestle_onnx_call_t* call, pestle_value_t* x,
                                double low, double high) {
  x = pestle_onnx_binary_f(call, PESTLE_OP_MAXIMUM, x, low);
  return pestle_onnx_binary_f(call, PESTLE_OP_MINIMUM, x, high);
}

// Between which coordinates an axis lies, as reflections see it.
static void borders(const sampler_t* s, int32_t axis, double* low,
                    double* high) {
  double extent = (double)s->extents[axis];
  *low = s->align_corners ? 0 : -0.5;
  *high = s->align_corners ? extent - 1 : extent - 0.5;
}

// Folded back at both borders: a sawtooth of twice their distance.
static pestle_value_t* reflect(const sampler_t* s, pestle_value_t* x,
                               int32_t axis) {
  pestle_onnx_call_t* call = s->call;
  double low, high;
  borders(s, axis, &low, &high);
  double range = high - low;
  if (range <= 0) return times(call, x, 0);
  pestle_value_t* away = pestle_f_abs(
      &call->f, pestle_onnx_binary_f(call, PESTLE_OP_SUBTRACT, x, low));
  away = pestle_onnx_binary_f(call, PESTLE_OP_REMAINDER, away, 2 * range);
  pestle_value_t* back = sub(call, splat_like(call, away, 2 * range), away);
  away = pestle_f_minimum(&call->f, away, back);
  return pestle_onnx_binary_f(call, PESTLE_OP_ADD, away, low);
}

// Points outside of the borders are brought to one, or reflected.
static pestle_value_t* bring_inside(const sampler_t* s, pestle_value_t* x,
                                    int32_t axis) {
  pestle_onnx_call_t* call = s->call;
  double low, high;
  if (s->padding == PAD_ZEROS) return x;
  if (s->padding == PAD_REFLECTION) return reflect(s, x, axis);
  borders(s, axis, &low, &high);
  pestle_value_t* below = pestle_onnx_binary_f(call, PESTLE_OP_LT, x, low);
  pestle_value_t* above = pestle_onnx_binary_f(call, PESTLE_OP_GT, x, high);
  pestle_value_t* outside = pestle_f_or(&call->f, below, above);
  pestle_value_t* bound = clamp_to(call, x, 0, (double)(s->extents[axis] - 1));
  return pestle_f_select(&call->f, outside, bound, x);
}

// --- Taps ---

// Keys' cubic weights with a = -0.75 for the element |i| - 1 left of the point.
static pestle_value_t* cubic_weight(pestle_onnx_call_t* call,
                                    pestle_value_t* ratio, int i) {
  double a = -0.75;
  pestle_value_t* x = ratio;
  if (i == 0) x = pestle_onnx_binary_f(call, PESTLE_OP_ADD, ratio, 1);
  if (i >= 2) x = sub(call, splat_like(call, ratio, i - 1), ratio);
  bool near = i == 1 || i == 2;
  double c[4] = {1, 0, -(a + 3), a + 2};
  if (!near) {
    c[0] = -4 * a;
    c[1] = 8 * a;
    c[2] = -5 * a;
    c[3] = a;
  }
  pestle_value_t* sum = splat_like(call, x, c[3]);
  for (int k = 2; k >= 0; --k) {
    sum = pestle_onnx_binary_f(call, PESTLE_OP_ADD, mul(call, sum, x), c[k]);
  }
  return sum;
}

static pestle_value_t* tap_weight(const sampler_t* s, pestle_value_t* ratio,
                                  int i) {
  if (s->taps == 1) return NULL;
  if (s->taps == MOST_TAPS) return cubic_weight(s->call, ratio, i);
  return i ? ratio : sub(s->call, splat_like(s->call, ratio, 1), ratio);
}

static void make_taps(sampler_t* s, int32_t axis) {
  pestle_onnx_call_t* call = s->call;
  double last = (double)(s->extents[axis] - 1);
  pestle_value_t* at = s->at[axis];
  if (s->taps == 1) at = pestle_f_round_nearest_even(&call->f, at);
  // ONNX Runtime brings the taps of a cubic inside, and not the point that they are around.
  bool taps_alone = s->taps == MOST_TAPS && s->padding == PAD_BORDER &&
                    pestle_onnx_as_ort(call);
  if (!taps_alone) at = bring_inside(s, at, axis);
  pestle_value_t* base = pestle_f_floor(&call->f, at);
  pestle_value_t* ratio = sub(call, at, base);
  for (int i = 0; i < s->taps; ++i) {
    tap_t* tap = &s->tap[axis][i];
    double shift = s->taps == MOST_TAPS ? i - 1 : i;
    pestle_value_t* index =
        pestle_onnx_binary_f(call, PESTLE_OP_ADD, base, shift);
    if (s->padding == PAD_ZEROS) {
      pestle_value_t* low = pestle_onnx_binary_f(call, PESTLE_OP_GE, index, 0);
      pestle_value_t* high =
          pestle_onnx_binary_f(call, PESTLE_OP_LE, index, last);
      tap->inside = pestle_f_and(&call->f, low, high);
    } else if (s->padding == PAD_REFLECTION) {
      index = reflect(s, index, axis);
    }
    index = clamp_to(call, index, 0, last);
    tap->index = pestle_onnx_convert(call, index, PESTLE_I64);
    tap->weight = tap_weight(s, ratio, i);
  }
}

// --- Gathers ---

// [batch, points] seen as [batch, 1, points].
static pestle_value_t* over_channels(pestle_onnx_call_t* call,
                                     pestle_value_t* x) {
  int64_t dims[] = {pestle_onnx_dim(x, 0), 1, pestle_onnx_dim(x, 1)};
  return pestle_f_reshape(&call->f, x, 3, dims);
}

// The elements of each channel at flat |index|: [batch, channels, points].
static pestle_value_t* read_plane(const sampler_t* s, pestle_value_t* index) {
  pestle_onnx_call_t* call = s->call;
  int64_t channels = pestle_onnx_dim(s->x, 1);
  pestle_onnx_gather_t how = {.vector = 2,
                              .offset_count = 1,
                              .mapped_count = 1,
                              .batch_count = 1,
                              .offsets = {1},
                              .mapped = {2},
                              .sizes = {1, channels, 1}};
  if (!s->image) return pestle_onnx_gather(call, s->x, index, &how);
  int64_t dims[] = {pestle_onnx_dim(index, 0), pestle_onnx_dim(index, 1), 1};
  int64_t axis = 0;
  pestle_value_t* parts[2] = {
      pestle_f_broadcast(&call->f, s->image, 3, dims,
                         (pestle_i64s_t){&axis, (size_t)rank_of(s->image)}),
      pestle_f_reshape(&call->f, index, 3, dims)};
  how.batch_count = 0;
  how.mapped_count = 2;
  how.mapped[0] = 0;
  how.mapped[1] = 2;
  return pestle_onnx_gather(call, s->x,
                            pestle_f_concatenate(&call->f, parts, 2, 2), &how);
}

// What combination |which| of taps adds: a digit to the base of |taps| an axis.
static pestle_value_t* read_taps(const sampler_t* s, int which) {
  pestle_onnx_call_t* call = s->call;
  pestle_value_t *index = NULL, *inside = NULL, *weight = NULL;
  for (int32_t axis = 0; axis < s->axes; ++axis) {
    const tap_t* tap = &s->tap[axis][which % s->taps];
    which /= s->taps;
    if (index) index = times(call, index, (double)s->extents[axis]);
    index = index ? add(call, index, tap->index) : tap->index;
    if (tap->inside) {
      inside =
          inside ? pestle_f_and(&call->f, inside, tap->inside) : tap->inside;
    }
    if (tap->weight) {
      weight = weight ? mul(call, weight, tap->weight) : tap->weight;
    }
  }
  pestle_value_t* value = read_plane(s, index);
  if (inside) {
    value = pestle_f_select(&call->f, over_channels(call, inside), value,
                            splat_like(call, value, 0));
  }
  return weight ? mul(call, value, over_channels(call, weight)) : value;
}

// [batch, channels, points]
static pestle_value_t* sample(sampler_t* s) {
  pestle_onnx_call_t* call = s->call;
  int combinations = 1;
  for (int32_t i = 0; i < s->axes; ++i) {
    combinations *= s->taps;
    if (combinations > MOST_GATHERS || s->extents[i] < 1) {
      return pestle_onnx_fail(
          call, PESTLE_STATUS_UNSUPPORTED,
          "it samples %d axes, each by %d elements, or one of extent 0",
          s->axes, s->taps);
    }
  }
  for (int32_t i = 0; i < s->axes; ++i)
    make_taps(s, i);
  pestle_value_t* sum = NULL;
  pestle_op_t op = s->takes_maximum ? PESTLE_OP_MAXIMUM : PESTLE_OP_ADD;
  for (int i = 0; i < combinations && !call->f.status; ++i) {
    pestle_value_t* value = read_taps(s, i);
    sum = sum ? pestle_f_binary(&call->f, op, sum, value) : value;
  }
  return sum;
}

// Sums are of f32 at least.
static pestle_dtype_t work_dtype(pestle_dtype_t dtype) {
  return dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
}

// --- GridSample ---

static bool read_grid_mode(sampler_t* s) {
  pestle_onnx_call_t* call = s->call;
  bool old = call->opset < 20;
  pestle_str_t mode =
      pestle_onnx_string(call, "mode", old ? "bilinear" : "linear");
  pestle_str_t pad = pestle_onnx_string(call, "padding_mode", "zeros");
  bool linear = pestle_str_is_one_of(mode, "linear bilinear");
  bool cubic = pestle_str_is_one_of(mode, "cubic bicubic");
  s->taps = cubic ? 4 : linear ? 2 : 1;
  bool border = pestle_str_equal_c(pad, "border");
  bool reflection = pestle_str_equal_c(pad, "reflection");
  s->padding = border ? PAD_BORDER : reflection ? PAD_REFLECTION : PAD_ZEROS;
  s->align_corners = pestle_onnx_int(call, "align_corners", 0) != 0;
  if ((!cubic && !linear && !pestle_str_equal_c(mode, "nearest")) ||
      (!border && !reflection && !pestle_str_equal_c(pad, "zeros"))) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute 'mode' is '%.*s' and 'padding_mode' '%.*s', "
                     "known are nearest, linear, cubic and zeros, border, "
                     "reflection",
                     PESTLE_STR_ARG(mode), PESTLE_STR_ARG(pad));
  }
  return !call->f.status;
}

// The coordinates of one axis, from -1 to 1, as elements of [batch, points].
static pestle_value_t* grid_axis(const sampler_t* s, pestle_value_t* grid,
                                 int32_t axis, int64_t points) {
  pestle_onnx_call_t* call = s->call;
  int64_t last = rank_of(grid) - 1, at = s->axes - 1 - axis;
  int64_t dims[] = {pestle_onnx_dim(grid, 0), points};
  pestle_value_t* x = pestle_f_reshape(
      &call->f, pestle_onnx_slice_axis(call, grid, last, at, at + 1, 1), 2,
      dims);
  double extent = (double)s->extents[axis];
  x = pestle_onnx_binary_f(call, PESTLE_OP_ADD, x, 1);
  if (s->align_corners) return times(call, x, (extent - 1) / 2);
  x = pestle_onnx_binary_f(call, PESTLE_OP_SUBTRACT, times(call, x, extent), 1);
  return times(call, x, 0.5);
}

// x [n, channels, ...] with its spatial axes as one.
static pestle_value_t* flat_planes(pestle_onnx_call_t* call,
                                   pestle_value_t* x) {
  int64_t dims[] = {pestle_onnx_dim(x, 0), pestle_onnx_dim(x, 1),
                    pestle_onnx_dims_product(x, 2, rank_of(x))};
  return pestle_f_reshape(&call->f, x, 3, dims);
}

void pestle_onnx_import_grid_sample(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *grid = call->inputs[1];
  sampler_t s = {.call = call, .axes = rank_of(x) - 2};
  int64_t last = rank_of(grid) - 1;
  if (s.axes < 1 || s.axes > MOST_AXES || rank_of(grid) != rank_of(x) ||
      pestle_onnx_dim(grid, last) != s.axes ||
      pestle_onnx_dim(grid, 0) != pestle_onnx_dim(x, 0) ||
      !pestle_dtype_is(dtype_of(grid), PESTLE_KIND_FLOAT)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its grid must be [n, ..., %d] floats for an input of "
                     "rank %d",
                     s.axes, rank_of(x));
    return;
  }
  if (!read_grid_mode(&s)) return;
  pestle_dtype_t dtype = dtype_of(x);
  if (s.taps > 1) x = pestle_onnx_convert(call, x, work_dtype(dtype));
  grid = pestle_onnx_convert(
      call, grid, s.taps > 1 ? work_dtype(dtype) : work_dtype(dtype_of(grid)));
  int64_t points = pestle_onnx_dims_product(grid, 1, last);
  for (int32_t i = 0; i < s.axes; ++i) {
    s.extents[i] = pestle_onnx_dim(x, 2 + i);
    s.at[i] = grid_axis(&s, grid, i, points);
  }
  s.x = flat_planes(call, x);
  pestle_type_t type = *pestle_onnx_type(call->inputs[0]);
  for (int32_t i = 0; i < s.axes; ++i)
    type.dims[2 + i] = pestle_onnx_dim(grid, 1 + i);
  pestle_value_t* y =
      pestle_f_reshape(&call->f, sample(&s), type.rank, type.dims);
  call->outputs[0] = pestle_onnx_convert(call, y, dtype);
}

// --- AffineGrid ---

// Coordinates of the middles of |extent| elements, or of their outer edges.
static pestle_value_t* axis_grid(pestle_onnx_call_t* call,
                                 const pestle_type_t* like, int32_t axis,
                                 const pestle_onnx_extent_t* extent) {
  bool aligned = pestle_onnx_int(call, "align_corners", 0) != 0;
  pestle_type_t type = {.dtype = like->dtype, .rank = like->rank};
  for (int32_t i = 0; i < type.rank; ++i)
    type.dims[i] = 1;
  type.dims[axis] = extent->dim;
  pestle_value_t* at = pestle_f_iota(&call->f, &type, axis);
  double n = (double)extent->dim;
  double step = aligned ? n > 1 ? 2 / (n - 1) : 0 : 2 / n;
  double first = aligned ? n > 1 ? -1 : 0 : step / 2 - 1;
  if (!extent->size) {
    return pestle_onnx_binary_f(call, PESTLE_OP_ADD, times(call, at, step),
                                first);
  }
  // The same by what a run tells; of one element, aligned, the middle.
  pestle_value_t* size = pestle_onnx_convert(call, extent->size, type.dtype);
  pestle_value_t* parts =
      aligned ? pestle_onnx_binary_f(call, PESTLE_OP_SUBTRACT, size, 1) : size;
  pestle_value_t* some =
      pestle_onnx_binary_f(call, PESTLE_OP_MAXIMUM, parts, 1);
  pestle_value_t* steps = pestle_f_binary(&call->f, PESTLE_OP_DIVIDE,
                                          splat_like(call, some, 2), some);
  pestle_value_t* begin =
      aligned
          ? pestle_f_negate(&call->f, pestle_onnx_binary_f(
                                          call, PESTLE_OP_MINIMUM, parts, 1))
          : pestle_onnx_binary_f(call, PESTLE_OP_ADD, times(call, steps, 0.5),
                                 -1);
  return add(call, mul(call, at, steps), begin);
}

// The numbers of input 1, but for those that a run tells.
static bool grid_extents(pestle_onnx_call_t* call, pestle_onnx_extent_t* out,
                         size_t* out_count) {
  if (pestle_onnx_extents(call, 1, out, out_count)) return true;
  pestle_i64s_t size = pestle_onnx_input_ints(call, 1, "size");
  *out_count = size.count;
  for (size_t i = 0; i < size.count && i < PESTLE_MAX_RANK; ++i)
    out[i] = (pestle_onnx_extent_t){size.data[i], NULL};
  return !call->f.status;
}

// grid[n, ..., r] = theta[n, r, 0] x + theta[n, r, 1] y (+ ... z) + theta[n, r,
// last], x along the last axis.
void pestle_onnx_import_affine_grid(pestle_onnx_call_t* call) {
  pestle_value_t* theta = call->inputs[0];
  pestle_onnx_extent_t size[PESTLE_MAX_RANK];
  size_t count = 0;
  if (!pestle_onnx_allow_real(call, 0, 1) ||
      !grid_extents(call, size, &count)) {
    return;
  }
  int32_t axes = (int32_t)count - 2;
  if (axes < 2 || axes > 3 || rank_of(theta) != 3 ||
      pestle_onnx_dim(theta, 1) != axes ||
      pestle_onnx_dim(theta, 2) != axes + 1) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its theta must be [n, 2, 3] for a size of 4 numbers or "
                     "[n, 3, 4] for one of 5");
    return;
  }
  pestle_type_t type = {.dtype = dtype_of(theta), .rank = axes + 2};
  int64_t dims[5] = {pestle_onnx_dim(theta, 0), 1, 1, 1, 1};
  dims[axes + 1] = axes;
  pestle_value_t* sum = NULL;
  for (int32_t i = 0; i <= axes; ++i) {
    pestle_value_t* term = pestle_f_reshape(
        &call->f, pestle_onnx_slice_axis(call, theta, 2, i, i + 1, 1), axes + 2,
        dims);
    const pestle_onnx_extent_t* extent = &size[1 + axes - i];
    if (i < axes && (extent->dim < 1 || extent->dim > INT32_MAX)) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "its size holds the extent %lld",
                       (long long)extent->dim);
      return;
    }
    if (i < axes) {
      term = mul(call, term, axis_grid(call, &type, axes - i, extent));
    }
    sum = sum ? add(call, sum, term) : term;
  }
  call->outputs[0] = sum;
  pestle_onnx_set_real(call, sum, 0,
                       pestle_onnx_real_size(call->import, theta, 0));
  for (int32_t i = 0; i < axes; ++i)
    pestle_onnx_set_real(call, sum, 1 + i, size[2 + i].size);
}

// --- RoiAlign ---

typedef struct rois_t {
  pestle_onnx_call_t* call;
  pestle_value_t* rois;  // [count, 4]: x1, y1, x2, y2
  int64_t count, bins[2], samples;
  bool half_pixel;
  double scale;
} rois_t;

static pestle_value_t* roi_edge(const rois_t* r, int64_t column) {
  pestle_onnx_call_t* call = r->call;
  pestle_value_t* edge =
      pestle_onnx_slice_axis(call, r->rois, 1, column, column + 1, 1);
  return pestle_onnx_binary_f(call, PESTLE_OP_SUBTRACT,
                              times(call, edge, r->scale),
                              r->half_pixel ? 0.5 : 0);
}

// How long the regions are along one axis (0: y), and where they start.
static pestle_value_t* roi_length(const rois_t* r, int axis,
                                  pestle_value_t** out_start) {
  pestle_onnx_call_t* call = r->call;
  *out_start = roi_edge(r, 1 - axis);
  pestle_value_t* length = sub(call, roi_edge(r, 3 - axis), *out_start);
  if (r->half_pixel) return length;
  return pestle_onnx_binary_f(call, PESTLE_OP_MAXIMUM, length, 1);
}

// Where the samples of one axis (0: y) lie: [count, bins * samples].
static pestle_value_t* roi_axis(const rois_t* r, int axis) {
  pestle_onnx_call_t* call = r->call;
  pestle_value_t* start;
  pestle_value_t* length = roi_length(r, axis, &start);
  int64_t count = r->bins[axis] * r->samples;
  pestle_type_t type = {
      .dtype = dtype_of(r->rois), .rank = 2, .dims = {1, count}};
  pestle_value_t* part = pestle_onnx_binary_f(
      call, PESTLE_OP_ADD, pestle_f_iota(&call->f, &type, 1), 0.5);
  part = times(call, part, 1 / (double)count);
  return add(call, start, mul(call, length, part));
}

// [count, y, 1] or [count, 1, x] for all points: [count, y * x].
static pestle_value_t* roi_points(const rois_t* r, pestle_value_t* at,
                                  int axis) {
  int64_t h = r->bins[0] * r->samples, w = r->bins[1] * r->samples;
  int64_t dims[] = {r->count, h, w}, axes[] = {0, axis + 1};
  int64_t flat[] = {r->count, h * w};
  return pestle_f_reshape(
      &r->call->f,
      pestle_f_broadcast(&r->call->f, at, 3, dims,
                         (pestle_i64s_t){axes, (size_t)rank_of(at)}),
      2, flat);
}

static bool read_rois(rois_t* r) {
  pestle_onnx_call_t* call = r->call;
  pestle_value_t *x = call->inputs[0], *rois = call->inputs[1];
  r->count = pestle_onnx_dim(rois, 0);
  r->bins[0] = pestle_onnx_int(call, "output_height", 1);
  r->bins[1] = pestle_onnx_int(call, "output_width", 1);
  r->samples = pestle_onnx_int(call, "sampling_ratio", 0);
  r->scale = pestle_onnx_float(call, "spatial_scale", 1);
  r->half_pixel =
      call->opset >= 16 &&
      pestle_str_equal_c(
          pestle_onnx_word(call, "coordinate_transformation_mode", "half_pixel",
                           "half_pixel output_half_pixel"),
          "half_pixel");
  bool sane = r->bins[0] > 0 && r->bins[1] > 0 && r->bins[0] < 1 << 15 &&
              r->bins[1] < 1 << 15 && r->samples >= 0 && r->samples < 1 << 10;
  if (!sane || rank_of(x) != 4 || rank_of(rois) != 2 ||
      pestle_onnx_dim(rois, 1) != 4 || rank_of(call->inputs[2]) != 1 ||
      pestle_onnx_dim(call->inputs[2], 0) != r->count ||
      !pestle_dtype_is(dtype_of(x), PESTLE_KIND_FLOAT)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it needs an NCHW input, regions [count, 4], an index for "
                     "each, a positive output size and a sampling ratio of 0 "
                     "to 1023");
  }
  r->rois = pestle_onnx_convert(call, rois, work_dtype(dtype_of(x)));
  return !call->f.status;
}

// Points more than an element outside give 0.
static pestle_value_t* near_plane(const sampler_t* s) {
  pestle_onnx_call_t* call = s->call;
  pestle_value_t* near = NULL;
  for (int32_t i = 0; i < s->axes; ++i) {
    pestle_value_t* low =
        pestle_onnx_binary_f(call, PESTLE_OP_GE, s->at[i], -1);
    pestle_value_t* high = pestle_onnx_binary_f(call, PESTLE_OP_LE, s->at[i],
                                                (double)s->extents[i]);
    low = pestle_f_and(&call->f, low, high);
    near = near ? pestle_f_and(&call->f, near, low) : low;
  }
  return over_channels(call, near);
}

// How many regions there are may be what only a run tells.
static bool regions_fit(pestle_onnx_call_t* call) {
  const pestle_onnx_import_t* import = call->import;
  const pestle_value_t *rois = call->inputs[1], *images = call->inputs[2];
  if (!pestle_onnx_real(import, call->inputs[0]) &&
      !pestle_onnx_real_size(import, rois, 1) &&
      pestle_onnx_same_size(pestle_onnx_real_size(import, rois, 0),
                            pestle_onnx_real_size(import, images, 0))) {
    return true;
  }
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "an extent that only a run tells must be the number of its "
                   "regions and of their images");
  return false;
}

// What the samples at |s|->at are: [count, channels, points].
static pestle_value_t* sample_near(sampler_t* s) {
  pestle_onnx_call_t* call = s->call;
  pestle_value_t* near = near_plane(s);
  for (int i = 0; i < 2; ++i)
    s->at[i] = clamp_to(call, s->at[i], 0, (double)(s->extents[i] - 1));
  pestle_value_t* y = sample(s);
  return pestle_f_select(&call->f, near, y, splat_like(call, y, 0));
}

// --- As many samples as each region asks for ---
//
// A trip takes one sample of each bin of all regions that have so many.

#define MOST_SAMPLES (1 << 15)

typedef struct adaptive_t {
  rois_t* rois;
  sampler_t* sampler;
  pestle_value_t *start[2], *bin[2];  // of an axis (0: y): [count, 1]
  pestle_value_t* samples[2];         // of a bin along it: i64 [count, 1]
  pestle_value_t* all;                // of a bin: i64 [count, 1]
} adaptive_t;

static pestle_value_t* at_least_one(pestle_onnx_call_t* call,
                                    pestle_value_t* x) {
  return pestle_onnx_binary_f(call, PESTLE_OP_MAXIMUM, x, 1);
}

static void ask_regions(adaptive_t* a) {
  pestle_onnx_call_t* call = a->rois->call;
  for (int i = 0; i < 2; ++i) {
    pestle_value_t* length = roi_length(a->rois, i, &a->start[i]);
    a->bin[i] = times(call, length, 1 / (double)a->rois->bins[i]);
    pestle_value_t* wanted = pestle_f_ceil(&call->f, a->bin[i]);
    a->samples[i] = pestle_onnx_convert(
        call, clamp_to(call, wanted, 0, MOST_SAMPLES), PESTLE_I64);
  }
  a->all = mul(call, a->samples[0], a->samples[1]);
}

// Where sample |number| (i64 [count, 1]) of each bin lies: [count, bins].
static pestle_value_t* sample_places(const adaptive_t* a, int axis,
                                     pestle_value_t* number) {
  pestle_onnx_call_t* call = a->rois->call;
  pestle_dtype_t dtype = dtype_of(a->bin[axis]);
  pestle_type_t type = {
      .dtype = dtype, .rank = 2, .dims = {1, a->rois->bins[axis]}};
  pestle_value_t* part = pestle_onnx_binary_f(
      call, PESTLE_OP_ADD, pestle_onnx_convert(call, number, dtype), 0.5);
  part = quotient(
      call, part,
      pestle_onnx_convert(call, at_least_one(call, a->samples[axis]), dtype));
  part = add(call, pestle_f_iota(&call->f, &type, 1), part);
  return add(call, a->start[axis], mul(call, a->bin[axis], part));
}

// |x| [count, 1], beside channels and points.
static pestle_value_t* of_regions(const adaptive_t* a, pestle_value_t* x) {
  int64_t dims[] = {a->rois->count, 1, 1};
  return pestle_f_reshape(&a->rois->call->f, x, 3, dims);
}

static void take_sample(pestle_onnx_call_t* call, void* self, pestle_value_t* i,
                        pestle_value_t** values) {
  const adaptive_t* a = self;
  sampler_t s = *a->sampler;
  pestle_value_t* row = at_least_one(call, a->samples[1]);
  pestle_value_t* number[] = {quotient(call, i, row),
                              pestle_f_remainder(&call->f, i, row)};
  for (int k = 0; k < 2; ++k)
    s.at[k] = roi_points(a->rois, sample_places(a, k, number[k]), k);
  pestle_value_t* y = sample_near(&s);
  pestle_value_t* is_one = of_regions(a, pestle_f_lt(&call->f, i, a->all));
  pestle_value_t* both = pestle_f_binary(
      &call->f, s.takes_maximum ? PESTLE_OP_MAXIMUM : PESTLE_OP_ADD, values[0],
      y);
  values[0] = pestle_f_select(&call->f, is_one, both, values[0]);
}

// [count, channels, bins]
static pestle_value_t* sample_adaptively(rois_t* r, sampler_t* s) {
  pestle_onnx_call_t* call = r->call;
  adaptive_t a = {.rois = r, .sampler = s};
  r->samples = 1;
  ask_regions(&a);
  static const int64_t axes[] = {0, 1};
  pestle_value_t* most =
      pestle_onnx_reduce(call, PESTLE_OP_MAXIMUM, a.all, axes, 2, false);
  pestle_type_t type = {
      .dtype = dtype_of(s->x),
      .rank = 3,
      .dims = {r->count, pestle_onnx_dim(s->x, 1), r->bins[0] * r->bins[1]}};
  pestle_value_t* y = s->takes_maximum ? pestle_onnx_lowest(call, &type)
                                       : pestle_onnx_splat(call, &type, 0);
  pestle_onnx_for_below(call, most, &y, 1, take_sample, &a);
  pestle_value_t* all = of_regions(&a, a.all);
  if (!s->takes_maximum) {
    all = at_least_one(call, pestle_onnx_convert(call, all, type.dtype));
    return quotient(call, y, all);
  }
  // A region without a sample gives 0.
  pestle_value_t* has = pestle_onnx_binary_f(call, PESTLE_OP_GT, all, 0);
  return pestle_f_select(&call->f, has, y, splat_like(call, y, 0));
}

// [count, channels, bins]
static pestle_value_t* sample_evenly(const rois_t* r, sampler_t* s) {
  pestle_onnx_call_t* call = r->call;
  for (int i = 0; i < 2; ++i)
    s->at[i] = roi_points(r, roi_axis(r, i), i);
  int64_t dims[] = {r->count,   pestle_onnx_dim(s->x, 1),
                    r->bins[0], r->samples,
                    r->bins[1], r->samples};
  static const int64_t folded[] = {3, 5};
  pestle_value_t* y = pestle_onnx_reduce(
      call, s->takes_maximum ? PESTLE_OP_MAXIMUM : PESTLE_OP_ADD,
      pestle_f_reshape(&call->f, sample_near(s), 6, dims), folded, 2, false);
  if (s->takes_maximum) return y;
  return times(call, y, 1 / (double)(r->samples * r->samples));
}

void pestle_onnx_import_roi_align(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  rois_t r = {.call = call};
  if (!read_rois(&r) || !regions_fit(call)) return;
  pestle_dtype_t dtype = dtype_of(x);
  sampler_t s = {.call = call, .axes = 2, .taps = 2, .padding = PAD_BORDER};
  s.x = flat_planes(call, pestle_onnx_convert(call, x, work_dtype(dtype)));
  s.image = pestle_onnx_convert(call, call->inputs[2], PESTLE_I64);
  s.takes_maximum = pestle_str_equal_c(
      pestle_onnx_word(call, "mode", "avg", "avg max"), "max");
  for (int i = 0; i < 2; ++i)
    s.extents[i] = pestle_onnx_dim(x, 2 + i);
  pestle_value_t* y =
      r.samples ? sample_evenly(&r, &s) : sample_adaptively(&r, &s);
  int64_t dims[] = {r.count, pestle_onnx_dim(x, 1), r.bins[0], r.bins[1]};
  y = pestle_f_reshape(&call->f, y, 4, dims);
  call->outputs[0] = pestle_onnx_convert(call, y, dtype);
  pestle_onnx_set_real(call, call->outputs[0], 0,
                       pestle_onnx_real_size(call->import, call->inputs[1], 0));
}

// --- MaxRoiPool ---
//
// A bin is a range of rows and one of columns; the maximum is taken along one
// axis after the other, over the elements inside of the range.

// Which elements along |axis| (0: y) of |extent| lie in each bin: i1 [count,
// bins, extent].
static pestle_value_t* bin_mask(pestle_onnx_call_t* call, pestle_value_t* rois,
                                int axis, int64_t bins, int64_t extent) {
  double scale = pestle_onnx_float(call, "spatial_scale", 1);
  pestle_value_t* edge[2];
  for (int i = 0; i < 2; ++i) {
    int64_t column = 2 - axis + 2 * i;
    edge[i] = pestle_onnx_slice_axis(call, rois, 1, column, column + 1, 1);
    edge[i] = pestle_f_round_nearest_afz(&call->f, times(call, edge[i], scale));
  }
  pestle_value_t* size =
      pestle_onnx_binary_f(call, PESTLE_OP_ADD, sub(call, edge[1], edge[0]), 1);
  size = pestle_onnx_binary_f(call, PESTLE_OP_MAXIMUM, size, 1);
  size = pestle_onnx_binary_f(call, PESTLE_OP_DIVIDE, size, (double)bins);
  pestle_dtype_t dtype = dtype_of(rois);
  pestle_type_t bin = {.dtype = dtype, .rank = 2, .dims = {1, bins}};
  pestle_value_t* number = pestle_f_iota(&call->f, &bin, 1);
  pestle_value_t* low = pestle_f_floor(&call->f, mul(call, number, size));
  number = pestle_onnx_binary_f(call, PESTLE_OP_ADD, number, 1);
  pestle_value_t* high = pestle_f_ceil(&call->f, mul(call, number, size));
  int64_t dims[] = {pestle_onnx_dim(rois, 0), bins, 1};
  low = pestle_f_reshape(&call->f, add(call, low, edge[0]), 3, dims);
  high = pestle_f_reshape(&call->f, add(call, high, edge[0]), 3, dims);
  pestle_type_t place = {.dtype = dtype, .rank = 3, .dims = {1, 1, extent}};
  pestle_value_t* at = pestle_f_iota(&call->f, &place, 2);
  pestle_value_t* below = pestle_f_lt(&call->f, at, high);
  return pestle_f_and(&call->f, pestle_f_ge(&call->f, at, low), below);
}

// The maximum over axis 4 of |x| [count, channels, a, 1, extent] where |mask|
// holds, the lowest value of the dtype in empty bins: [count, channels, a, bins]
static pestle_value_t* maximum_of_bins(pestle_onnx_call_t* call,
                                       pestle_value_t* x,
                                       pestle_value_t* mask) {
  int64_t dims[] = {pestle_onnx_dim(mask, 0), 1, 1, pestle_onnx_dim(mask, 1),
                    pestle_onnx_dim(mask, 2)};
  pestle_type_t scalar = {.dtype = dtype_of(x)};
  int64_t axis = 4;
  mask = pestle_f_reshape(&call->f, mask, 5, dims);
  x = pestle_f_select(&call->f, mask, x, pestle_onnx_lowest(call, &scalar));
  return pestle_onnx_reduce(call, PESTLE_OP_MAXIMUM, x, &axis, 1, false);
}

// [count, channels, a, b] as [count, channels, b, 1, a].
static pestle_value_t* turn_plane(pestle_onnx_call_t* call, pestle_value_t* x) {
  static const int64_t order[] = {0, 1, 3, 2};
  x = pestle_f_transpose(&call->f, x, order);
  int64_t dims[] = {pestle_onnx_dim(x, 0), pestle_onnx_dim(x, 1),
                    pestle_onnx_dim(x, 2), 1, pestle_onnx_dim(x, 3)};
  return pestle_f_reshape(&call->f, x, 5, dims);
}

void pestle_onnx_import_max_roi_pool(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *rois = call->inputs[1];
  pestle_i64s_t bins = pestle_onnx_ints(call, "pooled_shape");
  bool fits = rank_of(x) == 4 && rank_of(rois) == 2 &&
              pestle_onnx_dim(rois, 1) == 5 && bins.count == 2 &&
              pestle_dtype_is(dtype_of(x), PESTLE_KIND_FLOAT);
  for (size_t i = 0; fits && i < 2; ++i)
    fits = bins.data[i] > 0 && bins.data[i] < 1 << 15;
  if (!fits) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it needs an NCHW input, regions [count, 5] and a "
                     "pooled_shape of two positive extents");
    return;
  }
  rois = pestle_onnx_convert(call, rois, work_dtype(dtype_of(rois)));
  int64_t count = pestle_onnx_dim(rois, 0);
  pestle_value_t* image = pestle_onnx_convert(
      call, pestle_onnx_slice_axis(call, rois, 1, 0, 1, 1), PESTLE_I64);
  pestle_value_t* y = pestle_onnx_take(
      call, x, pestle_f_reshape(&call->f, image, 1, &count), 0);
  for (int axis = 0; axis < 2; ++axis) {
    pestle_value_t* mask = bin_mask(call, rois, axis, bins.data[axis],
                                    pestle_onnx_dim(x, 2 + axis));
    y = maximum_of_bins(call, turn_plane(call, y), mask);
  }
  pestle_type_t scalar = {.dtype = dtype_of(x)};
  pestle_value_t* none = pestle_onnx_lowest(call, &scalar);
  pestle_value_t* empty = pestle_f_eq(&call->f, y, none);
  call->outputs[0] =
      pestle_f_select(&call->f, empty, splat_like(call, y, 0), y);
}

// --- DeformConv ---
//
// Each element of the kernel reads the input where its offset says; what it
// reads is contracted with the weights.

typedef struct deform_t {
  pestle_onnx_call_t* call;
  pestle_onnx_space_t space;
  int64_t batch, channels, out, groups, offset_groups, kernel;
  int64_t dims[2], points;  // of the result, a plane
} deform_t;

static bool read_deform(deform_t* d) {
  pestle_onnx_call_t* call = d->call;
  pestle_value_t *x = call->inputs[0], *w = call->inputs[1];
  pestle_value_t* offset = call->inputs[2];
  d->groups = pestle_onnx_int(call, "group", 1);
  d->offset_groups = pestle_onnx_int(call, "offset_group", 1);
  d->batch = pestle_onnx_dim(x, 0);
  d->channels = pestle_onnx_dim(x, 1);
  d->out = pestle_onnx_dim(w, 0);
  d->space = (pestle_onnx_space_t){.count = 2};
  bool fits = rank_of(x) == 4 && rank_of(w) == 4 && rank_of(offset) == 4 &&
              d->groups > 0 && d->offset_groups > 0 && d->channels > 0 &&
              d->groups <= d->channels && d->offset_groups <= d->channels &&
              d->channels % d->groups == 0 && d->out % d->groups == 0 &&
              d->channels % d->offset_groups == 0 &&
              pestle_onnx_dim(w, 1) == d->channels / d->groups;
  for (int i = 0; i < 2; ++i) {
    d->space.kernel[i] = pestle_onnx_dim(w, 2 + i);
    fits = fits && d->space.kernel[i] > 0 && d->space.kernel[i] < 1 << 15;
  }
  if (!fits) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input, weights and offsets must have rank 4 and fit "
                     "its %lld groups and %lld groups of offsets",
                     (long long)d->groups, (long long)d->offset_groups);
    return false;
  }
  if (!pestle_onnx_read_space(call, x, &d->space)) return false;
  d->kernel = d->space.kernel[0] * d->space.kernel[1];
  for (int i = 0; i < 2; ++i)
    d->dims[i] = pestle_onnx_dim(offset, 2 + i);
  d->points = d->dims[0] * d->dims[1];
  return true;
}

// Input |index| as [batch * groups, kernel, parts, points].
static pestle_value_t* by_element(const deform_t* d, size_t index,
                                  int64_t parts) {
  pestle_onnx_call_t* call = d->call;
  pestle_value_t* x = pestle_onnx_input(call, index);
  if (!x) return NULL;
  bool fits = pestle_onnx_dim(x, 0) == d->batch && rank_of(x) == 4 &&
              pestle_onnx_dim(x, 1) == d->offset_groups * d->kernel * parts &&
              pestle_onnx_dim(x, 2) == d->dims[0] &&
              pestle_onnx_dim(x, 3) == d->dims[1];
  if (!fits) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "input %zu must have %lld numbers for each of %lld "
                            "kernel elements and %lld groups",
                            index, (long long)parts, (long long)d->kernel,
                            (long long)d->offset_groups);
  }
  int64_t dims[] = {d->batch * d->offset_groups, d->kernel, parts, d->points};
  return pestle_f_reshape(&call->f, x, 4, dims);
}

// Where the kernel's elements lie along |axis| without an offset: [1, kernel,
// points].
static pestle_value_t* regular_places(const deform_t* d, int axis,
                                      pestle_dtype_t dtype) {
  pestle_onnx_call_t* call = d->call;
  pestle_type_t type = {
      .dtype = dtype,
      .rank = 4,
      .dims = {d->space.kernel[0], d->space.kernel[1], d->dims[0], d->dims[1]}};
  pestle_value_t* inner = times(call, pestle_f_iota(&call->f, &type, axis),
                                (double)d->space.dilations[axis]);
  pestle_value_t* outer = times(call, pestle_f_iota(&call->f, &type, 2 + axis),
                                (double)d->space.strides[axis]);
  pestle_value_t* sum =
      pestle_onnx_binary_f(call, PESTLE_OP_SUBTRACT, add(call, inner, outer),
                           (double)d->space.low[axis]);
  int64_t dims[] = {1, d->kernel, d->points};
  return pestle_f_reshape(&call->f, sum, 3, dims);
}

// What the kernel's elements read: [batch * groups, channels / groups, kernel *
// points].
static pestle_value_t* read_deformed(const deform_t* d, pestle_dtype_t work) {
  pestle_onnx_call_t* call = d->call;
  pestle_value_t* x = call->inputs[0];
  pestle_value_t* offset = by_element(d, 2, 2);
  pestle_value_t* mask = by_element(d, 4, 1);
  if (call->f.status) return NULL;
  offset = pestle_onnx_convert(call, offset, work);
  sampler_t s = {.call = call, .axes = 2, .taps = 2, .align_corners = true};
  int64_t groups = d->batch * d->offset_groups;
  int64_t planes[] = {groups, d->channels / d->offset_groups,
                      pestle_onnx_dims_product(x, 2, 4)};
  s.x =
      pestle_f_reshape(&call->f, pestle_onnx_convert(call, x, work), 3, planes);
  int64_t dims[] = {groups, d->kernel, d->points};
  int64_t flat[] = {groups, d->kernel * d->points};
  for (int i = 0; i < 2; ++i) {
    s.extents[i] = pestle_onnx_dim(x, 2 + i);
    pestle_value_t* own = pestle_f_reshape(
        &call->f, pestle_onnx_slice_axis(call, offset, 2, i, i + 1, 1), 3,
        dims);
    s.at[i] = pestle_f_reshape(
        &call->f, add(call, own, regular_places(d, i, work)), 2, flat);
  }
  pestle_value_t* value = sample(&s);
  if (!mask) return value;
  mask = pestle_f_reshape(&call->f, pestle_onnx_convert(call, mask, work), 2,
                          flat);
  return mul(call, value, over_channels(call, mask));
}

void pestle_onnx_import_deform_conv(pestle_onnx_call_t* call) {
  static const int64_t order[] = {2, 0, 1, 3}, zero = 0, one = 1, two = 2;
  pestle_value_t* bias = pestle_onnx_input(call, 3);
  deform_t d = {.call = call};
  if (!read_deform(&d)) return;
  pestle_dtype_t dtype = dtype_of(call->inputs[0]), work = work_dtype(dtype);
  int64_t depth = d.channels / d.groups * d.kernel;
  int64_t read[] = {d.batch, d.groups, depth, d.points};
  int64_t weights[] = {d.groups, d.out / d.groups, depth};
  int64_t result[] = {d.batch, d.out, d.dims[0], d.dims[1]};
  pestle_value_t* x =
      pestle_f_reshape(&call->f, read_deformed(&d, work), 4, read);
  pestle_value_t* w = pestle_onnx_convert(call, call->inputs[1], work);
  w = pestle_f_reshape(&call->f, w, 3, weights);
  pestle_value_t* y = pestle_onnx_dot(
      call, w, x, (pestle_i64s_t){&zero, 1}, (pestle_i64s_t){&one, 1},
      (pestle_i64s_t){&two, 1}, (pestle_i64s_t){&two, 1}, work);
  y = pestle_f_transpose(&call->f, y, order);
  y = pestle_onnx_convert(call, pestle_f_reshape(&call->f, y, 4, result),
                          dtype);
  call->outputs[0] =
      bias ? add(call, y, pestle_onnx_along(call, bias, y, 1)) : y;
}
