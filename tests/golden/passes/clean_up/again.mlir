// RUN: %pestle-opt %s --passes=clean_up --round-trip | FileCheck %s
// The rules of canonicalise, once the layouts are settled.
// CHECK-NOT: reshape
// CHECK:     return %x
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = stablehlo.reshape %0 : (tensor<6xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
