// RUN: %pestle-opt %s --passes=canonicalise --round-trip | FileCheck %s
// Folding, a rule, merging and dropping, until nothing changes.
// CHECK:      [[T:%.*]] = stablehlo.tanh %x
// CHECK-NEXT: [[M:%.*]] = stablehlo.multiply [[T]], [[T]]
// CHECK-NEXT: return [[M]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<4xf32>
  %1 = stablehlo.constant dense<0.0> : tensor<4xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<4xf32>
  %3 = stablehlo.multiply %x, %2 : tensor<4xf32>
  %4 = stablehlo.tanh %3 : tensor<4xf32>
  %5 = stablehlo.tanh %x : tensor<4xf32>
  %6 = stablehlo.sine %5 : tensor<4xf32>
  %7 = stablehlo.multiply %4, %5 : tensor<4xf32>
  return %7 : tensor<4xf32>
}
