// SPDX-License-Identifier: Apache-2.0
// Attention: one pestle.attention unless a node reads the scores too. Query
// heads that share a head of keys become more rows of that head, which costs
// nothing: [b, groups * h, s, d] lies as [b, h, groups * s, d].
#include <math.h>

#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

enum { BATCH, HEADS, ROWS, COLUMNS, RANK };
enum { ONNX_DOUBLE = 11 };

typedef struct attention_t {
  pestle_onnx_call_t* call;
  pestle_value_t *q, *k, *v;  // [b, h, s, d], [b, h, t, d], [b, h, t, e]
  pestle_value_t* bias;       // of rank 4, or NULL
  int64_t heads, groups, rows, columns;
  pestle_value_t *past, *batch_size, *row_size;  // extents; NULL: 0, the type's
  pestle_value_t *key_size, *mask_size;
  bool flat;       // the inputs have rank 3
  bool may_empty;  // some rows may have nothing to attend to
  double scale, softcap;
  pestle_value_t* sink;  // [h]: the score of a key without a value, or NULL
} attention_t;

// --- q, k, v ---

pestle_value_t* pestle_onnx_split_heads(pestle_onnx_call_t* call,
                                        pestle_value_t* x, int64_t heads) {
  int64_t width = pestle_onnx_dim(x, 2);
  if (heads < 1 || width % heads) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "%lld elements a row do not divide into %lld heads",
                     (long long)width, (long long)heads);
    return NULL;
  }
  int64_t dims[RANK] = {pestle_onnx_dim(x, 0), pestle_onnx_dim(x, 1), heads,
                        width / heads};
  static const int64_t swap[RANK] = {0, 2, 1, 3};
  pestle_value_t* y = pestle_f_transpose(
      &call->f, pestle_f_reshape(&call->f, x, RANK, dims), swap);
  pestle_onnx_set_real(call, y, BATCH,
                       pestle_onnx_real_size(call->import, x, 0));
  pestle_onnx_set_real(call, y, ROWS,
                       pestle_onnx_real_size(call->import, x, 1));
  return y;
}

static pestle_value_t* append(pestle_onnx_call_t* call, size_t past,
                              pestle_value_t* x) {
  pestle_value_t* parts[] = {pestle_onnx_input(call, past), x};
  if (!parts[0]) return x;
  const pestle_onnx_import_t* import = call->import;
  bool bounded = pestle_onnx_real_size(import, parts[0], ROWS) ||
                 pestle_onnx_real_size(import, x, ROWS);
  pestle_value_t* y = bounded ? pestle_onnx_concat_real(call, parts, 2, ROWS)
                              : pestle_f_concatenate(&call->f, parts, 2, ROWS);
  pestle_onnx_set_real(call, y, BATCH, pestle_onnx_real_size(import, x, BATCH));
  return y;
}

// What is real of the operands: batches, queries and keys may be bounded.
static bool read_sizes(attention_t* a) {
  pestle_onnx_call_t* call = a->call;
  const pestle_value_t* all[] = {a->q, a->k, a->v};
  for (size_t i = 0; i < 3; ++i) {
    if (!pestle_onnx_real_size(call->import, all[i], HEADS) &&
        !pestle_onnx_real_size(call->import, all[i], COLUMNS)) {
      continue;
    }
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "how many heads its input %zu has, or how wide they are, "
                     "only a run tells",
                     i);
    return false;
  }
  static const int64_t batch[] = {BATCH, BATCH, BATCH}, rows[] = {ROWS, ROWS};
  pestle_value_t* x[] = {a->q, a->k, a->v};
  if (!pestle_onnx_fit(call, x, batch, 3, &a->batch_size) ||
      !pestle_onnx_fit(call, x + 1, rows, 2, &a->key_size)) {
    return false;
  }
  a->q = x[0];
  a->k = x[1];
  a->v = x[2];
  a->row_size = pestle_onnx_real_size(call->import, a->q, ROWS);
  return !call->f.status;
}

static bool fits(const attention_t* a) {
  const pestle_value_t* all[] = {a->q, a->k, a->v};
  for (size_t i = 0; i < 3; ++i) {
    if (rank_of(all[i]) != RANK ||
        pestle_onnx_dim(all[i], BATCH) != pestle_onnx_dim(a->q, BATCH)) {
      return false;
    }
  }
  int64_t shared = pestle_onnx_dim(a->k, HEADS);
  return shared > 0 && a->heads > 0 && a->heads % shared == 0 &&
         pestle_onnx_dim(a->v, HEADS) == shared &&
         pestle_onnx_dim(a->v, ROWS) == pestle_onnx_dim(a->k, ROWS) &&
         pestle_onnx_dim(a->q, COLUMNS) == pestle_onnx_dim(a->k, COLUMNS);
}

static bool read_operands(attention_t* a) {
  pestle_onnx_call_t* call = a->call;
  a->q = call->inputs[0];
  a->k = call->inputs[1];
  a->v = call->inputs[2];
  a->flat = rank_of(a->q) == 3;
  if (a->flat) {
    int64_t shared = pestle_onnx_int(call, "kv_num_heads", 0);
    for (size_t i = 0; i < 3; ++i) {
      // Batches and rows.
      if (!pestle_onnx_allow_real(call, i, 3)) return false;
    }
    a->q = pestle_onnx_split_heads(call, a->q,
                                   pestle_onnx_int(call, "q_num_heads", 0));
    a->k = pestle_onnx_split_heads(call, a->k, shared);
    a->v = pestle_onnx_split_heads(call, a->v, shared);
  }
  if (!pestle_onnx_input(call, 4) != !pestle_onnx_input(call, 5)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "past_key and past_value come together or not at all");
  }
  if (pestle_onnx_input(call, 4))
    a->past = pestle_onnx_size(call, call->inputs[4], ROWS);
  a->k = append(call, 4, a->k);
  a->v = append(call, 5, a->v);
  if (call->f.status || !read_sizes(a)) return false;
  a->heads = pestle_onnx_dim(a->q, HEADS);
  a->rows = pestle_onnx_dim(a->q, ROWS);
  a->columns = pestle_onnx_dim(a->k, ROWS);
  if (!fits(a)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "Q, K and V must be [b, h, s, d], [b, g, t, d] and [b, g, "
                     "t, e], or the same with heads side by side, and g must "
                     "divide h");
    return false;
  }
  a->groups = a->heads / pestle_onnx_dim(a->k, HEADS);
  return true;
}

// --- The bias ---

// 0, 1, ... along |axis|.
static pestle_value_t* positions(const attention_t* a, int axis) {
  pestle_type_t type = {.dtype = PESTLE_I64, .rank = RANK, {1, 1, 1, 1}};
  type.dims[axis] = axis == ROWS ? a->rows : a->columns;
  return pestle_f_iota(&a->call->f, &type, axis);
}

static void require(const attention_t* a, pestle_value_t** allowed,
                    pestle_op_t op, pestle_value_t* x, pestle_value_t* y) {
  pestle_value_t* holds = pestle_f_binary(&a->call->f, op, x, y);
  *allowed = *allowed ? pestle_f_and(&a->call->f, *allowed, holds) : holds;
}

// The mask with rank 4 and, where it is shorter than the keys, nothing allowed
// behind its end.
static pestle_value_t* read_mask(attention_t* a) {
  pestle_onnx_call_t* call = a->call;
  pestle_value_t* mask = pestle_onnx_input(call, 3);
  if (!mask) return NULL;
  int64_t dims[RANK] = {1, 1, 1, 1}, low[RANK] = {0}, high[RANK] = {0};
  int32_t rank = rank_of(mask);
  if (rank < 1 || rank > RANK) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attn_mask has rank %d, not 1 to 4", rank);
    return NULL;
  }
  for (int32_t i = 0; i < rank; ++i)
    dims[RANK - rank + i] = pestle_onnx_dim(mask, i);
  a->mask_size = pestle_onnx_real_size(call->import, mask, rank - 1);
  mask = pestle_f_reshape(&call->f, mask, RANK, dims);
  high[COLUMNS] = a->columns - dims[COLUMNS];
  if (high[COLUMNS] <= 0 && !a->mask_size) return mask;
  pestle_type_t scalar = {.dtype = dtype_of(mask)};
  pestle_value_t* none = scalar.dtype == PESTLE_I1
                             ? pestle_onnx_splat_int(call, &scalar, 0)
                             : pestle_onnx_splat(call, &scalar, -INFINITY);
  return pestle_f_pad(&call->f, mask, none, low, high, NULL);
}

// Which keys each query may attend to, but for the mask; NULL: all.
static pestle_value_t* read_limits(attention_t* a) {
  pestle_onnx_call_t* call = a->call;
  pestle_value_t *allowed = NULL, *known = pestle_onnx_input(call, 6);
  pestle_value_t *key = positions(a, COLUMNS), *query = positions(a, ROWS);
  int64_t left = pestle_onnx_int(call, "left_window_size", -1);
  int64_t right = pestle_onnx_int(call, "right_window_size", -1);
  if (known) {
    int64_t dims[RANK] = {pestle_onnx_dim(known, 0), 1, 1, 1};
    known = pestle_f_reshape(&call->f, known, RANK, dims);
    require(a, &allowed, PESTLE_OP_LT, key, known);
    query =
        sub(call, add(call, query, known),
            a->row_size ? a->row_size : pestle_onnx_size_number(call, a->rows));
  } else if (a->past) {
    query = add(call, query, a->past);
  }
  if (a->key_size) require(a, &allowed, PESTLE_OP_LT, key, a->key_size);
  if (pestle_onnx_int(call, "is_causal", 0)) {
    require(a, &allowed, PESTLE_OP_LE, key, query);
  }
  if (left >= 0) {
    require(
        a, &allowed, PESTLE_OP_GE, key,
        pestle_onnx_binary_f(call, PESTLE_OP_SUBTRACT, query, (double)left));
  }
  if (right >= 0) {
    require(a, &allowed, PESTLE_OP_LE, key,
            pestle_onnx_binary_f(call, PESTLE_OP_ADD, query, (double)right));
  }
  a->may_empty = known || left >= 0 || right >= 0 ||
                 (a->key_size && a->key_size != a->row_size);
  return allowed;
}

static void read_bias(attention_t* a) {
  pestle_onnx_call_t* call = a->call;
  pestle_value_t *allowed = read_limits(a), *mask = read_mask(a);
  pestle_value_t* bias = NULL;
  if (a->mask_size && a->mask_size != a->key_size)
    require(a, &allowed, PESTLE_OP_LT, positions(a, COLUMNS), a->mask_size);
  if (mask && dtype_of(mask) == PESTLE_I1) {
    allowed = allowed ? pestle_f_and(&call->f, allowed, mask) : mask;
  } else {
    bias = mask;
  }
  a->may_empty |= mask != NULL;
  if (allowed) {
    pestle_dtype_t dtype = bias ? dtype_of(bias) : dtype_of(a->q);
    if (!bias) bias = pestle_onnx_scalar(call, dtype, 0);
    bias = pestle_f_select(&call->f, allowed, bias,
                           pestle_onnx_scalar(call, dtype, -INFINITY));
  }
  a->bias = bias;
}

// Behind the keys that are real nothing may make a score or a sum NaN.
static void fill_keys(attention_t* a) {
  pestle_onnx_call_t* call = a->call;
  const uint32_t rows = UINT32_C(1) << ROWS;
  a->k = pestle_onnx_fill_unreal(call, a->k, rows,
                                 pestle_onnx_scalar(call, dtype_of(a->k), 0));
  a->v = pestle_onnx_fill_unreal(call, a->v, rows,
                                 pestle_onnx_scalar(call, dtype_of(a->v), 0));
}

// --- Groups ---

static pestle_value_t* group_heads(const attention_t* a, pestle_value_t* x) {
  int64_t dims[RANK] = {pestle_onnx_dim(x, BATCH), a->heads / a->groups,
                        a->rows * a->groups, pestle_onnx_dim(x, COLUMNS)};
  return pestle_f_reshape(&a->call->f, x, RANK, dims);
}

// The bias with the groups in its rows.
static pestle_value_t* group_bias(const attention_t* a) {
  int64_t heads = pestle_onnx_dim(a->bias, HEADS);
  int64_t rows = pestle_onnx_dim(a->bias, ROWS);
  if (!a->bias || a->groups == 1 || (heads == 1 && rows == 1)) return a->bias;
  int64_t dims[RANK] = {pestle_onnx_dim(a->bias, BATCH), a->heads, a->rows,
                        pestle_onnx_dim(a->bias, COLUMNS)};
  // What is equal in all heads is so in those of one group.
  if (heads == 1) dims[HEADS] = a->groups;
  pestle_value_t* x = pestle_onnx_broadcast(a->call, a->bias, RANK, dims);
  dims[HEADS] = heads == 1 ? 1 : a->heads / a->groups;
  dims[ROWS] = a->rows * a->groups;
  return pestle_f_reshape(&a->call->f, x, RANK, dims);
}

// 0 in the rows of |x| whose bias is -infinity everywhere.
static pestle_value_t* without_empty_rows(const attention_t* a,
                                          pestle_value_t* bias,
                                          pestle_value_t* x) {
  pestle_onnx_call_t* call = a->call;
  if (!bias || !a->may_empty) return x;
  int64_t last = COLUMNS;
  pestle_value_t* most =
      pestle_onnx_reduce(call, PESTLE_OP_MAXIMUM, bias, &last, 1, true);
  pestle_value_t* empty =
      pestle_onnx_binary_f(call, PESTLE_OP_EQ, most, -INFINITY);
  return pestle_f_select(&call->f, empty,
                         pestle_onnx_scalar(call, dtype_of(x), 0), x);
}

// --- The result ---

static pestle_value_t* compose(const attention_t* a) {
  pestle_onnx_call_t* call = a->call;
  pestle_value_t* bias = group_bias(a);
  pestle_value_t* operands[4] = {
      group_heads(a, a->q), a->k,
      pestle_onnx_convert(call, a->v, dtype_of(a->q)), bias};
  pestle_attr_t attr = {.name = PESTLE_ATTR_scale,
                        .kind = PESTLE_ATTR_KIND_F64,
                        .as.f64 = a->scale};
  if (call->f.status) return NULL;
  pestle_node_spec_t spec = {.op = PESTLE_OP_ATTENTION,
                             .operands = operands,
                             .operand_count = bias ? 4 : 3,
                             .attrs = &attr,
                             .attr_count = 1};
  return without_empty_rows(a, bias, pestle_f_emit(&call->f, &spec));
}

// [b, h, s, d] x [b, h, t, d] or x [b, h, t, e], h of the keys'.
static pestle_value_t* product(const attention_t* a, pestle_value_t* x,
                               pestle_value_t* y, int64_t axis,
                               pestle_dtype_t dtype) {
  static const int64_t batch[] = {BATCH, HEADS}, last = COLUMNS;
  return pestle_onnx_dot(a->call, x, pestle_onnx_convert(a->call, y, dtype),
                         (pestle_i64s_t){batch, 2}, (pestle_i64s_t){batch, 2},
                         (pestle_i64s_t){&last, 1}, (pestle_i64s_t){&axis, 1},
                         dtype);
}

// The softmax of scores [b, h, s, t]; a sink takes its part of each row.
static pestle_value_t* softmax_with_sink(const attention_t* a,
                                         pestle_value_t* x) {
  pestle_onnx_call_t* call = a->call;
  const int64_t dims[RANK] = {pestle_onnx_dim(a->q, BATCH), a->heads, a->rows,
                              1};
  const int64_t one[RANK] = {1, a->heads, 1, 1};
  if (!a->sink) return pestle_onnx_softmax(call, PESTLE_OP_SOFTMAX, x, COLUMNS);
  pestle_value_t* sink = pestle_onnx_convert(call, a->sink, dtype_of(x));
  sink = pestle_f_reshape(&call->f, sink, RANK, one);
  sink = pestle_onnx_broadcast(call, sink, RANK, dims);
  x = pestle_f_concatenate(&call->f, (pestle_value_t*[]){x, sink}, 2, COLUMNS);
  x = pestle_onnx_softmax(call, PESTLE_OP_SOFTMAX, x, COLUMNS);
  return pestle_onnx_slice_axis(call, x, COLUMNS, 0, a->columns, 1);
}

// Scores at the stages that output 3 may show, in |dtype|; [b, h, s, t].
static pestle_value_t* spell(const attention_t* a, pestle_dtype_t dtype,
                             int64_t mode) {
  pestle_onnx_call_t* call = a->call;
  int64_t all[RANK] = {pestle_onnx_dim(a->q, BATCH), a->heads, a->rows,
                       a->columns};
  pestle_value_t* q = pestle_onnx_convert(call, group_heads(a, a->q), dtype);
  pestle_value_t* x =
      times(call, product(a, q, a->k, COLUMNS, dtype), a->scale);
  x = pestle_f_reshape(&call->f, x, RANK, all);
  pestle_value_t* shown = x;
  if (a->softcap > 0) {
    x = pestle_onnx_binary_f(call, PESTLE_OP_DIVIDE, x, a->softcap);
    x = times(call, pestle_f_tanh(&call->f, x), a->softcap);
  }
  if (mode == 1) shown = x;
  if (a->bias) x = add(call, x, pestle_onnx_convert(call, a->bias, dtype));
  if (mode == 2) shown = x;
  x = softmax_with_sink(a, x);
  x = without_empty_rows(a, a->bias, x);
  if (mode == 3) shown = x;
  if (pestle_onnx_wants(call, 3)) {
    pestle_value_t* scores = pestle_onnx_convert(call, shown, dtype_of(a->q));
    pestle_onnx_set_real(call, scores, BATCH, a->batch_size);
    pestle_onnx_set_real(call, scores, ROWS, a->row_size);
    pestle_onnx_set_real(call, scores, COLUMNS, a->key_size);
    call->outputs[3] = scores;
  }
  return product(a, group_heads(a, x), a->v, ROWS, dtype);
}

// [b, h, s, e] of what compose() or spell() gives.
static pestle_value_t* finish(const attention_t* a, bool one,
                              pestle_dtype_t wide, int64_t mode) {
  pestle_onnx_call_t* call = a->call;
  const int64_t dims[RANK] = {pestle_onnx_dim(a->q, BATCH), a->heads, a->rows,
                              pestle_onnx_dim(a->v, COLUMNS)};
  pestle_value_t* y = one ? compose(a) : spell(a, wide, mode);
  y = pestle_onnx_convert(call, y, dtype_of(a->q));
  return pestle_f_reshape(&call->f, y, RANK, dims);
}

pestle_value_t* pestle_onnx_merge_heads(pestle_onnx_call_t* call,
                                        pestle_value_t* x) {
  static const int64_t swap[RANK] = {0, 2, 1, 3};
  const int64_t dims[3] = {
      pestle_onnx_dim(x, BATCH), pestle_onnx_dim(x, ROWS),
      pestle_onnx_dim(x, HEADS) * pestle_onnx_dim(x, COLUMNS)};
  x = pestle_f_transpose(&call->f, x, swap);
  return pestle_f_reshape(&call->f, x, 3, dims);
}

pestle_value_t* pestle_onnx_attend(pestle_onnx_call_t* call,
                                   const pestle_onnx_attend_t* how) {
  attention_t a = {.call = call,
                   .q = how->q,
                   .k = how->k,
                   .v = how->v,
                   .bias = how->bias,
                   .sink = how->sink,
                   .scale = how->scale,
                   .softcap = how->softcap,
                   .heads = pestle_onnx_dim(how->q, HEADS),
                   .rows = pestle_onnx_dim(how->q, ROWS),
                   .columns = pestle_onnx_dim(how->k, ROWS)};
  if (call->f.status) return NULL;
  if (!fits(&a)) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "its heads of queries, keys and values do not fit "
                            "each other");
  }
  a.groups = a.heads / pestle_onnx_dim(a.k, HEADS);
  bool one = !(a.softcap > 0) && !a.sink && !pestle_onnx_wants(call, 3);
  bool wide = dtype_of(a.q) == PESTLE_F64;
  return finish(&a, one, wide ? PESTLE_F64 : PESTLE_F32, how->shown);
}

void pestle_onnx_import_attention(pestle_onnx_call_t* call) {
  attention_t a = {.call = call};
  if (!read_operands(&a)) return;
  pestle_value_t *present_k = a.k, *present_v = a.v;
  fill_keys(&a);
  read_bias(&a);
  double depth = (double)pestle_onnx_dim(a.q, COLUMNS);
  a.scale = pestle_onnx_float(call, "scale", 1 / sqrt(depth));
  a.softcap = pestle_onnx_float(call, "softcap", 0);
  int64_t mode = pestle_onnx_int(call, "qk_matmul_output_mode", 0);
  bool precise = pestle_onnx_int(call, "softmax_precision", 0) == ONNX_DOUBLE;
  pestle_dtype_t dtype = dtype_of(a.q);
  bool one = !(a.softcap > 0) && !pestle_onnx_wants(call, 3) &&
             (!precise || dtype == PESTLE_F64);
  bool wide = precise || dtype == PESTLE_F64;
  pestle_value_t* y = finish(&a, one, wide ? PESTLE_F64 : PESTLE_F32, mode);
  if (a.flat) y = pestle_onnx_merge_heads(call, y);
  pestle_onnx_set_real(call, y, BATCH, a.batch_size);
  pestle_onnx_set_real(call, y, a.flat ? 1 : ROWS, a.row_size);
  call->outputs[0] = pestle_onnx_end_real(call, y);
  if (pestle_onnx_wants(call, 1)) call->outputs[1] = present_k;
  if (pestle_onnx_wants(call, 2)) call->outputs[2] = present_v;
}
