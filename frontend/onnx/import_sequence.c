// SPDX-License-Identifier: Apache-2.0
// Ops over sequences other than attention and recurrent layers.
#include <math.h>

#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

// --- Causal convolution with a state ---

static pestle_value_t* activated(pestle_onnx_call_t* call, pestle_value_t* x) {
  pestle_str_t how = pestle_onnx_string(call, "activation", "none");
  if (pestle_str_equal_c(how, "none")) return x;
  if (!pestle_str_is_one_of(how, "silu swish")) {
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "attribute 'activation' is '%.*s', known are none, "
                            "silu and swish",
                            PESTLE_STR_ARG(how));
  }
  pestle_dtype_t dtype = dtype_of(x);
  if (pestle_dtype_size(dtype) < 4) {
    x = pestle_onnx_convert(call, x, PESTLE_F32);
  }
  return pestle_onnx_convert(call, pestle_f_unary(&call->f, PESTLE_OP_SILU, x),
                             dtype);
}

void pestle_onnx_import_causal_conv(pestle_onnx_call_t* call) {
  pestle_onnx_causal_conv(call, 1);
}

// A depthwise convolution along the last axis that sees what came before, which
// is the state: its last (k - 1) * |gap| elements, or zeros.
void pestle_onnx_causal_conv(pestle_onnx_call_t* call, int64_t gap) {
  pestle_value_t *x = call->inputs[0], *w = call->inputs[1];
  pestle_value_t* bias = pestle_onnx_input(call, 2);
  pestle_value_t* past = pestle_onnx_input(call, 3);
  int64_t channels = pestle_onnx_dim(x, 1), k = pestle_onnx_dim(w, 2);
  int64_t before = k > 0 ? (k - 1) * gap : 0;
  int64_t state[3] = {pestle_onnx_dim(x, 0), channels, before};
  pestle_type_t type = pestle_type_make(dtype_of(x), 3, state);
  if (rank_of(x) != 3 || rank_of(w) != 3 || k < 1 || channels < 1 ||
      pestle_onnx_dim(w, 0) != channels || pestle_onnx_dim(w, 1) != 1 ||
      (past && !pestle_type_equal(past->type, &type))) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input must be [n, c, length], its weights [c, 1, k] "
                     "and its state [n, c, (k - 1) * dilation]");
    return;
  }
  const int64_t low[3] = {0, 0, before};
  pestle_value_t* whole =
      past ? pestle_f_concatenate(&call->f, (pestle_value_t*[]){past, x}, 2, 2)
           : pestle_f_pad(&call->f, x, pestle_onnx_scalar(call, dtype_of(x), 0),
                          low, NULL, NULL);
  pestle_onnx_space_t space = {.count = 1,
                               .kernel = {k},
                               .strides = {1},
                               .dilations = {gap},
                               .low = {past ? 0 : before}};
  pestle_value_t* y = pestle_onnx_convolve(call, past ? whole : x, w, &space,
                                           NULL, channels, dtype_of(x));
  if (bias) y = add(call, y, pestle_onnx_along(call, bias, y, 1));
  call->outputs[0] = activated(call, y);
  int64_t length = pestle_onnx_dim(whole, 2);
  if (!pestle_onnx_wants(call, 1)) return;
  call->outputs[1] =
      pestle_onnx_slice_axis(call, whole, 2, length - before, length, 1);
}

// --- Linear attention ---
//
// The state S [batch, heads, dk, dv] is carried over time:
//
//   S = exp(decay) * S                 gated
//   v = beta * (v - S^T k)             delta
//   S = S + k v^T,  y = scale * S^T q

typedef struct linear_t {
  int64_t batch, time, heads, groups, dk, dv;
  bool gated, delta;
  double scale;
  pestle_dtype_t work;           // f32 at least
  pestle_value_t *q, *k, *v;     // [time, batch, heads, (groups,) d]
  pestle_value_t *decay, *beta;  // [time, batch, heads or 1, dk or 1]
} linear_t;

// [batch, time, heads * d] as [time, batch, heads, d].
static pestle_value_t* by_time(pestle_onnx_call_t* call, const linear_t* l,
                               pestle_value_t* x, int64_t heads,
                               const char* what) {
  static const int64_t order[] = {1, 0, 2, 3};
  int64_t width = pestle_onnx_dim(x, 2);
  if (rank_of(x) != 3 || pestle_onnx_dim(x, 0) != l->batch ||
      pestle_onnx_dim(x, 1) != l->time || width % heads) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "its %s must be [batch, time, heads * d] for %lld "
                            "heads",
                            what, (long long)heads);
  }
  int64_t dims[] = {l->batch, l->time, heads, width / heads};
  x = pestle_f_transpose(&call->f, pestle_f_reshape(&call->f, x, 4, dims),
                         order);
  return pestle_onnx_convert(call, x, l->work);
}

static bool read_rule(pestle_onnx_call_t* call, linear_t* l) {
  pestle_str_t rule = pestle_onnx_string(call, "update_rule", "gated_delta");
  bool both = pestle_str_equal_c(rule, "gated_delta");
  l->gated = both || pestle_str_equal_c(rule, "gated");
  l->delta = both || pestle_str_equal_c(rule, "delta");
  if (!l->gated && !l->delta && !pestle_str_equal_c(rule, "linear")) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute 'update_rule' is '%.*s', known are linear, "
                     "gated, delta and gated_delta",
                     PESTLE_STR_ARG(rule));
    return false;
  }
  if (l->gated == !pestle_onnx_input(call, 4) ||
      l->delta == !pestle_onnx_input(call, 5)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "decay comes with a gated update_rule, beta with a delta "
                     "one, and neither without");
  }
  return !call->f.status;
}

static bool read_linear(pestle_onnx_call_t* call, linear_t* l) {
  pestle_value_t* q = call->inputs[0];
  int64_t heads = pestle_onnx_int(call, "q_num_heads", 0);
  l->heads = pestle_onnx_int(call, "kv_num_heads", 0);
  l->batch = pestle_onnx_dim(q, 0);
  l->time = pestle_onnx_dim(q, 1);
  l->work = dtype_of(q) == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
  if (heads < 1 || l->heads < 1 || heads % l->heads ||
      !pestle_dtype_is(dtype_of(q), PESTLE_KIND_FLOAT)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its %lld query heads must be a multiple of its %lld key "
                     "heads",
                     (long long)heads, (long long)l->heads);
  }
  if (call->f.status || !read_rule(call, l)) return false;
  l->groups = heads / l->heads;
  l->q = by_time(call, l, q, heads, "query");
  l->k = by_time(call, l, call->inputs[1], l->heads, "key");
  l->v = by_time(call, l, call->inputs[2], l->heads, "value");
  if (l->gated) {
    l->decay = by_time(call, l, call->inputs[4], l->heads, "decay");
  }
  if (l->delta) {
    bool shared = pestle_onnx_dim(call->inputs[5], 2) == 1;
    l->beta = by_time(call, l, call->inputs[5], shared ? 1 : l->heads, "beta");
  }
  if (call->f.status) return false;
  l->dk = pestle_onnx_dim(l->q, 3);
  l->dv = pestle_onnx_dim(l->v, 3);
  int64_t decays = l->decay ? pestle_onnx_dim(l->decay, 3) : 1;
  if (l->dk < 1 || pestle_onnx_dim(l->k, 3) != l->dk ||
      (decays != 1 && decays != l->dk) ||
      (l->beta && pestle_onnx_dim(l->beta, 3) != 1)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its keys, decay or beta do not fit queries of %lld "
                     "elements a head",
                     (long long)l->dk);
    return false;
  }
  int64_t dims[] = {l->time, l->batch, l->heads, l->groups, l->dk};
  l->q = pestle_f_reshape(&call->f, l->q, 5, dims);
  l->scale = pestle_onnx_float(call, "scale", 0);
  if (l->scale == 0) l->scale = 1 / sqrt((double)l->dk);
  return !call->f.status;
}

// x [batch, heads, n] as [batch, heads, n, 1] or [batch, heads, 1, n].
static pestle_value_t* spread(pestle_onnx_call_t* call, pestle_value_t* x,
                              bool column) {
  int64_t n = pestle_onnx_dim(x, 2);
  int64_t dims[] = {pestle_onnx_dim(x, 0), pestle_onnx_dim(x, 1),
                    column ? n : 1, column ? 1 : n};
  return pestle_f_reshape(&call->f, x, 4, dims);
}

// Contracts dk of |x| with that of the state; batch and heads stay.
static pestle_value_t* ask_state(pestle_onnx_call_t* call, pestle_value_t* x,
                                 pestle_value_t* state) {
  static const int64_t batch[] = {0, 1}, dk = 2;
  int64_t last = rank_of(x) - 1;
  return pestle_onnx_dot(call, x, state, (pestle_i64s_t){batch, 2},
                         (pestle_i64s_t){batch, 2}, (pestle_i64s_t){&last, 1},
                         (pestle_i64s_t){&dk, 1}, dtype_of(state));
}

// Carried: the state and the results [time, batch, heads, groups, dv].
static void linear_step(pestle_onnx_call_t* call, void* self, pestle_value_t* i,
                        pestle_value_t** values) {
  const linear_t* l = self;
  pestle_value_t *state = values[0], *k = pestle_onnx_row(call, l->k, i);
  pestle_value_t* v = pestle_onnx_row(call, l->v, i);
  if (l->gated) {
    pestle_value_t* decay =
        pestle_f_exponential(&call->f, pestle_onnx_row(call, l->decay, i));
    state = mul(call, state, spread(call, decay, true));
  }
  if (l->delta) {
    v = sub(call, v, ask_state(call, k, state));
    v = mul(call, v, pestle_onnx_row(call, l->beta, i));
  }
  pestle_value_t* row = spread(call, v, false);
  state = add(call, state, mul(call, spread(call, k, true), row));
  pestle_value_t* y = ask_state(call, pestle_onnx_row(call, l->q, i), state);
  values[0] = state;
  values[1] =
      pestle_onnx_store_row(call, values[1], times(call, y, l->scale), i);
}

void pestle_onnx_import_linear_attention(pestle_onnx_call_t* call) {
  static const int64_t order[] = {1, 0, 2, 3, 4};
  linear_t l = {0};
  pestle_value_t* past = pestle_onnx_input(call, 3);
  pestle_dtype_t dtype = dtype_of(call->inputs[0]);
  if (!read_linear(call, &l)) return;
  pestle_dtype_t kept = past ? dtype_of(past) : dtype;
  pestle_type_t state = {
      .dtype = kept, .rank = 4, .dims = {l.batch, l.heads, l.dk, l.dv}};
  if (past && !pestle_type_equal(past->type, &state)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its past_state must be [%lld, %lld, %lld, %lld]",
                     (long long)l.batch, (long long)l.heads, (long long)l.dk,
                     (long long)l.dv);
    return;
  }
  state.dtype = l.work;
  pestle_type_t rows = {.dtype = l.work,
                        .rank = 5,
                        .dims = {l.time, l.batch, l.heads, l.groups, l.dv}};
  pestle_value_t* values[2] = {past ? pestle_onnx_convert(call, past, l.work)
                                    : pestle_onnx_splat(call, &state, 0),
                               pestle_onnx_splat(call, &rows, 0)};
  pestle_onnx_for(call, l.time, values, 2, linear_step, &l);
  int64_t dims[] = {l.batch, l.time, l.heads * l.groups * l.dv};
  pestle_value_t* y = pestle_f_transpose(&call->f, values[1], order);
  call->outputs[0] =
      pestle_onnx_convert(call, pestle_f_reshape(&call->f, y, 3, dims), dtype);
  if (pestle_onnx_wants(call, 1)) {
    call->outputs[1] = pestle_onnx_convert(call, values[0], kept);
  }
}

// --- Rotary embedding ---

typedef struct rotary_t {
  int64_t dims[4];  // of x with an axis of heads
  int heads, rows;  // where those lie
  int64_t half;
} rotary_t;

// A cache as [batch, 1, rows, half] or [batch, rows, 1, half].
static pestle_value_t* read_cache(pestle_onnx_call_t* call, const rotary_t* r,
                                  size_t index) {
  pestle_value_t* cache = call->inputs[index];
  pestle_value_t* positions = pestle_onnx_input(call, 3);
  int64_t dims[4] = {r->dims[0], 1, 1, r->half};
  dims[r->rows] = r->dims[r->rows];
  if (positions) {
    if (rank_of(cache) != 2 || rank_of(positions) != 2) {
      return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                              "with position_ids of rank 2 its caches have "
                              "rank 2");
    }
    if (!pestle_onnx_check_indices(call, positions, pestle_onnx_dim(cache, 0)))
      return NULL;
    cache = pestle_onnx_take(call, cache, positions, 0);
  }
  return pestle_f_reshape(&call->f, cache, 4, dims);
}

static bool read_rotary(pestle_onnx_call_t* call, rotary_t* r,
                        int64_t* rotated) {
  pestle_value_t* x = call->inputs[0];
  bool flat = rank_of(x) == 3;
  int64_t heads = pestle_onnx_int(call, "num_heads", 0);
  for (int i = 0; i < 4; ++i)
    r->dims[i] = pestle_onnx_dim(x, i);
  r->heads = flat ? 2 : 1;
  r->rows = flat ? 1 : 2;
  if (flat && (heads < 1 || r->dims[2] % heads)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its input of rank 3 has rows of %lld, which attribute "
                     "num_heads, %lld, does not divide",
                     (long long)r->dims[2], (long long)heads);
    return false;
  }
  if (flat) {
    r->dims[3] = r->dims[2] / heads;
    r->dims[2] = heads;
  }
  *rotated = pestle_onnx_int(call, "rotary_embedding_dim", 0);
  if (*rotated == 0) *rotated = r->dims[3];
  if ((!flat && rank_of(x) != 4) || *rotated < 2 || *rotated % 2 ||
      *rotated > r->dims[3]) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "%lld elements of the %lld of a head cannot be rotated "
                     "in pairs",
                     (long long)*rotated, (long long)r->dims[3]);
  }
  r->half = *rotated / 2;
  return !call->f.status;
}

// The pairs' first elements, or their second ones.
static pestle_value_t* pair_part(pestle_onnx_call_t* call, const rotary_t* r,
                                 pestle_value_t* x, bool interleaved,
                                 bool second) {
  return interleaved
             ? pestle_onnx_slice_axis(call, x, 3, second, 2 * r->half, 2)
             : pestle_onnx_slice_axis(call, x, 3, second ? r->half : 0,
                                      second ? 2 * r->half : r->half, 1);
}

static pestle_value_t* join_pairs(pestle_onnx_call_t* call, const rotary_t* r,
                                  pestle_value_t* first, pestle_value_t* second,
                                  bool interleaved) {
  pestle_value_t* parts[2] = {first, second};
  if (!interleaved) return pestle_f_concatenate(&call->f, parts, 2, 3);
  int64_t dims[5] = {r->dims[0], r->dims[1], r->dims[2], r->half, 1};
  for (int i = 0; i < 2; ++i)
    parts[i] = pestle_f_reshape(&call->f, parts[i], 5, dims);
  dims[3] *= 2;
  return pestle_f_reshape(&call->f, pestle_f_concatenate(&call->f, parts, 2, 4),
                          4, dims);
}

// Batches and positions may be as many as only a run tells. Caches that positions are taken
// from are tables; else they have batches and positions themselves.
static bool fit_rotary(pestle_onnx_call_t* call) {
  bool tables = pestle_onnx_input(call, 3) != NULL;
  int64_t rows = rank_of(call->inputs[0]) == 3 ? 1 : 2;
  const uint32_t allowed[4] = {1u << rows | 1, tables ? 0 : 3, tables ? 0 : 3,
                               3};
  for (int axis = 0; axis < 2; ++axis) {
    int64_t own[4] = {axis ? rows : 0, tables ? -1 : axis, tables ? -1 : axis,
                      axis};
    pestle_value_t* size;
    for (size_t i = 0; i < call->input_count && i < 4; ++i) {
      const pestle_value_t* x = call->inputs[i];
      if (!pestle_onnx_allow_real(call, i, allowed[i])) return false;
      if (x && rank_of(x) <= own[i]) own[i] = -1;
    }
    size_t count = call->input_count < 4 ? call->input_count : 4;
    if (!pestle_onnx_fit(call, call->inputs, own, count, &size)) return false;
  }
  return true;
}

void pestle_onnx_import_rotary_embedding(pestle_onnx_call_t* call) {
  if (!fit_rotary(call)) return;
  pestle_value_t* x = call->inputs[0];
  rotary_t r;
  int64_t rotated;
  bool interleaved = pestle_onnx_int(call, "interleaved", 0) != 0;
  if (!read_rotary(call, &r, &rotated)) return;
  pestle_value_t* cosine = read_cache(call, &r, 1);
  pestle_value_t* sine = read_cache(call, &r, 2);
  pestle_value_t* whole = pestle_f_reshape(&call->f, x, 4, r.dims);
  pestle_value_t* a = pair_part(call, &r, whole, interleaved, false);
  pestle_value_t* b = pair_part(call, &r, whole, interleaved, true);
  pestle_value_t* bs = mul(call, b, sine);
  pestle_value_t* first = sub(call, mul(call, a, cosine), bs);
  pestle_value_t* bc = mul(call, b, cosine);
  pestle_value_t* second = add(call, mul(call, a, sine), bc);
  pestle_value_t* y = join_pairs(call, &r, first, second, interleaved);
  if (rotated < r.dims[3]) {
    pestle_value_t* rest =
        pestle_onnx_slice_axis(call, whole, 3, rotated, r.dims[3], 1);
    y = pestle_f_concatenate(&call->f, (pestle_value_t*[]){y, rest}, 2, 3);
  }
  y = pestle_f_reshape(&call->f, y, rank_of(x), pestle_onnx_type(x)->dims);
  pestle_onnx_copy_real(call, y, x);
  call->outputs[0] = pestle_onnx_end_real(call, y);
}

// --- Reversal of parts ---

// Position t of a sequence of n reads n - 1 - t, and t from n on.
void pestle_onnx_import_reverse_sequence(pestle_onnx_call_t* call) {
  int64_t batch = pestle_onnx_int(call, "batch_axis", 1);
  int64_t time = pestle_onnx_int(call, "time_axis", 0);
  const int64_t along[] = {batch, 0};
  pestle_value_t* size;
  if (rank_of(call->inputs[0]) >= 2 && (batch == 0 || batch == 1) &&
      rank_of(call->inputs[1]) == 1 &&
      !pestle_onnx_fit(call, call->inputs, along, 2, &size)) {
    return;
  }
  pestle_value_t* x = call->inputs[0];
  int64_t extent = pestle_onnx_dim(x, batch);
  if (rank_of(x) < 2 || batch < 0 || batch > 1 || time != 1 - batch ||
      rank_of(call->inputs[1]) != 1 ||
      pestle_onnx_dim(call->inputs[1], 0) != extent) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its axes of batch and time, %lld and %lld, must be 0 and "
                     "1 in some order, and its lengths one number an element "
                     "of the batch",
                     (long long)batch, (long long)time);
    return;
  }
  pestle_type_t type = {.dtype = PESTLE_I64, .rank = 2};
  type.dims[batch] = extent;
  type.dims[time] = pestle_onnx_dim(x, time);
  pestle_value_t* length = pestle_f_broadcast(
      &call->f, pestle_onnx_convert(call, call->inputs[1], PESTLE_I64), 2,
      type.dims,
      (pestle_i64s_t){&batch, (size_t)rank_of(pestle_onnx_convert(
                                  call, call->inputs[1], PESTLE_I64))});
  pestle_value_t* t = pestle_f_iota(&call->f, &type, time);
  pestle_value_t* turned =
      sub(call, pestle_onnx_binary_f(call, PESTLE_OP_SUBTRACT, length, 1), t);
  pestle_value_t* index =
      pestle_f_select(&call->f, pestle_f_lt(&call->f, t, length), turned, t);
  pestle_onnx_gather_t how = {.vector = 2,
                              .mapped_count = 1,
                              .batch_count = 1,
                              .mapped = {time},
                              .batch = {batch},
                              .sizes = {1, 1}};
  for (int64_t i = 2; i < rank_of(x); ++i) {
    how.offsets[how.offset_count++] = i;
    how.sizes[i] = pestle_onnx_dim(x, i);
  }
  pestle_value_t* y = pestle_onnx_gather(call, x, index, &how);
  pestle_onnx_copy_real(call, y, x);
  call->outputs[0] = pestle_onnx_end_real(call, y);
}
