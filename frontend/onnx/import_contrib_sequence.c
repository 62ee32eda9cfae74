// SPDX-License-Identifier: Apache-2.0
// com.microsoft: what ai.onnx has too since opset 27, with more attributes.
#include "frontend/onnx/contrib.h"

static bool has_one_state(pestle_onnx_call_t* call) {
  return pestle_onnx_takes_only(call, "state_window", 0,
                                "the state is that behind the last position");
}

// [n, length, d..] as [n, d.., length], or back; the axes of d are one.
static pestle_value_t* turn(pestle_onnx_call_t* call, pestle_value_t* x) {
  static const int64_t swap[] = {0, 2, 1};
  return rank_of(x) == 3 ? pestle_f_transpose(&call->f, x, swap) : x;
}

static pestle_value_t* with_one_channel_axis(pestle_onnx_call_t* call,
                                             pestle_value_t* x) {
  const int64_t dims[3] = {pestle_onnx_dim(x, 0), pestle_onnx_dim(x, 1),
                           pestle_onnx_dims_product(x, 2, rank_of(x))};
  return pestle_f_reshape(&call->f, x, 3, dims);
}

// |y|, [n, length, channels], with the channels' axes of |like|.
static pestle_value_t* with_channel_axes(pestle_onnx_call_t* call,
                                         pestle_value_t* y,
                                         const pestle_value_t* like) {
  int64_t dims[PESTLE_MAX_RANK];
  for (int32_t i = 0; i < rank_of(like); ++i)
    dims[i] = pestle_onnx_dim(like, i);
  dims[1] = pestle_onnx_dim(y, 1);
  return pestle_f_reshape(&call->f, y, rank_of(like), dims);
}

static void dilated(pestle_onnx_call_t* call) {
  pestle_onnx_causal_conv(call, pestle_onnx_int(call, "dilation", 1));
}

void pestle_onnx_import_contrib_causal_conv(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(
          call, "activation channels_last dilation ndim state_window") ||
      !pestle_onnx_takes_only(call, "ndim", 1, "it goes along one axis") ||
      !has_one_state(call)) {
    return;
  }
  pestle_value_t *in[4], *out[2] = {NULL, NULL}, *x = call->inputs[0];
  bool last = pestle_onnx_int(call, "channels_last", 0) != 0;
  int64_t gap = pestle_onnx_int(call, "dilation", 1);
  if (gap < 1 || gap > 1 << 20 || (last && rank_of(x) < 3)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute 'dilation' is %lld, its input has rank %d",
                     (long long)gap, rank_of(x));
    return;
  }
  for (size_t i = 0; i < 4; ++i)
    in[i] = pestle_onnx_input(call, i);
  for (size_t i = 0; last && i < 4; i += 3) {
    if (in[i]) in[i] = turn(call, with_one_channel_axis(call, in[i]));
  }
  const pestle_onnx_part_t part = {.fn = dilated,
                                   .opset = PESTLE_ONNX_LAST_OPSET,
                                   .inputs = in,
                                   .input_count = 4};
  if (!pestle_onnx_import_part(call, &part, out, 2)) return;
  for (size_t i = 0; i < 2 && i < call->output_count; ++i) {
    call->outputs[i] =
        last ? with_channel_axes(call, turn(call, out[i]), x) : out[i];
  }
}

void pestle_onnx_import_contrib_linear_attention(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call,
                         "chunk_size kv_num_heads q_num_heads scale "
                         "state_window update_rule") ||
      !has_one_state(call)) {
    return;
  }
  if (pestle_onnx_int(call, "q_num_heads", 0) <
      pestle_onnx_int(call, "kv_num_heads", 0)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute 'q_num_heads' is less than 'kv_num_heads'");
    return;
  }
  pestle_onnx_import_linear_attention(call);
}
