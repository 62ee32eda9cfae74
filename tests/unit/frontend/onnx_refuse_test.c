// SPDX-License-Identifier: Apache-2.0
// Nodes whose inputs or attributes an importer once trusted: each is refused
// with a sentence that names the thing.
#include "onnx_case.h"

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
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
