// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<4x64x64xf32>) -> (tensor<64x4x64xf32>) {
  %a = stablehlo.dot_general %x, %x, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x64x64xf32>, tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %t = stablehlo.transpose %a, dims = [1, 0, 2] : (tensor<4x64x64xf32>) -> tensor<64x4x64xf32>
  %u = stablehlo.tanh %t : tensor<64x4x64xf32>
  return %u : tensor<64x4x64xf32>
}
