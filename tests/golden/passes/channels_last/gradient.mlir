// A gradient by the weights that lanes share a long k for is one kernel, though its batches
// and features have changed places: turning its operands and its result would be three more.
// A larger one is turned.
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt90 | FileCheck %s
// CHECK-LABEL: @main
// CHECK-NOT: transpose
// CHECK: dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1]
// CHECK: transpose
// CHECK: dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
func.func @main(%x: tensor<1x26x28x31xf32>, %g: tensor<1x152x14x16xf32>, %u: tensor<2x64x28x28xf32>, %h: tensor<2x64x28x28xf32>) -> (tensor<152x26x1x1xf32>, tensor<64x64x3x3xf32>) {
  %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[0, -1], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [2, 2], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x26x28x31xf32>, tensor<1x152x14x16xf32>) -> tensor<152x26x1x1xf32>
  %1 = stablehlo.convolution(%u, %h) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x64x28x28xf32>, tensor<2x64x28x28xf32>) -> tensor<64x64x3x3xf32>
  return %0, %1 : tensor<152x26x1x1xf32>, tensor<64x64x3x3xf32>
}
