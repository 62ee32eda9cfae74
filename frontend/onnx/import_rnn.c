// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. The products of all steps with the input weights are one
// dot_general; the loop over time keeps the products with the recurrent
// weights:
//
//   xw = dot(x, W^T) + b                     [time, batch, gates * hidden]
//   while i < time:
//     t = i (forward) or time - 1 - i (reverse)
//     h, c = cell(xw[t], dot(h, R^T), h, c)
//     y[t] = h
//
// One step needs no loop. Gates lie in ONNX's order: LSTM i o f c, GRU z r h. Where only a
// run tells how many steps there are, the loop is for as many. Where that is so of the
// batch, a step multiplies its own rows of x, so that what is behind them is not computed.
#include <math.h>

#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

typedef enum cell_e { CELL_RNN, CELL_GRU, CELL_LSTM } cell_t;

typedef struct activation_t {
  pestle_str_t name;
  double alpha, beta;
} activation_t;

typedef struct layer_t {
  cell_t cell;
  activation_t activations[2][3];  // of a direction: f, g, h
  int64_t time, batch, input, hidden, gates, directions;
  bool batch_first;
  bool linear_before_reset, input_forget;
  bool
      quantises;  // what is carried to the next product, as DynamicQuantizeLinear does
  double clip;  // 0: none
  pestle_dtype_t dtype;
  pestle_value_t* x;        // [time, batch, input]
  pestle_value_t* lengths;  // i64 [batch], or NULL when all are |time|
  // |time| and |batch| where only a run tells them, else NULL.
  pestle_value_t *steps, *rows;
} layer_t;

// One direction of a layer.
typedef struct direction_t {
  int64_t index;
  bool reverse;
  pestle_value_t* xw;           // [time, batch, gates * hidden], or NULL
  pestle_value_t *w, *bias;     // what makes it of x; the latter may be NULL
  pestle_value_t* r;            // [gates * hidden, hidden]
  pestle_value_t* rb;           // GRU: recurrent bias [gates * hidden] or NULL
  pestle_value_t* peephole[3];  // LSTM: i o f, [hidden] or NULL
} direction_t;

typedef struct state_t {
  pestle_value_t *h, *c, *y;
} state_t;

// --- Pieces ---

// Part |index| of |count| along the last axis.
static pestle_value_t* part(pestle_onnx_call_t* call, pestle_value_t* x,
                            int64_t index, int64_t size) {
  return pestle_onnx_slice_axis(call, x, rank_of(x) - 1, index * size,
                                (index + 1) * size, 1);
}

// Element |index| of the first axis, without that axis.
static pestle_value_t* pick(pestle_onnx_call_t* call, pestle_value_t* x,
                            int64_t index) {
  if (!x) return NULL;
  pestle_value_t* row = pestle_onnx_slice_axis(call, x, 0, index, index + 1, 1);
  return pestle_f_reshape(&call->f, row, rank_of(x) - 1,
                          pestle_onnx_type(x)->dims + 1);
}

// Activation |which| (f, g, h) of a direction.
static pestle_value_t* activate(pestle_onnx_call_t* call, const layer_t* layer,
                                int64_t direction, size_t which,
                                pestle_value_t* x) {
  const activation_t* a = &layer->activations[direction][which];
  if (layer->clip > 0) {
    x = pestle_onnx_binary_f(call, PESTLE_OP_MINIMUM, x, layer->clip);
    x = pestle_onnx_binary_f(call, PESTLE_OP_MAXIMUM, x, -layer->clip);
  }
  return pestle_onnx_activation(call, a->name, a->alpha, a->beta, x);
}

// a [batch, hidden] times w [n, hidden] transposed.
static pestle_value_t* recur(pestle_onnx_call_t* call, pestle_value_t* h,
                             pestle_value_t* w) {
  return pestle_onnx_dot(call, h, w, (pestle_i64s_t){0}, (pestle_i64s_t){0},
                         PESTLE_I64S(1), PESTLE_I64S(1), dtype_of(h));
}

static pestle_value_t* one_minus(pestle_onnx_call_t* call, pestle_value_t* x) {
  return sub(call, splat_like(call, x, 1), x);
}

// --- Cells: a step from the projected input |xw| [batch, gates * hidden] ---

static state_t step_rnn(pestle_onnx_call_t* call, const layer_t* layer,
                        const direction_t* d, pestle_value_t* xw, state_t s) {
  s.h =
      activate(call, layer, d->index, 0, add(call, xw, recur(call, s.h, d->r)));
  return s;
}

static pestle_value_t* peep(pestle_onnx_call_t* call, const direction_t* d,
                            size_t which, pestle_value_t* gate,
                            pestle_value_t* c) {
  if (!d->peephole[which]) return gate;
  return add(call, gate, mul(call, c, d->peephole[which]));
}

static state_t step_lstm(pestle_onnx_call_t* call, const layer_t* layer,
                         const direction_t* d, pestle_value_t* xw, state_t s) {
  int64_t size = layer->hidden;
  pestle_value_t* h =
      layer->quantises ? pestle_onnx_quantised_dynamically(call, s.h) : s.h;
  pestle_value_t* gates = add(call, xw, recur(call, h, d->r));
  pestle_value_t* i =
      activate(call, layer, d->index, 0,
               peep(call, d, 0, part(call, gates, 0, size), s.c));
  pestle_value_t* f =
      layer->input_forget
          ? one_minus(call, i)
          : activate(call, layer, d->index, 0,
                     peep(call, d, 2, part(call, gates, 2, size), s.c));
  pestle_value_t* g =
      activate(call, layer, d->index, 1, part(call, gates, 3, size));
  pestle_value_t* enters = mul(call, i, g);
  s.c = add(call, mul(call, f, s.c), enters);
  pestle_value_t* o =
      activate(call, layer, d->index, 0,
               peep(call, d, 1, part(call, gates, 1, size), s.c));
  layer_t no_clip = *layer;
  no_clip.clip = 0;
  s.h = mul(call, o, activate(call, &no_clip, d->index, 2, s.c));
  return s;
}

static pestle_value_t* biased(pestle_onnx_call_t* call, pestle_value_t* x,
                              const direction_t* d, int64_t index,
                              int64_t size) {
  return d->rb ? add(call, x, part(call, d->rb, index, size)) : x;
}

// The z and r parts of the recurrent bias are in |xw| already.
static state_t step_gru(pestle_onnx_call_t* call, const layer_t* layer,
                        const direction_t* d, pestle_value_t* xw, state_t s) {
  int64_t size = layer->hidden;
  pestle_value_t *hr, *candidate;
  if (layer->linear_before_reset) {
    hr = recur(call, s.h, d->r);
  } else {
    hr =
        recur(call, s.h, pestle_onnx_slice_axis(call, d->r, 0, 0, 2 * size, 1));
  }
  pestle_value_t* z = part(call, hr, 0, size);
  z = add(call, part(call, xw, 0, size), z);
  z = activate(call, layer, d->index, 0, z);
  pestle_value_t* r = part(call, hr, 1, size);
  r = add(call, part(call, xw, 1, size), r);
  r = activate(call, layer, d->index, 0, r);
  if (layer->linear_before_reset) {
    candidate = mul(call, r, biased(call, part(call, hr, 2, size), d, 2, size));
  } else {
    pestle_value_t* w =
        pestle_onnx_slice_axis(call, d->r, 0, 2 * size, 3 * size, 1);
    candidate = biased(call, recur(call, mul(call, r, s.h), w), d, 2, size);
  }
  candidate = activate(call, layer, d->index, 1,
                       add(call, part(call, xw, 2, size), candidate));
  pestle_value_t* kept = mul(call, z, s.h);
  s.h = add(call, mul(call, one_minus(call, z), candidate), kept);
  return s;
}

static state_t step_cell(pestle_onnx_call_t* call, const layer_t* layer,
                         const direction_t* d, pestle_value_t* xw, state_t s) {
  if (layer->cell == CELL_LSTM) return step_lstm(call, layer, d, xw, s);
  if (layer->cell == CELL_GRU) return step_gru(call, layer, d, xw, s);
  return step_rnn(call, layer, d, xw, s);
}

// Sequences that have ended keep their state and give zeros. |t| is a scalar.
static state_t mask_step(pestle_onnx_call_t* call, const layer_t* layer,
                         pestle_value_t* t, state_t before, state_t after,
                         pestle_value_t** out_y) {
  *out_y = after.h;
  if (!layer->lengths) return after;
  int64_t dims[2] = {layer->batch, layer->hidden}, axis = 0;
  pestle_value_t* alive = pestle_f_lt(&call->f, t, layer->lengths);
  alive = pestle_f_broadcast(&call->f, alive, 2, dims,
                             (pestle_i64s_t){&axis, (size_t)rank_of(alive)});
  *out_y =
      pestle_f_select(&call->f, alive, after.h, splat_like(call, after.h, 0));
  after.h = pestle_f_select(&call->f, alive, after.h, before.h);
  if (after.c) after.c = pestle_f_select(&call->f, alive, after.c, before.c);
  return after;
}

// --- The loop ---

typedef struct steps_t {
  const layer_t* layer;
  const direction_t* d;
} steps_t;

// |x|, of whose axis |axis| only the real rows mean something.
static pestle_value_t* end_rows(pestle_onnx_call_t* call, const layer_t* layer,
                                pestle_value_t* x, int64_t axis) {
  if (!layer->rows || !x) return x;
  pestle_onnx_set_real(call, x, axis, layer->rows);
  return pestle_onnx_end_real(call, x);
}

// Step |i| from the end.
static pestle_value_t* from_end(pestle_onnx_call_t* call, const layer_t* layer,
                                pestle_value_t* i) {
  pestle_value_t* last =
      layer->steps ? sub(call, layer->steps, pestle_onnx_size_number(call, 1))
                   : pestle_onnx_size_number(call, layer->time - 1);
  return sub(call, last, i);
}

// x W^T + bias of all steps, or of the rows of one.
static pestle_value_t* project(pestle_onnx_call_t* call, const layer_t* layer,
                               const direction_t* d, pestle_value_t* x) {
  pestle_i64s_t last = rank_of(x) == 3 ? PESTLE_I64S(2) : PESTLE_I64S(1);
  pestle_value_t* xw =
      pestle_onnx_dot(call, x, d->w, (pestle_i64s_t){0}, (pestle_i64s_t){0},
                      last, PESTLE_I64S(1), layer->dtype);
  return d->bias ? add(call, xw, d->bias) : xw;
}

static pestle_value_t* project_step(pestle_onnx_call_t* call,
                                    const layer_t* layer, const direction_t* d,
                                    pestle_value_t* t) {
  if (d->xw) return pestle_onnx_row(call, d->xw, t);
  pestle_value_t* x =
      end_rows(call, layer, pestle_onnx_row(call, layer->x, t), 0);
  return project(call, layer, d, x);
}

// Carried: h, y and, for LSTM, c.
static void run_step(pestle_onnx_call_t* call, void* self, pestle_value_t* i,
                     pestle_value_t** values) {
  const steps_t* steps = self;
  const layer_t* layer = steps->layer;
  bool lstm = layer->cell == CELL_LSTM;
  state_t s = {.h = values[0], .y = values[1], .c = lstm ? values[2] : NULL};
  pestle_value_t* t = steps->d->reverse ? from_end(call, layer, i) : i;
  state_t before = s;
  pestle_value_t* xw = project_step(call, layer, steps->d, t);
  s = step_cell(call, layer, steps->d, xw, s);
  pestle_value_t* row;
  s = mask_step(call, layer, t, before, s, &row);
  values[0] = end_rows(call, layer, s.h, 0);
  pestle_value_t* y =
      pestle_onnx_store_row(call, before.y, end_rows(call, layer, row, 0), t);
  values[1] = end_rows(call, layer, y, 1);
  if (lstm) values[2] = end_rows(call, layer, s.c, 0);
}

static state_t run_steps(pestle_onnx_call_t* call, const layer_t* layer,
                         const direction_t* d, state_t s) {
  pestle_type_t type = {.dtype = layer->dtype,
                        .rank = 3,
                        .dims = {layer->time, layer->batch, layer->hidden}};
  steps_t steps = {layer, d};
  pestle_value_t* none = pestle_onnx_splat(call, &type, 0);
  pestle_value_t* values[3] = {s.h, none, s.c};
  size_t count = layer->cell == CELL_LSTM ? 3 : 2;
  if (layer->steps) {
    pestle_onnx_for_below(call, layer->steps, values, count, run_step, &steps);
  } else {
    pestle_onnx_for(call, layer->time, values, count, run_step, &steps);
  }
  return (state_t){.h = values[0], .y = values[1], .c = values[2]};
}

// --- Reading the node ---

// The bias that may be added before the loop: all of it, except for GRU's
// recurrent bias of the candidate, which the reset gate scales.
static pestle_value_t* hoisted_bias(pestle_onnx_call_t* call,
                                    const layer_t* layer, pestle_value_t* b,
                                    direction_t* d) {
  if (!b) return NULL;
  int64_t each = layer->gates * layer->hidden;
  pestle_value_t* wb = pestle_onnx_slice_axis(call, b, 0, 0, each, 1);
  pestle_value_t* rb = pestle_onnx_slice_axis(call, b, 0, each, 2 * each, 1);
  if (layer->cell != CELL_GRU || !rb) return add(call, wb, rb);
  d->rb = rb;
  pestle_type_t type = {
      .dtype = layer->dtype, .rank = 1, .dims = {layer->hidden}};
  pestle_value_t* parts[2] = {
      pestle_onnx_slice_axis(call, rb, 0, 0, 2 * layer->hidden, 1),
      pestle_onnx_splat(call, &type, 0)};
  return add(call, wb, pestle_f_concatenate(&call->f, parts, 2, 0));
}

static state_t initial_state(pestle_onnx_call_t* call, const layer_t* layer,
                             size_t h_input, size_t c_input, int64_t index) {
  pestle_type_t type = {
      .dtype = layer->dtype, .rank = 2, .dims = {layer->batch, layer->hidden}};
  state_t s = {0};
  size_t inputs[2] = {h_input, c_input};
  pestle_value_t* values[2] = {NULL, NULL};
  for (int i = 0; i < (layer->cell == CELL_LSTM ? 2 : 1); ++i) {
    pestle_value_t* given = pestle_onnx_input(call, inputs[i]);
    if (given && layer->batch_first) {
      given = pestle_f_transpose(&call->f, given, PESTLE_I64S(1, 0, 2).data);
    }
    values[i] =
        given ? pick(call, given, index) : pestle_onnx_splat(call, &type, 0);
  }
  s.h = values[0];
  s.c = values[1];
  return s;
}

static state_t run_direction(pestle_onnx_call_t* call, const layer_t* layer,
                             int64_t index, bool reverse) {
  direction_t d = {.index = index, .reverse = reverse};
  pestle_value_t* b = pestle_onnx_input(call, 3);
  b = b ? pick(call, b, index) : NULL;
  d.r = pick(call, call->inputs[2], index);
  d.bias = hoisted_bias(call, layer, b, &d);
  d.w = pick(call, call->inputs[1], index);
  if (!layer->rows) d.xw = project(call, layer, &d, layer->x);
  pestle_value_t* p =
      layer->cell == CELL_LSTM ? pestle_onnx_input(call, 7) : NULL;
  if (p) p = pick(call, p, index);
  for (int64_t i = 0; p && i < 3; ++i) {
    d.peephole[i] = part(call, p, i, layer->hidden);
  }
  state_t s = initial_state(call, layer, 5, 6, index);
  return call->f.status ? s : run_steps(call, layer, &d, s);
}

// Whether the optional input |index| is absent or has the type.
static bool has_type(pestle_onnx_call_t* call, size_t index,
                     pestle_dtype_t dtype, pestle_i64s_t dims) {
  pestle_value_t* x = pestle_onnx_input(call, index);
  pestle_type_t type = pestle_type_make(dtype, (int32_t)dims.count, dims.data);
  return !x || pestle_type_equal(x->type, &type);
}

// Lengths, initial states and peepholes.
static void check_optional(pestle_onnx_call_t* call, const layer_t* layer) {
  int64_t directions = layer->directions, batch = layer->batch;
  int64_t hidden = layer->hidden;
  pestle_i64s_t state = layer->batch_first
                            ? PESTLE_I64S(batch, directions, hidden)
                            : PESTLE_I64S(directions, batch, hidden);
  pestle_i64s_t peepholes = PESTLE_I64S(directions, 3 * hidden);
  pestle_value_t* lengths = pestle_onnx_input(call, 4);
  bool lstm = layer->cell == CELL_LSTM;
  const char* wrong = NULL;
  if (lengths && !has_type(call, 4, dtype_of(lengths), PESTLE_I64S(batch))) {
    wrong = "sequence_lens";
  }
  if (!has_type(call, 5, layer->dtype, state)) wrong = "initial_h";
  if (lstm && !has_type(call, 6, layer->dtype, state)) wrong = "initial_c";
  if (lstm && !has_type(call, 7, layer->dtype, peepholes)) wrong = "P";
  if (!wrong) return;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "the type of its input '%s' does not fit its %lld "
                   "directions, batch of %lld and hidden_size %lld",
                   wrong, (long long)layer->directions, (long long)layer->batch,
                   (long long)layer->hidden);
}

// Batches and steps may be as many as only a run tells, and so may then be lengths and
// initial states, of which there is one for each of the batch.
static bool read_real(pestle_onnx_call_t* call, layer_t* layer) {
  bool first = layer->batch_first;
  const int64_t batch = first ? 0 : 1;
  int64_t axes[8];
  uint32_t allowed[8] = {
      [0] = 3, [4] = 1, [5] = 1u << batch, [6] = 1u << batch};
  static const int32_t ranks[8] = {[0] = 3, [4] = 1, [5] = 3, [6] = 3};
  for (size_t i = 0; i < call->input_count; ++i) {
    const pestle_value_t* x = call->inputs[i];
    axes[i] = i == 4 ? 0 : batch;
    if (!x || rank_of(x) != ranks[i]) axes[i] = -1;
    if (!pestle_onnx_allow_real(call, i, allowed[i])) return false;
  }
  if (axes[0] < 0) return true;
  layer->steps =
      pestle_onnx_real_size(call->import, call->inputs[0], 1 - batch);
  return pestle_onnx_fit(call, call->inputs, axes, call->input_count,
                         &layer->rows);
}

static bool read_layer(pestle_onnx_call_t* call, cell_t cell, layer_t* layer) {
  bool batch_first = pestle_onnx_int(call, "layout", 0) != 0;
  *layer = (layer_t){.batch_first = batch_first};
  if (!read_real(call, layer)) return false;
  pestle_value_t *x = call->inputs[0], *w = call->inputs[1];
  pestle_value_t *r = call->inputs[2], *b = pestle_onnx_input(call, 3);
  layer->cell = cell;
  layer->dtype = dtype_of(x);
  layer->gates = cell == CELL_LSTM ? 4 : cell == CELL_GRU ? 3 : 1;
  layer->linear_before_reset =
      pestle_onnx_int(call, "linear_before_reset", 0) != 0;
  layer->input_forget = pestle_onnx_int(call, "input_forget", 0) != 0;
  layer->clip = pestle_onnx_float(call, "clip", 0);
  if (layer->batch_first && rank_of(x) == 3) {
    x = pestle_f_transpose(&call->f, x, PESTLE_I64S(1, 0, 2).data);
  }
  layer->x = x;
  layer->time = pestle_onnx_dim(x, 0);
  layer->batch = pestle_onnx_dim(x, 1);
  layer->input = pestle_onnx_dim(x, 2);
  layer->hidden = pestle_onnx_dim(r, 2);
  layer->directions = pestle_onnx_dim(w, 0);
  int64_t rows = layer->gates * layer->hidden;
  int64_t stated = pestle_onnx_int(call, "hidden_size", layer->hidden);
  bool fits = rank_of(x) == 3 && rank_of(w) == 3 && rank_of(r) == 3 &&
              layer->hidden == stated && pestle_onnx_dim(w, 1) == rows &&
              pestle_onnx_dim(w, 2) == layer->input &&
              pestle_onnx_dim(r, 0) == layer->directions &&
              pestle_onnx_dim(r, 1) == rows;
  if (b) fits &= rank_of(b) == 2 && pestle_onnx_dim(b, 1) == 2 * rows;
  if (b) fits &= pestle_onnx_dim(b, 0) == layer->directions;
  if (!fits) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "the shapes of its input, weights and biases do not fit "
                     "each other and hidden_size %lld",
                     (long long)stated);
  }
  if (!call->f.status) check_optional(call, layer);
  return !call->f.status;
}

// --- Activations ---
//
// activation_alpha and activation_beta hold a number for each function that
// takes one, in the functions' order over both directions: LeakyRelu, Tanh, Elu
// with alphas 0.1, 0.2 is LeakyRelu(0.1), Tanh, Elu(0.2).

typedef struct parameters_t {
  const char* function;
  bool has_beta;
  // Those of the ONNX op of that name; NAN where there is none.
  double alpha, beta;
} parameters_t;

static const parameters_t parameters[] = {
    {"Affine", true, 1, 0},           {"LeakyRelu", false, 0.01, 0},
    {"ThresholdedRelu", false, 1, 0}, {"ScaledTanh", true, NAN, NAN},
    {"HardSigmoid", true, 0.2, 0.5},  {"Elu", false, 1, 0},
};

// An attribute of floats, of which |used| have been given away.
typedef struct numbers_t {
  const float* data;
  size_t count, used;
} numbers_t;

static numbers_t read_numbers(pestle_onnx_call_t* call, const char* name) {
  const pestle_onnx_attr_t* attr = pestle_onnx_node_attr(call->node, name);
  if (!attr || !attr->count) return (numbers_t){0};
  if (attr->kind == PESTLE_ONNX_ATTR_FLOATS)
    return (numbers_t){attr->floats, attr->count, 0};
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "attribute '%s' should be floats", name);
  return (numbers_t){0};
}

static double next_number(pestle_onnx_call_t* call, numbers_t* numbers,
                          const char* function, double missing) {
  if (numbers->used < numbers->count)
    return (double)numbers->data[numbers->used++];
  if (isnan(missing)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its activation '%s' needs numbers of activation_alpha "
                     "and activation_beta, which have none left",
                     function);
  }
  return missing;
}

static int lower(int c) {
  return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool is_spelled(pestle_str_t name, const char* function) {
  if (name.size != strlen(function)) return false;
  for (size_t i = 0; i < name.size; ++i) {
    if (lower(name.data[i]) != lower(function[i])) return false;
  }
  return true;
}

// Exporters write 'tanh' as well as 'Tanh', and ONNX Runtime takes either.
static pestle_str_t function_name(pestle_str_t name) {
  static const char* const functions[] = {
      "Relu",       "Tanh",        "Sigmoid", "Affine",   "LeakyRelu",
      "ScaledTanh", "HardSigmoid", "Elu",     "Softsign", "ThresholdedRelu",
      "Softplus"};
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
    if (is_spelled(name, functions[i])) return pestle_str(functions[i]);
  }
  return name;
}

static activation_t parameterise(pestle_onnx_call_t* call, pestle_str_t name,
                                 numbers_t* alphas, numbers_t* betas) {
  name = function_name(name);
  activation_t result = {name, 0, 0};
  for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); ++i) {
    const parameters_t* p = &parameters[i];
    if (!pestle_str_equal_c(name, p->function)) continue;
    result.alpha = next_number(call, alphas, p->function, p->alpha);
    if (p->has_beta)
      result.beta = next_number(call, betas, p->function, p->beta);
  }
  return result;
}

// The names given, of which there must be one for each function of each
// direction; NULL: none are. The default of RNN's attribute is two for either.
static const pestle_str_t* read_names(pestle_onnx_call_t* call,
                                      const layer_t* layer, size_t each) {
  const pestle_onnx_attr_t* attr =
      pestle_onnx_node_attr(call->node, "activations");
  size_t wanted = each * (size_t)layer->directions;
  if (!attr || !attr->count) return NULL;
  if (attr->kind == PESTLE_ONNX_ATTR_STRINGS &&
      (attr->count == wanted ||
       (layer->cell == CELL_RNN && attr->count == 2))) {
    return attr->strings;
  }
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "attribute 'activations' should be %zu names, it has %zu "
                   "values",
                   wanted, attr->count);
  return NULL;
}

static void read_activations(pestle_onnx_call_t* call, layer_t* layer) {
  static const char* const usual[3][3] = {
      [CELL_RNN] = {"Tanh"},
      [CELL_GRU] = {"Sigmoid", "Tanh"},
      [CELL_LSTM] = {"Sigmoid", "Tanh", "Tanh"}};
  size_t each = layer->cell == CELL_LSTM ? 3 : layer->cell == CELL_GRU ? 2 : 1;
  const pestle_str_t* names = read_names(call, layer, each);
  numbers_t alphas = read_numbers(call, "activation_alpha");
  numbers_t betas = read_numbers(call, "activation_beta");
  for (size_t i = 0; i < each * (size_t)layer->directions; ++i) {
    pestle_str_t name =
        names ? names[i] : pestle_str(usual[layer->cell][i % each]);
    layer->activations[i / each][i % each] =
        parameterise(call, name, &alphas, &betas);
  }
}

// Lengths that all equal the time axis need no masks.
static void read_lengths(pestle_onnx_call_t* call, layer_t* layer) {
  pestle_value_t* lengths = pestle_onnx_input(call, 4);
  if (!lengths) return;
  const pestle_elements_t* known = pestle_value_constant(lengths);
  bool all = known != NULL;
  for (int64_t i = 0; all && i < pestle_type_count(&known->type); ++i) {
    all = pestle_onnx_element_i64(known, (size_t)i) == layer->time;
  }
  if (!all) layer->lengths = pestle_onnx_convert(call, lengths, PESTLE_I64);
}

// Y [time, directions, batch, hidden] from [time, batch, hidden] each.
static pestle_value_t* join_outputs(pestle_onnx_call_t* call,
                                    const layer_t* layer,
                                    pestle_value_t* const* ys) {
  int64_t dims[4] = {layer->time, 1, layer->batch, layer->hidden};
  pestle_value_t* parts[2];
  for (int64_t i = 0; i < layer->directions; ++i) {
    parts[i] = pestle_f_reshape(&call->f, ys[i], 4, dims);
  }
  pestle_value_t* y =
      pestle_f_concatenate(&call->f, parts, (size_t)layer->directions, 1);
  bool first = layer->batch_first;
  if (first) y = pestle_f_transpose(&call->f, y, PESTLE_I64S(2, 0, 1, 3).data);
  pestle_onnx_set_real(call, y, first ? 1 : 0, layer->steps);
  pestle_onnx_set_real(call, y, first ? 0 : 2, layer->rows);
  return pestle_onnx_end_real(call, y);
}

// [directions, batch, hidden] from [batch, hidden] each.
static pestle_value_t* join_states(pestle_onnx_call_t* call,
                                   const layer_t* layer,
                                   pestle_value_t* const* states) {
  int64_t dims[3] = {1, layer->batch, layer->hidden};
  pestle_value_t* parts[2];
  for (int64_t i = 0; i < layer->directions; ++i) {
    parts[i] = pestle_f_reshape(&call->f, states[i], 3, dims);
  }
  pestle_value_t* all =
      pestle_f_concatenate(&call->f, parts, (size_t)layer->directions, 0);
  if (layer->batch_first)
    all = pestle_f_transpose(&call->f, all, PESTLE_I64S(1, 0, 2).data);
  return end_rows(call, layer, all, layer->batch_first ? 0 : 1);
}

static void import_layer(pestle_onnx_call_t* call, cell_t cell,
                         bool quantises) {
  layer_t layer;
  pestle_str_t how = pestle_onnx_string(call, "direction", "forward");
  bool both = pestle_str_equal_c(how, "bidirectional");
  bool reverse = pestle_str_equal_c(how, "reverse");
  if (!read_layer(call, cell, &layer)) return;
  if (layer.directions != (both ? 2 : 1) ||
      (!both && !reverse && !pestle_str_equal_c(how, "forward"))) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'direction' is '%.*s', its weights are for "
                     "%lld directions",
                     PESTLE_STR_ARG(how), (long long)layer.directions);
    return;
  }
  layer.quantises = quantises;
  read_lengths(call, &layer);
  read_activations(call, &layer);
  pestle_value_t *ys[2], *hs[2], *cs[2];
  for (int64_t i = 0; i < layer.directions && !call->f.status; ++i) {
    state_t s = run_direction(call, &layer, i, both ? i == 1 : reverse);
    ys[i] = s.y;
    hs[i] = s.h;
    cs[i] = s.c;
  }
  if (call->f.status) return;
  if (pestle_onnx_wants(call, 0)) {
    call->outputs[0] = join_outputs(call, &layer, ys);
  }
  if (pestle_onnx_wants(call, 1)) {
    call->outputs[1] = join_states(call, &layer, hs);
  }
  if (cell == CELL_LSTM && pestle_onnx_wants(call, 2)) {
    call->outputs[2] = join_states(call, &layer, cs);
  }
}

void pestle_onnx_import_lstm(pestle_onnx_call_t* call) {
  import_layer(call, CELL_LSTM, false);
}

void pestle_onnx_import_quantised_lstm(pestle_onnx_call_t* call) {
  import_layer(call, CELL_LSTM, true);
}

void pestle_onnx_import_gru(pestle_onnx_call_t* call) {
  import_layer(call, CELL_GRU, false);
}

void pestle_onnx_import_rnn(pestle_onnx_call_t* call) {
  import_layer(call, CELL_RNN, false);
}
