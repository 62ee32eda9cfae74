// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>) {
  %e0 = stablehlo.add %x, %x : tensor<64xf32>
  %e1 = stablehlo.multiply %e0, %x : tensor<64xf32>
  %e2 = stablehlo.multiply %e1, %x : tensor<64xf32>
  %e3 = stablehlo.multiply %e2, %x : tensor<64xf32>
  %e4 = stablehlo.multiply %e3, %x : tensor<64xf32>
  %e5 = stablehlo.multiply %e4, %x : tensor<64xf32>
  %e6 = stablehlo.multiply %e5, %x : tensor<64xf32>
  %e7 = stablehlo.multiply %e6, %x : tensor<64xf32>
  %b = stablehlo.broadcast_in_dim %e7, dims = [1] : (tensor<64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.add %b, %y : tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}
