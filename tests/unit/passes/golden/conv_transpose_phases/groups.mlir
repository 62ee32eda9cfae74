// Two groups, a window the other way round, one dim of each kind.
func.func @main(%x: tensor<1x3x3x4xf32>, %w: tensor<2x3x2x4xf32>) -> tensor<1x6x7x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [2, 2]], lhs_dilate = [2, 2], rhs_dilate = [1, 1], reverse = [true, true]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x3x3x4xf32>, tensor<2x3x2x4xf32>) -> tensor<1x6x7x4xf32>
  return %0 : tensor<1x6x7x4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<1x3x3x4xf32>, %w: tensor<2x3x2x4xf32>) -> tensor<1x6x7x4xf32> {
    %0 = stablehlo.reverse %w, dims = [0, 1] : tensor<2x3x2x4xf32>
    %1 = stablehlo.slice %0 [0:2, 1:3:2, 0:2, 0:4] : (tensor<2x3x2x4xf32>) -> tensor<2x1x2x4xf32>
    %2 = stablehlo.reshape %1 : (tensor<2x1x2x4xf32>) -> tensor<1x2x1x2x2x2xf32>
    %3 = stablehlo.reverse %2, dims = [1] : tensor<1x2x1x2x2x2xf32>
    %4 = stablehlo.transpose %3, dims = [0, 2, 3, 4, 1, 5] : (tensor<1x2x1x2x2x2xf32>) -> tensor<1x1x2x2x2x2xf32>
    %5 = stablehlo.reshape %4 : (tensor<1x1x2x2x2x2xf32>) -> tensor<1x1x2x8xf32>
    %6 = stablehlo.convolution(%x, %5) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [1, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x3x3x4xf32>, tensor<1x1x2x8xf32>) -> tensor<1x3x4x8xf32>
    %7 = stablehlo.reverse %w, dims = [0, 1] : tensor<2x3x2x4xf32>
    %8 = stablehlo.slice %7 [0:2, 0:3:2, 0:2, 0:4] : (tensor<2x3x2x4xf32>) -> tensor<2x2x2x4xf32>
    %9 = stablehlo.reshape %8 : (tensor<2x2x2x4xf32>) -> tensor<1x2x2x2x2x2xf32>
    %10 = stablehlo.reverse %9, dims = [1] : tensor<1x2x2x2x2x2xf32>
    %11 = stablehlo.transpose %10, dims = [0, 2, 3, 4, 1, 5] : (tensor<1x2x2x2x2x2xf32>) -> tensor<1x2x2x2x2x2xf32>
    %12 = stablehlo.reshape %11 : (tensor<1x2x2x2x2x2xf32>) -> tensor<1x2x2x8xf32>
    %13 = stablehlo.convolution(%x, %12) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x3x3x4xf32>, tensor<1x2x2x8xf32>) -> tensor<1x3x4x8xf32>
    %14 = stablehlo.reshape %6 : (tensor<1x3x4x8xf32>) -> tensor<3x4x1x8xf32>
    %15 = stablehlo.reshape %13 : (tensor<1x3x4x8xf32>) -> tensor<3x4x1x8xf32>
    %16 = stablehlo.concatenate %14, %15, dim = 2 : (tensor<3x4x1x8xf32>, tensor<3x4x1x8xf32>) -> tensor<3x4x2x8xf32>
    %17 = stablehlo.reshape %16 : (tensor<3x4x2x8xf32>) -> tensor<3x4x2x2x2x2xf32>
    %18 = stablehlo.transpose %17, dims = [0, 4, 1, 2, 3, 5] : (tensor<3x4x2x2x2x2xf32>) -> tensor<3x2x4x2x2x2xf32>
    %19 = stablehlo.reshape %18 : (tensor<3x2x4x2x2x2xf32>) -> tensor<1x6x8x4xf32>
    %20 = stablehlo.slice %19 [0:1, 0:6, 1:8, 0:4] : (tensor<1x6x8x4xf32>) -> tensor<1x6x7x4xf32>
    return %20 : tensor<1x6x7x4xf32>
  }
}
