// SPDX-License-Identifier: Apache-2.0
// Normalisations.
#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

static pestle_value_t* mean_over(pestle_onnx_call_t* call, pestle_value_t* x,
                                 const int64_t* axes, size_t count) {
  double elements = 1;
  for (size_t i = 0; i < count; ++i) {
    elements *= (double)pestle_onnx_dim(x, axes[i]);
  }
  return pestle_onnx_binary_f(
      call, PESTLE_OP_DIVIDE,
      pestle_onnx_reduce(call, PESTLE_OP_ADD, x, axes, count, true), elements);
}

// What normalising |x| over |axes| gives: (x - mean) / sqrt(variance +
// epsilon).
typedef struct normal_t {
  pestle_value_t *result, *mean, *inverse;
} normal_t;

static normal_t normalize(pestle_onnx_call_t* call, pestle_value_t* x,
                          const int64_t* axes, size_t count, double epsilon) {
  normal_t out;
  out.mean = mean_over(call, x, axes, count);
  pestle_value_t* centred = sub(call, x, out.mean);
  pestle_value_t* variance =
      mean_over(call, mul(call, centred, centred), axes, count);
  out.inverse = pestle_f_rsqrt(
      &call->f, pestle_onnx_binary_f(call, PESTLE_OP_ADD, variance, epsilon));
  out.result = mul(call, centred, out.inverse);
  return out;
}

// --- Batch ---

// |running| moved towards |current| [1, c, 1 ...].
static pestle_value_t* move_towards(pestle_onnx_call_t* call,
                                    pestle_value_t* running,
                                    pestle_value_t* current, double momentum) {
  if (!running || !current) return NULL;
  pestle_dtype_t dtype = dtype_of(running);
  int64_t features = pestle_onnx_dim(running, 0);
  current = pestle_f_reshape(&call->f, current, 1, &features);
  running = pestle_onnx_convert(call, running, dtype_of(current));
  return pestle_onnx_convert(call,
                             add(call, times(call, running, momentum),
                                 times(call, current, 1 - momentum)),
                             dtype);
}

// By the batch's own statistics, which move the running ones.
static void train_batch_norm(pestle_onnx_call_t* call, double epsilon) {
  pestle_value_t* x = call->inputs[0];
  pestle_dtype_t dtype = dtype_of(x);
  if (pestle_onnx_real(call->import, x)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "it trains over extents that only a run tells");
    return;
  }
  for (int i = 1; i < 5; ++i) {
    if (rank_of(call->inputs[i]) == 1 &&
        pestle_onnx_dim(call->inputs[i], 0) == pestle_onnx_dim(x, 1)) {
      continue;
    }
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input %d must have an element for each channel", i);
    return;
  }
  if (dtype != PESTLE_F64) x = pestle_onnx_convert(call, x, PESTLE_F32);
  int64_t axes[PESTLE_MAX_RANK];
  size_t count = 0;
  for (int32_t i = 0; i < rank_of(x); ++i) {
    if (i != 1) axes[count++] = i;
  }
  pestle_value_t* mean = mean_over(call, x, axes, count);
  pestle_value_t* centred = sub(call, x, mean);
  pestle_value_t* variance =
      mean_over(call, mul(call, centred, centred), axes, count);
  pestle_value_t* inverse = pestle_f_rsqrt(
      &call->f, pestle_onnx_binary_f(call, PESTLE_OP_ADD, variance, epsilon));
  pestle_value_t* side[2];
  for (int i = 0; i < 2; ++i) {
    side[i] = pestle_onnx_convert(call, call->inputs[1 + i], dtype_of(x));
    side[i] = pestle_onnx_along(call, side[i], x, 1);
  }
  pestle_value_t* y = mul(call, mul(call, centred, inverse), side[0]);
  call->outputs[0] = pestle_onnx_convert(call, add(call, y, side[1]), dtype);
  double momentum = pestle_onnx_float(call, "momentum", 0.9);
  if (pestle_onnx_wants(call, 1)) {
    call->outputs[1] = move_towards(call, call->inputs[3], mean, momentum);
  }
  if (pestle_onnx_wants(call, 2)) {
    call->outputs[2] = move_towards(call, call->inputs[4], variance, momentum);
  }
}

// Statistics are constants in practice, so that the list arithmetic folds and a
// multiply and an add an element are left.
void pestle_onnx_import_batch_norm(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  double epsilon = pestle_onnx_float(call, "epsilon", 1e-5);
  bool trains = call->opset >= 14 && pestle_onnx_int(call, "training_mode", 0);
  if (trains && rank_of(x) > 1) {
    train_batch_norm(call, epsilon);
    return;
  }
  // Before opset 14 other outputs than the first said that it trains.
  if (trains || pestle_onnx_wants(call, 1) || rank_of(x) < 1 ||
      !pestle_onnx_int(call, "spatial", 1)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "only inference over channels is supported, and training "
                     "of at least 2 dimensions from opset 14 on (spatial = 1)");
    return;
  }
  // Variances may be more than a narrow scale's type holds.
  pestle_value_t* side[4];
  for (int i = 0; i < 4; ++i) {
    pestle_dtype_t given = dtype_of(call->inputs[1]);
    side[i] = pestle_onnx_convert(call, call->inputs[1 + i],
                                  given == PESTLE_F64 ? given : PESTLE_F32);
  }
  pestle_value_t* deviation = pestle_f_sqrt(
      &call->f, pestle_onnx_binary_f(call, PESTLE_OP_ADD, side[3], epsilon));
  pestle_value_t* factor = quotient(call, side[0], deviation);
  pestle_value_t* offset = sub(call, side[1], mul(call, side[2], factor));
  int64_t axis = rank_of(x) > 1 ? 1 : 0;
  pestle_dtype_t dtype = dtype_of(x);
  factor = pestle_onnx_convert(call, factor, dtype);
  offset = pestle_onnx_convert(call, offset, dtype);
  offset = pestle_onnx_along(call, offset, x, axis);
  factor = pestle_onnx_along(call, factor, x, axis);
  call->outputs[0] = add(call, mul(call, x, factor), offset);
}

// --- Layer ---

static pestle_attr_t dims_attr(const int64_t* axes, size_t count) {
  return (pestle_attr_t){.name = PESTLE_ATTR_dimensions,
                         .kind = PESTLE_ATTR_KIND_I64S,
                         .as.i64s = {axes, count}};
}

static pestle_attr_t epsilon_attr(double epsilon) {
  return (pestle_attr_t){.name = PESTLE_ATTR_epsilon,
                         .kind = PESTLE_ATTR_KIND_F64,
                         .as.f64 = epsilon};
}

// Axes [axis, rank) of |x|.
static size_t trailing_axes(pestle_onnx_call_t* call, const pestle_value_t* x,
                            int64_t* axes) {
  int64_t rank = rank_of(x);
  int64_t axis =
      pestle_onnx_axis(call, pestle_onnx_int(call, "axis", -1), rank);
  if (call->f.status) return 0;
  for (int64_t i = axis; i < rank; ++i) {
    axes[i - axis] = i;
    if (!pestle_onnx_real_size(call->import, x, i)) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "it normalises axis %lld, whose extent only a run tells",
                     (long long)i);
    return 0;
  }
  return (size_t)(rank - axis);
}

// Scale or offset in the shape of the normalised axes; NULL when it is larger
// than those.
static pestle_value_t* fit(pestle_onnx_call_t* call, pestle_value_t* value,
                           const pestle_value_t* x, size_t count) {
  int32_t rank = (int32_t)count;
  if (!value || rank_of(value) > rank) return NULL;
  return pestle_onnx_broadcast(call, value, rank,
                               pestle_onnx_type(x)->dims + rank_of(x) - rank);
}

void pestle_onnx_import_layer_norm(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *factor = call->inputs[1];
  pestle_value_t* offset = pestle_onnx_input(call, 2);
  double epsilon = pestle_onnx_float(call, "epsilon", 1e-5);
  int64_t axes[PESTLE_MAX_RANK];
  size_t count = trailing_axes(call, x, axes);
  if (!count) return;
  if (!offset) offset = pestle_onnx_scalar(call, dtype_of(x), 0);
  bool fits =
      rank_of(factor) <= (int32_t)count && rank_of(offset) <= (int32_t)count;
  if (fits && !pestle_onnx_wants(call, 1) && !pestle_onnx_wants(call, 2)) {
    pestle_attr_t attrs[] = {dims_attr(axes, count), epsilon_attr(epsilon)};
    pestle_value_t* operands[3] = {x, fit(call, factor, x, count),
                                   fit(call, offset, x, count)};
    pestle_node_spec_t spec = {.op = PESTLE_OP_LAYER_NORM,
                               .operands = operands,
                               .operand_count = 3,
                               .attrs = attrs,
                               .attr_count = 2};
    call->outputs[0] = pestle_f_emit(&call->f, &spec);
    return;
  }
  // Statistics are at least f32 (stash_type), also as outputs.
  pestle_value_t* wide = pestle_onnx_convert(
      call, x, dtype_of(x) == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32);
  normal_t normal = normalize(call, wide, axes, count, epsilon);
  normal.result = pestle_onnx_convert(call, normal.result, dtype_of(x));
  call->outputs[0] = add(call, mul(call, normal.result, factor), offset);
  if (pestle_onnx_wants(call, 1)) call->outputs[1] = normal.mean;
  if (pestle_onnx_wants(call, 2)) call->outputs[2] = normal.inverse;
}

void pestle_onnx_import_rms_norm(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *factor = call->inputs[1];
  double epsilon = pestle_onnx_float(call, "epsilon", 1e-5);
  int64_t axes[PESTLE_MAX_RANK];
  size_t count = trailing_axes(call, x, axes);
  if (!count) return;
  pestle_value_t* fitted = fit(call, factor, x, count);
  if (!fitted && !call->f.status) {
    pestle_value_t* square = mean_over(call, mul(call, x, x), axes, count);
    pestle_value_t* inverse = pestle_f_rsqrt(
        &call->f, pestle_onnx_binary_f(call, PESTLE_OP_ADD, square, epsilon));
    call->outputs[0] = mul(call, mul(call, x, inverse), factor);
    return;
  }
  pestle_attr_t attrs[] = {dims_attr(axes, count), epsilon_attr(epsilon)};
  pestle_node_spec_t spec = {.op = PESTLE_OP_RMS_NORM,
                             .operands = (pestle_value_t*[]){x, fitted},
                             .operand_count = 2,
                             .attrs = attrs,
                             .attr_count = 2};
  call->outputs[0] = pestle_f_emit(&call->f, &spec);
}

// --- Instance and group ---

static size_t spatial_axes(const pestle_value_t* x, int32_t first,
                           int64_t* axes) {
  size_t count = 0;
  for (int32_t i = first; i < rank_of(x); ++i)
    axes[count++] = i;
  return count;
}

static void instance_norm(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  int64_t axes[PESTLE_MAX_RANK];
  size_t count = spatial_axes(x, 2, axes);
  normal_t normal =
      normalize(call, x, axes, count, pestle_onnx_float(call, "epsilon", 1e-5));
  pestle_value_t* offset = pestle_onnx_along(call, call->inputs[2], x, 1);
  pestle_value_t* factor = pestle_onnx_along(call, call->inputs[1], x, 1);
  call->outputs[0] = add(call, mul(call, normal.result, factor), offset);
}

void pestle_onnx_import_instance_norm(pestle_onnx_call_t* call) {
  pestle_onnx_in_f32(call, instance_norm);
}

// One number a group, repeated for each of its channels.
static pestle_value_t* per_channel(pestle_onnx_call_t* call,
                                   pestle_value_t* values, int64_t groups,
                                   int64_t each) {
  int64_t dims[2] = {groups, each}, axis = 0;
  if (rank_of(values) != 1 || pestle_onnx_dim(values, 0) != groups) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "its scale and bias must have one number for each "
                            "of its %lld groups",
                            (long long)groups);
  }
  pestle_value_t* wide =
      pestle_f_broadcast(&call->f, values, 2, dims,
                         (pestle_i64s_t){&axis, (size_t)rank_of(values)});
  return pestle_f_reshape(&call->f, wide, 1, (const int64_t[]){dims[0] * each});
}

static void group_norm(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *factor = call->inputs[1];
  pestle_value_t* offset = call->inputs[2];
  int64_t groups = pestle_onnx_int(call, "num_groups", 0);
  int32_t rank = rank_of(x);
  int64_t channels = pestle_onnx_dim(x, 1);
  if (rank < 2 || groups < 1 || channels % groups != 0) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "%lld channels cannot be split into %lld groups",
                     (long long)channels, (long long)groups);
    return;
  }
  int64_t dims[3] = {pestle_onnx_dim(x, 0), groups,
                     channels / groups * pestle_onnx_dims_product(x, 2, rank)};
  int64_t axis = 2;
  normal_t normal =
      normalize(call, pestle_f_reshape(&call->f, x, 3, dims), &axis, 1,
                pestle_onnx_float(call, "epsilon", 1e-5));
  // Until opset 20 scale and offset had one number a group.
  if (call->opset < 21) {
    factor = per_channel(call, factor, groups, channels / groups);
    offset = per_channel(call, offset, groups, channels / groups);
  }
  pestle_value_t* y = pestle_f_reshape(&call->f, normal.result, rank,
                                       pestle_onnx_type(x)->dims);
  offset = pestle_onnx_along(call, offset, x, 1);
  factor = pestle_onnx_along(call, factor, x, 1);
  call->outputs[0] = add(call, mul(call, y, factor), offset);
}

void pestle_onnx_import_group_norm(pestle_onnx_call_t* call) {
  pestle_onnx_in_f32(call, group_norm);
}

// The mean of what is real of |x| over |axes|.
static pestle_value_t* real_mean_over(pestle_onnx_call_t* call,
                                      pestle_value_t* x, const int64_t* axes,
                                      size_t count) {
  uint32_t bits = 0;
  pestle_value_t* all = pestle_onnx_size_number(call, 1);
  if (!x || !pestle_onnx_real(call->import, x))
    return mean_over(call, x, axes, count);
  for (size_t i = 0; i < count; ++i) {
    bits |= UINT32_C(1) << axes[i];
    all = mul(call, all, pestle_onnx_size(call, x, axes[i]));
  }
  x = pestle_onnx_fill_unreal(call, x, bits,
                              pestle_onnx_scalar(call, dtype_of(x), 0));
  pestle_value_t* sum =
      pestle_onnx_reduce(call, PESTLE_OP_ADD, x, axes, count, true);
  return quotient(call, sum, pestle_onnx_convert(call, all, dtype_of(x)));
}

static void mean_variance_norm(pestle_onnx_call_t* call) {
  static const int64_t usual[] = {0, 2, 3};
  pestle_value_t* x = call->inputs[0];
  pestle_i64s_t list = pestle_onnx_ints(call, "axes");
  if (!list.count) list = (pestle_i64s_t){usual, 3};
  int64_t axes[PESTLE_MAX_RANK];
  size_t count = 0;
  for (size_t i = 0; i < list.count && i < PESTLE_MAX_RANK; ++i) {
    axes[count++] = pestle_onnx_axis(call, list.data[i], rank_of(x));
  }
  pestle_value_t* mean = real_mean_over(call, x, axes, count);
  pestle_value_t* centred = sub(call, x, mean);
  pestle_onnx_copy_real(call, centred, x);
  pestle_value_t* squares = mul(call, centred, centred);
  pestle_onnx_copy_real(call, squares, x);
  pestle_value_t* variance = real_mean_over(call, squares, axes, count);
  pestle_value_t* deviation = pestle_onnx_binary_f(
      call, PESTLE_OP_ADD, pestle_f_sqrt(&call->f, variance), 1e-9);
  pestle_value_t* y = quotient(call, centred, deviation);
  pestle_onnx_copy_real(call, y, x);
  call->outputs[0] = pestle_onnx_end_real(call, y);
}

void pestle_onnx_import_mean_variance_norm(pestle_onnx_call_t* call) {
  pestle_onnx_in_f32(call, mean_variance_norm);
}

// --- Across one axis ---

static void lp_norm(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  int64_t axis =
      pestle_onnx_axis(call, pestle_onnx_int(call, "axis", -1), rank_of(x));
  int64_t p = pestle_onnx_int(call, "p", 2);
  if (call->f.status || (p != 1 && p != 2)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "attribute 'p' is %lld",
                     (long long)p);
    return;
  }
  x = pestle_onnx_fill_unreal(call, x, UINT32_C(1) << axis,
                              pestle_onnx_scalar(call, dtype_of(x), 0));
  pestle_value_t* magnitude =
      p == 1 ? pestle_f_abs(&call->f, x) : mul(call, x, x);
  pestle_value_t* norm =
      pestle_onnx_reduce(call, PESTLE_OP_ADD, magnitude, &axis, 1, true);
  if (p == 2) norm = pestle_f_sqrt(&call->f, norm);
  // A row of zeros stays one.
  pestle_value_t* one = splat_like(call, norm, 1);
  norm = pestle_f_select(
      &call->f, pestle_onnx_binary_f(call, PESTLE_OP_EQ, norm, 0), one, norm);
  call->outputs[0] = quotient(call, x, norm);
}

void pestle_onnx_import_lp_norm(pestle_onnx_call_t* call) {
  pestle_onnx_in_f32(call, lp_norm);
}

// x / (bias + alpha / size * sum of squares over nearby channels) ^ beta
static void lrn(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  int64_t size = pestle_onnx_int(call, "size", 0);
  double alpha = pestle_onnx_float(call, "alpha", 1e-4);
  double beta = pestle_onnx_float(call, "beta", 0.75);
  double bias = pestle_onnx_float(call, "bias", 1);
  if (size < 1 || size > 1 << 20 || rank_of(x) < 2) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it needs channels and a positive size");
    return;
  }
  pestle_windows_t window;
  pestle_windows_init(&window);
  window.sizes[1] = size;
  window.padding[2] = (size - 1) / 2;
  window.padding[3] = size - 1 - (size - 1) / 2;
  pestle_value_t* sum =
      pestle_onnx_reduce_window(call, PESTLE_OP_ADD, mul(call, x, x), &window);
  pestle_value_t* base = pestle_onnx_binary_f(
      call, PESTLE_OP_ADD, times(call, sum, alpha / (double)size), bias);
  call->outputs[0] = quotient(
      call, x, pestle_onnx_binary_f(call, PESTLE_OP_POWER, base, beta));
}

void pestle_onnx_import_lrn(pestle_onnx_call_t* call) {
  pestle_onnx_in_f32(call, lrn);
}
