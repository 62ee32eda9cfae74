// RUN: %pestle-opt %s --passes=fuse --round-trip | FileCheck %s
// CHECK:     "pestle.fusion"(%a, %b, %c) <{label = "{{.*}}"}> ({
// CHECK:       stablehlo.dot_general
// CHECK:       stablehlo.add
// CHECK:       stablehlo.tanh
// CHECK:       stablehlo.return
// CHECK-NOT: "pestle.fusion"
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>, %c: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = stablehlo.add %0, %c : tensor<4x16xf32>
  %2 = stablehlo.tanh %1 : tensor<4x16xf32>
  return %2 : tensor<4x16xf32>
}
