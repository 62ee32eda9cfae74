// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>) {
  %e = stablehlo.tanh %x : tensor<64xf32>
  %b = stablehlo.broadcast_in_dim %e, dims = [1] : (tensor<64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.add %b, %y : tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}
