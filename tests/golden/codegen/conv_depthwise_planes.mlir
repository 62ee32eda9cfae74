// Planes in and out: one is copied with its border, lanes go along its rows.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<1x3x12x20xf32>, %w: tensor<3x1x3x3xf32>) -> tensor<1x3x12x20xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 3 : i64} : (tensor<1x3x12x20xf32>, tensor<3x1x3x3xf32>) -> tensor<1x3x12x20xf32>
  return %0 : tensor<1x3x12x20xf32>
}
