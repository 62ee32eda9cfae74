// RUN: %pestle-opt %s --passes=fold_scale --round-trip | FileCheck %s
// A factor for each channel behind a convolution with constant weights.
// CHECK:     stablehlo.convolution
// CHECK-NOT: stablehlo.multiply %{{[0-9]+}}, %{{[0-9]+}} : tensor<1x2x4x4xf32>
func.func @main(%x: tensor<1x1x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %w = stablehlo.constant dense<[[[[2.0]]], [[[3.0]]]]> : tensor<2x1x1x1xf32>
  %f = stablehlo.constant dense<[5.0, 7.0]> : tensor<2xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = stablehlo.broadcast_in_dim %f, dims = [1] : (tensor<2xf32>) -> tensor<1x2x4x4xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<1x2x4x4xf32>
  return %2 : tensor<1x2x4x4xf32>
}
