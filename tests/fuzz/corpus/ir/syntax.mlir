// The pretty and the generic syntax mean one thing, and it prints pretty.
// RUN: %pestle dump %s | FileCheck %s
// CHECK:      module {
// CHECK-NEXT:   func.func public @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
// CHECK-NEXT:     %0 = stablehlo.tanh %x : tensor<2x3xf32>
// CHECK-NEXT:     %1 = stablehlo.tanh %0 : tensor<2x3xf32>
// CHECK-NEXT:     %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
// CHECK-NEXT:     return %2 : tensor<3x2xf32>
func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = stablehlo.tanh %x : tensor<2x3xf32>
  %1 = "stablehlo.tanh"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "stablehlo.transpose"(%1) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %2 : tensor<3x2xf32>
}
