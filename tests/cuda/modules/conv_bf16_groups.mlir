// SPDX-License-Identifier: Apache-2.0
// schedule: shared_tile c .*units async$
// also: ref,cpu=simt
func.func @main(%x: tensor<2x28x28x64xbf16>, %w: tensor<3x3x16x96xbf16>) -> tensor<2x28x28x96xbf16> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<2x28x28x64xbf16>, tensor<3x3x16x96xbf16>) -> tensor<2x28x28x96xbf16>
  %1 = stablehlo.negate %0 : tensor<2x28x28x96xbf16>
  return %1 : tensor<2x28x28x96xbf16>
}
