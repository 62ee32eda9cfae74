// SPDX-License-Identifier: Apache-2.0
// com.microsoft: ops of ai.onnx from before it had them, and of transformers that are few.
#include <math.h>

#include "frontend/onnx/bounded.h"
#include "frontend/onnx/contrib.h"

// The op of ai.onnx that |fn| imports, with the same inputs and attributes.
static void as_standard(pestle_onnx_call_t* call, const char* names,
                        pestle_onnx_fn_t fn, int64_t opset) {
  pestle_value_t* y = NULL;
  const pestle_onnx_part_t part = {.fn = fn,
                                   .opset = opset,
                                   .inputs = call->inputs,
                                   .input_count = call->input_count};
  if (pestle_onnx_takes(call, names) &&
      pestle_onnx_import_part(call, &part, &y, 1)) {
    call->outputs[0] = y;
  }
}

void pestle_onnx_import_contrib_trilu(pestle_onnx_call_t* call) {
  as_standard(call, "upper", pestle_onnx_import_trilu, 14);
}

void pestle_onnx_import_contrib_gather_nd(pestle_onnx_call_t* call) {
  as_standard(call, "", pestle_onnx_import_gather_nd, 12);
}

void pestle_onnx_import_contrib_pad(pestle_onnx_call_t* call) {
  as_standard(call, "mode", pestle_onnx_import_pad, 13);
}

void pestle_onnx_import_contrib_grid_sample(pestle_onnx_call_t* call) {
  as_standard(call, "align_corners mode padding_mode",
              pestle_onnx_import_grid_sample, 16);
}

// From, to and by; without the last by 1.
void pestle_onnx_import_contrib_range(pestle_onnx_call_t* call) {
  pestle_value_t* in[3] = {call->inputs[0], call->inputs[1],
                           pestle_onnx_input(call, 2)};
  if (!pestle_onnx_takes(call, "")) return;
  if (!in[2]) in[2] = pestle_onnx_scalar(call, dtype_of(in[0]), 1);
  for (int i = 0; i < 3; ++i)
    in[i] = pestle_f_reshape(&call->f, in[i], 0, NULL);
  call->outputs[0] =
      pestle_onnx_part(call, pestle_onnx_import_range, in, 3, NULL, 0);
}

// Input 1: the one axis that is new.
void pestle_onnx_import_expand_dims(pestle_onnx_call_t* call) {
  const int64_t one = 1;
  if (!pestle_onnx_takes(call, "")) return;
  pestle_value_t* in[2] = {
      call->inputs[0], pestle_f_reshape(&call->f, call->inputs[1], 1, &one)};
  call->outputs[0] =
      pestle_onnx_part(call, pestle_onnx_import_unsqueeze, in, 2, NULL, 0);
}

// The softmax from axis |axis| on of x + bias, which is repeated along the axes in front
// of it, or within each of them.
void pestle_onnx_import_bias_softmax(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "axis is_inner_broadcast")) return;
  pestle_value_t *x = call->inputs[0], *bias = call->inputs[1], *y = NULL;
  int64_t axis =
      pestle_onnx_axis(call, pestle_onnx_int(call, "axis", 1), rank_of(x));
  bool inner = pestle_onnx_int(call, "is_inner_broadcast", 0) != 0;
  int64_t rows = pestle_onnx_dims_product(x, 0, axis);
  int64_t columns = pestle_onnx_dims_product(x, axis, rank_of(x));
  int64_t all = bias ? pestle_type_count(bias->type) : 0;
  int64_t kept = columns > 0 ? all / columns : 0;
  if (call->f.status || kept < 1 || kept * columns != all || rows % kept) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its bias of %lld elements is not repeated over %lld rows "
                     "of %lld",
                     (long long)all, (long long)rows, (long long)columns);
    return;
  }
  const int64_t wide[3] = {inner ? kept : rows / kept,
                           inner ? rows / kept : kept, columns};
  const int64_t narrow[3] = {inner ? kept : 1, inner ? 1 : kept, columns};
  pestle_value_t* sum = pestle_f_reshape(&call->f, x, 3, wide);
  sum = add(call, sum, pestle_f_reshape(&call->f, bias, 3, narrow));
  y = pestle_onnx_softmax(call, PESTLE_OP_SOFTMAX, sum, 2);
  call->outputs[0] =
      pestle_f_reshape(&call->f, y, rank_of(x), pestle_onnx_type(x)->dims);
}

// The distance of each row of A from each of B.
void pestle_onnx_import_cdist(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "metric")) return;
  pestle_value_t *a = call->inputs[0], *b = call->inputs[1];
  pestle_str_t metric = pestle_onnx_string(call, "metric", "sqeuclidean");
  bool root = pestle_str_equal_c(metric, "euclidean");
  int64_t m = pestle_onnx_dim(a, 0), n = pestle_onnx_dim(b, 0);
  int64_t k = pestle_onnx_dim(a, 1);
  const int64_t left[3] = {m, 1, k}, right[3] = {1, n, k}, last = 2;
  if ((!root && !pestle_str_equal_c(metric, "sqeuclidean")) ||
      rank_of(a) != 2 || rank_of(b) != 2 || pestle_onnx_dim(b, 1) != k) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute 'metric' is '%.*s'; known are sqeuclidean and "
                     "euclidean, of two matrices with as many columns",
                     PESTLE_STR_ARG(metric));
    return;
  }
  a = pestle_f_reshape(&call->f, a, 3, left);
  b = pestle_f_reshape(&call->f, b, 3, right);
  pestle_value_t* d = sub(call, a, b);
  d = pestle_onnx_reduce(call, PESTLE_OP_ADD, mul(call, d, d), &last, 1, false);
  call->outputs[0] = root ? pestle_f_sqrt(&call->f, d) : d;
}

// --- T5's positions ---

// Which of |buckets| tells how far key |j| lies from query |i|: near ones each their own,
// far ones by the logarithm.
static int64_t bucket_of(int64_t distance, bool both, int64_t buckets,
                         int64_t most) {
  int64_t first = 0;
  if (both) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    if (distance < 0) distance = -distance;
  } else {
    distance = distance < 0 ? -distance : 0;
  }
  int64_t near = buckets / 2;
  if (distance < near) return first + distance;
  double share =
      log((double)distance / (double)near) / log((double)most / (double)near);
  int64_t far = near + (int64_t)(share * (double)(buckets - near));
  return first + (far < buckets ? far : buckets - 1);
}

// Inputs: a table [buckets, heads], how many queries and keys there are.
void pestle_onnx_import_relative_position_bias(pestle_onnx_call_t* call) {
  static const int64_t order[3] = {2, 0, 1};
  if (!pestle_onnx_takes(call, "is_bidirectional max_distance")) return;
  pestle_value_t* table = call->inputs[0];
  pestle_i64s_t rows = pestle_onnx_input_ints(call, 1, "query_length");
  pestle_i64s_t columns = pestle_onnx_input_ints(call, 2, "key_length");
  bool both = pestle_onnx_int(call, "is_bidirectional", 0) != 0;
  int64_t most = pestle_onnx_int(call, "max_distance", 0);
  int64_t buckets = pestle_onnx_dim(table, 0),
          heads = pestle_onnx_dim(table, 1);
  if (call->f.status) return;
  int64_t s = rows.count == 1 ? rows.data[0] : 0;
  int64_t t = columns.count == 1 ? columns.data[0] : 0;
  int64_t near = (both ? buckets / 2 : buckets) / 2;
  if (rank_of(table) != 2 || s < 1 || t < s || near < 1 || most <= near ||
      t > PESTLE_ONNX_MAX_INDICES / s) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its table of %lld buckets, %lld queries, %lld keys and "
                     "max_distance %lld do not fit each other",
                     (long long)buckets, (long long)s, (long long)t,
                     (long long)most);
    return;
  }
  int64_t* at =
      pestle_onnx_scratch(call, (size_t)(s * t + 1) * sizeof(int64_t));
  if (!at) return;
  // The last query is the last key.
  for (int64_t i = 0; i < s * t; ++i)
    at[i] = bucket_of(i % t - (i / t + t - s), both, buckets, most);
  pestle_value_t* x =
      pestle_onnx_take_list(call, table, at, (size_t)(s * t), 0);
  const int64_t split[3] = {s, t, heads}, whole[4] = {1, heads, s, t};
  x = pestle_f_transpose(&call->f, pestle_f_reshape(&call->f, x, 3, split),
                         order);
  call->outputs[0] = pestle_f_reshape(&call->f, x, 4, whole);
}
