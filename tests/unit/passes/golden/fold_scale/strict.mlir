// options: strict
func.func @main(%x: tensor<1x2x4x4xf32>) -> tensor<1x3x4x4xf32> {
  %w = stablehlo.constant dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]], [[[5.0]], [[6.0]]]]> : tensor<3x2x1x1xf32>
  %b = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %s = stablehlo.constant dense<[2.0, 4.0, 8.0]> : tensor<3xf32>
  %t = stablehlo.constant dense<[0.5, 0.25, 0.125]> : tensor<3xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<3xf32>) -> tensor<1x3x4x4xf32>
  %2 = stablehlo.add %0, %1 : tensor<1x3x4x4xf32>
  %3 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<3xf32>) -> tensor<1x3x4x4xf32>
  %4 = stablehlo.multiply %2, %3 : tensor<1x3x4x4xf32>
  %5 = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<3xf32>) -> tensor<1x3x4x4xf32>
  %6 = stablehlo.add %4, %5 : tensor<1x3x4x4xf32>
  return %6 : tensor<1x3x4x4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<1x2x4x4xf32>) -> tensor<1x3x4x4xf32> {
    %w = stablehlo.constant dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]], [[[5.0]], [[6.0]]]]> : tensor<3x2x1x1xf32>
    %b = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
    %s = stablehlo.constant dense<[2.0, 4.0, 8.0]> : tensor<3xf32>
    %t = stablehlo.constant dense<[0.5, 0.25, 0.125]> : tensor<3xf32>
    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32>
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<3xf32>) -> tensor<1x3x4x4xf32>
    %2 = stablehlo.add %0, %1 : tensor<1x3x4x4xf32>
    %3 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<3xf32>) -> tensor<1x3x4x4xf32>
    %4 = stablehlo.multiply %2, %3 : tensor<1x3x4x4xf32>
    %5 = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<3xf32>) -> tensor<1x3x4x4xf32>
    %6 = stablehlo.add %4, %5 : tensor<1x3x4x4xf32>
    return %6 : tensor<1x3x4x4xf32>
  }
}
