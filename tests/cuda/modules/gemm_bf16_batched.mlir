// SPDX-License-Identifier: Apache-2.0
// schedule: shared_tile c .* units async$
func.func @main(%a: tensor<3x100x200xbf16>, %b: tensor<3x200x130xbf16>) -> tensor<3x100x130xbf16> {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x100x200xbf16>, tensor<3x200x130xbf16>) -> tensor<3x100x130xbf16>
  return %0 : tensor<3x100x130xbf16>
}
