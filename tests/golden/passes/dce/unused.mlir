// RUN: %pestle-opt %s --passes=dce --round-trip | FileCheck %s
// CHECK-NOT: stablehlo.sine
// CHECK:     stablehlo.tanh
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32>
  %1 = stablehlo.tanh %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}
