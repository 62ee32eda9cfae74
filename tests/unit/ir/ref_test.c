// SPDX-License-Identifier: Apache-2.0
// The reference evaluator on values where meanings are decided: NaN, signed
// zeros, infinities, denormals, division by zero, wrapping, saturation, empty
// tensors, rank 0; and each structured op on a case worked out by hand.
#include "ref_test.h"

#include <math.h>

#include "base/half.h"

#define BINARY(op, type, a, b)                  \
  RESULT(type, CONSTANT("a", type, a) CONSTANT( \
                   "b", type, b) "%r = stablehlo." op " %a, %b : " type)
#define UNARY(op, type, a) \
  RESULT(type, CONSTANT("a", type, a) "%r = stablehlo." op " %a : " type)
#define CONVERT(from, to, a)                                             \
  RESULT(to, CONSTANT("a", from, a) "%r = stablehlo.convert %a : (" from \
                                    ") -> " to)

#define NAN32 "0x7FC00000"
#define INF32 "0x7F800000"

static void floats(void** state) {
  (void)state;
  assert_result(float,
                BINARY("maximum", "tensor<4xf32>", "[-0.0, 0.0, 1.0, -1.0]",
                       "[0.0, -0.0, 2.0, -2.0]"),
                0.0f, 0.0f, 2.0f, -1.0f);
  assert_result(float,
                BINARY("minimum", "tensor<4xf32>", "[-0.0, 0.0, 1.0, -1.0]",
                       "[0.0, -0.0, 2.0, -2.0]"),
                -0.0f, -0.0f, 1.0f, -2.0f);
  float got[6];
  void* results[] = {got};
  evaluate(BINARY("maximum", "tensor<2xf32>", "[" NAN32 ", 1.0]",
                  "[1.0, " NAN32 "]"),
           NULL, results);
  assert_true(isnan(got[0]) && isnan(got[1]));
  evaluate(BINARY("minimum", "tensor<2xf32>", "[" NAN32 ", 1.0]",
                  "[1.0, " NAN32 "]"),
           NULL, results);
  assert_true(isnan(got[0]) && isnan(got[1]));
  assert_result(float,
                UNARY("sign", "tensor<4xf32>", "[-3.0, 0.0, -0.0, 1e-45]"),
                -1.0f, 0.0f, -0.0f, 1.0f);
  assert_result(
      float,
      UNARY("round_nearest_even", "tensor<4xf32>", "[0.5, 1.5, -0.5, -2.5]"),
      0.0f, 2.0f, -0.0f, -2.0f);
  assert_result(
      float,
      UNARY("round_nearest_afz", "tensor<4xf32>", "[0.5, 1.5, -0.5, -2.5]"),
      1.0f, 2.0f, -1.0f, -3.0f);
  assert_result(float,
                BINARY("remainder", "tensor<4xf32>", "[5.5, -5.5, 5.5, -0.0]",
                       "[2.0, 2.0, -2.0, 1.0]"),
                1.5f, -1.5f, 1.5f, -0.0f);
  assert_result(float,
                BINARY("divide", "tensor<3xf32>", "[1.0, -1.0, 1e-38]",
                       "[0.0, 0.0, 1e3]"),
                INFINITY, -INFINITY, 1e-38f / 1e3f);
  assert_result(float, UNARY("rsqrt", "tensor<3xf32>", "[4.0, 0.0, " INF32 "]"),
                0.5f, INFINITY, 0.0f);
  assert_result(float,
                UNARY("logistic", "tensor<3xf32>", "[0.0, -200.0, 200.0]"),
                0.5f, 0.0f, 1.0f);
  assert_result(float, UNARY("negate", "tensor<2xf32>", "[0.0, -0.0]"), -0.0f,
                0.0f);
  // The double nearest to exp(1) rounded, not expf's guess.
  assert_result(float, UNARY("exponential", "tensor<f32>", "1.0"),
                (float)exp(1.0));
  assert_result(double, UNARY("exponential", "tensor<f64>", "1.0"), exp(1.0));
}

static void integers(void** state) {
  (void)state;
  assert_result(int32_t,
                BINARY("divide", "tensor<4xi32>", "[7, -7, -2147483648, 3]",
                       "[0, 2, -1, -2]"),
                -1, -3, INT32_MIN, -1);
  assert_result(int32_t,
                BINARY("remainder", "tensor<4xi32>", "[7, -7, -2147483648, 3]",
                       "[0, 2, -1, -2]"),
                7, -1, 0, 1);
  assert_result(
      int64_t,
      BINARY("divide", "tensor<2xi64>", "[-9223372036854775808, 5]", "[-1, 0]"),
      INT64_MIN, -1);
  assert_result(uint8_t,
                BINARY("divide", "tensor<2xui8>", "[7, 255]", "[0, 2]"), 255,
                127);
  assert_result(uint8_t,
                BINARY("remainder", "tensor<2xui8>", "[7, 255]", "[0, 2]"), 7,
                1);
  assert_result(int8_t, BINARY("add", "tensor<2xi8>", "[127, -128]", "[1, -1]"),
                -128, 127);
  assert_result(int8_t,
                BINARY("multiply", "tensor<2xi4>", "[7, -8]", "[7, -8]"), 1, 0);
  assert_result(uint8_t,
                BINARY("subtract", "tensor<2xui4>", "[0, 9]", "[1, 4]"), 15, 5);
  assert_result(
      int32_t,
      BINARY("shift_left", "tensor<3xi32>", "[1, 1, 3]", "[31, 32, -1]"),
      INT32_MIN, 0, 0);
  assert_result(int32_t,
                BINARY("shift_right_arithmetic", "tensor<3xi32>", "[-8, -8, 8]",
                       "[1, 40, 32]"),
                -4, -1, 0);
  assert_result(int32_t,
                BINARY("shift_right_logical", "tensor<3xi32>", "[-8, -8, 8]",
                       "[1, 32, 2]"),
                0x7ffffffc, 0, 2);
  assert_result(
      uint8_t,
      BINARY("shift_right_arithmetic", "tensor<2xui8>", "[128, 64]", "[1, 1]"),
      192, 32);
  assert_result(int32_t,
                BINARY("power", "tensor<6xi32>", "[2, -2, 1, -1, 5, 3]",
                       "[10, 3, -5, -3, -1, 40]"),
                1024, -8, 1, -1, 0, 689956897);
  assert_result(int16_t, UNARY("popcnt", "tensor<2xi16>", "[-1, 5]"), 16, 2);
  assert_result(int16_t,
                UNARY("count_leading_zeros", "tensor<3xi16>", "[-1, 1, 0]"), 0,
                15, 16);
  assert_result(int32_t, UNARY("abs", "tensor<2xi32>", "[-2147483648, -5]"),
                INT32_MIN, 5);
  assert_result(uint32_t, UNARY("negate", "tensor<ui32>", "1"), UINT32_MAX);
}

static void booleans(void** state) {
  (void)state;
  assert_result(uint8_t,
                BINARY("add", "tensor<4xi1>", "[0, 0, 1, 1]", "[0, 1, 0, 1]"),
                0, 1, 1, 1);
  assert_result(
      uint8_t,
      BINARY("multiply", "tensor<4xi1>", "[0, 0, 1, 1]", "[0, 1, 0, 1]"), 0, 0,
      0, 1);
  assert_result(uint8_t,
                BINARY("xor", "tensor<4xi1>", "[0, 0, 1, 1]", "[0, 1, 0, 1]"),
                0, 1, 1, 0);
  assert_result(uint8_t, UNARY("not", "tensor<2xi1>", "[0, 1]"), 1, 0);
  assert_result(uint8_t, BINARY("maximum", "tensor<2xi1>", "[0, 1]", "[0, 0]"),
                0, 1);
}

#define COMPARE(direction, type, out, a, b)                         \
  RESULT(out, CONSTANT("a", type, a) CONSTANT(                      \
                  "b", type, b) "%r = stablehlo.compare " direction \
                                ", %a, %b : (" type ", " type ") -> " out)

static void comparisons(void** state) {
  (void)state;
  assert_result(uint8_t,
                COMPARE("EQ", "tensor<3xf32>", "tensor<3xi1>",
                        "[" NAN32 ", 0.0, 1.0]", "[" NAN32 ", -0.0, 2.0]"),
                0, 1, 0);
  assert_result(uint8_t,
                COMPARE("NE", "tensor<2xf32>", "tensor<2xi1>",
                        "[" NAN32 ", 0.0]", "[" NAN32 ", -0.0]"),
                1, 0);
  assert_result(
      uint8_t,
      COMPARE("LT", "tensor<2xui8>", "tensor<2xi1>", "[255, 1]", "[1, 255]"), 0,
      1);
  assert_result(
      uint8_t,
      COMPARE("LT", "tensor<2xi8>", "tensor<2xi1>", "[-1, 1]", "[1, -1]"), 1,
      0);
  assert_result(uint8_t,
                RESULT("tensor<3xi1>",
                       CONSTANT("a", "tensor<3xf32>",
                                "[" NAN32 ", " INF32
                                ", 1.0]") "%r = stablehlo.is_finite %a : "
                                          "(tensor<3xf32>) -> tensor<3xi1>"),
                0, 0, 1);
}

static void select_and_clamp(void** state) {
  (void)state;
  assert_result(
      float,
      RESULT("tensor<2xf32>",
             CONSTANT("p", "tensor<i1>", "false")
                 CONSTANT("a", "tensor<2xf32>", "[1.0, 2.0]")
                     CONSTANT("b", "tensor<2xf32>",
                              "[3.0, 4.0]") "%r = stablehlo.select %p, %a, %b "
                                            ": tensor<i1>, tensor<2xf32>"),
      3, 4);
  // Bits go through untouched, a signalling NaN too.
  assert_result(
      uint16_t,
      RESULT("tensor<2xf16>",
             CONSTANT("p", "tensor<2xi1>", "[true, false]")
                 CONSTANT("a", "tensor<2xf16>", "[0x7C01, 1.0]") CONSTANT(
                     "b", "tensor<2xf16>",
                     "[1.0, 0xFE03]") "%r = stablehlo.select %p, %a, %b : "
                                      "tensor<2xi1>, tensor<2xf16>"),
      0x7C01, 0xFE03);
  assert_result(
      double,
      RESULT(
          "tensor<1xcomplex<f64>>",
          CONSTANT("p", "tensor<i1>", "true")
              CONSTANT("a", "tensor<1xcomplex<f64>>", "(1.0,2.0)") CONSTANT(
                  "b", "tensor<1xcomplex<f64>>",
                  "(3.0,4.0)") "%r = stablehlo.select %p, %a, %b : tensor<i1>, "
                               "tensor<1xcomplex<f64>>"),
      1, 2);
#define CLAMP(type, bound, low, x, high)                                   \
  RESULT(type,                                                             \
         CONSTANT("l", bound, low) CONSTANT("x", type, x) CONSTANT(        \
             "h", bound, high) "%r = stablehlo.clamp %l, %x, %h : (" bound \
                               ", " type ", " bound ") -> " type)
  assert_result(
      float,
      CLAMP("tensor<3xf32>", "tensor<f32>", "-1.0", "[-5.0, 0.5, 5.0]", "1.0"),
      -1, 0.5f, 1);
  assert_result(int8_t,
                CLAMP("tensor<4xi8>", "tensor<i8>", "-2", "[-5, 0, 5, 3]", "3"),
                -2, 0, 3, 3);
  // min(max(x, low), high): a low bound above the high one loses.
  assert_result(int8_t, CLAMP("tensor<2xi8>", "tensor<i8>", "5", "[0, 9]", "1"),
                1, 1);
}

static void narrow_floats(void** state) {
  (void)state;
  // 2048 + 1 rounds to even in f16; 256 + 1 in bf16.
  assert_result(
      uint16_t,
      BINARY("add", "tensor<2xf16>", "[2048.0, 65504.0]", "[1.0, 65504.0]"),
      0x6800, 0x7C00);
  assert_result(uint16_t, BINARY("add", "tensor<1xbf16>", "[256.0]", "[1.0]"),
                0x4380);
  assert_result(uint16_t,
                BINARY("multiply", "tensor<1xf16>", "[6.1035e-05]", "[0.5]"),
                0x0200);
  assert_result(
      uint8_t,
      BINARY("add", "tensor<2xf8E4M3FN>", "[448.0, 1.0]", "[448.0, 0.0625]"),
      pestle_f8e4m3fn_from_f32(896), pestle_f8e4m3fn_from_f32(1));
}

static void conversions(void** state) {
  (void)state;
  assert_result(int8_t,
                CONVERT("tensor<5xf32>", "tensor<5xi8>",
                        "[1.9, -1.9, 1e9, -1e9, " NAN32 "]"),
                1, -1, 127, -128, 0);
  assert_result(uint32_t,
                CONVERT("tensor<4xf32>", "tensor<4xui32>",
                        "[-1.0, 4294967296.0, 3e9, " INF32 "]"),
                0, UINT32_MAX, 3000000000u, UINT32_MAX);
  assert_result(int64_t,
                CONVERT("tensor<2xf64>", "tensor<2xi64>", "[1e300, -1e300]"),
                INT64_MAX, INT64_MIN);
  assert_result(
      uint8_t,
      CONVERT("tensor<4xf32>", "tensor<4xi1>", "[0.0, -0.0, 0.1, " NAN32 "]"),
      0, 0, 1, 1);
  assert_result(uint8_t,
                CONVERT("tensor<3xi32>", "tensor<3xi1>", "[0, 256, -1]"), 0, 1,
                1);
  assert_result(int8_t, CONVERT("tensor<2xi32>", "tensor<2xi8>", "[300, -129]"),
                44, 127);
  assert_result(int32_t,
                CONVERT("tensor<2xui32>", "tensor<2xi32>", "[4294967295, 1]"),
                -1, 1);
  assert_result(int8_t, CONVERT("tensor<2xi8>", "tensor<2xi4>", "[9, -9]"), -7,
                7);
  // Rounded once: through f64 this would be a tie that it is not.
  assert_result(
      float,
      CONVERT("tensor<2xi64>", "tensor<2xf32>", "[9007199791611905, 16777217]"),
      9007200328482816.0f, 16777216.0f);
  assert_result(float,
                CONVERT("tensor<ui64>", "tensor<f32>", "18446744073709551615"),
                18446744073709551616.0f);
  assert_result(float,
                CONVERT("tensor<2xf64>", "tensor<2xf32>", "[1e300, 1e-45]"),
                INFINITY, 1.4e-45f);
}

static void complex_conversions(void** state) {
  (void)state;
  assert_result(float,
                CONVERT("tensor<2xcomplex<f64>>", "tensor<2xf32>",
                        "[(1.5,9.0), (-2.0,3.0)]"),
                1.5f, -2.0f);
  assert_result(float,
                CONVERT("tensor<1xi32>", "tensor<1xcomplex<f32>>", "[7]"), 7.0f,
                0.0f);
}

static void bitcasts(void** state) {
  (void)state;
#define BITCAST(from, to, a)                                                 \
  RESULT(to,                                                                 \
         CONSTANT("a", from, a) "%r = stablehlo.bitcast_convert %a : (" from \
                                ") -> " to)
  assert_result(uint32_t,
                BITCAST("tensor<2xf32>", "tensor<2xui32>", "[1.0, -0.0]"),
                0x3f800000u, 0x80000000u);
  assert_result(uint8_t,
                BITCAST("tensor<1xi32>", "tensor<1x4xui8>", "[67305985]"), 1, 2,
                3, 4);
  assert_result(int8_t, BITCAST("tensor<2xui4>", "tensor<2xi4>", "[15, 7]"), -1,
                7);
  assert_result(uint8_t, BITCAST("tensor<1xui8>", "tensor<1x2xui4>", "[165]"),
                5, 10);
}

#define MOVE(type, body, ...)                                          \
  assert_result(int32_t,                                               \
                RESULT(type, CONSTANT("x", "tensor<2x3xi32>",          \
                                      "[[1, 2, 3], [4, 5, 6]]") body), \
                __VA_ARGS__)

static void moves(void** state) {
  (void)state;
  MOVE("tensor<3x2xi32>",
       "%r = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xi32>) -> "
       "tensor<3x2xi32>",
       1, 4, 2, 5, 3, 6);
  MOVE("tensor<2x3xi32>",
       "%r = stablehlo.reverse %x, dims = [1] : tensor<2x3xi32>", 3, 2, 1, 6, 5,
       4);
  MOVE("tensor<1x2xi32>",
       "%r = stablehlo.slice %x [1:2, 0:3:2] : (tensor<2x3xi32>) -> "
       "tensor<1x2xi32>",
       4, 6);
  MOVE("tensor<2x2x3xi32>",
       "%r = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<2x3xi32>) "
       "-> tensor<2x2x3xi32>",
       1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6);
}

static void pads(void** state) {
  (void)state;
  assert_result(
      int32_t,
      RESULT("tensor<3x6xi32>",
             CONSTANT("x", "tensor<2x3xi32>", "[[1, 2, 3], [4, 5, 6]]")
                 CONSTANT("z", "tensor<i32>",
                          "9") "%r = stablehlo.pad %x, %z, low = [0, -1], high "
                               "= [0, 2], interior"
                               " = [1, 1] : (tensor<2x3xi32>, tensor<i32>) -> "
                               "tensor<3x6xi32>"),
      9, 2, 9, 3, 9, 9,  //
      9, 9, 9, 9, 9, 9,  //
      9, 5, 9, 6, 9, 9);
  assert_result(
      int32_t,
      RESULT("tensor<2xi32>",
             CONSTANT("x", "tensor<1xi32>", "[5]") CONSTANT(
                 "z", "tensor<i32>",
                 "9") "%r = stablehlo.pad %x, %z, low = [-3], high = [4], "
                      "interior = "
                      "[0] : (tensor<1xi32>, tensor<i32>) -> tensor<2xi32>"),
      9, 9);
  assert_result(
      int32_t,
      RESULT("tensor<3x2xi32>",
             CONSTANT("a", "tensor<1x2xi32>", "[[1, 2]]")
                 CONSTANT("e", "tensor<0x2xi32>", "") CONSTANT(
                     "b", "tensor<2x2xi32>",
                     "[[3, 4], [5, 6]]") "%r = stablehlo.concatenate %a, %e, "
                                         "%b, dim = 0 : "
                                         "(tensor<1x2xi32>, tensor<0x2xi32>, "
                                         "tensor<2x2xi32>) -> "
                                         "tensor<3x2xi32>"),
      1, 2, 3, 4, 5, 6);
  assert_result(uint8_t,
                RESULT("tensor<2x3xui8>",
                       "%r = stablehlo.iota dim = 1 : tensor<2x3xui8>"),
                0, 1, 2, 0, 1, 2);
}

static void gathers(void** state) {
  (void)state;
  // Starts outside are moved inside, negative and too large.
  assert_result(
      int32_t,
      RESULT("tensor<2xi32>",
             CONSTANT("x", "tensor<4xi32>", "[1, 2, 3, 4]") CONSTANT(
                 "i", "tensor<i32>",
                 "100") "%r = stablehlo.dynamic_slice %x, %i, sizes = [2] : "
                        "(tensor<4xi32>, tensor<i32>) -> tensor<2xi32>"),
      3, 4);
  assert_result(
      int32_t,
      RESULT("tensor<4xi32>",
             CONSTANT("x", "tensor<4xi32>", "[1, 2, 3, 4]")
                 CONSTANT("u", "tensor<2xi32>", "[8, 9]") CONSTANT(
                     "i", "tensor<i64>",
                     "-7") "%r = stablehlo.dynamic_update_slice %x, %u, %i : "
                           "(tensor<4xi32>, tensor<2xi32>, tensor<i64>) -> "
                           "tensor<4xi32>"),
      8, 9, 3, 4);
  assert_result(
      int32_t,
      RESULT(
          "tensor<3x2xi32>",
          CONSTANT("x", "tensor<3x2xi32>", "[[1, 2], [3, 4], [5, 6]]") CONSTANT(
              "i", "tensor<3x1xi32>",
              "[[2], [-1], [7]]") "%r = \"stablehlo.gather\"(%x, %i) "
                                  "<{dimension_numbers = "
                                  "#stablehlo.gather<offset_dims = [1], "
                                  "collapsed_slice_dims = [0], "
                                  "start_index_map = [0], index_vector_dim = "
                                  "1>, slice_sizes = "
                                  "array<i64: 1, 2>}> : (tensor<3x2xi32>, "
                                  "tensor<3x1xi32>) -> "
                                  "tensor<3x2xi32>"),
      5, 6, 1, 2, 5, 6);
  // Batching dimensions: row b of the operand for index b.
  assert_result(
      int32_t,
      RESULT("tensor<2x1xi32>",
             CONSTANT("x", "tensor<2x3xi32>", "[[1, 2, 3], [4, 5, 6]]")
                 CONSTANT("i", "tensor<2x1xi32>",
                          "[[2], [0]]") "%r = \"stablehlo.gather\"(%x, %i) "
                                        "<{dimension_numbers = "
                                        "#stablehlo.gather<offset_dims = [1], "
                                        "operand_batching_dims = [0],"
                                        " start_indices_batching_dims = [0], "
                                        "start_index_map = [1], "
                                        "index_vector_dim = 1>, slice_sizes = "
                                        "array<i64: 1, 1>}> : "
                                        "(tensor<2x3xi32>, tensor<2x1xi32>) -> "
                                        "tensor<2x1xi32>"),
      3, 4);
}

static void reductions(void** state) {
  (void)state;
#define REDUCE(op, in, out, init, axes, a, b)                              \
  RESULT(out,                                                              \
         CONSTANT("x", in, a) CONSTANT(                                    \
             "i", init,                                                    \
             b) "%r = stablehlo.reduce(%x init: %i) applies stablehlo." op \
                " across dimensions = [" axes "] : (" in ", " init         \
                ") -> " out)
  assert_result(float,
                REDUCE("add", "tensor<2x3xf32>", "tensor<2xf32>", "tensor<f32>",
                       "1", "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]", "10.0"),
                16, 25);
  assert_result(float,
                REDUCE("add", "tensor<2x3xf32>", "tensor<3xf32>", "tensor<f32>",
                       "0", "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]", "0.0"),
                5, 7, 9);
  assert_result(float,
                REDUCE("maximum", "tensor<2x0xf32>", "tensor<2xf32>",
                       "tensor<f32>", "1", "", "-7.0"),
                -7, -7);
  assert_result(uint8_t,
                REDUCE("and", "tensor<3xi1>", "tensor<i1>", "tensor<i1>", "0",
                       "[true, true, false]", "true"),
                0);
  assert_result(int8_t,
                REDUCE("add", "tensor<3xi8>", "tensor<i8>", "tensor<i8>", "0",
                       "[100, 100, 100]", "0"),
                44);
  // Not commutative: the order is that of the elements.
  assert_result(
      float,
      RESULT("tensor<f32>",
             CONSTANT("x", "tensor<3xf32>", "[1.0, 2.0, 3.0]") CONSTANT(
                 "i", "tensor<f32>", "10.0") "%r = stablehlo.reduce(%x init: "
                                             "%i) applies stablehlo.subtract "
                                             "across dimensions = [0] : "
                                             "(tensor<3xf32>, tensor<f32>) -> "
                                             "tensor<f32>"),
      4);
}

static void windows(void** state) {
  (void)state;
#define WINDOW(out, body, attrs)                                               \
  RESULT(out,                                                                  \
         CONSTANT("x", "tensor<4xf32>", "[1.0, 2.0, 3.0, 4.0]") CONSTANT(      \
             "i", "tensor<f32>",                                               \
             "0.5") "%r = \"stablehlo.reduce_window\"(%x, %i) <{" attrs        \
                    "}> ({\n"                                                  \
                    "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n" body           \
                    "stablehlo.return %c : tensor<f32>\n}) : (tensor<4xf32>, " \
                    "tensor<f32>) -> " out)
  assert_result(
      float,
      WINDOW("tensor<2xf32>", "%c = stablehlo.add %a, %b : tensor<f32>\n",
             "window_dimensions = array<i64: 2>, "
             "window_strides = array<i64: 2>"),
      3.5f, 7.5f);
  // Padding holds the initial value.
  assert_result(
      float,
      WINDOW("tensor<5xf32>", "%c = stablehlo.add %a, %b : tensor<f32>\n",
             "window_dimensions = array<i64: 2>, padding = "
             "dense<[[1, 1]]> : tensor<1x2xi64>"),
      2.0f, 3.5f, 5.5f, 7.5f, 5.0f);
  // The same through the interpreter, and dilated.
  assert_result(float,
                WINDOW("tensor<5xf32>",
                       "%d = stablehlo.negate %b : tensor<f32>\n"
                       "%c = stablehlo.subtract %a, %d : tensor<f32>\n",
                       "window_dimensions = array<i64: 2>, padding = "
                       "dense<[[1, 1]]> : tensor<1x2xi64>"),
                2.0f, 3.5f, 5.5f, 7.5f, 5.0f);
  assert_result(
      float,
      WINDOW("tensor<2xf32>", "%c = stablehlo.add %a, %b : tensor<f32>\n",
             "window_dimensions = array<i64: 2>, "
             "window_dilations = array<i64: 2>"),
      4.5f, 6.5f);
}

static void contractions(void** state) {
  (void)state;
  assert_result(
      int32_t,
      RESULT(
          "tensor<2x2xi32>",
          CONSTANT("a", "tensor<2x2xi8>", "[[100, 100], [-100, 1]]") CONSTANT(
              "b", "tensor<2x2xi8>",
              "[[100, 1], [100, 2]]") "%r = stablehlo.dot_general %a, %b, "
                                      "contracting_dims = [1] x [0] :"
                                      " (tensor<2x2xi8>, tensor<2x2xi8>) -> "
                                      "tensor<2x2xi32>"),
      20000, 300, -9900, -98);
  // Large and small cancel only when sums are kept in f64.
  assert_result(
      float,
      RESULT("tensor<f32>",
             CONSTANT("a", "tensor<3xf32>", "[1e8, 1.0, -1e8]") CONSTANT(
                 "b", "tensor<3xf32>",
                 "[1.0, 1.0, 1.0]") "%r = stablehlo.dot_general %a, %b, "
                                    "contracting_dims = [0] x [0] :"
                                    " (tensor<3xf32>, tensor<3xf32>) -> "
                                    "tensor<f32>"),
      1);
  assert_result(
      float,
      RESULT("tensor<2x2xf32>",
             CONSTANT("a", "tensor<2x0xf32>", "") CONSTANT(
                 "b", "tensor<0x2xf32>",
                 "") "%r = stablehlo.dot_general %a, %b, contracting_dims = "
                     "[1] x [0] :"
                     " (tensor<2x0xf32>, tensor<0x2xf32>) -> tensor<2x2xf32>"),
      0, 0, 0, 0);
  // Depthwise, reversed, strided, padded.
  assert_result(
      float,
      RESULT(
          "tensor<1x2x2xf32>",
          CONSTANT("x", "tensor<1x3x2xf32>",
                   "[[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]]")
              CONSTANT(
                  "k", "tensor<2x1x2xf32>",
                  "[[[1.0, 1.0]], [[2.0, 3.0]]]") "%r = "
                                                  "stablehlo.convolution(%x, "
                                                  "%k) dim_numbers = "
                                                  "[b, 0, f]x[0, i, o]->[b, 0, "
                                                  "f], window = {stride = [2], "
                                                  "pad = "
                                                  "[[1, 0]], reverse = [true]} "
                                                  "{batch_group_count = 1 : "
                                                  "i64, "
                                                  "feature_group_count = 2 : "
                                                  "i64} : (tensor<1x3x2xf32>, "
                                                  "tensor<2x1x2xf32>) -> "
                                                  "tensor<1x2x2xf32>"),
      1, 10, 7, 90);
}

static void control(void** state) {
  (void)state;
  assert_result(
      int32_t,
      RESULT(
          "tensor<i32>",
          CONSTANT("c", "tensor<i32>", "7") CONSTANT("z", "tensor<i32>", "0")
              CONSTANT(
                  "o", "tensor<i32>",
                  "1") "%w:2 = stablehlo.while(%i = %c, %s = %z) : "
                       "tensor<i32>, "
                       "tensor<i32>\n cond {\n %g = stablehlo.compare GT, %i, "
                       "%z : "
                       "(tensor<i32>, tensor<i32>) -> tensor<i1>\n "
                       "stablehlo.return %g : "
                       "tensor<i1>\n } do {\n %n = stablehlo.subtract %i, %o : "
                       "tensor<i32>\n %t = stablehlo.add %s, %i : "
                       "tensor<i32>\n "
                       "stablehlo.return %n, %t : tensor<i32>, tensor<i32>\n "
                       "}\n"
                       "%r = stablehlo.add %w#1, %z : tensor<i32>"),
      28);
  // An index that no branch has takes the last one.
#define CASE(index) \
  RESULT("tensor<i32>", CONSTANT("i", "tensor<i32>", index)                \
         "%r = \"stablehlo.case\"(%i) ({\n " CONSTANT("a", "tensor<i32>",   \
                                                     "10")                 \
         " stablehlo.return %a : tensor<i32>\n}, {\n " CONSTANT(           \
             "a", "tensor<i32>", "11")                                     \
         " stablehlo.return %a : tensor<i32>\n}) : (tensor<i32>) -> "      \
         "tensor<i32>")
  assert_result(int32_t, CASE("-1"), 11);
  assert_result(int32_t, CASE("0"), 10);
  assert_result(int32_t, CASE("1"), 11);
  assert_result(int32_t, CASE("2"), 11);
}

static void composites(void** state) {
  (void)state;
  float row[3];
  void* results[] = {row};
  evaluate(
      RESULT(
          "tensor<1x3xf32>",
          CONSTANT(
              "x", "tensor<1x3xf32>",
              "[[1000.0, 1001.0, 1002.0]]") "%r = \"pestle.softmax\"(%x) "
                                            "<{dimensions = array<i64: 1>}> :"
                                            " (tensor<1x3xf32>) -> "
                                            "tensor<1x3xf32>"),
      NULL, results);
  assert_float_equal(row[0] + row[1] + row[2], 1, 1e-6);
  assert_float_equal(row[2] / row[1], exp(1), 1e-5);
  evaluate(
      RESULT("tensor<3xf32>",
             CONSTANT("x", "tensor<3xf32>",
                      "[-1.0, 0.0, 3.0]") "%r = \"pestle.gelu\"(%x) : "
                                          "(tensor<3xf32>) -> tensor<3xf32>"),
      NULL, results);
  assert_float_equal(row[0], -0.15865525f, 1e-7);
  assert_float_equal(row[2], 2.99595031f, 1e-6);
  evaluate(
      RESULT("tensor<1x3xf32>",
             CONSTANT("x", "tensor<1x3xf32>", "[[1.0, 2.0, 3.0]]")
                 CONSTANT("s", "tensor<3xf32>", "[1.0, 1.0, 2.0]") CONSTANT(
                     "o", "tensor<3xf32>",
                     "[0.0, 5.0, 0.0]") "%r = \"pestle.layer_norm\"(%x, %s, "
                                        "%o) <{dimensions = "
                                        "array<i64: 1>, epsilon = 0.0 : f64}> "
                                        ": (tensor<1x3xf32>, "
                                        "tensor<3xf32>, tensor<3xf32>) -> "
                                        "tensor<1x3xf32>"),
      NULL, results);
  assert_float_equal(row[0], -1.22474487, 1e-6);
  assert_float_equal(row[1], 5, 1e-6);
  assert_float_equal(row[2], 2.44948974, 1e-6);
  assert_result(
      uint8_t,
      RESULT("tensor<5xui8>",
             CONSTANT("x", "tensor<5xf32>", "[0.25, 0.75, -9.0, 999.0, 1.0]")
                 CONSTANT("s", "tensor<f32>", "0.5") CONSTANT(
                     "z", "tensor<ui8>",
                     "3") "%r = \"pestle.quantize_linear\"(%x, %s, %z) : "
                          "(tensor<5xf32>, "
                          "tensor<f32>, tensor<ui8>) -> tensor<5xui8>"),
      3, 5, 0, 255, 5);
  assert_result(
      float,
      RESULT("tensor<2x2xf32>",
             CONSTANT("x", "tensor<2x2xi8>", "[[1, 2], [3, -4]]")
                 CONSTANT("s", "tensor<2xf32>", "[0.5, 2.0]")
                     CONSTANT("z", "tensor<2xi8>",
                              "[1, 0]") "%r = \"pestle.dequantize_linear\"(%x, "
                                        "%s, %z) <{axis = 1 : i64}> "
                                        ": (tensor<2x2xi8>, tensor<2xf32>, "
                                        "tensor<2xi8>) -> "
                                        "tensor<2x2xf32>"),
      0, 4, 1, -8);
}

// One node alone: its regions may use constants from outside, nothing else.
static void single_nodes(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t* module = text_parse(
      context,
      "func.func @f(%x: tensor<3xi32>, %y: tensor<i32>) -> tensor<i32> {\n"
      "%c = stablehlo.constant dense<2> : tensor<i32>\n"
      "%v = stablehlo.constant dense<1> : tensor<64xi32>\n"
      "%0 = stablehlo.reduce(%x init: %c) across dimensions = [0] : "
      "(tensor<3xi32>, tensor<i32>) -> tensor<i32>\n"
      " reducer(%a: tensor<i32>, %b: tensor<i32>) {\n"
      "  %s = stablehlo.slice %v [3:4] : (tensor<64xi32>) -> tensor<1xi32>\n"
      "  %t = stablehlo.reshape %s : (tensor<1xi32>) -> tensor<i32>\n"
      "  %1 = stablehlo.multiply %b, %c : tensor<i32>\n"
      "  %2 = stablehlo.add %a, %1 : tensor<i32>\n"
      "  %3 = stablehlo.add %2, %t : tensor<i32>\n"
      "  stablehlo.return %3 : tensor<i32>\n }\n"
      "%4 = stablehlo.reduce(%x init: %c) across dimensions = [0] : "
      "(tensor<3xi32>, tensor<i32>) -> tensor<i32>\n"
      " reducer(%a: tensor<i32>, %b: tensor<i32>) {\n"
      "  %5 = stablehlo.add %y, %b : tensor<i32>\n"
      "  stablehlo.return %5 : tensor<i32>\n }\n"
      "return %4 : tensor<i32>\n}");
  const pestle_node_t* node =
      pestle_module_entry(module)->body->block->first->next->next;
  const int32_t x[] = {1, 2, 3}, init = 2;
  int32_t got = 0;
  const void* operands[] = {x, &init};
  void* results[] = {&got};
  pestle_allocator_t allocator = pestle_allocator_system();
  assert_ok(pestle_ref_evaluate_node(allocator, node, operands, results));
  assert_int_equal(got, 2 + 2 * 6 + 3);
  assert_error(
      pestle_ref_evaluate_node(allocator, node->next, operands, results),
      UNSUPPORTED, "not a constant");
  pestle_module_release(module);
  pestle_context_release(context);
}

static void refusals(void** state) {
  (void)state;
  pestle_context_t* context = text_context();
  pestle_module_t* module =
      text_parse(context,
                 "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
                 "%0 = stablehlo.negate %x : tensor<?xf32>\n"
                 "return %0 : tensor<?xf32>\n}");
  float x = 1, y;
  assert_error(pestle_ref_evaluate_function(pestle_allocator_system(),
                                            pestle_module_entry(module),
                                            (const void*[]){&x}, (void*[]){&y}),
               UNSUPPORTED, "a dimension is not known");
  pestle_module_release(module);
  pestle_context_release(context);
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  size_t size;
  pestle_context_t* context = text_context();
  char* text = text_golden("control.mlir", &size);
  pestle_module_t* module = text_parse(context, text);
  float x[4] = {1, 2, 3, 4}, r[5][4];
  int32_t n = 2;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, k);
    pestle_status_t status = pestle_ref_evaluate_function(
        pestle_test_allocator(&memory), pestle_module_entry(module),
        (const void*[]){x, &n}, (void*[]){r[0], r[1], r[2], r[3], r[4]});
    bool failed = pestle_test_allocator_failed(&memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
  // x * 4 + 3, then * 3: branch 2 of the switch on x + 1.
  assert_float_equal(r[0][0], (1 * 4 + 3 - 1) * 3, 0);
  free(text);
  pestle_module_release(module);
  pestle_context_release(context);
}

// Rows longer than the strips that transpositions go by, and all orders of axes.
static void long_transpositions(void** state) {
  (void)state;
  enum { A = 3, B = 67, C = 130 };
  static const int orders[][3] = {
      {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  static const int64_t dims[] = {A, B, C};
  static int32_t from[A * B * C], to[A * B * C];
  for (int32_t i = 0; i < A * B * C; ++i)
    from[i] = i;
  for (size_t o = 0; o < sizeof(orders) / sizeof(orders[0]); ++o) {
    const int* p = orders[o];
    char text[400];
    snprintf(text, sizeof(text),
             "func.func @f(%%x: tensor<3x67x130xi32>) -> tensor<%dx%dx%dxi32> "
             "{\n%%r = stablehlo.transpose %%x, dims = [%d, %d, %d] : "
             "(tensor<3x67x130xi32>) -> tensor<%dx%dx%dxi32>\n"
             "return %%r : tensor<%dx%dx%dxi32>\n}",
             (int)dims[p[0]], (int)dims[p[1]], (int)dims[p[2]], p[0], p[1],
             p[2], (int)dims[p[0]], (int)dims[p[1]], (int)dims[p[2]],
             (int)dims[p[0]], (int)dims[p[1]], (int)dims[p[2]]);
    evaluate(text, (const void*[]){from}, (void*[]){to});
    int64_t at[3], i = 0;
    for (at[p[0]] = 0; at[p[0]] < dims[p[0]]; ++at[p[0]]) {
      for (at[p[1]] = 0; at[p[1]] < dims[p[1]]; ++at[p[1]]) {
        for (at[p[2]] = 0; at[p[2]] < dims[p[2]]; ++at[p[2]])
          assert_int_equal(to[i++], (at[0] * B + at[1]) * C + at[2]);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(floats),
      cmocka_unit_test(integers),
      cmocka_unit_test(booleans),
      cmocka_unit_test(comparisons),
      cmocka_unit_test(select_and_clamp),
      cmocka_unit_test(narrow_floats),
      cmocka_unit_test(conversions),
      cmocka_unit_test(complex_conversions),
      cmocka_unit_test(bitcasts),
      cmocka_unit_test(moves),
      cmocka_unit_test(long_transpositions),
      cmocka_unit_test(pads),
      cmocka_unit_test(gathers),
      cmocka_unit_test(reductions),
      cmocka_unit_test(windows),
      cmocka_unit_test(contractions),
      cmocka_unit_test(control),
      cmocka_unit_test(composites),
      cmocka_unit_test(single_nodes),
      cmocka_unit_test(refusals),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
