// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<1x14x14x48xf32>, %w: tensor<3x3x1x48xf32>, %v: tensor<1x1x48x24xf32>, %z: tensor<1x14x14x24xf32>) -> tensor<1x14x14x24xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 48 : i64} : (tensor<1x14x14x48xf32>, tensor<3x3x1x48xf32>) -> tensor<1x14x14x48xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<1x14x14x48xf32>
  %1 = stablehlo.maximum %0, %zero : tensor<1x14x14x48xf32>
  %2 = stablehlo.convolution(%1, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x14x14x48xf32>, tensor<1x1x48x24xf32>) -> tensor<1x14x14x24xf32>
  %3 = stablehlo.add %2, %z : tensor<1x14x14x24xf32>
  return %3 : tensor<1x14x14x24xf32>
}
