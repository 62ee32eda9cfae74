// SPDX-License-Identifier: Apache-2.0
// com.microsoft: ops of quantised tensors, as the ops of real numbers between
// DequantizeLinear and QuantizeLinear, and products of integers.
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/contrib.h"

// The real numbers that input |x| stands for, by inputs |scale| and |zero|, which may be
// missing; |axis|: that of lists of both.
static pestle_value_t* real_along(pestle_onnx_call_t* call, size_t x,
                                  size_t scale, size_t zero, int64_t axis) {
  pestle_value_t* in[3] = {pestle_onnx_input(call, x),
                           pestle_onnx_input(call, scale),
                           pestle_onnx_input(call, zero)};
  const pestle_onnx_attr_t attrs[] = {pestle_onnx_make_int("axis", axis),
                                      pestle_onnx_make_int("block_size", 0)};
  if (!in[0] || !in[1]) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "it has no input %zu or no input %zu, its scale", x,
                            scale);
  }
  return pestle_onnx_part(call, pestle_onnx_import_dequantize_linear, in,
                          in[2] ? 3 : 2, attrs, 2);
}

static pestle_value_t* real_of(pestle_onnx_call_t* call, size_t x, size_t scale,
                               size_t zero) {
  return real_along(call, x, scale, zero, 0);
}

// |y| by inputs |scale| and |zero|, as numbers like those of input |like|.
static void quantise(pestle_onnx_call_t* call, pestle_value_t* y, size_t scale,
                     size_t zero, size_t like) {
  pestle_value_t* by = pestle_onnx_input(call, scale);
  if (!by) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it has no input %zu, the scale of its result", scale);
    return;
  }
  call->outputs[0] =
      pestle_onnx_quantize(call, y, by, pestle_onnx_input(call, zero),
                           dtype_of(pestle_onnx_input(call, like)), 0);
}

// --- Of one or two tensors ---

static void qlinear_binary(pestle_onnx_call_t* call, pestle_op_t op) {
  if (!pestle_onnx_takes(call, "")) return;
  pestle_value_t* a = real_of(call, 0, 1, 2);
  pestle_value_t* b = real_of(call, 3, 4, 5);
  quantise(call, pestle_f_binary(&call->f, op, a, b), 6, 7, 0);
}

void pestle_onnx_import_qlinear_add(pestle_onnx_call_t* call) {
  qlinear_binary(call, PESTLE_OP_ADD);
}

void pestle_onnx_import_qlinear_mul(pestle_onnx_call_t* call) {
  qlinear_binary(call, PESTLE_OP_MULTIPLY);
}

void pestle_onnx_import_qlinear_sigmoid(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "")) return;
  pestle_value_t* x = pestle_f_logistic(&call->f, real_of(call, 0, 1, 2));
  quantise(call, x, 3, 4, 0);
}

// The op of ai.onnx that |fn| imports, between input 0 and the result.
static void between(pestle_onnx_call_t* call, pestle_onnx_fn_t fn,
                    int64_t opset, bool last) {
  pestle_value_t *x = real_of(call, 0, 1, 2), *y = NULL;
  if (last) x = pestle_onnx_channels_second(call, x);
  const pestle_onnx_part_t part = {
      .fn = fn, .opset = opset, .inputs = &x, .input_count = 1};
  if (!pestle_onnx_import_part(call, &part, &y, 1)) return;
  if (last) y = pestle_onnx_channels_last(call, y);
  quantise(call, y, 3, 4, 0);
}

void pestle_onnx_import_qlinear_leaky_relu(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "alpha")) return;
  between(call, pestle_onnx_import_leaky_relu, PESTLE_ONNX_LAST_OPSET, false);
}

void pestle_onnx_import_qlinear_softmax(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "axis opset")) return;
  pestle_value_t* x = call->inputs[0];
  int64_t opset = pestle_onnx_int(call, "opset", 13);
  // The op has one default for all opsets, and no opset that ONNX does not know.
  if (opset < 1 || opset > PESTLE_ONNX_LAST_OPSET || !rank_of(x)) {
    pestle_onnx_fail(
        call, PESTLE_STATUS_UNSUPPORTED,
        "attribute 'opset' is %lld, known are 1 to %d, of a tensor "
        "with axes",
        (long long)opset, PESTLE_ONNX_LAST_OPSET);
    return;
  }
  const pestle_onnx_attr_t axis =
      pestle_onnx_make_int("axis", pestle_onnx_int(call, "axis", -1));
  pestle_value_t *in = real_of(call, 0, 1, 2), *y = NULL;
  const pestle_onnx_part_t part = {.fn = pestle_onnx_import_softmax,
                                   .opset = opset,
                                   .inputs = &in,
                                   .input_count = 1,
                                   .attrs = &axis,
                                   .attr_count = 1};
  if (pestle_onnx_import_part(call, &part, &y, 1)) quantise(call, y, 3, 4, 0);
}

// |x| with the zeros around it that windows see, also those of ceil_mode: each window has
// a whole kernel, whose elements all count.
static pestle_value_t* with_padding(pestle_onnx_call_t* call,
                                    pestle_value_t* x) {
  pestle_onnx_space_t space = {0};
  int64_t low[PESTLE_MAX_RANK] = {0}, high[PESTLE_MAX_RANK] = {0};
  if (!pestle_onnx_read_kernel(call, x, &space) ||
      !pestle_onnx_read_space(call, x, &space)) {
    return NULL;
  }
  bool ceils = pestle_onnx_int(call, "ceil_mode", 0) != 0;
  for (int32_t i = 0; i < space.count; ++i) {
    int64_t extent = pestle_onnx_dim(x, 2 + i), stride = space.strides[i];
    int64_t room = extent + space.low[i] + space.high[i] - space.kernel[i];
    bool more = ceils && room >= 0 && room % stride != 0 &&
                (room / stride + 1) * stride < extent + space.low[i];
    low[2 + i] = space.low[i];
    high[2 + i] = space.high[i] + (more ? stride - room % stride : 0);
  }
  return pestle_f_pad(&call->f, x, pestle_onnx_scalar(call, dtype_of(x), 0),
                      low, high, NULL);
}

void pestle_onnx_import_qlinear_average_pool(pestle_onnx_call_t* call) {
  static const int64_t none[2 * PESTLE_MAX_RANK] = {0};
  if (!pestle_onnx_takes(call,
                         "auto_pad ceil_mode channels_last count_include_pad "
                         "kernel_shape pads strides")) {
    return;
  }
  pestle_value_t* x = real_of(call, 0, 1, 2);
  bool last = pestle_onnx_int(call, "channels_last", 0) != 0;
  bool all = pestle_onnx_int(call, "count_include_pad", 0) != 0;
  if (last) x = pestle_onnx_channels_second(call, x);
  if (all) x = with_padding(call, x);
  if (!x) return;
  const pestle_onnx_attr_t attrs[] = {
      pestle_onnx_make_ints("pads", none, 2 * (size_t)(rank_of(x) - 2)),
      pestle_onnx_make_string("auto_pad", "NOTSET"),
      pestle_onnx_make_int("ceil_mode", 0)};
  pestle_value_t* y = pestle_onnx_part(call, pestle_onnx_import_average_pool,
                                       &x, 1, attrs, all ? 3 : 0);
  if (last) y = pestle_onnx_channels_last(call, y);
  quantise(call, y, 3, 4, 0);
}

void pestle_onnx_import_qlinear_global_average_pool(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "channels_last")) return;
  between(call, pestle_onnx_import_global_average_pool, PESTLE_ONNX_LAST_OPSET,
          pestle_onnx_int(call, "channels_last", 0) != 0);
}

// Axes are an attribute, as until opset 17.
void pestle_onnx_import_qlinear_reduce_mean(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "axes keepdims")) return;
  between(call, pestle_onnx_import_reduce_mean, 13, false);
}

// Inputs: the condition, x and y with scale and zero point, those of the result.
void pestle_onnx_import_qlinear_where(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "")) return;
  pestle_value_t* x = real_of(call, 1, 2, 3);
  pestle_value_t* y = real_of(call, 4, 5, 6);
  pestle_value_t* in[3] = {call->inputs[0], x, y};
  pestle_value_t* z =
      pestle_onnx_part(call, pestle_onnx_import_where, in, 3, NULL, 0);
  quantise(call, z, 7, 8, 1);
}

// Inputs: scale and zero point of the result, then three for each tensor.
void pestle_onnx_import_qlinear_concat(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "axis")) return;
  size_t count = (call->input_count - 2) / 3;
  pestle_value_t** in =
      pestle_onnx_scratch(call, (count + 1) * sizeof(pestle_value_t*));
  if (!in) return;
  if (!count || call->input_count != 2 + 3 * count || !call->inputs[1]) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it has %zu inputs; behind a scale and a zero point it "
                     "takes three for each tensor",
                     call->input_count);
    return;
  }
  for (size_t i = 0; i < count; ++i)
    in[i] = real_of(call, 2 + 3 * i, 3 + 3 * i, 4 + 3 * i);
  pestle_value_t* y =
      pestle_onnx_part(call, pestle_onnx_import_concat, in, count, NULL, 0);
  quantise(call, y, 0, 1, 1);
}

void pestle_onnx_import_contrib_qlinear_conv(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call,
                         "auto_pad channels_last dilations group kernel_shape "
                         "pads strides")) {
    return;
  }
  bool last = pestle_onnx_int(call, "channels_last", 0) != 0;
  pestle_value_t* in[9];
  for (size_t i = 0; i < 9; ++i)
    in[i] = pestle_onnx_input(call, i);
  if (last) in[0] = pestle_onnx_channels_second(call, in[0]);
  pestle_value_t* y = pestle_onnx_part(call, pestle_onnx_import_qlinear_conv,
                                       in, in[8] ? 9 : 8, NULL, 0);
  call->outputs[0] = last ? pestle_onnx_channels_last(call, y) : y;
}

void pestle_onnx_import_contrib_quantize(pestle_onnx_call_t* call) {
  if (pestle_onnx_takes(call, "axis")) pestle_onnx_import_quantize_linear(call);
}

void pestle_onnx_import_contrib_dequantize(pestle_onnx_call_t* call) {
  if (pestle_onnx_takes(call, "axis"))
    pestle_onnx_import_dequantize_linear(call);
}

// The tables, gamma and beta of EmbedLayerNormalization, quantised.
void pestle_onnx_import_qembed_layer_norm(pestle_onnx_call_t* call) {
  enum { TABLES = 2, GAMMA = 5, MASK = 7, SCALES = 8, ZEROS = 13 };
  if (!pestle_onnx_takes(call, "epsilon")) return;
  pestle_value_t* in[8];
  for (size_t i = 0; i < 8; ++i) {
    bool stored = i >= TABLES && i < MASK && pestle_onnx_input(call, i);
    in[i] = stored ? real_of(call, i, SCALES + i - TABLES, ZEROS + i - TABLES)
                   : pestle_onnx_input(call, i);
  }
  const pestle_onnx_part_t part = {.fn = pestle_onnx_import_embed_layer_norm,
                                   .opset = 1,
                                   .inputs = in,
                                   .input_count = 8};
  pestle_value_t* out[2];
  if (!pestle_onnx_import_part(call, &part, out, 2)) return;
  for (size_t i = 0; i < 2 && i < call->output_count; ++i)
    call->outputs[i] = out[i];
}

// --- Products ---

// Sums of products as f32, times both scales, plus |bias| (may be NULL).
static pestle_value_t* scaled(pestle_onnx_call_t* call, pestle_value_t* sums,
                              pestle_value_t* a_scale, pestle_value_t* b_scale,
                              pestle_value_t* bias) {
  if (!a_scale || !b_scale || !sums) return NULL;
  pestle_dtype_t dtype = dtype_of(a_scale);
  if (pestle_type_count(a_scale->type) != 1) {
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "its scale of A has %lld elements, one for the "
                            "whole tensor is supported",
                            (long long)pestle_type_count(a_scale->type));
  }
  pestle_value_t* scale =
      mul(call, pestle_f_reshape(&call->f, a_scale, 0, NULL), b_scale);
  if (pestle_type_count(b_scale->type) == 1)
    scale = pestle_f_reshape(&call->f, scale, 0, NULL);
  pestle_value_t* y = mul(call, pestle_onnx_convert(call, sums, dtype), scale);
  if (bias) y = add(call, y, bias);
  pestle_onnx_copy_real(call, y, sums);
  return y;
}

// Inputs: A, B, their scales, their zero points, a bias.
void pestle_onnx_import_matmul_integer_to_float(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "")) return;
  pestle_value_t* in[4] = {call->inputs[0], call->inputs[1],
                           pestle_onnx_input(call, 4),
                           pestle_onnx_input(call, 5)};
  pestle_value_t* sums =
      pestle_onnx_part(call, pestle_onnx_import_matmul_integer, in, 4, NULL, 0);
  call->outputs[0] = scaled(call, sums, call->inputs[2], call->inputs[3],
                            pestle_onnx_input(call, 6));
}

// Inputs: A, B, the scale and the zero point of B, a bias.
void pestle_onnx_import_dynamic_quantize_matmul(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "")) return;
  pestle_value_t* quantised[3];
  const pestle_onnx_part_t part = {
      .fn = pestle_onnx_import_dynamic_quantize_linear,
      .opset = PESTLE_ONNX_LAST_OPSET,
      .inputs = call->inputs,
      .input_count = 1};
  if (!pestle_onnx_import_part(call, &part, quantised, 3)) return;
  pestle_value_t* in[4] = {quantised[0], call->inputs[1], quantised[2],
                           pestle_onnx_input(call, 3)};
  pestle_value_t* sums =
      pestle_onnx_part(call, pestle_onnx_import_matmul_integer, in, 4, NULL, 0);
  call->outputs[0] = scaled(call, sums, quantised[1], call->inputs[2],
                            pestle_onnx_input(call, 4));
}

// |x| of integers without its zero point, a number or a list along |axis|, as i32.
static pestle_value_t* centred(pestle_onnx_call_t* call, pestle_value_t* x,
                               pestle_value_t* zero, int64_t axis) {
  x = pestle_onnx_convert(call, x, PESTLE_I32);
  if (!zero || !x) return x;
  zero = pestle_onnx_convert(call, zero, PESTLE_I32);
  zero = pestle_type_count(pestle_onnx_type(zero)) == 1
             ? pestle_f_reshape(&call->f, zero, 0, NULL)
             : pestle_onnx_along(call, zero, x, axis);
  return sub(call, x, zero);
}

// Inputs: A and B with scale and zero point, C, scale and zero point of the result.
void pestle_onnx_import_qgemm(pestle_onnx_call_t* call) {
  enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO };
  if (!pestle_onnx_takes(call, "alpha transA transB")) return;
  int64_t a_axis = pestle_onnx_int(call, "transA", 0) ? 0 : 1;
  int64_t b_axis = pestle_onnx_int(call, "transB", 0) ? 1 : 0;
  pestle_value_t *a = call->inputs[A], *b = call->inputs[B];
  pestle_value_t *c = pestle_onnx_input(call, C),
                 *scale = pestle_onnx_input(call, Y_SCALE),
                 *zero = pestle_onnx_input(call, Y_ZERO);
  if (rank_of(a) != 2 || rank_of(b) != 2 || (scale && !zero)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "A and B must be matrices, and a y_scale needs a "
                     "y_zero_point, which has the type of the result");
    return;
  }
  a = centred(call, a, pestle_onnx_input(call, A_ZERO), 0);
  b = centred(call, b, pestle_onnx_input(call, B_ZERO), 1 - b_axis);
  pestle_value_t* sums = pestle_onnx_dot(
      call, a, b, (pestle_i64s_t){0}, (pestle_i64s_t){0},
      (pestle_i64s_t){&a_axis, 1}, (pestle_i64s_t){&b_axis, 1}, PESTLE_I32);
  if (c) sums = add(call, sums, c);
  pestle_value_t* y =
      scaled(call, sums, call->inputs[A_SCALE], call->inputs[B_SCALE], NULL);
  double alpha = pestle_onnx_float(call, "alpha", 1);
  if (alpha != 1) y = times(call, y, alpha);
  call->outputs[0] =
      scale && y ? pestle_onnx_quantize(call, y, scale, zero, dtype_of(zero), 0)
                 : y;
}

// Inputs: A, its zero point, B, its zero point.
void pestle_onnx_import_mul_integer(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "")) return;
  pestle_value_t* a =
      centred(call, call->inputs[0], pestle_onnx_input(call, 1), 0);
  pestle_value_t* b =
      centred(call, call->inputs[2], pestle_onnx_input(call, 3), 0);
  call->outputs[0] = mul(call, a, b);
}

void pestle_onnx_import_matmul_integer16(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "")) return;
  pestle_value_t* a = centred(call, call->inputs[0], NULL, 0);
  pestle_value_t* b = centred(call, call->inputs[1], NULL, 0);
  call->outputs[0] = pestle_onnx_matmul(call, a, b, PESTLE_I32);
}

void pestle_onnx_import_reduce_sum_integer(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "axes keepdims")) return;
  pestle_value_t *x = centred(call, call->inputs[0], NULL, 0), *y = NULL;
  const pestle_onnx_part_t part = {.fn = pestle_onnx_import_reduce_sum,
                                   .opset = 11,
                                   .inputs = &x,
                                   .input_count = 1};
  if (pestle_onnx_import_part(call, &part, &y, 1)) call->outputs[0] = y;
}

// --- A recurrent layer ---

pestle_value_t* pestle_onnx_quantised_dynamically(pestle_onnx_call_t* call,
                                                  pestle_value_t* x) {
  pestle_value_t* quantised[3];
  const pestle_onnx_part_t part = {
      .fn = pestle_onnx_import_dynamic_quantize_linear,
      .opset = PESTLE_ONNX_LAST_OPSET,
      .inputs = &x,
      .input_count = 1};
  if (!pestle_onnx_import_part(call, &part, quantised, 3)) return NULL;
  // Of zeros alone the scale is 0, and so are the numbers.
  pestle_value_t* y = pestle_onnx_convert(call, quantised[0], PESTLE_I32);
  y = sub(call, y, pestle_onnx_convert(call, quantised[2], PESTLE_I32));
  y = mul(call, pestle_onnx_convert(call, y, dtype_of(x)), quantised[1]);
  pestle_onnx_copy_real(call, y, x);
  return y;
}

// Weights [directions, k, 4 h] as LSTM has them, [directions, 4 h, k], of inputs |scale|
// and |zero|: [directions] or [directions, 4 h].
static pestle_value_t* lstm_weights(pestle_onnx_call_t* call, size_t index,
                                    size_t scale, size_t zero) {
  static const int64_t order[] = {0, 2, 1};
  pestle_value_t* w = call->inputs[index];
  pestle_value_t* by[2] = {call->inputs[scale], call->inputs[zero]};
  int64_t directions = pestle_onnx_dim(w, 0), columns = pestle_onnx_dim(w, 2);
  for (int i = 0; i < 2; ++i) {
    int64_t count = by[i] ? pestle_type_count(by[i]->type) : 0;
    const int64_t dims[3] = {directions, 1, count == directions ? 1 : columns};
    if (rank_of(w) != 3 ||
        (count != directions && count != directions * columns)) {
      return pestle_onnx_fail(
          call, PESTLE_STATUS_MALFORMED,
          "input %zu must be [directions, rows, 4 * hidden_size], and inputs "
          "%zu and %zu have a number for each direction, or for each column of "
          "each",
          index, scale, zero);
    }
    by[i] = pestle_f_reshape(&call->f, by[i], 3, dims);
  }
  w = pestle_onnx_convert(call, w, PESTLE_I32);
  w = sub(call, w, pestle_onnx_convert(call, by[1], PESTLE_I32));
  w = mul(call, pestle_onnx_convert(call, w, dtype_of(by[0])), by[0]);
  return pestle_f_transpose(&call->f, w, order);
}

// Inputs: those of LSTM, whose weights are quantised, and a scale and zero point for each
// of the two. What is multiplied with them is quantised when it is there.
void pestle_onnx_import_dynamic_quantize_lstm(pestle_onnx_call_t* call) {
  enum { LSTM = 8, W_SCALE = 8, W_ZERO, R_SCALE, R_ZERO };
  if (!pestle_onnx_takes(call,
                         "activation_alpha activation_beta activations clip "
                         "direction hidden_size input_forget")) {
    return;
  }
  pestle_value_t *in[LSTM], *out[3] = {NULL, NULL, NULL};
  for (size_t i = 0; i < LSTM; ++i)
    in[i] = pestle_onnx_input(call, i);
  for (size_t i = W_SCALE; i <= R_ZERO; ++i) {
    if (pestle_onnx_input(call, i)) continue;
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it has no input %zu, a scale or zero point of weights",
                     i);
    return;
  }
  in[0] = pestle_onnx_quantised_dynamically(call, in[0]);
  in[1] = lstm_weights(call, 1, W_SCALE, W_ZERO);
  in[2] = lstm_weights(call, 2, R_SCALE, R_ZERO);
  const pestle_onnx_part_t part = {.fn = pestle_onnx_import_quantised_lstm,
                                   .opset = 14,
                                   .inputs = in,
                                   .input_count = LSTM};
  if (!pestle_onnx_import_part(call, &part, out, 3)) return;
  for (size_t i = 0; i < 3 && i < call->output_count; ++i)
    call->outputs[i] = out[i];
}
