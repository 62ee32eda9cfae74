// RUN: %pestle-opt %s --passes=fold_constants --round-trip | FileCheck %s
// Weights that are standardised: means are repeated along each row. What rows and
// columns alone make is not stored.
// CHECK:     dense<{{\[\[}}-1.0, 1.0, 0.0], [-2.0, 2.0, 1.0], [0.0, 3.0, 1.0]]>
// CHECK-NOT: stablehlo.subtract
// CHECK:     stablehlo.multiply
func.func @main() -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  %0 = stablehlo.constant dense<[[1.0, 3.0, 2.0], [2.0, 6.0, 5.0], [1.0, 4.0, 2.0]]> : tensor<3x3xf32>
  %1 = stablehlo.constant dense<[2.0, 4.0, 1.0]> : tensor<3xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<3xf32>) -> tensor<3x3xf32>
  %3 = stablehlo.subtract %0, %2 : tensor<3x3xf32>
  %4 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<3xf32>) -> tensor<3x3xf32>
  %5 = stablehlo.multiply %2, %4 : tensor<3x3xf32>
  return %3, %5 : tensor<3x3xf32>, tensor<3x3xf32>
}
