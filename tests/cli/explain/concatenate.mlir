// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<128xf32>) {
  %c = stablehlo.concatenate %x, %y, dim = 0 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%c init: %z) applies stablehlo.add across dimensions = [1] : (tensor<128x64xf32>, tensor<f32>) -> tensor<128xf32>
  return %r : tensor<128xf32>
}
