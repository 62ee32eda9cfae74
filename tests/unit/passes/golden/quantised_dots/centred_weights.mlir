// Weights that fit i8 without their zero point lose it.
func.func @main(%x: tensor<2x3xui8>) -> tensor<2x2xf32> {
  %0 = stablehlo.constant dense<0.5> : tensor<f32>
  %1 = stablehlo.constant dense<7> : tensor<ui8>
  %2 = "pestle.dequantize_linear"(%x, %0, %1) : (tensor<2x3xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xf32>
  %3 = stablehlo.constant dense<[[0, 128], [255, 3], [127, 130]]> : tensor<3x2xui8>
  %4 = stablehlo.constant dense<128> : tensor<ui8>
  %5 = "pestle.dequantize_linear"(%3, %0, %4) : (tensor<3x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<3x2xf32>
  %6 = stablehlo.dot_general %2, %5, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %6 : tensor<2x2xf32>
}
// -----
module {
  func.func public @main(%x: tensor<2x3xui8>) -> tensor<2x2xf32> {
    %0 = stablehlo.constant dense<0.5> : tensor<f32>
    %1 = stablehlo.constant dense<7> : tensor<ui8>
    %2 = stablehlo.constant dense<[[-128, 0], [127, -125], [-1, 2]]> : tensor<3x2xi8>
    %3 = stablehlo.dot_general %x, %2, contracting_dims = [1] x [0] : (tensor<2x3xui8>, tensor<3x2xi8>) -> tensor<2x2xi32>
    %4 = stablehlo.convert %2 : (tensor<3x2xi8>) -> tensor<3x2xi32>
    %5 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.reduce(%4 init: %5) applies stablehlo.add across dimensions = [0] : (tensor<3x2xi32>, tensor<i32>) -> tensor<2xi32>
    %7 = stablehlo.convert %1 : (tensor<ui8>) -> tensor<i32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %9 = stablehlo.multiply %6, %8 : tensor<2xi32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [1] : (tensor<2xi32>) -> tensor<2x2xi32>
    %11 = stablehlo.subtract %3, %10 : tensor<2x2xi32>
    %12 = stablehlo.convert %11 : (tensor<2x2xi32>) -> tensor<2x2xf32>
    %13 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %14 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %15 = stablehlo.multiply %13, %14 : tensor<2x2xf32>
    %16 = stablehlo.multiply %12, %15 : tensor<2x2xf32>
    return %16 : tensor<2x2xf32>
  }
}
