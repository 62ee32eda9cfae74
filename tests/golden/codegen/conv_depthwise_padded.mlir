// Rows of windows of a depthwise convolution share one padded box.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<1x10x10x32xf32>, %w: tensor<3x3x1x32xf32>) -> tensor<1x10x10x32xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 32 : i64} : (tensor<1x10x10x32xf32>, tensor<3x3x1x32xf32>) -> tensor<1x10x10x32xf32>
  return %0 : tensor<1x10x10x32xf32>
}
