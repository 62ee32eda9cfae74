// SPDX-License-Identifier: Apache-2.0
// Pools: windows reduced by reduce_window, whole planes by reduce.
#include <math.h>

#include "base/mem.h"
#include "frontend/onnx/ops.h"

// The window over NC...; with |ceil| the last, partial window counts too, and
// the padding grows by |grown| an axis to hold it.
static void make_window(const pestle_value_t* x, pestle_onnx_space_t* space,
                        bool ceil_mode, pestle_windows_t* out, int64_t* grown) {
  pestle_windows_init(out);
  for (int32_t i = 0; i < space->count; ++i) {
    int64_t extent = pestle_onnx_dim(x, 2 + i), stride = space->strides[i];
    int64_t reach = (space->kernel[i] - 1) * space->dilations[i] + 1;
    int64_t room = extent + space->low[i] + space->high[i] - reach;
    int64_t windows = room < 0 ? 0 : room / stride + 1;
    if (ceil_mode && room >= 0 && room % stride != 0 &&
        windows * stride < extent + space->low[i]) {
      ++windows;
    }
    int64_t used = windows ? (windows - 1) * stride - room : 0;
    grown[i] = used > 0 ? used : 0;
    out->sizes[2 + i] = space->kernel[i];
    out->strides[2 + i] = stride;
    out->dilations[2 + i] = space->dilations[i];
    out->padding[2 * (2 + i)] = space->low[i];
    out->padding[2 * (2 + i) + 1] = space->high[i] + grown[i];
  }
}

static bool read_pool(pestle_onnx_call_t* call, pestle_onnx_space_t* space,
                      pestle_windows_t* window, int64_t* grown) {
  pestle_value_t* x = call->inputs[0];
  *space = (pestle_onnx_space_t){0};
  if (!pestle_onnx_read_kernel(call, x, space) ||
      !pestle_onnx_read_space(call, x, space)) {
    return false;
  }
  make_window(x, space, pestle_onnx_int(call, "ceil_mode", 0) != 0, window,
              grown);
  return !call->f.status;
}

// --- Where the maximum lies ---
//
// The elements of the kernel one after the other: strided slices of the input,
// of which the first greatest stays, with its index.

#define MOST_KERNEL 1024

typedef struct best_t {
  pestle_onnx_call_t* call;
  const pestle_onnx_space_t* space;
  pestle_value_t* padded;  // with the lowest value around
  int64_t windows[PESTLE_MAX_RANK];
  int64_t offset[PESTLE_MAX_RANK];  // of the kernel's element
  bool by_column;                   // the first spatial axis is the fastest
} best_t;

// The element of each window at |offset|.
static pestle_value_t* window_element(const best_t* b) {
  pestle_value_t* x = b->padded;
  for (int32_t i = 0; i < b->space->count; ++i) {
    int64_t first = b->offset[i] * b->space->dilations[i];
    int64_t stride = b->space->strides[i];
    x = pestle_onnx_slice_axis(b->call, x, 2 + i, first,
                               first + (b->windows[i] - 1) * stride + 1,
                               stride);
  }
  return x;
}

// The index in its plane of that element, as [windows...].
static pestle_value_t* plane_index(const best_t* b) {
  pestle_onnx_call_t* call = b->call;
  const pestle_onnx_space_t* space = b->space;
  pestle_type_t type = pestle_type_make(PESTLE_I64, space->count, b->windows);
  pestle_value_t* index = NULL;
  for (int32_t k = 0; k < space->count; ++k) {
    int32_t i = b->by_column ? space->count - 1 - k : k;
    int64_t extent = pestle_onnx_dim(call->inputs[0], 2 + i);
    pestle_value_t* at = pestle_onnx_binary_f(
        call, PESTLE_OP_ADD,
        times(call, pestle_f_iota(&call->f, &type, i),
              (double)space->strides[i]),
        (double)(b->offset[i] * space->dilations[i] - space->low[i]));
    // An element of the padding is never chosen where the window sees another.
    at = pestle_onnx_binary_f(call, PESTLE_OP_MAXIMUM, at, 0);
    at =
        pestle_onnx_binary_f(call, PESTLE_OP_MINIMUM, at, (double)(extent - 1));
    index = index ? add(call, times(call, index, (double)extent), at) : at;
  }
  return index;
}

static bool next_offset(best_t* b) {
  for (int32_t i = b->space->count - 1; i >= 0; --i) {
    if (++b->offset[i] < b->space->kernel[i]) return true;
    b->offset[i] = 0;
  }
  return false;
}

// [n, channels, windows...] from [windows...], counted over the whole input.
static pestle_value_t* whole_index(const best_t* b, pestle_value_t* index,
                                   const pestle_type_t* like) {
  pestle_onnx_call_t* call = b->call;
  pestle_type_t planes = {.dtype = PESTLE_I64,
                          .rank = like->rank,
                          .dims = {like->dims[0], like->dims[1]}};
  for (int32_t i = 2; i < like->rank; ++i)
    planes.dims[i] = 1;
  int64_t plane =
      pestle_onnx_dims_product(call->inputs[0], 2, rank_of(call->inputs[0]));
  pestle_value_t* image =
      times(call, pestle_f_iota(&call->f, &planes, 0), (double)like->dims[1]);
  pestle_value_t* first = add(call, image, pestle_f_iota(&call->f, &planes, 1));
  return add(call, times(call, first, (double)plane), index);
}

static pestle_value_t* index_of_maximum(best_t* b) {
  pestle_onnx_call_t* call = b->call;
  pestle_value_t *best = window_element(b), *index = plane_index(b);
  if (!best || !index) return NULL;
  index = pestle_onnx_broadcast(call, index, rank_of(best), best->type->dims);
  while (next_offset(b) && !call->f.status) {
    pestle_value_t* value = window_element(b);
    pestle_value_t* wins = pestle_f_gt(&call->f, value, best);
    index = pestle_f_select(&call->f, wins, plane_index(b), index);
    best = pestle_f_select(&call->f, wins, value, best);
  }
  return best ? whole_index(b, index, best->type) : NULL;
}

static pestle_value_t* pool_indices(pestle_onnx_call_t* call,
                                    const pestle_onnx_space_t* space,
                                    const pestle_windows_t* window,
                                    const pestle_value_t* y) {
  pestle_value_t* x = call->inputs[0];
  int64_t low[PESTLE_MAX_RANK] = {0}, high[PESTLE_MAX_RANK] = {0}, kernel = 1;
  best_t b = {.call = call, .space = space};
  b.by_column = pestle_onnx_int(call, "storage_order", 0) != 0;
  for (int32_t i = 0; i < space->count; ++i) {
    low[2 + i] = window->padding[2 * (2 + i)];
    high[2 + i] = window->padding[2 * (2 + i) + 1];
    b.windows[i] = pestle_onnx_dim(y, 2 + i);
    kernel = kernel > MOST_KERNEL ? kernel : kernel * space->kernel[i];
    if (b.windows[i] > 0 && pestle_onnx_dim(x, 2 + i) > 0) continue;
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "the indices of no windows");
  }
  if (kernel > MOST_KERNEL) {
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "indices of a kernel of more than %d elements",
                            MOST_KERNEL);
  }
  pestle_type_t scalar = {.dtype = dtype_of(x)};
  b.padded = pestle_f_pad(&call->f, x, pestle_onnx_lowest(call, &scalar), low,
                          high, NULL);
  return index_of_maximum(&b);
}

void pestle_onnx_import_max_pool(pestle_onnx_call_t* call) {
  pestle_onnx_space_t space;
  pestle_windows_t window;
  int64_t grown[PESTLE_MAX_RANK];
  if (!read_pool(call, &space, &window, grown)) return;
  pestle_value_t* y = pestle_onnx_reduce_window(call, PESTLE_OP_MAXIMUM,
                                                call->inputs[0], &window);
  call->outputs[0] = y;
  if (y && pestle_onnx_wants(call, 1)) {
    call->outputs[1] = pool_indices(call, &space, &window, y);
  }
}

// How many elements of axis |i| window |at| sees: of the input alone, or of the
// padding that was asked for too (not of what ceil_mode adds).
static double seen(const pestle_value_t* x, const pestle_onnx_space_t* space,
                   int32_t i, int64_t at, bool include_pad) {
  int64_t first = include_pad ? -space->low[i] : 0;
  int64_t extent = pestle_onnx_dim(x, 2 + i);
  int64_t end = include_pad ? extent + space->high[i] : extent;
  double count = 0;
  for (int64_t k = 0; k < space->kernel[i]; ++k) {
    int64_t p =
        at * space->strides[i] - space->low[i] + k * space->dilations[i];
    if (p >= first && p < end) ++count;
  }
  return count;
}

// The counts of one axis as a constant that broadcasts along the others.
static pestle_value_t* axis_counts(pestle_onnx_call_t* call,
                                   const pestle_value_t* y,
                                   const pestle_onnx_space_t* space, int32_t i,
                                   bool include_pad) {
  int64_t windows = pestle_onnx_dim(y, 2 + i);
  pestle_type_t type = {.dtype = dtype_of(y), .rank = rank_of(y)};
  for (int32_t k = 0; k < type.rank; ++k)
    type.dims[k] = 1;
  type.dims[2 + i] = windows;
  if (windows > PESTLE_ONNX_MAX_INDICES ||
      (double)windows * (double)space->kernel[i] > 1e8) {
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "an average over %lld windows of %lld",
                            (long long)windows, (long long)space->kernel[i]);
  }
  double* counts =
      pestle_onnx_scratch(call, (size_t)(windows + 1) * sizeof(double));
  if (!counts) return NULL;
  for (int64_t at = 0; at < windows; ++at) {
    double count = seen(call->inputs[0], space, i, at, include_pad);
    // A window of padding alone: 0 / 1, not 0 / 0.
    counts[at] = count > 0 ? count : 1;
  }
  return pestle_onnx_numbers(call, &type, counts);
}

static void average_pool(pestle_onnx_call_t* call) {
  pestle_onnx_space_t space;
  pestle_windows_t window;
  int64_t grown[PESTLE_MAX_RANK];
  if (!read_pool(call, &space, &window, grown)) return;
  bool include_pad = pestle_onnx_int(call, "count_include_pad", 0) != 0;
  pestle_value_t* y =
      pestle_onnx_reduce_window(call, PESTLE_OP_ADD, call->inputs[0], &window);
  if (!y) return;
  double whole = 1;
  for (int32_t i = 0; i < space.count; ++i) {
    bool padded = space.low[i] || space.high[i];
    bool partial = grown[i] || (padded && !include_pad);
    if (partial) {
      y = quotient(call, y, axis_counts(call, y, &space, i, include_pad));
    } else {
      whole *= (double)space.kernel[i];
    }
  }
  call->outputs[0] =
      whole == 1 ? y : pestle_onnx_binary_f(call, PESTLE_OP_DIVIDE, y, whole);
}

void pestle_onnx_import_average_pool(pestle_onnx_call_t* call) {
  pestle_onnx_in_f32(call, average_pool);
}

// sum(|x|^p)^(1/p) of whatever is summed.
static pestle_value_t* power_of(pestle_onnx_call_t* call, pestle_value_t* x,
                                double p) {
  x = pestle_f_abs(&call->f, x);
  if (p == 1) return x;
  if (p == 2) return mul(call, x, x);
  return pestle_onnx_binary_f(call, PESTLE_OP_POWER, x, p);
}

static pestle_value_t* root_of(pestle_onnx_call_t* call, pestle_value_t* x,
                               double p) {
  if (p == 1) return x;
  if (p == 2) return pestle_f_sqrt(&call->f, x);
  return pestle_onnx_binary_f(call, PESTLE_OP_POWER, x, 1 / p);
}

static double read_p(pestle_onnx_call_t* call) {
  int64_t p = pestle_onnx_int(call, "p", 2);
  if (p < 1) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "attribute 'p' is %lld",
                     (long long)p);
  }
  return (double)p;
}

void pestle_onnx_import_lp_pool(pestle_onnx_call_t* call) {
  pestle_onnx_space_t space;
  pestle_windows_t window;
  int64_t grown[PESTLE_MAX_RANK];
  double p = read_p(call);
  if (!read_pool(call, &space, &window, grown)) return;
  pestle_value_t* sum = pestle_onnx_reduce_window(
      call, PESTLE_OP_ADD, power_of(call, call->inputs[0], p), &window);
  call->outputs[0] = root_of(call, sum, p);
}

// --- Whole planes ---

static pestle_value_t* reduce_planes(pestle_onnx_call_t* call, pestle_op_t op,
                                     pestle_value_t* x) {
  int64_t axes[PESTLE_MAX_RANK];
  int32_t rank = rank_of(x);
  if (rank < 2) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "its input has rank %d, it needs batch and "
                            "channels",
                            rank);
  }
  for (int32_t i = 2; i < rank; ++i)
    axes[i - 2] = i;
  return pestle_onnx_reduce(call, op, x, axes, (size_t)rank - 2, true);
}

static void global_average_pool(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  call->outputs[0] = pestle_onnx_binary_f(
      call, PESTLE_OP_DIVIDE, reduce_planes(call, PESTLE_OP_ADD, x),
      (double)pestle_onnx_dims_product(x, 2, rank_of(x)));
}

void pestle_onnx_import_global_average_pool(pestle_onnx_call_t* call) {
  pestle_onnx_in_f32(call, global_average_pool);
}

void pestle_onnx_import_global_max_pool(pestle_onnx_call_t* call) {
  call->outputs[0] = reduce_planes(call, PESTLE_OP_MAXIMUM, call->inputs[0]);
}

static void global_lp_pool(pestle_onnx_call_t* call) {
  double p = read_p(call);
  call->outputs[0] = root_of(
      call,
      reduce_planes(call, PESTLE_OP_ADD, power_of(call, call->inputs[0], p)),
      p);
}

void pestle_onnx_import_global_lp_pool(pestle_onnx_call_t* call) {
  pestle_onnx_in_f32(call, global_lp_pool);
}
