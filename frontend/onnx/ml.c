// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/ml.h"

#include <stdio.h>

#include "frontend/onnx/bounded.h"

// --- Numbers ---

static pestle_ml_numbers_t tensor_numbers(pestle_onnx_call_t* call,
                                          const pestle_onnx_attr_t* attr,
                                          bool* wide) {
  pestle_ml_numbers_t none = {0};
  pestle_elements_t elements;
  if (!attr->tensor) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute '%.*s' should be a tensor",
                     PESTLE_STR_ARG(attr->name));
    return none;
  }
  if (pestle_onnx_keep(
          call, pestle_onnx_tensor_elements(attr->tensor, call->import->files,
                                            &call->import->arena, &elements))) {
    return none;
  }
  if (!pestle_dtype_is(elements.type.dtype,
                       PESTLE_KIND_FLOAT | PESTLE_KIND_INT)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute '%.*s' should hold real numbers",
                     PESTLE_STR_ARG(attr->name));
    return none;
  }
  size_t count = (size_t)pestle_type_count(&elements.type);
  double* data = pestle_onnx_scratch(call, (count + 1) * sizeof(double));
  if (!data) return none;
  for (size_t i = 0; i < count; ++i)
    data[i] = pestle_onnx_element_f64(&elements, elements.splat ? 0 : i);
  if (wide) *wide = *wide || elements.type.dtype == PESTLE_F64;
  return (pestle_ml_numbers_t){data, count};
}

pestle_ml_numbers_t pestle_ml_numbers(pestle_onnx_call_t* call,
                                      const char* name, bool* wide) {
  char tensor[80];
  snprintf(tensor, sizeof(tensor), "%s_as_tensor", name);
  const pestle_onnx_attr_t* attr = pestle_onnx_node_attr(call->node, tensor);
  const pestle_onnx_attr_t* own = pestle_onnx_node_attr(call->node, name);
  if (attr && own) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it has both attributes '%s' and '%s'", name, tensor);
    return (pestle_ml_numbers_t){0};
  }
  if (own && own->tensor) attr = own;
  if (attr) return tensor_numbers(call, attr, wide);
  pestle_onnx_floats_t list = pestle_onnx_floats(call, name);
  double* data = pestle_onnx_scratch(call, (list.count + 1) * sizeof(double));
  if (!data) return (pestle_ml_numbers_t){0};
  for (size_t i = 0; i < list.count; ++i)
    data[i] = (double)list.data[i];
  return (pestle_ml_numbers_t){data, list.count};
}

pestle_value_t* pestle_ml_table(pestle_onnx_call_t* call, pestle_dtype_t dtype,
                                int32_t rank, const int64_t* dims,
                                const double* values) {
  pestle_type_t type = {.dtype = dtype, .rank = rank};
  for (int32_t i = 0; i < rank; ++i)
    type.dims[i] = dims[i];
  return pestle_onnx_numbers(call, &type, values);
}

pestle_value_t* pestle_ml_rows(pestle_onnx_call_t* call, pestle_value_t* x,
                               pestle_dtype_t dtype) {
  int32_t rank = rank_of(x);
  if (rank != 1 && rank != 2) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "its input has the rank %d; rows of features, or "
                            "one row, are needed",
                            rank);
  }
  // A list is one row, of which a run may not tell the length.
  if (rank == 1 && !pestle_onnx_allow_real(call, 0, 0)) return NULL;
  int64_t dims[] = {rank == 1 ? 1 : pestle_onnx_dim(x, 0),
                    pestle_onnx_dim(x, rank - 1)};
  x = pestle_onnx_convert(call, x, dtype);
  return pestle_f_reshape(&call->f, x, 2, dims);
}

// --- Labels ---

pestle_ml_labels_t pestle_ml_labels(pestle_onnx_call_t* call, const char* ints,
                                    const char* strings) {
  pestle_i64s_t numbers = pestle_onnx_ints(call, ints);
  const pestle_onnx_attr_t* texts = pestle_onnx_node_attr(call->node, strings);
  if (texts && texts->kind != PESTLE_ONNX_ATTR_STRINGS) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute '%s' should be strings", strings);
  }
  if (texts && texts->count && numbers.count) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it has both '%s' and '%s', of which one can be meant",
                     ints, strings);
  }
  if (texts && texts->count) {
    return (pestle_ml_labels_t){.count = texts->count,
                                .strings = texts->strings};
  }
  return (pestle_ml_labels_t){.count = numbers.count, .ints = numbers.data};
}

pestle_value_t* pestle_ml_label_of(pestle_onnx_call_t* call,
                                   const pestle_ml_labels_t* labels,
                                   pestle_value_t* which) {
  if (labels->strings) {
    pestle_value_t* ids =
        pestle_onnx_id_list(call, labels->strings, labels->count);
    return pestle_onnx_mark_text(call, pestle_onnx_take(call, ids, which, 0));
  }
  bool same = true;
  for (size_t i = 0; i < labels->count; ++i)
    same = same && labels->ints[i] == (int64_t)i;
  if (same) return which;
  pestle_value_t* list =
      pestle_onnx_int_list(call, labels->ints, labels->count);
  return pestle_onnx_take(call, list, which, 0);
}

pestle_value_t* pestle_ml_top(pestle_onnx_call_t* call,
                              pestle_value_t* scores) {
  int64_t axis = 1, rows = pestle_onnx_dim(scores, 0);
  int64_t classes = pestle_onnx_dim(scores, 1);
  pestle_type_t type = {
      .dtype = PESTLE_I64, .rank = 2, .dims = {rows, classes}};
  pestle_value_t* best =
      pestle_onnx_reduce(call, PESTLE_OP_MAXIMUM, scores, &axis, 1, true);
  pestle_value_t* hit = pestle_f_eq(&call->f, scores, best);
  pestle_value_t* last = pestle_onnx_splat_int(call, &type, classes - 1);
  pestle_value_t* places = pestle_f_iota(&call->f, &type, 1);
  places = pestle_f_select(&call->f, hit, places, last);
  return pestle_onnx_reduce(call, PESTLE_OP_MINIMUM, places, &axis, 1, false);
}

pestle_value_t* pestle_ml_truth(pestle_onnx_call_t* call,
                                pestle_value_t* condition) {
  return pestle_onnx_convert(call, condition, PESTLE_I64);
}

// --- Scores ---

pestle_ml_post_t pestle_ml_post(pestle_onnx_call_t* call) {
  static const struct {
    const char* name;
    pestle_ml_post_t post;
  } known[] = {{"NONE", PESTLE_ML_NONE},
               {"SOFTMAX", PESTLE_ML_SOFTMAX},
               {"LOGISTIC", PESTLE_ML_LOGISTIC},
               {"SOFTMAX_ZERO", PESTLE_ML_SOFTMAX_ZERO},
               {"PROBIT", PESTLE_ML_PROBIT}};
  pestle_str_t name = pestle_onnx_string(call, "post_transform", "NONE");
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
    if (pestle_str_equal_c(name, known[i].name)) return known[i].post;
  }
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "attribute 'post_transform' is '%.*s', known are NONE, "
                   "SOFTMAX, LOGISTIC, SOFTMAX_ZERO and PROBIT",
                   PESTLE_STR_ARG(name));
  return PESTLE_ML_NONE;
}

// The softmax of the scores that are not 0; one that is stays 0 but for the factor
// that they share.
static pestle_value_t* softmax_zero(pestle_onnx_call_t* call,
                                    pestle_value_t* z) {
  int64_t axis = 1;
  pestle_formula_t* f = &call->f;
  pestle_value_t* top =
      pestle_onnx_reduce(call, PESTLE_OP_MAXIMUM, z, &axis, 1, true);
  pestle_value_t* size = pestle_f_abs(f, z);
  pestle_value_t* counts =
      pestle_onnx_binary_f(call, PESTLE_OP_GT, size, (double)1e-7f);
  pestle_value_t* e = pestle_f_exponential(f, sub(call, z, top));
  pestle_value_t* low = pestle_f_exponential(f, pestle_f_negate(f, top));
  low = mul(call, z, low);
  pestle_value_t* zero = splat_like(call, z, 0);
  pestle_value_t* sum = pestle_onnx_reduce(
      call, PESTLE_OP_ADD, pestle_f_select(f, counts, e, zero), &axis, 1, true);
  return quotient(call, pestle_f_select(f, counts, e, low), sum);
}

// sqrt(2) times the inverse of erf at 2 z - 1, by Winitzki's formula with the
// constants that ONNX's reference and ONNX Runtime have, in f32.
static pestle_value_t* probit(pestle_onnx_call_t* call, pestle_value_t* z) {
  pestle_formula_t* f = &call->f;
  pestle_dtype_t dtype = dtype_of(z);
  z = pestle_onnx_convert(call, z, PESTLE_F32);
  pestle_value_t* x = pestle_f_plus(f, times(call, z, 2), -1);
  pestle_value_t* zero = splat_like(call, x, 0);
  pestle_value_t* negative = pestle_f_lt(f, x, zero);
  pestle_value_t* one = splat_like(call, x, 1);
  pestle_value_t* up = pestle_f_plus(f, x, 1);
  pestle_value_t* log = pestle_f_log(f, mul(call, sub(call, one, x), up));
  pestle_value_t* v = pestle_f_plus(f, times(call, log, 0.5),
                                    (double)(2 / (3.14159f * 0.147f)));
  pestle_value_t* w = times(call, log, (double)(1 / 0.147f));
  pestle_value_t* root = sub(call, mul(call, v, v), w);
  root = sub(call, pestle_f_sqrt(f, root), v);
  root = times(call, pestle_f_sqrt(f, root), (double)1.41421356f);
  root = pestle_f_select(f, negative, pestle_f_negate(f, root), root);
  return pestle_onnx_convert(call, root, dtype);
}

pestle_value_t* pestle_ml_transform(pestle_onnx_call_t* call,
                                    pestle_ml_post_t post,
                                    pestle_value_t* scores) {
  if (post == PESTLE_ML_PROBIT) return probit(call, scores);
  if (pestle_onnx_dim(scores, 1) < 2) return scores;
  switch (post) {
    case PESTLE_ML_SOFTMAX:
      return pestle_onnx_softmax(call, PESTLE_OP_SOFTMAX, scores, 1);
    case PESTLE_ML_LOGISTIC:
      return pestle_f_logistic(&call->f, scores);
    case PESTLE_ML_SOFTMAX_ZERO:
      return softmax_zero(call, scores);
    case PESTLE_ML_NONE:
    case PESTLE_ML_PROBIT:
      break;
  }
  return scores;
}

pestle_value_t* pestle_ml_two_classes(pestle_onnx_call_t* call,
                                      pestle_ml_post_t post,
                                      pestle_value_t* score, bool complement) {
  pestle_formula_t* f = &call->f;
  pestle_value_t* pair[2] = {NULL, score};
  if (post == PESTLE_ML_LOGISTIC) {
    pair[0] = pestle_f_logistic(f, pestle_f_negate(f, score));
    pair[1] = pestle_f_logistic(f, score);
  } else if (complement) {
    pair[0] = sub(call, splat_like(call, score, 1), score);
  } else {
    pair[0] = pestle_f_negate(f, score);
  }
  return pestle_f_concatenate(f, pair, 2, 1);
}
