// One tap, planes in and out: a product of matrices as they lie.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<1x4x10x10xf32>, %w: tensor<6x4x1x1xf32>) -> tensor<1x6x10x10xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x10x10xf32>, tensor<6x4x1x1xf32>) -> tensor<1x6x10x10xf32>
  return %0 : tensor<1x6x10x10xf32>
}
