// What a convolution is padded with becomes its zero point.
func.func @main(%x: tensor<1x1x4xui8>) -> tensor<1x2x4xf32> {
  %0 = stablehlo.constant dense<0.5> : tensor<f32>
  %1 = stablehlo.constant dense<7> : tensor<ui8>
  %2 = "pestle.dequantize_linear"(%x, %0, %1) : (tensor<1x1x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x1x4xf32>
  %3 = stablehlo.constant dense<[[[1, -2, 3]], [[-4, 5, -6]]]> : tensor<2x1x3xi8>
  %4 = stablehlo.constant dense<[0.25, 2.0]> : tensor<2xf32>
  %5 = stablehlo.constant dense<0> : tensor<2xi8>
  %6 = "pestle.dequantize_linear"(%3, %4, %5) <{axis = 0 : i64}> : (tensor<2x1x3xi8>, tensor<2xf32>, tensor<2xi8>) -> tensor<2x1x3xf32>
  %7 = stablehlo.convolution(%2, %6) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1], pad = [[1, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x4xf32>, tensor<2x1x3xf32>) -> tensor<1x2x4xf32>
  return %7 : tensor<1x2x4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<1x1x4xui8>) -> tensor<1x2x4xf32> {
    %0 = stablehlo.constant dense<0.5> : tensor<f32>
    %1 = stablehlo.constant dense<7> : tensor<ui8>
    %2 = stablehlo.constant dense<[[[1, -2, 3]], [[-4, 5, -6]]]> : tensor<2x1x3xi8>
    %3 = stablehlo.constant dense<[0.25, 2.0]> : tensor<2xf32>
    %4 = stablehlo.pad %x, %1, low = [0, 0, 1], high = [0, 0, 1], interior = [0, 0, 0] : (tensor<1x1x4xui8>, tensor<ui8>) -> tensor<1x1x6xui8>
    %5 = stablehlo.convolution(%4, %2) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x6xui8>, tensor<2x1x3xi8>) -> tensor<1x2x4xi32>
    %6 = stablehlo.convert %2 : (tensor<2x1x3xi8>) -> tensor<2x1x3xi32>
    %7 = stablehlo.constant dense<0> : tensor<i32>
    %8 = stablehlo.reduce(%6 init: %7) applies stablehlo.add across dimensions = [1, 2] : (tensor<2x1x3xi32>, tensor<i32>) -> tensor<2xi32>
    %9 = stablehlo.convert %1 : (tensor<ui8>) -> tensor<i32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %11 = stablehlo.multiply %8, %10 : tensor<2xi32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [1] : (tensor<2xi32>) -> tensor<1x2x4xi32>
    %13 = stablehlo.subtract %5, %12 : tensor<1x2x4xi32>
    %14 = stablehlo.convert %13 : (tensor<1x2x4xi32>) -> tensor<1x2x4xf32>
    %15 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %16 = stablehlo.multiply %15, %3 : tensor<2xf32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [1] : (tensor<2xf32>) -> tensor<1x2x4xf32>
    %18 = stablehlo.multiply %14, %17 : tensor<1x2x4xf32>
    return %18 : tensor<1x2x4xf32>
  }
}
