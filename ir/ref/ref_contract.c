// SPDX-License-Identifier: Apache-2.0
// dot_general and convolution. Operands are widened and brought into one
// standard layout by a strided copy; products of floats are summed in f64 and
// rounded once at the end, integers wrap. A complex number is two words.
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/half.h"
#include "base/mem.h"
#include "ir/dot_algorithm.h"
#include "ir/ref/ref_internal.h"

typedef enum kind_t { INTEGER, REAL, COMPLEX } kind_t;

static kind_t kind_of(pestle_dtype_t dtype) {
  if (pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) return COMPLEX;
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) ? REAL : INTEGER;
}

// Words of 8 bytes that a widened element takes.
static size_t words_of(kind_t kind) {
  return kind == COMPLEX ? 2 : 1;
}

// A widened operand whose axes come in the order |axes|.
static pestle_status_t widen(pestle_arena_t* arena, const pestle_type_t* type,
                             const void* data, const int64_t* axes,
                             void** out) {
  size_t count = (size_t)pestle_type_count(type);
  size_t size = pestle_dtype_size(type->dtype);
  size_t words = words_of(kind_of(type->dtype));
  char* moved = pestle_arena_alloc_array(arena, count, size, 8);
  *out = pestle_arena_alloc_array(arena, count, 8 * words, 8);
  if (!moved || !*out) return PESTLE_OOM();
  if (!count) return NULL;
  pestle_type_t target = {.dtype = type->dtype, .rank = type->rank};
  int64_t own[PESTLE_MAX_RANK], from[PESTLE_MAX_RANK], to[PESTLE_MAX_RANK];
  pestle_ref_strides(type, own);
  for (int i = 0; i < type->rank; ++i) {
    target.dims[i] = type->dims[axes[i]];
    from[i] = own[axes[i]];
  }
  pestle_ref_strides(&target, to);
  pestle_ref_copy_strided(size, type->rank, target.dims, moved, to, data, from);
  pestle_ref_load_wide(pestle_dtype_part(type->dtype), moved, words * count,
                       *out);
  return NULL;
}

// row[j] += a * b[j], in the class's arithmetic.
static void multiply_add(kind_t kind, const void* a, const void* b,
                         size_t count, void* row) {
  if (kind == COMPLEX) {
    const double *x = a, *y = b;
    double* out = row;
    for (size_t j = 0; j < 2 * count; j += 2) {
      out[j] += x[0] * y[j] - x[1] * y[j + 1];
      out[j + 1] += x[0] * y[j + 1] + x[1] * y[j];
    }
  } else if (kind == REAL) {
    const double x = *(const double*)a, *y = b;
    double* out = row;
    for (size_t j = 0; j < count; ++j)
      out[j] += x * y[j];
  } else {
    const uint64_t x = *(const uint64_t*)a, *y = b;
    uint64_t* out = row;
    for (size_t j = 0; j < count; ++j)
      out[j] += x * y[j];
  }
}

static pestle_status_t check_kinds(const pestle_ref_call_t* call) {
  pestle_dtype_t dtypes[] = {pestle_ref_operand_type(call, 0)->dtype,
                             pestle_ref_operand_type(call, 1)->dtype,
                             pestle_ref_result_type(call, 0)->dtype};
  for (size_t i = 0; i < 3; ++i) {
    if (kind_of(dtypes[i]) == kind_of(dtypes[0])) continue;
    return pestle_node_error(call->node, PESTLE_STATUS_UNSUPPORTED,
                             "not evaluated for %s",
                             pestle_dtype_info(dtypes[i])->name);
  }
  return NULL;
}

// Rounds wide sums into the result; a sum of bools is whether any is set.
static void finish(pestle_dtype_t dtype, uint64_t* sums, size_t count,
                   void* out) {
  if (dtype == PESTLE_I1) {
    for (size_t i = 0; i < count; ++i)
      sums[i] = sums[i] != 0;
  }
  pestle_ref_store_wide(pestle_dtype_part(dtype), sums,
                        count * words_of(kind_of(dtype)), out);
}

// --- dot_general ---

// Axes of an operand: batching, then |first|, then |second|, where one of them
// is the contracted axes and the other what remains.
static void dot_axes(int rank, pestle_i64s_t batching,
                     pestle_i64s_t contracting, bool contracting_last,
                     int64_t* out) {
  bool taken[PESTLE_MAX_RANK] = {false};
  int n = 0;
  for (size_t i = 0; i < batching.count; ++i) {
    taken[batching.data[i]] = true;
    out[n++] = batching.data[i];
  }
  for (size_t i = 0; i < contracting.count; ++i) {
    taken[contracting.data[i]] = true;
    if (!contracting_last) out[n++] = contracting.data[i];
  }
  for (int i = 0; i < rank; ++i) {
    if (!taken[i]) out[n++] = i;
  }
  for (size_t i = 0; contracting_last && i < contracting.count; ++i) {
    out[n++] = contracting.data[i];
  }
}

// Rounds a widened operand to the precision that the algorithm names.
static void narrow(const pestle_dot_algorithm_t* how, size_t side,
                   const pestle_type_t* type, void* data) {
  pestle_dtype_t to = how->side[side];
  bool tf32 = how->is_tf32[side];
  if (how->products > 1 || kind_of(type->dtype) != REAL ||
      (to == type->dtype && !tf32) ||
      pestle_dtype_size(to) > pestle_dtype_size(type->dtype)) {
    return;
  }
  double* x = data;
  int64_t count = pestle_type_count(type);
  for (int64_t i = 0; i < count; ++i) {
    x[i] = pestle_float_decode(to, pestle_float_encode(to, x[i]));
    if (!tf32 || !isfinite(x[i])) continue;
    // Ten bits of the mantissa are kept, to nearest even.
    float narrow = (float)x[i];
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    bits = (bits + 0xfff + (bits >> 13 & 1)) & ~(uint32_t)0x1fff;
    memcpy(&narrow, &bits, sizeof bits);
    x[i] = narrow;
  }
}

static int64_t extent_of(const pestle_type_t* type, pestle_i64s_t axes) {
  int64_t extent = 1;
  for (size_t i = 0; i < axes.count; ++i)
    extent *= type->dims[axes.data[i]];
  return extent;
}

static pestle_status_t dot(const pestle_ref_call_t* call,
                           pestle_arena_t* arena) {
  const pestle_type_t* a_type = pestle_ref_operand_type(call, 0);
  const pestle_type_t* b_type = pestle_ref_operand_type(call, 1);
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  pestle_i64s_t a_batch = PESTLE_NODE_I64S(call->node, lhs_batching_dimensions);
  pestle_i64s_t b_batch = PESTLE_NODE_I64S(call->node, rhs_batching_dimensions);
  pestle_i64s_t a_sum =
      PESTLE_NODE_I64S(call->node, lhs_contracting_dimensions);
  pestle_i64s_t b_sum =
      PESTLE_NODE_I64S(call->node, rhs_contracting_dimensions);
  int64_t total = pestle_type_count(type);
  if (!total) return NULL;
  int64_t a_axes[PESTLE_MAX_RANK], b_axes[PESTLE_MAX_RANK];
  dot_axes(a_type->rank, a_batch, a_sum, true, a_axes);
  dot_axes(b_type->rank, b_batch, b_sum, false, b_axes);
  void *a, *b;
  PESTLE_TRY(widen(arena, a_type, call->operands[0], a_axes, &a));
  PESTLE_TRY(widen(arena, b_type, call->operands[1], b_axes, &b));
  pestle_dot_algorithm_t how;
  if (pestle_dot_algorithm_of(call->node, &how)) {
    narrow(&how, 0, a_type, a);
    narrow(&how, 1, b_type, b);
  }
  size_t batch = (size_t)extent_of(a_type, a_batch);
  size_t depth = (size_t)extent_of(a_type, a_sum);
  size_t columns = 1;
  for (int i = (int)(b_batch.count + b_sum.count); i < b_type->rank; ++i) {
    columns *= (size_t)b_type->dims[b_axes[i]];
  }
  size_t rows = (size_t)total / batch / columns;
  kind_t kind = kind_of(type->dtype);
  size_t w = words_of(kind);
  uint64_t* row = PESTLE_ARENA_ARRAY(arena, uint64_t, w* columns);
  if (!row) return PESTLE_OOM();
  size_t bytes = columns * pestle_dtype_size(type->dtype);
  for (size_t r = 0; r < batch * rows; ++r) {
    const uint64_t* left = (const uint64_t*)a + w * r * depth;
    const uint64_t* right =
        (const uint64_t*)b + w * (r / rows) * depth * columns;
    memset(row, 0, w * columns * sizeof(*row));
    for (size_t k = 0; k < depth; ++k) {
      multiply_add(kind, left + w * k, right + w * k * columns, columns, row);
    }
    finish(type->dtype, row, columns, (char*)call->results[0] + r * bytes);
  }
  return NULL;
}

pestle_status_t pestle_ref_dot_general(const pestle_ref_call_t* call) {
  PESTLE_TRY(check_kinds(call));
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = dot(call, &arena);
  pestle_arena_deinit(&arena);
  return status;
}

// --- convolution ---

// In the standard layout: input [batch][space][feature], kernel
// [space][input feature][output feature], output [batch][space][feature].
typedef struct conv_t {
  int rank;  // of the space
  int64_t input[PESTLE_MAX_RANK], kernel[PESTLE_MAX_RANK];
  int64_t output[PESTLE_MAX_RANK];
  int64_t stride[PESTLE_MAX_RANK], low[PESTLE_MAX_RANK];
  int64_t base[PESTLE_MAX_RANK], window[PESTLE_MAX_RANK];
  bool reversed[PESTLE_MAX_RANK];
  int64_t batch, in_features, group_features, out_features;
  int64_t feature_groups, batch_groups;
  kind_t kind;
  int64_t words;  // of an element
} conv_t;

static int64_t item(pestle_i64s_t values, size_t index, int64_t missing) {
  return index < values.count ? values.data[index] : missing;
}

static void conv_make(const pestle_ref_call_t* call, conv_t* c) {
  const pestle_node_t* node = call->node;
  const pestle_type_t* input = pestle_ref_operand_type(call, 0);
  const pestle_type_t* kernel = pestle_ref_operand_type(call, 1);
  const pestle_type_t* output = pestle_ref_result_type(call, 0);
  pestle_i64s_t in_space = PESTLE_NODE_I64S(node, input_spatial_dimensions);
  pestle_i64s_t k_space = PESTLE_NODE_I64S(node, kernel_spatial_dimensions);
  pestle_i64s_t out_space = PESTLE_NODE_I64S(node, output_spatial_dimensions);
  c->rank = (int)in_space.count;
  for (size_t i = 0; i < in_space.count; ++i) {
    c->input[i] = input->dims[in_space.data[i]];
    c->kernel[i] = kernel->dims[k_space.data[i]];
    c->output[i] = output->dims[out_space.data[i]];
    c->stride[i] = item(PESTLE_NODE_I64S(node, window_strides), i, 1);
    c->low[i] = item(PESTLE_NODE_I64S(node, padding), 2 * i, 0);
    c->base[i] = item(PESTLE_NODE_I64S(node, lhs_dilation), i, 1);
    c->window[i] = item(PESTLE_NODE_I64S(node, rhs_dilation), i, 1);
    c->reversed[i] = item(PESTLE_NODE_I64S(node, window_reversal), i, 0) != 0;
  }
  c->batch = output->dims[PESTLE_NODE_I64(node, output_batch_dimension)];
  c->out_features =
      output->dims[PESTLE_NODE_I64(node, output_feature_dimension)];
  c->in_features = input->dims[PESTLE_NODE_I64(node, input_feature_dimension)];
  c->group_features =
      kernel->dims[PESTLE_NODE_I64(node, kernel_input_feature_dimension)];
  c->feature_groups = PESTLE_NODE_I64(node, feature_group_count);
  c->batch_groups = PESTLE_NODE_I64(node, batch_group_count);
  c->kind = kind_of(output->dtype);
  c->words = (int64_t)words_of(c->kind);
}

// The index of the input position under kernel position |tap| for output
// position |at|, or -1 in the padding and between dilated elements.
static int64_t input_position(const conv_t* c, const int64_t* at,
                              const int64_t* tap) {
  int64_t position = 0;
  for (int i = 0; i < c->rank; ++i) {
    int64_t k = c->reversed[i] ? c->kernel[i] - 1 - tap[i] : tap[i];
    int64_t p = at[i] * c->stride[i] + k * c->window[i] - c->low[i];
    if (p < 0 || p % c->base[i]) return -1;
    p /= c->base[i];
    if (p >= c->input[i]) return -1;
    position = position * c->input[i] + p;
  }
  return position;
}

// Adds what one kernel position gives to the output features of one position.
static void add_tap(const conv_t* c, const uint64_t* input, int64_t batch,
                    int64_t input_space, int64_t position,
                    const uint64_t* kernel, uint64_t* sums) {
  int64_t groups = c->feature_groups * c->batch_groups;
  int64_t width = c->out_features / groups;
  for (int64_t g = 0; g < groups; ++g) {
    int64_t n = c->batch_groups > 1 ? g * c->batch + batch : batch;
    int64_t first = c->feature_groups > 1 ? g * c->group_features : 0;
    const uint64_t* from =
        input +
        c->words * ((n * input_space + position) * c->in_features + first);
    for (int64_t f = 0; f < c->group_features; ++f) {
      multiply_add(c->kind, from + c->words * f,
                   kernel + c->words * (f * c->out_features + g * width),
                   (size_t)width, sums + c->words * g * width);
    }
  }
}

static void conv_axes(int64_t first, pestle_i64s_t space, int64_t second,
                      bool features_last, int64_t* out) {
  int n = 0;
  if (features_last) out[n++] = first;
  for (size_t i = 0; i < space.count; ++i)
    out[n++] = space.data[i];
  if (!features_last) out[n++] = first;
  out[n] = second;
}

static pestle_status_t conv_run(const conv_t* c, const uint64_t* input,
                                const uint64_t* kernel, uint64_t* output) {
  int64_t input_space, taps;
  if (!pestle_checked_count(c->input, (size_t)c->rank, &input_space) ||
      !pestle_checked_count(c->kernel, (size_t)c->rank, &taps)) {
    return PESTLE_ERROR(INTERNAL, "convolution over a type that is not static");
  }
  if (!taps || !input_space || !c->group_features) return NULL;
  for (int64_t n = 0; n < c->batch; ++n) {
    int64_t at[PESTLE_MAX_RANK] = {0};
    do {
      int64_t tap[PESTLE_MAX_RANK] = {0};
      const uint64_t* weights = kernel;
      do {
        int64_t position = input_position(c, at, tap);
        if (position >= 0) {
          add_tap(c, input, n, input_space, position, weights, output);
        }
        weights += c->words * c->group_features * c->out_features;
      } while (pestle_ref_next(c->rank, c->kernel, tap));
      output += c->words * c->out_features;
    } while (pestle_ref_next(c->rank, c->output, at));
  }
  return NULL;
}

static pestle_status_t conv(const pestle_ref_call_t* call,
                            pestle_arena_t* arena) {
  const pestle_node_t* node = call->node;
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  size_t total = (size_t)pestle_type_count(type);
  if (!total) return NULL;
  conv_t c = {0};
  conv_make(call, &c);
  int64_t axes[PESTLE_MAX_RANK];
  void *input, *kernel;
  conv_axes(PESTLE_NODE_I64(node, input_batch_dimension),
            PESTLE_NODE_I64S(node, input_spatial_dimensions),
            PESTLE_NODE_I64(node, input_feature_dimension), true, axes);
  PESTLE_TRY(widen(arena, pestle_ref_operand_type(call, 0), call->operands[0],
                   axes, &input));
  conv_axes(PESTLE_NODE_I64(node, kernel_input_feature_dimension),
            PESTLE_NODE_I64S(node, kernel_spatial_dimensions),
            PESTLE_NODE_I64(node, kernel_output_feature_dimension), false,
            axes);
  PESTLE_TRY(widen(arena, pestle_ref_operand_type(call, 1), call->operands[1],
                   axes, &kernel));
  size_t size = pestle_dtype_size(type->dtype);
  size_t words = total * words_of(c.kind);
  uint64_t* sums = PESTLE_ARENA_ARRAY(arena, uint64_t, words);
  char* rounded = pestle_arena_alloc_array(arena, total, size, 8);
  if (!sums || !rounded) return PESTLE_OOM();
  memset(sums, 0, words * sizeof(*sums));
  PESTLE_TRY(conv_run(&c, input, kernel, sums));
  finish(type->dtype, sums, total, rounded);
  // From the standard layout to the result's own.
  conv_axes(PESTLE_NODE_I64(node, output_batch_dimension),
            PESTLE_NODE_I64S(node, output_spatial_dimensions),
            PESTLE_NODE_I64(node, output_feature_dimension), true, axes);
  pestle_type_t standard = {.dtype = type->dtype, .rank = type->rank};
  int64_t own[PESTLE_MAX_RANK], from[PESTLE_MAX_RANK], to[PESTLE_MAX_RANK];
  pestle_ref_strides(type, own);
  for (int i = 0; i < type->rank; ++i) {
    standard.dims[i] = type->dims[axes[i]];
    to[i] = own[axes[i]];
  }
  pestle_ref_strides(&standard, from);
  pestle_ref_copy_strided(size, type->rank, standard.dims, call->results[0], to,
                          rounded, from);
  return NULL;
}

pestle_status_t pestle_ref_convolution(const pestle_ref_call_t* call) {
  PESTLE_TRY(check_kinds(call));
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = conv(call, &arena);
  pestle_arena_deinit(&arena);
  return status;
}
