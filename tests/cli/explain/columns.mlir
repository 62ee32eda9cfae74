// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %b = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.subtract %x, %b : tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}
