// SPDX-License-Identifier: Apache-2.0
// schedule: bind c.klmi lane.y$
func.func @main(%x: tensor<9x14x14x3xf32>, %g: tensor<9x14x14x8xf32>) -> tensor<5x5x3x8xf32> {
  %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[2, 2], [2, 2]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<9x14x14x3xf32>, tensor<9x14x14x8xf32>) -> tensor<5x5x3x8xf32>
  return %0 : tensor<5x5x3x8xf32>
}
