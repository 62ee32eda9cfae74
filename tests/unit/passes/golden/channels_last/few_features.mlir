// The input's three features stay planes: its elements are repeated one by one.
func.func @main(%x: tensor<1x3x8x8xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<1x8x8x8xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x8x8xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x8x8xf32>
  return %0 : tensor<1x8x8x8xf32>
}
// -----
module {
  func.func public @main(%x: tensor<1x3x8x8xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<1x8x8x8xf32> {
    %0 = stablehlo.transpose %w, dims = [2, 3, 1, 0] : (tensor<8x3x3x3xf32>) -> tensor<3x3x3x8xf32>
    %1 = stablehlo.convolution(%x, %0) dim_numbers = [b, f, 0, 1]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x8x8xf32>, tensor<3x3x3x8xf32>) -> tensor<1x8x8x8xf32>
    %2 = stablehlo.transpose %1, dims = [0, 3, 1, 2] : (tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
    return %2 : tensor<1x8x8x8xf32>
  }
}
