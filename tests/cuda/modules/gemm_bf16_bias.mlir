// SPDX-License-Identifier: Apache-2.0
// schedule: shared_tile c .* units async$
func.func @main(%a: tensor<300x256xbf16>, %b: tensor<256x400xbf16>, %c: tensor<400xbf16>) -> tensor<300x400xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<300x256xbf16>, tensor<256x400xbf16>) -> tensor<300x400xbf16>
  %1 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<400xbf16>) -> tensor<300x400xbf16>
  %2 = stablehlo.add %0, %1 : tensor<300x400xbf16>
  %3 = stablehlo.tanh %2 : tensor<300x400xbf16>
  return %3 : tensor<300x400xbf16>
}
