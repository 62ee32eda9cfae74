// More than the L2 holds goes through both kernels. Tiles of few vectors ask for the
// lines of their results first, and boxes of planes for what the next one copies;
// where a tile has more lines than a core asks for at once, and panels come from L2 in
// time, tiles go along the rows of the results instead.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
func.func @main(%x: tensor<1x144x56x56xf32>, %w: tensor<144x1x3x3xf32>, %p: tensor<1x32x56x56xf32>, %v: tensor<256x32x1x1xf32>) -> (tensor<1x144x56x56xf32>, tensor<1x256x56x56xf32>) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 144 : i64} : (tensor<1x144x56x56xf32>, tensor<144x1x3x3xf32>) -> tensor<1x144x56x56xf32>
  %1 = stablehlo.convolution(%p, %v) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x32x56x56xf32>, tensor<256x32x1x1xf32>) -> tensor<1x256x56x56xf32>
  return %0, %1 : tensor<1x144x56x56xf32>, tensor<1x256x56x56xf32>
}
