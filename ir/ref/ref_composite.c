// SPDX-License-Identifier: Apache-2.0
// Composites, written from their definitions in f64 and not from their
// decompositions, so that the two can be held against each other.
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/half.h"
#include "base/mem.h"
#include "ir/ref/ref_internal.h"

// --- Rows: softmax and the norms work on the elements along |dimensions| ---

// One row of |length| values in place; |scale| and |offset| may be NULL.
typedef void (*row_fn_t)(double* row, size_t length, const double* scale,
                         const double* offset, double epsilon);

// The strides that bring |type| into the order kept axes, then |dimensions|,
// and the number of elements of a row.
static int64_t row_axes(const pestle_type_t* type, pestle_i64s_t dimensions,
                        int64_t* out_dims, int64_t* out_strides) {
  bool inside[PESTLE_MAX_RANK] = {false};
  int64_t own[PESTLE_MAX_RANK], length = 1;
  pestle_ref_strides(type, own);
  for (size_t i = 0; i < dimensions.count; ++i) {
    inside[dimensions.data[i]] = true;
    length *= type->dims[dimensions.data[i]];
  }
  int n = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < type->rank; ++i) {
      if (inside[i] != (pass == 1)) continue;
      out_dims[n] = type->dims[i];
      out_strides[n++] = own[i];
    }
  }
  return length;
}

static pestle_status_t load_row(pestle_arena_t* arena,
                                const pestle_ref_call_t* call, size_t operand,
                                double** out) {
  *out = NULL;
  if (operand >= call->node->operand_count) return NULL;
  const pestle_type_t* type = pestle_ref_operand_type(call, operand);
  size_t count = (size_t)pestle_type_count(type);
  *out = PESTLE_ARENA_ARRAY(arena, double, count);
  if (!*out) return PESTLE_OOM();
  pestle_ref_load_f64(type->dtype, call->operands[operand], count, *out);
  return NULL;
}

static pestle_status_t rows_in(pestle_arena_t* arena,
                               const pestle_ref_call_t* call, row_fn_t fn,
                               double epsilon) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  size_t count = (size_t)pestle_type_count(type);
  size_t size = pestle_dtype_size(type->dtype);
  if (!count) return NULL;
  pestle_type_t rows = {.dtype = type->dtype, .rank = type->rank};
  int64_t strides[PESTLE_MAX_RANK], packed[PESTLE_MAX_RANK];
  size_t length = (size_t)row_axes(
      type, PESTLE_NODE_I64S(call->node, dimensions), rows.dims, strides);
  pestle_ref_strides(&rows, packed);
  char* moved = pestle_arena_alloc_array(arena, count, size, 8);
  double* values = PESTLE_ARENA_ARRAY(arena, double, count);
  if (!moved || !values) return PESTLE_OOM();
  double *scale, *offset;
  PESTLE_TRY(load_row(arena, call, 1, &scale));
  PESTLE_TRY(load_row(arena, call, 2, &offset));
  pestle_ref_copy_strided(size, rows.rank, rows.dims, moved, packed,
                          call->operands[0], strides);
  pestle_ref_load_f64(type->dtype, moved, count, values);
  for (size_t i = 0; i < count; i += length) {
    fn(values + i, length, scale, offset, epsilon);
  }
  pestle_ref_store_f64(type->dtype, values, count, moved);
  pestle_ref_copy_strided(size, rows.rank, rows.dims, call->results[0], strides,
                          moved, packed);
  return NULL;
}

static pestle_status_t rows(const pestle_ref_call_t* call, row_fn_t fn,
                            double epsilon) {
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = rows_in(&arena, call, fn, epsilon);
  pestle_arena_deinit(&arena);
  return status;
}

static double row_max(const double* row, size_t length) {
  double max = -INFINITY;
  for (size_t i = 0; i < length; ++i) {
    if (isnan(row[i])) return row[i];
    if (row[i] > max) max = row[i];
  }
  return max;
}

static void softmax_row(double* row, size_t length, const double* scale,
                        const double* offset, double epsilon) {
  (void)scale, (void)offset, (void)epsilon;
  double max = row_max(row, length), sum = 0;
  for (size_t i = 0; i < length; ++i)
    sum += row[i] = exp(row[i] - max);
  for (size_t i = 0; i < length; ++i)
    row[i] /= sum;
}

static void log_softmax_row(double* row, size_t length, const double* scale,
                            const double* offset, double epsilon) {
  (void)scale, (void)offset, (void)epsilon;
  double max = row_max(row, length), sum = 0;
  for (size_t i = 0; i < length; ++i)
    sum += exp(row[i] - max);
  double log_sum = log(sum);
  for (size_t i = 0; i < length; ++i)
    row[i] = row[i] - max - log_sum;
}

static void layer_norm_row(double* row, size_t length, const double* scale,
                           const double* offset, double epsilon) {
  double mean = 0, variance = 0;
  for (size_t i = 0; i < length; ++i)
    mean += row[i];
  mean /= (double)length;
  for (size_t i = 0; i < length; ++i) {
    double d = row[i] - mean;
    variance += d * d;
  }
  double inverse = 1 / sqrt(variance / (double)length + epsilon);
  for (size_t i = 0; i < length; ++i) {
    row[i] = (row[i] - mean) * inverse * scale[i] + offset[i];
  }
}

static void rms_norm_row(double* row, size_t length, const double* scale,
                         const double* offset, double epsilon) {
  (void)offset;
  double square = 0;
  for (size_t i = 0; i < length; ++i)
    square += row[i] * row[i];
  double inverse = 1 / sqrt(square / (double)length + epsilon);
  for (size_t i = 0; i < length; ++i)
    row[i] = row[i] * inverse * scale[i];
}

pestle_status_t pestle_ref_softmax(const pestle_ref_call_t* call) {
  return rows(call, softmax_row, 0);
}
pestle_status_t pestle_ref_log_softmax(const pestle_ref_call_t* call) {
  return rows(call, log_softmax_row, 0);
}
pestle_status_t pestle_ref_layer_norm(const pestle_ref_call_t* call) {
  return rows(call, layer_norm_row, PESTLE_NODE_F64(call->node, epsilon));
}
pestle_status_t pestle_ref_rms_norm(const pestle_ref_call_t* call) {
  return rows(call, rms_norm_row, PESTLE_NODE_F64(call->node, epsilon));
}

// Element |index| of an array of any real dtype.
static double real_at(pestle_dtype_t dtype, const void* data, size_t index) {
  uint64_t wide[1];
  double value;
  pestle_ref_load_wide(
      dtype, (const char*)data + index * pestle_dtype_size(dtype), 1, wide);
  switch (pestle_ref_wide_class(dtype)) {
    case PESTLE_REF_I64:
      return (double)(int64_t)wide[0];
    case PESTLE_REF_U64:
      return (double)wide[0];
    case PESTLE_REF_F32:
    case PESTLE_REF_F64:
    case PESTLE_REF_NONE:
      break;
  }
  memcpy(&value, wide, sizeof(value));
  return value;
}

// Where element |at| of x is summed, the dimensions being gone.
static int64_t sum_place(const pestle_type_t* x, pestle_i64s_t dimensions,
                         int64_t at) {
  int64_t place = 0, step = 1;
  for (int i = x->rank - 1; i >= 0; --i) {
    bool gone = false;
    for (size_t d = 0; d < dimensions.count; ++d)
      gone = gone || dimensions.data[d] == i;
    if (!gone) place += at % x->dims[i] * step;
    if (!gone) step *= x->dims[i];
    at /= x->dims[i];
  }
  return place;
}

pestle_status_t pestle_ref_logsumexp(const pestle_ref_call_t* call) {
  const pestle_type_t* x = pestle_ref_operand_type(call, 0);
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  pestle_i64s_t dimensions = PESTLE_NODE_I64S(call->node, dimensions);
  size_t count = (size_t)pestle_type_count(type);
  double* max = pestle_alloc_array(call->allocator, 2 * count + 1, 8);
  if (!max) return PESTLE_OOM();
  double* sum = max + count;
  for (size_t i = 0; i < count; ++i) {
    max[i] = -INFINITY;
    sum[i] = 0;
  }
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t i = 0; i < pestle_type_count(x); ++i) {
      int64_t at = sum_place(x, dimensions, i);
      double v = real_at(x->dtype, call->operands[0], (size_t)i);
      if (pass) sum[at] += exp(v - (isfinite(max[at]) ? max[at] : 0));
      if (!pass && v > max[at]) max[at] = v;
    }
  }
  for (size_t i = 0; i < count; ++i)
    sum[i] = log(sum[i]) + (isfinite(max[i]) ? max[i] : 0);
  pestle_ref_store_f64(type->dtype, sum, count, call->results[0]);
  pestle_dealloc(call->allocator, max, (2 * count + 1) * 8);
  return NULL;
}

// --- Activations ---

typedef double (*map_fn_t)(double x, double p, double q);

enum { BLOCK = 512 };

static pestle_status_t map(const pestle_ref_call_t* call, map_fn_t fn, double p,
                           double q) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  size_t count = (size_t)pestle_type_count(type);
  size_t size = pestle_dtype_size(type->dtype);
  double block[BLOCK];
  for (size_t start = 0; start < count; start += BLOCK) {
    size_t n = count - start < BLOCK ? count - start : BLOCK;
    pestle_ref_load_f64(
        type->dtype, (const char*)call->operands[0] + start * size, n, block);
    for (size_t i = 0; i < n; ++i)
      block[i] = fn(block[i], p, q);
    pestle_ref_store_f64(type->dtype, block, n,
                         (char*)call->results[0] + start * size);
  }
  return NULL;
}

static double gelu(double x, double p, double q) {
  (void)p, (void)q;
  return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
}
static double gelu_tanh(double x, double p, double q) {
  (void)p, (void)q;
  double inner = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + tanh(inner));
}
static double silu(double x, double p, double q) {
  (void)p, (void)q;
  return x / (1 + exp(-x));
}
static double hard_sigmoid(double x, double alpha, double beta) {
  double y = alpha * x + beta;
  return y < 0 ? 0 : y > 1 ? 1 : y;
}

pestle_status_t pestle_ref_gelu(const pestle_ref_call_t* call) {
  bool approximate = PESTLE_NODE_BOOL(call->node, approximate);
  return map(call, approximate ? gelu_tanh : gelu, 0, 0);
}
pestle_status_t pestle_ref_silu(const pestle_ref_call_t* call) {
  return map(call, silu, 0, 0);
}
pestle_status_t pestle_ref_hard_sigmoid(const pestle_ref_call_t* call) {
  return map(call, hard_sigmoid, PESTLE_NODE_F64(call->node, alpha),
             PESTLE_NODE_F64(call->node, beta));
}

// --- Quantisation ---

// Rounds |value| to |dtype|; what does not fit becomes the nearest that does.
static void store_saturated(pestle_dtype_t dtype, double value, void* data,
                            size_t index) {
  size_t size = pestle_dtype_size(dtype);
  void* to = (char*)data + index * size;
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    pestle_ref_store_f64(dtype, &value, 1, to);
    return;
  }
  int bits = pestle_dtype_info(dtype)->bits;
  bool is_signed = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  double low = is_signed ? -ldexp(1, bits - 1) : 0;
  double high = ldexp(1, is_signed ? bits - 1 : bits) - 1;
  double bounded = isnan(value)   ? 0
                   : value < low  ? low
                   : value > high ? high
                                  : value;
  int64_t wide = (int64_t)bounded;
  pestle_ref_store_wide(dtype, &wide, 1, to);
}

// Which scale belongs to element |index|: all have one, or one along the axis.
static size_t scale_index(const pestle_type_t* type, const pestle_type_t* scale,
                          int64_t axis, size_t index) {
  if (!scale->rank) return 0;
  size_t inner = 1;
  for (int i = (int)axis + 1; i < type->rank; ++i) {
    inner *= (size_t)type->dims[i];
  }
  return index / inner % (size_t)type->dims[axis];
}

// The quotient is one operation of the input's precision: a tie that f64 would
// not see rounds the other way in f32.
static double divide(pestle_dtype_t dtype, double a, double b) {
  return dtype == PESTLE_F64 ? a / b : (double)((float)a / (float)b);
}

pestle_status_t pestle_ref_quantize(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  const pestle_type_t* x = pestle_ref_operand_type(call, 0);
  const pestle_type_t* scale = pestle_ref_operand_type(call, 1);
  int64_t axis = PESTLE_NODE_I64(call->node, axis);
  bool to_float = pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT);
  size_t count = (size_t)pestle_type_count(type);
  for (size_t i = 0; i < count; ++i) {
    size_t s = scale_index(type, scale, axis, i);
    double q = divide(scale->dtype, real_at(x->dtype, call->operands[0], i),
                      real_at(scale->dtype, call->operands[1], s));
    if (!to_float) q = rint(q);
    q += real_at(type->dtype, call->operands[2], s);
    store_saturated(type->dtype, q, call->results[0], i);
  }
  return NULL;
}

// The difference of i32 is one of i32 and wraps; those of narrower types are
// exact.
pestle_status_t pestle_ref_dequantize(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  const pestle_type_t* x = pestle_ref_operand_type(call, 0);
  const pestle_type_t* scale = pestle_ref_operand_type(call, 1);
  int64_t axis = PESTLE_NODE_I64(call->node, axis);
  size_t size = pestle_dtype_size(type->dtype);
  size_t count = (size_t)pestle_type_count(type);
  for (size_t i = 0; i < count; ++i) {
    size_t s = scale_index(type, scale, axis, i);
    double value = real_at(x->dtype, call->operands[0], i) -
                   real_at(x->dtype, call->operands[2], s);
    if (x->dtype == PESTLE_I32) value = (double)(int32_t)(int64_t)value;
    value *= real_at(scale->dtype, call->operands[1], s);
    pestle_ref_store_f64(type->dtype, &value, 1,
                         (char*)call->results[0] + i * size);
  }
  return NULL;
}
