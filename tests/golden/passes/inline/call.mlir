// RUN: %pestle-opt %s --passes=inline --round-trip | FileCheck %s
// CHECK-NOT: call
// CHECK:     [[T:%.*]] = stablehlo.tanh %x
// CHECK:     stablehlo.add [[T]], %x
func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.add %0, %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}
