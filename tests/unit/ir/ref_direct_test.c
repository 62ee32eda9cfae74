// SPDX-License-Identifier: Apache-2.0
// The reference evaluator on ops that are kernels of their own.
#include "ref_test.h"

#include <math.h>

#define NAN32 "0x7FC00000"
#define MINUS_NAN32 "0xFFC00000"

#define SORT(type, element, x, compare, dimension)                          \
  RESULT(type, CONSTANT("x", type,                                          \
                        x) "%r = \"stablehlo.sort\"(%x) <{" dimension       \
                           "is_stable = true}> ({\n"                        \
                           "^bb0(%a: " element ", %b: " element             \
                           "):\n"                                           \
                           "%c = stablehlo.compare " compare " : (" element \
                           ", " element                                     \
                           ") -> tensor<i1>\n"                              \
                           "stablehlo.return %c : tensor<i1>\n}) : (" type  \
                           ") -> " type)

static void sorts(void** state) {
  (void)state;
  assert_result(
      int32_t,
      SORT("tensor<2x3xi32>", "tensor<i32>", "[[3, -1, 2], [1, 0, 5]]",
           "LT, %a, %b, SIGNED", "dimension = 1 : i64, "),
      -1, 2, 3, 0, 1, 5);
  // The last axis unless it is said; a negative one counts from the end.
  assert_result(int32_t,
                SORT("tensor<2x3xi32>", "tensor<i32>",
                     "[[3, -1, 2], [1, 0, 5]]", "GT, %a, %b", ""),
                3, 2, -1, 5, 1, 0);
  assert_result(
      int32_t,
      SORT("tensor<2x3xi32>", "tensor<i32>", "[[3, -1, 2], [1, 0, 5]]",
           "LT, %a, %b", "dimension = -2 : i64, "),
      1, -1, 2, 3, 0, 5);
  assert_result(uint32_t,
                SORT("tensor<6xf32>", "tensor<f32>",
                     "[0.0, -0.0, " NAN32 ", 1.0, " MINUS_NAN32 ", -1.0]",
                     "LT, %a, %b, TOTALORDER", ""),
                0xFFC00000, 0xBF800000, 0x80000000, 0, 0x3F800000, 0x7FC00000);
}

// The last result are positions; of equals the first comes first.
static void sorts_first(void** state) {
  (void)state;
#define FIRST(result, axis, count, which) \
  RESULT(result,                                                              \
         CONSTANT("x", "tensor<2x4xi32>", "[[3, -1, 3, 2], [1, 0, 5, 5]]")    \
         "%q:2 = \"pestle.sort_first\"(%x) <{count = " count                  \
         " : i64, dimension = " axis                                          \
         " : i64}> ({\n"                                                      \
         "^bb0(%a: tensor<i32>, %b: tensor<i32>):\n"                          \
         "%c = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> " \
         "tensor<i1>\n"                                                       \
         "stablehlo.return %c : tensor<i1>\n}) : (tensor<2x4xi32>) -> "       \
         "(" result ", " result ")\n%r = stablehlo.add %q#" which ", %q#" which \
         " : " result)
  assert_result(int32_t, FIRST("tensor<2x3xi32>", "1", "3", "0"), 6, 6, 4, 10,
                10, 2);
  assert_result(int32_t, FIRST("tensor<2x3xi32>", "-1", "3", "1"), 0, 4, 6, 4,
                6, 0);
  assert_result(int32_t, FIRST("tensor<1x4xi32>", "0", "1", "1"), 0, 2, 2, 2);
#undef FIRST
}

// Equal keys keep the order of what comes with them.
static void sorts_stably(void** state) {
  (void)state;
  assert_result(
      int32_t,
      RESULT(
          "tensor<7xi32>",
          CONSTANT("k", "tensor<7xi8>", "[2, 1, 2, 1, 2, 1, 0]") CONSTANT(
              "v", "tensor<7xi32>",
              "[0, 1, 2, 3, 4, 5, 6]") "%q:2 = \"stablehlo.sort\"(%k, %v) ({\n"
                                       "^bb0(%a: tensor<i8>, %b: tensor<i8>, "
                                       "%c: tensor<i32>, %d: tensor<i32>):\n"
                                       "%e = stablehlo.compare LT, %a, %b : "
                                       "(tensor<i8>, "
                                       "tensor<i8>) -> tensor<i1>\n"
                                       "stablehlo.return %e : tensor<i1>\n"
                                       "}) : (tensor<7xi8>, tensor<7xi32>) -> "
                                       "(tensor<7xi8>, tensor<7xi32>)\n"
                                       "%r = stablehlo.add %q#1, %q#1 : "
                                       "tensor<7xi32>"),
      12, 2, 6, 10, 0, 4, 8);
}

#define TOTAL(direction, a, b)                                             \
  RESULT("tensor<4xi1>",                                                   \
         CONSTANT("a", "tensor<4xf16>", a)                                 \
             CONSTANT("b", "tensor<4xf16>",                                \
                      b) "%r = stablehlo.compare " direction               \
                         ", %a, %b, "                                      \
                         "TOTALORDER : (tensor<4xf16>, tensor<4xf16>) -> " \
                         "tensor<4xi1>")

static void total_order(void** state) {
  (void)state;
  assert_result(
      uint8_t,
      TOTAL("LT", "[-0.0, 0.0, 0x7C00, -1.0]", "[0.0, -0.0, 0x7E00, -2.0]"), 1,
      0, 1, 0);
  assert_result(
      uint8_t,
      TOTAL("EQ", "[-0.0, 0x7E00, 0xFE00, 3.0]", "[0.0, 0x7E00, 0x7E00, 3.0]"),
      0, 1, 0, 1);
  assert_result(
      uint8_t,
      TOTAL("GE", "[-0.0, 0xFE00, 0xFC00, 3.0]", "[-0.0, 0xFC00, 0xFE00, 3.0]"),
      1, 0, 1, 1);
}

#define TOTAL_NARROW(dtype, a, b) \
  RESULT("tensor<3xi1>",                                                 \
         CONSTANT("a", "tensor<3x" dtype ">", a)                         \
             CONSTANT("b", "tensor<3x" dtype ">",                        \
                      b) "%r = stablehlo.compare LT, %a, %b, TOTALORDER" \
                         " : (tensor<3x" dtype ">, tensor<3x" dtype      \
                         ">) -> tensor<3xi1>")

// Formats without a sign, with a NaN of the bits of -0, of 4 bits.
static void total_order_of_narrow_floats(void** state) {
  (void)state;
  assert_result(
      uint8_t,
      TOTAL_NARROW("f8E8M0FNU", "[0.5, 2.0, 0xFF]", "[2.0, 0xFF, 4.0]"), 1, 1,
      0);
  assert_result(
      uint8_t,
      TOTAL_NARROW("f8E4M3FNUZ", "[-2.0, 240.0, 0x80]", "[0.0, 0x80, -1.0]"), 1,
      1, 0);
  assert_result(
      uint8_t,
      TOTAL_NARROW("f4E2M1FN", "[-6.0, -0.0, 6.0]", "[-4.0, 0.0, 4.0]"), 1, 1,
      0);
}

#define SCATTER(body, dims, x, i, i_type, u, u_type) \
  RESULT("tensor<3x4xi32>",                                                   \
         CONSTANT("x", "tensor<3x4xi32>", x) CONSTANT("i", i_type, i)         \
             CONSTANT("u", u_type, u) "%r = \"stablehlo.scatter\"(%x, %i, %u) "  \
                                      "<{scatter_dimension_numbers = "       \
                                      "#stablehlo.scatter<" dims             \
                                      ">, unique_indices = false}> ({\n"     \
                                      "^bb0(%a: tensor<i32>, %b: "           \
                                      "tensor<i32>):\n" body                 \
                                      "\n}) : (tensor<3x4xi32>, " i_type     \
                                      ", " u_type ") -> tensor<3x4xi32>")

#define ADDS                                  \
  "%s = stablehlo.add %a, %b : tensor<i32>\n" \
  "stablehlo.return %s : tensor<i32>"
#define REPLACES "stablehlo.return %b : tensor<i32>"

static void scatters(void** state) {
  (void)state;
  // Rows, one of them twice, one of them outside.
  assert_result(
      int32_t,
      SCATTER(ADDS,
              "update_window_dims = [1], inserted_window_dims = [0], "
              "scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
              "0", "[2, 0, 3, 2]", "tensor<4xi32>",
              "[[1, 2, 3, 4], [5, 6, 7, 8], [9, 9, 9, 9], [10, 20, 30, 40]]",
              "tensor<4x4xi32>"),
      5, 6, 7, 8, 0, 0, 0, 0, 11, 22, 33, 44);
  // The last of several updates of one element stays.
  assert_result(int32_t,
                SCATTER(REPLACES,
                        "inserted_window_dims = [0, 1], "
                        "scatter_dims_to_operand_dims = [0, 1], "
                        "index_vector_dim = 1",
                        "7", "[[0, 1], [-1, 0], [2, 3], [0, 1]]",
                        "tensor<4x2xi64>", "[1, 2, 3, 4]", "tensor<4xi32>"),
                7, 4, 7, 7, 7, 7, 7, 7, 7, 7, 7, 3);
  // A window that leaves its input is left out whole.
  assert_result(int32_t,
                SCATTER(REPLACES,
                        "update_window_dims = [1, 2], "
                        "scatter_dims_to_operand_dims = [1], "
                        "index_vector_dim = 1",
                        "0", "[3, 1]", "tensor<2xui8>", "[[[1, 2]], [[3, 4]]]",
                        "tensor<2x1x2xi32>"),
                0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  // Each row takes its own index.
  assert_result(int32_t,
                SCATTER(ADDS,
                        "inserted_window_dims = [1], input_batching_dims = "
                        "[0], scatter_indices_batching_dims = [1], "
                        "scatter_dims_to_operand_dims = [1], "
                        "index_vector_dim = 2",
                        "0", "[[0, 1, 3], [0, 2, 9]]", "tensor<2x3xi32>",
                        "[[1, 2, 3], [4, 5, 6]]", "tensor<2x3xi32>"),
                5, 0, 0, 0, 0, 2, 5, 0, 0, 0, 0, 3);
}

static void selects_and_scatters(void** state) {
  (void)state;
#define SELECT(out, x, s, source, attrs) \
  RESULT(out, CONSTANT("x", out, x) CONSTANT("s", source, s) CONSTANT(         \
                  "i", "tensor<i32>", "1") "%r = "                             \
                  "\"stablehlo.select_and_scatter\"(%x, %s, %i) <{" attrs      \
                  "}> ({\n"                                                    \
                  "^bb0(%a: tensor<i32>, %b: tensor<i32>):\n"                  \
                  "%c = stablehlo.compare GE, %a, %b : (tensor<i32>, "         \
                  "tensor<i32>) -> tensor<i1>\n"                               \
                  "stablehlo.return %c : tensor<i1>\n}, {\n"                   \
                  "^bb0(%a: tensor<i32>, %b: tensor<i32>):\n"                  \
                  "%c = stablehlo.add %a, %b : tensor<i32>\n"                  \
                  "stablehlo.return %c : tensor<i32>\n}) : (" out ", " source   \
                  ", tensor<i32>) -> " out)
  // The first of equal elements is kept; windows overlap at 5.
  assert_result(int32_t,
                SELECT("tensor<5xi32>", "[3, 3, 5, 1, 2]", "[10, 20, 30]",
                       "tensor<3xi32>", "window_dimensions = array<i64: 3>"),
                1, 1, 61, 1, 1);
  // Padding is never kept, and a window of nothing else adds nothing.
  assert_result(
      int32_t,
      SELECT("tensor<2xi32>", "[-7, -8]", "[10, 20, 30]", "tensor<3xi32>",
             "padding = dense<[[2, 2]]> : tensor<1x2xi64>, "
             "window_dimensions = array<i64: 2>, "
             "window_strides = array<i64: 2>"),
      21, 1);
}

static void maps(void** state) {
  (void)state;
  assert_result(
      float,
      RESULT(
          "tensor<3xf32>",
          CONSTANT("x", "tensor<3xi32>", "[1, -2, 3]") CONSTANT(
              "y", "tensor<3xf32>",
              "[0.5, 0.25, -1.0]") "%r = \"stablehlo.map\"(%x, %y) "
                                   "<{dimensions = "
                                   "array<i64: 0>}> ({\n"
                                   "^bb0(%a: tensor<i32>, %b: tensor<f32>):\n"
                                   "%c = stablehlo.convert %a : (tensor<i32>) "
                                   "-> "
                                   "tensor<f32>\n"
                                   "%d = stablehlo.multiply %c, %b : "
                                   "tensor<f32>\n"
                                   "stablehlo.return %d : tensor<f32>\n"
                                   "}) : (tensor<3xi32>, tensor<3xf32>) -> "
                                   "tensor<3xf32>"),
      0.5f, -0.5f, -3);
}

static void reduces_precision(void** state) {
  (void)state;
#define REDUCED(format, x) \
  RESULT("tensor<6xf32>",                                                     \
         CONSTANT("x", "tensor<6xf32>", x) "%r = stablehlo.reduce_precision " \
                                           "%x, format = " format             \
                                           " : tensor<6xf32>")
  // As f16: ties to even, 65520 overflows, what would be subnormal is zero.
  assert_result(float,
                REDUCED("e5m10",
                        "[1.00048828125, 1.00146484375, 65519.0, 65520.0, "
                        "6.1e-5, -6.0e-5]"),
                1, 1.001953125f, 65504, INFINITY, 0, -0.0f);
  // Without a mantissa the exponent is what is even; NaN is infinity.
  assert_result(float,
                REDUCED("e8m0", "[1.5, 3.0, -1.25, 0.0, " NAN32 ", 1.0e38]"), 2,
                2, -1, 0, INFINITY, 0x1p126f);
}

static void factors(void** state) {
  (void)state;
#define FACTOR(lower, x)                                          \
  RESULT("tensor<2x2xf32>",                                       \
         CONSTANT("x", "tensor<2x2xf32>",                         \
                  x) "%r = stablehlo.cholesky %x, lower = " lower \
                     " : tensor<2x2xf32>")
  // What lies in the other half does not matter.
  assert_result(float, FACTOR("true", "[[4.0, 99.0], [2.0, 10.0]]"), 2, 0, 1,
                3);
  assert_result(float, FACTOR("false", "[[4.0, 2.0], [99.0, 10.0]]"), 2, 1, 0,
                3);
  // Not positive definite: NaN from the first pivot that is not positive on.
  assert_result(float, FACTOR("true", "[[4.0, 99.0], [2.0, 1.0]]"), 2, 0, 1,
                NAN);
  assert_result(float, FACTOR("true", "[[0.0, 99.0], [0.0, 1.0]]"), NAN, 0, NAN,
                NAN);
}

static void solves(void** state) {
  (void)state;
#define SOLVE(left, lower, unit, how, b, type) \
  RESULT(type, CONSTANT("a", "tensor<2x2xf32>", "[[2.0, 6.0], [4.0, 8.0]]")   \
                   CONSTANT("b", type, b) "%r = "                            \
                   "\"stablehlo.triangular_solve\"(%a, %b) <{left_side = "    \
                   left ", lower = " lower ", unit_diagonal = " unit         \
                   ", transpose_a = #stablehlo<transpose " how               \
                   ">}> : (tensor<2x2xf32>, " type ") -> " type)
  // 2 x = 2, 4 x + 8 y = 20
  assert_result(float,
                SOLVE("true", "true", "false", "NO_TRANSPOSE",
                      "[[2.0], [20.0]]", "tensor<2x1xf32>"),
                1, 2);
  // x + 6 y = 13, y = 2
  assert_result(float,
                SOLVE("true", "false", "true", "NO_TRANSPOSE",
                      "[[13.0], [2.0]]", "tensor<2x1xf32>"),
                1, 2);
  // 2 x + 4 y = 10, 8 y = 16
  assert_result(float,
                SOLVE("true", "true", "false", "TRANSPOSE", "[[10.0], [16.0]]",
                      "tensor<2x1xf32>"),
                1, 2);
  // 2 x + 4 y = 10, 8 y = 16, from the right
  assert_result(float,
                SOLVE("false", "true", "false", "NO_TRANSPOSE",
                      "[[10.0, 16.0]]", "tensor<1x2xf32>"),
                1, 2);
  // 2 x + 6 y = 14, 8 y = 16
  assert_result(float,
                SOLVE("false", "false", "false", "ADJOINT", "[[14.0, 16.0]]",
                      "tensor<1x2xf32>"),
                1, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sorts),
      cmocka_unit_test(sorts_first),
      cmocka_unit_test(sorts_stably),
      cmocka_unit_test(total_order),
      cmocka_unit_test(total_order_of_narrow_floats),
      cmocka_unit_test(scatters),
      cmocka_unit_test(selects_and_scatters),
      cmocka_unit_test(maps),
      cmocka_unit_test(reduces_precision),
      cmocka_unit_test(factors),
      cmocka_unit_test(solves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
