// One input feature: the padded copy is made along the width, by vectors of which
// the lanes inside the image are loaded.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<1x12x12x1xf32>, %w: tensor<5x5x1x6xf32>) -> tensor<1x12x12x6xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[2, 2], [2, 2]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x12x12x1xf32>, tensor<5x5x1x6xf32>) -> tensor<1x12x12x6xf32>
  return %0 : tensor<1x12x12x6xf32>
}
