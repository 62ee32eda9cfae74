// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<64x64xf32>, %y: tensor<64xi32>) -> (tensor<32x32xf32>) {
  %a = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %i = stablehlo.slice %a [0:32, 1:33] : (tensor<64x64xf32>) -> tensor<32x32xf32>
  %j = stablehlo.tanh %i : tensor<32x32xf32>
  return %j : tensor<32x32xf32>
}
