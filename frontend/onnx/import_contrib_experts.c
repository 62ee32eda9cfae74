// SPDX-License-Identifier: Apache-2.0
// com.microsoft: mixtures of experts. A router weighs experts, the best few of a token
// count. Where no more are asked than there are, only their weights are read; else all
// experts see all tokens, and those that were not chosen weigh nothing.
#include <math.h>

#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/contrib.h"

// A layer of all experts: weights [e, n, k], or packed, and a bias [e, n] or NULL.
typedef struct fc_t {
  pestle_value_t *weights, *scales, *zeros, *bias;
  int64_t bits;  // of packed ones, else 0
} fc_t;

typedef struct experts_t {
  pestle_onnx_call_t* call;
  fc_t fc[3];
  int64_t tokens, experts, chosen, block;
  // Where weights are read of the chosen alone, which [tokens * chosen] they are.
  pestle_value_t* which;
} experts_t;

// --- Weights ---

static pestle_value_t* chosen_rows(const experts_t* m, pestle_value_t* x) {
  return m->which ? pestle_onnx_take(m->call, x, m->which, 0) : x;
}

// u8 whose last axis is packed, with |count| numbers along it.
static pestle_value_t* unpacked(const experts_t* m, pestle_value_t* x,
                                int64_t bits, int64_t count) {
  pestle_onnx_call_t* call = m->call;
  int64_t dims[PESTLE_MAX_RANK];
  int32_t last = rank_of(x) - 1;
  for (int32_t i = 0; i <= last; ++i)
    dims[i] = pestle_onnx_dim(x, i);
  dims[last] *= 8 / bits;
  x = pestle_onnx_unpack(call, x, bits, last + 1, dims);
  return pestle_onnx_slice_axis(call, x, last, 0, count, 1);
}

// Weights [e or chosen, n, k] in f32, of which each |m->block| along k, or each row, has a
// scale and a zero point.
static pestle_value_t* weights_of(const experts_t* m, const fc_t* fc) {
  pestle_onnx_call_t* call = m->call;
  pestle_value_t* w = chosen_rows(m, fc->weights);
  if (!w || !fc->bits) return pestle_onnx_convert(call, w, PESTLE_F32);
  int64_t e = pestle_onnx_dim(w, 0), n = pestle_onnx_dim(w, 1);
  int64_t k = pestle_onnx_dim(w, 2) * (8 / fc->bits);
  int64_t blocks = m->block ? k / m->block : 1;
  const int64_t whole[3] = {e, n, k}, parts[4] = {e, n, blocks, k / blocks};
  const int64_t each[4] = {e, n, blocks, 1};
  w = pestle_onnx_convert(call, unpacked(m, w, fc->bits, k), PESTLE_F32);
  w = pestle_f_reshape(&call->f, w, 4, parts);
  if (fc->zeros) {
    bool rows = rank_of(fc->zeros) == 2;
    pestle_value_t* z =
        unpacked(m, chosen_rows(m, fc->zeros), fc->bits, rows ? n : blocks);
    z = pestle_onnx_convert(call, z, PESTLE_F32);
    w = sub(call, w, pestle_f_reshape(&call->f, z, 4, each));
  } else {
    w = pestle_onnx_binary_f(call, PESTLE_OP_SUBTRACT, w,
                             (double)(1 << (fc->bits - 1)));
  }
  pestle_value_t* s =
      pestle_onnx_convert(call, chosen_rows(m, fc->scales), PESTLE_F32);
  w = mul(call, w, pestle_f_reshape(&call->f, s, 4, each));
  return pestle_f_reshape(&call->f, w, 3, whole);
}

// x [e, t, k] by the layer's weights, and its bias: [e, t, n].
static pestle_value_t* layer(const experts_t* m, const fc_t* fc,
                             pestle_value_t* x) {
  static const int64_t batch = 0, last = 2;
  pestle_onnx_call_t* call = m->call;
  pestle_value_t* y =
      pestle_onnx_dot(call, x, weights_of(m, fc), (pestle_i64s_t){&batch, 1},
                      (pestle_i64s_t){&batch, 1}, (pestle_i64s_t){&last, 1},
                      (pestle_i64s_t){&last, 1}, PESTLE_F32);
  if (!fc->bias) return y;
  pestle_value_t* bias =
      pestle_onnx_convert(call, chosen_rows(m, fc->bias), PESTLE_F32);
  const int64_t dims[3] = {pestle_onnx_dim(bias, 0), 1,
                           pestle_onnx_dim(bias, 1)};
  return add(call, y, pestle_f_reshape(&call->f, bias, 3, dims));
}

// --- Activations ---

// min(gate, limit) * sigmoid(alpha gate) * (clamp(linear, limit) + beta).
static pestle_value_t* swiglu(pestle_onnx_call_t* call, pestle_value_t* gate,
                              pestle_value_t* linear) {
  double alpha = pestle_onnx_float(call, "activation_alpha", 1);
  double beta = pestle_onnx_float(call, "activation_beta", 0);
  if (pestle_onnx_has(call, "swiglu_limit")) {
    double limit = pestle_onnx_float(call, "swiglu_limit", 0);
    gate = pestle_onnx_binary_f(call, PESTLE_OP_MINIMUM, gate, limit);
    linear = pestle_onnx_binary_f(call, PESTLE_OP_MINIMUM, linear, limit);
    linear = pestle_onnx_binary_f(call, PESTLE_OP_MAXIMUM, linear, -limit);
  }
  gate = mul(call, gate, pestle_f_logistic(&call->f, times(call, gate, alpha)));
  return mul(call, gate,
             pestle_onnx_binary_f(call, PESTLE_OP_ADD, linear, beta));
}

// Both halves of the last axis, in turns or one behind the other.
static pestle_value_t* fused_swiglu(pestle_onnx_call_t* call, pestle_value_t* x,
                                    bool in_turns) {
  int64_t all = pestle_onnx_dim(x, 2), half = all / 2;
  pestle_value_t* gate = in_turns
                             ? pestle_onnx_slice_axis(call, x, 2, 0, all, 2)
                             : pestle_onnx_slice_axis(call, x, 2, 0, half, 1);
  pestle_value_t* linear =
      in_turns ? pestle_onnx_slice_axis(call, x, 2, 1, all, 2)
               : pestle_onnx_slice_axis(call, x, 2, half, all, 1);
  return swiglu(call, gate, linear);
}

static pestle_value_t* activated(pestle_onnx_call_t* call, pestle_str_t name,
                                 pestle_value_t* x) {
  pestle_attr_t exact = PESTLE_SET_BOOL(approximate, false);
  if (pestle_str_equal_c(name, "identity")) return x;
  if (pestle_str_equal_c(name, "relu"))
    return pestle_onnx_binary_f(call, PESTLE_OP_MAXIMUM, x, 0);
  if (pestle_str_equal_c(name, "gelu"))
    return pestle_f_make(&call->f, PESTLE_OP_GELU, &x, 1, &exact, 1, NULL);
  if (pestle_str_equal_c(name, "silu"))
    return pestle_f_unary(&call->f, PESTLE_OP_SILU, x);
  return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                          "attribute 'activation_type' is '%.*s'; known are "
                          "relu, gelu, silu, swiglu and identity",
                          PESTLE_STR_ARG(name));
}

static pestle_value_t* between(const experts_t* m, pestle_value_t* x) {
  pestle_onnx_call_t* call = m->call;
  pestle_str_t name = pestle_onnx_string(call, "activation_type", "relu");
  int64_t fusion = pestle_onnx_int(call, "swiglu_fusion", 0);
  bool glu = pestle_str_equal_c(name, "swiglu");
  bool third = m->fc[2].weights != NULL;
  pestle_value_t* y = layer(m, &m->fc[0], x);
  if (glu && fusion && !third) return fused_swiglu(call, y, fusion == 1);
  if (glu != (third && !fusion) && (glu || fusion)) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "swiglu wants a third layer, or a swiglu_fusion "
                            "and none");
  }
  if (glu) return swiglu(call, y, layer(m, &m->fc[2], x));
  y = activated(call, name, y);
  return third ? mul(call, y, layer(m, &m->fc[2], x)) : y;
}

// --- The router ---

// The weights of the chosen experts [tokens, chosen] and which they are, of the
// scores [tokens, experts] and, if they are not their softmax, |mix|.
static bool route(const experts_t* m, pestle_value_t* scores,
                  pestle_value_t* mix, pestle_value_t** out_weights,
                  pestle_value_t** out_which) {
  pestle_onnx_call_t* call = m->call;
  pestle_value_t *best[2], *in[2];
  const int64_t last = 1;
  scores = pestle_onnx_convert(call, scores, PESTLE_F32);
  in[0] =
      mix ? scores : pestle_onnx_softmax(call, PESTLE_OP_SOFTMAX, scores, 1);
  in[1] = pestle_onnx_int_list(call, &m->chosen, 1);
  const pestle_onnx_part_t part = {.fn = pestle_onnx_import_top_k,
                                   .opset = PESTLE_ONNX_LAST_OPSET,
                                   .inputs = in,
                                   .input_count = 2};
  if (!pestle_onnx_import_part(call, &part, best, 2)) return false;
  pestle_value_t* weights = best[0];
  if (mix) {
    in[0] = pestle_onnx_convert(call, mix, PESTLE_F32);
    in[1] = best[1];
    const pestle_onnx_attr_t axis = pestle_onnx_make_int("axis", 1);
    weights = pestle_onnx_part(call, pestle_onnx_import_gather_elements, in, 2,
                               &axis, 1);
  }
  if (pestle_onnx_int(call, "normalize_routing_weights", 0)) {
    pestle_value_t* sum =
        pestle_onnx_reduce(call, PESTLE_OP_ADD, weights, &last, 1, true);
    weights = quotient(call, weights, sum);
  }
  *out_weights = weights;
  *out_which = best[1];
  return !call->f.status;
}

// [tokens, experts]: what each weighs, 0 if it is not chosen.
static pestle_value_t* spread_weights(const experts_t* m,
                                      pestle_value_t* weights,
                                      pestle_value_t* which) {
  pestle_onnx_call_t* call = m->call;
  const pestle_type_t type = {.dtype = PESTLE_I64,
                              .rank = 3,
                              .dims = {m->tokens, m->chosen, m->experts}};
  const int64_t dims[3] = {m->tokens, m->chosen, 1}, chosen = 1;
  which = pestle_f_reshape(&call->f, which, 3, dims);
  weights = pestle_f_reshape(&call->f, weights, 3, dims);
  pestle_value_t* same =
      pestle_f_eq(&call->f, pestle_f_iota(&call->f, &type, 2), which);
  pestle_value_t* x =
      mul(call, pestle_onnx_convert(call, same, PESTLE_F32), weights);
  return pestle_onnx_reduce(call, PESTLE_OP_ADD, x, &chosen, 1, false);
}

// --- The mixture ---

// Rows [tokens, hidden] of each token, by its experts alone.
static pestle_value_t* mix_chosen(experts_t* m, pestle_value_t* x,
                                  pestle_value_t* weights,
                                  pestle_value_t* which) {
  pestle_onnx_call_t* call = m->call;
  int64_t hidden = pestle_onnx_dim(x, 1), pairs = m->tokens * m->chosen;
  const int64_t wide[3] = {m->tokens, m->chosen, hidden};
  const int64_t one[3] = {m->tokens, 1, hidden}, rows[3] = {pairs, 1, hidden};
  const int64_t each[3] = {m->tokens, m->chosen, 1}, chosen = 1;
  m->which = pestle_f_reshape(&call->f, which, 1, &pairs);
  x = pestle_onnx_broadcast(call, pestle_f_reshape(&call->f, x, 3, one), 3,
                            wide);
  x = between(m, pestle_f_reshape(&call->f, x, 3, rows));
  pestle_value_t* y = layer(m, &m->fc[1], x);
  const int64_t out[3] = {m->tokens, m->chosen, pestle_onnx_dim(y, 2)};
  y = pestle_f_reshape(&call->f, y, 3, out);
  y = mul(call, y, pestle_f_reshape(&call->f, weights, 3, each));
  return pestle_onnx_reduce(call, PESTLE_OP_ADD, y, &chosen, 1, false);
}

static pestle_value_t* mix_all(experts_t* m, pestle_value_t* x,
                               pestle_value_t* weights, pestle_value_t* which) {
  static const int64_t swap[2] = {1, 0}, first = 0;
  pestle_onnx_call_t* call = m->call;
  const int64_t one[3] = {1, m->tokens, pestle_onnx_dim(x, 1)};
  const int64_t wide[3] = {m->experts, m->tokens, one[2]};
  const int64_t each[3] = {m->experts, m->tokens, 1};
  weights = spread_weights(m, weights, which);
  x = pestle_onnx_broadcast(call, pestle_f_reshape(&call->f, x, 3, one), 3,
                            wide);
  pestle_value_t* y = layer(m, &m->fc[1], between(m, x));
  weights = pestle_f_transpose(&call->f, weights, swap);
  y = mul(call, y, pestle_f_reshape(&call->f, weights, 3, each));
  return pestle_onnx_reduce(call, PESTLE_OP_ADD, y, &first, 1, false);
}

static bool fits(const experts_t* m, const fc_t* fc, int64_t inputs) {
  const pestle_value_t* w = fc->weights;
  int64_t each = fc->bits ? 8 / fc->bits : 1;
  int64_t rows = pestle_onnx_dim(w, 1), k = pestle_onnx_dim(w, 2) * each;
  int64_t scales = rows * m->experts * (m->block ? k / m->block : 1);
  if (rank_of(w) != 3 || pestle_onnx_dim(w, 0) != m->experts || k != inputs ||
      k < 1 || (m->block && k % m->block)) {
    return false;
  }
  if (fc->bias && (rank_of(fc->bias) != 2 ||
                   pestle_type_count(fc->bias->type) != rows * m->experts)) {
    return false;
  }
  return !fc->bits || (dtype_of(w) == PESTLE_U8 && fc->scales &&
                       pestle_type_count(fc->scales->type) == scales);
}

static void mixture(experts_t* m, pestle_value_t* mix) {
  pestle_onnx_call_t* call = m->call;
  pestle_value_t *x = call->inputs[0], *scores = call->inputs[1];
  int32_t rank = rank_of(x);
  int64_t hidden = pestle_onnx_dim(x, rank - 1);
  int64_t fused = pestle_onnx_int(call, "swiglu_fusion", 0) ? 2 : 1;
  m->chosen = pestle_onnx_int(call, "k", 1);
  m->experts = pestle_onnx_dim(scores, 1);
  m->tokens = pestle_onnx_dims_product(x, 0, rank - 1);
  int64_t inner = pestle_onnx_dim(m->fc[0].weights, 1) / fused;
  bool right = (rank == 2 || rank == 3) && rank_of(scores) == 2 &&
               pestle_onnx_dim(scores, 0) == m->tokens && m->chosen >= 1 &&
               m->chosen <= m->experts && fits(m, &m->fc[0], hidden) &&
               fits(m, &m->fc[1], inner) &&
               (!m->fc[2].weights || fits(m, &m->fc[2], hidden));
  if (!right) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its layers, scales or biases do not fit %lld experts, of "
                     "which %lld are chosen, over %lld tokens of %lld",
                     (long long)m->experts, (long long)m->chosen,
                     (long long)m->tokens, (long long)hidden);
    return;
  }
  const int64_t flat[2] = {m->tokens, hidden};
  pestle_value_t *weights, *which;
  if (!route(m, scores, mix, &weights, &which)) return;
  pestle_value_t* rows = pestle_onnx_convert(
      call, pestle_f_reshape(&call->f, x, 2, flat), PESTLE_F32);
  pestle_value_t* y = m->tokens * m->chosen <= m->experts
                          ? mix_chosen(m, rows, weights, which)
                          : mix_all(m, rows, weights, which);
  y = pestle_f_reshape(&call->f, y, rank, pestle_onnx_type(x)->dims);
  call->outputs[0] = pestle_onnx_convert(call, y, dtype_of(x));
}

// Inputs: rows, scores, weights and bias of three layers.
void pestle_onnx_import_moe(pestle_onnx_call_t* call) {
  experts_t m = {.call = call};
  if (!pestle_onnx_takes(call,
                         "activation_alpha activation_beta activation_type k "
                         "normalize_routing_weights swiglu_fusion "
                         "swiglu_limit use_sparse_mixer") ||
      !pestle_onnx_takes_only(call, "use_sparse_mixer", 0,
                              "it is one device's router")) {
    return;
  }
  for (size_t i = 0; i < 3; ++i) {
    m.fc[i].weights = pestle_onnx_input(call, 2 + 2 * i);
    m.fc[i].bias = pestle_onnx_input(call, 3 + 2 * i);
  }
  mixture(&m, NULL);
}

// Inputs: rows, scores, weights, scales and bias of three layers, their zero points, what
// experts weigh, and what other kinds of quantisation have.
void pestle_onnx_import_qmoe(pestle_onnx_call_t* call) {
  enum { LAYERS = 2, ZEROS = 11, MIX = 14, OTHERS = 15, LAST = 21 };
  static const char* const widths[] = {"fc1_expert_weight_bits",
                                       "fc2_expert_weight_bits",
                                       "fc3_expert_weight_bits"};
  experts_t m = {.call = call};
  if (!pestle_onnx_takes(
          call,
          "accuracy_level activation_alpha activation_beta activation_type "
          "block_size expert_weight_bits fc1_expert_weight_bits "
          "fc2_expert_weight_bits fc3_expert_weight_bits k "
          "normalize_routing_weights quant_type swiglu_fusion swiglu_limit "
          "use_sparse_mixer weights_prepacked") ||
      !pestle_onnx_takes_only(call, "use_sparse_mixer", 0,
                              "it is one device's router")) {
    return;
  }
  pestle_str_t kind = pestle_onnx_string(call, "quant_type", "int");
  if (!pestle_str_equal_c(kind, "int") ||
      pestle_onnx_int(call, "weights_prepacked", -1) > 0) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute 'quant_type' is '%.*s' or 'weights_prepacked' "
                     "is set; integers as they are quantised are supported",
                     PESTLE_STR_ARG(kind));
  }
  for (size_t i = OTHERS; i < LAST; ++i)
    pestle_onnx_takes_no_input(call, i, "a scale", "weights are integers");
  m.block = pestle_onnx_int(call, "block_size", 0);
  int64_t bits = pestle_onnx_int(call, "expert_weight_bits", 4);
  for (size_t i = 0; i < 3; ++i) {
    m.fc[i] = (fc_t){.weights = pestle_onnx_input(call, LAYERS + 3 * i),
                     .scales = pestle_onnx_input(call, LAYERS + 1 + 3 * i),
                     .bias = pestle_onnx_input(call, LAYERS + 2 + 3 * i),
                     .zeros = pestle_onnx_input(call, ZEROS + i),
                     .bits = pestle_onnx_int(call, widths[i], bits)};
    int64_t own = m.fc[i].bits;
    if (m.block >= 0 && m.block <= INT32_MAX &&
        (own == 2 || own == 4 || own == 8)) {
      continue;
    }
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "its weights have %lld bits in blocks of %lld; known are "
                     "2, 4 and 8",
                     (long long)own, (long long)m.block);
  }
  if (!call->f.status) mixture(&m, pestle_onnx_input(call, MIX));
}
