// RUN: %pestle-opt %s --passes=decompose --round-trip | FileCheck %s
// CHECK-NOT: pestle.silu
// CHECK:     stablehlo.logistic %x
// CHECK:     stablehlo.multiply
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "pestle.silu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
