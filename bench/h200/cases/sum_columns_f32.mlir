// The sum of each column.
func.func @main(%x: tensor<16384x16384xf32>) -> tensor<16384xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<16384x16384xf32>, tensor<f32>) -> tensor<16384xf32>
  return %0 : tensor<16384xf32>
}
