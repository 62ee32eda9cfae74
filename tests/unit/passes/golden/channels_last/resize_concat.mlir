// Nearest resize by broadcasts, concatenate, pad, slice, reduce, broadcast back.
func.func @main(%x: tensor<1x3x4x4xf32>, %w: tensor<2x3x1x1xf32>, %u: tensor<4x4x1x1xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4xf32>) {
  %s = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x4x4xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2, 4] : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x2x4x2xf32>
  %2 = stablehlo.reshape %1 : (tensor<1x2x4x2x4x2xf32>) -> tensor<1x2x8x8xf32>
  %3 = stablehlo.slice %0 [0:1, 0:2, 0:4, 0:3] : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x3xf32>
  %4 = stablehlo.pad %3, %s, low = [0, 0, 2, 3], high = [0, 0, 2, 2], interior = [0, 0, 0, 0] : (tensor<1x2x4x3xf32>, tensor<f32>) -> tensor<1x2x8x8xf32>
  %5 = stablehlo.concatenate %2, %4, dim = 1 : (tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x4x8x8xf32>
  %6 = stablehlo.convolution(%5, %u) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x8xf32>
  %7 = stablehlo.reduce(%6 init: %s) applies stablehlo.add across dimensions = [2, 3] : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4xf32>
  %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<1x4x8x8xf32>
  %9 = stablehlo.multiply %6, %8 : tensor<1x4x8x8xf32>
  return %9, %7 : tensor<1x4x8x8xf32>, tensor<1x4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<1x3x4x4xf32>, %w: tensor<2x3x1x1xf32>, %u: tensor<4x4x1x1xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4xf32>) {
    %s = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<1x3x4x4xf32>) -> tensor<1x4x4x3xf32>
    %1 = stablehlo.transpose %w, dims = [2, 3, 1, 0] : (tensor<2x3x1x1xf32>) -> tensor<1x1x3x2xf32>
    %2 = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x3xf32>, tensor<1x1x3x2xf32>) -> tensor<1x4x4x2xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 3, 5] : (tensor<1x4x4x2xf32>) -> tensor<1x4x2x4x2x2xf32>
    %4 = stablehlo.reshape %3 : (tensor<1x4x2x4x2x2xf32>) -> tensor<1x8x8x2xf32>
    %5 = stablehlo.slice %2 [0:1, 0:4, 0:3, 0:2] : (tensor<1x4x4x2xf32>) -> tensor<1x4x3x2xf32>
    %6 = stablehlo.pad %5, %s, low = [0, 2, 3, 0], high = [0, 2, 2, 0], interior = [0, 0, 0, 0] : (tensor<1x4x3x2xf32>, tensor<f32>) -> tensor<1x8x8x2xf32>
    %7 = stablehlo.concatenate %4, %6, dim = 3 : (tensor<1x8x8x2xf32>, tensor<1x8x8x2xf32>) -> tensor<1x8x8x4xf32>
    %8 = stablehlo.transpose %u, dims = [2, 3, 1, 0] : (tensor<4x4x1x1xf32>) -> tensor<1x1x4x4xf32>
    %9 = stablehlo.convolution(%7, %8) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x8x8x4xf32>
    %10 = stablehlo.reduce(%9 init: %s) applies stablehlo.add across dimensions = [1, 2] : (tensor<1x8x8x4xf32>, tensor<f32>) -> tensor<1x4xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<1x4x8x8xf32>
    %12 = stablehlo.transpose %11, dims = [0, 2, 3, 1] : (tensor<1x4x8x8xf32>) -> tensor<1x8x8x4xf32>
    %13 = stablehlo.multiply %9, %12 : tensor<1x8x8x4xf32>
    %14 = stablehlo.transpose %13, dims = [0, 3, 1, 2] : (tensor<1x8x8x4xf32>) -> tensor<1x4x8x8xf32>
    return %14, %10 : tensor<1x4x8x8xf32>, tensor<1x4xf32>
  }
}
