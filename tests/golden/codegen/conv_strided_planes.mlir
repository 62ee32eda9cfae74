// Windows with strides of planes, of few features, whose result stays in planes: lanes
// go along the width. The padded copy is made of phases, so that neighbouring windows
// read neighbours, and is shared by all features of some rows.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<1x3x33x64xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<1x8x16x32xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 2], pad = [[0, 0], [1, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x33x64xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x16x32xf32>
  return %0 : tensor<1x8x16x32xf32>
}
