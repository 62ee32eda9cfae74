// Groups of 8 columns: lanes of one group, and a padded copy of what the tile's
// groups read, not of all channels.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<1x10x10x64xf32>, %w: tensor<3x3x8x64xf32>) -> tensor<1x10x10x64xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 8 : i64} : (tensor<1x10x10x64xf32>, tensor<3x3x8x64xf32>) -> tensor<1x10x10x64xf32>
  return %0 : tensor<1x10x10x64xf32>
}
