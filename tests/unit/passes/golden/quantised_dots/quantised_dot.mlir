// A scale a column and a zero point, as ONNX tools write weights.
func.func @main(%x: tensor<1x3x4xui8>) -> tensor<1x3x2xf32> {
  %0 = stablehlo.constant dense<0.5> : tensor<f32>
  %1 = stablehlo.constant dense<7> : tensor<ui8>
  %2 = "pestle.dequantize_linear"(%x, %0, %1) : (tensor<1x3x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x3x4xf32>
  %3 = stablehlo.constant dense<[[1, -2], [3, -4], [5, -6], [-128, 127]]> : tensor<4x2xi8>
  %4 = stablehlo.constant dense<[0.25, 2.0]> : tensor<2xf32>
  %5 = stablehlo.constant dense<[0, 0]> : tensor<2xi8>
  %6 = "pestle.dequantize_linear"(%3, %4, %5) <{axis = 1 : i64}> : (tensor<4x2xi8>, tensor<2xf32>, tensor<2xi8>) -> tensor<4x2xf32>
  %7 = stablehlo.dot_general %2, %6, contracting_dims = [2] x [0] : (tensor<1x3x4xf32>, tensor<4x2xf32>) -> tensor<1x3x2xf32>
  return %7 : tensor<1x3x2xf32>
}
// -----
module {
  func.func public @main(%x: tensor<1x3x4xui8>) -> tensor<1x3x2xf32> {
    %0 = stablehlo.constant dense<0.5> : tensor<f32>
    %1 = stablehlo.constant dense<7> : tensor<ui8>
    %2 = stablehlo.constant dense<[[1, -2], [3, -4], [5, -6], [-128, 127]]> : tensor<4x2xi8>
    %3 = stablehlo.constant dense<[0.25, 2.0]> : tensor<2xf32>
    %4 = stablehlo.dot_general %x, %2, contracting_dims = [2] x [0] : (tensor<1x3x4xui8>, tensor<4x2xi8>) -> tensor<1x3x2xi32>
    %5 = stablehlo.convert %2 : (tensor<4x2xi8>) -> tensor<4x2xi32>
    %6 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.reduce(%5 init: %6) applies stablehlo.add across dimensions = [0] : (tensor<4x2xi32>, tensor<i32>) -> tensor<2xi32>
    %8 = stablehlo.convert %1 : (tensor<ui8>) -> tensor<i32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %10 = stablehlo.multiply %7, %9 : tensor<2xi32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [2] : (tensor<2xi32>) -> tensor<1x3x2xi32>
    %12 = stablehlo.subtract %4, %11 : tensor<1x3x2xi32>
    %13 = stablehlo.convert %12 : (tensor<1x3x2xi32>) -> tensor<1x3x2xf32>
    %14 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %15 = stablehlo.multiply %14, %3 : tensor<2xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [2] : (tensor<2xf32>) -> tensor<1x3x2xf32>
    %17 = stablehlo.multiply %13, %16 : tensor<1x3x2xf32>
    return %17 : tensor<1x3x2xf32>
  }
}
