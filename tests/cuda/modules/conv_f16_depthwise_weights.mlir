// SPDX-License-Identifier: Apache-2.0
// One kernel that reads weights where they lie.
// schedule: ^nest "convolution_0".*(\n.*)*w\[9\*d \+ 3\*k \+ l\]
// also: ref,cpu=simt
func.func @main(%x: tensor<2x9x11x24xf16>, %w: tensor<24x1x3x3xf16>) -> tensor<2x9x11x24xf16> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 24 : i64} : (tensor<2x9x11x24xf16>, tensor<24x1x3x3xf16>) -> tensor<2x9x11x24xf16>
  return %0 : tensor<2x9x11x24xf16>
}
