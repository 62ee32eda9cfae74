// The gradient of a 1x1 convolution with strides: three of four results are zero.
func.func @main(%x: tensor<2x3x3x2xf32>, %w: tensor<1x1x2x3xf32>) -> tensor<2x6x6x3xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 1], [0, 1]], lhs_dilate = [2, 2], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x3x2xf32>, tensor<1x1x2x3xf32>) -> tensor<2x6x6x3xf32>
  return %0 : tensor<2x6x6x3xf32>
}
// -----
module {
  func.func public @main(%x: tensor<2x3x3x2xf32>, %w: tensor<1x1x2x3xf32>) -> tensor<2x6x6x3xf32> {
    %0 = stablehlo.slice %w [0:1:2, 0:1:2, 0:2, 0:3] : (tensor<1x1x2x3xf32>) -> tensor<1x1x2x3xf32>
    %1 = stablehlo.convolution(%x, %0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x3x2xf32>, tensor<1x1x2x3xf32>) -> tensor<2x3x3x3xf32>
    %2 = stablehlo.constant dense<0.0> : tensor<f32>
    %3 = stablehlo.pad %1, %2, low = [0, 0, 0, 0], high = [0, 1, 1, 0], interior = [0, 1, 1, 0] : (tensor<2x3x3x3xf32>, tensor<f32>) -> tensor<2x6x6x3xf32>
    return %3 : tensor<2x6x6x3xf32>
  }
}
