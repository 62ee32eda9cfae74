// RUN: %pestle-opt %s --passes=channels_last --round-trip | FileCheck %s
// CHECK-COUNT-2: stablehlo.convolution({{.*}}) dim_numbers = [b, 0, 1, f]x{{.*}}->[b, 0, 1, f]
func.func @main(%x: tensor<1x3x12x20xf32>, %w: tensor<3x1x3x3xf32>, %v: tensor<4x3x1x1xf32>) -> tensor<1x4x12x20xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 3 : i64} : (tensor<1x3x12x20xf32>, tensor<3x1x3x3xf32>) -> tensor<1x3x12x20xf32>
  %1 = stablehlo.convolution(%0, %v) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x12x20xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x12x20xf32>
  return %1 : tensor<1x4x12x20xf32>
}
