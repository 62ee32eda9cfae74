// SPDX-License-Identifier: Apache-2.0
// One kernel that reads planes and weights where they lie.
// schedule: ^nest "convolution_0".*(\n.*)*w\[9\*b \+ 3\*k \+ l\]
// also: ref,cpu=simt
func.func @main(%x: tensor<2x24x9x11xf32>, %w: tensor<24x1x3x3xf32>) -> tensor<2x24x9x11xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 24 : i64} : (tensor<2x24x9x11xf32>, tensor<24x1x3x3xf32>) -> tensor<2x24x9x11xf32>
  return %0 : tensor<2x24x9x11xf32>
}
