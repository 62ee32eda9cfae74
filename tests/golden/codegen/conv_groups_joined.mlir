// Groups of 3 features: three vectors of 16 lanes have 16 groups, each in other lanes,
// so that a tile has three vectors and each of them a shuffle of its own.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<1x9x8x96xf32>, %w: tensor<3x3x3x96xf32>) -> tensor<1x7x6x96xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 32 : i64} : (tensor<1x9x8x96xf32>, tensor<3x3x3x96xf32>) -> tensor<1x7x6x96xf32>
  return %0 : tensor<1x7x6x96xf32>
}
