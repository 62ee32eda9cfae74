// One tap: rows of the tile are those of both spatial dimensions and the batch.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<2x5x5x8xf32>, %w: tensor<1x1x8x32xf32>, %r: tensor<2x5x5x32xf32>) -> tensor<2x5x5x32xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x5x5x8xf32>, tensor<1x1x8x32xf32>) -> tensor<2x5x5x32xf32>
  %1 = stablehlo.add %0, %r : tensor<2x5x5x32xf32>
  return %1 : tensor<2x5x5x32xf32>
}
