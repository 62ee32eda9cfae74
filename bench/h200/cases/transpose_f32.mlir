// SPDX-License-Identifier: Apache-2.0
func.func @main(%a: tensor<16384x16384xf32>) -> tensor<16384x16384xf32> {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<16384x16384xf32>) -> tensor<16384x16384xf32>
  return %0 : tensor<16384x16384xf32>
}
