// The input has none: zeros are padded, and add nothing to sums of windows.
func.func @main(%x: tensor<1x4x5x4xui8>, %w: tensor<3x4x3x1xi8>) -> tensor<1x3x5x4xi32> {
  %0 = stablehlo.convert %x : (tensor<1x4x5x4xui8>) -> tensor<1x4x5x4xi32>
  %1 = stablehlo.convert %w : (tensor<3x4x3x1xi8>) -> tensor<3x4x3x1xi32>
  %2 = stablehlo.constant dense<5> : tensor<3x4x3x1xi32>
  %3 = stablehlo.subtract %1, %2 : tensor<3x4x3x1xi32>
  %4 = stablehlo.convolution(%0, %3) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x5x4xi32>, tensor<3x4x3x1xi32>) -> tensor<1x3x5x4xi32>
  return %4 : tensor<1x3x5x4xi32>
}
// -----
module {
  func.func public @main(%x: tensor<1x4x5x4xui8>, %w: tensor<3x4x3x1xi8>) -> tensor<1x3x5x4xi32> {
    %0 = stablehlo.constant dense<5> : tensor<i8>
    %1 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x5x4xui8>, tensor<3x4x3x1xi8>) -> tensor<1x3x5x4xi32>
    %2 = stablehlo.convert %x : (tensor<1x4x5x4xui8>) -> tensor<1x4x5x4xi32>
    %3 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.reduce(%2 init: %3) applies stablehlo.add across dimensions = [1] : (tensor<1x4x5x4xi32>, tensor<i32>) -> tensor<1x5x4xi32>
    %5 = stablehlo.constant dense<0> : tensor<i32>
    %6 = "stablehlo.reduce_window"(%4, %5) <{window_dimensions = array<i64: 1, 3, 1>, window_strides = array<i64: 1, 1, 1>, base_dilations = array<i64: 1, 1, 1>, window_dilations = array<i64: 1, 1, 1>, padding = dense<[[0, 0], [1, 1], [0, 0]]> : tensor<3x2xi64>}> ({
    ^bb0(%arg0: tensor<i32>, %arg1: tensor<i32>):
      %12 = stablehlo.add %arg0, %arg1 : tensor<i32>
      stablehlo.return %12 : tensor<i32>
    }) : (tensor<1x5x4xi32>, tensor<i32>) -> tensor<1x5x4xi32>
    %7 = stablehlo.convert %0 : (tensor<i8>) -> tensor<i32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<i32>) -> tensor<1x5x4xi32>
    %9 = stablehlo.multiply %6, %8 : tensor<1x5x4xi32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 2, 3] : (tensor<1x5x4xi32>) -> tensor<1x3x5x4xi32>
    %11 = stablehlo.subtract %1, %10 : tensor<1x3x5x4xi32>
    return %11 : tensor<1x3x5x4xi32>
  }
}
