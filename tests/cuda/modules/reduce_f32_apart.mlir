// SPDX-License-Identifier: Apache-2.0
// schedule: flatten r.k l$
func.func @main(%x: tensor<30x3x50xf32>) -> tensor<3xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [0, 2] : (tensor<30x3x50xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
