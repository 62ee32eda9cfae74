// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<1x16x16x8xf32>, %w: tensor<3x3x8x8xf32>) -> (tensor<1x14x14x8xf32>) {
  %e = stablehlo.tanh %x : tensor<1x16x16x8xf32>
  %c = stablehlo.convolution(%e, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x16x8xf32>, tensor<3x3x8x8xf32>) -> tensor<1x14x14x8xf32>
  return %c : tensor<1x14x14x8xf32>
}
