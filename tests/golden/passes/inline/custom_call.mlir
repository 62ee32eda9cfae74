// RUN: %pestle-opt %s --passes=inline --round-trip | FileCheck %s
// Results whose types the caller states are as many in the copy.
// CHECK:     func.func public @main
// CHECK-NEXT: [[Y:%.*]]:2 = stablehlo.custom_call @two(%x)
// CHECK-SAME: (tensor<4xf32>) -> (tensor<4xf32>, tensor<2xi32>)
// CHECK-NEXT: return [[Y]]#1
func.func private @f(%a: tensor<4xf32>) -> tensor<2xi32> {
  %0:2 = stablehlo.custom_call @two(%a) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<2xi32>)
  return %0#1 : tensor<2xi32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<2xi32> {
  %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
