// Between its two folds a sum of bf16 is f32.
func.func @main(%x: tensor<524288xbf16>) -> tensor<bf16> {
  %z = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [0] : (tensor<524288xbf16>, tensor<bf16>) -> tensor<bf16>
  return %0 : tensor<bf16>
}
// -----
module {
  func.func public @main(%x: tensor<524288xbf16>) -> tensor<bf16> {
    %z = stablehlo.constant dense<0.0> : tensor<bf16>
    %0 = stablehlo.convert %x : (tensor<524288xbf16>) -> tensor<524288xf32>
    %1 = stablehlo.convert %z : (tensor<bf16>) -> tensor<f32>
    %2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %3 = stablehlo.reshape %0 : (tensor<524288xf32>) -> tensor<16x32768xf32>
    %4 = stablehlo.reduce(%3 init: %2) applies stablehlo.maximum across dimensions = [1] : (tensor<16x32768xf32>, tensor<f32>) -> tensor<16xf32>
    %5 = stablehlo.reduce(%4 init: %1) applies stablehlo.maximum across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %6 = stablehlo.convert %5 : (tensor<f32>) -> tensor<bf16>
    return %6 : tensor<bf16>
  }
}
