// Attention in core ops: its softmax is a match first, and what that leaves is gone
// before the scores are looked at.
// RUN: %pestle-opt %s --passes=canonicalise,recognise --round-trip --check | FileCheck %s
// CHECK:         "pestle.attention"(%q, %k, %v) <{scale = 0.5 : f64}>
// CHECK-NOT:     stablehlo.dot_general
func.func @main(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x4xf32>) -> tensor<2x5x4xf32> {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x5x8xf32>, tensor<2x7x8xf32>) -> tensor<2x5x7xf32>
  %half = stablehlo.constant dense<0.5> : tensor<2x5x7xf32>
  %1 = stablehlo.multiply %0, %half : tensor<2x5x7xf32>
  %ninf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %ninf) applies stablehlo.maximum across dimensions = [2] : (tensor<2x5x7xf32>, tensor<f32>) -> tensor<2x5xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x7xf32>
  %4 = stablehlo.subtract %1, %3 : tensor<2x5x7xf32>
  %5 = stablehlo.exponential %4 : tensor<2x5x7xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x5x7xf32>, tensor<f32>) -> tensor<2x5xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<2x5xf32>) -> tensor<2x5x7xf32>
  %8 = stablehlo.divide %5, %7 : tensor<2x5x7xf32>
  %9 = stablehlo.dot_general %8, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x5x7xf32>, tensor<2x7x4xf32>) -> tensor<2x5x4xf32>
  return %9 : tensor<2x5x4xf32>
}
