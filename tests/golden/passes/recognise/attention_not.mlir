// What looks like attention and is none.
// RUN: %pestle-opt %s --passes=canonicalise,recognise --round-trip --check | FileCheck %s
// CHECK-NOT: pestle.attention
func.func @main(%q: tensor<2x3x5x8xf32>, %k: tensor<2x3x7x8xf32>, %v: tensor<2x3x7x4xf32>, %c: tensor<2x3x5x7xi1>) -> (tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>) {
  // Scores that are a result.
  %1 = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %2 = "pestle.softmax"(%1) <{dimensions = array<i64: 3>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %3 = stablehlo.dot_general %2, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  // Weights that are a result.
  %4 = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %5 = "pestle.softmax"(%4) <{dimensions = array<i64: 3>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %6 = stablehlo.dot_general %5, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  // A maximum along the rows.
  %7 = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %8 = "pestle.softmax"(%7) <{dimensions = array<i64: 2>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %9 = stablehlo.dot_general %8, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  // A masked score that may be NaN or infinite.
  %10 = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %11 = stablehlo.constant dense<0xFF800000> : tensor<2x3x5x7xf32>
  %12 = stablehlo.select %c, %10, %11 : tensor<2x3x5x7xi1>, tensor<2x3x5x7xf32>
  %13 = "pestle.softmax"(%12) <{dimensions = array<i64: 3>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %14 = stablehlo.dot_general %13, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %3, %1, %6, %5, %9, %14 : tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>
}
