// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<64x64xf32>) -> (tensor<32xf32>) {
  %e = stablehlo.tanh %x : tensor<64x64xf32>
  %s = stablehlo.reshape %e : (tensor<64x64xf32>) -> tensor<32x128xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [1] : (tensor<32x128xf32>, tensor<f32>) -> tensor<32xf32>
  return %r : tensor<32xf32>
}
