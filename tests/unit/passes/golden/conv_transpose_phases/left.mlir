// Taps that are apart themselves: left as it is.
func.func @main(%x: tensor<1x4x2xf32>, %w: tensor<2x2x2xf32>) -> tensor<1x7x2xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[1, 1]], lhs_dilate = [2], rhs_dilate = [2], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x2xf32>, tensor<2x2x2xf32>) -> tensor<1x7x2xf32>
  return %0 : tensor<1x7x2xf32>
}
// -----
module {
  func.func public @main(%x: tensor<1x4x2xf32>, %w: tensor<2x2x2xf32>) -> tensor<1x7x2xf32> {
    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[1, 1]], lhs_dilate = [2], rhs_dilate = [2], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x2xf32>, tensor<2x2x2xf32>) -> tensor<1x7x2xf32>
    return %0 : tensor<1x7x2xf32>
  }
}
