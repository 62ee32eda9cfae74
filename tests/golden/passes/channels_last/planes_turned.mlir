// Of so few features that lanes along them would mostly idle planes are made, and
// turned behind it: what follows works on features.
// RUN: %pestle dump %s --stage fused --target ref | FileCheck %s
// CHECK: stablehlo.convolution({{.*}}) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]
// CHECK: [[T:%.*]] = stablehlo.transpose {{.*}}, dims = [0, 2, 3, 1] : (tensor<2x6x28x28xf32>)
// CHECK: stablehlo.maximum [[T]], {{.*}} : tensor<2x28x28x6xf32>
// CHECK: stablehlo.convolution({{.*}}) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
func.func @main(%x: tensor<2x1x28x28xf32>, %w: tensor<6x1x5x5xf32>, %v: tensor<16x6x5x5xf32>) -> tensor<2x16x24x24xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[2, 2], [2, 2]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x1x28x28xf32>, tensor<6x1x5x5xf32>) -> tensor<2x6x28x28xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<2x6x28x28xf32>
  %1 = stablehlo.maximum %0, %zero : tensor<2x6x28x28xf32>
  %2 = stablehlo.convolution(%1, %v) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x6x28x28xf32>, tensor<16x6x5x5xf32>) -> tensor<2x16x24x24xf32>
  return %2 : tensor<2x16x24x24xf32>
}
