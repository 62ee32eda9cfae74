// SPDX-License-Identifier: Apache-2.0
func.func @main(%a: tensor<16x8192xbf16>, %b: tensor<8192x8192xbf16>) -> tensor<16x8192xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<16x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<16x8192xbf16>
  return %0 : tensor<16x8192xbf16>
}
