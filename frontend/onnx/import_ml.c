// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml: the ops that change features, of which the last axis has them.
// What they hold per feature is a constant along that axis.
#include <float.h>

#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ml.h"

// |values| along the last axis of |like|, one for each feature or one for all, as
// |dtype|; NULL with an error kept if they are neither.
static pestle_value_t* per_feature(pestle_onnx_call_t* call, const char* name,
                                   const double* values, size_t count,
                                   const pestle_value_t* like,
                                   pestle_dtype_t dtype) {
  int64_t features = pestle_onnx_dim(like, rank_of(like) - 1);
  if (count != 1 && (int64_t)count != features) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "attribute '%s' has %zu numbers, its input %lld "
                            "features; one number or one a feature is needed",
                            name, count, (long long)features);
  }
  int64_t dims[] = {(int64_t)count};
  return pestle_ml_table(call, dtype, 1, dims, values);
}

void pestle_onnx_import_ml_scaler(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "offset scale")) return;
  pestle_value_t* x = call->inputs[0];
  pestle_ml_numbers_t offset = pestle_ml_numbers(call, "offset", NULL);
  pestle_ml_numbers_t scale = pestle_ml_numbers(call, "scale", NULL);
  // In double for doubles alone, and then a float.
  pestle_dtype_t wide = dtype_of(x) == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
  x = pestle_onnx_convert(call, x, wide);
  if (offset.count) {
    x = sub(call, x,
            per_feature(call, "offset", offset.data, offset.count,
                        call->inputs[0], wide));
  }
  if (scale.count) {
    x = mul(call, x,
            per_feature(call, "scale", scale.data, scale.count, call->inputs[0],
                        wide));
  }
  call->outputs[0] = pestle_onnx_convert(call, x, PESTLE_F32);
}

// |sum| where it is not 0, else 1: a row of zeros stays as it is.
static pestle_value_t* divisor(pestle_onnx_call_t* call, pestle_value_t* sum) {
  pestle_value_t* none = pestle_onnx_binary_f(call, PESTLE_OP_EQ, sum, 0);
  return pestle_f_select(&call->f, none, splat_like(call, sum, 1), sum);
}

void pestle_onnx_import_ml_normalizer(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "norm")) return;
  pestle_formula_t* f = &call->f;
  pestle_value_t* x = pestle_onnx_convert(call, call->inputs[0], PESTLE_F32);
  int64_t axis = rank_of(x) - 1;
  pestle_str_t norm = pestle_onnx_string(call, "norm", "MAX");
  if (axis < 0 || axis > 1) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input has the rank %d; rows of features, or one row, "
                     "are needed",
                     rank_of(x));
  } else if (axis == 0 && !pestle_onnx_allow_real(call, 0, 0)) {
    return;
  } else if (pestle_str_equal_c(norm, "MAX")) {
    // Of the numbers, not of their sizes; what is no number above the lowest, as NaN, is the
    // lowest, as in ONNX Runtime.
    pestle_value_t* low = splat_like(call, x, -(double)FLT_MAX);
    pestle_value_t* top = pestle_f_select(f, pestle_f_gt(f, x, low), x, low);
    top = pestle_onnx_reduce(call, PESTLE_OP_MAXIMUM, top, &axis, 1, true);
    call->outputs[0] = quotient(call, x, divisor(call, top));
  } else if (pestle_str_equal_c(norm, "L1")) {
    pestle_value_t* sum = pestle_onnx_reduce(
        call, PESTLE_OP_ADD, pestle_f_abs(f, x), &axis, 1, true);
    call->outputs[0] = quotient(call, x, divisor(call, sum));
  } else if (pestle_str_equal_c(norm, "L2")) {
    pestle_value_t* square = mul(call, x, x);
    pestle_value_t* sum =
        pestle_onnx_reduce(call, PESTLE_OP_ADD, square, &axis, 1, true);
    pestle_value_t* size =
        pestle_f_sqrt(f, quotient(call, square, divisor(call, sum)));
    call->outputs[0] = pestle_f_copy_sign(f, size, x);
  } else {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'norm' is '%.*s', known are MAX, L1 and L2",
                     PESTLE_STR_ARG(norm));
  }
}

// A list of integers as numbers; each is exact up to 2^53.
static double* as_numbers(pestle_onnx_call_t* call, pestle_i64s_t list) {
  double* numbers =
      pestle_onnx_scratch(call, (list.count + 1) * sizeof(double));
  for (size_t i = 0; numbers && i < list.count; ++i)
    numbers[i] = (double)list.data[i];
  return numbers;
}

void pestle_onnx_import_ml_imputer(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call,
                         "imputed_value_floats imputed_value_int64s "
                         "replaced_value_float replaced_value_int64"))
    return;
  pestle_formula_t* f = &call->f;
  pestle_value_t* x = call->inputs[0];
  bool is_float = pestle_dtype_is(dtype_of(x), PESTLE_KIND_FLOAT);
  pestle_ml_numbers_t floats =
      pestle_ml_numbers(call, "imputed_value_floats", NULL);
  pestle_i64s_t ints = pestle_onnx_ints(call, "imputed_value_int64s");
  if ((floats.count != 0) == (ints.count != 0) ||
      (floats.count != 0) != is_float || rank_of(x) < 1) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it has %zu imputed_value_floats and %zu "
                     "imputed_value_int64s for elements of %s; those of the "
                     "elements' kind alone are needed",
                     floats.count, ints.count,
                     pestle_dtype_info(dtype_of(x))->name);
    return;
  }
  pestle_value_t* missing;
  pestle_type_t scalar = {.dtype = dtype_of(x)};
  if (is_float) {
    double old = pestle_onnx_float(call, "replaced_value_float", 0);
    missing = old != old ? pestle_f_ne(f, x, x)
                         : pestle_onnx_binary_f(call, PESTLE_OP_EQ, x, old);
  } else {
    int64_t old = pestle_onnx_int(call, "replaced_value_int64", 0);
    missing = pestle_f_eq(f, x, pestle_onnx_splat_int(call, &scalar, old));
  }
  const double* values = is_float ? floats.data : as_numbers(call, ints);
  size_t count = is_float ? floats.count : ints.count;
  if (!values) return;
  // ONNX Runtime takes the first of a list that has not one for each feature.
  if ((int64_t)count != pestle_onnx_dim(x, rank_of(x) - 1)) count = 1;
  pestle_value_t* table =
      per_feature(call, "imputed values", values, count, x, dtype_of(x));
  table =
      pestle_onnx_broadcast(call, table, rank_of(x), pestle_onnx_type(x)->dims);
  call->outputs[0] = pestle_f_select(f, missing, table, x);
}

void pestle_onnx_import_ml_binarizer(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "threshold")) return;
  pestle_value_t* x = call->inputs[0];
  double threshold = pestle_onnx_float(call, "threshold", 0);
  pestle_dtype_t dtype = dtype_of(x);
  // Of integers too: 3 > 2.5.
  if (!pestle_dtype_is(dtype, PESTLE_KIND_FLOAT))
    x = pestle_onnx_convert(call, x, PESTLE_F64);
  pestle_value_t* above =
      pestle_onnx_binary_f(call, PESTLE_OP_GT, x, threshold);
  call->outputs[0] = pestle_onnx_convert(call, above, dtype);
}

void pestle_onnx_import_ml_array_feature_extractor(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "")) return;
  pestle_value_t *x = call->inputs[0], *at = call->inputs[1];
  int64_t count = pestle_onnx_dims_product(at, 0, rank_of(at));
  int64_t axis = rank_of(x) - 1, features = pestle_onnx_dim(x, axis);
  if (rank_of(x) < 1 || !pestle_dtype_is(dtype_of(at), PESTLE_KIND_INT) ||
      count < 1) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it takes features by a list of integers");
    return;
  }
  if (!pestle_onnx_check_indices(call, at, features)) return;
  at = pestle_f_reshape(&call->f, at, 1, &count);
  pestle_value_t* y = pestle_onnx_take(call, x, at, axis);
  int64_t row[] = {1, count};
  call->outputs[0] = axis ? y : pestle_f_reshape(&call->f, y, 2, row);
}

// The first |width| columns of |x|, and zeros behind fewer.
static pestle_value_t* fit_columns(pestle_onnx_call_t* call, pestle_value_t* x,
                                   int64_t width) {
  int64_t has = pestle_onnx_dim(x, 1);
  if (has > width) return pestle_onnx_slice_axis(call, x, 1, 0, width, 1);
  return pestle_f_pad_end(&call->f, x, 1, width - has);
}

void pestle_onnx_import_ml_feature_vectorizer(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "inputdimensions")) return;
  pestle_i64s_t widths = pestle_onnx_ints(call, "inputdimensions");
  if (widths.count && widths.count != call->input_count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it has %zu inputs and %zu inputdimensions",
                     call->input_count, widths.count);
    return;
  }
  pestle_value_t** parts = pestle_onnx_scratch(
      call, (call->input_count + 1) * sizeof(pestle_value_t*));
  for (size_t i = 0; parts && i < call->input_count; ++i) {
    pestle_value_t* x = pestle_onnx_input(call, i);
    int64_t rank = rank_of(x);
    int64_t dims[] = {rank < 2 ? 1 : pestle_onnx_dim(x, 0),
                      pestle_onnx_dims_product(x, rank < 2 ? 0 : 1, rank)};
    x = pestle_onnx_convert(call, x, PESTLE_F32);
    x = pestle_f_reshape(&call->f, x, 2, dims);
    int64_t width = widths.count ? widths.data[i] : dims[1];
    if (width < 0 || width > PESTLE_ONNX_MAX_INDICES) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "its inputdimensions hold %lld", (long long)width);
      return;
    }
    parts[i] = fit_columns(call, x, width);
  }
  if (!parts || call->f.status) return;
  call->outputs[0] =
      pestle_f_concatenate(&call->f, parts, call->input_count, 1);
}
