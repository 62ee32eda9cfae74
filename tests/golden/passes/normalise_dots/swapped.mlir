// RUN: %pestle-opt %s --passes=normalise_dots --round-trip | FileCheck %s
// A contraction over the first axis of the left side becomes a transpose and a
// plain product.
// CHECK: stablehlo.transpose %a, dims = [1, 0]
// CHECK: stablehlo.dot_general {{.*}} contracting_dims = {{.*}} (tensor<{{(1x)?}}4x8xf32>, tensor<{{(1x)?}}8x16xf32>)
func.func @main(%a: tensor<8x4xf32>, %b: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}
