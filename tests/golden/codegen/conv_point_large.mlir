// Results that no cache holds are written in order: column tiles are within rows.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
func.func @main(%x: tensor<1x160x160x4xf32>, %w: tensor<1x1x4x96xf32>) -> tensor<1x160x160x96xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x160x160x4xf32>, tensor<1x1x4x96xf32>) -> tensor<1x160x160x96xf32>
  return %0 : tensor<1x160x160x96xf32>
}
