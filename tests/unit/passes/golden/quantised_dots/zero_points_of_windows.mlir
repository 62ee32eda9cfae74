// The zero point of weights is taken off times the sums of windows, whose
// padding is the zero point of the input.
func.func @main(%x: tensor<1x2x4x5xui8>, %w: tensor<3x2x2x3xi8>) -> tensor<1x3x3x3xf32> {
  %0 = stablehlo.constant dense<0.5> : tensor<f32>
  %1 = stablehlo.constant dense<7> : tensor<ui8>
  %2 = "pestle.dequantize_linear"(%x, %0, %1) : (tensor<1x2x4x5xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x2x4x5xf32>
  %3 = stablehlo.constant dense<-5> : tensor<i8>
  %4 = "pestle.dequantize_linear"(%w, %0, %3) : (tensor<3x2x2x3xi8>, tensor<f32>, tensor<i8>) -> tensor<3x2x2x3xf32>
  %5 = stablehlo.convolution(%2, %4) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 1], pad = [[1, 1], [0, 2]], lhs_dilate = [1, 1], rhs_dilate = [1, 2], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x4x5xf32>, tensor<3x2x2x3xf32>) -> tensor<1x3x3x3xf32>
  return %5 : tensor<1x3x3x3xf32>
}
// -----
module {
  func.func public @main(%x: tensor<1x2x4x5xui8>, %w: tensor<3x2x2x3xi8>) -> tensor<1x3x3x3xf32> {
    %0 = stablehlo.constant dense<0.5> : tensor<f32>
    %1 = stablehlo.constant dense<7> : tensor<ui8>
    %2 = stablehlo.constant dense<-5> : tensor<i8>
    %3 = stablehlo.pad %x, %1, low = [0, 0, 1, 0], high = [0, 0, 1, 2], interior = [0, 0, 0, 0] : (tensor<1x2x4x5xui8>, tensor<ui8>) -> tensor<1x2x6x7xui8>
    %4 = stablehlo.convolution(%3, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 2], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x6x7xui8>, tensor<3x2x2x3xi8>) -> tensor<1x3x3x3xi32>
    %5 = stablehlo.convert %w : (tensor<3x2x2x3xi8>) -> tensor<3x2x2x3xi32>
    %6 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.reduce(%5 init: %6) applies stablehlo.add across dimensions = [1, 2, 3] : (tensor<3x2x2x3xi32>, tensor<i32>) -> tensor<3xi32>
    %8 = stablehlo.constant dense<12> : tensor<i32>
    %9 = stablehlo.convert %2 : (tensor<i8>) -> tensor<i32>
    %10 = stablehlo.multiply %8, %9 : tensor<i32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %12 = stablehlo.subtract %7, %11 : tensor<3xi32>
    %13 = stablehlo.convert %1 : (tensor<ui8>) -> tensor<i32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %15 = stablehlo.multiply %12, %14 : tensor<3xi32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [1] : (tensor<3xi32>) -> tensor<1x3x3x3xi32>
    %17 = stablehlo.subtract %4, %16 : tensor<1x3x3x3xi32>
    %18 = stablehlo.convert %3 : (tensor<1x2x6x7xui8>) -> tensor<1x2x6x7xi32>
    %19 = stablehlo.constant dense<0> : tensor<i32>
    %20 = stablehlo.reduce(%18 init: %19) applies stablehlo.add across dimensions = [1] : (tensor<1x2x6x7xi32>, tensor<i32>) -> tensor<1x6x7xi32>
    %21 = stablehlo.constant dense<0> : tensor<i32>
    %22 = "stablehlo.reduce_window"(%20, %21) <{window_dimensions = array<i64: 1, 2, 3>, window_strides = array<i64: 1, 2, 1>, base_dilations = array<i64: 1, 1, 1>, window_dilations = array<i64: 1, 1, 2>, padding = dense<[[0, 0], [0, 0], [0, 0]]> : tensor<3x2xi64>}> ({
    ^bb0(%arg0: tensor<i32>, %arg1: tensor<i32>):
      %33 = stablehlo.add %arg0, %arg1 : tensor<i32>
      stablehlo.return %33 : tensor<i32>
    }) : (tensor<1x6x7xi32>, tensor<i32>) -> tensor<1x3x3xi32>
    %23 = stablehlo.convert %2 : (tensor<i8>) -> tensor<i32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [] : (tensor<i32>) -> tensor<1x3x3xi32>
    %25 = stablehlo.multiply %22, %24 : tensor<1x3x3xi32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 2, 3] : (tensor<1x3x3xi32>) -> tensor<1x3x3x3xi32>
    %27 = stablehlo.subtract %17, %26 : tensor<1x3x3x3xi32>
    %28 = stablehlo.convert %27 : (tensor<1x3x3x3xi32>) -> tensor<1x3x3x3xf32>
    %29 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x3x3x3xf32>
    %30 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x3x3x3xf32>
    %31 = stablehlo.multiply %29, %30 : tensor<1x3x3x3xf32>
    %32 = stablehlo.multiply %28, %31 : tensor<1x3x3x3xf32>
    return %32 : tensor<1x3x3x3xf32>
  }
}
