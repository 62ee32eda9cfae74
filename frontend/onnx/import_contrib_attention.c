// SPDX-License-Identifier: Apache-2.0
// com.microsoft's forms of attention, from projections, with pasts and padding, and its
// rotary embedding: pestle.attention where no more is asked for than its softmax.
#include <math.h>

#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/contrib.h"

enum { BATCH, HEADS, ROWS, COLUMNS, RANK };

// 0, 1, ... along |axis| of rank 4.
static pestle_value_t* places(pestle_onnx_call_t* call, int axis,
                              int64_t count) {
  pestle_type_t type = {.dtype = PESTLE_I64, .rank = RANK, {1, 1, 1, 1}};
  type.dims[axis] = count;
  return pestle_f_iota(&call->f, &type, axis);
}

// |x| [n] of integers as [n, 1, 1, 1].
static pestle_value_t* per_batch(pestle_onnx_call_t* call, pestle_value_t* x) {
  const int64_t dims[RANK] = {x ? pestle_type_count(x->type) : 1, 1, 1, 1};
  x = pestle_onnx_convert(call, x, PESTLE_I64);
  return pestle_f_reshape(&call->f, x, RANK, dims);
}

static pestle_value_t* both_hold(pestle_onnx_call_t* call, pestle_value_t* a,
                                 pestle_value_t* b) {
  return !a ? b : !b ? a : pestle_f_and(&call->f, a, b);
}

// 0 where |allowed|, |other| elsewhere.
static pestle_value_t* as_bias(pestle_onnx_call_t* call,
                               pestle_value_t* allowed, pestle_dtype_t dtype,
                               double other) {
  pestle_value_t* zero = pestle_onnx_scalar(call, dtype, 0);
  pestle_value_t* low = pestle_onnx_scalar(call, dtype, other);
  return pestle_f_select(&call->f, allowed, zero, low);
}

static pestle_value_t* add_bias(pestle_onnx_call_t* call, pestle_value_t* a,
                                pestle_value_t* b) {
  return !a ? b : !b ? a : add(call, a, b);
}

// --- Padding ---

// The keys that |mask| lets be seen, as i1 that broadcasts to [b, h, s, t]: lengths [b];
// ends and starts [2 b]; 1 for keys [b, t] or pairs [b, s, t].
static pestle_value_t* unpadded(pestle_onnx_call_t* call, pestle_value_t* mask,
                                int64_t batch, int64_t columns) {
  int64_t count = pestle_onnx_dim(mask, 0);
  if (rank_of(mask) == 1 && (count == batch || count == 2 * batch)) {
    pestle_value_t* key = places(call, COLUMNS, columns);
    pestle_value_t* end =
        per_batch(call, pestle_onnx_slice_axis(call, mask, 0, 0, batch, 1));
    pestle_value_t* seen = pestle_f_lt(&call->f, key, end);
    if (count == batch) return seen;
    pestle_value_t* start = per_batch(
        call, pestle_onnx_slice_axis(call, mask, 0, batch, 2 * batch, 1));
    return both_hold(call, seen, pestle_f_ge(&call->f, key, start));
  }
  bool pairs = rank_of(mask) == 3;
  const int64_t dims[RANK] = {count, 1, pairs ? pestle_onnx_dim(mask, 1) : 1,
                              pestle_onnx_dim(mask, pairs ? 2 : 1)};
  bool known = pairs || rank_of(mask) == 2;
  if (!known || dims[COLUMNS] != columns || (count != batch && count != 1)) {
    return pestle_onnx_fail(
        call, PESTLE_STATUS_UNSUPPORTED,
        "its mask has the rank %d and %lld elements along axis 0; known are "
        "lengths [batch], ends and starts [2 batch], and masks [batch, keys] "
        "and [batch, queries, keys] over all %lld keys",
        rank_of(mask), (long long)count, (long long)columns);
  }
  mask = pestle_f_reshape(&call->f, mask, RANK, dims);
  return pestle_onnx_binary_f(call, PESTLE_OP_GT, mask, 0);
}

// --- Attention and MultiHeadAttention ---

typedef struct heads_t {
  pestle_value_t *q, *k, *v;  // [b, h, s, d], [b, h, t, d], [b, h, t, e]
  pestle_value_t *past_k, *past_v, *mask, *bias;  // or NULL
  // [b], i64: where the new rows come in pasts that have room for them, and keep their
  // extents. NULL: they are appended.
  pestle_value_t* at;
  const pestle_elements_t* place;  // |at|'s number, or NULL: a run tells
  bool is_of_one;  // the op is of one token: several see what each would alone
} heads_t;

// |past| with the rows |x| from the rows |at| of each batch on.
static pestle_value_t* write_rows(pestle_onnx_call_t* call,
                                  pestle_value_t* past, pestle_value_t* x,
                                  pestle_value_t* at) {
  const pestle_onnx_attr_t axis = pestle_onnx_make_int("axis", ROWS);
  pestle_value_t* in[3] = {past, x, at};
  return pestle_onnx_part(call, pestle_onnx_import_tensor_scatter, in, 3, &axis,
                          1);
}

// |x| (may be NULL) with zeros behind, so that axis |axis| is |extent| long.
static pestle_value_t* pad_to(pestle_onnx_call_t* call, pestle_value_t* x,
                              int32_t axis, int64_t extent) {
  if (!x) return x;
  int64_t had = pestle_onnx_dim(x, axis);
  return had < extent ? pestle_f_pad_end(&call->f, x, axis, extent - had) : x;
}

static pestle_value_t* append(pestle_onnx_call_t* call, pestle_value_t* past,
                              pestle_value_t* x) {
  if (!past) return x;
  if (pestle_onnx_real_size(call->import, past, ROWS))
    return pestle_onnx_append(call, past, x, ROWS);
  return pestle_f_concatenate(&call->f, (pestle_value_t*[]){past, x}, 2, ROWS);
}

// Whether all of |x|'s last axis, which may be NULL, is there for |columns| keys.
static bool has_columns(const pestle_value_t* x, int64_t columns) {
  return !x || rank_of(x) < 2 || pestle_onnx_dim(x, rank_of(x) - 1) >= columns;
}

// Whether the new rows of |h| have room where |h->place| says, and mask and scores a column
// for each key; false with an error kept.
static bool check_place(pestle_onnx_call_t* call, const heads_t* h) {
  if (!h->place) return true;
  int64_t past = pestle_onnx_element_i64(h->place, 0);
  int64_t rows = pestle_onnx_dim(h->k, ROWS);
  int64_t room = pestle_onnx_dim(h->past_k, ROWS);
  if (past < 0 || past > room - rows) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its past_sequence_length is %lld, and its pasts have "
                     "room for %lld rows, of which %lld are new",
                     (long long)past, (long long)room, (long long)rows);
    return false;
  }
  if (has_columns(h->mask, past + rows) && has_columns(h->bias, past + rows))
    return true;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "its mask and attention_bias need a column for each of "
                   "%lld keys",
                   (long long)(past + rows));
  return false;
}

// 0 for the keys that a query of |h| sees in pasts with room, whose rows lie at |h->at|: those
// up to its own, or to the last new one. What is behind that of mask and bias is nothing's.
static pestle_value_t* bias_of_room(pestle_onnx_call_t* call, heads_t* h,
                                    bool is_causal) {
  int64_t rows = pestle_onnx_dim(h->q, ROWS);
  int64_t columns = pestle_onnx_dim(h->k, ROWS);
  pestle_value_t* query = places(call, ROWS, is_causal ? rows : 1);
  if (!is_causal && rows > 1)
    query =
        pestle_onnx_binary_f(call, PESTLE_OP_ADD, query, (double)(rows - 1));
  query = add(call, query, per_batch(call, h->at));
  pestle_value_t* seen =
      pestle_f_le(&call->f, places(call, COLUMNS, columns), query);
  if (h->mask && rank_of(h->mask) > 1)
    h->mask = pad_to(call, h->mask, rank_of(h->mask) - 1, columns);
  h->bias = pad_to(call, h->bias, COLUMNS, columns);
  return as_bias(call, seen, dtype_of(h->q), -INFINITY);
}

// [b, s, h * e]; |h|'s k and v with their past on return.
static pestle_value_t* attend(pestle_onnx_call_t* call, heads_t* h) {
  double filter = pestle_onnx_float(call, "mask_filter_value", -10000);
  int64_t batch = pestle_onnx_dim(h->q, BATCH);
  int64_t past = h->past_k ? pestle_onnx_dim(h->past_k, ROWS) : 0;
  bool is_causal =
      h->is_of_one || pestle_onnx_int(call, "unidirectional", 0) != 0;
  if (h->at && !check_place(call, h)) return NULL;
  h->k = h->at ? write_rows(call, h->past_k, h->k, h->at)
               : append(call, h->past_k, h->k);
  h->v = h->at ? write_rows(call, h->past_v, h->v, h->at)
               : append(call, h->past_v, h->v);
  if (call->f.status) return NULL;
  pestle_value_t* limit = h->at ? bias_of_room(call, h, is_causal) : NULL;
  is_causal = is_causal && !h->at;
  int64_t rows = pestle_onnx_dim(h->q, ROWS);
  int64_t columns = pestle_onnx_dim(h->k, ROWS);
  pestle_dtype_t dtype = dtype_of(h->q);
  pestle_value_t* bias = add_bias(call, limit, h->bias);
  const pestle_onnx_room_t* room = pestle_onnx_room_of(
      call->import, pestle_onnx_real_size(call->import, h->k, ROWS));
  if (room) {
    const pestle_type_t type = {dtype, RANK, {1, 1, rows, columns}};
    int64_t row_axis = is_causal && rows > 1 ? ROWS : -1;
    pestle_value_t* seen =
        pestle_onnx_room_mask(call, &type, COLUMNS, row_axis, room);
    bias = add_bias(call, as_bias(call, seen, dtype, -INFINITY), bias);
    is_causal = false;
  }
  if (h->mask) {
    pestle_value_t* seen = unpadded(call, h->mask, batch, columns);
    bias = add_bias(call, as_bias(call, seen, dtype, filter), bias);
  }
  if (is_causal) {
    pestle_value_t* query = pestle_onnx_binary_f(
        call, PESTLE_OP_ADD, places(call, ROWS, rows), (double)past);
    pestle_value_t* key = places(call, COLUMNS, columns);
    pestle_value_t* seen = pestle_f_le(&call->f, key, query);
    bias = add_bias(call, as_bias(call, seen, dtype, -INFINITY), bias);
  }
  double depth = (double)pestle_onnx_dim(h->q, COLUMNS);
  double scale = pestle_onnx_float(call, "scale", 0);
  pestle_value_t* y = pestle_onnx_attend(
      call,
      &(pestle_onnx_attend_t){.q = h->q,
                              .k = h->k,
                              .v = h->v,
                              .bias = bias,
                              .scale = scale > 0 ? scale : 1 / sqrt(depth),
                              .shown = 2});
  return pestle_onnx_merge_heads(call, y);
}

// Part |which| of axis |axis|, which is gone.
static pestle_value_t* part_of(pestle_onnx_call_t* call, pestle_value_t* x,
                               int64_t axis, int64_t which) {
  return x ? pestle_f_part(&call->f, x, (int32_t)axis, which) : NULL;
}

// How wide q, k and v of the joint projection are; false with an error kept.
static bool read_widths(pestle_onnx_call_t* call, int64_t all,
                        int64_t* widths) {
  pestle_i64s_t given = pestle_onnx_ints(call, "qkv_hidden_sizes");
  if (given.count && given.count != 3) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'qkv_hidden_sizes' has %zu numbers, not 3",
                     given.count);
    return false;
  }
  for (int i = 0; i < 3; ++i)
    widths[i] = given.count ? given.data[i] : all / 3;
  bool fits = widths[0] > 0 && widths[2] > 0 && widths[0] == widths[1] &&
              widths[0] < all && widths[2] < all &&
              widths[0] + widths[1] + widths[2] == all;
  if (!fits) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "the %lld columns of its weights are not as many as its "
                     "queries, keys and values have",
                     (long long)all);
  }
  return fits && !call->f.status;
}

// Attention of |x| [b, s, c] by |weights| [c, q + k + v] and |bias|, with a |past|
// [2, b, h, p, d], which becomes output 1.
static void attend_projected(pestle_onnx_call_t* call, pestle_value_t* x,
                             pestle_value_t* weights, pestle_value_t* bias,
                             pestle_value_t* past, heads_t* h) {
  int64_t heads = pestle_onnx_int(call, "num_heads", 0), at = 0, widths[3];
  if (rank_of(x) != 3 || rank_of(weights) != 2 ||
      pestle_onnx_dim(x, 2) != pestle_onnx_dim(weights, 0)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input must be [batch, sequence, width] and its "
                     "weights [width, columns]");
    return;
  }
  if (!read_widths(call, pestle_onnx_dim(weights, 1), widths)) return;
  pestle_value_t* all = pestle_onnx_matmul(call, x, weights, dtype_of(x));
  if (bias) all = add(call, all, bias);
  pestle_value_t** parts[3] = {&h->q, &h->k, &h->v};
  for (int i = 0; i < 3; ++i, at += widths[i - 1]) {
    *parts[i] = pestle_onnx_split_heads(
        call, pestle_onnx_slice_axis(call, all, 2, at, at + widths[i], 1),
        heads);
  }
  if (past && rank_of(past) != 5) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its past must be [2, batch, heads, rows, columns]");
    return;
  }
  h->past_k = part_of(call, past, 0, 0);
  h->past_v = part_of(call, past, 0, 1);
  if (!past) h->at = NULL;
  call->outputs[0] = attend(call, h);
  if (!pestle_onnx_wants(call, 1)) return;
  call->outputs[1] =
      pestle_f_stack(&call->f, (pestle_value_t*[]){h->k, h->v}, 2);
}

static const char* const shares =
    "past and present are values of their own in a module";

// Of ops whose pasts have room (past_present_share_buffer): input |index|, how many rows are
// past, for each of |batch| batches, as |h|'s. False: an error is kept.
static bool read_place(pestle_onnx_call_t* call, size_t index, int64_t batch,
                       heads_t* h) {
  pestle_value_t* at = pestle_onnx_input(call, index);
  if (!at || pestle_type_count(at->type) != 1 || dtype_of(at) != PESTLE_I32) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it has pasts with room for more rows, and input "
                     "%zu, past_sequence_length, is not one number of int32",
                     index);
    return false;
  }
  h->place = pestle_value_constant(at);
  const pestle_type_t type = {.dtype = PESTLE_I64, .rank = 1, .dims = {batch}};
  at = pestle_onnx_convert(call, at, PESTLE_I64);
  at = pestle_f_reshape(&call->f, at, 0, NULL);
  h->at = pestle_f_broadcast_to(&call->f, at, &type, NULL);
  return h->at != NULL;
}

// Whether a node of one token, with a mask for each of |batch| and beam_width at |index|, is
// what is known; false with an error kept.
static bool check_masked(pestle_onnx_call_t* call, const pestle_value_t* mask,
                         int64_t batch, size_t index) {
  const pestle_value_t* width = pestle_onnx_input(call, index);
  const pestle_elements_t* beams = width ? pestle_value_constant(width) : NULL;
  bool is_one = !beams || (pestle_type_count(width->type) == 1 &&
                           pestle_dtype_is(dtype_of(width), PESTLE_KIND_INT) &&
                           pestle_onnx_element_i64(beams, 0) == 1);
  if (!is_one) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "its beam_width is not 1: beams are not searched");
    return false;
  }
  if (!mask || rank_of(mask) != 2 || pestle_onnx_dim(mask, 0) == batch)
    return true;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "its mask has %lld rows for a batch of %lld",
                   (long long)pestle_onnx_dim(mask, 0), (long long)batch);
  return false;
}

// Whether input |index|, cache_indirection [batch, beams, rows], is of one beam, so that all it
// can say is that each row is of its own batch. Without it there is one beam.
static bool has_one_beam(pestle_onnx_call_t* call, size_t index) {
  pestle_value_t* beams = pestle_onnx_input(call, index);
  if (!beams) return true;
  if (rank_of(beams) == 3 && pestle_onnx_dim(beams, 1) == 1) return true;
  pestle_onnx_fail(
      call, PESTLE_STATUS_UNSUPPORTED,
      "its cache_indirection is of %lld beams: beams are not "
      "searched, fix the dim of beams at 1",
      rank_of(beams) == 3 ? (long long)pestle_onnx_dim(beams, 1) : 0ll);
  return false;
}

// One token, whose past and present are [2, b, h, room, d].
void pestle_onnx_import_decoder_masked_self_attention(
    pestle_onnx_call_t* call) {
  enum { X, W, BIAS, MASK, PAST, SCORES, PAST_ROWS, BEAM_WIDTH, BEAMS };
  if (!pestle_onnx_takes(call,
                         "do_rotary mask_filter_value num_heads "
                         "past_present_share_buffer scale") ||
      !pestle_onnx_takes_only(call, "do_rotary", 0,
                              "the node has no tables of angles") ||
      !has_one_beam(call, BEAMS)) {
    return;
  }
  heads_t h = {.mask = pestle_onnx_input(call, MASK),
               .bias = pestle_onnx_input(call, SCORES),
               .is_of_one = true};
  int64_t batch = pestle_onnx_dim(call->inputs[X], 0);
  if (!check_masked(call, h.mask, batch, BEAM_WIDTH)) return;
  if (pestle_onnx_int(call, "past_present_share_buffer", 0) &&
      !read_place(call, PAST_ROWS, batch, &h)) {
    return;
  }
  attend_projected(call, call->inputs[X], call->inputs[W], call->inputs[BIAS],
                   call->inputs[PAST], &h);
}

void pestle_onnx_import_contrib_attention(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call,
                         "do_rotary mask_filter_value num_heads "
                         "past_present_share_buffer qkv_hidden_sizes "
                         "rotary_embedding_dim scale unidirectional") ||
      !pestle_onnx_takes_only(call, "do_rotary", 0,
                              "the node has no tables of angles") ||
      !pestle_onnx_takes_only(call, "rotary_embedding_dim", 0,
                              "the node has no tables of angles") ||
      !pestle_onnx_takes_only(call, "past_present_share_buffer", 0, shares) ||
      !pestle_onnx_takes_no_input(call, 6, "past_sequence_length", shares)) {
    return;
  }
  heads_t h = {.mask = pestle_onnx_input(call, 3),
               .bias = pestle_onnx_input(call, 5)};
  attend_projected(call, call->inputs[0], call->inputs[1],
                   pestle_onnx_input(call, 2), pestle_onnx_input(call, 4), &h);
}

// The same of quantised inputs and weights.
void pestle_onnx_import_qattention(pestle_onnx_call_t* call) {
  enum { X, W, BIAS, X_SCALE, W_SCALE, MASK, X_ZERO, W_ZERO, PAST };
  if (!pestle_onnx_takes(call,
                         "do_rotary mask_filter_value num_heads "
                         "past_present_share_buffer scale unidirectional") ||
      !pestle_onnx_takes_only(call, "do_rotary", 0,
                              "the node has no tables of angles") ||
      !pestle_onnx_takes_only(call, "past_present_share_buffer", 0, shares)) {
    return;
  }
  pestle_value_t* in[3] = {call->inputs[X], call->inputs[X_SCALE],
                           pestle_onnx_input(call, X_ZERO)};
  const pestle_onnx_attr_t axis = pestle_onnx_make_int("axis", 1);
  pestle_value_t* x = pestle_onnx_part(
      call, pestle_onnx_import_dequantize_linear, in, in[2] ? 3 : 2, &axis, 1);
  in[0] = call->inputs[W];
  in[1] = call->inputs[W_SCALE];
  in[2] = pestle_onnx_input(call, W_ZERO);
  pestle_value_t* w = pestle_onnx_part(
      call, pestle_onnx_import_dequantize_linear, in, in[2] ? 3 : 2, &axis, 1);
  heads_t h = {.mask = pestle_onnx_input(call, MASK)};
  attend_projected(call, x, w, call->inputs[BIAS],
                   pestle_onnx_input(call, PAST), &h);
}

// [b, s, h, d] as [b, s, h * d].
static pestle_value_t* flat(pestle_onnx_call_t* call, pestle_value_t* x) {
  if (rank_of(x) != 4) return x;
  const int64_t dims[3] = {pestle_onnx_dim(x, 0), pestle_onnx_dim(x, 1),
                           pestle_onnx_dim(x, 2) * pestle_onnx_dim(x, 3)};
  return pestle_f_reshape(&call->f, x, 3, dims);
}

// q, k and v side by side in one axis of heads, or each for itself; those that already
// have their heads in front are given as they are.
static void read_parts(pestle_onnx_call_t* call, pestle_value_t** parts) {
  for (size_t i = 0; i < 3; ++i)
    parts[i] = pestle_onnx_input(call, i);
  pestle_value_t *query = parts[0], *key = parts[1];
  if (rank_of(query) == 5) {
    for (int64_t i = 0; i < 3; ++i)
      parts[i] = flat(call, part_of(call, query, 3, i));
  } else if (key && rank_of(key) == 5) {
    for (int64_t i = 0; i < 2; ++i)
      parts[1 + i] = flat(call, part_of(call, key, 3, i));
  }
  bool fits = parts[0] && parts[1] && parts[2] && rank_of(parts[0]) == 3;
  for (int i = 1; fits && i < 3; ++i)
    fits = rank_of(parts[i]) == 3 || rank_of(parts[i]) == 4;
  if (fits) return;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "its query, key and value must be [batch, rows, columns], "
                   "key and value also [batch, heads, rows, columns], or all "
                   "or two of them packed with rank 5");
}

// Of all inputs the two pasts alone may end where a run says, both or none.
static bool allow_rooms(pestle_onnx_call_t* call, size_t key, size_t value) {
  bool has[2] = {false};
  for (size_t i = 0; i < call->input_count; ++i) {
    const pestle_value_t* x = call->inputs[i];
    bool is_past = (i == key || i == value) && x && rank_of(x) == RANK;
    bool is_room = is_past && pestle_onnx_room_of(
                                  call->import,
                                  pestle_onnx_real_size(call->import, x, ROWS));
    if (is_past) has[i == value] = is_room;
    if (!pestle_onnx_allow_real(call, i, is_room ? 1u << ROWS : 0))
      return false;
  }
  if (has[0] == has[1]) return true;
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "a length is given for one of its past key and value, and "
                   "not for the other");
  return false;
}

// Where the inputs of MultiHeadAttention and of its kin lie.
typedef struct places_t {
  size_t bias, mask, scores, past_key, past_value, past_rows, beams;
} places_t;

// |is_shared|: pasts have room for the new rows; |is_of_one| as in heads_t.
static void attend_parts(pestle_onnx_call_t* call, const places_t* in,
                         bool is_shared, bool is_of_one) {
  pestle_value_t *parts[3], *bias = pestle_onnx_input(call, in->bias);
  int64_t heads = pestle_onnx_int(call, "num_heads", 0), at = 0;
  if (!has_one_beam(call, in->beams) ||
      !allow_rooms(call, in->past_key, in->past_value)) {
    return;
  }
  read_parts(call, parts);
  for (int i = 0; i < 3 && !call->f.status; ++i) {
    int64_t width = rank_of(parts[i]) == 4
                        ? pestle_onnx_dim(parts[i], HEADS) *
                              pestle_onnx_dim(parts[i], COLUMNS)
                        : pestle_onnx_dim(parts[i], 2);
    if (bias && rank_of(parts[i]) == 3) {
      pestle_value_t* own =
          pestle_onnx_slice_axis(call, bias, 0, at, at + width, 1);
      parts[i] = add(call, parts[i], own);
    }
    at += width;
    if (rank_of(parts[i]) == 3)
      parts[i] = pestle_onnx_split_heads(call, parts[i], heads);
  }
  if (!call->f.status && bias && pestle_onnx_dim(bias, 0) != at) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its bias has %lld elements, queries, keys and values "
                     "have %lld columns",
                     (long long)pestle_onnx_dim(bias, 0), (long long)at);
  }
  if (call->f.status) return;
  heads_t h = {.q = parts[0],
               .k = parts[1],
               .v = parts[2],
               .past_k = pestle_onnx_input(call, in->past_key),
               .past_v = pestle_onnx_input(call, in->past_value),
               .mask = pestle_onnx_input(call, in->mask),
               .bias = pestle_onnx_input(call, in->scores)};
  h.is_of_one = is_of_one && h.past_k;
  int64_t batch = pestle_onnx_dim(h.q, BATCH);
  if (is_of_one && !check_masked(call, h.mask, batch, in->beams - 1)) return;
  if (h.is_of_one && rank_of(call->inputs[1]) == RANK) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its key is [batch, heads, rows, columns], of cross "
                     "attention, which has no past");
    return;
  }
  if (is_shared && h.past_k && h.past_v) {
    if (!read_place(call, in->past_rows, batch, &h)) return;
    if (pestle_onnx_wants(call, 3)) {
      pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                       "its output qk has as many columns as there are rows, "
                       "which only a run tells");
      return;
    }
  }
  call->outputs[0] = attend(call, &h);
  if (call->output_count > 1) call->outputs[1] = h.k;
  if (call->output_count > 2) call->outputs[2] = h.v;
}

void pestle_onnx_import_multi_head_attention(pestle_onnx_call_t* call) {
  static const places_t in = {3, 4, 5, 6, 7, 8, 9};
  if (!pestle_onnx_takes(call,
                         "mask_filter_value num_heads scale unidirectional")) {
    return;
  }
  attend_parts(call, &in, pestle_onnx_input(call, in.past_rows) != NULL, false);
}

// The same for one token. Keys of its pasts lie as its values do, as on ONNX Runtime's CPU;
// its CUDA kernels have their columns in another order within a room.
void pestle_onnx_import_decoder_masked_multi_head_attention(
    pestle_onnx_call_t* call) {
  static const places_t in = {10, 3, 4, 5, 6, 7, 9};
  if (!pestle_onnx_takes(call,
                         "mask_filter_value num_heads output_qk "
                         "past_present_share_buffer scale")) {
    return;
  }
  attend_parts(call, &in,
               pestle_onnx_int(call, "past_present_share_buffer", 0) != 0,
               true);
}

// --- Rotary embedding ---

// |x| [b, h, s, d] turned by the rows |positions| [b, s] of the tables.
static pestle_value_t* rotate(pestle_onnx_call_t* call, pestle_value_t* x,
                              pestle_value_t* cosine, pestle_value_t* sine,
                              pestle_value_t* positions, bool interleaved) {
  const pestle_onnx_attr_t attrs[] = {
      pestle_onnx_make_int("interleaved", interleaved),
      pestle_onnx_make_int("rotary_embedding_dim",
                           2 * pestle_onnx_dim(cosine, 1))};
  pestle_value_t* in[4] = {x, cosine, sine, positions};
  return pestle_onnx_part(call, pestle_onnx_import_rotary_embedding, in, 4,
                          attrs, 2);
}

// 0, 1, ... of each of |batch| rows, from |first|, which broadcasts.
static pestle_value_t* positions_from(pestle_onnx_call_t* call,
                                      pestle_value_t* first, int64_t batch,
                                      int64_t rows) {
  const pestle_type_t type = {
      .dtype = PESTLE_I64, .rank = 2, .dims = {batch, rows}};
  return add(call, pestle_f_iota(&call->f, &type, 1), first);
}

// Inputs: x, positions, the tables.
void pestle_onnx_import_contrib_rotary(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call,
                         "interleaved is_packed_batching num_heads "
                         "rotary_embedding_dim scale") ||
      !pestle_onnx_takes_only(call, "is_packed_batching", 0,
                              "batches of sequences that differ in length lie "
                              "behind each other by it")) {
    return;
  }
  pestle_value_t *x = call->inputs[0], *at = call->inputs[1];
  pestle_value_t *cosine = call->inputs[2], *sine = call->inputs[3];
  double scale = pestle_onnx_float(call, "scale", 1);
  if (scale != 1) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute 'scale' is %g, only 1 is supported: no text "
                     "says what it multiplies",
                     scale);
    return;
  }
  bool is_flat = rank_of(x) == 3;
  int64_t half = pestle_onnx_dim(cosine, 1);
  int64_t heads = pestle_onnx_int(call, "num_heads", 0);
  int64_t turned = pestle_onnx_int(call, "rotary_embedding_dim", 0);
  if ((!is_flat && rank_of(x) != 4) || rank_of(cosine) != 2 ||
      rank_of(sine) != 2 || half < 1 || (turned && turned != 2 * half)) {
    pestle_onnx_fail(
        call, PESTLE_STATUS_MALFORMED,
        "it turns [batch, rows, columns] or [batch, heads, rows, "
        "columns] by tables of as many columns as there are pairs");
    return;
  }
  // Without a number of heads all of a head is turned.
  if (!heads) heads = pestle_onnx_dim(x, 2) / (2 * half);
  pestle_value_t* y = is_flat ? pestle_onnx_split_heads(call, x, heads) : x;
  int64_t batch = pestle_onnx_dim(y, BATCH), rows = pestle_onnx_dim(y, ROWS);
  at = pestle_onnx_convert(call, at, PESTLE_I64);
  if (rank_of(at) < 2) {
    const int64_t one[2] = {1, 1};
    at = pestle_f_reshape(&call->f, at, 2, one);
    bool told = pestle_onnx_real_size(call->import, y, ROWS) || rows < 1;
    pestle_value_t* last = pestle_onnx_binary_f(call, PESTLE_OP_ADD, at,
                                                told ? 0 : (double)(rows - 1));
    int64_t most = pestle_onnx_dim(cosine, 0);
    if (!pestle_onnx_check_indices(call, at, most) ||
        !pestle_onnx_check_indices(call, last, most))
      return;
    at = positions_from(call, at, batch, rows);
  }
  y = rotate(call, y, cosine, sine, at,
             pestle_onnx_int(call, "interleaved", 0) != 0);
  call->outputs[0] = is_flat ? pestle_onnx_merge_heads(call, y) : y;
}

// --- GroupQueryAttention ---

enum {
  QUERY,
  KEY,
  VALUE,
  PAST_KEY,
  PAST_VALUE,
  LENGTHS,
  TOTAL,
  COSINE,
  SINE,
  POSITIONS,
  BIAS,
  SINK,
  KEY_SCALE,
  VALUE_SCALE,
  QUERY_NORM,
  KEY_NORM
};

typedef struct grouped_t {
  pestle_onnx_call_t* call;
  pestle_value_t *q, *k, *v;
  pestle_value_t* past;  // [b], i64: how many rows each cache really has
  int64_t batch, rows, total;
  bool first;  // nothing is past
} grouped_t;

static bool check_grouped(pestle_onnx_call_t* call) {
  static const char* const caches = "caches are of the type of the inputs";
  if (!pestle_onnx_takes(
          call,
          "causal do_rotary k_quant_type kv_cache_bit_width kv_num_heads "
          "local_window_size num_heads qk_norm_epsilon qk_output "
          "rotary_interleaved scale sliding_window_cache smooth_softmax "
          "softcap v_quant_type") ||
      !pestle_onnx_takes_only(call, "kv_cache_bit_width", 0, caches) ||
      !pestle_onnx_takes_no_input(call, KEY_SCALE, "k_scale", caches) ||
      !pestle_onnx_takes_no_input(call, VALUE_SCALE, "v_scale", caches)) {
    return false;
  }
  static const char* const kinds[] = {"k_quant_type", "v_quant_type"};
  for (int i = 0; i < 2; ++i) {
    pestle_str_t kind = pestle_onnx_string(call, kinds[i], "NONE");
    if (pestle_str_equal_c(kind, "NONE")) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute '%s' is '%.*s', only NONE is supported: %s",
                     kinds[i], PESTLE_STR_ARG(kind), caches);
  }
  return !call->f.status;
}

// The heads of queries, keys and values, apart or side by side in the query.
static bool read_grouped(grouped_t* g) {
  pestle_onnx_call_t* call = g->call;
  int64_t heads = pestle_onnx_int(call, "num_heads", 0);
  int64_t shared = pestle_onnx_int(call, "kv_num_heads", 0);
  pestle_value_t* x[3] = {call->inputs[QUERY], pestle_onnx_input(call, KEY),
                          pestle_onnx_input(call, VALUE)};
  if (heads < 1 || shared < 1 || heads % shared || !x[1] != !x[2] ||
      rank_of(x[0]) != 3) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its query must be [batch, rows, columns], num_heads a "
                     "multiple of kv_num_heads, and key and value come "
                     "together or not at all");
    return false;
  }
  if (!x[1]) {
    int64_t depth = pestle_onnx_dim(x[0], 2) / (heads + 2 * shared);
    int64_t from[4] = {0, heads * depth, (heads + shared) * depth,
                       (heads + 2 * shared) * depth};
    pestle_value_t* all = x[0];
    for (int i = 0; i < 3; ++i)
      x[i] = pestle_onnx_slice_axis(call, all, 2, from[i], from[i + 1], 1);
  }
  g->q = pestle_onnx_split_heads(call, x[0], heads);
  g->k = pestle_onnx_split_heads(call, x[1], shared);
  g->v = pestle_onnx_split_heads(call, x[2], shared);
  g->batch = pestle_onnx_dim(g->q, BATCH);
  g->rows = pestle_onnx_dim(g->q, ROWS);
  return !call->f.status;
}

// How long the sequences are: the most of them, which is known, and each.
static bool read_lengths(grouped_t* g) {
  pestle_onnx_call_t* call = g->call;
  pestle_value_t* lengths = pestle_onnx_input(call, LENGTHS);
  pestle_i64s_t total =
      pestle_onnx_input_ints(call, TOTAL, "total_sequence_length");
  if (call->f.status) return false;
  g->total = total.count ? total.data[0] : 0;
  if (!lengths || total.count != 1 || g->total < g->rows ||
      g->total > INT32_MAX || pestle_type_count(lengths->type) != g->batch) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its total_sequence_length must be one number that is at "
                     "least its %lld rows, and its seqlens_k one for each of "
                     "its %lld batches",
                     (long long)g->rows, (long long)g->batch);
    return false;
  }
  g->first = g->rows == g->total;
  const pestle_type_t type = {
      .dtype = PESTLE_I64, .rank = 1, .dims = {g->batch}};
  lengths = pestle_onnx_convert(call, lengths, PESTLE_I64);
  lengths = pestle_f_reshape(&call->f, lengths, 1, &g->batch);
  g->past = g->first ? pestle_onnx_splat_int(call, &type, 0)
                     : pestle_onnx_binary_f(call, PESTLE_OP_ADD, lengths,
                                            (double)(1 - g->rows));
  return !call->f.status;
}

// A cache of a window has no room for more and moves its rows once it is full: one with
// room for all positions never is, and means what any cache does.
static bool check_window_cache(const grouped_t* g) {
  pestle_onnx_call_t* call = g->call;
  pestle_value_t* past = pestle_onnx_input(call, PAST_KEY);
  if (!pestle_onnx_int(call, "sliding_window_cache", 0)) return true;
  int64_t had = past ? pestle_onnx_dim(past, ROWS) : 0;
  if (had >= g->total) return true;
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "attribute 'sliding_window_cache' is 1, and its cache has "
                   "%lld rows for %lld positions: rows that leave the window "
                   "are not written over, give the cache a row for each "
                   "position",
                   (long long)had, (long long)g->total);
  return false;
}

static pestle_value_t* norm_heads(pestle_onnx_call_t* call, pestle_value_t* x,
                                  pestle_value_t* factor) {
  const pestle_onnx_attr_t attrs[] = {
      pestle_onnx_make_int("axis", -1),
      pestle_onnx_make_float("epsilon",
                             pestle_onnx_float(call, "qk_norm_epsilon", 1e-6))};
  pestle_value_t* in[2] = {x, factor};
  return pestle_onnx_part(call, pestle_onnx_import_rms_norm, in, 2, attrs, 2);
}

static void turn_heads(grouped_t* g) {
  pestle_onnx_call_t* call = g->call;
  pestle_value_t* norms[2] = {pestle_onnx_input(call, QUERY_NORM),
                              pestle_onnx_input(call, KEY_NORM)};
  if (norms[0]) g->q = norm_heads(call, g->q, norms[0]);
  if (norms[1]) g->k = norm_heads(call, g->k, norms[1]);
  if (!pestle_onnx_int(call, "do_rotary", 0)) return;
  pestle_value_t *cosine = pestle_onnx_input(call, COSINE),
                 *sine = pestle_onnx_input(call, SINE);
  pestle_value_t* at = pestle_onnx_input(call, POSITIONS);
  if (!cosine || !sine || rank_of(cosine) != 2 || rank_of(sine) != 2 ||
      pestle_onnx_dim(cosine, 0) < g->total) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "do_rotary needs cos_cache and sin_cache of rank 2 with a "
                     "row for each of the %lld positions",
                     (long long)g->total);
    return;
  }
  int64_t dims[2] = {g->batch, 1};
  if (!at) {
    pestle_value_t* first = pestle_f_reshape(&call->f, g->past, 2, dims);
    at = positions_from(call, first, g->batch, g->rows);
  } else if (g->first) {
    // Of a first prompt only the first position is looked at.
    dims[0] = 1;
    const int64_t all = pestle_type_count(at->type);
    at = pestle_f_reshape(&call->f, at, 1, &all);
    at = pestle_onnx_slice_axis(call, at, 0, 0, 1, 1);
    at = pestle_f_reshape(&call->f, at, 2, dims);
    at = positions_from(call, at, g->batch, g->rows);
  }
  bool interleaved = pestle_onnx_int(call, "rotary_interleaved", 0) != 0;
  g->q = rotate(call, g->q, cosine, sine, at, interleaved);
  g->k = rotate(call, g->k, cosine, sine, at, interleaved);
}

// |past| (may be NULL), as long as the longest sequence or what it was, with |x| behind
// what each sequence has.
static pestle_value_t* update(grouped_t* g, pestle_value_t* past,
                              pestle_value_t* x) {
  pestle_onnx_call_t* call = g->call;
  int64_t had = past ? pestle_onnx_dim(past, ROWS) : 0;
  int64_t length = had > g->total ? had : g->total;
  if (g->first) {
    if (length == g->rows) return x;
    pestle_value_t* rest =
        pestle_onnx_slice_axis(call, past, ROWS, g->rows, length, 1);
    return append(call, x, rest);
  }
  if (!past) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "%lld of %lld positions are past, and it has no "
                            "past_key or past_value",
                            (long long)(g->total - g->rows),
                            (long long)g->total);
  }
  past = pestle_f_pad_end(&call->f, past, ROWS, length - had);
  return write_rows(call, past, x, g->past);
}

// What is added to scores.
static pestle_value_t* grouped_bias(const grouped_t* g, int64_t columns) {
  pestle_onnx_call_t* call = g->call;
  pestle_value_t* bias = pestle_onnx_input(call, BIAS);
  pestle_value_t* key = places(call, COLUMNS, columns);
  pestle_value_t* past = per_batch(call, g->past);
  pestle_value_t* query = add(call, places(call, ROWS, g->rows), past);
  int64_t window = pestle_onnx_int(call, "local_window_size", -1);
  pestle_value_t* seen;
  if (pestle_onnx_int(call, "causal", 1)) {
    seen = pestle_f_le(&call->f, key, query);
  } else {
    pestle_value_t* end = pestle_onnx_binary_f(
        call, PESTLE_OP_ADD, per_batch(call, call->inputs[LENGTHS]), 1);
    seen = pestle_f_lt(&call->f, key, end);
  }
  if (window > 0) {
    pestle_value_t* before =
        pestle_onnx_binary_f(call, PESTLE_OP_SUBTRACT, query, (double)window);
    seen = both_hold(call, seen, pestle_f_gt(&call->f, key, before));
  }
  pestle_value_t* limit = as_bias(call, seen, dtype_of(g->q), -INFINITY);
  return add_bias(call, limit, pad_to(call, bias, COLUMNS, columns));
}

// [h]: what the softmax has beside the keys, or NULL.
static pestle_value_t* read_sink(const grouped_t* g) {
  pestle_onnx_call_t* call = g->call;
  pestle_value_t* sink = pestle_onnx_input(call, SINK);
  const pestle_type_t type = {.dtype = dtype_of(g->q),
                              .rank = 1,
                              .dims = {pestle_onnx_dim(g->q, HEADS)}};
  if (sink && pestle_type_count(sink->type) != type.dims[0]) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "its head_sink must have a number for each of its "
                            "%lld heads",
                            (long long)type.dims[0]);
  }
  if (sink) return sink;
  bool smooth = pestle_onnx_int(call, "smooth_softmax", -1) > 0;
  return smooth ? pestle_onnx_splat(call, &type, 0) : NULL;
}

void pestle_onnx_import_group_query_attention(pestle_onnx_call_t* call) {
  grouped_t g = {.call = call};
  if (!check_grouped(call) || !read_grouped(&g) || !read_lengths(&g) ||
      !check_window_cache(&g)) {
    return;
  }
  int64_t shown = pestle_onnx_int(call, "qk_output", 0);
  if (shown < 0 || shown > 2 || (pestle_onnx_wants(call, 3) && !shown)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'qk_output' is %lld; it is 1 (before the "
                     "softmax) or 2 (behind it) where output 3 is wanted",
                     (long long)shown);
    return;
  }
  turn_heads(&g);
  g.k = update(&g, pestle_onnx_input(call, PAST_KEY), g.k);
  g.v = update(&g, pestle_onnx_input(call, PAST_VALUE), g.v);
  if (call->f.status) return;
  double depth = (double)pestle_onnx_dim(g.q, COLUMNS);
  double scale = pestle_onnx_float(call, "scale", 0);
  pestle_onnx_attend_t how = {.q = g.q,
                              .k = g.k,
                              .v = g.v,
                              .scale = scale != 0 ? scale : 1 / sqrt(depth),
                              .softcap = pestle_onnx_float(call, "softcap", 0),
                              .shown = shown == 2 ? 3 : 2};
  how.bias = grouped_bias(&g, pestle_onnx_dim(g.k, ROWS));
  how.sink = read_sink(&g);
  pestle_value_t* y = pestle_onnx_attend(call, &how);
  call->outputs[0] = pestle_onnx_merge_heads(call, y);
  if (call->output_count > 1) call->outputs[1] = g.k;
  if (call->output_count > 2) call->outputs[2] = g.v;
}
