// RUN: %pestle-opt %s --passes=cse --round-trip | FileCheck %s
// CHECK:     [[T:%.*]] = stablehlo.tanh %x
// CHECK-NOT: stablehlo.tanh
// CHECK:     stablehlo.multiply [[T]], [[T]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  %1 = stablehlo.tanh %x : tensor<4xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
