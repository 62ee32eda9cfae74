// SPDX-License-Identifier: Apache-2.0
// schedule: unfuse c.d 24$
// also: ref,cpu=simt
func.func @main(%x: tensor<2x8x8x32xf32>, %g: tensor<2x8x8x48xf32>) -> tensor<3x3x16x48xf32> {
  %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x32xf32>, tensor<2x8x8x48xf32>) -> tensor<3x3x16x48xf32>
  return %0 : tensor<3x3x16x48xf32>
}
