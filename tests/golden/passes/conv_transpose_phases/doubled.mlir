// RUN: %pestle-opt %s --passes=conv_transpose_phases --round-trip | FileCheck %s
// Each element of the input makes two by two of the result.
// CHECK: stablehlo.convolution({{.*}}lhs_dilate = [1, 1]{{.*}} -> tensor<1x6x6x64xf32>
// CHECK: stablehlo.transpose
func.func @main(%x: tensor<1x6x6x8xf32>, %w: tensor<2x2x8x16xf32>) -> tensor<1x12x12x16xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x6x8xf32>, tensor<2x2x8x16xf32>) -> tensor<1x12x12x16xf32>
  return %0 : tensor<1x12x12x16xf32>
}
