// SPDX-License-Identifier: Apache-2.0
// schedule: shared_transpose y a
// also: ref,cpu=simt
func.func @main(%a: tensor<3x40x50xbf16>, %b: tensor<3x50x40xbf16>) -> tensor<3x50x40xbf16> {
  %0 = stablehlo.transpose %a, dims = [0, 2, 1] : (tensor<3x40x50xbf16>) -> tensor<3x50x40xbf16>
  return %0 : tensor<3x50x40xbf16>
}
