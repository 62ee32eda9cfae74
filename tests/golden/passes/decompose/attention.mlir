// RUN: %pestle-opt %s --passes=decompose --round-trip --check | FileCheck %s
// CHECK-NOT: pestle.attention
// CHECK:     [[S:%.*]] = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]
// CHECK:     stablehlo.multiply [[S]]
// CHECK:     stablehlo.broadcast_in_dim %b, dims = [0, 1, 2]
// CHECK:     [[W:%.*]] = stablehlo.exponential
// CHECK:     [[T:%.*]] = stablehlo.reduce([[W]]
// CHECK:     [[O:%.*]] = stablehlo.dot_general [[W]], %v, batching_dims = [0] x [0], contracting_dims = [2] x [1]
// CHECK:     [[L:%.*]] = stablehlo.broadcast_in_dim [[T]], dims = [0, 1]
// CHECK:     stablehlo.divide [[O]], [[L]]
func.func @main(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x4xf32>, %b: tensor<2x1x7xf32>) -> tensor<2x5x4xf32> {
  %0 = "pestle.attention"(%q, %k, %v, %b) <{scale = 0.5 : f64}> : (tensor<2x5x8xf32>, tensor<2x7x8xf32>, tensor<2x7x4xf32>, tensor<2x1x7xf32>) -> tensor<2x5x4xf32>
  return %0 : tensor<2x5x4xf32>
}
