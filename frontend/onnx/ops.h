// SPDX-License-Identifier: Apache-2.0
// The importers of single ops (onnx_ops.def) and what a few of them share.
#ifndef PESTLE_FRONTEND_ONNX_OPS_H_
#define PESTLE_FRONTEND_ONNX_OPS_H_

#include "frontend/onnx/emit.h"

#define PESTLE_ONNX_OP(name, domain, since, until, min_in, max_in, max_out, \
                       known, bounded, texts, fn)                           \
  void pestle_onnx_import_##fn(pestle_onnx_call_t* call);
#include "frontend/onnx/onnx_ops.def"

// Imports the nodes of the subgraph |graph| where |builder| stands, its first
// |count| inputs being |inputs| (NULL: it has none that matter), the others what
// their initializers say; |values| has room for its outputs. False with an error
// kept.
bool pestle_onnx_import_subgraph(pestle_onnx_call_t* call,
                                 const pestle_onnx_graph_t* graph,
                                 pestle_builder_t* builder,
                                 pestle_value_t* const* inputs, size_t count,
                                 pestle_value_t** values);
// The same of inputs and outputs that may be sequences: |in| and |in_lists| (may be NULL)
// have |count| places, of which each has a value or a list; so have |out| and |out_lists|
// (NULL: none may be a list) for each output.
typedef struct pestle_onnx_body_t {
  pestle_value_t* const* in;
  const pestle_onnx_sequence_t* const* in_lists;
  size_t count;
  pestle_value_t** out;
  const pestle_onnx_sequence_t** out_lists;
} pestle_onnx_body_t;
bool pestle_onnx_import_body(pestle_onnx_call_t* call,
                             const pestle_onnx_graph_t* graph,
                             pestle_builder_t* builder,
                             const pestle_onnx_body_t* body);
// Input 1, moved to where a binary op before opset 7 wanted it.
pestle_value_t* pestle_onnx_second_operand(pestle_onnx_call_t* call);
// The axes of an op: attribute "axes" below opset |as_input|, input 1 from
// there on, counted from the front and sorted. All axes of |rank| when there
// are none. |out_axes| has room for PESTLE_MAX_RANK.
size_t pestle_onnx_axes(pestle_onnx_call_t* call, int64_t as_input,
                        int64_t rank, int64_t* out_axes, bool* out_given);
// The running sum of |x| along |axis|.
pestle_value_t* pestle_onnx_running_sum(pestle_onnx_call_t* call,
                                        pestle_value_t* x, int64_t axis);
// Sorts |*x| along |axis|, stably and with NaN as the largest, and |*at|, i32 of
// its shape, with it.
bool pestle_onnx_sort(pestle_onnx_call_t* call, bool largest, int64_t axis,
                      pestle_value_t** x, pestle_value_t** at);
// data[indices[i]] = updates[i], or += with ADD, for lists; what is outside of
// |data| is left out. With ADD alone may indices be equal.
pestle_value_t* pestle_onnx_scatter_list(pestle_onnx_call_t* call,
                                         pestle_value_t* data,
                                         pestle_value_t* indices,
                                         pestle_value_t* updates,
                                         pestle_op_t op);
// The activation called |name| ("Sigmoid", "Tanh", ... of the recurrent ops).
pestle_value_t* pestle_onnx_activation(pestle_onnx_call_t* call,
                                       pestle_str_t name, double alpha,
                                       double beta, pestle_value_t* x);
pestle_value_t* pestle_onnx_hard_sigmoid(pestle_onnx_call_t* call,
                                         pestle_value_t* x, double alpha,
                                         double beta);

// |x|, numbers, as strings; |fixed|: floats with six digits behind the point, else in
// 8 digits (import_string.c).
pestle_value_t* pestle_onnx_text_of(pestle_onnx_call_t* call, pestle_value_t* x,
                                    bool fixed);
// The numbers, |dtype|, that |x|, strings, begin with. One that begins with none makes the
// run fail.
pestle_value_t* pestle_onnx_number_of(pestle_onnx_call_t* call,
                                      pestle_value_t* x, pestle_dtype_t dtype);

// The geometry of convolutions and pools, spatial axes only.
typedef struct pestle_onnx_space_t {
  int32_t count;
  int64_t kernel[PESTLE_MAX_RANK], strides[PESTLE_MAX_RANK];
  int64_t dilations[PESTLE_MAX_RANK];
  int64_t low[PESTLE_MAX_RANK], high[PESTLE_MAX_RANK];
} pestle_onnx_space_t;
// Reads strides, dilations, pads and auto_pad for input |x| of NC..., with the
// kernel's extents in |space|->kernel already.
bool pestle_onnx_read_space(pestle_onnx_call_t* call, const pestle_value_t* x,
                            pestle_onnx_space_t* space);
// Reads |kernel_shape|; false, with an error kept, if it does not fit |x|.
bool pestle_onnx_read_kernel(pestle_onnx_call_t* call, const pestle_value_t* x,
                             pestle_onnx_space_t* space);
// A convolution of NC... and OI... with |space|; the result has |dtype|.
pestle_value_t* pestle_onnx_convolve(pestle_onnx_call_t* call,
                                     pestle_value_t* x, pestle_value_t* w,
                                     const pestle_onnx_space_t* space,
                                     const int64_t* lhs_dilation,
                                     int64_t groups, pestle_dtype_t dtype);
// Conversion as Cast has it, with its attribute |saturate|.
pestle_value_t* pestle_onnx_cast(pestle_onnx_call_t* call, pestle_value_t* x,
                                 pestle_dtype_t dtype);
// The node's convolution (its attributes) of other operands.
pestle_value_t* pestle_onnx_conv_of(pestle_onnx_call_t* call, pestle_value_t* x,
                                    pestle_value_t* w);
// Numbers in [0, 1), f64 in the shape of f64, else f32 (import_random.c).
pestle_value_t* pestle_onnx_uniform(pestle_onnx_call_t* call,
                                    const pestle_type_t* type);
// [b, s, h * d] as [b, h, s, d], and back.
pestle_value_t* pestle_onnx_split_heads(pestle_onnx_call_t* call,
                                        pestle_value_t* x, int64_t heads);
pestle_value_t* pestle_onnx_merge_heads(pestle_onnx_call_t* call,
                                        pestle_value_t* x);
// Attention over heads whose extents are known.
typedef struct pestle_onnx_attend_t {
  // [b, h, s, d], [b, g, t, d], [b, g, t, e]; g divides h.
  pestle_value_t *q, *k, *v;
  pestle_value_t* bias;   // what is added to scores, of rank 4, or NULL
  pestle_value_t* sink;   // [h]: the score of a key without a value, or NULL
  double scale, softcap;  // 0: no cap
  // What output 3 of the call shows, where it is wanted: products (0), what is capped (1),
  // with the bias (2), weights (3).
  int64_t shown;
} pestle_onnx_attend_t;
// [b, h, s, e].
pestle_value_t* pestle_onnx_attend(pestle_onnx_call_t* call,
                                   const pestle_onnx_attend_t* how);
// The call as CausalConvWithState, with |gap| from one tap to the next (import_sequence.c).
void pestle_onnx_causal_conv(pestle_onnx_call_t* call, int64_t gap);
// LSTM whose state is quantised before each product with it (import_rnn.c).
void pestle_onnx_import_quantised_lstm(pestle_onnx_call_t* call);
// The numbers that DynamicQuantizeLinear makes of |x|, as floats.
pestle_value_t* pestle_onnx_quantised_dynamically(pestle_onnx_call_t* call,
                                                  pestle_value_t* x);
// x / scale (+ zero point), rounded and saturated to |dtype|.
pestle_value_t* pestle_onnx_quantize(pestle_onnx_call_t* call,
                                     pestle_value_t* x, pestle_value_t* scale,
                                     pestle_value_t* zero_point,
                                     pestle_dtype_t dtype, int64_t axis);

#endif  // PESTLE_FRONTEND_ONNX_OPS_H_
