// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
  %e0 = stablehlo.add %x, %y : tensor<64x64xf32>
  %e1 = stablehlo.add %e0, %y : tensor<64x64xf32>
  %e2 = stablehlo.add %e1, %y : tensor<64x64xf32>
  %e3 = stablehlo.add %e2, %y : tensor<64x64xf32>
  %e4 = stablehlo.add %e3, %y : tensor<64x64xf32>
  %d0 = stablehlo.dot_general %e0, %y, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %d1 = stablehlo.dot_general %e1, %y, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %d2 = stablehlo.dot_general %e2, %y, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %d3 = stablehlo.dot_general %e3, %y, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %d4 = stablehlo.dot_general %e4, %y, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %d0, %d1, %d2, %d3, %d4 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}
