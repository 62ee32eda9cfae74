// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>) {
  %a = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %t = stablehlo.tanh %r : tensor<64xf32>
  %b = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<64xf32>) -> tensor<64x64xf32>
  %c = stablehlo.multiply %a, %b : tensor<64x64xf32>
  return %c : tensor<64x64xf32>
}
