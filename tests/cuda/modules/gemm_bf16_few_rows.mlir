// SPDX-License-Identifier: Apache-2.0
// schedule: shared_tile c 16 .* units async$
func.func @main(%a: tensor<5x2048xbf16>, %b: tensor<2048x4096xbf16>) -> tensor<5x4096xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<5x2048xbf16>, tensor<2048x4096xbf16>) -> tensor<5x4096xbf16>
  return %0 : tensor<5x4096xbf16>
}
