// Rows of few kept dims; the mean of squares shares the blocks; a short fold
// stays whole.
func.func @main(%x: tensor<2x131072xf32>, %s: tensor<2x16xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %z = stablehlo.constant dense<1.5> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x131072xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.multiply %x, %x : tensor<2x131072xf32>
  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x131072xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x16xf32>, tensor<f32>) -> tensor<2xf32>
  return %0, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
// -----
module {
  func.func public @main(%x: tensor<2x131072xf32>, %s: tensor<2x16xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
    %z = stablehlo.constant dense<1.5> : tensor<f32>
    %0 = stablehlo.constant dense<-0.0> : tensor<f32>
    %1 = stablehlo.reshape %x : (tensor<2x131072xf32>) -> tensor<2x8x16384xf32>
    %2 = stablehlo.reduce(%1 init: %0) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16384xf32>, tensor<f32>) -> tensor<2x8xf32>
    %3 = stablehlo.reduce(%2 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
    %4 = stablehlo.multiply %x, %x : tensor<2x131072xf32>
    %5 = stablehlo.reshape %4 : (tensor<2x131072xf32>) -> tensor<2x8x16384xf32>
    %6 = stablehlo.reduce(%5 init: %0) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16384xf32>, tensor<f32>) -> tensor<2x8xf32>
    %7 = stablehlo.reduce(%6 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
    %8 = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x16xf32>, tensor<f32>) -> tensor<2xf32>
    return %3, %7, %8 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  }
}
