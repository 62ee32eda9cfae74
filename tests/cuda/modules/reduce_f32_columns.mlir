// SPDX-License-Identifier: Apache-2.0
// schedule: bind r.kli lane.y$
func.func @main(%x: tensor<3x20x33x24xf32>) -> tensor<3x24xf32> {
  %z = stablehlo.constant dense<0.5> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1, 2] : (tensor<3x20x33x24xf32>, tensor<f32>) -> tensor<3x24xf32>
  return %0 : tensor<3x24xf32>
}
