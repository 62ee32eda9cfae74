// Columns of one group; those of the second fold are shared well enough.
func.func @main(%x: tensor<4096x48xf32>, %y: tensor<64x4096xf32>) -> (tensor<48xf32>, tensor<4096xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4096x48xf32>, tensor<f32>) -> tensor<48xf32>
  %1 = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64x4096xf32>, tensor<f32>) -> tensor<4096xf32>
  return %0, %1 : tensor<48xf32>, tensor<4096xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4096x48xf32>, %y: tensor<64x4096xf32>) -> (tensor<48xf32>, tensor<4096xf32>) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.constant dense<-0.0> : tensor<f32>
    %1 = stablehlo.reshape %x : (tensor<4096x48xf32>) -> tensor<8x512x48xf32>
    %2 = stablehlo.reduce(%1 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<8x512x48xf32>, tensor<f32>) -> tensor<8x48xf32>
    %3 = stablehlo.reduce(%2 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x48xf32>, tensor<f32>) -> tensor<48xf32>
    %4 = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64x4096xf32>, tensor<f32>) -> tensor<4096xf32>
    return %3, %4 : tensor<48xf32>, tensor<4096xf32>
  }
}
