// SPDX-License-Identifier: Apache-2.0
// schedule: shared_tile c .*2 async$
func.func @main(%x: tensor<8x28x28x32xf32>, %w: tensor<3x3x32x64xf32>) -> tensor<8x28x28x64xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x28x28x32xf32>, tensor<3x3x32x64xf32>) -> tensor<8x28x28x64xf32>
  %1 = stablehlo.negate %0 : tensor<8x28x28x64xf32>
  return %1 : tensor<8x28x28x64xf32>
}
