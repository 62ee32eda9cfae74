// options: strict
// Floats are multiplied as they were.
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
    %2 = "pestle.dequantize_linear"(%x, %0, %1) : (tensor<1x3x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x3x4xf32>
    %3 = stablehlo.constant dense<[[1, -2], [3, -4], [5, -6], [-128, 127]]> : tensor<4x2xi8>
    %4 = stablehlo.constant dense<[0.25, 2.0]> : tensor<2xf32>
    %5 = stablehlo.constant dense<[0, 0]> : tensor<2xi8>
    %6 = "pestle.dequantize_linear"(%3, %4, %5) <{axis = 1 : i64}> : (tensor<4x2xi8>, tensor<2xf32>, tensor<2xi8>) -> tensor<4x2xf32>
    %7 = stablehlo.dot_general %2, %6, contracting_dims = [2] x [0] : (tensor<1x3x4xf32>, tensor<4x2xf32>) -> tensor<1x3x2xf32>
    return %7 : tensor<1x3x2xf32>
  }
}
