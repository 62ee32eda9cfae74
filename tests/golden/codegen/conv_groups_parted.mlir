// Groups of 22 features: as many vectors as end with a group, 11, leave registers for one
// row. A tile has columns of one group instead, whose last vector is masked.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<1x9x8x176xf32>, %w: tensor<3x3x22x176xf32>) -> tensor<1x7x6x176xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 8 : i64} : (tensor<1x9x8x176xf32>, tensor<3x3x22x176xf32>) -> tensor<1x7x6x176xf32>
  return %0 : tensor<1x7x6x176xf32>
}
