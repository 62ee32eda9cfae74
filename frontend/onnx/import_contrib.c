// SPDX-License-Identifier: Apache-2.0
// com.microsoft: activations with a bias, products and convolutions with an
// activation, normalisations of sums, embeddings: what ONNX Runtime's optimiser joins.
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/contrib.h"

// --- Activations ---

static pestle_value_t* gelu(pestle_onnx_call_t* call, pestle_value_t* x,
                            bool approximate) {
  pestle_attr_t attr = PESTLE_SET_BOOL(approximate, approximate);
  return pestle_f_make(&call->f, PESTLE_OP_GELU, &x, 1, &attr, 1, NULL);
}

void pestle_onnx_import_contrib_gelu(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "")) return;
  call->outputs[0] = gelu(call, call->inputs[0], false);
}

void pestle_onnx_import_bias_gelu(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "")) return;
  pestle_value_t* x = add(call, call->inputs[0], call->inputs[1]);
  call->outputs[0] = gelu(call, x, false);
}

void pestle_onnx_import_fast_gelu(pestle_onnx_call_t* call) {
  pestle_value_t *x = call->inputs[0], *bias = pestle_onnx_input(call, 1);
  if (!pestle_onnx_takes(call, "")) return;
  if (bias) x = add(call, x, bias);
  call->outputs[0] = gelu(call, x, true);
}

void pestle_onnx_import_quick_gelu(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  if (!pestle_onnx_takes(call, "alpha")) return;
  double alpha = pestle_onnx_float(call, "alpha", 1.702);
  call->outputs[0] =
      mul(call, x, pestle_f_logistic(&call->f, times(call, x, alpha)));
}

void pestle_onnx_import_bias_add(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "")) return;
  pestle_value_t* x = add(call, call->inputs[0], call->inputs[1]);
  call->outputs[0] = add(call, x, call->inputs[2]);
}

// The first half of the last axis times the gelu of the second.
void pestle_onnx_import_bias_split_gelu(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "")) return;
  pestle_value_t* x = add(call, call->inputs[0], call->inputs[1]);
  int64_t last = rank_of(x) - 1, half = pestle_onnx_dim(x, last) / 2;
  pestle_value_t* gate = gelu(
      call, pestle_onnx_slice_axis(call, x, last, half, 2 * half, 1), false);
  call->outputs[0] =
      mul(call, pestle_onnx_slice_axis(call, x, last, 0, half, 1), gate);
}

// --- Products ---

// |x| as FusedMatMul reads it: |batch|: its first axis is that of rows, behind those of
// batches; |transpose|: its last two change places.
static pestle_value_t* arrange(pestle_onnx_call_t* call, pestle_value_t* x,
                               const char* transpose, const char* batch) {
  int32_t rank = rank_of(x);
  bool swaps = pestle_onnx_int(call, transpose, 0) != 0;
  bool moves = batch && pestle_onnx_int(call, batch, 0) != 0;
  int64_t order[PESTLE_MAX_RANK];
  if (rank < 2 || (!swaps && !moves)) return x;
  for (int32_t i = 0; i < rank; ++i)
    order[i] = moves && i < rank - 1 ? (i + 1) % (rank - 1) : i;
  if (swaps) {
    int64_t last = order[rank - 1];
    order[rank - 1] = order[rank - 2];
    order[rank - 2] = last;
  }
  return pestle_onnx_transpose_real(call, x, order);
}

static void fused_matmul(pestle_onnx_call_t* call, bool batches) {
  pestle_value_t* both[2];
  both[0] =
      arrange(call, call->inputs[0], "transA", batches ? "transBatchA" : NULL);
  both[1] =
      arrange(call, call->inputs[1], "transB", batches ? "transBatchB" : NULL);
  pestle_value_t* y =
      pestle_onnx_part(call, pestle_onnx_import_matmul, both, 2, NULL, 0);
  double alpha = pestle_onnx_float(call, "alpha", 1);
  pestle_value_t* scaled = alpha == 1 ? y : times(call, y, alpha);
  pestle_onnx_copy_real(call, scaled, y);
  call->outputs[0] = scaled;
}

void pestle_onnx_import_fused_matmul(pestle_onnx_call_t* call) {
  if (pestle_onnx_takes(call, "alpha transA transB transBatchA transBatchB"))
    fused_matmul(call, true);
}

void pestle_onnx_import_transpose_matmul(pestle_onnx_call_t* call) {
  if (pestle_onnx_takes(call, "alpha transA transB")) fused_matmul(call, false);
}

// --- An activation behind another op ---

// The activation that |name| says, with |alpha| and |beta|; |x| without one.
static pestle_value_t* activate(pestle_onnx_call_t* call, pestle_str_t name,
                                double alpha, double beta, pestle_value_t* x) {
  if (!name.size) return x;
  if (pestle_str_equal_c(name, "Clip")) {
    x = pestle_onnx_binary_f(call, PESTLE_OP_MAXIMUM, x, alpha);
    return pestle_onnx_binary_f(call, PESTLE_OP_MINIMUM, x, beta);
  }
  if (pestle_str_equal_c(name, "Gelu")) return gelu(call, x, false);
  return pestle_onnx_activation(call, name, alpha, beta, x);
}

// alpha and beta of the activation |name| where the node does not say them.
static void usual_parameters(pestle_str_t name, double* alpha, double* beta) {
  *alpha = pestle_str_equal_c(name, "LeakyRelu")     ? 0.01
           : pestle_str_equal_c(name, "HardSigmoid") ? 0.2
                                                     : 1;
  *beta = pestle_str_equal_c(name, "HardSigmoid") ? 0.5 : 0;
}

void pestle_onnx_import_fused_gemm(pestle_onnx_call_t* call) {
  double alpha, beta;
  if (!pestle_onnx_takes(call,
                         "alpha beta transA transB activation activation_alpha "
                         "activation_beta activation_gamma")) {
    return;
  }
  pestle_str_t name = pestle_onnx_string(call, "activation", "");
  usual_parameters(name, &alpha, &beta);
  alpha = pestle_onnx_float(call, "activation_alpha", alpha);
  beta = pestle_onnx_float(call, "activation_beta", beta);
  pestle_value_t* y = pestle_onnx_part(
      call, pestle_onnx_import_gemm, call->inputs, call->input_count, NULL, 0);
  pestle_value_t* z = activate(call, name, alpha, beta, y);
  pestle_onnx_copy_real(call, z, y);
  call->outputs[0] = z;
}

// conv(x, w) + b + z, activated; |last|: channels are the last axis of x, z and the
// result.
static void fused_conv(pestle_onnx_call_t* call, bool last) {
  double parameters[2];
  if (!pestle_onnx_takes(call,
                         "auto_pad dilations group kernel_shape pads strides "
                         "activation activation_params")) {
    return;
  }
  pestle_str_t name = pestle_onnx_string(call, "activation", "");
  usual_parameters(name, &parameters[0], &parameters[1]);
  const pestle_onnx_attr_t* given =
      pestle_onnx_node_attr(call->node, "activation_params");
  for (size_t i = 0; given && i < given->count && i < 2; ++i) {
    if (given->kind == PESTLE_ONNX_ATTR_FLOATS)
      parameters[i] = (double)given->floats[i];
  }
  pestle_value_t* in[3] = {call->inputs[0], call->inputs[1],
                           pestle_onnx_input(call, 2)};
  pestle_value_t* sum = pestle_onnx_input(call, 3);
  if (last) in[0] = pestle_onnx_channels_second(call, in[0]);
  pestle_value_t* y = pestle_onnx_part(call, pestle_onnx_import_conv, in,
                                       in[2] ? 3 : 2, NULL, 0);
  if (last) y = pestle_onnx_channels_last(call, y);
  if (sum) y = add(call, y, sum);
  call->outputs[0] = activate(call, name, parameters[0], parameters[1], y);
}

void pestle_onnx_import_fused_conv(pestle_onnx_call_t* call) {
  fused_conv(call, false);
}

void pestle_onnx_import_nhwc_fused_conv(pestle_onnx_call_t* call) {
  fused_conv(call, true);
}

void pestle_onnx_import_nhwc_max_pool(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(
          call, "auto_pad ceil_mode dilations kernel_shape pads strides")) {
    return;
  }
  pestle_value_t* x = pestle_onnx_channels_second(call, call->inputs[0]);
  x = pestle_onnx_part(call, pestle_onnx_import_max_pool, &x, 1, NULL, 0);
  call->outputs[0] = pestle_onnx_channels_last(call, x);
}

// --- Normalisations ---

// 1 / sqrt(mean of squares + epsilon) over axis |axis| and those behind it, in f32.
static pestle_value_t* inverse_rms(pestle_onnx_call_t* call, pestle_value_t* x,
                                   int64_t axis, double epsilon) {
  int64_t axes[PESTLE_MAX_RANK], count = 0;
  pestle_value_t* wide = pestle_onnx_convert(
      call, x, dtype_of(x) == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32);
  for (int64_t i = axis; i < rank_of(x); ++i)
    axes[count++] = i;
  pestle_value_t* sum = pestle_onnx_reduce(
      call, PESTLE_OP_ADD, mul(call, wide, wide), axes, (size_t)count, true);
  double elements = (double)pestle_onnx_dims_product(x, axis, rank_of(x));
  sum = pestle_onnx_binary_f(call, PESTLE_OP_DIVIDE, sum, elements);
  return pestle_f_rsqrt(
      &call->f, pestle_onnx_binary_f(call, PESTLE_OP_ADD, sum, epsilon));
}

// In the default domain: an op of ONNX Runtime's, from before RMSNormalization.
void pestle_onnx_import_simplified_layer_norm(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "axis epsilon stash_type")) return;
  pestle_value_t* x = call->inputs[0];
  int64_t axis =
      pestle_onnx_axis(call, pestle_onnx_int(call, "axis", -1), rank_of(x));
  call->outputs[0] = pestle_onnx_part(call, pestle_onnx_import_rms_norm,
                                      call->inputs, 2, NULL, 0);
  if (pestle_onnx_wants(call, 1)) {
    call->outputs[1] =
        inverse_rms(call, x, axis, pestle_onnx_float(call, "epsilon", 1e-5));
  }
}

// What a normalisation of com.microsoft adds to a variance unless the node says it.
#define USUAL_EPSILON 1e-12

// x + skip, and |bias| (may be NULL).
static pestle_value_t* sum_of(pestle_onnx_call_t* call, pestle_value_t* bias) {
  pestle_value_t* x = call->inputs[0];
  pestle_value_t* sum = add(call, x, call->inputs[1]);
  if (sum && pestle_onnx_type(sum)->rank != rank_of(x)) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "its input 1 has more axes than its input 0");
  }
  if (bias) sum = add(call, sum, bias);
  pestle_onnx_copy_real(call, sum, x);
  return sum;
}

void pestle_onnx_import_skip_layer_norm(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "epsilon")) return;
  pestle_value_t* sum = sum_of(call, pestle_onnx_input(call, 4));
  pestle_value_t* in[3] = {sum, call->inputs[2], pestle_onnx_input(call, 3)};
  const pestle_onnx_attr_t epsilon = pestle_onnx_make_float(
      "epsilon", pestle_onnx_float(call, "epsilon", USUAL_EPSILON));
  size_t results = pestle_onnx_wants(call, 1) || pestle_onnx_wants(call, 2)
                       ? call->output_count
                       : 1;
  pestle_value_t* out[3] = {NULL, NULL, NULL};
  const pestle_onnx_part_t part = {.fn = pestle_onnx_import_layer_norm,
                                   .opset = PESTLE_ONNX_LAST_OPSET,
                                   .inputs = in,
                                   .input_count = in[2] ? 3 : 2,
                                   .attrs = &epsilon,
                                   .attr_count = 1};
  if (!pestle_onnx_import_part(call, &part, out, results > 1 ? 3 : 1)) return;
  for (size_t i = 0; i < 3 && i < call->output_count; ++i)
    call->outputs[i] = out[i];
  if (call->output_count > 3) call->outputs[3] = sum;
}

void pestle_onnx_import_skip_simplified_layer_norm(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "epsilon")) return;
  double epsilon = pestle_onnx_float(call, "epsilon", USUAL_EPSILON);
  pestle_value_t* sum = sum_of(call, pestle_onnx_input(call, 3));
  pestle_value_t* in[2] = {sum, call->inputs[2]};
  const pestle_onnx_attr_t attr = pestle_onnx_make_float("epsilon", epsilon);
  call->outputs[0] =
      pestle_onnx_part(call, pestle_onnx_import_rms_norm, in, 2, &attr, 1);
  if (pestle_onnx_wants(call, 1)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "output 1, mean, is none of a norm by squares");
  }
  if (pestle_onnx_wants(call, 2))
    call->outputs[2] = inverse_rms(call, sum, rank_of(sum) - 1, epsilon);
  if (call->output_count > 3) call->outputs[3] = sum;
}

// N...C in groups of channels, with a Swish behind it if |activation| is 1.
static pestle_value_t* group_norm(pestle_onnx_call_t* call, pestle_value_t* x,
                                  pestle_value_t* gamma, pestle_value_t* beta) {
  int64_t last = pestle_onnx_int(call, "channels_last", 1);
  int64_t swish = pestle_onnx_int(call, "activation", 0);
  const pestle_onnx_attr_t attrs[] = {
      pestle_onnx_make_int("num_groups", pestle_onnx_int(call, "groups", 0)),
      pestle_onnx_make_float("epsilon",
                             pestle_onnx_float(call, "epsilon", 1e-5))};
  if (swish != 0 && swish != 1) {
    return pestle_onnx_fail(
        call, PESTLE_STATUS_UNSUPPORTED,
        "attribute 'activation' is %lld; known are 0, none, "
        "and 1, Swish",
        (long long)swish);
  }
  pestle_dtype_t dtype = dtype_of(x);
  pestle_value_t* in[3] = {last ? pestle_onnx_channels_second(call, x) : x,
                           pestle_onnx_convert(call, gamma, PESTLE_F32),
                           pestle_onnx_convert(call, beta, PESTLE_F32)};
  in[0] = pestle_onnx_convert(call, in[0], PESTLE_F32);
  pestle_value_t* y =
      pestle_onnx_part(call, pestle_onnx_import_group_norm, in, 3, attrs, 2);
  if (swish) y = mul(call, y, pestle_f_logistic(&call->f, y));
  y = pestle_onnx_convert(call, y, dtype);
  return last ? pestle_onnx_channels_last(call, y) : y;
}

void pestle_onnx_import_contrib_group_norm(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "activation channels_last epsilon groups"))
    return;
  call->outputs[0] =
      group_norm(call, call->inputs[0], call->inputs[1], call->inputs[2]);
}

// x + skip + bias; skip is [n, c], [n, 1, 1, c] or as x.
void pestle_onnx_import_skip_group_norm(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "activation channels_last epsilon groups"))
    return;
  pestle_value_t *x = call->inputs[0], *skip = call->inputs[3];
  pestle_value_t* bias = pestle_onnx_input(call, 4);
  bool last = pestle_onnx_int(call, "channels_last", 1) != 0;
  if (rank_of(skip) == 2 && rank_of(x) == 4) {
    int64_t n = pestle_onnx_dim(skip, 0), c = pestle_onnx_dim(skip, 1);
    const int64_t dims[4] = {n, last ? 1 : c, 1, last ? c : 1};
    skip = pestle_f_reshape(&call->f, skip, 4, dims);
  }
  x = add(call, x, skip);
  if (bias)
    x = add(call, x,
            pestle_onnx_along(call, bias, x, last ? rank_of(x) - 1 : 1));
  call->outputs[0] = group_norm(call, x, call->inputs[1], call->inputs[2]);
  if (pestle_onnx_wants(call, 1)) call->outputs[1] = x;
}

// --- Embeddings ---

static pestle_value_t* embed(pestle_onnx_call_t* call, pestle_value_t* table,
                             pestle_value_t* ids) {
  return pestle_onnx_take(call, table, ids, 0);
}

// How many elements of each row of the mask are 1; zeros without one.
static pestle_value_t* count_mask(pestle_onnx_call_t* call,
                                  pestle_value_t* mask, int64_t batch) {
  const pestle_type_t type = {.dtype = PESTLE_I32, .rank = 1, .dims = {batch}};
  const int64_t last = 1;
  if (!mask) return pestle_onnx_splat_int(call, &type, 0);
  pestle_value_t* ones = pestle_onnx_convert(
      call, pestle_onnx_binary_f(call, PESTLE_OP_EQ, mask, 1), PESTLE_I32);
  return pestle_onnx_reduce(call, PESTLE_OP_ADD, ones, &last, 1, false);
}

// Inputs: ids, segments, the three tables, gamma, beta, mask, positions.
void pestle_onnx_import_embed_layer_norm(pestle_onnx_call_t* call) {
  enum { IDS, SEGMENTS, WORDS, PLACES, KINDS, GAMMA, BETA, MASK, POSITIONS };
  if (!pestle_onnx_takes(call, "epsilon mask_index_type")) return;
  pestle_value_t *ids = call->inputs[IDS], *in[POSITIONS + 1];
  for (size_t i = 0; i <= POSITIONS; ++i)
    in[i] = pestle_onnx_input(call, i);
  if (!in[WORDS] || !in[PLACES] || !in[GAMMA] || !in[BETA] ||
      rank_of(ids) != 2 || rank_of(in[WORDS]) != 2 ||
      rank_of(in[PLACES]) != 2) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it needs input_ids [batch, sequence], tables of words "
                     "and positions of rank 2, gamma and beta");
    return;
  }
  int64_t batch = pestle_onnx_dim(ids, 0), rows = pestle_onnx_dim(ids, 1);
  if (!in[POSITIONS] && rows > pestle_onnx_dim(in[PLACES], 0)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "a sequence of %lld is longer than its table of %lld "
                     "positions",
                     (long long)rows,
                     (long long)pestle_onnx_dim(in[PLACES], 0));
    return;
  }
  pestle_value_t* place =
      in[POSITIONS] ? embed(call, in[PLACES], in[POSITIONS])
                    : pestle_onnx_slice_axis(call, in[PLACES], 0, 0, rows, 1);
  pestle_value_t* sum = add(call, embed(call, in[WORDS], ids), place);
  if (in[SEGMENTS] && in[KINDS])
    sum = add(call, sum, embed(call, in[KINDS], in[SEGMENTS]));
  pestle_value_t* norm[3] = {sum, in[GAMMA], in[BETA]};
  const pestle_onnx_attr_t epsilon = pestle_onnx_make_float(
      "epsilon", pestle_onnx_float(call, "epsilon", USUAL_EPSILON));
  call->outputs[0] = pestle_onnx_part(call, pestle_onnx_import_layer_norm, norm,
                                      3, &epsilon, 1);
  if (pestle_onnx_wants(call, 1))
    call->outputs[1] = count_mask(call, in[MASK], batch);
  if (pestle_onnx_wants(call, 2)) call->outputs[2] = sum;
}
