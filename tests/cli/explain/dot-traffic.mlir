// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>) {
  %b = stablehlo.add %x, %x : tensor<64x64xf32>
  %c = stablehlo.dot_general %b, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %c : tensor<64x64xf32>
}
