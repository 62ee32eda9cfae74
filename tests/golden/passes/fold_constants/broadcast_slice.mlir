// RUN: %pestle-opt %s --passes=fold_constants --round-trip | FileCheck %s
// A part of rows that are repeated: they are not laid out for it, all 2 * 10^14.
// CHECK: stablehlo.broadcast_in_dim
// CHECK: stablehlo.slice
func.func @main() -> tensor<1x2xi32> {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<2xi32>) -> tensor<200000000000000x2xi32>
  %2 = stablehlo.slice %1 [5:6, 0:2] : (tensor<200000000000000x2xi32>) -> tensor<1x2xi32>
  return %2 : tensor<1x2xi32>
}
