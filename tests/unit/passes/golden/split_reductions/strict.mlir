// options: strict
// Sums keep the order of their terms, a maximum has none.
func.func @main(%x: tensor<131072xf32>) -> (tensor<f32>, tensor<f32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<131072xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [0] : (tensor<131072xf32>, tensor<f32>) -> tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}
// -----
module {
  func.func public @main(%x: tensor<131072xf32>) -> (tensor<f32>, tensor<f32>) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<131072xf32>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2 = stablehlo.reshape %x : (tensor<131072xf32>) -> tensor<8x16384xf32>
    %3 = stablehlo.reduce(%2 init: %1) applies stablehlo.maximum across dimensions = [1] : (tensor<8x16384xf32>, tensor<f32>) -> tensor<8xf32>
    %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.maximum across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    return %0, %4 : tensor<f32>, tensor<f32>
  }
}
