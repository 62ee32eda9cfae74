// One spatial axis, depthwise, strided; the squeeze behind it keeps the layout.
func.func @main(%x: tensor<2x4x9xf32>, %w: tensor<4x1x3xf32>) -> tensor<2x4x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [2]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<2x4x9xf32>, tensor<4x1x3xf32>) -> tensor<2x4x4xf32>
  %1 = stablehlo.tanh %0 : tensor<2x4x4xf32>
  return %1 : tensor<2x4x4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<2x4x9xf32>, %w: tensor<4x1x3xf32>) -> tensor<2x4x4xf32> {
    %0 = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<2x4x9xf32>) -> tensor<2x9x4xf32>
    %1 = stablehlo.transpose %w, dims = [2, 1, 0] : (tensor<4x1x3xf32>) -> tensor<3x1x4xf32>
    %2 = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<2x9x4xf32>, tensor<3x1x4xf32>) -> tensor<2x4x4xf32>
    %3 = stablehlo.tanh %2 : tensor<2x4x4xf32>
    %4 = stablehlo.transpose %3, dims = [0, 2, 1] : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    return %4 : tensor<2x4x4xf32>
  }
}
