// SPDX-License-Identifier: Apache-2.0
// batch_norm_training and batch_norm_grad, feature by feature in f64.
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "ir/ref/ref_internal.h"

// The elements of one feature: |outer| runs of |inner|.
typedef struct feature_t {
  const pestle_ref_call_t* call;
  int64_t outer, inner, features, index;
} feature_t;

static feature_t features_of(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_operand_type(call, 0);
  int64_t axis = PESTLE_NODE_I64(call->node, feature_index);
  feature_t f = {call, 1, 1, type->dims[axis], 0};
  for (int i = 0; i < type->rank; ++i) {
    if (i < axis) f.outer *= type->dims[i];
    if (i > axis) f.inner *= type->dims[i];
  }
  return f;
}

static double read(const pestle_ref_call_t* call, size_t operand, int64_t at) {
  pestle_dtype_t dtype = pestle_ref_operand_type(call, operand)->dtype;
  double value;
  pestle_ref_load_f64(dtype,
                      (const char*)call->operands[operand] +
                          (size_t)at * pestle_dtype_size(dtype),
                      1, &value);
  return value;
}

static void write(const pestle_ref_call_t* call, size_t result, int64_t at,
                  double value) {
  pestle_dtype_t dtype = pestle_ref_result_type(call, result)->dtype;
  pestle_ref_store_f64(
      dtype, &value, 1,
      (char*)call->results[result] + (size_t)at * pestle_dtype_size(dtype));
}

static int64_t place(const feature_t* f, int64_t i) {
  return (i / f->inner * f->features + f->index) * f->inner + i % f->inner;
}

static void train(const feature_t* f, double epsilon) {
  int64_t n = f->outer * f->inner;
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < n; ++i)
    mean += read(f->call, 0, place(f, i));
  mean /= (double)n;
  for (int64_t i = 0; i < n; ++i) {
    double c = read(f->call, 0, place(f, i)) - mean;
    variance += c * c;
  }
  variance /= (double)n;
  double factor = read(f->call, 1, f->index) / sqrt(variance + epsilon);
  for (int64_t i = 0; i < n; ++i) {
    double c = read(f->call, 0, place(f, i)) - mean;
    write(f->call, 0, place(f, i), c * factor + read(f->call, 2, f->index));
  }
  write(f->call, 1, f->index, mean);
  write(f->call, 2, f->index, variance);
}

pestle_status_t pestle_ref_batch_norm_training(const pestle_ref_call_t* call) {
  feature_t f = features_of(call);
  for (; f.index < f.features; ++f.index)
    train(&f, PESTLE_NODE_F64(call->node, epsilon));
  return NULL;
}

static void differentiate(const feature_t* f, double epsilon) {
  int64_t n = f->outer * f->inner;
  double mean = read(f->call, 2, f->index), all = 0, along = 0;
  double v = read(f->call, 3, f->index) + epsilon;
  for (int64_t i = 0; i < n; ++i) {
    double g = read(f->call, 4, place(f, i));
    all += g;
    along += g * (read(f->call, 0, place(f, i)) - mean);
  }
  for (int64_t i = 0; i < n; ++i) {
    double c = read(f->call, 0, place(f, i)) - mean;
    double y = read(f->call, 4, place(f, i)) - all / (double)n -
               c * along / (double)n / v;
    write(f->call, 0, place(f, i), y * read(f->call, 1, f->index) / sqrt(v));
  }
  write(f->call, 1, f->index, along / sqrt(v));
  write(f->call, 2, f->index, all);
}

pestle_status_t pestle_ref_batch_norm_grad(const pestle_ref_call_t* call) {
  feature_t f = features_of(call);
  for (; f.index < f.features; ++f.index)
    differentiate(&f, PESTLE_NODE_F64(call->node, epsilon));
  return NULL;
}
