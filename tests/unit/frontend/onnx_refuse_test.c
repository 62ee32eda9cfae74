// SPDX-License-Identifier: Apache-2.0
// Nodes whose inputs or attributes an importer once trusted: each is refused
// with a sentence that names the thing.
#include "onnx_case.h"
#include "onnx_rows.h"

// The stack was written past a term's labels.
static void refuses_two_ellipses(void** state) {
  (void)state;
  onnx_case_fails("Einsum", 12, "equation:......->...",
                  "f32[1,1,1,1,1,1,1,1,1]=1", MALFORMED,
                  "the equation '......->...' does not fit");
}

// The diagonal of what is no square.
static void refuses_a_label_of_two_extents(void** state) {
  (void)state;
  onnx_case_fails("Einsum", 12, "equation:ii->i", "f32[2,3]=1,2,3,4,5,6",
                  MALFORMED, "label 'i' is of an axis of 2 and of one of 3");
}

// What an opset before 18 splits evenly.
static void refuses_more_parts_than_are_equal(void** state) {
  (void)state;
  static onnx_case_tensor_t in[ONNX_CASE_MOST], out[2];
  size_t count = onnx_case_tensors("f32[5]=1,2,3,4,5", in);
  pb_t model = onnx_case_model("Split", 13, "", in, count, out, 2);
  onnx_fails(model, MALFORMED, "its axis of 5 has no 2 equal parts");
}

// A list of ints read as one of floats.
static void refuses_a_list_of_another_kind(void** state) {
  (void)state;
  onnx_case_fails("Constant", 13, "value_floats=[1,2]", "", UNSUPPORTED,
                  "it holds no tensor and no numbers");
}

// The first element of nothing was read.
static void refuses_an_empty_training_mode(void** state) {
  (void)state;
  onnx_case_fails("Dropout", 13, "", "f32[1]=1 - !i1[0]", UNSUPPORTED,
                  "its training_mode must be known");
}

static void refuses_a_depth_that_is_no_number(void** state) {
  (void)state;
  onnx_case_fails("OneHot", 11, "", "i64[1]=1 !f32[]=nan !f32[2]=0,1",
                  MALFORMED, "it needs a positive depth");
}

// Sums of sizes, and of extents and paddings, overflowed.
static void refuses_sizes_at_the_limit(void** state) {
  (void)state;
  onnx_case_fails("Split", 13, "",
                  "f32[4]=1,2,3,4 !i64[1]=-9223372036854775808", MALFORMED,
                  "do not add up to 4");
  onnx_case_fails("ConvTranspose", 11, "output_shape=[9223372036854775807]",
                  "f32[1,1,2]=1,2 !f32[1,1,1]=1", UNSUPPORTED,
                  "to give 9223372036854775807");
  onnx_case_fails("DepthToSpace", 13, "blocksize=1048576",
                  "f32[1,4,1,1]=1,2,3,4", MALFORMED, "its blocksize 1048576");
  onnx_case_fails("Expand", 13, "", "f32[1]=1 !i64[1]=1125899906842624",
                  UNSUPPORTED, "more than 2^48 elements");
}

static void refuses_another_number_of_parts(void** state) {
  (void)state;
  onnx_case_fails("Split", 18, "num_outputs=3", "f32[6]=1,2,3,4,5,6", MALFORMED,
                  "'num_outputs' is 3, it has 1 outputs");
  onnx_case_fails("Split", 18, "num_outputs=4611686018427387904",
                  "f32[6]=1,2,3,4,5,6", MALFORMED,
                  "'num_outputs' is 4611686018427387904");
}

static void refuses_another_number_of_activations(void** state) {
  (void)state;
  onnx_case_fails("LSTM", 14, "activations:[Sigmoid,Tanh]",
                  "f32[1,1,1]=1 !f32[1,4,1]=1,2,3,4 !f32[1,4,1]=1,2,3,4",
                  MALFORMED, "should be 3 names, it has 2 values");
  onnx_case_fails("RNN", 14, "activations:[ScaledTanh] activation_alpha=[0.5]",
                  "f32[1,1,1]=1 !f32[1,1,1]=1 !f32[1,1,1]=1", MALFORMED,
                  "its activation 'ScaledTanh' needs numbers");
}

static void refuses_another_number_of_weights(void** state) {
  (void)state;
  onnx_case_fails("TfIdfVectorizer", 9,
                  "min_gram_length=1 max_gram_length=1 max_skip_count=0 "
                  "ngram_counts=[0] ngram_indexes=[0,1] pool_int64s=[2,3] "
                  "mode:IDF weights=[0.5]",
                  "i64[2]=2,3", MALFORMED, "a float for each of 2 n-grams");
}

// Heads divided by the groups of no heads.
static void refuses_attention_without_heads(void** state) {
  (void)state;
  onnx_case_fails("Attention", 23, "",
                  "f32[1,0,2,2] f32[1,2,2,2]=1,2,3,4,5,6,7,8 "
                  "f32[1,2,2,2]=1,2,3,4,5,6,7,8",
                  MALFORMED, "g must divide h");
}

static void refuses_a_scale_that_is_no_number_a_group(void** state) {
  (void)state;
  onnx_case_fails("GroupNormalization", 18, "num_groups=2",
                  "f32[1,4]=1,2,3,4 !f32[3]=1,2,3 !f32[2]=0,0", MALFORMED,
                  "one number for each of its 2 groups");
}

static void refuses_a_factor_that_is_no_number(void** state) {
  (void)state;
  onnx_case_fails("Resize", 13, "mode:linear", "f32[2]=1,2 - !f32[1]=nan",
                  MALFORMED, "is resized by nan");
}

static void refuses_a_condition_that_is_too_long(void** state) {
  (void)state;
  onnx_case_fails("Compress", 11, "axis=0", "f32[2]=1,0 i1[3]=1,0,1", MALFORMED,
                  "3 elements for an axis of 2");
  onnx_case_fails("Compress", 11, "axis=0", "f32[2]=1,0 !i1[3]=1,0,1",
                  MALFORMED, "3 elements for an axis of 2");
}

// Two numbers each were read from room for one.
static void refuses_complex_indices(void** state) {
  (void)state;
  onnx_case_fails("ScatterND", 16, "", "f32[2]=1,2 c128[1,1]=0 f32[1]=5",
                  UNSUPPORTED, "complex numbers are not supported here");
  onnx_case_fails("ScatterND", 16, "", "f32[2]=1,2 c64[1,1]=0 f32[1]=5",
                  UNSUPPORTED, "complex numbers are not supported here");
}

// Rows as onnx_rows.h has them, each with a part of its sentence.
static void refuses_rows(void** state) {
  (void)state;
  static const struct {
    const char *row, *says;
  } rows[] = {
      {"ms:DecoderMaskedSelfAttention 1 do_rotary=1 num_heads=1 "
       "past_present_share_buffer=1 | f32[1,1,6] f32[6,12] f32[12] - "
       "f32[2,1,1,5,4] - i32[1] | o o",
       "attribute 'do_rotary' is 1, only 0 is supported: the node has no"},
      {"ms:DecoderMaskedSelfAttention 1 num_heads=1 "
       "past_present_share_buffer=1 | f32[1,1,6] f32[6,12] f32[12] - "
       "f32[2,1,1,5,4] - i32[1] - i32[1,2,5] | o o",
       "its cache_indirection is of 2 beams: beams are not searched, fix"},
      {"ms:DecoderMaskedSelfAttention 1 num_heads=1 "
       "past_present_share_buffer=1 | f32[1,1,6] f32[6,12] f32[12] - "
       "f32[2,1,1,5,4] - i32[1] - i32[1,5] | o o",
       "its cache_indirection is of 0 beams: beams are not searched, fix"},
      {"ms:DecoderMaskedSelfAttention 1 num_heads=1 "
       "past_present_share_buffer=1 | f32[1,1,6] f32[6,12] f32[12] - "
       "f32[2,1,1,5,4] - i32[1] !i32[1]=2 | o o",
       "its beam_width is not 1: beams are not searched"},
      {"ms:DecoderMaskedSelfAttention 1 num_heads=1 "
       "past_present_share_buffer=1 | f32[1,1,6] f32[6,12] f32[12] - "
       "f32[2,1,1,5,4] - i32[1] !i32[2]=1,1 | o o",
       "its beam_width is not 1: beams are not searched"},
      {"ms:DecoderMaskedSelfAttention 1 num_heads=1 "
       "past_present_share_buffer=1 | f32[1,1,6] f32[6,12] f32[12] - "
       "f32[2,1,1,5,4] - i32[1] !f32[1]=1 | o o",
       "its beam_width is not 1: beams are not searched"},
      {"ms:Attention 1 num_heads=2 do_rotary=1 | f32[1,2,4] !f32[4,12] "
       "!f32[12] | o",
       "attribute 'do_rotary' is 1, only 0 is supported: the node has no"},
      {"ms:Attention 1 num_heads=2 rotary_embedding_dim=2 | f32[1,2,4] "
       "!f32[4,12] !f32[12] | o",
       "attribute 'rotary_embedding_dim' is 2, only 0 is supported: the"},
      {"ms:Attention 1 num_heads=2 past_present_share_buffer=1 | f32[1,2,4] "
       "!f32[4,12] !f32[12] | o",
       "attribute 'past_present_share_buffer' is 1, only 0 is supported:"},
      {"ms:QAttention 1 num_heads=3 do_rotary=1 | u8[2,2,7] !i8[7,36] !f32[36] "
       "!f32[]=0.02934 !f32[]=0.004189 - !u8[]=128 !i8[]=3 | o",
       "attribute 'do_rotary' is 1, only 0 is supported: the node has no"},
      {"ms:QAttention 1 num_heads=3 past_present_share_buffer=1 | u8[2,2,7] "
       "!i8[7,36] !f32[36] !f32[]=0.02934 !f32[]=0.004189 - !u8[]=128 !i8[]=3 "
       "| o",
       "attribute 'past_present_share_buffer' is 1, only 0 is supported:"},
      {"ms:RotaryEmbedding 1 is_packed_batching=1 | f32[1,4,16] i64[1] "
       "!f32[17,4] !f32[17,4] | o",
       "attribute 'is_packed_batching' is 1, only 0 is supported: batches"},
      {"ms:RotaryEmbedding 1 | f32[1,2,4,6] !i64[1]=14 !f32[17,3] !f32[17,3] | "
       "o",
       "com.microsoft::RotaryEmbedding, opset 1): it takes place 17 of 17"},
      {"ms:RotaryEmbedding 1 | f32[1,2,4,6] !i64[1]=-1 !f32[17,3] !f32[17,3] | "
       "o",
       "it takes place -1 of 17"},
      {"ms:RotaryEmbedding 1 rotary_embedding_dim=8 | f32[1,2,4,6] i64[1] "
       "!f32[17,4] !f32[17,4] | o",
       "com.microsoft::RotaryEmbedding, opset 1): 8 elements of the 6 of a"},
      {"ms:RotaryEmbedding 1 | f32[1,2,4,6] i64[1] !f32[17,0] !f32[17,0] | o",
       "it turns [batch, rows, columns] or [batch, heads, rows, columns]"},
      {"ms:RotaryEmbedding 1 | f32[1,4,6] i64[1] !f32[17,0] !f32[17,0] | o",
       "it turns [batch, rows, columns] or [batch, heads, rows, columns]"},
      {"ms:GroupQueryAttention 1 kv_num_heads=2 num_heads=2 "
       "kv_cache_bit_width=8 | f32[1,1,8] f32[1,1,8] f32[1,1,8] f32[1,2,5,4] "
       "f32[1,2,5,4] i32[1] !i32[]=5 | o o o",
       "attribute 'kv_cache_bit_width' is 8, only 0 is supported: caches"},
      {"ms:GroupQueryAttention 1 kv_num_heads=2 num_heads=2 | f32[1,1,8] "
       "f32[1,1,8] f32[1,1,8] f32[1,2,5,4] f32[1,2,5,4] i32[1] !i32[]=5 - - - "
       "- - f32[1] | o o o",
       "input 12, k_scale, is not supported: caches are of the type of"},
      {"ms:GroupQueryAttention 1 kv_num_heads=2 num_heads=2 | f32[1,1,8] "
       "f32[1,1,8] f32[1,1,8] f32[1,2,5,4] f32[1,2,5,4] i32[1] !i32[]=5 - - - "
       "- - - f32[1] | o o o",
       "input 13, v_scale, is not supported: caches are of the type of"},
      {"ms:GroupQueryAttention 1 kv_num_heads=2 num_heads=2 | f32[1,1,8] "
       "f32[1,1,8] f32[1,1,8] f32[1,2,5,4] f32[1,2,5,4] i32[1] "
       "!i64[]=4294967296 | o o o",
       "its total_sequence_length must be one number that is at least its"},
      {"ms:GroupQueryAttention 1 kv_num_heads=2 num_heads=2 | f32[1,1,8] "
       "f32[1,1,8] f32[1,1,8] f32[1,2,5,4] f32[1,2,5,4] i32[1] !i32[]=5 - - - "
       "- f32[3] | o o o",
       "its head_sink must have a number for each of its 2 heads"},
      {"ms:GroupQueryAttention 1 kv_num_heads=2 num_heads=2 "
       "sliding_window_cache=1 local_window_size=3 | f32[1,1,8] f32[1,1,8] "
       "f32[1,1,8] f32[1,2,3,4] f32[1,2,3,4] i32[1] !i32[]=5 | o o o",
       "attribute 'sliding_window_cache' is 1, and its cache has 3 rows"},
      {"ms:GroupQueryAttention 1 kv_num_heads=2 num_heads=2 qk_output=-1 | "
       "f32[1,1,8] f32[1,1,8] f32[1,1,8] f32[1,2,5,4] f32[1,2,5,4] i32[1] "
       "!i32[]=5 | o o o",
       "attribute 'qk_output' is -1; it is 1 (before the softmax) or 2"},
      {"ms:GroupQueryAttention 1 kv_num_heads=2 num_heads=2 qk_output=3 | "
       "f32[1,1,8] f32[1,1,8] f32[1,1,8] f32[1,2,5,4] f32[1,2,5,4] i32[1] "
       "!i32[]=5 | o o o",
       "attribute 'qk_output' is 3; it is 1 (before the softmax) or 2"},
      {"ms:MatMulNBits 1 K=47 N=10 bits=4 block_size=16 weight_prepacked=1 | "
       "f32[2,47] !u8[10,3,8] !f32[10,3] | o",
       "attribute 'weight_prepacked' is 1, only 0 is supported: the"},
      {"ms:MatMulNBits 1 K=47 N=536870912 bits=4 block_size=16 | f32[2,47] "
       "!u8[10,3,8] !f32[10,3] | o",
       "A must have K columns, B be u8 [N, blocks, bytes of a block], and"},
      {"ms:GatherBlockQuantized 1 bits=3 block_size=16 gather_axis=0 "
       "quantize_axis=1 | !u8[11,64] i64[7] !f32[11,4] | o",
       "it gathers along axis 0 in blocks of 16 along axis 1 of numbers"},
      {"ms:GatherBlockQuantized 1 bits=8 block_size=16 gather_axis=1 "
       "quantize_axis=0 | !u8[11,64] i64[7] !f32[1,64] | o",
       "it gathers along axis 1 in blocks of 16 along axis 0 of numbers"},
      {"ms:GatherBlockQuantized 1 bits=8 block_size=16 gather_axis=0 "
       "quantize_axis=1 | !f32[11,64] i64[7] !f32[11,4] | o",
       "it gathers along axis 0 in blocks of 16 along axis 1 of numbers"},
      {"ms:GatherBlockQuantized 1 bits=8 block_size=16 gather_axis=0 "
       "quantize_axis=1 | !u8[11,0] i64[7] !f32[11,0] | o",
       "it gathers along axis 0 in blocks of 16 along axis 1 of numbers"},
      {"ms:MoE 1 activation_type:relu k=1 use_sparse_mixer=1 | f32[2,32] "
       "f32[2,3] !f32[3,64,32] !f32[3,64] !f32[3,32,64] | o",
       "attribute 'use_sparse_mixer' is 1, only 0 is supported: it is one"},
      {"ms:QMoE 1 activation_type:gelu expert_weight_bits=8 k=2 "
       "use_sparse_mixer=1 | f32[2,32] f32[2,2] !u8[2,64,32] !f32[2,64] "
       "!f32[2,64] !u8[2,32,64] !f32[2,32] | o",
       "attribute 'use_sparse_mixer' is 1, only 0 is supported: it is one"},
      {"ms:QMoE 1 activation_type:gelu expert_weight_bits=8 k=2 quant_type:fp8 "
       "| f32[2,32] f32[2,2] !u8[2,64,32] !f32[2,64] !f32[2,64] !u8[2,32,64] "
       "!f32[2,32] | o",
       "attribute 'quant_type' is 'fp8' or 'weights_prepacked' is set;"},
      {"ms:QMoE 1 activation_type:gelu expert_weight_bits=8 k=2 "
       "weights_prepacked=1 | f32[2,32] f32[2,2] !u8[2,64,32] !f32[2,64] "
       "!f32[2,64] !u8[2,32,64] !f32[2,32] | o",
       "attribute 'quant_type' is 'int' or 'weights_prepacked' is set;"},
      {"ms:MoE 1 activation_type:relu k=1 | f32[2,0] f32[2,3] !f32[3,64,0] "
       "!f32[3,64] !f32[3,0,64] | o",
       "its layers, scales or biases do not fit 3 experts, of which 1 are"},
      {"ms:MoE 1 activation_type:swiglu k=1 swiglu_fusion=1 | f32[2,8] "
       "f32[2,3] !f32[3,8,8] !f32[3,8] !f32[3,8,4] !f32[3,8] !f32[3,4,8] | o",
       "swiglu wants a third layer, or a swiglu_fusion and none"},
      {"ms:MoE 1 activation_type:silu k=1 | f32[2,8] f32[2,3] !f32[3,8,8] "
       "!f32[3,8] !f32[3,8,8] !f32[3,8] !f32[3,7,8] | o",
       "the shapes of tensor<2x1x8xf32> and tensor<2x1x7xf32> cannot be"},
      {"ms:MoE 1 activation_type:silu k=1 | f32[2,8] f32[2,3] !f32[3,8,8] "
       "!f32[3,8] !f32[3,8,8] !f32[3,8] !f32[3,8,7] | o",
       "its layers, scales or biases do not fit 3 experts, of which 1 are"},
      {"ms:QLinearConcat 1 axis=0 | !f32[]=0.5 - u8[2] !f32[]=0.5 !u8[]=1 | o",
       "has no input 1, which it needs"},
      {"If 18 then_branch=1 else_branch=1 | i1[] | o",
       "attribute 'then_branch' is missing"},
      {"If 18 then_branch={| Identity:i1>y | y} else_branch=1 | i1[] f32[2] | "
       "o",
       "has 2 inputs, it takes at most 1"},
      {"If 18 then_branch={| Identity:i1>y | y} else_branch={| Identity:i2>z | "
       "z} | i1[] f32[2] i64[2] | o",
       "has 3 inputs, it takes at most 1"},
      {"If 18 then_branch={| Identity:i1>y | y} else_branch={| Identity:i2>z | "
       "z} | i1[] f32[2] f32[3] | o",
       "has 3 inputs, it takes at most 1"},
      {"If 18 then_branch={| Identity:i1>y | y} else_branch={| Identity:i2>z | "
       "z} | i1[] f32[2] f32[3,1] | o",
       "has 3 inputs, it takes at most 1"},
      {"If 18 then_branch={| Identity:i1>y | y} else_branch={| Identity:i2>z | "
       "z} | i1[] str[2] str[2] | o",
       "has 3 inputs, it takes at most 1"},
      {"If 18 then_branch={| Identity:i1>y | y} else_branch={| Identity:i2>z | "
       "z} | i1[] str[2] i32[2] | o",
       "has 3 inputs, it takes at most 1"},
      {"If 18 then_branch={| Identity:i1>y | y} else_branch={| Identity:i2>z | "
       "z} | i1[] i32[2] str[2] | o",
       "has 3 inputs, it takes at most 1"},
      {"ReduceMax 20 keepdims=0 | i1[70000] | o ; If 18 then_branch={| "
       "Identity:i1>y | y} else_branch={| Identity:i2>z | z} | $0 f32[2] "
       "f32[3] | o",
       "has 3 inputs, it takes at most 1"},
      {"ReduceMax 20 keepdims=0 | i1[70000] | o ; If 18 then_branch={| "
       "Identity:i1>y | y} else_branch={| Identity:i2>z | z} | $0 f32[2] "
       "f32[2,1] | o",
       "has 3 inputs, it takes at most 1"},
      {"Loop 18 body=1 | !i64[]=2 - f32[2] | o", "attribute 'body' is missing"},
      {"Scan 11 body=1 num_scan_inputs=1 | f32[2] | o",
       "attribute 'body' is missing"},
      {"SequenceMap 17 body=1 | seq:f32[2] | o", "attribute 'body' is missing"},
      {"Identity 18 | str[2] | o ; Identity 18 | i32[2] | o ; If 18 "
       "then_branch={| Identity:o0>y | y} else_branch={| Identity:o1>z | z} | "
       "i1[] | o",
       "one of its branches gives output 0 as strings, the other as"},
      {"Identity 18 | i32[2] | o ; Identity 18 | str[2] | o ; If 18 "
       "then_branch={| Identity:o0>y | y} else_branch={| Identity:o1>z | z} | "
       "i1[] | o",
       "one of its branches gives output 0 as strings, the other as"},
      {"Identity 18 | f32[2] | o ; Identity 18 | f32[2,1] | o ; ReduceMax 20 "
       "keepdims=0 | i1[70000] | o ; If 20 then_branch={| Identity:o0>y | y} "
       "else_branch={| Identity:o1>z | z} | $2 | o",
       "its branches give output 0 different ranks, and its condition is"},
      {"Identity 18 | f32[2] | o ; If 18 then_branch={| Identity:o0>y | y} "
       "else_branch=1 | i1[] | o",
       "attribute 'else_branch' is missing"},
      {"SequenceConstruct 18 | f32[2] f32[2] | o ; Loop 18 body={i:i64[] "
       "go:i1[] s:seq:f32[2] | Identity:go>goes SequenceInsert:s,o0>t | goes "
       "t} | !i64[]=2 - $0 | o",
       "its input 1 is no tensor"},
      {"Identity 18 | f32[2] | o ; SequenceConstruct 18 | $0 $0 | o ; Loop 18 "
       "body={i:i64[] go:i1[] s:seq:f32[2] | Identity:go>goes "
       "SequenceInsert:s,o0>t | goes t} | !i64[2]=2,3 - $1 | o ; "
       "SequenceLength 18 | $2 | o",
       "it carries a sequence, so that its trips are written out, and how"},
      {"Identity 18 | f32[2] | o ; SequenceConstruct 18 | $0 $0 | o ; Loop 18 "
       "body={i:i64[] go:i1[] s:seq:f32[2] | Identity:go>goes "
       "SequenceInsert:s,o0>t | goes t} | !i64[]=3 !i1[2]=1,0 $1 | o ; "
       "SequenceLength 18 | $2 | o",
       "it carries a sequence, so that its trips are written out, and its"},
      {"Identity 18 | f32[2] | o ; SequenceConstruct 18 | $0 $0 | o ; Loop 18 "
       "body={i:i64[] go:i1[] s:seq:f32[2] | SequenceInsert:s,o0>t | t} | "
       "!i64[]=3 - $1 | o ; SequenceLength 18 | $2 | o",
       "it has 3 inputs and 1 outputs, its body 3 and 1"},
      {"Identity 18 | f32[2] | o ; SequenceConstruct 18 | $0 $0 | o ; Loop 18 "
       "body={i:i64[] go:i1[] s:seq:f32[2] | Identity:go>goes | goes} | "
       "!i64[]=3 - $1 | o ; SequenceLength 18 | $2 | o",
       "it has 3 inputs and 1 outputs, its body 3 and 1"},
      {"Identity 18 | f32[2] | o ; SequenceConstruct 18 | $0 $0 | o ; Loop 18 "
       "body={i:i64[] go:i1[] s:seq:f32[2] | Identity:go>goes "
       "SequenceInsert:s,o0>t | goes t} | !i64[]=3 - $1 | o o o",
       "it has 3 inputs and 3 outputs, its body 3 and 2"},
      {"Identity 18 | f32[2] | o ; SequenceConstruct 18 | $0 $0 | o ; Loop 18 "
       "body={i:i64[] go:i1[] s:seq:f32[2] | Identity:go>goes "
       "SequenceInsert:s,o0>t | goes t} | - - $1 | o ; SequenceLength 18 | $2 "
       "| o",
       "it carries a sequence over more than 256 trips"},
      {"Identity 18 | f32[2] | o ; SequenceConstruct 18 | $0 $0 | o ; Loop 18 "
       "body={i:i64[] go:i1[] s:seq:f32[2] | Identity:go>goes "
       "SequenceInsert:s,o0>t Identity:s>u | goes t u} | !i64[]=2 - $1 | o o",
       "its scan output 0 is no tensor"},
      {"SequenceConstruct 18 | f32[2] f32[2] | o ; SequenceMap 17 "
       "body={x:f32[2] z:f32[2] | Add:x,z>y | y} | $0 - | o",
       "its input 0 must be a sequence, its others tensors or sequences"},
      {"SequenceConstruct 18 | f32[2] f32[2] | o ; SequenceConstruct 18 | "
       "f32[2] | o ; SequenceMap 17 body={x:f32[2] z:f32[2] | Add:x,z>y | y} | "
       "$0 $1 | o",
       "its input 0 must be a sequence, its others tensors or sequences"},
      {"SequenceMap 17 body={x:f32[2] | Neg:x>y | y} | f32[2] | o",
       "its input 0 must be a sequence, its others tensors or sequences"},
      {"Optional 18 | | o ; SequenceMap 17 body={x:f32[2] | Neg:x>y | y} | $0 "
       "| o",
       "its input 0 must be a sequence, its others tensors or sequences"},
      {"MaxUnpool 11 kernel_shape=[2,2] strides=[2,2] | f32[1,1,2,2] "
       "!i64[1,1,2,2]=5,7,13,15 !i64[4]=1,1,3,5 | o",
       "its output_shape does not hold what it unpools"},
      {"MaxUnpool 11 kernel_shape=[2,2] strides=[2,2] | f32[1,1,2,2] "
       "!i64[1,1,2,2]=5,7,13,15 !i64[3]=1,5,5 | o",
       "its output_shape does not hold what it unpools"},
      {"MaxUnpool 11 kernel_shape=[2,2] strides=[2,2] | f32[1,1,2,2] "
       "!i64[1,1,2,2]=5,7,13,15 !i64[4]=1,1,1099511627776,1099511627776 | o",
       "'stablehlo.pad' (node 'n' in model.onnx): the size of the tensor"},
      {"MaxUnpool 11 kernel_shape=[2,2] strides=[2,2] pads=[9,9,9,9] | "
       "f32[1,1,2,2] !i64[1,1,2,2]=5,7,13,15 | o",
       "spatial axis 0 of extent 2 was pooled from nothing"},
      {"MaxUnpool 11 kernel_shape=[2,2] strides=[9223372036854775807,2] | "
       "f32[1,1,4,2] i64[1,1,4,2] | o",
       "attribute 'strides' holds 9223372036854775807"},
      {"MaxUnpool 11 kernel_shape=[2,2] strides=[2,2] | f32[] i64[1,1,2,2] | o",
       "its input has rank 0; it needs batch, channels and at least one"},
      {"MaxUnpool 11 kernel_shape=[2,2] strides=[2,2] | f32[1,1,2,2] i64[] | o",
       "it has 4 elements and another number of indices"},
      {"Compress 18 axis=0 | f32[5,1,2,2] i1[5] | o ; Cast 18 to=7 | $0 | o ; "
       "MaxUnpool 11 kernel_shape=[2,2] strides=[2,2] | $0 $1 !i64[4]=5,1,5,5 "
       "| o",
       "it has an output_shape, and how long axis 0 is only a run tells"},
      {"Einsum 18 equation:a[,b->ab | f32[2,3] f32[3] | o",
       "the equation 'a[,b->ab' does not fit its inputs"},
      {"Einsum 18 equation:a@,b->ab | f32[2,3] f32[3] | o",
       "the equation 'a@,b->ab' does not fit its inputs"},
      {"Einsum 18 equation:a..,b->ab | f32[2,3] f32[3] | o",
       "the equation 'a..,b->ab' does not fit its inputs"},
      {"Einsum 18 equation:a.b.,b->ab | f32[2,3] f32[3] | o",
       "the equation 'a.b.,b->ab' does not fit its inputs"},
      {"Einsum 18 equation:.a..,b->ab | f32[2,3] f32[3] | o",
       "the equation '.a..,b->ab' does not fit its inputs"},
      {"Einsum 18 equation:a.,b->ab | f32[2,3] f32[3] | o",
       "the equation 'a.,b->ab' does not fit its inputs"},
      {"Einsum 18 equation:...a,...b->...ab | "
       "f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] "
       "f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] | o",
       "the equation '...a,...b->...ab' has a result of more than 16 axes"},
      {"Einsum 18 equation:...a->...abc | f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] "
       "| o",
       "the equation '...a->...abc' has a result of more than 16 axes"},
      {"Einsum 18 equation:abcdefgh,ijklmnopq | f32[1,1,1,1,1,1,1,1] "
       "f32[1,1,1,1,1,1,1,1,1] | o",
       "the equation 'abcdefgh,ijklmnopq' has a result of more than 16 axes"},
      {"Einsum 18 equation:aabb->ab | f32[2,3,2,2] | o",
       "label 'a' is of an axis of 2 and of one of 3 of the same input"},
      {"Slice 13 | f32[2] !i64[3]=0,0,0 !i64[3]=1,1,1 | o",
       "its starts, ends, axes and steps differ in length"},
      {"Compress 18 axis=0 | f32[5,3] i1[5] | o ; Shape 18 | $0 | o ; Slice 18 "
       "| f32[9,9] $1 !i64[2]=9,9 !i64[1]=0 | o",
       "its starts, ends, axes and steps differ in length"},
      {"Compress 18 axis=0 | f32[5,3] i1[5] | o ; Shape 18 | $0 | o ; Slice 18 "
       "| f32[9,9] $1 !i64[2]=9,9 !i64[2]=0,1 !i64[1]=1 | o",
       "its starts, ends, axes and steps differ in length"},
      {"Pad 18 mode:reflect | f32[4] !i64[2]=-3,-3 | o",
       "its pads -3 and -3 take more than the 4 elements of axis 0 away"},
      {"Pad 18 mode:wrap | f32[4] !i64[2]=-3,-3 | o",
       "its pads -3 and -3 take more than the 4 elements of axis 0 away"},
      {"Pad 18 mode:edge | f32[4] !i64[2]=-3,-3 | o",
       "its pads -3 and -3 take more than the 4 elements of axis 0 away"},
      {"Pad 18 mode:reflect | f32[4,4] !i64[4]=-3,0,-3,0 | o",
       "its pads -3 and -3 take more than the 4 elements of axis 0 away"},
      {"Pad 18 mode:edge | f32[0] !i64[2]=1,1 | o",
       "axis 0 of extent 0 cannot be padded by 1 and 1"},
      {"Pad 18 mode:edge | f32[4] !i64[2]=1099511627776,1 | o",
       "axis 0 is padded by more than 2^31"},
      {"CenterCropPad 18 | f32[2] !i64[17]=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1 | "
       "o",
       "its shape holds 1"},
      {"CenterCropPad 18 | f32[2] !i64[1]=-1 | o", "its shape holds -1"},
      {"CenterCropPad 18 | f32[2] !i64[1]=4611686018427387904 | o",
       "its shape holds 4611686018427387904"},
      {"Gather 13 | f32[1,1,1,1,1,1,1,1,1] i64[1,1,1,1,1,1,1,1,1] | o",
       "indices must be integers and the result have at most 16 axes"},
      {"Gather 13 | f32[2] f32[2] | o",
       "indices must be integers and the result have at most 16 axes"},
      {"GatherND 13 | f32[1,1,1,1,1,1,1,1,1] i64[1,1,1,1,1,1,1,1,1] | o",
       "its index vectors do not fit its data"},
      {"OneHot 11 | i64[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] !f32[]=2 !f32[2]=0,1 "
       "| o",
       "it needs a positive depth and two values"},
      {"Conv 11 pads=[-4294967296,0] kernel_shape=[2] | f32[1,1,4] !f32[1,1,2] "
       "| o",
       "attribute 'pads' holds more than 2^31"},
      {"Conv 11 pads=[4294967296,0] kernel_shape=[2] | f32[1,1,4] !f32[1,1,2] "
       "| o",
       "attribute 'pads' holds more than 2^31"},
      {"Conv 11 pads=[0,-4294967296] kernel_shape=[2] | f32[1,1,4] !f32[1,1,2] "
       "| o",
       "attribute 'pads' holds more than 2^31"},
      {"Conv 11 pads=[0,4294967296] kernel_shape=[2] | f32[1,1,4] !f32[1,1,2] "
       "| o",
       "attribute 'pads' holds more than 2^31"},
      {"ConvTranspose 11 strides=[4611686018427387904] kernel_shape=[2] | "
       "f32[1,1,9] !f32[1,1,2] | o",
       "attribute 'strides' holds 4611686018427387904"},
      {"ConvTranspose 11 strides=[2] dilations=[4611686018427387904] "
       "kernel_shape=[2] | f32[1,1,9] !f32[1,1,2] | o",
       "attribute 'dilations' holds 4611686018427387904"},
      {"ConvTranspose 11 strides=[2] kernel_shape=[2] output_shape=[-4] | "
       "f32[1,1,9] !f32[1,1,2] | o",
       "spatial axis 0 of extent 9 is spread by 2 and reached over by 2"},
      {"ConvTranspose 11 | f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] "
       "!f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] | o",
       "1 channels cannot be split into 1 groups"},
      {"GridSample 20 mode:cubic | f32[1,1,2,2,2,2,2,2] f32[1,2,2,2,2,2,2,6] | "
       "o",
       "it samples 6 axes, each by 4 elements, or one of extent 0"},
      {"GridSample 20 mode:linear | f32[1,1,0,3] f32[1,2,2,2] | o",
       "it samples 2 axes, each by 2 elements, or one of extent 0"},
      {"MaxRoiPool 1 pooled_shape=[2,2,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] | "
       "f32[1,1,4,4] f32[1,5] | o",
       "it needs an NCHW input, regions [count, 5] and a pooled_shape of"},
      {"DeformConv 19 group=0 | f32[1,2,3,3] f32[2,2,2,2] f32[1,8,2,2] | o",
       "its input, weights and offsets must have rank 4 and fit its 0"},
      {"DeformConv 19 offset_group=0 | f32[1,2,3,3] f32[2,2,2,2] f32[1,8,2,2] "
       "| o",
       "its input, weights and offsets must have rank 4 and fit its 1"},
      {"DeformConv 19 | f32[1,0,3,3] f32[2,0,2,2] f32[1,8,2,2] | o",
       "its input, weights and offsets must have rank 4 and fit its 1"},
      {"DeformConv 19 group=3 | f32[1,2,3,3] f32[3,1,2,2] f32[1,8,2,2] | o",
       "its input, weights and offsets must have rank 4 and fit its 3"},
      {"DeformConv 19 offset_group=3 | f32[1,2,3,3] f32[2,2,2,2] f32[1,24,2,2] "
       "| o",
       "its input, weights and offsets must have rank 4 and fit its 1"},
      {"DeformConv 19 group=2 | f32[1,3,3,3] f32[2,1,2,2] f32[1,8,2,2] | o",
       "its input, weights and offsets must have rank 4 and fit its 2"},
      {"DeformConv 19 group=2 | f32[1,2,3,3] f32[3,1,2,2] f32[1,8,2,2] | o",
       "its input, weights and offsets must have rank 4 and fit its 2"},
      {"DeformConv 19 offset_group=2 | f32[1,3,3,3] f32[3,3,2,2] f32[1,16,2,2] "
       "| o",
       "its input, weights and offsets must have rank 4 and fit its 1"},
      {"DeformConv 19 group=4 | f32[1,2,3,3] f32[4,1,2,2] f32[1,8,2,2] | o",
       "its input, weights and offsets must have rank 4 and fit its 4"},
      {"ml:CastMap 1 | f32[2] | o",
       "its input is no map that the model takes; maps are inputs of a"},
      {"Neg 18 | map:i64:f32 | o",
       "node 'n' (Neg) takes the input 'i0', which is a map; maps are"},
      {"ml:Scaler 1 | map:i64:f32 | o",
       "node 'n' (Scaler) takes the input 'i0', which is a map; maps are"},
      {"ml:CastMap 1 | map:i64:f32 map:i64:f32 | o",
       "node 'n' (CastMap) takes the input 'i0', which is a map; maps are"},
      {"ml:Normalizer 1 | map:i64:f32 | o",
       "node 'n' (Normalizer) takes the input 'i0', which is a map; maps"},
      {"ml:TreeEnsembleClassifier 3 nodes_treeids=[0,0,0] "
       "nodes_nodeids=[0,1,2] nodes_featureids=[0,0,0] "
       "nodes_truenodeids=[1,0,0] nodes_falsenodeids=[2,0,0] "
       "nodes_values=[0.5,0.0,0.0] nodes_modes:[BRANCH_LEQ,LEAF,LEAF] "
       "class_treeids=[0,0,0,0] class_nodeids=[1,1,2,2] class_ids=[0,1,0,1] "
       "class_weights=[1.0,2.0,3.0,-1.0] classlabels_int64s=[0,1] "
       "base_values=[0.5] | f32[3,2] | o o",
       "attribute 'base_values' has 1 numbers for 2 targets"},
      {"ml:TreeEnsembleClassifier 3 nodes_treeids=[0,0,0] "
       "nodes_nodeids=[0,1,2] nodes_featureids=[0,0,0] "
       "nodes_truenodeids=[1,0,0] nodes_falsenodeids=[2,0,0] "
       "nodes_values=[0.5,0.0,0.0] nodes_modes:[BRANCH_LEQ,LEAF,LEAF] "
       "class_treeids=[] class_nodeids=[] class_ids=[] class_weights=[] "
       "classlabels_int64s=[0,1] | f32[3,2] | o o",
       "attribute 'class_weights' is ints and should be floats"},
      {"ml:SVMClassifier 1 kernel_type:LINEAR kernel_params=[0.5,0.25,2.0] "
       "coefficients=[1.0,-0.5,0.5,0.25,0.75,-1.0] "
       "support_vectors=[1.0,2.0,3.0,0.5,0.25,-1.0] vectors_per_class=[1,1,1] "
       "rho=[0.5,0.25,0.125] classlabels_ints=[0,1,2] prob_a=[1.0,1.0] "
       "prob_b=[0.5,0.5] | f32[2,2] | o o",
       "3 class labels, 3 support vectors, 6 coefficients, 3 rho, 2"},
      {"TfIdfVectorizer 9 max_gram_length=1 max_skip_count=0 min_gram_length=1 "
       "mode:TF ngram_counts=[0] ngram_indexes=[0,1] pool_strings:[a,b] "
       "pool_int64s=[1,2] | str[3] | o",
       "its pool and its input are not both of integers or both of strings"},
      {"TfIdfVectorizer 9 max_gram_length=1 max_skip_count=0 min_gram_length=1 "
       "mode:TF ngram_counts=[0] ngram_indexes=[0,1] pool_strings:[a,b] | "
       "i64[3] | o",
       "its pool and its input are not both of integers or both of strings"},
      {"TfIdfVectorizer 9 max_gram_length=1 max_skip_count=0 min_gram_length=1 "
       "mode:TF ngram_counts=[0] ngram_indexes=[0,1] pool_strings=[1,2] | "
       "i64[3] | o",
       "only integers or strings, one row or several, with a pool are"},
      {"TfIdfVectorizer 9 max_gram_length=1000 max_skip_count=1000 "
       "min_gram_length=1 mode:TF ngram_counts=[0] ngram_indexes=[0,1] "
       "pool_int64s=[1,2] | i64[3] | o",
       "n-grams of 1 to 1000 with 1000 skips make no sense"},
      {"TfIdfVectorizer 9 max_gram_length=40 max_skip_count=40 "
       "min_gram_length=1 mode:TF ngram_counts=[0] ngram_indexes=[0,1] "
       "pool_int64s=[1,2] | i64[3] | o",
       "n-grams of 1 to 40 with 40 skips make no sense"},
      {"TfIdfVectorizer 9 max_gram_length=1 max_skip_count=0 min_gram_length=1 "
       "mode:IDF weights=[1,2] ngram_counts=[0] ngram_indexes=[0,1] "
       "pool_int64s=[1,2] | i64[3] | o",
       "attribute 'weights' must have a float for each of 2 n-grams"},
      {"TfIdfVectorizer 9 max_gram_length=1 max_skip_count=0 min_gram_length=1 "
       "mode:ODD weights=[1.0,2.0] ngram_counts=[0] ngram_indexes=[0,1] "
       "pool_int64s=[1,2] | i64[3] | o",
       "attribute 'mode' is 'ODD', known are TF, IDF and TFIDF"},
      {"RNN 14 hidden_size=2 activations=[1] | f32[3,1,2] f32[1,2,2] "
       "f32[1,2,2] | o o",
       "attribute 'activations' should be 1 names, it has 1 values"},
      {"RNN 14 hidden_size=2 activations:[Tanh,Tanh,Relu] | f32[3,1,2] "
       "f32[1,2,2] f32[1,2,2] | o o",
       "attribute 'activations' should be 1 names, it has 3 values"},
      {"RNN 14 hidden_size=2 activations:[1anh] | f32[3,1,2] f32[1,2,2] "
       "f32[1,2,2] | o o",
       "the activation '1anh' is not known"},
      {"ms:CausalConvWithState 1 ndim=2 | f32[2,2,3] !f32[2,1,3] | o o",
       "attribute 'ndim' is 2, only 1 is supported: it goes along one axis"},
      {"ms:CausalConvWithState 1 ndim=1 state_window=2 | f32[2,2,3] "
       "!f32[2,1,3] | o o",
       "attribute 'state_window' is 2, only 0 is supported: the state is"},
      {"ms:LinearAttention 1 kv_num_heads=2 q_num_heads=2 state_window=2 "
       "update_rule:linear | f32[3,5,8] f32[3,5,8] f32[3,5,8] f32[3,2,4,4] | o "
       "o",
       "attribute 'state_window' is 2, only 0 is supported: the state is"},
      {"Cast 25 to=24 round_mode:odd | f32[4] | o",
       "attribute 'round_mode' is 'odd', it should be up, down or nearest"},
      {"Pow 13 | f32[2] !f32[3]=2,2,2 | o",
       "the shapes of tensor<2xf32> and tensor<3xf32> cannot be broadcast"},
      {"StringConcat 20 | str[2] i32[2] | o",
       "its input 1, 'i1', is of numbers and another of strings; they"},
      {"StringConcat 20 | i32[2] str[2] | o",
       "its input 0, 'i0', is of numbers and another of strings; they"},
      {"StringSplit 20 delimiter:. | str[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] | o "
       "o",
       "its result has more than 16 axes"},
      {"ms:Tokenizer 1 mark=0 mincharnum=1 pad_value:x separators:[,] | "
       "str[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] | o",
       "its result has more than 16 axes"},
      {"ms:Tokenizer 1 mark=0 mincharnum=1 pad_value:x tokenexp:[ | str[1,2] | "
       "o",
       "attribute 'tokenexp' is strings and should be a string"},
      {"Col2Im 18 | f32[1,5,5] !i64[15]=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1 "
       "!i64[15]=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1 | o",
       "its image_shape has 15 axes, its block_shape 15"},
      {"Col2Im 18 | f32[1,5,5] !i64[2]=2147483647,2147483647 !i64[2]=1,5 | o",
       "its input must be [n, channels * 5, 4611686005542486021]"},
      {"Col2Im 18 | f32[1,5,5] !i64[2]=500000,500000 !i64[2]=100000,100000 | o",
       "blocks of 100000 along axis 0 of an image of 500000, or of more"},
      {"Col2Im 18 | f32[1,5,5] "
       "!i64[4]=2000000000,2000000000,2000000000,2000000000 !i64[4]=1,1,1,1 | "
       "o",
       "blocks of 1 along axis 2 of an image of 2000000000, or of more"},
      {"MelWeightMatrix 17 output_datatype=9 | !i32[]=8 !i32[]=16 !i32[]=8192 "
       "!f32[]=0 !f32[]=4096 | o",
       "attribute 'output_datatype' is BOOL"},
      {"MelWeightMatrix 17 output_datatype=8 | !i32[]=8 !i32[]=16 !i32[]=8192 "
       "!f32[]=0 !f32[]=4096 | o",
       "attribute 'output_datatype' is STRING"},
      {"MelWeightMatrix 17 | !i32[]=1000000 !i32[]=16000000 !i32[]=8192 "
       "!f32[]=0 !f32[]=4096 | o",
       "its num_mel_bins must be one number from 0 to 65536"},
      {"MelWeightMatrix 17 | !i32[]=8 !i32[]=16 !i32[]=4096 !f32[]=0 "
       "!f32[]=4096 | o",
       "edges of 0 and 4096 Hz do not fit the 9 bins of a transform of 16"},
      {"STFT 17 | f32[1,128,1] !i64[]=8 f32[15] !i64[]=16 | o",
       "its signal must be [batch, length, 1 or 2], its frames of 16 must"},
      {"STFT 17 | f32[1,128,1] !i64[]=8 f32[1,16] !i64[]=16 | o",
       "its signal must be [batch, length, 1 or 2], its frames of 16 must"},
      {"ArgMax 13 axis=0 | f32[] | o",
       "axis 0 is outside of a tensor of rank 0"},
      {"MaxPool 12 kernel_shape=[2] | f32[1,1,0] | o o",
       "the indices of no windows"},
      {"MaxPool 12 kernel_shape=[2] strides=[1] | f32[1,1,1] | o o",
       "the indices of no windows"},
      {"MaxPool 12 kernel_shape=[1] | f32[1,1,0] | o o",
       "the indices of no windows"},
      {"AveragePool 19 kernel_shape=[100000] pads=[99999,99999] "
       "auto_pad:NOTSET | f32[1,1,50000] | o",
       "an average over 149999 windows of 100000"},
      {"SplitToSequence 11 axis=0 | f32[6] !i64[2]=-1,7 | o",
       "its parts do not make up the 6 elements of axis 0"},
      {"Compress 18 axis=0 | f32[6] i1[6] | o ; SplitToSequence 11 axis=0 | $0 "
       "!i64[2]=-1,4 | o ; SequenceAt 11 | $1 !i64[]=0 | o",
       "its parts do not make up the elements of axis 0, which are at"},
      {"Compress 18 axis=0 | f32[6] i1[6] | o ; SplitToSequence 11 axis=0 | $0 "
       "!i64[2]=3,4 | o ; SequenceAt 11 | $1 !i64[]=0 | o",
       "its parts do not make up the elements of axis 0, which are at"},
      {"SequenceConstruct 18 | str[2] f32[2] | o ; ConcatFromSequence 11 "
       "axis=0 | $0 | o",
       "its input 1, 'i1', is of numbers and another of strings; they"},
      {"Identity 18 | str[2] | o ; Identity 18 | i32[2] | o ; "
       "SequenceConstruct 18 | $0 $1 | o ; ConcatFromSequence 11 axis=0 | $2 | "
       "o",
       "its input 1, 'o1', is of numbers and another of strings; they"},
      {"Optional 18 | | o ; SequenceLength 18 | $0 | o",
       "its input 0 is no sequence"},
      {"Optional 18 | | o ; SequenceInsert 18 | $0 f32[2] | o",
       "its input 0 is no sequence"},
      {"SequenceConstruct 18 | f32[2] | o ; SequenceInsert 18 | $0 f32[2] "
       "!i64[]=5 | o",
       "its position is outside of a sequence of 1"},
      {"Resize 19 mode:nearest nearest_mode:near | f32[1,1,4,4] - - "
       "!i64[4]=1,1,8,8 | o",
       "attribute 'nearest_mode' is 'near', known are: round_prefer_floor"},
      {"Resize 19 mode:nearest keep_aspect_ratio_policy:larger | f32[1,1,4,4] "
       "- - !i64[4]=1,1,8,8 | o",
       "attribute 'keep_aspect_ratio_policy' is 'larger', known are: stretch"},
      {"DepthToSpace 13 blocksize=2 mode:RCD | f32[1,8,2,3] | o",
       "attribute 'mode' is 'RCD', known are: DCR CRD"},
      {"RoiAlign 22 mode:sum | f32[1,1,10,10] f32[3,4] i64[3] | o",
       "attribute 'mode' is 'sum', known are: avg max"},
      {"RoiAlign 22 coordinate_transformation_mode:pixel | f32[1,1,10,10] "
       "f32[3,4] i64[3] | o",
       "is 'pixel', known are: half_pixel output_half_pixel"},
      {"TopK 11 | f32[4] !i64[2]=1,2 | o o",
       "its k has 2 elements, but must be one number"},
      {"TopK 11 | f32[4] !i64[1]=-1 | o o",
       "its k is -1, its axis has 4 elements"},
      {"RotaryEmbedding 23 | f32[1,4,16] f32[1,4,8] f32[1,4,8] | o",
       "its input of rank 3 has rows of 16, which attribute num_heads, 0"},
      {"RotaryEmbedding 23 num_heads=3 | f32[1,4,16] f32[1,4,8] f32[1,4,8] | o",
       "num_heads, 3, does not divide"},
      {"Compress 18 axis=0 | f32[5,3] i1[5] | o ; Shape 18 | $0 | o ; Loop 16 "
       "body={i:i64[] c:i1[] s:f32[] | Identity:c>co Neg:s>so Neg:so>row | co "
       "so row} | $1 - f32[] | o o",
       "'stablehlo.reshape' (node 'n' in model.onnx): operand"},
      {"Scan 11 num_scan_inputs=1 body={s:f32[] z:f32[] x:f32[] | Add:s,x>t | "
       "t} | f32[] f32[] f32[3] | o",
       "its 3 inputs, num_scan_inputs of 1 and its body of 3 inputs do"},
      {"ms:QLinearConcat 1 axis=0 | !f32[]=0.5 !u8[]=1 | o",
       "it has 2 inputs; behind a scale and a zero point it takes three"},
      {"Compress 18 axis=0 | f32[6,4] i1[6] | o ; Reshape 18 | $0 "
       "!i64[3]=0,4611686018427387904,-1 | o",
       "only a run tells whether it has as many elements as its shape says"},
      {"Reshape 18 allowzero=1 | f32[2,3] !i64[2]=0,-1 | o",
       "6 elements cannot be reshaped to a multiple of 0"},
      {"Reshape 18 | f32[2,3] "
       "!i64[3]=4611686018427387904,4611686018427387904,2 | o",
       "extent 4611686018427387904 of axis 1 of the new shape makes no"},
      {"Reshape 18 | f32[2,3] !i64[2]=4,-1 | o",
       "6 elements cannot be reshaped to a multiple of 4"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    row_t row;
    pb_t model = row_model(rows[i].row, &row);
    onnx_test_t t;
    onnx_begin(&t);
    pestle_status_t status = onnx_import(&t, &model);
    const char* text = status ? pestle_status_message(status) : "is imported";
    if (!strstr(text, rows[i].says))
      print_error("%s\n  %s\n", rows[i].row, text);
    assert_non_null(strstr(text, rows[i].says));
    pestle_status_release(status);
    onnx_end(&t);
    pb_free(&model);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refuses_two_ellipses),
      cmocka_unit_test(refuses_a_label_of_two_extents),
      cmocka_unit_test(refuses_more_parts_than_are_equal),
      cmocka_unit_test(refuses_a_list_of_another_kind),
      cmocka_unit_test(refuses_an_empty_training_mode),
      cmocka_unit_test(refuses_a_depth_that_is_no_number),
      cmocka_unit_test(refuses_sizes_at_the_limit),
      cmocka_unit_test(refuses_another_number_of_parts),
      cmocka_unit_test(refuses_another_number_of_activations),
      cmocka_unit_test(refuses_another_number_of_weights),
      cmocka_unit_test(refuses_attention_without_heads),
      cmocka_unit_test(refuses_a_scale_that_is_no_number_a_group),
      cmocka_unit_test(refuses_a_condition_that_is_too_long),
      cmocka_unit_test(refuses_a_factor_that_is_no_number),
      cmocka_unit_test(refuses_complex_indices),
      cmocka_unit_test(refuses_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
