// Two convolutions, a pool and a residual: one transpose in, one out.
func.func @main(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>, %v: tensor<4x4x1x1xf32>, %b: tensor<4xf32>) -> tensor<1x4x4x4xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<1x4x8x8xf32>
  %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x8x8xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4xf32>) -> tensor<1x4x8x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<1x4x8x8xf32>
  %3 = stablehlo.maximum %2, %z : tensor<1x4x8x8xf32>
  %4 = "stablehlo.reduce_window"(%3, %m) <{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = stablehlo.maximum %p, %q : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<1x4x8x8xf32>, tensor<f32>) -> tensor<1x4x4x4xf32>
  %5 = stablehlo.convolution(%4, %v) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x4x4xf32>
  %6 = stablehlo.add %5, %4 : tensor<1x4x4x4xf32>
  return %6 : tensor<1x4x4x4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>, %v: tensor<4x4x1x1xf32>, %b: tensor<4xf32>) -> tensor<1x4x4x4xf32> {
    %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<1x2x8x8xf32>) -> tensor<1x8x8x2xf32>
    %1 = stablehlo.transpose %w, dims = [2, 3, 1, 0] : (tensor<4x2x3x3xf32>) -> tensor<3x3x2x4xf32>
    %2 = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x8x8x4xf32>
    %3 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4xf32>) -> tensor<1x4x8x8xf32>
    %4 = stablehlo.transpose %3, dims = [0, 2, 3, 1] : (tensor<1x4x8x8xf32>) -> tensor<1x8x8x4xf32>
    %5 = stablehlo.add %2, %4 : tensor<1x8x8x4xf32>
    %6 = stablehlo.constant dense<0.0> : tensor<1x8x8x4xf32>
    %7 = stablehlo.maximum %5, %6 : tensor<1x8x8x4xf32>
    %8 = "stablehlo.reduce_window"(%7, %m) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>, base_dilations = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [0, 0], [0, 0]]> : tensor<4x2xi64>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %r = stablehlo.maximum %p, %q : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<1x8x8x4xf32>, tensor<f32>) -> tensor<1x4x4x4xf32>
    %9 = stablehlo.transpose %v, dims = [2, 3, 1, 0] : (tensor<4x4x1x1xf32>) -> tensor<1x1x4x4xf32>
    %10 = stablehlo.convolution(%8, %9) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x4x4x4xf32>
    %11 = stablehlo.add %10, %8 : tensor<1x4x4x4xf32>
    %12 = stablehlo.transpose %11, dims = [0, 3, 1, 2] : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
    return %12 : tensor<1x4x4x4xf32>
  }
}
